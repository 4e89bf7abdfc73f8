"""A mechanism under check: the subject, its claim and pairs, and the streams and error rate of each check."""

from __future__ import annotations

import copy
import dataclasses
import functools
import inspect
import math
import numbers
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dpaudit.audits.auditing import audit
from dpaudit.conformance.outcomes import CheckFailed, CheckSkipped
from dpaudit.conformance.recorded import Recorded
from dpaudit.conformance.registry import statistical_count
from dpaudit.errors import UsageError
from dpaudit.features.outcomes import Outcomes, read_outputs
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.pairs import Pair, as_pairs
from dpaudit.privacy.parsing import as_claim
from dpaudit.results.model import AuditResult
from dpaudit.running.streams import CHECK_DRAWS, stream
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.copies import copied
from dpaudit.subjects.targets import what_raised

MAX_LISTED = 200  # pairs that are looked at at all
MAX_PAIRS = 6  # that are audited
MAX_INPUTS = 4  # that the other checks look at
KINDS = ("number", "vector", "counts", "position", "records")
BUDGET_NAMES = ("epsilon", "delta", "rho", "mu", "scale", "sigma", "c", "metric")
GIVES_BUDGET = ("epsilon", "rho", "mu")  # parameters that are a budget: the larger, the less noise


class Case:
    """Everything that the checks of one mechanism share. Parts are made where they are first asked for.

    `seed` is of all checks, `samples` of the audits, and `error_rate` of the whole list.
    """

    def __init__(
        self,
        mechanism: Any,
        claim: Claim | str | None,
        pairs: Iterable[Any] | None,
        seed: int,
        samples: int,
        error_rate: float,
        target: str | None = None,
    ) -> None:
        self.mechanism = mechanism
        # Before any call: noise that a mechanism keeps from its first call would be in every later copy.
        self._untouched = _copies([mechanism])[0]
        self._claim, self._pairs = claim, pairs
        self.seed, self.samples = seed, samples
        self.level = error_rate / statistical_count()
        self.target = target

    @functools.cached_property
    def subject(self) -> Subject:
        """The mechanism as a subject."""
        return as_subject(self.mechanism, self.target)

    @functools.cached_property
    def _recorded(self) -> Recorded:
        # Validity: no two inputs share a stream. Those of the pairs are numbered before any run, so that what a law
        # sees of them does not depend on which laws were checked before; others as they come.
        ends = (data for pair in self.listed for data in (pair.x, pair.x_prime))
        numbers = {key: number for number, key in enumerate(dict.fromkeys(map(identity_of, ends)))}

        def stream_of(data: Any) -> np.random.Generator:
            return self.rng("recorded runs", numbers.setdefault(identity_of(data), len(numbers)))

        return Recorded(self.subject, stream_of)

    @property
    def replayed(self) -> Subject:
        """The subject for one more law: of one that is called once a draw, the runs that others have seen too."""
        if self.subject.is_vectorised:
            return self.subject
        _ = self.audit  # whichever law is the first: all see the runs of the claim's audit before others
        return self._recorded.replayed()

    @functools.cached_property
    def claim(self) -> Claim | None:
        """The claim that was given, else the mechanism's own; None where there is none."""
        try:
            given = self._claim if self._claim is not None else self.subject.claim
        except UsageError:
            raise
        except Exception as error:
            raise UsageError(f"claim of {self.subject.name} must be a Claim, got {what_raised(error)}.") from error
        if given is None and hasattr(self.subject.mechanism, "claim"):
            kind = type(self.subject.mechanism.claim).__name__
            raise UsageError(f"claim of {self.subject.name} must be a Claim, got {kind}. For example PureDP(1.0).")
        return None if given is None else self.subject.neighbouring(as_claim(given))

    @functools.cached_property
    def listed(self) -> tuple[Pair, ...]:
        """The pairs that were given, else the mechanism's own; of more than `MAX_LISTED`, so many at equal steps."""
        try:
            given = self._pairs if self._pairs is not None else self.subject.pairs()
            own = given if given is None or isinstance(given, Sequence) else list(given)
        except UsageError:
            raise
        except Exception as error:
            name = self.subject.name
            raise UsageError(f"pairs of {name} must be a list of (x, x_prime), got {what_raised(error)}.") from error
        if own is None:
            return ()
        if len(own) > MAX_LISTED:
            own = [own[k * len(own) // MAX_LISTED] for k in range(MAX_LISTED)]
        return tuple(_copies(as_pairs(own))) if len(own) else ()

    @functools.cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """At most `MAX_PAIRS` of them: those whose budgets are nearest to one nat, on a logarithmic scale.

        There an excess is the easiest to see. Without a claim, and among equals, the first ones.
        """
        if self.claim is None:
            return self.listed[:MAX_PAIRS]
        budgets = [self.claim.for_pair(pair.x, pair.x_prime).budget.epsilon for pair in self.listed]
        distance = [abs(math.log(budget)) if 0.0 < budget < math.inf else math.inf for budget in budgets]
        chosen = sorted(range(len(budgets)), key=lambda k: (distance[k], k))[:MAX_PAIRS]
        return tuple(self.listed[k] for k in chosen)

    @functools.cached_property
    def _pristine(self) -> list[Any]:
        found: dict[Any, Any] = {}
        for pair in self.pairs:
            for data in (pair.x, pair.x_prime):
                found.setdefault(identity_of(data), data)
        return _copies(list(found.values())[:MAX_INPUTS])

    @property
    def inputs(self) -> list[Any]:
        """Different inputs of the pairs, at most `MAX_INPUTS`, copied each time; skips where none is known.

        Copies: a mechanism that changes its input must not change that of the next check.
        """
        if not self._pristine:
            raise CheckSkipped("no input is known: the mechanism has no pairs(), and none were given")
        return _copies(self._pristine)

    @functools.cached_property
    def audit(self) -> AuditResult:
        """The audit of the claim on the pairs, at the share of one check, without the floating-point check."""
        subject = self.subject if self.subject.is_vectorised else self._recorded.noted()
        return self.audited(subject, self.asked_claim, self.pairs, "claim_audit", self.samples)

    @property
    def asked_claim(self) -> Claim:
        """The claim; skips where there is none, or no pair."""
        if self.claim is None:
            raise CheckSkipped("no claim is known: the mechanism has no claim, and none was given")
        if not self.pairs:
            raise CheckSkipped("no pair is known: the mechanism has no pairs(), and none were given")
        return self.claim

    def audited(
        self,
        mechanism: Any,
        claim: Claim,
        pairs: Iterable[Any] | None,
        name: str,
        samples: int,
        inconclusive_factor: float = 2.0,
    ) -> AuditResult:
        """An audit at the share of one check, with a seed of its own."""
        seed = int(np.random.SeedSequence(self.seed, spawn_key=(CHECK_DRAWS, _key(name))).generate_state(1)[0])
        return audit(
            mechanism,
            claim,
            pairs,
            samples=samples,
            confidence=1.0 - self.level,
            seed=seed,
            floating_point=False,
            inconclusive_factor=inconclusive_factor,
        )

    def rng(self, check: str, *key: int) -> np.random.Generator:
        """A stream of one check's own."""
        return stream(self.seed, CHECK_DRAWS, _key(check), *key)

    def draw(self, data: Any, size: int, check: str, *key: int, subject: Subject | None = None) -> Any:
        """`size` outputs as the mechanism gives them, copied: the next call may write into them."""
        return copied((subject or self.subject).sample(data, size, self.rng(check, *key)))

    def read(self, data: Any, size: int, check: str, *key: int, subject: Subject | None = None) -> Outcomes:
        """`size` outcomes, as an audit reads them; a batch is copied, since the next call may write into it."""
        subject = subject or self.subject
        outputs = subject.observe(data, size, self.rng(check, *key))
        return read_outputs(copied(outputs) if subject.is_vectorised else outputs, size)

    @property
    def stated_kind(self) -> str | None:
        """The mechanism's own `input_kind`; None where it has none."""
        stated = getattr(self.subject.mechanism, "input_kind", None)
        if stated is not None and stated not in KINDS:
            raise UsageError(f"input_kind of {self.subject.name} must be one of {', '.join(KINDS)}, got {stated!r}.")
        return stated

    @property
    def input_kind(self) -> str:
        """Kind of the inputs: as the mechanism states it (`input_kind`), else "number", "sequence" or "other"."""
        if self.stated_kind is not None:
            return self.stated_kind
        x = self.inputs[0]
        if isinstance(x, numbers.Real) and not isinstance(x, bool):
            return "number"
        is_sequence = isinstance(x, list | tuple) or (isinstance(x, np.ndarray) and x.ndim > 0)
        return "sequence" if is_sequence and len(x) else "other"

    def copied(self) -> Any:
        """A deep copy of the mechanism as it was before any call; the mechanism itself where it cannot be copied."""
        return as_subject(_copies([self._untouched])[0]).mechanism

    def with_mechanism(self, mechanism: Any) -> Subject:
        """Another mechanism, called in the same way."""
        return dataclasses.replace(self.subject, mechanism=mechanism)

    def rebuilt(self, **changes: Any) -> Any:
        """The mechanism with other parameters of its constructor; skips where it does not say how it was made."""
        return type(self.subject.mechanism)(**{**self.parameters(), **changes})

    def parameters(self) -> dict[str, Any]:
        """The constructor's parameters that are attributes of the same names; skips where one is missing."""
        mechanism = self.subject.mechanism
        if dataclasses.is_dataclass(mechanism) and not isinstance(mechanism, type):
            return {f.name: getattr(mechanism, f.name) for f in dataclasses.fields(mechanism) if f.init}
        if self.subject.interface != "sample(data, size, rng)":
            raise CheckSkipped("a function has no parameters to change")
        signature = inspect.signature(type(mechanism))
        names = [p.name for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        missing = [name for name in names if not hasattr(mechanism, name)]
        if missing:
            raise CheckSkipped(f"the constructor's parameter {missing[0]!r} is no attribute, so nothing can be rebuilt")
        return {name: getattr(mechanism, name) for name in names}

    def with_budget(self, factor: float) -> Any:
        """The mechanism with `factor` times the budget: its own `with_budget(factor)`, or by a parameter."""
        own = getattr(self.subject.mechanism, "with_budget", None)
        if callable(own):
            return own(factor)
        parameters = self.parameters()
        for name in GIVES_BUDGET:
            value = parameters.get(name)
            if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0.0 < float(value) < math.inf:
                return self.rebuilt(**{name: float(value) * factor})
        if isinstance(parameters.get("claim"), Claim):
            claim = parameters["claim"]
            return self.rebuilt(claim=claim.with_value(claim.value * factor))
        if isinstance(parameters.get("metric"), np.ndarray):
            return self.rebuilt(metric=parameters["metric"] * factor)
        raise CheckSkipped(f"no parameter {', '.join(GIVES_BUDGET)} and no with_budget(factor) says how to change it")


def _copies(values: list[Any]) -> list[Any]:
    """Deep copies; the values themselves where they cannot be copied."""
    try:
        return copy.deepcopy(values)
    except Exception:
        return values


def p_text(p_value: float) -> str:
    """A p-value for a message; never 0, which a rounded one is not."""
    return f"p = {p_value:.2g}" if p_value > 1e-300 else "p < 1e-300"


def _key(name: str) -> int:
    """A check's part of a stream's key: its name's, so that new checks leave the streams of the others alone."""
    return zlib.crc32(name.encode())


def tokens(outcomes: Outcomes) -> list[str]:
    """Canonical texts of outcomes: equal for equal outputs, bit by bit."""
    found = outcomes.as_objects().tokens
    return [] if found is None else [str(token) for token in found]


def shown(values: Sequence[Any], most: int = 3) -> str:
    """A few tokens for a message, on one line."""
    text = ", ".join(str(value)[:24] for value in list(values)[:most])
    return f"[{text}{', ...' if len(values) > most else ''}]"


def all_failed(outputs: Any) -> bool:
    """Tell whether every call of a batch raised."""
    return isinstance(outputs, list) and bool(outputs) and all(isinstance(output, Failed) for output in outputs)


def fail(message: str) -> None:
    """Raise `CheckFailed`."""
    raise CheckFailed(message)


def raised(error: BaseException) -> str:
    """An exception of the mechanism on one line: what it raised itself, not how the auditor wrapped it."""
    return what_raised(error.__cause__ or error)
