"""Stages of an audit: what it asks once its pairs are played, in one order; what a stage draws, nothing else reads.

Those of `EVIDENCE` may change or withhold bounds and power (metadata change nothing). Then the findings are made, and
with them the verdict, which those of `BESIDE` may read and cannot change.

Validity
--------
* **Streams.** No two stages, and no stage and the game, read the same stream (`purposes`; a test walks the list). So
  given everything drawn before, the draws of a stage are independent and of the laws of the subject, whatever decided
  that the stage runs, on which pairs and with how many draws.
* **Levels.** A stage has its own rate (`rate`), fixed by the options. Only the band takes a part of the error rate of
  the call, which the game leaves out, drawn or not. A severity has that whole rate and pays nothing: see its module.
* **Withholding.** That draws depend on each other takes bounds and power away and never adds any.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import islice

import numpy as np

from dpaudit.audits import low_bits, severity, side_channels, single_calls
from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.claim_metadata import claim_metadata
from dpaudit.audits.findings import IN_SMALL_BATCHES, STAGE_PAIRS, STAGE_RATE, changes_of, order_finding, withhold_all
from dpaudit.audits.options import BAND_SHARE, Options
from dpaudit.errors import OutOfTimeError
from dpaudit.inference.order import RATE, most_runs_of_batches
from dpaudit.privacy.pairs import Pair
from dpaudit.results.all_pairs_table import NOT_ASKED
from dpaudit.results.model import SAME_INPUT, VERDICTS
from dpaudit.results.trade_off import TradeOffBand
from dpaudit.running import streams
from dpaudit.running.label_games import ask_batches
from dpaudit.running.streams import stream
from dpaudit.subjects.call_limits import is_time_over
from dpaudit.subjects.isolation import IsolatedSubject

DEPEND = "Draws depend on each other, and the check supposes that they do not."
NOT_BEHIND_VIOLATION = (
    f"A pair is violated, and a call takes more than {1_000 * low_bits.SIZES.slow_call:g} ms, so that low bits are "
    "looked at only when asked for: floating_point=True, --floating-point."
)
OUT_OF_TIME = "The time was over."
BEFORE = "Low bits are looked at in the first session of evidence alone; its report says whether, and what was found."
ENDED = "The calls of the subject do not all come back."


class Stage(ABC):
    """A stage: whether it is asked for, why it cannot run, and what it adds to where the audit stands."""

    purposes: tuple[int, ...] = ()  # of the streams that it reads
    what = ""  # it asks, where it can be left out as the time is over
    own_rate = 0.0  # of its error, beside the error rate of the call
    share = 0.0  # of the error rate of the call

    def rate(self, options: Options) -> float:
        """The probability, at most, that its draws have it say something false; 0 where it says nothing about laws."""
        return self.own_rate + self.share * (1.0 - options.confidence)

    def is_asked(self, run: AuditRun) -> bool:
        """True where an audit like this one asks for it."""
        return True

    def why_not(self, run: AuditRun) -> str:
        """Reason why it cannot say anything here, as a sentence; empty where it can."""
        return ""

    def leave_out(self, run: AuditRun, reason: str) -> None:  # noqa: B027 (most can always run)
        """Say in its finding why there is none."""

    @abstractmethod
    def run(self, run: AuditRun) -> None:
        """Draw, and add what was found."""


class Metadata(Stage):
    """Promises of the subject's own metadata: `dpaudit.audits.claim_metadata`."""

    def run(self, run: AuditRun) -> None:
        run.beside += claim_metadata(run.subject, run.promise, run.chosen)


