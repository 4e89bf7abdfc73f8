"""Privacy under constraints: conditioning on an invariant (belief revision), and moving onto it (imaging, update).

Conventions
-----------
* An invariant is a set C of outputs, the same for all inputs; true answers lie in it, and an input whose answer does
  not is refused: neither a guarantee nor a law is stated for it.
* Noise is scaled so that the *conditioned* mechanism keeps the promised epsilon. What conditioning costs is in the
  open: nothing on linear equalities, a factor 1 + gamma on events of positive probability.

Source: Liu, Sun, Zhou and Feng, Two Views of Constrained Differential Privacy (claims CD-*); what of it does not hold
as printed is in `dpaudit_mechanisms/papers/constrained-dp.toml`.
"""
