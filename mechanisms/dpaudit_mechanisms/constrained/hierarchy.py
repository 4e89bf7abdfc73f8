"""Counts in a tree: nodes that are the sums of their children, and three ways to keep them so under noise.

The data are the counts of the leaves; every mechanism releases all nodes, root first. A record counts in its leaf and
in every node above it, so that adding or removing one changes as many nodes as the tree has levels, by 1 each: that is
the l1 sensitivity, and the scale of the Laplace noise at each node is levels / epsilon. True counts satisfy the sums.

* `HierarchyConditioned`: noise given that the noisy nodes satisfy the sums; exact draws for two and three levels.
* `HierarchyImaged`: the nearest consistent tree in L2, one matrix.
* `TopDown`: the root's noisy count is kept, and from there on each node's children are moved to the nearest numbers
  (non-negative ones, if wanted) that sum to it.

Exact draws. Given the sums S_b of the middle nodes, the leaves under each are Laplace variables given their sum, and
the S_b have a density proportional to exp(-|sum of all S_b| - sum of |S_b|) prod of q_b(S_b), q_b the density of a sum
of as many Laplace variables as b has leaves (scale 1). Laplace variables are accepted with the probabilities
q_b(S_b) / q_b(0), and all of them together with exp(-|sum|).
"""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dpaudit_mechanisms.accuracy import deviations, squared_error, sum_of_errors
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.laplace_sums import draw_given_sum, relative_density
from dpaudit_mechanisms.constrained.polyhedron import project_onto_simplex
from dpaudit_mechanisms.inputs import FloatArray, fixed, output_batch, table, whole_number
from dpaudit_mechanisms.protocol import Pair, UsageError, UtilityBound
from dpaudit_mechanisms.pure import Pure

Indices = np.ndarray[Any, np.dtype[np.intp]]


