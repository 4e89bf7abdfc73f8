"""The compliance report: every item with its status, what was declared, redaction, differences, and the command."""

import dataclasses
import json
import math
import re
from importlib import resources

import jsonschema
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit import reports
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Budget
from dpaudit.reports import compliance, first_page, html, markdown
from dpaudit.reports.deployment import read_deployment
from dpaudit.reports.difference import difference
from dpaudit.reports.document import Document, Paragraph, Section, Table
from dpaudit.reports.dossier import Dossier, Source
from dpaudit.reports.drawing import Figure
from dpaudit.reports.items import bins, items, side_channels
from dpaudit.reports.reading import read_dossier
from dpaudit.reports.redaction import redacted
from dpaudit.reports.words import words
from dpaudit.results.model import Keys, SideFinding

DECLARED = """
name = "A deployment"
[declared]
unit = "One person."
trust = "A curator <script>."
[not_applicable]
learning = "No model."
epsilon = "Beside the point."
"""


def full(synthetic, **changes):
    dossier = Dossier.of(synthetic.cities(8), synthetic.check(), synthetic.utility())
    return dataclasses.replace(dossier, **changes)


@pytest.fixture
def saved(synthetic, project):
    """The three files of a dossier in the current folder."""
    synthetic.cities(8).save("audit.json")
    synthetic.check().save("check.json")
    synthetic.utility().save("utility.json")
    return ["audit.json", "check.json", "utility.json"]


def test_a_status_is_reached_by_results_alone(synthetic):
    def statuses(*results):
        return {item.key: item.status for item in items(Dossier.of(*results))}

    alone = statuses(synthetic.make("not_refuted"))
    assert alone["epsilon"] == "tested" and alone["unit"] == alone["correctness"] == "tested in part"
    assert {alone[key] for key in ("utility", "queries", "contribution", "security")} == {"not assessed"}
    both = statuses(synthetic.make("doubles"), synthetic.check(), synthetic.utility())
    assert both["correctness"] == both["utility"] == "tested in part"  # one check and one bound gave no answer
    check, utility = synthetic.check(), synthetic.utility()
    records = tuple(record for record in check.records if record.status in ("not_refuted", "violated", "skipped"))
    check = dataclasses.replace(check, records=records)
    utility = dataclasses.replace(utility, findings=utility.findings[:2])
    whole = statuses(synthetic.make("doubles"), check, utility)
    assert whole["epsilon"] == whole["correctness"] == whole["utility"] == "tested"
    other = dataclasses.replace(synthetic.make("not_refuted"), subject={"name": "other", "fingerprint": "f0"})
    found = {item.key: item for item in items(Dossier.of(synthetic.make("doubles"), other, check, utility))}
    assert found["epsilon"].status == "tested"
    assert found["correctness"].status == found["utility"].status == "tested in part"
    assert "Not checked by the conformance suite: other." in found["correctness"].evidence
    assert "Not measured: other." in found["utility"].evidence
    alien = dataclasses.replace(check, mechanisms=({**check.mechanisms[0], "name": "alien", "fingerprint": "f1"},))
    found = {item.key: item for item in items(Dossier.of(synthetic.make("not_refuted"), alien))}
    assert found["epsilon"].status == "tested in part" and "Not audited: alien." in found["epsilon"].evidence
    hidden = dataclasses.replace(check, records=(*records, dataclasses.replace(records[0], status="inconclusive")))
    assert statuses(synthetic.make("doubles"), hidden)["correctness"] == "tested in part"
    assert statuses(synthetic.make("inconclusive"))["epsilon"] == "tested in part"
    assert both["floating_point"] == both["queries"] == "tested in part"
    assert statuses(synthetic.make("error"))["epsilon"] == "tested in part"
    assert statuses(synthetic.make("empty"))["epsilon"] == "not assessed"
    sides = statuses(synthetic.make("sides"))
    assert sides["side_channels"] == sides["contribution"] == "tested in part"
    assert set(statuses(synthetic.utility()).values()) == {"tested in part", "not assessed"}


CHECKED = [
    ("floating_point", "floating_point"), ("claim_audit", "epsilon"), ("claim_exact", "epsilon"),
    ("utility_bounds", "utility"), ("more_budget_less_error", "utility"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "key"), CHECKED, ids=[name for name, _ in CHECKED])
