"""Witness: the rule that decided, in words, and as data that a replay tests on fresh draws.

The rule guesses by the bin of a frozen mixture's probability. Its words are an example for a reader, never evidence:
the mixture's strongest view of the columns, with the intervals in which the rule mostly guesses along it. They are
compared with the rule's own guesses on earlier draws, and say so where they are no more than its shadow.

The data are the mixture in small, and what was predicted of its bins. Points of nearest neighbours are thinned and
steps of trees are joined: from up to 9 MB to 6 to 90 kB, for 27 fits of nine
mechanisms on 1,000 to 20,000 draws. So the saved rule may differ a little from the one that was counted; a replay tests
the saved one, whatever it is.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.views import View
from dpaudit.inference.failures import MAX_NAMED
from dpaudit.inference.independence import TOKENS
from dpaudit.inference.tables import N_BINS, Predicted
from dpaudit.learning.learned_views import Additive, LearnedView, Linear, Neighbours
from dpaudit.learning.mixture import Mixture, Part
from dpaudit.learning.rank_tree import SIZES as TREE_SIZES
from dpaudit.learning.rank_tree import Shifts, Steps
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.model import Sketch

VERSION = 3  # of saved rules
EARLIER = "one made by another version of dpaudit; run the audit again, which finds and saves a new one"


@dataclasses.dataclass(frozen=True)
class WitnessSizes:
    """Limits on the words that describe a rule, and on the size of its data."""

    resolution: float = 0.025  # of the draws: whose mean guess stands for a value, in a gap that is bridged, in words
    agreement: float = 0.9  # of the rule's guesses, from which on its words are the rule
    max_points: int = 300  # of nearest neighbours, a side: with 1,000 records have up to 300 kB
    bins: int = 40  # of a sketch: each has some 50 of 2,000 draws, a standard error of 14%
    few: int = 12  # bins of a sketch of few draws, and draws of each: fewer bins show no form; a standard error of 29%
    tails: float = 0.005  # of the draws beyond the outermost edges of a sketch, on either side
    joined: float = 0.1  # nats between steps that are joined: a bin at 0.55 nats (each has 18% of its nearer edge)


SIZES = WitnessSizes()


@dataclasses.dataclass(frozen=True, eq=False)
class Shown:
    """Earlier draws that words are made of: the rows that a mixture reads of them, and its probabilities."""

    matrix: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    q: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    drawn: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))  # any draws, not the clearest
    drawn_q: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    labels: NDArray[np.intp] = dataclasses.field(default_factory=lambda: np.zeros(0, dtype=np.intp))  # of these

    def __deepcopy__(self, memo: object) -> Shown:
        return self


def _candidates(mixture: Mixture) -> list[View]:
    """Plain views in which a rule may be said, texts and few words first: those of its models, and columns of texts."""
    plain = [_plain(part.view) for part in (*mixture.parts, *mixture.shifted)]
    texts = [View("value", (column,)) for column in _text_columns(mixture)]
    names = mixture.reader.names
    views = dict.fromkeys([*(view for view in plain if view is not None), *texts])
    return sorted(views, key=lambda view: (_texts(mixture, view) is None, len(view.describe(names))))


def _plain(view: View | LearnedView) -> View | None:
    """The one view of the columns that a model looks at."""
    if isinstance(view, Neighbours) and len(view.views) == 1:
        view = view.views[0]
    if isinstance(view, Linear | Additive) and len(view.columns) == 1:
        view = View("value", view.columns)
    if not isinstance(view, View):
        return None
    return View("value", view.columns) if view.kind == "distance from the centre" else view


def describe(mixture: Mixture, shown: Shown, high: float, low: float, x: str, x_prime: str) -> str:
    """The rule in words: it guesses x where its probability is at least `high`, and x_prime where it is below `low`."""
    strongest = mixture.strongest()
    guesses = np.where(shown.q >= high, 1, np.where(shown.q < low, -1, 0))
    if strongest is None or (high == math.inf and low <= 0.0):
        return f"No rule was found that tells {x} from {x_prime} better than the claim allows."
    views = _candidates(mixture) if guesses.any() else []  # of a session that only went on nothing is shown
    said = [_intervals(mixture, view, view(shown.matrix), guesses, x, x_prime) for view in views]
    words, agreement = max(said, key=lambda one: round(one[1] / SIZES.resolution), default=("", 0.0))
    if words and agreement >= SIZES.agreement:
        return f"{words}."
    weighs = "weighs several views of the output, most of all" if isinstance(strongest.view, View) else "is"
    rule = f"The rule {weighs} {describe_score(mixture)}"
    if not words:
        return f"{rule}; it guesses {x} or {x_prime} by its odds."
    share = f"the same guess in {agreement:.0%} of the rule's"
    return f"{rule}. A shadow of it in words ({share}): {words[0].lower()}{words[1:]}."


def sketch(mixture: Mixture, shown: Shown, high: float, low: float) -> Sketch | None:
    """Earlier draws along the view that says the rule best, in bins; None where it is of texts or there are none."""
    guesses = np.where(shown.q >= high, 1, np.where(shown.q < low, -1, 0))
    views = [view for view in _candidates(mixture) if _texts(mixture, view) is None]
    if not views or not len(shown.labels):
        return None
    agreed = [_intervals(mixture, view, view(shown.matrix), guesses, "", "")[1] for view in views]
    view = views[int(np.argmax(np.round(np.array(agreed) / SIZES.resolution)))]
    values = view(shown.drawn)
    is_number = np.isfinite(values)
    values, labels, q = values[is_number], shown.labels[is_number], shown.drawn_q[is_number]
    distinct = np.unique(values)
    if len(distinct) < 2:
        return None
    if len(distinct) <= SIZES.bins:
        with np.errstate(over="ignore", invalid="ignore"):
            middle = (distinct[1:] + distinct[:-1]) / 2.0
            edges = np.concatenate([[2.0 * distinct[0] - middle[0]], middle, [2.0 * distinct[-1] - middle[-1]]])
    else:
        first, last = np.quantile(values, [SIZES.tails, 1.0 - SIZES.tails])
        n_bins = min(SIZES.bins, max(SIZES.few, len(values) // SIZES.few))
        edges = np.linspace(first, last if last > first else first + 1.0, n_bins + 1)
    if not np.all(np.isfinite(edges)):  # numbers near the largest double have no middle
        return None
    n_bins = len(edges) - 1
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, n_bins - 1)
    counts = [np.bincount(place[labels == label], minlength=n_bins) for label in (1, 0)]
    total = np.bincount(place, weights=np.where(q >= high, 1.0, np.where(q < low, -1.0, 0.0)), minlength=n_bins)
    mean = np.round(total / np.maximum(sum(counts), 1), 3)
    x, x_prime = (tuple(count.tolist()) for count in counts)
    return Sketch(view.describe(mixture.reader.names), tuple(edges.tolist()), x, x_prime, tuple(mean.tolist()))


def describe_score(mixture: Mixture) -> str:
    """Clause on what the probability of a mixture looks at most of all."""
    strongest, names = mixture.strongest(), mixture.reader.names
    return "nothing in the outputs" if strongest is None else _named(strongest.view, names)


def _intervals(
    mixture: Mixture, view: View, values: FloatArray, guesses: NDArray[np.intp], x: str, x_prime: str
) -> tuple[str, float]:
    """Places along a view where the rule mostly guesses, and the share of its guesses that are so too."""
    texts = _texts(mixture, view)
    distinct, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    # What is guessed of a value, on average: of few draws with those beside them, but for texts, which have no order.
    window = SIZES.resolution * len(place) if texts is None else 0.0
    ends = np.cumsum(counts)
    beside = np.maximum(window - counts, 0.0).astype(int) // 2
    low, high = np.maximum(ends - counts - beside, 0), np.minimum(ends + beside, len(place))
    total = np.concatenate([[0], np.cumsum(guesses[np.argsort(place, kind="stable")])])
    of_value = np.rint((total[high] - total[low]) / (high - low))
    own = np.zeros(len(place), dtype=np.intp)
    said = []
    for guess, name in ((-1, x_prime), (1, x)):
        agrees = np.bincount(place[guesses == guess], minlength=len(distinct))
        same = np.flatnonzero(of_value == guess)
        gaps = ends[same[1:] - 1] - ends[same[:-1]]
        runs = [
            run for run in np.split(same, np.flatnonzero(gaps > window if texts is None else gaps >= 0) + 1) if len(run)
        ]
        held = [int(agrees[run[0] : run[-1] + 1].sum()) for run in runs]
        words = []
        for k in sorted(np.argsort(-np.array(held), kind="stable")[:MAX_NAMED].tolist()):
            if held[k] < max(1.0, SIZES.resolution * float(agrees.sum())):
                continue
            first, last = runs[k][0], runs[k][-1]
            own[(place >= first) & (place <= last)] = guess
            words.append(_range_words(distinct, first, last) if texts is None else _text(distinct[first], texts))
        if words:
            said.append(f"guess {name} where it is {' or '.join(dict.fromkeys(words))}")
    if not said:
        return "", 0.0
    agreement = float(np.mean(own[guesses != 0] == guesses[guesses != 0]))
    return f"Look at {view.describe(mixture.reader.names)}: {'; '.join(said)}", agreement


def _range_words(distinct: FloatArray, first: int, last: int) -> str:
    """The range of some of the values, which are sorted, NaN behind all numbers."""
    also = " or missing" if math.isnan(distinct[last]) else ""
    if also and first == last:
        return "missing"
    last -= bool(also)
    if first == last:
        return f"{distinct[first]:.6g}{also}"
    low = _between(distinct, first - 1) if first else -math.inf
    high = _between(distinct, last) if last + 1 < len(distinct) else math.inf
    if low == -math.inf:
        return (f"at most {high:.4g}" if high < math.inf else "any number") + also
    digits = next((k for k in (4, 6, 9) if f"{low:.{k}g}" != f"{high:.{k}g}"), 17)
    return (f"above {low:.4g}" if high == math.inf else f"between {low:.{digits}g} and {high:.{digits}g}") + also


def _between(distinct: FloatArray, k: int) -> float:
    """The end of a range behind a value: half way to the next one, if that is a finite number."""
    middle = float(distinct[k] / 2.0 + distinct[k + 1] / 2.0)
    return math.inf if math.isnan(distinct[k + 1]) else middle if math.isfinite(middle) else float(distinct[k])


def _text(kind: float, texts: dict[float, str]) -> str:
    return repr(texts[kind]) if kind in texts else "missing" if math.isnan(kind) else "another text"


def _texts(mixture: Mixture, view: View) -> dict[float, str] | None:
    """The texts of a column's numbers that stand for texts; None for another column."""
    return dict(mixture.reader.tokens) if view.kind == "value" and view.columns[0] in _text_columns(mixture) else None


