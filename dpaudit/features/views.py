"""Views: numbers of a row of columns that may tell the label, and the scan that chooses which of them are fitted.

A view is a kind with its columns and a parameter. A kind is a line of `KINDS`, and `proposals` says of which columns it
is worth a look; what a view is worth the draws decide. A new form of leak is a new line in both.

The scan asks of each proposed view for the window of its order in which the labels lean most to one side, in standard
deviations less what the best of as many windows has by chance. Its figure chooses; it is no evidence.

Validity: views are chosen on earlier draws and frozen.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.extensions import working_extensions
from dpaudit.features.shapes import rounded
from dpaudit.features.whole_numbers import are_above_rounding
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import UNSAVED, Form


@dataclasses.dataclass(frozen=True)
class ViewSizes:
    """Numbers of views that are proposed, scanned and fitted."""

    scanned: int = 1_500  # draws that columns and views are chosen on
    screened: int = 500  # draws on which the best `max_paired` are chosen first, of more than `max_columns` views
    max_views: int = 24  # that are fitted
    max_columns: int = 400  # of paths, and from which on only remainders by 2 are proposed: scanned in 0.1 seconds
    max_paired: int = 130  # columns whose differences, steps and decimals are proposed; and views scanned at a time
    max_products: int = 20  # columns whose sums, products and ratios of two are proposed: 190 views of each
    max_triples: int = 12  # columns of which each three are proposed: 220 views
    sums_a_draw: int = 300  # weighted sums that are tried at once: of 1,500 draws in 40 milliseconds
    clear: float = 3.0  # nats by which a sum tells more than the best by chance: in one fit of twenty one does


SIZES = ViewSizes()
GROUP = "dpaudit.views"
BOX_BITS = 24  # of the numbers of a box together: finer cells than draws can tell
# Small ones, and how times, days and amounts are counted.
MODULI = (2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 60, 100, 1_000, 3_600, 86_400)
STEPS = (2.0, 3.0, 5.0, 10.0, 100.0, 0.1, 0.01, 0.001)  # of numbers that are not whole
PRIMES = (2, 3, 5, 7, 11, 13)  # of weighted sums; chosen by reasoning: larger ones were not measured


@dataclasses.dataclass(frozen=True)
class View(Form):
    """One number of a row: a kind, its columns and its parameter.

    `levels` are a middle and a scale of each column, where columns are brought into (0, 1) before; `weights` are the
    columns' factors.
    """

    kind: str
    columns: tuple[int, ...]
    parameter: float = 0.0
    levels: tuple[tuple[float, float], ...] = ()
    weights: tuple[float, ...] = ()
    cost: float = dataclasses.field(default=0.0, compare=False, metadata=UNSAVED)  # nats: log of how many

    exact = True

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> View:
        """The view that `to_dict` wrote; ValueError where its kind is unknown."""
        view = super().from_dict(record)
        kind_of(view.kind)
        return view

    def __call__(self, matrix: FloatArray) -> FloatArray:
        """The view's number of each row, shape (draws,)."""
        own: FloatArray = values_at_once([self], matrix)[0]
        return own

    def swaps(self, matrix: FloatArray) -> NDArray[np.bool_] | None:
        """Rows whose labels are swapped: those above the centre of a mirrored view; None for other views."""
        if self.kind != "distance from the centre":
            return None
        with np.errstate(invalid="ignore"):
            return matrix[:, self.columns[0]] > self.parameter

    def describe(self, names: Sequence[str]) -> str:
        """The view in words."""
        of = [names[k] for k in self.columns]
        if self.weights:
            terms = zip(self.weights, of, strict=True)
            of = [" plus ".join(name if w == 1.0 else f"{w:g} times {name}" for w, name in terms)]
        return kind_of(self.kind).words.format(*of, parameter=f"{self.parameter:.6g}")


