"""Texts take memory for a part of their characters at a time, and read the same in whatever company."""

import tracemalloc

import numpy as np

from dpaudit.features.outcomes import read_outputs
from dpaudit.features.reader import Reader


def test_long_texts_are_looked_at_in_parts():
    rng = np.random.default_rng(1)
    sides = [read_outputs([f"{rng.random():.6f}" + "a" * 10_000 for _ in range(400)], 400) for _ in range(2)]
    tracemalloc.start()
    reader = Reader.learn(sides, ())
    matrix = reader(sides[0])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 120 << 20  # 8 million characters took 40 bytes each
    alone = np.concatenate([reader(sides[0].rows(slice(k, k + 1))) for k in range(0, 400, 40)])
    assert np.array_equal(matrix[::40], alone, equal_nan=True)
