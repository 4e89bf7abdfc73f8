"""Two samplers are one law up to a tolerance, or they are not."""

import numpy as np
import pytest

import dpaudit
from dpaudit.subjects.samplers import samplers


def laplace(size, rng):
    return rng.laplace(size=size)


def by_exponentials(size, rng):
    return rng.exponential(size=size) * rng.choice([-1, 1], size=size)


def one_laplace(rng):
    return rng.laplace()


def uniform(high):
    return lambda size, rng: rng.integers(high, size=size)


def compared(first, second, tolerance, **options):
    given = {"samples": 4_000, "seed": 5, "mode": "fixed", "floating_point": False, "severity": False}
    return dpaudit.same_distribution(first, second, tolerance, **{**given, **options})


@pytest.mark.parametrize("second", [by_exponentials, one_laplace])
def test_two_ways_to_draw_one_law(second):
    # Equal laws: "violated" has a probability of 5% at most, and the seed is fixed.
    result = compared(laplace, second, "eps=0,delta=0.05", samples=20_000)
    assert result.verdict == "not_refuted" and "delta=0.05" in result.claim


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_laws_further_apart_than_the_tolerance(mode):
    # The total variation of a uniform of 4 and one of 5 values is .2: an event of probability 0 against .2.
    result = compared(uniform(4), uniform(5), "eps=0,delta=0.1", mode=mode)
    assert result.verdict == "violated" and "4" in result.findings[0].witness.description


def test_laws_as_far_apart_as_the_tolerance_are_seldom_told_apart():
    verdicts = [compared(uniform(4), uniform(5), "eps=0,delta=0.2", samples=500, seed=k).verdict for k in range(40)]
    # On the boundary each has a probability of at most 5%: 6 or more of 40 have one of at most .014.
    assert verdicts.count("violated") <= 5


def test_equality_is_asked_in_both_orders():
    narrow, wide = (lambda rng: int(rng.random() < 0.001)), (lambda rng: int(rng.random() < 0.1))
    for pair in ((narrow, wide), (wide, narrow)):
        assert compared(*pair, "eps=1", samples=2_000).verdict == "violated"


def test_a_fixture_takes_them_as_a_mechanism():
    both = samplers(laplace, one_laplace, "eps=0,delta=0.1")
    assert not both.is_vectorised and both.replayable and both.name == "laplace and one_laplace"
    assert both.fingerprint != samplers(by_exponentials, one_laplace, "eps=0,delta=0.1").fingerprint
    assert both.fingerprint == samplers(laplace, one_laplace, "eps=0,delta=0.1").fingerprint
    assert len(both.sample("second", 3, np.random.default_rng(1))) == 3
    with pytest.raises(dpaudit.UsageError, match=r"samplers must be functions of rng, size or nothing, got 3 "):
        samplers(laplace, 3)
