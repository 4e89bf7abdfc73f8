"""Decoders: the parts of single values of types that are neither numbers, texts, mappings, sequences nor arrays.

Parts are plain data again, or `Text` to be read as text. What outputs hold is plain data already
(`dpaudit.subjects.plain`): so the types are Python's, `Failed` and `Opaque`.
"""

from __future__ import annotations

import bz2
import cmath
import functools
import lzma
import math
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.extensions import working_extensions
from dpaudit.features.outcomes import canonical, number_of
from dpaudit.features.shapes import N_KEPT_BITS
from dpaudit.features.unread import LIMITS
from dpaudit.subjects.call_outcomes import Failed, Opaque

GROUP = "dpaudit.decoders"
DIGITS = 17  # that tell doubles apart
NUMBERS = (float, int, bool, np.floating, np.integer, np.bool_)
Decoder = Callable[[Any], Mapping[str, Any]]
MAX_INSIDE = 1 << 20  # bytes that compressed bytes may hold, as far as they are read


class Text(str):
    """A text that is read as text only: nothing in it is decoded again."""

    __slots__ = ()


class Cell(Text):
    """A short text of many, such as the cell of a table: which one it is, and the numbers in it."""

    __slots__ = ()


def token(value: Any) -> float:
    """A number for a value that is no number: equal canonical forms have equal ones.

    Examples
    --------
    >>> token("a") == token("a"), token("a") == token("b"), token({1, 2}) == token({2, 1})
    (True, False, True)
    """
    text = value if isinstance(value, str) else canonical(value)
    return float(zlib.crc32(text.encode("utf-8", "surrogatepass")))


def code(value: Any) -> float:
    """A number of an item of a mixed sequence: its own, or one in the order of texts; equal items have equal ones.

    Texts are ordered by their first five bytes; those that share these differ by chance, 1 of 8,192 pairs not at all.
    """
    if isinstance(value, NUMBERS):
        return number_of(value)
    return _code_of_text(str(value) if isinstance(value, str) else canonical(value))


@functools.lru_cache(maxsize=1 << 14)
def _code_of_text(text: str) -> float:
    written = text.encode("utf-8", "surrogatepass")
    return float(int.from_bytes(written[:5].ljust(5, b"\0")) << 13 | zlib.crc32(written) & 0x1FFF)


@functools.cache
def decoders_of_packages() -> list[tuple[str, Decoder]]:
    """Entry points of the group "dpaudit.decoders": functions of an `Opaque`, under the name of its class."""
    return list(working_extensions(GROUP))


def parts_of(value: Any) -> dict[str, Any]:
    """The parts of a value, by the decoder of its type; those of packages are asked first."""
    if isinstance(value, Opaque):
        for name, function in decoders_of_packages():
            if name == value.kind:
                return dict(function(value))
    for kind, function in DECODERS.items():
        if isinstance(value, kind):
            return dict(function(value))
    return {"text": Text(canonical(value))}


def shows_bits(value: Decimal) -> bool:
    """Tell whether a finite decimal has more digits than tell doubles apart, and they are those of a double.

    Validity: what is a double in an exact form is read as this double. Its other parts are low bits alone, which are
    a question of their own (`dpaudit.audits.low_bits`).

    Examples
    --------
    >>> shows_bits(Decimal(0.1)), shows_bits(Decimal("0.1")), shows_bits(Decimal("0.1000000000000000000001"))
    (True, False, False)
    """
    digits = len(value.as_tuple().digits)
    return digits > DIGITS and Decimal(f"{float(value):.{digits - 1}e}") == value


def _decimal(value: Decimal) -> Mapping[str, Any]:
    if not value.is_finite():
        return {"value": math.nan if value.is_nan() else math.copysign(math.inf, value)}
    if shows_bits(value):
        return {"value": float(value)}
    parts = value.as_tuple()
    unscaled = int("".join(map(str, parts.digits[: LIMITS.max_parts])))
    return {
        "value": float(value), "digits": len(parts.digits), "last digit": parts.digits[-1], "unscaled": unscaled,
        "exponent": parts.exponent, "sign": parts.sign,
    }  # fmt: skip


def _fraction(value: Fraction) -> Mapping[str, Any]:
    number = number_of(value)
    parts = {"value": number, "numerator": value.numerator, "denominator": value.denominator}
    shows_bits = number == value and value.denominator > 1 and value.numerator.bit_length() > N_KEPT_BITS
    return {"value": number} if shows_bits else parts


def _opaque(value: Opaque) -> Mapping[str, Any]:
    if value.state is not None:
        return {"attributes": value.state}
    return {"text": Text(value.text)} if value.text is not None else {}


def _set(value: frozenset[Any]) -> Mapping[str, Any]:
    numbers = sorted(number_of(item) for item in value if isinstance(item, NUMBERS) and item == item)
    return {"length": len(value), "members": {canonical(item) for item in value}, "sorted numbers": numbers}


def doubles_in(value: bytes) -> list[float] | None:
    """The doubles that bytes are, of usual sizes, in one order of bytes; an empty list if they may be in both.

    None for other bytes. Of 8 bytes that are anything 1 in 14 are so read.
    """
    found: list[list[float]] = []
    if 0 < len(value) <= 8 * LIMITS.max_parts and len(value) % 8 == 0 and any(value):
        for order in "<>":
            doubles = np.frombuffer(value, f"{order}f8")
            size = np.abs(doubles)
            if np.all((size < 1e12) & (size > 1e-9) | (doubles == 0.0)):
                found.append(doubles.tolist())
    return None if not found else found[0] if len(found) == 1 else []


def _bytes(value: bytes) -> Mapping[str, Any]:
    value = bytes(value)
    parts: dict[str, Any] = {"length": len(value), "byte": list(value[: LIMITS.max_places])}
    inside = _uncompressed(value)
    if inside is not None:
        parts["uncompressed"] = inside
        return parts
    if (doubles := doubles_in(value)) is not None:
        return {"length": len(value), "doubles": doubles}
    if 0 < len(value) <= 8:
        parts["number"] = int.from_bytes(value, "little")
    text = value[: LIMITS.max_text].decode("latin-1")
    parts["text"] = text if text.isprintable() else Text(text)
    return parts


def _uncompressed(value: bytes) -> bytes | None:
    """Contents of compressed bytes, as far as they are read; None of others, and of those that do not open."""
    try:
        if value[:2] == b"\x1f\x8b" or (value[:1] == b"\x78" and len(value) > 2 and not int.from_bytes(value[:2]) % 31):
            return zlib.decompressobj(47).decompress(value, MAX_INSIDE)
        if value[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(value, MAX_INSIDE)
        if value[:6] == b"\xfd7zXZ\x00":
            return lzma.LZMADecompressor(memlimit=1 << 26).decompress(value, MAX_INSIDE)
    except (zlib.error, OSError, lzma.LZMAError, EOFError, ValueError):
        return None
    return None


DECODERS: dict[type, Decoder] = {
    complex: lambda z: {"real": z.real, "imaginary": z.imag, "size": abs(z), "angle": cmath.phase(z)},
    Decimal: _decimal, Fraction: _fraction, Failed: lambda failed: {"message": failed.message}, Opaque: _opaque,
    set: _set, frozenset: _set, bytes: _bytes, bytearray: _bytes,
}  # fmt: skip
