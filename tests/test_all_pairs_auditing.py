"""Audits of all-pairs tables: the planted pair is named, any claim and output served, the same bits for any jobs."""

import json
import math
from importlib import resources

import jsonschema
import numpy as np
import pytest
from support.samplers import laplace

import dpaudit
from dpaudit.audits import all_pairs_auditing, many_pairs
from dpaudit.errors import UsageError
from dpaudit.privacy.metrics import AbsoluteMetric
from dpaudit.results.all_pairs_table import AllPairsTable
from dpaudit.results.model import VERDICTS, AuditResult
from dpaudit.running import worker_pool
from dpaudit.subjects.callables import Subject

METRIC = dpaudit.MetricDP(AbsoluteMetric(1.0))
COUNT = 70  # inputs: 2,415 pairs, above the least number of an all-pairs table
POINTS = (np.arange(COUNT) * 0.1).round(10).tolist()
MOVED = 40  # of the faulty mechanism: its law stands 1 nat to the right


def moved(data, size, rng):
    return data + (1.0 if data == POINTS[MOVED] else 0.0) + rng.laplace(size=size)


def audited(mechanism, claim=METRIC, data=POINTS, seed=1, samples=4_000, **options):
    options = {"mode": "fixed", **options}
    return dpaudit.audit(mechanism, claim, dpaudit.AllPairs(data), samples=samples, seed=seed, **options)


@pytest.fixture(scope="module")
def found():
    return audited(moved)


@pytest.fixture
def small(monkeypatch):
    """All-pairs tables from 11 pairs on, for audits that need no more."""
    for module in (many_pairs, all_pairs_auditing):
        monkeypatch.setattr(module, "MANY_PAIRS", 10)


def test_every_violated_pair_of_the_table_is_a_finding_and_the_verdicts_agree(found):
    table = found.universe
    rows = {table.pair_id(int(k)) for k in np.flatnonzero(table.verdict == 0)}
    assert rows == {finding.id for finding in found.findings if finding.verdict == "violated"}
    assert found.verdict == "violated"
    assert found.exit_status == 1
    assert sum(table.count(verdict) for verdict in VERDICTS) == table.asked == len(table) == COUNT * (COUNT - 1) // 2
    for finding in found.findings:
        row = table.finding(finding.x_id, finding.x_prime_id)
        assert (row.verdict, row.epsilon_lower) == (finding.verdict, finding.epsilon_lower)
    assert (table.epsilon_lower[table.verdict == 0] > table.budget[table.verdict == 0]).all()


def test_a_violated_pair_that_is_no_finding_still_decides_the_verdict(found):
    table = found.universe
    calm = tuple(finding for finding in found.findings if finding.verdict == "not_refuted")
    import dataclasses

    assert dataclasses.replace(found, findings=calm).verdict == "violated"
    assert dataclasses.replace(found, findings=calm).ratio_lower == found.ratio_lower > 1.0
    assert dataclasses.replace(found, findings=calm, universe=None).verdict != "violated"
    assert table.worst(3)[0].verdict == "violated"


def test_the_result_does_not_depend_on_the_number_of_jobs(found, monkeypatch):
    # else these few runs would all be made here
    monkeypatch.setattr(
        worker_pool.WorkerPool, "seconds_saved", lambda worker_pool, _: math.inf if worker_pool.workers else 0.0
    )
    again = audited(moved, jobs=2)
    assert again.to_dict() == {**found.to_dict(), "seconds": again.to_dict()["seconds"]}


def test_a_plain_list_of_pairs_gives_the_same_table(found):
    pairs = [(POINTS[i], POINTS[j]) for i in range(COUNT) for j in range(i + 1, COUNT)]
    listed = dpaudit.audit(moved, METRIC, pairs, samples=4_000, seed=1, mode="fixed")
    for name in ("budget", "epsilon_lower", "log10_p_value", "verdict"):
        assert np.array_equal(getattr(listed.universe, name), getattr(found.universe, name)), name


def test_the_saved_result_follows_the_schema_and_is_read_back(found, tmp_path):
    schema = json.loads((resources.files("dpaudit") / "schemas" / "audit-1.json").read_text(encoding="utf-8"))
    saved = json.loads(found.to_bytes())
    jsonschema.Draft202012Validator(schema).validate(saved)
    assert set(schema["$defs"]["all_pairs_table"]["properties"]) == set(saved["universe"])
    found.save(tmp_path / "audit.json")
    again = dpaudit.load(tmp_path / "audit.json")
    table, read = found.universe, again.universe
    assert again.verdict == found.verdict
    assert np.array_equal(read.verdict, table.verdict)
    assert np.all(read.epsilon_lower <= table.epsilon_lower * (1.0 + 1e-9))  # rounded down
    assert np.all(read.epsilon_lower >= table.epsilon_lower * (1.0 - 2e-4))  # to 5 digits
    assert np.all(read.log10_p_value >= table.log10_p_value - 1e-8)  # rounded up
    assert np.all(read.detectable >= table.detectable * (1.0 - 1e-9))
    assert np.array_equal(read.ratio_lower > 1.0, table.ratio_lower > 1.0)
    assert again.to_dict()["universe"] == saved["universe"]  # saving what was read changes nothing


