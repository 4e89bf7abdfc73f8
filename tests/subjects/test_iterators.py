"""Outputs that come piece by piece are read once, to their end, and found where they give the input away."""

import asyncio
import collections
import functools
import io
import itertools

import numpy as np
import pytest

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.iterators import MAX_PIECES, read_whole

SEED = 20261124


def raises_later(data, rng):
    """A biased bit, and then an exception on every input."""
    yield bool(rng.random() < 0.2 + 0.6 * data)
    raise PermissionError("the budget is spent")


def endless(data, rng):
    yield from itertools.count()


def test_iterators_are_read_wherever_they_stand():
    assert read_whole(iter("ab")) == ["a", "b"]
    assert read_whole({"a": [iter([iter([1])])], "b": (2, iter(()))}) == {"a": [[[1]]], "b": (2, [])}
    deep = iter([])
    for _ in range(1_000):
        deep = [deep]
    assert read_whole(deep)[0] == deep[0]
    file = io.StringIO("text")
    assert read_whole(file) is file and file.read() == "text"
    array, text = np.arange(3), "text"
    assert read_whole(array) is array and read_whole(text) is text


def test_what_came_before_an_exception_was_seen():
    (bit, failed) = read_whole(raises_later(0, np.random.default_rng(SEED)))
    assert isinstance(bit, bool)
    assert failed == Failed("PermissionError", "the budget is spent")


def refuses(data, rng):
    """As a generator refuses its input: at the first piece."""
    if data < 0:
        raise ValueError("no")
    yield data


def test_a_generator_that_raises_before_its_first_piece_has_raised():
    assert as_subject(refuses).sample(-1, 2, np.random.default_rng(SEED)) == [Failed("ValueError", "no")] * 2
    assert as_subject(refuses).sample(1, 1, np.random.default_rng(SEED)) == [[1]]


def test_an_output_without_an_end_is_an_exception():
    assert len(read_whole(iter(range(MAX_PIECES)))) == MAX_PIECES
    with pytest.raises(ValueError, match="must end"):
        read_whole(itertools.count())


# Of a sound mechanism at most 5% of seeds would alarm; these leak log 4 and more, and the seed is fixed.


def test_generators_without_an_end_break_the_audit():
    result = dpaudit.audit(endless, claim="eps=1", pairs=[(0, 1)], samples=20, seed=SEED)
    assert result.verdict == "error"
    assert "more than 10,000 pieces" in result.findings[0].message


async def asynchronous(data, rng):
    await asyncio.sleep(0)
    return 1


class Asynchronous:
    async def sample(self, data, size, rng):
        return [1] * size


class Called:
    async def __call__(self, data):
        yield 1


@pytest.mark.parametrize(
    "mechanism",
    [asynchronous, Asynchronous(), Called(), functools.partial(asynchronous, rng=None)],
    ids=["function", "object", "callable", "partial"],
)
def test_asynchronous_mechanisms_are_refused(mechanism):
    with pytest.raises(UsageError, match=r"got the function '.*', which is asynchronous \(async def\)"):
        as_subject(mechanism)


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no text")


def test_an_exception_that_cannot_be_printed_is_an_outcome():
    def call(data, rng):
        if rng.random() < 0.5:
            raise Unprintable
        return 0.0

    def pieces(data, rng):
        yield data
        raise Unprintable

    assert dpaudit.audit(call, "eps=1", [(0.0, 1.0)], samples=500, seed=7).verdict == "inconclusive"
    assert dpaudit.audit(pieces, "eps=1", [(0.0, 1.0)], samples=500, seed=7).verdict == "violated"


def without_end():
    while True:
        yield 1.0


def nested():
    while True:
        yield nested()


@pytest.mark.parametrize("base", [dict, set, list, collections.UserList, collections.UserDict, collections.deque])
def test_a_collection_with_more_pieces_than_it_says_is_an_exception_of_the_call(base):
    lying = type("Lying", (base,), {"__iter__": lambda self: without_end()})
    with pytest.raises(ValueError, match="an output must end, got a Lying of more pieces than its length"):
        read_whole(lying())


def test_the_pieces_of_all_iterators_of_an_output_are_counted_together():
    with pytest.raises(ValueError, match="an output must end, got an iterator of more than 10,000 pieces"):
        read_whole(nested())
    assert read_whole([iter([1]), {"a": iter([2, 3])}]) == [[1], {"a": [2, 3]}]
    assert read_whole(collections.Counter("aab")) == {"a": 2, "b": 1}
    assert len(read_whole(np.str_("a" * 2_000_000))) == 2_000_000
