"""A docstring of the packages begins with a verb or a noun."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPENING = re.compile(r"(What|Who|Whose|Where|Whether|How|Which|When|Why|That|Those|As)\b")
SUSPECT = re.compile(rf'"""\s*{OPENING.pattern}')  # only files with one are parsed
HELP = {"dpaudit/cli/evidence.py: evidence_group"}  # the docstring of a command is its help


def test_docstrings_begin_with_a_verb_or_a_noun():
    described, found = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, set()
    paths = [path for room in ("dpaudit", "mechanisms") for path in (ROOT / room).rglob("*.py")]
    texts = {path: path.read_text(encoding="utf-8") for path in paths}
    assert len(texts) > 400
    for path, text in texts.items():
        for node in ast.walk(ast.parse(text)) if SUSPECT.search(text) else ():
            if isinstance(node, described) and OPENING.match(ast.get_docstring(node) or ""):
                found.add(f"{path.relative_to(ROOT).as_posix()}: {getattr(node, 'name', 'module')}")
    assert found <= HELP
