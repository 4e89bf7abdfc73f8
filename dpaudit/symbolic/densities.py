"""The density of an output with noise of known laws, number by number, on both inputs of a pair.

A number is noise-free part plus coefficient times a noise whose law has a name. Numbers with noise of their own are
independent. Those that share noise are a linear image of it: what a combination of them gives without noise is fixed,
and where the noises can be told from the numbers, each noise counts as a number that is shifted.

Source: Balle and Wang (2018), arXiv:1805.06530, theorem 5 (normal noise).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import sys
from collections.abc import Sequence

import numpy as np

from dpaudit.exact.additive import gaussian_renyi_divergence, laplace_renyi_divergence
from dpaudit.privacy.claims import gaussian_profile
from dpaudit.symbolic.growing import Function
from dpaudit.symbolic.laws import FAR, LAST_BITS, Law
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.runs import Path
from dpaudit.symbolic.tape import FREE

ROUNDING = 1e-9
MAX_SHARED = 300  # numbers that share noise
NARROW = 1e-7  # in scales: intervals that may be of rounding errors; a tenth of it is how near to ends is looked
UNBOUNDED = ("laplace", "logistic", "exponential", "gumbel")  # far out, where the scale is larger on one input


@dataclasses.dataclass(frozen=True)
class NoisyNumber:
    """One noisy number on both inputs: noise-free parts, coefficients, law, and where its noise may lie."""

    signals: tuple[float, float]
    factors: tuple[float, float]
    laws: tuple[Law, Law]
    intervals: tuple[tuple[float, float], tuple[float, float]]
    name: str
    place: str
    reach: float = 0.0
    by: Function | None = None  # what gives the number in the output of this one, where that rounds it

    @property
    def is_whole(self) -> bool:
        """Tell whether its noise is in the output as it was drawn: nothing was asked of it, and nothing rounds it."""
        return self.is_free and self.by is None

    @property
    def is_free(self) -> bool:
        """Tell whether nothing was asked of its noise."""
        return all(math.isinf(low) and math.isinf(high) for low, high in self.intervals)

    @property
    def scales(self) -> tuple[float, float]:
        """The scale of the noise as it is in the output."""
        if self.laws[0].is_discrete:
            return abs(self.factors[0]), abs(self.factors[1])
        return abs(self.factors[0]) * self.laws[0].scale, abs(self.factors[1]) * self.laws[1].scale

    @property
    def has_one_scale(self) -> bool:
        """Tell whether the noise is the same on both inputs, up to rounding."""
        a, b = self.scales
        same_sign = self.factors[0] * self.factors[1] > 0 or self.laws[0].is_symmetric
        same_law = not self.laws[0].is_discrete or abs(self.laws[0].scale - self.laws[1].scale) <= ROUNDING
        return same_sign and same_law and abs(a - b) <= ROUNDING * (a + b)

    @property
    def is_never_a_number(self) -> bool:
        """Tell whether a noise-free part is NaN or infinite, so that no noise changes it."""
        return not all(map(math.isfinite, self.signals))

    @property
    def differs_for_ever(self) -> bool:
        """Tell whether such a part is another one on the other input."""
        a, b = self.signals
        return not (a == b or (math.isnan(a) and math.isnan(b)))

    @property
    def shift(self) -> float:
        """Distance between the noise-free parts, less their rounding errors; 0 up to rounding."""
        a, b = self.signals
        if self.is_never_a_number:
            return 0.0
        gap, reach = abs(a - b), abs(a) + abs(b) + self.reach
        error = 16.0 * sys.float_info.epsilon * reach
        if gap <= ROUNDING * reach + 1e-12:
            return 0.0
        return gap if error <= ROUNDING * gap else gap - error  # what is smaller is far below the slack of a proof

    @property
    def is_undecided(self) -> bool:
        """Tell whether it differs between the inputs by more than rounding, and by too little for a proof."""
        (a, b), (one, other) = self.signals, self.scales
        if self.is_never_a_number:
            return False
        is_moved = self.shift == 0.0 and not is_none(abs(a - b), abs(a) + abs(b) + self.reach, one)
        return is_moved or (self.has_one_scale and abs(one - other) > LAST_BITS * one)


def noisy_numbers(
    paths: tuple[Path, Path],
) -> tuple[list[NoisyNumber], tuple[set[int], set[int]], tuple[str, str] | None, bool]:
    """The noisy numbers with a known law; the noises they use; what several numbers give away; whether that is all."""
    outputs = [path.output for path in paths]
    pairs = [
        (k, u, v)
        for k, (u, v) in enumerate(zip(outputs[0].leaves, outputs[1].leaves, strict=True))  # type: ignore[union-attr]
        if isinstance(u, Noisy) and isinstance(v, Noisy)
    ]
    names = outputs[0].names  # type: ignore[union-attr]
    counts: list[dict[int, int]] = [{}, {}]
    for _, *both in pairs:
        for side, leaf in enumerate(both):
            for index in leaf.terms:
                counts[side][index] = counts[side].get(index, 0) + 1
    found: list[NoisyNumber] = []
    used: tuple[set[int], set[int]] = (set(), set())
    together, is_left_out = [], False
    for k, u, v in pairs:
        by = u.by if u.by is not None and u.by.step else None
        if any(counts[side][index] > 1 for side, leaf in enumerate((u, v)) for index in leaf.terms):
            is_left_out |= by is not None
            together += [(k, u, v)] * (by is None)
            continue
        made = _leaf((u, v), output_name(names[k]))
        if made is not None:
            found.append(dataclasses.replace(made, by=by))
            used[0].update(u.terms)
            used[1].update(v.terms)
    shared, more = _together(together, names)
    for number, noises in more:
        found.append(number)
        used[0].add(noises[0])
        used[1].add(noises[1])
    is_all = all(index in used[side] for _, *both in pairs for side in (0, 1) for index in both[side].terms)
    return found, used, shared, is_all and not is_left_out


def _leaf(both: tuple[Noisy, Noisy], name: str) -> NoisyNumber | None:
    laws, intervals = [], []
    for leaf in both:
        tape = leaf.tape
        if tape.units.keys() & leaf.terms.keys():
            return None
        found = leaf.law
        if found is None:
            return None
        asked = [tape.intervals[index] for index in leaf.terms if index in tape.intervals]
        if asked and len(leaf.terms) > 1:
            return None
        laws.append(found)
        intervals.append(asked[0] if asked else FREE)
    if laws[0][1].family != laws[1][1].family:
        return None
    place = both[0].tape.place_of(next(iter(both[0].terms)))
    return NoisyNumber(
        (both[0].signal, both[1].signal),
        (laws[0][0], laws[1][0]),
        (laws[0][1], laws[1][1]),
        (intervals[0], intervals[1]),
        name,
        place,
        both[0].reach + both[1].reach,
    )


def _together(
    pairs: Sequence[tuple[int, Noisy, Noisy]], names: Sequence[str]
) -> tuple[tuple[str, str] | None, list[tuple[NoisyNumber, tuple[int, int]]]]:
    """Numbers that share noise: what a combination without noise gives away, or the shift of each noise."""
    if not 2 <= len(pairs) <= MAX_SHARED:
        return None, []
    matrices, indices = [], []
    for side in (0, 1):
        numbers = [(u, v)[side] for _, u, v in pairs]
        listed = sorted({index for number in numbers for index in number.terms})
        matrices.append(np.array([[number.terms.get(index, 0.0) for index in listed] for number in numbers]))
        indices.append(listed)
    if matrices[0].shape != matrices[1].shape or not np.allclose(matrices[0], matrices[1], rtol=ROUNDING, atol=0.0):
        return None, []
    matrix = matrices[0]  # (numbers, noises)
    shift = np.array([u.signal - v.signal for _, u, v in pairs])
    size = max(max(abs(u.signal), abs(v.signal)) for _, u, v in pairs)
    if not np.isfinite(shift).all() or not math.isfinite(size):
        return None, []
    left, singular, _right = np.linalg.svd(matrix)
    least = np.finfo(float).eps * max(matrix.shape) * singular[0]
    rank = int((singular > least).sum())
    if singular[rank - 1] <= 1e-9 * singular[0]:  # between rounding and noise: not decided
        return None, []
    hidden = left[:, rank:].T  # combinations of the numbers that have no noise
    gap = float(np.abs(hidden @ shift).max(initial=0.0))
    tape = pairs[0][1].tape
    if gap > 1e-6 * (size + 1.0):
        concerned = [k for k, _, _ in pairs]
        place = tape.place_of(indices[0][0])
        what = f"{output_name(names[concerned[0]])} and {output_name(names[concerned[-1]])} have the same noise"
        return (f"{what}, and a combination of them without noise differs by {gap:.6g}", place), []
    if rank < matrix.shape[1] or gap > LAST_BITS * max(size, *(leaf.reach for _, *both in pairs for leaf in both)):
        return None, []
    moved = np.linalg.lstsq(matrix, shift, rcond=None)[0]  # of each noise
    found = []
    for k, (a, b) in enumerate(zip(indices[0], indices[1], strict=True)):
        tapes = pairs[0][1].tape, pairs[0][2].tape
        if a in tapes[0].intervals or b in tapes[1].intervals or a in tapes[0].units or b in tapes[1].units:
            continue
        laws = tapes[0].noises[a].law, tapes[1].noises[b].law
        if not is_none(abs(moved[k]), size, laws[0].unit) and abs(moved[k]) <= 1e-9 * (size + 1.0):
            continue  # too small for a proof, and more than rounding
        if laws[0].family == laws[1].family:
            place = tapes[0].place_of(a)
            shift_k = float(moved[k]) if abs(moved[k]) > 1e-9 * (size + 1.0) else 0.0
            leaf = NoisyNumber((shift_k, 0.0), (1.0, 1.0), laws, (FREE, FREE), "a noise of the output", place)
            found.append((leaf, (a, b)))
    return None, found


def largest_ratio(leaf: NoisyNumber) -> float:
    """The largest log ratio of the densities of a number, at points of the support; inf where it has no bound."""
    a, _b = leaf.laws
    same = leaf.has_one_scale
    if leaf.is_never_a_number:
        return math.inf if leaf.differs_for_ever else 0.0
    if same and leaf.shift == 0.0 and leaf.intervals[0] == leaf.intervals[1]:
        return 0.0
    if leaf.by is not None and (a.is_discrete or not leaf.is_free or not same):
        return 0.0 if leaf.is_free else -math.inf  # not computed here
    if a.is_discrete:
        return _lattice_ratio(leaf)
    if leaf.by is not None and a.family not in ("laplace", "normal"):
        return 0.0
    if leaf.is_free:  # of a rounded number, too: far out a step has the ratio of its points
        if same and a.family == "laplace":
            return leaf.shift / leaf.scales[0]
        if a.family == "normal" and (same or leaf.scales[0] > leaf.scales[1]):
            return math.inf
        if a.family in UNBOUNDED and not same and leaf.scales[0] > leaf.scales[1]:
            return math.inf
    return _at_points(leaf)


def has_exact_ratio(leaf: NoisyNumber) -> bool:
    """Tell whether `largest_ratio` is the largest one, and not only that of the points it looks at."""
    if leaf.by is not None:
        return leaf.is_free and leaf.has_one_scale and leaf.laws[0].family in ("laplace", "normal")
    if any(law.is_discrete for law in leaf.laws):
        return leaf.is_free and leaf.has_one_scale and is_whole(abs(leaf.signals[0] - leaf.signals[1]) / leaf.scales[0])
    # Validity: on an interval without an end the ratio goes on to grow beyond the points.
    is_seen = leaf.is_free or (leaf.has_one_scale and leaf.laws[0].family != "normal")
    is_seen = is_seen or all(math.isfinite(end) for ends in leaf.intervals for end in ends)
    return is_seen and all(law.family != "cauchy" for law in leaf.laws)


def is_none(shift: float, size: float, scale: float) -> bool:
    """Tell whether a shift of noise is at most the rounding of numbers of this size, and small beside the noise."""
    return shift <= min(LAST_BITS * size, 1e-6 * scale)


def is_whole(steps: float) -> bool:
    """Tell whether a shift leaves whole numbers among whole numbers, up to rounding."""
    return math.isfinite(steps) and abs(steps - round(steps)) <= LAST_BITS * max(steps, 1.0)


def _lattice_ratio(leaf: NoisyNumber) -> float:
    step = abs(leaf.factors[0])
    if not leaf.is_free:
        return -math.inf  # not computed here
    if not leaf.has_one_scale:
        return 0.0
    moved = (leaf.signals[1] - leaf.signals[0]) / step
    if abs(moved - round(moved)) > 1e-6:
        return math.inf  # the outputs of the one are none of the other
    law = leaf.laws[0]
    if law.family == "two-sided geometric":
        return abs(round(moved)) * -math.log(law.scale)
    if law.scale >= 1.0:
        return 0.0
    starts_lower = moved * leaf.factors[0] > 0
    return math.inf if starts_lower else abs(round(moved)) * -math.log1p(-law.scale)


def _at_points(leaf: NoisyNumber) -> float:
    """The log ratio at points between all places where a density bends."""
    spread = max(leaf.scales)
    ends = list(leaf.signals)
    for side in (0, 1):
        low, high = leaf.intervals[side]
        law, factor, signal = leaf.laws[side], leaf.factors[side], leaf.signals[side]
        low, high = max(low, law.support[0]), min(high, law.support[1])
        reach = FAR * law.scale
        ends += [signal + factor * max(low, -reach), signal + factor * min(high, reach)]
    ends.sort()
    # Validity: what is left of a law on an interval may be less likely on this input everywhere.
    best = 0.0 if leaf.is_free else -math.inf
    for u, v in itertools.pairwise(ends):
        if v - u <= NARROW * spread:
            continue
        step = min(max(0.1 * NARROW * spread, LAST_BITS * (abs(u) + abs(v) + leaf.reach)), 0.1 * (v - u))
        for t in (0.5 * (u + v), u + step, v - step):
            p, q = (_log_density(leaf, side, t) for side in (0, 1))
            if p > -math.inf:
                best = max(best, p - q)
    return best


def _log_density(leaf: NoisyNumber, side: int, t: float) -> float:
    factor, law = leaf.factors[side], leaf.laws[side]
    z = (t - leaf.signals[side]) / factor
    low, high = leaf.intervals[side]
    if not low < z <= high:
        return -math.inf
    return law.log_density(z) - math.log(abs(factor))


def hockey_stick(leaves: Sequence[NoisyNumber], mu: float, epsilon: float) -> float:
    """A lower bound on the hockey-stick divergence of the noise: of the normal numbers, or of the worst other one."""
    best = max(-math.expm1(epsilon), 0.0)
    if mu > 0.0:
        best = max(best, float(gaussian_profile(np.array([mu]), epsilon)[0]))
    for leaf in leaves:
        if leaf.is_never_a_number and leaf.differs_for_ever:
            return 1.0
        if not leaf.is_free or leaf.laws[0].is_discrete or leaf.is_never_a_number:
            continue
        if leaf.by is not None:
            best = max(best, _rounded_hockey_stick(leaf, leaf.by, epsilon))
        elif leaf.has_one_scale and leaf.laws[0].family == "laplace":
            gap = leaf.shift / leaf.scales[0]
            best = max(best, -math.expm1(0.5 * (epsilon - gap)) if gap > abs(epsilon) else 0.0)
        elif not (leaf.has_one_scale and (leaf.shift == 0.0 or leaf.laws[0].family == "normal")):
            p, q = ([(1.0, leaf.signals[side], leaf.factors[side], leaf.laws[side])] for side in (0, 1))
            best = max(best, mixed_hockey_stick(p, q, epsilon))
    shifted = [leaf for leaf in leaves if leaf.is_whole and leaf.has_one_scale and leaf.shift > 0.0]
    laplace = [leaf.shift / leaf.scales[0] for leaf in shifted if leaf.laws[0].family == "laplace"]
    return max(best, _composed(laplace, epsilon)) if len(laplace) > 1 and epsilon > 0.0 else best


def _rounded_hockey_stick(leaf: NoisyNumber, by: Function, epsilon: float) -> float:
    """A lower bound of a number that is rounded: by what lies on one side of a step, around both noise-free parts."""
    (a, b), spread = leaf.signals, max(leaf.scales)
    ends = {by.last(by.value(number)) for number in (a, b, *(a + k * spread / 4.0 for k in range(-40, 41)))}
    best = 0.0
    for end in ends:
        (p_low, p_high), (q_low, q_high) = (_split(leaf, side, end) for side in (0, 1))
        for p, q in ((p_low, q_low), (p_high, q_high)):
            best = max(best, p * (1.0 - 1e-12) - math.exp(min(epsilon, 700.0)) * q * (1.0 + 1e-12))
    return best


def _split(leaf: NoisyNumber, side: int, end: float) -> tuple[float, float]:
    """The probabilities that a number is below and above an end."""
    law, limit = leaf.laws[side], (end - leaf.signals[side]) / leaf.factors[side]
    masses = law.mass(-math.inf, limit), law.mass(limit, math.inf)
    return masses if leaf.factors[side] > 0 else masses[::-1]


def _composed(distances: Sequence[float], epsilon: float) -> float:
    """Delta of several Laplace noises together, rounded towards 0, where dp-accounting is installed; else 0."""
    try:
        from dp_accounting.pld import privacy_loss_distribution as distributions
    except ImportError:
        return 0.0
    if len(distances) > 200 or sum(distances) <= epsilon:
        return 0.0
    settings = {"value_discretization_interval": 1e-3, "pessimistic_estimate": False}
    made = [distributions.from_laplace_mechanism(1.0 / distance, **settings) for distance in distances]
    return float(functools.reduce(lambda a, b: a.compose(b), made).get_delta_for_epsilon(epsilon))


def renyi(leaf: NoisyNumber, order: float) -> float:
    """The Renyi divergence of a number's noise; a lower bound of 0 where it has no closed form here."""
    if leaf.is_never_a_number and leaf.differs_for_ever:
        return math.inf
    if not leaf.is_whole or not leaf.has_one_scale or leaf.shift == 0.0:
        return 0.0
    known = {"normal": gaussian_renyi_divergence, "laplace": laplace_renyi_divergence}.get(leaf.laws[0].family)
    return 0.0 if known is None else known(leaf.shift, leaf.scales[0], order)


