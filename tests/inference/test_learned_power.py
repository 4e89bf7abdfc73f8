"""Power of what has to be learned: how the curve is read, and which pairs it makes inconclusive."""

import math

import pytest

from dpaudit.audits.power import game_before_draws
from dpaudit.inference import learned_power
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.results.model import INTERVALS, LearnedLoss, Power


@pytest.fixture
def curve(monkeypatch):
    forms = {"one threshold": {"sequential": [[1_000, 2.0], [5_000, 1.5]], "fixed": [[1_000, None], [5_000, 3.0]]}}
    record = {"event_mass": 0.1, "forms": forms}
    monkeypatch.setattr(learned_power, "_measured", lambda: record)


@pytest.mark.parametrize(
    ("is_fixed", "draws", "expected"),
    [(False, 999, math.inf), (False, 1_000, 2.0), (False, 4_999, 2.0), (False, 5_000, 1.5), (False, 1e9, 1.5),
     (True, 1_000, math.inf), (True, 4_999, math.inf), (True, 5_000, 3.0)],
)  # fmt: skip
def test_between_measured_draws_the_larger_times_hold(curve, is_fixed, draws, expected):
    assert learned_power.times("one threshold", is_fixed, draws) == expected


def test_what_fewer_draws_promised_holds_on_where_larger_audits_were_measured_to_do_worse(monkeypatch):
    forms = {"one threshold": {"sequential": [[1_000, 2.0], [5_000, 8.0], [9_000, None]], "fixed": []}}
    monkeypatch.setattr(learned_power, "_measured", lambda: {"event_mass": 0.1, "forms": forms})
    worths = [learned_power.worth("one threshold", False, draws) for draws in (999, 1_000, 4_000, 9_000, 39_999, 1e9)]
    # From 1,000 on an eighth, since the larger times of both ends hold; beyond 5,000 nothing better is known.
    assert worths == [0.0, 125.0, 500.0, 625.0, 625.0, 625.0]


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-3), GaussianDP(1.0), ZeroConcentratedDP(0.5)], ids=str)
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_nothing_is_learned_better_than_it_is_known_and_the_game_stays_as_it_is(claim, mode):
    game = game_before_draws(claim, 40_000, mode, 0.05).main
    known, draws = game.power(0.1, 0.9)[0], game.draws
    learned = learned_power.learned_losses(game, 0.1, 0.9, mode == "fixed")
    assert [form for form, _ in learned] == list(learned_power.forms())
    # At rho = 0.5 so many draws find no loss at all, whoever knows the event.
    assert all(loss > known or loss == known == math.inf for _, loss in learned)
    assert game.draws == draws and game.power(0.1, 0.9)[0] == known


def power_of(claim, samples, mode="sequential"):
    game = game_before_draws(claim, 2 * samples - 24, mode, 0.05).main
    losses = learned_power.learned_losses(game, 0.1, 0.9, mode == "fixed")
    return Power(0.1, 0.9, *game.power(0.1, 0.9), tuple(LearnedLoss(*one) for one in losses))


@pytest.mark.parametrize(
    ("epsilon", "samples", "mode", "expected"),
    [
        (1.0, 100_000, "sequential", True),  # the default
        (1.0, 100_000, "fixed", True),
        (1.0, 5_000, "sequential", True),  # quick
        (0.5, 5_000, "sequential", True),
        (0.25, 5_000, "sequential", False),
        (1.0, 500, "sequential", False),  # where two intervals of loss 2 were found in 0 of 60 audits
        (1.0, 500, "fixed", False),
        (1.0, 2_000, "fixed", False),
    ],
)
def test_which_audits_of_sound_noise_are_worth_their_not_refuted(epsilon, samples, mode, expected):
    assert power_of(PureDP(epsilon), samples, mode).suffices(2.0) is expected


def test_the_rule_asks_the_best_case_and_the_learned_loss():
    def power(known, learned, allowed=1.0):
        return Power(0.1, 0.9, known, allowed, (LearnedLoss(INTERVALS, learned),))

    for worst in (3.1, math.inf):  # of another form than the intervals
        forms = LearnedLoss(INTERVALS, 2.5), LearnedLoss("residues", worst)
        assert Power(0.1, 0.9, 2.0, 1.0, forms).deciding == worst
        assert not Power(0.1, 0.9, 2.0, 1.0, forms).suffices(2.0)
    assert power(2.0, 3.0).suffices(2.0) and not power(2.0, 3.1).suffices(2.0) and not power(2.1, 3.0).suffices(2.0)
    assert not power(1.5, math.inf).suffices(2.0) and power(1.5, math.inf).excess(2.0) == math.inf
    assert power(0.1, 0.15, 0.0).suffices(2.0) and not power(0.1, 0.16, 0.0).suffices(2.0)
    older = Power(0.1, 0.9, 2.0, 1.0)  # of a file without learned figures
    assert older.suffices(2.0) and older.deciding == 2.0


@pytest.mark.parametrize(
    ("known", "allowed", "learned"),
    [
        (1.2, 1.0, [(INTERVALS, None)]),
        (1.2, 1.0, [("one threshold", 1.3), (INTERVALS, "inf")]),
        (1.2, 1.0, [("one threshold", 1.3)]),  # a form without which the others say too little is missing
        (None, 1.0, [(INTERVALS, 1.3)]),
        (None, 1.0, []),
        (1.2, None, [(INTERVALS, 1.3)]),
    ],
)
def test_a_figure_that_is_no_number_or_missing_in_a_file_lets_nothing_pass(known, allowed, learned):
    entries = [{"form": form, "loss": loss} for form, loss in learned]
    record = {"event_mass": 0.1, "probability": 0.9, "detectable": known, "at_budget": allowed, "learned": entries}
    power = Power.from_dict(record)
    assert power.excess(2.0) == math.inf and not power.suffices(2.0)
