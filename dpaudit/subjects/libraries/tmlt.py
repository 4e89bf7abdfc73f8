"""Measurements of Tumult Core (`tmlt.core`) as subjects, with the claim of their own privacy function.

It has randomness of its own, so its audits cannot be replayed bit by bit and are never drawn in workers. Measurements
of numbers need no Spark; those of Spark data frames start a session of their own, and take long for each call.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, PureDP, ZeroConcentratedDP
from dpaudit.privacy.neighbours import Adjacency, steps_between
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.libraries.library_mechanism import import_library, library_subject, real_distance, steps_of

PACKAGE = "tmlt.core"
RELATIONS: dict[str, Adjacency] = {"SymmetricDifference": "add_remove", "HammingDistance": "replace_one"}


def subject(measurement: Any, *, d_in: Any = 1, claim: Claim | str | None = None, name: str | None = None) -> Subject:
    """The subject of a measurement.

    Parameters
    ----------
    measurement : tmlt.core.measurements.base.Measurement
        Called once a draw; its inputs are the subject's.
    d_in : number
        The distance between neighbouring inputs under the measurement's input metric, in the form that its privacy
        function takes. Inputs further apart are several steps.

    Raises
    ------
    UsageError
        If it is no measurement, or promises in a measure other than pure, approximate or zero-concentrated privacy.
    """
    import_library(PACKAGE, PACKAGE, "tmlt")
    if not callable(measurement) or not hasattr(measurement, "privacy_function"):
        raise UsageError(f"measurement must be a measurement of tmlt.core, got {type(measurement).__name__}.")
    own = stated_claim(measurement, d_in)
    relation = RELATIONS.get(type(measurement.input_metric).__name__)
    adjacency = relation if d_in == 1 else None  # else the promise is of several rows together
    apart = functools.partial(steps_between, adjacency=relation) if relation else real_distance
    return library_subject(
        PACKAGE,
        f"{type(measurement).__name__} d_in={d_in} promises {own}",
        lambda data: measurement(data),
        name or type(measurement).__name__,
        claim=claim,
        own=own,
        adjacency=adjacency,
        steps=None if adjacency else steps_of(_number(d_in), apart),
    )


def stated_claim(measurement: Any, d_in: Any) -> Claim:
    """The claim that the privacy function promises at `d_in`, with every number rounded up."""
    measure, promised = type(measurement.output_measure).__name__, measurement.privacy_function(d_in)
    if measure == "PureDP":
        return PureDP(_number(promised))
    if measure == "ApproxDP":
        return ApproxDP(*(_number(part) for part in promised))
    if measure == "RhoZCDP":
        return ZeroConcentratedDP(_number(promised))
    raise UsageError(f"output measure must be PureDP, ApproxDP or RhoZCDP, got {measure}. State claim=.")


def _number(exact: Any) -> float:
    """A number of tmlt.core's, which are exact, rounded up to a float."""
    rounded = getattr(exact, "to_float", None)
    return float(np.float64(exact)) if rounded is None else float(rounded(round_up=True))
