"""Programs that depend on more than their input and their draws have no proof; those that do not keep theirs.

No assertion here has a false-positive rate: certificates and records draw nothing that decides them, but for the real
runs that a certificate is held against, whose level is 1e-6, and which could only leave a right one open.
"""

from __future__ import annotations

import builtins
import collections
import concurrent.futures
import dataclasses
import decimal
import enum
import fractions
import functools
import gc
import json
import math
import operator
import random
import string
import sys
import types
import warnings

import dependent_programs
import kept_state_programs
import numpy as np
import outside_programs
import process_programs
import pytest
from scipy import special

import dpaudit
from dpaudit.subjects.callables import as_subject
from dpaudit.symbolic.conversions import kept_by_conversions
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.exploring import Exploration, Runner
from dpaudit.symbolic.leaves import NeedsNumbers
from dpaudit.symbolic.tracing import Untraceable


@pytest.fixture(autouse=True)
def settings_of_the_process():
    """Put back what some of the programs change."""
    context = decimal.getcontext()
    decimal.setcontext(context.copy())
    with special.errstate(), np.errstate(), warnings.catch_warnings():
        yield
    decimal.setcontext(context)
    kept_state_programs.FILE.unlink(missing_ok=True)
    for owner in (builtins, string):
        vars(owner).pop("calls", None)
        vars(owner).pop("of_pythons", None)
    while kept_state_programs.CHANGED:
        table, key, before = kept_state_programs.CHANGED.pop()
        if before is None:
            table.pop(key, None)  # some are made twice
        elif isinstance(table, type):
            setattr(table, key, before)
        else:
            table[key] = before
    if hasattr(fractions.Fraction, "calls"):
        del fractions.Fraction.calls
    decimal.ExtendedContext.prec = 9


NUMBERS = range(len(dependent_programs.PROGRAMS))
WARNED = pytest.mark.filterwarnings(
    "ignore::ResourceWarning",
    "ignore::DeprecationWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
    "ignore:'where' used without 'out'",
)


def refusal(mechanism, runs=8):
    """Why nothing is proved of a program, by some traced runs and what it depends on; empty where all is well."""
    subject = as_subject(mechanism)
    runner = Runner(subject, "numpy", Dependence(subject.mechanism, 0, 1))
    try:
        with kept_by_conversions(runner.depends):
            for exploration in (Exploration(runner, 0), Exploration(runner, 1)):
                for _ in range(runs):
                    if exploration.is_open:
                        exploration.step()
                exploration.repeat()
            runner.check()
    except (Untraceable, NeedsNumbers) as reason:
        return str(reason)
    return runner.depends.changed() or runner.depends.impurity()


@pytest.mark.parametrize("number", NUMBERS)
@WARNED
def test_a_program_that_depends_on_more_than_its_draws_is_refused_or_called_impure(number):
    kept_state_programs.FILE.unlink(missing_ok=True)
    assert refusal(dependent_programs.PROGRAMS[number]())


@pytest.mark.parametrize(
    "number", [number if number % 20 == 0 else pytest.param(number, marks=pytest.mark.long) for number in NUMBERS]
)
@WARNED
def test_a_program_that_depends_on_more_than_its_draws_is_never_proved(number):
    make = dependent_programs.PROGRAMS[number]
    kept_state_programs.FILE.unlink(missing_ok=True)
    found = dpaudit.certify(make(), "eps=1.1", [(0, 1)], seconds=2.0)
    assert found.verdict != "kept" and (found.verdict == "violated" or found.pairs[0].reason)
    (recorded,) = dpaudit.record_noise(make(), [(0, 1)], "eps=1.1", seed=1).pairs
    assert recorded.grade != "same" or recorded.unproved or recorded.impurity


def test_a_stream_whose_kind_shows_no_state_ends_nothing():
    class Stateless(np.random.BitGenerator):
        pass

    alive = Stateless(1)  # of another package, say: it is in the process, and the program has nothing of it
    found = dpaudit.certify(lambda x, rng: bool(rng.random() < 0.5), "eps=0", [(0, 1)])
    assert alive is not None and found.verdict == "kept"


def test_a_generator_that_is_hidden_behind_an_impurity_is_no_reason_to_accuse():
    make = outside_programs.hidden_coin_beside_a_set
    assert dpaudit.certify(make(), "eps=10", [(0, 1)], seconds=2.0).verdict == "open"
    assert dpaudit.record_noise(make(), [(0, 1)], "eps=10", seed=1).pairs[0].grade != "proved"


