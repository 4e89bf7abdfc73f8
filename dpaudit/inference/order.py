"""Exchangeability tests: are the outcomes on one input i.i.d.? Exact tests of yes-or-no features in their order.

Every error rate of an audit supposes that draws are independent. A mechanism that remembers may answer ten calls and
refuse all others, carry sums from call to call, or draw its noise once a batch; then an audit of a hundred thousand
draws has looked at ten, and "not refuted" would say too much.

Validity. Which features are looked at (`dpaudit.inference.independence`), and which outcomes have one, is told by the
outcomes without their order. If these are independent and of one law, all orders are equally likely, given that. So of
n outcomes, m of which have a feature (or have it not: the fewer ones), the places are a random subset of m of n:

* all of them are among the first k with probability C(k, m) / C(n, m), and so among the last k;
* their mean place is off by t or more with probability at most 2 exp(-6 m t^2 / (n^2 - 1)): a sum without replacement
  is bounded as one with replacement (Hoeffding 1963, section 6), and of a place less its mean
  E exp(a u) = sinh(n a / 2) / (n sinh(a / 2)) <= exp(a^2 (n^2 - 1) / 24), as log(sinh(y) / y) - y^2 / 6 falls for
  y > 0;
* they are in r runs of neighbours with probability C(m - 1, r - 1) C(n - m + 1, r) / C(n, m);
* batches of sizes n_b, fixed beforehand, have k_b of them with probability P = prod C(n_b, k_b) / C(n, m). Let Q be the
  law of beta-binomial numbers of the same sizes, with a mean of m / n and a concentration c: a function of m. Over the
  tables with sum m, Q sums to at most 1, so E[Q / P | m] <= 1, for the average over several c too; and P / Q is a
  p-value (Markov's inequality). In Q / P the binomial coefficients of the batches cancel:
  C(n, m) prod B(k_b + a, n_b - k_b + b) / B(a, b), with a = c m / n and b = c - a;
* of h pairs of places that share no place, fixed by the sizes of the batches, b have it at both places in
  N(b) = h! / (b! (m - 2 b)! (h - m + b)!) 2^(m - 2 b) of the C(2 h, m) subsets of these places (m: those of them that
  have it). The ratio N(b + 1) / N(b) = (m - 2 b)(m - 2 b - 1) / (4 (b + 1)(h - m + b + 1)) falls as b grows. So the
  tail from b upwards is at most N(b) / (1 - ratio) of all subsets, where the ratio is below 1, and the tail downwards
  likewise. Tiled, repeated, mirrored and negated outputs show here, of halves of a batch. The pairs k and k + d, for k
  with an even k // d, share no place, and show other parts of equal batches; the distance d of the largest
  autocorrelation depends on the outcomes, so its p-value counts as often as there are distances (union bound);
* t or more outcomes are equal to the one before with probability at most C(d, t) 2^t (n - t)! / n!, where d is how many
  pairs of outcomes are equal: the mean of C(T, t), since t given pairs that are all next to each other form chains, and
  there are at most 2^t orders for each order of the n - t chains and single outcomes (Markov's inequality).

Of these tests of each feature the least p-value counts, times their number (union bound). A change is said at `RATE`
or less of an input, for a number of outcomes that is fixed: an audit that ends when its evidence is enough asks at one
of many, and its rate is `RATE` times these, at most `ENDS` (union bound; with rounds of several pairs, whose sizes go
by the evidence too, this is not proven).

An audit may end after a few batches, in which noise that is drawn once a batch does not show. Then one input is drawn
in `BATCHES` small ones more. They are tested by themselves, as if of an input of their own, so whose they are, and how
many, may depend on all that was drawn before. They are at most a quarter as many as the audit has drawn, unless its own
batches hint at dependence (`dependence_hint`). Behind a violation there are always some: outputs that come twice in a
call count twice as evidence, and a mechanism exactly on its claim was violated in 12% of audits at a nominal 5%. A hint
is no finding: it decides on draws alone. In small batches the score of the audit's rule is a feature too, since only
what shows there misleads the rule.

Nothing is said of dependence that no feature shows: of columns from the seventeenth one on, of leaves of objects beyond
sixteen, of outputs of a batch that neither pairs of places nor the batches show (three bits whose sum is even), and of
a change behind the outcomes that are looked at, the first ones and the last few of each later chunk. Behind a violation
calls for one output each say whether it rests on such dependence (`dpaudit.audits.single_calls`).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import Outcomes, join, read_outputs
from dpaudit.inference.independence import COLUMNS as COLUMNS
from dpaudit.inference.independence import Columns, Flags, Score, columns_of, distances, features, log_binomial, middle
from dpaudit.inference.tasks import Drawer, Task
from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.call_outcomes import Ended

RATE = 1e-9  # the probability, at most, that a change is said of an input whose outcomes are independent
MAX_OBJECTS = 20_000  # outcomes that are looked at, the first ones: 0.08 seconds, of 16 numbers each;
ENDS = MAX_OBJECTS + 5_000  # numbers of outcomes at which an audit without a fixed size may end
LATER = 16  # and of each later chunk of draws so many, the last ones
LATER_NUMBERS = 1_000_000  # numbers of later chunks that are kept, over all inputs
LATER_BYTES = 256  # bytes of each of these, where they are texts
BATCHES = 32  # small ones, drawn to ask what a batch shares
# Outcomes of each at most: Laplace noise of which a call shares half as much as each output has of its own is found in
# 17, 97 and 100% of 32 batches of 16, 32 and 64.
MAX_BATCH = 64
MAX_SHARE = 0.06  # of `samples`: all small batches together at most, but for those behind a violation
SHARE_OF_DRAWN = 0.25  # of the runs of the audit, on all inputs: the runs of the small batches at most
HINT = 0.05  # the probability, about, that the batches of independent outcomes on a pair call for more than that
# Behind a violation: outcomes of each of the `BATCHES` at least, which are 128 pairs. (64 of them alike, of outputs of
# two values that are 0.27 and 0.73 likely, have a p-value of 1e-13.) Where these hint, so many more batches, which show
# a variance that is doubled. And one as large as what the audit drew of an input, which shows blocks of any size that
# came twice there.
MIN_BEHIND_VIOLATION, MORE_BATCHES, MAX_IN_ONE_CALL = 8, 256, 384
# Of the beta law of the rate of a batch: from batches that are all of one kind to rates that differ by a hundredth.
CONCENTRATIONS = np.array([0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0])
Places = NDArray[np.intp]
Found = Iterator[tuple[float, str]]  # p-values, with what would be said


@dataclasses.dataclass(frozen=True)
class Change:
    """Evidence that outputs on one input are not exchangeable: in words, and the p-value of all tests."""

    what: str
    p_value: float


class LaterOutcomes:
    """A few outcomes of each later chunk of draws of one input, of chunks further apart the more there are.

    About `most` numbers are kept, at least those of the last two chunks; `parts` are in the order of the calls.
    Validity: which ones are kept goes by their places alone.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.parts: list[Outcomes] = []

    def add(self, part: Outcomes) -> None:
        """Add those of the next chunk."""
        self.parts.append(part)
        numbers, taken = sum(each.numbers.size for each in self.parts), sum(each.nbytes for each in self.parts)
        if len(self.parts) > 2 and (numbers > self.most or taken > LATER_BYTES * self.most):
            del self.parts[-2::-2]


