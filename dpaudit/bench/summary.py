"""The overall figures of a bench run, and its tables for a terminal."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.bench.design import TARGETS
from dpaudit.bench.measuring import alarm_p_value
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.wording import MISSING, short_count

Record = Mapping[str, Any]


def summary(content: Record) -> dict[str, Any]:
    """The overall figures of what was measured so far; a figure without data is left out.

    Ratios of draws and shortfalls are over the problems that have an optimum, ratios only where it needs at least
    `counted_from` draws a side. False alarms are of the tight problems, with the exact p-value of the hypothesis that
    their rate is at most 5%.
    """
    result: dict[str, Any] = {}
    least = content["design"]["counted_from"]
    draws = records_of(content, "draws")
    counted = {i: r["ratio"] for i, r in draws.items() if r["ratio"] is not None and r["optimum"] >= least}
    if counted:
        result["draws ratio"] = _worst_and_median(counted)
    bounds = {i: r["shortfall"] for i, r in records_of(content, "bounds").items() if r["shortfall"] is not None}
    if bounds:
        result["shortfall"] = _worst_and_median(bounds)
    ratios = [r["ratio"] for r in records_of(content, "bounds").values() if r["ratio"] is not None]
    if ratios:  # one of 0 counts: there the audits have found nothing
        result["bound ratio"] = statistics.median(ratios)
    for name, is_tight in (("false alarms", True), ("false alarms, not tight", False)):
        records = [r for r in records_of(content, "alarms").values() if r["tight"] == is_tight]
        if records:
            audits, violated = sum(r["audits"] for r in records), sum(r["violated"] for r in records)
            result[name] = {
                "problems": len(records),
                "audits": audits,
                "violated": violated,
                "rate": violated / audits,
                "p_value": alarm_p_value(violated, audits),
                "above_truth": sum(r["above_truth"] for r in records),
            }
    rows = records_of(content, "classics")
    if rows:
        result["classics"] = {"rows": len(rows), "reached": sum(r["reached"] for r in rows.values())}
    for name, record in content["extras"].items():
        if "ratio" in record:
            result[name] = record["ratio"]
    broken = [f"{i}, {part}" for i, e in content["problems"].items() for part, r in e["parts"].items() if "error" in r]
    result["errors"] = broken + [name for name, record in content["extras"].items() if "error" in record]
    return result


def overall_lines(content: Record) -> list[Block]:
    """The overall figures in words, each against its target."""
    figures = content["summary"]
    lines: list[Block] = []
    least = content["design"]["counted_from"]
    if ratio := figures.get("draws ratio"):
        what = f"Draws to detection over the optimum's ({ratio['problems']} problems of at least {least} draws a side)"
        lines += _against(what, ratio, "draws ratio")
    if shortfall := figures.get("shortfall"):
        what = f"Bound below the optimum's, in its standard errors ({shortfall['problems']} problems)"
        lines += _against(what, shortfall, "shortfall")
        if more := sum(_is_of_more(content, record) for record in records_of(content, "bounds").values()):
            audits = content["design"]["doubtful_seeds"]
            lines.append(Paragraph(f"  * {more} of them left in doubt by the first audits: the median of {audits}"))
    if alarms := figures.get("false alarms"):
        words = (
            f"False alarms: {alarms['violated']:,} of {alarms['audits']:,} audits of {alarms['problems']} problems "
            f"exactly on their claim ({100.0 * alarms['rate']:.2f}%; exact test of at most 5%: p = "
            f"{_short(alarms['p_value'])}); bounds above the truth: {alarms['above_truth']:,}"
        )
        lines.append(_line(words, alarms["p_value"] >= TARGETS["false alarms"]))
    if alarms := figures.get("false alarms, not tight"):
        words = f"False alarms on other sound problems: {alarms['violated']:,} of {alarms['audits']:,} audits"
        lines.append(Paragraph(words))
    if rows := figures.get("classics"):
        words = f"Classic subjects: {rows['reached']} of {rows['rows']} bounds at least as high as DP-Sniper's"
        lines.append(_line(words, rows["reached"] == rows["rows"]))
    for name, record in content["extras"].items():
        if "says" in record:
            lines.append(_line(f"{_title(name)}: {record['says']}", record["met"]))
        elif name in figures:
            limit = TARGETS.get(name)
            words = f"{_title(name)}: {_short(figures[name])}" + (f" (at most {limit:g})" if limit else "")
            lines.append(_line(words, figures[name] <= limit) if limit else Paragraph(words))
    lines += [Paragraph(f"Broke: {name}: {_error_text(content, name)}", mark="error") for name in figures["errors"]]
    return lines


def tables(content: Record) -> list[Block]:
    """One row a problem, and one a classic subject, readable at 80 columns."""
    return [*_problem_table(content), *_classic_table(content), *_reasons(content)]


def _problem_table(content: Record) -> list[Block]:
    shown = {i: e for i, e in content["problems"].items() if set(e["parts"]) & {"draws", "bounds", "alarms"}}
    # "best" is the optimum's; ratios of draws are over it, at the median and the worst seed.
    columns = ("problem", "best\ndraws", "ratio", "worst", "bound", "best\nbound", "short\n(s.e.)", "false\nalarms",
               "time\n(s)")  # fmt: skip
    rows = []
    for name, entry in shown.items():
        draws, bounds, alarms = (entry["parts"].get(part, {}) for part in ("draws", "bounds", "alarms"))
        optimum = draws.get("optimum")
        has_none = "found" in draws and optimum is None
        rows.append((
            name,
            "none" if has_none else _count(optimum),
            _short(draws.get("ratio"), 2),
            _short(draws["worst"] / optimum if optimum else None, 2),
            _fixed(bounds.get("median")),
            _fixed(bounds.get("optimum")),
            _short(bounds.get("shortfall"), 2) + ("*" if _is_of_more(content, bounds) else ""),
            f"{alarms['violated']}/{alarms['audits']}" if "audits" in alarms else MISSING,
            f"{sum(record.get('seconds', 0.0) for record in entry['parts'].values()):.0f}",
        ))  # fmt: skip
    return [Table("", columns, rows)] if rows else []


def _is_of_more(content: Record, bounds: Record) -> bool:
    """Tell whether more audits than of other problems stand behind a bound: see `dpaudit.bench.measuring.bounds`."""
    return bool(len(bounds.get("lower", ())) > content["design"].get("bound_seeds", math.inf))


def _classic_table(content: Record) -> list[Block]:
    columns = ("classic\nsubject", "truth", "median\nbound\n(95%)", "runs\neach", "best bound at\nthese runs",
               "DP-Sn.\n(90%)", "its\nruns", "StatDP\n(none)")  # fmt: skip
    rows = []
    for name, record in records_of(content, "classics").items():
        peers = {peer["tool"]: peer for peer in record["peers"]}
        sniper, statdp = peers.get("DP-Sniper", {}), peers.get("StatDP", {})
        rows.append((
            name.removeprefix("classic "),
            _fixed(record["truth"]),
            _fixed(record["lower"]),
            short_count(record["runs"]),
            f"{_fixed(record['optimum'])} ± {_fixed(record['standard_error'])}",
            _fixed(sniper.get("bound")),
            short_count(int(sniper["runs"])) if sniper else MISSING,
            _fixed(statdp.get("bound")),
        ))  # fmt: skip
    return [Table("", columns, rows)] if rows else []


def _reasons(content: Record) -> list[Block]:
    """Reasons why a classic subject's bound is lower than the other tool's, where it is."""
    lower = {name: record for name, record in records_of(content, "classics").items() if not record["reached"]}
    return [
        Paragraph(f"{name}: {_fixed(one['lower'])} is below {_fixed(one['peers'][0]['bound'])}; {one['reason']}")
        for name, one in lower.items()
    ]


def records_of(content: Record, part: str) -> dict[str, Any]:
    """The records of one part that did not break, by problem."""
    records = {name: entry["parts"].get(part) for name, entry in content["problems"].items()}
    return {name: record for name, record in records.items() if record is not None and "error" not in record}


def _worst_and_median(values: Mapping[str, float]) -> dict[str, Any]:
    name = max(values, key=lambda i: values[i])
    return {
        "problems": len(values),
        "median": statistics.median(values.values()),
        "worst": values[name],
        "worst_problem": name,
    }


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _against(what: str, figures: Record, name: str) -> Sequence[Block]:
    median, worst = TARGETS[f"{name}, median"], TARGETS[f"{name}, worst"]
    return (
        _line(f"{what}: median {_short(figures['median'])} (at most {median:g})", figures["median"] <= median),
        _line(f"  worst {_short(figures['worst'])} (at most {worst:g}): {figures['worst_problem']}",
              figures["worst"] <= worst),
    )  # fmt: skip


def _line(text: str, is_met: bool) -> Block:
    return Paragraph(f"{text}  {'met' if is_met else 'not met'}", mark="" if is_met else "inconclusive")


def _error_text(content: Record, name: str) -> str:
    if name in content["extras"]:
        return str(content["extras"][name]["error"])
    problem, _, part = name.rpartition(", ")
    return str(content["problems"][problem]["parts"][part]["error"])


def _short(value: float | None, digits: int = 3) -> str:
    if value is None or math.isnan(value):
        return MISSING
    return "∞" if math.isinf(value) else f"{value:.{digits}g}"


def _fixed(value: float | None) -> str:
    """Three decimals, of a bound."""
    return _short(value) if value is None or not math.isfinite(value) else f"{value:.3f}"


def _count(value: float | None) -> str:
    if value is None:
        return MISSING
    return "∞" if math.isinf(value) else f"{value:,.0f}"
