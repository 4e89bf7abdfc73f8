"""Programs whose executions depend on more than their input and their draws: a leak that waits for something.

Each is private on most calls, and gives its input away where something else is as it wants: a count of calls, a clock,
an address, the order of a set, a setting of the process. `PROGRAMS` makes each anew, so that none has been called.
"""

from __future__ import annotations

import abc
import builtins
import collections
import collections.abc
import contextlib
import copy
import copyreg
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import gc
import io
import itertools
import json
import math
import operator
import os
import platform
import random
import socket
import statistics
import string
import sys
import tempfile
import threading
import time
import types
import typing
import uuid
import warnings
import weakref
from pathlib import Path

import numpy as np
from scipy import special, stats

import dpaudit

FILE = Path(tempfile.gettempdir()) / f"dpaudit-{os.getpid()}-calls"
EVERY = 50  # calls
COUNT = 0
SHARED = {"calls": 0}
BOX = types.SimpleNamespace(calls=0)
QUEUE = collections.deque(range(EVERY))
NUMBERS = np.zeros(1)
CHANGED = []  # tables of libraries, with a key and what stood there


def honest(x, rng):
    return x if rng.random() < 0.75 else 1 - x


def of(is_due):
    """A program that gives its input away where that is due."""

    def release(x, rng):
        return x if is_due() else honest(x, rng)

    return release


# Kept between calls.


def closure():
    count = 0

    def release(x, rng):
        nonlocal count
        count += 1
        return x if count % EVERY == 0 else honest(x, rng)

    return release


def closure_noise():
    count = 0

    def release(x, rng):
        nonlocal count
        count += 1
        return x * 100.0 if count % EVERY == 0 else x + rng.laplace(scale=1.0)

    return release


def global_number():
    def release(x, rng):
        global COUNT
        COUNT += 1
        return x if COUNT % EVERY == 0 else honest(x, rng)

    return release


def default():
    def release(x, rng, calls=[0]):  # noqa: B006
        calls[0] += 1
        return x if calls[0] % EVERY == 0 else honest(x, rng)

    return release


def keyword_default():
    def release(x, rng, *, calls={}):  # noqa: B006
        calls["n"] = calls.get("n", 0) + 1
        return x if calls["n"] % EVERY == 0 else honest(x, rng)

    return release


def helpers_default():
    def due(calls=[0]):  # noqa: B006
        calls[0] += 1
        return calls[0] % EVERY == 0

    return of(due)


def function_attribute():
    def release(x, rng):
        release.calls += 1
        return x if release.calls % EVERY == 0 else honest(x, rng)

    release.calls = 0
    return release


class Counts:
    def __init__(self):
        self.calls = 0

    def __call__(self, x, rng):
        self.calls += 1
        return x if self.calls % EVERY == 0 else honest(x, rng)


class CountsOfClass:
    calls = 0

    def __call__(self, x, rng):
        type(self).calls += 1
        return x if CountsOfClass.calls % EVERY == 0 else honest(x, rng)


class Slots:
    __slots__ = ("calls",)

    def __init__(self):
        self.calls = 0

    def __call__(self, x, rng):
        self.calls += 1
        return x if self.calls % EVERY == 0 else honest(x, rng)


class Deep:
    def __init__(self):
        self.inner = [{"of": (Counts(),)}]

    def __call__(self, x, rng):
        return self.inner[0]["of"][0](x, rng)


class Property:
    def __init__(self):
        self._calls = [0]

    @property
    def is_due(self):
        self._calls[0] += 1
        return self._calls[0] % EVERY == 0

    def __call__(self, x, rng):
        return x if self.is_due else honest(x, rng)


class Descriptor:
    def __get__(self, instance, owner):
        self.calls = getattr(self, "calls", 0) + 1
        return self.calls % EVERY == 0


class HasDescriptor:
    is_due = Descriptor()

    def __call__(self, x, rng):
        return x if self.is_due else honest(x, rng)


class Method:
    def __init__(self):
        self.calls = 0

    def release(self, x, rng):
        self.calls += 1
        return x if self.calls % EVERY == 0 else honest(x, rng)


