"""Of two outputs that differ in anything, a column tells them apart, or the report names what is not read."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import enum
import functools
import gzip
import io
import json
import math
import operator
import os
import pathlib
import re
import subprocess
import sys
import types
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dpaudit.features.identity import identity
from dpaudit.features.outcomes import canonical, read_outputs
from dpaudit.features.reader import Reader
from dpaudit.features.unread import unread
from dpaudit.running.plain_data import outcomes_as_bytes, outcomes_from_bytes
from dpaudit.subjects.call_outcomes import Noted, Opaque
from dpaudit.subjects.iterators import read_whole
from dpaudit.subjects.plain import PlainWriter, packed, seen, unpacked
from dpaudit.subjects.residual import Known

BASES = {"Whole": int, "Real": float, "Words": str, "Letters": bytes, "Several": list, "Named": dict, "Unordered": set,
         "Measured": np.ndarray}  # fmt: skip
# Classes of somebody's own, whose objects may have attributes.
Whole, Real, Words, Letters, Several, Named, Unordered, Measured = (
    type(name, (base,), {"__module__": __name__}) for name, base in BASES.items()
)


class Grade(enum.IntEnum):
    """Numbers of names."""

    GOOD = 1


class Rank(enum.IntEnum):
    """The same numbers of other names."""

    FIRST = 1


class Row(collections.namedtuple("Row", "a b")):
    """A record with attributes."""


@dataclasses.dataclass
class Record:
    """A record that hides a field from its printed form."""

    v: float
    hidden: int = dataclasses.field(default=0, repr=False, compare=False)


class Hidden:
    """What only pickle sees."""

    __slots__ = ()

    def __init__(self, bit):
        HIDDEN[id(self)] = self, bit

    def __reduce__(self):
        return Hidden, (HIDDEN[id(self)][1],)

    def __repr__(self):
        return "Hidden()"


def attributed(value, bit):
    value.bit = bit
    return value


def changed(change, value):
    change(value)
    return value


def raised(bit):
    error = ValueError("a")
    error.__cause__ = KeyError(bit)
    return error


def answers(n, bit):
    yield n
    return bit


def frame(n, **columns):
    return pd.DataFrame({"n": [n, 1.0], "t": ["x", "y"], **columns})


def levels(names, **options):
    return pd.Series(["a", "b"], dtype=pd.CategoricalDtype(list(names), **options))


def zone(name):
    return datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(0), name))


HERE = pathlib.Path(__file__).parent
FIELDS = [("x", "f8"), ("y", "f8")]
DAYS = ["2026-01-01", "2026-01-02", "2026-01-03"]
HIDDEN = {}
SAFE = (uuid.SafeUUID.unknown, uuid.SafeUUID.safe)

# Outputs by a bit and a number that is noise: what differs between bits is in the name.
FORMS = {
    "under a mask": lambda b, n: np.ma.array([5.0 + b, n], mask=[1, 0]),
    "fill value": lambda b, n: np.ma.array([1.0, n], mask=[1, 0], fill_value=7.0 + b),
    "hard mask": lambda b, n: np.ma.array([1.0, n], mask=[1, 0], hard_mask=bool(b)),
    "mask of nothing": lambda b, n: np.ma.array([1.0, n], mask=[0, 0] if b else np.ma.nomask),
    "masked or not": lambda b, n: np.ma.array([1.0, n]) if b else np.array([1.0, n]),
    "masked record": lambda b, n: np.ma.array([(5.0 + b, n)], mask=[(1, 0)], dtype=FIELDS),
    "precision": lambda b, n: (np.float32, np.float64)[b](round(n)),
    "precision of an array": lambda b, n: np.array([round(n), 1], dtype=("f4", "f8")[b]),
    "precision inside": lambda b, n: {"v": (np.float32, np.float64)[b](round(n))},
    "size of an integer inside": lambda b, n: {"v": n, "k": (np.int8, np.int64)[b](3)},
    "byte order": lambda b, n: np.array([n, 1.0], dtype=(">f8", "<f8")[b]),
    "byte order inside": lambda b, n: {"v": np.array([n, 1.0], dtype=(">f8", "<f8")[b])},
    "shape": lambda b, n: np.array([n, 1.0, 2.0]).reshape([(3,), (1, 3)][b]),
    "no dimension": lambda b, n: [np.float64, np.array][b](n),
    "no dimension inside": lambda b, n: {"v": [np.float64, np.array][b](n)},
    "memory order": lambda b, n: np.array([[n, 1.0], [2.0, 3.0]], order="CF"[b]),
    "memory order inside": lambda b, n: {"v": np.array([[n, 1.0], [2.0, 3.0]], order="CF"[b])},
    "read-only": lambda b, n: changed(lambda one: one.setflags(write=not b), np.array([n, 1.0])),
    "class of an array": lambda b, n: [np.asarray, np.asmatrix][b]([[n, 1.0]]),
    "attribute of an array": lambda b, n: attributed(np.array([n, 1.0]).view(Measured), b),
    "record array": lambda b, n: np.array([(n, 1.0)], dtype=FIELDS).view([np.ndarray, np.recarray][b]),
    "field names": lambda b, n: np.array([(n, 1.0)], dtype=[("zx"[b], "f8"), ("y", "f8")]),
    "field titles": lambda b, n: np.array([(n, 1.0)], dtype=[(("ab"[b], "x"), "f8"), ("y", "f8")]),
    "unit of a time": lambda b, n: {"v": n, "t": np.datetime64(5, ("s", "ms")[b])},
    "width of texts": lambda b, n: {"v": n, "t": np.array(["a"], dtype=("U1", "U9")[b])},
    "object array": lambda b, n: np.array([n, 1.0], dtype=[object, float][b]),
    "unused level": lambda b, n: {"v": n, "c": levels(("ab", "abc")[b])},
    "ordered levels": lambda b, n: {"v": n, "c": levels("ab", ordered=bool(b))},
    "order of levels": lambda b, n: {"v": n, "c": levels(("ab", "ba")[b])},
    "attributes of a table": lambda b, n: changed(lambda one: one.attrs.update(n=b), frame(n)),
    "name of an index": lambda b, n: frame(n).rename_axis(index="ab"[b]),
    "name of columns": lambda b, n: frame(n).rename_axis(columns="ab"[b]),
    "nullable": lambda b, n: frame(n, k=pd.array([1, 2], dtype=("Int64", "int64")[b])),
    "type of a column": lambda b, n: frame(n, k=np.array([1, 2], dtype=("i4", "i8")[b])),
    "type of an index": lambda b, n: pd.Series([n], index=np.array([1], dtype=("i4", "i8")[b])),
    "frequency": lambda b, n: pd.Series([n, 1, 2], index=pd.DatetimeIndex(DAYS, freq=(None, "D")[b])),
    "flag of a table": lambda b, n: frame(n).set_flags(allows_duplicate_labels=bool(b)),
    "objects or texts": lambda b, n: pd.DataFrame({"v": [n], "t": pd.Series(["a"], dtype=("str", object)[b])}),
    "end of an interval": lambda b, n: {"v": n, "i": pd.Interval(0, 1, closed=("left", "right")[b])},
    "level of an index": lambda b, n: pd.Series([n], pd.MultiIndex([["a", "b"][: 1 + b], ["c"]], [[0], [0]])),
    "zone of a stamp": lambda b, n: {"v": n, "t": pd.Timestamp("2026-01-01", tz=("UTC", "Europe/London")[b])},
    "integer or float": lambda b, n: [int, float][b](round(n)),
    "boolean or integer": lambda b, n: [int, bool][b](n > 0),
    "integer in a list": lambda b, n: [[int, float][b](round(n)), 1.5],
    "list or tuple": lambda b, n: [list, tuple][b]([n, 1.0]),
    "list or array": lambda b, n: [list, np.array][b]([n, 1.0]),
    "class of a record": lambda b, n: [Row, collections.namedtuple("Other", "a b")][b](n, 1.0),
    "attribute of a record": lambda b, n: attributed(Row(n, 1.0), b),
    "name of a number": lambda b, n: {"v": n, "e": [Grade.GOOD, Rank.FIRST][b]},
    "class of an integer": lambda b, n: {"v": n, "e": [int, Whole][b](1)},
    "attribute of an integer": lambda b, n: {"v": n, "e": attributed(Whole(1), b)},
    "class of a float": lambda b, n: [float, Real][b](n),
    "attribute of a float": lambda b, n: attributed(Real(n), b),
    "attribute of a float in a list": lambda b, n: {"v": [n, attributed(Real(n), b)]},
    "class of a text": lambda b, n: [str, Words][b](round(n)),
    "class of bytes alike": lambda b, n: [bytes, Letters][b](b"a"),
    "attribute of a text": lambda b, n: attributed(Words(round(n)), b),
    "attribute of a list": lambda b, n: attributed(Several([n, "a"]), b),
    "attribute of a dictionary": lambda b, n: attributed(Named(v=n), b),
    "attribute of a set": lambda b, n: attributed(Unordered({round(n)}), b),
    "class of a dictionary": lambda b, n: [dict, collections.OrderedDict][b](v=n),
    "class of a counter": lambda b, n: [dict, collections.Counter][b](v=3),
    "counted nothing": lambda b, n: collections.Counter([{"v": 3}, {"v": 3, "z": 0}][b]),
    "what is missing": lambda b, n: collections.defaultdict([int, list][b], v=n),
    "hidden by a map": lambda b, n: collections.ChainMap({"v": n}, {"v": b}),
    "class of a mapping": lambda b, n: [dict, types.MappingProxyType][b]({"v": n}),
    "class of a set": lambda b, n: [set, frozenset][b]({round(n), 2}),
    "class of bytes": lambda b, n: [bytes, bytearray][b](b"ab"),
    "view of bytes": lambda b, n: [bytes, memoryview][b](b"ab"),
    "type code": lambda b, n: array.array("df"[b], [round(n), 1.0]),
    "longest queue": lambda b, n: collections.deque([n, 1.0], maxlen=4 + b),
    "end of a range": lambda b, n: range(0, 5 + b, 2),
    "end of an empty range": lambda b, n: range(5, 3 + b),
    "step of a slice": lambda b, n: slice(0, 1, (None, 1)[b]),
    "fraction": lambda b, n: {"v": n, "f": [int, Fraction][b](2)},
    "exponent": lambda b, n: Decimal(("1.0", "1.00")[b]),
    "complex": lambda b, n: {"v": n, "c": [float, complex][b](1.0)},
    "hidden field": lambda b, n: Record(n, b),
    "for pickle alone": lambda b, n: {"v": n, "h": Hidden(b)},
    "attribute of an exception": lambda b, n: attributed(ValueError("a"), b),
    "argument of an exception": lambda b, n: ValueError(n, b),
    "cause of an exception": lambda b, n: raised(b),
    "what a generator returns": lambda b, n: read_whole(answers(n, b)),
    "iterator": lambda b, n: read_whole([list, iter][b]([n, 1.0])),
    "fold": lambda b, n: {"v": n, "t": datetime.datetime(2026, 10, 25, 2, 30, fold=b)},
    "name of a zone": lambda b, n: {"v": n, "t": zone("ab"[b])},
    "date": lambda b, n: {"v": n, "t": [2, datetime.date(1970, 1, 3)][b]},
    "path": lambda b, n: {"v": n, "t": [str, pathlib.PurePosixPath][b]("a")},
    "kind of path": lambda b, n: {"v": n, "t": [pathlib.PureWindowsPath, pathlib.PurePosixPath][b]("a")},
    "safety of an identifier": lambda b, n: uuid.UUID(int=5, is_safe=SAFE[b]),
    "partial": lambda b, n: functools.partial(max, n, b),
    "pattern": lambda b, n: re.compile("a", (re.ASCII, re.IGNORECASE)[b]),
    "place in a file": lambda b, n: changed(lambda one: one.seek(b), io.BytesIO(b"abc")),
    "getter": lambda b, n: {"v": n, "g": operator.itemgetter(b)},
    "closure": lambda b, n: {"v": n, "f": lambda: b},
    "class of a key": lambda b, n: {[1, True][b]: n},
    "name of a key": lambda b, n: {[Grade.GOOD, Rank.FIRST][b]: n},
    "name of a member": lambda b, n: {"v": n, "s": {[Grade.GOOD, Rank.FIRST][b]}},
    "class of a member": lambda b, n: {"v": n, "s": {[1, 1.0][b]}},
    "class of nothing": lambda b, n: [list, tuple][b](),
    "shape of nothing": lambda b, n: np.ones((0, 3 + b)),
    "sign of zero": lambda b, n: {"v": n, "z": [0.0, -0.0][b]},
    "sign of NaN": lambda b, n: {"v": n, "z": math.copysign(float("nan"), [1.0, -1.0][b])},
    "rows under a mask": lambda b, n: np.ma.array([[5.0 + b, n]], mask=[[1, 0]]),
    "name of a series": lambda b, n: pd.Series([n], name=("v", None)[b]),
    "integer in rows": lambda b, n: [[1, round(n)], [[int, float][b](3), 4]],
    "large integer": lambda b, n: {"v": n, "k": 2**60 + b},
    "long double": lambda b, n: {"v": n, "k": (np.longdouble("0.1"), np.longdouble(0.1))[b]},
    "order of keys": lambda b, n: [{"a": 1, "b": n}, {"b": n, "a": 1}][b],
    "order in JSON": lambda b, n: json.dumps([{"a": 1, "b": n}, {"b": n, "a": 1}][b]),
    "compressed": lambda b, n: gzip.compress(b"a,%d" % b, mtime=0),
    "clockwise": lambda b, n: [(0.0, 0.0), *[(0.0, n), (1.0, 0.0)][:: 1 - 2 * b]],
    "text of an exception": lambda b, n: ValueError("ab"[b]),
    "class of a text in a list": lambda b, n: [n, [str, Words][b]("a")],
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_what_differs_is_read_or_named(name):
    noise = np.random.default_rng(5).normal(size=80).tolist()
    outputs = [FORMS[name](k % 2, n) for k, n in enumerate(noise)]
    outcomes = read_outputs(list(map(seen, outputs)), len(outputs))
    first, second = outcomes.rows(slice(0, 40)), outcomes.rows(slice(40, 80))
    matrix = Reader.learn((first, second))(second)
    groups = [[set(column[side::2].tolist()) for side in (0, 1)] for column in matrix.view(np.int64).T]
    # A column tells them apart where it has the bit alone: noise takes 20 values on each side.
    is_read = any(a.isdisjoint(b) and len(a | b) < 5 for a, b in groups)
    assert is_read or unread(outcomes.raw, forms=outcomes.forms)


def test_notes_are_no_part_of_a_token():
    for name in ("under a mask", "attributes of a table", "name of an index", "attribute of a text"):
        assert canonical(seen(FORMS[name](0, 0.5))) == canonical(seen(FORMS[name](1, 0.5)))


def test_what_does_not_differ_is_not_named():
    for value in (1.5, [1, 2.0], np.ones(3), np.float32(1), Row(1.0, 2.0), frame(0.5), {"a": Grade.GOOD}):
        outcomes = read_outputs([seen(value)] * 4, 4)
        assert unread(outcomes.raw, forms=outcomes.forms) == ()


STEADY = [name for name in FORMS if name != "closure"]
# Outputs that are named, where they differ in no more than this, but have one identity.
ALIKE = {"precision", "no dimension", "integer or float", "boolean or integer", "class of a key", "class of a member",
         "class of nothing", "shape of nothing", "sign of NaN"}  # fmt: skip


@pytest.mark.parametrize("name", STEADY)
def test_an_identity_is_that_of_an_output_made_looked_at_or_sent_again_and_of_no_other(name):
    first, again = FORMS[name](1, 0.25), FORMS[name](1, 0.25)
    token, other = identity(seen(first)), identity(seen(FORMS[name](0, 0.25)))
    assert token == identity(seen(seen(first))) == identity(seen(again)) and (token == other) == (name in ALIKE)
    crossed = unpacked(packed(PlainWriter(1 << 20).plain(first)))
    assert (canonical(crossed), identity(crossed)) == (canonical(seen(first)), token)
    outcomes = read_outputs([seen(first), None], 2)
    if name != "fraction":  # which no checkpoint keeps
        kept = outcomes_from_bytes(outcomes_as_bytes(outcomes))
        assert list(map(identity, kept.raw)) == list(map(identity, outcomes.raw))


def test_a_residual_does_not_depend_on_hashes():
    code = (
        "from test_nothing_is_silent import FORMS, STEADY\n"
        "from dpaudit.features.identity import identity\nfrom dpaudit.subjects.plain import seen\n"
        "print([identity(seen(FORMS[name](1, 0.25))) for name in STEADY])"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            cwd=HERE,
        ).stdout
        for seed in "12"
    }
    assert len(said) == 1


def test_the_low_bits_of_noise_are_not_read_again():
    noise = [0.7123, 0.3217]
    for value in (
        array.array("d", noise),
        np.ma.array(noise),
        pd.Series(noise),
        pd.Series({"a": 0.7123}),
        frame(0.7123),
    ):
        rest = repr(seen(value).beside)
        assert "0.7123" not in rest and "b'" not in rest
    known = Known([0.7123, "text"]).less({"a": 0.7123, "b": [0.7123, 0.7123], "c": "text", "d": b"12", "e": 2})
    assert isinstance(known.pop("d"), Opaque) and known == {"a": None, "b": 2, "c": None, "e": 2}


def test_rows_of_a_batch_are_read_as_each_alone():
    masked = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]])
    for batch in (np.ones((2, 3), np.float32), np.array(["a", "b"]), masked, masked[1:], np.array([b"a"])):
        together = read_outputs(batch, len(batch))
        reader = Reader.learn((together, together, read_outputs([None, 1.5], 2)))
        assert [reader(read_outputs([seen(row)], 1)).tobytes() for row in batch] == [
            row.tobytes() for row in reader(together)
        ]


def test_numbers_with_a_name_of_their_class_alone_are_numbers():
    assert read_outputs([seen(Row(1.0, 2.0))] * 2, 2).tokens is None
    assert read_outputs([seen(Grade.GOOD), 2], 2).tokens is None
    assert isinstance(read_outputs([seen(attributed(Real(1.0), 1))], 1).raw[0], Noted)


def test_the_same_notes_are_the_same_where_a_worker_has_copied_them():
    """Else the columns of a reader would depend on the number of workers."""
    week, rng = pd.date_range("2026-01-01", periods=7), np.random.default_rng(1)
    tables = [seen(pd.DataFrame({"day": week, "count": rng.normal(size=7)})) for _ in range(8)]
    crossed = [unpacked(packed(table)) for table in tables[4:]]
    alone = Reader.learn([read_outputs(tables, len(tables))])
    assert Reader.learn([read_outputs([*tables[:4], *crossed], len(tables))]) == alone
