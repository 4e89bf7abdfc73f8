"""Programs that leak, and that a model without NaN, wrap-around, rounding or kept generators would call private."""

from __future__ import annotations

import datetime
import time

import numpy as np
import pytest

import dpaudit

KEPT = {}


def is_above_nan(x, rng):
    return rng.random() > (float("nan") if x else -1.0)


def is_at_least_nan_in_an_array(x, rng):
    return bool((rng.random(1) >= np.array([float("nan") if x else -1.0]))[0])


def has_a_whole_number_above_nan(x, rng):
    return rng.geometric(0.5) > (float("nan") if x else 0)


def takes_the_largest_of_nan(x, rng):
    return bool(np.maximum(rng.random(1), float("nan") if x else -1.0)[0] >= 0)


def wraps_around(x, rng):
    with np.errstate(over="ignore"):
        return bool(rng.integers(0, 1_000, dtype=np.int16) + np.int16(32_000 * x) < 0)


def leaves_int64(x, rng):
    return bool(rng.integers(0, 1_000) + x * (2**63 - 500) < 0)


def keeps_a_generator(x, rng):
    own = KEPT.setdefault("rng", np.random.default_rng(5))
    return x * (own.random() > 2)


def reads_the_date(x, rng):
    return x * (datetime.datetime.now().year < 0)


def reads_a_clock(x, rng):
    return x * (time.clock_gettime(0) < 0)


def absorbs_the_draw(x, rng):
    return (rng.random() + 1e17 * x) - 1e17 * x > 0.5


def absorbs_a_whole_number(x, rng):
    return (rng.integers(1_000) + 1e18 * x) - 1e18 * x == 1


def raises_by_the_class(x, rng):
    draw = rng.integers(300)
    if type(draw) is not np.int64:
        raise ValueError
    return x


@pytest.mark.parametrize(
    "mechanism",
    [
        is_above_nan,
        is_at_least_nan_in_an_array,
        has_a_whole_number_above_nan,
        takes_the_largest_of_nan,
        wraps_around,
        leaves_int64,
        keeps_a_generator,
        reads_the_date,
        reads_a_clock,
        absorbs_the_draw,
        absorbs_a_whole_number,
        raises_by_the_class,
    ],
)
def test_no_claim_is_proved_of_a_program_that_leaks_or_cannot_be_followed(mechanism):
    KEPT.clear()
    result = dpaudit.certify(mechanism, "eps=0", [(0, 1)])
    assert result.verdict != "kept", result
