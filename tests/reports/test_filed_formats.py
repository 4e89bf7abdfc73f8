"""Formats that are filed elsewhere: registry record, label, OSCAL and signed statement, against their schemas."""

import base64
import dataclasses
import hashlib
import json
import re
import xml.etree.ElementTree as ElementTree
from importlib import resources

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

import dpaudit
from dpaudit import reports
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports import deployment, envelope, intoto, label, registry
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.redaction import redacted

HEX = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


# --- Registry


def record_schema():
    text = (resources.files("dpaudit") / "schemas" / "registry-record.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(
        json.loads(text), format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )


def test_every_record_follows_the_schema_of_the_registry(any_dossier):
    record = yaml.safe_load(reports.render(any_dossier, "registry"))
    assert record == registry.record_of(any_dossier)[0]  # it is read back as it was meant
    schema = record_schema()
    schema.validate(record)
    assert record["status"] == "Draft" and not schema.is_valid({**record, "tier": 4})


@pytest.mark.parametrize(
    ("claim", "variant", "parameters"),
    [
        ("eps=1,delta=1e-06", "Approximate DP", {"epsilon": 1.0, "delta": 1e-6}),
        ("rho=0.5", "Zero-concentrated DP", {"rho": 0.5}),
        ("order=2,rdp=0.3", "Renyi DP", None),
        ("mu=1", "Custom", None),
        ("metric=/etc/passwd", "Custom", None),
        ("eps=inf", "Pure DP", None),
        ("<script>", "Custom", None),
    ],
)
def test_the_variant_and_its_parameters_are_read_from_the_claim(synthetic, claim, variant, parameters):
    dossier = Dossier.of(dataclasses.replace(synthetic.make("single"), claim=claim))
    body = yaml.safe_load(reports.render(dossier, "registry"))["deployment"]
    assert body["dp_variant"]["variant_name"] == variant
    assert body["privacy_loss"].get("privacy_parameters") == parameters


def test_what_is_declared_fills_a_record(synthetic, tmp_path):
    (tmp_path / "d.toml").write_text(
        'name = "Ours"\npurpose = "P"\nregion = "R"\ndescription = "D"\npublished = 2026-01-31\n[registry]\n'
        + "\n".join(f'{key} = "{known[0] if known else key}"' for key, known in deployment.REGISTRY.items())
        + '\n[declared]\nunit = "U"\ntrust = "T"\n[budget]\nlimit = 1\nreleases = []\n'
    )
    dossier = dataclasses.replace(synthetic.dossier(), deployment=deployment.read_deployment(tmp_path / "d.toml"))
    record, missing = registry.record_of(dossier)
    record_schema().validate(record)
    assert missing == ("dp_variant.data_domain",) and record["url_slug"] == "ours"
    assert record["deployment"]["basic"]["publication_date"] == "2026-01-31"


# --- Label


def test_the_label_is_one_page_and_one_drawing_that_nothing_can_break_out_of(any_dossier):
    page = reports.render(any_dossier, "label")
    assert page.count("<section>") == 9 and "<script" not in page and "http" not in page.replace("http-equiv", "")
    root = ElementTree.fromstring(reports.render(any_dossier, "label-svg"))
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert {one.tag.split("}")[1] for one in root.iter()} == {"svg", "style", "rect", "line", "text"}
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert all(float(one.attrib["y"]) < height for one in root.iter() if "y" in one.attrib) and width == label.WIDTH


# --- OSCAL


def references(value):
    """Every identifier that a document gives, and every one that it refers to."""
    given, meant = set(), set()
    if isinstance(value, dict):
        for key, entry in value.items():
            if key == "uuid":
                given.add(entry)
            elif key.endswith("-uuid"):
                meant.add(entry)
            elif key == "href" and entry.startswith("#"):
                meant.add(entry[1:])
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        more_given, more_meant = references(entry)
        given |= more_given
        meant |= more_meant
    return given, meant


def test_an_assessment_refers_to_what_it_holds_and_is_the_same_for_the_same_results(synthetic):
    whole = synthetic.dossier("violated")
    for dossier in (whole, synthetic.attacked(), redacted(whole, bytes(32))):
        text = reports.render(dossier, "oscal")
        given, meant = references(json.loads(text))
        assert meant <= given and all(HEX.fullmatch(one) for one in given)
        assert reports.render(dossier, "oscal") == text


def test_an_assessment_is_read_by_compliance_trestle(any_dossier):
    model = pytest.importorskip("trestle.oscal.assessment_results", reason="needs compliance-trestle (dev)")
    document = json.loads(reports.render(any_dossier, "oscal"))
    model.Model.model_validate_json(json.dumps(document))
    del document["assessment-results"]["results"][0]["observations"][0]["methods"]
    with pytest.raises(ValueError, match="methods"):
        model.Model.model_validate_json(json.dumps(document))


# --- The signed statement


@pytest.mark.parametrize("kind", ["ed25519", "p256"])
def test_what_was_signed_is_verified_and_what_was_changed_is_not(synthetic, tmp_path, keys_in, kind):
    key, public = keys_in(tmp_path, kind)
    statement = reports.render(synthetic.dossier(), "in-toto")
    file = tmp_path / "s.dsse.json"
    file.write_text(envelope.signed(statement, key))
    found = envelope.verified(file, public)
    assert found.statement == json.loads(statement) and found.result == "FAILED" and len(found.digests) == 3
    content = json.loads(file.read_text())
    changed = base64.b64decode(content["payload"]).replace(b"FAILED", b"PASSED")
    for other in (
        {**content, "payload": base64.b64encode(changed).decode()},
        {**content, "payloadType": "application/json"},
        {**content, "signatures": []},
    ):
        file.write_text(json.dumps(other))
        with pytest.raises(UsageError, match="verify must be a file with a good signature under this key"):
            envelope.verified(file, public)
    for other in ({}, [], {**content, "payload": "?"}):
        file.write_text(json.dumps(other))
        with pytest.raises(UsageError, match="verify must be a DSSE envelope"):
            envelope.verified(file, public)


