"""Reference implementations of private mechanisms: one mechanism a file, each with its claim and its exact loss.

Conventions
-----------
* A mechanism is a frozen dataclass. `sample(data, size, rng)` returns `size` outputs, batch axis first; `claim` is what
  it promises; `pairs()` are pairs of inputs on which the promise is tight; `log_density(data, outputs)` is the natural
  logarithm of the density, or of the probability where outputs are discrete; `privacy_loss(x, x_prime)` is the exact
  supremum of |log(p(o) / q(o))| over outputs, in nats; `distribution(data)` are the probabilities of `outcomes` where
  these are finitely many.
* What is out of the range that a docstring states is refused with a `UsageError` that names it and its value. A section
  "Raises" has what is refused beside that.
* Noise comes from numpy's generator in double precision: right in law up to rounding, and no defence against attacks on
  the low bits of an output. Release nothing real with it.
* `dpaudit_mechanisms.faulty` has the same mechanisms with a planted fault, for a test of the auditor.
"""
