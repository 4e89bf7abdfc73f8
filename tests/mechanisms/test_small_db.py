"""SmallDB: exact privacy; its accuracy as printed (counterexamples from the ledger) and as corrected; its twin."""

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampler_checks import DRAWS, is_drawn_from_outcomes
from scipy import stats
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit_mechanisms import small_db
from dpaudit_mechanisms.constrained.diagnostics import split_r_hat
from dpaudit_mechanisms.dx_exponential import DxExponential, query_gaps
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.histograms import all_histograms, histogram_count, neighbours, spread_pairs
from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.linear_queries import error_bounds
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.small_db import SmallDB

ROUNDING = 1e-9
QUERIES = [[0.0, 1.0], [1.0, 0.0], [0.3, 0.9]]
METRIC = [[0.0, 1.0], [1.0, 0.0]]


@st.composite
def instances(draw, most_records=4, alphas=(0.3, 0.7, 1.2), rescaled=None):
    """A mechanism on 2 or 3 elements, and queries Q that it answers with c q' (distorted a little, or not)."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    elements, count = draw(st.integers(2, 3)), draw(st.integers(1, 4))
    queries = np.round(rng.uniform(0.0, 1.0, size=(count, elements)), draw(st.sampled_from([0, 6])))
    metric = rng.uniform(0.5, 1.0, size=(elements, elements)) * draw(st.sampled_from([0.01, 1.0]))
    metric = np.triu(metric, 1) + np.triu(metric, 1).T  # between a and 2 a: a metric
    differ = np.abs(queries[:, :, None] - queries[:, None]).max(axis=0)
    c = float((differ[metric > 0.0] / metric[metric > 0.0]).max()) or 1.0
    form = draw(st.booleans()) if rescaled is None else rescaled
    records = draw(st.integers(1, most_records))
    mechanism = SmallDB(queries / c, metric, c, draw(st.sampled_from(alphas)), records, form)
    noise = draw(st.sampled_from([0.0, 0.1])) * rng.uniform(-1.0, 1.0, size=queries.shape)
    return mechanism, queries + noise


def every_input(mechanism):
    return all_histograms(mechanism.queries.shape[1], mechanism.records)


@pytest.mark.claim("DX-T5")
@given(instances())
def test_no_neighbours_lose_more_than_their_budget(instance):
    mechanism, _ = instance
    inputs = every_input(mechanism)
    logs = mechanism.log_probabilities(inputs)
    places = {tuple(row): n for n, row in enumerate(inputs.tolist())}
    for x, n in places.items():
        for x_prime, i, j in neighbours(x):
            loss = np.abs(logs[n] - logs[places[tuple(x_prime.tolist())]]).max()
            with mock.patch.object(small_db, "MAX_ENUMERATED", 0):  # what is stated where the law is not enumerated
                bound = mechanism.privacy_loss(x, x_prime)
            assert loss <= bound * (1.0 + ROUNDING) <= mechanism.metric[i, j] * (1.0 + 3.0 * ROUNDING)


@given(instances(), st.floats(0.0, 1.2))
def test_an_error_bound_that_is_stated_says_something_on_every_histogram(instance, share):
    mechanism, _ = instance
    own, inputs = mechanism.c * mechanism.queries, every_input(mechanism)
    answers = inputs @ own.T  # of every histogram, and of everything that could be released
    most = np.abs(answers[:, None] - answers).max(axis=(1, 2))
    limit = share * float(np.ptp(answers, axis=0).max())
    for bound in error_bounds(mechanism, limit, 0.05, "DX-P1"):
        assert (limit < most).all() and share < 0.5
        assert [bound.largest_loss(x) for x in inputs] == pytest.approx(most, rel=1e-9)


@pytest.mark.claim("DX-A1")
@given(instances())
def test_the_law_is_that_of_the_algorithm(instance):
    mechanism, _ = instance
    x = every_input(mechanism)[0]
    m = max(1, math.ceil(math.log(len(mechanism.queries)) / mechanism.alpha**2))
    if not mechanism.rescaled:
        assert mechanism.size == m
    assert (mechanism.outcomes.sum(axis=1) == mechanism.size).all()
    assert len(mechanism.outcomes) == histogram_count(len(x), mechanism.size)
    weights = []
    for y in mechanism.outcomes.tolist():
        worst = max(
            abs(
                sum(a * b for a, b in zip(q, x, strict=True))
                - mechanism.multiplier * sum(a * b for a, b in zip(q, y, strict=True))
            )
            for q in mechanism.queries.tolist()
        )
        weights.append(math.exp(-mechanism.c * worst / (2.0 * mechanism.c)))
    assert mechanism.distribution(x) == pytest.approx(np.array(weights) / sum(weights), rel=1e-9, abs=1e-300)


@pytest.mark.claim("DX-A1")
def test_both_samplers_draw_the_law():
    rng = np.random.default_rng(3)
    queries = rng.uniform(size=(3, 3))
    mechanism = SmallDB(queries, 1.0 - np.eye(3), c=1.0, alpha=0.35, records=40, rescaled=True)
    x = [30, 10, 0]
    codes = mechanism.outcomes @ [1, 100, 10_000]
    order = np.argsort(codes)
    exact = mechanism.sample(x, DRAWS, np.random.default_rng(20_261_122))
    chains = mechanism.uniform(DRAWS, np.random.default_rng(20_261_123))
    start = chains.copy()
    *_, scores = mechanism.chains(x, chains, np.random.default_rng(20_261_124), sweeps=60)
    assert scores == pytest.approx(-np.abs(mechanism.answers(chains) - queries @ x).max(axis=1), abs=1e-9)
    for samples in (exact, chains):  # false alarm rate 1e-10 each
        law = mechanism.distribution(x)[order]
        assert is_drawn_from_outcomes(samples @ [1, 100, 10_000], codes[order], law)
        assert (samples.sum(axis=1) == mechanism.size).all()
    # The controls: where the chains start, and another input.
    assert not is_drawn_from_outcomes(start @ [1, 100, 10_000], codes[order], law)
    assert not is_drawn_from_outcomes(exact @ [1, 100, 10_000], codes[order], mechanism.distribution([0, 40, 0])[order])
    assert np.exp(mechanism.log_density(x, exact[:4])) == pytest.approx(
        [law[np.flatnonzero(codes[order] == y @ [1, 100, 10_000])[0]] for y in exact[:4]], rel=1e-12
    )
    assert mechanism.log_density(x, [[0.5, 1, 2], [-1, 2, 2], [99, 0, 0]]).tolist() == [-math.inf] * 3


def at_scale(kind=SmallDB, elements=50, records=1_000, alpha=0.1):
    """The paper's universe: places in a square, 20 queries in [0, 1] that use up the nearest pair's budget of 1 nat."""
    rng = np.random.default_rng(elements)
    queries = rng.random((20, elements))
    return kind(queries, 1.0 - np.eye(elements), 1.0, alpha, records, rescaled=True)


@pytest.mark.parametrize(("elements", "sweeps"), [(50, 240), (741, 80)])
def test_chains_forget_where_they_started_at_the_size_of_the_paper(elements, sweeps):
    """Scores from uniform histograms and from ones like the data, by a rank test; 1e-6 that it rejects equal laws."""
    mechanism = at_scale(elements=elements)
    rng = np.random.default_rng(5)
    x = rng.multinomial(1_000, rng.dirichlet(np.ones(elements)))
    like_data = rng.multinomial(mechanism.size, x / 1_000.0, size=60)
    uniform = mechanism.uniform(60, rng)
    first, *_ = mechanism.chains(x, uniform, np.random.default_rng(6), sweeps=80)
    scores = [np.array(list(mechanism.chains(x, y, np.random.default_rng(k), sweeps, heated=False)))
              for k, y in enumerate((uniform, like_data))]  # fmt: skip
    assert stats.ks_2samp(scores[0][0], scores[1][-1]).pvalue > 1e-6
    assert split_r_hat(np.concatenate([half[20:].T for half in scores])) < 1.1
    assert stats.ks_2samp(first, scores[1][-1]).pvalue < 1e-12  # the control: the first sweep is far off
    if elements == 50:  # what `sample` gives are ends of such chains, and no starts of them
        drawn = mechanism.scores(x[None], mechanism.sample(x, 60, np.random.default_rng(7)))[0]
        assert stats.ks_2samp(drawn, scores[1][-1]).pvalue > 1e-6
        assert stats.ks_2samp(drawn, first).pvalue < 1e-12


def test_a_record_that_counts_for_too_much_is_refused_at_once():
    mechanism, x = at_scale(records=10**6), np.zeros(50)
    x[0] = 10**6
    with pytest.raises(UsageError, match=r"must count for at most 64 nats for chains to mix, got 5\.\d+e\+03\."):
        mechanism.sample(x, 1, np.random.default_rng(1))
    with pytest.raises(UsageError, match=r"the range must have at most 200000 histograms to be enumerated, got \d+\."):
        mechanism.distribution(x)


@pytest.mark.parametrize("elements", [50, 741])
@pytest.mark.parametrize("kind", ["small db", "mwem", "exponential", "laplace"])
def test_pairs_of_the_size_of_the_paper_are_neighbours_within_their_budgets(kind, elements):
    rng = np.random.default_rng(elements)
    places = rng.random((elements, 2))
    metric = np.sqrt(((places[:, None] - places) ** 2).sum(axis=2))
    queries = rng.random((20, elements)) * np.min(metric + np.eye(elements))
    gaps = query_gaps(queries)
    mechanism = {
        "small db": lambda: SmallDB(queries, metric, 1.0, 0.1, 10_000, rescaled=True),
        "mwem": lambda: MWEM(queries, metric, 1.0, 10, 10_000),
        "exponential": lambda: DxExponential(lambda x: x @ queries.T, metric, 10_000, sensitivities=gaps),
        "laplace": lambda: DxLaplace(queries, metric),
    }[kind]()
    pairs = spread_pairs(metric, 10_000, gaps, mechanism.privacy_loss)
    if kind != "laplace":
        assert [pair.id for pair in mechanism.pairs()] == [pair.id for pair in pairs]
    assert {pair.id.split(":")[0] for pair in pairs} >= {"furthest", "typical"} and len(pairs) >= 9
    for pair in pairs:
        assert pair.x.sum() == pair.x_prime.sum() == 10_000
        promised = mechanism.claim.for_pair(pair.x, pair.x_prime).value
        assert 0.0 < mechanism.privacy_loss(pair.x, pair.x_prime) <= promised * (1.0 + 1e-9) < math.inf
    assert len(mechanism.sample(pairs[0].x, 2, rng)) == 2


# ---- accuracy: as printed -------------------------------------------------------------------------------------------


def both_sizes(log_count, alpha):
    """m rounded down and up: the printed m is no integer, and no statement should hang on how it is rounded."""
    return {max(1, math.floor(log_count / alpha**2)), max(1, math.ceil(log_count / alpha**2))}


def smallest_error(data, alpha):
    """The least max |q(x) - c q'(y)| over all y of either size, by enumeration."""
    queries, x = np.array(data["queries"]), np.array(data["x"])
    errors = []
    for size in both_sizes(math.log(len(queries)), alpha):
        answers = all_histograms(len(x), size) @ queries.T
        errors.append(float(np.abs(answers - queries @ x).max(axis=1).min()))
    return min(errors)


