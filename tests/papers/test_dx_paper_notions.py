"""Section 2 of the paper on d_X-privacy: notions, facts and sensitivities, on random finite mechanisms in rationals.

A mechanism is a table of fractions: one row an input (a histogram), one column an outcome. Ratios of probabilities are
compared as fractions, so that no tolerance is needed; budgets are compared as e^d, again fractions. What the
definitions print is taken word by word (histograms of any total, DX-D2 with i != j), and beside it in the bounded
model, where n is public. Counterexamples come from the ledger.
"""

import functools
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from constrained_worlds import fractions, largest_ratio
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.histograms import all_histograms, neighbours
from dpaudit_mechanisms.ledger import entry

THOUSAND = settings(max_examples=1_000)
FIXED = settings(max_examples=100)
SEEDS = st.integers(0, 2**32)


def budgets_kept(law, inputs, elements, bounded=True):
    """The least e^d(i, j) that a mechanism keeps over all neighbours among its inputs, a table of fractions."""
    kept = [[Fraction(1)] * elements for _ in range(elements)]
    for n, other, i, j in neighbours_among(tuple(map(tuple, inputs)), bounded):
        kept[i][j] = kept[j][i] = max(kept[i][j], largest_ratio(law[n], law[other]))
    return kept


@functools.cache
def neighbours_among(inputs, bounded):
    """Every two inputs that are neighbours, once, as their positions, with the i and j at which they differ."""
    places = {x: n for n, x in enumerate(inputs)}
    found = [
        (n, places.get(tuple(x_prime.tolist()), -1), i, j)
        for x, n in places.items()
        for x_prime, i, j in neighbours(x, bounded)
    ]
    return [pair for pair in found if pair[0] < pair[1]]


@st.composite
def mechanisms(draw, columns=5):
    """A random finite mechanism on all histograms of up to 3 records over 2 or 3 elements."""
    elements, records = draw(st.integers(2, 3)), draw(st.integers(1, 3))
    inputs = all_histograms(elements, records).tolist()
    rng = np.random.default_rng(draw(SEEDS))
    return fractions(rng, len(inputs), columns, zeros=draw(st.booleans())), inputs, elements, rng


# ---- definitions ----------------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-D2", "DX-C1")
@THOUSAND
@given(mechanisms(), st.fractions(min_value=1, max_value=5))
def test_with_equal_budgets_both_notions_agree_in_the_bounded_model(instance, promised):
    law, inputs, elements, _ = instance
    near = [
        (a, b)
        for a, b in itertools.combinations(range(len(inputs)), 2)
        if sum(abs(u - v) for u, v in zip(inputs[a], inputs[b], strict=True)) <= 2
    ]
    worst = max(largest_ratio(law[a], law[b]) for a, b in near)
    kept = budgets_kept(law, inputs, elements)
    for level in (promised, worst):
        is_private = all(largest_ratio(law[a], law[b]) <= level for a, b in near)  # DX-D1
        is_dx_private = all(kept[i][j] <= level for i in range(elements) for j in range(elements))  # DX-D2
        assert is_private == is_dx_private


def parity(inputs):
    """A mechanism that says whether the number of records is even."""
    return [[Fraction(1 - sum(x) % 2), Fraction(sum(x) % 2)] for x in inputs]


@pytest.mark.claim("DX-C1")
def test_as_printed_equal_budgets_do_not_give_differential_privacy():
    data = entry("DX-C1").counterexample
    assert data["mechanism"] == "parity of the number of records"
    inputs = [list(x) for x in itertools.product(range(4), repeat=data["elements"])]
    law = parity(inputs)
    # d-private at every budget: two coordinates that differ change the total by 0 or 2.
    assert budgets_kept(law, inputs, data["elements"], bounded=False) == [[1] * data["elements"]] * data["elements"]
    # Not epsilon-DP at any epsilon: x and x' differ by one record.
    x, x_prime = inputs.index(data["x"]), inputs.index(data["x_prime"])
    assert sum(abs(a - b) for a, b in zip(data["x"], data["x_prime"], strict=True)) <= 2
    assert largest_ratio(law[x], law[x_prime]) == math.inf


# ---- the three facts ------------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-F1.3")
@THOUSAND
@given(mechanisms())
def test_groups_lose_half_of_the_printed_exponent_in_the_bounded_model(instance):
    """ratio^2 <= (e^max d)^k for k = |x - x'|_1, so that the printed exponent k max d holds with room to spare."""
    law, inputs, elements, _ = instance
    kept = budgets_kept(law, inputs, elements)
    for a, b in itertools.combinations(range(len(inputs)), 2):
        differs = [i for i in range(elements) if inputs[a][i] != inputs[b][i]]
        distance = sum(abs(u - v) for u, v in zip(inputs[a], inputs[b], strict=True))
        largest = max(kept[i][j] for i in differs for j in differs)
        assert distance % 2 == 0
        assert largest_ratio(law[a], law[b]) ** 2 <= largest**distance


