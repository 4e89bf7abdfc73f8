"""Datacube releases with a planted fault each: what goes wrong where budgets are split, and where counts are tidied."""

import math
from typing import Any

import numpy as np

from dpaudit_mechanisms.datacubes.counts import CountsRelease
from dpaudit_mechanisms.datacubes.release import StrategyRelease
from dpaudit_mechanisms.faulty.broken import Broken, Twin
from dpaudit_mechanisms.inputs import FloatArray


class _Broken(Broken):
    """Says what is wrong, with the exact loss of the first pair (the mu, under normal noise)."""

    @property
    def fault(self) -> str:
        """Description of the fault, and the true exact loss."""
        pair = self.pairs()[0]
        return f"{self.what}: loss {self.distance(pair.x, pair.x_prime):.6g}, promised {self.total:g}"


class DatacubeUnsharedBudget(_Broken, StrategyRelease):
    """Every group of rows gets the whole budget: a record is in a cell of each of them.

    Parameters as in `StrategyRelease`.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> from dpaudit_mechanisms.datacubes import Domain, Workload, workload_itself
    >>> figure_1 = Workload(Domain.binary(3), [(0,), (0, 1)])
    >>> DatacubeUnsharedBudget(figure_1, workload_itself(figure_1), PureDP(1.0), "uniform").fault
    'every group gets the whole budget: loss 2, promised 1'
    """

    what = "every group gets the whole budget"

    def _sensitivity(self, budgets: FloatArray) -> float:
        return float((self.strategy.constants(self.order) * budgets).max())


class DatacubeForgetsTheTwo(_Broken, StrategyRelease):
    """Replacing a record is promised the budget that adding one needs: the factor of 2 is missing.

    Parameters as in `StrategyRelease`, with `adjacency="replace_one"`.
    """

    what = "a replaced record leaves one cell and enters another one"

    def _sensitivity(self, budgets: FloatArray) -> float:
        return self.strategy.sensitivity(budgets, self.order, "add_remove")


class DatacubeEuclideanBudgets(_Broken, StrategyRelease):
    """Laplace noise, with budgets whose Euclidean norm is epsilon: the condition of normal noise.

    Parameters as in `StrategyRelease`.
    """

    what = "the l2 norm of the budgets is epsilon, for Laplace noise"

    def _sensitivity(self, budgets: FloatArray) -> float:
        return self.strategy.sensitivity(budgets, 2, self.adjacency)


class CountsKeepTrueZeros(Twin, CountsRelease):
    """Cells that are empty in the data stay empty: the tidied counts say which ones are.

    Parameters as in `CountsRelease`.
    """

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, q)."""
        empty = self.workload.domain.vector(data) == 0.0
        return self.workload.answers(np.where(empty, 0.0, self.counts(self.noisy(data, size, rng))))

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Infinite where the inputs have different empty cells."""
        first, second = (self.workload.domain.vector(data) == 0.0 for data in (x, x_prime))
        return math.inf if (first != second).any() else super().privacy_loss(x, x_prime)

    @property
    def fault(self) -> str:
        """Description of the fault, and the true loss."""
        return f"empty cells stay empty: loss inf nats, promised {self.total:g}"
