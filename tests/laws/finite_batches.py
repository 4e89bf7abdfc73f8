"""Batches of random finite mechanisms for the exact checks of the laws, from fixed seeds."""

import exact_laws
import numpy as np
import pytest
from hypothesis import settings

from dpaudit import strategies
from dpaudit.exact import tempered
from dpaudit.privacy.claims import PureDP

EACH = 400  # of each of the 5 kinds
FIXED = settings(derandomize=True, deadline=None, max_examples=60, database=None)
KINDS = pytest.mark.parametrize("kind", strategies.KINDS)
MEASURES = [{}, {"epsilon": 0.0}, {"epsilon": 0.3}, {"epsilon": 1.0}, {"order": 1.5}, {"order": 8.0}]


def drawn(seed, kind, inputs=3, outcomes=4, count=EACH):
    rng = np.random.default_rng([seed, strategies.KINDS.index(kind)])
    return strategies.random_mechanisms(rng, count, inputs, outcomes, kind), rng


def on_one_nat(seed, count=EACH):
    """Mechanisms that sit on PureDP(1): random ones with zeros that break it, tempered."""
    rows = strategies.random_mechanisms(np.random.default_rng(seed), 3 * count, 2, 3, "zeros")
    rows = rows[exact_laws.losses(rows).max(axis=(1, 2)) > 1.0][:count]
    assert len(rows) == count
    return np.stack([tempered(one, PureDP(1.0)) for one in rows])
