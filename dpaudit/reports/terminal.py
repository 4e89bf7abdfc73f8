"""Results as tables and text for a terminal, readable at 80 columns.

Everything is a rich renderable built from plain text: names from the subject are cleaned and are never read as markup.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dpaudit.errors import UsageError
from dpaudit.reports import beside, doubles, wording
from dpaudit.reports.again import STAND_IN, Again, again
from dpaudit.reports.apart import apart
from dpaudit.reports.wording import clean, name_text, number_text
from dpaudit.results.model import VERDICTS, AuditResult, Finding, Verdict
from dpaudit.results.universe_table import UniverseTable

SIDES_SHOWN = 10
WORDS = re.compile(r"""(?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")  # of a command line, with their quotes
STYLES: dict[Verdict, str] = {
    "violated": "bold red",
    "error": "bold magenta",
    "inconclusive": "yellow",
    "not_refuted": "blue",
}


def summary_table(results: Sequence[AuditResult]) -> Table:
    """One row a subject: name and claim, verdict, violated of all pairs, largest ratio, worst pair, draws, seconds."""
    table = _table(gap=1)
    table.add_column("subject\nclaim", ratio=1, overflow="fold")
    table.add_column("verdict", min_width=12)
    table.add_column("violated\nof pairs", justify="right", no_wrap=True)
    table.add_column("largest\nratio", justify="right", no_wrap=True)
    table.add_column("worst pair", min_width=13, max_width=16, overflow="fold")
    table.add_column("draws", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    for result in results:
        worst = result.worst
        table.add_row(
            Text.assemble(wording.subject_name(result, 48), "\n", (clean(result.claim, 48), "dim")),
            _verdict(result.verdict),
            f"{wording.verdict_count(result, 'violated'):,}/{wording.asked_count(result):,}",
            wording.compared(result.ratio_lower, 1.0)[0] if worst is not None else wording.MISSING,
            Text(name_text(worst.id, 40) if worst is not None else wording.MISSING),
            short_count(result.samples),
            number_text(float(result.seconds), 3),
        )
    return table


def side_findings_text(result: AuditResult) -> Text | None:
    """One line for each thing that was looked at beside the claim; None if there is none."""
    if not result.side_findings:
        return None
    lines = Text()
    for place, side in enumerate(result.side_findings[:SIDES_SHOWN]):
        style = "yellow" if side.status == "found" else "dim"
        head = f"{beside.title(side)}: {beside.status_text(side)}"
        lines.append("\n" * (place > 0)).append(head, style).append(f". {clean(side.summary, 300)}")
    more = len(result.side_findings) - SIDES_SHOWN
    return lines.append(f"\nand {more:,} more beside the claim") if more > 0 else lines


def notes_text(result: AuditResult) -> Text | None:
    """What else is to be known of pairs, a line each; None if there is nothing."""
    lines = wording.notes(result)
    return Text("\n".join(f"Note: {line}" for line in lines), "yellow", overflow="fold") if lines else None


def finding_table(result: AuditResult, limit: int = 10) -> Group:
    """The pairs of one audit, the worst first: budget, lower bound, ratio, evidence, draws, verdict.

    Parameters
    ----------
    limit : int
        Rows at most, at least 1; a last line says how many pairs were left out.

    Raises
    ------
    UsageError
        If limit is below 1.
    """
    if limit < 1:
        raise UsageError(f"limit must be at least 1, got {limit!r}.")
    parameter = wording.symbol(wording.parameter_of(result))
    table = _table(gap=2)
    table.add_column("pair", ratio=1, overflow="fold")
    table.add_column(f"budget\nfor {parameter}", justify="right", no_wrap=True)
    table.add_column(f"{parameter} at\nleast", justify="right", no_wrap=True)
    table.add_column("ratio", justify="right", no_wrap=True)
    kind = wording.evidence_name(result)
    head = kind.replace(" or ", "\nor ") if kind == wording.BOTH else kind.replace(" ", "\n")
    table.add_column(head, justify="right", no_wrap=True)
    table.add_column("draws", justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for finding in result.ranked()[:limit]:
        lower, budget = wording.compared(finding.parameter_lower, finding.parameter_budget)
        ratio, evidence = wording.ratio_text(finding), wording.evidence_cell(finding, kind)
        draws = short_count(finding.samples)
        table.add_row(Text(name_text(finding.id, 60)), budget, lower, ratio, evidence, draws, _verdict(finding.verdict))
    rest = wording.asked_count(result) - min(limit, len(result.findings))
    return Group(table, Text(f" and {wording.plural(rest, 'more pair')}", "dim")) if rest > 0 else Group(table)


def universe_text(table: UniverseTable) -> Text:
    """The verdicts of all pairs of a universe, counted, on one line."""
    parts = [
        f"{table.count(verdict):,} {wording.VERDICT_WORDS[verdict]}" for verdict in VERDICTS if table.count(verdict)
    ]
    parts += [f"{table.count(None):,} not asked"] if table.count(None) else []
    return Text(f"All {wording.plural(len(table), 'pair')} of {len(table.ids):,} inputs: {', '.join(parts)}.")


def violation_text(result: AuditResult, path: str = STAND_IN, replay: str | None = None) -> Text:
    """What a failed audit says: claim, pair, rule, counts, bound, draws, seed, and the line that replays it.

    Lines are at most 80 characters, but for the command where names are long: print with `soft_wrap=True`, so that rich
    leaves it whole for copying.

    Parameters
    ----------
    path : str
        Where the result is saved, for the line that replays it.
    replay : str, optional
        What to say in the place of that line.

    Raises
    ------
    UsageError
        If no pair is violated.
    """
    if not result.violated:
        raise UsageError(f"result must have a violated pair, got verdict {result.verdict!r}.")
    finding = result.violated[0]
    text = Text(overflow="fold")
    text.append(wording.headline(result), STYLES["violated"])
    for name, value in _violation_lines(result, finding):
        text.append(f"\n  {name:<7}  ", "dim")
        text.append(_hanging(value))
    text.append("\n  replay   ", "dim")
    text.append_text(_replay(Again(replay) if replay is not None else again(result, finding.id, path)))
    if len(result.violated) > 1:
        others = ", ".join(name_text(other.id, 40) for other in result.violated[1:4])
        more = len(result.violated) - 4
        text.append("\n  also     ", "dim")
        text.append(_hanging(others + (f" and {more:,} more" if more > 0 else "")))
    return text


def saved_violation_text(result: AuditResult, saved: Path | None) -> Text:
    """`violation_text` whose replay line can be run: with the saved file, if a file was saved.

    Print it with `soft_wrap=True`.
    """
    if saved is None:  # only a saved witness can be replayed
        text = violation_text(result, replay="audit again with --out DIR, which saves the witness")
    else:
        text = violation_text(result, str(saved))
    text.no_wrap, text.overflow = True, "ignore"
    return text


def floating_point_text(result: AuditResult) -> Text | None:
    """The floating-point finding, in a section apart from the verdict; None if the check was turned off."""
    finding = result.floating_point
    if finding is None:
        return None
    if finding.verdict == "not_applicable":
        return Text(f"{doubles.headline(result)}. {clean(finding.message, 400)}", "dim", overflow="fold")
    text = Text(overflow="fold")
    text.append(f"{doubles.headline(result)}.", "yellow" if finding.verdict == "leaks" else "blue")
    text.append(" Apart from the verdict.", "dim")
    if finding.verdict == "leaks":
        for name, value in _floating_point_lines(result):
            text.append(f"\n  {name:<7}  ", "dim")
            text.append(_hanging(value))
    return text


def floating_point_replay(result: AuditResult, path: str) -> Text | None:
    """The line that replays the worst leak of a result saved at `path`; None if nothing leaks. Not to be wrapped."""
    replay = doubles.replay_of_worst(result, path)
    return Text.assemble(("  replay   ", "dim"), _replay(replay)) if replay is not None else None


def _replay(replay: Again) -> Text:
    """The line that runs a finding again, and below it what has to be given."""
    text = Text(_broken(clean(replay.line, 4000)), "bold")
    return Text.assemble(text, ("\n" + " " * 11 + _hanging(replay.needs)) if replay.needs else "")


def _floating_point_lines(result: AuditResult) -> list[tuple[str, str]]:
    assert result.floating_point is not None
    worst = result.floating_point.pairs[0]
    lower, budget = wording.compared(worst.epsilon_lower, worst.budget.epsilon)
    confidence = wording.percent_text(1.0 - result.floating_point.error_rate)
    delta = f" (δ = {number_text(worst.budget.delta)})" if worst.budget.delta else ""
    return [
        ("pair", name_text(worst.id, 120)),
        ("bits", doubles.witness_sentence(worst)),
        ("bound", f"ε {wording.no_less(lower)} nats with {confidence} confidence; promised: ε ≤ {budget}{delta}."),
        ("to do", doubles.ADVICE),
    ]


def _violation_lines(result: AuditResult, finding: Finding) -> list[tuple[str, str]]:
    witness = finding.witness
    differ = apart(finding.x, finding.x_prime)
    inputs = f"x = {clean(finding.x, 120)}; x′ = {clean(finding.x_prime, 120)}" + (f"\n{differ}" if differ else "")
    store = result.options.get("store")
    labelled, runs = f"{finding.samples:,} labelled for this pair", wording.plural(result.samples, "run")
    draws = f"{labelled}, {runs} of the mechanism in all"
    if finding.severity is not None:
        draws += f"\n{finding.severity.samples:,} of these runs after the verdict, for the bound"
    kept = []
    if store is not None:  # the verdict is that of all nights, and stays after a repair that the fingerprint misses
        draws = f"{labelled} in all nights, {runs} of the mechanism in this one"
        kept = [
            ("store", f"night {clean(result.options.get('night'))} of the evidence in {clean(store)}"),
            ("", "A repair outside of the subject's own source is not seen: then use"),
            ("", f"dpaudit evidence forget {clean(result.subject.get('fingerprint'))}"),
        ]
    seed = str(result.seed) + ("" if result.replayable else " (of the labels; the subject takes no generator)")
    together = sum(other.pool == finding.pool for other in result.findings) if finding.pool is not None else 1
    pool = f"asked in one game with {wording.plural(together - 1, 'other pair')} of the same shift"
    return [
        ("subject", wording.subject_name(result)),
        ("claim", clean(result.claim, 200)),
        ("pair", f"{name_text(finding.id, 120)}\n{inputs}"),
        *([("pool", f"{pool}; a replay asks this one alone")] if together > 1 else []),
        ("rule", clean(witness.description, 400) if witness is not None else "none recorded"),
        ("counts", f"{wording.counts_sentence(finding)} {wording.allowance_sentence(finding)}".strip()),
        ("bound", wording.bound_sentence(result, finding) + "."),
        ("draws", draws),
        *kept,
        ("seed", seed),
    ]


def _broken(command: str) -> str:
    """A command on several lines where it is long, an option or more on each, so that it can be copied."""
    words = WORDS.findall(command)
    if len(command) <= 68 or " ".join(words) != command:  # what cannot be taken apart stays whole
        return command
    parts = [words[0]]
    for word in words[1:]:
        if word.startswith("--"):
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    lines = parts[:1]
    for k, part in enumerate(parts[1:]):
        if k and len(lines[-1]) + len(part) <= 62:
            lines[-1] += f" {part}"
        else:
            lines.append(part)
    return " \\\n             ".join(lines)


def _hanging(value: str, width: int = 68) -> str:
    """`value` broken into lines of at most `width` characters, all but the first indented under it."""
    lines: list[str] = []
    for paragraph in value.split("\n"):
        line = ""
        for word in paragraph.split(" "):
            while len(word) > width:
                lines, line, word = [*lines, *([line] if line else []), word[:width]], "", word[width:]
            if line and len(line) + 1 + len(word) > width:
                lines.append(line)
                line = word
            else:
                line = f"{line} {word}" if line else word
        lines.append(line)
    return ("\n" + " " * 11).join(lines)


def short_count(count: int) -> str:
    """A count in at most five characters: 950, 12k, 1.2M."""
    for size, suffix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 0.9995 * size:
            return f"{count / size:.3g}{suffix}"
    return str(count)


def _verdict(verdict: Verdict) -> Text:
    return Text(wording.VERDICT_WORDS[verdict], STYLES[verdict])


def _table(gap: int) -> Table:
    return Table(box=box.SIMPLE_HEAD, expand=True, padding=(0, gap - 1, 0, 0), pad_edge=False)
