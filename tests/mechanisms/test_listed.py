"""A reference mechanism, or a faulty twin, that is added stands in a list that tests walk."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

from support.reference_mechanisms import EVERY, TWINS

import dpaudit_mechanisms

TESTS = Path(__file__).resolve().parents[1]
LISTED = {type(sound).__name__ for sound, *_ in (*TWINS, *EVERY.values())}
# In neither list: those of test_cities.py, PlanarLaplace's parts, and bases of listed ones.
ELSEWHERE = {"CityLaplace", "CityLaplaceOpenDP", "CityLaplaceTooLittleNoise", "FiniteLaw", "Rejected", "LevelMechanism",
             "FiniteChoice"}  # fmt: skip
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
