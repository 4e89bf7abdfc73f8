"""The exponential mechanism on histograms: its privacy theorem and its utility theorem, exactly, and its twin.

Where a statement of the paper is refuted, its counterexample is read from the ledger and replayed.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from_outcomes
from support.refusals import refusals

from dpaudit_mechanisms.dx_exponential import DxExponential, score_sensitivities
from dpaudit_mechanisms.exponential import Exponential
from dpaudit_mechanisms.faulty.dx_exponential import DxExponentialTooFlat
from dpaudit_mechanisms.histograms import all_histograms, neighbours
from dpaudit_mechanisms.ledger import entry

ROUNDING = 1e-9
METRIC = np.array([[0.0, 1.0, 0.4], [1.0, 0.0, 1.2], [0.4, 1.2, 0.0]])


def random_utility(seed, outcomes, kind):
    """Scores that are linear in the counts, or not at all: a table of random numbers looked up by the histogram."""
    if kind == "linear":
        weights = np.random.default_rng(seed).normal(size=(8, outcomes))
        return lambda x: x @ weights[: x.shape[1]]

    def scores(x):
        rows = [np.random.default_rng([seed, *row.astype(int)]).normal(size=outcomes) for row in x]
        return np.array(rows)

    return scores


@st.composite
def instances(draw):
    """A utility, its number of outcomes, a symmetric matrix of budgets, and a number of records."""
    elements, outcomes, records = draw(st.integers(2, 4)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    seed = draw(st.integers(0, 2**32))
    budgets = np.random.default_rng(seed).uniform(0.2, 2.0, size=(elements, elements))
    budgets = np.triu(budgets, 1) + np.triu(budgets, 1).T
    return random_utility(seed, outcomes, draw(st.sampled_from(["linear", "table"]))), budgets, records


@pytest.mark.claim("DX-D5", "UP-D2")
@given(instances())
def test_sensitivities_are_the_maxima_of_the_definition(instance):
    utility, budgets, records = instance
    expected = np.zeros_like(budgets)
    for x in all_histograms(len(budgets), records):
        for x_prime, i, j in neighbours(x):
            change = np.abs(utility(x[None].astype(float)) - utility(x_prime[None].astype(float))).max()
            expected[i, j] = max(expected[i, j], change)
    assert score_sensitivities(utility, len(budgets), records) == pytest.approx(expected, abs=1e-14)


@pytest.mark.claim("DX-T3", "DX-A0")
@given(instances(), st.floats(1.0, 3.0))
def test_no_neighbours_lose_more_than_their_budget(instance, slack):
    utility, budgets, records = instance
    mechanism = DxExponential(utility, budgets, records)
    for c in (mechanism.c, mechanism.c * slack):
        logs = DxExponential(utility, budgets, records, c).log_probabilities(all_histograms(len(budgets), records))
        places = {tuple(row): n for n, row in enumerate(all_histograms(len(budgets), records).tolist())}
        for x, n in places.items():
            for x_prime, i, j in neighbours(x):
                loss = np.abs(logs[n] - logs[places[tuple(x_prime.tolist())]]).max()
                assert loss <= budgets[i, j] * (1.0 + ROUNDING)


@pytest.mark.claim("DX-D9")
def test_the_law_is_that_of_the_table_of_scores_and_the_sampler_draws_it():
    utility = random_utility(5, 4, "linear")
    mechanism = DxExponential(utility, METRIC, records=3)
    inputs = all_histograms(3, 3)
    same = Exponential(utility(inputs.astype(float)), metric=1000.0, c=mechanism.c)
    for n, x in enumerate(inputs):
        assert mechanism.distribution(x) == pytest.approx(same.distribution(n), rel=1e-12)
    x = inputs[4]
    weights = np.exp(utility(x[None].astype(float))[0] / (2.0 * mechanism.c))
    assert mechanism.distribution(x) == pytest.approx(weights / weights.sum(), rel=1e-12)
    samples = mechanism.sample(x, DRAWS, np.random.default_rng(20_261_121))
    assert is_drawn_from_outcomes(samples, mechanism.outcomes, mechanism.distribution(x))  # false alarm rate 1e-10
    assert np.exp(mechanism.log_density(x, [0, 1, 2, 3])) == pytest.approx(mechanism.distribution(x), rel=1e-12)
    assert mechanism.log_density(x, [0.5, -1.0, 4.0, np.nan]).tolist() == [-math.inf] * 4


@pytest.mark.claim("DX-D6")
@given(instances(), st.floats(0.1, 3.0))
def test_equal_budgets_give_the_ordinary_exponential_mechanism(instance, epsilon):
    utility, budgets, records = instance
    mechanism = DxExponential(utility, epsilon * (1.0 - np.eye(len(budgets))), records)
    sensitivity = score_sensitivities(utility, len(budgets), records).max()
    scores = utility(all_histograms(len(budgets), records).astype(float))
    weights = np.exp(epsilon * (scores - scores.max(axis=1, keepdims=True)) / (2.0 * sensitivity))
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert np.exp(mechanism.log_probabilities(all_histograms(len(budgets), records))) == pytest.approx(
        expected, rel=1e-9
    )
    for pair in mechanism.pairs():  # DX-C4, first half: the definition with Delta u / epsilon keeps epsilon
        assert mechanism.privacy_loss(pair.x, pair.x_prime) <= epsilon * (1.0 + ROUNDING)


def score_threshold(scores, c, t, *, discrepancy=0.0, statement="corrected", counts_ties=True):
    """Bound that the true score of the choice exceeds with probability at least 1 - e^-t, by DX-T4 on one input.

    `discrepancy` is max |u - u'| for the score u that counts: printed it is added, which is false (DX-T4.1), corrected
    subtracted. DX-T4.1 counts the best outcomes, DX-T4.2 does not.
    """
    ties = int((scores == scores.max()).sum()) if counts_ties else 1
    sign = {"printed": 1.0, "corrected": -1.0}[statement]
    return sign * discrepancy + scores.max() - 2.0 * c * (math.log(len(scores) / ties) + t)


@pytest.mark.claim("DX-T4.1", "DX-T4.2", "DX-T4")
@settings(max_examples=300)
@given(
    st.integers(1, 6), st.integers(0, 2**32), st.sampled_from([0.0, 0.1, 1.0, 3.0]), st.floats(0.1, 3.0), st.booleans()
)
def test_the_corrected_score_threshold_is_exceeded_with_its_probability(outcomes, seed, t, c, has_ties):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(scale=2.0, size=outcomes), 0 if has_ties else 12)
    true_scores = scores + rng.uniform(-1.0, 1.0, size=outcomes)  # both signs of u - u'
    discrepancy = np.abs(true_scores - scores).max()
    weights = np.exp((scores - scores.max()) / (2.0 * c))
    law = weights / weights.sum()
    for counted in (true_scores, scores):
        own = discrepancy if counted is true_scores else 0.0
        for counts_ties in (True, False):
            threshold = score_threshold(scores, c, t, discrepancy=own, counts_ties=counts_ties)
            reached = law[counted <= threshold].sum()
            # At t = 0 the statement is that a probability is at most 1, and scores may sit on the threshold exactly.
            assert reached <= math.exp(-t) + 1e-12


@pytest.mark.claim("DX-T4.1")
def test_a_flatter_law_breaks_the_corrected_threshold():
    """One good outcome, 100 poor ones just at the threshold of t = 3: the bound e^-3 is nearly reached."""
    t = 3.0
    below = 2.0 * (math.log(101.0) + t)  # at c = 1

    def utility(x):
        return np.concatenate([np.zeros((len(x), 1)), np.full((len(x), 100), -below)], axis=1)

    for kind, is_kept in ((DxExponential, True), (DxExponentialTooFlat, False)):
        mechanism = kind(utility, METRIC, 2, c=1.0)
        law, scores = mechanism.distribution([2, 0, 0]), mechanism.scores([[2, 0, 0]])[0]
        reached = law[scores <= score_threshold(scores, 1.0, t)].sum()
        assert (reached <= math.exp(-t)) == is_kept
        assert is_kept == (reached < 1.0 * math.exp(-t)) and reached > 0.9 * math.exp(-t)


@pytest.mark.claim("DX-T4.1", "DX-T4.2", "DX-T4")
@pytest.mark.parametrize("claim_id", ["DX-T4", "DX-T4.1", "DX-T4.2"])
def test_the_printed_score_threshold_is_missed(claim_id):
    data = entry(claim_id).counterexample
    true_scores, scores, c, t = np.array(data["u"]), np.array(data["u_prime"]), data["c"], data["t"]
    law = np.exp(scores / (2.0 * c)) / np.exp(scores / (2.0 * c)).sum()
    discrepancy = np.abs(true_scores - scores).max()
    threshold = score_threshold(
        scores, c, t, discrepancy=discrepancy, statement="printed", counts_ties=claim_id != "DX-T4.2"
    )
    reached = float(law[true_scores <= threshold].sum())
    assert reached == pytest.approx(data["probability"], rel=1e-12)
    assert reached > math.exp(-t)
    corrected = score_threshold(scores, c, t, discrepancy=discrepancy)
    assert law[true_scores <= corrected].sum() <= math.exp(-t)


@pytest.mark.claim("DX-S2")
@settings(max_examples=300)
@given(st.integers(1, 6), st.integers(0, 2**32), st.floats(0.1, 3.0), st.floats(-6.0, 6.0), st.booleans())
def test_low_scores_are_as_unlikely_as_the_proof_says(outcomes, seed, c, alpha, has_ties):
    scores = np.round(np.random.default_rng(seed).normal(scale=2.0, size=outcomes), 0 if has_ties else 12)
    weights = np.exp((scores - scores.max()) / (2.0 * c))
    law = weights / weights.sum()
    ties = (scores == scores.max()).sum()
    for level in (alpha, *scores.tolist()):
        bound = outcomes / ties * math.exp((level - scores.max()) / (2.0 * c))
        assert law[scores <= level].sum() <= bound * (1.0 + ROUNDING)


@pytest.mark.claim("DX-T3")
def test_infinite_budgets_ask_nothing_and_budgets_of_zero_ask_for_equal_scores():
    inf = math.inf
    metric = [[0.0, 0.5, inf], [0.5, 0.0, inf], [inf, inf, 0.0]]
    mechanism = DxExponential(lambda x: x @ np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 100.0]]), metric, records=2)
    assert mechanism.c == 2.0  # 1 / 0.5; the change of 100 towards element 2 has no limit
    assert all(mechanism.claim.for_pair(pair.x, pair.x_prime).value == 0.5 for pair in mechanism.pairs())
    same = DxExponential(
        lambda x: x @ np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [[0, 0, 1], [0, 0, 1], [1, 1, 0]], 2
    )
    assert same.privacy_loss((2, 0, 0), (1, 1, 0)) == 0.0


test_what_makes_no_sense_is_refused = refusals(
    (lambda: DxExponential(lambda x: x, METRIC, 2, c=0.5), "c must"),
    (lambda: DxExponential(lambda x: x, METRIC, 2, c=-1.0), "c must"),
    (lambda: DxExponential(lambda x: x, METRIC, 0), "records must"),
    (lambda: DxExponential(lambda x: x, np.zeros((2, 2)), 2), "metric must"),
    (lambda: DxExponential(lambda x: x, METRIC, 2).distribution([1, 1, 1]), "data must"),
    (lambda: DxExponential(lambda x: x, METRIC, 2, sensitivities=[[0.0]]), "sensitivities must"),
    (lambda: DxExponential(lambda x: x, METRIC, 2, sensitivities=-np.ones((3, 3))), "sensitivities must"),
    (lambda: DxExponential(lambda x: np.where(x == 2.0, np.nan, x), METRIC, 2, c=9.0), "utility must"),
)
