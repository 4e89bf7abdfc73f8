"""A search for counterexamples to the theorems and lemmas of the papers that are verified and have finite instances.

A target (`instances.Target`) is a statement with a draw of instances, numbers of [0, 1], and a quotient: what the
statement bounds, over its bound (for an identity: the gap of both sides over 1e-9 of their size). Above 1 by more than
rounding an instance is a counterexample; near 1 a bound is reached, far below it has room. Batches of instances are
computed at once. There is one module a paper, and `searching` searches: random instances and hill climbing by turns.

    python tests/papers/counterexamples --minutes 10 --seed 1 --out reports/counterexamples.json
"""

from counterexamples.instances import ROUNDING, Target
from counterexamples.searching import TARGETS, WITHOUT_INSTANCES, search

__all__ = ["ROUNDING", "TARGETS", "WITHOUT_INSTANCES", "Target", "search"]
