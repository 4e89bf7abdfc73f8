"""Witness: the rule that decided, in words, and as data that a replay tests on fresh draws.

The rule guesses by the bin of a frozen mixture's probability. Its words are an example for a reader, never evidence:
the mixture's strongest view of the columns, with the intervals in which the rule mostly guesses along it. They are
compared with the rule's own guesses on earlier draws, and say so where they are no more than its shadow.

The data are the mixture in small, and what was predicted of its bins. Parts of little weight are left out; points of
nearest neighbours are thinned and steps of trees are joined until the record fits. So the saved rule may differ a
little from the one that was counted; a replay tests the saved one, whatever it is.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.views import View
from dpaudit.inference.tables import N_BINS, Predicted
from dpaudit.learning.learned_views import Additive, LearnedView, Logistic, Neighbours
from dpaudit.learning.mixture import Mixture
from dpaudit.learning.rank_tree import SIZES as TREE_SIZES
from dpaudit.learning.rank_tree import Shifts, Steps
from dpaudit.privacy.claims import FloatArray

VERSION = 3  # of saved rules
EARLIER = "one made by an earlier version of dpaudit; run the audit again, which finds and saves a new one"
TOKENS = ("category", "form", "kind", "class", "classes inside", "shape", "dtype")


@dataclasses.dataclass(frozen=True)
class WitnessSizes:
    """What is said of a rule, and how small its data are."""

    max_intervals: int = 2  # of a guess, and as many texts: more are no sentence
    max_columns: int = 3  # of a learned view that are named
    max_texts: int = 50  # of a column that is said in the place of another one
    alike: float = 0.1  # of the largest weight, from which on a view is said for its few words: 2.3 nats
    window: int = 25  # draws whose mean guess stands for a value: of 1,000, 40 places of an order
    min_share: float = 0.05  # of the draws with a guess, in an interval that is named
    gap_share: float = 0.02  # of all draws, in a gap between two intervals that are said as one
    agreement: float = 0.9  # of the rule's guesses, from which on its words are the rule
    shadow: float = 0.5  # of them, from which on words are worth saying
    min_weight: float = 0.01  # of a part that is saved: it moves no probability by more
    max_bytes: int = 100_000  # of a record
    max_points: tuple[int, ...] = (1_000, 300, 100, 30, 10)  # of nearest neighbours, a side, until the record fits
    joined: tuple[float, ...] = (0.03, 0.1, 0.2, 0.5, 1.0)  # nats between steps that are joined; a bin has 0.18


SIZES = WitnessSizes()


@dataclasses.dataclass(frozen=True, eq=False)
class Shown:
    """Earlier draws that words are made of: values of the view that is said, if any, and the rule's probabilities."""

    view: View | None = None
    values: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    q: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    def __deepcopy__(self, memo: object) -> Shown:
        return self

    @classmethod
    def of(cls, mixture: Mixture, matrix: FloatArray, q: FloatArray) -> Shown:
        """The same of rows that were read."""
        view = simplest(mixture)
        if view is None:
            return cls(None, np.zeros(0), q)
        values = view(matrix)
        for column in _text_columns(mixture):  # a text that tells the view's number is said in its place
            own = matrix[:, column]
            kinds, place = np.unique(own, return_inverse=True)
            if 1 < len(kinds) <= SIZES.max_texts:
                _, of_value = np.unique(values, return_inverse=True)
                if len(np.unique(place * (len(own) + 1) + of_value)) == len(kinds):
                    return cls(View("value", (column,)), own, q)
        return cls(view, values, q)

    def along(self, guesses: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Edges along the order of the view, and the mean of what is guessed (1, 0 or -1) between them."""
        order = np.argsort(self.values, kind="stable")
        distinct, starts = np.unique(self.values[order], return_index=True)
        ends = np.append(starts[1:], len(order))
        total = np.concatenate([[0.0], np.cumsum(guesses[order])])
        beside = np.maximum(SIZES.window - (ends - starts), 0) // 2
        low, high = np.maximum(starts - beside, 0), np.minimum(ends + beside, len(order))
        with np.errstate(invalid="ignore"):
            middle = distinct[:-1] / 2.0 + distinct[1:] / 2.0
        edges = np.where(np.isfinite(middle), middle, distinct[:-1])
        edges[np.isnan(distinct[1:])] = math.inf
        return edges, (total[high] - total[low]) / (high - low)


def simplest(mixture: Mixture) -> View | None:
    """A plain view of about the largest weight that is said in the fewest words; None where several columns decide."""
    weights: dict[View, float] = {}
    for part in mixture.parts:  # the shifted ones shift what these say
        if (view := _plain(part.view)) is not None:
            weights[view] = weights.get(view, 0.0) + part.weight
    if not weights:
        return None
    names, most = mixture.reader.names, max(weights.values())
    alike = [view for view, weight in weights.items() if weight >= SIZES.alike * most]
    return min(alike, key=lambda view: (_texts(mixture, view) is None, len(view.describe(names))))


def _plain(view: View | LearnedView) -> View | None:
    """The one view of the columns that a model looks at."""
    if isinstance(view, Neighbours) and len(view.views) == 1:
        view = view.views[0]
    if isinstance(view, Logistic | Additive) and len(view.columns) == 1:
        view = View("value", view.columns)
    if not isinstance(view, View):
        return None
    return View("value", view.columns) if view.kind == "distance from the centre" else view


def describe(mixture: Mixture, shown: Shown, high: float, low: float, x: str, x_prime: str) -> str:
    """The rule in words.

    Parameters
    ----------
    mixture : Mixture
    shown : Shown
        Of this mixture.
    high, low : float
        The rule guesses x where the probability of x is at least the first, and x_prime where it is below the second.
    x, x_prime : str
        Names of the inputs.
    """
    strongest = mixture.strongest()
    guesses = np.where(shown.q >= high, 1, np.where(shown.q < low, -1, 0))
    if strongest is None or (high == math.inf and low <= 0.0):
        return f"Nothing in the outputs tells {x} from {x_prime} better than the claim allows."
    words, agreement = _intervals(mixture, shown, guesses, x, x_prime)
    if words and agreement >= SIZES.agreement:
        return f"{words}."
    weighs = "weighs several views of the output, most of all" if isinstance(strongest.view, View) else "is"
    rule = f"The rule {weighs} {describe_score(mixture)}"
    if not words or agreement < SIZES.shadow:
        return f"{rule}; it guesses {x} or {x_prime} by its odds."
    share = f"the same guess in {agreement:.0%} of the rule's"
    return f"{rule}. A shadow of it in words ({share}): {words[0].lower()}{words[1:]}."


def describe_score(mixture: Mixture) -> str:
    """What the probability of a mixture looks at most of all, in a clause."""
    strongest, names = mixture.strongest(), mixture.reader.names
    if strongest is None:
        return "nothing in the outputs"
    return _named(strongest.view, names) if isinstance(strongest.view, View) else _learned_words(strongest.view, names)


def _intervals(mixture: Mixture, shown: Shown, guesses: NDArray[np.intp], x: str, x_prime: str) -> tuple[str, float]:
    """Where along the view the rule mostly guesses, and the share of its guesses that are so too."""
    if shown.view is None:
        return "", 0.0
    edges, mean = shown.along(guesses)
    what = shown.view.describe(mixture.reader.names)
    leaf = np.minimum(np.searchsorted(edges, shown.values), len(mean) - 1)
    of_leaf = np.where(mean >= 0.5, 1, np.where(mean <= -0.5, -1, 0))
    texts = _texts(mixture, shown.view)
    own = np.zeros(len(leaf), dtype=np.intp)
    said = []
    for guess, name in ((-1, x_prime), (1, x)):
        if texts is not None:
            places, found = _members(shown.values, of_leaf[leaf] == guess, texts)
        else:
            places, found = _runs(edges, leaf, shown.values, of_leaf == guess, guesses == guess)
        if found:
            own[places] = guess
            said.append(f"guess {name} where it is {' or '.join(found)}")
    if not said:
        return "", 0.0
    agreement = float(np.mean(own[guesses != 0] == guesses[guesses != 0]))
    return f"Look at {what}: {'; '.join(said)}", agreement


def _runs(
    edges: FloatArray, leaf: NDArray[np.intp], values: FloatArray, is_own: NDArray[np.bool_], agrees: NDArray[np.bool_]
) -> tuple[NDArray[np.intp], list[str]]:
    """The widest intervals of leaves of one guess, in words, and the draws in them."""
    counts = np.bincount(leaf, minlength=len(is_own))
    runs: list[list[int]] = []
    for k in np.flatnonzero(is_own).tolist():
        if runs and counts[runs[-1][1] + 1 : k].sum() <= SIZES.gap_share * len(leaf):
            runs[-1][1] = k
        else:
            runs.append([k, k])
    held = [int((agrees & (leaf >= first) & (leaf <= last)).sum()) for first, last in runs]
    least = max(1.0, SIZES.min_share * float(agrees.sum()))
    best = sorted(np.argsort(-np.array(held), kind="stable")[: SIZES.max_intervals].tolist()) if held else []
    places, words = [], []
    for k in best:
        if held[k] < least:
            continue
        first, last = runs[k]
        inside = np.flatnonzero((leaf >= first) & (leaf <= last))
        low = float(edges[first - 1]) if first else -math.inf
        high = float(edges[last]) if last < len(edges) else math.inf
        places.append(inside)
        words.append(_range_words(values[inside], low, high))
    return np.concatenate(places) if places else np.zeros(0, dtype=np.intp), words


def _range_words(inside: FloatArray, low: float, high: float) -> str:
    known = inside[~np.isnan(inside)]
    if not len(known):
        return "missing"
    also = " or missing" if len(known) < len(inside) else ""
    if np.all(known == known[0]):
        return f"{known[0]:.6g}{also}"
    if low == -math.inf:
        return (f"at most {high:.4g}" if high < math.inf else "any number") + also
    digits = next((k for k in (4, 6, 9) if f"{low:.{k}g}" != f"{high:.{k}g}"), 17)
    return (f"above {low:.4g}" if high == math.inf else f"between {low:.{digits}g} and {high:.{digits}g}") + also


def _texts(mixture: Mixture, view: View) -> dict[float, str] | None:
    """The texts of a column's numbers that stand for texts; None for another column."""
    return dict(mixture.reader.tokens) if view.kind == "value" and view.columns[0] in _text_columns(mixture) else None


def _text_columns(mixture: Mixture) -> list[int]:
    """Columns whose numbers stand for texts."""
    reader = mixture.reader
    first = sum(block.width for block in reader.blocks)
    return [first + k for k, (_, what) in enumerate(reader.keys) if what in TOKENS]


def _members(
    values: FloatArray, is_own: NDArray[np.bool_], texts: dict[float, str]
) -> tuple[NDArray[np.intp], list[str]]:
    """The most frequent texts of one guess, and the draws that have them."""
    kinds, place = np.unique(values, return_inverse=True)
    counts = np.bincount(place[is_own], minlength=len(kinds))
    most = [k for k in np.argsort(-counts, kind="stable")[: SIZES.max_columns].tolist() if counts[k]]
    unknown = ("another text", "missing")
    words = [repr(texts[kind]) if kind in texts else unknown[kind != kind] for kind in kinds[most].tolist()]
    return np.flatnonzero(is_own & np.isin(place, most)), list(dict.fromkeys(words))


def _learned_words(view: LearnedView, names: list[str]) -> str:
    """A learned view in plain words, with its strongest columns."""
    if isinstance(view, Neighbours):
        return f"a ratio of densities (nearest earlier outputs) of {_some([_named(v, names) for v in view.views])}"
    if isinstance(view, Logistic):
        size = np.abs(view.weights.reshape(-1, len(view.columns))).max(axis=0)
        return f"a {view.name} of {_some([names[view.columns[k]] for k in np.argsort(-size, kind='stable')])}"
    if isinstance(view, Additive):
        spread = np.array([np.ptp(scipy.special.logit(np.clip(t.probabilities, 1e-6, 1.0 - 1e-6))) for t in view.trees])
        return f"a {view.name} of {_some([names[view.columns[k]] for k in np.argsort(-spread, kind='stable')])}"
    return f"a {view.name}"


def _named(view: View, names: list[str]) -> str:
    return view.describe(names).removesuffix(", with guesses swapped above")


def _some(names: list[str]) -> str:
    some = names[: SIZES.max_columns]
    more = len(names) - len(some)
    tail = f" and {more} more" if more else ""
    return (", ".join(some) if tail or len(some) < 2 else f"{', '.join(some[:-1])} and {some[-1]}") + tail


# --- as data ---


def rule_record(mixture: Mixture, predicted: Predicted, **more: Any) -> dict[str, Any]:
    """The rule as JSON values, of at most about `SIZES.max_bytes`: see the module."""
    record: dict[str, Any] = {}
    predicted = predicted.by_bins()
    for points, joined in zip(SIZES.max_points, SIZES.joined, strict=True):
        record = {
            "version": VERSION, "game": "table", "mixture": condensed(mixture, points, joined).to_dict(),
            "predicted": {"q": predicted.q.tolist(), "mass": predicted.mass.tolist()}, **more,
        }  # fmt: skip
        if len(json.dumps(record)) <= SIZES.max_bytes:
            break
    return record


def is_current(record: dict[str, Any]) -> bool:
    """Whether a saved rule is of this version, or one of a table of pairs, whose form is still the same."""
    return record.get("version") == VERSION or (record.get("score") or {}).get("kind") == "cells"


def rule_from_record(record: dict[str, Any], density: Any = None) -> tuple[Mixture, Predicted]:
    """The mixture and what is predicted of its bins; ValueError where a record is damaged, or of an earlier version.

    `density` is the mechanism's own log density ratio, where the reader of the mixture reads one.
    """
    if not is_current(record):
        raise ValueError(EARLIER)
    q, mass = (np.array(record["predicted"][name], dtype=float) for name in ("q", "mass"))
    if q.shape != (N_BINS,) or mass.shape != (N_BINS,) or not np.all((q > 0.0) & (q < 1.0) & (mass >= 0.0)):
        raise ValueError(f"predicted must have a probability and a mass for each of {N_BINS} bins.")
    return Mixture.from_dict(record["mixture"], density), Predicted(q, mass)


def condensed(mixture: Mixture, points: int, joined: float) -> Mixture:
    """The mixture with fewer parts, points and steps; the weights of its parts add up to the same."""
    views: dict[int, View | LearnedView] = {}

    def kept(models: Sequence[Any]) -> list[Any]:
        some = [one for one in models if one.weight >= SIZES.min_weight]
        scale = sum(one.weight for one in models) / max(sum(one.weight for one in some), 1e-300)
        return [
            dataclasses.replace(
                one, weight=one.weight * scale, view=views.setdefault(id(one.view), _smaller(one.view, points, joined))
            )
            for one in some
        ]

    parts = [
        part if part.tree is None else dataclasses.replace(part, tree=_joined(part.tree, joined))
        for part in kept(mixture.parts)
    ]
    shifted = [dataclasses.replace(part, tree=_joined_shifts(part.tree, joined)) for part in kept(mixture.shifted)]
    return Mixture(mixture.reader, tuple(parts), tuple(shifted), mixture.weights)


def _smaller(view: Any, points: int, joined: float) -> Any:
    if isinstance(view, Neighbours):
        step = max(1, math.ceil(max(map(len, view.sides)) * len(view.views) / points))  # one of both sides: a ratio
        return dataclasses.replace(view, sides=(view.sides[0][::step], view.sides[1][::step]))
    if isinstance(view, Additive):
        return dataclasses.replace(view, trees=tuple(_joined(tree, joined) for tree in view.trees))
    return view


def _joined(steps: Steps, limit: float) -> Steps:
    """Steps whose neighbours are joined while their log odds lie within a limit."""
    odds = scipy.special.logit(np.clip(steps.probabilities, 1e-9, 1.0 - 1e-9))
    starts = _starts(odds, limit)
    p = 0.5 * (np.minimum.reduceat(odds, starts) + np.maximum.reduceat(odds, starts))
    return Steps(steps.edges[starts[1:] - 1], scipy.special.expit(p), steps.evidence)


def _joined_shifts(shifts: Shifts, limit: float) -> Shifts:
    """The same of cells that shift log odds: their mean weights."""
    starts = _starts(shifts.weights @ np.array(TREE_SIZES.shifts), limit)
    counts = np.diff(np.append(starts, len(shifts.weights)))
    weights = np.add.reduceat(shifts.weights, starts, axis=0) / counts[:, None]
    return Shifts(shifts.edges[starts[1:] - 1], weights, shifts.evidence)


def _starts(numbers: FloatArray, limit: float) -> NDArray[np.intp]:
    """First positions of runs of numbers that lie within a limit of each other."""
    starts = [0]
    low = high = float(numbers[0])
    for k, one in enumerate(numbers.tolist()):
        low, high = min(low, one), max(high, one)
        if high - low > limit:
            starts.append(k)
            low = high = one
    return np.array(starts, dtype=np.intp)
