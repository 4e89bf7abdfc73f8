"""The conformance suite's result as a table for a terminal, readable at 80 columns."""

from __future__ import annotations

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dpaudit.conformance.registry import all_checks
from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.reports.terminal import STYLES
from dpaudit.reports.wording import VERDICT_WORDS, clean, number_text, plural

STATUS_STYLES: dict[str, str] = {**{str(key): style for key, style in STYLES.items()}, "xfail": "dim", "skipped": "dim"}
NAMES_SHOWN = 3
TOLD = ("violated", "error", "inconclusive", "xfail")  # statuses whose messages stand below the table, in full


def check_table(result: CheckResult) -> Group:
    """One table a mechanism, every check with its status; below, in full, what failed, and the counts."""
    parts: list[Table | Text] = []
    for mechanism in result.mechanisms:
        name = str(mechanism["name"])
        claim = f", claim {clean(mechanism['claim'], 60)}" if mechanism["claim"] is not None else ", no claim"
        parts.append(Text(f"{clean(mechanism['target'] or name, 60)} ({clean(name, 40)}){claim}"))
        records = [record for record in result.records if record.mechanism == name]
        told: dict[tuple[str, str, str], list[str]] = {}
        for record in records:
            if record.status in TOLD:
                told.setdefault((record.status, record.message, record.reason), []).append(record.name)
        parts += [_table(records), *(_told(*what, names) for what, names in told.items())]
    counts = ", ".join(f"{count} {_words(status)}" for status, count in result.counts.items())
    rate = number_text(float(result.error_rate))
    parts.append(
        Text(f"{plural(len(result.records), 'check')}: {counts}. Error rate {rate} for the list of one mechanism, "
             f"{number_text(float(result.seconds), 3)} s, seed {result.seed}")
    )  # fmt: skip
    return Group(*parts)


def listing() -> Table:
    """Every check with the property that it demands."""
    table = _plain("check", "a mechanism ...")
    for spec in all_checks():
        table.add_row(spec.name, spec.demands)
    return table


def _table(records: list[CheckRecord]) -> Table:
    table = _plain("check", "remark", "verdict")
    for record in records:
        remark = "" if record.status in TOLD else clean(record.message, 200)
        verdict = Text(_words(record.status), STATUS_STYLES[record.status])
        table.add_row(record.name, Text(remark, "dim"), verdict)
    return table


def _told(status: str, message: str, reason: str, names: list[str]) -> Text:
    """One message in full, with the checks that gave it."""
    more = len(names) - NAMES_SHOWN
    shown = ", ".join(names[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
    known = f" Known: {clean(reason, 200)}" if reason else ""
    return Text.assemble((f"{_words(status)}  ", STATUS_STYLES[status]), f"{shown}: {clean(message, 600)}{known}")


def _words(status: str) -> str:
    words = {**{str(name): text for name, text in VERDICT_WORDS.items()}, "xfail": "known failure"}
    return words.get(status, status)


def _plain(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    for place, column in enumerate(columns):
        last = place == len(columns) - 1
        table.add_column(column, no_wrap=place == 0 or (last and place == 2), overflow="fold",
                         ratio=1 if place == 1 else None)  # fmt: skip
    return table
