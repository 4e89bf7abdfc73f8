"""Mechanisms of OpenDP, audited against the claims of their own maps.

dpaudit audit docs/examples/libraries/opendp_mechanisms.py:laplace
python docs/examples/libraries/opendp_mechanisms.py
"""

from __future__ import annotations

import opendp.prelude as dp

import dpaudit
from dpaudit.subjects.libraries import opendp as adapter
from dpaudit.subjects.libraries import with_pairs

dp.enable_features("contrib")
REAL = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
REALS = dp.vector_domain(dp.atom_domain(T=float, nan=False))
WHOLE = dp.atom_domain(T=int), dp.absolute_distance(T=int)
WHOLES = dp.vector_domain(dp.atom_domain(T=int))

# Noise in batches: a call of the scalar measurement takes tens of microseconds, a coordinate of a vector a few.
laplace = with_pairs(
    adapter.subject(
        dp.m.make_laplace(*REAL, scale=1.0), batch=dp.m.make_laplace(REALS, dp.l1_distance(T=float), scale=1.0)
    ),
    [(0.0, 1.0)],
)
gaussian = with_pairs(
    adapter.subject(
        dp.m.make_gaussian(*REAL, scale=1.0), batch=dp.m.make_gaussian(REALS, dp.l2_distance(T=float), scale=1.0)
    ),
    [(0.0, 1.0)],
)
geometric = with_pairs(
    adapter.subject(
        dp.m.make_geometric(*WHOLE, scale=1.0), batch=dp.m.make_geometric(WHOLES, dp.l1_distance(T=int), scale=1.0)
    ),
    [(0, 1)],
)
randomised_response = with_pairs(adapter.subject(dp.m.make_randomized_response_bool(prob=0.75)), [(False, True)])
noisy_max = with_pairs(
    adapter.subject(dp.m.make_noisy_max(WHOLES, dp.linf_distance(T=int), dp.max_divergence(), scale=2.0)),
    [([1, 0, 0], [0, 1, 1])],
)

SUBJECTS = {
    "Laplace": laplace,
    "Gaussian": gaussian,
    "geometric": geometric,
    "randomised response": randomised_response,
    "report noisy max": noisy_max,
}

if __name__ == "__main__":
    for name, subject in SUBJECTS.items():
        result = dpaudit.audit(subject, samples=5_000, seed=1)
        print(
            f"{name}: claim {result.claim} of its map, {result.verdict}, {result.samples / result.seconds:,.0f} runs/s"
        )
