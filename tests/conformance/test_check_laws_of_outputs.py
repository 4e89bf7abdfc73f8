"""The checks of stated laws and of exact claims, in every family: what they refuse, and how they spend their share."""

import math
import re

import numpy as np
import pytest
from conformance_twins import Response, StatesDensity
from support.samplers import laplace

import dpaudit
from dpaudit.conformance import laws_of_outputs
from dpaudit.conformance.case import Case
from dpaudit.conformance.noise import equal_pairs
from dpaudit.conformance.outcomes import CheckFailed
from dpaudit.exact import FiniteMechanism, keeps, tempered
from dpaudit.features.outcomes import read_outputs
from dpaudit.privacy.claims import ApproxDP, GaussianDP, MetricDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.metrics import AbsoluteMetric

RATE = 1e-7


def checked(mechanism, name, **options):
    (record,) = dpaudit.check(mechanism, only=[name], seed=1, error_rate=RATE, **options).records
    return record.status, record.message


class Impossible(Response):
    """States that it never gives what it gives."""

    def distribution(self, data):
        return np.array([1.0, 0.0])


class SumsToLess(Response):
    def distribution(self, data):
        return 0.9999 * super().distribution(data)


class OfAnotherShape(Response):
    def distribution(self, data):
        return np.full(3, 1.0 / 3.0)


class DensityOfNothing(StatesDensity):
    def log_density(self, data, outputs):
        return np.where(np.arange(len(outputs)) == 3, -math.inf, super().log_density(data, outputs))


class OneDensity(StatesDensity):
    def log_density(self, data, outputs):
        return super().log_density(data, outputs)[:1]


@pytest.mark.parametrize(
    ("mechanism", "name", "message"),
    [
        (Impossible(), "distribution_fits_draws", r"outputs must be possible under distribution\(0\), got 1.0"),
        (SumsToLess(), "distribution_fits_draws", "non-negative and sum to 1, got a sum of 0.9999"),
        (OfAnotherShape(), "distribution_fits_draws", r"one probability an outcome, shape \(2,\), got \(3,\)"),
        (DensityOfNothing(), "log_density_fits_draws", "log_density must be finite on the outputs of its own input"),
        (OneDensity(), "log_density_fits_draws", r"log_density must return one number an output, shape \(10000,\)"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_law_that_is_none_is_refused(mechanism, name, message):
    status, found = checked(mechanism, name)
    assert status == "violated"
    assert re.search(message, found), found


class SumsNearlyToOne(Response):
    def distribution(self, data):
        return (1.0 + 3e-10) * super().distribution(data)


@pytest.mark.parametrize("name", ["claim_exact", "distribution_fits_draws"])
def test_a_law_whose_sum_one_check_takes_for_1_does_not_break_another(name):
    """The exact loss wants sums to within 1e-12, and the check was an error."""
    assert checked(SumsNearlyToOne(), name)[0] == "not_refuted"


def test_the_tests_of_a_stated_law_share_the_level(monkeypatch):
    case = Case(Response(), None, None, 1, 1_000, 0.01)
    tests = 2 * 2  # outcomes times inputs
    for factor, fails in ((0.99, True), (1.01, False)):
        monkeypatch.setattr(laws_of_outputs, "two_sided", lambda *_, p=factor * case.level / tests: p)
        if fails:
            with pytest.raises(CheckFailed, match="outputs must follow distribution"):
                laws_of_outputs.distribution_fits_draws(case)
        else:
            assert laws_of_outputs.distribution_fits_draws(case) is None


def test_the_bets_on_a_stated_density_share_the_level(monkeypatch):
    spent = []
    original = laws_of_outputs.means.mean_lower
    monkeypatch.setattr(
        laws_of_outputs.means,
        "mean_lower",
        lambda losses, level, fractions: spent.append(level) or original(losses, level, fractions),
    )
    case = Case(StatesDensity(), None, None, 1, 1_000, 0.01)
    laws_of_outputs.log_density_fits_draws(case)
    assert len(spent) == 4 and math.fsum(spent) == pytest.approx(case.level, rel=1e-12)


def test_runs_that_share_their_noise_are_equal_to_their_own_partner_alone():
    values = np.arange(20.0)
    within, across = equal_pairs(read_outputs(values, 20), read_outputs(values, 20))
    assert within.all() and len(within) == 10
    assert not across.any() and len(across) == 5  # each run in one comparison


ROWS = np.array([[0.9, 0.1, 0.0], [0.45, 0.3, 0.25]])  # row 1 from row 0 is worse than row 0 from row 1
FAMILIES = [PureDP(1.0), ApproxDP(0.5, 0.05), RenyiDP(3.0, 0.5), ZeroConcentratedDP(0.2), GaussianDP(0.7)]


@pytest.mark.parametrize("claim", FAMILIES, ids=str)
@pytest.mark.parametrize("pair", [(0, 1), (1, 0)])
def test_an_exact_law_is_held_against_a_claim_of_any_family_in_both_directions(claim, pair):
    rows = tempered(ROWS, claim)
    assert keeps(rows, claim)
    status, remark = checked(FiniteMechanism(rows, claim), "claim_exact", pairs=[pair])
    assert (status, remark) == ("not_refuted", "by distribution, 1 pair")
    # Tempered rows sit on their claim: nine tenths of it are broken, by the worse direction at least.
    less = claim.with_value(0.9 * claim.value)
    status, message = checked(FiniteMechanism(rows, claim), "claim_exact", claim=less, pairs=[pair])
    assert status == "violated" and message.startswith(f"pair {pair[0]}|{pair[1]} must have ")


def test_vacuous_pairs_are_not_asked_about():
    mechanism = FiniteMechanism(np.eye(2), PureDP(math.inf))
    assert checked(mechanism, "claim_exact", pairs=[(0, 1)])[0] == "skipped"


LINE = MetricDP(AbsoluteMetric(1.0))


def test_the_pairs_that_are_looked_at_have_budgets_near_one_nat():
    far = [0.01, 0.05, 0.5, 9.0, 1.0, 2.0, 30.0, 1.2, 0.0, 0.8]
    case = Case(laplace, LINE, [(0.0, end) for end in far], 1, 1_000, 0.01)
    assert [pair.x_prime for pair in case.pairs] == [1.0, 1.2, 0.8, 0.5, 2.0, 9.0]


def test_a_law_is_inconclusive_only_where_every_pair_is():
    def status(*ends):
        return checked(laplace, "law_mixture", claim=LINE, pairs=[(0.0, end) for end in ends], samples=10_000)[0]

    assert status(1.0, 12.0) == "not_refuted"
    assert status(12.0) == "inconclusive"  # at 12 nats nothing can be seen
