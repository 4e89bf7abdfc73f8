"""The faults that grey-box auditing found in libraries, re-created from their public descriptions, with mended twins.

Sources: arXiv:2602.17454 and the public files of its artifact (the artifact's appendix lists the failures of its
harness: dpmm, mbi and synthcity, each with the neighbouring data and what was caught; its small examples name the
libraries that each fault is from). Each function here has the fault and no more of the library around it. Nothing is
decorated, and nothing tells the auditor where the noise is.

A `Case` has the function, the fault in its `faulty` form, the claim, the pair, and a part of the line that is to blame.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    mechanism: Callable[..., Any]  # (data, rng, faulty)
    claim: str
    pair: tuple[Any, Any]
    blame: str  # in the line that is to blame

    def version(self, faulty: bool) -> Callable[..., Any]:
        def run(data, rng):
            return self.mechanism(data, rng, faulty)

        return run


# The thirteen violations.


def smartnoise_sum(data, rng, faulty):
    """The sum of the raw values, with noise for clipped ones."""
    clipped = np.clip(data, -5.0, 5.0)
    return np.sum(data if faulty else clipped) + rng.laplace(scale=5.0)  # smartnoise


def dpmm_marginal(data, rng, faulty):
    """Contingency counts of records with two columns, each counted once a column."""
    counts = np.zeros(4)
    for row in data:
        for value in row:
            counts[value] += 1.0 if faulty else 1.0 / len(row)
    return counts + rng.laplace(scale=1.0, size=4)  # dpmm marginal


def diffprivlib_variance(data, rng, faulty):
    """The mean of squares on [0, upper], with the sensitivity of the mean of values."""
    upper, n = 10.0, 8
    scale = (upper if faulty else upper**2) / n
    mean = sum(min(max(value, 0.0), upper) ** 2 for value in data) / n
    return mean + rng.laplace(scale=scale)  # diffprivlib variance


def diffprivlib_classes(data, rng, faulty):
    """Counts of the classes that occur."""
    classes = sorted(set(data)) if faulty else [0, 1, 2]
    return [list(data).count(kind) + rng.laplace(scale=1.0) for kind in classes]  # diffprivlib classes


def dpmm_domain(data, rng, faulty):
    """Bins from the smallest to the largest value."""
    high = int(max(data)) if faulty else 9
    bins = np.bincount(np.clip(data, 0, high), minlength=high + 1)
    return bins + rng.laplace(scale=1.0, size=len(bins))  # dpmm domain


def synthcity_size(data, rng, faulty):
    """A noisy sum over the number of records, which is not noised under addition and removal."""
    total = np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=1.0)  # synthcity size
    return total / len(data) if faulty else total / 10.0


def opacus_batch(data, rng, faulty):
    """A noisy gradient, scaled by the private number of records in the batch."""
    gradient = np.clip(data, -1.0, 1.0).sum() + rng.normal(scale=1.0)  # opacus batch
    return gradient * (1.0 / len(data) if faulty else 1.0 / 4.0)


def synthcity_no_noise(data, rng, faulty):
    """Noise for (features - K) marginals, where K is all of them: the scale is 0."""
    features, kept = 3, 3
    scale = float(features - kept) if faulty else float(features - kept + 1)
    return len(data) + rng.laplace(scale=scale)  # synthcity scale


def synthcity_weak_information(data, rng, faulty):
    """Whether an edge of the network is kept is decided by the true mutual information."""
    information = abs(np.mean([row[0] == row[1] for row in data]) - 0.5)
    weak = information < 0.4 if faulty else information + rng.laplace(scale=1.0) < 0.4
    edges = 0 if weak else 1  # synthcity weak
    table = np.array([len(data), sum(row[0] for row in data)], dtype=float) + rng.laplace(scale=2.0 * 2.0, size=2)
    return {"edges": edges, "table": table}


def mbi_measured(data, rng, faulty):
    """A marginal of replaced records moves by the root of two, noised for one."""
    counts = np.bincount(data, minlength=3).astype(float)
    return counts + rng.normal(scale=1.0 if faulty else np.sqrt(2.0), size=3)  # mbi measured


def mbi_selected(data, rng, faulty):
    """The exponential mechanism on errors that move by 4 where 2 is declared (replacement)."""
    counts = np.bincount(data, minlength=3).astype(float)
    errors = 2.0 * np.array([counts[0] - counts[1], counts[1] - counts[0]])
    return int(np.argmax(errors + rng.gumbel(scale=4.0 if faulty else 8.0, size=2)))  # mbi selected


def mostly_double_spending(data, rng, faulty):
    """Two queries, each with the whole budget."""
    scale = 1.0 if faulty else 2.0
    total = np.clip(data, 0.0, 1.0).sum() + rng.laplace(scale=scale)  # mostly first
    return total, len(data) + rng.laplace(scale=scale)


def nan_passes(data, rng, faulty):
    """NaN passes `numpy.clip` (SmartNoise Synth, dpmm, Synthcity, Opacus, diffprivlib)."""
    values = np.asarray(data, dtype=float)
    values = values if faulty else np.nan_to_num(values)
    return np.clip(values, -5.0, 5.0).sum() + rng.laplace(scale=10.0)  # nan passes


VIOLATIONS = [
    Case("smartnoise sum", smartnoise_sum, "eps=1", ([1.0, -2.0], [1.0, -2.0, 100.0]), "# smartnoise"),
    Case("dpmm sensitivity", dpmm_marginal, "eps=1", ([], [(0, 1)]), "# dpmm marginal"),
    Case(
        "diffprivlib sensitivity", diffprivlib_variance, "eps=1",
        ([1.0] * 7, [1.0] * 7 + [10.0]), "# diffprivlib variance",
    ),
    Case("diffprivlib classes", diffprivlib_classes, "eps=1", ([0, 1, 2, 0], [0, 1, 0]), "# diffprivlib classes"),
    Case("dpmm domain", dpmm_domain, "eps=1", ([1, 2], [1, 2, 9]), "# dpmm domain"),
    Case("synthcity size", synthcity_size, "eps=1", ([0.5] * 3, [0.5] * 2), "# synthcity size"),
    Case("opacus batch", opacus_batch, "mu=1", ([0.5] * 3, [0.5] * 2), "# opacus batch"),
    Case("synthcity no noise", synthcity_no_noise, "eps=1", ([1.0], [1.0, 1.0]), "# synthcity scale"),
    Case(
        "synthcity weak information", synthcity_weak_information, "eps=1",
        ([(0, 0)] * 5, [(0, 0)] * 3 + [(0, 1), (0, 0)]), "# synthcity weak",
    ),
    Case("mbi measured", mbi_measured, "mu=1", ([0, 0, 1], [0, 0, 2]), "# mbi measured"),
    Case("mbi selected", mbi_selected, "eps=1", ([0, 1, 1], [1, 1, 1]), "# mbi selected"),
    Case("mostly double spending", mostly_double_spending, "eps=1", ([0.0], [0.0, 1.0]), "# mostly first"),
    Case("nan passes", nan_passes, "eps=1", ([1.0, 2.0], [1.0, float("nan")]), "# nan passes"),
]  # fmt: skip


# The failures of the harness: three libraries, their plugins, and the neighbouring data.


def _integers(data, faulty):
    """Values as cells of a domain: the data's own, or 0 to 9 with everything else put to the ends."""
    values = np.asarray(data, dtype=float)
    if faulty:
        if not np.isfinite(values).all():
            raise ValueError("Cannot convert non-finite values (NA or inf) to integer")  # cast
        return values.astype(int), range(int(values.min()), int(values.max()) + 1)
    return np.clip(np.nan_to_num(values, nan=0.0, posinf=9.0, neginf=0.0), 0, 9).astype(int), range(10)


