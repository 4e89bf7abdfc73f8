"""What other libraries made: read by what it holds, kept as what it holds, and found where it gives the input away."""

import datetime
import json
import math
import types

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.features.outcomes import canonical, read_outputs
from dpaudit.inference.low_bit_rules import choose_columns
from dpaudit.running.plain_data import from_data, outcomes_as_bytes, outcomes_from_bytes, to_data
from dpaudit.subjects import foreign
from dpaudit.subjects.foreign import own, own_batch

DAY = datetime.date(2026, 11, 21)
MOMENT = datetime.datetime(2026, 11, 21, 8, 30, 0, 5)
EAST = datetime.timezone(datetime.timedelta(hours=2))


class Tensor:
    """An array of another library, which numpy can read unless it is on a device."""

    def __init__(self, values, on_device=False):
        self.values, self.on_device = values, on_device

    def __array__(self, dtype=None, copy=None):
        if self.on_device:
            raise TypeError("it is on a device")
        return np.array(self.values, dtype=dtype)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime.date(1970, 1, 2), 1),
        (DAY, int(np.datetime64(DAY).astype(int))),
        (MOMENT, int(np.datetime64(MOMENT, "us").astype(int))),
        (MOMENT.replace(tzinfo=EAST), [int(np.datetime64(MOMENT, "us").astype(int)) - 7_200_000_000, 7_200_000_000]),
        (datetime.time(0, 1), 60_000_000),
        (datetime.timedelta(days=-1), -86_400_000_000),
        (pd.Timestamp(MOMENT), int(np.datetime64(MOMENT, "us").astype(int))),
        (pd.Series([1.5, "a"]), [1.5, "a"]),
        (pd.Series({"a": 1, "b": 2}), {"a": 1, "b": 2}),
        (pd.Series([1, 2], index=["a", "a"]), [["a", 1], ["a", 2]]),
        (pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), {"a": [1, 2], "b": ["x", "y"]}),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), [["a", [1]], ["a", [2]]]),
        (pd.DataFrame({"n": [3]}, index=["k"]), {"n": {"k": 3}}),
    ],
    ids=str,
)
def test_an_output_is_read_by_what_it_holds(value, expected):
    assert own(value) == expected
    assert canonical(value) == canonical(expected)


def test_what_numpy_can_read_is_its_array_and_what_it_cannot_stays():
    assert own(Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    for value in (Tensor([1.0], on_device=True), object(), "text", (1, 2), Tensor, pd.NaT):
        assert own(value) is value


def test_tables_of_polars_are_read_without_importing_it(monkeypatch):
    class Series:
        def __init__(self, values):
            self.values = values

        def to_list(self):
            return self.values

    class DataFrame:
        columns, shape = ["a", "b"], (2, 2)

        def __getitem__(self, place):
            return Series([[1, 2], ["x", "y"]][place[1]])

    # A stand-in with the three names that are used: the library itself is no dependency.
    monkeypatch.setitem(foreign.sys.modules, "polars", types.SimpleNamespace(DataFrame=DataFrame, Series=Series))
    assert own(DataFrame()) == {"a": [1, 2], "b": ["x", "y"]}
    assert own(Series([1.0, None])) == [1.0, None]


def test_the_rows_of_a_table_are_the_outputs_of_a_batch():
    numbers = own_batch(pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]}))
    assert read_outputs(numbers, 3).numbers.tolist() == [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
    mixed = own_batch(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}))
    assert read_outputs(mixed, 2).tokens.tolist() == ["[1.0,'x']", "[2.0,'y']"]
    assert own_batch(Tensor([[1.0], [2.0]])).shape == (2, 1)


def test_numbers_inside_tables_are_looked_at_by_the_floating_point_check():
    outcomes = read_outputs([pd.DataFrame({"mean": [0.25]}), pd.DataFrame({"mean": [0.5]})], 2)
    columns = choose_columns(outcomes, outcomes)
    assert columns(outcomes).tolist() == [[0.25], [0.5]] and columns.words(0) == "with an entry ['mean'][0] "


@pytest.mark.parametrize("value", [DAY, MOMENT, {"at": MOMENT}, [pd.Series({"a": 1.0})], Tensor([1.0, 2.0])])
def test_what_is_kept_reads_as_the_output_did(value):
    read = read_outputs([value, None], 2)
    assert outcomes_from_bytes(outcomes_as_bytes(read)).tokens.tolist() == read.tokens.tolist()
    assert canonical(from_data(json.loads(json.dumps(to_data(value))))) == canonical(value)


def moments(data, size, rng):
    return [MOMENT + datetime.timedelta(hours=float(value)) for value in data + rng.laplace(size=size)]


def records(data, size, rng):
    days = 3 * np.floor(data + rng.laplace(size=size))
    return [{"at": DAY + datetime.timedelta(days=value), "by": "a"} for value in days.tolist()]


def tables(data, size, rng):
    return [pd.DataFrame({"n": [0.0, value]}) for value in data + rng.laplace(size=size)]


def frames(data, size, rng):
    return pd.DataFrame({"n": rng.normal(size=size), "sum": data + rng.laplace(size=size)})


# One audit each at a fixed seed. A sound one is accused with probability 5% at most; the other's loss is 3 over 1.
@pytest.mark.parametrize("mechanism", [moments, records, tables, frames])
def test_shifted_outputs_are_found_and_sound_ones_are_not_accused(mechanism):
    stated = {"samples": 600, "seed": 5, "floating_point": False}
    assert dpaudit.audit(mechanism, "eps=1", [(0.0, 3.0)], **stated).verdict == "violated"
    assert dpaudit.audit(mechanism, "eps=3", [(0.0, 1.0)], **stated).verdict != "violated"


def test_a_table_holds_what_each_of_its_columns_holds():
    columns = {
        "float": [0.5, math.nan, 1e300],
        "short": np.array([0.1, 2.0, 3.0], dtype=np.float32),
        "integer": [1, 2**62, -3],
        "flag": [True, False, True],
        "text": ["a", "b", None],
        "moment": pd.to_datetime(["2020-01-01", "2021-02-03", None]),
        "span": pd.to_timedelta([1, 2, 3], unit="s"),
        "maybe": pd.array([1, None, 3], dtype="Int64"),
        "kind": pd.Categorical(["u", "v", "u"]),
        "mixed": [1, "x", (2.0,)],
        "complex": [1j, 2.0, 3.0],
    }
    table = pd.DataFrame(columns)
    of_columns = {name: own(table[name]) for name in table}
    found = own(table)
    assert list(found) == list(of_columns)
    for name, values in of_columns.items():
        assert [type(value) for value in found[name]] == [type(value) for value in values], name
        assert repr(found[name]) == repr(values), name
    labelled = {name: dict(zip([5, 6, 7], one, strict=True)) for name, one in found.items()}
    assert repr(own(table.set_axis([5, 6, 7]))) == repr(labelled)
    assert own(pd.DataFrame({"a": []})) == {"a": []} and own(pd.DataFrame()) == {}
    twice = pd.DataFrame([[1, 2.5]], columns=["a", "a"])
    assert own(twice) == [["a", [1]], ["a", [2.5]]]
