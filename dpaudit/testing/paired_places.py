"""Exact tests of a yes-or-no feature at paired places of a batch: tiled, repeated, mirrored and negated outputs.

A vectorised mechanism that uses its noise twice in a call gives pairs of outputs that are alike, or opposite. Each half
of them looks right, and of outputs of two values neither the order nor the batches show much.

Validity. Pairs of places that share no place are fixed by the sizes of the batches. If outcomes are independent and of
one law, then given that m of the 2 h places have the feature, all C(2 h, m) subsets of m places are equally likely. In
N(b) = h! / (b! (m - 2 b)! (h - m + b)!) 2^(m - 2 b) of these subsets b pairs have it at both places. The ratio
N(b + 1) / N(b) = (m - 2 b)(m - 2 b - 1) / (4 (b + 1)(h - m + b + 1)) falls as b grows. So the tail from b upwards is
at most N(b) / (1 - ratio) of all subsets, where the ratio is below 1, and the tail downwards likewise.

The pairs k and k + d, for k with an even k // d, share no place. Which distance d is tested may depend on the outcomes:
its p-value counts as often as there are distances (union bound). It is the one with the largest autocorrelation.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

MAX_PARTS = 5  # n // j for j up to this; equal batches show all others as one distance
MIN_PAIRS = 15  # C(30, 15) is below 1e9: of fewer pairs no p-value can be
MAX_OUTCOMES = 4_000  # whose autocorrelation is taken: a bound on time, 0.2 ms a feature
Flags = NDArray[np.bool_]
Places = NDArray[np.intp]


def pair_p_values(both: int, flagged: int, pairs: int) -> tuple[float, float]:
    """Upper bounds on the probabilities of at least, and at most, so many pairs that have a feature at both places.

    Parameters
    ----------
    both : int
        Pairs that have it at both places.
    flagged : int
        Places that have it, of the 2 * pairs.
    pairs : int

    Examples
    --------
    >>> [round(p_value, 6) for p_value in pair_p_values(2, 4, 4)]  # 6 of the 70 subsets of 4 of 8 places are two pairs
    [0.085714, 1.0]
    """
    one, none = flagged - 2 * both, pairs - flagged + both
    lgamma = math.lgamma
    log_p = lgamma(pairs + 1) - lgamma(both + 1) - lgamma(one + 1) - lgamma(none + 1) + one * math.log(2.0)
    log_p -= lgamma(2 * pairs + 1) - lgamma(flagged + 1) - lgamma(2 * pairs - flagged + 1)
    upwards = one * (one - 1) / (4.0 * (both + 1) * (none + 1))
    downwards = 4.0 * both * none / ((one + 1) * (one + 2))
    p = math.exp(log_p)
    many, few = (p / (1.0 - ratio) if ratio < 1.0 else 1.0 for ratio in (upwards, downwards))
    return min(many, 1.0), min(few, 1.0)


@functools.lru_cache(maxsize=8)
def paired_places(sizes: tuple[int, ...]) -> tuple[tuple[str, Places, Places], ...]:
    """Pairs of places within batches of these sizes: in words, the first places, and the second ones.

    Examples
    --------
    >>> [(words, first.tolist(), second.tolist()) for words, first, second in paired_places((4,))][::3]
    [('k and k + n/2', [0, 1], [2, 3]), ('k and k + n/4', [0, 2], [1, 3]), ('k and n - 1 - k', [0, 1], [3, 2])]
    """
    each = np.array(sizes)
    n, places = np.repeat(each, each), np.arange(each.sum())
    k = places - np.repeat(np.cumsum(each) - each, each)
    found = []
    for j in range(2, MAX_PARTS + 1):
        down, up = n // j, -(-n // j)
        for distance in (down, up) if np.any(down != up) else (down,):
            first = places[(distance > 0) & (k + distance < n) & ((k // np.maximum(distance, 1)) % 2 == 0)]
            found.append((f"k and k + n/{j}", first, first + distance[first]))
    first = places[2 * k < n - 1]
    found.append(("k and n - 1 - k", first, first + (n - 1 - 2 * k)[first]))
    return tuple(found)


def pair_tests(flags: Flags, known: Flags, sizes: Sequence[int]) -> Iterator[tuple[float, str]]:
    """p-values of flags at paired places of batches of these sizes, with what would be said.

    `known`, shape (outcomes,), says which outcomes the flags are of.
    """
    every = np.zeros(len(known), dtype=bool)
    every[known] = flags
    is_whole = len(flags) == len(known)
    for words, first, second in paired_places(tuple(sizes)):
        if not is_whole:
            are_known = known[first] & known[second]
            first, second = first[are_known], second[are_known]
        yield from _tests(every[first], every[second], f"{words} of batches of n", 1)
    most = min(len(flags), MAX_OUTCOMES)
    distance = _likeliest_distance(flags[:most])
    first = np.arange(most - distance)
    first = first[first // distance % 2 == 0]
    yield from _tests(flags[first], flags[first + distance], f"k and k + {distance:,}", most - 1)


def _tests(first: Flags, second: Flags, words: str, tried: int) -> Iterator[tuple[float, str]]:
    """The p-values of pairs, which are one of `tried` choices, with what would be said."""
    pairs = len(first)
    if pairs < MIN_PAIRS:
        return
    both = int(np.count_nonzero(first & second))
    many, few = pair_p_values(both, int(np.count_nonzero(first) + np.count_nonzero(second)), pairs)
    alike = int(np.count_nonzero(first == second))
    yield min(1.0, tried * many), f"at places {words} are alike: in {alike:,} of {pairs:,} pairs"
    yield min(1.0, tried * few), f"at places {words} are opposite: in {pairs - alike:,} of {pairs:,} pairs"


def _likeliest_distance(flags: Flags) -> int:
    """The distance at which flags are most alike, or most opposite, for their number of pairs."""
    n = len(flags)
    centred: FloatArray = flags - flags.mean()
    power = np.abs(scipy.fft.rfft(centred, scipy.fft.next_fast_len(2 * n))) ** 2
    sums = scipy.fft.irfft(power)[1:n]
    return 1 + int(np.argmax(np.abs(sums) / np.sqrt(np.arange(n - 1, 0, -1))))
