"""Side channels of an isolated subject, as findings of their own: containment, independence, timing.

No verdict, bound or exit status depends on these.

Independence. Noise that is kept from one call to the next makes draws dependent, which no verdict allows for. Each of
96 fresh workers calls x, x' and x again, with a generator for each call. The outputs of the first third fix yes-or-no
features; on the rest Fisher's exact test asks whether a feature of a call tells anything of the same feature of the
next one (`dpaudit.inference.independence`). Workers are independent, as their generators are; so, if calls are
independent of each other, each test has its share of the level 1e-3, and all of them that level. It takes 30 seconds
at most; slower subjects are not looked at. `conformance` asks the same of mechanisms that can be copied.

Timing. Of each pair m calls are made, a draw each, in a uniformly random order; N of them, binomial(m, 1/2), are on x.
So the labels of the m slots of time are m independent fair coins, whatever the load of the machine does. If the law of
the time of a call, at the load of its slot, does not depend on the input, each label is a fair coin given the time and
everything before. A rule on times that was fixed on the first 30% of the slots is then right with probability 1/2 on
each of the others in which it guesses, and the number of its correct guesses is binomial. The exact test of that has
the level 1e-3 divided by the number of pairs.

Its conditions: this machine and its load; what the wrapper does around a call (copies of an input that can be changed)
is not in the time, but may warm or cool a cache; a subject whose time depends on the *previous* call's input remembers
it, which independent draws exclude. Times tell of any difference in work, such as one record more: nearly every program
on data of different size is found at enough calls. That a claim of differential privacy covers time is not assumed.
"""

from __future__ import annotations

import functools
import os
import platform
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.audits.findings import FIT_SHARE, STAGE_PAIRS, STAGE_RATE
from dpaudit.errors import OutOfTimeError, SubjectError
from dpaudit.features.outcomes import Outcomes, join, read_outputs
from dpaudit.inference.binomial import binomial_lower, binomial_upper_tail
from dpaudit.inference.independence import dependence, equal_pairs, features, more_equal
from dpaudit.inference.tasks import toss
from dpaudit.numerals import no_zero, p_text
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import SideFinding
from dpaudit.running.streams import INDEPENDENCE_DRAWS, TIMING_COINS, TIMING_DRAWS, stream
from dpaudit.subjects.isolation import IsolatedSubject
from dpaudit.subjects.isolation.subject import LOOKED_AT

WORKERS = 96  # fresh ones: a third fixes the features, two thirds test them
INDEPENDENCE_SECONDS = 30.0  # beyond which a slow subject is not asked
RECENT = 32  # calls whose median time a time is compared with
QUANTILES = np.array([0.01, 0.02, 0.05, *np.arange(0.1, 0.91, 0.1), 0.95, 0.98, 0.99])  # of thresholds that are tried
# Nats by which the evidence of a threshold at a quantile is lowered beside that of one in a gap: where one call in five
# on an input is slow, 83% of leaks are found in 200 calls with the gap, 57% without, 5% by the predictor of an audit.
QUANTILE_COST = 1.0
WORDS = {
    "printed": "printed",
    "mutated": "changed its input",
    "global_generator": "used or seeded a global generator",
    "working_directory": "changed the working directory",
    "environment": "changed the environment",
    "threads": "left threads running",
    "processes": "left processes running",
    "signal_handlers": "changed signal handlers",
    "descriptors": "closed or wrote into descriptors that are not its own",
}


