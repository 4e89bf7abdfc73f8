"""Learned views: estimators of the label's log odds, whose score of a row is one more view.

Each is fitted on earlier draws. Of these draws themselves it gives scores out of fold, from models that did not see
them, so that a tree on the scores is honest; of later draws that of a model fitted on all. Both the score's own
probability and a tree on it are heard.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.views import View
from dpaudit.learning.rank_tree import Forest, Labels, Ordered, Steps, pruned_trees
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import UNSAVED, Form, Matrix


def out_of_fold(learner: LearnedView, matrix: FloatArray, labels: Labels) -> FloatArray:
    """Scores of these rows, each by a model that was fitted on every other one without it."""
    scores = np.empty(len(labels))
    for held, others in ((slice(0, None, 2), slice(1, None, 2)), (slice(1, None, 2), slice(0, None, 2))):
        scores[held] = learner.fit(matrix[others], labels[others])(matrix[held])
    return scores


def fit_with_scores(learner: LearnedView, matrix: FloatArray, labels: Labels) -> tuple[LearnedView, FloatArray]:
    """The fitted learner, and scores of these rows by models that did not see them, or that have one column."""
    if isinstance(learner, MeanDifference):
        return learner.fit_with_scores(matrix, labels)
    fitted = learner.fit(matrix, labels)
    is_line = isinstance(learner, Known) or (isinstance(learner, Logistic) and len(learner.columns) == 1)
    return fitted, fitted(matrix) if is_line else out_of_fold(learner, matrix, labels)


@dataclasses.dataclass(frozen=True)
class LinearSizes:
    """Sizes of the fit of a linear score."""

    scaled_on: int = 2_000  # draws: 40 of them are beyond either tail
    tail: float = 0.02  # share of the draws on either side beyond which values of several columns are clipped
    ridges: tuple[float, ...] = (0.3, 3.0, 30.0, 300.0, 3_000.0)  # half decades; that of the largest evidence is taken
    steps: int = 25  # of Newton's method
    folds: int = 4  # of a difference of means: 2 take 1.1 times the draws at 300 columns, 8 no fewer
    max_columns: int = 200  # of a regression
    max_of_three: int = 10  # columns whose products of three are scored, too: 165 numbers of a row
    at_once: int = 1 << 22  # numbers of rows that are worked out together, and that products are fitted on: 32 MB


# Their slopes: log odds of Laplace noise change within a part of the spread that is the smaller, the less it loses. Of
# one number the second, chosen on these 80 seeds, takes 15% off the draws of loss 1 under .8, 8% under .5: decision 56.
SOFT_SIGNS = {"soft signs": 1.5, "steep signs": 3.0}


@dataclasses.dataclass(frozen=True, eq=False)
class Linear(Form):
    """A weighted sum of columns, of their sizes or products, or of the side of the median on which they lie."""

    name: str
    columns: tuple[int, ...]
    of: str = "values"  # "values", "signs", "sizes", "products" or one of `SOFT_SIGNS`
    low: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    high: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    centre: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    spread: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    weights: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    exact = True
    sizes = LinearSizes()

    def _scaled(self, matrix: FloatArray) -> Self:
        """A copy that knows where each column lies, whatever its label."""
        own = matrix[: self.sizes.scaled_on, self.columns]
        finite = np.where(np.isfinite(own), own, np.nan)
        bare = np.all(np.isnan(finite), axis=0)
        finite[:, bare] = 0.0
        low, centre, high = _quantiles(finite, [self.sizes.tail, 0.5, 1.0 - self.sizes.tail])
        clipped = np.clip(np.where(np.isnan(finite), centre, finite), low, high)
        with np.errstate(invalid="ignore", over="ignore"):
            spread = clipped.std(axis=0)
        spread = np.where(np.isfinite(spread), spread, high / 2.0 - low / 2.0)  # of squares beyond the doubles
        spread = np.where(spread > 0.0, spread, 1.0)
        if len(self.columns) == 1:  # what is rare may tell most; of several an outlier would hide the other columns
            # No number of n is further than sqrt(n) of their standard deviations from their mean (Samuelson).
            reach = math.sqrt(len(own)) * spread
            low = np.maximum(np.nanmin(finite, axis=0), centre - reach)
            high = np.minimum(np.nanmax(finite, axis=0), centre + reach)
        return dataclasses.replace(self, low=low, high=high, centre=centre, spread=spread)

    def _features(self, matrix: FloatArray) -> FloatArray:
        own = matrix[:, self.columns]
        with np.errstate(invalid="ignore", over="ignore"):
            z = (np.clip(own, self.low, self.high) - self.centre) / self.spread
        z = np.nan_to_num(z, nan=0.0, posinf=1.0, neginf=-1.0)  # a difference beyond the doubles has its side
        if self.of == "signs":
            return np.sign(z)
        if self.of in SOFT_SIGNS:
            return np.tanh(SOFT_SIGNS[self.of] * z)
        if self.of == "sizes":
            return np.concatenate([z, z * z - 1.0], axis=1)
        return self._products(z) if self.of == "products" else z

    def _products(self, z: FloatArray) -> FloatArray:
        """Columns, and the products of two and of few columns three different ones, shape (rows, products)."""
        size = z.shape[1]
        most = min(size, 3 if size <= self.sizes.max_of_three else 2)
        factors = (list(itertools.combinations(range(size), n + 1)) for n in range(most))
        return np.concatenate([z.T[np.array(own)].prod(axis=1) for own in factors]).T

    def strengths(self) -> FloatArray:
        """The largest size of a weight that each column has a part in, shape (columns,)."""
        without = 1.0 - np.eye(len(self.columns))  # in row k what column k has no part in
        own = self._products(without) if self.of == "products" else np.tile(without, len(self.weights) // len(without))
        return np.asarray(np.max(np.abs(self.weights) * (own == 0.0), axis=1))

    def __call__(self, matrix: FloatArray) -> FloatArray:
        # Validity: row by row, in row order. A matrix product, and a sum whose order of memory depends on how many rows
        # there are, round a row differently in different batches.
        step = max(1, self.sizes.at_once // max(len(self.weights), 1))
        features = (self._features(matrix[k : k + step]) for k in range(0, max(len(matrix), 1), step))
        return np.concatenate([np.multiply(own, self.weights, order="C").sum(axis=1) for own in features])


@dataclasses.dataclass(frozen=True, eq=False)
class Logistic(Linear):
    """Ridge-regularised logistic regression.

    The ridge is that of the largest evidence (Laplace's approximation): it grows where many columns tell little.
    """

    evidence: float = dataclasses.field(default=0.0, metadata=UNSAVED)  # nats above a fair coin

    tag = "logistic"

    def fit(self, matrix: FloatArray, labels: Labels) -> Logistic:
        scaled = self._scaled(matrix)
        features = scaled._features(matrix)
        best, evidence = None, -math.inf
        start = np.zeros(features.shape[1])
        for ridge in self.sizes.ridges[::-1]:
            start, found = _ridge_fit(features, labels, ridge, start, self.sizes.steps)
            if found > evidence:
                best, evidence = start, found
            elif found < evidence - 5.0:  # of columns that share noise it falls by a nat, and rises by tens after that
                break
        assert best is not None
        return dataclasses.replace(scaled, weights=best, evidence=evidence)


def _quantiles(values: FloatArray, shares: Sequence[float]) -> FloatArray:
    """Quantiles of columns, NaN aside, shape (shares, columns), to the last bit as numpy's `nanquantile` gives them.

    That goes column by column, and takes ten times as long.
    """
    ordered, last = np.sort(values, axis=0), (~np.isnan(values)).sum(axis=0) - 1  # NaN comes last
    places = np.multiply.outer(shares, last)
    below = np.floor(places).astype(np.intp)
    part = places - below
    a, b = (np.take_along_axis(ordered, np.minimum(k, last), axis=0) for k in (below, below + 1))
    return np.asarray(np.where(part < 0.5, a + (b - a) * part, b - (b - a) * (1.0 - part)))


def _ridge_fit(
    features: FloatArray, labels: Labels, ridge: float, start: FloatArray, steps: int
) -> tuple[FloatArray, float]:
    """Weights, and Laplace's approximation of their evidence above a fair coin, in nats."""
    weights, size = start, features.shape[1]
    hessian = np.eye(size)
    for _ in range(steps):
        p = scipy.special.expit(features @ weights)
        gradient = features.T @ (labels - p) - ridge * weights
        hessian = (features * (p * (1.0 - p))[:, None]).T @ features
        hessian.flat[:: size + 1] += ridge
        step = np.linalg.solve(hessian, gradient)
        largest = float(np.abs(step).max(initial=0.0))
        weights = weights + step * min(1.0, 3.0 / max(largest, 1e-300))
        if largest < 0.01:  # the next one is about its square
            break
    scores = features @ weights
    gain = float(-np.logaddexp(0.0, np.where(labels == 1, -scores, scores)).sum()) + math.log(2.0) * len(labels)
    _, volume = np.linalg.slogdet(hessian)
    return weights, gain - 0.5 * ridge * float(weights @ weights) + 0.5 * size * math.log(ridge) - 0.5 * float(volume)


@dataclasses.dataclass(frozen=True, eq=False)
class MeanDifference(Linear):
    """Log odds of two normal laws of independent numbers, whose means differ by an estimate.

    The numbers are columns, their soft signs, or products of two and three of them, in which interactions show: an
    orientation, a determinant's sign, parts that are alike.

    The estimate (James and Stein 1961) is shrunk by what chance gives as many columns, so that it tells a little where
    the draws are far fewer than the columns. A fit takes a few passes over the numbers.
    """

    middle: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(1))  # mean of each number that is weighed

    tag = "mean difference"

    def _features(self, matrix: FloatArray) -> FloatArray:
        return super()._features(matrix) - self.middle

    def fit(self, matrix: FloatArray, labels: Labels) -> MeanDifference:
        return self.fit_with_scores(matrix, labels)[0]

    def fit_with_scores(self, matrix: FloatArray, labels: Labels) -> tuple[MeanDifference, FloatArray]:
        """A fitted copy, and the scores of these rows out of fold; the folds share scales, which ask for no label."""
        scaled = self._scaled(matrix)
        factors = dataclasses.replace(scaled, of="values") if self.of == "products" else scaled
        centre = scaled.centre + scaled.spread * factors._features(matrix).mean(axis=0)
        scaled = dataclasses.replace(scaled, centre=centre)
        some = max(self.sizes.at_once, matrix.size) // scaled._features(matrix[:1]).shape[1]  # all, but of products
        z = scaled._features(matrix[:some])  # soft signs about another centre are not those before less their mean
        middle = z.mean(axis=0)
        z -= middle
        deviation = z.std(axis=0)
        deviation[deviation == 0.0] = 1.0
        z /= deviation
        signs = 2.0 * labels[:some] - 1.0
        signs -= signs.mean()
        total, scores = signs @ z, np.empty(len(matrix))
        for k in range(self.sizes.folds):
            held = slice(k, len(z), self.sizes.folds)
            others = total - signs[held] @ z[held]
            scores[held] = z[held] @ _shrunk(others, len(z) - len(z[held]))
        fitted = dataclasses.replace(scaled, middle=middle, weights=_shrunk(total, len(z)) / deviation)
        scores[some:] = fitted(matrix[some:])
        return fitted, scores


