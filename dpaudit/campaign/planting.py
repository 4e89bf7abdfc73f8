"""Planting: leaks of a known loss, put into outputs that an audit has seen, and looked for again.

A plant takes outputs of both inputs together, as one law. An *event* of a stated mass is a random function of a single
output: cells of a random view of these very outputs, a half of them A and the other half B. Inside A a label is 1 with
the odds e^loss, inside B it is 0 with these odds, and elsewhere it is a fair coin. Outputs with label 1 play the part
of x, the others that of x_prime, and the same schedule, fits and test look for the leak as in the audit. No run of the
mechanism is needed.

Validity
--------
* **Nothing is refuted by a plant.** Plants read outputs that were released, and coins of streams of their own, after
  all that "violated" and bounds rest on was fixed. They decide between "not refuted" and "inconclusive" alone.
* **What the figure is.** Given the outputs, the plants of a cell are independent: an event, labels and an order for
  each. So how many of them are found is binomial, with the mean over events of this form of the probability that an
  audit of so many draws finds one, where outputs are as those that were seen. Of intervals and of two columns together
  events have many cells: of fewer, more is found. It is no bound for an event that somebody chose, nor for one of
  another form.
* **The loss.** A and B have the same mass where cells allow it. Else the lighter has the loss, and the heavier what
  keeps both laws' masses at 1: the loss is never larger than what is stated.
* **The mass.** An event is of whole cells. Of some that are made at random the first is planted whose halves have both
  the mass that they should have up to a factor of 1.5, else the nearest that is rarer. An event that is far rarer, or
  of which one half is far heavier and so hardly has a loss, would be found less than a leak of this mass. A coin has no
  event of .1, and the coin is planted: of these events none was rarer.
* **Draws.** No output is used twice within a plant. The parts of x and of x_prime are hardly ever of one size, and the
  coins of a game may ask for more of one: so a game is of 5 standard deviations fewer draws than there are outputs (2%
  of 40,000). Where coins ask for more than that (one game in a million), the first ones are used again.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.features.outcomes import Outcomes
from dpaudit.features.reader import Reader
from dpaudit.inference.tasks import Draw, Task, TaskResult
from dpaudit.privacy.claims import Claim, FloatArray

Columns = Sequence[FloatArray]  # the values that outputs have in each column, shape (draws,)
Cells = NDArray[np.int64]  # the cell of each output; below 0 where it can be in no event
WORD = re.compile(r"[^\W\d_]+")
Event = NDArray[np.int8]  # the side of each output: 1 in A, -1 in B, 0 elsewhere


@dataclasses.dataclass(frozen=True)
class PlantSizes:
    """Sizes of events."""

    pieces: tuple[int, ...] = (16, 6, 2)  # intervals of each half of an event: the more there are, the less is found
    bins: tuple[int, ...] = (4, 2)  # of either column of an event of two; the first of which an event has the mass
    together: tuple[int, ...] = (3, 4)  # columns of an event of several
    words: tuple[int, ...] = (2, 4)  # of an event
    usual: int = 200  # words that events are of, the most frequent
    least_word: float = 0.025  # of the outputs, which have such a word: half of a half of an event of .1
    alone: float = 0.5  # of an event of several columns, by which one of its halves may be heavier in a column's bins
    finer: int = 6  # times that bins are halved, where columns of few values stand beside others
    tries: int = 32  # events that are made until one has the mass that it is asked for: few pairs of words have
    rounding: float = 1.5  # of the mass of a half, by which whole cells may be off
    levels: int = 4_096  # cells of an order, of which the ends are an event
    many_values: int = 40  # from so many on a column has intervals
    least_value: float = 1 / 16  # of a half: a value that recurs less often is in no event
    frequent: float = 0.003  # of the draws, which two values of a column of single values have: so much of half of .1
    features: int = 8  # cosines of a view of random features, of two columns each
    far: float = 100.0  # quartiles' distances from the median at which numbers are cut, for sums of columns
    spare: float = 5.0  # standard deviations of what coins may ask for


SIZES = PlantSizes()


def sides_of(cells: Cells, mass: float, rng: np.random.Generator, *, in_order: bool = False) -> Event:
    """An event of whole cells, each half of half the mass as nearly as these allow.

    Cells are taken at random, or (`in_order`) from both ends. Where all are larger than a half, as those of a coin are,
    the smallest two are the event: there is no rarer one.
    """
    _, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    want, left = 0.5 * mass * len(cells), np.flatnonzero(np.unique(cells) >= 0)
    if not in_order:
        small = left[counts[left] <= 1.5 * want]
        left = rng.permutation(small) if len(small) > 1 else left[np.argsort(counts[left], kind="stable")][:2]
    sides, got = np.zeros(len(counts), dtype=np.int8), {1: 0, -1: 0}
    cells_left, growing = deque(left.tolist()), [1, -1]
    while cells_left and growing:
        side = min(growing, key=got.__getitem__)
        k = cells_left[0 if side == 1 else -1]
        if got[side] and got[side] + 0.5 * counts[k] > want:
            growing.remove(side)
            continue
        cells_left.remove(k)
        sides[k], got[side] = side, got[side] + int(counts[k])
    return np.asarray(sides[place] * rng.choice([-1, 1]), dtype=np.int8)


def _bins(values: FloatArray, count: int) -> Cells:
    """Cells of about equal mass in the order of values; equal values, and missing ones, are in one cell."""
    first = np.searchsorted(np.sort(values), values, side="left")
    cells = np.asarray(first * count // len(values), dtype=np.int64)
    return cells if np.any(cells != cells[0]) else np.asarray(first > first.min(), dtype=np.int64)


def _values(values: FloatArray, mass: float) -> Cells:
    """A cell for each value that recurs; the others can be in no event."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    recurs = counts >= max(2.0, 0.5 * mass * SIZES.least_value * len(values))
    return np.asarray(np.where(recurs[place], place, -1), dtype=np.int64)


