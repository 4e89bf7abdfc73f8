"""The pages of the engine's constants: each with its value, its reason, and where its choice was measured.

A constant is a module-level name in capitals whose value has a number in it, or such a field of a frozen dataclass of
constants: all its fields have defaults, and at least half of these are numbers. Its reason is the comment on its lines,
or the comment block above it, which holds for the lines below that have none of their own, up to an empty line. Its
choice was measured where a page of docs/decisions or docs/measurements names it in backticks, as `NAME` (of a field
`Class.name`) or, where several modules have the name, as `module.NAME`.

    python tests/meta/constants.py --folder docs/measurements/constants
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = ("features", "learning", "inference", "campaign", "running", "audits")
NAMES = {"streams"}  # modules whose numbers are names, not choices
MAX_VALUE = 60  # characters that a cell shows
UNMEASURED = "unmeasured"
FUNCTION = re.compile(r"^( *)(?:async )?def .*\n(?:\1[ )].*\n|\s*\n)*", re.MULTILINE)


@dataclasses.dataclass(frozen=True)
class Constant:
    """A constant of one module, with its value and its reason as text."""

    room: str
    module: str
    name: str
    value: str
    reason: str


def constants(root: Path = ROOT) -> list[Constant]:
    """All of them, in the order of rooms, modules and lines."""
    paths = [(room, path) for room in ROOMS for path in sorted((root / "dpaudit" / room).rglob("*.py"))]
    outlines = [(room, path.stem, *outline(path.read_text("utf-8"))) for room, path in paths]
    return [one for given in outlines for one in (*of_module(*given), *of_classes(*given))]


def outline(text: str) -> tuple[ast.Module, list[str]]:
    """The syntax tree of a module and its lines, without the bodies of functions: these take most of the time."""
    short = FUNCTION.sub(r"\1def f(): ...\n", text)
    try:
        return ast.parse(short), short.splitlines()
    except SyntaxError:  # a function has a text that goes on in the first column, which looks like its end
        return ast.parse(text), text.splitlines()


def of_module(room: str, module: str, tree: ast.Module, lines: list[str]) -> Iterator[Constant]:
    """Module-level constants of one module, from its outline."""
    for node in tree.body if module not in NAMES else ():
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None or not has_number(node.value):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        for target in targets:
            parts = target.elts if isinstance(target, ast.Tuple) else [target]
            values = node.value.elts if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple) else None
            for k, part in enumerate(parts):
                if isinstance(part, ast.Name) and part.id.lstrip("_").isupper():
                    value = ast.unparse(values[k] if values else node.value)
                    yield Constant(room, module, part.id, value, _reason(lines, node))


def of_classes(room: str, module: str, tree: ast.Module, lines: list[str]) -> Iterator[Constant]:
    """Fields of a module's frozen dataclasses of constants, from its outline."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            for part in numbers_of(node):
                value = ast.unparse(part.value) if part.value else ""
                yield Constant(room, module, f"{node.name}.{ast.unparse(part.target)}", value, _reason(lines, part))


def numbers_of(node: ast.ClassDef) -> list[ast.AnnAssign]:
    """The fields with numbers of a frozen dataclass of constants; none of other classes."""
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    numbers = [part for part in fields if part.value is not None and has_number(part.value)]
    is_frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
    return numbers if is_frozen and all(part.value for part in fields) and 2 * len(numbers) >= len(fields) else []


def has_number(value: ast.AST) -> bool:
    """Whether a number is among what a value is made of, but not within a text, a place of a list, or an object."""
    if isinstance(value, ast.Subscript | ast.JoinedStr | ast.comprehension | ast.Lambda):
        return False
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id[:1].isupper():
        return False
    is_number = isinstance(value, ast.Constant) and type(value.value) in (int, float)
    return is_number or any(has_number(part) for part in ast.iter_child_nodes(value))


def _reason(lines: list[str], node: ast.stmt) -> str:
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    own = [lines[k].split("  # ", 1)[1] for k in range(first, last + 1) if "  # " in lines[k]]
    if own:
        return re.sub(r"^noqa.*", "", own[0]).strip()
    k = first - 1
    while k >= 0 and lines[k].strip() and not lines[k].lstrip().startswith("#"):
        k -= 1
    block: list[str] = []
    while k >= 0 and lines[k].lstrip().startswith("#"):
        block.insert(0, lines[k].lstrip("# "))
        k -= 1
    return " ".join(block)


def pages(root: Path = ROOT) -> dict[str, str]:
    """The texts of the pages that measure, by their places beside the pages of constants."""
    found = {}
    for folder, prefix in (("measurements", "../"), ("decisions", "../../decisions/")):
        for path in sorted((root / "docs" / folder).glob("*.md")):
            if path.name != "index.md":
                found[prefix + path.name] = path.read_text(encoding="utf-8")
    return found


def measured(known: list[Constant], texts: dict[str, str]) -> dict[Constant, list[str]]:
    """The pages that name each constant."""
    often = Counter(one.name for one in known)
    quoted = {page: set(re.findall(r"`([\w.]+)`", text)) for page, text in texts.items()}
    return {
        one: [
            page
            for page, names in quoted.items()
            if f"{one.module}.{one.name}" in names or (often[one.name] == 1 and one.name in names)
        ]
        for one in known
    }


def written(known: list[Constant], texts: dict[str, str]) -> dict[str, str]:
    """The pages, by the names of their files: one a room, and an index."""
    where = measured(known, texts)
    index = [
        "# Constants of the engine",
        "",
        "Each has a reason. Of some, a page says what the choice was measured on. The others follow from what they",
        "stand for, or were set by judgement. `make constants` writes these pages; a test holds them to the code.",
        "",
        "| room | constants | measured |",
        "| --- | --- | --- |",
    ]
    found = {}
    for room in ROOMS:
        own = [one for one in known if one.room == room]
        index.append(f"| [{room}]({room}.md) | {len(own)} | {sum(bool(where[one]) for one in own)} |")
        lines = [f"# Constants of {room}", "", "| module | constant | value | reason | measured |", "|" + " --- |" * 5]
        module = ""
        for one in own:
            links = ", ".join(f"[{_title(place)}]({place})" for place in where[one]) or UNMEASURED
            value = one.value if len(one.value) <= MAX_VALUE else f"{one.value[:MAX_VALUE]} …"
            shown, module = one.module if one.module != module else "", one.module
            cells = (shown, f"`{one.name}`", f"`{_cell(value)}`", _cell(one.reason), links)
            lines.append("| " + " | ".join(cells) + " |")
        found[f"{room}.md"] = "\n".join([*lines, ""])
    index.append(f"| all | {len(known)} | {sum(map(bool, where.values()))} |")
    index += ["", "```{toctree}", ":maxdepth: 1", "", *ROOMS, "```", ""]
    return {"index.md": "\n".join(index), **found}


def _title(place: str) -> str:
    name = Path(place).stem
    return f"decision {int(name[:4])}" if name[:4].isdigit() else name.replace("-", " ")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.folder.mkdir(exist_ok=True)
    for name, text in written(constants(), pages()).items():
        (chosen.folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
