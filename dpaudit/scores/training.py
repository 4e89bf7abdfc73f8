"""Audits of a training that can be called: coins for canaries, one call, scores, and pitfalls that its record shows.

A training is a function `train(is_in, rng)`. It trains once, on its own data and those canaries k with is_in[k], and
returns a score for every canary, or a `TrainingRecord` that says more of the run. The audit tosses the coins, so that
nobody can choose them by what they lead to.

What a record shows of pitfalls becomes a note. It changes no verdict: it says what the claim, or the audit's strength,
rests on. Where chance is spoken of, a sound training gets the note with probability at most `BEYOND_DOUBT`.

`example` is a small one to try: full batches, or Poisson batches, and faulty versions of both.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.arguments import check_names, whole_number
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.scores.auditing import audit_scores
from dpaudit.scores.designs import BEYOND_DOUBT
from dpaudit.scores.result import ScoresResult

BoolArray = NDArray[np.bool_]
WEAK_SHARE = 0.1  # of the canaries: with fewer that clipping leaves as they are, a bound loses less than it has noise
ALIKE = 0.05  # p-value of two samples of gradient norms, above which canaries are said to look like examples


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingRecord:
    """Record of a training run. All but the scores may be None.

    Attributes
    ----------
    scores : ndarray of float, shape (canaries,) or (canaries, steps)
        Larger ones speak for "in". Signals of steps, such as inner products of noisy updates with the canary's
        gradient, are added up.
    batches : ndarray of bool, shape (steps, examples), or None
        Which examples each step had: of the data, and of the canaries that are in.
    sampling_probability : float or None
        That of the accountant, for Poisson batches.
    clip : float or None
        The norm that gradients are clipped to.
    canary_norms, example_norms : ndarray of float, or None
        Norms of gradients at the first step, before clipping.
    """

    scores: FloatArray
    batches: BoolArray | None = None
    sampling_probability: float | None = None
    clip: float | None = None
    canary_norms: FloatArray | None = None
    example_norms: FloatArray | None = None


Train = Callable[[BoolArray, np.random.Generator], Any]


def audit_training(
    train: Train,
    claim: Claim | str,
    canaries: int = 1_000,
    seed: int | None = None,
    **options: Any,
) -> ScoresResult:
    """Train once with canaries that fair coins include, and audit their scores.

    Parameters
    ----------
    train : callable
        `train(is_in, rng)`, of which canaries are in (bool, shape (canaries,)) and a generator, to the scores of all
        canaries (shape (canaries,)) or a `TrainingRecord`.
    claim : Claim or str
        What the training promises for one canary that is added or removed.
    canaries : int
    seed : int, optional
        Of coins, of the training's generator and of the audit; 0 by default.
    **options
        confidence, guesses and assume, as of `dpaudit.audit_scores`.

    Raises
    ------
    UsageError
        If an argument makes no sense, or the training does not return a number for each canary.

    Examples
    --------
    >>> result = audit_training(example(), "mu=1", canaries=400, seed=1, assume="independent")
    >>> result.verdict, bool(0.5 < result.independent.parameter_lower < 1.0)
    ('not_refuted', True)
    >>> audit_training(example("clipped after averaging"), "mu=1", canaries=400, seed=1).verdict
    'violated'
    """
    whole_number("canaries", canaries, "a positive integer", 1)
    check_names("audit_training", options, ("confidence", "guesses", "assume"))  # the design is what is done here
    root = 0 if seed is None else seed
    coins, own = (np.random.default_rng(np.random.SeedSequence(root, spawn_key=(3, k))) for k in range(2))
    is_in = coins.random(canaries) < 0.5
    found = train(is_in.copy(), own)
    record = found if isinstance(found, TrainingRecord) else TrainingRecord(found)
    try:
        scores = np.asarray(record.scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"training must return a score for each canary, got {error}.") from error
    scores = scores.sum(axis=1) if scores.ndim == 2 else scores
    if scores.shape != (canaries,):
        raise UsageError(f"training must return a score for each canary, shape ({canaries},), got {scores.shape}.")
    result = audit_scores(scores[is_in], scores[~is_in], claim, seed=seed, **options)
    return dataclasses.replace(result, notes=(*result.notes, *pitfalls(record)))


def pitfalls(record: TrainingRecord) -> tuple[str, ...]:
    """Sentences on pitfalls that the record shows."""
    return (*_of_batches(record), *_of_canaries(record))


def _of_batches(record: TrainingRecord) -> list[str]:
    """Tell whether batches are the Poisson samples that the accountant supposes."""
    q = record.sampling_probability
    if record.batches is None or q is None:
        return []
    batches = np.asarray(record.batches, dtype=bool)
    steps, examples = batches.shape
    notes = []
    rate = float(batches.mean())
    if scipy.stats.binomtest(int(batches.sum()), batches.size, q).pvalue < BEYOND_DOUBT:
        notes.append(
            f"Batches had {rate:.3g} of the examples on average; the accountant was told {q:.3g}. The claim is that of "
            "another training."
        )
    elif q < 1.0 and _chance_of_a_range(batches.sum(axis=0), steps, q) < BEYOND_DOUBT:
        notes.append(
            "All examples were in equally many batches (to one): the data were shuffled and cut. The claim is for "
            "Poisson batches, which shuffled ones do not amplify so much."
        )
    elif q < 1.0 and _chance_of_a_range(batches.sum(axis=1), examples, q) < BEYOND_DOUBT:
        notes.append("All batches have the same size (to one): they are no Poisson samples, which the claim is for.")
    return notes


def _chance_of_a_range(counts: NDArray[np.int64], trials: int, q: float) -> float:
    """A bound on the probability that so many binomial counts are within one of each other; 1 if these are not."""
    if np.ptp(counts) > 1:
        return 1.0
    law = scipy.stats.binom.pmf(np.arange(trials + 2), trials, q)
    return float(min(1.0, np.sum((law[:-1] + law[1:]) ** len(counts))))


def _of_canaries(record: TrainingRecord) -> list[str]:
    """Tell whether canaries can show what the claim allows."""
    notes = []
    norms = None if record.canary_norms is None else np.asarray(record.canary_norms, dtype=float)
    if norms is not None and record.clip is not None:
        weak = float(np.mean(norms < record.clip * (1.0 - 1e-9)))
        if weak > WEAK_SHARE:
            notes.append(
                f"{weak:.0%} of the canaries have gradients below the clipping norm: no attack on them shows all that "
                "the claim allows. Make them larger."
            )
    others = record.example_norms
    if norms is not None and others is not None and scipy.stats.ks_2samp(norms, others).pvalue > ALIKE:
        notes.append(
            "Canaries look like the training examples (norms of their gradients): such ones show far less than the "
            "claim allows, whatever the training. Use mislabelled, random or Dirac canaries."
        )
    return notes


# --- a training to try ---

Fault = Literal["none", "clipped after averaging", "shuffled batches", "larger batches", "canaries from the data"]
FAULTS: tuple[str, ...] = get_args(Fault)


@dataclasses.dataclass(frozen=True)
class ExampleSizes:
    """The example's data and training: a second on one processor."""

    examples: int = 300
    columns: int = 10
    steps: int = 16
    noise: float = 4.0  # noise multiplier: in full batches mu = sqrt(steps) / noise = 1
    poisson: float = 0.25  # sampling probability of the faulty versions of batches
    clip: float = 1.0
    rate: float = 0.1  # of learning, for the sum of gradients over the expected batch size
    canary: float = 20.0  # norm of a canary's gradient, over the clipping norm


