"""The tables of an evidence store, by the SQL that makes them: rows are dictionaries, and are checked when read.

SQLite keeps a text in a column of numbers where it is none, so a store that comes from elsewhere may hold any value.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from typing import Any

from dpaudit.errors import UsageError

MAX_TABLES = 100  # and indices that are looked at
MAX_TEXT = 100_000  # characters of a name or a claim: those of a claim are parsed
COLUMN_TYPES: dict[str, tuple[type, ...]] = {"integer": (int,), "real": (int, float), "text": (str,), "blob": (bytes,)}
Row = dict[str, Any]


class Tables:
    """Tables that some statements make, separated by semicolons. No name is of columns of two types."""

    def __init__(self, sql: str) -> None:
        self.sql = sql
        with contextlib.closing(sqlite3.connect(":memory:")) as empty:
            self.make(empty.execute)
            self.layout = layout_of(empty.execute)
            tables = (name for name, (kind, *_) in self.layout.items() if kind == "table")
            self.columns = {table: columns_of(empty.execute, table) for table in tables}
        found = re.findall(r"(\w+) (integer|real|text|blob)( not null| primary key)?", sql)
        self.types = {name: (*COLUMN_TYPES[kind], *(() if bound else (type(None),))) for name, kind, bound in found}

    def make(self, execute: Any) -> None:
        """Make the tables."""
        for statement in self.sql.split(";"):
            execute(statement)

    def rows(self, execute: Any, table: str, **which: Any) -> list[Row]:
        """The rows of a table that have these values, in the order in which they came."""
        columns, chosen = self.columns[table], " and ".join(f"{name} = ?" for name in which) or "1"
        query = f"select {', '.join(columns)} from {table} where {chosen} order by rowid"
        return self.read(execute(query, tuple(which.values())))

    def read(self, rows: Any) -> list[Row]:
        """Rows by the names of their columns, checked."""
        names = [name for name, *_ in rows.description]
        found = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
        for name, value in (cell for row in found for cell in row.items()):
            if bytes not in self.types[name] and isinstance(value, str | bytes) and len(value) > MAX_TEXT:
                raise UsageError(f"store must have texts of at most {MAX_TEXT:,} characters, got more in {name}.")
            if type(value) not in self.types[name]:
                raise UsageError(f"store must have values of the types of its columns, got {value!r:.40} in {name}.")
        return found

    def own(self, row: Row, table: str) -> Row:
        """The columns of a row of another store without its number there."""
        return {name: row[name] for name in self.columns[table] if name != "id"}


def upsert(execute: Any, table: str, row: Row, *, keeps: bool = False, adds: bool = False) -> int:
    """Put a row into a table, in the place of one with its keys, unless that one is kept or must not be there."""
    way = "insert or ignore" if keeps else "insert" if adds else "insert or replace"
    marks = ", ".join("?" * len(row))
    return int(execute(f"{way} into {table} ({', '.join(row)}) values ({marks})", tuple(row.values())).lastrowid)


def layout_of(execute: Any) -> dict[str, tuple[str, str, str | None]]:
    """The kind, the table and the SQL of all that a file has, to the letter, by name."""
    query = "select name, type, tbl_name, sql from sqlite_master limit ?"
    return {row[0]: tuple(row[1:]) for row in execute(query, (MAX_TABLES,)).fetchall()}


def columns_of(execute: Any, table: str) -> list[str]:
    """The names of a table's columns; none where there is no such table."""
    return [name for (name,) in execute("select name from pragma_table_info(?) order by cid", (table,))]
