"""Error bounds as testable claims: verdicts, intervals, power, the search for worst inputs, and mistakes."""

import json
import math
import re
from importlib import resources

import jsonschema
import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats
from support.refusals import refusals
from support.samplers import laplace as release

import dpaudit
from dpaudit import UtilityBound, audit_utility
from dpaudit.inference import means
from dpaudit.reports.cases import utility_sentence
from dpaudit.running.streams import UTILITY_DRAWS, stream
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.randomised_response import RandomisedResponse

# Bounds that hold are tested at this confidence: a false verdict or an interval that misses has a probability of at
# most 1e-9 a call over seeds, below 2e-8 in this file. Bounds that do not hold are far enough off for their seeds.
SURE = 1.0 - 1e-9


def error(data, outputs):
    return np.abs(np.asarray(outputs) - data)


def tail(limit, failures, **options):
    return UtilityBound("error", error, limit, failure_probability=failures, **options)


def mean(limit, **options):
    return UtilityBound("mean error", error, limit, **options)


@pytest.mark.parametrize("bound", [tail(3.0, math.exp(-3.0)), mean(1.0, standard_deviation=1.0)], ids=str)
def test_a_bound_that_holds_with_equality_is_not_refuted_and_its_ratio_is_one(bound):
    result = audit_utility(release, bound, [0.0, 5.0], seed=1, confidence=SURE)
    assert result.verdict == "not_refuted" and result.exit_status == 0 and len(result.findings) == 2
    for finding in result.findings:
        assert finding.ratio_lower <= 1.0 <= finding.ratio_upper
        assert finding.ratio_lower < finding.ratio < finding.ratio_upper < 1.3
        assert 1.0 < finding.detectable_ratio < 1.5


@pytest.mark.parametrize("bound", [tail(2.5, math.exp(-3.0)), mean(0.8)], ids=str)
def test_a_bound_that_does_not_hold_is_violated(bound):
    # exp(-2.5) is 1.65 times exp(-3), 1 is 1.25 times 0.8: both beyond what 20,000 draws find with 90% probability.
    result = audit_utility(release, bound, [0.0], seed=1)
    assert result.verdict == "violated" and result.exit_status == 1
    worst = result.worst
    assert 1.0 < worst.ratio_lower < worst.ratio and worst.p_value < worst.error_share


@pytest.mark.parametrize(
    ("bound", "measured"),
    [(tail(1.0, 0.01), "the worst share of errors beyond a limit is 3"), (mean(0.1), "the worst mean error is ")],
    ids=str,
)
def test_a_broken_bound_is_said_to_be_one_of_errors(bound, measured):
    # A share of 0.37 is allowed to be 0.01: nothing is 37 times as large as stated, and nothing was revealed.
    text = " ".join(str(audit_utility(release, bound, [0.0], seed=1)).split())
    assert measured in text and "revealed" not in text


def test_a_loose_bound_shows_its_looseness():
    result = audit_utility(release, [tail(3.0, 0.5), mean(20.0, standard_deviation=1.0)], [0.0], seed=1)
    assert result.verdict == "not_refuted"
    assert [finding.ratio_upper < 0.12 for finding in result.findings] == [True, True]


def test_a_mean_without_an_assumption_has_no_upper_limit():
    finding = audit_utility(release, mean(1.0), [0.0], seed=1).findings[0]
    assert finding.upper == finding.ratio_upper == math.inf and finding.lower > 0.9


def test_a_heavy_tail_is_no_reason_to_refute():
    # |Cauchy| ^ (1/2) has no variance; its mean is sqrt(2) (the integral of 2 sqrt(x) / (pi (1 + x^2))).
    def heavy(data, size, rng):
        return np.sqrt(np.abs(rng.standard_cauchy(size)))

    bound = UtilityBound("size", lambda data, outputs: outputs, math.sqrt(2.0))
    assert audit_utility(heavy, bound, [0], seed=2, confidence=SURE).findings[0].lower <= math.sqrt(2.0)
    below = UtilityBound("size", lambda data, outputs: outputs, 1.0)
    assert audit_utility(heavy, below, [0], seed=2).verdict == "violated"


