"""Known violations that `[tool.dpaudit]` lists and that no collected test has: told when everything was collected.

A test that is there judges its own entry. One that was renamed, deleted, or has no audit any more cannot, and its entry
would stay for ever. An entry is judged by what was collected, whether or not the session then stopped early (`-x`):

* not where tests were deselected (`-k`, `-m`, `--deselect`, `--lf`), other than by `--dp-only`, nor where files were
  ignored or nothing was run;
* not where its file lies outside of what the command line names, or could not be collected.

With pytest-xdist every worker collects everything: each says what it found, and the main process judges.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpaudit.pytest_plugin.marks import LIST, is_of, listed_violation


@dataclasses.dataclass(eq=False)
class Collected:
    """Collection of one process; a plugin of pytest itself, for the hooks that say so."""

    is_selected: bool = False  # whether tests were left out that might audit
    unread: set[str] = dataclasses.field(default_factory=set)  # ids of what broke or was skipped when it was collected
    missing: list[int] = dataclasses.field(default_factory=list)  # positions of entries of no test which can audit

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Note that the session is not of all tests."""
        self.is_selected |= bool(items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be read."""
        if not report.passed:
            self.unread.add(report.nodeid)

    def look(self, listed: Iterable[Mapping[str, Any]], node_ids: Iterable[str]) -> None:
        """Note which entries belong to none of these tests."""
        known = set(node_ids)
        self.missing = [k for k, entry in enumerate(listed) if not any(is_of(entry, one) for one in known)]

    def to_plain(self) -> dict[str, Any]:
        """As a worker of xdist sends it."""
        return {"is_selected": self.is_selected, "unread": sorted(self.unread), "missing": self.missing}


def judged(
    config: pytest.Config, listed: tuple[Mapping[str, Any], ...], found: Iterable[Mapping[str, Any]]
) -> list[tuple[str, bool]]:
    """Summary line of each unmatched entry, and whether it fails the session: from its date on.

    `found` are the `Collected.to_plain` of every process that collected.
    """
    processes = list(found)
    option = config.option
    chosen = any(getattr(option, name, None) for name in ("lf", "ignore", "ignore_glob", "collectonly"))
    if not processes or chosen or any(one["is_selected"] for one in processes):
        return []
    unread = {node_id for one in processes for node_id in one["unread"]}
    lines = []
    for position in sorted(set.intersection(*(set(one["missing"]) for one in processes))):
        entry = listed[position]
        test = str(entry["test"])
        if not _is_below(config, test) or any(test.startswith(node_id) for node_id in unread):
            continue
        known = listed_violation(entry)  # one that makes no sense has stopped the session
        expired = f" and expired on {known.expires.isoformat()}" if known.is_expired else ""
        text = f"{test!r} ({known.reason}) belongs to no test that audits{expired}: correct or remove it in {LIST}"
        lines.append((text, known.is_expired))
    return lines


def _is_below(config: pytest.Config, test: str) -> bool:
    """Tell whether the session was to collect the file of a node id."""
    if config.args_source is config.ArgsSource.TESTPATHS:
        return True
    file = config.rootpath / test.partition("::")[0]
    for argument in config.args:
        place = Path(config.invocation_params.dir / argument)
        if "::" not in argument and (place == file or place in file.parents):
            return True
    return False
