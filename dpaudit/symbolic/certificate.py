"""A certificate: what a mechanism's loss is on each pair, proved by running it through all outcomes of its draws.

Conventions: losses in nats; every bound is rounded outwards; probabilities are fractions. "kept" is proved for the
pairs that are listed and for no others. The saved form (schema `dpaudit.certificate/1`, published in
`dpaudit/schemas/`) is strict JSON: a fraction is the text "3/4", or "0x…/0x…" in hexadecimal digits where it is long.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from fractions import Fraction
from typing import Any, Literal

from dpaudit.numerals import lower_text
from dpaudit.results.saving import Saved, read_saved

SCHEMA = "dpaudit.certificate/1"
Verdict = Literal["kept", "violated", "open"]
VERDICTS: tuple[Verdict, ...] = ("violated", "open", "kept")  # the worst first


@dataclasses.dataclass(frozen=True)
class Event:
    """The event that shows the loss of a pair.

    Attributes
    ----------
    outcomes : tuple of str
        Tokens of its outcomes, the first ones of many; `≥ 5` stands for a tail of integers.
    count : int
        How many there are.
    likelier_under : str
        The input under which it has the larger probability.
    probability, other_probability : Fraction
        Under that input, and under the other one. Where mass is left, the first is a lower bound and the second, which
        includes what is left, an upper bound.
    """

    outcomes: tuple[str, ...]
    count: int
    likelier_under: str
    probability: Fraction
    other_probability: Fraction


@dataclasses.dataclass(frozen=True)
class CertifiedPair:
    """Proved bounds for one pair.

    Attributes
    ----------
    id, x_id, x_prime_id : str
    verdict : {"kept", "violated", "open"}
    claimed : float
        The claim's value for this pair; inf where it asks nothing.
    epsilon_lower, epsilon_upper : float
        The least epsilon of the pair at `delta`, both directions, is between them.
    delta : float
    exact : Fraction or None
        e^epsilon of that loss, where everything was explored and the loss is finite.
    mass_left : float
        The larger of what is left unexplored under the two inputs, rounded up; 0.0 where nothing is.
    value_lower, value_upper : float
        Bounds of the claim's own parameter: epsilon again, or the Renyi divergence; for zCDP the largest found
        divergence over its order, and half the square of the largest loss.
    event : Event or None
        None where the two laws are equal or nothing is known.
    profile : tuple of (epsilon, lower, upper)
        Bounds of the delta of the pair at some epsilons, both directions.
    reason : str
        Why it is open, and what it would take; of a pair that is kept what is odd of its outputs; else empty.
    """

    id: str
    x_id: str
    x_prime_id: str
    verdict: Verdict
    claimed: float
    epsilon_lower: float
    epsilon_upper: float
    delta: float
    exact: Fraction | None
    mass_left: float
    value_lower: float
    value_upper: float
    event: Event | None = None
    profile: tuple[tuple[float, float, float], ...] = ()
    reason: str = ""

    @property
    def is_explored(self) -> bool:
        """Tell whether nothing was left unexplored."""
        return self.mass_left == 0.0


@dataclasses.dataclass(frozen=True)
class Certificate(Saved):
    """Proved bounds for a mechanism on a list of pairs.

    Attributes
    ----------
    subject : dict
        Name, target, fingerprint and interface, as in an audit.
    claim : str
    rounding : float
        What a claim is exceeded by before that counts: absolute in nats for epsilon, relative for delta.
    pairs : tuple of CertifiedPair
        In their order.
    inputs, runs : int
        Different inputs, and runs of the mechanism.
    seconds : float
        The time that was allowed.
    refusal : str
        What could not be traced, with the line of the call; else empty. Then every pair is open.
    real_runs : int
        Runs with real numbers that the laws of decided pairs were held against, of all inputs together.
    """

    subject: dict[str, Any]
    claim: str
    rounding: float
    pairs: tuple[CertifiedPair, ...]
    inputs: int
    runs: int
    seconds: float
    refusal: str = ""
    real_runs: int = 0

    schema = SCHEMA

    @property
    def verdict(self) -> Verdict:
        """The worst of the pairs': "kept" only where every pair is proved to keep the claim."""
        return next((verdict for verdict in VERDICTS if any(pair.verdict == verdict for pair in self.pairs)), "open")

    @property
    def mass_left(self) -> float:
        """The largest mass that is left of any pair."""
        return max((pair.mass_left for pair in self.pairs), default=1.0)

    @property
    def worst(self) -> CertifiedPair:
        """The pair with the worst verdict, and of these the one whose loss is proved to exceed its claim the most."""
        return min(self.pairs, key=lambda pair: (VERDICTS.index(pair.verdict), -_excess(pair)))

    def __repr__(self) -> str:
        """The text that a prompt or a notebook shows: `summary`, in brackets; `to_dict` has all that it holds."""
        return f"<Certificate {self.summary()}>"

    def summary(self) -> str:
        """The verdict in one or two sentences."""
        count = f"{len(self.pairs):,} pair{'' if len(self.pairs) == 1 else 's'}"
        inputs = f"{self.inputs:,} input{'' if self.inputs == 1 else 's'}"
        if self.refusal:
            return f"Open: the mechanism cannot be traced: {self.refusal}"
        if self.verdict == "kept":
            noted = next((f" Note: {pair.id}: {pair.reason}" for pair in self.pairs if pair.reason), "")
            return (
                f"Kept: {self.claim} is proved for {'this pair' if len(self.pairs) == 1 else f'these {count}'}, by "
                f"exploring the mechanism's draws ({self.runs:,} runs on {inputs}), and held against "
                f"{self.real_runs:,} runs with real numbers. It speaks of outputs, not of what is printed.{noted}"
            )
        pair = self.worst
        if self.verdict == "violated":
            number = sum(pair.verdict == "violated" for pair in self.pairs)
            of = f"{number:,} of {count}, " if len(self.pairs) > 1 else "the pair "
            return (
                f"Violated: {self.claim} is disproved on {of}{pair.id}: {loss_text(pair)}. {event_text(pair)}".rstrip()
            )
        number = sum(pair.verdict == "open" for pair in self.pairs)
        return f"Open: nothing is proved of {number:,} of {count}. {pair.id}: {pair.reason}"

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        return {"verdict": self.verdict, **record}