def test_too_few_draws_for_a_rare_failure_are_inconclusive():
    result = audit_utility(release, tail(20.0, 1e-6), [0.0], samples=1_000, seed=1)
    assert result.verdict == "inconclusive" and result.exit_status == 5
    assert result.findings[0].detectable_ratio > 1_000


def test_where_no_failure_is_allowed_one_is_enough():
    assert audit_utility(release, tail(2.0, 0.0), [0.0], seed=1).verdict == "violated"
    finding = audit_utility(lambda data, size, rng: np.full(size, data), tail(0.0, 0.0), [1.0], seed=1).findings[0]
    assert finding.verdict == "not_refuted" and finding.ratio is None and finding.detectable < 0.01
    assert audit_utility(release, mean(0.0), [0.0], seed=1).verdict == "violated"


def test_nan_and_exceptions_are_the_largest_loss():
    def fragile(data, rng):
        value = rng.random()
        if value < 0.1:
            raise ValueError("no answer")
        return math.nan if value < 0.2 else data

    bound = UtilityBound("error", lambda data, outputs: [abs(o - data) for o in outputs], 0.0, failure_probability=0.15)
    finding = audit_utility(fragile, bound, [0.0], samples=4_000, seed=1).findings[0]
    assert finding.verdict == "violated" and finding.measured == pytest.approx(0.2, abs=0.05)


@pytest.mark.parametrize(
    "bound",
    [
        UtilityBound("far", error, 10.0, failure_probability=0.05, largest_loss=lambda data: 10.0 - data),
        UtilityBound("far in the mean", error, 10.0, largest_loss=10.0),
    ],
    ids=str,
)
def test_a_limit_that_no_output_can_exceed_says_nothing(bound):
    # Not even of an output that ignores the data, which any test would let pass.
    result = audit_utility(lambda data, size, rng: np.full(size, 5.0), bound, [0.0, 5.0], seed=1)
    assert result.verdict == "inconclusive" and all(f.says_nothing for f in result.findings)
    again = dpaudit.UtilityResult.from_dict(json.loads(result.to_text()))
    assert [f.says_nothing for f in again.findings] == [True, True]


def test_the_largest_loss_is_found_over_the_outcomes_of_a_mechanism_that_lists_them():
    one_of_four = RandomisedResponse(1.0, 4)
    truth = UtilityBound("distance", lambda data, outputs: np.abs(outputs - data), 2.0, failure_probability=0.99)
    found = {f.data: f.says_nothing for f in audit_utility(one_of_four, truth, [0, 1, 2, 3], seed=1).findings}
    assert found == {0: False, 1: True, 2: True, 3: False}  # 3 is two from 1, and three from 0
    # Without bounds there is no list of outcomes, and no largest loss.
    assert not audit_utility(Geometric(1.0), truth, [0], seed=1).findings[0].says_nothing


def test_the_search_finds_the_worst_input():
    def biased(data, size, rng):
        return data + (data > 700) * 3.0 + rng.laplace(size=size)

    bound = UtilityBound("error", error, 1.05, search=st.integers(0, 1_000))
    result = audit_utility(biased, bound, [0], seed=1, samples=2_000, examples=40)
    found = [finding for finding in result.findings if finding.found_by_search]
    assert 1 <= len(found) <= 3 and all(finding.data > 700 for finding in found)
    assert result.verdict == "violated" and result.findings[0].verdict != "violated"
    assert result.findings[0].error_share == pytest.approx(0.05 / 4)  # one given, and three that a search may find
    assert result.samples == 2_000 * len(result.findings) + 40 * 500


