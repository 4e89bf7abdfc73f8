"""The exact tests under the independence checks, by enumeration, and what features they ask about."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import check
from dpaudit.conformance.laws_of_outputs import two_sided
from dpaudit.conformance.noise import features, fisher, more_equal
from dpaudit.features.outcomes import read_outputs


@pytest.mark.parametrize(("total", "first", "second"), [(6, 3, 2), (7, 0, 4), (8, 8, 3), (9, 4, 5)])
def test_the_tails_are_those_of_all_arrangements(total, first, second):
    # Given the margins every choice of `second` pairs among `total` is as likely: count them all.
    counts = [len(set(chosen) & set(range(first))) for chosen in itertools.combinations(range(total), second)]
    for both in range(max(0, first + second - total), min(first, second) + 1):
        more, fewer = fisher(both, first, second, total)
        assert more == pytest.approx(np.mean([count >= both for count in counts]), abs=1e-12)
        assert fewer == pytest.approx(np.mean([count <= both for count in counts]), abs=1e-12)


def test_the_two_sided_binomial_test_is_twice_the_smaller_tail():
    for count, draws, probability in [(0, 5, 0.3), (5, 5, 0.3), (2, 9, 0.5), (40, 200, 0.1)]:
        tails = stats.binom.sf(count - 1, draws, probability), stats.binom.cdf(count, draws, probability)
        assert two_sided(count, draws, probability) == pytest.approx(min(1.0, 2.0 * min(tails)), rel=1e-9)
    assert two_sided(0, 5, 0.0) == 1.0 and two_sided(1, 5, 0.0) == 0.0 and two_sided(5, 5, 1.0) == 1.0


def test_whether_more_of_a_kind_are_equal_is_asked_by_the_hypergeometric_law():
    rng = np.random.default_rng(20_261_121)
    for share in (0.5, 0.05, 0.3):
        within, across = rng.random(60) < share, rng.random(30) < 0.3
        law = stats.hypergeom(90, within.sum() + across.sum(), 60)
        assert more_equal(within, across) == pytest.approx(law.sf(within.sum() - 1))


def test_features_of_numbers_and_of_other_outputs():
    rng = np.random.default_rng(3)
    numbers = features(read_outputs(rng.normal(size=(50, 2)), 50))
    assert [(feature.kind, feature.column) for feature in numbers] == [
        ("above", 0), ("farther", 0), ("above", 1), ("farther", 1)
    ]  # fmt: skip
    texts = ["yes"] * 30 + ["no", None] * 10
    found = features(read_outputs(texts, 50))
    assert any(feature.kind == "token" and feature.of(read_outputs(texts, 50)).sum() == 20 for feature in found)
    assert features(read_outputs(["yes"] * 50, 50)) == []
    assert not math.isnan(numbers[0].centre)


def test_features_of_dictionaries_ask_the_same_of_other_pilots():
    rng = np.random.default_rng(3)
    pilots = [read_outputs([{"a": float(rng.normal()), "b": k % 2} for k in range(60)], 60) for _ in range(2)]
    first, second = (features(pilot) for pilot in pilots)
    assert [(feature.kind, feature.place) for feature in first[:2]] == [
        ("above", "the output['a']"), ("farther", "the output['a']")
    ]  # fmt: skip
    assert str(first[0]) == f"outputs above {first[0].centre:.4g} in the output['a']"
    assert sum(f.asks_as(g) for f in first for g in second) == len(first) == len(second)
    assert {feature.of(pilots[1]).sum() for feature in first if feature.place.endswith("['b']")} <= {0, 30}


def _release(data, rng):
    return {"count": data + float(rng.laplace()), "day": "monday"}


class Kept:
    """Noise that every call after the first repeats."""

    def __init__(self):
        self.noise = None

    def __call__(self, data, rng):
        self.noise = float(rng.laplace()) if self.noise is None else self.noise
        return {"count": data + self.noise, "day": "monday"}


@pytest.mark.parametrize(("mechanism", "status"), [(_release, "not_refuted"), (Kept(), "violated")])
def test_noise_in_dictionaries_that_calls_share_is_seen(mechanism, status):
    # A sound mechanism fails this check with probability at most 0.001, the rate of the whole list.
    record = check(mechanism, "eps=1", [(0.0, 1.0)], only=["independent_calls"], seed=11).records[0]
    assert record.status == status


class Buffered:
    """Every batch is written into one array."""

    def __init__(self):
        self.buffer = np.empty(1 << 15)

    def __call__(self, data, size, rng):
        outputs = self.buffer[:size]
        outputs[:] = data + rng.laplace(size=size)
        return outputs


def test_batches_that_are_written_into_one_array_share_no_noise():
    names = ["independent_in_a_batch", "independent_calls", "batch_law"]
    found = check(Buffered(), "eps=1", [(0.0, 1.0)], only=names, seed=11).records
    assert {record.name: record.status for record in found} == dict.fromkeys(names, "not_refuted")


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("mixed", [True, False])
def test_a_feature_of_an_output_does_not_depend_on_its_batch(mixed, vector):
    rng = np.random.default_rng(5)

    def output():
        return None if mixed and rng.random() < 0.2 else rng.normal(size=2) if vector else float(rng.normal())

    chosen = features(read_outputs([output() for _ in range(60)], 60))
    outputs = [output() for _ in range(40)]
    together = read_outputs([*outputs, None], 41)
    assert chosen
    for feature in chosen:
        alone = [bool(feature.of(read_outputs([one], 1))[0]) for one in outputs]
        assert feature.of(together).tolist()[:40] == alone == feature.of(read_outputs(outputs, 40)).tolist()
        assert 0 < sum(alone) < 40
