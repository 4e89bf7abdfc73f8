"""The contract of a reader: what it holds of an output is a function of this output and of the frozen reader alone.

To the last bit, whatever else is in the batch, wherever the output stands in it, and in which form the batch is held.
Then reading is post-processing of single outputs, and cannot make a sound mechanism look unsound. A frozen predictor
asks another thing: a reader reads back from its data as the same function. Twins that break the contract are caught.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import fractions
import json
import math

import numpy as np
import pandas as pd
import pytest

from dpaudit.features import reader as reader_module
from dpaudit.features.outcomes import Outcomes, join, read_outputs
from dpaudit.features.reader import Memory, Reader
from dpaudit.subjects.call_outcomes import Ended, Failed, noted

RNG = np.random.default_rng(20_261_128)


class Label(str):
    """A text of somebody's own class."""


@dataclasses.dataclass
class Release:
    value: float
    note: object


# In each group outputs that one mechanism might return; a reader is learned on several of each.
GROUPS = {
    "numbers": [1.5, -0.0, 0.0, math.nan, math.inf, 2, True, np.float32(0.1), np.int64(3), np.bool_(False)],
    "large integers": [2**53, 2**53 + 1, 2**70, 10**400, -(10**400), 7, 1.5, np.int64(2**60), np.uint64(2**63)],
    "odd numbers": [1 + 2j, np.complex64(1j), decimal.Decimal("1.50"), decimal.Decimal("NaN"), decimal.Decimal("1e999"),
                    fractions.Fraction(10**400, 3), np.longdouble("0.1"), np.datetime64("2026-11-21"),
                    np.timedelta64(5, "s"), datetime.date(2026, 11, 21)],
    "vectors": [[1.0, 2.0], (1.0, 2.0), np.array([1.0, 2.0]), [1, 2], np.array([1, 2], np.int8), [3.0, 4.0, 5.0],
                np.array([[1.0, 2.0]]), [[1.0, 2.0]], [[1, 2]], [True, False], np.float32([0.1, 0.2]), [1.0, None]],
    "lists": [[1.0, None, 3.0], [1.0, 2.0, "a"], [1, 2, 2**60], [1, 2, 3], [], (), np.array([]), np.zeros((0, 3)),
              [[]], [None, None, None], [[1, 2], [3]], [[1.0, 2.0], [3.0, 4.0]], [np.array([1.0]), None], [0.5] * 70],
    "arrays inside": [{"v": np.arange(3)}, {"v": np.arange(3.0)}, {"v": np.float32([0.1])}, {"v": np.array(5.0)},
                      {"v": np.array([2**60, 1])}, {"v": [0, 1, 2]}, {"v": np.array(["a", "b"])}, {"v": np.array([1j])},
                      {"v": np.arange(3)[None]}, {"v": np.array(["2026-11-21"], dtype="datetime64[D]")}],
    "dictionaries": [{"a": 1.0, "b": 2}, {"b": 2, "a": 1.0}, {"a": 1}, {}, {"a": None, "c": [1.0, 2.0]}, {"a": "x"},
                     {1: "p", 2: "q"}, {True: "p"}, {1.0: "p", "1": "q"}, {(1, 2): 0.5}, {None: 1, math.nan: 2},
                     {"a": {"b": {"c": 1.5}}}, {"a": {"b": [1, "z"]}}],
    "texts": ["", "a", "ab", "b", "value 1.5", "value -2", "A B", "\ud800x", "x" * 300, "é\U0001f600 z", "12",
              "1e999", noted("ab", {"class": "Label"})],
    "written": ['{"a": 1, "b": [1.5, 2]}', '{"b": [1.5, "z"], "a": 1}', "[1, 2]", '"text"', "a,b\n1,2\n3,4", "a,b\n1,x",
                "2026-11-21T08:30:00+02:00", "2026-11-21", "deadbeef00", "0x1f", "aGVsbG8gd29ybGQ=", "x y z", "{broken",
                "one\ntwo"],
    "residuals": [collections.deque([1.0, 2.0], 3), collections.Counter("ab"), collections.OrderedDict(b=1, a=2),
                  np.ma.array([1.0, 2.0], mask=[1, 0]), np.ma.array([1.0, 2.0]), np.ones((2, 2), order="F"),
                  np.asmatrix([[1.0, 2.0]]), pd.Series([1.0, 2.0]), pd.Series([1.0], name="v"), range(2), slice(1),
                  np.array([(1.0, 2.0)], dtype=[("x", "f8"), ("y", "f8")])[0], ValueError("a", 1), bytearray(b"ab"),
                  pd.Categorical(["a"], categories=["a", "b"]), np.array([1.0, 2.0], dtype=object)],
    "bytes": [b"", b"ab", np.float64([1.5, 2.5]).tobytes(), b"\x1f\x8b broken", bytearray(b"cd"), b"x" * 300],
    "sets": [set(), {1, 2}, {2, 1}, frozenset({1, 2}), {"a", 10**400}, {(1, 2)}, {math.nan, 1.5}],
    "objects": [Release(1.5, "a"), Release(2, None), pd.Series([1.0, 2.0], name="v"), pd.Series(["a", "b"]),
                pd.DataFrame({"n": [1, 2], "t": ["x", None]}), pd.Series(["a"], dtype=pd.CategoricalDtype(["a", "b"])),
                np.ma.array([1.0, 2.0], mask=[False, True]), Label("ab"), object],
    "failures": [Failed("ValueError", "no 1.5"), Failed("KeyError", "a"), Ended("time-out", ""), None, 1.5],
    "records": [[{"n": 1, "t": "a"}, {"n": 2, "t": "b"}], [{"n": 1.5}], [{"n": 1, 1: 2, "1": 3}, {"n": 2}], [("a", 1)],
                [("a", 1), ("b", 2)], [("a", "b"), ("b", "c"), ("a", "c")], [(0.0, 0.0), (3.0, 4.0), (0.0, 0.0)],
                [1, "a", None], [1, "a", None, 2**60], ["a", "b", "a"], [["a"], [1]]],
}  # fmt: skip
ALL = [output for group in GROUPS.values() for output in group]
for shape in [(42,), (20, 3), (2, 4, 3), (5, 2)]:  # sequences that go together have columns of their own
    GROUPS[f"arrays of {shape}"] = [np.full(shape, np.nan), *RNG.normal(size=(8, *shape))]


