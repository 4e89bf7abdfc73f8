"""The four verdicts; never "private", "safe" or "passed"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

Verdict = Literal["violated", "error", "inconclusive", "not_refuted"]
# Of a whole result the first of these that any finding has.
VERDICTS: tuple[Verdict, ...] = ("violated", "error", "inconclusive", "not_refuted")
EXIT_STATUS: Mapping[Verdict, int] = {"not_refuted": 0, "violated": 1, "error": 3, "inconclusive": 5}


def gravest(found: Collection[str | None]) -> Verdict:
    """The first of `VERDICTS` that is among these; "inconclusive" if none is."""
    return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")
