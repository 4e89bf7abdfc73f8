"""Certificates of random programs against all events: many programs in one certificate, with what each must say.

The expected loss is the largest (P(S) - delta) / Q(S) over *all* events S of at most 8 outcomes, in fractions: the
definition of (epsilon, delta), not the formula that certificates use. A certificate is wrong where its fraction is
another one, its interval does not hold the loss, or its verdict is not the one that the loss decides.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from random_programs import INPUTS, is_endless, kinds, law, paths, random_program, run

import dpaudit

MAX_OUTCOMES = 8
MAX_PATHS = 12
CLAIMED = (0.5, 2.0)  # with a delta, and of loops without an end
ENDLESS_OF = 8  # of so many programs without an end one is taken, as they need some hundred runs
AWAY = 0.1  # nats by which a loss must be apart from a claim that some mass cannot decide
DELTAS = (0.01, 0.2)
SECONDS = 3_600.0


def largest_ratio(p: dict[Any, Fraction], q: dict[Any, Fraction], delta: Fraction) -> Fraction | None:
    """The largest (P(S) - delta) / Q(S) over all events with P(S) > delta, both directions; None for infinity."""
    outcomes = sorted(set(p) | set(q), key=repr)
    best = Fraction(0)
    for size in range(1, len(outcomes) + 1):
        for event in itertools.combinations(outcomes, size):
            for a, b in ((p, q), (q, p)):
                first = sum((a.get(outcome, Fraction(0)) for outcome in event), Fraction(0)) - delta
                second = sum((b.get(outcome, Fraction(0)) for outcome in event), Fraction(0))
                if first > 0 and second == 0:
                    return None
                if first > 0:
                    best = max(best, first / second)
    return best


@dataclasses.dataclass(frozen=True)
class Case:
    """A program with a pair of inputs, what is claimed of it, and its loss: e^epsilon, None for infinity."""

    seed: int
    program: list[Any]
    x: int
    x_prime: int
    claimed: float
    delta: float
    expected: Fraction | None

    @property
    def loss(self) -> float:
        """In nats, to the nearest double."""
        return math.inf if self.expected is None else math.log(max(self.expected, 1))

    @property
    def verdict(self) -> str:
        """What is right: the allowance of certificates is 1e-12, and no claim is within 1e-10 of it."""
        return "kept" if self.loss <= self.claimed + 1e-12 else "violated"


def cases(first_seed: int) -> Iterator[Case]:
    """Programs that are small enough, one for a seed at most."""
    for seed in itertools.count(first_seed):
        rng = np.random.default_rng([20_261_126, seed])
        program = random_program(rng)
        if not 1 < paths(program) <= MAX_PATHS:
            continue
        if is_endless(program) and seed % ENDLESS_OF:
            continue
        if "raise" in kinds(program) and kinds(program) & {"sides", "race"}:  # several numbers without an end
            continue
        x, x_prime = rng.choice(INPUTS, size=2, replace=False).tolist()
        p, q = law(program, x), law(program, x_prime)
        assert sum(p.values()) == sum(q.values()) == 1
        if len(p.keys() | q.keys()) > MAX_OUTCOMES or len(p.keys() | q.keys()) < 2:
            continue
        delta = float(rng.choice([0.0, 0.0, *DELTAS])) if not is_endless(program) else float(rng.choice(DELTAS))
        expected = largest_ratio(p, q, Fraction(delta))
        case = Case(seed, program, x, x_prime, float(rng.choice(CLAIMED)), delta, expected)
        if delta == 0.0:  # claims at, just above and just below the loss, where a wrong digit would show, and elsewhere
            loss = case.loss if expected is not None else 0.0
            near = max(0.0, float(rng.choice([loss - 1e-9, loss, loss + 1e-9, *CLAIMED])))
            case = dataclasses.replace(case, claimed=near)
        elif is_endless(program) and abs(case.loss - case.claimed) < AWAY:
            continue
        yield case


def wrong(listed: Sequence[Case]) -> list[str]:
    """What certificates say wrongly of cases, in words; those with one delta and claim are in one certificate."""
    groups: dict[tuple[bool, float, float], list[Case]] = {}
    for case in listed:
        key = is_endless(case.program), case.delta, case.claimed if case.delta else 0.0
        groups.setdefault(key, []).append(case)
    found = []
    for (_, delta, claimed), group in groups.items():
        of = {case.seed: case for case in group}
        result = dpaudit.certify(
            lambda x, rng, of=of: run(of[x[0]].program, x[1], rng),
            claim=dpaudit.ApproxDP(claimed, delta) if delta else dpaudit.MetricDP(lambda a, _, of=of: of[a[0]].claimed),
            pairs=[((case.seed, case.x), (case.seed, case.x_prime)) for case in group],
            seconds=SECONDS,
        )
        found += [text for case, pair in zip(group, result.pairs, strict=True) if (text := fault(case, pair))]
        found += [result.refusal] if result.refusal else []
    return found


def fault(case: Case, pair: Any) -> str:
    """What is wrong with what a certificate says of one case; empty where nothing is."""
    exact = None if case.expected is None else max(case.expected, Fraction(1))
    # The ratio of the loss that is expected is rounded to a double (2^-53), and so is its logarithm.
    slack = 0.0 if math.isinf(case.loss) else 1e-15 * (1.0 + case.loss)
    problems = {
        f"verdict {pair.verdict}, right is {case.verdict}": pair.verdict != case.verdict,
        "loss outside of the interval": not pair.epsilon_lower - slack <= case.loss <= pair.epsilon_upper + slack,
        f"exact {pair.exact}, right is {exact}": pair.exact != exact
        and not (is_endless(case.program) and pair.exact is None),
        "mass is left": pair.mass_left > 0.0 and not is_endless(case.program),
    }
    said = [text for text, is_so in problems.items() if is_so]
    return f"seed {case.seed}, {case.program}: {', '.join(said)}" if said else ""
