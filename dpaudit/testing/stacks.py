"""Stacks: the bets of all epochs of a game that are meant for one parameter value, for the search for the bound.

The bound asks for the wealth of every epoch against several parameter values. Epochs have few partitions of very
different sizes: partitions of similar ones, whatever their epoch, are a *block* whose wealth is computed at once.

Most epochs have few of the draws, and little say in what is rejected, and cost as much as the others. So the late ones
are asked first (a *group*), and the others only where the answer hangs on them: wealth decreases in the value, so what
an epoch had at other values limits what it has here. The same holds of bets meant for different values: those that have
lost more than the others can have won are not asked what they have left.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.paths import LEVELS, Emissions, PathPriors
from dpaudit.privacy.claims import FloatArray
from dpaudit.testing.betting import Bets, Book, Components, evidence_of, gains, log_sum, weights_of

BLOCK_NUMBERS = 1 << 16  # numbers of a block's emissions: they stay in the processor's cache
GROUPS = (0.85, 0.98)  # of the counted draws, that the first groups of epochs hold
NEARLY = 50.0  # nats over the threshold, below which a value is near the greatest one that is rejected
LEAST_FILL = 0.6  # of a block's cells, that each of its partitions has of its own

Lines = Callable[[float, Components], tuple[FloatArray, FloatArray]]


@dataclasses.dataclass(frozen=True)
class Block:
    """Some partitions of a stack: their positions in it, the `stakes_of` their live counts, and bets on them."""

    positions: NDArray[np.intp]
    stakes: FloatArray
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
        if self.size == 0:
            return np.zeros(0)
        of_partitions = np.empty(self.size)
        for block in self.blocks:
            bets = block.bets
            line = gains(bets.components, *lines(value, bets.components))
            of_partitions[block.positions] = log_sum(bets.log_wealth_of(block.stakes, line) + bets.log_weights, axis=1)
        return with_idle(np.logaddexp.reduceat(of_partitions, self.first), self.idle)


NO_BETS = Stack((), np.empty(0, dtype=np.intp), np.empty(0), 0)


@dataclasses.dataclass
class Group:
    """Some epochs: their stacks, one for each value that bets are meant for, and their log wealth where it is known."""

    stacks: Sequence[Stack]
    known: Sequence[dict[float, float]]  # of each stack

    @classmethod
    def of(cls, stacks: Sequence[Stack], known: Sequence[dict[float, float]] = ()) -> Group:
        """One of which this is known of the first stacks, by the value."""
        return cls(stacks, [*known, *({} for _ in stacks[len(known) :])])

    def with_stacks(self, more: Sequence[Stack]) -> Group:
        """The same epochs with more stacks behind these, of which nothing is known yet."""
        return Group([*self.stacks, *more], [*self.known, *({} for _ in more)])

    def log_wealth(self, k: int, value: float, lines: Lines) -> float:
        """Log wealth of all its epochs against a value, of one stack: with what is idle."""
        if value not in self.known[k]:
            self.known[k][value] = float(self.stacks[k].log_wealth(value, lines).sum())
        return self.known[k][value]

    def limits(self, k: int, value: float) -> tuple[float, float]:
        """Log wealth that a stack has at least, and at most, by what it has at greater and smaller values."""
        known = self.known[k]
        above = min((other for other in known if other >= value), default=None)
        below = max((other for other in known if other <= value), default=None)
        return -math.inf if above is None else known[above], math.inf if below is None else known[below]


@dataclasses.dataclass(frozen=True)
class Reckoning:
    """Which parameter values the wealth of all groups together rejects, and how clearly.

    `log_shares` (shape (stacks,), of a value) are the logs of what is bet with each stack at first.
    """

    groups: Sequence[Group]
    log_shares: Callable[[float], FloatArray]
    threshold: float
    lines: Lines

    def excess(self, value: float) -> float:
        """Log wealth over the threshold: a value with 0 or more is rejected.

        Its sign is exact. Its size is nearer to 0 where limits alone told the sign.
        """
        shares = self.log_shares(value).tolist()
        limits = [[group.limits(k, value) for k in range(len(shares))] for group in self.groups]
        least, most = ([[both[side] for both in of_group] for of_group in limits] for side in (0, 1))
        # The bets first that may have most.
        for k in sorted(range(len(shares)), key=lambda k: -_of_stack(shares, most, k)):
            for place, group in enumerate(self.groups):
                at_least, at_most = (_total(shares, logs) - self.threshold for logs in (least, most))
                # Where it is nearly 0, what all have will limit what they have at the next values.
                if at_most < 0.0 or (at_least >= 0.0 and (at_least > NEARLY or at_most < math.inf)):
                    return at_most if at_most < 0.0 else at_least
                least[place][k] = most[place][k] = group.log_wealth(k, value, self.lines)
        return _total(shares, least) - self.threshold


def _of_stack(shares: Sequence[float], logs: Sequence[Sequence[float]], k: int) -> float:
    """Log wealth of one stack, by that of each group, [group][stack]; what has lost all has lost all."""
    parts = [shares[k], *(of_group[k] for of_group in logs)]
    return -math.inf if -math.inf in parts else sum(parts)


def _total(shares: Sequence[float], logs: Sequence[Sequence[float]]) -> float:
    """Log wealth of all stacks together."""
    parts = [_of_stack(shares, logs, k) for k in range(len(shares))]
    top = max(parts)
    if math.isinf(top):
        return top
    return top + math.log(sum(math.exp(part - top) for part in parts))


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
    stakes: Sequence[FloatArray], bets: Sequence[Bets], sizes: Sequence[Sequence[int]], idle: FloatArray
) -> Stack:
    """The stack of bets that were made: `stakes_of` the live counts, bets and list of the partitions' cells an epoch.

    Of the cells, those of the chain are asked for.
    """
    paths = PathPriors.concatenated([bet.paths for bet in bets])
    blocks = []
    for positions, members in _placed(sizes, [bet.components.up.shape[1] for bet in bets]):
        first, _, largest = members[0]
        model = Emissions.blank(largest, len(members), bets[first].components.up.shape[1])
        for at, (epoch, k, size) in enumerate(members):
            model.put(at, bets[epoch].model, k, size)
        own = Bets(
            Components.stacked([bets[epoch].components for epoch, _, _ in members]),
            model,
            np.stack([bets[epoch].evidence[k] for epoch, k, _ in members]),
            paths.only(positions),
            np.stack([bets[epoch].log_weights[k] for epoch, k, _ in members]),
        )
        blocks.append(Block(positions, _stakes(stakes, members), own))
    return _stack(blocks, sizes, idle)


def stack_of_fits(
    stakes: Sequence[FloatArray],
    books: Sequence[Book],
    components: Sequence[Components],
    sizes: Sequence[Sequence[int]],
    idle: FloatArray,
) -> Stack:
    """The stack of bets that are fitted now, on the training draws of each epoch: its components (1, components)."""
    blocks = []
    paths = PathPriors.concatenated([book.paths for book in books])
    count = components[0].up.shape[1]
    evidence = np.empty((len(paths), count))
    for positions, members in _placed(sizes, [count] * len(books)):
        train = np.zeros((2, members[0][2], len(members)))
        for at, (epoch, k, size) in enumerate(members):
            train[:, :size, at] = books[epoch].train[:, :size, k]
        own, of_these = Components.stacked([components[epoch] for epoch, _, _ in members]), paths.only(positions)
        model, evidence[positions] = evidence_of(train, own, of_these)
        bets = Bets(own, model, evidence[positions], of_these, evidence[positions])
        blocks.append(Block(positions, _stakes(stakes, members), bets))
    weights = weights_of(evidence, [len(own) for own in sizes])
    weighed = [
        dataclasses.replace(block, bets=dataclasses.replace(block.bets, log_weights=weights[block.positions]))
        for block in blocks
    ]
    return _stack(weighed, sizes, idle)


def _stakes(stakes: Sequence[FloatArray], members: Sequence[tuple[int, int, int]]) -> FloatArray:
    """Those of the partitions of a block: (epoch, partition, cells) of each."""
    together = np.zeros((len(members), members[0][2], 2, 4))
    for at, (epoch, k, size) in enumerate(members):
        together[at, :size] = stakes[epoch][k, :size]
    return together


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
