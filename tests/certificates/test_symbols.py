"""Geometric symbols keep exact laws through clamps, comparisons and arrays: few runs, fractions of geometric series."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from traced_programs import explore

import dpaudit
from dpaudit.subjects.callables import as_subject
from dpaudit.symbolic.exact_judging import _reason
from dpaudit.symbolic.exploring import Exploration, Runner
from dpaudit.symbolic.leaves import readable

THIRD = Fraction(1, 3)  # (1 - a) / (1 + a) at a = 1/2: the probability of two-sided noise 0


def law(mechanism, x=0, most_runs=200):
    runner = Runner(as_subject(mechanism), "numpy")
    exploration = explore(runner, x)
    assert exploration.left == 0
    assert runner.runs <= most_runs
    return {readable(leaf.token): mass for leaf, mass in exploration.law.items()}


def two_sided(rng, size=None):
    return rng.geometric(0.5, size) - rng.geometric(0.5, size)


# P(noise >= k) = a^k / (1 + a) for k >= 1: 1/3, 1/6, 1/12, ...
CLAMPED = {"-1.0": THIRD, "0.0": THIRD, "1.0": THIRD}


@pytest.mark.parametrize(
    "clamp",
    [
        lambda z, rng: int(min(max(z, -1), 1)),
        lambda z, rng: min(max(z, -1), 1),
        lambda z, rng: np.clip(np.array([0]) + z, -1, 1)[0],
        lambda z, rng: np.clip(z, -1, 1),
        lambda z, rng: np.minimum(np.maximum(z, -1), 1),
        lambda z, rng: -1 if z < 0 else 1 if z > 0.5 else 0,
        lambda z, rng: 1 - (z <= 0) - (z <= -1),
        lambda z, rng: 0 if z == 0 else 1 if z > 0 else -1,
        lambda z, rng: max(-1, 1 - max(0, 1 - z)),
    ],
)
def test_a_clamped_symbol_has_its_tails_in_few_runs(clamp):
    assert law(lambda x, rng: clamp(two_sided(rng), rng)) == CLAMPED


def test_sums_and_products_of_symbols_are_those_of_numbers():
    # 2 X + 3 Y with X, Y from 0 is below 3 for (0, 0) and (1, 0).
    found = law(lambda x, rng: bool(2 * (rng.geometric(0.5) - 1) + 3 * (rng.geometric(0.5) - 1) < 3))
    assert found["1.0"] == Fraction(1, 4) + Fraction(1, 8)
    assert law(lambda x, rng: bool((rng.geometric(0.5) + 0) % 2 == 0 if rng.integers(1) else True)) == {"1.0": 1}
    found = law(lambda x, rng: bool(abs(two_sided(rng)) >= 2))
    assert found["1.0"] == 2 * Fraction(1, 6)


def test_the_maximum_of_an_array_compares_its_elements():
    found = law(lambda x, rng: bool(np.max(rng.geometric(0.5, 3)) <= 2))
    assert found["1.0"] == Fraction(3, 4) ** 3
    found = law(lambda x, rng: bool(rng.geometric(0.5, 2).sum() <= 3))
    assert found["1.0"] == Fraction(1, 4) + Fraction(1, 4)


def test_two_different_ratios_race_by_their_own_laws():
    # P(X < Y) = (1 - a) b / (1 - ab) with a = 1/2, b = 1/4: 1/7; equal: (1/2)(3/4) / (7/8) = 3/7.
    found = law(lambda x, rng: int(np.sign(int(rng.geometric(0.5) < rng.geometric(0.75)))))
    assert found == {"1.0": Fraction(1, 7), "0.0": Fraction(6, 7)}


def test_symbols_in_dictionaries_and_nested_lists_stay_tails():
    from dpaudit.symbolic.leaves import cells

    runner = Runner(as_subject(lambda x, rng: {"a": [x, two_sided(rng)], "b": (1 - x) + rng.geometric(0.5)}), "numpy")
    laws = [explore(runner, x).law for x in (0, 1)]
    assert runner.runs < 100
    (p, q), is_whole = cells(laws, {})
    assert is_whole
    assert sum(p.values()) == sum(q.values()) == 1
    # No outcome in common: the list tells x.
    assert not p.keys() & q.keys()


def test_keys_of_dictionaries_become_numbers():
    result = dpaudit.certify(lambda x, rng: {min(rng.geometric(0.5), 2): 1}, "eps=0", [(0, 1)])
    assert (result.verdict, result.pairs[0].exact) == ("kept", 1)


def text_of(x, rng):
    return str(x + rng.geometric(0.5) - rng.geometric(0.5))


@pytest.mark.parametrize(
    "form",
    [
        lambda x, rng: x + int(rng.geometric(0.5)) - int(rng.geometric(0.5)),
        lambda x, rng: int(x + rng.geometric(0.5) - rng.geometric(0.5)),
        lambda x, rng: float(x + rng.geometric(0.5, 1)[0]) - rng.geometric(0.5, 2)[1],
        lambda x, rng: int(np.round(x + rng.geometric(0.5) - rng.geometric(0.5))),
        lambda x, rng: round(x + 1.0 * rng.geometric(0.5) - float(rng.geometric(0.5))),
        lambda x, rng: [int(x) + int(n) for n in [rng.geometric(0.5) - rng.geometric(0.5)]],
        lambda x, rng: (np.array([x, x]) + two_sided(rng, 2)).astype(float)[0].item(),
        lambda x, rng: {"count": int(np.array([x + rng.geometric(0.5)])[0]) - rng.geometric(0.5).__round__()},
    ],
    ids=["each", "the sum", "float", "numpy.round", "round", "in a list", "an array of doubles", "an array of a draw"],
)
def test_whole_numbers_stay_symbols_through_conversions(form):
    # Two-sided geometric noise of ratio 1/2 on a count that moves by 1: the loss is log 2.
    result = dpaudit.certify(form, "eps=0.7", [(0, 1)], seconds=600)
    assert (result.verdict, result.pairs[0].exact) == ("kept", 2)
    assert result.runs < 60


@pytest.mark.parametrize("names", [{}, {"__builtins__": {"int": int}}])
def test_a_function_without_a_source_or_with_builtins_of_its_own_is_not_proved(names):
    exec("def form(x, rng): return int(rng.geometric(0.5) > 1)", names)
    reason = dpaudit.certify(names["form"], "eps=0", [(0, 1)]).pairs[0].reason
    assert "it calls form(), whose source is not at hand (<string>:1)" in reason


def test_the_type_of_an_array_of_symbols_is_that_of_numpys_result():
    # Draws are integers; a selection between them and doubles has doubles, whichever were taken.
    forms = [
        lambda x, rng: np.clip(rng.geometric(0.5, 2), 0.0, 2.0),
        lambda x, rng: np.minimum(rng.geometric(0.5, 2) * 1.0, 2),
        lambda x, rng: np.where(rng.geometric(0.5, 2) > 1, np.array([2, 2]), 1.0),
        lambda x, rng: np.concatenate([np.minimum(rng.geometric(0.5, 2), 2), np.array([])]),
        lambda x, rng: np.maximum(np.minimum(rng.geometric(0.5, 2), 2), 0.5),
    ]
    twice = [
        lambda rng: np.full(2, rng.geometric(0.5)), lambda rng: np.repeat(rng.geometric(0.5), 2),
        lambda rng: np.tile(rng.geometric(0.5), 2), lambda rng: np.zeros(2, dtype=int) + rng.geometric(0.5),
    ]  # fmt: skip
    assert dpaudit.certify(lambda x, rng: np.minimum(twice[x](rng), 3), "eps=0", [(0, 1), (2, 3)]).verdict == "kept"
    result = dpaudit.certify(lambda x, rng: forms[x](rng=rng, x=x), "eps=0", [(0, k) for k in range(1, 5)])
    assert result.verdict == "kept"
    assert dpaudit.certify(lambda x, rng: list(forms[x](x, rng)), "eps=0", [(0, 4)]).verdict == "kept"


def test_an_array_of_symbols_has_the_class_of_an_array():
    def form(x, rng):
        array = rng.geometric(0.5, 2)
        return [
            type(array).__name__,
            array.__class__.__name__,
            isinstance(array, np.ndarray),
            np.where(x < 2, array[0], 3),
        ]

    assert dpaudit.certify(form, "eps=0", [(0, 1)]).verdict == "kept"


def test_a_geometric_draw_that_is_compared_far_out_is_refused_at_once():
    result = dpaudit.certify(lambda x, rng: min(rng.geometric(0.5), 2**40), "eps=1", [(0, 1)])
    assert "so far out" in result.refusal


def test_functions_have_their_own_code_again_after_a_certificate():
    def form(x, rng):
        return int(rng.geometric(0.5)) + float(x * 0)

    before, array = form.__code__, np.array
    assert dpaudit.certify(form, "eps=1", [(0, 1)]).verdict == "kept"
    assert form.__code__ is before and np.array is array


def test_what_ends_a_symbol_is_named_with_its_line():
    runner = Runner(as_subject(text_of), "numpy")
    Exploration(runner, 0).step()
    line = text_of.__code__.co_firstlineno + 1
    said = f"a geometric draw is used as a number (a text, line {line} of {__file__})"
    assert runner.ended == said
    assert _reason(Fraction(1, 8), Fraction(0), runner.ended).endswith(f" Values are run one by one, as {said}.")
