"""The lines of pairs with claims of their own: valid for each pair's own promise, whatever the others are promised."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy import stats
from support.pair_records import BOTH, ONLY_X, ONLY_X_PRIME, EveryRecord, lines_of, record_of

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.inference.pair_lines import SIZES, PairLines, lines_at, value_grid
from dpaudit.inference.payoffs import SIZES as PAYOFF_SIZES
from dpaudit.privacy import pair_budgets
from dpaudit.privacy.claims import Claim, DirectedProfile, gaussian_profile, no_promise
from dpaudit.privacy.inputs import inputs_of
from dpaudit.privacy.pair_budgets import PairBudgets, budgets_of
from dpaudit.privacy.pairs import as_pairs

STEPS = (1.0, 2.0, 3.0)  # the pair (0, k) is k steps apart


@dataclasses.dataclass(frozen=True)
class Steps(Claim):
    """A user's class, from the members that `Claim` asks for: k steps lose 0.4 k nats, but for 0.01 k."""

    steps: float
    parameter = "steps"

    @property
    def value(self):
        return self.steps

    def with_value(self, value):
        return Steps(value)

    def __str__(self):
        return f"steps={self.steps:g}"

    @property
    def delta(self):
        return min(0.01 * self.steps, 1.0)

    def epsilon_at(self, delta):
        return 0.4 * self.steps if delta >= self.delta else np.inf

    def lines(self, values, anchor):
        return 0.4 * np.asarray(values), np.minimum(0.01 * np.asarray(values), 1.0)


class ByPair(Claim):
    """What a function of the two inputs gives."""

    parameter = "of each pair"

    def __init__(self, of_pair):
        self.of_pair = of_pair

    def for_pair(self, x, x_prime):
        return self.of_pair(abs(x_prime - x))

    @property
    def value(self):
        raise AssertionError("only claims of pairs have one")

    with_value = epsilon_at = __str__ = lambda self, *_: "by pair"


def budgets(of_pair, steps=STEPS):
    pairs = as_pairs([(0.0, step) for step in steps])
    return budgets_of(ByPair(of_pair), pairs, inputs_of(pairs))


OWN = {
    "pure": lambda k: dpaudit.PureDP(0.5 * k),
    "group": lambda k: dpaudit.ApproxDP(0.3 * k, 0.02 * k),
    "curve": Steps,
    "gaussian": lambda k: dpaudit.GaussianDP(0.5 * k),
    "renyi and pure": lambda k: dpaudit.RenyiDP(2.0, 0.3 * k) if k > 1.0 else dpaudit.PureDP(0.5),
    "profiles": lambda k: dpaudit.ProfileClaim(dpaudit.PureDP(0.5 * k).profile, name=f"{k:g} steps"),
}
ALSO_COVERED = {
    "distance": lambda k: dpaudit.ApproxDP(0.0, 0.1 * k),
    "trade-off": lambda k: dpaudit.FDP(lambda rate: stats.norm.cdf(stats.norm.isf(rate) - 0.5 * k), name=f"mu = {k:g}"),
    "profile of mu": lambda k: dpaudit.ProfileClaim(dpaudit.GaussianDP(0.5 * k).profile, name=f"mu = {k:g}"),
    "zcdp": lambda k: dpaudit.ZeroConcentratedDP(0.125 * k * k),
    "renyi": lambda k: dpaudit.RenyiDP(2.0, 0.3 * k),
}
COVERED = OWN | ALSO_COVERED


def on_budget(name, claim, k):
    """Probabilities of an event under x and x_prime that the claim of k steps just allows."""
    q = stats.norm.cdf(-0.5 * k)
    if claim.family == "renyi":
        p = np.linspace(q, 1.0 - q, 20_000)
        keeps = np.ones(len(p), dtype=bool)
        for order in claim.orders:
            most = (order - 1.0) * float(claim.renyi_epsilons(np.array([claim.value]), order)[0])
            for a, b in ((p, q), (q, p)):
                keeps &= np.log(a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order)) <= most
        return float(p[keeps][-1]), q
    if name in ("gaussian", "trade-off", "profile of mu"):
        return 0.5, q  # where the normal law of mean 0.5 k has its median, and the one of mean 0
    line = dpaudit.PureDP(0.5 * k) if name == "profiles" else claim
    epsilon, delta = (float(side[0]) for side in line.lines(np.array([line.value]), 0.0))
    keeps = (1.0 - delta) / (1.0 + np.exp(epsilon))
    return 1.0 - keeps, keeps


