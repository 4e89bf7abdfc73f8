"""Claims of privacy, each a one-parameter family of bounded linear inequalities on two output laws.

Conventions
-----------
* P = M(x) and Q = M(x_prime) are the output laws of one pair. Epsilon, rho and Renyi epsilons are in nats.
* A claim holds for a pair in *both* directions: every inequality below is asked of (P, Q) and of (Q, P). A
  *one-directional* claim (`is_symmetric` is False) promises one thing of (P, Q) and another, or nothing, of (Q, P);
  `in_order` tells them apart. What it says without an order (`lines`, `profile`, `epsilon_at`) holds in both orders.
* A claim is a promise about one **parameter** (epsilon, mu, rho, ...): larger values promise less, and the families are
  nested. `value` is the promised one; the auditor rejects values from below, so that "violated" means "every value up
  to and including the promised one is rejected".
* Two kinds of inequality serve all claims:

  - `HockeyStickLine(epsilon, delta)`:  P(S) - e^epsilon Q(S) <= delta  for every event S;
  - `RenyiInequality(order, epsilon)`:  E_P[r g^(r-1)] - E_Q[(r-1) g^r] <= exp((r-1) epsilon)  for every bounded g >= 0.

  Pure, approximate, Gaussian, metric and profile claims are families of lines (their privacy profile). Renyi and zCDP
  claims are not characterised by one profile: a line test with the profile of a Gaussian would refute sound mechanisms.
* An infinite value, or delta = 1, promises nothing: the pair is *not asked*. A value of 0 (and delta 0) says that the
  two laws are equal.

Sources: Balle, Barthe and Gaboardi (2018), arXiv:1807.01647 (profiles); Dong, Roth and Su (2019),
arXiv:1905.02383 (Gaussian DP); Bun and Steinke (2016), arXiv:1605.02065 (zCDP); Mironov (2017), arXiv:1702.07476 (RDP).
"""

from __future__ import annotations

import dataclasses
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, Protocol, Self, cast, runtime_checkable

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.arguments import check_among
from dpaudit.arguments import number as number
from dpaudit.arguments import whole_number as whole_number
from dpaudit.errors import UsageError
from dpaudit.privacy.pairs import short_form

FloatArray = NDArray[np.float64]
REPORT_DELTA = 1e-6  # where a claim's parameter is no epsilon, epsilon is reported at this one
HIGH_ORDER = 16.0  # of a Renyi claim, beyond which bets are made at these as well
LOWER_ORDERS = 2.0, 8.0
TOLERANCE = 1e-9  # slack of what users compute in double precision: distances, trade-off functions, changes of inputs
ROUNDING = 2e-15  # relative, of complementary error functions: by so much a Gaussian profile is read as larger
NARROW = 0.1  # a mu below which two complementary error functions are not told apart by their difference
LARGEST_EPSILON = 700.0  # nats; e^epsilon stays below the largest double, and a profile is asked no further out


@dataclasses.dataclass(frozen=True)
class Budget:
    """Privacy budget of one pair: an (epsilon, delta) point of the claim's privacy profile.

    `epsilon` is inf where the claim asks nothing of the pair.
    """

    epsilon: float
    delta: float


@dataclasses.dataclass(frozen=True)
class HockeyStickLine:
    """The inequality P(S) - e^epsilon Q(S) <= delta for every event S: of one order of a pair, P first."""

    epsilon: float
    delta: float


