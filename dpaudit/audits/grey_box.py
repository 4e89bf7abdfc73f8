"""The grey box: x and x_prime on the same random streams, compared run by run. No statistics, tens of runs.

Where a mechanism takes a generator, a run is a function of its input and of a stream. `replay_same_randomness` runs
both inputs of a pair on the same streams, on generators that note every call (`symbolic.generators`). What
differs has a grade:

* **definite**: the loss is infinite, by logic alone. An input takes nothing from its generator, so that its output is
  one value; on the other input a run gave another output. That output has probability 0 under the one and more under
  the other, so no epsilon holds (with a delta only where neither takes anything, which makes the masses 0 and 1).
* **implied**: run once more on symbols in the place of its noise, an output is a function of noise of known laws that
  loses more than the claim allows (`dpaudit.symbolic.recorded_noise` calls it proved, if the primitives draw what they
  say).
* **hint**: consumption, the sequence of calls, the scale of the noise, or a number that did not vary differ. That is no
  violation in itself: a rejection sampler and a sparse vector draw more or less often by what they draw. It tells the
  label game, and the search for pairs, where to look.
* **not recorded**: nothing of this differs, and an output is no function of noise that was recorded, or its loss has no
  bound here. What it loses is not known.
* **same**: nothing of this differs, and the noise that was recorded loses no more than the claim allows.

All of it rests on the protocol: the mechanism's randomness is from its generator alone. One whose runs do not repeat on
the same stream is not examined. What a program in another process draws cannot be seen: only its outputs are compared,
so that a pair of it has hints, or nothing is said of it. Nothing here enters a verdict or a bound of an audit.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args

import numpy as np

from dpaudit.arguments import RngLike, seed_from, with_near_names
from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import Outcomes, join, read_outputs
from dpaudit.features.reader import Reader
from dpaudit.privacy.claims import LARGEST_EPSILON, Claim, whole_number
from dpaudit.privacy.pairs import Pair, as_pairs, counted_pairs, differing_pairs
from dpaudit.results.model import SideFinding, to_json
from dpaudit.running.streams import GREY_BOX, root_of, stream
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.stated import known_claim, known_pairs
from dpaudit.symbolic.generators import Log, NumpyRng, first_apart, words_between
from dpaudit.symbolic.recorded_noise import LISTED, MAX_PAIRS, Recorder, in_nats

KIND = "same_randomness"
RUNS = 16  # of each input, by default, and paths of an input on symbols in the place of noise
MIN_RUNS = 4  # fewer show nothing that varies
Grade = Literal["definite", "implied", "hint", "not recorded", "same"]
GRADES: tuple[Grade, ...] = get_args(Grade)
HINTS = ("constant", "outcome", "scale", "branches", "consumption")  # the most telling first


@dataclasses.dataclass(frozen=True)
class Hint:
    """Something that differs between x and x_prime on the same streams.

    Attributes
    ----------
    kind : {"constant", "outcome", "scale", "branches", "consumption"}
        A number of the output that did not vary; a run that raised on one side; the scale of a noise; the sequence of
        calls; the words taken from the stream.
    runs : tuple of int
        The runs in which it differs.
    text : str
        In words, for the first of them.
    """

    kind: str
    runs: tuple[int, ...]
    text: str


@dataclasses.dataclass(frozen=True)
class GreyBoxPair:
    """Result of the replay of one pair.

    Attributes
    ----------
    id, x_id, x_prime_id : str
    grade : {"definite", "implied", "hint", "not recorded", "same"}
        See the module.
    statement : str
        What is definite or implied, with its condition; else empty.
    implied_loss : float or None
        Loss in nats that the recorded noise proves, inf where it has no bound; else an upper bound in the claim's own
        parameter. None where the noise is not recorded.
    hints : tuple of Hint
    """

    id: str
    x_id: str
    x_prime_id: str
    grade: Grade
    statement: str = ""
    implied_loss: float | None = None
    hints: tuple[Hint, ...] = ()


@dataclasses.dataclass(frozen=True)
class GreyBoxResult:
    """Result of the replay of all pairs; `side_finding()` is the form that an audit keeps.

    Attributes
    ----------
    subject : str
    claim : str or None
    seed : int
        Run k takes the stream `numpy.random.SeedSequence(seed, spawn_key=(52, k))` on every input.
    runs : int
        Runs of an input.
    samples : int
        Runs of the mechanism, all of them.
    pairs : tuple of GreyBoxPair
        The worst first.
    message : str
        Why nothing was compared, else empty.
    outputs_only : bool
        Whether only outputs could be compared, as of a program in another process; `pairs` are then those with hints.
    """

    subject: str
    claim: str | None
    seed: int
    runs: int
    samples: int
    pairs: tuple[GreyBoxPair, ...]
    message: str = ""
    outputs_only: bool = False

    @property
    def grade(self) -> Grade:
        """The first of `GRADES` that any pair has; "not recorded" where nothing was compared."""
        return next((grade for grade in GRADES if any(pair.grade == grade for pair in self.pairs)), "not recorded")

    def side_finding(self) -> SideFinding:
        """The finding of an audit: "found" for what is definite or implied; hints alone are "nothing_found"."""
        if self.message:
            return SideFinding(KIND, "not_applicable", self.message)
        counts = {grade: sum(pair.grade == grade for pair in self.pairs) for grade in GRADES}
        worst = self.pairs[0]
        if worst.grade in ("definite", "implied"):
            summary = f"{worst.grade.capitalize()}, pair {worst.id}: {worst.statement}"
        elif worst.grade == "hint":
            only = " Only outputs could be compared." if self.outputs_only else ""
            summary = (
                f"Nothing definite on {self.runs} equal streams; {differing_pairs(counts['hint'], len(self.pairs))} "
                f"in a way that does not prove a violation, pair {worst.id}: {worst.hints[0].text}{only}"
            )
        else:
            summary = (
                f"Both inputs drew the same and called the same on {self.runs} equal streams "
                f"({counted_pairs(len(self.pairs))}); their outputs may differ."
            )
            if worst.grade == "not recorded":
                rest = f"Of {counts['not recorded']} of {len(self.pairs)} pairs" if counts["same"] else "Of these"
                summary += f" {rest} the outputs are no known function of noise, and their loss is not known."
        found = worst.grade in ("definite", "implied")
        details = {
            "seed": self.seed,
            "spawn_keys": [[GREY_BOX, run] for run in range(self.runs)],
            "streams": "run k of every input: numpy.random.default_rng(numpy.random.SeedSequence(seed, spawn_key))",
            "samples": self.samples,
            "grades": counts,
            "pairs": [dataclasses.asdict(pair) for pair in self.pairs[:LISTED]],
        }
        return SideFinding(KIND, "found" if found else "nothing_found", summary, None, to_json(details))


@with_near_names
def replay_same_randomness(
    mechanism: Any,
    pairs: Iterable[Any] | None = None,
    claim: Claim | str | None = None,
    *,
    runs: int = RUNS,
    seed: int | None = None,
    rng: RngLike = None,
) -> GreyBoxResult:
    """Run x and x_prime of each pair on the same random streams, and say what differs.

    Parameters
    ----------
    mechanism : object or callable
        As for `dpaudit.audit`; it must take a generator.
    pairs : iterable of (x, x_prime) or Pair, optional
        The mechanism's own by default; at most 200.
    claim : Claim or str, optional
        What noise-free parts are compared with; the mechanism's own by default. Without one nothing is implied.
    runs : int
        Streams on which an input is run, at least 4.
    seed, rng
        As for `dpaudit.audit`.

    Returns
    -------
    GreyBoxResult
        Of a mechanism that takes no generator its `message` says so.

    Examples
    --------
    >>> def count(data, rng):  # noise for a sensitivity of 1, but every record counts twice
    ...     return 2.0 * len(data) + rng.laplace(scale=1.0)
    >>> result = replay_same_randomness(count, [([], [5])], "eps=1", seed=1)
    >>> result.grade, result.pairs[0].implied_loss
    ('implied', 2.0)
    """
    seed = seed_from(seed, rng)
    subject = as_subject(mechanism)
    promise, given = known_claim(subject, claim), known_pairs(subject, pairs)
    whole_number("runs", runs, f"an integer of at least {MIN_RUNS}", MIN_RUNS)
    chosen = [entry for entry, _ in zip(given, range(MAX_PAIRS), strict=False)]
    return GreyBox(subject, promise, root_of(seed), runs).examine(as_pairs(chosen))


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of one input: its outcome, the log of its calls, and the words that the stream moved on."""

    outcome: Outcomes
    log: Log
    words: int

    @property
    def took_nothing(self) -> bool:
        """Tell whether the generator was left as it was, and nobody had the stream itself."""
        return self.words == 0 and self.log.count == 0 and not self.log.is_open

    @property
    def token(self) -> str:
        """The outcome as a text that equal outcomes share."""
        tokens = self.outcome.as_objects().tokens
        return "" if tokens is None else str(tokens[0])

    @property
    def failed(self) -> bool:
        """Tell whether the call raised."""
        return bool(self.outcome.raw) and isinstance(self.outcome.raw[0], Failed)


