"""CD-E1: Metropolis-Hastings against TopDown on taxi trips, table 3: the city, six boroughs, 263 zones.

The paper does not say what the noise's scale is, nor how long chains run, nor how TopDown projects. Ours: a trip counts
on three levels, so that the scale is 3 / epsilon at every node; beside it 1 / epsilon, for a budget that each level has
for itself. TopDown fixes the noisy root and moves each node's children to the nearest numbers with the right sum.
Without non-negative counts no error depends on the counts, and every error is proportional to the scale; with them both
methods run on the counts. The chains sample at that scale, as the paper does: the loss of conditioning on non-negative
counts (CD-S7) is not paid for in this comparison.
"""

from typing import Any

import numpy as np

from dpaudit.reproductions.reproduction import COLOURS, MARKERS, Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.constrained.diagnostics import effective_sample_size, split_r_hat
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy, HierarchyConditioned, TopDown, level_errors
from dpaudit_mechanisms.constrained.metropolis import Chains, Inequalities
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.reproductions.taxi_data import TOTAL, from_file, synthetic, tree

EPSILONS = (0.5, 1.0, 2.0)
LEVELS = ("city", "boroughs", "zones")
# Tables 2 and 3: (M_MH, TopDown) for each epsilon and level.
PRINTED = {
    0.5: ((0.013352, 0.036806), (0.028890, 0.162698), (1.680823, 2.345461)),
    1.0: ((0.018244, 0.023974), (0.057345, 0.091148), (1.534053, 1.526361)),
    2.0: ((0.003445, 0.005173), (0.015032, 0.027614), (1.052862, 1.260267)),
}
CHAINS, SWEEPS, BURN_IN = 100, 250, 50
DRAWS = 20_000
CONVERGED = 1.01  # split R-hat above which a run is said to be too short
WATCHED = 8  # nodes per level whose diagnostics are computed, at most


def run(options: Options) -> Outcome:
    """Errors of all methods by level, at each epsilon."""
    rng = np.random.default_rng([options.seed, 62])
    hierarchy = tree()
    counts, source = _counts(options, rng)
    truth = hierarchy.totals(counts)
    chains, sweeps, draws = (10, 16, 200) if options.quick else (CHAINS, SWEEPS, DRAWS)
    # At scale 1: what is proportional to the scale is run once, from epsilon = levels.
    unit = float(hierarchy.levels)
    options.tell("chains without inequalities")
    found, convergence = _chains(hierarchy, np.zeros(hierarchy.nodes), 1.0, chains, sweeps, None, rng)
    plain = {
        "M_MH": found,
        "conditioned": _mean_errors(
            hierarchy, HierarchyConditioned(unit, hierarchy), np.zeros_like(counts), draws, rng
        ),
        "TopDown": _mean_errors(hierarchy, TopDown(unit, hierarchy), np.zeros_like(counts), draws, rng),
        "imaging": _imaging(hierarchy, draws, rng),
    }
    limits = Inequalities.non_negative(hierarchy)
    non_negative: dict[float, dict[str, FloatArray]] = {}
    for epsilon in EPSILONS:
        options.tell(f"chains with non-negative counts, epsilon = {epsilon:g}")
        scale = hierarchy.levels / epsilon
        errors, limited = _chains(hierarchy, truth, scale, chains, sweeps, limits, rng)
        convergence += [{**row, "level": f"{row['level']}, >= 0, eps {epsilon:g}"} for row in limited]
        released = TopDown(epsilon, hierarchy, non_negative=True)
        non_negative[epsilon] = {"M_MH": errors, "TopDown": _mean_errors(hierarchy, released, counts, draws, rng)}
    numbers = {
        "counts": source,
        "errors_at_scale_1": {name: values / hierarchy.nodes for name, values in plain.items()},
        "non_negative": {f"{e:g}": {name: v / hierarchy.nodes for name, v in row.items()}
                         for e, row in non_negative.items()},
        "convergence": convergence,
    }  # fmt: skip
    return Outcome(
        [*_comparison(hierarchy, plain, non_negative, source), _convergence(convergence, chains, sweeps)],
        _statements(hierarchy, plain, non_negative, max(row["r_hat"] for row in convergence)),
        numbers,
        lambda figure: _draw(figure, hierarchy, plain, non_negative),
        (11.0, 4.2),
    )


def _counts(options: Options, rng: np.random.Generator) -> tuple[FloatArray, str]:
    if options.data:
        counts, without = from_file(options.data)
        return counts, f"{int(counts.sum()):,} trips of the given file, {without:,} without a zone left out"
    return synthetic(rng), f"{TOTAL:,} synthetic trips (no file was given)"