def containment_finding(subject: IsolatedSubject) -> SideFinding:
    """Effects contained so far: calls that did not come back, and what calls did beside their output, by input.

    `details`: `calls` by input; `ended` by input and kind; `seen` by kind and input, [requests in which it was seen,
    requests of this input alone]; `in_blocks`, blocks of calls on several inputs in which it was seen. Counts are of
    what was seen, so at least as large in truth. Ends the subject's worker.
    """
    subject.close()  # what it left running is counted at its end
    record = subject.shared.record
    own = [record.names[key] for key in sorted(record.calls)]
    of_calls = zip(sorted(record.calls), own, strict=True)
    names = {key: f"{name} #{key}" if own.count(name) > 1 else name for key, name in of_calls}
    seen = {
        kind: {names[key]: [counts[key], record.looked[key]] for key in names if record.looked[key]}
        for kind, counts in sorted(record.seen.items())
    }
    in_blocks = {kind: count for kind, count in sorted(record.in_blocks.items()) if count}
    ended, parts = {}, []
    for key, kinds in sorted(record.ended.items()):
        if key in names:
            ended[names[key]] = dict(sorted(kinds.items()))
            how = ", ".join(f"{count} by {kind}" for kind, count in sorted(kinds.items()))
            of = f"{sum(kinds.values())} of {record.calls[key]} calls on {names[key]}"
            parts.append(f"{of} did not come back ({how})")
    parts += [f"it {WORDS.get(kind, kind)}" for kind in dict.fromkeys([*seen, *in_blocks])]
    summary = "; ".join(parts) if parts else "Every call came back, and did nothing that was seen beside it"
    return SideFinding(
        kind="containment",
        status="found" if parts else "nothing_found",
        summary=f"{summary[0].upper()}{summary[1:]}.",
        details={
            "isolation": str(subject.isolation),
            "calls": {name: record.calls[key] for key, name in names.items()},
            "ended": ended,
            "seen": seen,
            "in_blocks": in_blocks,
            "seconds_lost": round(record.lost, 3),
        },
    )


def timing_finding(subject: IsolatedSubject, pairs: Sequence[Pair], calls: int, seed: int) -> SideFinding:
    """Test if the time of a call tells the input: at most 8 pairs, `calls` calls each. See the module for its validity.

    `details`: the conditions; and by pair the p-value, correct guesses of all, the rule in words, medians in seconds,
    and `epsilon_lower`, a lower bound on the loss of the time alone in nats, at the same error rate.
    """
    details: dict[str, Any] = {"conditions": machine_load(), "calls": calls}
    said = functools.partial(SideFinding, "timing", error_rate=STAGE_RATE, details=details)
    examined = list(pairs)[:STAGE_PAIRS]
    if not examined:
        return said("not_applicable", "There is no pair to examine.")
    level = STAGE_RATE / len(examined)
    records = []
    for place, pair in enumerate(examined):
        sides = list(zip((pair.x, pair.x_prime), toss(calls, stream(seed, TIMING_COINS, place)), strict=True))
        parts = [(data, size, stream(seed, TIMING_DRAWS, place, k)) for k, (data, size) in enumerate(sides)]
        looked_at = [(data, LOOKED_AT, stream(seed, TIMING_DRAWS, place, 2 + k)) for k, (data, _) in enumerate(sides)]
        try:
            # Validity: the first calls on an input are requests of their own, which take another time. Once each input
            # has had these, where a request begins does not depend on the labels.
            subject.together(looked_at)
            order, _, seconds = subject.in_random_order(parts)
        except OutOfTimeError:
            raise
        except SubjectError as error:
            return said("not_applicable", f"The subject broke while it was timed: {error}")
        records.append({"pair": pair.id, **timing_test(order == 0, seconds, level)})
    details |= {"pairs": records, "load_after": machine_load()["load"]}
    found = [record for record in records if record["p_value"] <= level]
    if not found:
        return said("nothing_found", f"The time of {calls} calls told nothing about the input.")
    worst = max(found, key=lambda record: float(record["epsilon_lower"]))
    right = f"{worst['correct']} of {worst['guesses']} guesses right"
    return said(
        "found",
        f"The time of a call tells the input ({worst['pair']}): {right}, a loss of at least "
        f"{worst['epsilon_lower']:.3g} nats on this machine.",
    )


