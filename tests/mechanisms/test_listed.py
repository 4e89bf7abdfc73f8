"""A reference mechanism, or a faulty twin, stands in a list that tests walk, and offers what the protocol asks for."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import numpy as np
import pytest
from support.reference_mechanisms import EVERY, TWINS

import dpaudit_mechanisms
from dpaudit.privacy.pairs import as_pairs
from dpaudit.subjects.protocol import Mechanism
from dpaudit_mechanisms.gaussian import Gaussian

TESTS = Path(__file__).resolve().parents[1]
LISTED = {type(sound).__name__ for sound, *_ in (*TWINS, *EVERY.values())}
# In neither list: those of test_cities.py, PlanarLaplace's parts, and bases of listed ones.
ELSEWHERE = {"CityLaplace", "CityLaplaceOpenDP", "CityLaplaceTooLittleNoise", "FiniteLaw", "Rejected", "LevelMechanism",
             "FiniteChoice", "ChoiceByScores"}  # fmt: skip
OTHERS = {"museum", "reproductions", "measurements", "papers"}  # no reference mechanisms


def mechanisms(is_faulty):
    """Every class of the package that can be sampled, by name: the sound ones, or the twins."""
    found = {}
    for module in pkgutil.walk_packages(dpaudit_mechanisms.__path__, "dpaudit_mechanisms."):
        if OTHERS.isdisjoint(module.name.split(".")) and (".faulty." in module.name) == is_faulty:
            for name, one in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
                if (
                    one.__module__ == module.name
                    and not name.startswith("_")
                    and callable(getattr(one, "sample", None))
                ):
                    found[name] = one
    assert len(found) > 40
    return found


def test_every_mechanism_is_in_a_list_and_has_a_row_of_every_bound_of_its_error():
    sound, rows = mechanisms(is_faulty=False), {type(one).__name__ for one, *_ in EVERY.values()}
    missing = sorted(set(sound) - LISTED - ELSEWHERE)
    assert not missing, f"{missing} must be in a list of tests/support/reference_mechanisms.py."
    stating = {name for name, one in sound.items() if hasattr(one, "utility_bounds")}
    missing = sorted(stating - rows - ELSEWHERE - {"MWEM"})  # whose transcripts have no error
    assert not missing, f"{missing} must have a row in EVERY, with the share of a budget that fails."
    assert set(sound) >= ELSEWHERE and LISTED.isdisjoint(ELSEWHERE)


def test_every_twin_is_in_a_test():
    places = [TESTS / place for place in ("mechanisms", "conformance", "meta", "papers", "support")]
    words = set(re.findall(r"\w+", "\n".join(one.read_text("utf-8") for place in places for one in place.glob("*.py"))))
    missing = sorted(set(mechanisms(is_faulty=True)) - words)
    assert not missing, f"{missing} must be in a test, such as TWINS of tests/support/reference_mechanisms.py."


@pytest.mark.parametrize("mechanism", [one for one, *_ in EVERY.values()], ids=lambda one: type(one).__name__)
def test_no_draws_are_an_empty_batch_of_the_form_of_one(mechanism):
    data, rng = as_pairs(mechanism.pairs())[0].x, np.random.default_rng(1)
    none, one = mechanism.sample(data, 0, rng), mechanism.sample(data, 1, rng)
    assert np.shape(none) == (0, *np.shape(one)[1:])


# ---- the protocol ----------------------------------------------------------------------------------------------------


BOTH = [(sound, twin) for sound, twin, _ in TWINS]


@pytest.mark.parametrize("mechanism", [one for both in BOTH for one in both], ids=lambda one: type(one).__name__)
def test_a_mechanism_offers_samples_densities_a_claim_and_pairs(mechanism):
    assert isinstance(mechanism, Mechanism) and mechanism.claim is not None
    pairs = as_pairs(mechanism.pairs())
    assert len({pair.id for pair in pairs}) == len(pairs)
    for pair in pairs:
        samples = mechanism.sample(pair.x, 7, np.random.default_rng(1))
        assert len(samples) == 7
        logs = mechanism.log_density(pair.x_prime, samples)
        assert logs.shape == (7,) and np.isfinite(logs).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 2.0


@pytest.mark.parametrize(("sound", "twin"), BOTH, ids=lambda one: type(one).__name__)
def test_a_twin_states_the_sound_claim_on_the_same_pairs_and_loses_more(sound, twin):
    assert str(twin.claim) == str(sound.claim)
    assert [pair.id for pair in twin.pairs()] == [pair.id for pair in sound.pairs()]
    first = sound.pairs()[0]
    promised = sound.claim.for_pair(first.x, first.x_prime)
    assert twin.claim.for_pair(first.x, first.x_prime) == promised
    if isinstance(sound, Gaussian):
        assert twin.mu(first.x, first.x_prime) > 1.19 * sound.mu(first.x, first.x_prime)
    else:
        assert sound.privacy_loss(first.x, first.x_prime) <= promised.value * (1.0 + 1e-12)
        assert twin.privacy_loss(first.x, first.x_prime) > 1.05 * promised.value
    assert "promised" in twin.fault
