"""Stages behind a verdict: what an audit asks once its pairs are played, in one order, each on draws of its own.

Validity
--------
* **Streams.** No two stages, and no stage and the game, read the same stream (`purposes`; a test walks the list). So
  given everything drawn before, the draws of a stage are independent and of the laws of the subject, whatever decided
  that the stage runs, on which pairs and with how many draws.
* **Levels.** A stage has its own rate (`rate`), fixed by the options. Only the band's is part of the error rate of the
  call, and the game leaves it out whether the band is drawn or not. What a severity pays, its module derives.
* **Withholding.** That draws depend on each other takes bounds and power away and never adds any.
"""

from __future__ import annotations

import dataclasses
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np

from dpaudit.audits import low_bits, severity, side_channels
from dpaudit.audits.claim_metadata import claim_metadata
from dpaudit.audits.findings import changes_of, finding_of, findings_of_pool, order_finding, with_controls, withhold_all
from dpaudit.audits.kept import withheld
from dpaudit.audits.options import BAND_SHARE, Options
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.inputs import is_same_input
from dpaudit.privacy.pairs import Pair
from dpaudit.reading.outcomes import Outcomes
from dpaudit.results.model import VERDICTS, Finding, FloatingPointFinding, Severity, SideFinding, Verdict
from dpaudit.results.trade_off import TradeOffBand
from dpaudit.results.universe_table import NOT_ASKED, UniverseTable
from dpaudit.running import streams
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.streams import stream
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.isolation import IsolatedSubject
from dpaudit.testing.order import RATE, Change, in_small_batches, most_runs_of_batches
from dpaudit.testing.pair_game import PairGame

DEPEND = "Draws depend on each other, and the check supposes that they do not."
NOT_BEHIND_VIOLATION = (
    f"A pair is violated, and a call takes more than {1_000 * low_bits.SIZES.slow_call:g} ms, so that low bits are "
    "looked at only when asked for: floating_point=True, --floating-point."
)
ENDED = "The calls of the subject do not all come back."


class ChosenPairs(Protocol):
    """Pairs that were searched for, and where they come from."""

    @property
    def pairs(self) -> Sequence[Pair]: ...

    def side_findings(self, findings: Sequence[Finding]) -> tuple[SideFinding, ...]: ...