def test_a_table_with_lists_of_other_lengths_is_refused(found):
    record = found.to_dict()
    record["universe"] = {**record["universe"], "budget": record["universe"]["budget"][1:]}
    with pytest.raises(UsageError, match=r"universe\.budget must have 2415 entries, got 2414"):
        AuditResult.from_dict(record)


def test_a_table_with_a_verdict_that_is_not_that_of_its_bound_is_refused(found):
    record = found.to_dict()
    table = record["universe"]
    place = table["verdict"].index("n")
    changed = table["verdict"][:place] + "v" + table["verdict"][place + 1 :]
    record["universe"] = {**table, "verdict": changed}
    with pytest.raises(UsageError, match=r"verdict of the pair .*\|.* must be that of its bound, .*got 'violated'"):
        AuditResult.from_dict(record)
    record["universe"] = {**table, "epsilon_lower": [100.0, *table["epsilon_lower"][1:]]}
    with pytest.raises(UsageError, match=r"must be that of its bound, 'violated' \(epsilon is at least 100\.0"):
        AuditResult.from_dict(record)


def test_the_witness_of_a_table_finding_can_be_replayed(found, tmp_path):
    found.save(tmp_path / "audit.json")
    again = dpaudit.load(tmp_path / "audit.json")
    cells = [f for f in again.violated if "score" in f.witness.rule]
    worst = cells[0]
    # Its loss is 1 nat over a budget below 1, at 20,000 runs a side: a miss has probability below 1e-20.
    replay = dpaudit.replay(again, moved, METRIC, pair=worst.id, samples=20_000, seed=3)
    assert replay.confirmed


def test_budgets_of_zero_and_infinity(small):
    def budget(x, y):
        return 0.0 if {x, y} == {0.0, 1.0} else float("inf") if {x, y} == {2.0, 3.0} else 50.0

    result = audited(laplace, dpaudit.MetricDP(budget), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], samples=20_000)
    table = result.universe
    zero, far = table.finding("0.0", "1.0"), table.finding("2.0", "3.0")
    assert (zero.verdict, zero.ratio_lower) == ("violated", float("inf"))  # the laws differ by 1 nat
    assert (far.verdict, far.ratio_lower) == (None, None)
    assert table.count(None) == 1
    assert table.asked == 14
    assert result.verdict == "violated"
    assert json.loads(result.to_bytes())["ratio_lower"] == "inf"
    again = AllPairsTable.from_dict(json.loads(result.to_bytes())["universe"])
    assert again.finding("0.0", "1.0").ratio_lower == float("inf")
    assert again.finding("2.0", "3.0").verdict is None


def test_a_budget_below_zero_is_refused_with_its_pair(small):
    class Odd(AbsoluteMetric):
        def matrix(self, points):
            return -super().matrix(points)

    with pytest.raises(UsageError, match=r"budgets in \[0, inf\]"):
        audited(laplace, dpaudit.MetricDP(Odd(1.0)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0])


def test_a_metric_that_is_not_symmetric_is_refused_in_a_table_of_all_pairs(small):
    class OneWay(AbsoluteMetric):
        def __call__(self, x, x_prime):
            return 2.0 if x < x_prime else 0.5

    class OneWayMatrix(AbsoluteMetric):
        def matrix(self, points):
            return np.triu(super().matrix(points))

    numbers = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    for metric in (OneWay(1.0), OneWay(1.0).__call__):
        with pytest.raises(UsageError, match=r"metric must be symmetric, got metric\(0\.0, 1\.0\) = 2\.0 but "):
            audited(laplace, dpaudit.MetricDP(metric), numbers)
    with pytest.raises(UsageError, match=r"must have a symmetric matrix, got 1\.0 and 0\.0 for 0\.0\|1\.0\."):
        audited(laplace, dpaudit.MetricDP(OneWayMatrix(1.0)), numbers)


def test_an_approximate_claim_pays_for_its_delta(small):
    def revealing(data, size, rng):
        return np.where(rng.random(size) < 0.05, data + 100, rng.integers(0, 6, size))

    data = list(range(6))
    # It reveals with probability 0.05 and loses nothing else: exactly (0, 0.05)-DP. At delta 0.06 a false alarm has a
    # probability far below 5%; at delta 0.005 the leak of 5% of 4,000 draws is missed with probability below 1e-30.
    assert audited(revealing, dpaudit.ApproxDP(0.5, 0.06), data, samples=8_000).verdict != "violated"
    result = audited(revealing, dpaudit.ApproxDP(0.5, 0.005), data, samples=8_000)
    assert result.verdict == "violated"
    assert result.report_delta == 0.005


