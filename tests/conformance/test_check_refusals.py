"""What the refusals look at, place by place, and how the checks of noise spend their share of the error rate."""

import math

import numpy as np
import pytest
from conformance_twins import NoisyCounts

import dpaudit


class TakesNaNAtTheEnd(NoisyCounts):
    def read(self, data):
        counts = np.array(data, dtype=float)
        counts[-1:] = np.nan_to_num(counts[-1:])
        return super().read(counts)


class TakesNegativeBudgets(NoisyCounts):
    def __post_init__(self):
        if math.isnan(self.epsilon):
            raise ValueError("epsilon must be a number")

    @property
    def rate(self):
        return abs(self.epsilon)


class TakesNaNBudgets(NoisyCounts):
    def __post_init__(self):
        if self.epsilon < 0.0:
            raise ValueError("epsilon must not be negative")

    @property
    def rate(self):
        return 1.0 if math.isnan(self.epsilon) else self.epsilon


class TakesAnyLength(NoisyCounts):
    """Refuses a table and a single number, and nothing else."""

    def read(self, data):
        if np.ndim(data) != 1:
            raise ValueError("data must be counts")
        return super().read(np.resize(np.asarray(data), self.cells))


class TakesANumber(NoisyCounts):
    def read(self, data):
        return super().read(np.full(self.cells, data) if np.ndim(data) == 0 else data)


@pytest.mark.parametrize(
    ("mechanism", "name"),
    [
        (TakesNaNAtTheEnd(), "refuses_nan"),
        (TakesNegativeBudgets(), "refuses_bad_budgets"),
        (TakesNaNBudgets(), "refuses_bad_budgets"),
        (TakesAnyLength(), "refuses_wrong_shape"),
        (TakesANumber(), "refuses_wrong_shape"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, NoisyCounts) else "",
)
@pytest.mark.parametrize("as_list", [False, True])
def test_what_is_taken_in_one_place_alone_is_found(mechanism, name, as_list):
    pairs = [(x.tolist(), y.tolist()) for x, y in mechanism.pairs()] if as_list else None
    (record,) = dpaudit.check(mechanism, pairs=pairs, only=[name], seed=1).records
    assert record.status == "violated", record.message