def _mean_errors(hierarchy: Hierarchy, mechanism: Any, counts: FloatArray, draws: int, rng: Any) -> FloatArray:
    truth = hierarchy.totals(counts)
    return np.asarray(level_errors(hierarchy, truth, mechanism.sample(counts, draws, rng)).mean(axis=0))


def _imaging(hierarchy: Hierarchy, draws: int, rng: np.random.Generator) -> FloatArray:
    """The nearest consistent tree of all nodes at once, at scale 1."""
    noise = hierarchy.image(rng.laplace(size=(draws, hierarchy.nodes)))
    return np.asarray(level_errors(hierarchy, np.zeros(hierarchy.nodes), noise).mean(axis=0))


def _chains(
    hierarchy: Hierarchy, truth: FloatArray, scale: float, chains: int, sweeps: int, limits: Inequalities | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, list[dict[str, Any]]]:  # fmt: skip
    """Mean errors by level after the burn-in, and the convergence of some nodes of each level."""
    start = hierarchy.image(truth + rng.laplace(scale=scale, size=(chains, hierarchy.nodes)))[:, -hierarchy.leaves :]
    running = Chains(hierarchy, truth, scale, start if limits is None else np.maximum(start, 0.0), limits)
    watched = np.concatenate([np.flatnonzero(hierarchy.depth == d)[:WATCHED] for d in range(hierarchy.levels)])
    errors, kept = [], []
    for i in range(sweeps):
        running.sweep(rng)
        if i >= min(BURN_IN, sweeps // 2):
            states = running.states()
            errors.append(level_errors(hierarchy, truth, states).mean(axis=0))
            kept.append(states[:, watched])
    nodes = np.stack(kept, axis=1)  # (chains, sweeps, watched)
    found = [
        {
            "level": LEVELS[d], "draws": nodes.shape[0] * nodes.shape[1],
            "r_hat": max(split_r_hat(nodes[:, :, j]) for j in np.flatnonzero(hierarchy.depth[watched] == d)),
            "effective_sample_size": min(
                effective_sample_size(nodes[:, :, j]) for j in np.flatnonzero(hierarchy.depth[watched] == d)
            ),
        }
        for d in range(hierarchy.levels)
    ]  # fmt: skip
    return np.mean(errors, axis=0), found


def _comparison(hierarchy: Hierarchy, plain: Any, non_negative: Any, source: str) -> list[Table]:
    first: list[list[Any]] = []
    second: list[list[Any]] = []
    for epsilon in EPSILONS:
        scale = hierarchy.levels / epsilon
        for d, level in enumerate(LEVELS):
            unit = {name: values[d] / hierarchy.nodes for name, values in plain.items()}
            limited = {name: values[d] / hierarchy.nodes for name, values in non_negative[epsilon].items()}
            first.append([epsilon, level, *PRINTED[epsilon][d], scale * unit["M_MH"], scale * unit["TopDown"]])
            other = [scale * unit["imaging"], unit["M_MH"] / epsilon, unit["TopDown"] / epsilon]
            second.append([epsilon, level, *other, limited["M_MH"], limited["TopDown"]])
    note = f"Mean sum of |error| over the level / {hierarchy.nodes}, in trips. Noise of scale 3/eps. TD: TopDown."
    further = (
        "Imaging: the nearest consistent tree. 1/eps: noise of that scale. >= 0: with non-negative counts, at 3/eps; "
        f"{source}."
    )
    return [
        Table("Table 3: errors by level", ["eps", "level", "MH, printed", "TD, printed", "MH", "TD"], first, note),
        Table("Other readings", ["eps", "level", "imaging", "MH 1/eps", "TD 1/eps", "MH >= 0", "TD >= 0"], second,
              further),
    ]  # fmt: skip


def _convergence(found: list[dict[str, Any]], chains: int, sweeps: int) -> Table:
    rows = [[r["level"], r["draws"], r["r_hat"], round(r["effective_sample_size"]),
             "run longer" if r["r_hat"] > CONVERGED else ""] for r in found]  # fmt: skip
    burned = min(BURN_IN, sweeps // 2)
    note = f"{chains} chains of {sweeps} sweeps, the first {burned} left out; worst of up to {WATCHED} nodes."
    return Table("Convergence of M_MH", ["level", "draws", "R-hat", "ESS", f"above {CONVERGED}"], rows, note)


def _statements(hierarchy: Hierarchy, plain: Any, non_negative: Any, r_hat: float) -> list[Statement]:
    better = sum(row[0] < row[1] for rows in PRINTED.values() for row in rows)
    ours = sum(plain["M_MH"][d] < plain["TopDown"][d] for d in range(3))
    rises = [
        f"{name}, {LEVELS[d]}: {PRINTED[a][d][k]} at {a:g}, {PRINTED[b][d][k]} at {b:g}"
        for k, name in enumerate(("M_MH", "TopDown"))
        for d in range(3)
        for a, b in ((0.5, 1.0), (1.0, 2.0))
        if PRINTED[b][d][k] >= PRINTED[a][d][k]
    ]
    falls = [PRINTED[0.5][2][k] / PRINTED[2.0][2][k] for k in (0, 1)]
    limited = [non_negative[0.5][name][2] / non_negative[2.0][name][2] for name in ("M_MH", "TopDown")]
    ratio = [plain["M_MH"][d] / plain["TopDown"][d] for d in range(3)]
    off = np.abs(plain["M_MH"] / plain["conditioned"] - 1.0).max()
    return [
        Statement("CD-E2", "in most cases M_MH is more accurate than TopDown",
                  f"printed: {better} of 9; ours: {ours} of 3 levels at every epsilon, errors "
                  + ", ".join(f"{100.0 * r:.0f}%" for r in ratio) + " of TopDown's (city, boroughs, zones)",
                  "yes" if ours >= 2 else "no"),
        Statement("CD-E2", "errors of all algorithms decrease as the budget grows",
                  "ours fall as 1/eps in the mean; printed, not all do: " + "; ".join(rises),
                  "no: not in the printed table" if rises else "yes"),
        Statement("CD-E1", "zones, eps 0.5 over eps 2: M_MH "
                  f"{falls[0]:.2f}, TopDown {falls[1]:.2f}",
                  f"4 exactly without inequalities, whatever the scale; {limited[0]:.2f} and {limited[1]:.2f} with "
                  "non-negative counts",
                  "yes" if all(abs(p / q - 1.0) < 0.2 for p, q in zip(falls, limited, strict=True)) else "no"),
        Statement("CD-A1", "M_MH samples the conditional law",
                  f"mean errors within {100.0 * off:.1f}% of those of exact draws; R-hat up to {r_hat:.3f}"
                  + (f", above {CONVERGED}: the chains are short" if r_hat > CONVERGED else ""),
                  "no" if off >= 0.1 else "yes" if r_hat <= CONVERGED else "yes, of short chains"),
    ]  # fmt: skip


def _draw(figure: Any, hierarchy: Hierarchy, plain: Any, non_negative: Any) -> None:
    from matplotlib.ticker import LogLocator, NullLocator

    panels = figure.subplots(1, 3)
    epsilons = np.array(EPSILONS)
    for d, axes in enumerate(panels):
        for k, name in enumerate(("M_MH", "TopDown")):
            unit = plain[name][d] / hierarchy.nodes
            axes.plot(epsilons, hierarchy.levels * unit / epsilons, color=COLOURS[k], marker=MARKERS[k],
                      label=f"{name}, scale 3/eps")  # fmt: skip
            axes.plot(epsilons, unit / epsilons, color=COLOURS[k], linestyle="--", label=f"{name}, scale 1/eps")
            limited = [non_negative[e][name][d] / hierarchy.nodes for e in EPSILONS]
            axes.plot(epsilons, limited, color=COLOURS[k], linestyle=":", label=f"{name}, 3/eps, counts >= 0")
            printed = [PRINTED[e][d][k] for e in EPSILONS]
            axes.plot(epsilons, printed, color="#000000", marker=MARKERS[k], markerfacecolor="none" if k else "#000000",
                      linestyle="", markersize=7, label=f"{name}, printed")  # fmt: skip
        axes.set(xscale="log", yscale="log")
        axes.set_xticks(epsilons, [f"{e:g}" for e in EPSILONS])
        axes.xaxis.minorticks_off()
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_locator(NullLocator())
        axes.set_xlabel("epsilon (nats)")
        axes.set_title(f"Level {d + 1}: {LEVELS[d]}", loc="left", fontsize=10)
    panels[0].set_ylabel("sum of |error| over the level / 270 (trips)")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


reproduction = Reproduction(
    "Metropolis-Hastings against TopDown on taxi trips over 263 zones (table 3)", "CD-E1", run,
    data="trips with a column PULocationID (.parquet, .csv, .csv.gz)",
)  # fmt: skip
