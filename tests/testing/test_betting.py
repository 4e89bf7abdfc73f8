"""Bets on cells: the expectation of every factor, and of the whole wealth, by enumeration; weights.

Nothing here is random beyond the choice of cases (fixed seeds): the probabilities are exact sums over all labelled
draws, so no assertion has an error rate.
"""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from dpaudit.learning.paths import LEVELS, PathPriors
from dpaudit.privacy.claims import GaussianDP, ProfileClaim, PureDP
from dpaudit.testing import betting, wealth
from dpaudit.testing.betting import Bets, Book, Components, components_for, fit_bets, stakes_of
from dpaudit.testing.stacks import stack_of_bets

FIXED = settings(derandomize=True, deadline=None, max_examples=60)
FRACTIONS = wealth.fractions(100, math.log(20.0))
ROUNDING = 1e-12  # sums of at most 256 products of a few doubles near 1: 256 * 8 * 2**-53 = 2e-13
LINES = [(0.0, 0.0), (0.1, 0.0), (1.0, 0.0), (4.0, 0.0), (0.0, 0.2), (0.5, 0.01), (1.0, 0.1), (3.0, 0.6)]


def hockey_stick(p, q, epsilon):
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def law_within(rng, cells, epsilon, delta):
    """Random P, Q with P(S) <= e^epsilon Q(S) + delta for every S both ways, and equality in one of them.

    From two random laws, one is moved towards the other until the line is met (by bisection: the distance from the
    line is convex along the way, and negative at equal laws).
    """
    p, q = rng.dirichlet(np.full(cells, 0.5)), rng.dirichlet(np.full(cells, 0.5))
    low, high = 0.0, 1.0
    for _ in range(60):
        share = 0.5 * (low + high)
        mixed = share * p + (1.0 - share) * q
        kept = max(hockey_stick(mixed, q, epsilon), hockey_stick(q, mixed, epsilon)) <= delta
        low, high = (share, high) if kept else (low, share)
    return low * p + (1.0 - low) * q, q


def one_draw(label, cell, cells, partitions=1):
    counts = np.zeros((2, cells, partitions))
    counts[label, cell] = 1.0
    return counts


def of_all_paths(cells, components):
    """Bets that are sure of one path in each partition, for all paths: their wealth of one draw is its factor."""
    paths = np.array(list(itertools.product(range(LEVELS), repeat=cells)))  # (paths, cells)
    model = np.full((cells, LEVELS, len(paths), 1), -1e3)  # of no weight: exp(-1e3) is 0
    for cell in range(cells):
        model[cell, paths[:, cell], np.arange(len(paths))] = 0.0
    model = np.repeat(model, components.up.shape[1], axis=3)
    priors = PathPriors.free(np.full(len(paths), 0.5))
    weights = np.zeros((len(paths), components.up.shape[1]))
    emissions = priors.emissions(model)
    return paths, Bets(components, emissions, priors.log_sum(emissions), priors, weights)


def random_components(rng, count, epsilon, delta):
    """Any legal stakes, any levels."""
    largest = 1.0 / (math.exp(epsilon) + delta)
    up, down = largest * rng.uniform(0.0, 0.999, (2, 1, count))
    up[0, 0], down[0, 1] = 0.0, 0.0
    highest = rng.uniform(0.1, 5.0, (1, count))
    middle = highest * rng.uniform(0.1, 0.9, (1, count))
    middle[0, ::3] = math.nan
    return Components(np.zeros((1, count)), up, down, highest, middle)


def factors(bets, p_or_q, label, epsilon, delta):
    """Mean of the wealth of one draw with this label, shape (partitions, components)."""
    cells, partitions = len(p_or_q), len(bets.paths)
    line = np.full((1, 1), epsilon), np.full((1, 1), delta)
    logs = [bets.log_wealth(one_draw(label, cell, cells, partitions), *line) for cell in range(cells)]
    assert not np.any(np.isnan(logs))  # a negative factor has no logarithm
    return sum(mass * np.exp(log) for mass, log in zip(p_or_q, logs, strict=True))


# --- one factor ---


