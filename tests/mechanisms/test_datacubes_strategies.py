"""Domains, workloads, transforms and strategies of datacubes: implicit maps against matrices written out."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refusals

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes import (
    Domain,
    FourierStrategy,
    HaarStrategy,
    MarginalStrategy,
    MatrixStrategy,
    SketchStrategy,
    Workload,
    all_and_half,
    all_and_with_attribute,
    all_marginals,
    base_counts,
    clusters,
    hierarchy,
    workload_itself,
)
from dpaudit_mechanisms.datacubes.transforms import basis, forward, inverse, walsh_hadamard

SEEDS = st.integers(0, 2**32)


@st.composite
def domains(draw, sizes=None):
    """One to four attributes with at most 48 cells, not all of one value."""
    lists = st.lists(st.integers(1, 5) if sizes is None else sizes, min_size=1, max_size=4)
    found = draw(lists.filter(lambda s: 1 < math.prod(s) <= 48))
    return Domain(found)


@st.composite
def workloads(draw, of=None):
    """One to four marginals, which may repeat and may be the total, with or without weights."""
    domain = draw(domains() if of is None else of)
    sets = st.lists(st.integers(0, domain.attributes - 1), unique=True, max_size=domain.attributes)
    marginals = draw(st.lists(sets, min_size=1, max_size=4))
    weights = draw(st.none() | st.lists(st.floats(0.1, 9.0), min_size=len(marginals), max_size=len(marginals)))
    return Workload(domain, marginals, weights)


POWERS = domains(st.sampled_from([1, 2, 4]))


def strategies_of(workload, seed=0):
    """One of each kind that can answer a workload."""
    domain = workload.domain
    yield from (base_counts(domain), workload_itself(workload), hierarchy(domain), hierarchy(domain, root=False))
    yield from (FourierStrategy(workload), clusters(workload), clusters(workload, "uniform", 2))
    # 12 repetitions of 8 buckets had full column rank for all domains of at most 48 cells that are drawn here
    yield SketchStrategy(domain, 8, 12, seed)
    yield SketchStrategy(domain, 8, 12, seed, signed=False)
    if all(size & (size - 1) == 0 for size in domain.sizes):
        yield HaarStrategy(domain)


def rows_of_groups(strategy):
    return np.repeat(np.arange(strategy.groups), strategy.group_sizes)


def literal(workload):
    """Q from the definition: a row for each combination of values of each marginal."""
    cells = list(itertools.product(*(range(size) for size in workload.domain.sizes)))
    rows = []
    for marginal in workload.sets:
        for values in itertools.product(*(range(workload.domain.sizes[a]) for a in marginal)):
            rows.append([all(cell[a] == v for a, v in zip(marginal, values, strict=True)) for cell in cells])
    return np.array(rows, dtype=float)


# ---- domains and workloads ------------------------------------------------------------------------------------------


@pytest.mark.claim("DC-X2")
@given(workloads(), SEEDS)
def test_answers_are_the_sums_that_a_workload_is_defined_by(workload, seed):
    matrix = literal(workload)
    assert (workload.matrix() == matrix).all()
    data = np.random.default_rng(seed).integers(0, 9, (3, workload.domain.cells))
    assert workload.answers(data) == pytest.approx(data @ matrix.T)
    assert workload.queries == len(matrix) == len(workload.query_weights)
    assert [len(part) for part in workload.split(workload.answers(data[0]))] == workload.counts


@given(workloads(), SEEDS)
def test_the_binary_encoding_has_the_same_answers(workload, seed):
    domain = workload.domain
    data = np.random.default_rng(seed).integers(0, 9, domain.cells).astype(float)
    encoded = workload.encoded()
    assert set(encoded.domain.sizes) == {2}
    answers = encoded.answers(domain.encode(data))
    assert workload.decoded(answers) == pytest.approx(workload.answers(data))
    assert answers.sum() == pytest.approx(workload.answers(data).sum())  # nothing in cells that do not exist


@pytest.mark.claim("DC-X1")
def test_records_are_counted_in_lexicographic_order():
    records = [(0, 0, 1), (0, 1, 1), (0, 0, 0), (0, 0, 1), (1, 1, 0)]  # figure 1 of the paper
    assert Domain.binary(3).histogram(records).tolist() == [1, 2, 0, 1, 0, 0, 1, 0]
    assert Domain([3, 2]).histogram([(2, 1), (0, 1)]).tolist() == [0, 1, 0, 0, 0, 1]
    assert Domain([3, 2]).histogram([]).tolist() == [0] * 6


def test_the_named_workloads_have_the_marginals_of_their_definition():
    domain = Domain([3, 2, 4, 2])
    pairs = list(itertools.combinations(range(4), 2))
    assert all_marginals(domain, 2).sets == tuple(pairs)
    assert all_and_half(domain, 1).sets == ((0,), (1,), (2,), (3,), *pairs[:3])
    assert all_and_with_attribute(domain, 1, 2).sets == ((0,), (1,), (2,), (3,), (0, 2), (1, 2), (2, 3))
    random = all_and_half(domain, 1, np.random.default_rng(3)).sets
    assert random[:4] == ((0,), (1,), (2,), (3,)) and len(random) == 7 and set(random[4:]) <= set(pairs)
    assert len(all_and_half(Domain.binary(5), 2).sets) == 10 + 5
    assert all_marginals(domain, 0).sets == ((),)


test_what_makes_no_sense_is_refused = refusals(
    (lambda: Domain([]), "sizes must"),
    (lambda: Domain([0]), "sizes must"),
    (lambda: Domain([2], ["a", "b"]), "names must"),
    (lambda: Domain([2, 2]).histogram([[0, 2]]), "records must"),
    (lambda: Domain([2, 2]).vector([1.0]), "data must"),
    (lambda: Domain([2]).vector([1.0, np.inf]), "data must"),
    (lambda: all_marginals(Domain([2]), 1).answers([1.0]), "data must"),
    (lambda: Workload(Domain([2]), []), "marginals must"),
    (lambda: Workload(Domain([2]), [(1,)]), "marginals must"),
    (lambda: Workload(Domain([2]), [(0,)], [0.0]), "weights must"),
    (lambda: all_marginals(Domain([2]), 2), "k must"),
    (lambda: all_marginals(Domain.binary(20), 1).matrix(), "must have at most 67108864 entries, got 40 x 1048576"),
    (lambda: walsh_hadamard([1.0, 2.0, 3.0]), "length that is a power of two, got 3"),
    (lambda: HaarStrategy(Domain([3])), "domain must"),
    (lambda: MatrixStrategy(Domain([2]), [[0.0, 0.0]]), "rows must"),
)


# ---- transforms and coefficients ------------------------------------------------------------------------------------


@given(domains(), SEEDS)
def test_the_transform_is_orthonormal_and_its_first_functions_are_constant(domain, seed):
    matrix = forward(np.eye(domain.cells), domain.sizes).T
    assert matrix @ matrix.T == pytest.approx(np.eye(domain.cells), abs=1e-12)
    assert matrix[0] == pytest.approx(domain.cells**-0.5)
    values = np.random.default_rng(seed).normal(size=(2, domain.cells))
    assert inverse(forward(values, domain.sizes), domain.sizes) == pytest.approx(values)


def test_the_hadamard_transform_is_the_papers():
    for d in range(1, 8):
        cells = np.arange(1 << d)
        signs = (-1.0) ** np.array([[(i & j).bit_count() for j in cells.tolist()] for i in cells.tolist()])
        assert walsh_hadamard(np.eye(1 << d)) == pytest.approx(signs * 2.0 ** (-d / 2.0))
    large = np.random.default_rng(1).normal(size=1 << 17)
    assert walsh_hadamard(walsh_hadamard(large)) == pytest.approx(large)
    assert basis(1).tolist() == [[1.0]]


@pytest.mark.claim("DC-T4.1.2", "DC-S12")
@given(workloads(), SEEDS)
def test_marginals_are_made_of_the_coefficients_with_support_in_them(workload, seed):
    domain, found = workload.domain, workload.coefficients
    data = np.random.default_rng(seed).normal(size=domain.cells)
    coefficients = found.of_data(data, workload.sets)
    assert coefficients == pytest.approx(forward(data, domain.sizes)[found.indices])
    answers = [found.to_marginal(coefficients, marginal) for marginal in workload.sets]
    assert np.concatenate(answers) == pytest.approx(workload.answers(data))
    needed = {  # those with a marginal that is not 0
        index
        for index, function in enumerate(forward(np.eye(domain.cells), domain.sizes).T)
        if np.abs(workload.answers(function)).max() > 1e-9
    }
    assert found.indices.tolist() == sorted(needed)


# ---- strategies -----------------------------------------------------------------------------------------------------


@pytest.mark.claim("DC-D0", "DC-EQ0", "DC-S1")
@given(workloads() | workloads(POWERS), SEEDS)
def test_the_initial_recovery_is_one_and_its_costs_and_variances_are_exact(workload, seed):
    rng = np.random.default_rng(seed)
    for strategy in strategies_of(workload):
        rows, groups = strategy.matrix(), rows_of_groups(strategy)
        assert rows.shape == (strategy.rows, workload.domain.cells)
        recovery = strategy.initial(np.eye(strategy.rows), workload).T
        assert recovery @ rows == pytest.approx(workload.matrix(), abs=1e-8)  # Q = R S
        cost = workload.query_weights @ recovery**2
        sums = np.bincount(groups, cost, strategy.groups)
        assert strategy.costs(workload) == pytest.approx(sums, rel=1e-7, abs=1e-12)
        variances = rng.uniform(0.1, 5.0, strategy.groups)
        assert strategy.initial_variances(variances, workload) == pytest.approx(recovery**2 @ variances[groups])
        batch = rng.normal(size=(2, strategy.rows))
        assert strategy.initial(batch, workload) == pytest.approx(batch @ recovery.T, abs=1e-8)


@pytest.mark.claim("DC-EQ7", "DC-L3.5", "DC-S8")
@given(workloads() | workloads(POWERS), SEEDS)
def test_least_squares_is_the_pseudo_inverse_written_out_and_consistent(workload, seed):
    rng, wanted = np.random.default_rng(seed), workload.matrix()
    for strategy in strategies_of(workload):
        variances = rng.uniform(0.1, 5.0, strategy.groups)
        each = variances[rows_of_groups(strategy)]
        dense = MatrixStrategy(workload.domain, strategy.matrix()[_used(strategy)])
        recovery = np.zeros((len(wanted), strategy.rows))
        recovery[:, _used(strategy)] = dense.least_squares_matrix(each[_used(strategy)], workload)
        noisy = rng.normal(size=(2, strategy.rows))
        answers = strategy.least_squares(noisy, variances, workload)
        assert answers == pytest.approx(noisy @ recovery.T, abs=1e-7)
        found = strategy.least_squares_variances(variances, workload)
        assert found == pytest.approx(recovery**2 @ each, rel=1e-7)
        assert (found <= strategy.initial_variances(variances, workload) * (1.0 + 1e-9)).all()  # each of them (DC-S8)
        nearest = np.linalg.lstsq(wanted, answers.T, rcond=None)[0]
        assert wanted @ nearest == pytest.approx(answers.T, abs=1e-7)  # some data vector has these answers


def _used(strategy):
    return strategy.matrix().any(axis=1)


@pytest.mark.claim("DC-D2.2")
@given(workloads() | workloads(POWERS), SEEDS)
def test_the_sensitivity_is_the_largest_norm_of_a_column_or_of_a_difference_of_two(workload, seed):
    rng, cells = np.random.default_rng(seed), workload.domain.cells
    for strategy in strategies_of(workload):
        budgets = rng.uniform(0.0, 2.0, strategy.groups)
        columns = strategy.matrix() * budgets[rows_of_groups(strategy)][:, None]
        for order in (1, 2):
            norms = (np.abs(columns) ** order).sum(axis=0) ** (1.0 / order)
            assert strategy.sensitivity(budgets, order) == pytest.approx(norms.max())
            assert norms.max() == pytest.approx(
                np.linalg.norm(strategy.constants(order) * budgets, order)
            )  # one column has the largest of all groups
            changes = columns[:, :, None] - columns[:, None, :]
            worst = ((np.abs(changes) ** order).sum(axis=0) ** (1.0 / order)).max()
            found = strategy.sensitivity(budgets, order, "replace_one")
            assert found == pytest.approx(worst)
        difference = rng.normal(size=cells)
        each = columns @ difference
        assert strategy.distance(difference, budgets, 1) == pytest.approx(np.abs(each).sum())
        assert strategy.distance(difference, budgets, 2) == pytest.approx(np.sqrt((each**2).sum()))


@pytest.mark.parametrize("order", [1, 2])
def test_the_sensitivity_of_replacing_is_a_bound_where_all_pairs_are_too_many(monkeypatch, order):
    """Two cells in one bucket with opposite signs, each time, reach the bound of a sketch."""
    kinds = itertools.product((1, 3), (True, False))
    sketches = [SketchStrategy(Domain.binary(4), buckets, 3, 1, signed) for buckets, signed in kinds]
    strategies = [FourierStrategy(all_marginals(Domain([3, 4, 2]), 2)), *sketches]
    budgets = [np.random.default_rng(1).uniform(size=strategy.groups) for strategy in strategies]
    exact = [one.sensitivity(eta, order, "replace_one") for one, eta in zip(strategies, budgets, strict=True)]
    for limit in ("fourier.MAX_PAIRS", "fourier.MAX_SETS", "sketches.MAX_DENSE"):
        monkeypatch.setattr(f"dpaudit_mechanisms.datacubes.{limit}", 0)
    for strategy, eta, least in zip(strategies, budgets, exact, strict=True):
        bound = strategy.sensitivity(eta, order, "replace_one")
        assert least <= bound * (1.0 + 1e-12) and bound <= 2.0 * strategy.sensitivity(eta, order) * (1.0 + 1e-12)
    assert exact[1] == pytest.approx(2.0 * np.linalg.norm(budgets[1], order))


def test_a_strategy_that_cannot_answer_a_workload_says_so():
    domain = Domain.binary(3)
    workload = Workload(domain, [(0, 1)])
    one_way = workload_itself(all_marginals(domain, 1))
    for call in (one_way.costs, FourierStrategy(all_marginals(domain, 1)).costs):
        with pytest.raises(UsageError, match=r"workload must .* got \(0, 1\)"):
            call(workload)
    with pytest.raises(UsageError, match="in one of the strategy that has a budget"):
        one_way.least_squares(np.zeros((1, 6)), np.ones(3), workload)
    both = MarginalStrategy(domain, [(0,), (0, 1), (1, 2)])
    with pytest.raises(UsageError, match="in one of the strategy that has a budget"):
        both.least_squares(np.zeros((1, 10)), np.array([1.0, np.inf, 1.0]), workload)
    with pytest.raises(UsageError, match="span of the strategy's rows"):
        MatrixStrategy(domain, np.ones((1, 8))).costs(workload)
    with pytest.raises(UsageError, match=r"workload must be over sizes \(2, 2, 2\), got \(2, 2\)"):
        one_way.costs(all_marginals(Domain.binary(2), 1))
    with pytest.raises(UsageError, match="span of"):
        SketchStrategy(domain, 2, 1, 0).costs(workload)


def test_a_larger_sketch_is_recovered_by_iterations():
    domain = Domain.binary(11)
    workload = all_marginals(domain, 1)
    sketch = SketchStrategy(domain, 400, 12, seed=5)
    data = np.random.default_rng(1).integers(0, 9, domain.cells).astype(float)
    answers = sketch.least_squares(sketch.answers(data)[None], np.linspace(1.0, 2.0, 12), workload)
    assert answers[0] == pytest.approx(workload.answers(data), abs=0.01)  # far below noise of variance 1 to 2 a bucket
    assert sketch.sensitivity(np.ones(12), 1, "replace_one") == 24.0
    with pytest.raises(UsageError, match="at most 1024 cells for exact costs, got 2048"):
        sketch.costs(workload)
    with pytest.raises(UsageError, match="full column rank"):
        SketchStrategy(domain, 100, 12, seed=5).least_squares(np.zeros((1, 1200)), np.ones(12), workload)
