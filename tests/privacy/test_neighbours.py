"""Claims with a neighbouring relation: the budget of a pair is that of the steps that join its inputs."""

import math
from collections import Counter, deque
from types import SimpleNamespace

import numpy as np
import pytest

import dpaudit
from dpaudit.conformance.case import Case
from dpaudit.conformance.outcomes import CheckSkipped
from dpaudit.conformance.promises import law
from dpaudit.errors import UsageError
from dpaudit.privacy import ApproxDP, GaussianDP, MetricDP, ProfileClaim, PureDP, RenyiDP, ZeroConcentratedDP, group
from dpaudit.privacy.inputs import identity_of, inputs_of
from dpaudit.privacy.neighbours import MAX_EDITS, NeighbourClaim, edit_distance, joined_rows, steps_between
from dpaudit.privacy.pair_budgets import budgets_of
from dpaudit.privacy.parsing import parse_claim
from dpaudit.reports import registry
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.fresh import fresh_subject
from dpaudit.subjects.stated import stated_claim

NAN = float("nan")
STEPS = [  # x, x_prime, steps of add_remove, replace_one, either
    ([1, 2, 3], [1, 3], 1, math.inf, 1),
    ([1, 2], [1, 5], 2, 1, 1),
    ([], [1, 2], 2, math.inf, 2),
    ([1, 2, 3], [3, 1, 2], 2, 3, 2),  # an order that changes costs steps
    ([1, 2, 3, 4], [4, 2, 5], 5, math.inf, 3),
    ([1, 1, 2], [1, 1, 1, 2], 1, math.inf, 1),
    ([NAN, 1], [NAN, 2], 2, 1, 1),
    ([{8, 0}, 1], [{0, 8}, 1], 0, 0, 0),  # printed in another order
    (Counter({NAN: 1, float("nan"): 1}), Counter(), 2, math.inf, 2),
    ([1, True, np.float64(2)], (1.0, 1, 2), 0, 0, 0),
    ([0.0], ["0.0"], 2, 1, 1),
    (np.zeros((3, 2)), np.ones((2, 2)), 5, math.inf, 3),
    ([[1, "a"]], [(1, "a"), (1, "b")], 1, math.inf, 1),
    ([{"age": 5, "city": "c"}], [{"city": "c", "age": 5}], 0, 0, 0),
    ({"ada": 1, "bob": 2}, {"bob": 2, "ada": 3}, 2, 1, 1),
    ({"ada": 1}, {"bob": 1}, 2, 1, 1),
    ({1, 2}, {2, 3, 4}, 3, math.inf, 2),
    (Counter(a=3), Counter(a=4), 1, math.inf, 1),
    ([[1, 2], {3}], [[1, 2], {4}], 2, 1, 1),  # rows without a hash
    (1.0, 2.0, None, None, None),
    ("ab", "ac", None, None, None),
    ([1], None, None, None, None),
]


@pytest.mark.parametrize(("x", "x_prime", "added", "replaced", "either"), STEPS, ids=str)
def test_steps_are_counted_in_both_orders(x, x_prime, added, replaced, either):
    for pair in ((x, x_prime), (x_prime, x)):
        found = [steps_between(*pair, adjacency) for adjacency in ("add_remove", "replace_one", "either")]
        assert found == [added, replaced, either]


def test_rows_of_tables_are_compared_without_their_index():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"age": [1, 2, 3], "city": ["a", "b", "c"]})
    assert steps_between(table, table.drop(index=1), "add_remove") == 1
    more = pandas.concat([table, pandas.DataFrame({"age": [None], "city": ["d"]})])  # ages are floats now
    assert steps_between(table, more, "add_remove") == 1
    assert steps_between(table, table.rename(columns={"age": "years"}), "add_remove") is None
    assert steps_between(table["age"], table["age"][:2], "add_remove") == 1


