"""A defect of python-dp 1.1.5 that an audit finds, as a subject with its claim and its pair.

    dpaudit audit docs/examples/libraries/pydp_defects.py:geometric --out defects

Promised: the classic geometric mechanism of differential privacy, at epsilon. The sampler that `pydp.ml` calls gives one
side of the distribution only, so no output is below the true count. No issue known to us. (`pydp.ml` is Python code that
python-dp ships beside Google's library; the mechanisms of that library itself are two-sided.)
"""

from __future__ import annotations

from pydp.ml.mechanisms.geometric import Geometric

import dpaudit
from dpaudit.subjects.libraries import pydp as adapter
from dpaudit.subjects.libraries import with_pairs

EPSILON = 1.0
mechanism = Geometric().set_epsilon(EPSILON).set_sensitivity(1).set_probability(0.5)
geometric = with_pairs(adapter.subject(mechanism, call=mechanism.randomise, claim=f"eps={EPSILON:g}"), [(0, 1)])

VIOLATED = {"geometric": geometric}

if __name__ == "__main__":
    result = dpaudit.audit(geometric, samples=20_000, seed=1)
    print(
        f"geometric: {result.verdict}, claim {result.claim}, at least {result.epsilon_lower:.3g} nats at 95%, "
        f"{result.samples:,} runs in {result.seconds:.1f} s"
    )
