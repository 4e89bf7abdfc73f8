"""UP-E1: triangle counts of all 1,044 graphs with 7 nodes under edge privacy, figure 6: expected errors over Ladder's.

Above: the privacy-first mechanism (UP-T2). Below: the widened one (UP-T3) with width 1 for the first 100 graphs and 0
for the others. Ladder is the published algorithm with 2 epsilon for its epsilon, so that one level weighs epsilon for
all, and with the counts that occur as its range. Everything is exact: nothing is drawn. g_1, g_2, ... are in the order
of networkx's atlas, by number of edges; the paper states no order.
"""

import time
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm

from dpaudit.reproductions.reproduction import Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.two_metrics import FiniteSpaces, GraphClasses, Ladder, PrivacyFirst, WidenedPrivacyFirst

NODES, PRINTED_GRAPHS, PRINTED_COUNTS, WIDENED = 7, 1044, 28, 100
EPSILONS = (0.1, *np.arange(0.25, 5.01, 0.25).tolist())
SHOWN = (0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
FROM = 0.5  # of the first printed conclusion


def run(options: Options) -> Outcome:
    """Distances, levels and expected errors of all graphs; `quick` takes the epsilons of the table only."""
    start = time.perf_counter()
    classes = GraphClasses(NODES)
    spaces = classes.spaces()
    options.tell(f"{spaces.datasets} graphs, {spaces.outcomes} counts")
    epsilons = [e for e in EPSILONS if e in SHOWN] if options.quick else list(EPSILONS)
    widths = np.zeros(spaces.datasets)
    widths[:WIDENED] = 1.0
    rates = {"privacy first": np.zeros((len(epsilons), spaces.datasets))}
    rates["widened"] = np.zeros_like(rates["privacy first"])
    # The order of the hundred is not printed: the atlas's, its reverse, and by triangles (UP-E1).
    hundreds = {"atlas": np.arange(WIDENED), "reverse": np.arange(spaces.datasets)[-WIDENED:],
                "most triangles": np.argsort(-classes.triangles, kind="stable")[:WIDENED]}  # fmt: skip
    worse: dict[str, list[float]] = {name: [] for name in hundreds}
    exact: list[dict[str, float]] = []
    for n, epsilon in enumerate(epsilons):
        ladder = Ladder(spaces, epsilon)
        plain, wide = PrivacyFirst(spaces, epsilon), WidenedPrivacyFirst(spaces, epsilon, widths)
        for name, mechanism in (("privacy first", plain), ("widened", wide)):
            rates[name][n] = mechanism.expected_error() / ladder.expected_error()
        for name, chosen in hundreds.items():
            own = np.zeros(spaces.datasets)
            own[chosen] = 1.0
            errors = WidenedPrivacyFirst(spaces, epsilon, own).expected_error()[chosen]
            worse[name].append(float((errors > ladder.expected_error()[chosen]).mean()))
        if epsilon in SHOWN:
            exact.append({"epsilon": epsilon, "privacy first": plain.epsilon_exact, "widened": wide.epsilon_exact,
                          "ladder": ladder.epsilon_exact})  # fmt: skip
    seconds = time.perf_counter() - start
    return Outcome(
        tables=[_rates_table(epsilons, rates), _losses_table(exact)],
        statements=_statements(spaces, epsilons, rates, worse),
        numbers={"graphs": spaces.datasets, "counts": classes.counts(), "epsilons": epsilons, "seconds": seconds,
                 "largest_distance": float(classes.distances.max()), "exact_losses": exact,
                 "median_rates": {name: np.median(found, axis=1) for name, found in rates.items()},
                 "share_better": {name: (found < 1.0).mean(axis=1) for name, found in rates.items()},
                 "share_worse_of_widened": worse},
        draw=lambda figure: _draw(figure, epsilons, rates),
        size=(9.0, 6.5),
    )  # fmt: skip


def _rates_table(epsilons: list[float], rates: dict[str, FloatArray]) -> Table:
    rows: list[list[Any]] = []
    for n, epsilon in enumerate(epsilons):
        if epsilon in SHOWN:
            plain, wide = rates["privacy first"][n], rates["widened"][n, :WIDENED]
            rows.append([epsilon, float(np.median(plain)), float(plain.min()), float(plain.max()),
                         100.0 * float((plain < 1.0).mean()), float(np.median(wide)),
                         100.0 * float((wide > 1.0).mean())])  # fmt: skip
    return Table(
        "Expected error over Ladder's",
        ["epsilon (nats)", "UP-T2 median", "least", "largest", "better (% of graphs)", f"UP-T3 median, first {WIDENED}",
         f"worse (% of first {WIDENED})"],
        rows,
        "Below 1 is better than Ladder. Both have the weight epsilon a level, and so the same bound 2 epsilon.",
    )  # fmt: skip


def _losses_table(exact: list[dict[str, float]]) -> Table:
    return Table(
        "True privacy loss: the largest over all graphs that differ by one edge",
        ["epsilon", "bound 2 epsilon", "UP-T2", "UP-T3", "Ladder"],
        [[row["epsilon"], 2.0 * row["epsilon"], row["privacy first"], row["widened"], row["ladder"]] for row in exact],
        "In nats, exact.",
    )


def _statements(
    spaces: FiniteSpaces, epsilons: list[float], rates: dict[str, FloatArray], worse: dict[str, list[float]]
) -> list[Statement]:
    from_there = [n for n, epsilon in enumerate(epsilons) if epsilon >= FROM]
    better = (rates["privacy first"][from_there] < 1.0).mean(axis=1)
    mostly = {name: sum(share > 0.5 for share in shares) for name, shares in worse.items()}
    agree = [2 * count > len(epsilons) for count in mostly.values()]
    sizes_agree = (spaces.datasets, spaces.outcomes) == (PRINTED_GRAPHS, PRINTED_COUNTS)
    return [
        Statement("UP-E1", f"{PRINTED_GRAPHS} graphs, {PRINTED_COUNTS} counts",
                  f"{spaces.datasets} graphs, {spaces.outcomes} counts", "yes" if sizes_agree else "no"),
        Statement("UP-E1", f"UP-T2 is better for most graphs when epsilon >= {FROM:g}",
                  f"for at least {100.0 * better.min():.1f}% of the graphs at each of {len(from_there)} values",
                  "yes" if better.min() > 0.5 else "no"),
        Statement("UP-E1", f"UP-T3: {WIDENED} graphs, in an order that is not printed, are worse for most epsilon",
                  "most of them at " + ", ".join(f"{count} ({name})" for name, count in mostly.items())
                  + f" of {len(epsilons)} values", "yes" if all(agree) else "in part" if any(agree) else "no"),
    ]  # fmt: skip


def _draw(figure: Any, epsilons: list[float], rates: dict[str, FloatArray]) -> None:
    axes = figure.subplots(2, 1, sharex=True)
    titles = {
        "privacy first": "Privacy first (UP-T2)",
        "widened": f"Widened by 1 on the first {WIDENED} graphs (UP-T3)",
    }
    scale = LogNorm(0.25, 4.0)
    for one, (name, found) in zip(axes, rates.items(), strict=True):
        image = one.pcolormesh(np.arange(1, found.shape[1] + 1), epsilons, found, norm=scale, cmap="RdBu_r",
                               shading="nearest", rasterized=True)  # fmt: skip
        one.set_ylabel("epsilon (nats a level)")
        one.set_title(titles[name], loc="left", fontsize=10)
        if name == "widened":
            one.axvline(WIDENED + 0.5, color="black", linewidth=1.0, linestyle="--", label=f"graph {WIDENED}")
            one.legend(fontsize=8, loc="lower right")
        bar = figure.colorbar(image, ax=one, extend="both", ticks=[0.25, 0.5, 1.0, 2.0, 4.0])
        bar.ax.set_yticklabels(["1/4", "1/2", "1", "2", "4"])
        bar.ax.minorticks_off()
        bar.set_label("expected error / Ladder's", fontsize=8)
    axes[1].set_xlabel("graph g_i, in the order of the atlas (by edges)")


reproduction = Reproduction("triangle counts of all graphs with 7 nodes against Ladder (figure 6)", "UP-E1", run)
