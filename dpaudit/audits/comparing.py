"""Two samplers compared: are their laws equal up to a tolerance?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpaudit.audits.auditing import audit
from dpaudit.privacy.claims import Claim
from dpaudit.results.model import AuditResult
from dpaudit.subjects.samplers import samplers


def same_distribution(
    first: Callable[..., Any], second: Callable[..., Any], tolerance: Claim | str, **options: Any
) -> AuditResult:
    """Test whether two samplers have one law, up to a tolerance, on both sides.

    Validity: an audit of one pair (`dpaudit.subjects.samplers`). If the laws are within the tolerance, "violated" has a
    probability of at most 1 - confidence, however many draws are looked at.

    Parameters
    ----------
    first, second : callable
        Functions of `rng`, `size` and `rng`, or nothing.
    tolerance : Claim or str
        "eps=0,delta=0.01": no event's probability differs by more than 0.01. "eps=0.1": none by more than a factor of
        1.105. Or any other claim.
    **options
        As for `dpaudit.audit`: samples, mode, confidence, seed, power and the others.

    Returns
    -------
    AuditResult
        "violated": the laws differ by more than the tolerance. "not_refuted": no difference was found, and one of the
        size that the result names would have been. "inconclusive": too few draws to say so.

    Examples
    --------
    >>> def ours(size, rng):
    ...     return rng.exponential(size=size) * rng.choice([-1, 1], size=size)
    >>> def text(size, rng):
    ...     return rng.laplace(size=size)
    >>> same_distribution(ours, text, "eps=0,delta=0.05", samples=20_000, mode="fixed", seed=1).verdict
    'not_refuted'
    """
    return audit(samplers(first, second, tolerance), **options)
