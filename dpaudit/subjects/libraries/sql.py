"""Any function that queries a table, as a subject: an input is the list of rows, the output what the query returns.

>>> def noisy_count(connection, rng):
...     (count,) = connection.execute("SELECT COUNT(*) FROM data WHERE age >= 18").fetchone()
...     return count + rng.laplace()
>>> adults = subject(noisy_count, columns=["age"], claim="eps=1")
>>> len(adults.sample([[17], [40]], 3, np.random.default_rng(0)))
3
"""

from __future__ import annotations

import dataclasses
import functools
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.neighbours import Adjacency
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.libraries.library_mechanism import library_subject


def subject(
    query: Callable[..., Any],
    *,
    columns: Sequence[str] = ("value",),
    table: str = "data",
    claim: Claim | str | None = None,
    connect: Callable[[list[Any]], Any] | None = None,
    adjacency: Adjacency | None = None,
    name: str | None = None,
) -> Subject:
    """The subject of a query function.

    Parameters
    ----------
    query : callable
        `query(connection)`, `query(connection, rng)` or any other signature that `dpaudit.as_subject` reads. It gets a
        connection to a database that holds the rows of the input, and returns the output; a query that raises has the
        exception as its output.
    columns : sequence of str
        Of the table, in the order of the values of a row. A row that is no list is a row of one value.
    table : str
    connect : callable, optional
        Makes a DB-API connection from the list of rows (a DuckDB or a server of your own); by default one to an SQLite
        database in memory, new for every batch, which queries can read but not write.
    adjacency : str, optional
        The neighbouring relation that the claim is made of: see `dpaudit.privacy.neighbours`.
    """
    for label, names in (("columns", list(columns)), ("table", [table])):
        if not names or not all(isinstance(one, str) and one.isidentifier() for one in names):
            raise UsageError(f"{label} must be plain names, got {names!r}.")
    inner = as_subject(query)
    make = connect or functools.partial(_in_sqlite, table, columns)

    def draw(data: Any, size: int, rng: np.random.Generator) -> Any:
        connection = make([_row(row) for row in data])
        try:
            return inner.sample(connection, size, rng)
        finally:
            connection.close()

    found = library_subject(
        "sqlite3" if connect is None else "sql",
        f"{inner.name} on {table}({', '.join(columns)})",
        draw,
        name or inner.name,
        claim=claim,
        adjacency=adjacency,
        parts=(query, connect),
        version=sqlite3.sqlite_version if connect is None else "",
    )
    return dataclasses.replace(found, replayable=inner.replayable)


def _row(row: Any) -> list[Any]:
    """The values of a row, as Python's own: databases take no numbers of numpy's."""
    values = list(row) if isinstance(row, list | tuple | np.ndarray) else [row]
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _in_sqlite(table: str, columns: Sequence[str], rows: list[Any]) -> sqlite3.Connection:
    """A read-only SQLite database in memory with the rows."""
    connection = sqlite3.connect(":memory:")
    quoted = ", ".join(f'"{column}"' for column in columns)
    connection.execute(f'CREATE TABLE "{table}" ({quoted})')
    connection.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(columns))})', rows)
    connection.commit()
    connection.execute("PRAGMA query_only = ON")
    return connection