def _shrunk(total: FloatArray, draws: int) -> FloatArray:
    """Weights from the sum of so many rows with their signs, the square of whose length is draws * columns by chance.

    Positive-part James-Stein, less shrunk than by one standard deviation of chance: of a direction that is not yet
    clear a tree may tell more.
    """
    columns = len(total)
    least = 1.0 / (1.0 + math.sqrt(0.5 * columns))
    factor = max(1.0 - draws * columns / max(float(total @ total), 1e-9), least)
    return total * (2.0 * factor / (draws + factor))


@dataclasses.dataclass(frozen=True, eq=False)
class Additive(Form):
    """The sum of the log odds that the trees of many columns give, each of which tells a little."""

    name: str
    columns: tuple[int, ...]
    centres: tuple[float, ...] = ()  # NaN where labels are not swapped
    trees: tuple[Steps, ...] = ()

    exact, tag = True, "additive"

    def fit(self, matrix: FloatArray, labels: Labels) -> Additive:
        centres, ordered = [], []
        for k in self.columns:
            values = matrix[:, k]
            finite = values[np.isfinite(values)]
            centres.append(float(np.median(finite)) if len(finite) else 0.0)
            with np.errstate(invalid="ignore"):
                above = values > centres[-1]
            ordered += [Ordered.of(values, labels), Ordered.of(np.abs(values - centres[-1]), labels ^ above)]
        grown = pruned_trees(Forest(ordered))
        is_mirrored = grown.evidence[1::2] > grown.evidence[::2]
        trees = [grown.steps(2 * k + int(mirrored)) for k, mirrored in enumerate(is_mirrored)]
        centres = [centre if mirrored else math.nan for centre, mirrored in zip(centres, is_mirrored, strict=True)]
        return dataclasses.replace(self, centres=tuple(centres), trees=tuple(trees))

    def __call__(self, matrix: FloatArray) -> FloatArray:
        total = np.zeros(len(matrix))
        for k, centre, tree in zip(self.columns, self.centres, self.trees, strict=True):
            values = matrix[:, k]
            if math.isnan(centre):
                total += scipy.special.logit(tree(values))
            else:
                with np.errstate(invalid="ignore"):
                    total += np.where(values > centre, -1.0, 1.0) * scipy.special.logit(tree(np.abs(values - centre)))
        return total