def change_of(
    first: Outcomes, sizes: Sequence[int], later: Sequence[Outcomes] = (), score: Score | None = None
) -> Change | None:
    """The clearest change among the outcomes of one input, in the order of the calls; None where none is.

    The tests see the first `MAX_OBJECTS` outcomes of `first`, drawn in batches of these `sizes`, and all of `later`, a
    batch each. Validity: which outcomes the tests see depends on their places alone. Calls that did not come back are
    left out: they may come together where a machine is busy.
    """
    clearest = _clearest(first, sizes, later, score)
    return clearest if clearest.p_value <= RATE else None


def _clearest(
    first: Outcomes, sizes: Sequence[int], later: Sequence[Outcomes] = (), score: Score | None = None
) -> Change:
    """The change with the least p-value, whatever that is: 1 where nothing is asked."""
    looked_at = first.rows(slice(0, MAX_OBJECTS))
    of_first = np.repeat(np.arange(len(sizes)), sizes)[: len(looked_at)]
    of_later = [np.full(len(part), len(sizes) + number) for number, part in enumerate(later)]
    batches = np.concatenate([of_first, *of_later])
    outcomes = join([looked_at, *later]) if later else looked_at
    came_back = np.array([not isinstance(output, Ended) for output in outcomes.raw or (None,) * len(outcomes)], bool)
    columns, all_sizes = _scored(columns_of(outcomes), score), tuple(np.bincount(batches).tolist())
    numbers = None if columns is None else columns(outcomes)
    tests: list[tuple[float, str]] = []
    for feature in features(outcomes, columns, numbers):
        flags = feature.of(outcomes, numbers)
        if 0 < np.count_nonzero(flags[came_back]) < np.count_nonzero(came_back):
            found = *_tests(flags[came_back], batches[came_back]), *pair_tests(flags, came_back, all_sizes)
            tests += [(p_value, f"{feature} {how}") for p_value, how in found]
    if outcomes.tokens is not None:
        tests.append(_repeats("outcomes", outcomes.tokens[came_back].astype(str)))
    if columns is not None and numbers is not None:
        for values, place in zip(numbers[came_back].T, columns.names, strict=True):
            tests.append(_repeats(f"outputs in {place}" if place else "outputs", values[~np.isnan(values)]))
    least, what = min(tests, default=(1.0, ""))
    return Change(what, min(1.0, least * len(tests)))


