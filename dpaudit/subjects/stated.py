"""Claim and pairs that a call states of its subject, or the subject of itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pair_budgets import check_order_is_given
from dpaudit.privacy.pairs import MANY_PAIRS, AllPairs, Pair, as_pairs
from dpaudit.privacy.parsing import as_claim
from dpaudit.subjects.callables import Subject


def known_claim(subject: Subject, claim: Claim | str | None) -> Claim | None:
    """The claim of a call: what it states, or the subject's own; None if there is none."""
    return subject.neighbouring(as_claim(claim)) if claim is not None else subject.claim


def stated_claim(subject: Subject, claim: Claim | str | None) -> Claim:
    """The claim of a call: what it states, or the subject's own; `UsageError` if there is none."""
    known = known_claim(subject, claim)
    if known is None:
        raise UsageError(f"claim must be given: {subject.name} states none. For example claim='eps=1'.")
    return known


def known_pairs(subject: Subject, pairs: Iterable[Any] | None, hint: str = "") -> Iterable[Any]:
    """The pairs of a call as they are given, or the subject's own; `UsageError` if there are none."""
    given = pairs if pairs is not None else subject.pairs()
    if given is None:
        raise UsageError(f"pairs must be given: {subject.name} has none. For example pairs=[(0.0, 1.0)]{hint}.")
    return given


def stated_pairs(subject: Subject, pairs: Iterable[Any] | None, claim: Claim) -> Sequence[Pair]:
    """The pairs of an audit: what it states, or the subject's own; `UsageError` if there are none, or in no order."""
    looks = "; `dpaudit.audit` looks for some itself with pairs=dpaudit.Search(domain)"
    given = known_pairs(subject, pairs, looks)
    if isinstance(given, AllPairs):
        check_order_is_given(claim, "AllPairs")
    return given if isinstance(given, AllPairs) and len(given) > MANY_PAIRS else as_pairs(given)
