"""The figure of what could have been missed: the least loss that is found, by how frequent its outputs are."""

from __future__ import annotations

import math
from collections.abc import Callable

from markupsafe import Markup

from dpaudit.reports import wording
from dpaudit.reports.drawing import NARROW, Axis, frame, log_axis, points, svg, swatch, tag
from dpaudit.reports.figures import WIDE, Data, Figure
from dpaudit.results.model import AuditResult, Power

HEIGHT = 0.42  # times the width
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
    often = wording.percent_text(power.probability)
    description = (
        f"The least loss of which {often} would have been found, by the total probability of the outputs that show "
        "it. Smaller losses, and losses in rarer outputs, can have been missed."
    )
    legend = [(_line("curve w0"), KNOWN)]
    legend += [(_line(f"curve w{k}"), form) for k, form in _numbered(curves)]
    if power.at_budget > 0.0:
        legend.append((_line("limit"), allowed))
    if power.blind_mass is not None:
        legend.append((swatch(tag("rect", x=1.0, y=1.0, width=20.0, height=12.0, cls="band")), "no loss shows"))
    rows = tuple((wording.number_text(mass), *_cells(curves, mass)) for mass, _ in power.by_mass)
    draw = _drawing(power, curves, description)
    title = f"What would have been found, pair {wording.name_text(weakest.id, 60)}"
    note = wording.rarest_text(power).strip()
    data = Data(("probability of the outputs", *curves), rows, 0)
    return Figure("by-mass", title, description, note, draw(WIDE), draw(NARROW), tuple(legend), data)


def _learned(power: Power) -> dict[str, list[tuple[float, float]]]:
    """The least planted loss of which enough were found, by form and mass; else the general one of the hardest form."""
    if not power.is_planted:
        return (
            {HARDEST: [(power.event_mass, power.deciding)]} if power.learned and math.isfinite(power.deciding) else {}
        )
    found: dict[str, dict[float, float]] = {}
    for cell in power.cells:
        if cell.found >= power.probability * cell.plants:
            of_form = found.setdefault(cell.form, {})
            of_form[cell.event_mass] = min(cell.loss, of_form.get(cell.event_mass, math.inf))
    return {f"planted: {form}": sorted(losses.items(), reverse=True) for form, losses in found.items()}


def _numbered(curves: dict[str, list[tuple[float, float]]]) -> list[tuple[int, str]]:
    """The forms beside the known one, with the number of the class of their curve: there are four."""
    return [(1 + k % 4, form) for k, form in enumerate(form for form in curves if form != KNOWN)]


def _cells(curves: dict[str, list[tuple[float, float]]], mass: float) -> list[str]:
    losses = [dict(curve).get(mass) for curve in curves.values()]
    return ["none" if loss is None else wording.number_text(loss) for loss in losses]


def _line(cls: str) -> Markup:
    return swatch(tag("path", d="M1 7L21 7", cls=cls))


def _drawing(power: Power, curves: dict[str, list[tuple[float, float]]], description: str) -> Callable[[float], Markup]:
    def drawn(width: float) -> Markup:
        height = HEIGHT * width + 60.0
        masses = [mass for mass, _ in power.by_mass]
        x = Axis(min(masses) / 1.3, max(masses) * 1.3, 48.0, width - 12.0, True)
        losses = [loss for curve in curves.values() for _, loss in curve]
        y = log_axis([*losses, *([power.at_budget] if power.at_budget > 0.0 else [])], height - 44.0, 10.0)
        body = frame(x, y, "total probability of the outputs", "loss (nats)", width, gutters=False)
        if power.blind_mass is not None:
            blind = math.sqrt(power.blind_mass * curves[KNOWN][-1][0])
            body.append(tag("rect", x=48.0, y=10.0, width=x(blind) - 48.0, height=height - 54.0, cls="band"))
        if power.at_budget > 0.0:
            at = y(power.at_budget)
            body.append(tag("path", d=points([(48.0, at), (width - 12.0, at)]), cls="limit"))
        numbers = {KNOWN: 0} | {form: k for k, form in _numbered(curves)}
        for form, curve in curves.items():
            drawn_at = [(x(mass), y(loss)) for mass, loss in curve]
            cls = f"curve w{numbers[form]}"
            if len(drawn_at) > 1:
                body.append(tag("path", d=points(drawn_at), cls=cls))
            body += [tag("circle", cx=at, cy=high, r=3.5, cls=cls) for at, high in drawn_at]
        return svg(body, width, height, description)

    return drawn
