"""State of an audit: its pairs, what was played, and what its stages have added."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from dpaudit.audits.options import Options
from dpaudit.campaign.campaign import Progress
from dpaudit.features.outcomes import Outcomes
from dpaudit.inference.order import Change
from dpaudit.inference.pair_game import PairGame
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import (
    VERDICTS,
    Finding,
    FloatingPointFinding,
    Power,
    Severity,
    SideFinding,
    Verdict,
)
from dpaudit.results.trade_off import TradeOffBand
from dpaudit.results.universe_table import UniverseTable
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import Subject


class ChosenPairs(Protocol):
    """Pairs that were searched for, and where they come from."""

    @property
    def pairs(self) -> Sequence[Pair]: ...

    def side_findings(self, findings: Sequence[Finding]) -> tuple[SideFinding, ...]: ...


@dataclasses.dataclass
class AuditRun:
    """One audit of pairs that were chosen.

    Attributes
    ----------
    subject, promise, chosen, options, root, worker_pool, store, tell, searched
        What is audited, of which pairs and how hard, with the seed, who draws, the path of a store, who is told of
        progress, and where pairs come from that were searched for. Where a batch raises the subject becomes one that is
        called once a draw, and `options` have the mode that is played.
    pairs, claims, positions, inputs, not_asked, report_delta
        Of the pairs that the claim asks something of: themselves, their claims, the positions of their inputs, and how
        many inputs these are. The ids of the others, and the delta of the bounds on epsilon.
    games, labelled, groups, withheld, shown
        The games, their labelled draws, the positions of the pairs that each asks, why nothing can be said of a game
        (`dpaudit.audits.memory_checks`), and the outcomes of a game that fits may see, on x and on x_prime.
    universe, changes
        The table in the place of games, and what was seen to change of its `inputs`.
    runs, played, failure, traceback
        Runs so far, those before the stages, and what ended the play before its time.
    cut
        What was left out as the time was over.
    night, went_on
        The number of a store's night, and whether an earlier one had evidence.
    said
        More options of the result.
    powers, severities
        What the first stages add to the evidence: powers of games into whose outputs leaks were planted, and
        severities of pairs that may have one, by position.
    findings
        Those of the table, or what `dpaudit.audits.findings` makes of the games behind these stages.
    trade_off, floating_point, beside
        What the other stages add.
    """

    subject: Subject
    promise: Claim
    chosen: Sequence[Pair]
    options: Options
    root: int
    worker_pool: WorkerPool
    store: str | os.PathLike[str] | None = None
    tell: Callable[[Progress], None] | None = None
    searched: ChosenPairs | None = None
    pairs: Sequence[Pair] = ()
    claims: Sequence[Claim] = ()
    positions: Sequence[tuple[int, int]] = ()
    inputs: int = 0
    not_asked: tuple[str, ...] = ()
    report_delta: float = 0.0
    games: Sequence[PairGame] = ()
    labelled: Sequence[int] = ()
    groups: Sequence[Sequence[int]] = ()
    withheld: Mapping[int, str] = dataclasses.field(default_factory=dict)
    shown: Callable[[PairGame], tuple[Outcomes, Outcomes]] | None = None
    universe: UniverseTable | None = None
    changes: Sequence[Change] = ()
    runs: int = 0
    played: int = 0
    failure: str = ""
    traceback: str = ""
    cut: list[str] = dataclasses.field(default_factory=list)
    night: int = 0
    went_on: bool = False
    said: dict[str, Any] = dataclasses.field(default_factory=dict)
    powers: dict[int, Power] = dataclasses.field(default_factory=dict)
    severities: dict[int, Severity | None] = dataclasses.field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    trade_off: TradeOffBand | None = None
    floating_point: FloatingPointFinding | None = None
    beside: list[SideFinding] = dataclasses.field(default_factory=list)

    @property
    def depends(self) -> bool:
        """True where draws of some pair were seen to depend on each other."""
        return bool(self.changes) or any(game.change for game in self.games)

    @property
    def verdict(self) -> Verdict:
        """The first of `VERDICTS` that a finding, or the table, has."""
        found = {finding.verdict for finding in self.findings}
        found |= set() if self.universe is None else {self.universe.overall}
        return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")

    def clearest(self, places: Sequence[int]) -> int:
        """The game of these with the clearest evidence."""
        return max(places, key=lambda k: (self.games[k].is_violated, self.games[k].wealth, -k))
