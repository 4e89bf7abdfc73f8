"""A docstring of the package begins with a verb or a noun."""

import ast
import re
from pathlib import Path

import dpaudit

OPENING = re.compile(r"(What|Who|Whose|Where|Whether|How|Which|When|Why|That|As)\b")
SUSPECT = re.compile(rf'"""\s*{OPENING.pattern}')  # only files with one are parsed
HELP = {"cli/evidence.py: evidence_group"}  # the docstring of a command is its help


def test_docstrings_begin_with_a_verb_or_a_noun():
    root, found = Path(dpaudit.__file__).parent, set()
    described = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    texts = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if SUSPECT.search(text) else ():
            if isinstance(node, described) and OPENING.match(ast.get_docstring(node) or ""):
                found.add(f"{path.relative_to(root).as_posix()}: {getattr(node, 'name', 'module')}")
    assert found <= HELP
