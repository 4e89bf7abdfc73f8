"""Trees on counts take memory in their cells, and not in how many draws were counted."""

import tracemalloc

import numpy as np

from dpaudit.learning import rank_tree
from dpaudit.learning.rank_tree import SIZES, Forest, Ordered, pruned_trees


def test_a_tree_on_many_counted_draws_takes_no_memory_for_each_of_them():
    counts = np.full((2, 256), 40_000)  # 20 million draws; a table of them all took 2 GiB
    tracemalloc.start()
    tree = pruned_trees(Forest([Ordered.of_counts(counts)])).steps(0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert np.allclose(tree.probabilities, 0.5, atol=1e-3)
    assert peak < 64 << 20


def test_counts_beyond_the_table_are_the_same_numbers():
    counts = np.arange(0, SIZES.tabled, 997)
    beyond = np.append(counts, SIZES.tabled)
    for strength in SIZES.strengths:
        assert np.array_equal(
            rank_tree._log_rising(strength, counts), rank_tree._log_rising(strength, beyond)[: len(counts)]
        )
