"""The state of bets as data: what goes on from it is, bit by bit, what would have gone on without it."""

import json
import math

import numpy as np
import pytest

from dpaudit.campaign.label_game import LabelGame
from dpaudit.learning import paths
from dpaudit.privacy.claims import MetricDP, ProfileClaim, PureDP, RenyiDP
from dpaudit.privacy.parsing import parse_claim
from dpaudit.reading.kept_outputs import packed, unpacked
from dpaudit.reading.outcomes import read_outputs
from dpaudit.running.draws import Drawer
from dpaudit.running.streams import stream
from dpaudit.subjects.callables import as_subject
from dpaudit.testing import sequential_game
from dpaudit.testing.order import Change
from dpaudit.testing.pair_game import PairGame
from dpaudit.testing.saved_state import StateError, claim_digest, counts_of, joined, pair_state, restored

FAMILIES = {"eps=1": 200, "eps=0.8,delta=0.01": 100, "mu=0.9": 50, "rho=0.4": 40, "order=2,rdp=0.8": 40}


def normal(data, size, rng):
    return data + rng.normal(size=size)


def words(data, size, rng):
    return [("yes" if value else "no", None, 1.5) for value in rng.random(size) < 0.5 + 0.2 * data]


class Laplace:
    """With a log density, which scores rest on."""

    def sample(self, data, size, rng):
        return data + rng.laplace(size=size)

    def log_density(self, data, outputs):
        return -np.abs(outputs - data) - math.log(2.0)


def game_of(mechanism, claim, seed, samples=200):
    subject, data = as_subject(mechanism), [0.0, 1.0]
    return LabelGame(
        [parse_claim(claim) if isinstance(claim, str) else claim],
        [(0, 1)],
        samples=samples,
        error_rate=0.05,
        mode="sequential",
        draw=Drawer(subject, data, seed, 0),
        coin=lambda round_, pair: stream(seed, 1, round_, pair),
        log_density=subject.log_density if subject.has_log_density else None,
        data=data,
        horizon=20_000,
    )


def through_text(state):
    return json.loads(json.dumps(state))


def played(mechanism, claim, seed=1, samples=200):
    game = game_of(mechanism, claim, seed, samples)
    game.start()
    game.play()
    return game


def gone_on(mechanism, claim, state, kept, seed=2, samples=200):
    game = game_of(mechanism, claim, seed, samples)
    log_density = as_subject(mechanism).log_density if hasattr(mechanism, "log_density") else None
    game.pairs = [restored(state, game.pairs[0], log_density, 0.0, 1.0)]
    game.go_on(kept)
    return game


@pytest.mark.parametrize(
    ("mechanism", "claim", "samples"),
    [*((normal, *item) for item in FAMILIES.items()), (words, "eps=1", 100), (Laplace(), "eps=1", 100)],
    ids=[*FAMILIES, "objects", "log density"],
)
def test_what_goes_on_from_a_saved_state_is_what_would_have_gone_on_bit_by_bit(mechanism, claim, samples):
    first = played(mechanism, claim, 1, samples)
    state = through_text(pair_state(first.pairs[0], "1"))
    kept = {i: unpacked(packed(first.kept(i))) for i in (0, 1)}
    other = gone_on(mechanism, claim, state, kept, 2, samples)
    same = game_of(mechanism, claim, 2, samples)
    same.pairs = first.pairs
    same.go_on({i: first.kept(i) for i in (0, 1)})
    other.play()
    same.play()
    ours, theirs = (through_text(pair_state(game.pairs[0], "2")) for game in (other, same))
    assert ours == theirs
    assert ours["labelled"] > state["labelled"] > 0
    assert other.pairs[0].main.log_wealth == same.pairs[0].main.log_wealth
    assert other.pairs[0].main.lower == same.pairs[0].main.lower
    assert other.pairs[0].main.rule_record() == same.pairs[0].main.rule_record()


def test_a_state_that_is_read_and_written_again_is_the_same():
    state = through_text(pair_state(played(normal, "mu=0.9", 1, 40).pairs[0], "1"))
    again = restored(state, game_of(normal, "mu=0.9", 3).pairs[0], None, 0.0, 1.0)
    assert through_text(pair_state(again, "2")) == state


