"""Leaves that are noted: all of one output's, with a number for each place, so that they are found once.

Outputs of one form have the same places, and share one `Form`. What is noted of an output is what a layout reads of it.
"""

from __future__ import annotations

import array
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpaudit.reading.leaves import (
    CODE,
    DEEPEST_LEAF,
    HOLDS,
    LENGTH,
    LETTERS,
    LONGEST,
    LOW,
    LOW_MODULUS,
    PLACE,
    PRESENT,
    SUMMARIES,
    VALUE,
    Path,
    Place,
    has_places,
    is_long,
    numbers_in,
    parts_of,
    summaries_of,
)
from dpaudit.reading.outcomes import Notes, is_number, number_of, plain

MOST_NOTED = 256  # leaves of an output that are noted: a bound on memory
MOST_SHARED = 1_024  # the same of what many outputs share
MOST_PLACES = 200_000  # of all outputs, that have a number: a bound on memory
SEVERAL = "several"  # noted beside the summaries, where they are of more than one number


class Form:
    """Where the leaves of outputs stand: one for all that have the same places.

    Attributes
    ----------
    places : tuple of ndarray of int
        The numbers that `Places` has for those of numbers, of tokens, and of sets of members, in their order.
    counted : ndarray of int
        Those that a layout may read: of summaries only where they are of several numbers.
    """

    __slots__ = ("__weakref__", "counted", "places")

    def __init__(self, numbers: tuple[tuple[int, ...], ...], every: Sequence[Place]) -> None:
        self.places = tuple(np.array(several, dtype=np.intp) for several in numbers)
        found = [every[number] for number in numbers[0]]
        several = {path for path, what in found if what == SEVERAL}
        is_counted = [what != SEVERAL and (what not in SUMMARIES or path in several) for path, what in found]
        self.counted = np.concatenate([self.places[0][is_counted], self.places[1]])


TOO_MANY = object()  # in the place of leaves


class Places:
    """All places that outputs had, with a number for each, and the forms of outputs.

    Attributes
    ----------
    every : list of Place
        The places in the order of their numbers.
    root : Spot
        Where outputs begin.
    """

    def __init__(self) -> None:
        self.every: list[Place] = []
        self.root = Spot(())
        self._forms: weakref.WeakValueDictionary[tuple[tuple[int, ...], ...], Form] = weakref.WeakValueDictionary()
        self._lock = threading.Lock()  # audits may run in threads

    def number(self, spot: Spot, what: str) -> int:
        """The number of the place where this is read at a spot: a new one where it has none yet."""
        found = spot.numbers.get(what)
        if found is None:
            with self._lock:
                found = spot.numbers.get(what)
                if found is None:
                    found = spot.numbers[what] = len(self.every)
                    self.every.append((spot.path, what))
        return found

    def find(self, place: Place) -> int | None:
        """The number of a place; None where no output had it."""
        path, what = place
        spot: Spot | None = self.root
        for step in path:
            spot = spot.children.get(step) if spot is not None else None
        return None if spot is None else spot.numbers.get(what)

    def form(self, numbers: tuple[tuple[int, ...], ...]) -> Form:
        """That of an output with numbers, tokens and sets of members at the places of these numbers."""
        with self._lock:
            form = self._forms.get(numbers)
            if form is None:
                assert all(len({*kind}) == len(kind) for kind in numbers), "an output has one thing at a place"
                form = self._forms[numbers] = Form(numbers, self.every)
        return form


class Spot:
    """A path in outputs: the numbers of what is read there, and the paths that go on from it.

    Outputs are walked along spots, so that a path that was seen before is not built again.
    """

    __slots__ = ("children", "numbers", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.numbers: dict[str, int] = {}
        self.children: dict[str | int, Spot] = {}

    def child(self, step: str | int) -> Spot:
        """The path that goes on with a step."""
        found = self.children.get(step)
        return found if found is not None else self.children.setdefault(step, Spot((*self.path, step)))


NOTED = Places()  # those of leaves that are noted


class Leaves:
    """All leaves of one output: its form, and what is read at each place of it."""

    __slots__ = ("form", "members", "numbers", "tokens")

    def __init__(self, output: Any, known: Places = NOTED) -> None:
        places: tuple[list[int], ...] = ([], [], [])
        contents: tuple[list[Any], ...] = ([], [], [])
        _find(output, known.root, known, places, contents)
        self.form = known.form(tuple(map(tuple, places)))
        self.tokens: tuple[str, ...] = tuple(map(sys.intern, contents[1]))
        self.members: tuple[frozenset[str], ...] = tuple(contents[2])
        self.numbers = array.array("d", contents[0]).tobytes()

    def __len__(self) -> int:
        return len(self.tokens) + len(self.numbers) // 8 + sum(map(len, self.members))


def _find(
    value: Any, spot: Spot, known: Places, places: tuple[list[int], ...], contents: tuple[list[Any], ...]
) -> None:
    """Collect every leaf of one output from a spot on: the number of its place, and what is read there.

    `places` and `contents` have a list for numbers, one for tokens of categories and one for tokens of members.
    """
    of_numbers, numbers = places[0], contents[0]
    number = known.number
    value = plain(value)
    if is_number(value):
        of_numbers.append(number(spot, VALUE))
        numbers.append(number_of(value))
        if is_long(value):
            of_numbers.append(number(spot, LOW))
            numbers.append(float(value % LOW_MODULUS))
        return
    parts = parts_of(value)
    if parts.length is not None:
        of_numbers.append(number(spot, LENGTH))
        numbers.append(parts.length)
    if parts.category is not None:
        places[1].append(number(spot, CODE))
        contents[1].append(parts.category)
    if parts.members is not None:
        places[2].append(number(spot, HOLDS))
        contents[2].append(parts.members)
    if parts.sequence is not None:
        own = numbers_in(parts.sequence)
        for what, summary in summaries_of(own, len(parts.sequence)).items():
            of_numbers.append(number(spot, what))
            numbers.append(summary)
        if len(own) > 1:
            of_numbers.append(number(spot, SEVERAL))
            numbers.append(1.0)
    if len(spot.path) >= DEEPEST_LEAF:
        return
    if parts.letters:
        letters = spot.child(LETTERS)
        places[1].extend(number(letters.child(k), CODE) for k in range(len(parts.letters)))
        contents[1].extend(map(repr, parts.letters))
    for position, item in enumerate(parts.sequence[:LONGEST] if parts.sequence is not None else ()):
        _find(item, spot.child(position), known, places, contents)
    for token, item in (parts.items or {}).items():
        child = spot.child(token)
        of_numbers.append(number(child, PRESENT))
        numbers.append(1.0)
        _find(item, child, known, places, contents)
    if has_places(parts):
        of_numbers.extend(number(spot.child(token), PLACE) for token in parts.items or ())
        numbers.extend(map(float, range(len(parts.items or ()))))


def leaves_of(note: Notes, output: Any) -> Leaves | None:
    """The leaves of an output, noted now if they were not; None where there are too many to keep."""
    if note.leaves is None:
        leaves = Leaves(output) if len(NOTED.every) < MOST_PLACES else None
        most = MOST_SHARED if note.is_shared else MOST_NOTED
        note.leaves = leaves if leaves is not None and len(leaves) <= most else TOO_MANY
    return None if note.leaves is TOO_MANY else note.leaves
