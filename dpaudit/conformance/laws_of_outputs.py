"""Checks that a mechanism draws from the law that it states: `distribution` with `outcomes`, and `log_density`."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import scipy

from dpaudit.conformance.case import Case, fail, p_text, raised, tokens
from dpaudit.conformance.outcomes import CheckSkipped
from dpaudit.features.outcomes import canonical
from dpaudit.inference import means
from dpaudit.numerals import at_least, compared
from dpaudit.privacy.claims import FloatArray
from dpaudit.privacy.pairs import short_form

MAX_OUTCOMES = 64  # with a test of their own; the others are one
ROUNDING = 1e-9


def distribution_of(case: Case, data: Any) -> FloatArray | None:
    """The stated probabilities on one input; None where the mechanism has no finite law."""
    function = getattr(case.subject.mechanism, "distribution", None)
    if not callable(function):
        return None
    try:
        return np.asarray(function(data), dtype=float)
    except Exception:  # a mechanism may have a finite law for some parameters only, and raise for others
        return None


def _states(mechanism: Any, name: str) -> bool:
    try:
        return getattr(mechanism, name, None) is not None
    except Exception:  # it has one that raises, which the caller says
        return True


def distribution_fits_draws(case: Case) -> str | None:
    """An exact binomial test for each of the likeliest outcomes and for all others together; none is impossible."""
    mechanism = case.subject.mechanism
    if not (_states(mechanism, "distribution") and _states(mechanism, "outcomes")):
        raise CheckSkipped("the mechanism has no distribution(data) with outcomes")
    try:
        listed, _ = mechanism.outcomes, mechanism.distribution(case.inputs[0])
    except Exception as error:
        raise CheckSkipped(f"the mechanism states no law here: {raised(error)}".removesuffix(".")) from None
    outcomes = [canonical(outcome) for outcome in listed]  # one by one: they need not be of one type
    if len(set(outcomes)) < len(outcomes):
        twice = Counter(outcomes).most_common(1)[0][0]
        fail(f"outcomes must be different from each other, got {twice[:60]} twice.")
    for k, data in enumerate(case.inputs):
        law = distribution_of(case, data)
        if law is None or law.shape != (len(outcomes),):
            fail(f"distribution must have one probability an outcome, shape ({len(outcomes)},), got "
                 f"{None if law is None else law.shape} for {short_form(data)}.")  # fmt: skip
            return None
        if not (law >= 0.0).all() or abs(law.sum() - 1.0) > ROUNDING:
            fail(f"distribution must be non-negative and sum to 1, got a sum of {law.sum():.12g}.")
        counts = Counter(tokens(case.read(data, case.samples, "distribution_fits_draws", k)))
        stated = dict(zip(outcomes, law.tolist(), strict=True))
        outside = next((token for token in counts if stated.get(token, 0.0) == 0.0), None)
        if outside is not None:
            fail(f"outputs must be possible under distribution({short_form(data)}), got {outside}.")
        ranked = sorted(stated, key=lambda token: -stated[token])
        tests = [(counts[token], stated[token], token) for token in ranked[:MAX_OUTCOMES]]
        if len(ranked) > MAX_OUTCOMES:
            rest = ranked[MAX_OUTCOMES:]
            tests.append((sum(counts[t] for t in rest), sum(stated[t] for t in rest), "the rarer outcomes"))
        for count, probability, token in tests:
            p_value = two_sided(count, case.samples, probability)
            if p_value * len(tests) * len(case.inputs) < case.level:
                fail(f"outputs must follow distribution({short_form(data)}), got {token} in {count} of {case.samples} "
                     f"draws where {probability * case.samples:.1f} are expected ({p_text(p_value)}).")  # fmt: skip
    return None


def two_sided(count: int, draws: int, probability: float) -> float:
    """Twice the smaller tail of the exact binomial test, at most 1.

    Examples
    --------
    >>> two_sided(0, 10, 0.5)
    0.001953125
    """
    if probability <= 0.0 or probability >= 1.0:
        return 1.0 if count == round(probability) * draws else 0.0
    upper = 1.0 if count == 0 else float(scipy.special.betainc(count, draws - count + 1.0, probability))
    lower = 1.0 if count == draws else float(scipy.special.betaincc(count + 1.0, draws - count, probability))
    return min(1.0, 2.0 * min(upper, lower))


def log_density_fits_draws(case: Case) -> str | None:
    """Of two inputs with densities p and q: E q/p <= 1 for draws from p, and E p/q <= 1 for draws from q, by betting.

    Both hold for any two laws (with p and q densities to one measure), so a mean above 1 says that the draws do not
    follow p. Draws that crowd where p is largest go unseen here: `claim_audit` sees too little noise.
    """
    function = getattr(case.subject.mechanism, "log_density", None)
    if not callable(function):
        raise CheckSkipped("the mechanism has no log_density(data, outputs)")
    tests = [(pair.x, pair.x_prime) for pair in case.pairs[:2]]
    tests += [(b, a) for a, b in tests]
    if not tests:
        raise CheckSkipped("no pair is known")
    level = case.level / len(tests)
    for k, (data, other) in enumerate(tests):
        outputs = case.draw(data, case.samples, "log_density_fits_draws", k)
        try:
            own, others = (np.asarray(function(x, outputs), dtype=float) for x in (data, other))
        except Exception as error:
            raise CheckSkipped(f"log_density raises here: {raised(error)}".removesuffix(".")) from None
        if own.shape != (case.samples,):
            fail(f"log_density must return one number an output, shape ({case.samples},), got shape {own.shape}.")
        if not np.isfinite(own).all():
            bad = int(np.flatnonzero(~np.isfinite(own))[0])
            fail(f"log_density must be finite on the outputs of its own input, got {own[bad]} for {outputs[bad]}.")
        with np.errstate(over="ignore"):
            ratios = np.exp(others - own)
        ratios = np.where(np.isnan(ratios), np.inf, ratios)
        fractions = means.stakes(case.samples, level)
        lower = means.mean_lower(ratios, level, fractions)
        if lower > 1.0 + ROUNDING:
            shown = compared(lower, 1.0)[0]
            fail(f"outputs on {short_form(data)} must follow log_density, got a mean density ratio to "
                 f"{short_form(other)} of {at_least(shown)} where 1 is the largest possible.")  # fmt: skip
    return None
