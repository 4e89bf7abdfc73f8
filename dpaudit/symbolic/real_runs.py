"""Runs with real numbers: a law that was worked out is held against what the mechanism does.

A certificate rests on symbols that go the way of numbers. Where they do not, by an error of this package, most runs
with real generators show it. So before "kept" or "violated" is said, the mechanism is run on each input concerned, and
its outcomes must fit the law: `misfit`. No number of a certificate comes from these runs.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc

from dpaudit.features.identity import identity, with_notes
from dpaudit.running.streams import CERTIFICATE_RUNS, stream
from dpaudit.subjects.call_limits import interrupted
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.plain import seen
from dpaudit.symbolic.leaves import Leaf, Option, Tail, options, products
from dpaudit.symbolic.tracing import Suspended

RUNS = 1_000  # of each input
MAX_RUNS = 50_000  # of all inputs together, where each has more than `MIN_RUNS`
MIN_RUNS = 20  # of each input, however many there are: a wrong way mostly shows in a few
BLOCK = 20  # runs of one input before the next one has its turn
LEVEL = 1e-6  # at which a right law is called wrong, in a whole certificate
MAX_ATOMS = 1_024  # values that the tails of one leaf are divided into
MAX_OUTCOMES = 50_000  # of a law that are listed: with a thousand runs, more would say nothing


def runs_of(inputs: int) -> int:
    """Number of real runs of each input, for so many inputs."""
    return max(MIN_RUNS, min(RUNS, MAX_RUNS // max(inputs, 1)))


def real_outcomes(
    subject: Subject,
    library: str,
    inputs: Sequence[Any],
    deadline: float,
    clock: Callable[[], float] = time.monotonic,
    raised: dict[str, str] | None = None,
) -> list[collections.Counter[str]]:
    """The outcomes of runs with real generators on each input, `runs_of` them, or fewer where the time is up.

    `raised` takes the text and the place of each exception that is an outcome.
    """
    found: list[collections.Counter[str]] = [collections.Counter() for _ in inputs]
    streams = [stream(0, CERTIFICATE_RUNS, place) for place in range(len(inputs))]
    generators: list[Any] = streams
    if library == "random":
        generators = [random.Random(int(rng.integers(2**63))) for rng in streams]
    is_over = False

    def end() -> None:
        nonlocal is_over
        is_over = True
        raise Suspended

    planned = runs_of(len(inputs))
    for start in range(0, planned, BLOCK):
        for x, rng, outcomes in zip(inputs, generators, found, strict=True):
            if clock() > deadline:
                return found
            try:
                with interrupted(deadline, end):
                    for output in _block(subject, x, rng, min(BLOCK, planned - start)):
                        if is_over:  # which was an outcome to the subject
                            return found
                        outcomes[token := identity(output)] += 1
                        if raised is not None and isinstance(output, Failed):
                            raised.setdefault(token, output.described)
            except Suspended:  # between two calls, as in the reading of an output
                return found
    return found


def _block(subject: Subject, x: Any, rng: Any, count: int) -> Iterator[Any]:
    """The outputs of some calls, each made when it is asked for."""
    if subject.makes_calls_one_by_one([x]):
        return subject.observe_one_by_one(x, count, rng)
    return (subject.held_output(x, rng, seen) for _ in range(count))


def atoms(law: Mapping[Leaf, Fraction]) -> dict[str, float]:
    """The outcomes of a law with their probabilities; tails as single values, up to a bound.

    What is beyond it is left out, and counts as unexplored.
    """
    found: dict[str, float] = {}
    for leaf, mass in law.items():
        count = math.floor(MAX_ATOMS ** (1 / max(1, len(leaf.tails))) + 0.5)
        if len(found) > MAX_OUTCOMES:
            break
        for (text, _), share in products(leaf.token, [_values(tail, count) for tail in leaf.tails]):
            found[text] = found.get(text, 0.0) + float(mass * share)
    return found


def _values(tail: Tail, count: int) -> list[Option]:
    """The first values of a tail, with their shares of its mass in doubles: fractions would have many digits."""
    near = dataclasses.replace(tail, ratio=float(tail.ratio))
    return options(near, (tail.start - count, tail.start + count))[:-1]


def misfit(
    law: Mapping[str, float], counts: Mapping[str, int], level: float, described: Mapping[str, str] | None = None
) -> str:
    """Describe what of some outcomes does not fit a law; empty where they fit. Some outcomes are `described` already.

    Of the n outcomes, the number in a fixed set of outcomes with mass p in the law has the law Binomial(n, p'), for a
    p' between p and p + left, where left is what the law lacks to 1; and the number of those that the law does not list
    is Binomial(n, p') with p' <= left. The sets are the listed outcomes and, as many small differences may add up, the
    runs of 2, 4, 8, ... of them that follow each other in the law: sets that are fixed before any outcome is seen. Of
    each both tails of the exact binomial law are asked, and the level is divided among them (Bonferroni). So a right
    law is called wrong with probability at most `level`, whatever it is.

    Examples
    --------
    >>> misfit({"a": 0.5, "b": 0.5}, {"a": 510, "b": 490}, 1e-6)
    ''
    >>> misfit({"a": 0.5, "b": 0.5}, {"a": 999, "c": 1}, 1e-6)
    '1 of 1,000 runs ended in c, of probability 0 in the law'
    """
    total = sum(counts.values())
    masses, seen_in = np.array(list(law.values())), np.array([counts.get(name, 0) for name in law])
    left = min(1.0, max(0.0, 1.0 - math.fsum(law.values())))
    left = 0.0 if left < 1e-12 else left  # the rounding of up to some thousand doubles
    others = [name for name in counts if name not in law]
    names = [[name] for name in law]
    sets: list[tuple[list[str], float, float, int]] = [
        (others, 0.0, left, total - int(seen_in.sum())),
        *((group, mass, min(1.0, mass + left), count) for group, mass, count in _dyadic(names, masses, seen_in)),
    ]
    low, high, found = (np.array([one[k] for one in sets], dtype=float) for k in (1, 2, 3))
    fewer = bdtr(found, total, np.clip(low, 0.0, 1.0))
    more = np.where(found > 0, bdtrc(np.maximum(found - 1, 0), total, high), 1.0)
    worst = int(np.argmin(np.minimum(fewer, more)))
    if min(fewer[worst], more[worst]) >= level / (2 * len(sets)):
        return ""
    group, mass, upper, count = sets[worst]
    known = described or {}
    shown = ", ".join(known.get(name, with_notes(name)[:80]) for name in group[:3]) + (", …" if len(group) > 3 else "")
    probability = f"{mass:.6g}" if mass == upper or fewer[worst] < more[worst] else f"at most {upper:.6g}"
    return f"{count:,} of {total:,} runs ended in {shown}, of probability {probability} in the law"


def _dyadic(names: list[list[str]], masses: Any, counts: Any) -> Iterator[tuple[list[str], float, int]]:
    """Single outcomes, and runs of 2, 4, 8, ... of them."""
    while len(names):
        yield from zip(names, masses.tolist(), counts.tolist(), strict=True)
        if len(names) == 1:
            return
        names = [list(itertools.chain(*names[k : k + 2])) for k in range(0, len(names), 2)]
        masses, counts = (np.add.reduceat(values, range(0, len(values), 2)) for values in (masses, counts))
