"""Audits of pools from outside: findings of every pair, the statement not trusted, replays, modes, claims and options.

Statistical assertions, with their false-positive rates: a verdict "violated" of what keeps its claim has probability at
most 1 - confidence, here `SURE`, at each place; each violation that is asserted is found with seeds that are fixed, and
with a probability near 1 by the margins stated there.
"""

import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy import stats

import dpaudit
from dpaudit import ApproxDP, GaussianDP, MetricDP, PureDP, RenyiDP, UsageError, ZeroConcentratedDP
from dpaudit.reports import brief, terminal
from dpaudit.reports.brief import replay_blocks
from dpaudit_mechanisms.faulty.laplace import LaplaceTooLittleNoise
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace

SURE = 1.0 - 1e-9
POINTS = [0.0, 1.0, 2.0, 3.0]
DISTANCE = MetricDP(lambda x, y: abs(x - y))
TWO = ((0.0, 1.0), (2.0, 3.0))


class Leaks:
    """A translation family that releases its input as it is, a number or a vector."""

    translation_family = True

    def sample(self, data, size, rng):
        return np.broadcast_to(np.asarray(data), (size, *np.shape(data))).copy()


class OneBug(Laplace):
    """Laplace noise of scale 1, but 8.0 reports as 7.0: no translation family, whatever it says."""

    def sample(self, data, size, rng):
        return super().sample(data - (data == 8.0), size, rng)

    def log_density(self, data, outputs):
        return None


class Response:
    """Randomised response between 0 and 1, or 2 and 5, as its input is: a loss of 1, and no translation family."""

    translation_family = True

    def sample(self, data, size, rng):
        kept = rng.random(size) < math.e / (1.0 + math.e)
        base = 2.0 * (data >= 2.0)
        return base + (1.0 + base) * np.where(kept, data - base, 1.0 - data + base)


class Raising(Leaks):
    """Raises on every call for inputs of at least 10."""

    def sample(self, data, size, rng):
        if data >= 10.0:
            raise ValueError("too large")
        return super().sample(data, size, rng)


def audited(mechanism, claim=DISTANCE, pairs=None, **options):
    pairs = dpaudit.all_pairs(POINTS) if pairs is None else pairs
    return dpaudit.audit(mechanism, claim, pairs, **{"samples": 400, "seed": 1, "floating_point": False, **options})


@functools.cache
def too_little(pool, mode="sequential", seed=1):
    claim = MetricDP(lambda x, y: 0.5 * abs(x - y))
    return audited(LaplaceTooLittleNoise(0.5), claim, samples=1_000, pool=pool, mode=mode, seed=seed)


# --- findings ---


def test_every_pair_has_the_finding_of_its_pool_under_its_own_name():
    result = too_little(None)
    assert [finding.id for finding in result.findings] == [pair.id for pair in dpaudit.all_pairs(POINTS)]
    assert [finding.pool for finding in result.findings] == [
        "0.0|1.0",
        "0.0|2.0",
        None,
        "0.0|1.0",
        "0.0|2.0",
        "0.0|1.0",
    ]
    assert result.options["pool"] is None and result.options["pools"] == 2
    for finding in result.findings:
        head = next(other for other in result.findings if other.id == (finding.pool or finding.id))
        for name in ("verdict", "epsilon_lower", "parameter_lower", "log_wealth", "samples", "error_share"):
            assert getattr(finding, name) == getattr(head, name)
        of_one_pair = {"by_mass": (), "samples_needed": None}  # of the pair that was tested least well alone
        assert dataclasses.replace(finding.power, **of_one_pair) == dataclasses.replace(head.power, **of_one_pair)
        assert abs(finding.x - finding.x_prime) == pytest.approx(finding.parameter_budget / 0.5)
        assert ("less the location of x" in finding.witness.description) == (finding.pool is not None)
    assert sum(f.error_share for f in result.findings if f.pool in (None, f.id)) == pytest.approx(0.05)


def test_the_draws_of_all_inputs_serve_a_pool_and_no_more_runs_are_taken():
    pooled, plain = (audited(Laplace(1.0), samples=1_000, mode="fixed", pool=pool) for pool in (True, False))
    labelled = {finding.pool: finding.samples for finding in pooled.findings}
    assert {finding.samples for finding in plain.findings} == {2_000}
    assert labelled == {"0.0|1.0": 3_000, "0.0|2.0": 4_000, None: 2_000}  # three members of which two share an input
    # Runs: 4 inputs, 1,000 each, and the coins' deviations. 6 standard deviations of a sum of binomials: 1e-8 each.
    for result in (pooled, plain):
        assert abs(result.samples - 4_000) < 6 * math.sqrt(4 * 2_000 / 4) + 200


@pytest.mark.parametrize("mode", ["sequential", "adaptive", "fixed"])
def test_a_leak_is_found_in_every_mode(mode):
    result = audited(Leaks(), mode=mode)
    assert len(result.violated) == 6 and all(finding.witness.wrong == 0 for finding in result.findings)


@pytest.mark.parametrize(
    "claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0), RenyiDP(2.0, 0.5), ZeroConcentratedDP(0.5)], ids=str
)
def test_every_claim_is_pooled_and_replayed_pair_by_pair(claim, tmp_path):
    result = audited(Leaks(), claim, TWO)
    assert {finding.pool for finding in result.findings} == {"0.0|1.0"} and len(result.violated) == 2
    result.save(tmp_path / "audit.json")
    loaded = dpaudit.load(tmp_path / "audit.json")
    for pair in ("0.0|1.0", "2.0|3.0"):
        again = dpaudit.replay(loaded, Leaks(), claim, pair=pair, seed=2)
        assert again.confirmed and again.pool == "0.0|1.0" and again.wrong == 0


