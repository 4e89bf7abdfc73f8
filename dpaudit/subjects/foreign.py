"""Outputs of other libraries as Python's and numpy's own: tables, series, tensors, dates and durations.

An output is audited for what it holds. A pandas table of two columns is read as the dictionary of its columns, a tensor
as its array, a date as a number of days: else nothing but its printed form would be seen, and no threshold fitted.

Validity: an output is read by itself, by a fixed function; it is post-processing of single outputs. Nothing is imported
here: what no library of the process made is no object of it.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import pathlib
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.subjects.call_outcomes import Opaque

AS_THEY_ARE = frozenset({float, int, bool, str, bytes, type(None), np.float64})  # they hold nothing that changes
OWN = AS_THEY_ARE | {list, tuple, dict, set, frozenset, np.ndarray}  # most outputs are of these: nothing to do
STANDARD = frozenset(map(np.dtype, (np.int64, np.float64, np.bool_, np.complex128)))  # count as Python's own
EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def own(value: Any) -> Any:
    """One output, or a part of one: what another library made as numbers, arrays, lists and dictionaries.

    A table is the dictionary of its columns (a list of pairs where names repeat); a series a list, or the dictionary by
    its labels where it has some; anything else that numpy can read an array. Dates are days since 1970, moments and
    durations microseconds, with their offset from UTC behind them where they state it. A file in memory is what it
    holds, and of another one nothing is seen. A path is its text. The rest stays as it is. What an object holds beside
    these is its residual (`dpaudit.subjects.residual`).

    Examples
    --------
    >>> own(datetime.date(1970, 1, 3)), own(datetime.timedelta(seconds=1)), own("text")
    (2, 1000000, 'text')
    """
    if type(value) in OWN or isinstance(value, np.ndarray | np.generic):
        return value
    if isinstance(value, io.IOBase):
        return value.getvalue() if isinstance(value, io.BytesIO | io.StringIO) else Opaque(type(value).__qualname__)
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta):
        return _moment(value)
    if isinstance(value, pathlib.PurePath):
        return str(value)
    for name, read in (("pandas", _of_pandas), ("polars", _of_polars)):
        library = sys.modules.get(name)
        if library is not None and isinstance(value, library.DataFrame | library.Series):
            return read(value, library)
    array = _array(value)
    return value if array is None else array


def attributes_of(value: Any) -> Mapping[str, Any] | None:
    """The attributes of an object by their names, with the fields of a dataclass; None where it has none.

    Those in slots are read of classes that are not Python's own, whose printed forms say more.
    """
    found: dict[str, Any] = {}
    if dataclasses.is_dataclass(value):
        found = {field.name: getattr(value, field.name, None) for field in dataclasses.fields(value)}
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, Mapping):
        found |= attributes
    if type(value).__module__.partition(".")[0] not in sys.stdlib_module_names:
        found |= {name: getattr(value, name) for name in _slots(type(value)) if hasattr(value, name)}
    return found or ({} if dataclasses.is_dataclass(value) else None)


def _slots(kind: type) -> Iterator[str]:
    """The names of the attributes that a class, or one that it inherits from, keeps in slots."""
    for home in kind.__mro__:
        slots = home.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            is_private = name.startswith("__") and not name.endswith("__")
            if name not in ("__dict__", "__weakref__"):
                yield f"_{home.__name__.lstrip('_')}{name}" if is_private else name


def own_batch(outputs: Any) -> Any:
    """A batch of outputs as an array where another library made it, whose rows are the outputs; else as it is."""
    array = None if type(outputs) in OWN else _array(outputs)
    return outputs if array is None else array


def _array(value: Any) -> NDArray[Any] | None:
    """Array that numpy reads of an object that offers itself as one; None for any other, or where it refuses."""
    if isinstance(value, np.ndarray | np.generic | type):
        return None
    if not any(hasattr(type(value), offer) for offer in ("__array__", "__array_interface__")):
        return None
    try:
        return np.asarray(value)
    except Exception:  # a tensor on a device, say: it is read by its printed form
        return None


def _moment(value: datetime.date | datetime.time | datetime.timedelta) -> Any:
    if isinstance(value, datetime.timedelta):
        return value // MICROSECOND
    if not isinstance(value, datetime.datetime | datetime.time):
        return value.toordinal() - EPOCH.toordinal()
    if value != value:  # pandas' "not a time" is a datetime
        return value
    clock = value.replace(tzinfo=None)
    if isinstance(clock, datetime.time):
        clock = datetime.datetime.combine(EPOCH, clock)
    offset = value.utcoffset()
    if offset is None:
        return (clock - EPOCH) // MICROSECOND
    return [(clock - offset - EPOCH) // MICROSECOND, offset // MICROSECOND]


def _of_pandas(value: Any, pandas: Any) -> Any:
    index = value.index
    is_series = isinstance(value, pandas.Series)
    columns = [value.tolist()] if is_series else list(map(_column, value._iter_column_arrays()))
    if not (isinstance(index, pandas.RangeIndex) and index.start == 0 and index.step == 1):
        columns = [_labelled(index, column) for column in columns]
    return columns[0] if is_series else _table(value.columns.tolist(), columns)


def _column(array: Any) -> list[Any]:
    """A column of a table of pandas as the list that `to_numpy(dtype=object)` of the whole table would hold."""
    found: list[Any] = (array if isinstance(array, np.ndarray) else array.to_numpy(dtype=object)).tolist()
    return found


def _labelled(index: Any, values: list[Any]) -> Any:
    pairs = zip(index.tolist(), values, strict=True)
    return dict(pairs) if index.is_unique else [list(pair) for pair in pairs]


def _of_polars(value: Any, polars: Any) -> Any:
    if isinstance(value, polars.Series):
        return value.to_list()
    return _table(value.columns, [value[:, k].to_list() for k in range(value.shape[1])])


def _table(names: list[Any], columns: list[Any]) -> Any:
    pairs = zip(names, columns, strict=True)
    return dict(pairs) if len(set(names)) == len(names) else [list(pair) for pair in pairs]
