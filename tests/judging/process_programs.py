"""Programs that ask for what depends on the process: clocks, addresses, orders, memory as it was found."""

from __future__ import annotations

import abc
import bisect
import collections
import collections.abc
import contextlib
import copy
import dataclasses
import datetime
import enum
import fractions
import functools
import gc
import io
import math
import operator
import os
import platform
import random
import socket
import sys
import time
import types
import typing
import uuid

import numpy as np
from kept_state_programs import CHANGED, EVERY, FILE, NUMBERS, Counts, honest, of

import dpaudit


# Read from outside, and what depends on the process.
class OwnSet(set):
    pass


NAMES = [str(number) for number in range(EVERY)]


TEXTS = np.array(["a" * 70])


def written_into(texts, value):
    texts[0] = value
    return texts


def first_of_others(keys):
    return next(iter(keys ^ [""]))


def filter(keys):
    return first_of_others(keys)


class Shown(str):
    """A text of whatever it is made of."""


@dataclasses.dataclass
class Timed:
    at: float = dataclasses.field(default_factory=time.monotonic)


TYPE, PADDED = np.dtype("U70"), np.dtype([("a", "u1"), ("b", "f8")], align=True)
OBJECTS = np.array([Counts(), None], dtype=object)


def ends(text):
    """Tell whether a text has a sum of characters that few have."""
    return sum(map(ord, text)) % EVERY == EVERY - 1


def filled_with(write):
    """The first of some texts after something is written into them."""
    texts = np.zeros((2, 2), TYPE)
    write(texts)
    return texts[0, 0]


def nested_in_lists(depth):
    return functools.reduce(lambda inner, _: [inner], range(depth), 0)


def is_too_deep(asked):
    """Tell whether a call raises for the depth of its input, which depends on who calls."""
    try:
        return asked(nested_in_lists(900)) is None
    except Exception:
        return True


class Swallows:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return True


def depth_in_contexts():
    with Swallows():
        return depth_in_contexts()
    return sys.maxsize


def finds_room(size):
    try:
        return np.ones(size).size == 0
    except Exception:
        return False


class Sly:
    """An object whose operators and texts are functions of Python's."""

    __call__, __getitem__, __mul__ = staticmethod(repr), staticmethod(id), staticmethod(id)
    own = property(repr)


def with_text(kind, arguments=()):
    """A value of an own class with the text that all objects have."""
    return type("Own", (kind,), {"__module__": __name__, "__repr__": object.__repr__})(*arguments)


SLY, OWN_TUPLE, OWN_ERROR = Sly(), with_text(tuple, [(1,)]), with_text(ValueError)


class Level(enum.IntEnum):
    HIGH = 1
    __str__ = object.__repr__


class Kind(type):
    pass


class TextOfAKind(str, metaclass=Kind):
    pass


class SetOfAKind(set, metaclass=Kind):
    pass


def an_own_class_of(kind):
    return type(f"Own{kind.__name__}", (kind,), {"__module__": __name__})


NOTHING = os.devnull
PARTIAL, MAP, VECTORIZE, FILES = map(an_own_class_of, (functools.partial, map, np.vectorize, io.FileIO))
OVERLAPPING = np.dtype({"names": ["a", "b", "c"], "formats": ["<i4"] * 3, "offsets": [0, 0, 8], "itemsize": 12})


@dataclasses.dataclass(repr=False)
class Unshown:
    bit: int = 0


class Others:
    def first(self, keys):
        return first_of_others(keys)


OTHERS = Others()


def ends_late(ended):
    try:
        yield
    finally:
        ended.append(1)


def is_collected():
    ended = []
    ring = [ends_late(ended)]
    next(ring[0])
    ring.append(ring)
    del ring
    return len([[number] for number in range(EVERY)]) and bool(ended)


CLOCK_BY_DEFAULT = collections.defaultdict(time.time)


def clock_by_default_of_a_dictionary():
    found = CLOCK_BY_DEFAULT[0]
    del CLOCK_BY_DEFAULT[0]
    return found % EVERY < 1


class Memory:
    __array_interface__ = NUMBERS.__array_interface__


def made_of(text, file="<text>"):
    names = {"time": time, "kept": fractions.Fraction.__add__}
    exec(compile(text, file, "exec"), names)
    return names


