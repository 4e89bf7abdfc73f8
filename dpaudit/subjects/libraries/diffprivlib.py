"""IBM's diffprivlib as subjects: its mechanisms, its selection mechanisms, its tools and its models.

The library takes a `random_state`, so it is given one that reads the audit's own streams: every audit can be replayed.
(Without one, its mechanisms read the operating system's entropy. The samplers behind it are the same, and so are the
53-bit uniforms they start from.)
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, PureDP
from dpaudit.privacy.neighbours import Adjacency, NeighbourClaim, Steps, joined_rows
from dpaudit.privacy.parsing import as_claim
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.libraries import estimators
from dpaudit.subjects.libraries.library_mechanism import (
    InBatches,
    OnceASeededDraw,
    Promised,
    import_library,
    library_subject,
    real_distance,
    steps_of,
    version_of,
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
    claim : Claim or str, optional
        Audited instead of its own.
    name : str, optional

    Raises
    ------
    UsageError
        If it is no mechanism, or the library cannot be imported.
    """
    import_library("diffprivlib.mechanisms", PACKAGE, PACKAGE)
    if not callable(getattr(mechanism, "randomise", None)) or not hasattr(mechanism, "epsilon"):
        raise UsageError(f"mechanism must be one of diffprivlib.mechanisms, got {type(mechanism).__name__}.")
    parameters = {
        name: getattr(mechanism, name)
        for name in inspect.getfullargspec(type(mechanism)).kwonlyargs
        if name != "random_state"
    }
    return _mechanism_subject(
        functools.partial(_randomise, type(mechanism), parameters),
        f"{type(mechanism).__name__}({_described(parameters)})",
        steps_of(getattr(mechanism, "sensitivity", None), real_distance),
        stated_claim(mechanism),
        as_claim(claim),
        name or type(mechanism).__name__,
    )


def selection(kind: Any, *, claim: Claim | str | None = None, name: str | None = None, **parameters: Any) -> Subject:
    """The subject of a selection mechanism: an input is the list of utilities, an output the chosen position.

    Parameters
    ----------
    kind : class
        `diffprivlib.mechanisms.Exponential` or `PermuteAndFlip`.
    claim : Claim or str, optional
        Audited instead of its own epsilon, which holds for lists at most `sensitivity` apart in every utility.
    name : str, optional
    **parameters
        Of the class, without `utility` and `random_state`; `epsilon` and `sensitivity` among them.

    Raises
    ------
    UsageError
        If the class or a parameter makes no sense, or the library cannot be imported.
    """
    import_library("diffprivlib.mechanisms", PACKAGE, PACKAGE)
    if not isinstance(kind, type) or "utility" not in inspect.signature(kind).parameters:
        raise UsageError(f"kind must be a class of diffprivlib that takes utilities, got {kind!r}.")
    if not {"epsilon", "sensitivity"} <= parameters.keys():
        raise UsageError(f"parameters must have epsilon and sensitivity, got {', '.join(parameters) or 'none'}.")
    own = PureDP(parameters["epsilon"])

    def draw(data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        state = legacy_state(rng)
        mechanism = kind(utility=[float(value) for value in data], random_state=state, **parameters)
        return [mechanism.randomise() for _ in range(size)]

    return _mechanism_subject(
        draw,
        f"{kind.__name__}({_described(parameters)})",
        steps_of(parameters["sensitivity"], _largest_gap),
        own,
        as_claim(claim),
        name or kind.__name__,
    )


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
    claim : Claim or str, optional
        Audited instead of its `epsilon`.
    read : callable, optional
        What of its result is the output: all of it by default.
    adjacency : str, optional
        The relation for which it calibrates its noise (`dpaudit.privacy.neighbours`); by default that of `ADJACENCY`.
    name : str, optional
    **parameters
        Of the function; `epsilon` is its default where it is not given. An input that is a dict is passed by keyword.
    """
    import_library("diffprivlib.tools", PACKAGE, PACKAGE)
    accountant = import_library("diffprivlib.accountant", PACKAGE, PACKAGE).BudgetAccountant
    known = inspect.signature(function).parameters
    if "epsilon" not in known or "random_state" not in known:
        raise UsageError(f"function must be one of diffprivlib.tools, got {function!r}.")
    own = PureDP(parameters.get("epsilon", known["epsilon"].default))
    adjacency = adjacency or ADJACENCY.get(function.__name__)

    def draw(data: Any, rng: np.random.Generator) -> Any:
        # An accountant a call: the default one remembers every call of the process.
        options = {**parameters, "random_state": legacy_state(rng), "accountant": accountant()}
        result = function(**data, **options) if isinstance(data, dict) else function(np.asarray(data), **options)
        return result if read is None else read(result)

    mechanism = OnceASeededDraw(
        library=PACKAGE,
        version=version_of(PACKAGE),
        description=f"{function.__name__}({_described(parameters)})",
        draw=draw,
        claim=as_claim(claim) or own,
        promised=_promise(own, adjacency),
        replayable=True,
        parts=(read,),
        dataset_adjacency=adjacency,
        dataset_rows=joined_rows,
    )
    return library_subject(mechanism, name or function.__name__)


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
    accountant = import_library("diffprivlib.accountant", PACKAGE, PACKAGE).BudgetAccountant
    own = stated_claim(estimator)
    adjacency = adjacency or ADJACENCY.get(type(estimator).__name__)
    return estimators.subject(
        estimator,
        read,
        fit=fit,
        claim=as_claim(claim) or own,
        promised=_promise(own, adjacency),
        adjacency=adjacency,
        fresh={"accountant": accountant},
        library=PACKAGE,
        version=version_of(PACKAGE),
        name=name,
    )


def stated_claim(mechanism: Any) -> Claim:
    """The claim of a mechanism's or a model's own `epsilon` and `delta`."""
    epsilon, delta = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", 0.0)
    if epsilon is None:
        raise UsageError(f"mechanism must have an epsilon, got {type(mechanism).__name__} without one.")
    return ApproxDP(float(epsilon), float(delta)) if delta else PureDP(float(epsilon))


def _mechanism_subject(
    draw: Any, description: str, steps: Steps | None, own: Claim, claim: Claim | None, name: str
) -> Subject:
    mechanism = InBatches(
        library=PACKAGE,
        version=version_of(PACKAGE),
        description=description,
        draw=draw,
        claim=claim or own,
        promised=NeighbourClaim(own, "given", steps=steps).for_pair,
        replayable=True,
        dataset_steps=steps,
    )
    return library_subject(mechanism, name)


def _randomise(kind: Any, parameters: dict[str, Any], data: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """A batch of a fresh copy of the mechanism: what it keeps between calls cannot come from another batch."""
    mechanism = kind(random_state=legacy_state(rng), **parameters)
    return [mechanism.randomise(data) for _ in range(size)]


def _largest_gap(x: Any, x_prime: Any) -> float | None:
    first, second = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float)
    return float(np.max(np.abs(first - second), initial=0.0)) if first.shape == second.shape else None


def _promise(own: Claim, adjacency: Adjacency | None) -> Promised:
    """The library's claim for a pair."""
    return (own if adjacency is None else NeighbourClaim(own, adjacency, joined_rows)).for_pair


def _described(parameters: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in sorted(parameters.items()))
