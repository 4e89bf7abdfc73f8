"""Rules on low bits as data: what audit.json keeps of a floating-point witness, so that anybody can run it again.

Numbers are hexadecimal texts of doubles, and the doubles that `SeenBefore` remembers are one text in base 64, so that a
rule reads back as the same function, bit for bit. What is read is data, never code: the kinds of features are fixed.

A rule around a fact of the inputs (a sum, a mean, a length) holds the name of the fact and not its value, which would
tell readers of a file about people. Whoever runs the rule again has the inputs, and the fact is computed from them.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.doubles.attainability import Attainable
from dpaudit.doubles.features import (
    Codes,
    DecimalPlaces,
    ExponentAndLowestBit,
    Feature,
    LastBits,
    LowestBit,
    Remainder,
    SeenBefore,
)
from dpaudit.doubles.locations import numbers_named
from dpaudit.doubles.low_bits import LowBitRule, Table
from dpaudit.reading.real_columns import Path

PLAIN: Mapping[str, type[LowestBit | DecimalPlaces | LastBits | ExponentAndLowestBit]] = {
    "lowest_bit": LowestBit,
    "decimal_places": DecimalPlaces,
    "last_bits": LastBits,
    "exponent_and_lowest_bit": ExponentAndLowestBit,
}


def rule_to_dict(rule: LowBitRule) -> dict[str, Any]:
    """The rule as strict JSON values."""
    tables = [
        {
            "path": list(path),
            "feature": _feature_to_dict(table.feature),
            "starts": table.starts.tolist(),
            "scores": [float(score).hex() for score in table.scores],
        }
        for path, table in rule.tables
    ]
    return {"tables": tables, "high": float(rule.high).hex(), "low": float(rule.low).hex()}


def rule_from_dict(record: Mapping[str, Any], x: Any, x_prime: Any) -> LowBitRule:
    """The rule that `rule_to_dict` wrote, for these inputs.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is none.
    """
    tables = tuple((_path(entry["path"]), _table(entry, x, x_prime)) for entry in record["tables"])
    high, low = float.fromhex(record["high"]), float.fromhex(record["low"])
    if not tables:
        raise ValueError("tables must be at least one, got none.")
    if not high > low:  # then no output would have two guesses
        raise ValueError(f"high must be above low, got {high} and {low}.")
    return LowBitRule(tables, high, low)


def _table(entry: Mapping[str, Any], x: Any, x_prime: Any) -> Table:
    starts = np.array(entry["starts"], dtype=np.int64)
    scores = np.array([float.fromhex(score) for score in entry["scores"]])
    if starts.ndim != 1 or starts.shape != scores.shape or np.any(np.diff(starts) <= 0) or np.any(np.isnan(scores)):
        raise ValueError("starts must be increasing codes, one a score.")
    return Table(_feature(entry["feature"], _path(entry["path"]), x, x_prime), starts, scores)


def _path(entries: Any) -> tuple[Any, ...]:
    if not isinstance(entries, list) or not all(type(entry) in (int, str) for entry in entries):
        raise ValueError(f"path must be a list of positions and keys, got {entries!r}.")
    return tuple(entries)


def _feature_to_dict(feature: Feature) -> dict[str, Any]:
    if isinstance(feature, Remainder):
        return {"kind": "remainder", "step": feature.step.hex(), "name": feature.name}
    if isinstance(feature, SeenBefore):
        sides = {"first": _packed(feature.first), "second": _packed(feature.second)}
        return {"kind": "seen_before", **sides, "x": feature.x, "x_prime": feature.x_prime}
    if isinstance(feature, Attainable):
        return {"kind": "attainable", "sampler": feature.sampler, **_named(feature)}
    return {"kind": next(kind for kind, plain in PLAIN.items() if type(feature) is plain)}


def _named(feature: Attainable) -> dict[str, Any]:
    """Locations by the name of their fact; those of a file that holds numbers alone as they came."""
    if feature.location is None:
        return {name: float(getattr(feature, name)).hex() for name in ("first", "second", "scale")}
    location, epsilon = feature.location, float(feature.epsilon).hex()
    return {"fact": location.fact, "column": location.column, "scale_of": feature.scale_of, "epsilon": epsilon}


def _feature(record: Mapping[str, Any], path: Path, x: Any, x_prime: Any) -> Feature:
    kind = record["kind"]
    if kind == "remainder":
        return Remainder(float.fromhex(record["step"]), str(record["name"]))
    if kind == "seen_before":
        first, second = (_unpacked(record[name]) for name in ("first", "second"))
        return SeenBefore(first, second, str(record["x"]), str(record["x_prime"]))
    if kind == "attainable":
        return _attainable(record, path, x, x_prime)
    return PLAIN[kind]()


def _attainable(record: Mapping[str, Any], path: Path, x: Any, x_prime: Any) -> Attainable:
    """Files of earlier versions hold the two numbers and the scale themselves."""
    sampler, scale_of = record["sampler"], record.get("scale_of", "one")
    if sampler not in ("numpy", "logarithm"):
        raise ValueError(f"sampler must be 'numpy' or 'logarithm', got {sampler!r}.")
    if scale_of not in ("one", "difference"):
        raise ValueError(f"scale_of must be 'one' or 'difference', got {scale_of!r}.")
    if "first" in record:
        first, second, scale = (float.fromhex(record[name]) for name in ("first", "second", "scale"))
        return Attainable(first, second, scale, sampler)
    location = numbers_named(record["fact"], record["column"], path, x, x_prime)
    epsilon = float.fromhex(record["epsilon"])
    if not 0.0 < epsilon < math.inf:
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}.")
    return Attainable.around(location, epsilon, sampler, scale_of)


def _packed(codes: Codes) -> str:
    return base64.b64encode(codes.astype("<i8").tobytes()).decode("ascii")


def _unpacked(text: str) -> Codes:
    try:
        codes = np.frombuffer(base64.b64decode(text, validate=True), dtype="<i8").astype(np.int64)
    except binascii.Error as error:
        raise ValueError(f"values must be in base 64, got {error}.") from error
    if np.any(np.diff(codes) <= 0):
        raise ValueError("values must be increasing.")
    return codes
