"""The page of sizes: lines, classes and constants of each room, its budget, and the code that one scalar audit runs.

A room is a folder of `dpaudit/`; the modules beside the folders are the room `basics`. Classes are those outside
functions. Constants are

* the module-level ones of `constants.py`, and names in capitals in a class that have a number in their value;
* the numbers of a frozen dataclass of constants: all its fields have defaults, and at least half of these are numbers;
* the numbers that a module-level object in capitals is made with, as in `PILOT = PilotRule(min_correct=5, z=0.7)`.

    python tests/meta/size.py    # writes docs/size.md
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

from constants import ROOT, has_number, numbers_of, of_module, outline

PAGE, BUDGETS = ROOT / "docs" / "size.md", Path(__file__).with_suffix(".toml")
COLUMNS = ("files", "lines", "non-empty", "classes", "constants")
CAPITALS = re.compile(r"_*[A-Z][A-Z0-9_]*\b")
COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
TEXT = """# Size of the package

A room is a folder of `dpaudit/`; *basics* are the modules beside the folders. Lines are lines of Python, empty lines
too. A test fails where a room is above its ceiling; `tests/meta/size.toml` has the ceilings, and they only fall.
Constants are the numbers of names in capitals and of frozen dataclasses of constants, by the rule in
`tests/meta/size.py`. `make size` writes this page.

{rooms}

## Aims

The last row includes the rooms without an aim of their own.

{aims}
"""
MEASURED = """
## One scalar audit

Files of the package whose code an audit of Laplace noise runs (`scalar_audit` in `tests/meta/size.py`), all lines of
these files, functions that run, and the most frames of the package that are open at once. Measured when the page was
written; the test of this page does not measure again.

{audits}

The second audit, by room:

{rooms}
"""

Sizes = dict[str, Counter[str]]


def room_of(path: Path, root: Path = ROOT) -> str:
    """Name of the room that a file of the package is in."""
    first, *inside = path.relative_to(root / "dpaudit").parts
    return first if inside else "basics"


def sizes(root: Path = ROOT) -> Sizes:
    """Sizes of each room, by the names of the columns."""
    found: Sizes = defaultdict(Counter)
    for path in sorted((root / "dpaudit").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        tree, lines = outline(text)
        classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
        constants = len(list(of_module("", path.stem, tree, lines))) + sum(map(_of_class, classes))
        constants += sum(map(_of_object, tree.body))
        counts = (1, len(text.splitlines()), len(re.findall(r"^.*\S", text, re.MULTILINE)), len(classes), constants)
        found[room_of(path, root)].update(dict(zip(COLUMNS, counts, strict=True)))
    return found


def _of_class(node: ast.ClassDef) -> int:
    if numbers := numbers_of(node):
        return len(numbers)
    fields = [part for part in node.body if isinstance(part, ast.Assign | ast.AnnAssign)]
    return sum(
        CAPITALS.match(ast.unparse(part)) is not None for part in fields if part.value and has_number(part.value)
    )


def _of_object(node: ast.stmt) -> int:
    call = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
    if not isinstance(call, ast.Call) or not CAPITALS.match(ast.unparse(node)):
        return 0
    made_with = [*call.args, *(word.value for word in call.keywords)]
    return sum(map(has_number, made_with)) if ast.unparse(call.func)[0].isupper() else 0


def budgets() -> dict[str, dict[str, int]]:
    """Ceilings and aims, in lines."""
    return tomllib.loads(BUDGETS.read_text(encoding="utf-8"))


def above_ceiling(found: Sizes, ceilings: Mapping[str, int]) -> dict[str, int]:
    """Lines of each room above its ceiling, where there are any. A room that is not listed has the ceiling 0."""
    return {room: over for room, size in found.items() if (over := size["lines"] - ceilings.get(room, 0)) > 0}


def written(found: Sizes, ceilings: Mapping[str, int], aims: Mapping[str, int]) -> str:
    """The page, without what is measured."""
    every = {room: found.get(room, Counter()) for room in sorted({*found, *ceilings})}
    every["all"] = sum(found.values(), Counter())
    rooms = [(room, *(size[name] for name in COLUMNS), ceilings.get(room, "")) for room, size in every.items()]
    goals = [
        (names, sum(every.get(room, Counter())["lines"] for room in names.split(", ")), aim)
        for names, aim in aims.items()
    ]
    return TEXT.format(
        rooms=_table(("room", *COLUMNS, "ceiling"), rooms), aims=_table(("rooms", "lines", "aim"), goals)
    )


def _table(head: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    shown = [[f"{cell:,}" if isinstance(cell, int) else cell for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---", *["--:"] * (len(head) - 1)], *shown))


def scalar_audit() -> None:
    """Audit of Laplace noise on one pair."""
    import dpaudit

    dpaudit.audit(lambda x, rng: x + rng.laplace(), "eps=1", [(0.0, 1.0)], samples=2000, seed=1, floating_point=False)


def traced(call: Callable[[], object], root: Path = ROOT) -> tuple[set[CodeType], int]:
    """Code of the package that a call runs in this thread, and the most frames of it that are open at once."""
    seen: set[CodeType] = set()
    folder, depth, deepest = f"{root / 'dpaudit'}/", 0, 0

    def note(frame: Any, event: str, _: object) -> None:
        nonlocal depth, deepest
        if event in ("call", "return") and frame.f_code.co_filename.startswith(folder):
            seen.add(frame.f_code)
            depth += 1 if event == "call" else -1
            deepest = max(deepest, depth)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return seen, deepest


def counted(codes: Collection[CodeType]) -> tuple[int, int, int]:
    """Files that the code is from, all lines of these files, and functions: no comprehension, class or module."""
    files = {code.co_filename for code in codes}
    lines = sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in files)
    functions = [code for code in codes if code.co_flags & inspect.CO_OPTIMIZED and code.co_name not in COMPREHENSIONS]
    return len(files), lines, len(functions)


def measured() -> str:
    """Rest of the page, in a process that has not imported the package."""
    (first, first_depth), (second, depth) = traced(scalar_audit), traced(scalar_audit)
    rows = [("first, with its imports", *counted(first), first_depth), ("second", *counted(second), depth)]
    by_room: dict[str, set[CodeType]] = defaultdict(set)
    for code in second:
        by_room[room_of(Path(code.co_filename))].add(code)
    head = ("files", "their lines", "functions")
    return MEASURED.format(
        audits=_table(("audit", *head, "call depth"), rows),
        rooms=_table(("room", *head), [(room, *counted(codes)) for room, codes in sorted(by_room.items())]),
    )


if __name__ == "__main__":
    PAGE.write_text(written(sizes(), **budgets()) + measured(), encoding="utf-8")
