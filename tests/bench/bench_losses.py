"""The loss of single outputs, written down once more from the definition of each mechanism: what a law is held against.

`loss_of(problem)` gives a function from a batch of outputs to their losses log(p(o) / q(o)), shape (size,).
"""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
from scipy import integrate, special, stats

from dpaudit.bench import classics, numbers, objects, sparse_vector, vectors
from dpaudit.bench.problem import Problem


def loss_of(problem: Problem):
    mechanism = problem.mechanism
    x, x_prime = problem.pair
    if hasattr(mechanism, "log_density"):
        return lambda outputs: mechanism.log_density(x, outputs) - mechanism.log_density(x_prime, outputs)
    function = mechanism.func if isinstance(mechanism, functools.partial) else mechanism
    keywords = mechanism.keywords if isinstance(mechanism, functools.partial) else {}
    return lambda outputs: np.asarray(LOSSES[function](outputs, x, x_prime, **keywords), dtype=float)


def laplace(y, x, x_prime, scale):
    return (np.abs(y - x_prime) - np.abs(y - x)) / scale


def laplace_sum(y, x, x_prime, scale):
    return laplace(y, x, x_prime, scale).sum(axis=1)


def gaussian(y, x, x_prime, sigma=1.0):
    squares = ((y - x_prime) ** 2 - (y - x) ** 2) / (2.0 * sigma**2)
    return squares if squares.ndim == 1 else squares.sum(axis=1)


def two(event, x, x_prime):
    """An event with the two probabilities, and nothing else that says anything."""
    return np.where(event, math.log(x / x_prime), math.log((1.0 - x) / (1.0 - x_prime)))


def bounded(y, x, x_prime, reach):
    in_x, in_x_prime = np.abs(y - x) <= reach, np.abs(y - x_prime) <= reach
    return np.where(in_x & in_x_prime, 0.0, np.where(in_x, np.inf, -np.inf))


def truncated(y, x, x_prime, epsilon, reach):
    only = bounded(y, x, x_prime, reach)
    return np.where(only == 0.0, laplace(y, x, x_prime, 1.0 / epsilon), only)


def exact_or(y, x, x_prime, leak, scale):
    return np.where(y == x, np.inf, np.where(y == x_prime, -np.inf, laplace(y, x, x_prime, scale)))


def clamped(y, x, x_prime, scale):
    assert (x, x_prime) == (0.0, 1.0)
    return np.where(y == 0.0, 1.0, np.where(y == 1.0, -1.0, (1.0 - 2.0 * y) / scale))


def geometric(y, x, x_prime, rate):
    y = np.asarray(y)
    return rate * (np.abs(y - x_prime) - np.abs(y - x))


def response(y, x, x_prime, epsilon, categories=2):
    return epsilon * ((np.asarray(y) == x).astype(float) - (np.asarray(y) == x_prime))


def coupled(y, x, x_prime):
    pair = y[:, list(vectors.COUPLED)]
    laws = [stats.multivariate_normal(np.zeros(2), [[1.0, r], [r, 1.0]]) for r in (x, x_prime)]
    return laws[0].logpdf(pair) - laws[1].logpdf(pair)


def bits(y, x, x_prime, epsilon):
    return epsilon * ((y == x).sum(axis=1) - (y == x_prime).sum(axis=1))


def maximum(y, x, x_prime, noise, scale, value):
    law = stats.laplace(scale=scale) if noise == "laplace" else stats.expon(scale=scale)

    def density(answers):
        at = np.asarray(y, dtype=float)[:, None] - answers
        cdfs = law.cdf(at)
        others = [np.delete(cdfs, i, axis=1).prod(axis=1) for i in range(len(answers))]
        return sum(law.pdf(at[:, i]) * others[i] for i in range(len(answers)))

    def chance(answers):
        def mass(i):
            def integrand(v):
                cdfs = law.cdf(v - np.delete(answers, i))
                return law.pdf(v - answers[i]) * cdfs.prod()

            ends = [-60.0 * scale, *np.unique(answers).tolist(), 60.0 * scale]
            return sum(integrate.quad(integrand, a, b, limit=200)[0] for a, b in itertools.pairwise(ends))

        return np.array([mass(i) for i in range(len(answers))])[y]

    with np.errstate(divide="ignore"):
        return np.log(density(x) / density(x_prime)) if value else np.log(chance(x) / chance(x_prime))


