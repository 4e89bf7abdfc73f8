"""A family of claims that is added is exported, has a text, is on the pages, and is held to the contract of tests."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
from implementations import CLAIMS

import dpaudit
import dpaudit.privacy
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim

ROOT = Path(__file__).resolve().parents[2]
NOT_THERE = {  # each with a reason
    "tests/implementations.py": ("MetricDP", "NeighbourClaim"),  # no lines of their own: their pairs have other claims
    "docs/howto/claims.md": ("ProfileClaim", "NeighbourClaim"),  # the first has no text, the other a guide of its own
}
WITHOUT_TEXT = ("ProfileClaim", "FDP")  # made of functions


def families():
    """The public classes of claims by their names; `RenyiLines` is a step of composition."""
    found = {}
    for module in pkgutil.iter_modules(dpaudit.privacy.__path__, "dpaudit.privacy."):
        for name, one in vars(importlib.import_module(module.name)).items():
            is_own = inspect.isclass(one) and one.__module__ == module.name and issubclass(one, Claim)
            if is_own and one is not Claim and name != "RenyiLines" and not name.startswith("_"):
                found[name] = one
    return found


FAMILIES = families()
PLACES = ("tests/implementations.py", "docs/howto/claims.md", "docs/reference/api.md")


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_is_named_in_every_list(name):
    missing = [
        place
        for place in PLACES
        if name not in NOT_THERE.get(place, ()) and not re.search(rf"\b{name}\b", (ROOT / place).read_text("utf-8"))
    ]
    missing += [] if name in dpaudit.__all__ else ["dpaudit/__init__.py"]
    missing += [] if hasattr(dpaudit.privacy, name) or name == "NeighbourClaim" else ["dpaudit/privacy/__init__.py"]
    assert not missing, f"{name} must be named in {', '.join(missing)}."


@pytest.mark.parametrize(
    "claim", [one for one in CLAIMS.values() if type(one).__name__ in set(FAMILIES) - set(WITHOUT_TEXT)], ids=str
)
def test_a_family_is_read_from_its_text(claim):
    try:
        read = dpaudit.parse_claim(str(claim))
    except UsageError as error:
        pytest.fail(f"{str(claim)!r} must be read by dpaudit/privacy/parsing.py (_CLAIMS, _KEYS, _FORMS): {error}")
    assert read == claim
    with pytest.raises(UsageError, match=rf"claim must be .*{str(claim).partition('=')[0]}="):  # a form is offered
        dpaudit.parse_claim("nothing=1")
