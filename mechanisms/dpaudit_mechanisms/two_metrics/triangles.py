"""Triangle counts of all graphs with n nodes under edge privacy: isomorphism classes as datasets (UP-A1, UP-E1).

A graph on n nodes is a number: bit e is edge e of `edges(n)`. A class is the set of all relabellings of a graph. The
distance of two classes is the least number of edges to toggle, one at a time, that leads from one to the other: the
least size of E(g) xor E(h) over all relabellings h of the second, as a toggle commutes with relabelling.

`class_of` is a table over all 2^(n (n - 1) / 2) graphs; it is complete exactly if the listed graphs are one of every
class, and this is checked. n is at most 7 (2^21 graphs, 1,044 classes).
"""

import dataclasses
import functools
import itertools

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from dpaudit.errors import UsageError
from dpaudit_mechanisms.inputs import BoolArray, FloatArray, IntArray, NDArray, fixed, installed, table, whole_number
from dpaudit_mechanisms.two_metrics.spaces import FiniteSpaces

MAX_NODES = 7  # networkx's atlas, and the table of all graphs, end here


def edges(nodes: int) -> list[tuple[int, int]]:
    """All pairs of nodes (i, j), i < j: bit e of a graph is the e-th of them."""
    return list(itertools.combinations(range(nodes), 2))


def atlas(nodes: int) -> IntArray:
    """One graph of each class in the order of networkx's atlas (by edges, then degrees), shape (classes,).

    Raises
    ------
    UsageError
        If `nodes` is not in 1..7, or networkx is not installed.
    """
    count = whole_number("nodes", nodes, 1)
    if count > MAX_NODES:
        raise UsageError(f"nodes must be at most {MAX_NODES}, got {count}.")
    place = {pair: e for e, pair in enumerate(edges(count))}
    codes = [
        sum(1 << place[min(i, j), max(i, j)] for i, j in graph.edges())
        for graph in installed("networkx", "graphs").graph_atlas_g()
        if graph.number_of_nodes() == count
    ]
    return np.array(codes, dtype=np.int64)


