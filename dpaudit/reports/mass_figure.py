"""The figure of what could have been missed: the least loss that is found, by how frequent its outputs are."""

from __future__ import annotations

import math

from dpaudit.reports import wording
from dpaudit.reports.drawing import Data, Figure, Plot, Scale, Series
from dpaudit.reports.words import said
from dpaudit.results.model import AuditResult, Power

KNOWN = "a test that knows these outputs"
HARDEST = "the audit itself, in the hardest form (an allowance)"


def mass_figure(result: AuditResult) -> Figure | None:
    """Losses that are found of the pair that was tested least well; None where an audit has refuted, or has no map."""
    weakest = wording.least_powerful(result)
    if result.verdict == "violated" or weakest is None or weakest.power is None:
        return None
    power = weakest.power
    curves = {KNOWN: [(mass, loss) for mass, loss in power.by_mass if math.isfinite(loss)], **_learned(power)}
    if len(curves[KNOWN]) < 2:
        return None
    allowed = f"the claim allows {wording.nats_text(power.at_budget)} in outputs of probability {power.event_mass:g}"
    description = said("figure.mass", often=wording.percent_text(power.probability))
    known = power.at_budget > 0.0
    x, y = _scales(power, [loss for curve in curves.values() for _, loss in curve] + [power.at_budget] * known)
    series = []
    if power.blind_mass is not None:
        blind = math.sqrt(power.blind_mass * curves[KNOWN][-1][0])
        series.append(Series("band", [(x.low, y.low), (blind, y.high)], "no loss shows", "box"))
    if known:
        series.append(Series("limit", [(x.low, power.at_budget), (x.high, power.at_budget)], allowed))
    for k, (form, curve) in enumerate(curves.items()):
        series.append(Series(f"curve w{1 + (k - 1) % 4 if k else 0}", curve, form, "dots"))
    rows = tuple((wording.number_text(mass), *_cells(curves, mass)) for mass, _ in power.by_mass)
    title = f"What would have been found, pair {wording.name_text(weakest.id, 60)}"
    data = Data(("probability of the outputs", *curves), rows)
    return Plot(x, y, tuple(series)).figure("by-mass", title, description, wording.rarest_text(power).strip(), data)


def _scales(power: Power, losses: list[float]) -> tuple[Scale, Scale]:
    masses = [mass for mass, _ in power.by_mass]
    room = max(1.3, math.sqrt(4.0 * min(losses) / max(losses)))  # at least a factor of four in view
    x = Scale("total probability of the outputs", min(masses) / 1.3, max(masses) * 1.3, is_log=True)
    return x, Scale("loss (nats)", min(losses) / room, max(losses) * room, is_log=True)


def _learned(power: Power) -> dict[str, list[tuple[float, float]]]:
    """The least planted loss of which enough were found, by form and mass; else the general one of the hardest form."""
    if not power.is_planted:
        return (
            {HARDEST: [(power.event_mass, power.deciding)]} if power.learned and math.isfinite(power.deciding) else {}
        )
    found: dict[str, dict[float, float]] = {}
    for cell in power.cells:
        if cell.suffices(power.probability):
            of_form = found.setdefault(cell.form, {})
            of_form[cell.event_mass] = min(cell.loss, of_form.get(cell.event_mass, math.inf))
    return {f"planted: {form}": sorted(losses.items(), reverse=True) for form, losses in found.items()}


def _cells(curves: dict[str, list[tuple[float, float]]], mass: float) -> list[str]:
    losses = [dict(curve).get(mass) for curve in curves.values()]
    return ["none" if loss is None else wording.number_text(loss) for loss in losses]
