"""The experiment on distance queries finds the rates."""

import numpy as np
import pytest
from support.experiments import quick

from dpaudit.reproductions.reproduction import Options
from dpaudit_mechanisms.reproductions import distance_queries, distance_workloads


@pytest.mark.claim("MQ-T1")
def test_errors_keep_what_is_promised_and_the_printed_alpha_is_above_the_diameter():
    for mode in ("pure", "approximate"):
        part = quick("distance-queries").numbers["exponents"][mode]
        # Each run misses its alpha with probability 0.05; of 24 runs 12 miss with a probability below 1e-9.
        assert part["within"] > 0.5 and part["errors"] == sorted(part["errors"], reverse=True)
        assert part["printed"][0] > 1.0 > part["promised"][0]
        assert abs(part["promised_slope"] - distance_queries.PRINTED[mode]) < 0.03


@pytest.mark.claim("MQ-T1", "MQ-C3")
@pytest.mark.slow
def test_measured_exponents_are_the_printed_ones_up_to_logarithms():
    """What is deterministic in alpha dominates: slopes of single repetitions differ by 0.003, and 0.05 is far off."""
    found = distance_queries._exponents(Options(), np.random.default_rng(20_261_651), runs=2, count=1500)
    for mode, printed in distance_queries.PRINTED.items():
        assert abs(found[mode]["without_logs"][0] - printed) < 0.05
    assert found["approximate"]["interval"][1] > found["pure"]["interval"][2]


def test_edit_distances_are_a_metric_with_known_values():
    names = ("", "a", "ab", "ba", "Austin", "Boston", "Houston")
    table = distance_workloads.edit_distances(names, names) * 7
    assert distance_workloads.edit_distance("kitten", "sitting") == 3
    assert (table == table.T).all() and (np.diag(table) == 0).all()
    assert (table[:, None] <= table[:, :, None] + table[None] + 1e-9).all()
