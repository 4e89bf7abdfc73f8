"""Private releases of marginals by strategy and recovery, with budgets that are optimal, uniform or given.

`StrategyRelease` releases the noisy strategy answers z = S x + noise; `DatacubeRelease` the workload's answers y = R z,
which are post-processing of z. Pure claims get Laplace noise; (epsilon, delta), mu, rho and Renyi claims get normal
noise of the exact calibration of `dpaudit_mechanisms.gaussian`.
"""

import dataclasses
import math
from typing import Any, Literal

import numpy as np

from dpaudit_mechanisms.accuracy import Truth, deviations, largest_error, log_noise, sum_of_errors
from dpaudit_mechanisms.datacubes.budgets import noise_variances
from dpaudit_mechanisms.datacubes.consistency import consistent, consistent_variances
from dpaudit_mechanisms.datacubes.joint import joint_budgets
from dpaudit_mechanisms.datacubes.strategies import Adjacency, Strategy
from dpaudit_mechanisms.datacubes.workloads import Workload
from dpaudit_mechanisms.gaussian import largest_mu
from dpaudit_mechanisms.inputs import ArrayLike, Checked, FloatArray, fixed, output_batch, positive, table
from dpaudit_mechanisms.protocol import Claim, Pair, PureDP, UsageError, UtilityBound, check_among

Recovery = Literal["least_squares", "initial", "consistent_1", "consistent_2", "consistent_inf"]
BUDGETS = ("optimal", "uniform", "joint")
SHOWN_CELLS = 4  # of the last cells, in the list of pairs
READ = 1e-15  # relative cost of a group above which a recovery reads it; below it is rounding
FEASIBILITY = 1e-9  # relative: what given budgets may lose above the claim, for rounding


