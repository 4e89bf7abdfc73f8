"""What an audit says that it would have found, by leaks planted into its own outputs."""

import dataclasses
import functools
import json
import math
import re

import numpy as np
import pytest
from support.samplers import laplace

import dpaudit
from dpaudit import arguments
from dpaudit.audits import planted
from dpaudit.reports import by_form
from dpaudit.results.model import PlantedCell

OPTIONS = {"samples": 1_500, "seed": 5, "floating_point": False}


def audited(mechanism=laplace, claim="eps=1", pairs=((0.0, 1.0),), **options):
    return dpaudit.audit(mechanism, claim, list(pairs), **{**OPTIONS, **options})


@functools.cache
def quick(mode):
    return audited(mode=mode, power="quick", inconclusive_factor=3.0)


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_plants_change_no_evidence(mode):
    without = audited(mode=mode, inconclusive_factor=3.0)
    kept = ("epsilon_lower", "parameter_lower", "log_wealth", "p_value", "looks", "samples", "witness")
    of_both = [[getattr(result.findings[0], name) for name in kept] for result in (quick(mode), without)]
    assert of_both[0] == of_both[1] and quick(mode).samples == without.samples


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_the_verdict_rests_on_what_was_planted(mode):
    result = quick(mode)
    power = result.findings[0].power
    assert power.is_planted and 2_400 < power.planted_draws < 3_000
    assert {(one.form, one.event_mass) for one in power.learned} == {("one level", None), ("intervals", None)}
    suffices = all(one.found == one.plants == 10 and one.loss == pytest.approx(3.0) for one in power.learned)
    assert suffices == (result.verdict == "not_refuted")
    assert power.blind_mass in (0.01, 0.003)


def test_a_result_without_plants_says_nothing_of_them():
    record = json.dumps(audited().to_dict())
    assert "planted_draws" not in record and '"power": "off"' not in record


def test_what_was_not_found_makes_an_audit_inconclusive():
    """Of narrow events and pairs of columns too few are found in rows of 12 that have few draws."""

    def rows(data, size, rng):
        return data + rng.laplace(scale=12.0, size=(size, 12))

    result = audited(rows, power="quick", samples=400)
    lost = [one for one in result.findings[0].power.learned if math.isinf(one.loss)]
    assert result.verdict == "inconclusive" and lost
    assert all(one.found < one.plants for one in lost)
    assert f"{lost[0].form} ({lost[0].found} of {lost[0].plants}: at least " in str(by_form.blocks(result))


def test_of_several_pairs_the_hardest_is_planted_and_the_others_follow():
    def whole(data, size, rng):
        return np.rint(laplace(data, size, rng))

    result = audited(whole, pairs=[(0.0, 1.0), (0.0, 0.5)], power="quick", inconclusive_factor=6.0)
    powers = [finding.power for finding in result.findings]
    assert all(power.is_planted for power in powers)
    assert sum(bool(power.cells) for power in powers) == 1


def test_a_cell_states_the_mass_that_was_planted_where_outputs_have_no_event_of_the_asked_one():
    def bits(data, size, rng):
        return rng.random((size, 3)) < 0.5

    result = audited(bits, power="quick", mode="fixed")
    power = result.findings[0].power
    assert power.event_mass == 0.1 and {cell.event_mass for cell in power.cells} == {1.0}  # a bit is one or the other
    assert all(one.event_mass == 1.0 for one in power.learned)
    rows = [row[0] for row in by_form.rows_of(power)]
    assert "one level, in 100% of outputs (10 of 10: at least 74%)" in rows
    assert "one level, in 100% of outputs" not in rows  # it has one row


def test_nothing_is_planted_where_a_pair_is_violated_or_the_same():
    violated = audited(lambda data, size, rng: np.full(size, data), power="quick")
    assert violated.verdict == "violated" and not violated.findings[0].power.is_planted
    control = audited(pairs=[(0.0, 0.0)], power="quick")
    assert control.findings[0].power is None


def test_constant_outputs_have_no_events():
    result = audited(lambda data, size, rng: np.zeros(size), power="quick")
    assert not result.findings[0].power.is_planted
    assert "no event has outputs" in next(one.summary for one in result.side_findings if one.kind == "planted_power")


def test_of_too_few_samples_the_number_that_would_do_is_said():
    few = audited(power="quick", samples=50)
    (said,) = (one.summary for one in few.side_findings if one.kind == "planted_power")
    needed = int(re.search(r"50 samples are too few to find one .*, (\d+) would do\.", said)[1])
    assert not few.findings[0].power.is_planted
    assert audited(power="quick", samples=needed).findings[0].power.is_planted


def test_of_a_budget_that_no_number_of_samples_reaches_no_number_is_said():
    few = audited(claim="eps=25", power="quick", samples=400)
    (said,) = (one.summary for one in few.side_findings if one.kind == "planted_power")
    assert "400 samples are too few" in said and "would do" not in said


def test_a_map_has_rows_of_other_masses():
    result = quick("fixed")
    power = result.findings[0].power
    rare = dataclasses.replace(power.cells[0], event_mass=0.01, loss=5.0, found=10)
    finding = dataclasses.replace(result.findings[0], power=dataclasses.replace(power, cells=(*power.cells, rare)))
    shown = by_form.rows_of(finding.power)
    assert result.verdict in ("not_refuted", "inconclusive")
    assert (f"{rare.form}, in 1% of outputs", "5", "–") in shown


@pytest.mark.slow
def test_a_full_map_of_a_small_audit():
    result = audited(power="full", samples=300, mode="fixed")
    power = result.findings[0].power
    forms = {cell.form for cell in power.cells}
    assert {"one level", "intervals", "few intervals", "random features"} <= forms
    assert {cell.event_mass for cell in power.cells} >= {0.1, 0.3}
    for one in power.learned:  # the least loss of which enough were found, and none that is smaller
        own = [c for c in power.cells if (c.form, c.event_mass) == (one.form, 0.1)]
        assert all(c.loss >= one.loss for c in own if c.found >= 37)


@pytest.mark.parametrize(("plants", "most"), [(10, 0.0351), (40, 0.0487)])
def test_a_leak_as_hard_as_plants_is_seldom_missed_and_not_refuted(plants, most):
    """The exact sum over what is found of so many plants, for a probability that is the leak's own and a plant's."""
    enough = [k for k in range(plants + 1) if PlantedCell("", 0.1, 2.0, k, plants).suffices(0.9)]
    shares = np.linspace(0.5, 1.0, 2_001)
    passed = [sum(math.comb(plants, k) * p**k * (1.0 - p) ** (plants - k) for k in enough) for p in shares]
    assert max((1.0 - shares) * passed) == pytest.approx(most, abs=1e-4)
    assert not PlantedCell("", 0.1, 2.0, 9, 10).suffices(0.9)


def test_every_effort_but_off_plants_something():
    assert tuple(planted.N_PLANTS) == tuple(name for name in arguments.EFFORTS if name != "off")
