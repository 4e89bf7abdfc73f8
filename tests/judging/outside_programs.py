"""Programs that read files, orders, addresses and settings, or work a value out once."""

from __future__ import annotations

import decimal
import functools
import operator
import random
import weakref

import numpy as np
from kept_state_programs import EVERY, FILE, Counts, honest, of

# Read from outside.


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


def address_of_the_generator():
    def release(x, rng):
        return x if int(str(rng)[-4:], 16) % EVERY == 0 else honest(x, rng)

    return release


def recursion():
    def depth():
        try:
            return 1 + depth()
        except RecursionError:
            return 0

    return of(lambda: depth() % EVERY == 0)


class OwnRandom(random.Random):
    __slots__ = ("n",)


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


def flags_of_a_context():
    def is_due():
        with decimal.localcontext() as context:
            return sum(context.flags.values()) > 7

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


def an_own(kind):
    return type("Own", (kind,), {"__module__": __name__})


PROGRAMS = [
    file_by_open, Reader, address_of_the_generator, recursion, CachesItsFirstInput, FillsCachedAtFirst,
    CachedTellsOfItsWork, CachedUnderASetting, CachedByAGetter, flags_of_a_context, address_that_is_printed,
    order_of_a_set_that_grew, order_of_a_set_that_grows,
    *(functools.partial(order_after_a_change_that_is_taken_back, change) for change in
    (by_operators, by_functions, by_methods_that_others_call)),
    *(functools.partial(memory_of_a_class_in, kind) for kind in (np.ndarray, OwnArray)),
]  # fmt: skip
