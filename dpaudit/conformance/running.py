"""All checks of a mechanism, run here: `dpaudit.check`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Collection, Sequence
from typing import Any

from dpaudit.arguments import RngLike, seed_from, with_near_names
from dpaudit.conformance.bindings import ERROR_RATE, SAMPLES, BoundCheck, Expected, Subjects, close, conformance_checks
from dpaudit.conformance.case import all_failed
from dpaudit.conformance.outcomes import CheckFailed, CheckInconclusive, CheckSkipped
from dpaudit.conformance.registry import check_names, statistical_count
from dpaudit.conformance.result import CheckRecord, CheckResult, Status
from dpaudit.environment import environment
from dpaudit.errors import SubjectError, UsageError
from dpaudit.features.outcomes import read_outputs
from dpaudit.running.streams import root_of
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.targets import what_raised

FAILED = ("violated", "xfail")


@with_near_names
def check(
    mechanism: Any,
    claim: Any = None,
    pairs: Any = None,
    *,
    only: Collection[str] | None = None,
    samples: int = SAMPLES,
    error_rate: float = ERROR_RATE,
    seed: int | None = None,
    rng: RngLike = None,
    expected_failures: Expected | None = None,
    name: str | None = None,
    target: str | None = None,
    on_check: Callable[[CheckRecord], None] | None = None,
) -> CheckResult:
    """Run the conformance suite on a mechanism.

    Parameters
    ----------
    mechanism, claim, pairs, samples, error_rate, expected_failures, name, target
        As in `dpaudit.conformance_checks`.
    only : collection of str, optional
        Names of checks to run; all by default. The error rate of a part of the list is the lower for it.
    seed : int, optional
        Non-negative; one is drawn and recorded by default.
    rng : int or Generator or SeedSequence, optional
        In place of `seed`: a seed is taken from it, and recorded.
    on_check : callable, optional
        Called with each `CheckRecord` as soon as it is there.

    Returns
    -------
    CheckResult

    Raises
    ------
    UsageError
        If an argument makes no sense.
    SubjectError
        If the mechanism breaks on the first of its own inputs.

    Examples
    --------
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(scale=0.5, size=size)
    >>> result = check(release, "eps=1", [(0.0, 1.0)], only=["claim_audit"], seed=1)
    >>> result.verdict, result.exit_status
    ('violated', 1)
    """
    seed = seed_from(seed, rng)
    started = time.perf_counter()
    unknown = next((one for one in only or () if one not in check_names()), None)
    if unknown is not None:
        raise UsageError(f"only must name checks, got {unknown!r}. {close(unknown)}")
    if only is not None and not only:
        raise UsageError("only must name at least one check, got none.")
    root = root_of(seed)
    given: Any = mechanism.mechanism if isinstance(mechanism, Subject) else mechanism
    records: list[CheckRecord] = []
    described: dict[str, dict[str, Any]] = {}
    for bound in conformance_checks(
        given,
        claim,
        pairs,
        samples=samples,
        error_rate=error_rate,
        seed=root,
        expected_failures=expected_failures,
        name=name,
        target=target if target is not None else getattr(mechanism, "target", None),
    ):
        if bound.mechanism_name not in described:
            described[bound.mechanism_name] = _described(bound.subjects, bound.mechanism_name)
        if only is not None and bound.name not in only:
            continue
        record = _followed(bound, records) or _run(bound, error_rate)
        records.append(record)
        if on_check is not None:
            on_check(record)
    return CheckResult(
        records=tuple(records),
        mechanisms=tuple(described.values()),
        error_rate=error_rate,
        samples=samples,
        seed=root,
        seconds=time.perf_counter() - started,
        environment=environment(),
        options={"states": [kind for kind, one in (("claim", claim), ("pairs", pairs)) if one is None]},
    )


def _described(subjects: Subjects, name: str) -> dict[str, Any]:
    """Describe what is checked; a claim, pairs, input_kind or outputs that cannot be read are errors of the call."""
    case = subjects.case
    claim = str(case.claim) if case.claim is not None else None
    described = {**case.subject.describe(), "name": name, "claim": claim, "pairs": len(case.pairs)}
    _ = case.stated_kind  # raises where it is none
    if case.pairs:  # a mechanism that breaks on its own input is said once, not by every check
        outputs = case.draw(case.inputs[0], 2, "first look")
        read_outputs(outputs, 2)
        if all_failed(outputs):
            raise SubjectError(f"{case.subject.name} must return an output, got {outputs[0].described}.")
    return described


def _followed(bound: BoundCheck, records: Sequence[CheckRecord]) -> CheckRecord | None:
    """A check that is left out, because one that it follows from has failed: one cause is said once. None for others.

    Validity: no check is run that would not have been, so no sound mechanism fails more often.
    """
    name, cause = bound.mechanism_name, bound.spec.follows
    failed = any(one.mechanism == name and one.name == cause and one.status in FAILED for one in records)
    if not failed:
        return None
    message = f"it follows from {cause}, which failed"
    return CheckRecord(name, bound.name, bound.spec.demands, "skipped", message, bound.expected_failure, 0.0, 0.0)


def _run(bound: BoundCheck, error_rate: float) -> CheckRecord:
    started = time.perf_counter()
    status: Status = "not_refuted"
    message = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the mechanism's own, on inputs that make no sense
            message = bound.remark() or ""
    except CheckFailed as error:
        status, message = "violated", str(error)
    except CheckSkipped as error:
        status, message = "skipped", str(error)
    except CheckInconclusive as error:
        status, message = "inconclusive", str(error)
    except (Exception, SystemExit) as error:
        status, message = "error", f"the check broke: {what_raised(error)}."
    if bound.expected_failure:
        if status == "violated":
            status = "xfail"
        elif status in ("not_refuted", "inconclusive"):
            status = "error"
            message = f"expected_failures must name checks that fail, got {bound.name}, which does not. Remove it."
    return CheckRecord(
        mechanism=bound.mechanism_name,
        name=bound.name,
        demands=bound.spec.demands,
        status=status,
        message=message,
        reason=bound.expected_failure,
        error_share=error_rate / statistical_count() if bound.spec.is_statistical else 0.0,
        seconds=time.perf_counter() - started,
    )
