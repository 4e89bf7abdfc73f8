"""A sound mechanism that passes every check, and for each check a twin with one fault that fails it.

`NoisyCounts` answers the sorted counts of a histogram with two-sided geometric noise: sorting makes a changed input
harmless to the law, and integers have no low bits to leak. Neighbours differ by one record in one cell; so do their
sorted counts, and the claim is tight.
"""

from __future__ import annotations

import dataclasses
import math
import os

import numpy as np

from dpaudit import ApproxDP, PureDP, UtilityBound
from dpaudit_mechanisms.laplace import Laplace


@dataclasses.dataclass(frozen=True)
class NoisyCounts:
    """Sorted counts of `cells` cells with noise of ratio e^-epsilon; pure epsilon-DP for one record more or less."""

    epsilon: float = 1.0
    cells: int = 3

    input_kind = "counts"

    def __post_init__(self):
        if not 0.0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon must be in (0, inf), got {self.epsilon}")

    @property
    def claim(self):
        return PureDP(self.epsilon)

    @property
    def rate(self):
        return self.epsilon

    def pairs(self):
        low, high = np.array([2, 0, 5]), np.array([2, 1, 5])
        return [(low, high), (high, low + np.array([0, 1, 1]))]

    def read(self, data):
        counts = np.asarray(data)
        if counts.shape != (self.cells,) or not np.isfinite(counts).all() or (counts < 0).any():
            raise ValueError(f"data must be {self.cells} counts, got {data}")
        if (counts != np.floor(counts)).any():
            raise ValueError(f"data must be whole numbers, got {data}")
        return np.sort(counts.astype(np.int64))

    def noise(self, size, rng, rate=None):
        success = -math.expm1(-(self.rate if rate is None else rate))
        return rng.geometric(success, (size, self.cells)) - rng.geometric(success, (size, self.cells))

    def sample(self, data, size, rng):
        return self.read(data) + self.noise(size, rng)


class CountsCalls(NoisyCounts):
    """Counts its calls, and lets the count into the noise."""

    def __post_init__(self):
        object.__setattr__(self, "calls", [0])

    def sample(self, data, size, rng):
        self.calls[0] += 1
        return super().sample(data, size, np.random.default_rng([self.calls[0], int(rng.integers(2**40))]))


class SeedsTheProcess(NoisyCounts):
    def sample(self, data, size, rng):
        np.random.seed(7)  # noqa: NPY002
        return super().sample(data, size, rng)


class KnowsItsProcess(NoisyCounts):
    def sample(self, data, size, rng):
        return super().sample(data, size, np.random.default_rng([os.getpid(), int(rng.integers(2**40))]))


class EmptyOfAnotherType(NoisyCounts):
    def sample(self, data, size, rng):
        return super().sample(data, size, rng) if size else np.zeros((0, self.cells))


class SortsInPlace(NoisyCounts):
    def sample(self, data, size, rng):
        outputs = super().sample(data, size, rng)
        data.sort()
        return outputs


class HoldsALambda(NoisyCounts):
    def __post_init__(self):
        object.__setattr__(self, "extra", lambda value: value)


class RefusesCopies(NoisyCounts):
    def __deepcopy__(self, memo):
        raise TypeError("cannot be copied")


class TakesNaN(NoisyCounts):
    def read(self, data):
        counts = np.asarray(data, dtype=float)
        return super().read(np.where(np.isnan(counts), 0.0, counts))


class TakesInfinity(NoisyCounts):
    def read(self, data):
        counts = np.asarray(data, dtype=float)
        return super().read(np.where(np.isinf(counts), 0.0, counts))


class TakesAnyShape(NoisyCounts):
    def read(self, data):
        return super().read(np.resize(np.asarray(data), self.cells))


class TakesNegativeCounts(NoisyCounts):
    def read(self, data):
        return super().read(np.abs(np.asarray(data)))


