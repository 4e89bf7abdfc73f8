"""Stacks: the bets of all epochs of a game that are meant for one parameter value, for the search for the bound.

The bound asks for the wealth of every epoch against several parameter values. Epochs have few partitions of very
different sizes: partitions of similar ones, whatever their epoch, are a *block* whose wealth is computed at once.

Most epochs have few of the draws, and little say in what is rejected, and cost as much as the others. So the late ones
are asked first (a *group*), and the others only where the answer hangs on them: wealth decreases in the value, so what
an epoch had at other values limits what it has here.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.evidence.betting import (
    Bets,
    Book,
    Components,
    evidence_of,
    gains,
    log_sum,
    stacked,
    stacked_bets,
    weights_of,
)
from dpaudit.evidence.paths import LEVELS
from dpaudit.privacy.claims import FloatArray

BLOCK_NUMBERS = 1 << 16  # numbers of a block's emissions: they stay in the processor's cache
GROUPS = (0.85, 0.98)  # of the counted draws, that the first groups of epochs hold
LEAST_FILL = 0.6  # of a block's cells, that each of its partitions has of its own

Lines = Callable[[float, Components], tuple[FloatArray, FloatArray]]


@dataclasses.dataclass(frozen=True)
class Block:
    """Some partitions of a stack: their positions in it, their live counts (2, cells, partitions), bets on them."""

    positions: NDArray[np.intp]
    live: FloatArray
    bets: Bets


@dataclasses.dataclass(frozen=True)
class Stack:
    """All epochs' bets that are meant for one value, in blocks; where each epoch begins, and what it does not bet."""

    blocks: tuple[Block, ...]
    first: NDArray[np.intp]
    idle: FloatArray
    size: int

    def log_wealth(self, value: float, lines: Lines) -> FloatArray:
        """Log wealth of each epoch against a parameter value, with what is idle; shape (epochs,)."""
        of_partitions = np.empty(self.size)
        for block in self.blocks:
            bets = block.bets
            line = gains(bets.components, *lines(value, bets.components))
            of_partitions[block.positions] = log_sum(bets.log_wealth_of(block.live, line) + bets.log_weights, axis=1)
        return with_idle(np.logaddexp.reduceat(of_partitions, self.first), self.idle)


@dataclasses.dataclass
class Group:
    """Some epochs: their stacks, one for each value that bets are meant for, and their log wealth where it is known."""

    stacks: Sequence[Stack]
    known: dict[float, FloatArray] = dataclasses.field(default_factory=dict)

    def log_wealth(self, value: float, lines: Lines) -> FloatArray:
        """Log wealth of all its epochs against a value, shape (stacks,): with what is idle."""
        if value not in self.known:
            self.known[value] = np.array([stack.log_wealth(value, lines).sum() for stack in self.stacks])
        return self.known[value]

    def limits(self, value: float) -> tuple[FloatArray, FloatArray]:
        """Log wealth that it has at least, and at most, by what it has at greater and smaller values."""
        above = min((other for other in self.known if other >= value), default=None)
        below = max((other for other in self.known if other <= value), default=None)
        nothing = np.full(len(self.stacks), math.inf)
        return -nothing if above is None else self.known[above], nothing if below is None else self.known[below]


@dataclasses.dataclass(frozen=True)
class Reckoning:
    """Which parameter values the wealth of all groups together rejects.

    `log_shares` (shape (stacks,), of a value) are the logs of what is bet with each stack at first.
    """

    groups: Sequence[Group]
    log_shares: Callable[[float], FloatArray]
    threshold: float
    lines: Lines

    def rejects(self, values: FloatArray) -> NDArray[np.bool_]:
        """Whether log wealth is at least the threshold; the greatest value first, which limits the others."""
        return np.array([self._rejects(value) for value in values.tolist()[::-1]], dtype=bool)[::-1]

    def _rejects(self, value: float) -> bool:
        if not self.groups:  # nothing was counted
            return self._total(value, np.zeros((1, 1))) >= self.threshold
        least, most = np.transpose([group.limits(value) for group in self.groups], (1, 0, 2))
        for k, group in enumerate(self.groups):
            least[k] = most[k] = group.log_wealth(value, self.lines)
            if self._total(value, least) >= self.threshold:
                return True
            if self._total(value, most) < self.threshold:
                return False
        return self._total(value, least) >= self.threshold

    def _total(self, value: float, logs: FloatArray) -> float:
        with np.errstate(invalid="ignore"):  # of limits that are not known: NaN decides nothing
            return float(log_sum(self.log_shares(value) + logs.sum(axis=0)))


