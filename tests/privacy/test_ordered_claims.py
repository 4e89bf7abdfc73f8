"""One-directional claims: which order each inequality bounds, against exact laws and every event of small ones.

Nothing here is drawn at random but laws by hypothesis; every comparison is exact up to the rounding that it states.
"""

import copy
import dataclasses
import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpaudit
from dpaudit import FDP, ApproxDP, GaussianDP, ProfileClaim, PureDP, RenyiDP, UsageError
from dpaudit.audits.searching import line_of
from dpaudit.exact.keeping import keeps, tempered, trade_off_corners
from dpaudit.exact.response import event_mass_of, loss_on_claim
from dpaudit.inference.pair_game import PairGame
from dpaudit.laws import group_privacy
from dpaudit.privacy.claims import DirectedProfile, MetricDP, ZeroConcentratedDP
from dpaudit.privacy.inputs import inputs_of
from dpaudit.privacy.neighbours import NeighbourClaim, records_added
from dpaudit.privacy.pair_budgets import budgets_of
from dpaudit.privacy.pairs import as_pairs
from dpaudit.running.digests import digest
from dpaudit.search.shrinking import audit_and_shrink, shrink
from dpaudit.subjects.domains import VectorDomain

EPSILONS = (0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0)
ROUNDING = 1e-11  # a profile is at most 2e-12 above the supremum at its corners, which are sums of a few doubles
TRUTHFUL = 0.75
RATE = 0.2


def subsampled_response():
    """Randomised response of a record that is there, or is read with probability RATE, on three outcomes."""
    without = np.array([0.7, 0.2, 0.1])
    with_record = (1.0 - RATE) * without + RATE * np.array([0.1, 0.15, TRUTHFUL])
    return without, with_record


def curve(p, q):
    """T(p, q) by its corners, where no two corners have one type I error but for rounding."""
    rejected, kept = trade_off_corners(p, q)
    last = np.append(np.diff(rejected) > 1e-12, True)
    return list(zip(rejected[last].tolist(), kept[last].tolist(), strict=True))


def events(count):
    return [s for size in range(1, count + 1) for s in itertools.combinations(range(count), size)]


@st.composite
def laws(draw, count):
    """So many laws on the same two to five outcomes."""
    outcomes = draw(st.integers(2, 5))
    rows = [draw(st.lists(st.integers(0, 20), min_size=outcomes, max_size=outcomes)) for _ in range(count)]
    weights = np.array(rows, float)
    weights[:, 0] += 1.0
    return weights / weights.sum(axis=1, keepdims=True)


def largest(p, q, epsilon):
    """The largest P(S) - e^epsilon Q(S), over every event."""
    return max(0.0, *(p[list(s)].sum() - math.exp(epsilon) * q[list(s)].sum() for s in events(len(p))))


@given(laws(2))
@settings(max_examples=150, deadline=None)
def test_each_order_has_the_line_of_its_own_law(pair):
    p, q = pair
    claim = FDP(curve(p, q), ordered=True)
    for epsilon in EPSILONS:
        there, back = largest(p, q, epsilon), largest(q, p, epsilon)
        assert there - 1e-12 <= claim.in_order(False).profile(epsilon) <= there + ROUNDING
        assert back - 1e-12 <= claim.in_order(True).profile(epsilon) <= back + ROUNDING
        assert claim.profile(epsilon) == max(claim.in_order(r).profile(epsilon) for r in (False, True))


def holds_on_every_event(p, q, corners):
    """1 - Q(S) >= f(P(S)) for every S: the definition, by enumeration. None where rounding may decide."""
    rates, values = np.transpose(corners)
    gaps = [1.0 - q[list(s)].sum() - np.interp(p[list(s)].sum(), rates, values) for s in [(), *events(len(p))]]
    return None if -1e-9 < min(gaps) < -1e-12 else bool(min(gaps) >= -1e-12)


@given(laws(4))
@settings(max_examples=200, deadline=None)
def test_the_lines_of_both_orders_hold_just_where_the_inequality_holds_on_every_event(four):
    p, q, *other = four
    f = curve(*other)
    holds, back = holds_on_every_event(p, q, f), holds_on_every_event(q, p, f)
    if holds is None or back is None:
        return
    ordered = FDP(f, ordered=True)
    # The lines decide at the slopes of f, where its supremum changes its corner.
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in itertools.pairwise(f)]
    at = {0.0} | {abs(math.log(-slope)) for slope in slopes if slope < 0.0}
    line_holds = all(
        largest(*pair, epsilon) <= ordered.in_order(reverse).profile(epsilon) + ROUNDING
        for epsilon in at
        for pair, reverse in (((p, q), False), ((q, p), True))
    )
    assert line_holds is holds
    assert keeps([p, q], ordered, [(0, 1)]) is holds
    assert keeps([q, p], ordered, [(1, 0)]) is holds
    assert keeps([q, p], ordered, [(0, 1)]) is back
    assert keeps([p, q], FDP(f), [(0, 1)]) is (holds and back)


