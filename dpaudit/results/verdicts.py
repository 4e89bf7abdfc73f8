"""The four verdicts; never "private", "safe" or "passed"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from dpaudit.errors import UsageError

Verdict = Literal["violated", "error", "inconclusive", "not_refuted"]
# Of a whole result the first of these that any finding has.
VERDICTS: tuple[Verdict, ...] = ("violated", "error", "inconclusive", "not_refuted")
EXIT_STATUS: Mapping[Verdict, int] = {"not_refuted": 0, "violated": 1, "error": 3, "inconclusive": 5}


def check_verdict(pair: str, verdict: object, parameter: str, lower: float, promised: float) -> None:
    """`UsageError` unless a pair is "violated" and its bound above its budget, or it is neither; NaN is no bound."""
    if not (lower > promised if verdict == "violated" else lower <= promised):
        expected = "'violated'" if lower > promised else "one that is not 'violated'"
        raise UsageError(
            f"verdict of the pair {pair!r:.120} must be that of its bound, {expected} ({parameter} is at least "
            f"{lower!r}, {promised!r} is promised), got {verdict!r}. Somebody has changed the file, or it is not a "
            "result of dpaudit."
        )


def gravest(found: Collection[str | None]) -> Verdict:
    """The first of `VERDICTS` that is among these; "inconclusive" if none is."""
    return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")
