"""An upper bound on the loss of a pair, by composition, where nothing is proved and the loss itself is not computed.

Two runs with the same decisions are one function of their noise if one shift of the noise explains them: with z on x
and z + shift on x_prime the same comparisons hold and the same numbers come out. The outputs then lose at most what
the shift loses on independent noise, each noise counted once, however many numbers it is in. The shift solves the
linear equations of the noisy numbers and of the ends of comparisons; where it is not unique, the one that loses least
is taken. To this the decisions add the ratio of their probabilities.

The bound need not be reached: a sum above the claim is told as "implied" and never as a violation. Where no shift
explains the runs, nothing is implied.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.composition import compose
from dpaudit.symbolic.densities import is_none, is_whole
from dpaudit.symbolic.faces import first_apart
from dpaudit.symbolic.laws import FAMILIES, LAST_BITS, Law
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.runs import Path, Paths, is_equal, is_within

SLACK = 1e-6
MAX_EPS = 700.0  # of an epsilon that can be a claim


@dataclasses.dataclass(frozen=True)
class Part:
    """The loss of one noise or of the decisions: nats, or for normal noise standard deviations."""

    loss: float
    is_normal: bool
    text: str
    place: str


@dataclasses.dataclass(frozen=True)
class Implied:
    """The composed loss: an upper bound.

    Attributes
    ----------
    value : float
        In the claim's own parameter (epsilon at its delta, mu, rho); in nats where there is no claim.
    parts : tuple of Part
        The largest first.
    exceeds : bool
        Whether it is above the claim.
    is_unique : bool
        Whether no other shift explains the runs, so that what was recorded loses as much if all of it is seen.
    """

    value: float
    parts: tuple[Part, ...]
    exceeds: bool
    is_unique: bool = True


@dataclasses.dataclass(frozen=True)
class Note:
    """Something that differs between the two runs: its kind, in words, and the line."""

    kind: str
    text: str
    place: str


def imply(claim: Claim | None, first: Paths, second: Paths) -> Implied | None:
    """Bound the loss of a pair from above; None where no run is noised or no bound is known."""
    if not any(path.tape.noises or path.tape.decisions for path in first.known):
        return None
    others = {path.outcomes: path for path in second.known}
    if others.keys() != {path.outcomes for path in first.known}:
        return None
    is_pure = claim is None or (isinstance(claim, ApproxDP) and claim.delta == 0.0)
    # Validity: normal noise has no largest ratio, so that one shift has to explain all runs in which it is compared.
    everywhere = set() if is_pure else {i for path in first.known for i in path.tape.intervals if _is_normal(path, i)}
    shifts: list[float] = []
    found, decided, is_unique = [], [], True
    for path in first.known:
        moved = _moved(path, others[path.outcomes], everywhere)
        if moved is None:
            return None
        steps = [moved[1].get(i, 0.0) for i in everywhere]
        shifts = shifts or steps
        if not all(is_within(shifts, steps)):
            return None
        found.append(moved[0])
        decided.append(_decided(path, others[path.outcomes], moved[1]))
        is_unique = is_unique and moved[2]
    losses = decided if is_pure else [max(decided)] * len(found)  # of an output one run is to blame
    ends = [[*parts, _decision(path, loss)] for parts, path, loss in zip(found, first.known, losses, strict=True)]
    value, parts = max(((_value(claim, entry), entry) for entry in ends), key=lambda pair: pair[0])
    if not math.isfinite(value):
        return None
    parts = sorted((part for part in parts if part.loss > 0.0), key=lambda part: -part.loss)
    declared = None if claim is None else _declared(claim)
    exceeds = declared is not None and not claim_is_vacuous(claim) and value > declared * (1.0 + SLACK) + SLACK
    return Implied(value, tuple(parts), exceeds, is_unique)


def claim_is_vacuous(claim: Claim | None) -> bool:
    """Whether a claim promises nothing."""
    return claim is not None and claim.is_vacuous


def _declared(claim: Claim) -> float:
    return claim.epsilon if isinstance(claim, ApproxDP) else claim.value


def _value(claim: Claim | None, parts: Iterable[Part]) -> float:
    """The composed loss in the claim's parameter."""
    listed = list(parts)
    pure = math.fsum(part.loss for part in listed if not part.is_normal)
    mu = math.hypot(*(part.loss for part in listed if part.is_normal)) if listed else 0.0
    if not math.isfinite(pure) or not math.isfinite(mu):
        return math.inf
    delta = claim.delta if isinstance(claim, ApproxDP) else 0.0
    if isinstance(claim, GaussianDP):
        return (
            mu if pure == 0.0 else math.inf if pure > MAX_EPS else compose([GaussianDP(mu), _gaussian_of(pure)]).value
        )
    if isinstance(claim, ZeroConcentratedDP | RenyiDP):  # a pure loss of e has a divergence of at most order e^2 / 2
        return 0.5 * (claim.order if isinstance(claim, RenyiDP) else 1.0) * (mu * mu + pure * pure)
    if claim is not None and not isinstance(claim, ApproxDP):
        return 0.0 if mu == pure == 0.0 else math.inf  # a profile: not composed here
    if mu == 0.0:
        return pure
    if delta == 0.0 or pure > MAX_EPS:
        return math.inf
    return compose([ApproxDP(GaussianDP(mu).epsilon_at(delta), delta), PureDP(pure)]).value


