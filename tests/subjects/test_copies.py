"""Calls get their input as it was given, and what is seen of their outputs stays as it was."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import enum
import io
import math
import pickle
import types
import uuid
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import canonical, read_outputs
from dpaudit.inference.tasks import Task
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects import copies
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.copies import MAX_BYTES, are_same, copied, watched
from dpaudit.subjects.plain import Seen, seen

SEED = 20261124
ARRAY, LIST, DICTIONARY, LONG = np.zeros(1), [0.0], {"a": 0.0}, np.zeros(200_000)


class Colour(enum.Enum):
    RED = 1


Named = collections.namedtuple("Named", "answer")
HELD, OBJECTS, COUNTS, FILE = np.zeros(1), np.zeros(1, dtype=object), collections.Counter(a=0.0), io.BytesIO()
QUEUE, NUMBERS, MASKED = collections.deque([0.0]), array.array("d", [0.0]), np.ma.zeros(1)
READ_ONLY = HELD.view()
READ_ONLY.flags.writeable = False


class Release:
    def __init__(self):
        self.parts = [0.0]


RELEASE = Release()


def into_a_batch(data, size, rng):
    LONG[:size] = data + rng.laplace(size=size)
    return LONG[:size]


def into_lists_of_a_batch(data, size, rng):
    del LIST[:]
    LIST.extend(["answer", value] for value in (data + rng.laplace(size=size)).tolist())
    return LIST


def into(buffer, shown, place=0):
    """A mechanism that writes its outputs into one buffer, and returns what shows it."""

    def mechanism(data, rng):
        buffer[place] = data + rng.laplace()
        return shown

    return mechanism


def into_a_file(data, rng):
    FILE.seek(0)
    FILE.truncate()
    FILE.write(f"{data + rng.laplace():+.3f}".encode())
    return FILE


BUFFERS = [
    into(HELD, READ_ONLY), into(HELD, [READ_ONLY]), into(HELD, Named(HELD)), into(HELD, {"held": (HELD,)}),
    into(OBJECTS, OBJECTS), into(COUNTS, COUNTS, "a"), into(QUEUE, QUEUE), into(NUMBERS, NUMBERS), into(MASKED, MASKED),
    into(RELEASE.parts, [RELEASE]), into(RELEASE.parts, {"released": RELEASE}), into(ARRAY, ARRAY), into(LIST, LIST),
    into(DICTIONARY, DICTIONARY, "a"), into_a_batch, into_lists_of_a_batch, into_a_file,
]  # fmt: skip


@pytest.mark.parametrize("mechanism", BUFFERS, ids=range(len(BUFFERS)))
def test_whatever_shows_a_reused_buffer_is_seen_as_it_was(mechanism):
    """Before outputs were copied all showed what was written last, and sound mechanisms were violated."""
    tasks = [Task(i, 1, 0, 0, 20, (), keep=20) for i in (0, 1)]
    results = WorkerPool().drawer(as_subject(mechanism), [0.0, 100.0], SEED, 0)(tasks)
    assert len({token for result in results for token in result.kept.as_objects().tokens.tolist()}) == 40


def adds_to_its_input(data, rng):
    data += rng.laplace(size=data.shape)
    return data


def lengthens_its_input(data, rng):
    data["rows"].append(1.0)
    return len(data["rows"]) + rng.laplace()


def adds_to_its_input_in_a_batch(data, size, rng):
    data += 1.0
    return data[0] + rng.laplace(size=size)


@pytest.mark.parametrize(
    ("mechanism", "x", "x_prime"),
    [
        (adds_to_its_input, np.zeros(1), np.ones(1)),
        (lengthens_its_input, {"rows": [1.0]}, {"rows": [1.0, 1.0]}),
        (adds_to_its_input_in_a_batch, np.zeros(1), np.ones(1)),
    ],
)
def test_an_input_is_the_same_at_each_call(mechanism, x, x_prime):
    before = repr((x, x_prime))
    options = {"pairs": [(x, x_prime)], "samples": 2_000, "seed": SEED, "confidence": 0.99, "floating_point": False}
    # Laplace noise just on its claim: at most 1% of seeds of each would alarm.
    sound = dpaudit.audit(mechanism, claim="eps=1", **options)
    assert sound.verdict != "violated" and sound.epsilon_lower > 0.5
    assert dpaudit.audit(mechanism, claim="eps=0.5", **options).verdict == "violated"
    assert repr((x, x_prime)) == before


def adds_to_its_input_at_times(data, rng):
    """What it changes depends on what it draws."""
    noise = rng.laplace()
    data["rows"] += [1.0] * int(noise > 0)
    return sum(data["rows"]) + noise


def test_calls_that_share_a_copy_give_what_calls_on_their_own_would():
    data = {"rows": [1.0, 0.5]}
    shared = as_subject(adds_to_its_input_at_times).sample(data, 50, np.random.default_rng(SEED))
    rng = np.random.default_rng(SEED)
    assert shared == [adds_to_its_input_at_times({"rows": [1.0, 0.5]}, rng) for _ in range(50)]
    assert data == {"rows": [1.0, 0.5]}


MANY = [0.0] * 1000  # it is not looked at after each call whether it has changed


@pytest.mark.parametrize("is_seeded", [False, True])  # by what it is given, which is not all that it draws from
def test_calls_that_cannot_be_repeated_must_leave_their_input_alone(is_seeded):
    generator = np.random.default_rng(SEED)
    call = (lambda data: adds_to_its_input_at_times(data, generator)) if not is_seeded else (
        lambda data, rng: adds_to_its_input_at_times(data, generator))  # fmt: skip
    with pytest.raises(SubjectError, match="must leave its input as it is"):
        dpaudit.audit(call, claim="eps=1", pairs=[({"rows": MANY}, {"rows": [*MANY, 1.0]})], samples=100, seed=SEED)


@pytest.mark.parametrize(
    ("value", "change"),
    [
        (np.array([0.0, math.nan]), lambda value: value.__setitem__(0, -0.0)),
        (np.zeros((2, 3), dtype=np.float32), lambda value: value.resize((3, 2))),
        ([1, [2.0, math.nan]], lambda value: value[1].append(3)),
        ({"a": np.arange(3)}, lambda value: value["a"].__setitem__(1, 7)),
        ({"a": 1, "b": 2}, lambda value: value.update(a=value.pop("a"))),
        (([1],), lambda value: value[0].pop()),
        ({1, 2}, lambda value: value.add(3)),
        (collections.OrderedDict(a=[1]), lambda value: value["a"].append(2)),
        (collections.defaultdict(list), lambda value: value["b"]),
        (collections.deque([[1]]), lambda value: value[0].append(2)),
        (array.array("d", [1.0]), lambda value: value.append(2.0)),
        (np.array([[1], None], dtype=object), lambda value: value[0].append(2)),
        (pd.DataFrame({"a": [1.0, math.nan]}), lambda value: value.__setitem__("a", 0.0)),
        (pd.Series([1.0, 2.0]), lambda value: value.__setitem__(0, 7.0)),
        (bytearray(b"ab"), lambda value: value.extend(b"c")),
        ([0.0, 1.0], lambda value: value.__setitem__(0, -0.0)),
        ([1, 2], lambda value: value.__setitem__(0, True)),
        ([0], lambda value: value.__setitem__(0, 0.0)),
        ({"a": 1}, lambda value: value.update(a=1.0)),
        ([1, 2], lambda value: value.append(3)),
        (np.array([1.0, 2.0]), lambda value: setattr(value, "dtype", np.int64)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_change_of_a_copy_is_seen(value, change):
    given = copied(value)
    assert are_same(value, given) and are_same(given, value)
    is_surely_same = watched(given)
    change(given)
    assert not are_same(value, given) and not is_surely_same()


@pytest.mark.parametrize(
    ("value", "is_told"), [([1.0, math.nan, "a"], True), (np.array([math.nan]), True), ([[1]], False)]
)
def test_what_a_call_leaves_alone_is_surely_the_same_where_that_is_told_at_once(value, is_told):
    assert watched(value)() is is_told


@pytest.mark.parametrize(
    "value",
    [1.5, "text", b"", None, True, (1, ("a", 2.0)), frozenset({1}), Colour.RED, len, np.float64(1.0), object()],
    ids=lambda value: type(value).__name__,
)
def test_what_no_call_can_change_is_not_copied(value):
    assert copied(value) is value


def test_arrays_that_cannot_be_written_and_very_large_ones_are_passed_on():
    fixed = np.arange(3)
    fixed.flags.writeable = False
    large = np.lib.stride_tricks.as_strided(np.zeros(1), (MAX_BYTES // 8 + 1,), (0,))
    assert copied(fixed) is fixed and copied(large) is large


@pytest.mark.parametrize(
    "value",
    [
        np.arange(6).reshape(2, 3)[:, ::-1],
        [1, [2.0, np.zeros(2)]],
        ({"a": [1]}, "text"),
        {1, 2},
        bytearray(b"ab"),
        {"a": {"b": [None]}},
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_copy_is_equal_and_shares_nothing_that_can_change(value):
    copies = [copied(value)] + ([seen(value)] if type(value) in (list, tuple, dict, set, np.ndarray) else [])
    for copy in copies:
        assert copy is not value and repr(copy) == repr(value)
        assert not {id(part) for part in parts(copy)} & {id(part) for part in parts(value)}


def parts(value):
    """All parts of a value that can be changed."""
    if isinstance(value, list | tuple):
        yield from (part for item in value for part in parts(item))
    if isinstance(value, dict):
        yield from (part for item in value.values() for part in parts(item))
    if isinstance(value, list | dict | set | bytearray | np.ndarray):
        yield value


class Secret:
    """What it shows of itself to a copy is not what it holds."""

    def __init__(self, answer):
        self.answer = answer

    def __getstate__(self):
        return {"answer": None}

    def __deepcopy__(self, memo):
        return Secret(None)

    def __getattr__(self, name):
        return lambda *arguments: Secret(None)


def test_an_output_is_seen_as_it_is_and_not_as_it_copies_itself():
    assert canonical(seen(Secret(1.5))) == canonical(Secret(1.5)) == "Secret{'answer':1.5}"
    result = dpaudit.audit(
        lambda data, rng: Secret(5.0 * data + rng.laplace()), "eps=1", [(0, 1)], samples=1_000, seed=SEED
    )
    assert result.verdict == "violated"  # a loss of 5; the seed is fixed


RECORDS = np.array([(1, 2.0)], dtype=[("count", int), ("share", float)])


@pytest.mark.parametrize(
    "value",
    [
        *(np.dtype(kind).type(1) for kind in "?bBhHiIlLefdgF"),
        np.longdouble(1) / 3,
        np.datetime64("2020-01-01"),
        np.timedelta64(3, "s"),
        np.array(2.5),
        np.array([1.5, math.nan]),
        np.ma.array([1, 2], mask=[0, 1]),
        np.array([1, None, "a"], dtype=object),
        np.array([1 + 1j]),
        RECORDS,
        10**40,
        Fraction(1, 3),
        Decimal("1.50"),
        Named([2]),
        collections.Counter("aab"),
        {(1, 2): 3, frozenset({1}): {2}},
        pd.DataFrame({"a": [1, 2]}),
        pd.Series([1, pd.NA]),
        pd.Timestamp("2020-01-01"),
        datetime.date(2020, 1, 1),
        ValueError("no"),
        ValueError,
        Colour.RED,
        uuid.UUID(int=5),
        types.SimpleNamespace(a=[1]),
        [None, True, "text", b"bytes", -0.0, math.nan],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_seen_reads_as_the_output_itself(value):
    assert canonical(seen(value)) == canonical(value)
    itself, plain = (read_outputs([output, output], 2) for output in (value, seen(value)))
    assert np.array_equal(plain.numbers, itself.numbers, equal_nan=True)
    assert (plain.tokens is None) == (itself.tokens is None) and plain.is_integer == itself.is_integer
    once = read_outputs(Seen([seen(value)] * 2), 2)  # a second look would find the same
    assert np.array_equal(once.numbers, plain.numbers, equal_nan=True) and once.is_integer == plain.is_integer
    assert list(once.as_objects().tokens) == list(plain.as_objects().tokens)


def test_a_record_that_is_written_again_is_seen_as_it_was():
    record = seen(RECORDS[0])
    RECORDS["share"] = 7.0
    assert canonical(record) == "[1.0,2.0]"
    RECORDS["share"] = 2.0


def spawns(data, rng):
    """What changes the input is drawn from a child of the generator, which knows how many it has."""
    noise = rng.spawn(1)[0].laplace()
    data["rows"] += [1.0] * int(noise > 0)
    return noise


def test_calls_that_are_made_again_have_the_same_children_of_the_generator():
    data, rng = {"rows": []}, np.random.default_rng(SEED)
    assert as_subject(spawns).sample(data, 20, np.random.default_rng(SEED)) == [
        spawns({"rows": []}, rng) for _ in range(20)
    ]


def test_calls_are_made_again_whatever_their_outcomes():
    def adds(data, rng):
        data.append(0.0)
        return [float("nan"), {float("nan"), 1.0}, rng.laplace()]

    outcomes = as_subject(adds).sample(MANY, 3, np.random.default_rng(SEED))
    assert len({outcome[2] for outcome in outcomes}) == 3


def flipped(share):
    """Randomised response that flips the bit where it stands."""

    def mechanism(data, rng):
        data[0] ^= int(rng.random() < share)
        return data[0]

    return mechanism


def test_calls_that_may_undo_the_change_of_others_are_each_on_the_input_as_it_was():
    # Of batches that share a copy those would be kept whose last outcome is the bit itself.
    rng = np.random.default_rng(SEED)
    shared = as_subject(flipped(0.5)).sample([0], 400, np.random.default_rng(SEED))
    assert shared == [flipped(0.5)([0], rng) for _ in range(400)]
    claim = dpaudit.PureDP(0.02)
    sound = flipped(1 / (1 + math.exp(0.02)))
    verdicts = [
        dpaudit.audit(sound, claim, [([0], [1])], samples=1000, seed=seed, floating_point=False).verdict
        for seed in range(60)
    ]
    assert verdicts.count("violated") <= 6


class KnowsByAddress:
    """Remembers what it computed of an input by its address."""

    def __init__(self, scale):
        self.scale, self.known = scale, {}

    def location(self, data):
        return self.known.setdefault(id(data), float(np.sum(data)))


class OneByOne(KnowsByAddress):
    def __call__(self, data, rng):
        return self.location(data) + rng.laplace(scale=self.scale)


class InBatches(KnowsByAddress):
    def __call__(self, data, size, rng):
        return self.location(data) + rng.laplace(scale=self.scale, size=size)


@pytest.mark.parametrize("make", [np.array, list], ids=["array", "list"])
@pytest.mark.parametrize("kind", [OneByOne, InBatches])
def test_an_input_keeps_its_address_as_long_as_it_is_not_changed(kind, make):
    pairs = [(make([value, 0.0]), make([value + 1.0, 0.0])) for value in (0.0, 20.0)]
    for scale, is_violated in ((1.0, False), (0.1, True)):
        for mode in ("sequential", "fixed"):
            found = dpaudit.audit(kind(scale), "eps=1.5", pairs, samples=2000, seed=SEED, mode=mode)
            assert [finding.verdict == "violated" for finding in found.findings] == [is_violated] * 2


def test_changes_are_found_in_values_with_numbers_that_are_none():
    for value in ([math.nan], {math.nan, "a"}, {"a": math.nan}, math.nan):
        assert are_same(value, pickle.loads(pickle.dumps(value)))
    assert not are_same([math.nan], [1.0])
    assert not are_same({math.nan}, {1.0})


def boxed(*items):
    """An array of objects, whatever numpy would make of a list of them."""
    box = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):
        box[place] = item
    return box


@pytest.mark.parametrize(
    "value",
    [
        boxed([1, 2], [3, 4]),
        boxed([1, 2, 3]),
        boxed((1, 2), (3, 4)),
        boxed(np.zeros(2), np.ones(2)),
        boxed([1], [2, 3]),
        boxed([1, 2], [3, 4], [5, 6], [7, 8]).reshape(2, 2),
        boxed([1, 2])[0:1].reshape(()),
        array.array("d", [math.nan, 1.0]),
    ],
    ids=range(8),
)
def test_a_copy_holds_what_the_value_holds(value):
    copy = copied(value)
    assert repr(copy) == repr(value) and are_same(value, copy) and are_same(copy, value)


def test_a_value_may_hold_itself_and_may_be_deep():
    cyclic = [1]
    cyclic += [cyclic, cyclic]
    copy = copied(cyclic)
    assert copy is not cyclic and copy[1] is copy and copy[2] is copy and are_same(cyclic, copy)
    copy.append(2)
    assert not are_same(cyclic, copy)
    deep = []
    for _ in range(10_000):
        deep = [deep]
    assert copied(deep) is not deep and are_same(deep, copied(deep))


def test_a_subject_may_share_its_input_where_that_is_asked():
    data, rng = np.zeros(1), np.random.default_rng(SEED)
    as_subject(adds_to_its_input).sample(data, 3, rng)
    assert data[0] == 0.0
    dataclasses.replace(as_subject(adds_to_its_input), shares_input=True).sample(data, 3, rng)
    assert data[0] != 0.0


@dataclasses.dataclass
class Counted:
    answer: float

    def __post_init__(self):
        self.rows = self.answer


@pytest.mark.parametrize(
    "leak",
    [
        lambda data, rng: {"a": data + rng.laplace(scale=0.1)}.values(),
        lambda data, rng: {"a": data + rng.laplace(scale=0.1)}.items(),
        lambda data, rng: slice(data + rng.laplace(scale=0.1), None),
        lambda data, rng: pd.Interval(data + rng.laplace(scale=0.1), 99.0),
        lambda data, rng: ValueError(data + rng.laplace(scale=0.1)),
        lambda data, rng: (vars(made := Counted(0.0)).update(rows=data), made)[1],
    ],
    ids=["values", "items", "printed", "interval", "exception", "beside fields"],
)
def test_what_can_be_read_of_an_output_is_read(leak):
    assert dpaudit.audit(leak, claim="eps=1", pairs=[(0.0, 1.0)], samples=2000, seed=SEED).verdict == "violated"


def test_the_copies_that_are_kept_are_bounded(monkeypatch):
    monkeypatch.setattr(copies, "BYTES_KEPT", 1_000)
    kept, inputs = copies.WorkingCopies(), [np.full(50, float(k)) for k in range(4)]
    first = [kept.of(data) for data in inputs[:2]]
    assert all(kept.of(data) is copy for data, copy in zip(inputs, first, strict=False))
    third = kept.of(inputs[2])  # 1,200 bytes: the oldest goes
    assert kept.of(inputs[2]) is third and kept.of(inputs[1]) is first[1]
    assert kept.of(inputs[0]) is not first[0]
    large = np.zeros(1_000)
    assert kept.of(large) is kept.of(large)  # the last one stays, whatever it takes
    changed = kept.of(inputs[3])
    changed[0] = 7.0
    assert kept.of(inputs[3]) is not changed and np.array_equal(kept.of(inputs[3]), inputs[3])
    assert kept._bytes == 400


def test_a_part_that_a_value_holds_many_times_is_counted_once():
    value = [0.0]
    for _ in range(60):
        value = [value, value]
    value[0].append(value)
    assert copies.WorkingCopies().of(value) is not value  # 2**60 paths lead through it: it would never end
    deep = []
    for _ in range(5_000):
        deep = [deep]
    assert copies.WorkingCopies().of(deep) is not deep
