"""Unread parts of outputs of public functions: numpy, pandas, scikit-learn, images, text, JSON, dates and others.

`python tests/bench/public_outputs.py` calls some hundred functions, each on two random inputs, reads what
they return, and writes by kind what was not read. An output is *silent* if it differs from that on the other input as
bytes, but neither its reading does, nor is anything named that was not read.
"""

from __future__ import annotations

import collections
import dataclasses
import datetime
import fractions
import functools
import importlib
import importlib.util
import inspect
import io
import itertools
import json
import pickle
import re
import statistics
import sys
import textwrap
import types
import warnings
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import SubjectError
from dpaudit.features.identity import identity
from dpaudit.features.outcomes import plain, unseen
from dpaudit.features.unread import unread
from dpaudit.subjects.plain import seen

Made = Callable[[np.random.Generator], Any]
SEEDS = 1, 2
MAX_BYTES = 200_000  # bytes of an output of a function that was not chosen by hand: larger ones are left out
WHERE = Path("docs/measurements/unread.md")
# Functions that write, wait, print, change settings, or return functions.
LEFT_OUT = re.compile(
    r"^_|save|load|file|set_|seterr|print|show|info|test|include|source|open|memmap|broadcast|nditer|iter|wrap|frompy|"
    r"from(string|buffer|regex|iter)|vectorize|piecewise|apply|plot|^hist$|to_(sql|excel|hdf|parquet|feather|orc|stata|"
    r"pickle|clipboard|gbq|xarray|latex|iceberg)|style|get_state|copyto|put|fill|resize|pipe|map|agg|transform|itemset"
)


@dataclasses.dataclass(frozen=True)
class Output:
    """Outputs of one function on two inputs, and what of them was not read."""

    kind: str
    name: str
    type_name: str
    not_read: tuple[str, ...]
    is_silent: bool


def outputs() -> Iterator[tuple[str, str, Made]]:
    """Kinds, names and functions; those of libraries that are installed."""
    yield from _of_module("numpy", np, _arrays)
    yield from _of_module("numpy", np.linalg, _arrays)
    yield from _of_module("numpy", np.fft, _arrays)
    yield from _of_module("numpy", np.random.Generator, lambda rng: [(rng,), (rng, 3), (rng, 2.0, 3.0)])
    yield from _of_module("text", str, lambda rng: [(_text(rng),), (_text(rng), "a"), (_text(rng), "a", "b")])
    yield from _of_module("text", textwrap, lambda rng: [(_text(rng),), (_text(rng), 20)])
    yield from _of_module("text", re, lambda rng: [("a.", _text(rng)), ("a.", "-", _text(rng))])
    yield from _of_module("bytes", bytes, lambda rng: [(rng.bytes(20),), (rng.bytes(20), b"a")])
    yield from _of_module("dates", datetime.datetime, lambda rng: [(_moment(rng),)])
    yield from _of_module("dates", datetime.date, lambda rng: [(_moment(rng).date(),)])
    yield from _of_module("statistics", statistics, lambda rng: [(rng.normal(size=9).tolist(),) * k for k in (1, 2)])
    yield from _of_module("numbers", int, lambda rng: [(int(rng.integers(2**60)),)])
    yield from _of_module("numbers", float, lambda rng: [(float(rng.normal()),)])
    yield from _of_module("numbers", fractions.Fraction, lambda rng: [(fractions.Fraction(int(rng.integers(99)), 7),)])
    yield from _by_hand()
    if importlib.util.find_spec("pandas"):
        pandas = importlib.import_module("pandas")
        yield from _of_module("pandas", pandas.Series, lambda rng: [(_series(rng, pandas),), (_series(rng, pandas), 2)])
        yield from _of_module(
            "pandas", pandas.DataFrame, lambda rng: [(_frame(rng, pandas),), (_frame(rng, pandas), "a")]
        )
        yield from _of_module("pandas", pandas, lambda rng: [(rng.integers(5, size=9),), (_frame(rng, pandas),)])
    if importlib.util.find_spec("scipy"):
        yield from _of_module("scipy", importlib.import_module("scipy.stats"), _arrays)
        yield from _of_module("scipy", importlib.import_module("scipy.signal"), _arrays)
        yield from _of_module("scipy", importlib.import_module("scipy.sparse"), _arrays)
    if importlib.util.find_spec("sklearn"):
        yield from _of_sklearn()
    if importlib.util.find_spec("PIL"):
        yield from _of_images()


