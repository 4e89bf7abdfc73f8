"""Decoders: the parts of single values of types that are neither numbers, texts, mappings, sequences nor arrays."""

from __future__ import annotations

import bz2
import cmath
import lzma
import math
import zlib
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.features.visitor import NUMBERS, Text, decoder
from dpaudit.reading.outcomes import canonical, number_of
from dpaudit.reading.unread import LIMITS
from dpaudit.subjects.call_outcomes import Failed, Opaque

MAX_INSIDE = 1 << 20  # bytes that compressed bytes may hold, as far as they are read


@decoder(complex)
def _complex(value: complex) -> Mapping[str, Any]:
    return {"real": value.real, "imaginary": value.imag, "size": abs(value), "angle": cmath.phase(value)}


@decoder(Decimal)
def _decimal(value: Decimal) -> Mapping[str, Any]:
    if not value.is_finite():
        return {"value": math.nan if value.is_nan() else math.copysign(math.inf, value)}
    parts = value.as_tuple()
    unscaled = int("".join(map(str, parts.digits[: LIMITS.max_parts])))
    return {
        "value": float(value), "digits": len(parts.digits), "last digit": parts.digits[-1], "unscaled": unscaled,
        "exponent": parts.exponent, "sign": parts.sign,
    }  # fmt: skip


@decoder(Fraction)
def _fraction(value: Fraction) -> Mapping[str, Any]:
    return {"value": number_of(value), "numerator": value.numerator, "denominator": value.denominator}


@decoder(Failed)
def _failed(value: Failed) -> Mapping[str, Any]:
    return {"message": value.message}


@decoder(Opaque)
def _opaque(value: Opaque) -> Mapping[str, Any]:
    if value.state is not None:
        return {"attributes": value.state}
    return {"text": Text(value.text)} if value.text is not None else {}


@decoder(set, frozenset)
def _set(value: frozenset[Any]) -> Mapping[str, Any]:
    numbers = sorted(number_of(item) for item in value if isinstance(item, NUMBERS) and item == item)
    return {"length": len(value), "members": {canonical(item) for item in value}, "sorted numbers": numbers}


@decoder(bytes, bytearray)
def _bytes(value: bytes) -> Mapping[str, Any]:
    value = bytes(value)
    parts: dict[str, Any] = {"length": len(value), "byte": list(value[: LIMITS.max_places])}
    inside = _uncompressed(value)
    if inside is not None:
        parts["uncompressed"] = inside
        return parts
    if 0 < len(value) <= 8 * LIMITS.max_parts and len(value) % 8 == 0:
        doubles = np.frombuffer(value, "<f8")
        size = np.abs(doubles)
        if np.all(np.isfinite(doubles) & ((size < 1e100) & (size > 1e-100) | (doubles == 0.0))):
            parts["doubles"] = doubles.tolist()
    if 0 < len(value) <= 8:
        parts["number"] = int.from_bytes(value, "little")
    text = value[: LIMITS.max_text].decode("latin-1")
    parts["text"] = text if text.isprintable() else Text(text)
    return parts


def _uncompressed(value: bytes) -> bytes | None:
    """What compressed bytes hold, as far as they are read; None of others, and of those that do not open."""
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
