"""Example tables with very many columns, rows or odd cells: refused, or read in a bounded time."""

from __future__ import annotations

import json
import time

import pytest

from dpaudit.cli.searching import read_example
from dpaudit.errors import UsageError
from dpaudit.files import LIMITS
from dpaudit.privacy.metrics import is_same
from dpaudit.subjects.domains import TableDomain
from dpaudit.subjects.domains.domain import distinct

SECONDS = 60.0  # a hundred times what it takes here; what is compared two and two took hours


def written(tmp_path, kind, columns):
    place = tmp_path / f"wide.{kind}"
    if kind == "csv":
        place.write_text(",".join(f"c{k}" for k in range(columns)) + "\n" + ",".join("1" * columns) + "\n")
    elif kind == "json":
        place.write_text(json.dumps([dict.fromkeys((f"c{k}" for k in range(columns)), 1)]))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.table({f"c{k}": [1] for k in range(columns)}), place)
    return str(place)


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_table_of_more_columns_than_the_limit_is_refused_by_the_reader(tmp_path, kind):
    columns = 300_000 if kind != "parquet" else LIMITS.columns + 1
    with pytest.raises(UsageError, match="example must have at most 10,000 columns"):
        read_example(written(tmp_path, kind, columns))


def test_a_row_longer_than_the_header_is_refused_too(tmp_path):
    (tmp_path / "long.csv").write_text("a\n" + "1," * 300_000 + "1\n")
    with pytest.raises(UsageError, match="at most 10,000 columns"):
        read_example(str(tmp_path / "long.csv"))


def test_two_columns_of_one_name_are_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table([[1], [2]], names=["a", "a"]), tmp_path / "a.parquet")
    with pytest.raises(UsageError, match="columns of different names"):
        read_example(str(tmp_path / "a.parquet"))


@pytest.mark.parametrize(
    "example",
    [
        [dict.fromkeys((f"c{k}" for k in range(LIMITS.columns)), 1.5)],
        [{"a": k} for k in range(300_000)],
        [{"a": f"t{k}"} for k in range(300_000)],
        [{"a": [k]} for k in range(100_000)],
        [{"a": {"b": k}, "c": None} for k in range(100_000)],
    ],
    ids=["columns", "numbers", "texts", "lists", "dictionaries"],
)
def test_a_table_within_the_limits_is_a_domain_in_a_bounded_time(example):
    began = time.perf_counter()
    domain = TableDomain.of_example(example)
    starts = [next(iter_) for iter_ in [domain.starts()] for _ in range(3)]
    assert len(starts) == 3 and time.perf_counter() - began < SECONDS


def test_equal_values_are_found_whatever_their_types():
    import numpy as np

    nan, odd = float("nan"), np.array([1.0])
    values = [1, True, 1.0, np.float64(1.0), nan, np.float64("nan"), "1", b"1", (1, nan), (1, nan), odd, [1], [1], None]
    one_by_one = []
    for value in values:
        if not any(is_same(value, other) for other in one_by_one):
            one_by_one.append(value)
    assert list(map(repr, distinct(values))) == list(map(repr, one_by_one)) and len(one_by_one) == 7
    assert distinct(iter([3, 2, 3, 1]), 2) == [3, 2]
