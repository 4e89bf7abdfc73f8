"""What cannot be traced is refused with its line, never guessed; and symbols lead a program as its numbers would."""

from __future__ import annotations

import array
import collections
import copy
import itertools
import math
import os
import random
import re
import secrets
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

import dpaudit

OTHER_RNG = np.random.default_rng(1)
OTHER_RANDOM = random.Random(1)


def takes_a_logarithm(x, rng):
    return x - math.log(rng.random())


def catches_everything(x, rng):
    try:
        return math.exp(rng.random()) < 1.5
    except:  # noqa: E722
        return x


def asks_for_a_type_error(x, rng):
    try:
        np.linalg.norm(np.asarray(rng.random(2)))
    except TypeError as error:
        raise TypeError("norm") from error
    return x


def goes_past_pythons_methods(x, rng: random.Random):
    return x if np.frompyfunc(random.Random.random, 1, 1)(rng) < 1e-6 else rng.getrandbits(1)


def starts_a_thread(x, rng):
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    return x


REFUSED = {
    "adds a uniform number": (lambda x, rng: x + rng.random(), "an output holds a uniform number itself"),
    "takes a logarithm": (takes_a_logarithm, "used as a number"),
    "takes a logarithm of an array": (lambda x, rng: float(np.sum(np.log(rng.random(2)))) + x, "used as a number"),
    "compares two": (lambda x, rng: rng.random() < rng.random(), "two uniform numbers are compared"),
    "catches everything": (catches_everything, "used as a number"),
    "asks for a type error": (
        asks_for_a_type_error,
        "[Ww]ith numbers in the place of its draws|used as a number|two uniform numbers",
    ),
    "prints it": (lambda x, rng: f"{rng.random():.1f}", "printed"),
    "stores it": (lambda x, rng: {rng.random(): x}, "looked up by its value"),
    "draws laplace": (lambda x, rng: x + rng.laplace(), "laplace draws a number from infinitely many"),
    "uses the bit stream": (lambda x, rng: x + int(rng.bit_generator.random_raw() % 2), "bit stream is used itself"),
    "copies the generator": (lambda x, rng: int(copy.deepcopy(rng).integers(2)) + x, "copied or sent elsewhere"),
    "uses numpys global": (lambda x, rng: x + np.random.randint(2), "generator other than the one that is given"),  # noqa: NPY002
    "uses another generator": (
        lambda x, rng: x + int(OTHER_RNG.integers(2)),
        "generator other than the one that is given",
    ),
    "goes past the methods": (
        lambda x, rng: x if np.frompyfunc(np.random.Generator.random, 1, 1)(rng) < 1e-6 else int(rng.integers(2)),
        "past its methods",
    ),
    "goes past pythons methods": (goes_past_pythons_methods, "generator other than the one that is given"),
    "uses another random": (lambda x, rng: x + OTHER_RANDOM.randrange(2), "module random is used"),
    "uses random": (lambda x, rng: x + random.getrandbits(1), "module random is used"),
    "uses the system": (lambda x, rng: x + os.urandom(1)[0] % 2, "system's random numbers"),
    "uses secrets": (lambda x, rng: x + secrets.randbelow(2), "system's random numbers"),
    "makes a generator": (lambda x, rng: x + int(np.random.default_rng().integers(2)), "system's random numbers"),
    "reads the clock": (lambda x, rng: x + time.time_ns() % 2, "the clock is read"),
    "asks for an address": (lambda x, rng: x + id(x) % 2, r"id\(\) depends"),
    "asks for a hash": (lambda x, rng: x + hash("text") % 2, r"hash\(\) depends"),
    "starts a thread": (starts_a_thread, "a thread is started"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_traced_is_refused(name):
    mechanism, reason = REFUSED[name]
    result = dpaudit.certify(mechanism, "eps=1", [(0, 1)])
    assert result.verdict == "open"
    assert pytest.approx(1.0) == result.mass_left
    assert re.search(reason, result.refusal), result.refusal


def test_a_refusal_names_the_line_of_the_call():
    line = takes_a_logarithm.__code__.co_firstlineno + 1
    refusal = dpaudit.certify(takes_a_logarithm, "eps=1", [(0, 1)]).refusal
    assert f"line {line} of {__file__}" in refusal


def test_a_counter_between_calls_is_noticed():
    calls = []

    def alternates(x, rng):
        calls.append(x)
        return (x + len(calls)) % 2 if rng.random() < 0.5 else 0

    assert "something is kept between runs" in dpaudit.certify(alternates, "eps=1", [(0, 1)]).refusal


def test_a_first_call_that_differs_is_noticed():
    seen = []

    def answers_once(x, rng):
        bit = int(rng.integers(2))
        if not seen:
            seen.append(bit)
            return bit
        return "used up"

    assert "something is kept between runs" in dpaudit.certify(answers_once, "eps=1", [(0, 1)]).refusal


def test_draws_that_depend_on_earlier_calls_are_noticed():
    cache = {}

    def draws_less_later(x, rng):
        cache[x] = cache.get(x, 0) + 1
        return int(rng.integers(4 if cache[x] < 3 else 2))

    assert "something is kept between runs" in dpaudit.certify(draws_less_later, "eps=1", [(0, 1)]).refusal


def test_a_cache_that_calls_fill_is_named_even_where_it_holds_what_was_computed_alone():
    cache = {}

    def computes_once(x, rng):
        probability = cache.setdefault(x, 0.25 + 0.5 * x)
        return bool(rng.random() < probability)

    assert "the variable cache of computes_once" in dpaudit.certify(computes_once, "eps=1.1", [(0, 1)]).refusal


def test_a_mechanism_without_a_generator_is_refused():
    assert "takes no generator" in dpaudit.certify(lambda x: x, "eps=1", [(0, 1)]).refusal
    assert "takes a seed" in dpaudit.certify(lambda x, seed: x, "eps=1", [(0, 1)]).refusal


@pytest.mark.parametrize(
    "body",
    [
        lambda u: int(u * 3),
        lambda u: math.floor(3 * u),
        lambda u: 2 - int((1 - u) * 3),
        lambda u: (u >= 1 / 4 + 1 / 12) * 1 + (u > 2 / 3) * 1,
        lambda u: int(np.searchsorted(np.array([1 / 3, 2 / 3]), u)),
        lambda u: int(np.floor(u * 3)),
        lambda u: int(3 * u // 1),
        lambda u: sum(not u < cut for cut in (1 / 3, 2 / 3)),
        lambda u: 2 if u * 6 - 1 > 3 else 1 if -u < -1 / 3 else 0,
        lambda u: 0 if isinstance(u, float) and max(u, 0.0) < 1 / 3 else 1 if min(u, 1.0) < 2 / 3 else 2,
    ],
)
def test_a_uniform_number_that_is_compared_or_floored_falls_into_thirds(body):
    """Up to the double 1/3 itself: probabilities are those of the cuts as they are written."""
    result = dpaudit.certify(lambda x, rng: [x, body(rng.random())], "eps=1", [(0, 0)])
    assert result.mass_left == 0.0
    known = _law(lambda x, rng: body(rng.random()), 0)
    assert known.keys() == {"0.0", "1.0", "2.0"}
    assert all(abs(mass - Fraction(1, 3)) < Fraction(1, 2**52) for mass in known.values())


def _law(mechanism, x):
    from traced_programs import explore

    from dpaudit.subjects.callables import as_subject
    from dpaudit.symbolic.exploring import Runner
    from dpaudit.symbolic.leaves import readable

    exploration = explore(Runner(as_subject(mechanism), "numpy"), x)
    assert exploration.left == 0
    return {readable(leaf.token): mass for leaf, mass in exploration.law.items()}


def test_arrays_of_uniform_numbers_are_compared_one_by_one():
    law = _law(lambda x, rng: (rng.random(3) < 0.25).sum(), 0)
    assert law == {f"{k}.0": math.comb(3, k) * Fraction(1, 4) ** k * Fraction(3, 4) ** (3 - k) for k in range(4)}


def test_whole_numbers_that_are_used_as_numbers_become_numbers():
    law = _law(lambda x, rng: "a" * min(rng.geometric(0.5), 3), 0)
    assert law == {"'a'": Fraction(1, 2), "'aa'": Fraction(1, 4), "'aaa'": Fraction(1, 4)}
    law = _law(lambda x, rng: int(rng.integers(1_000) < 250) + 2 * (rng.integers(1_000) == 7), 0)
    assert law == {"0.0": Fraction(3, 4) * Fraction(999, 1000), "1.0": Fraction(1, 4) * Fraction(999, 1000),
                   "2.0": Fraction(3, 4) / 1000, "3.0": Fraction(1, 4) / 1000}  # fmt: skip


def test_draws_without_replacement_have_every_order_once():
    law = _law(lambda x, rng: rng.choice(4, size=2, replace=False).tolist(), 0)
    assert set(law.values()) == {Fraction(1, 12)}
    assert len(law) == 12
    assert len(_law(lambda x, rng: rng.permutation(3).tolist(), 0)) == 6
    weighted = _law(lambda x, rng: rng.choice(3, size=2, replace=False, p=[0.5, 0.25, 0.25]).tolist(), 0)
    assert weighted["[0.0,1.0]"] == Fraction(1, 2) * Fraction(1, 2)
    assert weighted["[1.0,0.0]"] == Fraction(1, 4) * Fraction(2, 3)


def test_pythons_own_generator_has_the_same_laws():
    def mechanism(x, rng: random.Random):
        return rng.choice("ab") + str(rng.randint(1, 3)) + ("c" if rng.random() < 0.25 else "")

    result = dpaudit.certify(mechanism, "eps=0", [(0, 1)])
    assert (result.verdict, result.pairs[0].exact) == ("kept", 1)
    biased = dpaudit.certify(lambda x, rng: rng.choices("ab", weights=[1 + x, 1])[0], "eps=1", [(0, 1)], face="random")
    assert biased.pairs[0].exact == Fraction(3, 2)
    assert "logarithm" not in biased.refusal
    assert dpaudit.certify(lambda x, rng: rng.gauss(0, 1), "eps=1", [(0, 1)], face="random").verdict == "open"


def test_exceptions_nan_and_signed_zeros_are_outcomes_as_in_an_audit():
    def mechanism(x, rng):
        if rng.random() < 0.25 + 0.25 * x:
            raise ValueError("message")
        return [0.0, -0.0, float("nan")][int(rng.integers(3))]

    pair = dpaudit.certify(mechanism, "eps=1", [(0, 1)]).pairs[0]
    assert pair.exact == 2
    assert pair.event.outcomes == ("raised ValueError",)
    assert _law(lambda x, rng: np.array([1, 2])[rng.permutation(1)], 0) == {"[1.0]": 1}


def raises_with(make):
    def release(x, rng):
        if rng.random() < 0.5:
            raise make(x)
        return 0

    return release


def noted(x):
    error = ValueError("a")
    error.add_note(str(x))
    return error


def caused(x):
    try:
        return {}[x]
    except KeyError as error:
        raise ValueError("a") from error


def test_an_exception_that_holds_more_than_its_text_is_not_compared():
    for make in (noted, caused, lambda x: ImportError("a", name=str(x))):
        assert dpaudit.certify(raises_with(make), "eps=1", [(0, 1)]).verdict == "open"
    reason = dpaudit.certify(raises_with(lambda x: ImportError("a", name=str(x))), "eps=1", [(0, 1)]).pairs[0].reason
    assert "an exception that may hold more than its text" in reason
    assert dpaudit.certify(raises_with(lambda x: ValueError("a", 1)), "eps=0", [(0, 1)]).verdict == "kept"
    assert dpaudit.certify(raises_with(lambda x: KeyError(1)), "eps=0", [(0, 1)]).verdict == "kept"
    assert dpaudit.certify(raises_with(lambda x: ValueError("a", x)), "eps=1", [(0, 1)]).verdict == "violated"


def test_a_vectorised_mechanism_is_asked_for_one_output():
    def mechanism(x, size, rng):
        return np.where(rng.random(size) < 0.75, x, 1 - x)

    assert dpaudit.certify(mechanism, "eps=1.1", [(0, 1)]).pairs[0].exact == 3


def test_a_vectorised_mechanism_that_returns_one_number_is_told_to_return_a_batch():
    def alone(x, rng, size):
        return np.array(x + rng.integers(2))

    with pytest.raises(dpaudit.SubjectError, match="must return a batch of 1 output for size=1"):
        dpaudit.certify(alone, "eps=1", [(0, 1)])


class HasASlot(ValueError):
    __slots__ = ("held",)


def slotted(x):
    error = HasASlot("a")
    error.held = x
    return error


@pytest.mark.parametrize(
    "make",
    [
        slotted,
        lambda x: ValueError(1 if x else "1"),
        lambda x: ValueError(*[""] * x),
        lambda x: ValueError("('a', 1)") if x else ValueError("a", 1),
        lambda x: KeyError(math.nan if x else -math.nan),
    ],
    ids=["a slot", "a number", "no text", "a tuple", "NaN"],
)
def test_exceptions_that_print_alike_are_not_proved_to_be_one_outcome(make):
    assert dpaudit.certify(raises_with(make), "eps=1", [(0, 1)]).verdict == "open"


@pytest.mark.parametrize("make", [list, collections.deque, lambda items: array.array("d", items)])
def test_what_numpy_shuffles_item_by_item_is_followed(make):
    def release(x, rng):
        items = make([x, 5, 6])
        rng.shuffle(items)
        return list(items)

    found = dpaudit.certify(release, "eps=1", [(0, 1)])
    assert found.verdict == "violated" and found.pairs[0].epsilon_lower == math.inf


def counts_for_ever(x, rng):
    count = int(rng.random() < 0.5)
    while True:
        count = (7 * count + 1) % 13


def counts_whatever_it_catches(x, rng):
    count = int(rng.random() < 0.5)
    while True:
        try:
            while True:
                count = (7 * count + 1) % 13
        except BaseException:
            pass


def sleeps_for_ever(x, rng):
    while True:
        time.sleep(0.001)


def sleeps_whatever_it_catches(x, rng):
    for _ in range(1_000):
        try:  # noqa: SIM105  # a call of `suppress` is a moment at which a run looks at the clock
            time.sleep(0.1)
        except BaseException:
            pass


def in_a_thread(judged):
    def call(*arguments, **options):
        found = []
        thread = threading.Thread(target=lambda: found.append(judged(*arguments, **options)))
        thread.start()
        thread.join()
        return found[0]

    return call


@pytest.mark.parametrize(
    ("loop", "judged"),
    [
        *itertools.product([counts_for_ever, counts_whatever_it_catches], [dpaudit.certify, dpaudit.judge]),
        (sleeps_for_ever, dpaudit.certify),
        (counts_for_ever, in_a_thread(dpaudit.certify)),  # where what catches every exception goes on
    ],
)
def test_a_loop_that_calls_nothing_ends_with_the_time(loop, judged):
    begun = time.process_time()
    found = judged(loop, "eps=1", pairs=[(0, 1)], seconds=1.0)
    assert found.verdict in ("open", "inconclusive") and time.process_time() - begun < 10.0


def test_a_loop_that_sleeps_and_catches_everything_ends_with_the_time():
    begun = time.monotonic()
    found = dpaudit.certify(sleeps_whatever_it_catches, "eps=1", pairs=[(0, 1)], seconds=1.0)
    assert found.verdict == "open" and time.monotonic() - begun < 30.0


def test_a_loop_that_never_ends_leaves_its_mass():
    def waits(x, rng):
        while rng.random() < 0.5:
            if x and rng.random() < 0.0625:
                while True:
                    rng.integers(1)
        return x * 0

    result = dpaudit.certify(waits, "eps=1", [(0, 1)], seconds=0.5)
    assert result.verdict == "open"
    assert result.mass_left > 0.0
