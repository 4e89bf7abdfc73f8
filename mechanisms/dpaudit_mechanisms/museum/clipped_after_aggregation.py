"""The server clips the average of the clients, not each client."""

import numpy as np

from dpaudit.domains import DatasetDomain

CLIENTS = 4  # public


def faulty(data, size, rng):
    average = np.clip(np.mean(data), -1.0, 1.0)
    return average + rng.normal(scale=1.0 / CLIENTS, size=size)


def mended(data, size, rng):
    average = np.mean(np.clip(data, -1.0, 1.0))
    return average + rng.normal(scale=2.0 / CLIENTS, size=size)  # a replaced client moves it by 2 / CLIENTS


EXHIBIT = dict(
    kind="local and federated",
    source="raptor7197/caamas#36 (server)",
    wrong="The global norm of the aggregated parameters is clipped, with noise as if each client had been.",
    claim="mu=1",
    domain=DatasetDomain(
        values=(-8.0, -1.0, 0.0, 1.0, 8.0), largest=CLIENTS, smallest=CLIENTS, adjacency="replace_one"
    ),
    pair=([8.0, -8.0, 0.0, 0.0], [-8.0, -8.0, 0.0, 0.0]),
)
