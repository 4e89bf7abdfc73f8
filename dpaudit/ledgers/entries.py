"""The ledger of a paper: its claims as entries of a TOML file, read and checked.

A file has the keys `paper`, `title` and `source`, `year`, `venue` and `arxiv` if known, and a list `claim` of tables
with the keys of `Entry`. Which ids a paper has is known from elsewhere: no claim can be forgotten with its entry.

Verdicts
--------
* `verified`: the statement was checked as it is printed, under the reading that the entry names, and no counterexample
  was found by the search that its evidence describes. An exact check covers the instances that it enumerates or draws,
  not all of them: for a theorem, a lemma, a proposition or a corollary `scope` sets both side by side.
* `verified in part`: as before for a part of the statement; `unchecked` says which part no test touches.
* `refuted as printed`: there is a counterexample, kept as data; `corrected` has what holds instead, where something
  does, and the same tests check it.
  Its `severity`: "slip" (a sign, a bar, an end: the neighbouring formula is meant, and holds), "missing condition" (the
  print leaves it out), "degenerate case" (only a smallest one fails) or "substance" (nothing of the kind repairs it).
* `not checkable`: no run could decide any part of it, for the `reason` that is given.

docs/verdicts-of-papers.md has the rule by which the four are told apart.

Nothing here imports the auditor: packages of mechanisms read their ledgers with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.extensions import entry_points, load
from dpaudit.files import read_toml

GROUP = "dpaudit.ledger"
VERDICTS = ("verified", "verified in part", "refuted as printed", "not checkable")
SEVERITIES = ("substance", "missing condition", "slip", "degenerate case")  # of what is refuted, the gravest first
METHODS = ("exact", "property-based", "statistical", "reading")
GENERAL = ("Thm", "Theorem", "Lemma", "Prop.", "Proposition", "Cor.", "Corollary")  # first words of their locators


@dataclasses.dataclass(frozen=True)
class Entry:
    """One claim of a paper."""

    id: str  # as the tests' marks name it
    kind: str  # definition, law, privacy guarantee, ...
    locator: str  # where the paper has it
    statement: str  # what is printed, in our own words; constants, conditions and directions as printed
    verdict: str  # one of `VERDICTS`
    how: tuple[str, ...]  # among `METHODS`: the ways in which it was checked; "reading" alone where nothing was run
    evidence: str  # what was run, over which instances, and with which result
    printed: tuple[str, ...] = ()  # the formulas in LaTeX, verbatim: signs, indices and constants as in the print
    error_rate: str = ""  # of the statistical part: needed with "statistical" among `how`, empty without it
    reading: str = ""  # which reading of the statement was checked, where it is ambiguous
    # The smallest counterexample found, as data that a test replays; needed where the statement is refuted, else empty.
    counterexample: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    corrected: str = ""  # what holds instead; needed where the statement is refuted
    severity: str = ""  # one of `SEVERITIES`, of a refuted statement; empty elsewhere
    reason: str = ""  # why it cannot be checked; needed for "not checkable", empty elsewhere
    unchecked: str = ""  # what of the statement no test touches; needed for "verified in part", empty elsewhere
    # For what the statement is made, and for what it was checked; needed where a theorem, a lemma, a proposition or a
    # corollary (by `locator`) is verified, wholly or in part.
    scope: str = ""
    extraction: str = ""  # what of the print may be the fault of the extracted text, such as a lost bar or index

    def __post_init__(self) -> None:
        where = f" in the entry {self.id!r}"
        for name in ("id", "kind", "locator", "statement", "evidence"):
            if not getattr(self, name).strip():
                raise UsageError(f"{name} must be given, got an empty text{where}.")
        if self.verdict not in VERDICTS:
            raise UsageError(f"verdict must be one of {', '.join(VERDICTS)}, got {self.verdict!r}{where}.")
        if not self.how or not set(self.how) <= set(METHODS):
            raise UsageError(f"how must name some of {', '.join(METHODS)}, got {list(self.how)!r}{where}.")
        needed = {
            "error_rate": "statistical" in self.how,
            "counterexample": self.verdict == "refuted as printed",
            "reason": self.verdict == "not checkable",
            "unchecked": self.verdict == "verified in part",
        }
        for name, is_needed in needed.items():
            if bool(getattr(self, name)) != is_needed:
                expected = "given" if is_needed else "empty"
                raise UsageError(
                    f"{name} must be {expected} for this verdict and method, got {getattr(self, name)!r}{where}."
                )
        if self.verdict == "refuted as printed" and not self.corrected:
            raise UsageError(f"corrected must say what holds instead, got an empty text{where}.")
        if self.severity not in (("", *SEVERITIES) if self.verdict == "refuted as printed" else ("",)):
            names = ", ".join(SEVERITIES)
            raise UsageError(f"severity must be one of {names}, of what is refuted, got {self.severity!r}{where}.")
        if self.is_general and self.verdict.startswith("verified") and not self.scope:
            raise UsageError(f"scope must set what is stated beside what was checked, got an empty text{where}.")

    @property
    def is_general(self) -> bool:
        """Tell whether it is a theorem, a lemma, a proposition or a corollary of the paper."""
        return self.locator.startswith(GENERAL)


@dataclasses.dataclass(frozen=True)
class Ledger:
    """The claims of one paper: all ids that it has, and the entries that exist."""

    paper: str  # short name, such as "dx-linear-queries"
    title: str  # authors and title
    ids: tuple[str, ...]  # every claim id of the paper, in its order
    entries: tuple[Entry, ...] = ()  # one an id, in this order; none where the paper's mechanisms do not exist yet
    year: int = 0
    venue: str = ""  # where it was published
    arxiv: str = ""  # its id on arXiv

    def __post_init__(self) -> None:
        if len(set(self.ids)) < len(self.ids):
            raise UsageError(f"ids must differ, got {_first_repeated(self.ids)!r} twice in {self.paper!r}.")
        found = [entry.id for entry in self.entries]
        if len(set(found)) < len(found):
            raise UsageError(
                f"entries must have different ids, got {_first_repeated(found)!r} twice in {self.paper!r}."
            )
        unknown = [name for name in found if name not in self.ids]
        if unknown:
            raise UsageError(f"entries must have ids of {self.paper!r}, got {unknown[0]!r}.")
        missing = [name for name in self.ids if name not in found]
        if found and missing:
            raise UsageError(f"entries must cover all ids of {self.paper!r}, got none for {', '.join(missing)}.")

    @property
    def source(self) -> str:
        """Title, and where and when it was published as far as it is known."""
        year = str(self.year) if self.year and str(self.year) not in self.venue else ""
        return ", ".join(filter(None, [self.title, self.venue, year, f"arXiv:{self.arxiv}" if self.arxiv else ""]))

    @property
    def is_written(self) -> bool:
        """Tell whether the paper has entries at all."""
        return bool(self.entries)


def read_ledger(path: str | Path, ids: Sequence[str]) -> Ledger:
    """The ledger of a TOML file, for a paper with these ids.

    `UsageError` if the file cannot be read, has a key that is not known, or an entry is not as `Entry` says.
    """
    place = Path(path)
    content = read_toml("ledger", place)
    unknown = sorted(set(content) - {"paper", "title", "year", "venue", "arxiv", "source", "conventions", "claim"})
    if unknown:
        raise UsageError(f"ledger must have known keys, got {unknown[0]!r} in {str(place)!r}.")
    try:
        entries = tuple(_entry(table) for table in content.get("claim", []))
        year, venue, arxiv = (content.get(key, "") for key in ("year", "venue", "arxiv"))
        title = str(content["title"])
        return Ledger(str(content["paper"]), title, tuple(ids), entries, int(year or 0), str(venue), str(arxiv))
    except KeyError as error:
        raise UsageError(f"ledger must have the key {error.args[0]!r}, got none in {str(place)!r}.") from error


def load_ledgers() -> list[Ledger]:
    """The ledgers of all installed packages, those that are written first, else in the order of the packages.

    `UsageError` if no package states any, two state the same paper or id, or a file is not as `read_ledger` says.
    """
    ledgers: list[Ledger] = []
    for entry in entry_points(GROUP):
        ledgers += load(entry)()
    if not ledgers:
        raise UsageError(
            f"ledgers must be given through the entry-point group {GROUP!r}, got none. Install the package that "
            "states them again (pip install -e .)."
        )
    names = [ledger.paper for ledger in ledgers]
    ids = [name for ledger in ledgers for name in ledger.ids]
    for what, values in (("papers", names), ("ids", ids)):
        if len(set(values)) < len(values):
            raise UsageError(f"{what} of ledgers must differ, got {_first_repeated(values)!r} twice.")
    return sorted(ledgers, key=lambda ledger: not ledger.is_written)


def _entry(table: Mapping[str, Any]) -> Entry:
    name = table.get("id", "without id")
    known = {field.name for field in dataclasses.fields(Entry)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise UsageError(f"an entry must have known keys, got {unknown[0]!r} in the entry {name!r}.")
    required = ("id", "kind", "locator", "statement", "verdict", "how", "evidence")
    missing = [key for key in required if key not in table]
    if missing:
        raise UsageError(f"an entry must have the key {missing[0]!r}, got none in the entry {name!r}.")
    values: dict[str, Any] = {
        key: " ".join(value.split()) if isinstance(value, str) else value for key, value in table.items()
    }
    values.update(how=tuple(table["how"]), printed=tuple(table.get("printed", ())))
    return Entry(**values)


def _first_repeated(values: Sequence[str]) -> str:
    return next(value for n, value in enumerate(values) if value in values[:n])
