"""Orders of noises whose probabilities are no sums of exponentials: bounds that hold, against quadratures and forms."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import dpaudit
from dpaudit.symbolic.enclosures import Node, of_gumbel
from dpaudit.symbolic.laws import Law
from dpaudit.symbolic.orders import Component, by_quadrature, mass_of
from dpaudit.symbolic.piecewise import Comparison, Enclosure

pytest.importorskip("flint")
LAWS = {
    "normal": stats.norm, "laplace": stats.laplace, "gumbel": stats.gumbel_r, "logistic": stats.logistic,
    "exponential": stats.expon, "uniform": stats.uniform,
}  # fmt: skip
MAX_ERROR = 1e-7  # what a trapezoid of 200,000 points is off by, at most


def by_trapezoids(component):
    """P(a star of comparisons holds), for the first node given."""
    nodes = dict(component.nodes)
    root = nodes[0]
    (first, last), far = root.law.support, 60.0 * root.law.scale
    z = np.linspace(max(-far, first, root.low), min(far, last, root.high), 200_001)
    value = LAWS[root.law.family](scale=root.law.scale).pdf(z)
    for one in component.comparisons:
        is_lower = one.upper == 0
        leaf = nodes[one.lower if is_lower else one.upper]
        law, w = LAWS[leaf.law.family](scale=leaf.law.scale), float(root.factor) * z
        limit = (w + float(one.gap if is_lower else -one.gap)) / float(leaf.factor)
        inner = np.clip(law.cdf(limit), law.cdf(leaf.low), law.cdf(leaf.high))
        is_below = is_lower == (leaf.factor > 0)
        value = value * (inner - law.cdf(leaf.low) if is_below else law.cdf(leaf.high) - inner)
    return float(np.trapezoid(value, z))


def random_star(seed):
    rng = np.random.default_rng([20_261_128, seed])
    nodes, comparisons = {}, []
    for number in range(2 + seed % 4):
        law = Law(str(rng.choice(list(LAWS))), float(rng.choice([0.5, 1.0, 2.0])))
        low, high = (-0.7, 1.4) if rng.random() < 0.25 else (-math.inf, math.inf)
        nodes[number] = Node(law, Fraction(float(rng.choice([1.0, -1.0, 1.5]))), low, high)
        if number:
            pair = (number, 0) if rng.random() < 0.5 else (0, number)
            comparisons.append(Comparison(*pair, Fraction(round(float(rng.normal()), 2))))
    return Component(tuple(nodes.items()), tuple(comparisons))


@pytest.mark.parametrize("seed", range(40))
def test_a_random_star_has_the_probability_of_a_quadrature(seed):
    component = random_star(seed)
    (found, _), expected = mass_of(component), by_trapezoids(component)
    if found < 0.0:  # what is below 2^-140 has no bounds of a small share
        assert expected < 1e-30
        return
    assert found == pytest.approx(expected, abs=MAX_ERROR)
    assert by_quadrature(component) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("scores", [[0.0, 1.0], [0.3, -1.0, 2.0, 0.3, 5.0]])
def test_the_largest_of_gumbel_noise_is_that_of_the_exponential_mechanism(scores):
    gaps = {
        k: [Comparison(j, k, Fraction(scores[k] - s)) for j, s in enumerate(scores) if j != k]
        for k in range(len(scores))
    }
    weights = [math.exp(score) for score in scores]
    for k, comparisons in gaps.items():
        found = of_gumbel(Fraction(1), range(len(scores)), comparisons)
        assert found.low <= found.high and found.share < Fraction(1, 2**300)
        assert float(found) == pytest.approx(weights[k] / sum(weights), rel=1e-12)


def test_all_orders_of_gumbel_noise_are_those_of_draws_without_replacement():
    weights = [1.0, 2.0, 4.0]  # Plackett and Luce: the largest first
    total = 0.0
    for order in itertools.permutations(range(3)):
        a, b, c = order
        gaps = [Fraction(math.log(weights[u])) - Fraction(math.log(weights[v])) for u, v in ((a, b), (b, c))]
        found = float(of_gumbel(Fraction(1), range(3), [Comparison(b, a, gaps[0]), Comparison(c, b, gaps[1])]))
        assert found == pytest.approx(weights[a] / 7.0 * weights[b] / (7.0 - weights[a]), rel=1e-12)
        total += found
    assert total == pytest.approx(1.0, abs=1e-12)


def sparse_vector(draw, scales):
    def mechanism(answers, rng):
        limit = 0.5 + draw(rng)(scale=scales[0])
        for place, answer in enumerate(answers):
            if answer + draw(rng)(scale=scales[1]) >= limit:
                return place
        return None

    return mechanism


def largest(draw):
    return lambda scores, rng: int(np.argmax(np.asarray(scores) + draw(rng, len(scores))))


def cut(x, rng):  # noise that is clipped before it is compared
    limit = min(max(rng.laplace(), -2.0), 2.0)
    return bool(x + rng.normal() > limit)


def curator(answers, rng):  # the noise of the threshold has an end
    limit = 1.0 + rng.uniform(-60.0, -30.0)
    return [bool(answer + rng.laplace(scale=4.0) < limit) for answer in answers]


PAIR = ([0.0, 1.0, 0.0], [1.0, 0.0, 1.0])
CASES = {
    "normal sparse vector": (sparse_vector(lambda rng: rng.normal, (2.0, 4.0)), PAIR, "eps=1,delta=0.01", "kept"),
    "half of the noise": (sparse_vector(lambda rng: rng.normal, (0.5, 1.0)), PAIR, "eps=1,delta=0.01", "violated"),
    "gumbel, exactly": (
        largest(lambda rng, n: rng.gumbel(scale=2.0, size=n)), ([0.0, 1.0], [1.0, 0.0]), "eps=0.5", "kept",
    ),
    "gumbel, just less": (
        largest(lambda rng, n: rng.gumbel(scale=2.0, size=n)), ([0.0, 1.0], [1.0, 0.0]), "eps=0.4999999999", "violated",
    ),
    "normal largest": (largest(lambda rng, n: rng.normal(scale=3.0, size=n)), PAIR, "eps=1", "kept"),
    "ten of Laplace noise": (
        largest(lambda rng, n: rng.laplace(scale=2.0, size=n)), ([0.0] * 10, [1.0] * 10), "eps=1", "kept",
    ),
    "clipped noise": (cut, (0.0, 1.0), "eps=1", "kept"),
    "uniform threshold": (curator, ([0.0] * 3, [1.0] * 3), "eps=0.1", "violated"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_claim_is_proved_or_disproved(name):
    mechanism, pair, claim, verdict = CASES[name]
    found = dpaudit.certify(mechanism, claim, [pair])
    assert found.verdict == verdict and found.mass_left == 0.0, found.summary()


def test_without_balls_normal_noise_that_is_compared_is_open(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "flint", None)
    mass_of.cache_clear()
    assert dpaudit.certify(CASES["clipped noise"][0], "eps=1", [(0.0, 1.0)]).verdict == "open"
    mass_of.cache_clear()


@pytest.mark.parametrize(("low", "high"), [(-1, 0), (-1, 1), (0, 1)])
def test_bounds_that_reach_zero_say_nothing(low, high):
    assert Enclosure.of(Fraction(low), Fraction(high)).share == 1 and Enclosure.of(Fraction(0)).share == 0
