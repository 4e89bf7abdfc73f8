"""Audits at the size of the paper of linear queries, N = 50 and 741 elements: each mechanism, and its twin found.

Twins draw with more budget than they promise. Pairs are those that the mechanism constructs; of each the first one is
audited. False-positive rate: 1e-6 an audit of a sound mechanism, below 1e-5 for the file.
"""

import numpy as np
import pytest

import dpaudit
from dpaudit_mechanisms.dx_exponential import DxExponential
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.faulty.another_budget import SpendsAnotherBudget
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.small_db import SmallDB

RECORDS, ROUNDS = 1_000, 10
SPREAD = ("exponential", "small db")
# Samples of an audit, and how many times its budget the twin spends: MWEM's is in 20 parts, of which each shows alone.
EVERY = {"laplace": (2_000, 4.0), "exponential": (2_000, 8.0), "mwem": (1_000, 256.0), "small db": (250, 7.0)}


def made(kind, elements):
    """20 queries in [0, 1] (of SmallDB one), and the same budget of one nat for every pair."""
    queries, metric = np.random.default_rng(elements).random((20, elements)), 1.0 - np.eye(elements)
    if kind == "laplace":
        return DxLaplace(queries, metric)
    if kind == "exponential":  # chooses an element by its count
        return DxExponential(lambda x: x.astype(float), metric, RECORDS, sensitivities=metric)
    if kind == "mwem":
        return MWEM(queries, metric, 1.0, ROUNDS, RECORDS, release="transcript")
    return SmallDB(queries[:1], metric, 1.0, 0.05, RECORDS, rescaled=True)


def first_pair(kind, mechanism):
    """The pair of largest loss over budget; data spread over all elements where an element is chosen."""
    pairs = mechanism.pairs()
    return next(pair for pair in pairs if kind not in SPREAD or pair.id.endswith("spread"))


def read(mechanism):
    """What is looked at: of a small database its answers, which is what it is released for.

    A call of its chains takes seconds, whatever its size: draws are made by the thousand, and each is given once.
    """
    inner = getattr(mechanism, "mechanism", mechanism)
    if not isinstance(inner, SmallDB):
        return mechanism
    ahead = {}

    def draw(data, size, rng):
        left = ahead.get(data.tobytes(), np.empty((0, len(data)), dtype=int))
        if len(left) < size:
            left = np.concatenate([left, mechanism.sample(data, 1_600, rng)])
        ahead[data.tobytes()] = left[size:]
        return inner.answers(left[:size])

    return draw


@pytest.mark.long
@pytest.mark.parametrize("elements", [50, 741])
@pytest.mark.parametrize("kind", EVERY)
def test_the_twin_is_found_at_the_size_of_the_paper_and_the_mechanism_is_not_refuted(kind, elements):
    samples, factor = EVERY[kind]
    mechanism = made(kind, elements)
    options = {"samples": samples, "seed": 1, "mode": "fixed", "floating_point": False}  # few calls: each takes seconds
    asked = (mechanism.claim, [first_pair(kind, mechanism)])
    assert dpaudit.audit(read(mechanism), *asked, confidence=1.0 - 1e-6, **options).verdict != "violated"
    assert dpaudit.audit(read(SpendsAnotherBudget(mechanism, factor)), *asked, **options).verdict == "violated"
