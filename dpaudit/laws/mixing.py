"""Mixtures: one of several mechanisms runs, chosen by a coin; and what is lost where the coin depends on the input."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.laws.claims import average_claim, checked, composed_claim, normalised, weakest_claim
from dpaudit.laws.derived import Derived, LogDensity, density_of, draw_chosen, joined, matched, merged, shared_pairs
from dpaudit.laws.listed_laws import ListedLaw, Outputs, listed_laws, without_repetition
from dpaudit.privacy.claims import Claim, FloatArray

Weights = Sequence[float] | Callable[[Any], Sequence[float]]


@dataclasses.dataclass(frozen=True)
class Mixed(Derived):
    """One part runs, chosen afresh for every run with the weights; `is_labelled`: which one is seen too."""

    weights: tuple[float, ...] | Callable[[Any], Sequence[float]]
    is_labelled: bool = False

    @property
    def name(self) -> str:
        kind = "disjoint union" if self.is_labelled else "mixture"
        return f"{kind} of {', '.join(part.name for part in self.parts)}"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        choices = rng.choice(len(self.parts), size=size, p=self._weights(data))
        outputs = draw_chosen(self.parts, choices, data, rng)
        return joined([choices, outputs], size) if self.is_labelled else outputs

    def _weights(self, data: Any) -> list[float]:
        if not callable(self.weights):
            return list(self.weights)
        given = np.asarray(self.weights(data), dtype=float)
        is_good = given.shape == (len(self.parts),) and np.all(given >= 0.0) and abs(float(given.sum()) - 1.0) <= 1e-12
        if not is_good:
            raise UsageError(f"weights must be {len(self.parts)} numbers >= 0 that sum to 1, got {given!r:.80}.")
        weights: list[float] = (given / given.sum()).tolist()
        return weights

    def _density(self) -> LogDensity | None:
        return self._mixed_density if all(part.has_log_density for part in self.parts) else super()._density()

    def _listed(self) -> ListedLaw | None:
        laws = listed_laws(self.parts)
        if laws is None:
            return None
        labels = np.repeat(np.arange(len(laws)), [len(law.outcomes) for law in laws])
        pieces = [(np.flatnonzero(labels == k), law.outcomes) for k, law in enumerate(laws)]
        outcomes = merged(len(labels), pieces)

        def probabilities(data: Any) -> FloatArray:
            return np.concatenate(
                [weight * law.probabilities(data) for weight, law in zip(self._weights(data), laws, strict=True)]
            )

        if self.is_labelled:
            return ListedLaw(joined([labels, outcomes], len(labels)), probabilities)
        return without_repetition(ListedLaw(outcomes, probabilities))

    def _mixed_density(self, data: Any, outputs: Any) -> FloatArray:
        """Log of the average density; of the label and the output where the label is seen."""
        labels = None
        if self.is_labelled:
            columns = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
            labels, outputs = columns[:, 0], columns[:, 1] if columns.shape[1] == 2 else columns[:, 1:]
        total = np.full(len(outputs), -np.inf)
        for k, (part, weight) in enumerate(zip(self.parts, self._weights(data), strict=True)):
            with np.errstate(divide="ignore"):
                here = density_of(part, data, outputs) + np.log(weight)
            total = np.logaddexp(total, here) if labels is None else np.where(labels == k, here, total)
        return total


def mixture(
    mechanisms: Iterable[Any],
    claims: Iterable[Claim],
    weights: Weights,
    *,
    choice_claim: Claim | None = None,
    pairs: Iterable[Any] | None = None,
) -> tuple[Mixed, Claim]:
    """Mixture: one of the mechanisms runs, by weights that do not depend on the input; the weakest claim is kept.

    Proof. P(S) = sum of w_i P_i(S) <= sum of w_i (e^e Q_i(S) + d) = e^e Q(S) + d; Renyi divergences are quasi-convex,
    so the same holds for Renyi, zCDP and Gaussian claims with the largest parameter.
    Weights that depend on the input: the choice is a mechanism of its own, with a claim of its own, and the mixture is
    adaptive composition with the choice forgotten; so the claims compose. Without a claim of the choice nothing
    follows: the weights may be (1, 0) on x and (0, 1) on x'.

    Claims: CD-T3.9.1, CD-T3.9.2 (true as printed: its weights are fixed, and imaging is post-processing), CD-S3 (the
    identity of imaging with mixtures), CD-S12, CD-TAB1.mix (why it fails for conditioning: that reweights the parts by
    their probabilities of C).

    Tight: pure claims, where the parts can be told apart.

    Parameters
    ----------
    mechanisms, claims : iterables
        One claim a mechanism, of one family (`dpaudit.laws.weakest_claim`).
    weights : sequence of float, or callable
        Positive and summing to 1; or `weights(data)`, which needs `choice_claim`.
    choice_claim : Claim, optional
        What the choice keeps by itself, where the weights depend on the input; of a family that composes with the rest.
    pairs : iterable, optional
        Pairs to audit; by default those of the first mechanism that has some.

    Raises
    ------
    UsageError
        If the weights depend on the input and the choice has no claim, or has one though they do not.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
    >>> noisier = lambda data, size, rng: data + rng.laplace(scale=2.0, size=size)
    >>> str(mixture([noisy, noisier], [PureDP(1.0), PureDP(0.5)], [0.5, 0.5])[1])
    'eps=1'
    """
    subjects, promises = matched(mechanisms, claims)
    if callable(weights) != (choice_claim is not None):
        given = "none" if choice_claim is None else str(choice_claim)
        raise UsageError(f"choice_claim must be given exactly where weights depend on the input, got {given}.")
    known = shared_pairs(subjects, pairs)
    if callable(weights):
        claim = composed_claim([checked(choice_claim), weakest_claim(promises)])
        return Mixed(subjects, weights, known_pairs=known), claim
    return Mixed(subjects, tuple(normalised(weights, len(subjects))), known_pairs=known), weakest_claim(promises)


def disjoint_union(
    mechanisms: Iterable[Any],
    claims: Iterable[Claim],
    weights: Weights,
    *,
    choice_claim: Claim | None = None,
    pairs: Iterable[Any] | None = None,
) -> tuple[Mixed, Claim]:
    """Disjoint union: as a mixture, but it is seen which mechanism ran (their outputs are kept apart by a label).

    Proof. Adaptive composition: the label is released by the choice, and the output by the mechanism of that label. So
    with fixed weights the weakest claim is kept, and with weights that depend on the input the claims compose.

    Claims: CD-P2.2 and CD-T3.5.1 (M given C or C', disjoint, *is* such a union, with weights P(C) and P(C') over their
    sum, which depend on the input). CD-T3.5.2 prints that the claim of the parts is kept: false, as the weights are not
    fixed. True is the sum with the loss of the weights (largest absolute log ratio of a weight on x and on x'); where
    M itself is epsilon-DP, at most `conditioned_claim(claim)` = 2 epsilon in all. Both are reached.

    Parameters
    ----------
    mechanisms, claims, weights, choice_claim, pairs
        As in `mixture`.
    """
    mixed, claim = mixture(mechanisms, claims, weights, choice_claim=choice_claim, pairs=pairs)
    return dataclasses.replace(mixed, is_labelled=True), claim


def convexity(
    mechanisms: Iterable[Any],
    claims: Iterable[Claim],
    weights: Sequence[float],
    *,
    pairs: Iterable[Any] | None = None,
) -> tuple[Mixed, Claim]:
    """Convexity: the mechanisms that keep a claim are a convex set, and what a mixture keeps averages where it can.

    Proof. Hockey-stick divergences and exp((r-1) D_r) are jointly convex in (P, Q), as all f-divergences are: so deltas
    at one epsilon, profiles, and those exponentials average. Epsilons and rhos do not: there the largest counts.

    Claims: CD-S12 (Kifer and Lin's axiom). zCDP with different rhos is refused: an average of rhos is not kept.

    Parameters
    ----------
    mechanisms, claims, weights, pairs
        As in `mixture`, with fixed weights; the claim is `dpaudit.laws.average_claim`.

    Examples
    --------
    >>> from dpaudit.privacy.claims import ApproxDP
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
    >>> str(convexity([noisy, noisy], [ApproxDP(1.0, 0.0), ApproxDP(1.0, 0.02)], [0.5, 0.5])[1])
    'eps=1,delta=0.01'
    """
    subjects, promises = matched(mechanisms, claims)
    share = tuple(normalised(weights, len(subjects)))
    return Mixed(subjects, share, known_pairs=shared_pairs(subjects, pairs)), average_claim(promises, share)