def _together(columns: Columns, mass: float, rng: np.random.Generator, counts: Sequence[int] = (2,)) -> Event:
    """An event that no column tells alone: of so many bins of each column, whether those of the second half are met an
    even number of times. Beside columns of few values others have finer bins, so that the event is as rare as asked.
    """
    width = mass ** (1.0 / len(columns))
    events = (
        _of_bins([_bins(values, round(count / width) << finer) for values in columns], count, rng)
        for count in counts
        for finer in range(SIZES.finer)
    )
    return _nearest(events, mass)


def _of_bins(bins: Sequence[Cells], count: int, rng: np.random.Generator) -> Event:
    """An event of so many bins of each column; none where a column tells it alone, as of one that is there twice."""
    sides = np.ones(len(bins[0]), dtype=np.int8)
    for own in bins:
        cells = rng.permutation(np.unique(own))
        half = min(count, len(cells)) // 2
        sides *= np.isin(own, cells[:half]) - np.isin(own, cells[half : 2 * half]).astype(np.int8)
    told = (np.abs(np.bincount(own, weights=sides)).sum() for own in bins)
    return sides if max(told) <= SIZES.alone * np.count_nonzero(sides) else np.zeros_like(sides)


def misfit(sides: Event, mass: float) -> float:
    """The factor by which a half of an event is lighter or heavier than half of a mass; inf where one is empty."""
    shares = [2.0 * float(np.mean(sides == side)) / mass for side in (1, -1)]
    return max(max(share, 1.0 / share) if share else math.inf for share in shares)


def _nearest(events: Iterable[Event], mass: float) -> Event:
    """The first event of about the mass that it is asked for, else the nearest; a heavier one only if none is rarer."""
    made = []
    for sides in events:
        made.append((misfit(sides, mass), sides))
        if made[-1][0] <= SIZES.rounding:
            break

    def rank(one: tuple[float, Event]) -> tuple[bool, bool, float]:
        lighter = 2.0 * min(float(np.mean(one[1] == side)) for side in (1, -1))
        return math.isinf(one[0]), lighter > SIZES.rounding * mass, one[0]

    return min(made, key=rank)[1]


def _scaled(columns: Columns) -> FloatArray:
    """Columns less their medians over the distances of their quartiles, shape (draws, columns); missing ones are 0."""
    scaled = []
    for values in columns:
        known = values[np.isfinite(values)]
        low, middle, high = np.quantile(known, [0.25, 0.5, 0.75]) if len(known) else (0.0, 0.0, 0.0)
        far = np.clip((values - middle) / (high - low or 1.0), -SIZES.far, SIZES.far)
        scaled.append(np.nan_to_num(far))
    return np.stack(scaled, axis=1)