# Exact coverage: nothing is drawn, so no rate is spent.
@pytest.mark.parametrize("way", [BOTH, ONLY_X])
@pytest.mark.parametrize("name", sorted(COVERED))
def test_of_all_records_at_most_a_share_of_the_level_has_a_bound_above_the_truth_of_its_pair(name, way):
    level, every = 0.05, EveryRecord(40)
    steps = STEPS[:1] if name in ("trade-off", "profile of mu") else STEPS  # each is a family, and takes seconds
    promised = budgets(COVERED[name], steps)
    lines = PairLines(promised.of(np.repeat(np.arange(len(steps)), len(every))))
    record = every.of(way, level, len(steps))
    lower, epsilon_lower = (side.reshape(len(steps), len(every)) for side in lines.bounds(record))
    over = lower > promised.values[:, None]
    assert np.array_equal(over.ravel(), lines.log_p(record) <= np.log(level))
    for place, k in enumerate(steps):
        p, q = on_budget(name, COVERED[name](k), k)
        epsilon = np.log(max(p - promised.report_delta, q) / q)
        # Both bounds together, as they are said together.
        above = over[place] | (epsilon_lower[place] > epsilon)
        assert every.chances(p, q, way)[above].sum() <= level
    # The control: p = 0.99 over q = 0.01 is far from the promise of one step.
    assert every.chances(0.99, 0.01, way)[over[0]].sum() > 0.7


# The promise is of (P, Q) alone: P(S) <= e^epsilon Q(S) + delta(epsilon), that of mu = 1.
@pytest.mark.parametrize("reverse", [False, True])
def test_each_order_of_a_pair_is_tested_against_its_own_lines(reverse):
    profile = dpaudit.GaussianDP(1.0).profile
    functions = (no_promise, profile) if reverse else (profile, no_promise)
    every = EveryRecord(40)
    lines = lines_of(dpaudit.ProfileClaim(DirectedProfile(*functions)), np.ones(len(every)))

    def above(way, p, q):
        """Of a rule that guesses in one way on an event of these probabilities."""
        record = every.of(way, 0.05)
        over = lines.bounds(record)[0] > 1.0
        assert np.array_equal(over, lines.log_p(record) <= np.log(0.05))
        return every.chances(p, q, ONLY_X)[over].sum()

    promised, other = (ONLY_X_PRIME, ONLY_X) if reverse else (ONLY_X, ONLY_X_PRIME)
    assert above(promised, stats.norm.cdf(0.5), stats.norm.cdf(-0.5)) <= 0.05  # just what mu = 1 allows
    assert above(promised, 0.95, 0.01) > 0.7  # the control: it does say something of its own order,
    assert above(other, 0.95, 0.01) < 1e-5  # and nothing of the other, which is promised nothing
    assert above(BOTH, 0.95, 0.01) < 1e-5  # a rule on both events pays for the order that may lose anything


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_pair_among_others_is_judged_as_it_is_alone(name):
    """The same p-value, and a bound that is off by the distance of two points of a grid at most."""
    rng = np.random.default_rng(5)
    promised = budgets(OWN[name])
    rows = np.arange(60) % len(STEPS)
    guesses = rng.integers(20, 400, 60).astype(float)
    correct = rng.binomial(guesses.astype(int), 0.8).astype(float)
    record = record_of(correct, guesses, 400)
    together = PairLines(promised.of(rows))
    lower, _ = together.bounds(record)
    for place, k in enumerate(STEPS):
        own = np.flatnonzero(rows == place)
        alone = PairLines(PairBudgets.same(OWN[name](k), len(own)))
        if name not in ("pure", "group", "renyi and pure"):  # where all deltas are 0, no limit of the guesses is needed
            assert together.log_p(record)[own] == pytest.approx(alone.log_p(record.of(own)), rel=1e-9)
        assert lower[own] == pytest.approx(alone.bounds(record.of(own))[0], rel=0.05, abs=2e-3)
    assert len({together.line(record, pair)[1:] for pair in range(3)}) > 1 or name == "pure"


def test_every_kind_of_claim_has_the_lines_that_suit_it():
    lines = {name: PairLines(budgets(OWN[name])) for name in OWN}
    assert {name: [family.is_free for _, family in own._families] for name, own in lines.items()} == {
        "pure": [], "group": [], "curve": [False], "gaussian": [True], "renyi and pure": [True], "profiles": [True] * 3,
    }  # fmt: skip
    assert {name: len(own._own) for name, own in lines.items() if len(own._own)} == {
        "pure": 3, "group": 3, "renyi and pure": 1,
    }  # fmt: skip
    assert len(budgets(OWN["gaussian"]).families) == 1 and len(budgets(OWN["profiles"]).families) == 3
    assert budgets(OWN["group"]).report_delta == 0.06


@pytest.mark.parametrize("of_pair", [dpaudit.GaussianDP, Steps], ids=["free", "curve"])
def test_of_more_budgets_than_points_each_pair_takes_the_next_larger_point(of_pair):
    steps = np.linspace(0.5, 3.0, SIZES.max_values + 1)
    promised = budgets(of_pair, steps.tolist())
    lines, grid = PairLines(promised), value_grid(promised.values)
    record = record_of(np.full(len(steps), 300.0), 400.0, 400)
    lower, _ = lines.bounds(record)
    over = lower > promised.values
    assert np.array_equal(over, lines.log_p(record) <= np.log(0.01)) and over.any() and not over.all()
    assert np.ptp(lower) == 0.0 and lower[0] in grid  # one record, one family, one bound
    exact = PairLines(promised.of(np.arange(0, len(steps), 100)))
    of_some = exact.bounds(record.of(np.arange(0, len(steps), 100)))[0]
    assert lower[0] == pytest.approx(of_some, rel=0.025) and (lower[0] <= of_some * 1.025).all()


