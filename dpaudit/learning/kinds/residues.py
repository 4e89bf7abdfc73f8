"""Residues: what a number leaves modulo a step, where its labels speak.

Steps are powers of 2 and of 10, a few small integers, and the steps of lattices that the draws of one label lie on
(the greatest common divisor of their differences). Which steps are worth a predictor is read off the labels, within
ranges of the number itself: a large number speaks for its own loss whatever it leaves, so that only what the residue
adds counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.looks import looked_at
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Reduction, Residue
from dpaudit.learning.training import BLOCK, Block, Training
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.whole_numbers import MIN_SHARE_OF_SIZE, are_integers

FEWEST = 24  # draws
LOOKED_AT = 2_000  # draws that steps are tried on
BINS = 16  # of a residue: a power of 2
LARGEST_QUOTIENT = 1e9  # of a number by a step, up to which its rounding does not matter
STRATA = 4  # ranges of the number, within which residues are compared
LEAST = 4.5  # standard deviations by which a step must stand out, and more where many are tried
BESIDE = (0.873, 1.171)  # times a step: other steps of about its size, which no lattice has in common with it
MOST = 2  # steps of one reduction


def _named(*steps: float) -> dict[float, str]:
    return {float(step): f"{step:g}" for step in steps}


# Of integers: all small numbers, powers, and those of times, money and bytes.
INTEGERS = _named(*range(2, 17), 20, 24, 25, 30, 50, 60, 64, 100, 256, 365, 1_000, 3_600, 10_000, 86_400)
OTHERS = _named(1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0, 1e3)
WIDE = 1e-3  # of a step: gaps between residues that are different
STEPS_OF_EUCLID = 60  # at most, in search of a common divisor
MOST_OF_FLOATS, MOST_OF_INTEGERS = 1e5, 1e9  # steps that numbers on a lattice range over


def propose(training: Training) -> Iterable[Predictor]:
    """Residues of every reduction modulo the steps that stand out."""
    yield from residues_of(training, looked_at(training))


def residues_of(training: Training, reductions: Sequence[Reduction]) -> Iterator[Predictor]:
    """Residues of these reductions modulo the steps that stand out, at most `MOST` of each."""
    found: dict[Reduction, list[Predictor]] = {}
    for block in training.blocks(reductions):
        every = max(1, block.values.shape[1] // LOOKED_AT)
        some = Block(block.reductions, block.values[:, ::every], block.labels[:, ::every])  # every so many, in order
        steps = [list(_steps(values, labels)) for values, labels in zip(some.values, some.labels, strict=True)]
        row = np.repeat(np.arange(len(steps)), [len(own) for own in steps])
        merits = merits_of(some, row, [(modulus, offset) for own in steps for _, modulus, offset in own])
        for k, reduction in enumerate(block.reductions):
            found[reduction] = list(_of_reduction(training, some.only(k), steps[k], merits[row == k]))
    for reduction in reductions:
        yield from found[reduction]


def _of_reduction(
    training: Training, draws: Block, steps: Sequence[tuple[str, float, float]], merits: FloatArray
) -> Iterator[Predictor]:
    """Residues of the one reduction of a block modulo those of these steps that stand out, by their merits."""
    least = LEAST + 0.5 * math.log(max(training.columns, 1))
    (reduction,) = draws.reductions
    found = []
    for place in np.flatnonzero(merits > least).tolist():
        # Parts of a smooth law differ modulo any step: only what a step says beyond others of its size counts.
        name, modulus, offset = steps[place]
        others = merits_of(draws, np.zeros(len(BESIDE), dtype=int), [(modulus * factor, offset) for factor in BESIDE])
        merit = float(merits[place] - max(0.0, float(others.max())))
        if merit > least:
            found.append((merit, name, modulus, offset))
    for merit, name, modulus, offset in sorted(found, key=lambda each: (-each[0], each[2]))[:MOST]:
        what = Residue(reduction, modulus, offset)
        yield Predictor(f"{reduction.name} modulo {name}", what, _edges(what(training.numbers)), merit)


def _steps(values: FloatArray, labels: NDArray[np.bool_]) -> Iterator[tuple[str, float, float]]:
    """Steps that may be worth a try for increasing values: a name that stays the same, the step, and an offset.

    None for few draws, or where there are fewer than three different values.
    """
    if len(values) < FEWEST or np.count_nonzero(values[1:] != values[:-1]) < 2:
        return
    spread = float(values[-1 - len(values) // 50] - values[len(values) // 50])
    size = float(max(abs(values[0]), abs(values[-1]), 1e-300))
    if not 0.0 < spread < math.inf:
        return
    is_whole = are_integers(values)
    for modulus, name in (INTEGERS if is_whole else OTHERS).items():
        if modulus <= 0.7 * spread and (is_whole or modulus > MIN_SHARE_OF_SIZE * size):
            yield name, modulus, 0.0
    for label, name in ((True, "x"), (False, "x'")):
        own = values[labels == label]
        step = lattice_step(own)
        if step is not None and step <= spread and not (is_whole and step == 1.0):
            yield f"the step of {name}", step, float(own[0])


def lattice_step(values: FloatArray) -> float | None:
    """The step of the lattice that nearly all of some increasing numbers lie on; None where there is none.

    By Euclid's algorithm on differences, up to rounding. The lattice must be coarse: the numbers range over fewer than
    `MOST_OF_FLOATS` steps, or over at most `MOST_OF_INTEGERS` where the step is an integer.
    """
    if len(values) < 8:
        return None
    differences = values[1:] - values[:-1]
    differences = differences[differences > 1e-12 * max(abs(float(values[0])), abs(float(values[-1])), 1e-300)]
    if len(differences) == 0:
        return None
    step, spread = float(differences.min()), float(values[-1] - values[0])
    if _is_fine(step, spread) or _is_fine(_common(step, float(differences.max())), spread):
        return None  # a divisor is finer still
    differences = np.unique(differences)
    for other in differences[np.linspace(0, len(differences) - 1, min(len(differences), 40)).astype(int)].tolist():
        step = _common(step, other)
        if _is_fine(step, spread):
            return None
    multiples = (values - values[0]) / step
    close = np.abs(multiples - np.rint(multiples)) < WIDE
    if not float(np.mean(close)) > 0.9:
        return None
    return step if spread / step < MOST_OF_FLOATS or step == round(step) else None


def _is_fine(step: float, spread: float) -> bool:
    """Whether neither a step nor a divisor of it is a lattice's, by its size."""
    return spread / step > MOST_OF_INTEGERS or (step < 1.0 and spread / step >= MOST_OF_FLOATS)


