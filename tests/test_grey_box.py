"""The grey box: planted faults are found on a few equal streams without statistics, and what is sound is not accused.

No statistical assertion: where noise enters, the streams are fixed by the seed, and what is asserted holds on every
stream but for sets of probability 0 (equal values of continuous noise), or is said to hold for these streams alone.
"""

import dataclasses
import functools
import json
import math

import numpy as np
import pytest

import dpaudit
from dpaudit import replay_same_randomness
from dpaudit.results.model import SideFinding
from dpaudit.running.streams import GREY_BOX

SEED = 20_261_122
replay = functools.partial(replay_same_randomness, seed=SEED)


def kinds(result):
    return {hint.kind for hint in result.pairs[0].hints}


def laplace(data, size, rng, *, weight=1.0, scale=1.0):
    return weight * np.asarray(data) + rng.laplace(scale=scale, size=(size, *np.shape(data)))


def normal(data, size, rng, *, sigma=1.0):
    return np.asarray(data) + rng.normal(scale=sigma, size=(size, *np.shape(data)))


def test_noise_exactly_on_its_claim_is_recognised_and_not_accused():
    result = replay(laplace, [(0.0, 1.0), ([0.0, 0.0], [0.5, 0.5])], "eps=1")
    assert [pair.grade for pair in result.pairs] == ["same", "same"]
    assert [pair.implied_loss for pair in result.pairs] == [1.0, 1.0]
    assert result.side_finding().status == "nothing_found"


@pytest.mark.parametrize(
    ("mechanism", "claim", "loss"),
    [
        (functools.partial(laplace, weight=2.0), "eps=1", 2.0),  # l1 distance in units of the scale
        (functools.partial(laplace, scale=0.5), "eps=1", 2.0),
        (normal, "eps=3", math.inf),  # normal noise keeps no pure claim
        (normal, "mu=0.9", math.inf),
        (normal, "rho=0.4", math.inf),
        (normal, "order=2,rdp=0.9", math.inf),
        (normal, "eps=1,delta=0.1", math.inf),  # delta(1) = Phi(-1/2) - e Phi(-3/2) = 0.127
        (functools.partial(laplace, weight=2.0), "eps=1,delta=0.3", 2.0),  # 1 - exp(-1/2) = 0.393
    ],
)
def test_a_noise_free_part_beyond_the_claim_is_implied_with_its_exact_loss(mechanism, claim, loss):
    result = replay(mechanism, [(0.0, 1.0)], claim)
    assert result.grade == "implied" and result.pairs[0].implied_loss == pytest.approx(loss)
    finding = result.side_finding()
    assert finding.status == "found" and "line test_grey_box.py" in finding.summary and finding.error_rate is None


@pytest.mark.parametrize(
    ("mechanism", "claim"),
    [
        (normal, "mu=1"),
        (normal, "rho=0.5"),
        (normal, "order=2,rdp=1"),
        (normal, "eps=1,delta=0.13"),
        (functools.partial(laplace, weight=2.0), "eps=1,delta=0.4"),
        (functools.partial(laplace, weight=2.0), "eps=2"),
    ],
)
def test_the_same_noise_at_its_exact_value_is_not_accused(mechanism, claim):
    assert replay(mechanism, [(0.0, 1.0)], claim).grade == "same"


def test_one_noise_in_two_numbers_is_counted_once():
    def release(data, rng):  # the second number shows that it is the same noise, which is no part of what is implied
        noise = rng.laplace()
        return [data + noise, data + noise]

    implied = replay(release, [(0.0, 1.0)], "eps=1").pairs[0].implied_loss
    assert implied == pytest.approx(1.0, abs=1e-12)  # a difference of two outputs, rounded as the noise happens to be


def no_noise_when_empty(data, rng):
    return float(sum(data)) + (rng.laplace() if len(data) else 0.0)


