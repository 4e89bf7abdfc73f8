"""Subjects made of objects and functions: how each is called, what is refused, what an exception becomes."""

import dataclasses
import functools
import subprocess
import sys

import numpy as np
import pytest

from dpaudit.errors import SubjectError, UsageError
from dpaudit.privacy.claims import PureDP
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import CallError, as_subject, fingerprint


class Mechanism:
    claim = PureDP(1.0)

    def __init__(self, scale=1.0):
        self.scale = scale

    def sample(self, data, size, rng):
        return data + rng.laplace(scale=self.scale, size=size)

    def release(self, data, rng):
        return data + rng.laplace(scale=self.scale)

    def pairs(self):
        return [(0.0, 1.0)]


def rng():
    return np.random.default_rng(5)


def with_rng(data, rng):
    return data + rng.random()


def with_data(data):
    return data


@pytest.mark.parametrize(
    ("mechanism", "interface", "is_vectorised", "replayable"),
    [
        (Mechanism(), "sample(data, size, rng)", True, True),
        (lambda data, size, rng: data + rng.random(size), "f(data, size, rng)", True, True),
        (lambda data, size: np.full(size, data), "f(data, size)", True, False),
        (with_rng, "f(data, rng)", False, True),
        (with_data, "f(data)", False, False),
        (Mechanism().release, "f(data, rng)", False, True),
        (functools.partial(with_rng), "f(data, rng)", False, True),
        (lambda data, rng, scale=1.0: data, "f(data, rng)", False, True),
        (lambda data, *rest, **options: data, "f(data)", False, False),
        (lambda *inputs: inputs[0], "f(data)", False, False),
        (abs, "f(data)", False, False),
    ],
)
def test_each_interface_is_recognised_and_gives_as_many_outputs_as_asked(
    mechanism, interface, is_vectorised, replayable
):
    subject = as_subject(mechanism)
    assert (subject.interface, subject.is_vectorised, subject.replayable) == (interface, is_vectorised, replayable)
    assert len(subject.sample(0.0, 7, rng())) == 7


def test_rng_is_given_the_generator_itself():
    generator = rng()
    assert as_subject(lambda data, *, rng: rng).sample(0, 1, generator) == [generator]


def test_a_seed_is_an_integer_that_is_new_at_each_call_and_repeats_with_the_generator():
    subject = as_subject(lambda data, seed: seed)
    seeds = subject.sample(0, 3, rng())
    assert all(type(seed) is int and 0 <= seed < 2**32 for seed in seeds)
    assert len(set(seeds)) == 3
    assert seeds == subject.sample(0, 3, rng())


@pytest.mark.parametrize(
    ("mechanism", "message"),
    [
        (Mechanism, "must be an instance or a function, got the class Mechanism. Call it."),
        (3, r"must be an object with sample\(data, size, rng\) or a function f\(data, ...\), got int."),
        (lambda: 0, "must take the data as its first parameter, got no positional parameter."),
        (
            functools.partial(lambda scale, data, rng: 0, scale=1.0),
            "got no positional parameter. A partial that gives a parameter by its name makes those behind it keyword",
        ),
        (lambda *, data: 0, "must take the data as its first parameter"),
        (lambda data, epsilon: 0, "must be named size, n, rng, random_state, seed or have a default, got 'epsilon'."),
        (lambda data, *, sigma, rng: 0, "got 'sigma'. Wrap it in a function of the data."),
    ],
)
def test_what_is_no_mechanism_is_refused(mechanism, message):
    with pytest.raises(UsageError, match=message):
        as_subject(mechanism)


def test_names_come_from_the_caller_then_the_mechanism():
    named = Mechanism()
    named.name = "city release"
    subjects = [as_subject(with_rng, name="given"), as_subject(named), as_subject(Mechanism()), as_subject(with_rng)]
    assert [subject.name for subject in subjects] == ["given", "city release", "Mechanism", "with_rng"]
    assert as_subject(functools.partial(with_rng)).name == "with_rng"


def test_the_mechanisms_own_claim_and_pairs_are_found():
    own, none = as_subject(Mechanism()), as_subject(with_rng)
    assert (own.claim, own.pairs()) == (PureDP(1.0), [(0.0, 1.0)])
    assert (none.claim, none.pairs()) == (None, None)


def raising_half(data, rng):
    value = rng.random()
    if value < 0.5:
        raise ValueError(f"value {value}")
    return value


def test_an_exception_of_one_call_is_the_outcome_of_one_draw():
    outputs = as_subject(raising_half).sample(0, 50, rng())
    expected = rng().random(50)
    assert [isinstance(output, Failed) for output in outputs] == (expected < 0.5).tolist()
    assert {output.kind for output in outputs if isinstance(output, Failed)} == {"ValueError"}