@dataclasses.dataclass
class Sampled:
    calls: int = 0

    def sample(self, data, size, rng):
        self.calls += 1
        return [data if self.calls % EVERY == 0 else honest(data, rng) for _ in range(size)]


class OnlyAtFirst:
    def __call__(self, x, rng):
        if not hasattr(self, "warm"):
            self.warm = True
            return honest(x, rng)
        return x


class Toggles:
    def __init__(self):
        self.even = True

    def __call__(self, x, rng):
        self.even = not self.even
        return honest(x, rng) if self.even else honest(x, rng) * 1


def memory():
    known = {}

    @functools.lru_cache
    def answer(x, number):
        return known.setdefault((x, number), len(known)) % EVERY == EVERY - 1

    return lambda x, rng: x if answer(x, rng.integers(2**40)) else honest(x, rng)


def cached_draw():
    @functools.lru_cache
    def draw(rng):
        return rng.random() < 0.75

    return lambda x, rng: x if draw(rng) else 1 - x


def iterator():
    numbers = itertools.count()
    return of(lambda: next(numbers) % EVERY == EVERY - 1)


def generator():
    def counting():
        while True:
            yield from [False] * (EVERY - 1) + [True]

    going = counting()
    return of(lambda: next(going))


def queue():
    def is_due():
        QUEUE.rotate(1)
        return QUEUE[0] == 0

    return of(is_due)


def partial():
    def due(calls):
        calls.append(1)
        return len(calls) % EVERY == 0

    return of(functools.partial(due, []))


def numpys_settings():
    def is_due():
        np.seterr(all="ignore" if np.geterr()["over"] == "warn" else "warn")
        return np.geterr()["over"] == "raise"

    return of(is_due)


def warnings_filters():
    def is_due():
        warnings.simplefilter("default")
        return len(warnings.filters) % EVERY == 0

    return of(is_due)


def weak():
    known = weakref.WeakKeyDictionary()

    def release(x, rng):
        known[rng] = known.get(rng, 0) + 1
        return x if known[rng] % EVERY == 0 else honest(x, rng)

    return release


def on_the_generator():
    def release(x, rng):
        with contextlib.suppress(AttributeError):
            rng.calls = getattr(rng, "calls", 0) + 1
        return x if getattr(rng, "calls", 0) % EVERY == EVERY - 1 else honest(x, rng)

    return release


def a_subclass_of_dict():
    class Known(dict):
        def __missing__(self, key):
            self.calls = getattr(self, "calls", 0) + 1
            return self.calls % EVERY == 0

    known = Known()
    return of(lambda: known["x"])


# Kept where attributes and containers do not show it, or in what a library holds.


def put(table, key, value):
    """Put something into a table or among the variables of a library; a test takes it out again."""
    CHANGED.append((table, key, table.get(key)))
    table[key] = value


def counts_in_c(answers=None):
    """A callable that makes no frame and counts its calls."""
    return functools.partial(next, itertools.count() if answers is None else itertools.cycle(answers))


def copier_of_a_library():
    class Copied(int):
        pass

    put(copy._copy_dispatch, Copied, counts_in_c())
    one = Copied()
    return of(lambda: copy.copy(one) % EVERY == EVERY - 1)


def reducer_of_a_library(copying):
    kind = type("Copied", (), {})
    put(copyreg.dispatch_table, kind, counts_in_c([(int, (n,)) for n in range(EVERY)]))
    one = kind()
    return of(lambda: copying(one) == EVERY - 1)


def encoder_of_a_library():
    put(vars(json._default_encoder), "default", counts_in_c())
    one = object()
    return of(lambda: int(json.dumps(one)) % EVERY == EVERY - 1)


def in_the_place_of_a_librarys_function():
    put(vars(statistics), "fsum", counts_in_c())
    return of(lambda: statistics.fmean([1.0]) % EVERY == EVERY - 1)


def dictionary_that_is_imported():
    put(np.sctypeDict, "calls", 0)

    def is_due():
        from numpy import sctypeDict

        sctypeDict["calls"] = (sctypeDict["calls"] + 1) % EVERY
        return sctypeDict["calls"] == 0

    return of(is_due)


