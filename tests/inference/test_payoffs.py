"""Bets by brute force: the mean of a factor over all extreme laws of three bins that keep the claim is at most 1."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.inference.payoffs import Inequalities, best_bets, growth
from dpaudit.inference.tables import Predicted, bins_of
from dpaudit.privacy.claims import (
    ApproxDP,
    DirectedProfile,
    GaussianDP,
    ProfileClaim,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)
from dpaudit.privacy.trade_off import FDP

LINES = {"eps": PureDP(0.7), "eps, delta": ApproxDP(0.7, 0.1), "mu": GaussianDP(0.8)}
RENYI = {"renyi": RenyiDP(2.0, 0.4), "renyi 5": RenyiDP(5.0, 0.6), "rho": ZeroConcentratedDP(0.2)}


def of_response(epsilon):
    return max(math.e - math.exp(min(epsilon, 2.0)), 0.0) / (1.0 + math.e)


def of_less(epsilon):
    return max(1.0 - math.exp(min(epsilon - 0.3, 2.0)), 0.0) / 3.0


FAMILIES = {
    **LINES,
    "profile": ProfileClaim(of_response),
    "one direction": ProfileClaim(DirectedProfile(of_response)),
    "two directions": ProfileClaim(DirectedProfile(of_response, of_less)),
    "one curve": FDP([(0.0, 0.9), (0.3, 0.3), (1.0, 0.0)], ordered=True),
    "add and remove": FDP(
        add=[(0.0, 0.9), (0.3, 0.3), (1.0, 0.0)], remove=[(0.0, 1.0), (0.6, 0.2), (1.0, 0.0)]
    ).for_pair((1,), ()),
    **RENYI,
}
TABLES = {
    "a leak both ways": Predicted(np.array([0.9, 0.5, 0.12]), np.array([0.3, 0.5, 0.2])),
    "a leak of one side": Predicted(np.array([0.98, 0.45, 0.49]), np.array([0.05, 0.75, 0.2])),
    "all but sure": Predicted(np.array([1.0 - 1e-6, 0.5, 1e-6]), np.array([0.2, 0.6, 0.2])),
    "rare": Predicted(np.array([0.99, 0.499, 0.5]), np.array([1e-4, 0.5, 0.4999])),
    "nothing": Predicted(np.array([0.51, 0.5, 0.49]), np.array([0.3, 0.4, 0.3])),
}


def corners(parts=12):
    """All pairs of distributions on three bins in twelfths, shape (pairs, 2, 3)."""
    laws = np.array([(a, b, parts - a - b) for a in range(parts + 1) for b in range(parts + 1 - a)]) / parts
    first, second = np.indices((len(laws), len(laws))).reshape(2, -1)
    return np.stack([laws[first], laws[second]], axis=1)


def are_kept(inequalities, value, laws):
    """Whether pairs of distributions keep the moments of all orders that bets are made on."""
    kept = np.ones(len(laws), dtype=bool)
    for order, (p, q) in enumerate([(laws[:, 0], laws[:, 1]), (laws[:, 1], laws[:, 0])]):
        for alpha, exponent in zip(inequalities.claim.orders, inequalities.renyi_exponents(value)[order], strict=True):
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                moment = np.where(p > 0.0, p * (p / q) ** (alpha - 1.0), 0.0).sum(axis=1)
            kept &= moment <= math.exp(exponent)
    return kept


def extreme(inequalities, value):
    """Laws on the claim: from equal ones towards all corners, as far as they keep it (which is a convex set)."""
    ends = corners()
    middle = ends.mean(axis=1, keepdims=True)
    low, high = np.zeros(len(ends)), np.ones(len(ends))
    whole = are_kept(inequalities, value, ends)
    for _ in range(45):
        t = 0.5 * (low + high)
        kept = are_kept(inequalities, value, middle + t[:, None, None] * (ends - middle))
        low, high = np.where(kept, t, low), np.where(kept, high, t)
    return middle + np.where(whole, 1.0, low)[:, None, None] * (ends - middle)


@pytest.mark.parametrize("name", RENYI)
def test_factors_have_a_mean_of_at_most_1_under_every_law_that_keeps_a_renyi_claim(name):
    """Whatever is predicted; and where a leak is, close to 1: the inequalities are used up."""
    claim = RENYI[name]
    inequalities = Inequalities(claim)
    laws = extreme(inequalities, claim.value)
    largest = {}
    for kind, table in TABLES.items():
        first, second = best_bets(inequalities, claim.value, table).factors(claim.value)
        assert first.min() >= 0.0 and second.min() >= 0.0
        means = 0.5 * (laws[:, 0] @ first + laws[:, 1] @ second)
        assert means.max() <= 1.0 + 1e-9
        largest[kind] = means.max(), max(np.ptp(first), np.ptp(second))
    top, staked = largest["a leak both ways"]
    assert staked > 0.05 and top > 0.97


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in RENYI])
def test_the_largest_mean_of_lines_is_at_most_1_by_linear_programming(name, kind):
    """Over all laws at once: events of three bins and all anchors are linear constraints; near 1 where a leak is."""
    claim = FAMILIES[name]
    inequalities = Inequalities(claim)
    first, second = best_bets(inequalities, claim.value, TABLES[kind]).factors(claim.value)
    rows, bounds = [], []
    epsilons, deltas = inequalities.lines(claim.value)
    for event in itertools.product([0.0, 1.0], repeat=3):
        for epsilon, delta in zip(epsilons[0], deltas[0], strict=True):
            rows.append([*event, *(-math.exp(epsilon) * e for e in event)])
            bounds.append(delta)
        for epsilon, delta in zip(epsilons[1], deltas[1], strict=True):
            rows.append([*(-math.exp(epsilon) * e for e in event), *event])
            bounds.append(delta)
    found = optimize.linprog(
        -0.5 * np.concatenate([first, second]), A_ub=np.array(rows), b_ub=bounds,
        A_eq=np.kron(np.eye(2), np.ones(3)), b_eq=[1.0, 1.0], bounds=(0.0, 1.0),
    )  # fmt: skip
    assert found.success and -found.fun <= 1.0 + 1e-7  # the solver's tolerance
    if kind == "a leak both ways":
        assert max(np.ptp(first), np.ptp(second)) > 0.05 and -found.fun > 0.97


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", FAMILIES)
def test_bets_that_are_held_fixed_win_less_against_larger_values(name, kind):
    claim = FAMILIES[name]
    inequalities = Inequalities(claim)
    bets = best_bets(inequalities, claim.value, TABLES[kind])
    values = claim.value * np.array([0.1, 0.5, 0.9, 0.999, 1.0, 1.001, 1.1, 2.0])
    factors = np.stack([np.concatenate(bets.factors(value)) for value in values])
    assert np.all(np.diff(factors, axis=0) <= 1e-12)
    if kind == "a leak both ways":
        assert factors[0].sum() > factors[-1].sum()


def test_the_best_bets_on_one_line_are_likelihood_ratios_to_the_nearest_law():
    claim, table = PureDP(0.7), TABLES["a leak both ways"]
    first, second = best_bets(Inequalities(claim), 0.7, table).factors(0.7)
    limit = 1.0 / (1.0 + math.exp(-0.7))
    nearest = np.clip(table.q, 1.0 - limit, limit)
    assert first == pytest.approx(table.q / nearest) and second == pytest.approx((1.0 - table.q) / (1.0 - nearest))


@pytest.mark.parametrize("name", FAMILIES)
def test_no_bets_grow_where_what_is_predicted_keeps_the_claim_and_they_do_where_it_does_not(name):
    claim = FAMILIES[name]
    inequalities = Inequalities(claim)
    grown = {kind: growth(table, *best_bets(inequalities, claim.value, table).factors(claim.value))
             for kind, table in TABLES.items()}  # fmt: skip
    assert abs(grown["nothing"]) < 1e-7 and grown["a leak both ways"] > 0.01
    assert min(grown.values()) > -1e-7  # each bin of which nothing is known has a mass of 1e-6, and is bet on


@pytest.mark.parametrize("kind", ["a shift of normal noise", "an event of mass .03"])
@pytest.mark.parametrize("name", ["mu", "rho"])
def test_a_portfolio_grows_as_much_as_the_best_weights_of_single_bets(name, kind):
    """Of one line each, or of one order each, whose weights a general optimiser finds."""
    if kind == "a shift of normal noise":
        points = 1.2 * np.concatenate([stats.norm.isf(np.linspace(1e-4, 1.0 - 1e-4, 4_000)) + s for s in (0.6, -0.6)])
        table = Predicted.of(special.expit(points))
    else:
        table = Predicted.of(np.repeat([0.999, 0.5, 0.001], [30, 1_940, 30]))
    claim = LINES["mu"] if name == "mu" else RENYI["rho"]
    if name == "mu":
        single = [ApproxDP(epsilon, float(claim.profile(epsilon))) for epsilon in PAYOFF_SIZES.anchors]
    else:
        single = [RenyiDP(order, float(claim.renyi_epsilons(np.array([claim.value]), order)[0]))
                  for order in claim.orders]  # fmt: skip
    bets = [np.concatenate(best_bets(Inequalities(one), one.value, table).factors(one.value)) for one in single]
    gains = np.array(bets) - 1.0
    shares = np.concatenate([table.mass * table.q, table.mass * (1.0 - table.q)])
    found = optimize.minimize(
        lambda w: -1e3 * float(shares @ np.log1p(w @ gains)), np.full(len(gains), 0.5 / len(gains)),
        jac=lambda w: -1e3 * gains @ (shares / (1.0 + w @ gains)), method="SLSQP", bounds=[(0.0, 1.0)] * len(gains),
        constraints={"type": "ineq", "fun": lambda w: 0.999 - w.sum(), "jac": lambda w: -np.ones_like(w)},
    )  # fmt: skip
    grown = growth(table, *best_bets(Inequalities(claim), claim.value, table).factors(claim.value))
    assert found.success and -1e-3 * found.fun > 1e-4 and grown > 0.99 * -1e-3 * found.fun


@pytest.mark.parametrize("name", FAMILIES)
def test_a_choice_among_bets_is_made_on_bins_and_pays_cells_of_one_bin_alike(name):
    """A stake on each cell, without a choice, is that of the cell itself; either grows about as on cells alone."""
    claim, rng = FAMILIES[name], np.random.default_rng(4)
    q = 1.0 / (1.0 + np.exp(-rng.normal(scale=1.5, size=600)))
    cells = Predicted(q, np.full(600, 1.0 / 600))
    factors = best_bets(Inequalities(claim), claim.value, cells).factors(claim.value)
    bins = bins_of(q)
    alike = [np.ptp(factors[0][bins == k]) < 1e-12 for k in np.unique(bins) if (bins == k).sum() > 5]
    assert all(alike) if name != "eps" else not all(alike)
    by_bins = cells.by_bins()
    in_bins = growth(by_bins, *best_bets(Inequalities(claim), claim.value, by_bins).factors(claim.value))
    assert growth(cells, *factors) == pytest.approx(in_bins, rel=0.03)


def test_the_bet_that_a_witness_names_moves_wealth():
    """Stakes on a bin that no draw is predicted to reach cost nothing without a delta, and may have most weight."""
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.58, 0.19, 0.23])

    def profile(first, second, share):
        return lambda epsilon: share * float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())

    claim = ProfileClaim(DirectedProfile(profile(p, q, 0.6), profile(q, p, 2.0)))
    predicted = Predicted(np.append(p / (p + q), 0.9), np.append((p + q) / 2.0, 1e-12))
    bets = best_bets(Inequalities(claim), 1.0 + 1e-9, predicted)
    assert bets.at[bets.weights.argmax()] != 0
    assert bets.strongest == 0