@dataclasses.dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of which all leaves are on the last level.

    Parameters
    ----------
    parents : sequence of int
        The parent of each node, -1 for the root, which comes first; levels follow each other.

    Raises
    ------
    UsageError
        If this is no such tree, or has one node only.

    Examples
    --------
    >>> tree = Hierarchy.of_sizes([2, 3])  # a root, two nodes, five leaves
    >>> tree.levels, len(tree.parents), tree.totals([1, 2, 3, 4, 5]).tolist()[:3]
    (3, 8, [15.0, 3.0, 12.0])
    """

    parents: Sequence[int]
    depth: Indices = dataclasses.field(init=False)  # (nodes,): 0 for the root
    sums: FloatArray = dataclasses.field(init=False)  # (nodes, leaves) of 0 and 1: nodes = sums @ leaves

    def __post_init__(self) -> None:
        given = table("parents", self.parents, (None,))
        if (given % 1.0 != 0.0).any():
            raise UsageError(f"parents must be whole numbers, got {given.tolist()}.")
        if len(given) < 2 or given[0] != -1 or (given[1:] < 0).any():
            raise UsageError(f"parents must be -1 for the first node only, got {self.parents!r}.")
        if (given >= np.arange(len(given))).any():
            node = int(np.argmax(given >= np.arange(len(given))))
            raise UsageError(f"parents must come before their children, got {given[node]:g} for node {node}.")
        parents = given.astype(int)
        depth = np.zeros(len(parents), dtype=int)
        for node in range(1, len(parents)):
            depth[node] = depth[parents[node]] + 1
        leaves = np.flatnonzero(~np.isin(np.arange(len(parents)), parents))
        if (np.diff(depth) < 0).any() or (depth[leaves] != depth.max()).any():
            raise UsageError("parents must put all leaves on the last level, got some higher up.")
        sums = np.zeros((len(parents), len(leaves)))
        sums[leaves, np.arange(len(leaves))] = 1.0
        for node in range(len(parents) - 1, 0, -1):
            sums[parents[node]] += sums[node]
        fixed(self, parents=tuple(parents.tolist()), depth=depth, sums=sums)

    @classmethod
    def of_sizes(cls, sizes: Sequence[int]) -> Self:
        """A root, one node for each size, and as many leaves under it: three levels."""
        counts = [whole_number(f"sizes[{i}]", size, 1) for i, size in enumerate(sizes)]
        middle = [-1] + [0] * len(counts)
        return cls([*middle, *np.repeat(np.arange(1, len(counts) + 1), counts).tolist()])

    @classmethod
    def flat(cls, leaves: int) -> Self:
        """A root and its leaves: two levels."""
        return cls([-1, *[0] * whole_number("leaves", leaves, 1)])

    @property
    def levels(self) -> int:
        """Number of levels, root included."""
        return int(self.depth.max()) + 1

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.parents)

    @property
    def leaves(self) -> int:
        """Number of leaves."""
        return int(self.sums.shape[1])

    def children(self, node: int) -> Indices:
        """The children of a node, as positions."""
        return np.flatnonzero(np.asarray(self.parents) == node)

    @property
    def sizes(self) -> list[int]:
        """Leaves under each node of the level above the leaves."""
        return [int(self.sums[node].sum()) for node in np.flatnonzero(self.depth == self.levels - 2)]

    def totals(self, leaf_counts: Any) -> FloatArray:
        """All nodes from the leaves, shape (nodes,), or (size, nodes) from (size, leaves)."""
        return np.asarray(np.asarray(leaf_counts, dtype=float) @ self.sums.T)

    def equalities(self) -> Affine:
        """Node - sum of its children = 0 for every node with children: an affine set of `leaves` free variables."""
        inner = np.flatnonzero(self.depth < self.levels - 1)
        rows = np.zeros((len(inner), self.nodes))
        for i, node in enumerate(inner):
            rows[i, node] = 1.0
            rows[i, self.children(int(node))] = -1.0
        return Affine(rows)

    def image(self, points: Any) -> FloatArray:
        """The nearest consistent tree in L2 for each point, shape (size, nodes)."""
        batch = output_batch(points, (self.nodes,))
        return batch @ self._projector()

    def _projector(self) -> FloatArray:
        return np.asarray(self.sums @ np.linalg.solve(self.sums.T @ self.sums, self.sums.T))

    def top_down(self, points: Any, non_negative: bool = False) -> FloatArray:
        """Level by level from the root: children are moved to the nearest numbers that sum to their parent.

        With `non_negative` the root is raised to 0 where it is below, and children are non-negative.
        """
        released = output_batch(points, (self.nodes,)).copy()
        if non_negative:
            released[:, 0] = np.maximum(released[:, 0], 0.0)
        for node in range(self.nodes):
            below = self.children(node)
            if not below.size:
                break
            total = released[:, node]
            if non_negative:
                released[:, below] = project_onto_simplex(released[:, below], total)
            else:
                released[:, below] += ((total - released[:, below].sum(axis=1)) / len(below))[:, None]
        return released


@dataclasses.dataclass(frozen=True, eq=False)
class HierarchyLaplace(Pure):
    """Base of the mechanisms on a tree: Laplace noise of scale levels / epsilon at every node.

    Parameters
    ----------
    epsilon : float
        In nats, in (0, inf), for adding or removing one record.
    tree : Hierarchy
    """

    tree: Hierarchy

    @property
    def scale(self) -> float:
        """Scale of the noise at each node: a record counts once on every level."""
        return self.tree.levels / self.epsilon

    def nodes(self, data: Any) -> FloatArray:
        """The true counts of all nodes, shape (nodes,), from those of the leaves."""
        return self.tree.totals(table("data", data, (self.tree.leaves,), finite=True))

    def noisy(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """All nodes with independent noise, inconsistent, shape (size, nodes)."""
        truth = self.nodes(data)
        return truth + rng.laplace(scale=self.scale, size=(size, len(truth)))

    def pairs(self) -> list[Pair]:
        """One record more in the first leaf, and one less, from one record in every leaf."""
        ones, first = np.ones(self.tree.leaves), np.eye(self.tree.leaves)[0]
        return [Pair(ones, ones + first), Pair(ones, ones - first)]

    def utility_bounds(self) -> list[UtilityBound]:
        """The sum of the errors of all nodes: at most scale for each leaf.

        For noise given the sums, whose density is proportional to e^(-r) with r = |errors|_1 / scale, in d leaves: r
        has the law Gamma(d). Limits that keep what lies between the truth and an output (non-negative counts, say) cut
        off large r only. On whole numbers beta^d Z(beta), with Z the sum of e^(-beta |errors|_1), does not fall in
        beta: a product of Laplace functions is a mixture of centred normal ones, whose lattice sums have that. So
        E r <= d.
        """
        return [sum_of_errors(self.nodes, self.tree.leaves * self.scale)]

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Loss of the noisy nodes in nats: l1 distance of all nodes over the scale.

        Exact for `HierarchyConditioned`; an upper bound of what is made of the noisy nodes by post-processing.
        """
        return float(np.abs(self.nodes(x) - self.nodes(x_prime)).sum() / self.scale)


