"""The table of all pairs in a report: counts by verdict, the worst pairs, and their matrix.

Names are cleaned here; the page escapes them.
"""

from __future__ import annotations

import math

from dpaudit.reports import figures, wording
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.wording import MISSING, number_text, pair_heads, pair_row, percent_text, plural, status_word
from dpaudit.reports.words import said
from dpaudit.results.all_pairs_table import AllPairsTable, PairRow
from dpaudit.results.model import VERDICTS, AuditResult

MIN_DOUBLE = -300.0  # decimal logarithm of a number that a double holds in full
WORST = 25  # rows of the ranked table


def counts(table: AllPairsTable) -> list[tuple[str, str, str]]:
    """Verdicts in words, pairs and share of the asked pairs; not asked at last, if there are any."""
    found = [(status_word(verdict), table.count(verdict)) for verdict in VERDICTS]
    rows = [(word, f"{n:,}", percent_text(n / table.asked) if table.asked else MISSING) for word, n in found]
    skipped = table.count(None)
    return rows + ([("not asked (infinite budget)", f"{skipped:,}", MISSING)] if skipped else [])


def sentence(result: AuditResult) -> str:
    """Say what the table is, in words."""
    table = result.universe
    assert table is not None
    pairs, deep = plural(len(result.findings), "pair"), result.options.get("selected", 0)
    which = "all_follow" if len(result.findings) == table.asked else "some_follow"
    facts = {"pairs": plural(len(table), "pair"), "inputs": plural(len(table.ids), "input"), "draws": table.draws}
    follow = said(f"all_pairs.{which}", deep=deep, pairs=pairs)
    return said("all_pairs.opening", **facts, labelled=table.labelled, follow=follow)


def columns(table: AllPairsTable) -> tuple[str, ...]:
    """The heads of `cells`."""
    return (*pair_heads(table.parameter), "p-value", "would have found (nats)")


def cells(row: PairRow) -> tuple[str, ...]:
    """A row under `columns`."""
    known = pair_row(row.id, row.lower, row.budget, row.ratio_lower, row.verdict)
    return (*known, p_value_text(row.log10_p_value), wording.found_text(row.verdict, row.detectable))


def p_value_text(log10: float) -> str:
    """A p-value from its decimal logarithm, written as other p-values are, however small it is.

    Examples
    --------
    >>> p_value_text(-80.6615), p_value_text(-1234.5)
    ('2.18e-81', '3.16e-1235')
    """
    if not MIN_DOUBLE < log10 < math.inf:
        if not math.isfinite(log10):
            return number_text(0.0 if log10 < 0.0 else math.nan)
        digits = number_text(10.0 ** (log10 % 1.0), 3)
        return f"1e{math.floor(log10) + 1}" if digits == "10" else f"{digits}e{math.floor(log10)}"
    return number_text(10.0**log10, 3)


def blocks(result: AuditResult) -> list[Block]:
    """Say what a report says of all pairs: a sentence, the verdicts, their matrix, the worst pairs."""
    table = result.universe
    assert table is not None
    found: list[Block] = [
        Paragraph(sentence(result)),
        Table("All pairs", ("verdict", "pairs", "share"), tuple(counts(table))),
    ]
    matrix = figures.heatmap(result) if table.asked else None
    found += [matrix] if matrix is not None else []
    if len(result.findings) < table.asked:  # else the chapter of pairs has them all
        worst = table.worst(WORST)
        marks, listed = tuple(row.verdict or "" for row in worst), tuple(map(cells, worst))
        title = "Pairs, the gravest verdicts first"
        found.append(Table(title, columns(table), listed, max(0, table.asked - WORST), marks))
    return [*found, Paragraph(said("all_pairs.p_value"), "note")]
