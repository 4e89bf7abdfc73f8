"""A defect of python-dp 1.1.5 that an audit finds, as a subject with its claim and its pair.

    dpaudit audit docs/examples/libraries/pydp_defects.py:geometric --out defects

`pydp.ml` is Python code that python-dp ships beside Google's library; the mechanisms of that library are two-sided.
"""

from __future__ import annotations

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
    }
}

mechanism = Geometric().set_epsilon(1.0).set_sensitivity(1).set_probability(0.5)
geometric = with_pairs(adapter.subject(mechanism, call=mechanism.randomise, claim="eps=1"), [(0, 1)])

if __name__ == "__main__":
    result = dpaudit.audit(geometric, samples=20_000, seed=1)
    print(
        f"geometric: {result.verdict}, claim {result.claim}, at least {result.epsilon_lower:.3g} nats at 95%, "
        f"{result.samples:,} runs in {result.seconds:.1f} s"
    )
