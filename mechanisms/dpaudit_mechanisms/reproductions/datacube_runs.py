"""Measurements of the experiments on datacubes: errors, improvements and times of seven strategies, and table 1.

The answers' errors do not depend on the counts, and all are proportional to 1 / epsilon: Laplace noise is, and every
recovery used here commutes with scaling. So epsilon = 1 is run, and other values are scaled from it. An error is the
mean absolute error per entry of a marginal over the marginal's mean count, averaged over the marginals; the mean count
of a marginal with n cells is records / n, so that it is the sum of all absolute errors over marginals x records.
"""

import dataclasses
import functools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.privacy.claims import GaussianDP, PureDP
from dpaudit_mechanisms import datacubes
from dpaudit_mechanisms.datacubes.clusters import clusters
from dpaudit_mechanisms.datacubes.joint import joint_budgets
from dpaudit_mechanisms.inputs import FloatArray

WORKLOADS: dict[str, Callable[[datacubes.Domain], datacubes.Workload]] = {
    "Q1": lambda domain: datacubes.all_marginals(domain, 1),
    "Q1*": lambda domain: datacubes.all_and_half(domain, 1),
    "Q1a": lambda domain: datacubes.all_and_with_attribute(domain, 1),
    "Q2": lambda domain: datacubes.all_marginals(domain, 2),
    "Q2*": lambda domain: datacubes.all_and_half(domain, 2),
    "Q2a": lambda domain: datacubes.all_and_with_attribute(domain, 2),
}
# The clusters are those of equal budgets for C and C+ alike, so that budgets are all that differs between the two.
FAMILIES: dict[str, Callable[[datacubes.Workload], datacubes.Strategy]] = {
    "I": lambda workload: datacubes.base_counts(workload.domain),
    "Q": datacubes.workload_itself,
    "F": datacubes.FourierStrategy,
    "C": lambda workload: clusters(workload, budgets="uniform"),
}
STRATEGIES = ("I", "Q", "Q+", "F", "F+", "C", "C+")
RECOVERIES = ("initial", "consistent_2", "least_squares")
DELTA = 1e-6
BATCH_CELLS = 1 << 21  # strategy rows of a batch of draws


def release(
    workload: datacubes.Workload, name: str, recovery: Any, strategy: datacubes.Strategy | None = None
) -> datacubes.DatacubeRelease:
    """The release of a strategy of the paper's figures at epsilon = 1, `+` being optimal budgets."""
    budgets = "optimal" if name.endswith("+") else "uniform"
    return datacubes.DatacubeRelease(
        workload, strategy or FAMILIES[name[0]](workload), PureDP(1.0), budgets, recovery=recovery
    )


