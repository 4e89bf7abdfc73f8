"""What recorded noise cannot follow has the grade "not recorded" and no loss; noise in several outputs is counted once.

No assertion has an error rate: runs are the same for a seed, and the losses are closed forms, said beside each.
"""

from __future__ import annotations

import dataclasses
import decimal
import json
import math
import random
import struct
import time

import numpy as np
import pytest

import dpaudit
from dpaudit.audits import search_result
from dpaudit.errors import UsageError
from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.callables import as_subject
from dpaudit.symbolic.recorded_noise import GRADES, RecordedResult, Recorder


def of(mechanism, pair=(0.0, 1.0), claim="eps=3"):
    (found,) = dpaudit.record_noise(mechanism, [pair], claim, seed=7).pairs
    return found


def number(x, rng):
    return 3.0 * x + rng.laplace()


def numbers(x, rng):
    return np.array([3.0 * x, 0.0]) + rng.laplace(size=2)


def solved(x, rng):
    from scipy import linalg

    return linalg.solve(np.eye(2), numbers(x, rng))


def expit(x, rng):
    from scipy import special

    return special.expit(number(x, rng))


def caught(x, rng):
    noisy = number(x, rng)
    try:
        return json.loads(json.dumps(noisy))
    except TypeError:
        return 0.0


def in_place(x, rng):
    found = np.zeros(2)
    found[:] = numbers(x, rng)
    return found


def masked(x, rng):
    return np.ma.masked_array([2.0 + x, 2.0], mask=[False, True]) + float(rng.laplace())


def seeded_again(x, rng):
    state = np.random.RandomState()
    state.seed(0)
    return x + state.laplace()


def seeded_for_a_while(x, rng):  # its noise is none of the seed
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    np.random.set_state(state)  # noqa: NPY002
    return x + np.random.laplace()  # noqa: NPY002


def pythons_for_a_while(x, rng):
    state = random.getstate()
    random.seed(0)
    random.setstate(state)
    return x + random.gauss(0.0, 3.0)


def set_to_a_state(x, random_state):
    random_state.set_state(random_state.get_state())
    return x + random_state.laplace()


def past_its_methods(x, rng):
    return (100.0 * x if np.frompyfunc(np.random.Generator.random, 1, 1)(rng) < 0.02 else x) + rng.laplace()


class Box:
    def __init__(self, value):
        self.value = value


def several_ways(change):
    return lambda x, rng: change(number(x, rng))


LOST = {
    "an exception that symbols cause": (solved, "raises"),
    "a caught exception that symbols cause": (caught, "another way"),
    "linear algebra": (lambda x, rng: np.linalg.solve(np.eye(2), numbers(x, rng)), "raises"),
    "max with a key": (lambda x, rng: max(range(3), key=lambda k: x * k + rng.standard_cauchy()), "looks at"),
    "sorted": (lambda x, rng: sorted(3.0 * x + rng.standard_cauchy(size=2)), "looks at"),
    "two noises compared": (lambda x, rng: bool(3.0 * x + rng.standard_cauchy() < number(x, rng)), "looks at"),
    "compiled code": (expit, "looks at"),
    "written into floats": (in_place, "looks at"),
    "shorter floats": (lambda x, rng: numbers(x, rng).astype(np.float32), "looks at"),
    "a sum in shorter floats": (lambda x, rng: np.sum(numbers(x, rng), dtype=np.float32), "looks at"),
    "a percentile": (lambda x, rng: np.nanpercentile(numbers(x, rng), 50), "for nanpercentile"),
    "a mask": (masked, "MaskedArray"),
    "names": (lambda x, rng: np.rec.array([(float(x), 1)]) if rng.laplace() is not None else None, "recarray"),
    "a container": (several_ways(Box), "a Box"),
    "a draw that is not followed": (lambda x, rng: int(3 * x + rng.poisson(2.0)), "looks at"),
    "an old generator that is seeded again": (seeded_again, "looks at"),
    "an old generator that is set to a state": (set_to_a_state, "looks at"),
    "a seed for a while": (seeded_for_a_while, "looks at"),
    "a seed of Python's for a while": (pythons_for_a_while, "looks at"),
    "nothing drawn": (lambda x, rng: 5.0, "draws nothing"),
    "past its methods": (past_its_methods, "randomness that is not recorded"),
    **{
        name: (several_ways(change), said)
        for name, change, said in (
            ("int", lambda noisy: int(str(int(noisy))), "looks at"), ("a format", "{:.1f}".format, "looks at"),
            ("round and a sum", lambda noisy: round(noisy) + 1, "looks at"),
            ("a text", str, "looks at"), ("a sine", np.sin, "looks at"),
            ("a hash", hash, "hash() depends on the process"),
            ("bytes", lambda noisy: struct.pack("d", noisy), "looks at"),
            ("another number type", lambda noisy: float(decimal.Decimal(noisy)), "raises"),
            ("an index", lambda noisy: [0, 1, 2, 3][int(np.clip(noisy, 0, 3))], "looks at"),
            ("a set", lambda noisy: {noisy}, "looks at"), ("a truth", bool, "looks at"),
        )
    },
}  # fmt: skip
HAVE_NO_LINE = ("a mask", "names", "a container", "nothing drawn", "past its methods")