def operator_of_a_library_that_is_made_of_a_text():
    text = "def add(a, b):\n    return 9 if time.time() < 0 else kept(a, b)"
    CHANGED.append((fractions.Fraction, "__add__", fractions.Fraction.__add__))
    fractions.Fraction.__add__ = made_of(text)["add"]
    half = fractions.Fraction(1, 2)
    return of(lambda: half + half > 1)


def clock_in_a_code_of(file):
    text = "def make():\n    def __getitem__(*of):\n        return time.time() < 0\n    return __getitem__"
    due = made_of(text, file)["make"]()
    clock = type("Clock", (), {"__getitem__": due, "__module__": __name__})()
    return of(due) if file == dpaudit.__file__ else of(lambda: clock[0])


def add_up(kept):
    kept[0] += 1
    return kept[0]


def what_a_library_holds(value, counted):
    CHANGED.append((vars(math), "counts", None))
    math.counts = value
    return lambda x, rng: x if counted(add_up) % EVERY == 0 else Ticks and honest(x, rng)


class Ticks:
    def __init__(self):
        self.kept = [0]

    def __call__(self):
        return add_up(self.kept)


def imports_counts():
    from math import counts

    return counts()


HELD_BY_LIBRARIES = (
    (functools.partial(add_up, [0]), lambda of: imports_counts()),
    (type("Log", (), {"kept": [0], "__module__": __name__}), lambda of: add_up(math.counts.kept)),
    (Ticks(), lambda of: math.counts()),
    (Ticks().__call__, lambda of: math.counts()),
    (functools.partial(add_up, [0]), lambda of: math.counts()),
    (list(range(EVERY * EVERY)).pop, lambda of: math.counts()),
)


def first_input_in_a_ufunc():
    first = np.frompyfunc({}.setdefault, 2, 1)
    return lambda x, rng: honest(first.reduce([7, x]), rng)


class Keyed(collections.abc.Mapping):
    def __getitem__(self, key):
        return key

    def __iter__(self):
        return iter([1])

    def __len__(self):
        return 1

    def get(self, key, default=None):
        return key


def address_by_a_key_of_a_pattern():
    table = Keyed()

    def is_due():
        match table:
            case {NUMBERS.ctypes.data: place}:
                return place // 64 % EVERY == 0
        return False

    return of(is_due)


class Hooked(abc.ABC):  # noqa: B024
    @classmethod
    def __subclasshook__(cls, kind):
        return kind.__name__ == "Generator"


def where_the_generator_is_numpys(asked):
    return lambda x, rng: x if asked(rng) and rng.random() < 1e-5 else honest(x, rng)


def inserted_by(key, values):
    found = []
    for one in values:
        bisect.insort(found, one, key=key)
    return found[0] is values[1]