def test_adding_and_removing_are_told_apart_in_both_orders_of_the_pair():
    without, with_record = subsampled_response()
    claim = FDP(add=curve(without, with_record), remove=curve(with_record, without))
    fewer, more = [5, 7], [5, 6, 7]
    grown, shrunk = claim.for_pair(fewer, more), claim.for_pair(more, fewer)
    for reverse in (False, True):
        for epsilon in EPSILONS:
            assert grown.in_order(reverse).profile(epsilon) == shrunk.in_order(not reverse).profile(epsilon)
    rows = [without, with_record]
    assert keeps(rows, grown, [(0, 1)]) and keeps(rows, shrunk, [(1, 0)])
    assert not keeps(rows, shrunk, [(0, 1)]) and not keeps(rows, grown, [(1, 0)])
    # Without `remove` the other order is held to nothing of its own: T(P, Q) >= f is all.
    alone = FDP(add=curve(without, with_record))
    assert alone.for_pair(fewer, more).curves[1] is None and alone.for_pair(more, fewer).curves[0] is None
    ordered = FDP(curve(without, with_record), ordered=True)
    for epsilon in EPSILONS:
        assert alone.for_pair(fewer, more).in_order(True).profile(epsilon) == ordered.in_order(True).profile(epsilon)
        assert alone.for_pair(more, fewer).in_order(True).profile(epsilon) == ordered.in_order(False).profile(epsilon)


@pytest.mark.parametrize(
    "claim",
    [PureDP(1.0), ApproxDP(1.0, 0.1), GaussianDP(1.0), ZeroConcentratedDP(0.5), RenyiDP(2.0, 0.3),
     FDP([(0, 1), (1, 0)]), ProfileClaim(lambda epsilon: 0.1), MetricDP(lambda x, y: 1.0),
     NeighbourClaim(PureDP(1.0), "add_remove")],
    ids=str,
)  # fmt: skip
def test_a_symmetric_claim_is_itself_in_both_orders(claim):
    assert claim.is_symmetric and claim.in_order(False) is claim and claim.in_order(True) is claim


def tenth(epsilon):
    return 0.1 * math.exp(-epsilon)


def test_an_order_without_a_promise_has_lines_that_no_event_breaks():
    claim = ProfileClaim(DirectedProfile(tenth), name="a tenth")
    assert not claim.is_symmetric and claim.parameter == "scale" and claim.in_order(True).value == 1.0
    values = np.array([0.0, 0.5, 1.0, 3.0])
    for anchor in (0.0, 1.0):
        assert claim.in_order(True).lines(values, anchor)[1].tolist() == [1.0] * 4
        assert (
            claim.in_order(False).lines(values, anchor)[1].tolist()
            == ProfileClaim(tenth).lines(values, anchor)[1].tolist()
        )
    assert claim.profile(1.0) == 1.0 and claim.epsilon_at(0.5) == math.inf and claim.budget.epsilon == math.inf
    both = ProfileClaim(DirectedProfile(tenth, lambda epsilon: 2.0 * tenth(epsilon)))
    assert both.profile(1.0) == 2.0 * tenth(1.0) and both.epsilon_at(0.02) == pytest.approx(math.log(10.0), abs=1e-8)
    assert both.budget == both.in_order(True).budget  # the weaker order


def test_one_order_asked_again_is_itself_and_scales_as_the_claim_does():
    without, with_record = subsampled_response()
    claim = FDP(curve(without, with_record), ordered=True, name="response")
    for reverse in (False, True):
        directed = claim.in_order(reverse)
        assert directed.is_symmetric and directed.in_order(True) is directed and str(directed) == "response"
        assert claim.with_value(2.0).in_order(reverse) == directed.with_value(2.0)
        assert directed.with_value(2.0).profile(0.8) == directed.profile(0.4)
        deltas = directed.lines(np.array([0.0, 0.5, 1.0, 2.0, 10.0]), 0.3)[1]
        assert np.all(np.diff(deltas) >= 0.0) and deltas[0] < deltas[-1]  # nested
    assert claim.family == "hockey-stick" and claim.value == 1.0 and claim.parameter == "scale"
    related = NeighbourClaim(claim, "add_remove")
    assert not related.is_symmetric and related.in_order(True).claim == claim.in_order(True)
    assert not related.for_pair([1], [1, 2]).is_symmetric


