"""Rules on low bits: what a feature promises on its own draws; none is left out that would have been chosen."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dpaudit.doubles import low_bits
from dpaudit.doubles.features import NOT_FINITE
from dpaudit.doubles.locations import Location
from dpaudit.doubles.low_bits import SMALL_SPAN, Table, _counted, _Half, _scored, _Test, fit

TEST = _Test(0.0, 1e-3, 28_000)


def counts_of(kinds, size, rng, contrast):
    """How often each of some codes comes among so many draws of x, and of x_prime."""
    shares = rng.dirichlet(np.ones(kinds) / contrast, size=2)
    counts = [rng.multinomial(size, side).astype(float) for side in shares]
    seen = counts[0] + counts[1] > 0.0
    return counts[0][seen], counts[1][seen]


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("contrast", [0.1, 1.0, 20.0])
def test_no_choice_of_guesses_has_more_merit_than_what_is_promised(contrast, delta, monkeypatch):
    # Of rates as they are here, and distrusted as in a merit: what is promised beyond that would hide a wrong order.
    monkeypatch.setattr(low_bits, "CAUTION", -low_bits.CAUTION)
    rng = np.random.default_rng(20_261_126)
    test, size = _Test(delta, 1e-3, 2_000), 500
    for _ in range(20):
        counts = counts_of(5, size, rng, contrast)
        promise = test.promise(*counts, (size, size))
        for guesses in itertools.product([-1, 0, 1], repeat=len(counts[0])):  # x_prime, nothing or x by each code
            x, x_prime = np.array(guesses) == 1, np.array(guesses) == -1
            sides = float(x.any()) + float(x_prime.any())
            correct = (counts[0][x].sum() + counts[1][x_prime].sum()) / (2.0 * size)
            wrong = (counts[1][x].sum() + counts[0][x_prime].sum()) / (2.0 * size)
            merit = test.merit(np.array([correct]), np.array([wrong]), max(sides, 1.0), 2 * size)
            # sums in another order: rates differ by 1e-16, of which merits make at most 1e-12 (a rate is above 1e-4)
            assert sides == 0.0 or merit[0] <= promise + 1e-9


def test_what_is_promised_is_near_the_merit_where_one_code_tells_all():
    # 40% of x have a code that x_prime never has. On other draws of the same law, 0.4 of x again: the merit of those
    # rates, of which `CAUTION` makes some hundredths more, or less.
    counts = np.array([2_400.0, 3_600.0]), np.array([0.0, 6_000.0])
    scores = [np.repeat([1.0, -1.0], side.astype(int)) for side in counts]
    merit, high, _ = TEST.thresholds(*scores)
    assert high == 1.0
    assert merit < TEST.promise(*counts, (6_000, 6_000)) < merit + 0.1


def drawn(name, at, size, rng):
    if name == "laplace":
        return at + rng.laplace(size=size)
    if name == "logarithm":
        return at + np.log(rng.random(size)) * rng.choice([-1.0, 1.0], size)
    if name == "normal":
        return at + rng.normal(size=size)
    if name == "rounded":
        return at / 3.0 + np.round(rng.laplace(size=size), 5)
    if name == "single":
        return (np.float32(at) + rng.laplace(size=size).astype(np.float32)).astype(float)
    return np.where(rng.random(size) < 0.02, at + rng.normal(size=size), rng.normal(size=size))  # "rarely"


@pytest.mark.parametrize("name", ["laplace", "logarithm", "normal", "rounded", "single", "rarely"])
def test_what_is_left_out_would_not_have_been_chosen(name, monkeypatch):
    def fitted(columns, seed):
        rng = np.random.default_rng([20_261_127, seed])
        sides = [{(k,): drawn(name, at if k == 0 else 0.3, 3_000, rng) for k in range(columns)} for at in (0.0, 1.0)]
        known = {(0,): Location(0.0, 1.0)}
        line = {"epsilon": 1.0, "delta": 0.0, "level": 1e-3, "draws": 14_000}
        return fit(*sides, **line, names=("x", "y"), locations=known)

    cases = [(columns, seed) for columns in (1, 2) for seed in range(3)]
    tables = []
    monkeypatch.setattr(low_bits._Half, "scores", counting(low_bits._Half.scores, tables))
    spared = [fitted(*case) for case in cases]
    few = len(tables)
    monkeypatch.setattr(_Test, "promise", lambda *_: math.inf)  # then none is left out
    full = [fitted(*case) for case in cases]
    assert few < len(tables) - few
    for rule, other in zip(spared, full, strict=True):
        assert rule.merit == other.merit and rule.rule.events() == other.rule.events()


def counting(method, seen):
    def counted(*arguments):
        seen.append(arguments)
        return method(*arguments)

    return counted


@pytest.mark.parametrize(("place", "is_scored"), [(0, True), (1, False)])
def test_an_earlier_candidate_is_scored_if_it_may_come_near_the_best(place, is_scored):
    # Two features of values 0 and 1, the better of which is known to have this merit.
    half = _Half(np.repeat([1.0, 0.0], [400, 600]), np.zeros(1_000))
    table = Table(Identity(), np.array([0, 1]), np.array([-0.5, 6.0]))
    merit = TEST.thresholds(*half.scores(table))[0]
    candidates = [(math.inf, lambda: table)]
    candidates.insert(place, (merit - low_bits.MARGIN / 2.0, lambda: table))
    assert len(_scored(candidates, half, TEST)) == 1 + is_scored


class Identity:
    is_ordered = False

    def codes(self, values):
        return values.astype(np.int64)

    def words(self, ranges):
        return ""


def test_codes_are_counted_alike_with_and_without_a_sort():
    rng = np.random.default_rng(20_261_128)
    codes = rng.integers(-50, 50, 900)
    few = _counted(codes, 400)
    many = _counted(np.append(codes, [NOT_FINITE, NOT_FINITE]), 400)  # a span above SMALL_SPAN
    assert NOT_FINITE > SMALL_SPAN
    for one, other, last in zip(few, many, (NOT_FINITE, 0, 2), strict=True):
        assert np.append(one, last).tolist() == other.tolist()
    assert few[1].sum() == 400 and few[2].sum() == 500
    assert few[1].tolist() == [np.sum(codes[:400] == code) for code in few[0]]
