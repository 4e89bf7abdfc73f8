"""The sequential game: expectation, false alarms and coverage by enumeration; the bound; the witness; hard claims.

The probabilities are exact sums over all labelled draws, so these assertions have no error rate. Where draws are
random (fixed seeds), what is asserted holds for every draw, or a comment says how rarely it would not.
"""

import collections
import copy
import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from dpaudit.learning.fitted_partitions import fit_partitions
from dpaudit.learning.predicted import Reduced
from dpaudit.learning.rules import ABSTAIN, rule_from_dict
from dpaudit.learning.scores import Coordinate
from dpaudit.privacy.claims import ApproxDP, GaussianDP, ProfileClaim, PureDP
from dpaudit.reading.outcomes import Outcomes
from dpaudit.testing import sequential_game, witnesses
from dpaudit.testing.sequential_game import BUDGET_SHARE, SequentialGame
from dpaudit.testing.stacks import GROUPS

ROUNDING = 1e-9
ANCHORED = [GaussianDP(1.0), ProfileClaim(PureDP(1.0).profile)]


def keep(epsilon):
    return float(special.expit(epsilon))


def outcomes(values):
    return Outcomes(np.array(values, dtype=float).reshape(-1, 1))


def dominating_pair(epsilon, delta):
    """The laws on outcomes 0, 1, 2, 3 that lose the most under (epsilon, delta)-DP."""
    k, rest = keep(epsilon), 1.0 - delta
    return [delta, rest * k, rest * (1.0 - k), 0.0], [0.0, rest * (1.0 - k), rest * k, delta]


def on_budget(claim):
    """Laws that meet the claim."""
    if isinstance(claim, GaussianDP):
        # binary, with the trade-off of the claim at its symmetric point: P(right) = Phi(mu / 2)
        right = float(special.ndtr(claim.mu / 2.0))
        return [right, 1.0 - right], [1.0 - right, right]
    if isinstance(claim, ProfileClaim):
        return dominating_pair(1.0, 0.0)
    return dominating_pair(claim.epsilon, claim.delta)


def labelled_draws(p, q):
    return [(1, o, 0.5 * p[o]) for o in range(len(p)) if p[o]] + [(0, o, 0.5 * q[o]) for o in range(len(q)) if q[o]]


def started(claim, draws, level, of_x, of_x_prime):
    game = SequentialGame(claim, draws)
    game.fit(fit_partitions(outcomes(of_x), outcomes(of_x_prime)), level)
    game.start(level)
    return game


def feed(game, of_x, of_x_prime):
    game.add(game.statistic.count(outcomes(of_x)), game.statistic.count(outcomes(of_x_prime)))


def training(p, q, draws=20):
    """Draws of x and x_prime in proportion to two laws."""
    return [[o for o, mass in enumerate(law) for _ in range(round(draws * mass))] for law in (p, q)]


# --- expectation ---


@pytest.mark.parametrize("claim", [PureDP(0.5), ApproxDP(0.5, 0.2), *ANCHORED], ids=str)
@pytest.mark.parametrize("on", ["outputs", "counts"])
def test_expected_wealth_is_at_most_one_for_a_game_that_refits_after_every_draw(claim, on):
    # Every sequence of 2 or 3 labelled draws, on a law at the budget; before each draw the bets are fitted again, on a
    # first sample and all draws so far (with new partitions, where outputs are kept). One label a draw is the smallest
    # round there can be.
    p, q = on_budget(claim)
    draws = 3 if len(labelled_draws(p, q)) == 4 and not claim.anchored else 2
    total, levels = 0.0, collections.Counter()
    for sequence in itertools.product(labelled_draws(p, q), repeat=draws):
        of_x, of_x_prime = [0, 0, 1, 1, 0], [1, 0, 1, 1, 1]
        game = started(claim, 100, 0.05, of_x, of_x_prime)
        for label, outcome, _ in sequence:
            feed(game, [outcome] if label else [], [] if label else [outcome])
            game.update()
            (of_x if label else of_x_prime).append(outcome)
            if on == "outputs":
                game.fit(fit_partitions(outcomes(of_x), outcomes(of_x_prime)), 0.05)
            else:
                game.prepare_on_counts()
        total += math.prod(probability for *_, probability in sequence) * math.exp(game.log_wealth)
        levels[round(game.log_wealth, 6)] += 1
    assert len(levels) > 3  # it did bet
    assert 0.5 * BUDGET_SHARE < total <= BUDGET_SHARE + ROUNDING