def test_edit_distances_are_those_of_brute_force_and_bounded_for_long_parts():
    def brute(a, b, replaces):
        if not a or not b:
            return len(a) + len(b)
        same = brute(a[1:], b[1:], replaces) + (0 if a[0] == b[0] else 1 if replaces else 2)
        return min(same, brute(a[1:], b, replaces) + 1, brute(a, b[1:], replaces) + 1)

    rng = np.random.default_rng(1)
    for _ in range(40):
        a, b = (rng.integers(0, 3, size=rng.integers(0, 6)).tolist() for _ in range(2))
        assert all(edit_distance(a, b, replaces) == brute(a, b, replaces) for replaces in (False, True))
    assert edit_distance(range(1000), [*range(1, 999), -5]) == 3  # at both ends: 1,000 rows lie between
    few, more = [0] * MAX_EDITS, [0] * (MAX_EDITS + 1)
    assert edit_distance([], few) == MAX_EDITS == edit_distance([*few, 1], [1])
    assert edit_distance([*more, 1], [1]) == MAX_EDITS + 3  # every row
    assert edit_distance([0] * 700, [1] * 800) == 1500  # nothing in common


@pytest.mark.parametrize(
    "claim", [PureDP(0.7), ApproxDP(0.5, 1e-3), GaussianDP(0.5), ZeroConcentratedDP(0.1), RenyiDP(8.0, 0.1)], ids=str
)
def test_a_pair_of_two_steps_has_the_budget_of_a_group_of_two(claim):
    stated = NeighbourClaim(claim, "add_remove")
    assert stated.for_pair([1], [1, 2]) == claim
    assert stated.for_pair([1, 2], [1, 2]) == claim  # a control
    assert stated.for_pair([1, 2], [1, 3]) == group(claim, 2)
    assert parse_claim(str(stated)) == stated and parse_claim(f"{claim} , adjacency = add_remove") == stated
    assert stated.budget == claim.budget and stated.value == claim.value and stated.family == claim.family


def test_what_cannot_be_told_is_asked():
    one = NeighbourClaim(PureDP(1.0), "replace_one")
    with pytest.raises(UsageError, match=r"joined by steps of adjacency=replace_one, got .1. and .1, 2., which"):
        one.for_pair([1], [1, 2])
    with pytest.raises(UsageError, match=r"inputs must be datasets .* got 0 and 1. State another relation"):
        one.for_pair(0, 1)
    profile = NeighbourClaim(ProfileClaim(lambda epsilon: 0.1), "add_remove")
    with pytest.raises(UsageError, match=r"rule for groups, got profile.* is 2 steps of add_remove"):
        profile.for_pair([1], [2])
    with pytest.raises(UsageError, match="one budget for all pairs"):
        NeighbourClaim(MetricDP(lambda x, y: 1.0), "add_remove")
    with pytest.raises(UsageError, match=r"adjacency must be 'add_remove', .* got 'one' at claim 'eps=1,adj"):
        parse_claim("eps=1,adjacency=one")
    assert NeighbourClaim(PureDP(1.0), "given").for_pair(0, 1) == PureDP(1.0)


def test_rows_of_many_numbers_are_compared_by_all_of_them():
    pandas = pytest.importorskip("pandas")
    first, second = np.arange(5_000.0), np.arange(5_000.0)
    second[2_500] += 1e-9  # neither shown, nor in the digits that are
    for kind in (pandas.Series, lambda row: deque([row])):
        assert steps_between([kind(first)], [kind(second)], "replace_one") == 1.0
        assert steps_between([kind(first)], [kind(first.copy())], "replace_one") == 0.0
    frames = [pandas.DataFrame({"a": [row]}) for row in (first, second, first.copy())]
    assert identity_of(frames[0]) == identity_of(frames[2]) != identity_of(frames[1])


def test_steps_that_are_no_number_are_refused():
    claim = NeighbourClaim(PureDP(1.0), steps=lambda x, x_prime: math.nan)
    with pytest.raises(UsageError, match=r"steps of a pair must be in \[0, inf\], got nan"):
        claim.for_pair(0, 1)