def _scored(columns: Columns | None, score: Score | None) -> Columns | None:
    """Columns with a score beside them."""
    return columns and dataclasses.replace(columns, score=score)


def dependence_hint(first: Outcomes, sizes: Sequence[int], score: Score | None = None) -> float:
    """Approximate p-value of how the first outcomes of one input are spread over the batches that they were drawn in.

    Numbers and their distances from the median are ranked, objects are the most common one or another. It decides
    whether more batches are drawn, and nothing is said of it: so it may be approximate, and ask what `change_of` has
    asked.
    """
    looked_at = first.rows(slice(0, MAX_OBJECTS))
    counts = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[: len(looked_at)])
    looked_at = looked_at.rows(slice(0, int(counts.sum())))
    columns = _scored(columns_of(looked_at), score)
    asked: list[NDArray[Any]] = [] if columns is None else [*columns(looked_at).T]
    asked += [distances(values, middle(values[~np.isnan(values)])) for values in asked]  # a scale that a call shares
    if looked_at.tokens is not None:
        common, _ = max(Counter(looked_at.tokens).items(), key=lambda item: (item[1], item[0]), default=("", 0))
        asked.append(looked_at.tokens != common)
    return min((1.0, *(len(asked) * batch_hint(values, counts) for values in asked)))


# --- small batches, which are drawn to be asked ---


def most_runs_of_batches(runs: int, hint: float) -> int | None:
    """The runs of the small batches behind an audit of so many runs, at most; None where its batches give a hint."""
    return None if hint <= HINT else int(SHARE_OF_DRAWN * runs)


def runs_in_one_call(most: int | None) -> int:
    """The outcomes of one large batch behind a violation: half of the runs of the audit, of which `most` is a share."""
    return MAX_IN_ONE_CALL if most is None else min(MAX_IN_ONE_CALL, int(most / SHARE_OF_DRAWN / 2.0))


