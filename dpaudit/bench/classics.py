"""The classic subjects of the literature at epsilon = 0.1, with the bounds that other tools reported on them.

Formulas, parameters and input pairs are those of the public evaluations of StatDP (Ding, Wang, Wang, Zhang and Kifer
2018) and DP-Sniper (Bichsel, Steffen, Bogunovic and Vechev 2021): 1 query for a single count, 5 for histograms and
noisy maxima, 10 for sparse vector and prefix sums, answers from one of eight input patterns. Where a subject depends on
the pattern, the pair below is the one of the eight (either order is the same audit) on which the optimum's bound at
5 million draws a side is the largest; `tests/bench` recomputes that choice from the laws.

The truncated geometric mechanism is used as evaluated, with a natural logarithm for the number of its random bits. The
paper behind it (Balcer and Vadhan 2018) has a logarithm to base 2 there; with that, it keeps 0.1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from functools import partial as of
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from dpaudit.bench import sparse_vector
from dpaudit.bench.laws import bits_law, laplace_law
from dpaudit.bench.numbers import laplace
from dpaudit.bench.problem import CELLS, Kind, Law, Peer, Problem, finite_law, grid_law, problem, product_law
from dpaudit.bench.vectors import laplace_vector
from dpaudit.privacy.claims import FloatArray, PureDP

EPSILON = 0.1
# DP-Sniper at its defaults: 10.7 million runs for the search, 200 million for the final count. StatDP's runs are not
# in its log, and its figures carry no confidence that holds.
DP_SNIPER_RUNS = 210.7e6
DING = "Ding, Wang, Wang, Zhang and Kifer 2018"
LYU = "Lyu, Su and Li 2017, variant"
WANG = "Wang, Ding, Wang, Kifer and Zhang 2019"
# Bits of the Bloom filter of the values 0 and 1: MurmurHash3 (32 bits) of "0" and "1", seeds 0 to 3, modulo 20.
BLOOM = {0: (0, 11, 18), 1: (3, 10, 13)}
BLOOM_BITS = 20
GEOMETRIC_COUNT = 5  # the largest count


def patterns(queries: int) -> dict[str, tuple[FloatArray, FloatArray]]:
    """The eight input patterns for so many queries, each answer changing by at most 1."""
    ones, half = np.ones(queries), queries // 2

    def but_first(first: float, rest: float) -> FloatArray:
        return np.array([first] + [rest] * (queries - 1))

    x_shape = np.array([1.0] * half + [0.0] * (queries - half))
    return {
        "one above": (ones, but_first(0.0, 1.0)),
        "one below": (ones, but_first(2.0, 1.0)),
        "one above, rest below": (ones, but_first(2.0, 0.0)),
        "one below, rest above": (ones, but_first(0.0, 2.0)),
        "half and half": (ones, np.array([2.0] * half + [0.0] * (queries - half))),
        "all above": (ones, 2.0 * ones),
        "all below": (ones, 0.0 * ones),
        "x shape": (x_shape, 1.0 - x_shape),
    }


# --- Mechanisms ------------------------------------------------------------------------------------------------------


def largest(
    data: FloatArray, size: int, rng: np.random.Generator, *, noise: str, scale: float, value: bool
) -> NDArray[Any]:
    """Report noisy max: the position of the largest noisy answer, or its value."""
    draw = rng.laplace if noise == "laplace" else rng.exponential
    noisy = data + draw(scale=scale, size=(size, len(data)))
    result: NDArray[Any] = noisy.max(axis=1) if value else noisy.argmax(axis=1)
    return result


def prefix_sums(data: FloatArray, size: int, rng: np.random.Generator, *, scale: float) -> FloatArray:
    """All prefix sums of the noisy answers."""
    return np.cumsum(data + rng.laplace(scale=scale, size=(size, len(data))), axis=1)


def truncated_geometric(data: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The finite geometric sampler: a uniform integer, looked up in the cumulative numbers."""
    numbers = cumulative_numbers(data)
    return np.searchsorted(numbers, rng.integers(1, numbers[-1] + 1, size=size), side="left")


def cumulative_numbers(count: int) -> NDArray[np.int64]:
    """Number of the sampler's random integers that give an output of at most z, for z = 0 to 5."""
    bits, n = math.ceil(math.log(2.0 / EPSILON)), GEOMETRIC_COUNT
    two, more = 2**bits, 2**bits + 1
    total = (2 * two + 1) * more ** (n - 1)
    below = [two ** (count - z) * more ** (n - count + z) for z in range(count)]
    beyond = [total - two ** (z - count + 1) * more ** (n - 1 - z + count) for z in range(count, n)]
    return np.array([*below, *beyond, total])


def rappor(data: int, size: int, rng: np.random.Generator, *, high: float) -> NDArray[np.int8]:
    """Bloom filter bits, each reported as 1 with probability `high` where it is set and 1 - `high` where it is not."""
    chance = np.full(BLOOM_BITS, 1.0 - high)
    chance[list(BLOOM[data])] = high
    outputs: NDArray[np.int8] = (rng.random((size, BLOOM_BITS)) < chance).astype(np.int8)
    return outputs


