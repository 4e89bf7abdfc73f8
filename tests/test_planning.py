"""`dpaudit.plan`: against the audits that it plans, and what must change with what. See also test_planning_power.py."""

import json
import math
from importlib import resources

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import special, stats
from support.samplers import laplace, one_at_a_time

import dpaudit
from dpaudit import SubjectError, UsageError
from dpaudit.audits.planning import MAX_SAMPLES, least_share
from dpaudit.audits.power import round_sizes
from dpaudit.cli import main

METRIC = dpaudit.MetricDP(lambda x, y: abs(x - y))


def plan(claim="eps=1", pairs=((0.0, 1.0),), **options):
    return dpaudit.plan(laplace, claim, list(pairs), **{"samples": 5_000, "seed": 3, **options})


def only(planned):
    """The one event mass of the one pair."""
    ((power,),) = (budget.powers for budget in planned.budgets)
    return power


@pytest.fixture(scope="module")
def validator():
    schema = json.loads((resources.files("dpaudit") / "schemas" / "plan-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


# --- against the audit ---


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize("claim", ["eps=1", "eps=1,delta=0.01", "mu=1", "rho=0.5"])
def test_the_known_figure_is_the_power_that_the_findings_of_the_audit_report(claim, mode):
    # of a sound subject, so that a sequential audit takes all its draws, which is what its power is stated for
    found = dpaudit.audit(
        lambda data, size, rng: rng.random(size), claim, [(0, 1)], samples=2_000, mode=mode, event_mass=0.3, seed=1
    )
    planned = plan(claim, mode=mode, samples=2_000, event_masses=[0.3])
    # 1%: the power of Renyi families is bisected to that
    assert only(planned).known == pytest.approx(found.findings[0].power.detectable, rel=0.01)


def test_the_known_loss_is_found_with_the_stated_probability_and_hardly_more():
    # A second computation, by the exact double sum over guesses and correct ones.
    samples, mass = 1_000, 0.2
    (finding,) = dpaudit.audit(laplace, "eps=1", [(0.0, 1.0)], samples=samples, mode="fixed", seed=1).findings
    draws = finding.witness.correct + finding.witness.wrong + finding.witness.abstained
    accuracy = special.expit(only(plan(samples=samples, mode="fixed", event_masses=[mass])).known)
    found = 0.0
    for guesses in range(draws + 1):
        weight = stats.binom.pmf(guesses, draws, mass)
        if weight > 1e-15:
            tail = stats.binom.sf(np.arange(guesses + 1) - 1, guesses, special.expit(1.0))
            critical = int(np.argmax(tail <= 0.05)) if np.any(tail <= 0.05) else guesses + 1
            found += weight * stats.binom.sf(critical - 1, guesses, accuracy)
    # Not exact from above: the number of guesses is taken at its 0.5% quantile. At 360 of about 380 guesses that is
    # worth a part in twenty of the excess.
    assert 0.9 <= found <= 0.97


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_error_share_is_the_least_that_a_pair_of_the_audit_has(count):
    pairs = [(0.0, 0.1 * (k + 1)) for k in range(count)]
    shares = [finding.error_share for finding in dpaudit.audit(laplace, METRIC, pairs, samples=500, seed=1).findings]
    assert plan(METRIC, pairs).error_share == pytest.approx(min(shares))
    assert 0.05 * least_share(count) == pytest.approx(min(shares))


def test_the_known_figure_of_all_pairs_is_that_of_their_table_for_the_least_ranked_pair():
    inputs = [0.02 * k for k in range(65)]
    options = {"samples": 500, "seed": 1, "mode": "fixed"}
    table = dpaudit.audit(
        laplace, METRIC, dpaudit.all_pairs(inputs), event_mass=0.5, floating_point=False, **options
    ).universe
    planned = dpaudit.plan(laplace, METRIC, dpaudit.all_pairs(inputs), event_masses=[0.5], **options)
    largest = planned.budgets[-1]
    row = int(np.argmax(table.budget))
    # The table states the figure on a grid of budgets, never smaller, and a pair in depth may have a smaller one.
    assert largest.budget == pytest.approx(table.budget[row])
    assert table.detectable[row] <= largest.powers[0].known * 1.05


def test_the_runs_are_those_of_the_audit():
    pairs = [(0.0, 0.5), (0.0, 1.0), (0.5, 1.0)]
    taken = dpaudit.audit(laplace, METRIC, pairs, samples=5_000, mode="fixed", seed=1).samples
    assert plan(METRIC, pairs, mode="fixed").runs == pytest.approx(taken, rel=0.05)


# --- what must change with what ---


def test_learning_never_costs_less_than_nothing():
    for power in plan(event_masses=[0.5, 0.1, 0.01]).budgets[0].powers:
        assert power.learned >= power.known > power.allowed
        assert all(needed.learned >= needed.known for needed in power.needed)


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_the_samples_that_are_needed_are_the_least_round_number_that_is_enough(mode):
    power = only(plan(over=0.5, event_masses=[0.2]))
    needed = next(entry.known for entry in power.needed if entry.mode == mode)
    sizes = round_sizes(3, MAX_SAMPLES)
    below = sizes[sizes.index(needed) - 1]
    assert only(plan(samples=needed, mode=mode, event_masses=[0.2])).known <= power.sought
    assert only(plan(samples=below, mode=mode, event_masses=[0.2])).known > power.sought


def test_a_budget_of_0_has_no_ratio_and_seeks_a_tenth_of_a_nat():
    power = only(plan("eps=0", event_masses=[0.5]))
    assert (power.known_ratio, power.learned_ratio, power.sought, power.allowed) == (None, None, 0.1, 0.0)
    assert math.isfinite(power.needed[0].known)


def test_pairs_that_are_not_asked_are_counted_and_cost_nothing():
    limited = dpaudit.MetricDP(lambda x, y: math.inf if max(x, y) > 1.0 else abs(x - y))
    planned = plan(limited, [(0.0, 1.0), (0.0, 2.0)])
    assert (planned.pairs, planned.not_asked, planned.inputs) == (1, 1, 2)
    assert planned.error_share == pytest.approx(0.05)
    nothing = plan("eps=inf")
    assert (nothing.pairs, nothing.budgets, nothing.runs, nothing.pilot_runs) == (0, (), 0, 0)


# --- the pilot ---


def test_the_pilot_draws_nothing_that_an_audit_of_the_same_seed_draws():
    seen = []

    def watched(data, size, rng):
        noise = rng.laplace(size=size)
        seen.extend(noise.tolist())
        return data + noise

    planned = dpaudit.plan(watched, "eps=1", [(0.0, 1.0)], pilot=500, seed=3)
    assert len(set(seen)) == len(seen) == planned.pilot_runs
    result = dpaudit.audit(watched, "eps=1", [(0.0, 1.0)], samples=2_000, seed=3)
    assert len(set(seen)) == len(seen) == planned.pilot_runs + result.samples + result.floating_point.samples


def test_the_estimate_finds_the_event_that_is_there_and_adds_a_row():
    def mostly_nothing(data, size, rng):
        u = rng.random(size)
        return np.where(u < 0.2 * special.expit(2.0 if data else -2.0), 1, np.where(u < 0.2, 0, 2))

    (budget,) = dpaudit.plan(mostly_nothing, "eps=1", [(0, 1)], pilot=4_000, seed=1, event_masses=[0.5]).budgets
    # The event is that of the guesses it names: a tenth of the outputs on each of two sides that are as good as each
    # other. Half of the pilot counts, 4,000 outputs; 6 standard deviations.
    sides = budget.estimate.description.count("guess ")
    assert budget.estimate.event_mass == pytest.approx(0.1 * sides, abs=0.04) and 1 <= sides <= 2
    assert budget.estimate.loss == pytest.approx(2.0, abs=0.7) and budget.estimate.runs == 8_000
    assert [(power.is_estimate, power.event_mass) for power in budget.powers] == [
        (False, 0.5),
        (True, budget.estimate.event_mass),
    ]


def test_the_same_seed_gives_the_same_figures():
    first, second = (plan(pilot=500) for _ in range(2))
    assert first.budgets[0].estimate == second.budgets[0].estimate
    assert [p.known for p in first.budgets[0].powers] == [p.known for p in second.budgets[0].powers]
    assert plan(pilot=500, seed=4).budgets[0].estimate != first.budgets[0].estimate


def test_a_vectorised_subject_that_raises_is_timed_one_call_a_draw_and_one_that_always_raises_is_an_error():
    assert dpaudit.plan(one_at_a_time, "eps=1", [(0.0, 1.0)], seed=1).subject["interface"].endswith("one call a draw")

    def broken(data, rng):
        raise ValueError("gone")

    with pytest.raises(SubjectError, match=r"broken must return outputs, got ValueError: gone in .* from all \d+"):
        dpaudit.plan(broken, "eps=1", [(0.0, 1.0)], seed=1)


# --- arguments and the saved form ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 5}, "samples must be an integer of at least 10, got 5"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
        ({"over": 0.0}, r"over must be in \(0, 100\]"),
        ({"event_masses": []}, "event_masses must be a list of numbers"),
        ({"mode": "both"}, "mode must be 'sequential', 'adaptive' or 'fixed', got 'both'"),
        ({"over": math.nan}, r"over must be in \(0, 100\].*got nan"),
        ({"power": 0.995}, r"power must be in \[0.5, 0.99\], got 0.995"),
        ({"claim": "rho=0.5", "power": 0.8}, "power must be 0.9 for the claim rho=0.5"),
        ({"event_masses": [0.0]}, r"event_masses must be numbers in \(0, 1\], got 0.0"),
        ({"pilot": 50}, "pilot must be an integer of at least 100, or 0 for none, got 50"),
        ({"seed": -1}, "seed must be a non-negative integer, got -1"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_by_name(options, message):
    with pytest.raises(UsageError, match=message):
        plan(**options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pilot": 200},
        {"seconds": 1e-3},
        {"claim": "rho=0.5", "event_masses": [0.5], "over": 1.0},
        {"claim": "eps=0"},
        {"claim": "eps=inf"},
        {"claim": "eps=1,delta=0.1", "event_masses": [0.1]},
    ],
    ids=["plain", "pilot", "a time", "rho", "zero", "vacuous", "any loss"],
)
def test_every_plan_follows_the_published_schema(validator, options, tmp_path):
    planned = plan(**options)
    planned.save(tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    record = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    validator.validate(record)
    assert record["schema"] == validator.schema["title"]


def test_the_event_mass_of_an_audit_is_that_of_its_plan():
    one = {"claim": "eps=1", "pairs": [(0.0, 1.0)], "samples": 1_000, "mode": "fixed", "seed": 7}
    (power,) = dpaudit.plan(laplace, **one, event_mass=0.3).budgets[0].powers
    assert power.event_mass == 0.3
    assert power.known == dpaudit.plan(laplace, **one, event_masses=[0.3]).budgets[0].powers[0].known
    for event_mass in (0.0, 1.5, "0.1"):
        with pytest.raises(UsageError, match=r"event_mass must be in \(0, 1\]"):
            dpaudit.plan(laplace, **one, event_mass=event_mass)
    with pytest.raises(UsageError, match="event_mass must be given without event_masses, got"):
        dpaudit.plan(laplace, **one, event_mass=0.3, event_masses=(0.1, 0.3))


# --- `dpaudit plan`: what is said, strict JSON, and one message for each mistake ---

CODE = """
from dpaudit import MetricDP, PureDP

def release(data, size, rng): return data + rng.laplace(size=size)
def raises(data, rng): raise ValueError("the database is gone")

class Own:
    claim = PureDP(1.0)
    def sample(self, data, size, rng): return data + rng.laplace(size=size)
    def pairs(self): return [(0.0, 1.0), (2.0, 1.0)]

own = Own()

class Moves(Own):
    translation_family = True
    def pairs(self): return [(0.0, 1.0), (1.0, 2.0), (2.0, 1.0)]

moves = Moves()
"""


@pytest.fixture
def run(project):
    """Run `dpaudit plan` in a project with mechanisms in m.py; never a traceback, never an unexpected error."""
    (project / "m.py").write_text(CODE)

    def run(*arguments):
        result = CliRunner(env={"COLUMNS": "80"}).invoke(main, ["plan", *arguments], prog_name="dpaudit")
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output and "unexpected" not in result.stderr
        assert all(len(line) <= 80 for line in result.stdout.splitlines()) or "json" in arguments
        return result

    return run


def ask(run, *arguments, claim="eps=1"):
    return run("m.py:release", "--claim", claim, "--pairs", "0,1", "--seed", "3", *arguments)


def test_a_plan_says_that_it_does_not_count_on_pools(run):
    text = " ".join(run("m.py:moves", "--seed", "3").stdout.split())
    assert "together (1 pool). This plan does not count on that: its figures are those of --no-pool." in text
    planned = json.loads(run("m.py:moves", "--seed", "3", "--format", "json").stdout)
    assert planned["pools"] == 1 and planned["pairs"] == 3
    assert "pool" not in run("m.py:own", "--seed", "3").stdout


def test_json_is_strict_and_alone_on_stdout(run):
    result = ask(run, "--format", "json", "--event-mass", "0.5")
    record = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert record["schema"] == "dpaudit.plan/1" and record["seed"] == 3
    assert record["budgets"][0]["powers"][0]["event_mass"] == 0.5 and result.stderr == ""


def test_claim_and_pairs_are_the_mechanisms_own_by_default_and_options_those_of_the_project(run, project):
    (project / "pyproject.toml").write_text("[tool.dpaudit]\nsamples = 3000\nmode = 'fixed'\n")
    assert "2 pairs of 3 inputs" in run("m.py:own").stdout
    assert "in 3,000 samples (fixed mode)" in run("m.py:own").stdout
    (project / "pyproject.toml").write_text("[tool.dpaudit]\nsamples = 3\n")
    result = run("m.py:own")
    assert result.exit_code == 2 and "samples must be" in result.stderr and "pyproject.toml" in result.stderr
