"""A package outside dpaudit adds one thing of each kind, and each is used as our own are."""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit import extensions as registry
from dpaudit.cli import main
from dpaudit.conformance import all_checks, check_names
from dpaudit.features import decoders, views
from dpaudit.features.outcomes import read_outputs
from dpaudit.features.reader import Reader

MODULE = """
import dpaudit
from dpaudit.conformance import CheckFailed, CheckSpec
from dpaudit.laws import Law, post_processing
from dpaudit.features.views import ViewKind
from dpaudit.reports import ReportFormat

def tenth(text):
    return dpaudit.PureDP(float(text) / 10.0)

def as_it_is(text):
    return text

def has_a_name(case):
    if not getattr(case.mechanism, "name", ""):
        raise CheckFailed("it has no name")

def thermometer(opaque):
    return {"kelvin": opaque.state["celsius"] + 273.15}

warm = ViewKind(lambda v, c: (v > c) * 1.0, "whether {0} is above {parameter}", lambda m, labels, n: [((0,), 300.0)])
named = CheckSpec("has_a_name", "has a name", "outside.things:has_a_name")
def _double(outputs):
    return 2.0 * outputs

doubled = Law("doubling", lambda subject, claim, pairs: post_processing(subject, claim, _double, pairs=pairs))
words = ReportFormat(".words", lambda dossier: "verdict: " + dossier.sources[0].result.verdict + chr(10))

def __getattr__(name):
    if name == "divides":
        raise ZeroDivisionError("while it was looked up")
    raise AttributeError(name)

class library:
    @staticmethod
    def subject(scale):
        return lambda data, size, rng: data + rng.laplace(scale=scale, size=size)
"""
ENTRIES = """
[dpaudit.claims]
tenths = outside.things:tenth
[dpaudit.decoders]
Thermometer = outside.things:thermometer
[dpaudit.views]
warm = outside.things:warm
[dpaudit.checks]
has_a_name = outside.things:named
[dpaudit.laws]
doubling = outside.things:doubled
[dpaudit.report_formats]
words = outside.things:words
[dpaudit.libraries]
theirs = outside.things:library
"""


def install(folder, entries):
    """A package as pip leaves it, in a folder of the path."""
    (folder / "outside").mkdir(parents=True)
    (folder / "outside" / "__init__.py").write_text("")
    (folder / "outside" / "things.py").write_text(MODULE)
    about = folder / "outside-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(entries)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package on the path, and what is remembered of the packages before it forgotten."""

    def put(entries=ENTRIES):
        install(tmp_path / "site", entries)
        monkeypatch.syspath_prepend(tmp_path / "site")
        importlib.invalidate_caches()
        forget()

    def forget():
        for remembered in (decoders.decoders_of_packages, views.kinds_of_packages):
            remembered.cache_clear()

    yield put
    forget()
    for name in [name for name in sys.modules if name.partition(".")[0] == "outside"]:
        del sys.modules[name]


def test_a_form_of_claim(installed):
    installed()
    assert dpaudit.parse_claim("tenths=5") == dpaudit.PureDP(0.5)
    with pytest.raises(dpaudit.UsageError, match=r"tradeoff=\.\.\. or tenths=\.\.\.|tenths=\.\.\. or tradeoff=\.\.\."):
        dpaudit.parse_claim("tenth=5")


class Thermometer:
    def __init__(self, celsius):
        self.celsius = celsius


def test_a_decoder_and_a_view(installed):
    installed()
    outcomes = read_outputs([Thermometer(k) for k in range(60)], 60)
    reader = Reader.learn((outcomes, outcomes))
    matrix = reader(outcomes)
    assert matrix[3, reader.names.index("the output kelvin")] == 276.15
    labels = (matrix[:, 0] > 300.0).astype(int)
    view = next(view for view in views.choose_views(matrix, labels, views.Layout(1)) if view.kind == "warm")
    assert view.describe(reader.names) == f"whether {reader.names[0]} is above 300"
    assert views.View.from_dict(view.to_dict()) == view
    np.testing.assert_array_equal(view(matrix), labels)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ("[dpaudit.decoders]\na = outside.things:gone\n", "the extension 'a' of dpaudit.decoders must be importable"),
        ("[dpaudit.views]\na = outside.things:gone\n", "the extension 'a' of dpaudit.views must be importable"),
        ("[dpaudit.views]\na = outside.things:named\n", "a view must be a ViewKind, got"),
    ],
)
def test_a_broken_decoder_or_view_is_named_and_left_out(installed, entries, message):
    installed(entries)
    outcomes = read_outputs([Thermometer(k) for k in range(60)], 60)
    with pytest.warns(UserWarning, match=message):
        matrix = Reader.learn((outcomes, outcomes))(outcomes)
        found = views.choose_views(matrix, np.arange(60) % 2, views.Layout(1))
    assert matrix.shape[1] and all(view.kind in views.KINDS for view in found)