@dataclasses.dataclass(frozen=True, eq=False)
class HierarchyConditioned(HierarchyLaplace):
    """Lemma 3.3 of Liu et al. (2023), arXiv:2303.00228, for the sums of a tree.

    Noise at every node given that the noisy nodes satisfy the sums: exact draws, for two or three levels.

    The loss of a pair is that of the noise (CD-L3.3, both answers being consistent). Parameters as in
    `HierarchyLaplace`.

    Examples
    --------
    >>> mechanism = HierarchyConditioned(1.0, Hierarchy.of_sizes([2, 2]))
    >>> draw = mechanism.sample([5.0, 1.0, 0.0, 2.0], 1, np.random.default_rng(1))[0]
    >>> bool(abs(draw[0] - draw[3:].sum()) < 1e-9)
    True
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tree.levels not in (2, 3):
            raise UsageError(f"tree must have two or three levels, got {self.tree.levels}.")

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, nodes), consistent up to rounding."""
        counts = table("data", data, (self.tree.leaves,))
        self.nodes(data)  # refuses what is no table of counts
        sizes = self.tree.sizes
        sums = _middle_sums(sizes, size, rng, with_root=self.tree.levels == 3)  # (size, middle nodes)
        noise = [draw_given_sum(count, sums[:, b], rng) for b, count in enumerate(sizes)]
        return self.tree.totals(counts + self.scale * np.hstack(noise))

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density in terms of the leaves, shape (size,), up to one constant for all inputs."""
        truth = self.nodes(data)
        batch = output_batch(outputs, truth.shape)
        finite = np.isfinite(batch).all(axis=1)
        known = np.where(finite[:, None], batch, truth)
        room = 1e-9 * (1.0 + np.abs(known).sum(axis=1))
        inside = finite & (np.abs(known - self.tree.totals(known[:, -self.tree.leaves :])).max(axis=1) <= room)
        return np.where(inside, -np.abs(known - truth).sum(axis=1) / self.scale, -np.inf)


@dataclasses.dataclass(frozen=True, eq=False)
class HierarchyImaged(HierarchyLaplace):
    """Equation 5 of Liu et al. (2023), arXiv:2303.00228, for the sums of a tree.

    Noise at every node, moved to the nearest consistent tree; parameters as in `HierarchyLaplace`.
    """

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, nodes)."""
        return self.tree.image(self.noisy(data, size, rng))

    def utility_bounds(self) -> list[UtilityBound]:
        """The squared error of all nodes, 2 scale^2 for each leaf: the projection has so many dimensions. Equality."""
        return [squared_error(self.nodes, 2.0 * self.scale**2 * self.tree.leaves, "CD-P4.1")]