def load_certificate(path: str | os.PathLike[str]) -> Certificate:
    """A saved certificate.

    Raises
    ------
    UsageError
        If there is no such file, or it is no certificate.
    """
    found: Certificate = read_saved(path, {SCHEMA: Certificate.from_dict})[0]
    return found


def short_fraction(value: Fraction) -> str:
    """A fraction for a sentence: in full where it is short, else as a decimal."""
    text = str(value) if value.denominator.bit_length() < 64 else ""
    return text if 0 < len(text) <= 24 else f"{float(value):.6g}"


def _excess(pair: CertifiedPair) -> float:
    if pair.claimed == pair.epsilon_lower:
        return 0.0
    return pair.value_lower - pair.claimed


def loss_text(pair: CertifiedPair) -> str:
    """The loss of a pair in the parameter of its claim, and what is claimed, as a clause."""
    at_least = lower_text(pair.value_lower, 6) if not pair.is_explored else f"{pair.value_lower:.6g}"
    loss = at_least if math.isfinite(pair.value_lower) else "infinity"
    # A Renyi divergence is at no delta.
    at = f" at delta {pair.delta:.6g}" if pair.delta > 0 and pair.value_lower == pair.epsilon_lower else ""
    return f"a loss of {'at least ' * (not pair.is_explored)}{loss}{at}, claimed {pair.claimed:.12g}"


def _whole(outcome: str) -> str:
    """An outcome with its integers as 0 and not 0.0; one with texts in it as it is, which may have any in them."""
    return outcome if "'" in outcome or '"' in outcome else re.sub(r"(?<![\w.])(-?\d+)\.0(?![\w.])", r"\1", outcome)


def event_text(pair: CertifiedPair) -> str:
    """The event that shows the loss of a pair, with its two probabilities, as a sentence; empty where there is none."""
    event = pair.event
    if event is None:
        return ""
    names = ", ".join(map(_whole, event.outcomes[:3])) + (", …" if event.count > 3 else "")
    what = f"The output {names}" if event.count == 1 else f"The event {{{names}}}"
    other = pair.x_prime_id if event.likelier_under == pair.x_id else pair.x_id
    first, second = short_fraction(event.probability), short_fraction(event.other_probability)
    if pair.is_explored:
        return f"{what} has probability {first} on {event.likelier_under} and {second} on {other}."
    return f"{what} has probability at least {first} on {event.likelier_under}, at most {second} on {other}."