def output_name(name: str) -> str:
    """The name of a number of the output."""
    return f"output{name}"


Mixture = list[tuple[float, float, float, Law]]  # probability, noise-free part, coefficient, law; one entry a path


def mixture(paths: Sequence[tuple[Path, float]], number: int) -> Mixture | None:
    """The law of one noisy number over several paths, each with its mass; None where it is not known on one of them.

    The law is that of the number alone, together with the event that one of these paths is taken.
    """
    found = []
    for path, mass in paths:
        leaf = path.output.leaves[number] if path.output is not None else None
        if not isinstance(leaf, Noisy) or not math.isfinite(leaf.signal):
            return None
        tape = leaf.tape
        if (tape.units.keys() | tape.intervals.keys()) & leaf.terms.keys():
            return None
        law = leaf.law
        if law is None or law[1].is_discrete:
            return None
        found.append((mass, leaf.signal, *law))
    return found


def mixed_hockey_stick(p: Mixture, q: Mixture, epsilon: float) -> float:
    """The hockey-stick divergence of two mixtures by quadrature, less its error bounds: a lower bound."""
    from scipy.integrate import quad

    def density(parts: Mixture, t: float) -> float:
        return math.fsum(
            weight * math.exp(law.log_density((t - signal) / factor)) / abs(factor)
            for weight, signal, factor, law in parts
        )

    def excess(t: float) -> float:
        return max(density(p, t) - math.exp(min(epsilon, 700.0)) * density(q, t), 0.0)

    knots: set[float] = set()
    for _, signal, factor, law in (*p, *q):
        knots.update(signal + k * factor * law.scale for k in (-40.0, -6.0, -2.0, -1.0, 0.0, 1.0, 2.0, 6.0, 40.0))
    total = 0.0
    for a, b in itertools.pairwise(sorted(knots)):
        if b > a:
            value, error = quad(excess, a, b, limit=100)
            total += max(value - 10.0 * error, 0.0)
    return total
