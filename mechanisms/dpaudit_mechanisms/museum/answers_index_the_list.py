"""Randomised response whose loop takes the answers for places in the list."""

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit_mechanisms.museum.releases import published


def faulty(data, size, rng):
    said = np.tile(np.asarray(data, dtype=int), (size, 1))
    for place in sorted({int(answer) for answer in data}):  # 0 and 1 only: all other answers stay as they are
        said[:, place] = (rng.random(size) < 0.25).astype(int)
    return said


def mended(data, size, rng):
    answers = np.asarray(data, dtype=int)
    lies = rng.random((size, len(answers))) < 0.25
    return np.where(lies, 1 - answers, answers)


EXHIBIT = dict(
    kind="local and federated",
    source="DiffPriv 1.0.3, diff.randresponse (found by this museum)",
    wrong="The loop runs over the answers and writes at the place that the answer names: all answers from the third on "
    "are released as they are.",
    claim="eps=1.1",  # of two coins: ln 3; no other claim with a finite epsilon is kept
    domain=DatasetDomain(values=(0, 1), largest=6, smallest=2, adjacency="replace_one"),
    pair=([1, 0, 0], [1, 0, 1]),
    releases=(published("diffpriv_response", "DiffPriv.diff.randresponse(answers)"),),
)
