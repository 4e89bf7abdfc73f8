"""Every experiment runs, draws, is repeated by its seed, and is installed under its name."""

import tomllib
from pathlib import Path

import pytest
from support.experiments import QUICK, quick

from dpaudit.reproductions.command import picture, saved_form
from dpaudit.reproductions.reproduction import Options, load_reproduction

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
NAMES = sorted(PROJECT["entry-points"]["dpaudit.reproductions"])
SLOW = {"datacubes", "distance-queries", "taxi"}
EXACT = {"triangles", "linear-sets"}  # nothing in them is drawn


def plain(name, outcome):
    """The numbers that are saved, but for times."""
    numbers = saved_form(name, load_reproduction(name), outcome, seed=3, quick=True, seconds=0.0)["numbers"]
    return {key: value for key, value in numbers.items() if key not in ("seconds", "times")}


@pytest.mark.claim("DX-E4.1", "DX-E4.2", "DX-E4.3", "DX-E4.4", "CD-E0", "CD-E1", "MQ-T1")
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in NAMES])
def test_an_experiment_runs_draws_and_is_repeated_by_its_seed(name):
    if name == "triangles":
        pytest.importorskip("networkx")
    experiment, outcome = load_reproduction(name), quick(name)
    assert picture(outcome).startswith(b"\x89PNG")
    assert outcome.tables and outcome.statements
    assert plain(name, outcome) == plain(name, experiment.run(QUICK))
    if name not in SLOW | EXACT:
        assert plain(name, outcome) != plain(name, experiment.run(Options(seed=4, quick=True)))
