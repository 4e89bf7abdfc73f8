"""Do the outcomes of one input come in any order? Exact tests of yes-or-no features, against calls that change.

Every error rate of an audit supposes that draws are independent. A mechanism that remembers may answer ten calls and
refuse all others, carry sums from call to call, or draw its noise once a batch; then an audit of a hundred thousand
draws has looked at ten, and "not refuted" would say too much.

Validity. Which features are looked at, and which outcomes have one, is told by the outcomes without their order. If
these are independent and of one law, all orders are equally likely, given that. So of n outcomes, m of which have a
feature (or have it not: the fewer ones), the places are a random subset of m of n:

* all of them are among the first k with probability C(k, m) / C(n, m), and so among the last k;
* their mean place is off by t or more with probability at most 2 exp(-6 m t^2 / (n^2 - 1)): a sum without replacement
  is bounded as one with replacement (Hoeffding 1963, section 6), and of a place less its mean
  E exp(a u) = sinh(n a / 2) / (n sinh(a / 2)) <= exp(a^2 (n^2 - 1) / 24), as log(sinh(y) / y) - y^2 / 6 falls for
  y > 0;
* they are in r runs of neighbours with probability C(m - 1, r - 1) C(n - m + 1, r) / C(n, m);
* t or more of them are equal to the one before with probability at most C(d, t) 2^t (n - t)! / n!, where d is how many
  pairs of outcomes are equal: the mean of C(T, t), since t given pairs that are all next to each other form chains, and
  there are at most 2^t orders for each order of the n - t chains and single outcomes (Markov's inequality);
* how they are spread over the batches that were drawn has the p-value of `dpaudit.testing.batches`, and how often both
  places of a pair have it, that of `dpaudit.testing.paired_places`.

Of these tests of each feature the least p-value counts, times their number (union bound). A change is said at `RATE`
or less of an input, for a number of outcomes that is fixed: an audit that ends when its evidence is enough asks at one
of many, and its rate is `RATE` times these, at most `ENDS` (union bound; with rounds of several pairs, whose sizes go
by the evidence too, this is not proven).

An audit may end after a few batches, in which noise that is drawn once a batch does not show. Then one input is drawn
in `BATCHES` small ones more. They are tested by themselves, as if of an input of their own, so whose they are, and how
many, may depend on all that was drawn before. They are at most a quarter as many as the audit has drawn, unless its own
batches hint at dependence (`dependence_hint`). Behind a violation there are always some: outputs that come twice in a
call count twice as evidence, and a mechanism exactly on its claim was violated in 12% of audits at a nominal 5%. A hint
is no finding: it decides on draws alone.

Nothing is said of dependence that no feature shows: of columns from the seventeenth one on, of leaves of objects beyond
sixteen, of outputs of a batch that neither pairs of places nor the batches show (three bits whose sum is even), and of
a change behind the outcomes that are looked at, the first ones and the last few of each later chunk.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.errors import SubjectError
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes, join, read_outputs
from dpaudit.subjects.call_outcomes import Ended
from dpaudit.testing.batches import batch_hint, batch_p_value
from dpaudit.testing.leaf_columns import leaf_columns
from dpaudit.testing.paired_places import pair_tests
from dpaudit.testing.tasks import Draw, Task

RATE = 1e-9  # the probability, at most, that a change is said of an input whose outcomes are independent
MOST_NUMBERS, MOST_OBJECTS = 4_000, 20_000  # outcomes that are looked at, the first ones,
ENDS = MOST_OBJECTS + 5_000  # numbers of outcomes at which an audit without a fixed size may end
LARGEST = 64_000  # but no more numbers than that (so `MOST_NUMBERS` of 16), or so many outcomes as there must be,
LATER = 16  # and of each later chunk of draws so many, the last ones
LATER_NUMBERS = 1_000_000  # numbers of later chunks that are kept, over all inputs
BATCHES = 32  # small ones, drawn to ask what a batch shares
SMALLEST_BATCH, SMALL_BATCH, LARGEST_BATCH = 3, 16, 64  # outcomes of each: at least, mostly, and in long audits
BATCH_SHARE, LARGEST_SHARE = 0.01, 0.06  # of the runs on one input: where that is more than small ones, and at most
SHARE_OF_DRAWN = 0.25  # of the runs of the audit, on all inputs: the runs of the small batches at most
HINT = 0.05  # the probability, about, that the batches of independent outcomes on a pair call for more than that
# Behind a violation: outcomes of each of the `BATCHES` at least, which are 128 pairs. (64 of them alike, of outputs of
# two values that are 0.27 and 0.73 likely, have a p-value of 1e-13.) Where these hint, the sizes of more batches, which
# show a variance that is doubled. And one as large as what the audit drew of an input, which shows blocks of any size
# that came twice there.
MIN_BEHIND_VIOLATION, MORE, MAX_IN_ONE_CALL = 8, [8] * 256, 384
FEWEST = 40  # outcomes, below which nothing is asked
COLUMNS = 16  # of numbers that are looked at, or leaves of other outputs: a bound on time; with 3 four keys hid one
Flags = NDArray[np.bool_]
Columns = list[tuple[str, FloatArray]]  # numbers of each outcome, with where they stand in words


@dataclasses.dataclass(frozen=True)
class Change:
    """What says that the outcomes of one input do not come in any order: in words, and the p-value of all tests."""

    what: str
    p_value: float


class LaterOutcomes:
    """A few outcomes of each later chunk of draws of one input, of chunks further apart the more there are.

    Validity: which ones are kept goes by their places alone.

    Parameters
    ----------
    most : int
        Numbers that are kept, about; at least those of the last two chunks.

    Attributes
    ----------
    parts : list of Outcomes
        In the order of the calls.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.parts: list[Outcomes] = []

    def add(self, part: Outcomes) -> None:
        """Add those of the next chunk."""
        self.parts.append(part)
        if len(self.parts) > 2 and sum(each.numbers.size for each in self.parts) > self.most:
            del self.parts[-2::-2]


