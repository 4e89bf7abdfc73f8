"""The contract of the views that rules and bets read columns by, on top of that of `test_one_reading.py`.

What a view shows of an output is a function of that output alone, to the last bit, and a saved witness reads back as
the same function.
"""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from dpaudit.learning.scores import _view_from_dict
from dpaudit.reading.expanded import ExpandedLayout, learn_expanded_layouts, learn_expansions
from dpaudit.reading.nested import Layout, learn_layout
from dpaudit.reading.outcomes import Outcomes, Reading, from_objects, join, read_outputs
from dpaudit.reading.real_columns import paths_of, read_path
from dpaudit.reading.tallies import Tally
from dpaudit.reading.vectors import SUMMARIES, Scales, Steps, Summary

DRAWS = 60


def objects(side, draws=DRAWS):
    """Dictionaries with a number, a list, a word, a text that holds numbers, and at times nothing."""
    rng = np.random.default_rng([1, side])
    made = []
    for k in range(draws):
        one = {"mean": side + rng.normal(), "word": "yes" if rng.random() < 0.5 + 0.2 * side else "no"}
        one["log"] = f"value={rng.integers(0, 9)}; t={rng.normal():.3f}"
        one["list"] = rng.integers(0, 4, size=3).tolist()
        if k % 7 == 3:
            one = None
        elif k % 5 == 2:
            del one["list"]
        made.append(one)
    return read_outputs(made, draws)


def vectors(side, draws=DRAWS):
    """Running sums of five steps, a fifth of whose numbers is 0, with NaN and infinities among them."""
    rng = np.random.default_rng([2, side])
    numbers = np.cumsum(side + rng.normal(size=(draws, 5)), axis=1)
    numbers[rng.random(numbers.shape) < 0.2] = 0.0
    numbers[3, 1], numbers[4, 0], numbers[5, 2] = math.nan, math.inf, -math.inf
    return read_outputs(numbers, draws)


def summary():
    first, second = vectors(0), vectors(1)
    scales = Scales.of(first.numbers, second.numbers)
    return Summary(SUMMARIES, scales.centre, scales.divisor)


def steps():
    return Steps(Scales.of(vectors(0).numbers, vectors(1).numbers).divisor)


VIEWS = {
    "nested": (lambda: learn_layout(objects(0), objects(1))[0], objects),
    "expanded": (lambda: next(learn_expanded_layouts(objects(0), objects(1)))[0], objects),
    "summary": (summary, vectors),
    "steps": (steps, vectors),
    "tally": (lambda: Tally.between(vectors(0), vectors(1)), vectors),
}
# What has no names of columns, and is no data of a witness: how rules read, and how single numbers are read.
OTHERS = {
    "as objects": (lambda: Reading(0), objects),
    "as five numbers": (lambda: Reading(5), vectors),
    "numbers as objects": (lambda: Reading(0), vectors),
    "expansion": (lambda: learn_expansions(objects(0), objects(1))[0], objects),
    "a path": (lambda: Path(("mean",)), objects),
    "a column": (lambda: Path((2,)), vectors),
}


@dataclasses.dataclass(frozen=True)
class Path:
    """The numbers under one path, as a view."""

    path: tuple

    def __call__(self, outcomes):
        assert self.path in paths_of(outcomes)
        return Outcomes(read_path(outcomes, self.path)[:, None])


def shown(view, outcomes):
    """What is shown of each outcome: bits of numbers, and tokens."""
    seen = view(outcomes)
    assert len(seen) == len(outcomes)
    tokens = [""] * len(seen) if seen.tokens is None else seen.tokens.tolist()
    # NaN is one value here, whatever its sign and payload
    numbers = np.where(np.isnan(seen.numbers), math.nan, seen.numbers)
    return [(row.tobytes(), token) for row, token in zip(numbers, tokens, strict=True)]


def each_output_is_read_by_itself(view, outcomes):
    alone = [shown(_unchecked(view), outcomes.rows(slice(k, k + 1)))[0] for k in range(len(outcomes))]
    assert shown(view, outcomes) == alone


def places_and_neighbours_do_not_matter(view, outcomes):
    known = shown(view, outcomes)
    rows = [outcomes.rows(slice(k, k + 1)) for k in range(len(outcomes))]
    turned = join(rows[::-1])
    assert shown(view, turned) == known[::-1]
    twice = join([outcomes, turned])
    assert shown(view, twice) == known + known[::-1]


def it_looks_at_outputs_and_leaves_them(view, outcomes):
    before = outcomes.numbers.copy(), list(outcomes.raw)
    known = shown(view, outcomes)
    assert shown(view, outcomes) == known
    np.testing.assert_array_equal(outcomes.numbers, before[0])
    assert list(outcomes.raw) == before[1]


def notes_change_nothing(view, outcomes):
    noted = outcomes.with_notes()
    assert shown(view, noted) == shown(view, outcomes)
    assert shown(view, noted) == shown(view, outcomes)  # what was noted the first time


def none_is_none(view, outcomes):
    seen = view(outcomes.rows(slice(0, 0)))
    assert len(seen) == 0


def every_column_has_a_name_of_its_own(view, outcomes):
    columns = view(outcomes).numbers.shape[1]
    names = [view.name_of(column) for column in range(columns)]
    assert columns > 0 and all(names) and len(set(names)) == columns
    assert view.of_columns


def named_values_are_those_that_are_shown(view, outcomes):
    numbers = view(outcomes).numbers
    for column in range(numbers.shape[1]):
        values = view.values_of(column)
        if values is not None:
            seen = numbers[:, column]
            assert set(seen[~np.isnan(seen)].tolist()) <= set(values)
            assert len(set(values.values())) == len(values)