@pytest.mark.parametrize("status", ["violated", "not_refuted", "inconclusive", "xfail", "error", "skipped"])
def test_a_check_that_looked_at_an_item_is_evidence_for_it(synthetic, name, key, status):
    check = synthetic.check()
    record = dataclasses.replace(check.records[0], name=name, status=status, message="seen here")
    check = dataclasses.replace(check, records=(record,))
    for results in ((check,), (synthetic.make("not_refuted"), check)):
        before = {item.key: item for item in items(Dossier.of(*results[:-1]))} if results[:-1] else {}
        after = {item.key: item for item in items(Dossier.of(*results))}
        line = f"city release: the check {name}, that it keeps law_mixture: "
        if status in ("error", "skipped"):  # it gave no answer
            assert line not in after[key].evidence
            continue
        word = {"xfail": "violated (a known failure)"}.get(status, status.replace("_", " "))
        assert f"{line}{word} (seen here)." in after[key].evidence
        assert after[key].status == (before[key].status if key == "epsilon" and before else "tested in part")
        assert [item.key for item in after.values() if line in item.evidence] == [key]
        assert after[key].status != "not assessed"


def test_side_findings_are_evidence_where_they_belong(synthetic):
    kinds = ("timing", "containment", "independence", "claim_metadata", "pair_search", "same_randomness")
    kinds += ("recorded_noise",)
    sides = tuple(SideFinding(kind, "nothing_found", f"<{kind}>") for kind in kinds)
    result = dataclasses.replace(synthetic.make("single"), side_findings=sides)
    found = {item.key: item for item in items(Dossier.of(result))}
    holders = {kind: [key for key, item in found.items() if f"<{kind}>" in item.evidence] for kind in kinds}
    assert holders == {
        "timing": ["side_channels"], "containment": ["side_channels"], "independence": ["epsilon"],
        "claim_metadata": ["epsilon"], "pair_search": ["contribution"], "same_randomness": ["contribution"],
        "recorded_noise": ["contribution"],
    }  # fmt: skip


def test_bins_that_vanish_are_tested_where_outputs_have_keys(synthetic):
    def item(*findings, **changes):
        result = synthetic.result(findings, claim="eps=1", **changes)
        found = next(item for item in items(Dossier.of(result)) if item.key == "bins")
        assert found.status == bins(result)[0]
        return bins(result)

    bare, keyed = synthetic.finding("a", "b", 0.5), synthetic.finding("a", "c", 0.5, keys=Keys(2000, 12, 3))
    status, facts = item(keyed)
    assert status == "tested" and "of up to 12 keys of a pair" in facts and "up to 3 appeared in some" in facts
    assert "none was ever missing" in item(synthetic.finding(keys=Keys(2000, 12, 0)))[1]
    status, facts = item(keyed, bare)
    assert status == "tested in part" and "Of 1 other pair no keys are recorded." in facts
    weak = dataclasses.replace(keyed, verdict="inconclusive")
    assert item(weak)[0] == "tested in part"
    assert item(bare) == ("not assessed", words("items.bins.unseen"))
    assert item(dataclasses.replace(keyed, verdict="error"))[0] == "not assessed"
    other = synthetic.result([bare], subject={"name": "another"})
    found = next(item for item in items(Dossier.of(synthetic.result([keyed]), other)) if item.key == "bins")
    assert found.status == "tested in part" and "Not audited on outputs with keys: another." in found.evidence


def test_kinds_of_exceptions_are_compared_by_an_audit_of_calls_alone(synthetic):
    batches = synthetic.make("single")

    def item(interface, result=batches):
        result = dataclasses.replace(result, subject={**result.subject, "interface": interface})
        found = next(item for item in items(Dossier.of(result)) if item.key == "side_channels")
        assert found.status == side_channels(result)[0]
        return side_channels(result)

    for interface in ("f(data, rng)", "sample(data, size, rng), one call a draw", "isolated, f(data)"):
        status, facts = item(interface)
        assert (
            status == "tested in part"
            and "which kinds were raised, with which texts, and how often, was compared" in facts
        )
        assert "Running times were not compared" in facts and "backend was not looked at" in facts
    status, facts = item("f(data, size, rng)")
    assert status == "not assessed" and "errors were not compared" in facts
    sides = item("f(data, rng)", synthetic.make("sides"))[1]
    assert "Inputs of a take longer" in sides and "which kinds were raised" in sides


