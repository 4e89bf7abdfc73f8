"""Demands of the commands on the subject that TARGET names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dpaudit.errors import UsageError

if TYPE_CHECKING:
    from dpaudit.privacy.claims import Claim
    from dpaudit.privacy.pairs import Pair
    from dpaudit.subjects.callables import Subject


def check_complete(subject: Subject, claim: Claim | None, pairs: Sequence[Pair] | None) -> None:
    """Fail before the first draw where a claim or pairs are missing."""
    if claim is None and subject.claim is None:
        raise UsageError(f"claim must be given: {subject.target} states none. For example --claim eps=1.")
    if pairs is None and getattr(subject.mechanism, "pairs", None) is None:
        raise UsageError(
            f"pairs must be given: {subject.target} has none. For example --pairs '0,1'. `dpaudit audit` looks for "
            "some itself with --search or --examples."
        )
