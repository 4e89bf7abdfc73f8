"""The laws in exact form: on finite mechanisms both sides of each inequality are computed, for one or for thousands.

* A mechanism is a row-stochastic matrix of shape (..., inputs, outcomes), whatever stands before: a batch is treated at
  once. Entries are 0 or at least 1e-70, so that no product of four underflows.
* Each law gives an `ExactCheck`: the derived matrix, what is `found` on it and what the law has `promised`, both of
  shape (..., inputs, inputs), for ordered pairs (row against column).
* What is measured: by default the privacy loss (largest log ratio); the hockey-stick divergence at `epsilon`; the Renyi
  divergence of an `order`. Where a law adds budgets, `epsilon` is one number a part.
* `tolerance` is derived, not guessed: u = 2**-53 is the rounding of one operation. A derived entry is made of
  non-negative terms by k operations, so it is off by a factor within 1 +- k u (1 + ...); what follows for a log, a
  positive part and a sum is in `tolerance_of`.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from dpaudit.laws.claims import largest_log_ratio
from dpaudit.privacy.finite_metrics import shortest_paths

UNIT = 2.0**-53


@dataclasses.dataclass(frozen=True)
class ExactCheck:
    """A derived mechanism with both sides of the law's inequality, and the rounding of both together."""

    derived: Any
    found: Any
    promised: Any
    tolerance: float

    @property
    def holds(self):
        """Tell whether found <= promised for all pairs of a mechanism, shape (...)."""
        with np.errstate(invalid="ignore"):
            gap = np.where(np.isposinf(self.promised), -np.inf, self.found - self.promised)
        gap = np.where(np.eye(gap.shape[-1], dtype=bool), np.minimum(gap, 0.0), gap)
        return np.all(gap <= self.tolerance, axis=(-2, -1))

    @property
    def used(self):
        """The largest share found / promised over the pairs of a mechanism, shape (...): 1 where the law is tight."""
        is_asked = np.isfinite(self.promised) & (self.promised > self.tolerance)
        share = np.divide(self.found, self.promised, out=np.zeros_like(self.promised), where=is_asked)
        return share.max(axis=(-2, -1))


def pairs_of(mechanism):
    rows = np.asarray(mechanism, dtype=float)
    return rows[..., :, None, :], rows[..., None, :, :]  # (..., inputs, inputs, outcomes)


def losses(mechanism):
    """Largest log(p(o) / q(o)) for every ordered pair of rows, shape (..., inputs, inputs), in nats."""
    p, q = pairs_of(mechanism)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(p == 0.0, -np.inf, np.log(p) - np.log(q))
    return np.maximum(ratios.max(axis=-1), 0.0)


def deltas(mechanism, epsilon):
    """Hockey-stick divergence sum of max(p - e^epsilon q, 0) of every ordered pair; epsilon broadcasts to the pairs."""
    p, q = pairs_of(mechanism)
    with np.errstate(invalid="ignore", over="ignore"):
        charged = np.where(q == 0.0, 0.0, np.exp(np.asarray(epsilon, dtype=float))[..., None] * q)
    return np.maximum(p - charged, 0.0).sum(axis=-1)


def renyi_divergences(mechanism, order):
    """Renyi divergence of one order in (1, inf) of every ordered pair, shape (..., inputs, inputs), in nats."""
    p, q = pairs_of(mechanism)
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.where(p == 0.0, -np.inf, order * np.log(p) - (order - 1.0) * np.log(q))
    return np.maximum(np.logaddexp.reduce(exponents, axis=-1) / (order - 1.0), 0.0)


def measured(mechanism, epsilon=None, order=None):
    if order is not None:
        return renyi_divergences(mechanism, order)
    return losses(mechanism) if epsilon is None else deltas(mechanism, epsilon)


# ---- derived mechanisms ----------------------------------------------------------------------------------------------


def adaptively_composed(first, seconds):
    """`seconds[..., a, :, :]` runs after outcome a of the first: shape (..., inputs, outcomes * other outcomes)."""
    product = np.asarray(first)[..., :, :, None] * np.moveaxis(np.asarray(seconds), -3, -2)
    return product.reshape(*product.shape[:-2], -1)


def mixed(mechanisms, weights, *, by_input=False):
    """The average with weights of shape (..., parts), or `by_input` of shape (..., inputs, parts)."""
    shares = np.asarray(weights, dtype=float) if by_input else np.asarray(weights, dtype=float)[..., None, :]
    return (np.stack(mechanisms, axis=-1) * shares[..., None, :]).sum(axis=-1)


def conditioned(mechanism, chances):
    """The law given an event that keeps outcome o with probability chances[..., o], positive in every row."""
    kept = np.asarray(mechanism) * np.asarray(chances, dtype=float)[..., None, :]
    return kept / kept.sum(axis=-1, keepdims=True)


def in_parallel(first, second):
    """Each on its own piece: input (i, j), numbered i * (inputs of the second) + j, outcomes likewise."""
    product = first[..., :, None, :, None] * second[..., None, :, None, :]
    return product.reshape(*product.shape[:-4], first.shape[-2] * second.shape[-2], -1)