@dataclasses.dataclass(frozen=True, eq=False)
class TopDown(HierarchyLaplace):
    """The baseline TopDown of tables 2 and 3 of Liu et al. (2023), arXiv:2303.00228.

    Noise at every node, made consistent level by level from the root; parameters as in `HierarchyLaplace`.

    Parameters
    ----------
    non_negative : bool, optional
        Whether all released counts are to be non-negative as well.
    """

    non_negative: bool = False

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, nodes)."""
        return self.tree.top_down(self.noisy(data, size, rng), self.non_negative)

    def utility_bounds(self) -> list[UtilityBound]:
        """The squared error of all nodes, with equality; with `non_negative` the l2 errors of all families added up.

        k children get the mean of their noise replaced by a k-th of their parent's error: their squared errors add up
        to 2 (k - 1) scale^2 and a k-th of the parent's. A projection onto non-negative numbers of another sum moves no
        further than noise and sum do: the children's l2 error is at most that of their noise and |parent's error|,
        where no true count is negative.
        """
        v, parents = 2.0 * self.scale**2, [node for node in range(self.tree.nodes) if self.tree.children(node).size]
        if not self.non_negative:
            squares = np.full(self.tree.nodes, v)
            for node in parents:
                below = self.tree.children(node)
                squares[below] = v * (1.0 - 1.0 / len(below)) + squares[node] / len(below) ** 2
            return [squared_error(self.nodes, float(squares.sum()))]
        sizes = {node: self.tree.children(node) for node in parents}
        of_level, total = self.scale, 0.0  # of one level the l2 errors of its families, added up; the root's is scale
        for level in range(self.tree.levels - 1):
            above = [node for node in parents if self.tree.depth[node] == level]
            most = max(len(sizes[self.tree.parents[node]]) for node in above) if level else 1
            of_level = sum(math.sqrt(v * len(sizes[node])) for node in above) + math.sqrt(most) * of_level
            total += of_level

        def errors(data: Any, outputs: Any) -> FloatArray:
            gaps = deviations(self.nodes, data, outputs)
            return np.asarray(sum(np.linalg.norm(gaps[:, below], axis=1) for below in sizes.values()))

        return [UtilityBound("errors of families", errors, total)]


def _middle_sums(sizes: Sequence[int], size: int, rng: np.random.Generator, with_root: bool) -> FloatArray:
    """Exact draws of the sums of noise under each middle node, at scale 1, shape (size, middle nodes).

    Without a root above them (two levels) there is one middle node, which is the root itself.
    """
    found: list[FloatArray] = []
    missing = size
    while missing > 0:
        batch = max(64, 4 * missing if with_root else missing)
        sums = np.column_stack([_tilted(count, batch, rng) for count in sizes])
        if with_root:
            sums = sums[rng.standard_exponential(batch) >= np.abs(sums.sum(axis=1))]
        found.append(sums[:missing])
        missing -= len(found[-1])
    return np.concatenate(found) if found else np.empty((0, len(sizes)))


def _tilted(count: int, size: int, rng: np.random.Generator) -> FloatArray:
    """Draws with density proportional to e^-|s| times that of a sum of `count` Laplace variables, shape (size,)."""
    found = np.empty(size)
    waiting = np.arange(size)
    while waiting.size:
        proposals = rng.laplace(size=waiting.size)
        accepted = rng.random(waiting.size) < relative_density(count, proposals)
        found[waiting[accepted]] = proposals[accepted]
        waiting = waiting[~accepted]
    return found


def level_errors(tree: Hierarchy, truth: Any, released: Any) -> FloatArray:
    """Sum of |error| over the nodes of each level, shape (size, levels); the paper divides it by all nodes."""
    gaps = np.abs(output_batch(released, (tree.nodes,)) - np.asarray(truth, dtype=float))
    return np.stack([gaps[:, tree.depth == level].sum(axis=1) for level in range(tree.levels)], axis=1)
