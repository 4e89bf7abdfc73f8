"""Trips of New York's taxis by pick-up zone: the zones' boroughs, counts from a user's file, and synthetic ones.

The Taxi and Limousine Commission numbers its zones from 1 to 263; its published lookup table gives each its borough.
264 and 265 stand for "unknown", and are left out. No trips come with this package.
"""

import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
from dpaudit_mechanisms.inputs import FloatArray

COLUMN = "PULocationID"
BOROUGHS = {"X": "Bronx", "K": "Brooklyn", "E": "EWR", "M": "Manhattan", "Q": "Queens", "S": "Staten Island"}
# The borough of each zone, in the order of the zones: 90 a line.
ZONES = (
    "EQXMSSQQQQKMMKQQKXQXKKSMKKQQKQXXKKKKKQKKMMMSMXXMKMXKQKKQQXXXKKKQKKKMXQKKQMMKKXMKXQQSKQMMKM"
    "KQQXQQKQSMQQMMMKMKSSKKMMSMQSXMQQKQMXMMQQQQKQQXMQQMMMMMQQXMKKMMMKKSQMXQMMMMKMXXXMQSQXQSKKQQ"
    "KXXXXMSKKKQQQMKQQQXXQMQSQSQXMKMXXSQQKQQXSKQMKQKKMMMMMMXMMMMXXXMMSMXXMXSQQXKKKQXQMMM"
)
TOTAL = 2_979_431  # rows of the paper's file
SHARES = {"M": 0.895, "Q": 0.085, "K": 0.014, "X": 0.004, "E": 0.0012, "S": 0.0008}  # of synthetic trips, made up
SPREAD = 1.8  # standard deviation of the log of a zone's weight within its borough, made up


def tree() -> Hierarchy:
    """City, six boroughs, 263 zones: 270 nodes on three levels."""
    return Hierarchy.of_sizes([ZONES.count(letter) for letter in BOROUGHS])


def order() -> np.ndarray[Any, np.dtype[np.intp]]:
    """The zones, as positions from 0, in the order of the tree's leaves: borough by borough."""
    return np.concatenate([np.flatnonzero(np.array(list(ZONES)) == letter) for letter in BOROUGHS])


def synthetic(rng: np.random.Generator) -> FloatArray:
    """Counts of 263 zones with the paper's total, in the order of the leaves: shares of boroughs, log-normal zones."""
    weights = []
    for letter in BOROUGHS:
        own = np.exp(SPREAD * rng.normal(size=ZONES.count(letter)))
        weights.append(SHARES[letter] * own / own.sum())
    chances = np.concatenate(weights)
    return rng.multinomial(TOTAL, chances / chances.sum()).astype(float)


def from_file(path: str) -> tuple[FloatArray, int]:
    """Counts of the zones in the order of the leaves, and the number of rows without a zone.

    Parameters
    ----------
    path : str
        A `.parquet` file (needs pyarrow), or `.csv` or `.csv.gz` with a header; with a column PULocationID.

    Raises
    ------
    UsageError
        If the file cannot be read, has no such column, or no trip of a zone.
    """
    place = Path(path)
    try:
        numbers = _parquet(place) if place.suffix == ".parquet" else _csv(place)
    except UsageError:
        raise
    except (OSError, ValueError, OverflowError, EOFError, csv.Error) as error:
        raise UsageError(f"data must be a readable file of trips, got {path!r} ({error}).") from error
    is_whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    if not is_whole.all():
        raise UsageError(f"data must have whole numbers in {COLUMN}, got {numbers[~is_whole][0]}.")
    values = numbers.astype(np.int64)
    inside = (values >= 1) & (values <= len(ZONES))
    if not inside.any():
        raise UsageError(f"data must have trips of the zones 1 to {len(ZONES)}, got none in {path!r}.")
    counts = np.bincount(values[inside] - 1, minlength=len(ZONES)).astype(float)
    return counts[order()], int((~inside).sum())


def _parquet(place: Path) -> FloatArray:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise UsageError("data must be a .csv file where pyarrow is not installed: pip install pyarrow.") from None
    names = parquet.read_schema(place).names
    if COLUMN not in names:
        raise UsageError(f"data must have a column {COLUMN}, got {names}.")
    column = parquet.read_table(place, columns=[COLUMN]).column(COLUMN).fill_null(0)
    return np.asarray(column.to_numpy(), dtype=float)


def _csv(place: Path) -> FloatArray:
    open_it = gzip.open if place.suffix == ".gz" else open
    with open_it(place, "rt", encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines)
        if COLUMN not in (reader.fieldnames or []):
            raise UsageError(f"data must have a column {COLUMN}, got {reader.fieldnames}.")
        return np.array([float(row[COLUMN] or 0) for row in reader])