@dataclasses.dataclass(frozen=True)
class RenyiInequality:
    """The variational inequality of one Renyi order: E_P[r g^(r-1)] - E_Q[(r-1) g^r] <= exp((r-1) epsilon).

    It holds for every bounded g >= 0 exactly when the Renyi divergence of order r of P from Q is at most epsilon
    (weighted arithmetic-geometric means, with equality at g = dP/dQ).
    """

    order: float
    epsilon: float

    @property
    def bound(self) -> float:
        """exp((r-1) epsilon), the right-hand side; inf where it overflows."""
        exponent = (self.order - 1.0) * self.epsilon
        return math.exp(exponent) if exponent < 709.0 else math.inf

    def terms(self, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The functions a = r g^(r-1) (paid under P) and b = (r-1) g^r (charged under Q), each of g's shape."""
        return self.order * g ** (self.order - 1.0), (self.order - 1.0) * g**self.order


Inequality = HockeyStickLine | RenyiInequality


def number_text(value: float) -> str:
    """The shortest text that reads back as the same double, without a trailing `.0`: `1`, `0.1`, `1e-06`, `inf`."""
    return repr(float(value)).removesuffix(".0")


def _is_budget(value: float) -> bool:
    return value >= 0.0  # False for NaN; infinity is legal: "not asked"


_RANGES: dict[str, tuple[str, Callable[[float], bool]]] = {  # of the fields of claims, by their names
    **dict.fromkeys(("epsilon", "mu", "rho", "scale"), ("in [0, inf]", _is_budget)),
    "delta": ("in [0, 1]", lambda value: 0.0 <= value <= 1.0),
    "order": ("in (1, inf)", lambda value: 1.0 < value < math.inf),
}


def _checked(name: str, value: float) -> float:
    return number(name, value, *_RANGES[name])


class Claim(ABC):
    """A promise that a mechanism makes. Frozen; compare and print freely.

    `parameter` names what is promised, `value` is how much. `anchored` says that a hockey-stick family leaves the
    bettor free to choose the epsilon of its line (the anchor), as a Gaussian or profile claim does.
    """

    parameter: ClassVar[str]
    family: ClassVar[Literal["hockey-stick", "renyi"]] = "hockey-stick"
    anchored: ClassVar[bool] = False
    has_value: ClassVar[bool] = True  # False: nothing is promised before the pair is known (`for_pair`)
    delta: float = 0.0

    @property
    @abstractmethod
    def value(self) -> float:
        """The promised value of the parameter, in [0, inf]."""

    @abstractmethod
    def with_value(self, value: float) -> Claim:
        """The claim of the same family with another value of its parameter."""

    @abstractmethod
    def __str__(self) -> str:
        """The claim as the command line writes it, for example `eps=1,delta=1e-06`."""

    def for_pair(self, x: Any, x_prime: Any) -> Claim:
        """The claim for one pair: itself, unless it depends on the pair (`depends_on_pair`)."""
        return self

    @property
    def depends_on_pair(self) -> bool:
        """Tell whether `for_pair` gives other claims for other pairs, as `MetricDP` does."""
        return type(self).for_pair is not Claim.for_pair

    @property
    def is_symmetric(self) -> bool:
        """Tell whether the claim promises the same of (P, Q) and of (Q, P)."""
        return True

    def in_order(self, reverse: bool) -> Claim:
        """The claim on one ordered pair of laws: (P, Q), or (Q, P) with `reverse`.

        Itself for a symmetric claim. For a one-directional claim, the claim of the same parameter and value whose lines
        are those of that order: they bound P(S) - e^epsilon Q(S), or Q(S) - e^epsilon P(S) with `reverse`. Where an
        order is promised nothing their delta is 1 at every value.
        """
        return self

    @property
    def directions(self) -> tuple[Claim, ...]:
        """The claims on (P, Q) and on (Q, P); itself alone where both are one."""
        return (self,) if self.is_symmetric else (self.in_order(False), self.in_order(True))

    @property
    def is_one_line(self) -> bool:
        """Tell whether the claim is one hockey-stick line at each value: no lines of free epsilon, no Renyi bounds."""
        return not self.anchored and self.family == "hockey-stick"

    @property
    def is_order_of_pair(self) -> bool:
        """Tell whether which input of a pair is named first decides what is promised: of `FDP(f, ordered=True)`."""
        return not self.is_symmetric and not self.depends_on_pair

    @classmethod
    def redefined(cls, names: Sequence[str]) -> tuple[type[Claim], list[str]]:
        """The nearest class of this module that this one is or inherits from, and which of `names` it replaces."""
        family = next(kind for kind in cls.__mro__ if kind.__module__ == __name__)
        return family, [name for name in names if getattr(cls, name) is not getattr(family, name)]

    @property
    def is_vacuous(self) -> bool:
        """Tell whether the claim promises nothing, so that the pair is not asked."""
        return math.isinf(self.value) or self.delta >= 1.0

    @abstractmethod
    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon for which the claim promises (epsilon, delta)-DP, delta in [0, 1]; inf if there is none.

        Exact for hockey-stick families; a valid, not always tight, conversion for Renyi families.
        """

    @property
    def report_delta(self) -> float:
        """The delta at which epsilon is reported: `delta`, or `REPORT_DELTA` where the parameter is no epsilon."""
        return self.delta

    @property
    def budget(self) -> Budget:
        """The claim as one point of its privacy profile, at `report_delta`."""
        return Budget(self.epsilon_at(self.report_delta), self.report_delta)

    def profile(self, epsilon: float) -> float:
        """The smallest delta that the claim promises at `epsilon` >= 0 (its privacy profile)."""
        if self.family == "renyi":
            raise UsageError(f"claim must have a privacy profile, got {self} ({type(self).__name__}).")
        at, delta = (float(side[0]) for side in self.lines(np.array([self.value]), _checked("epsilon", epsilon)))
        return min(delta, 1.0) if self.anchored else ApproxDP(at, min(delta, 1.0)).profile(epsilon)

    def lines(self, values: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
        """Epsilon and delta of the family's line at each parameter value (and at the anchor, where anchored).

        Both orders of a pair keep it. Where `is_symmetric` is False it is the weaker one: ask `in_order(...)` instead.
        """
        raise UsageError(
            f"claim must be a family of hockey-stick lines, got {self} ({type(self).__name__}). Define lines(values, "
            "anchor), or family = 'renyi' with orders and renyi_epsilons."
        )

    def renyi_epsilons(self, values: FloatArray, order: float) -> FloatArray:
        """The promised Renyi divergence of one order, in nats, at each parameter value."""
        raise UsageError(f"claim must be a family of Renyi inequalities, got {self} ({type(self).__name__}).")

    @property
    def orders(self) -> tuple[float, ...]:
        """The Renyi orders at which the claim may be bet against; empty for hockey-stick families."""
        return ()

    def inequality(self, at: float = 0.0) -> Inequality:
        """One inequality of the claim: the line at anchor `at` >= 0, or the Renyi inequality of order `at`."""
        value = np.array([self.value])
        if self.family == "renyi":
            return RenyiInequality(at, float(self.renyi_epsilons(value, at)[0]))
        epsilon, delta = self.lines(value, at)
        return HockeyStickLine(float(epsilon[0]), float(delta[0]))


def delegated(path: str) -> Any:
    """A property or a method that a claim has of a part of it, as "promise.value"."""
    return property(operator.attrgetter(path))


@dataclasses.dataclass(frozen=True)
class _FieldClaim(Claim):
    """A claim whose parameter is one of its fields; they are checked, and epsilon is reported at `REPORT_DELTA`."""

    _field: ClassVar[str]  # a subclass may name its parameter as it likes

    def __post_init__(self) -> None:
        for name in filter(_RANGES.__contains__, self.__dataclass_fields__):
            object.__setattr__(self, name, _checked(name, getattr(self, name)))

    @property
    def value(self) -> float:
        return float(getattr(self, self._field))

    def with_value(self, value: float) -> Self:
        return dataclasses.replace(self, **{self._field: value})

    @property
    def report_delta(self) -> float:
        return REPORT_DELTA


@dataclasses.dataclass(frozen=True)
class ApproxDP(_FieldClaim):
    """(epsilon, delta)-DP: P(S) <= e^epsilon Q(S) + delta for every event S, in both directions.

    Parameters
    ----------
    epsilon : float
        In nats, in [0, inf]; inf promises nothing.
    delta : float
        In [0, 1]; 1 promises nothing.

    Examples
    --------
    >>> claim = ApproxDP(1.0, 0.01)
    >>> str(claim)
    'eps=1,delta=0.01'
    >>> claim.profile(2.0)
    0.01
    """

    epsilon: float
    delta: float = 0.0
    parameter: ClassVar[str] = "epsilon"
    _field: ClassVar[str] = "epsilon"

    @property
    def report_delta(self) -> float:
        return self.delta

    def __str__(self) -> str:
        return f"eps={number_text(self.epsilon)},delta={number_text(self.delta)}"

    def epsilon_at(self, delta: float) -> float:
        delta = _checked("delta", delta)
        if delta >= 1.0:
            return 0.0
        if delta < self.delta or math.isinf(self.epsilon):
            return math.inf
        # The dominating pair reveals the input with probability delta and is randomised response otherwise: invert
        # delta(e) = d0 + (1 - d0)(e^e0 - e^e)/(1 + e^e0) for e, in logarithms so that large epsilons do not overflow.
        share = (delta - self.delta) / (1.0 - self.delta)
        rest = 1.0 - share * (1.0 + math.exp(-self.epsilon))
        return max(0.0, self.epsilon + math.log(rest)) if rest > 0.0 else 0.0

    def profile(self, epsilon: float) -> float:
        epsilon = _checked("epsilon", epsilon)
        if math.isinf(self.epsilon):
            return 1.0
        gap = -math.expm1(min(0.0, epsilon - self.epsilon)) / (1.0 + math.exp(-self.epsilon))
        return self.delta + (1.0 - self.delta) * gap

    def lines(self, values: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
        values = np.asarray(values, dtype=float)
        return values, np.full_like(values, self.delta)


def epsilon_of_broken_line(epsilon: float, delta: float, at: float) -> float:
    """Lower bound on the epsilon at delta `at` of two laws that break the line (epsilon, delta); 0 if none follows.

    Validity. (e, at)-DP implies that the hockey-stick divergence at `epsilon` is at most the profile of `ApproxDP(e,
    at)`. So laws that break the line are not (e, at)-DP for the e whose profile at `epsilon` is `delta`.

    Examples
    --------
    >>> epsilon_of_broken_line(1.5, 0.0, at=0.0), epsilon_of_broken_line(1.5, 0.0, at=1e-6)
    (1.5, 0.0)
    >>> round(epsilon_of_broken_line(0.0, 0.4, at=0.0), 6)  # log 1.4 / 0.6: a total variation above 0.4
    0.847298
    """
    if delta < at:
        return 0.0
    share = (delta - at) / (1.0 - at) if at < 1.0 else 1.0
    if share >= 1.0:  # no laws break such a line
        return math.inf
    return epsilon + math.log1p(share * math.exp(-epsilon)) - math.log1p(-share)


def single_line(claim: Claim) -> HockeyStickLine | None:
    """The line that a claim promises, where it is a single one; None for free lines and for Renyi divergences."""
    line = claim.inequality() if claim.is_one_line else None
    return line if isinstance(line, HockeyStickLine) else None


@dataclasses.dataclass(frozen=True)
class PureDP(ApproxDP):
    """epsilon-DP: P(S) <= e^epsilon Q(S) for every event S, in both directions.

    Parameters
    ----------
    epsilon : float
        In nats, in [0, inf]; inf promises nothing, 0 that the two laws are equal.

    Examples
    --------
    >>> str(PureDP(1.0))
    'eps=1'
    >>> round(PureDP(1.0).profile(0.0), 6)  # the total variation that 1-DP allows
    0.462117
    """

    delta: float = dataclasses.field(default=0.0, init=False)

    def __str__(self) -> str:
        return f"eps={number_text(self.epsilon)}"


@dataclasses.dataclass(frozen=True)
class GaussianDP(_FieldClaim):
    """mu-Gaussian DP: telling P from Q is no easier than telling N(0, 1) from N(mu, 1).

    Parameters
    ----------
    mu : float
        In [0, inf]; inf promises nothing.

    Examples
    --------
    >>> round(GaussianDP(1.0).profile(1.0), 6)
    0.126937
    """

    mu: float
    parameter: ClassVar[str] = "mu"
    _field: ClassVar[str] = "mu"
    anchored: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"mu={number_text(self.mu)}"

    def epsilon_at(self, delta: float) -> float:
        if (delta := _checked("delta", delta)) >= 1.0 or self.mu == 0.0:
            return 0.0
        if delta == 0.0 or math.isinf(self.mu):
            return math.inf
        wide = max(1.0, self.mu)

        def excess(part: float) -> float:
            """The profile (erfc(u) - e^(-u^2) erfcx(v)) / 2 at epsilon = mu wide part, less delta, up to a factor."""
            u, v = ((part * wide + sign * self.mu / 2.0) / math.sqrt(2.0) for sign in (-1.0, 1.0))
            tail = float(scipy.special.erfcx(v))
            if u < 0.0:  # in shares that delta leaves, as it may be near 1; else in logarithms, as it may be near 0
                left = 0.5 * (math.erfc(-u) + math.exp(-u * u) * tail)
                return (1.0 - delta) - left + ROUNDING * (1.0 - delta + left)
            return math.log(0.5 * (scipy.special.erfcx(u) * (1.0 + ROUNDING) - tail)) - u * u - math.log(delta)

        return (1.0 + 1e-10) * self.mu * wide * epsilon_of_profile(excess, 0.0)  # that part is at most 40

    def lines(self, values: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
        values = np.asarray(values, dtype=float)
        return np.full_like(values, anchor), gaussian_profile(values, anchor)


def no_promise(epsilon: float) -> float:
    """The privacy profile that promises nothing: delta 1 at every epsilon."""
    return 1.0


@dataclasses.dataclass(frozen=True)
class DirectedProfile:
    """Privacy profiles of both orders of a pair; called with epsilon, it gives the larger delta, which both keep.

    Parameters
    ----------
    forward : callable
        Of (P, Q): P(S) <= e^epsilon Q(S) + forward(epsilon) for every event S and epsilon >= 0.
    backward : callable, optional
        Of (Q, P): Q(S) <= e^epsilon P(S) + backward(epsilon). It promises nothing by default.

    Examples
    --------
    >>> claim = ProfileClaim(DirectedProfile(lambda epsilon: 0.1, lambda epsilon: 0.2))
    >>> claim.in_order(False).profile(1.0), claim.in_order(True).profile(1.0), claim.profile(1.0)
    (0.1, 0.2, 0.2)
    """

    forward: Callable[[float], float]
    backward: Callable[[float], float] = no_promise

    def __call__(self, epsilon: float) -> float:
        return max(self.forward(epsilon), self.backward(epsilon))


@dataclasses.dataclass(frozen=True)
class ProfileClaim(_FieldClaim):
    """A privacy profile of the user's own: P(S) <= e^epsilon Q(S) + function(epsilon) for every S and epsilon >= 0.

    Its parameter is a *scale* on epsilon: the claim of scale s promises delta(epsilon) = function(epsilon / s), so 1 is
    the promise itself and a lower bound of 1.2 says that the profile would have to be stretched by at least 1.2.

    Parameters
    ----------
    function : callable
        epsilon in [0, 700] nats (float) to delta in [0, 1]; must not increase (checked on a grid of 65 points). Beyond
        700 nats its value at 700 is used: the weaker promise, since the function does not increase. A `DirectedProfile`
        holds one such function for (P, Q) and one for (Q, P): the claim is one-directional then.
    name : str, optional
        How the claim is printed.
    scale : float, optional
        In [0, inf]; 1 by default.

    Examples
    --------
    >>> ProfileClaim(lambda epsilon: 0.1, name="a tenth").profile(3.0)
    0.1
    """

    function: Callable[[float], float]
    name: str = "profile"
    scale: float = 1.0
    parameter: ClassVar[str] = "scale"
    _field: ClassVar[str] = "scale"
    anchored: ClassVar[bool] = True
    _known: ClassVar[dict[float, float]]  # of each claim its own

    def __post_init__(self) -> None:
        super().__post_init__()
        if not callable(self.function):
            raise UsageError(f"function must be a callable from epsilon to delta, got {self.function!r}.")
        owner, names = (self, ("function",)) if self.is_symmetric else (self.function, ("forward", "backward"))
        for name in names:
            function, previous = getattr(owner, name), 1.0
            for epsilon in [0.0, *np.geomspace(0.01, LARGEST_EPSILON, 64).tolist()]:
                delta = _delta_of(function, name, epsilon)
                if delta > previous + 1e-12:  # rounding of a profile computed in double precision
                    raise UsageError(f"{name} must not increase, got {delta!r} at {epsilon:g} after {previous!r}.")
                previous = delta
        object.__setattr__(self, "_known", {})  # deltas by epsilon: a function may take long, and is asked often

    @property
    def is_symmetric(self) -> bool:
        return not isinstance(self.function, DirectedProfile)

    def in_order(self, reverse: bool) -> ProfileClaim:
        if not isinstance(self.function, DirectedProfile):
            return self
        return ProfileClaim(self.function.backward if reverse else self.function.forward, self.name, self.scale)

    def __str__(self) -> str:
        return self.name + ("" if self.scale == 1.0 else f" (scale {number_text(self.scale)})")

    def epsilon_at(self, delta: float) -> float:
        return epsilon_of_profile(self.profile, _checked("delta", delta))

    def lines(self, values: FloatArray, anchor: float) -> tuple[FloatArray, FloatArray]:
        deltas = [self._delta_at_scale(scale, anchor) for scale in np.asarray(values, dtype=float).tolist()]
        return np.full(len(deltas), anchor), np.array(deltas)

    def _delta_at_scale(self, scale: float, epsilon: float) -> float:
        # At scale 0 what is left is the value at 0 and the tail; an infinite scale keeps only the value at 0.
        if epsilon == 0.0 or math.isinf(scale):
            at = 0.0
        else:
            at = min(epsilon / scale, LARGEST_EPSILON) if scale > 0.0 else LARGEST_EPSILON
        if at not in self._known:
            self._known[at] = _delta_of(self.function, "function", at)
        return self._known[at]


def _delta_of(function: Callable[[float], float], name: str, epsilon: float) -> float:
    """The delta of a profile at an epsilon, checked."""
    try:
        delta = function(epsilon)
    except ArithmeticError as error:
        raise UsageError(f"{name} must be defined in [0, 700] nats, got {error!r} at {epsilon:g}.") from error
    return number(f"{name}({epsilon:g})", delta, "in [0, 1]", lambda value: 0.0 <= value <= 1.0)


@dataclasses.dataclass(frozen=True)
class RenyiDP(_FieldClaim):
    """(order, epsilon)-Renyi DP: the Renyi divergence of one order is at most epsilon, in both directions.

    Parameters
    ----------
    order : float
        In (1, inf).
    epsilon : float
        In nats, in [0, inf]; inf promises nothing.

    Examples
    --------
    >>> str(RenyiDP(2.0, 0.3))
    'order=2,rdp=0.3'
    """

    order: float
    epsilon: float
    parameter: ClassVar[str] = "epsilon"
    _field: ClassVar[str] = "epsilon"
    family: ClassVar[Literal["hockey-stick", "renyi"]] = "renyi"

    def __str__(self) -> str:
        return f"order={number_text(self.order)},rdp={number_text(self.epsilon)}"

    def epsilon_at(self, delta: float) -> float:
        """By Mironov's conversion epsilon + log(1/delta) / (order - 1); valid, not tight."""
        delta = _checked("delta", delta)
        if delta >= 1.0 or self.epsilon == 0.0:  # a divergence of 0 says that the two laws are equal
            return 0.0
        return self.epsilon - math.log(delta) / (self.order - 1.0) if delta > 0.0 else math.inf

    def renyi_epsilons(self, values: FloatArray, order: float) -> FloatArray:
        # Validity: the divergence does not decrease with the order, so the promise covers every smaller order too.
        number("order", order, f"in (1, {number_text(self.order)}]", lambda value: 1.0 < value <= self.order)
        return np.asarray(values, dtype=float)

    @property
    def orders(self) -> tuple[float, ...]:
        # At a very large one no bet is worth anything, since its moments overflow; smaller ones are promised too.
        return (self.order,) if self.order <= HIGH_ORDER else (*LOWER_ORDERS, self.order)


@dataclasses.dataclass(frozen=True)
class ZeroConcentratedDP(_FieldClaim):
    """rho-zCDP: for every order r > 1 the Renyi divergence is at most rho * r, in both directions.

    Parameters
    ----------
    rho : float
        In nats, in [0, inf]; inf promises nothing.

    Examples
    --------
    >>> round(ZeroConcentratedDP(0.5).budget.epsilon, 4)  # at delta = 1e-6
    5.7565
    """

    rho: float
    parameter: ClassVar[str] = "rho"
    _field: ClassVar[str] = "rho"
    family: ClassVar[Literal["hockey-stick", "renyi"]] = "renyi"

    def __str__(self) -> str:
        return f"rho={number_text(self.rho)}"

    def epsilon_at(self, delta: float) -> float:
        """By Bun and Steinke's conversion rho + 2 sqrt(rho log(1/delta)); valid, not tight."""
        delta = _checked("delta", delta)
        if delta >= 1.0 or self.rho == 0.0:
            return 0.0
        return self.rho + 2.0 * math.sqrt(self.rho) * math.sqrt(-math.log(delta)) if delta > 0.0 else math.inf

    def renyi_epsilons(self, values: FloatArray, order: float) -> FloatArray:
        _checked("order", order)
        return np.asarray(values, dtype=float) * order

    @property
    def orders(self) -> tuple[float, ...]:
        return (1.05, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)


@runtime_checkable
class Distance(Protocol):
    """d_X: a budget in nats for two inputs, or for two records; inf asks nothing, 0 asks for equal laws."""

    def __call__(self, x: Any, x_prime: Any) -> float: ...


@dataclasses.dataclass(frozen=True)
class MetricDP(Claim):
    """d_X-privacy: for each pair, the pair's own budget d_X (definition DX-D2 of the ledger of papers).

    Parameters
    ----------
    metric : callable
        (x, x_prime) to a budget in [0, inf], in nats; the same in both orders, and at every call.
        `dpaudit.privacy.metrics` has those that the papers name.
    on : {"inputs", "records"}
        Whether the metric compares two inputs, or two records: on "records" an input is a sequence of records, two
        inputs have the same length, and their budget is the sum of the metric over the positions that differ (one
        replacement after the other, by the triangle inequality).

    Raises
    ------
    UsageError
        At a pair whose distance is negative or NaN, another one in the other order (by more than rounding error), or
        whose inputs have different lengths (on "records").

    Examples
    --------
    >>> claim = MetricDP(lambda x, y: 0.5 * abs(x - y))
    >>> claim.for_pair(1.0, 4.0)
    PureDP(epsilon=1.5, delta=0.0)
    """

    metric: Distance
    on: Literal["inputs", "records"] = "inputs"
    parameter: ClassVar[str] = "epsilon"
    has_value: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not callable(self.metric):
            raise UsageError(f"metric must be a callable (x, x_prime) -> budget in nats, got {self.metric!r}.")
        check_among("on", self.on, ("inputs", "records"))

    def _refuse(self, *_: float) -> Any:
        raise UsageError("MetricDP has no single value: its budget depends on the pair. Use for_pair(x, x_prime).")

    value = property(_refuse)
    with_value = epsilon_at = cast("Any", _refuse)

    @property
    def is_vacuous(self) -> bool:
        return False

    def __str__(self) -> str:
        name = getattr(self.metric, "name", None) or type(self.metric).__name__
        return f"metric={name}" + ("" if self.on == "inputs" else ",on=records")

    def for_pair(self, x: Any, x_prime: Any) -> PureDP:
        return PureDP(self._sum(self._symmetric, x, x_prime))

    def distance(self, x: Any, x_prime: Any) -> float:
        """The budget of a pair in this order alone, in nats: `for_pair` asks the metric in both."""
        return self._sum(self._distance, x, x_prime)

    def _sum(self, distance: Callable[[Any, Any], float], x: Any, x_prime: Any) -> float:
        """The distance of two inputs, from that of two points."""
        if self.on == "inputs":
            return distance(x, x_prime)
        for data in (x, x_prime):
            if not isinstance(data, Sequence) and not (isinstance(data, np.ndarray) and data.ndim > 0):
                shown = short_form(data)
                raise UsageError(f"inputs must be sequences of records for a metric on records, got {shown}.")
        if len(x) != len(x_prime):
            raise UsageError(
                f"inputs must have the same number of records for a metric on records, got {len(x)} and {len(x_prime)}."
            )
        return sum((distance(u, v) for u, v in zip(x, x_prime, strict=True)), start=0.0)

    def _symmetric(self, u: Any, v: Any) -> float:
        """The distance of two points, the same in both orders."""
        distance, back = self._distance(u, v), self._distance(v, u)
        # Validity: a pair is tested in both directions against one budget, which has to be that of both.
        if not _are_close(distance, back):
            there = f"metric({short_form(u)}, {short_form(v)})"
            again = self._distance(u, v)
            if not _are_close(distance, again):
                raise UsageError(f"{there} must be the same at every call, got {distance!r} and {again!r}.")
            raise UsageError(
                f"metric must be symmetric, got {there} = {distance!r} but metric({short_form(v)}, {short_form(u)}) = "
                f"{back!r}. Take the larger or the smaller of the two for both."
            )
        return distance

    def _distance(self, u: Any, v: Any) -> float:
        try:
            distance = self.metric(u, v)
        except UsageError:
            raise
        except Exception as error:
            name = f"metric({short_form(u)}, {short_form(v)})"
            raise UsageError(f"{name} must be a budget in nats, got {error!r}.") from error
        if type(distance) is float and distance >= 0.0:  # to name the points takes longer than most metrics
            return distance
        name = f"metric({short_form(u)}, {short_form(v)})"
        return number(name, distance, "a budget in [0, inf] nats", _is_budget)


def _are_close(budget: float, other: float) -> bool:
    """Tell whether two budgets are equal but for rounding error."""
    return math.isclose(budget, other, rel_tol=TOLERANCE, abs_tol=1e-12)


def gaussian_profile(mu: FloatArray, epsilon: float) -> FloatArray:
    """Privacy profile of mu-Gaussian DP at one epsilon >= 0, for each mu in [0, inf].

    delta = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2), never negative. With e^-u^2 taken out of both
    terms no large power of e is left, and below a mu of 0.1 their difference is an integral of a positive function. So
    the relative error is below 1e-12 + 1e-14 mu where delta is above 1e-300 (rounding of mu to a double moves delta by
    as much). Source: Dong, Roth and Su (2019), corollary 1.
    """
    mu = np.asarray(mu, dtype=float)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # mu of 0 and inf are told apart at the end
        u, v = ((epsilon / mu + sign * mu / 2.0) / math.sqrt(2.0) for sign in (-1.0, 1.0))
        tail, power = scipy.special.erfcx(v), np.exp(-u * u)
        above = power * (scipy.special.erfcx(np.maximum(u, 0.0)) - tail)
        delta = 0.5 * np.maximum(np.where(u < 0.0, scipy.special.erfc(u) - power * tail, above), 0.0)
        if (mu < NARROW).any():  # erfcx(u) - erfcx(v): minus the derivative of erfcx, by Gauss-Legendre quadrature
            nodes, weights = np.polynomial.legendre.leggauss(5)
            at = np.minimum(u, 40.0)[..., None] + (mu / math.sqrt(8.0))[..., None] * (1.0 + nodes)
            slopes = (2.0 / math.sqrt(math.pi) - 2.0 * at * scipy.special.erfcx(at)) @ weights
            delta = np.where(mu < NARROW, 0.5 * power * slopes * mu / math.sqrt(8.0), delta)
    return np.where(np.isinf(mu), 1.0, np.where(mu == 0.0, 0.0, delta))


def epsilon_of_profile(profile: Callable[[float], float], delta: float) -> float:
    """The smallest epsilon in [0, 700] with profile(epsilon) <= delta; inf if there is none.

    Rounded up, by at most 1e-10 of itself or 1e-13, whichever is more.
    """
    if profile(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while profile(high) > delta:
        if high >= LARGEST_EPSILON:
            return math.inf
        low, high = high, min(2.0 * high, LARGEST_EPSILON)
    while high - low > max(1e-10 * high, 1e-13):  # the floor ends the search where a profile jumps at 0
        middle = 0.5 * (low + high)
        low, high = (middle, high) if profile(middle) > delta else (low, middle)
    return high
