"""Command `dpaudit museum`: run exhibits, save each record as it comes, and print and write the page.

`museum.json` (schema `dpaudit.museum/1`) holds a record for each exhibit, with its seed. A run replaces what it runs
and keeps the rest, so that a long one can be taken in parts. `museum.md` and `museum.html` are made from it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpaudit.environment import __version__
from dpaudit.exhibits.exhibit import Exhibit
from dpaudit.exhibits.page import page
from dpaudit.exhibits.running import PARTS, run
from dpaudit.reports import html, markdown
from dpaudit.results.model import to_json
from dpaudit.results.saving import json_text, write_whole

SCHEMA = "dpaudit.museum/1"


def run_museum(
    exhibits: Sequence[Exhibit],
    folder: Path,
    *,
    all_exhibits: int,
    parts: Sequence[str] = PARTS,
    seed: int = 0,
    seeds: int = 1,
    resume: bool = False,
    libraries: Path | None = None,
    tell: Callable[[str], None] = lambda text: None,
) -> list[dict[str, Any]]:
    """Run exhibits one by one and save the records of all that were ever run here; the records of these, in order.

    Mended versions share their error rate over `all_exhibits` of the museum. `resume` leaves out parts that are saved
    already for this seed. `tell` takes a line after each exhibit. For the others see `dpaudit.exhibits.running.run`.
    """
    for exhibit in exhibits:
        known = {record["name"]: record for record in saved(folder)}  # read again: another process may have written
        old = known.get(exhibit.name, {})
        left = [part for part in parts if not (resume and part in old and old.get("seed") == seed)]
        if left:
            record = run(exhibit, left, exhibits=all_exhibits, seed=seed, seeds=seeds, libraries=libraries)
            known = {record["name"]: record for record in saved(folder)}
            old = known.get(exhibit.name, {})
            kept = old if old.get("seed") == seed else {}
            known[exhibit.name] = {**kept, **to_json(record)}
            write_records(list(known.values()), folder)
            tell(line(known[exhibit.name]))
    known = {record["name"]: record for record in saved(folder)}
    return [known[exhibit.name] for exhibit in exhibits]


def saved(folder: Path) -> list[dict[str, Any]]:
    """The records of `museum.json`; none where there is none."""
    path = folder / "museum.json"
    records: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["exhibits"] if path.exists() else []
    return records


def write_records(records: Sequence[dict[str, Any]], folder: Path) -> list[Path]:
    """Write the records and their pages, complete or not at all; the files."""
    ordered = sorted(records, key=lambda record: (record["kind"], record["name"]))
    content = {"schema": SCHEMA, "dpaudit": __version__, "exhibits": ordered}
    document = page(ordered)
    texts = {
        "museum.json": json_text(content),
        "museum.md": markdown.render(document),
        "museum.html": html.render(document),
    }
    for name, text in texts.items():
        write_whole(folder / name, text)
    return [folder / name for name in texts]


def line(record: dict[str, Any]) -> str:
    """One exhibit in words."""
    said = []
    for part in ("told", "searched"):
        if part in record:
            seen = record[part]
            said.append(f"{part}: {'found' if seen['found'] else seen['verdict']} in {seen['runs']:,} runs")
    if "mended" in record:
        broken = sum(verdict == "violated" for verdict in record["mended"])
        said.append(f"mended: {broken} of {len(record['mended'])} audits violated")
    for release in record.get("releases", ()):
        found = {True: "found", False: release.get("verdict", ""), None: release.get("reason", "")}[release["found"]]
        said.append(f"{release['package']} {release['versions']}: {found}")
    return f"{record['name']}: " + "; ".join(said)
