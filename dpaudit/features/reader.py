"""Reader: outputs as a matrix of numbers, whose columns were chosen on earlier draws and are frozen.

Outputs that are all arrays of as many numbers have a column for each number. Others are visited
(`dpaudit.features.visitor`): the columns are what earlier outputs held, the most frequent first. Behind the columns
that were read stand those that are worked out of them: what a sequence of numbers shows as a whole.

Validity: the columns are a function of earlier draws; what they hold of an output is a function of this output.

Rounding. Numbers that are worked out of others show errors of rounding, and with these the low bits of noise in floating
point, which leak in nearly every implementation and are a question of their own. So they are rounded to 36 bits: of 13
audits of a sound planar Laplace mechanism 6 were called violated without, none with it.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.features import decoders  # noqa: F401 (registers)
from dpaudit.features.visitor import Key, Sink, visit
from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.outcomes import Outcomes


@dataclasses.dataclass(frozen=True)
class ReaderSizes:
    """How many columns there are."""

    max_columns: int = 400  # of paths: as many as one scan of 1,500 draws takes 0.1 seconds for
    max_members: int = 48  # members of one path that are looked for
    min_count: int = 2  # outputs that show a path, without which it is no column
    learned_from: int = 1_500  # outputs of a side that columns are chosen on
    bits: int = 36  # that a worked-out number keeps
    max_tokens: int = 40  # texts that are kept, for words about them
    max_letters: int = 40  # of each


SIZES = ReaderSizes()
SUMMARIES = (
    "count", "sum", "norm", "sum of sizes", "largest", "smallest", "position of the largest",
    "position of the smallest", "number of repeats", "number of falls", "number below 0", "number of zeros",
    "last less first", "spread", "lag 1", "lag 2", "smallest gap", "length of the path", "longest run of falls or rises",
    "as a whole",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Block:
    """Several columns that hold one sequence of numbers: its path, and how many numbers of it are read."""

    path: str
    width: int


@dataclasses.dataclass(frozen=True)
class Reader:
    """Outputs as a matrix: see the module.

    Attributes
    ----------
    columns : int
        Numbers of an output, of outputs that are arrays of numbers; 0 for others.
    blocks : tuple of Block
    keys : tuple of (path, what)
        Columns of single numbers.
    members : tuple of (path, what, member)
        Columns that say whether, or how often, something occurs.
    pieces : tuple of (path, text)
        Columns that say how often a piece of text occurs.
    wanted : frozenset of str
        Paths that are visited.
    points : tuple of tuple of float
        Two points of as many numbers as an output: the inputs, where they have its shape.
    tokens : tuple of (float, str)
        The most frequent texts that numbers of columns stand for.
    """

    columns: int
    blocks: tuple[Block, ...] = ()
    keys: tuple[Key, ...] = ()
    members: tuple[tuple[str, str, str], ...] = ()
    pieces: tuple[tuple[str, str], ...] = ()
    wanted: frozenset[str] = frozenset()
    points: tuple[tuple[float, ...], ...] = ()
    tokens: tuple[tuple[float, str], ...] = ()

    @classmethod
    def learn(
        cls, samples: Sequence[Outcomes], points: tuple[tuple[float, ...], ...] = (), pieces: Iterable[tuple[str, str]] = ()
    ) -> Reader:
        """The reader that suits these outputs."""
        widths = {one.numbers.shape[1] for one in samples}
        if all(one.tokens is None for one in samples) and len(widths) == 1:
            width = widths.pop()
            return cls(width, (Block("", width),), points=points if len(points) == 2 and len(points[0]) == width else ())
        some = [one.as_objects().raw for one in samples]
        some = [raw[:: max(1, len(raw) // SIZES.learned_from)] for raw in some]
        outputs = [output for raw in some for output in raw]
        sink = Sink()
        visit(sink, outputs, np.arange(len(outputs)))
        blocks = []
        for path, parts in sink.blocks.items():
            if sum(len(rows) for rows, _ in parts) >= SIZES.min_count:
                blocks.append(Block(path, max(block.shape[1] for _, block in parts)))
        often: Counter[Key] = Counter()
        texts: Counter[float] = Counter()
        varies: dict[Key, bool] = {}
        for key, parts in sink.numbers.items():
            count = sum(len(rows) for rows, _ in parts)
            values = np.concatenate([numbers for _, numbers in parts])
            varies[key] = count < len(outputs) or bool(np.any(values != values[0])) and not np.all(np.isnan(values))
            often[key] = count
            texts.update(value for value in values.tolist() if value in sink.tokens)
        keys = [key for key, count in often.most_common() if varies[key] and count >= SIZES.min_count]
        members: list[tuple[str, str, str]] = []
        for (path, what), found in sink.members.items():
            counts: Counter[str] = Counter()
            total = 0
            for rows, sets in found:
                total += len(rows)
                for one in sets:
                    counts.update(set(one))
            usual = [(member, n) for member, n in counts.most_common(4 * SIZES.max_members) if n >= SIZES.min_count]
            same = [member for member, n in usual if n < total or what == "count"]
            members += [(path, what, member) for member in same[: SIZES.max_members]]
        most = max(SIZES.max_columns - min(len(members), SIZES.max_columns // 2), 1)
        keys, members = keys[:most], members[: SIZES.max_columns // 2]
        pieces = tuple(pieces)
        paths = {path for path, _ in keys} | {path for path, *_ in members} | {path for path, _ in pieces}
        paths |= {block.path for block in blocks}
        wanted: set[str] = set()
        for path in paths:
            at = path
            while at not in wanted:
                wanted.add(at)
                at = sink.parents.get(at, "")
        kept = texts.most_common(SIZES.max_tokens)
        tokens = tuple((number, sink.tokens[number][: SIZES.max_letters]) for number, n in kept if n >= SIZES.min_count)
        return cls(0, tuple(blocks), tuple(keys), tuple(members), pieces, frozenset(wanted), (), tokens)

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        """The matrix of outputs, shape (draws, columns)."""
        size = len(outcomes)
        if self.columns:
            numbers = outcomes.as_numbers(self.columns)
            if self.columns == 1:
                return numbers
            return np.concatenate([numbers, summaries(numbers, self.points)], axis=1)
        outputs = outcomes.as_objects().raw
        sink = Sink(self.wanted)
        visit(sink, outputs, np.arange(size))
        parts: list[FloatArray] = []
        worked_out: list[FloatArray] = []
        for block in self.blocks:
            numbers = np.full((size, block.width), np.nan)
            for rows, found in sink.blocks.get(block.path, ()):
                numbers[rows[:, None], np.arange(min(block.width, found.shape[1]))] = found[:, : block.width]
            parts.append(numbers)
            if block.width > 1:
                worked_out.append(summaries(numbers))
        singles = np.full((size, len(self.keys)), np.nan)
        for column, key in enumerate(self.keys):
            for rows, found in sink.numbers.get(key, ()):
                singles[rows, column] = found
        parts.append(singles)
        held = np.full((size, len(self.members)), np.nan)
        of_path: dict[Key, list[tuple[int, str]]] = {}
        for column, (path, what, member) in enumerate(self.members):
            of_path.setdefault((path, what), []).append((column, member))
        for key, sought in of_path.items():
            for rows, sets in sink.members.get(key, ()):
                for row, one in zip(rows.tolist(), sets, strict=True):
                    counts = Counter(one)
                    for column, member in sought:
                        held[row, column] = counts.get(member, 0)
        parts.append(held)
        found_pieces = np.full((size, len(self.pieces)), np.nan)
        for column, (path, piece) in enumerate(self.pieces):
            for rows, texts in sink.texts.get(path, ()):
                found_pieces[rows, column] = [text.count(piece) for text in texts]
        return np.concatenate([*parts, found_pieces, *worked_out], axis=1)

    @property
    def names(self) -> list[str]:
        """What each column is, in words."""
        names = []
        for block in self.blocks:
            at = f"the output{block.path}"
            names += [at] if block.width == 1 and self.columns else [f"{at}, place {k}" for k in range(block.width)]
        names += [f"the output{path}" if not what else f"the {what} of the output{path}" for path, what in self.keys]
        names += [f"the {what} of {member} in the output{path}" for path, what, member in self.members]
        names += [f"how often {piece!r} is in the output{path}" for path, piece in self.pieces]
        for block in self.blocks:
            if block.width > 1:
                names += [f"{name} of the numbers of the output{block.path}" for name in SUMMARIES]
        if len(self.points) == 2:
            names += ["nearness to x", "nearness to x by sizes", "distance from x", "distance from x_prime"]
        return names

    @property
    def n_read(self) -> int:
        """How many columns are read; those behind them are worked out."""
        return sum(block.width for block in self.blocks) + len(self.keys) + len(self.members) + len(self.pieces)

    def texts(self, outcomes: Outcomes) -> dict[str, list[str | None]]:
        """The texts at each path of outputs, one an output (None for none)."""
        if self.columns:
            return {}
        sink = Sink()
        outputs = outcomes.as_objects().raw
        visit(sink, outputs, np.arange(len(outputs)))
        found: dict[str, list[str | None]] = {}
        for path, parts in sink.texts.items():
            column: list[str | None] = [None] * len(outputs)
            for rows, texts in parts:
                for row, text in zip(rows.tolist(), texts, strict=True):
                    column[row] = text
            found[path] = column
        return found

    def to_dict(self) -> dict[str, Any]:
        """The reader as JSON values."""
        return {
            "columns": self.columns,
            "blocks": [[block.path, block.width] for block in self.blocks],
            "keys": [list(key) for key in self.keys],
            "members": [list(one) for one in self.members],
            "pieces": [list(one) for one in self.pieces],
            "wanted": sorted(self.wanted),
            "points": [[number.hex() for number in point] for point in self.points],
            "tokens": [list(one) for one in self.tokens],
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Reader:
        """What `to_dict` wrote."""
        return cls(
            int(record["columns"]),
            tuple(Block(str(path), int(width)) for path, width in record["blocks"]),
            tuple((str(path), str(what)) for path, what in record["keys"]),
            tuple((str(a), str(b), str(c)) for a, b, c in record["members"]),
            tuple((str(path), str(piece)) for path, piece in record["pieces"]),
            frozenset(map(str, record["wanted"])),
            tuple(tuple(map(float.fromhex, point)) for point in record["points"]),
            tuple((float(number), str(text)) for number, text in record.get("tokens", ())),
        )


def rounded(numbers: FloatArray, size: FloatArray | None = None) -> FloatArray:
    """Worked-out numbers to `SIZES.bits` bits (of `size`, the size of what they are worked out of)."""
    with np.errstate(all="ignore"):
        unit = np.ldexp(1.0, np.frexp(np.abs(numbers) if size is None else size)[1] - SIZES.bits)
        return np.where(np.isfinite(numbers) & (unit > 0.0), np.rint(numbers / unit) * unit, numbers)


def summaries(block: FloatArray, points: Sequence[Sequence[float]] = ()) -> FloatArray:
    """What sequences of numbers show as a whole, shape (draws, summaries): `SUMMARIES`, and nearness to two points.

    NaN is missing. Sums are rounded to 36 bits of the sum of sizes.
    """
    with np.errstate(all="ignore"):
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
        gaps = np.where(np.isfinite(gaps), gaps, np.inf)
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
            low.min(axis=1), high.argmax(axis=1), low.argmin(axis=1),
            ((np.diff(ordered, axis=1) == 0.0) & np.isfinite(ordered[:, 1:])).sum(axis=1), (steps < 0.0).sum(axis=1),
            (z < 0.0).sum(axis=1), (block == 0.0).sum(axis=1),
            rounded(block[np.arange(len(block)), last] - block[:, 0], np.abs(z[:, 0]) + size),
            rounded(np.sqrt((centred * centred).sum(axis=1)), size), rounded((z[:, 1:] * z[:, :-1]).sum(axis=1), squares),
            rounded((z[:, 2:] * z[:, :-2]).sum(axis=1), squares), rounded(gaps.min(axis=1), size),
            rounded(np.abs(finite_steps).sum(axis=1), size), runs,
            np.round(z @ _DIRECTION[: block.shape[1]], 6) if block.shape[1] <= len(_DIRECTION) else size,
        ]  # fmt: skip
        if len(points) == 2:
            first, second = (np.abs(z - np.asarray(point)) for point in points)
            one, two = np.sqrt((first * first).sum(axis=1)), np.sqrt((second * second).sum(axis=1))
            scale = one + two
            columns += [rounded(two - one, scale), rounded((second - first).sum(axis=1), scale), rounded(one), rounded(two)]
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)


_DIRECTION = np.random.default_rng(5).normal(size=3_000)  # equal rows have equal projections
