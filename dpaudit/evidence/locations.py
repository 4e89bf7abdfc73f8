"""Locations: the numbers that noise was probably added to, for looks at the doubles of the sums.

Where an input is of the outputs' form its own number is the location. Of a dataset it is one of its facts (its length,
the sum, mean, smallest or largest of its numbers, of all or of one column): the one that lies where the outputs do, on
both inputs. It suggests which doubles to look at, and nothing rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpaudit.evidence.real_columns import Path, number_under
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.facts import columns_of, scalars_of

FEWEST = 50  # training numbers of an input, without which nobody knows where they lie
NEAR = 6.0  # standard errors of a median, within which a fact must lie


def location_of(x: Any, x_prime: Any, path: Path, first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """What the numbers under a path of outputs of x (`first`) and x_prime are around; NaN where nobody knows.

    Examples
    --------
    >>> noise = np.random.default_rng(0).laplace(size=(2, 500))
    >>> location_of([1.0, 2.5], [1.0, 2.5, 4.0], (), noise[0] + 3.5, noise[1] + 7.5)  # the sums
    (3.5, 7.5)
    """
    own = number_under(x, path), number_under(x_prime, path)
    if not all(map(math.isnan, own)):
        return own
    lies = [middle for middle in (_middle(first), _middle(second)) if middle is not None]
    if len(lies) < 2:
        return own
    best = NEAR, own
    for pair in _known(x, x_prime):
        off = max(abs(fact - middle) / error for fact, (middle, error) in zip(pair, lies, strict=True))
        if off < best[0]:
            best = off, pair
    return best[1]


def _known(x: Any, x_prime: Any) -> Iterable[tuple[float, float]]:
    """Facts that both inputs have, by the same name."""
    everything = [(scalars_of(x), scalars_of(x_prime))]
    tables = columns_of(x), columns_of(x_prime)
    shared = [name for name in tables[0] if name in tables[1]]
    everything += [(scalars_of(tables[0][name]), scalars_of(tables[1][name])) for name in shared]
    for of_x, of_x_prime in everything:
        for name, fact in of_x.items():
            if name in of_x_prime:
                yield fact, of_x_prime[name]


def _middle(values: FloatArray) -> tuple[float, float] | None:
    """The median of the finite ones among some numbers, and about its standard error; None for too few."""
    known = values[np.isfinite(values)]
    if len(known) < FEWEST:
        return None
    low, middle, high = np.quantile(known, [0.25, 0.5, 0.75]).tolist()
    return middle, max(high - low, 1e-300) / math.sqrt(len(known))
