"""What the games against hockey-stick lines share: the search for the bound, and the power.

Nothing here is random: the probabilities are exact sums over all labelled draws, so no assertion has an error rate.
"""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit.learning.cells import Cells
from dpaudit.learning.fitted_partitions import Partition
from dpaudit.learning.rules import Rule
from dpaudit.learning.scores import Coordinate
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.reading.outcomes import Reading
from dpaudit.testing import wealth
from dpaudit.testing.fixed_game import FixedGame
from dpaudit.testing.hockey_stick import ANCHORS, just_above, largest_in_excess, largest_rejected
from dpaudit.testing.sequential_game import BET_ANCHORS, BUDGET_SHARE, SequentialGame

FIXED = settings(derandomize=True, deadline=None, max_examples=60)


def keep(epsilon):
    return math.exp(epsilon) / (1.0 + math.exp(epsilon))


# --- the search for the bound ---


@FIXED
@given(end=st.floats(0.0, 50.0), lowest=st.floats(0.0, 10.0), budget=st.floats(0.0, 10.0), points=st.integers(2, 40))
def test_largest_rejected_finds_the_end_of_the_interval_from_below(end, lowest, budget, points):
    found = largest_rejected(lambda values: values <= end, lowest, budget, points)
    if end < lowest:
        assert found == lowest  # nothing new: the old bound stays
    else:
        assert found <= end or found == 0.0
        assert found == pytest.approx(end, rel=1.1e-7, abs=1.1e-12)


def test_largest_rejected_stops_where_everything_is_rejected():
    assert 5e5 <= largest_rejected(lambda values: values >= 0.0, 0.0, 1.0) <= 2e6


def test_largest_rejected_is_zero_where_nothing_is_rejected():
    assert largest_rejected(lambda values: values < 0.0, 0.0, 1.0) == 0.0


@pytest.mark.parametrize("budget", [0.0, 1e-9, 0.3, 1.0, 12.0, 700.0])
def test_a_bound_above_the_budget_is_one_that_counts_as_a_violation(budget):
    assert just_above(budget) > budget
    # rejected at just above the budget, or not: the bound says which, however coarse the search
    for precision in (1e-7, 1e-3, 0.1):
        above = largest_rejected(lambda values: values <= just_above(budget), 0.0, budget, 4, precision)
        below = largest_rejected(lambda values: values <= budget, 0.0, budget, 4, precision)
        assert above > budget >= below
        above = largest_in_excess(lambda value: just_above(budget) - value, 0.0, budget, precision)
        below = largest_in_excess(lambda value: budget - value, 0.0, budget, precision)
        assert above > budget >= below


@pytest.mark.parametrize("points", [5, 8])
def test_a_search_asks_for_as_many_values_at_once_as_it_is_told(points):
    sizes = []

    def rejected(values):
        sizes.append(len(values))
        return values <= 0.7

    largest_rejected(rejected, 0.0, 1.0, points)
    assert set(sizes) == {2, points - 1}  # the ends first; then each interval is cut into so many parts


@FIXED
@given(end=st.floats(0.0, 50.0), budget=st.floats(0.0, 10.0), precision=st.sampled_from([1e-3, 1e-2]))
def test_a_coarse_search_errs_downwards(end, budget, precision):
    found = largest_rejected(lambda values: values <= end, 0.0, budget, 4, precision)
    assert found <= end and found == pytest.approx(end, rel=1.01 * precision, abs=1e-11)


SHAPES = {
    "of a bet": lambda distance: math.copysign(distance**2, distance) * 1e4,
    "line": lambda distance: 50.0 * distance,
    "step": lambda distance: math.copysign(3.0, distance),
    "flat above": lambda distance: distance * 1e6 if distance >= 0.0 else -1e-3,
    "flat below": lambda distance: 1e-3 if distance >= 0.0 else distance * 1e6,
    "lost above": lambda distance: 50.0 * distance if distance >= 0.0 else -math.inf,
}


