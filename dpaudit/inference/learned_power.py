"""Power of an audit that has to find the event, by the form in which the event shows.

The power of a test (`Test.power`) is that of a witness who knows the event. An audit learns the event from
its own draws, and finds what such a witness finds in some times fewer. How many times was measured, for each form of
`tests/bench/hidden_forms.py`: `learned_power.json` beside this file, which `python tests/bench/power_curve.py`
writes and which says what it was measured on.

It is a measured allowance and no bound: it holds for events of these forms, of one number, row or text an output.
"""

from __future__ import annotations

import copy
import functools
import json
import math
from importlib import resources
from typing import Any

import numpy as np

from dpaudit.inference.protocols import Test

DATA = "learned_power.json"
# Draws over those of a fixed line, for a claim whose line is chosen by the draws as well, and for Renyi inequalities:
# measured on single values.
FREE_LINES, RENYI = 2.0, 1.5
# To which times are rounded up, so that fewer powers have to be computed.
STEPS = (1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 16.0, 24.0, 32.0, 64.0)


@functools.cache
def _measured() -> dict[str, Any]:
    record: dict[str, Any] = json.loads((resources.files(__package__) / DATA).read_text(encoding="utf-8"))
    return record


def forms() -> tuple[str, ...]:
    """The names of the forms, in the order of reports."""
    return tuple(_measured()["forms"])


def audits_a_form(is_fixed: bool) -> int:
    """On how many audits each figure was measured, at least: a figure that is older may be of fewer than others."""
    record, mode = _measured(), "fixed" if is_fixed else "sequential"
    return int(record["least_audits"][mode])


def probability_measured() -> float:
    """Probability with which an audit finds what is promised here, about."""
    return float(_measured()["probability"])


def event_mass_measured() -> float:
    """The mass of the events that were measured."""
    return float(_measured()["event_mass"])


def times(form: str, is_fixed: bool, draws: float) -> float:
    """Draws of an audit that learns, over those of a witness; inf: it may not find the event at all.

    `is_fixed`: its rule is fixed before the test, else its bets go on learning. `draws` labelled ones are counted, for
    an event of mass 0.1. Between the numbers of draws that were measured it is the larger of both figures, beyond the
    largest the last one; below the least one nothing is promised.
    """
    curve = _measured()["forms"][form]["fixed" if is_fixed else "sequential"]
    sizes = [size for size, _ in curve]
    place = int(np.searchsorted(sizes, draws, side="right"))
    if place == 0:
        return math.inf
    around = [math.inf if value is None else float(value) for _, value in curve[place - 1 : place + 1]]
    return max(around)


def worth(form: str, is_fixed: bool, draws: float, harder: float = 1.0) -> float:
    """The draws of a witness who knows the event that find what so many draws of an audit do; 0: nothing is promised.

    It is the largest figure of these draws and of all fewer ones, so that more draws never promise less. The times that
    were measured do not fall everywhere as draws grow: they are of few audits (`audits_a_form`), and larger ones look
    for smaller losses. What holds for fewer draws is taken to hold for more, which is an allowance as the times
    themselves are, and no measurement: a size at which no loss was found keeps the promise of a smaller one. Times are
    multiplied by `harder`, and the product is rounded up to one of `STEPS`.
    """
    sizes = [float(size) for size, _ in _measured()["forms"][form]["fixed" if is_fixed else "sequential"]]
    most = 0.0
    for start, end in zip(sizes, [*sizes[1:], math.inf], strict=True):
        if start <= draws:
            share = harder * times(form, is_fixed, start)
            step = next((step for step in STEPS if step >= share), math.inf)
            most = max(most, min(draws, end) / step)
    return most


def with_fewer_draws(test: Test, share: float) -> Test:
    """The test as it would be meant for so many times fewer draws; the test itself stays as it is."""
    fewer = copy.copy(test)
    fewer.draws = int(test.draws / share)
    return fewer


def learned_losses(test: Test, event_mass: float, probability: float, is_fixed: bool) -> tuple[tuple[str, float], ...]:
    """The loss that an audit finds of an event that it has to learn, by the form of the event.

    inf: none is promised. More draws never promise more loss, see `worth`. The test is of one pair and has started. The
    mass counts by how many outputs fall into the event, and as 0.1 where it is larger: no larger one was measured.
    """
    seen, worths = _worths(test, event_mass, is_fixed)
    found = {known: _loss(test, seen, known, event_mass, probability) for known in set(worths)}
    return tuple((form, found[known]) for form, known in zip(forms(), worths, strict=True))


def worst_learned_loss(test: Test, event_mass: float, probability: float, is_fixed: bool) -> float:
    """The loss that an audit finds of an event of whichever measured form: as `learned_losses`, of the hardest form."""
    seen, worths = _worths(test, event_mass, is_fixed)
    return _loss(test, seen, min(worths), event_mass, probability)


def _worths(test: Test, event_mass: float, is_fixed: bool) -> tuple[float, list[float]]:
    """The draws that count for an event of this mass, and what they are worth of each form."""
    harder = RENYI if test.claim.family == "renyi" else FREE_LINES if is_fixed and test.claim.anchored else 1.0
    seen = test.draws * min(event_mass / event_mass_measured(), 1.0)
    return seen, [worth(form, is_fixed, seen, harder) for form in forms()]


def _loss(test: Test, seen: float, known: float, event_mass: float, probability: float) -> float:
    return with_fewer_draws(test, seen / known).power(event_mass, probability)[0] if known > 0.0 else math.inf
