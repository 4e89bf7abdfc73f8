"""Mixture: the probability of label 1 of an output, averaged over views and trees by what they say of earlier labels.

There are three *structures*. The first averages trees on all views by prior times evidence, with a fair coin as one
more model; the second hears what learned views say themselves too. The third shifts the log odds of what both say,
along one view: what is rare is told apart from what surrounds it. All, each at several temperatures, are weighed by
what they foretold of earlier rounds before these came (prequential likelihood: Dawid 1984); a part of the weights goes
back to all after each round (fixed share: Herbster and Warmuth 1998). What shifts have from the draws of their own fit
is bounded: `MixtureSizes.max_gain`.

Validity: a mixture is fitted on released draws and frozen.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
import threadpoolctl
from numpy.typing import NDArray

from dpaudit.features.density import LogRatio
from dpaudit.features.outcomes import Outcomes
from dpaudit.features.reader import Reader
from dpaudit.features.views import View, choose_views
from dpaudit.learning.learned_views import Known, LearnedView, Logistic, fit_with_scores, learners
from dpaudit.learning.rank_tree import (
    Forest,
    Labels,
    Ordered,
    Shifts,
    Steps,
    log_likelihood_gain,
    pruned_trees,
    shift_likelihoods,
    shift_trees,
)
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import reader_of


@dataclasses.dataclass(frozen=True)
class MixtureSizes:
    """Limits on the models of a mixture, and costs of learned views."""

    max_parts: int = 4  # models of a structure that predict: a count of a draw asks all of them
    min_weight: float = 1e-3  # of a model, below which it is left out
    learned_cost: float = 1.0  # nats, of a learned view
    least: float = 1e-6  # probability of a label
    temperatures: tuple[float, ...] = (1.0, 0.7, 0.4, 0.0)  # by which log odds are multiplied: 0 is a fair coin
    shares: tuple[float, ...] = (0.55, 0.25, 0.1, 0.1)  # of the temperatures, beforehand
    max_gain: float = 20.0  # nats that shifts have from the draws of their fit: beyond, they are as good as certain
    max_told: int = 4  # views whose labels are counted once draws are many


SIZES = MixtureSizes()
BLAS = functools.cache(threadpoolctl.ThreadpoolController)  # of the libraries that are loaded when it is asked
STRUCTURES = ("trees", "trees and learned views", "shifted")


@dataclasses.dataclass(frozen=True, eq=False)
class Clue:
    """A view that a fit looks at: its values of the draws of the fit (of a learned view, out of fold)."""

    view: View | LearnedView
    cost: float
    values: FloatArray


@dataclasses.dataclass(frozen=True, eq=False)
class Part:
    """One model: a view with a tree on it, or shifts of a base's log odds along it, or (None) its own probability."""

    weight: float
    view: View | LearnedView
    tree: Steps | Shifts | None

    def __call__(self, matrix: FloatArray, known: dict[int, FloatArray], log_odds: FloatArray) -> FloatArray:
        """Probabilities of label 1; `known` has values of views worked out before, `log_odds` are those of a base."""
        if id(self.view) not in known:
            known[id(self.view)] = self.view(matrix)
        values = known[id(self.view)]
        if self.tree is None:
            return np.asarray(scipy.special.expit(values))
        swaps = swaps_of(self.view, matrix)
        if isinstance(self.tree, Steps):
            p = self.tree(values)
        else:
            p = self.tree(values, log_odds if swaps is None else np.where(swaps, -log_odds, log_odds))
        return p if swaps is None else np.where(swaps, 1.0 - p, p)

    def to_dict(self, place: int) -> dict[str, Any]:
        """The part as JSON values, whose view has this place in the mixture's list."""
        return {"weight": self.weight.hex(), "view": place, "tree": self.tree and self.tree.to_dict()}

    @classmethod
    def from_dict(cls, record: dict[str, Any], views: Sequence[View | LearnedView], kind: Any) -> Part:
        """The part that `to_dict` wrote, with a tree of this kind."""
        place, tree = operator.index(record["view"]), record["tree"]
        if place < 0:
            raise ValueError(f"view must be a place in the list of views, got {place}.")
        return cls(float.fromhex(record["weight"]), views[place], None if tree is None else kind.from_dict(tree))