@pytest.mark.claim("DX-F1.3")
@pytest.mark.parametrize("records", [1, 2, 3])
def test_the_halved_exponent_of_groups_is_reached(records):
    """Counts of one of two elements with geometric noise, clamped: at the top each record costs a factor of 2."""
    inputs = all_histograms(2, records).tolist()
    base = Fraction(1, 2)  # e^-d
    law = []
    for x in inputs:
        below = [(1 - base) / (1 + base) * base ** abs(k - x[0]) for k in range(1, records)]
        low, top = (base ** x[0] / (1 + base), base ** (records - x[0]) / (1 + base))
        law.append([low, *below, top])
    assert all(sum(row) == 1 for row in law)
    assert budgets_kept(law, inputs, 2)[0][1] == 2
    assert largest_ratio(law[0], law[-1]) == 2**records  # distance 2 * records: exponent (k / 2) log 2


@pytest.mark.claim("DX-F1.3")
def test_as_printed_groups_of_different_totals_are_not_covered():
    data = entry("DX-F1.3").counterexample
    inputs = [list(x) for x in itertools.product(range(4), repeat=data["elements"])]
    law = parity(inputs)
    kept = budgets_kept(law, inputs, data["elements"], bounded=False)
    x, x_prime = inputs.index(data["x"]), inputs.index(data["x_prime"])
    differs = [i for i in range(data["elements"]) if data["x"][i] != data["x_prime"][i]]
    assert sum(abs(a - b) for a, b in zip(data["x"], data["x_prime"], strict=True)) <= data["k"]
    printed = max(kept[i][j] for i in differs for j in differs) ** data["k"]
    assert printed == 1  # e^(k max d): d(i, i) = 0 is all that there is
    assert largest_ratio(law[x], law[x_prime]) == math.inf > printed


# ---- sensitivities --------------------------------------------------------------------------------------------------


def sensitivity(queries, i, j, bounded, largest=3):
    """max |Q x - Q x'|_1 over x and x' in {0..largest}^N as DX-D3 defines them."""
    elements = queries.shape[1]
    found = 0
    for x in itertools.product(range(largest + 1), repeat=elements):
        for x_prime, a, b in neighbours(x, bounded):
            if {a, b} == {i, j}:
                found = max(found, np.abs(queries @ (np.array(x) - x_prime)).sum())
    return found


@pytest.mark.claim("DX-D3", "DX-C2", "UP-D2")
@FIXED
@given(st.integers(2, 3), st.integers(1, 2), SEEDS)
def test_the_sensitivity_is_a_distance_of_columns_in_the_bounded_model(elements, count, seed):
    queries = np.random.default_rng(seed).integers(-3, 4, size=(count, elements))
    for i, j in itertools.combinations(range(elements), 2):
        apart, together = (np.abs(queries[:, i] + sign * queries[:, j]).sum() for sign in (-1, 1))
        assert sensitivity(queries, i, j, bounded=True, largest=2) == apart
        assert sensitivity(queries, i, j, bounded=False, largest=2) == max(apart, together)  # what the definition says


@pytest.mark.claim("DX-C2")
def test_as_printed_the_sensitivity_is_larger():
    data = entry("DX-C2").counterexample
    queries, x, x_prime = np.array([data["q"]]), np.array(data["x"]), np.array(data["x_prime"])
    assert np.abs(x - x_prime).sum() <= 2 and (x != x_prime).all()
    assert np.abs(queries @ (x - x_prime)).sum() == data["sensitivity"]
    assert abs(data["q"][0] - data["q"][1]) == data["printed"] < data["sensitivity"]
    assert sensitivity(queries, 0, 1, bounded=False) == data["sensitivity"]


@pytest.mark.claim("DX-C3")
@FIXED
@given(st.integers(2, 4), st.integers(1, 2), SEEDS, st.floats(0.1, 2.0))
def test_ordinary_laplace_noise_is_dx_private_up_to_a_larger_epsilon_than_printed(elements, count, seed, epsilon):
    """Exactly for epsilon <= min over i != j of d(i, j) Delta / Delta(i, j), which is at least min d."""
    rng = np.random.default_rng(seed)
    queries = rng.integers(0, 5, size=(count, elements)).astype(float)
    metric = rng.uniform(0.5, 1.0, size=(elements, elements))
    metric = np.triu(metric, 1) + np.triu(metric, 1).T
    gaps = np.abs(queries[:, :, None] - queries[:, None]).sum(axis=0)
    if not gaps.any():
        return
    off = ~np.eye(elements, dtype=bool) & (gaps > 0.0)
    largest = (metric[off] * gaps.max() / gaps[off]).min()
    assert largest >= metric[~np.eye(elements, dtype=bool)].min() * (1.0 - 1e-12)
    if elements == 2:  # "only if" is right there: a counterexample needs a third element
        assert largest == pytest.approx(metric[0, 1], rel=1e-12)
    for level in (epsilon, largest * (1.0 - 1e-12), largest * (1.0 + 1e-9)):
        scale = gaps.max() / level
        pairs = list(itertools.permutations(range(elements), 2))
        losses = {(i, j): np.abs(queries[:, i] - queries[:, j]).sum() / scale for i, j in pairs}
        assert max(losses.values()) == pytest.approx(level)  # epsilon-DP, and no less
        assert all(losses[p] <= metric[p] for p in losses) == (level <= largest)


