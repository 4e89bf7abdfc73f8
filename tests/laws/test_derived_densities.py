"""Densities and listed laws of derived subjects: exact where they are there, and of what is sampled."""

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit import laws
from dpaudit.exact import FiniteMechanism, privacy_loss
from dpaudit.features.outcomes import read_outputs
from dpaudit.laws import LAWS
from dpaudit.privacy.claims import PureDP
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.randomised_response import RandomisedResponse

# Logarithms, exponentials and sums of at most a few dozen terms, each off by a few 2**-53: below 1e-14.
ROUNDING = 1e-12
SUM_OF_TWO = 1e-15  # a sum of a few exact products of two: at most 4 roundings of 2**-53

BY_NAME = {law.name: law for law in LAWS}
# A chi-square test below rejects a right sampler with probability 1e-6 (fixed seed), some 20 of them.
LEVEL = 1e-6


def stream(seed=7):
    return np.random.default_rng(seed)


def fits(outputs, probabilities):
    """Whether the rows of outputs, numbered 0.., fit their probabilities."""
    counts = np.bincount(np.asarray(outputs, dtype=int), minlength=len(probabilities))
    return stats.chisquare(counts, np.asarray(probabilities) * counts.sum()).pvalue > LEVEL


# ---- exact densities -------------------------------------------------------------------------------------------------


def law_of(subject, data, outcomes):
    return np.exp(np.asarray(subject.log_density(data, outcomes)))


def test_the_density_of_a_conditioned_mechanism_needs_the_exact_mass_or_a_listed_law():
    mechanism = FiniteMechanism([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]])

    def first_two(outputs):
        return np.asarray(outputs) < 2

    without, _ = laws.conditioning(mechanism, PureDP(1.0), first_two)
    assert np.exp(without.log_density(0, [0.0, 2.0])).tolist() == pytest.approx([2 / 3, 0.0])  # its law is listed
    subject, _ = laws.conditioning(mechanism, PureDP(1.0), first_two, event_mass=lambda data: 0.75)
    np.testing.assert_allclose(law_of(subject, 0, np.arange(3.0)), [2 / 3, 1 / 3, 0.0], rtol=ROUNDING)


# ---- listed laws -----------------------------------------------------------------------------------------------------


LISTED = [law for law in LAWS if not law.name.endswith(("flipping", "jitter"))]


@pytest.mark.parametrize("law", LISTED, ids=lambda law: law.name)
def test_what_is_derived_from_a_listed_law_is_listed_and_sampled_alike(law):
    mechanism = FiniteMechanism([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])
    subject, claim = law.derive(mechanism, PureDP(math.log(6.0)), [(0, 1), (1, 2)])
    for pair in subject.pairs():
        for data in (pair.x, pair.x_prime):
            probabilities = subject.distribution(data)
            assert probabilities.sum() == pytest.approx(1.0, abs=1e-14) and len(subject.outcomes) == len(probabilities)
        # The claim, exactly: both sides on the listed law. 1e-12: logs of numbers above 1e-3.
        rows = np.stack([subject.distribution(pair.x), subject.distribution(pair.x_prime)])
        assert privacy_loss(*rows) <= claim.for_pair(pair.x, pair.x_prime).value + 1e-12
    data = subject.pairs()[0].x
    listed = read_outputs(subject.outcomes, len(subject.outcomes)).as_objects().tokens
    tokens = {token: k for k, token in enumerate(listed)}
    assert len(tokens) == len(subject.outcomes)
    drawn = read_outputs(subject.sample(data, 5_000, stream()), 5_000).as_objects().tokens
    probabilities = subject.distribution(data)
    if len(probabilities) > 1:
        assert np.all(probabilities > 0.0) and fits([tokens[token] for token in drawn], probabilities)
        skewed = probabilities * np.where(np.arange(len(probabilities)) % 2, 1.3, 0.7)  # the control: it must not fit
        assert not fits([tokens[token] for token in drawn], skewed / skewed.sum())
    np.testing.assert_allclose(law_of(subject, data, subject.outcomes), probabilities, rtol=ROUNDING)


def test_continuous_and_randomised_laws_are_not_listed_and_very_long_ones_neither():
    laplace, _ = BY_NAME["sequential composition"].derive(Laplace(1.0), PureDP(1.0))
    assert not hasattr(laplace, "outcomes") and not hasattr(laplace, "distribution")
    for name, mechanism in (("flipping", RandomisedResponse(1.0)), ("rounding", Laplace(1.0))):
        image, _ = BY_NAME[f"post-processing by {name}"].derive(mechanism, PureDP(1.0))
        assert not hasattr(image, "distribution") and not hasattr(image, "log_density")
    many, _ = laws.sequential_composition([RandomisedResponse(1.0, 101)] * 2, [PureDP(1.0)] * 2)
    assert not hasattr(many, "outcomes") and hasattr(many, "log_density")


def test_an_adaptive_law_is_listed_also_where_the_mechanisms_differ():
    two, three = RandomisedResponse(1.0, 2), RandomisedResponse(2.0, 3)
    claims = [PureDP(1.0), PureDP(2.0)]
    subject, _ = laws.adaptive_composition(two, PureDP(1.0), [two, three], claims, lambda y: np.asarray(y, dtype=int))
    assert subject.outcomes.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]]
    first = two.distribution(1)
    expected = np.concatenate([first[0] * two.distribution(1), first[1] * three.distribution(1)])
    np.testing.assert_allclose(subject.distribution(1), expected, rtol=SUM_OF_TWO)
    np.testing.assert_allclose(law_of(subject, 1, subject.outcomes), expected, rtol=ROUNDING)
