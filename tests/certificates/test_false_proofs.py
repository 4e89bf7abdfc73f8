"""Programs that leak, and that a model without NaN, wrap-around, rounding or kept generators would call private."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import operator
import random
import re
import time
from fractions import Fraction

import numpy as np
import pytest

import dpaudit
from dpaudit.symbolic.generators import NumpyRng, OldNumpyRng, PythonRng

KEPT = {}
SEVEN, FLOAT32, FLOAT16 = 7, np.float32(2**24), np.float16(2048)


def ratio(bit):
    try:
        return float(1 / bit)
    except ZeroDivisionError:
        return math.inf


def pick(several):
    return lambda x, rng: several[x](rng)


def of_bit(several):
    """On either input a function of a bit with probability 1/2, whose class is numpy's."""
    return lambda x, rng: several[x](rng.random(2)[0] < 0.5)


# Of two programs that Python's numbers would make equal, and numpy's do not: the laws have nothing in common, or ...
APART = {
    "round": of_bit([round, int]),  # which raises, as the next two do
    "minus": of_bit([lambda b: int(-b), lambda b: -int(b)]),
    "index": of_bit([lambda b: [0, 1][b], int]),
    "both": of_bit([lambda b: int((b + b) == 2), int]),
    "inverted": of_bit([lambda b: int(~b), lambda b: -1 - int(b)]),
    "quotients": pick([lambda rng: ratio(rng.random() < 0.5), lambda rng: ratio(rng.random(1)[0] < 0.5) + 1]),
    "a range that is none": pick([lambda rng: rng.uniform(3, -3) > 0, lambda rng: rng.uniform(-3, 3) > 0]),
    "signed zeros": pick([lambda rng: np.rint(-rng.random() / 4), lambda rng: np.rint(rng.random() / 4)]),
    "zero times": pick([lambda rng: rng.random() * -0.0, lambda rng: rng.random() * 0.0]),
    "a sum with a double": pick([lambda rng: [rng.geometric(0.5) + 0.0], lambda rng: [rng.geometric(0.5) + 0]]),
    "minus a double": pick([lambda rng: -float(min(rng.geometric(0.5), 1) - 1), lambda rng: 0.0 * rng.geometric(0.5)]),
    "classes": pick([lambda rng: type(rng.random()).__name__, lambda rng: type(rng.random(1)[0]).__name__]),
    "clipped": pick(
        [
            lambda rng: isinstance(np.clip(rng.geometric(0.5), 0, 2), np.integer),
            lambda rng: isinstance(min(max(rng.geometric(0.5), 0), 2), np.integer),
        ]
    ),
    "integers": pick([lambda rng: isinstance(rng.geometric(0.5), int), lambda rng: isinstance(rng.integers(999), int)]),
}
# ... or are the same. The last ones only numpy's numbers make equal.
EQUAL = {
    "bits": of_bit([lambda b: int(~b), int]),
    "sums": of_bit([lambda b: int(b + b), int]),
    "infinities": pick([lambda rng: ratio(rng.integers(2, size=1)[0]), lambda rng: 1 / np.array(rng.integers(2))]),
}
# What has a reason that is none of the number's own, as numpy's error may be one of the symbol's.
UNSURE = {
    "divided by 0": pick([lambda rng: str(rng.random(2)[0] // 0.0), lambda rng: "inf"]),
    "another precision": pick([lambda rng: rng.random() < np.float32(0.5), lambda rng: rng.random() < 0.5]),
}


def wraps_around(x, rng):
    with np.errstate(over="ignore"):
        return bool(rng.integers(0, 1_000, dtype=np.int16) + np.int16(32_000 * x) < 0)


def keeps_a_generator(x, rng):
    own = KEPT.setdefault("rng", np.random.default_rng(5))
    return x * (own.random() > 2)


def raises_by_the_class(x, rng):
    draw = rng.integers(300)
    if type(draw) is not np.int64:
        raise ValueError
    return x


def cancels_exactly_in_real_numbers(x, rng):
    u = rng.random()
    return (u + 1) - u == 1.0 if x else True


def comes_back_to_itself_in_real_numbers(x, rng):
    u = rng.random()
    return (u + 1) - 1 == u if x else True


def is_not_above_itself_in_real_numbers(x, rng):
    u = rng.random()
    return (u + 1) - 1 <= u if x else True


def is_itself_again_in_doubles(x, rng):
    u = rng.random()
    return u < 1e-4 and u * 0.1 * 10.0 == u and x


def is_not_apart_from_itself_in_doubles(x, rng):
    u = rng.random()
    return u < 1e-4 and not u * 0.1 * 10.0 < u and x


def asks_for_what_symbols_have_on_a_narrow_path(x, rng):
    u = rng.random()
    return u < 2.0**-31 and not hasattr(u, "_source") and x


def rounds_above_two_to_the_53(x, rng):
    k = rng.integers(0, 2**60)
    return float(k) == float(k + x)


def wraps_far_out(x, rng):
    return x + 1 if rng.geometric(2.0**-16, size=1)[0] * 2**42 < 0 else 0  # with probability e^-32


def writes_to_an_alias(x, rng):
    draws = rng.random(2)
    also = np.asarray(draws)
    if draws[1] < 1e-6:
        also[0] = 2.0 * x
    return "x" if draws[0] > 1.0 else bool(draws[0] < 0.5)


VIOLATED = {
    "is above nan": lambda x, rng: rng.random() > (float("nan") if x else -1.0),
    "is at least nan in an array": lambda x, rng: bool((rng.random(1) >= np.array([float("nan") if x else -1.0]))[0]),
    "has a whole number above nan": lambda x, rng: rng.geometric(0.5) > (float("nan") if x else 0),
    "writes to an alias": writes_to_an_alias,
    "takes the largest of nan": lambda x, rng: bool(np.maximum(rng.random(1), float("nan") if x else -1.0)[0] >= 0),
}
NEAR = "two nearly equal multiples of a uniform number are subtracted or compared"
REFUSED = {
    "leaves int64": (
        lambda x, rng: bool(rng.integers(0, 1_000) + x * (2**63 - 500) < 0),
        "an integer draw is computed with so that it may exceed 2**53",
    ),
    "keeps a generator": (keeps_a_generator, "A run changes the global KEPT: something is kept between runs."),
    "reads the date": (lambda x, rng: x * (datetime.datetime.now().year < 0), "the clock is read"),
    "reads a clock": (lambda x, rng: x * (time.clock_gettime(0) < 0), "the clock is read"),
    "absorbs the draw": (
        lambda x, rng: (rng.random() + 1e17 * x) - 1e17 * x > 0.5,
        "a uniform number is added to one so large that its digits are lost",
    ),
    "is itself again in doubles": (is_itself_again_in_doubles, NEAR),
    "is not apart from itself in doubles": (is_not_apart_from_itself_in_doubles, NEAR),
    "asks for what symbols have on a narrow path": (
        asks_for_what_symbols_have_on_a_narrow_path,
        "With numbers in the place of its draws a run gives ",
    ),
    "gives a function beside its answer": (
        lambda x, rng: [lambda: x, rng.random() < 0.5],
        "nothing can be seen of an output of the class function",
    ),
    "wraps far out": (wraps_far_out, "an integer draw is computed with so that it may exceed 2**53"),
    "rounds above two to the 53": (
        rounds_above_two_to_the_53,
        "an integer draw is computed with so that it may exceed 2**53",
    ),
    "absorbs a whole number": (
        lambda x, rng: (rng.integers(1_000) + 1e18 * x) - 1e18 * x == 1,
        "an integer draw is computed with so that it may exceed 2**53",
    ),
    "cancels exactly in real numbers": (
        cancels_exactly_in_real_numbers,
        "two forms of one uniform number cancel, up to their rounding",
    ),
    "comes back to itself in real numbers": (
        comes_back_to_itself_in_real_numbers,
        "two forms of one uniform number are compared that differ by their rounding",
    ),
    "is not above itself in real numbers": (
        is_not_above_itself_in_real_numbers,
        "two forms of one uniform number are compared that differ by their rounding",
    ),
}
# Draws that are followed one by one: 1,000 outcomes, of which half a second sees some hundred.
UNFINISHED = [wraps_around]


def whole(rng):
    return int(rng.integers(10**6))


def rare(rng):
    return rng.random() < 1e-6


def wide(rng):
    return int(rng.integers(2**25))


def big(rng):
    return rng.integers(2**61 - 200, 2**61 + 200)


# What numbers do in rare runs and symbols would not, or the other way round: by identity, ...
RARE = {
    "is a small integer": lambda rng: whole(rng) is SEVEN,
    "is a small integer of a class": lambda rng: whole(rng) is Numbers.SEVEN,
    "is not a small integer": lambda rng: not (whole(rng) is not SEVEN),
    "is one of several": lambda rng: whole(rng) is (SEVEN if rng.random() < 0.5 else None),
    "one of several is": lambda rng: (whole(rng) if rng.random() < 0.5 else None) is SEVEN,
    "is_": lambda rng: operator.is_(whole(rng), SEVEN),
    "is rounded noise": lambda rng: int(rng.laplace(scale=1e5)) is SEVEN,
    "is other noise": lambda rng: (lambda a, b: a is b)(int(rng.laplace(scale=1e3)), int(rng.laplace(scale=1e3))),
    # ... with a number of another class, ...
    "is a complex number": lambda rng: whole(rng) == 7 + 0j,
    "is a complex number in a tuple": lambda rng: whole(rng) in (7 + 0j,),
    "is counted": lambda rng: [7j, 7 + 0j].count(whole(rng)) > 0,
    "is rounded noise and complex": lambda rng: round(rng.laplace(scale=1e5)) == 7 + 0j,
    "is a floor of noise and a decimal": lambda rng: np.floor(rng.laplace(scale=1e5)) == decimal.Decimal(7),
    # ... in another precision, ...
    "is a float32": lambda rng: (lambda n: n == FLOAT32 and n != 2**24)(wide(rng)),
    "is below a float32": lambda rng: (lambda n: not n < FLOAT32 + 2 and n < 2**24 + 2)(wide(rng)),
    "is a float16": lambda rng: (lambda n: n <= FLOAT16 and n > 2048)(whole(rng)),
    "is a float32 and uniform": lambda rng: rng.random() == np.float32(0.5),
    "a float32 is below noise": lambda rng: (lambda z: bool(np.float32(0.1) <= z) and z < float(np.float32(0.1)))(
        rng.laplace()
    ),
    "is a double beyond 2^53": lambda rng: rare(rng) and (lambda n: bool(n >= 2.0**61) and n < 2**61)(big(rng)),
    "is a double of an array": lambda rng: (
        rare(rng) and (lambda n: bool((n == np.array([2.0**61]))[0]) and n < 2**61)(big(rng))
    ),
    # ... and at the ends of what doubles are.
    "is subnormal": lambda rng: rare(rng) and rng.random() * 1e-323 >= 1e-323,
    "is drawn subnormal": lambda rng: rare(rng) and rng.uniform(0, 5e-324) >= 5e-324,
    "overflows": lambda rng: rare(rng) and (rng.random() * 1.5e308) * 1.5 == math.inf,
    "is noise that overflows": lambda rng: not rng.exponential() * 1e307 < math.inf,
    "is drawn as noise that overflows": lambda rng: not rng.exponential(1e307) < math.inf,
    "is noise that wraps around": lambda rng: rng.geometric(2.0**-16) * 2**43 < 0,
    "is noise that overflows and comes back": lambda rng: (lambda z: z * 1e307 / 1e307 > 20 and z < 19)(
        rng.exponential()
    ),
}
# What looks alike, and is followed.
FOLLOWED = {
    "is none": lambda rng: whole(rng) is not None and rng is not None,
    "is a class": lambda rng: type(rng.random()) is float,
    "is a member": lambda rng: whole(rng) is Level.HIGH,
    "is a fraction": lambda rng: whole(rng) <= Fraction(1, 2),
    "is a decimal": lambda rng: rng.random() < decimal.Decimal("0.5"),
    "is numpy's integer": lambda rng: whole(rng) == np.int32(7),
    "is numpy's float32": lambda rng: rng.integers(10**6) <= np.float32(7),
    "is a large double": lambda rng: int(rng.integers(2**60)) < 2.0**59,
    "is numpy's noise": lambda rng: bool(np.float32(0.5) < rng.laplace(size=1)[0]),
    "is an equal box": lambda rng: BOX == OTHER and rng.random() < 0.25,
}


@dataclasses.dataclass(frozen=True)
class Box:
    held: int


BOX, OTHER = Box(1), Box(1)


class Level(enum.IntEnum):
    HIGH = 7


class Numbers:
    SEVEN = 7


def leaking_where(event):
    return lambda x, rng: ("a", x) if event(rng) else x if rng.random() < 0.6 else 1 - x


@pytest.mark.parametrize("name", RARE)
def test_what_symbols_would_not_see_is_not_proved(name):
    result = dpaudit.certify(leaking_where(RARE[name]), "eps=0.5", [(0, 1)], seconds=0.5)
    recorded = dpaudit.record_noise(leaking_where(RARE[name]), [(0, 1)], "eps=0.5", seed=1).pairs[0]
    assert result.verdict == "open" and (recorded.unproved or recorded.impurity or recorded.grade == "not recorded")


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_symbols_see_as_numbers_do_is_proved(name):
    result = dpaudit.certify(lambda x, rng: FOLLOWED[name](rng) or rng.random() < 0.5, "eps=0", [(0, 1)], seconds=5)
    assert result.verdict == "kept", result.pairs[0].reason


def test_an_identity_is_no_violation():
    def same(x, rng):
        n = whole(rng)
        return (n is SEVEN) if x else n == 7

    assert dpaudit.certify(same, "eps=0.5", [(0, 1)], seconds=0.5).verdict == "open"


@pytest.mark.parametrize("name", VIOLATED)
def test_a_comparison_with_nan_or_a_write_to_a_view_is_a_violation_without_bound(name):
    # Some output of x_prime is none of x.
    result = dpaudit.certify(VIOLATED[name], "eps=0", [(0, 1)])
    assert result.verdict == "violated" and result.pairs[0].epsilon_lower == float("inf")


def test_a_draw_keeps_its_class():
    # The class is numpy's own, so that the output is the input: 300 outcomes of each, all of them explored.
    result = dpaudit.certify(raises_by_the_class, "eps=0", [(0, 1)], seconds=600)
    assert result.verdict == "violated" and result.pairs[0].mass_left == 0


@pytest.mark.parametrize("name", REFUSED)
def test_a_program_that_the_model_misses_is_refused_with_the_reason(name):
    mechanism, reason = REFUSED[name]
    KEPT.clear()
    result = dpaudit.certify(mechanism, "eps=0", [(0, 1)])
    assert result.verdict == "open" and result.pairs[0].mass_left == 1
    assert result.pairs[0].reason.startswith(reason)


@pytest.mark.parametrize("mechanism", UNFINISHED)
def test_a_program_that_is_followed_draw_by_draw_is_open_with_the_mass_that_is_left(mechanism):
    result = dpaudit.certify(mechanism, "eps=0", [(0, 1)], seconds=0.5)
    assert result.verdict == "open" and result.pairs[0].mass_left > 0
    assert "is left. With delta 0 all of it would have to be explored" in result.pairs[0].reason


@pytest.mark.parametrize(
    "mechanism",
    [lambda x, rng: (lambda u: u - u)(rng.random()), lambda x, rng: (lambda u: u + 1.0 > u)(rng.random())],
    ids=["less itself", "far apart"],
)
def test_forms_of_one_draw_that_rounding_cannot_mix_up_are_followed(mechanism):
    assert dpaudit.certify(mechanism, "eps=0", [(0, 1)]).verdict == "kept"


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_numpys_numbers_go_their_own_way():
    for name, mechanism in APART.items():
        result = dpaudit.certify(mechanism, "eps=5", [(0, 1)])
        assert (result.verdict, result.pairs[0].epsilon_lower) == ("violated", math.inf), name
    for name, mechanism in EQUAL.items():
        assert dpaudit.certify(mechanism, "eps=0", [(0, 1)]).verdict == "kept", name
    for name, mechanism in UNSURE.items():
        assert "line " in dpaudit.certify(mechanism, "eps=0", [(0, 1)]).refusal, name


def test_numpys_errors_have_numpys_texts():
    def wrong_ends(x, rng):
        return 0 if rng.random() < 0.5 else rng.uniform(3, -3) if x else rng.integers(0)

    event = dpaudit.certify(wrong_ends, "eps=1", [(0, 1)]).pairs[0].event
    assert event.outcomes[0] in ("raised ValueError ('high - low < 0')", "raised ValueError ('high <= 0')")


def test_of_a_program_that_only_raises_nothing_is_proved():
    def broken(data, rng):
        raise ValueError("no column")

    def broken_otherwise(data, rng):
        raise ValueError(f"no column {data}")

    def on_one_input(data, rng):
        return 1 // data if rng.random() < 0.5 else 0

    result = dpaudit.certify(broken, "eps=1", [(0, 1)])
    assert result.verdict == "open"
    place = f"broken (test_false_proofs.py, line {broken.__code__.co_firstlineno + 1})"
    assert result.pairs[0].reason.endswith(f"an exception on both inputs: ValueError: no column in {place}.")
    assert "an exception on both" in dpaudit.certify(broken_otherwise, "eps=1", [(0, 1)]).pairs[0].reason
    assert dpaudit.certify(on_one_input, "eps=1", [(0, 1)]).verdict == "violated"


@pytest.mark.parametrize(
    ("traced", "real", "method"),
    [
        (NumpyRng, np.random.default_rng(), "randint"),
        (OldNumpyRng, np.random.RandomState(), "integers"),
        (PythonRng, random.Random(), "laplace"),
    ],
)
def test_a_method_that_a_generator_lacks_is_missed_in_its_own_words(traced, real, method):
    with pytest.raises(AttributeError) as own:
        getattr(real, method)
    with pytest.raises(AttributeError, match=re.escape(str(own.value))):
        getattr(traced(None), method)


def test_a_program_that_forgets_its_return_is_asked_for_it():
    said = dpaudit.certify(lambda x, rng: [rng.random()].clear(), "eps=1", [(0, 1)]).summary()
    assert said.startswith("Kept") and said.endswith(
        "every output reads as None: does the mechanism return its answer?"
    )
    assert "Note" not in dpaudit.certify(lambda x, rng: rng.random() < 0.5, "eps=1", [(0, 1)]).summary()


def test_a_program_that_asks_a_generator_for_what_it_lacks_is_told_its_line():
    def broken(data, rng):
        return data + rng.randint(0, 2)

    reason = dpaudit.certify(broken, "eps=1", [(0, 1)]).pairs[0].reason
    place = f"in broken (test_false_proofs.py, line {broken.__code__.co_firstlineno + 1})"
    assert f"object has no attribute 'randint' {place}. dpaudit passed rng as a numpy.random.Generator" in reason


BITS = np.array([0x7FF8000000000001, 0x7FF8000000000002], np.uint64).view(float)  # two kinds of NaN


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (BITS, BITS[::-1].copy()),
        (complex(math.nan, 0.0), complex(-math.nan, 0.0)),
        (np.str_("a"), "a"),
        ([np.bytes_(b"a"), None], [b"a", None]),
        (True, 1),
        (1, 1.0),
        (np.float32(1.0), 1.0),
        (math.nan, -math.nan),
        ([math.nan], [-math.nan]),
        ({1: 0}, {1.0: 0}),
        (frozenset({1}), frozenset({1.0})),
        (np.array(1.0), 1.0),
    ],
    ids=[
        "NaN in an order",
        "complex NaN",
        "a text",
        "bytes in a list",
        "a truth value",
        "a float",
        "a shorter float",
        "NaN of a sign",
        "in a list",
        "a key",
        "a member",
        "an array",
    ],
)
def test_equal_numbers_of_different_classes_are_not_proved_to_be_one_outcome(one, other):
    def release(x, rng):
        return (one if x else other) if rng.random() < 0.5 else 0

    certificate = dpaudit.certify(release, "eps=1", [(0, 1)])
    assert certificate.verdict == "open" and "equal numbers of different classes" in certificate.pairs[0].reason


FIRST, SECOND = (type("Refused", (ValueError,), {"__module__": __name__}) for _ in range(2))
CAUSES = KeyError("a"), KeyError("b")


def raises_by_class(x, rng):
    if rng.random() < 0.5:
        raise (SECOND if x else FIRST)("no")


def raises_by_cause(x, rng):
    if rng.random() < 0.5:
        raise ValueError("no") from CAUSES[x]


def raises_by_hidden_cause(x, rng):
    if rng.random() < 0.5:
        try:
            {}[x]
        except KeyError:
            raise ValueError("no") from None


@pytest.mark.parametrize("mechanism", [raises_by_class, raises_by_cause, raises_by_hidden_cause])
def test_exceptions_of_one_name_and_text_that_hold_others_are_not_proved_to_be_one_outcome(mechanism):
    assert dpaudit.certify(mechanism, "eps=1", [(0, 1)]).verdict == "open"


def raises_by_noise(x, rng):
    if rng.laplace() < 0.5:
        raise (SECOND if x else FIRST)("no")
    return rng.laplace()


def test_a_record_says_so_too():
    assert "classes of one name" in dpaudit.record_noise(raises_by_noise, [(0, 1)], "eps=1", seed=1).pairs[0].impurity


def raises_from_another(x, rng):
    if rng.random() < 0.5:
        try:
            {}["a"]
        except KeyError as error:
            raise ValueError("no") from error


def test_an_exception_that_another_led_to_is_proved_where_both_are_the_same_on_both_inputs():
    assert dpaudit.certify(raises_from_another, "eps=0", [(0, 1)]).verdict == "kept"


def test_numbers_of_numpys_usual_types_count_as_pythons():
    def release(x, rng):
        return (np.int64(1) if x else 1) if rng.random() < 0.5 else 0

    assert dpaudit.certify(release, "eps=0", [(0, 1)]).verdict == "kept"
