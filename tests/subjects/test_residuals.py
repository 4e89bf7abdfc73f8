"""Residuals of one form are worked out once, and what is read of an output does not depend on earlier ones.

Each table is read with the memory of all before it, and with none; both must be the same to the last bit. The tables
are random, and close to each other: of few forms, with hidden parts that differ in one of them.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from dpaudit.subjects import plain, residual
from dpaudit.subjects.call_outcomes import Noted, Opaque
from dpaudit.subjects.plain import TRAVERSAL, seen
from dpaudit.subjects.residual import Forms

SEED = 20_261_130
FORMS = 100


class Named(pd.DataFrame):
    """A table with an attribute that it hands over."""

    _metadata = ["source"]  # noqa: RUF012 - as pandas asks for


class Hidden(pd.DataFrame):
    """A table with an attribute that it does not hand over."""


class View(np.ndarray):
    """An array with attributes, which pickle leaves out."""


class Odd:
    """An object that says by itself what pickle carries, and holds an object that does not."""

    def __init__(self, value):
        self.value = value

    def __reduce__(self):
        return Odd, (self.value,)


class Counting:
    """An object that hands over its value at the second time alone."""

    def __init__(self, value):
        self.value, self.asked = value, 0

    def __getstate__(self):
        self.asked += 1
        return {"value": self.value if self.asked > 1 else 0}


class Changed(enum.Enum):
    """A member whose value a program may change."""

    A = ["a"]  # noqa: RUF012


@dataclasses.dataclass
class Release:
    table: object
    count: int


def view(numbers, **attributes):
    array = np.asarray(numbers).view(View)
    vars(array).update(attributes)
    return array


def fixed(numbers, flag=False):
    numbers.flags.writeable = flag
    return numbers


def mixed(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


COLUMNS = [
    lambda rng, n: rng.normal(size=n),
    lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.integers(0, 2, n) + 0.5),
    lambda rng, n: rng.integers(0, 3, n),
    lambda rng, n: rng.integers(0, 2, n).astype(bool),
    lambda rng, n: rng.normal(size=n).astype(np.float32),
    lambda rng, n: rng.normal(size=n) + 1j,
    lambda rng, n: pd.array(rng.choice(["ab", "c", "source"], n).tolist(), dtype="str"),
    lambda rng, n: pd.array([("x", None)[k] for k in rng.integers(0, 2, n)], dtype="string"),
    lambda rng, n: mixed([(1, "ab", None, 2.5, True)[k] for k in rng.integers(0, 5, n)]),
    lambda rng, n: mixed([((1, 2), [1.5], {"a": 1}, datetime.date(2026, 1, 1), 1.5)[k] for k in rng.integers(0, 5, n)]),
    lambda rng, n: pd.Categorical(rng.choice(["u", "v"], n).tolist(), ["u", "v", "w"][: 2 + rng.integers(2)]),
    lambda rng, n: pd.Categorical(rng.choice(["u", "v"], n).tolist(), ["u", "v"], ordered=bool(rng.integers(2))),
    lambda rng, n: pd.to_datetime(rng.integers(0, 3, n), unit="s"),
    lambda rng, n: pd.to_datetime(rng.integers(0, 3, n), unit="s", utc=True).tz_convert("Europe/Vienna"),
    lambda rng, n: pd.array([(pd.NaT, datetime.datetime(2026, 1, 1))[k] for k in rng.integers(0, 2, n)], "M8[us]"),
    lambda rng, n: pd.to_timedelta(rng.integers(0, 3, n), unit="h"),
    lambda rng, n: pd.period_range("2026-01", periods=n, freq="MD"[rng.integers(2)]),
    lambda rng, n: pd.array([(None, 2)[k] for k in rng.integers(0, 2, n)], dtype="Int64"),
    lambda rng, n: pd.array([(None, 2.5)[k] for k in rng.integers(0, 2, n)], dtype="Float64"),
    lambda rng, n: pd.arrays.SparseArray(np.where(rng.random(n) < 0.5, 0.0, 1.5), fill_value=rng.integers(2) * 1.0),
    lambda rng, n: pd.arrays.IntervalArray.from_breaks(np.arange(n + 1.0), closed=("left", "right")[rng.integers(2)]),
    lambda rng, n: pd.array([(None, decimal.Decimal("1.5"))[k] for k in rng.integers(0, 2, n)], dtype=object),
]  # fmt: skip
INDEXES = [
    lambda rng, n: None,
    lambda rng, n: None,
    lambda rng, n: pd.RangeIndex(1, n + 1),
    lambda rng, n: pd.Index(list("abcdefg")[:n], name=(None, "ab", "source")[rng.integers(3)]),
    lambda rng, n: pd.Index(rng.normal(size=n), name="noise"),
    lambda rng, n: pd.Index(["a"] * n),
    lambda rng, n: pd.date_range("2026-01-01", periods=n, freq="Dh"[rng.integers(2)]),
    lambda rng, n: pd.MultiIndex.from_arrays([list("aabbccd")[:n], list("uvuvuvu")[:n]], names=["g", "ab"]),
    lambda rng, n: pd.MultiIndex(levels=[list("abcdefgz")[: 7 + rng.integers(2)]], codes=[range(n)]),
]  # fmt: skip
ATTRIBUTES = [
    lambda rng, table: None,
    lambda rng, table: 0.5,
    lambda rng, table: table.iloc[0, 0],
    lambda rng, table: ("ab", "xy")[rng.integers(2)],
    lambda rng, table: [1.5, "ab", None],
    lambda rng, table: {"ab": table.iloc[:, 0].tolist() if rng.integers(2) else [0.5]},
    lambda rng, table: np.arange(2.0) + rng.integers(2),
    lambda rng, table: fixed(np.arange(2.0), bool(rng.integers(2))),
    lambda rng, table: fixed(mixed(["ab", 1]), bool(rng.integers(2))),
    lambda rng, table: np.ones((2, 2), order="CF"[rng.integers(2)]),
    lambda rng, table: view([1.0, 2.0], of=int(rng.integers(2))),
    lambda rng, table: np.ma.array([1.0, 2.0], mask=[0, rng.integers(2)]),
    lambda rng, table: datetime.datetime(2026, 1, 1, fold=int(rng.integers(2))),
    lambda rng, table: np.dtype("f8", metadata={"a": int(rng.integers(2))}),
    lambda rng, table: np.array([1.5], dtype=np.dtype("f8", metadata={"a": int(rng.integers(2))})),
    lambda rng, table: np.sum,
    lambda rng, table: lambda: None,
    lambda rng, table: np.random.default_rng(int(rng.integers(2))),
    lambda rng, table: ValueError("a").with_traceback(None),
    lambda rng, table: Odd(view([1.0], of=int(rng.integers(2)))),
    lambda rng, table: Odd([Odd("ab")] * 2 if rng.integers(2) else [Odd("ab"), Odd("ab")]),
    lambda rng, table: b"ab",
    lambda rng, table: (pa.array if rng.integers(2) else lambda items: pa.chunked_array([items]))(["ab", "c"]),
    lambda rng, table: Counting(int(rng.integers(2))),
    lambda rng, table: Changed.A,
    lambda rng, table: table,
]  # fmt: skip


def table_of(choose, rng):
    """A table whose form one generator chooses, and what it holds another one."""
    n = int(choose.choice([0, 1, 2, 3]))
    columns = choose.choice(len(COLUMNS), size=choose.integers(1, 3)).tolist()
    table = pd.DataFrame({name: COLUMNS[k](rng, n) for name, k in zip(["ab", "n"], columns, strict=False)})
    index = INDEXES[choose.integers(len(INDEXES))](rng, n)
    if index is not None:
        table.index = index
    if choose.random() < 0.1:
        table.columns = ["d"] * table.shape[1]
    if choose.random() < 0.1:
        table.columns.name = ("ab", "x")[rng.integers(2)]
    if choose.random() < 0.1 and table.columns.is_unique and table.index.is_unique:
        table.flags.allows_duplicate_labels = bool(rng.integers(2))
    kind = choose.integers(12)
    if kind < 2:
        table = (Named, Hidden)[kind](table)
        object.__setattr__(table, "source", ("ab", 1.5)[rng.integers(2)])
    if n and choose.random() < 0.7:
        table.attrs = {"mark": ATTRIBUTES[choose.integers(len(ATTRIBUTES))](rng, table.copy())}
    if kind == 2:
        table = table.iloc[:, 0]
    if kind == 3:
        table = Release(table, 2)
    return {"t": table, "of": [table.copy()]} if kind == 4 else table


def tables():
    """Four tables of each form, none next to another one of its form."""
    rng = np.random.default_rng(SEED)
    return [table_of(np.random.default_rng([SEED, k]), rng) for _ in range(4) for k in range(FORMS)]


def written(value):
    """All of plain data, as a text."""
    if isinstance(value, Noted):
        return f"{written(value.bare)} with {written(value.beside)}"
    if isinstance(value, Opaque):
        return f"{value.kind} {value.text!r} {written(value.state)} with {written(value.beside)}"
    if isinstance(value, np.ndarray | np.generic):
        order = value.flags.fnc, value.flags.writeable
        return f"{value.dtype!r} {value.dtype.metadata} {value.shape} {order} {value.tobytes().hex()}"
    if type(value) is dict:
        return "{" + ", ".join(f"{written(key)}: {written(item)}" for key, item in value.items()) + "}"
    if type(value) in (list, tuple):
        return f"{type(value).__name__}[{', '.join(map(written, value))}]"
    if type(value) in (set, frozenset):
        return f"{type(value).__name__}{{{', '.join(sorted(map(written, value)))}}}"
    return f"{type(value).__name__} {value!r}"


@pytest.fixture(scope="module")
def alone():
    """The tables, and what is read of each by itself."""
    outputs = tables()
    for output in outputs:  # pandas keeps what it worked out of types
        seen(output)
    with pytest.MonkeyPatch.context() as patch:
        found = []
        for output in outputs:
            patch.setattr(TRAVERSAL, "forms", Forms())
            found.append((output, written(seen(output))))
    return found


def differences(monkeypatch, alone, forms=Forms):
    """Tables of which something else is read after others than by themselves, one after the other."""
    monkeypatch.setattr(TRAVERSAL, "forms", forms())
    return (output for output, known in [*alone, *alone[::-1]] if written(seen(output)) != known)


def test_tables_are_read_as_by_themselves_whatever_was_read_before(monkeypatch, alone):
    assert not list(differences(monkeypatch, alone))


FORGETFUL = {
    "numbers that were not read": lambda value, known: residual.form_of(value, Everything(known.read)),
    "attributes": lambda value, known: residual.form_of(getattr(value, "_mgr", value), known),
    "all but the class": lambda value, known: b"form",
}


class Everything(residual.Known):
    """Takes all arrays for known."""

    def array(self, array):
        return tuple, (array.dtype, array.shape, array.flags.fnc, array.flags.writeable)


@pytest.mark.parametrize("name", FORGETFUL)
def test_a_form_that_leaves_something_out_is_caught(name, monkeypatch, alone):
    class Forgetful(Forms):
        def residual(self, value, known, where, work_out):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(residual, "form_of", form_of)
                return super().residual(value, known, where, work_out)

    whole, chosen = residual.form_of, FORGETFUL[name]

    def form_of(value, known):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(residual, "form_of", whole)
            return chosen(value, known)

    assert next(differences(monkeypatch, alone, Forgetful), None) is not None


def test_what_is_asked_of_an_output_is_part_of_its_form(monkeypatch):
    """The name of an index is left out where it is in the table as well."""
    monkeypatch.setattr(TRAVERSAL, "forms", Forms())
    outputs = [pd.DataFrame({"a": [text, "zz"]}, pd.Index([1, 2], name="ab")) for text in ("ab", "xy", "ab")]
    first, other, last = (written(seen(output)) for output in outputs)
    assert "'ab'" in other.partition("with")[2]
    assert first == last and first.count("'ab'") == last.count("'ab'") == 1


def test_what_a_class_hands_over_is_asked_once_whatever_was_read_before(monkeypatch):
    """What an object of another package holds is not remembered, which may change where its bytes do not."""
    monkeypatch.setattr(TRAVERSAL, "forms", Forms())
    read = []
    for value in (5, 7):
        table = pd.DataFrame({"a": [1.5]})
        table.attrs = {"counted": Counting(value), "member": Changed.A}
        Changed.A.value[0] = value
        read.append(written(seen(table)))
    assert "'value'" in read[0] and "int 5" in read[0] and "int 7" in read[1]


def test_what_is_remembered_is_small(monkeypatch):
    monkeypatch.setattr(TRAVERSAL, "forms", Forms())
    for k in range(3):
        seen(pd.DataFrame({"text": [f"{'long ' * 20}{i + k}" for i in range(2_000)]}))
    assert not TRAVERSAL.forms.known


@pytest.mark.parametrize(
    "make",
    [
        lambda rng: pd.DataFrame({"cell": ["a", "b"], "count": rng.normal(size=2)}),
        lambda rng: pd.DataFrame({"x": rng.normal(size=3)}, pd.Index(["a", "b", "c"], name="g")),
        lambda rng: pd.DataFrame({"d": pd.Categorical(["u", "v"]), "x": rng.normal(size=2)}),
        lambda rng: pd.DataFrame({"x": rng.normal(size=2)}, pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])),
        lambda rng: pd.Series(rng.normal(size=3), ["a", "b", "c"], name="s"),
        lambda rng: {"t": pd.DataFrame({"x": rng.normal(size=2)})},
        lambda rng: pd.DataFrame({"day": pd.date_range("2026-01-01", periods=7), "x": rng.normal(size=7)}),
    ],
)
def test_the_residual_of_a_form_is_worked_out_once(make, monkeypatch):
    monkeypatch.setattr(TRAVERSAL, "forms", Forms())
    rng, calls = np.random.default_rng(1), []
    for _ in range(3):  # classes of pyarrow are known from the first one on
        seen(make(rng))
    monkeypatch.setattr(plain, "held", calls.append)
    for _ in range(5):
        seen(make(rng))
    assert not calls
