"""The laws as a list: each with a name, whether it applies to a subject and its claim, and what it derives from them.

A law of several mechanisms is applied to one mechanism with itself (or with a post-processed copy, which keeps the same
claim), so that every law derives something from any subject, without further arguments.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.extensions import extensions
from dpaudit.laws.claims import checked, refuse
from dpaudit.laws.composing import (
    Places,
    adaptive_composition,
    pairs_in_one_place,
    parallel_composition,
    sequential_composition,
)
from dpaudit.laws.conditioning import HalfByHash, conditioning
from dpaudit.laws.derived import pairs_of
from dpaudit.laws.grouping import group_privacy
from dpaudit.laws.mixing import convexity, disjoint_union, mixture
from dpaudit.laws.nasty import NASTY, NASTY_FUNCTIONS, NastyFunction, hash_parity
from dpaudit.laws.processing import BoxProjection, post_processing, projection
from dpaudit.privacy.claims import Claim, MetricDP
from dpaudit.subjects.callables import as_subject

GROUP = "dpaudit.laws"  # the entry-point group of other laws
Derivation = tuple[Any, Claim]
MAX_PAIRS = 100  # that parallel composition is made of: one game each, even where the subject's own share a table


@dataclasses.dataclass(frozen=True)
class Law:
    """One law, ready to be applied to a single subject.

    Attributes
    ----------
    name : str
        Unique among `LAWS`.
    rule : callable
        (subject, claim, pairs) to (derived subject, derived claim); raises `UsageError` where it has no rule.
    """

    name: str
    rule: Callable[[Any, Claim, Iterable[Any] | None], Derivation] = dataclasses.field(repr=False)

    def applies(self, subject: Any, claim: Claim, pairs: Iterable[Any] | None = None) -> bool:
        """Tell whether there is a rule for the family of the claim, and pairs where the law needs them."""
        try:
            self.derive(subject, claim, pairs)
        except UsageError:
            return False
        return True

    def derive(self, subject: Any, claim: Claim, pairs: Iterable[Any] | None = None) -> Derivation:
        """The derived subject and the claim that it must keep.

        Parameters
        ----------
        subject : object or callable
            As `dpaudit.audit` takes it.
        claim : Claim
            What it keeps.
        pairs : iterable, optional
            Pairs that keep the claim; the subject's own by default.

        Returns
        -------
        (subject, claim)
            For `dpaudit.audit(subject, claim=claim)`. Where pairs are known the subject's `pairs()` are those that the
            law speaks of, which are others than the given ones for group privacy and parallel composition (made of the
            first 100).

        Raises
        ------
        UsageError
            If the law has no rule for the claim, or no pairs where it needs them.
        """
        return self.rule(subject, checked(claim), pairs)


def _copy(subject: Any, claim: Claim, function: str) -> Any:
    """A second mechanism with the same claim: the first, post-processed."""
    return post_processing(subject, claim, NASTY[function])[0]


def _sequential(subject: Any, claim: Claim, pairs: Iterable[Any] | None) -> Derivation:
    return sequential_composition([subject, subject], [claim, claim], pairs=pairs)


def _adaptive(subject: Any, claim: Claim, pairs: Iterable[Any] | None) -> Derivation:
    one = as_subject(subject)
    others = [one, _copy(one, claim, "rounding")]
    return adaptive_composition(one, claim, others, [claim, claim], hash_parity, pairs=pairs)


def _post_processing(function: NastyFunction, subject: Any, claim: Claim, pairs: Iterable[Any] | None) -> Derivation:
    return post_processing(subject, claim, function, pairs=pairs)


def _group(subject: Any, claim: Claim, pairs: Iterable[Any] | None) -> Derivation:
    if pairs_of(as_subject(subject), pairs) is None:
        raise UsageError("pairs must be given for chains of two, got none.")
    return group_privacy(subject, claim, 2, pairs=pairs)


def _of_two(
    law: Callable[..., Derivation], function: str, subject: Any, claim: Claim, pairs: Iterable[Any] | None
) -> Derivation:
    one = as_subject(subject)
    return law([one, _copy(one, claim, function)], [claim, claim], [0.75, 0.25], pairs=pairs)


def _conditioning(subject: Any, claim: Claim, pairs: Iterable[Any] | None) -> Derivation:
    event = HalfByHash()
    return conditioning(subject, claim, event, mass=event.mass, pairs=pairs)


def _projection(subject: Any, claim: Claim, pairs: Iterable[Any] | None) -> Derivation:
    return projection(subject, claim, BoxProjection(0.0, 1.0), pairs=pairs)


def _parallel(subject: Any, claim: Claim, pairs: Iterable[Any] | None) -> Derivation:
    if claim.depends_on_pair and not isinstance(claim, MetricDP):
        raise refuse(claim, "has one budget for all pairs, or a metric")
    one = as_subject(subject)
    known = pairs_of(one, pairs)
    lifted = None if known is None else pairs_in_one_place(known[:MAX_PAIRS], 2)
    return parallel_composition([one, one], [claim, claim], Places(2), pairs=lifted)


LAWS: tuple[Law, ...] = (
    Law("sequential composition", _sequential),
    Law("adaptive composition", _adaptive),
    *(
        Law(f"post-processing by {function.name}", functools.partial(_post_processing, function))
        for function in NASTY_FUNCTIONS
        if not function.reads_doubles  # what low bits give away is a finding of its own, not a broken law
    ),
    Law("group privacy", _group),
    Law("mixture", functools.partial(_of_two, mixture, "clipping")),
    Law("disjoint union", functools.partial(_of_two, disjoint_union, "rounding")),
    Law("conditioning", _conditioning),
    Law("projection", _projection),
    Law("parallel composition", _parallel),
    Law("convexity", functools.partial(_of_two, convexity, "forgetting")),
)


def all_laws() -> tuple[Law, ...]:
    """`LAWS`, then those that other packages add in the entry-point group `dpaudit.laws`.

    Raises
    ------
    UsageError
        If what a package adds is no `Law`, or has another name than its entry point, or one that is taken.
    """
    found = list(LAWS)
    for name, law in extensions(GROUP):
        if not isinstance(law, Law) or law.name != name:
            raise UsageError(f"a law must be a Law of its entry point's name, got {law!r:.80} at {name!r}.")
        if name in [known.name for known in found]:
            raise UsageError(f"laws must have different names, got {name!r} twice.")
        found.append(law)
    return tuple(found)
