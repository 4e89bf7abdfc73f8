"""Known violations that `[tool.dpaudit]` lists and that no collected test has: told when everything was collected.

A test that is there judges its own entry. One that was renamed, deleted, or has no audit any more cannot, and its entry
would stay for ever. An entry is judged by what was collected, whether or not the session then stopped early (`-x`):

* not where tests were deselected (`-k`, `-m`, `--deselect`, `--lf`), other than by `--dp-only`, nor where files were
  ignored or nothing was run;
* not where its file lies outside of what the command line names, or could not be collected.

With pytest-xdist every worker collects everything: each says what it found, and the main process judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from dpaudit.pytest_plugin.marks import LIST, listed_violation


def judged(
    config: pytest.Config, listed: Sequence[Mapping[str, Any]], processes: Sequence[Mapping[str, Any]]
) -> list[tuple[str, bool]]:
    """Summary line of each unmatched entry, and whether it fails the session: from its date on.

    `processes` are those that collected, by what `Plan.account` says of it.
    """
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
