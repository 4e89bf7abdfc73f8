"""Domains that nobody gave: guesses from examples, defaults and type hints, and what is said where there are none."""

import collections
import enum
import itertools
import math
from typing import Literal

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import strategies as st

from dpaudit import PureDP, as_subject
from dpaudit.audits.climbing import Limits, climb
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.cli import main
from dpaudit.domains import DatasetDomain, ListedDomain, NumberDomain, TableDomain
from dpaudit.errors import UsageError
from dpaudit.search import guess_domain


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


def _typed(hint):
    def release(data, rng):
        return rng.laplace()

    release.__annotations__["data"] = hint
    return release


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        (float, NumberDomain),
        (int, NumberDomain),
        (list[int], DatasetDomain),
        (tuple[float, ...], DatasetDomain),
        (list[tuple[str, int]], DatasetDomain),
        (list[str | None], DatasetDomain),
        (np.ndarray, DatasetDomain),
        (bool, ListedDomain),
        (Literal["a", "b"], ListedDomain),
        (Colour, ListedDomain),
    ],
)
def test_a_type_hint_is_a_domain(hint, kind):
    if hint == tuple[float, ...]:
        hint = tuple[float]
    guess = guess_domain(_typed(hint))
    assert isinstance(guess.domain, kind) and "type hint" in guess.text and "neighbours:" in guess.text


def test_floats_may_be_no_number_and_whole_numbers_may_not():
    assert any(math.isnan(value) for value in guess_domain(_typed(list[float])).domain.values)
    assert not any(math.isnan(value) for value in guess_domain(_typed(list[int])).domain.values)


def test_a_default_value_is_an_example():
    def release(data=(1, 5, 9), rng=None):
        return 0

    guess = guess_domain(release)
    assert {1, 9, 5, 0} <= set(guess.domain.values) and "default value of 'data'" in guess.text


def test_a_table_has_categories_never_seen_missing_values_and_numbers_beyond():
    frame = pd.DataFrame({"age": [20, 70], "income": [1.5, 2.5], "city": ["a", "b"]})
    columns = guess_domain(None, frame).domain.columns
    assert "never-seen" in columns["city"] and None in columns["city"] and 700 in columns["age"]
    assert any(math.isnan(value) for value in columns["income"]) and not any(map(math.isnan, columns["age"]))


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
@pytest.mark.parametrize("as_frame", [True, False])
def test_all_pairs_of_a_table_are_adjacent(adjacency, as_frame):
    frame = pd.DataFrame({"age": [20, 70, 30], "city": ["a", "b", "a"]})
    example = frame if as_frame else frame.to_dict("records")
    domain = TableDomain.of_example(example, adjacency)
    rng = np.random.default_rng(1)
    starts = [(x, y) for _, x, y in domain.starts()]
    pairs = [*starts, *(domain.random(rng) for _ in range(100)), *domain.moves(*starts[0], rng)]
    far = max(((x, y) for x, _ in starts for y, _ in starts[:9]), key=lambda ends: domain.steps(*ends))
    pairs += itertools.pairwise(domain.on_way(*far, step) for step in range(domain.steps(*far) + 1))
    assert domain.steps(*far) > 1
    for x, y in pairs:
        assert isinstance(x, pd.DataFrame) == as_frame
        rows = [frame.to_dict("records") if as_frame else frame for frame in (x, y)]
        texts = [sorted(map(repr, side)) for side in rows]
        if adjacency == "add_remove":
            longer, shorter = max(texts, key=len), min(texts, key=len)
            assert len(longer) - len(shorter) == 1 and not _left(shorter, longer)
        else:
            assert len(texts[0]) == len(texts[1]) and len(_left(*texts)) <= 1