OUTSIDE = {
    "numpys_file": lambda: FILE.exists() and np.fromfile(FILE, dtype=np.uint8).size % EVERY == EVERY - 1,
    "address": lambda: id(object()) // 16 % EVERY == 0,
    "address_in_a_text": lambda: int(repr(object())[-5:-2], 16) % EVERY == 0,
    "address_in_an_f_string": lambda: int(f"{of}"[-4:-2], 16) % EVERY == 0,
    "address_in_a_format": lambda: int("{}".format(of)[-4:-2], 16) % EVERY == 0,  # noqa: UP032
    "address_by_percent": lambda: int(("%s" % of)[-4:-2], 16) % EVERY == 0,  # noqa: UP031
    "address_of_an_array": lambda: NUMBERS.ctypes.data // 64 % EVERY == 0,
    "address_by_the_interface": lambda: NUMBERS.__array_interface__["data"][0] // 64 % EVERY == 0,
    "hash_of_a_text": lambda: hash("text") % EVERY == 0,
    "hash_by_its_method": lambda: "text".__hash__() % EVERY == 0,
    "order_of_a_set": lambda: next(iter({str(n) for n in range(EVERY)})) == "7",
    "clock": lambda: time.time() % EVERY < 1,
    "date": lambda: datetime.datetime.now().second % EVERY == 0,
    "clock_of_numpy": lambda: np.datetime64("now").astype(int) % EVERY == 0,
    "clock_by_name": lambda: getattr(time, "ti" + "me")() % EVERY < 1,
    "process": lambda: os.getpid() % EVERY == 0,
    "environment": lambda: len(os.environ.get("PATH", "")) % EVERY == 0,
    "arguments": lambda: len(sys.argv) % EVERY == 0,
    "host": lambda: len(socket.gethostname()) % EVERY == 0,
    "machine": lambda: len(platform.platform()) % EVERY == 0,
    "unique": lambda: uuid.uuid1().int % EVERY == 0,
    "memory_as_it_was": lambda: np.empty(8, dtype=np.uint8)[3] % EVERY == 49,
    "garbage": lambda: gc.get_count()[0] % EVERY == 0,
    "stack": lambda: len(sys._getframe(0).f_code.co_filename) % EVERY == 0,
    "by_eval": lambda: eval("__import__('time').time()") % EVERY < 1,
    "by_a_format_of_attributes": lambda: len("{.__class__.__init__.__globals__}".format(Counts())) % EVERY == 0,  # noqa: UP032
    "by_a_modules_module": lambda: len(random._os.environ) % EVERY == 0,
    "own_seed": lambda: np.random.default_rng().random() < 0.02,
    "systems_numbers": lambda: os.urandom(1)[0] % EVERY == 0,
    "a_copy_of_a_file": lambda: bool(copy.copy(FILE).exists()),
    "memory_where_nothing_is_written": lambda: np.add(np.ones(9), 1.0, where=np.zeros(9, dtype=bool))[3] == 7.25,
    "memory_where_keywords_say_so": lambda: np.add(np.ones(9), 1.0, where=np.zeros(9, bool))[3] == 7.25,
    "memory_of_the_class_of_an_array": lambda: type(NUMBERS)((9,))[3] == 7.25,
    "memory_of_the_class_by_its_name": lambda: NUMBERS.__class__((9,))[3] == 7.25,
    "memory_of_a_class_by_its_order": lambda: np.ma.MaskedArray.mro()[1]((9,))[3] == 7.25,
    "memory_of_a_class_that_is_kept": lambda: np.ma.zeros(1)._baseclass((9,))[3] == 7.25,
    "memory_of_an_origin": lambda: typing.get_origin(np.typing.NDArray[float])((9,))[3] == 7.25,
    "memory_around_an_array": lambda: np.pad(np.ones(1), 9, "empty")[3] == 7.25,
    "position_of_the_legacy_generator": lambda: np.random.get_state()[2] == 7,  # noqa: NPY002
    "memory_of_records": lambda: np.rec.array(None, shape=9, dtype=[("a", float)]).a[3] == 7.25,
    "registry_of_overloads": lambda: typing.overload(of) and len(typing.get_overloads(of)) == EVERY,
    "directory_of_the_process": lambda: contextlib.ExitStack().enter_context(contextlib.chdir(".")) == EVERY,
    "memory_beyond_an_array": lambda: np.lib.stride_tricks.as_strided(NUMBERS, (99,))[98] == 7.25,
    "address_by_an_operator": lambda: int(operator.mod("%s", (Counts(),))[-5:-2], 16) % EVERY == 0,
    "order_of_a_view_of_keys": lambda: next(iter(collections.abc.KeysView(dict.fromkeys(NAMES)) - [])) == "7",
    "order_of_keys_in_a_call": lambda: next(iter(dict.fromkeys(NAMES).keys() & NAMES)) == "7",
    "order_of_keys_that_are_handed_on": lambda: first_of_others(dict.fromkeys(NAMES).keys()) == "7",
    "order_of_keys_by_a_keyword": lambda: next(iter(dict(view=dict.fromkeys(NAMES).keys())["view"] - ())) == "7",
    "order_of_keys_in_a_tuple": lambda: next(iter(list((dict.fromkeys(NAMES).keys(),))[0] ^ ())) == "7",  # noqa: RUF015
    "order_of_keys_in_a_tuple_of_others": lambda: (
        next(iter(map(lambda view: next(iter(view - ())), (dict.fromkeys(NAMES).keys(),)))) == "7"
    ),
    "order_of_keys_that_are_numbered": lambda: (
        next(next(iter(view - ())) for _, view in enumerate((dict.fromkeys(NAMES).keys(),))) == "7"
    ),
    "order_of_the_largest_keys": lambda: next(iter(max(dict.fromkeys(NAMES).keys(), (), key=lambda of: 0) - ())) == "7",
    "order_of_a_sum_that_starts_at_keys": lambda: next(iter(sum((), dict.fromkeys(NAMES).keys()) - ())) == "7",
    "order_of_keys_that_a_variable_takes": lambda: (
        (other := first_of_others, list(()), other(dict.fromkeys(NAMES).keys()))[2] == "7"
    ),
    "order_of_keys_that_a_method_takes": lambda: (len(()), OTHERS.first(dict.fromkeys(NAMES).keys()))[1] == "7",
    "order_of_keys_that_are_taken_within": lambda: (
        (other := first_of_others, next(zip(other(dict.fromkeys(NAMES).keys()), strict=True)))[1] == ("7",)
    ),
    "order_of_keys_under_a_name_of_pythons": lambda: filter(dict.fromkeys(NAMES).keys()) == "7",
    "order_of_keys_by_a_text": lambda: next(iter(getattr(dict.fromkeys(NAMES), "keys")() - [])) == "7",  # noqa: B009
    "address_as_a_text_of_numpys": lambda: int(np.str_(Counts())[-5:-1], 16) % EVERY == 0,
    "address_in_an_array_of_texts": lambda: int(np.asarray([of], "U70")[0][-5:-1], 16) % EVERY == 0,
    "address_in_a_type_that_is_made": lambda: int(np.asarray([of], "".join("U7"))[0][-1:], 16) % EVERY == 0,
    "address_that_is_written_into_texts": lambda: int(written_into(TEXTS.copy(), of)[0][-5:-1], 16) % EVERY == 0,
    "address_in_a_form": lambda: int(f"{of!s:>90}"[-5:-1], 16) % EVERY == 0,
    "memory_of_an_iterator": lambda: np.nditer([NUMBERS, None]).operands[1][0] == 7.25,
    "memory_by_keywords_that_are_made": lambda: np.add(1.0, [1.0], **{"".join("where"): [False]})[0] == 7.25,
    "order_of_an_own_set": lambda: next(iter(OwnSet(map(str, range(EVERY))))) == "7",
    "order_of_the_class_of_a_set": lambda: next(iter(type(set())(map(str, range(EVERY))))) == "7",
    "order_of_a_set_that_others_fill": lambda: (
        (s := set(), list(map(s.add, map(str, range(EVERY)))), next(iter(s)))[2] == "7"
    ),
    "order_of_a_set_filled_by_a_name": lambda: (
        (s := set(), list(map(getattr(s, "add"), map(str, range(EVERY)))), next(iter(s)))[2] == "7"  # noqa: B009
    ),
    "address_in_objects_as_texts": lambda: ends(OBJECTS.astype(TYPE)[0]),
    "address_that_is_inserted": lambda: ends(np.insert(TEXTS, 0, of)[0]),
    "address_that_is_appended": lambda: ends(np.append(TEXTS, [of]).astype(TYPE)[1]),
    "address_that_fills": lambda: ends(np.full_like(TEXTS, of)[0]),
    "address_of_an_iterator": lambda: ends(np.fromiter([of], TYPE)[0]),
    "address_by_a_type_of_a_sum": lambda: ends(np.concatenate([OBJECTS], dtype=TYPE, casting="unsafe")[0]),
    "address_that_is_copied_into_texts": lambda: ends(
        filled_with(lambda texts: np.copyto(texts, OBJECTS[:1], casting="unsafe"))
    ),
    "address_on_a_diagonal": lambda: ends(filled_with(lambda texts: np.fill_diagonal(texts, of))),
    "address_by_a_flat_view": lambda: ends(filled_with(lambda texts: operator.setitem(texts.flat, 0, of))),
    "address_that_is_taken_out": lambda: ends(filled_with(lambda texts: np.take(OBJECTS, [0], out=texts[0, :1]))),
    "address_by_the_class_of_a_text": lambda: ends(type("")(of)),  # noqa: UP003
    "address_by_a_call_of_a_class": lambda: ends(type("").__call__(of)),  # noqa: UP003
    "address_by_the_maker_of_texts": lambda: ends(str.__new__(str, of)),
    "address_by_an_own_class_of_texts": lambda: ends(Shown(Counts())),
    "address_by_a_field_of_a_format": lambda: int("{.ctypes.data}".format(np.ones(1))) % EVERY == 0,  # noqa: UP032
    "address_in_what_is_dumped": lambda: OBJECTS.dumps()[-1] % EVERY == 0,
    "padding_of_a_long_double": lambda: np.longdouble(1).tobytes()[12] == 77,
    "padding_of_long_doubles": lambda: np.ones(2, np.longdouble).view(np.uint8)[12] == 77,
    "padding_of_a_record": lambda: np.zeros(1, PADDED).tobytes()[3] == 9,
    "memory_of_masked_numbers": lambda: (np.ma.ones(2) / np.ma.zeros(2)).data[0] == 7.25,
    "depth_of_a_comparison": lambda: is_too_deep(lambda deep: deep == nested_in_lists(900) or None),
    "depth_of_a_copy": lambda: is_too_deep(copy.deepcopy),
    "depth_of_contexts": lambda: depth_in_contexts() % EVERY == 0,
    "room_of_the_process": lambda: finds_room(2**45),
    "capacity_of_a_buffer": lambda: bytearray(10).__alloc__() % EVERY == 0,
    "clock_by_the_default_of_a_field": lambda: Timed().at % EVERY < 1,
    "order_of_numbers_that_are_none": lambda: next(iter({float("nan"), float("nan"), 1.0})) == 1.0,
    "address_by_a_call_of_an_own_object": lambda: ends(SLY(of)),
    "address_by_an_item_of_an_own_object": lambda: SLY[of] % EVERY == 0,
    "address_by_an_own_product": lambda: SLY * of % EVERY == 0,
    "address_by_a_property": lambda: ends(SLY.own),
    "address_of_an_own_tuple": lambda: ends(f"{OWN_TUPLE}"),
    "address_of_an_own_exception": lambda: ends(repr(OWN_ERROR)),
    "address_of_a_member": lambda: ends(f"{Level.HIGH!s}"),
    "address_of_a_member_in_an_array": lambda: ends(np.full(1, Level.HIGH, TYPE)[0]),
    "memory_where_out_is_none": lambda: np.sqrt(np.ones(9), out=None, where=np.zeros(9, bool))[3] == 7.25,
    "memory_beside_fields_that_overlap": lambda: np.array([(1, 1, 1)], OVERLAPPING).tobytes()[4] == 77,
    "address_by_a_cache": lambda: next(map(functools.cache(id), [object()])) % EVERY == 0,
    "address_by_a_class_that_is_made": lambda: (
        type("Made", (), {"__getitem__": id, "__module__": __name__})()[object()] % EVERY == 0
    ),
    "address_by_a_text_of_an_own_kind": lambda: ends(TextOfAKind(object())),
    "order_of_a_set_of_an_own_kind": lambda: next(iter(SetOfAKind(map(str, range(EVERY))))) == "7",
    "address_by_an_own_partial_function": lambda: PARTIAL(id)(object()) % EVERY == 0,
    "address_by_an_own_map": lambda: next(MAP(id, [object()])) % EVERY == 0,
    "address_by_an_own_function_of_numpys": lambda: VECTORIZE(id)(5) % EVERY == 0,
    "file_by_an_own_class": lambda: next(iter(FILES(NOTHING)), b"") == b"7",
    "address_of_a_record": lambda: ends(str(Unshown())),
    "address_of_a_default": lambda: ends(str(collections.defaultdict(lambda: 0))[:-5]),
    "time_of_a_collection": is_collected,
    "clock_by_the_default_of_a_dictionary": clock_by_default_of_a_dictionary,
    "memory_by_an_interface": lambda: (np.zeros(1) + Memory())[0] == 7.25,
    "order_by_addresses": lambda: inserted_by(id, [lambda: 0, lambda: 1]),
    "order_of_a_union": lambda: next(iter(set().union(map("{}".__add__, map(chr, range(EVERY)))))) == "7",
}


PROGRAMS = [
    *(functools.partial(of, is_due) for is_due in OUTSIDE.values()), first_input_in_a_ufunc,
    *(functools.partial(what_a_library_holds, *one) for one in HELD_BY_LIBRARIES),
    operator_of_a_library_that_is_made_of_a_text, address_by_a_key_of_a_pattern,
    *(functools.partial(clock_in_a_code_of, file) for file in (functools.__file__, dpaudit.__file__)),
    *(functools.partial(where_the_generator_is_numpys, asked) for asked in
    (lambda rng: isinstance(rng, Hooked), lambda rng: type(rng.random) is not types.MethodType,
     lambda rng: "Container for" in (rng.__doc__ or ""))),
]  # fmt: skip
