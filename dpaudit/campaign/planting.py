"""Planting: leaks of a known loss, put into outputs that an audit has seen, and looked for again.

A plant takes outputs of both inputs together, as one law. An *event* of a stated mass is a random function of a single
output: cells of a random view of these very outputs, a half of them A and the other half B. Inside A a label is 1 with
the odds e^loss, inside B it is 0 with these odds, and elsewhere it says which input the output is of: what the claim
allows to differ there, and may hide a leak, differs in a plant too. Outputs with label 1 play the part of x, the others
that of x_prime, and the same schedule, fits and test look for the leak as in the audit. No run of the mechanism is
needed.

Validity
--------
* **Nothing is refuted by a plant.** Plants read outputs that were released, and coins of streams of their own, after
  all that "violated" and bounds rest on was fixed. They decide between "not refuted" and "inconclusive" alone.
* **What the figure is.** Given the outputs, the plants of a cell are independent: an event, labels and an order for
  each. So how many of them are found is binomial, with the mean over events of this form of the probability that an
  audit of so many draws finds one, where outputs are as those that were seen. Of intervals and of two columns together
  events have many cells: of fewer, more is found. It is no bound for an event that somebody chose, nor for one of
  another form. What all plants share, the labels elsewhere, are those of one audit: in others more is found, or less.
* **The mass.** An event is of whole cells, and so seldom has the mass that it is asked for, or even halves. Outputs in
  its halves are left out at random, up to a fifth of all, until both have half of the mass: the plant is a leak of
  outputs in which these cells are rarer. Where that is not enough, as of a coin, of some events that are made at random
  the nearest is planted, by its mass and by how even its halves are, and its mass is stated in the place of the other.
* **The loss.** Where outputs that are left out do not suffice to make A and B even, the lighter has the loss, and the
  heavier what keeps both laws' masses at 1, or as near to that as the loss allows: where labels inside of the event are
  not even, too. The loss is never larger than what is stated. The mass that is stated is twice that of the lighter.
* **Draws.** No output is used twice within a plant. The parts of x and of x_prime are hardly ever of one size, and the
  coins of a game may ask for more of one: so a game is of 5 standard deviations fewer draws than there are outputs (2%
  of 40,000). Where coins ask for more than that (one game in a million), the first ones are used again.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.campaign.label_game import LabelGame
from dpaudit.campaign.schedules import Mode
from dpaudit.features.outcomes import Outcomes
from dpaudit.features.reader import Reader
from dpaudit.inference.tasks import Drawer, Task, TaskResult
from dpaudit.privacy.claims import Claim, FloatArray

Cells = NDArray[np.int64]  # a cell for each value of a column; below 0 where it can be in no event
WORD = re.compile(r"[^\W\d_]+")
Event = NDArray[np.int8]  # the half of each output: 1 in A, -1 in B, 0 elsewhere; `LEFT_OUT` where no plant has it
LEFT_OUT = 2  # neither of the signs of the halves nor 0


@dataclasses.dataclass(frozen=True)
class PlantSizes:
    """Sizes of events."""

    pieces: tuple[int, ...] = (16, 6, 2)  # intervals of each half of an event; 6 is about sqrt(16 * 2)
    bins: tuple[int, ...] = (4, 2)  # of either column of an event of two; the first of which an event has the mass
    together: tuple[int, ...] = (3, 4)  # columns of an event of several
    words: tuple[int, ...] = (2, 4)  # of an event
    usual: int = 200  # words that events are of, the most frequent
    # Of an event of several columns, by which one of its halves may be heavier in a column's bins. With .25 hardly any
    # event is left of two columns of correlation .9, and 4 of 20 plants are found in the place of 12 (with 1: 13).
    alone: float = 0.5
    finer: int = 6  # times that bins are halved, where columns of few values stand beside others
    tries: int = 32  # events that are made until one has the mass that it is asked for: few pairs of words have
    left_out: float = 0.2  # of the outputs, at most: what fewer draws find is a tenth farther above the claim
    near: float = 1.05  # of the mass that is asked for, by which that of an event may be off
    levels: int = 4_096  # cells of an order, of which the ends are an event
    many_values: int = 40  # from so many on a column has intervals
    least_value: float = 1 / 16  # of a half: a value that recurs less often is in no event
    mass: float = 0.1  # of an event for which values and words have to be frequent enough: of words half of a half
    features: int = 8  # cosines of a view of random features
    far: float = 100.0  # quartiles' distances from the median at which numbers are cut, for sums of columns
    spare: float = 5.0  # standard deviations of what coins may ask for


SIZES = PlantSizes()


class Column(NamedTuple):
    """One number of each output, and its distinct values in their order, of which missing ones are the last."""

    values: FloatArray  # shape (draws,)
    places: NDArray[np.intp]  # of each output among the distinct values
    counts: NDArray[np.intp]  # of each distinct value
    below: NDArray[np.intp]  # outputs with smaller values, by distinct value
    field: str = ""  # in which a word stands

    @classmethod
    def of(cls, values: FloatArray) -> Column:
        """The column of these values."""
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        return cls(values, places, counts, np.cumsum(counts) - counts)

    def bins(self, count: int) -> Cells:
        """Cells of about equal mass in the order of values; a value is in one cell."""
        cells = np.asarray(self.below * count // len(self.values), dtype=np.int64)
        return cells if np.any(cells != cells[0]) else np.minimum(np.arange(len(cells)), 1)

    def recurring(self, mass: float) -> Cells:
        """A cell for each value that recurs; the others can be in no event."""
        least = max(2.0, 0.5 * mass * SIZES.least_value * len(self.values))
        return np.where(self.counts >= least, np.arange(len(self.counts)), -1)

    def event(self, cells: Cells, mass: float, rng: np.random.Generator | None = None) -> Event:
        """An event of whole cells, each half about half of the mass: from both ends, or of cells in a random order."""
        known = np.unique(cells[cells >= 0])
        order = known if rng is None else rng.permutation(known)
        masses = np.bincount(cells[cells >= 0], self.counts[cells >= 0], minlength=1)[order] / len(self.values)
        first = _reach(masses, 0.5 * mass)
        last = _reach(masses[first:][::-1], 0.5 * mass)
        event = np.zeros(len(cells), dtype=np.int8)
        event[np.isin(cells, order[:first])] = 1
        event[np.isin(cells, order[len(order) - last :])] = -1
        return event[self.places] if first and last else np.zeros(len(self.values), dtype=np.int8)


Columns = Sequence[Column]


def _reach(masses: FloatArray, mass: float) -> int:
    """The number of cells whose sum is nearest to a mass, in ratio; at least one, where there is any."""
    sums = np.cumsum(masses)
    return int(np.argmin(np.abs(np.log(sums / mass)))) + 1 if len(sums) else 0


def _together(columns: Columns, mass: float, rng: np.random.Generator, counts: Sequence[int] = (2,)) -> Event:
    """An event that no column tells alone: of so many bins of each column, whether those of the second half are met an
    even number of times. Beside columns of few values others have finer bins, so that the event is as rare as asked.
    """
    return _nearest((_of_bins(bins, columns, count, rng) for count, bins in _grids(columns, mass, counts)), mass)


def _grids(columns: Columns, mass: float, counts: Sequence[int]) -> Iterator[tuple[int, list[Cells]]]:
    """Bins of each column, ever finer ones until they are single values, of so many of which an event is made."""
    width = mass ** (1.0 / len(columns))
    for count in counts:
        for finer in range(SIZES.finer):
            bins = [own.bins(max(int(count / width), count + 1) << finer) for own in columns]
            yield count, bins
            if all(len(np.unique(cells)) == len(cells) for cells in bins):
                break


def _of_bins(bins: Sequence[Cells], columns: Columns, count: int, rng: np.random.Generator) -> Event:
    """An event of so many bins of each column; none where a column tells it alone, as of one that is there twice."""
    event = np.ones(len(columns[0].values), dtype=np.int8)
    for own, cells in zip(columns, bins, strict=True):
        order = rng.permutation(np.unique(cells))
        half = min(count, len(order)) // 2
        met = np.isin(cells, order[:half]).astype(np.int8) - np.isin(cells, order[half : 2 * half])
        event *= met[own.places]
    excess = (np.abs(np.bincount(cells[own.places], event)).sum() for own, cells in zip(columns, bins, strict=True))
    return event if max(excess) <= SIZES.alone * np.count_nonzero(event) else np.zeros_like(event)


def _kept(event: Event, mass: float) -> tuple[int, int]:
    """Outputs of the lighter and of the heavier half that stay, so that each has half of the mass, or is as near to it
    as it comes where no more than `SIZES.left_out` of all are left out.
    """
    few, many = sorted(int(np.count_nonzero(event == side)) for side in (1, -1))
    outside, least = len(event) - few - many, (1.0 - SIZES.left_out) * len(event)
    wanted = max(outside * mass / max(1.0 - mass, 1e-9), least - outside) if outside else len(event)
    of_few = min(few, math.ceil(0.5 * wanted))
    return of_few, min(many, math.ceil(max(of_few, least - outside - of_few)))


def thinned(event: Event, mass: float, rng: np.random.Generator) -> Event:
    """The event with outputs of its halves left out at random, see `_kept`."""
    halves = sorted((np.flatnonzero(event == half) for half in (1, -1)), key=len)
    event = event.copy()
    for half, kept in zip(halves, _kept(event, mass), strict=True):
        event[rng.permutation(half)[kept:]] = LEFT_OUT
    return event


def mass_of(event: Event) -> float:
    """The mass of an event that is thinned: twice that of its lighter half."""
    return 2.0 * min(np.count_nonzero(event == half) for half in (1, -1)) / np.count_nonzero(event != LEFT_OUT)


def _nearest(events: Iterable[Event], mass: float) -> Event:
    """The first event that has the mass that it is asked for and even halves, once it is thinned; else the nearest.

    A lighter half that has not half of the mass counts by the logarithm of that ratio, and so does a heavier half over
    the lighter one, which has less than the loss.
    """
    best, least = None, math.inf
    for event in events:
        few, many = _kept(event, mass)
        had = 2.0 * few / (few + many + np.count_nonzero(event == 0)) if few else 0.0
        misfit = abs(math.log(had / mass)) + math.log(many / few) if had else math.inf
        if best is None or misfit < least:
            best, least = event, misfit
        if least <= math.log(SIZES.near):
            break
    assert best is not None
    return best


def _scaled(columns: Columns) -> FloatArray:
    """Columns less their medians over the distances of their quartiles, shape (draws, columns); missing ones are 0."""
    scaled = []
    for values, *_ in columns:
        known = values[np.isfinite(values)]
        low, middle, high = np.quantile(known, [0.25, 0.5, 0.75]) if len(known) else (0.0, 0.0, 0.0)
        far = np.clip((values - middle) / (high - low or 1.0), -SIZES.far, SIZES.far)
        scaled.append(np.nan_to_num(far))
    return np.stack(scaled, axis=1)


def _ends(values: FloatArray, mass: float) -> Event:
    column = Column.of(values)
    return column.event(column.bins(SIZES.levels), mass)


def _intervals(columns: Columns, mass: float, rng: np.random.Generator, pieces: int = SIZES.pieces[0]) -> Event:
    return columns[0].event(columns[0].bins(math.ceil(2 * pieces / mass)), mass, rng)


def _words(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    """One or two words that are there, and none of as many others, against these; all of the field of the first."""
    has = np.stack([own.values for own in columns if own.field == columns[0].field][: int(rng.choice(SIZES.words))])
    first, second = (np.any(own > 0.0, axis=0) for own in np.array_split(has, 2))
    return np.asarray(np.subtract(first, second, dtype=np.int8))


def _direction(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    return _ends(_scaled(columns) @ rng.normal(size=len(columns)), mass)


def _features(columns: Columns, mass: float, rng: np.random.Generator) -> Event:
    own, total = _scaled(columns), np.zeros(len(columns[0].values))
    for _ in range(SIZES.features):
        total += rng.normal() * np.cos(own @ rng.normal(size=own.shape[1]) + 2.0 * math.pi * rng.random())
    return _ends(total, mass)


def _words_of(tokens: Sequence[str]) -> Iterator[Column]:
    """Presence in each text of a usual word in a field, by word, of those that more than hardly any have.

    A field is what stands behind a word that all texts have, as the name of a number or a key of a mapping.
    """
    texts = list(map(WORD.findall, tokens))
    names = set(texts[0]).intersection(*texts[1:]) if texts else set()
    of_texts = [{(name, word) for name, word in _fields(text, names) if word not in names} for text in texts]
    held = Counter(itertools.chain.from_iterable(of_texts))
    for key, count in sorted(held.items(), key=lambda item: (-item[1], item[0])):
        if count >= 0.25 * SIZES.mass * len(tokens):
            yield Column.of(np.array([key in words for words in of_texts], dtype=float))._replace(field=key[0])


def _fields(words: Sequence[str], names: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each word, with the last name before it."""
    name = ""
    for word in words:
        name = word if word in names else name
        yield name, word


