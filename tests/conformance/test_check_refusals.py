"""What the refusals look at, place by place, and how the checks of noise spend their share of the error rate."""

import math

import numpy as np
import pytest
from conformance_twins import NoisyCounts, Response

import dpaudit
from dpaudit.conformance import noise, processes
from dpaudit.conformance.case import Case
from dpaudit.conformance.outcomes import CheckFailed, CheckSkipped
from dpaudit.inference.binomial import binomial_upper


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


def test_the_tests_of_one_check_of_noise_share_the_level():
    case = Case(Response(), None, None, 1, 1_000, 0.01)
    for factor, fails in ((0.99, True), (1.01, False)):
        tests = [(0.5, "one"), (factor * case.level / 3, "another"), (1.0, "a third")]
        if fails:
            with pytest.raises(CheckFailed, match="got dependence in another"):
                noise._judge(case, "within a batch", tests, "")
        else:
            assert noise._judge(case, "within a batch", tests, "") is None
    with pytest.raises(CheckSkipped, match="do not vary"):
        noise._judge(case, "within a batch", [], "")


def test_two_processes_are_compared_on_enough_outputs(monkeypatch):
    # q^n is below half of the level for the upper limit of q that the other half pays for, not for its estimate.
    asked = []
    monkeypatch.setattr(processes, "in_a_child", lambda work: asked.append(work()) or asked[-1])
    case = Case(Response(3.0), None, None, 1, 1_000, 0.01)
    assert processes.independent_processes(case) is None
    pilot = processes.tokens(case.draw(0, processes.PILOT, "independent_processes", 0), processes.PILOT)
    equal = sum(a == b for a, b in zip(pilot[::2], pilot[1::2], strict=True))
    likely = binomial_upper(equal, processes.PILOT // 2, 0.5 * case.level)
    assert equal / len(pilot) * 2 < likely < 1.0
    assert len(asked[0]) == len(asked[1]) == math.ceil(math.log(0.5 * case.level) / math.log(likely)) > processes.LONG