class _NotComparedError(Exception):
    """Reason why runs on the same streams say nothing."""


class GreyBox:
    """Replays inputs of one subject on the same streams; an input is run once, whatever the number of its pairs."""

    def __init__(self, subject: Subject, claim: Claim | None, seed: int, runs: int = RUNS) -> None:
        self.subject = dataclasses.replace(subject, one_by_one=True) if subject.is_vectorised else subject
        self.claim, self.seed, self.runs = claim, seed, runs
        self._runs_taken = 0
        is_here = not (subject.is_program or subject.is_contained)
        self.recorder = Recorder(subject, claim, seed, RUNS) if is_here else None
        # What an isolated subject asks of its generator is asked in another process, which keeps no record.
        self.outputs_only = subject.is_contained or bool(getattr(subject.mechanism, "outputs_only", False))
        roles = {role for _, role in subject.keywords} - {"size"}
        takes = roles - {"seed"} or ("rng" in subject.interface and not roles)
        self.outputs_only |= "random" in roles  # of it a seed alone is drawn from the stream
        self.why_not = ""
        if not takes:
            self.why_not = f"{subject.name} takes no generator, so that it cannot be run on a given stream."
        elif not subject.replayable:
            self.why_not = f"{subject.name} says that it has randomness of its own."

    @property
    def samples(self) -> int:
        """Runs of the mechanism so far, those on symbols too."""
        return self._runs_taken + (self.recorder.runs if self.recorder is not None else 0)

    def examine(self, pairs: Sequence[Pair]) -> GreyBoxResult:
        """The replay of all pairs, the worst first; stops where a run does not repeat."""
        found: list[GreyBoxPair] = []
        message = self.why_not
        try:
            found = [] if message else self._compared(pairs)
        except _NotComparedError as error:
            message = str(error)
        if self.outputs_only:
            found = [pair for pair in found if pair.hints]
            if not found and not message:
                message = (
                    f"Only the outputs of {self.subject.name} could be compared, not what it draws itself: "
                    f"on {self.runs} equal streams they do not show a difference, which says nothing about the claim."
                )
        claim, figures = None if self.claim is None else str(self.claim), (self.seed, self.runs, self.samples)
        return GreyBoxResult(self.subject.name, claim, *figures, tuple(found), message, self.outputs_only)

    def _compared(self, pairs: Sequence[Pair]) -> list[GreyBoxPair]:
        found: list[GreyBoxPair] = []
        sides: dict[int, tuple[Run, ...]] = {}
        for pair in pairs:
            for x in (pair.x, pair.x_prime):
                if id(x) not in sides:
                    sides[id(x)] = self._side(x)
            found.append(self._compare(pair, sides[id(pair.x)], sides[id(pair.x_prime)]))
        return sorted(found, key=lambda pair: (GRADES.index(pair.grade), -(pair.implied_loss or 0.0)))

    def _side(self, x: Any) -> tuple[Run, ...]:
        """The runs of one input."""
        try:
            runs = tuple(self._run(x, run) for run in range(self.runs))
            again = self._run(x, 0)
        except SubjectError as error:  # what it returns cannot be read: an audit will say so
            raise _NotComparedError(str(error)) from error
        # What takes nothing from its generator is a function of its input alone.
        self._check_repeats(_is_same(again, runs[0]) and len({run.token for run in runs if run.took_nothing}) <= 1)
        return runs

    def _check_repeats(self, is_same: bool) -> None:
        if not is_same:
            raise _NotComparedError(
                f"{self.subject.name} does not repeat its output on the same stream: it has other randomness, or "
                "keeps something between calls."
            )

    def _compare(self, pair: Pair, first: Sequence[Run], second: Sequence[Run]) -> GreyBoxPair:
        """Grade the differences between the two inputs of a pair."""
        hints = tuple(_hints(first, second))
        graded = functools.partial(GreyBoxPair, pair.id, pair.x_id, pair.x_prime_id, hints=hints)
        claim = in_nats(self.claim.for_pair(pair.x, pair.x_prime)) if self.claim is not None else None
        if claim is not None and claim.is_vacuous:
            return graded("hint" if hints else "same")
        if (definite := _definite(pair, first, second, claim)) is not None:
            statement, place, run = definite
            # Randomness that no generator shows may give a rare output on one run of many: it is to come again.
            x, seen = ((pair.x, first), (pair.x_prime, second))[place]
            self._check_repeats(_is_same(self._run(x, run), seen[run]))
            return graded("definite", statement, math.inf)
        recorded = self.recorder.pair(pair) if self.recorder is not None and not self.outputs_only else None
        if recorded is None or recorded.grade in ("not recorded", "implied"):  # a bound alone is no loss
            return graded("hint" if hints else "not recorded")
        if recorded.grade == "proved":
            return graded("implied", recorded.statement, recorded.loss)
        loss = recorded.implied if recorded.implied is not None else recorded.loss
        return graded("hint" if hints else "same", implied_loss=loss)

    def _run(self, x: Any, run: int) -> Run:
        given = stream(self.seed, GREY_BOX, run)  # its bits are those of the spawn key, which it does not show
        bits = given.bit_generator
        self._runs_taken += 1
        log, before = Log(bits), bits.state
        if self.subject.is_contained:
            log.bits()
            return Run(read_outputs(self.subject.sample(x, 1, given), 1), log, 0)
        outputs = self.subject.sample(x, 1, NumpyRng(log, bits))
        return Run(read_outputs(outputs, 1), log, words_between(before, bits.state))


