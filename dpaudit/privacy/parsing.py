"""The command line's texts for claims and pairs, read into objects.

Claims
------
    eps=1   epsilon=1            pure            rho=0.5           zCDP
    eps=1,delta=1e-6             approximate     order=2,rdp=0.3   Renyi
    mu=1                         Gaussian        metric=FILE       metric, see below

`tradeoff=FILE` is f-DP; behind it, `,ordered=yes` promises it of (x, x') alone, and `,remove=FILE` of adding a record,
with another file for removing one: see `dpaudit.privacy.trade_off`.

Behind each but a metric, `,adjacency=add_remove` (or `replace_one`, `either`, `given`) says which inputs are
neighbours: see `dpaudit.privacy.neighbours`. Numbers are decimal, or `inf`. `str(claim)` writes the same form, and
reading it gives back an equal claim.

Metric files
------------
`metric=FILE[,scale=NUMBER][,on=records]`: FILE ends in `.csv` or `.json`, is in UTF-8, names the points and gives
their budgets in nats.

* CSV, a square matrix: the first row is any word and then the ids; each further row is an id and its budgets, the ids
  in the same order. `inf` is a budget.
* CSV, coordinates: the first row is `id` and the names of the coordinates; each further row an id and its coordinates.
  Two that are named `lat,lon` (degrees) give great-circle kilometres, all others Euclidean distance.
* JSON: `{"ids": [...], "matrix": [[...]]}`, or `{"ids": [...], "coordinates": [[...]], "metric": "euclidean"}` (or
  `"geo"` for [latitude, longitude]). Without `"ids"` they are 0, 1, ... Infinity is `"inf"`. `"scale"` is optional.

`scale` multiplies everything: nats per unit of distance (per kilometre for places); 1 by default. A scale in the text
multiplies that of the file. In a CSV, an id that reads as a whole or decimal number is that number.

Pairs
-----
`x,x'` as JSON values (numbers, strings in double quotes, arrays, objects), several separated by `;`; or a JSON file
(its name ends in `.json`): `[[x, x'], ...]`, or `{"inputs": [...], "pairs": "all"}`, where `"pairs"` may also be a list
of positions `[[0, 1], ...]` and `"ids"` may name the inputs.
"""

from __future__ import annotations

import ast
import contextlib
import difflib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, overload

from dpaudit.errors import UsageError
from dpaudit.extensions import extension, names
from dpaudit.files import double, read_json, read_rows
from dpaudit.privacy.claims import (
    ApproxDP,
    Claim,
    GaussianDP,
    MetricDP,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    number_text,
)
from dpaudit.privacy.finite_metrics import MatrixMetric
from dpaudit.privacy.metrics import EuclideanMetric, GeoMetric, Metric
from dpaudit.privacy.neighbours import NeighbourClaim
from dpaudit.privacy.pairs import Pair, all_pairs, as_pairs, short_form

MAX_CHARACTERS = 80  # of a pair that a message shows in corrected form
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.ASCII)
_ADJACENCY = re.compile(r"(.*),\s*adjacency\s*=\s*(\S*)\s*", re.DOTALL)
GROUP = "dpaudit.claims"  # the entry-point group of other forms: NAME=TEXT
_FORMS = "eps=E", "eps=E,delta=D", "rho=R", "mu=M", "order=O,rdp=E", "metric=FILE"
_CLAIMS: dict[frozenset[str], Callable[..., Claim]] = {
    frozenset({"epsilon"}): PureDP,
    frozenset({"epsilon", "delta"}): ApproxDP,
    frozenset({"rho"}): ZeroConcentratedDP,
    frozenset({"mu"}): GaussianDP,
    frozenset({"order", "rdp"}): lambda order, rdp: RenyiDP(order, rdp),
}
_LETTERS = str.maketrans({"ε": "eps", "δ": "delta", "ρ": "rho", "μ": "mu"})
_KEYS = {"eps": "epsilon"} | {key: key for key in ("epsilon", "delta", "rho", "mu", "order", "rdp")}


@overload
def as_claim(claim: Claim | str) -> Claim: ...


@overload
def as_claim(claim: None) -> None: ...


