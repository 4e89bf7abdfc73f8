"""Saved evidence: what goes on from it has all its wealth, bit by bit, and no draw counts twice."""

import copy
import dataclasses
import functools
import itertools
import json
import math

import numpy as np
import pytest
from support.samplers import normal

from dpaudit.campaign import schedules
from dpaudit.campaign.label_game import LabelGame
from dpaudit.inference import betting, learning_state, payoffs, tables
from dpaudit.inference.saved import StateError, claim_digest, counted, joined, pair_state, restored
from dpaudit.learning.mixture import Mixture
from dpaudit.learning.rank_tree import Shifts, Steps
from dpaudit.privacy.claims import DirectedProfile, MetricDP, ProfileClaim, PureDP
from dpaudit.privacy.parsing import parse_claim
from dpaudit.running.digests import digest
from dpaudit.running.plain_data import outcomes_as_bytes, outcomes_from_bytes
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject

FAMILIES = {"eps=1": 200, "eps=0.8,delta=0.01": 100, "mu=0.9": 50, "rho=0.4": 40, "order=2,rdp=0.8": 40}


def words(data, size, rng):
    return [("yes" if value else "no", None, 1.5) for value in rng.random(size) < 0.5 + 0.2 * data]


def game_of(mechanism, claim, seed, samples=200):
    data = [0.0, 1.0]
    return LabelGame(
        [parse_claim(claim) if isinstance(claim, str) else claim],
        [(0, 1)],
        samples=samples,
        error_rate=0.05,
        mode="sequential",
        draw=WorkerPool().drawer(as_subject(mechanism), data, seed, 0),
        coin=lambda round_, pair: stream(seed, 1, round_, pair),
        data=data,
    )


def through_text(state):
    return json.loads(json.dumps(state))


def played(mechanism, claim, seed=1, samples=200):
    game = game_of(mechanism, claim, seed, samples)
    game.start()
    game.play()
    return game


@functools.cache
def text_of(claim, seed, samples):
    return json.dumps(pair_state(played(normal, claim, seed, samples).pairs[0], str(seed)))


def state_of(claim="eps=1", seed=1, samples=60):
    """A state of its own of a game that is played once."""
    return json.loads(text_of(claim, seed, samples))


def gone_on(mechanism, claim, state, kept, seed=2, samples=200):
    game = game_of(mechanism, claim, seed, samples)
    restored(state, game.pairs[0])
    game.go_on(kept)
    game.play()
    return game


def read(state, claim="eps=1"):
    return restored(state, game_of(normal, claim, 9).pairs[0])


@pytest.mark.parametrize(
    ("mechanism", "claim", "samples"),
    [*((normal, *item) for item in FAMILIES.items()), (words, "eps=1", 100)],
    ids=[*FAMILIES, "objects"],
)
def test_what_goes_on_from_a_saved_state_multiplies_its_wealth_which_is_the_same_bit_by_bit(mechanism, claim, samples):
    first = played(mechanism, claim, 1, samples)
    state = through_text(pair_state(first.pairs[0], "1"))
    before, same = first.pairs[0], read(state, claim)
    for use, (_, ours), (_, theirs) in zip(state["uses"], same.uses, before.uses, strict=True):
        assert (ours.log_wealth, ours.lower) == (theirs.log_wealth, theirs.lower) and ours.log_wealth == use["now"]
    assert same.main.rule_record() == before.main.rule_record()

    kept = {i: outcomes_from_bytes(outcomes_as_bytes(first.kept(i))) for i in (0, 1)}
    other, again = (gone_on(mechanism, claim, copy.deepcopy(state), kept, 2, samples).pairs[0] for _ in range(2))
    after = through_text(pair_state(other, "2"))
    assert after == through_text(pair_state(again, "2")) and other.labelled > state["labelled"] > 0
    table, known = after["uses"][0]["table"], state["uses"][0]["table"]["rounds"]
    assert table["rounds"][: len(known)] == known  # what was counted stays, and later draws have rounds of their own
    new = table["rounds"][len(known) :]
    assert {session for one in new for session in one["counts"]} == {"2"}
    alone = copy.deepcopy(after)
    alone["uses"][0]["table"]["rounds"], alone["labelled"] = new, other.labelled - state["labelled"]
    for use in alone["uses"]:
        use["wealths"] = None  # it is what the new rounds won
    for use, (_, ours), (_, won) in zip(state["uses"], other.uses, read(alone, claim).uses, strict=True):
        assert ours.log_wealth == pytest.approx(use["now"] + won.log_wealth, abs=1e-9)


