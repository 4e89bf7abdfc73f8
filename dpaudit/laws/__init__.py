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

from dpaudit.laws.claims import average_claim as average_claim
from dpaudit.laws.claims import conditioned_claim as conditioned_claim
from dpaudit.laws.claims import group_claim as group_claim
from dpaudit.laws.claims import weakest_claim as weakest_claim
from dpaudit.laws.composing import adaptive_composition as adaptive_composition
from dpaudit.laws.composing import parallel_composition as parallel_composition
from dpaudit.laws.composing import sequential_composition as sequential_composition
from dpaudit.laws.conditioning import conditioning as conditioning
from dpaudit.laws.grouping import group_privacy as group_privacy
from dpaudit.laws.linear import linear_conditioning as linear_conditioning
from dpaudit.laws.mixing import convexity as convexity
from dpaudit.laws.mixing import disjoint_union as disjoint_union
from dpaudit.laws.mixing import mixture as mixture
from dpaudit.laws.nasty import NASTY as NASTY
from dpaudit.laws.nasty import NASTY_FUNCTIONS as NASTY_FUNCTIONS
from dpaudit.laws.nasty import NastyFunction as NastyFunction
from dpaudit.laws.processing import BoxProjection as BoxProjection
from dpaudit.laws.processing import post_processing as post_processing
from dpaudit.laws.processing import projection as projection
from dpaudit.laws.registry import LAWS as LAWS
from dpaudit.laws.registry import Law as Law
from dpaudit.laws.registry import all_laws as all_laws
