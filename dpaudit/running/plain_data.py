"""Results of tasks as bytes and back: arrays and plain values, data and never code."""

from __future__ import annotations

import base64
import json
import math
import struct
import zlib
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import SubjectError
from dpaudit.reading.outcomes import Outcomes, from_objects
from dpaudit.running.workers import Raised
from dpaudit.subjects.call_outcomes import Ended, Failed, Opaque
from dpaudit.subjects.callables import CallError
from dpaudit.subjects.foreign import own
from dpaudit.testing.tasks import TaskResult

ARRAYS = "biufcUSmM"  # kinds of arrays without objects
MOST_BYTES = 1 << 28  # of outputs that are unpacked: more is no file of ours
NO_TRACEBACK = "No traceback: the call was noted in a checkpoint, which keeps none.\n"


class NotPlainError(Exception):
    """A value that is not data alone, such as an object of the subject's own class."""


def to_bytes(result: TaskResult | Raised, places: bool = True) -> bytes:
    """A result as bytes: the length of a JSON text, the text, and the arrays that it names.

    Without `places`: only what is part of the outcomes, not where exceptions came from.

    Raises
    ------
    NotPlainError
        If a training draw is no plain value.
    """
    if isinstance(result, Raised):
        return _framed({"error": _error_to_data(result.error)}, [])
    arrays: list[NDArray[Any]] = []
    data: dict[str, Any] = {"counts": []}
    for counts in result.counts:
        small = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        data["counts"].append(_placed(small, arrays))
    kept = result.kept
    if kept is not None and kept.tokens is None:
        shape = list(kept.shape)
        data["kept"] = {"numbers": _placed(kept.numbers, arrays), "shape": shape, "is_integer": kept.is_integer}
    elif kept is not None:
        raw = kept.raw if places else [one.bare if isinstance(one, Failed) else one for one in kept.raw]
        data["kept"] = {"raw": [to_data(output) for output in raw]}
    return _framed(data, arrays)


def from_bytes(content: bytes) -> TaskResult | Raised:
    """What `to_bytes` wrote.

    Raises
    ------
    ValueError
        If it is something else.
    """
    (length,) = struct.unpack_from("<I", content)
    try:
        data = json.loads(content[4 : 4 + length])
        if "error" in data:
            return Raised(_error_from_data(data["error"]))
        arrays = content[4 + length :]
        counts = tuple(_array(arrays, place).astype(np.int64) for place in data["counts"])
        kept = data.get("kept")
        if kept is None:
            return TaskResult(counts, None)
        if "raw" in kept:
            return TaskResult(counts, from_objects([from_data(output) for output in kept["raw"]]))
        numbers, shape = _array(arrays, kept["numbers"]), tuple(map(int, kept["shape"]))
        if numbers.dtype != float or numbers.ndim != 2 or numbers.shape[1] != math.prod(shape):
            raise ValueError("no result: numbers must have the shape of their outputs")
        return TaskResult(counts, Outcomes(numbers, None, shape, bool(kept["is_integer"])))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no result: {error!r}") from error


def packed(outcomes: Outcomes) -> bytes | None:
    """Outcomes that later fits may see, as bytes; None where an output is no plain value.

    Examples
    --------
    >>> from dpaudit.reading.outcomes import read_outputs
    >>> unpacked(packed(read_outputs([1.5, None, "a"], 3))).raw
    (1.5, None, 'a')
    """
    try:
        return zlib.compress(to_bytes(TaskResult((), outcomes), places=False), 1)
    except (NotPlainError, RecursionError):
        return None


def unpacked(data: bytes) -> Outcomes:
    """The outcomes of `packed`; ValueError where they are damaged."""
    try:
        inflater = zlib.decompressobj()
        result = from_bytes(inflater.decompress(data, MOST_BYTES))
        if not inflater.unconsumed_tail and isinstance(result, TaskResult) and result.kept is not None:
            return result.kept
    except (zlib.error, struct.error, IndexError, ValueError, RecursionError) as error:
        raise ValueError(f"outputs must be ones that were kept, got {error!r:.200}.") from error
    raise ValueError(f"outputs must be ones that were kept, of {MOST_BYTES:,} bytes at most.")


