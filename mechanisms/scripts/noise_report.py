"""`make noise`: how many runs of a mechanism it takes to refute too little noise, measured and drawn.

Laplace noise of a share of the scale that epsilon = 1 needs is audited on one pair until it is refuted, at 95%
confidence, with several seeds. The table, a line an audit, goes to docs/measurements/noise.csv, and the picture to
docs/images/noise.png. `--saved` draws the table that is there.
"""

import argparse
import csv
import math
import statistics
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit

SHARES = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)  # of the scale that is needed
SAMPLES = 500_000
COLUMNS = ("share", "seed", "verdict", "runs", "bound")


def released(share: float) -> Any:
    """Laplace noise of this share of what epsilon = 1 needs."""

    def release(data: float, size: int, rng: np.random.Generator) -> np.ndarray:
        return data + rng.laplace(scale=share, size=size)

    return release


def measure(path: Path, seed: int, seeds: int) -> None:
    """Audit each share with these seeds, and write a line an audit."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for share in SHARES:
            for one in range(seed, seed + seeds):
                options = {"samples": SAMPLES, "seed": one, "floating_point": False, "severity": False}
                result = dpaudit.audit(released(share), "eps=1", [(0.0, 1.0)], **options)
                table.writerow((share, one, result.verdict, result.samples, f"{result.epsilon_lower:.4f}"))
                print(f"{share:g}, seed {one}: {result.verdict} after {result.samples:,} runs")


def draw(path: Path, picture: Path) -> None:
    """Draw every audit that refuted as a point, and the medians of all audits as a line."""
    from matplotlib.figure import Figure

    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    runs: dict[float, list[float]] = {}
    for row in rows:
        is_found = row["verdict"] == "violated"
        runs.setdefault(float(row["share"]), []).append(int(row["runs"]) if is_found else math.inf)
    figure = Figure(figsize=(7.2, 3.4), dpi=160, layout="constrained")
    axes = figure.subplots()
    medians = {share: statistics.median(each) for share, each in runs.items() if math.isfinite(statistics.median(each))}
    axes.plot(list(medians), list(medians.values()), color="#a81220", linewidth=2)
    points = [(share, one) for share, each in runs.items() for one in each if math.isfinite(one)]
    axes.scatter(*zip(*points, strict=True), s=14, color="#a81220", alpha=0.45)
    for share, median in medians.items():
        axes.annotate(
            f"{median:,.0f}", (share, median), xytext=(-6, 7), textcoords="offset points", ha="right", fontsize=9
        )
    axes.set(yscale="log", xlabel="noise, as a share of what ε = 1 needs", ylabel="runs until it is refuted")
    axes.set_xlim(min(medians) - 0.05, 1.0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    picture.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(picture, metadata={"Software": None})


def main() -> int:
    """Measure, unless the table is there and enough, and draw it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=9)
    parser.add_argument("--table", type=Path, default=Path("docs/measurements/noise.csv"))
    parser.add_argument("--picture", type=Path, default=Path("docs/images/noise.png"))
    parser.add_argument("--saved", action="store_true", help="run nothing: draw the table that is there")
    options = parser.parse_args()
    if not options.saved:
        measure(options.table, options.seed, options.seeds)
    draw(options.table, options.picture)
    print(f"Written: {options.picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