def test_an_interrupt_is_no_outcome():
    def interrupt(data):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        as_subject(interrupt).sample(0, 2, rng())


@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(0)])
def test_a_vectorised_call_that_raises_is_one_error_of_the_call(error):
    def fail(data, size):
        raise error

    with pytest.raises(CallError, match=r"a call for 9 outputs must return them, got \w+: (no|0) in fail ") as caught:
        as_subject(fail).sample(0, 9, rng())
    raised = f"{type(error).__name__}: {error}"
    assert (caught.value.size, caught.value.error.partition(" in ")[0], caught.value.exit_status) == (9, raised, 3)
    assert isinstance(caught.value, SubjectError)
    assert caught.value.__cause__ is error


def test_a_log_density_that_fails_or_has_the_wrong_shape_is_left_out():
    class WithDensity(Mechanism):
        def log_density(self, data, outputs):
            if data == "raise":
                raise ValueError
            return np.zeros(len(outputs) if data == "right" else 1)

    subject = as_subject(WithDensity())
    assert subject.has_log_density
    assert subject.log_density("right", [1, 2]).tolist() == [0.0, 0.0]
    assert subject.log_density("wrong", [1, 2]) is None
    assert subject.log_density("raise", [1, 2]) is None
    assert as_subject(with_rng).log_density(0, [1]) is None


def closing_over(value):
    def release(data):
        return data + value

    return release


@pytest.mark.parametrize(
    "make",
    [
        Mechanism,
        lambda value: Mechanism(value).release,
        closing_over,
        lambda value: functools.partial(raising_half, rng=value),
        lambda value: eval(f"lambda data, scale={value}: data"),
        dataclasses.make_dataclass("Dataclass", ["scale"], namespace={"sample": Mechanism.sample}),
    ],
)
def test_a_fingerprint_changes_with_the_parameters_and_only_with_them(make):
    assert fingerprint(make(1.0)) == fingerprint(make(1.0))
    assert fingerprint(make(1.0)) != fingerprint(make(2.0))


def test_a_fingerprint_changes_with_the_source():
    assert fingerprint(with_rng) != fingerprint(with_data)


def test_a_fingerprint_changes_with_every_number_of_an_array():
    # Evidence of equal fingerprints is added up: weights that differ in one place are another mechanism.
    kept = dataclasses.make_dataclass("Kept", ["weights"], namespace={"sample": Mechanism.sample})
    for size in (3, 5_000):
        weights, others = np.ones(size) / 3.0, np.ones(size) / 3.0
        others[size // 2] += 1e-12
        for make in (closing_over, kept):
            assert fingerprint(make(weights)) == fingerprint(make(weights.copy())) != fingerprint(make(others))


def test_a_fingerprint_is_16_hexadecimal_digits_and_the_same_in_another_process(tmp_path):
    (tmp_path / "printed.py").write_text(
        "class Mechanism:\n"
        "    def __init__(self): self.inner, self.function = object(), print\n"
        "    def sample(self, data, size, rng): return rng.random(size)\n"
        "def closing(inner):\n"
        "    return lambda data: inner\n"
        "from dpaudit.subjects.callables import fingerprint\n"
        "print(fingerprint(Mechanism()), fingerprint(Mechanism().sample), fingerprint(closing(object())))\n"
    )
    first, second = (
        subprocess.run([sys.executable, "printed.py"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    )
    assert first == second
    assert all(len(digest) == 16 and int(digest, 16) >= 0 for digest in first.split())


def test_a_set_is_in_a_fingerprint_in_one_order():
    first, second = {0, 8}, {8, 0}  # the order of texts is another one in each process; of these in one
    assert repr(first) != repr(second)
    assert fingerprint(closing_over(first)) == fingerprint(closing_over(second)) != fingerprint(closing_over({0}))
    assert fingerprint(closing_over(([frozenset(first)], {1: first}))) == fingerprint(
        closing_over(([frozenset(second)], {1: second}))
    )
    holder = dataclasses.make_dataclass("Holder", ["names"])
    assert repr(holder(first)) != repr(holder(second)) and fingerprint(holder(first)) == fingerprint(holder(second))
    assert fingerprint(closing_over(holder(first))) == fingerprint(closing_over(holder(second)))
    assert fingerprint(holder(first)) != fingerprint(holder({0}))
    holds_itself = []
    holds_itself.append(holds_itself)
    assert fingerprint(closing_over(holds_itself)) != fingerprint(closing_over([]))


def test_a_function_that_closes_over_what_is_not_there_yet_has_a_fingerprint():
    def outer():
        def inner(data):
            return later + data

        digest = fingerprint(inner)
        later = 1
        return digest

    assert len(outer()) == 16
