"""Programs that tell what stands for a draw, a generator or a function of a library from what it stands for.

Each gives its input away in rare runs, which real runs do not show: by a view of draws that is none, an error's text,
the layout of an array, how often its own methods are called, an identity. Each loses infinitely much; of `SMALL` the
loss is ln 5 in such runs.
"""

from __future__ import annotations

import collections
import collections.abc
import copy
import dataclasses
import functools
import itertools
import math
import operator
import pickle
import random
import secrets
import warnings

import numpy as np
import pytest

import dpaudit
from dpaudit.symbolic import tape

ASARRAY, LOG, NUMPYS = np.asarray, math.log, {np.asarray: 1}


def coin(x, rng):
    return x if rng.random() < 0.75 else 1 - x


def where(event):
    return lambda x, rng: ("a", x) if rng.random() < 1e-6 and event(rng) else coin(x, rng)


def where_python(event):
    def release(x, rng: random.Random):
        return ("a", x) if rng.random() < 1e-6 and event(rng) else coin(x, rng)

    return release


def error_of(call):
    try:
        call()
    except (TypeError, RuntimeError, ValueError) as error:
        return str(error)
    return ""


def has_the_error(ask):
    """A program that leaks where a call of a generator raises what a real one does."""
    known = error_of(lambda: ask(np.random.default_rng(1)))
    assert known
    return where(lambda rng: error_of(lambda: ask(rng)) == known)


def has_pythons_error(ask):
    known = error_of(lambda: ask(random.Random(1)))
    assert known
    return where_python(lambda rng: error_of(lambda: ask(rng)) == known)


def as_it_is(ask):
    """A program that leaks where something is as it is outside of a traced run."""
    known = ask(np.random.default_rng(1))
    return where(lambda rng: ask(rng) == known)


class Cards(collections.abc.MutableSequence):
    def __init__(self):
        self.cards, self.calls = [0, 1, 2], 0

    def __len__(self):
        return len(self.cards)

    def __getitem__(self, place):
        return self.cards[place]

    def __setitem__(self, place, card):
        self.calls += 1
        self.cards[place] = card

    def __delitem__(self, place):
        del self.cards[place]

    def insert(self, place, card):
        self.cards.insert(place, card)


def calls_of(one, do):
    do(one)
    return one.calls


class Shown:
    calls = 0

    def __repr__(self):
        self.calls += 1
        return "shown"


class Compared(int):
    calls = 0

    def __eq__(self, other):
        self.calls += 1
        return int(self) == int(other)

    __hash__ = int.__hash__


class Base:
    one = 1


class AsksForItsFrame(Base):
    def of_its_base(self):
        named = super
        return named().one


def layout(array):
    return array.ravel(order="A").tolist() == array.ravel().tolist()


