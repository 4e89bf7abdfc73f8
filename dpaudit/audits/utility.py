"""Utility audit: test the error bounds that a mechanism states.

`audit_utility` tests every bound (`UtilityBound`) on every input that is given, and on the worst inputs that a search
finds. One test a bound and input, on draws of its own:

* a tail bound P(loss > a) <= b by the exact binomial test, with Clopper-Pearson limits of the probability;
* a bound of the expected loss by a bet (`dpaudit.inference.means`): exact for any non-negative loss, bounded or not,
  with no assumption about its law. Limits from above need one: the loss's largest value or its standard deviation, as
  the bound states them; they are infinite without, and no verdict rests on them.

**The error rate.** 1 - confidence is split evenly over all tests of the call (bounds times inputs, the inputs that the
search adds included: their number is fixed before it). Of each test's share, 80% is for the lower limit, which is the
verdict ("violated" is "lower limit above the bound"), and 20% for the upper one. By the union bound

    P(some verdict "violated" | every bound holds on every tested input) <= 0.8 (1 - confidence), and
    P(some measured interval misses its truth) <= 1 - confidence.

It needs draws that are independent and follow the mechanism's law on each input. Dependence is asked for as in an audit
of privacy (`dpaudit.inference.order`): of the losses, and of whether each is above the limit. Where one changes, or
noise is kept (`dpaudit.audits.memory_checks`), the finding is inconclusive without limits; two times `RATE` a test is
the probability, at most, that a change is said of independent draws.

**The search** (hypothesis, aiming at the measured loss over its bound) sees draws of its own; what it finds is tested
on fresh ones. So it can be as greedy as it likes: given the search, each test keeps its level.

**Power.** Each finding says the excess over the bound that it would have found with 90% probability: exact for tail
bounds; for expected losses an estimate, for losses of the shape that was measured. A bound is inconclusive on an input
when only an excess beyond `inconclusive_factor` would have been found, or when it says nothing there: its limit is at
least every loss that can occur, as the bound states, or over the outcomes of a mechanism that lists them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy

from dpaudit.arguments import RngLike, check_options, seed_from, with_near_names
from dpaudit.audits.exploring import explore
from dpaudit.audits.findings import change_sentence
from dpaudit.audits.memory_checks import why_one_draw
from dpaudit.audits.power import FOUND_WITH
from dpaudit.environment import environment
from dpaudit.errors import DpauditError, UsageError
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference import means
from dpaudit.inference.binomial import binomial_lower, binomial_upper
from dpaudit.inference.order import change_of
from dpaudit.numerals import no_zero
from dpaudit.privacy.claims import FloatArray, whole_number
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.pairs import as_pairs, short_form
from dpaudit.results.model import Verdict
from dpaudit.results.utility_result import UtilityFinding, UtilityResult
from dpaudit.running.streams import UTILITY_DRAWS, UTILITY_SEARCH, root_of, stream
from dpaudit.running.worker_pool import randomness_moved
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.copies import copied_output
from dpaudit.subjects.targets import what_raised
from dpaudit.subjects.utility_bounds import UtilityBound

__all__ = ["UtilityBound", "UtilityFinding", "UtilityResult", "audit_utility", "stated_bounds"]

LOWER_SHARE = 0.8  # of a test's level, for the limit that is the verdict
CHUNK = 1 << 14  # outputs drawn at a time
CALLS, SMALLEST_CALL = 256, 8  # calls, about, of a test, and outputs of each at least: for dependence to show
MIN_PROBABILITY = 0.01  # where no failure is allowed: the probability above which a test is inconclusive
MAX_INPUTS = 16  # of the mechanism's own pairs, where a bound names none


@with_near_names
def audit_utility(
    mechanism: Any,
    bounds: UtilityBound | Iterable[UtilityBound] | None = None,
    inputs: Sequence[Any] | None = None,
    *,
    samples: int = 20_000,
    confidence: float = 0.95,
    seed: int | None = None,
    rng: RngLike = None,
    examples: int = 50,
    search_samples: int = 500,
    worst: int = 3,
    inconclusive_factor: float = 2.0,
) -> UtilityResult:
    """Test the error bounds of a mechanism.

    Parameters
    ----------
    mechanism : object or callable
        As for `dpaudit.audit`.
    bounds : UtilityBound or iterable of them, optional
        Those that the mechanism states (`utility_bounds()`) by default.
    inputs : sequence, optional
        For all bounds; by default each bound's own inputs, else those of the mechanism's pairs (at most 16).
    samples : int
        Draws of each bound on each input, at least 10.
    confidence, seed, rng
        As for `dpaudit.audit`.
    examples, search_samples, worst : int
        A bound with a `search`: how many inputs it tries, with how many draws each, and how many of them are tested.
    inconclusive_factor : float
        At least 1: a finding is inconclusive if only an excess beyond this factor would have been found.

    Returns
    -------
    UtilityResult

    Raises
    ------
    UsageError
        If an argument makes no sense, or no bound or no input is known. A mechanism, or a loss function, that breaks is
        no error of the call: the finding says so, and the other bounds are tested.

    Examples
    --------
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(size=size)
    >>> def error(data, outputs):
    ...     return np.abs(outputs - data)
    >>> result = audit_utility(release, UtilityBound("mean error", error, bound=0.5), inputs=[0.0], seed=1)
    >>> result.verdict, result.worst.ratio_lower > 1.8  # the mean error is 1
    ('violated', True)
    """
    seed = seed_from(seed, rng)
    started = time.perf_counter()
    subject = as_subject(mechanism)
    chosen = stated_bounds(subject, bounds)
    check_options(samples=samples, confidence=confidence, inconclusive_factor=inconclusive_factor)
    for name, value in (("examples", examples), ("search_samples", search_samples), ("worst", worst)):
        whole_number(name, value, "a positive integer", 1)
    root = root_of(seed)
    plans = [(bound, _inputs(subject, bound, inputs)) for bound in chosen]
    # Validity: the number of tests is known before the search, which may find fewer inputs but never more.
    tests = sum(len(given) + (worst if bound.search is not None else 0) for bound, given in plans)
    level = (1.0 - confidence) / tests
    findings: list[UtilityFinding] = []
    runs = 0
    for place, (bound, given) in enumerate(plans):
        found: list[Any] = []
        if bound.search is not None:
            found, searched = _search(subject, bound, (root, UTILITY_SEARCH, place), examples, search_samples, worst)
            runs += searched
        for position, data in enumerate([*given, *found]):
            key = root, UTILITY_DRAWS, place, position
            names = bound.name, bound.kind, short_form(data), data, position >= len(given)
            measured = _measured(subject, bound, data, samples, level, key, inconclusive_factor)
            findings.append(UtilityFinding(*names, **measured, error_share=level))
            runs += findings[-1].samples
    options = {"samples": samples, "examples": examples, "search_samples": search_samples, "worst": worst}
    return UtilityResult(
        confidence=confidence,
        seed=root,
        samples=runs,
        seconds=time.perf_counter() - started,
        findings=tuple(findings),
        bounds=tuple(str(bound) for bound in chosen),
        subject=subject.describe(),
        environment=environment(),
        options={**options, "inconclusive_factor": inconclusive_factor},
    )


def stated_bounds(subject: Subject, bounds: UtilityBound | Iterable[UtilityBound] | None) -> list[UtilityBound]:
    """The bounds of a call: what it states, or the mechanism's own; `UsageError` if there are none."""
    if bounds is None:
        own = getattr(subject.mechanism, "utility_bounds", None)
        if not callable(own):
            raise UsageError(f"bounds must be given: {subject.name} has no utility_bounds().")
        bounds = own()
    chosen = [bounds] if isinstance(bounds, UtilityBound) else list(bounds)
    for position, bound in enumerate(chosen):
        if not isinstance(bound, UtilityBound):
            raise UsageError(f"bounds must be UtilityBound objects, got {bound!r} at position {position}.")
    if not chosen:
        raise UsageError("bounds must be at least one UtilityBound, got none.")
    for name, count in Counter(bound.name for bound in chosen).items():
        if count > 1:
            raise UsageError(f"bounds must have unique names, got {name!r} {count} times.")
    return chosen


