"""Bounds are those of their records by formulas of another kind: nothing here has an error rate.

They are worked out again from published records with scipy.stats.
"""

import numpy as np
import pytest
from support.bounds import line_bound

import dpaudit
from dpaudit.audits import low_bits
from dpaudit.campaign.all_pairs import AllPairsGame
from dpaudit.features.outcomes import canonical, read_outputs
from dpaudit.inference.low_bit_rules import LowBitRule
from dpaudit.inference.pair_lines import WAYS, PairLines
from dpaudit.privacy.claims import ApproxDP
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject

# --- bounds from their records ---


def own_lines(pairs, delta):
    return PairLines(PairBudgets.same(ApproxDP(0.5, delta), pairs))


def told(data, size, rng):
    """Says its input with probability 0.3, and 12-ary randomised response at epsilon = 1 otherwise."""
    kept = rng.random(size) < np.e / (np.e + 11)
    other = np.where(kept, data, (data + rng.integers(1, 12, size=size)) % 12)
    return np.where(rng.random(size) < 0.3, data + 100, other)


def on_one_side(data, size, rng):
    """Says that it is 0 where it is, and nothing of the others: rules guess one input only."""
    return np.where((rng.random(size) < 0.4) & (data == 0), 100, 5)


@pytest.mark.parametrize("mechanism", [told, on_one_side])
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_the_bounds_of_a_table_are_those_of_its_records(mechanism, delta):
    first, second = np.triu_indices(6, 1)
    game = AllPairsGame(
        first, second, own_lines(len(first), delta), inputs=6, samples=2_000, error_rate=0.05,
        draw=WorkerPool().drawer(as_subject(mechanism), list(range(6)), 3, 8), coin=lambda: stream(3, 9),
    )  # fmt: skip
    game.start()
    game.play()
    sides = [1.0 + (len(rule.plus) > 0 and len(rule.minus) > 0) for rule in map(game.rule, range(15))]
    stated_sides = WAYS.sum(axis=1)[game.way].astype(float)
    expected = [
        line_bound(int(c), int(w), game.labelled, delta * s / 2.0, level)
        for c, w, s, level in zip(game.correct, game.wrong, stated_sides, game.level, strict=True)
    ]
    # Bounds are rounded down by 1e-9 for the special functions.
    assert game.lower == pytest.approx(expected, rel=1e-6, abs=1e-7)
    assert (game.lower > 0.1).sum() >= 5
    assert all(told_sides <= stated for told_sides, stated in zip(sides, stated_sides, strict=True))
    if mechanism is on_one_side and delta > 0.0:  # where a second event would cost something
        assert 1.0 in stated_sides[game.lower > 0.1]


def no_grid(data, size, rng):
    """Laplace noise that is rounded before the input is added, to a grid that tells the inputs apart."""
    return data + np.round(rng.laplace(scale=10.0, size=size), 2)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_the_bound_of_low_bits_is_that_of_its_record(delta):
    claim = f"eps=0.1,delta={delta}" if delta else "eps=0.1"
    result = dpaudit.audit(no_grid, claim, [(0.0, 0.123), (0.0, 1.0)], samples=4_000, seed=2)
    checked = result.floating_point
    assert {pair.error_share for pair in checked.pairs} == {checked.error_rate / len(checked.pairs)}
    leaks = [one for one in checked.pairs if one.verdict == "leaks"]
    assert leaks
    for pair in leaks:
        labelled = pair.correct + pair.wrong + pair.abstained
        sides = sum(LowBitRule.from_dict(pair.rule, 0.0, 1.0).guesses.directions)
        expected = line_bound(pair.correct, pair.wrong, labelled, delta * sides / 2.0, pair.error_share)
        assert pair.epsilon_lower == pytest.approx(expected, rel=2e-7, abs=1e-8)  # rounded down to 1e-7


def test_the_labels_of_a_witness_on_low_bits_are_fair():
    chances = []

    class Coin:
        def binomial(self, trials, chance):
            chances.append(chance)
            return trials // 2

    from dpaudit.audits.low_bits import Candidate, in_turn
    from dpaudit.privacy.claims import Budget
    from dpaudit.privacy.pairs import Pair

    rng = np.random.default_rng(4)
    draw = in_turn(lambda phase, i, chunk, size: read_outputs(no_grid([0.0, 0.123][i], size, rng), size))
    candidate = Candidate(Pair(0.0, 0.123), (0, 1), Budget(0.1, 0.0), 0)
    found = low_bits.examine([candidate], 2_000, draw, lambda place: Coin())
    assert chances == [0.5] and found.verdict == "leaks"


# --- what is drawn is drawn once ---


def test_a_table_counts_on_no_draw_of_its_pilot():
    drawn = []

    def noted(data, size, rng):
        values = data + rng.laplace(size=size)
        drawn.extend(values.tolist())
        return values

    first, second = np.triu_indices(4, 1)
    game = AllPairsGame(
        first, second, own_lines(6, 0.0), inputs=4, samples=500, error_rate=0.05,
        draw=WorkerPool().drawer(as_subject(noted), [0.0, 1.0, 2.0, 3.0], 3, 8), coin=lambda: stream(3, 9),
    )  # fmt: skip
    game.start()
    in_pilot = len(drawn)
    game.play()
    assert 0 < in_pilot < len(drawn) == game.runs == len(set(drawn))


# --- what an output is ---


def test_sets_are_read_without_their_order():
    assert list({0, 8}) != list({8, 0}) or list({0, 16, 8}) != list({8, 16, 0})  # the control: their order differs
    for one, other in (({0, 8}, {8, 0}), ({0, 8, 16}, {16, 8, 0}), (frozenset({"a", "b"}), frozenset({"b", "a"}))):
        assert canonical(one) == canonical(other)
        assert canonical({"a": [one]}) == canonical({"a": [other]})


def test_a_batch_is_read_by_its_items_and_not_by_their_place_in_memory():
    rng = np.random.default_rng(5)
    # 40 columns: up to 8 are added one after the other in any order of memory, and nothing would show.
    rows = rng.normal(size=(300, 40)) * 10.0 ** rng.integers(-8, 8, size=(300, 40))
    forms = [np.ascontiguousarray(rows), np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2], rows.tolist()]
    read = [read_outputs(form, 300) for form in forms]
    for other in read[1:]:
        assert np.array_equal(read[0].numbers, other.numbers) and other.numbers.flags.c_contiguous
        # Sums may depend on the order in memory: they are equal to the bit only if that is the same.
        assert np.array_equal(read[0].numbers.sum(axis=1), other.numbers.sum(axis=1))