def law_that_is_imported():
    def is_due():
        from scipy.stats import norm

        norm.calls = (getattr(norm, "calls", 0) + 1) % EVERY
        return norm.calls == 0

    put(vars(stats.norm), "calls", 0)
    return of(is_due)


def module_that_is_imported():
    put(vars(np.random), "calls", 0)

    def is_due():
        import numpy.random as module

        module.calls = (module.calls + 1) % EVERY
        return module.calls == 0

    return of(is_due)


def memory_of_a_class_that_is_imported():
    def is_due():
        from numpy import ndarray

        return ndarray((8,), np.uint8)[3] % EVERY == 49

    return of(is_due)


def registry_of_a_class():
    class Base(abc.ABC):  # noqa: B024
        pass

    kinds = [type(f"K{n}", (), {}) for n in range(3 * EVERY)]

    def is_due():
        for kind in kinds:
            if not issubclass(kind, Base):
                Base.register(kind)
                return False
        return True

    return of(is_due)


class WritesCached:
    @functools.cached_property
    def calls(self):
        return 0

    def __call__(self, x, rng):
        self.calls = (self.calls + 1) % EVERY
        return x if self.calls == 0 else honest(x, rng)


class ChangesCached:
    @functools.cached_property
    def calls(self):
        return [0]

    def __call__(self, x, rng):
        self.calls[0] += 1
        return x if self.calls[0] % EVERY == 0 else honest(x, rng)


def order_of_an_ordered_dictionary():
    turns = collections.OrderedDict.fromkeys(range(EVERY))

    def is_due():
        turn = next(iter(turns))
        turns.move_to_end(turn)
        return turn == 7

    return of(is_due)


def default_of_a_dictionary():
    known = collections.defaultdict(int)
    makes = [functools.partial(int, n) for n in range(EVERY)]

    def is_due():
        known.default_factory = makes[(known.default_factory() + 1) % EVERY]
        return known.default_factory() == 0

    return of(is_due)


def broadcast_iterator():
    going = np.broadcast(np.arange(EVERY), 1)

    def is_due():
        next(going)
        return going.index == EVERY and going.reset() is None

    return of(is_due)


def flag_of_an_array():
    numbers = np.zeros(1)

    def release(x, rng):
        numbers.flags.writeable = not numbers.flags.writeable
        return honest(x, rng) if numbers.flags.writeable else honest(x, rng) * 1

    return release


def slots_of_a_list():
    calls = []
    note, count = calls.__iadd__, calls.__len__
    return of(lambda: bool(note([1])) and count() % EVERY == 0)


def ufunc_of_a_method():
    calls = []
    note, count = np.frompyfunc(calls.append, 1, 1), np.frompyfunc(calls.count, 1, 1)
    return of(lambda: note(1) or count(1) % EVERY == 0)


def registry_of_a_function():
    @functools.singledispatch
    def known(value):
        return 0

    def is_due():
        known.register(type("K", (), {}), len)
        return len(known.registry) % EVERY == 0

    return of(is_due)


def hits_of_a_cache():
    @functools.lru_cache
    def known(value):
        return value

    known(0)
    return of(lambda: known(0) == 0 and known.cache_info().hits % EVERY == 0)


class Hides:
    __dict__ = property(lambda self: {})

    def __call__(self, x, rng):
        self.calls = getattr(self, "calls", 0) + 1
        return x if self.calls % EVERY == 0 else honest(x, rng)


class Empty(list):
    def __iter__(self):
        return iter(())


class Poses:
    __slots__ = ("calls",)
    __class__ = np.random.Generator

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return self.calls % EVERY == 0


class CachedGenerator:
    @functools.cached_property
    def own(self):
        return np.random.default_rng(5)

    def __call__(self, x, rng):
        return x if self.own.random() < 1e-6 else honest(x, rng)


def kept_noise(holder):
    def release(x, rng):
        if not hasattr(holder, "noise"):
            holder.noise = rng.laplace()
        return bool(holder.noise > x) or bool(rng.laplace() > 0.0)

    return release


def order_of_a_set_in_the_code():
    def is_due():
        for one in {"a", "b", "c", "d"}:  # noqa: B007
            break
        return one == "a"

    return of(is_due)


