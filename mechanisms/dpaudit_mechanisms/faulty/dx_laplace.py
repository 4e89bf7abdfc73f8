"""d_X-private Laplace mechanisms with a planted fault each: those of privacy that DX-T1 names, and one of utility."""

from typing import Any, ClassVar

import numpy as np

from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.faulty.broken import Broken, Twin
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.noise_scales import noise_scales


class DxLaplaceTooLittleNoise(Broken, DxLaplace):
    """Laplace noise whose scales are 1.2 times too small; parameters as in `DxLaplace`.

    Only pairs whose sound loss is above 1/1.2 of their budget break the claim: under "single" and "S2" there always is
    one (unless c = 0), under "S1" there may be none.

    Examples
    --------
    >>> mechanism = DxLaplaceTooLittleNoise([0.0, 1.0], [[0.0, 0.5], [0.5, 0.0]], rule="single")
    >>> mechanism.fault
    'the scales are 1.2 times too small: loss 0.6 nats on the pair 0|1, promised 0.5'
    """

    what = "the scales are 1.2 times too small"
    changes: ClassVar[Any] = {"c": lambda self, c: c / 1.2}


class DxLaplaceForgetsAQuery(Broken, DxLaplace):
    """Scales that are computed without the last query, which gets as much noise as the others; at least two queries.

    Parameters as in `DxLaplace`; `rule` counts for the queries that are not forgotten.

    Examples
    --------
    >>> mechanism = DxLaplaceForgetsAQuery([[0.0, 1.0], [0.0, 1.0]], [[0.0, 0.5], [0.5, 0.0]])
    >>> mechanism.fault
    'the scales ignore the last query: loss 1 nats on the pair 0|1, promised 0.5'
    """

    what = "the scales ignore the last query"

    @property
    def c(self) -> FloatArray:
        known = noise_scales(self.queries[:-1], self.metric, self.rule)
        return np.append(known, known.max())


class DxLaplaceEuclidean(Broken, DxLaplace):
    """One scale for all queries from the Euclidean distance of their columns, where the l1 distance is needed.

    Parameters as in `DxLaplace`.

    Examples
    --------
    >>> mechanism = DxLaplaceEuclidean([[0.0, 3.0], [0.0, 4.0]], [[0.0, 0.5], [0.5, 0.0]])
    >>> mechanism.fault
    'the scale is from Euclidean distances: loss 0.7 nats on the pair 0|1, promised 0.5'
    """

    what = "the scale is from Euclidean distances"

    @property
    def c(self) -> FloatArray:
        distances = np.sqrt(((self.queries[:, :, None] - self.queries[:, None, :]) ** 2).sum(axis=0))
        ratios = np.divide(distances, self.metric, out=np.zeros_like(distances), where=distances > 0.0)
        return np.full(len(self.queries), ratios.max())


class DxLaplaceUnsharedBudget(Broken, DxLaplace):
    """PSA without its second step: every query gets the scale that it would need alone.

    Parameters as in `DxLaplace`; `rule` only says what the sound mechanism does.

    Examples
    --------
    >>> mechanism = DxLaplaceUnsharedBudget([[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.5], [0.5, 0.0]], rule="PSA")
    >>> mechanism.fault
    'every query gets the whole budget: loss 1 nats on the pair 0|1, promised 0.5'
    """

    what = "every query gets the whole budget"

    @property
    def c(self) -> FloatArray:
        return np.array([noise_scales(row[None], self.metric, "single")[0] for row in self.queries])


class DxLaplaceTooMuchNoise(Twin, DxLaplace):
    """Noise whose scales are 1.5 times too large: private, and worse than its error bounds promise.

    Parameters as in `DxLaplace`. `required_c` are the scales that the bounds are stated with.
    """

    fault = "the scales are 1.5 times too large: private, with larger errors than the bounds allow"
    changes: ClassVar[Any] = {"c": lambda self, c: c * 1.5}