def repeated_laplace(data: float, size: int, rng: np.random.Generator, *, scale: float, times: int) -> FloatArray:
    """The same answer, noised so many times."""
    return data + rng.laplace(scale=scale, size=(size, times))


# --- Laws ------------------------------------------------------------------------------------------------------------


def position_law(x: FloatArray, x_prime: FloatArray, noise: Any) -> Law:
    """Position of the largest noisy answer."""
    return finite_law(position_masses(x, noise), position_masses(x_prime, noise))


def position_masses(answers: FloatArray, noise: Any) -> FloatArray:
    """Probability of each position: an integral over the largest value, by Gauss-Legendre between the kinks."""
    nodes, weights = sparse_vector.panels(np.unique(answers), noise.std())
    below = [noise.cdf(nodes - answer) for answer in answers.tolist()]
    result = []
    for i, answer in enumerate(answers.tolist()):
        others = functools.reduce(np.multiply, below[:i] + below[i + 1 :])
        result.append(float((noise.pdf(nodes - answer) * others) @ weights))
    return sparse_vector.normalised(np.array(result))


def maximum_law(x: FloatArray, x_prime: FloatArray, noise: Any) -> Law:
    """Value of the largest noisy answer: its distribution function is the product of theirs."""

    class Maximum:
        def __init__(self, answers: FloatArray) -> None:
            self.answers = answers.tolist()

        def cdf(self, values: FloatArray) -> FloatArray:
            return functools.reduce(np.multiply, [noise.cdf(values - answer) for answer in self.answers])

        def sf(self, values: FloatArray) -> FloatArray:
            within: FloatArray = np.sum([np.log1p(-noise.sf(values - answer)) for answer in self.answers], axis=0)
            return -np.expm1(within)

    low = -4.0 if noise.support()[0] == 0.0 else -6.0 * noise.std()
    edges = np.unique(np.concatenate([np.linspace(low, 14.0 * noise.std(), CELLS), np.linspace(-1.0, 4.0, 501)]))
    with np.errstate(divide="ignore"):
        return grid_law(Maximum(x), Maximum(x_prime), edges, f"{len(edges):,} cells")


# --- The problems ----------------------------------------------------------------------------------------------------


def _classic(
    name: str,
    kind: Kind,
    mechanism: Any,
    pair: tuple[Any, Any],
    dimensions: int,
    law: Callable[[], Law],
    source: str,
    bounds: tuple[float, float | None],
    *,
    claim: float = EPSILON,
    true: Literal["tight", "sound", "faulty"] = "sound",
    exact: float | None = None,
    runs: float = DP_SNIPER_RUNS,
) -> Problem:
    peers = [Peer("DP-Sniper", bounds[0], 0.9, runs)]
    peers += [Peer("StatDP", bounds[1], None, None)] if bounds[1] is not None else []
    return problem(f"classic {name}", "classic", kind, mechanism, PureDP(claim), law, source, pair, dimensions,
                   true=true, exact=exact, peers=tuple(peers))  # fmt: skip


# name, sampler, scales (start, threshold, query), cut-off, law, pattern, dp-sniper, statdp, sound
SPARSE_VECTORS: tuple[tuple[str, Any, tuple[float, float, float], int, Any, str, tuple[float, float], bool], ...] = (
    ("1", sparse_vector.above, (0.5, 2.0, 4.0), 1, sparse_vector.first_above_law,
     "half and half", (0.086, 0.030), True),
    ("2", sparse_vector.above, (1.0, 2.0, 4.0), 1, sparse_vector.first_above_law,
     "half and half", (0.086, 0.041), True),
    ("3", sparse_vector.released, (1.0, 2.0, 2.0), 1, sparse_vector.released_law, "all above", (0.172, 0.179), False),
    ("4", sparse_vector.above, (1.0, 4.0, 4.0 / 3.0), 1, sparse_vector.first_above_law,
     "half and half", (0.169, 0.172), False),
    ("5", sparse_vector.above, (1.0, 2.0, 0.0), 0, sparse_vector.noiseless_law, "half and half", (1.76, 14.3), False),
    ("6", sparse_vector.above, (1.0, 2.0, 2.0), 0, sparse_vector.counts_law, "x shape", (0.272, 0.322), False),
)  # fmt: skip


def sparse_vector_law(law: Any, pair: tuple[FloatArray, FloatArray], scales: tuple[float, float, float]) -> Law:
    """The law of one of `SPARSE_VECTORS`; its noise scales are in units of 1 / epsilon."""
    start, threshold, query = scales[0], scales[1] / EPSILON, scales[2] / EPSILON
    result: Law = law(*pair, start, threshold, *([query] if query else []))
    return result


