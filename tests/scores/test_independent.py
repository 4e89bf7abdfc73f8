"""The bound for canaries that are answered independently: its theorem by enumeration, and how often it errs."""

import itertools
import math

import independent_audits
import numpy as np
import pytest
from independent_audits import LEVEL, Cell, confident_by, errors_of, product_cells
from scipy import special, stats

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.scores import independent, sums
from dpaudit.scores.dependence import dependence_p_value
from dpaudit.scores.guesses import RankedLabels, Record, Rule
from dpaudit.scores.independent import claimed_accuracy, gaussian_accuracy, lines_accuracy, tail

EXTREMAL = {0.4: 0.6, 1.5: 0.4}  # a pair of laws: confidences with their probabilities


def law_of_right_guesses(confidences, guesses):
    """The law of the number of right guesses among the most confident, of canaries with these confidences."""
    law = np.ones(1)
    for epsilon in sorted(confidences, reverse=True)[:guesses]:
        law = np.convolve(law, [special.expit(-epsilon), special.expit(epsilon)])
    return law


def largest_law(canaries, guesses):
    """The law of W*, over all confidences of all canaries."""
    total = np.zeros(guesses + 1)
    for confidences in itertools.product(EXTREMAL, repeat=canaries):
        total += math.prod(EXTREMAL[one] for one in confidences) * law_of_right_guesses(confidences, guesses)
    return total


SCORES = (-2, -1, 1, 2)


def tails_of(kernels, guesses, order_of, guess_of):
    """P(W >= v) for v = 0, 1, ..., by enumeration of coins and scores; kernels of shape (canaries, outputs, scores)."""
    outputs = [[w * special.expit(s * e * label) for e, w in EXTREMAL.items() for s in (-1, 1)] for label in (-1, 1)]
    laws = np.einsum("lo,cos->cls", np.array(outputs), kernels)  # (canaries, labels, scores)
    canaries, law = len(kernels), np.zeros(guesses + 1)
    for labels in itertools.product((0, 1), repeat=canaries):
        for places in itertools.product(range(len(SCORES)), repeat=canaries):
            scores = [SCORES[place] for place in places]
            right = sum(labels[c] == guess_of(scores, c, j) for j, c in enumerate(order_of(scores)[:guesses]))
            law[right] += 0.5**canaries * math.prod(laws[c, labels[c], places[c]] for c in range(canaries))
    return np.cumsum(law[::-1])[::-1]


def by_ends(scores):
    """The highest score, then the lowest."""
    order = sorted(range(len(scores)), key=lambda c: (-scores[c], c))
    return [order[0], order[-1]]


def by_size(scores):
    return sorted(range(len(scores)), key=lambda c: (-abs(scores[c]), c))


def test_no_product_of_mechanisms_that_keep_a_claim_has_more_right_guesses_than_the_extremal_ones():
    """Three canaries, each with a random garbling of its own of the extremal pair's four outputs; two ways to guess."""
    rng = np.random.default_rng(1)
    bound = np.cumsum(largest_law(3, 2)[::-1])[::-1]
    for _ in range(60):
        kernels = rng.dirichlet(np.full(4, rng.choice([0.05, 1.0])), size=(3, 4))
        assert np.all(tails_of(kernels, 2, by_ends, lambda scores, c, j: j == 0) <= bound + 1e-12)
        assert np.all(tails_of(kernels, 2, by_size, lambda scores, c, j: scores[c] > 0) <= bound + 1e-12)
    itself = np.tile(np.eye(4)[[1, 2, 0, 3]], (3, 1, 1))  # outputs are (0.4, -), (0.4, +), (1.5, -), (1.5, +)
    assert tails_of(itself, 2, by_size, lambda scores, c, j: scores[c] > 0) == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("guesses, correct", [(3, 3), (5, 5), (10, 8), (12, 9)])
def test_the_sum_over_cells_is_just_above_the_exact_tail(guesses, correct):
    canaries = 12
    exact = largest_law(canaries, guesses)[correct:].sum()
    at = np.array([0.0, *EXTREMAL])
    # the pair's hockey-stick divergence: the sum over outputs of (p - e^epsilon q)+
    deltas = sum(w * np.maximum(0.0, np.exp(e) - np.exp(at)) / (1.0 + np.exp(e)) for e, w in EXTREMAL.items())
    accuracy = lines_accuracy(at, deltas)
    found = tail(Record(Rule(guesses), correct, canaries, LEVEL), accuracy)
    assert exact <= found <= 1.2 * exact + 1e-5  # cells of a few canaries are coarse


