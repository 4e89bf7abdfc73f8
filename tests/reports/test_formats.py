"""JUnit, SARIF and in-toto: they follow their schemas, name what was found, and stay the same from run to run."""

import base64
import dataclasses
import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import jsonschema
import pytest

from dpaudit import reports
from dpaudit.errors import UsageError
from dpaudit.reports.cases import cases
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.html import script
from dpaudit.reports.reading import read_dossier
from dpaudit.reports.sarif import anchor_of
from dpaudit.results.model import load

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def sarif_schema():
    schema = json.loads((DATA / "sarif-2.1.0-rtm.5.json").read_text(encoding="utf-8"))
    return jsonschema.Draft4Validator(schema, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


def test_every_result_is_valid_sarif(any_result, sarif_schema, project):
    log = json.loads(reports.render(any_result, "sarif"))
    sarif_schema.validate(log)
    for result in log["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert not re.match(r"[a-z]+:|/", place["artifactLocation"]["uri"])  # a relative reference


def test_fingerprints_ignore_the_witness_the_seed_and_the_worst_pair(synthetic, project):
    first = synthetic.make("violated")
    worst = dataclasses.replace(first.violated[0], verdict="not_refuted", witness=None, ratio_lower=0.5)
    rest = tuple(finding for finding in first.findings if finding.id != worst.id)
    second = dataclasses.replace(first, seed=99, findings=(worst, *rest))
    marks = [
        json.loads(reports.render(result, "sarif"))["runs"][0]["results"][0]["partialFingerprints"]
        for result in (first, second, dataclasses.replace(first, claim="eps=2"))
    ]
    assert marks[0] == marks[1] != marks[2]


def test_a_target_is_anchored_to_its_line_without_an_import(project):
    (project / "release.py").write_text("raise SystemExit\n\nclass A: ...\n\nmechanism: object = A()\n")
    (project / "src" / "pack").mkdir(parents=True)
    (project / "src" / "pack" / "mod.py").write_text("def f(data): ...\n")
    (project / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.dpaudit]\n')
    for target, place in [
        ("release.py:mechanism", ("release.py", 5)),
        ("release.py:A", ("release.py", 3)),
        ("release.py:gone", ("release.py", 1)),
        ("pack.mod:f", ("src/pack/mod.py", 1)),
        ("missing.py:f", ("pyproject.toml", 3)),
        ("../release.py:mechanism", ("pyproject.toml", 3)),
        ("/etc/passwd:root", ("pyproject.toml", 3)),
        ("a\0b.py:f", ("pyproject.toml", 3)),
        ("", ("pyproject.toml", 3)),
    ]:
        assert (lambda anchor: (anchor.uri, anchor.line))(anchor_of({"target": target})) == place
    assert anchor_of({"location": "tests/test it.py:12"}).uri == "tests/test%20it.py"


def test_every_result_is_junit_xml(any_result):
    root = ElementTree.fromstring(reports.render(any_result, "junit"))
    suites = root.findall("testsuite")
    assert (
        int(root.get("tests")) == sum(int(suite.get("tests")) for suite in suites) == len(root.findall(".//testcase"))
    )
    assert int(root.get("failures")) == len(root.findall(".//failure"))
    assert bool(root.findall(".//failure")) == (any_result.verdict == "violated")


def test_cases_of_very_many_pairs_are_counted(synthetic):
    findings = [synthetic.finding(f"x{k}", "y", 0.5, looks=()) for k in range(1100)]
    found = cases(Dossier.of(synthetic.result(findings)))
    assert len(found) == 1001 and "100 pairs not listed" in found[-1].message


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("violated", "FAILED"),
        ("error", "FAILED"),
        ("inconclusive", "WARNED"),
        ("empty", "WARNED"),
        ("doubles", "WARNED"),
        ("sides", "WARNED"),
        ("not_refuted", "PASSED"),
    ],
)
def test_the_statement_has_the_words_of_the_predicate(synthetic, name, result):
    statement = json.loads(reports.render(synthetic.make(name), "in-toto"))
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert statement["predicate"]["result"] == result
    assert all(subject["name"] and subject["digest"] for subject in statement["subject"])


def test_the_configuration_of_a_statement_can_be_checked(synthetic, tmp_path):
    synthetic.make("single").save(tmp_path / "audit.json")
    statement = json.loads(reports.render(read_dossier([tmp_path / "audit.json"]), "in-toto"))
    file, settings = statement["predicate"]["configuration"]
    assert file["digest"]["sha256"] == hashlib.sha256((tmp_path / "audit.json").read_bytes()).hexdigest()
    content = base64.b64decode(settings["content"])
    assert hashlib.sha256(content).hexdigest() == settings["digest"]["sha256"]
    assert json.loads(content)["claim"] == "eps=1"


@pytest.mark.parametrize("format", ["sarif", "junit", "in-toto", "md", "json", "html"])
def test_hostile_names_stay_text_in_every_format(synthetic, format, project):
    dossier = synthetic.attacked()
    for profile in ("plain", "compliance"):
        content = reports.render(dossier, format, profile)
        text = content.decode("utf-8") if isinstance(content, bytes) else content
        if format != "json":  # the saved model keeps the data as they are, escaped as JSON escapes
            assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", text)
        if format in ("sarif", "in-toto", "json"):
            json.loads(text)
        elif format == "junit":
            ElementTree.fromstring(text)
        elif format == "html":
            own = f"<script>{script()}</script>"  # the one that is ours
            assert text.count(own) == 1 and "<script" not in text.replace(own, "")
        else:
            plain = re.sub(r"(?m)^(`{3,})\n.*?\n\1$", "", text, flags=re.DOTALL)  # what is fenced is no markup
            assert not re.search(r"(?<!\\)<script", plain)


def test_an_older_file_is_read_and_reported(tmp_path):
    record = json.loads((DATA / "audit-older.json").read_text(encoding="utf-8"))
    assert "side_findings" not in record and "floating_point" not in record
    result = load(DATA / "audit-older.json")
    assert (result.verdict, result.side_findings, result.floating_point) == ("not_refuted", (), None)
    for format in ("html", "md", "junit", "sarif", "in-toto", "json"):
        assert reports.render(result, format)


def test_suffixes_name_formats():
    assert reports.format_of("a/audit.json") == "json" and reports.format_of("audit.intoto.json") == "in-toto"
    assert reports.format_of("x.sarif.json") == reports.format_of("x.sarif") == "sarif"
    assert reports.format_of("x.xml") == reports.format_of("x.junit.xml") == "junit"
    for name in (".json", "audit", "audit.txt"):
        with pytest.raises(UsageError, match="path must end in one of"):
            reports.format_of(name)
