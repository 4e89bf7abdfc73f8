"""What is not read: that it is named with an example, and that what is read is not."""

import numpy as np
import pytest

import dpaudit
from dpaudit.reading.leaves import LIMITS
from dpaudit.reading.unread import unread
from dpaudit.subjects.plain import seen


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("x" * 65, "characters of texts"),
        ("x" * 20_001, "numbers and words of texts behind"),
        (b"x" * 225, "bytes"),
        ([0.5] * 257, "positions"),
        ({k: 1 for k in range(65)}, "the order of more than 64 keys"),
        (object(), "what a object holds"),
    ],
    ids=["text", "long text", "bytes", "list", "keys", "object"],
)
def test_what_is_beyond_a_limit_is_named_with_its_place(output, what):
    (one,) = unread([seen([1, output])], LIMITS)
    assert one.what.startswith(what) and one.place == "the output[1]" and one.example


def test_what_is_nested_too_deep_is_named():
    output = 1.5
    for _ in range(37):
        output = [output]
    (one,) = unread([output], LIMITS)
    assert one.what == "what is nested more than 36 levels deep" and one.example == "1.5"
    assert unread(output, LIMITS) == ()  # one level less


@pytest.mark.parametrize("output", [1.5, "text", None, {"a": [1, (2, {3})]}, b"12", [0.5] * 256, "x" * 64])
def test_what_is_read_is_not_named(output):
    assert unread([seen(output)], LIMITS) == ()


def test_an_audit_says_what_it_did_not_read():
    def mechanism(data, rng):
        return {"note": "".join(chr(97 + k) for k in rng.integers(26, size=80)), "n": float(rng.laplace()) + data}

    finding = dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=100, seed=1).findings[0]
    assert any("Not read of the outputs: characters of texts from 65 on" in remark for remark in finding.notes)
    numbers = dpaudit.audit(lambda data, rng: float(rng.laplace()) + data, "eps=1", [(0, 1)], samples=100, seed=1)
    assert not any("Not read" in remark for remark in numbers.findings[0].notes)
    assert np.isfinite(finding.epsilon_lower)