def test_another_key_does_not_verify_and_no_key_is_refused(synthetic, tmp_path, keys_in):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    key, _ = keys_in(tmp_path / "a")
    _, other = keys_in(tmp_path / "b")
    file = tmp_path / "s.dsse.json"
    file.write_text(envelope.signed(reports.render(synthetic.dossier(), "in-toto"), key))
    with pytest.raises(UsageError, match="changed, or signed with another key"):
        envelope.verified(file, other)
    with pytest.raises(UsageError, match="key must be a public key in PEM"):
        envelope.verified(file, key)
    with pytest.raises(UsageError, match="sign must be an unencrypted private key in PEM"):
        envelope.signed("{}", other)
    with pytest.raises(UsageError, match="sign must be a readable file"):
        envelope.signed("{}", tmp_path / "none.pem")


def test_a_good_signature_on_something_else_is_refused(tmp_path, keys_in):
    key, public = keys_in(tmp_path)
    for content in ("[]", "{}", '{"_type": "x", "predicateType": "y", "predicate": {}}', "no json"):
        (tmp_path / "s").write_text(envelope.signed(content, key))
        with pytest.raises(UsageError, match="verify must hold a test result of in-toto"):
            envelope.verified(tmp_path / "s", public)


def test_the_command_signs_and_verifies(synthetic, project, keys_in):
    keys_in(project)
    synthetic.make("single").save("audit.json")
    synthetic.make("doubles").save("other.json")

    def run(*arguments):
        return CliRunner().invoke(main, ["report", *arguments])

    shown = run("audit.json", "--profile", "compliance", "--report", "in-toto", "--out", "o", "--sign", "key.pem")
    assert shown.stdout.split() == ["o/compliance.intoto.json", "o/compliance.intoto.dsse.json"]
    verify = ["--verify", "o/compliance.intoto.dsse.json", "--key", "public.pem"]
    shown = run(*verify, "audit.json")
    assert shown.exit_code == 1 and "All 1 of these results" in shown.output
    assert shown.output.startswith("FAILED: a promise is broken, ") and "Good" not in shown.output
    saved = dpaudit.load("audit.json")
    lines = shown.output.splitlines()
    assert lines[1].startswith("So says a statement that is signed with the key ")
    assert f"Claim {saved.claim}." in lines and any(line.startswith("Signed on 20") for line in lines)
    assert any(line.startswith("Mechanism ") and saved.subject["fingerprint"] in line for line in lines)
    assert any(line.startswith(("1 pair: ", "1 pairs: ")) and saved.findings[0].id in line for line in lines)
    assert all(line.count(". ") == 0 for line in lines)  # one sentence a line
    shown = run(*verify, "audit.json", "other.json")
    assert shown.exit_code == 2 and "results must be those that the statement names, got 'other.json'" in shown.output
    assert "key must be given with --verify" in run(*verify[:2]).output
    assert "key must be given with --verify, got 'public.pem'" in run("audit.json", *verify[2:]).output
    assert "sign must be given with --profile compliance" in run("audit.json", "--sign", "key.pem").output
    assert run().exit_code == 2


@pytest.mark.parametrize(("result", "status"), [("PASSED", 0), ("WARNED", 5), ("FAILED", 1)])
def test_a_verified_statement_says_its_result_first_and_ends_with_its_status(project, keys_in, result, status):
    key, public = keys_in(project)
    predicate = {"result": result, "configuration": []}
    statement = {"_type": intoto.STATEMENT, "predicateType": intoto.PREDICATE, "predicate": predicate}
    (project / "s").write_text(envelope.signed(json.dumps(statement), key))
    shown = CliRunner().invoke(main, ["report", "--verify", "s", "--key", str(public)])
    assert shown.exit_code == status and shown.output.startswith(f"{result}: ")
    assert ("no broken promise" in shown.output) == (result != "FAILED")


@pytest.mark.parametrize("settings", ["null", "[]", '{"subjects": [1]}', '{"pairs": 1}', '{"pairs": {"count": 1}}'])
def test_settings_of_other_types_in_a_good_signature_are_refused(project, keys_in, settings):
    key, public = keys_in(project)
    content, digest = base64.b64encode(settings.encode()).decode(), hashlib.sha256(settings.encode()).hexdigest()
    entry = {"name": "a", "content": content, "digest": {"sha256": digest}}
    predicate = {"result": "PASSED", "configuration": [entry]}
    statement = {"_type": intoto.STATEMENT, "predicateType": intoto.PREDICATE, "predicate": predicate}
    (project / "s").write_text(envelope.signed(json.dumps(statement), key))
    with pytest.raises(UsageError, match="verify must hold a test result of in-toto"):
        envelope.verified(project / "s", public)


def test_without_cryptography_the_message_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(
        UsageError, match=r"must have cryptography installed, got none. Use pip install 'dpaudit\[sign\]'"
    ):
        envelope.signed("{}", tmp_path / "key.pem")