class SeverityStage(Stage):
    """Severity of the violated pairs, the clearest first: `dpaudit.audits.severity`.

    A pair of which nothing is said, as its noise is kept, has none. A pool asks several pairs, and a store's sessions
    show no outcomes.
    """

    what = "how bad a violation is"
    purposes = streams.SEVERITY_DRAWS, streams.SEVERITY_COINS
    share = 1.0  # the pairs' own levels: see its module

    def is_asked(self, run: AuditRun) -> bool:
        asked = run.options.severity is None or bool(run.options.severity)
        is_possible = run.options.mode != "fixed" and run.shown is not None and not run.depends
        return asked and is_possible and bool(self._violated_games(run))

    def leave_out(self, run: AuditRun, reason: str) -> None:
        # Validity: time may depend on what was drawn, and so which pair has a stage: none has the audit's own bound.
        run.severities = {**{run.groups[k][0]: None for k in self._violated_games(run)}, **run.severities}

    def _violated_games(self, run: AuditRun) -> list[int]:
        alone = [k for k, group in enumerate(run.groups) if len(group) == 1 and k not in run.withheld]
        return [k for k in alone if run.games[k].is_violated]

    def run(self, run: AuditRun) -> None:
        broken = self._violated_games(run)
        run.severities = {run.groups[k][0]: None for k in broken}
        for k in sorted(broken, key=lambda k: -run.games[k].wealth)[:STAGE_PAIRS]:
            draws = severity.draws_of(run.labelled[k], run.options.samples, bool(run.options.severity))
            if draws == 0 or run.failure:
                continue
            found, runs = severity.examine(run, k, draws)
            run.runs += runs
            if run.depends:
                run.severities = {}
                return
            run.severities[run.groups[k][0]] = found
            if found is None and is_time_over():
                raise OutOfTimeError


class Dependence(Stage):
    """Dependence between draws: small batches of one input, where the audit's own outcomes show none."""

    purposes = (streams.BATCH_DRAWS,)
    own_rate = IN_SMALL_BATCHES * RATE  # the finding says what the audit's own outcomes show too, at a rate for both

    def run(self, run: AuditRun) -> None:
        said = [k for k in range(len(run.games)) if k not in run.withheld]  # of the others nothing is said
        if said and not (run.failure or run.session or run.depends):
            place = run.clearest(said)
            game, x = run.games[place], run.pairs[run.groups[place][0]].x
            most = most_runs_of_batches(run.played, game.hint)
            sizes = run.options.samples, most, game.is_violated, game.score
            game.change, runs = ask_batches(run.subject, x, run.root, run.worker_pool, *sizes)
            run.runs += runs
        withhold_all(run.games)
        changes = changes_of(run.games) if run.table is None else (run.changes, run.inputs)
        run.beside += order_finding(*changes, run.options.mode == "fixed", max(run.session, 1))


class SecondLook(Stage):
    """Calls for one output each behind violations of a vectorised subject: `dpaudit.audits.single_calls`.

    A session of a store has none, as later ones go on from its evidence, and says so.
    """

    what = single_calls.WHAT
    purposes = streams.SINGLE_DRAWS, streams.SINGLE_COINS
    own_rate = 1.0 / single_calls.SIZES.against

    def is_asked(self, run: AuditRun) -> bool:
        return run.subject.is_vectorised and not run.depends and bool(self._violated(run))

    def leave_out(self, run: AuditRun, reason: str) -> None:
        for k in self._violated(run):
            run.games[k].remarks += (single_calls.STORED if run.session else single_calls.SLOW,)

    def run(self, run: AuditRun) -> None:
        if run.session:
            self.leave_out(run, "")
        else:
            single_calls.look_again(run, self._violated(run))

    def _violated(self, run: AuditRun) -> list[int]:
        return [k for k, game in enumerate(run.games) if game.is_violated and k not in run.withheld]


class Plants(Stage):
    """Power of this audit in its own outputs: `dpaudit.audits.planted`."""

    what = "the power in its own outputs"
    purposes = (streams.PLANTS,)

    def is_asked(self, run: AuditRun) -> bool:
        return run.options.power != "off" and run.table is None and not run.depends

    def run(self, run: AuditRun) -> None:
        from dpaudit.audits.planted import plant  # few audits need it

        run.powers = plant(run)