def _maximum(
    number: int, noise: Any, value: bool, pattern: str, bounds: tuple[float, float], **options: Any
) -> Problem:
    pair, scale, law = patterns(5)[pattern], 2.0 / EPSILON, maximum_law if value else position_law
    return _classic(
        f"report noisy max {number}", "continuous" if value else "category",
        of(largest, noise="laplace" if noise is stats.laplace else "exponential", scale=scale, value=value), pair, 1,
        of(law, *pair, noise(scale=scale)), DING + (", the value released" if value else ""), bounds, **options,
    )  # fmt: skip


def problems() -> list[Problem]:
    """The classic subjects, in the order in which the literature's tables list them."""
    one_below, all_above, x_shape = patterns(5)["one below"], patterns(10)["all above"], patterns(10)["x shape"]
    permanent, reported = 1.0 - 0.95 / 2.0, 0.75 * 0.5 + 0.25 * 0.55  # P(1 | bit set); with p = 1 - q both symmetric
    scales = {"threshold": 3.0 / EPSILON, "query": 12.0 / EPSILON, "value": 6.0 / EPSILON}
    numeric: dict[str, Any] = {"start": 1.0, **scales, "cut_off": 2}
    return [
        _classic("laplace", "continuous", of(laplace, scale=1.0 / EPSILON), (0.0, 1.0), 1, of(laplace_law, EPSILON),
                 "Dwork, McSherry, Nissim and Smith 2006", (0.0891, None), true="tight", exact=EPSILON, runs=12.5e6),
        _classic("noisy histogram 1", "vector", of(laplace_vector, scale=1.0 / EPSILON), one_below, 5,
                 of(laplace_law, EPSILON), DING, (0.098, 0.099), true="tight", exact=EPSILON),
        _classic("noisy histogram 2", "vector", of(laplace_vector, scale=EPSILON), one_below, 5,
                 of(laplace_law, 1.0 / EPSILON), f"{DING}: scale epsilon in the place of 1 / epsilon", (4.60, 10.0),
                 true="faulty", exact=1.0 / EPSILON),
        _maximum(1, stats.laplace, False, "one below, rest above", (0.092, 0.092)),
        _maximum(2, stats.expon, False, "one above, rest below", (0.098, 0.100)),
        _maximum(3, stats.laplace, True, "all above", (0.248, 0.199), true="faulty", exact=5 * EPSILON / 2),
        _maximum(4, stats.expon, True, "all above", (0.346, 0.199), true="faulty", exact=math.inf),
        *(_classic(f"sparse vector {number}", "sequence",
                   of(sampler, start=scales[0], threshold=scales[1] / EPSILON, query=scales[2] / EPSILON,
                      cut_off=cut_off),
                   patterns(10)[pattern], 10, of(sparse_vector_law, law, patterns(10)[pattern], scales),
                   f"{LYU} {number}", bounds, true="sound" if sound else "faulty")
          for number, sampler, scales, cut_off, law, pattern, bounds, sound in SPARSE_VECTORS),
        _classic("truncated geometric", "integer", truncated_geometric, (1, 2), 1, truncated_geometric_law,
                 "Balcer and Vadhan 2018, its bits counted with the natural logarithm", (0.116, 0.117), true="faulty"),
        _classic("prefix sum", "vector", of(prefix_sums, scale=1.0 / EPSILON), all_above, 10,
                 of(laplace_product_law, EPSILON, 10), WANG, (0.504, 0.352), claim=10 * EPSILON, true="tight",
                 exact=10 * EPSILON),
        _classic("numerical sparse vector", "sequence", of(sparse_vector.numeric, **numeric), x_shape, 10,
                 of(sparse_vector.numeric_law, *x_shape, **numeric), WANG, (0.034, None)),
        *(_classic(name, "bit vector", of(rappor, high=high), (0, 1), BLOOM_BITS,
                   of(bits_law, float(special.logit(high)), 6), "Erlingsson, Pihur and Korolova 2014", bounds,
                   claim=claim)
          for name, high, bounds, claim in (("rappor", reported, (0.293, 0.242), 0.4),
                                            ("one-time rappor", permanent, (0.598, 0.471), 0.8006))),
        _classic("20 laplace", "vector", of(repeated_laplace, scale=20.0 / EPSILON, times=20), (0.0, 1.0), 20,
                 of(laplace_product_law, EPSILON / 20.0, 20), "composition of 20 releases", (0.035, 0.014),
                 true="tight", exact=EPSILON),
    ]  # fmt: skip


def laplace_product_law(loss: float, count: int) -> Law:
    """Independent Laplace noise with the same loss in every coordinate."""
    return product_law([product_law([laplace_law(loss)], 400)] * count, 8_000)


def truncated_geometric_law() -> Law:
    """From the numbers of its random integers."""
    first, second = (np.diff(cumulative_numbers(count), prepend=0) for count in (1, 2))
    return finite_law(first / first.sum(), second / second.sum())
