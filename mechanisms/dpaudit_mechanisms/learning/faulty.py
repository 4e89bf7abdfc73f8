"""Trainings that break the promise of `Training.promise`, with the canary and the score that find each out.

Each promises what DP-SGD with Poisson batches, clipping and noise at every step would keep. `exposure` trains so many
runs with the canary and so many without, and gives the scores of both: an audit with the design many-runs.
"""

import dataclasses
from collections.abc import Callable

import numpy as np

from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.learning import dp_sgd

EXAMPLES = 24


@dataclasses.dataclass(frozen=True)
class Twin:
    """A faulty training.

    Attributes
    ----------
    fault : str
    what : str
        What is wrong, in words.
    training : Training
    size, tensors
        Of its Dirac canary.
    score : callable
        From a transcript and the training to scores of shape (runs, canaries); of shape (runs, 1) where they are not of
        single canaries.
    runs : int
        Of either side that find it.
    """

    fault: dp_sgd.Fault
    what: str
    training: dp_sgd.Training
    score: Callable[[dp_sgd.Transcript, dp_sgd.Training], FloatArray]
    size: float = 1.0
    tensors: tuple[float, float] = (1.0, 0.0)
    runs: int = 300


def _sum(transcript: dp_sgd.Transcript, training: dp_sgd.Training) -> FloatArray:
    return dp_sgd.projection_scores(transcript)


def _of_both_tensors(transcript: dp_sgd.Transcript, training: dp_sgd.Training) -> FloatArray:
    return dp_sgd.projection_scores(transcript, (0.5**0.5, 0.5**0.5))


def _between_tensors(transcript: dp_sgd.Transcript, training: dp_sgd.Training) -> FloatArray:
    return dp_sgd.projection_scores(transcript, (1.0, -1.0))


def _quiet_steps(transcript: dp_sgd.Transcript, training: dp_sgd.Training) -> FloatArray:
    epoch = max(1, round(1.0 / training.sampling_probability))
    is_quiet = np.arange(training.steps) % epoch != 0
    return np.asarray(np.abs(transcript.probes[:, is_quiet, 0]).sum(axis=1))


def _first_step(transcript: dp_sgd.Transcript, training: dp_sgd.Training) -> FloatArray:
    return np.asarray(transcript.probes[:, 0, 0])


def _batch_sizes(transcript: dp_sgd.Transcript, training: dp_sgd.Training) -> FloatArray:
    """The log likelihood ratio of the batch sizes, each guessed from the noise of the other coordinates.

    The noise is divided by the size B that was drawn: its standard deviation over 63 coordinates tells B.
    """
    others = transcript.probes.reshape(*transcript.probes.shape[:2], -1)[:, :, 1:]  # (runs, steps, 63)
    spread = np.sqrt((others**2).mean(axis=2))
    expected = training.sampling_probability * EXAMPLES
    size = np.clip(expected * training.noise_multiplier / spread, 0.5, EXAMPLES + 1.0)
    # binomials of n + 1 and n examples: their ratio at B is (n + 1)(1 - q) / (n + 1 - B)
    ratio = np.log((EXAMPLES + 1.0) / np.maximum(EXAMPLES + 1.0 - size, 0.5))
    return np.asarray(ratio.sum(axis=1))[:, None]


_USUAL = dp_sgd.Training(steps=12, sampling_probability=0.3, noise_multiplier=2.0, clip=1.0)

TWINS: tuple[Twin, ...] = (
    Twin("no_clipping", "gradients are not clipped", _USUAL, _sum, size=10.0),
    Twin("clip_of_average", "the average is clipped, not each gradient", _USUAL, _sum, size=50.0),
    Twin(
        "clip_per_tensor", "each tensor is clipped to C, the noise is for C in all",
        dp_sgd.Training(steps=12, sampling_probability=1.0, noise_multiplier=2.0), _of_both_tensors,
        size=10.0, tensors=(0.5**0.5, 0.5**0.5), runs=600,
    ),
    Twin("noise_once_an_epoch", "noise is added to the first batch of an epoch alone", _USUAL, _quiet_steps),
    Twin(
        "noise_not_scaled", "the noise is not scaled by the clipping norm, which is 4",
        dp_sgd.Training(steps=12, sampling_probability=0.3, noise_multiplier=2.0, clip=4.0), _sum,
    ),
    Twin(
        "batch_size_released", "sums are divided by the batch size that was drawn, noise and all",
        dp_sgd.Training(steps=150, sampling_probability=0.8, noise_multiplier=60.0), _batch_sizes, size=1e-9, runs=60,
    ),
    Twin(
        "shuffled_batches", "batches are shuffled, the accountant takes them for Poisson samples",
        dp_sgd.Training(steps=4, sampling_probability=0.25, noise_multiplier=0.25), dp_sgd.likelihood_scores,
    ),
    Twin("same_noise_key", "all tensors get their noise from the same key", _USUAL, _between_tensors),
    Twin("first_iterate_released", "the first iterate is released as it is, without noise", _USUAL, _first_step),
)  # fmt: skip


def exposure(
    training: dp_sgd.Training,
    runs: int,
    rng: np.random.Generator,
    fault: dp_sgd.Fault = "none",
    size: float = 1.0,
    tensors: tuple[float, float] = (1.0, 0.0),
    score: Callable[[dp_sgd.Transcript, dp_sgd.Training], FloatArray] = dp_sgd.likelihood_scores,
) -> tuple[FloatArray, FloatArray]:
    """Scores of `runs` trainings with the canary, and of as many without it; all on the same few digits."""
    features, classes = dp_sgd.digits(EXAMPLES)
    sides = []
    for is_in in (True, False):
        canaries = dp_sgd.Canaries(np.full((runs, 1), is_in), size, tensors)
        sides.append(score(dp_sgd.train(features, classes, canaries, training, rng, fault), training)[:, 0])
    return sides[0], sides[1]


def one_run(twin: Twin, canaries: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray] | None:
    """Scores of one training of a twin: those of the canaries that coins put in, and those of the others.

    None where the twin's score is not of single canaries, so that one run has one score.
    """
    features, classes = dp_sgd.digits(EXAMPLES)
    is_in = rng.integers(0, 2, (1, canaries)) == 1
    transcript = dp_sgd.train(
        features, classes, dp_sgd.Canaries(is_in, twin.size, twin.tensors), twin.training, rng, twin.fault
    )
    scores = twin.score(transcript, twin.training)[0]
    if len(scores) == 1:
        return None
    scores = scores[:canaries]
    return scores[is_in[0]], scores[~is_in[0]]
