"""Constrained mechanisms with a planted fault: what goes wrong where an invariant is taken for free."""

import math
from typing import Any, ClassVar

import numpy as np

from dpaudit.privacy.pairs import Pair
from dpaudit_mechanisms.constrained.algorithm_1 import GeometricOnHierarchy, Independent, Proposal
from dpaudit_mechanisms.constrained.boxes import ConditionedLaplace, ImagedLaplace
from dpaudit_mechanisms.constrained.hierarchy import HierarchyConditioned
from dpaudit_mechanisms.constrained.laplace_sums import draw_given_sum, log_density_at_zero, relative_density
from dpaudit_mechanisms.constrained.metropolis import Chains, HierarchyMetropolis
from dpaudit_mechanisms.constrained.mixture import Mixture
from dpaudit_mechanisms.constrained.rejection import Rejected
from dpaudit_mechanisms.faulty.broken import Broken, BrokenSomewhere, Twin
from dpaudit_mechanisms.inputs import FloatArray, output_batch, table
from dpaudit_mechanisms.pure import Pure


class ConditionedLaplaceForgetsTheMass(Broken, ConditionedLaplace):
    """Laplace noise given a box, with the scale that noise without the condition needs; parameters as in the sound one.

    Examples
    --------
    >>> twin = ConditionedLaplaceForgetsTheMass(1.0, [0.0], [math.inf])
    >>> round(twin.privacy_loss([0.0], [1.0]), 4)  # 1 + log(2 - 1/e)
    1.4899
    """

    what = "the probability of the event depends on the data"

    def _calibrated(self) -> float:
        return self.l1_sensitivity / self.epsilon


class HierarchyForgetsTheLevels(Broken, HierarchyConditioned):
    """Noise given the sums of a tree, with the scale of a single level; parameters as in `HierarchyConditioned`.

    Examples
    --------
    >>> from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
    >>> twin = HierarchyForgetsTheLevels(1.0, Hierarchy.of_sizes([1, 2]))
    >>> twin.privacy_loss([1.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    3.0
    """

    what = "a record counts on every level"
    changes: ClassVar[Any] = {"scale": lambda self, scale: 1.0 / self.epsilon}


class LaplaceOnAnyTotal(Broken, Pure):
    """Laplace noise in n coordinates given that the output sums to `total`, whatever the true answer sums to.

    For answers with that sum it is `LaplaceOnEqualities`; for others the noise is conditioned on another event for each
    answer, which the lemma on equalities does not cover.

    Parameters
    ----------
    epsilon : float
        In nats, in (0, inf); adjacent answers are at l1 distance 1.
    total : float
    count : int, optional
        Coordinates, at least 2.

    Examples
    --------
    >>> twin = LaplaceOnAnyTotal(1.0, 0.0)
    >>> round(twin.privacy_loss([0.0, 0.0], [1.0, 0.0]), 6)  # 2 - log 2
    1.306853
    """

    what = "answers off the plane have other normalisers"

    total: float
    count: int = 2

    def pairs(self) -> list[Pair]:
        """An answer with the total, and one beside it."""
        start = np.full(self.count, self.total / self.count)
        return [Pair(start, start + np.eye(self.count)[0])]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, count)."""
        centre = table("data", data, (self.count,))
        missing = np.full(size, self.total - centre.sum())
        return centre + draw_given_sum(self.count, missing, rng, 1.0 / self.epsilon)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Log density on the plane of that total, shape (size,); outputs are taken to lie on it."""
        centre = table("data", data, (self.count,))
        distances = np.abs(output_batch(outputs, centre.shape) - centre).sum(axis=1) * self.epsilon
        return -distances - self.log_normaliser(centre)

    def log_normaliser(self, centre: FloatArray) -> float:
        """Log of the integral of exp(-epsilon |z - centre|_1) over the plane: it depends on the answer's own total."""
        n, gap = self.count, (self.total - centre.sum()) * self.epsilon
        at = log_density_at_zero(n) + math.log(float(relative_density(n, np.array(gap))))
        return 0.5 * math.log(n) + n * math.log(2.0) + at - (n - 1.0) * math.log(self.epsilon)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact loss for answers that differ in one coordinate: the log ratio has its extremes far out."""
        first, second = (table("data", data, (self.count,)) for data in (x, x_prime))
        shift = self.epsilon * float(np.abs(first - second).sum())
        return shift + abs(self.log_normaliser(first) - self.log_normaliser(second))


class ImagedOntoTheData(Broken, ImagedLaplace):
    """Laplace noise clamped to within `reach` of the true answer: an invariant that depends on the data (CD-S11).

    Parameters as in `ImagedLaplace`; `reach` in scales of the noise, in (0, inf).

    Examples
    --------
    >>> twin = ImagedOntoTheData(1.0, [-math.inf], [math.inf])
    >>> twin.privacy_loss([0.0], [1.0])
    inf
    """

    what = "the set that outputs are moved onto follows the data"
    reach: float = 1.0

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        point = self.answer(data)
        room = self.reach * self.scale
        return np.clip(point + rng.laplace(scale=self.scale, size=(size, len(point))), point - room, point + room)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        point, room = self.answer(data), self.reach * self.scale
        batch = output_batch(outputs, point.shape)
        at_end = (batch == point - room) | (batch == point + room)
        with np.errstate(invalid="ignore"):
            distances = np.abs(batch - point) / self.scale
            inside = ((batch >= point - room) & (batch <= point + room)).all(axis=1)
        each = np.where(at_end, -self.reach - math.log(2.0), -distances - math.log(2.0 * self.scale))
        return np.where(inside, each.sum(axis=1), -np.inf)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        return math.inf if (self.answer(x) != self.answer(x_prime)).any() else 0.0


class RejectedGivesUp(Twin, Rejected):
    """Rejection that releases the true answer after `tries` draws outside of the event; the rest as in `Rejected`.

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> twin = RejectedGivesUp(Laplace(1.0), lambda outputs: outputs >= 0.0, tries=1)
    >>> bool((twin.sample(0.5, 100, np.random.default_rng(1)) == 0.5).any())
    True
    """

    tries: int = 3

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        outputs = np.asarray(self.mechanism.sample(data, size, rng))
        for _ in range(self.tries - 1):
            outside = ~np.asarray(self.event(outputs), dtype=bool)
            outputs[outside] = self.mechanism.sample(data, int(outside.sum()), rng)
        outputs[~np.asarray(self.event(outputs), dtype=bool)] = data
        return outputs

    @property
    def claim(self) -> Any:
        """Claim of rejection itself: at most twice the mechanism's epsilon (CD-S7)."""
        claim = self.mechanism.claim
        return claim.with_value(2.0 * claim.value)

    @property
    def fault(self) -> str:
        """Description of the fault, and the true exact loss."""
        return f"the true answer itself is an output: loss inf nats, promised {self.claim.value:g}"


