"""Records: what a list of rows holds as a table, as a path of points, and as the edges of a graph.

Rows are mappings with the same keys, or sequences of the same length. In an order, a repetition or a distance between
rows there may be what no row tells alone: records sorted by a field, a polygon that is closed, steps on a grid, a
triangle of edges.

Validity: a fixed function of one output (`dpaudit.reading.expanded`).
"""

from __future__ import annotations

import collections
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.reading.log_ratios import DECIMALS
from dpaudit.reading.outcomes import canonical, plain

MOST_FIELDS = 8  # of a row
MOST_ROWS = 256  # of a list, that are read by field
DIMENSIONS = 2, 3  # of a point
ENORMOUS = 1e150  # numbers from here on are not added up, nor taken for coordinates


def of_records(rows: Sequence[Any]) -> dict[str, Any] | None:
    """What rows hold together; None where they are no rows of one form, or fewer than two.

    Parameters
    ----------
    rows : sequence
        Plain data; the first `MOST_ROWS` are looked at.

    Returns
    -------
    dict or None
        Under "fields" each field as a column: its numbers, how often one is less than the one before, and how many
        repeat another. Of points "steps" and whether the path is "closed"; of pairs of names or integers "edges".

    Examples
    --------
    >>> of_records([{"age": 60}, {"age": 45}, {"age": 45}])["fields"]["age"]
    {'falls': 1, 'rises': 0, 'repeated': 1, 'sum': 150.0, 'smallest': 45, 'largest': 60}
    >>> of_records([(0.0, 0.0), (3.0, 4.0), (0.0, 0.0)])["steps"]
    [5.0, 5.0]
    """
    rows = [plain(row) for row in rows[:MOST_ROWS]]
    if len(rows) < 2:
        return None
    columns = _columns(rows)
    if columns is None:
        return None
    found: dict[str, Any] = {"fields": {name: _of_column(cells) for name, cells in columns.items()}}
    cells = list(columns.values())
    if all(isinstance(row, list | tuple) for row in rows):
        if len(cells) in DIMENSIONS and any(type(cell) is float for column in cells for cell in column):
            found |= _of_points(list(zip(*cells, strict=True)))
        if len(cells) == 2 and all(type(cell) in (int, str) for column in cells for cell in column):
            found["edges"] = _of_edges(list(zip(*cells, strict=True)))
    return found


def _columns(rows: Sequence[Any]) -> dict[Any, list[Any]] | None:
    first = rows[0]
    if isinstance(first, Mapping):
        names = list(first)
        if not 0 < len(names) <= MOST_FIELDS:
            return None
        if not all(isinstance(row, Mapping) and row.keys() == first.keys() for row in rows):
            return None
        return {name: [plain(row[name]) for row in rows] for name in names}
    if not isinstance(first, list | tuple) or not 0 < len(first) <= MOST_FIELDS:
        return None
    if not all(isinstance(row, list | tuple) and len(row) == len(first) for row in rows):
        return None
    return {f"position {k}": [plain(row[k]) for row in rows] for k in range(len(first))}


def _of_column(cells: list[Any]) -> dict[str, Any]:
    if all(type(cell) in (int, float) for cell in cells):
        numbers = [cell for cell in cells if cell == cell]
        found = _in_order(cells) | {"repeated": len(numbers) - len(set(numbers))}
        if numbers and max(map(abs, numbers)) < ENORMOUS:
            found |= {"sum": _rounded(math.fsum(numbers)), "smallest": min(numbers), "largest": max(numbers)}
        return found
    tokens = [cell if isinstance(cell, str) else canonical(cell) for cell in cells]
    return _in_order(tokens) | {"repeated": len(tokens) - len(set(tokens))}


def _in_order(cells: Sequence[Any]) -> dict[str, Any]:
    pairs = list(itertools.pairwise(cells))
    return {"falls": sum(b < a for a, b in pairs), "rises": sum(b > a for a, b in pairs)}


def _of_points(points: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
    if not all(type(number) in (int, float) and abs(number) < ENORMOUS for point in points for number in point):
        return {}
    return {
        "steps": [_rounded(math.dist(a, b)) for a, b in itertools.pairwise(points)],
        "closed": int(points[0] == points[-1]),
        "from end to end": _rounded(math.dist(points[0], points[-1])),
    }


def _rounded(number: float) -> float:
    return round(number, DECIMALS - math.ceil(math.log10(abs(number)))) if number else 0.0


def _of_edges(edges: Sequence[tuple[Any, Any]]) -> dict[str, int]:
    """Of the graph without its loops, each edge counted once and in no direction."""
    neighbours: dict[Any, set[Any]] = collections.defaultdict(set)
    for a, b in edges:
        if a != b:
            neighbours[a].add(b)
            neighbours[b].add(a)
    degrees = [len(some) for some in neighbours.values()] or [0]
    # Each triangle is met from its three edges, and from both ends of each.
    met = sum(len(neighbours[a] & neighbours[b]) for a in neighbours for b in neighbours[a])
    return {
        "triangles": met // 6,
        "nodes": len(neighbours),
        "largest degree": max(degrees),
        "nodes of one edge": degrees.count(1),
        "nodes of odd degree": sum(degree % 2 for degree in degrees),
        "loops": sum(a == b for a, b in edges),
    }