def _of_module(
    kind: str, home: Any, arguments: Callable[[np.random.Generator], list[tuple[Any, ...]]]
) -> Iterator[Any]:
    """The public functions of a module or class that take one of these lists of arguments."""
    prefix = home.__name__.rpartition(".")[2]
    for name in sorted(vars(home)):
        function = getattr(home, name, None)
        if LEFT_OUT.search(name) or not callable(function) or inspect.isclass(function):
            continue
        for k in range(len(arguments(np.random.default_rng(0)))):

            def made(rng: np.random.Generator, function: Any = function, k: int = k) -> Any:
                return function(*arguments(rng)[k])

            try:
                value = made(np.random.default_rng(SEEDS[0]))
            except Exception:
                continue
            if value is None or isinstance(value, types.GeneratorType) or callable(value):
                continue
            if len(_bytes_of(value) or b"") > MAX_BYTES:
                continue
            yield kind, f"{prefix}.{name}", made
            break


def _arrays(rng: np.random.Generator) -> list[tuple[Any, ...]]:
    vector, matrix = rng.normal(size=9), rng.normal(size=(4, 4))
    whole = rng.integers(1, 9, size=9)
    return [(vector,), (vector, rng.normal(size=9)), (matrix,), (matrix, matrix), (whole,), (whole, whole), (vector, 2)]


def _text(rng: np.random.Generator) -> str:
    return " ".join(("alpha", "beta", "gamma", "42")[k] for k in rng.integers(4, size=30))


def _moment(rng: np.random.Generator) -> datetime.datetime:
    return datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=int(rng.integers(10**8)))


def _series(rng: np.random.Generator, pandas: Any) -> Any:
    return pandas.Series(rng.normal(size=6), index=list("abcdef"), name="v")


def _frame(rng: np.random.Generator, pandas: Any) -> Any:
    return pandas.DataFrame({"a": rng.normal(size=5), "b": rng.integers(9, size=5)})


def _by_hand() -> Iterator[tuple[str, str, Made]]:
    def rows(rng: np.random.Generator) -> list[dict[str, Any]]:
        return [{"n": int(rng.integers(9)), "v": float(rng.normal()), "t": "ab"[rng.integers(2)]} for _ in range(5)]

    yield "JSON", "json.dumps", lambda rng: json.dumps(rows(rng))
    yield "JSON", "json.dumps(indent=2)", lambda rng: json.dumps(rows(rng), indent=2)
    yield "JSON", "json.dumps(200 rows)", lambda rng: json.dumps([rows(rng) for _ in range(200)])
    yield "JSON", "json.loads", lambda rng: json.loads(json.dumps(rows(rng)))
    yield "bytes", "zlib.compress", lambda rng: zlib.compress(json.dumps(rows(rng)).encode())
    yield "bytes", "pickle.dumps", lambda rng: pickle.dumps(rows(rng))
    yield "bytes", "a megabyte", lambda rng: rng.bytes(10**6)
    yield "bytes", "io.BytesIO", lambda rng: io.BytesIO(rng.bytes(50))
    yield "containers", "collections.Counter", lambda rng: collections.Counter(_text(rng).split())
    yield "containers", "collections.deque", lambda rng: collections.deque(rng.normal(size=4).tolist())
    yield (
        "containers",
        "itertools.combinations",
        lambda rng: list(itertools.combinations(rng.normal(size=4).tolist(), 2)),
    )
    yield "containers", "range", lambda rng: range(int(rng.integers(9)))
    yield "containers", "slice", lambda rng: slice(int(rng.integers(9)), 20)
    yield "containers", "types.SimpleNamespace", lambda rng: types.SimpleNamespace(v=float(rng.normal()))
    yield "containers", "set of texts", lambda rng: set(_text(rng).split()[: int(rng.integers(1, 5))])
    yield "containers", "a list of 5,000", lambda rng: rng.normal(size=5_000).tolist()
    yield "text", "a text of 50,000 characters", lambda rng: _text(rng) * 400


def _of_sklearn() -> Iterator[tuple[str, str, Made]]:
    """Models that are fitted: what they predict, what they have learned, and the models themselves."""
    models = {
        "linear_model": ("LinearRegression", "Ridge", "Lasso", "LogisticRegression", "SGDClassifier", "Perceptron"),
        "tree": ("DecisionTreeClassifier", "DecisionTreeRegressor"),
        "naive_bayes": ("GaussianNB", "BernoulliNB"),
        "neighbors": ("KNeighborsClassifier", "NearestCentroid"),
        "cluster": ("KMeans", "DBSCAN"),
        "decomposition": ("PCA", "FastICA", "NMF"),
        "preprocessing": ("StandardScaler", "MinMaxScaler", "QuantileTransformer", "OneHotEncoder"),
        "ensemble": ("RandomForestClassifier", "GradientBoostingRegressor", "IsolationForest"),
        "svm": ("SVC", "LinearSVC"),
    }
    for home, names in models.items():
        module = importlib.import_module(f"sklearn.{home}")
        for name in names:

            def fitted(rng: np.random.Generator, home: Any = module, name: str = name) -> Any:
                kind = getattr(home, name)
                rows = np.abs(rng.normal(size=(20, 3)))
                model = kind(**({"n_estimators": 3} if "n_estimators" in inspect.signature(kind).parameters else {}))
                return model.fit(rows, (rows[:, 0] > np.median(rows[:, 0])).astype(int))

            yield "scikit-learn", name, fitted
            for what in ("predict", "predict_proba", "transform", "decision_function"):
                if hasattr(getattr(module, name), what):

                    def used(rng: np.random.Generator, fitted: Made = fitted, what: str = what) -> Any:
                        return getattr(fitted(rng), what)(np.abs(rng.normal(size=(4, 3))))

                    yield "scikit-learn", f"{name}.{what}", used


