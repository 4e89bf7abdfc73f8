"""What a reader who mends a bug is given: python tests/judging/repair_texts.py FOLDER [NAME...]

For each bug of the museum (15 by default) two files: NAME.py, its source above the mended version, without what says
that it is a bug, and NAME.txt, what `judge` says of it.
"""

import inspect
import sys
import warnings
from pathlib import Path

from dpaudit import judge, museum

COUNT, SEED, SECONDS = 15, 1, 20.0


def main(folder, names):
    """Write both files of each bug."""
    warnings.simplefilter("ignore")
    shown = [one for one in museum() if one.channel != "low bits"]
    step = max(len(shown) // COUNT, 1)
    chosen = [one for one in shown if one.name in names] if names else shown[::step][:COUNT]
    folder.mkdir(parents=True, exist_ok=True)
    for exhibit in chosen:
        found = judge(exhibit.faulty, exhibit.claim, domain=exhibit.domain, seed=SEED, seconds=SECONDS)
        faulty = exhibit.faulty if inspect.isroutine(exhibit.faulty) else type(exhibit.faulty)
        source = inspect.getsource(inspect.getmodule(faulty)).split("\ndef mended(")[0].split("\nclass Mended")[0]
        (folder / f"{exhibit.name}.py").write_text(source.split('"""', 2)[-1].lstrip().split("\nEXHIBIT =")[0])
        (folder / f"{exhibit.name}.txt").write_text(f"{exhibit.claim}\n\n{found.text()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
