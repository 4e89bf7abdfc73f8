"""Mixture: the probability of label 1 of an output, averaged over views and trees by what they say of earlier labels.

Three *structures* differ in the trees that they grow on the views: pruned ones whose cells have one strength or
several, and inheriting ones. Within a structure all views are averaged by prior times evidence, with a fair coin as one
more model. Structures are weighed by what they foretold of earlier rounds before these came (prequential likelihood:
Dawid 1984): nothing is tuned, and no draw is used twice.

Validity: a mixture is fitted on released draws and frozen.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.reader import Reader
from dpaudit.features.views import View, choose_views, view_from_dict, view_to_dict
from dpaudit.learning.learned_views import LearnedView, Logistic, learned_from_dict, learners, out_of_fold
from dpaudit.learning.rank_tree import Cells, Labels, Steps, inheriting_tree, log_likelihood, pruned_tree
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes


@dataclasses.dataclass(frozen=True)
class MixtureSizes:
    """How many models a mixture keeps, and what learned views cost."""

    max_parts: int = 8  # models of a structure that predict
    min_weight: float = 1e-4
    learned_cost: float = 1.0  # nats, of a learned view
    least: float = 1e-6  # probability of a label


SIZES = MixtureSizes()
STRUCTURES = ("one strength", "several strengths", "inheriting")
Score = Callable[[FloatArray], FloatArray]


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One model: a view or a learned view, with a tree on it (None: the learned view's own probability)."""

    weight: float
    view: View | LearnedView
    tree: Steps | None

    def __call__(self, matrix: FloatArray, known: dict[int, FloatArray]) -> FloatArray:
        """Probabilities of label 1; `known` has the values of views that were worked out."""
        if id(self.view) not in known:
            known[id(self.view)] = self.view(matrix)
        values = known[id(self.view)]
        if self.tree is None:
            return np.asarray(scipy.special.expit(values))
        p = self.tree(values)
        swaps = self.view.swaps(matrix) if isinstance(self.view, View) else None
        return p if swaps is None else np.where(swaps, 1.0 - p, p)

    def to_dict(self, place: int) -> dict[str, Any]:
        """The part as JSON values, whose view has this place in the mixture's list."""
        tree = None if self.tree is None else self.tree.to_dict()
        return {"weight": self.weight.hex(), "view": place, "tree": tree}

    @classmethod
    def from_dict(cls, record: dict[str, Any], views: Sequence[View | LearnedView]) -> Part:
        """What `to_dict` wrote."""
        tree = None if record["tree"] is None else Steps.from_dict(record["tree"])
        return cls(float.fromhex(record["weight"]), views[int(record["view"])], tree)


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """A frozen predictor: see the module.

    Attributes
    ----------
    reader : Reader
    structures : tuple of tuple of Part
    weights : ndarray of float, shape (structures,)
    """

    reader: Reader
    structures: tuple[tuple[Part, ...], ...]
    weights: FloatArray

    def of_structures(self, outcomes: Outcomes) -> FloatArray:
        """Probabilities of label 1 by each structure, shape (structures, draws)."""
        return self.of_matrix(self.reader(outcomes))

    def of_matrix(self, matrix: FloatArray) -> FloatArray:
        """The same of rows that were read, shape (structures, draws)."""
        known: dict[int, FloatArray] = {}
        found = np.full((len(self.structures), len(matrix)), 0.5)
        for row, parts in zip(found, self.structures, strict=True):
            row *= 1.0 - sum(part.weight for part in parts)
            for part in parts:
                row += part.weight * part(matrix, known)
        return np.clip(found, SIZES.least, 1.0 - SIZES.least)

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """Probabilities of label 1, shape (draws,)."""
        return np.asarray(self.weights @ self.of_structures(outcomes))

    def strongest(self) -> Part | None:
        """The part of the largest weight; None where nothing but the fair coin is left."""
        best = max(
            ((w * part.weight, k, j) for k, (w, parts) in enumerate(zip(self.weights, self.structures, strict=True))
             for j, part in enumerate(parts)), default=None,
        )  # fmt: skip
        return None if best is None else self.structures[best[1]][best[2]]

    def to_dict(self) -> dict[str, Any]:
        """The mixture as JSON values; parts of one view share it."""
        views = {id(part.view): part.view for structure in self.structures for part in structure}
        place = {key: k for k, key in enumerate(views)}
        return {
            "reader": self.reader.to_dict(),
            "views": [
                view_to_dict(view) if isinstance(view, View) else {"learned": view.to_dict()} for view in views.values()
            ],
            "structures": [[part.to_dict(place[id(part.view)]) for part in structure] for structure in self.structures],
            "weights": [w.hex() for w in self.weights.tolist()],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Mixture:
        """What `to_dict` wrote; ValueError where it is none."""
        views = [
            learned_from_dict(one["learned"]) if "learned" in one else view_from_dict(one) for one in record["views"]
        ]
        parts = tuple(tuple(Part.from_dict(part, views) for part in structure) for structure in record["structures"])
        weights = np.array([float.fromhex(w) for w in record["weights"]])
        if len(weights) != len(parts):
            raise ValueError("mixture must have a weight for each structure.")
        return cls(Reader.from_dict(record["reader"]), parts, weights)


def fit_mixture(
    reader: Reader, matrix: FloatArray, labels: Labels, foretold: FloatArray, extra: Sequence[LearnedView] = ()
) -> Mixture:
    """The mixture of all structures on earlier draws.

    Parameters
    ----------
    reader : Reader
    matrix : ndarray of float, shape (draws, columns)
        What it reads of them, in an order that does not depend on the labels.
    labels : ndarray of int, shape (draws,)
    foretold : ndarray of float, shape (structures,)
        Nats by which each structure foretold the labels of earlier rounds.
    extra : sequence of LearnedView
        Such as the mechanism's own density.
    """
    views = choose_views(matrix, labels, reader.n_read)
    of_structures: list[list[tuple[float, View | LearnedView, Steps | None]]] = [[] for _ in STRUCTURES]

    def add_trees(view: View | LearnedView, cost: float, values: FloatArray, own: Labels) -> None:
        cells = Cells(values, own)
        trees = (pruned_tree(cells, (1.0,)), pruned_tree(cells), inheriting_tree(cells, values, own))
        for parts, tree in zip(of_structures, trees, strict=True):
            parts.append((tree.evidence - cost, view, tree))

    for view in views:
        swaps = view.swaps(matrix)
        add_trees(view, view.cost, view(matrix), labels if swaps is None else labels ^ swaps)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for learner in (*extra, *learners(matrix, reader.n_read, views)):
            is_line = isinstance(learner, Logistic) and len(learner.columns) == 1
            fitted = learner.fit(matrix, labels)
            past = fitted(matrix) if is_line else out_of_fold(learner, matrix, labels)
            own = getattr(fitted, "evidence", None) if is_line else log_likelihood(scipy.special.expit(past), labels)
            for parts in of_structures[1:]:
                parts.append((float(own or 0.0) - SIZES.learned_cost, fitted, None))
            if not is_line:
                add_trees(fitted, SIZES.learned_cost, past, labels)
    structures = []
    for parts in of_structures:
        logs = np.array([evidence for evidence, *_ in parts] + [0.0])
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        best = [k for k in np.argsort(-weights[:-1], kind="stable")[: SIZES.max_parts].tolist()]
        kept = [k for k in best if weights[k] > SIZES.min_weight]
        structures.append(tuple(Part(float(weights[k]), *parts[k][1:]) for k in kept))
    return Mixture(reader, tuple(structures), weights_of(foretold))


def weights_of(foretold: FloatArray) -> FloatArray:
    """Weights of structures by the nats that they foretold, even beforehand."""
    weights = np.exp(foretold - foretold.max())
    return np.asarray(weights / weights.sum())


def fit_views(reader: Reader, matrix: FloatArray, labels: Labels, max_views: int) -> Mixture:
    """The mixture of pruned trees on the few clearest views alone: in a tenth of the time, for a first look."""
    found = []
    for view in choose_views(matrix, labels, reader.n_read)[:max_views]:
        swaps = view.swaps(matrix)
        tree = pruned_tree(Cells(view(matrix), labels if swaps is None else labels ^ swaps))
        found.append((tree.evidence - view.cost, view, tree))
    weights = scipy.special.softmax([*(evidence for evidence, *_ in found), 0.0])
    parts = tuple(Part(float(weight), view, tree) for weight, (_, view, tree) in zip(weights, found, strict=False))
    return Mixture(reader, (parts,), np.ones(1))


NO_FORETELLING: NDArray[np.float64] = np.zeros(len(STRUCTURES))
