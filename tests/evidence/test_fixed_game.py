"""The guessing game against hockey-stick families: levels, coverage and power by enumeration, and the bound's search.

Nothing here is random: the probabilities are exact sums over all labelled draws, so no assertion has an error rate.
"""

import collections
import itertools
import math

import numpy as np
import pytest
from dpaudit.evidence.guess_game import ANCHORS, GuessGame, epsilon_grid, largest_rejected
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from dpaudit.evidence.outcomes import Outcomes, Reading
from dpaudit.evidence.rules import ABSTAIN, Rule
from dpaudit.evidence.scores import Coordinate
from dpaudit.privacy.claims import ApproxDP, GaussianDP, ProfileClaim, PureDP

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
ROUNDING = 1e-12


def keep(epsilon):
    return math.exp(epsilon) / (1.0 + math.exp(epsilon))


def dominating_pair(epsilon, delta):
    """The laws on outcomes 0, 1, 2, 3 that lose the most under (epsilon, delta)-DP."""
    k, rest = keep(epsilon), 1.0 - delta
    return [delta, rest * k, rest * (1.0 - k), 0.0], [0.0, rest * (1.0 - k), rest * k, delta]


def outcomes(values):
    return Outcomes(np.array(values, dtype=float).reshape(-1, 1))


def threshold_rule(low, high, nan_guess=ABSTAIN):
    """Guess x_prime above `high` and x below `low`: the outcomes 0 and 1 of the pairs above speak for x."""
    return Rule(Coordinate(0, 1), low, high, -1, Reading(1), nan_guess)


TWO_SIDED, ONE_SIDED = threshold_rule(1.5, 1.5), threshold_rule(1.5, math.inf)


def started(claim, sequential, draws, level, rule=TWO_SIDED, anchor=0.0):
    game = GuessGame(claim, sequential, draws)
    game.set_rule(rule, anchor)
    game.start(level)
    return game


def feed(game, of_x, of_x_prime):
    game.add(game.statistic.count(outcomes(of_x)), game.statistic.count(outcomes(of_x_prime)))


def records(p, q, rule, draws):
    """Every number of (correct, wrong, no) guesses in `draws` labelled draws, with its probability."""
    guesses = rule.guess(outcomes(range(len(p)))).tolist()
    correct = 0.5 * sum(p[o] for o in range(len(p)) if guesses[o] == 1)
    correct += 0.5 * sum(q[o] for o in range(len(q)) if guesses[o] == 0)
    guessed = 0.5 * sum(p[o] + q[o] for o in range(len(p)) if guesses[o] != ABSTAIN)
    for g in range(draws + 1):
        for c in range(g + 1):
            probability = stats.binom.pmf(g, draws, guessed) * stats.binom.pmf(
                c, g, correct / guessed if guessed else 0.0
            )
            yield c, g - c, draws - g, float(probability)


# --- the fixed test ---


FIXED_CASES = [
    # claim, anchor, rule, laws, the pair's true parameter
    (PureDP(1.0), 0.0, TWO_SIDED, dominating_pair(1.0, 0.0), 1.0),
    (PureDP(0.2), 0.0, TWO_SIDED, dominating_pair(1.0, 0.0), 1.0),  # coverage above the budget
    (PureDP(0.0), 0.0, TWO_SIDED, dominating_pair(0.0, 0.0), 0.0),
    (PureDP(1.0), 0.0, ONE_SIDED, dominating_pair(1.0, 0.0), 1.0),
    (ApproxDP(0.5, 0.1), 0.0, TWO_SIDED, dominating_pair(0.5, 0.1), 0.5),
    (ApproxDP(0.5, 0.1), 0.0, ONE_SIDED, dominating_pair(0.5, 0.1), 0.5),
    (ApproxDP(0.0, 0.3), 0.0, ONE_SIDED, ([0.3, 0.0, 0.7], [0.0, 0.0, 1.0]), 0.0),  # all of delta on one side
    (ProfileClaim(PureDP(1.0).profile), 0.5, TWO_SIDED, dominating_pair(1.0, 0.0), 1.0),
    (ProfileClaim(PureDP(1.0).profile), 1.0, TWO_SIDED, dominating_pair(1.0, 0.0), 1.0),
]


@pytest.mark.parametrize("level", [0.05, 0.3])
@pytest.mark.parametrize("case", range(len(FIXED_CASES)))
def test_the_fixed_bound_exceeds_the_truth_with_at_most_the_level(case, level):
    claim, anchor, rule, (p, q), truth = FIXED_CASES[case]
    draws, above, informative = 30, 0.0, 0.0
    for correct, wrong, abstained, probability in records(p, q, rule, draws):
        if probability < 1e-12:  # all together below 500 * 1e-12
            continue
        game = started(claim, False, draws, level, rule, anchor)
        # the rule's own counts (guessed 0, guessed 1, abstained): right on x and wrong on x_prime
        game.add(np.array([[0, correct, abstained]]), np.array([[0, wrong, 0]]))
        game.update()
        above += probability * (game.lower > truth * (1.0 + 1e-9))
        informative += probability * (game.lower > 0.0)
        if claim.value == truth:
            assert (game.lower > claim.value * (1.0 + 1e-6)) <= (game.p_value <= level)
    assert above <= level + ROUNDING
    assert informative > 0.0 or truth == 0.0


