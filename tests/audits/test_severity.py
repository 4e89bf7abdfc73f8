"""How bad a violation is: the stage behind the verdict, its validity, what it costs, and where there is none."""

import math

import numpy as np
import pytest
from scipy import stats
from support.samplers import normal, released

import dpaudit
from dpaudit.audits import severity, stages
from dpaudit.inference.bound_search import just_above

PAIR = [(0.0, 1.0)]


def response(loss):
    """Randomised response between 0 and 1: its loss is exact."""

    def sample(data, size, rng):
        kept = rng.random(size) < math.exp(loss) / (1.0 + math.exp(loss))
        return np.where(kept, data, 1.0 - data)

    return sample


def audited(mechanism, claim="eps=1", pairs=PAIR, **options):
    return dpaudit.audit(mechanism, claim, pairs, **{"samples": 20_000, "seed": 1, "floating_point": False, **options})


@pytest.mark.parametrize(("true", "audits"), [(3.0, 60), pytest.param(1.3, 300, marks=pytest.mark.slow)])
def test_bounds_behind_a_violation_exceed_the_truth_no_more_often_than_the_level(true, audits):
    """At confidence 0.9 each bound is above the truth with probability 0.1 at most: more than `most` with 1e-6."""
    most = int(stats.binom.isf(1e-6, audits, 0.1))
    results = [
        audited(response(true), samples=1_500, seed=seed, confidence=0.9, inconclusive_factor=100.0)
        for seed in range(audits)
    ]
    above = sum(result.epsilon_lower > true for result in results)
    assert above <= most
    # And it is not a constant: the stage is there, and its bounds are of different draws, of which 100 have few counts.
    found = [result.findings[0].severity for result in results if result.verdict == "violated"]
    assert len(found) > audits // 2 and all(one is not None for one in found)
    assert len({one.parameter_lower for one in found}) > 5


def of_parity(data, size, rng):
    return response(3.0)(data % 2.0, size, rng)


@pytest.mark.parametrize(
    ("mechanism", "claim", "pairs", "true"),
    [
        (normal, "mu=0.3", PAIR, 1.0),
        pytest.param(of_parity, "eps=1", [(2.0 * k, 2.0 * k + 1.0) for k in range(10)], 3.0, marks=pytest.mark.slow),
    ],
    ids=["mu", "more pairs than are examined"],
)
def test_no_bound_of_a_call_exceeds_its_truth_more_often_than_the_error_rate(mechanism, claim, pairs, true):
    """P(some bound of a call is above the truth) is at most 0.1: more than `most` of the calls with 1e-6 at most."""
    calls = 30
    most = int(stats.binom.isf(1e-6, calls, 0.1))
    above = examined = 0
    for seed in range(calls):
        result = audited(mechanism, claim, pairs, samples=1_500, seed=seed, confidence=0.9, pool=False)
        above += any(finding.parameter_lower > true for finding in result.findings)
        examined += sum(finding.severity is not None for finding in result.findings)
    assert above <= most
    assert examined >= calls // 2 * min(len(pairs), stages.STAGE_PAIRS)


@pytest.mark.parametrize(("asked", "least"), [(None, 6.4), (True, 8.7)])
def test_a_bound_is_worth_printing_where_the_loss_is_large(asked, least):
    """The truth is infinite: n right guesses of n give log(n / log(20)), where the proof gave little above 1."""
    result = audited(released, severity=asked)
    finding = result.findings[0]
    assert finding.severity.samples == 2 * severity.draws_of(finding.samples, 20_000, bool(asked))
    assert finding.parameter_lower == finding.epsilon_lower == finding.severity.parameter_lower > least
    assert finding.ratio_lower == finding.parameter_lower
    without = audited(released, severity=False)
    assert without.findings[0].severity is None and without.epsilon_lower < 2.0
    # Nothing but the stage is drawn behind so early a proof: its draws serve as small batches too.
    assert result.samples == without.samples + finding.severity.samples


def test_noise_that_batches_share_is_told_by_a_short_stage():
    def shared(data, size, rng):
        return np.full(size, data + rng.laplace(scale=0.05))

    def of_two_values(data, size, rng):
        return np.full(size, data + 5.0 * rng.integers(2))

    for mechanism in (shared, of_two_values):
        result = audited(mechanism)
        assert result.verdict != "violated" and any("depend" in note for note in result.findings[0].notes)


@pytest.mark.parametrize("claim", ["eps=1,delta=0.01", "mu=1", "rho=0.5", "order=2,rdp=0.5"])
def test_every_claim_has_a_stage_in_its_own_parameter(claim):
    first, second = (audited(released, claim, severity=flag).findings[0] for flag in (True, False))
    assert first.severity is not None and second.severity is None
    assert first.parameter_lower >= first.parameter_budget and first.ratio_lower > second.ratio_lower
    if not claim.startswith("eps"):
        assert first.epsilon_lower == second.epsilon_lower  # it keeps that of the audit, which has paid for it


def test_the_verdict_and_the_draws_behind_it_do_not_depend_on_the_stage():
    first, second = (audited(response(2.0), severity=flag).findings[0] for flag in (True, False))
    assert (first.verdict, first.samples, first.log_wealth) == (second.verdict, second.samples, second.log_wealth)
    assert first.witness == second.witness and first.looks == second.looks


def test_nothing_is_drawn_where_nothing_is_violated_or_the_bound_has_all_draws():
    for options in ({"mode": "fixed"}, {"claim": "eps=9"}):
        first, second = (audited(response(2.0), severity=flag, **options) for flag in (True, False))
        assert first.samples == second.samples
        assert first.findings[0].severity is None


def test_only_the_clearest_pairs_have_a_stage(monkeypatch):
    monkeypatch.setattr(stages, "STAGE_PAIRS", 2)
    result = audited(released, pairs=[(float(k), float(k + 1)) for k in range(4)])
    assert len(result.violated) == 4
    assert sum(finding.severity is not None for finding in result.findings) == 2


def test_calls_that_raise_in_the_stage_leave_the_verdict():
    class Breaks:
        def __init__(self):
            self.left = 120

        def sample(self, data, size, rng):
            self.left -= size
            if self.left < 0:
                raise RuntimeError("no more")
            return np.full(size, float(data))

    result = audited(Breaks(), samples=150)
    assert result.verdict == "violated" and result.findings[0].severity is None


def test_same_seed_same_bits_whatever_the_workers():
    first, second = (audited(response(2.0), jobs=jobs) for jobs in (1, 2))
    assert first.findings == second.findings


def test_where_no_draws_remain_no_more_is_said_than_that_the_budget_is_exceeded():
    result = audited(released, samples=40)
    (finding,) = result.findings
    assert result.verdict == "violated" and finding.severity is None
    assert finding.parameter_lower == finding.epsilon_lower == just_above(1.0)
    assert "ε above 1 nats" in str(result) and "would have been found" not in str(result)


@pytest.mark.parametrize(("draws", "expected"), [(50, 5), (320, 5), (500, 7), (1_000, 15), (6_400, 100)])
def test_batches_of_a_stage_are_small(draws, expected):
    assert severity.batch_of(draws) == expected