HIDDEN = np.random.default_rng(1)


def calls_a_library(x, rng):
    return int(fractions.Fraction(1, 2).limit_denominator(3) < rng.random())


def test_a_generator_of_a_function_that_stands_in_a_library_is_no_reason_to_accuse(monkeypatch):
    monkeypatch.setattr(fractions.Fraction, "limit_denominator", lambda self, most: 0.5 * (HIDDEN.random() < 2.0))
    assert "A generator other than" in dpaudit.certify(calls_a_library, "eps=10", [(0, 1)], seconds=2.0).refusal


@pytest.mark.parametrize(("is_known", "looks"), [(True, 0), (False, 1)])
def test_the_process_is_looked_at_where_a_program_may_reach_all_of_it_alone(is_known, looks, monkeypatch):
    counts, before = [], gc.get_objects
    monkeypatch.setattr(gc, "get_objects", lambda: counts.append(1) or before())
    dpaudit.record_noise(plain if is_known else by_an_argument, [(0.0, 1.0)], "eps=1", seed=1)
    assert len(counts) == looks


def outside(name):
    return functools.partial(kept_state_programs.of, process_programs.OUTSIDE[name])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (kept_state_programs.closure, "a run changes the variable count of release"),
        (kept_state_programs.CountsOfClass, "a run changes an attribute of CountsOfClass"),
        (outside("environment"), "it names os.environ (process_programs.py:"),
        (outside("order_of_a_set"), "it makes a set, whose order may depend on the process"),
        (kept_state_programs.iterator, "it holds a count, whose state is not seen"),
    ],
)
def test_the_judge_says_why_nothing_is_proved(make, said):
    found = dpaudit.judge(make(), "eps=3", pairs=[(0, 1)], seconds=5.0, seed=1)
    assert found.verdict != "proved" and said in found.statement.replace("A run", "a run")


def first_input():
    held = []

    def release(x, rng):
        if not held:
            held.append(x)
        return held[0] if rng.random() < 0.75 else 1 - held[0]

    return release


@pytest.mark.parametrize("make", [first_input, kept_state_programs.OnlyAtFirst, outside_programs.CachesItsFirstInput])
def test_a_judgement_is_of_the_mechanism_as_it_was_given(make):  # its own runs change what a certificate would find
    for inputs in ({"pairs": [(0, 1)]}, {"domain": {"kind": "number", "low": 0, "high": 1, "integer": True}}):
        assert dpaudit.judge(make(), "eps=1.1", **inputs, seconds=3.0, seed=1).verdict != "proved"


SCALES = {"count": 2.0}
WEIGHTS = np.array([0.25, 0.75])


class Keeps:
    """Has a value that is worked out once, attributes, a table, a helper and texts of exceptions."""

    def __init__(self):
        self.weights = {0: [0.25, 0.75], 1: [0.75, 0.25]}

    @functools.cached_property
    def total(self):
        return math.fsum(self.weights[0])

    def __call__(self, x, rng):
        if x not in self.weights:
            raise ValueError(f"{x!r} is no input")
        return int(rng.random() < self.weights[x][0] / self.total)


@dataclasses.dataclass(frozen=True)
class Frozen:
    scale: float = 2.0

    def sample(self, data, size, rng):
        return rng.geometric(1.0 - math.exp(-1.0 / self.scale), size) - rng.geometric(1.0 - math.exp(-0.5), size) + data


def counts_the_distinct(x, rng):
    return len(set([x, 2])) * 0 + (x if rng.random() < 0.75 else 1 - x)


def says_it(x, rng):
    return str(x) if rng.random() < 0.75 else str(1 - x)


def by_names(x, rng):
    from math import exp

    return bool(rng.random() < exp(-SCALES["count"]) + WEIGHTS[x] * 0.5)


def by_caches_and_functions_of_libraries(x, rng):  # which keep what was worked out, and what they were made of
    found = [np.einsum("i,i", WEIGHTS, WEIGHTS, optimize=True), special.logsumexp(WEIGHTS), json.loads("0.75")]
    return x if rng.random() < found[-1] else 1 - x


Pair = collections.namedtuple("Pair", "bit log")
KINDS = {kind: type("Own", (kind,), {}) for kind in (list, dict, bytearray, np.ndarray)}