def bits(matrix):
    return [np.where(np.isnan(row), math.nan, row).tobytes() for row in matrix]


def read(reader, outputs):
    return bits(reader(read_outputs(list(outputs), len(outputs))))


def reader_of(outputs):
    several = [outputs[k] for k in RNG.integers(len(outputs), size=6 * len(outputs))]
    half = len(several) // 2
    return Reader.learn((read_outputs(several[:half], half), read_outputs(several[half:], len(several) - half)))


READERS = {**{name: reader_of(group) for name, group in GROUPS.items()}, "all": reader_of(ALL)}


def each_output_is_read_by_itself(reader, outputs):
    alone = [read(reader, [output])[0] for output in outputs]
    assert read(reader, outputs) == alone
    assert read(reader, outputs[::-1]) == alone[::-1]
    for size in (2, 3, 7):  # small batches of other compositions
        for start in range(0, len(outputs), size):
            some = outputs[start : start + size]
            assert read(reader, some) == alone[start : start + size]
    order = np.random.default_rng(len(outputs)).permutation(len(outputs)).tolist()
    assert read(reader, [outputs[k] for k in order]) == [alone[k] for k in order]


def parts_of_a_batch_are_read_as_the_whole(reader, outputs):
    whole = read_outputs(list(outputs), len(outputs))
    rows = [whole.rows(slice(k, k + 1)) for k in range(len(whole))]
    assert [bits(reader(row))[0] for row in rows] == bits(reader(whole))
    assert bits(reader(join(rows[::-1]))) == bits(reader(whole))[::-1]


def it_looks_at_outputs_and_leaves_them(reader, outputs):
    whole = read_outputs(list(outputs), len(outputs))
    before = whole.numbers.copy(), repr(whole.raw)
    assert bits(reader(whole)) == bits(reader(whole))
    np.testing.assert_array_equal(whole.numbers, before[0])
    assert repr(whole.raw) == before[1]


def none_is_none(reader, outputs):
    assert reader(read_outputs(list(outputs), len(outputs)).rows(slice(0, 0))).shape == (0, len(reader.names))


def every_column_has_a_name_of_its_own(reader, outputs):
    names = reader.names
    assert names and all(names) and len(set(names)) == len(names) and 0 < reader.n_read <= len(names)
    assert reader(read_outputs(list(outputs), len(outputs))).shape[1] == len(names)


def it_reads_back_as_the_same_function(reader, outputs):
    again = Reader.from_dict(json.loads(json.dumps(reader.to_dict(), allow_nan=False)))
    assert again == reader and read(again, outputs) == read(reader, outputs)