def test_searches_plans_and_tables_take_the_budget_of_the_steps():
    def searched(stated, **relation):
        options = {"examples": [[1, 2, 3]], "budget": 1_000, "candidates": 4, "pairs": 1, "grey_box": False, "seed": 1}
        found = dpaudit.search_pairs(total, f"eps=1,adjacency={stated}", **options, **relation)
        return found.domain["adjacency"], {tried.epsilon for tried in found.tried}

    assert searched("add_remove") == ("add_remove", {1.0})
    assert searched("replace_one") == ("replace_one", {1.0})
    assert searched("add_remove", adjacency="replace_one") == ("replace_one", {2.0})
    with pytest.raises(UsageError, match="pairs of which the claim asks something"):
        searched("replace_one", adjacency="add_remove")  # which no steps join
    claim = NeighbourClaim(PureDP(1.0), "add_remove")
    plan = dpaudit.plan(total, claim, [([1, 2], [1, 3])], samples=1_000, mode="fixed")
    assert [planned.budget for planned in plan.budgets] == [2.0]
    pairs = dpaudit.all_pairs([[1], [1, 2], [2, 1, 1]])
    assert budgets_of(claim, pairs, inputs_of(pairs)).values.tolist() == [1.0, 2.0, 3.0]


def test_laws_and_registries_have_rules_for_claims_with_a_relation(monkeypatch):
    def audited(case, derived, claim, *options):
        raise CheckSkipped(str(claim))

    monkeypatch.setattr(Case, "audited", audited)
    pairs = [([1], [2]), ([1], [])]  # of budgets 2 and 1
    case = Case(total, "eps=1,adjacency=add_remove", pairs, seed=1, samples=1_000, error_rate=0.05)
    for name in ("sequential composition", "adaptive composition"):
        with pytest.raises(CheckSkipped, match=r"^eps=4$"):
            law(case, name)
    asked = SimpleNamespace(claim="eps=1,adjacency=add_remove")
    assert registry._promise([asked])[1] == {"epsilon": 1.0}


def test_a_text_names_readers_that_it_does_not_hold():
    for own in ({"rows": sorted}, {"steps": lambda x, x_prime: abs(x - x_prime)}):
        for claim in (NeighbourClaim(PureDP(1.0), "given", **own), as_subject(total).neighbouring(
            NeighbourClaim(PureDP(1.0), "given", **own)
        )):  # fmt: skip
            with pytest.raises(UsageError, match=r"got 'given,(rows=sorted|steps=<lambda>)' at claim"):
                parse_claim(str(claim))


def test_methods_of_a_mechanism_that_count_steps_or_read_rows_are_its_own():
    class Walk:
        claim = "eps=1"

        def count_steps(self, data):
            return len(data)

        read_rows = count_steps

        def sample(self, data, size, rng):
            return self.count_steps(data) + rng.laplace(size=size)

    assert as_subject(Walk()).claim == PureDP(1.0)


def total(data, size, rng):
    return sum(data) + rng.laplace(scale=0.05, size=size)


def test_a_mechanism_states_its_relation_and_a_claim_may_state_another():
    class Count:
        claim, dataset_adjacency = "eps=1", "add_remove"

        def sample(self, data, size, rng):
            return len(data) + rng.laplace(size=size)

    def count(data, rng):
        return len(data)

    count.dataset_adjacency = "replace_one"
    pair = [1, 2], [1, 3]
    for subject in (as_subject(Count()), fresh_subject(Count)):
        assert stated_claim(subject, None).for_pair(*pair) == PureDP(2)
        assert stated_claim(subject, "eps=0.5").for_pair(*pair) == PureDP(1)
        assert stated_claim(subject, "eps=1,adjacency=given").for_pair(*pair) == PureDP(1)
        assert stated_claim(subject, MetricDP(lambda x, y: 3.0)).for_pair(*pair) == PureDP(3)
    assert stated_claim(as_subject(count), "eps=1").for_pair(*pair) == PureDP(1)
    count.dataset_adjacency = "swap"
    with pytest.raises(UsageError, match=r"adjacency must be .* or 'given', got 'swap'. This is what .*count states"):
        stated_claim(as_subject(count), "eps=1")


