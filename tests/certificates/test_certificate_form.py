"""The saved form, the command, the pytest fixture, claims of other families, and the arithmetic of losses."""

from __future__ import annotations

import dataclasses
import json
import math
import time
from fractions import Fraction
from importlib import resources
from typing import Any

import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.exact.keeping import keeps
from dpaudit.symbolic.divergences import (
    Known,
    divergence_bounds,
    epsilon_floats,
    exp_bounds,
    float_above,
    float_below,
    is_above,
    log_bounds,
    ratio_at,
)
from dpaudit.symbolic.exploring import Exploration
from dpaudit.symbolic.renyi import renyi_bounds

MODULE = """
def response(x, rng):
    return x if rng.random() < 0.75 else 1 - x

def leaks(x, rng):
    return x

def draws(x, rng):
    return x + rng.normal()
"""


def response(x, rng):
    return x if rng.random() < 0.75 else 1 - x


def test_a_saved_certificate_reads_back_equal_and_follows_its_schema(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((resources.files("dpaudit") / "schemas" / "certificate-1.json").read_text(encoding="utf-8"))
    for mechanism, claim in ((response, "eps=1"), (lambda x, rng: x, "eps=1"), (lambda x, rng: rng.normal(), "eps=1")):
        result = dpaudit.certify(mechanism, claim, [(0, 1)])
        path = tmp_path / "certificate.json"
        result.save(path)
        jsonschema.validate(json.loads(path.read_text()), schema)
        assert dpaudit.load_certificate(path) == result


def test_a_file_that_is_no_certificate_has_one_clear_message(tmp_path):
    path = tmp_path / "certificate.json"
    dpaudit.certify(response, "eps=1", [(0, 1)]).save(path)
    record = json.loads(path.read_text())
    record["pairs"][0]["exact"] = "3"
    path.write_text(json.dumps(record))
    with pytest.raises(dpaudit.UsageError, match="exact must be a fraction, got '3'"):
        dpaudit.load_certificate(path)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["m.py:response", "--claim", "eps=1.1", "--pairs", "0,1"], 0, "Kept: eps=1.1 is proved for this pair"),
        (["m.py:response", "--claim", "eps=1", "--pairs", "0,1"], 1, "probability 3/4 on 0 and 1/4 on 1"),
        (["m.py:leaks", "--claim", "eps=1", "--pairs", "0,1"], 1, "a loss of infinity, claimed 1"),
        (["m.py:leaks", "--claim", "eps=1", "--pairs", "0,1"], 1, "The output 0 has probability 1 on 0 and 0 on 1."),
        (["m.py:leaks", "--claim", "eps=1", "--pairs", '"1.0","b"'], 1, "The output '1.0' has probability 1 on '1.0'"),
        (["m.py:response", "--claim", "rho=0.2", "--pairs", "0,1"], 1, "a loss of 0.544304, claimed 0.2."),
        (["m.py:draws", "--claim", "eps=1", "--pairs", "0,1"], 5, "normal draws a number from infinitely many"),
        (["m.py:response", "--claim", "mu=1", "--pairs", "0,1"], 2, ""),
        (["m.py:response", "--claim", "eps=1.09861228", "--pairs", "0,1"], 1, "a loss of 1.09861, claimed 1.09861228."),
        (["m.py:response", "--claim", "eps=1", "--pairs", "0,0"], 2, "pairs must be of two different inputs, got an"),
        (["m.py:response", "--pairs", "0,1"], 2, ""),
    ],
)
def test_the_command_exits_with_its_verdict(project, arguments, status, said):
    (project / "m.py").write_text(MODULE)
    result = CliRunner().invoke(main, ["certify", *arguments])
    assert result.exit_code == status, result.output
    assert said in " ".join(result.output.split())


def test_a_pair_of_one_input_with_itself_is_said_to_be_one():
    said = dpaudit.certify(response, "eps=1", [(0, 0)]).summary()
    assert "runs on 1 input)" in said and "Note: 0|0: x and x\u2032 are the same input" in said


