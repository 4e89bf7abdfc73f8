"""Metropolis-Hastings over a hierarchy with inequalities (CD-A1), vectorised over chains; and the plain algorithm.

A state is the counts of the leaves; the nodes above follow from them, so that every state satisfies the sums. The
target is the density of the noisy nodes at that state, restricted to A nodes >= a: the law of the noise given the sums
and the inequalities, in the leaves as free variables. One step proposes to change one leaf by a normal number, or two
siblings by that and its negative (which leaves the nodes above alone), and is accepted with min(1, p(new) / p(old) [A
new >= a]). A sweep takes the first kind of step for every leaf in turn, and the second for disjoint pairs that take
turns too. Every step leaves the target as it is, and so does a sweep.

Conventions where the algorithm as printed leaves room: a chain starts at the nearest consistent tree to a draw of the
noisy nodes, raised to non-negative counts (the imaging baseline: private by itself); it releases its last state only;
burn-in is `sweeps`. The promise is that of the target: what a chain has not forgotten after `sweeps` is not covered, so
look at `chains` through `diagnostics`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from dpaudit.errors import DpauditError, UsageError
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy, HierarchyLaplace
from dpaudit_mechanisms.constrained.tree_masses import non_negative_gamma
from dpaudit_mechanisms.inputs import BoolArray, Count, FloatArray, fixed, positive, table

ROUNDING = 1e-9  # of a count, in scales and counts: sums of thousands of steps of 1e-16
STEPS = (2.5, 0.8)  # of proposals, in scales, sweep by sweep: far moves for 263 leaves, near ones for one or two


@dataclasses.dataclass(frozen=True, eq=False)
class Inequalities:
    """rows @ nodes >= bounds, of a tree's nodes: what a change of each leaf does to every row.

    Parameters
    ----------
    tree : Hierarchy
    rows : array_like of float, shape (inequalities, nodes)
    bounds : array_like of float, shape (inequalities,)
    """

    tree: Hierarchy
    rows: Any
    bounds: Any

    def __post_init__(self) -> None:
        rows = table("rows", self.rows, (None, self.tree.nodes))
        fixed(self, rows=rows, bounds=table("bounds", self.bounds, (len(rows),)))

    @classmethod
    def non_negative(cls, tree: Hierarchy) -> Self:
        """Every leaf is at least 0, and so every node."""
        return cls(tree, np.eye(tree.nodes)[-tree.leaves :], np.zeros(tree.leaves))

    def by_leaf(self) -> FloatArray:
        """Growth of each row with one leaf, shape (inequalities, leaves)."""
        return np.asarray(self.rows @ self.tree.sums)


class Chains:
    """Some chains of leaf counts with one target, all moved at once.

    Parameters
    ----------
    tree : Hierarchy
    truth : array_like of float, shape (nodes,)
        Where the noise is centred.
    scale : float
        Of the Laplace noise at every node.
    start : array_like of float, shape (chains, leaves)
        Feasible counts.
    inequalities : Inequalities, optional
    steps : sequence of float, optional
        Standard deviations of proposals, in scales of the noise; sweeps take them in turn.

    Raises
    ------
    UsageError
        If a start violates an inequality: the acceptance ratio would be 0 / 0.
    """

    def __init__(
        self, tree: Hierarchy, truth: Any, scale: float, start: Any, inequalities: Inequalities | None = None,
        steps: Sequence[float] = STEPS,
    ) -> None:  # fmt: skip
        self.tree, self.scale = tree, positive("scale", scale)
        self.steps = tuple(positive("steps", step) for step in steps)
        leaves = table("start", start, (None, tree.leaves))
        # Nodes first, so that one leaf's path is a few contiguous rows: (nodes, chains)
        self._noise = np.ascontiguousarray((tree.totals(leaves) - table("truth", truth, (tree.nodes,))).T) / scale
        self._truth = np.asarray(truth, dtype=float)
        self._growth, self._slack = np.zeros((0, tree.leaves)), np.zeros((0, len(leaves)))
        if inequalities is not None:
            self._growth = inequalities.by_leaf()
            self._slack = (inequalities.rows @ tree.totals(leaves).T - inequalities.bounds[:, None]) / scale
            if (self._slack < 0.0).any():
                raise UsageError(f"start must satisfy the inequalities, got a slack of {self._slack.min() * scale}.")
        above = np.asarray(tree.parents)[-tree.leaves :]
        self._siblings = [np.flatnonzero(above == node) for node in np.unique(above)]
        self._directions: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.accepted, self.proposed, self.sweeps = 0, 0, 0

    def sweep(self, rng: np.random.Generator) -> None:
        """A proposal for every leaf, and one for every pair of siblings of this turn, in every chain."""
        # Fixed by the number of the sweep, not drawn: chains with common random pairs would not be independent.
        turn = self.sweeps
        pairs = [
            (int(group[i]), int(group[k]))
            for group in self._siblings
            for i in range(len(group))
            if (k := (turn - i) % len(group)) > i
        ]
        moves = [(j, -1) for j in range(self.tree.leaves)] + pairs
        count = self._noise.shape[1]
        lengths = self.steps[turn % len(self.steps)] * rng.normal(size=(len(moves), count))
        thresholds = rng.standard_exponential((len(moves), count))  # -log of a uniform number
        for move, length, threshold in zip(moves, lengths, thresholds, strict=True):
            self._step(move, length, threshold)
        self.proposed += len(moves) * count
        self.sweeps += 1

    def _step(self, move: tuple[int, int], length: FloatArray, threshold: FloatArray) -> None:
        """Propose more of the first leaf, and less of the second if there is one, in every chain; accept or stay."""
        path, signs, rows, growth = self._direction(move)
        old = self._noise[path]
        new = old + signs * length
        accept = (np.abs(new) - np.abs(old)).sum(axis=0) <= threshold
        if len(rows):
            slack = self._slack[rows] + growth * length
            accept &= self.is_feasible(slack)
            self._slack[rows] = np.where(accept, slack, self._slack[rows])
        self._noise[path] = np.where(accept, new, old)
        self.accepted += int(accept.sum())

    def is_feasible(self, slack: FloatArray) -> BoolArray:
        """Tell whether all rows that a move changes stay satisfied, from slacks (rows, chains) to (chains,)."""
        return np.asarray((slack >= 0.0).all(axis=0))

    def _direction(self, move: tuple[int, int]) -> tuple[Any, ...]:
        """Changes of a move: nodes with signs, and inequalities with their growth; signs as columns."""
        if move not in self._directions:
            more, less = move
            both = (self.tree.sums, self._growth)
            columns = [effects[:, more] - (effects[:, less] if less >= 0 else 0.0) for effects in both]
            path, rows = (np.flatnonzero(column) for column in columns)
            self._directions[move] = (path, columns[0][path, None], rows, columns[1][rows, None])
        return self._directions[move]

    def states(self) -> FloatArray:
        """The nodes of every chain, shape (chains, nodes); sums are made anew from the leaves."""
        leaves = self._truth[-self.tree.leaves :] + self.scale * self._noise[-self.tree.leaves :].T
        return self.tree.totals(leaves)


@dataclasses.dataclass(frozen=True, eq=False)
class HierarchyMetropolis(HierarchyLaplace):
    """Algorithm 1 of Liu et al. (2023), arXiv:2303.00228: M_MH.

    Accept with min(1, p(new) q(old | new) / (p(old) q(new | old)) [A new >= a]).

    The paper's M_MH on a tree, with non-negative counts if wanted.

    With non-negativity the conditioning event has a probability that depends on the data, which costs a factor 1 +
    gamma with gamma in [0, 1] (CD-S7); the noise is then twice as large, so that the target keeps epsilon whatever
    gamma is.

    Parameters
    ----------
    epsilon, tree : as in `HierarchyLaplace`
    non_negative : bool, optional
        Condition on non-negative counts too; data must then be non-negative.
    sweeps : int, optional
        Steps of each chain before its state is released, each over all leaves; at least 1.

    Examples
    --------
    >>> mechanism = HierarchyMetropolis(1.0, Hierarchy.flat(2), non_negative=True)
    >>> bool((mechanism.sample([0.0, 3.0], 10, np.random.default_rng(1)) >= 0.0).all())
    True
    """

    non_negative: bool = False
    sweeps: Count = 50
    chains_of: ClassVar[type[Chains]] = Chains

    @property
    def scale(self) -> float:
        """levels / epsilon, twice that with non-negativity."""
        return (2.0 if self.non_negative else 1.0) * self.tree.levels / self.epsilon

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Loss of the law that the chains converge to, in nats: exact; with non-negativity a bound (gamma = 1)."""
        return (2.0 if self.non_negative else 1.0) * super().privacy_loss(x, x_prime)

    def gamma(self, x: Any, x_prime: Any) -> float:
        """Privacy loss that non-negativity adds to a pair, as a share of the noise's loss (CD-S7); else 0.

        For trees on which noise leaves all counts non-negative with a probability of at least 1e-11.
        """
        return non_negative_gamma(self.tree, x, x_prime, self.scale) if self.non_negative else 0.0

    def start(self, data: Any, size: int, rng: np.random.Generator) -> Chains:
        """Chains at their starts: noisy nodes, made consistent (and their leaves non-negative)."""
        truth = self.nodes(data)
        if self.non_negative and (truth < 0.0).any():
            raise UsageError(f"data must be non-negative, got {truth.min()}.")
        leaves = self.tree.image(self.noisy(data, size, rng))[:, -self.tree.leaves :]
        limits = Inequalities.non_negative(self.tree) if self.non_negative else None
        start = np.maximum(leaves, 0.0) if self.non_negative else leaves
        return self.chains_of(self.tree, truth, self.scale, start, limits)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, nodes): the last states of as many chains."""
        if size == 0:
            return np.empty((0, self.tree.nodes))
        chains = self.start(data, size, rng)
        for _ in range(self.sweeps):
            chains.sweep(rng)
        return self._released(chains)

    def _released(self, chains: Chains) -> FloatArray:
        """The states; slacks add up rounding of their own, and a count of -1e-15 would not be non-negative.

        Validity: what is below 0 by more than rounding is no state of the target, and is not clipped to look like one.
        """
        states = chains.states()
        if not self.non_negative:
            return states
        leaves = states[:, -self.tree.leaves :]
        if leaves.min(initial=0.0) < -ROUNDING * (self.scale + np.abs(leaves).max()):
            raise DpauditError(f"chains must keep counts non-negative, got {leaves.min()}.")
        return self.tree.totals(np.maximum(leaves, 0.0))

    def chains(self, data: Any, count: int, steps: int, rng: np.random.Generator) -> FloatArray:
        """The nodes of `count` chains after each of `steps` sweeps, for diagnostics: (count, steps, nodes)."""
        running = self.start(data, count, rng)
        found = np.empty((count, steps, self.tree.nodes))
        for i in range(steps):
            running.sweep(rng)
            found[:, i] = self._released(running)
        return found