def test_a_check_and_a_law_share_the_error_rate_with_ours(installed):
    def share():
        checks = list(dpaudit.conformance_checks(lambda data, size, rng: data + rng.laplace(size=size)))
        return next(check for check in checks if check.name == "claim_audit").subjects.case.level

    before, count = share(), sum(spec.is_statistical for spec in all_checks())
    installed()
    assert check_names()[-2:] == ("law_doubling", "has_a_name")
    assert share() == pytest.approx(before * count / (count + 1))  # the law is statistical, the check is not
    result = dpaudit.check(
        lambda data, size, rng: data + rng.laplace(size=size),
        "eps=1",
        [(0.0, 1.0)],
        only=["has_a_name", "law_doubling"],
        samples=20_000,
        seed=1,
    )
    assert {record.name: record.status for record in result.records} == {
        "has_a_name": "violated",
        "law_doubling": "not_refuted",
    }


def test_a_format_of_reports(installed, tmp_path, monkeypatch):
    installed()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ext_mech.py").write_text("def release(data, size, rng):\n    return data + rng.laplace(size=size)\n")
    options = ["ext_mech.py:release", "--claim", "tenths=20", "--pairs", "0,1", "--samples", "4000", "--seed", "1"]
    run = CliRunner().invoke(main, ["audit", *options, "--report", "json,words", "--out", "o"])
    assert run.exit_code == 0, run.output  # at the claim of 2, a loss of 1
    assert (tmp_path / "o" / "audit.words").read_text() == "verdict: not_refuted\n"
    again = CliRunner().invoke(main, ["report", "o/audit.json", "--report", "words", "--out", "p"])
    assert again.exit_code == 0 and (tmp_path / "p" / "audit.words").exists()
    unknown = CliRunner().invoke(main, ["report", "o/audit.json", "--report", "word", "--out", "p"])
    assert unknown.exit_code == 2 and "oscal, words, got 'word'" in unknown.output


def test_an_adapter_of_a_library(installed):
    with pytest.raises(AttributeError, match="no package adds a library of that name"):
        dpaudit.libraries.theirs  # noqa: B018
    installed()
    result = dpaudit.audit(dpaudit.libraries.theirs.subject(0.2), "eps=1", [(0.0, 1.0)], samples=1_000, seed=1)
    assert result.verdict == "violated" and "theirs" in dir(dpaudit.libraries)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (
            "[dpaudit.claims]\ntenths = outside.things:gone\n",
            "the extension 'tenths' of dpaudit.claims must be importable",
        ),
        ("[dpaudit.claims]\ntenths = outside.things:divides\n", "ZeroDivisionError: while it was looked up"),
        ("[dpaudit.claims]\ntenths = outside.nowhere:tenth\n", "Repair or uninstall the package that registers it"),
        ("[dpaudit.claims]\ntenths = outside.things:as_it_is\n", "the form of a claim must give a Claim"),
    ],
)
def test_a_broken_extension_is_one_message_that_names_it(installed, entries, message):
    installed(entries)
    with pytest.raises(dpaudit.UsageError, match=message):
        dpaudit.parse_claim("tenths=5")


def test_the_docstring_names_each_group_that_is_read(request):
    root = request.config.rootpath / "dpaudit"
    groups = set()
    for path in root.rglob("*.py"):
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith(("GROUP = ", "LAWS_GROUP = ")):
                groups.add(line.split('"')[1])
    listed = {line.split()[0] for line in registry.__doc__.splitlines() if line.startswith("    dpaudit.")}
    assert groups == listed