def test_claims_are_values():
    without, with_record = subsampled_response()
    f, g = curve(without, with_record), curve(with_record, without)
    claims = [
        FDP(f), FDP(f, ordered=True), FDP(g, ordered=True), FDP(add=f, remove=g), FDP(add=f), FDP(remove=f),
        FDP(add=g, remove=f).for_pair([1], [1, 2]), FDP(add=f, remove=g).for_pair([1], [1, 2]),
    ]  # fmt: skip
    named = [copy.copy(claim) for claim in claims]
    for claim in named:
        object.__setattr__(claim, "name", "one name")
    assert len(set(named)) == len(set(map(digest, named))) == len(claims)
    for claim in claims:
        again = pickle.loads(pickle.dumps(claim))
        assert again == claim == copy.deepcopy(claim) and hash(again) == hash(claim) and digest(again) == digest(claim)
        assert again.with_value(2.0) == claim.with_value(2.0) != claim
    assert FDP(add=f, remove=g) == FDP(add=f, remove=g)
    # What was saved of symmetric claims is still of the same claim.
    assert [field.name for field in dataclasses.fields(ProfileClaim)] == ["function", "name", "scale"]
    assert [str(claim) for claim in claims[:4]] == ["f-DP", "ordered f-DP", "ordered f-DP", "add/remove f-DP"]


@pytest.mark.parametrize(
    ("x", "x_prime", "added"),
    [
        ([1, 2], [1, 2, 3], 1), ([3, 1, 2], [1, 2], -1), ([1, 2], [1, 2, 3, 4], 2), ({"a"}, {"a", "b"}, 1),
        (np.zeros((3, 2)), np.zeros((4, 2)), 1), (pd.DataFrame({"v": [1, 2]}), pd.DataFrame({"v": [2]}), -1),
        ((np.zeros((2, 3)), np.ones(2)), (np.zeros((3, 3)), np.ones(3)), 1),
        ([1, 2], [1, 3], None), ([1, 2], [2, 1], None), ([1], [1], None), (0, 1, None), ("ab", "abc", None),
        ([1, 2], [1, 3, 4], None), ([1], {1, 2}, None),
    ],
    ids=["one more", "one fewer", "two more", "a set", "rows", "a table", "two arrays", "a change", "an order",
         "the same", "numbers", "texts", "a change and one more", "a list and a set"],
)  # fmt: skip
def test_added_and_removed_records_are_counted(x, x_prime, added):
    assert records_added(x, x_prime) == added
    assert records_added(x_prime, x) == (None if added is None else -added)


@pytest.mark.parametrize("pair", [(0, 1), ([1, 2], [1, 3]), ([1], [1]), ([1], [1, 2, 3])], ids=repr)
def test_a_pair_that_cannot_be_told_is_refused(pair):
    claim = FDP(add=[(0, 1), (1, 0)])
    with pytest.raises(UsageError, match=r"two datasets of which one has one more record, for add/remove f-DP, got .*"):
        claim.for_pair(*pair)
    assert FDP([(0, 1), (1, 0)], ordered=True).for_pair(*pair) == FDP([(0, 1), (1, 0)], ordered=True)


LINE = [(0.0, 1.0), (1.0, 0.0)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"f-DP must be given trade_off, .* or add and remove, got none\."),
        ({"trade_off": LINE, "add": LINE}, "got trade_off and add"),
        ({"ordered": True}, "got ordered"),
        ({"ordered": True, "remove": LINE}, "got ordered and remove"),
        ({"trade_off": LINE, "ordered": "yes"}, "ordered must be True or False, got 'yes'"),
        ({"add": LINE, "remove": [(0.0, 1.0), (1.0, 0.5)]}, r"got 0\.5 at 1\. This is `remove`"),
        ({"add": "curve"}, r"got 'curve'\. This is `add`"),
    ],
)  # fmt: skip
def test_what_is_no_claim_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        FDP(**arguments)


def test_both_profiles_of_a_claim_are_checked():
    with pytest.raises(UsageError, match=r"backward must not increase, got .* at 0\.01 after 0\.0"):
        ProfileClaim(DirectedProfile(lambda epsilon: 0.5, lambda epsilon: min(epsilon, 0.4)))
    with pytest.raises(UsageError, match=r"forward\(0\) must be in \[0, 1\], got 2"):
        ProfileClaim(DirectedProfile(lambda epsilon: 2.0))
    with pytest.raises(UsageError, match="adjacency is stated"):
        NeighbourClaim(FDP(add=LINE), "add_remove")


def one(data, rng):
    return 0


@dataclasses.dataclass(frozen=True)
class TwoLines(PureDP):
    """Epsilon of (P, Q), twice that of (Q, P)."""

    is_symmetric = False

    def in_order(self, reverse):
        return PureDP(2.0 * self.epsilon if reverse else self.epsilon)

    def lines(self, values, anchor):
        return 2.0 * np.asarray(values, float), np.zeros(len(values))


