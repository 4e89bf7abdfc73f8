"""Tests that doubles in exact forms are read as these doubles: their low bits are a question of their own."""

import base64
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.features.decoders import doubles_in
from dpaudit.features.outcomes import from_objects
from dpaudit.features.reader import Reader

DRAWN = np.random.default_rng(5).laplace(size=60).tolist()
VALUES = [v for v in DRAWN if doubles_in(struct.pack("<d", v)) == [v]]  # of others the bytes are doubles both ways


def columns(outputs):
    outcomes = from_objects(outputs)
    return Reader.learn([outcomes])(outcomes)


@pytest.mark.parametrize("form", [Decimal, Fraction, lambda v: struct.pack("<d", v), lambda v: struct.pack(">d", v)])
def test_objects_that_are_doubles_show_nothing_else(form):
    matrix = columns([form(value) for value in VALUES])
    assert len(VALUES) > 50
    varied = matrix[:, np.ptp(matrix, axis=0) > 0.0]
    assert varied.shape[1] >= 1
    assert np.array_equal(varied, np.repeat(np.array(VALUES)[:, None], varied.shape[1], axis=1))


@pytest.mark.parametrize(
    ("form", "printed"),
    [
        (float.hex, repr),
        (lambda v: str(Decimal(v)), repr),
        (lambda v: f"at {v:.60f}", "at {!r}".format),
        (lambda v: struct.pack(">d", v).hex(), "[{!r}]".format),
        (lambda v: base64.b64encode(struct.pack("<d", v)).decode(), "[{!r}]".format),
    ],
)
def test_texts_that_write_doubles_bit_by_bit_are_read_as_printed(form, printed):
    assert np.array_equal(columns(list(map(form, VALUES))), columns(list(map(printed, VALUES))), equal_nan=True)


def test_other_decimals_fractions_and_bytes_keep_their_parts():
    assert columns([Decimal(k) / 3 for k in range(1, 60)]).shape[1] > 3
    assert columns([Fraction(k, 8) for k in range(1, 60)]).shape[1] >= 3
    assert columns([k.to_bytes(8) for k in range(1, 60)]).shape[1] > 3
