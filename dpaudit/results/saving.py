"""How results are saved: strict JSON values, and files that are written complete or not at all.

Strict JSON: infinities are the strings "inf" and "-inf", NaN and what does not apply are null.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import math
import os
import stat
import tempfile
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from dpaudit.errors import DpauditError, OutputError, UsageError
from dpaudit.files import parsed_json, read_bytes
from dpaudit.privacy.pairs import short_form

MOST_SAID = 500  # characters of an error that may repeat what stands in a file
WRONG_PLACE = frozenset(  # what the caller can know of a place beforehand
    {
        errno.EACCES,
        errno.EEXIST,
        errno.EINVAL,
        errno.EISDIR,
        errno.ELOOP,
        errno.ENAMETOOLONG,
        errno.ENOENT,
        errno.ENOTDIR,
        errno.ENOTEMPTY,
        errno.EPERM,
        errno.EROFS,
    }
)


PRIVATE, SHARED = 0o600, 0o666  # modes of files that hold records, and of others, before the umask


def write_whole(path: str | os.PathLike[str], content: str | bytes, mode: int = PRIVATE) -> None:
    """Write a file complete or not at all: into a temporary file beside it, flushed to disk, then renamed.

    Inputs may be records of people: by default nobody else may read the file. The umask is respected, and a file that
    is there already keeps its mode, so that whoever opens it to others does so once.

    Raises
    ------
    UsageError
        If nothing can be written at this place, which the caller can know: no permission, or something in the way.
    OutputError
        If it cannot be written to its end, as on a full disk. What was there before stays.
    """
    target = Path(path)
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise writing_error("output must be a writable place", path, error) from error
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(OSError):  # a file system without modes
            os.chmod(temporary, _mode(target, mode))
        os.replace(temporary, target)
    except OSError as error:
        raise writing_error("output must be a writable place", path, error) from error
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)


def _mode(target: Path, mode: int) -> int:
    """The mode of the file that is there, else `mode` without what the umask takes away.

    A link is replaced: what it leads to has been opened to others by somebody else, or for something else.
    """
    if target.is_file() and not target.is_symlink():
        return stat.S_IMODE(target.stat().st_mode)
    umask = os.umask(0o077)
    os.umask(umask)
    return mode & ~umask


def writing_error(said: str, path: str | os.PathLike[str], error: OSError) -> DpauditError:
    """What `error` is to whoever wanted a file at `path`: the wrong place (`UsageError`), or a machine that refuses."""
    text = f"{said}, got {os.fspath(path)!r} ({error.strerror or error})."
    if error.errno in WRONG_PLACE:
        return UsageError(text)
    return OutputError(f"{text} Make room there, or choose another place.")


def check_folder(argument: str, folder: Path) -> None:
    """`UsageError` if nothing can be written in a folder, which need not be there: a probe is made and removed."""
    try:
        existing = next(place for place in (folder, *folder.parents) if place.exists())
    except (OSError, ValueError) as error:  # a name that is too long, or has a null character
        said = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{argument} must be a folder that can be written, got {str(folder)!r:.200} ({said})."
        ) from error
    reason = "a file is in the way"
    if existing.is_dir():
        try:
            os.rmdir(tempfile.mkdtemp(dir=existing, prefix=".dpaudit."))
            return
        except OSError as error:  # also where permissions say nothing of it, as in /proc or for root
            reason = "no permission" if isinstance(error, PermissionError) else str(error.strerror)
    place = f" at {str(existing)!r}" if existing != folder else ""
    raise UsageError(f"{argument} must be a folder that can be written, got {str(folder)!r} ({reason}{place}).")


def to_json(value: Any) -> Any:
    """`value` as strict JSON: numpy to Python, infinities to "inf" and "-inf", NaN to null, other objects to names."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [to_json(item) for item in items]
    return short_form(value, width=200)


def from_json(value: Any) -> Any:
    """The inverse of `to_json` on numbers, lists and objects: "inf" and "-inf" become floats again."""
    if isinstance(value, str):
        return {"inf": math.inf, "-inf": -math.inf}.get(value, value)
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if isinstance(value, dict):
        return {key: from_json(item) for key, item in value.items()}
    return value


def utf8(text: str) -> bytes:
    """JSON text as UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes its JSON escape."""
    return text.encode("utf-8", "backslashreplace")


def _shown(said: object) -> str:
    """What is said of a file, shortened where it repeats much of what stands in there."""
    text = str(said)
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}..."


def as_float(value: Any) -> float:
    """A number of audit.json as a float: "inf" and "-inf" are infinities, null is NaN."""
    number = from_json(value)
    if number is None:
        return math.nan
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"a number was expected, got {value!r}")
    return float(number)