@dataclasses.dataclass
class Standing:
    """Where an audit stands behind its game or its table, and what its stages have added.

    `groups` has the positions of the pairs that each game asks, `kept` why nothing can be said of a game
    (`audits.kept`), and `shown` the outcomes of a game that fits may see, on x and on x_prime. A universe has a table
    in the place of games.
    """

    subject: Subject
    promise: Claim
    chosen: Sequence[Pair]
    options: Options
    root: int
    crew: Crew
    searched: ChosenPairs | None = None
    pairs: Sequence[Pair] = ()  # that the claim asks something of
    claims: Sequence[Claim] = ()
    not_asked: tuple[str, ...] = ()  # ids of the others
    report_delta: float = 0.0
    positions: Sequence[tuple[int, int]] = ()  # of the inputs of pairs
    inputs: int = 0
    games: Sequence[PairGame] = ()
    labelled: Sequence[int] = ()
    groups: Sequence[Sequence[int]] = ()
    kept: dict[int, str] = dataclasses.field(default_factory=dict)
    shown: Callable[[PairGame], tuple[Outcomes, Outcomes]] | None = None
    universe: UniverseTable | None = None
    of_universe: tuple[Finding, ...] = ()
    changes: tuple[Sequence[Change], int] = ((), 0)  # of a universe, and of how many inputs they were asked
    runs: int = 0
    failure: str = ""
    traceback: str = ""  # of what broke, as text
    night: int = 0  # of a store: what it was told stays with the evidence
    went_on: bool = False  # whether an earlier night had evidence
    said: dict[str, Any] = dataclasses.field(default_factory=dict)  # more options of the result
    severities: dict[int, Severity | None] = dataclasses.field(default_factory=dict)  # of pairs that may have one
    trade_off: TradeOffBand | None = None
    floating_point: FloatingPointFinding | None = None
    beside: list[SideFinding] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.played = self.runs  # without those of stages

    @property
    def depends(self) -> bool:
        """Whether draws of some pair were seen to depend on each other."""
        return bool(self.changes[0]) or any(game.change for game in self.games)

    @functools.cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, as the stages up to the first that reads them have left the games; of a pool one a member."""
        if self.universe is not None:
            return self.of_universe
        found_of: dict[int, Finding] = {}
        sizes = self.options.event_mass, self.options.inconclusive_factor
        for place, (group, game) in enumerate(zip(self.groups, self.games, strict=True)):
            members = [self.pairs[k] for k in group]
            told = next((member for member in members if not is_same_input(member)), members[0])  # it has a power
            one = finding_of(told, game, self.labelled[place], self.subject.name, self.failure, *sizes)
            if one.verdict == "error" and not one.traceback:
                one = dataclasses.replace(one, traceback=self.traceback)
            if one.verdict == "violated" and group[0] in self.severities:
                one = severity.with_severity(one, self.severities[group[0]], game)
            of_members = findings_of_pool(one, members, game, self.subject.name)
            if place in self.kept:
                of_members = [withheld(own, self.kept[place]) for own in of_members]
            found_of.update(zip(group, of_members, strict=True))
        return tuple(with_controls([found_of[k] for k in sorted(found_of)]))

    @property
    def verdict(self) -> Verdict:
        """The first of `VERDICTS` that a finding, or the table, has."""
        found = {finding.verdict for finding in self.findings}
        found |= set() if self.universe is None else {self.universe.overall}
        return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")

    def clearest(self, places: Sequence[int]) -> int:
        """The game of these with the clearest evidence."""
        return max(places, key=lambda k: (self.games[k].is_violated, self.games[k].wealth, -k))


class Stage(ABC):
    """A stage: whether it is asked for, why it cannot run, and what it adds to where the audit stands."""

    purposes: tuple[int, ...] = ()  # of the streams that it reads

    def rate(self, options: Options) -> float:
        """The probability, at most, that it says something false; 0 where it says nothing about laws."""
        return 0.0

    def is_asked(self, at: Standing) -> bool:
        """Whether an audit like this one asks for it."""
        return True

    def why_not(self, at: Standing) -> str:
        """Why it cannot say anything here, as a sentence; empty where it can."""
        return ""

    def leave_out(self, at: Standing, reason: str) -> None:  # noqa: B027 (most can always run)
        """Say in its finding why there is none."""

    @abstractmethod
    def run(self, at: Standing) -> None:
        """Draw, and add what was found."""


class Metadata(Stage):
    """What the subject's own metadata promise: `dpaudit.audits.claim_metadata`."""

    def run(self, at: Standing) -> None:
        at.beside += claim_metadata(at.subject, at.promise, at.chosen)


class SeverityStage(Stage):
    """How bad the violated pairs are, the clearest first: `dpaudit.audits.severity`.

    A pair of which nothing is said, as its noise is kept, has none. A pool asks several pairs, and a store's nights
    show no outcomes.
    """

    purposes = streams.SEVERITY_DRAWS, streams.SEVERITY_COINS

    def rate(self, options: Options) -> float:
        return 1.0 - options.confidence  # of the pairs' own levels: see its module

    def is_asked(self, at: Standing) -> bool:
        asked = at.options.severity is None or bool(at.options.severity)
        return asked and at.options.mode != "fixed" and at.shown is not None and not at.depends

    def run(self, at: Standing) -> None:
        alone = [k for k, group in enumerate(at.groups) if len(group) == 1 and k not in at.kept]
        broken = [k for k in alone if at.games[k].is_violated]
        at.severities = {at.groups[k][0]: None for k in broken}
        assert at.shown is not None
        for k in sorted(broken, key=lambda k: -at.games[k].wealth)[: severity.MOST_EXAMINED]:
            draws = severity.draws_of(at.labelled[k], at.options.samples, bool(at.options.severity))
            if draws == 0 or at.failure:
                continue
            game, place = at.games[k], at.groups[k][0]
            at.severities[place], game.change, runs = severity.examine(
                at.pairs[place], at.claims[place], game, place, shown=at.shown(game), subject=at.subject, draws=draws,
                seed=at.root, crew=at.crew,
            )  # fmt: skip
            at.runs += runs
            if game.change is not None:
                at.severities = {}
                return


class Dependence(Stage):
    """Whether draws depend on each other: small batches of one input more, where no outcomes told (`testing.order`)."""

    purposes = (streams.BATCH_DRAWS,)

    def rate(self, options: Options) -> float:
        return RATE

    def run(self, at: Standing) -> None:
        said = [k for k in range(len(at.games)) if k not in at.kept]  # of the others nothing is said
        if said and not (at.failure or at.night or at.depends):
            place = at.clearest(said)
            game, x = at.games[place], at.pairs[at.groups[place][0]].x
            most = most_runs_of_batches(at.played, game.hint)
            game.change, runs = ask_batches(at.subject, x, at.root, most, game.is_violated, at.options, at.crew)
            at.runs += runs
        withhold_all(at.games)
        changes = changes_of(at.games) if at.universe is None else at.changes
        at.beside += order_finding(*changes, at.options.mode == "fixed", max(at.night, 1))


