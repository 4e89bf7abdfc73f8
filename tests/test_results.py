"""The result model: what is saved is what is loaded, complete or not at all, and verdicts take precedence as stated."""

import dataclasses
import itertools
import json
import math
import os
import stat

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpaudit.errors import OutputError, UsageError
from dpaudit.privacy.claims import Budget
from dpaudit.reports.brief import short
from dpaudit.results import model as results
from dpaudit.results.model import (
    VERDICTS,
    AuditResult,
    Finding,
    FloatingPointFinding,
    FloatingPointPair,
    Look,
    Power,
    SideFinding,
    WitnessRecord,
    load,
    to_json,
)
from dpaudit.results.saving import check_file, write_whole

# Any Unicode text, lone surrogates included: names come from programs, files and hostile people. "inf" is a name too.
# A high surrogate next to a low one is one character to JSON, so two lone ones never stand together here.
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(["inf", "-inf", "nan", "\ud800", "\udfff x", "null", "a|b"]),
)
reals = st.floats(allow_nan=False)
bounds = st.floats(min_value=0.0, allow_nan=False)
probabilities = st.floats(0.0, 1.0)
counts = st.integers(0, 10**15)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
rules = st.dictionaries(texts, json_values, max_size=3)
any_findings = st.builds(
    Finding,
    id=texts,
    x_id=texts,
    x_prime_id=texts,
    x=json_values,
    x_prime=json_values,
    budget=st.builds(Budget, bounds, probabilities),
    parameter=st.sampled_from(["epsilon", "rho", "mu", "scale"]),
    parameter_budget=bounds,
    verdict=st.sampled_from(VERDICTS),
    epsilon_lower=bounds,
    parameter_lower=bounds,
    ratio_lower=st.none() | bounds,
    log_wealth=st.none() | reals,
    p_value=st.none() | probabilities,
    error_share=probabilities,
    samples=counts,
    power=st.none() | st.builds(Power, probabilities, probabilities, bounds, bounds),
    witness=st.none()
    | st.builds(WitnessRecord, texts, rules, counts, counts, counts, st.dictionaries(texts, reals, max_size=2)),
    looks=st.lists(st.builds(Look, counts, reals, bounds), max_size=3).map(tuple),
    message=texts,
)


def with_its_verdict(found):
    """The finding, violated exactly if its bound is above its budget."""
    if found.verdict == "error" or (found.verdict == "violated") == (found.parameter_lower > found.parameter_budget):
        return found
    return dataclasses.replace(found, verdict="violated" if found.verdict != "violated" else "not_refuted")


findings = any_findings.map(with_its_verdict)
floating_point_pairs = st.builds(
    FloatingPointPair,
    id=texts,
    x_id=texts,
    x_prime_id=texts,
    budget=st.builds(Budget, bounds, probabilities),
    verdict=st.sampled_from(["leaks", "nothing_found"]),
    epsilon_lower=bounds,
    p_value=probabilities,
    error_share=probabilities,
    correct=counts,
    wrong=counts,
    abstained=counts,
    detectable_share=bounds,
    description=texts,
    rule=st.none() | rules,
)


def floating_point_finding(pairs, message, samples, omitted):
    found = {pair.verdict for pair in pairs}
    verdict = "leaks" if "leaks" in found else "nothing_found" if found else "not_applicable"
    return FloatingPointFinding(verdict, message, 1e-3, samples, tuple(pairs), omitted)


floating_point_findings = st.builds(
    floating_point_finding, st.lists(floating_point_pairs, max_size=2), texts, counts, counts
)
side_findings = st.builds(
    SideFinding,
    kind=st.sampled_from(["timing", "containment"]),
    status=st.sampled_from(["found", "nothing_found", "not_applicable"]),
    summary=texts,
    error_rate=st.none() | probabilities,
    details=st.dictionaries(texts, texts | counts, max_size=2),
)
audit_results = st.builds(
    AuditResult,
    claim=texts,
    confidence=st.floats(0.01, 0.99),
    mode=st.sampled_from(["sequential", "fixed"]),
    seed=counts,
    replayable=st.booleans(),
    findings=st.lists(findings, max_size=3).map(tuple),
    not_asked=st.lists(texts, max_size=3).map(tuple),
    report_delta=probabilities,
    samples=counts,
    seconds=st.integers(0, 10**9).map(lambda k: k / 1000.0),  # kept to the millisecond
    subject=st.dictionaries(texts, texts, max_size=2),
    environment=st.dictionaries(texts, texts, max_size=2),
    options=st.dictionaries(texts, counts | st.booleans() | st.floats(allow_nan=False), max_size=2),
    floating_point=st.none() | floating_point_findings,
    side_findings=st.lists(side_findings, max_size=2).map(tuple),
)


def finding(verdict="not_refuted", ratio=0.5, **changes):
    values = {"id": "a|b", "x_id": "a", "x_prime_id": "b", "x": 0.0, "x_prime": 1.0, "budget": Budget(1.0, 0.0)}
    values |= {"parameter": "epsilon", "parameter_budget": 1.0, "verdict": verdict, "ratio_lower": ratio}
    values["parameter_lower"] = 1.5 if verdict == "violated" else 0.0
    return Finding(**{**values, **changes})


