"""Claims that tests check: the marks `@pytest.mark.claim("ID")` of a folder of tests.

The files are parsed, not imported: no test's dependency is needed, and nothing runs. Marks count on functions, classes,
parameters (`pytest.param(..., marks=...)`) and modules (`pytestmark`); each belongs to the function, class or file that
it stands on. An id has to be written out as a string, so that what is counted is what pytest sees (a test of this
repository compares the two).
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from dpaudit.errors import UsageError

MARK = "claim"


@dataclasses.dataclass(frozen=True, order=True)
class Mark:
    """One mark: the id that it names, and the test that bears it.

    `path` is relative to the folder that was given, with "/" between its parts; `test` is the name within the file,
    with "::" after a class, and empty for a mark of the whole file; `line` counts from 1.
    """

    id: str
    path: str
    test: str
    line: int

    @property
    def node(self) -> str:
        """Name that pytest gives it: `path::test`, or the path alone."""
        return f"{self.path}::{self.test}" if self.test else self.path


def collect_marks(folder: str | Path) -> list[Mark]:
    """All marks in the files `test_*.py` below a folder, in the order of files and lines.

    `UsageError` if the folder does not exist, a file is not Python, or a mark does not name its ids as strings.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"tests must be a folder, got {str(root)!r}. Name that of the tests with --tests.")
    marks: list[Mark] = []
    for path in sorted(root.rglob("test_*.py")):
        name = path.relative_to(root).as_posix()
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            raise UsageError(f"tests must be Python files, got {name!r} ({error}).") from error
        marks += sorted(_marks_of(tree, name, ""), key=lambda mark: mark.line)
    return marks


def _marks_of(node: ast.AST, path: str, inside: str) -> Iterator[Mark]:
    """The marks below a node that stands in the test `inside` ("" for the file itself)."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            named = f"{inside}::{child.name}" if inside else child.name
            yield from _marks_of(child, path, named)
        else:
            if isinstance(child, ast.Call) and _is_mark(child.func):
                yield from _named(child, path, inside)
            yield from _marks_of(child, path, inside)


def _is_mark(function: ast.expr) -> bool:
    owner = function.value if isinstance(function, ast.Attribute) and function.attr == MARK else None
    return getattr(owner, "attr", getattr(owner, "id", None)) == "mark"


def _named(call: ast.Call, path: str, inside: str) -> Iterator[Mark]:
    values = [argument.value if isinstance(argument, ast.Constant) else None for argument in call.args]
    names = [value for value in values if isinstance(value, str)]
    if not names or len(names) < len(values) or call.keywords:
        raise UsageError(
            f"a mark {MARK} must name its ids as strings, got {ast.unparse(call)} at {path}:{call.lineno}."
        )
    for name in names:
        yield Mark(name, path, inside, call.lineno)
