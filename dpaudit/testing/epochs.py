"""Epochs of the sequential game: what one fit bets on, and the counts since.

The partitions and the weights of the bets on them are fixed by earlier draws; only the live counts grow.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.cells import Cells, CellSet
from dpaudit.learning.fitted_partitions import Partition
from dpaudit.learning.paths import PathPriors
from dpaudit.privacy.claims import FloatArray
from dpaudit.testing.betting import Bets, Book, Components, Gains, gains, log_sum, stakes_of


@dataclasses.dataclass
class Epoch:
    """What one fit bets on: partitions and bets meant for the budget, and the counts."""

    partitions: tuple[Partition, ...]
    book: Book
    bets: Bets
    kept: NDArray[np.intp]  # positions of the bets' components among all
    idle: float  # the share of the wealth that is not bet, in [0, 1)
    saved: dict[str, Any] = dataclasses.field(default_factory=dict)  # all but the counts, once it was saved
    anchors: dict[float, float] = dataclasses.field(default_factory=dict)  # of bets for lower targets, as they are made
    _gains: Gains | None = dataclasses.field(default=None, repr=False, compare=False)
    _stakes: FloatArray | None = dataclasses.field(default=None, repr=False, compare=False)  # of the counts so far
    _logs: FloatArray | None = dataclasses.field(default=None, repr=False, compare=False)  # of the counts so far

    @functools.cached_property
    def cells(self) -> tuple[Cells, ...]:
        """Of each partition."""
        return tuple(partition.cells for partition in self.partitions)

    @functools.cached_property
    def statistic(self) -> CellSet:
        """What is counted on each side's draws."""
        return CellSet(self.cells)

    @property
    def training(self) -> float:
        """How many training draws its bets were fixed by."""
        return float(self.book.train[..., 0].sum())

    @property
    def names(self) -> tuple[str, ...]:
        """Of each partition."""
        return tuple(partition.name for partition in self.partitions)

    @functools.cached_property
    def of_each_cells(self) -> NDArray[np.intp]:
        """The positions of partitions whose cells differ: of twins the first one, whose paths are free."""
        return np.unique(twins_of(self.partitions), return_index=True)[1]

    def add(self, counts_x: NDArray[np.int64], counts_x_prime: NDArray[np.int64]) -> None:
        """Add counts of the statistic on new draws of x (label 1) and x_prime (label 0)."""
        rows, columns = self._places
        self.book.live[0, rows, columns] += counts_x_prime
        self.book.live[1, rows, columns] += counts_x
        self._stakes = self._logs = None

    @property
    def stakes(self) -> FloatArray:
        """`stakes_of` the counts so far."""
        if self._stakes is None:
            self._stakes = stakes_of(self.book.live, self.book.paths)
        return self._stakes

    @functools.cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Where each count of the statistic stands in the book: the cell, and the partition."""
        sizes = [cells.size for cells in self.cells]
        return np.concatenate([np.arange(size) for size in sizes]), np.repeat(np.arange(len(sizes)), sizes)

    def log_wealth(self, line: Callable[[Components], tuple[FloatArray, FloatArray]]) -> FloatArray:
        """Log wealth of each bet on the draws so far, shape (partitions, components), against the watched line.

        `line` gives epsilon and delta of each component's, and is asked once: it is the same at each call.
        """
        if self._gains is None:
            self._gains = gains(self.bets.components, *line(self.bets.components))
        if self._logs is None:
            self._logs = self.bets.log_wealth_of(self.stakes, self._gains)
        return self._logs

    @functools.cached_property
    def anchor(self) -> float:
        """The line of a free family that holds most of the weights."""
        best = np.argmax(log_sum(self.bets.log_weights, axis=0))
        return float(self.bets.components.anchor[0, best])


def book_of(partitions: Sequence[Partition]) -> Book:
    """The training counts of partitions, padded to the largest, and no live draws yet."""
    sizes = np.array([partition.cells.size for partition in partitions])
    train = np.zeros((2, int(sizes.max()), len(partitions)))
    for k, partition in enumerate(partitions):
        train[:, : partition.cells.size, k] = partition.counts
    paths = PathPriors.of_counts(
        [partition.counts for partition in partitions],
        [partition.order for partition in partitions],
        [partition.is_rough for partition in partitions],
    )
    return Book(train, np.zeros_like(train), paths)


def twins_of(partitions: Sequence[Partition]) -> list[int]:
    """A number for each partition, the same for those of one kind; 0 for the first ones."""
    kinds = list(dict.fromkeys(partition.kind for partition in partitions))
    return [kinds.index(partition.kind) for partition in partitions]
