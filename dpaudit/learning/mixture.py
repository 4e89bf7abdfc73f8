"""Mixture: the probability of label 1 of an output, averaged over views and trees by what they say of earlier labels.

Two *structures* differ in the strengths of the trees that they grow on the views. Within a structure all views are
averaged by prior times evidence, with a fair coin as one more model. A third one shifts the log odds of what the first
two say together, along one view: what is rare is told apart from what surrounds it. Structures, each at several
temperatures, are weighed by what they foretold of earlier rounds before these came (prequential likelihood: Dawid
1984); a part of the weights goes back to all after each round (fixed share: Herbster and Warmuth 1998). What
shifts have from the draws of their own fit is bounded: `MixtureSizes.max_gain`.

Validity: a mixture is fitted on released draws and frozen.
"""

from __future__ import annotations

import dataclasses
import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dpaudit.features.density import LogRatio
from dpaudit.features.reader import Reader
from dpaudit.features.views import View, choose_views, view_from_dict, view_to_dict
from dpaudit.learning.learned_views import Known, LearnedView, Logistic, learned_from_dict, learners, out_of_fold
from dpaudit.learning.rank_tree import (
    Forest,
    Grown,
    Labels,
    Ordered,
    Shifts,
    Steps,
    grow,
    log_likelihood,
    shift_trees,
    told_by_shifts,
)
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.threads import in_one_thread


@dataclasses.dataclass(frozen=True)
class MixtureSizes:
    """How many models a mixture keeps, and what learned views cost."""

    max_parts: int = 4  # models of a structure that predict: a count of a draw asks all of them
    min_weight: float = 1e-3  # of a model, below which it is left out
    learned_cost: float = 1.0  # nats, of a learned view
    least: float = 1e-6  # probability of a label
    temperatures: tuple[float, ...] = (1.0, 0.7, 0.4, 0.0)  # by which log odds are multiplied: 0 is a fair coin
    shares: tuple[float, ...] = (0.55, 0.25, 0.1, 0.1)  # of the temperatures, beforehand
    max_gain: float = 20.0  # nats that shifts have from the draws of their fit: beyond, they are as good as certain
    max_told: int = 4  # views whose labels are counted once draws are many


SIZES = MixtureSizes()
STRUCTURES = ("one strength", "several strengths", "shifted")


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

    def to_dict(self, place: int) -> dict[str, Any]:
        """The part as JSON values, whose view has this place in the mixture's list."""
        tree = None if self.tree is None else self.tree.to_dict()
        return {"weight": self.weight.hex(), "view": place, "tree": tree}

    @classmethod
    def from_dict(cls, record: dict[str, Any], views: Sequence[View | LearnedView]) -> Part:
        """What `to_dict` wrote."""
        tree = None if record["tree"] is None else Steps.from_dict(record["tree"])
        return cls(float.fromhex(record["weight"]), views[_place(record)], tree)


@dataclasses.dataclass(frozen=True, eq=False)
class Refinement:
    """A tree that shifts the log odds of what the first two structures say, along one view."""

    weight: float
    view: View | LearnedView
    shifts: Shifts

    def __call__(self, matrix: FloatArray, log_odds: FloatArray, known: dict[int, FloatArray]) -> FloatArray:
        """Probabilities of label 1, from log odds of the base."""
        if id(self.view) not in known:
            known[id(self.view)] = self.view(matrix)
        swaps = self.view.swaps(matrix) if isinstance(self.view, View) else None
        if swaps is None:
            return self.shifts(known[id(self.view)], log_odds)
        p = self.shifts(known[id(self.view)], np.where(swaps, -log_odds, log_odds))
        return np.where(swaps, 1.0 - p, p)

    def to_dict(self, place: int) -> dict[str, Any]:
        """The refinement as JSON values, whose view has this place in the mixture's list."""
        return {"weight": self.weight.hex(), "view": place, "shifts": self.shifts.to_dict()}

    @classmethod
    def from_dict(cls, record: dict[str, Any], views: Sequence[View | LearnedView]) -> Refinement:
        """What `to_dict` wrote."""
        return cls(float.fromhex(record["weight"]), views[_place(record)], Shifts.from_dict(record["shifts"]))


