"""Checks of what the mechanism promises: its claim, what follows from it, its error bounds, less error for more."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from dpaudit.audits import low_bits as doubles
from dpaudit.audits.utility import audit_utility
from dpaudit.conformance.case import Case, fail, p_text, tokens
from dpaudit.conformance.laws_of_outputs import distribution_of
from dpaudit.conformance.outcomes import CheckInconclusive, CheckSkipped
from dpaudit.errors import UsageError
from dpaudit.exact import measured, privacy_profile
from dpaudit.features.outcomes import Outcomes, is_number, read_outputs
from dpaudit.numerals import at_least, compared
from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.inputs import distinct_inputs
from dpaudit.privacy.neighbours import NeighbourClaim
from dpaudit.privacy.pairs import Pair, counted_pairs
from dpaudit.results.model import AuditResult, Finding, FloatingPointPair
from dpaudit.subjects.callables import CallError
from dpaudit.subjects.copies import copied
from dpaudit.subjects.utility_bounds import UtilityBound

if TYPE_CHECKING:
    from dpaudit.laws.processing import PostProcessed

ROUNDING = 1e-9  # relative, for exact figures in floating point
ABSOLUTE = 1e-12  # the same at a budget of 0
PROFILE_ROUNDING = 1e-7  # relative, beside ROUNDING, of a profile that is computed by quadrature or erfcx
GRID = 200  # values of epsilon at which two profiles are compared
FACTOR = 4.0  # of the budget
BUDGET_RUNS = 2_000  # pairs of runs that are compared
MIN_DISCORDANT_RUNS = 200  # pairs of runs that differ: fewer come from a mechanism that rarely errs at all
DOUBLES_DRAWS = {True: 10_000, False: 2_500}  # of an input, of a subject that draws batches, and of one that does not
LAW_SHARE = 0.5  # of the samples of the claim's own audit
LAW_FACTOR = 4.0  # a law is inconclusive from twice the excess on that the audit of the claim itself may miss
LAW_PAIRS = 2
# Outputs of an input that a function gives back: then the audit of the claim stands for its law. A function that
# changes one output in 70 is noticed in 94 of 100 cases, on each input.
UNCHANGED = 200


def claim_exact(case: Case) -> str | None:
    """The loss of every pair by `distribution`, else by `privacy_loss` or `privacy_profile`, against its budget."""
    claim = case.asked_claim
    looked: set[str] = set()
    for pair in case.listed:
        asked = claim.for_pair(pair.x, pair.x_prime)
        if asked.is_vacuous:
            continue
        p, q = distribution_of(case, pair.x), distribution_of(case, pair.x_prime)
        if p is not None and q is not None:
            looked.add("distribution")
            _compare_laws(pair, asked, p, q)
        elif isinstance(asked, ApproxDP) and asked.delta == 0.0 and hasattr(case.subject.mechanism, "privacy_loss"):
            looked.add("privacy_loss")
            _within(pair, "a privacy loss", float(case.subject.mechanism.privacy_loss(pair.x, pair.x_prime)),
                    asked.epsilon)  # fmt: skip
        elif hasattr(case.subject.mechanism, "privacy_profile") and not isinstance(asked, RenyiDP | ZeroConcentratedDP):
            looked.add("privacy_profile")
            profile = case.subject.mechanism.privacy_profile
            _compare_profiles(pair, asked, functools.partial(profile, pair.x, pair.x_prime))
    if not looked:
        raise CheckSkipped("the mechanism has no distribution(data), privacy_loss(x, x') or privacy_profile(x, x', e)")
    return f"by {' and '.join(sorted(looked))}, {counted_pairs(len(case.listed))}"


def _within(pair: Pair, what: str, found: float, allowed: float) -> None:
    if not found <= allowed * (1.0 + ROUNDING) + ABSOLUTE:
        fail(f"pair {pair.id} must have {what} of at most {allowed:.6g}, got {found:.6g}.")


def _compare_laws(pair: Pair, asked: Claim, p: FloatArray, q: FloatArray) -> None:
    # Another check refuses what sums to 1 less closely; an exact loss wants it to within 1e-12.
    p, q = (law / law.sum() if abs(law.sum() - 1.0) <= ROUNDING else law for law in (p, q))
    found = measured(p, q, PureDP(asked.epsilon) if isinstance(asked, ApproxDP) and asked.delta == 0.0 else asked)
    if found is None:
        _compare_profiles(pair, asked, lambda epsilon: privacy_profile(p, q, epsilon))
    else:
        what, value, allowed = found
        _within(pair, what, value, allowed * (1.0 + 1e-5 * isinstance(asked, ZeroConcentratedDP)))  # rho: rounded up


def _compare_profiles(pair: Pair, asked: Claim, profile: Any) -> None:
    grid = [asked.epsilon] if isinstance(asked, ApproxDP) else np.linspace(0.0, 10.0, GRID).tolist()
    for epsilon in grid:
        found, allowed = float(profile(epsilon)), asked.profile(epsilon) * (1.0 + PROFILE_ROUNDING)
        _within(pair, f"a delta at epsilon = {epsilon:g}", found, allowed)


def claim_audit(case: Case) -> str | None:
    """An audit of the pairs whose budgets are nearest to one nat."""
    result = case.audit
    _judge_audit(result, "the claim")
    return counted_pairs(len(result.findings))


def _judge_audit(result: AuditResult, what: str) -> None:
    if result.violated:
        worst = result.violated[0]
        fail(f"pair {worst.id} must keep {what} {result.claim}, got {_excess(worst)} "
             f"({worst.samples} runs).")  # fmt: skip
    broken = next((finding for finding in result.findings if finding.verdict == "error"), None)
    if broken is not None:
        raise RuntimeError(broken.message)
    if not result.findings:
        raise CheckSkipped(f"{what} {result.claim} asks nothing of these pairs")
    if result.verdict == "inconclusive":
        weak = [finding for finding in result.findings if finding.verdict == "inconclusive"]
        raise CheckInconclusive(
            f"{len(weak)} of {len(result.findings)} pairs would show only a loss far above {what} {result.claim}"
        )


def _excess(worst: Finding | FloatingPointPair) -> str:
    """The lower bound on the claim's own parameter and what is allowed, so that one sees that the bound is above."""
    if isinstance(worst, Finding):
        name, bounds = worst.parameter, compared(worst.parameter_lower, worst.parameter_budget)
    else:
        name, bounds = "epsilon", compared(worst.epsilon_lower, worst.budget.epsilon)
    return f"{name} of {at_least(bounds[0])} where {bounds[1]} is allowed"


