"""Low-order bits of doubles: views that show which doubles an output can be, and nothing of its size.

Adding noise to a number in floating point rounds the sum to the grid of doubles around it, and the sampler itself can
return only some doubles. Which doubles an output can be then depends on the number underneath, although the law on the
real line is as promised (Mironov, "On significance of the least significant bits for differential privacy", CCS 2012).

A view maps doubles to codes, and puts ranges of codes into words. A kind is a line of `KINDS` with its words; two more
kinds carry data: the doubles that earlier draws showed (`SeenBefore`), and the doubles that a sampler by inversion can
give around a number of the inputs (`Attainable`). The learner reads codes as it reads any view.

Conventions: codes are small integers as doubles, shape (draws,). 0 and infinities have codes behind all others (`ZERO`,
`INFINITE`); NaN stays NaN: what is no number has no bits.

Validity: a code is a function of one double alone, whatever the batch. Exponentials and logarithms go through full
vectors, for vectorised ones may give other bits at the end of an array.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.input_facts import Location, location_named
from dpaudit.privacy.claims import FloatArray

Bits = NDArray[np.int64]
Sampler = Literal["numpy", "logarithm"]
ScaleOf = Literal["one", "difference"]
SAMPLERS: tuple[Sampler, ...] = ("numpy", "logarithm")
SCALES: tuple[ScaleOf, ...] = ("one", "difference")


@dataclasses.dataclass(frozen=True)
class LowBitSizes:
    """Resolution at which views of low-order bits tell doubles apart."""

    last_bits: int = 8  # of the mantissa: 256 codes, each seen often enough in a few thousand draws
    max_decimals: int = 9  # decimal places that are tried; more are one code
    steps_in_spread: float = 32.0  # the largest step of a remainder goes so often into the distance of the quartiles
    phases: int = 64  # parts of a step that a remainder is told apart by: a power of two
    lanes: int = 64  # a multiple of the doubles in any vector register
    shown: int = 3  # ranges of codes that a sentence lists


SIZES = LowBitSizes()
ZERO = 2.0**40  # the code of 0, which has no lowest set bit
MAX_NUMBER_CODE = 2.0**20  # beyond the codes of all other numbers
INFINITE = 2.0 * ZERO  # the code of an infinity: beyond that of every number
GRID = np.finfo(float).epsneg  # 2^-53, of which uniform doubles are multiples


def bits_of(values: FloatArray) -> Bits:
    """The 64 bits of each double as an integer: exact identity, with 0.0 and -0.0 apart."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def lowest_set_bit(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(position, exponent): a multiple of 2**position and not of twice that, of size 2**exponent * [1, 2).

    Examples
    --------
    >>> [codes.tolist() for codes in lowest_set_bit(np.array([0.75, 6.0]))]
    [[-2.0, 1.0], [-1.0, 2.0]]
    """
    fraction, exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))
    whole = np.ldexp(fraction, 53).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(float))[1] - 1
    return (exponent - 53 + trailing).astype(float), (exponent - 1).astype(float)


def _decimals(values: FloatArray, _: float) -> FloatArray:
    """The least number of decimal places that a double can be written with, if that is small."""
    found = np.full(values.shape, SIZES.max_decimals + 1.0)
    for digits in range(SIZES.max_decimals, -1, -1):
        scale = 10.0**digits
        found[np.rint(values * scale) / scale == values] = digits
    return found


def _used(values: FloatArray, _: float) -> FloatArray:
    position, exponent = lowest_set_bit(values)
    return np.where(values == 0.0, ZERO, 64.0 * exponent + (position - exponent + 52.0))


def _phase(values: FloatArray, step: float) -> FloatArray:
    """The remainder modulo a step in parts centred at 0: what is left of a number that grids share."""
    steps = values / step
    return np.mod(np.floor((steps - np.floor(steps)) * SIZES.phases + 0.5), SIZES.phases)


def _of_lowest(first: float, last: float, _: float) -> str:
    if last == math.inf:
        return f"that are multiples of 2^{first:.0f}" if first > -math.inf else "that are finite and not 0"
    least = f"multiples of 2^{first:.0f} but " if first > -math.inf else ""
    return f"that are {least}{'not' if least else 'no multiple'} of 2^{last + 1:.0f}"


def _of_decimals(first: float, last: float, _: float) -> str:
    if last > SIZES.max_decimals:
        return f"with more than {first - 1:.0f} decimal places" if first > -math.inf else "that are finite"
    if first <= 0.0:
        return f"with at most {last:.0f} decimal places" if last > 0.0 else "that are integers"
    return f"with {_range(first, last)} decimal places"


def _of_used(first: float, last: float, _: float) -> str:
    ends = [f"size 2^{code // 64:.0f} and {53 - code % 64:.0f} bits" for code in (first, last) if math.isfinite(code)]
    return f"of {' to '.join(dict.fromkeys(ends))} in use" if ends else "that are finite and not 0"


def _of_last(first: float, last: float, _: float) -> str:
    first, last = max(first, 0.0), min(last, 2.0**SIZES.last_bits - 1.0)
    return f"whose last {SIZES.last_bits} bits are {_range(first, last, lambda k: f'{int(k):0{SIZES.last_bits}b}')}"


def _of_phase(first: float, last: float, step: float) -> str:
    first, last = max(first, 0.0), min(last, SIZES.phases - 1.0)
    power = round(math.log10(step))
    name = f"10^{power}" if step == 10.0**power else f"2^{math.log2(step):.0f}"
    return f"whose remainder modulo {name} is about {_range(first, last, lambda k: f'{k / SIZES.phases:.3g}')} of it"


def _range(first: float, last: float, said: Callable[[float], str] = "{:.0f}".format) -> str:
    return said(first) if first == last else f"{said(first)} to {said(last)}"


# Of each kind its codes of doubles, and the words for a range of codes; both are given the parameter.
KINDS: dict[str, tuple[Callable[[FloatArray, float], FloatArray], Callable[[float, float, float], str]]] = {
    "lowest bit": (lambda v, _: np.where(v == 0.0, ZERO, lowest_set_bit(v)[0]), _of_lowest),
    "decimal places": (_decimals, _of_decimals),
    "remainder": (_phase, _of_phase),
    "bits used": (_used, _of_used),
    "last bits": (
        lambda v, _: np.where(v == 0.0, ZERO, (bits_of(v) & ((1 << SIZES.last_bits) - 1)).astype(float)),
        _of_last,
    ),
}


@dataclasses.dataclass(frozen=True)
class OwnBits:
    """A view of the bits of a double by themselves: a kind of `KINDS` with its parameter.

    `words` of each view complete "outputs …": the doubles whose codes lie between two codes; infinite ones leave the
    range open.
    """

    kind: str
    parameter: float = 0.0

    def __call__(self, values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            codes = KINDS[self.kind][0](values, self.parameter)
        return np.where(np.isfinite(values), codes, np.where(np.isnan(values), np.nan, INFINITE))

    def words(self, first: float, last: float) -> str:
        if first > MAX_NUMBER_CODE:  # an end may lie anywhere between the codes of numbers and that of 0
            return "that are infinite" if first > ZERO else "that are 0"
        text = KINDS[self.kind][1](first, last if last < MAX_NUMBER_CODE else math.inf, self.parameter)
        return f"{text} and not 0" if MAX_NUMBER_CODE <= last < ZERO and "not 0" not in text else text

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "parameter": self.parameter.hex()}


@dataclasses.dataclass(frozen=True, eq=False)
class SeenBefore:
    """The input on which earlier draws showed exactly this double: 0 for neither, 1 for x, 2 for x_prime, 3 for both.

    `sides` are the sorted bits of these draws.
    """

    sides: tuple[Bits, Bits]

    @classmethod
    def learn(cls, of_x: FloatArray, of_x_prime: FloatArray) -> SeenBefore:
        return cls((np.unique(bits_of(of_x)), np.unique(bits_of(of_x_prime))))

    def __call__(self, values: FloatArray) -> FloatArray:
        bits = bits_of(values)
        is_known = []
        for side in self.sides:
            at = np.minimum(np.searchsorted(side, bits), max(len(side) - 1, 0))
            is_known.append(side[at] == bits if len(side) else np.zeros(len(bits), dtype=bool))
        return np.where(np.isnan(values), np.nan, is_known[0] + 2.0 * is_known[1])

    def words(self, first: float, last: float) -> str:
        inputs = ("on neither input", "on x only", "on x′ only", "on both inputs")
        return f"with a value that earlier draws showed {_either(inputs, first, last)}"

    def to_dict(self) -> dict[str, Any]:
        packed = [base64.b64encode(side.astype("<i8").tobytes()).decode("ascii") for side in self.sides]
        return {"kind": "seen before", "sides": packed}


@dataclasses.dataclass(frozen=True)
class Attainable:
    """The inputs that could have given a double by Laplace noise: 0 for neither, 1 for x, 2 for x_prime, 3 for both.

    A sampler by inversion takes a uniform double u, a multiple of 2^-53, and returns location ± scale * log(u). There
    are fewer such u than doubles around, so only some doubles can come out, and which ones depends on the location
    (Mironov's attack). A double is attainable if one of the u next to the one that would give it on the real line gives
    it. The less u (or 1 - u, of a sampler that takes the upper half by it), the further from the location, so that only
    one side need be tried.

    The location and the scale are guesses: where they are wrong, codes tell nothing and another view wins. Lower bounds
    at 10,000 draws a side of `Generator.laplace`, epsilon = 0.1: from 3.3 to 6.9 on (0, 1), from none to 6.8 on
    (10, 11), from none to 2.8 on (1000, 1001).

    Samplers take the logarithm of the C library, recognition that of numpy, which has one of its own with AVX-512:
    0.3% of draws are not recognised there, and 1 in 5,000 is taken for the other input's. So words name numpy's
    logarithm. Codes are functions of a double's bits on any one machine, and rules are judged by fresh draws there:
    what recognition is worth depends on the machine, never what it may claim.

    Attributes
    ----------
    location : Location
        Words and saved rules name it, and give no value: it may be a number of somebody's data.
    epsilon : float
    sampler : str
        "numpy" (the formula of `Generator.laplace`) or "logarithm" (scale * log(u), or of 1 - 2|u - 1/2|, with either
        sign).
    scale_of : str
        "one" (1 / epsilon) or "difference" (the distance of the locations over epsilon).
    """

    location: Location
    epsilon: float
    sampler: Sampler
    scale_of: ScaleOf

    @property
    def scale(self) -> float:
        return (1.0 if self.scale_of == "one" else abs(self.location.x - self.location.x_prime)) / self.epsilon

    def __call__(self, values: FloatArray) -> FloatArray:
        padded = np.full(len(values) + SIZES.lanes - len(values) % SIZES.lanes, math.nan)
        padded[: len(values)] = np.where(np.isinf(values), math.nan, values)  # nothing gives an infinity
        with np.errstate(all="ignore"):
            can_be = [self._can_be(padded, at)[: len(values)] for at in (self.location.x, self.location.x_prime)]
        return np.where(np.isnan(values), np.nan, can_be[0] + 2.0 * can_be[1])

    def _can_be(self, values: FloatArray, location: float) -> NDArray[np.bool_]:
        """Tell which of the values (in full vectors, none of them infinite) are possible."""
        noise = values - location
        upper = noise > 0.0
        scale = np.where(upper, -self.scale, self.scale)
        share = np.exp(np.abs(noise) / -self.scale)
        if self.sampler == "numpy":
            share = (0.5 * share + 0.5) - 0.5  # at most 1/2: the sums round to the nearest multiple of 2^-53
        else:
            share = np.rint(share / GRID) * GRID
        given = self._given(location, upper, scale, share)
        known = given == values
        # The less of a share, the further from the location. So beside the nearest share only that on the side of the
        # value can give it: what falls between the doubles of neighbours is given by none. The rounding of the
        # exponential takes the nearest one step off at most (of 10^7 values, none was given by one further away).
        share += np.where((values > given) ^ upper, GRID, -GRID)
        return np.asarray(known | (self._given(location, upper, scale, share) == values))

    def _given(self, location: float, upper: NDArray[np.bool_], scale: FloatArray, share: FloatArray) -> FloatArray:
        """The double that each share gives, in full vectors; infinite or NaN for a share that no u has.

        The share is u, or for "numpy" u below the location and 1 - u above it (`upper`), where `scale` is negative.
        """
        if self.sampler == "numpy":
            # 2u, and (2 - u) - u, which rounds on the way: the grid of the upper half depends on that.
            share = share + np.where(upper, (1.0 + share) - 1.0, share)
        return location + scale * np.log(share)

    def words(self, first: float, last: float) -> str:
        of_x, of_x_prime = self.location.of("x"), self.location.of("x′")
        noise = f"{self.scale:.6g} * log(u)" if self.scale_of == "one" else f"s / {self.epsilon:.6g} * log(u)"
        kinds = (
            f"that neither {of_x} ± {noise} nor {of_x_prime} ± {noise} can be",
            f"that {of_x} ± {noise} can be and {of_x_prime} ± {noise} cannot",
            f"that {of_x_prime} ± {noise} can be and {of_x} ± {noise} cannot",
            f"that {of_x} ± {noise} and {of_x_prime} ± {noise} can both be",
        )
        far = "" if self.scale_of == "one" else ", s how far these lie apart"
        sampled = "u a multiple of 2^-53 (noise sampled by inversion; log as numpy has it here)"
        return f"{_either(kinds, first, last)}{far}, {sampled}"

    def to_dict(self) -> dict[str, Any]:
        named = {"fact": self.location.fact, "column": self.location.column, "epsilon": self.epsilon.hex()}
        return {"kind": "attainable", "sampler": self.sampler, "scale_of": self.scale_of, **named}


LowBitView = OwnBits | SeenBefore | Attainable


def _either(kinds: Sequence[str], first: float, last: float) -> str:
    return " or ".join(kinds[int(max(first, 0.0)) : int(min(last, 3.0)) + 1])


def low_bit_views(
    of_x: FloatArray, of_x_prime: FloatArray, location: Location | None, epsilon: float
) -> list[LowBitView]:
    """The views to try on one column, given draws of both inputs; those that are easier to understand come first.

    Remainders are taken modulo steps far below the spread of the values, so that any smooth law looks uniform to them.
    """
    both = np.concatenate([of_x, of_x_prime])
    both = np.sort(both[np.isfinite(both)])
    found: list[LowBitView] = [OwnBits("lowest bit"), OwnBits("decimal places")]
    spread = float(both[(3 * len(both)) // 4] - both[len(both) // 4]) if len(both) > 1 else 0.0
    if 1e-250 < spread < 1e300:
        largest = spread / SIZES.steps_in_spread
        digits, power = math.ceil(-math.log10(largest)), math.floor(math.log2(largest))
        tens = [10.0**-k for k in range(digits, digits + 3) if 0 <= k <= 12]
        twos = [2.0**k for k in (power, power - 6, power - 12, power - 24)]
        found += [OwnBits("remainder", step) for step in (*tens, *twos)]
    if np.any(both[1:] == both[:-1]):
        found.append(SeenBefore.learn(of_x, of_x_prime))
    return [*found, OwnBits("bits used"), OwnBits("last bits"), *attainable(location, epsilon)]


def attainable(location: Location | None, epsilon: float) -> list[LowBitView]:
    """The views to try where outputs may be a location plus Laplace noise; none where that makes no sense."""
    if location is None or not (math.isfinite(location.x) and math.isfinite(location.x_prime)):
        return []
    if not 0.0 < epsilon < math.inf or location.x == location.x_prime:
        return []
    found: dict[tuple[float, Sampler], LowBitView] = {}
    for scale_of, sampler in itertools.product(SCALES, SAMPLERS):
        view = Attainable(location, epsilon, sampler, scale_of)
        if 0.0 < view.scale < math.inf:
            found.setdefault((view.scale, sampler), view)
    return list(found.values())


def low_bit_view_from_dict(record: dict[str, Any], entries: FloatArray, x: Any, x_prime: Any) -> LowBitView:
    """The view that `to_dict` wrote, for these inputs (`entries`: see `location_of`); ValueError where it is none."""
    kind = record["kind"]
    if kind == "seen before":
        first, second = map(_unpacked, record["sides"])
        return SeenBefore((first, second))
    if kind == "attainable":
        sampler, scale_of, epsilon = record["sampler"], record["scale_of"], float.fromhex(record["epsilon"])
        if sampler not in SAMPLERS or scale_of not in SCALES or not 0.0 < epsilon < math.inf:
            raise ValueError(f"view must name a sampler, a scale and a finite epsilon, got {record}.")
        location = location_named(record["fact"], record["column"], entries, x, x_prime)
        return Attainable(location, epsilon, sampler, scale_of)
    if kind not in KINDS:
        raise ValueError(f"view must be one of {', '.join(KINDS)}, seen before, attainable, got {kind!r}.")
    return OwnBits(kind, float.fromhex(record["parameter"]))


def _unpacked(text: str) -> Bits:
    try:
        bits = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8").astype(np.int64)
    except binascii.Error as error:
        raise ValueError(f"values must be in base 64, got {error}.") from error
    if np.any(np.diff(bits) <= 0):
        raise ValueError("values must be increasing.")
    return bits
