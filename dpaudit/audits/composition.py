"""What composes: the features of an audit, two by two, and the reason where two of them cannot go together.

A refusal is inherent: its reason names the condition of validity, or the fact, that would break. Whatever is not listed
here works, and `tests/audits/test_what_composes.py` walks every cell: it holds each to "works" (the same verdict,
bounds and bits as alone, where the second feature is not meant to change them) or to the reason that stands here. The
table of the manual (`docs/composition.md`) is made from the same list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from dpaudit.errors import UsageError

# By name, as an option or in words: what each is.
FEATURES: Mapping[str, str] = {
    "sequential": "stop as soon as the evidence is there",
    "adaptive": "spend runs where the evidence grows",
    "fixed": "use all draws, for one exact test",
    "universe": "more than 500 pairs in one table",
    "pool": "pairs of one shift in one game",
    "search": "pairs that are looked for",
    "grey_box": "both inputs on the same random stream",
    "program": "a subject behind exec:",
    "isolation": "calls in worker processes with limits",
    "jobs": "several processes of this machine",
    "dask": "the workers of a cluster",
    "checkpoint": "finished draws in a file, to resume from",
    "store": "evidence that goes on night after night",
    "seconds": "a limit on the time of the audit",
    "plan": "what an audit would cost and find",
}


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why two features cannot go together.

    Attributes
    ----------
    condition : str
        What would no longer hold, in a few words: of validity, or a fact.
    sentence : str
        The same for people, with the way out.
    """

    condition: str
    sentence: str


class CannotCompose(UsageError):
    """Two features of an audit that cannot go together; `features` names them and `reason` says why."""

    def __init__(self, given: str, value: Any, other: str, reason: Reason) -> None:
        self.features, self.value, self.reason = (given, other), value, reason
        super().__init__(f"{given} must not be given with {_WORDS.get(other, other)}, got {value!r:.100}. {self.says}")

    @property
    def says(self) -> str:
        """The reason as a sentence."""
        return self.reason.sentence

    def __reduce__(self) -> tuple[Any, ...]:
        return (CannotCompose, (self.features[0], self.value, self.features[1], self.reason))


_WORDS = {"store": "a store", "search": "a search", "universe": "a universe", "program": "a program"}
_ONE_LOOK = Reason(
    "an exact test is looked at once",
    "An exact test is looked at once, after a number of draws fixed beforehand; a store looks every night. "
    "Use mode='sequential'.",
)
_TABLE = Reason(
    "an exact test is looked at once",
    "A universe has one exact test for each of its pairs, which is looked at once; a store looks every night. "
    "Audit fewer pairs with it.",
)
_PROCESSES = Reason("one set of limits a process", "A program runs in processes of its own, with their own time limit.")
_NIGHTS = Reason(
    "no draw is counted twice",
    "A store saves every round already: a chunk that a checkpoint gave back would be counted twice. "
    "The next audit with the store goes on where this one stops.",
)
_OTHER_PAIRS = Reason(
    "one path: what was looked at is not drawn again",
    "A search that is made again on other random numbers chooses other pairs, and beginning again with these is a "
    "second audit. Give the pairs that search_pairs chooses.",
)
_MEMBERS = Reason(
    "evidence multiplies for one pair only",
    "A store goes on with each pair by itself: a pool of other pairs the next night would be another test.",
)
_ONE_TABLE = Reason("one test a pair", "All pairs of a universe share the draws of their inputs already.")
_UNSAID = Reason(
    "the mechanism says that its law moves with its input",
    "Pairs are pooled where the mechanism says that it is a translation family, and a program says nothing of its law.",
)
_ORDER = Reason(
    "labels are fair given when a call is made",
    "Where a call may not come back, all calls of a pair are made in one random order and pairs share no draws; the "
    "table of a universe is drawn input by input. Let the subject draw batches, or audit fewer pairs.",
)
_EXCLUSIVE = Reason("one mode an audit", "An audit has one mode.")
_PLANNED = Reason(
    "a plan runs no audit",
    "A plan takes a few calls and counts nothing: it speaks of one process and of pairs that are known.",
)