def test_every_call_has_draws_of_its_own():
    # Of the search too: an input that it chose for its losses is tested on losses that it has not seen.
    seen = []

    def noted(data, size, rng):
        seen.append(float(rng.random()))
        return data + rng.laplace(size=size)

    bounds = [UtilityBound(name, error, 1.0, search=st.integers(0, 50)) for name in ("one", "other")]
    result = audit_utility(noted, bounds, [0, 60], seed=1, samples=100, examples=10, search_samples=100)
    searched = 2 * 10
    assert len(seen) == searched + 12 * len(result.findings) and len(result.findings) > 6
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("inputs", [[0.0], [0.0, 1.0, 2.0]])
def test_a_finding_spends_its_share_once_most_of_it_on_the_verdict(inputs):
    bounds = [tail(1.0, 0.3), mean(1.0, largest_loss=100.0)]
    result = audit_utility(release, bounds, inputs, seed=1, samples=500)
    share = 0.05 / (2 * len(inputs))
    for finding in result.findings:
        assert finding.error_share == pytest.approx(share, rel=1e-12)
        if finding.kind == "tail":
            above = round(500 * finding.measured)
            # Clopper-Pearson: the parameters at which the tail has just the level.
            assert stats.binom.sf(above - 1, 500, finding.lower) == pytest.approx(0.8 * share, rel=1e-6)
            assert stats.binom.cdf(above, 500, finding.upper) == pytest.approx(0.2 * share, rel=1e-6)
            assert finding.p_value == pytest.approx(stats.binom.sf(above - 1, 500, 0.3), rel=1e-9, abs=0.0)
    position = len(inputs)  # the first finding of the second bound
    losses = error(0.0, release(0.0, 500, stream(1, UTILITY_DRAWS, 1, 0, 0)))
    finding = result.findings[position]
    assert finding.measured == losses.mean()
    assert finding.lower == means.mean_lower(losses, 0.8 * share, means.stakes(500, 0.8 * share))
    assert finding.upper == means.mean_upper(losses, 0.2 * share, means.stakes(500, 0.2 * share), 100.0, None)


def test_the_search_goes_on_where_some_losses_are_infinite():
    def fragile(data, size, rng):
        return np.where(rng.random(size) < 0.1, math.nan, data + rng.laplace(size=size))

    for failures in (0.1, 0.05, None):  # 0.1: the quantile lies between the finite losses and the infinite ones
        bound = UtilityBound("error", error, 1.0, failure_probability=failures, search=st.floats(0.0, 1.0))
        result = audit_utility(fragile, bound, [0.0], seed=1, samples=1_000, examples=20)
        assert result.verdict == "violated" and any(finding.found_by_search for finding in result.findings)


def test_a_bound_far_above_every_loss_is_not_refuted_however_many_draws_there_are():
    # The log wealth of so many losses near 0, at such a confidence, is below -709: its inverse would overflow.
    bound = UtilityBound("error", lambda data, outputs: np.full(len(outputs), 1e-9), 1.0)
    finding = audit_utility(
        lambda data, size, rng: np.zeros(size), bound, [0.0], samples=700_000, seed=1, confidence=SURE
    ).findings[0]
    assert finding.verdict == "not_refuted" and finding.p_value == 1.0


def test_the_same_seed_gives_the_same_result():
    bound = tail(3.0, 0.05, search=st.floats(-5.0, 5.0))
    first, again = (audit_utility(release, bound, [0.0], seed=9, samples=500).to_dict() for _ in range(2))
    for record in (first, again):
        del record["seconds"]
    assert first == again
    assert audit_utility(release, bound, [0.0], seed=10, samples=500).to_dict()["findings"] != first["findings"]