class MixtureByTheData(BrokenSomewhere, Mixture):
    """A mixture whose weights go round with the sign of the data; parameters as in `Mixture`."""

    what = "the weights depend on the data"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        return self._chosen(data).sample(data, size, rng)

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        return self._chosen(data).log_density(data, outputs)

    def _chosen(self, data: Any) -> Mixture:
        return Mixture(self.mechanisms, self.weights if np.sum(data) > 0.0 else self.weights[::-1])


class MetropolisStartsAtTheTruth(Broken, HierarchyMetropolis):
    """M_MH whose chains start at the true counts and take one sweep; parameters as in `HierarchyMetropolis`.

    A leaf whose proposals are all refused keeps its true count.
    """

    what = "a chain that has not moved releases the truth"
    sweeps: int = 1

    def start(self, data: Any, size: int, rng: np.random.Generator) -> Chains:
        counts = table("data", data, (self.tree.leaves,))
        return Chains(self.tree, self.nodes(data), self.scale, np.tile(counts, (size, 1)))

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        return math.inf if (self.nodes(x) != self.nodes(x_prime)).any() else 0.0


class _OneInequality(Chains):
    def is_feasible(self, slack: FloatArray) -> Any:
        return slack[0] >= 0.0


class MetropolisChecksOneInequality(Twin, HierarchyMetropolis):
    """M_MH that looks at the first inequality that a step changes: the second sibling of a pair may fall below 0.

    What is below is released as 0, as a tidy-up of rounding would. Parameters as in `HierarchyMetropolis`.
    """

    chains_of: ClassVar[type[Chains]] = _OneInequality
    fault = "a step checks one of its inequalities: impossible counts come out as 0"

    def _released(self, chains: Chains) -> FloatArray:
        return self.tree.totals(np.maximum(chains.states()[:, -self.tree.leaves :], 0.0))


class GeometricForgetsTheProposal(Broken, GeometricOnHierarchy):
    """Algorithm 1 with fresh leaves about the true ones as proposals, accepted without the ratio of their densities.

    The law that such a chain keeps is the target times the proposal's: as if the noise of the leaves were added to the
    promise. Parameters as in `GeometricOnHierarchy`.

    Examples
    --------
    >>> from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
    >>> twin = GeometricForgetsTheProposal(1.0, Hierarchy.flat(2))
    >>> twin.privacy_loss([1.0, 0.0], [0.0, 0.0])  # two nodes change, and one leaf once more
    1.5
    """

    what = "the proposal's density is left out"

    def proposal(self, data: Any) -> Proposal:
        leaves, chance = self.nodes(data)[-self.tree.leaves :], -math.expm1(-1.0 / self.scale)

        def fresh(count: int, rng: np.random.Generator) -> FloatArray:
            shape = (count, len(leaves))
            return leaves + (rng.geometric(chance, shape) - rng.geometric(chance, shape))

        return Independent(fresh, lambda blocks: np.zeros(len(blocks)))  # the density of a proposal that has none

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact loss of the law that the chain keeps, in nats."""
        leaves = np.abs(self.nodes(x) - self.nodes(x_prime))[-self.tree.leaves :].sum()
        return super().privacy_loss(x, x_prime) + float(leaves) / self.scale
