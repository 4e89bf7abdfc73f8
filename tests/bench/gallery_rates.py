"""Detection rates on the gallery, by form: the share of leaks, and of sound twins, that audits call violated.

Conventions: draws are labelled draws of one audit. Leaks and twins are audited against epsilon = 1 at 95% confidence.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from gallery_leaks import EPSILON, Leak, SoundCounterpart

import dpaudit
from dpaudit.bench.design import CONFIDENCE

PAIR = (1, 0)


@dataclasses.dataclass(frozen=True)
class Seen:
    """One audit of a leak, or of its twin: whether it was called violated, and the labelled draws by then."""

    leak: Leak
    is_twin: bool
    is_violated: bool
    draws: int


def look(leak: Leak, draws: int, mode: Literal["sequential", "fixed"], seed: int, twin: bool = False) -> Seen:
    """Audit a leak, or its sound twin, on at most so many labelled draws.

    Examples
    --------
    >>> from gallery_leaks import gallery
    >>> tail = next(leak for leak in gallery() if leak.form == "tails" and "0.1" in leak.name)
    >>> look(tail, 4_000, "sequential", seed=1).is_violated
    True
    """
    mechanism = SoundCounterpart(leak) if twin else leak
    result = dpaudit.audit(
        mechanism,
        f"eps={EPSILON:g}",
        [PAIR],
        samples=draws // 2,
        mode=mode,
        confidence=CONFIDENCE,
        seed=seed,
        floating_point=False,
    )
    finding = result.findings[0]
    return Seen(leak, twin, finding.verdict == "violated", int(finding.samples))


def shares_by_form(seen: Iterable[Seen]) -> dict[str, tuple[int, int]]:
    """Number of audits of each form that were called violated, and of all; forms in order."""
    shares: dict[str, tuple[int, int]] = {}
    for one in seen:
        found, audits = shares.get(one.leak.form, (0, 0))
        shares[one.leak.form] = found + one.is_violated, audits + 1
    return dict(sorted(shares.items()))


def table_of(seen: Sequence[Seen]) -> str:
    """The shares by form and in all as text, with median draws of those that were found."""
    lines = [f"{form:24s} {found:4d} of {audits:4d}" for form, (found, audits) in shares_by_form(seen).items()]
    draws = [one.draws for one in seen if one.is_violated]
    middle = f", after {np.median(draws):,.0f} labelled draws (median)" if draws else ""
    return "\n".join([*lines, f"{'all':24s} {len(draws):4d} of {len(seen):4d}{middle}"])
