"""Randomness alignment: an upper bound on the loss of a pair, where nothing is proved and the loss is not computed.

A run is the same function of its noise on both inputs where its decisions are. If z is noise with which x goes one way
to an output, and z + shift is noise with which x_prime goes the same way to the same output, whatever z is, then that
output is at most e^loss as likely on x_prime, where loss is what the shift changes the density by, each noise counted
once, however many numbers it is in. A number of the output stays the same if the shift makes up for what its noise-free
parts differ by; a comparison `a z <= b w + gap` stays true if a shift_z - b shift_w <= gap' - gap. Where the numbers of
the output do not fix the shift, the cheapest one is a linear program. Noise that was compared and is not given out
need not be moved: decisions add the ratio of their probabilities.

The bound need not be reached: a sum above the claim is told as "implied" and never as a violation. Where no shift
explains the runs, nothing is implied.

Source: Zhang and Kifer (2017), arXiv:1607.08228 (randomness alignment).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.composition import compose
from dpaudit.symbolic.densities import is_none, is_whole
from dpaudit.symbolic.generators import first_apart
from dpaudit.symbolic.laws import FAMILIES, LAST_BITS, Law
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.runs import Path, Paths, differing, is_equal, is_within
from dpaudit.symbolic.tape import FREE, Tape

SLACK = 1e-6
MAX_EPS = 700.0  # of an epsilon that can be a claim
TOLERANCE = 1e-9  # of a linear program, in scales: far below the slack of what is said of an upper bound
# Whether noise may be moved down, too: the density of the others falls without bound, or has an end there.
SHIFTED = {"laplace": True, "logistic": True, "exponential": False, "gumbel": False, "geometric": False}
# Coefficients of shifts, what they add up to, or to at most, and the largest number behind that.
Row = tuple[Mapping[int, float], float, float]


@dataclasses.dataclass(frozen=True)
class Part:
    """The loss of one noise or of the decisions: nats, or for normal noise standard deviations."""

    loss: float
    is_normal: bool
    text: str
    place: str


@dataclasses.dataclass(frozen=True)
class Implied:
    """The composed loss: an upper bound, and whether it is above the claim.

    The value is in the claim's own parameter, in nats where there is no claim; of the parts the largest is first. With
    `is_unique` no other shift explains the runs, so that what was recorded loses as much if all of it is seen; not of a
    claim with a delta or a curve and other noise than normal one, as ratios bound these from above.
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


@dataclasses.dataclass(frozen=True)
class _Move:
    """Shifts from the noise of one run to that on the other input, with their losses."""

    parts: list[Part]
    steps: Mapping[int, float]
    decided: float
    is_unique: bool


def imply(claim: Claim | None, first: Paths, second: Paths) -> Implied | None:
    """Bound the loss of a pair from above; None where no run is noised or no bound is known."""
    if not any(path.tape.noises or path.tape.decisions for path in first.known):
        return None
    others = {path.outcomes: path for path in second.known}
    if others.keys() != {path.outcomes for path in first.known}:
        return None
    is_pure = claim is None or asks_of_ratios(claim)
    # Validity: normal noise has no largest ratio, so that one shift has to explain all runs in which it is compared.
    everywhere = set() if is_pure else {i for path in first.known for i in path.tape.intervals if _is_normal(path, i)}
    moves: list[tuple[Path, _Move]] = []
    for side in (0, 1):
        shifts: list[float] = []
        for path in first.known:
            both = (path, others[path.outcomes])
            moved = _moved(both[side], both[1 - side], everywhere)
            if moved is None:
                return None
            steps = [moved.steps.get(i, 0.0) for i in everywhere]
            shifts = shifts or steps
            if not all(is_within(shifts, steps)):
                return None
            moves.append((path, moved))
    alone = [[*moved.parts, _decision(path, moved.decided)] for path, moved in moves]
    value, parts = max(((_value(None, entry), entry) for entry in alone), key=lambda pair: pair[0])
    if not is_pure:  # one run is to blame for each output, but a delta sums over them; or all lose no more than that
        value = _value(claim, [Part(value, False, "", "")])
        worst = max(moved.decided for _, moved in moves)
        together = [[*moved.parts, _decision(path, worst)] for path, moved in moves]
        found = max(((_value(claim, entry), entry) for entry in together), key=lambda pair: pair[0])
        value, parts = min((value, parts), found, key=lambda pair: pair[0])
    if not math.isfinite(value):
        return None
    parts = sorted((part for part in parts if part.loss > 0.0), key=lambda part: -part.loss)
    is_unique = all(moved.is_unique for _, moved in moves) and (is_pure or all(part.is_normal for part in parts))
    return Implied(value, tuple(parts), exceeds(value, claim), is_unique)


def asks_of_ratios(claim: Claim) -> bool:
    """Tell whether a claim bounds the ratios of probabilities, without a delta."""
    return claim.family == "hockey-stick" and not claim.anchored and claim.delta == 0.0