class TakesAnyBudget(NoisyCounts):
    def __post_init__(self):
        pass

    @property
    def rate(self):
        return abs(self.epsilon) if abs(self.epsilon) > 0.0 else 1.0  # NaN becomes 1


class RepeatsNoiseInABatch(NoisyCounts):
    """The second output of a batch has the noise of the first."""

    def sample(self, data, size, rng):
        outputs = super().sample(data, size, rng)
        outputs[1:2] = outputs[:1]
        return outputs


class KeepsNoise(NoisyCounts):
    """Every second single output has the noise of the one before."""

    def __post_init__(self):
        object.__setattr__(self, "kept", [])

    def noise(self, size, rng, rate=None):
        if size != 1:
            return super().noise(size, rng, rate)
        if self.kept:
            return self.kept.pop()
        self.kept.append(super().noise(size, rng, rate))
        return self.kept[0]


class KeepsItsFirstNoise(NoisyCounts):
    """Has one noise for all runs, drawn in its first call, which may be that of an earlier check."""

    def __post_init__(self):
        object.__setattr__(self, "kept", [])

    def noise(self, size, rng, rate=None):
        noise = super().noise(size, rng, rate)
        if not self.kept and size:
            self.kept.append(noise[:1])
        return np.repeat(self.kept[0], size, axis=0) if size else noise


class OwnGenerator(NoisyCounts):
    """Has a generator of its own, whose state every forked process inherits."""

    replayable = False

    def __post_init__(self):
        object.__setattr__(self, "generator", np.random.default_rng(5))

    def sample(self, data, size, rng):
        return super().sample(data, size, self.generator)


class NoisierInLargeBatches(NoisyCounts):
    def sample(self, data, size, rng):
        return self.read(data) + self.noise(size, rng, self.rate if size < 10 else 0.2 * self.rate)


@dataclasses.dataclass(frozen=True)
class Response:
    """Binary randomised response that states its law."""

    epsilon: float = 1.0

    input_kind = "position"

    def __post_init__(self):
        if not 0.0 < self.epsilon < math.inf:
            raise ValueError(f"epsilon must be in (0, inf), got {self.epsilon}")

    @property
    def claim(self):
        return PureDP(self.epsilon)

    @property
    def outcomes(self):
        return np.arange(2)

    def pairs(self):
        return [(0, 1)]

    def truth_probability(self):
        return 1.0 / (1.0 + math.exp(-self.epsilon))

    def distribution(self, data):
        right = 1.0 / (1.0 + math.exp(-self.epsilon))
        return np.where(self.outcomes == data, right, 1.0 - right)

    def sample(self, data, size, rng):
        if isinstance(data, bool) or not isinstance(data, int) or data not in (0, 1):
            raise ValueError(f"data must be 0 or 1, got {data}")
        return np.where(rng.random(size) < self.truth_probability(), data, 1 - data)


class ResponseWithMoreNoise(Response):
    """Draws at half of epsilon, and states the law of epsilon."""

    def truth_probability(self):
        return 1.0 / (1.0 + math.exp(-0.5 * self.epsilon))


class StatesDensity(NoisyCounts):
    """States the log density of its law, which is right."""

    def log_density(self, data, outputs):
        steps = np.abs(np.asarray(outputs, dtype=float) - self.read(data)).sum(axis=1)
        return self.cells * math.log(math.tanh(0.5 * self.epsilon)) - self.epsilon * steps


class DensityOfLessNoise(StatesDensity):
    """Draws at half of epsilon, and states the density of epsilon."""

    @property
    def rate(self):
        return 0.5 * self.epsilon


class AdmitsMore(NoisyCounts):
    """States an exact loss of twice its claim (and draws with the right noise)."""

    def privacy_loss(self, x, x_prime):
        return 2.0 * self.epsilon


class TooLittleNoise(NoisyCounts):
    @property
    def rate(self):
        return 3.0 * self.epsilon


