"""What is not read: that it is named with an example, and that what is read is not."""

import numpy as np
import pytest

import dpaudit
from dpaudit.features.unread import Limits, unread
from dpaudit.subjects.plain import seen


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("x" * 257, "characters of texts"),
        ("x" * 20_001, "numbers and words of texts behind"),
        (b"x" * 3_001, "bytes"),
        ([0.5] * 3_001, "positions of lists of numbers"),
        (["a"] * 65, "positions of lists from 65 on"),
        (np.zeros(3_001), "numbers of arrays"),
        ({k: 1 for k in range(257)}, "keys of mappings from 257 on"),
        (object(), "what a object holds"),
    ],
    ids=["text", "long text", "bytes", "numbers", "list", "array", "keys", "object"],
)
def test_what_is_beyond_a_limit_is_named_with_its_place(output, what):
    (one,) = unread([seen([1, output])])
    assert one.what.startswith(what) and one.place == "the output[1]" and one.example


def test_what_is_nested_too_deep_is_named():
    output = 1.5
    for _ in range(41):
        output = [output]
    (one,) = unread([output])
    assert one.what == "what is nested more than 40 levels deep" and one.example == "1.5"
    assert unread(output) == ()  # one level less


BEYOND = {
    "max_depth": {"a": [[[[1.0]]]]},
    "max_text": "x" * 20_001,
    "max_places": b"x" * 3_001,
    "max_items": ["a"] * 65,
    "max_parts": {str(k): k for k in range(257)},
}


@pytest.mark.parametrize("limit", BEYOND)
def test_what_is_beyond_a_limit_is_told_and_what_is_within_is_not(limit):
    narrow, wide = ({"max_depth": 3}, {}) if limit == "max_depth" else ({}, {limit: 100_000, "max_parts": 100_000})
    assert unread([BEYOND[limit]], Limits(**narrow)) and not unread([BEYOND[limit]], Limits(**wide))


def test_an_audit_says_what_it_did_not_read():
    def mechanism(data, rng):
        return {"note": "".join(chr(97 + k) for k in rng.integers(26, size=300)), "n": float(rng.laplace()) + data}

    finding = dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=100, seed=1).findings[0]
    assert any("Not read of the outputs: characters of texts from 257 on" in remark for remark in finding.notes)
    numbers = dpaudit.audit(lambda data, rng: float(rng.laplace()) + data, "eps=1", [(0, 1)], samples=100, seed=1)
    assert not any("Not read" in remark for remark in numbers.findings[0].notes)
    assert np.isfinite(finding.epsilon_lower)
