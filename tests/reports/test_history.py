"""A history of releases, and differences between mechanisms that are not one."""

import dataclasses
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports import html
from dpaudit.reports.difference import difference
from dpaudit.reports.dossier import Source
from dpaudit.reports.history import courses, document, read_history, standing

RATIOS = {
    "1.8": 0.5,
    "1.9": 0.6,
    "1.10": 1.4,
    "1.11": 1.5,
    "2.0": 0.7,
}  # the third breaks its promise, the last mends it


@pytest.fixture
def five(synthetic, tmp_path):
    """A folder of five releases of one mechanism, and of another that is never violated."""
    for place, (name, ratio) in enumerate(RATIOS.items()):
        subject = {"name": "city release", "target": "release.py:mechanism", "fingerprint": f"f{place}"}
        result = synthetic.result([synthetic.finding("Aachen", "Bremen", ratio)], claim="eps=1", subject=subject)
        result.save(tmp_path / "all" / name / "cities" / "audit.json")
        other = dataclasses.replace(result, findings=(synthetic.finding("a", "b", 0.4),), subject={"name": "other"})
        other.save(tmp_path / "all" / name / "other" / "audit.json")
    return tmp_path / "all"


def test_a_figure_has_the_last_releases_and_the_table_below_it_all(synthetic, tmp_path):
    for k in range(45):
        result = synthetic.result([synthetic.finding("a", "b", 1.4 if k < 3 else 0.5)], claim="eps=1")
        result.save(tmp_path / "all" / f"1.{k}" / "audit.json")
    figure, table = document(read_history(tmp_path / "all"), "all").sections[1].blocks[1:]
    assert [row[0] for row in figure.data.rows] == [f"1.{k}: not refuted" for k in range(5, 45)]
    assert [row[0] for row in table.rows] == [f"1.{k}" for k in range(45)]
    assert figure.note.endswith("5 releases not drawn: less grave, earlier, or without such a ratio.")


def test_releases_with_dates_are_in_the_order_of_these(five):
    for day, name in enumerate(reversed(RATIOS), 1):
        facts = f'version = "v{name}"\ncommit = "0123456789abcdef"\ndate = 2026-01-{day:02}\n'
        (five / name / "release.toml").write_text(facts)
    releases = read_history(five)
    assert [release.name for release in releases] == [f"v{name}" for name in reversed(RATIOS)]
    assert releases[0].label == "v2.0 (0123456789ab, 2026-01-01)"


def test_the_saved_history_of_five_releases_breaks_a_promise_and_mends_it():
    saved = Path(__file__).parents[2] / "reports" / "history"
    ((key, course),) = courses(read_history(saved / "releases")).items()
    assert key == ("release.py:count", "privacy")
    assert [point.line.verdict for point in course] == [
        "not_refuted", "not_refuted", "violated", "violated", "not_refuted",
    ]  # fmt: skip
    assert course[0].mark == course[4].mark != course[2].mark == course[3].mark
    page = (saved / "history.html").read_text(encoding="utf-8")
    assert standing(course) in page and all(f"{name}: violated</text>" in page for name in ("1.2", "1.3"))


def test_a_history_with_a_release_that_measured_nothing_is_drawn_without_it(synthetic, five):
    broken = dataclasses.replace(synthetic.make("error"), findings=synthetic.make("error").findings[1:2])
    broken = dataclasses.replace(broken, subject={"name": "city release", "target": "release.py:mechanism"})
    broken.save(five / "2.1" / "audit.json")
    course = courses(read_history(five))[("release.py:mechanism", "privacy")]
    assert len(course) == 6 and standing(course).startswith("Error since release “2.1”.")
    assert html.render(document(read_history(five), "all")).count("<figure") == 2


def test_the_command_prints_and_writes_a_history(five):
    out = five.parent / "o"
    shown = CliRunner().invoke(main, ["report", "--history", str(five), "--report", "html,md,pdf", "--out", str(out)])
    assert shown.exit_code == 0, shown.output
    assert "No promise was found violated in the last release that measured it, of 5 \nreleases" in shown.stdout
    assert sorted(path.name for path in out.iterdir()) == ["history.html", "history.md", "history.pdf"]
    shown = CliRunner().invoke(main, ["report", "x.json", "--history", str(five)])
    assert "history must stand without results, got 'x.json' too" in shown.output
    shown = CliRunner().invoke(main, ["report", "--history", str(five), "--report", "json"])
    assert "for a history, got 'json'" in shown.output


def test_a_redacted_history_names_no_input(five):
    shown = CliRunner().invoke(main, ["report", "--history", str(five), "--redact"])
    assert shown.exit_code == 0 and "Aachen" not in shown.output and str(five) not in shown.output
    assert "1.10” broke the promise" in shown.output.replace("\\", "")


def test_the_sessions_of_a_store_are_its_releases(project):
    def release(data, size, rng):
        return data + 0.5 * rng.laplace(size=size)  # a loss of 2 where 1 is promised

    for seed in (1, 2, 3):
        dpaudit.audit(release, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=60, seed=seed, store="evidence.db",
                      floating_point=False)  # fmt: skip
    releases = read_history("evidence.db")
    assert len(releases) >= 1 and all(re.match(r"session \d, 20", release.name) for release in releases)
    (course,) = courses(releases).values()
    samples = [point.release.dossier.audits[0].samples for point in course]
    assert samples == sorted(samples)  # each session adds to those before it
    last = releases[-1].dossier.audits[0].findings[0]
    assert last.looks[-1].parameter_lower == last.parameter_lower


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("vers = 'x'", "key must be one of version, commit, date, got 'vers' at"),
        ("date = 'today'", "date must be a date such as 2026-01-31, got 'today'"),
        ("version = 3", "version must be a text of at most 4,000 characters, got 3"),
        ("version = ", "release must be TOML, got"),
    ],
)
def test_a_release_file_of_the_wrong_kind_is_refused_with_its_place(five, content, message):
    (five / "1.9" / "release.toml").write_text(content)
    with pytest.raises(UsageError, match=message):
        read_history(five)


def test_a_place_without_releases_is_refused(tmp_path):
    with pytest.raises(UsageError, match="history must hold a release, got none at"):
        read_history(tmp_path)
    with pytest.raises(UsageError, match="history must be a folder of releases or a store, got"):
        read_history(tmp_path / "none")


def test_a_difference_between_two_mechanisms_says_that_they_are_two(synthetic):
    first = synthetic.make("single")
    second = dataclasses.replace(first, subject={**first.subject, "target": "other.py:f"})
    told = difference(Source("a", "", first), Source("b", "", second))
    assert told.headline == "Different mechanisms: still violated"
    assert "different mechanisms, release.py:mechanism and other.py:f" in told.first[1].text
    changed = dataclasses.replace(first, subject={**first.subject, "fingerprint": "other"})
    assert difference(Source("a", "", first), Source("b", "", changed)).headline == "Still violated"