@pytest.mark.claim("DX-C3")
def test_ordinary_laplace_noise_may_be_dx_private_at_a_larger_epsilon_than_the_least_budget():
    data = entry("DX-C3").counterexample
    q, metric, epsilon = np.array(data["q"]), np.array(data["metric"]), data["epsilon"]
    least = min(metric[i, j] for i, j in itertools.combinations(range(3), 2))
    assert epsilon > least == data["least_budget"]
    scale = max(abs(a - b) for a, b in itertools.combinations(q, 2)) / epsilon
    assert all(abs(q[i] - q[j]) / scale <= metric[i, j] for i, j in itertools.combinations(range(3), 2))
    for k in range(3):  # and d is a metric
        assert (metric <= metric[:, k, None] + metric[k]).all()


@pytest.mark.claim("DX-C4")
def test_the_ordinary_exponential_mechanism_may_be_dx_private_at_a_larger_epsilon_than_the_least_budget():
    data = entry("DX-C4").counterexample
    scores, epsilon = np.array(data["scores"]), data["epsilon"]
    sensitivity_of_scores = np.abs(scores[0] - scores[1]).max()
    weights = np.exp(epsilon * scores / (2.0 * sensitivity_of_scores))
    law = weights / weights.sum(axis=1, keepdims=True)
    loss = float(np.abs(np.log(law[0] / law[1])).max())
    assert loss == pytest.approx(data["loss"], rel=1e-12)
    assert loss <= data["budget"] * (1.0 + 1e-12) and data["budget"] < epsilon


# ---- section 5 ------------------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-C19")
def test_scales_do_not_depend_on_n_but_a_release_of_n_beside_them_is_not_enough():
    """The part of the claim that can be checked, and why the rest needs a procedure to be checked.

    With q = (1, 1) every |q_i - q_j| is 0, so q is answered exactly in the bounded model: it is n. To spend budget on n
    beside that release makes nothing private; n has to be hidden within it.
    """
    metric = [[0.0, 0.5], [0.5, 0.0]]
    for records in (0.0, 7.0, 1e6):
        assert DxLaplace([[0.0, 1.0]], metric, "single", base_histogram=[records, 0.0]).c.tolist() == [2.0]
    total = DxLaplace([[1.0, 1.0]], metric, "single", base_histogram=[3.0, 2.0])
    assert total.c.tolist() == [0.0]
    assert total.sample(0, 2, np.random.default_rng(1)).tolist() == [6.0, 6.0]  # n, without noise


@pytest.mark.claim("DX-C19")
def test_an_added_record_loses_more_than_the_printed_scale_allows():
    data = entry("DX-C19").counterexample
    far = data["distance"]
    mechanism = DxLaplace([data["query"]], [[0.0, far], [far, 0.0]], "single")
    assert mechanism.c == pytest.approx([data["c"]])
    # One more record of the first element moves the answer by its coefficient.
    assert data["query"][0] / mechanism.c[0] == pytest.approx(data["loss_of_an_added_record"])


@pytest.mark.claim("DX-C20")
@FIXED
@given(SEEDS, st.integers(2, 4))
def test_value_mechanisms_carry_over(seed, elements):
    """For a mechanism that sees q(x) and one scale alone, the meta procedure is right: here staircases, in rationals.

    Geometric noise of parameter e^(-1/c) on integer answers: the pair (i, j) loses |q_i - q_j| / c <= d(i, j).
    """
    rng = np.random.default_rng(seed)
    q = rng.integers(0, 6, size=elements)
    metric = rng.uniform(0.5, 1.0, size=(elements, elements))
    metric = np.triu(metric, 1) + np.triu(metric, 1).T
    gaps = np.abs(q[:, None] - q)
    off = ~np.eye(elements, dtype=bool)
    c = (gaps[off] / metric[off]).max()
    if c > 0.0:
        outputs = np.arange(-5, 12)
        logs = -np.abs(outputs[:, None] - q) / c  # up to one constant for all inputs
        losses = np.abs(logs[:, :, None] - logs[:, None]).max(axis=0)
        assert (losses <= metric * (1.0 + 1e-12) + 1e-15)[off].all()