MODE_NAMES = ("sequential", "adaptive", "fixed")
REFUSED: Mapping[frozenset[str], Reason] = {
    **{frozenset(two): _EXCLUSIVE for two in combinations(MODE_NAMES, 2)},
    frozenset({"isolation", "program"}): _PROCESSES,
    frozenset({"store", "checkpoint"}): _NIGHTS,
    frozenset({"store", "fixed"}): _ONE_LOOK,
    frozenset({"store", "universe"}): _TABLE,
    frozenset({"store", "pool"}): _MEMBERS,
    frozenset({"universe", "pool"}): _ONE_TABLE,
    frozenset({"program", "pool"}): _UNSAID,
    **{frozenset({"plan", other}): _PLANNED for other in ("checkpoint", "store", "search", "grey_box", "jobs", "dask")},
    frozenset({"plan", "pool"}): _PLANNED,
}
# Of a subject with randomness of its own; of an isolated subject that is called once a draw.
SELF_SEEDED: Mapping[frozenset[str], Reason] = {frozenset({"search", "checkpoint"}): _OTHER_PAIRS}
CALLED_ONCE: Mapping[frozenset[str], Reason] = {frozenset({"universe", "isolation"}): _ORDER}


def check_composition(used: Mapping[str, Any], *, replayable: bool = True, called_once: bool = False) -> None:
    """Raise `CannotCompose` for the first two features that cannot go together.

    Parameters
    ----------
    used : mapping of str to object
        The features that were asked for, by name, with what was given for each.
    replayable : bool
        Whether the subject takes its randomness from what it is given.
    called_once : bool
        Whether it is called once a draw.

    Examples
    --------
    >>> check_composition({"sequential": "sequential", "checkpoint": "night.checkpoint"})
    >>> check_composition({"store": "evidence.db", "fixed": "fixed"})
    Traceback (most recent call last):
        ...
    dpaudit.audits.composition.CannotCompose: mode must not be given with a store, got 'fixed'. An exact test is ...
    """
    refused = {**REFUSED, **({} if replayable else SELF_SEEDED), **(CALLED_ONCE if called_once else {})}
    for two, reason in refused.items():
        if two <= used.keys():
            given, other = sorted(two, key=_TOLD_FIRST.index)
            raise CannotCompose("mode" if given in MODE_NAMES else given, used[given], other, reason)


# Of two features the one that comes first here is the one to leave out.
_TOLD_FIRST = (*MODE_NAMES, "checkpoint", "pool", "plan", "grey_box", "seconds", "jobs", "dask", "isolation", "search",
               "store", "universe", "program")  # fmt: skip


def table() -> list[tuple[str, str, str]]:
    """Every two features, and "works" or what would no longer hold, in the order of `FEATURES`."""
    rows = []
    for first, second in combinations(FEATURES, 2):
        two = frozenset({first, second})
        reason = REFUSED.get(two)
        text = "works" if reason is None else f"no: {reason.condition}"
        for some, where in ((SELF_SEEDED, "a subject with randomness of its own"), (CALLED_ONCE, "one call a draw")):
            if two in some:
                text = f"works; not for {where}: {some[two].condition}"
        rows.append((first, second, text))
    return rows


def page() -> str:
    """The table for the manual, as Markdown."""
    lines = [
        "# What composes",
        "",
        "Every two features of an audit work together, or are refused for the reason that stands here: what would no",
        "longer hold. `tests/audits/test_what_composes.py` walks every row.",
        "",
        "Up to 2,000 pairs have games of their own where the other feature needs them. So only above 2,000 pairs is a",
        "universe refused with a store, with a pool, or with isolation of one call a draw.",
        "",
        "This holds for every claim: a universe tests the lines that the claim promises, or implies. A claim of your",
        "own may have another budget for each pair. Only pairs that are promised different parameters share no table:",
        "they have games instead, up to 2,000 pairs.",
        "",
        "`python -m dpaudit.audits.composition` prints this page.",
        "",
        "| feature | what it is |",
        "| --- | --- |",
        *(f"| {name} | {words} |" for name, words in FEATURES.items()),
        "",
        "| first | second | together |",
        "| --- | --- | --- |",
        *(f"| {first} | {second} | {said} |" for first, second, said in table()),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page(), end="")