@dataclasses.dataclass(frozen=True)
class ViewKind:
    """A kind of view: a line of `KINDS`, or of a package, by an entry point of the group "dpaudit.views" of its name.

    Attributes
    ----------
    function : callable
        Of the columns, each of shape (draws,), and the parameter: the view's number of each row. Of one row it must
        give what it gives of this row among others.
    words : str
        What it is, with {0}, {1} for the names of columns and {parameter}.
    propose : callable
        Of a matrix, labels and the number of columns that were read off: (columns, parameter) of each view to try.

    Examples
    --------
    >>> sizes = ViewKind(lambda a, b, _: np.abs(a) + np.abs(b), "the sizes of {0} and {1}", lambda *_: [((0, 1), 0.0)])
    >>> sizes.function(np.array([1.0, -5.0]), np.array([2.0, 0.0]), 0.0).tolist()
    [3.0, 5.0]
    """

    function: Callable[..., FloatArray]
    words: str
    propose: Callable[[FloatArray, NDArray[np.intp], int], Iterable[tuple[tuple[int, ...], float]]] = lambda *_: ()


@functools.cache
def kinds_of_packages() -> dict[str, ViewKind]:
    """The kinds that packages add, by their names; none that has the name of one of `KINDS`."""
    found = {name: kind for name, kind in working_extensions(GROUP) if name not in KINDS}
    for name, kind in found.items():
        if not isinstance(kind, ViewKind):
            warnings.warn(
                f"a view must be a ViewKind, got {kind!r} by the name of {name!r}. It is left out.", stacklevel=2
            )
    return {name: kind for name, kind in found.items() if isinstance(kind, ViewKind)}


def kind_of(name: str) -> ViewKind:
    """The kind of a name; ValueError where there is none."""
    found = KINDS.get(name) or kinds_of_packages().get(name)
    if found is None:
        raise ValueError(f"view must be one of {', '.join([*KINDS, *kinds_of_packages()])}, got {name!r}.")
    return found


def _decimals(values: FloatArray, _: float) -> FloatArray:
    is_huge = (np.abs(values) >= 2.0**53) & np.isfinite(values)  # a whole number, which is too large to be rounded
    found, rest = np.where(is_huge, 0.0, 13.0).ravel(), np.flatnonzero(~is_huge)
    for digits in range(12, -1, -1):  # what has more is not looked at again
        own = values.flat[rest]
        rest = rest[np.abs(np.round(own, digits) - own) <= 1e-13 * np.abs(own)]
        found[rest] = digits
    return found.reshape(values.shape)


def _morton_code(*columns: FloatArray) -> FloatArray:
    """The bits of numbers in (0, 1) by turns, the highest first: near codes are near in all columns (Morton 1966)."""
    bits, last = BOX_BITS // len(columns), np.nextafter(1.0, 0.0)
    whole = [np.ldexp(np.minimum(own, last), bits).astype(np.int64) for own in columns]
    code = np.zeros(columns[0].shape, dtype=np.int64)
    for bit in range(bits - 1, -1, -1):
        for own in whole:
            code = 2 * code + (own >> bit & 1)
    return np.where(np.any(np.isnan(columns), axis=0), np.nan, code)


def _far(a: FloatArray, b: FloatArray) -> FloatArray:
    return np.abs(a) + np.abs(b)


