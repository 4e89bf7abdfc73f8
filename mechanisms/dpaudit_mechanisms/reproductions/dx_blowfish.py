"""DX-E4.4: Blowfish and smoothed Blowfish budgets at thresholds T = 2, 4, 8, 16, figures 4 and 5.

Places, queries and mechanism as in DX-E4.1. (i) The mean root mean squared error over 1000 queries as a function of
epsilon: every scale is the one at epsilon = 1 over epsilon, so one computation gives the curve. (ii) At epsilon = 1 the
distribution of the improvement factor over the ordinary epsilon-DP mechanism, (max q - min q) / epsilon over c.

A draw of places without a pair within T = 2 asks nothing of the Blowfish mechanism, which then adds no noise (c = 0, IF
infinite): such a draw is drawn again, and counted. The Blowfish budgets as printed break the triangle inequality; the
smallest repair, their shortest-path closure, is checked to need the same scales.
"""

from typing import Any

import numpy as np

from dpaudit.privacy.finite_metrics import shortest_paths
from dpaudit.privacy.metrics import BlowfishMetric, SmoothBlowfishMetric
from dpaudit.reproductions.reproduction import COLOURS, MARKERS, Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.noise_scales import single_scales
from dpaudit_mechanisms.reproductions import dx_places

DRAWS, QUERIES = 10, 1000
ROUGHLY = 1.5  # our reading of "roughly the same": the ratio of the mean errors; at T = 2 it hangs on the draws
THRESHOLDS = (2.0, 4.0, 8.0, 16.0)
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0)
PRINTED = (0.1, 1.0, 2.0)  # of them, in the table
METRICS = (("Blowfish", BlowfishMetric), ("smoothed", SmoothBlowfishMetric))


def run(options: Options) -> Outcome:
    """The scales of all queries, thresholds and both budgets, at epsilon = 1."""
    rng = np.random.default_rng([options.seed, 44])
    draws, count = (2, 50) if options.quick else (DRAWS, QUERIES)
    scales = {name: np.zeros((len(THRESHOLDS), draws, count)) for name, _ in METRICS}  # c at epsilon = 1
    ordinary, redrawn, broken, changed = np.zeros((draws, count)), 0, np.zeros(len(THRESHOLDS)), 0.0
    for n in range(draws):
        points = dx_places.places(rng)
        while dx_places.smallest_distance(dx_places.distances(points)) > THRESHOLDS[0]:
            points, redrawn = dx_places.places(rng), redrawn + 1
        queries = rng.uniform(size=(count, dx_places.ELEMENTS))
        ordinary[n] = queries.max(axis=1) - queries.min(axis=1)
        for t, threshold in enumerate(THRESHOLDS):
            for name, kind in METRICS:
                budgets = kind(1.0, threshold).matrix(list(points))
                scales[name][t, n] = single_scales(queries, budgets)
                closed = shortest_paths(budgets)
                if name == "Blowfish":
                    broken[t] += float((closed < budgets).any())
                c = single_scales(queries[:10], np.maximum(closed, closed.T))
                changed = max(changed, float(np.abs(c / scales[name][t, n, :10] - 1.0).max()))
    factors = {name: ordinary / values for name, values in scales.items()}  # (thresholds, draws, queries)
    errors = {name: np.sqrt(2.0) * values.mean(axis=(1, 2)) for name, values in scales.items()}
    rows: list[list[Any]] = [
        [threshold, name, *(float(errors[name][t] / epsilon) for epsilon in PRINTED),
         *(dx_places.summary(factors[name][t].ravel())[key] for key in ("mean", "median", "95%"))]
        for t, threshold in enumerate(THRESHOLDS) for name, _ in METRICS
    ]  # fmt: skip
    base = float(np.sqrt(2.0) * ordinary.mean())
    rows.append([None, "ordinary", *(base / epsilon for epsilon in PRINTED), 1.0, 1.0, 1.0])
    return Outcome(
        tables=[Table(
            f"{count} queries on each of {draws} draws of {dx_places.ELEMENTS} places",
            ["T", "budgets", *(f"RMSE eps={epsilon:g}" for epsilon in PRINTED), "mean IF", "median IF", "95% IF"],
            rows,
            "RMSE in units of the query, mean over the queries; IF at epsilon = 1 (its mean under Blowfish at T = 2 is "
            "that of a few queries with hardly any noise). Drawn again because no two places were within "
            f"{THRESHOLDS[0]:g}: {redrawn} draws.",
        )],
        statements=_statements(scales, factors, errors, broken / draws, changed),
        numbers={"elements": dx_places.ELEMENTS, "queries": count, "draws": draws, "redrawn": redrawn,
                 "thresholds": THRESHOLDS, "epsilons": EPSILONS, "mean_rmse_at_epsilon_1": errors,
                 "ordinary_rmse_at_epsilon_1": base,
                 "improvement": {name: [dx_places.summary(values[t].ravel()) for t in range(len(THRESHOLDS))]
                                 for name, values in factors.items()},
                 "share_of_draws_that_break_the_triangle_inequality": broken / draws,
                 "largest_relative_change_by_the_closure": changed},
        draw=lambda figure: _draw(figure, factors, errors, base),
        size=(11.0, 8.0),
    )  # fmt: skip


