"""What an output is made of, in runs on known streams: a noise-free part, and noise of recognised laws and scales.

A number of the output is *recognised* where it is its value on constant noise plus a multiple of one number that the
generator gave, on every stream. What the shift of the noise-free parts then loses, and whether a claim allows it, is
computed here; what it means is said in `dpaudit.audits.grey_box`.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import Claim, gaussian_profile, number_text, pure_epsilon
from dpaudit.reading.outcomes import Outcomes
from dpaudit.running.recording import Log
from dpaudit.subjects.call_outcomes import Failed

ROUNDING = 1e-9  # relative, of sums of doubles: what is compared agrees up to this, or not at all
INFINITE_SHIFT = ("exponential", "uniform")  # noise whose support moves with its centre: any shift has infinite loss


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of one input: its outcome, the log of its calls, and the words that the stream moved on."""

    outcome: Outcomes
    log: Log
    words: int

    @property
    def took_nothing(self) -> bool:
        """Whether the generator was left as it was, and nobody had the stream itself."""
        return self.words == 0 and self.log.count == 0 and not self.log.is_open

    @property
    def token(self) -> str:
        """The outcome as a text that equal outcomes share."""
        tokens = self.outcome.as_objects().tokens
        return "" if tokens is None else str(tokens[0])

    @property
    def failed(self) -> bool:
        """Whether the call raised."""
        return bool(self.outcome.raw) and isinstance(self.outcome.raw[0], Failed)


@dataclasses.dataclass(frozen=True)
class Side:
    """All runs of one input; `quiet` is the run on constant noise, None where there is none."""

    runs: tuple[Run, ...]
    quiet: Run | None


