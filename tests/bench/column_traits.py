"""Columns at random, and what marks an event in them: ends, intervals, values that recur, columns together.

A trait is a score of rows, shape (size, columns), and a change of the background: values that recur, crowded spots. The
upper tail of the score is one half of an event, the lower tail the other half.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.privacy.claims import FloatArray

RNG = np.random.Generator
Draw = Callable[[int, RNG], Any]  # so many rows of the background, shape (size, columns)
Score = Callable[[FloatArray], Any]  # rows to their scores, shape (size,)
Alter = Callable[[FloatArray, RNG], Any]  # rows to rows of which more lie in the event
Trait = tuple[str, Score, Alter]  # what marks an event: in words, its score, what the background needs for it
Laws = dict[str, Callable[[float, int, RNG], Any]]  # (parameter in [0, 1), size, rng) to values of one column

SHARE = 0.35  # of the background in values and spots that recur: above the largest mass of a leak
LIGHT: Laws = {
    "normal": lambda p, n, r: r.standard_normal(n),
    "Laplace": lambda p, n, r: r.laplace(size=n),
    "uniform": lambda p, n, r: r.uniform(-1.7, 1.7, n),
    "two-humped": lambda p, n, r: r.choice((-1.0, 1.0), n) * (1.0 + p) + 0.5 * r.standard_normal(n),
}
SYMMETRIC: Laws = LIGHT | {"heavy-tailed": lambda p, n, r: r.standard_t(1.5 + 3.0 * p, n)}
NUMBERS: Laws = SYMMETRIC | {
    "gamma": lambda p, n, r: r.gamma(0.5 + 4.0 * p, size=n),
    "lopsided": lambda p, n, r: 3.0 * (r.random(n) < 0.1 + 0.3 * p) + r.standard_normal(n),
}
COUNTS: Laws = {
    "Poisson": lambda p, n, r: r.poisson(3.0 + 30.0 * p, n),
    "geometric": lambda p, n, r: r.geometric(0.05 + 0.25 * p, n),
    "uniform integer": lambda p, n, r: r.integers(0, 12 + int(100 * p), n),
}
ANSWERS: Laws = {"five-level": lambda p, n, r: r.integers(-2, 3, n)}
BITS: Laws = {"bit": lambda p, n, r: r.random(n) < 0.5}
MARKS = np.array([[0.0], [1.0], [-1.0], [-7.0], [100.0], [255.0], [999.0], [-99.0], [1e6]])
KEEP: Alter = lambda rows, rng: rows  # noqa: E731


def columns(rng: RNG, laws: Laws, width: int, alone: Sequence[int] = ()) -> tuple[str, Draw, Score]:
    """Columns at any scale, in words first, and the map back to unit scale.

    Columns have one law or a law each, and may share noise. Those in `alone` share no noise: then all have one law.
    """
    names = rng.choice(sorted(laws), 1 if len(alone) or rng.random() < 0.5 else width).tolist()
    own = [functools.partial(laws[name], rng.random()) for name in names]
    is_scaled = float("normal" in laws)
    shared = np.full(width, is_scaled * (width > 1) * rng.choice((0.0, 0.5, 1.0)))
    shared[list(alone)] = 0.0
    scale = 10.0 ** (is_scaled * rng.uniform(-3.0, 4.0, width))
    shift = is_scaled * 3.0 * scale * rng.standard_normal(width)

    def draw(size: int, r: RNG) -> FloatArray:
        rows = np.stack([own[k % len(own)](size, r) for k in range(width)], axis=1)
        rows = rows + shared * r.standard_normal((size, 1)) if shared.any() else rows
        return np.asarray(shift + scale * rows)

    return "/".join(sorted(set(names))), draw, lambda rows: (rows - shift) / scale


def moved(points: FloatArray, width: float) -> Alter:
    """Moves a share of the rows to one of the points each, at most a width away."""

    def alter(rows: FloatArray, rng: RNG) -> FloatArray:
        near = points[rng.integers(0, len(points), len(rows))] + width * rng.uniform(-1.0, 1.0, rows.shape)
        return np.where(rng.random((len(rows), 1)) < SHARE, near, rows)

    return alter


def ends(rng: RNG, typical: FloatArray) -> Trait:
    """Two ends of a column, as it is or clipped, or an end and the level next to it."""
    sign = rng.choice((-1.0, 1.0))
    words = str(rng.choice(("two ends", "two ends, clipped", "an end and the level by it")))
    low, high = np.quantile(typical, (rng.uniform(0.02, 0.15), rng.uniform(0.85, 0.98)), method="nearest")
    edge = np.quantile(sign * typical, rng.uniform(0.7, 0.75), method="nearest")
    beyond: Score = lambda x: sign * x[:, 0] - edge  # noqa: E731
    if words.startswith("an end"):  # A is beyond the edge, B just before it
        return words, lambda x: np.where(beyond(x) > 0.0, beyond(x), -1.0 / (1e-9 + np.abs(beyond(x)))), KEEP
    return words, beyond, (lambda x, r: np.clip(x, low, high)) if "clipped" in words and low < high else KEEP


def intervals(rng: RNG, typical: FloatArray) -> Trait:
    """From 2 to 16 pieces of a column: around typical values, in narrow crowded spots, or side by side."""
    known = np.unique(typical)
    pairs = min(int(rng.integers(1, 9)), max(1, len(known) // 4))
    way = str(rng.choice(("pieces", "narrow spots", "bands side by side"))) if len(known) > 200 else "pieces"
    decades = rng.uniform(2.0, 5.0) if way == "narrow spots" else rng.uniform(0.0, 2.0)
    width = np.ptp(np.quantile(typical, (0.25, 0.75))) * 10.0**-decades + 1e-9
    centres, signs = rng.choice(known, 2 * pairs, replace=False), rng.permutation(np.repeat((1.0, -1.0), pairs))
    centres = centres[0] + 2.0 * width * np.arange(2 * pairs) if way == "bands side by side" else centres
    widths = width * (rng.uniform(0.3, 3.0, 2 * pairs) if way == "pieces" else 1.0)

    def score(rows: FloatArray) -> FloatArray:
        gaps = np.abs(rows - centres) / widths
        return np.asarray(signs[gaps.argmin(axis=1)] / (1.0 + gaps.min(axis=1)))

    return f"{2 * pairs} {way}", score, KEEP if way == "pieces" else moved(centres[:, None], width)


def values(rng: RNG, typical: FloatArray) -> Trait:
    """Values or rows that recur: some in A, some in B, some in neither; typical ones, or marks such as -1 and 999."""
    is_marked = typical.shape[1] == 1 and rng.random() < 0.4
    known = MARKS if is_marked else np.unique(typical, axis=0)
    pairs, neutral = rng.integers((1, 0), min(3, len(known) // 3) + 1)
    signs = np.repeat((1.0, -1.0, 0.0), (pairs, pairs, neutral))
    points = rng.choice(known, len(signs), replace=False)
    words = f"{2 * pairs} of {len(signs)} {'marks' if is_marked else 'values'} that recur"
    return words, lambda x: signs @ np.array([(x == v).all(axis=1) for v in points]), moved(points, 0.0)


def together(rng: RNG, form: str, laws: Laws, width: int) -> tuple[str, Draw, Score]:
    """Columns that tell only together (two, or three to four: each alone has one law in A and B), or a direction."""
    if form == "direction":
        words, draw, units = columns(rng, laws, width)
        weights = rng.choice((-1.0, 1.0), width) * rng.uniform(0.5, 1.5, width)
        weights[rng.permutation(width)[: rng.integers(0, width // 2)]] = 0.0
        name = f"weighted sum of {np.count_nonzero(weights)} of {width} columns ({words})"
        return name, draw, lambda x: units(x) @ weights
    count, waves = 2 if form.startswith("two") else int(rng.integers(3, 5)), int(rng.integers(1, 4))
    chosen = rng.permutation(width)[:count]
    words, draw, units = columns(rng, laws, width, chosen.tolist())
    ways: dict[str, Score] = {"parity of signs": lambda u: np.sign(u).prod(axis=1) * np.abs(u).min(axis=1)}
    if laws is BITS:  # the last bit says whether the others count
        ways = {"parity": lambda u: (2.0 * u[:, :-1] - 1.0).prod(axis=1) * u[:, -1]}
    elif count == 2:
        ways["diagonals"] = lambda u: np.subtract(*1.0 / (0.01 + np.abs(u[:, 0] + np.array([[-1.0], [1.0]]) * u[:, 1])))
        ways["sectors"] = lambda u: np.sin(2 * waves * np.arctan2(u[:, 0], u[:, 1])).round(9) * np.hypot(*u.T)
    elif laws is ANSWERS:
        ways["remainder"] = lambda u: 1.0 * (u.sum(axis=1) % 5 == waves) - (u.sum(axis=1) % 5 == 0)
    else:  # the sign is that of the permutation which sorts the columns
        ways["order"] = lambda u: np.prod([u[:, i] - u[:, k] for i in range(count) for k in range(i)], axis=0)
    way = str(rng.choice(sorted(ways)))
    name = f"{way} of columns {', '.join(map(str, sorted(chosen.tolist())))} of {width} ({words})"
    return name, draw, lambda rows: ways[way](units(rows)[:, chosen])


def marked(draw: Draw, trait: Trait, at: slice, decimals: int | None = None) -> tuple[Draw, Score]:
    """The background with a trait in these columns, and the score of its rows."""

    def background(size: int, rng: RNG) -> FloatArray:
        rows = draw(size, rng)
        altered = trait[2](rows[:, at], rng)
        rows[:, at] = altered if decimals is None else np.round(altered, decimals)
        return np.asarray(rows)

    return background, lambda rows: trait[1](rows[:, at])