def _statements(
    scales: dict[str, FloatArray],
    factors: dict[str, FloatArray],
    errors: dict[str, FloatArray],
    broken: FloatArray,
    changed: float,
) -> list[Statement]:
    blow, smooth = scales["Blowfish"], scales["smoothed"]
    rises = all((np.diff(values, axis=0) >= -1e-12 * values[:-1]).all() for values in scales.values())
    tighter = bool((smooth >= blow * (1.0 - 1e-12)).all())
    ratios = errors["smoothed"] / errors["Blowfish"]
    medians = {name: np.median(values, axis=(1, 2)) for name, values in factors.items()}
    better = medians["Blowfish"] / medians["smoothed"]
    listed = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    shares = ", ".join(f"{100 * share:.0f}%" for share in broken)
    return [
        Statement("DX-C16", "a larger T has a larger average error", f"for every query, draw and metric: {rises}",
                  "yes" if rises else "no"),
        Statement("DX-C17", "smoothed is the tighter requirement and has the larger average error",
                  f"for every query, draw and T: {tighter}", "yes" if tighter else "no"),
        Statement("DX-C17", "the two are roughly the same overall",
                  f"mean error of smoothed over Blowfish at T = 2, 4, 8, 16: {listed}",
                  "yes" if ratios.max() < ROUGHLY else "at the larger T" if ratios[-1] < ROUGHLY else "no"),
        Statement("DX-C18", "at low T the IF under Blowfish is better, at higher T the two are roughly alike",
                  "median IF of Blowfish over smoothed: " + ", ".join(f"{value:.2f}" for value in better),
                  "yes" if better[0] > better[-1] > 0.99 else "no"),
        Statement("DX-D-Blow", "d^Blow is a metric (it is used as one)",
                  f"breaks the triangle inequality in {shares} of the draws at T = 2, 4, 8, 16; its closure changes "
                  f"the scales by {changed:.1g}", "no" if broken.any() else "yes"),
    ]  # fmt: skip


def _draw(figure: Any, factors: dict[str, FloatArray], errors: dict[str, FloatArray], base: float) -> None:
    panels = figure.subplots(2, 3).ravel()
    curve, distributions = panels[0], panels[1:5]
    x = np.array(EPSILONS)
    for t, threshold in enumerate(THRESHOLDS):
        for (name, _), style, marker in zip(METRICS, ("-", "--"), MARKERS, strict=False):
            look = {"color": COLOURS[t], "linestyle": style, "marker": marker, "markersize": 4}
            curve.plot(x, errors[name][t] / x, label=f"{name}, T = {threshold:g}", **look)
    curve.plot(x, base / x, color="#555555", linestyle=":", label="ordinary epsilon-DP")
    curve.set(xscale="log", yscale="log", xlabel="epsilon (nats)", ylabel="mean root mean squared error (records)")
    curve.set_title("Error of a query", loc="left", fontsize=10)
    handles, labels = curve.get_legend_handles_labels()
    panels[5].axis("off")
    panels[5].legend(handles, labels, fontsize=8, frameon=False, loc="center", title="first panel", title_fontsize=8)
    for t, (axes, threshold) in enumerate(zip(distributions, THRESHOLDS, strict=True)):
        groups = [(name, factors[name][t].ravel()) for name, _ in METRICS]
        top = float(np.quantile(np.concatenate([group for _, group in groups]), 0.98))
        dx_places.histogram(axes, groups, "improvement factor IF at epsilon = 1 (ratio)", top)
        axes.set_title(f"T = {threshold:g}", loc="left", fontsize=10)


reproduction = Reproduction(
    "Blowfish and smoothed Blowfish budgets at thresholds 2, 4, 8, 16 (figures 4, 5)", "DX-E4.4", run
)