def _place(record: dict[str, Any]) -> int:
    """The place of a part's view in the mixture's list."""
    place = operator.index(record["view"])
    if place < 0:
        raise ValueError(f"view must be a place in the list of views, got {place}.")
    return place


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
        Those with trees of their own.
    refinements : tuple of Refinement
        Of the last structure, which shifts what the others say together.
    weights : ndarray of float, shape (structures, temperatures)
    """

    reader: Reader
    structures: tuple[tuple[Part, ...], ...]
    refinements: tuple[Refinement, ...]
    weights: FloatArray

    def __deepcopy__(self, memo: object) -> Mixture:
        return self

    def of_structures(self, outcomes: Outcomes) -> FloatArray:
        """Probabilities of label 1 by each structure, shape (structures, draws)."""
        return self.of_matrix(self.reader(outcomes))

    def of_matrix(self, matrix: FloatArray, known: dict[int, FloatArray] | None = None) -> FloatArray:
        """The same of rows that were read, shape (structures, draws); `known` has values of views, by their ids."""
        known = {} if known is None else known
        found = np.full((len(STRUCTURES), len(matrix)), 0.5)
        for row, parts in zip(found[:-1], self.structures, strict=True):
            row *= 1.0 - sum(part.weight for part in parts)
            for part in parts:
                row += part.weight * part(matrix, known)
        found = np.clip(found, SIZES.least, 1.0 - SIZES.least)
        found[-1] = base_of(found[:-1], self.shares)
        if self.refinements:
            log_odds = logit(found[-1])
            found[-1] *= 1.0 - sum(one.weight for one in self.refinements)
            for one in self.refinements:
                found[-1] += one.weight * one(matrix, log_odds, known)
        return np.asarray(np.clip(found, SIZES.least, 1.0 - SIZES.least))

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """Probabilities of label 1, shape (draws,)."""
        return self.mixed(self.of_structures(outcomes))

    def mixed(self, of_structures: FloatArray) -> FloatArray:
        """The average of what the structures say at all temperatures, shape (draws,)."""
        # Validity: sums go draw by draw. A matrix product adds up in an order that depends on how many draws there are.
        logs = logit(of_structures)
        found = np.zeros(of_structures.shape[1])
        left = 1.0
        for row, p, log_odds in zip(self.weights, of_structures, logs, strict=True):
            for weight, temperature in zip(row.tolist(), SIZES.temperatures, strict=True):
                if weight > SIZES.min_weight and temperature > 0.0:
                    found += weight * (p if temperature == 1.0 else expit(temperature * log_odds))
                    left -= weight
        return found + 0.5 * left

    @property
    def shares(self) -> FloatArray:
        """The weight of each structure at all temperatures, shape (structures,)."""
        return np.asarray(self.weights.sum(axis=1))

    def strongest(self) -> Part | None:
        """The part of the largest weight; None where nothing but the fair coin is left."""
        best = max(
            ((w * part.weight, k, j) for k, (w, parts) in enumerate(zip(self.shares, self.structures, strict=False))
             for j, part in enumerate(parts)), default=None,
        )  # fmt: skip
        return None if best is None else self.structures[best[1]][best[2]]

    @property
    def views(self) -> list[View | LearnedView]:
        """The views of all its models, each once; in the same order when it was read from what was saved."""
        models: list[Part | Refinement] = [part for structure in self.structures for part in structure]
        return list({id(one.view): one.view for one in [*models, *self.refinements]}.values())

    def to_dict(self) -> dict[str, Any]:
        """The mixture as JSON values; models of one view share it."""
        place = {id(view): k for k, view in enumerate(self.views)}
        return {
            "reader": self.reader.to_dict(),
            "views": [
                view_to_dict(view) if isinstance(view, View) else {"learned": view.to_dict()} for view in self.views
            ],
            "structures": [[part.to_dict(place[id(part.view)]) for part in structure] for structure in self.structures],
            "refinements": [one.to_dict(place[id(one.view)]) for one in self.refinements],
            "weights": [[w.hex() for w in row] for row in self.weights.tolist()],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any], density: LogRatio | None = None) -> Mixture:
        """What `to_dict` wrote; ValueError where it is damaged, or reads the mechanism's density and none is given."""
        try:
            return cls._from_dict(record, density)
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError) as error:
            raise ValueError(f"mixture must be one that was saved, got {error!r:.200}.") from error

    @classmethod
    def _from_dict(cls, record: dict[str, Any], density: LogRatio | None) -> Mixture:
        views = [
            learned_from_dict(one["learned"]) if "learned" in one else view_from_dict(one) for one in record["views"]
        ]
        parts = tuple(tuple(Part.from_dict(part, views) for part in structure) for structure in record["structures"])
        weights = np.array([[float.fromhex(w) for w in row] for row in record["weights"]])
        if weights.shape != NO_FORETELLING.shape or len(parts) != len(STRUCTURES) - 1:
            raise ValueError("mixture must have a weight for each structure and temperature.")
        refinements = tuple(Refinement.from_dict(one, views) for one in record["refinements"])
        own = [weights.ravel().tolist(), *([part.weight for part in several] for several in parts)]
        for each in (*own, [one.weight for one in refinements]):
            if not all(weight >= 0.0 for weight in each) or not sum(each) <= 1.0 + 1e-6:
                raise ValueError("mixture must have weights that are not negative, and sum to at most 1.")
        found = cls(Reader.from_dict(record["reader"], density), parts, refinements, weights)
        # Each view reads columns that the reader has, and all numbers of a learned one have their shapes.
        with np.errstate(all="ignore"):
            if np.isnan(found.of_matrix(np.broadcast_to(0.0, (1, found.reader.n_columns)))).any():
                raise ValueError("mixture must predict probabilities, got NaN.")
        return found


