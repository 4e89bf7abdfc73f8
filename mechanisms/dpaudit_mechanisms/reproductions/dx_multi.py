"""DX-E4.2: the three strategies for K = 1 to 10 queries on random places, figure 2 (c) and (d), and their times.

For each K, 100 matrices with entries uniform on [0, 1] and 100 with entries in {0, 1} on each of several draws of
places. The improvement factor is the geometric mean over the queries of the ordinary mechanism's scale over c_k; a
constant query (a row of equal binary entries) would make it infinite, and is drawn again. Beside the strategies of the
paper: the largest possible factor (`dpaudit_mechanisms.optimal_scales`), on some of the matrices.
"""

import time
from typing import Any

import numpy as np
from scipy import stats

from dpaudit.reproductions.reproduction import COLOURS, MARKERS, Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.noise_scales import improvement_factor, noise_scales
from dpaudit_mechanisms.optimal_scales import optimal_scales
from dpaudit_mechanisms.reproductions.dx_places import ELEMENTS, SIDE, distances, places
from dpaudit_mechanisms.reproductions.fits import significant

DRAWS, MATRICES, MAX_QUERIES, OPTIMA = 5, 100, 10, 10
STRATEGIES = (("Strategy 1", "S1"), ("Strategy 2", "S2"), ("Strategy 3 (PSA)", "PSA"))
KINDS = ("real", "binary")
TIMED, TIMED_QUICKLY = (975, 10), (100, 10)  # elements and queries


def run(options: Options) -> Outcome:
    """The mean factors of all K, both kinds of matrix and all strategies."""
    rng = np.random.default_rng([options.seed, 42])
    draws, matrices, optima = (3, 20, 1) if options.quick else (DRAWS, MATRICES, OPTIMA)
    metrics = [distances(places(rng)) for _ in range(draws)]
    # factors[kind][rule]: (K, draws, matrices)
    factors = {kind: {rule: np.zeros((MAX_QUERIES, draws, matrices)) for _, rule in STRATEGIES} for kind in KINDS}
    best = {kind: np.zeros((MAX_QUERIES, draws, optima)) for kind in KINDS}
    above = {kind: np.zeros(MAX_QUERIES) for kind in KINDS}  # share of matrices where PSA improves less than S2
    for count in range(1, MAX_QUERIES + 1):
        options.tell(f"K = {count} of {MAX_QUERIES}")
        for kind in KINDS:
            for n, metric in enumerate(metrics):
                for m in range(matrices):
                    queries = _matrix(rng, kind, count)
                    for _, rule in STRATEGIES:
                        c = noise_scales(queries, metric, rule)  # type: ignore[arg-type]
                        factors[kind][rule][count - 1, n, m] = improvement_factor(queries, metric, c)
                    if m < optima:
                        c = optimal_scales(queries, metric, "improvement").scales
                        best[kind][count - 1, n, m] = improvement_factor(queries, metric, c)
            worse = factors[kind]["PSA"][count - 1] < factors[kind]["S2"][count - 1] * (1.0 - 1e-9)
            above[kind][count - 1] = worse.mean()
    timed = TIMED_QUICKLY if options.quick else TIMED
    seconds = _seconds(rng, timed)
    means = {kind: {rule: values.mean(axis=(1, 2)) for rule, values in factors[kind].items()} for kind in KINDS}
    return Outcome(
        tables=[*(_table(kind, factors[kind], best[kind], above[kind]) for kind in KINDS), _times(seconds, timed)],
        statements=_statements(factors, means, above),
        numbers={
            "elements": ELEMENTS, "draws": draws, "matrices": matrices,
            "mean_improvement": means,
            "mean_improvement_of_each_draw": {
                kind: {rule: values.mean(axis=2) for rule, values in factors[kind].items()} for kind in KINDS
            },
            "largest_improvement": {
                kind: {rule: values.max(axis=(1, 2)) for rule, values in factors[kind].items()} for kind in KINDS
            },
            "best_possible": {kind: best[kind].mean(axis=(1, 2)) for kind in KINDS},
            "share_of_matrices_where_PSA_improves_less_than_S2": above,
            "seconds": {"elements": timed[0], "queries": timed[1], **seconds},
        },
        draw=lambda figure: _draw(figure, factors, best),
    )  # fmt: skip


def _matrix(rng: np.random.Generator, kind: str, count: int) -> FloatArray:
    """A random matrix of queries, no row of which is constant."""
    while True:
        queries = rng.uniform(size=(count, ELEMENTS))
        if kind == "binary":
            queries = np.rint(queries)
        if (queries.max(axis=1) > queries.min(axis=1)).all():
            return queries


def _seconds(rng: np.random.Generator, timed: tuple[int, int]) -> dict[str, dict[str, float]]:
    """Seconds of each rule on random places, for queries of either kind."""
    elements, count = timed
    metric = distances(rng.uniform(0.0, SIDE, size=(elements, 2)))
    found: dict[str, dict[str, float]] = {}
    for kind in KINDS:
        queries = rng.uniform(size=(count, elements))
        queries = np.rint(queries) if kind == "binary" else queries
        found[kind] = {}
        for _, rule in (*STRATEGIES, ("optimal", "optimal")):
            start = time.perf_counter()
            noise_scales(queries, metric, rule)  # type: ignore[arg-type]
            found[kind][rule] = time.perf_counter() - start
    return found


