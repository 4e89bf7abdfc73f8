"""The contract of reading at what a test counts: it is a function of a single output.

It must not show its batch, its place in it, or the form in which the batch is held. Then reading is post-processing of
single outputs, and cannot make a sound mechanism look unsound: an auditor whose reading of an output depended on the
rest of its batch refuted sound mechanisms in 25% to 37% of audits at a nominal 5%.

Checks ask what is counted, of each row of `implementations.TESTS` and of `read_as`, on outputs of several forms. Twins
break the contract, each in one place.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from implementations import CLAIMS, TESTS

from dpaudit.features.outcomes import Outcomes, join, read_outputs
from dpaudit.inference.protocols import Training

TRAINING, FRESH = 120, 24
LEVEL = 0.05


# --- outputs: lists of them, from a side (0 or 1) and a number of draws ---


def numbers(side, draws):
    """A number, at times a whole one, NaN, an infinity or a negative zero."""
    rng = np.random.default_rng([1, side, draws])
    made = (side + rng.normal(size=draws)).tolist()
    made[3], made[5], made[7], made[8], made[9] = math.nan, math.inf, -0.0, 0.0, 2.0
    return made


def vectors(side, draws):
    """Five numbers, a fifth of them 0."""
    rng = np.random.default_rng([2, side, draws])
    made = np.cumsum(side + rng.normal(size=(draws, 5)), axis=1)
    made[rng.random(made.shape) < 0.2] = 0.0
    made[3, 1], made[4, 0] = math.nan, math.inf
    return made.tolist()


def matrices_or_nothing(side, draws):
    """What once cost 25% to 37% of false alarms."""
    rng = np.random.default_rng([3, side, draws])
    return [None if rng.random() < 0.1 else side + rng.normal(size=(2, 2)) for _ in range(draws)]


def integers_or_texts(side, draws):
    """Counts, as numpy has them, beside a refusal; numbers among them are alone in many batches."""
    rng = np.random.default_rng([6, side, draws])
    return ["refused" if rng.random() < 0.1 else rng.integers(0, 9) + 4 * side for _ in range(draws)]


def rows_of_integers_or_nothing(side, draws):
    rng = np.random.default_rng([7, side, draws])
    return [None if rng.random() < 0.1 else rng.integers(0, 3, size=4) + side for _ in range(draws)]


def tuples_or_lists(side, draws):
    rng = np.random.default_rng([8, side, draws])
    made = [(side + rng.normal(size=3)).tolist() for _ in range(draws)]
    return [tuple(one) if k % 2 else one for k, one in enumerate(made)]


def texts(side, draws):
    rng = np.random.default_rng([4, side, draws])
    return ["yes" if rng.random() < 0.5 + 0.3 * side else f"no, {rng.integers(0, 3)}" for _ in range(draws)]


def objects(side, draws):
    """Dictionaries with a number, a list, a word, a text that holds numbers, and at times nothing."""
    rng = np.random.default_rng([5, side, draws])
    made = []
    for k in range(draws):
        one = {"mean": side + rng.normal(), "word": "yes" if rng.random() < 0.5 + 0.2 * side else "no"}
        one["log"] = f"value={rng.integers(0, 9)}; t={rng.normal():.3f}"
        one["list"] = rng.integers(0, 4, size=3).tolist()
        if k % 5 == 2:
            del one["list"]
        made.append(None if k % 7 == 3 else one)
    return made


def signs_of_zero(side, draws):
    """Zeros whose sign tells, which a sort may lose, beside other numbers."""
    rng = np.random.default_rng([9, side, draws])
    zeros = np.where(rng.random(draws) < 0.2 + 0.6 * side, 0.0, -0.0)
    return np.where(rng.random(draws) < 0.6, zeros, rng.normal(size=draws)).tolist()


OUTPUTS = {
    made.__name__: made
    for made in (
        numbers,
        signs_of_zero,
        vectors,
        matrices_or_nothing,
        integers_or_texts,
        rows_of_integers_or_nothing,
        tuples_or_lists,
        texts,
        objects,
    )
}

# --- readers: what is counted of a batch, as a counter that adds up ---

Count = Callable[[Outcomes], Counter]


def counter_of(statistic) -> Count:
    """What a statistic counts, by cell."""
    return lambda outcomes: Counter({k: int(n) for k, n in enumerate(statistic.count(outcomes)) if n})


def shown_by(view) -> Count:
    """How many outcomes show what, to the bits of their numbers; NaN is one value, whatever its sign and payload."""

    def count(outcomes):
        seen = view(outcomes)
        tokens = [""] * len(seen) if seen.tokens is None else seen.tokens.tolist()
        held = np.where(np.isnan(seen.numbers), math.nan, seen.numbers)
        return Counter((row.tobytes(), token) for row, token in zip(held, tokens, strict=True))

    return count


def statistic_of(row, claim, made):
    test = row.make(claim, 1_000)
    test.prepare(Training(*(read_outputs(made(side, TRAINING), TRAINING) for side in (0, 1))), LEVEL)
    test.start(LEVEL)
    return test.statistic


# --- the contract ---


def read(outputs):
    return read_outputs(outputs, len(outputs))


def each_output_is_read_by_itself(count, outputs):
    known = count(read(outputs))
    assert known == sum((count(read([one])) for one in outputs), Counter())
    assert known == sum((count(read(outputs).rows(slice(k, k + 1))) for k in range(len(outputs))), Counter())


def places_and_neighbours_do_not_matter(count, outputs):
    known = count(read(outputs))
    assert count(read(outputs[::-1])) == known
    assert count(read(outputs[::2])) + count(read(outputs[1::2])) == known
    assert count(join([read(outputs), read(outputs[::-1])])) == known + known


def strangers_do_not_matter(count, outputs):
    """A text, nothing, a list of another length or a large number beside them changes the form of the batch alone."""
    known = count(read(outputs))
    for stranger in ("a text", None, [0.5] * 9, {"b": 1}, 1e300):
        beside = count(read([*outputs, stranger]))
        assert beside == known + count(read([stranger]))
        assert count(join([read([stranger]), read(outputs)])) == beside


def forms_do_not_matter(count, outputs):
    """Arrays, lists, tuples and what a worker sends back hold one and the same outputs."""
    known = count(read(outputs))
    held = np.empty(len(outputs), dtype=object)
    for k, output in enumerate(outputs):
        held[k] = output
    for form in (tuple(outputs), iter(outputs), held, *([np.array(outputs)] if _are_numbers(outputs) else [])):
        assert count(read_outputs(form, len(outputs))) == known
    assert count(pickle.loads(pickle.dumps(read(outputs)))) == known
    assert count(read(outputs).kept()) == known


def it_looks_at_outputs_and_leaves_them(count, outputs):
    outcomes = read(outputs)
    before = outcomes.numbers.copy(), copy.deepcopy(outcomes.raw)
    known = count(outcomes)
    assert count(outcomes) == known
    np.testing.assert_array_equal(outcomes.numbers, before[0])
    assert repr(outcomes.raw) == repr(before[1])


def none_is_none(count, outputs):
    assert not count(read(outputs).rows(slice(0, 0)))


def _are_numbers(outputs):
    return all(isinstance(one, float) or (isinstance(one, list) and len(one) == 5) for one in outputs)


CONTRACT = [
    each_output_is_read_by_itself,
    places_and_neighbours_do_not_matter,
    strangers_do_not_matter,
    forms_do_not_matter,
    it_looks_at_outputs_and_leaves_them,
    none_is_none,
]


@pytest.mark.parametrize("made", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize(("name", "kind"), list(zip(TESTS, ("eps", "rho"), strict=True)))
def test_what_a_test_counts_of_an_output_is_a_function_of_it(name, made, kind):
    statistic = statistic_of(TESTS[name], CLAIMS[kind], made)
    counts = statistic.count(read(made(1, FRESH)))
    assert counts.sum() >= FRESH and counts.dtype.kind == statistic.zeros().dtype.kind == "i"  # every draw is somewhere
    assert not statistic.zeros().any()
    for holds in CONTRACT:
        holds(counter_of(statistic), made(1, FRESH))


@pytest.mark.parametrize("holds", CONTRACT, ids=lambda check: check.__name__)
@pytest.mark.parametrize("columns", [0, 1, 5], ids=["as objects", "as a number", "as five numbers"])
@pytest.mark.parametrize("made", OUTPUTS.values(), ids=OUTPUTS)
def test_the_contract_of_readings(made, columns, holds):
    holds(shown_by(lambda outcomes: outcomes.read_as(columns)), made(1, FRESH))


# --- twins ---


class OfBatch:
    """The reading of five numbers, with a change that a subclass makes."""

    def __call__(self, outcomes):
        return Outcomes(self.changed(outcomes.read_as(5).numbers, outcomes))


class Centred(OfBatch):
    """Takes the mean of the batch away: an output shows what lies beside it."""

    def changed(self, seen, outcomes):
        return seen - np.nanmean(np.where(np.isfinite(seen), seen, 0.0), axis=0)


class Numbered(OfBatch):
    """Shows the place in the batch."""

    def changed(self, seen, outcomes):
        return np.concatenate([seen, np.arange(len(seen), dtype=float)[:, None]], axis=1)


class ShowsTheForm(OfBatch):
    """Shows whether the batch was held as objects."""

    def changed(self, seen, outcomes):
        return seen + float(outcomes.tokens is not None)


class TellsArrays(OfBatch):
    """Shows whether the numbers own their memory, as those that are copied do."""

    def changed(self, seen, outcomes):
        return seen + float(outcomes.numbers.flags.owndata)


class Cuts(OfBatch):
    """Writes into what it was shown."""

    def changed(self, seen, outcomes):
        outcomes.numbers[:, 0] = 7.0
        return seen


class NeedsOne(OfBatch):
    """Has something to show of no outputs."""

    def changed(self, seen, outcomes):
        return seen if len(seen) else np.zeros((1, 5))


@pytest.mark.parametrize(
    ("twin", "broken", "made"),
    [
        (Centred, each_output_is_read_by_itself, vectors),
        (Numbered, places_and_neighbours_do_not_matter, vectors),
        (ShowsTheForm, strangers_do_not_matter, vectors),
        (TellsArrays, forms_do_not_matter, vectors),
        (Cuts, it_looks_at_outputs_and_leaves_them, vectors),
        (NeedsOne, none_is_none, vectors),
    ],
)
def test_a_twin_that_breaks_the_contract_is_caught(twin, broken, made):
    with pytest.raises(AssertionError):
        broken(shown_by(twin()), made(1, FRESH))


def test_a_statistic_that_sees_the_form_of_its_batch_is_caught():
    """Counts an output in one cell where its batch is numbers alone, and in another one elsewhere."""

    class OfForm:
        def count(self, outcomes):
            return np.array([len(outcomes), 0][:: 1 if outcomes.tokens is None else -1])

    for broken, made in ((strangers_do_not_matter, numbers), (each_output_is_read_by_itself, matrices_or_nothing)):
        with pytest.raises(AssertionError):
            broken(counter_of(OfForm()), made(1, FRESH))