# --- false alarms and coverage ---


def all_counts(kinds, draws):
    """Every way to divide so many draws over so many kinds."""
    for bars in itertools.combinations(range(draws + kinds - 1), kinds - 1):
        yield tuple(b - a - 1 for a, b in itertools.pairwise((-1, *bars, draws + kinds - 1)))


def of_counts(game, labelled, counts):
    """A copy of the game that has seen each labelled draw so often."""
    played = copy.deepcopy(game)
    sides = {1: [], 0: []}
    for (label, outcome, _), times in zip(labelled, counts, strict=True):
        sides[label] += [outcome] * times
    feed(played, sides[1], sides[0])
    played.update()
    return played


@pytest.mark.parametrize("claim", [PureDP(0.0), PureDP(0.5), PureDP(2.0), GaussianDP(1.0)], ids=str)
@pytest.mark.parametrize("level", [0.05, 0.4])
def test_the_budget_is_ever_rejected_with_at_most_the_level(claim, level):
    # A look after every draw; wealth within an epoch is a function of counts, so by dynamic programming over them.
    draws = 10
    p, q = on_budget(claim)
    p, q = (p, q) if len(p) == 2 else (p[1:3], q[1:3])
    labelled = labelled_draws(p, q)
    leaky = training([0.9, 0.1], [0.1, 0.9], 40)  # training that makes it bet boldly
    game = started(claim, draws, level, *leaky)
    alive, crossed = {(0, 0, 0, 0): 1.0}, 0.0
    for _ in range(draws):
        after = collections.Counter()
        for counts, probability in alive.items():
            for k, (*_, mass) in enumerate(labelled):
                after[tuple(n + (j == k) for j, n in enumerate(counts))] += probability * mass
        alive = {}
        for counts, probability in after.items():
            if of_counts(game, labelled, counts).is_rejected:
                crossed += probability
            else:
                alive[counts] = probability
    assert crossed <= level
    assert crossed > 0.0 or level < 0.1 or claim.value > 1.0  # and at the larger level it is not idle


@pytest.mark.parametrize(
    ("claim", "laws", "truth"),
    [
        (PureDP(0.5), dominating_pair(0.5, 0.0), 0.5),
        (PureDP(0.2), dominating_pair(1.0, 0.0), 1.0),  # coverage above the budget
        (PureDP(2.0), dominating_pair(0.5, 0.0), 0.5),  # and below
        (ApproxDP(0.3, 0.2), ([0.2, 0.0, 0.8], [0.0, 0.2, 0.8]), 0.0),  # all of delta: epsilon 0 is kept
        (GaussianDP(0.5), on_budget(GaussianDP(1.0)), 1.0),
        (GaussianDP(2.0), on_budget(GaussianDP(1.0)), 1.0),
        (ProfileClaim(PureDP(1.0).profile), dominating_pair(1.0, 0.0), 1.0),
    ],
    ids=lambda value: str(value) if not isinstance(value, tuple) else "",
)
def test_the_bound_exceeds_the_truth_with_at_most_the_level(claim, laws, truth):
    level, draws = 0.4, 6
    labelled = labelled_draws(*laws)
    game = started(claim, 100, level, *training(*([[0.9, 0.1], [0.1, 0.9]] if len(labelled) == 4 else laws), 40))
    above = informative = 0.0
    for counts in all_counts(len(labelled), draws):
        probability = stats.multinomial.pmf(counts, draws, [mass for *_, mass in labelled])
        played = of_counts(game, labelled, counts)
        above += probability * (played.lower > truth * (1.0 + 1e-9) + 1e-12)
        informative += probability * (played.lower > 0.0)
        assert played.is_rejected == (played.lower > claim.value)
    assert above <= level
    assert informative > 0.0 or claim.value > truth or truth == 0.0  # where so few draws can say anything


