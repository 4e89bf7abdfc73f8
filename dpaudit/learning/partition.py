"""One partition of the outputs into cells, shared by all pairs of a universe.

Fitted once, on pilot draws of all inputs together: values that occur often (atoms) get a cell each, everything else
falls into the leaves of a k-d tree whose leaves hold about equally many pooled draws, so that it is finest where the
outputs of many inputs lie. Numbers are split along the few columns that differ most between inputs.

Validity: the cell of an output is a function of that output alone, fixed before the draws that are counted.
"""

from __future__ import annotations

import dataclasses
import functools
import heapq
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, Reading

LEAVES = 512  # cells at most: a pair's test has a count of each
MOST_ATOMS = 1024  # values with a cell of their own, at most: a bound on memory
LEAST_REPEATS = 5  # of a value among the pooled draws of the fit, before it is an atom
ATOM_SHARE = 1e-4  # and its least share of them
SMALLEST_LEAF = 16  # pooled draws: fewer tell little of a log ratio
MOST_COLUMNS = 6  # that the tree may split
FIT_ROWS = 200_000  # pooled draws that the tree is fitted on
FIT_NUMBERS = 4_000_000  # numbers that it is fitted on, at most: a bound on time
SIGNIFICANT = 5.0  # standard deviations by which a column must differ between inputs, if another one does


@dataclasses.dataclass(frozen=True, eq=False)
class Partition:
    """Cells 0, ..., size - 1: the atoms, then one for outputs with a NaN, then the leaves of the tree.

    Attributes
    ----------
    reading : Reading
        How outputs are read: as objects, or as so many numbers.
    atoms : tuple of str or of int
        Tokens of objects, or increasing 64-bit keys of rows of numbers.
    column, threshold, child : arrays, shape (nodes,)
        Of the tree: a node that is no leaf sends an output to `child` if its column is at most the threshold or NaN,
        else to `child + 1`. A leaf is its own child, and `leaf` numbers it from 0 (-1 for inner nodes).
    """

    reading: Reading
    atoms: tuple[Any, ...]
    column: NDArray[np.int64]
    threshold: FloatArray
    child: NDArray[np.int64]
    leaf: NDArray[np.int64]
    depth: int

    @property
    def size(self) -> int:
        """The number of cells."""
        return len(self.atoms) + 1 + int(self.leaf.max()) + 1

    def zeros(self) -> NDArray[np.int64]:
        """The counts of no draws."""
        return np.zeros(self.size, dtype=np.int64)

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """How many outcomes fall into each cell, shape (cells,)."""
        return np.bincount(self.cells(self.reading(outcomes)), minlength=self.size) if len(outcomes) else self.zeros()

    def cells(self, outcomes: Outcomes) -> NDArray[np.int64]:
        """The cell of each outcome that was read as `reading` says, shape (draws,)."""
        numbers = outcomes.numbers
        node = np.zeros(len(numbers), dtype=np.int64)
        rows = np.arange(len(numbers))
        with np.errstate(invalid="ignore"):
            for _ in range(self.depth):
                node = self.child[node] + (numbers[rows, self.column[node]] > self._limit[node])
        cells = self.leaf[node] + len(self.atoms) + 1
        if self.reading.columns:
            used = np.unique(self.column)
            cells[np.isnan(numbers[:, used]).any(axis=1)] = len(self.atoms)
        if self.atoms and self.reading.columns:
            keys = row_keys(numbers)
            at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            cells = np.where(self._keys[at] == keys, at, cells)
        elif self.atoms:
            assert outcomes.tokens is not None
            known = self._tokens
            cells = np.array([known.get(token, cell) for token, cell in zip(outcomes.tokens, cells, strict=True)])
        return cells

    @functools.cached_property
    def _limit(self) -> FloatArray:
        return np.where(self.leaf >= 0, np.inf, self.threshold)  # nothing is above: a leaf keeps what it has

    @functools.cached_property
    def _keys(self) -> NDArray[np.uint64]:
        return np.array(self.atoms, dtype=np.uint64)

    @functools.cached_property
    def _tokens(self) -> dict[str, int]:
        return {token: cell for cell, token in enumerate(self.atoms)}

    def to_dict(self) -> dict[str, Any]:
        """The partition as data, for `partition_from_dict`."""
        return {
            "columns": self.reading.columns,
            "atoms": [str(atom) for atom in self.atoms],
            "column": self.column.tolist(),
            "threshold": [value.hex() for value in self.threshold.tolist()],
            "child": self.child.tolist(),
        }