# --- what is refused -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Wrong(Steps):
    """Lines of a user's class that are none."""

    what: str = ""

    def with_value(self, value):
        return dataclasses.replace(self, steps=value)

    def lines(self, values, anchor):
        epsilon, delta = super().lines(values, anchor)
        return {
            "shape": (epsilon[:1], delta),
            "nan": (epsilon * np.nan, delta),
            "range": (epsilon, delta - 1.0),
            "falls": (-epsilon + epsilon.max(), delta),
        }[self.what]


@dataclasses.dataclass(frozen=True)
class WrongAnchor(dpaudit.GaussianDP):
    def lines(self, values, anchor):
        return np.full_like(values, 1.0), gaussian_profile(values, 1.0)


class Distance(Steps):
    """The total variation distance: its lines have the value itself as delta, on a grid that goes beyond 1."""

    def lines(self, values, anchor):
        del anchor
        return np.zeros_like(values), np.asarray(values, dtype=float)


def test_deltas_beyond_1_promise_nothing_and_are_no_error():
    epsilon, delta = lines_at(Distance(0.02), np.array([0.02, 0.5, 1.5, 20.0]), 0.0)
    assert epsilon.tolist() == [0.0] * 4 and delta.tolist() == [0.02, 0.5, 1.0, 1.0]


class NoLines(Steps):
    lines = Claim.lines


class NoOrders(dpaudit.ZeroConcentratedDP):
    orders = ()


@pytest.mark.parametrize(
    ("claim", "words"),
    [
        (NoLines(1.0), r"must be a family of hockey-stick lines, got steps=1 \(NoLines\)\. Define lines\(values"),
        (NoOrders(1.0), r"orders of NoOrders must be Renyi orders above 1, got none\."),
        (Wrong(1.0, "shape"), r"lines of Wrong must have an epsilon and a delta for each of \d+ values, got arrays of"),
        (Wrong(1.0, "nan"), r"must have epsilons in \[0, inf\] and deltas of at least 0, got epsilon nan and delta 0"),
        (Wrong(1.0, "range"), r"must have epsilons in \[0, inf\] and deltas of at least 0, got epsilon 0.* delta -1"),
        (Wrong(1.0, "falls"), r"must not promise more at a larger value, got epsilon"),
        (WrongAnchor(1.0), r"WrongAnchor must stand at the anchor that is asked for, got epsilon 1 .* anchor 0"),
    ],
)  # fmt: skip
def test_lines_that_are_none_are_refused(claim, words):
    with pytest.raises(UsageError, match=words):
        PairLines(PairBudgets.same(claim, 3))


def test_lines_that_fall_by_rounding_are_lines():
    claim = dpaudit.GaussianDP(1.0)
    for anchor in PAYOFF_SIZES.anchors:
        lines_at(claim, value_grid(np.array([0.0, 1e-3, 1.0, 40.0])), anchor)


class Unhashable(Steps):
    __hash__ = None


@pytest.mark.parametrize(
    ("of_pair", "words"),
    [
        (lambda k: 0.5 * k, r"for_pair must return a Claim, got 0\.5 for 0\.0\|1\.0\."),
        (lambda k: Unhashable(k), r"must return hashable claims, got .* for 0\.0\|1\.0\. Make the class a frozen"),
        (lambda k: Steps(-k), r"value of steps=-1 for 0\.0\|1\.0 must be in \[0, inf\], got -1\.0"),
        (lambda k: Steps(np.nan), r"must be in \[0, inf\], got nan"),
        (
            lambda k: Steps(k) if k > 1.0 else dpaudit.GaussianDP(k),
            r"one parameter for a table of all pairs, got mu and, for 0\.0\|2\.0, steps\. Audit these pairs apart\.",
        ),
        (
            lambda k: dpaudit.ProfileClaim(lambda epsilon: 0.1),
            r"at most 2 families for a table of all pairs, got one more for 0\.0\|3\.0\. Two claims .* frozen",
        ),
    ],
)  # fmt: skip
def test_claims_of_pairs_that_no_table_holds_are_refused(monkeypatch, of_pair, words):
    monkeypatch.setattr(pair_budgets, "MAX_FAMILIES", 2)
    with pytest.raises(UsageError, match=words):
        budgets(of_pair)


def test_a_pair_that_is_promised_nothing_is_no_family():
    nothing = {1.0: Steps(np.inf), 2.0: dpaudit.ApproxDP(1.0, 1.0), 3.0: dpaudit.GaussianDP(1.0)}
    found = budgets(nothing.get)
    assert found.asked.tolist() == [2] and found.parameter == "mu" and found.report_delta == 1e-6
    none = budgets(lambda k: dpaudit.PureDP(np.inf))
    assert not len(none.asked) and none.parameter == "epsilon"
