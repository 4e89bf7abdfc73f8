"""Comparison of a subject's own metadata, pair by pair, with the claim of the audit: a side finding.

Never an error, and never a part of the verdict: to audit another claim than the library states may be what was meant.
Nothing here is random.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair, counted_pairs, differing_pairs
from dpaudit.results.model import SideFinding
from dpaudit.subjects.callables import Subject

KIND = "claim_metadata"
MAX_PAIRS = 1_000  # that are compared
MAX_DIFFERENCES = 20  # in the details of a finding
SAME = 1e-9  # relative: libraries round their figures up by a few units in the last place
# Epsilons at which two privacy profiles are compared; the far ones for large parameters, whose profiles are 1 before.
GRID = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 32.0, 128.0, 512.0)
WORDS = {
    "stronger": "asks for more than its metadata promise, {metadata}: a violation may be none of theirs",
    "weaker": "asks for less than its metadata promise, {metadata}",
    "another kind": "is of another kind than what its metadata promise, {metadata}",
    "not promised": "is about inputs for which its metadata promise nothing: a violation is none of theirs",
}


def claim_metadata(subject: Subject, claim: Claim, pairs: Iterable[Pair]) -> tuple[SideFinding, ...]:
    """The side finding "claim_metadata" of an audit; empty if the subject has no metadata of a claim.

    Metadata are `promised(x, x_prime)` of its mechanism: a `Claim`, or None for a pair that nothing is promised for. Of
    the first 1,000 pairs it is compared. "found" says that the claim differs from it for some pair: it is *stronger*
    than the metadata (it asks for more than was promised), *weaker*, or of *another kind*, which cannot be compared.
    """
    promised = getattr(subject.mechanism, "promised", None)
    if not callable(promised):
        return ()
    differences: list[dict[str, Any]] = []
    compared = 0
    known: list[str] = []  # what is promised, in words
    for pair in itertools.islice(pairs, MAX_PAIRS):
        try:
            library = promised(pair.x, pair.x_prime)
        except Exception as error:  # metadata only inform; an input that they cannot be read for is no broken audit
            return (SideFinding(KIND, "not_applicable", f"The metadata of {subject.name} cannot be read: {error}."),)
        compared += 1
        stated, text = claim.for_pair(pair.x, pair.x_prime), None if library is None else str(library)
        known += [] if text is None or text in known else [text]
        relation = "not promised" if library is None else compared_claims(stated, library)
        if relation != "the same":
            differences.append({"pair": pair.id, "claim": str(stated), "metadata": text, "claim_is": relation})
    if not compared:
        return ()
    details = {"compared": compared, "differences": differences[:MAX_DIFFERENCES], "count": len(differences)}
    if not differences:
        promises = known[0] + (", ..." if len(known) > 1 else "")
        summary = f"The claim is what the metadata of {subject.name} promise for {counted_pairs(compared)}: {promises}."
        return (SideFinding(KIND, "nothing_found", summary, None, details),)
    first = differences[0]
    words = WORDS[first["claim_is"]].format(metadata=first["metadata"])
    summary = (
        f"The claim {first['claim']} for {subject.name} {words} (pair {first['pair']}; "
        f"{differing_pairs(len(differences), compared)})."
    )
    return (SideFinding(KIND, "found", summary, None, details),)


def compared_claims(stated: Claim, library: Claim) -> str:
    """Compare a claim with another one: "the same", "stronger", "weaker" or "another kind" (not comparable here).

    Claims of one family are compared by their parameters, hockey-stick families by their privacy profiles on a grid,
    Renyi families by their curves at the orders of either.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP, ApproxDP
    >>> compared_claims(PureDP(0.5), PureDP(1.0)), compared_claims(ApproxDP(1.0, 1e-6), PureDP(1.0))
    ('stronger', 'weaker')
    """
    if stated.family != library.family:
        return "another kind"
    orders = {False, not (stated.is_symmetric and library.is_symmetric)}
    figures = [one for order in orders for one in _figures(stated.in_order(order), library.in_order(order))]
    above = any(ours > theirs * (1.0 + SAME) + 1e-300 for ours, theirs in figures)
    below = any(ours < theirs * (1.0 - SAME) - 1e-300 for ours, theirs in figures)
    if not figures or (above and below):
        return "another kind"
    return "weaker" if above else "stronger" if below else "the same"


def _figures(stated: Claim, library: Claim) -> list[tuple[float, float]]:
    """Bounds that two claims of one family promise of one order of a pair, side by side."""
    if stated.family == "renyi":  # at the finite orders of both: inf beyond the orders of one
        orders = sorted(order for order in {*stated.orders, *library.orders} if math.isfinite(order))
        return [(_at_order(stated, order), _at_order(library, order)) for order in orders]
    if not stated.anchored and not library.anchored:
        lines = (dataclasses.astuple(claim.inequality()) for claim in (stated, library))
        return list(zip(*lines, strict=True))
    return [(stated.profile(epsilon), library.profile(epsilon)) for epsilon in GRID]


def _at_order(claim: Claim, order: float) -> float:
    try:
        return claim.inequality(order).epsilon
    except UsageError:  # the order is beyond those that it speaks of
        return math.inf
