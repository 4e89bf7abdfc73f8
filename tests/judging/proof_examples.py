"""The examples on which provers of differential privacy are measured, as plain Python, with the truth of each claim.

Those of CheckDP (Wang, Ding, Kifer and Zhang 2020, arXiv:2008.07485) and of DiPApprox (arXiv:2509.08804), the six
sparse vectors of Lyu, Su and Li (2017, arXiv:1603.01699) and the subjects of StatDP and DP-Sniper, each written from
its description. Inputs are the eight patterns of neighbours that these tools try (`PATTERNS`), of five counts that move
by at most 1.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

ONES = [1.0] * 5
PATTERNS = [
    (ONES, [2.0, 1.0, 1.0, 1.0, 1.0]),
    (ONES, [0.0, 1.0, 1.0, 1.0, 1.0]),
    (ONES, [2.0, 0.0, 0.0, 0.0, 0.0]),
    (ONES, [0.0, 2.0, 2.0, 2.0, 2.0]),
    (ONES, [0.0, 0.0, 2.0, 2.0, 2.0]),
    (ONES, [2.0] * 5),
    (ONES, [0.0] * 5),
    ([1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]),
]
ONE_MOVES = [(ONES, [2.0, 1.0, 1.0, 1.0, 1.0]), (ONES, [1.0, 1.0, 0.0, 1.0, 1.0]), (ONES, [1.0, 1.0, 1.0, 1.0, 2.0])]
BITS = [(0, 1)]


@dataclasses.dataclass(frozen=True)
class Example:
    """A mechanism, its claim, its pairs, and whether it keeps the claim on these; None where nobody knows."""

    name: str
    source: str
    mechanism: Callable[[Any, Any], Any]
    claim: str
    pairs: list[tuple[Any, Any]]
    is_right: bool | None


def noisy_max(draw, value=False):
    """The place of the largest count, or the largest count itself."""

    def mechanism(counts, rng):
        best, place = -math.inf, -1
        for k, count in enumerate(counts):
            noisy = count + draw(rng)
            if noisy > best:
                best, place = noisy, k
        return best if value else place

    return mechanism


def at_once(draw):
    """The place of the largest, of an array."""
    return lambda counts, rng: int(np.argmax(np.asarray(counts) + draw(rng, len(counts))))


def permute_and_flip(epsilon):
    def mechanism(counts, rng):
        for k in rng.permutation(len(counts)):
            if rng.random() <= math.exp(0.5 * epsilon * (counts[k] - max(counts))):
                return int(k)
        return -1

    return mechanism


def sparse_vector(of_limit, of_answer, stop=1, resample=False, gives="bits", limit=1.0, law="laplace"):
    """The answers above a noisy limit; `gives` bits, "query", "gap", or "fresh" noisy answers for those above."""

    def mechanism(counts, rng):
        draw = getattr(rng, law)
        noisy, found, above = limit + draw(scale=of_limit), [], 0
        for count in counts:
            answer = count + draw(scale=of_answer) if of_answer else count
            if answer >= noisy:
                told = {"query": lambda a=answer: a, "gap": lambda a=answer, n=noisy: a - n}
                told["fresh"] = lambda c=count: c + draw(scale=of_answer)
                found.append(told[gives]() if gives in told else True)
                above += 1
                if above >= stop:
                    break
                if resample:
                    noisy = limit + draw(scale=of_limit)
            else:
                found.append(False)
        return found

    return mechanism


def adaptive_sparse_vector(epsilon, margin, budget=1.0):
    """Answers that are far above take less of the budget: two noises an answer."""

    def mechanism(counts, rng):
        noisy, found, cost = 1.0 + rng.laplace(scale=2.0 / epsilon), [], 0.0
        for count in counts[:2]:
            top = count + rng.laplace(scale=16.0 / epsilon)
            if top - noisy >= margin:
                found.append(("far", top - noisy))
                cost += epsilon / 8.0
            else:
                middle = count + rng.laplace(scale=8.0 / epsilon)
                if middle - noisy >= 0.0:
                    found.append(("above", middle - noisy))
                    cost += epsilon / 4.0
                else:
                    found.append(("below", 0.0))
            if cost > budget * epsilon / 2.0 - epsilon / 4.0:
                break
        return found

    return mechanism


def partial_sum(scale):
    return lambda counts, rng: sum(counts) + rng.laplace(scale=scale)


def prefix_sum(scale):
    def mechanism(counts, rng):
        found, last = [], 0.0
        for count in counts:
            last = last + count + rng.laplace(scale=scale)
            found.append(last)
        return found

    return mechanism


def smart_sum(scale, block=2, forgets=False):
    """Prefix sums from sums of blocks; one that forgets noises no block."""

    def mechanism(counts, rng):
        found, done, block_sum, last = [], 0.0, 0.0, 0.0
        for k, count in enumerate(counts):
            block_sum = block_sum + count
            if (k + 1) % block == 0:
                done = done + block_sum + (0.0 if forgets else rng.laplace(scale=scale))
                last, block_sum = done, 0.0
            else:
                last = last + count + rng.laplace(scale=scale)
            found.append(last)
        return found

    return mechanism


def histogram(scale):
    return lambda counts, rng: [count + rng.laplace(scale=scale) for count in counts]


def rappor(keep, f, p, q, bits=4, hashes=2):
    """A Bloom filter of one value, flipped for ever (f) and, unless `keep`, for each report (p, q)."""

    def mechanism(value, rng):
        ones = {(value * 7 + k * 3) % bits for k in range(hashes)}
        report = []
        for place in range(bits):
            bit = int(place in ones)
            u = rng.random()
            bit = 1 if u < 0.5 * f else 0 if u < f else bit
            report.append(bit if keep else int(rng.random() < (q if bit else p)))
        return report

    return mechanism


def rounded(scale):
    return lambda count, rng: round(count + rng.laplace(scale=scale))


def clipped(scale):
    return lambda count, rng: min(max(count + rng.laplace(scale=scale), 0.0), 5.0)


def logarithm(scale):
    return lambda count, rng: math.log(max(count + rng.laplace(scale=scale), 0.5))


def truncated(scale):
    """Noise beyond 3 is drawn again, once."""

    def mechanism(count, rng):
        noise = rng.laplace(scale=scale)
        if abs(noise) > 3.0:
            noise = rng.laplace(scale=scale)
        return bool(count + noise > 0.5)

    return mechanism


def geometric(p):
    return lambda count, rng: count + int(rng.geometric(p)) - int(rng.geometric(p))


def laplace(scale):
    return lambda rng: rng.laplace(scale=scale)


def normal(scale):
    return lambda rng: rng.normal(scale=scale)


def of_size(law, scale):
    return lambda rng, n: getattr(rng, law)(scale=scale, size=n)


CHECKDP, LYU, DIP, STATDP, HERE = "CheckDP", "Lyu et al.", "DiPApprox", "StatDP, DP-Sniper", "behind a function"
EXAMPLES = [
    Example("report noisy max", CHECKDP, noisy_max(laplace(2.0)), "eps=1", PATTERNS, True),
    Example("noisy max, half of the noise", CHECKDP, noisy_max(laplace(1.0)), "eps=1", PATTERNS, False),
    Example("noisy max that gives the value", CHECKDP, noisy_max(laplace(2.0), value=True), "eps=1", PATTERNS, False),
    Example("sparse vector, 1 above", CHECKDP, sparse_vector(2.0, 4.0), "eps=1", PATTERNS, True),
    Example("sparse vector, 2 above", CHECKDP, sparse_vector(2.0, 8.0, stop=2), "eps=1", PATTERNS, True),
    Example("without noise of answers", CHECKDP, sparse_vector(2.0, 0.0), "eps=1", PATTERNS, False),
    Example("without a stop", CHECKDP, sparse_vector(2.0, 2.0, stop=99), "eps=1", PATTERNS, False),
    Example("noise not for 2 above", CHECKDP, sparse_vector(2.0, 2.0, stop=2), "eps=1", PATTERNS, False),
    Example("gap sparse vector", CHECKDP, sparse_vector(2.0, 4.0, gives="gap"), "eps=1", PATTERNS, True),
    Example("gap, but the answer", CHECKDP, sparse_vector(2.0, 4.0, gives="query"), "eps=1", PATTERNS, None),
    Example("numerical sparse vector", CHECKDP, sparse_vector(3.0, 6.0, gives="fresh"), "eps=1", PATTERNS, True),
    Example("adaptive sparse vector", CHECKDP, adaptive_sparse_vector(1.0, 4.0), "eps=1", PATTERNS, True),
    Example("partial sum", CHECKDP, partial_sum(1.0), "eps=1", ONE_MOVES, True),
    Example("partial sum, half of the noise", CHECKDP, partial_sum(0.5), "eps=1", ONE_MOVES, False),
    Example("prefix sum", CHECKDP, prefix_sum(1.0), "eps=1", ONE_MOVES, True),
    Example("prefix sum, half of the noise", CHECKDP, prefix_sum(0.5), "eps=1", ONE_MOVES, False),
    Example("smart sum", CHECKDP, smart_sum(1.0), "eps=2", ONE_MOVES, True),
    Example("smart sum without noise of blocks", CHECKDP, smart_sum(1.0, forgets=True), "eps=2", ONE_MOVES, False),
    Example("algorithm 1", LYU, sparse_vector(2.0, 8.0, stop=2), "eps=1", PATTERNS, True),
    Example("algorithm 2", LYU, sparse_vector(4.0, 8.0, stop=2, resample=True), "eps=1", PATTERNS, True),
    Example("algorithm 3", LYU, sparse_vector(2.0, 4.0, stop=2, gives="query"), "eps=1", PATTERNS, None),
    Example("algorithm 4", LYU, sparse_vector(4.0, 4.0 / 3.0, stop=2), "eps=1", PATTERNS, False),
    Example("algorithm 5", LYU, sparse_vector(2.0, 0.0, stop=99), "eps=1", PATTERNS, False),
    Example("algorithm 6", LYU, sparse_vector(2.0, 2.0, stop=99), "eps=1", PATTERNS, False),
    Example("normal sparse vector", DIP, sparse_vector(4.0, 8.0, law="normal"), "eps=1,delta=0.01", PATTERNS, True),
    Example("the same, a fourth", DIP, sparse_vector(1.0, 2.0, law="normal"), "eps=1,delta=0.01", PATTERNS, False),
    Example("normal noisy max", DIP, at_once(of_size("normal", 4.0)), "eps=1,delta=0.01", PATTERNS, True),
    Example("the same, a fourth", DIP, at_once(of_size("normal", 1.0)), "eps=1,delta=0.01", PATTERNS, False),
    Example("normal noisy max of 3, a loop", DIP, noisy_max(normal(4.0)), "eps=1,delta=0.01",
            [([1.0, 1.0, 0.0], [0.0, 0.0, 1.0]), ([1.0] * 3, [2.0] * 3)], True),
    Example("normal noisy max of 5, a loop", DIP, noisy_max(normal(4.0)), "eps=1,delta=0.01", PATTERNS, True),
    Example("Gumbel noisy max", DIP, at_once(of_size("gumbel", 2.0)), "eps=1", PATTERNS, True),
    Example("Gumbel noisy max, a loop", DIP, noisy_max(lambda rng: rng.gumbel(scale=2.0)), "eps=1", PATTERNS, True),
    Example("Gumbel noisy max, half", DIP, at_once(of_size("gumbel", 0.5)), "eps=1", PATTERNS, False),
    Example("exponential noisy max", DIP, at_once(of_size("exponential", 2.0)), "eps=1", PATTERNS, True),
    Example("exponential noisy max, half", DIP, at_once(of_size("exponential", 1.0)), "eps=1", PATTERNS, False),
    Example("permute and flip", DIP, permute_and_flip(1.0), "eps=1", PATTERNS, True),
    Example("permute and flip, twice the budget", DIP, permute_and_flip(2.0), "eps=1", PATTERNS, False),
    Example("noisy histogram", STATDP, histogram(10.0), "eps=0.1", ONE_MOVES, True),
    Example("noisy histogram, 1 / scale", STATDP, histogram(0.1), "eps=0.1", ONE_MOVES, False),
    Example("RAPPOR", STATDP, rappor(False, 0.75, 0.45, 0.55), "eps=0.4", BITS, True),
    Example("one-time RAPPOR", STATDP, rappor(True, 0.95, 0.0, 1.0), "eps=0.8", BITS, True),
    Example("one-time RAPPOR, claimed too low", STATDP, rappor(True, 0.75, 0.0, 1.0), "eps=0.8", BITS, False),
    Example("two-sided geometric", STATDP, geometric(1.0 - math.exp(-1.0)), "eps=1", BITS, True),
    Example("two-sided geometric, half", STATDP, geometric(1.0 - math.exp(-2.0)), "eps=1", BITS, False),
    Example("rounded", HERE, rounded(1.0), "eps=1", BITS, True),
    Example("rounded, half", HERE, rounded(0.5), "eps=1", BITS, False),
    Example("clipped", HERE, clipped(1.0), "eps=1", BITS, True),
    Example("clipped, half", HERE, clipped(0.5), "eps=1", BITS, False),
    Example("a logarithm", HERE, logarithm(1.0), "eps=1", BITS, True),
    Example("a logarithm, half", HERE, logarithm(0.5), "eps=1", BITS, False),
    Example("truncated", HERE, truncated(1.0), "eps=1.1", BITS, True),
    Example("truncated, half", HERE, truncated(0.5), "eps=1", BITS, False),
]  # fmt: skip