def result(*parts, **changes):
    values = {"claim": "eps=1", "confidence": 0.95, "mode": "sequential", "seed": 7, "replayable": True}
    values |= {"findings": parts, "not_asked": (), "report_delta": 0.0, "samples": 10, "seconds": 0.5}
    return AuditResult(**{**values, "subject": {"name": "s"}, "environment": {}, **changes})


@settings(max_examples=150, deadline=None)
@given(audit_results)
def test_a_saved_result_is_strict_json_in_utf_8_and_is_loaded_as_it_was(tmp_path_factory, original):
    def refuse(name):
        raise AssertionError(name)

    path = tmp_path_factory.mktemp("new") / "folder" / "audit.json"
    original.save(path)
    json.loads(path.read_bytes().decode("utf-8"), parse_constant=refuse)
    assert load(path) == original


def test_nan_is_null_in_the_file_and_nan_or_none_after_loading(tmp_path):
    nan = math.nan
    original = result(finding(epsilon_lower=nan, parameter_lower=nan, ratio_lower=nan, looks=(Look(1, nan, nan),)))
    original.save(tmp_path / "audit.json")
    entry = json.loads((tmp_path / "audit.json").read_text())["pairs"][0]
    assert entry["epsilon_lower"] is entry["ratio_lower"] is entry["looks"][0][1] is None
    again = load(tmp_path / "audit.json").findings[0]
    assert math.isnan(again.epsilon_lower) and math.isnan(again.looks[0].log_wealth) and again.ratio_lower is None


def test_numpy_numbers_are_saved_as_numbers(tmp_path):
    original = result(
        finding(samples=np.int64(3), epsilon_lower=np.float64(0.5), x=np.array([1, 2]), x_prime=np.float32(0.5)),
        samples=np.int64(5),
        seed=np.int64(7),
        replayable=np.bool_(True),
        confidence=np.float64(0.9),
        seconds=np.float64(1.5),
    )
    original.save(tmp_path / "audit.json")
    again = load(tmp_path / "audit.json")
    assert (again.samples, again.seed, again.replayable, again.confidence) == (5, 7, True, 0.9)
    x, x_prime = again.findings[0].x, again.findings[0].x_prime
    assert x.dtype == np.int64 and x.tolist() == [1, 2] and type(x_prime) is np.float32 and x_prime == 0.5


def test_a_long_input_is_kept_as_its_digest():
    saved = finding(x="z" * 30_000).to_dict()["x"]
    # python -c "import hashlib; print(hashlib.sha256(b'\"' + b'z' * 30000 + b'\"').hexdigest()[:16])"
    assert saved["sha256"].startswith("c8809a2e0f2b3da0") and saved["characters"] == 30_002


def test_objects_are_named_without_their_address():
    assert "0x" not in to_json(object())
    assert to_json({1: {2.5, math.inf}, "k": (None, b"x")}) == {"1": [2.5, "inf"], "k": [None, "b'x'"]}


@pytest.mark.parametrize("verdicts", [v for n in (1, 2, 3, 4) for v in itertools.combinations(VERDICTS, n)])
def test_the_verdict_of_a_result_is_the_gravest_of_its_findings(verdicts):
    order = ["violated", "error", "inconclusive", "not_refuted"]
    expected = min(verdicts, key=order.index)
    whole = result(*(finding(verdict) for verdict in reversed(verdicts)))
    assert whole.verdict == expected
    assert whole.exit_status == {"violated": 1, "error": 3, "inconclusive": 5, "not_refuted": 0}[expected]


def test_nothing_to_ask_is_inconclusive():
    empty = result(not_asked=("a|b",))
    assert (empty.verdict, empty.exit_status, empty.worst, empty.violated) == ("inconclusive", 5, None, ())
    assert (empty.epsilon_lower, empty.ratio_lower) == (0.0, 0.0)


def test_findings_are_ranked_by_verdict_then_ratio_then_evidence():
    parts = [
        finding("not_refuted", 0.9, id="e"),
        finding("violated", 1.5, id="b", log_wealth=9.0),
        finding("violated", 1.5, id="a", log_wealth=12.0),
        finding("inconclusive", 3.0, id="d"),
        finding("error", None, id="c"),
        finding("not_refuted", math.nan, id="g"),
        finding("not_refuted", 0.2, id="f"),
    ]
    whole = result(*parts)
    assert [part.id for part in whole.ranked()] == ["a", "b", "c", "d", "e", "f", "g"]
    assert [part.id for part in whole.violated] == ["a", "b"] and whole.worst.id == "a"


