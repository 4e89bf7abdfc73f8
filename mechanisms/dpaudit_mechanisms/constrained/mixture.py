"""The mixture of mechanisms, with weights that do not depend on the data (CD-T3.9)."""

import dataclasses
import functools
import itertools
from typing import Any, Self

import numpy as np
from scipy import special

from dpaudit_mechanisms.accuracy import with_budget
from dpaudit_mechanisms.inputs import FloatArray, fixed, table
from dpaudit_mechanisms.protocol import Claim, PureDP, UsageError, UtilityBound


@dataclasses.dataclass(frozen=True, eq=False)
class Mixture:
    """Theorem 3.9 of Liu et al. (2023), arXiv:2303.00228.

    Runs one of several mechanisms, chosen by a coin that knows nothing of the data; which one is not told.

    Parameters
    ----------
    mechanisms : sequence
        Of one kind of output (numeric, of one shape) and one claim, on the same inputs. The first one's pairs say what
        is adjacent: the others must keep the claim there, as noise for a larger sensitivity does.
    weights : array_like of float, shape (mechanisms,)
        Non-negative, with sum 1.

    Raises
    ------
    UsageError
        If the weights are no probabilities (weights that depend on the data, a function for one, are none), the
        claims differ, or one of them (with a `privacy_loss`) breaks the claim on a pair of the first.

    Examples
    --------
    >>> from dpaudit_mechanisms.laplace import Laplace
    >>> Mixture([Laplace(1.0), Laplace(1.0, 2.0)], [0.5, 0.5]).claim
    PureDP(epsilon=1.0, delta=0.0)
    """

    mechanisms: Any
    weights: Any

    def __post_init__(self) -> None:
        weights = table("weights", self.weights, (len(self.mechanisms),))
        if not (weights >= 0.0).all() or abs(weights.sum() - 1.0) > 1e-12:
            raise UsageError(f"weights must be probabilities, got {weights.tolist()}.")
        if len({str(mechanism.claim) for mechanism in self.mechanisms}) != 1:
            raise UsageError(f"mechanisms must have one claim, got {[str(m.claim) for m in self.mechanisms]}.")
        fixed(self, mechanisms=tuple(self.mechanisms), weights=weights)
        # One claim in words is not yet one promise: what it calls adjacent is each mechanism's own.
        for pair, (i, other) in itertools.product(self.pairs(), enumerate(self.mechanisms)):
            promised = self.claim.for_pair(pair.x, pair.x_prime)
            if isinstance(promised, PureDP) and promised.delta == 0.0 and hasattr(other, "privacy_loss"):
                loss = other.privacy_loss(pair.x, pair.x_prime)
                if loss > promised.value * (1.0 + 1e-9):
                    raise UsageError(
                        f"mechanisms must keep {promised} on the pairs of the first, got a loss of {loss:g} of "
                        f"mechanism {i}."
                    )

    @property
    def claim(self) -> Claim:
        """Claim of each mechanism: every law of one claim here is closed under mixing both sides alike."""
        return self.mechanisms[0].claim

    def pairs(self) -> list[Any]:
        """Pairs of the first mechanism."""
        return list(self.mechanisms[0].pairs())

    def with_budget(self, factor: float) -> Self:
        """The same mixture of mechanisms with `factor` times their budgets."""
        return dataclasses.replace(self, mechanisms=[with_budget(one, factor) for one in self.mechanisms])

    def utility_bounds(self) -> list[UtilityBound]:
        """Of each expected loss that all mechanisms bound, the mixture of the bounds; the loss is that of the first."""
        own = [{b.name: b for b in m.utility_bounds() if b.kind == "expectation"} for m in self.mechanisms]
        return [
            dataclasses.replace(bound, bound=functools.partial(self._mixed, [one[name] for one in own]),
                                standard_deviation=None)
            for name, bound in own[0].items() if all(name in one for one in own)
        ]  # fmt: skip

    def _mixed(self, bounds: list[UtilityBound], data: Any) -> float:
        return float(self.weights @ [bound.limit(data) for bound in bounds])

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, each from a mechanism of its own choice."""
        chosen = rng.choice(len(self.weights), size=size, p=self.weights / self.weights.sum())
        parts = [np.asarray(m.sample(data, int((chosen == i).sum()), rng)) for i, m in enumerate(self.mechanisms)]
        outputs = np.empty((size, *parts[0].shape[1:]))
        for i, part in enumerate(parts):
            outputs[chosen == i] = part
        return outputs

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Natural log of the density of each output, shape (size,), where all of the mechanisms have one."""
        with np.errstate(divide="ignore"):
            weights = np.log(self.weights)
        logs = [m.log_density(data, outputs) + w for m, w in zip(self.mechanisms, weights, strict=True)]
        return np.asarray(special.logsumexp(logs, axis=0))