def law(case: Case, name: str) -> str | None:
    """Consequence of the claim by one law, audited on the first two of the pairs that the law speaks of.

    Inconclusive if it is so on each of them.
    """
    from dpaudit.laws import all_laws, weakest_claim
    from dpaudit.laws.processing import PostProcessed

    record = next(law for law in all_laws() if law.name == name)
    claim = case.asked_claim
    try:
        if isinstance(claim, NeighbourClaim):  # a law is of what each of these pairs is promised
            claim = weakest_claim([claim.for_pair(pair.x, pair.x_prime) for pair in case.pairs])
        # From all pairs, since a group needs two that share an input, which the first two need not do.
        derived, promise = record.derive(case.replayed, claim, case.pairs)
    except UsageError as error:
        raise CheckSkipped(f"the law has no rule here: {error}".removesuffix(".")) from None
    chosen = derived.pairs()[:LAW_PAIRS]
    if isinstance(derived, PostProcessed) and not _changes(case, derived, chosen):
        _judge_audit(case.audit, "the derived claim")
        return f"by claim_audit: the function gave back {UNCHANGED} outputs of each input as they were"
    result = case.audited(derived, promise, chosen, f"law {name}", int(LAW_SHARE * case.samples), LAW_FACTOR)
    weak = sum(finding.verdict == "inconclusive" for finding in result.findings)
    if 0 < weak < len(result.findings):  # one pair that would have shown a broken law is enough here
        result = dataclasses.replace(result, findings=tuple(f for f in result.findings if f.verdict != "inconclusive"))
    _judge_audit(result, "the derived claim")
    return f"derived claim {result.claim}"


def _changes(case: Case, derived: PostProcessed, pairs: Sequence[Pair]) -> bool:
    """Tell whether a function of outputs makes anything else of some, on the inputs of these pairs."""
    for number, data in enumerate(distinct_inputs(pairs)[0]):
        try:
            outputs = copied(case.replayed.sample(data, UNCHANGED, case.rng("unchanged", number)))
        except CallError:  # what an exception tells is asked by the audit of the law
            return True
        before = tokens(read_outputs(outputs, UNCHANGED))
        if before != tokens(read_outputs(derived.processed(outputs, case.rng("changed", number)), UNCHANGED)):
            return True
    return False


def floating_point(case: Case) -> str | None:
    """The stage on low bits and support of `dpaudit.audits.low_bits`, at the share of one check."""
    claim = case.asked_claim
    asked = [pair for pair in case.pairs if not claim.for_pair(pair.x, pair.x_prime).is_vacuous]
    if not asked:
        raise CheckSkipped(f"the claim {claim} asks nothing of these pairs")
    data, positions = distinct_inputs(asked)
    candidates = [
        doubles.Candidate(pair, positions[k], claim.for_pair(pair.x, pair.x_prime).budget, k)
        for k, pair in enumerate(asked)
    ]
    draws = DOUBLES_DRAWS[case.subject.is_vectorised]

    def draw(phase: int, i: int, chunk: int, size: int) -> Outcomes:
        return case.read(data[i], size, "floating_point", i, phase, chunk)

    found = doubles.examine(
        candidates, draws, doubles.in_turn(draw), lambda place: case.rng("floating_point_coins", place), case.level
    )
    if found.verdict == "not_applicable":
        raise CheckSkipped(found.message.removesuffix("."))
    if found.verdict == "leaks":
        worst = found.pairs[0]
        fail(f"pair {worst.id} must keep the claim {claim} in the low bits of its outputs, got {_excess(worst)}: "
             f"{worst.description:.160}")  # fmt: skip
    return None


