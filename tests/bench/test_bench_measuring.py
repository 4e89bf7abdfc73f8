"""What is measured of a problem, on problems small enough to know the answer."""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics

import pytest

import dpaudit
from dpaudit.bench import extras, measuring
from dpaudit.bench.benching import load_bench, run_bench
from dpaudit.bench.design import QUICK
from dpaudit.bench.laws import response_law
from dpaudit.bench.numbers import response
from dpaudit.bench.objects import raises
from dpaudit.bench.problem import Peer, Problem
from dpaudit.errors import UsageError

DESIGN = dataclasses.replace(
    QUICK,
    seeds=3,
    bound_draws=2_000,
    alarm_samples=50,
    alarm_audits=5,
    tight_audits=10,
    overhead_draws=2_000,
    long_draws=4_000,
    overhead_calls=2_000,
)


def answers(name: str, epsilon: float, **options) -> Problem:
    values = {"sound": epsilon <= 1.0, "tight": epsilon == 1.0, "make_law": functools.partial(response_law, epsilon)}
    mechanism = options.pop("mechanism", functools.partial(response, epsilon=epsilon))
    values |= options
    return Problem(name, "test", "category", mechanism, dpaudit.PureDP(1.0), (0, 1), 1, source="a test", **values)


def breaks(data, size, rng):
    raise OSError("no disk")


def test_draws_to_detection_are_a_side_and_counted_in_full():
    record = measuring.measure(answers("answers", 4.0), "draws", DESIGN, 1)
    assert len(record["found"]) == 3 and record["cap"] == DESIGN.least_cap
    assert record["missed"] == 0 and record["median"] == sorted(record["found"])[1] and record["worst"] >= 1.0
    assert record["ratio"] == record["median"] / record["optimum"]
    seed = DESIGN.audit_seed("answers", "draws", 0)
    result = dpaudit.audit(functools.partial(response, epsilon=4.0), "eps=1", [(0, 1)], samples=2_000, seed=seed)
    assert record["found"][0] == 0.5 * result.findings[0].samples


def test_a_seed_that_finds_nothing_counts_as_infinite():
    record = measuring.measure(answers("weak", 1.001), "draws", dataclasses.replace(DESIGN, most_cap=100), 1)
    assert record["found"] == [math.inf] * 3 and record["missed"] == 3 and math.isinf(record["ratio"])


def test_bounds_against_the_optimum():
    record = measuring.measure(answers("answers", 2.0), "bounds", DESIGN, 1)
    assert 0.0 < record["median"] < 2.1 and record["lower"] == [record["median"]]
    assert record["shortfall"] == (record["optimum"] - record["median"]) / record["standard_error"]


def test_more_audits_decide_where_a_few_leave_the_shortfall_in_doubt(monkeypatch):
    design = dataclasses.replace(DESIGN, bound_seeds=2, doubtful_seeds=5)
    monkeypatch.setattr(measuring, "DOUBTFUL", math.inf)
    few = measuring.measure(answers("answers", 2.0), "bounds", design, 1)
    assert len(few["lower"]) == 2
    monkeypatch.setattr(measuring, "DOUBTFUL", few["shortfall"] - 1e-6)
    more = measuring.measure(answers("answers", 2.0), "bounds", design, 1)
    assert len(more["lower"]) == 5 and more["lower"][:2] == few["lower"]
    assert more["median"] == statistics.median(more["lower"])
    assert more["shortfall"] == (more["optimum"] - more["median"]) / more["standard_error"]


def test_false_alarms_are_spread_over_the_tight_problems():
    record = measuring.measure(answers("tight", 1.0), "alarms", DESIGN, 4)
    assert record["audits"] == 3 and record["tight"] and record["errors"] == 0  # 10 audits over 4 problems
    loose = measuring.measure(answers("loose", 0.5), "alarms", DESIGN, 4)
    assert loose["audits"] == 5 and not loose["tight"]


def test_alarms_are_counted_and_tested():
    # A problem that calls itself sound and is not: the count must see it.
    record = measuring.measure(answers("lies", 6.0, sound=True, tight=True), "alarms", DESIGN, 1)
    assert record["violated"] == 10
    assert measuring.alarm_p_value(10, 10) == pytest.approx(0.05**10)
    assert measuring.alarm_p_value(0, 10) == 1.0
    assert measuring.alarm_p_value(1, 10) == pytest.approx(1.0 - 0.95**10)


