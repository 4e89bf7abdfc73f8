"""Exact losses: sound mechanisms equal their closed forms as fractions, and each faulty twin is disproved."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import discrete as d
import pytest
from random_programs import _race

import dpaudit
from dpaudit.exact.finite import privacy_loss

COUNTS = list(itertools.combinations(range(5), 2))
BITS = [(0, 1)]
BARS = [((0, 1), (1, 1)), ((0, 1), (1, 2)), ((2, 0), (0, 0))]
SCORES = [((0, 1, 1), (1, 0, 1)), ((0, 2, 1), (1, 1, 1)), ((2, 0, 0), (1, 1, 0))]
ANSWERS = [((0, 1), (1, 0)), ((0, 0), (1, 1)), ((0, 2), (1, 1))]


def exact(mechanism: Any, pairs: list[Any], claim: str = "eps=1") -> list[Fraction | None]:
    result = dpaudit.certify(mechanism, claim, pairs, seconds=600)
    assert not result.refusal
    assert result.mass_left == 0.0
    return [pair.exact for pair in result.pairs]


def ratio_of(p: dict[Any, Fraction], q: dict[Any, Fraction]) -> Fraction:
    return max(max(p[outcome] / q[outcome], q[outcome] / p[outcome]) for outcome in p)


def distance(x: tuple[int, ...], y: tuple[int, ...]) -> int:
    return sum(abs(a - b) for a, b in zip(x, y, strict=True))


def race_law(scores: tuple[int, ...]) -> dict[Any, Fraction]:
    return _race(list(scores), Fraction(1, 2))


CLOSED_FORMS = [  # the mechanism, its pairs, and e^epsilon of each
    (d.response, list(itertools.combinations(range(4), 2)), [Fraction(5)] * 6),  # the odds of the truth
    (d.count, COUNTS, [Fraction(2 ** abs(x - y)) for x, y in COUNTS]),
    (d.clamped, COUNTS, [Fraction(2 ** abs(x - y)) for x, y in COUNTS]),
    (d.histogram, BARS, [Fraction(2 ** distance(*pair)) for pair in BARS]),
    (d.exponential, SCORES, [ratio_of(*map(d.exponential_law, pair)) for pair in SCORES]),  # by one comparison
    (d.permute_and_flip, SCORES, [ratio_of(*map(d.permute_and_flip_law, pair)) for pair in SCORES]),
    (d.noisy_max, SCORES, [ratio_of(*map(race_law, pair)) for pair in SCORES]),  # a sum of geometric series
    (d.sparse_vector, ANSWERS, [ratio_of(*map(d.sparse_vector_law, pair)) for pair in ANSWERS]),
    (d.composed, BITS, [Fraction(9)]),
    # From x = 1 the answer 1 has 1/4 * 3/4 + 3/4 * 1/4 = 3/8, from x = 0 it has 1/4.
    (d.subsampled, BITS, [Fraction(3, 2)]),
]


@pytest.mark.parametrize(
    ("mechanism", "pairs", "expected"),
    [
        pytest.param(*entry, id=entry[0].__name__, marks=pytest.mark.slow if entry[0] is d.sparse_vector else ())
        for entry in CLOSED_FORMS
    ],
)
def test_a_sound_mechanism_has_the_loss_of_its_closed_form(mechanism, pairs, expected):
    assert exact(mechanism, pairs) == expected


def test_a_table_of_probabilities_has_the_loss_of_the_finite_mechanism():
    rows = [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]]
    mechanism = dpaudit.FiniteMechanism(rows)
    result = dpaudit.certify(mechanism, "eps=2", [(0, 1)])
    pair = result.pairs[0]
    assert pair.epsilon_lower == pytest.approx(privacy_loss(*rows), abs=1e-14)  # rows that sum to 1 in doubles
    assert pair.epsilon_lower <= pair.epsilon_upper <= math.nextafter(pair.epsilon_lower, 9.0)


def discrete_laplace(x: int, rng: Any) -> Any:
    """Sign and size, drawn again where that is -0, as samplers for exact arithmetic do: a loop without an end."""
    while True:
        is_negative, size = bool(rng.integers(2)), rng.geometric(0.5) - 1
        if not (is_negative and size == 0):
            return x - size if is_negative else x + size


@pytest.mark.slow
def test_rejection_without_an_end_is_proved_with_a_delta_and_open_without():
    open_result = dpaudit.certify(discrete_laplace, "eps=0.7", [(0, 1)], seconds=1.0)
    assert open_result.verdict == "open"
    pair = open_result.pairs[0]
    assert 0.0 < pair.mass_left < 1.0
    assert pair.epsilon_lower <= math.log(2.0) < pair.epsilon_upper == math.inf
    kept = dpaudit.certify(discrete_laplace, "eps=0.6931471806,delta=1e-6", [(0, 1)], seconds=600)
    assert kept.verdict == "kept"
    assert 0.0 < kept.mass_left < 1e-6
    # log 2 at delta 0, and at delta 1e-6 a little less: e^epsilon = (P(S) - delta) / Q(S) at P(S) = 2/3, Q(S) = 1/3.
    assert kept.pairs[0].epsilon_lower <= math.log((2 / 3 - 1e-6) * 3) <= kept.pairs[0].epsilon_upper


TWINS = [  # the twin, its pairs, the claim of the sound mechanism, and the largest e^epsilon of the pairs
    # (None: infinite; ...: infinite too, or of no closed form, and disproved by an event)
    (d.response_too_true, COUNTS[:1], "eps=1.6094379124341005", Fraction(33, 5)),
    (d.response_skips_an_answer, COUNTS[:4], "eps=1.6094379124341005", None),
    (d.response_honest_at_zero, COUNTS[:1], "eps=1.6094379124341005", None),
    (d.response_draws_by_the_data, COUNTS[:1], "eps=1.6094379124341005", Fraction(6)),
    (d.response_raises, [(2, 3)], "eps=1.6094379124341005", None),
    (d.count_one_sided, BITS, "eps=0.6931471805599453", None),
    (d.count_too_little_noise, BITS, "eps=0.6931471805599453", Fraction(4)),
    (d.count_twice, BITS, "eps=0.6931471805599453", Fraction(4)),
    (d.count_scale_of_data, BITS, "eps=0.6931471805599453", ...),
    (d.count_exact_sometimes, BITS, "eps=0.6931471805599453", ...),
    (d.count_same_noise_twice, BITS, "eps=0.6931471805599453", ...),
    (d.clamped_by_the_data, BITS, "eps=0.6931471805599453", None),
    (d.clamped_noise, BITS, "eps=0.6931471805599453", None),
    (d.clamped_too_little_noise, BITS, "eps=0.6931471805599453", Fraction(4)),
    (d.histogram_shared_noise, [((0, 1), (1, 1))], "eps=0.6931471805599453", ...),
    (d.histogram_skips_empty, [((0, 1), (1, 1))], "eps=0.6931471805599453", None),
    (d.exponential_squared, [((0, 0), (1, 0))], "eps=0.6931471805599453", Fraction(5, 2)),
    (d.exponential_greedy, [((0, 1), (1, 0))], "eps=0.6931471805599453", Fraction(17, 7)),
    (d.exponential_not_normalised, [((0, 2), (2, 0))], "eps=1.3862943611198906", None),
    (d.permute_and_flip_squared, [((0, 1), (1, 0))], "eps=1.3862943611198906", Fraction(7)),
    (d.flip_in_order, [((1, 0), (0, 1))], "eps=0.6931471805599453", None),
    (d.noisy_max_with_its_value, [((0, 1), (1, 1))], "eps=0.6931471805599453", ...),
    (d.noisy_max_shared_noise, [((0, 1), (1, 0))], "eps=0.6931471805599453", None),
    (d.noisy_max_too_little_noise, [((0, 1), (1, 0))], "eps=1.3862943611198906", ...),
    (d.noisy_max_of_the_best_two, [((0, 1, 2), (2, 1, 0))], "eps=2.772588722239781", None),
    (d.sparse_vector_no_threshold_noise, ANSWERS[1:2], "eps=0.9", Fraction(121, 25)),
    (d.sparse_vector_never_stops, ANSWERS[2:], "eps=1.2", Fraction(25, 2)),
    (d.sparse_vector_no_answer_noise, ANSWERS[:1], "eps=1.8", None),
    (d.sparse_vector_tells_the_answer, ANSWERS[1:2], "eps=0.9", None),
    (d.composed_thrice, BITS, "eps=2.1972245773362196", Fraction(27)),
    (d.composed_with_the_difference, BITS, "eps=1.0986122886681098", None),
    (d.subsampled_tells_whether, BITS, "eps=0.5", Fraction(3)),
    (d.subsampled_too_often, BITS, "eps=0.5", Fraction(2)),
]


@pytest.mark.parametrize(
    ("twin", "pairs", "claim", "expected"), TWINS, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_faulty_twin_is_disproved_with_its_event(twin, pairs, claim, expected):
    result = dpaudit.certify(twin, claim, pairs, seconds=600)
    assert result.verdict == "violated"
    worst = result.worst
    assert worst.event is not None
    first, second = worst.event.probability, worst.event.other_probability
    # The event alone disproves the claim, and so without the certificate's own formulas.
    assert first > Fraction(math.exp(float(claim.removeprefix("eps="))) * (1 + 1e-13)) * second
    if expected is None:
        assert worst.epsilon_lower == math.inf
    elif expected is not ...:
        assert worst.exact == expected


SOUND = [
    (d.response, COUNTS[:1], "eps=1.6094379124341005"),
    (d.count, BITS, "eps=0.6931471805599453"),
    (d.clamped, BITS, "eps=0.6931471805599453"),
    (d.histogram, BARS[:1], "eps=0.6931471805599453"),
    (d.exponential, [((0, 0), (1, 0)), ((0, 1), (1, 0))], "eps=1.3862943611198906"),
    (d.permute_and_flip, [((0, 1), (1, 0))], "eps=1.3862943611198906"),
    (d.noisy_max, [((0, 1), (1, 0))], "eps=1.3862943611198906"),
    (d.sparse_vector, ANSWERS[:1], "eps=1.8"),
    (d.sparse_vector, ANSWERS[1:2], "eps=0.9"),
    (d.sparse_vector, ANSWERS[2:], "eps=1.2"),
    (d.composed, BITS, "eps=2.1972245773362196"),
    (d.subsampled, BITS, "eps=0.5"),
]


@pytest.mark.parametrize(("mechanism", "pairs", "claim"), SOUND, ids=lambda value: getattr(value, "__name__", ""))
def test_the_sound_mechanisms_keep_the_claims_that_their_twins_break(mechanism, pairs, claim):
    assert dpaudit.certify(mechanism, claim, pairs, seconds=600).verdict == "kept"
