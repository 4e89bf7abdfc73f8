"""Integers by value, doubles that are whole for their size alone, and audits of a mechanism in other units."""

import numpy as np
import pytest

import dpaudit
from dpaudit.features.outcomes import read_outputs, repeats_one_real_value
from dpaudit.features.whole_numbers import MIN_BITS, are_above_rounding, are_integers
from dpaudit.inference.low_bit_rules import choose_columns


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([0.0], True),
        ([0.0, 1.0], True),
        ([-3.0, 2.0**40], True),
        (2.0**50 + np.arange(20.0), True),  # two bits each
        (2.0**50 + np.arange(5.0), False),
        (2.0**52 + np.arange(100.0), False),
        ([0.0, 1e18], False),
        ([7.0, 1e18], False),  # a refusal beside large noise
        ([1e18, -3e18], False),
        ([1.0, np.nan], False),
        ([1.0, np.inf], False),
        ([1.0, 1.5], False),
        ([], False),
    ],
)
def test_integers_by_value(numbers, expected):
    assert are_integers(numbers) is expected


@pytest.mark.parametrize("power", [40, 48, 50, 51, 52, 53, 60, 200])
@pytest.mark.parametrize("draws", [3, 30, 300])
def test_real_noise_is_no_integer_in_any_unit(power, draws):
    """At a probability of 2^-30 each: 2e-5 in all."""
    for seed in range(1_000):
        assert not are_integers(np.random.default_rng(seed).laplace(scale=2.0**power, size=draws))
    assert MIN_BITS == 30.0


def test_what_is_left_modulo_a_step_is_looked_at_above_rounding():
    assert are_above_rounding([0.3, 1e10], 2.0) and not are_above_rounding([0.3, 1e12], 2.0)
    assert are_above_rounding(np.arange(5.0) + 1e14, 2.0) and are_above_rounding([np.nan, np.inf], 2.0)


def test_one_value_is_an_integer_by_its_size():
    for value, is_one in ((0.0, False), (3.0, False), (0.5, True), (1e18, True)):
        assert repeats_one_real_value(read_outputs(np.full(9, value), 9)) is is_one


UNITS = [2.0**-60, 2.0**45, 2.0**60, 2.0**100]


def noisy(unit, scale):
    return lambda x, size, rng: x + unit * rng.laplace(scale=scale, size=size)


def said(unit, scale, **options):
    result = dpaudit.audit(noisy(unit, scale), "eps=1", [(0.0, unit)], **options)
    (finding,), doubles = result.findings, result.floating_point
    return finding.verdict, finding.epsilon_lower, finding.samples, doubles.verdict, doubles.pairs[0].epsilon_lower


@pytest.mark.parametrize(("scale", "mode"), [(0.4, "sequential"), (0.8, "fixed"), (2.0, "fixed")])
def test_an_audit_in_another_unit_finds_the_same(scale, mode):
    """The same bits in units that are powers of two, but for the unit 1: there parts at whole numbers are tried too."""
    options = {"samples": 2_000, "mode": mode, "seed": 3, "floating_point": True}
    found = {said(unit, scale, **options) for unit in UNITS}
    assert len(found) == 1
    verdicts = {(verdict, doubles) for verdict, _, _, doubles, _ in found}
    for unit in (1.0, 1e-18, 1e18):
        verdict, _, _, doubles, _ = said(unit, scale, **options)
        assert (verdict, doubles) in verdicts


def test_the_parity_of_doubles_above_all_exact_integers_is_no_violation():
    """A loss of exactly 1, at 1e-4: it was violated by "the output modulo 64", with low bits "not applicable"."""
    options = {"samples": 20_000, "mode": "fixed", "seed": 1, "confidence": 0.9999, "floating_point": True}
    result = dpaudit.audit(noisy(1e18, 1.0), "eps=1", [(0.0, 1e18)], **options)
    assert result.verdict == "not_refuted" and result.floating_point.verdict == "leaks"


SIZES = [2**51, 2**52, 2**53 - 100, 2**53, 2**62]


@pytest.mark.parametrize("least", SIZES)
@pytest.mark.parametrize("form", [np.array, lambda some: [{"n": int(value)} for value in some]], ids=["array", "dict"])
def test_integers_of_any_size_keep_their_parity_and_have_no_low_bits(least, form):
    def tells(x, size, rng):
        return form(least + 2 * rng.integers(0, 400, size) + x)

    outcomes = read_outputs(tells(0, 50, np.random.default_rng(1)), 50)
    assert choose_columns(outcomes, outcomes).places == ()
    assert (outcomes.tokens is None) == (form is np.array and least < 2**52)
    result = dpaudit.audit(tells, "eps=1", [(0, 1)], samples=600, mode="fixed", seed=2)
    assert result.verdict == "violated" and result.floating_point.verdict == "not_applicable"
