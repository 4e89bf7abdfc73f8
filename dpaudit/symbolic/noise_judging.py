"""Proof from the known runs of a pair: a lower bound on its loss, in the claim's own terms.

The output law of an input is a mixture over its paths. Paths with one *signature* (skeleton, the numbers without noise,
the places of the noisy ones) form an event, which is disjoint from those of other signatures; its probability is a sum
of products of known masses. Where both inputs have one path of a signature, its density is known too: independent noise
of named laws around noise-free parts. All this bounds the loss from below:

* the events alone: P(event), less e^epsilon times P'(event) and whatever was not explored on that side;
* a path with its noise: the ratio of densities at points of the support (pure claims), the hockey-stick or Renyi
  divergence of the noise (others). Numbers whose noise has no name here are left out, which is post-processing.
* one noise in several numbers: what a combination of them gives without noise must be the same on both inputs.

A claim counts as broken beyond a relative slack of 1e-6, far above the rounding errors of what is computed here.

Source: Dwork and Roth (2014), definition 2.4.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from dpaudit.privacy.claims import Claim, number_text
from dpaudit.symbolic.alignment import asks_of_ratios
from dpaudit.symbolic.densities import (
    ROUNDING,
    NoisyNumber,
    has_exact_ratio,
    hockey_stick,
    largest_ratio,
    mixed_hockey_stick,
    mixture,
    noisy_numbers,
    output_name,
    renyi,
)
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.outputs import Laid
from dpaudit.symbolic.runs import Path, Paths, differing, is_equal, is_within
from dpaudit.symbolic.tape import FREE

SLACK = 1e-6
SIGNS = (-1.0, 1.0)  # of the relative errors on both inputs
MAX_EPSILONS = 3  # of a claim, at which a mixture is integrated
MAX_MIXED = 40  # paths, or numbers of the output, of which mixtures are integrated
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 20.0)


@dataclasses.dataclass(frozen=True)
class Proof:
    """Loss that is proved of a pair.

    `loss` is a lower bound in nats at delta 0 (the largest log ratio of probabilities that was found), or inf; with
    `is_exact` it is the loss itself, up to rounding: every run is known, and every density. `statement` says what
    breaks the claim, and is empty where nothing does. Where outputs were taken for one that certificates and audits
    tell apart (`merges`), the loss may be larger.
    """

    loss: float = 0.0
    statement: str = ""
    places: tuple[str, ...] = ()
    is_exact: bool = False
    merges: bool = False


@dataclasses.dataclass
class _Group:
    """The paths of one signature."""

    output: Laid | None
    raised: str
    paths: tuple[list[Path], list[Path]]

    @property
    def form(self) -> Any:
        """Part of its outputs that no noise changes, but for numbers; None where an exception is raised."""
        return None if self.output is None else self.output.skeleton

    def mass(self, side: int, sign: float = 0.0) -> float:
        """The probability on a side, with `sign` as in `bounded_mass`."""
        return math.fsum(bounded_mass(path, sign) for path in self.paths[side])

    def different(self) -> list[Path]:
        """Its paths where rounded numbers tell them apart, else its first one."""
        paths = self.paths[0] + self.paths[1]
        is_rounded = self.output is not None and any(getattr(leaf, "by", None) for leaf in self.output.leaves)
        return paths if is_rounded else paths[:1]


def bounded_mass(path: Path, sign: float, without: Collection[int] = ()) -> float:
    """The probability of a path (sign 0), or a bound on it from below (-1) or above (1) for its rounding errors."""
    return path.tape.probability(without) * (1.0 + sign * path.tape.relative_error(without))


def prove(claim: Claim | None, first: Paths, second: Paths) -> Proof:
    """The worst that is proved of a pair, and whether the claim is broken by it."""
    if claim is not None and claim.is_vacuous:
        return Proof()
    if first.message or second.message:
        return Proof()
    groups = _groups(first, second)
    if groups is None:
        outcomes = [{(*path.outcomes, path.token) for path in paths.known} for paths in (first, second)]
        return Proof(merges=outcomes[0] != outcomes[1])
    # Validity: the relative error of probabilities is taken off the loss.
    is_sure = all(path.tape.relative_error() <= 0.1 * SLACK for path in (*first.known, *second.known))
    is_exact = first.left == second.left == 0.0 and is_sure
    is_exact = is_exact and all(_is_exact(claim, group, len(groups)) for group in groups)
    best = Proof()
    for direction in ((0, 1), (1, 0)):
        left = (first, second)[direction[1]].left
        own = None if claim is None else claim.in_order(direction == (1, 0))
        best = _worse(best, _by_events(own, groups, direction, left))
        if left == 0.0:
            for group in groups:
                if len(group.paths[0]) + len(group.paths[1]) > 2 and all(group.paths):
                    best = _worse(best, _by_mixtures(own, group, direction))
                if all(len(group.paths[side]) == 1 for side in direction) and group.output is not None:
                    best = _worse(best, _by_noise(own, group, direction))
    merges = any(len({path.token for side in group.paths for path in side}) > 1 for group in groups)
    return dataclasses.replace(best, is_exact=is_exact, merges=merges)


def _is_exact(claim: Claim | None, group: _Group, groups: int) -> bool:
    """Tell whether what is asked of the outputs of a signature is computed, and not only bounded from below."""
    is_pure = claim is None or asks_of_ratios(claim)
    if claim is not None and not is_pure and (claim.family == "renyi" or claim.anchored):
        return False  # a curve, of which some points are looked at
    if group.output is None:
        return True
    outputs = [path.output.leaves for side in group.paths for path in side if path.output is not None]
    plain = [leaves for leaves in zip(*outputs, strict=True) if not isinstance(leaves[0], Noisy)]
    # Validity: what differs too little for a signature of its own differs in truth.
    if not all(is_equal(leaves[0], leaf) for leaves in plain for leaf in leaves):
        return False
    if not group.output.is_noisy:
        return True
    if not all(group.paths):
        return True  # the one input gives none of them
    if any(len(side) > 1 for side in group.paths):
        return False
    leaves, _used, shared, is_all = noisy_numbers((group.paths[0][0], group.paths[1][0]))
    if any(leaf.is_undecided for leaf in leaves):
        return False
    if is_pure:
        return bool(shared) or (is_all and all(map(has_exact_ratio, leaves)))
    moved = [leaf for leaf in leaves if leaf.shift or not leaf.has_one_scale]
    # Other laws are integrated, less the errors of that.
    closed = all(leaf.has_one_scale and leaf.laws[0].family in ("laplace", "normal") for leaf in moved)
    return is_all and groups == 1 and len(moved) <= 1 and closed and all(leaf.is_whole for leaf in leaves)


def _worse(a: Proof, b: Proof) -> Proof:
    if bool(a.statement) != bool(b.statement):
        kept = a if a.statement else b
    else:
        kept = a if a.loss >= b.loss else b
    return dataclasses.replace(kept, loss=max(a.loss, b.loss))


# Signatures.


def _groups(first: Paths, second: Paths) -> list[_Group] | None:
    """The paths by signature; None where two signatures may share outputs."""
    groups: list[_Group] = []
    for side, paths in enumerate((first, second)):
        for path in paths.known:
            # Validity: what a rounded number may be differs between the paths of a signature, with its interval.
            if any(_relation(one, path) == "unclear" for group in groups for one in group.different()):
                return None
            for group in groups:
                if _relation(group.different()[0], path) == "same":
                    group.paths[side].append(path)
                    break
            else:
                found: tuple[list[Path], list[Path]] = ([], [])
                found[side].append(path)
                groups.append(_Group(path.output, path.raised, found))
    return groups


def _relation(one: Path, path: Path) -> str:
    """Tell whether two paths have one signature, outputs of their own, or neither for sure."""
    a, b = one.output, path.output
    if a is None or b is None:
        return "same" if a is b and one.raised == path.raised else "apart"
    if a.skeleton != b.skeleton:
        return "apart"
    noisy = [(isinstance(u, Noisy), isinstance(v, Noisy)) for u, v in zip(a.leaves, b.leaves, strict=True)]
    plain = [k for k, (u, v) in enumerate(noisy) if not u and not v]
    if not all(is_within([a.leaves[k] for k in plain], [b.leaves[k] for k in plain])):  # type: ignore[misc]
        return "apart"
    both = [k for k, (u, v) in enumerate(noisy) if u and v]
    if any(a.leaves[k].function != b.leaves[k].function for k in both):  # type: ignore[union-attr]
        return "unclear"
    mixed = [k for k, (u, v) in enumerate(noisy) if u != v]
    if not mixed:
        return "same"
    return "apart" if any(_are_apart(a, b, k) and _are_apart(b, a, k) for k in mixed) else "unclear"


def _are_apart(a: Laid, b: Laid, k: int) -> bool:
    """Tell whether a noisy number of the one output takes the value of the other's with probability 0."""
    leaf, number = a.leaves[k], b.leaves[k]
    if not isinstance(leaf, Noisy) or isinstance(number, Noisy):
        return True
    noises, by = leaf.tape.noises, leaf.by
    if all(noises[index].law.is_discrete for index in leaf.terms):
        return False
    if by is None or not by.step or not math.isfinite(number):
        return True
    if len(leaf.terms) > 1:
        return False
    ((index, factor),) = leaf.terms.items()
    low, high = sorted(leaf.signal + factor * end for end in leaf.tape.intervals.get(index, FREE))
    first, last = by.last(math.nextafter(number, -math.inf)), by.last(number)
    return min(high, last) - max(low, first) <= ROUNDING * (abs(first) + abs(last))