def _is_same(again: Run, run: Run) -> bool:
    """Compare a run with an earlier one on the same stream: the same output, and as much taken."""
    return again.token == run.token and again.words == run.words


def _definite(
    pair: Pair, first: Sequence[Run], second: Sequence[Run], claim: Claim | None
) -> tuple[str, int, int] | None:
    """Reason why the pair's loss is infinite whatever the noise, and the side and the run whose output shows it."""
    sides = tuple(zip(pair.said, (first, second), strict=True))
    still = [all(run.took_nothing for run in runs) and len({run.token for run in runs}) == 1 for _, runs in sides]
    # A delta may pay for an output that the other input cannot give, unless it is given always.
    needs_both = claim is not None and claim.family == "hockey-stick" and claim.profile(LARGEST_EPSILON) > 0.0
    if not any(still) or (needs_both and not all(still)):
        return None
    for place, is_still in enumerate(still):
        name, runs = sides[place]
        other, others = sides[1 - place]
        run = next((k for k, run in enumerate(others) if run.token != runs[0].token), None)
        if is_still and run is not None:
            text = (
                f"on {name} nothing is taken from the generator, the only randomness that a mechanism may have, so "
                f"that the output is always {runs[0].token:.60}; on {other} run {run} gave "
                f"{others[run].token:.60}. The loss is infinite."
            )
            return text, 1 - place, run
    return None


