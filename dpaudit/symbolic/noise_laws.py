"""Laws of mechanisms that compare noise of real laws and do not give it out: sparse vector, noisy maxima.

A record (`dpaudit.symbolic.runs`) goes through all paths of a program whose noise is only compared with constants and
with other noise. The probability of a path lies between bounds then (`Tape.exact_mass`). Where every path is known and
no output has noise in it, the outcomes with their probabilities are the law on that input. Of all paths together the
bounds must have 1 between them: what a path misses, or counts twice, shows where it is wider than these.

A certificate judges fractions. Each probability is replaced by its lower bound, which is below it by a share of 2^-300
in most cases (of 2^-50 for bounds by balls), and moves every log ratio by as much. So a verdict is only said where a
claim that is larger, or smaller, by 2^12 shares has it too.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.callables import Subject
from dpaudit.symbolic.certificate import CertifiedPair
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.divergences import Known
from dpaudit.symbolic.exact_judging import judge, open_pair
from dpaudit.symbolic.leaves import Leaf
from dpaudit.symbolic.piecewise import NOTHING, Enclosure
from dpaudit.symbolic.runs import explore
from dpaudit.symbolic.tracing import Untraceable

SLACK = 2**12  # of a claim, in shares: a Renyi divergence of order a is off by 2 a / (a - 1) shares at most


@dataclasses.dataclass(frozen=True)
class NoiseLaw:
    """The law on one input: outcomes with fractions below their probabilities, by a share at most; and its runs."""

    x: Any
    law: Mapping[Leaf, Fraction]
    runs: int
    share: Fraction = Fraction(0)

    @property
    def known(self) -> Known:
        """The law as certificates judge it."""
        return Known({leaf.token: mass for leaf, mass in self.law.items()}, Fraction(0))


def noise_law(subject: Subject, x: Any, depends: Dependence | None = None, until: float = math.inf) -> NoiseLaw:
    """The law of a subject on one input, whose paths are begun before a time (`time.monotonic`).

    `Untraceable` if it is not known exactly; the text says why.

    Examples
    --------
    >>> from dpaudit.subjects.callables import as_subject
    >>> found = noise_law(as_subject(lambda scores, rng: bool(rng.laplace() > scores)), 0.0)
    >>> {leaf.token: float(mass) for leaf, mass in found.law.items()}
    {'1.0': 0.5, '0.0': 0.5}
    """
    paths = explore(subject, x, 0, until=until, depends=depends, deadline=until)
    if paths.message or paths.unknown:
        raise Untraceable(paths.message or paths.unknown)
    # Validity: an exact run has drawn noise before, and a program that stops after one answer would seem to have none.
    if not any(path.tape.events for path in paths.known):
        raise Untraceable("no noise is drawn, or none after a first run")
    bounds: dict[str, Enclosure] = {}
    for path in paths.known:
        if time.monotonic() > until:
            raise Untraceable("the probabilities of its paths take more time than is left")
        mass = path.tape.exact_mass()
        if path.output is not None and path.output.is_noisy:
            raise Untraceable("noise is part of an output")
        if mass is None:
            raise Untraceable("the probability of a path is not known exactly")
        bounds[path.token] = bounds.get(path.token, NOTHING) + mass
    whole = sum(bounds.values(), NOTHING)
    if not whole.low <= 1 <= whole.high:
        raise Untraceable("the probabilities of its paths do not add up to 1")
    law = {Leaf(token): Fraction(bound.low) for token, bound in bounds.items() if bound}
    return NoiseLaw(x, law, paths.runs, Fraction(max(bound.share for bound in bounds.values())))


def judge_noise(pair: Pair, claim: Claim, first: NoiseLaw, second: NoiseLaw, rounding: Fraction) -> CertifiedPair:
    """The verdict on a pair, from two such laws."""
    slack = max(first.share, second.share) * SLACK
    strict, loose = (judge(pair, claim, first.known, second.known, rounding + sign * slack) for sign in (-1, 1))
    if strict.verdict != loose.verdict:
        return open_pair(pair, claim, "its loss is that of the claim, to the last digit that is known")
    # A probability that is off may put a bound on the other side of the double that it is rounded to. An infinite loss
    # is of an outcome that one input cannot give, which is exact.
    lower = {name: getattr(strict, name) for name in ("epsilon_lower", "value_lower")}
    upper = {name: getattr(strict, name) for name in ("epsilon_upper", "value_upper")}
    off = float(slack)
    bounds: dict[str, Any] = {
        name: max(math.nextafter(value, 0.0) - off, 0.0) for name, value in lower.items() if value < math.inf
    }
    bounds |= {name: math.nextafter(value, math.inf) + off for name, value in upper.items()}
    return dataclasses.replace(strict, exact=None, **bounds)
