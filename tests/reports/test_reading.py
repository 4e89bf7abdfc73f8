"""Results that a report takes: sessions of tests, stores of evidence, plans and replays on the same randomness."""

import json
import math

import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit import reports
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports.evidence import audit_of_store
from dpaudit.reports.reading import read_dossier
from dpaudit.reports.redaction import redacted
from dpaudit.results.side_findings import SideFinding


def session(**changes):
    base = {"seed": 1, "number": 1, "started": "2026-01-01", "ended": "2026-01-01", "status": "finished"}
    return {**base, "samples": 10, "runs": 20, "version": "0.1.0", "forgotten": False, **changes}


def stored_pair(**changes):
    base = {"key": "k", "id": "a|b", "x_id": "a", "x_prime_id": "b", "parameter": "epsilon", "parameter_budget": 1.0}
    base |= {"parameter_lower": 1.5, "violated": True, "draws": 900, "log_wealth": 9.0, "log_wealth_needed": 3.0}
    looks = [{"seed": 1, "number": 1, "draws": 900, "log_wealth": 9.0, "parameter_lower": 1.5}]
    return {**base, "change": None, "error_share": 0.05, "generation": 0, "looks": looks, **changes}


def stored_subject(*pairs, **changes):
    base = {"id": "0" * 64, "fingerprint": "0123abcd", "name": "city release", "target": "r:m", "claim": "eps=1"}
    base |= {
        "confidence": 0.95,
        "lives": 1,
        "error_rate": 0.05,
        "created": "2026-01-01",
        "violated": True,
        "draws": 900,
    }
    return {**base, "nights": [session(), session(number=2)], "pairs": list(pairs), **changes}


def test_a_subject_of_a_store_is_an_audit_of_all_its_sessions():
    quiet = stored_pair(id="a|c", x_prime_id="c", parameter_lower=0.5, violated=False)
    result = audit_of_store(stored_subject(stored_pair(), quiet, error_rate=0.1))
    assert result.verdict == "violated" and result.confidence == 0.9 and result.samples == 40
    assert [finding.verdict for finding in result.findings] == ["violated", "inconclusive"]
    assert result.findings[0].ratio_lower == 1.5 and result.findings[0].looks[0].draws == 900
    assert result.findings[0].verdict_share == pytest.approx(math.exp(-3.0))  # as the store says, not its pair's share
    assert dpaudit.AuditResult.from_dict(json.loads(result.to_bytes())) == result


@pytest.mark.parametrize(
    ("changes", "verdict", "ratio"),
    [
        ({"parameter_budget": 0.0}, "violated", math.inf),
        ({"parameter_budget": 0.0, "violated": False, "parameter_lower": 0.0}, "inconclusive", None),
        ({"change": "Draws depend on each other.", "violated": False, "parameter_lower": 0.0}, "inconclusive", 0.0),
        ({"parameter_lower": "inf"}, "violated", math.inf),
        ({"violated": True, "parameter_lower": 0.5}, "inconclusive", 0.5),  # no bound says so
    ],
)
def test_a_pair_of_a_store_has_the_verdict_of_its_bound(changes, verdict, ratio):
    finding = audit_of_store(stored_subject(stored_pair(**changes))).findings[0]
    assert (finding.verdict, finding.ratio_lower) == (verdict, ratio)


def test_a_store_is_reported_as_a_whole(project):
    def release(data, size, rng):
        return data + 0.1 * rng.laplace(size=size)  # a loss of 10 where 1 is promised: one session is enough

    dpaudit.audit(release, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=500, seed=1, store="evidence.db",
                  floating_point=False)  # fmt: skip
    dossier = read_dossier(["evidence.db"])
    assert dossier.verdict == "violated" and dossier.audits[0].options == {"nights": 1}
    text = reports.render(dossier, "html", "compliance")
    assert "release: privacy" in text and "evidence.db" in text


def test_a_session_is_reported_as_a_whole(synthetic, project):
    synthetic.make("single").save("out/test-a/audit.json")
    audits = [
        {"test": "t.py::a", "file": "t.py", "line": 1, "call": 1, "verdict": "violated", "subject": "city release",
         "claim": "eps=1", "known": "since long", "folder": "test-a"},
        {"test": "t.py::b", "file": "t.py", "line": 9, "call": 1, "verdict": "not_refuted", "subject": "other",
         "claim": "eps=2", "known": None, "folder": None},
    ]  # fmt: skip
    session = {"confidence": 0.999, "error_rate": 0.001, "profile": "compliance"}
    record = {"schema": "dpaudit.session/1", "session": session, "audits": audits}
    (project / "out" / "session.json").write_text(json.dumps(record))
    for place in ("out", "out/session.json"):
        dossier = read_dossier([place])
        assert len(dossier.sources) == len(dossier.attachments) == 1
        text = reports.render(dossier, "md", "compliance")
        assert "2: 1 violated, 1 not refuted" in text and "99.9%: a false alarm in at most 0.1% of sessions" in text
        assert "1 audit is not at hand" in text and "t.py::b" in text and "since long" in text
    hidden = reports.render(redacted(dossier), "md", "compliance")
    assert "t.py::b" not in hidden and "since long" not in hidden


def test_a_plan_and_a_replay_stand_beside_results_and_never_alone(synthetic, project):
    def release(data, size, rng):
        return data + rng.laplace(size=size)

    dpaudit.plan(release, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=1000, seed=1).save("plan.json")
    side = SideFinding("same_randomness", "found", "One input draws more noise.", None, {"runs": 16})
    (project / "grey.json").write_text(json.dumps(side.to_dict()))
    synthetic.make("single").save("audit.json")
    shown = CliRunner().invoke(
        main,
        ["report", "audit.json", "plan.json", "grey.json", "--profile", "compliance", "--report", "md", "--out", "o"],
    )
    assert shown.exit_code == 0, shown.output
    text = (project / "o" / "compliance.md").read_text()
    assert "It is a plan: nothing was found by it" in text and "One input draws more noise" in text
    with pytest.raises(UsageError, match="must be at least one file with a result, got only what judges no promise"):
        read_dossier(["plan.json"])


def test_a_result_that_is_given_twice_is_refused(synthetic, project):
    synthetic.make("single").save("audit.json")
    (project / "copy.json").write_bytes((project / "audit.json").read_bytes())
    with pytest.raises(UsageError, match=r"once each, got the content of 'audit.json' again in 'copy.json'\."):
        read_dossier(["audit.json", "copy.json"])


@pytest.mark.parametrize(
    "content",
    [
        '{"schema": "dpaudit.session/1"}',
        '{"schema": "dpaudit.session/1", "session": {}, "audits": [{}]}',
        '{"schema": "dpaudit.plan/1", "subject": 3}',
        '{"schema": "dpaudit.evidence/1", "subjects": [{}]}',
        '{"schema": "dpaudit.evidence/1", "subjects": []}',
        '{"kind": "x", "status": "y", "summary": "", "error_rate": null, "details": {}}',
        '{"schema": "dpaudit.later/1"}',
    ],
)
def test_a_file_that_does_not_follow_its_schema_is_refused(tmp_path, content):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match="must"):
        read_dossier([tmp_path / "x.json"])
