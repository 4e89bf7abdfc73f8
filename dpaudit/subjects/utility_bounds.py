"""Utility bounds: what a mechanism says about its own error, in a form that can be tested (`dpaudit.audits.utility`).

A *loss* is the error of one output on one input: a number in [0, inf], the smaller, the better. A bound limits its law:

    tail          P(loss > bound) <= failure_probability
    expectation   E loss <= bound

A mechanism states its bounds with a method `utility_bounds()`, which returns a list of `UtilityBound`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import number
from dpaudit.subjects.call_outcomes import Failed


@dataclasses.dataclass(frozen=True, eq=False)
class UtilityBound:
    """A limit of the error of a mechanism, on every input.

    Parameters
    ----------
    name : str
        Names the bound in results; unique among the bounds of one mechanism.
    loss : callable
        `loss(data, outputs)` with a batch of `size` outputs to `size` losses in [0, inf], shape (size,). NaN counts as
        inf: what cannot be compared is no answer.
    bound : float or callable
        The limit, in [0, inf): a number, or a function of the input.
    failure_probability : float, optional
        In [0, 1): the loss may exceed the bound so often (a tail bound). None: the bound is of the expected loss.
    inputs : sequence, optional
        Inputs to test it on; those of the mechanism's pairs by default.
    search : hypothesis strategy, optional
        Of inputs: the worst ones that are found are tested as well.
    largest_loss : float or callable, optional
        At least every loss that can occur: a number, or a function of the input. It gives the measured mean an upper
        limit, and a limit of at least it says nothing: even an output that ignores the data keeps it.
    standard_deviation : float, optional
        At least the standard deviation of the loss on every input: believed, and for the same use.
    source : str
        Where the bound is stated.

    Examples
    --------
    >>> tail = UtilityBound("error", lambda data, outputs: np.abs(outputs - data), 3.0, failure_probability=0.05)
    >>> tail.kind, str(tail)
    ('tail', 'error: P(loss > 3) <= 0.05')
    """

    name: str
    loss: Callable[[Any, Any], ArrayLike]
    bound: float | Callable[[Any], float]
    failure_probability: float | None = None
    inputs: Sequence[Any] | None = None
    search: Any = None
    largest_loss: float | Callable[[Any], float] | None = None
    standard_deviation: float | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise UsageError(f"name must be a text that is not empty, got {self.name!r}.")
        if not callable(self.loss):
            raise UsageError(f"loss must be a function of the data and a batch of outputs, got {self.loss!r}.")
        if not callable(self.bound):
            object.__setattr__(self, "bound", number("bound", self.bound, "in [0, inf)", _is_finite))
        if self.failure_probability is not None:
            value = number("failure_probability", self.failure_probability, "in [0, 1)", lambda v: 0.0 <= v < 1.0)
            object.__setattr__(self, "failure_probability", value)
        for name in ("largest_loss", "standard_deviation"):
            if getattr(self, name) is not None and not (name == "largest_loss" and callable(self.largest_loss)):
                object.__setattr__(self, name, number(name, getattr(self, name), "in [0, inf)", _is_finite))

    @property
    def kind(self) -> Literal["tail", "expectation"]:
        """ "tail" where there is a failure probability, else "expectation"."""
        return "expectation" if self.failure_probability is None else "tail"

    def limit(self, data: Any) -> float:
        """The bound on one input."""
        return self._on("bound", data)

    def largest(self, data: Any) -> float | None:
        """At least every loss that can occur on one input; None where nothing is stated."""
        return None if self.largest_loss is None else self._on("largest_loss", data)

    def _on(self, name: str, data: Any) -> float:
        """A number of the bound, or what its function gives on an input."""
        value = getattr(self, name)
        condition = f"in [0, inf), from the bound {self.name!r}"
        return number(name, value(data), condition, _is_finite) if callable(value) else value

    def losses(self, data: Any, outputs: Any, size: int) -> NDArray[np.float64]:
        """The checked losses of `size` outputs, shape (size,); inf for NaN, and for a run that raised.

        `UsageError` if the loss function does not return so many numbers in [0, inf], or one above `largest_loss`.
        """
        result = np.full(size, math.inf)
        returned = np.ones(size, dtype=bool)
        if isinstance(outputs, list):
            returned = np.array([not isinstance(output, Failed) for output in outputs], dtype=bool)
            outputs = [output for output in outputs if not isinstance(output, Failed)]
        count = int(returned.sum())
        if count:
            try:
                losses = np.asarray(self.loss(data, outputs), dtype=float)
            except (TypeError, ValueError) as error:
                raise UsageError(f"loss must return numbers, got {error} from the bound {self.name!r}.") from error
            if losses.shape != (count,):
                raise UsageError(
                    f"loss must return one number an output, shape ({count},), got shape {losses.shape} "
                    f"from the bound {self.name!r}."
                )
            result[returned] = np.where(np.isnan(losses), math.inf, losses)
        if (result < 0.0).any():
            raise UsageError(f"loss must be non-negative, got {float(result.min())!r} from the bound {self.name!r}.")
        stated = self.largest(data)
        if stated is not None and (result > stated).any():
            largest = float(result.max())
            if not returned.all():
                raise UsageError(
                    f"largest_loss must not be given where runs raise, whose loss is infinite, got "
                    f"{stated!r} and {size - count} of {size} runs that raised. "
                    "Leave it out, or catch what they raise."
                )
            raise UsageError(f"largest_loss must be at least every loss, got {stated!r} below {largest!r}.")
        return result

    def __str__(self) -> str:
        limit = "bound(data)" if callable(self.bound) else f"{self.bound:.6g}"
        if self.failure_probability is None:
            return f"{self.name}: E loss <= {limit}"
        return f"{self.name}: P(loss > {limit}) <= {self.failure_probability:.6g}"


def _is_finite(value: float) -> bool:
    return 0.0 <= value < math.inf