def to_data(value: Any) -> Any:
    """A plain value as JSON: exact, with its type."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return {"float": value.hex()}
    if kind is list:
        return [to_data(item) for item in value]
    if kind is tuple:
        return {"tuple": [to_data(item) for item in value]}
    if kind is dict:
        return {"dict": [[to_data(key), to_data(item)] for key, item in value.items()]}
    if kind in (set, frozenset):
        # In an order of its own: that of a set of texts is another one in every process, and bytes are compared.
        return {kind.__name__: sorted((to_data(item) for item in value), key=json.dumps)}
    if kind is bytes:
        return {"bytes": base64.b64encode(value).decode()}
    if kind is complex:
        return {"complex": [value.real.hex(), value.imag.hex()]}
    if kind is Decimal:
        return {"decimal": str(value)}
    if kind is Failed:
        # No traceback: it names files of this machine, and what it quotes may be more than the outcome says.
        return {"failed": [value.kind, value.message, *([value.place] if value.traceback else [])]}
    if kind is Ended:
        return {"ended": [value.kind, value.message]}
    if kind is Opaque:
        return {"opaque": [value.kind, to_data(value.state), value.text]}
    if isinstance(value, np.generic) and value.dtype.kind in ARRAYS:
        return {"scalar": [value.dtype.str, base64.b64encode(value.tobytes()).decode()]}
    if kind is np.ndarray and value.dtype.kind in ARRAYS:
        return {"array": [value.dtype.str, list(value.shape), base64.b64encode(value.tobytes()).decode()]}
    known = own(value)
    if known is not value:
        return to_data(known)
    raise NotPlainError(kind.__qualname__)


def from_data(data: Any) -> Any:
    """What `to_data` wrote."""
    if isinstance(data, list):
        return [from_data(item) for item in data]
    if not isinstance(data, dict):
        return data
    ((kind, content),) = data.items()
    if kind == "float":
        return float.fromhex(content)
    if kind in ("tuple", "set", "frozenset"):
        return {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](from_data(item) for item in content)
    if kind == "dict":
        return {from_data(key): from_data(item) for key, item in content}
    if kind == "bytes":
        return base64.b64decode(content)
    if kind == "complex":
        return complex(*(float.fromhex(part) for part in content))
    if kind == "decimal":
        return Decimal(content)
    if kind == "failed":
        # A place was noted of an outcome with a traceback: it is told from those without, as it was before.
        return Failed(*content, *([NO_TRACEBACK] if len(content) == 3 else []))
    if kind == "ended":
        return Ended(*content)
    if kind == "opaque":
        return Opaque(content[0], from_data(content[1]), content[2])
    if kind == "scalar":
        return np.frombuffer(base64.b64decode(content[1]), dtype=np.dtype(content[0]))[0]
    if kind == "array":
        flat = np.frombuffer(base64.b64decode(content[2]), dtype=np.dtype(content[0]))
        return flat.reshape(content[1]).copy()
    raise ValueError(f"no kind of value: {kind!r}")


def _error_to_data(error: Exception) -> Any:
    if isinstance(error, CallError):
        return {"call": [error.subject_name, error.size, error.error]}
    if isinstance(error, SubjectError):
        return {"subject": str(error)}
    raise NotPlainError(type(error).__qualname__)


def _error_from_data(data: Any) -> SubjectError:
    return CallError(*data["call"]) if "call" in data else SubjectError(str(data["subject"]))


def _framed(data: Any, arrays: list[NDArray[Any]]) -> bytes:
    try:
        text = json.dumps(data, separators=(",", ":")).encode()
    except ValueError as error:  # an integer beyond the limit of its text
        raise NotPlainError("int") from error
    return b"".join([struct.pack("<I", len(text)), text, *(array.tobytes() for array in arrays)])


def _placed(array: NDArray[Any], arrays: list[NDArray[Any]]) -> list[Any]:
    """Add an array to those behind the text: its type, shape and first byte there."""
    start = sum(known.nbytes for known in arrays)
    arrays.append(array)
    return [array.dtype.str, list(array.shape), start]


def _array(content: bytes, place: list[Any]) -> NDArray[Any]:
    kind, shape, start = place
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(content, dtype=np.dtype(kind), count=count, offset=start).reshape(shape).copy()