# --- the bound ---

RECORDS = [([0] * 20, [3] * 20), ([3] * 5, [0] * 5), ([0] * 40, [3] * 40), ([3] * 60, [0] * 60), ([0] * 80, [3] * 80)]


@pytest.mark.parametrize("claim", [PureDP(0.0), PureDP(1.0), ApproxDP(1.0, 0.05), *ANCHORED], ids=str)
@pytest.mark.parametrize("asks", ["at every look", "at the end"])
def test_the_bound_never_falls_and_is_above_the_budget_exactly_where_it_is_rejected(claim, asks):
    game = started(claim, 1_000, 0.05, [0, 0, 0, 1, 2] * 4, [3, 3, 3, 2, 1] * 4)
    before = 0.0
    for of_x, of_x_prime in RECORDS:
        feed(game, of_x, of_x_prime)
        game.update()
        if game.log_wealth >= -math.log(0.05):
            assert game.is_rejected
        if asks == "at every look":
            assert game.lower >= before
            assert game.is_rejected == (game.lower > claim.value)
            before = game.lower
        assert game.known_lower <= game.lower or asks == "at the end"
    assert game.is_rejected and game.lower > claim.value
    assert game.known_lower == game.lower


def test_a_rejection_at_one_look_stays_when_the_wealth_falls_before_the_bound_is_asked_for():
    game = started(PureDP(1.0), 1_000, 0.05, [0] * 20, [3] * 20)
    feed(game, [0] * 40, [3] * 40)
    game.update()
    assert game.is_rejected
    feed(game, [3] * 300, [0] * 300)
    game.update()
    assert game.log_wealth < 0.0
    assert game.is_rejected and game.lower > 1.0


def test_a_smaller_level_gives_a_smaller_bound():
    bounds = []
    for level in (0.3, 0.05, 1e-3, 1e-9):
        game = started(PureDP(1.0), 1_000, level, [0] * 15 + [3] * 5, [3] * 15 + [0] * 5)
        feed(game, [0] * 150 + [3] * 50, [3] * 150 + [0] * 50)
        game.update()
        bounds.append(game.lower)
    assert bounds == sorted(bounds, reverse=True) and bounds[0] > bounds[-1]


def test_the_bound_is_the_largest_parameter_that_all_bets_together_reject():
    game = started(PureDP(1.0), 1_000, 0.05, [0] * 15 + [3] * 5, [3] * 15 + [0] * 5)
    feed(game, [0] * 150 + [3] * 50, [3] * 150 + [0] * 50)
    game.update()
    # the true loss is log 3; the fixed limit at 300 of 400 right is 0.90, and bets that may stop at any time have less
    limit = special.logit(stats.binomtest(300, 400, alternative="greater").proportion_ci(0.95, method="exact").low)
    assert 0.6 < game.lower < limit


def test_wealth_is_that_of_the_draws_in_whatever_batches_they_come():
    first, second = (started(PureDP(1.0), 1_000, 0.05, [0] * 15 + [3] * 5, [3] * 15 + [0] * 5) for _ in range(2))
    feed(first, [0, 0, 3, 1], [3, 3])
    for of_x, of_x_prime in [([0], []), ([0, 3], [3]), ([], [3]), ([1], [])]:
        feed(second, of_x, of_x_prime)
    first.update(), second.update()
    assert second.log_wealth == pytest.approx(first.log_wealth, abs=1e-12)