def _table(kind: str, factors: dict[str, FloatArray], best: FloatArray, above: FloatArray) -> Table:
    printed = {"real": "S3 best", "binary": "S3 best, S1<=1.5"}[kind]
    same = factors["PSA"][:, :, : best.shape[2]]  # of the matrices whose optimum is known
    reached = (100.0 * (same / best).mean(axis=(1, 2))).tolist()
    entries = {"real": "uniform on [0, 1]", "binary": "0 or 1"}[kind]
    rows = [
        [k + 1, *(float(factors[rule][k].mean()) for _, rule in STRATEGIES), reached[k],
         float(factors["S1"][k].mean(axis=1).max()), 100.0 * float(above[k]), printed]
        for k in range(MAX_QUERIES)
    ]  # fmt: skip
    return Table(
        f"Mean improvement factor, entries {entries}",
        ["K", *(rule for _, rule in STRATEGIES), "PSA / best (%)", "S1, top draw", "PSA < S2 (%)", "printed"],
        rows,
        "Mean over matrices and draws of places of the geometric mean over the queries. 'best': the largest possible "
        "factor, known for a tenth of the matrices. 'S1, top draw': the draw of places with the largest mean of S1.",
    )


def _times(seconds: dict[str, dict[str, float]], timed: tuple[int, int]) -> Table:
    rules = [*(rule for _, rule in STRATEGIES), "optimal"]
    return Table(
        f"Seconds for N = {timed[0]} elements and K = {timed[1]} queries", ["entries", *rules],
        [[kind, *(seconds[kind][rule] for rule in rules)] for kind in KINDS],
    )  # fmt: skip


def _statements(factors: Any, means: Any, above: Any) -> list[Statement]:
    best_of_all, gain, below = {}, {}, {}
    for kind in KINDS:
        others = np.maximum(means[kind]["S1"], means[kind]["S2"])[1:]  # K = 1 is one and the same for all strategies
        gain[kind] = means[kind]["PSA"][1:] / others
        best_of_all[kind] = bool((gain[kind] > 1.0).all())
        below[kind] = 100.0 * float(above[kind][1:].mean())
    # Every K >= 2 and kind of matrix is a comparison of its own: matrix by matrix, Strategy 3 against either other one.
    p_values = [
        stats.wilcoxon(np.log(factors[kind]["PSA"][k] / factors[kind][rule][k]).ravel(), alternative="greater").pvalue
        for kind in KINDS for k in range(1, MAX_QUERIES) for rule in ("S1", "S2")
    ]  # fmt: skip
    s1 = factors["binary"]["S1"][1:]  # (K, draws, matrices)
    of_draws = s1.mean(axis=2)
    apart = max(
        float(np.abs(factors[kind]["PSA"][0] / factors[kind][rule][0] - 1.0).max())
        for kind in KINDS
        for rule in ("S1", "S2")
    )
    return [
        Statement(
            "DX-C13",
            "Strategy 3 outperforms the other two for both matrix types (figure 2 c, d)",
            f"on average, for every K >= 2: real {best_of_all['real']}, binary {best_of_all['binary']}; Strategy 2 is "
            f"better for {below['real']:.1f}% (real) and {below['binary']:.1f}% (binary) of single matrices; of "
            f"{len(p_values)} comparisons {significant(p_values)} stand at 5% together (Wilcoxon, Holm)",
            "yes, on average" if all(best_of_all.values()) else "no",
        ),
        Statement(
            "DX-C13",
            "the advantage is much larger for binary matrices",
            f"mean of Strategy 3 over the better of the others, K >= 2: real {gain['real'].mean():.2f}, binary "
            f"{gain['binary'].mean():.2f}",
            "yes" if gain["binary"].mean() > gain["real"].mean() else "no",
        ),
        Statement(
            "DX-C14",
            "Strategy 1 has IF of at most 1.5 for binary matrices",
            f"K >= 2: mean {s1.mean():.2f}; means of a draw and K from {of_draws.min():.2f} to {of_draws.max():.2f}; "
            f"largest of a matrix {s1.max():.2f}",
            "yes" if s1.max() <= 1.5 else "for some draws, on average" if of_draws.min() <= 1.5 else "no",
        ),
        Statement(
            "DX-L2", "for K = 1 the strategies agree (derived)", f"to {apart:.1g}", "yes" if apart < 1e-9 else "no"
        ),
    ]


def _draw(figure: Any, factors: Any, best: Any) -> None:
    for axes, kind in zip(figure.subplots(1, 2, sharex=True), KINDS, strict=True):
        x = np.arange(1, MAX_QUERIES + 1)
        for (name, rule), colour, marker in zip(STRATEGIES, COLOURS, MARKERS, strict=False):
            values = factors[kind][rule]
            of_draws = values.mean(axis=2)
            axes.fill_between(x, of_draws.min(axis=1), of_draws.max(axis=1), color=colour, alpha=0.15, linewidth=0)
            axes.plot(x, values.mean(axis=(1, 2)), color=colour, marker=marker, label=name)
        psa, known = factors[kind]["PSA"], best[kind].shape[2]
        least = psa.mean(axis=(1, 2)) / (psa[:, :, :known] / best[kind]).mean(axis=(1, 2))
        axes.plot(x, least, color="#555555", linestyle="--", label="best possible (ratio on a tenth of the matrices)")
        if kind == "binary":
            axes.axhline(1.5, color="#555555", linestyle=":", linewidth=1.2, label="1.5: printed limit of Strategy 1")
        axes.set(xlabel="number of queries K", ylabel="mean improvement factor IF (ratio)")
        axes.set_title("Entries uniform on [0, 1]" if kind == "real" else "Entries 0 or 1", loc="left", fontsize=10)
        axes.set_ylim(0.0, 1.45 * axes.get_ylim()[1])  # room for the legend
        axes.legend(fontsize=8, frameon=False, loc="upper left", title="mean; band: draws of places", title_fontsize=8)


reproduction = Reproduction(
    "the three strategies for K = 1 to 10 queries on random places (figure 2 c, d)", "DX-E4.2", run
)