@pytest.mark.claim("DX-T9")
def test_no_small_database_comes_as_near_as_printed():
    for data in entry("DX-T9").counterexample["instances"]:
        best = smallest_error(data, data["alpha"])
        assert best == pytest.approx(data["least_error"])
        assert best > data["alpha"] * sum(data["x"])  # for every y in the range


def error_probability(mechanism, x, queries, bound):
    """Exact probability that max |q(x) - c s q'(y)| exceeds `bound`."""
    errors = np.abs(mechanism.answers(mechanism.outcomes) - queries @ x).max(axis=1)
    return mechanism.distribution(x)[errors > bound].sum()


def gamma(elements, queries, beta, statement):
    """gamma of DX-T6, for queries of range at most 1: 16 log N log K + 4 log(1 / beta) as printed.

    Corrected: 4 (2 log(2 K) + 1) log N + 4 log(1 / beta), for the rescaled mechanism at alpha / 2 with alpha <= 1.
    """
    per_element = 16.0 * math.log(queries) if statement == "printed" else 4.0 * (2.0 * math.log(2 * queries) + 1.0)
    return per_element * math.log(elements) - 4.0 * math.log(beta)


def cube_root_bound(records, c, gamma_value):
    """(c n^2 gamma)^(1/3), the second term of DX-T6.1: alpha n at alpha = (c gamma / n)^(1/3)."""
    return np.cbrt(c * records**2 * gamma_value)