@dataclasses.dataclass(frozen=True, eq=False)
class GraphClasses:
    """Isomorphism classes of graphs with n nodes, one graph each.

    Parameters
    ----------
    nodes : int
        n, in 1..7.
    codes : array_like of int, shape (classes,), optional
        One graph of every class, in the order of the datasets; networkx's atlas by default.

    Raises
    ------
    UsageError
        If two graphs are of one class, or a class has none.

    Examples
    --------
    >>> classes = GraphClasses(3, codes=[0, 1, 3, 7])
    >>> classes.triangles.tolist(), classes.distances[0].tolist()
    ([0, 0, 0, 1], [0.0, 1.0, 2.0, 3.0])
    """

    nodes: int
    codes: IntArray | None = dataclasses.field(default=None, repr=False)

    def __post_init__(self) -> None:
        nodes = whole_number("nodes", self.nodes, 1)
        if nodes > MAX_NODES:
            raise UsageError(f"nodes must be at most {MAX_NODES}, got {nodes}.")
        given = table("codes", atlas(nodes) if self.codes is None else self.codes, (None,))
        top = 2 ** len(edges(nodes))
        if not ((given >= 0.0) & (given < top) & (given % 1.0 == 0.0)).all():
            raise UsageError(f"codes must be integers from 0 to {top - 1}, got {given.tolist()}.")
        fixed(self, codes=given.astype(np.int64))
        if self.class_of.min() < 0:
            raise UsageError(f"codes must have a graph of every class, got none like {int(np.argmin(self.class_of))}.")

    @functools.cached_property
    def bits(self) -> BoolArray:
        """Tell whether each graph has each edge, shape (classes, edges)."""
        return (np.asarray(self.codes)[:, None] >> np.arange(len(edges(self.nodes))) & 1).astype(bool)

    @functools.cached_property
    def class_of(self) -> NDArray[np.int32]:
        """The class of every graph with n nodes, shape (2 ** edges,); -1 where none is listed."""
        listed, place = edges(self.nodes), {pair: e for e, pair in enumerate(edges(self.nodes))}
        # Where a relabelling sends edge e: a graph's relabelled code is a sum of powers of two, exact in doubles.
        orders = np.array(list(itertools.permutations(range(self.nodes))))
        images = np.zeros((len(listed), len(orders)))
        lookup = np.zeros((self.nodes, self.nodes))
        for (i, j), e in place.items():
            lookup[i, j] = lookup[j, i] = e
        for e, (i, j) in enumerate(listed):
            images[e] = 2.0 ** lookup[orders[:, i], orders[:, j]]
        found = np.full(1 << len(listed), -1, dtype=np.int32)
        for k, bits in enumerate(self.bits):
            orbit = images[bits].sum(axis=0).astype(np.int64)
            if (found[orbit] >= 0).any():
                raise UsageError(f"codes must be of different classes, got those of {found[orbit[0]]} and {k} alike.")
            found[orbit] = k
        return found

    @functools.cached_property
    def toggled(self) -> IntArray:
        """The class after toggling each edge, shape (classes, edges)."""
        powers = 1 << np.arange(len(edges(self.nodes)))
        return self.class_of[np.asarray(self.codes)[:, None] ^ powers].astype(np.int64)

    @functools.cached_property
    def distances(self) -> FloatArray:
        """Least number of toggles between classes, shape (classes, classes): breadth-first search over toggles."""
        count = len(self.bits)
        if not self.toggled.size:
            return np.zeros((count, count))
        rows = np.repeat(np.arange(count), self.toggled.shape[1])
        graph = sparse.csr_array((np.ones(rows.size), (rows, self.toggled.ravel())), shape=(count, count))
        return np.asarray(csgraph.shortest_path(graph, unweighted=True, directed=False))

    @functools.cached_property
    def adjacency(self) -> IntArray:
        """Adjacency matrices, shape (classes, nodes, nodes)."""
        matrices = np.zeros((len(self.bits), self.nodes, self.nodes), dtype=np.int64)
        for e, (i, j) in enumerate(edges(self.nodes)):
            matrices[:, i, j] = matrices[:, j, i] = self.bits[:, e]
        return matrices

    @functools.cached_property
    def triangles(self) -> IntArray:
        """Number of triangles of each graph, shape (classes,): trace(A^3) / 6."""
        a = self.adjacency
        return np.einsum("kij,kji->k", a @ a, a) // 6

    def local_sensitivities(self, distance: int) -> IntArray:
        """Largest change of the triangle count by one toggle, after `distance` toggles, in closed form, shape
        (classes,).

        max over i < j of min(a_ij + floor((t + min(t, b_ij)) / 2), n - 2), with a_ij the common neighbours of i and j,
        b_ij the nodes joined to exactly one of them, t the distance: the form that the ladder mechanism's paper uses.
        It equals Delta_t of `FiniteSpaces` for every class (tests). Fewer than two nodes have nothing to toggle: 0.
        """
        if self.nodes < 2:
            return np.zeros(len(self.bits), dtype=np.int64)
        common = self.adjacency @ self.adjacency  # (classes, nodes, nodes)
        degrees = self.adjacency.sum(axis=2)
        either = degrees[:, :, None] + degrees[:, None] - 2 * common - 2 * self.adjacency
        raised = common + (distance + np.minimum(distance, either)) // 2
        i, j = np.triu_indices(self.nodes, 1)
        return np.minimum(raised[:, i, j], self.nodes - 2).max(axis=1)

    def spaces(self) -> FiniteSpaces:
        """The triangle count between classes and counts: `values` are positions in `counts()`, d is |r - r'|."""
        counts, positions = np.unique(self.triangles, return_inverse=True)
        differences = np.abs(np.subtract.outer(counts, counts)).astype(float)
        # Least numbers of steps are a metric, and so is |r - r'|: no check, which would take longer than all the rest.
        return FiniteSpaces(self.distances, positions, differences, check_triangle=False)

    def counts(self) -> IntArray:
        """The triangle counts that occur, increasing: the values R."""
        return np.unique(self.triangles)


def algorithm_1(classes: GraphClasses) -> BoolArray:
    """Algorithm 1 of Wu, Xia and He (2017), arXiv:1702.02721: the sets I[k, i], all at once.

    Shape (edges + 1, classes, counts).
    I[k, i] has the counts of classes at distance k of class i that no nearer class has. One minimum a count, over the
    classes that have it, replaces the loops over k, j and s.
    """
    counts, positions = np.unique(classes.triangles, return_inverse=True)
    nearest = np.stack([classes.distances[:, positions == r].min(axis=1) for r in range(len(counts))], axis=1)
    return nearest == np.arange(len(edges(classes.nodes)) + 1)[:, None, None]
