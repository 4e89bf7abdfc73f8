"""DP-SGD for logistic regression and a two-layer network, vectorised over runs, with canaries and their scores.

Conventions. Arrays are (runs, examples, ...). The data are features (examples, columns), the last column 1, and
classes. Adjacency is adding or removing one canary. A step samples each example with probability q of its own, clips
each example's gradient, over all tensors together, to norm C, adds Gaussian noise of standard deviation sigma C to the
sum, and divides by the *expected* batch size (Abadi et al. 2016, arXiv:1607.00133, with Poisson samples). What is
released is every noisy sum.

The gradient of one example in each tensor is an outer product a b^T, so its norm is |a| |b| and clipped sums need no
example's own gradient (Goodfellow 2015, arXiv:1510.01799).

Beside the model's tensors are two probe tensors, vectors of `PROBES` parameters that no example of the data has a
gradient in. A Dirac canary's gradient is one coordinate of each (Nasr et al. 2023, arXiv:2302.07956): nothing else but
noise is there, so that an attack that sees every step is as strong as the accountant allows. Canary k has coordinate k
of both.
"""

import dataclasses
from collections.abc import Iterator
from typing import Literal

import numpy as np
from scipy import special

from dpaudit_mechanisms.inputs import BoolArray, FloatArray, IntArray
from dpaudit_mechanisms.learning.accountant import SampledGaussian

Fault = Literal[
    "none", "no_clipping", "clip_of_average", "clip_per_tensor", "noise_once_an_epoch", "noise_not_scaled",
    "batch_size_released",
    "shuffled_batches", "same_noise_key", "first_iterate_released",
]  # fmt: skip
PROBES = 32  # coordinates of each probe tensor
CLASSES = 10
HIDDEN = 12


@dataclasses.dataclass(frozen=True)
class Training:
    """Settings of a training.

    Parameters
    ----------
    steps : int
    sampling_probability : float
        In (0, 1].
    noise_multiplier : float
        sigma, over the clipping norm; 0 trains without noise.
    clip : float
        C, in units of the gradient.
    learning_rate : float
    model : {"logistic", "network"}
    """

    steps: int = 20
    sampling_probability: float = 0.3
    noise_multiplier: float = 1.5
    clip: float = 1.0
    learning_rate: float = 0.5
    model: Literal["logistic", "network"] = "logistic"

    @property
    def promise(self) -> SampledGaussian:
        """Claim of the training, for adding or removing one example."""
        return SampledGaussian(self.steps, self.sampling_probability, self.noise_multiplier)


@dataclasses.dataclass(frozen=True)
class Canaries:
    """Canaries of a training, all with gradients in the probe tensors.

    Attributes
    ----------
    is_in : ndarray of bool, shape (runs, canaries)
        Which are in the training set of each run; at most `PROBES` canaries, or as many as `probes` of the run.
    size : float
        Norm of their gradients before clipping, over C.
    tensors : tuple of float
        How it is divided between the two probe tensors; a unit vector.
    """

    is_in: BoolArray
    size: float = 1.0
    tensors: tuple[float, float] = (1.0, 0.0)


@dataclasses.dataclass(frozen=True)
class Transcript:
    """Released values on the probes, and the final model.

    Attributes
    ----------
    probes : ndarray of float, shape (runs, steps, 2, probes)
        The noisy sums in the two probe tensors, divided by C.
    tensors : tuple of ndarray
        The final model's, each of shape (runs, rows, columns).
    """

    probes: FloatArray
    tensors: tuple[FloatArray, ...]


def digits(examples: int) -> tuple[FloatArray, IntArray]:
    """The first examples of scikit-learn's digits: pixels in [0, 1] and a column of ones; and classes."""
    from sklearn.datasets import load_digits

    data = load_digits()
    pixels = np.asarray(data.data[:examples], dtype=float) / 16.0
    return np.hstack([pixels, np.ones((len(pixels), 1))]), np.asarray(data.target[:examples], dtype=np.int64)


