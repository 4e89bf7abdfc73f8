"""Output laws that can be listed: all outcomes, with their probabilities on each input.

A mechanism has one where it has `outcomes` (a batch of all its outputs, the same for every input) and
`distribution(data)` (their probabilities, shape (outcomes,)). Derived subjects of such mechanisms have one too, so that
an exact check can follow a law as an audit does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.features.outcomes import canonical
from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.callables import Subject

Outputs = Any  # a batch: an array of shape (size, ...), or a list of `size` outputs of any kind
MAX_OUTCOMES = 10_000  # beyond these a law is not listed: products grow fast


@dataclasses.dataclass(frozen=True)
class ListedLaw:
    """All outcomes, as `sample` gives them, and a function of the input to their probabilities, shape (outcomes,)."""

    outcomes: Outputs
    probabilities: Callable[[Any], FloatArray]

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the probability of each output, shape (size,); -inf for what is no outcome."""
        pairs = zip(self.outcomes, self.probabilities(data).tolist(), strict=True)
        law = {canonical(outcome): probability for outcome, probability in pairs}
        with np.errstate(divide="ignore"):
            return np.asarray(np.log([law.get(canonical(output), 0.0) for output in outputs]), dtype=float)


def listed_law(subject: Subject) -> ListedLaw | None:
    """The mechanism's own listed law; None where it has none, or too many outcomes."""
    mechanism = subject.mechanism
    outcomes, distribution = getattr(mechanism, "outcomes", None), getattr(mechanism, "distribution", None)
    if outcomes is None or not callable(distribution) or not hasattr(outcomes, "__len__"):
        return None
    return ListedLaw(outcomes, distribution) if len(outcomes) <= MAX_OUTCOMES else None


def listed_laws(subjects: Sequence[Subject]) -> list[ListedLaw] | None:
    """The listed laws of all subjects; None where one has none."""
    laws = [law for law in map(listed_law, subjects) if law is not None]
    return laws if len(laws) == len(subjects) else None


def without_repetition(law: ListedLaw) -> ListedLaw:
    """The same law, where outcomes that read alike are one: the first of them, with the sum of their probabilities."""
    places: dict[str, int] = {}
    index = np.array([places.setdefault(canonical(outcome), len(places)) for outcome in law.outcomes])
    _, first = np.unique(index, return_index=True)
    outcomes = law.outcomes
    kept = outcomes[first] if isinstance(outcomes, np.ndarray) else [outcomes[k] for k in first.tolist()]

    def probabilities(data: Any) -> FloatArray:
        return np.asarray(np.bincount(index, law.probabilities(data), len(places)), dtype=np.float64)

    return ListedLaw(kept, probabilities)
