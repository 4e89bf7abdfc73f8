"""Domains of tables: DataFrames, or lists of dictionaries, of which rows are added, removed or replaced.

A row is a tuple of cells in the order of the columns. `TableDomain.of_example` reads the columns from an example: the
values that occur, the extremes of numbers and some beyond them, and what a column of that type can hold and an example
seldom shows: a category that was never seen, an empty text, a missing value, NaN and infinity.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.arguments import check_among
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import whole_number
from dpaudit.privacy.differences import is_frame, row_key
from dpaudit.privacy.pairs import short_form
from dpaudit.subjects.domains.datasets import DatasetDomain, telling_places
from dpaudit.subjects.domains.domain import RELATIONS, Domain, Inputs, Relation, Start, distinct, is_number, spread

MAX_VALUES = 40  # of a column
MAX_ROWS = 30  # of an example that is started from: telling ones and some of all, other ones at random
MAX_USERS = 12  # of an example that starts remove
MAX_TELLING = 200  # rows, of one cell each that is another
UNSEEN = "never-seen"
Row = tuple[Any, ...]


@dataclasses.dataclass(frozen=True, eq=False)
class TableDomain(Domain):
    """Tables with these columns; two are adjacent if a row (or all rows of one user) is added, removed or replaced.

    Parameters
    ----------
    columns : mapping of str to sequence
        The values of each column, the telling ones first; at least two rows can be made of them.
    largest : int
        Rows in the largest table.
    adjacency : {"add_remove", "replace_one"}
    smallest : int
        Rows in the smallest.
    user : str, optional
        The column that says whose a row is: then all rows of a user are added or removed together.
    template : DataFrame, optional
        Inputs are frames with its columns and types; by default they are lists of dictionaries.
    example : sequence of rows
        A table to start from.

    Examples
    --------
    >>> domain = TableDomain({"age": (20, 90), "city": ("a", "b")}, largest=3)
    >>> next((x, y) for family, x, y in domain.starts() if family == "single record")
    ([{'age': 20, 'city': 'a'}], [{'age': 20, 'city': 'a'}, {'age': 20, 'city': 'a'}])
    """

    columns: Mapping[str, Sequence[Any]]
    largest: int = 20
    adjacency: Relation = "add_remove"
    smallest: int = 0
    user: str | None = None
    template: Any = None
    example: tuple[Row, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns or not all(len(values) for values in self.columns.values()):
            raise UsageError(f"columns must each have a value, got {short_form(dict(self.columns))}.")
        check_among("adjacency", self.adjacency, RELATIONS)
        if self.user is not None and self.user not in self.columns:
            raise UsageError(f"user must be a column ({', '.join(self.columns)}), got {self.user!r}.")
        if self.user is not None and self.adjacency != "add_remove":
            raise UsageError(f"adjacency must be add_remove where user is a column, got {self.adjacency!r}.")
        whole_number("largest", self.largest, "a positive integer", 1)
        object.__setattr__(self, "example", tuple(self.example))
        _ = self._rows_domain

    @classmethod
    def of_example(cls, example: Any, adjacency: Relation = "add_remove", user: str | None = None) -> TableDomain:
        """Tables like this one: a DataFrame, or a list of dictionaries with the same keys.

        Parameters
        ----------
        example : DataFrame or list of mapping
        adjacency, user : see the class
        """
        if is_frame(example):
            names = list(example.columns)
            rows = list(example.itertuples(index=False, name=None))
            kinds = [dtype.kind for dtype in example.dtypes]
            template = example.iloc[:0]
        else:
            names = list(example[0]) if len(example) and isinstance(example[0], Mapping) else []
            if not names or not all(isinstance(row, Mapping) and list(row) == names for row in example):
                raise UsageError(f"example must be a DataFrame or dictionaries of one form, got {short_form(example)}.")
            rows = [tuple(row.values()) for row in example]
            kinds, template = ["O"] * len(names), None
        if not names:
            raise UsageError("example must have columns, got a table without any.")
        cells = [[row[k] for row in rows] for k in range(len(names))]
        columns = {
            name: tuple(column_values(column, kind)) for name, column, kind in zip(names, cells, kinds, strict=True)
        }
        grows = adjacency == "add_remove"
        largest = max(len(rows) + (4 if grows else 0), 2)
        smallest = 0 if grows else min(1, len(rows))
        return cls(columns, largest, adjacency, smallest, user, template, tuple(rows))

    def starts(self) -> Iterator[Start]:
        """Rows of the example with one cell changed; tables with users; then those of any dataset."""
        for family, x, x_prime in itertools.chain(self._one_cell(), self._with_users(), self._rows_domain.starts()):
            for pair in self._neighbours(x, x_prime):
                yield family, *self._pair(pair)

    def random(self, rng: np.random.Generator) -> Inputs:
        """Rows of telling values, or some rows of the example; changed by one row, or one user."""
        if self.example and rng.random() < 0.5:
            most = int(rng.integers(max(self.smallest, 1), min(len(self.example), MAX_ROWS) + 1))
            kept = sorted(rng.choice(len(self.example), size=most, replace=False).tolist())
            return self._pair(self._changed([self.example[k] for k in kept], rng))
        return self._pair(self._by_user(self._rows_domain.random(rng), rng))

    def moves(self, x: Any, x_prime: Any, rng: np.random.Generator) -> list[Inputs]:
        """Moves as of datasets; and one cell of the row that differs is another value."""
        first, second = self._rows_of(x), self._rows_of(x_prime)
        found = [self._by_user(pair, rng) for pair in self._rows_domain.moves(first, second, rng)]
        if self.adjacency == "replace_one":
            found.append(self._changed(first, rng))
        return [self._pair(pair) for pair in found]

    def steps(self, x: Any, x_prime: Any) -> int:
        return self._rows_domain.steps(self._rows_of(x), self._rows_of(x_prime)) if self.user is None else 0

    def on_way(self, x: Any, x_prime: Any, step: int) -> Any:
        return self._table(self._rows_domain.on_way(self._rows_of(x), self._rows_of(x_prime), step))

    def to_dict(self) -> dict[str, Any]:
        kept = {name: getattr(self, name) for name in ("largest", "smallest", "adjacency", "user")}
        columns = {str(name): [short_form(value) for value in values[:8]] for name, values in self.columns.items()}
        shown = {"frame": self.template is not None, "columns": columns, "example": len(self.example)}
        return {"kind": "table", **shown, **kept}

    def is_pair(self, x: Any, x_prime: Any) -> bool:
        first, second = ([_key(row) for row in self._rows_of(side)] for side in (x, x_prime))
        if self.user is None:
            return self._rows_domain.is_pair(first, second)
        at = self._place_of_user
        shorter, longer = sorted((first, second), key=len)
        left = collections.Counter(longer) - collections.Counter(shorter)
        owners = {row[at] for row in left}
        return len(owners) == 1 and shorter == [row for row in longer if row[at] not in owners]

    @functools.cached_property
    def _rows_domain(self) -> DatasetDomain:
        # The few rows keep their order. Where rows have users, one row is no neighbour.
        places = [*telling_places(self.example), *spread(range(len(self.example)), MAX_ROWS)][:MAX_ROWS]
        few = [self.example[place] for place in sorted(set(places))]
        examples = (few,) if few and self.user is None else ()
        return DatasetDomain(tuple(self._telling()), self.largest, self.adjacency, self.smallest, examples)

    def _telling(self) -> list[Row]:
        """Rows: the first values, then each column's other values one at a time, then two extremes together."""
        columns = list(self.columns.values())
        base = tuple(values[0] for values in columns)

        def rows() -> Iterator[Row]:
            yield base
            yield tuple(values[min(1, len(values) - 1)] for values in columns)
            for turn in range(1, max(map(len, columns))):
                for k, values in enumerate(columns):
                    if turn < len(values):
                        yield (*base[:k], values[turn], *base[k + 1 :])

        found = distinct(rows(), MAX_TELLING)
        return found if len(found) > 1 else [*found, *found]

    def _one_cell(self) -> Iterator[tuple[str, list[Row], list[Row]]]:
        """Each column's values in turn, in a row of the example, the next value in another row."""
        rows = self._rows_domain.examples[0] if self._rows_domain.examples else []
        if self.adjacency == "replace_one" and rows:
            places = telling_places(rows)
            for turn in range(max(map(len, self.columns.values()))):
                for k, values in enumerate(self.columns.values()):
                    if turn < len(values):
                        place = places[(turn + k) % len(places)]
                        cells = (*rows[place][:k], values[turn], *rows[place][k + 1 :])
                        yield "one cell", rows, [*rows[:place], cells, *rows[place + 1 :]]

    def _with_users(self) -> Iterator[tuple[str, list[Row], list[Row]]]:
        """The example; then with another user of many rows, equal or of all values."""
        if self.user is None:
            return
        rows, new, at = list(self.example), self.columns[self.user][-1], self._place_of_user
        yield "user removed", rows, rows
        others = [row for row in rows if row_key(row[at]) != row_key(new)]
        owned = [(*row[:at], new, *row[at + 1 :]) for row in self._rows_domain.values]
        for count in (1, 2, 5, 20):
            yield "user added", others, [*others, *[owned[0]] * count]
            for where, place in (("", len(others)), (" in front", 0), (" in the middle", len(others) // 2)):
                yield f"user added{where}", others, [*others[:place], *owned[:count], *others[place:]]

    def _neighbours(self, x: list[Row], x_prime: list[Row]) -> Iterator[Inputs]:
        """The pair as it is; where rows have users, the larger table against the same without one of them, each once.

        Validity: a row less of a user who has others makes no neighbour.
        """
        if self.user is None:
            yield x, x_prime
            return
        rows, at = max(x, x_prime, key=len), self._place_of_user
        for owner in spread(distinct(row[at] for row in rows), MAX_USERS):
            yield rows, [row for row in rows if row_key(row[at]) != row_key(owner)]

    def _by_user(self, pair: Inputs, rng: np.random.Generator) -> Inputs:
        """The pair as it is; where rows have users, one table against the same without one user."""
        if self.user is None:
            return pair
        at, rows = self._place_of_user, max((list(side) for side in pair), key=len)
        owners = self.columns[self.user]
        if rng.random() < 0.5:
            rows = [(*row[:at], owners[int(rng.integers(len(owners)))], *row[at + 1 :]) for row in rows]
        found = [*self._neighbours(rows, rows)]
        return found[int(rng.integers(len(found)))] if found else (rows, [])

    @property
    def _place_of_user(self) -> int:
        names: list[Any] = list(self.columns)
        return names.index(self.user)

    def _changed(self, rows: list[Row], rng: np.random.Generator) -> Inputs:
        if self.user is not None:
            return self._by_user((rows, rows), rng)
        if self.adjacency == "add_remove" or not rows or rng.random() < 0.5:
            return self._rows_domain.changed(rows, rng)
        place, k = int(rng.integers(len(rows))), int(rng.integers(len(self.columns)))
        cells = list(self.columns.values())[k]
        cell = cells[int(rng.integers(len(cells)))]
        return rows, [*rows[:place], (*rows[place][:k], cell, *rows[place][k + 1 :]), *rows[place + 1 :]]

    def _pair(self, pair: Inputs) -> Inputs:
        return self._table(pair[0]), self._table(pair[1])

    def _table(self, rows: Sequence[Row]) -> Any:
        """The rows as an input: a frame with the types of the template, where they can hold them, or dictionaries."""
        if self.template is None:
            return [dict(zip(self.columns, row, strict=True)) for row in rows]
        if not rows:
            return self.template.copy()
        import pandas

        frame = pandas.DataFrame(list(rows), columns=list(self.columns))
        for name, own, dtype in zip(self.columns, frame.dtypes, self.template.dtypes, strict=True):
            if own != dtype:
                try:
                    frame[name] = frame[name].astype(dtype)
                except (TypeError, ValueError):  # a value that the type cannot hold stays what it is
                    continue
        return frame

    def _rows_of(self, table: Any) -> list[Row]:
        if is_frame(table):
            return list(table.itertuples(index=False, name=None))
        return [tuple(row.values()) for row in table]


def column_values(cells: Sequence[Any], kind: str = "O") -> list[Any]:
    """The values that a column may have, the telling ones first: what an example shows, and what its type can hold.

    `kind` is numpy's letter for the type of the column ("i", "f", "b", "M"; "O" for any).

    Examples
    --------
    >>> column_values([3, 7, 5])
    [3, 7, 5, 0, 70, -70]
    >>> column_values(["c", "d"])
    ['c', 'd', 'never-seen', '', None]
    """
    known = distinct(cells)
    present = [cell for cell in known if not _is_missing(cell)]
    found: list[Any]
    if present and all(isinstance(cell, bool | np.bool_) for cell in present):
        found = [False, True, *([None] if kind == "O" else [])]
    elif present and all(is_number(cell) for cell in present):
        whole = kind in "iu" or (kind == "O" and all(isinstance(cell, int | np.integer) for cell in present))
        low, high = min(present), max(present)
        far = 10 * max(abs(low), abs(high), 1)
        beyond = [0, far, *([] if kind == "u" else [-far])]
        found = [low, high, sorted(present)[len(present) // 2], *(beyond if whole else map(float, beyond))]
        found += [math.nan, math.inf] if not whole else []
        found += spread(present, MAX_VALUES)
    elif present and all(isinstance(cell, str) for cell in present):
        found = [*present[:2], UNSEEN, "", None, *spread(present[2:], MAX_VALUES)]
    else:
        found = [*spread(present, MAX_VALUES), *([None] if kind == "O" else [])]
    known_missing = [cell for cell in known if _is_missing(cell)]
    return distinct([*found, *known_missing]) or [0.0]


def _key(row: Row) -> Row:
    """A key of a row, equal for rows that are the same; missing values are."""
    return tuple(None if _is_missing(cell) else row_key(cell) for cell in row)


def _is_missing(value: Any) -> bool:
    is_nan = isinstance(value, float) and value != value
    return is_nan or value is None or type(value).__name__ in ("NAType", "NaTType")