@FIXED
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    end=st.floats(0.0, 50.0),
    lowest=st.floats(0.0, 10.0),
    budget=st.floats(0.0, 10.0),
    precision=st.sampled_from([1e-7, 2e-3, 1e-2]),
)
def test_a_search_by_the_excess_finds_what_one_by_its_sign_does(shape, end, lowest, budget, precision):
    asked = []

    def excess(value):
        asked.append(value)
        return SHAPES[shape](end - value)

    found = largest_in_excess(excess, lowest, budget, precision)
    if end < lowest:
        assert found == lowest  # nothing new: the old bound stays
    else:
        assert found == 0.0 or found <= end
        assert found == pytest.approx(end, rel=1.01 * precision, abs=1e-11)
        assert (found > budget) == (excess(just_above(budget)) >= 0.0)
    # Three guesses at most for a halving of an interval that is 100 to begin with, and one to double it each time.
    assert len(asked) <= 3 * math.log2(100.0 / (precision * max(end, 1e-9))) + 60


def test_a_search_by_the_excess_stops_where_everything_is_rejected_and_where_nothing_is_a_number():
    assert 5e5 <= largest_in_excess(lambda value: 1.0, 0.0, 1.0, 2e-3) <= 2e6
    assert largest_in_excess(lambda value: -1.0, 0.0, 1.0, 2e-3) == 0.0
    assert largest_in_excess(lambda value: math.nan, 0.3, 1.0, 2e-3) == 0.3


def test_a_search_by_the_excess_of_a_bet_asks_for_few_values():
    for end in (0.2, 0.9, 0.98, 1.5):
        asked = []

        def excess(value, end=end, asked=asked):
            asked.append(value)
            return math.copysign((end - value) ** 2, end - value) * 1e5

        largest_in_excess(excess, 0.0, 1.0, 2e-3)
        assert len(asked) <= 6  # by halves it is 10 and more


@pytest.mark.parametrize(("of_rejected", "of_others"), [(1e-200, 1e200), (1e200, 1e-200)])
def test_a_search_whose_guesses_are_all_at_one_end_is_halved(of_rejected, of_others):
    for end in (0.2, 0.9, 1.5):
        asked = []

        def excess(value, end=end, asked=asked):
            asked.append(value)
            return of_rejected if value <= end else -of_others

        assert largest_in_excess(excess, 0.0, 1.0, 2e-3) == pytest.approx(end, rel=2.1e-3)
        assert len(asked) <= 3 * math.log2(2.0 / (2e-3 * end)) + 6  # at most three guesses for each halving


# --- power ---


def test_the_lines_of_a_free_family_begin_at_zero_and_rise():
    assert ANCHORS[0] == 0.0 and all(one < other for one, other in itertools.pairwise(ANCHORS))


def exact_power(game, loss, mass, critical):
    """Double sum over the number of guesses and of correct ones."""
    total = 0.0
    for guesses in range(game.draws + 1):
        weight = stats.binom.pmf(guesses, game.draws, mass)
        if weight > 1e-12:
            total += weight * stats.binom.sf(critical(guesses) - 1, guesses, keep(loss))
    return total


def sequential_game(claim, draws, level):
    """One that is fitted: on no draws, since its power takes the witness to know the events."""
    game = SequentialGame(claim, draws)
    game.start(level)
    nothing = Cells(Coordinate(0, 1), np.zeros(1), Reading(1))
    game.fit([Partition(nothing, np.zeros((2, 3), dtype=np.int64), "no draws")], level)
    return game


def fixed_game(claim, draws, level):
    game = FixedGame(claim, draws)
    game.start(level)
    return game


def first_count_that_rejects(game, guesses):
    """Of correct guesses, by a search through the tests themselves: that of a rule with two events."""
    low, high = -1, guesses + 1
    epsilon, delta = (float(part[0]) for part in game.claim.lines(np.array([game.claim.value]), 0.0))
    fraction = wealth.fractions(game.draws, -math.log(game.level))
    while high - low > 1:
        middle = (low + high) // 2
        if isinstance(game, SequentialGame):
            record = np.array([[0, 0, 0], [middle, guesses - middle, game.draws - guesses]])
            log = float(wealth.log_wealth(record, np.array([epsilon]), np.array([delta]), fraction)[0])
            rejects = log + math.log(BUDGET_SHARE) >= -math.log(game.level)
        else:
            attempt = fixed_game(game.claim, game.draws, game.level)
            attempt.set_rule(Rule(Coordinate(0, 1), 0.0, 0.0, 1, Reading(1)), 0.0)
            attempt.add(np.array([0, middle, game.draws - guesses]), np.array([0, guesses - middle, 0]))
            rejects = attempt.p_value <= game.level
        low, high = (low, middle) if rejects else (middle, high)
    return high


