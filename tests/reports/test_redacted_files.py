"""Redaction, searched for: no original value in any file of any format, decoded, embedded or in metadata."""

import base64
import dataclasses
import io
import json
import re

import pytest
from click.testing import CliRunner

from dpaudit import reports
from dpaudit.cli import main
from dpaudit.reports.dossier import Dossier
from dpaudit.reports.redaction import redacted
from dpaudit.results.model import SideFinding, WitnessRecord

NAMES = ("Quillfeather", "Zabaglione", "Xanthippe")  # names of inputs
VALUES = ("918273.645", "naevus", "555-0199")  # what the inputs hold
TEXTS = ("threshold at 918273", "Quillfeather raised", "seen at 555-0199")  # rules, messages and summaries
SECRETS = (*NAMES, *VALUES, *TEXTS)
FORMATS = [name for name in reports.FORMATS if name != "pdf"]


def dossier(synthetic):
    """Results of every kind, in each place of which an original value can stand."""
    x, x_prime = {"income": 918273.645, "note": "naevus"}, ["555-0199", "Quillfeather"]
    witness = WitnessRecord("threshold at 918273", {"at": 918273.645}, 900, 100, 0, {"epsilon": 1.0})
    pool = f"{NAMES[0]}|{NAMES[1]}"
    found = synthetic.finding(NAMES[0], NAMES[1], 1.7, x=x, x_prime=x_prime, witness=witness, pool=pool,
                              notes=("seen at 555-0199",), traceback="Quillfeather raised")  # fmt: skip
    broken = synthetic.finding(NAMES[0], NAMES[2], 0.0, x=x, x_prime=x_prime, verdict="error", looks=(), witness=None,
                               message="Quillfeather raised", ratio_lower=None)  # fmt: skip
    low_bits = dataclasses.replace(
        synthetic.make("doubles").floating_point.pairs[0], id=pool, x_id=NAMES[0], x_prime_id=NAMES[1],
        description="threshold at 918273", rule={"at": "555-0199"},
    )  # fmt: skip
    doubles = dataclasses.replace(synthetic.make("doubles").floating_point, pairs=(low_bits,), message="naevus")
    side = SideFinding("timing", "found", "seen at 555-0199", 0.001, {"input": "Zabaglione"})
    audit = synthetic.result(
        [found, broken], claim="eps=1", floating_point=doubles, side_findings=(side,),
        not_asked=(f"{NAMES[1]}|{NAMES[2]}",), options={"pairs": "Quillfeather.json", "samples": 10},
    )  # fmt: skip
    check = synthetic.check(message="Quillfeather raised at 555-0199")
    utility = synthetic.utility(input_id=NAMES[0])
    utility = dataclasses.replace(utility, findings=tuple(dataclasses.replace(f, data=x) for f in utility.findings))
    return Dossier.of(audit, check, utility)


def decoded(content):
    """Everything that a file says: its text, and what is embedded in it in base64, as far as it is text."""
    text = content if isinstance(content, str) else content.decode("utf-8")
    inner = [base64.b64decode(found) for found in re.findall(r'"(?:content|payload)": "([A-Za-z0-9+/=]{16,})"', text)]
    return "\n".join([text, *(decoded(one) for one in inner)])


@pytest.mark.parametrize("format", FORMATS)
def test_no_original_value_is_in_a_redacted_file(synthetic, format):
    original = dossier(synthetic)
    for profile in reports.PROFILES:
        text = decoded(reports.render(redacted(original), format, profile))
        assert [secret for secret in SECRETS if secret in text] == []
    plain = decoded(reports.render(original, "json", "compliance"))
    assert [secret for secret in SECRETS if secret not in plain] == []  # the search can find


def test_no_original_value_is_in_a_redacted_pdf_or_its_metadata(synthetic):
    pypdf = pytest.importorskip("pypdf", reason="needs pypdf (dev)")
    pytest.importorskip("typst", reason="needs the extra pdf")

    def words(one):
        reader = pypdf.PdfReader(io.BytesIO(reports.render(one, "pdf", "compliance")))
        streams = [page.get_contents().get_data().decode("latin-1") for page in reader.pages]
        said = " ".join(page.extract_text() for page in reader.pages)
        return re.sub(
            r"\s+", "", said + " ".join(streams) + json.dumps({k: str(v) for k, v in reader.metadata.items()})
        )

    original = dossier(synthetic)
    hidden, shown = words(redacted(original)), words(original)
    assert [secret for secret in SECRETS if re.sub(r"\s", "", secret) in hidden] == []
    assert "Quillfeather" in shown and "918273.645" in shown  # the search can find


def test_no_original_value_is_in_what_the_command_writes(synthetic, project, keys_in):
    keys_in(project)
    for source in dossier(synthetic).sources:
        source.result.save(f"Quillfeather-{source.name}")
    (project / "d.toml").write_text('name = "A deployment"\ncoordinates = "c.json"\n')
    (project / "c.json").write_text(json.dumps({name: [1.5, 2.5] for name in NAMES}))
    files = [f"Quillfeather-{name}.json" for name in ("audit", "check", "utility")]
    chosen = ",".join(name for name in FORMATS)
    arguments = ["--profile", "compliance", "--redact", "--deployment", "d.toml", "--sign", "key.pem"]
    shown = CliRunner().invoke(main, ["report", *files, *arguments, "--report", chosen, "--out", "o"])
    assert shown.exit_code == 0, shown.output
    written = sorted((project / "o").iterdir())
    assert len(written) == len(FORMATS) + 1
    for path in written:
        assert [secret for secret in SECRETS if secret in decoded(path.read_bytes())] == [], path.name
        assert "Quillfeather" not in path.name


def test_numbers_that_depend_on_draws_keep_two_digits_in_every_part_of_a_result(synthetic, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scores = [one.result for one in redacted(synthetic.judged(tmp_path)).attachments if one.kind == "scores"]
    seconds = [one.independent for one in scores if one.independent is not None]
    assert seconds and all(one.p_value == 1.0 for one in seconds)  # a power of ten above 0.4
    exact = dataclasses.replace(synthetic.utility(), samples=123_456)
    assert redacted(Dossier.of(exact)).sources[0].result.samples == 120_000
