"""Rules on low bits as data: read back, they are the same function of any double; what is no rule is refused."""

import json
import math

import numpy as np
import pytest

from dpaudit.features.input_facts import Location
from dpaudit.features.low_bits import KINDS, Attainable, OwnBits, SeenBefore, low_bit_views
from dpaudit.features.outcomes import from_objects, read_outputs
from dpaudit.features.reader import Reader
from dpaudit.inference.guess_rules import GuessRule
from dpaudit.inference.low_bit_rules import LowBitRule, RealColumns, Table
from dpaudit.learning.rank_tree import Steps

RNG = np.random.default_rng(20_261_121)
VALUES = np.concatenate(
    [
        RNG.laplace(size=400),
        np.round(RNG.normal(size=100), 3),
        [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e300],
    ]
)
VIEWS = [
    *(OwnBits(kind, 1e-3) for kind in KINDS),
    SeenBefore.learn(VALUES[:200], VALUES[100:300]),
    Attainable(Location(0.0, 1.0), 1.0, "numpy", "one"),
    Attainable(Location(0.0, 1.0), 0.7, "logarithm", "difference"),
]


def rule_on(view, columns=None):
    columns = RealColumns(Reader.learn([read_outputs(VALUES, len(VALUES))]), (0,)) if columns is None else columns
    codes = view(VALUES)
    edges = np.unique(codes[~np.isnan(codes)])[:-1]
    steps = Steps(edges, np.linspace(0.2, 0.9, len(edges) + 1))
    return LowBitRule(columns, (Table(0, view, steps),), GuessRule(60, 30, 0, 0.0))


def through_json(rule, inputs=(0.0, 1.0)):
    return LowBitRule.from_dict(json.loads(json.dumps(rule.to_dict(), allow_nan=False)), *inputs)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: type(view).__name__)
def test_a_rule_reads_back_as_the_same_function(view):
    rule = rule_on(view)
    again = through_json(rule)
    outcomes = read_outputs(VALUES, len(VALUES))
    for form in (outcomes, outcomes.as_objects()):
        assert again.count(form).tolist() == rule.count(outcomes).tolist()
    assert rule.count(outcomes)[-1] == 1 and rule.count(outcomes)[:-1].max() < len(VALUES)  # NaN, and several bins
    assert again.odds(VALUES[:, None]).tobytes() == rule.odds(VALUES[:, None]).tobytes()
    assert (again.guesses, again.events()) == (rule.guesses, rule.events())


IN_TABLES = RealColumns(Reader.learn([from_objects([{"a": v, "b": [v, 2.0 * v]} for v in (0.1, 0.2, 0.5)])]), (1,))


@pytest.mark.parametrize("scale_of", ["one", "difference"])
@pytest.mark.parametrize(
    ("location", "columns", "inputs"),
    [
        (Location(0.37, 7.3), None, (0.37, 7.3)),
        (Location(0.37, 7.3), IN_TABLES, ({"a": 1, "b": [5.0, 0.37]}, {"a": 2, "b": [5.0, 7.3]})),
        (Location(5.37, 12.3, "sums"), None, ([5.0, 0.37], [5.0, 7.3])),
        (Location(12.3, 14.9, "largest", 1), None, ({"a": [1.5], "b": [12.3]}, {"a": [1.5], "b": [14.9]})),
    ],
    ids=["number", "entry", "sums", "a column"],
)
def test_a_rule_around_a_fact_is_saved_by_its_name_and_read_back_for_the_inputs(location, columns, inputs, scale_of):
    rule = rule_on(Attainable(location, 0.7, "numpy", scale_of), columns)
    again = through_json(rule, inputs)
    assert again.tables[0].view == rule.tables[0].view and again.events() == rule.events()
    said = json.dumps(rule.to_dict()) + " ".join(rule.events())
    for value in (location.x, location.x_prime, abs(location.x - location.x_prime) / 0.7):
        assert not [form for form in (repr(value), value.hex(), f"{value:.6g}") if form in said]


def test_words_name_the_entry_and_several_columns_speak_together():
    rule = rule_on(OwnBits("lowest bit"), IN_TABLES)
    assert rule.events()[0].startswith("with an entry ['b'][1] that are ")
    both = LowBitRule(IN_TABLES, rule.tables * 2, GuessRule(60, 0, 0, 0.0))
    assert both.events() == ("whose low bits in 2 coordinates together speak for x", "")


def test_every_view_that_is_tried_has_a_form():
    tried = {type(view) for view in low_bit_views(VALUES, VALUES, Location(0.0, 1.0), 1.0)}
    assert tried == {type(view) for view in VIEWS}


AROUND = {"kind": "attainable", "sampler": "numpy", "fact": "entry", "column": None, "scale_of": "one"}
AROUND["epsilon"] = "0x1p+0"


@pytest.mark.parametrize(
    "change",
    [
        {"tables": []},
        {"guesses": [3, 4]},
        {"guesses": [3]},
        {"columns": ["a"]},
        {"columns": []},
        {"reader": {}},
        {"column": 1},
        {"column": "a"},
        {"steps": {"edges": ["0x1p+0"], "p": ["0x1p-1"]}},
        {"steps": {"edges": [], "p": ["nan"]}},
        {"view": {"kind": "eval", "parameter": "0"}},
        {"view": {"kind": "attainable"}},
        {"view": {"kind": "seen before", "sides": ["****", ""]}},
        {"view": {"kind": "seen before", "sides": ["AAAA", ""]}},
        {"view": {"kind": "seen before", "sides": [""]}},
        {"view": AROUND | {"sampler": "other"}},
        {"view": AROUND | {"fact": "sums of squares"}},
        {"view": AROUND | {"column": 0}},
        {"view": AROUND | {"column": {}}},
        {"view": AROUND | {"scale_of": "sum"}},
        {"view": AROUND | {"epsilon": "-0x1p+0"}},
        {"view": AROUND | {"epsilon": "0x0p+0"}},
    ],
    ids=str,
)
def test_what_is_no_rule_is_refused(change):
    record = rule_on(Attainable(Location(0.0, 1.0), 1.0, "numpy", "one")).to_dict()
    LowBitRule.from_dict(record, 0.0, 1.0)
    for name, value in change.items():
        (record["tables"][0] if name in record["tables"][0] else record)[name] = value
    with pytest.raises((IndexError, KeyError, TypeError, ValueError)):
        LowBitRule.from_dict(record, 0.0, 1.0)