SIZES = ExampleSizes()


def example(fault: str = "none") -> Train:
    """Logistic regression by DP-SGD on synthetic data, with Dirac canaries: mu = 1 for each of them.

    A canary's gradient is one coordinate of its own, in which there is nothing but noise beside it. Its score is the
    final weight there. Batches are full; faulty versions state that they are Poisson samples of a quarter.

    Parameters
    ----------
    fault : {"none", "clipped after averaging", "shuffled batches", "larger batches", "canaries from the data"}
    """
    if fault not in FAULTS:
        raise UsageError(f"example must be one of {', '.join(FAULTS)}, got {fault!r}.")

    def train(is_in: BoolArray, rng: np.random.Generator) -> TrainingRecord:
        return _train(is_in, rng, fault)

    return train


def _train(is_in: BoolArray, rng: np.random.Generator, fault: str) -> TrainingRecord:
    truth = rng.normal(size=SIZES.columns)
    of_law = fault == "canaries from the data"
    features = rng.normal(size=(SIZES.examples + len(is_in) * of_law, SIZES.columns))
    signs = np.where(features @ truth + rng.normal(size=len(features)) > 0.0, 1.0, -1.0)
    present = np.concatenate([np.ones(SIZES.examples, dtype=bool), is_in])
    q = SIZES.poisson if "batches" in fault else 1.0
    batches = _batches(int(present.sum()), q, fault, rng)
    weights, probes = np.zeros(SIZES.columns), np.zeros(len(is_in))
    for batch in batches:
        chosen = np.zeros(len(present), dtype=bool)
        chosen[np.flatnonzero(present)[batch]] = True
        own, of_canaries = chosen[: len(features)], chosen[SIZES.examples :] & (not of_law)
        gradients = _gradients(weights, features[own], signs[own])
        sums, dirac = gradients.sum(axis=0), SIZES.canary * SIZES.clip * of_canaries
        if fault == "clipped after averaging":
            size = math.hypot(float(np.linalg.norm(sums)), float(np.linalg.norm(dirac))) / len(present)
            sums, dirac = (part * min(1.0, SIZES.clip / size) for part in (sums, dirac))
        else:
            norms = np.linalg.norm(gradients, axis=1)
            sums = (gradients * np.minimum(1.0, SIZES.clip / np.maximum(norms, 1e-12))[:, None]).sum(axis=0)
            dirac = SIZES.clip * of_canaries
        noise = SIZES.noise * SIZES.clip
        step = SIZES.rate / (q * len(present))
        weights = weights - step * (sums + noise * rng.normal(size=len(sums)))
        probes = probes + step * (dirac + noise * rng.normal(size=len(probes)))
    norms = np.linalg.norm(_gradients(np.zeros(SIZES.columns), features, signs), axis=1)
    of_examples, of_own = norms[: SIZES.examples], np.full(len(is_in), SIZES.canary * SIZES.clip)
    scores = (signs * (features @ weights))[SIZES.examples :] if of_law else probes
    return TrainingRecord(scores, batches, q, SIZES.clip, norms[SIZES.examples :] if of_law else of_own, of_examples)


def _gradients(weights: FloatArray, features: FloatArray, signs: FloatArray) -> FloatArray:
    """Gradients of the logistic loss, a row for each example."""
    return np.asarray(-(signs * scipy.special.expit(-signs * (features @ weights)))[:, None] * features)


def _batches(examples: int, q: float, fault: str, rng: np.random.Generator) -> BoolArray:
    """The batches of all steps, shape (steps, examples)."""
    if fault == "shuffled batches":
        a_round = round(1.0 / q)
        places = np.concatenate([rng.permutation(examples) % a_round for _ in range(-(-SIZES.steps // a_round))])
        of_round = places.reshape(-1, 1, examples) == np.arange(a_round)[:, None]
        return np.asarray(of_round.reshape(-1, examples)[: SIZES.steps])
    rate = min(1.0, 2.0 * q) if fault == "larger batches" else q
    return rng.random((SIZES.steps, examples)) < rate