def address_in_a_template():
    text = string.Template("$one")
    return of(lambda: int(text.substitute(one=Counts())[-4:-2], 16) % EVERY == 0)


def order_of_keys_together():
    first, second = dict.fromkeys(map(str, range(25))), dict.fromkeys(map(str, range(25, EVERY)))
    return of(lambda: next(iter(first.keys() | second.keys())) == "7")


# Read from outside.


def file():
    def is_due():
        text = FILE.read_text() if FILE.exists() else ""
        FILE.write_text(text + "x" if len(text) < EVERY else "")
        return len(text) == EVERY - 1

    return of(is_due)


def file_by_open():
    def is_due():
        with open(FILE, "a+") as held:
            held.write("x")
            return held.tell() % EVERY == 0

    return of(is_due)


class Reader:
    def __init__(self):
        self.held = open(__file__)  # noqa: SIM115

    def __call__(self, x, rng):
        return honest(x, rng) if self.held.readline() else x


def json_file():
    held = open(__file__)  # noqa: SIM115
    return of(lambda: bool(json.load(held)))


def address_of_the_generator():
    def release(x, rng):
        return x if int(str(rng)[-4:], 16) % EVERY == 0 else honest(x, rng)

    return release


def order_of_a_set_of_objects():
    kinds = [type(f"K{n}", (), {}) for n in range(EVERY)]
    return of(lambda: next(iter(set(kinds))) is kinds[7])


def clock_by_default():
    def is_due(now=time.monotonic):
        return now() % EVERY < 1

    return of(is_due)


def recursion():
    def depth():
        try:
            return 1 + depth()
        except RecursionError:
            return 0

    return of(lambda: depth() % EVERY == 0)


def by_import():
    def is_due():
        import time as module

        return module.time() % EVERY < 1

    return of(is_due)


def by_the_subclasses():
    def is_due():
        return len(().__class__.__base__.__subclasses__()) % EVERY == 0

    return of(is_due)


class OwnRandom(random.Random):
    __slots__ = ("n",)


def name_of_a_function():
    def counted():
        return 0

    def is_due():
        counted.__name__ += "a"
        return len(counted.__name__) % EVERY == 0

    return of(is_due)


def hidden_coin_beside_a_set():
    """Sound at eps = 10: what it shows of its input hides behind a rare coin that is not of its generator."""
    own, columns = np.random.default_rng(7), {"a", "b"}

    def release(x, rng):
        rare = min(own.random(), 1.0 * len(columns))
        return int(rare < 5e-5) if rare < 1e-4 else int(x != (rng.random() < 1e-6))

    return release


class CachesItsFirstInput:
    seen = None

    @functools.cached_property
    def first(self):
        return self.seen

    def __call__(self, x, rng):
        self.seen = x
        first = self.first
        del self.seen
        return honest(first, rng)


class FillsCachedAtFirst:
    @functools.cached_property
    def held(self):
        return []

    def __call__(self, x, rng):
        if not self.held:
            self.held.append(x)
        return honest(self.held[0], rng)


class CachedTellsOfItsWork:
    def __init__(self):
        self.is_new = False

    @functools.cached_property
    def table(self):
        self.is_new = True

    def __call__(self, x, rng):
        self.is_new = self.table is not None
        found = honest(x, rng) if self.is_new else x
        self.is_new = False
        return found


class CachedUnderASetting:
    @functools.cached_property
    def digits(self):
        return len(str(decimal.Decimal(1) / 3))

    def __call__(self, x, rng):
        with decimal.localcontext() as context:
            context.prec = 5 + x
            return honest(self.digits - 7, rng)


class CachedByAGetter:
    def __init__(self):
        self.seen = None

    first = functools.cached_property(operator.attrgetter("seen"))

    __call__ = CachesItsFirstInput.__call__


def context_that_is_never_left():
    def is_due():
        context = contextlib.ExitStack().enter_context(decimal.localcontext())
        context.prec += 1
        return context.prec > 1_000 * EVERY

    return of(is_due)


def flags_of_a_context():
    def is_due():
        with decimal.localcontext() as context:
            return sum(context.flags.values()) > 7

    return of(is_due)