# Events.


def _by_events(claim: Claim | None, groups: Sequence[_Group], direction: tuple[int, int], left: float) -> Proof:
    """Proof by the probabilities of the signatures."""
    p = np.array([group.mass(direction[0], -1.0) for group in groups])
    q = np.array([group.mass(direction[1], 1.0) for group in groups])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(p > 0.0, np.log(p) - np.log(q + left), -math.inf)
    if not len(ratios) or not np.isfinite(p).all() or not np.isfinite(q).all():
        return Proof()
    worst = int(np.argmax(ratios))
    loss = max(float(ratios[worst]), 0.0)
    if claim is None:
        return Proof(loss)

    def delta(epsilon: float) -> float:
        kept = p > math.exp(epsilon) * (q + left)
        # `left` may be anywhere: it is paid once for the union of the events.
        return float(p[kept].sum() - math.exp(epsilon) * min(q[kept].sum() + left, 1.0))

    broken = _broken(claim, loss, lambda order: _renyi_of_events(p, q, order) if left == 0.0 else 0.0, delta)
    if not broken:
        return Proof(loss)
    what, places = _event_in_words(groups[worst], groups, direction)
    return Proof(loss, f"{what}: {broken}", places)


def _renyi_of_events(p: Any, q: Any, order: float) -> float:
    if bool(((p > 0.0) & (q <= 0.0)).any()):
        return math.inf
    both = (p > 0.0) & (q > 0.0)
    terms = order * np.log(p[both]) + (1.0 - order) * np.log(q[both])
    return max(float(np.logaddexp.reduce(terms)) / (order - 1.0), 0.0) if both.any() else 0.0


