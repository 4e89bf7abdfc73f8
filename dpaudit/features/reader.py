"""Reader: outputs as a matrix of numbers, whose columns were chosen on earlier draws and are frozen.

Outputs that are all arrays of as many numbers have a column for each number. Others are visited
(`dpaudit.features.visitor`): the columns are what earlier outputs held, the most frequent first. Behind the columns
that were read stand those that are worked out of them: what a sequence of numbers shows as a whole.

Validity: the columns are a function of earlier draws; what they hold of an output is a function of this output.

Sums over the numbers of a row are taken by `sum(axis=1)` of an array in row order, never by a matrix product, which
rounds a row differently in different batches; and they are rounded (`dpaudit.features.shapes.rounded`).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dpaudit.features.density import LogRatio
from dpaudit.features.outcomes import Outcomes
from dpaudit.features.shapes import rounded
from dpaudit.features.unread import LIMITS
from dpaudit.features.views import SIZES as VIEW_SIZES
from dpaudit.features.views import Layout
from dpaudit.features.visitor import BLOCK, COUNT, MEMBERS, Key, Sink, read_outputs_into
from dpaudit.features.whole_numbers import bits_set
from dpaudit.privacy.claims import FloatArray
from dpaudit.results.codec import UNSAVED, Form


@dataclasses.dataclass(frozen=True)
class ReaderSizes:
    """Limits on the number of columns."""

    max_members: int = 48  # members of one path that are looked for
    min_count: int = 2  # outputs that show a path, without which it is no column
    max_summaries: int = 24  # blocks that are summarised, those of the most outputs
    max_group: int = 40  # columns that are looked at each with each other: 820 products
    max_identifiers: int = 4  # columns that are read digit by digit: more are a table, and twice the time
    min_identifier: int = 64  # between the numbers of such a column: trees see fewer values one by one
    max_tokens: int = 40  # texts that are kept, for words about them, and letters of each
    max_remembered: int = 1 << 21  # numbers that a memory keeps: 16 MB, of 4,000 outputs 500 each


SIZES = ReaderSizes()
SUMMARIES = (
    "count", "sum", "norm", "sum of sizes", "largest", "smallest", "position of the largest",
    "position of the smallest", "gap between the largest two", "number of repeats", "number of falls",
    "number below 0", "number of zeros", "last less first", "spread", "lag 1", "lag 2", "smallest gap",
    "length of the path", "longest run of falls or rises", "randomly weighted sum",
)  # fmt: skip


ORDERS = ("number of inversions of the first 64", "number of bits set")
MAX_ORDERED = 64  # numbers of a sequence that are compared with each other
MAX_COMPARED = 6  # sequences of which each two are compared


class Block(NamedTuple):
    """Several columns that hold one sequence of numbers: its path, and how many numbers of it are read."""

    path: str
    width: int


@dataclasses.dataclass(frozen=True)
class Reader(Form):
    """Outputs as a matrix: see the module.

    Attributes
    ----------
    columns : int
        Numbers of an output, of outputs that are arrays of numbers; 0 for others.
    blocks : tuple of Block
    keys : tuple of (path, what)
        Columns of single numbers.
    members : tuple of (path, what, member)
        Columns that say whether, or how often, something occurs: how often, where it occurs twice in an output.
    wanted : frozenset of str
        Paths that are visited.
    values : tuple of tuple of float
        Of each block the values of its numbers, where these are categories: how often each occurs is worked out.
    points : tuple of tuple of float
        Two points of as many numbers as an output: the inputs, where they have its shape.
    density : LogRatio, optional
        The mechanism's own log density ratio, of outputs that are arrays of numbers: one more column that is read.
    tokens : tuple of (float, str)
        The most frequent texts that numbers of columns stand for.
    inner : int
        Numbers of a row, of outputs that are tables of numbers: their columns are sequences, too. 0 for others.
    digits : tuple of (column, base, places)
        Columns of whole numbers that are read digit by digit, too.
    """

    columns: int
    blocks: tuple[Block, ...] = ()
    keys: tuple[Key, ...] = ()
    members: tuple[tuple[str, str, str], ...] = ()
    wanted: frozenset[str] = dataclasses.field(default=frozenset(), metadata={"write": sorted})
    values: tuple[tuple[float, ...], ...] = ()
    points: tuple[tuple[float, ...], ...] = ()
    density: LogRatio | None = dataclasses.field(default=None, compare=False, metadata=UNSAVED)
    tokens: tuple[tuple[float, str], ...] = dataclasses.field(default=(), metadata={"exact": False})
    inner: int = 0
    digits: tuple[tuple[int, int, int], ...] = ()

    exact = True

    def __deepcopy__(self, memo: object) -> Reader:
        return self

    @classmethod
    def learn(
        cls,
        samples: Sequence[Outcomes],
        points: tuple[tuple[float, ...], ...] = (),
        density: LogRatio | None = None,
    ) -> Reader:
        """The reader that suits these outputs."""
        forms = {(one.tokens is None, one.shape, one.numbers.shape[1]) for one in samples}
        if len(forms) == 1 and samples[0].tokens is None:
            width = samples[0].numbers.shape[1]
            points = points if len(points) == 2 and len(points[0]) == width else ()
            inner = samples[0].shape[-1] if len(samples[0].shape) > 1 else 0
            inner = inner if 1 < inner < MAX_COMPARED and width > 2 * inner else 0
            own = (_categories([one.numbers for one in samples]),)
            places = range(width if width <= SIZES.max_group else 0)
            digits = _digits((k, np.concatenate([one.numbers[:, k] for one in samples])) for k in places)
            return cls(width, (Block("", width),), (), (), frozenset(), own, points, density, (), inner, digits)
        some = [outputs_of(one) for one in samples]
        outputs = [output for raw in some for output in raw[:: max(1, len(raw) // VIEW_SIZES.scanned)]]
        sink = Sink()
        read_outputs_into(sink, outputs)
        found: list[tuple[int, Block]] = []
        often: Counter[Key] = Counter()
        numbers_of: dict[Key, FloatArray] = {}
        tokens_often: Counter[float] = Counter()
        members: list[tuple[str, str, str]] = []
        for (path, what), parts in sink.found.items():
            count = sum(len(rows) for rows, _ in parts)
            if what == BLOCK:
                found.append((count, Block(path, max(block.shape[1] for _, block in parts))))
            elif what in MEMBERS:
                held = [Counter(one) for _, several in parts for one in several]
                counts = Counter(member for own in held for member in own)
                # Members of a set come in the order of their hashes, which differ from process to process.
                usual = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[: 4 * SIZES.max_members]
                if what == COUNT:  # of what is never there twice membership says as much
                    repeated = {m for own in held if own.total() > len(own) for m, n in own.items() if n > 1}
                    usual = [(m, n) for m, n in usual if m in repeated]
                vary = [
                    m for m, n in usual if n >= SIZES.min_count and (n < count or len({own[m] for own in held}) > 1)
                ]
                members += [(path, what, member) for member in vary[: SIZES.max_members]]
            elif count >= SIZES.min_count:
                values = np.concatenate([numbers for _, numbers in parts])
                is_constant = np.all((values == values[0]) | (np.isnan(values) & np.isnan(values[0])))
                if count < len(outputs) or not is_constant:
                    often[path, what] = count
                    numbers_of[path, what] = values
                    tokens_often.update(value for value in values.tolist() if value in sink.tokens)
        blocks, left = [], LIMITS.max_places
        for count, block in sorted(found, key=lambda one: (-one[0], len(one[1].path))):  # the outermost before others
            if count >= SIZES.min_count and block.width <= left:
                blocks.append(block)
                left -= block.width
        members = members[: VIEW_SIZES.max_columns // 2]
        keys = [key for key, _ in often.most_common(VIEW_SIZES.max_columns - len(members))]
        wanted: set[str] = {""}
        for path in [*(block.path for block in blocks), *(path for path, *_ in [*keys, *members])]:
            while path not in wanted:
                wanted.add(path)
                path = sink.parents.get(path, "")
        of_blocks = tuple(_categories([part for _, part in sink.found[block.path, BLOCK]]) for block in blocks)
        kept = [number for number, count in tokens_often.most_common(SIZES.max_tokens) if count >= SIZES.min_count]
        tokens = tuple((number, sink.tokens[number][: SIZES.max_tokens]) for number in kept)
        start = sum(block.width for block in blocks)
        few = keys if start + len(keys) + len(members) <= SIZES.max_group else []
        digits = _digits((k, numbers_of[key]) for k, key in enumerate(few, start) if not key[1])
        read = tuple(blocks), tuple(keys), tuple(members), frozenset(wanted), of_blocks
        return cls(0, *read, tokens=tokens, digits=digits)

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The matrix of outputs, shape (draws, columns)."""
        found = self.read(outcomes)
        wholes = [summaries(found[:, own], values) for _, own, values in self._wholes]
        wholes += [nearness(found[:, own], self.points) for _, own, _ in self._wholes[:1] if len(self.points) == 2]
        wholes += [orders(found[:, own]) for _, own, _ in self._wholes]
        wholes += [distances(found[:, a[1]], found[:, b[1]]) for a, b in self._compared]
        wholes += [in_common(found[:, a[1]], found[:, b[1]]) for a, b in self._compared]
        wholes += [correlations(found[:, a], found[:, b]) for _, a, b in self._aligned_pairs(3)]
        alike = (found[:, a] == found[:, b] for _, a, b in self._aligned_pairs(1))
        wholes += [own.sum(axis=1, keepdims=True, dtype=float) for own in alike]
        for column, base, n in self.digits:
            with np.errstate(invalid="ignore"):
                digits = np.floor(found[:, [column]] / float(base) ** np.arange(n)) % base
            wholes += [digits, digits.sum(axis=1, keepdims=True)]
        return np.concatenate([found, *wholes], axis=1) if wholes else found

    def read(self, outcomes: Outcomes) -> FloatArray:
        """The columns that are read, shape (draws, n_read)."""
        size = len(outcomes)
        if self.columns:
            numbers = outcomes.as_numbers(self.columns)
            if self.density is None:
                return numbers
            same = outcomes if outcomes.tokens is None and numbers is outcomes.numbers else Outcomes(numbers)
            return np.concatenate([numbers, self.density(same)[:, None]], axis=1)
        sink = Sink(self._columns, self.wanted)
        read_outputs_into(sink, outputs_of(outcomes))
        matrix = np.full((size, self.n_read), np.nan)
        start = 0
        for block in self.blocks:
            for rows, found in sink.found.get((block.path, BLOCK), ()):
                width = min(found.shape[1], block.width)
                matrix[rows, start : start + width] = found[:, :width]
            start += block.width
        for column, key in enumerate(self.keys, start):
            for rows, found in sink.found.get(key, ()):
                matrix[rows, column] = found
        start += len(self.keys)
        of_path: dict[Key, dict[str, int]] = {}
        for column, (path, what, member) in enumerate(self.members, start):
            of_path.setdefault((path, what), {})[member] = column
        for key, column_of in of_path.items():
            for rows, several in sink.found.get(key, ()):
                held = []
                for one in several:
                    counts = dict.fromkeys(column_of, 0)
                    for member in one:
                        if member in counts:
                            counts[member] += 1
                    held.append(list(counts.values()))
                matrix[rows[:, None], list(column_of.values())] = held
        return matrix

    def only(self, columns: Sequence[int]) -> tuple[Reader, tuple[int, ...]]:
        """A reader of some of the columns that this one reads, with where they are among its own."""
        asked, blocks, found, start, width = set(columns), [], [], 0, 0
        for block in self.blocks:
            own = sorted(asked & set(range(start, start + block.width)))
            if own:
                blocks.append(block)
                found += [width + column - start for column in own]
                width += block.width
            start += block.width
        keys = tuple(key for column, key in enumerate(self.keys, start) if column in asked)
        of_members = enumerate(self.members, start + len(self.keys))
        members = tuple(member for column, member in of_members if column in asked)
        found += range(width, width + len(keys) + len(members))
        values = tuple(own for block, own in zip(self.blocks, self.values, strict=False) if block in blocks)
        some = dataclasses.replace(self, blocks=tuple(blocks), keys=keys, members=members, values=values, digits=())
        return some, tuple(found)

    @functools.cached_property
    def _columns(self) -> frozenset[Key]:
        """Path and kind of all columns."""
        blocks = {(block.path, BLOCK) for block in self.blocks}
        members = {(path, what) for path, what, _ in self.members}
        return frozenset(blocks | members | set(self.keys))

    @property
    def names(self) -> list[str]:
        """The name of each column, in words."""
        names = []
        for block in self.blocks:
            at = f"the output{block.path}"
            names += [at] if block.width == 1 and self.columns else [f"{at}, place {k}" for k in range(block.width)]
        names += [f"the output{path}" if not what else f"the {what} of the output{path}" for path, what in self.keys]
        names += [f"the {what} of {member} in the output{path}" for path, what, member in self.members]
        names += ["the mechanism's own log density ratio"] * (self.density is not None)
        for path, _, values in self._wholes:
            of = [*SUMMARIES, *(f"count of {value:.17g}" for value in values)]
            names += [f"the {name} of the numbers of the output{path}" for name in of]
        if self._wholes and len(self.points) == 2:
            names += ["nearness to x (Euclidean)", "nearness to x (L1)", "distance from x", "distance from x′"]
        names += [f"the {name} of the numbers of the output{path}" for path, *_ in self._wholes for name in ORDERS]
        names += [f"how far the sorted output{a[0]} is from the sorted output{b[0]}" for a, b in self._compared]
        names += [
            f"how many of the output{a[0]} are in the output{b[0]}, of the first 64 of each" for a, b in self._compared
        ]
        names += [f"the correlation of the output{name}" for name, *_ in self._aligned_pairs(3)]
        names += [f"the number of coincidences of the output{name}" for name, *_ in self._aligned_pairs(1)]
        for column, base, n in self.digits:
            what, whose = "bit" if base == 2 else "digit", names[column]
            names += [*(f"{what} {k} of {whose}" for k in range(n)), f"the sum of the {what}s of {whose}"]
        return names

    @functools.cached_property
    def _wholes(self) -> list[tuple[str, slice, tuple[float, ...]]]:
        """The blocks that are worked out as a whole: their paths, their columns and their values."""
        ends = np.cumsum([block.width for block in self.blocks]).tolist()
        several = zip(self.blocks[: SIZES.max_summaries], ends, self.values or itertools.repeat(()), strict=False)
        wholes = [(block.path, slice(end - block.width, end), own) for block, end, own in several if block.width > 1]
        return wholes + [(f"[..., {k}]", slice(k, self.columns, self.inner), ()) for k in range(self.inner)]

    @functools.cached_property
    def layout(self) -> Layout:
        """The parts of its columns. Those of a sequence may tell together, and all that are read, if they are few."""
        at = range(self.n_read)
        groups = [tuple(at), *(tuple(at[own]) for _, own, _ in self._wholes)]
        start = self.n_columns
        for *_, n in self.digits[::-1]:
            start -= n + 1
            groups.append(tuple(range(start, start + n)))
        few = tuple(own for own in dict.fromkeys(groups) if 1 < len(own) <= SIZES.max_group)
        of_inner = self.inner * (len(SUMMARIES) + len(ORDERS)) + len(self._compared) * (self.inner > 0)
        n_more = len(self.counts) + len(self._compared) + len(self._aligned_pairs(3)) + of_inner
        return Layout(self.n_read, n_more, self.n_columns - start + len(self._aligned_pairs(1)), few)

    @property
    def _compared(self) -> list[tuple[tuple[str, slice, Any], tuple[str, slice, Any]]]:
        """Two sequences of as many numbers, which may hold the same ones in another order, or go together."""
        pairs = itertools.combinations(self._wholes[:MAX_COMPARED], 2)
        at = range(self.n_read)
        return [(a, b) for a, b in pairs if len(at[a[1]]) == len(at[b[1]])]

    def _aligned_pairs(self, least: int) -> list[tuple[str, slice, slice]]:
        """Names and columns of sequences compared place by place: two, or the outermost one and itself at a lag."""
        pairs = [(f"{a[0]} and the output{b[0]}", a[1], b[1]) for a, b in self._compared]
        for path, own, _ in self._wholes[:1]:
            stop = min(own.stop, own.start + MAX_ORDERED)
            far = range(least, (stop - own.start) // 2 + 1)  # nearer lags are summaries; farther ones do not come twice
            pairs += [(f"{path} at a lag of {k}", slice(own.start + k, stop), slice(own.start, stop - k)) for k in far]
        return pairs

    @functools.cached_property
    def counts(self) -> tuple[int, ...]:
        """The columns of how often values of a block occur."""
        found, end = list[int](), self.n_read
        for *_, values in self._wholes:
            end += len(SUMMARIES) + len(values)
            found += range(end - len(values), end)
        return tuple(found)

    @property
    def n_read(self) -> int:
        """The number of columns that are read; summaries stand behind them."""
        singles = len(self.keys) + len(self.members) + (self.density is not None)
        return sum(block.width for block in self.blocks) + singles

    @property
    def n_columns(self) -> int:
        """The number of columns of the matrix."""
        return len(self.names)

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        density = self.density
        known = None if density is None else {"shape": list(density.shape), "is_integer": density.is_integer}
        return {**record, "density": known}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], density: LogRatio | None = None) -> Reader:
        """The reader that `to_dict` wrote; ValueError where it asks for a density and none is given."""
        found = super().from_dict(record)
        if (asked := record.get("density")) is None:
            return found
        if density is None:
            raise ValueError("reader must be given the mechanism's log density, which it reads; got none.")
        density = dataclasses.replace(density, shape=tuple(asked["shape"]), is_integer=bool(asked["is_integer"]))
        return dataclasses.replace(found, density=density)


