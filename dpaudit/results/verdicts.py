"""The four verdicts; never "private", "safe" or "passed"."""

from __future__ import annotations

from typing import Literal

Verdict = Literal["violated", "error", "inconclusive", "not_refuted"]
# Of a whole result the first of these that any finding has.
VERDICTS: tuple[Verdict, ...] = ("violated", "error", "inconclusive", "not_refuted")
