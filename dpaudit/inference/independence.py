"""Yes-or-no features of outputs, and the exact test that two runs are independent of each other.

Two runs that share noise share features: being above the median of a column, far from it, other than the most common
output. Of outputs that are no numbers the columns are leaves, such as the number under a key. Fisher's exact test asks
whether a feature of the first tells anything of the same feature of the second: given the margins, the number of pairs
that have both is hypergeometric if they are independent. `dpaudit.inference.order` asks the same features in the order
of the calls.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes, from_objects
from dpaudit.features.reader import Reader
from dpaudit.privacy.claims import FloatArray
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.plain import packed

COLUMNS = 16  # of numbers, or leaves of other outputs, that are looked at: a bound on time; 3 missed one key of four
MAX_SAMPLE = 400  # different outputs that leaves are looked for in: a bound on time (unmeasured)
TOKENS = ("category", "form", "kind", "class", "classes inside", "shape", "dtype")  # whose numbers have no order
Flags = NDArray[np.bool_]
Score = Callable[[Outcomes], FloatArray]  # a number of each outcome, shape (draws,), of it alone


@dataclasses.dataclass(frozen=True)
class Columns:
    """A few of the columns that a reader reads, NaN where an output has no such part; and a `score`, where given."""

    reader: Reader
    places: tuple[int, ...]
    score: Score | None = None

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The numbers of outcomes, shape (draws, columns)."""
        read = np.asarray(self.reader.read(_with_texts(outcomes))[:, self.places], dtype=float)
        return read if self.score is None else np.column_stack([read, self.score(outcomes)])

    @property
    def names(self) -> list[str]:
        """Names of the columns, in words: empty for an output that is a number itself."""
        names = [self.reader.names[k] for k in self.places]
        starts = "the output, place "
        said = ["" if n == "the output" else n.replace(starts, "column ") if n.startswith(starts) else n for n in names]
        return said if self.score is None else [*said, "the score of the rule"]


