"""Pilots of a fixed test: long ones of single numbers are counted in cells, and what is fitted holds of the draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from dpaudit.learning import predicted
from dpaudit.learning.fitted_scores import FittedScore, fit_scores
from dpaudit.learning.hints import Hints
from dpaudit.learning.histograms import Coordinate, Histogram
from dpaudit.learning.objectives import Objective
from dpaudit.learning.pilots import FOLDS, MOST_SORTED, PARTS, CountedPilot, CountedScore, DrawnPilot, pilot_of
from dpaudit.learning.predicted import LEARNED, Binned
from dpaudit.learning.predictors import proposed
from dpaudit.learning.rules import ABSTAIN, Rule
from dpaudit.learning.scores import LogRatio
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP
from dpaudit.reading.outcomes import Outcomes, Reading
from dpaudit.testing.fixed_game import DEVIATIONS, FixedGame
from dpaudit.testing.pair_game import PairGame
from dpaudit.testing.refined_edges import RefinedGame

LARGEST = float(np.finfo(float).max)
FIXED = settings(derandomize=True, deadline=None, max_examples=150)
special = [0.0, -0.0, 0.5, 1.0, math.nextafter(1.0, 2.0), 5e-324, LARGEST, -LARGEST, math.inf, -math.inf, math.nan]
anything = st.one_of(st.floats(-2.0, 2.0), st.sampled_from(special))
OBJECTIVE = Objective(1.0, 0.0, 1_000_000, 0.05, False)


def outcomes(values):
    return Outcomes(np.array(values, dtype=float).reshape(-1, 1))


def objectives(epsilon=0.5):
    return {k: Objective(epsilon, 0.0, 1_000_000, 0.05, False, k) for k in DEVIATIONS}


def laws(kind, size, rng):
    """Draws of x and of x_prime of a kind."""
    if kind == "continuous":
        return rng.laplace(size=size), 1.0 + rng.laplace(size=size)
    if kind == "integers":
        return rng.poisson(5.0, size).astype(float), rng.poisson(5.5, size).astype(float)
    if kind == "constant":
        return np.ones(size), np.ones(size)
    if kind == "infinite":
        return np.where(rng.random(size) < 0.4, -np.inf, np.inf), np.where(rng.random(size) < 0.5, -np.inf, np.inf)
    draws = [rng.standard_cauchy(size), rng.standard_cauchy(size)]
    for of_side, share in zip(draws, (0.02, 0.01), strict=True):  # atoms of every sort
        for value in special:
            of_side[rng.random(size) < share / len(special)] = value
    return draws[0], draws[1]


KINDS = ["continuous", "integers", "constant", "infinite", "atoms"]


# --- rules on a histogram of one column ---


@FIXED
@given(
    st.lists(anything.filter(lambda edge: not math.isnan(edge) and edge > -math.inf), max_size=12, unique=True),
    st.lists(st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0]), min_size=14, max_size=14),
    st.sampled_from([(-1.5, 1.5), (0.0, 0.0), (-math.inf, 0.5), (-0.5, math.inf), (-math.inf, math.inf)]),
    st.sampled_from([1, -1]),
    st.lists(anything, max_size=30),
    st.sampled_from([1, 1_500]),
)
def test_counting_between_edges_is_counting_scores(edges, values, thresholds, sign, outputs, times):
    edges = np.unique(np.array(edges, dtype=float))
    score = Histogram((0,), (edges,), (np.array(values[: len(edges) + 2]),), 1)
    rule = Rule(score, *thresholds, sign, Reading(1))
    near = [math.nextafter(edge, side) for edge in edges.tolist() for side in (-math.inf, math.inf)]
    draws = outcomes([*outputs, *edges, *near] * times)
    counts = rule.count(draws)
    assert counts.tolist() == rule.count_scores(score(draws)).tolist()
    assert counts.tolist() == [int(np.sum(rule.guess(draws) == guess)) for guess in (0, 1, ABSTAIN)]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_by_bins_are_the_sorted_scores(kind):
    first, second = (outcomes(side) for side in laws(kind, 3_000, np.random.default_rng(20_262_101)))
    rest = [side.rows(slice(1, None, 2)) for side in (first, second)]
    for fitted in fit_scores(first, second):
        if isinstance(fitted.score, Histogram):
            for of_side, side in zip((fitted.first, fitted.second), rest, strict=True):
                assert np.array_equal(of_side, np.sort(fitted.score(side)), equal_nan=True)


# --- long pilots ---


def most_right_by_trying(first, second):
    """Of rules with two thresholds that are never wrong on these numbers, the most guesses."""
    both = np.concatenate([first, second])
    cuts = np.unique(both[~np.isnan(both)])
    found = 0
    for own, other in ((first, second), (second, first)):  # the label that is guessed above `high`
        above = [np.count_nonzero(own > cut) for cut in (-math.inf, *cuts) if not np.any(other > cut)]
        above += [np.count_nonzero(own >= cut) for cut in cuts if not np.any(other >= cut)]
        below = [np.count_nonzero(other < cut) for cut in (math.inf, *cuts) if not np.any(own < cut)]
        below += [np.count_nonzero(other <= cut) for cut in cuts if not np.any(own <= cut)]
        found = max(found, max(above, default=0) + max(below, default=0))
    nan = [np.count_nonzero(np.isnan(side)) for side in (first, second)]
    return found + (max(nan) if min(nan) == 0 else 0)


@FIXED
@given(st.lists(anything, min_size=1, max_size=12), st.lists(anything, min_size=1, max_size=12))
def test_the_most_sure_guesses_are_those_of_a_rule_that_is_never_wrong(first, second):
    first, second = np.sort(np.array(first)), np.sort(np.array(second))
    most = most_right_by_trying(first, second)
    assert FittedScore("Coordinate 1", Coordinate(0, 1), Reading(1), first, second).most_sure == most
    cells = np.unique(np.concatenate([first, second]))  # one for each number; NaN's is the last
    cells = np.concatenate([cells[~np.isnan(cells)], [math.nan]])
    counts = [
        [np.count_nonzero(np.isnan(side) if math.isnan(cell) else side == cell) for cell in cells]
        for side in (first, second)
    ]
    counted = CountedScore("Coordinate 1", Coordinate(0, 1), cells, *(np.array(side) for side in counts))
    assert counted.most_sure == most


def whether_sure(game, claim, first, second, aim):
    fitted = game(claim, 1_000_000)
    fitted.fit(outcomes(first), outcomes(second), 0.05, aim=aim)
    return fitted.is_sure


@pytest.mark.parametrize("size", [400, MOST_SORTED + 1])
@pytest.mark.parametrize("shape", ["end", "atom", "nan", "cut"])
def test_a_fit_that_asks_for_sureness_alone_answers_as_a_whole_one(size, shape):
    rng = np.random.default_rng(20_261_123)
    seen = set()
    for claim in (PureDP(1.0), ApproxDP(1.0, 0.005)):
        for right in (8, 13, 14, 20, 29, 30, 31, 60, 200):
            first, second = rng.random(size), rng.random(size)
            if shape == "cut":  # about three times as many lie beyond the end
                second = second * (1.0 + 3.0 * right / size)
            else:
                second[:right] = {"end": 2.0, "atom": 0.5, "nan": math.nan}[shape] + 0.01 * rng.random()
            for game in (FixedGame, RefinedGame):
                whole, asked = (whether_sure(game, claim, first, second, aim) for aim in ("ranking", "sureness"))
                assert whole == asked
                seen.add((game, whole))
    # Edges are learned from short pilots alone; there fewer right guesses are enough than for a rule.
    expected = {(FixedGame, False), (RefinedGame, False), (FixedGame, True), (RefinedGame, True)}
    assert seen == expected or shape == "atom"


def test_edges_make_sure_what_no_rule_makes_sure():
    rng = np.random.default_rng(20_261_123)
    sure = {game: [0, 0] for game in (FixedGame, RefinedGame)}
    for _ in range(10):
        first, second = rng.random(5_000), 1.004 * rng.random(5_000)  # about 20 beyond the end: fewer than a rule needs
        for game, counts in sure.items():
            for k, aim in enumerate(("ranking", "sureness")):
                counts[k] += whether_sure(game, PureDP(1.0), first, second, aim)
    assert sure[FixedGame] == [0, 0] and sure[RefinedGame][0] == sure[RefinedGame][1] > 0


def test_only_long_pilots_of_single_numbers_are_counted():
    short, long = (outcomes(np.arange(size) % 7.0) for size in (MOST_SORTED, MOST_SORTED + 1))
    assert isinstance(pilot_of(long, long), CountedPilot)
    assert isinstance(pilot_of(short, long), DrawnPilot)
    vectors = Outcomes(np.zeros((MOST_SORTED + 1, 2)))
    assert isinstance(pilot_of(vectors, vectors), DrawnPilot)
    known = Hints(LogRatio(lambda data, outputs: -np.abs(np.asarray(outputs) - data), 0.0, 1.0))
    assert isinstance(pilot_of(long, long, known), DrawnPilot)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_hold_the_draws_that_are_in_them(kind):
    x, x_prime = laws(kind, 25_000, np.random.default_rng(20_262_102))
    pilot = CountedPilot.of(x, x_prime)
    assert np.all(np.diff(pilot.edges) > 0.0)
    for side, draws in enumerate((x_prime, x)):
        for part in range(PARTS):
            own = draws[part::PARTS]
            below = [int(np.sum(own < edge)) for edge in pilot.edges] + [int(np.sum(own == own))]
            assert np.cumsum(pilot.counts[side, part, :-1]).tolist() == below
            assert pilot.counts[side, part, -1] == np.sum(own != own)


@pytest.mark.parametrize("kind", KINDS)
def test_records_are_those_of_the_rules_on_the_draws(kind):
    x, x_prime = laws(kind, 25_000, np.random.default_rng(20_262_103))
    pilot = CountedPilot.of(x, x_prime)
    is_rest = np.arange(len(x)) % PARTS // FOLDS == 1
    for fitted in pilot.scores():
        sides = (x, x_prime) if isinstance(fitted.score, Coordinate | Binned) else (x[is_rest], x_prime[is_rest])
        assert fitted.draws == sum(len(side) for side in sides)
        for found in fitted.rules(OBJECTIVE):
            of_x, of_x_prime = (found.rule.count(outcomes(side)) for side in sides)
            n1, n0 = (len(side) for side in sides)
            assert found.correct == pytest.approx(0.5 * (of_x[1] / n1 + of_x_prime[0] / n0), abs=1e-12)
            assert found.wrong == pytest.approx(0.5 * (of_x[0] / n1 + of_x_prime[1] / n0), abs=1e-12)
            low, high = fitted.guessed_masses(found.rule)
            again = fitted.rule_like(found.rule, (low, high))
            if max(low, high) < 1.0:  # a rule that always guesses has no threshold
                assert fitted.guessed_masses(again) == pytest.approx((low, high), abs=1e-12)
            assert again.low <= math.nextafter(again.high, math.inf) and again.sides <= found.rule.sides


def test_records_that_are_shown_are_of_draws_that_were_held_back():
    """Counted again, draw by draw, with the rules of each fold."""
    x, x_prime = laws("atoms", 25_000, np.random.default_rng(20_262_104))
    pilot = CountedPilot.of(x, x_prime)
    totals: dict = {}
    for fold in range(FOLDS):
        is_held = np.arange(len(x)) % FOLDS == fold
        is_held_part = np.arange(PARTS)[:, None] % FOLDS == fold
        learned = tuple((proposal, np.where(is_held_part, 0, counts)) for proposal, counts in pilot.learned)
        alone = CountedPilot(pilot.edges, pilot.whole, np.where(is_held_part, 0, pilot.counts), learned=learned)
        held = outcomes(x[is_held]), outcomes(x_prime[is_held])
        for fitted in alone.scores():
            for way, objective in objectives().items():
                of_x, of_x_prime = (fitted.rules(objective)[0].rule.count(side) for side in held)
                correct, wrong = totals.get((fitted.kind, way), (0, 0))
                totals[fitted.kind, way] = correct + of_x[1] + of_x_prime[0], wrong + of_x[0] + of_x_prime[1]
    shown = pilot.cross_validated(objectives())
    assert {key: (round(s.correct * s.draws), round(s.wrong * s.draws)) for key, s in shown.items()} == totals


@pytest.mark.parametrize("kind", ["continuous", "integers"])
def test_two_long_samples_of_one_law_show_nothing(kind):
    """A threshold of 1e-7 for each of 9 records at most in 2 cases: a false alarm with probability below 2e-6."""
    rng = np.random.default_rng(20_262_105)
    x, x_prime = laws(kind, 60_000, rng)[0].reshape(2, -1)
    for record in CountedPilot.of(x, x_prime).cross_validated(objectives()).values():
        guesses = round((record.correct + record.wrong) * record.draws)
        assert stats.binom.sf(round(record.correct * record.draws) - 1, guesses, 0.5) > 1e-7


@pytest.mark.parametrize("where", ["atom", "tail", "nan"])
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproxDP(1.0, 1e-4)], ids=str)
def test_a_rare_leak_is_found_on_a_long_pilot(where, claim):
    """On 0.3% of the outputs of x, of 60,000 a side: about 180 draws, of which a third would do."""
    rng = np.random.default_rng(20_262_106)
    game = FixedGame(claim, 1_000_000)
    leaked = {"atom": 0.25, "tail": 40.0, "nan": np.nan}[where]
    for size in (60_000, 500_000):  # the pilot, the test
        x, x_prime = laws("continuous", size, rng)
        x = np.where(rng.random(size) < 0.003, leaked + (rng.random(size) if where == "tail" else 0.0), x)
        if size == 60_000:
            game.fit(outcomes(x), outcomes(x_prime), 0.05)
            game.start(0.05)
        else:
            game.add(game.statistic.count(outcomes(x)), game.statistic.count(outcomes(x_prime)))
    game.update()
    assert game.lower > 1.5


@pytest.mark.parametrize("known", [0, 1, 2, 5])
def test_a_pilot_of_nearly_nothing_but_nan_is_survived(known):
    numbers = np.full((25_000, 1), math.nan)
    numbers[:known, 0] = np.arange(known)
    game = FixedGame(PureDP(1.0), 100_000)
    game.fit(Outcomes(numbers), Outcomes(np.full((25_000, 1), math.nan)), 0.05)
    assert game.rule.sides in (0, 1, 2)


def test_a_mechanisms_own_density_is_asked_once_for_each_draw_of_a_pilot():
    asked = []

    def log_density(data, outputs):
        asked.append(len(outputs))
        return -np.abs(np.asarray(outputs, dtype=float) - data)

    rng = np.random.default_rng(1)
    first, second = (Outcomes(rng.laplace(centre, size=(1_000, 1))) for centre in (1.0, 0.0))
    pilot = pilot_of(first, second, Hints(LogRatio(log_density, 1.0, 0.0)))
    pilot.scores()
    pilot.cross_validated(objectives())
    pilot.scores(halves=False)
    # Of both samples, for x and for x_prime; the single outputs are to see whether a batch changes what is said of one.
    assert [size for size in asked if size > 1] == [1_000] * 4
    pilot_of(first, second, Hints(LogRatio(log_density, 1.0, 0.0))).scores()
    assert [size for size in asked if size > 1] == [1_000] * 8, "another pilot asks for itself"


@pytest.mark.parametrize("columns", [1, 3])
def test_learners_look_at_a_pilot_once_whoever_asks_for_scores(columns, monkeypatch):
    looks = []
    monkeypatch.setattr(predicted, "proposed", lambda *given: looks.append(len(given[0])) or proposed(*given))
    rng = np.random.default_rng(2)
    first, second = (Outcomes(np.floor(rng.laplace(size=(600, columns)) * 4 + k)) for k in (0, 1))
    pilot = pilot_of(first, second)
    kinds = {score.kind for score in pilot.scores()}
    shown = pilot.cross_validated(objectives())
    assert looks == [600]
    learned = {kind for kind in kinds if kind.startswith(LEARNED)}
    assert learned
    assert {kind for kind, _ in shown if kind.startswith(LEARNED)} == learned, "held draws compare the same ones"


def test_a_density_that_writes_where_it_reads_changes_nothing():
    def log_density(data, outputs):
        outputs -= data
        return -np.abs(outputs[:, 0])

    numbers = np.linspace(-3.0, 3.0, 50)[:, None]
    ratio = LogRatio(log_density, 1.0, 0.0, (1,))
    expected = np.abs(numbers[:, 0]) - np.abs(numbers[:, 0] - 1.0)
    # Ratios are rounded to nine decimals.
    assert np.allclose(ratio(Outcomes(numbers.copy(), None, (1,))), expected, rtol=0.0, atol=1e-9)


def test_two_tests_of_a_pair_share_its_pilot():
    asked = []

    def log_density(data, outputs):
        asked.append(len(outputs))
        return -0.5 * (np.asarray(outputs, dtype=float) - data) ** 2

    pair = PairGame(GaussianDP(1.0), (0, 1), False, 4_000, Hints(LogRatio(log_density, 1.0, 0.0)))
    assert len(pair.uses) == 2
    rng = np.random.default_rng(3)
    pair.fit(*(Outcomes(rng.normal(k, size=(500, 1))) for k in (1.0, 0.0)), 0.05)
    assert [size for size in asked if size > 1] == [500] * 4, "each side under each input, once for both tests"
