"""Payoffs: bets on the bins of a table against what a claim promises.

Labels are fair coins. A claim is a set of inequalities on the two laws of bins,

    E_P[a] - E_Q[b] <= c,        P = M(x), Q = M(x_prime), and the same in the other order,

so a payoff of a on label 1 and of -b on label 0 has mean at most c / 2 a labelled draw, and

    factor = 1 + stake (payoff - c / 2)

has mean at most 1. It is non-negative where the stake is small enough. Averages of factors have mean at most 1 too.

* Hockey-stick lines (epsilon, delta): a = g on bins that speak for label 1, b = e^epsilon g, c = delta max g. Without a
  delta each bin takes Kelly's stake, and the factor is q(label) / clip(q)(label): the likelihood ratio to the nearest
  law that keeps the claim, which no bet can beat in the mean if q is right. With a delta stakes are capped, in each
  order, where the predicted growth is largest. In units of the wealth W that the prices leave, W = 1 / (1 + prices),
  Kelly's stakes are the same with and without a price; so the growth is log W plus a function of each cap.
* Renyi inequalities: a = r g^(r-1), b = (r-1) g^r, c = exp((r-1) epsilon), g a clipped predicted ratio of the laws
  (`dpaudit.privacy.claims.RenyiInequality`).
* A claim with many lines, or with Renyi inequalities, has many such bets: a portfolio, whose weights maximise the
  predicted growth. It is concave in the weights, and few bets are left with any.

Monotone. With stakes and weights held fixed, factors fall in the claim's parameter, since its lines and bounds rise.

Validity: bets are made of what was predicted before the draws that they are paid on. However they were found, weights
that are not negative and sum to at most 1 are valid: 1 + sum_k w_k (factor_k - 1) is not negative, with mean at most 1.
"""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.exact.response import loss_on_claim
from dpaudit.inference.tables import N_BINS, Predicted, bins_of
from dpaudit.privacy.claims import LARGEST_EPSILON, Claim, FloatArray


@dataclasses.dataclass(frozen=True)
class PayoffSizes:
    """The bets of a portfolio, and how its weights are found."""

    # Epsilons of lines: 0; each next one is twice as large up to 0.2, then about half as large again.
    anchors: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0)
    caps: int = 20  # of the stakes of one order, even in their logarithm
    clips: tuple[float, ...] = (1.5, 2.5, 5.0, 12.0)  # largest predicted ratios of a Renyi bet
    halvings: int = 8  # of a Newton step, whose best part is taken; the whole one nearly always
    gap: float = 0.01  # of its growth, that a portfolio may lack of the best; the width of a bin loses as much
    largest_stake: float = 0.999  # of that at which a factor may be 0
    largest_exponent: float = 500.0  # beyond which a Renyi bound says nothing


SIZES = PayoffSizes()


@dataclasses.dataclass(frozen=True, eq=False)
class Bets(ABC):
    """Weighted bets that are fixed but for the parameter value that they are paid against.

    `at` are the positions of their anchors or orders, shape (bets,); the wealth that the weights leave is kept. The bet
    `most` moves most wealth. Where they are paid in cells, `bins` says as which bin each of these bets.
    """

    inequalities: Inequalities
    at: np.ndarray
    weights: FloatArray
    most: int = dataclasses.field(default=0, kw_only=True)
    bins: NDArray[np.intp] | None = dataclasses.field(default=None, kw_only=True)

    @abstractmethod
    def each(self, value: float) -> tuple[FloatArray, FloatArray]:
        """The factors of every bet on a draw of label 1 and of label 0 in each bin, shape (bets, bins) each."""

    def factors(self, value: float) -> tuple[FloatArray, FloatArray]:
        """The same of all bets together, shape (bins,) each."""
        first, second = self.each(value)
        kept = max(1.0 - float(self.weights.sum()), 0.0)
        first, second = kept + self.weights @ first, kept + self.weights @ second
        return (first, second) if self.bins is None else (first[self.bins], second[self.bins])

    @property
    def strongest(self) -> int:
        """The position of the anchor or the order of the bet that moves most wealth."""
        return int(self.at[self.most]) if len(self.at) else 0

    @property
    def directions(self) -> list[int]:
        """Directions of the divergence that the strongest bet is made against: 0 of (P, Q), 1 of (Q, P)."""
        return [0, 1]