@pytest.mark.claim("DX-P1")
def test_the_printed_accuracy_of_smalldb_is_missed_with_certainty():
    for data in entry("DX-P1").counterexample["instances"]:
        queries = np.array(data["queries"])
        metric = data["c"] * (1.0 - np.eye(queries.shape[1]))  # q' = q / c, and c is large enough for it
        mechanism = SmallDB(queries / data["c"], metric, data["c"], data["alpha"], sum(data["x"]))
        bound = mechanism.error_bound(queries, data["beta"])
        assert smallest_error(data, data["alpha"]) > bound  # so whatever y is chosen, and however m is rounded
        assert error_probability(mechanism, data["x"], queries, bound) == pytest.approx(1.0)
        assert data["beta"] < 0.1


@pytest.mark.claim("DX-T6", "DX-T6.1", "DX-T6.2")
@pytest.mark.parametrize("claim_id", ["DX-T6", "DX-T6.1", "DX-T6.2"])
def test_the_printed_cube_root_is_missed_with_certainty(claim_id):
    data = entry(claim_id).counterexample
    queries, n, elements = np.array(data["queries"]), sum(data["x"]), len(data["x"])
    printed = gamma(elements, len(queries), data["beta"], "printed")
    if "alpha" in data:  # T6.2: the largest c that it allows at this alpha
        alpha = data["alpha"]
        c = alpha**3 * n / printed
        bound = alpha * n
    else:
        c = data["c"]
        bound = cube_root_bound(n, c, printed)
        alpha = bound / n
    # q' = q / c, so that there is no distortion, and c q'(y) = q(y) for every y.
    assert 0.0 < alpha < 1.0 and c > 0.0
    assert smallest_error(data, alpha / 2.0) > bound


