"""Command `dpaudit claims`: bring ledgers and tests together, print the table, write claims.json and claims.html."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dpaudit.environment import __version__
from dpaudit.errors import UsageError
from dpaudit.ledgers.entries import SEVERITIES, VERDICTS, Entry, Ledger, load_ledgers
from dpaudit.ledgers.marks import Mark, collect_marks
from dpaudit.results.saving import SHARED, check_folder, json_text, write_whole

TESTS = "tests"  # the folder whose marks count, where none is named
FILES = ("claims.json", "claims.html")
OPTIONAL = ("severity", "corrected", "unchecked", "scope", "extraction")  # texts that some entries have
STYLES = {"verified": "", "verified in part": "cyan", "refuted as printed": "bold red", "not checkable": "yellow"}
SLUGS = {"verified": "verified", "verified in part": "part", "refuted as printed": "refuted", "not checkable": "not"}


def claims(
    paper: str | None, verdict: str | None, tests: str | None, out: str | None, only_check: bool
) -> tuple[Group, list[Path], bool]:
    """The table of claims, the files that were written, and whether every id has a test and every mark names an id.

    Entries of one `paper`, or with one `verdict`, are shown alone; files in the folder `out` have all of them. `tests`
    is the folder of the tests whose marks count: by default the folder "tests", if a test there marks a claim; else the
    table says nothing of tests, and no claim is called untested. `only_check` writes nothing, and needs such a folder.

    `UsageError` if a name is not known, or a ledger, a test or a place cannot be read or written. `OutputError` if a
    file cannot be written to its end.
    """
    ledgers = load_ledgers()
    names = [ledger.paper for ledger in ledgers]
    if paper is not None and paper not in names:
        raise UsageError(f"paper must be one of {', '.join(names)}, got {paper!r}.")
    marks = collect_marks(tests or TESTS) if tests is not None or only_check else _marks_here()
    folder = tests or TESTS
    written: list[Path] = []
    if out is not None and not only_check:
        check_folder("out", Path(out))
        content = (ledger_json(ledgers, marks, folder), html_text(ledgers, marks, os.path.relpath(folder, out)))
        written = [Path(out) / name for name in FILES]
        for path, text in zip(written, content, strict=True):
            write_whole(path, text, SHARED)
    shown = [ledger for ledger in ledgers if paper in (None, ledger.paper)]
    problems = None if marks is None else coverage_problems(ledgers, marks)
    return Group(*_tables(shown, marks, verdict), *_lines(shown, problems)), written, not problems


def _marks_here() -> list[Mark] | None:
    """The marks of the folder "tests"; None where it is absent, cannot be read as tests, or marks no claim."""
    try:
        return collect_marks(TESTS) or None
    except UsageError:
        return None


def coverage_problems(ledgers: Sequence[Ledger], marks: Sequence[Mark]) -> list[str]:
    """One sentence for every id of a written ledger without a test, and for every mark that names no id."""
    marked = {mark.id for mark in marks}
    known = {name for ledger in ledgers for name in ledger.ids}
    bare = [entry.id for ledger in ledgers for entry in ledger.entries if entry.id not in marked]
    return [f"{name} has no test." for name in bare] + [
        f"{mark.node} (line {mark.line}) names {mark.id}, which is no claim of a paper."
        for mark in marks
        if mark.id not in known
    ]


def ledger_json(ledgers: Sequence[Ledger], marks: Sequence[Mark] | None, tests: str) -> str:
    """claims.json: a list of objects, one an entry, in the order of the papers; tests as pytest takes them."""
    nodes, root = _nodes(marks or ()), Path(tests).as_posix()
    rows = [
        {
            "id": entry.id,
            "paper": ledger.paper,
            "kind": entry.kind,
            "verdict": entry.verdict,
            "evidence": evidence_text(entry),
            "tests": [f"{root}/{mark.node}" for mark in nodes.get(entry.id, [])],
            "counterexample": dict(entry.counterexample) or None,
            "printed": list(entry.printed) or None,
            **{name: getattr(entry, name) or None for name in OPTIONAL},
        }
        for ledger in ledgers
        for entry in ledger.entries
    ]
    return json_text(rows)


def html_text(ledgers: Sequence[Ledger], marks: Sequence[Mark] | None, tests: str) -> str:
    """claims.html: one self-contained page; `tests` is where its links find the tests."""
    nodes = _nodes(marks or ())
    root = quote(Path(tests).as_posix())
    papers = [
        {
            "ledger": ledger,
            "counts": _counts(ledger, "verdict", VERDICTS),
            "severities": _counts(ledger, "severity", SEVERITIES),
            "rows": [
                {
                    "entry": entry,
                    "slug": SLUGS[entry.verdict],
                    "evidence": evidence_text(entry),
                    "counterexample": json.dumps(data, ensure_ascii=False) if (data := entry.counterexample) else "",
                    "tests": [
                        (mark.node, f"{root}/{quote(mark.path)}#L{mark.line}") for mark in nodes.get(entry.id, [])
                    ],
                }
                for entry in ledger.entries
            ],
        }
        for ledger in ledgers
    ]
    return _template().render(papers=papers, verdicts=VERDICTS, version=__version__)


def evidence_text(entry: Entry) -> str:
    """Text on how an entry was checked: what was not, methods, evidence, reading, error rate, reason."""
    parts = [f"Not checked: {entry.unchecked}"] if entry.unchecked else []
    parts.append(f"{', '.join(entry.how)}: {entry.evidence}")
    for name, value in (("Reading", entry.reading), ("Error rate", entry.error_rate), ("Reason", entry.reason)):
        if value:
            parts.append(f"{name}: {value}")
    return " ".join(parts)


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    options: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=loader, autoescape=True, **options).get_template("claims.html.j2")


def _tables(ledgers: Sequence[Ledger], marks: Sequence[Mark] | None, verdict: str | None) -> list[Table | Text]:
    """A table a paper, with the scopes of its theorems below it."""
    nodes = _nodes(marks or ())
    tables: list[Table | Text] = []
    for ledger in ledgers:
        entries = [entry for entry in ledger.entries if verdict in (None, entry.verdict)]
        if not entries:
            continue
        table = Table(title=ledger.paper, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("claim", "kind", "verdict", "how", *([] if marks is None else ["tests"])):
            is_number, is_whole = name == "tests", name == "claim"
            table.add_column(name, justify="right" if is_number else "left", no_wrap=is_whole, overflow="fold")
        for entry in entries:
            count = len({mark.node for mark in nodes.get(entry.id, [])})
            tests = [] if marks is None else [Text(str(count) if count else "none", "" if count else "bold red")]
            table.add_row(
                Text(entry.id),
                Text(entry.kind),
                Text(entry.verdict + (f" ({entry.severity})" if entry.severity else ""), STYLES[entry.verdict]),
                Text(", ".join(entry.how)),
                *tests,
            )
        tables.append(table)
        scopes = [entry for entry in entries if entry.scope]
        if scopes:
            tables.append(Text("What is stated, and what was checked", "bold"))
            tables += [Text.assemble(f"  {entry.id}: ", entry.scope) for entry in scopes]
            tables.append(Text(""))
    return tables


def _lines(ledgers: Sequence[Ledger], problems: Sequence[str] | None) -> list[Text]:
    lines = []
    for ledger in ledgers:
        if not ledger.is_written:
            text = f"{ledger.paper}: {len(ledger.ids)} claims, no ledger yet: its mechanisms do not exist."
        else:
            counts, grave = (", ".join(f"{count} {name}" for name, count in _counts(ledger, key, names).items())
                             for key, names in (("verdict", VERDICTS), ("severity", SEVERITIES)))  # fmt: skip
            text = f"{ledger.paper}: {len(ledger.ids)} claims: {counts}."
            text += f" Of the refuted ones: {grave}." if grave else ""
        lines.append(Text(text))
    if problems is None:
        lines.append(Text("No tests here mark these claims; name a folder that does with --tests."))
    elif problems:
        lines.append(Text(f"{len(problems)} gaps between ledgers and tests:", "bold red"))
        lines += [Text(f"  {problem}") for problem in problems]
    else:
        lines.append(Text("Every claim of a ledger has a test, and every mark of a test names a claim."))
    return lines


def _counts(ledger: Ledger, key: str, names: Sequence[str]) -> dict[str, int]:
    found = Counter(getattr(entry, key) for entry in ledger.entries)
    return {name: found[name] for name in names if found[name]}


def _nodes(marks: Sequence[Mark]) -> dict[str, list[Mark]]:
    """The marks of every id, one a test."""
    nodes: dict[str, dict[str, Mark]] = {}
    for mark in marks:
        nodes.setdefault(mark.id, {}).setdefault(mark.node, mark)
    return {name: list(found.values()) for name, found in nodes.items()}