def _hints(first: Sequence[Run], second: Sequence[Run]) -> list[Hint]:
    """Differences on the same streams, kind by kind."""
    found: dict[str, tuple[list[int], str]] = {}

    def note(kind: str, run: int, text: str) -> None:
        found.setdefault(kind, ([], text))[0].append(run)

    for run, (a, b) in enumerate(zip(first, second, strict=True)):
        if a.failed != b.failed:
            failed = a if a.failed else b
            note("outcome", run, f"{failed.token} on {'x' if a.failed else 'x_prime'} only.")
        if a.words != b.words:
            note("consumption", run, f"x takes {a.words} words from the stream, x_prime {b.words}.")
        if apart := first_apart(a.log.calls, b.log.calls):
            note("branches", run, f"call {apart[0]} is {apart[1]} on x, {apart[2]} on x_prime.")
        for u, v in zip(a.log.calls, b.log.calls, strict=False):
            if u.primitive == v.primitive and u.parameters != v.parameters:
                note("scale", run, f"{u} on x, {v} on x_prime.")
                break
    constant = _constants(first, second)
    if constant:
        found["constant"] = (list(range(len(first))), constant)
    return [Hint(kind, tuple(found[kind][0]), found[kind][1]) for kind in HINTS if kind in found]


def _constants(first: Sequence[Run], second: Sequence[Run]) -> str:
    """A number of the output that is the same on all streams, another one for x than for x_prime; empty if none is."""
    sides = [join([run.outcome for run in runs]) for runs in (first, second)]
    reader = Reader.learn(sides)
    a, b = map(reader.read, sides)
    if not a.shape[1]:
        tokens = [{run.token for run in side} for side in (first, second)]
        if len(tokens[0]) == len(tokens[1]) == 1 and tokens[0] != tokens[1]:
            return f"on all streams the output is {min(tokens[0]):.60} on x and {min(tokens[1]):.60} on x_prime."
        return ""
    still = (a == a[0]).all(axis=0) & (b == b[0]).all(axis=0) & (a[0] != b[0])  # NaN varies
    if not still.any():
        return ""
    column = int(np.argmax(still))
    return f"on all streams {reader.names[column]} is {a[0, column]:.9g} on x and {b[0, column]:.9g} on x_prime."