def it_reads_back_as_the_same_function(view, outcomes):
    again = _view_from_dict(json.loads(json.dumps(view.to_dict(), allow_nan=False)))
    assert shown(again, outcomes) == shown(view, outcomes)
    assert again.to_dict() == view.to_dict()


READS = [
    each_output_is_read_by_itself,
    places_and_neighbours_do_not_matter,
    it_looks_at_outputs_and_leaves_them,
    notes_change_nothing,
    none_is_none,
]
NAMES = [every_column_has_a_name_of_its_own, named_values_are_those_that_are_shown, it_reads_back_as_the_same_function]


def _unchecked(view):
    """A path may be in none of a few outputs."""
    return (lambda outcomes: Outcomes(read_path(outcomes, view.path)[:, None])) if isinstance(view, Path) else view


@pytest.mark.parametrize("holds", READS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", [*VIEWS, *OTHERS])
def test_the_contract_of_views(kind, holds):
    make, outputs = {**VIEWS, **OTHERS}[kind]
    holds(_unchecked(make()), outputs(1))


@pytest.mark.parametrize("holds", NAMES, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", VIEWS)
def test_the_contract_of_views_with_names(kind, holds):
    make, outputs = VIEWS[kind]
    holds(make(), outputs(1))


def test_every_view_of_the_registry_is_held_to_the_contract():
    kinds = {make().to_dict()["kind"] for make, _ in VIEWS.values()}
    assert kinds == {"layout", "expanded", "summary", "steps", "tally"}
    assert {type(make()) for make, _ in VIEWS.values()} == {Layout, ExpandedLayout, Summary, Steps, Tally}


@pytest.mark.parametrize("kind", ["as objects", "nested"])
def test_the_form_of_a_batch_does_not_show(kind):
    """Numbers beside a text are held as objects: each is read as it is among numbers alone."""
    numbers = np.random.default_rng(3).normal(size=20).tolist()
    alone, mixed = read_outputs(numbers, 20), read_outputs([*numbers, "text"], 21)
    assert alone.tokens is None and mixed.tokens is not None
    view = Reading(0) if kind == "as objects" else learn_layout(mixed, mixed)[0]
    assert shown(view, alone) == shown(view, mixed)[:-1]
    assert shown(Reading(1), alone) == shown(Reading(1), mixed)[:-1]


# --- twins ---


class Centred(Steps):
    """Takes the mean of the batch away: an output shows what lies beside it."""

    def __call__(self, outcomes):
        seen = super().__call__(outcomes)
        return Outcomes(seen.numbers - np.nanmean(np.where(np.isfinite(seen.numbers), seen.numbers, 0.0), axis=0))


class Numbered(Steps):
    """Shows the place in the batch."""

    def __call__(self, outcomes):
        seen = super().__call__(outcomes).numbers
        return Outcomes(np.concatenate([seen, np.arange(len(seen), dtype=float)[:, None]], axis=1))


class Cuts(Steps):
    """Writes into what it was shown."""

    def __call__(self, outcomes):
        outcomes.numbers[:, 0] = np.minimum(outcomes.numbers[:, 0], 0.0)
        return super().__call__(outcomes)


class NeedsOne(Steps):
    """Has nothing to show of no outputs."""

    def __call__(self, outcomes):
        outcomes.numbers[0]
        return super().__call__(outcomes)


class OneName(Steps):
    """Calls all columns by one name."""

    def name_of(self, column):
        return "a step"


class TwoValues(Steps):
    """Says that a number is one of two values."""

    def values_of(self, column):
        return {0.0: "no", 1.0: "yes"}


class Rounded(Steps):
    """Saves its numbers to three digits."""

    def to_dict(self):
        return {"kind": "steps", "spread": [float(f"{value:.3g}").hex() for value in self.spread]}

    @classmethod
    def from_dict(cls, record):
        return cls(np.array([float.fromhex(value) for value in record["spread"]]))


class Forgets(Layout):
    """Notes what it saw of the first batch, and shows it again."""

    def __call__(self, outcomes):
        seen = super().__call__(outcomes)
        if outcomes.notes and outcomes.notes[0].form is None:
            for note in outcomes.notes:
                note.form = "seen"
            return Outcomes(seen.numbers + 1.0)
        return seen


@pytest.mark.parametrize(
    ("twin", "broken"),
    [
        (Centred, each_output_is_read_by_itself),
        (Numbered, places_and_neighbours_do_not_matter),
        (Cuts, it_looks_at_outputs_and_leaves_them),
        (Forgets, notes_change_nothing),
        (NeedsOne, none_is_none),
        (OneName, every_column_has_a_name_of_its_own),
        (TwoValues, named_values_are_those_that_are_shown),
        (Rounded, it_reads_back_as_the_same_function),
    ],
)
def test_a_twin_that_breaks_the_contract_is_caught(twin, broken):
    if twin is Forgets:
        view, outcomes = Forgets(learn_layout(objects(0), objects(1))[0].leaves), objects(1)
    else:
        view, outcomes = twin(steps().spread), vectors(1)
    with pytest.raises((AssertionError, IndexError)):
        broken(view, outcomes)


def test_objects_of_this_test_hold_what_the_views_look_for():
    assert from_objects([{"a": 1}]).tokens is not None
    assert learn_layout(objects(0), objects(1)) and Tally.between(vectors(0), vectors(1)) is not None
