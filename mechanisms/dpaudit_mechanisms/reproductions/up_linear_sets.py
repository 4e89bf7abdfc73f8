"""UP-E2: one linear query on the line with four neighbouring sets, figures 7 and 8.

Figure 7: the expected error of the widened privacy-first mechanism (UP-T3, one width delta everywhere; delta = 0 is
UP-T2, the discrete K-norm) over that of the best staircase, whose offset is the best for each epsilon: Delta f
e^(epsilon / 2) / (e^epsilon - 1). Figure 8: densities for the first three sets. Everything is exact, by interval
arithmetic. Beside them the staircase with its best offset and Laplace noise of the same epsilon, as in figure 2.
-V_f belongs to each set: a dataset's metric is symmetric, and without it the mechanism is not private.
"""

import math
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm

from dpaudit.reproductions.reproduction import COLOURS, MARKERS, Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.two_metrics import OnTheLine, Profile, query_profile, staircase_profile
from dpaudit_mechanisms.two_metrics.intervals import length, union
from dpaudit_mechanisms.two_metrics.profiles import best_offset

SETS = {
    "V_1": [[0.0, 1.0], [1000.0, 1001.0]],
    "V_2": [[0.0, 100.0], [1000.0, 1001.0]],
    "V_3": [[0.0, 500.0], [1000.0, 1001.0]],
    "V_4": [[0.0, 1001.0]],
}
TOP = 1001.0
PRINTED_VOLUMES = {"V_1": 2.0, "V_2": 101.0, "V_3": 501.0, "V_4": 1001.0}
WIDTHS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0)
EPSILONS = (0.25, *np.arange(0.5, 10.01, 0.5).tolist())
SHOWN = (0.5, 1.0, 3.0, 5.0, 10.0)
FIRST_EPSILON, FIRST_WIDTH, LAST_WIDTH = 3.0, 5.0, 50.0  # the range of the printed conclusion
DENSITY_EPSILON, DENSITY_WIDTH, DENSITY_REACH = 1.0, 5.0, 3200.0


def best_staircase_error(epsilon: float) -> float:
    """E |r| of the staircase with its best offset."""
    return TOP * math.exp(epsilon / 2.0) / math.expm1(epsilon)


def run(options: Options) -> Outcome:
    """Profiles of every set and width, and their rates at every epsilon; `quick` takes two widths."""
    widths = [0.0, 5.0] if options.quick else list(WIDTHS)
    rates: dict[str, FloatArray] = {}
    densities: dict[str, Profile] = {}
    converged: dict[str, float] = {}
    for name, one in SETS.items():
        options.tell(f"{name}: {len(widths)} widths")
        rates[name] = np.zeros((len(EPSILONS), len(widths)))
        for k, width in enumerate(widths):
            profile = query_profile(one, width)
            if width == 0.0:
                converged[name] = profile.first - 1.0
            if width == DENSITY_WIDTH and name != "V_4":
                densities[name] = profile
            for n, epsilon in enumerate(EPSILONS):
                rates[name][n, k] = OnTheLine(profile, epsilon).expected_error() / best_staircase_error(epsilon)
    points = np.arange(0.0, DENSITY_REACH, 0.5) + 0.25
    curves = {name: np.exp(OnTheLine(profile, DENSITY_EPSILON).log_density(0.0, points))
              for name, profile in densities.items()}  # fmt: skip
    beside = {
        "staircase": staircase_density(points, DENSITY_EPSILON),
        "Laplace": DENSITY_EPSILON / (2.0 * TOP) * np.exp(-DENSITY_EPSILON * points / TOP),
    }
    volumes = {name: length(union(one)) for name, one in SETS.items()}
    return Outcome(
        tables=[_rates_table(widths, rates), _convergence_table(converged, volumes)],
        statements=_statements(widths, rates, curves, converged, volumes),
        numbers={"widths": widths, "epsilons": EPSILONS, "rates": rates, "volumes": volumes,
                 "filled_from_level": converged,
                 "largest_densities": {name: float(curve.max()) for name, curve in (curves | beside).items()}},
        draw=lambda figure: _draw(figure, widths, rates, points, curves, beside),
        size=(15.0, 8.0),
    )  # fmt: skip


def staircase_density(points: FloatArray, epsilon: float) -> FloatArray:
    """The density of the staircase with its best offset at deviations from the truth (figure 2)."""
    mechanism = OnTheLine(staircase_profile(TOP, best_offset(TOP, epsilon)), epsilon)
    return np.exp(mechanism.log_density(0.0, points))


def _rates_table(widths: list[float], rates: dict[str, FloatArray]) -> Table:
    kept = [k for k, width in enumerate(widths) if width in (0.0, 5.0, 50.0)]
    rows = [
        [name, widths[k], *(float(found[EPSILONS.index(epsilon), k]) for epsilon in SHOWN)]
        for name, found in rates.items()
        for k in kept
    ]
    return Table(
        "Expected error over that of the best staircase",
        ["set", "delta", *(f"epsilon = {epsilon:g}" for epsilon in SHOWN)],
        rows,
        "Below 1 is better than the staircase; epsilon in nats, delta in query units. Both are epsilon-DP (UP-C1).",
    )


