"""Clustering of marginals: a few larger marginals that are measured in place of the workload's.

Start with one cluster a marginal of the workload; merge the two whose union lowers the total variance of the initial
recovery most; stop when no merge lowers it (the paper refers to a greedy search elsewhere; this one is the convention
of claim DC-E3 here). With the budgets that minimise it the variance is (sum over clusters of (2 n_c a_c)^(1/3))^3 /
epsilon^2, n_c the cells of a cluster and a_c the weight of the marginals in it; with equal budgets 2 g^2 sum of n_c
a_c. Both change with a merge by terms of the two clusters alone (and by g), so that a step is one pass over a table of
pairs and one new row of it: g^2 numbers, where the published search took hours.
"""

from typing import Literal

import numpy as np

from dpaudit.arguments import check_among
from dpaudit_mechanisms.datacubes.budgets import check_order
from dpaudit_mechanisms.datacubes.marginal_strategies import MarginalStrategy
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.inputs import FloatArray


def clusters(
    workload: Workload, budgets: Literal["optimal", "uniform"] = "optimal", order: int = 1
) -> MarginalStrategy:
    """Marginals that contain those of a workload, by greedy merging.

    Parameters
    ----------
    workload : Workload
    budgets : {"optimal", "uniform"}, optional
        Which total variance is lowered: that of optimal budgets, or that of equal ones.
    order : {1, 2}, optional
        1 for Laplace noise, 2 for normal noise.

    Examples
    --------
    >>> from dpaudit_mechanisms.datacubes.workloads import all_marginals
    >>> from dpaudit_mechanisms.datacubes.domains import Domain
    >>> clusters(all_marginals(Domain.binary(6), 1)).marginals
    ((0, 1), (2, 3), (4, 5))
    """
    check_among("budgets", budgets, ("optimal", "uniform"))
    check_order(order)
    domain = workload.domain
    logs = np.log(np.array(domain.sizes, dtype=float))
    members = np.zeros((len(workload.sets), domain.attributes), dtype=bool)
    for i, marginal in enumerate(workload.sets):
        members[i, list(marginal)] = True
    weights = np.array(workload.weights, dtype=float)
    power = 1.0 if budgets == "uniform" else 1.0 / 3.0 if order == 1 else 0.5

    def term(rows: FloatArray, weight: FloatArray) -> FloatArray:
        return np.asarray((np.exp(rows @ logs) * weight) ** power)

    terms = term(members, weights)
    saved = np.full((len(terms), len(terms)), -np.inf)  # [i, j] for i < j: what merging them takes off the sum of terms
    for i in range(len(terms) - 1):
        merged = term(members[i] | members[i + 1 :], weights[i] + weights[i + 1 :])
        saved[i, i + 1 :] = terms[i] + terms[i + 1 :] - merged
    alive = np.ones(len(terms), dtype=bool)
    while alive.sum() > 1:
        i, j = divmod(int(np.argmax(saved)), len(saved))
        count, total = int(alive.sum()), float(terms[alive].sum())
        shrink = ((count - 1) / count) ** (2.0 / order) if budgets == "uniform" else 1.0
        if not (total - saved[i, j]) * shrink < total * (1.0 - 1e-12):
            break
        members[i] |= members[j]
        weights[i] += weights[j]
        alive[j] = False
        saved[j], saved[:, j] = -np.inf, -np.inf
        terms[i] = term(members[i], weights[i])
        gain = np.where(alive, terms[i] + terms - term(members[i] | members, weights[i] + weights), -np.inf)
        saved[i, i + 1 :], saved[:i, i] = gain[i + 1 :], gain[:i]
    return MarginalStrategy(domain, [np.flatnonzero(row).tolist() for row in members[alive]])
