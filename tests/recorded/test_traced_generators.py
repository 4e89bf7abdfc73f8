"""A generator with a log: the same values as numpy's own, and a log of what was asked."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from dpaudit.symbolic.generators import Log, NumpyRng, words_between

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


def logged():
    log = Log(np.random.PCG64(3))
    return NumpyRng(log), log


def test_every_method_of_the_generator_is_recorded():
    assert set(METHODS) - {"bit_generator", "spawn"} <= set(ASKED)


@pytest.mark.parametrize("method", [name for name in METHODS if name in ASKED and name != "shuffle"])
def test_values_and_stream_are_the_generators_own(method):
    (recorded, log), plain = logged(), np.random.Generator(np.random.PCG64(3))
    assert np.array_equal(getattr(recorded, method)(*ASKED[method]), getattr(plain, method)(*ASKED[method]))
    assert log._stream.state == plain.bit_generator.state
    # One call, also where one method asks another.
    assert [call.primitive.removeprefix("numpy ") for call in log.calls] == [method]


def test_shuffling_spawning_and_keywords_are_the_generators_own():
    (recorded, log), plain = logged(), np.random.Generator(np.random.PCG64(3))
    first, second = np.arange(9), np.arange(9)
    recorded.shuffle(first)
    plain.shuffle(second)
    assert first.tolist() == second.tolist()
    for child, other in zip(recorded.spawn(2), plain.spawn(2), strict=True):
        assert child.normal(size=(2, 3), loc=5.0).tolist() == other.normal(size=(2, 3), loc=5.0).tolist()
    assert [call.primitive.removeprefix("numpy ") for call in log.calls] == ["shuffle", "spawn", "normal", "normal"]
    assert np.random.default_rng(recorded) is recorded


def test_copies_and_the_handed_out_stream_are_noted():
    recorded, log = logged()
    assert copy.deepcopy(recorded).random() == pickle.loads(pickle.dumps(recorded)).random()
    assert [call.primitive.removeprefix("numpy ") for call in log.calls] == ["copy", "copy"] and not log.is_open
    recorded.bit_generator.random_raw()
    assert log.is_open


def test_the_scale_of_the_noise_is_a_part_of_a_call_and_its_centre_is_not():
    recorded, log = logged()
    for loc, scale in ((0.0, 1.0), (5.0, 1.0), (0.0, 2.0)):
        recorded.laplace(loc, scale, size=2)
    recorded.uniform(0.0, 1.0)
    recorded.uniform(4.0, 5.0)
    recorded.uniform(4.0, 6.0)
    noise = [call.parameters for call in log.calls]
    assert noise[0] == noise[1] != noise[2] and noise[3] == noise[4] != noise[5]
    assert str(log.calls[2]) == "numpy laplace(scale=2) [2]"


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 1000, 2**20 + 5])
def test_words_are_counted(steps):
    stream = np.random.PCG64(9)
    before = stream.state
    stream.advance(steps)
    assert words_between(before, stream.state) == steps


def test_calls_of_libraries_are_noted_with_keywords_and_hand_on_what_cannot_be_copied():
    from dpaudit.symbolic.libraries import _noting, _of_measurement, _of_mechanism
    from dpaudit.symbolic.tape import Tape

    class Output:
        def __copy__(self):
            raise TypeError("an output that cannot be copied")

    given = Output()
    for shown in (_of_measurement, _of_mechanism):
        call = _noting(Tape(1, 0), "a library", lambda *args, **keywords: given, shown)
        assert call(object(), arg=1.0) is given