def columns_of(outcomes: Outcomes, *, categories: bool = True) -> Columns | None:
    """At most `COLUMNS` columns: the first numbers, or leaves that vary; None where there are none.

    Of more leaves half are those with the most values and half those with the fewest: what a batch shares has few
    values, so that columns with the most would leave out what is looked for. Without `categories` texts of a place
    count only where they are two: more are numbered by chance, and what is above the median is another set of them in
    other outcomes.

    Validity: they are a function of which outputs there are, and not of their order. They are looked for in one output
    of each token, the first by its printed form, in the order of tokens; the order of keys is left out.
    """
    if outcomes.tokens is None:
        return Columns(Reader.learn([outcomes]), tuple(range(min(COLUMNS, outcomes.numbers.shape[1]))))
    objects = _with_texts(outcomes)
    places: dict[str, list[int]] = {}
    for position, token in enumerate(objects.tokens.tolist() if objects.tokens is not None else []):
        places.setdefault(token, []).append(position)
    if len(places) < 2:
        return None
    tokens = sorted(places)
    tokens = [tokens[k * len(tokens) // min(len(tokens), MAX_SAMPLE)] for k in range(min(len(tokens), MAX_SAMPLE))]
    chosen = [min(places[token], key=lambda position: _printed(objects.raw[position])) for token in tokens]
    sample = from_objects([objects.raw[position] for position in chosen])
    reader = Reader.learn((sample,))
    different = [len(np.unique(column)) for column in reader.read(sample).T]  # NaN is one value
    what = [name.partition(" of ")[0].removeprefix("the ") for name in reader.names]
    own = [
        k for k, count in enumerate(different)
        if count > 1 and what[k] != "place" and (categories or count == 2 or what[k] not in TOKENS)
    ]  # fmt: skip
    ranked = sorted(own, key=lambda k: (-different[k], k))
    if len(ranked) > COLUMNS:
        ranked = ranked[: COLUMNS // 2] + ranked[-(COLUMNS // 2) :]
    return Columns(*reader.only(sorted(ranked))) if ranked else None


def _printed(output: Any) -> str:
    """The printed form of plain data; that of its bytes where Python does not print it: a very long integer."""
    try:
        return repr(output)
    except ValueError:
        return repr(packed(output))


def _with_texts(outcomes: Outcomes) -> Outcomes:
    """Outcomes whose exceptions have tokens with their texts: to other readers they are of a kind and no more."""
    if outcomes.tokens is None or not any(isinstance(output, Failed) for output in outcomes.raw):
        return outcomes
    return from_objects([
        {"raised": output.kind, "message": output.message} if isinstance(output, Failed) else output
        for output in outcomes.raw
    ])  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Feature:
    """A yes-or-no question about one output: of the number in a column, or of its token.

    `place` says in words what the column is; features of different pilots ask the same where their kinds and places
    are equal.

    Validity: `columns` is fixed on the pilot, so that the answer never depends on the other outputs of a batch (a None
    among numbers makes objects of all of them).
    """

    kind: str  # "NaN", "above", "other", "farther" or "token"
    columns: Columns | None = None
    column: int = 0
    place: str = ""
    centre: float = 0.0
    spread: float = 0.0
    token: str = ""

    def of(self, outcomes: Outcomes, numbers: FloatArray | None = None) -> Flags:
        """The answer for each outcome, shape (draws,); `numbers` are what its columns hold, where that is known."""
        if self.columns is None:
            found = outcomes.as_objects().tokens
            return np.array([token != self.token for token in (found if found is not None else [])], dtype=bool)
        return self.of_numbers((self.columns(outcomes) if numbers is None else numbers)[:, self.column])

    def of_numbers(self, values: FloatArray) -> Flags:
        """The answer for each number of the column."""
        if self.kind == "NaN":
            return np.isnan(values)
        with np.errstate(invalid="ignore"):
            if self.kind == "above":
                return values > self.centre
            return values != self.centre if self.kind == "other" else distances(values, self.centre) > self.spread

    def __str__(self) -> str:
        words = {
            "NaN": "outputs that are NaN",
            "above": f"outputs above {self.centre:.4g}",
            "other": f"outputs other than {self.centre:.4g}",
            "farther": f"outputs farther than {self.spread:.4g} from {self.centre:.4g}",
            "token": f"outcomes other than {self.token[:60]}",
        }
        return words[self.kind] + (f" in {self.place}" if self.place else "")

    def asks_as(self, other: Feature) -> bool:
        """Tell whether both features ask the same of the same column."""
        return (self.kind, self.place) == (other.kind, other.place)


def features(pilot: Outcomes, columns: Columns | None = None, numbers: FloatArray | None = None) -> list[Feature]:
    """Features of the outputs of one input, fixed on pilot draws: those that some of these have and some have not.

    `columns` are those that are looked at, by default those of `columns_of` that mean the same in other outcomes;
    `numbers` what they hold of the pilot, where that is known.
    Validity: they are a symmetric function of the pilot.
    """
    found = []
    if pilot.tokens is not None:
        common = max(Counter(pilot.tokens.tolist()).items(), key=lambda item: (item[1], item[0]), default=("", 0))
        if 1 < common[1] < len(pilot):
            found.append(Feature("token", token=common[0]))
    columns = columns or columns_of(pilot, categories=False)
    if columns is None:
        return found
    numbers = columns(pilot) if numbers is None else numbers
    for k, (values, place) in enumerate(zip(numbers.T, columns.names, strict=True)):
        known = values[~np.isnan(values)]
        centre = middle(known)
        spread = middle(distances(known, centre))
        asked = {"NaN": True, "above": True, "other": np.count_nonzero(known == centre) > 1, "farther": spread > 0.0}
        for kind in (kind for kind, is_asked in asked.items() if is_asked):
            feature = Feature(kind, columns, k, place, centre, spread)
            if 0 < np.count_nonzero(feature.of_numbers(values)) < len(values):
                found.append(feature)
    return found


def middle(values: FloatArray) -> float:
    """The median of numbers, the upper one of two; 0 of none."""
    return float(np.partition(values, len(values) // 2)[len(values) // 2]) if len(values) else 0.0


def distances(values: FloatArray, centre: float) -> FloatArray:
    """Distances of numbers from a centre; an infinite one is at 0 from itself."""
    is_other = values != centre
    return np.abs(np.subtract(values, centre, out=np.zeros_like(values), where=is_other))


def log_binomial(n: Any, k: Any) -> Any:
    """Natural log of the binomial coefficient, elementwise."""
    gammaln = scipy.special.gammaln
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def fisher(both: int, first: int, second: int, total: int) -> tuple[float, float]:
    """p-values of more and of fewer pairs that have both than independence gives, given the margins.

    Examples
    --------
    >>> more, fewer = fisher(5, 5, 5, 10)
    >>> round(more, 6), round(fewer, 6)  # 1 / binomial(10, 5)
    (0.003968, 1.0)
    """
    values = np.arange(max(0, first + second - total), min(first, second) + 1)
    logs = log_binomial(first, values) + log_binomial(total - first, second - values) - log_binomial(total, second)
    masses = np.exp(logs)
    return min(1.0, float(masses[values >= both].sum())), min(1.0, float(masses[values <= both].sum()))


def dependence(first: Flags, second: Flags) -> float:
    """Two-sided p-value of Fisher's exact test of independence of two flags of the same pairs."""
    return min(1.0, 2.0 * min(fisher(int((first & second).sum()), int(first.sum()), int(second.sum()), len(first))))


def more_equal(within: Flags, across: Flags) -> float:
    """One-sided p-value: are the pairs `within` equal more often than independent pairs `across`?"""
    total = len(within) + len(across)
    return fisher(int(within.sum()), int(within.sum() + across.sum()), len(within), total)[0]


def equal_pairs(first: Outcomes, second: Outcomes) -> tuple[Flags, Flags]:
    """Equality of runs: of the first half of the pairs with their own partner, of the rest with the next one's.

    Each run enters one comparison, so that the flags are independent.
    """
    a, b = first.as_objects().tokens, second.as_objects().tokens
    if a is None or b is None:
        return np.zeros(0, bool), np.zeros(0, bool)
    half = len(a) // 2
    within = np.array([x == y for x, y in zip(a[:half], b[:half], strict=True)], dtype=bool)
    across = np.array([x == y for x, y in zip(a[half:-1:2], b[half + 1 :: 2], strict=False)], dtype=bool)
    return within, across
