"""The recording generator: the same values as numpy's own, a log of what was asked, and fixed values for noise."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dpaudit.symbolic import faces as recording
from dpaudit.symbolic.faces import EndlessLoop, RecordingGenerator, words_between

ASKED = {
    "beta": (2.0, 3.0), "binomial": (10, 0.3), "bytes": (5,), "chisquare": (3.0,), "choice": ([1, 2, 3],),
    "dirichlet": ([1.0, 2.0],), "exponential": (2.0,), "f": (3.0, 4.0), "gamma": (2.0, 3.0), "geometric": (0.3,),
    "gumbel": (1.0, 2.0), "hypergeometric": (5, 6, 4), "integers": (10,), "laplace": (1.0, 2.0),
    "logistic": (1.0, 2.0), "lognormal": (1.0, 0.5), "logseries": (0.4,), "multinomial": (5, [0.2, 0.8]),
    "multivariate_hypergeometric": ([3, 4], 5), "multivariate_normal": ([0.0, 1.0], [[2.0, 0.0], [0.0, 1.0]]),
    "negative_binomial": (3, 0.4), "noncentral_chisquare": (3.0, 1.0), "noncentral_f": (3.0, 4.0, 1.0),
    "normal": (1.0, 2.0), "pareto": (3.0,), "permutation": (6,), "permuted": ([1, 2, 3, 4],), "poisson": (3.0,),
    "power": (2.0,), "random": (), "rayleigh": (2.0,), "shuffle": (), "standard_cauchy": (), "standard_exponential": (),
    "standard_gamma": (2.0,), "standard_normal": (), "standard_t": (5.0,), "triangular": (0.0, 1.0, 2.0),
    "uniform": (1.0, 3.0), "vonmises": (0.0, 2.0), "wald": (1.0, 2.0), "weibull": (2.0,), "zipf": (2.5,),
}  # fmt: skip
METHODS = [name for name in dir(np.random.Generator) if not name.startswith("_")]


def test_every_method_of_the_generator_is_recorded():
    assert set(METHODS) - {"bit_generator", "spawn"} <= set(ASKED)


@pytest.mark.parametrize("method", [name for name in METHODS if name in ASKED and name != "shuffle"])
def test_values_and_stream_are_the_generators_own(method):
    recorded, plain = RecordingGenerator(np.random.PCG64(3)), np.random.Generator(np.random.PCG64(3))
    assert np.array_equal(getattr(recorded, method)(*ASKED[method]), getattr(plain, method)(*ASKED[method]))
    assert recorded.state == plain.bit_generator.state
    assert [call.method for call in recorded.log.calls] == [method]  # one call, also where one method asks another


def test_shuffling_spawning_and_keywords_are_the_generators_own():
    recorded, plain = RecordingGenerator(np.random.PCG64(3)), np.random.Generator(np.random.PCG64(3))
    first, second = np.arange(9), np.arange(9)
    recorded.shuffle(first)
    plain.shuffle(second)
    assert first.tolist() == second.tolist()
    for child, other in zip(recorded.spawn(2), plain.spawn(2), strict=True):
        assert child.normal(size=(2, 3), loc=5.0).tolist() == other.normal(size=(2, 3), loc=5.0).tolist()
    assert [call.method for call in recorded.log.calls] == ["shuffle", "spawn", "normal", "normal"]
    assert np.random.default_rng(recorded) is recorded


def test_copies_and_the_handed_out_stream_are_noted():
    recorded = RecordingGenerator(np.random.PCG64(3))
    assert copy.deepcopy(recorded).random() == pickle.loads(pickle.dumps(recorded)).random()
    assert [call.method for call in recorded.log.calls] == ["copy", "copy"] and not recorded.log.is_open
    recorded.bit_generator.random_raw()
    assert recorded.log.is_open


def test_the_scale_of_the_noise_is_a_part_of_a_call_and_its_centre_is_not():
    recorded = RecordingGenerator(np.random.PCG64(3))
    for loc, scale in ((0.0, 1.0), (5.0, 1.0), (0.0, 2.0)):
        recorded.laplace(loc, scale, size=2)
    recorded.uniform(0.0, 1.0)
    recorded.uniform(4.0, 5.0)
    recorded.uniform(4.0, 6.0)
    noise = [call.noise for call in recorded.log.calls]
    assert noise[0] == noise[1] != noise[2] and noise[3] == noise[4] != noise[5]
    assert str(recorded.log.calls[2]) == "laplace(scale=2) of shape (2,)"


def test_constant_noise_has_the_centre_and_moves_the_stream_all_the_same():
    quiet, plain = RecordingGenerator(np.random.PCG64(3), constant=True), np.random.Generator(np.random.PCG64(3))
    assert quiet.laplace([1.0, 2.0], 3.0).tolist() == [1.0, 2.0]
    given = np.zeros(2)
    assert quiet.standard_normal(out=given) is given and given.tolist() == [0.0, 0.0]
    assert quiet.random() == 0.5 and quiet.uniform(2.0, 6.0, size=1).tolist() == [4.0]
    plain.laplace([1.0, 2.0], 3.0), plain.standard_normal(2), plain.random(), plain.uniform(size=1)
    assert quiet.state == plain.bit_generator.state and quiet.log.is_constant
    quiet.permutation(3)
    assert not quiet.log.is_constant


def test_a_loop_that_waits_for_other_noise_is_ended(monkeypatch):
    monkeypatch.setattr(recording, "MOST_CALLS", 10)
    quiet = RecordingGenerator(np.random.PCG64(3), constant=True)
    with pytest.raises(EndlessLoop):
        while quiet.normal() == 0.0:
            pass


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 1000, 2**20 + 5])
def test_words_are_counted(steps):
    stream = np.random.PCG64(9)
    before = stream.state
    stream.advance(steps)
    assert words_between(before, stream.state) == steps