def exceeds(value: float, claim: Claim | None) -> bool:
    """Tell whether a loss is above what a claim declares, by more than a share."""
    if claim is None or claim.is_vacuous:
        return False
    return value > (claim.epsilon if isinstance(claim, ApproxDP) else claim.value) * (1.0 + SLACK) + 1e-12


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
    from scipy.special import expit, ndtri

    return GaussianDP(2.0 * float(ndtri(expit(epsilon))) if epsilon < 30.0 else 2.0 * epsilon)


def _is_normal(path: Path, index: int) -> bool:
    return path.tape.noises[index].law.family == "normal"


def _decision(path: Path, loss: float) -> Part:
    places = [decision.place for decision in path.tape.decisions if decision.place]
    return Part(loss, False, "the probabilities of decisions", places[0] if places else "")


def _moved(one: Path, other: Path, compared: set[int]) -> _Move | None:
    """The cheapest move of the noises of an output; None where no shift explains the runs.

    Noise that was compared with that of the output is moved with it, and all other noise that was compared then too.
    """
    a, b = one.tape, other.tape
    numbers = noisy_pairs(one, other)
    if numbers is None:
        return None
    moved = {index for _, u, _ in numbers for index in u.terms} | (compared & a.intervals.keys())
    is_ordered = bool(moved & (a.units.keys() | b.units.keys()))
    if is_ordered:
        if one.token != other.token or not _have_one_order(a, b):
            return None
        moved |= a.units.keys() | a.intervals.keys()
    if any(index >= min(len(a.noises), len(b.noises)) for index in moved):
        return None
    laws = {index: a.noises[index].law for index in sorted(moved)}
    if any(not law.is_close(b.noises[index].law) for index, law in laws.items()):
        return None
    equal: list[Row] = [
        (u.terms, u.signal - v.signal, max(abs(u.signal), abs(v.signal), u.reach, v.reach)) for _, u, v in numbers
    ]
    below: list[Row] = []
    for index, law in laws.items():
        ends = [tape.intervals.get(index, FREE) for tape in (a, b)]
        if law.family == "normal":
            if is_ordered:
                return None
            pairs = zip(*ends, strict=True)
            equal += [_of_ends(index, 1.0, *pair) for pair in pairs if pair[0] != pair[1] or math.isfinite(pair[0])]
        else:
            below += _of_interval(index, law.support, *ends)
    for mine, its in zip(a.comparisons, b.comparisons, strict=True) if is_ordered else ():
        factors = {mine.lower: float(a.units[mine.lower]), mine.upper: -float(a.units[mine.upper])}
        below.append((factors, float(its.gap - mine.gap), float(max(abs(its.gap), abs(mine.gap)))))
    if not all(math.isfinite(end) for _, end, _ in (*equal, *below)):
        return None
    names = {index: f"output{name}" for name, u, _ in numbers for index in u.terms if len(u.terms) == 1}
    steps: dict[int, float] = {}
    is_unique = True
    for block in _blocks(moved, (*equal, *below)):
        own = [[row for row in rows if row[0].keys() & block] for rows in (equal, below)]
        found = _solution({index: laws[index] for index in block}, *own)
        if found is None:
            return None
        steps |= found[0]
        is_unique = is_unique and found[1]
    parts = [
        _part(law, steps[index], names.get(index, "a noise of the output"), a.place_of(index))
        for index, law in laws.items()
    ]
    p, q = (tape.picked if is_ordered else tape.probability(moved) for tape in (a, b))
    decided = 0.0 if p <= q else math.log(p / q) if q > 0.0 else math.inf
    return _Move(parts, steps, decided, is_unique)


def _have_one_order(a: Tape, b: Tape) -> bool:
    """Tell whether the same multiples of the same noises were compared on both inputs."""
    pairs = [[(one.lower, one.upper) for one in tape.comparisons] for tape in (a, b)]
    return pairs[0] == pairs[1] and a.units == b.units and a.intervals.keys() == b.intervals.keys()


def _of_ends(index: int, sign: float, mine: float, its: float) -> Row:
    """Condition that noise at an end is moved to another end, or not beyond it on the side of the sign."""
    return {index: sign}, sign * (its - mine), max(abs(mine), abs(its))


def _of_interval(
    index: int, support: tuple[float, float], mine: tuple[float, float], its: tuple[float, float]
) -> Iterator[Row]:
    """Condition that noise of one interval is moved into another one."""
    if its[0] > support[0]:
        yield _of_ends(index, -1.0, max(mine[0], support[0]), its[0])
    if its[1] < support[1]:
        yield _of_ends(index, 1.0, min(mine[1], support[1]), its[1])


def _blocks(indices: Iterable[int], rows: Sequence[Row]) -> Iterator[list[int]]:
    """The noises that rows tie to each other."""
    left = set(indices)
    while left:
        block, size = {min(left)}, 0
        while size < len(block):
            size = len(block)
            block = block.union(*(row.keys() for row, *_ in rows if row.keys() & block))
        left -= block
        yield sorted(block)