class BandStage(Stage):
    """The band of the clearest pair's trade-off function: `dpaudit.audits.band`."""

    what = "the band"
    purposes = (streams.BAND_DRAWS,)
    share = BAND_SHARE

    def is_asked(self, run: AuditRun) -> bool:
        return bool(run.options.band)

    def why_not(self, run: AuditRun) -> str:
        from dpaudit.audits import band  # few audits need it, and it takes long to import

        return band.DEPEND if run.depends else band.FAILED if run.failure or not self._testable_games(run) else ""

    def leave_out(self, run: AuditRun, reason: str) -> None:
        run.trade_off = TradeOffBand("", self.rate(run.options), reason=reason)

    def run(self, run: AuditRun) -> None:
        from dpaudit.audits import band

        member = run.groups[run.clearest(self._testable_games(run))][0]
        run.trade_off, runs = band.examine(run, member, self.rate(run.options))
        run.runs += runs
        if run.trade_off.reason == band.RAISED and is_time_over():
            raise OutOfTimeError

    def _testable_games(self, run: AuditRun) -> list[int]:
        return [k for k, game in enumerate(run.games) if not game.is_broken and k not in run.withheld]


class LowBits(Stage):
    """Leaks in the low bits of real-valued outputs: `dpaudit.audits.low_bits`.

    Of the pairs of an all-pairs table those with the smallest budgets are candidates, as many as are examined.
    """

    what = "the low bits"
    purposes = streams.FLOAT_DRAWS, streams.FLOAT_COINS
    own_rate = STAGE_RATE

    def is_asked(self, run: AuditRun) -> bool:
        return run.options.floating_point in (None, True)

    def why_not(self, run: AuditRun) -> str:
        if run.depends:
            return DEPEND
        if run.went_on:
            return BEFORE
        if self._draws(run) == 0:
            least = low_bits.SIZES.min_samples
            return f"samples must be at least {least:,} for this check, got {run.options.samples:,}."
        is_slow = not run.subject.is_vectorised and run.worker_pool.seconds_a_run > low_bits.SIZES.slow_call
        if run.verdict == "violated" and is_slow and run.options.floating_point is None:
            return NOT_BEHIND_VIOLATION
        # Validity: these draws are made input by input: a time-out could tell when it was, and so of which input.
        return ENDED if run.subject.has_lost_calls else ""

    def leave_out(self, run: AuditRun, reason: str) -> None:
        candidates, omitted = self._candidates(run)
        samples = run.floating_point.samples if run.floating_point is not None else 0
        omitted = 0 if reason == DEPEND else omitted + len(candidates)
        run.floating_point = low_bits.not_applicable(reason, samples, omitted)

    def run(self, run: AuditRun) -> None:
        candidates, omitted = self._candidates(run)
        data = {i: x for one in candidates for i, x in zip(one.inputs, (one.pair.x, one.pair.x_prime), strict=True)}
        draw = run.worker_pool.drawer(run.subject, data, run.root, streams.FLOAT_DRAWS)
        found = low_bits.examine(
            candidates, self._draws(run), draw, lambda place: stream(run.root, streams.FLOAT_COINS, place)
        )
        run.floating_point = dataclasses.replace(found, omitted=found.omitted + omitted)
        if run.subject.has_lost_calls:
            self.leave_out(run, ENDED)

    def _draws(self, run: AuditRun) -> int:
        taken = run.played // max(run.inputs, 1)
        return low_bits.draws_of(run.options.samples, run.subject.is_vectorised, taken)

    def _candidates(self, run: AuditRun) -> tuple[list[low_bits.Candidate], int]:
        """The pairs that may be examined, and how many others there are."""
        if (table := run.table) is None:
            return [
                low_bits.Candidate(run.pairs[k], run.positions[k], finding.budget, k)
                for k, finding in enumerate(run.findings)
                if finding.verdict != "error" and SAME_INPUT not in finding.notes
            ], 0
        asked = np.flatnonzero((table.verdict != NOT_ASKED) & (table.verdict != VERDICTS.index("error")))
        order = asked[np.lexsort((asked, table.budget[asked]))][:STAGE_PAIRS]
        candidates = []
        for row in order.tolist():
            pair = run.chosen[row]
            budget = run.promise.for_pair(pair.x, pair.x_prime).budget
            candidates.append(low_bits.Candidate(pair, (int(table.first[row]), int(table.second[row])), budget, row))
        return candidates, len(asked) - len(order)


class Isolated(Stage):
    """A stage of a subject in worker processes: `dpaudit.audits.side_channels`."""

    def is_asked(self, run: AuditRun) -> bool:
        return isinstance(run.subject, IsolatedSubject)

    def pairs(self, run: AuditRun) -> list[Pair]:
        """The first pairs that the claim asks something of."""
        asked = (pair for pair in run.chosen if not run.promise.for_pair(pair.x, pair.x_prime).is_vacuous)
        return list(islice(asked, STAGE_PAIRS))


