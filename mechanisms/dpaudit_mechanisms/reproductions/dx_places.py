"""The synthetic data of the d_X paper's experiments (DX-E4.1): N places drawn uniformly from a square of side 100.

The budget d(i, j) of two places is their Euclidean distance in nats, without scaling. The places of the paper are not
published, so every experiment runs on several draws and says how much they differ.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.privacy.metrics import EuclideanMetric
from dpaudit.reproductions.reproduction import COLOURS
from dpaudit_mechanisms.inputs import FloatArray

ELEMENTS, SIDE, RECORDS = 50, 100.0, 10_000


def places(rng: np.random.Generator) -> FloatArray:
    """Coordinates of the elements, shape (50, 2)."""
    return rng.uniform(0.0, SIDE, size=(ELEMENTS, 2))


def distances(points: FloatArray) -> FloatArray:
    """d(i, j), shape (places, places), in nats."""
    return EuclideanMetric(1.0).matrix(list(points))


def random_histogram(rng: np.random.Generator) -> FloatArray:
    """10,000 records with random shares of the elements (their law is not stated; no scale depends on it)."""
    return rng.multinomial(RECORDS, rng.dirichlet(np.ones(ELEMENTS))).astype(float)


def smallest_distance(metric: FloatArray) -> float:
    """min d(i, j) over i != j."""
    return float(metric[~np.eye(len(metric), dtype=bool)].min())


def element_improvements(metric: FloatArray) -> FloatArray:
    """The improvement factor of the query that counts each element, shape (elements,): 1 for the nearest pair (DX-N1).

    Its scale is 1 over the distance to the nearest other element; the ordinary mechanism's is 1 over the least of all.
    """
    nearest = np.where(np.eye(len(metric), dtype=bool), np.inf, metric).min(axis=1)
    return np.asarray(nearest / nearest.min())


def draw_map(axes: Any, points: FloatArray, factors: FloatArray, size: float) -> None:
    """Each element at its place, coloured by its improvement factor on a logarithmic scale."""
    from matplotlib.colors import LogNorm

    order = np.argsort(-factors)  # the protected ones, which are few, on top
    norm = LogNorm(1.0, max(float(factors.max()), 1.1))
    look = {"s": size, "cmap": "viridis", "norm": norm, "linewidths": 0.3, "edgecolors": "black"}
    image = axes.scatter(points[order, 0], points[order, 1], c=factors[order], **look)
    bar = axes.figure.colorbar(image, ax=axes)
    bar.set_label("improvement factor of the element's count", fontsize=8)


def summary(values: FloatArray) -> dict[str, float]:
    """Mean, median, quantiles and extremes of an array."""
    low, median, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return {"mean": float(values.mean()), "min": float(values.min()), "5%": low, "median": median, "95%": high,
            "max": float(values.max())}  # fmt: skip


def histogram(axes: Any, groups: Sequence[tuple[str, FloatArray]], quantity: str, top: float | None = None) -> None:
    """Outlines of the distributions of several groups of values on the same bins, as shares of each group."""
    values = np.concatenate([group for _, group in groups])
    high = float(values.max()) if top is None else top
    bins = np.linspace(float(values.min()), high, 41)
    for (label, group), colour in zip(groups, COLOURS, strict=False):
        beyond = int((group > high).sum())
        shown = f"{label} ({beyond} of {len(group)} beyond)" if beyond else label
        axes.hist(group, bins=bins, weights=np.full(len(group), 100.0 / len(group)), histtype="step", linewidth=1.6,
                  color=colour, label=shown)  # fmt: skip
    axes.set(xlabel=quantity, ylabel="share of the queries (%)")
    axes.legend(fontsize=8, frameon=False)