def _text_columns(mixture: Mixture) -> list[int]:
    """Columns whose numbers stand for texts."""
    reader = mixture.reader
    first = sum(block.width for block in reader.blocks)
    return [first + k for k, (_, what) in enumerate(reader.keys) if what in TOKENS]


def _named(view: View | LearnedView, names: list[str]) -> str:
    """A view in plain words; a learned one with its strongest columns."""
    if isinstance(view, View):
        return view.describe(names).removesuffix(", with guesses swapped above")
    if isinstance(view, Neighbours):
        return f"a ratio of densities (nearest earlier outputs) of {_some([_named(v, names) for v in view.views])}"
    if isinstance(view, Linear):
        strength = view.strengths()
    elif isinstance(view, Additive):
        strength = np.array([np.ptp(_log_odds(tree)) for tree in view.trees])
    else:
        return f"a {view.name}"
    return f"a {view.name} of {_some([names[view.columns[k]] for k in np.argsort(-strength, kind='stable')])}"


def _some(names: list[str]) -> str:
    some = names[:MAX_NAMED]
    more = len(names) - len(some)
    tail = f" and {more} more" if more else ""
    return (", ".join(some) if tail or len(some) < 2 else f"{', '.join(some[:-1])} and {some[-1]}") + tail


# --- as data ---


