"""No file imports the reference mechanisms by the name of their folder: a module has one name and one identity."""

import importlib
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("dpaudit", "mechanisms", "reports", "tests", "docs")
OLD = re.compile(r"^\s*(?:>>> |\.\.\. )?(?:from mechanisms(?:\.[\w.]+)? import|import mechanisms\b)", re.MULTILINE)


def test_every_import_names_the_installed_package():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")]
    assert len(files) > 500
    wrong = [str(path.relative_to(ROOT)) for path in files if OLD.search(path.read_text(encoding="utf-8"))]
    assert not wrong, "Import dpaudit_mechanisms instead: the folder mechanisms/ holds that package, and is none."


@pytest.mark.parametrize("line", ["from mechanisms.laplace import Laplace", ">>> import mechanisms"])
def test_the_old_name_is_recognised(line):
    assert OLD.search(f"x = 1\n{line}\n")
    assert not OLD.search(line.replace("mechanisms", "dpaudit_mechanisms"))


def test_a_module_cannot_be_imported_twice_from_the_checkout(monkeypatch):
    # As `python` does that is started in the checkout: its folder comes first on the path.
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.delitem(sys.modules, "mechanisms", raising=False)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("mechanisms.laplace")
    assert Path(importlib.import_module("dpaudit_mechanisms").__file__).is_relative_to(ROOT / "mechanisms")