def nested(value):
    return functools.reduce(lambda inner, _: [inner], range(105), value)


def log_of(x):
    while type(x) in (list, tuple) and not isinstance(x[-1], int):
        x = x[-1]
    return x.log if isinstance(x, Pair) else x["log"] if isinstance(x, dict | types.MappingProxyType) else x


def counts_in_its_input(x, rng):
    log = log_of(x)
    log[-1] = log[-1] + 1
    return int(rng.random() < 0.5)


def reads_its_input(x, rng):
    return int(rng.random() < 0.5 + 0.0 * log_of(x)[-1])


@pytest.mark.parametrize(
    ("make", "is_copied"),
    [
        (lambda log: log, True),
        (lambda log: {"log": log}, True),
        (lambda log: Pair(0, log), False),
        (lambda log: (log, Pair(0, log)), False),
        (lambda log: KINDS[list](log), False),
        (lambda log: KINDS[dict](log=log), False),
        (lambda log: KINDS[bytearray](log), False),
        (lambda log: np.array(log).view(KINDS[np.ndarray]), False),
        (lambda log: np.ma.array(log), False),
        (lambda log: np.array([(0, 0)], [("bit", int), ("log", int)])[0], False),
        (lambda log: types.MappingProxyType({"log": log}), False),
        (lambda log: nested(Pair(0, log)), False),
    ],
)
def test_what_a_run_changes_in_an_input_is_kept_unless_calls_get_copies(make, is_copied):
    changed = dpaudit.certify(counts_in_its_input, "eps=1", [(make([0, 0]), make([1, 0]))]).pairs[0]
    assert (changed.verdict == "kept") == is_copied
    assert is_copied or "a run changes an input" in changed.reason.lower()
    assert dpaudit.certify(reads_its_input, "eps=1", [(make([0, 0]), make([1, 0]))]).verdict == "kept"


class Mode(enum.IntEnum):
    LOW = 0
    HIGH = 1


Row = collections.namedtuple("Row", "p name")
ROW, FIRST, WHOLE, KIND = Row(0.75, "a"), operator.itemgetter(0), frozenset({1, 2}), np.dtype([("a", float)])


def by_what_libraries_hold(x, rng):
    found = Mode.HIGH.value * int(np.asarray([rng.random() < ROW.p])[0]) + len(np.zeros(1, dtype=KIND)) - 1
    return Row(sorted([(x if found in WHOLE else 1 - x, 0)], key=FIRST)[0][0], "b")


@dataclasses.dataclass
class Answer:
    bit: int
    log: list = dataclasses.field(default_factory=list)

    def __str__(self):
        return f"{self.bit}"


@dataclasses.dataclass
class Read:
    bit: int


class Asked(Answer):
    def __init__(self, bit):
        super().__init__(bit)
        self.log += [f"{bit:>3}", "{}".format(bit)]  # noqa: UP032


def by_texts_and_records(x, rng):
    answer, known = Asked(x if rng.random() < 0.75 else 1 - x), {0, 1, 2}
    known.discard(2)
    if outside_programs.LOST is None or answer.bit not in known or answer.bit in {"a", "b"}:
        raise ValueError(f"{answer}")
    kept = json.dumps(dataclasses.asdict(answer))
    return [kept, str(Read(answer.bit)), "%s of %d" % (answer.log[0], len(known)), "".join(map(str, sorted(known)))]  # noqa: UP031


@pytest.mark.parametrize(
    "mechanism",
    [
        *(Keeps(), Frozen(), counts_the_distinct, says_it, by_names, by_what_libraries_hold),
        *(by_caches_and_functions_of_libraries, by_texts_and_records),
    ],
)
def test_a_program_that_depends_on_nothing_else_is_proved(mechanism):
    assert dpaudit.certify(mechanism, "eps=1.1", [(0, 1)], seconds=20.0).verdict == "kept"


def by_its_frame(x, rng):
    own = [locals()["x"], vars()["x"], globals()["SCALES"]["count"] - 2.0]
    return sum(own[1:]) if rng.random() < 0.75 else 1 - own[0]


def test_what_asks_for_a_frame_gets_that_of_the_program_and_proves_nothing():
    assert "it has a call that asks for its frame" in dpaudit.certify(by_its_frame, "eps=1.1", [(0, 1)]).pairs[0].reason