def found_below(truth, claim, draws, seed):
    """The bound of a game on randomised response of this loss, fitted again as long as draws grow by a third."""
    rng = np.random.default_rng(seed)
    right = special.expit(truth)
    game, drawn, trained = None, [np.empty(0), np.empty(0)], 40
    while len(drawn[0]) < draws:
        sides = [np.where(rng.random(trained) < right, own, 1.0 - own) for own in (1.0, 0.0)]
        if game is None:
            game = started(claim, 2 * draws, 0.05, *(side.tolist() for side in sides))
        else:
            feed(game, *(side.tolist() for side in sides))
            game.update()
        drawn = [np.concatenate(parts) for parts in zip(drawn, sides, strict=True)]
        trained = max(len(drawn[0]) // 3, 1)
        game.fit(fit_partitions(*(outcomes(side.tolist()) for side in drawn)), 0.05)
    return game.lower


@pytest.mark.parametrize("claim", [PureDP(0.3), PureDP(3.0), ApproxDP(1.0, 1e-6), GaussianDP(3.0)], ids=str)
def test_a_loss_far_below_the_budget_has_a_bound_of_its_own(claim):
    """A bound above the truth has a probability of at most 0.05; the seed is fixed."""
    truth = 0.2 if claim.parameter == "epsilon" else 2.0 * float(special.ndtri(special.expit(0.2)))
    assert 0.3 * truth < found_below(0.2, claim, 10_000, seed=1) <= truth


def test_bounds_far_below_the_budget_exceed_the_truth_with_at_most_the_level():
    """At most 5% of games may: of 150, 18 or more have a probability of 5e-4 if 5% do. (Seeds are fixed; none did.)"""
    bounds = np.array([found_below(0.3, PureDP(3.0), 1_500, seed) for seed in range(150)])
    assert np.sum(bounds > 0.3) < 18 and np.mean(bounds > 0.0) > 0.8


def test_deep_targets_are_asked_only_where_no_bound_was_found_above_them(monkeypatch):
    asked = []
    of_target = SequentialGame._stack_for

    def noted(game, epochs, target):
        asked.append((target, target in game._deep_targets))
        return of_target(game, epochs, target)

    monkeypatch.setattr(SequentialGame, "_stack_for", noted)
    assert found_below(1.0, PureDP(1.0), 2_000, seed=1) > 0.6 and set(asked) == {(0.6, False)}
    asked.clear()
    assert found_below(0.2, PureDP(1.0), 10_000, seed=1) > 0.0
    assert len({target for target, is_deep in asked if is_deep}) > 1
    assert asked.count((0.6, False)) <= 1 + len(GROUPS)  # groups of epochs: the second search goes on from the first


# --- epochs ---


def test_the_wealth_of_epochs_multiplies_and_one_without_draws_is_dropped():
    game = started(PureDP(1.0), 1_000, 0.05, [0] * 15 + [3] * 5, [3] * 15 + [0] * 5)
    game.update()
    assert game.log_wealth == pytest.approx(math.log(BUDGET_SHARE), abs=1e-9)  # nothing bet, nothing won
    feed(game, [0] * 30, [3] * 30)
    game.update()
    after_one = game.log_wealth
    for _ in range(3):
        game.fit(fit_partitions(outcomes([0] * 45 + [3] * 5), outcomes([3] * 45 + [0] * 5)), 0.05)
        game.update()
        assert game.log_wealth == pytest.approx(after_one, abs=1e-9)  # a new fit wins nothing by itself
    feed(game, [0] * 5, [3] * 5)
    game.update()
    assert game.log_wealth > after_one
    assert sum(game.counts) == 70 or sum(game.counts) in (60, 10)  # the witness is counted on its own epoch


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), *ANCHORED], ids=str)
def test_bets_fitted_on_counts_are_those_fitted_on_the_outputs_that_were_counted(claim):
    first, second = [0] * 15 + [3] * 5, [3] * 15 + [0] * 5
    of_x, of_x_prime = [0] * 90 + [3] * 30, [3] * 90 + [0] * 30
    game, other = (started(claim, 1_000, 0.05, first, second) for _ in range(2))
    for played in (game, other):
        feed(played, of_x, of_x_prime)
        played.update()
    game.prepare_on_counts()
    fitted = fit_partitions(outcomes(first + of_x), outcomes(second + of_x_prime))
    other.fit([partition for partition in fitted if not partition.is_learned], 0.05)  # the counted ones
    for played in (game, other):
        feed(played, of_x[::2], of_x_prime[::2])
        played.update()
    assert game.log_wealth == pytest.approx(other.log_wealth, abs=1e-9)
    assert game.lower == pytest.approx(other.lower, rel=sequential_game.PRECISION)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), *ANCHORED], ids=str)