def grid_of(modulus, dimensions):
    return np.stack(np.unravel_index(np.arange(modulus**dimensions), (modulus,) * dimensions), axis=1)


def additive(noise, answers, modulus):
    """f(x) + U on the group (Z mod modulus)^n: noise of shape (..., modulus^n), answers of shape (inputs, n)."""
    points = np.asarray(answers, dtype=int)
    shifted = (grid_of(modulus, points.shape[1])[None] - points[:, None]) % modulus  # (inputs, outcomes, coordinates)
    return np.asarray(noise)[
        ..., np.ravel_multi_index(tuple(np.moveaxis(shifted, -1, 0)), (modulus,) * points.shape[1])
    ]


# ---- the laws --------------------------------------------------------------------------------------------------------


def check_sequential(first, second, **measure):
    """Sequential composition: losses add; deltas add at the sum of the epsilons; Renyi divergences add exactly."""
    return check_adaptive(first, second[..., None, :, :], **measure)


def check_adaptive(first, seconds, *, epsilon=None, order=None):
    """Adaptive composition: the budget of the first and the largest one among the others add."""
    derived = adaptively_composed(first, seconds)
    one, other, both = (None, None, None) if epsilon is None else (*epsilon, sum(epsilon))
    promised = measured(first, one, order) + measured(seconds, other, order).max(axis=-3)
    return checked(derived, promised, [first, seconds], 1, both, order)


def check_post_processing(mechanism, kernel, *, epsilon=None, order=None):
    """Post-processing by a kernel, shape (..., outcomes, new outcomes): nothing grows."""
    promised = measured(mechanism, epsilon, order)
    return checked(mechanism @ kernel, promised, [mechanism, kernel], np.shape(kernel)[-2], epsilon, order)


def check_projection(mechanism, points, targets, **measure):
    """Projection: each outcome, at its point of shape (outcomes, n), moves to the first nearest of the targets."""
    distances = ((points[:, None] - targets[None]) ** 2).sum(axis=-1)  # (outcomes, targets)
    return check_post_processing(mechanism, np.eye(len(targets))[np.argmin(distances, axis=1)], **measure)


def check_group(mechanism, adjacent, *, epsilon=None):
    """Group privacy along chains of adjacent inputs, a symmetric boolean matrix of shape (inputs, inputs).

    Losses: the sum along the cheapest chain. With `epsilon`: at k epsilon for inputs k steps apart (the fewest), delta
    times 1 + e^epsilon + ... + e^((k-1) epsilon), for the largest delta of an adjacent pair.
    """
    is_same, count = np.eye(len(adjacent), dtype=bool), len(adjacent)
    if epsilon is None:
        steps = np.where(is_same, 0.0, np.where(adjacent, losses(mechanism), np.inf))
        promised = np.stack([shortest_paths(table) for table in steps])
        return checked(mechanism, promised, [mechanism] * count, 0)
    hops = shortest_paths(np.where(is_same, 0.0, np.where(adjacent, 1.0, np.inf)))
    reached = np.where(np.isfinite(hops), hops, 0.0)
    largest = np.where(adjacent, deltas(mechanism, epsilon), 0.0).max(axis=(-2, -1), keepdims=True)
    factor = np.array([sum(np.exp(i * epsilon) for i in range(int(k))) for k in reached.ravel()]).reshape(reached.shape)
    promised = np.where(np.isfinite(hops), largest * factor, np.inf)
    widest = int(np.ceil(factor.max() + reached.max()))
    found = deltas(mechanism, reached * epsilon)
    return checked(mechanism, promised, [mechanism] * widest, 0, epsilon * count, found=found)


def check_mixture(mechanisms, weights, *, by_input=False, epsilon=None, order=None):
    """Mixture (weights the same on every input) and convexity.

    Losses: the largest. Deltas at one epsilon: the weighted average. Renyi: log of the weighted average of
    exp((order - 1) D), over order - 1. Weights `by_input`, shape (..., inputs, parts): losses only, and the loss of the
    choice is added.
    """
    shares = np.asarray(weights, dtype=float)
    each = np.stack([measured(part, epsilon, order) for part in mechanisms], axis=-1)  # (..., inputs, inputs, parts)
    if by_input:
        promised = each.max(axis=-1) + losses(shares)
    elif epsilon is not None:
        promised = (each * shares[..., None, None, :]).sum(axis=-1)
    elif order is not None:
        logs = np.log(shares)[..., None, None, :] + (order - 1.0) * each
        promised = np.logaddexp.reduce(logs, axis=-1) / (order - 1.0)
    else:
        promised = each.max(axis=-1)
    derived = mixed(mechanisms, weights, by_input=by_input)
    return checked(derived, promised, mechanisms, 2 * len(mechanisms), epsilon, order)