def swaps_of(view: View | LearnedView, matrix: FloatArray) -> NDArray[np.bool_] | None:
    """Rows whose labels are swapped where a tree looks at a view; None where none are."""
    return view.swaps(matrix) if isinstance(view, View) else None


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """A candidate: a view with its evidence less cost, and a tree or shifts (None: its own probability).

    A tree may be a call that makes it, where the model has weight.
    """

    evidence: float
    view: View | LearnedView
    tree: Steps | Shifts | functools.partial[Steps] | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """A frozen predictor: see the module.

    Attributes
    ----------
    reader : Reader
    parts : tuple of Part
        Of the second structure: trees, and learned views themselves.
    shifted : tuple of Part
        Of the last one, with shifts of what the others say.
    weights : ndarray of float, shape (structures, temperatures)
    trees : tuple of Part
        Of the first one.
    """

    reader: Reader
    parts: tuple[Part, ...]
    shifted: tuple[Part, ...]
    weights: FloatArray
    trees: tuple[Part, ...] = ()

    def __deepcopy__(self, memo: object) -> Mixture:
        return self

    def of_matrix(self, matrix: FloatArray, known: dict[int, FloatArray] | None = None) -> FloatArray:
        """Probabilities of label 1 of rows that were read, by each structure, shape (structures, draws).

        `known` has values of views, by their ids.
        """
        known = {} if known is None else known
        even = np.full(len(matrix), 0.5)
        found = [self._averaged(parts, even, matrix, known) for parts in (self.trees, self.parts)]
        shares = self.weights[:-1].sum(axis=1) + SIZES.least
        first, second = (shares / shares.sum()).tolist()
        base = first * found[0] + second * found[1]
        return np.stack([*found, self._averaged(self.shifted, base, matrix, known)])

    def _averaged(
        self, parts: Sequence[Part], base: FloatArray, matrix: FloatArray, known: dict[int, FloatArray]
    ) -> FloatArray:
        """The average of models, and of a base that has the rest of their weights."""
        # Validity: sums go draw by draw. A matrix product adds up in an order that depends on how many there are.
        p, log_odds = base * (1.0 - sum(part.weight for part in parts)), scipy.special.logit(base)
        for part in parts:
            p = p + part.weight * part(matrix, known, log_odds)
        return np.asarray(np.clip(p, SIZES.least, 1.0 - SIZES.least))

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """Probabilities of label 1, shape (draws,)."""
        return self.mixed(self.of_matrix(self.reader(outcomes)))

    def mixed(self, of_structures: FloatArray) -> FloatArray:
        """The average of what the structures say at all temperatures, shape (draws,)."""
        found, left = np.zeros(of_structures.shape[1]), 1.0
        for row, p in zip(self.weights, of_structures, strict=True):
            log_odds = scipy.special.logit(p)
            for weight, temperature in zip(row.tolist(), SIZES.temperatures, strict=True):
                if weight > SIZES.min_weight and temperature > 0.0:
                    found += weight * (p if temperature == 1.0 else scipy.special.expit(temperature * log_odds))
                    left -= weight
        return found + 0.5 * left

    def strongest(self) -> Part | None:
        """The part of the second structure of the largest weight; None where nothing but the fair coin is left."""
        return max(self.parts, key=lambda part: part.weight, default=None)

    @property
    def views(self) -> list[View | LearnedView]:
        """The views of all its models, each once; in the same order when it was read from what was saved."""
        return list({id(part.view): part.view for part in (*self.trees, *self.parts, *self.shifted)}.values())

    def to_dict(self) -> dict[str, Any]:
        """The mixture as JSON values; models of one view share it."""
        place = {id(view): k for k, view in enumerate(self.views)}
        own = [one.to_dict() if isinstance(one, View) else {"learned": one.to_dict()} for one in self.views]
        return {
            "reader": self.reader.to_dict(),
            "views": own,
            "trees": [part.to_dict(place[id(part.view)]) for part in self.trees],
            "parts": [part.to_dict(place[id(part.view)]) for part in self.parts],
            "shifted": [part.to_dict(place[id(part.view)]) for part in self.shifted],
            "weights": [[w.hex() for w in row] for row in self.weights.tolist()],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any], density: LogRatio | None = None) -> Mixture:
        """The mixture that `to_dict` wrote; ValueError if it is damaged, or reads a density and none is given."""
        try:
            views = [
                reader_of(LearnedView)(one["learned"]) if "learned" in one else View.from_dict(one)
                for one in record["views"]
            ]
            trees, parts = (tuple(Part.from_dict(part, views, Steps) for part in record[k]) for k in ("trees", "parts"))
            shifted = tuple(Part.from_dict(part, views, Shifts) for part in record["shifted"])
            weights = np.array([[float.fromhex(w) for w in row] for row in record["weights"]])
            if weights.shape != NO_FORETELLING.shape or any(part.tree is None for part in shifted):
                raise ValueError("mixture must have a weight for each structure and temperature.")
            for each in (weights.ravel().tolist(), *([p.weight for p in some] for some in (trees, parts, shifted))):
                if not all(weight >= 0.0 for weight in each) or not sum(each) <= 1.0 + 1e-6:
                    raise ValueError("mixture must have weights that are not negative, and sum to at most 1.")
            found = cls(Reader.from_dict(record["reader"], density), parts, shifted, weights, trees)
            # Each view reads columns that the reader has, and all numbers of a learned one have their shapes.
            with np.errstate(all="ignore"):
                if np.isnan(found.of_matrix(np.broadcast_to(0.0, (1, found.reader.n_columns)))).any():
                    raise ValueError("mixture must predict probabilities, got NaN.")
            return found
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"mixture must be one that was saved, got {error!r:.200}.") from error