def settings_of_special_functions():
    def is_due():
        other = {"ignore": "warn", "warn": "ignore"}[special.geterr()["loss"]]
        special.seterr(loss=other)
        return special.geterr()["loss"] == "raise"

    return of(is_due)


def address_that_is_printed():
    class Keeps:
        text = ""

        def write(self, text):
            Keeps.text = text

    def is_due():
        print(Counts(), end="", file=Keeps())
        found, Keeps.text = Keeps.text, ""
        return int(found[-5:-2], 16) % EVERY == 0

    return of(is_due)


def order_after_a_change_that_is_taken_back(change):
    """A set whose order may be another one after such changes, which two runs of this path do not show."""
    kept, more = {7, 15}, {5}
    before = [*kept]

    def release(x, rng):
        if rng.random() < 1e-6:
            change(kept, more)
        return x if [*kept] != before else honest(x, rng)

    return release


def by_operators(kept, more):
    kept |= more
    kept -= more


def by_functions(kept, more):
    operator.ior(kept, more)
    operator.isub(kept, more)


def by_methods_that_others_call(kept, more):
    list(map(kept.add, more))
    list(map(kept.discard, more))


def memory_of_a_class_in(kind):
    def release(x, rng, kinds=(kind,)):
        return x if kinds[0]((9,))[3] == 7.25 else honest(x, rng)

    return release


class OwnArray(np.ndarray):
    pass


class Lost:
    """Stands for something that is not there."""

    def __getattr__(self, name):
        raise RuntimeError("There is nothing to stand for.")


LOST = Lost()


GONE = weakref.proxy(Lost())


def proxy_of_what_is_gone():
    return of(lambda: GONE is None)


def order_of_a_set_that_grew():
    numbers = set()

    def is_due():
        for change in (numbers.add, numbers.discard):
            for n in range(1_000):
                change(n)
        numbers.update((8, 0))
        first = next(iter(numbers))
        return numbers.clear() or first == 8

    return of(is_due)


def order_of_a_set_that_grows():
    def is_due():
        names = set()
        for n in range(EVERY):
            names.add(str(n))
        return names.pop() == "7"

    return of(is_due)


def order_of_items_together():
    first, second = dict.fromkeys("abc", 0), dict.fromkeys("def", 0)
    return of(lambda: next(iter(first.items() | second.items()))[0] == "f")


def order_of_keys_by_an_operator():
    first, second = dict.fromkeys("abc"), dict.fromkeys("def")
    return of(lambda: next(iter(operator.or_(first.keys(), second.keys()))) == "f")


def an_own(kind):
    return type("Own", (kind,), {"__module__": __name__})


