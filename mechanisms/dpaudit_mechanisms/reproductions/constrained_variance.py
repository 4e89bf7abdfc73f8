"""CD-E0: the variance of one coordinate of Laplace noise under a given sum, conditioned and projected, for 2 to 270.

The paper has n = 2 and 3 and simulations for larger n; here both sides are closed forms for every n
(`dpaudit_mechanisms.constrained.laplace_sums`), with exact draws and, for small n, the Gibbs chain of `lines`
beside them.
"""

from typing import Any

import numpy as np

from dpaudit.reproductions.reproduction import COLOURS, Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.constrained.affine import Affine
from dpaudit_mechanisms.constrained.diagnostics import effective_sample_size, split_r_hat
from dpaudit_mechanisms.constrained.equalities import LaplaceOnEqualities
from dpaudit_mechanisms.constrained.laplace_sums import (
    conditional_marginal,
    conditional_variance,
    draw_given_sum,
    projected_variance,
)
from dpaudit_mechanisms.inputs import FloatArray

COUNTS = (2, 3, 4, 5, 8, 16, 32, 64, 128, 270)
CHAINED = (2, 3, 8)  # n with a chain as well
DRAWS, CHAINS, STEPS = 100_000, 500, 200
BINS = np.linspace(-3.0, 3.0, 61)