def _of_images() -> Iterator[tuple[str, str, Made]]:
    image = importlib.import_module("PIL.Image")

    def made(rng: np.random.Generator) -> Any:
        return image.fromarray(rng.integers(256, size=(8, 8), dtype=np.uint8))

    def called(rng: np.random.Generator, name: str) -> Any:
        return getattr(made(rng), name)()

    def written(rng: np.random.Generator, form: str) -> bytes:
        stream = io.BytesIO()
        made(rng).save(stream, form)
        return stream.getvalue()

    yield "images", "Image", made
    for name in ("histogram", "getbbox", "getextrema", "tobytes", "getcolors", "entropy"):
        yield "images", f"Image.{name}", functools.partial(called, name=name)
    for form in ("PNG", "JPEG", "BMP", "GIF", "TIFF"):
        yield "images", f"Image.save as {form}", functools.partial(written, form=form)


def read() -> list[Output]:
    """Every output, read."""
    found = []
    for kind, name, made in outputs():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                several = [made(np.random.default_rng(seed)) for seed in SEEDS]
            except Exception:  # of the other input it has none
                continue
            found.append(_looked_at(kind, name, several))
    return found


def _looked_at(kind: str, name: str, several: list[Any]) -> Output:
    type_name = type(several[0]).__qualname__
    before = [_bytes_of(value) for value in several]
    try:
        shown = [plain(seen(value)) for value in several]
        hidden = unseen(shown)
        named = [str(one.what) for one in unread(shown)] + ([f"all of a {hidden}"] if hidden else [])
        tokens = [identity(value) for value in shown]
    except SubjectError:
        return Output(kind, name, type_name, ("all: it is refused with a message",), False)
    differ = before[0] is not None and before[0] != before[1]
    return Output(kind, name, type_name, tuple(named), differ and tokens[0] == tokens[1] and not named)


def _bytes_of(value: Any) -> bytes | None:
    try:
        return pickle.dumps(value)
    except Exception:
        return None


def page(found: list[Output]) -> str:
    """The page of what was not read, as text."""
    kinds = sorted({one.kind for one in found})
    lines = [
        "# What is not read of public outputs",
        "",
        "Made by `python tests/bench/public_outputs.py`, which calls public functions on two random inputs",
        "and reads what they return. *Silent* is an output that differs between the inputs and is read as the same, of",
        "which nothing is named as not read. What is named stands in the notes of a report.",
        "",
        f"{len(found)} functions, {sum(not one.not_read for one in found)} read in full, "
        f"{sum(bool(one.not_read) for one in found)} in part, {sum(one.is_silent for one in found)} silent.",
        "",
        "| kind | outputs | read in full | silent |",
        "| --- | --- | --- | --- |",
    ]
    for kind in kinds:
        own = [one for one in found if one.kind == kind]
        full = sum(not one.not_read for one in own)
        lines.append(f"| {kind} | {len(own)} | {full} | {sum(one.is_silent for one in own)} |")
    lines += [
        "",
        "Beside what is read of an object stands its residual: what its class hands to pickle, less what was read.",
        "Of an output that is a number, or a list or an array of numbers, the class and type are not read: an integer",
        "reads as the float that it equals. Inside other outputs they are. They are named where outputs differ in",
        "them, as are the classes of keys and members, and the bits of NaN. Numpy's integers and floats of 64 bits,",
        "its booleans and its texts count as Python's. Of a masked array of single numbers, each an output, what is",
        "under the mask is not read.",
    ]
    lines += ["", "## Not read", "", "| kind | what | of |", "| --- | --- | --- |"]
    several: dict[tuple[str, str], list[str]] = {}
    for one in found:
        for what in one.not_read:
            several.setdefault((one.kind, what), []).append(one.name)
    for (kind, what), names in sorted(several.items()):
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        lines.append(f"| {kind} | {what} | {', '.join(names[:4])}{more} |")
    silent = [f"{one.kind}: {one.name} ({one.type_name})" for one in found if one.is_silent]
    if silent:
        lines += ["", "## Silent", "", *(f"- {each}" for each in silent)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    text = page(read())
    if "--print" in sys.argv:
        print(text)
    else:
        WHERE.write_text(text, encoding="utf-8")