def test_a_state_that_is_read_and_written_again_is_the_same():
    state = state_of("mu=0.9")
    assert through_text(pair_state(read(state, "mu=0.9"), "2")) == state


# --- the evidence of two sessions ---


@pytest.mark.parametrize("claim", ["eps=1", "mu=0.9", "rho=0.4"])
def test_joined_states_of_disjoint_draws_multiply(claim):
    first, second = (state_of(claim, seed) for seed in (1, 2))
    both = joined(first, second)
    assert both["labelled"] == first["labelled"] + second["labelled"] == counted(both)
    for use, a, b in zip(both["uses"], first["uses"], second["uses"], strict=True):
        assert use["now"] == a["now"] + b["now"]
        assert use["wealths"] == [[v, x + y] for (v, x), (_, y) in zip(a["wealths"], b["wealths"], strict=True)]
    game = read(through_text(both), claim).main
    assert game.log_wealth == pytest.approx(both["uses"][0]["now"], abs=1e-9) and not game._offsets


def test_what_two_added_to_one_state_is_joined_to_it_once_in_either_order():
    base = played(normal, "eps=1")
    state = through_text(pair_state(base.pairs[0], "1"))
    kept = {i: base.kept(i) for i in (0, 1)}
    a, b = (
        through_text(pair_state(gone_on(normal, "eps=1", state, kept, seed).pairs[0], str(seed))) for seed in (2, 3)
    )
    both, reversed_ = joined(a, b), joined(b, a)
    assert both["labelled"] == a["labelled"] + b["labelled"] - state["labelled"] == counted(both)
    assert joined(both, b)["labelled"] == joined(both, both)["labelled"] == joined(both, state)["labelled"]
    assert joined(both, b)["labelled"] == both["labelled"]
    wealth = [read(one).main.log_wealth for one in (state, a, b, both, reversed_)]
    assert wealth[3] == pytest.approx(wealth[1] + wealth[2] - wealth[0], abs=1e-9) == wealth[4]
    earlier = copy.deepcopy(b)  # the other session, as it was before its last draws
    last = next(one for one in earlier["uses"][0]["table"]["rounds"][::-1] if "3" in one["counts"])
    assert joined(joined(a, earlier), b)["labelled"] == both["labelled"] and last["counts"]["3"]


def test_a_later_session_goes_on_learning_where_no_more_outputs_are_kept(monkeypatch):
    """Its views go on from the counts of the one before: each refit of its own sees all draws so far."""
    monkeypatch.setitem(schedules.TRAINING_DRAWS, "sequential", 100)
    monkeypatch.setattr(learning_state, "SIZES", dataclasses.replace(learning_state.SIZES, counted_from=100))
    first = played(normal, "eps=8", samples=400)
    state = through_text(pair_state(first.pairs[0], "1"))
    kept = {i: first.kept(i) for i in (0, 1)}
    assert [len(kept[i]) for i in (0, 1)] == [100, 100]
    game = gone_on(normal, "eps=8", state, kept, samples=800)
    tables = [through_text(one)["uses"][0]["table"] for one in (state, pair_state(game.pairs[0], "2"))]
    own = [(one["q"], one["mass"]) for one in tables[1]["rounds"] if one["name"].startswith("2#")]
    assert len(own) >= 3 and all(one != other for one, other in itertools.pairwise(own))
    before, after = ([np.sum(view["counts"]) for view in table["views"]] for table in tables)
    said = [[view["said"] for view in table["views"]] for table in tables]
    assert said[0][0] and all(one in said[0] for one in said[1])  # and from what learned views said themselves
    assert before and set(after) == {before[0] + game.pairs[0].labelled - state["labelled"]}