class Memory:
    """Cache of the rows that a reader read of growing outcomes: while it stays, outputs that are objects are read once.

    Outcomes that are arrays of numbers keep no outputs (`Outcomes.raw`) and are read at each call, which is cheap.
    Validity: a row is a function of its output, so that what is remembered is what would be read again.
    """

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self._raw: tuple[Any, ...] = ()
        self._matrix: FloatArray = np.zeros((0, 0))

    def __call__(self, reader: Reader, outcomes: Outcomes) -> FloatArray:
        """The matrix of outputs, as the reader gives it."""
        raw, known = outcomes.raw, len(self._raw)
        goes_on = self._reader is reader and all(map(operator.is_, self._raw, raw)) and 0 < known <= len(raw)
        if not goes_on:
            matrix = reader(outcomes)
        elif known < len(raw):
            matrix = np.concatenate([self._matrix, reader(outcomes.rows(slice(known, None)))])
        else:
            matrix = self._matrix
        is_kept = matrix.size <= SIZES.max_remembered
        self._reader, self._raw, self._matrix = reader, raw if is_kept else (), matrix if is_kept else matrix[:0].copy()
        return matrix


def outputs_of(outcomes: Outcomes) -> Sequence[Any]:
    """The outputs one by one, as plain data."""
    if outcomes.tokens is None:
        held: list[Any] = outcomes.numbers.reshape(len(outcomes), *outcomes.shape).tolist()
        return held
    return outcomes.raw