@dataclasses.dataclass(frozen=True, eq=False)
class Calibrated(Checked):
    """Base of both releases: the budgets, the noise and the exact loss.

    Parameters
    ----------
    workload : Workload
    strategy : Strategy
        Over the workload's domain.
    claim : PureDP, ApproxDP, GaussianDP, ZeroConcentratedDP or RenyiDP
        What is promised to neighbours.
    budgets : "optimal", "uniform", "joint" or array_like of float, shape (groups,), optional
        Of least total variance for the initial recovery; one for all rows; of least total variance for least squares
        (marginals only; under Laplace noise the least that was found: `joint_budgets`); or these, in units of epsilon
        or mu. A group of budget 0 is not measured: its rows are released as 0.
    adjacency : {"add_remove", "replace_one"}, optional
        Whether neighbours differ by one record more, or by the cell of one record.

    Raises
    ------
    UsageError
        If the claim is of another kind, a name is unknown, or given budgets break the claim.
    """

    workload: Workload
    strategy: Strategy
    claim: Claim
    budgets: Any = "optimal"
    adjacency: Adjacency = "add_remove"
    eta: FloatArray = dataclasses.field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.total
        if self.strategy.domain.sizes != self.workload.domain.sizes:
            sizes, given = self.workload.domain.sizes, self.strategy.domain.sizes
            raise UsageError(f"strategy must be over sizes {sizes}, got {given}.")
        if isinstance(self.budgets, str):
            check_among("budgets", self.budgets, BUDGETS)
            if self.budgets == "joint":
                shape = joint_budgets(self.strategy, self.workload, self.order).budgets
            elif self.budgets == "optimal":
                shape = self.strategy.optimal(self.workload, self.order, self.adjacency)
            else:
                shape = self.strategy.uniform(self.order)
            eta = shape * (self.total / self._sensitivity(shape))
        else:
            eta = table("budgets", self.budgets, (self.strategy.groups,))
            # Validity: budgets of the caller's own keep the claim only if their sensitivity does.
            loss = self._sensitivity(eta) if np.isfinite(eta).all() and (eta >= 0.0).all() else math.inf
            if not 0.0 < loss <= self.total * (1.0 + FEASIBILITY):
                raise UsageError(f"budgets must be non-negative and lose at most {self.total:g}, got {loss:g}.")
        fixed(self, eta=eta)

    def _sensitivity(self, budgets: FloatArray) -> float:
        """Validity: what budgets lose on the worst neighbours; the noise is scaled by it."""
        loss = self.strategy.sensitivity(budgets, self.order, self.adjacency)
        if loss == 0.0:
            raise UsageError("rows with a budget must depend on the data between neighbours, got none that do.")
        return loss

    @property
    def order(self) -> int:
        """1 for Laplace noise, 2 for normal noise."""
        return 1 if isinstance(self.claim, PureDP) else 2

    @property
    def total(self) -> float:
        """epsilon under Laplace noise, mu under normal noise."""
        return positive("epsilon", self.claim.epsilon) if isinstance(self.claim, PureDP) else largest_mu(self.claim)

    @property
    def variances(self) -> FloatArray:
        """Variance of the noise of a row of each group, shape (groups,), in squared counts; inf for budget 0."""
        return noise_variances(self.eta, self.order)

    def noisy(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """z = S x + noise, shape (size, m)."""
        truth, scales = self._answers(data), self._scales
        if self.order == 1:
            noise = rng.laplace(size=(size, len(truth)))
        else:
            noise = rng.standard_normal(size=(size, len(truth)))
        noise *= scales
        noise += truth
        return noise

    def _answers(self, data: Any) -> FloatArray:
        """S x, shape (m,), and 0 for rows without a budget."""
        truth = self.strategy.answers(self.workload.domain.vector(data))
        return truth if (self.eta > 0.0).all() else np.where(self.strategy.spread(self.eta) > 0.0, truth, 0.0)

    def _truth(self, data: Any) -> FloatArray:
        """Q x, shape (q,)."""
        return self.workload.answers(self.workload.domain.vector(data)[None])[0]

    @property
    def _scales(self) -> FloatArray:
        """Scale of Laplace noise, or sigma, of each row, shape (m,); 0 for rows that are not measured."""
        measured = self.eta > 0.0
        return self.strategy.spread(np.divide(1.0, self.eta, out=np.zeros_like(self.eta), where=measured))

    def _variance_bounds(self, truth: Truth, weights: FloatArray, variances: FloatArray) -> list[UtilityBound]:
        """The weighted squared error, and the error of the query of the largest variance, at most its root."""
        worst = int(np.argmax(variances))

        def squares(data: Any, outputs: Any) -> FloatArray:
            return np.asarray(deviations(truth, data, outputs) ** 2 @ weights)

        def worst_error(data: Any, outputs: Any) -> FloatArray:
            return deviations(truth, data, outputs)[:, worst]

        return [
            UtilityBound("squared error", squares, float(weights @ variances), source="DC-TAB1"),
            UtilityBound(f"error of query {worst}", worst_error, math.sqrt(float(variances[worst])), source="DC-L4.2"),
        ]

    def distance(self, x: Any, x_prime: Any) -> float:
        """The loss of z on a pair in nats under Laplace noise; its mu under normal noise. Exact."""
        domain = self.workload.domain
        return self.strategy.distance(domain.vector(x) - domain.vector(x_prime), self.eta, self.order)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact supremum of the privacy loss of z on a pair, in nats: infinite under normal noise if they differ.

        An upper bound for y, which is made of z; and exact for it where R can be undone.
        """
        distance = self.distance(x, x_prime)
        return distance if self.order == 1 or distance == 0.0 else math.inf

    def pairs(self) -> list[Pair]:
        """One record of the first cell against none, or against that record in one of the last cells; worst first."""
        cells = self.workload.domain.cells
        one = _unit(cells, 0)
        if self.adjacency == "add_remove":
            found = [(np.zeros(cells), _unit(cells, j)) for j in sorted({0, cells - 1})]
        else:
            found = [(one, _unit(cells, j)) for j in range(cells - 1, max(0, cells - 1 - SHOWN_CELLS), -1)]
        found.sort(key=lambda pair: -self.distance(*pair))
        return [Pair(x, y) for x, y in found]


@dataclasses.dataclass(frozen=True, eq=False)
class StrategyRelease(Calibrated):
    """Proposition 3.1 of Cormode et al. (2013), arXiv:1207.6096.

    z = S x + noise, sum over i of |S_ij| eta_i <= epsilon for every cell j (l2 norms and mu for normal noise).

    The noisy answers to the strategy, shape (size, m); parameters as in `Calibrated`.

    Examples
    --------
    >>> from dpaudit_mechanisms.datacubes import Domain, Workload, workload_itself
    >>> figure_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
    >>> mechanism = StrategyRelease(figure_1, workload_itself(figure_1), PureDP(1.0))
    >>> mechanism.eta.round(4).tolist(), round(mechanism.privacy_loss(np.zeros(8), np.eye(8)[0]), 9)
    ([0.4425, 0.5575], 1.0)
    """

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, m)."""
        return self.noisy(data, size, rng)

    def utility_bounds(self) -> list[UtilityBound]:
        """The variance of all rows, with equality, and the expected error of the noisiest one."""
        variances = 2.0 / self.order * self._scales**2
        return self._variance_bounds(self._answers, np.ones(len(variances)), variances)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density at each output, shape (size,); rows that are not measured are 0."""
        truth = self._answers(data)
        return log_noise(output_batch(outputs, truth.shape) - truth, self._scales, self.order)


@dataclasses.dataclass(frozen=True, eq=False)
class DatacubeRelease(Calibrated):
    """Section 3 of Cormode et al. (2013), arXiv:1207.6096: strategy, budgets (theorem 3.4), recovery.

    y = R (S x + noise), R the recovery.

    The workload's answers, shape (size, q), made from noisy answers to the strategy.

    Parameters
    ----------
    recovery : optional
        As in `Calibrated`, and: "least_squares" (default), the linear unbiased answers of least variance, consistent;
        "initial", the recovery that the budgets are chosen for; "consistent_1", "consistent_2" and "consistent_inf":
        the consistent answers that are nearest to the initial ones in that norm.

    Examples
    --------
    >>> from dpaudit_mechanisms.datacubes import Domain, Workload, workload_itself
    >>> figure_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
    >>> strategy, claim = workload_itself(figure_1), PureDP(1.0)
    >>> for budgets in ("uniform", "optimal"):
    ...     for recovery in ("initial", "least_squares"):
    ...         mechanism = DatacubeRelease(figure_1, strategy, claim, budgets, recovery=recovery)
    ...         print(budgets, recovery, round(mechanism.total_variance(), 3))
    uniform initial 48.0
    uniform least_squares 32.0
    optimal initial 46.168
    optimal least_squares 29.953
    """

    recovery: Recovery = "least_squares"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_initial = self.recovery != "least_squares" or self.strategy.is_determined
        if is_initial and not (self.eta > 0.0).all():
            # Rows without a budget are released as 0: a recovery that reads them would be biased.
            costs = self.strategy.costs(self.workload)
            missing = np.flatnonzero((costs > READ * costs.max()) & (self.eta == 0.0)).tolist()
            if missing:
                raise UsageError(f"budgets must be positive for groups that the recovery reads, got 0 for {missing}.")

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, q)."""
        return self.recovered(self.noisy(data, size, rng))

    def recovered(self, noisy: ArrayLike) -> FloatArray:
        """R z, shape (size, q), for noisy strategy answers of shape (size, m): post-processing."""
        values = np.asarray(noisy, dtype=float)
        if values.ndim == 0 or values.shape[-1] != self.strategy.rows:
            raise UsageError(f"noisy must be of shape (size, {self.strategy.rows}), got shape {values.shape}.")
        if self.recovery == "least_squares":
            return self.strategy.least_squares(values, self.variances, self.workload)
        answers = self.strategy.initial(values, self.workload)
        norms = {"consistent_1": 1.0, "consistent_2": 2.0, "consistent_inf": math.inf}
        return consistent(self.workload, answers, norms[self.recovery]) if self.recovery in norms else answers

    def query_variances(self) -> FloatArray:
        """Exact variance of each answer, shape (q,), in squared counts, of a linear recovery.

        Raises
        ------
        UsageError
            For consistency in other norms than l2, whose answers are no linear function of the noise, and in l2 for a
            strategy whose initial answers are correlated and inconsistent (`consistent_variances`).
        """
        if self.recovery == "least_squares":
            return self.strategy.least_squares_variances(self.variances, self.workload)
        if self.recovery == "initial":
            return self.strategy.initial_variances(self.variances, self.workload)
        if self.recovery == "consistent_2":
            return consistent_variances(self.strategy, self.variances, self.workload)
        linear = "least_squares, initial or consistent_2"
        raise UsageError(f"recovery must be {linear} for exact variances, got {self.recovery!r}.")

    def utility_bounds(self) -> list[UtilityBound]:
        """Variances with equality, and the expected error of the noisiest query (DC-TAB1, DC-L4.2).

        Consistent answers nearest in the l1 or the largest norm are no linear function of the noise. They are at most
        twice as far from the truth as the initial ones, since the truth is consistent too.
        """
        if self.recovery not in ("consistent_1", "consistent_inf"):
            return self._variance_bounds(self._truth, self.workload.query_weights, self.query_variances())
        variances = self.strategy.initial_variances(self.variances, self.workload)
        if self.recovery == "consistent_1":
            return [sum_of_errors(self._truth, 2.0 * float(np.sqrt(variances).sum()), "DC-L4.2")]
        largest = largest_error(self._truth, 0.0)
        bound = 2.0 * math.sqrt(float(variances.sum()))
        return [dataclasses.replace(largest, bound=bound, failure_probability=None, source="DC-L4.2")]

    def total_variance(self) -> float:
        """Weighted sum of `query_variances`, a^T Var(y)."""
        return float(self.workload.query_weights @ self.query_variances())


def _unit(cells: int, cell: int) -> FloatArray:
    found = np.zeros(cells)
    found[cell] = 1.0
    return found
