"""Metrics on finitely many points: from a matrix or a graph, with the axioms checked and named where they fail.

The axioms are those of DX-D2, on extended reals: infinity and zero off the diagonal are legal. A matrix that breaks the
triangle inequality has a least repair, its shortest-path closure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import TOLERANCE as TOLERANCE
from dpaudit.privacy.claims import FloatArray, number
from dpaudit.privacy.metrics import Metric, budget_matrix, budget_number, metric_name
from dpaudit.privacy.pairs import short_form


def check_metric(matrix: Any, ids: Sequence[Hashable] | None = None, tolerance: float = TOLERANCE) -> None:
    """Raise one error that names each violated axiom of a metric, with the points that violate it most.

    Parameters
    ----------
    matrix : array_like of float, shape (points, points)
        Budgets in nats; infinity and zero off the diagonal are legal.
    ids : sequence of hashable, optional
        Names of the points; 0, 1, ... by default.
    tolerance : float
        Relative slack of symmetry and of the triangle inequality, in [0, 1); 1e-9 by default.

    Notes
    -----
    Time grows as points^3 (seconds for 1000 points), memory as points^2.

    Examples
    --------
    >>> check_metric([[0, 1, 3], [1, 0, 1], [3, 1, 0]], ids=["a", "b", "c"])
    Traceback (most recent call last):
    ...
    dpaudit.errors.UsageError: metric violates the triangle inequality: d('a', 'c') = 3.0 > 2.0 = d('a', 'b') + \