@pytest.mark.parametrize(("epsilon", "delta"), LINES)
@pytest.mark.parametrize("seed", range(4))
def test_every_factor_is_positive_and_has_mean_at_most_one_on_every_path(epsilon, delta, seed):
    rng = np.random.default_rng(seed)
    components = random_components(rng, 6, epsilon, delta)
    paths, bets = of_all_paths(3, components)
    p, q = law_within(rng, 3, epsilon, delta)
    for first, second in ((p, q), (q, p)):
        mean = 0.5 * (factors(bets, first, 1, epsilon, delta) + factors(bets, second, 0, epsilon, delta))
        assert mean.shape == (len(paths), 6)
        assert np.all(mean > 0.0) and np.all(mean <= 1.0 + ROUNDING)


@pytest.mark.parametrize(("epsilon", "delta"), LINES)
def test_the_factors_of_the_worst_law_have_mean_one_on_its_own_path_and_more_on_a_law_beyond(epsilon, delta):
    # cells 0 and 1 lose the most under the line, 2 and 3 the other way round: no bet is wasted there
    keep, rest = special.expit(epsilon), 1.0 - delta
    p = np.array([delta, rest * keep, rest * (1.0 - keep), 0.0])
    components = random_components(np.random.default_rng(5), 6, epsilon, delta)
    components = dataclasses.replace(components, down=components.up)  # the charge is that of both bets
    paths, bets = of_all_paths(4, components)
    own = int(np.flatnonzero(np.all(paths == [LEVELS - 1, LEVELS - 1, 0, 0], axis=1))[0])
    mean = 0.5 * (factors(bets, p, 1, epsilon, delta) + factors(bets, p[::-1], 0, epsilon, delta))[own]
    assert mean == pytest.approx(np.ones(6), abs=1e-9)
    beyond = np.array([1.0, 0.0, 0.0, 0.0])  # the control: releases its input
    mean = 0.5 * (factors(bets, beyond, 1, epsilon, delta) + factors(bets, beyond[::-1], 0, epsilon, delta))[own]
    assert np.all(mean[components.up[0] > 0.0] > 1.0)


@pytest.mark.parametrize(("epsilon", "delta"), LINES)
@pytest.mark.parametrize("may_have_delta", [False, True])
def test_the_components_of_a_line_are_legal_there_and_increase_in_level(epsilon, delta, may_have_delta):
    components = components_for(epsilon, delta, FRACTIONS, 0.0, may_have_delta)
    charge = 0.5 * delta * (components.up + components.down)
    assert np.all(np.maximum(components.up, components.down) * math.exp(epsilon) + charge < 1.0)
    is_spread = np.isnan(components.middle)
    assert np.all(is_spread | ((components.middle > 0.0) & (components.middle < components.highest)))
    assert np.any(is_spread) != may_have_delta
    assert np.all(components.highest > epsilon)  # the level at which its stake pays
    assert np.all(components.up + components.down > 0.0)
    assert may_have_delta == bool(np.any(components.up * components.down == 0.0))  # one direction alone


def test_a_stake_that_is_no_longer_legal_counts_as_nothing():
    components = components_for(0.5, 0.0, FRACTIONS)
    _, bets = of_all_paths(2, components)
    logs = bets.log_wealth(np.zeros((2, 2, 25)), np.full((1, 1), 0.5), np.zeros((1, 1)))
    assert np.allclose(logs, 0.0)
    logs = bets.log_wealth(np.zeros((2, 2, 25)), np.full((1, 1), 30.0), np.zeros((1, 1)))
    assert np.all(logs == -math.inf)


# --- the whole wealth ---


SPLITS = ([0, 1, 2, 3], [0, 0, 1, 2], [0, 1, 1, 0])  # the cell of each outcome, in three partitions
# Of which one is free, levels of one only rise, and one has two cells that mirror each other, with falling levels.
ALL_ORDERS = PathPriors(np.array([0.5, 0.3, 0.8]), np.array([0, 1, -1]), np.array([-1, -1, 1]))


def book_of(rng, draws=20, law=None):
    """Training counts of random draws, in the partitions of `SPLITS`."""
    train = np.zeros((2, 4, len(SPLITS)))
    for label in (0, 1):
        for outcome in rng.choice(4, size=draws, p=None if law is None else law[1 - label]):
            for k, cell_of in enumerate(SPLITS):
                train[label, cell_of[outcome], k] += 1.0
    return Book(train, np.zeros_like(train), ALL_ORDERS)


def live(draws):
    counts = np.zeros((2, 4, len(SPLITS)))
    for label, outcome in draws:
        for k, cell_of in enumerate(SPLITS):
            counts[label, cell_of[outcome], k] += 1.0
    return counts