def _event_in_words(group: _Group, groups: Sequence[_Group], direction: tuple[int, int]) -> tuple[str, tuple[str, ...]]:
    p, q = group.mass(direction[0]), group.mass(direction[1])
    names = ("x", "x_prime")
    u, v = names[direction[0]], names[direction[1]]
    others = [one for one in groups if one.paths[direction[1]] and one is not group]
    other = next((one for one in others if one.form == group.form), others[0] if others else None)
    path = (group.paths[direction[0]] or group.paths[direction[1]])[0]
    if group.output is None:
        return f"{group.raised} is raised with probability {p:.6g} on {u} and {q:.6g} on {v}", (path.place,)
    if other is not None and other.output is None:
        there = other.paths[direction[1]][0]
        return f"{other.raised} is raised with probability {other.mass(direction[1]):.6g} on {v}", (there.place,)
    places = tuple(dict.fromkeys(decision.place for decision in path.tape.decisions))[:2]
    if q > 0.0 or other is None or other.output is None:
        return f"one kind of output has probability {p:.6g} on {u} and {q:.6g} on {v}", places
    if group.output.skeleton != other.output.skeleton:
        a, b = _differing(group.output.skeleton, other.output.skeleton)
        if any(one.paths[direction[0]] and one.form != group.form for one in groups):
            return f"the form of the output is {a} with probability {p:.6g} on {u} and {q:.6g} on {v}", places
        return f"the form of the output is {a} on {u} and {b} on {v}, whatever the noise", places
    for name, here, there_ in zip(group.output.names, group.output.leaves, other.output.leaves, strict=True):
        a_noisy, b_noisy = isinstance(here, Noisy), isinstance(there_, Noisy)
        if a_noisy != b_noisy:
            return f"the number {name or 'of the output'} has noise on one input only", places
    if found := differing(group.output, other.output):
        name, one, two = found
        return f"{output_name(name)} is {one:.9g} on {u} and {two:.9g} on {v}, without noise", places
    return f"an output of {u} is impossible on {v}", places


