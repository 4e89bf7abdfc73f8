"""The witness: a frozen rule in words, and as data that is read back and fits.

Words are examples and have no error rate. Audits have fixed seeds; their losses are well over their claims.
"""

import dataclasses
import json
import math

import numpy as np
import pytest

import dpaudit
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference import witness
from dpaudit.inference.betting import Betting
from dpaudit.inference.exact import ExactTest
from dpaudit.inference.learning_state import LearningState
from dpaudit.inference.protocols import Training
from dpaudit.inference.tables import N_BINS, Predicted, Round
from dpaudit.privacy.claims import PureDP


def laplace(data, size, rng):
    return data + rng.laplace(scale=0.5, size=size)


def wider(data, size, rng):
    return (1.0 + 4.0 * data) * rng.laplace(size=size)


def word(data, size, rng):
    return [{"a": float(u), "kind": "red" if v < 0.1 + 0.8 * data else "blue"} for u, v in rng.random((size, 2))]


def key(data, size, rng):
    return [{"a": float(u), **({"extra": 1} if v < 0.1 + 0.8 * data else {})} for u, v in rng.random((size, 2))]


def odd(data, size, rng):
    return 2 * rng.integers(0, 1_000, size=size) + (rng.random(size) < 0.1 + 0.8 * data)


def several(data, size, rng):
    return rng.normal(size=(size, 10)) + 0.5 * data * (-1.0) ** np.arange(10)


def fitted(mechanism, size, seed=1):
    rng = np.random.default_rng(seed)
    first, second = (read_outputs(mechanism(x, size, rng), size) for x in (1.0, 0.0))
    state = LearningState()
    state.learn(Training(first, second))
    return state


def words_of(state):
    return witness.describe(state.counter.mixture, state.shown, 0.75, 0.25, "one", "zero")


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (laplace, ["Look at the output: guess zero where it is at most ", "; guess one where it is above "]),
        (wider, ["guess one where it is at most -", " or above "]),
        (word, ["Look at the category of the output['kind']: guess zero where it is 'blue'", "is 'red'"]),
        (key, ["the output['extra']: guess zero where it is missing; guess one where it is "]),
        (odd, ["Look at the output modulo 2: guess zero where it is 0; guess one where it is 1."]),
    ],
    ids=["one-sided", "two tails", "a text", "a key", "a remainder"],
)
def test_a_rule_of_one_column_is_said_by_its_intervals_or_texts(mechanism, words):
    said = words_of(fitted(mechanism, 1_500))
    assert all(one in said for one in words), said
    assert len(said) < 150


def test_words_that_are_only_a_shadow_of_the_rule_say_so():
    """Of probabilities that follow no view, no interval has nine tenths of the guesses."""
    state = fitted(several, 1_500)
    shown = dataclasses.replace(state.shown, q=np.random.default_rng(1).random(len(state.shown.q)))
    said = witness.describe(state.counter.mixture, shown, 0.75, 0.25, "one", "zero")
    assert said.startswith(("The rule is ", "The rule weighs ")), said
    assert "shadow" in said or "by its odds" in said


def test_where_no_guess_is_worth_it_nothing_is_said_to_tell():
    state = fitted(lambda data, size, rng: rng.laplace(size=size), 500)
    said = witness.describe(state.counter.mixture, state.shown, math.inf, 0.0, "one", "zero")
    assert said == "No rule was found that tells one from zero better than the claim allows."


@pytest.mark.parametrize("mechanism", [laplace, wider, word, several, odd])
def test_the_record_is_small_plain_data_and_guesses_as_the_rule_does(mechanism):
    """Of 4,000 draws a side whole records reach megabytes. Nine of ten fresh draws fall within three bins of before."""
    state = fitted(mechanism, 4_000)
    mixture, predicted = state.counter.mixture, state.rounds[-1].predicted
    record = witness.rule_record(mixture, predicted)
    text = json.dumps(record, allow_nan=False)
    assert len(text) <= 100_000
    again, told = witness.rule_from_record(json.loads(text))
    assert np.array_equal(told.q, predicted.q) and np.array_equal(told.mass, predicted.mass)
    fresh = read_outputs(mechanism(1.0, 2_000, np.random.default_rng(2)), 2_000)
    before, after = (np.log(q / (1.0 - q)) for q in (mixture(fresh), again(fresh)))
    assert np.mean(np.abs(before - after) < 0.5) > 0.9


def test_a_rule_that_was_frozen_counts_as_the_test_that_it_is_of():
    """The same bins, and so the same record to the last count: a rule given is asked as it is."""
    result = dpaudit.audit(laplace, "eps=1", [(1.0, 0.0)], samples=1_000, seed=1, mode="fixed", floating_point=False)
    record = result.findings[0].witness.rule
    mixture, predicted = witness.rule_from_record(record)
    test = ExactTest.frozen(PureDP(1.0), 2_000, mixture, predicted)
    test.guess(0.05)
    assert 0 < test.rule.first_up <= N_BINS and test.rule.directions != (False, False)
    test.start(0.05)
    rng = np.random.default_rng(3)
    test.add(*(test.statistic.count(read_outputs(laplace(x, 1_000, rng), 1_000)) for x in (1.0, 0.0)))
    test.update()
    assert sum(test.counts) == 2_000 and 1.0 < test.lower < 2.0  # the truth is 2: above it with probability 0.05


def test_what_the_only_round_counts_does_not_choose_its_rule():
    """A fit behind that round may have learned its draws; the rule of its counts is that of before."""
    claim = PureDP(1.0)
    state = fitted(laplace, 500)
    test = Betting.frozen(claim, 400, state.counter.mixture, state.rounds[-1].predicted)
    test.start(0.05)
    test.rounds[0].counts[:] = np.random.default_rng(1).integers(0, 9, (2, N_BINS))
    alone = test.counts
    flipped = Predicted(1.0 - state.rounds[-1].predicted.q[::-1], state.rounds[-1].predicted.mass)
    test.rounds.append(Round.of(Predicted(np.where(flipped.q > 0.5, 0.99, 0.01), flipped.mass)))
    assert test.counts == alone
