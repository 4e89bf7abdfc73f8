"""A plan as blocks of a document, readable at 80 columns; and the shares that its options state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpaudit.errors import UsageError
from dpaudit.inference.learned_power import probability_measured
from dpaudit.reports import wording
from dpaudit.reports.by_form import NOT_PROMISED
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.wording import clean, name_text, number_text, percent_text, plural, short_count, sure_text, symbol
from dpaudit.reports.words import said
from dpaudit.results.plan_result import Needed, Plan, PlannedBudget

NAME_WIDTH, SHORT_NAME = 22, 14
DIGITS = 3
BUDGETS_BY_FORM = 3  # columns of the table by form
MAX_TEXTBOOK_SAMPLES = 1e9  # a larger sample size is not shown
MIN_SHOWN = 1e-6  # seconds of an output beside its call: what is less a clock does not show
UNCLEAR = 2.0  # an excess from which it has to be written in percent
NONE = "none"  # no loss is found, or no number of samples is enough


def plan_blocks(plan: Plan) -> list[Block]:
    """Say what the planned audit finds, what the excess needs, and what both rest on."""
    names = {"name": clean(plan.subject.get("target") or plan.subject.get("name"), 60), "claim": clean(plan.claim, 60)}
    size = {"pairs": plural(plan.pairs, "pair"), "inputs": plural(plan.inputs, "input")}
    opening = said("plan.opening", **names, **size, sure=sure_text(plan.confidence))
    if plan.not_asked:
        opening += said("plan.not_asked", pairs=plural(plan.not_asked, "pair"))
    if plan.samples_wanted is not None and plan.time_limit is not None:
        opening += f"\n{too_slow_text(plan, plan.time_limit)}"
    if not plan.budgets:
        return [Paragraph(opening), Paragraph(said("plan.nothing"))]
    mode = "one test of every pair" if plan.is_universe else f"{plan.mode} mode"
    facts = {"power": percent_text(plan.power), "samples": plan.samples, "mode": mode, "over": percent_text(plan.over)}
    title = said("plan.by_form", often=percent_text(probability_measured()))
    forms: list[Block] = [Paragraph(title), _by_form(plan)] if plan.budgets[0].by_form else []
    found, needed = Paragraph(said("plan.found", **facts)), Paragraph(said("plan.needed", **facts))
    tables: list[Block] = [found, _found(plan), *forms, needed, _needed(plan)]
    return [Paragraph(opening), *tables, *map(Paragraph, _sentences(plan))]


def too_slow_text(plan: Plan, seconds: float) -> str:
    """Say what a time limit leaves of the samples that were wanted."""
    run, limit = number_text(plan.seconds / max(plan.runs, 1), DIGITS), number_text(seconds, DIGITS)
    words = "plan.too_slow" if plan.seconds <= seconds else "plan.too_slow_for_any"
    return said(words, run=run, limit=limit, samples=plan.samples, wanted=plan.samples_wanted)


def share(name: str, text: str) -> float:
    """A share that an option states, as `10%` or `0.1`.

    `UsageError` if it is neither.

    Examples
    --------
    >>> share("over", "10%"), share("over", "0.5")
    (0.1, 0.5)
    """
    number, percent, rest = text.strip().partition("%")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if math.isnan(value) or rest:
        raise UsageError(f"{name} must be a share such as 10% or 0.1, got {text!r}.")
    return value / 100.0 if percent else value


def excess(text: str) -> float:
    """The share of the claim that `--over` states.

    `UsageError` if it is no share, or a number of at least 2 without `%`: most likely percent were meant.

    Examples
    --------
    >>> excess("10%"), excess("0.5"), excess("300%")
    (0.1, 0.5, 3.0)
    """
    value = share("over", text)
    if UNCLEAR <= value < math.inf and "%" not in text:
        either = f"{value:.12g}% or, as a share, {100.0 * value:.12g}%"
        raise UsageError(f"over must be a share such as 10% or 0.1, got {text!r}: write {either}.")
    return value


def _found(plan: Plan) -> Table:
    """Losses, the claim's own parameter where that is another number, and its ratio to the budget."""
    parameter = symbol(plan.budgets[0].parameter)
    powers = [power for planned in plan.budgets for power in planned.powers]
    has_own = not all(math.isclose(power.known_value, power.known, rel_tol=1e-6) for power in powers)
    own = [f"as {parameter}"] if has_own else []
    columns = ("pair", f"budget\nfor {parameter}", "event\nmass", "loss\nallowed", "known\nevent", *own, "ratio",
               _learned(plan, "hardest\nform"), *own, "ratio")  # fmt: skip
    rows = []
    for planned in plan.budgets:
        for row, power in enumerate(planned.powers):
            known = [power.known, power.known_value, power.known_ratio]
            learned = [power.learned, power.learned_value, power.learned_ratio]
            figures = [_figure(value) for k, value in enumerate([*known, *learned]) if has_own or k % 3 != 1]
            facts = (
                _name(planned, row, SHORT_NAME if has_own else NAME_WIDTH),
                number_text(planned.budget, DIGITS) if row == 0 else "",
                _mass(power.event_mass, power.is_estimate),
                "any" if math.isinf(power.allowed) else number_text(power.allowed, DIGITS),
            )
            rows.append((*facts, *figures))
    return Table("", columns, tuple(rows))


