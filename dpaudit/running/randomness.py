"""Whether a call has taken randomness: of the generator that it was given, or of those that all code shares."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.subjects.callables import Subject


def randomness_moved(subject: Subject, rng: np.random.Generator) -> Callable[[], bool]:
    """A function that tells whether randomness has been taken since now: of `rng`, or of global generators.

    Global ones count where the subject is given no generator. A seed is drawn from `rng` for every call, so that of a
    subject that takes one this is always so.
    """
    watches = subject.replayable
    before = rng.bit_generator.state if watches else _global_state()
    return lambda: bool((rng.bit_generator.state if watches else _global_state()) != before)


def _global_state() -> tuple[Any, ...]:
    _, keys, position, *rest = np.random.get_state()  # noqa: NPY002
    return keys.tobytes(), position, *rest, random.getstate()  # type: ignore[attr-defined]