FORTRAN = np.array([[0, 1, 2]] * 2, order="F")
LEAKING = {
    # Errors.
    "a keyword": has_the_error(lambda rng: rng.random(foo=1)),
    "no argument": has_the_error(lambda rng: rng.binomial(5)),
    "an argument of pythons": has_pythons_error(lambda rng: rng.random(1)),
    "bits of a float": has_pythons_error(lambda rng: rng.getrandbits(2.5)),
    "a text": has_pythons_error(lambda rng: rng.uniform("a", 1)),
    "two values": has_the_error(lambda rng: coin(x=1, **dict(x=2, rng=rng))),
    "arguments that are none": has_the_error(lambda rng: coin(*5)),
    "keywords that are none": has_the_error(lambda rng: coin(**5)),
    "read only": has_the_error(lambda rng: rng.shuffle(np.broadcast_to(np.arange(1), 2))),
    # Layouts and shapes.
    "a layout": as_it_is(lambda rng: layout(rng.permutation(FORTRAN, axis=1))),
    "a shape": as_it_is(lambda rng: rng.choice(FORTRAN, size=(1, 2), axis=1, replace=False).shape),
    # Calls of the program's own methods.
    "swaps": as_it_is(lambda rng: calls_of(Cards(), rng.shuffle)),
    "texts": as_it_is(lambda rng: calls_of(Shown(), lambda one: str(ValueError(one, 1)))),
    "comparisons": as_it_is(lambda rng: calls_of(Compared(1), lambda one: set([one, Compared(2)]))),
    # Functions.
    "the function": as_it_is(lambda rng: np.asarray is ASARRAY),
    "an equal function": as_it_is(lambda rng: np.asarray == ASARRAY),
    "a function as a key": as_it_is(lambda rng: NUMPYS.get(np.asarray)),
    "a function in a list": as_it_is(lambda rng: np.asarray in [ASARRAY]),
    "the class of a function": as_it_is(lambda rng: type(np.array).__name__),
    "a class by its name": as_it_is(lambda rng: np.array.__class__.__name__),
    "a class of a method": as_it_is(lambda rng: rng.__init__.__class__.__name__),
    "a default": as_it_is(lambda rng: collections.defaultdict(math.gcd).default_factory == math.gcd),
    "a function in a table": as_it_is(lambda rng: {}.setdefault(1, math.gcd) == math.gcd),
    "a repeated function": as_it_is(lambda rng: next(itertools.repeat(math.gcd)) == math.gcd),
    "a first value": as_it_is(lambda rng: functools.reduce(lambda a, b: a, [1], math.gcd) == math.gcd),
    "a largest value": as_it_is(lambda rng: max([1, math.gcd], key=callable) is math.gcd),
    "a frame": as_it_is(lambda rng: error_of(AsksForItsFrame().of_its_base)),
    # Numbers.
    "last digits": where(lambda rng: (rng.random() * 2**53 / 3).is_integer()),
    "last digits behind a number": where(lambda rng: ((rng.random() + 2.0**19) * 2**33 / 3).is_integer()),
    "nan": where_python(lambda rng: (lambda u: u != u)(rng.uniform(2.0, math.nan))),
}


@pytest.mark.parametrize("name", LEAKING)
def test_what_stands_for_another_is_not_told_from_it(name):
    result = dpaudit.certify(LEAKING[name], "eps=1.1", [(0, 1)], seconds=2.0)
    assert result.verdict != "kept"


def shifted(view):
    """On x_prime a number of probability 0.9 is moved by a view of it, and has probability 0.5."""

    def release(x, rng):
        if not rng.random() < 1e-4:
            return coin(x, rng)
        draws = rng.random(2)
        if x:
            seen = view(draws)
            seen[(0,) * seen.ndim] += 0.4
        return ("r", bool(draws[0] < 0.9))

    return release


VIEWS = [
    *(np.ravel, np.squeeze, np.transpose, np.atleast_1d, lambda draws: np.asarray(draws)),
    *(lambda draws: np.asarray(draws, dtype=float), lambda draws: np.array(draws, copy=False)),
    *(lambda draws: np.reshape(draws, (2, 1)), functools.partial(np.expand_dims, axis=0)),
    *(lambda draws: draws.astype(float, copy=False), lambda draws: draws.astype(float, "K", "unsafe", True, False)),
]


def moved_by_a_view_of(result):
    """On x_prime a number of probability 0.9 is moved where numpy lays a result out as the transposed draws are."""

    def release(x, rng):
        if not rng.random() < 1e-4:
            return coin(x, rng)
        found = result(rng.random((2, 2)).T)
        found.T.ravel()[0] += 0.4 * x
        return ("r", bool(found[0, 0] < 0.9))

    return release


RESULTS = [
    *(lambda draws: draws + 0.0, lambda draws: draws.astype(float), lambda draws: np.maximum(draws, -1.0)),
    *(
        lambda draws: np.where(draws > -1.0, draws, 0.0),
        lambda draws: 1.0 - (1.0 - draws),
        lambda draws: draws[0, 0] + 0 * draws,
    ),
    *(np.copy, lambda draws: draws[0, 0] + np.minimum(draws, -1.0) + 1.0),
]


