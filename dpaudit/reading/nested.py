"""Layouts: objects as columns of numbers, the same columns for every output, learned from training draws.

A `Layout` is a list of leaves (`dpaudit.reading.leaves`). It is fixed by the training draws and is part of the score
that reads through it, so it is saved and replayed with it.

Outputs of one form are read together, column by column (`dpaudit.reading.column_reading`). Those that a layout is
learned from have all their leaves noted (`dpaudit.reading.noted_leaves`), and so have expansions, which many outputs
share: a layout takes them from there. All ways read the same.

Validity: a layout reads one output at a time, and what it reads is a function of the output's contents: numbers by
value, sets without order (their numbers are sorted), dictionaries by their keys, and by the order in which these come.
What is not there is NaN.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.privacy.claims import FloatArray
from dpaudit.reading.column_reading import Node, read_all
from dpaudit.reading.leaves import CODE, HOLDS, PRESENT, PRIMARY, SUMMARIES, Leaf, Place
from dpaudit.reading.log_ratios import shrunk_log_ratio
from dpaudit.reading.noted_leaves import MOST_PLACES, NOTED, Form, Leaves, Places, leaves_of
from dpaudit.reading.outcomes import Outcomes

MOST_LEAVES = 256  # columns of a layout: a bound on time
MOST_CODES = 64  # texts of one place that have a number of their own
MOST_MEMBERS = 32  # members of one place's sets, and words of its texts, that are looked for
LEARNED_FROM = 1_000  # draws of one side that the leaves are collected from


@dataclasses.dataclass(frozen=True)
class Layout:
    """A view: the leaves of an output as columns of numbers; NaN where an output has no such leaf."""

    leaves: tuple[Leaf, ...]

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        root = Node()
        for column, leaf in enumerate(self.leaves):
            node = root
            for step in leaf.path:
                node = node.child(step)
            node.add(leaf, column)
        outcomes = outcomes.as_objects()
        start = [0.0 if leaf.what == PRESENT else math.nan for leaf in self.leaves]
        columns = np.empty((len(outcomes), len(start)))
        columns[:] = start
        of_forms, others = _by_form(outcomes)
        if of_forms:
            self._take(of_forms, columns)
        if len(others):
            read_all(root, [outcomes.raw[position] for position in others], np.array(others), columns)
        return Outcomes(columns)

    def _take(self, of_forms: Mapping[Form, tuple[list[int], list[Leaves]]], columns: FloatArray) -> None:
        """Write what is noted of outputs into their rows, those of one form together."""
        size = len(NOTED.every)  # more may come from other threads, which none of these forms has
        at_place = np.full(size, -1, dtype=np.intp)  # where a form has what is read at each place
        known = [(k, NOTED.find(leaf.place)) for k, leaf in enumerate(self.leaves)]
        own = [(k, number) for k, number in known if number is not None and number < size]
        kinds = [[pair for pair in own if _kind_of(self.leaves[pair[0]].what) == kind] for kind in range(3)]
        of_kinds = [np.array(pairs, dtype=np.intp).reshape(-1, 2) for pairs in kinds]
        for form, (positions, noted) in of_forms.items():
            found = []
            for of_kind, places in zip(of_kinds, form.places, strict=True):
                at_place[places] = np.arange(len(places))
                at = at_place[of_kind[:, 1]]
                at_place[places] = -1
                found.append((of_kind[at >= 0, 0], at[at >= 0]))
            (of_numbers, at), (of_tokens, at_token), (of_members, at_members) = found
            seen: dict[int, int] = {}  # outputs may share their leaves: what is read of these is read once
            which = np.array([seen.setdefault(id(leaves), len(seen)) for leaves in noted])
            distinct = list({id(leaves): leaves for leaves in noted}.values())
            rows = np.array(positions)[:, None]
            if len(of_numbers):
                numbers = np.frombuffer(b"".join([leaves.numbers for leaves in distinct])).reshape(len(distinct), -1)
                columns[rows, of_numbers] = numbers[:, at][which]
            if len(of_tokens):
                numbered = [self.leaves[k].numbered for k in of_tokens.tolist()]
                codes = list(zip(numbered, at_token.tolist(), strict=True))
                read = [[own.get(leaves.tokens[k], -1.0) for own, k in codes] for leaves in distinct]
                columns[rows, of_tokens] = np.array(read)[which]
            if len(of_members):
                sought = [(self.leaves[k].codes[0], at) for k, at in zip(of_members, at_members, strict=True)]
                held = [[one in leaves.members[k] for one, k in sought] for leaves in distinct]
                columns[rows, of_members] = np.array(held)[which]

    def only(self, columns: Sequence[int]) -> Layout:
        """The layout of some of its columns."""
        return Layout(tuple(self.leaves[column] for column in columns))

    def to_dict(self) -> dict[str, Any]:
        leaves = [{"path": list(leaf.path), "what": leaf.what, "codes": list(leaf.codes)} for leaf in self.leaves]
        return {"kind": "layout", "leaves": leaves}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Layout:
        known = {*PRIMARY, *SUMMARIES}
        if any(leaf["what"] not in known for leaf in record["leaves"]):
            raise ValueError(f"leaf must be one of {', '.join(sorted(known))}, got {record['leaves']!r:.200}.")
        return cls(tuple(Leaf(tuple(leaf["path"]), leaf["what"], tuple(leaf["codes"])) for leaf in record["leaves"]))

    def name_of(self, column: int) -> str:
        return self.leaves[column].describe()

    def values_of(self, column: int) -> Mapping[float, str] | None:
        """The values of a column, with their names: categories, and whether something is there."""
        leaf = self.leaves[column]
        if leaf.what == CODE:
            return {**{float(k): code for k, code in enumerate(leaf.codes)}, -1.0: "another one"}
        return {0.0: "no", 1.0: "yes"} if leaf.what in (PRESENT, HOLDS) else None

    @property
    def of_columns(self) -> str:
        """What a column is."""
        return "a number, length or category at a fixed place"


def _kind_of(what: str) -> int:
    """Whether numbers (0), a category's token (1) or the tokens of members (2) are read."""
    return {CODE: 1, HOLDS: 2}.get(what, 0)