def timing_test(labels: NDArray[np.bool_], seconds: NDArray[np.float64], level: float) -> dict[str, Any]:
    """An exact test of whether times tell labels that are fair coins, both in the order of the calls.

    The rule is fixed on the first 30% of the calls and counted on the others. It has a threshold on the time of the
    call, or on its ratio to the median of the 32 calls before it, which a slow change of the load leaves alone.

    Examples
    --------
    >>> labels = np.arange(200) % 3 == 0
    >>> timing_test(labels, np.where(labels, 0.2, 0.1), 1e-3)["p_value"] < 1e-12
    True
    """
    pilot = int(FIT_SHARE * len(labels))
    # Validity: a score is a function of the time of the call and of calls before it, so that given these the label is
    # a fair coin. Labels of the pilot are looked at; of the others only what the rule says of their scores is counted.
    scores = {"": seconds, " times the median of the 32 calls before": seconds / recent_medians(seconds)}
    unit, (_, threshold, above, below) = max(
        ((unit, _rule(labels[:pilot], score[:pilot])) for unit, score in scores.items()), key=lambda pair: pair[1][0]
    )
    place = f"{{}} {threshold:.3g}{unit or ' s'}"
    is_above = scores[unit][pilot:] > threshold
    rest = labels[pilot:]
    guessed = (is_above & (above is not None)) | (~is_above & (below is not None))
    expected = np.where(is_above, bool(above), bool(below))
    correct, guesses = int((guessed & (expected == rest)).sum()), int(guessed.sum())
    share = binomial_lower(correct, guesses, level)
    sides = [
        f"{'x' if label else 'x_prime'} where it takes {place.format(side)}"
        for label, side in ((above, "more than"), (below, "at most"))
        if label is not None
    ]
    medians = [float(np.median(seconds[side])) if np.any(side) else None for side in (labels, ~labels)]
    return {
        "p_value": no_zero(float(binomial_upper_tail(correct, guesses, np.array([0.5]))[0])),
        "correct": correct,
        "guesses": guesses,
        "rule": "guess " + ", ".join(sides),
        "median_seconds": medians,
        "epsilon_lower": max(0.0, float(scipy.special.logit(share))) if 0.5 < share < 1.0 else 0.0,
    }


def recent_medians(seconds: NDArray[np.float64]) -> NDArray[np.float64]:
    """The median of the 32 calls before each one (of as many as there are; 1 for the first), never below 1 ns.

    Examples
    --------
    >>> recent_medians(np.array([3.0, 5.0, 9.0])).tolist()
    [1.0, 3.0, 4.0]
    """
    padded = np.concatenate([np.full(RECENT, np.nan), seconds])
    windows = np.lib.stride_tricks.sliding_window_view(padded, RECENT)[: len(seconds)]
    medians = np.ones(len(seconds))
    medians[1:] = np.nanmedian(windows[1:], axis=1)
    return np.maximum(medians, 1e-9)


def _rule(labels: NDArray[np.bool_], seconds: NDArray[np.float64]) -> tuple[float, float, bool | None, bool | None]:
    """The largest evidence, its threshold, and the label that is guessed above it and at most it (None: no guess)."""
    best: tuple[float, float, bool | None, bool | None] = (-np.inf, float(np.median(seconds)), True, False)
    # One of many quantiles may do well by accident, and it lies among times that drift.
    quantiles = np.unique(np.quantile(seconds, QUANTILES)).tolist()
    thresholds = [(_widest_gap(seconds), 0.0), *((threshold, QUANTILE_COST) for threshold in quantiles)]
    for threshold, cost in thresholds:
        is_above = seconds > threshold
        sides = []
        for chosen in (is_above, ~is_above):
            ones, total = int(labels[chosen].sum()), int(chosen.sum())
            sides.append((max(ones, total - ones), total, 2 * ones > total))
        (a, n, above), (b, m, below) = sides
        for correct, guesses, first, second in ((a, n, above, None), (b, m, None, below), (a + b, n + m, above, below)):
            score = _evidence(correct, guesses) - cost
            if score > best[0]:
                best = (score, threshold, first, second)
    return best


