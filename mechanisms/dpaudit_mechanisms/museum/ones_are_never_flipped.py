"""RAPPOR that never turns a one into a zero."""

import functools

import numpy as np

from dpaudit.domains import ListedDomain
from dpaudit_mechanisms.museum.releases import published

BITS, F = 4, 0.5  # epsilon = 2 ln((1 - F/2) / (F/2)) = 2 ln 3 with one hash function


def _report(data, size, rng, kept):
    probability = np.full(BITS, F / 2.0)
    probability[data] = kept
    return (rng.random((size, BITS)) < probability).astype(int)


faulty = functools.partial(_report, kept=1.0)
mended = functools.partial(_report, kept=1.0 - F / 2.0)

EXHIBIT = dict(
    kind="local and federated",
    source="pure-ldp 1.2.0, RAPPORClient.privatise (found by this museum)",
    wrong="A bit is set to one with the probability of its report, and otherwise left alone: a one stays a one.",
    claim="eps=2.2",
    domain=ListedDomain(tuple(range(BITS))),
    pair=(0, 1),
    releases=(
        published("pure_ldp_rappor", "RAPPORClient(f=0.5, m=4, one hash function, one cohort).privatise(value)"),
    ),
)
