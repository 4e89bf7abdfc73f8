"""A reference mechanism, or a faulty twin, that is added stands in a list that tests walk."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import dpaudit_mechanisms

TESTS = Path(__file__).resolve().parents[1]
UTILITY = "mechanisms/test_utility_of_mechanisms.py"
LISTS = ("conformance/test_reference_mechanisms.py", "mechanisms/test_protocols.py", UTILITY)
ELSEWHERE = {  # in no list: where they are tested
    "CityLaplace": "mechanisms/test_cities.py", "CityLaplaceOpenDP": "mechanisms/test_cities.py",
    "CityLaplaceTooLittleNoise": "mechanisms/test_cities.py",
    "FiniteLaw": "mechanisms", "Rejected": "mechanisms", "LevelMechanism": "mechanisms",  # bases of listed ones
}  # fmt: skip
NO_ROW = ("MWEM", "LevelMechanism")  # with no bound to test: it states none for a transcript; a base of listed ones
OTHERS = ("museum", "reproductions", "measurements", "papers")  # no reference mechanisms


def mechanisms():
    """(module, class) of every class of the package that can be sampled."""
    found = []
    for module in pkgutil.walk_packages(dpaudit_mechanisms.__path__, "dpaudit_mechanisms."):
        if set(OTHERS) & set(module.name.split(".")):
            continue
        for name, one in vars(importlib.import_module(module.name)).items():
            is_own = inspect.isclass(one) and one.__module__ == module.name and not name.startswith("_")
            if is_own and callable(getattr(one, "sample", None)):
                found.append((module.name, one))
    return found


@pytest.fixture(scope="module")
def sound():
    return {one.__name__: one for module, one in mechanisms() if ".faulty." not in module}


def names_in(*places):
    texts = [path.read_text("utf-8") for place in places for path in [TESTS / place] if path.is_file()]
    texts += [path.read_text("utf-8") for place in places for path in (TESTS / place).glob("**/*.py")]
    return set(re.findall(r"\w+", "\n".join(texts)))


def test_every_mechanism_is_in_a_list(sound):
    missing = sorted(set(sound) - names_in(*LISTS) - set(ELSEWHERE))
    assert len(sound) > 40
    assert not missing, (
        f"{missing} must be in a list of tests/{{{', '.join(LISTS)}}}, with a faulty twin in the second."
    )


def test_every_mechanism_that_states_error_bounds_has_a_row_of_utility(sound):
    stating = {name for name, one in sound.items() if hasattr(one, "utility_bounds")}
    missing = sorted(stating - names_in(UTILITY) - set(ELSEWHERE) - set(NO_ROW))
    assert not missing, f"{missing} must have a row in EVERY of tests/{UTILITY}, with the share of a budget that fails."


def test_those_that_are_tested_elsewhere_are_there(sound):
    assert set(ELSEWHERE) | set(NO_ROW) <= set(sound)
    assert not set(ELSEWHERE) & names_in(*LISTS) and not set(NO_ROW) & names_in(UTILITY)


def test_every_twin_is_in_a_test():
    twins = {one.__name__ for module, one in mechanisms() if ".faulty." in module}
    missing = sorted(twins - names_in("mechanisms", "conformance", "meta", "papers"))
    assert len(twins) > 40
    assert not missing, f"{missing} must be in a test, such as TWINS of tests/mechanisms/test_protocols.py."
