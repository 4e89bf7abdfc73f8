"""Google's differential privacy library as subjects, by python-dp (`pydp`): its mechanisms and its algorithms.

It has randomness of its own, so its audits cannot be replayed bit by bit and are never drawn in workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.libraries.library_mechanism import (
    claim_of,
    import_library,
    library_subject,
    real_distance,
    steps_of,
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
    """
    import_library("pydp", PACKAGE)
    method = next((m for m in ("add_noise", "quick_result", "should_keep") if hasattr(mechanism, m)), None)
    if call is None and method is None:
        raise UsageError(f"mechanism must be a mechanism or an algorithm of pydp, got {type(mechanism).__name__}.")
    once = call or getattr(mechanism, str(method))
    is_algorithm = method == "quick_result"  # which calibrates its noise to an entry that is added or removed
    named = [getattr(mechanism, s) for s in ("sensitivity", "l2_sensitivity") if hasattr(mechanism, s)]
    sensitivity = 1 if method == "should_keep" else named[0] if named else None

    def draw(data: Any, size: int) -> list[Any]:
        value = list(data) if is_algorithm and call is None else data
        return [once(value) for _ in range(size)]

    known = {s: getattr(mechanism, s, None) for s in ("epsilon", "delta", "sensitivity", "l2_sensitivity", "std")}
    shown = ", ".join(f"{s}={value!r}" for s, value in known.items() if isinstance(value, int | float))
    return library_subject(
        PACKAGE,
        f"{type(mechanism).__name__}({shown})",
        draw,
        name or type(mechanism).__name__,
        claim=claim,
        own=stated_claim(mechanism),
        adjacency="add_remove" if is_algorithm else None,
        steps=None if is_algorithm else steps_of(sensitivity, real_distance),
        parts=(call,),
    )


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
        tree = import_library("pydp.algorithms.quantile_tree", PACKAGE).QuantileTree(*self._tree)
        for entry in entries:
            tree.add_entry(float(entry))
        return tuple(tree.compute_quantiles(*self._released))


def stated_claim(mechanism: Any) -> Claim | None:
    """The claim of the mechanism's own `epsilon` and `delta`; None if it states none."""
    epsilon = getattr(mechanism, "epsilon", None)
    return claim_of(epsilon, getattr(mechanism, "delta", 0.0)) if isinstance(epsilon, int | float) else None