@dataclasses.dataclass(frozen=True, eq=False)
class Neighbours(Form):
    """The log ratio of the two densities at a row, by the distances to the k-th nearest earlier draw of each label.

    In one column, draws that equal the row are counted instead where there are some: a frequency table.
    """

    name: str
    views: tuple[View, ...]
    k: int
    scale: FloatArray = dataclasses.field(default_factory=lambda: np.ones(1))
    sides: tuple[Matrix, Matrix] = (np.zeros((0, 1)), np.zeros((0, 1)))

    exact, tag = True, "neighbours"
    tiny = 1e-13  # distances below it are one
    largest = 1e6  # distances above it are one

    def fit(self, matrix: FloatArray, labels: Labels) -> Neighbours:
        scale = np.array([_spread(view(matrix)) for view in self.views])
        scaled = dataclasses.replace(self, scale=scale)
        rows = scaled._read(matrix)
        return dataclasses.replace(scaled, sides=(rows[labels == 0], rows[labels == 1]))

    def _read(self, matrix: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            columns = np.stack([view(matrix) for view in self.views], axis=1) / self.scale
        return np.clip(np.nan_to_num(columns, nan=-1e12, posinf=1e13, neginf=-1e13), -1e13, 1e13)

    def __call__(self, matrix: FloatArray) -> FloatArray:
        rows = self._read(matrix)
        sizes = [len(side) for side in self.sides]
        even = math.log((sizes[0] + 1) / (sizes[1] + 1))
        if rows.shape[1] == 1:
            return self._of_one(rows[:, 0], even)
        trees = [(scipy.spatial.cKDTree(side), [min(self.k, max(len(side), 1))]) for side in self.sides]
        distances = [tree.query(rows, k)[0][:, 0] for tree, k in trees]  # infinite from a side without rows
        return self._ratio(distances[0], distances[1], min(rows.shape[1], 3)) + even

    def _of_one(self, values: FloatArray, even: float) -> FloatArray:
        order = np.argsort(values)  # what follows one another is found near: half of the time
        ordered, distances, counts = values[order], [], []
        for others in (np.sort(side[:, 0]) for side in self.sides):
            at = np.searchsorted(others, ordered, "left")
            counts.append(np.searchsorted(others, ordered, "right") - at)
            distances.append(_kth_distance(ordered, others, at, self.k))
        repeats = counts[0] + counts[1] >= 2
        frequency = np.log((counts[1] + 0.5) / (counts[0] + 0.5))
        found = np.empty(len(values))
        found[order] = np.where(repeats, frequency, self._ratio(distances[0], distances[1], 1)) + even
        return found

    def _ratio(self, distances_0: FloatArray, distances_1: FloatArray, dimensions: int) -> FloatArray:
        first, second = (np.log(np.minimum(d, self.largest) + self.tiny) for d in (distances_0, distances_1))
        return np.asarray(dimensions * (first - second))

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Neighbours:
        """The view that `to_dict` wrote; a side without rows has as many columns as there are views."""
        found = super().from_dict(record)
        sides = [side.reshape(-1, len(found.views)) for side in found.sides]
        return dataclasses.replace(found, sides=(sides[0], sides[1]))


def _kth_distance(values: FloatArray, others: FloatArray, at: NDArray[np.intp], k: int) -> FloatArray:
    """Distance to the k-th nearest of others, which are sorted; `at` is the number of them below each value.

    The k nearest follow one another. The first of them is where those to the right begin to be the farther ones.
    """
    padded = np.concatenate([np.full(k, -np.inf), others, np.full(k, np.inf)])
    low, high = np.full(len(values), -1), np.full(len(values), k)
    for _ in range(k.bit_length()):
        middle = (low + high + 1) // 2
        is_right = padded[at + k + middle - 1] - values >= values - padded[at + middle]
        low, high = np.where(is_right, low, middle), np.where(is_right, middle, high)
    left = np.where(high > 0, values - padded[at + np.maximum(high - 1, 0)], np.inf)
    return np.asarray(np.minimum(padded[at + k + high - 1] - values, left))


def _spread(values: FloatArray) -> float:
    """Half of what holds two thirds of the finite values; in other units it is as many times as large."""
    ordered = np.sort(values[np.isfinite(values)])
    n = len(ordered)
    if not n:
        return 1.0
    with np.errstate(over="ignore"):
        spread = (ordered[n * 21 // 25] - ordered[n * 4 // 25]) / 2.0
    spread = max(float(spread), 1e-9 * float(np.abs(ordered[[0, -1]]).max()))
    return spread if 0.0 < spread < math.inf else 1.0


@dataclasses.dataclass(frozen=True)
class Known(Form):
    """A column that is a log odds itself: nothing is fitted."""

    name: str
    column: int

    tag = "known"

    def fit(self, matrix: FloatArray, labels: Labels) -> Known:
        del matrix, labels
        return self

    def __call__(self, matrix: FloatArray) -> FloatArray:
        return np.nan_to_num(np.clip(matrix[:, self.column], -30.0, 30.0))


Columns = tuple[int, ...]
LearnedView = Known | Logistic | MeanDifference | Additive | Neighbours  # in what is saved, told apart by their tags


def learners(
    matrix: FloatArray, n_read: int, views: Sequence[View], counts: Columns = (), groups: Sequence[Columns] = ()
) -> list[LearnedView]:
    """The learned views that are worth a fit on these draws.

    A regression has at most `LinearSizes.max_columns`, which the chosen views name where more were read; one more has
    `counts`. A difference of means has all that were read, from six on: of three it saves nothing, of six a tenth of
    the draws. Of one column squares tell two scales apart, in two thirds of the draws that trees take.
    """
    size, most = len(matrix), LinearSizes.max_columns
    read = [k for k in range(n_read) if np.ptp(np.nan_to_num(matrix[:, k], posinf=1e300, neginf=-1e300)) > 0.0]
    if size < 24 or not read:
        return []
    named = sorted({k for view in views for k in view.columns if k < n_read})
    few = tuple(read if len(read) <= most else named[:most])
    kinds: tuple[tuple[str, tuple[int, ...], str], ...]
    kinds = (("", few, "values"), (" of soft signs", few, "soft signs"), (" of counts", counts[:most], "values"))
    if len(few) == 1:
        kinds += ((" of steep signs", few, "steep signs"), (" with squares", few, "sizes"))
    found: list[LearnedView] = [Logistic(f"logistic regression{name}", own, of) for name, own, of in kinds if own]
    if len(read) >= 6:
        found += [MeanDifference(f"difference of mean {of}", tuple(read), of) for of in ("values", "soft signs")]
    found += [MeanDifference("difference of mean products", several, "products") for several in groups]
    if len(few) > 1 and size >= 60:
        found += [Logistic("logistic regression of signs", few, "signs")]
        if len(few) <= 40:
            found += [Logistic("logistic regression with squares", few, "sizes")]
        found += [Additive("sum of log odds", few)]
    for view in views[:4] if n_read > 1 else ():
        if size >= 48:
            found += [Neighbours(f"density ratio of {view.kind}", (view,), k) for k in ((2, 12) if size > 60 else (2,))]
    own = [k for k in few if len(np.unique(matrix[:, k])) > 0.5 * size] if len(few) <= 60 else []
    if size >= 48 and len(own) >= 2:
        groups = [tuple(own)] if len(own) > 2 else []
        if len(own) <= 5:
            groups += [(a, b) for i, a in enumerate(own) for b in own[i + 1 :]]
        for group in groups:
            some = tuple(View("value", (k,)) for k in group)
            found += [Neighbours("density ratio of several columns", some, k) for k in (2, 8)]
    return found