def partition_from_dict(record: Mapping[str, Any]) -> Partition:
    """The partition that `Partition.to_dict` wrote; ValueError if it is none."""
    reading = Reading(int(record["columns"]))
    column, child = (np.array(record[name], dtype=np.int64) for name in ("column", "child"))
    threshold = np.array([float.fromhex(value) for value in record["threshold"]])
    atoms = tuple(int(atom) for atom in record["atoms"]) if reading.columns else tuple(record["atoms"])
    return _partition(reading, atoms, column, threshold, child)


def _partition(
    reading: Reading,
    atoms: tuple[Any, ...],
    column: NDArray[np.int64],
    threshold: FloatArray,
    child: NDArray[np.int64],
) -> Partition:
    nodes = np.arange(len(child))
    is_leaf = child == nodes
    inner = child[~is_leaf]
    if not len(column) == len(threshold) == len(child) > 0 or np.any(inner <= nodes[~is_leaf]):
        raise ValueError("partition must be a tree whose children follow their parents.")
    if len(inner) and inner.max() + 1 >= len(child):
        raise ValueError("partition must be a tree with both children of every node.")
    depths = np.zeros(len(child), dtype=np.int64)
    for node in nodes[~is_leaf].tolist():
        depths[child[node] : child[node] + 2] = depths[node] + 1
    leaf = np.where(is_leaf, np.cumsum(is_leaf) - 1, -1)
    return Partition(reading, atoms, column, threshold, child, leaf, int(depths.max()))


