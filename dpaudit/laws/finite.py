"""The laws in exact form: on finite mechanisms both sides of each inequality are computed, for one or for thousands.

Conventions
-----------
* A mechanism is a row-stochastic matrix of shape (..., inputs, outcomes), whatever stands before: a batch is treated at
  once. Probabilities are doubles and are taken as they are.
* Each law gives an `ExactCheck`: the derived matrix, what is `found` on it and what the law has `promised`, both of
  shape (..., inputs, inputs), for ordered pairs (row against column).
* What is measured: by default the privacy loss (largest log ratio); the hockey-stick divergence at `epsilon`; the Renyi
  divergence of an `order`. Where a law adds budgets, `epsilon` is one number a part.
* `tolerance` is derived, not guessed: u = 2**-53 is the rounding of one operation. A derived entry is made of
  non-negative terms by k operations, so it is off by a factor within 1 +- k u (1 + ...); what follows for a log, a
  positive part and a sum is in `_loss_tolerance`, `_delta_tolerance` and `_renyi_tolerance`. Entries must be 0 or at
  least 1e-70, so that no product of four underflows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UsageError
from dpaudit.exact.finite import SUM_TOLERANCE
from dpaudit.laws.claims import largest_log_ratio
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.finite_metrics import shortest_paths

UNIT: float = 2.0**-53
MIN_P = 1e-70
Measure = Callable[[FloatArray], FloatArray]


@dataclasses.dataclass(frozen=True)
class ExactCheck:
    """A derived mechanism with both sides of the law's inequality, for every ordered pair of its inputs.

    Attributes
    ----------
    law : str
    derived : ndarray, shape (..., inputs, outcomes)
    found, promised : ndarray, shape (..., inputs, inputs)
        The law says found <= promised.
    tolerance : float
        The rounding of both sides together, the largest of the batch.
    """

    law: str
    derived: FloatArray
    found: FloatArray
    promised: FloatArray
    tolerance: float

    @property
    def excess(self) -> FloatArray:
        """found - promised, shape (..., inputs, inputs); -inf where nothing is promised, 0 on the diagonal."""
        with np.errstate(invalid="ignore"):
            gap = np.asarray(np.where(np.isposinf(self.promised), -np.inf, self.found - self.promised))
        return np.where(np.eye(gap.shape[-1], dtype=bool), np.minimum(gap, 0.0), gap)

    @property
    def holds(self) -> NDArray[np.bool_]:
        """Tell whether the law holds for all pairs of a mechanism, shape (...)."""
        return np.asarray(np.all(self.excess <= self.tolerance, axis=(-2, -1)))

    @property
    def used(self) -> FloatArray:
        """The largest share found / promised over the pairs of a mechanism, shape (...): 1 where the law is tight."""
        is_asked = np.isfinite(self.promised) & (self.promised > self.tolerance)
        share = np.divide(self.found, self.promised, out=np.zeros_like(self.promised), where=is_asked)
        return np.asarray(share.max(axis=(-2, -1)))


def losses(mechanism: ArrayLike) -> FloatArray:
    """Largest log(p(o) / q(o)) for every ordered pair of rows, shape (..., inputs, inputs), in nats."""
    rows = np.asarray(mechanism, dtype=float)
    p, q = rows[..., :, None, :], rows[..., None, :, :]  # (..., inputs, inputs, outcomes)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(p == 0.0, -np.inf, np.log(p) - np.log(q))
    return np.asarray(np.maximum(ratios.max(axis=-1), 0.0))


def deltas(mechanism: ArrayLike, epsilon: ArrayLike) -> FloatArray:
    """Hockey-stick divergence sum of max(p - e^epsilon q, 0) of every ordered pair; epsilon broadcasts to the pairs."""
    rows = np.asarray(mechanism, dtype=float)
    p, q = rows[..., :, None, :], rows[..., None, :, :]
    with np.errstate(invalid="ignore", over="ignore"):
        charged = np.where(q == 0.0, 0.0, np.exp(np.asarray(epsilon, dtype=float))[..., None] * q)
    return np.asarray(np.maximum(p - charged, 0.0).sum(axis=-1))


def renyi_divergences(mechanism: ArrayLike, order: float) -> FloatArray:
    """Renyi divergence of one order in (1, inf) of every ordered pair, shape (..., inputs, inputs), in nats."""
    if not 1.0 < order < np.inf:
        raise UsageError(f"order must be in (1, inf), got {order!r}.")
    rows = np.asarray(mechanism, dtype=float)
    p, q = rows[..., :, None, :], rows[..., None, :, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.where(p == 0.0, -np.inf, order * np.log(p) - (order - 1.0) * np.log(q))
    return np.asarray(np.maximum(np.logaddexp.reduce(exponents, axis=-1) / (order - 1.0), 0.0))


# ---- derived mechanisms ----------------------------------------------------------------------------------------------


def composed(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Both run on one input, independently: outcomes are pairs, shape (..., inputs, outcomes * other outcomes)."""
    product = _stochastic("first", first)[..., :, :, None] * _stochastic("second", second)[..., :, None, :]
    return product.reshape(*product.shape[:-2], -1)


