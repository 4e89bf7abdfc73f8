"""Parameters of mechanisms: each is given the kind of randomness that its annotation, default or name says."""

from __future__ import annotations

import functools
import random
import typing
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union

import numpy as np
import pytest

import dpaudit
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.fresh import fresh_subject

if TYPE_CHECKING:
    import numpy as unimported  # noqa: F401

Alias = np.random.RandomState
Seed = typing.NewType("Seed", int)
Generator, State, Python = np.random.Generator, np.random.RandomState, random.Random

CASES = [  # annotation, name, what is passed; annotations of this module are texts
    (None, "rng", Generator),
    (None, "random_state", State),
    (None, "seed", int),
    (Generator, "random_state", Generator),
    (Generator, "seed", Generator),
    (Python, "rng", Python),
    (Optional[Python], "rng", Python),  # noqa: UP045
    (Union[None, State, int], "rng", State),  # noqa: UP007
    (State, "seed", State),
    (int, "random_state", int),
    (int | State | None, "random_state", State),
    (int | Generator | None, "rng", Generator),
    (Annotated[Python, "stream"], "seed", Python),
    (Seed, "rng", int),
    (random.SystemRandom, "rng", Python),
    ("Alias", "rng", State),
    ("random.Random | None", "rng", Python),
    ("Optional[np.random.RandomState]", "rng", State),
    ("unimported.random.Generator | None", "random_state", State),
    ("np.random.Generator | Unknown", "random_state", Generator),
    ("Unknown | random.Random", "rng", Python),
    ("torch.Generator", "seed", int),
    (Any, "random_state", State),
    (object, "rng", Generator),
    ("no ( python", "rng", Generator),
    (typing.TypeVar("Bound", bound=np.random.RandomState), "rng", State),
]


def taking(name, annotation=None, default=None):
    """A function whose parameter of this name is its output."""
    given = f"{name}=default" if default is not None else name
    function = eval(f"lambda data, *, {given}: {name}", {**globals(), "default": default})
    if annotation is not None:
        function.__annotations__[name] = annotation
    return function


def passed(mechanism, seed=1):
    return as_subject(mechanism).sample(0, 1, np.random.default_rng(seed))[0]


@pytest.mark.parametrize(("annotation", "name", "kind"), CASES, ids=str)
def test_a_parameter_is_given_what_its_annotation_or_else_its_name_says(annotation, name, kind):
    assert type(passed(taking(name, annotation))) is kind


@pytest.mark.parametrize(
    ("default", "name", "kind"),
    [
        (random.Random(1), "rng", Python),
        (np.random.default_rng(1), "random_state", Generator),
        (7, "random_state", int),
        (np.random.RandomState(1), "rng", State),
        (True, "rng", Generator),
        (False, "rng", Generator),
    ],
    ids=lambda one: one if isinstance(one, str) else getattr(one, "__name__", type(one).__name__),
)
def test_without_an_annotation_the_type_of_the_default_says_it(default, name, kind):
    assert type(passed(taking(name, default=default))) is kind


def test_partials_methods_and_objects_are_read_as_functions_are():
    class Release:
        def __call__(self, data, rng: random.Random):
            return rng

        def method(self, data, seed: np.random.RandomState):
            return seed

        def sample(self, data, size, source: random.Random):  # its place says what it is
            return [source] * size

    def scaled(data, scale, rng: random.Random):
        return rng

    release = Release()
    call = functools.partial(Release.__call__, release)
    assert [type(passed(one)) for one in (call, release.method, functools.partial(scaled, scale=2), release)] == [
        Python, State, Python, Python,
    ]  # fmt: skip
    assert type(fresh_subject(Release).sample(0, 1, np.random.default_rng(1))[0]) is Python


@pytest.mark.parametrize("name", ["rng: random.Random", "random_state", "seed", "seed: np.random.RandomState"])
def test_the_same_stream_gives_the_same_bits_and_each_call_others(name):
    parameter = name.partition(":")[0]
    draw = {"rng": "rng.random()", "random_state": "random_state.laplace()", "seed": "seed"}[parameter]
    if "State" in name:
        draw = "seed.laplace()"
    space: dict[str, Any] = {"random": random, "np": np}
    exec(f"def f(data, {name}):\n    return {draw}", space)
    subject = as_subject(space["f"])
    first, again = (subject.sample(0, 4, np.random.default_rng(3)) for _ in range(2))
    assert subject.replayable and first == again and len(set(first)) == 4


def state_mean(data, size, random_state):
    return float(np.mean(data)) + random_state.laplace(scale=1.0 / len(data), size=size)


def python_count(data, rng: random.Random):
    return len(data) + rng.expovariate(1.0) - rng.expovariate(1.0)


@pytest.mark.slow  # starts two processes and a pool of workers
@pytest.mark.parametrize("mechanism", [state_mean, python_count])
def test_workers_and_isolated_processes_pass_the_same(mechanism):
    options = {"claim": "eps=1", "pairs": [([0.0, 0.0], [0.0, 1.0])], "samples": 400, "seed": 5, "mode": "fixed"}
    here, workers = (dpaudit.audit(mechanism, **options, floating_point=False, jobs=jobs) for jobs in (1, 2))
    assert here.findings[0].to_dict() == workers.findings[0].to_dict()
    isolated = dpaudit.audit(mechanism, **options, floating_point=False, isolation=True)
    assert "error" not in (here.verdict, isolated.verdict)


def test_a_certificate_follows_the_kind_that_is_annotated_or_says_what_it_does_not_follow():
    def python(bit, random_state: random.Random):
        return bit if random_state.randrange(4) else 1 - bit

    def numpys(bit, random_state: np.random.Generator):
        return bit if random_state.integers(4) else 1 - bit

    def state(bit, random_state):
        return bit if random_state.randint(4) else 1 - bit

    def certified(mechanism, **options):
        return dpaudit.certify(mechanism, claim="eps=1.1", pairs=[(0, 1)], **options)

    assert certified(python).verdict == certified(numpys).verdict == "kept"
    assert certified(state).verdict == "open"
    assert "takes a numpy.random.RandomState: give it a parameter rng" in certified(state).refusal
    unannotated = lambda bit, rng: bit if rng.randrange(4) else 1 - bit  # noqa: E731
    assert certified(unannotated, face="random").verdict == "kept"


def test_recorded_noise_follows_every_kind():
    def state(data, random_state):
        return len(data) + random_state.laplace(scale=0.5)

    def python(data, seed: random.Random):
        return len(data) + seed.gauss(0.0, 1.0)

    def seeded(data, seed):
        return len(data) + np.random.RandomState(seed).laplace(scale=0.5)

    def graded(mechanism):
        pair = dpaudit.record_noise(mechanism, [([], [1])], "eps=1", seed=1).pairs[0]
        return pair.grade, pair.loss

    assert graded(state) == graded(seeded) == ("proved", 2.0)
    assert graded(python)[0] == "proved"  # normal noise keeps no pure promise


def test_equal_streams_are_replayed_for_every_kind_that_reads_them():
    def state(data, random_state):
        return len(data) + random_state.laplace()

    def python(data, rng: random.Random):
        if not data:
            raise ValueError
        return rng.random()

    assert not dpaudit.replay_same_randomness(state, [([], [1])], "eps=1", seed=1).message
    outcome = dpaudit.replay_same_randomness(python, [([], [1])], "eps=1", seed=1).pairs[0]
    assert [hint.kind for hint in outcome.hints] == ["outcome"]  # on x it always raises
