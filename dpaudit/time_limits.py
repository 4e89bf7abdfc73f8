"""A limit on the time of an audit: a subject that is too slow for it gets a plan instead of a wait."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dpaudit.auditing import audit
from dpaudit.errors import UsageError
from dpaudit.plan_result import Plan
from dpaudit.planning import plan
from dpaudit.privacy.claims import Claim, number_text
from dpaudit.results import AuditResult

PLANNED = ("samples", "mode", "confidence", "seed", "target", "name")  # options that an audit and its plan share


class TooSlowError(UsageError):
    """The audit would take longer than its time limit; `plan` says what can be had in that time. Nothing was audited.

    Attributes
    ----------
    plan : Plan
        For `plan.samples` samples, the most that fit; the power of such an audit is in it.
    """

    def __init__(self, planned: Plan) -> None:
        self.plan = planned
        assert planned.time_limit is not None and planned.samples_wanted is not None
        powers = [power for budget in planned.budgets[:1] for power in budget.powers if power.event_mass == 0.1]
        found = ""
        if powers:
            loss = powers[0].learned
            found = (
                " They find no loss in an event of mass 0.1."
                if loss == float("inf")
                else f" They find a loss of {loss:.3g} nats in an event of mass 0.1, where {powers[0].allowed:.3g} "
                "are allowed."
            )
        super().__init__(
            f"seconds must be enough for {planned.samples_wanted:,} samples, got {number_text(planned.time_limit)}: "
            + (
                f"that is not enough for any audit at {planned.runs_per_second:.3g} runs a second. Take more time."
                if planned.seconds > planned.time_limit
                else f"that is enough for {planned.samples:,} at {planned.runs_per_second:.3g} runs a second.{found} "
                f"Take samples={planned.samples}, or more time."
            )
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return (TooSlowError, (self.plan,))


def audit_within(
    seconds: float,
    mechanism: Any,
    claim: Claim | str | None = None,
    pairs: Iterable[Any] | None = None,
    **options: Any,
) -> AuditResult:
    """The audit of `dpaudit.audit`, if it is going to take at most `seconds`; a plan of what can be had, if not.

    A few calls are timed first, on streams that no audit draws. Workers (`jobs`) and an early end (mode "sequential")
    are not counted on: an audit that goes ahead takes about so long at most.

    Parameters
    ----------
    seconds : float
        Above 0.
    mechanism, claim, pairs, **options
        As for `dpaudit.audit`.

    Raises
    ------
    TooSlowError
        If it would take longer: a `UsageError` with the `plan` for as many samples as fit.

    Examples
    --------
    >>> import time
    >>> def slow(data, rng):
    ...     time.sleep(0.01)
    ...     return data + rng.laplace()
    >>> try:
    ...     audit_within(2.0, slow, "eps=1", [(0.0, 1.0)])
    ... except TooSlowError as error:
    ...     10 <= error.plan.samples <= 100
    True
    """
    check_time(seconds, mechanism, claim, pairs, **options)
    return audit(mechanism, claim, pairs, **options)


def check_time(
    seconds: float, mechanism: Any, claim: Claim | str | None, pairs: Iterable[Any] | None, **options: Any
) -> None:
    """Raise `TooSlowError` if an audit of these arguments would take longer than `seconds`."""
    planned = plan(
        mechanism, claim, pairs, seconds=seconds, **{name: options[name] for name in PLANNED if name in options}
    )
    if planned.samples_wanted is not None:
        raise TooSlowError(planned)