def _by_form(outcomes: Outcomes) -> tuple[dict[Form, tuple[list[int], list[Leaves]]], Sequence[int]]:
    """Outcomes whose leaves are noted, of each form: their positions and leaves; and the positions of all others.

    Noted are those of outputs that a layout was learned from, and those that are shared: others are read faster column
    by column, as often as that comes.
    """
    of_forms: dict[Form, tuple[list[int], list[Leaves]]] = {}
    if not outcomes.notes:
        return of_forms, range(len(outcomes))
    is_read = np.ones(len(outcomes), dtype=bool)
    for position, note in enumerate(outcomes.notes):
        if note.leaves is None and not note.is_shared:
            continue
        leaves = leaves_of(note, outcomes.raw[position])
        if leaves is not None:
            positions, noted = of_forms.setdefault(leaves.form, ([], []))
            positions.append(position)
            noted.append(leaves)
            is_read[position] = False
    return of_forms, np.flatnonzero(is_read).tolist()


def learn_layout(first: Outcomes, second: Outcomes) -> tuple[Layout, Outcomes, Outcomes] | None:
    """The layout of outcomes under x and x_prime: the leaves most often met that vary; None if none does.

    With the layout, what it shows of the two. At most `MOST_LEAVES`, in the order of their paths. Of leaves that are
    equal on all draws the first stays.
    """
    # Where too many places were noted, those of these outputs are by themselves, and forgotten.
    known = NOTED if len(NOTED.every) < MOST_PLACES else Places()
    of_sides: list[list[Leaves]] = [list(_learned_from(part.as_objects(), known)) for part in (first, second)]
    total = sum(map(len, of_sides))
    every = known.every
    often = np.zeros(len(every), dtype=np.intp)
    tokens: dict[Place, dict[str, list[float]]] = {}
    for side, outputs in enumerate(of_sides):
        for form, size in collections.Counter(output.form for output in outputs).items():
            often[form.counted] += size
        seen_tokens: collections.Counter[tuple[int, str]] = collections.Counter()
        times = collections.Counter(map(id, outputs))
        for output in {id(output): output for output in outputs}.values():
            _, of_tokens, of_members = output.form.places
            found = list(zip(of_tokens.tolist(), output.tokens, strict=True))
            for place, members in zip(of_members.tolist(), output.members, strict=True):
                found += [(place, member) for member in members]
            if times[id(output)] == 1:
                seen_tokens.update(found)
            else:  # shared by several
                seen_tokens.update(dict.fromkeys(found, times[id(output)]))
        for (at, token), count in seen_tokens.items():
            tokens.setdefault(every[at], {}).setdefault(token, [0.0, 0.0])[side] += count
    counts = {every[at]: int(often[at]) for at in np.flatnonzero(often).tolist()}
    leaves: list[tuple[int, Leaf]] = []
    for (path, what), count in counts.items():
        if what == CODE:
            codes = _codes(tokens[path, what])
            if codes:
                leaves.append((count, Leaf(path, what, codes)))
        elif what != PRESENT or count < total:
            leaves.append((count, Leaf(path, what)))
    for (path, what), pairs in tokens.items():
        if what == HOLDS:
            usual = [(sum(pair), token) for token, pair in pairs.items() if 2.0 <= sum(pair) < total]
            usual.sort(key=lambda entry: (-entry[0], entry[1]))
            leaves += [(int(count), Leaf(path, what, (token,))) for count, token in usual[:MOST_MEMBERS]]

    def order(leaf: Leaf) -> tuple[Any, ...]:
        steps = tuple((isinstance(step, str), str(step), step if isinstance(step, int) else 0) for step in leaf.path)
        kinds = (*PRIMARY, *SUMMARIES)
        return len(leaf.path), tuple((text, number, name) for text, name, number in steps), kinds.index(leaf.what), leaf

    leaves.sort(key=lambda entry: (-entry[0], *order(entry[1])[:3], entry[1].codes))
    layout = Layout(tuple(sorted((leaf for _, leaf in leaves[:MOST_LEAVES]), key=lambda leaf: order(leaf)[1:3])))
    seen = [layout(part).numbers for part in (first, second)]
    both = np.concatenate(seen)
    kept: dict[bytes, int] = {}
    varies = np.any(both != both[:1], axis=0) & ~np.all(np.isnan(both), axis=0)
    # Of equal columns the first stays; leaves come before summaries, which repeat them where there is but one number.
    for column in sorted(np.flatnonzero(varies).tolist(), key=lambda k: layout.leaves[k].what in SUMMARIES):
        kept.setdefault(both[:, column].tobytes(), column)
    if not kept:
        return None
    columns = sorted(kept.values())
    shown = [Outcomes(np.ascontiguousarray(numbers[:, columns])) for numbers in seen]
    return layout.only(columns), shown[0], shown[1]


def _learned_from(outcomes: Outcomes, known: Places) -> Iterator[Leaves]:
    """The leaves of the outcomes that a layout is learned from, whose places have these numbers."""
    for position in range(0, len(outcomes), max(1, -(-len(outcomes) // LEARNED_FROM))):
        output = outcomes.raw[position]
        noted = leaves_of(outcomes.notes[position], output) if outcomes.notes and known is NOTED else None
        yield Leaves(output, known) if noted is None else noted


def _codes(seen: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The `MOST_CODES` most frequent texts, seen at least twice, by their log ratio; none if there is but one text."""
    usual = sorted((-sum(pair), token) for token, pair in seen.items() if sum(pair) >= 2.0)[:MOST_CODES]
    if len(seen) < 2 or not usual:
        return ()
    counts = np.array([seen[token] for _, token in usual])
    ratios = shrunk_log_ratio(counts[:, 0], counts[:, 1])
    return tuple(token for _, token in sorted(zip(ratios.tolist(), (token for _, token in usual), strict=True)))
