"""Checks that a mechanism refuses what makes no sense: to return anything for it tells of the data, or hides a mistake.

To refuse is to raise. A mechanism that is called once a draw refuses if every call raises.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from typing import Any

import numpy as np

from dpaudit.conformance.case import BUDGET_NAMES, Case, all_failed, fail, shown
from dpaudit.conformance.outcomes import CheckSkipped
from dpaudit.privacy.pairs import short_form

SIZE = 2
ADVICE = "Raise an error such as ValueError."


def refuses_nan(case: Case) -> str | None:
    """NaN in place of one number of the input."""
    return _refuses_number(case, "refuses_nan", [math.nan])


def refuses_infinity(case: Case) -> str | None:
    """An infinity in place of one number of the input."""
    return _refuses_number(case, "refuses_infinity", [math.inf, -math.inf])


def _refuses_number(case: Case, name: str, values: list[float]) -> str | None:
    wrong = [changed for data in case.inputs for value in values for changed in _with_number(data, value)]
    if not wrong:
        raise CheckSkipped("the inputs have no numbers in a place that is known")
    for data in wrong:
        _must_refuse(case, data, name)
    return None


def _with_number(data: Any, value: float) -> Iterable[Any]:
    """The input with `value` in its first and in its last place."""
    if isinstance(data, numbers.Real) and not isinstance(data, bool):
        return [value]
    if isinstance(data, np.ndarray) and data.dtype.kind in "iuf" and data.size:
        arrays = []
        for place in sorted({0, data.size - 1}):
            array = data.astype(float)
            array.flat[place] = value
            arrays.append(array)
        return arrays
    if isinstance(data, list | tuple) and data:
        kind = type(data)
        found: list[Any] = []
        for place in sorted({0, len(data) - 1}):
            for changed in _with_number(data[place], value):
                items = [*data[:place], changed, *data[place + 1 :]]
                found.append(items if kind is list else tuple(items))
        return found
    return []


def refuses_wrong_shape(case: Case) -> str | None:
    """Several inputs in place of one; for vectors and counts also one number too many or too few."""
    kind = case.input_kind
    if kind == "other":
        raise CheckSkipped("the inputs are neither numbers nor sequences; state input_kind")
    wrong: list[Any] = []
    for data in case.inputs[:2]:
        wrong += [[data, data], np.array([data, data])]
        if kind in ("vector", "counts"):
            items = list(data)
            wrong += [items[:-1], [*items, items[-1]], items[0]]
        if kind == "position":
            wrong += [-1, 0.5]
    for data in wrong:
        _must_refuse(case, data, "refuses_wrong_shape")
    if kind == "sequence":
        return "of any length: state input_kind = 'vector' or 'counts' to have the length checked"
    return None


def refuses_negative_counts(case: Case) -> str | None:
    """One count of -1, and one more elsewhere: the total is right, so only the sign is wrong."""
    if case.input_kind != "counts":
        raise CheckSkipped("the mechanism does not state input_kind = 'counts'")
    tried = 0
    for data in case.inputs:
        counts = [float(value) for value in data]
        if len(counts) < 2:
            continue
        tried += 1
        low = int(np.argmin(counts))
        other = 0 if low else 1
        counts[other] += counts[low] + 1.0
        counts[low] = -1.0
        wrong = [int(value) if value % 1 == 0 else value for value in counts]
        _must_refuse(case, type(data)(wrong) if isinstance(data, list | tuple) else np.array(wrong),
                     "refuses_negative_counts")  # fmt: skip
    if not tried:
        raise CheckSkipped("the inputs have fewer than two counts")
    return None


def refuses_bad_budgets(case: Case) -> str | None:
    """NaN and negative values of the budget's parameters: at construction, or at the latest in a call."""
    parameters = case.parameters()
    tried = 0
    for name in BUDGET_NAMES:
        for value in _bad_values(parameters.get(name)):
            tried += 1
            if not _is_refused(case, name, value):
                fail(f"{name} must be refused where it makes no sense, got a mechanism for {name} = "
                     f"{short_form(value)}. {ADVICE}")  # fmt: skip
    if not tried:
        raise CheckSkipped(f"the constructor has no number or matrix named {', '.join(BUDGET_NAMES)}")
    return None


def _bad_values(value: Any) -> list[Any]:
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return [math.nan, -1.0]
    if isinstance(value, np.ndarray) and value.ndim == 2 and len(value) > 1:
        bad = []
        for entry in (math.nan, -1.0):
            changed = value.astype(float)
            changed[0, 1] = changed[1, 0] = entry
            bad.append(changed)
        return bad
    return []


def _is_refused(case: Case, name: str, value: Any) -> bool:
    try:
        with np.errstate(all="ignore"):
            mechanism = case.rebuilt(**{name: value})
            outputs = case.draw(case.inputs[0], SIZE, "refuses_bad_budgets", subject=case.with_mechanism(mechanism))
    except CheckSkipped:
        raise
    except Exception:
        return True
    return all_failed(outputs)


def _must_refuse(case: Case, data: Any, name: str) -> None:
    try:
        with np.errstate(all="ignore"):
            outputs = case.draw(data, SIZE, name)
    except Exception:
        return
    if not all_failed(outputs):
        answer = shown([short_form(output) if hasattr(output, "__len__") else output for output in outputs], SIZE)
        fail(f"data must be refused where it makes no sense, got outputs {answer} for {short_form(data)}. {ADVICE}")
