"""Post-processing and projection: what is made of outputs alone costs nothing."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.features.outcomes import is_number
from dpaudit.laws.claims import checked
from dpaudit.laws.derived import Derived, are_good, draw, pairs_of, selected
from dpaudit.laws.listed_laws import ListedLaw, Outputs, listed_law, without_repetition
from dpaudit.laws.nasty import NastyFunction
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.subjects.callables import as_subject


@dataclasses.dataclass(frozen=True)
class PostProcessed(Derived):
    """A function of the outputs of one mechanism. Runs that raised stay what they are."""

    function: Callable[..., Any]
    is_randomised: bool = False
    label: str = ""

    @property
    def name(self) -> str:
        return f"{self.label} of {self.parts[0].name}"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        return self.processed(draw(self.parts[0], data, size, rng), rng)

    def processed(self, outputs: Outputs, rng: np.random.Generator) -> Outputs:
        """Apply the function to a batch of outputs."""
        good = are_good(outputs)
        if good.all():
            return self._of_good(outputs, rng)
        result: list[Any] = list(outputs)
        if good.any():
            of_good = self._of_good(selected(result, good), rng)
            for k, output in zip(np.flatnonzero(good).tolist(), of_good, strict=True):
                result[k] = output
        return result

    def _of_good(self, outputs: Outputs, rng: np.random.Generator) -> Outputs:
        processed: Outputs = self.function(outputs, rng) if self.is_randomised else self.function(outputs)
        return processed

    def _listed(self) -> ListedLaw | None:
        """The law of the images, where the mechanism lists its outcomes."""
        law = None if self.is_randomised else listed_law(self.parts[0])
        return None if law is None else without_repetition(ListedLaw(self.function(law.outcomes), law.probabilities))


def post_processing(
    mechanism: Any,
    claim: Claim,
    function: Callable[..., Any],
    *,
    pairs: Iterable[Any] | None = None,
    name: str = "",
) -> tuple[PostProcessed, Claim]:
    """Post-processing: h(M(x)) keeps whatever claim M keeps, for every kind of claim.

    Proof. {h(Y) in S} = {Y in h^-1(S)} is an event for Y, so every inequality on events carries over; a randomised h
    is a deterministic one of (Y, coin), and the coin's law is the same under P and Q. Renyi: data processing.

    Claims: DX-F1.1, CD-L3.4.1 and the first half of CD-L3.7. What DX-F1.1 prints is true as it stands.

    Parameters
    ----------
    mechanism : object or callable
        As `dpaudit.audit` takes it.
    claim : Claim
        Any.
    function : callable
        `function(outputs)` of a batch (as the mechanism gives it) to a batch of as many, or `function(outputs, rng)` if
        it draws numbers of its own: a second parameter without default, or a randomised `NastyFunction`. It must treat
        each output by itself; `NASTY_FUNCTIONS` has some.
    pairs : iterable, optional
        Pairs to audit; the mechanism's own by default.
    name : str, optional
        How the function is named; its own name by default.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
    >>> rounded, claim = post_processing(noisy, PureDP(1.0), np.round)
    >>> rounded.sample(0.0, 3, np.random.default_rng(1)).tolist(), str(claim)
    ([0.0, 2.0, -1.0], 'eps=1')
    """
    if not callable(function):
        raise UsageError(f"function must be a callable of a batch of outputs, got {function!r}.")
    subject = as_subject(mechanism)
    label = name or getattr(function, "name", "") or getattr(function, "__name__", type(function).__name__)
    known = pairs_of(subject, pairs)
    derived = PostProcessed((subject,), function, _takes_generator(function), label, known_pairs=known)
    return derived, checked(claim)


def projection(
    mechanism: Any,
    claim: Claim,
    nearest: Callable[[Any], Any],
    *,
    pairs: Iterable[Any] | None = None,
) -> tuple[PostProcessed, Claim]:
    """Projection (imaging): the nearest point of a fixed set C to M(x) keeps whatever claim M keeps.

    Proof. C does not depend on x, so the nearest-point map (with any fixed tie-break) is a function of the output:
    post-processing.

    Claims: CD-L3.7, CD-L3.8 (h after M, then C in the space of h: two functions of the output; its printed identity
    needs C after h), CD-S10, CD-S11 (a C that depends on x is no post-processing, and may lose anything), CD-T3.9.2.

    Parameters
    ----------
    mechanism, claim, pairs
        As in `post_processing`.
    nearest : callable
        A batch of outputs to their nearest points: `BoxProjection`, or one's own.
    """
    return post_processing(mechanism, claim, nearest, pairs=pairs)


@dataclasses.dataclass(frozen=True)
class BoxProjection:
    """The nearest point of the box [low, high] in every coordinate; any other output stays itself.

    Examples
    --------
    >>> BoxProjection(0.0, 1.0)(np.array([-2.0, 0.5])).tolist()
    [0.0, 0.5]
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (is_number(self.low) and is_number(self.high) and self.low <= self.high):
            raise UsageError(f"low must be a number of at most high, got {self.low!r} and {self.high!r}.")

    @property
    def name(self) -> str:
        return f"projection on [{self.low:g}, {self.high:g}]"

    def __call__(self, outputs: Any) -> Any:
        return NastyFunction(self.name, self._clipped)(outputs)

    def _clipped(self, rows: FloatArray) -> FloatArray:
        return np.clip(rows, self.low, self.high)


def _takes_generator(function: Callable[..., Any]) -> bool:
    if isinstance(function, NastyFunction):
        return function.is_randomised
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False  # a builtin or a numpy function: called with the outputs alone
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.default is p.empty and p.kind in places]
    return len(required) >= 2
