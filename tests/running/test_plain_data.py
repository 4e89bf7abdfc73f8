"""Outputs as bytes: what is kept for later fits is what was drawn, and damaged bytes are refused."""

import math

import numpy as np
import pytest

from dpaudit.features.outcomes import read_outputs
from dpaudit.running.plain_data import outcomes_as_bytes, outcomes_from_bytes
from dpaudit.subjects.call_outcomes import Failed


def test_outputs_of_every_kind_are_kept_as_they_are():
    rows = [None, True, 3, 2**80, 1.5, -0.0, math.inf, "é\ud800", b"\0", (1, [2.0]), {"a": {1}}, np.float32(0.1),
            {1: 2, "x": (None,)}, frozenset({1, 2}), complex(1.5, -0.0), Failed("ValueError", "no"),
            np.datetime64("2020-01-01"), np.arange(6, dtype=np.int16).reshape(2, 3)]  # fmt: skip
    outcomes = read_outputs(rows, len(rows))
    again = outcomes_from_bytes(outcomes_as_bytes(outcomes))
    assert again.tokens.tolist() == outcomes.tokens.tolist()
    assert [type(value) for value in again.raw] == [type(value) for value in rows] and repr(again.raw[-1]) == repr(
        rows[-1]
    )
    for array in (np.arange(6).reshape(3, 2), np.array([[math.nan, math.inf]]), np.zeros((2, 3, 4)), np.ones(2, bool)):
        outcomes = read_outputs(array, len(array))
        again = outcomes_from_bytes(outcomes_as_bytes(outcomes))
        assert again.numbers.tobytes() == outcomes.numbers.tobytes()
        assert (again.shape, again.is_integer) == (outcomes.shape, outcomes.is_integer)


def test_outputs_that_are_no_plain_values_are_not_kept_and_damaged_ones_are_refused():
    assert outcomes_as_bytes(read_outputs([10**5_000, 1.0], 2)) is None  # JSON has no such number
    assert outcomes_from_bytes(outcomes_as_bytes(read_outputs([object()], 1))).raw[0].kind == "object"
    data = outcomes_as_bytes(read_outputs(np.arange(3.0), 3))
    for damaged in (b"", b"X" + data[1:], data[:8], data[:1] + b"\0" + data[2:], packed_text(b'{"counts": []}')):
        with pytest.raises(ValueError, match="outputs must be ones that were kept"):
            outcomes_from_bytes(damaged)


def packed_text(text):
    import struct
    import zlib

    return zlib.compress(struct.pack("<I", len(text)) + text)