@in_one_thread
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
    foretold : ndarray of float, shape (structures, temperatures)
        Nats by which each structure at each temperature foretold the labels of earlier rounds.
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
        own_density = [Known("the mechanism's own density", reader.columns)] * (reader.density is not None)
        all_learners: list[LearnedView] = [*own_density, *extra, *learners(matrix, reader.n_read, views)]
        for learner in all_learners:
            is_line = isinstance(learner, Known) or (isinstance(learner, Logistic) and len(learner.columns) == 1)
            fitted = learner.fit(matrix, labels)
            past = fitted(matrix) if is_line else out_of_fold(learner, matrix, labels)
            is_known = is_line and isinstance(fitted, Logistic)
            evidence = fitted.evidence if is_known else log_likelihood(expit(past), labels)  # type: ignore[attr-defined]
            direct.append((len(told), evidence - SIZES.learned_cost))
            told.append(Told(fitted, SIZES.learned_cost, past))
            ordered.append(Ordered.of(past, labels))
    if not told:  # nothing varies: a fair coin
        return mixture_of(reader, ((), ()), foretold), []
    of_structures: list[list[Model]] = []
    forest = Forest(ordered)
    for grown in grow(forest):
        models = [Model(grown.evidence[k] - one.cost, one.view, grown=(grown, k)) for k, one in enumerate(told)]
        of_structures.append(models + [Model(evidence, told[k].view) for k, evidence in direct] * bool(of_structures))
    mixture = mixture_of(reader, of_structures, foretold)
    known = {id(one.view): one.values for one in told}
    log_odds = logit(mixture.of_matrix(matrix, known)[-1])
    moved = told_by_shifts(log_odds, labels, np.ones(len(labels), dtype=np.intp))
    swapped = moved[::-1] if len(views) else moved  # shifts are symmetric about 0: swapped labels see them backwards
    parts = []
    for one, own in zip(told, ordered, strict=True):
        swaps = one.view.swaps(matrix) if isinstance(one.view, View) else None
        of_draws = moved if swaps is None else np.where(swaps, swapped, moved)
        starts = np.concatenate([[0], np.cumsum(own.draws)[:-1]])
        assert own.order is not None
        parts.append(np.add.reduceat(of_draws[:, own.order], starts, axis=1))
    shifts = shift_trees(forest, np.concatenate(parts, axis=1))
    candidates = [(one.view, one.cost, shift) for one, shift in zip(told, shifts, strict=True)]
    mixture = with_refinements(mixture, candidates, foretold)
    shares: dict[int, float] = {}
    for weight, structure in zip(mixture.shares, mixture.structures, strict=False):
        for part in structure:
            shares[id(part.view)] = shares.get(id(part.view), 0.0) + float(weight) * part.weight
    for refined in mixture.refinements:
        shares[id(refined.view)] = shares.get(id(refined.view), 0.0) + float(mixture.shares[-1]) * refined.weight
    best = sorted(told, key=lambda each: -shares.get(id(each.view), 0.0))[: SIZES.max_told]
    return mixture, [each for each in best if id(each.view) in shares]


