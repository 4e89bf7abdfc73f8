"""Outputs that come piece by piece: what a generator yields is the output, and it is read once, to its end.

A mechanism may be written as a generator, as the sparse vector technique is, or return one. To read it uses it up, so
that is done where the output comes in, before anybody else looks at it.

Validity: an output is read by itself, by a fixed function; it is post-processing of single outputs.
"""

from __future__ import annotations

import inspect
import io
import itertools
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, cast

import numpy as np

from dpaudit.subjects.call_outcomes import Failed, noted
from dpaudit.subjects.copies import copied_output
from dpaudit.subjects.foreign import AS_THEY_ARE
from dpaudit.subjects.plain import DEEPEST, brief
from dpaudit.subjects.tracebacks import is_of_output

MAX_PIECES = 10_000  # of one output, in all its parts: a generator need not have an end
MAX_COUNTED = 1_000_000  # of a collection that is no list, tuple or dict of Python's own
NO_MORE = object()  # behind the last piece
MAX_BYTES = 256 << 20  # of one array: of a view that repeats a number nothing else is there


def read_whole(value: Any) -> Any:
    """An output: the list of its pieces where it is an iterator, and so wherever it holds one; else as it is.

    Lists, tuples and dictionaries are looked through. What a generator returns stands beside its pieces as a note.
    Where an iterator raises, the pieces before that are followed by a `Failed`: whoever reads it has seen them. An
    output that raises before its first piece is nothing but the `Failed`, as that of a function that raises.

    `ValueError` if an iterator has more than `MAX_PIECES` pieces, or a sequence so many that are not there, or an
    array is larger than `MAX_BYTES`: as an outcome, like any other exception.

    Examples
    --------
    >>> read_whole(iter([1, 2])), read_whole(("yes", map(abs, [-3]))), read_whole(0.5)
    ([1, 2], ('yes', [3]), 0.5)
    """
    if type(value) in AS_THEY_ARE:  # the usual case
        return value
    whole = _looked_at(value)
    if whole is value or type(whole) is Failed or type(value) in (list, tuple, dict):
        return whole
    return whole[0] if len(whole) == 1 and isinstance(whole[0], Failed) else whole


def read_batch(outputs: Any, size: int, hold: Callable[[Any], Any] = copied_output) -> Any:
    """A batch that was asked for `size` outputs, each of them read whole; of an iterator one more at most.

    `hold` makes of an output what later ones do not change.
    """
    if isinstance(outputs, Iterator) or (isinstance(outputs, Iterable) and not isinstance(outputs, Collection)):
        # Validity: held before the next one is asked for, which may be written into the same buffer.
        return [hold(_looked_at(output, 1)) for output in itertools.islice(outputs, size + 1)]
    if type(outputs) not in (list, tuple) or AS_THEY_ARE.issuperset(map(type, outputs)):
        return outputs
    return type(outputs)(_looked_at(output, 1) for output in outputs)


def _looked_at(value: Any, depth: int = 0) -> Any:
    """The output read whole; an interrupt that it raises when it is looked at is the mechanism's, and its outcome."""
    try:
        return _whole(value, depth, [MAX_PIECES])
    except KeyboardInterrupt as error:
        if not is_of_output(error):
            raise
        return brief(error)


def _whole(value: Any, depth: int, left: list[int]) -> Any:
    """The output; `left` is how many pieces of iterators it may still have, in all of its parts together."""
    kind = type(value)
    if kind in AS_THEY_ARE or depth > DEEPEST:
        return value
    if kind is list or kind is tuple:
        if AS_THEY_ARE.issuperset(map(type, value)):
            return value
        return kind(_whole(item, depth + 1, left) for item in value)
    if kind is dict:
        if AS_THEY_ARE.issuperset(map(type, value.values())):
            return value
        return {key: _whole(item, depth + 1, left) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        if value.nbytes > MAX_BYTES:  # it may be a view that repeats one number
            raise ValueError(f"an output must have at most {MAX_BYTES:,} bytes, got an array of {value.nbytes:,}.")
        return value
    if isinstance(value, Sequence | Mapping | Set):
        _check_is_there(value)
    # A file is one too, of what is left to read: it is read by what it holds, or not at all.
    is_read = isinstance(value, Iterator) and not isinstance(value, io.IOBase)
    return _pieces(value, depth + 1, left) if is_read else value


def _check_is_there(value: Any) -> None:
    """Raise `ValueError` where a collection has more pieces than it holds (a range, one that makes them) or says."""
    count, kind = len(value), type(value).__qualname__
    is_short = isinstance(value, Sequence) and count > MAX_PIECES
    if is_short and sum(map(sys.getsizeof, (value, *getattr(value, "__dict__", {}).values()))) < count:
        raise ValueError(f"an output must end, got a {kind} of more than {MAX_PIECES:,} pieces.")
    if isinstance(value, str | bytes | bytearray):
        return  # characters that are there
    if count > MAX_COUNTED:
        raise ValueError(f"an output must have at most {MAX_COUNTED:,} pieces, got a {kind} of {count:,}.")
    if next(itertools.islice(iter(value), count, None), NO_MORE) is not NO_MORE:
        raise ValueError(f"an output must end, got a {kind} of more pieces than its length, {count:,}.")


def _pieces(values: Iterator[Any], depth: int, left: list[int]) -> Any:
    found: list[Any] = []
    returned: list[Any] = []  # the value behind `return`, of a generator that ends
    try:
        for value in _to_the_end(values, returned):
            left[0] -= 1
            if left[0] < 0:
                break
            found.append(value if type(value) in AS_THEY_ARE else copied_output(_whole(value, depth, left)))
    except BaseException as error:
        if not is_of_output(error):
            raise
        found.append(brief(error))
    if left[0] < 0:
        raise ValueError(f"an output must end, got an iterator of more than {MAX_PIECES:,} pieces.")
    beside = {"returned": copied_output(_whole(returned[0], depth, left))} if returned else {}
    return noted(found, {"class": type(values).__qualname__, **beside})


def _to_the_end(values: Iterator[Any], returned: list[Any]) -> Iterator[Any]:
    """The pieces of an iterator; what a generator returns at its end, other than None, is put aside."""
    value = yield from cast("Generator[Any, None, Any]", values)
    if value is not None:
        returned.append(value)


def is_asynchronous(function: Any) -> bool:
    """Tell whether calling it gives a coroutine, or an asynchronous generator: no output, but the promise of one."""
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    kinds = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return any(kind(one) for kind in kinds for one in (function, called))