CONTRACT = [
    each_output_is_read_by_itself,
    parts_of_a_batch_are_read_as_the_whole,
    it_looks_at_outputs_and_leaves_them,
    none_is_none,
    every_column_has_a_name_of_its_own,
    it_reads_back_as_the_same_function,
]


@pytest.mark.parametrize("holds", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", READERS)
def test_the_contract_of_readers(name, holds):
    holds(READERS[name], GROUPS.get(name, ALL))


def test_batches_of_other_shapes_are_no_numbers_of_one_form():
    first, second = (read_outputs(np.ones((50, *shape)), 50) for shape in ((3,), (1, 3)))
    reader = Reader.learn((first, second))
    assert bits(reader(first))[0] != bits(reader(second))[0]


def test_a_memory_holds_what_the_reader_reads_of_outputs_that_grow(monkeypatch):
    outputs = [*GROUPS["dictionaries"], *GROUPS["written"], *GROUPS["residuals"]] * 2
    reader, other, memory = reader_of(outputs), reader_of(outputs[:9]), Memory()
    outcomes = read_outputs(outputs, len(outputs))
    parts = [outcomes.rows(slice(0, k)) for k in (5, 5, 20, 90)]
    grown = [(reader, one) for one in parts]
    shorter, others = [(reader, parts[1])], [(other, parts[2]), (reader, read_outputs(outputs[::-1], len(outputs)))]
    numbers = [
        (reader, read_outputs([1.5, 2.5], 2)),
        (reader, read_outputs([2.5, 3.5], 2)),
        (reader, read_outputs([], 0)),
    ]
    for known, one in [*grown, *shorter, *others, *numbers, *grown]:
        assert memory(known, one).tobytes() == known(one).tobytes()
    assert memory(reader, parts[3]) is memory(reader, parts[3])  # nothing is read again
    monkeypatch.setattr(reader_module, "SIZES", dataclasses.replace(reader_module.SIZES, max_remembered=50))
    for known, one in grown:
        assert memory(known, one).tobytes() == known(one).tobytes()
    assert memory(reader, parts[3]) is not memory(reader, parts[3])


# --- twins ---


class Centred(Reader):
    """Takes the mean of the batch away."""

    def __call__(self, outcomes):
        matrix = super().__call__(outcomes)
        return matrix - np.nanmean(np.where(np.isfinite(matrix), matrix, 0.0), axis=0)


class Numbered(Reader):
    """Shows the place in the batch."""

    def __call__(self, outcomes):
        matrix = super().__call__(outcomes)
        matrix[:, 0] = np.arange(len(matrix))
        return matrix


class ByForm(Reader):
    """Reads numbers in another way where nothing else is in the batch."""

    def __call__(self, outcomes):
        return super().__call__(outcomes) + (outcomes.tokens is None)


class Cuts(Reader):
    """Writes into what it was shown."""

    def __call__(self, outcomes):
        outcomes.numbers[:] = -1.0
        return super().__call__(outcomes)


class NeedsOne(Reader):
    """Has nothing to show of no outputs."""

    def __call__(self, outcomes):
        outcomes.numbers[0]
        return super().__call__(outcomes)


class OneName(Reader):
    """Calls all columns by one name."""

    @property
    def names(self):
        return ["a number"] * len(super().names)


class Forgets(Reader):
    """Leaves columns out when it is saved."""

    def to_dict(self):
        return {**super().to_dict(), "keys": []}


TWINS = [
    (Centred, each_output_is_read_by_itself),
    (Numbered, parts_of_a_batch_are_read_as_the_whole),
    (ByForm, each_output_is_read_by_itself),
    (Cuts, it_looks_at_outputs_and_leaves_them),
    (NeedsOne, none_is_none),
    (OneName, every_column_has_a_name_of_its_own),
    (Forgets, it_reads_back_as_the_same_function),
]


@pytest.mark.parametrize(("twin", "broken"), TWINS, ids=lambda part: part.__name__)
def test_a_twin_that_breaks_the_contract_is_caught(twin, broken):
    outputs = [1.5, 2.5, "a text", None, 0.5, "another"]
    known = reader_of(outputs)
    fields = {field.name: getattr(known, field.name) for field in dataclasses.fields(Reader)}
    broken(known, outputs)
    with pytest.raises((AssertionError, IndexError)):
        broken(twin(**fields), outputs)


def test_outcomes_of_this_test_are_of_both_forms():
    forms = {read_outputs(list(group), len(group)).tokens is None for group in ([1.5], [1.5, "a"])}
    assert forms == {True, False} and isinstance(read_outputs([1.5], 1), Outcomes)