def test_an_output_without_any_randomness_is_definite_against_another_output():
    result = replay(no_noise_when_empty, [([], [1.0])], "eps=1")
    assert result.grade == "definite" and math.isinf(result.pairs[0].implied_loss)
    assert result.side_finding().summary.startswith("Definite, pair []|[1.0]: on [] nothing is taken")
    # The other way round, and for claims that no mass without a likeness keeps.
    for claim in ("mu=1", "rho=1", "order=2,rdp=1"):
        assert replay(no_noise_when_empty, [([1.0], [])], claim).grade == "definite"


def test_a_delta_may_pay_for_what_one_side_draws_but_not_for_two_fixed_outputs():
    # Not by logic alone: that [1.0] seldom gives 0 too is what the law of its noise says.
    assert replay(no_noise_when_empty, [([], [1.0])], "eps=1,delta=1e-3").grade == "implied"
    assert replay(lambda data, rng: len(data), [([], [1.0])], "eps=1,delta=1e-3").grade == "definite"


def test_equal_outputs_without_randomness_are_not_definite():
    assert replay(lambda data, rng: 5, [(0.0, 1.0)], "eps=1").grade == "not recorded"


@pytest.mark.parametrize("takes", [False, True])
def test_a_rare_output_of_randomness_that_no_generator_shows_is_not_definite(takes):
    """Noise of a compiled library, of which one run of 16 shows something: an infinite loss would not follow.

    Where the other input takes from its generator, a run is made again; its rare output comes again with probability 0
    here.
    """
    hidden = iter([*[0] * 17, *[0] * 5, 1, *[0] * 100])

    def release(data, rng):
        if takes and data:
            rng.random()
        return next(hidden)

    result = dpaudit.replay_same_randomness(release, [([], [1e12])], "eps=1", seed=1)
    assert "does not repeat" in result.message and not result.pairs


def test_a_refusal_of_one_input_is_an_outcome():
    def mean(data, rng):
        return sum(data) / len(data) + rng.laplace()

    result = replay(mean, [([], [1.0])], "eps=1")
    assert result.grade == "definite" and "ZeroDivisionError" in result.pairs[0].statement
    assert "outcome" in kinds(result)


@pytest.mark.parametrize("take", ["bit_generator", "copy", "spawn"])
def test_randomness_taken_behind_the_log_is_never_called_none(take):
    import copy

    def coin(data, rng):  # fair for either input: nothing leaks
        if take == "bit_generator":
            return int(rng.bit_generator.random_raw()) & 1
        child = copy.deepcopy(rng) if take == "copy" else rng.spawn(1)[0]
        return int(child.bit_generator.random_raw() >> 40) & 1 if take == "spawn" else int(child.integers(2))

    assert replay(coin, [(0, 1)], "eps=0.1").grade == "not recorded"


def test_a_rejection_sampler_and_a_sparse_vector_give_no_more_than_hints():
    def rejection(data, rng):
        while abs(output := data + rng.laplace()) > 3.0:
            pass
        return output

    def sparse_vector(data, rng):
        limit = rng.laplace(scale=2.0)
        return next((i for i, answer in enumerate(data) if answer + rng.laplace(scale=4.0) > limit), -1)

    for mechanism, pair in ((rejection, (0.0, 1.0)), (sparse_vector, ([0.0] * 5, [1.0] * 5))):
        result = replay(mechanism, [pair], "eps=1", runs=60)
        assert result.grade == "hint" and kinds(result) == {"branches", "consumption"}
        assert result.side_finding().status == "nothing_found"
        assert "; the only pair differs in a way that does not prove a violation" in result.side_finding().summary


def test_clipped_outputs_are_a_function_of_the_noise_and_compiled_ones_are_not_known():
    def clipped(data, rng):
        return float(np.clip(2.0 * data + rng.laplace(), 0.4, 0.6))

    def through_text(data, rng):
        return float(f"{2.0 * data + rng.laplace():.3f}")

    (pair,) = replay(clipped, [(0.0, 1.0)], "eps=1").pairs
    # The output is 0.4 with probability 1 - exp(-0.4) / 2 on 0 and exp(-1.6) / 2 on 1; what is proved is no more.
    exact = math.log(1.0 - math.exp(-0.4) / 2.0) - math.log(math.exp(-1.6) / 2.0)
    assert pair.grade == "implied" and 1.0 < pair.implied_loss <= exact
    result = replay(through_text, [(0.0, 1.0)], "eps=1")
    assert result.pairs[0].implied_loss is None and result.grade == "not recorded"
    assert "their loss is not known" in result.side_finding().summary