def fit_mixture(
    reader: Reader, matrix: FloatArray, labels: Labels, foretold: FloatArray
) -> tuple[Mixture, list[Clue], FloatArray | None]:
    """The mixture on earlier draws, the views that tell most of them, and their log odds by learned views themselves.

    Parameters
    ----------
    reader : Reader
    matrix : ndarray of float, shape (draws, columns)
        What it reads of them, in an order that does not depend on the labels.
    labels : ndarray of int, shape (draws,)
    foretold : ndarray of float, shape (structures, temperatures)
        Nats by which each structure at each temperature foretold the labels of earlier rounds.
    """
    views = choose_views(matrix, labels, reader.layout)
    clues = [Clue(view, view.cost, view(matrix)) for view in views]
    direct: list[Model] = []  # learned views with the evidence of their own probability
    scores: dict[int, FloatArray] = {}  # of each, by its id
    with warnings.catch_warnings(), BLAS().limit(limits=1, user_api="blas"):  # small matrices: threads would wait
        warnings.simplefilter("ignore")
        density = [Known("the mechanism's own density", reader.columns)] * (reader.density is not None)
        others = learners(matrix, reader.n_read, views, reader.counts, reader.layout.groups)
        for learner in [*density, *others]:
            fitted, past = fit_with_scores(learner, matrix, labels)
            line = fitted if isinstance(fitted, Logistic) and len(fitted.columns) == 1 else None
            evidence = line.evidence if line else log_likelihood_gain(scipy.special.expit(past), labels)
            if line is None:  # of one column's numbers trees are fitted already
                clues.append(Clue(fitted, SIZES.learned_cost, past))
            direct.append(Model(evidence - SIZES.learned_cost, fitted))
            scores[id(fitted)] = past
    if not clues:  # nothing varies: a fair coin
        return mixture_of(reader, [], [], [], foretold), [], None
    forest, models = _trees(clues, matrix, labels)
    mixture = mixture_of(reader, models, [*models, *direct], [], foretold)
    log_odds = scipy.special.logit(mixture.of_matrix(matrix, {id(one.view): one.values for one in clues})[-1])
    moved = shift_likelihoods(log_odds, labels, np.ones(len(labels), dtype=np.intp))
    likelihoods = []
    for one, own in zip(clues, forest.views, strict=True):
        swaps = swaps_of(one.view, matrix)  # shifts are symmetric about 0: swapped labels see them backwards
        likelihoods.append(own.summed(moved if swaps is None else np.where(swaps, moved[::-1], moved)))
    shifts = shift_trees(forest, np.concatenate(likelihoods, axis=1))
    moves = [Model(shift.evidence - one.cost, one.view, shift) for one, shift in zip(clues, shifts, strict=True)]
    mixture = mixture_of(reader, models, [*models, *direct], moves, foretold)
    shares: Counter[int] = Counter()
    structures = (mixture.trees, mixture.parts, mixture.shifted)
    for share, parts in zip(mixture.weights.sum(axis=1).tolist(), structures, strict=True):
        for part in parts:
            shares[id(part.view)] += share * part.weight
    best = sorted(clues, key=lambda each: -shares[id(each.view)])[: SIZES.max_told]
    heard = [(part.weight, scores[id(part.view)]) for part in mixture.parts if part.tree is None]
    said = None
    if heard:
        p = np.average([scipy.special.expit(own) for _, own in heard], axis=0, weights=[weight for weight, _ in heard])
        said = scipy.special.logit(np.clip(p, SIZES.least, 1.0 - SIZES.least))
    return mixture, [each for each in best if id(each.view) in shares], said