class Inequalities:
    """The inequalities of a claim at parameter values, in both orders of the pair, and the best bets against them.

    Each value, the bets on each prediction, and what these are paid at their own value, are worked out once.

    Parameters
    ----------
    claim : Claim
    """

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self._orders = [claim.in_order(reverse) for reverse in (False, True)]
        self.lines = functools.cache(self._lines)
        self.renyi_exponents = functools.cache(self._renyi_exponents)
        self.loss_at_budget = functools.cache(functools.partial(loss_on_claim, claim))  # at an event mass
        self.bets = functools.cache(functools.partial(best_bets, self))  # at a value, on what is predicted
        self.log_factors = functools.cache(lambda value, table: log_factors(self.bets(value, table), value))

    def __deepcopy__(self, memo: object) -> Inequalities:
        return self

    def _lines(self, value: float) -> tuple[FloatArray, FloatArray]:
        """Epsilons and deltas at every anchor, shape (2, anchors) each: of the order (P, Q), and of (Q, P)."""
        anchors = range(len(SIZES.anchors) if self.claim.anchored else 1)
        both = [self.lines_at(np.array([value]), anchor) for anchor in anchors]
        epsilons, deltas = (np.concatenate(side, axis=1) for side in zip(*both, strict=True))
        return epsilons, deltas

    def lines_at(self, values: FloatArray, anchor: int) -> tuple[FloatArray, FloatArray]:
        """The same at the anchor of one position, for many values, shape (2, values) each."""
        both = [own.lines(values, SIZES.anchors[anchor]) for own in self._orders]
        epsilons, deltas = (np.stack(side).astype(float) for side in zip(*both, strict=True))
        return np.minimum(epsilons, LARGEST_EPSILON), deltas

    def _renyi_exponents(self, value: float) -> FloatArray:
        """(order - 1) epsilon of every order, shape (2, orders)."""
        return np.array([
            [(order - 1.0) * float(own.renyi_epsilons(np.array([value]), order)[0]) for order in self.claim.orders]
            for own in self._orders
        ])  # fmt: skip

    def said(self, value: float, at: int, directions: Sequence[int]) -> dict[str, float]:
        """Inequality for guesses in these directions together: the line at an anchor, or the bound of a Renyi order.

        Of lines of both orders they pay half of each delta: the mean is that of one line with the larger epsilon.
        """
        if self.claim.family == "renyi":
            order = float(self.claim.orders[at])
            allowed = [self._orders[way].renyi_epsilons(np.array([value]), order)[0] for way in directions]
            return {"order": order, "epsilon": float(max(allowed))}
        epsilons, deltas = (one[directions, at] for one in self.lines(value))
        return {"epsilon": float(epsilons.max()), "delta": float(deltas.mean())}


@dataclasses.dataclass(frozen=True, eq=False)
class LineBets(Bets):
    """Stakes on lines: on label 1 in bins of `up`, on label 0 in bins of `down`, shape (lines, bins) each."""

    up: FloatArray
    down: FloatArray

    def each(self, value: float) -> tuple[FloatArray, FloatArray]:
        epsilons, deltas = self.inequalities.lines(value)
        rises = np.exp(epsilons[:, self.at])[:, :, None]
        delta, delta_back = deltas[:, self.at]
        price = 0.5 * (delta * self.up.max(axis=1) + delta_back * self.down.max(axis=1))
        kept = (1.0 - price)[:, None]
        first = np.maximum(kept + self.up - rises[1] * self.down, 0.0)
        return first, np.maximum(kept + self.down - rises[0] * self.up, 0.0)