def fitted(book, epsilon, delta, may_have_delta=None, fraction=FRACTIONS):
    may_have_delta = delta > 0.0 if may_have_delta is None else may_have_delta
    components = components_for(epsilon, delta, fraction, 0.0, may_have_delta)
    prior = np.log(np.array([[0.6], [0.2], [0.2]])) + np.zeros_like(components.up)
    return fit_bets(book, components, prior, (len(SPLITS),))


def log_total(bets, counts, epsilon, delta):
    return float(
        special.logsumexp(bets.log_wealth(counts, np.full((1, 1), epsilon), np.full((1, 1), delta)) + bets.log_weights)
    )


def expected(bets, p, q, epsilon, delta, draws):
    labelled = [(1, o, 0.5 * p[o]) for o in range(4)] + [(0, o, 0.5 * q[o]) for o in range(4)]
    total = 0.0
    for game in itertools.product(labelled, repeat=draws):
        counts = live([(label, outcome) for label, outcome, _ in game])
        total += math.prod(mass for *_, mass in game) * math.exp(log_total(bets, counts, epsilon, delta))
    return total


@pytest.mark.parametrize(("epsilon", "delta"), LINES)
@pytest.mark.parametrize("seed", range(3))
def test_the_whole_wealth_has_expectation_at_most_one(epsilon, delta, seed):
    rng = np.random.default_rng(seed)
    p, q = law_within(rng, 4, epsilon, delta)
    bets = fitted(book_of(rng, law=(p, q)), epsilon, delta)
    for first, second in ((p, q), (q, p)):
        assert expected(bets, first, second, epsilon, delta, 1) <= 1.0 + ROUNDING
        assert expected(bets, first, second, epsilon, delta, 2) <= 1.0 + ROUNDING


def test_the_whole_wealth_grows_on_a_law_beyond_the_line():
    # The control of the test above: the same enumeration exceeds 1 where the claim is broken.
    p, q = np.array([0.7, 0.1, 0.1, 0.1]), np.array([0.1, 0.1, 0.1, 0.7])
    bets = fitted(book_of(np.random.default_rng(0), law=(p, q)), 1.0, 0.0)
    assert expected(bets, p, q, 1.0, 0.0, 1) > 1.01
    assert expected(bets, p, q, 1.0, 0.0, 2) > 1.02


def test_no_draws_leave_the_wealth_at_one():
    for epsilon, delta in LINES:
        bets = fitted(book_of(np.random.default_rng(0)), epsilon, delta)
        assert log_total(bets, live([]), epsilon, delta) == pytest.approx(0.0, abs=1e-9)


# --- monotone in the line ---


draws_of = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), max_size=40)


@FIXED
@given(draws_of, st.sampled_from(LINES), st.integers(0, 5))
def test_wealth_decreases_in_epsilon_and_in_delta(draws, line, seed):
    bets = fitted(book_of(np.random.default_rng(seed)), *line, may_have_delta=True)
    counts = live(draws)
    grid = np.linspace(0.0, 1.0, 21)
    by_epsilon = [log_total(bets, counts, 4.0 * v, line[1]) for v in grid]
    by_delta = [log_total(bets, counts, line[0], v) for v in grid]
    for values in (by_epsilon, by_delta):
        finite = [v for v in values if v > -math.inf]
        assert values[: len(finite)] == finite  # once nothing is legal, nothing is legal any more
        assert np.all(np.diff(finite) <= 1e-9)  # rounding of sums of 200 logarithms


@FIXED
@given(
    draws_of, st.sampled_from([GaussianDP(1.0), ProfileClaim(PureDP(1.0).profile)]), st.sampled_from([0.0, 0.5, 2.0])
)
def test_wealth_decreases_along_a_family_at_one_anchor(draws, claim, anchor):
    epsilon, delta = (float(part[0]) for part in claim.lines(np.array([claim.value]), anchor))
    bets = fitted(book_of(np.random.default_rng(3)), epsilon, delta, may_have_delta=True)
    lines = zip(*claim.lines(np.linspace(0.05, 3.0, 21), anchor), strict=True)
    values = [log_total(bets, live(draws), float(e), float(d)) for e, d in lines]
    finite = [v for v in values if v > -math.inf]
    assert values[: len(finite)] == finite
    assert np.all(np.diff(finite) <= 1e-9)


# --- weights ---


def total_weight(bets):
    return float(special.logsumexp(bets.log_weights))


