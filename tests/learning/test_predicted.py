"""Scores of what learners propose: they are read back, they see one output at a time, and audits find planted leaks.

Audits run on fixed seeds. A miss is measured beside each assertion, on seeds that are not the test's.
"""

import json

import numpy as np
import pytest

import dpaudit
from dpaudit.learning.fitted_partitions import fit_partitions
from dpaudit.learning.hints import Hints
from dpaudit.learning.predicted import learned_scores
from dpaudit.learning.scores import score_from_dict
from dpaudit.reading.outcomes import read_outputs

POINTS = (0.123, 0.456), (0.7, -0.2)


def narrow(x, size, rng):
    """Laplace noise; of x = 1 one in fifty outputs lies within a ten-thousandth."""
    numbers = x + rng.laplace(size=size)
    is_inside = rng.random(size) < 0.02 * x
    numbers[is_inside] = 0.3 + 1e-4 * rng.random(np.count_nonzero(is_inside))
    return numbers


def grid(x, size, rng):
    """A place moved by a radius in whole hundredths."""
    angle, radius = 7.0 * rng.random(size), rng.integers(1, 500, size=size) / 100
    return np.array(x) + np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def even(x, size, rng):
    """Two counts, of which the second is even on one input, and odd on the other."""
    counts = np.rint(rng.laplace(scale=50.0, size=(size, 2))).astype(int)
    counts[:, 1] = 2 * counts[:, 1] + x
    return counts


def ordered(x, size, rng):
    """A dictionary of noisy counts in the order of the true ones."""
    true = {"a": 30 + x, "b": 30.5, "c": 10}
    keys = sorted(true, key=lambda key: -true[key])
    return [{key: true[key] + float(rng.laplace()) for key in keys} for _ in range(size)]


LEAKS = {"narrow": (narrow, (1, 0)), "grid": (grid, POINTS), "even": (even, (1, 0)), "ordered": (ordered, (1, 0))}


class Leak:
    def __init__(self, name):
        self.law = LEAKS[name][0]

    def sample(self, data, size, rng):
        return self.law(data, size, rng)


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
@pytest.mark.parametrize("name", LEAKS)
def test_leaks_that_no_threshold_sees_are_found(name, mode):
    # At 20,000 labelled draws. (In fixed mode 38 of 40 narrow ones were found at 10,000 already, on other seeds.)
    samples = 10_000 if name != "ordered" else 1_000
    result = dpaudit.audit(Leak(name), "eps=1", [LEAKS[name][1]], samples=samples, mode=mode, seed=20_261_125)
    assert result.findings[0].verdict == "violated"


def batches(name, size=1_500, seed=1):
    law, pair = LEAKS[name]
    return tuple(read_outputs(law(x, size, np.random.default_rng(seed + k)), size) for k, x in enumerate(pair))


@pytest.mark.parametrize("name", ["narrow", "grid", "even"])
def test_learned_scores_are_read_back_and_see_one_output_at_a_time(name):
    first, second = batches(name)
    pair = LEAKS[name][1]
    scores = list(learned_scores(first, second, Hints(None, pair).points(first.numbers.shape[1])))
    assert scores
    for score in scores:
        again = score_from_dict(json.loads(json.dumps(score.to_dict())), None, *pair)
        together = again(first)
        assert together.tobytes() == score(first).tobytes()
        alone = np.concatenate([again(first.rows(slice(k, k + 1))) for k in range(50)])
        assert together[:50].tobytes() == alone.tobytes()
        assert score.describe()


def test_smooth_laws_have_no_learned_partitions():
    # By chance one sample in some twenty has one: of 12 four have some with probability below 0.01.
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        first, second = (read_outputs(rng.laplace(size=1_000) + shift, 1_000) for shift in (1.0, 0.0))
        found += any(part.is_learned for part in fit_partitions(first, second))
    assert found <= 3