@pytest.mark.claim("DX-S3")
def test_the_printed_steps_of_the_proof_are_wrong():
    data = entry("DX-S3").counterexample
    # The number of databases of size at most m exceeds N^m.
    elements, size = data["counting"]["elements"], data["counting"]["size"]
    at_most = sum(histogram_count(elements, m) for m in range(size + 1))
    assert at_most == data["counting"]["at_most"] > elements**size
    # The best score is at least -alpha n where T9 holds, so -best <= alpha n: the printed ">=" fails at x = y.
    x, alpha = np.array(data["direction"]["x"]), data["direction"]["alpha"]
    queries = np.array(data["direction"]["queries"])
    size = max(1, math.ceil(math.log(len(queries)) / alpha**2))
    scores = -np.abs((all_histograms(len(x), size) - x) @ queries.T).max(axis=1)
    assert -scores.max() == data["direction"]["minus_best"] < alpha * x.sum()


# ---- accuracy: as corrected -----------------------------------------------------------------------------------------


@pytest.mark.claim("DX-T9")
@given(instances(most_records=7, alphas=(0.2, 0.4, 0.8), rescaled=True))
def test_some_rescaled_small_database_is_near(instance):
    mechanism, _ = instance
    for x in every_input(mechanism):
        best = np.abs(mechanism.answers(mechanism.outcomes) - mechanism.c * (mechanism.queries @ x)).max(axis=1).min()
        assert best <= mechanism.alpha * mechanism.records * (1.0 + ROUNDING)