@pytest.mark.parametrize(("epsilon", "delta"), LINES)
def test_weights_sum_to_one_also_after_a_choice(epsilon, delta):
    bets = fitted(book_of(np.random.default_rng(1)), epsilon, delta)
    assert total_weight(bets) == pytest.approx(0.0, abs=1e-9)
    assert total_weight(bets.only(np.array([0, 2, 3]))) == pytest.approx(0.0, abs=1e-9)
    assert total_weight(bets.for_partitions(np.array([0, 2]), 4)) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 5.0])
def test_the_growth_of_a_component_is_the_relative_entropy_of_its_accuracy(epsilon):
    components = components_for(epsilon, 0.0, FRACTIONS)
    right, allowed = special.expit(components.highest), special.expit(epsilon)
    expected = special.rel_entr(right, allowed) + special.rel_entr(1.0 - right, 1.0 - allowed)
    assert components.growth(np.full((1, 1), epsilon)) == pytest.approx(expected, rel=1e-9)


def test_the_growth_of_a_component_is_right_where_hardly_a_guess_may_be_wrong():
    # The relative entropy of Poisson's law, which it tends to: that of (1 - f) p wrong guesses from p.
    components = components_for(60.0, 0.0, FRACTIONS)
    fraction = -np.expm1(special.log_expit(-components.highest) - special.log_expit(-60.0))
    expected = math.exp(-60.0) * ((1.0 - fraction) * np.log1p(-fraction) + fraction)
    assert components.growth(np.full((1, 1), 60.0)) == pytest.approx(expected, rel=1e-6)
    assert np.all(components_for(700.0, 0.0, FRACTIONS).growth(np.full((1, 1), 700.0)) >= 0.0)


def test_no_weight_is_far_below_an_even_share():
    # one partition that explains the training draws by far the best must not silence the others
    book = book_of(np.random.default_rng(0), draws=2_000, law=([0.9, 0.1, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9]))
    bets = fitted(book, 1.0, 0.0)
    assert bets.log_weights.min() >= math.log(betting.FLOOR / bets.log_weights.size) - 1e-9


def test_levels_between_the_extremes_are_averaged_over_where_they_are_spread():
    components = components_for(1.0, 0.0, FRACTIONS)
    book = book_of(np.random.default_rng(0))
    model = betting._model(book.train, components)  # (cells, partitions, levels, components)
    for k in np.flatnonzero(np.isnan(components.middle[0])).tolist():
        between = np.array([0.15, 0.3, 0.45, 0.6, 0.75, 0.9]) * components.highest[0, k]
        for cell, partition in itertools.product(range(4), range(3)):
            zeros, ones = book.train[:, cell, partition]
            upper = np.mean(special.expit(between) ** ones * special.expit(-between) ** zeros)
            lower = np.mean(special.expit(-between) ** ones * special.expit(between) ** zeros)
            assert np.exp(model[cell, partition, 3, k]) == pytest.approx(upper, rel=1e-9)
            assert np.exp(model[cell, partition, 1, k]) == pytest.approx(lower, rel=1e-9)


def test_what_lies_between_has_no_say_in_which_extreme_is_bet_on():
    # 40% of the draws at log-odds 1.2, 60% at 0.4, and the line is at 1: exact counts, as many as fit no level but 1.2.
    odds, draws = np.array([-1.2, -0.4, 0.4, 1.2]), np.array([4_000.0, 6_000.0, 6_000.0, 4_000.0])
    train = np.stack([draws * special.expit(-odds), draws * special.expit(odds)])[..., None]
    book = Book(train, np.zeros_like(train), PathPriors.free([0.5]))
    components = components_for(1.0, 0.0, wealth.fractions(40_000, math.log(20.0)))
    bets = fit_bets(book, components, np.zeros_like(components.up), (1,))
    is_spread = np.isnan(components.middle[0])
    distance = np.abs(components.highest[0] - 1.2)
    best = int(np.argmax(bets.log_weights[0]))
    assert is_spread[best] and distance[best] == distance[is_spread].min()