def adaptively_composed(first: ArrayLike, seconds: ArrayLike) -> FloatArray:
    """`seconds[..., a, :, :]` runs after outcome a of the first: shape (..., inputs, outcomes * other outcomes)."""
    one, others = _stochastic("first", first), _stochastic("seconds", seconds)
    if others.ndim < 3 or others.shape[-3] != one.shape[-1]:
        raise UsageError(f"seconds must be {one.shape[-1]} mechanisms, one an outcome, got shape {others.shape}.")
    product = one[..., :, :, None] * np.moveaxis(others, -3, -2)  # (..., inputs, outcomes, other outcomes)
    return product.reshape(*product.shape[:-2], -1)


def processed(mechanism: ArrayLike, kernel: ArrayLike) -> FloatArray:
    """Outcomes replaced by the rows of a row-stochastic kernel, shape (..., inputs, kernel outcomes)."""
    return np.asarray(_stochastic("mechanism", mechanism) @ _stochastic("kernel", kernel))


def mixed(mechanisms: Sequence[ArrayLike], weights: ArrayLike, *, by_input: bool = False) -> FloatArray:
    """The average with weights of shape (..., parts), or `by_input` of shape (..., inputs, parts)."""
    # (..., inputs, outcomes, parts)
    parts = np.stack([_stochastic("mechanisms", part) for part in mechanisms], axis=-1)
    shares = np.asarray(weights, dtype=float)
    if not by_input:
        shares = shares[..., None, :]
    return np.asarray((parts * shares[..., None, :]).sum(axis=-1))


def conditioned(mechanism: ArrayLike, chances: ArrayLike) -> FloatArray:
    """The law given an event that keeps outcome o with probability chances[..., o], positive in every row."""
    kept = _stochastic("mechanism", mechanism) * np.asarray(chances, dtype=float)[..., None, :]
    masses = kept.sum(axis=-1, keepdims=True)
    if not np.all(masses > 0.0):
        raise UsageError("chances must give every input an event of positive probability, got 0.")
    return np.asarray(kept / masses)


def in_parallel(first: ArrayLike, second: ArrayLike) -> FloatArray:
    """Each on its own piece: input (i, j), numbered i * (inputs of the second) + j, outcomes likewise."""
    one, other = _stochastic("first", first), _stochastic("second", second)
    product = one[..., :, None, :, None] * other[..., None, :, None, :]
    inputs = one.shape[-2] * other.shape[-2]
    return product.reshape(*product.shape[:-4], inputs, -1)