def as_claim(claim: Claim | str | None) -> Claim | None:
    """A claim as a caller may give it: as it is, or the text for it; None stays None.

    Examples
    --------
    >>> as_claim("eps=1") == as_claim(PureDP(1.0))
    True
    """
    if isinstance(claim, str):
        return parse_claim(claim)
    if claim is not None and not isinstance(claim, Claim):
        raise UsageError(f"claim must be a Claim or a string such as 'eps=1', got {claim!r}.")
    return claim


def parse_claim(text: str) -> Claim:
    """The claim that a text names; the forms are in the module's docstring.

    Parameters
    ----------
    text : str
        For example `eps=1,delta=1e-6` or `metric=cities.csv,scale=0.01`.

    Examples
    --------
    >>> parse_claim("eps=1,delta=1e-6")
    ApproxDP(epsilon=1.0, delta=1e-06)
    >>> parse_claim("order=2,rdp=0.3")
    RenyiDP(order=2.0, epsilon=0.3)
    """
    if not isinstance(text, str):
        raise UsageError(f"claim must be a text such as 'eps=1', got {text!r}.")
    if stated := _ADJACENCY.fullmatch(text):
        claim = parse_claim(stated[1])
        with at(f"claim {text!r}"):
            return NeighbourClaim(claim, stated[2])  # type: ignore[arg-type]
    if text.strip().startswith("metric="):
        return _metric_claim(text.strip())
    form, equals, rest = (piece.strip() for piece in text.partition("="))
    if equals and form not in _KEYS and (read := extension(GROUP, form)) is not None:
        return _claim_of(read, rest, text)
    values: dict[str, float] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in _KEYS:
            place = f" at {text!r}" if part.strip() != text.strip() else ""
            raise UsageError(f"claim must be {_forms()}, got {part.strip()!r}{place}.{_meant(text)}")
        if _KEYS[key] in values:
            raise UsageError(f"claim must name each value once, got {part.strip()!r} again at {text!r}.")
        values[_KEYS[key]] = _read_number(key, value, f"claim {text!r}", text)
    build = _CLAIMS.get(frozenset(values))
    if build is None:
        raise UsageError(f"claim must be {_forms()}, got {text!r}.")
    with at(f"claim {text!r}"):
        return build(**values)


@contextlib.contextmanager
def at(where: str) -> Iterator[None]:
    """Say in an error where what is wrong was read, if it does not say so."""
    try:
        yield
    except UsageError as error:
        if where in str(error):
            raise
        text = str(error)  # behind advice the place would be read as a part of it
        raise UsageError(f"{text} (at {where})" if ". " in text else f"{text.removesuffix('.')} at {where}.") from error


def _forms() -> str:
    """Forms of a claim, in words."""
    known = [*_FORMS, *(f"{name}=..." for name in names(GROUP))]
    return f"{', '.join(known[:-1])} or {known[-1]}"


def _meant(text: str) -> str:
    """Claim that one with a slip may have meant, as a sentence with a space in front; "" where nothing is near.

    Slips are blanks or semicolons for commas, a colon for `=`, a second number without `delta=`, a number alone, Greek
    letters, and a key that is almost one.
    """
    letters = unicodedata.normalize("NFKC", text)  # keyboards have several of one Greek letter
    plain = re.sub(r"\s*[=:]\s*", "=", letters.translate(_LETTERS))
    parts = [part.strip() for part in re.split(r"[,;\s]+", plain) if part.strip()]
    parts = [f"eps={plain}"] if _NUMBER.fullmatch(plain) else parts
    if len(parts) == 2 and "=" in parts[0] and _NUMBER.fullmatch(parts[1]):
        parts[1] = f"delta={parts[1]}"
    pieces = [part.partition("=")[::2] for part in parts]
    near = [(next(iter(difflib.get_close_matches(key.lower(), _KEYS, 1)), ""), value) for key, value in pieces]
    said = ",".join(f"{key}={value}" for key, value in near)
    if said == text or not all(key and _NUMBER.fullmatch(value) for key, value in near):
        return ""
    try:
        parse_claim(said)
    except UsageError:
        return ""
    return f" Did you mean {said!r}?"