def test_certificates_in_threads_leave_each_others_programs_as_they_are():
    code = says_it.__code__
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda _: dpaudit.certify(says_it, "eps=1.1", [(0, 1)]).verdict, range(15)))
    assert found == ["kept"] * 15 and says_it.__code__ is code


def text_at_the_begin():
    def numbers():
        "Text."
        try:
            yield 1
        finally:
            pass

    return numbers.__doc__


def test_a_text_at_the_begin_of_a_generator_stays_there():
    with kept_by_conversions(Dependence(text_at_the_begin)):
        assert text_at_the_begin() == "Text."


class Making(type):
    def __call__(cls, *arguments):
        return super().__call__(*arguments)


class Made(metaclass=Making):
    def __init__(self, bit):
        self.bit = bit


def by_a_class_of_its_own_kind(x, rng):
    return Made(x if rng.random() < 0.75 else 1 - x).bit


def test_a_class_that_makes_objects_by_its_base_does_so_once():
    assert dpaudit.certify(by_a_class_of_its_own_kind, "eps=1.1", [(0, 1)]).verdict == "kept"


def by_members(x, rng):
    kept = collections.defaultdict(list)
    kept[0].append(x if rng.random() < 0.75 else 1 - x)
    compared = sorted([1, 0], key=functools.cmp_to_key(lambda a, b: a - b))
    return [kept, str(kept), compared, int(max(Mode)), *map(int, map(Mode, sorted(Mode)))]


def test_classes_that_are_gone_through_and_defaults_stay_what_they_are():
    assert dpaudit.certify(by_members, "eps=1.1", [(0, 1)]).verdict == "kept"


def by_an_argument(x, rng):
    return x + rng.laplace() + (100.0 * x if len(sys.argv) < 0 else 0.0)  # never, which no code shows


def plain(x, rng):
    return x + rng.laplace()


def by_a_name(owner, name, x, rng):
    return x if getattr(owner, name, 1.0) is None else int(getattr(rng, "random")() < 0.5)  # noqa: B009


def test_a_name_that_is_a_text_is_looked_at_in_the_run():
    def certified(owner, name):
        return dpaudit.certify(functools.partial(by_a_name, owner, name), "eps=1", [(0, 1)]).pairs[0]

    assert certified(SCALES, "get").verdict == "kept"
    assert "it names the attribute __globals__" in certified(plain, "__globals__").reason
    table = functools.partial(by_a_name, name="pi")
    assert dpaudit.certify(lambda x, rng: table(math, rng=rng, x=x), "eps=1", [(0, 1)]).verdict == "kept"
    table = functools.partial(by_a_name, name="argv")
    assert dpaudit.certify(lambda x, rng: table(sys, rng=rng, x=x), "eps=1", [(0, 1)]).verdict == "open"


def keeps_a_count_on_its_generator(x, rng: random.Random):
    rng.calls = rng.calls + 1 if hasattr(rng, "calls") else 0
    return x if rng.calls % 50 == 49 else int(rng.random() < 0.5)


def keeps_a_count_in_the_place_of_a_draw(x, rng: random.Random):
    rng.gauss_next = (rng.gauss_next or 0) + 1
    return x if rng.gauss_next > 10**6 else int(rng.random() < 0.5)


@pytest.mark.parametrize("mechanism", [keeps_a_count_on_its_generator, keeps_a_count_in_the_place_of_a_draw])
def test_what_a_program_keeps_on_its_generator_is_no_draw(mechanism):
    assert dpaudit.certify(mechanism, "eps=1", [(0, 1)]).verdict == "open"


def by_a_module_of_another(x, rng):
    from dataclasses import sys

    return x if "none" in sys.modules else int(rng.random() < 0.5)


def test_a_module_that_is_taken_from_another_is_an_impurity():
    assert "it imports dataclasses" in dpaudit.certify(by_a_module_of_another, "eps=1", [(0, 1)]).pairs[0].reason


@pytest.mark.parametrize(("mechanism", "is_impure"), [(by_an_argument, True), (plain, False)])
def test_a_record_that_keeps_the_claim_says_what_its_calls_depend_on(mechanism, is_impure):
    finding = dpaudit.record_noise(mechanism, [(0.0, 1.0)], "eps=1", seed=1).side_finding()
    assert "within the claim" in finding.summary and ("it names sys.argv" in finding.summary) == is_impure
