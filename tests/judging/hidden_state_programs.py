"""Programs that keep something where attributes and containers do not show it, or in what a library holds."""

from __future__ import annotations

import abc
import collections
import collections.abc
import copy
import copyreg
import functools
import itertools
import json
import statistics
import string
import threading
import types

import numpy as np
from kept_state_programs import CHANGED, EVERY, Counts, honest, of
from scipy import stats

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


PROGRAMS = [
    registry_of_a_class, WritesCached, ChangesCached, order_of_an_ordered_dictionary, default_of_a_dictionary,
    broadcast_iterator, flag_of_an_array, slots_of_a_list, ufunc_of_a_method, registry_of_a_function, hits_of_a_cache,
    address_in_a_template, order_of_keys_together, Hides, lambda: of(Poses()), order_of_a_set_in_the_code,
    CachedGenerator, lambda: kept_noise(types.SimpleNamespace()), lambda: kept_noise(threading.local()),
    dictionary_that_is_imported, law_that_is_imported, module_that_is_imported, memory_of_a_class_that_is_imported,
    copier_of_a_library, lambda: reducer_of_a_library(copy.copy), lambda: reducer_of_a_library(copy.deepcopy),
    encoder_of_a_library, in_the_place_of_a_librarys_function,
]  # fmt: skip
