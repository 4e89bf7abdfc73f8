"""Mechanisms, a tool and a model of diffprivlib, audited against their epsilon.

dpaudit audit docs/examples/libraries/diffprivlib_mechanisms.py:laplace
python docs/examples/libraries/diffprivlib_mechanisms.py
"""

from __future__ import annotations

from diffprivlib import mechanisms, models, tools

import dpaudit
from dpaudit.subjects.libraries import diffprivlib as adapter
from dpaudit.subjects.libraries import with_pairs

laplace = with_pairs(adapter.subject(mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)), [(0.0, 1.0)])
gaussian = with_pairs(
    adapter.subject(mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)), [(0.0, 1.0)]
)
geometric = with_pairs(adapter.subject(mechanisms.Geometric(epsilon=1.0)), [(0, 1)])
randomised_response = with_pairs(
    adapter.subject(mechanisms.Binary(epsilon=1.0, value0="no", value1="yes")), [("no", "yes")]
)
exponential = with_pairs(
    adapter.selection(mechanisms.Exponential, epsilon=1.0, sensitivity=1.0), [([1.0, 0.0, 0.0], [0.0, 1.0, 1.0])]
)
permute_and_flip = with_pairs(
    adapter.selection(mechanisms.PermuteAndFlip, epsilon=1.0, sensitivity=1.0), [([1.0, 0.0, 0.0], [0.0, 1.0, 1.0])]
)
mean = with_pairs(
    adapter.tool(tools.mean, epsilon=1.0, bounds=(0.0, 1.0)), [([0.0, 0.5, 0.5, 0.5], [1.0, 0.5, 0.5, 0.5])]
)
scaler = with_pairs(
    adapter.model(models.StandardScaler(epsilon=1.0, bounds=(0.0, 1.0)), ["mean_", "var_"]),
    [([[0.0], [0.5], [0.5]], [[1.0], [0.5], [0.5]])],
)

SUBJECTS = {
    "Laplace": laplace,
    "Gaussian (analytic)": gaussian,
    "geometric": geometric,
    "randomised response": randomised_response,
    "exponential": exponential,
    "permute and flip": permute_and_flip,
    "tools.mean": mean,
    "models.StandardScaler": scaler,
}

if __name__ == "__main__":
    for name, subject in SUBJECTS.items():
        result = dpaudit.audit(subject, samples=5_000, seed=1)
        print(f"{name}: claim {result.claim}, {result.verdict}, {result.samples / result.seconds:,.0f} runs/s")
