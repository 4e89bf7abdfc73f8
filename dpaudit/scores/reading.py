"""Scores from arrays and files: CSV, text, npy, npz, JSON and Parquet.

A file of one kind of score has one column of numbers. `FILE:NAME` names a column (CSV with a header, Parquet), an array
(npz) or a key (JSON object). "nan", "inf" and "-inf" are numbers; an empty cell is none, and an error.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.files import parquet_columns, parquet_values, read_array, read_json, read_rows
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.trade_off import is_number_text

SUFFIXES = (".csv", ".txt", ".npy", ".npz", ".json", ".parquet")


def as_scores(name: str, given: Any, may_be_empty: bool = False) -> FloatArray:
    """Scores as an array of shape (scores,), from an array, a list or a path; `name` is the argument, for messages.

    Raises
    ------
    UsageError
        If it is not one list of numbers, or a file cannot be read as one, or has none and may not be empty.

    Examples
    --------
    >>> as_scores("scores_in", [0.5, float("nan")]).shape
    (2,)
    """
    if isinstance(given, str | Path):
        numbers = _numbers(name, _read(name, str(given)), str(given))
        if not (len(numbers) or may_be_empty):
            raise UsageError(f"{name} must have at least one score, got none at {given}.")
        return numbers
    return _numbers(name, given, "")


def _numbers(name: str, given: Any, where: str) -> FloatArray:
    place = f" at {where}" if where else ""
    try:
        array = np.asarray(given)
        if array.dtype.kind not in "fiub":
            array = np.array([_number(value) for value in array.ravel().tolist()]).reshape(array.shape)
        numbers = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be numbers, got {error}{place}.") from error
    if numbers.ndim == 2 and 1 in numbers.shape:
        numbers = numbers.ravel()
    if numbers.ndim != 1:
        raise UsageError(f"{name} must be one list of numbers, got shape {numbers.shape}{place}.")
    return numbers


def _number(value: Any) -> float:
    """A number, or the text of one."""
    shown = value[:60] if isinstance(value, str | bytes) else value
    if value is None or isinstance(value, bool | complex):
        raise ValueError(f"{shown!r:.80}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError("an integer beyond the doubles") from None
    except (TypeError, ValueError):
        raise ValueError(f"{shown!r:.80}") from None


def _read(name: str, path: str) -> Any:
    file, _, column = path.rpartition(":") if not Path(path).exists() and ":" in path else (path, "", "")
    suffix = Path(file).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{name} must be a file that ends in {', '.join(SUFFIXES)}, got {path!r}.")
    if suffix in (".csv", ".txt"):
        return _read_csv(name, file, column)
    if suffix in (".npy", ".npz"):
        return _read_numpy(name, file, column)
    return _read_json(name, file, column) if suffix == ".json" else _read_parquet(name, file, column)


def _read_csv(name: str, file: str, column: str) -> list[str]:
    rows = read_rows(name, file)
    if not rows:
        return []
    header = [cell.strip() for cell in rows[0]]
    has_header = bool(column) or not all(is_number_text(cell) for cell in header)
    at = _position(name, header, column, file) if has_header else _position(name, [""] * len(header), "", file)
    if header == ["0"] and not column and rows[1:] and not any(row[0].strip("+- ").isdigit() for row in rows[1:]):
        raise UsageError(
            f"{name} must say whether its first row is a name (as pandas writes it) or a score, got 0 above numbers "
            f"that are not whole at {file}. Give {file}:0, or write 0.0."
        )
    found = []
    for line, row in enumerate(rows[has_header:], start=1 + has_header):
        if len(row) <= at or not is_number_text(row[at]):
            got = repr(row[at]) if len(row) > at else "no cell"
            raise UsageError(f"{name} must be numbers, got {got} at {file}, row {line}.")
        found.append(row[at])
    return found


def _position(name: str, columns: list[str], column: str, file: str) -> int:
    if column:
        if columns.count(column) != 1:
            raise UsageError(f"{name} must name one column among {', '.join(columns)}, got {column!r} at {file}.")
        return columns.index(column)
    if len(columns) != 1:
        said = f" ({', '.join(columns)})" if any(columns) else ""
        raise UsageError(f"{name} must be one column, got {len(columns)}{said} at {file}. Name one: {file}:NAME.")
    return 0


def _read_numpy(name: str, file: str, column: str) -> Any:
    loaded = read_array(name, file)
    if not isinstance(loaded, dict):
        return loaded
    names = list(loaded)
    return loaded[names[_position(name, names, column, file)]]()


def _read_json(name: str, file: str, column: str) -> Any:
    content = read_json(name, file)
    if isinstance(content, dict):
        keys = [str(key) for key in content]
        content = content[keys[_position(name, keys, column, file)]]
    if not isinstance(content, list):
        raise UsageError(f"{name} must be a JSON list of numbers, got {type(content).__name__} at {file}.")
    return [math.nan if value == "nan" else value for value in content]


def _read_parquet(name: str, file: str, column: str) -> Any:
    columns = parquet_columns(name, file)
    return parquet_values(name, file, columns[_position(name, columns, column, file)])
