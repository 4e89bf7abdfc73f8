"""Files as data: one reader, which takes no more than it says, whatever a file claims to hold.

Everything that somebody else may have written comes through here: results, declarations, tables, scores, keys. A file
is a regular one of at most `LIMITS.file` bytes, with at most `LIMITS.values` values; what its parser makes of it has
`LIMITS.memory` bytes of address space (Linux), so that a compressed, encoded or repeated content cannot take more than
that. Nothing is run or opened that a file names.

Raises `UsageError` with the argument, what was expected, and the path; nothing else.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import math
import os
import re
import stat
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpaudit.errors import UsageError

Place = str | os.PathLike[str]


@dataclasses.dataclass(frozen=True)
class FileLimits:
    """Limits on what a file may ask for."""

    file: int = 64 << 20  # bytes: a result of 1,000 pairs has 3 MB
    toml: int = 256 << 10  # bytes: the largest ledger has 75 kB
    dots: int = 500  # of a line of TOML: its parser takes the square of a dotted key
    values: int = 5_000_000  # numbers, texts and containers: scores of a million canaries, five times
    memory: int = 2 << 30  # bytes of address space to parse it, threads and arenas of the libraries included
    columns: int = 10_000  # of a table: a search makes hundreds of tables, and a frame takes 0.1 ms a column
    members: int = 1_000  # arrays of an npz file
    said: int = 300  # characters of what a parser says of it


LIMITS = FileLimits()
_ZERO = re.compile(r"[+-]?[0.]+([eE]|$)")
_STORED, _DEFLATED = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED


def read_bytes(name: str, path: Place, most: int = LIMITS.file) -> bytes:
    """The content of a regular file of at most `most` bytes; `name` is the argument that it is of.

    Examples
    --------
    >>> read_bytes("key", "/dev/zero")
    Traceback (most recent call last):
    dpaudit.errors.UsageError: key must be a regular file, got '/dev/zero'.
    """
    with opened(name, path) as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        raise UsageError(f"{name} must be a file of at most {most:,} bytes, got a longer one at {os.fspath(path)!r}.")
    return content


@contextlib.contextmanager
def opened(name: str, path: Place) -> Iterator[io.BufferedReader]:
    """A regular file, open to be read in parts by who knows their bounds."""
    where = os.fspath(path)
    try:
        # Not blocking: a pipe has no end that can be waited for.
        handle = os.open(where, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:  # ValueError: a name with a null character
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{name} must be a readable file, got {where!r} ({reason}).") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UsageError(f"{name} must be a regular file, got {where!r}.")
    with open(handle, "rb") as stream:
        yield stream


def read_text(name: str, path: Place, most: int = LIMITS.file) -> str:
    """The text of a file in UTF-8, without its mark of byte order."""
    content = read_bytes(name, path, most)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        text = f"{name} must be a file in UTF-8, got {os.fspath(path)!r} (byte {error.start} is not)."
        raise UsageError(text) from error


def read_json(name: str, path: Place) -> Any:
    """The value of a file of JSON."""
    return parsed_json(name, read_bytes(name, path), repr(os.fspath(path)))


def parsed_json(name: str, content: bytes | str, where: str) -> Any:
    """The value of JSON; `where` is where it is from."""
    with parsing(name, "JSON", where):
        text = content.decode("utf-8-sig") if isinstance(content, bytes) else content
        _check_count(name, sum(map(text.count, ",[{")), where)
        return json.loads(text, parse_float=double)


def double(text: str) -> float:
    """The double that a text names, or inf; `ValueError` where it would become an infinity or a 0 that the text is not.

    Examples
    --------
    >>> double(" 0")  # as `float` reads it
    0.0
    >>> double("1e400")
    Traceback (most recent call last):
    ValueError: 1e400 is beyond what a double holds
    """
    number = float(text)
    if math.isinf(number) != ("inf" in text.lower()) or (number == 0.0) != bool(_ZERO.match(text.strip())):
        raise ValueError(f"{text[:60]} is beyond what a double holds")
    return number


def read_toml(name: str, path: Place) -> dict[str, Any]:
    """The table of a file of TOML."""
    text = read_text(name, path, LIMITS.toml)
    with parsing(name, "TOML", repr(os.fspath(path))):
        if max(line.count(".") for line in text.split("\n")) > LIMITS.dots:
            raise ValueError(f"more than {LIMITS.dots} dots in a line")
        return tomllib.loads(text)


def read_csv(name: str, path: Place) -> str:
    """The text of a CSV file, which has no more columns and values than the limits."""
    text, where = read_text(name, path), repr(os.fspath(path))
    if (most := max(line.count(",") for line in text.splitlines() or [""])) >= LIMITS.columns:
        raise UsageError(
            f"{name} must have at most {LIMITS.columns:,} columns, got a line with {most:,} commas at {where}."
        )
    _check_count(name, text.count(",") + text.count("\n") + text.count("\r"), where)
    return text


def read_rows(name: str, path: Place) -> list[list[str]]:
    """The rows of a CSV file; empty lines are none."""
    text = read_csv(name, path)
    with parsing(name, "CSV", repr(os.fspath(path))):
        return [row for row in csv.reader(io.StringIO(text, newline="")) if row]


def read_array(name: str, path: Place) -> Any:
    """The array of an npy file, numbers or texts; of an npz file a mapping of names to functions that read one."""
    content, where = read_bytes(name, path), repr(os.fspath(path))
    if not content.startswith(b"PK"):
        return _array(name, content, where)
    with parsing(name, "an npz file", where):
        if content.count(b"PK\x01\x02") > LIMITS.members:
            raise ValueError(f"more than {LIMITS.members:,} arrays")
        archive = zipfile.ZipFile(io.BytesIO(content))

        def member(info: zipfile.ZipInfo) -> Any:
            with parsing(name, "an npz file", where):
                if info.compress_type not in (_STORED, _DEFLATED):
                    raise ValueError("another compression than numpy's")
                with archive.open(info) as stream:
                    inside = stream.read(LIMITS.file + 1)  # whatever size it states
            if len(inside) > LIMITS.file:
                text = f"{name} must have arrays of at most {LIMITS.file:,} bytes, got a longer one at {where}."
                raise UsageError(text)
            return _array(name, inside, where)

        return {one.filename.removesuffix(".npy"): (lambda one=one: member(one)) for one in archive.infolist()}


def _array(name: str, content: bytes, where: str) -> Any:
    """The array of the bytes of an npy file: what its header claims has to be there."""
    import numpy as np
    from numpy.lib import format as npy

    with parsing(name, "an npy file", where):
        stream = io.BytesIO(content)
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version}")
        shape, is_fortran, dtype = {1: npy.read_array_header_1_0, 2: npy.read_array_header_2_0}[version[0]](stream)
        if dtype.hasobject or dtype.names is not None:
            raise ValueError("objects or records")
        if min(shape, default=0) < 0:
            raise ValueError("a negative length")
        count = math.prod(shape)
        _check_count(name, count, where)
        inside = content[stream.tell() :]
        if count * dtype.itemsize > len(inside):
            raise ValueError(f"{len(inside):,} bytes of {count * dtype.itemsize:,}")
        flat = np.frombuffer(inside, dtype, count) if dtype.itemsize else np.zeros(count, dtype)
        return flat.reshape(shape, order="F" if is_fortran else "C")


def read_table(name: str, path: Place, use: Callable[[Any], Any], columns: Sequence[str] | None = None) -> Any:
    """Apply `use` to a Parquet file (`pyarrow.parquet.ParquetFile`) of which so many columns are read, or all."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        text = f"{name} must be of a format that can be read, got {os.fspath(path)!r}: {NO_PARQUET}"
        raise UsageError(text) from error
    content, where = read_bytes(name, path), repr(os.fspath(path))
    with parsing(name, "a Parquet file", where):
        file = parquet.ParquetFile(pyarrow.BufferReader(content))
        if columns is None:
            check_columns(name, file.schema_arrow.names, where)
        width = len(file.schema_arrow.names if columns is None else columns)
        _check_count(name, file.metadata.num_rows * width, where)
        return use(file)