def change_of(first: Outcomes, sizes: Sequence[int], later: Sequence[Outcomes] = ()) -> Change | None:
    """The clearest change among the outcomes of one input, in the order of the calls; None where none is.

    Of the `first` ones so many are looked at, and all that were kept of `later` ones, which are of a batch each. Those
    that are first were drawn in batches of these `sizes`. Validity: which are looked at goes by their places alone.
    Calls that did not come back are left out: they may come together where a machine is busy.
    """
    clearest = _clearest(first, sizes, later)
    return clearest if clearest.p_value <= RATE else None


def _clearest(first: Outcomes, sizes: Sequence[int], later: Sequence[Outcomes] = ()) -> Change:
    """The change with the least p-value, whatever that is: 1 where nothing is asked."""
    looked_at = _looked_at(first)
    of_first = np.repeat(np.arange(len(sizes)), sizes)[: len(looked_at)]
    of_later = [np.full(len(part), len(sizes) + number) for number, part in enumerate(later)]
    batches = np.concatenate([of_first, *of_later])
    outcomes = join([looked_at, *later]) if later else looked_at
    columns, all_sizes = _columns(outcomes), np.bincount(batches).tolist()
    tests = [
        (p_value, f"{what} {how}")
        for what, flags, known in _features(outcomes, columns)
        if len(flags) >= FEWEST and 0 < np.count_nonzero(flags) < len(flags)
        for p_value, how in (*_tests(flags, batches[known]), *pair_tests(flags, known, all_sizes))
    ]
    tests += [_repeats(what, values) for what, values in _values(outcomes, columns) if len(values) >= FEWEST]
    least, what = min(tests, default=(1.0, ""))
    return Change(what, min(1.0, least * max(len(tests), 1)))


def dependence_hint(first: Outcomes, sizes: Sequence[int]) -> float:
    """Approximate p-value of how the first outcomes of one input are spread over the batches that they were drawn in.

    Numbers are ranked, objects are the most common one or another. It decides whether more batches are drawn, and
    nothing is said of it: so it may be approximate, and ask what `change_of` has asked.
    """
    looked_at = _looked_at(first)
    counts = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[: len(looked_at)])
    looked_at = looked_at.rows(slice(0, int(counts.sum())))
    asked: list[NDArray[Any]] = [numbers for _, numbers in _columns(looked_at)]
    if looked_at.tokens is not None:
        tokens = Counter(looked_at.tokens.tolist())
        common, _ = max(tokens.items(), key=lambda item: (item[1], item[0]), default=("", 0))
        asked.append(looked_at.tokens != common)
    return min((len(asked) * batch_hint(values, counts) for values in asked), default=1.0)


def most_runs_of_batches(runs: int, hint: float) -> int | None:
    """The runs of the small batches behind an audit of so many runs, at most; None where its batches give a hint."""
    return None if hint <= HINT else int(SHARE_OF_DRAWN * runs)