@pytest.mark.claim("DX-P1")
@given(
    instances(most_records=4, alphas=(0.2, 0.4, 0.8), rescaled=True),
    st.sampled_from([1, 10, 1000]),
    st.sampled_from([0.01, 0.05, 0.5]),
)
def test_the_corrected_accuracy_holds_with_its_probability(instance, factor, beta):
    small, queries = instance
    # As many records as we like: n enters through x alone.
    mechanism = SmallDB(small.queries, small.metric, small.c, small.alpha, small.records * factor, True)
    for x in factor * every_input(small):
        assert error_probability(mechanism, x, queries, mechanism.error_bound(queries, beta)) <= beta


@pytest.mark.claim("DX-T6", "DX-T6.1", "DX-T6.2")
@given(
    instances(most_records=3, alphas=(1.0,), rescaled=True), st.sampled_from([100, 3000]), st.sampled_from([0.01, 0.2])
)
def test_the_corrected_cube_root_holds_with_its_probability(instance, factor, beta):
    small, queries = instance
    n = small.records * factor
    corrected = gamma(queries.shape[1], len(queries), beta, "corrected")
    alpha = cube_root_bound(n, small.c, corrected) / n
    if alpha > 1.0:  # says no more than that queries in [0, 1] err by at most n
        return
    assert small.c == pytest.approx(alpha**3 * n / corrected)  # T6.2 at its largest c
    mechanism = SmallDB(small.queries, small.metric, small.c, alpha / 2.0, n, True)
    bound = n * float(np.abs(queries - small.c * small.queries).max()) + alpha * n
    assert mechanism.error_bound(queries, beta) <= bound * (1.0 + ROUNDING)
    if mechanism.is_enumerated:
        for x in factor * every_input(small):
            assert error_probability(mechanism, x, queries, bound) <= beta


# ---- audits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rescaled", [False, True])
def test_an_accuracy_beyond_all_databases_needs_one_record(rescaled):
    mechanism = SmallDB(QUERIES, METRIC, 1.0, 1e300, 3, rescaled)
    assert mechanism.size == 1 and mechanism.error_bound(QUERIES, 0.5) == pytest.approx(3e300)


test_what_makes_no_sense_is_refused = refusals(
    (lambda: SmallDB([[0.0, 2.0]], METRIC, 1.0, 0.5, 3), "queries must"),
    (lambda: SmallDB(QUERIES, METRIC, 0.0, 0.5, 3), "c must"),
    (lambda: SmallDB(QUERIES, METRIC, 1.0, 0.0, 3), "alpha must"),
    (lambda: SmallDB(QUERIES, METRIC, 1e15, 0.9, 3, rescaled=True), "alpha must"),
    (lambda: SmallDB(QUERIES, METRIC, 1.0, 1e-300, 3, rescaled=True), "alpha must"),
    (lambda: SmallDB(QUERIES, METRIC, 1.0, 1e-10, 3), "alpha must"),
    (lambda: SmallDB(QUERIES, METRIC, 1.0, 0.5, 3).distribution([1, 1]), "data must"),
    (lambda: SmallDB([[0.0, math.inf]], METRIC, 1.0, 0.5, 3), "queries must"),
    (lambda: SmallDB(QUERIES, METRIC, 1.0, 0.5, 3).error_bound(QUERIES, 0.0), "beta must"),
)
