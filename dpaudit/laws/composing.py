"""Composition: several runs on one input (sequential, adaptive), and runs on disjoint parts of it (parallel)."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.laws.claims import checked, composed_claim, weakest_claim
from dpaudit.laws.derived import (
    Derived,
    LogDensity,
    Shape,
    density_of,
    draw,
    draw_chosen,
    joined,
    matched,
    merged,
    pairs_of,
    selected,
    shared_pairs,
)
from dpaudit.laws.listed_laws import MAX_OUTCOMES, ListedLaw, Outputs, listed_laws
from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray, MetricDP, PureDP, RenyiDP, whole_number
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.metrics import Metric
from dpaudit.privacy.pairs import Pair
from dpaudit.subjects.callables import Subject, as_subject


@dataclasses.dataclass(frozen=True)
class Composed(Derived):
    """All parts run on one input, with independent randomness; a run's output is all of theirs, side by side."""

    @property
    def name(self) -> str:
        return f"composition of {', '.join(part.name for part in self.parts)}"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        return joined([draw(part, given, size, rng) for part, given in self._inputs(data)], size)

    def _density(self) -> LogDensity | None:
        return self._joint_density if all(part.has_log_density for part in self.parts) else super()._density()

    def _listed(self) -> ListedLaw | None:
        laws = listed_laws(self.parts)
        if laws is None or math.prod(len(law.outcomes) for law in laws) > MAX_OUTCOMES:
            return None
        places = np.indices([len(law.outcomes) for law in laws]).reshape(len(laws), -1)  # (parts, outcomes)
        columns = [selected(law.outcomes, place) for law, place in zip(laws, places, strict=True)]

        def probabilities(data: Any) -> FloatArray:
            parts = [law.probabilities(given) for law, (_, given) in zip(laws, self._inputs(data), strict=True)]
            return functools.reduce(lambda total, part: np.outer(total, part).ravel(), parts)

        return ListedLaw(joined(columns, places.shape[1]), probabilities)

    def _joint_density(self, data: Any, outputs: Any) -> FloatArray:
        """The sum of the parts' log densities, each at its own columns."""
        shapes = self._shapes(data)
        if shapes is None:
            raise UsageError("outputs must be numbers for a joint log density, got other objects.")
        parts = zip(self._inputs(data), _taken_apart(outputs, shapes), strict=True)
        return sum((density_of(part, given, own) for (part, given), own in parts), start=np.zeros(len(outputs)))


def sequential_composition(
    mechanisms: Iterable[Any], claims: Iterable[Claim], *, pairs: Iterable[Any] | None = None
) -> tuple[Composed, Claim]:
    """Sequential composition: M_1, ..., M_k on one input with independent randomness; budgets add, per pair.

    Proof. The joint law is the product, so log p(y_1, .., y_k) / q(y_1, .., y_k) is the sum of the losses: pure budgets
    and metrics add, Renyi divergences of one order add exactly. Approximate: replace each Q_i by the least measure
    above (P_i - ...) that costs delta_i, so epsilons and deltas add. Gaussian: a product of normal pairs is a normal
    pair with the root of the sum of squares.

    Claims: DX-F1.2, UP-P1. Both are true as printed, for independent runs, which UP-P1 says by the product measure.
    CD-L3.6 and CD-L3.10 print it without: with *shared* noise it is false (y_1 - y_2 gives the input away).

    Tight: pure budgets (randomised response reaches the sum), Renyi, zCDP and Gaussian ones. The sum of deltas is not:
    1 - (1 - delta_1) (1 - delta_2) is kept, and reached.

    Parameters
    ----------
    mechanisms : iterable
        At least one, each as `dpaudit.audit` takes it.
    claims : iterable of Claim
        One a mechanism; the families that `dpaudit.privacy.compose` takes together.
    pairs : iterable, optional
        Pairs to audit; by default those of the first mechanism that has some.

    Raises
    ------
    UsageError
        If there are not as many claims as mechanisms, or no rule for their families together.

    Examples
    --------
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
    >>> both, claim = sequential_composition([noisy, noisy], [PureDP(1.0), PureDP(1.0)])
    >>> both.sample(0.0, 5, np.random.default_rng(1)).shape, str(claim)
    ((5, 2), 'eps=2')
    """
    subjects, promises = matched(mechanisms, claims)
    return Composed(subjects, known_pairs=shared_pairs(subjects, pairs)), composed_claim(promises)


