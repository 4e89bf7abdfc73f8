"""Generators that subjects are given do not say that an audit made them, whatever asks the subject."""

from __future__ import annotations

import numpy as np
import pytest

import dpaudit


class Watching:
    """Laplace noise, and what its generators show of where they come from."""

    claim = dpaudit.PureDP(1.0)

    def __init__(self):
        self.seen = []

    def sample(self, data, size, rng):
        sequence = rng.bit_generator.seed_seq
        self.seen.append((type(rng.bit_generator), sequence.spawn_key, sequence.n_children_spawned, sequence.entropy))
        return data + rng.laplace(scale=0.5, size=size)

    def pairs(self):
        return [(0.0, 1.0)]


def audited(subject):
    return dpaudit.audit(subject, samples=1_000, seed=3, grey_box=True)


def replayed(subject):
    result = audited(subject)
    dpaudit.replay(result, subject, dpaudit.PureDP(1.0), samples=100, seed=4)


def planned(subject):
    dpaudit.plan(subject, samples=1_000, seed=3)


def searched(subject):
    search = dpaudit.Search(dpaudit.domains.NumberDomain(0.0, 5.0), budget=2_000, grey_box=True)
    dpaudit.audit(subject, pairs=search, samples=1_000, seed=3)


@pytest.mark.parametrize("use", [audited, replayed, planned, searched], ids=lambda use: use.__name__)
def test_a_generator_looks_like_anybody_elses(use):
    subject = Watching()
    use(subject)
    kinds, keys, spawned, entropies = map(set, zip(*subject.seen, strict=True))
    assert (kinds, keys, spawned) == ({np.random.PCG64}, {()}, {0})
    # 128 bits, as the entropy of the system has: a smaller one is a seed that somebody chose (chance below 2^-60 each).
    assert min(entropy.bit_length() for entropy in entropies) > 64
