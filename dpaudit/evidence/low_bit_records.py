"""Rules on low bits as data: what audit.json keeps of a floating-point witness, so that anybody can run it again.

Numbers are hexadecimal texts of doubles, and the doubles that `SeenBefore` remembers are one text in base 64, so that a
rule reads back as the same function, bit for bit. What is read is data, never code: the kinds of features are fixed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.evidence.attainability import Attainable
from dpaudit.evidence.double_features import (
    Codes,
    DecimalPlaces,
    ExponentAndLowestBit,
    Feature,
    LastBits,
    LowestBit,
    Remainder,
    SeenBefore,
)
from dpaudit.evidence.low_bits import LowBitRule, Table

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


def rule_from_dict(record: Mapping[str, Any]) -> LowBitRule:
    """The rule that `rule_to_dict` wrote.

    Raises
    ------
    KeyError, TypeError, ValueError
        If it is none.
    """
    tables = tuple((_path(entry["path"]), _table(entry)) for entry in record["tables"])
    high, low = float.fromhex(record["high"]), float.fromhex(record["low"])
    if not tables:
        raise ValueError("tables must be at least one, got none.")
    if not high > low:  # then no output would have two guesses
        raise ValueError(f"high must be above low, got {high} and {low}.")
    return LowBitRule(tables, high, low)


def _table(entry: Mapping[str, Any]) -> Table:
    starts = np.array(entry["starts"], dtype=np.int64)
    scores = np.array([float.fromhex(score) for score in entry["scores"]])
    if starts.ndim != 1 or starts.shape != scores.shape or np.any(np.diff(starts) <= 0) or np.any(np.isnan(scores)):
        raise ValueError("starts must be increasing codes, one a score.")
    return Table(_feature(entry["feature"]), starts, scores)


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
        numbers = {name: float(getattr(feature, name)).hex() for name in ("first", "second", "scale")}
        return {"kind": "attainable", **numbers, "sampler": feature.sampler}
    return {"kind": next(kind for kind, plain in PLAIN.items() if type(feature) is plain)}


def _feature(record: Mapping[str, Any]) -> Feature:
    kind = record["kind"]
    if kind == "remainder":
        return Remainder(float.fromhex(record["step"]), str(record["name"]))
    if kind == "seen_before":
        first, second = (_unpacked(record[name]) for name in ("first", "second"))
        return SeenBefore(first, second, str(record["x"]), str(record["x_prime"]))
    if kind == "attainable":
        x, x_prime, scale = (float.fromhex(record[name]) for name in ("first", "second", "scale"))
        if record["sampler"] not in ("numpy", "logarithm"):
            raise ValueError(f"sampler must be 'numpy' or 'logarithm', got {record['sampler']!r}.")
        return Attainable(x, x_prime, scale, record["sampler"])
    return PLAIN[kind]()


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