def test_a_number_of_the_table_is_never_cut_off(project):
    (project / "m.py").write_text("def f(x, rng):\n    rng.random() < 0.5\ndef g(x, rng):\n"
                                  "    return rng.random() < (0.50000001 if x else 0.5)\n")  # fmt: skip
    none = CliRunner().invoke(main, ["certify", "m.py:f", "--claim", "eps=1", "--pairs", "0,1"]).output
    assert "4.9" not in none and "\u2026" not in none
    small = CliRunner().invoke(main, ["certify", "m.py:g", "--claim", "eps=1", "--pairs", "0,1"]).output
    assert "e-8" in small and "\u2026" not in small


def test_runs_that_are_made_again_leave_time_for_the_bounds(monkeypatch):
    ends = []
    monkeypatch.setattr(Exploration, "repeat", lambda self, deadline: ends.append(deadline))
    begun = time.monotonic()
    assert dpaudit.certify(response, "eps=1.1", [(0, 1)], seconds=1_000.0).verdict == "kept"
    assert len(ends) == 2 and max(ends) < begun + 900.0


def test_the_command_saves_and_prints_json(project):
    (project / "m.py").write_text(MODULE)
    arguments = [
        "certify",
        "m.py:response",
        "--claim",
        "eps=1",
        "--pairs",
        "0,1",
        "--out",
        "c.json",
        "--format",
        "json",
    ]
    result = CliRunner().invoke(main, arguments)
    assert json.loads(result.stdout) == json.loads((project / "c.json").read_text())
    assert dpaudit.load_certificate(project / "c.json").pairs[0].exact == 3


def test_the_fixture_passes_a_proof_and_fails_anything_else(pytester):
    pytester.makepyfile(
        MODULE
        + """
def test_kept(dp_certify):
    assert dp_certify(response, claim="eps=1.1", pairs=[(0, 1)]).verdict == "kept"

def test_violated(dp_certify):
    dp_certify(leaks, claim="eps=1.1", pairs=[(0, 1)])

def test_open(dp_certify):
    dp_certify(draws, claim="eps=1.1", pairs=[(0, 1)])
"""
    )
    result = pytester.runpytest("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*dp_certify: Violated: *", "*dp_certify: Open: *"])


def test_metric_claims_are_judged_pair_by_pair():
    def noisy(x, rng):
        return x + rng.geometric(0.5) - rng.geometric(0.5)

    result = dpaudit.certify(noisy, dpaudit.MetricDP(lambda x, y: 0.6931471805599453 * abs(x - y)), [(0, 1), (0, 3)])
    assert result.verdict == "kept"
    assert [pair.exact for pair in result.pairs] == [2, 8]
    shorter = dpaudit.MetricDP(lambda x, y: min(1.0, abs(x - y)))
    assert [pair.verdict for pair in dpaudit.certify(noisy, shorter, [(0, 1), (0, 3)]).pairs] == ["kept", "violated"]


def test_a_budget_of_zero_asks_for_equal_laws_and_an_infinite_one_for_nothing():
    assert dpaudit.certify(lambda x, rng: rng.integers(3), "eps=0", [(0, 1)], rounding=0.0).verdict == "kept"
    assert dpaudit.certify(response, "eps=0", [(0, 1)]).verdict == "violated"
    assert dpaudit.certify(lambda x, rng: x, dpaudit.PureDP(math.inf), [(0, 1)]).verdict == "kept"
    assert dpaudit.certify(lambda x, rng: x, dpaudit.PureDP(1e300), [(0, 1)]).verdict == "violated"
    assert dpaudit.certify(response, dpaudit.PureDP(1e300), [(0, 1)]).verdict == "kept"


def test_a_delta_is_exact_to_the_last_digit():
    def leaks_sometimes(x, rng):
        return x if rng.random() < 0.01 else None

    for rounding in (0.0, 1e-12):
        assert dpaudit.certify(leaks_sometimes, "eps=0,delta=0.01", [(0, 1)], rounding=rounding).verdict == "kept"
    smaller = dpaudit.ApproxDP(0.0, math.nextafter(0.01, 0.0))
    assert dpaudit.certify(leaks_sometimes, smaller, [(0, 1)], rounding=0.0).verdict == "violated"


