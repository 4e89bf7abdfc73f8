"""Trees on counts take memory in their cells, and not in how many draws were counted."""

import tracemalloc

import numpy as np

from dpaudit.learning.rank_tree import Forest, Ordered, pruned_trees


def test_a_tree_on_many_counted_draws_takes_no_memory_for_each_of_them():
    counts = np.full((2, 256), 40_000)  # 20 million draws; a table of them all took 2 GiB
    tracemalloc.start()
    tree = pruned_trees(Forest([Ordered.of_counts(counts)])).steps(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.allclose(tree.probabilities, 0.5, atol=1e-3)
    assert peak < 64 << 20