def _varies(column: Column) -> bool:
    return len(column.counts) > 1


def _has_many(column: Column) -> bool:
    return len(column.counts) >= SIZES.many_values


def _recurs(column: Column) -> bool:
    return bool(np.count_nonzero(column.recurring(SIZES.mass) >= 0) >= 2)


@dataclasses.dataclass(frozen=True)
class PlantedForm:
    """A form of events."""

    name: str  # as reports print it
    make: Callable[[Columns, float, np.random.Generator], Event]  # a random event of so much mass, of suited columns
    suits: Callable[[Column], bool] = _varies  # whether a column may be of such an event
    of: tuple[int, ...] = (1,)  # numbers of columns, of which an event has one; none for all columns, two at least
    of_words: bool = False  # whether such an event is of the words that objects print
    is_expected: bool = True  # readers expect that such an event is found, so "not refuted" rests on it


FORMS = (
    PlantedForm("one level", lambda own, mass, _: own[0].event(own[0].bins(SIZES.levels), mass)),
    PlantedForm("intervals", _intervals, _has_many),
    PlantedForm("single values", lambda own, mass, rng: own[0].event(own[0].recurring(mass), mass, rng), _recurs),
    PlantedForm("a token", _words, of=(), of_words=True),
    PlantedForm("two columns together", functools.partial(_together, counts=SIZES.bins), of=(2,)),
    PlantedForm("some intervals", functools.partial(_intervals, pieces=SIZES.pieces[1]), _has_many, is_expected=False),
    PlantedForm("few intervals", functools.partial(_intervals, pieces=SIZES.pieces[2]), _has_many, is_expected=False),
    PlantedForm("several columns together", _together, of=SIZES.together, is_expected=False),
    PlantedForm("a direction", _direction, of=(), is_expected=False),
    PlantedForm("random features", _features, of=(1, 2), is_expected=False),
)