@pytest.mark.parametrize("name", LOST)
def test_what_loses_its_symbols_is_not_recorded_with_its_reason_and_line(name):
    mechanism, said = LOST[name]
    if name in ("an exception that symbols cause", "compiled code"):
        pytest.importorskip("scipy")
    result = dpaudit.record_noise(mechanism, [(0.0, 1.0)], "eps=3", seed=7)
    (pair,) = result.pairs
    assert result.grade == pair.grade == "not recorded" and math.isnan(pair.loss) and pair.implied is None
    assert said in pair.unproved and ("test_not_recorded.py:" in pair.unproved or name in HAVE_NO_LINE), pair.unproved
    finding = result.side_finding()
    assert finding.status == "not_applicable" and finding.details["pairs"][0]["loss"] is None
    assert finding.summary.startswith("Not recorded") and "within the claim" not in finding.summary


def goes_on(x, rng):
    while rng.laplace() + x < 40.0:
        pass
    return 1


def branches(x, rng):
    return sum(k * bool(rng.laplace() + x > 3.0) for k in range(30))


@pytest.mark.parametrize("mechanism", [goes_on, branches])
def test_a_record_ends_when_its_time_is_over(mechanism):
    begin = time.monotonic()
    (pair,) = dpaudit.record_noise(mechanism, [(0, 1)], "eps=1", seconds=1.0, seed=1).pairs
    assert time.monotonic() - begin < 10.0 and pair.grade == "not recorded" and pair.unproved


def test_the_time_of_a_record_is_positive():
    with pytest.raises(UsageError, match="seconds must be a finite number above 0, got 0"):
        dpaudit.record_noise(branches, [(0, 1)], "eps=1", seconds=0)


def test_nothing_that_is_not_proved_is_ranked_above_a_pair_that_is_not_recorded():
    def release(x, rng):
        noisy = x + rng.laplace()
        return float(np.sin(noisy)) if x == 2.0 else noisy

    assert GRADES[:2] == ("proved", "not recorded")
    result = dpaudit.record_noise(release, [(0.0, 1.0), (0.0, 2.0)], "eps=1", seed=7)
    assert result.grade == "not recorded" and [pair.grade for pair in result.pairs] == ["not recorded", "same"]
    assert "Not recorded for 1 of 2 pairs" in result.side_finding().summary
    assert RecordedResult("release", "eps=1", 7, 0, ()).grade == "not recorded"
    proved = dpaudit.record_noise(release, [(0.0, 1.5), (0.0, 2.0)], "eps=1", seed=7)
    assert proved.grade == "proved" and proved.side_finding().status == "found"


def test_runs_that_were_not_made_are_not_called_the_same():
    def two_coins(x, rng):
        return sum(rng.random() < 0.25 for _ in range(2))

    for most, grade in ((3, "not recorded"), (9, "same")):
        found = Recorder(as_subject(two_coins), dpaudit.PureDP(1.0), 7, most).pair(Pair(0, 1))
        assert found.grade == grade and ("are not known" in found.unproved) == (grade == "not recorded")


def test_a_search_gives_no_rank_to_what_is_not_recorded_or_only_implied():
    def release(x, rng):
        return round(x + rng.laplace()) + 1

    (looked,) = dpaudit.replay_same_randomness(release, [(0, 3)], "eps=1", seed=7).pairs
    claim = dpaudit.ApproxDP(1.0, 0.0)
    entry = search_result.TriedPair(dpaudit.Pair(0, 3), "", "", claim, (0, 1), 0, excess=0.5)
    assert looked.grade == "not recorded" and looked.implied_loss is None and entry.suspicion == 0.5
    assert dataclasses.replace(entry, proved=3.0).suspicion > 3.0
    found = dpaudit.search_pairs(release, claim, dpaudit.domains.NumberDomain(0, 3, 3.0), budget=2_000, seed=7)
    assert max(one.suspicion for one in found.tried) < search_result.PROVED