@pytest.mark.parametrize(
    ("mechanism", "claim", "pairs"),
    [
        (Geometric(1.0), PureDP(1.0), [(0, 1), (5, 6), (-3, -2)]),
        (Laplace(1.0, (1.0, 1.0)), PureDP(1.0), [([0.0, 0.0], [1.0, 1.0]), ([4.0, 0.0], [5.0, 1.0])]),
        (Gaussian(GaussianDP(1.0)), GaussianDP(1.0), TWO),
        (Gaussian(ZeroConcentratedDP(0.5)), ZeroConcentratedDP(0.5), TWO),
    ],
    ids=["geometric", "vectors", "mu", "rho"],
)
def test_what_keeps_its_claim_is_not_accused_and_its_density_is_a_hint(mechanism, claim, pairs):
    result = audited(mechanism, claim, pairs, confidence=SURE, samples=300, mode="fixed")
    assert result.options["pools"] == 1 and not result.violated
    # against a fifth of the claim: the hint is the witness, and integers are read as integers
    fifth = claim.with_value(claim.value / 5.0)
    small = audited(mechanism, fifth, pairs, samples=1_500, mode="fixed")
    assert len(small.violated) == len(pairs)
    again = dpaudit.replay(small, mechanism, fifth, pair=small.findings[-1].id, seed=4)
    assert again.confirmed


def test_without_shared_shifts_nothing_changes():
    pairs = [(0.0, 1.0), (0.0, 3.0)]
    pooled, plain = (audited(Laplace(1.0), DISTANCE, pairs, pool=pool) for pool in (None, False))
    assert pooled.findings == plain.findings and "pools" not in pooled.options


def test_a_pair_of_which_every_call_raises_is_an_error_and_the_others_stand():
    result = audited(Raising(), PureDP(1.0), [(0.0, 1.0), (2.0, 3.0), (10.0, 11.0)])
    assert [finding.verdict for finding in result.findings] == ["violated", "violated", "error"]
    broken = result.findings[2]
    assert broken.pool == "0.0|1.0" and "ValueError: too large in " in broken.message
    assert broken.witness is None and broken.id == "10.0|11.0"


# --- the statement is not trusted ---


def test_one_bug_is_diluted_in_a_pool_found_sooner_without_and_named_by_a_replay():
    # Six pairs of shift 1; that of 8.0 has a loss of 2 over the claim of 1, and the mixture of all six one of at most
    # log((5 + e^2 / e) / 6) over it: 0.25. A replay of another pair is "confirmed" with probability 1e-9 at most.
    pairs = [(4.0 * k, 4.0 * k + 1.0) for k in range(6)]
    options = {"samples": 2_000, "confidence": SURE}
    plain, pooled = (audited(OneBug(1.0), PureDP(1.0), pairs, pool=pool, **options) for pool in (False, None))
    assert [finding.id for finding in plain.violated] == ["8.0|9.0"]
    found = plain.violated[0]
    assert pooled.findings[2].verdict == "not_refuted" or pooled.findings[2].samples > 2 * found.samples
    replayed = {"seed": 3, "samples": 3_000}
    confirmed = [
        finding.id
        for finding in pooled.findings
        if dpaudit.replay(pooled, OneBug(1.0), PureDP(1.0), pair=finding.id, **replayed).confirmed
    ]
    assert confirmed == ["8.0|9.0"]


def test_a_false_statement_accuses_nobody_who_keeps_the_claim():
    result = audited(Response(), PureDP(1.0), TWO, confidence=SURE, samples=500)
    assert result.options["pools"] == 1 and not result.violated


# --- faces ---


def test_more_pairs_are_found_with_fewer_runs():
    # Single audits differ by luck; these ten seeds find 30 pairs and 14.
    pooled, plain = ([too_little(pool, seed=seed) for seed in range(1, 11)] for pool in (None, False))
    assert sum(len(result.violated) for result in pooled) > sum(len(result.violated) for result in plain)
    assert sum(result.samples for result in pooled) < sum(result.samples for result in plain)


def test_a_result_says_what_was_pooled_and_a_replay_that_it_asks_one_pair():
    result = audited(Leaks(), PureDP(1.0), TWO)
    assert "asked in one game with 1 other pair" in terminal.plain(brief.violation(result))
    again = dpaudit.replay(result, Leaks(), PureDP(1.0), seed=2)
    assert "asked of this pair alone" in "\n".join(line.text for line in replay_blocks(again))


def test_a_replay_needs_to_know_where_the_outputs_lie():
    result = audited(Leaks(), PureDP(1.0), TWO)
    with pytest.raises(UsageError, match="mechanism must say that it is a translation family"):
        dpaudit.replay(result, lambda data, size: np.full(size, data), PureDP(1.0))


# --- rates ---


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_false_alarms_of_a_false_statement_on_its_claim(mode):
    """`Response` is on its claim at both pairs, and so is their mixture. The same bound as above."""
    limit = int(stats.binom.isf(5e-4, 400, 0.05))
    alarms = sum(
        bool(audited(Response(), PureDP(1.0), TWO, samples=200, seed=seed, mode=mode).violated) for seed in range(400)
    )
    assert alarms <= limit
