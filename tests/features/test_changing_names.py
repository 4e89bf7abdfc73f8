"""Tests of mappings and sets whose names change from output to output: what they hold is read, and hides nothing."""

import numpy as np
import pytest

from dpaudit.features.outcomes import from_objects
from dpaudit.features.reader import Reader

SIZE = 600
RNG = np.random.default_rng(8)
NUMBERS = RNG.normal(size=SIZE)


def names(choices: int, count: int = 5) -> list[str]:
    return [f"key{k}" for k in RNG.integers(choices, size=count)]


def columns_equal_to(numbers, outputs) -> int:
    outcomes = from_objects(outputs)
    return int(np.sum(np.all(Reader.learn([outcomes])(outcomes) == np.asarray(numbers)[:, None], axis=0)))


@pytest.mark.parametrize("choices", [10**9, 3_000])
def test_what_stands_behind_changing_keys_is_read(choices):
    mappings = [{"changing": dict.fromkeys(names(choices), "a b"), "last": {"value": v}} for v in NUMBERS.tolist()]
    assert columns_equal_to(NUMBERS, mappings)
    lists = [{"rows": [{name: "a b"} for name in names(choices)], "last": {"value": v}} for v in NUMBERS.tolist()]
    assert columns_equal_to(NUMBERS, lists)


def test_what_changing_keys_hold_is_read():
    items = [{**dict.fromkeys(names(10**9, 3), -9.0), **dict.fromkeys(names(10**9, 1), v)} for v in NUMBERS.tolist()]
    assert columns_equal_to(NUMBERS, items)
    by_number = [
        dict(zip(RNG.integers(10**9, size=3).tolist(), [-9.0, v, -9.0], strict=True)) for v in NUMBERS.tolist()
    ]
    assert columns_equal_to(NUMBERS, by_number)


def test_texts_of_changing_sets_are_read():
    lengths = RNG.integers(1, 9, size=SIZE)
    assert columns_equal_to(lengths + 1, [{"z" + "x" * int(k), *names(10**9, 3)} for k in lengths])


def test_usual_keys_are_read_key_by_key_alone():
    reader = Reader.learn([from_objects([{"a": v, "b": "x"} for v in NUMBERS.tolist()])])
    assert not any("items" in path for path in reader.wanted)


@pytest.mark.parametrize(
    "form",
    [list, lambda rows: [{"name": n, "value": v} for n, v in rows], lambda rows: "&".join(f"{n}={v}" for n, v in rows)],
)
def test_what_stands_behind_a_name_is_read_wherever_it_stands(form):
    rows = [[("b", v), *((name, -9.0) for name in "acde")] for v in NUMBERS.tolist()]
    assert columns_equal_to(NUMBERS, [form([own[k] for k in RNG.permutation(5)]) for own in rows])
    in_order = Reader.learn([from_objects([form(own) for own in rows])])
    assert not any("by name" in path for path in in_order.wanted)
