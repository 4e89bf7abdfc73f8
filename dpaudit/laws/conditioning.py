"""Conditioning: the law of an output given an event of positive probability."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dpaudit.errors import SubjectError, UsageError
from dpaudit.laws.claims import checked, conditioned_claim
from dpaudit.laws.derived import Derived, LogDensity, are_good, density_of, draw, merged, pairs_of, selected
from dpaudit.laws.listed_laws import ListedLaw, Outputs, listed_law
from dpaudit.laws.nasty import hash_parity
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.subjects.callables import as_subject

MIN_BATCH = 64  # drawn at least at a time, so that a few missing runs do not cost a call each
MAX_TRIES = 100_000  # draws without one that is kept, after which the event counts as impossible


@dataclasses.dataclass(frozen=True)
class Conditioned(Derived):
    """The runs of one mechanism that an event keeps, by rejection.

    `event(outputs)` gives booleans, or the probability in [0, 1] with which each output is kept: the event is then one
    of the output and of a coin of its own.
    """

    event: Callable[[Any], Any]
    event_mass: Callable[[Any], float] | None = None

    @property
    def name(self) -> str:
        return f"{self.parts[0].name} given {getattr(self.event, '__name__', type(self.event).__name__)}"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        pieces = []
        found, tries, share = 0, 0, 1.0
        while found < size:
            # Validity: batches may have any size, since each draw is kept or not by itself. Of the last batch the first
            # runs are taken, in the order they were drawn in, which does not depend on what they are.
            # A single run is drawn one draw at a time: an exception is then that of one draw, as everywhere else.
            batch = 1 if size == 1 else max(MIN_BATCH, min(int(1.2 * (size - found) / share) + 1, 4 * size))
            outputs = draw(self.parts[0], data, batch, rng)
            kept = np.flatnonzero(rng.random(batch) < self._chances(outputs, batch))[: size - found]
            tries = 0 if len(kept) else tries + batch
            if tries > MAX_TRIES:
                raise SubjectError(
                    f"{self.name} must have an event of positive probability on every input, "
                    f"got none of {tries} runs in it."
                )
            if len(kept):
                pieces.append((np.arange(found, found + len(kept)), selected(outputs, kept)))
            found += len(kept)
            share = max(len(kept) / batch, 1e-3)
        if not pieces:
            return draw(self.parts[0], data, 0, rng)
        return pieces[0][1] if len(pieces) == 1 else merged(size, pieces)

    def _chances(self, outputs: Outputs, size: int) -> FloatArray:
        """The chance that each run is kept. A call that raised is in every event: an event cannot be asked about it."""
        good = are_good(outputs)
        if not good.all():
            values = np.ones(size)
            if good.any():
                values[good] = self._chances(selected(outputs, good), int(good.sum()))
            return values
        chances = np.asarray(self.event(outputs))
        if chances.shape != (size,) or chances.dtype.kind not in "biuf":
            raise UsageError(f"event must give {size} booleans or probabilities, got {chances!r:.80}.")
        values = chances.astype(float)
        is_chance = (values >= 0.0) & (values <= 1.0)
        if not is_chance.all():
            raise UsageError(f"event must give probabilities in [0, 1], got {values[~is_chance][0]}.")
        return values

    def _density(self) -> LogDensity | None:
        known = self.event_mass is not None and self.parts[0].has_log_density
        return self._conditional_density if known else super()._density()

    def _listed(self) -> ListedLaw | None:
        law = listed_law(self.parts[0])
        if law is None:
            return None
        chances = self._chances(law.outcomes, len(law.outcomes))

        def probabilities(data: Any) -> FloatArray:
            kept = chances * law.probabilities(data)
            return np.asarray(kept / kept.sum())

        return ListedLaw(law.outcomes, probabilities)

    def _conditional_density(self, data: Any, outputs: Any) -> FloatArray:
        """log p(y) + log of the chance that y is kept - log P(event), from the exact mass that was given."""
        assert self.event_mass is not None
        density = density_of(self.parts[0], data, outputs)
        with np.errstate(divide="ignore"):
            return np.asarray(density + np.log(self._chances(outputs, len(outputs))) - np.log(self.event_mass(data)))


def conditioning(
    mechanism: Any,
    claim: Claim,
    event: Callable[[Any], Any],
    *,
    mass: float | None = None,
    event_mass: Callable[[Any], float] | None = None,
    pairs: Iterable[Any] | None = None,
) -> tuple[Conditioned, Claim]:
    """Conditioning: M given that its output is in C, for a fixed event C of positive probability on every input.

    Proof. P(S | C) / Q(S | C) = [P(S and C) / Q(S and C)] [Q(C) / P(C)], and both factors are bounded by e^epsilon: a
    pure claim is kept with twice its budget, and 2 epsilon cannot be lowered without a bound of the mass of C (see
    `dpaudit.laws.conditioned_claim` for every family, with such a bound).

    Claims: CD-S7. True is gamma in [0, 1] (its maximum runs over both orders of a pair, so that it is never negative;
    printed is [-1, 1], which is wider). For approximate claims nothing of the kind holds without a mass bound: an event
    of probability below delta may tell the inputs apart for sure. DX-F1.1 does not cover it: conditioning is no map of
    single outputs.

    Parameters
    ----------
    mechanism, claim
        The claim is pure, metric, or with a `mass` any other.
    event : callable
        A batch of outputs to booleans of shape (size,), or to the probabilities in [0, 1] of keeping each.
    mass : float, optional
        A lower bound c in (0, 1] of the probability of the event on every input: makes the claim smaller.
    event_mass : callable, optional
        The exact probability of the event on an input, where it is known: gives the derived subject a log density
        (which mechanisms that list their outcomes have anyway).
    pairs : iterable, optional
        Pairs to audit; the mechanism's own by default.

    Raises
    ------
    UsageError
        If the family needs a mass and none is given.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
    >>> positive, claim = conditioning(noisy, PureDP(1.0), lambda y: y > 0)
    >>> bool(positive.sample(0.0, 5, np.random.default_rng(1)).min() > 0), str(claim)
    (True, 'eps=2')
    """
    if not callable(event):
        raise UsageError(f"event must be a callable of a batch of outputs, got {event!r}.")
    subject = as_subject(mechanism)
    derived = Conditioned((subject,), event, event_mass, known_pairs=pairs_of(subject, pairs))
    return derived, conditioned_claim(checked(claim), mass)


@dataclasses.dataclass(frozen=True)
class HalfByHash:
    """Keeps an output whose hash is even, and any other by a fair coin: its mass is at least 1/2 for any mechanism."""

    mass: float = 0.5

    def __call__(self, outputs: Any) -> FloatArray:
        return np.where(hash_parity(outputs) == 0, 1.0, self.mass)

    @property
    def __name__(self) -> str:
        return f"an even hash, or a coin of {self.mass:g}"