def train(
    features: FloatArray,
    classes: IntArray,
    canaries: Canaries,
    training: Training,
    rng: np.random.Generator,
    fault: Fault = "none",
    canary_examples: tuple[FloatArray, IntArray] | None = None,
) -> Transcript:
    """Train once for each run, all runs at once.

    Parameters
    ----------
    features, classes : ndarray, shapes (examples, columns), (examples,)
    canaries : Canaries
        Their number of runs is the number of runs.
    training : Training
    rng : numpy.random.Generator
    fault : str
        One of `Fault`: what the training does wrong (`mechanisms.learning.faulty`).
    canary_examples : tuple of (features, classes), optional
        Examples that stand for the canaries instead of gradients in the probes, in the same order: mislabelled ones,
        say.

    Returns
    -------
    Transcript
    """
    runs, count = canaries.is_in.shape
    probes = max(PROBES, count)
    if canary_examples is not None:
        features = np.vstack([features, canary_examples[0]])
        classes = np.concatenate([classes, canary_examples[1]])
    present = np.ones((runs, len(features)), dtype=bool)
    if canary_examples is not None:
        present[:, len(features) - count :] = canaries.is_in
    sampler = _shuffled if fault == "shuffled_batches" else _poisson
    masks = sampler(present, canaries.is_in, training, rng)
    tensors = _initial(training.model, features.shape[1], runs)
    targets = np.eye(CLASSES)[classes]
    expected = training.sampling_probability * len(features)
    kept = np.empty((runs, training.steps, 2, probes))
    direction = np.array(canaries.tensors)[:, None]  # (2, 1)
    for step in range(training.steps):
        mask, canary_mask = next(masks)
        outers = _gradients(training.model, tensors, features, targets)
        dirac = np.zeros((runs, 2, probes))  # in units of C
        factor = _canary_factor(canaries, fault)
        if canary_examples is None:
            dirac[:, :, :count] = canary_mask[:, None, :] * canaries.size * factor[:, None] * direction
        weights = _weights(outers, mask, training.clip, fault)
        sums = [np.swapaxes(w[..., None] * a, 1, 2) @ b for (a, b), w in zip(outers, weights, strict=True)]
        if fault == "clip_of_average":
            sums, dirac = _clip_averages(sums, dirac, mask, canary_mask, training.clip)
        noise = _noise(sums, dirac, step, training, fault, rng)
        if fault == "first_iterate_released" and step == 0:
            noise = [np.zeros_like(part) for part in noise]
        released = [total + part for total, part in zip([*sums, training.clip * dirac], noise, strict=True)]
        size = expected
        if fault == "batch_size_released":  # divides by the batch size that was drawn, before anybody sees it
            drawn = np.maximum(1, mask.sum(axis=1) + canary_mask.sum(axis=1)).astype(float)
            released = [part * (expected / drawn)[:, None, None] for part in released]
        kept[:, step] = released[-1] / training.clip
        tensors = [
            tensor - training.learning_rate / size * part for tensor, part in zip(tensors, released[:-1], strict=True)
        ]
    return Transcript(kept, tuple(tensors))


Masks = Iterator[tuple[BoolArray, BoolArray]]  # batches without end: their examples and their canaries


def _poisson(present: BoolArray, is_in: BoolArray, training: Training, rng: np.random.Generator) -> Masks:
    q = training.sampling_probability
    while True:
        yield present & (rng.random(present.shape) < q), is_in & (rng.random(is_in.shape) < q)


def _shuffled(present: BoolArray, is_in: BoolArray, training: Training, rng: np.random.Generator) -> Masks:
    """Batches that partition the data anew each epoch: every example is in exactly one batch of an epoch."""
    batches = max(1, round(1.0 / training.sampling_probability))
    while True:
        places = [rng.integers(0, batches, mask.shape) for mask in (present, is_in)]
        for batch in range(batches):
            yield present & (places[0] == batch), is_in & (places[1] == batch)


def _initial(model: str, columns: int, runs: int) -> list[FloatArray]:
    if model == "logistic":
        return [np.zeros((runs, columns, CLASSES))]
    fixed = np.random.default_rng(0)  # the same start in every run: it is public
    first, second = fixed.normal(0.0, 0.3, (columns, HIDDEN)), fixed.normal(0.0, 0.3, (HIDDEN, CLASSES))
    return [np.repeat(first[None], runs, axis=0), np.repeat(second[None], runs, axis=0)]