@pytest.mark.parametrize("result", RESULTS)
def test_arrays_of_draws_are_laid_out_as_numpys(result):
    assert dpaudit.certify(moved_by_a_view_of(result), "eps=1.2", [(0, 1)], seconds=5.0).verdict == "violated"


@pytest.mark.parametrize("view", VIEWS)
def test_what_is_written_to_a_view_of_draws_is_written_to_them(view):
    assert dpaudit.certify(shifted(view), "eps=1.2", [(0, 1)], seconds=5.0).verdict == "violated"  # ln 5 = 1.6
    assert dpaudit.certify(shifted(view), "eps=1.7", [(0, 1)], seconds=5.0).verdict == "kept"


@pytest.mark.parametrize("view", [lambda noise: np.asarray(noise, dtype=float), np.flip, np.atleast_2d])
def test_what_is_written_to_a_view_of_noise_is_written_to_it(view):
    def release(x, rng):
        noise = rng.laplace(size=2)
        view(noise)[..., :] += x
        return noise.tolist()

    assert dpaudit.record_noise(release, [(0, 1)], "eps=1.9", seed=1).grade == "proved"
    assert dpaudit.record_noise(release, [(0, 1)], "eps=2", seed=1).grade == "same"


def by_classes(x, rng: random.Random):
    return x if random.Random.random(rng) < 0.75 else 1 - x


def by_numpys_classes(x, rng):
    return x if np.random.Generator.random(rng) < 0.75 else 1 - x


def test_what_is_asked_of_a_generator_beside_its_draws_is_no_error():
    broken = dpaudit.certify(lambda x, rng: coin(x, rng) if rng.__eq__(rng) else 5, "eps=0.5", [(0, 1)], seconds=5.0)
    assert broken.verdict == "violated" and broken.pairs[0].epsilon_lower == pytest.approx(math.log(3.0))


def shuffles_its_own(x, rng):
    cards = [Cards(), Cards()]
    rng.shuffle(cards)
    return coin(x, rng) + 0 * len(cards[0])


def chooses_its_own(x, rng: random.Random):
    return coin(x, rng) + 0 * len(rng.choice([Cards(), Cards()]))


@pytest.mark.parametrize("mechanism", [by_classes, by_numpys_classes, shuffles_its_own, chooses_its_own])
def test_what_a_program_may_ask_of_a_generator_is_followed(mechanism):
    assert dpaudit.certify(mechanism, "eps=1.1", [(0, 1)], seconds=5.0).verdict == "kept"


def says_an_error(x, rng):
    if rng.random() < 1e-6:
        coin(*5) if x == 0 else operator.call(raises, "test_stand_ins.coin() argument after * must be an iterable")
    return coin(x, rng)


def raises(text):
    raise TypeError(f"{text}, not int")


def saturates(x, rng):
    return rng.geometric(1e-300) if x else np.int64(2**63 - 1)


