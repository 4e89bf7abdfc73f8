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
* they are in r runs of neighbours with probability C(m - 1, r - 1) C(n - m + 1, r) / C(n, m).

Of these tests of each feature the least p-value counts, times their number (union bound). A change is said at `RATE`
or less of an input, for a number of outcomes that is fixed: an audit that ends when its evidence is enough asks at one
of many, and its rate is `RATE` times these, at most `ENDS` (union bound; with rounds of several pairs, whose sizes go
by the evidence too, this is not proven).

Nothing is said of dependence that no feature shows: of columns from the fourth one on, of objects that are all
different, of noise that is drawn once for a few draws, and of a change behind the outcomes that are looked at, the
first ones and the last few of each later chunk.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpaudit.evidence.outcomes import Outcomes, join
from dpaudit.subjects.call_outcomes import Ended

RATE = 1e-9  # the probability, at most, that a change is said of an input whose outcomes are independent
MOST_NUMBERS, MOST_OBJECTS = 4_000, 20_000  # outcomes that are looked at, the first ones,
ENDS = MOST_OBJECTS + 5_000  # numbers of outcomes at which an audit without a fixed size may end
LARGEST = 40_000  # but no more numbers than that, or so many outcomes as there must be,
LATER = 16  # and of each later chunk of draws so many, the last ones
FEWEST = 40  # of them, below which nothing is asked
COLUMNS = 3  # of numbers that are looked at
Flags = NDArray[np.bool_]


@dataclasses.dataclass(frozen=True)
class Change:
    """What says that the outcomes of one input do not come in any order: in words, and the p-value of all tests."""

    what: str
    p_value: float


def change_of(first: Outcomes, later: Sequence[Outcomes] = ()) -> Change | None:
    """The clearest change among the outcomes of one input, in the order of the calls; None where none is.

    Of the `first` ones so many are looked at, and all that were kept of `later` ones. Validity: which they are goes by
    their places alone. Calls that did not come back are left out: they may come together where a machine is busy.
    """
    outcomes = join([_looked_at(first), *later]) if later else _looked_at(first)
    tests = [
        (p_value, f"{what} {how}")
        for what, flags in _features(outcomes)
        if len(flags) >= FEWEST
        for p_value, how in _tests(flags)
    ]
    if not tests:
        return None
    least, what = min(tests)
    p_value = least * len(tests)
    return Change(what, p_value) if p_value <= RATE else None


def _looked_at(first: Outcomes) -> Outcomes:
    most = MOST_OBJECTS if first.tokens is not None else MOST_NUMBERS
    return first.rows(slice(0, min(most, max(LARGEST // max(first.numbers.shape[1], 1), 10 * FEWEST))))


def _features(outcomes: Outcomes) -> Iterator[tuple[str, Flags]]:
    """What is asked of the outcomes, in words, and the answers in their order; each a symmetric function of them."""
    if outcomes.tokens is not None:
        came_back = np.array([not isinstance(output, Ended) for output in outcomes.raw], dtype=bool)
        tokens = outcomes.tokens[came_back]
        common = max(Counter(tokens.tolist()).items(), key=lambda item: (item[1], item[0]), default=None)
        if common is not None and common[1] > 1:
            yield f"outcomes other than {common[0][:60]}", np.array(tokens != common[0], dtype=bool)
        return
    for column in range(min(COLUMNS, outcomes.numbers.shape[1])):
        values = outcomes.numbers[:, column]
        where = f" in column {column}" if outcomes.numbers.shape[1] > 1 else ""
        is_nan = np.isnan(values)
        yield f"outputs that are NaN{where}", is_nan
        known = values[~is_nan]
        if len(known):
            median = float(np.partition(known, len(known) // 2)[len(known) // 2])
            yield f"outputs above {median:.4g}{where}", values > median
            yield f"outputs other than {median:.4g}{where}", values != median


def _tests(flags: Flags) -> Iterator[tuple[float, str]]:
    """p-values of the order of some flags, with what would be said; none where all are the same."""
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


def _log_binomial(n: float | NDArray[np.float64], k: float | NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0))


def _share_of_subsets(k: int, n: int, m: int) -> float:
    """C(k, m) / C(n, m)."""
    return float(np.exp(_log_binomial(k, m) - _log_binomial(n, m)))


def _runs(runs: int, n: int, m: int) -> tuple[float, float]:
    """Probabilities of so few, and of so many, runs of m random places of n."""
    r = np.arange(1.0, min(m, n - m + 1) + 1.0)
    masses = np.exp(_log_binomial(m - 1.0, r - 1.0) + _log_binomial(n - m + 1.0, r) - _log_binomial(n, m))
    return min(1.0, float(masses[:runs].sum())), min(1.0, float(masses[runs - 1 :].sum()))
