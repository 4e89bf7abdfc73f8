"""The page of the museum: per bug what was found, with the runs that it took, and what was not found and why."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

from dpaudit.reports.document import Document, Paragraph, Section, Table
from dpaudit.results.model import Verdict

PARTS = {"told": "known pair", "searched": "searched pair"}
COLUMNS = ("bug", "source", "claim", "known pair", "runs", "searched pair", "runs", "mended", "witness")


def page(records: Sequence[dict[str, Any]]) -> Document:
    """The document of these records, sorted by kind and name."""
    kinds = list(dict.fromkeys(record["kind"] for record in records))
    sections = [Section("figures", "Figures", (Table("", ("what", "figure"), tuple(figures(records))),))]
    for kind in kinds:
        rows = tuple(_row(record) for record in records if record["kind"] == kind)
        sections.append(Section(kind.replace(" ", "-"), kind.capitalize(), (Table("", COLUMNS, rows),)))
    missed = [record for record in records if not _found(record, "told") or not _found(record, "searched")]
    if missed:
        reasons = tuple((record["name"], _missed(record), record["out_of_reach"] or "not known") for record in missed)
        sections.append(Section("missed", "Not found", (Table("", ("bug", "not found with", "why"), reasons),)))
    released = [(record, release) for record in records for release in record.get("releases", ())]
    if released:
        rows = tuple(_release(record, release) for record, release in released)
        columns = ("bug", "library", "called", "state", "found", "runs", "witness", "replay")
        sections.append(Section("releases", "Real releases", (Table("", columns, rows),)))
    texts = tuple(Paragraph(f"{record['name']} ({record['source']}): {record['wrong']}", "note") for record in records)
    sections.append(Section("wrong", "What is wrong", texts))
    verdict: Verdict = "violated" if any(_found(record, "told") for record in records) else "not_refuted"
    return Document(
        kicker="Corpus of bugs in differential-privacy code",
        headline=f"{len(records)} bugs, {sum(_found(record, 'told') for record in records)} found with a known pair",
        verdict=verdict,
        sections=tuple(sections),
        footer="Made by `dpaudit museum`. Runs count single outputs of a mechanism, those of searches included.",
    )


def figures(records: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """The figures of a whole run, in words and numbers."""
    rows = [("bugs", str(len(records)))]
    sources = {re.split(r"#| \(|,", record["source"])[0] for record in records}  # repositories, papers and texts
    rows.append(("sources", str(len(sources))))
    for part, name in PARTS.items():
        seen = [record[part] for record in records if part in record]
        found = [entry for entry in seen if entry["found"]]
        if seen:
            rows.append((f"found, {name}", f"{len(found)} of {len(seen)} ({len(found) / len(seen):.1%})"))
        if found:
            rows.append((f"median runs, {name}", f"{_median(found, 'runs'):,.0f}"))
            rows.append((f"median seconds, {name}", f"{_median(found, 'seconds'):.1f}"))
    looked = [release for record in records for release in record.get("releases", ()) if release["found"] is not None]
    if looked:
        packages, versions = ({tuple(map(one.get, names)) for one in looked} for names in
                              (("package",), ("package", "installed")))  # fmt: skip
        rows.append(("real releases audited", f"{len(versions)} of {len(packages)} libraries"))
        buggy = {release["package"] for release in looked if release["found"]}
        rows.append(("the bug found in", f"{len(buggy)} libraries"))
    verdicts = [verdict for record in records for verdict in record.get("mended", ())]
    if verdicts:
        rows.append(("mended versions called violated", f"{verdicts.count('violated')} of {len(verdicts)} audits"))
    shrunk = [record["searched"] for record in records if (record.get("searched") or {}).get("small_rows") is not None]
    if shrunk:
        before, after, runs, seconds = (
            _median(shrunk, name) for name in ("rows", "small_rows", "shrinking", "shrinking_seconds")
        )
        rows.append(("median rows of a pair, found and shrunk", f"{before:g} and {after:g} ({len(shrunk)} pairs)"))
        rows.append(("median runs and seconds of shrinking", f"{runs:,.0f} and {seconds:.1f}"))
    return rows


def _median(seen: Sequence[dict[str, Any]], name: str) -> float:
    return float(statistics.median(one[name] for one in seen))


def _found(record: dict[str, Any], part: str) -> bool:
    return bool(record[part]["found"]) if part in record else part == "searched"


def _missed(record: dict[str, Any]) -> str:
    return ", ".join(name for part, name in PARTS.items() if not _found(record, part))


def _row(record: dict[str, Any]) -> tuple[str, ...]:
    told, searched = record.get("told"), record.get("searched")
    mended = record.get("mended", ())
    best = searched if searched and searched["found"] else told
    return (
        record["name"],
        record["source"],
        record["claim"],
        *_cells(told),
        *_cells(searched),
        ", ".join(f"{list(mended).count(verdict)} {verdict.replace('_', ' ')}" for verdict in dict.fromkeys(mended)),
        best["witness"] if best else "",
    )


def _cells(seen: dict[str, Any] | None) -> tuple[str, str]:
    if seen is None:
        return "not run", ""
    return ("found" if seen["found"] else seen["verdict"].replace("_", " ")), f"{seen['runs']:,}"


def _release(record: dict[str, Any], release: dict[str, Any]) -> tuple[str, ...]:
    verdict = release.get("verdict", "").replace("_", " ")
    state = "installed" if release["installed"] else release.get("reason", "")
    found = {True: "found", False: verdict, None: "skipped"}[release["found"]]
    if release.get("mended") and release["found"] is False:
        found = f"mended: {found}"
    replay = f"dpaudit museum {record['name']} --only releases --libraries FOLDER --seed {record['seed']}"
    library = f"{release['package']} {release['installed'] or release['versions']}"
    runs, witness = f"{release.get('runs', 0):,}", release.get("witness", "")
    return record["name"], library, release.get("called", ""), state, found, runs, witness, replay