class BandStage(Stage):
    """The band of the clearest pair's trade-off function: `dpaudit.audits.band`."""

    purposes = (streams.BAND_DRAWS,)

    def rate(self, options: Options) -> float:
        return (1.0 - options.confidence) * BAND_SHARE

    def is_asked(self, at: Standing) -> bool:
        return bool(at.options.band)

    def why_not(self, at: Standing) -> str:
        from dpaudit.audits import band  # few audits need it, and it takes long to import

        return band.DEPEND if at.depends else band.FAILED if at.failure or not self._places(at) else ""

    def leave_out(self, at: Standing, reason: str) -> None:
        at.trade_off = TradeOffBand("", self.rate(at.options), reason=reason)

    def run(self, at: Standing) -> None:
        from dpaudit.audits import band

        member = at.groups[at.clearest(self._places(at))][0]
        at.trade_off, runs = band.examine(
            at.pairs[member], at.claims[member], subject=at.subject, samples=at.options.samples,
            level=self.rate(at.options), seed=at.root, crew=at.crew,
        )  # fmt: skip
        at.runs += runs

    def _places(self, at: Standing) -> list[int]:
        return [k for k, game in enumerate(at.games) if not game.is_broken and k not in at.kept]


class LowBits(Stage):
    """What the low bits of real-valued outputs give away: `dpaudit.audits.low_bits`.

    Of the pairs of a universe those with the smallest budgets are candidates, as many as are examined.
    """

    purposes = streams.FLOAT_DRAWS, streams.FLOAT_COINS

    def rate(self, options: Options) -> float:
        return low_bits.SIZES.error_rate

    def is_asked(self, at: Standing) -> bool:
        return at.options.looks_at_doubles and not at.went_on  # its error rate is spent once

    def why_not(self, at: Standing) -> str:
        if at.depends:
            return DEPEND
        if self._draws(at) == 0:
            least = low_bits.SIZES.min_samples
            return f"samples must be at least {least:,} for this check, got {at.options.samples:,}."
        is_slow = not at.subject.is_vectorised and at.crew.seconds_a_run > low_bits.SIZES.slow_call
        if at.verdict == "violated" and is_slow and at.options.floating_point is None:
            return NOT_BEHIND_VIOLATION
        # Validity: these draws are made input by input: a time-out could tell when it was, and so of which input.
        return ENDED if at.subject.has_lost_calls else ""

    def leave_out(self, at: Standing, reason: str) -> None:
        candidates, omitted = self._candidates(at)
        samples = at.floating_point.samples if at.floating_point is not None else 0
        omitted = 0 if reason == DEPEND else omitted + len(candidates)
        at.floating_point = low_bits.not_applicable(reason, samples, omitted)

    def run(self, at: Standing) -> None:
        candidates, omitted = self._candidates(at)
        data = {i: x for one in candidates for i, x in zip(one.inputs, (one.pair.x, one.pair.x_prime), strict=True)}
        draw = Drawer(at.subject, data, at.root, streams.FLOAT_DRAWS, at.crew)
        found = low_bits.examine(
            candidates, self._draws(at), draw, lambda place: stream(at.root, streams.FLOAT_COINS, place)
        )
        at.floating_point = dataclasses.replace(found, omitted=found.omitted + omitted)
        if at.subject.has_lost_calls:
            self.leave_out(at, ENDED)

    def _draws(self, at: Standing) -> int:
        taken = at.played // max(at.inputs, 1)
        return low_bits.draws_of(at.options.samples, at.subject.is_vectorised, taken)

    def _candidates(self, at: Standing) -> tuple[list[low_bits.Candidate], int]:
        """The pairs that may be examined, and how many others there are."""
        if (table := at.universe) is None:
            return [
                low_bits.Candidate(at.pairs[k], at.positions[k], finding.budget, k)
                for k, finding in enumerate(at.findings)
                if finding.verdict != "error"
            ], 0
        asked = np.flatnonzero((table.verdict != NOT_ASKED) & (table.verdict != VERDICTS.index("error")))
        order = asked[np.lexsort((asked, table.budget[asked]))][: low_bits.SIZES.max_pairs]
        candidates = []
        for row in order.tolist():
            pair = at.chosen[row]
            budget = at.promise.for_pair(pair.x, pair.x_prime).budget
            candidates.append(low_bits.Candidate(pair, (int(table.first[row]), int(table.second[row])), budget, row))
        return candidates, len(asked) - len(order)