def test_all_pairs_of_a_table_with_users_differ_by_all_rows_of_one():
    frame = [{"age": 20, "who": "a"}, {"age": 70, "who": "b"}, {"age": 30, "who": "a"}]
    domain, rng = TableDomain.of_example(frame, user="who"), np.random.default_rng(1)
    starts = [(x, y) for _, x, y in domain.starts()]
    pairs = [*starts, *(domain.random(rng) for _ in range(100))]
    pairs += [move for x, y in starts[:60] for move in domain.moves(x, y, rng)]
    assert all(domain.is_pair(x, y) for x, y in pairs)
    left = {(row["who"], len(x) - len(y)) for x, y in starts if x == frame for row in x if row not in y}
    assert left == {("a", 2), ("b", 1)}

    # Sound: a user moves the sum by at most 1, and one row less of a user who has others would move it by 2.
    def release(rows, rng):
        counts = collections.Counter(row["who"] for row in rows)
        return sum((-1.0) ** count for count in counts.values()) + rng.laplace()

    noise_free = NoiseFree(as_subject(release), PureDP(1.0), 1)
    assert climb(noise_free, domain, 1, Limits(runs=200)).best[0].distance == 1.0


@pytest.mark.parametrize("adjacency", ["add_remove", "replace_one"])
def test_every_row_and_column_of_a_long_table_is_proposed(adjacency):
    frame = [{"n": float(k), "city": f"c{k}"} for k in range(60)]  # more rows and values than are listed
    domain = TableDomain.of_example(frame, adjacency)
    rng = np.random.default_rng(1)
    pairs = [(x, y) for _, x, y in domain.starts()] + [domain.random(rng) for _ in range(1_500)]
    assert {row["n"] for x, _ in pairs for row in x} >= set(map(float, range(60)))
    changed = [_left([repr(row) for row in x], [repr(row) for row in y]) for x, y in pairs]
    changed += [_left([repr(row) for row in y], [repr(row) for row in x]) for x, y in pairs]
    texts = {text for side in changed for text in side}
    assert {repr(row) for row in frame} <= texts
    for value in ("nan", "inf", "590.0", "'never-seen'", "None", "''"):
        assert any(value in text for text in texts)
    assert all(domain.is_pair(x, y) for x, y in pairs[::8])


def _left(texts, others):
    rest = list(others)
    return [text for text in texts if not (text in rest and not rest.remove(text))]


def test_a_strategy_gives_examples():
    guess = guess_domain(None, st.lists(st.integers(0, 3), min_size=1))
    assert isinstance(guess.domain, DatasetDomain) and "a strategy" in guess.text


def test_where_nothing_can_be_guessed_the_message_says_what_to_give():
    with pytest.raises(UsageError, match=r"pairs must be given.*'data' has no default value and no type.*--example"):
        guess_domain(lambda data, rng: 0)
    with pytest.raises(UsageError, match="user must be a column of a table, got 'u'"):
        guess_domain(None, [1, 2], user="u")


def test_the_command_guesses_searches_and_shows_a_small_difference(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ages.py").write_text(
        "def total(df, size, rng):\n    return df['age'].clip(0, 99).sum() + rng.laplace(size=size)\n"
    )
    (tmp_path / "ages.csv").write_text("age,city\n50,c\n20,d\n31,c\n")
    arguments = ["audit", "ages.py:total", "--claim", "eps=1", "--example", "ages.csv", "--seed", "1"]
    result = CliRunner().invoke(main, [*arguments, "--samples", "2000", "--search-budget", "4000"])
    assert result.exit_code == 1
    assert "guessed from the example; neighbours: one record is added or removed" in " ".join(result.stderr.split())
    assert "The broken pair made small: a smaller pair found" in " ".join(result.output.split())


def test_an_example_beside_pairs_is_a_usage_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.py").write_text("def release(data, size, rng):\n    return rng.laplace(size=size)\n")
    arguments = ["audit", "one.py:release", "--claim", "eps=1", "--pairs", "0,1", "--example", "x.csv"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2 and "example must be given without --pairs" in " ".join(result.stderr.split())
