"""No file takes more memory or time than its reader says, whatever it claims to hold: many columns, rows or cells."""

import io
import json
import os
import resource
import struct
import subprocess
import sys
import time
import zipfile

import numpy as np
import pytest

from dpaudit import files
from dpaudit.cli.searching import read_example
from dpaudit.errors import UsageError
from dpaudit.files import LIMITS, read_array, read_bytes, read_json, read_rows, read_toml
from dpaudit.privacy.metrics import is_same
from dpaudit.subjects.domains import TableDomain
from dpaudit.subjects.domains.domain import distinct

MAX_TAKEN = 3 << 30  # bytes: what a reader may take, the interpreter and its libraries included


def npy(shape, dtype="<f8", content=b"", order=False):
    """An npy file whose header claims what it does not hold."""
    header = repr({"descr": dtype, "fortran_order": order, "shape": shape}).encode()
    header += b" " * (64 - (10 + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def zipped(content, name="a.npy", kind=zipfile.ZIP_DEFLATED, times=1):
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", kind) as archive:
        for k in range(times):
            archive.writestr(name if times == 1 else f"{k}.npy", content)
    return into.getvalue()


ARRAYS = {
    "a header that claims 10^10 numbers": npy((10**10,)),
    "numbers of no size": npy((10**10,), "|V0"),
    "texts of no size": npy((10**9,), "<U0"),
    "a product beyond 64 bits": npy((2**62, 2**62)),
    "a negative length": npy((-1,)),
    "objects": npy((1,), "|O", b"\x80\x04N."),
    "records": npy((1,), [("a", "<f8")], bytes(8)),
    "zeros that were compressed": zipped(npy((90_000_000,), "|b1", bytes(90_000_000))),
    "a header in an archive": zipped(npy((10**10,))),
    "another compression": zipped(npy((1,), content=bytes(8)), kind=zipfile.ZIP_LZMA),
    "many arrays": zipped(b"", times=1_001),
    "a torn archive": zipped(npy((1,), content=bytes(8)))[:-30],
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_an_array_takes_what_is_there_and_not_what_it_claims(tmp_path, kind):
    place = tmp_path / "a.npz"
    place.write_bytes(ARRAYS[kind])
    with pytest.raises(UsageError, match="scores_in must"):
        found = read_array("scores_in", place)
        for read in found.values():
            read()
    from dpaudit.scores.reading import as_scores

    with pytest.raises(UsageError, match="scores_in must"):
        as_scores("scores_in", place)


@pytest.mark.parametrize("array", [np.arange(5.0), np.arange(6).reshape(2, 3).T, np.array(["1", "2.5"]), np.zeros(0)])
def test_arrays_are_read_as_numpy_reads_them(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "b.npz", one=array, other=array)
    np.savez_compressed(tmp_path / "c.npz", one=array)
    assert np.array_equal(read_array("a", tmp_path / "a.npy"), array)
    assert [np.array_equal(one(), array) for one in read_array("b", tmp_path / "b.npz").values()] == [True, True]
    assert np.array_equal(read_array("c", tmp_path / "c.npz")["one"](), array)


TEXTS = {
    "a list of lists": (read_json, b"[" + b"[]," * 6_000_000 + b"[]]"),
    "a deep list": (read_json, b"[" * 10_000_000),
    "an integer of a million digits": (read_json, b"1" * 1_000_000),
    "no text": (read_json, b"\xff\xfe"),
    "a dotted key": (read_toml, b"a." * 100_000 + b"a=1"),
    "a deep table": (read_toml, b"a=" + b"[" * 100_000),
    "a large table": (read_toml, b"# " + b"x" * (1 << 19)),
    "a row of six million cells": (read_rows, b"," * 6_000_000),
    "a cell of a megabyte": (read_rows, b'"' + b"a" * (1 << 20) + b'"'),
    "an empty name": (read_bytes, None),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_texts_are_bounded_in_what_they_are_parsed_to(tmp_path, kind):
    read, content = TEXTS[kind]
    place = tmp_path / ("a\0b" if content is None else "a")
    if content is not None:
        place.write_bytes(content)
    with pytest.raises(UsageError, match="x must"):
        read("x", place)


def test_what_has_no_end_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, "/dev/zero", tmp_path / "none"):
        with pytest.raises(UsageError, match=r"x must be a (regular|readable) file"):
            read_bytes("x", place)
    with open(tmp_path / "sparse", "wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(UsageError, match="at most"):
        read_bytes("x", tmp_path / "sparse")


@pytest.mark.parametrize("case", ["repeated", "rows", "example"])
def test_parquet_is_bounded_in_rows_and_in_what_it_is_expanded_to(tmp_path, case):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    place = tmp_path / "a.parquet"
    indices, value = {  # 20 GB of texts, from dictionaries of one
        "repeated": (20_000, "x" * 1_000_000), "example": (20_000, "x" * 1_000_000),
        "rows": (6_000_000, 1.5),
    }[case]  # fmt: skip
    column = pyarrow.DictionaryArray.from_arrays(np.zeros(indices, dtype=np.int32), [value])
    parquet.write_table(pyarrow.table({"a": column}), place, compression="zstd", store_schema=False)
    assert place.stat().st_size < 4 << 20
    code = (
        "import sys; from dpaudit.errors import UsageError\n"
        "from dpaudit.scores.reading import as_scores; from dpaudit.cli.searching import read_example\n"
        "try: print(len((read_example if sys.argv[2] == 'example' else lambda x: as_scores('a', x))(sys.argv[1])))\n"
        "except UsageError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(place), case], capture_output=True, text=True, timeout=300, check=False
    )
    taken = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    assert done.returncode == 0 and done.stdout.startswith(("a must", "example must")), done
    assert taken < MAX_TAKEN and len(done.stdout) < 1_000


def test_the_limit_of_memory_ends_with_the_reader(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_AS)
    (tmp_path / "a").write_text("[1, 2]")
    assert read_json("x", tmp_path / "a") == [1, 2]
    with pytest.raises(UsageError, match="takes at most 2,048 MiB"), files.parsing("x", "JSON", "here"):
        np.ones(1 << 40)
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.mark.parametrize("shape", ["(" * 300, "'" * 3, "\\\n", "{" * 3_000])
def test_what_a_header_makes_its_parser_raise_is_a_usage_error(tmp_path, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    (tmp_path / "a.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * 80)
    with pytest.raises(UsageError, match="a must be an npy file"):
        files.read_array("a", tmp_path / "a.npy")


# --- example tables ---

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
    nan, odd = float("nan"), np.array([1.0])
    values = [1, True, 1.0, np.float64(1.0), nan, np.float64("nan"), "1", b"1", (1, nan), (1, nan), odd, [1], [1], None]
    one_by_one = []
    for value in values:
        if not any(is_same(value, other) for other in one_by_one):
            one_by_one.append(value)
    assert list(map(repr, distinct(values))) == list(map(repr, one_by_one)) and len(one_by_one) == 7
    assert distinct(iter([3, 2, 3, 1]), 2) == [3, 2]
