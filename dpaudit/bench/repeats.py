"""Audits over seeds, and runs with a clock beside them: what the measurements share that are not of one problem."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

import dpaudit
from dpaudit.bench.design import Design
from dpaudit.results.model import AuditResult

Mode = Literal["sequential", "fixed"]
TIMED_MODES: tuple[Mode, ...] = ("sequential", "fixed")
PAIR = (0.0, 1.0)


def audits(
    design: Design,
    part: str,
    name: str,
    subject: Any,
    count: int,
    claim: Any = "eps=1",
    pair: Any = PAIR,
    **options: Any,
) -> list[AuditResult]:
    """So many audits of a subject, each with the seed that the design has for its number."""
    seeds = (design.audit_seed(name, part, number) for number in range(count))
    return [dpaudit.audit(subject, claim, [pair], seed=seed, **options) for seed in seeds]


def seconds_of(run: Callable[[], Any], clock: Callable[[], float] = time.process_time) -> float:
    """Seconds that one run takes."""
    start = clock()
    run()
    return clock() - start


def median_seconds(run: Callable[[], Any], design: Design) -> float:
    """Median seconds of the processor of the design's repeats."""
    return statistics.median(seconds_of(run) for _ in range(design.overhead_repeats))


def audit_and_drawing(mode: Mode, draws: int, seed: int, clock: Callable[[], float]) -> tuple[float, float]:
    """Seconds of an audit of so many labelled Laplace draws, and of drawing the same sizes in the same order after it.

    Both meet the same machine: they run in turn.
    """
    sizes: list[int] = []

    def laplace(data: float, size: int, rng: np.random.Generator) -> Any:
        sizes.append(size)
        return data + rng.laplace(size=size)

    def draw() -> None:
        rng = np.random.default_rng(seed)
        for size in sizes:
            _ = 1.0 + rng.laplace(size=size)

    audit = seconds_of(lambda: dpaudit.audit(laplace, "eps=1", [PAIR], samples=draws // 2, mode=mode, seed=seed), clock)
    return audit, seconds_of(draw, clock)