OBJECTS = np.array([1, 2], dtype=object)
SHOWN = {
    "an array of objects": lambda: np.asarray(OBJECTS).dtype.kind,
    "a text": lambda: repr(np.asarray)[:9],
    "bytes": lambda: pickle.dumps(np.asarray),
    "attributes": lambda: hasattr(np.asarray, "plain"),
    "a copy": lambda: copy.copy(np.asarray) is np.asarray,
    "the text of a draw": lambda: repr(random.gauss)[:9],
    "the text of what a getter gives": lambda: repr(operator.attrgetter("gauss")(random))[:9],
    "bytes of a draw": lambda: pickle.dumps(secrets.randbelow),
    "bytes of a function": lambda: pickle.dumps(math.log),
    "bytes of a generator": lambda: pickle.dumps(random.Random(3)),
    "the class of a class": lambda: type(random.Random) is type,
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_a_traced_run_shows_is_what_a_real_one_does(name):
    known = SHOWN[name]()

    def release(x, rng):
        return (known if x else SHOWN[name]()) if rng.random() < 1e-6 else coin(x, rng)

    assert dpaudit.certify(release, "eps=1.1", [(0, 1)], seconds=2.0).verdict != "violated"
    assert dpaudit.record_noise(release, [(0, 1)], "eps=1.1", seed=1).grade != "proved"


def copies_a_function(x, rng):
    table = copy.deepcopy([np.asarray, copy.copy(math.log)])
    return x if rng.random() < 0.8 else 1 - x + 0 * len(table)


def test_a_function_of_a_library_is_copied_as_it_is():
    assert dpaudit.certify(copies_a_function, "eps=1.1", [(0, 1)], seconds=5.0).verdict == "violated"  # ln 4
    assert dpaudit.record_noise(copies_a_function, [(0, 1)], "eps=1.1", seed=1).grade == "proved"


@pytest.mark.parametrize("mechanism", [says_an_error, saturates])
def test_what_stands_for_another_is_no_reason_to_accuse(mechanism):
    assert dpaudit.certify(mechanism, "eps=1.1", [(0, 1)], seconds=2.0).verdict == "open"
    assert dpaudit.record_noise(mechanism, [(0, 1)], "eps=1.1", seed=1).grade != "proved"


def draws_to_its_own(x, rng):
    array = np.zeros(3)
    rng.standard_normal(out=array)
    return (array + x).tolist()


def permutes_its_own(x, rng):
    array = np.arange(8) + x
    rng.permuted(array, out=array)
    return array.tolist()


@pytest.mark.parametrize("mechanism", [draws_to_its_own, permutes_its_own])
def test_what_arguments_are_checked_by_writes_nothing_to_arrays_of_the_program(mechanism):
    first, second = (dpaudit.record_noise(mechanism, [(0, 1)], "eps=1", seed=1).pairs[0] for _ in range(2))
    assert first.trace == second.trace and "looks at the value of its noise" in first.unproved


class Ends:
    def __init__(self, log):
        self.itself, self.log = self, log

    def __del__(self):
        self.log.append(1)


def asks_what_was_collected(x, rng):
    log = []
    Ends(log)
    return ("a", x) if log and rng.random() < 1e-3 else coin(x, rng)


def test_what_the_process_collects_when_it_likes_is_an_impurity():
    assert "Ends" in dpaudit.certify(asks_what_was_collected, "eps=1.1", [(0, 1)], seconds=2.0).pairs[0].reason


RECORDED = {
    "a function": lambda x, rng, known=math.log: rng.laplace() + 5.0 * x * (math.log == known),
    "a class": lambda x, rng, known=(random.Random,): rng.laplace() + 5.0 * x * (random.Random in known),
    "a class below": lambda x, rng: rng.laplace() + 5.0 * x * issubclass(random.SystemRandom, random.Random),
    "a precision": lambda x, rng: 0.1 * x + rng.standard_normal(dtype=np.float32),
}


@pytest.mark.parametrize("name", RECORDED)
def test_a_record_of_a_program_that_tells_symbols_apart_keeps_nothing(name):
    assert dpaudit.record_noise(RECORDED[name], [(0, 1)], "eps=4.9,delta=0.001", seed=1).grade != "same"


def swallows_what_ends_it(x, rng):
    try:
        for _ in range(11):
            rng.laplace()
    except BaseException:
        return 0.0
    return 5.0 * x


def test_a_run_that_was_ended_is_not_known_whatever_the_program_catches(monkeypatch):
    monkeypatch.setattr(tape, "MAX_EVENTS", 10)
    assert dpaudit.record_noise(swallows_what_ends_it, [(0, 1)], "eps=1", seed=1).grade == "not recorded"


@dataclasses.dataclass
class Warned:
    """Whether a division by 0 is an error."""

    def __call__(self, x, rng):
        try:
            np.float64(1.0) / np.float64(0.0)
        except RuntimeWarning:
            return rng.laplace() + 5.0 * x
        return rng.laplace()


def test_a_record_is_made_under_the_settings_of_the_process():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dpaudit.record_noise(Warned(), [(0, 1)], "eps=1", seed=1).grade != "same"