def test_a_vectorised_call_that_raises_starts_the_audit_again_one_call_a_draw(small):
    def failing(data, size, rng):
        if data == 0 and rng.random() < 0.5:
            raise ValueError("no")
        return rng.laplace(size=size)

    result = audited(failing, dpaudit.PureDP(1.0), list(range(6)), samples=600)
    assert result.subject["interface"].endswith("one call a draw")
    assert result.verdict == "violated"  # that it raises half of the time tells input 0 from the others
    assert all("0" in (f.x_id, f.x_prime_id) for f in result.violated)


def test_a_mechanism_that_always_raises_is_an_error(small):
    def broken(data, rng):
        raise OSError("gone")

    result = audited(broken, dpaudit.PureDP(1.0), list(range(6)), samples=200)
    assert result.verdict == "error"
    assert result.universe.count("error") == 15
    assert "OSError: gone in " in result.findings[0].message


class Breaks:
    """Of loss 0.39 from input 0 to others; raises for a batch once it has drawn so many outputs."""

    def __init__(self, limit):
        self.left, self.sizes = limit, []

    def sample(self, data, size, rng):
        self.sizes.append(size)
        self.left -= size
        if self.left < 0 and size > 1:
            raise RuntimeError("no more")
        return (rng.random(size) < (0.5 if data else 0.66)).astype(int)


BREAKS = {"claim": dpaudit.PureDP(0.1), "data": list(range(66)), "samples": 1_200, "mode": "sequential"}


def test_what_the_table_has_found_stands_where_a_batch_of_the_depth_raises():
    """The depth looks once, behind its last draw: a batch that raises before leaves what the table says, and why."""
    whole = Breaks(10**9)
    before = audited(whole, seed=2, floating_point=False, **BREAKS)
    result = audited(Breaks(sum(whole.sizes) - 100), seed=2, floating_point=False, **BREAKS)
    assert 0 < len(result.violated) < len(before.violated)
    assert {finding.id for finding in result.violated} <= {finding.id for finding in before.violated}
    cut_off = [finding for finding in result.findings if finding.notes]
    assert cut_off and all("RuntimeError: no more" in finding.notes[0] for finding in cut_off)
    assert all(finding.verdict in ("violated", "inconclusive", "not_refuted") for finding in cut_off)
    assert result.options["examined"] == 0 and result.options["selected"] == len(cut_off)
    assert before.options["examined"] == before.options["selected"]
    table = result.universe
    for finding in cut_off:
        row = [pair.id for pair in dpaudit.AllPairs(BREAKS["data"])].index(finding.id)
        assert VERDICTS[table.verdict[row]] == finding.verdict
        assert table.epsilon_lower[row] == finding.epsilon_lower


@pytest.mark.parametrize("is_restarted", [True, False])
def test_a_depth_whose_first_batch_raises_starts_again_one_call_a_draw(monkeypatch, is_restarted):
    if not is_restarted:  # as where it may not
        monkeypatch.setattr(Subject, "is_contained", True)
    breaks, selected = Breaks(10**9), all_pairs_auditing.AllPairsAudit._selected

    def then_breaks(audit, game):
        breaks.left = 0
        return selected(audit, game)

    monkeypatch.setattr(all_pairs_auditing.AllPairsAudit, "_selected", then_breaks)
    result = audited(breaks, seed=2, floating_point=False, **BREAKS)
    assert result.subject["interface"].endswith("one call a draw") == is_restarted
    assert (result.options["examined"] > 0) == is_restarted and result.options["selected"] == many_pairs.DEPTH_OF_MANY
    assert any("no more" in note for finding in result.findings for note in finding.notes) != is_restarted


class Empty:
    __slots__ = ()


def test_an_error_of_the_depth_keeps_its_message_and_a_violation_of_the_table_stands(small):
    """Say where the table had a higher bound, the message was empty."""

    def seldom(data, rng):
        return 7 if rng.random() < (0.06 if data == 0.0 else 0.0) else Empty()

    kinds = set()
    for seed in range(12):
        result = audited(seldom, dpaudit.PureDP(2.0), [float(k) for k in range(6)], seed=seed, samples=1_000)
        for finding in result.findings:
            kinds.add(finding.verdict)
            assert (finding.verdict == "error") == bool(finding.message)
            assert finding.verdict != "violated" or finding.ratio_lower > 1.0
    assert "error" in kinds