def _by_form(plan: Plan) -> Table:
    """Learned losses of each form, a column a budget: the first `BUDGETS_BY_FORM`."""
    shown = plan.budgets[:BUDGETS_BY_FORM]
    rows = []
    for place, one in enumerate(shown[0].by_form):
        losses = [planned.by_form[place].loss for planned in shown]
        rows.append((one.form, *(NOT_PROMISED if math.isinf(loss) else _figure(loss) for loss in losses)))
    return Table("", ("where it shows", *(name_text(planned.id, SHORT_NAME) for planned in shown)), tuple(rows))


def _needed(plan: Plan) -> Table:
    modes = [needed.mode for needed in plan.budgets[0].powers[0].needed]
    if plan.is_universe:  # its test of every pair is one of a fixed size in both modes
        modes = modes[-1:]
    learned = _learned(plan, "hardest").partition("\n")[0]
    names = [f"{mode}\n{column}" for mode in modes for column in ("known", learned, "time")]
    rows = []
    for planned in plan.budgets:
        for row, power in enumerate(planned.powers):
            cells = [cell for needed in power.needed if needed.mode in modes for cell in _samples(needed)]
            mass = _mass(power.event_mass, power.is_estimate)
            rows.append((_name(planned, row), mass, _figure(power.sought), *cells))
    heads = (name.replace("sequential", "sequent.") for name in names)
    return Table("", ("pair", "event\nmass", "loss\nsought", *heads), tuple(rows))


def _sentences(plan: Plan) -> Iterator[str]:
    """Say what the figures mean and rest on."""
    often, measured = percent_text(probability_measured()), probability_measured()
    above = said("plan.above", often=often) if plan.power > measured else ""
    yield said("plan.losses", often=often, above=above, share=percent_text(plan.error_share))
    yield said(
        "plan.runs",
        runs=plan.runs,
        limit="" if plan.mode == "fixed" or plan.is_universe else ", at most,",
        time=wording.duration_text(plan.seconds),
        pace=short_count(int(min(plan.runs_per_second, 1e15))),
        pilot=plan.pilot_runs,
        seed=plan.seed,
    )
    if plan.calls:
        run = max(plan.seconds - plan.calls * plan.seconds_a_call, 0.0) / max(plan.runs, 1)
        shown = wording.duration_text(run) if run >= MIN_SHOWN else f"under {wording.duration_text(MIN_SHOWN)}"
        times = {"call": wording.duration_text(plan.seconds_a_call), "run": shown}
        yield said("plan.calls", calls=plan.calls, **times)
    powers, first = [power for planned in plan.budgets for power in planned.powers], plan.budgets[0]
    learned = [*(power.learned for power in powers), *(one.learned for power in powers for one in power.needed)]
    if math.inf in learned:
        yield said("plan.none")
    opinions = [
        f"{short_count(int(power.textbook))} (mass {_mass(power.event_mass, power.is_estimate)})"
        for power in first.powers
        if power.textbook is not None and power.textbook < MAX_TEXTBOOK_SAMPLES
    ]
    if opinions:
        yield said("plan.opinion", pair=name_text(first.id, SHORT_NAME), samples=", ".join(opinions))
    if plan.is_universe:
        yield said("plan.all_pairs")
    if plan.pools:
        yield said("plan.pools", pools=plural(plan.pools, "pool"))
    if len(plan.budgets) < sum(planned.pairs for planned in plan.budgets):
        yield said("plan.others")
    for planned in plan.budgets:
        if (estimate := planned.estimate) is not None:
            which = "plan.rule" if estimate.event_mass else "plan.no_rule"
            rule = said(which, share=percent_text(estimate.event_mass), loss=estimate.loss)
            facts = {"pair": name_text(planned.id, 40), "runs": plural(estimate.runs, "run")}
            yield said("plan.estimate", **facts, rule=rule)


def _learned(plan: Plan, name: str) -> str:
    """The name of the column of what has to be learned: of an all-pairs table no form of the event is known."""
    return "learned\nevent" if plan.is_universe else name


def _name(planned: PlannedBudget, row: int, width: int = NAME_WIDTH) -> str:
    others = f" +{planned.pairs - 1:,}" if planned.pairs > 1 else ""
    return name_text(planned.id, width - len(others)) + others if row == 0 else ""


def _mass(mass: float, is_estimate: bool) -> str:
    return number_text(float(mass), 3) + (" e" if is_estimate else "")


def _samples(needed: Needed) -> Sequence[str]:
    known, learned = (NONE if math.isinf(size) else short_count(int(size)) for size in (needed.known, needed.learned))
    return known, learned, "" if math.isinf(needed.learned) else wording.duration_text(needed.seconds)


def _figure(value: float | None) -> str:
    return NONE if value is not None and math.isinf(value) else number_text(value, DIGITS)
