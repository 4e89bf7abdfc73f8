"""Results of tasks as bytes and back, for checkpoints and stores: arrays and plain values, data and never code.

Everything that is saved is a block: the length of a JSON text (4 bytes, little-endian), the text, and bytes that it
says the meaning of.
"""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import Outcomes, from_objects
from dpaudit.inference.tasks import TaskResult
from dpaudit.running.workers import Raised
from dpaudit.subjects.call_outcomes import Ended, Failed, Noted, Opaque, noted
from dpaudit.subjects.callables import CallError
from dpaudit.subjects.foreign import own

ARRAYS = "biufcUSmM"  # kinds of arrays without objects
MAX_BYTES = 1 << 28  # of what is unpacked: more is no file of ours
NO_TRACEBACK = "No traceback: the call was noted in a checkpoint, which keeps none.\n"


class NotPlainError(Exception):
    """A value that is not data alone, such as an object of the subject's own class."""


def block(data: Any, *parts: bytes) -> bytes:
    """A JSON text with its length, and the bytes behind it.

    `NotPlainError` if an integer is beyond the limit of its text.
    """
    try:
        text = json.dumps(data, separators=(",", ":")).encode()
    except ValueError as error:
        raise NotPlainError("int") from error
    return b"".join([struct.pack("<I", len(text)), text, *parts])


def text_of(content: bytes) -> tuple[Any, int]:
    """Data in the text of a block, and where the bytes behind it begin; ValueError where it is no block."""
    if len(content) < 4:
        raise ValueError("no block: it is too short")
    end = 4 + int.from_bytes(content[:4], "little")
    return json.loads(content[4:end]), end


