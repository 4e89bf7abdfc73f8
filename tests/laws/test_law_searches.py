"""Counterexamples looked for on purpose: hill climbing over finite mechanisms towards the largest found / promised.

100 climbs of 300 steps look at 30,000 mechanisms a law. No climb may pass the promise; where a law is said to be tight
one must come near to it, away from trivial corners (losses of 0.5 to 2 nats, events of mass 0.2 to 0.4); and the same
climb must pass a promise that is made 5% or 10% too small.
"""

import math

import numpy as np
import pytest

from dpaudit.laws import finite
from dpaudit.laws.claims import largest_log_ratio

CLIMBS, STEPS = 100, 300
LOW, HIGH = [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]
PATH = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) == 1
FAR = np.abs(np.subtract.outer(np.arange(3), np.arange(3))) == 2


def climb(score, inputs, outcomes=4, steps=STEPS, seed=1):
    """The best score that is found, and its matrix; `score` takes a batch of matrices (climbs, inputs, outcomes)."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2.0, size=(CLIMBS, inputs, outcomes))
    best = score(softmax(logits))
    for _ in range(steps):
        width = rng.choice([0.03, 0.3, 1.0], size=(CLIMBS, 1, 1))
        moved = logits + width * rng.normal(size=logits.shape) * (rng.random(logits.shape) < 0.4)
        moved = np.clip(moved, -15.0, 15.0)
        now = score(softmax(moved))
        better = now > best
        logits[better], best = moved[better], np.maximum(best, now)
    return float(best.max()), softmax(logits)[best.argmax()]


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def share(check, factor=1.0, mask=None):
    """The largest found / (factor promised) of each mechanism, over promises that are more than rounding."""
    asked = np.isfinite(check.promised) & (check.promised > 1e-9)
    asked = asked if mask is None else asked & mask
    return np.where(asked, check.found / np.where(asked, factor * check.promised, 1.0), 0.0).max(axis=(-2, -1))


def losses_between(rows, least, largest):
    loss = finite.losses(rows).max(axis=(-2, -1))
    return (loss >= least) & (loss <= largest)


def mass_between(rows, least, largest):
    mass = rows[..., :2].sum(axis=-1).min(axis=-1)
    return (mass >= least) & (mass <= largest)


def where(condition, score):
    return np.where(condition, score, -1.0)


def moderate(rows):
    return losses_between(rows, 0.5, 2.0)


def conditioned_without_mass(rows, factor=1.0):
    return where(moderate(rows), share(finite.check_conditioning(rows, LOW, uses_mass=False), factor))


def conditioned_with_mass(rows, factor=1.0):
    is_asked = moderate(rows) & mass_between(rows, 0.2, 0.4)
    return where(is_asked, share(finite.check_conditioning(rows, LOW), factor))


def conditioned_delta(rows, factor=1.0):
    is_asked = (finite.deltas(rows, 0.5).max(axis=(-2, -1)) > 0.03) & mass_between(rows, 0.2, 0.4)
    return where(is_asked, share(finite.check_conditioning(rows, LOW, epsilon=0.5), factor))


def conditioned_renyi(rows, factor=1.0):
    return share(finite.check_conditioning(rows, LOW, order=2.0), factor)


def union(rows, factor=1.0):
    return where(moderate(rows), share(finite.check_disjoint_union(rows, LOW, HIGH), factor))


def group_loss(rows, factor=1.0):
    return where(moderate(rows), share(finite.check_group(rows, PATH), factor, FAR))


def group_delta(rows, factor=1.0):
    is_asked = finite.deltas(rows, 0.5).max(axis=(-2, -1)) > 0.05
    return where(is_asked, share(finite.check_group(rows, PATH, epsilon=0.5), factor, FAR))


def composed_loss(rows, factor=1.0):
    return where(moderate(rows), share(finite.check_sequential(rows, rows), factor))


def halved(rows, factor=1.0):
    """A mixture of the rows with themselves, outcomes turned round."""
    parts = [rows, rows[..., ::-1]]
    return where(moderate(rows), share(finite.check_mixture(parts, [0.5, 0.5]), factor))


TIGHT = [
    (conditioned_without_mass, 2, 0.95),
    (conditioned_with_mass, 2, 0.98),
    (conditioned_delta, 2, 0.98),
    (conditioned_renyi, 2, 0.98),
    (union, 2, 0.98),
    (group_loss, 3, 0.98),
    (group_delta, 3, 0.95),
    (composed_loss, 2, 0.98),
    (halved, 2, 0.98),
]


@pytest.mark.parametrize(("score", "inputs", "least"), TIGHT, ids=lambda value: getattr(value, "__name__", ""))
def test_no_climb_passes_a_law_and_one_comes_near(score, inputs, least):
    best, _ = climb(score, inputs)
    # 1e-6: rounding, 1e-14 or less over promises above 1e-9 and, with a condition, over masses above 1e-3
    assert least < best <= 1.0 + 1e-6


@pytest.mark.parametrize(("score", "inputs", "least"), TIGHT, ids=lambda value: getattr(value, "__name__", ""))
def test_the_same_climb_passes_a_promise_that_is_a_little_too_small(score, inputs, least):
    best, rows = climb(lambda rows: score(rows, factor=0.9), inputs)
    assert best > 1.05 and np.all(rows >= 0.0)


def test_a_condition_pays_for_its_mass_and_not_for_a_larger_one():
    # The promise of `conditioned` with the mass taken half again as large: passed.
    def too_small(rows):
        mass = rows[..., :2].sum(axis=-1)
        c = np.minimum(1.0, 1.5 * np.minimum(mass[..., :, None], mass[..., None, :]))
        loss = np.maximum(finite.losses(rows), np.swapaxes(finite.losses(rows), -2, -1))
        promised = loss + largest_log_ratio(loss, 0.0, c)
        found = finite.losses(finite.conditioned(rows, LOW))
        gap = np.where(np.eye(2, dtype=bool), -1.0, found - promised).max(axis=(-2, -1))
        return where(moderate(rows) & mass_between(rows, 0.2, 0.4), gap)

    assert climb(too_small, 2)[0] > 0.05


def test_two_deltas_compose_to_no_more_than_one_minus_the_product_of_their_complements():
    # Sharper than the sum, and reached: an input is betrayed unless neither mechanism betrays it. The deltas are those
    # of both directions.
    def score(rows):
        delta = finite.deltas(rows, 0.3).max(axis=(-2, -1))
        found = finite.deltas(finite.composed(rows, rows), 0.6).max(axis=(-2, -1))
        return where(delta > 0.1, found / (1.0 - (1.0 - delta) ** 2))

    best, _ = climb(score, 2)
    assert 0.95 < best <= 1.0 + 1e-9
    # And so the sum is not: away from small deltas no climb comes near to it.
    assert climb(lambda rows: score(rows) * (1.0 - 0.5 * finite.deltas(rows, 0.3).max(axis=(-2, -1))), 2)[0] < 0.97


def test_the_climb_finds_mixtures_that_depend_on_the_input():
    def gap(rows):  # the first two outcomes are the two constants, chosen with these chances: losses of 0 a part
        derived = finite.mixed([np.eye(2)[[0, 0]], np.eye(2)[[1, 1]]], rows, by_input=True)
        return finite.losses(derived).max(axis=(-2, -1))

    assert climb(gap, 2, outcomes=2, steps=50)[0] > math.log(100.0)
