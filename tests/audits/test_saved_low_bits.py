"""Rules on low bits as data: read back, they are the same function of any double; what is no rule is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpaudit.doubles.attainability import Attainable
from dpaudit.doubles.features import (
    DecimalPlaces,
    ExponentAndLowestBit,
    LastBits,
    LowestBit,
    Remainder,
    SeenBefore,
    bits_of,
)
from dpaudit.doubles.locations import Location
from dpaudit.doubles.low_bits import LowBitRule, Table
from dpaudit.doubles.saved_low_bits import PLAIN, rule_from_dict, rule_to_dict

RNG = np.random.default_rng(20_261_121)
VALUES = np.concatenate(
    [
        RNG.laplace(size=400),
        np.round(RNG.normal(size=100), 3),
        [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e300],
    ]
)
SEEN = SeenBefore(np.unique(bits_of(VALUES[:200])), np.unique(bits_of(VALUES[100:300])), "x", "x'")
FEATURES = [
    LowestBit(),
    DecimalPlaces(),
    LastBits(),
    ExponentAndLowestBit(),
    Remainder(1e-3, "10^-3"),
    SEEN,
    Attainable(0.0, 1.0, 1.0, "numpy"),
    Attainable(0.1, 1.0, 0.3, "logarithm"),
]


AROUND = {"kind": "attainable", "sampler": "numpy", "fact": "entry", "column": None, "scale_of": "one"}
AROUND["epsilon"] = "0x1p+0"


def rule_on(feature, path=()):
    starts = np.unique(feature.codes(VALUES))
    scores = np.linspace(-2.0, 2.0, len(starts)) / 3.0
    return LowBitRule(((path, Table(feature, starts, scores)),), 0.1, -0.1)


def through_json(rule, inputs=(0.0, 1.0)):
    return rule_from_dict(json.loads(json.dumps(rule_to_dict(rule), allow_nan=False)), *inputs)


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: type(feature).__name__)
def test_a_rule_reads_back_as_the_same_function(feature):
    rule = rule_on(feature)
    again = through_json(rule)
    for (path, table), (path_again, table_again) in zip(rule.tables, again.tables, strict=True):
        assert path == path_again and table_again(VALUES).tobytes() == table(VALUES).tobytes()
    assert (again.high, again.low, again.events()) == (rule.high, rule.low, rule.events())
    assert again.count({(): VALUES}, len(VALUES)) == rule.count({(): VALUES}, len(VALUES))


@pytest.mark.parametrize("scale_of", ["one", "difference"])
@pytest.mark.parametrize(
    ("location", "path", "inputs"),
    [
        (Location(0.37, 7.3), (), (0.37, 7.3)),
        (Location(0.37, 7.3), (1,), ([5.0, 0.37], [5.0, 7.3])),
        (Location(5.37, 12.3, "sums"), (), ([5.0, 0.37], [5.0, 7.3])),
        (Location(12.3, 14.9, "largest", 1), (), ({"a": [1.5], "b": [12.3]}, {"a": [1.5], "b": [14.9]})),
    ],
    ids=["number", "entry", "sums", "a column"],
)
def test_a_rule_around_a_fact_is_saved_by_its_name_and_read_back_for_the_inputs(location, path, inputs, scale_of):
    rule = rule_on(Attainable.around(location, 0.7, "numpy", scale_of), path)
    again = through_json(rule, inputs)
    values = VALUES + location.x
    assert again.tables[0][1](values).tobytes() == rule.tables[0][1](values).tobytes()
    assert again.events() == rule.events()
    said = json.dumps(rule_to_dict(rule)) + " ".join(rule.events())
    for value in (location.x, location.x_prime, abs(location.x - location.x_prime) / 0.7):
        assert not [form for form in (repr(value), value.hex(), f"{value:.6g}") if form in said]


def test_a_rule_of_an_earlier_version_holds_the_numbers_and_is_read():
    feature = Attainable(0.1, 1.0, 0.3, "logarithm")
    assert rule_to_dict(rule_on(feature))["tables"][0]["feature"]["first"] == (0.1).hex()
    assert through_json(rule_on(feature)).tables[0][1].feature == feature


def test_paths_into_outputs_and_open_thresholds_are_kept():
    (entry,) = rule_on(LowestBit(), ("mean", 2)).tables
    again = through_json(LowBitRule((entry, entry), math.inf, -0.5))
    assert [path for path, _ in again.tables] == [("mean", 2)] * 2
    assert (again.high, again.low, again.sides) == (math.inf, -0.5, 1)


def test_every_kind_of_feature_that_is_tried_has_a_form():
    from dpaudit.doubles.features import features_for

    tried = {type(feature) for feature in features_for(VALUES, VALUES, "x", "x'")} | {Attainable}
    assert tried == {type(feature) for feature in FEATURES} and set(PLAIN.values()) <= tried


@pytest.mark.parametrize(
    "change",
    [
        {"tables": []},
        {"high": "-0x1p+0"},
        {"high": "nan"},
        {"high": 1.0},
        {"path": [1.5]},
        {"path": "mean"},
        {"starts": [1, 1]},
        {"starts": [2]},
        {"starts": ["a", "b"]},
        {"scores": ["nan", "0x1p+0"]},
        {"kind": "eval"},
        {"kind": "attainable"},
        {"feature": {"kind": "seen_before", "first": "****", "second": "", "x": "x", "x_prime": "y"}},
        {"feature": {"kind": "seen_before", "first": "AAAA", "second": "", "x": "x", "x_prime": "y"}},
        {"feature": {"kind": "attainable", "first": "0", "second": "1", "scale": "1", "sampler": "other"}},
        {"feature": AROUND | {"fact": "sums"}},
        {"feature": AROUND | {"column": 0}},
        {"feature": AROUND | {"column": {}}},
        {"feature": AROUND | {"scale_of": "sum"}},
        {"feature": AROUND | {"epsilon": "-0x1p+0"}},
        {"feature": AROUND | {"epsilon": "0x0p+0"}},
    ],
    ids=str,
)
def test_what_is_no_rule_is_refused(change):
    table = {
        "path": [],
        "feature": {"kind": "lowest_bit"},
        "starts": [1, 2],
        "scores": ["0x1p+0", "-0x1p+0"],
    }
    record = {"tables": [table], "high": "0x1p-1", "low": "-0x1p-1"}
    rule_from_dict(record, 0.0, 1.0)
    for name, value in change.items():
        if name == "kind":
            table["feature"] = {"kind": value}
        elif name in table:
            table[name] = value
        else:
            record[name] = value
    with pytest.raises((KeyError, TypeError, ValueError)):
        rule_from_dict(record, 0.0, 1.0)