def _gaussian_of(epsilon: float) -> GaussianDP:
    """The least mu whose privacy profile is above that of a pure claim at epsilon 0."""
    from scipy.special import ndtri

    return GaussianDP(
        2.0 * float(ndtri(math.exp(epsilon) / (1.0 + math.exp(epsilon)))) if epsilon < 30.0 else 2.0 * epsilon
    )


def _is_normal(path: Path, index: int) -> bool:
    return path.tape.noises[index].law.family == "normal"


def _decided(first: Path, second: Path, moved: Iterable[int]) -> float:
    """The log ratio of the probabilities of two runs, but for what is explained by a shift."""
    without = set(moved)
    p, q = first.tape.probability(without), second.tape.probability(without)
    if p == q:
        return 0.0
    return abs(math.log(p / q)) if p > 0.0 and q > 0.0 else math.inf


def _decision(path: Path, loss: float) -> Part:
    places = [decision.place for decision in path.tape.decisions if decision.place]
    return Part(loss, False, "the probabilities of decisions", places[0] if places else "")


def _moved(first: Path, second: Path, compared: set[int]) -> tuple[list[Part], dict[int, float], bool] | None:
    """The losses of the noises of an output, the shift of each that is solved for, and whether it is the only one.

    None where no shift explains the runs.
    """
    a, b = first.tape, second.tape
    numbers = noisy_pairs(first, second)
    if numbers is None:
        return None
    parts: list[Part] = []
    solved: list[tuple[str, Noisy, Noisy]] = []
    for k, (name, u, v) in enumerate(numbers):
        elsewhere = {index for j, (_, other, _) in enumerate(numbers) if j != k for index in other.terms}
        whole = u.law
        if whole is None or len(u.terms) == 1 or (elsewhere | a.intervals.keys() | b.intervals.keys()) & u.terms.keys():
            solved.append((name, u, v))
        else:
            gap = abs(u.signal - v.signal) / abs(whole[0])
            parts.append(_loss_of_shift(whole[1], gap, f"output{name}", _place(first, u)))
    indices = sorted({index for _, u, _ in solved for index in u.terms} | (compared & set(a.intervals)))
    spent = a.spent | b.spent
    if spent & {index for _, u, _ in numbers for index in u.terms}:
        return None  # the place of the largest has said something of it
    rows = [[u.terms.get(index, 0.0) for index in indices] for _, u, _ in solved]
    gaps = [u.signal - v.signal for _, u, v in solved]
    sizes = [max(abs(u.signal), abs(v.signal), u.reach, v.reach) for _, u, v in solved]
    for index in indices:
        if index >= len(b.noises) or not a.noises[index].law.is_close(b.noises[index].law):
            return None
        for end, other in zip(a.intervals.get(index, _FREE), b.intervals.get(index, _FREE), strict=True):
            if math.isfinite(end) != math.isfinite(other):
                return None
            if math.isfinite(end):
                rows.append([float(index == one) for one in indices])
                gaps.append(other - end)
                sizes.append(max(abs(end), abs(other)))
    laws = [a.noises[index].law for index in indices]
    matrix = np.array(rows).reshape(len(rows), len(indices))
    solution = _solution(matrix, np.array(gaps), max(sizes, default=0.0), laws)
    if solution is None:
        return None
    shift, is_unique = solution
    names = {index: f"output{name}" for name, u, _ in solved for index in u.terms if len(u.terms) == 1}
    for index, law, step in zip(indices, laws, shift, strict=True):
        name = names.get(index, "a noise of the output")
        parts.append(_loss_of_shift(law, abs(step), name, a.events[a.noises[index].event].place))
    return parts, dict(zip(indices, shift, strict=True)), is_unique


_FREE = (-math.inf, math.inf)


def noisy_pairs(first: Path, second: Path) -> list[tuple[str, Noisy, Noisy]] | None:
    """The noisy numbers of two outputs that differ in nothing else and have the same noise; else None."""
    a, b = first.output, second.output
    if a is None or b is None:
        return [] if a is b and first.raised == second.raised else None
    if a.skeleton != b.skeleton or a.functions != b.functions:
        return None
    found = []
    for name, u, v in zip(a.names, a.leaves, b.leaves, strict=True):
        if isinstance(u, Noisy) and isinstance(v, Noisy):
            same = u.terms.keys() == v.terms.keys() and all(
                abs(u.terms[i] - v.terms[i]) <= LAST_BITS * abs(u.terms[i])
                and u.tape.noises[i].law.is_close(v.tape.noises[i].law)
                for i in u.terms
            )
            if not same or not math.isfinite(u.signal) or not math.isfinite(v.signal):
                return None
            found.append((name, u, v))
        elif isinstance(u, Noisy) or isinstance(v, Noisy) or not is_equal(u, v):
            return None
    return found