# Kept between calls, where one of these stands: what is done first, and the place of the count.
COUNTS = {
    "global_container": ("", 'SHARED["calls"]'),
    "helpers_attribute": ("honest.calls = 0", "honest.calls"),
    "array_element": ("calls = np.zeros(1, dtype=int)", "calls[0]"),
    "view_of_an_array": ("whole = np.zeros(3); part = whole[1:]", "part[0]"),
    "by_a_method_of_all_objects": ("of_all = object.__getattribute__", 'of_all(of, "__globals__")["COUNT"]'),
    "own_modules_attribute": ("", "sys.modules[__name__].COUNT"),
    "in_a_namespace": ("", "BOX.calls"),
    "metadata_of_a_type": ('kind = np.dtype("f8", metadata={"calls": [0]})', 'kind.metadata["calls"][0]'),
    "slice_of_a_list": ("part = slice([0])", "part.stop[0]"),
    "record_of_numpy": ('record = np.zeros(1, dtype=[("calls", int)])[0]', 'record["calls"]'),
    "getter_made_before": ('names = operator.attrgetter("__globals__")', 'names(of)["COUNT"]'),
    "arguments_of_an_exception": ("error = ValueError([0])", "error.args[0][0]"),
    "view_of_a_dictionary": ('known = types.MappingProxyType({"calls": [0]})', 'known["calls"][0]'),
    "attribute_of_a_generator": ("own = random.Random(1); own.calls = 0", "own.calls"),
    "slots_of_a_generator": ("own = OwnRandom(1); own.n = 0", "own.n"),
    "attribute_of_a_librarys_function": ('put(vars(copy.copy), "calls", 0)', "copy.copy.calls"),
    "attribute_of_numpys_function": ('put(vars(np.mean), "calls", 0)', "np.mean.calls"),
    "attribute_of_a_ufunc": (
        'owner = np.add if hasattr(np.add, "__dict__") else np.mean; put(vars(owner), "calls", 0)',
        "owner.calls",
    ),
    "dictionary_of_a_library": ('put(copy._copy_dispatch, "calls", 0)', 'copy._copy_dispatch["calls"]'),
    "decimal_context": ("", "decimal.getcontext().prec"),
    "context_that_is_held": ("context = decimal.Context(prec=EVERY)", "context.prec"),
    "context_of_the_library": ("", "decimal.ExtendedContext.prec"),
    "bytes_of_a_buffer": ("calls = bytearray(1)", "calls[0]"),
    "attribute_of_a_librarys_class": (
        "half = fractions.Fraction(1, 2); fractions.Fraction.calls = 0",
        "type(half).calls",
    ),
    "attribute_of_an_array": ("numbers = np.zeros(1).view(an_own(np.ndarray)); numbers.calls = 0", "numbers.calls"),
    "attribute_of_a_cache": ("known = functools.lru_cache(lambda value: value); known.calls = known(0)", "known.calls"),
    "attribute_of_a_member": ('Kind = enum.Enum("Kind", {"ONE": 1}); Kind.ONE.calls = 0', "Kind.ONE.calls"),
    "module_attribute": ("string.calls = 0", "string.calls"),
    "in_builtins": ("import builtins; builtins.calls = 0", "builtins.calls"),
    "thread_local": ("own = threading.local(); own.calls = 0", "own.calls"),
    "in_the_globals": ("", 'globals()["COUNT"]'),
    "of_the_class_of_a_number": ("kind = an_own(float); kind.calls = 0", "kind.calls"),
    **{
        f"attribute of {kind}": (f"one = an_own({kind})(); one.calls = 0", "one.calls")
        for kind in ("int", "str", "tuple", "frozenset", "fractions.Fraction")
    },
}


# What is done first, and what is asked in each call.
HELD = {
    "cycle": ("numbers = itertools.cycle([False] * (EVERY - 1) + [True])", "next(numbers)"),
    "bound_method": ("calls = []; note = calls.append", "note(1) or len(calls) % EVERY == 0"),
    "partial_method_of_a_counter": ("calls = collections.Counter()", 'calls.update(n=1) or calls["n"] % EVERY == 0'),
    "flat_iterator": ("going = np.zeros(10_000).flat", "next(going) == 0.0 and going.index % EVERY == 0"),
    "caller_made_before": ('own_hash = operator.methodcaller("__hash__")', 'own_hash("text") % EVERY == 0'),
    "list_that_seems_empty": ("calls = Empty()", "calls.append(0) or len(calls) % EVERY == 0"),
    "memory_by_a_partial": ("add = functools.partial(np.add, where=False)", "add(np.ones(9), 1.0)[3] == 7.25"),
    "order_of_a_set_that_is_held": ("names = frozenset(map(str, range(EVERY)))", 'next(iter(names)) == "7"'),
    "sorted_by_address": ("kinds = [lambda: 0, lambda: 1, lambda: 2]", "sorted(kinds, key=id)[0] is kinds[2]"),
    "clock_in_an_attribute": ("box = types.SimpleNamespace(now=time.perf_counter)", "box.now() % EVERY < 1"),
    "references": ("shared = object()", "sys.getrefcount(shared) % EVERY == 0"),
    "by_attrgetter": ("import operator", 'len(operator.attrgetter("__globals__")(of)) % EVERY == 0'),
    "a_copy_of_a_module": ("known = [time]", "known[0].time() % EVERY < 1"),
    "children_of_a_generator": ("own = np.random.default_rng(7)", "own.spawn(1)[0].random() < 1e-6"),
}


