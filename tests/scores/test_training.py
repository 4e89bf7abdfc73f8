"""Audits of a training that is called: the example, its faulty twins, and what their records show."""

import numpy as np
import pytest
from scipy import special, stats

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.scores.training import audit_training, example


def test_the_sound_example_is_at_its_claim():
    """mu = 1 for each canary: the bound of 2,000 canaries is above .8 (four deviations: 6e-5) and not above 1.

    The latter fails for one seed in 20; this one is not among them.
    """
    result = audit_training(example(), "mu=1", canaries=2_000, seed=1, assume="independent")
    assert result.verdict == "not_refuted" and 0.8 < result.independent.parameter_lower <= 1.0
    assert not any("atches" in note or "anaries" in note for note in result.notes)


@pytest.mark.parametrize("fault, said", [
    ("shuffled batches", "All examples were in equally many batches"),
    ("larger batches", "Batches had 0."),
    ("canaries from the data", "Canaries look like the training examples"),
])  # fmt: skip
def test_twins_that_a_record_shows_are_noted(fault, said):
    result = audit_training(example(fault), "mu=1", canaries=500, seed=2)
    assert any(note.startswith(said) for note in result.notes)


def test_clipping_after_averaging_is_a_violation():
    assert audit_training(example("clipped after averaging"), "mu=1", canaries=500, seed=3).verdict == "violated"


def test_a_number_of_guesses_that_was_chosen_by_looking_is_noted():
    """Randomised response: the best of all numbers; 40 stated ones, of which by chance one or two are the best."""
    rng = np.random.default_rng(4)
    noted = 0
    for _ in range(40):
        is_in = rng.random(400) < 0.5
        scores = np.where(rng.random(400) < special.expit(0.5), is_in, ~is_in) + 0.1 * rng.random(400)
        sides = scores[is_in], scores[~is_in]
        order = is_in[np.argsort(-scores)]
        right = [order[: r - r // 2].sum() + np.sum(~order[400 - r // 2 :]) for r in range(1, 401)]
        best = 1 + int(np.argmax(special.betaincinv(np.maximum(right, 1), np.arange(1, 401) - right + 1.0, 0.05)))
        looked = dpaudit.audit_scores(*sides, claim="eps=1", guesses=best)
        assert any(note.startswith("The stated number of guesses") for note in looked.notes)
        stated = dpaudit.audit_scores(*sides, claim="eps=1", guesses=200)
        noted += any(note.startswith("The stated number of guesses") for note in stated.notes)
    assert stats.binom.sf(11, 40, 1.0 / 20.0) < 1e-6 and noted < 12


@pytest.mark.parametrize("train, message", [
    (lambda is_in, rng: np.zeros(3), r"a score for each canary, shape \(50,\), got \(3,\)"),
    (lambda is_in, rng: ["x"] * 50, "a score for each canary, got could not convert"),
])  # fmt: skip
def test_a_training_must_return_a_score_for_each_canary(train, message):
    with pytest.raises(UsageError, match=message):
        audit_training(train, "mu=1", canaries=50)


def test_one_training_is_of_no_other_design():
    # the canaries of one training, taken for independent runs, were audited as such
    with pytest.raises(UsageError, match="option of audit_training must be one that it has, got 'design'"):
        audit_training(example(), "mu=1", canaries=10, design="many-runs")


def test_signals_of_steps_are_added_up():
    def signals(is_in, rng):
        return rng.normal(size=(len(is_in), 4)) + is_in[:, None]

    def added(is_in, rng):
        return signals(is_in, rng).sum(axis=1)

    one, other = (audit_training(train, "mu=2", canaries=300, seed=5) for train in (signals, added))
    assert one.parameter_lower == other.parameter_lower and one.independent == other.independent
