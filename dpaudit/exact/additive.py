"""Exact losses of additive noise: an output law and the same law shifted.

Adding independent Laplace or normal noise of one law to two answers gives two laws that differ by a shift, the
difference of the answers: a number, or a vector of shape (coordinates,). `scale` is that of the Laplace law (one
number, or one a coordinate), `sigma` the standard deviation of the normal law; both in the units of the shift, in
[0, inf): 0 is no noise. All quantities are the same in both directions (the laws are symmetric), in nats, exact up to
rounding.

Sources: Dwork, McSherry, Nissim and Smith (2006) and DX-T1 (Laplace loss); Balle, Barthe and Gaboardi (2018),
arXiv:1807.01647, theorem 3 (Laplace profile); Balle and Wang (2018), arXiv:1805.06530, theorem 5 (Gaussian profile);
Mironov (2017), arXiv:1702.07476, propositions 6 and 7 (Renyi divergences).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import gaussian_profile, number

FloatArray = NDArray[np.float64]


def laplace_privacy_loss(shift: ArrayLike, scale: ArrayLike) -> float:
    """Privacy loss of independent Laplace noise: the sum over coordinates of |shift| / scale.

    Parameters
    ----------
    shift : array_like of float, shape () or (coordinates,)
        Difference of the two answers; finite.
    scale : array_like of float, shape () or (coordinates,)
        In [0, inf). A coordinate without noise adds inf if it is shifted, and 0 if not.

    Returns
    -------
    float
        In nats, in [0, inf].

    Raises
    ------
    UsageError
        If shapes do not fit, or a value is out of range.

    Examples
    --------
    >>> laplace_privacy_loss([1.0, -3.0], [2.0, 4.0])
    1.25
    """
    return math.fsum(_in_units_of(shift, scale, "scale").tolist())


def laplace_privacy_profile(shift: float, scale: float, epsilon: float) -> float:
    """Privacy profile of Laplace noise on a number: the least delta for which the pair keeps (epsilon, delta).

    Equal to 1 - exp((epsilon - |shift| / scale) / 2) where epsilon is below |shift| / scale, else 0.

    Parameters
    ----------
    shift, scale : float
        As in `laplace_privacy_loss`, numbers.
    epsilon : float
        In nats, in [0, inf).

    Returns
    -------
    float
        delta in [0, 1].

    Examples
    --------
    >>> round(laplace_privacy_profile(1.0, 0.5, epsilon=1.0), 6)  # 1 - exp(-1/2)
    0.393469
    """
    loss = laplace_privacy_loss(_scalar("shift", shift), _scalar("scale", scale))
    return max(0.0, -math.expm1(0.5 * (_epsilon(epsilon) - loss)))


def laplace_renyi_divergence(shift: ArrayLike, scale: ArrayLike, renyi_order: float) -> float:
    """Renyi divergence of independent Laplace noise, of an order in [1, inf]; a sum over coordinates.

    With s = |shift| / scale and order r > 1 each coordinate has
    log(r / (2r - 1) e^((r-1) s) + (r - 1) / (2r - 1) e^(-r s)) / (r - 1); s + e^(-s) - 1 at order 1, s at order inf.

    Parameters
    ----------
    shift, scale : array_like of float
        As in `laplace_privacy_loss`.
    renyi_order : float
        In [1, inf].

    Returns
    -------
    float
        In nats, in [0, inf]. Relative rounding error about 2**-52 / ((r - 1) s^2) for small s.

    Examples
    --------
    >>> round(laplace_renyi_divergence(1.0, 1.0, 2.0), 6)
    0.619124
    """
    ratios = _in_units_of(shift, scale, "scale")
    order = _order(renyi_order)
    if math.isinf(order) or np.isinf(ratios).any():
        return math.fsum(ratios.tolist())
    if order == 1.0:
        return math.fsum((ratios + np.expm1(-ratios)).tolist())
    first = math.log(order / (2.0 * order - 1.0)) + (order - 1.0) * ratios
    second = math.log((order - 1.0) / (2.0 * order - 1.0)) - order * ratios
    return max(0.0, math.fsum(np.logaddexp(first, second).tolist()) / (order - 1.0))


def gaussian_privacy_loss(shift: ArrayLike, sigma: float) -> float:
    """Supremum of the privacy loss of normal noise: 0 without a shift, else inf (the loss grows along the tails).

    Examples
    --------
    >>> gaussian_privacy_loss([0.0, 0.1], 1.0)
    inf
    """
    return math.inf if _mu(shift, sigma) > 0.0 else 0.0


def gaussian_privacy_profile(shift: ArrayLike, sigma: float, epsilon: float) -> float:
    """Privacy profile of normal noise: the least delta for which the pair keeps (epsilon, delta).

    Equal to Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2) for mu = |shift|_2 / sigma.

    Parameters
    ----------
    shift : array_like of float, shape () or (coordinates,)
        Difference of the two answers; finite.
    sigma : float
        Standard deviation of each coordinate, in [0, inf).
    epsilon : float
        In nats, in [0, inf).

    Returns
    -------
    float
        delta in [0, 1]; relative error below 1e-9 where it exceeds 1e-12.

    Examples
    --------
    >>> round(gaussian_privacy_profile([0.6, 0.8], 1.0, epsilon=1.0), 6)
    0.126937
    """
    return float(gaussian_profile(np.array([_mu(shift, sigma)]), _epsilon(epsilon))[0])


def gaussian_renyi_divergence(shift: ArrayLike, sigma: float, renyi_order: float) -> float:
    """Renyi divergence of normal noise, of an order r in [1, inf]: r mu^2 / 2 with mu = |shift|_2 / sigma.

    Examples
    --------
    >>> gaussian_renyi_divergence(1.0, 1.0, 3.0)
    1.5
    """
    rho = gaussian_rho(shift, sigma)
    return rho * _order(renyi_order) if rho > 0.0 else 0.0


def gaussian_rho(shift: ArrayLike, sigma: float) -> float:
    """Least rho for which normal noise keeps rho-zCDP: mu^2 / 2 with mu = |shift|_2 / sigma.

    Examples
    --------
    >>> gaussian_rho([3.0, 4.0], 5.0)
    0.5
    """
    return 0.5 * _mu(shift, sigma) ** 2


def _in_units_of(shift: ArrayLike, noise: ArrayLike, name: str) -> FloatArray:
    """|shift| / noise, one number a coordinate, shape (coordinates,); 0/0 is 0."""
    shifts, noises = _finite("shift", shift), _finite(name, noise)
    if (noises < 0.0).any():
        raise UsageError(f"{name} must be in [0, inf), got {noises.min()}.")
    if noises.size not in (1, shifts.size):
        raise UsageError(f"{name} must be one number or {shifts.size} (one a coordinate), got {noises.size}.")
    noises = np.broadcast_to(noises, shifts.shape)
    no_noise = np.where(shifts != 0.0, np.inf, 0.0)
    return np.divide(np.abs(shifts), noises, out=no_noise, where=noises > 0.0)


def _mu(shift: ArrayLike, sigma: float) -> float:
    return math.hypot(*_in_units_of(shift, _scalar("sigma", sigma), "sigma").tolist())


def _finite(name: str, values: ArrayLike) -> FloatArray:
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} must be a number or a list of numbers, got {values!r}.") from error
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise UsageError(f"{name} must be finite, a number or of shape (coordinates,), got {array.tolist()}.")
    return array


def _scalar(name: str, value: float) -> float:
    return number(name, value, "a finite number", math.isfinite)


def _epsilon(epsilon: float) -> float:
    return number("epsilon", epsilon, "in [0, inf)", lambda v: 0.0 <= v < math.inf)


def _order(renyi_order: float) -> float:
    return number("renyi_order", renyi_order, "in [1, inf]", lambda v: v >= 1.0)
