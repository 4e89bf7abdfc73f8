"""How long releases on the domains of the experiments take: 16 binary attributes, and the 23 bits of Adult.

Times are processor seconds of this process; data are synthetic, of the same domain (the noise does not depend on them).
"""

import time

import numpy as np
import pytest

from dpaudit.privacy.claims import PureDP
from dpaudit_mechanisms.datacubes import (
    DatacubeRelease,
    Domain,
    FourierStrategy,
    HaarStrategy,
    SketchStrategy,
    all_and_half,
    base_counts,
    clusters,
    hierarchy,
    workload_itself,
)

NLTCS = Domain.binary(16)
RECORDS = {"nltcs": 21_576, "adult": 32_561}
STRATEGIES = {
    "base counts": lambda workload: base_counts(workload.domain),
    "workload": workload_itself,
    "fourier": FourierStrategy,
    "clusters": clusters,
    "hierarchy": lambda workload: hierarchy(workload.domain),
    "wavelets": lambda workload: HaarStrategy(workload.domain),
}


def data_vector(domain, records):
    rng = np.random.default_rng(1)
    return domain.histogram(np.column_stack([rng.integers(size, size=records) for size in domain.sizes]))


@pytest.mark.long
@pytest.mark.claim("DC-E3", "DC-S14")
@pytest.mark.parametrize("name", [*STRATEGIES, "sketch"])
def test_a_release_of_q_2_star_over_16_bits_takes_less_than_a_second_and_clusters_less_than_five(name):
    data, rng = data_vector(NLTCS, RECORDS["nltcs"]), np.random.default_rng(2)
    workload = all_and_half(NLTCS, 2)
    if name == "sketch":
        release = DatacubeRelease(workload, SketchStrategy(NLTCS, 8192, 20, seed=3), PureDP(1.0), "uniform")
        release.sample(data, 1, rng)  # the rank of the hash functions is looked at once
        start = time.process_time()
    else:
        start = time.process_time()
        release = DatacubeRelease(workload, STRATEGIES[name](workload), PureDP(1.0))
    answers = release.sample(data, 1, rng)
    taken = time.process_time() - start
    assert answers.shape == (1, workload.queries) and np.isfinite(answers).all()
    assert taken < (5.0 if name == "clusters" else 1.0)