def additive(noise: ArrayLike, answers: ArrayLike, modulus: int) -> FloatArray:
    """f(x) + U on the group (Z mod modulus)^n: noise of shape (..., modulus^n), answers of shape (inputs, n).

    Outcome and noise are numbered with the first coordinate as the most significant digit.
    """
    points = np.asarray(answers, dtype=int)
    law = np.asarray(noise, dtype=float)
    dimensions = points.shape[1]
    if law.shape[-1] != modulus**dimensions:
        raise UsageError(f"noise must be of shape (..., {modulus}^{dimensions}), got {law.shape}.")
    grid = np.stack(np.unravel_index(np.arange(modulus**dimensions), (modulus,) * dimensions), axis=1)
    shifted = (grid[None] - points[:, None]) % modulus  # (inputs, outcomes, coordinates)
    index = np.ravel_multi_index(tuple(np.moveaxis(shifted, -1, 0)), (modulus,) * dimensions)
    return law[..., index]


# ---- the laws --------------------------------------------------------------------------------------------------------


def check_sequential(
    first: ArrayLike, second: ArrayLike, *, epsilon: tuple[float, float] | None = None, order: float | None = None
) -> ExactCheck:
    """Sequential composition: losses add; deltas add at the sum of the epsilons; Renyi divergences add exactly."""
    seconds = np.asarray(second, dtype=float)[..., None, :, :]
    return _check_composition("sequential composition", composed(first, second), first, seconds, epsilon, order)


def check_adaptive(
    first: ArrayLike, seconds: ArrayLike, *, epsilon: tuple[float, float] | None = None, order: float | None = None
) -> ExactCheck:
    """Adaptive composition: the budget of the first and the largest one among the others add."""
    derived = adaptively_composed(first, seconds)
    return _check_composition("adaptive composition", derived, first, seconds, epsilon, order)


def _check_composition(
    law: str,
    derived: FloatArray,
    first: ArrayLike,
    seconds: ArrayLike,
    epsilon: tuple[float, float] | None,
    order: float | None,
) -> ExactCheck:
    budgets = (None, None, None) if epsilon is None else (*epsilon, sum(epsilon))
    one, others, both = (_measure(order if budget is None else None, budget) for budget in budgets)
    promised = one(np.asarray(first, float)) + others(np.asarray(seconds, float)).max(axis=-3)
    return _check(law, derived, both(derived), promised, [first, seconds], 1, budgets[2], order)


def check_post_processing(
    mechanism: ArrayLike, kernel: ArrayLike, *, epsilon: float | None = None, order: float | None = None
) -> ExactCheck:
    """Post-processing by a kernel, shape (..., outcomes, new outcomes): nothing grows."""
    derived = processed(mechanism, kernel)
    measure = _measure(order, epsilon)
    promised = measure(np.asarray(mechanism, float))
    operations = np.shape(kernel)[-2]
    given = [mechanism, kernel]
    return _check("post-processing", derived, measure(derived), promised, given, operations, epsilon, order)


def check_projection(mechanism: ArrayLike, points: ArrayLike, targets: ArrayLike, **measure: float) -> ExactCheck:
    """Projection: each outcome, at its point of shape (outcomes, n), moves to the nearest of targets, shape (C, n).

    Of several nearest ones it is the first. Keyword arguments as in `check_post_processing`.
    """
    where, goals = np.atleast_2d(np.asarray(points, float)), np.atleast_2d(np.asarray(targets, float))
    distances = ((where[:, None] - goals[None]) ** 2).sum(axis=-1)  # (outcomes, targets)
    kernel = np.eye(len(goals))[np.argmin(distances, axis=1)]
    return dataclasses.replace(check_post_processing(mechanism, kernel, **measure), law="projection")


