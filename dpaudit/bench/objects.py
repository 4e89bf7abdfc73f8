"""Problems whose output is no array: sequences that stop early, strings, tuples, dictionaries, sets, ragged lists,
mixtures of types, and exceptions.

Conventions: a batch is a list of `size` outputs. Each kind has a problem exactly on its claim and one that breaks it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial as of
from typing import Any

import numpy as np

from dpaudit.bench.laws import bits_law, event_law, geometric_law, laplace_law, response_law
from dpaudit.bench.numbers import geometric, response
from dpaudit.bench.problem import SAME, Kind, Law, Problem, finite_law, problem, union_law
from dpaudit.bench.sparse_vector import first_above_law
from dpaudit.privacy.claims import ApproxDP, Claim, PureDP

Rng = np.random.Generator
WORDS = ("north", "east", "south", "west")
ITEMS = tuple(f"item {i}" for i in range(12))
QUERIES = 8  # of the sequences
PROMISE = PureDP(1.0)  # of most problems
STOPS = ((1.0,) * QUERIES, (2.0,) * (QUERIES // 2) + (0.0,) * (QUERIES // 2))  # the two inputs, query by query


# --- Mechanisms ------------------------------------------------------------------------------------------------------


def stops_early(data: tuple[float, ...], size: int, rng: Rng, *, threshold: float, query: float) -> list[list[bool]]:
    """Sparse vector as a list: False until the first query above the noisy threshold, then True, and nothing after."""
    limit = 1.0 + rng.laplace(scale=threshold, size=(size, 1))
    is_above = np.asarray(data) + rng.laplace(scale=query, size=(size, len(data))) >= limit
    asked = np.where(is_above.any(axis=1), is_above.argmax(axis=1) + 1, len(data))
    return [row[:length].tolist() for row, length in zip(is_above, asked.tolist(), strict=True)]


def waits(data: int, size: int, rng: Rng, *, rate: float) -> list[list[int]]:
    """A list of zeros whose length is a noisy count, at least 0."""
    lengths = np.maximum(0, geometric(data, size, rng, rate=rate))
    return [[0] * length for length in lengths.tolist()]


def word(data: int, size: int, rng: Rng, *, epsilon: float) -> list[str]:
    """Randomised response on four words."""
    return [WORDS[i] for i in response(data, size, rng, epsilon=epsilon, categories=len(WORDS)).tolist()]


def code(data: int, size: int, rng: Rng, *, epsilon: float) -> list[str]:
    """A code of 12 hexadecimal digits, random but for its fifth, which is a randomised response among 16."""
    digits = rng.integers(16, size=(size, 12))
    digits[:, 4] = response(data, size, rng, epsilon=epsilon, categories=16)
    return ["".join("0123456789abcdef"[d] for d in row) for row in digits.tolist()]


def padded(data: int, size: int, rng: Rng, *, rate: float) -> list[str]:
    """A text that is padded to a noisy length."""
    lengths = np.maximum(0, geometric(data, size, rng, rate=rate))
    return ["." * length for length in lengths.tolist()]


def answer_and_count(data: tuple[int, int], size: int, rng: Rng, *, answer: float, count: float) -> list[Any]:
    """A tuple of a randomised response and a noisy count."""
    words = response(data[0], size, rng, epsilon=answer, categories=len(WORDS)).tolist()
    counts = geometric(data[1], size, rng, rate=count).tolist()
    return [(WORDS[w], c) for w, c in zip(words, counts, strict=True)]


def record(data: float, size: int, rng: Rng, *, scale: float) -> list[dict[str, Any]]:
    """A dictionary with a noisy count among public entries."""
    counts = (data + rng.laplace(scale=scale, size=size)).tolist()
    years = rng.integers(2000, 2020, size=size).tolist()
    return [{"city": "public", "count": count, "year": year} for count, year in zip(counts, years, strict=True)]


def keys(data: float, size: int, rng: Rng) -> list[dict[str, float]]:
    """A histogram as a dictionary, whose rare cell has a key with probability `data`; its values say nothing."""
    has_key = (rng.random(size) < data).tolist()
    values = rng.normal(scale=10.0, size=(size, 3)).tolist()
    return [
        {"a": v[0], "b": v[1], "rare": v[2]} if has else {"a": v[0], "b": v[1]}
        for has, v in zip(has_key, values, strict=True)
    ]


def subset(data: frozenset[int], size: int, rng: Rng, *, epsilon: float) -> list[set[str]]:
    """Each of 12 items is in or out of the set by randomised response."""
    truth = np.array([i in data for i in range(len(ITEMS))])
    is_in = truth ^ (rng.random((size, len(ITEMS))) >= 1.0 / (1.0 + math.exp(-epsilon)))
    return [{ITEMS[i] for i in np.flatnonzero(row).tolist()} for row in is_in]


def rows(data: int, size: int, rng: Rng, *, rate: float) -> list[list[list[float]]]:
    """A ragged table: as many rows as a noisy count says, each of random length, filled with noise."""
    counts = np.maximum(0, geometric(data, size, rng, rate=rate)).tolist()
    lengths = iter(rng.integers(1, 4, size=sum(counts)).tolist())
    values = iter(rng.standard_normal(3 * sum(counts)).tolist())
    return [[[next(values) for _ in range(next(lengths))] for _ in range(count)] for count in counts]


def buried(data: float, size: int, rng: Rng, *, scale: float) -> list[list[list[float]]]:
    """A ragged table of two rows whose one answer stands in the middle: last of a first row of random length."""
    lengths = rng.integers(0, 4, size=size).tolist()
    answers = (data + rng.laplace(scale=scale, size=size)).tolist()
    noise = iter(rng.standard_normal(5 * size).tolist())
    return [
        [[*(next(noise) for _ in range(length)), answer], [next(noise), next(noise)]]
        for length, answer in zip(lengths, answers, strict=True)
    ]


def mixed(data: tuple[float, float, float], size: int, rng: Rng, *, scale: float) -> list[Any]:
    """None, NaN and infinity with the first two probabilities of the data and 0.1; else a noisy answer, the third."""
    none, nan, answer = data
    which = np.searchsorted(np.cumsum([none, nan, 0.1]), rng.random(size), side="right").tolist()
    numbers = (answer + rng.laplace(scale=scale, size=size)).tolist()
    special_values: tuple[Any, ...] = (None, math.nan, math.inf)
    return [special_values[w] if w < 3 else number for w, number in zip(which, numbers, strict=True)]


def raises(data: tuple[float, float], rng: Rng, *, scale: float) -> float:
    """One draw a call: an error with the first probability of the data, else a noisy answer, the second."""
    chance, answer = data
    if rng.random() < chance:
        raise ArithmeticError("the sum does not converge")
    return float(answer + rng.laplace(scale=scale))


# --- Laws ------------------------------------------------------------------------------------------------------------


def answer_and_count_law(answer: float, count: float) -> Law:
    """The two parts are independent, and both differ."""
    first, second = response_law(answer, len(WORDS)), geometric_law(count)
    return finite_law(np.outer(first.p, second.p), np.outer(first.q, second.q))


def mixed_law(first: tuple[float, float, float], second: tuple[float, float, float], loss: float) -> Law:
    """A part for each special value, and the noisy answer."""
    rest = tuple(1.0 - data[0] - data[1] - 0.1 for data in (first, second))
    specials = ((first[0], second[0]), (first[1], second[1]), (0.1, 0.1))
    number = laplace_law(loss) if first[2] != second[2] else SAME
    return union_law([*((p, q, SAME) for p, q in specials), (rest[0], rest[1], number)])


def raises_law(first: tuple[float, float], second: tuple[float, float], loss: float) -> Law:
    """An error is one outcome; the noisy answer is the rest."""
    number = laplace_law(loss) if first[1] != second[1] else SAME
    return union_law([(first[0], second[0], SAME), (1.0 - first[0], 1.0 - second[0], number)])


# --- The problems ----------------------------------------------------------------------------------------------------


def _row(
    name: str,
    kind: Kind,
    mechanism: Any,
    pair: tuple[Any, Any],
    dimensions: int,
    law: Callable[[], Law],
    source: str,
    claim: Claim = PROMISE,
    **options: Any,
) -> Problem:
    return problem(name, "objects", kind, mechanism, claim, law, source, pair, dimensions, **options)  # fmt: skip


def _stops(threshold: float, query: float) -> dict[str, Any]:
    law = of(first_above_law, np.array(STOPS[0]), np.array(STOPS[1]), 1.0, threshold, query)
    mechanism = of(stops_early, threshold=threshold, query=query)
    return {"kind": "sequence", "mechanism": mechanism, "pair": STOPS, "dimensions": QUERIES, "law": law}


def problems() -> list[Problem]:
    """All problems on outputs that are no arrays."""
    half = PureDP(0.5)
    asked, counts = ((0, 5), (1, 6)), (3.0, 4.0)
    sets = (frozenset({0, 1, 2, 3}), frozenset({2, 3, 4, 5}))
    ratio = math.exp(-1.0)
    # A special value of loss 1 on either side, so that what is left has the same mass on both.
    even = ((0.2, 0.2 * ratio, 0.0), (0.2 * ratio, 0.2, 1.0))
    leaky = ((0.2, 0.06, 0.0), (0.2, 0.006, 0.0))
    failing, likely, deltas = ((0.1, 0.0), (0.1 * ratio, 1.0)), ((0.12, 0.0), (0.02, 0.0)), ((0.02, 0.0), (0.0, 0.5))
    # The noise may use what an exception of this loss leaves of the claim.
    loss = 1.0 + math.log((1.0 - failing[0][0]) / (1.0 - failing[1][0]))
    return [
        _row("list until the first above 1", **_stops(2.0, 4.0),
             source="sparse vector 1 (Lyu, Su and Li 2017) as a list", true="sound"),
        _row("list until the first above 1, true 1.73", **_stops(4.0, 4.0 / 3.0), source="sparse vector 4, as a list"),
        _row("length of a list 1", "sequence", of(waits, rate=1.0), (6, 7), 30, of(geometric_law, 1.0),
             "padding of traffic", true="tight"),
        _row("word 1", "string", of(word, epsilon=1.0), (0, 3), 1, of(response_law, 1.0, len(WORDS)),
             "randomised response on words", true="tight"),
        _row("fifth letter 1, true 2.5", "string", of(code, epsilon=2.5), (3, 11), 12, of(response_law, 2.5, 16),
             "an identifier with a part that is not random"),
        _row("length of a text 0.5, true 0.8", "string", of(padded, rate=0.8), (9, 10), 30, of(geometric_law, 0.8),
             "padding of messages", half),
        _row("tuple of word and count 1", "tuple", of(answer_and_count, answer=0.5, count=0.5), asked, 2,
             of(answer_and_count_law, 0.5, 0.5), "composition", true="tight"),
        _row("tuple of word and count 1, true 1.4", "tuple", of(answer_and_count, answer=0.6, count=0.8), asked, 2,
             of(answer_and_count_law, 0.6, 0.8), "composition, one part forgotten"),
        _row("count in a dictionary 1", "dictionary", of(record, scale=1.0), counts, 3, of(laplace_law, 1.0),
             "a release as JSON", true="tight", exact=1.0),
        _row("count in a dictionary 1, true 1.5", "dictionary", of(record, scale=1.0 / 1.5), counts, 3,
             of(laplace_law, 1.5), "a release as JSON", exact=1.5),
        _row("set of keys", "dictionary", keys, (0.3, 0.06), 3, of(event_law, 0.3, 0.06),
             "cells without records are left out (Korolova, Kenthapadi, Mishra and Ntoulas 2009)"),
        _row("set of items 1", "set", of(subset, epsilon=0.25), sets, 12, of(bits_law, 0.25, 4),
             "randomised response on every item", true="tight"),
        _row("set of items 1, true 2", "set", of(subset, epsilon=0.5), sets, 12, of(bits_law, 0.5, 4),
             "randomised response on every item, distance counted half"),
        _row("rows of a ragged table 1", "ragged", of(rows, rate=1.0), (4, 5), 30, of(geometric_law, 1.0),
             "a noisy number of records", true="tight"),
        _row("rows of a ragged table 1, true 1.5", "ragged", of(rows, rate=1.5), (4, 5), 30, of(geometric_law, 1.5),
             "a noisy number of records"),
        _row("entry of a ragged table 1, true 2", "ragged", of(buried, scale=0.5), (0.0, 1.0), 6, of(laplace_law, 2.0),
             "an answer whose place varies", exact=2.0),
        _row("numbers, None, NaN and infinity 1", "mixed", of(mixed, scale=1.0), even, 1, of(mixed_law, *even, 1.0),
             "missing values", true="tight", exact=1.0),
        _row("NaN leaks", "mixed", of(mixed, scale=1.0), leaky, 1, of(mixed_law, *leaky, 1.0),
             "an undefined ratio, as of a division by a small count"),
        _row("exception 1", "exception", of(raises, scale=1.0 / loss), failing, 1, of(raises_law, *failing, loss),
             "a side channel of the call", true="tight", exact=1.0),
        _row("exception 1, true 1.8", "exception", of(raises, scale=1.0), likely, 1, of(raises_law, *likely, 1.0),
             "a side channel of the call"),
        _row("exception on one input 0.5, 0.001", "exception", of(raises, scale=1.0), deltas, 1,
             of(raises_law, *deltas, 0.5), "an error that only one input can cause", ApproxDP(0.5, 1e-3)),
    ]  # fmt: skip