def _claim_of(read: Callable[[str], Claim], rest: str, text: str) -> Claim:
    """The claim of a form that a package adds."""
    with at(f"claim {text!r}"):
        claim = read(rest)
    if not isinstance(claim, Claim):
        raise UsageError(f"the form of a claim must give a Claim, got {claim!r:.80} at claim {text!r}.")
    return claim


def parse_pairs(text: str) -> Sequence[Pair]:
    """The pairs that a text or the JSON file that it names lists; the forms are in the module's docstring.

    Parameters
    ----------
    text : str
        For example `0,1`, `0,1; 1,2` or `pairs.json`.

    Examples
    --------
    >>> [(pair.x, pair.x_prime) for pair in parse_pairs('0,1; [1, 2],[1, 3]')]
    [(0, 1), ([1, 2], [1, 3])]
    """
    if not isinstance(text, str):
        raise UsageError(f"pairs must be a text such as '0,1', got {text!r}.")
    if text.strip().endswith(".json"):
        return _pairs_of_file(text.strip())
    pairs = []
    position = 0
    while True:
        x, position = _read_json(text, position)
        if text[position : position + 1] != ",":
            alone = "A pair is two inputs, with a ',' between them." if position == len(text) else "A ',' is due there."
            raise UsageError(_pairs_message(text, position, _in_brackets(x) or alone))
        x_prime, position = _read_json(text, position + 1)
        pairs.append((x, x_prime))
        if text[position : position + 1] not in ("", ";"):
            raise UsageError(_pairs_message(text, position, "A ';' is due there."))
        position += 1
        if not text[position:].strip():  # one `;` at the end is welcome
            return as_pairs(pairs)


def read_metric(path: str, scale: float = 1.0) -> MatrixMetric:
    """The metric that a CSV or JSON file holds; the formats are in the module's docstring.

    Parameters
    ----------
    path : str
        Ends in `.csv` or `.json`.
    scale : float
        Multiplies every budget, and the file's own scale; in (0, inf).

    Returns
    -------
    MatrixMetric
        Its name is the path, with the scale where that is not 1.
    """
    ids: list[Any] | None
    own_scale = 1.0
    if path.endswith(".csv"):
        ids, rows, kind = _csv_table(path)
    elif path.endswith(".json"):
        ids, rows, kind, own_scale = _json_table(path)
    else:
        raise UsageError(f"metric must be a file that ends in .csv or .json, got {path!r}.")
    label = path if scale == 1.0 else f"{path},scale={number_text(scale)}"
    total = scale * own_scale
    if not 0.0 < total < math.inf:
        raise UsageError(f"scale must be in (0, inf), got {number_text(total)} at {path!r}.")
    try:
        if kind == "matrix":
            budgets = [[total * value for value in row] for row in rows]
        else:
            metric: Metric = GeoMetric(total) if kind == "geo" else EuclideanMetric(total)
            budgets = metric.matrix(rows).tolist()
        return MatrixMetric(budgets, ids, label=label)
    except UsageError as error:
        raise UsageError(f"{error} This was read from {path!r}.") from error


def _metric_claim(text: str) -> MetricDP:
    path, *options = text.removeprefix("metric=").split(",")
    given: dict[str, str] = {}
    for part in options:
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or key not in ("scale", "on") or key in given:
            raise UsageError(
                f"claim must be metric=FILE[,scale=NUMBER][,on=records], got {part.strip()!r} at {text!r}."
            )
        given[key] = value
    if given.get("on", "inputs") not in ("inputs", "records"):
        raise UsageError(f"on must be 'inputs' or 'records', got {given['on']!r} at claim {text!r}.")
    on: Literal["inputs", "records"] = "records" if given.get("on") == "records" else "inputs"
    scale = _read_number("scale", given["scale"], f"claim {text!r}") if "scale" in given else 1.0
    return MetricDP(read_metric(path.strip(), scale), on=on)


def _read_number(name: str, value: str, where: str, claim: str = "") -> float:
    """The double that a text names, or inf; refused where it would become an infinity or a 0 that the text is not."""
    if not _NUMBER.fullmatch(value):
        raise UsageError(f"{name} must be a number, got {value!r} at {where}.{_meant(claim)}")
    try:
        return double(value)
    except ValueError as error:
        raise UsageError(f"{name} must be a number that a double holds, or inf, got {value!r} at {where}.") from error