def test_what_wins_in_a_tail_has_weight_whatever_the_bulk_says():
    # Half a million labels at log-odds 0.7 say that the highest level is low; 400 of 420 in the last cell are label 1,
    # which breaks (1, 0.0001), and only components with a high level and a large stake win by it. Exact counts.
    train = np.array([[170_000.0, 340_000.0, 400.0], [340_000.0, 170_000.0, 20.0]])[::-1, ::-1, None]
    book = Book(train, np.zeros_like(train), PathPriors.free([0.5]))
    components = components_for(1.0, 1e-4, wealth.fractions(10**6, math.log(20.0)), 0.0, True)
    prior, line = np.zeros_like(components.up), (np.full((1, 1), 1.0), np.full((1, 1), 1e-4))
    by_labels = fit_bets(book, components, prior, (1,))
    bets = fit_bets(book, components, prior, (1,), line)
    won = bets.log_wealth(book.train, *line)
    best = int(np.argmax(won[0]))
    least = math.log(betting.FLOOR / prior.size)
    assert won[0, best] > 20.0
    assert by_labels.log_weights[0, best] == pytest.approx(least, abs=1e-6)  # the labels alone silence it
    assert np.exp(special.logsumexp(bets.log_weights[won > won[0, best] - 3.0])) > 0.5


def test_weights_of_several_epochs_sum_to_one_in_each():
    books = [book_of(np.random.default_rng(seed)) for seed in (1, 2)]
    components = components_for(1.0, 0.0, FRACTIONS)
    prior = np.zeros((6, components.up.shape[1]))
    together = [np.concatenate([getattr(book, name) for book in books], axis=2) for name in ("train", "live")]
    paths = PathPriors.concatenated([book.paths for book in books])
    bets = fit_bets(Book(*together, paths), components, prior, (3, 3))
    for epoch in (bets.log_weights[:3], bets.log_weights[3:]):
        assert float(special.logsumexp(epoch)) == pytest.approx(0.0, abs=1e-9)


def test_bets_on_some_partitions_have_their_wealth():
    bets = fitted(book_of(np.random.default_rng(1)), 1.0, 0.0)
    counts = live([(1, 0), (0, 3), (1, 1), (1, 3)])
    line = np.full((1, 1), 1.0), np.zeros((1, 1))
    some = bets.for_partitions(np.array([1, 2]), 3)  # the second and third have three cells at most
    assert np.allclose(some.log_wealth(counts[:, :3, 1:], *line), bets.log_wealth(counts, *line)[1:], atol=1e-12)
    fewer = bets.only(np.array([1, 4]))
    assert np.allclose(fewer.log_wealth(counts, *line), bets.log_wealth(counts, *line)[:, [1, 4]], atol=1e-12)


def test_epochs_that_are_stacked_have_the_wealth_they_have_alone():
    line = np.full((1, 1), 0.5), np.full((1, 1), 0.02)
    rng = np.random.default_rng(4)
    small = Book(
        *rng.integers(0, 9, (2, 2, 3, 2)).astype(float),
        PathPriors(np.full(2, 0.4), np.array([-1, 1]), np.array([2, -1])),
    )
    large = book_of(rng)
    large = dataclasses.replace(large, live=live([(1, 0), (1, 2), (0, 3), (0, 1)]))
    components = components_for(0.5, 0.02, FRACTIONS, 0.0, True)
    bets = [
        fit_bets(book, components, np.zeros((book.train.shape[2], components.up.shape[1])), (book.train.shape[2],))
        for book in (small, large)
    ]
    books, sizes = (small, large), [[3, 3], [4, 4, 4]]
    stakes = [stakes_of(book.live, book.paths) for book in books]
    lengths = [book.paths.lengths(np.array(own)).tolist() for book, own in zip(books, sizes, strict=True)]
    assert lengths[0] == [2, 3]  # two mirrored cells are one of the chain
    together = stack_of_bets(stakes, bets, lengths, np.zeros(2)).log_wealth(0.5, lambda value, components: line)
    for won, book, own in zip(together, books, bets, strict=True):
        alone = own.log_wealth(book.live, *line) + own.log_weights
        assert won == pytest.approx(special.logsumexp(alone), abs=1e-10)  # the same sums, of other paddings


@FIXED
@given(draws_of, st.sampled_from(LINES), st.integers(0, 5))
def test_the_fit_never_looks_at_live_counts(draws, line, seed):
    # Validity: what is bet depends on training draws alone.
    book = book_of(np.random.default_rng(seed))
    first, second = fitted(book, *line), fitted(dataclasses.replace(book, live=live(draws)), *line)
    assert np.array_equal(first.log_weights, second.log_weights)
    for part in ("extremes", "between", "total"):
        assert np.array_equal(getattr(first.model, part), getattr(second.model, part))
    assert np.array_equal(first.evidence, second.evidence)