class Isolated(Stage):
    """A stage of a subject in worker processes: `dpaudit.audits.side_channels`."""

    def is_asked(self, at: Standing) -> bool:
        return isinstance(at.subject, IsolatedSubject)

    def pairs(self, at: Standing) -> list[Pair]:
        """The first pairs that the claim asks something of."""
        asked = (pair for pair in at.chosen if not at.promise.for_pair(pair.x, pair.x_prime).is_vacuous)
        return list(islice(asked, side_channels.TIMED_PAIRS))


class Independence(Isolated):
    """Whether calls of one worker share noise."""

    purposes = (streams.INDEPENDENCE_DRAWS,)

    def rate(self, options: Options) -> float:
        return side_channels.INDEPENDENCE_RATE

    def is_asked(self, at: Standing) -> bool:
        has_draws = at.options.samples >= low_bits.SIZES.min_samples and at.verdict != "error"
        return super().is_asked(at) and has_draws and bool(self.pairs(at))

    def run(self, at: Standing) -> None:
        assert isinstance(at.subject, IsolatedSubject)
        at.beside.append(side_channels.independence_finding(at.subject, self.pairs(at)[0], at.root))


class Timing(Isolated):
    """Whether the time of a call tells the input."""

    purposes = streams.TIMING_DRAWS, streams.TIMING_COINS

    def rate(self, options: Options) -> float:
        return side_channels.TIMING_RATE

    def is_asked(self, at: Standing) -> bool:
        return isinstance(at.subject, IsolatedSubject) and bool(at.subject.isolation.timing)

    def run(self, at: Standing) -> None:
        assert isinstance(at.subject, IsolatedSubject)
        calls = at.subject.isolation.timing
        at.beside.append(side_channels.timing_finding(at.subject, self.pairs(at), calls, at.root))


class Containment(Isolated):
    """What was contained, in the stages before too: it is said before what they found."""

    def run(self, at: Standing) -> None:
        assert isinstance(at.subject, IsolatedSubject)
        of_calls = [one for one in at.beside if one.kind in ("independence", "timing")]
        place = len(at.beside) - len(of_calls)
        at.beside.insert(place, side_channels.containment_finding(at.subject))


class SearchReport(Stage):
    """Where pairs come from that were searched for: no evidence."""

    def is_asked(self, at: Standing) -> bool:
        return at.searched is not None

    def run(self, at: Standing) -> None:
        assert at.searched is not None
        at.beside += at.searched.side_findings(at.findings)


class GreyBoxStage(Stage):
    """What differs on the same random streams, and what recorded noise proves: no statistics."""

    purposes = streams.GREY_BOX, streams.RECORDED

    def is_asked(self, at: Standing) -> bool:
        return at.options.grey_box and all(finding.kind != "same_randomness" for finding in at.beside)

    def run(self, at: Standing) -> None:
        from dpaudit.audits.grey_box import MOST_PAIRS, GreyBox  # few audits need these, and they take long to import
        from dpaudit.recorded.recorded_noise import MOST_RECORDED, recorded_finding

        box = GreyBox(at.subject, at.promise, at.root)
        at.beside.append(box.examine(list(islice(at.chosen, MOST_PAIRS))).side_finding())
        at.beside.append(recorded_finding(at.subject, at.promise, list(islice(at.chosen, MOST_RECORDED)), at.root))


STAGES: tuple[Stage, ...] = (
    Metadata(),
    SeverityStage(),
    Dependence(),
    BandStage(),
    LowBits(),
    Independence(),
    Timing(),
    Containment(),
    SearchReport(),
    GreyBoxStage(),
)


def play_stages(at: Standing, stages: Sequence[Stage] = STAGES) -> None:
    """Play the stages that an audit asks for, in their order; those that cannot run say why."""
    for stage in stages:
        if not stage.is_asked(at):
            continue
        if reason := stage.why_not(at):
            stage.leave_out(at, reason)
        else:
            stage.run(at)


def ask_batches(
    subject: Subject, x: Any, seed: int, most: int | None, is_violated: bool, options: Options, crew: Crew
) -> tuple[Change | None, int]:
    """What batches of outcomes on this input share, of a vectorised subject, on streams of their own; the runs."""
    if not subject.is_vectorised or subject.has_lost_calls:
        return None, 0
    draw = Drawer(subject, [x], seed, streams.BATCH_DRAWS, crew)
    return in_small_batches(draw, options.samples, most, is_violated)