@dataclasses.dataclass(frozen=True, eq=False)
class Seen:
    """Outputs of both inputs as they were read: what events are made of, and what plants are played on."""

    outcomes: Outcomes  # as they are drawn again: arrays of numbers as they came, others as the columns read of them
    is_x: NDArray[np.bool_]  # which of them are of the first input
    columns: Columns  # those that vary
    words: Columns  # whether outputs that are objects print each of their usual words

    @classmethod
    def of(cls, batches: Sequence[Outcomes]) -> Seen:
        """Read outcomes of both inputs."""
        reader = Reader.learn(batches)
        matrix = np.concatenate([reader.read(batch) for batch in batches])
        is_x = np.repeat([True, False], [len(batch) for batch in batches])
        columns = list(filter(_varies, map(Column.of, np.ascontiguousarray(matrix.T))))
        if not reader.columns:
            texts = np.concatenate([np.asarray(batch.as_objects().tokens) for batch in batches]).tolist()
            words = list(itertools.islice(_words_of(texts), SIZES.usual))
            return cls(Outcomes(matrix, None, (matrix.shape[1],)), is_x, columns, words)
        whole = all(batch.is_integer for batch in batches)
        return cls(Outcomes(matrix, None, batches[0].shape, whole), is_x, columns, [])

    @functools.cached_property
    def columns_by_form(self) -> dict[PlantedForm, Columns]:
        """The columns that an event may be of, by the forms of which these outputs have events."""
        of_forms = {form: self.words if form.of_words else list(filter(form.suits, self.columns)) for form in FORMS}
        return {form: columns for form, columns in of_forms.items() if len(columns) >= min(form.of, default=2)}

    def event(self, form: PlantedForm, mass: float, rng: np.random.Generator) -> Event:
        """A random event of this form of this mass; where there is no such one, the nearest of some, or none."""

        def one() -> Event:
            columns = [self.columns_by_form[form][k] for k in rng.permutation(len(self.columns_by_form[form])).tolist()]
            return form.make(columns[: int(rng.choice(form.of)) if form.of else None], mass, rng)

        return thinned(_nearest((one() for _ in range(SIZES.tries)), mass), mass, rng)


