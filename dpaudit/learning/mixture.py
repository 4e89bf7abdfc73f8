"""Mixture: the probability of label 1 of an output, averaged over views and trees by what they say of earlier labels.

Two *structures* differ in the trees that they grow on the views: pruned ones and inheriting ones. Within a structure all views are averaged by prior times evidence, with a fair coin as one
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
from numpy.typing import NDArray
from scipy.special import expit

from dpaudit.features.reader import Reader
from dpaudit.features.views import View, choose_views, view_from_dict, view_to_dict
from dpaudit.learning.learned_views import LearnedView, Logistic, learned_from_dict, learners, out_of_fold
from dpaudit.learning.rank_tree import Forest, Grown, Labels, Ordered, Steps, inheriting_trees, log_likelihood, pruned_trees
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes


@dataclasses.dataclass(frozen=True)
class MixtureSizes:
    """How many models a mixture keeps, and what learned views cost."""

    max_parts: int = 8  # models of a structure that predict
    min_weight: float = 1e-4
    learned_cost: float = 1.0  # nats, of a learned view
    least: float = 1e-6  # probability of a label
    max_told: int = 4  # views whose labels are counted once draws are many


SIZES = MixtureSizes()
STRUCTURES = ("pruned", "inheriting")
Score = Callable[[FloatArray], FloatArray]


@dataclasses.dataclass(frozen=True, eq=False)
class Told:
    """A view that a fit found to tell much: its values of the draws of the fit (of a learned view, out of fold)."""

    view: View | LearnedView
    cost: float
    values: FloatArray


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
            return np.asarray(expit(values))
        p = self.tree(values)
        swaps = self.view.swaps(matrix) if isinstance(self.view, View) else None
        return p if swaps is None else np.where(swaps, 1.0 - p, p)

    def to_dict(self) -> dict[str, Any]:
        own = {"view": view_to_dict(self.view)} if isinstance(self.view, View) else {"learned": self.view.to_dict()}
        return {"weight": self.weight.hex(), **own, "tree": None if self.tree is None else self.tree.to_dict()}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Part:
        view = view_from_dict(record["view"]) if "view" in record else learned_from_dict(record["learned"])
        tree = None if record["tree"] is None else Steps.from_dict(record["tree"])
        return cls(float.fromhex(record["weight"]), view, tree)


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A candidate: a view with its evidence less cost, and a tree on it (None: its own probability).

    The tree may be one of several that were `grown` together: its steps are made where it has weight.
    """

    evidence: float
    view: View | LearnedView
    tree: Steps | None = None
    grown: tuple[Grown, int] | None = None

    def part(self, weight: float) -> Part:
        """The model with its weight."""
        return Part(weight, self.view, self.tree if self.grown is None else self.grown[0].steps(self.grown[1]))


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
        """The mixture as JSON values."""
        parts = [[part.to_dict() for part in structure] for structure in self.structures]
        return {"reader": self.reader.to_dict(), "structures": parts, "weights": [w.hex() for w in self.weights.tolist()]}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Mixture:
        """What `to_dict` wrote; ValueError where it is none."""
        parts = tuple(tuple(Part.from_dict(part) for part in structure) for structure in record["structures"])
        weights = np.array([float.fromhex(w) for w in record["weights"]])
        if len(weights) != len(parts):
            raise ValueError("mixture must have a weight for each structure.")
        return cls(Reader.from_dict(record["reader"]), parts, weights)


def fit_mixture(
    reader: Reader, matrix: FloatArray, labels: Labels, foretold: FloatArray, extra: Sequence[LearnedView] = ()
) -> tuple[Mixture, list[Told]]:
    """The mixture of all structures on earlier draws, and the views that tell most, with what they tell of these draws.

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
    told: list[Told] = []
    ordered: list[Ordered] = []
    direct: list[tuple[int, float]] = []  # learned views with the evidence of their own probability
    for view in views:
        values, swaps = view(matrix), view.swaps(matrix)
        told.append(Told(view, view.cost, values))
        ordered.append(Ordered.of(values, labels if swaps is None else labels ^ swaps))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for learner in (*extra, *learners(matrix, reader.n_read, views)):
            is_line = isinstance(learner, Logistic) and len(learner.columns) == 1
            fitted = learner.fit(matrix, labels)
            past = fitted(matrix) if is_line else out_of_fold(learner, matrix, labels)
            own = fitted.evidence if isinstance(fitted, Logistic) and is_line else log_likelihood(expit(past), labels)
            direct.append((len(told), own - SIZES.learned_cost))
            told.append(Told(fitted, SIZES.learned_cost, past))
            ordered.append(Ordered.of(past, labels))
    of_structures: list[list[Model]] = []
    for grow in (pruned_trees, inheriting_trees):
        grown = grow(Forest(ordered))
        models = [Model(grown.evidence[k] - one.cost, one.view, grown=(grown, k)) for k, one in enumerate(told)]
        of_structures.append(models + [Model(evidence, told[k].view) for k, evidence in direct])
    mixture = mixture_of(reader, of_structures, foretold)
    shares: dict[int, float] = {}
    for weight, structure in zip(mixture.weights, mixture.structures, strict=True):
        for part in structure:
            shares[id(part.view)] = shares.get(id(part.view), 0.0) + float(weight) * part.weight
    best = sorted(told, key=lambda one: -shares.get(id(one.view), 0.0))[: SIZES.max_told]
    return mixture, [one for one in best if id(one.view) in shares]


def mixture_of(
    reader: Reader, of_structures: Sequence[Sequence[Model]], foretold: FloatArray
) -> Mixture:
    """The mixture of models with their evidence less cost, in nats, by structure."""
    structures = []
    for parts in of_structures:
        logs = np.array([model.evidence for model in parts] + [0.0])
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        best = np.argsort(-weights[:-1], kind="stable")[: SIZES.max_parts].tolist()
        kept = [k for k in best if weights[k] > SIZES.min_weight]
        structures.append(tuple(parts[k].part(float(weights[k])) for k in kept))
    return Mixture(reader, tuple(structures), weights_of(foretold))


def weights_of(foretold: FloatArray) -> FloatArray:
    """Weights of structures by the nats that they foretold, even beforehand."""
    weights = np.exp(foretold - foretold.max())
    return np.asarray(weights / weights.sum())


NO_FORETELLING: NDArray[np.float64] = np.zeros(len(STRUCTURES))