def test_arrays_and_tables_of_one_length_are_columns_of_the_same_rows():
    X, y = np.eye(3), np.array([0, 1, 1])
    for adjacency, removed, replaced in (("add_remove", 1, 2), ("replace_one", math.inf, 1)):
        count = NeighbourClaim(PureDP(1.0), adjacency).count
        assert count((X, y), (X[1:], y[1:])) == count({"X": X, "y": y}, {"X": X[1:], "y": y[1:]}) == removed
        assert count((X, y), (X, np.array([0, 1, 0]))) == replaced
    claim = NeighbourClaim(PureDP(1.0), "add_remove")
    assert claim.count({"ada": [1], "bob": [2]}, {"ada": [1]}) == 1  # lists are rows, by their keys
    assert claim.count(Counter(a=3), Counter(a=9)) == 6 and claim.count(np.array([3]), np.array([9])) == 2


def test_a_part_of_a_step_is_paid_as_a_whole_one():
    claim = NeighbourClaim(PureDP(1.0), "add_remove")
    assert claim.for_pair(Counter(a=1.0), Counter(a=2.5)) == PureDP(2.0)


def test_parts_with_a_row_each_are_joined():
    assert joined_rows({"X": np.eye(2), "y": [0, 1]})[1][1] == 1
    assert joined_rows(([1, 2], [3])) is None and joined_rows([1]) == [1]


def noisy_count(data, size, rng):
    return np.asarray(data) @ [1.0, 1.0] + rng.laplace(size=size)


def test_audits_and_certificates_take_the_budget_of_the_steps():
    # Laplace noise of scale 1, loss 2 on the pair. False positives: 0.05 at budget 2 (the seed is fixed); at budget 1
    # 400 fixed draws of each input miss in less than 1e-6 (the event above the midpoint: .816 against .5 of guesses).
    pair = [0.0, 0.0], [2.0, 0.0]
    options = {"pairs": [pair], "samples": 400, "seed": 2, "mode": "fixed", "floating_point": False}
    asked = dpaudit.audit(noisy_count, claim="eps=1", **options)
    assert asked.verdict == "violated" and asked.findings[0].notes[-1].startswith("This pair replaces a row (")
    stated = dpaudit.audit(noisy_count, claim="eps=1,adjacency=add_remove", **options)
    assert stated.verdict != "violated" and stated.findings[0].budget.epsilon == 2.0
    assert stated.claim == "eps=1,adjacency=add_remove"
    assert stated.findings[0].notes == ("The pair is 2 steps of add_remove apart: its budget is eps=2, not eps=1.",)
    assert stated.findings[0].notes[0] in dpaudit.AuditResult.from_dict(stated.to_dict()).findings[0].notes

    def answer(bits, rng):
        return bits[0] if rng.random() < 0.88 else 1 - bits[0]  # loss 1.99

    pairs = [([0], [1])]
    assert dpaudit.certify(answer, "eps=1", pairs).verdict == "violated"
    assert dpaudit.certify(answer, "eps=1,adjacency=add_remove", pairs).verdict == "kept"
    with pytest.raises(UsageError, match="joined by steps"):
        dpaudit.certify(answer, "eps=1,adjacency=replace_one", [([0], [0, 1])])


def test_a_replay_and_the_conformance_suite_take_the_budget_of_the_steps():
    def count(data, size, rng):
        return np.asarray(data) @ [1.0, 1.0] + rng.laplace(scale=0.25, size=size)  # loss 8 on the pair

    count.dataset_adjacency = "add_remove"
    pairs = [([0.0, 0.0], [2.0, 0.0])]
    result = dpaudit.audit(count, "eps=1", pairs, samples=200, seed=1, mode="fixed", floating_point=False)
    assert dpaudit.replay(result, count, PureDP(1.0), seed=2).parameter_budget == 2.0
    claim = Case(count, PureDP(1.0), pairs, seed=1, samples=100, error_rate=0.05).claim
    assert claim is not None and claim.for_pair(*pairs[0]) == PureDP(2.0)