@pytest.fixture(scope="module")
def with_views():
    """A state with counted views, which few draws have otherwise not."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning_state, "SIZES", dataclasses.replace(learning_state.SIZES, counted_from=100))
        return state_of("eps=8", samples=400)


def test_counted_views_of_earlier_versions_go_on_without_what_learned_views_said(with_views):
    state = copy.deepcopy(with_views)
    views = state["uses"][0]["table"]["views"]
    for view in views:
        del view["said"]
    table = read(state, "eps=8").main.table
    table.learn_from_counts()
    assert views and np.isfinite(table.rounds[-1].predicted.q).all()


@pytest.mark.parametrize("damage", [
    {"counts": [[1], [1]]}, {"edges": 3.0}, {"view": 99}, {"cost": "x"}, {"said": [1.0]}, {"said": [math.nan]},
    {"said": 1e308},
])  # fmt: skip
def test_a_counted_view_that_is_damaged_is_refused(damage, with_views):
    state = copy.deepcopy(with_views)
    view = state["uses"][0]["table"]["views"][0]
    view |= damage if damage != {"said": 1e308} else {"said": [1e308] * (len(view["edges"]) + 1)}
    with pytest.raises(StateError, match="must be one that was saved"):
        read(state, "eps=8")


# --- another engine, other claims, damage ---


def with_other_bets(monkeypatch, change=0.5):
    """An engine whose bets win less from the same tables."""
    logs = payoffs.log_factors
    for module in (payoffs, betting):
        monkeypatch.setattr(
            module, "log_factors", lambda bets, value: tuple(change * part for part in logs(bets, value))
        )


def test_what_another_engine_has_won_goes_on_as_a_number(monkeypatch):
    first = played(normal, "eps=0.5")
    state = through_text(pair_state(first.pairs[0], "1"))
    with_other_bets(monkeypatch)
    again = read(state, "eps=0.5").main
    assert again.log_wealth == pytest.approx(state["uses"][0]["now"], abs=1e-12) and again._offsets
    for value, wealth in state["uses"][0]["wealths"]:
        assert again._log_wealth(value, value) == pytest.approx(wealth, abs=1e-9)
    assert again.lower >= state["uses"][0]["lower"] and again._log_wealth(2.0, 2.0) == -math.inf
    game = gone_on(normal, "eps=0.5", state, {i: first.kept(i) for i in (0, 1)})
    after = through_text(pair_state(game.pairs[0], "2"))
    # A third session reads what both have won.
    assert read(after, "eps=0.5").main.log_wealth == pytest.approx(game.pairs[0].main.log_wealth, abs=1e-9)
    base, other = copy.deepcopy(after), copy.deepcopy(after)
    other["uses"][0]["offsets"] = []
    with pytest.raises(StateError, match="one engine"):
        joined(base, other)


def test_offsets_of_disjoint_states_add():
    first, second = (state_of(seed=seed) for seed in (1, 2))
    first["uses"][0]["offsets"] = [[value, 1.5] for value, _ in first["uses"][0]["wealths"]]
    assert {offset for _, offset in joined(first, second)["uses"][0]["offsets"]} == {1.5}
    second["uses"][0]["offsets"] = [[value, 2.0] for value, _ in first["uses"][0]["wealths"]]
    assert {offset for _, offset in joined(second, first)["uses"][0]["offsets"]} == {3.5}


def damaged(state, path, value):
    copied = copy.deepcopy(state)
    *at, last = path
    inner = copied
    for key in at:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return copied


TABLE = ("uses", 0, "table")


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("format",), 1, "format 3, got 1"),
        (("claim",), "0" * 16, "same claim"),
        (("uses",), [], "one that was saved"),
        (("uses", 0, "lower"), None, "lower"),
        (("uses", 0, "lower"), math.nan, "must be numbers"),
        (("level",), 1.5, "level must be in"),
        (("labelled",), 7, "all draws in the rounds"),
        (("change",), {"what": "x"}, "p_value"),
        ((*TABLE, "rounds"), [], "all draws in the rounds"),
        ((*TABLE, "next"), None, "next"),
        ((*TABLE, "next", "size"), 50, "out of bounds|82 bins"),
        ((*TABLE, "next", "q", 0), math.nan, "must be probabilities"),
        ((*TABLE, "rounds", 0, "rest"), -1.0, "must be probabilities"),
        ((*TABLE, "rounds", 0, "counts", "1", 1, 0), -3, "must not be negative"),
        ((*TABLE, "rounds", 0, "counts", "1", 1, 0), 0.5, "integer"),
        ((*TABLE, "rounds", 0, "counts", "1", 0, 0), 10**9, "out of bounds"),
        ((*TABLE, "foretold"), [[0.0, math.nan, 0.0, 0.0]] * 3, "finite"),
        ((*TABLE, "foretold"), [0.0, 0.0, 0.0], "reshape"),
        ((*TABLE, "mixture", "weights"), [["0x1p-1"]], "a weight for each"),
        ((*TABLE, "mixture", "weights", 0, 0), "-0x1p-1", "not negative"),
        ((*TABLE, "mixture", "parts", 0, "weight"), "nan", "not negative"),
        ((*TABLE, "mixture", "parts", 0, "weight"), "0x1p+1", "at most 1"),
        ((*TABLE, "mixture", "parts", 0, "view"), -1, "a place in the list"),
        ((*TABLE, "mixture", "parts", 0, "view"), 99, "out of range"),
        ((*TABLE, "mixture", "parts", 0, "view"), 0.5, "integer"),
        ((*TABLE, "mixture", "reader", "blocks"), [], "out of bounds"),
        ((*TABLE, "mixture"), None, "mixture"),
    ],
    ids=lambda value: "-".join(map(str, value)) if isinstance(value, tuple) else None,
)
def test_a_damaged_state_is_refused_with_what_is_wrong(path, value, said, request):
    with pytest.raises(StateError, match=said):
        read(damaged(request.getfixturevalue("small"), path, value))


EVEN = [(1.0 / 11).hex()] * 11


@pytest.mark.parametrize(
    ("read", "record"),
    [
        *((Steps.from_dict, {"edges": edges, "p": p}) for edges, p in [
            (["nan"], ["0x1p-1"] * 2), (["0x1p+1", "0x1p+0"], ["0x1p-1"] * 3), (["0x1p+0"], ["0x1p-1"]),
            (["0x1p+0"], ["0x1p-1", "nan"]), (["0x1p+0"], ["0x1p-1", "0x1.8p+0"]), (["one"], ["0x1p-1"] * 2),
        ]),
        *((Shifts.from_dict, {"edges": edges, "weights": weights}) for edges, weights in [
            (["nan"], [EVEN] * 2), (["0x1p+1", "0x1p+0"], [EVEN] * 3), (["0x1p+0"], [EVEN]),
            ([], [EVEN[1:]]), ([], [["nan", *EVEN[1:]]]), ([], [["-0x1p-4", *EVEN[1:]]]), ([], [["0x1p-1", *EVEN[1:]]]),
        ]),
        (Mixture.from_dict, {}),
        (Mixture.from_dict, {"views": [{"kind": "value"}], "parts": 3, "weights": []}),
    ],
)  # fmt: skip
def test_damaged_trees_and_mixtures_are_refused(read, record):
    with pytest.raises(ValueError, match=r"must|invalid hexadecimal"):
        read(record)


def test_sound_trees_are_read():
    assert Steps.from_dict({"edges": ["-inf", "0x1p+0"], "p": ["0x1p-1"] * 3})([0.0]) == [0.5]
    assert Shifts.from_dict({"edges": ["0x1p+0"], "weights": [EVEN] * 2}).weights.shape == (2, 11)


@pytest.fixture(scope="module")
def small():
    return state_of()


def test_states_of_two_claims_or_formats_are_not_joined(small):
    for changed in ({"claim": "0" * 16}, {"format": 1}):
        with pytest.raises(StateError, match="same claim and format"):
            joined(small, {**small, **changed})


def test_bins_are_those_of_the_format():
    """Counts are saved by the number of their bin: whoever changes the bins makes another format of saved states.

    The last bits of a power are those of a processor.
    """
    assert digest(tables.EDGES.round(9))[:24] == "04f8e07594430aa766cc101d"


def test_claims_of_pairs_that_ask_something_else_in_either_order_have_other_digests():
    claims = [parse_claim(text) for text in ("eps=1", "eps=1.5", "eps=1,delta=0.1", "mu=1", "rho=1", "order=2,rdp=1")]
    claims += [ProfileClaim(lambda epsilon: math.exp(-epsilon)), ProfileClaim(lambda epsilon: 0.5 * math.exp(-epsilon))]
    claims += [MetricDP(lambda x, y: abs(x - y)).for_pair(0.0, distance) for distance in (0.25, 0.75)]

    def tight(epsilon):
        return 0.1 * math.exp(-epsilon)

    def loose(epsilon):
        return 0.4 * math.exp(-epsilon)

    # The larger of both orders is the same of these two; what each order is promised is not.
    claims += [ProfileClaim(DirectedProfile(*both), "p") for both in ((tight, loose), (loose, tight))]
    assert len({claim_digest(claim) for claim in claims}) == len(claims)
    assert claim_digest(PureDP(1.0)) == claim_digest(parse_claim("eps=1"))