def _gradients(
    model: str, tensors: list[FloatArray], features: FloatArray, targets: FloatArray
) -> list[tuple[FloatArray, FloatArray]]:
    """For each tensor the factors a, b of every example's gradient, shapes (runs, examples, rows or columns)."""
    inputs = np.broadcast_to(features, (len(tensors[0]), *features.shape))
    if model == "logistic":
        return [(inputs, special.softmax(inputs @ tensors[0], axis=2) - targets)]
    hidden = np.tanh(inputs @ tensors[0])
    error = special.softmax(hidden @ tensors[1], axis=2) - targets
    back = (error @ np.swapaxes(tensors[1], 1, 2)) * (1.0 - hidden**2)
    return [(inputs, back), (hidden, error)]


def _weights(
    outers: list[tuple[FloatArray, FloatArray]], mask: BoolArray, clip: float, fault: Fault
) -> list[FloatArray]:
    """For each tensor the factor of each example's gradient, shape (runs, examples): clipping and the batch."""
    norms = [np.sqrt((a**2).sum(axis=2) * (b**2).sum(axis=2)) for a, b in outers]
    if fault in ("no_clipping", "clip_of_average"):
        return [mask.astype(float) for _ in norms]
    if fault == "clip_per_tensor":
        return [mask * np.minimum(1.0, clip / np.maximum(norm, 1e-300)) for norm in norms]
    whole = np.sqrt(sum(norm**2 for norm in norms))
    weight = mask * np.minimum(1.0, clip / np.maximum(whole, 1e-300))
    return [weight] * len(norms)


def _canary_factor(canaries: Canaries, fault: Fault) -> FloatArray:
    """By what clipping multiplies a canary's gradient in each probe tensor."""
    if fault in ("no_clipping", "clip_of_average"):
        return np.ones(2)
    if fault == "clip_per_tensor":
        return np.minimum(1.0, 1.0 / np.maximum(canaries.size * np.abs(canaries.tensors), 1e-300))
    return np.full(2, min(1.0, 1.0 / canaries.size))


def _clip_averages(
    sums: list[FloatArray], dirac: FloatArray, mask: BoolArray, canary_mask: BoolArray, clip: float
) -> tuple[list[FloatArray], FloatArray]:
    """The batch's average gradient clipped as one, times the batch size; `dirac` is in units of the clip."""
    size = np.maximum(1, mask.sum(axis=1) + canary_mask.sum(axis=1))
    squares = sum((part**2).sum(axis=(1, 2)) for part in sums) + clip**2 * (dirac**2).sum(axis=(1, 2))
    factor = np.minimum(1.0, clip * size / np.maximum(np.sqrt(squares), 1e-300))[:, None, None]
    return [part * factor for part in sums], dirac * factor


def _noise(
    sums: list[FloatArray], dirac: FloatArray, step: int, training: Training, fault: Fault, rng: np.random.Generator
) -> list[FloatArray]:
    """Noise for every tensor, the probes last; shapes as theirs."""
    scale = training.noise_multiplier * (1.0 if fault == "noise_not_scaled" else training.clip)
    epoch = max(1, round(1.0 / training.sampling_probability))
    if fault == "noise_once_an_epoch" and step % epoch:
        scale = 0.0
    noise = [scale * rng.standard_normal(part.shape) for part in [*sums, dirac]]
    if fault == "same_noise_key":  # every tensor's generator starts from the same key: equal shapes get equal noise
        noise[-1][:, 1] = noise[-1][:, 0]
    return noise


# --- scores -----------------------------------------------------------------------------------------------------------


def likelihood_scores(transcript: Transcript, training: Training) -> FloatArray:
    """White-box: the log likelihood ratio of each canary's coordinate, canary in against out; shape (runs, probes).

    With the canary in, each step's coordinate is (1 - q) N(0, sigma^2) + q N(1, sigma^2), independent of all else.
    """
    seen = transcript.probes[:, :, 0]
    q, variance = training.sampling_probability, max(training.noise_multiplier, 1e-3) ** 2
    start = np.log1p(-q) if q < 1.0 else -np.inf
    return np.asarray(np.logaddexp(start, np.log(q) + (seen - 0.5) / variance).sum(axis=1))


def projection_scores(transcript: Transcript, weights: tuple[float, float] = (1.0, 0.0)) -> FloatArray:
    """White-box: the sum over steps of each canary's coordinate, the tensors weighted; shape (runs, probes)."""
    return np.asarray(np.einsum("rstp,t->rp", transcript.probes, np.array(weights)))
