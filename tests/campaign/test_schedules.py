"""What every schedule keeps: pilots of even size within the plan, and rounds that are a function of what is known."""

import numpy as np
import pytest

from dpaudit.arguments import MODES
from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import schedule_of
from dpaudit.features.outcomes import read_outputs
from dpaudit.privacy.claims import PureDP

each = pytest.mark.parametrize("mode", MODES)


@each
def test_a_pilot_is_even_and_leaves_at_least_half_to_the_test(mode):
    for samples in (1, 2, 3, 7, 10, 64, 999, 10**4, 10**6, 10**8):
        for pairs in (1, 2, 45):
            schedule = schedule_of(mode, samples, pairs, 2 * pairs)
            assert schedule.pilot % 2 == 0 and 2 <= schedule.pilot <= max(2, schedule.planned // 2)
            assert schedule.planned <= schedule.limit


def draw(tasks):
    results = []
    for task in tasks:
        rng = np.random.default_rng([task.input, task.round, task.chunk])
        outcomes = read_outputs(0.2 * task.input + rng.laplace(size=task.size), task.size)
        results.append(task.result_on(outcomes))
    return results


@each
def test_a_round_is_a_function_of_what_is_known_before_it_and_asks_open_pairs_alone(mode):
    def coin(*key):
        return np.random.default_rng([5, *key])

    game = LabelGame(
        [PureDP(1.0)] * 3, [(0, 1), (1, 2), (0, 2)], samples=400, error_rate=0.05, mode=mode, draw=draw, coin=coin
    )
    game.start()
    rounds = 0
    while True:
        open_pairs = [k for k, pair in enumerate(game.pairs) if game._left(pair) > 0]
        before = [pair.labelled for pair in game.pairs]
        sizes, again = (game.schedule.sizes(game.pairs, open_pairs, game.runs) if open_pairs else {} for _ in (0, 1))
        assert sizes == again
        if not game.round():
            break
        rounds += 1
        took = {k: pair.labelled - before[k] for k, pair in enumerate(game.pairs) if pair.labelled != before[k]}
        assert set(took) == set(sizes) <= set(open_pairs)
        assert all(took[k] > 0 for k in sizes)
    assert sizes == {}
    assert rounds == 1 if mode == "fixed" else rounds > 5
    assert all(game.labelled(pair) <= game.schedule.limit for pair in game.pairs)