@dataclasses.dataclass(frozen=True, eq=False)
class RenyiBets(Bets):
    """Bets on Renyi inequalities: g in each bin, of P against Q, or back with `reverse`; (bets, bins)."""

    g: FloatArray
    reverse: np.ndarray
    stakes: FloatArray

    @property
    def directions(self) -> list[int]:
        return [int(self.reverse[self.most])] if len(self.at) else [0, 1]

    def each(self, value: float) -> tuple[FloatArray, FloatArray]:
        exponents = self.inequalities.renyi_exponents(value)[self.reverse.astype(int), self.at]
        half = np.where(exponents < SIZES.largest_exponent, 0.5 * np.exp(np.minimum(exponents, 700.0)), np.inf)[:, None]
        orders = np.array(self.inequalities.claim.orders)[self.at][:, None]
        logs = np.log(self.g)
        paid, charged = orders * np.exp((orders - 1.0) * logs), (orders - 1.0) * np.exp(orders * logs)
        stakes = self.stakes[:, None]
        with np.errstate(invalid="ignore"):
            won = np.maximum(1.0 + stakes * (paid - half), 0.0)
            lost = np.maximum(1.0 - stakes * (charged + half), 0.0)
        back = self.reverse[:, None]
        return np.where(back, lost, won), np.where(back, won, lost)


def log_factors(bets: Bets, value: float) -> tuple[FloatArray, FloatArray]:
    """Logarithms of what bets are paid on a draw of label 1 and of label 0 in each bin."""
    with np.errstate(divide="ignore"):
        first, second = bets.factors(value)
        return np.log(first), np.log(second)


def growth(table: Predicted, first: FloatArray, second: FloatArray) -> float:
    """The predicted growth of factors, in nats a labelled draw."""
    logs = table.q * np.log(np.maximum(first, 1e-300)) + (1.0 - table.q) * np.log(np.maximum(second, 1e-300))
    return float(table.mass @ logs)


def best_bets(inequalities: Inequalities, value: float, table: Predicted) -> Bets:
    """The bets of largest predicted growth against a claim at one parameter value.

    A stake in each cell is worked out for all cells. Of more cells than there are bins, a choice among bets looks at
    the bins alone that have cells, in which these are alike: a stake on any other bin would have its price.
    """
    is_renyi = inequalities.claim.family == "renyi"
    has_choice = is_renyi or inequalities.claim.anchored or bool(inequalities.lines(value)[1].any())
    bins, own = table, np.arange(len(table.q))
    if has_choice and len(table.q) > N_BINS:
        own = np.unique(bins_of(table.q), return_inverse=True)[1]
        mass = np.bincount(own, table.mass + 1e-12).astype(float)  # a cell may have none
        bins = Predicted(np.bincount(own, (table.mass + 1e-12) * table.q) / mass, mass)
    bets = _best_renyi(inequalities, value, bins) if is_renyi else _best_lines(inequalities, value, bins)
    first, second = bets.each(value)
    # A bet on bins that no draw is predicted to reach may have much weight, and is wealth that is kept.
    moved = np.abs(first - 1.0) @ (bins.mass * bins.q) + np.abs(second - 1.0) @ (bins.mass * (1.0 - bins.q))
    most = int(np.argmax(bets.weights * moved)) if len(moved) else 0
    return dataclasses.replace(bets, most=most, bins=None if bins is table else own)


def _best_lines(inequalities: Inequalities, value: float, table: Predicted) -> LineBets:
    epsilons, deltas = inequalities.lines(value)
    up = np.maximum(table.q / scipy.special.expit(epsilons[0])[:, None] - 1.0, 0.0)
    down = np.maximum((1.0 - table.q) / scipy.special.expit(epsilons[1])[:, None] - 1.0, 0.0)
    if not inequalities.claim.anchored and not deltas.any():
        return LineBets(inequalities, np.zeros(1, dtype=np.intp), np.ones(1), up, down)
    ups, of_up = _capped(up, epsilons[0], table.q, table.mass)
    downs, of_down = _capped(down, epsilons[1], 1.0 - table.q, table.mass)
    prices = 0.5 * (deltas[0][:, None, None] * ups[:, :, None] + deltas[1][:, None, None] * downs[:, None, :])
    total = of_up[:, :, None] + of_down[:, None, :] - np.log1p(prices)
    each = np.arange(len(total))
    i, j = np.unravel_index(total.reshape(len(total), -1).argmax(axis=1), total.shape[1:])
    kept = 1.0 / (1.0 + prices[each, i, j])
    up = kept[:, None] * np.minimum(up, ups[each, i][:, None])
    down = kept[:, None] * np.minimum(down, downs[each, j][:, None])
    bets = LineBets(inequalities, each, np.ones(len(each)), up, down)
    if len(each) == 1:
        return bets
    # Weights sum to at most 1: the larger the stakes that they share, the more portfolios there are.
    lost = 1.0 - np.min(bets.each(value), axis=(0, 2))
    scale = (SIZES.largest_stake / np.where(lost > 0.0, lost, 1.0))[:, None]
    bets = dataclasses.replace(bets, up=scale * up, down=scale * down)
    return dataclasses.replace(bets, weights=_weights(*bets.each(value), table))


