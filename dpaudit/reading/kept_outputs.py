"""Outputs that later fits may see, as data: arrays where they are numbers, tagged JSON where they are not.

Reading them runs nothing that was written there. An output that is no plain value (an object of a class of one's own)
cannot be kept in this way: then `packed` gives None, and what goes on from day to day is fitted on counts alone.
"""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import numpy as np

from dpaudit.reading.outcomes import DEEPEST, Outcomes, from_objects
from dpaudit.subjects.call_outcomes import Failed, Noted, noted
from dpaudit.subjects.foreign import own

NUMBERS, OBJECTS = b"N", b"O"
MOST_BYTES = 1 << 28  # of what is unpacked: more is no file of ours


class NotPlain(TypeError):
    """An output that is no plain value."""


def packed(outcomes: Outcomes) -> bytes | None:
    """Outcomes as bytes; None where an output is no plain value.

    Examples
    --------
    >>> from dpaudit.reading.outcomes import read_outputs
    >>> unpacked(packed(read_outputs([1.5, None, "a"], 3))).raw
    (1.5, None, 'a')
    """
    if outcomes.tokens is None:
        about = json.dumps([bool(outcomes.is_integer), list(outcomes.numbers.shape), list(outcomes.shape)]).encode()
        content = np.ascontiguousarray(outcomes.numbers, dtype="<f8").tobytes()
        return NUMBERS + zlib.compress(about + b"\n" + content, 1)
    try:
        text = json.dumps([_plain(output, 0) for output in outcomes.raw])
    except (NotPlain, ValueError):  # the second: an integer beyond the limit of its text
        return None
    return OBJECTS + zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def unpacked(data: bytes) -> Outcomes:
    """The outcomes of `packed`.

    Raises
    ------
    ValueError
        If it is damaged.
    """
    try:
        inflater = zlib.decompressobj()
        content = inflater.decompress(data[1:], MOST_BYTES)
        if inflater.unconsumed_tail:
            raise ValueError("it is too large")
        if data[:1] == NUMBERS:
            about, _, rest = content.partition(b"\n")
            is_integer, (draws, columns), shape = json.loads(about)
            if columns != math.prod(shape):
                raise ValueError("its shape is not that of its outputs")
            numbers = np.frombuffer(rest, dtype="<f8").reshape(draws, columns).astype(float)
            return Outcomes(numbers, None, tuple(int(size) for size in shape), bool(is_integer))
        if data[:1] == OBJECTS:
            return from_objects([_value(item) for item in json.loads(content.decode("utf-8", "surrogatepass"))])
    except (zlib.error, KeyError, TypeError, IndexError, ValueError) as error:
        raise ValueError(f"outputs must be ones that were kept, got {error!r:.200}.") from error
    raise ValueError(f"outputs must be ones that were kept, got bytes that begin with {data[:1]!r}.")


def _plain(value: Any, depth: int) -> Any:
    """A value as JSON: itself where JSON has it, a list with a tag in front otherwise."""
    if depth > DEEPEST:
        raise NotPlain
    kind = type(value)
    if value is None or kind in (bool, str, int):
        return value
    if kind is float:
        return ["float", value.hex()]
    if kind is bytes:
        return ["bytes", value.hex()]
    if isinstance(value, Noted):
        bare = next(own_kind for own_kind in (dict, list, tuple, str) if isinstance(value, own_kind))(value)
        return ["noted", _plain(bare, depth), _plain(value.beside, depth + 1)]
    if kind in (list, tuple, set, frozenset):
        return [kind.__name__, [_plain(item, depth + 1) for item in value]]
    if kind is dict:
        return ["dict", [[_plain(key, depth + 1), _plain(item, depth + 1)] for key, item in value.items()]]
    if kind is Failed:
        return ["failed", value.kind, value.message]
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
        return ["array", value.dtype.str, list(value.shape), value.tobytes().hex()]
    known = own(value)
    if known is not value:
        return _plain(known, depth)
    raise NotPlain


def _value(item: Any) -> Any:
    if not isinstance(item, list):
        return item
    tag, *rest = item
    if tag == "float":
        return float.fromhex(rest[0])
    if tag == "bytes":
        return bytes.fromhex(rest[0])
    if tag in ("list", "tuple", "set", "frozenset"):
        values = [_value(part) for part in rest[0]]
        return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[tag](values)
    if tag == "noted":
        return noted(_value(rest[0]), _value(rest[1]))
    if tag == "dict":
        return {_value(key): _value(part) for key, part in rest[0]}
    if tag == "failed":
        return Failed(str(rest[0]), str(rest[1]))
    if tag == "array":
        array = np.frombuffer(bytes.fromhex(rest[2]), dtype=np.dtype(rest[0])).reshape(rest[1])
        return array[()] if array.ndim == 0 else array
    raise ValueError(f"tag must be a known one, got {tag!r}")
