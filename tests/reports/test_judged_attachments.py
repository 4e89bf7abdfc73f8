"""Certificates and audits of scores in a report: rows on page one, the verdict over all results, and redaction."""

import json
from importlib import resources

import numpy as np
import pytest

import dpaudit
from dpaudit import reports
from dpaudit.errors import UsageError
from dpaudit.privacy.pairs import Pair
from dpaudit.reports import answers, rows
from dpaudit.reports.reading import read_dossier
from dpaudit.reports.redaction import redacted

NAMES = ("Quillfeather", "Zabaglione")
FORMATS = [name for name in reports.FORMATS if name != "pdf"]


def response(x, rng):
    """A loss of log 3, about 1.0986, by hand."""
    return x if rng.random() < 0.75 else 1 - x


def certify(path, mechanism, claim):
    dpaudit.certify(mechanism, claim, [Pair(0, 1, x_id=NAMES[0], x_prime_id=NAMES[1])]).save(path)


def audit_scores(path, shift, claim="eps=1,delta=1e-5", seed=5):
    rng = np.random.default_rng(seed)
    dpaudit.audit_scores(rng.normal(shift, 1.0, 400), rng.normal(0.0, 1.0, 400), claim, seed=1).save(path)


def test_a_broken_promise_of_a_certificate_is_not_hidden_by_quiet_audits(synthetic, project):
    synthetic.make("single").save("audit.json")
    quiet = read_dossier(["audit.json"])
    certify("kept.json", response, "eps=1.1")
    certify("broken.json", response, "eps=1")
    assert read_dossier(["audit.json", "kept.json"]).verdict == quiet.verdict
    both = read_dossier(["audit.json", "broken.json"])
    assert both.verdict == redacted(both).verdict == "violated"
    assert rows.ranked(both)[0].verdict == "violated"
    assert "failure" in reports.render(both, "junit").decode() and '"FAILED"' in reports.render(both, "in-toto")
    assert "broken.json" in reports.render(both, "in-toto")


@pytest.mark.parametrize(("shift", "verdict"), [(4.0, "violated"), (0.0, "not_refuted")])
def test_scores_have_a_row_with_the_bound_at_the_claims_delta_and_the_ceiling(project, shift, verdict):
    # A shift of 4 between 800 normal scores leaves a bound far above 1; without one a bound above 1 is an error of the
    # audit, of probability at most 0.05, and the seed is fixed.
    audit_scores("s.json", shift)
    dossier, saved = read_dossier(["s.json"]), dpaudit.load_scores("s.json")
    line = rows.ranked(dossier)[0]
    assert (dossier.verdict, line.kind) == (saved.verdict, "scores") == (verdict, "scores")
    assert "at δ = 1e-5" in line.measured and "could have shown" in line.measured
    assert line.low == saved.parameter_lower / saved.budget
    assert answers.together(dossier) == pytest.approx(1.0 - saved.confidence)
    heads = [reports.render(one, "md").partition("\n")[0] for one in (dossier, saved)]
    assert heads[0] == heads[1] and "confidence ε is at least" in heads[0]  # of a file as of the result


def test_every_format_takes_them_with_results_and_alone(synthetic, project):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((resources.files("dpaudit") / "schemas" / "compliance-1.json").read_text(encoding="utf-8"))
    synthetic.make("single").save("audit.json")
    certify("c.json", response, "eps=1")
    audit_scores("s.json", 4.0)
    for paths in (["audit.json", "c.json", "s.json"], ["c.json"], ["s.json"]):
        dossier = read_dossier(paths)
        for one in (dossier, redacted(dossier)):
            for format in FORMATS:
                assert reports.render(one, format, "compliance")
            jsonschema.validate(json.loads(reports.render(one, "json", "compliance")), schema)


def test_a_redacted_certificate_and_scores_quote_nothing(project):
    certify("Quillfeather.json", lambda x, rng: 918273 if x == 0 else 1, "eps=1")
    audit_scores("Zabaglione.json", 4.0)
    original = read_dossier(["Quillfeather.json", "Zabaglione.json"])
    hidden = redacted(original)
    exact = repr(original.attachments[1].result.parameter_lower)
    secrets = (*NAMES, "918273", exact)
    shown = reports.render(original, "json", "compliance").decode()
    assert [secret for secret in secrets if secret not in shown] == []  # the search can find
    for format in FORMATS:
        text = reports.render(hidden, format, "compliance")
        text = text if isinstance(text, str) else text.decode()
        assert [secret for secret in secrets if secret in text] == [], format
    assert [one.line.verdict for one in hidden.judged] == [one.line.verdict for one in original.judged]
    masked = hidden.attachments[1].result
    assert masked.parameter_lower <= original.attachments[1].result.parameter_lower
    assert masked.parameter_ceiling >= original.attachments[1].result.parameter_ceiling


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "kept"}, "verdict must be that of the pairs"),
        ({"pairs": []}, "pairs must be at least one"),
        ({"value_lower": 0.5}, "verdict must be that of the bounds"),
        ({"value_lower": None}, "value_lower must be a number"),
    ],
)
def test_a_certificate_that_contradicts_itself_is_refused(project, change, message):
    certify("c.json", response, "eps=1")
    record = json.loads((project / "c.json").read_text())
    if "value_lower" in change:
        record["pairs"][0] |= change
    else:
        record |= change
    (project / "c.json").write_text(json.dumps(record))
    with pytest.raises(UsageError, match=message):
        read_dossier(["c.json"])
