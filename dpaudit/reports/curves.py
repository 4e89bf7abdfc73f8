"""Curves of what was promised and measured of the worst pair: its privacy profile and its trade-off.

A rule that guesses x where an output is in S1, and x' where it is in S0, has on labelled draws P(correct) =
(P(S1) + Q(S0)) / 2 and P(wrong) = (Q(S1) + P(S0)) / 2. With delta(e) the larger of the two directions of the profile,

    delta(e) >= P(correct) - exp(e) P(wrong)          for every e >= 0,

and the point (P(wrong), 1 - P(correct)) lies on or above the trade-off curve that a symmetric promise allows.

Validity: in fixed mode the rule was fitted before the draws it was counted on, and Clopper-Pearson limits, each at half
of the pair's share of the error rate, hold for all e at once. They have an error rate of their own, beside that of the
bounds. In sequential mode the rule is the best of several and the number of draws depends on the draws: what is drawn
there is an estimate without confidence, and is called so; only the bound of the verdict is marked on it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from dpaudit.inference.binomial import binomial_lower
from dpaudit.privacy.claims import ApproxDP, GaussianDP, ZeroConcentratedDP
from dpaudit.reports import wording
from dpaudit.reports.drawing import Figure, Plot, Scale, Series, Table
from dpaudit.reports.wording import compared, lower_text, name_text, number_text, rate_text
from dpaudit.reports.words import joined, said
from dpaudit.results.model import AuditResult, Finding
from dpaudit.results.trade_off import TradeOffPoint

STEPS = 60  # points of a curve, less one
LARGEST_EPSILON = 30.0  # on the axis

Curve = Callable[[float], float]
N_ROWS = 16  # about, of the table of a trade-off curve


@dataclasses.dataclass(frozen=True)
class Measured:
    """Guesses of a rule: the shares of draws it got right and wrong, and where they hold a lower and an upper limit."""

    correct: float
    wrong: float
    limits: tuple[float, float] | None
    draws: int

    @property
    def deviation(self) -> float:
        """Standard error of the estimate at epsilon 0. How the rule was chosen is not in it."""
        spread = self.correct + self.wrong - (self.correct - self.wrong) ** 2
        return math.sqrt(spread / self.draws)


def lower_curve(correct: float, wrong: float, grid: Sequence[float]) -> list[tuple[float, float]]:
    """The lower curve of the profile that these shares show."""
    return [(epsilon, max(0.0, correct - math.exp(epsilon) * wrong)) for epsilon in grid]


def measured(result: AuditResult, finding: Finding) -> Measured | None:
    """Say what the witness of a pair measured; None where it is no guessing rule or guessed nothing.

    None for a run of guesses as well, in results of earlier versions: the draws that are counted decided its end.
    """
    witness = finding.witness
    if witness is None or "epsilon" not in witness.line or "order" in witness.line or witness.rule.get("run"):
        return None
    draws = witness.correct + witness.wrong + witness.abstained
    if witness.correct + witness.wrong == 0:
        return None
    correct, wrong = witness.correct / draws, witness.wrong / draws
    if result.mode != "fixed" or result.universe is not None or not finding.error_share > 0.0:
        return Measured(correct, wrong, None, draws)
    level = finding.error_share / 2.0
    upper = 1.0 - binomial_lower(draws - witness.wrong, draws, level)
    return Measured(correct, wrong, (binomial_lower(witness.correct, draws, level), upper), draws)


def claimed(finding: Finding) -> Curve | None:
    """The promised profile of a pair, delta as a function of epsilon; None where it is not known from the result."""
    budget = finding.parameter_budget
    if not math.isfinite(budget) or not math.isfinite(finding.budget.epsilon):
        return None
    known = {"mu": GaussianDP, "rho": ZeroConcentratedDP}.get(finding.parameter)
    if known is not None:  # unless a claim of the user's own has a parameter of this name
        claim, at = known(budget), finding.budget
        is_own = not math.isclose(claim.epsilon_at(at.delta), at.epsilon, rel_tol=1e-2)
        return None if is_own else claim.profile if isinstance(claim, GaussianDP) else _concentrated(budget)
    if finding.parameter == "epsilon" and budget == finding.budget.epsilon:
        return ApproxDP(budget, finding.budget.delta).profile
    return None


def _concentrated(rho: float) -> Curve:
    """The profile that rho-zCDP promises: the inverse of epsilon = rho + 2 sqrt(rho log(1 / delta)) in delta."""
    return lambda epsilon: math.exp(-(max(0.0, epsilon - rho) ** 2) / (4.0 * rho)) if rho > 0.0 else 0.0


def profile(result: AuditResult) -> Figure | None:
    """The privacy profile of the worst pair: what is promised, and what its rule measured; None where not known."""
    chosen = _chosen(result)
    if chosen is None:
        return None
    finding, promise, seen = chosen
    bound = finding.epsilon_lower if math.isfinite(finding.epsilon_lower) else 0.0
    top = min(LARGEST_EPSILON, max(1.5 * finding.budget.epsilon, 1.3 * bound, 0.2))
    grid = [top * step / STEPS for step in range(STEPS + 1)]
    pair, (lower, budget) = name_text(finding.id, 60), compared(finding.epsilon_lower, finding.budget.epsilon)
    promised_text = "" if wording.is_weaker(finding) else f", promised {budget}"
    facts = {"pair": pair, "top": number_text(top, 3), "lower": lower, "delta": number_text(finding.budget.delta)}
    description = said("figure.profile", **facts, promised=promised_text)
    series = [Series("claimed", [(e, promise(e)) for e in grid], "promised: the true curve must lie on or below it")]
    if seen is not None:
        unsure = "" if seen.limits else ", without confidence"
        words = {"draws": seen.draws, "error": number_text(seen.deviation, 2), "unsure": unsure}
        curve = lower_curve(seen.correct, seen.wrong, grid)
        series.append(Series("estimated", curve, said("figure.profile_estimate", **words)))
    high = 1.08 * max(1e-9, *(height for one in series for _, height in one.points))
    if seen is not None and seen.limits:
        limit = f"measured: lower limit, all ε at once, error rate {rate_text(finding.error_share)} of its own"
        series.append(Series("confident", lower_curve(*seen.limits, grid), limit, text=lower_text))
    if 0.0 < bound <= top:
        foot, right = max(finding.budget.delta, 0.0), f"lower bound of the audit, ε {wording.no_less(lower)}"
        series.append(Series("bound", [(bound, high), (bound, foot)], f"{right}: the true curve passes right of it"))
        series.append(Series("bound-end", [(bound, foot)], kind="dots"))
    plot = Plot(Scale("ε (nats)", 0.0, top), Scale("δ", 0.0, high), tuple(series))
    title = f"Privacy profile of the worst pair, {pair}"
    return plot.figure("profile", title, description, said("figure.profile_note"))


def trade_off(result: AuditResult) -> Figure | None:
    """The trade-off of the worst pair: the least error of the second kind that the promise leaves, and the rule's."""
    chosen = _chosen(result)
    if chosen is None:
        return None
    finding, promise, seen = chosen
    top = min(LARGEST_EPSILON, max(4.0 * finding.budget.epsilon, 4.0))
    lines = [(top * step / 100.0, promise(top * step / 100.0)) for step in range(101)]
    lines.append((bend := min(finding.budget.epsilon, LARGEST_EPSILON), promise(bend)))  # of a pure claim's curve

    def least(alpha: float) -> float:
        found = [max(1.0 - d - math.exp(e) * alpha, math.exp(-e) * (1.0 - d - alpha)) for e, d in lines]
        return max(0.0, *found)

    pair, rule = name_text(finding.id, 60), ""
    promised = [(step / STEPS, least(step / STEPS)) for step in range(STEPS + 1)]
    series = [Series("blind", [(0.0, 1.0), (1.0, 0.0)], "guessing blindly")]
    series.append(Series("claimed", promised, "promised: nobody gets below it"))
    if seen is not None:
        second = 1.0 - seen.correct
        rule = said("figure.trade_off_rule", first=number_text(seen.wrong, 3), second=number_text(second, 3))
        unsure = "" if seen.limits else ", without confidence"
        series.append(Series("estimated", _hull(seen.wrong, second), f"the rule of this pair: estimate{unsure}"))
        if seen.limits:
            limit = f"the rule of this pair: upper limit, error rate {rate_text(finding.error_share)} of its own"
            series.append(Series("confident", _hull(seen.limits[1], 1.0 - seen.limits[0]), limit))
        series.append(Series("estimate-end", [(seen.wrong, second)], kind="dots"))
    kinds = Scale("type I error", 0.0, 1.0), Scale("type II error", 0.0, 1.0)
    plot = Plot(*kinds, tuple(one for one in series if one.points))
    description, title = said("figure.trade_off", pair=pair, rule=rule), f"Trade-off curve of the worst pair, {pair}"
    return plot.figure("trade-off", title, description, said("figure.trade_off_note"))