@dataclasses.dataclass(frozen=True)
class AdaptivelyComposed(Derived):
    """The first part runs; what it gave chooses which of the others runs next, on the same input; both are seen."""

    choose: Callable[[Any], Any]

    @property
    def name(self) -> str:
        return f"adaptive composition of {self.parts[0].name}, then {' or '.join(part.name for part in self.parts[1:])}"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        first = draw(self.parts[0], data, size, rng)
        return joined([first, draw_chosen(self.parts[1:], self._choices(first, size), data, rng)], size)

    def _choices(self, outputs: Outputs, size: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        choices = np.asarray(self.choose(outputs))
        last = len(self.parts) - 2
        is_whole = choices.shape == (size,) and choices.dtype.kind in "biu"
        if not is_whole or not np.all((choices >= 0) & (choices <= last)):
            raise UsageError(f"choose must give {size} whole numbers in [0, {last}], got {choices!r:.80}.")
        return choices.astype(np.int64)

    def _density(self) -> LogDensity | None:
        return self._joint_density if all(part.has_log_density for part in self.parts) else super()._density()

    def _listed(self) -> ListedLaw | None:
        laws = listed_laws(self.parts)
        if laws is None:
            return None
        choices = self._choices(laws[0].outcomes, len(laws[0].outcomes))
        counts = np.array([len(laws[1 + choice].outcomes) for choice in choices.tolist()])
        if counts.sum() > MAX_OUTCOMES:
            return None
        owners = np.repeat(np.arange(len(counts)), counts)  # the first outcome of each outcome of the whole
        pieces = []
        for k, law in enumerate(laws[1:]):
            where = np.flatnonzero(choices[owners] == k)
            repeated = np.tile(np.arange(len(law.outcomes)), int((choices == k).sum()))
            pieces.append((where, selected(law.outcomes, repeated)))
        outcomes = joined([selected(laws[0].outcomes, owners), merged(len(owners), pieces)], len(owners))

        def probabilities(data: Any) -> FloatArray:
            second = [law.probabilities(data) for law in laws[1:]]
            follow = np.concatenate([second[k] for k in choices.tolist()])
            return np.asarray(np.repeat(laws[0].probabilities(data), counts) * follow)

        return ListedLaw(outcomes, probabilities)

    def _joint_density(self, data: Any, outputs: Any) -> FloatArray:
        shapes = self._shapes(data)
        if shapes is None or len(set(shapes[1:])) > 1:
            raise UsageError("outputs must be numbers of one shape for a joint log density, got others.")
        first, second = _taken_apart(outputs, shapes[:2])
        total = density_of(self.parts[0], data, first)
        choices = self._choices(first, len(first))
        for k, part in enumerate(self.parts[1:]):
            where = np.flatnonzero(choices == k)
            if len(where):
                total[where] += density_of(part, data, second[where])
        return total


def adaptive_composition(
    mechanism: Any,
    claim: Claim,
    others: Iterable[Any],
    other_claims: Iterable[Claim],
    choose: Callable[[Any], Any],
    *,
    pairs: Iterable[Any] | None = None,
) -> tuple[AdaptivelyComposed, Claim]:
    """Adaptive composition: the output of M chooses the mechanism that runs next; budgets add as if it were fixed.

    Proof. p(y_1, y_2) = p_1(y_1) p_{c(y_1)}(y_2), and whatever y_1 is, the second factor keeps the weakest of the
    claims: the loss given y_1 is bounded by it, so the budgets of M and of the weakest add. Renyi, zCDP and Gaussian
    claims compose adaptively by the same conditioning on y_1.

    Claims: the law behind DX-T7's accounting (T adaptive rounds) and MQ-L3; none of the papers prints it by itself.

    Parameters
    ----------
    mechanism, claim
        What runs first, and its claim.
    others, other_claims : iterables
        What may run next, at least one, with a claim each (of one family: see `dpaudit.laws.weakest_claim`).
    choose : callable
        A batch of first outputs to the positions in `others`, whole numbers of shape (size,). Each position depends on
        its own output alone, and on nothing of the input.
    pairs : iterable, optional
        Pairs to audit; by default those of the first mechanism that has some.

    Examples
    --------
    >>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
    >>> coarse = lambda data, size, rng: np.round(data + rng.laplace(size=size))
    >>> twice, claim = adaptive_composition(
    ...     noisy, PureDP(1.0), [noisy, coarse], [PureDP(1.0), PureDP(1.0)], lambda y: (y > 0).astype(int)
    ... )
    >>> twice.sample(0.0, 5, np.random.default_rng(1)).shape, str(claim)
    ((5, 2), 'eps=2')
    """
    subjects, promises = matched(others, other_claims)
    first = as_subject(mechanism)
    if not callable(choose):
        raise UsageError(f"choose must be a callable of a batch of outputs, got {choose!r}.")
    parts = (first, *subjects)
    derived = AdaptivelyComposed(parts, choose, known_pairs=shared_pairs(parts, pairs))
    return derived, composed_claim([checked(claim), weakest_claim(promises)])


@dataclasses.dataclass(frozen=True)
class ParallelComposed(Composed):
    """Each part runs on its own piece of the input: `split(data)` gives one piece a part."""

    split: Callable[[Any], Sequence[Any]]

    @property
    def name(self) -> str:
        return f"parallel composition of {', '.join(part.name for part in self.parts)}"

    def _inputs(self, data: Any) -> list[tuple[Subject, Any]]:
        return list(zip(self.parts, _pieces(self.split, data, len(self.parts)), strict=True))


@dataclasses.dataclass(frozen=True)
class PiecesMetric(Metric):
    """The budget of two inputs that are split into pieces: the sum of the pieces' budgets, equal pieces costing 0."""

    claims: tuple[Claim, ...]
    split: Callable[[Any], Sequence[Any]]

    @property
    def name(self) -> str:
        return f"pieces: {', '.join(map(str, self.claims))}"

    def __call__(self, x: Any, x_prime: Any) -> float:
        both = (_pieces(self.split, data, len(self.claims)) for data in (x, x_prime))
        pieces = zip(self.claims, *both, strict=True)
        costs = (claim.for_pair(u, v).value for claim, u, v in pieces if identity_of(u) != identity_of(v))
        return sum(costs, start=0.0)


def parallel_composition(
    mechanisms: Iterable[Any],
    claims: Iterable[Claim],
    split: Callable[[Any], Sequence[Any]],
    *,
    changed_pieces: int = 1,
    pairs: Iterable[Any] | None = None,
) -> tuple[ParallelComposed, Claim]:
    """Parallel composition: each mechanism on its own piece of the input; only pieces that change cost anything.

    Proof. Runs are independent and a mechanism on an equal piece has the same law, so the joint loss is the sum over
    the pieces that differ: compose the claims of as many pieces as one step may change, the largest ones.

    `changed_pieces` is that number. It is 1 where a record is added or removed, or replaced *in its place*. It is 2
    where records go to a piece by their value and one record is *replaced*: it may leave one piece and enter another.
    The law is often quoted with the largest claim for both; for replacements by value that is false (a twin in the
    tests reaches twice the largest). Metric claims: the sum over the pieces, which says the same pair by pair; the
    pieces of two inputs must then be comparable under the metric.

    Parameters
    ----------
    mechanisms, claims : iterables
        One claim a mechanism, of one family; metric claims all metric.
    split : callable
        An input to its pieces, one a mechanism. It looks at the records, or at their places, and at nothing else.
    changed_pieces : int, optional
        From 1 to the number of mechanisms. Metric claims need none.
    pairs : iterable, optional
        Pairs of whole inputs, to audit.

    Examples
    --------
    >>> noisy = lambda data, size, rng: sum(data) + rng.laplace(size=size)
    >>> halves = lambda data: (data[:2], data[2:])
    >>> both, claim = parallel_composition([noisy, noisy], [PureDP(1.0), PureDP(1.0)], halves)
    >>> both.sample([0, 1, 1, 0], 5, np.random.default_rng(1)).shape, str(claim)
    ((5, 2), 'eps=1')
    """
    subjects, promises = matched(mechanisms, claims)
    if not callable(split):
        raise UsageError(f"split must be a callable of an input, got {split!r:.80}.")
    changed = whole_number("changed_pieces", changed_pieces, "a whole number of at least 1", 1)
    if changed > len(subjects):
        raise UsageError(f"changed_pieces must be at most the number of mechanisms {len(subjects)}, got {changed}.")
    known = None if pairs is None else pairs_of(subjects[0], pairs)
    derived = ParallelComposed(subjects, split, known_pairs=known)
    if any(isinstance(promise, MetricDP) for promise in promises):
        weakest_claim(promises)  # the same refusal of mixed families
        return derived, MetricDP(PiecesMetric(promises, split))
    return derived, composed_claim(_largest(promises, changed))


def _taken_apart(outputs: Any, shapes: Sequence[Shape]) -> list[FloatArray]:
    """The outputs of each part in its own shape, from runs that are their numbers side by side."""
    columns = np.asarray(outputs, dtype=float).reshape(len(outputs), -1)
    own = np.split(columns, np.cumsum([math.prod(shape) for shape in shapes[:-1]]), axis=1)
    return [part.reshape(len(columns), *shape) for part, shape in zip(own, shapes, strict=True)]


def _pieces(split: Callable[[Any], Sequence[Any]], data: Any, count: int) -> Sequence[Any]:
    """The pieces of an input, checked to be so many."""
    pieces = split(data)
    if len(pieces) != count:
        raise UsageError(f"split must give {count} pieces of the input, got {len(pieces)}.")
    return pieces


def _largest(claims: Sequence[Claim], count: int) -> list[Claim]:
    """`count` claims that compose to what any `count` of `claims` compose to, at least."""
    common = weakest_claim(claims)
    if isinstance(common, ApproxDP) and not isinstance(common, PureDP):
        epsilons = sorted((claim.value for claim in claims), reverse=True)
        deltas = sorted((claim.delta for claim in claims), reverse=True)
        return [ApproxDP(epsilon, delta) for epsilon, delta in zip(epsilons[:count], deltas[:count], strict=True)]
    if all(claim == common for claim in claims) or isinstance(common, PureDP | RenyiDP) or common.family == "renyi":
        return sorted(claims, key=lambda claim: claim.value, reverse=True)[:count]
    return [common] * count


@dataclasses.dataclass(frozen=True)
class Places:
    """The pieces of an input that is a sequence of them: the identity, with a length to check."""

    count: int

    def __call__(self, data: Any) -> Sequence[Any]:
        if len(data) != self.count:
            raise UsageError(f"data must be {self.count} inputs, one a mechanism, got {len(data)}.")
        return tuple(data)


def pairs_in_one_place(pairs: Sequence[Pair], count: int) -> tuple[Pair, ...]:
    """Pairs of inputs that are made of `count` inputs: by turns they differ in the first place and in the last.

    The other places hold the pair's own x, so that they tell nothing.
    """
    result = []
    for number, pair in enumerate(pairs):
        place = 0 if number % 2 == 0 else count - 1
        x_prime = [pair.x] * count
        x_prime[place] = pair.x_prime
        result.append(Pair((pair.x,) * count, tuple(x_prime), id=f"{pair.id} at {place}"))
    return tuple(result)