def mixture_of(reader: Reader, of_structures: Sequence[Sequence[Model]], foretold: FloatArray) -> Mixture:
    """The mixture of models with their evidence less cost, in nats, by structure."""
    structures = []
    for parts in of_structures:
        logs = np.array([model.evidence for model in parts] + [0.0])
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        best = np.argsort(-weights[:-1], kind="stable")[: SIZES.max_parts].tolist()
        kept = [k for k in best if weights[k] > SIZES.min_weight]
        total = float(weights[kept].sum() + weights[-1])
        structures.append(tuple(parts[k].part(float(weights[k]) / total) for k in kept))
    return Mixture(reader, tuple(structures), (), weights_of(foretold))


def fit_views(reader: Reader, matrix: FloatArray, labels: Labels, max_views: int) -> Mixture:
    """Pruned trees on the few clearest views alone: in a tenth of the time, for a first look."""
    views = choose_views(matrix, labels, reader.n_read)[:max_views]
    ordered = []
    for view in views:
        swaps = view.swaps(matrix)
        ordered.append(Ordered.of(view(matrix), labels if swaps is None else labels ^ swaps))
    of_structures: list[list[Model]] = [[], []]
    if views:
        for models, grown in zip(of_structures, grow(Forest(ordered)), strict=True):
            models += [Model(grown.evidence[k] - view.cost, view, grown=(grown, k)) for k, view in enumerate(views)]
    several = np.zeros(NO_FORETELLING.shape)
    several[1, 0] = 1.0  # trees of several strengths, as they are
    return dataclasses.replace(mixture_of(reader, of_structures, NO_FORETELLING), weights=several)


def with_refinements(
    mixture: Mixture, candidates: Sequence[tuple[View | LearnedView, float, Shifts]], foretold: FloatArray
) -> Mixture:
    """The mixture with the views whose shifts tell more than none; "no shift" is one more model.

    What shifts tell of the draws that they were found on is a Bayes factor for them: where it says more than what they
    foretold, which those found now had no chance to, it stands.
    """
    logs = np.array([shifts.evidence - cost for _, cost, shifts in candidates] + [0.0])
    lifted = foretold.copy()
    gain = float(np.logaddexp.reduce(logs))
    lifted[-1] = np.maximum(lifted[-1], lifted[:-1].max(axis=0) + min(gain, SIZES.max_gain))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    best = np.argsort(-weights[:-1], kind="stable")[: SIZES.max_parts].tolist()
    kept = [k for k in best if weights[k] > 10.0 * SIZES.min_weight]
    total = float(weights[kept].sum() + weights[-1])
    refinements = tuple(Refinement(float(weights[k]) / total, candidates[k][0], candidates[k][2]) for k in kept)
    return dataclasses.replace(mixture, refinements=refinements, weights=weights_of(lifted))


def base_of(of_structures: FloatArray, shares: FloatArray) -> FloatArray:
    """What the structures with trees of their own say together, by their shares, shape (draws,)."""
    own = shares[: len(of_structures)] + 1e-6
    return sum(
        (share * p for share, p in zip((own / own.sum()).tolist(), of_structures, strict=True)), start=np.zeros(1)
    )


def weights_of(foretold: FloatArray) -> FloatArray:
    """Weights of structures at all temperatures by the nats that they foretold, even beforehand."""
    weights = np.exp(foretold - foretold.max())
    return np.asarray(weights / weights.sum())


NO_FORETELLING: NDArray[np.float64] = np.tile(np.log(SIZES.shares), (len(STRUCTURES), 1))  # what is thought beforehand