def test_the_saved_form_follows_its_schema(tmp_path):
    schema = json.loads((resources.files("dpaudit") / "schemas" / "utility-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    bounds = [tail(2.0, 0.0), mean(1.0), UtilityBound("broken", lambda d, o: 1 / 0, 1.0)]
    result = audit_utility(release, bounds, [0.0, np.array(1.0)], seed=1, samples=100)
    result.save(tmp_path / "utility.json")
    record = json.loads((tmp_path / "utility.json").read_text())
    jsonschema.validate(record, schema)
    assert {entry["verdict"] for entry in record["findings"]} >= {"violated", "error"}
    assert record["findings"][0]["ratio"] is None and record["findings"][2]["upper"] == "inf"
    record["findings"][0]["verdict"] = "private"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(record, schema)


test_a_mistake_gets_one_clear_line = refusals(
    (lambda: UtilityBound("", error, 1.0), "name must"),
    (lambda: UtilityBound("e", None, 1.0), "loss must"),
    (lambda: mean(-1.0), "bound must"),
    (lambda: mean(math.nan), "bound must"),
    (lambda: tail(1.0, 1.0), "failure_probability must"),
    (lambda: mean(1.0, largest_loss=math.inf), "largest_loss must"),
    (lambda: audit_utility(release, []), "bounds must"),
    (lambda: audit_utility(release), "bounds must"),
    (lambda: audit_utility(release, [mean(1.0), mean(2.0)]), "unique names, got 'mean error' 2 times"),
    (lambda: audit_utility(release, mean(1.0)), "inputs must"),
    (lambda: audit_utility(release, mean(1.0), [0.0], samples=5), "samples must"),
    (lambda: audit_utility(release, mean(1.0), [0.0], confidence=1.0), "confidence must"),
    (lambda: audit_utility(release, mean(1.0), [0.0], seed=-1), "seed must"),
    (lambda: audit_utility(release, mean(1.0, search=[1, 2]), [0.0]), "search must"),
    (lambda: audit_utility(release, mean(1.0, search=st.nothing()), [0.0]), "search must"),
)


@pytest.mark.parametrize(
    ("bound", "message"),
    [
        (UtilityBound("e", lambda d, o: o - d - 50.0, 1.0), "loss must be non-negative, got -"),
        (UtilityBound("e", lambda d, o: 1.0, 1.0), r"loss must return one number an output, shape \(100,\), got shape"),
        (UtilityBound("e", lambda d, o: ["x"] * 100, 1.0), "loss must return numbers, got could not convert"),
        (mean(1.0, largest_loss=0.5), "largest_loss must be at least every loss, got 0.5 below"),
        (UtilityBound("e", error, lambda data: -1.0), r"bound must be in \[0, inf\), from the bound 'e', got -1.0"),
    ],
)
def test_a_loss_that_is_none_is_an_error_of_its_finding(bound, message):
    result = audit_utility(release, bound, [0.0], samples=100, seed=1)
    assert result.verdict == "error" and result.exit_status == 3
    assert re.search(message, result.findings[0].message)
    assert result.samples == (0 if callable(bound.bound) else 100)  # runs that were made, whatever came of them


def test_a_largest_loss_does_not_bound_that_of_runs_that_raise():
    def sometimes(data, rng):
        if rng.random() < 0.5:
            raise KeyError("gone")
        return data

    result = audit_utility(sometimes, mean(1.0, largest_loss=5.0), [0.0], samples=100, seed=1)
    assert result.verdict == "error"
    assert "largest_loss must not be given where runs raise, whose loss is infinite, got 5.0 and " in (
        result.findings[0].message
    )


def test_a_mechanism_that_always_raises_is_an_error():
    def broken(data, rng):
        raise KeyError("gone")

    result = audit_utility(broken, mean(1.0), [0.0], samples=20, seed=1)
    assert result.verdict == "error" and "must return an output, got KeyError" in result.findings[0].message


def shared(data, size, rng):
    """Laplace noise that a call draws once: the mean error of one output is 1."""
    return np.full(size, data + rng.laplace())


def partly_shared(data, size, rng):
    """An error of 1 in 5% of the outputs of nine of ten calls, and in half of those of a tenth."""
    return data + (rng.random(size) < (0.5 if rng.random() < 0.1 else 0.05))


class Remembering:
    """Laplace noise that is drawn once for all."""

    noise = None

    def __call__(self, data, rng):
        self.noise = rng.laplace() if self.noise is None else self.noise
        return data + self.noise


@pytest.mark.parametrize("mechanism", [shared, partly_shared, Remembering()])
def test_draws_that_depend_on_each_other_have_no_limits_and_no_verdict(mechanism):
    # Mean errors of 1, .095 and 1. Of 20,000 draws of one call a bound of the mean of .5 is broken, and one of 2 kept.
    # A change is said of independent draws with probability 2e-9.
    for bound in (mean(0.5), mean(2.0), tail(0.9, 0.5)):
        result = audit_utility(mechanism, bound, [0.0], seed=3)
        (finding,) = result.findings
        assert (finding.verdict, finding.lower, finding.upper) == ("inconclusive", 0.0, math.inf)
        assert finding.message.startswith(("Draws depend on each other: ", "Noise is kept, or"))
        assert utility_sentence(result, finding) == finding.message


def test_calls_that_write_into_one_array_are_read_one_by_one():
    buffer = np.empty(100)

    def reused(data, size, rng):
        buffer[:size] = release(data, size, rng)
        return buffer[:size]

    first, second = (audit_utility(one, mean(1.0), [0.0], seed=1).findings[0] for one in (reused, release))
    assert first == second
