"""Distances of two inputs before any noise is drawn: one run of each with its noise as symbols, no sampling.

This is the one file by which the search for sensitivities and the judge read recorded runs (`dpaudit.symbolic`). The
distance of a pair ranks pairs and proves nothing: its `recorder` says what follows for the claim.

The distance adds, on one stream for both inputs (the largest of `STREAMS` where some draws are not followed),

* each noisy number of the output: what its noise-free parts differ by, in scales of its noise (normal noise is added in
  squares, as its losses are);
* each decision of known probabilities: the largest log ratio of them, up to the first that goes another way;
* each look at a noisy value, where a program rounds or compares two of them: the same difference, in scales; and then
  what the outputs differ by;
* `DIFFERENT` for a form, a number without noise, or an exception that only one input has. It is infinite where nothing
  was decided or looked at before, so that all outputs of the one are impossible on the other.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.neighbours import claim_of_candidate
from dpaudit.subjects.callables import Subject
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.laws import Law
from dpaudit.symbolic.noise_judging import SLACK
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.recorded_noise import Recorder
from dpaudit.symbolic.runs import Path, check_runs, is_within, run
from dpaudit.symbolic.tape import Decision, Tape

DIFFERENT = 50.0  # scales: above what noise of any use hides, below what would hide all other differences
TINY = 1e-300  # a probability that stands for 0 in a log ratio
STREAMS = 4  # of an input, where what is not followed (an order, a subset) may hide the difference on one of them
MAX_KEPT = 4_000  # runs that are kept, of some kilobytes each
SCALE_WEIGHT = 20.0  # of the log ratio of two scales, as noise of another scale has an unbounded ratio in its tails


class NoiseFree:
    """Noise-free runs of one subject; an input is run once. `UsageError` if the subject runs in another process.

    Pairs of which the claim asks nothing are no pairs; where each has a budget of its own, distances are shares of it.
    The seed is of streams of the purpose `RECORDED`, which no audit draws from. The `recorder` counts all runs.

    Examples
    --------
    >>> from dpaudit import PureDP, as_subject
    >>> def total(values, rng):
    ...     return sum(values) + rng.laplace(scale=0.5)
    >>> NoiseFree(as_subject(total), PureDP(1.0), 1).distance([0.0], [1.0])
    2.0
    """

    def __init__(self, subject: Subject, claim: Claim, seed: int, depends: Dependence | None = None) -> None:
        check_runs(subject)
        self.subject, self.claim, self.seed = subject, claim, seed
        self.depends = depends
        self.recorder = Recorder(subject, claim, seed, depends=depends)
        self.only_adds = True  # whether all noise so far was added and returned: then the distance is the loss itself
        self.problem = ""  # of the last input that could not be run with symbols
        self._known: dict[Any, tuple[Any, tuple[Path, ...]]] = {}

    def distance(self, x: Any, x_prime: Any) -> float | None:
        """The distance of a pair; None where the claim asks nothing of it, or a run cannot be followed."""
        claim = claim_of_candidate(self.claim, x, x_prime)
        if claim.is_vacuous:
            return None
        found = self.apart(x, x_prime)
        # Of a budget that is tiny, a proof has to be above the slack.
        return found if found is None or not self.claim.depends_on_pair else found / (claim.value + SLACK)

    def apart(self, x: Any, x_prime: Any) -> float | None:
        """The distance of any two inputs, whatever the claim says of them."""
        paths = self._paths(x), self._paths(x_prime)
        for path in itertools.chain(*paths):
            if path.problem:
                self.problem = path.problem
                return None
        return max(itertools.starmap(_apart, zip(*paths, strict=False)))

    def _paths(self, x: Any) -> tuple[Path, ...]:
        """The run of an input; on some streams where numbers are drawn that symbols do not follow."""
        key = identity_of(x)
        if key not in self._known:
            if len(self._known) >= MAX_KEPT:
                self._known.clear()
            own = self.recorder
            tape = functools.partial(Tape, self.seed, is_quick=True, depends=self.depends, deadline=own.deadline)
            paths = [run(self.subject, x, tape(0))]
            first = paths[0].tape
            if (first.others or any(map(_is_order, first.decisions))) and not paths[0].problem:
                paths += [run(self.subject, x, tape(number)) for number in range(1, STREAMS)]
            self.recorder.runs += len(paths)
            tapes = [path.tape for path in paths]
            self.only_adds &= not any(one.decisions or one.looks or one.others or one.is_opaque for one in tapes)
            self._known[key] = (x, tuple(paths))  # the input is kept: its id stays its own
        return self._known[key][1]


def _is_order(decision: Decision) -> bool:
    """True where one of some equally likely ways was drawn: the next run may go another one."""
    p = decision.probabilities
    return decision.what != "comparison" and len(p) > 1 and max(p) - min(p) < 1e-12


def _apart(first: Path, second: Path) -> float:
    tapes, plain = (first.tape, second.tape), 0.0
    is_in_order = bool(first.tape.others)
    for one, other in zip(tapes[0].decisions, tapes[1].decisions, strict=False):
        if len(one.probabilities) != len(other.probabilities):
            return plain + DIFFERENT
        ratios = [
            abs(math.log(max(p, TINY)) - math.log(max(q, TINY)))
            for p, q in zip(one.probabilities, other.probabilities, strict=True)
        ]
        # Behind an order other ways lead to what is refused: of a test the probability that it is passed, as in
        # permute-and-flip, where a refusal in one order is a passed test in another.
        plain += ratios[0] if is_in_order else max(ratios)
        is_in_order = is_in_order or _is_order(one)
        if one.outcome != other.outcome:
            return plain
    lengths = [len(tape.decisions) for tape in tapes]
    if lengths[0] != lengths[1]:
        # Where one input decides the other may be certain: of a test `random() < p`, that p is 1.
        longer = max(tapes, key=lambda tape: len(tape.decisions))
        certain = longer.decisions[min(lengths)].probabilities[0]
        return plain + min(-math.log(max(certain, TINY)), DIFFERENT)
    scale = min((_scale(noise.law) for tape in tapes for noise in tape.noises if noise.law.scale > 0.0), default=1.0)
    for value, other_value in zip(tapes[0].looks, tapes[1].looks, strict=False):
        gap = abs(value - other_value)
        plain += gap / scale if math.isfinite(gap) else DIFFERENT
    if any(tape.is_opaque for tape in tapes):
        return plain + _moved(first, second, scale)
    is_sure = not any(tape.decisions for tape in tapes)
    different = math.inf if is_sure else DIFFERENT
    a, b = first.output, second.output
    if a is None or b is None:
        return plain + (0.0 if a is b and first.raised == second.raised else different)
    if a.skeleton != b.skeleton:
        return plain + different
    shifts: tuple[dict[tuple[int, ...], float], ...] = ({}, {})  # of noise, and of normal noise; by what numbers share
    for u, v in zip(a.leaves, b.leaves, strict=True):
        if isinstance(u, Noisy) and isinstance(v, Noisy):
            more, shift = _of_number(u, v)
            plain += more
            own = shifts[all(u.tape.noises[i].law.family == "normal" for i in u.terms)]
            own[tuple(sorted(u.terms))] = max(own.get(tuple(sorted(u.terms)), 0.0), shift)
        elif isinstance(u, Noisy) or isinstance(v, Noisy) or not is_within([u], [v])[0]:
            plain += different
            break
    return plain + sum(shifts[0].values()) + math.hypot(*shifts[1].values())


def _moved(first: Path, second: Path, scale: float) -> float:
    """Distance between the outputs of two runs, in scales, where a program made numbers of its noise."""
    a, b = first.output, second.output
    if a is None or b is None or a.skeleton != b.skeleton:
        return 0.0  # the noise may have decided it
    gaps = [abs(u - v) for u, v in zip(a.values(), b.values(), strict=True)]
    return sum(gap / scale if math.isfinite(gap) else 0.0 for gap in gaps)


def _scale(law: Law) -> float:
    """The difference that costs one nat, or one standard deviation."""
    if not law.is_discrete:
        return law.scale
    ratio = law.scale if law.family == "two-sided geometric" else 1.0 - law.scale
    return 1.0 / -math.log(ratio) if 0.0 < ratio < 1.0 else 1e-9


def _of_number(u: Noisy, v: Noisy) -> tuple[float, float]:
    """Distance of the scales and grains of two noisy numbers, and that of the numbers, in scales."""
    scales = [math.hypot(*(f * _scale(leaf.tape.noises[i].law) for i, f in leaf.terms.items())) for leaf in (u, v)]
    gap, smallest, more = abs(u.signal - v.signal), min(scales), 0.0
    if not math.isfinite(gap):
        return 0.0 if is_within([u.signal], [v.signal])[0] else DIFFERENT, 0.0
    if smallest > 0.0 and abs(math.log(scales[0] / scales[1])) > 1e-9:
        more += SCALE_WEIGHT * abs(math.log(scales[0] / scales[1]))
    grains = {abs(factor) for leaf in (u, v) for i, factor in leaf.terms.items() if leaf.tape.noises[i].law.is_discrete}
    if len(grains) == 1 and all(leaf.tape.noises[i].law.is_discrete for leaf in (u, v) for i in leaf.terms):
        steps = gap / grains.pop()
        if abs(steps - round(steps)) > 1e-9 * (1.0 + steps):  # no output of the one is one of the other
            more += DIFFERENT
    return more, gap / smallest if smallest > 0.0 else DIFFERENT
