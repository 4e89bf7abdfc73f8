"""IBM's diffprivlib as subjects: its mechanisms, its selection mechanisms, its tools and its models.

The library takes a `random_state`, so it is given one that reads the audit's own streams: every audit can be replayed.
(Without one, its mechanisms read the operating system's entropy. The samplers behind it are the same, and so are the
53-bit uniforms they start from.)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, PureDP
from dpaudit.privacy.neighbours import Adjacency, joined_rows
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.libraries import estimators
from dpaudit.subjects.libraries.library_mechanism import (
    claim_of,
    import_library,
    library_subject,
    listed,
    or_unknown,
    real_distance,
    steps_of,
)
from dpaudit.subjects.parameters import legacy_state

PACKAGE = "diffprivlib"
# The relation for which each tool and model calibrates its noise, as its code has it (0.6.6): counts of cells change by
# 1 where a record is added or removed; sums, means and variances by the width of the bounds where one is replaced, and
# their range shows the number of records; ranks by 1 at most in either case.
ADJACENCY: dict[str, Adjacency] = {
    **dict.fromkeys(("histogram", "histogramdd", "histogram2d"), "add_remove"),
    **dict.fromkeys(("sum", "nansum", "count_nonzero", "mean", "nanmean"), "replace_one"),
    **dict.fromkeys(("var", "nanvar", "std", "nanstd"), "replace_one"),
    **dict.fromkeys(("quantile", "percentile", "median"), "either"),
    **dict.fromkeys(("LinearRegression", "LogisticRegression", "StandardScaler"), "replace_one"),
    **dict.fromkeys(("RandomForestClassifier", "DecisionTreeClassifier"), "add_remove"),
}


def subject(mechanism: Any, *, claim: Claim | str | None = None, name: str | None = None) -> Subject:
    """The subject of a mechanism that randomises a value: `mechanism.randomise(data)`.

    Its claim is its `epsilon` and `delta`. Where it has a `sensitivity`, that is of inputs so far apart at most, and
    others are several steps apart.

    Parameters
    ----------
    mechanism : diffprivlib.mechanisms.DPMechanism
        Copied with the same parameters and the audit's randomness for every batch; one call a draw inside.
    """
    import_library("diffprivlib.mechanisms", PACKAGE)
    if not callable(getattr(mechanism, "randomise", None)) or not hasattr(mechanism, "epsilon"):
        raise UsageError(f"mechanism must be one of diffprivlib.mechanisms, got {type(mechanism).__name__}.")
    kind = type(mechanism)
    names = [one for one in inspect.getfullargspec(kind).kwonlyargs if one != "random_state"]
    parameters = {one: getattr(mechanism, one) for one in names}

    def draw(data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        fresh = kind(random_state=legacy_state(rng), **parameters)  # what it keeps cannot come from another batch
        return [fresh.randomise(data) for _ in range(size)]

    steps, own = steps_of(getattr(mechanism, "sensitivity", None), real_distance), stated_claim(mechanism)
    text = f"{kind.__name__}({listed(parameters)})"
    return library_subject(PACKAGE, text, draw, name or kind.__name__, claim=claim, own=own, steps=steps)


def selection(kind: Any, *, claim: Claim | str | None = None, name: str | None = None, **parameters: Any) -> Subject:
    """The subject of a selection mechanism: an input is the list of utilities, an output the chosen position.

    Parameters
    ----------
    kind : class
        `diffprivlib.mechanisms.Exponential` or `PermuteAndFlip`.
    claim : Claim or str, optional
        Audited instead of its own epsilon. It holds for lists at most `sensitivity` apart in every utility; with
        `monotonic=True` only where all utilities move in one direction.
    **parameters
        Of the class, without `utility` and `random_state`; `epsilon` and `sensitivity` among them.
    """
    import_library("diffprivlib.mechanisms", PACKAGE)
    if not isinstance(kind, type) or "utility" not in inspect.signature(kind).parameters:
        raise UsageError(f"kind must be a class of diffprivlib that takes utilities, got {kind!r}.")
    if not {"epsilon", "sensitivity"} <= parameters.keys():
        raise UsageError(f"parameters must have epsilon and sensitivity, got {', '.join(parameters) or 'none'}.")

    def draw(data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        state = legacy_state(rng)
        mechanism = kind(utility=[float(value) for value in data], random_state=state, **parameters)
        return [mechanism.randomise() for _ in range(size)]

    def apart(x: Any, x_prime: Any) -> float | None:
        # A monotonic mechanism spends its epsilon in one direction: there and back is twice as far.
        gaps = _gaps(x, x_prime)
        return None if gaps is None else or_unknown(sum(gaps) if parameters.get("monotonic") else max(gaps))

    steps, own = steps_of(parameters["sensitivity"], apart), PureDP(parameters["epsilon"])
    text = f"{kind.__name__}({listed(parameters)})"
    return library_subject(PACKAGE, text, draw, name or kind.__name__, claim=claim, own=own, steps=steps)


def tool(
    function: Callable[..., Any],
    *,
    claim: Claim | str | None = None,
    read: Callable[[Any], Any] | None = None,
    adjacency: Adjacency | None = None,
    name: str | None = None,
    **parameters: Any,
) -> Subject:
    """The subject of a function of `diffprivlib.tools`: `function(data, **parameters)`, called once a draw.

    Parameters
    ----------
    function : callable
    read : callable, optional
        What of its result is the output: all of it by default.
    adjacency : str, optional
        The relation for which it calibrates its noise (`dpaudit.privacy.neighbours`); by default that of `ADJACENCY`.
    **parameters
        Of the function; `epsilon` is its default where it is not given. An input that is a dict is passed by keyword.
    """
    import_library("diffprivlib.tools", PACKAGE)
    accountant = import_library("diffprivlib.accountant", PACKAGE).BudgetAccountant
    known = inspect.signature(function).parameters
    if "epsilon" not in known or "random_state" not in known:
        raise UsageError(f"function must be one of diffprivlib.tools, got {function!r}.")

    def draw(data: Any, rng: np.random.Generator) -> Any:
        # An accountant a call: the default one remembers every call of the process.
        options = {**parameters, "random_state": legacy_state(rng), "accountant": accountant()}
        result = function(**data, **options) if isinstance(data, dict) else function(np.asarray(data), **options)
        return result if read is None else read(result)

    return library_subject(
        PACKAGE,
        f"{function.__name__}({listed(parameters)})",
        draw,
        name or function.__name__,
        claim=claim,
        own=PureDP(parameters.get("epsilon", known["epsilon"].default)),
        adjacency=adjacency or ADJACENCY.get(function.__name__),
        rows=joined_rows,
        parts=(read,),
    )


def model(
    estimator: Any,
    read: Sequence[str] | Callable[[Any], Any],
    *,
    fit: Callable[[Any, Any], Any] | None = None,
    claim: Claim | str | None = None,
    adjacency: Adjacency | None = None,
    name: str | None = None,
) -> Subject:
    """The subject of a model of `diffprivlib.models`, as `estimators.subject`; its claim is its `epsilon`.

    Its relation is that of `ADJACENCY` unless another one is stated.
    """
    return estimators.subject(
        estimator,
        read,
        fit=fit,
        claim=claim,
        own=stated_claim(estimator),
        adjacency=adjacency or ADJACENCY.get(type(estimator).__name__),
        fresh={"accountant": import_library("diffprivlib.accountant", PACKAGE).BudgetAccountant},
        name=name,
    )


def stated_claim(mechanism: Any) -> Claim:
    """The claim of a mechanism's or a model's own `epsilon` and `delta`."""
    epsilon, delta = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", 0.0)
    if epsilon is None:
        raise UsageError(f"mechanism must have an epsilon, got {type(mechanism).__name__} without one.")
    return claim_of(epsilon, delta)


def _gaps(x: Any, x_prime: Any) -> tuple[float, float] | None:
    """Largest rise and largest fall of a utility from the first list to the second; None for other lengths."""
    first, second = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float)
    if first.shape != second.shape:
        return None
    return float(np.max(second - first, initial=0.0)), float(np.max(first - second, initial=0.0))