def check_group(mechanism: ArrayLike, adjacent: ArrayLike, *, epsilon: float | None = None) -> ExactCheck:
    """Group privacy along chains of adjacent inputs, a symmetric boolean matrix of shape (inputs, inputs).

    Losses: the sum along the cheapest chain. With `epsilon`: at k epsilon for inputs k steps apart (the fewest), delta
    times 1 + e^epsilon + ... + e^((k-1) epsilon), for the largest delta of an adjacent pair.
    """
    rows = _stochastic("mechanism", mechanism)
    is_step = np.asarray(adjacent, dtype=bool)
    hops = shortest_paths(np.where(np.eye(len(is_step), dtype=bool), 0.0, np.where(is_step, 1.0, np.inf)))
    if epsilon is None:
        steps = np.where(np.eye(len(is_step), dtype=bool), 0.0, np.where(is_step, losses(rows), np.inf))
        flat = steps.reshape(-1, *steps.shape[-2:])
        promised = np.stack([shortest_paths(table) for table in flat]).reshape(steps.shape)
        return _check("group privacy", rows, losses(rows), promised, [rows] * len(is_step), 0)
    reached = np.where(np.isfinite(hops), hops, 0.0)
    largest = np.where(is_step, deltas(rows, epsilon), 0.0).max(axis=(-2, -1), keepdims=True)
    factor = np.array([sum(np.exp(i * epsilon) for i in range(int(k))) for k in reached.ravel()]).reshape(reached.shape)
    promised = np.where(np.isfinite(hops), largest * factor, np.inf)
    found = deltas(rows, reached * epsilon)
    widest = float(factor.max()) + float(reached.max())
    return _check("group privacy", rows, found, promised, [rows] * int(np.ceil(widest)), 0, epsilon=epsilon * len(hops))


def check_mixture(
    mechanisms: Sequence[ArrayLike],
    weights: ArrayLike,
    *,
    by_input: bool = False,
    epsilon: float | None = None,
    order: float | None = None,
) -> ExactCheck:
    """Mixture (weights the same on every input) and convexity.

    Losses: the largest. Deltas at one epsilon: the weighted average. Renyi: log of the weighted average of
    exp((order - 1) D), over order - 1. Weights `by_input`, shape (..., inputs, parts): losses only, and the loss of the
    choice is added.
    """
    derived = mixed(mechanisms, weights, by_input=by_input)
    shares = np.asarray(weights, dtype=float)
    measure = _measure(order, epsilon)
    each = np.stack([measure(np.asarray(part, float)) for part in mechanisms], axis=-1)  # (..., inputs, inputs, parts)
    if by_input:
        if epsilon is not None or order is not None:
            raise UsageError("by_input must be False for deltas and Renyi divergences, got True.")
        promised = each.max(axis=-1) + losses(shares)
    elif epsilon is not None:
        promised = (each * shares[..., None, None, :]).sum(axis=-1)
    elif order is not None:
        with np.errstate(divide="ignore"):
            logs = np.log(shares)[..., None, None, :] + (order - 1.0) * each
        promised = np.logaddexp.reduce(logs, axis=-1) / (order - 1.0)
    else:
        promised = np.where(shares[..., None, None, :] > 0.0, each, 0.0).max(axis=-1)
    operations = 2 * len(mechanisms)
    return _check("mixture", derived, measure(derived), promised, list(mechanisms), operations, epsilon, order)


