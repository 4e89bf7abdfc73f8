"""The date of a report: in every format that people read, in UTC, and nowhere in what programs read."""

import datetime
import re

import pytest
from click.testing import CliRunner

from dpaudit import UsageError, reports
from dpaudit.cli import main
from dpaudit.reports.wording import date_text

DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d UTC"


def test_a_date_is_that_of_the_variable_in_utc(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    for seconds, text in (("0", "1970-01-01 00:00 UTC"), ("1795551359", "2026-11-24 20:15 UTC")):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
        assert date_text() == text


@pytest.mark.parametrize("stated", [None, ""])
def test_a_date_is_now_where_the_variable_says_nothing(monkeypatch, stated):
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    if stated is not None:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", stated)
    before = datetime.datetime.now(datetime.UTC).replace(second=0, microsecond=0)
    shown = datetime.datetime.strptime(date_text(), "%Y-%m-%d %H:%M UTC").replace(tzinfo=datetime.UTC)
    assert before <= shown <= datetime.datetime.now(datetime.UTC)


@pytest.mark.parametrize("stated", ["yesterday", "1.5", "1" * 30, "-1e3"])
def test_a_date_that_cannot_be_read_is_refused_before_an_audit_runs(monkeypatch, tmp_path, stated):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", stated)
    with pytest.raises(UsageError, match=f"SOURCE_DATE_EPOCH must be a whole number .*got '{re.escape(stated)}'"):
        date_text()
    (tmp_path / "dates_m.py").write_text("def release(data, rng): open('ran', 'w').close()\n")
    audit = ["audit", "dates_m.py:release", "--claim", "eps=1", "--pairs", "0,1", "--samples", "100"]
    refused = CliRunner().invoke(main, [*audit, "--out", "o"])
    assert refused.exit_code == 2 and "SOURCE_DATE_EPOCH" in refused.stderr and not (tmp_path / "ran").exists()
    CliRunner().invoke(main, [*audit, "--out", "o", "--report", "json"])
    assert (tmp_path / "ran").exists()  # what has no date is written all the same


@pytest.mark.parametrize("format", ["html", "md", "pdf"])
def test_the_same_date_gives_the_same_bytes_and_another_one_others(synthetic, monkeypatch, format):
    result = synthetic.make("fixed")
    first = reports.render(result, format)
    assert reports.render(result, format) == first
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert reports.render(result, format) != first


def test_what_programs_read_has_no_date(synthetic, monkeypatch):
    dossier = synthetic.dossier("violated")
    before = {name: reports.render(dossier, name) for name in ("json", "junit", "sarif", "in-toto")}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert before == {name: reports.render(dossier, name) for name in before}