def _categories(parts: Sequence[FloatArray]) -> tuple[float, ...]:
    """The values of some numbers, where these are categories: from three on, as two have a sum, up to `max_members`."""
    for most in (8, VIEW_SIZES.scanned):  # rows; that there are too many values mostly shows in a few
        found = np.unique(np.concatenate([part[:: max(1, len(part) // most)].ravel() for part in parts])) + 0.0
        found = found[np.isfinite(found)]
        if len(found) > SIZES.max_members:
            return ()
    return tuple(found.tolist()) if len(found) > 2 else ()


def _digits(columns: Iterable[tuple[int, FloatArray]]) -> tuple[tuple[int, int, int], ...]:
    """The columns of whole numbers that are read digit by digit, with base and places; none where these are many."""
    found = list[tuple[int, int, int]]()
    for column, values in columns:
        whole = values[np.isfinite(values)]
        low, high = whole.min(initial=2.0**44), whole.max(initial=0.0)
        if low + SIZES.min_identifier <= high < 2**44 and low >= 0.0 and np.all(whole == np.rint(whole)):
            found += [(column, 2, min(int(high).bit_length(), SIZES.max_group)), (column, 10, len(str(int(high))))]
    return tuple(found) if len(found) <= 2 * SIZES.max_identifiers else ()


def summaries(block: FloatArray, values: Sequence[float] = ()) -> FloatArray:
    """Summaries of sequences of numbers, shape (draws, summaries): `SUMMARIES`, and how often each value occurs.

    NaN is missing. Sums are rounded to 36 bits of the sum of sizes.
    """
    with np.errstate(all="ignore"):
        block = np.ascontiguousarray(block)
        known = np.isfinite(block)
        z = np.where(known, block, 0.0)
        high, low = np.where(known, block, -np.inf), np.where(known, block, np.inf)
        ordered = np.sort(low, axis=1)
        steps = np.diff(block, axis=1)
        count = known.sum(axis=1)
        size = np.abs(z).sum(axis=1)
        last = block.shape[1] - 1 - np.argmax(known[:, ::-1], axis=1)
        centred = z - z.sum(axis=1, keepdims=True) / np.maximum(count, 1)[:, None]
        gaps = np.diff(ordered, axis=1)
        repeats = ((gaps == 0.0) & np.isfinite(ordered[:, 1:])).sum(axis=1)
        gaps = np.where(np.isfinite(gaps), gaps, np.inf)
        gap = np.where(count > 1, gaps[np.arange(len(block)), np.maximum(count - 2, 0)], np.nan)
        runs = np.zeros(len(block))
        run = np.zeros(len(block))
        turned = np.sign(steps)
        for k in range(min(turned.shape[1], 256)):
            same = (turned[:, k] == turned[:, k - 1]) if k else np.ones(len(block), bool)
            run = np.where(same, run + 1, 1)
            runs = np.maximum(runs, run)
        squares = (z * z).sum(axis=1)
        finite_steps = np.where(np.isfinite(steps), steps, 0.0)
        columns = [
            count, rounded(z.sum(axis=1), size), rounded(np.sqrt(squares)), rounded(size), high.max(axis=1),
            low.min(axis=1), high.argmax(axis=1), low.argmin(axis=1), rounded(gap, size),
            repeats, (steps < 0.0).sum(axis=1), (z < 0.0).sum(axis=1), (block == 0.0).sum(axis=1),
            rounded(block[np.arange(len(block)), last] - block[:, 0], np.abs(z[:, 0]) + size),
            rounded(np.sqrt((centred * centred).sum(axis=1)), size),
            rounded((z[:, 1:] * z[:, :-1]).sum(axis=1), squares), rounded((z[:, 2:] * z[:, :-2]).sum(axis=1), squares),
            rounded(gaps.min(axis=1), size),
            rounded(np.abs(finite_steps).sum(axis=1), size), runs,
            rounded((z[:, : len(_DIRECTION)] * _DIRECTION[: block.shape[1]]).sum(axis=1), size),
        ]  # fmt: skip
        columns += [(block == value).sum(axis=1) for value in values]
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)


def nearness(block: FloatArray, points: Sequence[Sequence[float]]) -> FloatArray:
    """Differences of distances of sequences to two points, Euclidean and L1, and both distances, (draws, 4)."""
    with np.errstate(all="ignore"):
        z = np.ascontiguousarray(np.where(np.isfinite(block), block, 0.0))
        first, second = (np.abs(z - np.asarray(point)) for point in points)
        a, b = np.sqrt((first * first).sum(axis=1)), np.sqrt((second * second).sum(axis=1))
        columns = rounded(b - a, a + b), rounded((second - first).sum(axis=1), a + b), rounded(a), rounded(b)
    return np.stack(columns, axis=1)


def orders(block: FloatArray) -> FloatArray:
    """`ORDERS` of sequences of numbers, shape (draws, orders)."""
    first, inversions = block[:, :MAX_ORDERED], np.zeros(len(block))
    for k in range(first.shape[1] - 1):
        inversions += (first[:, k + 1 :] < first[:, k : k + 1]).sum(axis=1)
    bits = np.zeros(len(block))
    for column in block.T:  # one by one: all at once take eight times their memory
        bits += np.nan_to_num(bits_set(column))
    return np.stack([inversions, np.where(np.isnan(block).all(axis=1), np.nan, bits)], axis=1)


def distances(first: FloatArray, second: FloatArray) -> FloatArray:
    """The distance of two sequences of numbers in any order, shape (draws, 1): of the sorted ones, summed up."""
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.abs(first).sum(axis=1) + np.abs(second).sum(axis=1)
        apart = np.abs(np.sort(first, axis=1) - np.sort(second, axis=1)).sum(axis=1)
    return rounded(apart, size)[:, None]


def in_common(first: FloatArray, second: FloatArray) -> FloatArray:
    """Count of the first numbers of a sequence that are among those of another one, shape (draws, 1)."""
    found = np.zeros(len(first))
    for column in first[:, :MAX_ORDERED].T:
        found += (second[:, :MAX_ORDERED] == column[:, None]).any(axis=1)
    return found[:, None]


def correlations(*several: FloatArray) -> FloatArray:
    """The correlation of two sequences of as many numbers, shape (draws, 1)."""
    known, scaled = np.isfinite(several).all(axis=0), []
    with np.errstate(all="ignore"):
        for own in several:
            z = np.ascontiguousarray(np.where(known, own, 0.0))
            # By a power of two, so that no square is infinite or 0.
            z = np.ldexp(z, -np.frexp(np.abs(z).max(axis=1, keepdims=True))[1])
            mean = z.sum(axis=1, keepdims=True) / known.sum(axis=1, keepdims=True)
            z = np.where(known, rounded(z - mean, np.abs(z).sum(axis=1, keepdims=True)), 0.0)
            scaled.append(z / np.sqrt((z * z).sum(axis=1, keepdims=True)))
    return rounded(np.multiply(*scaled).sum(axis=1), np.ones(len(several[0])))[:, None]


_DIRECTION = np.random.default_rng(5).normal(size=3_000)  # weights: equal rows have equal sums
