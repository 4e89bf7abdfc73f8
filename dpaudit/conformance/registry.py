"""The list of checks: name, the property that each demands, and where it lives. Nothing is imported to read it.

The order is that of the report. Names never change their meaning: people write them into their lists of known failures.
Every statistical check has the same share of the error rate, whichever of them apply. Other packages add checks and
laws by the entry-point groups `dpaudit.checks` and `dpaudit.laws`: the shares become smaller, the whole stays.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

from dpaudit.errors import UsageError
from dpaudit.extensions import extensions, names


@dataclasses.dataclass(frozen=True)
class CheckSpec:
    """One check.

    Attributes
    ----------
    name : str
        As users write it.
    demands : str
        The property, as a sentence about the mechanism without a subject.
    home : str
        `module:function`; of a module of `dpaudit.conformance` with a dot in front.
    is_statistical : bool
        Whether a sound mechanism can fail it by chance: then it has a share of the error rate.
    argument : str
        Passed to the function, if not empty (the name of a law).
    is_hygiene : bool
        Whether it is about how the mechanism is called and what it refuses, and not about what it gives away.
    follows : str
        The check whose failure makes this one fail too: then it says nothing more, and `dpaudit.check` leaves it out.
    """

    name: str
    demands: str
    home: str
    is_statistical: bool = False
    argument: str = ""
    is_hygiene: bool = False
    follows: str = ""

    def function(self) -> Callable[[Any], str | None]:
        """The check itself, imported now: takes a `Case`, returns a remark or None."""
        module, _, name = self.home.partition(":")
        found: Callable[..., str | None] = getattr(importlib.import_module(module, "dpaudit.conformance"), name)
        if not self.argument:
            return found
        return lambda case: found(case, self.argument)


# Laws that are checked, by their names in `dpaudit.laws.LAWS` (which is not imported to list them; a test compares).
LAW_NAMES: tuple[str, ...] = (
    "sequential composition",
    "adaptive composition",
    "post-processing by rounding",
    "post-processing by truncation",
    "post-processing by clipping",
    "post-processing by thresholding",
    "post-processing by sign",
    "post-processing by parity",
    "post-processing by sorting",
    "post-processing by argmax",
    "post-processing by total",
    "post-processing by reciprocal",
    "post-processing by text",
    "post-processing by hashing",
    "post-processing by forgetting",
    "post-processing by flipping",
    "post-processing by jitter",
    "group privacy",
    "mixture",
    "disjoint union",
    "conditioning",
    "projection",
    "parallel composition",
    "convexity",
)

GROUP = "dpaudit.checks"  # the entry-point group of other checks
LAWS_GROUP = "dpaudit.laws"
CLAIM_AUDIT = "claim_audit"


def _own(module: str, name: str, demands: str, is_statistical: bool = False) -> CheckSpec:
    """A check of this package: a function of its name."""
    is_hygiene = module in ("calls", "refusals") or name == "same_bits_in_another_process"
    return CheckSpec(name, demands, f".{module}:{name}", is_statistical, is_hygiene=is_hygiene)


def _of_law(name: str) -> CheckSpec:
    """The check that a law is kept."""
    own = f"law_{name.replace(' ', '_').replace('-', '_')}"
    demands = f"keeps what follows from its claim by {name}"
    return CheckSpec(own, demands, ".promises:law", True, name, follows=CLAIM_AUDIT)


CHECKS: tuple[CheckSpec, ...] = (
    _own("calls", "seeded_determinism", "gives the same outputs from the same seed"),
    _own("calls", "global_generators_unchanged", "leaves the generators of `random` and `numpy.random` as they are"),
    _own("processes", "same_bits_in_another_process", "gives the same outputs from the same seed in another process"),
    _own("calls", "batch_contract", "returns `size` outputs of one shape and type for every size, 0 too"),
    _own("calls", "input_unchanged", "leaves its input unchanged"),
    _own("calls", "pickling", "can be pickled, and draws the same afterwards"),
    _own("calls", "deep_copy", "can be copied, and draws the same afterwards"),
    _own("refusals", "refuses_nan", "refuses an input with NaN in it"),
    _own("refusals", "refuses_infinity", "refuses an input with an infinity in it"),
    _own("refusals", "refuses_wrong_shape", "refuses an input of the wrong shape"),
    _own("refusals", "refuses_negative_counts", "refuses negative counts"),
    _own("refusals", "refuses_bad_budgets", "refuses budgets that are negative or NaN"),
    _own("noise", "independent_in_a_batch", "shares no noise within a batch", True),
    _own("noise", "independent_calls", "shares no noise between calls", True),
    _own("processes", "independent_processes", "shares no noise between processes", True),
    _own("noise", "batch_law", "draws from one law whatever the size of the batch", True),
    _own("laws_of_outputs", "distribution_fits_draws", "draws from the distribution that it states", True),
    _own("laws_of_outputs", "log_density_fits_draws", "draws from the log density that it states", True),
    _own("promises", "claim_exact", "keeps its claim by its own exact figures"),
    _own("promises", "claim_audit", "keeps its claim on its own pairs, audited", True),
    _own("promises", "floating_point", "keeps its claim in the low bits of its outputs", True),
    _own("promises", "utility_bounds", "keeps the error bounds that it states", True),
    _own("promises", "more_budget_less_error", "has no more error with more budget", True),
    *(_of_law(name) for name in LAW_NAMES),
)


def all_checks() -> tuple[CheckSpec, ...]:
    """Our own checks, those of the laws that other packages add, then the checks that they add.

    `UsageError` if what a package adds is no `CheckSpec`, or has another name than its entry point, or one that is
    taken.
    """
    found = [*CHECKS, *(_of_law(name) for name in names(LAWS_GROUP))]
    for name, spec in extensions(GROUP):
        if not isinstance(spec, CheckSpec) or spec.name != name:
            raise UsageError(f"a check must be a CheckSpec of its entry point's name, got {spec!r:.80} at {name!r}.")
        found.append(spec)
    listed = [spec.name for spec in found]
    for name in listed:
        if listed.count(name) > 1:
            raise UsageError(f"checks must have different names, got {name!r} twice.")
    return tuple(found)


def check_names() -> tuple[str, ...]:
    """The names of all checks, in the order of the report."""
    return tuple(spec.name for spec in all_checks())


def statistical_count() -> int:
    """Number of checks that share the error rate: all that a sound mechanism can fail by chance."""
    return sum(spec.is_statistical for spec in all_checks())