KINDS: dict[str, ViewKind] = {
    "value": ViewKind(lambda v, _: v, "{0}"),
    "distance from the centre": ViewKind(
        lambda v, c: np.abs(v - c), "the distance of {0} from {parameter}, with guesses swapped above"
    ),
    "remainder": ViewKind(lambda v, m: np.mod(v, m), "{0} modulo {parameter}"),
    "step": ViewKind(lambda v, m: np.round(np.mod(v / m + 1e-7, 1.0), 6), "{0} modulo {parameter}"),
    "fraction": ViewKind(lambda v, _: np.mod(np.round(v, 9), 1.0), "the part of {0} behind the point"),
    "decimals": ViewKind(_decimals, "the number of decimals of {0}"),
    "sign of zero": ViewKind(
        lambda v, _: np.where(v == 0.0, np.copysign(1.0, v), 0.0), "the sign of {0} where it is 0"
    ),
    "difference": ViewKind(lambda a, b, _: rounded(a - b, _far(a, b)), "{0} less {1}"),
    "sum": ViewKind(lambda a, b, _: rounded(a + b, _far(a, b)), "{0} plus {1}"),
    "product": ViewKind(lambda a, b, _: rounded(a * b), "{0} times {1}"),
    "ratio": ViewKind(lambda a, b, _: rounded(a / b), "{0} over {1}"),
    "difference of sizes": ViewKind(
        lambda a, b, _: rounded(np.abs(a) - np.abs(b), _far(a, b)), "the size of {0} less that of {1}"
    ),
    "two together": ViewKind(lambda a, b, m: rounded(a * m + b), "{0} and {1} together"),
    "boxes": ViewKind(lambda a, b, _: _morton_code(a, b), "where {0} and {1} lie together"),
    "boxes of three": ViewKind(lambda a, b, c, _: _morton_code(a, b, c), "where {0}, {1} and {2} lie together"),
    "linear relation": ViewKind(
        lambda a, b, c, m: rounded(a + m * b - c, _far(a, b)), "{0} plus {parameter} times {1} less {2}"
    ),
    "residue of a sum": ViewKind(lambda *own: np.mod(sum(own[:-1]), own[-1]), "{0} modulo {parameter}"),
    "rank among three": ViewKind(lambda a, b, c, _: rounded((a - b) * (c - b)), "whether {1} lies between {0} and {2}"),
    # Those of rules that earlier versions saved; none is proposed.
    "two bits": ViewKind(
        lambda v, code: np.mod(sum(np.mod(np.floor(v / 2.0**k), 2.0) for k in np.divmod(code, 64.0)), 2.0),
        "two bits of {0} together (code {parameter})",
    ),
    "parity of two": ViewKind(lambda a, b, _: np.mod(a + b, 2.0), "whether {0} plus {1} is odd"),
    "parity of three": ViewKind(lambda a, b, c, _: np.mod(a + b + c, 2.0), "whether {0} plus {1} plus {2} is odd"),
}


class Layout(NamedTuple):
    """Parts of the columns of a matrix: first those that were read off an output, then those that are worked out."""

    n_read: int
    n_more: int = 0  # that do not count where views are proposed for outputs of few columns alone
    n_apart: int = 0  # at the end: their views have a share of the prior of their own, and take none from others
    groups: tuple[tuple[int, ...], ...] = ()  # that may tell together