def check_conditioning(mechanism, chances, *, epsilon=None, order=None, uses_mass=True):
    """Conditioning on an event of positive mass: what `dpaudit.laws.conditioned_claim` says, pair by pair.

    With `uses_mass` the mass c is that of the pair, its smaller one; without (losses only) twice the loss is promised.
    With `epsilon`: at epsilon + log R the divergence delta / c, for the pair's own delta at epsilon and R from it.
    """
    derived = conditioned(mechanism, chances)
    masses = (mechanism * np.asarray(chances, dtype=float)[..., None, :]).sum(axis=-1)
    c = np.minimum(np.minimum(masses[..., :, None], masses[..., None, :]), 1.0)
    operations = mechanism.shape[-1] + 1
    if order is not None:
        promised = renyi_divergences(mechanism, order) - order / (order - 1.0) * np.log(c)
        return checked(derived, promised, [mechanism], operations, order=order)
    one_way = measured(mechanism, epsilon)
    both = np.maximum(one_way, np.swapaxes(one_way, -2, -1))
    if epsilon is not None:
        at = epsilon + largest_log_ratio(epsilon, both, c)
        # Rounding of `at` enters as that of epsilon does; the division by c enlarges what is known of delta.
        check = checked(derived, both / c, [mechanism], operations, float(at.max()), found=deltas(derived, at))
        return dataclasses.replace(check, tolerance=check.tolerance / float(c.min()))
    if not uses_mass:
        return checked(derived, 2.0 * both, [mechanism], operations)
    finite = np.where(np.isfinite(both), both, 0.0)
    promised = np.where(np.isfinite(both), finite + largest_log_ratio(finite, 0.0, c), np.inf)
    return checked(derived, promised, [mechanism, mechanism], operations)


def check_disjoint_union(mechanism, event, other):
    """M given C or C' (disjoint events): the larger loss of M given one, plus the loss of which one it is."""
    derived = conditioned(mechanism, event + other)
    parts = np.maximum(losses(conditioned(mechanism, event)), losses(conditioned(mechanism, other)))
    choice = np.stack([(derived * part[..., None, :]).sum(axis=-1) for part in (event, other)], axis=-1)
    return checked(derived, parts + losses(choice), [mechanism, mechanism], 2 * mechanism.shape[-1] + 2)


def check_linear(noise, answers, modulus, matrix, values):
    """Additive noise on (Z mod modulus)^n given A z = b, which all answers satisfy: no more than without it."""
    rows, a = additive(noise, answers, modulus), np.asarray(matrix)
    on = np.all((grid_of(modulus, a.shape[1]) @ a.T - np.asarray(values)) % modulus == 0, axis=1)
    return checked(conditioned(rows, on), losses(rows), [rows], rows.shape[-1] + 1)


def check_parallel(first, second, *, changed_pieces=2):
    """Parallel composition: the sum of the losses of the pieces that differ.

    With `changed_pieces` 1 only inputs that differ in one piece are asked; the others have inf promised.
    """
    one, other = losses(first), losses(second)
    total = one[..., :, None, :, None] + other[..., None, :, None, :]  # (..., i, j, i', j')
    if changed_pieces == 1:
        same, same_too = np.eye(one.shape[-1], dtype=bool), np.eye(other.shape[-1], dtype=bool)
        total = np.where(same[:, None, :, None] | same_too[None, :, None, :], total, np.inf)
    inputs = one.shape[-1] * other.shape[-1]
    promised = total.reshape(*total.shape[:-4], inputs, inputs)
    return checked(in_parallel(first, second), promised, [first, second], 1)


def checked(derived, promised, given, operations, epsilon=None, order=None, found=None):
    """The check with its tolerance: `operations` made an entry of `derived`, the promise adds up len(given) terms."""
    found = measured(derived, epsilon, order) if found is None else found
    matrices = [derived, *map(np.asarray, given)]
    return ExactCheck(derived, found, promised, len(matrices) * tolerance_of(matrices, operations, epsilon, order))


def tolerance_of(matrices, operations, epsilon, order):
    """The rounding of one measure.

    * A loss is a difference of two logs, each off by (operations + 1) u for its argument and by 2 u of itself.
    * Terms p - e^epsilon q of a delta, where e^epsilon q < 2 p, are off by (operations + 4 + epsilon) u of
      p + e^epsilon q. So the sum is off by 3 (operations + 4 + epsilon) u, and by the outcomes times u for adding it
      up; rows that sum to 1 within s make a promise of delta worth s more.
    * An exponent r log p - (r - 1) log q is off by 2 r - 1 times what a log is; the log of a sum by that and more.
    """
    outcomes = max(rows.shape[-1] for rows in matrices)
    logs = operations + 1 + 3.0 * max(1.0, -math.log(min(float(rows[rows > 0.0].min()) for rows in matrices)))
    if epsilon is not None:
        off = max(float(np.abs(rows.sum(axis=-1) - 1.0).max()) for rows in matrices)
        return UNIT * (3.0 * (operations + 4.0 + epsilon) + outcomes) + 2.0 * off
    if order is not None:
        return UNIT * ((2.0 * order - 1.0) * logs + 2.0 * outcomes + 4.0) / (order - 1.0)
    return 2.0 * UNIT * logs