def _capped(stakes: FloatArray, epsilons: FloatArray, q: FloatArray, mass: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Caps on the stakes of one order, and the growth at each without prices; both of shape (lines, caps)."""
    shares = np.concatenate([[0.0], np.geomspace(0.01, 1.0, SIZES.caps)])
    caps = stakes.max(axis=1)[:, None] * shares
    own = np.flatnonzero(stakes.any(axis=0))
    capped = np.minimum(stakes[:, None, own], caps[:, :, None])  # (lines, caps, bins)
    lost = np.log1p(-np.minimum(np.exp(epsilons)[:, None, None] * capped, 1.0 - 1e-12))
    return caps, np.log1p(capped) @ (mass[own] * q[own]) + lost @ (mass[own] * (1.0 - q[own]))


def _best_renyi(inequalities: Inequalities, value: float, table: Predicted) -> RenyiBets:
    exponents = inequalities.renyi_exponents(value)
    orders = np.array(inequalities.claim.orders)
    logs = np.log(table.q / (1.0 - table.q))
    back, at, clip = (one.ravel() for one in np.indices((2, len(orders), len(SIZES.clips))))
    limits = np.log(np.array(SIZES.clips))[clip]
    asked = (exponents[back, at] < SIZES.largest_exponent) & (orders[at] * limits < SIZES.largest_exponent)
    back, at, limits = back[asked], at[asked], limits[asked]
    g = np.exp(np.clip(np.where(back[:, None] == 1, -logs, logs), -limits[:, None], limits[:, None]))
    half = 0.5 * np.exp(exponents[back, at])
    charged = (orders[at] - 1.0) * g.max(axis=1, initial=1e-300) ** orders[at]
    bets = RenyiBets(inequalities, at, np.zeros(len(at)), g, back == 1, SIZES.largest_stake / (charged + half))
    weights = _weights(*bets.each(value), table)
    own = np.flatnonzero(weights)
    return RenyiBets(inequalities, at[own], weights[own], g[own], bets.reverse[own], bets.stakes[own])


def _weights(first: FloatArray, second: FloatArray, table: Predicted) -> FloatArray:
    """The weights of bets, beside wealth that is kept, of largest predicted growth G(w) = E log F_w, F_w = w @ factors.

    Newton's steps (Kim, Carbonetto, Stephens and Anitescu 2020). They also make G(w) - (sum w)^2 / 2 largest, whose
    quadratic model at w is a constant less half of E (F_v / F_w - 2)^2 + (sum v)^2: least squares over v >= 0.
    The duality gap ends them: G is concave, so that the largest slope E factor_k / F_w less 1 bounds what G(w) lacks.
    """
    both = np.vstack([np.ones(2 * len(table.q)), np.hstack([first, second])])
    shares = np.concatenate([table.mass * table.q, table.mass * (1.0 - table.q)])
    weights, won, grown = np.eye(1, len(both))[0], both[0], 0.0
    roots = np.sqrt(shares)
    while np.max(both @ (shares / won)) - 1.0 > SIZES.gap * grown:
        rows = np.vstack([(roots * both / won).T, np.ones(len(both))])
        try:
            aim = scipy.optimize.nnls(rows, np.append(2.0 * roots, 0.0))[0]
        except RuntimeError:  # no convergence: weights that were found so far are as valid
            break
        aim /= aim.sum()
        steps = weights + 0.5 ** np.arange(SIZES.halvings)[:, None] * (aim - weights)
        growths = np.log(steps @ both) @ shares
        best = int(np.argmax(growths))
        if growths[best] <= grown:
            break
        weights, won, grown = steps[best], steps[best] @ both, float(growths[best])
    return np.asarray(weights[1:])