def _differing(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[str, str]:
    for u, v in zip(a, b, strict=False):
        if u != v:
            return str(u)[:60], str(v)[:60]
    return f"{len(a)} parts", f"{len(b)} parts"


# Noise.


def _by_noise(claim: Claim | None, group: _Group, direction: tuple[int, int]) -> Proof:
    """Proof by the densities of two paths of one signature."""
    paths = (group.paths[direction[0]][0], group.paths[direction[1]][0])
    assert paths[0].output is not None and paths[1].output is not None
    leaves, used, shared, _is_all = noisy_numbers(paths)
    # Validity: all masses of the first input are bounded from below, those of the second from above.
    rest = [bounded_mass(path, sign, used[side]) for side, (path, sign) in enumerate(zip(paths, SIGNS, strict=True))]
    if shared:
        return Proof(math.inf, *_if_broken(claim, shared, bounded_mass(paths[0], -1.0)))
    if not leaves or not rest[0] > 0.0:
        return Proof()
    offset = math.log(rest[0] / rest[1]) if rest[1] > 0.0 else math.inf
    ratios = [largest_ratio(leaf) for leaf in leaves]
    if -math.inf in ratios or not math.isfinite(offset):
        return Proof()  # the events say as much
    loss = max(offset + math.fsum(ratios), 0.0)
    normal = [leaf for leaf in leaves if leaf.laws[0].family == "normal" and leaf.has_one_scale and leaf.is_whole]
    mu = math.hypot(*(leaf.shift / leaf.scales[0] for leaf in normal)) if normal else 0.0
    if claim is None:
        return Proof(loss)
    order = sorted(range(len(leaves)), key=lambda k: -ratios[k])
    worst = [leaves[k] for k in order if ratios[k] > 0.0] or leaves
    places = tuple(dict.fromkeys(leaf.place for leaf in worst))[:3]
    whole = [bounded_mass(path, sign) for path, sign in zip(paths, SIGNS, strict=True)]
    if not min(whole) > 0.0:
        return Proof()
    offset = math.log(whole[0] / whole[1])
    is_whole = abs(offset) <= ROUNDING and whole[0] >= 1.0 - ROUNDING
    broken = _broken(
        claim,
        loss,
        lambda order: math.fsum(renyi(leaf, order) for leaf in leaves) if is_whole else 0.0,
        lambda epsilon: whole[0] * hockey_stick(leaves, mu, epsilon - offset),
    )
    if not broken:
        return Proof(loss)
    return Proof(loss, f"{_moved(worst, direction)}: {broken}", places)


def _by_mixtures(claim: Claim | None, group: _Group, direction: tuple[int, int]) -> Proof:
    """Proof by one number where several paths lead to one form of the output; of claims with a delta."""
    if claim is None or claim.family == "renyi" or asks_of_ratios(claim) or group.output is None:
        return Proof()
    for number, leaf in enumerate(group.output.leaves[:MAX_MIXED]):
        if not isinstance(leaf, Noisy) or sum(map(len, group.paths)) > MAX_MIXED or (leaf.by and leaf.by.step):
            continue
        laws = [
            mixture([(path, bounded_mass(path, sign)) for path in group.paths[side]], number)
            for side, sign in zip(direction, SIGNS, strict=True)
        ]
        if laws[0] is None or laws[1] is None:
            continue
        delta = functools.partial(mixed_hockey_stick, laws[0], laws[1])
        broken = _broken(claim, 0.0, lambda _: 0.0, delta, MAX_EPSILONS)
        if broken:
            tape = leaf.tape
            lines = [decision.place for path in group.paths[direction[0]] for decision in path.tape.decisions]
            places = [tape.place_of(index) for index in leaf.terms]
            text = f"{output_name(group.output.names[number])} is a mixture of noisy numbers: {broken}"
            return Proof(0.0, text, tuple(dict.fromkeys([*places, *lines]))[:2])
    return Proof()


def _if_broken(claim: Claim | None, shared: tuple[str, str], mass: float) -> tuple[str, tuple[str, ...]]:
    """A combination without noise differs: all of the path's probability is on outputs that the other cannot give."""
    what, place = shared
    if claim is None:
        return "", ()
    if claim.family == "renyi" or asks_of_ratios(claim):
        return (f"{what}: an infinite loss", (place,)) if mass > 1e-12 else ("", ())
    allowed = claim.profile(700.0)
    if mass > allowed * (1.0 + SLACK) + 1e-12:
        return f"{what}: delta {mass:.6g} at every epsilon, claimed {allowed:.6g}", (place,)
    return "", ()


# Claims.


def _broken(
    claim: Claim,
    loss: float,
    divergence: Callable[[float], float],
    delta: Callable[[float], float],
    most_epsilons: int | None = None,
) -> str:
    """Part of a claim that is broken, in words, by lower bounds on what it bounds; empty if none is.

    `divergence` gives the Renyi divergence of an order, and `delta` that of an epsilon, the least ones first.
    """
    if asks_of_ratios(claim):
        is_broken = loss > claim.value * (1.0 + SLACK) + SLACK
        nats = "infinitely many nats" if math.isinf(loss) else f"{loss:.6g} nats"
        return f"a loss of {nats}, claimed {number_text(claim.value)}" if is_broken else ""
    if claim.family == "renyi":
        for order in claim.orders:
            found, allowed = divergence(order), float(claim.renyi_epsilons(np.array([claim.value]), order)[0])
            if found > allowed * (1.0 + SLACK) + SLACK:
                return f"a divergence of {found:.6g} at order {order:g}, claimed {allowed:.6g}"
        return ""
    for epsilon in sorted({min(claim.budget.epsilon, 700.0), *EPSILONS})[:most_epsilons]:
        found, allowed = delta(epsilon), claim.profile(epsilon)
        if found > allowed * (1.0 + SLACK) + 1e-12:
            return f"delta {found:.6g} at epsilon {epsilon:.4g}, claimed {allowed:.6g}"
    return ""


def _moved(worst: Sequence[NoisyNumber], direction: tuple[int, int]) -> str:
    """The worst numbers in words."""
    if not worst:
        return "the noise-free parts differ"
    leaf = worst[0]
    family = leaf.laws[0].family
    if leaf.is_never_a_number:
        a, b = leaf.signals[direction[0]], leaf.signals[direction[1]]
        return f"the noise-free part of {leaf.name} is {a:.6g} on x and {b:.6g} on x_prime, whatever the noise"
    if not leaf.has_one_scale:
        a, b = (leaf.scales[0], leaf.scales[1]) if direction == (0, 1) else (leaf.scales[1], leaf.scales[0])
        if leaf.laws[0].is_discrete:
            a, b = leaf.laws[direction[0]].scale, leaf.laws[1 - direction[0]].scale
        text = f"the scale of the {family} noise of {leaf.name} is {a:.6g} on x and {b:.6g} on x_prime"
    elif leaf.shift == 0.0:
        text = f"the {family} noise of {leaf.name} lies in another interval on x than on x_prime"
    else:
        text = leaf.laws[0].moved_text(leaf.name, leaf.shift)
    return text + (f" (and {len(worst) - 1} more)" if len(worst) > 1 else "")