def utility_bounds(case: Case) -> str | None:
    """Every bound that the mechanism states, on its inputs and on those that a search finds."""
    if not callable(getattr(case.subject.mechanism, "utility_bounds", None)):
        raise CheckSkipped("the mechanism states no bounds: it has no utility_bounds()")
    if not list(case.subject.mechanism.utility_bounds()):
        raise CheckSkipped("the mechanism states no bounds: utility_bounds() is empty")
    seed = int(case.rng("utility_bounds").integers(2**32))
    found = audit_utility(
        case.subject, inputs=None, samples=case.samples, confidence=1.0 - case.level, seed=seed, examples=20
    )
    worst = found.worst
    if worst is None:
        raise CheckSkipped("no input of a bound is known")
    if worst.verdict == "violated":
        measure = f"P(loss > {worst.limit:.6g})" if worst.kind == "tail" else "an expected loss"
        lower, allowed = compared(worst.lower, worst.allowed)
        fail(f"{worst.bound} must have {measure} of at most {allowed} on {worst.input_id}, got at least "
             f"{lower} ({worst.samples} runs).")  # fmt: skip
    if worst.verdict == "error":
        raise RuntimeError(worst.message)
    empty = next((f for f in found.findings if f.says_nothing), None)
    if empty is not None:
        raise CheckInconclusive(f"{empty.bound} says nothing on {empty.input_id}: no loss can exceed {empty.limit:.6g}")
    if worst.verdict == "inconclusive":
        raise CheckInconclusive(worst.message or f"{worst.bound} would show only an excess far above what it allows")
    loosest = min((f.ratio for f in found.findings if f.ratio is not None), default=None)
    return None if loosest is None else f"measured over bound from {loosest:.2g}"


def more_budget_less_error(case: Case) -> str | None:
    """Four times the budget: an error is not more often larger than smaller, by the exact sign test.

    Where it is not more often smaller either, the mechanism may ignore its budget: inconclusive.

    The error is the loss of the mechanism's first utility bound; else how far two runs on one input are apart (for
    outputs that are not numbers, whether they differ). That may grow where the error falls: one that answers only
    what is stable always says "nothing" at a small budget. So it does not make a violation, and is inconclusive.
    """
    try:
        richer = case.with_mechanism(case.with_budget(FACTOR))
    except CheckSkipped:
        raise
    except Exception as error:
        raise CheckSkipped(f"{FACTOR:g} times the budget is refused: {error}".removesuffix(".")) from None
    data = case.inputs[0]
    bounds = getattr(case.subject.mechanism, "utility_bounds", None)
    stated = list(bounds()) if callable(bounds) else []
    few, many = (_errors(case, subject, data, k, stated) for k, subject in enumerate((case.subject, richer)))
    worse, better = int((many > few).sum()), int((many < few).sum())
    # Validity: where the error with more budget is stochastically at most the other, given that the two differ the
    # first is the larger one with probability at most 1/2.
    p_value = float(scipy.special.betainc(worse, better + 1.0, 0.5)) if worse else 1.0
    if p_value < case.level and not stated:
        raise CheckInconclusive(
            f"with {FACTOR:g} times the budget two runs are further apart, in {worse} of {worse + better} cases that "
            f"differ ({p_text(p_value)}). Whether that is more error, a utility bound would say"
        )
    if p_value < case.level:
        fail(f"{FACTOR:g} times the budget must not give more error, got more in {worse} of {worse + better} pairs "
             f"of runs that differ ({p_text(p_value)}).")  # fmt: skip
    seen = f"less error in {better}, more in {worse} of {BUDGET_RUNS} pairs of runs"
    is_less = better > 0 and float(scipy.special.betainc(better, worse + 1.0, 0.5)) < case.level
    if not is_less and worse + better >= MIN_DISCORDANT_RUNS:
        raise CheckInconclusive(f"{FACTOR:g} times the budget is not seen to give less error: {seen}")
    return seen


def _errors(case: Case, subject: Any, data: Any, k: int, stated: Sequence[UtilityBound]) -> FloatArray:
    name = "more_budget_less_error"
    outputs = case.draw(data, BUDGET_RUNS, name, k, 0, subject=subject)
    if stated:
        losses: FloatArray = stated[0].losses(data, outputs, BUDGET_RUNS)
        return losses
    again = case.draw(data, BUDGET_RUNS, name, k, 1, subject=subject)
    return np.array([_apart(a, b) for a, b in zip(outputs, again, strict=True)])


def _apart(first: Any, second: Any) -> float:
    if is_number(first) and is_number(second):
        if isinstance(first, int | np.integer | bool) and isinstance(second, int | np.integer | bool):
            return float(abs(int(first) - int(second)))
        distance = abs(float(first) - float(second))
        return math.inf if math.isnan(distance) else distance
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray) and first.dtype.kind in "biuf":
        return float(np.abs(first.astype(float) - second.astype(float)).sum())
    return float(first != second)
