"""The pages of constants are what the code has, and every constant has a reason."""

import constants as engine
import pytest

FOLDER = engine.ROOT / "docs" / "measurements" / "constants"


def test_the_pages_are_what_the_code_has():
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    is_current = there == engine.written(engine.constants(), engine.pages())
    assert is_current, f"{FOLDER.relative_to(engine.ROOT)} must be what the code has: run `make constants`"


def test_every_constant_has_a_reason():
    bare = [f"{one.room}/{one.module}.{one.name}" for one in engine.constants() if len(one.reason) < 5]
    assert not bare, f"a constant must have a reason, as a comment on its line or above it, got none of {bare}"


def test_a_page_that_names_a_constant_names_one_that_is_there():
    """What looks like a constant of the engine, by its module."""
    known = {f"{one.module}.{one.name}" for one in engine.constants()}
    modules = {one.module for one in engine.constants()}
    quoted = {name for text in engine.pages().values() for name in engine.re.findall(r"`([a-z_]+\.[A-Z_]+)`", text)}
    assert {name for name in quoted if name.split(".")[0] in modules} <= known


MODULE = """
# How long, in draws,
# and at most.
FIRST = 3
SECOND: int = 1 << 4

THIRD, FOURTH = 0.5, {"a": 2}  # both by judgement
NOT_A_NUMBER = "text"
local = 5
BARE = 7


@dataclasses.dataclass(frozen=True)
class Sizes:
    depth: int = 3  # levels
    # In nats.
    costs: tuple[float, ...] = (0.5, 1.0)
    name: str = "x"


@dataclasses.dataclass(frozen=True)
class Finding:
    pair: int
    loss: float = 0.0
"""


@pytest.fixture
def tree(tmp_path):
    for room in engine.ROOMS:
        (tmp_path / "dpaudit" / room).mkdir(parents=True)
    (tmp_path / "dpaudit" / "inference" / "one.py").write_text(MODULE)
    (tmp_path / "dpaudit" / "audits" / "two.py").write_text("FIRST = 4  # another one\n")
    for folder in ("decisions", "measurements"):
        (tmp_path / "docs" / folder).mkdir(parents=True)
    (tmp_path / "docs" / "decisions" / "0007-x.md").write_text("`one.FIRST` costs 3%, `SECOND` none, THIRD too.")
    return tmp_path


def test_a_changed_value_or_a_lost_reason_shows_on_the_page(tree):
    path = tree / "dpaudit" / "inference" / "one.py"
    before = engine.written(engine.constants(tree), engine.pages(tree))
    assert "[decision 7](../../decisions/0007-x.md)" in before["inference.md"]
    assert engine.UNMEASURED in before["audits.md"] and "| all | 8 | 2 |" in before["index.md"]
    for old, new in (("FIRST = 3", "FIRST = 5"), ("  # both by judgement", "")):
        path.write_text(MODULE.replace(old, new))
        assert engine.written(engine.constants(tree), engine.pages(tree)) != before