def row_keys(numbers: FloatArray) -> NDArray[np.uint64]:
    """A 64-bit key of each row of numbers, shape (draws,): equal rows have equal keys, and others hardly ever.

    By the bits of the doubles, with one key for all NaNs. Two rows that share a key share a cell, which costs power at
    worst.
    """
    bits = np.ascontiguousarray(np.where(np.isnan(numbers), np.nan, numbers)).view(np.uint64)  # (draws, columns)
    keys = np.zeros(len(bits), dtype=np.uint64)
    for k in range(bits.shape[1]):  # a polynomial in an odd number, modulo 2**64, with the high bits mixed in
        keys = (keys ^ (keys >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + bits[:, k]
    return keys


def fit_partition(parts: Sequence[Outcomes], leaves: int = LEAVES) -> Partition:
    """The partition for the pilot draws of each input (one part an input)."""
    kinds = {(part.tokens is None, part.numbers.shape[1]) for part in parts}
    numeric = len(kinds) == 1 and parts[0].tokens is None
    reading = Reading(parts[0].numbers.shape[1] if numeric else 0)
    columns = reading.columns or 1
    rows = max(8, min(FIT_ROWS, FIT_NUMBERS // columns) // len(parts))
    # An even choice of each input's draws; which ones does not depend on their values.
    read = [reading(part.rows(slice(0, rows))) for part in parts]
    numbers = np.concatenate([part.numbers for part in read])  # (pooled draws, columns)
    atoms: tuple[Any, ...]
    least = max(LEAST_REPEATS, ATOM_SHARE * len(numbers))
    if numeric:
        keys = row_keys(numbers)
        values, counts = np.unique(keys, return_counts=True)
        atoms = tuple(np.sort(_frequent(values, counts, least)).tolist())
        rest = ~np.isin(keys, np.array(atoms, dtype=np.uint64))
    else:
        tokens = np.concatenate([np.asarray(part.tokens, dtype=object) for part in read]).astype(str)
        values, counts = np.unique(tokens, return_counts=True)
        atoms = tuple(str(token) for token in _frequent(values, counts, least))
        rest = ~np.isin(tokens, np.array(atoms, dtype=str))
    owner = np.repeat(np.arange(len(read)), [len(part) for part in read])
    chosen, noise = _columns(numbers[rest], owner[rest])
    return _grow(reading, atoms, numbers[rest], chosen, noise, leaves)


def _frequent(values: NDArray[Any], counts: NDArray[np.int64], least: float) -> NDArray[Any]:
    """The most frequent values, at most `MOST_ATOMS`, each seen at least so often."""
    order = np.argsort(-counts, kind="stable")[:MOST_ATOMS]
    return values[order[counts[order] >= least]]


def _columns(numbers: FloatArray, owner: NDArray[np.int64]) -> tuple[NDArray[np.int64], FloatArray]:
    """The columns to split, those that differ most between inputs, and the spread of each within one input.

    By F statistics of the values and of their distances from the middle (for laws that differ in width), both
    clipped to the central 98%.
    """
    everything = np.arange(numbers.shape[1])
    if len(numbers) < 2:
        return everything[:1], np.ones(1)
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    low, middle, high = np.quantile(finite, [0.01, 0.5, 0.99], axis=0)
    clipped = np.clip(finite, low, high)
    inputs = np.unique(owner, return_inverse=True)[1]
    count = np.bincount(inputs).astype(float)  # (inputs,)
    scores = np.zeros(numbers.shape[1])
    spread = np.zeros(numbers.shape[1])
    for column in everything.tolist():
        for values in (clipped[:, column], np.abs(clipped[:, column] - middle[column])):
            mean = np.bincount(inputs, values) / count
            square = np.bincount(inputs, values**2) / count
            within = float(np.average(np.maximum(square - mean**2, 0.0), weights=count))
            between = float(np.average((mean - values.mean()) ** 2, weights=count))
            # Between inputs the mean square is about 1 + count * between / within; a column of one value has neither.
            score = between * len(values) / max(len(count), 1) / within if within > 0.0 else np.inf * (between > 0.0)
            scores[column] = max(scores[column], 0.0 if np.isnan(score) else score)
            if values is not clipped and spread[column] == 0.0:
                spread[column] = np.sqrt(within)
    order = np.argsort(-scores, kind="stable")[:MOST_COLUMNS]
    limit = 1.0 + SIGNIFICANT * np.sqrt(2.0 / len(count))
    chosen = order[scores[order] > limit] if scores[order[0]] > limit else order
    return chosen, np.where(spread[chosen] > 0.0, spread[chosen], 1.0)


def _grow(
    reading: Reading,
    atoms: tuple[Any, ...],
    numbers: FloatArray,
    chosen: NDArray[np.int64],
    noise: FloatArray,
    leaves: int,
) -> Partition:
    """Split the leaf with the most draws, along the column in which it is widest for its noise, until `leaves`."""
    column, threshold, child = [int(chosen[0])], [0.0], [0]
    open_leaves: list[tuple[int, int, NDArray[np.int64]]] = [(-len(numbers), 0, np.arange(len(numbers)))]
    count = 1
    while open_leaves and count < leaves:
        size, node, rows = heapq.heappop(open_leaves)
        if -size < 2 * SMALLEST_LEAF:
            break
        cut = _cut(numbers[np.ix_(rows, chosen)], noise)
        if cut is None:
            continue
        position, value = cut
        column[node], threshold[node], child[node] = int(chosen[position]), value, len(child)
        above = numbers[rows, chosen[position]] > value
        for part in (rows[~above], rows[above]):
            heapq.heappush(open_leaves, (-len(part), len(child), part))
            column.append(int(chosen[0]))
            threshold.append(0.0)
            child.append(len(child))
        count += 1
    return _partition(reading, atoms, np.array(column), np.array(threshold), np.array(child))


def _cut(values: FloatArray, noise: FloatArray) -> tuple[int, float] | None:
    """The position of the widest column and the value to cut it at, near its median; None if nothing varies."""
    held_values = [column[np.isfinite(column)] for column in values.T]
    ends = [np.quantile(held, [0.1, 0.9]) if len(held) else np.zeros(2) for held in held_values]
    width = np.array([high - low for low, high in ends]) / noise
    for position in np.argsort(-width, kind="stable").tolist():
        held = np.sort(held_values[position])
        if len(held) == 0 or held[0] == held[-1]:
            continue
        middle = held[(len(held) - 1) // 2]
        if middle == held[-1]:  # nothing would be above: cut below the largest value instead
            middle = held[np.searchsorted(held, middle) - 1]
        return position, float(middle)
    return None


@dataclasses.dataclass(frozen=True, eq=False)
class CellScore:
    """A score that is 1 on some cells of a partition, -1 on others, 0 on the rest."""

    partition: Partition
    plus: tuple[int, ...]
    minus: tuple[int, ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The score of each outcome, shape (draws,)."""
        values = np.zeros(self.partition.size)
        values[list(self.plus)], values[list(self.minus)] = 1.0, -1.0
        return values[self.partition.cells(outcomes)]

    def to_dict(self) -> dict[str, Any]:
        """As data. The partition is not in it: a universe saves it once, for all of its rules."""
        return {"kind": "cells", "plus": list(self.plus), "minus": list(self.minus)}

    def describe(self) -> str:
        """In words."""
        return (
            f"the cell of the output, of {self.partition.size} fitted on the pilot of all inputs, which counts as 1 "
            f"for {len(self.plus)} of them and as -1 for {len(self.minus)}"
        )


def cell_score_from_dict(record: Mapping[str, Any]) -> CellScore:
    """The score of a record whose "partition" was put back; ValueError if it has none or the cells overlap."""
    if "partition" not in record:
        raise ValueError("a score on cells needs the partition of its universe.")
    partition = partition_from_dict(record["partition"])
    plus, minus = (tuple(int(cell) for cell in record[name]) for name in ("plus", "minus"))
    if set(plus) & set(minus) or not all(0 <= cell < partition.size for cell in (*plus, *minus)):
        raise ValueError("cells of a score must be different ones of its partition.")
    return CellScore(partition, plus, minus)
