"""Rings: a circle or sphere of some thickness about a centre that nobody told, where draws of one label are dense.

Distances from a middle that is estimated smear a ring by the error of the estimate, however thin it is. From the
medians, and from centres of circles through a few draws, centres are moved by steps that shrink, to where the labels of
a window of distances stand out most: a direct search, since the merit has no slope.

Sources: Fischler and Bolles (1981), Random sample consensus, for the circles; Hooke and Jeeves (1961), "Direct search"
solution of numerical and statistical problems, for the moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.kinds.bands import bands_of
from dpaudit.learning.kinds.spikes import labelled_spikes_of
from dpaudit.learning.predictors import Predictor
from dpaudit.learning.reductions import Radius
from dpaudit.learning.training import ENORMOUS, Training
from dpaudit.privacy.claims import FloatArray

FEWEST = 200  # draws
MOST_DRAWS = 5_000  # that are looked at
LOOKED_AT = {2: ((0, 1),), 3: ((0, 1), (0, 1, 2))}  # columns, by how many a row has: what is behind a place is left
WINDOWS = 8, 16, 32, 64, 128, 256, 512, 1_024  # draws
LARGEST_SHARE = 0.25  # of the draws, in a window
TRIES = 1_500  # circles through draws of one label
FIRST = 160  # draws of a label that these are counted on: a byte holds how many
AT_ONCE = 250  # circles: their distances stay in the processor's cache
NEAR = 0.02  # of the spread: as close to a circle are draws that count
FARTHEST = 8.0  # spreads, of a centre from the middle
SEED = 21  # of the tries
STEP = 0.3  # of the spread, by which centres are moved first
KEPT = 4  # centres that are moved on
FEW = 1_200  # draws, on which the first moves are tried:
ON_FEW = 4  # of these, and of what is asked for:
FAINT = 0.7  # of the least merit
STEPS = 11  # that shrink
SHRINKING = 0.55  # from one step to the next
FITS = 8  # of a circle to the draws on it
TRUSTED = 0.6  # of the draws in a window, that lie nearest to the circle before
AS_GOOD = 0.7  # as a merit, from which on the fitted centre is taken
LEAST = 6.0  # nats, beyond the logarithm of the draws
MOST = 2  # rings of a row


def propose(training: Training) -> Iterable[Predictor]:
    """Cells around rings, of two or three columns each."""
    if training.columns not in LOOKED_AT or len(training.labels) < FEWEST:
        return
    every = max(1, len(training.labels) // MOST_DRAWS)
    numbers, labels = training.numbers[::every], training.labels[::every]
    known = np.all(np.abs(numbers) < ENORMOUS, axis=1)
    numbers, labels = numbers[known], labels[known]
    if min(labels.sum(), (~labels).sum()) < FEWEST // 4:
        return
    if any(len(np.unique(column)) < 0.8 * len(column) for column in numbers.T):  # counts lie on rings of their own
        return
    found: list[tuple[float, Radius]] = []
    for columns in LOOKED_AT[training.columns]:
        found += _rings(numbers[:, columns], labels, columns, training.unit(columns))
    for merit, radius in sorted(found, key=lambda one: -one[0])[:MOST]:
        (block,) = training.blocks([radius])
        # What is dense may be dense for both labels; what is not dense may still tell.
        (spikes,), (bands,) = labelled_spikes_of(block), bands_of(block.values, block.labels)
        for name, cells in (("spikes", spikes), ("bands", bands)):
            if cells:
                intervals = [(low, high) for _, low, high in cells]
                yield Predictor.of_intervals(f"{name} in rings, {radius.name}", radius, intervals, merit)


def _rings(
    points: FloatArray, labels: NDArray[np.bool_], columns: tuple[int, ...], unit: float
) -> Iterator[tuple[float, Radius]]:
    """The best centre, if a window of distances from it stands out, with deviations."""
    middle = np.median(points, axis=0)
    spread = np.subtract(*np.quantile(points, [0.75, 0.25], axis=0))
    if not np.all(spread > 0.0):
        return
    size = float(spread.max())  # one for all axes: a circle stays one
    scaled = (points - middle) / size
    least = LEAST + math.log(len(points))
    every = max(1, len(points) // FEW)
    few, few_labels = scaled[::every], labels[::every]
    centres = _tried(scaled, labels)
    merits = merits_of(few, few_labels, centres)
    step = STEP
    moves = np.concatenate([np.zeros((1, len(columns))), np.eye(len(columns)), -np.eye(len(columns))])
    for turn in range(STEPS):
        if turn == ON_FEW and merits.max() < FAINT * (LEAST + math.log(len(few))):
            return
        kept = centres[np.argsort(-merits)[: KEPT if turn < ON_FEW else KEPT // 2]]
        step *= SHRINKING
        centres = (kept[:, None, :] + step * moves).reshape(-1, len(columns))
        merits = merits_of(few, few_labels, centres) if turn < ON_FEW else merits_of(scaled, labels, centres)
    best = int(np.argmax(merits))
    if merits[best] > least:
        found = centres[best]
        fitted = _fitted(scaled, labels, found)
        # A merit hardly tells centres apart that are all close: the fit is the better one unless it went astray.
        if merits_of(scaled, labels, fitted[None, :])[0] > AS_GOOD * merits[best]:
            found = fitted
        centre = middle + size * found
        yield math.sqrt(2.0 * float(merits[best])), Radius(columns, tuple(centre.tolist()), unit)


def _tried(points: FloatArray, labels: NDArray[np.bool_]) -> FloatArray:
    """Centres of circles through draws of one label that more draws of it than of the other lie near, and the middle.

    As many determine a circle as there are columns, and one more.
    """
    dimensions = points.shape[1]
    rng = np.random.default_rng(SEED)
    sides = [points[own] for own in (labels, ~labels)]
    found = [(0.0, np.zeros(dimensions))]
    for own, other in (sides, sides[::-1]):
        tried = own[rng.integers(len(own), size=(TRIES, dimensions + 1))]
        chords = 2.0 * (tried[:, 1:] - tried[:, :1])
        squares = np.square(tried).sum(axis=2)
        is_regular = np.abs(np.linalg.det(chords)) > 1e-6
        chords, squares, through = chords[is_regular], squares[is_regular], tried[is_regular, 0]
        if not len(chords):
            continue
        centres = np.linalg.solve(chords, (squares[:, 1:] - squares[:, :1])[:, :, None])[:, :, 0]
        is_close = np.abs(centres).max(axis=1) < FARTHEST
        centres, through = centres[is_close], through[is_close]
        radius = np.linalg.norm(through - centres, axis=1)
        first = min(FIRST, len(own), len(other))
        on = [_on(some[:first], centres, radius) for some in (own, other)]
        clear = (on[0] - on[1]) / np.sqrt(on[0] + on[1] + 1.0)
        found += [(float(clear[k]), centres[k]) for k in np.argsort(-clear, kind="stable")[:KEPT]]
    return np.array([centre for _, centre in found])


def _on(points: FloatArray, centres: FloatArray, radius: FloatArray) -> FloatArray:
    """How many points, `FIRST` at most, are near each circle; in single precision, which a width of `NEAR` allows."""
    places, middles, radii = (part.astype(np.float32) for part in (points, centres, radius))
    # |p - c|^2 - r^2 as one product
    of_places = np.column_stack([-2.0 * places, np.square(places).sum(axis=1), np.ones_like(places[:, 0])])
    beyond = np.square(middles).sum(axis=1) - np.square(radii)
    of_circles = np.column_stack([middles, np.ones_like(radii), beyond]).T
    result = np.empty(len(centres))
    for start in range(0, len(centres), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        away = of_places @ of_circles[:, part]
        near = np.abs(away, out=away) < 2.0 * np.float32(NEAR) * radii[part]
        result[part] = near.view(np.uint8).sum(axis=0, dtype=np.uint8)
    return result


def merits_of(points: FloatArray, labels: NDArray[np.bool_], centres: FloatArray) -> FloatArray:
    """How clearly labels differ in one window of the distances from each centre, and on both sides of it.

    A log likelihood ratio of the shares of x inside the window and in as many draws to its left and to its right.

    Parameters
    ----------
    points : ndarray of float, shape (draws, columns)
    labels : ndarray of bool, shape (draws,)
    centres : ndarray of float, shape (centres, columns)

    Returns
    -------
    ndarray of float, shape (centres,)
    """
    # In the order of the distances: |p - c|^2 less the centre's own square.
    order = np.argsort(np.square(points).sum(axis=1) - 2.0 * (centres @ points.T), axis=1)
    return np.asarray(_clearest(labels[order])[2].max(axis=0, initial=0.0))


def _fitted(points: FloatArray, labels: NDArray[np.bool_], centre: FloatArray) -> FloatArray:
    """The centre of the circle through most draws of one label in the best window about a centre that is close."""
    order = np.argsort(np.square(points - centre).sum(axis=1))
    sizes, starts, ratios = _clearest(labels[order][None, :])
    best = int(np.argmax(ratios[:, 0]))
    k, start = int(sizes[best]), int(starts[best, 0])
    window = order[start : start + k]
    of_x = labels[window]
    own = points[window[of_x if 2 * np.count_nonzero(of_x) >= k else ~of_x]]
    some = own
    for _ in range(FITS):
        if len(some) < 2 * (points.shape[1] + 1):
            return centre
        # |p|^2 = 2 p @ centre + (radius^2 - |centre|^2), which is linear in both
        solution, *_ = np.linalg.lstsq(np.column_stack([2.0 * some, np.ones(len(some))]), np.square(some).sum(axis=1))
        centre = solution[:-1]
        distances = np.linalg.norm(own - centre, axis=1)
        radius = math.sqrt(max(float(solution[-1] + centre @ centre), 0.0))
        some = own[np.argsort(np.abs(distances - radius))[: int(TRUSTED * len(own))]]
    return centre


def _clearest(labels: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
    """Where a window of labels in order, shape (centres, draws), stands out most, and how clearly, by its size.

    Pearson's statistic of a window, which takes no logarithm, chooses; that one's log likelihood ratio is returned.
    The sizes, shape (sizes,), and the places and ratios, (sizes, centres).
    """
    centres, draws = labels.shape
    of_x = np.zeros((centres, draws + 1), dtype=np.float32)  # integers, as far as `MOST_DRAWS`
    np.cumsum(labels, axis=1, out=of_x[:, 1:])
    sizes = np.array([k for k in WINDOWS if k <= LARGEST_SHARE * draws and 3 * k < draws], dtype=np.intp)
    shape = len(sizes), centres
    starts, own, every = np.empty(shape, dtype=np.intp), np.empty(shape), np.empty(shape)
    rows = np.arange(centres)
    for row, k in enumerate(sizes.tolist()):
        step = max(1, k // 4)
        before, begin, end, after = (of_x[:, at : at + draws - 3 * k + 1 : step] for at in (0, k, 2 * k, 3 * k))
        inside, pooled = end - begin, after - before
        apart = 3.0 * inside - pooled
        apart *= apart
        apart /= np.maximum(pooled * (3.0 * k - pooled), 1.0)  # 0 where all labels are the same
        place = np.argmax(apart, axis=1)
        starts[row], own[row], every[row] = k + step * place, inside[rows, place], pooled[rows, place]
    k = sizes[:, None].astype(float)
    share = every / (3.0 * k)
    ratios = k * _divergence(own / k, share) + 2.0 * k * _divergence((every - own) / (2.0 * k), share)
    return sizes, starts, ratios


def _divergence(p: FloatArray, q: FloatArray) -> FloatArray:
    """That of two Bernoulli laws, in nats, where q is 0 or 1 only if p is."""
    with np.errstate(divide="ignore", invalid="ignore"):
        first = np.where(p > 0.0, p * np.log(p / q), 0.0)
        second = np.where(p < 1.0, (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), 0.0)
    return np.asarray(first + second)