def _evidence(correct: int, guesses: int) -> float:
    """Chernoff's bound of minus the log p-value: guesses KL(correct / guesses || 1/2), at least half of them correct.

    Beside a z-score it prefers few guesses that are all right, whose threshold is less of an accident.
    """
    wrong = guesses - correct
    xlogy = scipy.special.xlogy
    return float(xlogy(correct, correct) + xlogy(wrong, wrong) - xlogy(guesses, 0.5 * guesses))


def _widest_gap(seconds: NDArray[np.float64]) -> float:
    """The geometric mean of the two neighbouring times with the largest ratio."""
    times = np.unique(np.maximum(seconds, 1e-9))
    if len(times) == 1:
        return float(times[0])
    widest = int(np.argmax(np.diff(np.log(times))))
    return float(np.sqrt(times[widest] * times[widest + 1]))


def independence_finding(subject: IsolatedSubject, pair: Pair, seed: int) -> SideFinding:
    """Tell whether calls of one worker share noise. See the module for its validity.

    `details`: `workers` that were looked at behind the pilot, the number of `tests`, the least `p_value`, its feature.
    """
    details: dict[str, Any] = {}
    said = functools.partial(SideFinding, "independence", error_rate=STAGE_RATE, details=details)
    if subject.has_lost_calls:
        return said("not_applicable", "Calls that do not come back leave nothing to compare.")
    calls: list[list[Outcomes]] = [[], [], []]
    until = time.monotonic() + INDEPENDENCE_SECONDS
    try:
        for number in range(WORKERS):
            subject.recycle()
            for k, data in enumerate((pair.x, pair.x_prime, pair.x)):
                rng = stream(seed, INDEPENDENCE_DRAWS, number, k)
                calls[k].append(read_outputs(subject.sample(data, 1, rng), 1))
            if time.monotonic() > until:
                slow = f"{number + 1} of {WORKERS} workers in {INDEPENDENCE_SECONDS:g} seconds."
                return said("not_applicable", f"A call takes too long: {slow}")
    except OutOfTimeError:
        raise
    except SubjectError as error:
        return said("not_applicable", f"The subject broke: {error}")
    tests = independence_tests([join(part) for part in calls], WORKERS // 3)
    details |= {"workers": WORKERS - WORKERS // 3, "tests": len(tests)}
    if not tests:
        return said("not_applicable", "The outputs do not vary, so they show no noise to be shared.")
    p_value, what = min(tests)
    details |= {"p_value": no_zero(p_value), "feature": what}
    if p_value * len(tests) > STAGE_RATE:
        return said("nothing_found", "Calls showed no noise that they share.")
    how = f"{what}, {p_text(p_value)}"
    return said("found", f"Calls share noise ({how}): the draws of this audit are not independent.")


def independence_tests(calls: Sequence[Outcomes], pilot: int) -> list[tuple[float, str]]:
    """p-values, with their features in words, of calls on x, x' and x by independent workers, one row each.

    The first `pilot` rows fix the features, and are not tested on.
    """
    chosen = [features(part.rows(slice(0, pilot))) for part in calls]
    rest = [part.rows(slice(pilot, len(part))) for part in calls]
    tests = [
        (dependence(f.of(rest[a]), g.of(rest[b])), str(f))
        for a, b in ((0, 1), (1, 2), (0, 2))
        for f in chosen[a]
        for g in chosen[b]
        if f.asks_as(g)
    ]
    return [*tests, (more_equal(*equal_pairs(rest[0], rest[2])), "equal outputs")] if tests else []


def machine_load() -> dict[str, Any]:
    """Machine and load under which times are taken."""
    try:
        load: list[float] | None = [round(value, 2) for value in os.getloadavg()]
    except (AttributeError, OSError):
        load = None
    return {"machine": platform.machine(), "system": platform.system(), "processors": os.cpu_count(), "load": load}