def test_renyi_and_zcdp_claims_are_proved_and_disproved():
    # Of randomised response with 3/4: D_2 = log(9/4 + 1/36 ...) = log(7/3), by hand: 9/16 * 4 + 1/16 * 4/3.
    divergence = math.log(7 / 3)
    for order, epsilon, verdict in ((2.0, divergence + 1e-9, "kept"), (2.0, divergence - 1e-9, "violated")):
        result = dpaudit.certify(response, dpaudit.RenyiDP(order, epsilon), [(0, 1)])
        assert result.verdict == verdict
        assert result.pairs[0].value_lower <= divergence * (1 + 1e-15)
        assert result.pairs[0].value_upper >= divergence * (1 - 1e-15)
    # Pure epsilon implies epsilon^2 / 2 zCDP (Bun and Steinke 2016, proposition 1.4); here log(3)^2 / 2 = 0.6035.
    assert dpaudit.certify(response, "rho=0.6035", [(0, 1)]).verdict == "kept"
    assert dpaudit.certify(response, "rho=0.3", [(0, 1)]).verdict == "violated"
    assert dpaudit.certify(lambda x, rng: x, "rho=10", [(0, 1)]).verdict == "violated"
    assert dpaudit.certify(lambda x, rng: rng.integers(2), "rho=0", [(0, 1)], rounding=0.0).verdict == "kept"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"claim": "mu=1"}, "claim must be pure, approximate, metric, Renyi or zero-concentrated DP"),
        ({"claim": None}, "claim must be given"),
        ({"pairs": None}, "pairs must be given"),
        ({"seconds": 0.0}, "seconds must be a finite number above 0, got 0.0"),
        ({"rounding": -1.0}, r"rounding must be in \[0, 1\], got -1.0"),
        ({"face": "torch"}, "face must be 'numpy' or 'random', got 'torch'"),
    ],
)
def test_arguments_that_make_no_sense_have_one_message(options, message):
    with pytest.raises(dpaudit.UsageError, match=message):
        dpaudit.certify(response, **{"claim": "eps=1", "pairs": [(0, 1)], **options})


def test_logarithms_and_powers_are_rounded_outwards():
    for value in (Fraction(3), Fraction(1, 3), Fraction(10) ** 400, 1 + Fraction(1, 10**30)):
        low, high = log_bounds(value)
        assert low < high
        assert exp_bounds(low)[0] <= value <= exp_bounds(high)[1]
        # Wider by a digit they cannot agree: the bounds are not just wide.
        assert high - low < abs(low) / 10**45
    assert epsilon_floats(Fraction(3)) == (1.0986122886681096, 1.0986122886681098)  # log 3 is no double
    third = Fraction(1, 3)
    assert Fraction(float_below(third)) < third < Fraction(float_above(third))
    assert (float_below(Fraction(1, 2)), float_above(Fraction(1, 2)), float_above(Fraction(0))) == (0.5, 0.5, 0.0)


def test_what_is_left_is_bounded_in_both_directions():
    """For every way to lay the rest on outcomes, old or new, the divergence is within its bounds."""
    p = Known({"a": Fraction(1, 2), "b": Fraction(1, 4)}, Fraction(1, 4))
    q = Known({"a": Fraction(1, 4), "b": Fraction(5, 8)}, Fraction(1, 8))
    for t in (Fraction(1), Fraction(3, 2), Fraction(3)):
        low, high = divergence_bounds(p, q, t)
        for i in "abc":
            for j in "abc":
                full_p = {k: p.law.get(k, Fraction(0)) + (p.left if k == i else 0) for k in "abc"}
                full_q = {k: q.law.get(k, Fraction(0)) + (q.left if k == j else 0) for k in "abc"}
                true = sum(max(full_p[k] - t * full_q[k], Fraction(0)) for k in "abc")
                assert low <= true <= high
    for delta in (Fraction(0), Fraction(1, 10), Fraction(3, 10)):
        lower, upper = ratio_at(p, q, delta, upper=False), ratio_at(p, q, delta, upper=True)
        assert upper is None or lower <= upper
    assert ratio_at(p, q, Fraction(0), upper=True) is None  # the rest of p may be where q is not
    assert is_above(p, q, Fraction(0), Fraction(1, 16)) is True
    assert is_above(p, q, Fraction(0), Fraction(1, 2)) is False
    assert is_above(p, q, Fraction(0), Fraction(1, 4)) is None
    assert renyi_bounds(p, q, Fraction(2))[1] is None


