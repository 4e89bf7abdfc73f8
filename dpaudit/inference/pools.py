"""Pools: pairs of one shift, audited in one game.

For a translation family (`dpaudit.subjects.protocol`) the two output laws of a pair (x, x'), both moved by minus
the location of x, are the same for every pair with the same x' - x. A pool is a set of such pairs with one budget. It
pays one share of the error rate, and the draws of all its inputs serve one test.

For every labelled draw of a pool with n members, a member i is drawn uniformly, besides the fair coin of the label; the
mechanism runs on x_i (label 1) or x_i' (label 0); the rule sees the output less the location of x_i. The counts of the
2 n kinds of draws are multinomial, tossed from the coin's stream, and each kind reads draws of its input that no other
kind of this pool reads: draws of an input are independent and counts add up in any order, so this is the game with
members and labels drawn one by one.

Validity, without the statement of the mechanism: what is tested is the pair of mixtures P = sum_i P_i / n and
Q = sum_i Q_i / n of the laws of the moved outputs on x_i and x_i'. How far an output is moved depends on i alone, never
on the label, so moving is post-processing of single outputs. Every claim is a family of inequalities each of whose left
sides is linear in (P, Q), with a right side that does not depend on them (docs/explanation/label-game.md):
P(S) - e^eps Q(S) <= delta for events S, E_P[r g^(r-1)] - E_Q[(r-1) g^r] <= exp((r-1) eps_r) for bounded g >= 0, and
both with P and Q exchanged. If every member keeps an inequality, so does the average over the members. So if every pair
of the pool keeps the claim, the mixtures keep it, and P(violated) is at most the pool's level, whatever the mechanism
is; and a lower bound on the parameter of the mixtures exceeds the *largest* parameter of the members with at most that
probability (parameters are nested). (A Renyi divergence itself is only quasi-convex; the inequalities that the game
bets on are linear, and this is all that is needed.)

Only that the finding holds for *each* pair of the pool rests on the statement. Where it is false, the evidence of the
pairs that break the claim is diluted by the others; `dpaudit.replay` asks a pair by itself, and tells which.
Where budgets of members agree to nine digits only, the pool is tested at the largest.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.features.density import Hints, LogDensity, LogRatio
from dpaudit.inference.tasks import toss
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.privacy.pairs import short_form
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.protocol import location_of, says_so

SHIFT_PRECISION = 1e-12  # of the largest coordinate of any location: shifts that differ by less are one
BUDGET_PRECISION = 1e-9  # relative: budgets that differ by less are one


@dataclasses.dataclass(frozen=True, eq=False)
class Member:
    """One pair of a game: the positions of x and x_prime, what its outputs are read less of, and x_prime there.

    `move` is the location of x and `shift` that of x_prime less that of x, of the shape of one output; None for outputs
    that are read as they are.
    """

    inputs: tuple[int, int]
    move: FloatArray | None = None
    shift: FloatArray | None = None


@dataclasses.dataclass(frozen=True)
class Read:
    """Draws of one input that one game reads in a round: `quota` from position `start` on, for a member's side."""

    input: int
    side: int
    start: int
    quota: int
    move: FloatArray | None


class Pool:
    """The pairs that one game asks: mostly one, several where they are pooled; the two inputs of each differ.

    `inputs` are the positions of the inputs, each once. `breadth`, 1 for a single pair and more for several, is how
    many times the labelled draws of a pair this game can have from the same runs on each input.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(members)
        uses = Counter(i for member in self.members for i in member.inputs)
        self.inputs = tuple(uses)
        self._loads = {i: count / len(self.members) for i, count in uses.items()}
        self.breadth = 1.0 / max(self._loads.values())

    @classmethod
    def single(cls, inputs: tuple[int, int]) -> Pool:
        """The pool of one pair, whose outputs are read as they are."""
        return cls([Member(inputs)])

    def load(self, i: int) -> float:
        """The mean number of draws of an input that two labelled draws read."""
        return self._loads[i]

    def labelled(self, draws: int) -> int:
        """The labelled draws of this game that need as many runs of an input as `draws` of a single pair."""
        return int(self.breadth * draws)

    def quotas(self, labelled: int, coin: np.random.Generator) -> NDArray[np.int64]:
        """Numbers of labelled draws of each side and member, shape (2, members): side 0 is x, label 1."""
        label_counts = np.array(toss(labelled, coin))[:, None]
        if len(self.members) == 1:
            return label_counts
        even = np.full(len(self.members), 1.0 / len(self.members))
        # Validity: labels and members are independent, so this is the multinomial of all kinds of draws.
        return np.stack([coin.multinomial(int(label[0]), even) for label in label_counts])

    def reads(self, quotas: NDArray[np.int64]) -> list[Read]:
        """The places at which the draws of each side and member are read: no draw twice."""
        taken = dict.fromkeys(self.inputs, 0)
        reads = []
        for side in (0, 1):
            for member, quota in zip(self.members, quotas[side].tolist(), strict=True):
                i = member.inputs[side]
                reads.append(Read(i, side, taken[i], quota, member.move))
                taken[i] += quota
        return reads


@dataclasses.dataclass(frozen=True)
class MovedDensity:
    """The log density of outputs that are read less the location of x: a hint for the games of a pool.

    Called with the locations of x, which is 0 everywhere there, and of x_prime.
    """

    log_density: LogDensity
    x: Any
    x_prime: Any
    move: FloatArray

    def __call__(self, data: Any, outputs: Any) -> NDArray[np.float64] | None:
        given = np.asarray(outputs)
        by = self.move.astype(np.int64) if given.dtype.kind in "iu" else self.move
        return self.log_density(self.x_prime if np.any(data) else self.x, given + by)


def hints_of(member: Member, data: Sequence[Any], log_density: LogDensity | None) -> Hints:
    """The inputs and log density ratio of a member's pair, moved as its outputs are; `data[i]` is input i."""
    x, x_prime = (data[i] for i in member.inputs)
    if member.move is not None and member.shift is not None:
        log_density = None if log_density is None else MovedDensity(log_density, x, x_prime, member.move)
        x, x_prime = np.zeros_like(member.shift), member.shift
    return Hints(None if log_density is None else LogRatio(log_density, x, x_prime), (x, x_prime))


