"""What options of an audit must be, wherever they are stated."""

from __future__ import annotations

import math
import subprocess
import sys
from typing import get_args

import pytest

from dpaudit import UsageError
from dpaudit.arguments import MODES, check_options, did_you_mean
from dpaudit.campaign.schedules import Mode


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("samples", (10, 10**12), (9, 10.0, True, "10", None)),
        ("mode", MODES, ("quick", None, 1)),
        ("confidence", (1e-9, 0.95), (0.0, 1.0, 95, math.nan, True, None)),
        ("seed", (None, 0, 2**64), (-1, 0.0, True)),
        ("jobs", (-1, 1, 64), (0, -2, 1.0, True)),
        ("event_mass", (1e-9, 1), (0.0, 1.1, math.inf, math.nan)),
        ("inconclusive_factor", (1, 2.5, math.inf), (0.99, math.nan, "2")),
    ],
)
def test_each_option_has_a_range(name, good, bad):
    for value in good:
        check_options(**{name: value})
    for value in bad:
        with pytest.raises(UsageError, match=f"^{name} must be .*, got "):
            check_options(**{name: value})


def test_options_without_a_range_are_passed_over():
    check_options(floating_point="perhaps", pool=3)


def test_the_modes_are_those_of_the_game():
    assert get_args(Mode) == MODES


def test_a_name_that_is_near_is_said_and_no_other():
    assert did_you_mean("sample", ["samples", "mode"]) == " Did you mean 'samples'?"
    assert did_you_mean("x", ["samples", "mode"]) == ""


def test_checking_imports_no_numpy():
    code = "import sys, dpaudit.arguments, dpaudit.profiles; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
