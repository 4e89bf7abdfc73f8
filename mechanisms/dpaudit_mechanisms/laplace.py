"""The additive Laplace mechanism on a number or a vector: data + Laplace(scale), pure epsilon-DP.

The input is the true answer itself. Adjacent inputs differ by at most `coordinate_sensitivity`: a number for scalar
inputs, one number a coordinate for vectors, so that the l1 sensitivity is their sum. Outputs have the shape (size,) for
numbers and (size, coordinates) for vectors. Source: Dwork, McSherry, Nissim and Smith (2006); DX-D4 and DX-C3 with
equal budgets.
"""

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np

from dpaudit_mechanisms.accuracy import SHARE, largest_error, log_noise, sum_of_errors
from dpaudit_mechanisms.inputs import FloatArray, answer, fixed, output_batch, positive, table
from dpaudit_mechanisms.protocol import Pair, UtilityBound
from dpaudit_mechanisms.pure import Pure


@dataclasses.dataclass(frozen=True)
class Laplace(Pure):
    """Adds independent Laplace noise of one scale, l1_sensitivity / epsilon, to each coordinate.

    Parameters
    ----------
    epsilon : float
        In nats, in (0, inf).
    coordinate_sensitivity : float or tuple of float, optional
        How far adjacent inputs may be apart, in units of the answer: a number for scalar inputs, one number a
        coordinate for vectors; each in (0, inf).

    Examples
    --------
    >>> mechanism = Laplace(epsilon=0.5, coordinate_sensitivity=(1.0, 2.0))
    >>> mechanism.scale
    6.0
    >>> mechanism.privacy_loss([0.0, 0.0], [1.0, 2.0])
    0.5
    >>> mechanism.sample([0.0, 0.0], 4, np.random.default_rng(1)).shape
    (4, 2)
    """

    coordinate_sensitivity: float | tuple[float, ...] = 1.0
    translation_family: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        given: Any = self.coordinate_sensitivity
        if isinstance(given, tuple | list | np.ndarray):
            values = table("coordinate_sensitivity", given, (None,)).tolist()
            checked: Any = tuple(positive(f"coordinate_sensitivity[{i}]", value) for i, value in enumerate(values))
        else:
            checked = positive("coordinate_sensitivity", given)
        fixed(self, coordinate_sensitivity=checked)
        positive("l1_sensitivity / epsilon", float(np.sum(checked)) / self.epsilon)  # 0 would be no noise

    @property
    def dimension(self) -> int | None:
        """Number of coordinates; None where the input is a number."""
        return len(self.coordinate_sensitivity) if isinstance(self.coordinate_sensitivity, tuple) else None

    @property
    def l1_sensitivity(self) -> float:
        """Sum of the coordinates' sensitivities, in units of the answer."""
        return math.fsum(np.atleast_1d(self.coordinate_sensitivity).tolist())

    @property
    def scale(self) -> float:
        """Scale of the noise that is drawn, in units of the answer; its standard deviation is sqrt(2) times that."""
        return self.l1_sensitivity / self.epsilon

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size,) or (size, coordinates)."""
        centre = answer(data, self.dimension)
        return centre + rng.laplace(scale=self.scale, size=(size, *centre.shape))

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density at each output, shape (size,); -inf where an output is not finite."""
        centre = answer(data, self.dimension)
        return log_noise(output_batch(outputs, centre.shape) - centre, self.scale)

    def privacy_loss(self, x: Any, x_prime: Any) -> float:
        """Exact privacy loss in nats: the l1 distance of the inputs over the scale (attained outside of both)."""
        difference = answer(x, self.dimension) - answer(x_prime, self.dimension)
        return float(np.abs(difference).sum() / self.scale)

    @property
    def input_kind(self) -> str:
        """A number, or a vector of fixed length."""
        return "number" if self.dimension is None else "vector"

    def utility_bounds(self) -> list[UtilityBound]:
        """Errors of the outputs, in units of the answer: the largest one (DX-T2.3) and their sum (DX-T2.2a).

        The bounds of the sum, and of the largest error where there is one coordinate, hold with equality.
        """
        count, truth = self.dimension or 1, functools.partial(answer, dimension=self.dimension)
        return [
            largest_error(truth, self.scale * math.log(count / SHARE), source="DX-T2.3"),
            sum_of_errors(truth, count * self.scale, "DX-T2.2a", math.sqrt(count) * self.scale),
        ]

    def pairs(self) -> list[Pair]:
        """Two pairs at the full sensitivity, one above and one below zero: the loss equals epsilon on both."""
        far = np.array(self.coordinate_sensitivity)
        if self.dimension is None:
            return [Pair(0.0, float(far)), Pair(0.0, -float(far))]
        return [Pair(np.zeros_like(far), far), Pair(np.zeros_like(far), -far)]