def _csv_table(path: str) -> tuple[list[Any], list[list[float]], str]:
    lines = [row for row in read_rows("metric", path) if any(cell.strip() for cell in row)]
    if len(lines) < 2 or len(lines[0]) < 2:
        raise UsageError(f"metric must be a CSV file with a row of names and a row a point, got {path!r}.")
    names = [cell.strip() for cell in lines[0]]
    rows = []
    for line, row in enumerate(lines[1:], start=2):
        if len(row) != len(names):
            raise UsageError(
                f"metric must have {len(names)} cells in each row, got {len(row)} at row {line} of {path!r}."
            )
        rows.append([_read_number("metric", cell.strip(), f"row {line} of {path!r}") for cell in row[1:]])
    ids = [row[0].strip() for row in lines[1:]]
    if ids == names[1:]:
        kind = "matrix"
    elif names[0] == "id":
        kind = "geo" if names[1:] == ["lat", "lon"] else "euclidean"
    else:
        raise UsageError(
            f"metric must be a matrix with the same ids in its first row and column, or coordinates under a row that "
            f"begins with `id`, got {short_form(names)} and {short_form(ids)} at {path!r}."
        )
    return [_as_number(name) for name in ids], rows, kind


def _as_number(text: str) -> Any:
    """A CSV's id as the number that JSON would read it as (so that the pair `0,1` finds the ids 0 and 1), or itself."""
    return json.loads(text) if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text, re.ASCII) else text


def _json_table(path: str) -> tuple[list[Any] | None, list[list[float]], str, float]:
    content = read_json("metric", path)
    if not isinstance(content, dict) or len({"matrix", "coordinates"} & set(content)) != 1:
        raise UsageError(
            f"metric must be a JSON object with `matrix` or `coordinates`, got {short_form(content)} at {path!r}."
        )
    _check_keys("metric", content, {"ids", "matrix", "coordinates", "metric", "scale"}, path)
    kind = "matrix" if "matrix" in content else content.get("metric", "euclidean")
    if kind not in ("matrix", "euclidean", "geo") or ("matrix" in content and "metric" in content):
        shown = short_form(content["metric"])
        raise UsageError(f"`metric` must be 'euclidean' or 'geo', beside `coordinates`, got {shown} at {path!r}.")
    ids = content.get("ids")
    if ids is not None and not isinstance(ids, list):
        raise UsageError(f"`ids` must be a list, got {short_form(ids)} at {path!r}.")
    table = content["matrix" if kind == "matrix" else "coordinates"]
    if not isinstance(table, list) or not table or not all(isinstance(row, list) for row in table):
        raise UsageError(f"metric must be a list of rows of numbers, got {short_form(table)} at {path!r}.")
    rows = [[_json_number(cell, f"row {i} of {path!r}") for cell in row] for i, row in enumerate(table)]
    return ids, rows, kind, _json_number(content.get("scale", 1.0), repr(path))


def _check_keys(name: str, content: Mapping[str, Any], known: set[str], path: str) -> None:
    if unknown := sorted(set(content) - known):
        raise UsageError(f"{name} must have keys among {sorted(known)}, got {unknown[0]!r} at {path!r}.")


def _json_number(value: Any, where: str) -> float:
    if value == "inf":
        return math.inf
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f'metric must be of numbers or "inf", got {value!r} at {where}.')
    try:
        return float(value)
    except OverflowError:
        raise UsageError(
            f"metric must be of numbers up to the largest double, got {short_form(value)} at {where}."
        ) from None


def _read_json(text: str, position: int) -> tuple[Any, int]:
    start = _after_spaces(text, position)
    try:
        value, end = json.JSONDecoder(parse_float=double).raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        hint = _as_json(text) or "Write strings in double quotes, and close every bracket."
        hint = f"{error}." if type(error) is ValueError else hint  # of a number, and not of the form
        raise UsageError(_pairs_message(text, start, hint)) from error
    return value, _after_spaces(text, end)