def _convergence_table(converged: dict[str, float], volumes: dict[str, float]) -> Table:
    rows: list[list[Any]] = []
    for name, one in SETS.items():
        bound = math.ceil(TOP / (TOP - one[1][0])) if len(one) == 2 else 1
        rows.append([name, volumes[name], PRINTED_VOLUMES[name], TOP / volumes[name], int(converged[name]), bound])
    return Table(
        "The four sets",
        ["set", "volume", "printed", "Delta f / volume", "levels fill the line from", "Proposition 3: at the latest"],
        rows,
        "From there on each level is one interval of length Delta f on either side (UP-D13).",
    )


def _statements(
    widths: list[float],
    rates: dict[str, FloatArray],
    curves: dict[str, FloatArray],
    converged: dict[str, float],
    volumes: dict[str, float],
) -> list[Statement]:
    inside = [k for k, width in enumerate(widths) if FIRST_WIDTH <= width <= LAST_WIDTH]
    high = [n for n, epsilon in enumerate(EPSILONS) if epsilon >= FIRST_EPSILON]
    region = np.stack([found[np.ix_(high, inside)] for found in rates.values()])  # sets by falling Delta f / volume
    ordered = bool((np.diff(region, axis=0) >= 0.0).all())
    at_0 = {name: found[:, widths.index(0.0)] for name, found in rates.items()}
    worse = {name: [e for e, rate in zip(EPSILONS, found, strict=True) if rate < 1.0] for name, found in at_0.items()}
    exceptions = [f"{name} is better for epsilon from {min(found):g} to {max(found):g}" for name, found in worse.items()
                  if found]  # fmt: skip
    least = float(at_0["V_2"].min())
    rising = [name for name, curve in curves.items() if (np.diff(curve) > 0.0).any()]
    return [
        Statement("UP-E2", "volumes 2, 101, 501, 1001", ", ".join(f"{v:g}" for v in volumes.values()),
                  "yes" if volumes == PRINTED_VOLUMES else "no"),
        Statement("UP-E2", "the larger Delta f / volume, the better, for epsilon >= 3 and 5 <= delta <= 50",
                  f"the order holds at all {region[0].size} points" if ordered else "the order does not hold",
                  "yes" if ordered else "no"),
        Statement("UP-E2", "at delta = 0 it is worse than Staircase for the four sets",
                  "; ".join(exceptions) + f" (least rate {least:.2f})" if exceptions else "so it is at all epsilon",
                  "no" if exceptions else "yes"),
        Statement("UP-F8", "the densities for V_1, V_2, V_3 are not monotone in |r|",
                  f"they rise for {', '.join(rising)}",
                  "yes" if len(rising) == 3 else "no"),
        Statement("UP-P3", "convergent from Delta f / (c - b) = 1001 on", ", ".join(
                  f"{name}: {int(converged[name])}" for name in ("V_1", "V_2", "V_3")),
                  "yes" if max(converged.values()) <= 1001.0 else "no"),
    ]  # fmt: skip


def _draw(
    figure: Any, widths: list[float], rates: dict[str, FloatArray], points: FloatArray, curves: dict[str, FloatArray],
    beside: dict[str, FloatArray],
) -> None:  # fmt: skip
    axes = figure.subplots(2, 4)
    image = None
    for one, panel, (name, found) in zip(axes[0], "abcd", rates.items(), strict=True):
        image = one.pcolormesh(np.arange(len(widths)), EPSILONS, found, norm=LogNorm(0.125, 8.0), cmap="RdBu_r",
                               shading="nearest")  # fmt: skip
        one.contour(np.arange(len(widths)), EPSILONS, found, levels=[1.0], colors="black", linewidths=1.0)
        one.set_xticks(np.arange(len(widths)), [f"{width:g}" for width in widths], fontsize=7, rotation=60)
        one.set_xlabel("delta (units of the query)")
        one.set_title(f"({panel}) {name}, line: equal to the staircase", loc="left", fontsize=9)
    axes[0, 0].set_ylabel("epsilon (nats)")
    bar = figure.colorbar(image, ax=list(axes[0]), extend="both", ticks=[0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
    bar.ax.set_yticklabels(["1/8", "1/4", "1/2", "1", "2", "4", "8"])
    bar.ax.minorticks_off()
    bar.set_label("expected error / best staircase's", fontsize=8)
    for one, (name, curve), colour in zip(axes[1], curves.items(), COLOURS, strict=False):
        one.plot(points, curve, color=colour, linewidth=0.8, label="widened privacy first")
        for (label, other), style in zip(beside.items(), ("-", "--"), strict=True):
            one.plot(points, other, color="#555555", linewidth=0.9, linestyle=style, label=label)
        one.legend(fontsize=6, frameon=False)
        one.set(yscale="log", xlabel="|r - f(x)| (units of the query)", ylabel="density (per unit)")
        title = f"{name}: density, epsilon = {DENSITY_EPSILON:g}, delta = {DENSITY_WIDTH:g}"
        one.set_title(title, loc="left", fontsize=9)
    last = axes[1, 3]
    for (name, found), colour, marker in zip(rates.items(), COLOURS, MARKERS, strict=False):
        last.plot(EPSILONS, found[:, 0], color=colour, marker=marker, markersize=3, linewidth=1.0, label=name)
    last.axhline(1.0, color="black", linewidth=0.8)
    last.set(yscale="log", xlabel="epsilon (nats)", ylabel="expected error / best staircase's")
    last.set_title("delta = 0", loc="left", fontsize=9)
    last.legend(fontsize=7, frameon=False)


reproduction = Reproduction(
    "a linear query with four neighbouring sets against the staircase (figures 7, 8)", "UP-E2", run
)
