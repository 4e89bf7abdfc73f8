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
LISTS = (
    "conformance/test_reference_mechanisms.py", "mechanisms/test_protocols.py",
    "mechanisms/test_utility_of_mechanisms.py", "meta/rates.py",
)  # fmt: skip
ELSEWHERE = {  # in no list: where they are tested
    "CityLaplace": "mechanisms/test_cities.py", "CityLaplaceOpenDP": "mechanisms/test_cities.py",
    "CityLaplaceTooLittleNoise": "mechanisms/test_cities.py",
    "FiniteLaw": "mechanisms", "Rejected": "mechanisms", "LevelMechanism": "mechanisms",  # bases of listed ones
}  # fmt: skip
OTHERS = ("museum", "reproductions", "measurements", "papers")  # no reference mechanisms


def mechanisms():
    """(module, name) of every class of the package that can be sampled."""
    found = []
    for module in pkgutil.walk_packages(dpaudit_mechanisms.__path__, "dpaudit_mechanisms."):
        if set(OTHERS) & set(module.name.split(".")):
            continue
        for name, one in vars(importlib.import_module(module.name)).items():
            is_own = inspect.isclass(one) and one.__module__ == module.name and not name.startswith("_")
            if is_own and callable(getattr(one, "sample", None)):
                found.append((module.name, name))
    return found


@pytest.fixture(scope="module")
def found():
    return mechanisms()


def names_in(*places):
    texts = [path.read_text("utf-8") for place in places for path in [TESTS / place] if path.is_file()]
    texts += [path.read_text("utf-8") for place in places for path in (TESTS / place).glob("**/*.py")]
    return set(re.findall(r"\w+", "\n".join(texts)))


def test_every_mechanism_is_in_a_list(found):
    listed = names_in(*LISTS)
    sound = [name for module, name in found if ".faulty." not in module]
    assert len(sound) > 40
    assert [name for name in sound if name not in listed and name not in ELSEWHERE] == []


def test_those_that_are_tested_elsewhere_are_there(found):
    assert set(ELSEWHERE) <= {name for _, name in found}
    listed = names_in(*LISTS)
    assert [name for name in ELSEWHERE if name in listed] == []


def test_every_twin_is_in_a_test(found):
    tested = names_in("mechanisms", "conformance", "meta", "papers")
    twins = [name for module, name in found if ".faulty." in module]
    assert len(twins) > 40 and [name for name in twins if name not in tested] == []
