"""Options of an audit, checked: effort (`Options`) and place of execution (`Running`)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.arguments import check_options
from dpaudit.campaign.campaign import Progress
from dpaudit.campaign.schedules import Mode
from dpaudit.errors import UsageError
from dpaudit.running.checkpoint import as_plan
from dpaudit.subjects.isolation import as_isolation

BAND_SHARE = 0.2  # of the error rate of a call that asks for a band


@dataclasses.dataclass(frozen=True)
class Options:
    """Effort of an audit: see `dpaudit.audit`. floating_point, grey_box and monotone change no verdict and no bound."""

    samples: int
    mode: Mode
    confidence: float
    seed: int | None
    event_mass: float
    inconclusive_factor: float
    floating_point: bool | None
    pool: bool | None
    grey_box: bool = False
    severity: bool | None = None
    band: bool = False
    power: str = "off"
    monotone: str = "density"

    def __post_init__(self) -> None:
        check_options(**{field.name: getattr(self, field.name) for field in dataclasses.fields(self)})
        for name in ("floating_point", "severity", "pool", "band"):
            value = getattr(self, name)
            if not isinstance(value, bool | np.bool_) and (name == "band" or value is not None):
                allowed = "True or False" if name == "band" else "True, False or None"
                raise UsageError(f"{name} must be {allowed}, got {value!r}.")
        if self.monotone != "density" and not self.band:
            raise UsageError(f"monotone must be given with a band, got {self.monotone!r}.")

    def asked(self) -> dict[str, Any]:
        """The features that were asked for by name (`dpaudit.audits.compatibility`), with what was given for each."""
        given = {"pool": self.pool, "band": self.band, "power": self.power != "off" and self.power}
        return {name: value for name, value in given.items() if value}

    @property
    def said(self) -> dict[str, Any]:
        """The options as results state them: those of stages where they are asked for."""
        names = ["samples", "event_mass", "inconclusive_factor", "pool", "severity"]
        unasked = {"band": False, "power": "off", "monotone": "density"}
        names += [name for name, value in unasked.items() if getattr(self, name) != value]
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True)
class Running:
    """Place of execution and memory of an audit, as a caller gave them.

    A store has the evidence of earlier sessions, and isolation decides which calls come back. On the others no verdict
    and no bound depends, unless draws depend on each other: a violation stands then only if one process drew at once.
    """

    jobs: int
    backend: str
    cluster: str | None
    checkpoint: Any  # a `CheckpointPlan` or None once it is checked
    resume: bool
    store: Any
    isolation: Any  # an `Isolation` or None once it is checked
    on_progress: Callable[[Progress], None] | None

    def __post_init__(self) -> None:
        check_options(jobs=self.jobs)
        if self.store is not None and not isinstance(self.store, str | os.PathLike):
            raise UsageError(f"store must be a path, got {self.store!r}.")
        if self.store is not None and not os.fspath(self.store):
            raise UsageError("store must be the path of a file, got ''.")
        if self.on_progress is not None and not callable(self.on_progress):
            raise UsageError(f"on_progress must be a function of a Progress, got {self.on_progress!r}.")
        object.__setattr__(self, "checkpoint", as_plan(self.checkpoint, self.resume))
        object.__setattr__(self, "isolation", as_isolation(self.isolation))

    @property
    def limits(self) -> dict[str, str]:
        """The isolation, where there is one, as results and checkpoints say it: outcomes depend on it."""
        return {} if self.isolation is None else {"isolation": str(self.isolation)}

    def asked(self) -> dict[str, Any]:
        """The features that were asked for by name, as `Options.asked` gives them.

        A checkpoint without a path is the command line's own, which does without where it has to.
        """
        plan = self.checkpoint
        given = {
            "checkpoint": None if plan is None or plan.path is None else str(plan.path),
            "store": self.store,
            "isolation": None if self.isolation is None else str(self.isolation),
        }
        return {name: value for name, value in given.items() if value is not None}
