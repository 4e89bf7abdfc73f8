"""MWEM with a planted fault each: too little noise in the choices, in the measurements, or in both; and no learning."""

import dataclasses
from typing import Any, ClassVar

import numpy as np

from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.mwem import MWEM


class _FaultyMWEM(MWEM):
    """States its fault with the exact loss, for one round; for more rounds the loss is a bound."""

    what = ""

    @property
    def fault(self) -> str:
        """Description of the fault, and the loss of the worst pair."""
        pair = self.pairs()[0]
        promised = self.claim.for_pair(pair.x, pair.x_prime).value
        words = "loss" if self.rounds == 1 else "loss of at most"
        found = self.privacy_loss(pair.x, pair.x_prime)
        return f"{self.what}: {words} {found:.6g} nats on the pair {pair.id}, promised {promised:g}"


@dataclasses.dataclass(frozen=True, eq=False)
class MWEMHalfTheNoise(_FaultyMWEM):
    """Measurements with Laplace noise of scale c T in place of 2 c T; parameters as in `MWEM`."""

    what = "measurements have half the noise"

    @property
    def noise_scale(self) -> float:
        return super().noise_scale / 2.0


@dataclasses.dataclass(frozen=True, eq=False)
class MWEMHalfTheChoice(_FaultyMWEM):
    """Choices by the exponential mechanism with c T in place of 2 c T; parameters as in `MWEM`."""

    what = "choices have half the scale"

    @property
    def choice_scale(self) -> float:
        return super().choice_scale / 2.0


@dataclasses.dataclass(frozen=True, eq=False)
class MWEMForgetsTheRounds(_FaultyMWEM):
    """Scale 2 c in place of 2 c T everywhere: the budget is spent T times; parameters as in `MWEM`."""

    what = "the budget is spent in every round"

    @property
    def noise_scale(self) -> float:
        return super().noise_scale / self.rounds

    @property
    def choice_scale(self) -> float:
        return super().choice_scale / self.rounds


@dataclasses.dataclass(frozen=True, eq=False)
class MWEMIgnoresTheData(MWEM):
    """Releases all records at the element with the largest answers: private, and as wrong as can be."""

    fault: ClassVar[str] = "the data are not looked at"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        released = np.zeros((size, self.queries.shape[1]))
        released[:, int(self.queries.sum(axis=0).argmax())] = self.records
        return released
