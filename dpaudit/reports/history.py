"""A history of releases: for each subject its bound, its power and its verdict over time, and since when one stands.

A folder holds a release in each of its folders, in the natural order of their names (1.9 before 1.10), or
of their dates, if each has a `release.toml` with one: keys `version`, `commit` and `date`, all optional. A store holds
a release in each session; its bounds are of all sessions up to there. A subject keeps its identity over releases by the
target that it was audited by, else by its name, whatever its code: the fingerprint tells whether that changed.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaudit.environment import __version__
from dpaudit.errors import UsageError
from dpaudit.files import read_toml
from dpaudit.reports.deployment import StrictTable
from dpaudit.reports.document import Block, Document, Paragraph, Section, Table
from dpaudit.reports.dossier import Dossier, Line, Source, subjects_of
from dpaudit.reports.drawing import Figure
from dpaudit.reports.figures import INTERVALS, Bar, not_drawn, picture
from dpaudit.reports.first_page import COLUMNS
from dpaudit.reports.redaction import redacted
from dpaudit.reports.rows import line_of
from dpaudit.reports.wording import clean, compared, date_text, plural, status_word, upper_text
from dpaudit.reports.words import joined, said
from dpaudit.results.model import VERDICTS, Verdict
from dpaudit.results.verdicts import gravest

RELEASE_FILE = "release.toml"
KEYS = ("version", "commit", "date")
RELEASES = 500  # of a history


@dataclasses.dataclass(frozen=True)
class Release:
    """The results of one release: its name, its commit and date (ISO 8601), or empty, and what was measured."""

    name: str
    commit: str
    date: str
    dossier: Dossier

    @property
    def label(self) -> str:
        """The name with the commit and the date that are known."""
        return self._dated(clean(self.name, 40))

    @property
    def quoted(self) -> str:
        """The label within a sentence."""
        return self._dated(self.name if self.name.startswith("session ") else f"release “{clean(self.name, 40)}”")

    def _dated(self, name: str) -> str:
        facts = ", ".join(fact for fact in (self.commit[:12], self.date) if fact)
        return f"{name} ({clean(facts, 40)})" if facts else name


@dataclasses.dataclass(frozen=True)
class Point:
    """One subject and kind of promise in one release; `mark` is its fingerprint."""

    release: Release
    line: Line
    mark: str


def read_history(path: str | os.PathLike[str], redact: bool = False) -> tuple[Release, ...]:
    """The releases of a folder or a store, the earliest first; redacted, if that is asked for, under one key.

    `UsageError` if there is no such folder or store, it holds no release, or one of them cannot be read.
    """
    place = Path(path)
    if place.is_dir():
        releases = _of_folder(place)
    elif place.is_file():
        releases = _of_store(place)
    else:
        raise UsageError(f"history must be a folder of releases or a store, got {str(place)!r}.")
    if not releases:
        raise UsageError(f"history must hold a release, got none at {str(place)!r}.")
    if len(releases) > RELEASES:
        raise UsageError(f"history must hold at most {RELEASES} releases, got {len(releases):,} at {str(place)!r}.")
    if redact:
        key = os.urandom(32)  # one for all, so that names can be compared; forgotten when this returns
        releases = [dataclasses.replace(one, dossier=redacted(one.dossier, key)) for one in releases]
    return tuple(releases)


def _of_folder(place: Path) -> list[Release]:
    from dpaudit.reports.reading import read_any

    releases = []
    for folder in sorted((one for one in place.iterdir() if one.is_dir()), key=lambda one: _natural(one.name)):
        facts = _facts(folder / RELEASE_FILE)
        sources: list[Source] = []
        for file in sorted(folder.rglob("*.json")):
            if file.name in ("audit.json", "check.json", "utility.json") or file.parent == folder:
                sources += read_any(str(file))[0]
        if sources:
            name = facts.get("version") or folder.name
            releases.append(Release(name, facts.get("commit", ""), facts.get("date", ""), Dossier(tuple(sources))))
    if all(release.date for release in releases):
        releases.sort(key=lambda release: release.date)  # stable: of one day in the order of the names
    return releases


def _natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers within names as numbers."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"\d+|\D+", name)]


def _facts(file: Path) -> dict[str, str]:
    """Say what a release says of itself; nothing where there is no file."""
    if not file.is_file():
        return {}
    stated = StrictTable(read_toml("release", file), KEYS, f" at {str(file)!r}")
    return {key: stated.date(key) if key == "date" else stated.text(key, is_needed=True) for key in stated.values}


def _of_store(place: Path) -> list[Release]:
    """A release for each session of each subject, with the bounds of all sessions up to there."""
    from dpaudit.reports.evidence import audit_of_store, store_document
    from dpaudit.running.store import Store

    with Store.at(place) as store:
        subjects = store_document(store)["subjects"]
    found: dict[tuple[str, str], list[Source]] = {}
    for subject in subjects:
        sessions = [session for session in subject["nights"] if not session["forgotten"]]
        for count, session in enumerate(sessions, 1):
            done = {(one["seed"], one["number"]) for one in sessions[:count]}
            pairs = [pair for pair in (_until(pair, done) for pair in subject["pairs"]) if pair is not None]
            result = audit_of_store({**subject, "nights": sessions[:count], "pairs": pairs})
            found.setdefault((session["started"], session["version"]), []).append(Source(str(place), "", result))
    return [
        Release(f"session {place}, {started[:16].replace('T', ' ')}", version, "", Dossier(tuple(sources)))
        for place, ((started, version), sources) in enumerate(sorted(found.items()), 1)
    ]


def _until(pair: dict[str, Any], done: set[tuple[int, int]]) -> dict[str, Any] | None:
    """A pair as these sessions left it; None where none of them asked it."""
    looks = [look for look in pair["looks"] if (look["seed"], look["number"]) in done]
    if not looks:
        return None
    last = looks[-1]
    lower, budget = last["parameter_lower"], pair["parameter_budget"]
    is_violated = lower == "inf" or (lower not in (None, "-inf") and budget != "inf" and lower > budget)
    facts = {"parameter_lower": lower, "log_wealth": last["log_wealth"], "draws": last["draws"], "looks": looks}
    return {**pair, **facts, "violated": is_violated}


# --- The course of each subject ---------------------------------------------------------------------------------------


def courses(releases: Sequence[Release]) -> dict[tuple[str, str], list[Point]]:
    """The points of each subject and kind of promise, in the order of the releases; of one release the gravest."""
    found: dict[tuple[str, str], list[Point]] = {}
    for release in releases:
        here: dict[tuple[str, str], Point] = {}
        for source in release.dossier.sources:
            subject = subjects_of(source.result)[0] if subjects_of(source.result) else {}
            line = line_of(source.result)
            key = (clean(str(subject.get("target") or line.subject), 120), line.kind)
            point = Point(release, line, clean(str(subject.get("fingerprint") or ""), 40))
            known = here.get(key)
            if known is None or _gravity(line) < _gravity(known.line):
                here[key] = point
        for key, point in here.items():
            found.setdefault(key, []).append(point)
    return found


def _gravity(line: Line) -> tuple[int, float]:
    return VERDICTS.index(line.verdict), -(line.low or 0.0)


def standing(points_of: Sequence[Point]) -> str:
    """Since when the present verdict of a subject stands, and what was violated and mended before."""
    last = points_of[-1]
    first = last
    for point in reversed(points_of):
        if point.line.verdict != last.line.verdict:
            break
        first = point
    count = points_of.index(last) - points_of.index(first) + 1
    since = {"verdict": status_word(last.line.verdict).capitalize(), "first": first.release.quoted}
    lasting = f", {plural(count, 'release')}" if count > 1 else ""
    course = "; ".join(
        said(f"history.{later.line.verdict}", later=later.release.quoted) + _missed(earlier.line, later.line)
        for earlier, later in itertools.pairwise(points_of)
        if "violated" in (earlier.line.verdict, later.line.verdict) and earlier.line.verdict != later.line.verdict
    )
    return said(
        "history.since", **since, lasting=lasting, course=f" {course[0].upper()}{course[1:]}." if course else ""
    )


def _missed(earlier: Line, later: Line) -> str:
    """Say that a test which found nothing could have missed the loss that an earlier one proved; else nothing."""
    if later.verdict == "violated" or later.blind is None or earlier.low is None or later.blind <= earlier.low:
        return ""
    return said("history.missed", blind=upper_text(later.blind, 3), before=compared(earlier.low, 1.0)[0])


def document(releases: Sequence[Release], title: str) -> Document:
    """The history: a summary, then a chapter for each subject with its figure and its releases."""
    found = courses(releases)
    verdicts = [course[-1].line.verdict for course in found.values()]
    verdict: Verdict = gravest(verdicts)
    count = verdicts.count("violated")
    values = {"broken": plural(count, "promise"), "all": len(verdicts), "it": "it" if count == 1 else "them"}
    values |= {"releases": plural(len(releases), "release"), "promises": plural(len(found), "promise")}
    unsettled = len(verdicts) - count - verdicts.count("not_refuted")
    leaking = sum(course[-1].line.leaks for course in found.values())
    open_ones = {"not settled": unsettled, "broken in low bits": leaking}
    values["open"] = "".join(f"; {number:,} {how}" for how, number in open_ones.items() if number)
    headline = said("history.broken" if count else "history.kept", **values)
    ranked = sorted(found.items(), key=lambda entry: _gravity(entry[1][-1].line))
    rows = [
        (
            f"{key[0]}: {key[1]}",
            str(len(course)),
            last.words,
            compared(last.low, 1.0)[0],
            course[-1].release.label,
            standing(course),
        )
        for key, course in ranked
        for last in (course[-1].line,)
    ]
    marks = [course[-1].line.verdict for _, course in ranked]
    columns = ("subject", "releases", "verdict", "proven over promised", "last measured in", "since when")
    table = Table("Every subject, as it was last measured", columns, rows, marks=marks)
    answers = (
        said("history.span", first=releases[0].label, last=releases[-1].label, **values),
        said("history.chance"),
    )
    chapters = (_chapter(f"h{place}", key, course) for place, (key, course) in enumerate(ranked, 1))
    return Document(
        kicker=f"History: {clean(title, 120)}. Written {date_text()}.",
        headline=headline,
        verdict=verdict,
        sections=(Section("subjects", "Subjects", (table,)), *chapters),
        footer=f"Written by dpaudit {__version__}.",
        first=tuple(map(Paragraph, answers)),
    )


def _chapter(prefix: str, key: tuple[str, str], course: Sequence[Point]) -> Section:
    columns, marks = ("release", *COLUMNS[1:], "code"), tuple(point.line.mark for point in course)
    rows = tuple((point.release.label, *point.line.cells, point.mark[:12]) for point in course)
    blocks: list[Block | None] = [Paragraph(standing(course), "lead"), _figure(prefix, course)]
    blocks.append(Table("Releases", columns, rows, 0, marks, kind="verdicts"))
    shown = tuple(block for block in blocks if block is not None)
    return Section(prefix, f"{key[0]}: {key[1]}", shown, mark=course[-1].line.verdict)


def _figure(prefix: str, course: Sequence[Point]) -> Figure | None:
    """Proven loss over promise by release, with what would have been noticed; None where nothing was measured."""
    shown = (
        (f"{clean(one.release.name, 30)}: {status_word(one.line.verdict)}", one.line) for one in course[-INTERVALS:]
    )
    bars = [Bar(name, line.verdict, line.low, line.high, line.blind, line.tried) for name, line in shown]
    title = "Proven loss over the promise, release by release"
    if (drawn := picture(bars, "release")) is None:
        return None
    note = joined(drawn.note, not_drawn(len(course) - len(bars), "release"))
    return dataclasses.replace(drawn, id=f"{prefix}-history", title=title, note=note)