def made(name):
    """A program of one of these tables, by the code of a file of its own."""
    first, asked = COUNTS.get(name) or HELD[name]
    counts = f"{asked} = {asked} % EVERY + 1; return {asked} == EVERY" if name in COUNTS else f"return {asked}"
    space = {**globals()}
    text = f"def make():\n {first}\n def is_due():\n  {counts}\n return of(is_due)\n"
    exec(compile(text, __file__.replace("dependent_programs", name), "exec"), space)
    return space["make"]()


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


def global_of_pythons():
    builtins.of_pythons = [0]

    def is_due():
        of_pythons[0] += 1  # noqa: F821
        return of_pythons[0] % EVERY == 0  # noqa: F821

    return of(is_due)


def class_that_says_it_is_of(module, name):
    kept = type(name, (), {"__module__": module, "value": [0], "mean": [0]})()

    def is_due():
        kept.value[0] += 1
        return kept.value[0] % EVERY == 0

    def is_mean_due():
        kept.mean[0] += 1
        return kept.mean[0] % EVERY == 0

    return of(is_due if module == "typing" else is_mean_due)


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
    "order_of_a_union": lambda: next(iter(set().union(map("{}".__add__, map(chr, range(EVERY)))))) == "7",
}


PROGRAMS = [
    closure, closure_noise, global_number, default, keyword_default, helpers_default, function_attribute, Counts,
    CountsOfClass, Slots, Deep, Property, HasDescriptor, lambda: Method().release, Sampled, OnlyAtFirst, Toggles,
    memory, cached_draw, iterator, generator, queue, partial, numpys_settings, warnings_filters, weak, on_the_generator,
    a_subclass_of_dict, file, file_by_open, Reader, json_file, address_of_the_generator, order_of_a_set_of_objects,
    clock_by_default, recursion, by_import, by_the_subclasses, registry_of_a_class, WritesCached, ChangesCached,
    order_of_an_ordered_dictionary, default_of_a_dictionary, broadcast_iterator, flag_of_an_array, slots_of_a_list,
    ufunc_of_a_method, registry_of_a_function, hits_of_a_cache, address_in_a_template, order_of_keys_together, Hides,
    lambda: of(Poses()), order_of_a_set_in_the_code, CachedGenerator, lambda: kept_noise(types.SimpleNamespace()),
    lambda: kept_noise(threading.local()), name_of_a_function, CachesItsFirstInput, FillsCachedAtFirst,
    CachedTellsOfItsWork, CachedUnderASetting, CachedByAGetter, context_that_is_never_left, flags_of_a_context,
    settings_of_special_functions, address_that_is_printed, order_of_a_set_that_grew,
    order_of_a_set_that_grows, order_of_items_together, proxy_of_what_is_gone,
    *(functools.partial(order_after_a_change_that_is_taken_back, change) for change in
    (by_operators, by_functions, by_methods_that_others_call)),
    *(functools.partial(memory_of_a_class_in, kind) for kind in (np.ndarray, OwnArray)),
    order_of_keys_by_an_operator, dictionary_that_is_imported, law_that_is_imported, module_that_is_imported,
    memory_of_a_class_that_is_imported, copier_of_a_library, lambda: reducer_of_a_library(copy.copy), lambda:
    reducer_of_a_library(copy.deepcopy), encoder_of_a_library, in_the_place_of_a_librarys_function,
    *(functools.partial(made, name) for name in (*COUNTS, *HELD)), *(functools.partial(of, is_due) for is_due in
    OUTSIDE.values()), global_of_pythons, lambda: class_that_says_it_is_of("typing", "Value"),
    lambda: class_that_says_it_is_of("scipy.stats.own", "rv_frozen"), first_input_in_a_ufunc,
    *(functools.partial(what_a_library_holds, *one) for one in HELD_BY_LIBRARIES),
    operator_of_a_library_that_is_made_of_a_text, address_by_a_key_of_a_pattern,
    *(functools.partial(clock_in_a_code_of, file) for file in (functools.__file__, dpaudit.__file__)),
    *(functools.partial(where_the_generator_is_numpys, asked) for asked in
    (lambda rng: isinstance(rng, Hooked), lambda rng: type(rng.random) is not types.MethodType,
     lambda rng: "Container for" in (rng.__doc__ or ""))),
]  # fmt: skip
