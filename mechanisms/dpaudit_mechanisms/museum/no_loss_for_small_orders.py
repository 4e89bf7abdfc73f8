"""A conversion that says there is no loss where the divergence of one order is small."""

import functools

from dpaudit.domains import DatasetDomain

RATE, DELTA = 0.05, 0.001


def _sampled(data, size, rng, rate):
    included = rng.random((size, len(data))) < rate
    return included.sum(axis=1) + rng.normal(size=size)


faulty = functools.partial(_sampled, rate=RATE)
mended = functools.partial(
    _sampled, rate=DELTA
)  # a record that is taken with probability delta costs no more than delta


EXHIBIT = dict(
    kind="delta and conversions",
    source="tensorflow/privacy#166",
    wrong="get_privacy_spent returns epsilon = 0 for an order of 1 + 1e-8, because its divergence is below delta**2.",
    claim="eps=0,delta=0.001",
    domain=DatasetDomain(values=(0, 1), largest=6),
    pair=([], [1]),
)
