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
from dpaudit.results.all_pairs_table import AllPairsTable
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
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import Subject


class ChosenPairs(Protocol):
    """Pairs that were searched for, and where they come from."""

    @property
    def pairs(self) -> Sequence[Pair]: ...

    def side_findings(self, findings: Sequence[Finding]) -> tuple[SideFinding, ...]: ...


@dataclasses.dataclass
class AuditRun:
    """One audit of pairs that were chosen."""

    subject: Subject  # where a batch raises, the one that is called once a draw
    promise: Claim
    chosen: Sequence[Pair]
    options: Options  # with the mode that is played
    root: int  # the seed
    worker_pool: WorkerPool
    store: str | os.PathLike[str] | None = None
    tell: Callable[[Progress], None] | None = None
    searched: ChosenPairs | None = None  # where pairs come from that were searched for
    # Of the pairs that the claim asks something of: themselves, their claims, the positions and the number of inputs.
    pairs: Sequence[Pair] = ()
    claims: Sequence[Claim] = ()
    positions: Sequence[tuple[int, int]] = ()
    inputs: int = 0
    not_asked: tuple[str, ...] = ()  # ids of the others
    report_delta: float = 0.0  # of the bounds on epsilon
    # The games, their labelled draws, the positions of the pairs that each asks, why nothing can be said of a game
    # (`dpaudit.audits.memory_checks`), and the outcomes of a game that fits may see, on x and on x_prime.
    games: Sequence[PairGame] = ()
    labelled: Sequence[int] = ()
    groups: Sequence[Sequence[int]] = ()
    withheld: Mapping[int, str] = dataclasses.field(default_factory=dict)
    calls_share: bool = False  # whether calls for one output each contradict what larger ones showed
    shown: Callable[[PairGame], tuple[Outcomes, Outcomes]] | None = None
    table: AllPairsTable | None = None  # in the place of games
    changes: Sequence[Change] = ()  # of the inputs of the table
    runs: int = 0
    played: int = 0  # runs before the stages
    failure: str = ""  # what ended the play before its time
    traceback: str = ""
    cut: list[str] = dataclasses.field(default_factory=list)  # what was left out as the time was over
    session: int = 0  # its number, of a store
    went_on: bool = False  # whether an earlier session had evidence
    said: dict[str, Any] = dataclasses.field(default_factory=dict)  # more options of the result
    powers: dict[int, Power] = dataclasses.field(default_factory=dict)  # of games into whose outputs leaks were planted
    severities: dict[int, Severity | None] = dataclasses.field(default_factory=dict)  # of pairs that may have one
    findings: tuple[Finding, ...] = ()
    trade_off: TradeOffBand | None = None
    floating_point: FloatingPointFinding | None = None
    beside: list[SideFinding] = dataclasses.field(default_factory=list)

    @property
    def depends(self) -> bool:
        """True where draws of some pair were seen to depend on each other."""
        return self.calls_share or bool(self.changes) or any(game.change for game in self.games)

    @property
    def verdict(self) -> Verdict:
        """The first of `VERDICTS` that a finding, or the table, has."""
        found = {finding.verdict for finding in self.findings}
        found |= set() if self.table is None else {self.table.overall}
        return next((verdict for verdict in VERDICTS if verdict in found), "inconclusive")

    def clearest(self, places: Sequence[int]) -> int:
        """The game of these with the clearest evidence."""
        return max(places, key=lambda k: (self.games[k].is_violated, self.games[k].wealth, -k))
