"""A limit on the time of an audit: a subject that is too slow for it gets a plan instead of a wait."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import time
from collections.abc import Iterable, Sequence
from typing import Any

from dpaudit.arguments import check_names, check_options
from dpaudit.audits.auditing import PairSource, audit
from dpaudit.audits.planning import OF_AUDIT, plan
from dpaudit.errors import OutOfTimeError, UsageError
from dpaudit.privacy.claims import Claim, number_text
from dpaudit.results.model import AuditResult
from dpaudit.results.plan_result import Plan
from dpaudit.subjects.call_limits import is_time_over, within
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.fresh import fresh_subject
from dpaudit.subjects.isolation import as_isolation
from dpaudit.subjects.programs import contained


class TooSlowError(UsageError):
    """The audit would take longer than its time limit; `plan` says what can be had in that time. Nothing was audited.

    Attributes
    ----------
    plan : Plan
        For `plan.samples` samples, the most that fit; the power of such an audit is in it.
    """

    def __init__(self, planned: Plan) -> None:
        self.plan = planned
        limit, speed = number_text(planned.time_limit or 0.0), f"{planned.runs_per_second:.3g} runs a second"
        advice = (
            f"that is enough for {planned.samples:,} at {speed}. {_found_text(planned)} "
            f"Take samples={planned.samples}, or more time."
            if self.fits
            else f"that is not enough for any audit at {speed}. Take more time."
        )
        super().__init__(f"seconds must be enough for {planned.samples_wanted:,} samples, got {limit}: {advice}")

    @property
    def fits(self) -> bool:
        """Tell whether an audit of `plan.samples` samples fits into the time."""
        return self.plan.time_limit is not None and self.plan.seconds <= self.plan.time_limit

    def __reduce__(self) -> tuple[Any, ...]:
        return (TooSlowError, (self.plan,))


def cut_text(planned: Plan) -> str:
    """Size that an audit was cut to, and what it still finds, in one line."""
    return (
        f"cut to {planned.samples:,} of {planned.samples_wanted:,} samples, which fit into "
        f"{number_text(planned.time_limit or 0.0)} s at {planned.runs_per_second:.3g} runs a second. "
        f"{_found_text(planned)}"
    )


def _found_text(planned: Plan) -> str:
    """The loss that the planned audit finds, in a sentence; empty where no power was computed for that mass."""
    for power in (power for budget in planned.budgets[:1] for power in budget.powers if power.event_mass == 0.1):
        if power.learned == float("inf"):
            return "No loss in an event of mass 0.1 is promised to be found."
        found, allowed = f"{power.learned:.3g}", f"{power.allowed:.3g}"
        return f"They find a loss of {found} nats in an event of mass 0.1, where {allowed} are allowed."
    return ""


def audit_within(
    seconds: float,
    mechanism: Any,
    claim: Claim | str | None = None,
    pairs: Iterable[Any] | None = None,
    **options: Any,
) -> AuditResult:
    """The audit of `dpaudit.audit`, if it is going to take at most `seconds`; a plan of what can be had, if not.

    A few calls are timed first, on streams that no audit draws. Workers (`jobs`) and an early end (mode "sequential")
    are not counted on. Where calls turn slower later on, an audit stops with the call that is being made when the time
    is over: what it found by its last look stands, and the side finding "time_limit" says what was cut. In fixed mode,
    where there is one look at the end, the plan leaves a fifth of the time free, and an audit that does not end in it
    raises `OutOfTimeError`.

    Parameters
    ----------
    seconds : float
        Above 0.
    mechanism, claim, pairs, **options
        As for `dpaudit.audit`. A search for pairs is made first, and takes its time from the same seconds.

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
    check_options(seconds=seconds)
    check_names(audit.__name__, options, inspect.signature(audit).parameters)
    started = time.monotonic()
    # One subject: what it keeps of calls that are timed is known in the audit.
    made_by = fresh_subject if options.pop("fresh", False) else as_subject
    mechanism = made_by(mechanism, options.get("target"), options.get("name"))
    listed = pairs if pairs is None or isinstance(pairs, Sequence | PairSource) else list(pairs)  # it is read twice
    if isinstance(listed, PairSource):
        listed = Sought(listed, seconds, mechanism, claim, options)
    else:
        check_time(seconds, mechanism, claim, listed, **options)
    try:
        with within(seconds - (time.monotonic() - started)):
            result = audit(mechanism, claim, listed, **options)
        return dataclasses.replace(result, options={**result.options, "seconds": float(seconds)})
    except OutOfTimeError:
        raise OutOfTimeError(seconds) from None


@dataclasses.dataclass
class Sought:
    """A search for pairs within a limit of time: the audit of what it finds is planned before it begins.

    Validity: the search runs as without a limit, on streams of its own. Whether the audit of its pairs is begun depends
    on the time that calls take, and never on a draw that it counts.
    """

    source: PairSource
    seconds: float
    mechanism: Any
    claim: Claim | str | None
    options: dict[str, Any]

    def choose_pairs(self, subject: Subject, claim: Claim, seed: int) -> Any:
        """Search, and refuse what would take longer than is left."""
        started = time.perf_counter()
        with contextlib.suppress(OutOfTimeError):
            found = self.source.choose_pairs(subject, claim, seed)
        taken = time.perf_counter() - started
        if taken >= self.seconds or is_time_over():
            raise UsageError(
                f"seconds must be enough for the search for pairs, got {number_text(self.seconds)}: it took "
                f"{taken:.3g}. Give more time or a smaller budget, or audit the pairs that search_pairs chooses."
            )
        left = float(f"{self.seconds - taken:.3g}")
        check_time(left, self.mechanism, self.claim, found.pairs, **self.options)
        return found


def check_time(
    seconds: float, mechanism: Any, claim: Claim | str | None, pairs: Iterable[Any] | None, **options: Any
) -> None:
    """Raise `TooSlowError` if an audit of these pairs would take longer than `seconds`."""
    stated = {name: options[name] for name in OF_AUDIT if name in options}
    limits = as_isolation(options.get("isolation"))
    subject = as_subject(mechanism, options.get("target"), options.get("name"))
    # A subject that is to be contained is contained while it is timed, too.
    with contained(subject, limits) if limits is not None else contextlib.nullcontext(subject) as timed:
        planned = plan(timed, claim, pairs, seconds=seconds, **stated)
    if planned.samples_wanted is not None:
        raise TooSlowError(planned)
