"""Profiles: named sets of options for a pytest session, chosen by `--dp-profile`. Importing this imports nothing heavy.

In `conftest.py` of the root folder, for `pytest --dp-profile release`:

    dpaudit.register_profile("release", samples=1_000_000, seeds="fresh", strict=True)
"""

from __future__ import annotations

import dataclasses
from typing import Literal

from dpaudit.arguments import check_options, with_near_names
from dpaudit.errors import UsageError

Seeds = Literal["fixed", "fresh"]


@dataclasses.dataclass(frozen=True)
class Profile:
    """Settings of a session where neither a test nor the command line says otherwise; None leaves an option alone.

    The attributes are the parameters of `register_profile`.
    """

    name: str
    samples: int | None = None
    mode: str | None = None
    confidence: float | None = None
    seeds: Seeds = "fixed"
    strict: bool | None = None
    floating_point: bool | None = None
    event_mass: float | None = None
    inconclusive_factor: float | None = None


_PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile("default"),
        Profile("quick", samples=5_000),
        Profile("ci", samples=50_000),
        Profile("nightly", samples=500_000, seeds="fresh"),
        Profile("compliance", samples=500_000, confidence=0.999),
    )
}


@with_near_names
def register_profile(
    name: str,
    *,
    samples: int | None = None,
    mode: str | None = None,
    confidence: float | None = None,
    seeds: Seeds = "fixed",
    strict: bool | None = None,
    floating_point: bool | None = None,
    event_mass: float | None = None,
    inconclusive_factor: float | None = None,
) -> Profile:
    """Register a profile for `--dp-profile NAME`, in the conftest.py of the root folder; a known name is replaced.

    Parameters
    ----------
    name : str
        A word.
    samples, mode, floating_point, event_mass, inconclusive_factor : optional
        As for `dpaudit.audit`, for every `dp_audit` that does not state its own.
    confidence : float, optional
        Of the whole session, in (0, 1).
    seeds : {"fixed", "fresh"}
        The same draws in every session (pull requests), or others in each (nightly runs); the seed is printed.
    strict : bool, optional
        Whether an inconclusive audit, or one whose low bits leak, fails its test.

    Returns
    -------
    Profile

    Raises
    ------
    UsageError
        If an argument makes no sense.

    Examples
    --------
    >>> register_profile("release", samples=1_000_000, seeds="fresh").seeds
    'fresh'
    """
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise UsageError(f"name must be a word, got {name!r}.")
    profile = Profile(name, samples, mode, confidence, seeds, strict, floating_point, event_mass, inconclusive_factor)
    check_options(**{option: value for option, value in vars(profile).items() if value is not None})
    if seeds not in ("fixed", "fresh"):
        raise UsageError(f"seeds must be 'fixed' or 'fresh', got {seeds!r}.")
    for option, value in (("strict", strict), ("floating_point", floating_point)):
        if value is not None and not isinstance(value, bool):
            raise UsageError(f"{option} must be True or False, got {value!r}.")
    _PROFILES[name] = profile
    return profile


def profile_named(name: str) -> Profile:
    """The profile of that name; `UsageError` names the known ones."""
    if name not in _PROFILES:
        raise UsageError(f"dp_profile must be one of {', '.join(_PROFILES)}, got {name!r}.")
    return _PROFILES[name]
