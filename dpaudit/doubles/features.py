"""What a double gives away by its bits: features of a number that arithmetic on reals would keep apart from its size.

Adding noise to a number in floating point rounds the sum to the grid of doubles around it, and the sampler itself can
return only some doubles. Which doubles an output can be then depends on the number underneath, although the law on the
real line is as promised (Mironov, "On significance of the least significant bits for differential privacy", CCS 2012).
Each feature maps doubles to small integers, one by one (never by the rest of a batch), and says in words what a set of
its codes means. NaN has codes too, but no rule guesses on it (`dpaudit.doubles.low_bits`).

Conventions: `codes(values)` takes doubles of shape (draws,) and gives int64 of the same shape. Codes from `SPECIAL` on
are zero, infinities and NaN, which have no lowest set bit. Where `is_ordered`, neighbouring codes mean nearly the same
and rare ones may be pooled.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

Codes = NDArray[np.int64]
_Number = TypeVar("_Number", np.int64, np.float64)
SPECIAL = 1 << 40  # codes from here on, above those of all features, are of what has no lowest bit
ZERO, NOT_FINITE, NOT_A_NUMBER = SPECIAL, SPECIAL + 1, SPECIAL + 2  # the codes of these
MANTISSA = (1 << 52) - 1  # its bits in a double
LAST_BITS = 8  # of the mantissa: 256 codes, each seen often enough in a few thousand draws
MOST_DECIMALS = 9  # decimal places that are tried; more are one code
# Below it, 10^MOST_DECIMALS times a double is below 2^50, so that the product is off by less than 1/4 and rounds to the
# integer that was meant.
EXACT_DECIMALS = 1e6
STEPS_IN_SPREAD = 32.0  # the largest step of a remainder goes so often into the distance of the quartiles
PHASES = 64  # parts of a step that a remainder is told apart by: a power of two
KINDS_SHOWN = 3  # codes or ranges that a sentence lists


class Feature(Protocol):
    """A function from a double to a small integer, with words for sets of its values."""

    is_ordered: bool

    def codes(self, values: FloatArray) -> Codes: ...

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        """Completes "outputs …": the doubles whose code lies in one of the ranges (first, last).

        The ends of ordered features are open: the smallest code stands for all below it.
        """
        ...


def bits_of(values: FloatArray) -> Codes:
    """The 64 bits of each double as an integer: exact identity, with 0.0 and -0.0 apart."""
    return np.ascontiguousarray(values, dtype=np.float64).view(np.int64)


def distinct(ranked: NDArray[_Number]) -> NDArray[_Number]:
    """The different ones of numbers in increasing order; `np.unique` takes ten times as long for thousands of them."""
    is_first = np.ones(len(ranked), dtype=bool)
    np.not_equal(ranked[1:], ranked[:-1], out=is_first[1:])
    return ranked[is_first]


def lowest_set_bit(values: FloatArray) -> tuple[Codes, Codes]:
    """(position, exponent): a multiple of 2**position and not of twice that, of size 2**exponent * [1, 2).

    Zero, infinities and NaN have the codes of `SPECIAL` as both.
    """
    bits = bits_of(values)
    biased = (bits >> 52) & 0x7FF
    mantissa = bits & MANTISSA
    mantissa |= np.minimum(biased, 1) << 52  # the leading bit, of normal doubles
    trailing = _binade((mantissa & -mantissa).astype(float))
    scale = np.maximum(biased, 1) - 1075
    position, exponent = scale + trailing, scale + 52
    is_subnormal = biased == 0
    if is_subnormal.any():
        exponent[is_subnormal] = scale[is_subnormal] + _binade(mantissa[is_subnormal].astype(float))
    is_special = ~np.isfinite(values) | (values == 0.0)
    if is_special.any():
        special = values[is_special]
        codes = np.where(np.isnan(special), NOT_A_NUMBER, np.where(special == 0.0, ZERO, NOT_FINITE))
        position[is_special] = exponent[is_special] = codes
    return position, exponent


def _binade(values: FloatArray) -> Codes:
    """The exponent of each normal double, none of them negative; for 0 one that means nothing."""
    return (bits_of(values) >> 52) - 1023


@dataclasses.dataclass(frozen=True)
class LowestBit:
    """The position of the lowest set bit: of which power of two an output is a multiple."""

    is_ordered = True

    def codes(self, values: FloatArray) -> Codes:
        return lowest_set_bit(values)[0]

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        return _said(ranges, self._range)

    @staticmethod
    def _range(first: int, last: int) -> str:
        if first == BELOW_ALL and last == ABOVE_ALL:
            return "that are finite and not 0"
        if first == BELOW_ALL:
            return f"that are no multiple of 2^{last + 1}"
        if last == ABOVE_ALL:
            return f"that are multiples of 2^{first}"
        return f"that are multiples of 2^{first} but not of 2^{last + 1}"


@dataclasses.dataclass(frozen=True)
class ExponentAndLowestBit:
    """The lowest set bit together with the binade: how many of the bits that an output could have are used."""

    is_ordered = False

    def codes(self, values: FloatArray) -> Codes:
        position, exponent = lowest_set_bit(values)
        return np.where(position >= SPECIAL, position, (exponent + 1100) * 4096 + position + 1100)

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        return _said(ranges, self._one)

    @staticmethod
    def _one(code: int, _: int) -> str:
        exponent, position = code // 4096 - 1100, code % 4096 - 1100
        return (
            f"of size 2^{exponent} to 2^{exponent + 1} that are multiples of 2^{position} but not of 2^{position + 1}"
        )


@dataclasses.dataclass(frozen=True)
class LastBits:
    """The last bits of the mantissa as a number."""

    is_ordered = False

    def codes(self, values: FloatArray) -> Codes:
        return np.where(np.isfinite(values), bits_of(values) & ((1 << LAST_BITS) - 1), NOT_FINITE)

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        return _said(ranges, lambda first, _: f"whose last {LAST_BITS} bits are {first:0{LAST_BITS}b}")


@dataclasses.dataclass(frozen=True)
class DecimalPlaces:
    """The least number of decimal places that an output can be written with, if that is small."""

    is_ordered = True

    def codes(self, values: FloatArray) -> Codes:
        places = np.full(values.shape, MOST_DECIMALS + 1, dtype=np.int64)
        with np.errstate(all="ignore"):  # huge outputs, infinities and NaN keep the last code
            # What fewer places can write, more can, while the integers are exact: only these are looked into further.
            left = np.flatnonzero(self._is_written(values, MOST_DECIMALS) | ~(np.abs(values) < EXACT_DECIMALS))
            for digits in range(MOST_DECIMALS, -1, -1) if len(left) else ():
                places[left[self._is_written(values[left], digits)]] = digits
        return np.where(np.isfinite(values), places, NOT_FINITE)

    @staticmethod
    def _is_written(values: FloatArray, digits: int) -> NDArray[np.bool_]:
        """Which are the double nearest to some k / 10^digits: both are exact integers, and division rounds once."""
        scale = 10.0**digits
        return np.asarray(np.rint(values * scale) / scale == values)

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        return _said(ranges, self._range)

    @staticmethod
    def _range(first: int, last: int) -> str:
        if first == BELOW_ALL and last == ABOVE_ALL:
            return "that are finite"
        if first == BELOW_ALL:
            return f"with at most {last} decimal places" if last > 0 else "that are integers"
        if last == ABOVE_ALL or last > MOST_DECIMALS:
            return f"with more than {first - 1} decimal places"
        return f"with {first} decimal places" if first == last else f"with {first} to {last} decimal places"


@dataclasses.dataclass(frozen=True)
class Remainder:
    """The remainder modulo a small step, in `PHASES` parts centred at 0: what is left of a number that grids share."""

    step: float
    name: str
    is_ordered = False

    def codes(self, values: FloatArray) -> Codes:
        with np.errstate(all="ignore"):
            steps = values / self.step
            phase = np.floor((steps - np.floor(steps)) * PHASES + 0.5)
            codes = phase.astype(np.int64) & (PHASES - 1)
        is_lost = np.isnan(phase)
        if is_lost.any():
            codes[is_lost] = NOT_FINITE
        return codes

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        return _said(ranges, lambda code, _: f"whose remainder modulo {self.name} is about {code / PHASES:.3g} of it")


@dataclasses.dataclass(frozen=True)
class SeenBefore:
    """On which input earlier draws showed exactly this double: 0 on neither, 1 on x only, 2 on x′ only, 3 on both.

    `first` and `second` are the sorted bits of those draws, shape (values,).
    """

    first: Codes
    second: Codes
    x: str
    x_prime: str
    is_ordered = False

    def codes(self, values: FloatArray) -> Codes:
        bits = bits_of(values)
        return _member(bits, self.first) + 2 * _member(bits, self.second)

    def words(self, ranges: Sequence[tuple[int, int]]) -> str:
        names = (
            "with a value that earlier draws showed on neither input",
            f"with a value that earlier draws showed on {self.x} only",
            f"with a value that earlier draws showed on {self.x_prime} only",
            "with a value that earlier draws showed on both inputs",
        )
        return _said(ranges, lambda code, _: names[code])


BELOW_ALL, ABOVE_ALL = -(1 << 39), (1 << 39)  # the open ends of ordered features


def _member(bits: Codes, known: Codes) -> Codes:
    if not len(known):
        return np.zeros(bits.shape, dtype=np.int64)
    places = np.minimum(np.searchsorted(known, bits), len(known) - 1)
    found: Codes = (known[places] == bits).astype(np.int64)
    return found


def _said(ranges: Sequence[tuple[int, int]], words: Callable[[int, int], str]) -> str:
    """The first ranges in words, and how many more there are."""
    special = {ZERO: "that are 0", NOT_FINITE: "that are infinite", NOT_A_NUMBER: "that are NaN"}
    shown = [words(*one) if one[0] < SPECIAL else special[one[0]] for one in ranges[:KINDS_SHOWN]]
    more = len(ranges) - len(shown)
    return " or ".join(shown) + (f" (and {more} more kinds)" if more > 0 else "")


def features_for(first: FloatArray, second: FloatArray, x: str, x_prime: str, *later: FloatArray) -> list[Feature]:
    """The features to try on one column, given training draws of x (`first`) and x_prime (`second`).

    The easier to understand, the earlier. Remainders are taken modulo steps far below the spread of the values, so that
    any smooth law looks uniform to them. `later` are the draws that features are chosen by: where no double comes twice
    among all of these, that it was seen before says nothing.
    """
    both = np.concatenate([first, second])
    both = np.sort(both[np.isfinite(both)])
    bits = np.sort(bits_of(np.concatenate([first, second, *later])))
    seen = []
    if np.any(bits[1:] == bits[:-1]):
        known = [distinct(np.sort(bits_of(side))) for side in (first, second)]
        seen = [SeenBefore(known[0], known[1], x, x_prime)]
    return [LowestBit(), DecimalPlaces(), *_remainders(both), *seen, ExponentAndLowestBit(), LastBits()]


def _remainders(values: FloatArray) -> list[Feature]:
    """Remainders modulo powers of ten and of two below the spread of the (sorted, finite) values."""
    if len(values) < 2:
        return []
    with np.errstate(over="ignore"):
        spread = float(values[(3 * len(values)) // 4] - values[len(values) // 4])
    if not 1e-250 < spread < 1e300:
        return []
    largest = spread / STEPS_IN_SPREAD
    digits, power = math.ceil(-math.log10(largest)), math.floor(math.log2(largest))
    tens = [Remainder(10.0**-k, f"10^{-k}") for k in range(digits, digits + 3) if 0 <= k <= 12]
    return [*tens, *(Remainder(2.0**k, f"2^{k}") for k in (power, power - 6, power - 12, power - 24))]