@dataclasses.dataclass(frozen=True)
class Planting:
    """A game that looks for plants: outputs that were seen, the pair's claim and level, and the audit's mode."""

    seen: Seen
    claim: Claim
    level: float
    mode: Mode

    def is_found(self, event: Event, loss: float, rng: np.random.Generator) -> bool:
        """Plant a leak of this event, and look for it."""
        outcomes = self.seen.outcomes
        labels = rng.random(len(event)) < _tilted(event, loss, self.seen.is_x)
        order = rng.permutation(np.flatnonzero(event != LEFT_OUT))
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


def labelled_of(event: Event) -> int:
    """Labelled draws of the game of a plant of this event, about."""
    return 2 * _samples(int(np.count_nonzero(event != LEFT_OUT)) // 2)


def _tilted(event: Event, loss: float, own: NDArray[np.bool_]) -> FloatArray:
    """The probability of label 1 of each output: inside of the event the loss is nowhere larger, outside `own`."""
    few, many, outside = (int(np.count_nonzero(event == side)) for side in (1, -1, 0))
    lighter, few, many = (1, few, many) if few <= many else (-1, many, few)
    right = float(scipy.special.expit(lighter * loss))
    # Of the lighter half a share `right` has label 1, so the heavier one has what makes labels even over all.
    even = 0.5 * (few + many + outside) - np.count_nonzero(own[event == 0]) - few * right
    other = np.clip(even / max(many, 1), *scipy.special.expit([-loss, loss]))
    return np.where(event == lighter, right, np.where(event == -lighter, other, own))


def _replayed(outcomes: Sequence[Outcomes]) -> Drawer:
    """Carries out tasks with outcomes that are there: the `draw` of a game."""
    taken = [0, 0]

    def carried_out(task: Task) -> TaskResult:
        own = outcomes[task.input]
        start = taken[task.input] % (len(own) - task.size + 1)
        taken[task.input] = start + task.size
        return task.result_on(own.rows(slice(start, start + task.size)))

    return lambda tasks: list(map(carried_out, tasks))
