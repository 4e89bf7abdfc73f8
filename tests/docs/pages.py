"""Pages of the manual as examples that run: Sybil finds the blocks, and this says what each kind of block does.

* ```python, ```toml or another language whose first line is a comment with a file's name (`# noise.py`): the file is
  written. Any other ```python block is run; one with `>>>` as a doctest. The blocks of a page share their names.
* ```console: each line that starts with `$ ` is run by bash in the folder of the page, and the lines below it must be
  found in its output, in this order. Three dots stand for anything. A backslash at the end of a
  line continues the command. A command ends with status 0 or 1, unless it says
  `# exit status 3`.
* Blocks without a language, and ```text, are not run.
"""

from __future__ import annotations

import contextlib
import doctest
import fnmatch
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = re.compile(r"^(?:#|//) ([\w./-]+\.(?:py|toml|json|yaml|yml|js|csv))\n")
STATUS = re.compile(r"# exit status (\d+)")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def bash(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with the Python of the tests, and what is installed beside it, in front."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", command],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )  # fmt: skip


@dataclass
class Page:
    """One page while its examples run."""

    folder: Path
    run: object = bash
    names: dict = field(default_factory=dict)
    ran: int = 0

    def evaluate(self, example):
        """Run one block; whatever is wrong is an AssertionError."""
        language, text = example.parsed
        self.ran += 1
        if (named := FILE.match(text)) is not None:
            path = self.folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if path.suffix in (".py", ".toml", ".yaml", ".yml") else text[named.end() :], "utf-8")
        elif language == "console":
            self.console(text)
        elif language == "python" and ">>>" in text:
            test = doctest.DocTestParser().get_doctest(text, self.names, "page", None, example.line)
            said = io.StringIO()
            failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.write, clear_globs=False).failed
            self.names.update(test.globs)
            assert not failed, said.getvalue()
        elif language == "python" and self.run is not bash:  # another environment than that of the tests
            (self.folder / "block.py").write_text(text, "utf-8")
            done = self.run("python block.py", self.folder)
            assert done.returncode == 0, done.stdout
        elif language == "python":
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, "page", "exec"), self.names)
        else:
            raise AssertionError(f"nothing is done with a block of {language} without a file's name:\n{text}")

    def console(self, text):
        for call in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *lines = call.rstrip("\n").replace("\\\n", " ").split("\n")
            done = self.run(command, self.folder)
            stated = STATUS.search(command)
            allowed = (int(stated[1]),) if stated else (0, 1)
            assert done.returncode in allowed, f"{command}\nexit status {done.returncode}\n{done.stdout}"
            rest = iter(done.stdout.splitlines())
            for line in lines:
                wanted = re.sub(r"([\[*?])", r"[\1]", line.strip()).replace("...", "*")
                if not any(fnmatch.fnmatchcase(said.strip(), wanted) for said in rest):
                    raise AssertionError(f"{command}\nnot found, or not in this order: {line}\n{done.stdout}")


def run_page(path, folder, monkeypatch, run=bash):
    """Run all examples of a page in a folder; the number of blocks that did something."""
    sybil = pytest.importorskip("sybil", reason="needs sybil, which finds the examples of a page")
    from sybil.parsers.markdown.lexers import FencedCodeBlockLexer

    def parse(document):
        for region in FencedCodeBlockLexer(r"[a-z]+")(document):
            language, text = region.lexemes["language"], str(region.lexemes["source"])
            if language != "text":
                yield sybil.Region(region.start, region.end, (language, text), page.evaluate)

    page = Page(folder, run)
    (folder / "pyproject.toml").write_text("", "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    before = set(sys.modules)
    try:
        for example in sybil.Sybil(parsers=[parse]).parse(path).examples():
            example.evaluate()
    finally:
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]
    return page.ran
