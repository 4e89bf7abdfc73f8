"""The site: built without a warning, searchable without a network, readable on a phone, and clean for axe-core."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium")
NEEDS = ("sphinx", "myst_parser", "numpydoc", "sphinx_click", "sphinx_copybutton", "sphinx_design", "furo")
PAGES = ("index", "tutorials/first-audit", "reference/cli", "explanation/label-game", "decisions/0016-laws")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--allow-file-access-from-files", "--virtual-time-budget=60000",
)  # fmt: skip


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


def chromium(tmp_path, *arguments):
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine to lay the pages out")
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def found_in(dom):
    return json.loads(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1].replace("&amp;", "&"))


def with_script(site, page, script):
    """A copy of the page beside it, with a script at its end that leaves what it found in the page."""
    file = site / f"{page}.html"
    copy = file.with_name(f"{file.stem}-tested.html")
    copy.write_text(file.read_text("utf-8").replace("</body>", f"<script>{script}</script></body>"), "utf-8")
    return copy.as_uri()


SAY = "const say = found => { const e = document.createElement('pre'); e.id = 'found';" \
    " e.textContent = JSON.stringify(found); document.body.append(e); };"  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_axe_finds_nothing_serious(site, tmp_path, page):
    places = [Path(os.environ.get("DPAUDIT_AXE", "")), ROOT / "node_modules" / "axe-core"]
    files = [place / "axe.min.js" for place in places if (place / "axe.min.js").is_file()]
    if not files:
        pytest.skip("no axe-core: npm install --no-save axe-core, or set DPAUDIT_AXE to its folder")
    script = (
        SAY
        + files[0].read_text("utf-8")
        + (
            "axe.run(document).then(result => say(result.violations"
            ".filter(v => ['serious', 'critical'].includes(v.impact))"
            ".map(v => [v.id, v.nodes.slice(0, 3).map(n => n.target.join(' '))])));"
        )
    )
    dom = chromium(tmp_path, "--window-size=1200,900", "--dump-dom", with_script(site, page, script))
    assert found_in(dom) == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_scrolls_sideways_on_a_phone(site, tmp_path, page):
    # Headless Chromium has no window below 500 pixels: the page is looked at in a frame of a phone's width.
    frame = site / "frame.html"
    script = SAY + (
        "const f = document.querySelector('iframe'); f.onload = () => { const e = f.contentDocument.documentElement;"
        " say([e.scrollWidth, e.clientWidth]); };"
    )
    frame.write_text(
        f'<!doctype html><html><body><iframe src="{page}.html" width="390" height="800"></iframe>'
        f"<script>{script}</script></body></html>", "utf-8",
    )  # fmt: skip
    wide, room = found_in(chromium(tmp_path, "--window-size=800,900", "--dump-dom", frame.as_uri()))
    assert wide <= room <= 390
