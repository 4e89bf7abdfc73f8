"""A Gaussian mechanism with a planted fault."""

from typing import Any, ClassVar

from dpaudit.privacy.claims import ApproxDP
from dpaudit_mechanisms.faulty.broken import Twin
from dpaudit_mechanisms.gaussian import Gaussian


class GaussianTooLittleNoise(Twin, Gaussian):
    """Normal noise whose sigma is 1.2 times too small; parameters as in `Gaussian`.

    Examples
    --------
    >>> mechanism = GaussianTooLittleNoise(ApproxDP(1.0, 1e-5))
    >>> mechanism.fault
    'sigma is 1.2 times too small: delta 0.000136 at epsilon 1, promised 1e-05'
    """

    factor: ClassVar[float] = 1.2
    changes: ClassVar[Any] = {"sigma": lambda self, sigma: sigma / self.factor}

    @property
    def fault(self) -> str:
        """Description of the fault, and the exact value of the claim's parameter (or delta at the claim's epsilon)."""
        pair = self.pairs()[0]
        head = f"sigma is {self.factor:g} times too small: "
        if isinstance(self.claim, ApproxDP):
            delta = self.privacy_profile(pair.x, pair.x_prime, self.claim.epsilon)
            return head + f"delta {delta:.3g} at epsilon {self.claim.epsilon:g}, promised {self.claim.delta:g}"
        exponent = 1 if self.claim.family == "hockey-stick" else 2  # mu grows with 1 / sigma, Renyi with its square
        exact = self.claim.value * self.factor**exponent
        return head + f"{self.claim.parameter} {exact:g}, promised {self.claim.value:g}"
