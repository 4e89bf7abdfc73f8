"""Laws of differential privacy as functions (subject, claim) -> (derived subject, derived claim).

The derived pair goes back to the auditor, `dpaudit.audit(derived, claim=derived_claim)`, so that a law is tested on any
subject as the subject itself is. Each docstring states the law that is true, with its proof, the claims of the papers
that it comes from, and where the printed one differs. `LAWS` lists them for a single subject.

>>> import numpy as np
>>> from dpaudit import PureDP, audit
>>> noisy = lambda data, size, rng: data + rng.laplace(size=size)
>>> twice, claim = sequential_composition([noisy, noisy], [PureDP(1.0), PureDP(1.0)])
>>> audit(twice, claim=claim, pairs=[(0.0, 1.0)], samples=5_000, seed=7).verdict
'not_refuted'
"""

from dpaudit.laws.claims import average_claim, conditioned_claim, group_claim, weakest_claim
from dpaudit.laws.composing import adaptive_composition, parallel_composition, sequential_composition
from dpaudit.laws.conditioning import conditioning
from dpaudit.laws.grouping import group_privacy
from dpaudit.laws.linear import linear_conditioning
from dpaudit.laws.mixing import convexity, disjoint_union, mixture
from dpaudit.laws.nasty import NASTY, NASTY_FUNCTIONS, NastyFunction
from dpaudit.laws.processing import AffineProjection, BoxProjection, post_processing, projection
from dpaudit.laws.registry import LAWS, Law, all_laws

__all__ = [
    "LAWS",
    "NASTY",
    "NASTY_FUNCTIONS",
    "AffineProjection",
    "BoxProjection",
    "Law",
    "NastyFunction",
    "adaptive_composition",
    "all_laws",
    "average_claim",
    "conditioned_claim",
    "conditioning",
    "convexity",
    "disjoint_union",
    "group_claim",
    "group_privacy",
    "linear_conditioning",
    "mixture",
    "parallel_composition",
    "post_processing",
    "projection",
    "sequential_composition",
    "weakest_claim",
]
