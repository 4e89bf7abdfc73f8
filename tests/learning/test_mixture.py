"""A frozen predictor: a function of one output, the same for equal draws, and data that is read back as it was."""

import json

import numpy as np
import pytest

from dpaudit.features.outcomes import read_outputs
from dpaudit.features.reader import Reader
from dpaudit.features.views import View
from dpaudit.learning.learned_views import _quantiles
from dpaudit.learning.mixture import (
    NO_FORETELLING,
    STRUCTURES,
    Mixture,
    Model,
    fit_mixture,
    fit_views,
    mixture_of,
    weights_of,
)
from dpaudit.learning.rank_tree import SIZES as RANK_SIZES
from dpaudit.learning.rank_tree import Shifts


def one_number(rng, size, moved):
    values = rng.laplace(size=size) + moved
    values[rng.random(size) < 0.1 * (1.0 + moved)] = 7.0  # an atom that tells
    values[rng.random(size) < 0.05] = np.nan
    return values


def rows(rng, size, moved):
    numbers = rng.normal(size=(size, 4))
    numbers[:, 2] += moved
    numbers[:, 3] *= 1.0 + moved
    return numbers


def texts(rng, size, moved):
    return [f"user {k}" if u < 0.4 + 0.3 * moved else {"n": k, "at": u} for k, u in
            zip(rng.integers(0, 5, size).tolist(), rng.random(size).tolist(), strict=True)]  # fmt: skip


def nothing(rng, size, moved):
    del rng, moved
    return np.zeros(size)


FORMS = {"one number": one_number, "rows": rows, "texts": texts, "nothing": nothing}


def fitted(form, size=400, fit=None):
    rng = np.random.default_rng(7)
    sides = [read_outputs(FORMS[form](rng, size, moved), size) for moved in (0, 1)]
    reader = Reader.learn(tuple(sides))
    matrix = np.concatenate([reader(side) for side in sides])
    labels = np.repeat([0, 1], size)
    order = rng.permutation(2 * size)
    foretold = NO_FORETELLING + np.array([[0.0], [1.0], [2.0]])
    if fit is not None:
        return fit(reader, matrix[order], labels[order]), sides
    return fit_mixture(reader, matrix[order], labels[order], foretold)[0], sides


@pytest.mark.parametrize("form", FORMS)
def test_the_probability_of_an_output_does_not_depend_on_its_batch(form):
    mixture, sides = fitted(form)
    whole = mixture(sides[1])
    assert np.all((whole > 0.0) & (whole < 1.0))
    for part in (slice(0, 1), slice(5, 6), slice(3, 40), slice(0, 399), slice(100, 400, 7)):
        np.testing.assert_array_equal(mixture(sides[1].rows(part)), whole[part])


@pytest.mark.parametrize("form", FORMS)
def test_equal_draws_give_an_equal_mixture_and_it_is_read_back_as_it_was(form):
    mixture, sides = fitted(form)
    record = mixture.to_dict()
    assert fitted(form)[0].to_dict() == record
    again = Mixture.from_dict(json.loads(json.dumps(record)))
    assert again.to_dict() == record
    for side in sides:
        matrix = mixture.reader(side)
        np.testing.assert_array_equal(again.of_matrix(matrix), mixture.of_matrix(matrix))
        np.testing.assert_array_equal(again(side), mixture(side))


@pytest.mark.parametrize("form", ["one number", "rows", "texts"])
def test_what_tells_the_inputs_apart_is_foretold_on_fresh_draws(form):
    """Nats a draw of 4,000 fresh ones: 0.08 to 0.17, with a standard error below 0.007; telling nothing gives 0."""
    rng = np.random.default_rng(11)
    mixture, _ = fitted(form)
    p = [mixture(read_outputs(FORMS[form](rng, 2_000, moved), 2_000)) for moved in (0, 1)]
    assert 0.5 * float(np.log(2.0 * (1.0 - p[0])).mean() + np.log(2.0 * p[1]).mean()) > 0.03


def test_where_nothing_varies_each_label_is_as_likely():
    mixture, sides = fitted("nothing")
    assert mixture(sides[0]) == pytest.approx([0.5] * 400, abs=1e-12) and mixture.strongest() is None


def test_structures_are_weighed_by_what_they_foretold():
    weights = weights_of(NO_FORETELLING)
    assert weights.sum() == pytest.approx(1.0) and np.ptp(weights.sum(axis=1)) < 1e-12
    better = NO_FORETELLING.copy()
    better[1] += 3.0
    shares = weights_of(better).sum(axis=1)
    assert shares[1] / shares[0] == pytest.approx(np.exp(3.0)) and len(shares) == len(STRUCTURES)


def test_the_parts_of_a_structure_leave_the_rest_to_a_fair_coin():
    mixture, _ = fitted("rows")
    for parts in (mixture.trees, mixture.parts, mixture.shifted):
        weights = [part.weight for part in parts]
        assert min(weights, default=1.0) > 0.0 and sum(weights) <= 1.0 + 1e-12


def test_a_first_look_has_few_views():
    mixture, sides = fitted("rows", fit=lambda *draws: fit_views(*draws, max_views=3))
    assert len({id(part.view) for part in mixture.parts}) <= 3
    assert np.ptp(mixture(sides[1])) > 0.1


