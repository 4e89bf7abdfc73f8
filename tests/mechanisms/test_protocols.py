"""Every reference mechanism offers what the protocol asks for, and every faulty twin hides behind a sound claim."""

import dataclasses

import numpy as np
import pytest
from support.reference_mechanisms import TWINS

from dpaudit.privacy.pairs import as_pairs
from dpaudit.subjects.protocol import Mechanism
from dpaudit_mechanisms.gaussian import Gaussian

BOTH = [(sound, twin) for sound, twin, _ in TWINS]


@pytest.mark.parametrize("mechanism", [one for both in BOTH for one in both], ids=lambda one: type(one).__name__)
def test_a_mechanism_offers_samples_densities_a_claim_and_pairs(mechanism):
    assert isinstance(mechanism, Mechanism) and mechanism.claim is not None
    pairs = as_pairs(mechanism.pairs())
    assert len({pair.id for pair in pairs}) == len(pairs)
    for pair in pairs:
        samples = mechanism.sample(pair.x, 7, np.random.default_rng(1))
        assert len(samples) == 7
        logs = mechanism.log_density(pair.x_prime, samples)
        assert logs.shape == (7,) and np.isfinite(logs).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 2.0


@pytest.mark.parametrize(("sound", "twin"), BOTH, ids=lambda one: type(one).__name__)
def test_a_twin_states_the_sound_claim_on_the_same_pairs_and_loses_more(sound, twin):
    assert str(twin.claim) == str(sound.claim)
    assert [pair.id for pair in twin.pairs()] == [pair.id for pair in sound.pairs()]
    first = sound.pairs()[0]
    promised = sound.claim.for_pair(first.x, first.x_prime)
    assert twin.claim.for_pair(first.x, first.x_prime) == promised
    if isinstance(sound, Gaussian):
        assert twin.mu(first.x, first.x_prime) > 1.19 * sound.mu(first.x, first.x_prime)
    else:
        assert sound.privacy_loss(first.x, first.x_prime) <= promised.value * (1.0 + 1e-12)
        assert twin.privacy_loss(first.x, first.x_prime) > 1.05 * promised.value
    assert "promised" in twin.fault