def _some(columns: Columns, count: int, rng: np.random.Generator) -> list[FloatArray]:
    return [columns[k] for k in rng.permutation(len(columns))[:count].tolist()]


def _ends(values: FloatArray, mass: float, rng: np.random.Generator) -> Event:
    return sides_of(_bins(values, SIZES.levels), mass, rng, in_order=True)


def _level(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    return _ends(_some(columns, 1, rng)[0], mass, rng)


def _intervals(columns: Columns, mass: float, rng: np.random.Generator, pieces: int = SIZES.pieces[0]) -> Event:
    return sides_of(_bins(_some(columns, 1, rng)[0], math.ceil(2 * pieces / mass)), mass, rng)


def _single_values(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    return sides_of(_values(_some(columns, 1, rng)[0], mass), mass, rng)


def _two(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    return _together(_some(columns, 2, rng), mass, rng, SIZES.bins)


def _several(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    return _together(_some(columns, int(rng.choice(SIZES.together)), rng), mass, rng)


def _words(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    """One or two words against as many others."""
    some = _some(columns, int(rng.choice(SIZES.words)), rng)
    half = len(some) // 2
    return _ends(np.sum(some[:half], axis=0) - np.sum(some[half : 2 * half], axis=0), mass, rng)


def _direction(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    return _ends(_scaled(columns) @ rng.normal(size=len(columns)), mass, rng)


def _features(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    total = np.zeros(len(columns[0]))
    for _ in range(SIZES.features):
        own = _scaled(_some(columns, 2, rng))
        total += rng.normal() * np.cos(own @ rng.normal(size=own.shape[1]) + 2.0 * math.pi * rng.random())
    return _ends(total, mass, rng)


def _counts_of_words(tokens: Sequence[str]) -> Iterator[FloatArray]:
    """Counts by text of each usual word, of those that neither all nor hardly any have."""
    of_texts = [Counter(WORD.findall(token)) for token in tokens]
    held = Counter(word for counts in of_texts for word in counts)
    for word, count in sorted(held.items(), key=lambda item: (-item[1], item[0])):
        if SIZES.least_word * len(tokens) <= count < len(tokens):
            yield np.array([counts[word] for counts in of_texts], dtype=float)


def _varies(values: FloatArray) -> bool:
    return bool(np.any((values != values[0]) & ~(np.isnan(values) & np.isnan(values[0]))))


def _has_many(values: FloatArray) -> bool:
    return len(np.unique(values)) >= SIZES.many_values


def _recurs(values: FloatArray) -> bool:
    counts = np.unique(values, return_counts=True)[1]
    return bool((counts >= SIZES.frequent * len(values)).sum() >= 2)


@dataclasses.dataclass(frozen=True)
class PlantedForm:
    """A form of events."""

    name: str  # as reports print it
    make: Callable[[Columns, float, np.random.Generator], Event]  # a random event of so much mass, of suited columns
    suits: Callable[[FloatArray], bool] = _varies  # whether a column may be of such an event
    least: int = 1  # columns that such an event needs
    of_words: bool = False  # whether such an event is of the words that objects print
    is_expected: bool = True  # readers expect that such an event is found, so "not refuted" rests on it


FORMS = (
    PlantedForm("one level", _level),
    PlantedForm("intervals", _intervals, _has_many),
    PlantedForm("single values", _single_values, _recurs),
    PlantedForm("a token", _words, least=2, of_words=True),
    PlantedForm("two columns together", _two, least=2),
    PlantedForm("some intervals", functools.partial(_intervals, pieces=SIZES.pieces[1]), _has_many, is_expected=False),
    PlantedForm("few intervals", functools.partial(_intervals, pieces=SIZES.pieces[2]), _has_many, is_expected=False),
    PlantedForm("several columns together", _several, least=3, is_expected=False),
    PlantedForm("a direction", _direction, least=2, is_expected=False),
    PlantedForm("random features", _features, is_expected=False),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """Outputs of both inputs as they were read: what events are made of, and what plants are played on."""

    outcomes: Outcomes  # as they are drawn again: arrays of numbers as they came, others as the columns read of them
    columns: tuple[FloatArray, ...]  # the values of each column that varies
    words: tuple[FloatArray, ...]  # how often outputs that are objects print each of their usual words

    @classmethod
    def of(cls, sides: Sequence[Outcomes]) -> Seen:
        """Read outcomes of both inputs."""
        reader = Reader.learn(sides)
        matrix = np.concatenate([reader.read(side) for side in sides])
        columns = tuple(np.ascontiguousarray(values) for values in matrix.T if _varies(values))
        if not reader.columns:
            texts = np.concatenate([np.asarray(side.as_objects().tokens) for side in sides]).tolist()
            words = tuple(islice(_counts_of_words(texts), SIZES.usual))
            return cls(Outcomes(matrix, None, (matrix.shape[1],)), columns, words)
        whole = all(side.is_integer for side in sides)
        return cls(Outcomes(matrix, None, sides[0].shape, whole), columns, ())

    @functools.cached_property
    def suited(self) -> dict[PlantedForm, Columns]:
        """The columns that an event may be of, by the forms of which these outputs have events."""
        found = {form: self._suited(form) for form in FORMS}
        return {form: columns for form, columns in found.items() if len(columns) >= form.least}

    def event(self, form: PlantedForm, mass: float, rng: np.random.Generator) -> Event:
        """A random event of this form of about this mass; where there is no such one, the nearest of some, or none."""
        columns = self.suited[form]
        return _nearest((form.make(columns, mass, rng) for _ in range(SIZES.tries)), mass)

    def _suited(self, form: PlantedForm) -> Columns:
        return self.words if form.of_words else [values for values in self.columns if form.suits(values)]


@dataclasses.dataclass(frozen=True)
class Planting:
    """A game that looks for plants: outputs that were seen, the pair's claim and level, and the audit's mode."""

    seen: Seen
    claim: Claim
    level: float
    mode: Mode

    @property
    def labelled(self) -> int:
        """Labelled draws of a plant's game, about."""
        return 2 * _samples(len(self.seen.outcomes) // 2)

    def is_found(self, form: PlantedForm, mass: float, loss: float, rng: np.random.Generator) -> bool:
        """Plant one leak at random, and look for it."""
        sides = self.seen.event(form, mass, rng)
        outcomes = self.seen.outcomes
        labels = rng.random(len(sides)) < _tilted(sides, loss)
        order = rng.permutation(len(sides))
        parts = [order[labels[order] == label] for label in (True, False)]
        numbers = [outcomes.numbers[part] for part in parts]
        samples = _samples(min(map(len, parts)))
        if samples < 2:
            return False
        game = LabelGame(
            [self.claim],
            [(0, 1)],
            samples=samples,
            error_rate=self.level,
            mode=self.mode,
            draw=_replayed([Outcomes(own, None, outcomes.shape, outcomes.is_integer) for own in numbers]),
            coin=lambda *_: rng,
            is_coarse=True,
        )
        game.start()
        while game.round():
            pass
        game.pairs[0].finish()
        return game.pairs[0].is_violated


def _samples(size: int) -> int:
    """The samples of a game that has so many outputs of either part."""
    return max(int(size - SIZES.spare * math.sqrt(0.5 * size)), 0)


def _tilted(sides: Event, loss: float) -> FloatArray:
    """The probability of label 1 of each output: both laws sum to 1, and the loss is nowhere larger."""
    of_a, of_b = int((sides == 1).sum()), int((sides == -1).sum())
    lighter, heavier = (1, -1) if of_a <= of_b else (-1, 1)
    few, many = sorted((of_a, of_b))
    right = float(scipy.special.expit(loss if lighter == 1 else -loss))
    # Of the lighter half a share `right` has label 1, so the heavier one has what makes labels even over both.
    other = 0.5 + (0.5 - right) * few / many if many else 0.5
    return np.where(sides == lighter, right, np.where(sides == heavier, other, 0.5))


def _replayed(outcomes: Sequence[Outcomes]) -> Draw:
    """Carries out tasks with outcomes that are there: the `draw` of a game."""
    taken = [0, 0]

    def carried_out(task: Task) -> TaskResult:
        own = outcomes[task.input]
        start = taken[task.input] % (len(own) - task.size + 1)
        taken[task.input] = start + task.size
        return task.counted(own.rows(slice(start, start + task.size)))

    return lambda tasks: list(map(carried_out, tasks))