def first_above(y, x, x_prime, start, threshold, query, cut_off=1):
    p, q = (sparse_vector.first_above_masses(np.asarray(a), start, threshold, query) for a in (x, x_prime))
    if isinstance(y, list):
        position = np.array([len(row) - 1 if row and row[-1] else len(x) for row in y])
    else:
        position = np.where((y == 1).any(axis=1), (y == 1).argmax(axis=1), len(x))
    return np.log(p / q)[position]


def above(y, x, x_prime, start, threshold, query, cut_off):
    if cut_off:
        return first_above(y, x, x_prime, start, threshold, query)
    if query:
        groups, p, q = sparse_vector.counts_masses(x, x_prime, start, threshold, query)
        counts = tuple(y[:, (x == a) & (x_prime == b)].sum(axis=1) for a, b in groups)
        return np.log(p / q)[counts]

    def chance(rows, answers):  # the noisy threshold lies between the answers that are above and those that are not
        top = np.where(rows == 1, answers, np.inf).min(axis=1)
        bottom = np.where(rows == 0, answers, -np.inf).max(axis=1)
        law = stats.laplace(start, threshold)
        return np.maximum(0.0, law.cdf(top) - law.cdf(bottom))

    with np.errstate(divide="ignore"):
        return np.log(chance(y, x)) - np.log(chance(y, x_prime))


def released(y, x, x_prime, start, threshold, query, cut_off):
    grid = np.linspace(-1500.0, 1500.0, 600_001)
    is_value = y > sparse_vector.BELOW
    position = np.where(is_value.any(axis=1), is_value.argmax(axis=1), len(x))
    value = np.where(is_value, y, 0.0).sum(axis=1)

    def log_density(answers):
        before, result = stats.laplace.pdf(grid, scale=threshold), np.zeros(len(y))
        for k, answer in enumerate(answers):
            passed = integrate.cumulative_trapezoid(before, grid, initial=0.0)
            here = position == k
            result[here] = np.log(np.interp(value[here] - start, grid, passed)) - np.abs(value[here] - answer) / query
            before = before * stats.laplace.cdf(grid + start - answer, scale=query)
        result[position == len(x)] = math.log(np.trapezoid(before, grid))
        return result

    return log_density(x) - log_density(x_prime)


def numeric(y, x, x_prime, start, threshold, query, value, cut_off):
    is_value = (y != 0.0) & (y != sparse_vector.BELOW)
    ids = [tuple(np.flatnonzero(row).tolist()) for row in is_value]
    positions = sorted(set(ids))
    p, q = (above_part(a, positions, start, threshold, query, cut_off) for a in (x, x_prime))
    table = dict(zip(positions, np.log(p / q).tolist(), strict=True))
    return np.array([table[i] for i in ids]) + np.where(is_value, laplace(y, x, x_prime, value), 0.0).sum(axis=1)


def above_part(answers, positions, start, threshold, query, cut_off):
    """Up to one factor: masses of some of the positions, from a plain sum over the threshold's noise."""
    grid = np.linspace(-40.0 * threshold, 40.0 * threshold, 200_001)
    weight = stats.laplace.pdf(grid, scale=threshold)
    over = [stats.laplace.sf(grid + start - a, scale=query) for a in answers]
    result = []
    for ids in positions:
        last = ids[-1] if len(ids) == cut_off else len(answers) - 1
        product = weight
        for i in range(last + 1):
            product = product * (over[i] if i in ids else 1.0 - over[i])
        result.append(product.sum())
    return np.array(result)


def truncated_geometric(y, x, x_prime):
    p, q = (np.diff(classics.cumulative_numbers(count), prepend=0) for count in (x, x_prime))
    return np.log(p / q)[y]


def rappor(y, x, x_prime, high):
    first, second = (np.isin(np.arange(classics.BLOOM_BITS), classics.BLOOM[data]) for data in (x, x_prime))
    return special.logit(high) * ((y == first).sum(axis=1) - (y == second).sum(axis=1))


def clamped_lengths(outputs, x, x_prime, rate):
    return geometric(np.array([len(output) for output in outputs]), x, x_prime, rate)


def words(outputs):
    return np.array([objects.WORDS.index(output) for output in outputs])