def _place(path: Path, leaf: Noisy) -> str:
    return path.tape.events[path.tape.noises[next(iter(leaf.terms))].event].place


def _solution(
    matrix: NDArray[np.float64], gaps: NDArray[np.float64], size: float, laws: Sequence[Law]
) -> tuple[list[float], bool] | None:
    """The shift of each noise that solves the equations, and whether it is the only one or the noise is normal.

    Of several the one that loses least; None where none solves them.
    """
    count = len(laws)
    if not count:
        return [], True
    # In units of the scales the least squares of normal noise are its distance.
    scaled = matrix * [law.unit for law in laws]
    norms = np.linalg.norm(scaled, axis=1)
    norms[norms == 0.0] = 1.0
    rows, ends = scaled / norms[:, None], gaps / norms
    shift = np.linalg.lstsq(rows, ends, rcond=None)[0]
    is_unique = all(law.family == "normal" for law in laws) or bool(np.linalg.matrix_rank(rows) == count)
    if not is_unique:
        from scipy.optimize import linprog

        free = [
            k for k, law in enumerate(laws) if law.family in ("laplace", "logistic")
        ]  # the loss grows with the shift
        kept = rows[:, free]
        found = linprog(np.ones(2 * len(free)), A_eq=np.hstack([kept, -kept]), b_eq=ends)
        if not found.success:
            return None
        shift = np.zeros(count)
        up, down = np.split(found.x, 2)
        shift[free] = up - down + np.linalg.lstsq(kept, ends - kept @ (up - down), rcond=None)[0]  # its last digits
    if (np.abs(scaled @ shift - gaps) > LAST_BITS * (size + np.abs(scaled) @ np.abs(shift))).any():
        return None
    moved = [float(step) * law.unit for step, law in zip(shift, laws, strict=True)]
    return [
        0.0 if is_none(abs(step), size, law.unit) else step for step, law in zip(moved, laws, strict=True)
    ], is_unique


def _loss_of_shift(law: Law, gap: float, name: str, place: str) -> Part:
    """The privacy loss of noise of this law that is shifted by `gap`."""
    loss, is_bounded = _distance(law, gap)
    unit = "standard deviations" if law.family == "normal" else "scales"
    text = f"the noise-free part of {name} moves by {gap:.6g}, {gap / law.unit:.6g} {unit} of its {law.family} noise"
    return Part(loss if is_bounded or gap == 0.0 else math.inf, law.family == "normal", text, place)


def _distance(law: Law, gap: float) -> tuple[float, bool]:
    """The loss of a shift, and whether it is bounded (or normal)."""
    if law.is_discrete:
        is_bounded = law.family == "two-sided geometric" and is_whole(gap)
        return gap * -math.log(law.scale) if is_bounded else gap, is_bounded
    loss = FAMILIES[law.family].loss
    return gap / law.scale if loss is None else loss(gap / law.scale), loss is not None or law.family == "normal"


def differences(first: Path, second: Path) -> list[Note]:
    """What differs between the two runs though all noise is the same."""
    notes: list[Note] = []
    a, b = first.tape.events, second.tape.events
    place, here, there = first_apart(a, b) or (None, "", "")
    if place is not None:
        line = (a[place] if place < len(a) else b[place]).place
        notes.append(Note("calls", f"call {place} is {here} on x and {there} on x_prime", line))
    for k, (u, v) in enumerate(zip(a[:place], b[:place], strict=False)):
        if u.parameters != v.parameters:
            notes.append(Note("parameters", f"call {k} is {u} on x and {v} on x_prime", u.place))
            break
    if first.raised != second.raised:
        where = first.place or second.place
        text = f"{first.raised or 'nothing'} is raised on x and {second.raised or 'nothing'} on x_prime"
        notes.append(Note("exception", text, where))
    if first.output is not None and second.output is not None:
        if first.output.skeleton != second.output.skeleton:
            notes.append(Note("form", "the output has another form on x_prime though all noise is equal", ""))
        else:
            for name, one, other in zip(first.output.names, first.output.leaves, second.output.leaves, strict=True):
                if not isinstance(one, Noisy) and not isinstance(other, Noisy) and not is_within([one], [other])[0]:
                    text = f"output{name} is {one:.9g} on x and {other:.9g} on x_prime though all noise is equal"
                    notes.append(Note("output", text, ""))
                    break
    for tape, name in ((first.tape, "x"), (second.tape, "x_prime")):
        if tape.fixed_seeds:
            notes.append(Note("seed", f"a generator is made from a fixed seed on {name}", tape.fixed_seeds[0]))
            break
    return notes
