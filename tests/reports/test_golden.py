"""Whole reports as people and programs read them, kept in `golden/`: whatever changes in one shows as a difference.

    DPAUDIT_RENEW=1 python -m pytest -q tests/reports/test_golden.py

writes them anew, to be read before they are committed. Digests, identifiers and versions stand there by their names.
"""

import base64
import dataclasses
import os
import re
from pathlib import Path

import pytest

from dpaudit import reports
from dpaudit.environment import __version__
from dpaudit.reports import brief, compliance, html, markdown, scores
from dpaudit.reports.check import check_blocks
from dpaudit.reports.deployment import read_deployment
from dpaudit.reports.difference import difference
from dpaudit.reports.dossier import Dossier, Source
from dpaudit.reports.history import document, read_history
from dpaudit.reports.plan import plan_blocks
from dpaudit.reports.redaction import redacted
from dpaudit.reports.sign_off import read_sign_off
from dpaudit.results.model import Power

GOLDEN = Path(__file__).parent / "golden"
AUDITS = ("broken", "learned", "planted", "few cities", "inconclusive", "same input", "dependent", "error", "infinite",
          "empty", "renyi", "doubles nothing", "sides", "all pairs")  # fmt: skip
LOUD = ("infinite", "renyi", "few cities", "dependent", "error", "inconclusive", "same input", "empty")
QUIET = ("planted", "sides", "doubles nothing")
PROGRAMS = ("junit", "sarif", "in-toto", "registry", "label", "label-svg", "oscal")
DECLARED = """
name = "A deployment"
purpose = "Counts of a city."
published = 2026-01-31
[declared]
unit = "One person."
trust = "A curator <script>."
[not_applicable]
learning = "No model."
epsilon = "Beside the point."
[budget]
limit = 2.0
releases = [{name = "2025", date = 2025-01-31, spent = 1.5}, {name = "2026", date = 2026-01-31, spent = 0.6}]
[registry]
model = "Central"
"""
SIGNED = 'name = "A. Person"\nrole = "Officer"\ndate = 2026-11-25\ndecision = "accept"\n'


def laid_out(source):
    """A page without its styles and script, an element on each line."""
    bare = re.sub(r"(?s)<(style|script)>.*?</\1>|sha256-[\w+/=]+", "", source)
    return re.sub(r">\s*<", ">\n<", bare)


def settled(content):
    """The text without what differs from release to release, and with what is embedded in it decoded."""
    text = content if isinstance(content, str) else content.decode("utf-8")
    text = re.sub(r'(?<="content": ")[\w+/=]+', lambda found: base64.b64decode(found[0]).decode(), text)
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "(identifier)", text)
    return re.sub(r"[0-9a-f]{64}", "(digest)", text).replace(__version__, "(version)")


def declared(synthetic, folder):
    """A report on three results, with what is declared and decided."""
    (folder / "d.toml").write_text(DECLARED)
    (folder / "s.toml").write_text(SIGNED)
    dossier = Dossier.of(synthetic.make("broken"), synthetic.check(), synthetic.utility())
    dossier = dataclasses.replace(
        dossier, deployment=dataclasses.replace(read_deployment(folder / "d.toml"), source="d")
    )
    return dataclasses.replace(dossier, sign_off=read_sign_off(folder / "s.toml", dossier))


def releases(synthetic, folder):
    for name, ratio, found in (("1.8", 0.5, 1.25), ("1.9", 1.4, 1.25), ("1.10", 0.7, 2.5), ("2.0", 0.3, 3.0)):
        finding = synthetic.finding("Aachen", "Bremen", ratio, power=Power(0.1, 0.9, found, 1.0))
        result = synthetic.result([finding], claim="eps=1", subject={"name": "city release", "fingerprint": name})
        result.save(folder / "all" / name / "audit.json")
    return document(read_history(folder / "all"), "all")


def written(synthetic, folder):
    """The files by their names."""
    page = synthetic.page
    for name in AUDITS:
        result = synthetic.make(name)
        yield f"{name}.txt", page(brief.page(result, Path("o/audit.json")))
        yield f"{name}.md", reports.render(result, "md", saved="o/audit.json")
    for name in ("broken", "planted", "few cities"):
        yield f"{name}.html", laid_out(reports.render(synthetic.make(name), "html"))
    dossier = declared(synthetic, folder)
    yield "compliance.md", reports.render(dossier, "md", "compliance")
    yield "compliance.html", laid_out(reports.render(dossier, "html", "compliance"))
    yield "quiet.md", reports.render(synthetic.make("learned"), "md", "compliance")
    told, quiet = [synthetic.utility(), synthetic.unclear()], [*map(synthetic.make, QUIET)]
    for number, results in enumerate(([*map(synthetic.make, LOUD), *told], quiet), 1):
        rows = compliance.build(Dossier.of(*results))
        yield f"page one {number}.md", markdown.render(dataclasses.replace(rows, sections=()))
    yield "errors.md", reports.render(synthetic.unclear(), "md")
    yield "redacted.md", reports.render(redacted(dossier, bytes(32)), "md", "compliance")
    yield "judged.md", reports.render(synthetic.judged(folder), "md", "compliance")
    for name in PROGRAMS:
        yield reports.file_name("compliance", name), reports.render(dossier, name)
    yield "check.txt", page(check_blocks(synthetic.check()))
    yield "plan.txt", page(plan_blocks(synthetic.plan()))
    scored = synthetic.scores()
    yield "scores.txt", page(scores.brief(scored))
    yield "scores.md", reports.render(scored, "md")
    sides = (Source(name, "0" * 64, synthetic.make(name)) for name in ("few cities", "sides"))
    yield "difference.md", markdown.render(difference(*sides))
    told = releases(synthetic, folder)
    yield "history.md", markdown.render(told)
    yield "history.html", laid_out(html.render(told))


def test_reports_are_those_that_were_read(synthetic, project):
    found = {name.replace(" ", "-"): settled(text) for name, text in written(synthetic, project)}
    if os.environ.get("DPAUDIT_RENEW"):
        GOLDEN.mkdir(exist_ok=True)
        for path in GOLDEN.iterdir():
            path.unlink()
        for name, text in found.items():
            (GOLDEN / name).write_text(text, encoding="utf-8")
    assert sorted(found) == sorted(path.name for path in GOLDEN.iterdir())
    for name, text in found.items():
        assert text.splitlines() == (GOLDEN / name).read_text(encoding="utf-8").splitlines(), name


@pytest.mark.parametrize("name", ["judged.md", "quiet.md", "broken.txt", "inconclusive.md"])
def test_no_report_says_private_safe_passed_or_compliant(name):
    text = (GOLDEN / name).read_text(encoding="utf-8")
    assert not re.search(r"\b(private|safe|safely|passed|pass|compliant)\b", text, flags=re.IGNORECASE)