def errors(
    workload: datacubes.Workload, name: str, data: FloatArray, truth: FloatArray, draws: int, rng: np.random.Generator,
    recoveries: tuple[str, ...] = RECOVERIES,
) -> dict[str, float]:  # fmt: skip
    """The relative error of one strategy at epsilon = 1, for each recovery, from the same noise; `truth` is Q x."""
    strategy = FAMILIES[name[0]](workload)
    mechanisms = {recovery: release(workload, name, recovery, strategy) for recovery in recoveries}
    unit = draws * len(workload.sets) * float(data.sum())
    sums = dict.fromkeys(recoveries, 0.0)
    batch, left = max(1, min(draws, BATCH_CELLS // strategy.rows)), draws
    while left > 0:
        noisy = mechanisms[recoveries[0]].noisy(data, min(batch, left), rng)
        for recovery, mechanism in mechanisms.items():
            sums[recovery] += float(np.abs(mechanism.recovered(noisy) - truth).sum())
        left -= len(noisy)
    return {recovery: value / unit for recovery, value in sums.items()}


def spread_of_improvement(
    workload: datacubes.Workload, family: str, data: FloatArray, truth: FloatArray, times: int, rng: np.random.Generator
) -> float:
    """Standard deviation of the improvement by optimal budgets that one release of either kind shows, as a share.

    What a figure of one run scatters by: the tolerance of a comparison with printed shares.
    """
    found = []
    for _ in range(times):
        plain, best = (
            errors(workload, family + plus, data, truth, 1, rng, ("consistent_2",))["consistent_2"]
            for plus in ("", "+")
        )
        found.append(1.0 - best / plain)
    return float(np.std(found, ddof=1))


def exact_improvement(workload: datacubes.Workload, family: str, recovery: Any = "initial") -> float:
    """By how much optimal budgets lower the root of the variance, as a share, summed over all entries. Exact."""
    strategy = FAMILIES[family](workload)
    roots = [float(np.sqrt(release(workload, family + plus, recovery, strategy).query_variances()).sum())
             for plus in ("", "+")]  # fmt: skip
    return 1.0 - roots[1] / roots[0]


def exact_error(workload: datacubes.Workload, name: str, total: int) -> float:
    """The relative error of `errors` before consistency, with roots of variances for mean absolute errors. Exact."""
    roots = np.sqrt(release(workload, name, "initial").query_variances())
    return float(roots.sum()) / (len(workload.sets) * total)


def seconds(workload: datacubes.Workload, name: str, data: FloatArray, rng: np.random.Generator) -> float:
    """Processor time of one release with consistent answers: strategy, budgets, noise and recovery."""
    start = time.process_time()
    release(workload, name, "consistent_2").sample(data, 1, rng)
    return time.process_time() - start


@dataclasses.dataclass(frozen=True)
class BoundRow:
    """A cell of table 1: strategy, privacy, k, the noise measured per marginal and the printed bound without O()."""

    strategy: str
    privacy: str
    k: int
    measured: float
    bound: float


def table_1(bits: int, ways: tuple[int, ...], draws: int, rng: np.random.Generator) -> list[BoundRow]:
    """The noise per marginal, measured at epsilon = 1, beside the printed bounds; log(2 / delta) for log(1 / delta)."""
    logarithm = math.log(2.0 / DELTA)
    found = []
    for k in ways:
        workload = datacubes.all_marginals(datacubes.Domain.binary(bits), k)
        zero = np.zeros(workload.domain.cells)
        count, wide = math.comb(bits, k), math.comb(bits + k, k)
        bounds = {
            "I": (2 ** ((bits + k) / 2), 2 ** ((bits + k) / 2)),
            "Q": (2**k * count, 2**k * math.sqrt(count)),
            "F": (k * count * math.sqrt(2**k), math.sqrt(k * 2**k * count)),
            "F+": (k * math.sqrt(count * wide), math.sqrt(k * wide)),
        }
        for name, (pure, approximate) in bounds.items():
            strategy = FAMILIES[name[0]](workload)
            budgets = "optimal" if name.endswith("+") else "uniform"
            claims = (
                ("epsilon", PureDP(1.0), pure),
                ("(epsilon, delta)", GaussianDP(datacubes.paper_mu(1.0, DELTA)), approximate * math.sqrt(logarithm)),
            )
            for privacy, claim, bound in claims:
                mechanism = datacubes.DatacubeRelease(workload, strategy, claim, budgets, recovery="initial")
                noise = np.abs(mechanism.sample(zero, draws, rng)).sum() / (draws * count)
                found.append(BoundRow(name, privacy, k, float(noise), bound))
    return found


def figure_1() -> list[tuple[str, float | None, float]]:
    """The worked example: what is released, the printed sum of variances at epsilon = 1, and ours. Exact."""
    workload = datacubes.Workload(datacubes.Domain.binary(3), [(0,), (0, 1)])
    itself = datacubes.workload_itself(workload)
    release_of = functools.partial(datacubes.DatacubeRelease, workload, itself, PureDP(1.0))
    printed = [4.0 / 9.0, 5.0 / 9.0]
    best = joint_budgets(itself, workload, 1).budgets
    halves = _halves(release_of(printed))
    return [
        ("S = Q, equal budgets", 48.0, release_of("uniform", recovery="initial").total_variance()),
        ("S = Q, budgets 4/9 and 5/9", 46.17, release_of(printed, recovery="initial").total_variance()),
        ("the same, halves of two ways", 34.6, halves),
        ("the same, least squares", None, release_of(printed).total_variance()),
        ("S = Q, optimal budgets", None, release_of("optimal", recovery="initial").total_variance()),
        ("the same, least squares", None, release_of("optimal").total_variance()),
        ("budgets for least squares: A, B alone", None, release_of(best).total_variance()),
    ]


def _halves(mechanism: datacubes.DatacubeRelease) -> float:
    """The printed recombination: half of an answer, and half of what the other marginal says of it."""
    half = np.array([
        [1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 1],
        [1, 0, 1, -1, 0, 0], [1, 0, -1, 1, 0, 0], [0, 1, 0, 0, 1, -1], [0, 1, 0, 0, -1, 1],
    ]) / 2.0  # fmt: skip
    return float((half**2 @ mechanism.strategy.spread(mechanism.variances)).sum())