def _common(a: float, b: float) -> float:
    """The greatest common divisor of two positive numbers, up to rounding."""
    a, b = max(a, b), min(a, b)
    scale = a
    for _ in range(STEPS_OF_EUCLID):
        left = math.fmod(a, b)
        left = min(left, b - left)
        if left <= max(1e-4 * b, 1e-13 * scale):
            return b
        a, b = b, left
    return b


def _edges(residues: FloatArray) -> FloatArray | None:
    """Edges between the different residues, where they are few: a cell for each, whatever rounding makes of it."""
    known = residues[np.isfinite(residues)]
    known = np.sort(known[:: max(1, len(known) // LOOKED_AT)])
    if len(known) < 2:
        return None
    gaps = np.diff(known)
    wide = np.flatnonzero(gaps > WIDE)
    return (0.5 * (known[wide] + known[wide + 1])) if 0 < len(wide) <= 64 and _is_clustered(known, wide) else None


def _is_clustered(known: FloatArray, wide: NDArray[np.intp]) -> bool:
    """Whether between wide gaps numbers lie close together."""
    ends = np.concatenate([wide, [len(known) - 1]])
    starts = np.concatenate([[0], wide + 1])
    return bool(np.sum(known[ends] - known[starts]) < 0.1 * (known[-1] - known[0]))


def merits_of(draws: Block, row: NDArray[np.intp], steps: Sequence[tuple[float, float]]) -> FloatArray:
    """Standard deviations by which labels differ between residues modulo each step, within ranges of the number itself.

    Parameters
    ----------
    draws : Block
    row : ndarray of int, shape (steps,)
        The row of the block that each step is tried on.
    steps : sequence of (float, float)
        Steps, and the numbers that residues are counted from.

    Returns
    -------
    ndarray of float, shape (steps,)
        By chi-square of the labels in `BINS` bins of the residues, less its degrees of freedom, over its deviation.
    """
    size, moduli = draws.values.shape[1], np.array(steps).reshape(-1, 2)
    strata = np.minimum(np.arange(size) * STRATA // size, STRATA - 1) * (2 * BINS)
    counts = np.empty((len(moduli), STRATA, BINS, 2), dtype=np.intp)
    most = max(BLOCK // max(size, 1), 1)
    for first in range(0, len(moduli), most):
        some = slice(first, first + most)
        index = _bins(draws.values[row[some]], moduli[some, :1], moduli[some, 1:])
        index *= 2
        index += strata + draws.labels[row[some]]
        index += np.arange(len(index))[:, None] * (STRATA * BINS * 2)
        counted = np.bincount(index.ravel(), minlength=len(index) * STRATA * BINS * 2)
        counts[some] = counted.reshape(-1, STRATA, BINS, 2)
    of_x, total = counts[..., 1], counts.sum(axis=3).astype(float)
    share = of_x.sum(axis=2, keepdims=True) / np.maximum(total.sum(axis=2, keepdims=True), 1.0)
    variance = total * share * (1.0 - share)
    is_used = variance > 0.0
    chi_square = (np.square(of_x - total * share) / np.where(is_used, variance, 1.0) * is_used).sum(axis=(1, 2))
    degrees = is_used.sum(axis=(1, 2)) - is_used.any(axis=2).sum(axis=1)
    return np.asarray((chi_square - degrees) / np.sqrt(2.0 * np.maximum(degrees, 1)))


def _bins(values: FloatArray, moduli: FloatArray, offsets: FloatArray) -> NDArray[np.intp]:
    """The bin, of `BINS`, of what each row of values leaves modulo its step, shape (steps, draws).

    A number on the lattice is in the middle of bin 0, whichever side rounding puts it on.
    """
    if np.any(np.abs(values[:, [0, -1]] - offsets) > LARGEST_QUOTIENT * moduli):
        left = np.mod(values - offsets, moduli) / moduli * BINS  # exact, and several times as long
    else:
        left = (values - offsets) * (BINS / moduli)
    left += 0.5
    bins: NDArray[np.intp] = np.floor(left, out=left).astype(np.intp)
    bins &= BINS - 1
    return bins