def grouped(counted: Sequence[float]) -> list[slice]:
    """Groups of epochs with so many counted draws, the last epochs first: each as positions."""
    groups: list[slice] = []
    end, held = len(counted), np.cumsum(counted[::-1])
    needed = [int(np.searchsorted(held, share * sum(counted))) + 1 for share in GROUPS] if end else []
    for start in [*(len(counted) - last for last in needed), 0]:
        if start < end:
            groups.append(slice(start, end))
            end = start
    return groups


def with_idle(won: FloatArray, idle: FloatArray | float) -> FloatArray:
    """Log wealth of epochs, of which these shares are idle and the rest won this."""
    with np.errstate(divide="ignore"):  # nothing is idle in epochs of an engine that held nothing back
        return np.asarray(np.logaddexp(np.log(idle), np.log1p(-idle) + won))


def stack_of_bets(
    books: Sequence[Book], bets: Sequence[Bets], sizes: Sequence[Sequence[int]], idle: FloatArray
) -> Stack:
    """The stack of bets that were made: one book, bets and list of the partitions' own cells an epoch."""
    placed = _placed(sizes, [bet.components.up.shape[1] for bet in bets])
    blocks = []
    for positions, cells in placed:
        parts = [
            (bets[epoch].only_partition(k, size), books[epoch].only_partition(k, size)) for epoch, k, size in cells
        ]
        book = stacked([part for _, part in parts])
        blocks.append(Block(positions, book.live, stacked_bets([part for part, _ in parts], book.live.shape[1])))
    return _stack(blocks, sizes, idle)


def stack_of_fits(
    books: Sequence[Book], components: Sequence[Components], sizes: Sequence[Sequence[int]], idle: FloatArray
) -> Stack:
    """The stack of bets that are fitted now, on the training draws of each epoch: its components (1, components)."""
    blocks = []
    count = components[0].up.shape[1]
    evidence = np.empty((sum(len(own) for own in sizes), count))
    for positions, cells in _placed(sizes, [count] * len(books)):
        book = stacked([books[epoch].only_partition(k, size) for epoch, k, size in cells])
        own = Components.stacked([components[epoch] for epoch, _, _ in cells])
        model, evidence[positions] = evidence_of(book, own)
        bets = Bets(own, model, evidence[positions], book.paths, evidence[positions])
        blocks.append(Block(positions, book.live, bets))
    weights = weights_of(evidence, [len(own) for own in sizes])
    weighed = [
        dataclasses.replace(block, bets=dataclasses.replace(block.bets, log_weights=weights[block.positions]))
        for block in blocks
    ]
    return _stack(weighed, sizes, idle)


def _stack(blocks: Sequence[Block], sizes: Sequence[Sequence[int]], idle: FloatArray) -> Stack:
    lengths = np.array([len(own) for own in sizes])
    return Stack(tuple(blocks), np.cumsum(lengths) - lengths, idle, int(lengths.sum()))


def _placed(
    sizes: Sequence[Sequence[int]], components: Sequence[int]
) -> list[tuple[NDArray[np.intp], list[tuple[int, int, int]]]]:
    """Blocks of partitions of like sizes with as many components: positions, and (epoch, partition, cells) of each."""
    everything = [(epoch, k, size) for epoch, own in enumerate(sizes) for k, size in enumerate(own)]
    order = sorted(range(len(everything)), key=lambda at: (components[everything[at][0]], -everything[at][2], at))
    blocks: list[list[int]] = []
    for at in order:
        epoch, _, size = everything[at]
        if blocks:
            first_epoch, _, largest = everything[blocks[-1][0]]
            is_alike = components[first_epoch] == components[epoch] and size >= LEAST_FILL * largest
            if is_alike and (len(blocks[-1]) + 1) * largest * LEVELS * components[epoch] <= BLOCK_NUMBERS:
                blocks[-1].append(at)
                continue
        blocks.append([at])
    return [(np.array(block, dtype=np.intp), [everything[at] for at in block]) for block in blocks]
