"""Inputs in files: what JSON has of an input, and what types it had, so that it can be given to a mechanism again.

JSON has no tuples, sets, arrays or infinities. A mechanism may tell them from what stands for them there: a record that
is looked up as a tuple is not found as a list, and a replay that gave the list would test another pair. So a file says
beside the JSON form what has to be made of it, as a tree of `types_of`. Where that cannot say all, the file does not
hold the input.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.privacy.pairs import short_form
from dpaudit.results.codec import PLAIN, as_float, to_json
from dpaudit.results.saving import utf8

MAXIMUM_INPUT_CHARACTERS = 20_000  # a longer input is saved as its digest
REDACTED = "(redacted)"  # what stands in the place of an input that was taken out of a report
DIGEST = frozenset({"sha256", "characters", "short"})  # what a digest has
MAX_BYTES = 1 << 26  # of an array that the types of an input ask for: a file is small, what it asks for need not be
CONTAINERS: dict[str, type] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
DTYPES = re.compile(r"[<>|=]([biu][1248]|f[248]|U\d{1,5})")  # of arrays and numpy's numbers, as texts of numpy's


class NotHeldError(ValueError):
    """An input that a file does not hold."""


def saved_input(value: Any) -> Any:
    """An input as a file keeps it: its JSON form, or a digest where that is longer than 20,000 characters."""
    saved = to_json(value)
    text = json.dumps(saved, ensure_ascii=False, allow_nan=False)
    if len(text) <= MAXIMUM_INPUT_CHARACTERS:
        return saved
    return {"sha256": hashlib.sha256(utf8(text)).hexdigest(), "characters": len(text), "short": short_form(value)}


def is_digest(saved: Any) -> bool:
    """Tell whether a saved input is the digest of one."""
    return isinstance(saved, dict) and set(saved) == DIGEST


def is_redacted(value: object) -> bool:
    """Tell whether this stands in the place of an input that was taken out (an input may be an array, or anything)."""
    return isinstance(value, str) and value == REDACTED


def types_of(value: Any) -> Any:
    """Say what has to be made of the JSON form of an input: a tree of strict JSON, None where it is the input.

    `NotHeldError` if a part of the input is there by its printed form or by what stands for it: an object of another
    class, a key that is no text.

    Examples
    --------
    >>> types_of(("bob", 40)), types_of([1, "a", None]), types_of({"age": np.float32(0.5)})
    ({'is': 'tuple'}, None, {'is': 'dict', 'of': {'age': {'is': 'number', 'dtype': '<f4'}}})
    """
    kind = type(value)
    if isinstance(value, str) and not _is_text(value):
        raise NotHeldError("a text with two lone surrogates that become one character in JSON")
    if kind in PLAIN:
        return None
    if kind is float:
        return None if math.isfinite(value) else {"is": "float"}
    if kind is np.ndarray and DTYPES.fullmatch(value.dtype.str):
        if value.dtype.kind == "U" and not all(map(_is_text, value.ravel().tolist())):
            raise NotHeldError("texts with two lone surrogates")
        return {"is": "array", "dtype": value.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.generic) and DTYPES.fullmatch(value.dtype.str) and value.dtype.type is kind:
        return {"is": "number", "dtype": value.dtype.str}
    if kind is dict:
        if not all(type(key) is str and _is_text(key) for key in value):
            raise NotHeldError("a key that is no text")
        parts = {key: types for key, item in value.items() if (types := types_of(item)) is not None}
        return {"is": "dict", "of": parts} if parts else None
    if kind not in CONTAINERS.values():
        raise NotHeldError(f"of class {kind.__qualname__}")
    items = sorted(value, key=repr) if kind in (set, frozenset) else value  # as `to_json` orders them
    types = [types_of(item) for item in items]
    if all(each is None for each in types):
        return None if kind is list else {"is": kind.__name__}
    if all(each == types[0] for each in types):
        return {"is": kind.__name__, "each": types[0]}
    return {"is": kind.__name__, "of": types}


def _is_text(value: str) -> bool:
    """Tell whether no two lone surrogates stand beside each other in a text, which JSON reads as one character."""
    return not SURROGATES.search(value)


def kept(value: Any) -> tuple[Any, Any, bool]:
    """An input as a file keeps it: its JSON form or digest, its types, and whether these are the whole input.

    Of a digest it is not asked whether they are: nobody takes it for the input.
    """
    saved = saved_input(value)
    if is_digest(saved):
        return saved, None, True
    try:
        return saved, types_of(value), True
    except NotHeldError:
        return saved, None, False


def may_be_infinite(saved: Any) -> bool:
    """Tell whether the JSON form of an input, without its types, holds what may be an infinity or a text."""
    if isinstance(saved, dict):
        return any(map(may_be_infinite, saved.values()))
    if isinstance(saved, list):
        return any(map(may_be_infinite, saved))
    return isinstance(saved, str) and saved in ("inf", "-inf")


def restored(saved: Any, types: Any) -> Any:
    """The input of its JSON form and its types.

    `TypeError` or `ValueError` if they do not belong together: files come from other people.

    Examples
    --------
    >>> restored(["bob", 40], {"is": "tuple"}), restored(["inf", 1.0], {"is": "list", "of": [{"is": "float"}, None]})
    (('bob', 40), [inf, 1.0])
    """
    if types is None:
        return saved
    kind = types["is"] if isinstance(types, Mapping) and "is" in types else None
    if kind == "float":
        return as_float(saved)
    if kind in ("array", "number"):
        return _of_numpy(saved, types)
    if kind == "dict" and isinstance(saved, dict):
        parts = types["of"]
        if not isinstance(parts, Mapping) or not set(parts) <= set(saved):
            raise ValueError("types of an input must be of its keys")
        return {key: restored(item, parts.get(key)) for key, item in saved.items()}
    if kind not in CONTAINERS or not isinstance(saved, list):
        raise ValueError(f"types of an input must fit it, got {short_form(types, width=80)}")
    each = types.get("of", [types.get("each")] * len(saved))
    if not isinstance(each, list):
        raise TypeError(f"types of the items of an input must be a list, got {type(each).__name__}")
    return CONTAINERS[kind](restored(item, of_item) for item, of_item in zip(saved, each, strict=True))


def _of_numpy(saved: Any, types: Mapping[str, Any]) -> Any:
    dtype, shape = types["dtype"], types.get("shape", [])
    if not isinstance(dtype, str) or not DTYPES.fullmatch(dtype):
        raise ValueError(f"dtype of an input must be of numbers or texts, got {short_form(dtype, width=80)}")
    flat = [saved]
    for _ in shape:
        if not all(isinstance(part, list) for part in flat):
            raise ValueError("shape of an input must be that of its lists")
        flat = [item for part in flat for item in part]
    kinds: dict[str, tuple[type, ...]] = {"b": (bool,), "U": (str,), "f": (int, float)}
    if dtype[1] == "f":
        flat = [as_float(item) for item in flat]
    if not all(isinstance(item, kinds.get(dtype[1], (int,))) for item in flat):
        raise TypeError(f"items of an input of dtype {dtype} must be of it")
    if np.dtype(dtype).itemsize * len(flat) > MAX_BYTES:
        raise ValueError(f"an input must take at most {MAX_BYTES:,} bytes, got {len(flat):,} items of dtype {dtype}")
    array = np.array(flat, dtype=dtype).reshape(shape)
    return array if types["is"] == "array" else array[()]