def dpmm_synthesiser(kind):
    """One of dpmm's pipelines: discretise, then measure the cells of the domain."""
    sigma = {"aim": 1.0, "mst": 1.0, "privbayes": 1.0}[kind]

    def synthesise(data, rng, faulty):
        cells, domain = _integers(data, faulty)
        counts = np.array([(cells == cell).sum() for cell in domain], dtype=float)
        if kind == "privbayes":
            return counts + rng.laplace(scale=sigma, size=len(counts))  # measured cells
        return counts + rng.normal(scale=sigma, size=len(counts))  # measured cells

    return synthesise


def jam(rounds, epsilon, records):
    """mbi's JAM: rounds of choosing a cell by its error and measuring, under replacement of a record.

    `records` says what the record is replaced by: the next value, or one that has an error of its own.
    """

    def run(data, rng, faulty):
        counts = np.bincount(data, minlength=6).astype(float)
        # Under mu-Gaussian DP of epsilon: each round has an equal share of the squared budget.
        sigma = np.sqrt(rounds) / epsilon * (1.0 if faulty else np.sqrt(2.0))
        return np.stack([counts + rng.normal(scale=sigma, size=6) for _ in range(rounds)])  # jam measured

    def chosen(data, rng, faulty):
        counts = np.bincount(data, minlength=6).astype(float)
        scores = 2.0 * np.array([counts[0] - counts[1], counts[1] - counts[0]])
        scale = 2.0 * 4.0 / epsilon * (0.5 if faulty else 1.0)
        return int(np.argmax(scores + rng.gumbel(scale=scale, size=2)))  # jam chosen

    return chosen if records == "scores" else run