@pytest.mark.parametrize("copies", [1, 10])
def test_the_share_that_is_not_bet_falls_with_training_and_cannot_be_lost(claim, copies):
    # 10 or 100 training draws a side that never share a value, then a few live draws that say the opposite.
    game = started(claim, 10_000, 0.05, [1.0] * 10 * copies, [0.0] * 10 * copies)
    idle = 60.0 / (60.0 + 20.0 * copies)
    assert game.epochs[-1].idle == pytest.approx(idle)
    feed(game, [0.0] * 8, [1.0] * 8)
    game.update()
    assert math.log(idle * BUDGET_SHARE) < game.log_wealth < math.log(BUDGET_SHARE)
    assert game.epochs[-1].idle == pytest.approx(idle)  # whatever is counted


def test_the_bound_knows_of_the_share_that_is_not_bet(monkeypatch):
    bounds = []
    for caution in (1e-9, 60.0):
        monkeypatch.setattr(sequential_game, "CAUTION", caution)
        game = started(PureDP(1.0), 1_000, 0.05, [0] * 15 + [3] * 5, [3] * 15 + [0] * 5)
        feed(game, [0] * 120 + [3] * 10, [3] * 120 + [0] * 10)
        bounds.append(game.lower)
    assert bounds[0] > bounds[1] * (1.0 + 2.0 * sequential_game.PRECISION) > 1.0


def test_stakes_out_of_reach_have_little_weight_beforehand():
    reach = np.array([0.0, 0.03, 0.3, 3.0, 30.0, 3_000.0])
    weights = np.exp(sequential_game._within_reach(reach))
    assert weights == pytest.approx([0.0, 0.01, 0.1, 1.0, 1.0, 0.1], abs=1e-12)
    assert np.all(np.isfinite(sequential_game._within_reach(np.array([0.0]))))


@pytest.mark.parametrize(
    ("claim", "copies", "low", "high", "share"),
    [
        (PureDP(1.0), 10, 0.0, 0.4, 0.25),  # the small stakes, on few draws
        (ApproxDP(1.0, 0.01), 10, 0.0, 0.4, 0.25),
        (PureDP(1.0), 2_000, 0.6, 1.0, 0.8),  # the large ones, on many
    ],
)
def test_stakes_out_of_reach_have_less_weight_than_they_would_have(claim, copies, low, high, share, monkeypatch):
    # As many draws of either label in each of two cells: no stake wins anything.
    def weight():
        bets = started(claim, 100_000, 0.05, [0, 1] * copies, [0, 1] * copies).epochs[-1].bets
        growth = bets.components.growth(np.full((1, 1), 1.0))[0]
        chosen = (growth >= np.quantile(growth, low)) & (growth <= np.quantile(growth, high))
        return float(np.exp(special.logsumexp(bets.log_weights[:, chosen])))

    lowered = weight()
    monkeypatch.setattr(sequential_game, "_within_reach", np.zeros_like)
    assert lowered < share * weight()


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 0.05), *ANCHORED], ids=str)
def test_a_useless_fit_is_survived(claim):
    # The bets of a first epoch lose all they can; the next ones are fitted on what there was to see.
    game = started(claim, 100_000, 0.05, [3] * 20, [0] * 20)
    feed(game, [0] * 8, [3] * 8)
    game.update()
    assert game.log_wealth < 0.0
    game.fit(fit_partitions(outcomes([0] * 8 + [3] * 20), outcomes([3] * 8 + [0] * 20)), 0.05)
    for n in (40, 80, 160, 320, 640, 1_280):
        feed(game, [0] * n, [3] * n)
        game.update()
        game.fit(fit_partitions(outcomes([0] * n + [3] * 20), outcomes([3] * n + [0] * 20)), 0.05)
    assert game.is_rejected