def test_smaller_p_values_come_first():
    whole = result(finding(id="b", p_value=0.5), finding(id="a", p_value=0.01))
    assert whole.worst.id == "a"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "dpaudit.audit/2"}, "schema must be dpaudit.audit/1, got 'dpaudit.audit/2'"),
        ({"schema": None}, "schema must be dpaudit.audit/1, got None"),
        ({"verdict": "violated"}, "verdict must be that of the findings, 'not_refuted', got 'violated'"),
        ({"pairs": [{}]}, "result must follow dpaudit.audit/1"),
        ({"samples": "1000"}, "result must follow dpaudit.audit/1, got another: samples must be int, got '1000'"),
        ({"options": {"a": "DEEP"}}, "of a depth that can be read"),
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path, change, message):
    path = tmp_path / "audit.json"
    # As text: to encode a value so deep takes a stack that a test runner may have used already.
    path.write_text(json.dumps({**result(finding()).to_dict(), **change}).replace('"DEEP"', "[" * 900 + "]" * 900))
    with pytest.raises(UsageError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("verdict", "lower", "promised", "message"),
    [
        ("not_refuted", 1.2, 1.0, r"'violated' \(epsilon is at least 1\.2, 1\.0 is promised\), got 'not_refuted'"),
        ("inconclusive", 1e-9, 0.0, r"'violated' \(epsilon is at least 1e-09, 0\.0 is promised\), got 'inconclusive'"),
        ("violated", 1.0, 1.0, r"one that is not 'violated' \(epsilon is at least 1\.0, 1\.0 is promised\), got"),
        ("violated", 0.0, 0.0, "one that is not 'violated'"),
    ],
)
def test_a_verdict_that_is_not_that_of_its_bound_is_refused(tmp_path, verdict, lower, promised, message):
    path = tmp_path / "audit.json"
    result(finding(verdict, parameter_lower=lower, parameter_budget=promised)).save(path)
    with pytest.raises(UsageError, match=rf"verdict of the pair 'a\|b' must be that of its bound, {message}") as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("verdict", "lower"), [("error", 2.0), ("inconclusive", math.nan), ("violated", math.inf), ("not_refuted", 1.0)]
)
def test_a_verdict_that_is_that_of_its_bound_is_read(tmp_path, verdict, lower):
    path = tmp_path / "new" / "audit.json"  # whose folder is made
    result(finding(verdict, parameter_lower=lower)).save(path)
    assert load(path).verdict == verdict


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "result must be JSON"),
        (b"\xff", "result must be JSON"),
        (b"[]", "result must be a JSON object, got list"),
        (b"[" * 100_000, "result must be JSON, got .*recursion"),
    ],
)
def test_what_is_no_result_is_refused(tmp_path, content, message):
    (tmp_path / "audit.json").write_bytes(content)
    with pytest.raises(UsageError, match=message):
        load(tmp_path / "audit.json")


@pytest.mark.parametrize("breaks", ["fsync", "replace"])
def test_a_failure_in_the_middle_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, breaks):
    path = tmp_path / "audit.json"
    path.write_text("old")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(results.os, breaks, fail)
    with pytest.raises(OutputError, match=r"must be a writable place, got '.*audit\.json' \(No space left") as told:
        write_whole(path, "new")
    assert told.value.exit_status == 3 and not isinstance(told.value, UsageError)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["audit.json"]


def test_an_interruption_leaves_no_file(tmp_path, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(results.os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "audit.json", "new")
    assert os.listdir(tmp_path) == []


def test_a_place_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="output must be a writable place"):
        write_whole(tmp_path / "file" / "audit.json", "new")
    with pytest.raises(UsageError, match="output must be a writable place"):
        write_whole(tmp_path, "new")


def test_a_pipe_or_a_device_is_refused_and_stays(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match=r"output must be a writable place, got '.*pipe' \(no regular file\)"):
        write_whole(tmp_path / "pipe", "new")
    with pytest.raises(UsageError, match=r"out must be a file that can be written, got '.*pipe'"):
        check_file("out", tmp_path / "pipe")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode) and os.listdir(tmp_path) == ["pipe"]


def test_a_device_that_looks_like_the_file_it_leads_to_is_refused_and_stays(tmp_path, monkeypatch):
    (tmp_path / "printed").write_text("before")
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev" / "stdout").symlink_to(tmp_path / "printed")  # as of a command with `> printed`
    monkeypatch.setattr("dpaudit.results.saving.DEVICES", (tmp_path / "dev").resolve())
    with pytest.raises(UsageError, match=r"output must be a writable place, got '.*stdout' \(no regular file\)"):
        write_whole(tmp_path / "dev" / "stdout", "new")
    with pytest.raises(UsageError, match=r"out must be a file that can be written, got '.*stdout'"):
        check_file("out", tmp_path / "dev" / "stdout")
    assert (tmp_path / "dev" / "stdout").is_symlink() and (tmp_path / "printed").read_text() == "before"


@settings(max_examples=150, deadline=None)
@given(audit_results)
def test_every_result_is_printed_in_few_paragraphs_that_can_be_printed(original):
    lines = str(original).split("\n")
    assert len(short(original)) <= 4 and all(line.isprintable() and len(line) <= 80 for line in lines)