def test_renyi_divergences_of_all_orders_are_between_their_bounds():
    p = Known({"a": Fraction(3, 5), "b": Fraction(2, 5)}, Fraction(0))
    q = Known({"a": Fraction(2, 5), "b": Fraction(3, 5)}, Fraction(0))
    assert renyi_bounds(p, q, Fraction(2))[0] < log_bounds(Fraction(7, 6))[1]  # the logarithm of 9/10 + 4/15
    assert renyi_bounds(p, q, Fraction(2))[1] > log_bounds(Fraction(7, 6))[0]
    for order in (10**6, 10**12, Fraction(1e300)):  # by the larger term: the other one is less than e^-(800,000) of it
        ratio, share = log_bounds(Fraction(3, 2), 400), log_bounds(Fraction(2, 5), 400)
        ends = order * ratio[0] + share[0], order * ratio[1] + share[1]
        low, high = renyi_bounds(p, q, Fraction(order))
        assert low * (order - 1) < ends[1] and high * (order - 1) > ends[0] and high - low < Fraction(1, 10**40)
    assert dpaudit.certify(response, "order=1e6, rdp=2", [(0, 1)]).verdict == "kept"


def test_two_scales_in_one_tail_are_an_infinite_loss_that_is_found():
    def scale_of_data(x, rng):
        return rng.geometric(0.5 if x else 0.75)

    result = dpaudit.certify(scale_of_data, "eps=3", [(0, 1)])
    assert result.verdict == "violated"
    assert result.pairs[0].epsilon_upper == math.inf


@dataclasses.dataclass(frozen=True)
class OfAnotherFamily(dpaudit.PureDP):
    family_of_pair: Any = None

    def for_pair(self, x, x_prime):
        return self.family_of_pair


@dataclasses.dataclass(frozen=True)
class Bits(dpaudit.PureDP):
    def lines(self, values, anchor):
        return math.log(2.0) * values, 0.0 * values


class Reported(dpaudit.ApproxDP):
    @property
    def report_delta(self):
        return 0.6  # at which no loss is above 0: the claim itself has delta 0


def test_each_pair_is_judged_by_its_own_claim():
    # The Renyi divergence of order 2 is log(7/3) = 0.847, and the loss log(3) = 1.099.
    for own, verdict in (
        (dpaudit.RenyiDP(2.0, 0.85), "kept"),
        (dpaudit.RenyiDP(2.0, 0.84), "violated"),
        (dpaudit.ApproxDP(0.0, 0.5), "kept"),
        (dpaudit.PureDP(1.0), "violated"),
    ):
        result = dpaudit.certify(response, OfAnotherFamily(5.0, family_of_pair=own), [(0, 1)])
        assert (result.verdict, result.pairs[0].claimed) == (verdict, own.value)


@pytest.mark.parametrize("own", [dpaudit.GaussianDP(1.0), Bits(1.0), Reported(0.1)])
def test_a_pair_whose_claim_cannot_be_judged_is_named(own):
    with pytest.raises(dpaudit.UsageError, match=r"claim must .* for 0\|1, .*Audit it instead"):
        dpaudit.certify(response, OfAnotherFamily(5.0, family_of_pair=own), [(0, 1)])


@pytest.mark.parametrize("own", [None, 1.1, dpaudit.MetricDP(lambda x, y: 1.1)])
def test_what_is_no_claim_of_a_pair_is_said_to_be_none(own):
    with pytest.raises(dpaudit.UsageError, match=r"for_pair must return a Claim with a budget, got .* for 0\|1"):
        dpaudit.certify(response, OfAnotherFamily(5.0, family_of_pair=own), [(0, 1)])


@pytest.mark.parametrize("own", [Bits(1.2), Reported(0.1), None])
def test_the_claim_of_a_finite_mechanism_is_not_read_as_that_of_its_base_class(own):
    with pytest.raises(dpaudit.UsageError, match="for rows 0 and 1"):
        keeps([[0.75, 0.25], [0.25, 0.75]], OfAnotherFamily(5.0, family_of_pair=own))