@pytest.mark.parametrize("kind", [fixed_game, sequential_game])
@pytest.mark.parametrize("claim", [PureDP(1.0), PureDP(0.0), ApproxDP(0.5, 0.01), ApproxDP(1.0, 0.1)], ids=str)
@pytest.mark.parametrize("mass", [0.1, 0.5, 1.0])
def test_the_detectable_loss_is_found_with_the_stated_probability(kind, claim, mass):
    game = kind(claim, 2_000, 0.05)
    detectable, _ = game.power(mass, 0.9)
    if math.isinf(detectable):
        assert claim.delta >= mass  # guesses no likelier than delta prove nothing
        return
    power = exact_power(game, detectable, mass, lambda guesses: first_count_that_rejects(game, guesses))
    assert power >= 0.9 - 1e-9
    assert power < 0.99  # and the figure is not far above what is needed


@pytest.mark.parametrize(("mu", "mass"), [(1.5, 0.1), (0.7, 0.07), (1.0, 0.2), (2.0, 0.05)])
def test_the_power_of_bets_is_that_of_lines_that_are_bet_at(mu, mass):
    """A loss below that is found in no number of draws; with all of `ANCHORS` 0 of 30 audits found what was said."""
    game = sequential_game(GaussianDP(mu), 10**6, 0.05)
    detectable, at_budget = game.power(mass, 0.9)
    broken = False
    for anchor in BET_ANCHORS:
        line = game._line_at_budget(anchor)
        if math.isfinite(detectable):
            right = mass * keep(detectable)
            broken |= right - math.exp(line["epsilon"]) * (mass - right) > line["delta"]
    assert broken or math.isinf(detectable)
    assert at_budget < detectable


@pytest.mark.parametrize("mass", [0.1, 1.0])
@pytest.mark.parametrize("claim", [PureDP(1.0), PureDP(0.0), ApproxDP(0.5, 0.02)])
def test_the_loss_at_the_budget_meets_the_line_with_equality(claim, mass):
    _, at_budget = fixed_game(claim, 1_000, 0.05).power(mass, 0.9)
    inside, outside = mass * keep(at_budget), mass * (1.0 - keep(at_budget))
    # P(S) - e^epsilon Q(S) = delta, with the event that the alternative makes likelier under x
    assert inside - math.exp(claim.epsilon) * outside == pytest.approx(claim.delta, abs=1e-12)


def test_the_loss_at_a_large_pure_budget_is_the_budget():
    # in doubles, e^700 / (1 + e^700) is 1: the loss must not be read back from it
    _, at_budget = fixed_game(PureDP(100.0), 1_000, 0.05).power(0.1, 0.9)
    assert at_budget == pytest.approx(100.0, rel=1e-9)


def test_a_free_family_has_the_smallest_loss_at_the_budget_of_its_lines():
    mu, mass = 1.0, 0.3
    _, at_budget = fixed_game(GaussianDP(mu), 1_000, 0.05).power(mass, 0.9)
    losses = []
    for anchor in ANCHORS:
        delta = GaussianDP(mu).profile(anchor)
        accuracy = (math.exp(anchor) + delta / mass) / (1.0 + math.exp(anchor))
        losses.append(math.log(accuracy / (1.0 - accuracy)) if accuracy < 1.0 else math.inf)
    assert at_budget == pytest.approx(min(losses), rel=1e-9)


def test_without_enough_draws_no_loss_is_detectable():
    detectable, at_budget = fixed_game(PureDP(1.0), 5, 0.05).power(0.1, 0.9)
    assert detectable == math.inf and at_budget == pytest.approx(1.0)


def test_a_pair_that_had_no_draw_has_no_power():
    game = FixedGame(PureDP(1.0), 0)
    game.start(0.05)
    assert game.power(0.1, 0.9) == (math.inf, 1.0)


@pytest.mark.parametrize("budget", [0.3, 1.0, 8.0])
def test_an_end_between_the_budget_and_what_counts_as_a_violation_gives_the_budget(budget):
    end = budget * (1.0 + 5e-8)  # halfway to the least value whose rejection counts
    assert budget < end < just_above(budget)
    assert largest_rejected(lambda values: values <= end, 0.0, budget, precision=1e-9) == budget
    assert largest_in_excess(lambda value: end - value, 0.0, budget, 1e-9) == budget
