"""Adjacency: which inputs count as neighbours, as the list of pairs that an audit asks.

Conventions
-----------
* A dataset is a sequence of rows (list, tuple or array, first axis the rows); its neighbours have the same type.
* Rows have an order, which mechanisms may read. `add_remove` lists additions at the end only: those in front and in the
  middle are neighbours too, which `dpaudit.domains.DatasetDomain` tries (or list them with `explicit`).
* The relations are unordered: each pair is listed once, with the given dataset as `x`. A claim is asked of it in both
  directions.
* `replace_one` keeps the number of rows (the bounded model); `add_remove` changes it by one (the unbounded model).

Source: `dpaudit_mechanisms/papers/dx-linear-queries.toml`, DX-D10.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import number
from dpaudit.privacy.metrics import budget_matrix, is_same
from dpaudit.privacy.pairs import Pair, as_pairs, input_names, short_form


def replace_one(dataset: Sequence[Any], domain: Sequence[Any]) -> list[Pair]:
    """The dataset against each dataset with one row replaced by another value of the domain.

    Parameters
    ----------
    dataset : sequence of rows
        At least one row, each in the domain.
    domain : sequence
        All values that a row can take, at least two, none repeated.

    Returns
    -------
    list of Pair
        rows * (values - 1) pairs, row by row.

    Examples
    --------
    >>> [pair.x_prime for pair in replace_one((0, 1), domain=(0, 1))]
    [(1, 1), (0, 0)]
    """
    rows, values = _rows_and_values(dataset, domain, at_least=2)
    if not rows:
        raise UsageError("dataset must have at least one row, got none.")
    return as_pairs(
        Pair(
            dataset,
            typed_rows(dataset, [*rows[:i], value, *rows[i + 1 :]]),
            x_prime_id=f"row {i} = {short_form(value)}",
        )
        for i, row in enumerate(rows)
        for value in values
        if not is_same(row, value)
    )


def add_remove(dataset: Sequence[Any], domain: Sequence[Any]) -> list[Pair]:
    """The dataset against each dataset with one row removed, or one value of the domain added at the end.

    Parameters
    ----------
    dataset : sequence of rows
        May be empty.
    domain : sequence
        All values that a row can take, at least one, none repeated.

    Returns
    -------
    list of Pair
        rows + values pairs: first the removals, row by row, then the additions.

    Examples
    --------
    >>> [pair.x_prime for pair in add_remove((0, 1), domain=(0, 1))]
    [(1,), (0,), (0, 1, 0), (0, 1, 1)]
    """
    rows, values = _rows_and_values(dataset, domain, at_least=1)
    removed = [
        Pair(dataset, typed_rows(dataset, [*rows[:i], *rows[i + 1 :]]), x_prime_id=f"without row {i}")
        for i in range(len(rows))
    ]
    added = [
        Pair(dataset, typed_rows(dataset, [*rows, value]), x_prime_id=f"with {short_form(value)}") for value in values
    ]
    return as_pairs([*removed, *added])


def within(
    metric: Any,
    inputs: Sequence[Any],
    *,
    at_most: float,
    at_least: float = 0.0,
    ids: Sequence[str] | None = None,
) -> list[Pair]:
    """Every unordered pair of inputs whose budget lies in [at_least, at_most].

    Parameters
    ----------
    metric : Metric
        Any symmetric callable (x, x_prime) -> budget in nats.
    inputs : sequence
        At least two inputs.
    at_most, at_least : float
        In [0, inf], nats. At most infinity keeps the pairs that are not asked, too.
    ids : sequence of str, optional
        As for `all_pairs`.

    Returns
    -------
    list of Pair
        In the order of the inputs, never empty.

    Examples
    --------
    >>> [(pair.x, pair.x_prime) for pair in within(lambda x, y: abs(x - y), [0, 1, 3], at_most=2, at_least=1.5)]
    [(1, 3)]
    """
    most = number("at_most", at_most, "in [0, inf]", lambda value: value >= 0.0)
    least = number("at_least", at_least, "in [0, at_most]", lambda value: 0.0 <= value <= most)
    names = input_names(inputs, ids)
    budgets = budget_matrix(metric, inputs)
    rows, columns = np.triu_indices(len(inputs), k=1)
    values = budgets[rows, columns]
    for k in np.flatnonzero(~(values >= 0.0))[:1].tolist():  # a pair without a budget must not be left out
        pair = f"{names[rows[k]]}|{names[columns[k]]}"
        raise UsageError(f"metric must give budgets in [0, inf] nats, got {float(values[k])!r} for {pair}.")
    kept = (values >= least) & (values <= most)
    if not kept.any():
        spread = f"the budgets lie in [{float(values.min())!r}, {float(values.max())!r}]"
        raise UsageError(f"at_most must leave at least one pair of inputs, got [{least!r}, {most!r}]: {spread}.")
    return as_pairs(
        Pair(inputs[i], inputs[j], x_id=names[i], x_prime_id=names[j])
        for i, j in zip(rows[kept].tolist(), columns[kept].tolist(), strict=True)
    )


def explicit(pairs: Iterable[Any]) -> list[Pair]:
    """The pairs that the caller lists, each a `Pair` or (x, x_prime).

    Examples
    --------
    >>> explicit([(0.0, 1.0)])[0].id
    '0.0|1.0'
    """
    return as_pairs(pairs)


def _rows_and_values(dataset: Any, domain: Any, at_least: int) -> tuple[list[Any], list[Any]]:
    """The rows of a dataset and the values of its domain, checked."""
    is_array = isinstance(dataset, np.ndarray) and dataset.ndim > 0
    if not (isinstance(dataset, list | tuple) or is_array):
        raise UsageError(f"dataset must be a list, tuple or array of rows, got {short_form(dataset)}.")
    values = list(domain)
    if len(values) < at_least:
        raise UsageError(f"domain must have at least {at_least} values, got {len(values)}.")
    for i, value in enumerate(values):
        if any(is_same(value, other) for other in values[:i]):
            raise UsageError(f"domain must not repeat a value, got {short_form(value)} at position {i}.")
    for i, row in enumerate(dataset):
        if not any(is_same(row, value) for value in values):
            raise UsageError(f"dataset must have rows in the domain, got {short_form(row)} at row {i}.")
    return list(dataset), values


def typed_rows(dataset: Any, rows: list[Any]) -> Any:
    """The rows as the type of `dataset` (list, tuple or array); an array widens its type if a new row needs it."""
    if isinstance(dataset, tuple):
        return tuple(rows)
    if isinstance(dataset, list):
        return rows
    if not rows:
        return dataset[:0].copy()
    result = np.array(rows)
    return result.astype(np.result_type(dataset, result)) if result.dtype != object else result