def run(options: Options) -> Outcome:
    """Compare closed forms with draws, at scale 1."""
    rng = np.random.default_rng([options.seed, 61])
    draws, chains = (2_000, 20) if options.quick else (DRAWS, CHAINS)
    rows: list[list[Any]] = []
    for n in COUNTS:
        options.tell(f"n = {n}")
        size = max(100, draws * 3 // max(n, 3))  # a draw has n coordinates of one law
        exact = draw_given_sum(n, np.zeros(size), rng)
        noise = rng.laplace(size=(size, n))
        projected = noise - noise.mean(axis=1, keepdims=True)
        closed = projected_variance(n), conditional_variance(n)
        rows.append([n, closed[0], float((projected**2).mean()), closed[1], float((exact**2).mean()),
                     closed[1] / closed[0]])  # fmt: skip
    chained = [[n, *_chain(n, chains, rng), conditional_variance(n)] for n in CHAINED]
    three = [np.histogram(sample[:, 0], BINS)[0] / (draws * np.diff(BINS)) for sample in _three(draws, rng)]
    at = {row[0]: row for row in rows}
    # By the closed forms: at n = 270 the two differ by less than runs of a thousand vectors differ by seed.
    largest = max(conditional_variance(n) / projected_variance(n) for n in range(2, 271))
    statements = [
        Statement("CD-P4.1", "projected: 2 (1 - 1/n)", f"n = 3: {at[3][1]:.4f}, runs {at[3][2]:.4f}",
                  "yes" if abs(at[3][2] / at[3][1] - 1.0) < 0.1 else "no"),
        Statement("CD-U3", "conditioned, n = 3: 5/6", f"{at[3][3]:.6f}, runs {at[3][4]:.4f}",
                  "yes" if abs(at[3][3] - 5.0 / 6.0) < 1e-12 and abs(at[3][4] * 6.0 / 5.0 - 1.0) < 0.1 else "no"),
        Statement("CD-U3", "the same ordering for n = 2", f"{at[2][3]:.4f} < {at[2][1]:.4f}",
                  "yes" if at[2][3] < at[2][1] else "no"),
        Statement("CD-U4", "conditioned < projected for every n (conjecture)",
                  f"(2n - 1)(n - 1) / (n (n + 1)) against 2 (n - 1) / n: the ratio (2n - 1) / (2n + 2) is below 1 for "
                  f"every n; largest up to 270: {largest:.4f}",
                  "yes" if largest < 1.0 else "no"),
    ]  # fmt: skip
    columns = ["n", "projected", "its runs", "conditioned", "its runs", "ratio"]
    fewest = max(100, draws * 3 // max(COUNTS))
    note = f"Of one coordinate, at scale 1. Runs: {fewest:,} vectors at n = {max(COUNTS)}, more below."
    steps = STEPS - STEPS // 4
    chain_columns = ["n", "variance", "R-hat", "ESS", "exact"]
    return Outcome(
        [
            Table("Variance of one coordinate given the sum", columns, rows, note),
            Table("The same by a Gibbs chain", chain_columns, chained, f"{chains} chains of {steps} kept steps."),
        ],
        statements,
        {
            "variances": [dict(zip(("n", "projected", "projected_runs", "conditioned", "conditioned_runs", "ratio"),
                                   row, strict=True)) for row in rows],
            "chains": [dict(zip(("n", "variance", "r_hat", "effective_sample_size", "exact"), row, strict=True))
                       for row in chained],
            "largest_ratio": largest,
        },
        lambda figure: _draw(figure, rows, three),
    )  # fmt: skip


def _chain(n: int, chains: int, rng: np.random.Generator) -> list[Any]:
    """Variance, split R-hat and effective sample size of the Gibbs chain's first coordinate."""
    noise = LaplaceOnEqualities(1.0, Affine(np.ones((1, n)))).chains(chains, STEPS, rng)[:, STEPS // 4 :, 0]
    return [float(noise.var()), split_r_hat(noise), round(effective_sample_size(noise**2))]


def _three(draws: int, rng: np.random.Generator) -> list[FloatArray]:
    noise = rng.laplace(size=(draws, 3))
    return [noise - noise.mean(axis=1, keepdims=True), draw_given_sum(3, np.zeros(draws), rng)]


def _draw(figure: Any, rows: list[list[Any]], three: list[FloatArray]) -> None:
    left, right = figure.subplots(1, 2)
    counts = np.arange(2, 271)
    for formula, runs, label, colour, marker in (
        (projected_variance, 2, "projected", COLOURS[1], "s"),
        (conditional_variance, 4, "conditioned", COLOURS[0], "o"),
    ):
        left.plot(counts, [formula(int(n)) for n in counts], color=colour, label=f"{label}, exact")
        left.plot([row[0] for row in rows], [row[runs] for row in rows], marker=marker, linestyle="", color=colour,
                  markersize=5, label=f"{label}, runs")  # fmt: skip
    left.axhline(2.0, color="#555555", linestyle=":", linewidth=1.0, label="without the sum")
    left.set_xscale("log")
    left.set_xticks([2, 3, 5, 10, 30, 100, 270], ["2", "3", "5", "10", "30", "100", "270"], minor=False)
    left.minorticks_off()
    left.set(xlabel="n, number of coordinates", ylabel="variance of one coordinate (squared scales)")
    left.set_title("Conditioning beats projecting for every n", loc="left", fontsize=10)
    left.legend(fontsize=8, frameon=False, loc="lower right")
    middle = 0.5 * (BINS[1:] + BINS[:-1])
    right.plot(middle, three[0], color=COLOURS[1], linestyle="", marker="s", markersize=3, label="projected, runs")
    right.plot(middle, three[1], color=COLOURS[0], linestyle="", marker="o", markersize=3, label="conditioned, runs")
    fine = np.linspace(-3.0, 3.0, 601)
    right.plot(fine, conditional_marginal(3, fine), color=COLOURS[0], label="(1 + |u|) exp(-2|u|) / K, K = 3/2")
    right.set(
        xlabel="noise of one coordinate (scales)",
        ylabel="density",
        ylim=(0.0, 1.4 * float(max(conditional_marginal(3, 0.0), three[0].max()))),
    )
    right.set_title("n = 3: one coordinate of the noise", loc="left", fontsize=10)
    right.legend(fontsize=8, frameon=False, loc="upper right")


reproduction = Reproduction(
    "variance of Laplace noise under a given sum: conditioned against projected (section 4)", "CD-E0", run
)