def in_small_batches(
    draw: Drawer, samples: int, most: int | None = None, is_violated: bool = False, score: Score | None = None
) -> tuple[Change | None, int]:
    """Exchangeability test on `BATCHES` small batches of an input, and their runs: a small share of `samples`.

    `draw` is of this input alone, on streams of its own. Noise that is drawn once a call is so on every input. Where a
    call raises they show nothing, nor where there would be too few outcomes. They take at most `most` runs, if given.
    Behind a violation (`is_violated`) there are more where that is too few to show outputs that come twice, or to hint
    at others; a hint calls for more batches, which are tested by themselves.

    `score` is what a rule tells of an outcome. It is fixed before these draws and looked at as columns are: what calls
    share in no column by itself misleads a rule where it shows there.
    """
    size = min(MAX_BATCH, int(MAX_SHARE * samples) // BATCHES)
    if most is not None:
        size = min(size, most // BATCHES)
    if is_violated:
        size = max(size, MIN_BEHIND_VIOLATION)
    if size <= 1:
        return None, 0
    # The large one comes first: distances between places count from there.
    few = [*([runs_in_one_call(most)] if is_violated else ()), *[size] * BATCHES]
    outcomes = _drawn(draw, 0, few)
    clearest = _clearest(outcomes, few, score=score)
    if is_violated and clearest.p_value > RATE and min(clearest.p_value, dependence_hint(outcomes, few, score)) <= HINT:
        # Validity: a hint decides on draws alone.
        sizes_of_more = [MIN_BEHIND_VIOLATION] * MORE_BATCHES
        more = _drawn(draw, 1, sizes_of_more)
        return change_of(more, sizes_of_more, score=score), sum(few) + len(more)
    return clearest if clearest.p_value <= RATE else None, len(outcomes)


def _drawn(draw: Drawer, round_: int, sizes: Sequence[int]) -> Outcomes:
    """The outcomes of batches of these sizes; none where a call raises."""
    try:
        drawn = draw([Task(0, round_, k, 0, size, (), size) for k, size in enumerate(sizes)])
    except SubjectError:
        return read_outputs([], 0)
    return join([result.kept for result in drawn if result.kept is not None])


# --- the tests of one feature ---


def _tests(flags: Flags, batches: NDArray[np.int64]) -> Found:
    """p-values of the order of some flags, not all of which are the same.

    `batches`, increasing, says of which batch each is.
    """
    n = len(flags)
    whose, which = ("(the rest) ", ~flags) if 2 * np.count_nonzero(flags) > n else ("", flags)
    places = np.flatnonzero(which)
    m, first, last = len(places), int(places[0]), int(places[-1])
    for k, end in ((last + 1, "first"), (n - first, "last")):
        share = float(np.exp(log_binomial(k, m) - log_binomial(n, m)))
        yield share, f"{whose}are all among the {end} {k:,} of {n:,}"
    off = float(places.mean()) - 0.5 * (n - 1)
    end = "beginning" if off < 0.0 else "end"
    yield min(1.0, 2.0 * math.exp(-6.0 * m * off**2 / (n**2 - 1.0))), f"{whose}are more often at the {end} of {n:,}"
    runs = 1 + int(np.count_nonzero(np.diff(places) > 1))
    r = np.arange(1.0, min(m, n - m + 1) + 1.0)
    masses = np.exp(log_binomial(m - 1.0, r - 1.0) + log_binomial(n - m + 1.0, r) - log_binomial(n, m))
    few, many = float(masses[:runs].sum()), float(masses[runs - 1 :].sum())
    yield min(1.0, few), f"{whose}come next to each other: {m:,} of {n:,} in {runs:,} runs"
    yield min(1.0, many), f"{whose}keep apart: {m:,} of {n:,} in {runs:,} runs"
    sizes = np.bincount(batches)
    counts, sizes = np.bincount(batches[places], minlength=len(sizes))[sizes > 0], sizes[sizes > 0]
    text = f"{whose}are far more often in some of {len(sizes):,} batches of draws than in others: {m:,} of {n:,}"
    yield batch_p_value(counts, sizes), text


def _repeats(what: str, values: NDArray[Any]) -> tuple[float, str]:
    """The p-value of how many values are equal to the one before, with what would be said."""
    n, times = len(values), int(np.count_nonzero(values[1:] == values[:-1]))
    counts = np.unique(values, return_counts=True)[1].astype(float) if times else np.ones(1)
    pairs = float((counts * (counts - 1.0)).sum() / 2.0)
    log_p = log_binomial(pairs, times) + times * math.log(2.0)
    log_p += scipy.special.gammaln(n - times + 1.0) - scipy.special.gammaln(n + 1.0)
    return math.exp(min(float(log_p), 0.0)), f"{what} are equal to the one before {times:,} times in {n:,}"


def batch_p_value(counts: ArrayLike, sizes: ArrayLike) -> float:
    """p-value of how a feature is spread over batches; 1 where all outcomes have it, or none has it.

    `counts` outcomes of each batch have the feature, of its positive size.

    Examples
    --------
    >>> batch_p_value([8, 0, 8, 0, 0, 8], [8] * 6) < 1e-6
    True
    >>> batch_p_value([4, 5, 3, 4, 4, 4], [8] * 6)
    1.0
    """
    k, n = np.asarray(counts, dtype=float), np.asarray(sizes, dtype=float)
    m, total = k.sum(), n.sum()
    if not 0.0 < m < total:
        return 1.0
    a = CONCENTRATIONS[:, None] * (m / total)
    b = CONCENTRATIONS[:, None] - a
    logs = (scipy.special.betaln(k + a, n - k + b) - scipy.special.betaln(a, b)).sum(axis=1)
    log_e = log_binomial(total, m) + np.logaddexp.reduce(logs) - np.log(len(CONCENTRATIONS))
    return float(np.exp(-max(float(log_e), 0.0)))


def batch_hint(values: ArrayLike, sizes: ArrayLike) -> float:
    """Approximate p-value of how the ranks of numbers, in the order of the batches, are spread over these.

    The test of Kruskal and Wallis (1952, Journal of the American Statistical Association 47, 583-621). No statement
    rests on it. NaN ranks above all numbers, and each NaN is equal to the others; empty batches are left out.

    Examples
    --------
    >>> batch_hint([1, 1, 1, 1, 2, 2, 2, 2], [4, 4]) < 0.01
    True
    >>> batch_hint([1, 2, 3, 4, 2, 1, 4, 3], [4, 4])
    1.0
    """
    every = np.asarray(sizes, dtype=np.int64)
    n = every[every > 0]
    total = int(n.sum())
    _, places, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    if len(n) < 2 or len(counts) < 2:
        return 1.0
    of_batch = np.repeat(np.arange(len(n)), n)
    off = (np.cumsum(counts) - 0.5 * (counts - 1.0))[places] - 0.5 * (total + 1.0)  # mid-ranks less their mean
    sums = np.bincount(of_batch, weights=off)
    statistic = (total - 1.0) * float((sums**2 / n).sum()) / float((off**2).sum())
    return float(scipy.special.chdtrc(len(n) - 1.0, statistic))


def pair_tests(flags: Flags, known: Flags, sizes: Sequence[int]) -> Found:
    """p-values of flags at paired places of batches of these sizes.

    `flags` and `known`, shape (outcomes,): which outcomes have the feature, and which count.
    """
    for words, first, second in paired_places(tuple(sizes)):
        are_known = known[first] & known[second]
        yield from _of_pairs(flags[first[are_known]], flags[second[are_known]], f"{words} of batches of n", 1)
    some = flags[known]
    distance, n = _likeliest_distance(some), len(some)
    first = np.arange(n - distance)
    first = first[first // distance % 2 == 0]
    yield from _of_pairs(some[first], some[first + distance], f"k and k + {distance:,}", n - 1)


def _of_pairs(first: Flags, second: Flags, words: str, tried: int) -> Found:
    """The p-values of pairs, which are one of `tried` choices."""
    pairs, both, alike = len(first), int((first & second).sum()), int((first == second).sum())
    many, few = pair_p_values(both, int(first.sum() + second.sum()), pairs)
    yield min(1.0, tried * many), f"at places {words} are alike: in {alike:,} of {pairs:,} pairs"
    yield min(1.0, tried * few), f"at places {words} are opposite: in {pairs - alike:,} of {pairs:,} pairs"


def pair_p_values(both: int, flagged: int, pairs: int) -> tuple[float, float]:
    """Upper bounds on the probabilities of at least, and at most, so many pairs that have a feature at both places.

    `flagged` of the 2 * pairs places have it.

    Examples
    --------
    >>> [round(p_value, 6) for p_value in pair_p_values(2, 4, 4)]  # 6 of the 70 subsets of 4 of 8 places are two pairs
    [0.085714, 1.0]
    """
    one, none = flagged - 2 * both, pairs - flagged + both
    log_p = log_binomial(pairs, both) + log_binomial(pairs - both, one) + one * math.log(2.0)
    p = math.exp(log_p - log_binomial(2 * pairs, flagged))
    upwards = one * (one - 1) / (4.0 * (both + 1) * (none + 1))
    downwards = 4.0 * both * none / ((one + 1) * (one + 2))
    many, few = (p / (1.0 - ratio) if ratio < 1.0 else 1.0 for ratio in (upwards, downwards))
    return min(many, 1.0), min(few, 1.0)


@functools.lru_cache(maxsize=8)
def paired_places(sizes: tuple[int, ...]) -> tuple[tuple[str, Places, Places], ...]:
    """Pairs of places within batches of these sizes: in words, the first places, and the second ones.

    Examples
    --------
    >>> [(words, first.tolist(), second.tolist()) for words, first, second in paired_places((4,))]
    [('k and k + n/2', [0, 1], [2, 3]), ('k and n - 1 - k', [0, 1], [3, 2])]
    """
    each = np.array(sizes)
    n, places = np.repeat(each, each), np.arange(each.sum())
    k = places - np.repeat(np.cumsum(each) - each, each)
    found = []
    for half in (n // 2, n - n // 2) if np.any(n % 2) else (n // 2,):
        first = places[(k < half) & (k + half < n)]
        found.append(("k and k + n/2", first, first + half[first]))
    first = places[2 * k < n - 1]
    found.append(("k and n - 1 - k", first, first + (n - 1 - 2 * k)[first]))
    return tuple(found)


def _likeliest_distance(flags: Flags) -> int:
    """The distance at which flags are most alike, or most opposite, for their number of pairs."""
    n = len(flags)
    centred: FloatArray = flags - flags.mean()
    power = np.abs(scipy.fft.rfft(centred, scipy.fft.next_fast_len(2 * n))) ** 2
    sums = scipy.fft.irfft(power)[1:n]
    return 1 + int(np.argmax(np.abs(sums) / np.sqrt(np.arange(n - 1, 0, -1))))
