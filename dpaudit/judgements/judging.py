"""`judge`: a function and a claim in, one verdict out, within a time.

1. *Look.* The inputs are the caller's pairs, all pairs of a domain that has few, or those on which the function is most
   sensitive (`dpaudit.audits.climbing`, where the noise can be recorded).
2. *Prove.* What the recorded noise of these pairs proves (`dpaudit.symbolic`), then a certificate over all outcomes of
   the draws (`dpaudit.symbolic.certifying`). A pair that breaks the claim is made small while it is proved to.
3. *Hold against runs.* What was proved to be kept is asked of real runs too, as a program may tell symbols from
   numbers.
4. *Audit.* What is neither proved nor disproved is audited on fresh draws, in what is left of the time. Where that
   decides nothing, and the most sensitive pairs that were found are proved to keep the claim, that is said.

"proved" is said by certificates of the pairs that the caller gave, or of all pairs of a domain. Of a domain
with more pairs than were tried it is never said: then the verdict is "not_refuted", with the largest difference
that was found.

Error rate. A judgement makes at most one audit with draws, of confidence `1 - ERROR_RATE` (`1 - HELD_RATE` in step 3,
so that a right proof is seldom given up). Let F be all that steps 1 to
3 looked at: runs on streams of the purposes `RECORDED`, `SEARCH_CHOICES`, `SEARCH_DRAWS`, `GREY_BOX`,
`CERTIFICATE_RUNS`. Pairs, and whether there is an audit, are functions of F; the audit's draws and coins (`DRAWS`,
`COINS`) are independent of F. So P(a pair that keeps its claim is called violated | F) <= ERROR_RATE whatever F is, and
so is the average over F. A proof has no draws, and its error rate is 0. How much time is left, and so how many samples
the audit may take, depends on the clock and not on the audit's draws. (Those of step 3 are those of the one audit.)
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import time
import types
from collections.abc import Iterable, Sequence
from typing import Any

from dpaudit.arguments import RngLike, check_options, seed_from, with_near_names
from dpaudit.audits.auditing import audit
from dpaudit.audits.climbing import Climb, climb
from dpaudit.audits.noise_free import NoiseFree
from dpaudit.audits.search_result import place_sentence
from dpaudit.audits.searching import Search
from dpaudit.errors import DpauditError, OutOfTimeError, SubjectError, UsageError
from dpaudit.judgements.judgement import By, Judgement, Verdict, advice
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.neighbours import searched_relation
from dpaudit.privacy.pairs import Pair, as_pairs, counted_pairs
from dpaudit.reports import rows, wording
from dpaudit.results.model import AuditResult
from dpaudit.running.streams import PLAN_DRAWS, root_of, stream
from dpaudit.search.default_domains import guess_domain, is_table
from dpaudit.search.shrinking import KIND as SHRUNK
from dpaudit.search.shrinking import audit_and_shrink, make_smaller
from dpaudit.subjects.call_limits import interrupted, until, within
from dpaudit.subjects.callables import CallError, Subject, as_subject
from dpaudit.subjects.domains import Domain
from dpaudit.subjects.stated import stated_claim
from dpaudit.symbolic.certificate import Certificate, event_text, loss_text
from dpaudit.symbolic.certifying import certified
from dpaudit.symbolic.conversions import kept_by_conversions
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.laws import counted
from dpaudit.symbolic.recorded_noise import RecordedPair
from dpaudit.symbolic.tracing import OF_REAL_LAW, Suspended


@dataclasses.dataclass(frozen=True)
class Shares:
    """Shares of the time, and sizes. On the museum (docs/measurements/judge.md) most parts end long before."""

    climb: float = 0.2
    record: float = 0.2
    record_more: float = 0.35  # of pairs that a certificate leaves open, where all that were recorded keep the claim
    certify: float = 0.25
    symbols: float = 0.6  # after which a run with symbols ends where it is
    shrink: float = 0.1
    search: float = 0.3  # of what is left then, for the search with draws
    most_pairs: int = 200  # of a caller's, that are recorded
    most_certified: int = 400  # pairs
    pairs: int = 3  # that a search chooses for the audit
    samples: int = 100_000  # of the audit of what is not decided
    held_samples: int = 1_000  # of the audit that what was proved is held against
    draw: float = 0.7  # of what is left, for the draws of the audit and their evidence
    seconds_a_draw: float = 1e-4  # what reading and weighing a draw takes
    least_samples: int = 60  # of an audit: as many show eps = 2 broken where each output tells its input
    over: float = 0.3  # of all of the time, beyond it, for the least audit; none is made where that is not enough
    end: float = 1.4  # of all of the time, after which a call that goes on is broken off: no audit has so long ones
    least_time: float = 3.0  # seconds, for `over` and `end` where all of the time is less: a first audit may take one
    first: int = 8  # pairs that were found without draws, with which the search with draws begins
    timed: int = 3  # calls by which draws are planned
    timed_batch: int = 100  # outputs of one call, of a function that gives many
    smallest_search: int = 1_000  # runs
    largest_search: int = 200_000


SHARES = Shares()


SECONDS = 60.0
ERROR_RATE = 0.01
HELD_RATE = 1e-6  # of the audit that a proof is held against, which is not given up for one chance in a hundred
CLEAR = frozenset({"exception", "form", "seed"})  # kinds of notes (`alignment.differences`): few draws show the rest
ADVICE = (
    'State the inputs: a domain (--domain), for example {"kind": "dataset", "low": 0, "high": 1} for lists of numbers '
    "from 0 to 1; examples of your data (--examples); or pairs (--pairs)."
)


@with_near_names
def judge(
    mechanism: Any,
    claim: Claim | str | None = None,
    *,
    domain: Any = None,
    examples: Sequence[Any] | None = None,
    pairs: Iterable[Any] | None = None,
    seconds: float = SECONDS,
    seed: int | None = None,
    rng: RngLike = None,
) -> Judgement:
    """Judge whether a function keeps a claim.

    Parameters
    ----------
    mechanism : object or callable
        As for `dpaudit.audit`.
    claim : Claim or str, optional
        The mechanism's own by default.
    domain : Domain, mapping or hypothesis strategy, optional
        The inputs, as for `dpaudit.Search`.
    examples : sequence, optional
        Datasets like which inputs are, in the place of a domain; of tables the first.
    pairs : iterable of (x, x_prime) or Pair, optional
        The pairs to judge, in the place of either. Without any of the three they are the mechanism's own pairs, or
        guessed from its default value or type hint; the judgement says what was guessed.
    seconds : float
        Positive: about how long it may take. A call is broken off at 1.4 times that, of 3 s at least, compiled code as
        it comes back.
    seed : int, optional
        Non-negative; one is drawn and kept by default.
    rng : int or Generator or SeedSequence, optional
        What `seed` is taken from, in its place.

    Returns
    -------
    Judgement

    Raises
    ------
    UsageError
        If an argument makes no sense, or there are no inputs to be had. A mechanism that breaks gives the verdict
        "error".

    Examples
    --------
    >>> def spread(x, rng):  # the noise is for 1/4, and one number moves the sum by 1/2
    ...     return sum(abs(v - 0.5) for v in x) + rng.laplace(scale=0.25)
    >>> box = {"kind": "vector", "length": 4, "low": 0, "high": 1, "adjacency": "one"}
    >>> found = judge(spread, "eps=1", domain=box, seed=1)
    >>> found.verdict, found.by, found.loss
    ('refuted', 'recorded noise', 2.0)
    """
    started = time.perf_counter()
    check_options(seconds=seconds)
    seed = seed_from(seed, rng)
    subject = as_subject(mechanism)
    promise = stated_claim(subject, claim)
    inputs = {"domain": domain, "examples": examples, "pairs": pairs}
    given = [name for name, value in inputs.items() if value is not None]
    if len(given) > 1:
        raise UsageError(f"inputs must be given in one way, got {' and '.join(given)}.")
    guessed = ""
    if pairs is None and not given and subject.pairs() is not None:
        pairs = subject.pairs()
    elif not given or (isinstance(examples, list | tuple) and len(examples) and is_table(examples[0])):
        example = None if examples is None else examples[0]
        guess = guess_domain(subject.mechanism, example, searched_relation(promise), advice=ADVICE)
        domain, examples, guessed = guess.domain, None, guess.text
    search = None if pairs is not None else Search(domain, examples)
    listed = None if pairs is None else as_pairs(pairs)
    return _Judging(subject, promise, search, listed, guessed, float(seconds), root_of(seed), started).run()


def _end() -> None:
    raise OutOfTimeError


def _sentence(said: str) -> str:
    return said[:1].upper() + said[1:]


@dataclasses.dataclass
class _Judging:
    """One judgement while it is made."""

    subject: Subject
    claim: Claim
    search: Search | None
    listed: Sequence[Pair] | None
    guessed: str
    limit: float
    seed: int
    started: float
    runs: int = 0

    def __post_init__(self) -> None:
        self.domain = None if self.search is None else self.search.domain_for(self.claim)
        self.is_whole = self.search is None
        self.pairs: Sequence[Pair] = ()
        self.depends = Dependence(self.subject.mechanism)  # Validity: as it is given, before any call
        self.climbed: Climb | None = None
        self.noise_free: NoiseFree | None = None
        self.certificate: Certificate | None = None
        self.recorded: dict[str, RecordedPair] = {}
        self.result: AuditResult | None = None
        self.refuted: functools.partial[Judgement] | None = None  # while the pair of what is decided is made small
        self.rate = ERROR_RATE

    @property
    def left(self) -> float:
        """Seconds."""
        return self.limit - (time.perf_counter() - self.started)

    def run(self) -> Judgement:
        """The steps of the module, up to the first that decides."""
        try:
            now, least = time.monotonic(), max(self.left, SHARES.least_time)
            end = now + SHARES.end * least  # a program may catch what breaks it off: no outcome is that
            with until(min(now + (1.0 + SHARES.over) * least, end)), interrupted(end, _end):
                return self._run()
        except OutOfTimeError:
            over = "The time was over before anything was decided."
            return self._judgement("inconclusive", "", over) if self.refuted is None else self.refuted()
        except KeyboardInterrupt as interrupt:
            interrupt.add_note(self._so_far())
            raise

    def _run(self) -> Judgement:
        try:
            pairs = self.pairs = self._look()
            found = self._by_recording(pairs) or self._by_certificate(pairs)
            if found is not None:
                return found
            # What a certificate leaves open may be kept by a record of all pairs, if those that were recorded are.
            if self.recorded and all(self._kept_by(pair) for pair in pairs if pair.id in self.recorded):
                found = self._by_recording(pairs, SHARES.record_more)
            return found or self._proved(pairs) or self._kept_or(self._by_draws(pairs), pairs)
        except OutOfTimeError:
            raise
        except SubjectError as error:
            return self._judgement("error", "", f"{error}", next_step="Mend what is raised, then judge it again.")

    # Step 1.

    def _look(self) -> Sequence[Pair]:
        """The pairs to prove something of; the most sensitive first."""
        try:
            self.noise_free = NoiseFree(self.subject, self.claim, self.seed, self.depends)
            self.noise_free.recorder.deadline = time.monotonic() + SHARES.symbols * self.left
        except UsageError:  # it runs in another process
            self.noise_free = None
        if self.listed is not None:
            return self.listed
        assert self.search is not None
        if isinstance(self.domain, Domain) and not self.guessed and self.search.examples is None:
            whole = self.domain.all_pairs()
            if whole is not None:
                self.is_whole = True
                return as_pairs([pair for pair in whole if not self.claim.for_pair(pair.x, pair.x_prime).is_vacuous])
        if self.noise_free is None:
            return ()
        place = self.domain if self.domain is not None else self.search.domain
        with kept_by_conversions(self.depends), within(SHARES.climb * self.limit):
            self.climbed = climb(self.noise_free, place, self.seed)
        found = [*self.climbed.best, *(() if self.noise_free.only_adds else self.climbed.others)]
        return as_pairs([Pair(one.x, one.x_prime) for one in found]) if found else ()

    # Step 2.

    def _by_recording(self, pairs: Sequence[Pair], share: float = SHARES.record) -> Judgement | None:
        """The judgement "refuted" by recorded noise, or None; what is found of each pair goes into `recorded`."""
        if self.noise_free is None:
            return None
        end = self.noise_free.recorder.until = time.monotonic() + share * self.limit
        for pair in (pair for pair in pairs[: SHARES.most_pairs] if pair.id not in self.recorded):
            if time.monotonic() > end and self.recorded:
                break
            found = self.noise_free.recorder.pair(pair)
            self.recorded[pair.id] = found
            if found.grade == "proved":
                self.refuted = functools.partial(self._refuted_by_record, pair, found)
                return self._refuted_by_record(*self._smaller(pair, found))
        return None

    def _refuted_by_record(self, pair: Pair, found: RecordedPair) -> Judgement:
        said = found.statement.split(", ", 1)[-1] if found.statement.startswith("declared") else found.statement
        known: dict[str, Any] = {"pair": pair, "loss": found.loss, "places": found.places}
        return self._judgement("refuted", "recorded noise", _sentence(said), **known)

    def _smaller(self, pair: Pair, found: RecordedPair) -> tuple[Pair, RecordedPair]:
        """A pair that is proved to break the claim, made small while it does."""
        assert self.noise_free is not None
        noise_free, end, kept = self.noise_free, time.monotonic() + SHARES.shrink * self.limit, [(pair, found)]
        noise_free.recorder.until = end

        def breaks(x: Any, x_prime: Any) -> bool:
            if time.monotonic() > end or self.claim.for_pair(x, x_prime).is_vacuous:
                return False
            proof = noise_free.recorder.pair(smaller := Pair(x, x_prime))
            if proof.grade == "proved":
                kept.append((smaller, proof))
            return proof.grade == "proved"

        domain = self.domain if isinstance(self.domain, Domain) else None
        if domain is not None:  # without one nothing says what a neighbour is
            make_smaller(pair, domain, breaks)
        return kept[-1]

    def _by_certificate(self, pairs: Sequence[Pair]) -> Judgement | None:
        """A refutation by a certificate; the certificate is kept."""
        if not pairs or self.noise_free is None:
            return None
        # Validity: a certificate is of a program as it is found, and recorded runs may have left something in it.
        if any("a memory" in found.unproved for found in self.recorded.values()):
            return None
        try:
            seconds = max(min(SHARES.certify * self.limit, self.left), 0.1)
            few = pairs[: SHARES.most_certified]
            self.certificate = certified(self.depends, self.subject, self.claim, few, seconds)
        except (UsageError, Suspended):  # a claim that has no certificate; a time that ended where it was not expected
            return None
        self.runs += self.certificate.runs + self.certificate.real_runs
        if self.certificate.verdict != "violated":
            return None
        worst = self.certificate.worst
        pair = next(pair for pair in pairs if pair.id == worst.id)
        statement = f"{_sentence(loss_text(worst))}, by running through all outcomes of its draws. {event_text(worst)}"
        return self._judgement("refuted", "certificate", statement, pair=pair, loss=worst.epsilon_lower)

    def _kept_by(self, pair: Pair) -> By:
        """By what a pair is proved to keep its claim; empty where it is not."""
        if self.certificate is not None:
            own = next((one for one in self.certificate.pairs if one.id == pair.id), None)
            if own is not None and own.verdict == "kept":
                return "certificate"
        found = self.recorded.get(pair.id)
        if found is None or found.grade != "same" or found.implied is None or found.unproved or found.impurity:
            return ""
        claim = self.claim.for_pair(pair.x, pair.x_prime)
        allowed = math.inf if claim.is_vacuous else claim.value
        return "recorded noise" if found.implied <= allowed * (1.0 + 1e-6) else ""

    def _all_kept_by(self, pairs: Sequence[Pair]) -> By:
        """By what all pairs are proved to keep their claims, the weaker one of two; empty where one is not."""
        kept = {self._kept_by(pair) for pair in pairs}
        return "" if not kept or "" in kept else "recorded noise" if "recorded noise" in kept else "certificate"

    # Step 3.

    def _proved(self, pairs: Sequence[Pair]) -> Judgement | None:
        """Judgement where every pair is proved to keep its claim; None where one is not."""
        by = self._all_kept_by(pairs)
        if not by:
            return None
        if self.climbed is not None and (self.climbed.lost or self.noise_free is None or not self.noise_free.only_adds):
            return None  # the pair that is the farthest apart need not be the worst
        held = self._held(pairs)
        if held is not None:
            return held
        if self.is_whole:
            these = "this pair" if len(pairs) == 1 else f"these {len(pairs):,} pairs"
            said = "all pairs of its domain" if self.search is not None else these
            if by == "certificate":
                return self._judgement("proved", by, f"Its loss is proved to be within the claim for {said}.")
            # Validity: its losses are computed in doubles, with a slack, where those of a certificate have bounds.
            sure = "computed to one part in a million, in real numbers"
            statement = f"Its recorded noise keeps the claim for {said}, {sure}."
            return self._judgement("not_refuted", by, statement)
        assert self.climbed is not None
        largest = self.climbed.best[0].distance if self.climbed.best else 0.0
        found = f"{counted(largest, 'scale')} of its noise"
        if self.claim.depends_on_pair:
            found = f"{counted(largest, 'budget')}, with 1e-6 nats more a budget"
        statement = (
            f"The largest difference that was found is {found}, on which the claim is kept by its record; "
            "of other pairs nothing is proved."
        )
        return self._judgement("not_refuted", by, statement)

    def _held(self, pairs: Sequence[Pair]) -> Judgement | None:
        """A violation on real runs of what was proved to be kept."""
        if self.left <= 0.0:
            return None
        few, self.rate = list(pairs[:1]), HELD_RATE
        try:
            self.result = audit(
                self.subject, self.claim, few, samples=self._samples(few, SHARES.held_samples),
                confidence=1.0 - HELD_RATE, seed=self.seed, floating_point=False, severity=False,
            )  # fmt: skip
        except OutOfTimeError:
            return None
        found = self._of_audit(self.result)  # which counts its runs
        return found if self.result.verdict in ("violated", "error") else None

    # Step 4.

    def _by_draws(self, pairs: Sequence[Pair]) -> Judgement:
        """The audit of what is not decided."""
        try:
            self.result = self._audited(pairs)
        except OutOfTimeError:
            if self.refuted is not None:
                raise
            return self._judgement("inconclusive", "", f"The {max(self.left, 0.0):.2g} s that are left allow no audit.")
        return self._of_audit(self.result)

    def _audited(self, pairs: Sequence[Pair]) -> AuditResult:
        options: dict[str, Any] = {"confidence": 1.0 - ERROR_RATE, "seed": self.seed, "floating_point": False}
        few = pairs if self.is_whole else pairs[: SHARES.pairs]  # where a search takes more time than is left
        budget = 0 if self.search is None or self.is_whole else self._search_budget(pairs)
        if self.search is None or not budget:
            return audit(self.subject, self.claim, few, samples=self._samples(few, SHARES.samples), **options)
        first = [(pair.x, pair.x_prime) for pair in pairs[: SHARES.first]]
        # What a record can say of a pair is known here already: replays of others would take their time from the draws.
        search = dataclasses.replace(self.search, budget=budget, pairs=SHARES.pairs, first=first, grey_box=False)
        with within(SHARES.search * self.left):
            found = search.choose_pairs(self.subject, self.claim, self.seed)
        self.runs += found.samples
        samples = self._samples(found.pairs, SHARES.samples, found.seconds / max(found.samples, 1))
        known: Any = types.SimpleNamespace(choose_pairs=lambda *_: found, domain_for=search.domain_for)  # made already

        def note(result: AuditResult) -> None:
            self.result = result
            if result.verdict == "violated":
                self.refuted = functools.partial(self._of_audit, result)

        return audit_and_shrink(self.subject, self.claim, known, samples=samples, on_audit=note, **options)

    def _kept_or(self, found: Judgement, pairs: Sequence[Pair]) -> Judgement:
        """Finding of an audit; where it settles nothing, the pairs found without draws that keep the claim."""
        by = self._all_kept_by(pairs)
        if found.verdict != "inconclusive" or self.climbed is None or self.climbed.lost or not by:
            return found
        held = self._held(pairs) if self.result is None else None
        if held is not None:
            return held
        audited = "an audit of them takes more time" if self.result is None else f"they were audited: {found.statement}"
        statement = (
            f"The claim is kept by the {by} of the {counted_pairs(len(pairs))} of which its noise hides the least, of "
            f"those that were found; of other pairs nothing is proved, and {audited.rstrip('.')}."
        )
        advice = "Give more time (--seconds) to audit other pairs."
        return self._judgement("not_refuted", by, statement, next_step=advice)

    def _samples(self, pairs: Sequence[Pair], wanted: int, least: float = 0.0) -> int:
        """Number of samples that fit into the time that is left, at most those that are wanted; else `OutOfTimeError`.

        `least` is what a draw takes in seconds at least, as far as is known.
        """
        each = max(self._seconds_a_run(pairs[0].x) + SHARES.seconds_a_draw, least)
        each_sample = 2.0 * each * len(pairs)
        if SHARES.least_samples * each_sample > max(self.left, 0.0) + SHARES.over * self.limit:
            raise OutOfTimeError
        return min(max(int(SHARES.draw * self.left / each_sample), SHARES.least_samples), wanted)

    def _search_budget(self, pairs: Sequence[Pair]) -> int:
        """Runs of the search with draws, from the time that some calls take; 0 if too few fit and pairs are known."""
        x = pairs[0].x if pairs else None
        if x is None and self.domain is not None:
            x = self.domain.random(stream(self.seed, PLAN_DRAWS, 1))[0]
        affordable = int(SHARES.search * self.left / (self._seconds_a_run(x) + SHARES.seconds_a_draw))
        if affordable < SHARES.smallest_search and not pairs:
            raise OutOfTimeError
        return min(affordable, SHARES.largest_search) if affordable >= SHARES.smallest_search else 0

    def _seconds_a_run(self, x: Any) -> float:
        """The time of one run, of some on this input."""
        size = SHARES.timed_batch if self.subject.is_vectorised else SHARES.timed
        left = max(self.left, 0.0) + SHARES.over * self.limit
        begun = time.perf_counter()
        # Calls that take longer leave no time for the least audit. An input that is not taken says little of the time.
        with contextlib.suppress(CallError), within(left * size / (2.0 * SHARES.least_samples)):
            if x is not None:
                self.subject.sample(x, size, stream(self.seed, PLAN_DRAWS, 0))
                self.runs += size
        return (time.perf_counter() - begun) / size

    def _of_audit(self, result: AuditResult) -> Judgement:
        """The judgement of an audit."""
        self.runs += result.samples
        if not result.findings:
            advice = "State a claim that sets a limit, or other pairs."
            return self._judgement("inconclusive", "", "The claim asks nothing of these pairs.", next_step=advice)
        broken = next((finding for finding in result.findings if finding.verdict == "violated"), None)
        if broken is None:
            verdicts: dict[str, Verdict] = {"inconclusive": "inconclusive", "error": "error"}
            verdict = verdicts.get(result.verdict, "not_refuted")
            said = next((finding.message for finding in result.findings if finding.message), "")
            statement = said if verdict == "error" else rows.missed_sentence(result)
            return self._judgement(verdict, "" if verdict == "error" else "statistics", statement)
        pair, bound = Pair(broken.x, broken.x_prime, broken.id, broken.x_id, broken.x_prime_id), broken.epsilon_lower
        small = next((side for side in result.side_findings if side.kind == SHRUNK and side.status == "found"), None)
        event = broken.witness.description if broken.witness is not None else ""
        what = f"{broken.parameter} is at least {broken.parameter_lower:.4g}, claimed {broken.parameter_budget:.4g}"
        statement = f"On this pair {what}" + (f", by the event: {event.rstrip('.')}." if event else ".")
        if small is not None:
            statement += f" {small.summary}"
        notes = self.recorded[pair.id].notes if pair.id in self.recorded else ()
        statement += next((f" Recorded: {note.text}." for note in notes if note.kind in CLEAR), "")
        return self._judgement("refuted", "statistics", statement, pair=pair, loss=bound, places=self._suspects(pair))

    def _suspects(self, pair: Pair) -> tuple[str, ...]:
        """The lines at which the recorded runs of a pair differ: nothing is proved of them."""
        if self.noise_free is None or self.left < -SHARES.over * self.limit:
            return ()
        self.noise_free.recorder.deadline = time.monotonic() + SHARES.shrink * self.limit
        try:
            return self.noise_free.recorder.pair(pair).places
        except DpauditError:
            return ()

    # What is said.

    def _so_far(self) -> str:
        """State of a judgement that is interrupted, in some sentences."""
        runs = self.runs + (self.noise_free.recorder.runs if self.noise_free is not None else 0)
        of_them = f"{self.limit - self.left:.3g} s and {runs:,} runs, those of an audit apart (seed {self.seed})"
        if self.refuted is not None:
            self.noise_free = None  # whoever interrupts does not want the program called again
            return f"Refuted, after {of_them}: {self.refuted().statement}"
        said = [f"Nothing is decided yet, after {of_them}."]
        if kept := sum(bool(self._kept_by(pair)) for pair in self.pairs):
            said.append(f"Of {counted_pairs(len(self.pairs))} {kept:,} keep the claim by proof, before real runs.")
        if why := self._why_unproved():
            said.append(f"Nothing of it is proved: {why}.")
        return " ".join(said)

    def _why_unproved(self) -> str:
        """Reason why neither a certificate nor a record says what is lost; empty where none was made."""
        pairs = () if self.certificate is None else self.certificate.pairs
        certified = [pair.reason for pair in pairs if pair.verdict == "open"]
        recorded = [why for found in self.recorded.values() if (why := found.impurity or found.unproved)]
        of_real_law = [reason for reason in certified if OF_REAL_LAW in reason]
        why = next(iter([*(one for one in certified if one not in of_real_law), *recorded, *of_real_law]), "")
        return why.removeprefix("undecided, because ").rstrip(".")

    def _judgement(
        self,
        verdict: Verdict,
        by: By,
        statement: str,
        *,
        pair: Pair | None = None,
        loss: float = math.nan,
        places: tuple[str, ...] = (),
        next_step: str = "",
    ) -> Judgement:
        recorded = self.noise_free.recorder.runs if self.noise_free is not None else 0
        details: dict[str, Any] = {}
        is_open = (by == "statistics" and verdict != "refuted") or (verdict == "inconclusive" and not next_step)
        why = self._why_unproved() if is_open else ""
        statement += f" Nothing of it is proved: {why}." * bool(why)
        if self.result is None and by in ("certificate", "recorded noise") and verdict != "refuted":
            statement += " There was no time to hold this against real runs."
        if self.result is not None:
            details["audit"] = self.result.to_dict()
            if verdict not in ("refuted", "error"):  # a function without its `return` keeps any claim
                statement = " ".join([statement, *(f"Note: {text}" for text in wording.notes(self.result))])
        if self.certificate is not None:
            details["certificate"] = self.certificate.to_dict()
        if self.recorded:
            details["recorded"] = [
                {"id": one.id, "grade": one.grade, "loss": one.loss, "implied": one.implied, "unproved": one.unproved}
                for one in self.recorded.values()
            ]
        searched: dict[str, Any] = {}
        if self.domain is not None:
            searched["domain"] = self.domain.to_dict()
        if self.climbed is not None:
            figures = ("tried", "lost", "runs", "seconds", "problem", "is_cut")
            searched |= {name: getattr(self.climbed, name) for name in figures}
            searched["distance"] = self.climbed.best[0].distance if self.climbed.best else 0.0
        return Judgement(
            subject=self.subject.describe(),
            claim=str(self.claim),
            verdict=verdict,
            by=by,
            statement=" ".join(statement.split()),
            scope=self._scope(verdict),
            places=places,
            pair_id="" if pair is None else pair.id,
            pair=pair,
            loss=loss,
            error_rate=self.rate if by == "statistics" else 0.0,
            guessed=self.guessed,
            next_step=next_step or advice(verdict, by, places, why, self.search is None, bool(self.guessed)),
            seed=self.seed,
            runs=self.runs + recorded,
            seconds=time.perf_counter() - self.started,
            searched=searched,
            details=details,
        )

    def _scope(self, verdict: Verdict) -> str:
        """Of which inputs the verdict speaks, and what was never tried."""
        if verdict == "refuted":
            return "A pair that breaks the claim is enough: nothing is said of others."
        return f"{self._tried()} Not judged: what calls print, log or write; low bits of doubles (see `dpaudit audit`)."

    def _tried(self) -> str:
        if self.search is None:
            count = counted_pairs(len(self.listed or ()))
            return f"This speaks of the {count} that {'was' if count == '1 pair' else 'were'} given, and of no others."
        if self.is_whole:
            return "This speaks of every pair of neighbours of the domain, and of no inputs outside of it."
        domain = {"kind": "strategy"} if self.domain is None else self.domain.to_dict()
        cut = ", which the limit of time cut short" * (self.climbed is not None and self.climbed.is_cut)
        count = f"{self.climbed.tried:,} pairs were tried without sampling{cut}. " if self.climbed is not None else ""
        return f"{count}{place_sentence(domain)}"