def as_floats(record: Mapping[str, Any]) -> dict[str, float]:
    """Every value of an object of audit.json as a float, as `as_float` reads it."""
    return {key: as_float(value) for key, value in record.items()}


def decoded(kind: Any, value: Any, name: str = "value") -> Any:
    """What strict JSON holds of a type: dataclasses by their annotations, their defaults for what is missing.

    Parameters
    ----------
    kind : type or annotation
        A dataclass, a tuple, an optional one of these, a literal, a float, or anything else, which stays as it is.
    value : object
        Its JSON form, as `to_json` and `dataclasses.asdict` give it.
    name : str
        Of the value, for messages.

    Raises
    ------
    UsageError
        If a literal is none of its values.
    KeyError, TypeError, ValueError
        If a field is missing, a number is none, or a tuple has another length.

    Examples
    --------
    >>> decoded(tuple[float, ...], [1, "inf"]), decoded(float | None, None)
    ((1.0, inf), None)
    """
    if kind is float:
        return as_float(value)
    if dataclasses.is_dataclass(kind):
        known = _fields(typing.cast(type, kind))
        given = {name: hint for name, (hint, is_optional) in known.items() if name in value or not is_optional}
        return typing.cast(Any, kind)(**{one: decoded(hint, value[one], one) for one, hint in given.items()})
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        kinds = [parts[0]] * len(value) if parts[-1] is ... else parts
        return tuple(decoded(one, item, name) for one, item in zip(kinds, value, strict=True))
    if NoneType in parts:
        return None if value is None else decoded(next(one for one in parts if one is not NoneType), value, name)
    if origin is typing.Literal and value not in parts:
        raise UsageError(f"{name} must be one of {', '.join(parts)}, got {value!r}.")
    return value


@functools.cache
def _fields(kind: type) -> dict[str, tuple[Any, bool]]:
    """The annotations of a dataclass by name, and whether a field has a default."""
    hints, none = typing.get_type_hints(kind), dataclasses.MISSING
    fields = (one for one in dataclasses.fields(kind) if one.compare)
    return {one.name: (hints[one.name], not one.default is one.default_factory is none) for one in fields}


SAVED_TYPES: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "str | None": (str, NoneType),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "float | None": (int, float, NoneType),
    "dict[str, Any]": (dict,),
    "dict[str, str]": (dict,),
    "dict[str, Any] | None": (dict, NoneType),
}


def check_types(record: Any) -> None:
    """`TypeError` if a field of a result that was read from a file, or of a part of it, is not of its plain type;
    `OverflowError` if it is to be a double and beyond them.

    Files come from other people: what a report formats as a number must be one, and what it takes for a text a text.
    """
    for field in dataclasses.fields(record):
        value, kind = getattr(record, field.name), str(field.type)
        is_several = kind.startswith("tuple[") and kind.endswith(", ...]")
        expected = SAVED_TYPES.get(kind[6:-6] if is_several else kind)
        for one in value if is_several else (value,):
            if dataclasses.is_dataclass(one):
                check_types(one)
            elif expected is not None and (
                not isinstance(one, expected) or (isinstance(one, bool) and bool not in expected)
            ):
                raise TypeError(f"{field.name} must be {kind}, got {short_form(one, width=80)}")
            elif expected is not None and float in expected and isinstance(one, int):
                float(one)  # an integer beyond the doubles cannot be formatted as one


def read_saved(
    path: str | os.PathLike[str], readers: Mapping[str, Callable[[Mapping[str, Any]], Any]]
) -> tuple[Any, bytes]:
    """A saved result, and the content of its file.

    Parameters
    ----------
    path : path
    readers : mapping of a schema to a function
        That makes the result of the content of a file of that schema.

    Raises
    ------
    UsageError
        If there is no such file, it is of none of these schemas, or a field is of another type.
    """
    name = os.fspath(path)
    content = read_bytes("result", path)
    record = parsed_json("result", content, repr(name))
    if not isinstance(record, dict):
        raise UsageError(f"result must be a JSON object, got {type(record).__name__} at {name!r}.")
    schema = record.get("schema")
    if not isinstance(schema, str) or schema not in readers:
        known = ", ".join(readers)
        raise UsageError(
            f"schema must be {'one of ' * (len(readers) > 1)}{known}, got {_shown(repr(schema))} at {name!r}."
        )
    try:
        result = readers[schema](record)
        check_types(result)
    except UsageError as error:
        raise UsageError(f"{_shown(error)} (at {name!r})") from error
    except KeyError as error:
        raise UsageError(f"result must follow {schema}, got one without {_shown(error)} at {name!r}.") from error
    except RecursionError as error:
        raise UsageError(f"result must be JSON of a depth that can be read, got {name!r}.") from error
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise UsageError(f"result must follow {schema}, got another: {_shown(error)} (at {name!r}).") from error
    return result, content