def test_ids_are_unique_tables_have_their_columns_and_every_result_is_written(any_result):
    document = compliance.build(Dossier.of(any_result, any_result))
    ids = [section.id for section in document.sections]
    drawn = [block.id for section in document.sections for block in section.blocks if isinstance(block, Figure)]
    assert len(ids) == len(set(ids)) and len(drawn) == len(set(drawn))
    for section in document.sections:
        for block in section.blocks:
            if isinstance(block, Table):
                assert {len(row) for row in block.rows} <= {len(block.columns)}
                assert not block.marks or len(block.marks) == len(block.rows)
    page = html.render(document)
    assert all(page.count(f'id="{section.id}"') == 1 for section in document.sections)
    assert markdown.render(document).startswith("# ")


def test_the_record_follows_its_schema(synthetic, tmp_path):
    (tmp_path / "d.toml").write_text(DECLARED)
    schema = json.loads((resources.files("dpaudit") / "schemas" / "compliance-1.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    dossier = full(synthetic, deployment=read_deployment(tmp_path / "d.toml"))
    for one in (dossier, redacted(dossier), Dossier.of(synthetic.dependent()), full(synthetic)):
        record = json.loads(reports.render(one, "json", "compliance"))
        validator.validate(record)
        for entry in record["results"]:  # each follows its own schema too
            name = {"audit": "audit-1", "check": "check-1", "utility": "utility-1"}[entry["kind"]]
            own = json.loads((resources.files("dpaudit") / "schemas" / f"{name}.json").read_text(encoding="utf-8"))
            jsonschema.Draft202012Validator(own).validate(entry["result"])
    record["items"][0]["status"] = "passed"
    with pytest.raises(jsonschema.ValidationError):
        validator.validate(record)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "schema must be one of dpaudit.audit/1, dpaudit.check/1, dpaudit.utility/1, .*, got none: no result"),
        ('{"schema": ["x"]}', "schema must be one of"),
        ('{"schema": "dpaudit.check/1"}', "result must follow dpaudit.check/1"),
        ('{"schema": "dpaudit.utility/1", "findings": 1}', "result must follow dpaudit.utility/1"),
        ("[]", "result must be a JSON object"),
        ("[" * 100_000, "result must be JSON"),
    ],
)
def test_a_file_of_no_known_schema_is_refused(tmp_path, content, message):
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        read_dossier([tmp_path / "x.json"])


def test_a_stated_verdict_that_the_checks_do_not_have_is_refused(synthetic, tmp_path):
    for result in (synthetic.check(), synthetic.utility()):
        (tmp_path / "x.json").write_text(json.dumps({**result.to_dict(), "verdict": "not_refuted"}))
        with pytest.raises(UsageError, match="verdict must be that of the"):
            read_dossier([tmp_path / "x.json"])


def test_redaction_takes_every_text_of_a_pair_but_the_claims_own(synthetic):
    (doubles,) = synthetic.make("doubles").floating_point.pairs[:1]
    finding = synthetic.finding("Aachen", "Bremen", 0.5)
    finding = dataclasses.replace(finding, message="m", traceback="t", pool="Aachen|Bremen")
    result = synthetic.result([finding, dataclasses.replace(finding, id="Essen|Bremen", x_id="Essen")])
    checked = dataclasses.replace(synthetic.make("doubles").floating_point, pairs=(doubles,))
    hidden = redacted(Dossier.of(dataclasses.replace(result, floating_point=checked))).audits[0]
    for before, after in ((finding, hidden.findings[0]), (doubles, hidden.floating_point.pairs[0])):
        texts = {field.name for field in dataclasses.fields(before) if isinstance(getattr(before, field.name), str)}
        kept = {name for name in texts if getattr(before, name) == getattr(after, name)}
        assert kept <= {"parameter", "verdict"}
    assert [one.pool for one in hidden.findings] == [hidden.findings[0].id] * 2  # as its first pair is called


def test_redacted_names_are_the_same_within_a_report_and_others_in_the_next(synthetic):
    dossier = full(synthetic)
    first, again = (redacted(dossier, bytes(32)).audits[0] for _ in range(2))
    other = redacted(dossier).audits[0]
    assert first == again and first.findings[0].x_id != other.findings[0].x_id
    names = {finding.x_id for finding in dossier.audits[0].findings}
    assert len({finding.x_id for finding in first.findings}) == len(names)
    assert first.verdict == dossier.audits[0].verdict
    digest = redacted(dossier).sources[0].digest
    assert digest != dossier.sources[0].digest and re.fullmatch("[0-9a-f]{64}", digest)


