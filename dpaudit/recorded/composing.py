"""What the records of a pair imply, where nothing need be proved: the losses of all that was noised or decided, added.

x_prime is run with the looks and the untracked numbers of x (`Tape.frozen`). Each noisy number that the program looked
at or returned, and each decision, then has a loss of its own for this pair and this course of the run; composition adds
them (`dpaudit.privacy.composition`). The sum is what would be lost if all of them were seen. Outputs may show less: a
sparse vector, a permute-and-flip or a rejection sampler looks at far more noise than it pays for. So a sum above the
claim is told as "implied" and never as a violation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable

from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP, PureDP, ZeroConcentratedDP
from dpaudit.privacy.composition import compose
from dpaudit.recorded.laws import Law, combined
from dpaudit.recorded.runs import Path, is_within
from dpaudit.recorded.symbols import Noisy
from dpaudit.recorded.tape import Tape

SLACK = 1e-6
LARGEST = 700.0  # of an epsilon that can be a claim


@dataclasses.dataclass(frozen=True)
class Part:
    """The loss of one noisy number or decision: nats, or for normal noise standard deviations."""

    loss: float
    is_normal: bool
    text: str
    place: str


@dataclasses.dataclass(frozen=True)
class Implied:
    """The composed loss.

    Attributes
    ----------
    value : float
        In the claim's own parameter (epsilon at its delta, mu, rho); in nats where there is no claim. inf where it has
        no bound.
    parts : tuple of Part
        The largest first.
    exceeds : bool
        Whether it is above the claim.
    """

    value: float
    parts: tuple[Part, ...]
    exceeds: bool


@dataclasses.dataclass(frozen=True)
class Note:
    """Something that differs between the two runs: its kind, in words, and the line."""

    kind: str
    text: str
    place: str


def imply(claim: Claim | None, first: Path, second: Path) -> Implied | None:
    """What the records of the run on x and the frozen run on x_prime imply; None where nothing was noised."""
    parts = [part for part in _parts(first, second) if part.loss > 0.0]
    if not first.tape.noises and not first.tape.decisions:
        return None
    parts.sort(key=lambda part: -part.loss)
    value = _value(claim, parts)
    declared = None if claim is None else _declared(claim)
    exceeds = declared is not None and not claim_is_vacuous(claim) and value > declared * (1.0 + SLACK) + SLACK
    return Implied(value, tuple(parts), exceeds)


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
            mu if pure == 0.0 else math.inf if pure > LARGEST else compose([GaussianDP(mu), _gaussian_of(pure)]).value
        )
    if isinstance(claim, ZeroConcentratedDP):
        return 0.5 * mu * mu + 0.5 * pure * pure
    if mu == 0.0:
        return pure
    if delta == 0.0 or pure > LARGEST:
        return math.inf
    return compose([ApproxDP(GaussianDP(mu).epsilon_at(delta), delta), PureDP(pure)]).value


def _gaussian_of(epsilon: float) -> GaussianDP:
    """The least mu whose privacy profile is above that of a pure claim at epsilon 0."""
    from scipy.special import ndtri

    return GaussianDP(
        2.0 * float(ndtri(math.exp(epsilon) / (1.0 + math.exp(epsilon)))) if epsilon < 30.0 else 2.0 * epsilon
    )


def _parts(first: Path, second: Path) -> Iterable[Part]:
    a, b = first.tape, second.tape
    seen: dict[frozenset[int], Part] = {}

    def keep(noises: Iterable[int], part: Part | None) -> None:
        key = frozenset(noises)
        if part is not None and (key not in seen or part.loss > seen[key].loss):
            seen[key] = part

    for u, v in zip(a.looks, b.looks, strict=False):
        keep(
            (i for i, _ in u.terms),
            _of_noise(a, b, u.signal, v.signal, dict(u.terms), dict(v.terms), "a noisy number", u.place),
        )
    if first.output is not None and second.output is not None and first.output.skeleton == second.output.skeleton:
        for name, here, there in zip(first.output.names, first.output.leaves, second.output.leaves, strict=True):
            if isinstance(here, Noisy) and isinstance(there, Noisy):
                event = a.noises[next(iter(here.terms))].event
                what, place = f"output{name}", a.events[event].place
                keep(here.terms, _of_noise(a, b, here.signal, there.signal, here.terms, there.terms, what, place))
    yield from seen.values()
    for x, y in zip(a.decisions, b.decisions, strict=False):
        if len(x.probabilities) == len(y.probabilities):
            losses = [_log_ratio(p, q) for p, q in zip(x.probabilities, y.probabilities, strict=True)]
            yield Part(max(losses), False, f"a {x.what}", x.place)


def _log_ratio(p: float, q: float) -> float:
    if p == q:
        return 0.0
    return abs(math.log(p / q)) if p > 0.0 and q > 0.0 else math.inf


def _of_noise(
    a: Tape, b: Tape, u: float, v: float, first: dict[int, float], second: dict[int, float], what: str, place: str
) -> Part | None:
    """The loss of one noisy number on its own."""
    gap = 0.0 if is_within([u], [v])[0] else abs(u - v)
    laws = []
    for tape, terms in ((a, first), (b, second)):
        if not all(index < len(tape.noises) for index in terms):
            return None
        found = combined([(factor, tape.noises[index].law) for index, factor in terms.items()])
        if found is None:  # of several noises the widest: the number itself loses less
            found = max(
                ((factor, tape.noises[index].law) for index, factor in terms.items()),
                key=lambda pair: abs(pair[0]) * pair[1].scale,
            )
        laws.append(found)
    (f, law), (g, other) = laws
    if law.family != other.family:
        return Part(math.inf, False, f"{what} has {law.family} noise on x and {other.family} noise on x_prime", place)
    if abs(f * law.scale) != abs(g * other.scale) and abs(abs(f * law.scale) / abs(g * other.scale) - 1.0) > 1e-9:
        scales = f"{abs(f) * law.scale:.6g} on x and {abs(g) * other.scale:.6g} on x_prime"
        text = f"the scale of the {law.family} noise of {what} is {scales}"
        return Part(math.inf, False, text, place)
    if gap == 0.0:
        return None
    if math.isnan(gap) or math.isinf(gap):
        return Part(math.inf, False, f"the noise-free part of {what} is {u:.6g} on x and {v:.6g} on x_prime", place)
    distance, bounded = _distance(law, abs(f), gap)
    scales = f"{gap / (abs(f) * law.scale):.6g} scales of its {law.family} noise"
    text = f"the noise-free part of {what} moves by {gap:.6g}, {scales}"
    return Part(distance if bounded else math.inf, law.family == "normal", text, place)


def _distance(law: Law, factor: float, gap: float) -> tuple[float, bool]:
    """The loss of a shift, and whether it is bounded (or normal)."""
    if law.family == "two-sided geometric":
        steps = gap / factor
        return steps * -math.log(law.scale), abs(steps - round(steps)) < 1e-6
    if law.family == "cauchy":
        return 2.0 * math.asinh(0.5 * gap / (factor * law.scale)), True
    return gap / (factor * law.scale), law.family in ("laplace", "logistic", "normal")


def differences(first: Path, second: Path) -> list[Note]:
    """What differs between the two runs though all noise is the same."""
    notes: list[Note] = []
    a, b = first.tape.events, second.tape.events
    place = next(
        (k for k, (u, v) in enumerate(zip(a, b, strict=False)) if (u.primitive, u.shape) != (v.primitive, v.shape)),
        None,
    )
    if place is None and len(a) != len(b):
        place = min(len(a), len(b))
    if place is not None:
        said = [str(events[place]) if place < len(events) else "none" for events in (a, b)]
        line = (a[place] if place < len(a) else b[place]).place
        notes.append(Note("calls", f"call {place} is {said[0]} on x and {said[1]} on x_prime", line))
    for k, (u, v) in enumerate(zip(a[:place], b[:place], strict=False)):
        if u.parameters != v.parameters:
            notes.append(Note("parameters", f"call {k} is {u} on x and {v} on x_prime", u.place))
            break
    if first.raised != second.raised:
        where = first.place or second.place
        text = f"{first.raised or 'nothing'} is raised on x and {second.raised or 'nothing'} on x_prime"
        notes.append(Note("exception", text, where))
    elif first.output is not None and second.output is not None:
        if first.output.skeleton != second.output.skeleton:
            notes.append(Note("form", "the output has another form on x_prime though all noise is equal", ""))
        else:
            for name, here, there in zip(first.output.names, first.output.leaves, second.output.leaves, strict=True):
                if not isinstance(here, Noisy) and not isinstance(there, Noisy) and not is_within([here], [there])[0]:
                    text = f"output{name} is {here:.9g} on x and {there:.9g} on x_prime though all noise is equal"
                    notes.append(Note("output", text, ""))
                    break
    for tape, name in ((first.tape, "x"), (second.tape, "x_prime")):
        if tape.fixed_seeds:
            notes.append(Note("seed", f"a generator is made from a fixed seed on {name}", tape.fixed_seeds[0]))
            break
    return notes
