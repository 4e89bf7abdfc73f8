"""Compatibility of the features of an audit, two by two, and the reason where two of them cannot go together.

A refusal is inherent: its reason names the condition of validity, or the fact, that would break. Whatever is not listed
here works, and `tests/audits/test_what_composes.py` walks every cell: it holds each to "works" (the same verdict,
bounds and bits as alone, where the other feature is not meant to change them) or to the reason that stands here. The
table of the manual (`docs/composition.md`) is made from the same list. What a stage cannot do with what was played, it
says in its finding (`dpaudit.audits.stages`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from dpaudit.arguments import MODES
from dpaudit.errors import UsageError

# As an option or in words. Of two that cannot go together the earlier one is to leave out.
FEATURES = (
    *MODES, "band", "power", "checkpoint", "pool", "grey_box", "seconds", "jobs", "dask", "isolation", "search",
    "store", "all pairs", "program",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Reason:
    """Reason why the features of `pairs` cannot go together.

    `condition` says in a few words what would no longer hold, of validity or in fact; `sentence` the same for people,
    with the way out. It holds for subjects that are `of` this kind, in words; for all where that is empty.
    """

    condition: str
    sentence: str
    pairs: tuple[tuple[str, str], ...]
    of: str = ""


class IncompatibleOptions(UsageError):
    """Two features of an audit that cannot go together; `features` names them and `reason` says why."""

    def __init__(self, given: str, value: Any, other: str, reason: Reason) -> None:
        self.features, self.value, self.reason = (given, other), value, reason
        name = f"a {other}" if other in ("store", "search", "program") else other.replace("all", "a table of all")
        super().__init__(f"{given} must not be given with {name}, got {value!r:.100}. {reason.sentence}")

    def __reduce__(self) -> tuple[Any, ...]:
        return (IncompatibleOptions, (self.features[0], self.value, self.features[1], self.reason))


SELF_SEEDED, CALLED_ONCE = "a subject with randomness of its own", "one call a draw"
_REASONS = (
    Reason("one mode an audit", "An audit has one mode.", tuple(combinations(MODES, 2))),
    Reason(
        "no draw is counted twice",
        "A store saves every round already: a chunk that a checkpoint gave back would be counted twice. "
        "The next audit with the store goes on where this one stops.",
        (("store", "checkpoint"),),
    ),
    Reason(
        "an exact test is looked at once",
        "An exact test is looked at once, after a number of draws fixed beforehand; a store looks in every session. "
        "Use mode='sequential'.",
        (("store", "fixed"),),
    ),
    Reason(
        "an exact test is looked at once",
        "An all-pairs table has one exact test for each of its pairs, which is looked at once; a store looks in every "
        "session. Audit fewer pairs with it.",
        (("store", "all pairs"),),
    ),
    Reason(
        "evidence multiplies for one pair only",
        "A store goes on with each pair by itself: a pool of other pairs the next session would be another test.",
        (("store", "pool"),),
    ),
    Reason(
        "an error rate is spent once",
        "The error rate of a band is spent in one call; that of a store is for all sessions.",
        (("store", "band"),),
    ),
    Reason(
        "a band is of the clearest game",
        "An all-pairs table tests its pairs in one table, and plays no games. Audit fewer pairs with it.",
        (("all pairs", "band"),),
    ),
    Reason(
        "leaks are planted into outputs of one game",
        "Leaks are planted into the outputs of one game, and neither a store nor an all-pairs table keeps these. The "
        "power that is stated without them is of a general table.",
        (("store", "power"), ("all pairs", "power")),
    ),
    Reason(
        "one test a pair", "All pairs of a table share the draws of their inputs already.", (("all pairs", "pool"),)
    ),
    Reason(
        "the mechanism says that its law moves with its input",
        "Pairs are pooled where the mechanism says that it is a translation family, and a program says nothing of its "
        "law.",
        (("program", "pool"),),
    ),
    Reason(
        "one path: what was looked at is not drawn again",
        "A search that is made again on other random numbers chooses other pairs, and beginning again with these is a "
        "second audit. Give the pairs that search_pairs chooses.",
        (("search", "checkpoint"),),
        SELF_SEEDED,
    ),
    Reason(
        "labels are fair given when a call is made",
        "Where a call may not come back, all calls of a pair are made in one random order and pairs share no draws; "
        "the all-pairs table is drawn input by input. Let the subject draw batches, or audit fewer pairs.",
        (("all pairs", "isolation"),),
        CALLED_ONCE,
    ),
)
REFUSED: Mapping[frozenset[str], Reason] = {frozenset(two): reason for reason in _REASONS for two in reason.pairs}


def check_compatibility(used: Mapping[str, Any], *, replayable: bool = True, called_once: bool = False) -> None:
    """Raise `IncompatibleOptions` for the first two features that cannot go together, of those in `used`.

    `replayable` says whether the subject takes its randomness from what it is given, `called_once` whether it is called
    once a draw.

    Examples
    --------
    >>> check_compatibility({"sequential": "sequential", "checkpoint": "session.checkpoint"})
    >>> check_compatibility({"store": "evidence.db", "fixed": "fixed"})
    Traceback (most recent call last):
        ...
    dpaudit.audits.compatibility.IncompatibleOptions: mode must not be given with a store, got 'fixed'. An exact ...
    """
    holds = {"": True, SELF_SEEDED: not replayable, CALLED_ONCE: called_once}
    for two, reason in REFUSED.items():
        if two <= used.keys() and holds[reason.of]:
            given, other = sorted(two, key=FEATURES.index)
            raise IncompatibleOptions("mode" if given in MODES else given, used[given], other, reason)
