"""Any estimator as a subject: an object with `fit`, whose attributes (or predictions) are the output.

>>> class NoisyMean:
...     def __init__(self, epsilon=1.0, random_state=None):
...         self.epsilon, self.random_state = epsilon, random_state
...     def get_params(self, deep=True):
...         return {"epsilon": self.epsilon, "random_state": self.random_state}
...     def fit(self, X):
...         noise = self.random_state.laplace(scale=1 / (self.epsilon * len(X)))
...         self.mean_ = float(np.clip(X, 0, 1).mean() + noise)
>>> subject(NoisyMean(), ["mean_"], claim="eps=1").interface
'f(data, rng)'
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.neighbours import Adjacency, joined_rows
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.libraries.library_mechanism import library_subject, listed
from dpaudit.subjects.parameters import legacy_state


def subject(
    estimator: Any,
    read: Sequence[str] | Callable[[Any], Any],
    *,
    fit: Callable[[Any, Any], Any] | None = None,
    claim: Claim | str | None = None,
    own: Claim | None = None,
    adjacency: Adjacency | None = None,
    fresh: Mapping[str, Callable[[], Any]] | None = None,
    name: str | None = None,
) -> Subject:
    """The subject of an estimator, fitted anew for every draw.

    Parameters
    ----------
    estimator : object
        With `fit`. A draw fits a copy: made from `get_params` where it has that (as scikit-learn's have), a deep copy
        otherwise. A parameter `random_state` is given the audit's randomness (a `numpy.random.RandomState`), and the
        audit can be replayed; without one it cannot.
    read : sequence of str, or callable
        Names of the fitted attributes that are released, or a function of the fitted estimator (its predictions, for
        example). Attributes are joined into one list of numbers; those that are no numbers stay as they are.
    fit : callable, optional
        `fit(estimator, data)`; by default `estimator.fit(*data)` for a tuple, `estimator.fit(**data)` for a dict, and
        `estimator.fit(data)` for anything else.
    own : Claim, optional
        What the library promises, and what is audited where `claim` is not given.
    adjacency : str, optional
        The neighbouring relation that the claim is made of: see `dpaudit.privacy.neighbours`.
    fresh : mapping, optional
        Parameters that are made anew for every copy, such as accountants.
    """
    if isinstance(estimator, type) or not callable(getattr(estimator, "fit", None)):
        raise UsageError(f"estimator must be an object with fit, got {estimator!r:.80}.")
    if not callable(read) and (isinstance(read, str) or not len(read)):
        raise UsageError(f"read must be a list of attributes or a function of the fitted estimator, got {read!r}.")
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else None
    seeded = parameters is not None and "random_state" in parameters
    apply = fit or _fit
    output: Callable[[Any], Any] = read if callable(read) else lambda fitted: _attributes(fitted, list(read))

    def fitted(data: Any, rng: np.random.Generator | None) -> Any:
        if parameters is None:
            one = copy.deepcopy(estimator)
        else:
            made = {key: make() for key, make in (fresh or {}).items() if key in parameters}
            if rng is not None:
                made["random_state"] = legacy_state(rng)
            one = type(estimator)(**{**parameters, **made})
        apply(one, data)
        return output(one)

    shown = {key: value for key, value in (parameters or {}).items() if key not in (fresh or {})}
    kind, read_as = type(estimator), getattr(read, "__qualname__", "a function") if callable(read) else ", ".join(read)
    package = kind.__module__.split(".")[0]
    return library_subject(
        {"sklearn": "scikit-learn"}.get(package, package),
        f"{kind.__name__}({listed(shown)}) read as {read_as}",
        fitted if seeded else lambda data: fitted(data, None),
        name or kind.__name__,
        claim=claim,
        own=own,
        adjacency=adjacency,
        rows=joined_rows,
        parts=(read if callable(read) else None, fit),
    )


def _fit(estimator: Any, data: Any) -> None:
    if isinstance(data, tuple):
        estimator.fit(*data)
    elif isinstance(data, dict):
        estimator.fit(**data)
    else:
        estimator.fit(data)


def _attributes(fitted: Any, names: list[str]) -> Any:
    """The attributes as one list of numbers; as a tuple, if one of them is no number or list of numbers."""
    values = [getattr(fitted, name) for name in names]
    arrays = [np.asarray(value) for value in values]
    if all(array.dtype.kind in "biuf" for array in arrays):
        return np.concatenate([array.astype(float).ravel() for array in arrays])
    return tuple(array.tolist() for array in arrays)