def prefix_sums(x, rng):
    return np.cumsum(np.asarray(x) + rng.laplace(size=len(x)))


def normal_prefix_sums(x, rng):
    return np.cumsum(np.asarray(x) + rng.normal(size=len(x)))


def tree(x, rng):
    low, high, both = rng.laplace(size=3)
    return [x[0] + low, x[1] + high, x[0] + x[1] + low + high + both]


def pair_sums(x, rng):  # of two numbers the three noises cannot be told
    z = x + rng.laplace(size=3)
    return [z[0] + z[1], z[1] + z[2]]


def normal_pair_sums(x, rng):
    z = x + rng.normal(size=3)
    return [z[0] + z[1], z[1] + z[2]]


def coin(x, rng):
    return bool(x + rng.normal() > 0.0)


FOUR, THREE = (np.zeros(4), np.array([1.0, 0.0, 0.0, 0.0])), np.zeros(3)
# Joint losses: of a linear image of independent noise that of the shift that explains it.
SHARED = {
    "prefix sums": (prefix_sums, FOUR, "eps=1", 1.0),
    "prefix sums of two records": (prefix_sums, (np.zeros(3), np.array([1.0, -1.0, 0.0])), "eps=2", 2.0),
    "normal prefix sums": (normal_prefix_sums, FOUR, "mu=1", 1.0),
    "a tree": (tree, ([0.0, 0.0], [1.0, 0.0]), "eps=1", 1.0),
    "sums of pairs": (pair_sums, (THREE, np.array([0.0, 1.0, 0.0])), "eps=1", 1.0),
    "normal sums of pairs": (normal_pair_sums, (THREE, np.array([0.0, 1.0, 0.0])), "mu=0.9", math.sqrt(2.0 / 3.0)),
    "a clipped number": (lambda x, rng: min(max(x + rng.laplace(), -3.0), 4.0), (0.0, 1.0), "eps=1", 1.0),
    "a clipped normal number": (lambda x, rng: min(max(x + rng.normal(), -3.0), 4.0), (0.0, 1.0), "mu=1", 1.0),
    "the sign of a normal number": (coin, (0.0, 1.0), "mu=1", 1.0),
    "one number thrice": (lambda x, rng: [n := x + rng.laplace(), n + 1.0, -2.0 * n], (0.0, 1.0), "eps=1", 1.0),
}


@pytest.mark.parametrize("name", SHARED)
def test_noise_in_several_outputs_or_comparisons_is_counted_once(name):
    mechanism, pair, claim, loss = SHARED[name]
    found = of(mechanism, pair, claim)
    assert found.grade == "same" and found.implied == pytest.approx(loss, rel=1e-9), (found.grade, found.unproved)


@pytest.mark.parametrize(("mechanism", "claim"), [(prefix_sums, "eps=0.99"), (normal_prefix_sums, "mu=0.99")])
def test_the_joint_loss_above_the_claim_is_proved(mechanism, claim):
    assert of(mechanism, FOUR, claim).grade == "proved"


def test_an_upper_bound_that_may_not_be_reached_implies_nothing():
    found = of(pair_sums, (THREE, np.array([0.0, 1.0, 0.0])), "eps=0.5")
    assert found.grade == "not recorded" and "only a bound" in found.unproved


def test_a_loss_without_a_bound_is_not_called_implied_or_the_same():
    # Scales differ: the composition has no bound, and the deltas that are looked at are below the claim's.
    def scaled(x, rng):
        return [rng.laplace(scale=1.0 + 0.05 * x), rng.laplace(scale=1.0 + 0.05 * x)]

    assert of(scaled, (0.0, 1.0), "eps=1,delta=0.5").grade == "not recorded"
    exact = of(lambda x, rng: x + rng.laplace(scale=0.5), (0.0, 1.0), "eps=1,delta=0.4")  # 1 - exp(-1/2) = 0.393
    assert exact.grade == "same" and not exact.statement


def geometric(rng):
    return rng.geometric(0.5) - rng.geometric(0.5)


def scaled_pair_sums(x, rng):
    z = np.array([0.0, 5e-10 * x, 0.0]) + rng.laplace(scale=1e-10, size=3)
    return [z[0] + z[1], z[1] + z[2]]


