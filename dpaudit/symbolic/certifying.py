"""`certify`: proves or disproves a claim for pairs of inputs, by running a mechanism through all outcomes of its draws.

The verdict of a pair is "kept" where the loss is proved to be within the claim, "violated" where an event proves the
opposite, and "open" otherwise. What is proved has no error rate, as no draw is random. It rests on:

* the mechanism is a function of its input and of its draws (some runs are repeated, other randomness is watched for);
* each primitive draws from the law that its arguments name, exactly, and a uniform number is a real number
  (`dpaudit.symbolic.uniform_numbers`, `dpaudit.symbolic.exact_draws`), and so is noise of real laws, which may
  only be compared (`dpaudit.symbolic.noise_laws`);
* outputs are told apart where an audit may tell them apart (`dpaudit.features.identity`);
* a claim counts as exceeded beyond `rounding`: a probability that the program computed in doubles, such as
  exp(1) / (1 + exp(1)), is not the real number that it stands for.

Before "kept" or "violated" is said, laws are held against runs with real generators (`real_runs`). A law that they do
not fit, or for which no time was left, leaves its pairs open; of one right certificate in 10^6 they do not fit one.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from dpaudit.arguments import check_options, with_near_names
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, number
from dpaudit.privacy.pairs import Pair, as_pairs
from dpaudit.results.model import IS_RETURNED, SAME_INPUT
from dpaudit.subjects.call_limits import watching
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.stated import known_pairs, stated_claim
from dpaudit.symbolic.certificate import Certificate, CertifiedPair
from dpaudit.symbolic.conversions import kept_by_conversions
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.divergences import Known
from dpaudit.symbolic.exact_judging import check_claim, judge, open_pair
from dpaudit.symbolic.exploring import LIBRARIES, Exploration, Runner, untraced_randomness, with_generators
from dpaudit.symbolic.leaves import NeedsNumbers, cells, readable
from dpaudit.symbolic.noise_laws import NoiseLaw, judge_noise, noise_law
from dpaudit.symbolic.real_runs import LEVEL, atoms, misfit, real_outcomes, runs_of
from dpaudit.symbolic.tracing import OF_REAL_LAW, Untraceable

ROUNDING = 1e-12
SECONDS = 60.0
MAX_PAIRS = 20_000
FIRST_LOOK = 32  # runs of each input after which the pairs are judged for the first time; then at each doubling
REAL_SHARE = 0.25  # of the time, for runs with real numbers
MIN_RUNS = 100  # of an input, with which a law is held against runs where there is no time for all of them
AFTER_DECISION = 2  # times the runs of a decision that are made in all, to close the interval


@with_near_names
def certify(
    mechanism: Any,
    claim: Claim | str | None = None,
    pairs: Iterable[Any] | None = None,
    *,
    seconds: float = SECONDS,
    rounding: float = ROUNDING,
    face: str | None = None,
) -> Certificate:
    """Prove or disprove a claim for each pair, exactly.

    Parameters
    ----------
    mechanism : object or callable
        As for `dpaudit.audit`; it must take a generator. A vectorised one is asked for one output a call.
    claim : Claim or str, optional
        Pure, approximate, metric, Renyi or zero-concentrated DP; the mechanism's own by default.
    pairs : iterable of (x, x_prime) or Pair, optional
        The mechanism's own by default. Each input is explored once, whatever the number of its pairs.
    seconds : float
        Time in all, positive. At least a quarter of it is kept for runs with real numbers. What is left unexplored then
        is bounded.
    rounding : float
        Non-negative: a loss counts as above epsilon beyond epsilon + rounding, a delta beyond delta (1 + rounding).
    face : {"numpy", "random"}, optional
        Whether the mechanism is given a `numpy.random.Generator` or a `random.Random`. By default numpy's, unless the
        parameter's annotation says `random.Random`.

    Returns
    -------
    Certificate

    Raises
    ------
    UsageError
        If an argument makes no sense, or the claim is of a family that cannot be proved.

    Examples
    --------
    >>> def answer(bit, rng):
    ...     return bit if rng.random() < 0.75 else 1 - bit
    >>> result = certify(answer, claim="eps=1.1", pairs=[(0, 1)])
    >>> result.verdict, result.pairs[0].exact, round(result.pairs[0].epsilon_upper, 6)
    ('kept', Fraction(3, 1), 1.098612)
    """
    subject = as_subject(mechanism)
    return certified(Dependence(subject.mechanism), subject, claim, pairs, seconds, rounding, face)


def certified(
    depends: Dependence,
    subject: Subject,
    claim: Claim | str | None,
    pairs: Iterable[Any] | None,
    seconds: float,
    rounding: float = ROUNDING,
    face: str | None = None,
) -> Certificate:
    """The same, of a mechanism that was called since it was looked at: then nothing may have changed."""
    promise = stated_claim(subject, claim)
    listed = as_pairs(known_pairs(subject, pairs))
    if len(listed) > MAX_PAIRS:
        raise UsageError(f"pairs must be at most {MAX_PAIRS:,}, got {len(listed):,}.")
    check_options(seconds=seconds)
    rounding = number("rounding", rounding, "in [0, 1]", lambda value: 0.0 <= value <= 1.0)
    if face is None:
        face = "random" if any(role == "random" for _, role in subject.keywords) else "numpy"
    elif face in LIBRARIES:
        subject = with_generators(subject, face)
    if face not in LIBRARIES:
        raise UsageError(f"face must be 'numpy' or 'random', got {face!r}.")
    claims = [promise.for_pair(pair.x, pair.x_prime) for pair in listed]
    for pair, own in zip(listed, claims, strict=True):
        check_claim(own, pair)
    making = _Certifying(subject, promise, listed, claims, float(seconds), rounding, face, depends)
    try:
        return making.run()
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(making.so_far())
        raise


@dataclasses.dataclass
class _Certifying:
    """One certificate while it is made."""

    subject: Subject
    promise: Claim
    pairs: Sequence[Pair]
    claims: Sequence[Claim]
    seconds: float
    rounding: float
    face: str
    depends: Dependence
    runs: int = 0
    count: int = 0
    real_runs: int = 0
    ended: str = ""
    clock: Callable[[], float] = time.monotonic
    explorations: list[Exploration] = dataclasses.field(default_factory=list)

    def so_far(self) -> str:
        """State of a certificate that is interrupted, as a sentence."""
        runs = self.explorations[0].runner.runs if self.explorations else self.runs
        left = max((one.left for one in self.explorations), default=Fraction(1))
        return f"Nothing is certified yet: after {runs:,} runs a mass of {float(left):.3g} was left of an input."

    def run(self) -> Certificate:
        """Explore every input and judge every pair."""
        deadline = self.clock() + self.seconds
        if why := untraced_randomness(self.subject, self.face):
            return self._refused(
                f"{self.subject.name} {why}: give it a parameter rng, and let all its draws come from that."
            )
        subject = self._one_by_one()
        self.depends.add(*self._inputs()[0])
        try:
            try:
                return self._explored(Runner(subject, self.face, self.depends), deadline)
            except NeedsNumbers as reason:
                self.ended = str(reason)
                return self._explored(Runner(subject, self.face, self.depends, lazy=False), deadline)
        except Untraceable as refusal:
            of_noise = self._of_noise(deadline) if OF_REAL_LAW in str(refusal) else None
            return of_noise or self._refused(str(refusal))

    def _of_noise(self, deadline: float) -> Certificate | None:
        """The certificate of a mechanism whose noise of real laws is only compared; None where that is not so."""
        found: list[NoiseLaw] = []
        until = time.monotonic() + deadline - REAL_SHARE * self.seconds - self.clock()
        inputs, positions = self._inputs()
        try:
            with watching(), kept_by_conversions(self.depends):
                for x in inputs:
                    found.append(noise_law(self.subject, x, self.depends, until))
                    if time.monotonic() > until:
                        return None
        except Untraceable:
            return None
        self.runs = sum(one.runs for one in found)
        judged = [
            judge_noise(pair, claim, found[first], found[second], Fraction(self.rounding))
            for pair, claim, (first, second) in zip(self.pairs, self.claims, positions, strict=True)
        ]
        return self._certificate(self._held_against_runs(self._one_by_one(), found, positions, judged, deadline))

    def _one_by_one(self) -> Subject:
        """The subject as it is called for one output, with a generator that is passed as it is."""
        subject = dataclasses.replace(self.subject, one_by_one=True) if self.subject.is_vectorised else self.subject
        return with_generators(subject, "numpy")

    def _inputs(self) -> tuple[list[Any], list[tuple[int, int]]]:
        """The different inputs, and the places of both of each pair among them."""
        inputs = {id(x): x for pair in self.pairs for x in (pair.x, pair.x_prime)}
        places = {number: place for place, number in enumerate(inputs)}
        self.count = len(inputs)
        return list(inputs.values()), [(places[id(pair.x)], places[id(pair.x_prime)]) for pair in self.pairs]

    def _explored(self, runner: Runner, deadline: float) -> Certificate:
        inputs, positions = self._inputs()
        self.explorations = explorations = [Exploration(runner, x) for x in inputs]
        with watching(), kept_by_conversions(self.depends):
            self._explore(runner, explorations, positions, deadline - REAL_SHARE * self.seconds)
            runner.check()
            for exploration in explorations:
                exploration.repeat(deadline - 0.5 * REAL_SHARE * self.seconds)
        runner.check()
        self.runs, self.ended = runner.runs, self.ended or runner.ended
        judged = self._judged(explorations, positions, deadline)
        return self._certificate(self._held_against_runs(runner.subject, explorations, positions, judged, deadline))

    def _held_against_runs(
        self,
        subject: Subject,
        explorations: Sequence[Exploration | NoiseLaw],
        positions: Sequence[tuple[int, int]],
        judged: Sequence[CertifiedPair],
        deadline: float,
    ) -> list[CertifiedPair]:
        """The pairs, open where a law that they rest on does not fit runs with real numbers."""
        decided = [places for places, pair in zip(positions, judged, strict=True) if pair.verdict != "open"]
        concerned = sorted({place for places in decided for place in places})
        inputs = [explorations[place].x for place in concerned]
        raised: dict[str, str] = {}
        outcomes = real_outcomes(subject, self.face, inputs, deadline, self.clock, raised)
        self.real_runs = sum(counts.total() for counts in outcomes)
        wrong: dict[int, str] = {}
        planned = runs_of(len(concerned))
        for place, counts in zip(concerned, outcomes, strict=True):
            # Validity: how many runs the time allows may depend on their outcomes. Each number of them has its share.
            share = 0.5 if counts.total() == planned else 0.5 / planned
            unlike = misfit(atoms(explorations[place].law), counts, share * LEVEL / len(concerned), raised)
            if unlike:
                wrong[place] = (
                    f"undecided, because runs with real numbers do not fit the law that was worked out: {unlike}. "
                    "Something is kept between calls, or dpaudit follows the program wrongly: then please report it, "
                    "with the program"
                )
            elif counts.total() < min(planned, MIN_RUNS):
                wrong[place] = (
                    f"undecided, because the law could not be held against runs with real numbers: {counts.total():,} "
                    f"of {planned:,} were made in the time; more seconds"
                )
        # Validity: of a program that only raises nothing is compared; an audit calls it an error.
        raising = {k for k in concerned if all(leaf.token.startswith("raised ") for leaf in explorations[k].law)}
        # Validity: a proof is of calls that depend on their input and their draws alone.
        changed = self.depends.changed()
        cause = changed or self.depends.impurity()
        held = []
        for pair, claim, places, done in zip(self.pairs, self.claims, positions, judged, strict=True):
            reason = next((wrong[place] for place in sorted(places) if place in wrong), "")
            if not reason and done.verdict != "open" and raising.issuperset(places):
                tokens = {leaf.token for place in places for leaf in explorations[place].law}
                kinds = sorted(raised.get(token, readable(token).removeprefix("raised ")) for token in tokens)[:3]
                reason = f"undecided, because every call raises an exception on both inputs: {' or '.join(kinds)}"
                reason = self.subject.with_passed(f"{reason}.")
            if not reason and (changed or (cause and done.verdict == "kept")):
                reason = f"undecided, because it is not shown that calls depend on their input and draws alone: {cause}"
            outputs = {readable(leaf.token) for place in places for leaf in explorations[place].law}
            note = f"every output reads as None: {IS_RETURNED}" if outputs == {"None"} else ""
            if not reason and done.verdict == "kept":
                done = dataclasses.replace(done, reason=SAME_INPUT if len(set(places)) == 1 else note or done.reason)
            held.append(open_pair(pair, claim, reason) if reason else done)
        return held

    def _explore(
        self, runner: Runner, explorations: Sequence[Exploration], positions: Sequence[tuple[int, int]], deadline: float
    ) -> None:
        """Run on until everything is explored, the pairs are decided for a while, or the time is up."""
        look, end = FIRST_LOOK * len(explorations), float("inf")
        live = [exploration for exploration in explorations if exploration.is_open]
        while live and self.clock() < deadline and runner.runs < end:
            # The input of which the most is left goes on; a few runs at a time, as to look for it takes time too.
            exploration = max(live, key=lambda one: one.left)
            for _ in range(16):
                exploration.step(deadline)
                if not exploration.is_open:
                    live.remove(exploration)
                if not exploration.is_open or self.clock() > deadline:
                    break
            if live and end == float("inf") and runner.runs >= look:
                look = 2 * runner.runs
                runner.check()
                if all(pair.verdict != "open" for pair in self._judged(explorations, positions, deadline)):
                    end = AFTER_DECISION * runner.runs

    def _judged(
        self, explorations: Sequence[Exploration], positions: Sequence[tuple[int, int]], deadline: float
    ) -> list[CertifiedPair]:
        judged = []
        laws, is_whole = cells([exploration.law for exploration in explorations], self.depends.forms)
        known = [Known.of(law) for law in laws]
        for pair, claim, places in zip(self.pairs, self.claims, positions, strict=True):
            p, q = (known[place] for place in places)
            if not is_whole:  # tails of other inputs may be what cannot be compared
                p, q = map(Known.of, cells([explorations[place].law for place in places], self.depends.forms)[0])
            if self.clock() > deadline:
                judged.append(open_pair(pair, claim, "undecided, because its bounds take more seconds"))
            else:
                judged.append(judge(pair, claim, p, q, Fraction(self.rounding), self.ended))
        return judged

    def _refused(self, reason: str) -> Certificate:
        pairs = [open_pair(pair, claim, reason) for pair, claim in zip(self.pairs, self.claims, strict=True)]
        return self._certificate(pairs, reason)

    def _certificate(self, pairs: Sequence[CertifiedPair], refusal: str = "") -> Certificate:
        return Certificate(
            subject=self.subject.describe(),
            claim=str(self.promise),
            rounding=self.rounding,
            pairs=tuple(pairs),
            inputs=self.count,
            runs=self.runs,
            real_runs=self.real_runs,
            seconds=self.seconds,
            refusal=refusal,
        )
