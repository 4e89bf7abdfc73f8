"""Google's differential privacy library as subjects, by python-dp (`pydp`): its mechanisms and its algorithms.

It has randomness of its own, so its audits cannot be replayed bit by bit and are never drawn in workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, PureDP
from dpaudit.privacy.neighbours import Adjacency, NeighbourClaim
from dpaudit.privacy.parsing import as_claim
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.libraries.library_mechanism import (
    InBatches,
    import_library,
    library_subject,
    real_distance,
    steps_of,
    version_of,
)

PACKAGE = "python-dp"


def subject(
    mechanism: Any,
    *,
    call: Callable[[Any], Any] | None = None,
    claim: Claim | str | None = None,
    name: str | None = None,
) -> Subject:
    """The subject of a mechanism or an algorithm.

    Parameters
    ----------
    mechanism : object
        A numerical mechanism (`add_noise` of the input: integers get whole noise), an algorithm (`quick_result` of the
        list of entries, with the whole budget), or a partition selection (`should_keep` of the number of users).
    call : callable, optional
        Draws one output instead, for example with `result` and a part of the budget.
    claim : Claim or str, optional
        Audited instead of its own `epsilon` and `delta`. Needed for partition selections, which state none.
    name : str, optional

    Raises
    ------
    UsageError
        If it is none of these, or the library cannot be imported.
    """
    import_library("pydp", PACKAGE, PACKAGE)
    method = next((m for m in ("add_noise", "quick_result", "should_keep") if hasattr(mechanism, m)), None)
    if call is None and method is None:
        raise UsageError(f"mechanism must be a mechanism or an algorithm of pydp, got {type(mechanism).__name__}.")
    once = call or getattr(mechanism, str(method))
    convert: Callable[[Any], Any] = list if method == "quick_result" and call is None else _as_given
    own = stated_claim(mechanism)
    named = [getattr(mechanism, s) for s in ("sensitivity", "l2_sensitivity") if hasattr(mechanism, s)]
    # Its algorithms calibrate their noise to an entry that is added or removed.
    adjacency: Adjacency | None = "add_remove" if method == "quick_result" else None
    sensitivity = 1 if method == "should_keep" else named[0] if named else None
    steps = None if adjacency else steps_of(sensitivity, real_distance)

    def draw(data: Any, size: int, rng: np.random.Generator) -> list[Any]:
        value = convert(data)
        return [once(value) for _ in range(size)]

    known = {s: getattr(mechanism, s, None) for s in ("epsilon", "delta", "sensitivity", "l2_sensitivity", "std")}
    shown = ", ".join(f"{s}={value!r}" for s, value in known.items() if isinstance(value, int | float))
    adapted = InBatches(
        library=PACKAGE,
        version=version_of(PACKAGE),
        description=f"{type(mechanism).__name__}({shown})",
        draw=draw,
        claim=as_claim(claim) or own,
        promised=None if own is None else NeighbourClaim(own, adjacency or "given", steps=steps).for_pair,
        replayable=False,
        parts=(call,),
        dataset_adjacency=adjacency,
        dataset_steps=steps,
    )
    return library_subject(adapted, name or type(mechanism).__name__)


class QuantileTree:
    """Quantiles of entries by Google's quantile tree, with the budget that they state: `subject` takes it.

    Parameters
    ----------
    lower, upper : float
        Between which entries are clamped.
    ranks : sequence of float
        In [0, 1]; one quantile each is the output.
    epsilon, delta : float
    noise : {"laplace", "gaussian"}
        Gaussian noise needs a delta.
    partitions, contributions : int
        How many partitions one user is in, and how often in each, at most.
    tree_height, branching_factor : int

    Examples
    --------
    >>> from dpaudit.libraries import pydp as adapter
    >>> str(adapter.subject(adapter.QuantileTree(0.0, 1.0, [0.5], epsilon=1.0)).claim)
    'eps=1,adjacency=add_remove'
    """

    def __init__(
        self,
        lower: float,
        upper: float,
        ranks: Sequence[float],
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: Literal["laplace", "gaussian"] = "laplace",
        partitions: int = 1,
        contributions: int = 1,
        tree_height: int = 4,
        branching_factor: int = 16,
    ) -> None:
        self.epsilon, self.delta = epsilon, delta
        self._tree = float(lower), float(upper), tree_height, branching_factor
        self._released = epsilon, delta, partitions, contributions, list(ranks), noise

    def quick_result(self, entries: Iterable[float]) -> tuple[float, ...]:
        """The quantiles of these entries, with the whole budget."""
        tree = import_library("pydp.algorithms.quantile_tree", PACKAGE, PACKAGE).QuantileTree(*self._tree)
        for entry in entries:
            tree.add_entry(float(entry))
        return tuple(tree.compute_quantiles(*self._released))


def stated_claim(mechanism: Any) -> Claim | None:
    """The claim of the mechanism's own `epsilon` and `delta`; None if it states none."""
    epsilon, delta = getattr(mechanism, "epsilon", None), getattr(mechanism, "delta", 0.0)
    if not isinstance(epsilon, int | float):
        return None
    if isinstance(delta, int | float) and delta:
        return ApproxDP(float(epsilon), float(delta))
    return PureDP(float(epsilon))


def _as_given(data: Any) -> Any:
    return data
