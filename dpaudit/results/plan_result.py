"""A plan: what an audit would cost and could find, as `dpaudit.plan` computes it and `dpaudit plan` prints it.

Conventions: losses in nats, of randomised response inside an event (`dpaudit.exact.response`); samples as for
`dpaudit.audit`, about so many runs on each input; inf where nothing is found, or no number of samples is enough.
"known" is of a witness that knows the event, "learned" of the audit, which has to find one of the hardest measured form
(`dpaudit.audits.planning`).

The saved form (schema `dpaudit.plan/1`, published in `dpaudit/schemas/`) is strict JSON, as that of a result.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dpaudit.results.model import LearnedLoss
from dpaudit.results.saving import Saved
from dpaudit.results.shown import Printed

SCHEMA = "dpaudit.plan/1"


@dataclasses.dataclass(frozen=True)
class Needed:
    """The samples that find the excess, in one mode, and the time that so many take.

    `known` and `learned` are samples, rounded up to three digits; inf if 10^9 are not enough. `seconds` is for
    `learned`, for all pairs, in one process.
    """

    mode: str
    known: float
    learned: float
    seconds: float


@dataclasses.dataclass(frozen=True)
class PlannedPower:
    """Power of the planned audit on one pair, if its loss sits inside an event of one mass.

    Attributes
    ----------
    event_mass : float
        In (0, 1].
    is_estimate : bool
        Whether the mass was estimated from a pilot, rather than stated.
    allowed : float
        The largest loss of this kind that keeps the claim; inf: any does.
    known, learned : float
        The smallest loss that is found with the plan's probability at its samples and mode.
    known_value, learned_value : float
        The same as values of the claim's own parameter: the least that such a loss needs.
    known_ratio, learned_ratio : float or None
        Over the budget; None at a budget of 0.
    sought : float
        The loss that is `over` above the claim (at a budget of 0: 0.1 nats); inf if none is, at this mass.
    needed : tuple of Needed
        For `sought`, in each mode.
    textbook : float or None
        A second opinion on the known samples of fixed mode: those of a one-sided test of one proportion, by the normal
        approximation of statsmodels. None without that library, and for claims that are not of pure form.
    """

    event_mass: float
    is_estimate: bool
    allowed: float
    known: float
    learned: float
    known_value: float
    learned_value: float
    known_ratio: float | None
    learned_ratio: float | None
    sought: float
    needed: tuple[Needed, ...]
    textbook: float | None = None


@dataclasses.dataclass(frozen=True)
class EventEstimate:
    """An estimate from few draws, without any confidence: what a rule fitted on one half did on the other.

    `event_mass` is the share of outputs that it guesses on (over both inputs), `loss` the log-odds of its guesses,
    `runs` what it took, `description` the rule in words.
    """

    event_mass: float
    loss: float
    runs: int
    description: str


@dataclasses.dataclass(frozen=True)
class PlannedBudget:
    """One pair, and how many pairs it stands for: those of its budget, and those between it and the next larger one.

    `by_form` has the losses that the audit finds of an event of mass 0.1 that it has to learn, by the form of the
    event, as a finding has them; empty for an all-pairs table.
    """

    id: str
    pairs: int
    parameter: str
    budget: float
    powers: tuple[PlannedPower, ...]
    by_form: tuple[LearnedLoss, ...] = ()
    estimate: EventEstimate | None = None


@dataclasses.dataclass(frozen=True)
class Plan(Printed, Saved):
    """Cost and power of an audit that was not run.

    Attributes
    ----------
    claim, confidence, samples
        Of the audit.
    mode : {"sequential", "adaptive", "fixed"}
    over, power : float
        The excess that is sought, as a share of the claim's parameter, and the probability of finding it.
    pairs, not_asked, inputs : int
        Pairs that the claim asks something of, those it does not, and the inputs of the former.
    is_universe : bool
        Whether they would be audited as one all-pairs table: the figures are then those of it.
    error_share : float
        The part of 1 - confidence that each pair has at least; those that the audit's own pilot ranks high have more.
    budgets : tuple of PlannedBudget
        In order of the budget; of more than 8 different budgets, 8 between the least and the largest.
    runs : int
        Of the mechanism in the audit, about; at most in sequential mode. Without the floating-point check.
    seconds : float
        That so many runs take in one process, reading of the outputs included, fitting of rules not.
    pilot_runs : int
        That the plan itself took.
    runs_per_second : float
        Of the audit, as measured on the pilot.
    seed : int
        Of the pilot.
    subject, environment : dict
        As in an audit's result.
    time_limit : float or None
        Seconds that the audit was to take at most, floating-point check included; None if none was given.
    samples_wanted : int or None
        What was asked for, where it takes longer than that: `samples` is then what can be had in the time.
    pools : int
        Games in which the audit asks several pairs of one shift together. No figure of the plan counts on them: all are
        of an audit with pool=False.
    calls : int
        Of a mechanism that gives many outputs in a call, at most, but for those behind a violation and of the
        floating-point check; 0 of one that is called once a run.
    seconds_a_call : float
        That such a call takes, however few outputs it gives: `seconds` has it for each of `calls`.
    """

    claim: str
    confidence: float
    mode: str
    samples: int
    over: float
    power: float
    pairs: int
    not_asked: int
    inputs: int
    is_universe: bool
    error_share: float
    budgets: tuple[PlannedBudget, ...]
    runs: int
    seconds: float
    pilot_runs: int
    runs_per_second: float
    seed: int
    subject: dict[str, Any]
    environment: dict[str, str]
    time_limit: float | None = None
    samples_wanted: int | None = None
    pools: int = 0
    calls: int = 0
    seconds_a_call: float = 0.0

    schema = SCHEMA
