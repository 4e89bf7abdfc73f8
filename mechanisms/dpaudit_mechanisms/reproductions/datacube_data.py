"""Records of Adult and NLTCS: from a user's files, and synthetic ones with the same domains.

Adult (UCI): eight attributes of 9, 16, 7, 15, 6, 5, 2 and 2 values, 23 bits in the binary encoding. NLTCS (StatLib):
16 binary measures of disability. No records come with this package.
"""

import csv
import dataclasses
from pathlib import Path

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.datacubes.domains import Domain
from dpaudit_mechanisms.inputs import FloatArray, IntArray

ADULT = Domain(
    (9, 16, 7, 15, 6, 5, 2, 2),
    ("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex", "salary"),
)
NLTCS = Domain((2,) * 16)
DOMAINS = {"Adult": ADULT, "NLTCS": NLTCS}
TOTALS = {"Adult": 32_561, "NLTCS": 21_576}  # of the paper's records
UCI_COLUMNS = (1, 3, 5, 6, 7, 8, 9, 14)  # of the 15 of adult.data, as UCI distributes it
# Made up: a few kinds of people for Adult, one scale of disability for NLTCS, so that attributes hang together.
KINDS, SKEW, THRESHOLDS = 6, 1.2, (-0.5, 2.5)


@dataclasses.dataclass(frozen=True, eq=False)
class Records:
    """A histogram over a domain, with the number of records and where they are from.

    `first` has the histogram of the first records, as many as the paper has, where a file has more of them.
    """

    name: str
    counts: FloatArray
    source: str
    first: FloatArray | None = None

    @property
    def domain(self) -> Domain:
        """The domain, categorical for Adult."""
        return DOMAINS[self.name]

    @property
    def total(self) -> int:
        """Number of records."""
        return int(self.counts.sum())


def datasets(path: str, rng: np.random.Generator) -> list[Records]:
    """Adult and NLTCS: those of the files that are given, and synthetic ones in place of the others.

    Parameters
    ----------
    path : str
        A file with the records of one of them, a folder with `adult.csv`, `nltcs.csv` or both, or "" for neither.

    Raises
    ------
    UsageError
        If a file cannot be read or has the records of neither, or a folder has no such file.
    """
    found: dict[str, Records] = {}
    for place in _files(path):
        records = from_file(place)
        if records.name in found:
            raise UsageError(f"data must have one file of {records.name}, got another one, {str(place)!r}.")
        found[records.name] = records
    return [found.get(name) or synthetic(name, rng) for name in DOMAINS]


def from_file(path: str | Path) -> Records:
    """Records of one file with comma-separated values; which of the two they are is seen from the number of columns.

    16 columns of 0 and 1 are NLTCS; 8 columns of codes from 0 are Adult, in the order of `ADULT`; 15 columns are Adult
    as UCI distributes it, its values coded in alphabetical order. A header of codes is left out, and UCI's line "|...".

    Raises
    ------
    UsageError
        If it is none of these.
    """
    place = Path(path)
    try:
        with open(place, encoding="utf-8", newline="") as lines:
            rows = [[cell.strip() for cell in row] for row in csv.reader(lines) if row and row[0][:1] != "|"]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"data must be a readable file of records, got {str(place)!r} ({error}).") from error
    widths = {len(row) for row in rows}
    width = widths.pop() if len(widths) == 1 else 0
    if width == 15:
        name, codes = "Adult", _uci_codes(rows)
    elif width in (8, 16):
        name = "Adult" if width == 8 else "NLTCS"
        body = rows if _is_number(rows[0][0]) else rows[1:]
        try:
            codes = np.array(body, dtype=float).reshape(-1, width)
        except ValueError as error:
            raise UsageError(f"data must have numeric codes, got {str(place)!r} ({error}).") from error
    else:
        raise UsageError(f"data must have rows of 8, 15 (Adult) or 16 (NLTCS) columns, got {str(place)!r}.")
    if len(codes) == 0:
        raise UsageError(f"data must have records, got none in {str(place)!r}.")
    try:
        counts = DOMAINS[name].histogram(codes)
        first = DOMAINS[name].histogram(codes[: TOTALS[name]]) if len(codes) > TOTALS[name] else None
    except UsageError as error:
        sizes = ", ".join(map(str, DOMAINS[name].sizes))
        raise UsageError(f"data must be {name} with {sizes} values, got {str(place)!r} ({error}).") from error
    return Records(name, counts, f"{len(codes):,} records of the given file", first)


def synthetic(name: str, rng: np.random.Generator) -> Records:
    """Made-up records, as many as the paper's, with attributes that depend on each other.

    Examples
    --------
    >>> records = synthetic("NLTCS", np.random.default_rng(0))
    >>> records.total, records.counts.size
    (21576, 65536)
    """
    total, domain = TOTALS[name], DOMAINS[name]
    if name == "NLTCS":
        severity = rng.normal(size=(total, 1))
        codes = (severity + 0.6 * rng.normal(size=(total, 16)) > np.linspace(*THRESHOLDS, 16)).astype(np.int64)
    else:
        kind = rng.integers(KINDS, size=total)
        codes = np.stack([_column(size, kind, rng) for size in domain.sizes], axis=1)
    return Records(name, domain.histogram(codes), f"{total:,} synthetic records (no file was given)")


def _column(size: int, kind: IntArray, rng: np.random.Generator) -> IntArray:
    """Values of one attribute, from a skewed law of each kind, by inversion."""
    weights = np.exp(SKEW * rng.normal(size=(KINDS, size)))
    ends = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    return np.asarray((rng.random(size=(len(kind), 1)) > ends[kind, :-1]).sum(axis=1), dtype=np.int64)


def _files(path: str) -> list[Path]:
    place = Path(path)
    if not path or not place.is_dir():
        return [place] if path else []
    files = [place / name for name in ("adult.csv", "nltcs.csv") if (place / name).is_file()]
    if not files:
        raise UsageError(f"data must be a folder with adult.csv or nltcs.csv, got {path!r}.")
    return files


def _uci_codes(rows: list[list[str]]) -> FloatArray:
    columns = []
    for column, size in zip(UCI_COLUMNS, ADULT.sizes, strict=True):
        values = [row[column].rstrip(".") for row in rows]  # the test records of UCI end in a full stop
        names = sorted(set(values))
        if len(names) > size:
            raise UsageError(f"data must have at most {size} values in column {column}, got {len(names)}.")
        columns.append([names.index(value) for value in values])
    return np.array(columns, dtype=float).T


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
