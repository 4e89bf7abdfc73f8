"""The page of sizes is what the code has, and every room keeps its ceiling."""

import pytest
import size


@pytest.fixture(scope="module")
def found():
    return size.sizes()


def test_every_room_keeps_its_ceiling(found):
    over = size.above_ceiling(found, size.budgets()["ceilings"])
    assert not over, (
        f"rooms must keep the ceilings of tests/meta/size.toml (its first lines say when one may rise): {over}"
    )


def test_the_page_is_what_the_code_has(found):
    page = size.PAGE.read_text(encoding="utf-8").split(size.MEASURED[:20])
    is_current = page[0] == size.written(found, **size.budgets()) and len(page) == 2
    assert is_current, "docs/size.md must be what the code has: run `make size`"


MODULE = """
FIRST, SECOND = 3, 0.5
RULE = Rule(Kind("a"), 5, z=0.7)


@dataclasses.dataclass(frozen=True)
class Tree:
    prior: float = 0.5
    depths: tuple[int, ...] = (2, 3)
    nats: int = 1 << 2
    shape: str = "dyadic"


@dataclasses.dataclass(frozen=True)
class Finding:
    pair: int
    loss: float = 0.0


class Plain:
    MAX_ROWS: ClassVar[int] = 9
    rows = 3

    def method(self):
        LOCAL = 7
        return lambda: LOCAL
"""
IN_THE_FIRST_COLUMN = 'def g():\n    """Text \\\n(goes on."""\n    return 1\n\nX2 = 1\n'


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "dpaudit" / "room" / "inside").mkdir(parents=True)
    (tmp_path / "dpaudit" / "room" / "inside" / "one.py").write_text(MODULE)
    (tmp_path / "dpaudit" / "two.py").write_text(IN_THE_FIRST_COLUMN)
    return tmp_path


def test_lines_classes_and_constants_are_counted(tree):
    """FIRST and SECOND, 5 and .7 of RULE, three of Tree, MAX_ROWS; X2."""
    found = {room: tuple(one[name] for name in size.COLUMNS) for room, one in size.sizes(tree).items()}
    assert found == {"room": (1, 26, 18, 3, 8), "basics": (1, 6, 5, 0, 1)}


def test_a_room_above_its_ceiling_or_without_one_is_named(tree):
    assert size.above_ceiling(size.sizes(tree), {"room": 22, "basics": 6, "new": 9}) == {"room": 4}
    assert size.above_ceiling(size.sizes(tree), {"room": 26}) == {"basics": 6}


def test_a_changed_size_or_ceiling_shows_on_the_page(tree):
    before = size.written(size.sizes(tree), {"room": 30, "new": 9}, {"room, basics": 20, "all": 25})
    for row in ("| new | 0 | 0 | 0 | 0 | 0 | 9 |", "| room | 1 | 26 | 18 | 3 | 8 | 30 |", "| room, basics | 32 | 20 |"):
        assert row in before
    (tree / "dpaudit" / "two.py").write_text(IN_THE_FIRST_COLUMN + "\n")
    assert size.written(size.sizes(tree), {"room": 30, "new": 9}, {"room, basics": 20, "all": 25}) != before


def test_a_trace_has_the_code_of_the_package_alone(tree):
    path = tree / "dpaudit" / "traced.py"
    path.write_text("def outer(n):\n    return [inner(k) for k in range(n)]\n\n\ndef inner(k):\n    return k\n")
    names = {}
    exec(compile(path.read_text(), path, "exec"), names)
    codes, depth = size.traced(lambda: sorted(names["outer"](3), key=lambda k: -k), tree)
    assert size.counted(codes) == (1, 6, 2)
    assert depth in (2, 3)  # Python 3.12 has no frame for a comprehension
    assert size.traced(lambda: None, tree) == (set(), 0)
