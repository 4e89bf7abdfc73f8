"""A family of leaks that nobody chose: drawn at random, each with exactly the loss and the mass that it states.

A leak has a background law and a score of outputs. A is the upper tail of the score, B its lower tail. A draw chooses
its place first: A with probability mass * e^loss / (1 + e^loss) on input 1, B with probability mass / (1 + e^loss), the
other way round on input 0, and outside otherwise. It then takes an output of the background that lies there. So loss
and mass are exact whatever the background and the score are, and outside A and B both laws agree: so these leaks do not
show what a lawful difference there hides from plants and audits (decision 57 has leaks that do). The cuts of the score
are quantiles of the background, so that A and B are about as likely there, except where the score has few values.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any

import column_traits as traits
import numpy as np
import scipy
from column_traits import ANSWERS, BITS, COUNTS, KEEP, LIGHT, NUMBERS, RNG, SYMMETRIC, Draw, Score
from hidden_forms import IN_A, IN_B, OUTSIDE
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

CUT_DRAWS = 10_000  # of the background behind the cuts: a tail of mass .01 is off by 10% (one standard deviation)
MIN_POOL = 500  # background draws at a time, where few outputs are asked for
FORMS = ["one level", "intervals", "single values", "two columns together", "several columns together"]
FORMS += ["direction", "token", "number inside"]
COLUMN_TRAITS = {"one level": traits.ends, "intervals": traits.intervals, "single values": traits.values}
HOSTS = {  # laws of the columns that a form can live in
    "one level": (NUMBERS, COUNTS, ANSWERS),
    "intervals": (NUMBERS, COUNTS),
    "single values": (NUMBERS, COUNTS, ANSWERS, BITS),
    "two columns together": (SYMMETRIC, ANSWERS),
    "several columns together": (SYMMETRIC, ANSWERS, BITS),
    "direction": (LIGHT, COUNTS, ANSWERS, BITS),
}
LETTERS = list("ABCDEFGHJKLMNPQRSTUVWXYZ")
WORDS = ["tea", "coffee", "rice", "bread", "red", "blue", "green", "north", "south", "open", "closed", "late", "paid"]
KEYS = ["user", "total", "status", "items", "note", "rate", "shop", "level", "code", "reply"]
STYLES = (("=", " "), (" ", " "), (": ", "; "), (":", "\n"), ("=", ", "))  # of texts: after a key, after a value
TOKEN = re.compile(r"-?\d+\.?\d*(?:e[+-]\d+)?|[a-z]+|[A-Z]")  # of a text, and of a dictionary as it prints


@dataclasses.dataclass(frozen=True)
class FamilyLeak:
    """A mechanism on the inputs 1 and 0 that has exactly this loss (in nats) inside an event of exactly this mass.

    Its kind says what outputs are: number, integer, row, booleans, text, object.

    >>> leak = family(seed=1, count=1)[0].with_loss(1.0, 0.1)
    >>> outputs = leak.sample(1, 1_000, np.random.default_rng(0))
    >>> len(outputs), sorted(set(leak.where(outputs).tolist()))
    (1000, [0, 1, 2])
    """

    name: str
    kind: str
    form: str
    loss: float
    mass: float
    background: Draw = dataclasses.field(repr=False)
    score: Score = dataclasses.field(repr=False)
    write: Callable[[FloatArray], Any] = dataclasses.field(repr=False)  # rows of the background to outputs
    read: Callable[[Any], FloatArray] = dataclasses.field(repr=False)  # outputs to rows, right where the score looks

    def with_loss(self, loss: float, mass: float) -> FamilyLeak:
        """The same leak with a loss of at least 0 and a mass in (0, 1); its tails grow with the mass."""
        return dataclasses.replace(self, loss=loss, mass=mass)

    @functools.cached_property
    def cuts(self) -> tuple[float, float]:
        """Scores below which B lies, and above which A lies; A, B and the outside are never empty."""
        scores = self.score(self.background(CUT_DRAWS, np.random.default_rng(0)))
        found, counts = np.unique(scores, return_counts=True)
        half, inner = len(scores) * self.mass / 2.0, found[1:-1]
        below, above = counts.cumsum()[:-2], counts[::-1].cumsum()[::-1][2:]  # draws beyond each inner score
        low, high = (inner[np.abs(np.log(tail / half)).argmin()] for tail in (below, above))
        return float(low), float(max(low, high))

    def places(self, rows: FloatArray) -> NDArray[np.intp]:
        """OUTSIDE, IN_A or IN_B for each row of the background."""
        scores, (low, high) = self.score(rows), self.cuts
        return np.where(scores > high, IN_A, np.where(scores < low, IN_B, OUTSIDE))

    def where(self, outputs: Any) -> NDArray[np.intp]:
        """OUTSIDE, IN_A or IN_B for each output, from the outputs alone."""
        return self.places(self.read(outputs))

    def sample(self, data: int, size: int, rng: RNG) -> Any:
        """Outputs on input 1 or 0: an array, batch axis first, or a list of texts or dictionaries."""
        is_right = rng.random(size) < scipy.special.expit(self.loss)
        side = np.where(is_right == bool(data), IN_A, IN_B)
        wanted = np.where(rng.random(size) < self.mass, side, OUTSIDE)
        rows = self.background(size, rng)
        found = self.places(rows)
        waiting = [np.flatnonzero((wanted == place) & (found != place)) for place in (OUTSIDE, IN_A, IN_B)]
        while any(map(len, waiting)):
            pool = self.background(max(size, MIN_POOL), rng)
            found = self.places(pool)
            for place, targets in enumerate(waiting):
                fits = np.flatnonzero(found == place)[: len(targets)]
                rows[targets[: len(fits)]] = pool[fits]
                waiting[place] = targets[len(fits) :]
        return self.write(rows)


def tokens(rng: RNG, width: int, categories: int) -> traits.Trait:
    """One or two words against others, at one place or anywhere."""
    several, place = int(rng.integers(1, 3)) if categories > 4 else 1, int(rng.integers(width))
    a, b = rng.permutation(categories)[: 2 * several].reshape(2, several)
    is_anywhere = bool(width > 1 and rng.random() < 0.5)
    at = slice(width) if is_anywhere else slice(place, place + 1)
    words = f"{several} against {several} of {categories} choices, {'anywhere' if is_anywhere else f'at place {place}'}"
    return words, lambda x: 1.0 * np.isin(x[:, at], a).any(axis=1) - np.isin(x[:, at], b).any(axis=1), KEEP


def field_of(rng: RNG, sort: str) -> tuple[Draw, int, int, list[str]]:
    """Background, width, decimals and words of a field: a number, numbers, a word, a key, words, or letters."""
    width = 1 if sort in ("number", "word", "key") else int(rng.integers(3, 7))
    if sort.startswith("number"):
        decimals = int(rng.choice((0, 0, 1, 2, 3, 4)))
        draw = traits.columns(rng, NUMBERS if decimals else COUNTS, width)[1]
        known = np.sort(np.round(draw(500, rng), decimals), axis=0)
        if decimals and (np.diff(known, axis=0) > 0.0).sum(axis=0).min() < 30:  # rounding leaves too few values
            return field_of(rng, sort)
        return lambda n, r: np.round(draw(n, r), decimals), width, decimals, []
    words = rng.permutation(LETTERS if sort == "letters" else WORDS)[: rng.integers(3, 13)].tolist()
    rates = (1.0 + np.arange(len(words))) ** -rng.choice((0.0, 0.7))
    return lambda n, r: r.choice(len(words), (n, width), p=rates / rates.sum()) + 0.0, width, 0, words


def document(rng: RNG, form: str, kind: str) -> tuple[str, Draw, Score, Any, Any]:
    """Texts or dictionaries of two to five fields, the first of which leaks; fields stand in any order."""
    sorts = [str(rng.choice(("word", "key", "words", "letters") if form == "token" else ("number", "numbers")))]
    sorts += rng.choice(("number", "numbers", "word", "letters"), rng.integers(1, 5)).tolist()
    fields, keys = [field_of(rng, sort) for sort in sorts], rng.permutation(KEYS).tolist()
    order, style = rng.permutation(len(fields)).tolist(), STYLES[rng.integers(len(STYLES))]
    (draw, width, decimals, words), place = fields[0], int(rng.integers(fields[0][1]))
    at = slice(width) if words else slice(place, place + 1)
    makers = list(COLUMN_TRAITS.values())
    trait = tokens(rng, width, len(words)) if words else makers[rng.integers(3)](rng, draw(500, rng)[:, at])
    whole: Draw = lambda n, r: np.concatenate([each[0](n, r) for each in fields], axis=1)  # noqa: E731
    first = sum(fields[k][1] + 1 for k in order[: order.index(0)]) + (sorts[0] != "key")  # of its tokens in an output

    def pairs(k: int, rows: FloatArray) -> list[tuple[str, Any]]:
        start, (_, width, decimals, words) = sum(each[1] for each in fields[:k]), fields[k]
        table: list[list[Any]] = (rows if decimals else rows.astype(int))[:, start : start + width].tolist()
        if not words:
            return [(keys[k], row if width > 1 else row[0]) for row in table]
        texts = [("" if sorts[k] == "letters" else "+").join([words[i] for i in row]) for row in table]
        return [(text, 1) if sorts[k] == "key" else (keys[k], text) for text in texts]

    def write(rows: FloatArray) -> list[Any]:
        outputs = list(zip(*[pairs(k, rows) for k in order], strict=True))
        if kind == "object":
            return list(map(dict, outputs))
        return [style[1].join([f"{key}{style[0]}{value}" for key, value in output]) for output in outputs]

    def read(outputs: Any) -> Any:
        found = [TOKEN.findall(str(output))[first : first + width] for output in outputs]
        return np.array([list(map(words.index, row)) for row in found] if words else found, dtype=float)

    return f"{trait[0]}, in the {sorts[0]} of {kind}s", *traits.marked(whole, trait, at, decimals), write, read


def leak(form: str, rng: RNG) -> FamilyLeak:
    """A leak of this form, drawn at random."""
    loss, mass = rng.uniform(0.5, 3.0), rng.uniform(0.02, 0.3)
    if form in ("token", "number inside"):
        kind = str(rng.choice(("text", "object")))
        name, background, score, write, read = document(rng, form, kind)
        return FamilyLeak(name, kind, form, loss, mass, background, score, write, read)
    laws = HOSTS[form][rng.integers(len(HOSTS[form]))]
    is_single = form in COLUMN_TRAITS and laws in (NUMBERS, COUNTS) and rng.random() < 0.7
    width = 1 if is_single else int(rng.integers({"direction": 8, "one level": 2, "intervals": 2}.get(form, 4), 31))
    kind = ("number" if laws is NUMBERS else "integer") if is_single else "booleans" if laws is BITS else "row"
    if form in COLUMN_TRAITS:
        place = int(rng.integers(width))
        is_whole = form == "single values" and not is_single and (laws in (ANSWERS, BITS) or rng.random() < 0.5)
        at = slice(width) if is_whole else slice(place, place + 1)
        words, draw, _ = traits.columns(rng, laws, width)
        trait = COLUMN_TRAITS[form](rng, draw(500, rng)[:, at])
        name = f"{trait[0]} in {'rows' if is_whole else f'column {place}'} of {width} ({words})"
        background, score = traits.marked(draw, trait, at)
    else:
        name, background, score = traits.together(rng, form, laws, width)
    dtype = bool if laws is BITS else float if "normal" in laws else np.int64

    def write_array(rows: FloatArray) -> Any:
        return (rows[:, 0] if is_single else rows).astype(dtype)

    def read_array(outputs: Any) -> FloatArray:
        return np.asarray(outputs, dtype=float).reshape(len(outputs), -1)

    return FamilyLeak(name, kind, form, loss, mass, background, score, write_array, read_array)


def family(seed: int, count: int = 40) -> list[FamilyLeak]:
    """Leaks of a seed, the eight forms in turn; fewer leaks are the first of more.

    >>> family(seed=1, count=8)[7].form
    'number inside'
    """
    return [leak(FORMS[k % len(FORMS)], np.random.default_rng((seed, k))) for k in range(count)]