@pytest.mark.parametrize("guesses, canaries", [(20, 1_000), (570, 1_000), (5, 6)])
def test_cells_of_the_order_statistic_are_judged_by_their_lower_ends(guesses, canaries):
    """The r-th of n uniforms is Beta(r, n - r + 1): below each end are the cells before it."""
    ends, masses = independent.order_cells(guesses, canaries, LEVEL)
    below = stats.beta.cdf(ends, guesses, canaries - guesses + 1)
    assert np.cumsum(masses)[:-1] == pytest.approx(below, rel=1e-9)
    assert masses.sum() == pytest.approx(1.0, rel=1e-12) and masses[0] < 1e-4 * LEVEL


def test_all_guesses_on_randomised_response_have_the_binomial_tail():
    accuracy = claimed_accuracy(PureDP(1.0), 1.3)
    for guesses in (200, 40):
        found = tail(Record(Rule(guesses), 3 * guesses // 4, 200, LEVEL), accuracy)
        assert found == pytest.approx(stats.binom.sf(3 * guesses // 4 - 1, guesses, special.expit(1.3)), rel=1e-5)


def test_a_delta_tells_some_canaries_for_sure():
    """The number of canaries told is binomial; they are guessed on first."""
    epsilon, delta, canaries, guesses, correct = 0.7, 0.01, 300, 30, 26
    told = np.arange(guesses + 1)
    chances = stats.binom.pmf(told, canaries, delta)
    exact = float(chances @ stats.binom.sf(correct - told - 1, guesses - told, special.expit(epsilon)))
    found = tail(Record(Rule(guesses), correct, canaries, LEVEL), claimed_accuracy(ApproxDP(1.0, delta), epsilon))
    assert exact <= found <= 1.25 * exact  # within a cell of the order statistic the mean accuracy is that of its end


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
def test_the_gaussian_accuracy_is_that_of_a_quadrature_and_of_many_lines(mu):
    u = np.array([1e-4, 0.01, 0.2, 0.6, 1.0])
    z = np.linspace(0.0, 12.0, 400_001)
    share = special.ndtr(0.5 * mu - z) + special.ndtr(-0.5 * mu - z)
    exact = np.interp(u, share[::-1], special.ndtr(0.5 * mu - z)[::-1]) / u
    found = gaussian_accuracy(mu)(u)
    assert np.all(found >= exact - 1e-7) and found == pytest.approx(exact, abs=2e-4)
    epsilons = np.linspace(0.0, 30.0, 3_001)
    by_lines = lines_accuracy(epsilons, np.array([GaussianDP(mu).profile(epsilon) for epsilon in epsilons.tolist()]))
    assert np.all(by_lines(u) >= exact - 1e-7) and by_lines(u) == pytest.approx(exact, abs=5e-3)


def test_lines_that_other_lines_imply_change_nothing():
    one = lines_accuracy(np.array([1.0]), np.array([0.01]))
    more = lines_accuracy(np.array([1.0, 2.0, 1.0, 3.0]), np.array([0.01, 0.01, 0.5, 0.2]))
    u = np.linspace(0.001, 1.0, 50)
    assert one(u) == pytest.approx(more(u), rel=1e-12)
    assert one(np.array([0.01])) == pytest.approx([1.0]) and one(np.ones(1)) == pytest.approx(
        [0.01 + 0.99 * special.expit(1.0)], rel=1e-12
    )


@pytest.mark.parametrize("claim", [GaussianDP(1.0), PureDP(1.0), ApproxDP(1.0, 1e-5), ZeroConcentratedDP(0.5)])
def test_levels_of_the_sum_and_of_the_guesses_sum_to_the_level(claim):
    found = RankedLabels(np.arange(1_000) % 2, in_pairs=False)
    evidence = independent.evidence_of(found, claim, LEVEL)
    assert (evidence.sum is not None) == isinstance(claim, GaussianDP)
    parts = [one.level for one in evidence.lists] + ([evidence.sum.level] if evidence.sum else [])
    assert math.fsum(parts) == pytest.approx(LEVEL, rel=1e-12)
    (stated,) = independent.evidence_of(found, claim, LEVEL, 300).lists
    assert (stated.rule.guesses, stated.level) == (300, LEVEL)
    few = independent.evidence_of(found, claim, 0.005)  # so few draws of the sum tell nothing at such a level
    assert few.sum is None and math.fsum(one.level for one in few.lists) == pytest.approx(0.005, rel=1e-12)


# --- the sum of signals -----------------------------------------------------------------------------------------------


def test_weights_of_the_sum_fall_so_that_it_grows_with_every_number_of_right_guesses_from_the_top():
    for canaries in (1, 2, 7, 40, 1_000):
        ends = sums.steps_of(canaries)
        assert ends[-1] == canaries and np.all(np.diff(ends, prepend=0) >= 1)
        weights = sums.weights_of(len(ends))
        assert np.all(np.diff(weights) <= 0) and weights[-1] >= 0
    z, share, _ = sums.gaussian_law(2.0)  # the best weights are the derivative of mu z at a share, here by differences
    step = 1e-4
    moved = [(2.0 + d) * np.interp(0.3, *reversed(sums.gaussian_law(2.0 + d)[:2])) for d in (-step, step)]
    at = np.interp(0.3, share, z)
    assert (moved[1] - moved[0]) / (2.0 * step) == pytest.approx(at + np.tanh(at), abs=1e-3)


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
def test_accuracies_between_two_shares_are_those_of_a_quadrature(mu):
    shares = np.array([[0.001, 0.05, 0.06, 0.7, 0.9999]])
    z = np.linspace(0.0, 12.0, 400_001)[::-1]
    right = np.interp(shares, special.ndtr(0.5 * mu - z) + special.ndtr(-0.5 * mu - z), special.ndtr(0.5 * mu - z))
    exact = np.diff(right, prepend=0.0) / np.diff(shares, prepend=0.0)
    found = sums.step_accuracies(mu, shares)
    assert np.all(found >= exact - 1e-7) and found == pytest.approx(exact, abs=2e-4)


def test_the_p_value_of_the_sum_is_that_of_its_own_law():
    """Canaries on the claim, 40 of each: P(p <= 0.05) is 0.05 at most: P(Binomial(1,000, 0.05) >= 90) = 8e-8.

    Nearly as often as that it is: P(Binomial(1,000, 0.035) <= 15) = 1e-4 at this seed. (A twentieth too small a mu is
    tested by the same draws: the control below.)
    """
    rng, draw, errors = np.random.default_rng(8), confident_by(independent_audits.independent_uniforms, 1.0), 0
    for _ in range(1_000):
        is_in = rng.random(40) < 0.5
        found = independent_audits.order_of(is_in, draw(rng, is_in), rng)
        right = np.array([found.correct(Rule(end)) for end in sums.steps_of(40).tolist()])
        errors += sums.RankSum(right, 40, LEVEL, 0).rejects(1.0)
    assert 15 < errors < 90


def test_the_sum_rejects_an_interval_whatever_values_are_asked_first():
    right = np.array([0.8 * end for end in sums.steps_of(1_000)]).astype(np.int64)
    values = np.linspace(0.1, 3.0, 30)
    for order in (values, values[::-1]):
        one = sums.RankSum(right, 1_000, LEVEL, 1)
        said = dict(sorted((value, one.rejects(value)) for value in order.tolist()))
        assert sorted(said.values(), reverse=True) == list(said.values()) and 5 < sum(said.values()) < 25
        counts = np.array([known[1] for known in one._known])
        assert np.all(np.diff(counts, axis=0) >= 0)  # in each draw no guess is right at mu and wrong above it


# --- audits -----------------------------------------------------------------------------------------------------------


def canaries(count, mu, seed):
    rng = np.random.default_rng(seed)
    is_in = rng.random(count) < 0.5
    scores = rng.normal(size=count) + mu * is_in
    return scores[is_in], scores[~is_in]


def test_an_audit_has_both_bounds_and_its_verdict_rests_on_the_one_that_was_said(tmp_path):
    scores = canaries(2_000, 1.0, 1)
    found = {
        assume: dpaudit.audit_scores(*scores, claim="mu=0.8", assume=assume) for assume in ("nothing", "independent")
    }
    first, second = found["nothing"], found["independent"]
    assert first.parameter_lower == second.parameter_lower < 0.8 < second.independent.parameter_lower < 1.0
    assert (first.verdict, second.verdict) == ("not_refuted", "violated")
    assert first.independent == second.independent and second.independent.p_value > 0.01
    assert any("answered independently" in text for text in second.assumptions)
    assert not any("answered independently" in text for text in first.assumptions)
    for result in found.values():
        result.save(tmp_path / "scores.json")
        assert dpaudit.load_scores(tmp_path / "scores.json") == result
    from dpaudit.reports import render
    from dpaudit.reports.scores import headline

    assert " if canaries are answered independently; mu=0.8 was claimed" in headline(second)
    assert all("if canaries are independent" in render(result, "md") for result in found.values())


@pytest.mark.parametrize("arguments, message", [
    ({"assume": "independance"}, "assume must be 'nothing' or 'independent', got 'independance'"),
    ({"assume": "independent", "design": "many-runs"}, "assume must go with one run or pairs, got 'independent'"),
])  # fmt: skip
def test_an_assumption_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(UsageError, match=message):
        dpaudit.audit_scores([1.0, 2.0], [0.0, 1.0], claim="mu=1", **arguments)


def test_where_neighbours_go_together_the_verdict_rests_on_the_bound_without_the_assumption():
    rng = np.random.default_rng(3)
    is_in = rng.random(4_000) < 0.5
    scores = confident_by(independent_audits.in_groups, 1.0)(rng, is_in)
    result = dpaudit.audit_scores(scores[is_in], scores[~is_in], claim="mu=0.8", assume="independent")
    assert result.independent.p_value == 0.01 and result.independent.parameter_lower > 0.8
    assert (result.verdict, result.decisive) == ("not_refuted", result)
    assert any("the verdict rests on the other one" in note for note in result.notes)


def test_nothing_is_tested_of_scores_that_are_sorted():
    scores = [np.sort(side) for side in canaries(400, 1.0, 4)]
    result = dpaudit.audit_scores(*scores, claim="mu=0.5", assume="independent")
    assert result.independent.p_value is None
    assert any(note.startswith("Nothing was tested of whether canaries") for note in result.notes)
    assert dpaudit.audit_scores([1.0, 0.0], [0.5, 0.2, 0.1], claim="mu=1").independent.p_value is None


def test_pairs_have_both_bounds_too():
    rng = np.random.default_rng(5)
    result = dpaudit.audit_scores(rng.normal(1.0, 1.0, 500), rng.normal(size=500), claim="mu=1.5", design="paired")
    # the difference is N(1, 2), so that pairs are Gaussian DP with mu = sqrt 2; a seed in 20 is above
    assert 0.9 < result.independent.parameter_lower < math.sqrt(2.0)
    assert result.parameter_lower < result.independent.parameter_lower


# --- the test of independence -----------------------------------------------------------------------------------------


def test_the_p_value_of_independence_is_not_too_small():
    """P(p <= 0.05) is 0.05 at most: P(Binomial(1,000, 0.05) >= 90) = 8e-8. Ties, sides of different length and law."""
    assert stats.binom.sf(89, 1_000, 0.05) < 1e-7
    rng = np.random.default_rng(6)
    found = [dependence_p_value((np.round(rng.normal(size=60)), rng.exponential(size=37)), rng) for _ in range(1_000)]
    assert sum(p <= 0.05 for p in found) < 90


def test_dependence_of_blocks_groups_and_drifts_is_seen_where_the_bound_errs_by_a_tenth():
    """20 runs each of three; 400 of each in the measurements had no miss (miss rate below 2%, 99.9%)."""
    for cell in independent_audits.dependent_cells(2_000)[1:]:
        bounds, p_values = independent_audits.dependence_of(cell, 20)
        far = bounds > 1.1
        assert np.all(p_values[far] <= 0.01), cell.name


# --- how often the bound errs -----------------------------------------------------------------------------------------

RUNS = 500
MAX_ERRORS = 51  # P(Binomial(500, 0.05) >= 52) = 1.5e-6 a cell


def test_the_bound_lies_above_the_truth_in_at_most_5_percent_of_runs():
    assert stats.binom.sf(MAX_ERRORS, RUNS, LEVEL) < 2e-6
    for cell in (cell for cell in product_cells() if cell.canaries == 1_000):
        assert errors_of(cell, RUNS) <= MAX_ERRORS, cell.name


@pytest.mark.slow
@pytest.mark.parametrize("cell", product_cells(), ids=lambda cell: f"{cell.name}, {cell.canaries}")
def test_the_bound_lies_above_the_truth_in_at_most_5_percent_of_2000_runs(cell):
    """P(Binomial(2,000, 0.05) >= 149) = 1.3e-6 a cell."""
    assert stats.binom.sf(148, 2_000, LEVEL) < 2e-6
    assert errors_of(cell, 2_000) <= 148


def test_a_claim_that_is_broken_is_found_by_the_simulation():
    """The same runs against a claim of nine tenths of their mu: the negative control. All 50 runs err."""
    cell = Cell("too much", confident_by(independent_audits.independent_uniforms, 1.0), GaussianDP(0.6), 2_000)
    assert errors_of(cell, 50) == 50


@pytest.mark.slow
@pytest.mark.parametrize("canaries, least", [(1_000, 0.74), (10_000, 0.85), (100_000, 0.90)])
def test_the_bound_recovers_most_of_the_true_epsilon(canaries, least):
    """In the mean over mu = 0.5, 1, 2 and 20 runs each, whose deviation is below 0.02 (measured: 0.83, 0.94, 0.98)."""
    shares = [independent_audits.recovered(mu, canaries, 20)[1] for mu in independent_audits.GAUSSIANS]
    assert np.mean(shares) >= least