def test_a_record_of_shifts_without_trees_is_refused():
    record = fitted("one number")[0].to_dict()
    with pytest.raises(ValueError, match="a weight for each structure"):
        Mixture.from_dict({**record, "shifted": [{**one, "tree": None} for one in record["parts"]]})


def test_quantiles_of_columns_are_those_of_numpy():
    rng = np.random.default_rng(20_261_128)
    for size in (1, 2, 3, 50, 999):
        for share in (0.0, 0.1, 0.9):
            columns = np.concatenate([rng.normal(size=(size, 9)), rng.integers(3, size=(size, 9))], axis=1)
            columns[rng.random(columns.shape) < share] = np.nan
            columns[0] = 1.0
            expected = np.nanquantile(columns, [0.003, 0.5, 0.997], axis=0)
            assert _quantiles(columns, [0.003, 0.5, 0.997]).tobytes() == expected.tobytes()


def test_shifts_that_tell_less_than_none_are_not_heard():
    _, sides = fitted("one number")
    reader, view = Reader.learn(tuple(sides)), View("value", (0,))
    still = np.zeros((2, len(RANK_SIZES.shifts)))
    still[:, [4, 6]] = 0.5
    moves = [Model(evidence, view, Shifts(np.zeros(1), still)) for evidence in (-0.1, 0.0, 1.0)]
    foretold = NO_FORETELLING
    assert mixture_of(reader, [], [], moves[:2], foretold).shifted == ()
    assert np.array_equal(mixture_of(reader, [], [], moves[:2], foretold).weights, weights_of(foretold))
    assert [part.tree for part in mixture_of(reader, [], [], moves, foretold).shifted] == [moves[2].tree]


# A rule that was saved when bits of a number and parities of columns had kinds of their own, and digits no columns; and
# what it said of these outputs then.
SAVED = json.loads(
    """
{"reader": {"columns": 8, "blocks": [["", 8]], "keys": [], "members": [], "wanted": [], "values": [[]], "points": [],
"tokens": [], "inner": 0, "density": null}, "views": [{"kind": "two bits", "columns": [0], "parameter":
"0x1.0c00000000000p+6", "levels": []}, {"kind": "parity of two", "columns": [0, 3], "parameter": "0x0.0p+0", "levels":
[]}, {"kind": "parity of three", "columns": [1, 3, 4], "parameter": "0x0.0p+0", "levels": []}, {"kind": "value",
"columns": [31], "parameter": "0x0.0p+0", "levels": []}, {"learned": {"kind": "mean difference", "name": "difference
of mean values", "columns": [0, 1, 5], "of": "values", "low": ["0x1.351eb851eb852p+3", "0x1.f70a3d70a3d71p+7",
"0x1.d05c28f5c28f6p+7"], "high": ["0x1.551eb851eb851p+9", "0x1.d2a3d70a3d70ap+9", "0x1.c0d47ae147ae1p+9"], "centre":
["0x1.53dcccccccccdp+8", "0x1.22ecccccccccdp+9", "0x1.07ad70a3d70a4p+9"], "spread": ["0x1.a32a6409e2b33p+7",
"0x1.019cfab628065p+8", "0x1.dc926bc0df3fep+7"], "weights": ["0x1.09ef9fd903dfcp-2", "-0x1.d041d09054327p-2",
"-0x1.5a2f65c2133cdp-2"]}}], "trees": [], "parts": [{"weight": "0x1.999999999999ap-3", "view": 0, "tree": {"edges":
["0x1.0000000000000p-1"], "p": ["0x1.999999999999ap-3", "0x1.6666666666666p-1"]}}, {"weight": "0x1.999999999999ap-3",
"view": 1, "tree": {"edges": ["0x1.0000000000000p-1"], "p": ["0x1.999999999999ap-2", "0x1.ccccccccccccdp-1"]}},
{"weight": "0x1.999999999999ap-3", "view": 2, "tree": {"edges": ["0x1.0000000000000p-1"], "p":
["0x1.6666666666666p-2", "0x1.3333333333333p-1"]}}, {"weight": "0x1.999999999999ap-4", "view": 3, "tree": {"edges":
["-0x1.8186192200000p-5"], "p": ["0x1.0000000000000p-2", "0x1.8000000000000p-1"]}}, {"weight": "0x1.0000000000000p-2",
"view": 4, "tree": null}], "shifted": [], "weights": [["0x0.0p+0", "0x0.0p+0", "0x0.0p+0", "0x0.0p+0"],
["0x1.0000000000000p+0", "0x0.0p+0", "0x0.0p+0", "0x0.0p+0"], ["0x0.0p+0", "0x0.0p+0", "0x0.0p+0", "0x0.0p+0"]]}
""".replace("\n", " ")
)
SAID = [
    0.35305826378759475, 0.45406073457793483, 0.5056064837939983, 0.4459675921666968,
    0.5891505219279101, 0.6213146312001943, 0.40482915983413803, 0.5897174044875503,
]  # fmt: skip


def test_a_rule_of_an_earlier_version_says_what_it_said():
    outputs = (np.arange(64) ** 2 * 7919 % 997).reshape(8, 8)
    assert Mixture.from_dict(SAVED)(read_outputs(outputs, 8)).tolist() == SAID
