"""Sound mechanisms in awkward style are not accused, unrecorded randomness is told, and faulty ones are proved.

Each sound mechanism keeps its claim for its pair, by sensitivity or as said beside it. None has an error rate: runs are
the same for a seed.
"""

from __future__ import annotations

import collections
import functools
import gc
import itertools
import math
import os
import random
import time
import uuid
from pathlib import Path

import numpy as np
import pytest

import dpaudit

try:  # here, and not in a run: an import reads files
    import pandas
except ImportError:
    pandas = None

DATA = ([0, 1], [0, 1, 2])  # a record of category 2 is added
BITS = ([0], [1])
TRUTH = math.e / (1.0 + math.e)  # of randomised response at epsilon 1
P = 1.0 - math.exp(-1.0)
STREAM = np.random.default_rng(7)


def bars(x):
    return np.bincount(x, minlength=4)


def in_place(x, rng):
    counts = bars(x).astype(float)
    counts += rng.laplace(size=4)
    return counts


def add_to(values, noise):
    values += noise


def in_place_elsewhere_and_rarely_seen(x, rng):
    total = np.array([40.0 * len(x)])
    add_to(total, rng.laplace(scale=40.0, size=1))
    return bool(total[0] > 100.0)


def out_rarely_seen(x, rng):
    total = np.array([40.0 * len(x)])
    np.add(total, rng.laplace(scale=40.0, size=1), out=total)
    return bool(total[0] > 100.0)


def out_in_another_array(x, rng):
    found = np.empty(4)
    np.add(bars(x), rng.laplace(size=4), out=found)
    return found.tolist()


def clip_out(x, rng):
    counts = bars(x) + rng.laplace(size=4)
    np.clip(counts, 0.0, None, out=counts)
    return counts


def largest_kept_in_its_dimension(x, rng):
    counts = (bars(x) + rng.laplace(size=4)).reshape(2, 2)
    return counts - np.max(counts, axis=1, keepdims=True)


def of_a_type_rarely_seen(x, rng):
    total = 40.0 * len(x) + rng.laplace(scale=40.0)
    if not isinstance(total, int | float):
        total = 40.0 * len(x)
    return bool(total > 100.0)


def of_a_dtype_rarely_seen(x, rng):
    totals = 40.0 * np.array([len(x)]) + rng.laplace(scale=40.0, size=1)
    return bool((totals if totals.dtype.kind == "f" else 40.0 * np.array([len(x)]))[0] > 100.0)


def series(x, rng):
    counts = pandas.Series(x, dtype=float).value_counts().reindex(range(4), fill_value=0)
    return (counts + rng.laplace(size=4)).clip(lower=0).to_dict()


def groups(x, rng):
    table = pandas.DataFrame({"kind": x, "one": 1.0})
    totals = table.groupby("kind")["one"].sum().reindex(range(4), fill_value=0.0)
    totals += rng.laplace(size=4)
    return totals.to_numpy()


class Stored:
    """Noise from a generator that it has had from the start."""

    def __init__(self, make, draw):
        self.stream, self.draw = make(), draw

    def __call__(self, x):
        return len(x) + self.draw(self.stream)


def noise_from_a_python_generator(x, rng):
    noise = (rng.laplace() for _ in itertools.count())
    return [count + next(noise) for count in bars(x)]


def two_phases(x, rng):
    count = len(x) + rng.laplace(scale=2.0)
    return None if count < 1.5 else (count, len(x) + rng.laplace(scale=2.0))


def least_squares(x, rng):
    workload = np.vstack([np.eye(4), np.ones(4)])
    return np.linalg.lstsq(workload, workload @ bars(x) + rng.laplace(scale=2.0, size=5), rcond=None)[0]


def counter(x, rng):
    counts = collections.Counter(x)
    return {kind: counts[kind] + rng.laplace() for kind in range(4)}


def own_formula(x, rng):
    u = rng.random() - 0.5
    return len(x) - math.copysign(1.0, u) * math.log(1.0 - 2.0 * abs(u))


def filled_in_a_loop(x, rng):
    found = np.zeros(4)
    for k, count in enumerate(bars(x)):
        found[k] = count + rng.laplace()
    return found


SOUND = {f.__name__: (f, DATA) for f in (
    in_place, in_place_elsewhere_and_rarely_seen, out_rarely_seen, out_in_another_array, clip_out,
    largest_kept_in_its_dimension, of_a_type_rarely_seen, of_a_dtype_rarely_seen, series, groups,
    noise_from_a_python_generator, two_phases, least_squares, counter, own_formula, filled_in_a_loop,
)}  # fmt: skip
SOUND |= {
    "global stream": (lambda x: len(x) + STREAM.laplace(), DATA),
    "sorted bars": (lambda x, rng: np.sort(bars(x) + rng.laplace(size=4)), DATA),
    "clamped geometric": (lambda x, rng: int(np.clip(len(x) + rng.geometric(P) - rng.geometric(P), 0, 10)), DATA),
    "sign and size": (lambda x, rng: len(x) + np.sign(rng.random() - 0.5) * rng.exponential(), DATA),
    "response": (lambda x, rng: [bit if rng.random() < TRUTH else 1 - bit for bit in x], BITS),
    "response of all": (lambda x, rng: np.where(rng.random(len(x)) < 1.0 - TRUTH, 1 - np.array(x), x), BITS),
}
SOUND["a stored generator"] = Stored(np.random.default_rng, lambda stream: stream.laplace()), DATA
SOUND["a stored random.Random"] = Stored(random.Random, lambda s: s.expovariate(1.0) - s.expovariate(1.0)), DATA


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_mechanism_in_awkward_style_is_not_accused(name):
    if name in ("series", "groups") and pandas is None:
        pytest.skip("pandas is not installed")
    mechanism, pair = SOUND[name]
    result = dpaudit.record_noise(mechanism, [pair], "eps=1", seed=1)
    assert result.grade != "proved", result.pairs[0].statement