def _solution(
    laws: Mapping[int, Law], equal: Sequence[Row], below: Sequence[Row]
) -> tuple[dict[int, float], bool] | None:
    """The shift of each noise that solves the rows, and whether it is the only one or the noise is normal.

    Of several the one that loses least; None where none solves them.
    """
    units = np.array([law.unit for law in laws.values()])
    size = max((row[2] for row in (*equal, *below) if math.isfinite(row[2])), default=0.0)

    def matrix(rows: Sequence[Row]) -> tuple[NDArray[np.float64], ...]:
        """Each row in units of its norm, as the tolerance of the solver is an absolute one; and the size in it."""
        full = np.array([[row.get(index, 0.0) for index in laws] for row, *_ in rows]).reshape(len(rows), len(laws))
        norms = np.linalg.norm(full * units, axis=1)
        return full * units / norms[:, None], np.array([end for _, end, _ in rows], dtype=float) / norms, size / norms

    # In units of the scales the least squares of normal noise are its distance.
    (kept, ends, sizes), (under, limits, largest) = matrix(equal), matrix(below)
    shift = np.linalg.lstsq(kept, ends, rcond=None)[0] if equal else np.zeros(len(laws))
    is_unique = all(law.family == "normal" for law in laws.values())
    is_unique = is_unique or (bool(equal) and bool(np.linalg.matrix_rank(kept) == len(laws)))
    is_inside = (under @ shift <= limits + LAST_BITS * (largest + np.abs(under) @ np.abs(shift))).all()
    if not is_unique or not is_inside:
        from scipy.optimize import linprog

        free = [law.family in SHIFTED and (not law.is_discrete or law.scale < 1.0) for law in laws.values()]
        rates = [_loss(law, law.unit) if is_free else 0.0 for law, is_free in zip(laws.values(), free, strict=True)]
        downs = [is_free and SHIFTED[law.family] for law, is_free in zip(laws.values(), free, strict=True)]
        rows = {
            "A_ub": np.hstack([under, -under]) if below else None, "b_ub": limits if below else None,
            "A_eq": np.hstack([kept, -kept]) if equal else None, "b_eq": ends if equal else None,
        }  # fmt: skip
        bounds = [(0.0, None if may else 0.0) for may in (*free, *downs)]
        options = {"primal_feasibility_tolerance": 0.1 * TOLERANCE}
        found = linprog([*rates, *rates], **rows, bounds=bounds, options=options)
        if not found.success:
            return None
        shift, is_unique = np.subtract(*np.split(found.x, 2)), False
        if equal:  # its last digits
            shift[free] += np.linalg.lstsq(kept[:, free], ends - kept @ shift, rcond=None)[0]
    # Validity: what the outputs say without noise must agree to the last digits, not to the solver's tolerance.
    if (np.abs(kept @ shift - ends) > LAST_BITS * (sizes + np.abs(kept) @ np.abs(shift))).any():
        return None
    steps = dict(zip(laws, (shift * units).tolist(), strict=True))
    return {i: 0.0 if is_none(abs(step), size, laws[i].unit) else step for i, step in steps.items()}, is_unique


def _part(law: Law, step: float, name: str, place: str) -> Part:
    """The privacy loss of noise of this law that is moved."""
    return Part(_loss(law, step), law.family == "normal", law.moved_text(name, abs(step)), place)


def _loss(law: Law, step: float) -> float:
    """The loss of a step, of normal noise in standard deviations; infinite where it has no bound."""
    gap = abs(step) / law.unit
    if gap == 0.0 or law.family == "normal":
        return gap
    if law.is_discrete:
        is_bounded = step > 0.0 and is_whole(step) and law.scale < 1.0
        return -gap * math.log1p(-law.scale) if is_bounded else math.inf
    loss = FAMILIES[law.family].loss
    return loss(gap) if loss is not None else gap if step > 0.0 and law.family in SHIFTED else math.inf


def noisy_pairs(first: Path, second: Path) -> list[tuple[str, Noisy, Noisy]] | None:
    """The noisy numbers of two outputs that differ in nothing else and have the same noise; else None."""
    a, b = first.output, second.output
    if a is None or b is None:
        return [] if a is b and first.raised == second.raised else None
    if a.skeleton != b.skeleton:
        return None
    found = []
    for name, u, v in zip(a.names, a.leaves, b.leaves, strict=True):
        if isinstance(u, Noisy) and isinstance(v, Noisy):
            same = u.function == v.function and u.terms.keys() == v.terms.keys()
            same = same and all(
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


def differences(first: Path, second: Path) -> list[Note]:
    """Differences between the two runs though all noise is the same."""
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
    if first.output is not None and second.output is not None and first.output.skeleton != second.output.skeleton:
        notes.append(Note("form", "the output has another form on x_prime though all noise is equal", ""))
    if found := differing(first.output, second.output):
        name, one, other = found
        text = f"output{name} is {one:.9g} on x and {other:.9g} on x_prime though all noise is equal"
        notes.append(Note("output", text, ""))
    for tape, name in ((first.tape, "x"), (second.tape, "x_prime")):
        if tape.fixed_seeds:
            notes.append(Note("seed", f"a generator is made from a fixed seed on {name}", tape.fixed_seeds[0]))
            break
    return notes