def band(result: AuditResult) -> Figure | None:
    """The confidence band for the trade-off function of the clearest pair, where the audit drew one."""
    found = result.trade_off
    if found is None or not found.points:
        return None
    drawn = trade_off_figure(found.points, result.confidence, of=f": the pair {name_text(found.pair, 60)}")
    return dataclasses.replace(drawn, note=joined(drawn.note, wording.monotone_sentence(result)))


def _chosen(result: AuditResult) -> tuple[Finding, Curve, Measured | None] | None:
    worst = result.worst
    if worst is None or worst.verdict == "error":
        return None
    promise = claimed(worst)
    return None if promise is None else (worst, promise, measured(result, worst))


def _hull(first: float, second: float) -> list[tuple[float, float]]:
    """The best that mixtures of one test, its mirror image and blind guessing reach; empty if it is no better."""
    if first + second >= 1.0:
        return []
    corner = sorted([(first, second), (second, first)])
    return [(0.0, 1.0), *corner, (1.0, 0.0)]


def trade_off_figure(known_at: Sequence[TradeOffPoint], confidence: float, of: str = "") -> Figure:
    """The band for the trade-off function against the claim's curve; `of` says whose it is, at the end of the title."""
    description = said("figure.band", sure=wording.sure_text(confidence))
    claimed = [(point.type_one, point.claimed) for point in known_at]
    upper = [(point.type_one, point.upper) for point in known_at]
    lower = [(one.type_one, one.thresholds_lower) for one in known_at if one.thresholds_lower is not None]
    series = [Series("limit", claimed, "the claim allows no attack below")]
    sure = f"with {wording.sure_text(confidence)} confidence"
    series.append(Series("curve w0", upper, f"some attack is at or below, {sure}"))
    if lower:
        description, label = joined(description, said("figure.band_lower")), "no threshold of this score is below"
        series.append(Series("curve w1", staircase(lower), f"{label}, {sure}"))
    plot = Plot(Scale("type I error", 0.0, 1.0), Scale("type II error", 0.0, 1.0), tuple(series))
    some = sorted({*range(0, len(known_at), max(1, len(known_at) // N_ROWS)), len(known_at) - 1})
    rows = tuple(  # the points that were measured: between them the claim's curve is below its chord
        (number_text(one.type_one, 3), number_text(one.claimed, 3), wording.upper_text(one.upper, 3),
         lower_text(one.thresholds_lower, 3))[: 3 + bool(lower)]
        for one in (known_at[k] for k in some)
    )  # fmt: skip
    columns = ("type I error", "claimed at least", "at most", "thresholds at least")[: 3 + bool(lower)]
    data = Table("", columns, rows, len(known_at) - len(rows))
    return plot.figure(
        "trade-off-band", f"Trade-off between the errors of an attack{of}", description, said("figure.band_note"), data
    )


def staircase(known: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
    """The corners of a staircase below a convex limit that falls: each step has the height of its right end.

    A chord of the limit would lie above it, and say too much.

    Examples
    --------
    >>> staircase([(0.0, 1.0), (0.5, 0.2), (1.0, 0.0)])
    [(0.0, 0.2), (0.5, 0.2), (0.5, 0.0), (1.0, 0.0)]
    """
    return [corner for left, right in pairwise(known) for corner in ((left[0], right[1]), right)]