def test_the_fixed_bound_of_a_pure_claim_is_the_logit_of_the_exact_limit():
    game = started(PureDP(1.0), False, 100, 0.05)
    game.add(np.array([[0, 60, 0]]), np.array([[10, 20, 10]]))  # 70 right, 20 wrong
    game.update()
    limit = stats.binomtest(70, 90, alternative="greater").proportion_ci(0.95, method="exact").low
    assert game.lower == pytest.approx(float(special.logit(limit)), rel=1e-6)  # the search stops at 1e-7
    assert game.p_value == pytest.approx(stats.binomtest(70, 90, keep(1.0), alternative="greater").pvalue, rel=1e-9)


def test_right_and_wrong_are_counted_by_the_label_and_the_guess():
    game = started(PureDP(1.0), False, 100, 0.05)
    feed(game, [0, 1, 1, 3], [0, 2, 3, 3, 3])  # below 1.5: guess x
    assert game.counts == (3 + 4, 1 + 1, 0)
    gap = started(PureDP(1.0), False, 100, 0.05, threshold_rule(0.5, 2.5))
    feed(gap, [0, 1, 1, 3], [0, 2, 3, 3, 3])
    assert gap.counts == (1 + 3, 1 + 1, 3)


# --- the sequential bet ---


@pytest.mark.parametrize("claim", [PureDP(0.7), ApproxDP(0.7, 0.1), ApproxDP(0.0, 0.2)])
@pytest.mark.parametrize("rule", [TWO_SIDED, ONE_SIDED, threshold_rule(0.5, 2.5)])
def test_expected_wealth_against_the_budget_is_one_on_the_boundary(claim, rule):
    p, q = dominating_pair(claim.epsilon, claim.delta)
    total = 0.0
    for correct, wrong, abstained, probability in records(p, q, rule, 12):
        game = started(claim, True, 12, 0.05, rule)
        game.add(np.array([[0, correct, abstained]]), np.array([[0, wrong, 0]]))
        total += probability * math.exp(game.log_wealth)
    # each event meets its line with equality: {0, 1} and {2, 3}, and by delta alone {0} and {3}
    assert total == pytest.approx(1.0, abs=1e-9)


def labelled_draws(p, q):
    return [(1, o, 0.5 * p[o]) for o in range(len(p)) if p[o]] + [(0, o, 0.5 * q[o]) for o in range(len(q)) if q[o]]


@pytest.mark.parametrize("claim", [PureDP(0.5), ApproxDP(0.5, 0.2), GaussianDP(0.5)])
def test_expected_wealth_is_at_most_one_for_a_game_that_refits_after_every_draw(claim):
    # Every sequence of 4 labelled draws, on a law at the budget; before each draw the rules are fitted again, on a
    # first sample and all draws so far. One label a draw is the smallest round there can be.
    if isinstance(claim, GaussianDP):
        # the binary law with the trade-off of the claim at its symmetric point: P(right) = Phi(mu / 2)
        right = float(special.ndtr(claim.mu / 2.0))
        p, q = [right, 1.0 - right], [1.0 - right, right]
    else:
        p, q = dominating_pair(claim.epsilon, claim.delta)
    first_x, first_x_prime = [0, 0, 1, 1, 0], [1, 0, 1, 1, 1]
    total, levels = 0.0, collections.Counter()
    for sequence in itertools.product(labelled_draws(p, q), repeat=4):
        game = GuessGame(claim, True, 4)
        of_x, of_x_prime = list(first_x), list(first_x_prime)
        game.fit(outcomes(of_x), outcomes(of_x_prime), 0.05, None)
        game.start(0.05)
        for label, outcome, _ in sequence:
            feed(game, [outcome] if label else [], [] if label else [outcome])
            game.update()
            (of_x if label else of_x_prime).append(outcome)
            game.fit(outcomes(of_x), outcomes(of_x_prime), 0.05, None)
        total += math.prod(probability for *_, probability in sequence) * math.exp(game.log_wealth)
        levels[round(game.log_wealth, 6)] += 1
    assert len(levels) > 3  # it did bet
    assert total <= 1.0 + 1e-9


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), GaussianDP(1.0)])
def test_the_sequential_bound_never_falls_and_exceeds_the_budget_only_with_the_wealth(claim):
    game = started(claim, True, 400, 0.05, anchor=0.5)
    before = 0.0
    for of_x, of_x_prime in [([0] * 20, [3] * 20), ([3] * 5, [0] * 5), ([0] * 40, [3] * 40), ([3] * 60, [0] * 60)]:
        feed(game, of_x, of_x_prime)
        game.update()
        assert game.lower >= before
        if before <= claim.value < game.lower:
            assert game.log_wealth >= -math.log(0.05)
        before = game.lower
    assert before > claim.value