def test_a_classic_subject_takes_no_more_runs_than_it_may():
    peer = Peer("other tool", 0.9, 0.9, 400_000.0)
    design = dataclasses.replace(DESIGN, most_runs=1e9, classic_seeds=3)
    record = measuring.measure(answers("classic", 1.0, peers=(peer,)), "classics", design, 1)
    assert record["allowed"] == 20_000 and 0 < record["runs"] <= 20_000
    assert len(set(record["bounds"])) == 3 and record["lower"] == sorted(record["bounds"])[1]
    assert record["reached"] == (record["lower"] >= 0.9) and bool(record["reason"]) != record["reached"]
    assert record["truth"] == pytest.approx(1.0)
    # Where the optimum needs few draws, the audit takes ten times those and 20,000 a side, decided beforehand.
    easy = Peer("other tool", 0.2, 0.9, 4e7)
    planned = measuring.measure(answers("classic", 1.0, peers=(easy,)), "classics", design, 1)
    assert planned["allowed"] == 2_000_000 and planned["runs"] <= 41_200 and planned["reached"]  # 6% of a side beside
    hopeless = Peer("other tool", 1.5, 0.9, 400_000.0)
    record = measuring.measure(answers("classic", 1.0, peers=(hopeless,)), "classics", design, 1)
    assert not record["reached"] and "the optimum's bound with all 20,000 runs is 0.9" in record["reason"]
    assert ", by guesses on 1 of the outputs" in record["reason"]


def test_an_exception_stays_the_outcome_of_one_draw():
    problem = answers("raises", 1.0, mechanism=functools.partial(raises, scale=1.0))
    problem = dataclasses.replace(problem, pair=((0.5, 0.0), (0.0001, 0.0)), sound=False, tight=False)
    assert measuring.audited(problem, samples=500, seed=1).verdict == "violated"


@pytest.mark.slow
def test_the_program_that_measures_memory_runs():
    record = extras.memory(dataclasses.replace(DESIGN, memory_draws=(2_000, 4_000)))
    assert all(peak > 10_000 for mode in extras.TIMED_MODES for peak in record[mode]["peaks"])  # kilobytes


def without_times(content):
    for entry in content["problems"].values():
        for record in entry["parts"].values():
            record.pop("seconds", None)
    return content["problems"]


def test_a_run_writes_complete_files_and_goes_on(tmp_path, monkeypatch):
    problems = [answers("sound", 1.0), answers("faulty", 4.0), answers("broken", 2.0, mechanism=breaks)]
    seen = []
    measure = measuring.measure

    stop_at = [4]

    def interrupted(problem, part, design, tight):
        if len(seen) in stop_at:
            raise KeyboardInterrupt
        seen.append((problem.id, part))
        return measure(problem, part, design, tight)

    monkeypatch.setattr("dpaudit.bench.benching.measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_bench(problems, DESIGN, tmp_path)
    saved = load_bench(tmp_path / "bench.json")
    assert [(i, p) for i, e in saved["problems"].items() for p in e["parts"]] == [
        ("sound", "bounds"), ("faulty", "draws"), ("faulty", "bounds"), ("broken", "draws"),
    ]  # fmt: skip
    assert saved["summary"]["errors"] == ["broken, draws"]
    seen.clear()
    stop_at.clear()
    content = run_bench(problems, DESIGN, tmp_path, resume=True)
    assert seen == [("broken", "draws"), ("broken", "bounds"), ("sound", "alarms")]
    assert content == load_bench(tmp_path / "bench.json")
    assert content["summary"]["errors"] == ["broken, draws", "broken, bounds"]
    whole = run_bench(problems, DESIGN, tmp_path / "whole")
    assert without_times(whole) == without_times(load_bench(tmp_path / "bench.json"))
    with pytest.raises(UsageError, match="design must be that of the run to resume"):
        run_bench(problems, dataclasses.replace(DESIGN, seeds=2), tmp_path, resume=True)


@pytest.mark.slow
def test_records_do_not_depend_on_the_number_of_jobs(tmp_path):
    problems = [answers("sound", 1.0), answers("faulty", 4.0)]
    one, two = (run_bench(problems, DESIGN, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    assert without_times(one) == without_times(two)
