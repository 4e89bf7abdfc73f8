"""Multiples: numbers that a step divides, more often under one label.

Residues are compared in a few wide bins each, in which the one residue that a rounded number leaves is hard to see: of
durations in microseconds, a twentieth in whole milliseconds. Here multiples alone are counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from dpaudit.learning.kinds.residues import INTEGERS, OTHERS
from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Own, Residue
from dpaudit.learning.training import Training
from dpaudit.reading.whole_numbers import are_integers

FEWEST = 40  # draws
LOOKED_AT = 4_000  # draws that steps are tried on
OF_INTEGERS = (*INTEGERS, 500, 100_000, 1_000_000, 60_000_000)  # those of residues, and of times
BEYOND = 2.5  # deviations, over what the best of so many has by chance
NEAR = 1e-6  # of a step
EDGES = np.array([-NEAR, NEAR])
MOST = 2  # steps of a row


def propose(training: Training) -> Iterable[Predictor]:
    """A cell of the multiples of a step, for the columns and steps that stand out most."""
    found: list[tuple[float, int, float]] = []
    tried = 0
    for column in (look.column for look in looked_at(training) if isinstance(look, Own)):
        draws = training.sorted(Own(column))
        if len(draws) < FEWEST or draws.different < 3:
            continue
        every = max(1, len(draws) // LOOKED_AT)
        values, labels = draws.values[::every], draws.labels[::every]
        sizes = np.count_nonzero(labels), np.count_nonzero(~labels)
        if min(sizes) == 0:
            continue
        is_whole = are_integers(values)
        largest = float(np.abs(values).max())
        steps = [
            float(step)
            for step in (OF_INTEGERS if is_whole else OTHERS)
            if step <= largest and (is_whole or NEAR * step > 1e-14 * largest)  # else rounding is all that is left
        ]
        tried += len(steps)
        for step in steps:
            left = np.mod(values / step + 0.5, 1.0) - 0.5
            is_multiple = np.abs(left) < NEAR
            counts = np.count_nonzero(is_multiple & labels), np.count_nonzero(is_multiple & ~labels)
            share = sum(counts) / len(values)
            error = math.sqrt(share * (1.0 - share) * (1.0 / sizes[0] + 1.0 / sizes[1]))
            if error > 0.0:
                found.append((abs(counts[0] / sizes[0] - counts[1] / sizes[1]) / error, column, step))
    least = math.sqrt(2.0 * math.log(max(tried, 2))) + BEYOND
    # Of steps of one column the largest comes first among equals: a multiple of 1,000 is one of 10, too.
    for merit, column, step in sorted(found, key=lambda one: (-one[0], one[1], -one[2]))[:MOST]:
        if merit > least:
            what = Residue(Own(column), step)
            yield Predictor(f"multiples of {step:g} in {what.of.name}", what, EDGES, merit)