def rule_record(mixture: Mixture, predicted: Predicted, **more: Any) -> dict[str, Any]:
    """The rule as JSON values: see the module."""
    predicted = predicted.by_bins()
    return {
        "version": VERSION, "game": "table", "mixture": condensed(mixture).to_dict(),
        "predicted": {"q": predicted.q.tolist(), "mass": predicted.mass.tolist()}, **more,
    }  # fmt: skip


def is_current(record: dict[str, Any]) -> bool:
    """Tell whether a saved rule is of this version, or one of a table of pairs, whose form is still the same."""
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


def condensed(mixture: Mixture) -> Mixture:
    """The mixture with fewer points and steps."""
    views: dict[int, View | LearnedView] = {}

    def smaller(one: Part) -> Part:
        view = views.setdefault(id(one.view), _smaller(one.view))
        return dataclasses.replace(one, view=view, tree=None if one.tree is None else _joined(one.tree))

    return dataclasses.replace(
        mixture,
        trees=tuple(map(smaller, mixture.trees)),
        parts=tuple(map(smaller, mixture.parts)),
        shifted=tuple(map(smaller, mixture.shifted)),
    )


def _smaller(view: Any) -> Any:
    if isinstance(view, Neighbours):
        numbers = max(map(len, view.sides)) * len(view.views)
        step = max(1, math.ceil(numbers / SIZES.max_points))  # one of both sides: a ratio
        return dataclasses.replace(view, sides=(view.sides[0][::step], view.sides[1][::step]))
    if isinstance(view, Additive):
        return dataclasses.replace(view, trees=tuple(map(_joined, view.trees)))
    return view


def _log_odds(steps: Steps) -> FloatArray:
    return np.asarray(scipy.special.logit(np.clip(steps.probabilities, 1e-9, 1.0 - 1e-9)))


def _joined(tree: Any) -> Any:
    """Steps, or cells that shift log odds, whose neighbours are joined while their log odds lie within a limit."""
    is_steps = isinstance(tree, Steps)
    values = _log_odds(tree) if is_steps else tree.weights
    starts = _starts(values if is_steps else values @ np.array(TREE_SIZES.shifts))
    counts = np.diff(np.append(starts, len(values)))
    means = (np.add.reduceat(values, starts, axis=0).T / counts).T
    edges = tree.edges[starts[1:] - 1]
    return (Steps(edges, scipy.special.expit(means), tree.evidence) if is_steps
            else Shifts(edges, means, tree.evidence))  # fmt: skip


def _starts(numbers: FloatArray) -> NDArray[np.intp]:
    """First positions of runs of numbers that lie within a limit of each other."""
    starts = [0]
    low = high = float(numbers[0])
    for k, one in enumerate(numbers.tolist()):
        low, high = min(low, one), max(high, one)
        if high - low > SIZES.joined:
            starts.append(k)
            low = high = one
    return np.array(starts, dtype=np.intp)