def test_a_redacted_result_does_not_tell_which_of_the_candidates_was_audited():
    # Before, seed, samples, looks, wealth and counts stayed, and an audit is deterministic: only the true one of ten
    # candidates gave the same wealth.
    def release(data, size, rng):
        return data["salary"] / 1e3 + rng.laplace(size=size)

    def audited(salary):
        pair = dpaudit.Pair({"salary": salary}, {"salary": salary + 1_000.0}, x_id="a", x_prime_id="b")
        return dpaudit.audit(release, "eps=1", [pair], samples=2_000, seed=20261125, floating_point=False)

    def told(result):
        """Say what is left that depends on the draws: digits of bounds, power and counts."""
        (finding,) = result.findings
        counts = finding.witness and tuple(getattr(finding.witness, one) for one in ("correct", "wrong", "abstained"))
        return (finding.parameter_lower, finding.power, counts)

    results = [audited(30_000.0 + 137.0 * k) for k in range(10)]
    assert len({result.findings[0].log_wealth for result in results}) == 10
    hidden = [redacted(Dossier.of(result), bytes(32)).audits[0] for result in results]
    for result in hidden:
        text = json.dumps(result.to_dict())
        assert result.seed == "(redacted)" and result.findings[0].looks == () and result.findings[0].log_wealth is None
        assert "20261125" not in text
    plain = {json.dumps(dataclasses.replace(one, seconds=0.0).to_dict(), sort_keys=True) for one in hidden}
    assert len(plain) <= len(set(map(told, hidden))) < 10


@pytest.mark.parametrize("name", ["violated", "cities", "doubles", "sides"])
def test_redacted_bounds_say_less_and_keep_the_verdict(synthetic, name):
    result = synthetic.cities(8) if name == "cities" else synthetic.make(name)
    hidden = redacted(Dossier.of(result)).audits[0]
    assert hidden.verdict == result.verdict
    for before, after in zip(result.findings, hidden.findings, strict=True):
        assert after.parameter_lower <= before.parameter_lower and after.epsilon_lower <= before.epsilon_lower
        assert (after.parameter_lower > after.parameter_budget) == (before.parameter_lower > before.parameter_budget)
        assert after.verdict == before.verdict and (before.p_value is None or after.p_value >= before.p_value)
    if result.floating_point is not None:
        for before, after in zip(result.floating_point.pairs, hidden.floating_point.pairs, strict=True):
            assert (after.epsilon_lower > after.budget.epsilon) == (before.epsilon_lower > before.budget.epsilon)


def test_a_redacted_matrix_still_tells_what_was_not_asked(synthetic):
    result = redacted(Dossier.of(synthetic.make("violated")), bytes(32)).audits[0]
    known = {name for finding in result.findings for name in (finding.x_id, finding.x_prime_id)}
    assert result.not_asked and all(known.issuperset(name.split("|")) for name in result.not_asked)


def run(*arguments):
    return CliRunner().invoke(main, ["report", *arguments], catch_exceptions=False)


def test_the_command_writes_one_report_of_all_files(saved, project):
    declared = '[tool.dpaudit.deployment]\nname = "Ours"\n[tool.dpaudit.deployment.declared]\nunit = "P"\n'
    (project / "pyproject.toml").write_text(declared)
    shown = run(*saved, "--profile", "compliance", "--report", "html,md,json,junit,sarif,in-toto", "--out", "o")
    assert shown.exit_code == 0, shown.output
    names = ["html", "md", "json", "junit.xml", "sarif", "intoto.json"]
    assert shown.stdout.split() == [f"o/compliance.{name}" for name in names]
    assert "Compliance report: Ours" in (project / "o" / "compliance.html").read_text()


def test_the_command_writes_each_file_for_itself_in_the_plain_profile(saved):
    shown = run(*saved, "--report", "md,sarif", "--out", "o")
    places = [line.rpartition("/")[2] for line in shown.stdout.split()]
    assert places == ["audit.md", "audit.sarif", "check.md", "check.sarif", "utility.md", "utility.sarif"]


def test_the_command_says_what_changed(saved):
    shown = run("--diff", "audit.json", "audit.json")
    assert shown.exit_code == 0 and shown.output.startswith("Still violated.\nDifference: ")
    assert run("--diff", "audit.json", "audit.json", "--redact").output.startswith("Still violated.\nDifference: ")
    assert "diff must have two results, got 1" in run("--diff", "audit.json").output
    assert "for a diff, got 'json'" in run("--diff", "audit.json", "audit.json", "--report", "json").output