def proposals(matrix: FloatArray, labels: NDArray[np.intp], layout: Layout) -> Iterator[list[View]]:
    """All views that are scanned, alike ones in one list."""
    n_read, first = layout.n_read, matrix.shape[1] - layout.n_apart
    columns, finite = first - layout.n_more, np.isfinite(matrix)
    low = np.where(finite, matrix, np.inf).min(axis=0)
    high = np.where(finite, matrix, -np.inf).max(axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        span = np.where(high > low, high - low, 0.0)
        whole = np.all(~finite | (matrix == np.rint(matrix)), axis=0) & (np.maximum(np.abs(low), np.abs(high)) < 2**53)
    with_signs = np.where(matrix == 0.0, np.copysign(5e-324, matrix), matrix)  # zeros of two signs differ, too
    varies = [k for k in range(matrix.shape[1]) if span[k] > 0.0 or len(np.unique(with_signs[:, k])) > 1]
    apart, varies = [k for k in varies if k >= first], [k for k in varies if k < first]
    few = varies if columns <= SIZES.max_columns else [k for k in varies if k < n_read]
    moduli = MODULI if columns <= SIZES.max_columns else (2,)
    for each, own in ((varies, few), (apart, apart)):
        yield [View("value", (k,)) for k in each]
        yield [
            View("remainder", (k,), float(m))
            for k in own if whole[k] for m in moduli if span[k] > (2 * m if m > 2 else 2)
        ]  # fmt: skip
    yield residues_of_sums(matrix, labels, layout.groups)
    if columns <= SIZES.max_paired:
        yield [View("step", (k,), step) for k in few if span[k] > 0.0 for step in lattice_steps(matrix[:, k], labels)]
        real = [k for k in few if not whole[k] and span[k] > 0.0]
        # What numbers within one step leave is themselves, and what is left below their rounding is low bits alone.
        above = {m: [k for k in real if are_above_rounding(matrix[:, k], m)] for m in (1.0, *STEPS)}
        yield [View("decimals", (k,)) for k in above[1.0]]
        yield [View("fraction", (k,)) for k in above[1.0] if span[k] > 1.0]
        yield [View("remainder", (k,), m) for m in STEPS for k in above[m] if span[k] > m]
        zeros = [k for k in few if np.any(matrix[:, k] == 0.0)]
        yield [View("sign of zero", (k,)) for k in zeros]
        own = [k for k in few if span[k] > 0.0 and k < n_read]
        yield [View("distance from the centre", (k,), float(np.median(matrix[finite[:, k], k]))) for k in own]
    read = [k for k in varies if k < n_read and span[k] > 0.0]
    if 1 < len(read) <= SIZES.max_paired:
        pairs = list(itertools.combinations(read, 2))
        yield [View("difference", pair) for pair in pairs]
        if len(read) <= SIZES.max_products:
            kinds = ("sum", "product", "ratio", "difference of sizes")
            yield [View(kind, pair) for kind in kinds for pair in pairs]
            level = {k: middle_and_scale(matrix[finite[:, k], k]) for k in read}
            yield [View("boxes", (i, j), levels=(level[i], level[j])) for i, j in pairs]
            if len(read) <= SIZES.max_triples:
                threes = itertools.combinations(read, 3)
                yield [View("boxes of three", own, levels=tuple(level[k] for k in own)) for own in threes]
        counts = [k for k in read if whole[k]]
        if len(counts) <= SIZES.max_products:
            few_values = [k for k in counts if span[k] < 40]
            yield [View("two together", (i, j), float(span[j] + 1)) for i, j in itertools.combinations(few_values, 2)]
        if len(read) <= 8:
            ordered = list(itertools.permutations(read, 3))
            yield [View("linear relation", (i, j, k), 2.0) for i, j, k in ordered]
            yield [View("linear relation", (i, j, k), 1.0) for i, j, k in ordered if i < j]
            yield [View("rank among three", (i, j, k)) for i, j, k in ordered if i < k]


def _fourier(values: NDArray[Any], length: int, axes: int) -> NDArray[Any]:
    """The Fourier transform over axes of one length, by turns: of 16 short ones in a thirtieth of the time of a FFT."""
    found, together = values, 4 if length == 2 else 1
    for k in range(0, axes, together):
        factors = [np.real_if_close(scipy.linalg.dft(length))] * min(together, axes - k)
        found = (functools.reduce(np.kron, factors) @ found.reshape(length ** len(factors), -1)).T
    return found.reshape((length,) * axes)


def residues_of_sums(matrix: FloatArray, labels: NDArray[np.intp], groups: Sequence[Sequence[int]]) -> list[View]:
    """Weighted sums of whole numbers of a group whose residues modulo a prime tell the label beyond chance.

    All weights are tried at once: what they tell is the Fourier transform of the difference of the labels' counts. It
    has a square of mean 1, above t by chance with probability exp(-t), and exp(-t / 2) modulo 2, where it is real. Sums
    of few terms are more probable beforehand than those of many; all of all groups have one share of the prior.
    """
    signs, found, most = labels - labels.mean(), dict[View, float](), SIZES.sums_a_draw * len(labels)
    for group in groups if np.any(signs) else ():
        own = np.nan_to_num(matrix[:, list(group)])
        # Below 2^44 the sums, of some 20 terms with factors below 13, are exact.
        is_whole = np.all((own == np.rint(own)) & (np.abs(own) < 2**44), axis=0) & np.any(own != own[0], axis=0)
        columns = np.flatnonzero(is_whole)[: most.bit_length() - 1]
        for prime in PRIMES if len(columns) > 1 else ():
            if (size := prime ** len(columns)) > most:
                break
            codes = np.mod(own[:, columns], prime).astype(np.intp) @ prime ** np.arange(len(columns))[::-1]
            told = _fourier(np.bincount(codes, signs, minlength=size), prime, len(columns))
            power = np.abs(told) ** 2 / (signs @ signs) / (2.0 if prime == 2 else 1.0)
            weights = np.argwhere(power > SIZES.clear)
            terms, nats = np.count_nonzero(weights, axis=1), power[tuple(weights.T)]
            costs = np.log(scipy.special.comb(len(columns), terms) * (len(groups) * len(PRIMES) * len(columns)))
            costs += terms * math.log(prime - 1)
            clear = np.flatnonzero((terms > 1) & (nats > costs + SIZES.clear))
            for k in clear[np.argsort(-nats[clear], kind="stable")[: SIZES.max_columns]].tolist():
                at = np.flatnonzero(weights[k])
                scaled = weights[k, at] * pow(int(weights[k, at[0]]), -1, prime) % prime  # all multiples say the same
                of, factors = tuple(group[j] for j in columns[at]), tuple(scaled.astype(float).tolist())
                view = View("residue of a sum", of, float(prime), (), factors, float(costs[k]))
                found[view] = float(nats[k] - costs[k])
    return sorted(found, key=found.__getitem__, reverse=True)[: SIZES.max_views]


def middle_and_scale(values: FloatArray) -> tuple[float, float]:
    """A middle and a scale that spread values over (0, 1), about evenly where they are noise with one peak."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
    return middle, (high - low) / 2.2 or 1.0  # quartiles of a logistic law are 2.2 scales apart


def lattice_steps(values: FloatArray, labels: NDArray[np.intp]) -> list[float]:
    """Steps of a lattice on which all values of one label lie, if there is one."""
    found: set[float] = set()
    for label in (0, 1):
        distinct = np.unique(values[(labels == label) & np.isfinite(values)][:60])
        if len(distinct) < 8:
            continue
        tolerance = 8e-9 * max(float(np.abs(distinct).max()), 1e-300)
        step = 0.0
        for gap in np.diff(distinct).tolist():
            large, small = max(step, gap), min(step, gap)
            while small > tolerance:
                large, small = small, large - small * math.floor(large / small + 5e-7) if large / small < 1e9 else 0.0
            step = large
        if step > 1e4 * tolerance and (distinct[-1] - distinct[0]) / step < 1e7:
            found.add(float(f"{step:.10g}"))
    return [step for step in found if abs(step - 1.0) > 1e-9]


def scan(numbers: FloatArray, labels: NDArray[np.intp]) -> FloatArray:
    """Scan statistic of each column for the label, over windows of its order, shape (columns,): see the module.

    Windows, of half of the draws down to six by factors of 1.7, do not cut equal values: a cut moves to the run's end.
    """
    size, columns = numbers.shape
    rows = np.ascontiguousarray(numbers.T)
    order = np.argsort(np.where(np.isnan(rows), -1e300, rows), axis=1)
    # Counts of labels, which are exact: how equal values are ordered does not show.
    found = np.zeros((columns, size + 1))
    np.cumsum(labels.astype(float)[order], axis=1, out=found[:, 1:])
    ordered = np.take_along_axis(rows, order, axis=1)
    edge = np.ones((columns, size + 1), dtype=bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=edge[:, 1:-1])
    edge[:, 1:-1] &= ~(np.isnan(ordered[:, 1:]) & np.isnan(ordered[:, :-1]))

    def at_next_edge(values: FloatArray) -> FloatArray:
        return np.minimum.accumulate(np.where(edge, values, np.inf)[:, ::-1], axis=1)[:, ::-1]

    cut = at_next_edge(np.arange(size + 1.0))
    mean = labels.mean()
    lean = at_next_edge(found) - mean * cut  # of all draws below a cut
    deviation = max(math.sqrt(mean * (1.0 - mean)), 1e-9)
    best = np.full(columns, -np.inf)
    width = size // 2
    while width >= 6:
        step = max(1, width // 3)
        first, last = slice(0, size - width + 1, step), slice(width, None, step)
        draws = np.maximum(cut[:, last] - cut[:, first], width)
        score = np.abs(lean[:, last] - lean[:, first]) / np.sqrt(draws)
        best = np.maximum(best, score.max(axis=1) / deviation - math.sqrt(2.0 * math.log(3.0 * size / width)))
        width = int(width / 1.7)
    return best


def values_at_once(views: Sequence[View], matrix: FloatArray) -> FloatArray:
    """The numbers of several views of one kind, shape (views, draws): of a kind of `KINDS` by one call."""
    kind = kind_of(views[0].kind)
    with np.errstate(all="ignore"):
        if views[0].kind not in KINDS:
            return np.stack([kind.function(*matrix.T[list(view.columns)], view.parameter) for view in views])
        own = [matrix.T[rows] for rows in np.array([view.columns for view in views]).T]
        if views[0].levels:
            levels = np.array([view.levels for view in views])
            own = [scipy.special.expit((own[k] - levels[:, k, :1]) / levels[:, k, 1:]) for k in range(len(own))]
        if views[0].weights:
            factors = np.array([view.weights for view in views])
            own = [one * factors[:, k : k + 1] for k, one in enumerate(own)]
        return kind.function(*own, np.array([[view.parameter] for view in views]))


def _are_of_single_rows(views: Sequence[View], matrix: FloatArray) -> bool:
    """Tell if views give a row alone the number that it has among others; a warning names a kind that does not.

    Validity: what other rows have a part in is not a number of one output. Our own kinds are held to it by a test.
    """
    name = views[0].kind
    if name in KINDS or all(np.array_equal(one(matrix)[:1], one(matrix[:1]), equal_nan=True) for one in views):
        return True
    text = f"a view must give a row alone the number that it has among others, got two by the kind {name!r}."
    warnings.warn(f"{text} It is left out.", stacklevel=2)
    return False


def _scores(views: Sequence[View], matrix: FloatArray, labels: NDArray[np.intp]) -> FloatArray:
    """The figure of each view by `scan`, shape (views,)."""
    scores = []
    for start in range(0, len(views), SIZES.max_paired):
        some = views[start : start + SIZES.max_paired]
        of_kinds = itertools.groupby(some, lambda view: (view.kind, len(view.columns)))
        values = [values_at_once(list(several), matrix) for _, several in of_kinds]
        scores.append(scan(np.concatenate(values).T, labels))
    return np.concatenate(scores)


def choose_views(matrix: FloatArray, labels: NDArray[np.intp], layout: Layout) -> list[View]:
    """The views that are fitted, the clearest first: `SIZES.max_views` at most, a quarter of these from one list."""
    step = max(1, len(labels) // SIZES.scanned)
    some, own = np.asfortranarray(matrix[::step][: SIZES.scanned]), labels[::step][: SIZES.scanned]
    found: list[tuple[float, int, View]] = []
    added = (
        [View(name, tuple(columns), float(parameter)) for columns, parameter in kind.propose(some, own, layout.n_read)]
        for name, kind in kinds_of_packages().items()
    )
    for views in itertools.chain(proposals(some, own, layout), added):
        if not views or not _are_of_single_rows(views, some):
            continue
        cost = math.log(len(views))
        if len(views) > SIZES.max_columns:
            screened = _scores(views, some[-SIZES.screened :], own[-SIZES.screened :])
            views = [views[k] for k in np.argsort(-screened, kind="stable")[: SIZES.max_paired].tolist()]
        scores = _scores(views, some, own)
        for k in np.argsort(-scores, kind="stable")[: max(4, SIZES.max_views // 4)].tolist():
            view = dataclasses.replace(views[k], cost=views[k].cost or cost)
            found.append((-float(scores[k]), len(found), view))
    chosen: dict[bytes, View] = {}
    for _, _, view in sorted(found):
        # Views that order the draws alike have the same trees: they are one, with the prior of all of them.
        values = view(some)
        if np.all((values == values[0]) | (np.isnan(values) & np.isnan(values[0]))):
            continue
        key = _order(values) + bytes(view.kind == "distance from the centre")
        if key in chosen:
            chosen[key] = dataclasses.replace(chosen[key], cost=-float(np.logaddexp(-chosen[key].cost, -view.cost)))
        elif len(chosen) < SIZES.max_views:
            chosen[key] = view
    return list(chosen.values())


def _order(values: FloatArray) -> bytes:
    """The order of values, whichever way round it begins."""
    _, ranks = np.unique(values, return_inverse=True)
    known = ~np.isnan(values)
    flipped = np.where(known, ranks[known].max(initial=0) - ranks, ranks)
    return min(ranks.tobytes(), flipped.tobytes())
