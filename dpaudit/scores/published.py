"""Audits of a published table: from it, the records that it was made of, and a holdout; no mechanism, no canaries.

Records are taken to be independent draws of one law, of which some were released from (real) and others were not
(holdout). Pair real records with holdout ones at random. Given the two records of each pair, and all other records, a
fair coin for each pair has said which of the two was in the table, since either was as likely: the design `paired` of
one run. The loss that is bounded is that of replacing one record.

A score is a function of the release, of a record, and of all records together without their sides. Two attacks share
the error rate evenly:

* nearest: how much nearer the record is to the release than to the other records, real or holdout. It finds copies.
* marginals: the log likelihood of the record's pairs of values in the release, less that among all records.

What is bounded is the loss that *these attacks* show of *this release*. A better attack may show more; and a bound
that is above a claim refutes the claim only if records are exchangeable: a holdout of another year is another law."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.arguments import check_options
from dpaudit.errors import UsageError
from dpaudit.files import read_rows
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.scores.auditing import audit_scores
from dpaudit.scores.result import ScoresResult

Table = Sequence[Sequence[Any]]
ATTACKS = ("nearest", "marginals")
BINS = 16  # of a column of many numbers, for marginals: as many pairs of bins as a thousand rows fill
MAX_PAIRS = 60  # of columns; the others are left out
EXCHANGEABLE = (
    "Records of the real table and of the holdout are independent draws of one law: nothing that they show has parted "
    "the two."
)
UNTESTED = "Whether rows are answered independently of each other was not tested: no order of pairs would show it."
OF_ATTACKS = "The bounds are for what two attacks (nearest row, pairs of values) show of this one release."


def audit_published(
    released: Table | str | os.PathLike[str],
    real: Table | str | os.PathLike[str],
    holdout: Table | str | os.PathLike[str],
    claim: Claim | str,
    confidence: float = 0.95,
    seed: int | None = None,
    assume: str = "nothing",
) -> ScoresResult:
    """Audit a released table by how well it tells real records from holdout ones.

    Parameters
    ----------
    released, real, holdout : list of rows, or path of a CSV file with a header
        Of the same columns. A column whose values are all numbers is one of numbers, any other one of categories.
    claim : Claim or str
        What the release promises for one record that is replaced.
    confidence, seed, assume
        As of `dpaudit.audit_scores`. The seed draws the places and the order of equal scores.

    Returns
    -------
    ScoresResult
        Of the attack whose bound is larger.

    Raises
    ------
    UsageError
        If the tables have other columns than each other, or one is empty.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> real, holdout = rng.normal(size=(2, 300, 4))
    >>> audit_published(real.tolist(), real.tolist(), holdout.tolist(), "eps=1").verdict  # a copy
    'violated'
    >>> audit_published(rng.normal(size=(300, 4)).tolist(), real.tolist(), holdout.tolist(), "eps=1").verdict
    'not_refuted'
    """
    check_options(confidence=confidence, seed=seed)
    given = (("released", released), ("real", real), ("holdout", holdout))
    headers, tables = map(list, zip(*(_rows(name, table) for name, table in given), strict=True))
    columns = _columns(headers, tables)
    released_rows, real_rows, holdout_rows = map(len, tables)
    records = np.arange(released_rows, released_rows + real_rows + holdout_rows)
    rng = np.random.default_rng(np.random.SeedSequence(0 if seed is None else seed, spawn_key=(4,)))
    pairs = min(real_rows, holdout_rows)
    found = []
    real_places, holdout_places = rng.permutation(real_rows)[:pairs], real_rows + rng.permutation(holdout_rows)[:pairs]
    for attack in (nearest_scores, marginal_scores):
        scores = attack(columns, np.arange(released_rows), records)
        each = 1.0 - (1.0 - confidence) / len(ATTACKS)
        found.append(
            audit_scores(scores[real_places], scores[holdout_places], claim, "paired", each, seed, assume=assume)
        )
    # The order of canaries was drawn: what a test of it says is left out before an attack is chosen.
    untested = [
        dataclasses.replace(one, independent=one.independent and dataclasses.replace(one.independent, p_value=None))
        for one in found
    ]
    best = int(np.argmax([result.decisive.parameter_lower for result in untested]))
    result, second = untested[best], found[best].independent
    of_order = () if second is None else second.notes(assume)
    return dataclasses.replace(
        result,
        confidence=confidence,
        guesses=tuple(dataclasses.replace(one, share=one.share / len(ATTACKS)) for one in result.guesses),
        assumptions=(EXCHANGEABLE, *result.assumptions[2:]),
        notes=(
            f"{OF_ATTACKS} The larger one is of: {ATTACKS[best]}.",
            UNTESTED,
            *(n for n in result.notes if n not in of_order),
        ),
    )


def nearest_scores(columns: list[FloatArray], released: NDArray[np.intp], records: NDArray[np.intp]) -> FloatArray:
    """Log ratio of each record's distances to the nearest other record and released row, shape (records,).

    Numbers are compared by their ranks among all rows; categories that differ are as far apart as the two ends.
    """
    points = np.concatenate([_place(column) for column in columns], axis=1)
    near = scipy.spatial.cKDTree(points[released]).query(points[records], p=1.0)[0]
    others = scipy.spatial.cKDTree(points[records]).query(points[records], k=2, p=1.0)[0][:, 1]
    smallest = 0.5 / len(points)
    return np.asarray(np.log(others + smallest) - np.log(near + smallest))


def _place(column: FloatArray) -> FloatArray:
    """Coordinates of a column in [0, 1]: ranks of numbers, or half an indicator of each category (codes below 0)."""
    if (column < 0.0).all():
        return np.asarray(0.5 * (column[:, None] == np.unique(column)))
    return np.asarray((scipy.stats.rankdata(column)[:, None] - 1.0) / max(len(column) - 1, 1))


def marginal_scores(columns: list[FloatArray], released: NDArray[np.intp], records: NDArray[np.intp]) -> FloatArray:
    """Log likelihood ratios of each record's pairs of values: in the release against all records; shape (records,)."""
    cells = []
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        if codes.max() >= BINS and not (column < 0.0).all():
            codes = (scipy.stats.rankdata(column) - 1.0).astype(np.int64) * BINS // len(column)
        cells.append(codes)
    total = np.zeros(len(records))
    pairs = list(itertools.combinations(range(len(cells)), 2)) or [(0, 0)]
    for first, second in pairs[:MAX_PAIRS]:
        _, code = np.unique(cells[first] * (cells[second].max() + 1) + cells[second], return_inverse=True)
        size = int(code.max()) + 1
        share = [(np.bincount(code[of], minlength=size) + 0.5) / (len(of) + 0.5 * size) for of in (released, records)]
        total += np.log(share[0] / share[1])[code[records]]
    return total


