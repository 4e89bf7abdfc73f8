"""Subjects of the commands: what TARGET names, with the claim and the pairs that are given beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpaudit.errors import UsageError

if TYPE_CHECKING:
    from dpaudit.privacy.claims import Claim
    from dpaudit.privacy.pairs import Pair
    from dpaudit.subjects.callables import Subject


def check_target(target: str | None) -> None:
    """Fail where no target is given to a command that can do without one."""
    if target is None:
        raise UsageError("target must be given, got none. Name a mechanism, for example mymodule.py:release.")


def check_complete(subject: Subject, claim: Claim | str | None, pairs: Sequence[Pair] | None) -> None:
    """Fail before the first draw where a claim or pairs are missing."""
    if claim is None and subject.claim is None:
        raise UsageError(f"claim must be given: {subject.target} states none. For example --claim eps=1.")
    if pairs is None and getattr(subject.mechanism, "pairs", None) is None:
        raise UsageError(
            f"pairs must be given: {subject.target} has none. For example --pairs '0,1'. `dpaudit audit` looks for "
            "some itself with --search or --examples."
        )


def given_pairs(pairs: str | None) -> Sequence[Pair] | None:
    """The pairs of a text; None where none is given. `UsageError` if each is of one input with itself."""
    from dpaudit.privacy.inputs import is_same_input
    from dpaudit.privacy.pairs import AllPairs
    from dpaudit.subjects.targets import resolve_pairs

    found = resolve_pairs(pairs) if pairs is not None else None
    if found and not isinstance(found, AllPairs) and all(map(is_same_input, found)):
        raise UsageError(f"pairs must be of two different inputs, got an input with itself alone ({pairs!r}).")
    return found


def given_subject(given: Any, claim: Claim | str | None) -> tuple[Subject, Sequence[Pair] | None]:
    """The subject that `given.target` names and the pairs of `given.pairs`; complete with the claim."""
    from dpaudit.subjects.targets import resolve_target

    pairs, subject = given_pairs(given.pairs), resolve_target(given.target)
    check_complete(subject, claim, pairs)
    return subject, pairs