def test_the_command_refuses_what_makes_no_sense(saved, project):
    (project / "pyproject.toml").write_text("[tool.dpaudit.deployment]\nnam = 1\n")
    assert "got 'nam' at [tool.dpaudit.deployment] of" in run(*saved, "--profile", "compliance").output
    (project / "pyproject.toml").write_text("")
    assert "deployment must be given with --profile compliance" in run(*saved, "--deployment", "x.toml").output
    assert "deployment must be a readable file" in run(*saved, "--profile", "compliance", "--deployment", "x").output


def test_markdown_that_would_be_too_long_says_how_much_is_missing():
    text = "<" * 4000  # eight thousand characters, once it is escaped
    sections = tuple(Section(f"s{k}", "title", (Paragraph(text),)) for k in range(200))
    written = markdown.render(Document("k", "h", "not_refuted", sections, "footer"))
    assert 850_000 < len(written.encode()) < 900_000
    shown = written.count("## title")
    assert f"{200 - shown:,} more sections are in the other formats" in written


def test_a_difference_names_what_the_names_hide(synthetic):
    """Other inputs under the same name, a changed delta, and settings that differ where a text is cut."""
    first = synthetic.result([synthetic.finding("a", "b", 0.5), synthetic.finding("a", "c", 2.0, ratio_lower=math.inf)])
    moved = dataclasses.replace(first.findings[0], x=3.0, budget=Budget(1.0, 1e-5))
    long = {"inputs": "x" * 300}
    second = dataclasses.replace(first, findings=(moved, first.findings[1]), options={"inputs": "x" * 299 + "y"})
    sides = [Source("o", "", dataclasses.replace(first, options=long)), Source("n", "", second)]
    found = {section.id: section.blocks[-1] for section in difference(*sides).sections}
    assert [row[0] for row in found["inputs"].rows] == ["a|b"] and [row[0] for row in found["bounds"].rows] == ["a|b"]
    assert found["bounds"].rows[0][1:] == ("0.5 of 1, ratio 0.5", "0.5 of 1 (δ = 1e-5), ratio 0.5")
    assert found["settings"].rows[0][0] == "inputs" and "differs further on" in found["settings"].rows[0][2]


def test_a_name_makes_no_link_in_sarif(synthetic):
    result = synthetic.result([synthetic.finding("[a](https://example.org)", "b", 1.5)])
    text = json.loads(reports.render(result, "sarif"))["runs"][0]["results"][0]["message"]["text"]
    assert "[a]" in text and "](" not in text


def check_of(synthetic, **statuses):
    """A run of the conformance suite with these checks alone."""
    check = synthetic.check()
    records = tuple(
        dataclasses.replace(check.records[0], name=name, status=status) for name, status in statuses.items()
    )
    return dataclasses.replace(check, records=records)


@pytest.mark.parametrize(
    ("statuses", "headline"),
    [
        (
            {"refuses_nan": "violated", "floating_point": "violated", "claim_audit": "not_refuted"},
            "Checks failed: 2 of 3 checks (refuses_nan, floating_point); the privacy claim itself was not refuted; as "
            "doubles, low bits of “city release” break the promise",
        ),
        (
            {"refuses_nan": "violated"},
            "Checks failed: 1 of 1 check (refuses_nan); the privacy claim itself was not audited",
        ),
        (
            {"pickling": "violated", "claim_audit": "inconclusive"},
            "Checks failed: 1 of 2 checks (pickling); the privacy claim itself could not be fully judged",
        ),
        (
            {"pickling": "violated", "claim_audit": "xfail"},
            "Checks failed: 1 of 2 checks (pickling); the privacy claim is a known failure",
        ),
        (
            {"pickling": "violated", "claim_audit": "violated"},
            "Violated: a promise is broken in 1 of 1 result; 2 of 2 checks failed",
        ),
        ({"law_mixture": "violated"}, "Violated: a promise is broken in 1 of 1 result; 1 of 1 check failed"),
    ],
)
def test_the_headline_tells_failed_checks_from_a_broken_claim(synthetic, statuses, headline):
    assert first_page.headline(Dossier.of(check_of(synthetic, **statuses))) == headline


def test_a_claim_on_which_nothing_gave_an_answer_is_named_beside_one_that_was_tested(synthetic):
    (broken,) = [one for one in synthetic.make("error").findings if one.verdict == "error"]
    silent = dataclasses.replace(
        synthetic.result([broken], claim="eps=2"), subject={"name": "silent", "fingerprint": "s"}
    )
    found = {item.key: item for item in items(Dossier.of(synthetic.make("single"), silent))}["epsilon"]
    assert found.status == "tested in part" and "Not audited" not in found.evidence
    assert "silent: Nothing that was run on the claim eps=2 gave an answer." in found.evidence