def parquet_columns(name: str, path: Place) -> list[str]:
    """The names of the columns of a Parquet file."""
    return list(read_table(name, path, lambda file: file.schema_arrow.names, ()))


def parquet_values(name: str, path: Place, column: str) -> list[Any]:
    """The numbers of one column of a Parquet file."""

    def values(file: Any) -> Any:
        kind = str(file.schema_arrow.field(column).type)
        if not kind.startswith(("int", "uint", "float", "double", "halffloat", "bool", "decimal")):
            raise ValueError(f"a column of {kind}, and not of numbers")
        return file.read([column], use_threads=False).column(0).to_pylist()

    return list(read_table(name, path, values, (column,)))


NO_PARQUET = "pip install 'dpaudit[data]' for Parquet."


@contextlib.contextmanager
def parsing(name: str, form: str, where: str) -> Iterator[None]:
    """Parse within `LIMITS.memory`: whatever a parser raises is said of the file."""
    try:
        with _little_memory():
            yield
    except UsageError:
        raise
    except MemoryError as error:
        text = f"{name} must be {form} that takes at most {LIMITS.memory >> 20:,} MiB, got a larger one at {where}."
        raise UsageError(text) from error
    except Exception as error:
        said = " ".join(str(error).split()) or type(error).__name__
        said = said if len(said) <= LIMITS.said else f"{said[: LIMITS.said]}..."
        raise UsageError(f"{name} must be {form}, got {where}: {said.rstrip('.')}.") from error


def _check_count(name: str, count: int, where: str) -> None:
    if count > LIMITS.values:
        raise UsageError(f"{name} must have at most {LIMITS.values:,} values, got {count:,} at {where}.")


def check_columns(name: str, columns: Sequence[Any], where: str) -> None:
    """Check that a table has no more columns than the limit, and that each has a name of its own."""
    if len(columns) > LIMITS.columns:
        raise UsageError(f"{name} must have at most {LIMITS.columns:,} columns, got {len(columns):,} at {where}.")
    if len(set(columns)) < len(columns):
        raise UsageError(f"{name} must have columns of different names, got one name twice at {where}.")


@contextlib.contextmanager
def _little_memory() -> Iterator[None]:
    """For a while the process may take `LIMITS.memory` bytes of address space more than it has (Linux)."""
    try:
        import resource

        before = resource.getrlimit(resource.RLIMIT_AS)
        wanted = address_space() + LIMITS.memory
    except (ImportError, OSError, ValueError):  # pragma: no cover (elsewhere the size of the file is what bounds it)
        yield
        return
    hard = before[1]
    unlimited = resource.RLIM_INFINITY
    is_less = (before[0] == unlimited or wanted < before[0]) and (hard == unlimited or wanted < hard)
    if is_less:
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        if is_less:
            resource.setrlimit(resource.RLIMIT_AS, before)


def address_space() -> int:
    """Bytes of address space that this process has (Linux)."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