def is_constant(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which columns of (runs, numbers) have one value, NaN included; shape (numbers,)."""
    return np.asarray(((numbers == numbers[0]) | (np.isnan(numbers) & np.isnan(numbers[0]))).all(axis=0))


@dataclasses.dataclass(frozen=True)
class Parts:
    """Noise-free parts of the numbers of an output, and the noise that covers each; family "" where unknown."""

    centre: NDArray[np.float64]  # (numbers,)
    scale: NDArray[np.float64]
    family: tuple[str, ...]


def recognised(side: Side) -> Parts | None:
    """The output of all runs as noise-free part plus recognised noise; None where it is no array of numbers."""
    quiet = side.quiet
    if quiet is None or any(run.outcome.tokens is not None or not run.log.is_complete for run in side.runs):
        return None
    families, width = side.runs[0].log.families, quiet.outcome.numbers.shape[1]
    if quiet.outcome.tokens is not None or any(run.outcome.numbers.shape[1] != width for run in side.runs):
        return None
    numbers = np.concatenate([run.outcome.numbers for run in side.runs])  # (runs, numbers)
    centre = quiet.outcome.numbers[0]
    if any(run.log.families != families for run in side.runs) or not np.isfinite([*numbers, centre]).all():
        return None
    empty = np.zeros(0)
    noise = np.array([np.concatenate([*run.log.values, empty]) for run in side.runs])  # (runs, noises)
    scales = np.array([np.concatenate([*run.log.scales, empty]) for run in side.runs])
    scale, family, taken = np.zeros(width), [""] * width, set()
    moved = numbers - centre
    nearest = _nearest(moved, noise)
    for column in range(width):
        size = np.abs(numbers[:, column]).max() + abs(centre[column])
        if is_constant(numbers[:, column : column + 1])[0]:
            family[column] = "none" if np.abs(moved[:, column]).max() <= ROUNDING * size else ""
            continue
        for j in nearest[column]:
            z = noise[:, j]
            if j in taken or not np.any(z) or scales[:, j].min() != scales[:, j].max():
                continue
            factor = float(moved[:, column] @ z / (z @ z))
            rest = np.abs(moved[:, column] - factor * z).max()
            if factor != 0.0 and rest <= ROUNDING * size and rest <= 1e-6 * np.abs(factor * z).max():
                scale[column], family[column] = abs(factor) * scales[0, j], families[j]
                taken.add(j)
                break
    # Validity: the other numbers may be anything, even functions of this noise; leaving them out is post-processing.
    return Parts(centre, scale, tuple(family))


def _nearest(moved: NDArray[np.float64], noise: NDArray[np.float64]) -> list[list[int]]:
    """For each number of an output the noises that it may be a multiple of: the ratio of two of its runs is theirs."""
    count = noise.shape[1]
    if count == 0:
        return [[] for _ in range(moved.shape[1])]
    with np.errstate(divide="ignore", invalid="ignore"):
        keys, wanted = np.nan_to_num(noise[1] / noise[0]), np.nan_to_num(moved[1] / moved[0])
    order = np.argsort(keys, kind="stable")
    places = np.searchsorted(keys[order], wanted)
    found = []
    for column, place in enumerate(places.tolist()):
        near = order[max(place - 2, 0) : place + 2].tolist()
        found.append([column, *near] if column < count else near)  # most often noise is drawn in the output's order
    return found


def _known(a: Parts, b: Parts) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which numbers of the output have noise of one known law on both sides; which have one scale."""
    pairs = zip(a.family, b.family, strict=True)
    known = np.array([u == v and u not in ("", "none") for u, v in pairs], dtype=bool)
    return known, np.abs(a.scale - b.scale) <= ROUNDING * (a.scale + b.scale)


def is_explained(a: Parts | None, b: Parts | None, claim: Claim | None) -> bool:
    """Check whether `implied_loss` asks all that the claim says of an output.

    Each number has noise that was recognised, or is one value, in the same way on both sides. Of a claim with a delta
    or a curve only normal noise and one other number that moves are held against it.
    """
    if a is None or b is None or len(a.centre) != len(b.centre):
        return False
    known, same = _known(a, b)
    plain = np.array([u == v == "none" for u, v in zip(a.family, b.family, strict=True)], dtype=bool)
    if not ((known & same) | (plain & (a.centre == b.centre))).all():
        return False
    if claim is None or pure_epsilon(claim) is not None:
        return True
    moved = [family for family, here, there in zip(a.family, a.centre, b.centre, strict=True) if here != there]
    return set(moved) <= {"normal"} or (moved in (["laplace"], ["logistic"]) and claim.family == "hockey-stick")


def uneven_scales(a: Parts | None, b: Parts | None) -> str:
    """Where the noise of an output has another scale on x than on x_prime; empty if nowhere."""
    if a is None or b is None or len(a.centre) != len(b.centre):
        return ""
    known, same = _known(a, b)
    if not (known & ~same).any():
        return ""
    k = int(np.argmax(known & ~same))
    return f"the scale of the {a.family[k]} noise is {a.scale[k]:.9g} on x and {b.scale[k]:.9g} on x_prime"


def implied_loss(a: Parts | None, b: Parts | None, claim: Claim | None, runs: int) -> tuple[float | None, str]:
    """The loss of the recognised noise, and what follows from it where it is more than the claim allows."""
    if a is None or b is None or len(a.centre) != len(b.centre):
        return None, ""
    shift = np.abs(a.centre - b.centre)
    shift[shift <= ROUNDING * (np.abs(a.centre) + np.abs(b.centre))] = 0.0
    known, same = _known(a, b)
    if not known.any():
        return None, ""
    family = np.array(a.family)
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(known & same, shift / a.scale, 0.0)
    condition = f"if the output is its noise-free part plus this noise for every draw, as it was on all {runs} streams."
    laplace = known & same & np.isin(family, ("laplace", "logistic"))
    normal = known & same & (family == "normal")
    loss = float(distance[laplace].sum())
    mu = math.sqrt(float((distance[normal] ** 2).sum()))
    moved = known & same & np.isin(family, INFINITE_SHIFT) & (shift > 0.0)
    total = math.inf if moved.any() else loss if mu == 0.0 else mu if loss == 0.0 else math.inf
    if claim is None:
        return total, ""
    allowed = pure_epsilon(claim)
    is_pure = allowed is not None
    uneven = known & ~same & np.isin(family, ("laplace", "normal", "exponential"))
    if is_pure and uneven.any():
        return math.inf, f"{uneven_scales(a, b)}: an infinite loss, {condition}"
    if is_pure and (moved.any() or mu > 0.0):
        k = int(np.argmax(moved | (normal & (distance > 0.0))))
        return math.inf, f"the centre of {family[k]} noise moves by {shift[k]:.9g}: an infinite loss, {condition}"
    slack = 1.0 + 1e3 * ROUNDING
    if allowed is not None:
        if loss <= allowed * slack + ROUNDING:
            return loss, ""
        what = f"the noise-free parts are {loss:.9g} scales of their noise apart"
        return loss, f"{what}: a loss of {loss:.6g} nats, claimed {number_text(allowed)}, {condition}"
    # Validity: the deltas are those of Laplace noise; logistic noise of the same scale has smaller ones.
    excess = _excess(claim, float(distance[known & same & (family == "laplace")].max(initial=0.0)), mu, slack)
    return total, f"{excess}, {condition}" if excess else ""


def _excess(claim: Claim, largest: float, mu: float, slack: float) -> str:
    """What normal noise mu standard deviations apart, or Laplace noise, breaks of a claim that is not pure."""
    apart = f"the noise-free parts are {mu:.6g} standard deviations of their noise apart"
    if claim.family == "renyi":
        for order in claim.orders:
            allowed = min(float(own.renyi_epsilons(np.array([claim.value]), order)[0]) for own in claim.directions)
            if 0.5 * order * mu * mu > allowed * slack + ROUNDING:
                return f"{apart}: a divergence of {0.5 * order * mu * mu:.6g} at order {order:g}, claimed {allowed:.6g}"
        return ""
    for epsilon in sorted({min(claim.budget.epsilon, 700.0), 0.0, 0.1, 0.5, 1.0, 2.0, 4.0}):
        allowed = min(own.profile(epsilon) for own in claim.directions)  # both orders of the noise have one delta
        delta = float(gaussian_profile(np.array([mu]), epsilon)[0])
        if delta > allowed * slack + ROUNDING:
            return f"{apart}: delta {delta:.6g} at epsilon {epsilon:.6g}, claimed {allowed:.6g}"
        delta = -math.expm1(0.5 * (epsilon - largest)) if largest > epsilon else 0.0
        if delta > allowed * slack + ROUNDING:
            return (
                f"a noise-free part is {largest:.6g} scales of its Laplace noise apart: delta {delta:.6g} at epsilon "
                f"{epsilon:.6g}, claimed {allowed:.6g}"
            )
    return ""
