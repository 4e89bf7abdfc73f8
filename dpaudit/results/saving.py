"""Files of results: strict JSON values, and files that are written complete or not at all.

Strict JSON: infinities are the strings "inf" and "-inf", NaN and what does not apply are null.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from dpaudit.errors import DpauditError, OutputError, UsageError
from dpaudit.files import parsed_json, read_bytes
from dpaudit.results.codec import Form, FormError

MAX_ERROR_CHARACTERS = 500  # characters of an error that may repeat what stands in a file
WRONG_PLACE = {  # what the caller can know of a place beforehand
    errno.EACCES, errno.EEXIST, errno.EINVAL, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.ENOENT,
    errno.ENOTDIR, errno.ENOTEMPTY, errno.EPERM, errno.EROFS,
}  # fmt: skip
NEW_FOLDERS: list[Path] = []  # that `write_whole` has made in this process: the command line says so
DEVICES = Path("/dev")
PRIVATE, SHARED = 0o600, 0o666  # modes of files that hold records, and of others, before the umask


def write_whole(path: str | os.PathLike[str], content: str | bytes, mode: int = PRIVATE) -> None:
    """Write a file complete or not at all: into a temporary file beside it, flushed to disk, then renamed.

    Inputs may be records of people: by default nobody else may read the file. The umask is respected, and a file that
    is there already keeps its mode, so that whoever opens it to others does so once.

    `UsageError` if nothing can be written at this place, which the caller can know: no permission, or something in the
    way. `OutputError` if it cannot be written to its end, as on a full disk. What was there before stays.
    """
    target = Path(path)
    temporary = ""
    try:
        if not _may_be_replaced(target):
            raise FileExistsError(errno.EEXIST, "no regular file")
        missing = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        NEW_FOLDERS.extend(missing[-1:])
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as stream:
            stream.write(content.encode("utf-8") if isinstance(content, str) else content)
            stream.flush()
            os.fsync(stream.fileno())
        with contextlib.suppress(OSError):  # a file system without modes
            os.chmod(temporary, _mode(target, mode))
        os.replace(temporary, target)
    except OSError as error:
        raise writing_error("output must be a writable place", path, error) from error
    finally:
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)


def _may_be_replaced(path: Path) -> bool:
    """Tell whether a regular file or none is there: /dev/stdout is a link that looks like the file it leads to."""
    return (path.is_file() or not path.exists()) and path.parent.resolve() != DEVICES


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
    """Say what `error` is to whoever wanted a file at `path`: a wrong place (`UsageError`), or a refusing machine."""
    text = f"{said}, got {os.fspath(path)!r} ({error.strerror or error})."
    if error.errno in WRONG_PLACE:
        return UsageError(text)
    return OutputError(f"{text} Make room there, or choose another place.")


def check_folder(argument: str, folder: Path) -> None:
    """`UsageError` if nothing can be written in a folder, which need not be there: a probe is made and removed."""
    text = f"{argument} must be a folder that can be written, got"
    try:
        existing = next(place for place in (folder, *folder.parents) if place.exists())
    except (OSError, ValueError) as error:  # a name that is too long, or has a null character
        said = getattr(error, "strerror", None) or error
        raise UsageError(f"{text} {str(folder)!r:.200} ({said}).") from error
    reason = "a file is in the way"
    if existing.is_dir():
        try:
            os.rmdir(tempfile.mkdtemp(dir=existing, prefix=".dpaudit."))
            return
        except OSError as error:  # also where permissions say nothing of it, as in /proc or for root
            reason = "no permission" if isinstance(error, PermissionError) else str(error.strerror)
    place = f" at {str(existing)!r}" if existing != folder else ""
    raise UsageError(f"{text} {str(folder)!r} ({reason}{place}).")


def check_file(argument: str, given: str | Path) -> None:
    """`UsageError` if no file of this name can be written."""
    path = Path(given)
    try:
        is_file = bool(str(given)) and bool(path.name) and _may_be_replaced(path)
    except (OSError, ValueError) as error:  # a name that is too long, or has a null character
        said = getattr(error, "strerror", None) or error
        raise UsageError(f"{argument} must be a file that can be written, got {str(given)!r:.200} ({said}).") from error
    if not is_file:
        raise UsageError(f"{argument} must be a file that can be written, got {str(given)!r}.")
    check_folder(argument, path.parent)


MAX_LINE = 100  # characters of JSON: what is longer and holds lists or objects has a line for each of its members


def json_text(value: Any) -> str:
    """Strict JSON with a line end; what is short stands on one line, and so does a list of numbers or texts.

    >>> print(json_text({"q": [0.25] * 16, "views": [{"kind": "value"}] * 2, "of": {}}), end="")
    {
     "q": [0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25, 0.25],
     "views": [{"kind": "value"}, {"kind": "value"}],
     "of": {}
    }
    """
    return _json_lines(value, "\n") + "\n"


def _json_lines(value: Any, line: str) -> str:
    whole = json.dumps(value, allow_nan=False, ensure_ascii=False)
    holds = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    is_flat = not isinstance(value, dict) and not any(isinstance(one, dict | list | tuple) for one in holds)
    if is_flat or len(whole) <= MAX_LINE:
        return whole
    inner = f"{line} "
    if isinstance(value, dict):
        names = (json.dumps(str(key), ensure_ascii=False) for key in value)
        members = (f"{name}: {_json_lines(one, inner)}" for name, one in zip(names, holds, strict=True))
        return f"{{{inner}{f',{inner}'.join(members)}{line}}}"
    return f"[{inner}{f',{inner}'.join(_json_lines(one, inner) for one in value)}{line}]"


def utf8(text: str) -> bytes:
    """JSON text as UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes its JSON escape."""
    return text.encode("utf-8", "backslashreplace")


def _shown(said: object) -> str:
    """Say what is said of a file, shortened where it repeats much of what stands in there."""
    text = str(said)
    return text if len(text) <= MAX_ERROR_CHARACTERS else f"{text[:MAX_ERROR_CHARACTERS]}..."


class Saved(Form):
    """Give a result a file of its own: strict JSON, with its schema and its verdict, which are checked in what is read.

    `decided_by` names in messages what its verdict must be that of; empty for a result without one that is derived.
    """

    schema: ClassVar[str]
    decided_by: ClassVar[str] = ""

    def to_dict(self) -> dict[str, Any]:
        """The result as strict JSON values."""
        verdict = {"verdict": getattr(self, "verdict", None)} if self.decided_by else {}
        return {"schema": self.schema, **verdict, **super().to_dict()}

    def to_text(self) -> str:
        """The result as strict JSON, with a line end."""
        return json_text(self.to_dict())

    def to_bytes(self) -> bytes:
        """The content of its file, in UTF-8."""
        return utf8(self.to_text())

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the result as JSON, complete or not at all, and give its place; raises as `write_whole`."""
        write_whole(path, self.to_bytes())
        return Path(path)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The result of the content of its file; `UsageError` names what is missing, or of another type or schema.

        The verdict that the file states must be the one that the result has.
        """
        if record.get("schema") != cls.schema:
            raise UsageError(f"schema must be {cls.schema!r}, got {record.get('schema')!r}.")
        try:
            result = super().from_dict(record)
        except FormError as error:
            raise UsageError(f"result must follow {cls.schema}, got another: {_shown(error)}.") from error
        stated, found = record.get("verdict"), getattr(result, "verdict", None)
        if cls.decided_by and stated != found:
            raise UsageError(f"verdict must be that of the {cls.decided_by}, {found!r}, got {stated!r}.")
        return result


def read_saved(
    path: str | os.PathLike[str], readers: Mapping[str, Callable[[Mapping[str, Any]], Any]]
) -> tuple[Any, bytes]:
    """A saved result, and the content of its file.

    Parameters
    ----------
    path : path
    readers : mapping of a schema to a function
        That makes the result of the content of a file of that schema.

    `UsageError` if there is no such file, it is of none of these schemas, or a field is of another type.
    """
    content = read_bytes("result", path)
    return parsed_result(content, os.fspath(path), readers), content


def parsed_result(content: bytes, name: str, readers: Mapping[Any, Callable[[Mapping[str, Any]], Any]]) -> Any:
    """The result of the content of a file of this name; as `read_saved`. A reader of None takes what has no schema."""
    record = parsed_json("result", content, repr(name))
    if not isinstance(record, dict):
        raise UsageError(f"result must be a JSON object, got {type(record).__name__} at {name!r}.")
    schema = record.get("schema")
    if not isinstance(schema, str | None) or schema not in readers:
        known = "one of " * (len(readers) > 1) + ", ".join(filter(None, readers))
        raise UsageError(f"schema must be {known}, got {_shown(repr(schema))} at {name!r}.")
    try:
        return readers[schema](record)
    except UsageError as error:
        raise UsageError(f"{_shown(error)} (at {name!r})") from error
    except KeyError as error:
        raise UsageError(f"result must follow {schema}, got one without {_shown(error)} at {name!r}.") from error
    except RecursionError as error:
        raise UsageError(f"result must be JSON of a depth that can be read, got {name!r}.") from error
    except (AttributeError, OverflowError, TypeError, ValueError) as error:
        raise UsageError(f"result must follow {schema}, got another: {_shown(error)} (at {name!r}).") from error
