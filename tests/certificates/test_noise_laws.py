"""Certificates of mechanisms that only compare noise of real laws: proved, disproved, and never proved wrongly.

Losses are closed forms or those of a quadrature. The runs with real numbers are the only draws: a right law is called
wrong with probability at most 1e-6 in each certificate (`dpaudit.symbolic.real_runs.LEVEL`).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dpaudit
from dpaudit.subjects.callables import as_subject
from dpaudit.symbolic import noise_laws
from dpaudit.symbolic.noise_laws import noise_law
from dpaudit.symbolic.piecewise import Enclosure
from dpaudit.symbolic.tape import Tape
from dpaudit.symbolic.tracing import Untraceable

KEPT = {}
PAIR = ([0.0, 1.0, 2.0], [1.0, 0.0, 1.0])


def sparse_vector(of_threshold, of_answer):
    def mechanism(answers, rng):
        limit = 0.5 + rng.laplace(scale=of_threshold)
        for place, answer in enumerate(answers):
            if answer + rng.laplace(scale=of_answer) >= limit:
                return place
        return None

    return mechanism


def noisy_max(draw):
    def mechanism(scores, rng):
        return int(np.argmax(np.array(scores) + draw(rng, len(scores))))

    return mechanism


def above(x, rng):
    return bool(x + rng.laplace() > 0.5)


def either(x, rng):  # choices and comparisons together
    if rng.random() < 0.25:
        return rng.choice(["a", "b"])
    return "c" if x + rng.exponential() > 1.5 else "d"


PROVED = {
    "sparse vector": (sparse_vector(2.0, 4.0), PAIR, "eps=1"),
    "noisy max": (noisy_max(lambda rng, n: rng.laplace(scale=2.0, size=n)), PAIR, "eps=1"),
    "exponential noise, exactly at its loss": (noisy_max(lambda rng, n: rng.exponential(2.0, n)), PAIR, "eps=1"),
    "a sign": (above, (0.0, 1.0), "eps=1"),
    "choices too": (either, (0.0, 1.0), "eps=1"),
    "with a delta": (noisy_max(lambda rng, n: rng.laplace(scale=1.0, size=n)), PAIR, "eps=1,delta=0.3"),
    "as zCDP": (above, (0.0, 1.0), "rho=0.5"),
}
DISPROVED = {
    "too little noise": (sparse_vector(2.0, 1.0), PAIR, "eps=1"),
    "half the noise": (noisy_max(lambda rng, n: rng.laplace(scale=1.0, size=n)), PAIR, "eps=1"),
    "exponential noise, just below its loss": (
        noisy_max(lambda rng, n: rng.exponential(2.0, n)), PAIR, "eps=0.999999999999",
    ),
    "with a delta": (noisy_max(lambda rng, n: rng.laplace(scale=1.0, size=n)), PAIR, "eps=1,delta=0.1"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_noise_that_is_only_compared_is_proved_to_keep_a_claim(name):
    mechanism, pair, claim = PROVED[name]
    found = dpaudit.certify(mechanism, claim, [pair], rounding=1e-14)
    assert found.verdict == "kept" and found.mass_left == 0.0 and found.real_runs > 0, found.summary()


@pytest.mark.parametrize("name", DISPROVED)
def test_noise_that_is_only_compared_is_proved_to_break_a_claim(name):
    mechanism, pair, claim = DISPROVED[name]
    found = dpaudit.certify(mechanism, claim, [pair], rounding=1e-14)
    assert found.verdict == "violated" and found.pairs[0].event is not None, found.summary()


def test_a_loss_is_between_its_bounds():
    # P(x + z > 1/2) is e^(-1/2) / 2 on 0 and 1 - e^(-1/2) / 2 on 1.
    (pair,) = dpaudit.certify(above, "eps=1", [(0.0, 1.0)]).pairs
    loss = math.log(2.0 * math.exp(0.5) - 1.0)
    assert pair.epsilon_lower <= loss * (1.0 + 1e-15) and loss * (1.0 - 1e-15) <= pair.epsilon_upper
    assert pair.epsilon_upper - pair.epsilon_lower < 1e-15 and pair.exact is None


def test_an_outcome_that_one_input_cannot_give_has_an_infinite_loss():
    def mechanism(x, rng):
        return bool(rng.exponential() > 1.0 - 2.0 * x)  # sure on 1

    (pair,) = dpaudit.certify(mechanism, "eps=1", [(0.0, 1.0)]).pairs
    assert pair.verdict == "violated" and pair.epsilon_lower == pair.epsilon_upper == math.inf


def compares_normal_noise_in_a_chain(x, rng):
    a, b, c, d = (x * k + rng.normal() for k in range(4))
    return [bool(a < b), bool(b < c), bool(c < d)]


def closes_a_cycle(x, rng):
    a, b, c = (x * k + rng.laplace() for k in range(3))
    return [bool(a < b), bool(b < c), bool(a < c)]


def cancels(x, rng):
    noise = rng.laplace()
    return bool((noise + 1.0) - 1.0 == noise) if x else True


def cancels_in_a_comparison(x, rng):
    noise = rng.laplace()
    return bool((noise + 0.1) - 0.1 <= noise) if x else True


def lies_between_two_doubles(x, rng):
    noise = rng.laplace()
    return bool(noise + 0.1 > 0.3 + x and not noise > 0.2 + x)


def counts_calls(x, rng):
    KEPT["calls"] = KEPT.get("calls", 0) + 1
    return bool(rng.laplace() > 0.5) + (KEPT["calls"] % 7 == 0)


OTHER = np.random.default_rng(1)
REFUSED = {
    **{made.__name__: made for made in (
        compares_normal_noise_in_a_chain, closes_a_cycle, cancels, cancels_in_a_comparison, lies_between_two_doubles,
        counts_calls,
    )},
    "gives_noise_out": lambda x, rng: x + rng.laplace(),
    "compares_cauchy_noise": lambda x, rng: bool(x + rng.standard_cauchy() > rng.laplace()),
    "rounds_it": lambda x, rng: round(x + rng.laplace()),
    "has_a_signed_zero": lambda x, rng: rng.laplace() * (0.0 if x else -0.0),
    "absorbs_the_noise": lambda x, rng: bool((rng.laplace() + 1e17 * x) - 1e17 * x > 0.5),
    "asks_for_an_address": lambda x, rng: bool(rng.laplace() > 0.0) + id(x) % 2,
    "asks_for_a_hash": lambda x, rng: bool(rng.laplace() > hash("text") % 2),
    "keeps_noise": lambda x, rng: bool(KEPT.setdefault(x, rng.laplace()) > 0.5 * x),
    "uses_another_generator": lambda x, rng: bool(rng.laplace() > OTHER.random()),
}  # fmt: skip


@pytest.mark.parametrize("mechanism", REFUSED.values(), ids=REFUSED)
def test_what_the_law_of_noise_misses_is_refused(mechanism):
    KEPT.clear()
    found = dpaudit.certify(mechanism, "eps=1", [(0, 1)])
    assert found.verdict == "open" and pytest.approx(1.0) == found.mass_left, found.summary()
    assert "draws a number from infinitely many" in found.refusal and "line" in found.refusal


def test_paths_that_do_not_add_up_to_1_are_refused(monkeypatch):
    right = Tape.exact_mass
    tiny = Enclosure.of(noise_laws.SLACK)
    monkeypatch.setattr(Tape, "exact_mass", lambda tape: right(tape) + tiny)
    with pytest.raises(Untraceable, match="do not add up to 1"):
        noise_law(as_subject(above), 0.0)


@pytest.mark.parametrize(
    ("mechanism", "outcomes"),
    [
        (lambda x, rng: bool(rng.laplace() > x + rng.laplace()), 2),
        (lambda x, rng: (bool(rng.laplace() > x), int(rng.binomial(40, 1e-10)) == 40), 4),
    ],
)
def test_an_outcome_of_less_than_the_least_double_is_in_the_law(mechanism, outcomes):
    law = noise_law(as_subject(mechanism), 800.0 if outcomes == 2 else 0.0).law  # e^-800, or 1e-400
    assert len(law) == outcomes and 0 < min(law.values()) < Fraction(1, 10**340)


LEVEL = 1e-10  # of one law: 50 right ones are all said to be right but with probability 5e-9