d('b', 'c'). Use metric.closure() to repair it.
    """
    MatrixMetric(matrix, ids, tolerance=tolerance)


@dataclasses.dataclass(frozen=True, eq=False)
class MatrixMetric(Metric):
    """A metric on finitely many points, from the matrix of its budgets.

    Parameters
    ----------
    entries : array_like of float, shape (points, points)
        Budgets in nats; infinity and zero off the diagonal are legal. Copied.
    ids : sequence of hashable, optional
        The points, in the order of the rows; 0, 1, ... by default. Lists count as tuples.
    check_triangle : bool
        False leaves the triangle inequality unchecked, for `closure` to repair; the other axioms are always checked.
    label : str
        The name in reports.
    tolerance : float
        Relative slack of symmetry and of the triangle inequality, in [0, 1).

    Raises
    ------
    UsageError
        As `check_metric`; and at a call with a point that is not among the ids.

    Examples
    --------
    >>> metric = MatrixMetric([[0, 1, 3], [1, 0, 1], [3, 1, 0]], ids=["a", "b", "c"], check_triangle=False)
    >>> metric("a", "c"), metric.closure()("a", "c")
    (3.0, 2.0)
    """

    entries: Any
    ids: Sequence[Hashable] | None = None
    check_triangle: bool = True
    label: str = "matrix"
    tolerance: float = TOLERANCE

    def __post_init__(self) -> None:
        entries = _square(self.entries)
        ids = _point_ids(self.ids, len(entries))
        _raise_violations(entries, ids, self.tolerance, triangle=self.check_triangle)
        entries.setflags(write=False)
        object.__setattr__(self, "entries", entries)
        object.__setattr__(self, "ids", ids)
        object.__setattr__(self, "_rows", {point: row for row, point in enumerate(ids)})

    @classmethod
    def of(
        cls, metric: Any, points: Sequence[Any], ids: Sequence[Hashable] | None = None, check_triangle: bool = True
    ) -> MatrixMetric:
        """Another metric on finitely many points, named by `ids` or by themselves."""
        names = points if ids is None else ids
        return cls(budget_matrix(metric, points), tuple(names), check_triangle, label=metric_name(metric))

    @property
    def name(self) -> str:
        return self.label

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MatrixMetric):
            return NotImplemented
        return (self.ids, self.label) == (other.ids, other.label) and np.array_equal(self.entries, other.entries)

    def __hash__(self) -> int:
        return hash((self.ids, self.label, self.entries.tobytes()))

    def __call__(self, x: Any, x_prime: Any) -> float:
        return float(self.entries[self._row("x", x), self._row("x_prime", x_prime)])

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        rows = [self._row(f"points[{i}]", point) for i, point in enumerate(points)]
        return np.asarray(self.entries[np.ix_(rows, rows)])

    def closure(self) -> MatrixMetric:
        """The largest metric below the matrix: shortest paths, by Floyd and Warshall (points^3 steps).

        A mechanism keeps the matrix exactly when it keeps its closure (DX-L3), so repairing asks nothing new.
        """
        return dataclasses.replace(self, entries=shortest_paths(self.entries), check_triangle=True)

    def _row(self, name: str, point: Any) -> int:
        rows: dict[Hashable, int] = self.__dict__["_rows"]
        try:
            return rows[_as_key(point)]
        except (KeyError, TypeError):
            known = list(rows)
            shown = ", ".join(repr(point) for point in known[:5]) + (", ..." if len(known) > 5 else "")
            raise UsageError(f"{name} must be a point of the metric ({shown}), got {short_form(point)}.") from None


@dataclasses.dataclass(frozen=True)
class GraphMetric(Metric):
    """Shortest paths on a policy graph: the Blowfish graph of protected pairs (DX-D-Blow, DX-X7).

    Parameters
    ----------
    edges : sequence of (u, v) or (u, v, weight)
        Undirected; weights in [0, inf] nats. The lightest of parallel edges counts.
    epsilon : float
        Weight of the edges that carry none, in [0, inf].
    points : sequence of hashable
        Points that no edge mentions; infinitely far from all others.

    Examples
    --------
    >>> metric = GraphMetric([("Paris", "Lyon"), ("Lyon", "Nice", 0.5)], epsilon=1.0, points=["Tunis"])
    >>> metric("Paris", "Nice"), metric("Paris", "Tunis")
    (1.5, inf)
    """

    edges: Sequence[Any]
    epsilon: float = 1.0
    points: Sequence[Hashable] = ()
    label: ClassVar[str] = "graph"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", budget_number("epsilon", self.epsilon))
        edges = tuple(self._edge(position, edge) for position, edge in enumerate(self.edges))
        ends = [point for u, v, _ in edges for point in (u, v)]
        points = tuple(dict.fromkeys([*ends, *map(_as_key, self.points)]))
        if not points:
            raise UsageError("edges must join at least two points, got none.")
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "points", points)
        rows = {point: row for row, point in enumerate(points)}
        steps = np.full((len(points), len(points)), np.inf)
        np.fill_diagonal(steps, 0.0)
        for u, v, weight in edges:
            i, j = rows[u], rows[v]
            steps[i, j] = steps[j, i] = min(steps[i, j], weight)
        finite = MatrixMetric(shortest_paths(steps), points, check_triangle=False, label=self.name)
        object.__setattr__(self, "_finite", finite)

    @property
    def name(self) -> str:
        return f"{self.label}({len(self.points)} points, {len(self.edges)} edges)"

    def __call__(self, x: Any, x_prime: Any) -> float:
        return self.as_matrix()(x, x_prime)

    def matrix(self, points: Sequence[Any]) -> FloatArray:
        return self.as_matrix().matrix(points)

    def as_matrix(self) -> MatrixMetric:
        """The same metric as a `MatrixMetric` on all of its points."""
        finite: MatrixMetric = self.__dict__["_finite"]
        return finite

    def _edge(self, position: int, edge: Any) -> tuple[Hashable, Hashable, float]:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) not in (2, 3):
            raise UsageError(f"edges[{position}] must be (u, v) or (u, v, weight), got {short_form(edge)}.")
        u, v = _as_key(edge[0]), _as_key(edge[1])
        if u == v:
            raise UsageError(f"edges[{position}] must join two different points, got {u!r} twice.")
        weight = budget_number(f"weight of edges[{position}]", edge[2]) if len(edge) == 3 else self.epsilon
        return u, v, weight


@dataclasses.dataclass(frozen=True)
class TreeMetric(GraphMetric):
    """Path lengths in a tree that spans the domain, with equal or own edge weights (DX-X7).

    Parameters
    ----------
    edges, epsilon, points
        As for `GraphMetric`; the edges must form one tree over all points.

    Raises
    ------
    UsageError
        As for `GraphMetric`; and if there is a cycle or the edges do not connect all points.

    Examples
    --------
    >>> TreeMetric([("root", "left"), ("root", "right", 0.5)])("left", "right")
    1.5
    """

    label: ClassVar[str] = "tree"

    def __post_init__(self) -> None:
        from scipy.cluster.hierarchy import DisjointSet  # it takes long to import

        super().__post_init__()
        joined = DisjointSet(self.points)
        for position, (u, v, _) in enumerate(self.edges):
            if not joined.merge(u, v):
                raise UsageError(
                    f"edges must form a tree, got a cycle closed by ({u!r}, {v!r}) at position {position}."
                )
        first = self.points[0]
        for point in self.points:
            if not joined.connected(first, point):
                raise UsageError(f"edges must connect all points, got no path from {first!r} to {point!r}.")


def shortest_paths(steps: FloatArray) -> FloatArray:
    """Lengths of the shortest paths between all points, shape (points, points), by Floyd and Warshall.

    Parameters
    ----------
    steps : ndarray of float, shape (points, points)
        Non-negative lengths of single steps. A zero off the diagonal is a free step and infinity is no step at all
        (scipy's dense graphs would read the zero as no step).

    Examples
    --------
    >>> inf = float("inf")
    >>> shortest_paths(np.array([[0, 0, inf], [0, 0, 2], [inf, 2, 0]])).tolist()
    [[0.0, 0.0, 2.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0]]
    """
    result = np.array(steps, dtype=float)
    return _lowered(result, result)


def _square(matrix: Any) -> FloatArray:
    try:
        result = np.array(matrix, dtype=float)
    except (TypeError, ValueError):
        raise UsageError(f"matrix must be a square matrix of numbers, got {short_form(matrix)}.") from None
    if result.ndim != 2 or result.shape[0] != result.shape[1] or result.shape[0] == 0:
        raise UsageError(f"matrix must be square with at least one point, got shape {result.shape}.")
    return result


def _as_key(point: Any) -> Hashable:
    """A point as a dictionary key: lists and arrays as tuples, as JSON and numpy give them."""
    if isinstance(point, np.ndarray):
        point = point.tolist()
    return tuple(map(_as_key, point)) if isinstance(point, list | tuple) else point


def _point_ids(ids: Iterable[Any] | None, points: int) -> tuple[Hashable, ...]:
    result = tuple(range(points)) if ids is None else tuple(_as_key(point) for point in ids)
    if len(result) != points:
        raise UsageError(f"ids must be as many as points, got {len(result)} ids for {points} points.")
    seen: dict[Hashable, int] = {}
    for position, point in enumerate(result):
        try:
            first = seen.setdefault(point, position)
        except TypeError:
            raise UsageError(f"ids must be hashable, got {short_form(point)} at position {position}.") from None
        if first != position:
            raise UsageError(f"ids must be unique, got {point!r} at positions {first} and {position}.")
    return result


def _raise_violations(entries: FloatArray, ids: Sequence[Hashable], tolerance: float, *, triangle: bool) -> None:
    tolerance = number("tolerance", tolerance, "in [0, 1)", lambda value: 0.0 <= value < 1.0)

    def d(i: int, j: int) -> str:
        return f"d({ids[i]!r}, {ids[j]!r})"

    def value(i: int, j: int) -> str:
        return f"{d(i, j)} = {float(entries[i, j])!r}"

    def worst(excess: FloatArray) -> tuple[int, int] | None:
        i, j = np.unravel_index(int(np.argmax(excess)), excess.shape)
        return (int(i), int(j)) if excess[i, j] > 0.0 else None

    found = []
    if at := worst(np.isnan(entries).astype(float)):
        found.append(f"metric must be a number in [0, inf] for every two points, got {value(*at)}.")
    blank = np.where(np.eye(len(entries), dtype=bool), 0.0, np.inf)
    entries = np.where(np.isnan(entries), blank, entries)  # an unknown budget breaks no other axiom
    if at := worst(-entries):
        found.append(f"metric violates non-negativity: {value(*at)} < 0.")
    diagonal = np.abs(np.diag(np.diag(entries)))
    if at := worst(diagonal):
        found.append(f"metric violates d(x, x) = 0: {value(*at)}.")
    if at := worst(_excess(entries, entries.T, tolerance)):
        found.append(f"metric violates symmetry: {value(*at)} but {value(*at[::-1])}.")
    if triangle and (at := worst(_excess(entries, _lowered(np.full_like(entries, np.inf), entries), tolerance))):
        i, j = at
        k = int(np.argmin(entries[i] + entries[:, j]))
        legs = f"{d(i, k)} + {d(k, j)}"
        found.append(
            f"metric violates the triangle inequality: {d(i, j)} = {float(entries[i, j])!r} > "
            f"{float(entries[i, k] + entries[k, j])!r} = {legs}. Use metric.closure() to repair it."
        )
    if found:
        raise UsageError(" ".join(found))


def _excess(entries: FloatArray, bound: FloatArray, tolerance: float) -> FloatArray:
    """By how much each entry exceeds its bound; 0 where it keeps it within a relative tolerance."""
    is_over = (entries > bound) & ~(entries * (1.0 - tolerance) <= bound)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        gap = np.where(np.isinf(entries), np.inf, entries - bound)
    return np.where(is_over, gap, 0.0)


def _lowered(result: FloatArray, steps: FloatArray) -> FloatArray:
    """`result`, lowered in place to the least d(i, k) + d(k, j) of the steps over all k, one k after the other."""
    through = np.empty_like(result)
    with np.errstate(invalid="ignore"):  # -inf + inf in a matrix that is no metric anyway
        for k in range(len(result)):
            np.add.outer(steps[:, k], steps[k], out=through)
            np.minimum(result, through, out=result)
    return result