def fit_views(reader: Reader, matrix: FloatArray, labels: Labels, max_views: int) -> Mixture:
    """Pruned trees on the few clearest views alone: in a tenth of the time, for a first look."""
    views = choose_views(matrix, labels, reader.layout)[:max_views]
    models = _trees([Clue(view, view.cost, view(matrix)) for view in views], matrix, labels)[1] if views else []
    as_they_are = np.zeros(NO_FORETELLING.shape)
    as_they_are[0, 0] = 1.0
    return dataclasses.replace(mixture_of(reader, models, models, [], NO_FORETELLING), weights=as_they_are)


def _trees(clues: Sequence[Clue], matrix: FloatArray, labels: Labels) -> tuple[Forest, list[Model]]:
    """A pruned tree on each clue, and the cells of all of them."""
    of_clues = [(one.values, swaps_of(one.view, matrix)) for one in clues]
    forest = Forest([Ordered.of(values, labels if swaps is None else labels ^ swaps) for values, swaps in of_clues])
    grown = pruned_trees(forest)
    evidence = grown.evidence - [one.cost for one in clues]
    return forest, [
        Model(float(evidence[k]), one.view, functools.partial(grown.steps, k)) for k, one in enumerate(clues)
    ]


def mixture_of(
    reader: Reader, trees: Sequence[Model], models: Sequence[Model], moves: Sequence[Model], foretold: FloatArray
) -> Mixture:
    """The mixture of the models of each structure; "nothing" is one more model of each.

    What shifts tell of the draws that they were found on is a Bayes factor for them: where it says more than what they
    foretold, which those found now had no chance to, it stands.
    """
    plain, parts = (_weighed(some, SIZES.min_weight)[0] for some in (trees, models))
    # Shifts that tell nothing weigh about as much as none, and each costs as much a draw as one that tells.
    shifted, gain = _weighed([move for move in moves if move.evidence > 0.0], 10.0 * SIZES.min_weight)
    lifted = foretold.copy()
    if shifted:
        lifted[-1] = np.maximum(lifted[-1], lifted[:-1].max(axis=0) + min(gain, SIZES.max_gain))
    return Mixture(reader, parts, shifted, weights_of(lifted), plain)


def _weighed(models: Sequence[Model], least: float) -> tuple[tuple[Part, ...], float]:
    """The models of largest evidence with their weights, and the nats of all of them together; none has 0."""
    logs = np.array([model.evidence for model in models] + [0.0])
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    best = np.argsort(-weights[:-1], kind="stable")[: SIZES.max_parts].tolist()
    kept = [k for k in best if weights[k] > least]
    total = float(weights[kept].sum() + weights[-1])
    trees = [tree() if isinstance(tree := models[k].tree, functools.partial) else tree for k in kept]
    parts = (Part(float(weights[k]) / total, models[k].view, tree) for k, tree in zip(kept, trees, strict=True))
    return tuple(parts), float(np.logaddexp.reduce(logs))


def weights_of(foretold: FloatArray) -> FloatArray:
    """Weights of structures at all temperatures by the nats that they foretold, even beforehand."""
    weights = np.exp(foretold - foretold.max())
    return np.asarray(weights / weights.sum())


NO_FORETELLING: NDArray[np.float64] = np.tile(np.log(SIZES.shares), (len(STRUCTURES), 1))  # what is thought beforehand
