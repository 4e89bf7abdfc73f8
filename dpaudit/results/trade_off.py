"""A confidence band for a trade-off function, as results hold it."""

from __future__ import annotations

import dataclasses

from dpaudit.results.codec import OMITTED, Form


@dataclasses.dataclass(frozen=True)
class TradeOffPoint:
    """The trade-off function at one type I error, and what one score's thresholds attain of it at best.

    Attributes
    ----------
    type_one : float
    upper : float
        The mechanism's trade-off function is at most this.
    thresholds_lower : float or None
        Every test by a threshold of this score, randomised or not, has at least this type II error. Other tests of
        it may have less, and so may other attacks: no limit of the mechanism's own. None in one run.
    claimed : float
        What the claim promises at least.
    """

    type_one: float
    upper: float
    thresholds_lower: float | None
    claimed: float


@dataclasses.dataclass(frozen=True)
class LossLimit:
    """No event of probability `mass` or more on one input has a loss above `upper` nats, under an assumption."""

    mass: float
    upper: float


@dataclasses.dataclass(frozen=True)
class MonotoneLimits:
    """Upper limits on a pair's loss, if its likelihood ratio is monotone in a number (`dpaudit.audits.monotone`).

    Attributes
    ----------
    number : str
        The number, in words.
    limits : tuple of LossLimit
        All together hold with the confidence of the audit, under the assumption; by falling mass. Masses that the draws
        set no limit for are left out.
    reason : str
        Why there are none; empty where there are some.
    """

    number: str
    limits: tuple[LossLimit, ...] = ()
    reason: str = ""


@dataclasses.dataclass(frozen=True)
class TradeOffBand(Form):
    """The band of one pair of an audit (`dpaudit.audits.band`), all points together.

    Attributes
    ----------
    pair : str
        Its id; empty if there is none.
    error_rate : float
        The probability that the band is wrong anywhere, at most. It is a part of the audit's error rate.
    draws : int
        Of each input of the pair, that the band rests on.
    score : str
        What its thresholds are of, in words.
    points : tuple of TradeOffPoint
        Empty where there is no band.
    reason : str
        Why there is no band; empty where there is one.
    monotone : MonotoneLimits or None
        Upper limits on the loss under an assumption; None where no number is named, and in older files.
    """

    pair: str
    error_rate: float
    draws: int = 0
    score: str = ""
    points: tuple[TradeOffPoint, ...] = ()
    reason: str = ""
    monotone: MonotoneLimits | None = dataclasses.field(default=None, metadata=OMITTED)
