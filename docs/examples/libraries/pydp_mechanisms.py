"""Mechanisms and algorithms of Google's library, by python-dp, audited against their epsilon.

dpaudit audit docs/examples/libraries/pydp_mechanisms.py:laplace
python docs/examples/libraries/pydp_mechanisms.py
"""

from __future__ import annotations

from pydp.algorithms.laplacian import BoundedSum, Count, Median
from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism
from pydp.algorithms.partition_selection import create_truncated_geometric_partition_strategy

import dpaudit
from dpaudit.subjects.libraries import pydp as adapter
from dpaudit.subjects.libraries import with_pairs

laplace = with_pairs(adapter.subject(LaplaceMechanism(1.0, 1.0)), [(0.0, 1.0)])
gaussian = with_pairs(adapter.subject(GaussianMechanism(1.0, 1e-5, 1.0)), [(0.0, 1.0)])
geometric = with_pairs(adapter.subject(LaplaceMechanism(1.0, 1.0), name="whole Laplace noise"), [(0, 1)])
bounded_sum = with_pairs(
    adapter.subject(BoundedSum(epsilon=1.0, lower_bound=0.0, upper_bound=1.0, dtype="float")), [([0.5], [0.5, 1.0])]
)
count = with_pairs(adapter.subject(Count(epsilon=1.0, dtype="int")), [([1], [1, 1])])
median = with_pairs(
    adapter.subject(Median(epsilon=1.0, lower_bound=0, upper_bound=8, dtype="int")), [([1, 1, 1], [1, 1, 1, 7])]
)
partitions = with_pairs(
    adapter.subject(create_truncated_geometric_partition_strategy(1.0, 1e-2, 1), claim="eps=1,delta=0.01"), [(1, 2)]
)

SUBJECTS = {
    "Laplace": laplace,
    "Gaussian": gaussian,
    "geometric (Laplace on integers)": geometric,
    "BoundedSum": bounded_sum,
    "Count": count,
    "Median": median,
    "partition selection": partitions,
}

if __name__ == "__main__":
    for name, subject in SUBJECTS.items():
        result = dpaudit.audit(subject, samples=5_000, seed=1)
        print(f"{name}: claim {result.claim}, {result.verdict}, {result.samples / result.seconds:,.0f} runs/s")