def _rows(name: str, table: Table | str | os.PathLike[str]) -> tuple[list[str] | None, list[list[Any]]]:
    """The header of a table, None if it is no file, and its rows."""
    header = None
    if isinstance(table, str | os.PathLike):
        header, *rows = read_rows(name, table) or [[]]
        if any(_number(cell) is not None for cell in header):
            raise UsageError(f"{name} must have a header of names, got {header!r} at {os.fspath(table)}.")
    else:
        rows = [list(row) for row in table]
    if not rows:
        raise UsageError(f"{name} must have at least one row, got none.")
    widths = {len(row) for row in rows}
    if len(widths) != 1 or widths == {0}:
        raise UsageError(f"{name} must have as many values in each row, got {sorted(widths)}.")
    return header, rows


def _columns(headers: list[list[str] | None], tables: list[list[list[Any]]]) -> list[FloatArray]:
    """All rows of all tables, column by column: numbers moved to be at least 0, categories as codes below 0."""
    widths = [len(rows[0]) for rows in tables]
    if len(set(widths)) != 1:
        raise UsageError(f"released, real and holdout must have the same columns, got {widths} of them.")
    named = [header for header in headers if header is not None]
    if any(header != named[0] for header in named):
        raise UsageError(f"released, real and holdout must have the same columns in one order, got {named}.")
    found = []
    for column in zip(*itertools.chain(*tables), strict=True):
        numbers = [_number(value) for value in column]
        if any(number is None for number in numbers):
            _, codes = np.unique([str(value) for value in column], return_inverse=True)
            found.append(-1.0 - codes.astype(float))
        else:
            values = np.array(numbers, dtype=float)
            found.append(values - values.min())
    return found


def _number(value: Any) -> float | None:
    """A finite number, or the text of one; None for anything else."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None