@pytest.mark.parametrize("training", [1_000, 2_000])
def test_partitions_of_little_weight_are_not_counted_once_training_is_long(monkeypatch, training):
    monkeypatch.setattr(sequential_game, "IGNORED_WEIGHT", 0.2)  # above the weight of all but the first
    rng = np.random.default_rng(0)
    first, second = (outcomes(rng.laplace(shift, 2.0, size=training // 2)) for shift in (1.0, 0.0))
    partitions = fit_partitions(first, second)
    game = SequentialGame(PureDP(1.0), 10_000)
    game.fit(partitions, 0.05)
    assert len(partitions) == 7
    kept = game.epochs[-1].partitions
    assert [part.order for part in kept[:3]] == ["free", "mirrored", "monotone"]  # twins stay together
    assert len(kept) == len(game.statistic.parts) == (3 if training == sequential_game.LONG_TRAINING else 7)
    game.start(0.05)
    feed(game, [0.0, 5.0], [1.0])
    game.update()
    assert sum(game.counts) == 3


def sparse_report(side, size, rng, loss):
    """Nearly all say nothing; a tenth randomise a bit at this loss, and say of which twentieth they are."""
    bit = np.where(rng.random(size) < special.expit(loss), side, 1 - side)
    said = 2 * rng.integers(0, 20, size) + bit + rng.random(size)
    return np.where(rng.random(size) < 0.1, said, rng.normal(size=size) - 20.0)


@pytest.mark.parametrize(("loss", "is_counted"), [(0.5, False), (1.5, True)])
def test_partitions_of_little_weight_are_counted_where_they_are_promising(loss, is_counted, monkeypatch):
    monkeypatch.setattr(sequential_game, "IGNORED_WEIGHT", 1.0)
    rng = np.random.default_rng(5)
    first, second = (outcomes(sparse_report(side, 6_000, rng, loss)) for side in (1, 0))
    game = SequentialGame(PureDP(1.0), 200_000)
    game.fit(fit_partitions(first, second), 0.05)
    assert ("Coordinate 1 whole" in game.epochs[-1].names) == is_counted


def test_partitions_that_cannot_come_back_are_counted_whatever_their_weight(monkeypatch):
    monkeypatch.setattr(sequential_game, "IGNORED_WEIGHT", 0.2)
    rng = np.random.default_rng(0)
    partitions = fit_partitions(outcomes(rng.normal(size=1_000) + 1.0), outcomes(rng.normal(size=1_000)))
    game = SequentialGame(PureDP(1.0), 10_000)
    game.start(0.05)
    game.fit(partitions, 0.05, is_last=True)
    assert len(game.epochs[-1].partitions) == len(partitions) == 7
    feed(game, [0.0, 5.0], [1.0])
    game.prepare_on_counts()
    assert len(game.epochs[-1].partitions) == 7


def of_a_large_budget(decides, draws):
    game = SequentialGame(PureDP(14.0), 1_000, decides)
    game.fit(fit_partitions(outcomes([0] * 12), outcomes([3] * 12)), 0.01)
    game.start(0.01)
    feed(game, [0] * draws, [3] * draws)
    game.update()
    assert not game.is_rejected
    return game.lower


def test_a_large_budget_has_a_bound_far_below_it():
    assert of_a_large_budget(False, 16) > of_a_large_budget(True, 16)  # where only the bound is wanted
    assert of_a_large_budget(False, 16) > 0.3
    assert of_a_large_budget(True, 40) > 0.3


# --- degenerate claims ---


@pytest.mark.parametrize(
    "claim",
    [
        *(PureDP(e) for e in (0.0, 1e-6, 50.0, 700.0)),
        *(ApproxDP(e, d) for e in (0.0, 50.0) for d in (1e-9, 0.5, 0.999)),
        GaussianDP(0.0),
        GaussianDP(40.0),
        ProfileClaim(lambda epsilon: 0.3),
    ],
    ids=str,
)
@pytest.mark.parametrize("level", [1e-12, 0.05])
def test_claims_at_the_ends_have_finite_figures_and_no_alarm_without_a_leak(claim, level):
    game = SequentialGame(claim, 1_000)
    same = outcomes([0.0, 1.0, 2.0, 3.0] * 10)
    for _ in range(2):
        game.fit(fit_partitions(same, same), level)
        game.start(level)
        assert not any(math.isnan(value) for value in game.merit)
        feed(game, [0, 1, 2, 3] * 50, [0, 1, 2, 3] * 50)
        game.update()
    assert not game.is_rejected and 0.0 <= game.lower <= claim.value
    assert math.isfinite(game.log_wealth) and game.log_wealth < 0.0
    assert all(map(math.isfinite, game.line.values())) and game.p_value is None


@pytest.mark.parametrize(
    "values",
    [[1.0], [math.nan], [math.inf], [-math.inf, math.inf], [np.finfo(float).max, -np.finfo(float).max], [0, 5e-324]],
)
def test_any_outcomes_can_be_played_on(values):
    game = started(PureDP(1.0), 1_000, 0.05, values * 8, values * 8)
    feed(game, values * 10, values * 10)
    game.update()
    assert not game.is_rejected
    assert sum(game.counts) == 20 * len(values)
    assert game.describe("x", "x_prime") and game.rule_record()["game"] == "guess"


@pytest.mark.parametrize("low", [-np.finfo(float).max, -math.inf, 0.0, math.nan])
@pytest.mark.parametrize("high", [np.finfo(float).max, math.inf, 5e-324])
def test_a_leak_between_two_extreme_values_is_found(low, high):
    game = started(PureDP(1.0), 1_000, 0.05, [low] * 20, [high] * 20)
    feed(game, [low] * 60, [high] * 60)
    game.update()
    assert game.is_rejected
    correct, wrong, _ = game.counts
    assert correct >= 60 and wrong == 0
    rule = rule_from_dict(game.rule_record(), None, 0, 1)
    guesses = rule.guess(outcomes([low, high])).tolist()
    assert set(guesses) in ({1, 0}, {1, ABSTAIN}, {ABSTAIN, 0}) and guesses[0] in (1, ABSTAIN)


# --- the witness ---


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(0.5, 0.05), *ANCHORED], ids=str)
@pytest.mark.parametrize("kind", ["numbers", "atoms", "with NaN"])
def test_the_witness_that_is_read_back_counts_the_live_draws_as_reported(claim, kind):
    rng = np.random.default_rng(0)

    def drawn(size, shift):
        values = rng.normal(size=size) + shift
        if kind == "atoms":
            values = np.floor(values)
        if kind == "with NaN":
            values[rng.uniform(size=size) < 0.2 * (1.0 + shift)] = math.nan
        return values.tolist()

    game = started(claim, 2_000, 0.05, drawn(200, 2.0), drawn(200, 0.0))
    of_x, of_x_prime = drawn(300, 2.0), drawn(280, 0.0)
    feed(game, of_x, of_x_prime)
    game.update()
    rule = rule_from_dict(game.rule_record(), None, 0, 1)
    first, second = rule.guess(outcomes(of_x)), rule.guess(outcomes(of_x_prime))
    correct = int(np.count_nonzero(first == 1) + np.count_nonzero(second == 0))
    wrong = int(np.count_nonzero(first == 0) + np.count_nonzero(second == 1))
    assert game.counts == (correct, wrong, 580 - correct - wrong)
    assert correct > wrong
    anchor = game.rule_record()["anchor"]
    epsilon, delta = claim.lines(np.array([claim.value]), anchor)
    assert game.line == {"epsilon": float(epsilon[0]), "delta": float(delta[0])}
    assert isinstance(rule.score, Coordinate | Reduced)
    assert "left" in game.describe("left", "right") or "right" in game.describe("left", "right")


def test_the_merit_of_a_leak_is_larger_than_that_of_none():
    leak = started(PureDP(1.0), 1_000, 0.05, [0] * 20, [3] * 20)
    none = started(PureDP(1.0), 1_000, 0.05, [0, 3] * 10, [3, 0] * 10)
    assert leak.merit > none.merit


@pytest.mark.parametrize("shift", [0.0, 0.7])
@pytest.mark.parametrize(
    "claim", [PureDP(0.5), PureDP(3.0), PureDP(400.0), ApproxDP(0.5, 0.01), GaussianDP(1.0)], ids=str
)
def test_the_witness_is_the_strongest_of_all_records_and_the_last_of_equal_ones(claim, shift):
    """No rule is stronger than the limit of its partition, by which most are not looked at."""
    rng = np.random.default_rng(20_262_107)

    def draw(size):
        x, x_prime = rng.laplace(size=size) + shift, rng.laplace(size=size)
        x[rng.random(size) < 0.02] = np.nan
        return x, x_prime

    game = started(claim, 5_000, 0.05, *draw(30))
    for size in (20, 60, 200, 500):
        feed(game, *draw(size))
        game.fit(fit_partitions(*(outcomes(side) for side in draw(2 * size))), 0.05)
    feed(game, *draw(100))
    counted = [epoch.book.live[..., 0].sum() for epoch in game.epochs]
    least = 0.0 if game.is_rejected else witnesses.LONG_EPOCH * max(counted)
    long = [epoch for epoch, draws in zip(game.epochs, counted, strict=True) if draws >= least]
    asked = [(epoch, int(k)) for epoch in long for k in epoch.of_each_cells]
    records = [game._search.of_partition(*about) for about in asked]
    limits = game._search.most_strengths(asked)
    assert all(strength <= limit for (strength, _), limit in zip(records, limits, strict=True))
    strongest = max(strength for strength, _ in records)
    assert game._witness() == [witness for strength, witness in records if strength == strongest][-1]


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 400.0])
@pytest.mark.parametrize("of_nan", [0, 5])
def test_the_limit_of_a_partition_is_the_strength_of_the_best_of_all_its_rules(epsilon, of_nan):
    rng = np.random.default_rng(7)
    counts = rng.integers(0, 9, (2, 3, 5)).astype(float)
    counts[..., -1] = rng.integers(0, of_nan + 1, (2, 3))
    scale = math.exp(-epsilon)
    for k in range(3):
        strengths = [0.0]  # of a rule that never guesses
        for low, high in itertools.combinations_with_replacement(range(5), 2):
            for sign, at_nan in itertools.product((0, 1), (None, 0, 1)):
                guesses = [1 - sign] * low + [None] * (high - low) + [sign] * (4 - high) + [at_nan]
                guessed = [(cell, guess) for cell, guess in enumerate(guesses) if guess is not None]
                correct = sum(counts[guess, k, cell] for cell, guess in guessed)
                wrong = sum(counts[1 - guess, k, cell] for cell, guess in guessed)
                strengths.append((scale * correct - wrong) / (math.sqrt(scale**2 * (correct + 1.0) + wrong) or 1.0))
        limit = witnesses.most_over_cuts(counts, np.full(3, scale))[k]
        assert limit == pytest.approx(max(strengths), rel=1e-12)  # the same few operations at 2**-53 each
