"""Pairs that a search tried and chose, and the side finding that says so in an audit of the chosen pairs."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from dpaudit.audits.grey_box import GreyBoxResult
from dpaudit.privacy.claims import ApproxDP
from dpaudit.privacy.pairs import Pair, counted_pairs
from dpaudit.results.model import Finding, SideFinding, to_json
from dpaudit.running.streams import SEARCH_CHOICES, SEARCH_DRAWS
from dpaudit.subjects.domains.tables import MAX_ROWS
from dpaudit.symbolic.recorded_noise import RecordedResult

KIND = "pair_search"
LISTED = 40  # pairs that the side finding lists
PROVED, RAISES = 100.0, 50.0  # suspicions that nothing counted reaches


@dataclasses.dataclass
class TriedPair:
    """A pair that the search looked at, with what it knows of it."""

    pair: Pair
    family: str  # the pattern that it is of, or of the pair that it was moved from
    origin: str  # "start", "random", "move", "strategy", "climb" or "given"
    line: ApproxDP  # that it is ranked by
    inputs: tuple[int, int]  # their numbers
    place: int  # in the order of first looks, which breaks ties
    excess: float = -math.inf  # estimated loss less the budget, in its standard deviations; on draws that chose it too
    loss: float = math.nan  # that estimate in nats
    proved: float | None = None  # loss that recorded noise proves to break the claim, in budgets
    raises: bool = False  # calls on one input raised
    refused: bool = False  # every call on both inputs raised
    draws: int = 0  # of each input, in the search
    # Grades of the replay on the same randomness and of the recorded noise, of the chosen pairs.
    grey_box: str = ""
    recorded: str = ""

    @property
    def epsilon(self) -> float:
        """Epsilon of the line."""
        return self.line.epsilon

    @property
    def delta(self) -> float:
        """Delta of the line."""
        return self.line.delta

    @property
    def suspicion(self) -> float:
        """Score that ranks it: `excess` with what recorded noise proves. It means nothing else."""
        counted = RAISES if self.raises else self.excess
        return counted + (0.0 if self.proved is None else PROVED + min(self.proved, PROVED))

    def to_dict(self) -> dict[str, Any]:
        """The pair by its names, with its figures, as JSON values."""
        names = {"id": self.pair.id, "x": self.pair.x_id, "x_prime": self.pair.x_prime_id}
        shown = "family origin suspicion excess loss epsilon delta draws grey_box recorded"
        saved: dict[str, Any] = to_json({**names, **{name: getattr(self, name) for name in shown.split()}})
        return saved


@dataclasses.dataclass(frozen=True)
class SearchResult:
    """Result of a search for pairs. No confidence is attached to any of it: an audit of the chosen pairs has one.

    Attributes
    ----------
    pairs : tuple of Pair
        The most suspicious ones, the first first; at most as many as were asked for.
    tried : tuple of TriedPair
        All that were looked at: the chosen ones, then the others by suspicion.
    refused : int
        Further pairs on which every call raised, on both inputs.
    samples : int
        Runs of the mechanism that the search took.
    seconds : float
    seed : int
    claim : str
    domain : dict
        Where the pairs came from.
    grey_box : GreyBoxResult or None
        The replay of the chosen pairs on the same randomness; None if it was turned off.
    recorded : RecordedResult or None
        What the recorded noise of the chosen pairs proves and implies; None if that was turned off or cannot be done.
    """

    pairs: tuple[Pair, ...]
    tried: tuple[TriedPair, ...]
    refused: int
    samples: int
    seconds: float
    seed: int
    claim: str
    domain: dict[str, Any]
    grey_box: GreyBoxResult | None = None
    recorded: RecordedResult | None = None

    def side_findings(self, findings: Sequence[Finding] = ()) -> tuple[SideFinding, ...]:
        """The provenance of the pairs, for an audit with these findings; and that of the grey box.

        "found" says that the audit called one of the chosen pairs violated.
        """
        chosen = {pair.id for pair in self.pairs}
        violated = [finding.id for finding in findings if finding.verdict == "violated" and finding.id in chosen]
        confirmed = f"the audit confirmed {len(violated)} of them on fresh draws" if findings else "no audit yet"
        summary = (
            f"{counted_pairs(len(self.pairs))} {'was' if len(self.pairs) == 1 else 'were'} chosen of "
            f"{len(self.tried) + self.refused} that were tried, in "
            f"{self.samples} runs whose ranking has no confidence; {confirmed}. "
            f"{place_sentence(self.domain)}"
        )
        details = {
            "seed": self.seed,
            "spawn_keys": [[SEARCH_DRAWS, "input", "chunk"], [SEARCH_CHOICES, "round"]],
            "domain": self.domain,
            "samples": self.samples,
            "refused": self.refused,
            "chosen": [pair.id for pair in self.pairs],
            "violated": violated,
            "tried": [entry.to_dict() for entry in self.tried[:LISTED]],
        }
        found = SideFinding(KIND, "found" if violated else "nothing_found", summary, None, to_json(details))
        return (found, *(one.side_finding() for one in (self.grey_box, self.recorded) if one is not None))


def place_sentence(domain: Mapping[str, Any]) -> str:
    """Say where a search looked, from the record of its domain (`Domain.to_dict`), and that it looked nowhere else.

    Examples
    --------
    >>> place_sentence({"kind": "number", "low": 0, "high": 5})
    'It looked at some pairs of numbers from 0 to 5; values outside of these were never tried.'
    """
    kind, ends = domain.get("kind"), domain.get("ends")
    if kind == "dataset" and domain.get("examples") and not domain.get("beyond"):
        return (
            "It tried some neighbours of the examples, and no values but theirs: none beyond, where forgotten clipping "
            "would show."
        )
    span, rows = f"from {domain.get('low')} to {domain.get('high')}", domain.get("example", 0)
    records = "of the records that its domain lists"
    looked = {
        "number": f"some pairs of numbers {span}",
        "vector": f"some pairs of vectors of numbers {span}",
        "dataset": f"some datasets of numbers from {ends[0]} to {ends[1]} and {records}"
        if ends
        else f"some datasets {records}",
        "table": "some tables of the values that its columns list",
        "inputs": "the listed inputs",
    }.get(str(kind), "what its domain gives")
    if kind == "table" and rows > MAX_ROWS:
        looked += f"; of the {rows} rows of the example up to {MAX_ROWS} at a time"
    return f"It looked at {looked}; values outside of these were never tried."