def inflated(content: bytes) -> bytes:
    """The bytes that zlib made smaller; ValueError where they are damaged, or more than `MAX_BYTES`."""
    inflater = zlib.decompressobj()
    try:
        found = inflater.decompress(content, MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if inflater.unconsumed_tail:
        raise ValueError(f"more than {MAX_BYTES:,} bytes")
    return found


def to_bytes(result: TaskResult | Raised, places: bool = True) -> bytes:
    """A result as a block with the arrays that it names.

    Without `places`: only what is part of the outcomes, not where exceptions came from.

    `NotPlainError` if a training draw is no plain value.
    """
    if isinstance(result, Raised):
        error = result.error
        if isinstance(error, CallError):
            return block({"error": {"call": [error.subject_name, error.size, error.error]}})
        if isinstance(error, SubjectError):
            return block({"error": {"subject": str(error)}})
        raise NotPlainError(type(error).__qualname__)
    arrays: list[NDArray[Any]] = []
    small = [counts.astype(np.min_scalar_type(int(counts.max(initial=0)))) for counts in result.counts]
    data: dict[str, Any] = {"counts": [_placed(counts, arrays) for counts in small]}
    kept = result.kept
    if kept is not None and kept.tokens is None:
        shape = list(kept.shape)
        form = {"shape": shape, "is_integer": kept.is_integer, "forms": sorted(kept.forms)}
        data["kept"] = {"numbers": _placed(kept.numbers, arrays), **form}
    elif kept is not None:
        raw = kept.raw if places else [one.bare if isinstance(one, Failed) else one for one in kept.raw]
        data["kept"] = {"raw": [to_data(output) for output in raw]}
    return block(data, *(array.tobytes() for array in arrays))


def from_bytes(content: bytes) -> TaskResult | Raised:
    """Read what `to_bytes` wrote.

    `ValueError` if it is something else.
    """
    try:
        data, start = text_of(content)
        if error := data.get("error"):
            return Raised(CallError(*error["call"]) if "call" in error else SubjectError(str(error["subject"])))
        arrays = content[start:]
        counts = tuple(_array(arrays, place).astype(np.int64) for place in data["counts"])
        kept = data.get("kept")
        if kept is None:
            return TaskResult(counts, None)
        if "raw" in kept:
            return TaskResult(counts, from_objects([from_data(output) for output in kept["raw"]]))
        numbers, shape = _array(arrays, kept["numbers"]), tuple(map(int, kept["shape"]))
        if numbers.dtype != float or numbers.ndim != 2 or numbers.shape[1] != math.prod(shape):
            raise ValueError("no result: numbers must have the shape of their outputs")
        forms = frozenset(map(str, kept.get("forms", ())))
        return TaskResult(counts, Outcomes(numbers, None, shape, bool(kept["is_integer"]), forms=forms))
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(f"no result: {error!r}") from error


def outcomes_as_bytes(outcomes: Outcomes) -> bytes | None:
    """Outcomes that later fits may see, as bytes; None where an output is no plain value.

    Examples
    --------
    >>> from dpaudit.features.outcomes import read_outputs
    >>> outcomes_from_bytes(outcomes_as_bytes(read_outputs([1.5, None, "a"], 3))).raw
    (1.5, None, 'a')
    """
    try:
        return zlib.compress(to_bytes(TaskResult((), outcomes), places=False), 1)
    except (NotPlainError, RecursionError):
        return None


def outcomes_from_bytes(data: bytes) -> Outcomes:
    """Read what `outcomes_as_bytes` wrote; ValueError where they are damaged."""
    try:
        result = from_bytes(inflated(data))
    except ValueError as error:
        raise ValueError(f"outputs must be ones that were kept, got {error!r:.200}.") from error
    if not isinstance(result, TaskResult) or result.kept is None:
        raise ValueError("outputs must be ones that were kept, got another result.")
    return result.kept


def to_data(value: Any) -> Any:
    """A plain value as JSON: exact, with its type."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is list:
        return [to_data(item) for item in value]
    if isinstance(value, Noted):
        return {"noted": [to_data(value.bare), to_data(value.beside)]}
    if kind in SAVED_FORMS:
        return {kind.__name__.lower(): SAVED_FORMS[kind][0](value)}
    if (kind is np.ndarray or isinstance(value, np.generic)) and value.dtype.kind in ARRAYS:
        name = "array" if kind is np.ndarray else "scalar"
        return {name: [value.dtype.str, list(value.shape), _text(value.tobytes())]}
    known = own(value)
    if known is not value:
        return to_data(known)
    raise NotPlainError(kind.__qualname__)


def from_data(data: Any) -> Any:
    """Read what `to_data` wrote."""
    if isinstance(data, list):
        return [from_data(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    if kind not in _READERS:
        raise ValueError(f"no kind of value: {kind!r}")
    return _READERS[kind](content)


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _list(value: Iterable[Any]) -> list[Any]:
    return [to_data(item) for item in value]


def _sorted(value: Iterable[Any]) -> list[Any]:
    """In an order of its own: that of a set of texts is another one in every process, and bytes are compared."""
    return sorted(_list(value), key=json.dumps)


def _failed(value: Failed) -> list[str]:
    """No traceback: it names files of this machine, and what it quotes may be more than the outcome says."""
    return [value.kind, value.message, *([value.place] if value.traceback else [])]


def _read_failed(content: list[str]) -> Failed:
    """A place was noted of an outcome with a traceback: it is told from those without, as it was before."""
    return Failed(*content, *([NO_TRACEBACK] if len(content) == 3 else []))


def _read_array(content: Any) -> NDArray[Any]:
    kind, shape, text = content
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(kind)).reshape(shape).copy()


# Each type as JSON and back; its name in lower case stands before it.
SAVED_FORMS: dict[type, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    float: (float.hex, float.fromhex),
    tuple: (_list, lambda content: tuple(map(from_data, content))),
    set: (_sorted, lambda content: set(map(from_data, content))),
    frozenset: (_sorted, lambda content: frozenset(map(from_data, content))),
    dict: (lambda value: list(map(_list, value.items())), lambda content: dict(map(from_data, content))),
    bytes: (_text, base64.b64decode),
    complex: (lambda value: [value.real.hex(), value.imag.hex()], lambda parts: complex(*map(float.fromhex, parts))),
    Decimal: (str, Decimal),
    Failed: (_failed, _read_failed),
    Ended: (lambda value: [value.kind, value.message], lambda content: Ended(*content)),
    Opaque: (
        lambda value: [value.kind, to_data(value.state), value.text, to_data(value.beside)],
        lambda content: Opaque(content[0], from_data(content[1]), content[2], *map(from_data, content[3:])),
    ),
}
_READERS: dict[str, Callable[[Any], Any]] = {
    **{kind.__name__.lower(): reader for kind, (_, reader) in SAVED_FORMS.items()},
    "noted": lambda content: noted(*map(from_data, content)),
    "array": _read_array,
    "scalar": lambda content: _read_array(content)[()],
}


def _placed(array: NDArray[Any], arrays: list[NDArray[Any]]) -> list[Any]:
    """Add an array to those behind the text: its type, shape and first byte there."""
    start = sum(known.nbytes for known in arrays)
    arrays.append(array)
    return [array.dtype.str, list(array.shape), start]


def _array(content: bytes, place: list[Any]) -> NDArray[Any]:
    kind, shape, start = place
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(content, dtype=np.dtype(kind), count=count, offset=start).reshape(shape).copy()