def test_draws_of_rules_that_did_not_look_worth_a_bet_cannot_ruin_the_game():
    game = started(PureDP(1.0), True, 10_000, 0.05)
    assert game.merit[0] == 0  # a rule set from outside has not looked worth a bet
    feed(game, [3] * 2_000, [0] * 2_000)  # always wrong
    assert game.log_wealth == pytest.approx(math.log(0.25), abs=1e-9)  # the share of the wealth kept as cash


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


@pytest.mark.parametrize("budget", [0.0, 0.1234567, 1.0, 3.3, 55.5, 900.0])
def test_the_epsilon_grid_holds_the_budget_and_increases(budget):
    grid = epsilon_grid(budget)
    assert budget in grid.tolist() and grid[0] == 0.0
    assert np.all(np.diff(grid) > 0.0)


# --- power ---


def exact_power(game, loss, mass, critical):
    """Double sum over the number of guesses and of correct ones."""
    total = 0.0
    for guesses in range(game.draws + 1):
        weight = stats.binom.pmf(guesses, game.draws, mass)
        if weight > 1e-12:
            total += weight * stats.binom.sf(critical(guesses) - 1, guesses, keep(loss))
    return total


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize(
    ("claim", "anchor"), [(PureDP(1.0), 0.0), (PureDP(0.0), 0.0), (ApproxDP(0.5, 0.01), 0.0), (ApproxDP(1.0, 0.1), 0.0)]
)
@pytest.mark.parametrize("mass", [0.1, 0.5, 1.0])
def test_the_detectable_loss_is_found_with_the_stated_probability(sequential, claim, anchor, mass):
    game = started(claim, sequential, 2_000, 0.05, anchor=anchor)
    detectable, _ = game.power(mass, 0.9)
    if math.isinf(detectable):
        assert claim.delta >= mass  # guesses no likelier than delta prove nothing
        return

    def critical(guesses):
        # by a search through the game itself: the first number of correct guesses that rejects the budget
        low, high = -1, guesses + 1
        while high - low > 1:
            middle = (low + high) // 2
            attempt = started(claim, sequential, 2_000, 0.05, anchor=anchor)
            attempt.records = np.zeros((2, 2, 3), dtype=np.int64)
            attempt.merit = (1, 0.0)  # the power is that of a bettor who believes in the bet
            attempt.add(np.array([[0, middle, 2_000 - guesses]]), np.array([[0, guesses - middle, 0]]))
            rejected = attempt.p_value <= 0.05 if not sequential else attempt.log_wealth >= -math.log(0.05)
            low, high = (low, middle) if rejected else (middle, high)
        return high

    power = exact_power(game, detectable, mass, critical)
    assert power >= 0.9 - 1e-9
    assert power < 0.99  # and the figure is not far above what is needed


@pytest.mark.parametrize("mass", [0.1, 1.0])
@pytest.mark.parametrize("claim", [PureDP(1.0), PureDP(0.0), ApproxDP(0.5, 0.02)])
def test_the_loss_at_the_budget_meets_the_line_with_equality(claim, mass):
    _, at_budget = started(claim, False, 1_000, 0.05).power(mass, 0.9)
    inside, outside = mass * keep(at_budget), mass * (1.0 - keep(at_budget))
    # P(S) - e^epsilon Q(S) = delta, with the event that the alternative makes likelier under x
    assert inside - math.exp(claim.epsilon) * outside == pytest.approx(claim.delta, abs=1e-12)


def test_the_loss_at_a_large_pure_budget_is_the_budget():
    # in doubles, e^700 / (1 + e^700) is 1: the loss must not be read back from it
    _, at_budget = started(PureDP(100.0), False, 1_000, 0.05).power(0.1, 0.9)
    assert at_budget == pytest.approx(100.0, rel=1e-9)


def test_a_free_family_has_the_smallest_loss_at_the_budget_of_its_lines():
    mu, mass = 1.0, 0.3
    _, at_budget = started(GaussianDP(mu), False, 1_000, 0.05).power(mass, 0.9)
    losses = []
    for anchor in ANCHORS:
        delta = GaussianDP(mu).profile(anchor)
        accuracy = (math.exp(anchor) + delta / mass) / (1.0 + math.exp(anchor))
        losses.append(math.log(accuracy / (1.0 - accuracy)) if accuracy < 1.0 else math.inf)
    assert at_budget == pytest.approx(min(losses), rel=1e-9)


def test_without_enough_draws_no_loss_is_detectable():
    detectable, at_budget = started(PureDP(1.0), False, 5, 0.05).power(0.1, 0.9)
    assert detectable == math.inf and at_budget == pytest.approx(1.0)