@pytest.mark.parametrize(
    "claim", [FDP(LINE, ordered=True), NeighbourClaim(FDP(LINE, ordered=True), "replace_one")], ids=str
)
def test_pairs_in_no_order_are_refused_where_the_order_decides(claim):
    message = r"pairs must be given in the order that the claim ordered f-DP.* is about, got {}, which has them in any"
    domain = VectorDomain(2, 0.0, 1.0, 1.0)
    for pairs, told in ((dpaudit.AllPairs([0, 1, 2]), "AllPairs"), (dpaudit.Search(domain), "a domain")):
        with pytest.raises(UsageError, match=message.format(told)):
            dpaudit.audit(one, claim, pairs)
    with pytest.raises(UsageError, match=message.format("a pair to make smaller")):
        shrink(one, claim, ([0, 1], [0, 2]))
    with pytest.raises(UsageError, match=message.format("a pair to make smaller")):
        audit_and_shrink(one, claim, dpaudit.Search(st.just((0, 1))))
    with pytest.raises(UsageError, match=r"claim must be of both orders of a pair for a law, got ordered f-DP"):
        group_privacy(one, claim, 1, pairs=[(0, 1)])


def test_scores_are_held_to_what_both_orders_keep():
    nothing = ProfileClaim(DirectedProfile(tenth), name="a tenth")
    with pytest.raises(UsageError, match=r"claim must promise something of both orders of a pair, .* got a tenth"):
        dpaudit.audit_scores([1.0, 2.0], [0.0, 1.0], claim=nothing, design="one-run")
    rng = np.random.default_rng(1)
    scores = rng.normal(2.0, 1.0, 2_000), rng.normal(0.0, 1.0, 2_000)
    first, second = (lambda epsilon: 0.3 * math.exp(-epsilon)), tenth
    found = [
        dpaudit.audit_scores(*scores, claim=ProfileClaim(function, name="p"), design="many-runs", seed=1)
        for function in (DirectedProfile(first, second), DirectedProfile(second, first), first)
    ]
    assert len({one.parameter_lower for one in found}) == 1 and found[0].verdict == "violated"


def test_a_value_of_one_order_bounds_the_smaller_epsilon():
    # One of the orders broke its line, so what follows is of the smaller epsilon: exact.
    game = PairGame(TwoLines(1.0), (0, 1), True, 1_000)
    assert game.epsilon_of(1.5) == 1.5 and TwoLines(1.0).lines(np.array([1.5]), 0.0)[0][0] == 3.0
    assert loss_on_claim(TwoLines(1.0), 0.5) == pytest.approx(1.0) and line_of(TwoLines(1.0)).epsilon == 1.0


def test_exact_answers_ask_each_order_its_own_line():
    # Randomised response of loss 1 inside an event of mass 1/2, under a claim that one order of it breaks.
    loose, tight = ProfileClaim(lambda epsilon: 0.9), ProfileClaim(tenth)
    claim = ProfileClaim(DirectedProfile(loose.function, tight.function))
    assert loss_on_claim(claim, 0.5) == loss_on_claim(tight, 0.5) < loss_on_claim(loose, 0.5)
    assert event_mass_of(claim, 0.1) == event_mass_of(tight, 0.1) < event_mass_of(loose, 0.1)
    rows = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3]])
    f = curve(np.array([0.6, 0.2, 0.2]), np.array([0.3, 0.4, 0.3]))
    moved = tempered(rows, FDP(f, ordered=True), [(0, 1)])
    assert not keeps(rows, FDP(f, ordered=True), [(0, 1)]) and keeps(moved, FDP(f, ordered=True), [(0, 1)])
    with pytest.raises(UsageError, match="family that finite mechanisms can be held against"):
        keeps(rows, FDP(f, ordered=True, scale=2.0))
    with pytest.raises(UsageError, match="family that finite mechanisms can be held against"):
        keeps(rows, claim)
    with pytest.raises(UsageError, match="two datasets of which one has one more record"):
        keeps(rows, FDP(add=f))


def test_a_class_with_its_own_orders_has_no_exact_answer():
    class Half(PureDP):
        is_symmetric = False

        def in_order(self, reverse):
            return PureDP(self.epsilon / 2.0 if reverse else self.epsilon)

    with pytest.raises(UsageError, match=r"which has in_order, is_symmetric of its own"):
        keeps([[0.5, 0.5], [0.4, 0.6]], Half(1.0))


def test_a_table_of_pairs_places_each_pair_by_its_own_order():
    pairs = as_pairs([([1], [1, 2]), ([1, 2], [1]), ([3], [3, 4])])
    budgets = budgets_of(FDP(add=LINE, remove=[(0.0, 0.9), (1.0, 0.0)]), pairs, inputs_of(pairs))
    assert budgets.family.tolist() == [0, 1, 0] and budgets.values.tolist() == [1.0] * 3
    assert len(budgets_of(FDP(LINE, ordered=True), pairs, inputs_of(pairs)).families) == 1
