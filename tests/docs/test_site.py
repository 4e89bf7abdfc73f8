"""The site: built without a warning, searchable without a network, readable on a phone, and clean for axe-core."""

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.browser import found_by, serious_faults, with_script

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
NEEDS = ("sphinx", "myst_parser", "numpydoc", "sphinx_click", "sphinx_copybutton", "sphinx_design", "furo")
PAGES = ("index", "tutorials/first-audit", "reference/cli", "explanation/label-game", "decisions/0016-laws")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    missing = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs the extra docs: {', '.join(missing)}")
    out = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "docs"
    shutil.copytree(ROOT / "docs", source, ignore=shutil.ignore_patterns("_build", "generated"))
    for name in ("CHANGELOG.md",):
        shutil.copy(ROOT / name, source.parent)
    command = [sys.executable, "-m", "sphinx", "--fail-on-warning", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run([*command, str(source), str(out)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    return out


def test_the_site_has_every_page_and_names_no_other_host_for_what_it_needs(site):
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    assert set(PAGES) <= pages and {"howto/tables", "reference/generated/dpaudit.audit", "search"} <= pages
    for page in PAGES:
        text = (site / f"{page}.html").read_text("utf-8")
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="(?:https?:)?//[^"]+"', text)


def test_the_search_works_offline(site):
    index = (site / "searchindex.js").read_text("utf-8")
    assert index.startswith("Search.setIndex(")
    terms = json.loads(index.removeprefix("Search.setIndex(").rstrip(";\n").removesuffix(")"))["terms"]
    assert "wealth" in terms and any(term.startswith("isol") for term in terms)  # terms are stems


@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(site, tmp_path, page):
    file = site / f"{page}.html"  # the copy lies beside it, as its addresses are relative
    assert serious_faults(tmp_path, file.read_text("utf-8"), file.with_name(f"{file.stem}-tested.html")) == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(site, tmp_path, page):
    # Headless Chromium has no window below 500 pixels: the page is looked at in a frame of a phone's width.
    script = (
        "const f = document.querySelector('iframe'); f.onload = () => { const e = f.contentDocument.documentElement;"
        " say([e.scrollWidth, e.clientWidth]); };"
    )
    frame = f'<!doctype html><html><body><iframe src="{page}.html" width="390" height="800"></iframe></body></html>'
    uri = with_script(frame, script, site / "frame.html")
    flags = "--allow-file-access-from-files", "--virtual-time-budget=60000", "--window-size=800,900"
    wide, room = found_by(tmp_path, uri, *flags)
    assert wide <= room <= 390
