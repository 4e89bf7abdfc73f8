"""What is kept of outcomes is bounded in bytes, however large an output is; what has no end is cut."""

import collections
import types

import numpy as np
import pytest

import dpaudit
from dpaudit.campaign import draws
from dpaudit.features.outcomes import from_objects, read_outputs, size_of
from dpaudit.inference import order, tasks
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.iterators import read_whole

OPTIONS = {"claim": "eps=1", "pairs": [(0.0, 1.0)], "seed": 1, "floating_point": False}


@pytest.fixture
def small(monkeypatch):
    """Bounds of which texts of 10 kB are too much."""
    monkeypatch.setattr(draws, "KEPT_BYTES", 1 << 20)
    monkeypatch.setattr(draws, "CHUNK_BYTES", 1 << 20)
    monkeypatch.setattr(order, "LATER_BYTES", 1)
    held = []
    taken = draws.Draws.release

    def release(self, fresh):
        taken(self, fresh)
        held.append(sum(part.nbytes for parts in self.kept.values() for part in parts))
        held.append(sum(part.nbytes for later in self.later.values() for part in later.parts[:-2]))
        assert all(task.size * self.size <= 2 << 20 for task, _ in fresh.outcomes if self.size > 1)

    monkeypatch.setattr(draws.Draws, "release", release)
    return held


@pytest.mark.parametrize("vectorised", [True, False])
def test_large_texts_are_counted_and_few_of_them_kept(small, vectorised):
    def one(data, rng):
        return "x" * 10_000 + ("y" if rng.random() < 0.1 + 0.4 * data else "n")

    def batch(data, size, rng):
        return [one(data, rng) for _ in range(size)]

    result = dpaudit.audit(batch if vectorised else one, samples=3_000, **OPTIONS)
    assert result.verdict == "violated"  # digests of long texts tell them
    said = next(one for one in result.side_findings if one.kind == "memory")
    assert "were not kept" in said.summary and max(small) <= (1 << 20) + 2 * 64 * 12_500


def test_outputs_that_grow_later_are_bounded_too(small, monkeypatch):
    monkeypatch.setattr(tasks, "KEPT_BYTES_A_TASK", 1 << 18)
    calls = []

    def grows(data, rng):
        calls.append(0)
        return ("x" * 100_000 if len(calls) > 200 else "") + str(rng.laplace())

    result = dpaudit.audit(grows, samples=1_000, **OPTIONS)
    assert result.verdict != "violated" and max(small) < 8 << 20
    assert any(one.kind == "memory" for one in result.side_findings)


def test_numbers_are_kept_as_before():
    result = dpaudit.audit(lambda data, size, rng: data + rng.laplace(size=size), samples=30_000, **OPTIONS)
    assert not [one for one in result.side_findings if one.kind == "memory"]


def test_the_size_of_outcomes_is_about_what_they_take():
    assert 1_000_000 < size_of(["x" * 500_000, {"a": np.zeros(62_500)}]) < 1_010_000
    assert size_of(Failed("E", "m" * 10_000)) > 10_000
    outcomes = from_objects(["x" * 10_000] * 100)
    assert 1_000_000 < outcomes.nbytes < 1_500_000 and len(outcomes.within(500_000)) < 50
    assert len(outcomes.within(10**9)) == 100 and len(outcomes.within(0)) == 0
    numbers = read_outputs(np.zeros((100, 10)), 100)
    assert numbers.nbytes == 8_000 and len(numbers.within(800)) == 10


class Endless(collections.abc.Sequence):
    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, place):
        return place


LAZY = {
    "a range": lambda: range(10**15),
    "a sequence that makes its items": lambda: Endless(10**15),
    "one in a list": lambda: [1, {"a": range(10**15)}],
    "a view that repeats a number": lambda: np.broadcast_to(0.0, (10**12,)),
}


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("isolation", [None, True])
def test_a_sequence_without_end_is_cut_like_an_iterator(kind, isolation):
    def release(data, rng):
        return LAZY[kind]()

    outcomes = as_subject(release)
    if isolation:
        from dpaudit.subjects.isolation import Isolation, isolated

        with isolated(outcomes, Isolation()) as contained:
            found = contained.sample(0.0, 2, np.random.default_rng(1))
    else:
        found = outcomes.sample(0.0, 2, np.random.default_rng(1))
    assert [type(one) for one in found] == [Failed] * 2 and found[0].kind == "ValueError"


@pytest.mark.parametrize(
    "value",
    [list(range(20_000)), collections.deque(range(20_000)), collections.UserList(range(20_000)), range(9_000),
     dict.fromkeys(range(20_000)), types.MappingProxyType(dict.fromkeys(range(20_000))), np.zeros(20_000)],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_there_is_read_whole(value):
    assert len(read_whole(value)) == len(value)


def test_a_sequence_that_goes_on_behind_its_length_is_read_to_its_length():
    assert read_outputs([Endless(3)], 1).tokens.tolist() == ["[0.0,1.0,2.0]"]
