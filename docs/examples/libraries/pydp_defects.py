"""Defects of python-dp 1.1.5 that an audit finds: each a subject with its claim and its pair.

    dpaudit audit docs/examples/libraries/pydp_defects.py:geometric --out defects

`pydp.ml` is Python code that python-dp ships beside Google's library; the mechanisms of that library are two-sided.
Their randomness is their own: a saved witness is replayed on fresh draws, but no run can be repeated bit by bit.
"""

from __future__ import annotations

from pydp.algorithms.numerical_mechanisms import GaussianMechanism
from pydp.ml.mechanisms.geometric import Geometric

import dpaudit
from dpaudit.subjects.libraries import pydp as adapter
from dpaudit.subjects.libraries import with_pairs

DEFECTS = {
    "geometric": {
        "what": "pydp.ml.mechanisms.geometric.Geometric",
        "promise": "the classic geometric mechanism of differential privacy, at epsilon",
        "cause": "its sampler gives one side of the distribution only: no output is below the true count",
        "issues": "none known to us",
    },
    "gaussian_low_bits": {
        "what": "GaussianMechanism of Google's library, its low bits",
        "promise": "(epsilon, delta), by noise on a grid of its own as a defence against attacks on floating point",
        "cause": "the grid (here 2^-54) is finer than doubles above 1/2 are, so the sum is rounded by its own size",
        "issues": "none known to us",
    },
}

mechanism = Geometric().set_epsilon(1.0).set_sensitivity(1).set_probability(0.5)
geometric = with_pairs(adapter.subject(mechanism, call=mechanism.randomise, claim="eps=1"), [(0, 1)])
gaussian_low_bits = with_pairs(adapter.subject(GaussianMechanism(1.0, 1e-5, 1.0)), [(0.0, 1.0)])

if __name__ == "__main__":
    for name in DEFECTS:
        result = dpaudit.audit(globals()[name], samples=20_000, seed=1)
        doubles = result.floating_point.verdict if result.floating_point is not None else "not asked"
        print(
            f"{name}: {result.verdict}, claim {result.claim}, at least {result.epsilon_lower:.3g} nats at 95%, "
            f"{result.samples:,} runs in {result.seconds:.1f} s, low bits: {doubles}"
        )