def test_every_draw_that_was_counted_is_in_the_state():
    game = played(normal, "eps=1")
    assert counts_of(pair_state(game.pairs[0], "1")).sum() == game.pairs[0].labelled == 376  # 400 less the pilot's 24


def test_joined_states_of_disjoint_draws_multiply():
    first, second = (pair_state(played(normal, "eps=1", seed).pairs[0], str(seed)) for seed in (1, 2))
    both = joined(first, second)
    assert both["labelled"] == first["labelled"] + second["labelled"] == counts_of(both).sum()
    game = restored(through_text(both), game_of(normal, "eps=1", 3).pairs[0], None, 0.0, 1.0)
    assert game.main.now == pytest.approx(first["uses"][0]["now"] + second["uses"][0]["now"], abs=1e-9)


def test_what_two_added_to_one_state_is_joined_to_it_once():
    base = played(normal, "eps=1")
    state = through_text(pair_state(base.pairs[0], "1"))
    kept = {i: base.kept(i) for i in (0, 1)}
    nights = []
    for seed in (2, 3):
        game = gone_on(normal, "eps=1", state, kept, seed)
        game.play()
        nights.append(through_text(pair_state(game.pairs[0], str(seed))))
    both = joined(nights[0], nights[1], state)
    assert both["labelled"] == nights[0]["labelled"] + nights[1]["labelled"] - state["labelled"]
    assert counts_of(both).sum() == both["labelled"]
    assert joined(nights[0], state, state)["labelled"] == nights[0]["labelled"]