@dataclasses.dataclass(frozen=True)
class Pooling:
    """Grouping of the asked pairs into games."""

    groups: tuple[tuple[int, ...], ...]  # the asked pairs of each game, by position, in order of their first
    games: tuple[Pool, ...]
    note: str = ""  # why pairs of a translation family could not be pooled

    @property
    def pools(self) -> int:
        """The number of games of several pairs."""
        return sum(len(group) > 1 for group in self.groups)

    def placed(self, positions: Sequence[tuple[int, int]]) -> tuple[Pool, ...]:
        """The games with other positions of the inputs of each asked pair: laws are the same, draws are not."""
        return tuple(
            Pool([
                dataclasses.replace(member, inputs=positions[k])
                for k, member in zip(group, game.members, strict=True)
            ])
            for group, game in zip(self.groups, self.games, strict=True)
        )  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        """The pools as the options of a result state them: nothing where there are none."""
        return {**({"pools": self.pools} if self.pools else {}), **({"pool_note": self.note} if self.note else {})}


def pool_pairs(
    subject: Subject,
    data: Sequence[Any],
    positions: Sequence[tuple[int, int]],
    claims: Sequence[Claim],
    wanted: bool | None,
) -> Pooling:
    """Group the asked pairs into games: those of one shift and budget in one, if the subject is a translation family.

    `positions` (of its two inputs among `data`) and `claims` are one a pair. Where `wanted` is False nothing is pooled,
    where it is None what can be pooled; where it is True and the subject is none, or an input has no location, that is
    a UsageError.
    """
    groups = [[k] for k in range(len(positions))]
    note = ""
    where: list[FloatArray | None] = [None] * len(data)
    if wanted is not False and positions:
        if says_so(subject.mechanism):
            where = [location_of(subject.mechanism, x) for x in data]
        elif wanted:
            raise UsageError(
                f"pool must be False or None for {subject.name}, which does not say that it is a translation family "
                "(translation_family = True), got True."
            )
        lost = [x for x, location in zip(data, where, strict=True) if location is None]
        if lost and wanted:
            raise UsageError(
                "pool must be False or None where an input is not finite numbers below 2^53, got "
                f"{short_form(lost[0])}."
            )
        if lost and says_so(subject.mechanism):
            note = f"{len(lost)} of {len(data)} inputs are not finite numbers below 2^53: their pairs are not pooled"
        groups = _of_one_shift(positions, where, claims)
    return Pooling(tuple(map(tuple, groups)), tuple(_game([positions[k] for k in g], where) for g in groups), note)


def _of_one_shift(
    positions: Sequence[tuple[int, int]], where: Sequence[FloatArray | None], claims: Sequence[Claim]
) -> list[list[int]]:
    """The pairs of each game, in order of their first; those without locations are alone."""
    largest = max((float(np.abs(location).max(initial=0.0)) for location in where if location is not None), default=0.0)
    # A power of two: shifts of numbers with few binary digits are whole steps, far from where they round another way.
    step = 2.0 ** math.frexp(SHIFT_PRECISION * largest)[1]
    groups: list[list[int]] = []
    known: dict[tuple[Any, ...], list[list[int]]] = {}
    for k, (first, second) in enumerate(positions):
        x, x_prime = where[first], where[second]
        if x is None or x_prime is None or x.shape != x_prime.shape:
            groups.append([k])
            continue
        same_shift = known.setdefault((x.shape, tuple(np.rint((x_prime - x).ravel() / step).tolist())), [])
        group = next((group for group in same_shift if _is_same(claims[group[0]], claims[k])), None)
        if group is None:
            group = []
            groups.append(group)
            same_shift.append(group)
        group.append(k)
    return groups


def _game(pairs: Sequence[tuple[int, int]], where: Sequence[FloatArray | None]) -> Pool:
    if len(pairs) == 1:
        return Pool.single(pairs[0])
    members = []
    for first, second in pairs:
        x, x_prime = where[first], where[second]
        assert x is not None and x_prime is not None
        members.append(Member((first, second), x, x_prime - x))
    return Pool(members)


def _is_same(claim: Claim, other: Claim) -> bool:
    """Tell whether two claims are one family at values that agree to nine digits."""
    if claim is other:
        return True
    return other.with_value(claim.value) == claim and math.isclose(claim.value, other.value, rel_tol=BUDGET_PRECISION)