def check_conditioning(
    mechanism: ArrayLike,
    chances: ArrayLike,
    *,
    epsilon: float | None = None,
    order: float | None = None,
    uses_mass: bool = True,
) -> ExactCheck:
    """Conditioning on an event of positive mass: what `dpaudit.laws.conditioned_claim` says, pair by pair.

    With `uses_mass` the mass c is that of the pair, its smaller one; without (losses only) twice the loss is promised.
    With `epsilon`: at epsilon + log R the divergence delta / c, for the pair's own delta at epsilon and R from it.
    """
    rows, derived = _stochastic("mechanism", mechanism), conditioned(mechanism, chances)
    masses = (rows * np.asarray(chances, dtype=float)[..., None, :]).sum(axis=-1)
    c = np.minimum(np.minimum(masses[..., :, None], masses[..., None, :]), 1.0)
    operations = rows.shape[-1] + 1
    if epsilon is not None:
        both = _both_ways(deltas(rows, epsilon))
        at = epsilon + largest_log_ratio(epsilon, both, c)
        # Rounding of `at` enters as that of epsilon does; the division by c enlarges what is known of delta.
        check = _check("conditioning", derived, deltas(derived, at), both / c, [rows], operations, float(at.max()))
        return dataclasses.replace(check, tolerance=check.tolerance / float(c.min()))
    if order is not None:
        divergence = renyi_divergences(rows, order)
        promised = divergence - order / (order - 1.0) * np.log(c)
        found = renyi_divergences(derived, order)
        return _check("conditioning", derived, found, promised, [rows], operations, order=order)
    both = _both_ways(losses(rows))
    if not uses_mass:
        return _check("conditioning", derived, losses(derived), 2.0 * both, [rows], operations)
    finite = np.where(np.isfinite(both), both, 0.0)
    promised = np.where(np.isfinite(both), finite + largest_log_ratio(finite, 0.0, c), np.inf)
    return _check("conditioning", derived, losses(derived), promised, [rows, rows], operations)


def check_disjoint_union(mechanism: ArrayLike, event: ArrayLike, other: ArrayLike) -> ExactCheck:
    """M given C or C' (disjoint boolean events): the larger loss of M given one, plus the loss of which one it is."""
    rows = _stochastic("mechanism", mechanism)
    here, there = np.asarray(event, dtype=bool), np.asarray(other, dtype=bool)
    if np.any(here & there):
        raise UsageError("other must be disjoint from event, got outcomes in both.")
    derived = conditioned(rows, (here | there).astype(float))
    parts = np.maximum(losses(conditioned(rows, here.astype(float))), losses(conditioned(rows, there.astype(float))))
    choice = np.stack([(derived * part[..., None, :]).sum(axis=-1) for part in (here, there)], axis=-1)
    promised = parts + losses(choice)
    return _check("disjoint union", derived, losses(derived), promised, [rows, rows], 2 * rows.shape[-1] + 2)


def check_linear(
    noise: ArrayLike, answers: ArrayLike, modulus: int, matrix: ArrayLike, values: ArrayLike
) -> ExactCheck:
    """Additive noise on (Z mod modulus)^n given A z = b mod modulus: no more than the loss without the condition.

    `answers` of shape (inputs, n) must satisfy the equalities, or nothing of the kind is promised (`UsageError`).
    """
    rows = additive(noise, answers, modulus)
    a, b = np.atleast_2d(np.asarray(matrix, int)), np.atleast_1d(np.asarray(values, int))
    points = np.asarray(answers, int)
    if np.any((points @ a.T - b) % modulus):
        raise UsageError("answers must satisfy the equalities on every input, got one that does not.")
    grid = np.stack(np.unravel_index(np.arange(modulus ** a.shape[1]), (modulus,) * a.shape[1]), axis=1)
    on = np.all((grid @ a.T - b) % modulus == 0, axis=1).astype(float)
    derived = conditioned(rows, on)
    return _check("linear equalities", derived, losses(derived), losses(rows), [rows], rows.shape[-1] + 1)


def check_parallel(first: ArrayLike, second: ArrayLike, *, changed_pieces: int = 2) -> ExactCheck:
    """Parallel composition: the sum of the losses of the pieces that differ.

    With `changed_pieces` 1 only inputs that differ in one piece are asked; the others have inf promised.
    """
    derived = in_parallel(first, second)
    one, other = losses(first), losses(second)
    total = one[..., :, None, :, None] + other[..., None, :, None, :]  # (..., i, j, i', j')
    if changed_pieces == 1:
        same, same_too = np.eye(one.shape[-1], dtype=bool), np.eye(other.shape[-1], dtype=bool)
        total = np.where(same[:, None, :, None] | same_too[None, :, None, :], total, np.inf)
    inputs = one.shape[-1] * other.shape[-1]
    promised = total.reshape(*total.shape[:-4], inputs, inputs)
    return _check("parallel composition", derived, losses(derived), promised, [first, second], 1)


