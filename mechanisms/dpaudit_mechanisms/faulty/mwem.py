"""MWEM with a planted fault each: too little noise in the choices, in the measurements, or in both; and no learning."""

from typing import Any, ClassVar

import numpy as np

from dpaudit_mechanisms.faulty.broken import Broken, Twin
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.mwem import MWEM


class _BrokenInRounds(Broken):
    """States its fault with the exact loss, for one round; for more rounds the loss is a bound."""

    @property
    def loses(self) -> str:
        return "loss" if self.rounds == 1 else "loss of at most"


class MWEMHalfTheNoise(_BrokenInRounds, MWEM):
    """Measurements with Laplace noise of scale c T in place of 2 c T; parameters as in `MWEM`."""

    what = "measurements have half the noise"
    changes: ClassVar[Any] = {"noise_scale": lambda self, scale: scale / 2.0}


class MWEMHalfTheChoice(_BrokenInRounds, MWEM):
    """Choices by the exponential mechanism with c T in place of 2 c T; parameters as in `MWEM`."""

    what = "choices have half the scale"
    changes: ClassVar[Any] = {"choice_scale": lambda self, scale: scale / 2.0}


class MWEMForgetsTheRounds(_BrokenInRounds, MWEM):
    """Scale 2 c in place of 2 c T everywhere: the budget is spent T times; parameters as in `MWEM`."""

    what = "the budget is spent in every round"
    changes: ClassVar[Any] = dict.fromkeys(("noise_scale", "choice_scale"), lambda self, scale: scale / self.rounds)


class MWEMIgnoresTheData(Twin, MWEM):
    """Releases all records at the element with the largest answers: private, and as wrong as can be."""

    fault = "the data are not looked at"

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        released = np.zeros((size, self.queries.shape[1]))
        released[:, int(self.queries.sum(axis=0).argmax())] = self.records
        return released
