"""What a reader who mends a bug is given: python tests/judging/repair_texts.py FOLDER [NAME...]

For each bug of the museum (15 by default), numbered and without its name:

* FOLDER/source/01.py, its source on the lines that it has, without what says that it is a bug, and 01.claim.txt, what
  it promises for which inputs;
* FOLDER/judge/, the same two and 01.judge.txt, what `judge` says;
* FOLDER.key/names.txt, the names, which the reader does not see.
"""

import ast
import inspect
import json
import sys
import warnings
from pathlib import Path

from dpaudit import judge, museum

COUNT, SEED, SECONDS = 15, 1, 60.0


def main(folder, names):
    """Write all files."""
    warnings.simplefilter("ignore")
    shown = [one for one in museum() if one.channel != "low bits"]
    step = max(len(shown) // COUNT, 1)
    chosen = [one for one in shown if one.name in names] if names else shown[::step][:COUNT]
    key = folder.with_name(f"{folder.name}.key")
    for path in (folder / "source", folder / "judge", key):
        path.mkdir(parents=True, exist_ok=True)
    listed = []
    for number, exhibit in enumerate(chosen, 1):
        found = judge(exhibit.faulty, exhibit.claim, domain=exhibit.domain, seed=SEED, seconds=SECONDS)
        module = inspect.getmodule(exhibit.faulty.func)
        inputs = exhibit.domain if isinstance(exhibit.domain, dict) else exhibit.domain.to_dict()
        for side in ("source", "judge"):
            (folder / side / f"{number:02}.py").write_text(_without_hints(inspect.getsource(module), exhibit.faulty))
            claim = f"It promises {exhibit.claim} for these inputs and their neighbours: {json.dumps(inputs)}\n"
            (folder / side / f"{number:02}.claim.txt").write_text(claim)
        text = found.text().replace(f"{Path(module.__file__).stem}.py", f"{number:02}.py")
        (folder / "judge" / f"{number:02}.judge.txt").write_text(text + "\n")
        listed.append(f"{number:02} {exhibit.name} {found.verdict} {found.by}")
        (key / "names.txt").write_text("\n".join(listed) + "\n")


def _without_hints(source, bug):
    """A module's source with the bug alone on its lines: no docstrings, other bugs, and nothing of a mended version."""
    lines, tree = source.splitlines(), ast.parse(source)
    name, value = next(iter(bug.keywords.items()))
    others = [node for node in tree.body if "bug" in ast.unparse(node)]
    (own,) = (node for node in others if getattr(node, "name", "") == bug.func.__name__)
    hidden = [(node.lineno, node.end_lineno) for node in (tree.body[0], own.body[0])]
    for node in others:
        first = min(one.lineno for one in (node, *getattr(node, "decorator_list", ())))
        hidden.append((first, own.lineno - 1 if node is own else node.end_lineno))
    for node in ast.walk(own):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "mended":
            hidden.append((node.lineno, node.body[-1].end_lineno))
    for first, last in hidden:
        lines[first - 1 : last] = [""] * (last - first + 1)
    given = "" if value is False else f", {name}={value!r}"
    lines[own.lineno - 1] = lines[own.lineno - 1].replace(f", {name})", f"{given})")
    shown = "\n".join("" if line.startswith("from dpaudit") else line for line in lines).rstrip() + "\n"
    for hint in (" and not mended", " or mended"):
        shown = shown.replace(hint, "")
    return shown.replace("if not mended:", "if True:").replace("    else:\n", "    if True:\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
