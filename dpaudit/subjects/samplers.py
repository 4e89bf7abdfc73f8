"""Two samplers as one mechanism: its input says which of them draws, and its claim how far apart they may be.

That two laws P and Q are equal up to (eps, delta) means P(S) <= e^eps Q(S) + delta and Q(S) <= e^eps P(S) + delta for
every event S: what differential privacy asks of a pair of inputs. So the audit of a pair is a two-sided test of
equality, with its error rate, and with its power where it finds nothing. With eps = 0 delta is the total variation.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.parsing import as_claim
from dpaudit.subjects.callables import Subject, as_subject

FIRST, SECOND = "first", "second"


@dataclasses.dataclass(frozen=True)
class _Samplers:
    """Draws from the sampler whose name is the input."""

    of: dict[str, Subject]
    claim: Claim | None

    def sample(self, data: str, size: int, rng: Any) -> Any:
        return self.of[data].sample(data, size, rng)

    def pairs(self) -> list[tuple[str, str]]:
        """The one pair."""
        return [(FIRST, SECOND)]


def samplers(first: Callable[..., Any], second: Callable[..., Any], tolerance: Claim | str = "eps=0.1") -> Subject:
    """Return a subject that draws from one of two samplers, and claims that they are equal up to a tolerance.

    Parameters
    ----------
    first, second : callable
        Functions of `rng`, `size` and `rng`, or nothing; parameters are recognised by their names, as for
        `dpaudit.as_subject`.
    tolerance : Claim or str
        How far apart the laws may be: "eps=0.1", "eps=0,delta=0.01" (total variation), or any other claim.

    Examples
    --------
    >>> import numpy as np
    >>> both = samplers(lambda rng: rng.laplace(), lambda rng: rng.normal())
    >>> str(both.claim), both.pairs()
    ('eps=0.1', [('first', 'second')])
    """
    of = {name: as_subject(_behind_data(sampler)) for name, sampler in ((FIRST, first), (SECOND, second))}
    subject = as_subject(_Samplers(of, as_claim(tolerance)), name=" and ".join(one.name for one in of.values()))
    are_batches, replayable = (all(getattr(one, it) for one in of.values()) for it in ("is_vectorised", "replayable"))
    return dataclasses.replace(subject, one_by_one=not are_batches, replayable=replayable)


def _behind_data(sampler: Callable[..., Any]) -> Callable[..., Any]:
    """The sampler as a function whose first parameter is an input, which it does not look at."""
    try:
        given = inspect.signature(sampler)
    except (TypeError, ValueError) as error:
        text = f"samplers must be functions of rng, size or nothing, got {sampler!r:.60} ({error})."
        raise UsageError(text) from error

    @functools.wraps(sampler, updated=())
    def drawn(data: Any, **keywords: Any) -> Any:
        return sampler(**keywords)

    data = inspect.Parameter("data", inspect.Parameter.POSITIONAL_ONLY)
    drawn.__signature__ = given.replace(parameters=[data, *given.parameters.values()])  # type: ignore[attr-defined]
    return drawn