# ---- rounding --------------------------------------------------------------------------------------------------------


def _check(
    law: str,
    derived: FloatArray,
    found: FloatArray,
    promised: FloatArray,
    given: Sequence[Any],
    operations: int,
    epsilon: float | None = None,
    order: float | None = None,
) -> ExactCheck:
    """The check with its tolerance: `operations` made an entry of `derived`, the promise adds up len(given) terms."""
    matrices = [derived, *(np.asarray(rows, dtype=float) for rows in given)]
    if epsilon is not None:
        tolerance = _delta_tolerance(matrices, operations, epsilon)
    elif order is not None:
        tolerance = _renyi_tolerance(matrices, operations, order)
    else:
        tolerance = _loss_tolerance(matrices, operations)
    return ExactCheck(law, derived, found, np.asarray(promised), len(matrices) * tolerance)


def _largest_log(matrices: Sequence[FloatArray]) -> float:
    """The largest |log| of a positive entry; at least 1."""
    return max(1.0, -math.log(min(float(rows[rows > 0.0].min()) for rows in matrices)))


def _loss_tolerance(matrices: Sequence[FloatArray], operations: int) -> float:
    """Each log is off by (operations + 1) u for its argument and by 2 u of itself; a loss is a difference of two."""
    return 2.0 * UNIT * (operations + 1 + 3.0 * _largest_log(matrices))


def _delta_tolerance(matrices: Sequence[FloatArray], operations: int, epsilon: float) -> float:
    """Terms p - e^epsilon q, where e^epsilon q < 2 p, are off by (operations + 4 + epsilon) u of p + e^epsilon q.

    So the sum is off by 3 (operations + 4 + epsilon) u, and by the outcomes times u for adding it up; rows that sum to
    1 within s make a promise of delta worth s more.
    """
    off = max(float(np.abs(rows.sum(axis=-1) - 1.0).max()) for rows in matrices)
    outcomes = float(max(rows.shape[-1] for rows in matrices))
    return UNIT * (3.0 * (operations + 4.0 + epsilon) + outcomes) + 2.0 * off


def _renyi_tolerance(matrices: Sequence[FloatArray], operations: int, order: float) -> float:
    """An exponent r log p - (r - 1) log q is off by 2 r - 1 times what a log is; the log of a sum by that and more."""
    logs = operations + 1 + 3.0 * _largest_log(matrices)
    outcomes = float(max(rows.shape[-1] for rows in matrices))
    return UNIT * ((2.0 * order - 1.0) * logs + 2.0 * outcomes + 4.0) / (order - 1.0)


def _both_ways(table: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(table, np.swapaxes(table, -2, -1)))


def _measure(order: float | None, epsilon: float | None = None) -> Measure:
    if order is not None and epsilon is not None:
        raise UsageError("epsilon must be left out where an order is given, got both.")
    if order is not None:
        return lambda rows: renyi_divergences(rows, order)
    if epsilon is not None:
        return lambda rows: deltas(rows, epsilon)
    return losses


def _stochastic(name: str, given: ArrayLike) -> FloatArray:
    rows = np.asarray(given, dtype=float)
    if rows.ndim < 2 or not np.all((rows == 0.0) | ((rows >= MIN_P) & (rows <= 1.0 + SUM_TOLERANCE))):
        raise UsageError(f"{name} must be probabilities, 0 or at least {MIN_P:g}, got others in shape {rows.shape}.")
    totals = np.abs(rows.sum(axis=-1) - 1.0)
    if not np.all(totals <= SUM_TOLERANCE):
        raise UsageError(f"{name} must have rows that sum to 1, got one that is off by {totals.max():g}.")
    return rows