def _inputs(subject: Subject, bound: UtilityBound, inputs: Sequence[Any] | None) -> list[Any]:
    """The inputs on which a bound is tested, each once; `UsageError` if none is known."""
    given = inputs if inputs is not None else bound.inputs
    if given is None:
        own = subject.pairs()
        pairs = as_pairs(list(own)[:MAX_INPUTS]) if own is not None and len(list(own)) else []
        given = [data for pair in pairs for data in (pair.x, pair.x_prime)]
    seen: dict[Any, Any] = {}
    for data in given:
        seen.setdefault(identity_of(data), data)
    chosen = list(seen.values())[: MAX_INPUTS if inputs is None and bound.inputs is None else None]
    if not chosen and bound.search is None:
        raise UsageError(f"inputs must be given for the bound {bound.name!r}: {subject.name} has no pairs.")
    return chosen


@dataclasses.dataclass(frozen=True)
class _Drawn:
    """Losses of fresh draws on one input, the sizes of the calls that gave them, and whether the first took numbers."""

    losses: FloatArray
    sizes: list[int]
    has_moved: bool


def _draw_losses(
    subject: Subject, bound: UtilityBound, data: Any, samples: int, key: tuple[int, ...], runs: list[int], calls: int
) -> _Drawn:
    """Losses of fresh draws, chunk by chunk on streams of their own; `runs` counts what was asked.

    A subject that draws batches is asked for them in so many calls, about. Validity: noise that the outputs of a call
    share shows in the order of the losses where calls are many.
    """
    each = max(-(-samples // calls), SMALLEST_CALL) if subject.is_vectorised else CHUNK
    losses, sizes, moves = [], [], []
    for chunk, start in enumerate(range(0, samples, CHUNK)):
        rng, parts = stream(*key, chunk), []
        left = min(CHUNK, samples - start)
        for size in map(len, np.array_split(np.arange(left), max(left // each, 1))):
            runs.append(size)
            moved = randomness_moved(subject, rng)
            parts.append(copied_output(subject.sample(data, size, rng)))  # the next call may write into the same array
            moves.append(moved())
            if len(parts[-1]) != size:
                raise UsageError(f"{subject.name} must return {size} outputs for size={size}, got {len(parts[-1])}.")
            sizes.append(size)
        if all(isinstance(part, list) and all(isinstance(output, Failed) for output in part) for part in parts):
            raised = parts[0][0]
            raise UsageError(f"{subject.name} must return an output, got {raised.kind}: {raised.message}")
        kinds = {(part.dtype, part.shape[1:]) if isinstance(part, np.ndarray) else None for part in parts}
        if len(kinds) == 1 and None not in kinds:
            parts = [np.concatenate(parts)]
        losses += [bound.losses(data, part, len(part)) for part in parts]
    return _Drawn(np.concatenate(losses), sizes, moves[0])


def _why_dependent(subject: Subject, data: Any, drawn: _Drawn, limit: float, root: int) -> str:
    """Reason why losses on one input are no independent draws: `dpaudit.inference.order`, or kept noise; else empty."""
    losses = read_outputs(drawn.losses, len(drawn.losses))
    above = read_outputs(drawn.losses > limit, len(drawn.losses))
    change = change_of(losses, drawn.sizes) or change_of(above, drawn.sizes)
    if change is not None:
        return change_sentence(dataclasses.replace(change, what=change.what.replace("outputs", "losses")))
    return why_one_draw(subject, root, {0: losses}, [data], {0: drawn.has_moved})[0]


def _measured(
    subject: Subject,
    bound: UtilityBound,
    data: Any,
    samples: int,
    level: float,
    key: tuple[int, ...],
    inconclusive_factor: float,
) -> dict[str, Any]:
    """The verdict of one test and its figures."""
    runs: list[int] = []
    try:
        limit = bound.limit(data)
        drawn = _draw_losses(subject, bound, data, samples, key, runs, CALLS)
        largest = _largest_loss(subject, bound, data)
    except Exception as error:  # of the mechanism, or of the loss: this bound is not judged, the others are
        message = str(error) if isinstance(error, DpauditError) else what_raised(error)
        return {"limit": math.nan, "allowed": math.nan, "verdict": "error", "message": message, "samples": sum(runs)}
    measure = _measured_tail if bound.kind == "tail" else _measured_mean
    figures = measure(dataclasses.replace(bound, largest_loss=largest), limit, drawn.losses, level)
    allowed, detectable = figures["allowed"], figures["detectable"]
    # Validity: limits and power suppose independent draws, so none is given where they are not.
    if reason := _why_dependent(subject, data, drawn, limit, key[0]):
        return {"limit": limit, "allowed": allowed, "verdict": "inconclusive", "message": reason, "samples": samples}
    worth_finding = inconclusive_factor * allowed if allowed > 0.0 else MIN_PROBABILITY
    is_weak = detectable > worth_finding and (allowed > 0.0 or bound.kind == "tail")
    says_nothing = largest is not None and limit >= largest
    verdict: Verdict = "inconclusive" if is_weak or says_nothing else "not_refuted"
    verdict = "violated" if figures["lower"] > allowed else verdict
    return {**figures, "limit": limit, "verdict": verdict, "samples": samples, "says_nothing": says_nothing}


def _largest_loss(subject: Subject, bound: UtilityBound, data: Any) -> float | None:
    """At least every loss that can occur on an input: as stated, else over all outcomes; None without a list."""
    stated, outcomes = bound.largest(data), None
    if stated is None and callable(getattr(subject.mechanism, "distribution", None)):
        with contextlib.suppress(AttributeError, UsageError):  # infinitely many, or too many to list
            outcomes = np.asarray(subject.mechanism.outcomes)
    return stated if outcomes is None else float(bound.losses(data, outcomes, len(outcomes)).max(initial=0.0))


def _measured_tail(bound: UtilityBound, limit: float, losses: FloatArray, level: float) -> dict[str, float]:
    allowed = float(bound.failure_probability or 0.0)
    draws, above = len(losses), int((losses > limit).sum())
    return {
        "allowed": allowed,
        "measured": above / draws,
        # Validity: the draws are independent, so `above` is binomial; the limit exceeds the truth at most this often.
        "lower": binomial_lower(above, draws, LOWER_SHARE * level),
        "upper": binomial_upper(above, draws, (1.0 - LOWER_SHARE) * level),
        "p_value": no_zero(float(scipy.stats.binom.sf(above - 1, draws, allowed))),
        "detectable": means.detectable_probability(draws, allowed, LOWER_SHARE * level, FOUND_WITH),
    }


def _measured_mean(bound: UtilityBound, limit: float, losses: FloatArray, level: float) -> dict[str, float]:
    own, other = LOWER_SHARE * level, (1.0 - LOWER_SHARE) * level
    # Validity: the fractions depend on the plan alone, never on the losses.
    fractions = means.stakes(len(losses), own)
    # A loss above a bound of 0 is found as soon as one draw shows it: no ratio, so no power either.
    ratio = means.detectable_mean_ratio(losses, own, fractions, FOUND_WITH) if limit > 0.0 else math.inf
    return {
        "allowed": limit,
        "measured": float(losses.mean()),
        "lower": means.mean_lower(losses, own, fractions),
        "upper": means.mean_upper(
            losses, other, means.stakes(len(losses), other), bound.largest(None), bound.standard_deviation
        ),
        "p_value": math.exp(-min(700.0, max(0.0, means.mean_log_wealth(losses, limit, fractions)))),
        "detectable": limit * ratio if limit > 0.0 else math.inf,
    }


def _search(
    subject: Subject, bound: UtilityBound, key: tuple[int, ...], examples: int, samples: int, worst: int
) -> tuple[list[Any], int]:
    """The inputs with the largest measured loss over its bound, at most `worst`, and the runs that it took."""
    tried: dict[Any, tuple[float, int, Any]] = {}
    looks = 0
    runs: list[int] = []

    def look(data: Any) -> float:
        nonlocal looks
        looks += 1
        try:
            limit = bound.limit(data)
            losses = _draw_losses(subject, bound, data, samples, (*key, looks), runs, 1).losses
            share = 1.0 - float(bound.failure_probability or 0.0)
            # One of the losses, not a value between two: between a finite and an infinite one there is none.
            size = float(np.quantile(losses, share, method="higher") if bound.kind == "tail" else losses.mean())
            value = size / limit if limit > 0.0 else size
        except Exception:  # an input that breaks the mechanism is worth a test, which will say what broke
            value = math.inf
        same = identity_of(data)
        if same not in tried or value > tried[same][0]:
            tried[same] = (value, -len(tried), data)
        return value

    none = f"search must yield inputs, got none from the bound {bound.name!r}."
    explore("search", bound.search, look, examples=examples, seed=key[0], none=none)
    ranked = sorted(tried.values(), key=lambda entry: (-entry[0], -entry[1]))
    return [data for _, _, data in ranked[:worst]], sum(runs)