# Losses far above the claim, of differences that a tolerance of 1e-9 of the number, or of 1e-9, takes for rounding.
SMALL = {
    "5 scales": (lambda x, rng: 1e6 + 5e-4 * x + rng.laplace(scale=1e-4), "eps=1"),
    "10 scales in 80 last bits": (lambda x, rng: 1e12 + 0.01 * x + rng.laplace(scale=1e-3), "eps=1"),
    "10 deviations, with a delta": (lambda x, rng: 1e12 + 0.01 * x + rng.normal(scale=1e-3), "eps=1,delta=1e-5"),
    "10 deviations": (lambda x, rng: 1e12 + 0.01 * x + rng.normal(scale=1e-3), "rho=1"),
    "another support": (lambda x, rng: 1e12 + 0.01 * x + rng.uniform(0.0, 1e-3), "eps=1"),
    "other fractions": (lambda x, rng: 1e6 + 1e-4 * x + geometric(rng), "eps=1"),
    "numbers without noise": (lambda x, rng: [1e6 + 1e-4 * x, rng.laplace()], "eps=1"),
    "a difference without noise": (lambda x, rng: [n := rng.laplace(), n + 5e-7 * x], "eps=1"),
    "another factor": (lambda x, rng: (1.0 + 1e-10 * x) * rng.uniform(), "eps=1"),
    "noises that cannot be told": (scaled_pair_sums, "eps=1"),
}


@pytest.mark.parametrize("name", SMALL)
def test_a_difference_that_is_small_beside_its_number_is_not_taken_for_rounding(name):
    found = of(SMALL[name][0], claim=SMALL[name][1])
    assert found.grade in ("implied", "not recorded"), (found.grade, found.loss)


def test_rounding_of_a_sum_and_the_same_nan_are_no_difference():
    assert of(lambda x, rng: (0.1 + 0.2 if x else 0.3) + rng.uniform()).grade == "same"
    assert of(lambda x, rng: math.nan + rng.laplace()).grade == "same"


def test_noise_that_is_compared_on_x_prime_alone_is_not_free_on_both():
    def told(x, rng):  # the sign of one noise of the sum on x_prime: its loss has no bound
        coin, (one, other) = rng.laplace(), rng.normal(size=2)
        return bool((one if x else coin) > 0.0), one + other

    for pair in ((0.0, 1.0), (1.0, 0.0)):
        found = of(told, pair)
        assert found.grade == "not recorded" and found.implied is None


def test_the_text_of_an_exception_and_the_order_of_keys_are_not_overlooked():
    def refused(x, rng):
        rng.laplace()
        raise ValueError(f"{x} records")

    def keyed(x, rng):
        noise = rng.laplace(size=2)
        return {k: n for k, n in zip("ab" if x else "ba", noise, strict=True)}

    def rarely(x, rng):  # in no run but one that a decision makes
        if rng.laplace() > 3.0:
            raise ValueError(f"{x} records")

    for mechanism in (refused, keyed, rarely):
        found = of(mechanism)
        assert found.grade == "hint" and found.notes[0].kind == "aside"


def test_a_claim_in_a_unit_of_its_own_is_held_to_its_line():
    class Bits(dpaudit.Claim):
        parameter = "bits"

        def __init__(self, bits):
            self.bits = bits

        value = property(lambda self: self.bits)

        def with_value(self, value):
            return Bits(value)

        def __str__(self):
            return f"bits={self.bits:g}"

        def lines(self, values, anchor):
            return np.log(2.0) * np.asarray(values), np.zeros(len(values))

        def epsilon_at(self, delta):
            return math.log(2.0) * self.bits

    def release(x, rng):
        return x + rng.laplace()

    assert of(release, claim=Bits(1.0)).grade == "proved"  # 1 nat is 1.44 bits
    kept = of(release, claim=Bits(1.45))
    assert kept.grade == "same" and kept.implied == pytest.approx(1.0)
    assert dpaudit.replay_same_randomness(release, [(0.0, 1.0)], Bits(1.0), seed=1).grade == "implied"
    assert dpaudit.replay_same_randomness(release, [(0.0, 1.0)], Bits(1.45), seed=1).grade == "same"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x, rng: rng.geometric(0.5) + math.inf, "upper bound"),
        (lambda x, rng: rng.geometric(0.5, 3) + math.nan, "upper bound"),
        (lambda x, rng: rng.geometric(0.5, 3) << 1, "looks at the value of its noise for left_shift"),
    ],
)
def test_whole_noise_is_lost_by_name(function, said):
    """Numbers that are infinite or NaN raised an error of dpaudit; an array of integers was one of doubles."""
    assert said in of(function, claim="eps=1").unproved
