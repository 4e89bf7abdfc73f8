"""Losses that an audit would have found, by the form in which a leak shows: a table and a figure.

The pair is the one that was tested least well (`wording.least_powerful`). The first row is the best case, of a
test that knows which outputs give the input away; the others are of an audit that has to find them. Where leaks were
planted into the outputs of the audit, rows of rarer and more frequent events follow: the map of what could be missed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from dpaudit.inference.learned_power import audits_a_form
from dpaudit.reports import wording
from dpaudit.reports.document import Block, Paragraph, Table
from dpaudit.reports.drawing import Figure, Plot, Scale, Series
from dpaudit.reports.words import said
from dpaudit.results.model import AuditResult, LearnedLoss, Power

KNOWN = "known beforehand"
BEST = f"{KNOWN} (best case)"
FORM, RATIO = "where the leak shows", "times what is allowed"
# In place of a loss: a test that knows the event finds none, an audit may find one all the same.
NONE, NOT_PROMISED, NOT_FOUND = "none", "not promised", "not found"
KNOWN_CURVE = "a test that knows these outputs"
PROBABILITY = "total probability of the outputs"
HARDEST = "the audit itself, in the hardest form (an allowance)"


def rows_of(power: Power) -> tuple[tuple[str, str, str], ...]:
    """Form, loss in nats and ratio to what the claim allows, as texts; the best case first.

    Examples
    --------
    >>> from dpaudit.results.model import LearnedLoss
    >>> rows_of(Power(0.1, 0.9, 1.25, 1.0, (LearnedLoss("one threshold", 1.5),)))
    (('known beforehand (best case)', '1.25', '1.25'), ('one threshold', '1.5', '1.5'))
    """
    best = (BEST, *_texts(power.detectable, power.at_budget, NONE))
    nothing = NOT_FOUND if power.is_planted else NOT_PROMISED
    learned = ((_form_sentence(one), *_texts(one.loss, power.at_budget, nothing)) for one in power.learned)
    return (best, *learned, *_map(power))


def _form_sentence(one: LearnedLoss) -> str:
    """The form, with how many plants were found and what that says of all."""
    form = f"{one.form}, {_in_outputs(one.event_mass)}" if one.event_mass else one.form
    if not one.plants:
        return form
    return f"{form} ({one.found} of {one.plants}: at least {wording.percent_text(wording.planted_share(one))})"


def _map(power: Power) -> Iterator[tuple[str, str, str]]:
    """Rows of events of other masses, of which the claim may allow other losses: known ones, and those planted."""
    for mass, loss in power.by_mass:
        if mass != power.event_mass:
            yield f"{KNOWN}, {_in_outputs(mass)}", *_texts(loss, 0.0, NONE)
    above = {(one.form, one.event_mass or power.event_mass) for one in power.learned}
    cells = itertools.groupby(power.cells, key=lambda cell: (cell.form, cell.event_mass))
    for (form, mass), several in cells:
        if (form, mass) not in above:
            found = (one.loss for one in several if one.suffices(power.probability))
            yield f"{form}, {_in_outputs(mass)}", *_texts(min(found, default=math.inf), 0.0, NOT_FOUND)


def _in_outputs(mass: float) -> str:
    return f"in {wording.percent_text(mass)} of outputs"


def learned(result: AuditResult) -> tuple[str, Power] | None:
    """The pair that was tested least well, and its power; None where nothing is known of learned events.

    None of an all-pairs table either: of its pairs only those that were examined in depth have learned figures, and
    they are not the ones that were tested least well.
    """
    weakest = wording.least_powerful(result)
    is_asked = result.universe is None and result.verdict in ("not_refuted", "inconclusive")
    if not is_asked or weakest is None or weakest.power is None or not weakest.power.learned:
        return None
    return wording.name_text(weakest.id, 60), weakest.power


def caption(pair: str, power: Power, is_fixed: bool) -> str:
    """Caption of the rows: the pair, how frequent an event is, how often it is found, and what that rests on."""
    which, audits = "planted" if power.is_planted else "allowance", audits_a_form(is_fixed)
    facts = {
        "pair": pair,
        "mass": wording.number_text(power.event_mass),
        "often": wording.percent_text(power.probability),
    }
    return said(f"form.{which}", **facts, draws=power.planted_draws, audits=audits)


def blocks(result: AuditResult) -> list[Block]:
    """The rows as a table with its caption; none where no form has a loss: a sentence says that."""
    if (found := learned(result)) is None:
        return []
    pair, power = found
    lines = rows_of(power)
    if all(loss in (NONE, NOT_PROMISED) for _, loss, _ in lines[1:]):
        return []
    note = Paragraph(caption(pair, power, result.mode == "fixed"), "note")
    return [Table("By form, and by how rare the outputs are", _columns(power), lines), note]


def _columns(power: Power) -> tuple[str, str, str]:
    return FORM, f"loss found in {wording.percent_text(power.probability)} of audits (nats)", RATIO


def _texts(loss: float, allowed: float, nothing: str) -> tuple[str, str]:
    if not math.isfinite(loss):
        return nothing, wording.MISSING
    return wording.upper_text(loss, 3), wording.upper_text(loss / allowed, 3) if allowed > 0.0 else wording.MISSING


def mass_figure(result: AuditResult) -> Figure | None:
    """Losses that are found of the pair that was tested least well; None where an audit has refuted, or has no map."""
    weakest = wording.least_powerful(result)
    if result.verdict == "violated" or weakest is None or weakest.power is None:
        return None
    power = weakest.power
    curves = {KNOWN_CURVE: [(mass, loss) for mass, loss in power.by_mass if math.isfinite(loss)], **_curves(power)}
    if len(curves[KNOWN_CURVE]) < 2:
        return None
    allowed = f"the claim allows {wording.nats_text(power.at_budget)} in outputs of probability {power.event_mass:g}"
    description = said("figure.mass", often=wording.percent_text(power.probability))
    known = power.at_budget > 0.0
    losses = [loss for curve in curves.values() for _, loss in curve] + [power.at_budget] * known
    masses = [mass for curve in (power.by_mass, *curves.values()) for mass, _ in curve]
    x, y = Scale.log(PROBABILITY, masses), Scale.log("loss (nats)", losses)
    series = []
    if power.blind_mass is not None:
        blind = math.sqrt(power.blind_mass * curves[KNOWN_CURVE][-1][0])
        series.append(Series("band", [(x.low, y.low), (blind, y.high)], "no loss shows", "box"))
    if known:
        series.append(Series("limit", [(x.low, power.at_budget), (x.high, power.at_budget)], allowed))
    for k, (form, curve) in enumerate(curves.items()):
        series.append(Series(f"curve w{1 + (k - 1) % 4 if k else 0}", curve, form, "dots"))
    title = f"What would have been found, pair {wording.name_text(weakest.id, 60)}"
    data = Table("", _columns(power), () if blocks(result) else rows_of(power))  # which the report has in full
    return Plot(x, y, tuple(series)).figure("by-mass", title, description, "", data)


def _curves(power: Power) -> dict[str, list[tuple[float, float]]]:
    """The least planted loss of which enough were found, by form and mass; else the general one of the hardest form."""
    if not power.is_planted:
        is_known = power.learned and math.isfinite(power.deciding)
        return {HARDEST: [(power.event_mass, power.deciding)]} if is_known else {}
    found: dict[str, dict[float, float]] = {}
    for cell in power.cells:
        if cell.suffices(power.probability):
            of_form = found.setdefault(cell.form, {})
            of_form[cell.event_mass] = min(cell.loss, of_form.get(cell.event_mass, math.inf))
    return {f"planted: {form}": sorted(losses.items(), reverse=True) for form, losses in found.items()}