class StatesItsError(NoisyCounts):
    """States its expected error, as it is for the stated budget."""

    share = 1.0

    def utility_bounds(self):
        ratio = math.exp(-self.epsilon)
        mean = 2.0 * ratio / (1.0 - ratio**2) * self.cells

        def error(data, outputs):
            return np.abs(np.asarray(outputs) - self.read(data)).sum(axis=1).astype(float)

        return [UtilityBound("sum of errors", error, self.share * mean)]


class BoastsOfLessError(StatesItsError):
    """States half of its expected error."""

    share = 0.5


class StatesNothing(StatesItsError):
    """Clamps, and states as its error what no output can exceed."""

    share = 10.0

    def sample(self, data, size, rng):
        return np.clip(super().sample(data, size, rng), self.read(data) - 1, self.read(data) + 1)

    def utility_bounds(self):
        return [dataclasses.replace(bound, largest_loss=float(self.cells)) for bound in super().utility_bounds()]


class MoreBudgetMoreNoise(StatesItsError):
    """Right at epsilon = 1 only: the noise grows with the budget."""

    @property
    def rate(self):
        return 1.0 / self.epsilon


@dataclasses.dataclass
class Stable:
    """A noisy count if it is far above 0, else 0: sound, and constant at a small budget."""

    epsilon: float = 0.5
    delta: float = 1e-6

    @property
    def claim(self):
        return ApproxDP(self.epsilon, self.delta)

    def pairs(self):
        return [(10, 9)]

    def sample(self, data, size, rng):
        if data == 0:
            return np.zeros(size)
        noisy = data + rng.laplace(scale=1.0 / self.epsilon, size=size)
        return np.where(noisy > 1.0 - math.log(2.0 * self.delta) / self.epsilon, noisy, 0.0)


class IgnoresItsBudget(NoisyCounts):
    """Right at epsilon = 1 only: the noise is always the same."""

    @property
    def rate(self):
        return 1.0


class RaisesOnOne:
    """Raises on one input of the pair, whatever its noise: what is left of an output may be forgotten, not that."""

    claim = PureDP(1.0)

    def pairs(self):
        return [(0, 1), (1, 2)]

    def sample(self, data, size, rng):
        if data == 1:
            raise KeyError("no such record")
        return np.zeros(size)


# A check, the twin that fails it, and the other checks that its fault breaks too.
TWINS = [
    ("seeded_determinism", CountsCalls(), {"same_bits_in_another_process"}),
    ("global_generators_unchanged", SeedsTheProcess(), set()),
    ("same_bits_in_another_process", KnowsItsProcess(), set()),
    ("batch_contract", EmptyOfAnotherType(), set()),
    ("input_unchanged", SortsInPlace(), set()),
    ("pickling", HoldsALambda(), set()),
    ("deep_copy", RefusesCopies(), set()),
    ("refuses_nan", TakesNaN(), set()),
    ("refuses_infinity", TakesInfinity(), set()),
    ("refuses_wrong_shape", TakesAnyShape(), set()),
    ("refuses_negative_counts", TakesNegativeCounts(), set()),
    ("refuses_bad_budgets", TakesAnyBudget(), set()),
    ("independent_in_a_batch", RepeatsNoiseInABatch(), set()),
    ("independent_calls", KeepsNoise(), set()),
    ("independent_processes", OwnGenerator(), set()),
    ("batch_law", NoisierInLargeBatches(), {"claim_audit"}),
    ("distribution_fits_draws", ResponseWithMoreNoise(), set()),
    ("log_density_fits_draws", DensityOfLessNoise(), set()),
    ("claim_exact", AdmitsMore(), set()),
    ("claim_audit", TooLittleNoise(), {"law"}),
    ("floating_point", Laplace(1.0), set()),
    ("utility_bounds", BoastsOfLessError(), set()),
    ("more_budget_less_error", MoreBudgetMoreNoise(), set()),
]
