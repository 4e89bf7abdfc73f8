"""Pages in a headless Chromium, what a script at their end finds there, and what axe-core says of them.

axe-core is looked for in `node_modules` of this project and in the folder that DPAUDIT_AXE names; a test that needs it,
or a Chromium, is skipped where it is not.
"""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
SAY = """const say = found => { const e = document.createElement("pre"); e.id = "found";
  e.textContent = JSON.stringify(found); document.body.append(e); };"""
AXE = """
axe.run(document).then(result => say(result.violations.filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => [one.id, one.nodes.slice(0, 3).map(node => node.html.slice(0, 200))])));"""


def chromium(tmp_path, *arguments):
    """What Chromium writes with these arguments."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("no chromium on this machine to lay the pages out")
    command = [program, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    return subprocess.run(command, capture_output=True, timeout=300, check=True, text=True).stdout


def with_script(page, script, place):
    """A copy of the page at `place`, without its policy and with a script at its end, which may say what it found."""
    place.write_text(POLICY.sub("", page).replace("</body>", f"<script>{SAY}{script}</script></body>"), "utf-8")
    return place.as_uri()


def found_by(tmp_path, uri, *arguments):
    """What the script of the page said."""
    dom = chromium(tmp_path, *arguments, "--dump-dom", uri)
    return json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', dom, re.DOTALL)[1]))


def serious_faults(tmp_path, page, place):
    """What axe-core finds of serious and critical faults in a page, which is copied to `place`."""
    places = [Path(os.environ.get("DPAUDIT_AXE", "")), ROOT / "node_modules" / "axe-core"]
    files = [folder / "axe.min.js" for folder in places if (folder / "axe.min.js").is_file()]
    if not files:
        pytest.skip("no axe-core: npm install --no-save axe-core, or set DPAUDIT_AXE to its folder")
    uri = with_script(page, files[0].read_text("utf-8").replace("</script", "<\\/script") + AXE, place)
    return found_by(tmp_path, uri, "--virtual-time-budget=60000", "--window-size=1100,900")
