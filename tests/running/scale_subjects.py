"""Subjects for the tests of scale: slow ones, and ones that end their process. (No tests here.)"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import numpy as np


class Slow:
    """Laplace noise, a microsecond or more of sleep a draw."""

    def __init__(self, seconds: float, scale: float = 1.0) -> None:
        self.seconds, self.scale = seconds, scale

    def __repr__(self) -> str:
        return f"Slow({self.seconds}, {self.scale})"

    def sample(self, data, size, rng):
        time.sleep(self.seconds * size)
        return data + rng.laplace(scale=self.scale, size=size)


class SlowWithoutASeed(Slow):
    """The same with randomness of its own."""

    replayable = False

    def sample(self, data, size, rng):
        return super().sample(data, size, np.random.default_rng())


class EndsItsProcess(Slow):
    """The same; the first process that draws after `mark` was made, and is not the one named in it, ends there."""

    def __init__(self, mark: str, every_time: bool = False) -> None:
        super().__init__(0.0)
        self.mark, self.every_time = mark, every_time

    def __repr__(self) -> str:
        return f"EndsItsProcess({self.every_time})"

    def sample(self, data, size, rng):
        mark = Path(self.mark)
        with contextlib.suppress(FileNotFoundError):  # another process may see it at the same time, and be the first
            if mark.read_text() != str(os.getpid()):
                if not self.every_time:
                    mark.unlink()
                os._exit(9)
        return super().sample(data, size, rng)


def labels(data, rng):
    """Text with some numbers, one call a draw."""
    value = float(data + rng.laplace())
    return {"sign": "up" if value > 0.0 else "down", "size": round(value, 1)} if rng.random() < 0.8 else (value, None)


slow = Slow(20e-6)
slower = Slow(60e-6)
without_a_seed = SlowWithoutASeed(20e-6)