def answer_and_count(outputs, x, x_prime, answer, count):
    first = response(words([output[0] for output in outputs]), x[0], x_prime[0], answer)
    return first + geometric(np.array([output[1] for output in outputs]), x[1], x_prime[1], count)


def subset(outputs, x, x_prime, epsilon):
    rows = np.array([[item in output for item in objects.ITEMS] for output in outputs])
    first, second = (np.isin(np.arange(len(objects.ITEMS)), sorted(data)) for data in (x, x_prime))
    return bits(rows, first, second, epsilon)


def mixed(outputs, x, x_prime, scale):
    def one(output):
        if output is None:
            return math.log(x[0] / x_prime[0])
        if math.isnan(output):
            return math.log(x[1] / x_prime[1])
        if math.isinf(output):
            return 0.0
        rest = math.log((0.9 - x[0] - x[1]) / (0.9 - x_prime[0] - x_prime[1]))
        return rest + float(laplace(output, x[2], x_prime[2], scale))

    return [one(output) for output in outputs]


def raises(outputs, x, x_prime, scale):
    def one(output):
        if not isinstance(output, float):
            return math.log(x[0] / x_prime[0]) if x_prime[0] > 0.0 else math.inf
        rest = math.log((1.0 - x[0]) / (1.0 - x_prime[0]))
        return rest + float(laplace(output, x[1], x_prime[1], scale))

    return [one(output) for output in outputs]


LOSSES = {
    numbers.laplace: laplace,
    numbers.gaussian: gaussian,
    numbers.spread: lambda y, x, x_prime: stats.norm.logpdf(y, scale=x) - stats.norm.logpdf(y, scale=x_prime),
    numbers.truncated_laplace: truncated,
    numbers.exact_or_laplace: exact_or,
    numbers.clamped_laplace: clamped,
    numbers.sometimes_zero: lambda y, x, x_prime: two(y == 0.0, x, x_prime),
    numbers.even_part: lambda y, x, x_prime: two(np.floor(y) % 2 == 0, x, x_prime),
    numbers.geometric: geometric,
    numbers.bounded_integer: bounded,
    numbers.response: response,
    vectors.needle: lambda y, x, x_prime, scale: laplace(y[:, vectors.NEEDLE], x, x_prime, scale),
    vectors.many_weak: lambda y, x, x_prime, coordinates: gaussian(y, x, x_prime),
    vectors.along: gaussian,
    vectors.coupled: coupled,
    vectors.cornered: lambda y, x, x_prime: two((y[:, :2] < 0.2).all(axis=1), x, x_prime),
    vectors.laplace_vector: laplace_sum,
    vectors.noisy_bits: bits,
    vectors.coupled_bits: lambda y, x, x_prime: two(np.ptp(y[:, list(vectors.COUPLED)], axis=1) == 0, x, x_prime),
    classics.largest: maximum,
    classics.prefix_sums: lambda y, x, x_prime, scale: laplace_sum(np.diff(y, axis=1, prepend=0.0), x, x_prime, scale),
    classics.truncated_geometric: truncated_geometric,
    classics.rappor: rappor,
    classics.repeated_laplace: lambda y, x, x_prime, scale, times: laplace_sum(y, x, x_prime, scale),
    sparse_vector.above: above,
    sparse_vector.released: released,
    sparse_vector.numeric: numeric,
    objects.stops_early: lambda y, x, x_prime, threshold, query: first_above(y, x, x_prime, 1.0, threshold, query),
    objects.waits: clamped_lengths,
    objects.padded: clamped_lengths,
    objects.rows: clamped_lengths,
    objects.word: lambda y, x, x_prime, epsilon: response(words(y), x, x_prime, epsilon),
    objects.code: lambda y, x, x_prime, epsilon: response([int(text[4], 16) for text in y], x, x_prime, epsilon),
    objects.answer_and_count: answer_and_count,
    objects.record: lambda y, x, x_prime, scale: laplace(np.array([d["count"] for d in y]), x, x_prime, scale),
    objects.keys: lambda y, x, x_prime: two(np.array(["rare" in d for d in y]), x, x_prime),
    objects.subset: subset,
    objects.buried: lambda y, x, x_prime, scale: laplace(np.array([t[0][-1] for t in y]), x, x_prime, scale),
    objects.mixed: mixed,
    objects.raises: raises,
}
