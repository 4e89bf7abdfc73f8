"""Options of an audit, and what they must be wherever they are stated."""

import doctest
import inspect
import math
import pickle
from typing import get_args

import numpy as np
import pytest

import dpaudit
import dpaudit.profiles
from dpaudit import UsageError
from dpaudit.arguments import MODES, check_options, did_you_mean, seed_from
from dpaudit.campaign.schedules import Mode


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("samples", (10, 10**12), (9, 10.0, True, "10", None)),
        ("mode", MODES, ("quick", None, 1)),
        ("confidence", (1e-9, 0.95), (0.0, 1.0, 95, math.nan, True, None)),
        ("seconds", (0.1, 60), (0.0, -1, math.inf, math.nan, "60")),
        ("seed", (None, 0, 2**64), (-1, 0.0, True)),
        ("jobs", (-1, 1, 32), (0, -2, 1.0, True, 10**6)),
        ("event_mass", (1e-9, 1), (0.0, 1.1, math.inf, math.nan)),
        ("inconclusive_factor", (1, 2.5, math.inf), (0.99, math.nan, "2")),
    ],
)
def test_each_option_has_a_range(name, good, bad):
    for value in good:
        check_options(**{name: value})
    for value in bad:
        with pytest.raises(UsageError, match=f"^{name} must be .*, got "):
            check_options(**{name: value})


def test_the_modes_are_those_of_the_game():
    assert get_args(Mode) == MODES


def test_a_name_that_is_near_is_said_and_no_other():
    assert did_you_mean("sample", ["samples", "mode"]) == " Did you mean 'samples'?"
    assert did_you_mean("x", ["samples", "mode"]) == ""


def seeded():
    """The public functions that draw a seed where none is stated."""
    functions = [getattr(dpaudit, name) for name in dpaudit.__all__ if inspect.isfunction(getattr(dpaudit, name))]
    return [one for one in functions if inspect.signature(one).parameters.get("seed", one) is not one]


def test_a_seed_may_be_a_generator_or_a_sequence():
    sequence = np.random.SeedSequence(1)
    assert seed_from(None, sequence) == seed_from(None, sequence) == sequence.generate_state(1)[0]
    rng = np.random.default_rng(1)
    assert seed_from(None, rng) == np.random.default_rng(1).integers(2**32) != seed_from(None, rng)
    assert seed_from(None, 7) == seed_from(7, None) == 7 and seed_from(None, None) is None


@pytest.mark.parametrize("rng", ["7", -1, True, 0.5, np.random.RandomState(1)])
def test_an_rng_that_is_none_of_these_is_refused(rng):
    with pytest.raises(UsageError, match=r"^rng must be None, a non-negative integer, a numpy Generator or a SeedSeq"):
        seed_from(None, rng)


def test_a_seed_is_given_once():
    with pytest.raises(UsageError, match=r"^seed must be given without rng, got 1 and 2\."):
        dpaudit.audit(lambda x, rng: x, "eps=1", [(0, 1)], seed=1, rng=2)


def test_every_function_with_a_seed_of_its_own_takes_an_rng():
    own = [one for one in seeded() if inspect.signature(one).parameters["seed"].default is None]
    assert len(own) >= 9
    assert [one.__name__ for one in own if "rng" not in inspect.signature(one).parameters] == []


def test_an_audit_takes_its_seed_from_a_generator():
    audits = [
        dpaudit.audit(lambda x, rng: x, "eps=1", [(0, 1)], samples=20, rng=np.random.default_rng(3)) for _ in range(2)
    ]
    assert audits[0].seed == audits[1].seed == np.random.default_rng(3).integers(2**32)


@pytest.mark.parametrize(
    ("function", "wrong", "meant"),
    [
        (dpaudit.audit, "sample", "samples"), (dpaudit.audit, "pair", "pairs"), (dpaudit.audit, "claims", "claim"),
        (dpaudit.audit_within, "mod", "mode"), (dpaudit.plan, "pilots", "pilot"), (dpaudit.replay, "seeds", "seed"),
        (dpaudit.check, "onlly", "only"), (dpaudit.certify, "second", "seconds"),
        (dpaudit.register_profile, "strickt", "strict"),
    ],
)  # fmt: skip
def test_a_misspelt_option_of_a_function_is_answered_with_the_nearest(function, wrong, meant):
    first = [1e-9] if function is dpaudit.audit_within else []  # said before anything is timed
    with pytest.raises(UsageError, match=f"got '{wrong}'. Did you mean '{meant}'\\? They are ") as raised:
        function(*first, lambda x, rng: x, **({"claim": "eps=1", "pairs": [(0, 1)]} if first else {}), **{wrong: 1})
    assert isinstance(raised.value, TypeError)


def test_a_function_with_near_names_is_of_its_own_module():
    assert pickle.loads(pickle.dumps(dpaudit.audit)) is dpaudit.audit
    assert any(example.examples for example in doctest.DocTestFinder().find(dpaudit.profiles.register_profile))
    assert "rng" in inspect.signature(dpaudit.audit).parameters