def _as_json(text: str) -> str:
    """Advice on how to write pairs in Python's brackets and quotes, or of bare words; "" where they are neither."""
    pairs: list[Any] = []
    try:
        for piece in text.split(";"):
            value = _literal(piece)
            is_list = isinstance(value, list) and all(isinstance(one, list | tuple) for one in value)
            pairs += value if is_list else [value]
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
            return ""
        shown = _written(pairs)
        parse_pairs(shown)
    except (TypeError, ValueError):
        return ""
    return f"Write `{shown}`." if len(shown) <= MAX_CHARACTERS else ""


def _written(pairs: Sequence[Any]) -> str:
    """Pairs as a text for them."""
    return "; ".join(",".join(json.dumps(one, ensure_ascii=False) for one in pair) for pair in pairs)


def _literal(piece: str) -> Any:
    """A literal of Python, or words and numbers with commas between them; `ValueError` where it is neither."""
    try:
        return ast.literal_eval(piece.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        words = [word.strip() for word in piece.split(",")]
        if not all(re.fullmatch(r"[\w.@ -]+", word) for word in words):
            raise ValueError(f"{piece!r} must be words") from None
        return [_as_number(word) for word in words]


def _in_brackets(value: Any) -> str:
    """Advice for a list in the place of one pair or of several; empty for other values."""
    entries = value if isinstance(value, list) else []
    ways = [[entries]] if len(entries) == 2 else []
    if entries and all(isinstance(entry, list) and len(entry) == 2 for entry in entries):
        ways.append(entries)
    shown = [f"`{text}`" if len(text) <= MAX_CHARACTERS else "no brackets around it" for text in map(_written, ways)]
    whole = f"{json.dumps(value, ensure_ascii=False)},x'"
    if shown and len(whole) <= MAX_CHARACTERS:
        shown.append(f"`{whole}` if that is one input")
    return f"Write {' or '.join(dict.fromkeys(shown))}." if shown else ""


def _pairs_message(text: str, position: int, hint: str) -> str:
    where = f"character {position + 1}" if position < len(text) else "its end"
    condition = "`x,x'` as JSON values, several separated by `;`, or a .json file"
    return f"pairs must be {condition}, got {text!r} at {where}. {hint}"


def _after_spaces(text: str, position: int) -> int:
    return len(text) - len(text[position:].lstrip())


def _pairs_of_file(path: str) -> Sequence[Pair]:
    content = read_json("pairs", path)
    if isinstance(content, list):
        for position, entry in enumerate(content):
            if not isinstance(entry, list) or len(entry) != 2:
                raise UsageError(f"pairs must be [x, x'], got {short_form(entry)} at position {position} of {path!r}.")
        with at(repr(path)):
            return as_pairs(content)
    if not isinstance(content, dict) or not isinstance(content.get("inputs"), list):
        form = '[[x, x\'], ...] or {"inputs": [...], "pairs": "all"}'
        raise UsageError(f"pairs must be a JSON file {form}, got {short_form(content)} at {path!r}.")
    _check_keys("pairs", content, {"inputs", "pairs", "ids"}, path)
    ids = content.get("ids")
    if ids is not None and not (isinstance(ids, list) and all(isinstance(name, str) for name in ids)):
        raise UsageError(f"`ids` must be a list of texts, got {short_form(ids)} at {path!r}.")
    with at(repr(path)):
        return _chosen_pairs(content["inputs"], content.get("pairs", "all"), ids)


def _chosen_pairs(inputs: list[Any], chosen: Any, ids: Sequence[str] | None) -> Sequence[Pair]:
    everything = all_pairs(inputs, ids)  # checks inputs and ids as well
    if chosen == "all":
        return everything
    if not isinstance(chosen, list):
        raise UsageError(f"`pairs` must be 'all' or a list of positions [i, j], got {short_form(chosen)}.")
    names = ids if ids is not None else [short_form(value) for value in inputs]
    result = []
    for position, entry in enumerate(chosen):
        is_pair = isinstance(entry, list) and len(entry) == 2 and all(type(index) is int for index in entry)
        if not is_pair or not all(0 <= index < len(inputs) for index in entry) or entry[0] == entry[1]:
            condition = f"two different positions [i, j] from 0 to {len(inputs) - 1}"
            raise UsageError(f"`pairs`[{position}] must be {condition}, got {short_form(entry)}.")
        i, j = entry
        result.append(Pair(inputs[i], inputs[j], x_id=names[i], x_prime_id=names[j]))
    return as_pairs(result)
