"""Recorded noise: what a mechanism draws on x and x_prime, and what follows from it without a statistic.

Grades of a pair
----------------
* **proved**: the claim is broken for this pair, if the primitives draw what they say. The output is known as a function
  of the noise (`dpaudit.symbolic.tape` has the argument, `dpaudit.symbolic.noise_judging` the computation).
* **not recorded**: what the outputs lose is not known, and `unproved` says why. A run lost its symbols (a text, a
  product of two noises, an exception that symbols caused, compiled code), some runs were not made, or the loss has
  no bound here. Of the other grades only "proved" is ranked above it.
* **implied**: each noise and each decision counted once (`dpaudit.symbolic.alignment`), the losses add up to more than
  the claim. That is no violation in itself: the outputs may show less.
* **hint**: the runs differ in calls, in parameters, or in parts of the output that met no noise.
* **same**: the output is known as a function of the noise on both inputs, and loses no more than the claim. Noise is in
  real numbers here: what the low bits of doubles give away is not seen.

What is recorded is exact for the pairs that were run, and says nothing of others. It enters no verdict of an audit.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from dpaudit.arguments import RngLike, check_options, seed_from, with_near_names
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, HockeyStickLine, PureDP, number_text
from dpaudit.privacy.pairs import Pair, as_pairs
from dpaudit.results.codec import to_json
from dpaudit.results.side_findings import SideFinding, SideStatus
from dpaudit.running.streams import root_of
from dpaudit.subjects.call_limits import watching
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.stated import known_claim, known_pairs
from dpaudit.symbolic.alignment import Implied, Note, asks_of_ratios, differences, exceeds, imply
from dpaudit.symbolic.certifying import REAL_SHARE, SECONDS
from dpaudit.symbolic.choices import OpenPath
from dpaudit.symbolic.conversions import kept_by_conversions
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.generators import Event
from dpaudit.symbolic.noise_judging import Proof, prove
from dpaudit.symbolic.runs import (
    MAX_PATHS,
    Path,
    Paths,
    Steps,
    check_runs,
    differing,
    explore,
    is_repeatable,
    is_within,
    run,
)
from dpaudit.symbolic.tape import Tape

KIND = "recorded_noise"
MAX_ROWS = 200  # calls that are shown side by side
MAX_PAIRS = 200
MOST_RECORDED, PATHS_IN_AUDIT = 50, 64  # pairs of an audit, and paths of their inputs
LISTED = 20
Grade = Literal["proved", "not recorded", "implied", "hint", "same"]
GRADES: tuple[Grade, ...] = ("proved", "not recorded", "implied", "hint", "same")


@dataclasses.dataclass(frozen=True)
class RecordedPair:
    """Record of one pair.

    Attributes
    ----------
    id, x_id, x_prime_id : str
    grade : {"proved", "not recorded", "implied", "hint", "same"}
    statement : str
        What is proved or implied, beside the claim; else empty.
    places : tuple of str
        The lines that are to blame, as "file:line".
    loss : float
        A proved lower bound on the loss in nats; NaN where the pair is not recorded.
    implied : float or None
        An upper bound on the loss in the claim's own parameter, by composition; None where none is known.
    notes : tuple of Note
        What differs between the runs.
    trace : tuple of Row
        The calls of both runs.
    unproved : str
        Why the loss of the outputs is not known, with the line; else empty.
    impurity : str
        Why it is not shown that calls depend on their input and draws alone, so that other calls may lose more; or
        empty.
    """

    id: str
    x_id: str
    x_prime_id: str
    grade: Grade
    statement: str
    places: tuple[str, ...]
    loss: float
    implied: float | None
    notes: tuple[Note, ...]
    trace: tuple[Row, ...]
    unproved: str = ""
    impurity: str = ""


@dataclasses.dataclass(frozen=True)
class RecordedResult:
    """Records of all pairs.

    Attributes
    ----------
    subject : str
    claim : str or None
    seed : int
    runs : int
        How often the mechanism was called.
    pairs : tuple of RecordedPair
        In the order of `GRADES`, of one grade the largest loss first.
    ranked : tuple of Pair
        The pairs themselves in that order, for `dpaudit.audit` and `dpaudit.certify`.
    """

    subject: str
    claim: str | None
    seed: int
    runs: int
    pairs: tuple[RecordedPair, ...]
    ranked: tuple[Pair, ...] = ()

    @property
    def grade(self) -> Grade:
        """The first of `GRADES` that any pair has; "not recorded" where no pair was run."""
        return next((grade for grade in GRADES if any(pair.grade == grade for pair in self.pairs)), "not recorded")

    @property
    def worst(self) -> RecordedPair | None:
        """The pair on which an audit should look first."""
        return self.pairs[0] if self.pairs else None

    def side_finding(self, *, with_values: bool = False) -> SideFinding:
        """The finding as an audit keeps it: "found" for what is proved, "not_applicable" where no pair is recorded.

        Parameters
        ----------
        with_values : bool
            Whether the summary has the statement, which has numbers of the outputs and their noise-free parts, and so
            of the inputs. Details never have them.
        """
        if self.worst is None:
            return SideFinding(KIND, "not_applicable", "No pair was run.")
        worst = self.worst
        note = worst.notes[0] if worst.notes else None
        if worst.grade == "proved":
            said = worst.statement if with_values else f"the claim is broken{_at(*worst.places)}."
            summary = f"Proved by what was recorded, pair {worst.id}: {said}"
        elif worst.grade == "not recorded":
            count = sum(pair.grade == "not recorded" for pair in self.pairs)
            rest = "" if count == len(self.pairs) else f" for {count} of {len(self.pairs)} pairs"
            summary = f"Not recorded{rest}, and no record says what it loses: pair {worst.id}: {worst.unproved}"
        elif worst.grade == "implied":
            said = worst.statement if with_values else f"more than the claim{_at(*worst.places)}."
            summary = f"Implied by what was recorded, not proved, pair {worst.id}: {said}"
        elif note is not None:
            said = f": {note.text}{_at(note.place)}" if with_values else f" in {note.kind}{_at(note.place)}"
            summary = f"Nothing is proved; pair {worst.id} differs{said}."
        else:
            summary = "What was recorded is within the claim, on the pairs that were run."
            if self.claim is None:
                summary = "No claim was given to compare with what was recorded."
            # Validity: other calls may lose more than those that were recorded.
            if impurity := next((pair.impurity for pair in self.pairs if pair.impurity), ""):
                summary = f"{summary} It is not shown that calls depend on their input and draws alone: {impurity}."
        details = {
            "seed": self.seed,
            "runs": self.runs,
            "grades": {grade: sum(pair.grade == grade for pair in self.pairs) for grade in GRADES},
            "pairs": [_without_values(pair) for pair in self.pairs[:LISTED]],
        }
        is_known = any(pair.grade != "not recorded" for pair in self.pairs)
        status: SideStatus = "found" if worst.grade == "proved" else "nothing_found" if is_known else "not_applicable"
        return SideFinding(KIND, status, summary, None, to_json(details))


@with_near_names
def record_noise(
    mechanism: Any,
    pairs: Iterable[Any] | None = None,
    claim: Claim | str | None = None,
    *,
    seconds: float = SECONDS,
    seed: int | None = None,
    rng: RngLike = None,
) -> RecordedResult:
    """Run both inputs of each pair on recorded noise, and say what follows for the claim.

    Parameters
    ----------
    mechanism : object or callable
        As for `dpaudit.audit`; it may also take its randomness from numpy's or Python's own generators.
    pairs : iterable of (x, x_prime) or Pair, optional
        The mechanism's own by default; at most 200 are run.
    claim : Claim or str, optional
        The mechanism's own by default. Without one nothing is proved or implied to be broken.
    seconds : float
        Time in all, positive. Runs that were not made then are not known.
    seed : int, optional
        Non-negative; one is drawn and kept in the result by default.
    rng : int or Generator or SeedSequence, optional
        In place of `seed`: a seed is taken from it, and recorded.

    Returns
    -------
    RecordedResult

    Raises
    ------
    UsageError
        If an argument makes no sense, or the mechanism runs in another process.

    Examples
    --------
    >>> def total(hours, rng):  # clipped at 40, with noise for 20
    ...     return sum(min(hour, 40.0) for hour in hours) + rng.laplace(scale=20.0)
    >>> result = record_noise(total, [([], [60.0])], "eps=1", seed=1)
    >>> result.grade, result.pairs[0].loss
    ('proved', 2.0)
    """
    seed = seed_from(seed, rng)
    check_options(seconds=seconds)
    subject = as_subject(mechanism)
    promise, given = known_claim(subject, claim), known_pairs(subject, pairs)
    check_runs(subject)
    chosen = [entry for entry, _ in zip(given, range(MAX_PAIRS), strict=False)]
    recorder = Recorder(subject, promise, root_of(seed))
    recorder.deadline = time.monotonic() + seconds
    recorder.until = recorder.deadline - REAL_SHARE * seconds
    with watching():
        return recorder.result([(recorder.pair(pair), pair) for pair in as_pairs(chosen)])


def recorded_finding(subject: Subject, claim: Claim, pairs: Sequence[Pair], seed: int) -> SideFinding:
    """Side finding of an audit from recorded runs of its pairs; the reason where they cannot be recorded."""
    try:
        check_runs(subject)
    except UsageError as error:
        return SideFinding(KIND, "not_applicable", str(error))
    recorder = Recorder(subject, claim, seed, PATHS_IN_AUDIT)
    return recorder.result([(recorder.pair(pair), pair) for pair in pairs]).side_finding()


class Recorder:
    """Records inputs of one subject; an input is explored once, whatever the number of its pairs.

    Runs take streams of their own of `seed` (`dpaudit.running.streams.RECORDED`), which no audit reads. At most
    `most_paths` lists of decisions of an input are run. `depends` is what it can reach as it was before any run, by
    default before the first pair's. After `until` (`time.monotonic`) no further list is begun; a run that goes on at
    the `deadline` ends.
    """

    def __init__(
        self,
        subject: Subject,
        claim: Claim | None,
        seed: int,
        most_paths: int = MAX_PATHS,
        depends: Dependence | None = None,
    ) -> None:
        self.subject, self.claim, self.seed, self.runs, self.depends = subject, claim, seed, 0, depends
        self.most_paths, self.until, self.deadline = most_paths, math.inf, math.inf
        self._known: dict[int, tuple[Any, Paths]] = {}

    def paths(self, x: Any) -> Paths:
        """All known runs of an input."""
        if id(x) not in self._known:
            found = explore(
                self.subject, x, self.seed, self.most_paths, until=self.until, depends=self.depends,
                deadline=self.deadline,
            )  # fmt: skip
            self.runs += found.runs
            self._known[id(x)] = (x, found)  # the input itself is kept: its id must stay its own
        return self._known[id(x)][1]

    def result(self, found: Sequence[tuple[RecordedPair, Pair]]) -> RecordedResult:
        """Records of some pairs, the worst first."""
        ranked = sorted(found, key=lambda entry: _rank(entry[0]))
        text = None if self.claim is None else str(self.claim)
        listed, pairs = tuple(entry for entry, _ in ranked), tuple(pair for _, pair in ranked)
        return RecordedResult(self.subject.name, text, self.seed, self.runs, listed, pairs)

    def pair(self, pair: Pair) -> RecordedPair:
        """Record the runs of one pair."""
        self.depends = self.depends or Dependence(self.subject.mechanism)
        self.depends.add(pair.x, pair.x_prime)
        with kept_by_conversions(self.depends):
            return self._pair(pair)

    def _pair(self, pair: Pair) -> RecordedPair:
        promised = self.claim.for_pair(pair.x, pair.x_prime) if self.claim is not None else None
        claim = None if promised is None else in_nats(promised)
        first, second = self.paths(pair.x), self.paths(pair.x_prime)
        proof = prove(claim, first, second)
        tapes = first.first.tape, second.first.tape
        reason = first.message or second.message
        # Validity: what draws nothing that is recorded may get its noise from a source that is not known here.
        if not reason and not any(tape.events or tape.fixed_seeds for tape in tapes):
            proof, reason = Proof(), "it draws nothing that is recorded, so that its noise may be from elsewhere."
        if not reason and not all(itertools.starmap(self._again, ((pair.x, first), (pair.x_prime, second)))):
            proof, reason = Proof(), "it has a memory: the same run gave another output later."
            if time.monotonic() > self.deadline:
                reason = "its runs take more time than there is."
        frozen = self._frozen(pair.x_prime, first.first, second)
        notes = tuple(differences(first.first, frozen))
        if proof.merges and not notes:  # no proof rests on what this may be
            what = "the text of an exception, the order of keys, a type or a last digit tells outputs apart"
            notes = (Note("aside", f"{what} that are taken for one here", first.first.place),)
        implied = None
        if not reason and not proof.statement:
            reason = first.unknown or second.unknown
            implied = None if reason else imply(claim, first, second)
            if proof.is_exact or (claim is not None and claim.is_vacuous):
                is_pure = claim is None or asks_of_ratios(claim)
                if implied is not None:
                    value = min(implied.value, proof.loss) if proof.is_exact and is_pure else implied.value
                    implied = dataclasses.replace(implied, value=value, exceeds=is_pure and exceeds(value, claim))
            elif not reason and implied is None:
                reason = "the loss of its outputs has no upper bound here."
            elif implied is not None and implied.exceeds and not implied.is_unique:
                reason = f"its loss need not reach {implied.value:.6g}, which is above the claim and only a bound."
        grade, statement, places = self._graded(promised, proof, implied, notes, pair)
        if reason and grade != "proved":
            grade, statement, implied, proof = "not recorded", "", None, Proof(math.nan)
        bound = None if implied is None else implied.value
        ids, trace = (pair.id, pair.x_id, pair.x_prime_id), rows(first.first, frozen)
        return RecordedPair(
            *ids, grade, statement, places, proof.loss, bound, notes, trace, reason, first.impurity or second.impurity
        )

    def _again(self, x: Any, paths: Paths) -> bool:
        self.runs += 1
        return is_repeatable(self.subject, x, paths)

    def _frozen(self, x_prime: Any, first: Path, second: Paths) -> Path:
        path = OpenPath.of(decision.outcome for decision in first.tape.decisions)
        self.runs += 1
        found = run(self.subject, x_prime, Tape(self.seed, 0, path, first.tape, deadline=self.deadline))
        return second.first if found.problem else found

    def _graded(
        self, claim: Claim | None, proof: Proof, implied: Implied | None, notes: tuple[Note, ...], pair: Pair
    ) -> tuple[Grade, str, tuple[str, ...]]:
        declared = "" if claim is None else f"declared {claim}, "
        if proof.statement:
            places = tuple(place for place in proof.places if place) or _places(notes)
            if not places:
                line = blamed(self.subject, pair.x, pair.x_prime, self.seed)
                self.runs += 2
                places = (line,) if line else ()
            return "proved", f"{declared}{proof.statement}{_at(*places)}.", places
        if implied is not None and implied.exceeds and implied.parts:
            worst = implied.parts[0]
            value = number_text(float(f"{implied.value:.6g}"))
            more = f", and {len(implied.parts) - 1} more" if len(implied.parts) > 1 else ""
            text = f"{declared}implied by what was recorded {value}: {worst.text}{_at(worst.place)}{more}."
            return "implied", text, (worst.place,) if worst.place else ()
        return ("hint" if notes else "same"), "", _places(notes)


def _without_values(pair: RecordedPair) -> dict[str, Any]:
    """A pair as an audit keeps it: no calls and no texts, which may hold values of the inputs."""
    kept = ("id", "x_id", "x_prime_id", "grade", "places", "loss", "implied", "unproved")
    return {name: getattr(pair, name) for name in kept}


def _places(notes: Iterable[Note]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note.place for note in notes if note.place))[:2]


def _at(*places: str) -> str:
    listed = [place for place in places if place]
    return f" (line {', '.join(listed)})" if listed else ""


def _rank(pair: RecordedPair) -> tuple[int, float, float]:
    loss = 0.0 if math.isnan(pair.loss) else pair.loss  # pairs that are not recorded stay as they were given
    return GRADES.index(pair.grade), -loss, -(pair.implied or 0.0)


def in_nats(claim: Claim) -> Claim:
    """A claim of one line as (epsilon, delta)-DP, whatever its own parameter counts; any other as it is."""
    is_line = claim.family == "hockey-stick" and not claim.anchored and claim.is_symmetric
    if not is_line or isinstance(claim, ApproxDP) or claim.is_vacuous:
        return claim
    line = claim.inequality()
    assert isinstance(line, HockeyStickLine)
    return ApproxDP(line.epsilon, line.delta) if line.delta else PureDP(line.epsilon)


def blamed(subject: Subject, x: Any, x_prime: Any, seed: int) -> str:
    """The line to blame for what differs between the outputs of two inputs though no noise is in it, or "".

    Both are run once more with numbers, line by line. A line is blamed where on both one variable got the value that
    the number has there; where no variable did, that on which the mechanism returned. Nothing rests on it. Empty under
    a debugger or a measure of coverage, which trace lines themselves.
    """
    steps = (Steps(), Steps())
    paths = [
        run(subject, data, Tape(seed, 0, is_plain=True), own) for data, own in zip((x, x_prime), steps, strict=True)
    ]
    found = differing(paths[0].output, paths[1].output)
    if found is not None:
        here, there = (_always(own, value) for own, value in zip(steps, found[1:], strict=True))
        common = [line for line, name in here if (line, name) in there]
        if common:
            return common[-1]
    # A function that hands on what another one returned is not to blame.
    ends = [next((line for value, line in own.returned if value is own.returned[-1][0]), "") for own in steps]
    return ends[0] or ends[1]


def _always(steps: Steps, value: float) -> list[tuple[str, str]]:
    """The lines, with a variable each, that have given this value whenever they ran."""
    found: dict[tuple[str, str], bool] = {}
    for line, name, got in steps.numbers:
        found[line, name] = found.get((line, name), True) and is_within([got], [value])[0]
    return [key for key, same in found.items() if same]


@dataclasses.dataclass(frozen=True)
class Row:
    """One call on each input, as text, the line of the first, and whether they differ."""

    x: str
    x_prime: str
    place: str
    differs: bool

    def texts(self, with_values: bool = False) -> tuple[str, str]:
        """Both calls.

        Without values a call has no parameters and an end no numbers, as they may be those of the inputs: a row that
        differs in nothing else says "(other values)".

        Examples
        --------
        >>> Row("numpy laplace(scale=1)", "numpy laplace(scale=2)", "count.py:3", True).texts()
        ('numpy laplace', 'numpy laplace (other values)')
        """
        if with_values:
            return self.x, self.x_prime
        first, second = (
            "returns" if one.startswith("returns ") else one.split("(")[0] for one in (self.x, self.x_prime)
        )
        return first, f"{second} (other values)" if self.differs and first == second else second


def rows(first: Path, second: Path) -> tuple[Row, ...]:
    """The first calls of both runs, in their order; and how each run ended."""
    a, b = first.tape.events, second.tape.events
    found = []
    for k in range(min(max(len(a), len(b)), MAX_ROWS)):
        u, v = (events[k] if k < len(events) else None for events in (a, b))
        place = (u or v).place  # type: ignore[union-attr]
        found.append(Row(_said(u), _said(v), place, u is None or v is None or str(u) != str(v)))
    ends = [_ended(path) for path in (first, second)]
    found.append(Row(ends[0], ends[1], first.place or second.place, ends[0] != ends[1]))
    return tuple(found)


def _said(event: Event | None) -> str:
    return "-" if event is None else str(event)


def _ended(path: Path) -> str:
    if path.raised:
        return f"raises {path.raised}"
    if path.output is None:
        return path.problem[:60]
    numbers = ", ".join(f"{value:.6g}" for value in path.output.values()[:4])
    more = len(path.output.leaves) - 4
    return f"returns {numbers}" + (f" and {more} more" if more > 0 else "")