def told_by(share):
    """A bit that is turned with probability 0.001 by a number in [0, 1) that is not recorded: epsilon log 999."""

    def mechanism(x, rng):
        bit = len(x) % 2
        return [1 - bit if share() < 0.001 else bit, rng.laplace()]

    return mechanism


def as_share(four_bytes):
    return int.from_bytes(four_bytes, "big") / 2**32


def of_a_file_of_the_system():
    with open("/dev/urandom", "rb") as file:
        return as_share(file.read(4))


def of_the_number_of_a_file():
    number = os.open("/dev/urandom", os.O_RDONLY)
    try:
        return as_share(os.read(number, 4))
    finally:
        os.close(number)


def of_a_default(draw=os.urandom):
    return as_share(draw(4))


FOUR_BYTES = functools.partial(os.urandom, 4)
TAKEN = {"urandom": os.urandom}
UNRECORDED = {
    "os.urandom": lambda: as_share(os.urandom(4)),
    "in a dictionary": lambda: as_share(TAKEN["urandom"](4)),
    "a default": of_a_default,
    "a partial function": lambda: as_share(FOUR_BYTES()),
    "uuid": lambda: as_share(uuid.uuid4().bytes[:4]),
    "the clock": lambda: time.time_ns() % 1_000 / 1_000 + 0.001,
}
if os.path.exists("/dev/urandom"):
    OPENED = open("/dev/urandom", "rb")  # noqa: SIM115
    UNRECORDED |= {
        "a device": of_a_file_of_the_system,
        "a device by its number": of_the_number_of_a_file,
        "a device by its path": lambda: as_share(_first_bytes(Path("/dev/urandom"))),
        "a device that is gone through": lambda: as_share(_first_line(Path("/dev/urandom"))[:4]),
        "a device that is open": lambda: as_share(OPENED.read(4)),
        "a device read by numpy": lambda: np.fromfile("/dev/urandom", dtype=np.uint32, count=1)[0] / 2**32,
    }


def _first_line(path):
    with path.open("rb", buffering=0) as file:
        return next(iter(file))


def _first_bytes(path):
    with path.open("rb") as file:
        return file.read(4)


@pytest.mark.parametrize("name", UNRECORDED)
def test_randomness_beside_recorded_noise_is_told_and_never_taken_for_none(name):
    result = dpaudit.record_noise(told_by(UNRECORDED[name]), [DATA], "eps=7", seed=1)
    assert result.grade != "proved"
    assert "randomness that is not recorded" in result.pairs[0].unproved
    assert "not recorded" in result.side_finding().summary


def test_a_clock_that_a_callback_of_the_garbage_collector_reads_is_not_the_mechanisms():
    def noted(phase, info):
        time.perf_counter()

    def count(x, rng):
        gc.collect(0)
        return len(x) + rng.laplace(scale=0.5)

    gc.callbacks.append(noted)
    try:
        assert dpaudit.record_noise(count, [DATA], "eps=1", seed=1).grade == "proved"
    finally:
        gc.callbacks.remove(noted)


# Faulty mechanisms in the same styles, each with its mended twin.


def of_series(shared):
    def noisy(x, rng):
        counts = pandas.Series(x, dtype=float).value_counts().reindex(range(4), fill_value=0)
        return (counts + (rng.laplace() if shared else rng.laplace(size=4))).tolist()

    return noisy


def of_generator(advances):
    def noisy(x, rng):
        noise = iter(rng.laplace(size=4)) if advances else itertools.repeat(rng.laplace())
        return [count + next(noise) for count in bars(x)]

    return noisy


def of_rest(has_noise):
    def noisy(x, rng):
        noisy_count = len(x) + rng.laplace(scale=2.0)
        return {"count": noisy_count, "mean": sum(x) / len(x) + (rng.laplace(scale=4.0) if has_noise else 0.0)}

    return noisy


def of_branch(checks_noisy):
    def noisy(x, rng):
        noise = rng.laplace(scale=2.0)
        if (len(x) + noise if checks_noisy else len(x)) < 2.5:
            return 0.0
        return len(x) + rng.laplace(scale=2.0)

    return noisy


TWINS = {  # faulty, mended
    "one noise for a series": (of_series(True), of_series(False)),
    "keys of the data": (
        lambda x, rng: {kind: x.count(kind) + rng.laplace() for kind in sorted(collections.Counter(x))},
        lambda x, rng: {kind: x.count(kind) + rng.laplace() for kind in range(4)},
    ),
    "a generator that stands still": (of_generator(False), of_generator(True)),
    "a mean without noise": (of_rest(False), of_rest(True)),
    "a branch on the data": (of_branch(False), of_branch(True)),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_faulty_mechanism_is_proved_and_its_mended_twin_is_not_accused(name):
    if "series" in name and pandas is None:
        pytest.skip("pandas is not installed")
    faulty, mended = (dpaudit.record_noise(one, [DATA], "eps=1", seed=1) for one in TWINS[name])
    assert faulty.grade == "proved"
    assert mended.grade != "proved", mended.pairs[0].statement