def test_a_loop_that_waits_for_noise_ends():
    def wait(data, rng):
        while rng.random() < 0.75:
            pass
        return data + rng.laplace()

    assert replay(wait, [(0.0, 1.0)], "eps=1").pairs[0].implied_loss is None


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (lambda data: data + 1.0, "takes no generator"),
        (lambda data, seed: data + np.random.default_rng(seed).laplace(), "takes no generator"),
        (lambda data, rng: data + np.random.laplace(), "does not repeat"),  # noqa: NPY002
    ],
)
def test_what_cannot_be_replayed_is_not_applicable(mechanism, message):
    finding = replay(mechanism, [(0.0, 1.0)], "eps=1").side_finding()
    assert finding.status == "not_applicable" and message in finding.summary


def test_a_pair_of_which_nothing_is_asked_is_not_accused():
    claim = dpaudit.MetricDP(lambda x, y: math.inf)
    assert replay(functools.partial(laplace, weight=9.0), [(0.0, 1.0)], claim).grade == "same"


def test_anybody_can_replay_a_run_from_the_finding():
    found = replay(functools.partial(laplace, weight=2.0), [(0.0, 1.0)], "eps=1").side_finding()
    record = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert SideFinding.from_dict(record) == found and record["details"]["spawn_keys"][3] == [GREY_BOX, 3]
    details = record["details"]
    streams = [np.random.SeedSequence(details["seed"], spawn_key=details["spawn_keys"][3]) for _ in range(2)]
    first, second = (
        laplace(x, 1, np.random.default_rng(stream), weight=2.0) for x, stream in zip((0.0, 1.0), streams, strict=True)
    )
    assert second - first == pytest.approx(2.0)


def test_the_same_seed_gives_the_same_result_and_the_claim_may_be_missing():
    first, second = (replay(no_noise_when_empty, [([1.0], [2.0])]) for _ in range(2))
    assert first == second and first.claim is None and first.pairs[0].implied_loss == 1.0 and first.grade == "same"


def test_a_delta_of_laplace_noise_is_not_asked_of_logistic_noise():
    def logistic(data, rng):
        return data + rng.logistic()

    # Moved by 1, the total variation of logistic noise is tanh(1/4) = 0.245; of Laplace noise it is 0.393.
    (pair,) = replay(logistic, [(0.0, 1.0)], "eps=0,delta=0.3").pairs
    assert pair.grade == "not recorded"  # its law of losses has no closed form here: nothing is said, nor accused
    assert replay(logistic, [(0.0, 1.0)], "eps=0.9").grade == "implied"
    assert replay(logistic, [(0.0, 1.0)], "eps=1.1").grade == "same"


def test_an_audit_carries_the_finding_and_its_verdict_does_not_depend_on_it():
    options = {"samples": 400, "seed": 3, "floating_point": False}
    plain, boxed = (dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], grey_box=box, **options) for box in (False, True))
    assert plain.side_findings == ()
    assert [finding.kind for finding in boxed.side_findings] == ["same_randomness", "recorded_noise"]
    assert dataclasses.replace(boxed, side_findings=(), seconds=0.0) == dataclasses.replace(plain, seconds=0.0)


def test_recorded_noise_is_a_side_finding_of_the_audit_without_values_of_the_inputs():
    def total(data, rng):
        return sum(data) + rng.laplace(scale=0.01)

    result = dpaudit.audit(total, "eps=1", [([], [4321.5])], grey_box=True, samples=200, seed=3, floating_point=False)
    (finding,) = (one for one in result.side_findings if one.kind == "recorded_noise")
    assert finding.status == "found" and "test_grey_box.py:" in finding.summary
    (pair,) = finding.details["pairs"]
    assert "moves by" not in finding.summary and pair["loss"] == pytest.approx(432_150.0)
    assert "trace" not in pair and "statement" not in pair