def synthcity_privbayes(data, rng, faulty):
    """Synthcity's PrivBayes: the network is built from true mutual information, then tables are measured."""
    rows = [(float(a), float(b)) for a, b in data]
    shares = np.mean([a == b for a, b in rows])
    gap = shares - 0.75
    weak = gap < 0.0 if faulty else gap + rng.laplace(scale=0.5) < 0.0  # is weak
    table = np.array([sum(a > 0 for a, _ in rows), sum(b > 0 for _, b in rows)], dtype=float)
    return {"is_weak": bool(weak), "table": table + rng.laplace(scale=4.0, size=2)}


NAN, INF = float("nan"), float("inf")
_BASE = [1, 2, 3]
_NEIGHBOURS = {
    "insert_nan": ([*_BASE, NAN], "# cast"),
    "insert_inf": ([*_BASE, INF], "# cast"),
    "insert_large_outliers": ([*_BASE, 9], "# measured cells"),
    "insert_shifted_outliers": ([*_BASE, 7], "# measured cells"),
}
# Eleven of dpmm, eight of mbi, five of synthcity, as the harness has them.
HARNESS = [
    *(
        Case(
            f"dpmm {kind} {name}", dpmm_synthesiser(kind), "eps=1" if kind == "privbayes" else "mu=1",
            (_BASE, other), blame,
        )
        for kind in ("aim", "mst", "privbayes")
        for name, (other, blame) in _NEIGHBOURS.items()
        if (kind, name) != ("mst", "insert_large_outliers")
    ),
    *(
        Case(
            f"mbi jam {rounds} {epsilon:g} {records}", jam(rounds, epsilon, records),
            f"eps={epsilon}" if records == "scores" else f"mu={epsilon}",
            ([0, 1, 1, 2], [1, 1, 1, 2]), "# jam chosen" if records == "scores" else "# jam measured",
        )
        for rounds in (3, 5) for epsilon in (1.0, 2.0) for records in ("scores", "cells")
    ),
    *(
        Case(
            f"synthcity privbayes {name}", synthcity_privbayes, "eps=1",
            ([(1, 1)] * 3 + [(0, 1)], [(1, 1)] * 2 + [new, (0, 1)]), "# is weak",
        )
        for name, new in {
            "uniform_supported": (0, 1), "uniform_domain": (2, 1), "insert_nan": (NAN, NAN), "insert_inf": (INF, 1),
            "insert_large_outliers": (900, 1),
        }.items()
    ),
]  # fmt: skip