def test_components_of_several_partitions_are_stacked_as_they_come_and_once_where_all_are_the_same():
    several = [components_for(epsilon, 0.0, np.array([0.2, 0.7])) for epsilon in (0.5, 1.0, 0.5)]
    several += [several[0], several[1]]
    together, copied = Components.concatenated(several, axis=0), Components.stacked(several)
    same = Components.stacked([several[0], several[2], several[3]])  # NaN is the same as NaN
    for field in dataclasses.fields(Components):
        assert np.array_equal(getattr(together, field.name), getattr(copied, field.name), equal_nan=True)
        assert np.array_equal(getattr(same, field.name), getattr(several[0], field.name), equal_nan=True)


def test_weights_are_half_of_the_labels_and_half_even_times_what_was_won():
    # By the formula, without logarithms: a few draws, so that nothing underflows. Epochs of one partition, two anchors
    # at most; FLOOR of the weights is spread evenly at the end.
    train = np.array([[9.0, 3.0], [2.0, 8.0]])[..., None]
    book = Book(train, np.zeros_like(train), PathPriors.free([0.5]))
    components = components_for(1.0, 0.0, FRACTIONS)
    line = (np.full((1, 1), 1.0), np.zeros((1, 1)))
    bets = fit_bets(book, components, np.zeros_like(components.up), (1,), line)
    won, evidence, anchors = np.exp(bets.log_wealth(train, *line)[0]), np.exp(bets.evidence[0]), components.anchor[0]
    weights = np.zeros(len(won))
    for anchor in set(anchors.tolist()):
        same = anchors == anchor
        share = evidence[same] / evidence[same].sum()
        weights[same] = (betting.EVEN / same.sum() + (1.0 - betting.EVEN) * share) * won[same]
    weights = (1.0 - betting.FLOOR) * weights / weights.sum() + betting.FLOOR / len(weights)
    assert np.exp(bets.log_weights[0]) == pytest.approx(weights, rel=1e-9)
    assert weights.max() > 1.5 * weights.min()


def test_twins_share_what_they_have_together_by_how_likely_the_labels_are():
    """Twins have the same cells: the labels decide between them, and not between them and others."""
    book = book_of(np.random.default_rng(6), draws=40, law=([0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]))
    places = np.array([0, 0, 1, 0])  # the first partition three times, with other priors
    paths = PathPriors(np.array([0.5, 0.9, 0.3, 0.05]), np.array([0, 1, 1, -1]), np.full(4, -1))
    book = Book(book.train[:, :, places], book.live[:, :, places], paths)
    components = components_for(0.5, 0.0, FRACTIONS)
    prior = np.log(np.array([[0.1], [0.2], [0.4], [0.3]])) + np.zeros_like(components.up)
    alone = fit_bets(book, components, prior, (4,))
    bets = fit_bets(book, components, prior, (4,), twins=[7, 7, 3, 7])

    def per_partition(one):  # without the part that is spread evenly
        return (np.exp(one.log_weights) - betting.FLOOR / one.log_weights.size).sum(axis=1) / (1.0 - betting.FLOOR)

    likelihood = np.exp(bets.evidence).sum(axis=1)[[0, 1, 3]]
    decided = 1.0 - betting.EVEN_TWINS
    factor = np.ones(4)
    factor[[0, 1, 3]] = decided * 3.0 * likelihood / likelihood.sum() + betting.EVEN_TWINS
    weights = per_partition(alone) * factor
    assert per_partition(bets) == pytest.approx(weights / weights.sum(), rel=1e-9)
    assert 0.0 < betting.EVEN_TWINS < 1.0 and factor.max() > 1.5 * factor.min()
    assert total_weight(bets) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("columns", [1, 3])
def test_wealth_that_is_summed_in_parts_is_that_of_the_whole(monkeypatch, columns):
    bets = fitted(book_of(np.random.default_rng(1)), 0.5, 0.1)
    counts, line = live([(1, 0), (0, 3), (1, 1), (1, 3)]), (np.full((1, 1), 0.5), np.full((1, 1), 0.1))
    whole = bets.log_wealth(counts, *line)
    assert whole.shape[1] > 3 * columns  # several parts, the last one shorter or not
    partitions, cells = stakes_of(counts, bets.paths).shape[:2]
    monkeypatch.setattr(betting, "AT_ONCE", columns * LEVELS * partitions * cells)
    # sums of numbers of the size of 1 in another order
    assert np.allclose(bets.log_wealth(counts, *line), whole, rtol=0.0, atol=1e-12)