def test_two_fits_that_are_the_same_have_counts_of_their_own():
    """As Renyi games have them, where nothing is worth a bet; the second one has counted more than the first here."""
    rng = np.random.default_rng(0)

    def drawn(x, size):
        return read_outputs(np.where(rng.random(size) < 0.73, x, 1 - x), size)

    def counted(pair, size):
        for _, game in pair.uses:
            game.add(game.statistic.count(drawn(0, size // 2)), game.statistic.count(drawn(1, size // 2)))
        pair.labelled += size

    claim = RenyiDP(2.0, 5.0)
    fitted, pair = (drawn(0, 400), drawn(1, 400)), PairGame(claim, (0, 1), True, 1_000)
    pair.fit(*fitted, 0.05)
    pair.start(0.05)
    counted(pair, 100)
    pair.fit(*fitted, 0.05)
    counted(pair, 300)
    base = pair_state(pair, "1/0")
    assert len({epoch["id"] for epoch in base["uses"][0]["epochs"]}) == 1
    both = []
    for origin, size in (("1/0", 20), ("2/0", 10)):
        again = restored(base, PairGame(claim, (0, 1), True, 1_000), None, 0, 1)
        counted(again, size)
        both.append(pair_state(again, origin))
    state = joined(*both, base)
    assert counts_of(state).sum() == state["labelled"] == 430
    assert [np.sum(epoch["live"]) for epoch in state["uses"][0]["epochs"]] == [100, 330]


def test_negative_counts_of_a_renyi_state_are_refused():
    state = through_text(pair_state(played(normal, "rho=0.5").pairs[0], "1"))
    state["uses"][0]["epochs"][0]["live"][0][0] = -1
    with pytest.raises(StateError, match="counts must not be negative"):
        restored(state, game_of(normal, "rho=0.5", 2).pairs[0], None, 0.0, 1.0)


def test_what_was_counted_in_an_epoch_that_the_other_one_dropped_is_kept():
    state = through_text(pair_state(played(normal, "eps=1").pairs[0], "1"))
    base, own = through_text(state), through_text(state)
    last = base["uses"][0]["epochs"][-1]
    last["live"] = [[[0] * len(row) for row in part] for part in last["live"]]
    base["labelled"] = own["labelled"] = int(counts_of(base).sum())
    own["uses"][0]["epochs"].pop()
    both = joined(own, state, base)
    assert counts_of(both).sum() == both["labelled"] == state["labelled"] > base["labelled"]


def test_states_of_two_engines_are_not_joined_to_one():
    state = through_text(pair_state(played(normal, "eps=1").pairs[0], "1"))
    other = through_text(state)
    other["uses"][0]["carried"] = 1.0
    for first, second in ((state, other), (other, state)):
        with pytest.raises(StateError, match="one engine"):
            joined(first, second, state)


def test_bets_of_another_engine_go_on_as_a_number(monkeypatch):
    first = played(normal, "eps=0.5")
    state = through_text(pair_state(first.pairs[0], "1"))
    kept = {i: first.kept(i) for i in (0, 1)}
    before = first.pairs[0].main
    monkeypatch.setattr(paths, "END_SHARE", 0.2)
    game = gone_on(normal, "eps=0.5", state, kept)
    pair = game.pairs[0]
    assert pair.main.now == pytest.approx(state["uses"][0]["now"], abs=1e-12)
    assert len(pair.main.epochs) == 1 and pair.main.lower >= before.known_lower
    game.play()
    assert pair.labelled > state["labelled"] or pair.is_violated
    assert pair.is_violated == (pair.main.lower > 0.5)
    again = restored(through_text(pair_state(pair, "2")), game_of(normal, "eps=0.5", 3).pairs[0], None, 0.0, 1.0)
    assert again.main.now == pytest.approx(pair.main.now, abs=1e-9)


def test_a_state_goes_on_with_the_share_that_its_own_engine_held_back(monkeypatch):
    lower = {}
    for caution in (0.0, 60.0):
        monkeypatch.setattr(sequential_game, "CAUTION", caution)
        before = played(normal, "eps=0.5").pairs[0].main
        state = through_text(pair_state(played(normal, "eps=0.5").pairs[0], "1"))
        for epoch in state["uses"][0]["epochs"]:
            assert (epoch["idle"] > 0.0) == (caution > 0.0)
            if caution == 0.0:
                del epoch["idle"]  # an engine that held nothing back did not say so
        monkeypatch.setattr(sequential_game, "CAUTION", 30.0)
        game = restored(state, game_of(normal, "eps=0.5", 3).pairs[0], None, 0.0, 1.0).main
        assert game.state["carried"] is None and game.epochs
        assert game.now == before.now
        # The search begins at the bound that is known: it may come nearer to the value that is not rejected any more.
        assert before.lower <= game.lower <= before.lower * (1.0 + sequential_game.PRECISION)
        lower[caution] = game.lower
    assert lower[0.0] != lower[60.0]


@pytest.mark.parametrize("idle", [-0.1, 1.0, math.nan])
def test_a_state_that_holds_back_an_impossible_share_is_refused(idle):
    state = through_text(pair_state(played(normal, "eps=1").pairs[0], "1"))
    state["uses"][0]["epochs"][0]["idle"] = idle
    with pytest.raises(StateError, match="idle must be in"):
        restored(state, game_of(normal, "eps=1", 3).pairs[0], None, 0.0, 1.0)


def carrying(won, monkeypatch):
    """The use of a pair whose bets another engine has counted: the log wealth `won` is all that goes on."""
    state = through_text(pair_state(played(normal, "eps=1").pairs[0], "1"))
    state["uses"][0] |= {"now": won, "lower": 0.0}
    monkeypatch.setattr(paths, "END_SHARE", 0.2)
    return restored(state, game_of(normal, "eps=1", 3).pairs[0], None, 0.0, 1.0).main


def test_what_is_carried_rejects_the_budget_alone_and_from_its_own_threshold_on(monkeypatch):
    goal = -math.log(1.0 - 0.95) - math.log(carrying(1.0, monkeypatch).state["share"])
    enough, short = carrying(goal + 1e-6, monkeypatch), carrying(goal - 1e-6, monkeypatch)
    assert enough.state["carried"] == enough.now == goal + 1e-6
    assert enough.lower == enough.state["watched"] and 1.0 < enough.lower < 1.0 + 1e-6  # nothing is said of more
    assert short.lower == 0.0  # bets for lower targets have lost all: not even these add to it


@pytest.mark.parametrize("claim", ["eps=3", "mu=3"])
def test_bets_for_lower_targets_that_were_made_in_another_way_have_lost_all(claim):
    """What another version made of them is no second chance: the bounds that were known stay, and none is added."""
    before = played(normal, claim, samples=2_000).pairs[0]
    state = through_text(pair_state(before, "1"))
    assert 0.0 < before.main.lower == state["uses"][0]["lower"] < 3.0
    now = state["uses"][0]["lower_bets"]
    for version, known in ((None, 0.0), (0, 0.3), (now - 1, 0.0), (7, 0.0), (now, 0.0)):
        read = through_text(state)
        read["uses"][0] |= {"lower": known, "lower_bets": version}
        if version is None:  # the first way did not say so
            del read["uses"][0]["lower_bets"]
        again = restored(read, game_of(normal, claim, 3).pairs[0], None, 0.0, 1.0).main
        is_same = version == now
        assert again.now == before.main.now  # those for the budget are as they were
        assert again.lower == (before.main.lower if is_same else known)
        assert again.state["lower_bets"] == (now if is_same else 0)


def test_the_bound_of_a_free_line_comes_near_the_truth_from_a_budget_far_above_it():
    """Normal noise of mu = 1. A bound above that has a probability of at most 0.05; the seed is fixed."""
    assert 0.6 < played(normal, "mu=3", samples=3_000).pairs[0].main.lower <= 1.0


def test_states_whose_lower_bets_were_made_in_two_ways_have_none_together():
    first, second = (through_text(pair_state(played(normal, "mu=1", seed).pairs[0], str(seed))) for seed in (1, 2))
    assert joined(first, second)["uses"][0]["lower_bets"] == first["uses"][0]["lower_bets"] > 0
    del second["uses"][0]["lower_bets"]
    assert joined(first, second)["uses"][0]["lower_bets"] == joined(second, first)["uses"][0]["lower_bets"] == 0
    second["uses"][0] |= {"lower_bets": first["uses"][0]["lower_bets"], "deep_targets": []}
    assert joined(first, second)["uses"][0]["lower_bets"] == joined(second, first)["uses"][0]["lower_bets"] == 0


def test_a_state_without_deep_targets_goes_on_without_them():
    """An engine that had none shared all that is not for the budget among the others: shares are more than all then."""
    state = through_text(pair_state(played(normal, "eps=3", samples=2_000).pairs[0], "1"))
    assert len(state["uses"][0]["deep_targets"]) > 2
    pair = game_of(normal, "eps=3", 3).pairs[0]
    assert sum(restored(state, pair, None, 0.0, 1.0).main._shares) == pytest.approx(1.0, abs=1e-12)
    del state["uses"][0]["deep_targets"]
    shares = restored(state, game_of(normal, "eps=3", 3).pairs[0], None, 0.0, 1.0).main._shares
    assert len(shares) == 1 + len(state["uses"][0]["targets"]) and sum(shares) == pytest.approx(1.0, abs=1e-12)


def test_what_two_states_carry_multiplies_and_what_they_have_in_common_counts_once():
    first, second = (through_text(pair_state(played(normal, "eps=1", seed).pairs[0], str(seed))) for seed in (1, 2))
    first["uses"][0]["carried"], second["uses"][0]["carried"] = 1.5, 2.25
    assert joined(first, second)["uses"][0]["carried"] == 3.75
    assert joined(first, first, first)["uses"][0]["carried"] == 1.5
    first["uses"][0]["carried"] = None
    assert joined(first, second)["uses"][0]["carried"] == joined(second, first)["uses"][0]["carried"] == 2.25


def test_a_state_of_another_claim_or_format_or_without_its_parts_is_refused():
    state = through_text(pair_state(played(normal, "eps=1", samples=100).pairs[0], "1"))
    for claim, changed, words_ in (
        ("eps=2", {}, "same claim"),
        ("eps=1", {"format": 99}, "format"),
        ("eps=1", {"uses": []}, "one that was saved"),
        ("eps=1", {"uses": [{}]}, "one that was saved"),
    ):
        with pytest.raises(StateError, match=words_):
            restored({**state, **changed}, game_of(normal, claim, 2).pairs[0], None, 0.0, 1.0)
    damaged = through_text(state)
    damaged["uses"][0]["epochs"][0]["live"][0][0][0] = -5
    with pytest.raises(StateError, match="one that was saved"):
        restored(damaged, game_of(normal, "eps=1", 2).pairs[0], None, 0.0, 1.0)


def test_claims_of_pairs_that_ask_something_else_have_other_digests():
    claims = [parse_claim(text) for text in ("eps=1", "eps=1.5", "eps=1,delta=0.1", "mu=1", "rho=1", "order=2,rdp=1")]
    claims += [ProfileClaim(lambda epsilon: math.exp(-epsilon)), ProfileClaim(lambda epsilon: 0.5 * math.exp(-epsilon))]
    claims += [MetricDP(lambda x, y: abs(x - y)).for_pair(0.0, distance) for distance in (0.25, 0.75)]
    assert len({claim_digest(claim) for claim in claims}) == len(claims)
    assert claim_digest(PureDP(1.0)) == claim_digest(parse_claim("eps=1"))
    # What is stored of it is found again, whatever orders a later version bets at.
    assert claim_digest(RenyiDP(32.0, 1.0)) == "dbc62b715377969c"


def test_outputs_of_every_kind_are_kept_as_they_are():
    rows = [None, True, 3, 2**80, 1.5, -0.0, math.inf, "é\ud800", b"\0", (1, [2.0]), {"a": {1}}, np.float32(0.1)]
    outcomes = read_outputs(rows, len(rows))
    again = unpacked(packed(outcomes))
    assert again.tokens.tolist() == outcomes.tokens.tolist()
    assert [type(value) for value in again.raw] == [type(value) for value in rows]
    for array in (np.arange(6).reshape(3, 2), np.array([[math.nan, math.inf]]), np.zeros((2, 3, 4)), np.ones(2, bool)):
        outcomes = read_outputs(array, len(array))
        again = unpacked(packed(outcomes))
        assert again.numbers.tobytes() == outcomes.numbers.tobytes()
        assert (again.shape, again.is_integer) == (outcomes.shape, outcomes.is_integer)


def test_outputs_that_are_no_plain_values_are_not_kept_and_damaged_ones_are_refused():
    assert packed(read_outputs([object(), 1.0], 2)) is None
    data = packed(read_outputs(np.arange(3.0), 3))
    for damaged in (b"", b"X" + data[1:], data[:8], b"O" + data[1:], data[:1] + b"\0" + data[2:]):
        with pytest.raises(ValueError, match="outputs must be ones that were kept"):
            unpacked(damaged)


# --- orders of paths ---


def without_orders(state):
    """As engines wrote it that knew free paths alone: no twins, and the weights of the others."""
    result = through_text(state)
    for use in result["uses"]:
        use["now"] = None
        for epoch in use["epochs"]:
            orders = [part.pop("orders") for part in epoch["partitions"]]
            firsts = np.cumsum([0, *map(len, orders)])[:-1].tolist()
            del epoch["rises"], epoch["centre"]
            for name in ("switch", "evidence", "log_weights"):
                epoch[name] = [epoch[name][k] for k in firsts]
            weights = np.exp(epoch["log_weights"])
            epoch["log_weights"] = np.log(weights / weights.sum()).tolist()
    return result


def test_a_state_that_does_not_say_whether_draws_depended_on_each_other_is_read():
    game = played(normal, "eps=1")
    state = through_text(pair_state(game.pairs[0], "a"))
    assert state.pop("change") is None
    read = gone_on(normal, "eps=1", state, {}).pairs[0]
    assert read.change is None and joined(state, state)["change"] is None
    game.pairs[0].change = Change("outcomes are all alike", 1e-12)
    state = through_text(pair_state(game.pairs[0], "a"))
    assert gone_on(normal, "eps=1", state, {}).pairs[0].earlier_change == game.pairs[0].change


def test_twins_are_saved_once_and_come_back_as_twins():
    state = through_text(pair_state(played(normal, "eps=1").pairs[0], "a"))
    epoch = state["uses"][0]["epochs"][-1]
    assert epoch["partitions"][0]["orders"] == ["free", "mirrored", "monotone"]
    assert len(epoch["live"]) == len(epoch["partitions"]) < len(epoch["switch"])
    game = gone_on(normal, "eps=1", state, {}).pairs[0].main
    for k, partition in enumerate(game.epochs[0].partitions[:3]):
        assert partition.order == ("free", "mirrored", "monotone")[k]
        assert partition.cells is game.epochs[0].cells[0]  # so that the score is looked at once
    assert game.now == pytest.approx(state["uses"][0]["now"], abs=1e-9)


@pytest.mark.parametrize("claim", ["eps=1", "eps=0.8,delta=0.01", "mu=0.9"])
def test_states_without_orders_go_on_with_free_paths(claim):
    before = pair_state(played(normal, claim, samples=FAMILIES[claim]).pairs[0], "a")
    old = without_orders(before)
    pair = restored(old, game_of(normal, claim, 2).pairs[0], None, 0.0, 1.0)
    for use, (_, game) in zip(old["uses"], pair.uses, strict=True):
        for record, epoch in zip(use["epochs"], game.epochs, strict=True):
            assert {partition.order for partition in epoch.partitions} == {"free"}
            assert epoch.book.paths.rises.tolist() == [0] * len(record["partitions"])
            assert np.exp(epoch.bets.log_weights).sum() == pytest.approx(1.0)
    saved = pair_state(pair, "b")
    assert counts_of(saved).tolist() == counts_of(before).tolist()
    assert [use["epochs"] for use in saved["uses"]] == [use["epochs"] for use in old["uses"]]  # as they were written
    with_twins = restored(through_text(before), game_of(normal, claim, 2).pairs[0], None, 0.0, 1.0)
    for (_, old_game), (_, game) in zip(pair.uses, with_twins.uses, strict=True):
        for old_epoch, epoch in zip(old_game.epochs, game.epochs, strict=True):
            lines = old_game._lines(old_game.claim.value, old_epoch.bets.components)
            free = epoch.bets.log_wealth(epoch.book.live, *lines)[epoch.of_each_cells]
            # 1e-9: the same sums, beside other partitions; each of thousands of terms is off by some 1e-16 of it
            assert np.allclose(old_epoch.bets.log_wealth(old_epoch.book.live, *lines), free, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("centre", lambda old: [99 if k == 1 else v for k, v in enumerate(old)]),
        ("centre", lambda old: [3 if k == 0 else v for k, v in enumerate(old)]),
        ("rises", lambda old: [0 if k == 1 else v for k, v in enumerate(old)]),
        ("rises", lambda old: [1 if k == 0 else v for k, v in enumerate(old)]),
        ("rises", lambda old: [0.5 if k == 1 else v for k, v in enumerate(old)]),
        ("rises", lambda old: old[1:]),
        ("rises", lambda old: [10**30 if k == 1 else v for k, v in enumerate(old)]),
        ("switch", lambda old: [0.0, *old[1:]]),
        ("switch", lambda old: [[v] for v in old]),
        ("partitions", lambda old: [{**old[0], "orders": ["free", "sideways", "monotone"]}, *old[1:]]),
        ("partitions", lambda old: [{**old[0], "orders": ["mirrored", "free", "monotone"]}, *old[1:]]),
        ("partitions", lambda old: [{**old[0], "orders": ["free", "free", "monotone"]}, *old[1:]]),
        ("partitions", lambda old: [{**old[0], "orders": []}, *old[1:]]),
        ("partitions", lambda old: [old[0], {**old[1], "kind": old[0]["kind"]}, *old[2:]]),
    ],
)
def test_orders_that_cannot_be_are_refused(name, value):
    # Validity: with a centre beyond the cells a wealth would hang on what is computed beside it.
    state = through_text(pair_state(played(normal, "eps=1", samples=60).pairs[0], "a"))
    epoch = state["uses"][0]["epochs"][-1]
    epoch[name] = value(epoch[name])
    with pytest.raises(StateError, match="state must be one that was saved"):
        restored(state, game_of(normal, "eps=1", 2).pairs[0], None, 0.0, 1.0)
