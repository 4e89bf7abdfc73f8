"""The deployment file: its template, the budget over releases, and what a registry asks for."""

import re

import pytest
from click.testing import CliRunner

from dpaudit import reports
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports.deployment import ITEMS, KEYS, REGISTRY, read_deployment
from dpaudit.reports.dossier import Dossier

BUDGET = '[budget]\nlimit = 2.0\nreleases = [{name = "2025", date = 2025-01-31, spent = 1.5}, %s]\n'
FREE = 'bins = "The answer is one number."'  # an item is declared or not applicable, never both
SECOND = '{name = "2026", date = 2026-01-31, spent = %s}'


def test_the_template_has_every_key_and_declares_nothing(project):
    assert CliRunner().invoke(main, ["init", "deployment"]).output.strip() == "Written: deployment.toml"
    text = (project / "deployment.toml").read_text()
    assert all(line.startswith("#") or not line for line in text.splitlines())
    empty = read_deployment("deployment.toml")
    assert empty.name == "" and empty.declared == {} and empty.budget is None
    shown = CliRunner().invoke(main, ["init", "deployment"])
    assert shown.exit_code == 2 and "file must be one that is not there yet, got 'deployment.toml'" in shown.output


def test_what_the_template_suggests_is_read_back_in_full(project):
    CliRunner().invoke(main, ["init", "deployment"])
    text = (project / "deployment.toml").read_text()
    live = [line[2:] for line in text.splitlines() if re.match(r"# (\w+ = |\[\w+\]$)", line)]
    (project / "full.toml").write_text("\n".join(line for line in live if "coordinates" not in line and line != FREE))
    deployment = read_deployment("full.toml")
    assert set(deployment.registry) == set(REGISTRY)
    assert deployment.budget is not None and deployment.budget.limit == 2.0
    assert set(deployment.declared) == set(ITEMS)
    stated = {key for key in KEYS if f"\n# {key} = " in text or f"\n# [{key}]" in text}
    assert stated == set(KEYS)


@pytest.mark.parametrize(("spent", "state"), [("0.5", "within the limit"), ("0.6", "over the limit")])
def test_the_budget_of_a_data_set_is_summed_over_its_releases(synthetic, tmp_path, spent, state):
    (tmp_path / "d.toml").write_text(BUDGET % SECOND % spent)
    dossier = Dossier.of(synthetic.make("single"))
    dossier = Dossier(dossier.sources, read_deployment(tmp_path / "d.toml"))
    text = reports.render(dossier, "md", "compliance")
    assert "Declared: releases of this data set spent ε = 2" in text and state in text
    assert b'"budget"' in reports.render(dossier, "json", "compliance")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nam = 'x'", r"key must be one of name, .*, got 'nam' at '.*d\.toml'"),
        ("[declared]\nunits = 'x'", r"key of \[declared\] must be one of epsilon, .*, got 'units' at '.*d\.toml'"),
        ("[declared]\nunit = 3", r"declared\.unit must be a text"),
        ("[declared]\nunit = ' '", r"declared\.unit must say something"),
        ("[declared]\nunit = 'x'\n[not_applicable]\nunit = 'y'", "unit must be declared or not applicable, got both"),
        ("declared = 3", "declared must be a table, got 3"),
        ("coordinates = 'none.json'", r"coordinates must be a readable file, got '.*none\.json'"),
        ("name = ", "deployment must be TOML"),
        ("[budget]\nlimt = 1", r"key of \[budget\] must be one of parameter, limit, releases, got 'limt' at"),
        ("[budget]\nparameter = 'epsilon'", "budget.limit must be stated, got none at"),
        ("[budget]\nlimit = -1", "budget.limit must be a finite number of at least 0, got -1 at"),
        ("[budget]\nlimit = inf", "budget.limit must be a finite number of at least 0, got inf at"),
        ("[budget]\nlimit = 1\nparameter = 'delta'", "budget.parameter must be one of epsilon, rho, mu, got 'delta'"),
        ("[budget]\nlimit = 1\nreleases = 3", "budget.releases must be a list of tables, got 3"),
        ("[budget]\nlimit = 1\nreleases = [{name = 'x'}]", "budget.releases must have date, got"),
        (BUDGET % SECOND % "true", "budget.releases.spent must be a finite number of at least 0, got True"),
        ("published = 'today'", "published must be a date such as 2026-01-31, got 'today'"),
        ("registry = 1", "registry must be a table, got 1"),
        (
            "[registry]\nmodel = 'Cental'",
            "registry.model must be one of Local, Central, Shuffle, Federated, got 'Cental'",
        ),
        ("owner = 3", "owner must be a text of at most 4,000 characters, got 3"),
    ],
)
def test_a_declaration_of_the_wrong_kind_is_refused_with_its_place(tmp_path, content, message):
    (tmp_path / "d.toml").write_text(content)
    with pytest.raises(UsageError, match=message):
        read_deployment(tmp_path / "d.toml")


@pytest.mark.parametrize("content", ['{"a": [1]}', '{"a": [1, "x"]}', '{"a": [1, NaN]}', "[]", "{"])
def test_coordinates_must_be_places(tmp_path, content):
    (tmp_path / "c.json").write_text(content)
    (tmp_path / "d.toml").write_text('coordinates = "c.json"')
    with pytest.raises(UsageError, match="coordinates"):
        read_deployment(tmp_path / "d.toml")