class Independence(Isolated):
    """Noise that calls of one worker share."""

    what = "noise shared between calls"
    purposes = (streams.INDEPENDENCE_DRAWS,)
    own_rate = STAGE_RATE

    def is_asked(self, run: AuditRun) -> bool:
        has_draws = run.options.samples >= low_bits.SIZES.min_samples and run.verdict != "error"
        return super().is_asked(run) and has_draws and bool(self.pairs(run))

    def run(self, run: AuditRun) -> None:
        assert isinstance(run.subject, IsolatedSubject)
        run.beside.append(side_channels.independence_finding(run.subject, self.pairs(run)[0], run.root))


class Timing(Isolated):
    """Inputs that the time of a call tells."""

    what = "the time of calls"
    purposes = streams.TIMING_DRAWS, streams.TIMING_COINS
    own_rate = STAGE_RATE

    def is_asked(self, run: AuditRun) -> bool:
        return isinstance(run.subject, IsolatedSubject) and bool(run.subject.isolation.timing)

    def run(self, run: AuditRun) -> None:
        assert isinstance(run.subject, IsolatedSubject)
        calls = run.subject.isolation.timing
        run.beside.append(side_channels.timing_finding(run.subject, self.pairs(run), calls, run.root))


class Containment(Isolated):
    """Record of what was contained, in the stages before too: it is said before what they found."""

    def run(self, run: AuditRun) -> None:
        assert isinstance(run.subject, IsolatedSubject)
        of_calls = [one for one in run.beside if one.kind in ("independence", "timing")]
        place = len(run.beside) - len(of_calls)
        run.beside.insert(place, side_channels.containment_finding(run.subject))


class SearchReport(Stage):
    """Origin of pairs that were searched for: no evidence."""

    def is_asked(self, run: AuditRun) -> bool:
        return run.searched is not None

    def run(self, run: AuditRun) -> None:
        assert run.searched is not None
        run.beside += run.searched.side_findings(run.findings)


class GreyBoxStage(Stage):
    """Differences on the same random streams, and proofs from recorded noise: no statistics."""

    what = "the same randomness on both inputs"
    purposes = streams.GREY_BOX, streams.RECORDED

    def is_asked(self, run: AuditRun) -> bool:
        return run.options.grey_box and all(finding.kind != "same_randomness" for finding in run.beside)

    def run(self, run: AuditRun) -> None:
        from dpaudit.audits.grey_box import GreyBox  # few audits need these, and they take long to import
        from dpaudit.symbolic.recorded_noise import MAX_PAIRS, MOST_RECORDED, recorded_finding

        compared = GreyBox(run.subject, run.promise, run.root).examine(list(islice(run.chosen, MAX_PAIRS)))
        run.beside.append(compared.side_finding())
        run.beside.append(recorded_finding(run.subject, run.promise, list(islice(run.chosen, MOST_RECORDED)), run.root))
        if compared.message and is_time_over():
            raise OutOfTimeError


EVIDENCE: tuple[Stage, ...] = (Metadata(), SeverityStage(), Dependence(), SecondLook(), Plants())
BESIDE: tuple[Stage, ...] = (
    BandStage(), LowBits(), Independence(), Timing(), Containment(), SearchReport(), GreyBoxStage()
)  # fmt: skip
STAGES = (*EVIDENCE, *BESIDE)


def play_stages(run: AuditRun, stages: Sequence[Stage]) -> None:
    """Play the stages that an audit asks for, in their order; those that cannot run say why.

    Where the time is over (`dpaudit.subjects.call_limits`) those are left out that draw much, and it is said of them.
    """
    for stage in stages:
        if not stage.is_asked(run):
            continue
        reason = stage.why_not(run)
        if not reason and stage.what and is_time_over():
            reason = OUT_OF_TIME
        elif not reason:
            try:
                stage.run(run)
            except OutOfTimeError:
                reason = OUT_OF_TIME
        if reason:
            stage.leave_out(run, reason)
        if stage.what and reason == OUT_OF_TIME:
            run.cut.append(stage.what)
