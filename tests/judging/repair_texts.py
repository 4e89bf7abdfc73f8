"""What a reader who mends a bug is given: python tests/judging/repair_texts.py FOLDER [NAME...]

For each bug of the museum (15 by default), numbered and without its name:

* FOLDER/source/01.py, its source on the lines that it has, without what says that it is a bug, and 01.claim.txt, what
  it promises for which inputs;
* FOLDER/judge/, the same two and 01.judge.txt, what `judge` says;
* FOLDER.key/names.txt, the names, which the reader does not see.
"""

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
        module = inspect.getmodule(exhibit.faulty if inspect.isroutine(exhibit.faulty) else type(exhibit.faulty))
        inputs = exhibit.domain if isinstance(exhibit.domain, dict) else exhibit.domain.to_dict()
        for side in ("source", "judge"):
            (folder / side / f"{number:02}.py").write_text(_without_hints(inspect.getsource(module)))
            claim = f"It promises {exhibit.claim} for these inputs and their neighbours: {json.dumps(inputs)}\n"
            (folder / side / f"{number:02}.claim.txt").write_text(claim)
        text = found.text().replace(f"{Path(module.__file__).stem}.py", f"{number:02}.py")
        (folder / "judge" / f"{number:02}.judge.txt").write_text(text + "\n")
        listed.append(f"{number:02} {exhibit.name} {found.verdict} {found.by}")
        (key / "names.txt").write_text("\n".join(listed) + "\n")


def _without_hints(source):
    """A source up to its mended version, with empty lines for its docstring and for what it takes from the museum."""
    ends = [source.find(mark) for mark in ("\ndef mended(", "\nclass Mended", "\nEXHIBIT =") if mark in source]
    source = source[: min(ends)] if ends else source
    docstring = source[: source.find('"""', 3) + 3]
    lines = ("\n" * docstring.count("\n") + source[len(docstring) :]).splitlines()
    return "\n".join("" if line.startswith("from dpaudit") else line for line in lines).rstrip() + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