def runs_in_one_call(most: int | None) -> int:
    """The outcomes of one large batch behind a violation: half of the runs of the audit, of which `most` is a share."""
    return MAX_IN_ONE_CALL if most is None else min(MAX_IN_ONE_CALL, int(most / SHARE_OF_DRAWN / 2.0))


def in_small_batches(
    draw: Draw, samples: int, most: int | None = None, is_violated: bool = False
) -> tuple[Change | None, int]:
    """What batches of outcomes share, in `BATCHES` small ones of an input, and their runs: a small share of `samples`.

    `draw` is of this input alone, on streams of its own. Noise that is drawn once a call is so on every input. Where a
    call raises they show nothing, nor where there would be too few outcomes. They take at most `most` runs, if given.
    Behind a violation (`is_violated`) there are always enough of them to show outputs that come twice, or to hint at
    others; a hint calls for more batches, which are tested by themselves.
    """
    sizes = int(BATCH_SHARE * samples) // BATCHES, int(LARGEST_SHARE * samples) // BATCHES
    size = min(max(sizes[0], SMALL_BATCH), LARGEST_BATCH, sizes[1])
    if most is not None:
        size = min(size, most // BATCHES)
    if is_violated:
        size = max(size, MIN_BEHIND_VIOLATION)
    if size < SMALLEST_BATCH:
        return None, 0
    # The large one comes first: distances between places count from there.
    few = [*([runs_in_one_call(most)] if is_violated else ()), *[size] * BATCHES]
    outcomes = _drawn(draw, 0, few)
    clearest = _clearest(outcomes, few)
    if is_violated and clearest.p_value > RATE and min(clearest.p_value, dependence_hint(outcomes, few)) <= HINT:
        # Validity: a hint decides on draws alone.
        more = _drawn(draw, 1, MORE)
        return change_of(more, MORE), sum(few) + len(more)
    return clearest if clearest.p_value <= RATE else None, len(outcomes)


def _drawn(draw: Draw, round_: int, sizes: Sequence[int]) -> Outcomes:
    """The outcomes of batches of these sizes; none where a call raises."""
    try:
        drawn = draw([Task(0, round_, k, 0, size, (), size) for k, size in enumerate(sizes)])
    except SubjectError:
        return read_outputs([], 0)
    return join([result.kept for result in drawn if result.kept is not None])


def _looked_at(first: Outcomes) -> Outcomes:
    most = MOST_OBJECTS if first.tokens is not None else MOST_NUMBERS
    return first.rows(slice(0, min(most, max(LARGEST // max(first.numbers.shape[1], 1), 10 * FEWEST))))


def _features(outcomes: Outcomes, columns: Columns) -> Iterator[tuple[str, Flags, Flags]]:
    """What is asked of the outcomes, in words, the answers in their order, and of which outcomes they are.

    `columns` are theirs, see `_columns`. The answers are a symmetric function of the outcomes that they are of.
    """
    came_back = _came_back(outcomes)
    if outcomes.tokens is not None:
        tokens = outcomes.tokens[came_back]
        common = max(Counter(tokens.tolist()).items(), key=lambda item: (item[1], item[0]), default=None)
        if common is not None and common[1] > 1:
            yield f"outcomes other than {common[0][:60]}", np.array(tokens != common[0], dtype=bool), came_back
    for where, numbers in columns:
        values = numbers[came_back]
        is_nan = np.isnan(values)
        yield f"outputs that are NaN{where}", is_nan, came_back
        known = values[~is_nan]
        if len(known):
            median = float(np.partition(known, len(known) // 2)[len(known) // 2])
            of_known = came_back.copy()
            of_known[came_back] = ~is_nan
            yield f"outputs above {median:.4g}{where}", known > median, of_known
            are_other = known != median
            distances = np.abs(np.subtract(known, median, out=np.zeros_like(known), where=are_other))  # inf - inf is 0
            if len(known) - np.count_nonzero(are_other) > 1:
                yield f"outputs other than {median:.4g}{where}", are_other, of_known
            far = float(np.partition(distances, len(known) // 2)[len(known) // 2])
            if far > 0.0:
                yield f"outputs farther than {far:.4g} from {median:.4g}{where}", distances > far, of_known


def _came_back(outcomes: Outcomes) -> Flags:
    """Which outcomes are of calls that came back."""
    if outcomes.tokens is None:
        return np.ones(len(outcomes), dtype=bool)
    return np.array([not isinstance(output, Ended) for output in outcomes.raw], dtype=bool)


def _columns(outcomes: Outcomes) -> Columns:
    """The numbers that are looked at, of each outcome, with where they stand in words: columns, or leaves of objects.

    Validity: which leaves goes by the outcomes without their order.
    """
    if outcomes.tokens is not None:
        leaves = leaf_columns(outcomes, COLUMNS)
        if leaves is None:
            return []
        return [(f" in {name}", numbers) for name, numbers in zip(leaves.names, leaves(outcomes).T, strict=True)]
    columns = outcomes.numbers.shape[1]
    return [(f" in column {k}" if columns > 1 else "", outcomes.numbers[:, k]) for k in range(min(COLUMNS, columns))]


def _values(outcomes: Outcomes, columns: Columns) -> Iterator[tuple[str, NDArray[Any]]]:
    """What may be equal from one outcome to the next: in words, and for each outcome that came back."""
    came_back = _came_back(outcomes)
    if outcomes.tokens is not None:
        yield "outcomes", outcomes.tokens[came_back].astype(str)
    for where, numbers in columns:
        values = numbers[came_back]
        yield f"outputs{where}", values[~np.isnan(values)]


def _repeats(what: str, values: NDArray[Any]) -> tuple[float, str]:
    """The p-value of how many values are equal to the one before, with what would be said."""
    n, times = len(values), int(np.count_nonzero(values[1:] == values[:-1]))
    counts = np.unique(values, return_counts=True)[1].astype(float) if times else np.ones(1)
    pairs = float((counts * (counts - 1.0)).sum() / 2.0)
    log_p = _log_binomial(pairs, times) + times * math.log(2.0)
    log_p += scipy.special.gammaln(n - times + 1.0) - scipy.special.gammaln(n + 1.0)
    return min(
        1.0, float(np.exp(min(float(log_p), 0.0)))
    ), f"{what} are equal to the one before {times:,} times in {n:,}"


def _tests(flags: Flags, batches: NDArray[np.int64]) -> Iterator[tuple[float, str]]:
    """p-values of the order of some flags, with what would be said; none where all are the same.

    `batches`, increasing, says of which batch each is.
    """
    n = len(flags)
    whose, which = "", flags
    if 2 * np.count_nonzero(flags) > n:
        whose, which = "(the rest) ", ~flags
    places = np.flatnonzero(which)
    m = len(places)
    if m == 0:
        return
    first, last = int(places[0]), int(places[-1])
    yield _share_of_subsets(last + 1, n, m), f"{whose}are all among the first {last + 1:,} of {n:,}"
    yield _share_of_subsets(n - first, n, m), f"{whose}are all among the last {n - first:,} of {n:,}"
    off = float(places.mean()) - 0.5 * (n - 1)
    end = "beginning" if off < 0.0 else "end"
    yield min(1.0, 2.0 * math.exp(-6.0 * m * off**2 / (n**2 - 1.0))), f"{whose}are more often at the {end} of {n:,}"
    runs = 1 + int(np.count_nonzero(np.diff(places) > 1))
    few, many = _runs(runs, n, m)
    yield few, f"{whose}come next to each other: {m:,} of {n:,} in {runs:,} runs"
    yield many, f"{whose}keep apart: {m:,} of {n:,} in {runs:,} runs"
    sizes = np.bincount(batches)
    counts, sizes = np.bincount(batches[places], minlength=len(sizes))[sizes > 0], sizes[sizes > 0]
    text = f"{whose}are far more often in some of {len(sizes):,} batches of draws than in others: {m:,} of {n:,}"
    yield batch_p_value(counts, sizes), text


def _log_binomial(n: float | NDArray[np.float64], k: float | NDArray[np.float64]) -> NDArray[np.float64]:
    gammaln = scipy.special.gammaln
    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))


def _share_of_subsets(k: int, n: int, m: int) -> float:
    """C(k, m) / C(n, m)."""
    return float(np.exp(_log_binomial(k, m) - _log_binomial(n, m)))


def _runs(runs: int, n: int, m: int) -> tuple[float, float]:
    """Probabilities of so few, and of so many, runs of m random places of n."""
    r = np.arange(1.0, min(m, n - m + 1) + 1.0)
    masses = np.exp(_log_binomial(m - 1.0, r - 1.0) + _log_binomial(n - m + 1.0, r) - _log_binomial(n, m))
    return min(1.0, float(masses[:runs].sum())), min(1.0, float(masses[runs - 1 :].sum()))
