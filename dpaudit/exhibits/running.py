"""Running an auditor on exhibits: what it finds with the pair told, with the pair searched, and of the mended version.

What a run of an exhibit is
---------------------------
* *told*: an audit of the faulty version on the expert's pair, at default settings.
* *searched*: an audit of the faulty version at default settings, on pairs that a search of the domain chose.
* *mended*: audits of the mended version on the expert's pair and on pairs that a search chose for it. The confidence of
  each is so high that one run over all exhibits with one seed says "violated" of any sound version with probability at
  most `MENDED_RATE`, by the union bound.

The check of the low bits of outputs takes draws of its own and cannot change a verdict (`dpaudit.audit`). It is asked
where an exhibit says that its bug shows there, and left out elsewhere.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable
from typing import Any

from dpaudit.auditing import audit
from dpaudit.errors import DpauditError
from dpaudit.exhibits.exhibit import Exhibit
from dpaudit.privacy.pairs import short_form
from dpaudit.results import AuditResult
from dpaudit.running.streams import fresh_seed
from dpaudit.searching import Search

MENDED_RATE = 0.01  # of one run over all exhibits, with one seed
SAMPLES = 100_000  # of an audit
MENDED_SAMPLES = 20_000
SHOWN = 160  # characters of a witness or a pair


@dataclasses.dataclass(frozen=True)
class Seen:
    """What one audit of a faulty version found.

    Attributes
    ----------
    found : bool
        Whether the bug was found: a violation, or a leak in the low bits where the exhibit says so.
    verdict : str
        Of the audit.
    runs : int
        Of the mechanism, all in all: of the search, the audit and the check of low bits.
    searching : int
        Runs of the search among them.
    seconds : float
        Of the clock.
    bound : float or None
        The largest lower bound on a pair's epsilon in nats (at the claim's delta).
    pair : str
        The pair that it was found on, in short form.
    witness : str
        The event, in words.
    rows : int or None
        Records in the larger input of that pair; None where inputs are no lists of records.
    message : str
        What broke, where something did.
    """

    found: bool
    verdict: str
    runs: int = 0
    searching: int = 0
    seconds: float = 0.0
    bound: float | None = None
    pair: str = ""
    witness: str = ""
    rows: int | None = None
    message: str = ""


@dataclasses.dataclass(frozen=True)
class Row:
    """What was found of one exhibit: `mended` are the verdicts of its mended version, one an audit."""

    exhibit: Exhibit
    seed: int
    told: Seen
    searched: Seen | None
    mended: tuple[str, ...]
    releases: tuple[dict[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The row as JSON values."""
        shown = self.exhibit
        record: dict[str, Any] = {name: getattr(shown, name) for name in ("name", "kind", "source", "link", "wrong")}
        record |= {"claim": str(shown.claim), "channel": shown.channel, "out_of_reach": shown.out_of_reach}
        record |= {"seed": self.seed, "told": dataclasses.asdict(self.told)}
        record["searched"] = dataclasses.asdict(self.searched) if self.searched is not None else None
        return record | {"mended": list(self.mended), "releases": list(self.releases)}


def run(
    exhibit: Exhibit,
    *,
    exhibits: int = 1,
    seed: int | None = None,
    seeds: int = 1,
    search: bool = True,
    samples: int = SAMPLES,
    mended_samples: int = MENDED_SAMPLES,
    releases: bool = True,
) -> Row:
    """Run an auditor on one exhibit.

    Parameters
    ----------
    exhibit : Exhibit
    exhibits : int
        How many are run: the mended versions share the error rate `MENDED_RATE` of one seed.
    seed : int, optional
        Of the audits; one is drawn by default.
    seeds : int
        The mended version is audited with so many seeds, from `seed` on; the faulty one with the first.
    search : bool
        Whether to search for pairs as well.
    samples, mended_samples : int
        Of an audit of the faulty and of the mended version.
    releases : bool
        Whether to audit the real libraries that are installed.

    Returns
    -------
    Row

    Examples
    --------
    >>> from dpaudit import museum
    >>> row = run(museum("epsilon-multiplied")[0], seed=1, search=False)
    >>> row.told.found, row.mended
    (True, ('not_refuted',))
    """
    root = fresh_seed() if seed is None else seed
    told = look(exhibit, exhibit.faulty, [exhibit.pair], root, samples)
    searched = look(exhibit, exhibit.faulty, Search(exhibit.domain), root, samples) if search else None
    confidence = 1.0 - MENDED_RATE / (max(exhibits, 1) * (2 if search else 1))
    verdicts: list[str] = []
    for turn in range(root, root + seeds):
        sources: list[Any] = [[exhibit.pair]]
        if search:
            sources.append(Search(exhibit.domain, budget=20_000))
        for pairs in sources:
            seen = look(exhibit, exhibit.mended, pairs, turn, mended_samples, confidence)
            verdicts.append("violated" if seen.found else seen.verdict)
    return Row(exhibit, root, told, searched, tuple(verdicts), _released(exhibit, root, samples) if releases else ())


def look(
    exhibit: Exhibit, mechanism: Any, pairs: Any, seed: int, samples: int, confidence: float = 0.95
) -> Seen:
    """One audit of a version of an exhibit; what breaks is a verdict "error" with its message."""
    started = time.perf_counter()
    low_bits = exhibit.channel == "low bits"
    try:
        result = audit(
            mechanism, exhibit.claim, pairs, seed=seed, samples=samples, confidence=confidence, floating_point=low_bits
        )
    except DpauditError as error:
        seconds = time.perf_counter() - started
        return Seen(False, "error", seconds=seconds, message=short_form(str(error), SHOWN))
    return _seen(exhibit, result, time.perf_counter() - started)


def _seen(exhibit: Exhibit, result: AuditResult, seconds: float) -> Seen:
    low_bits = exhibit.channel == "low bits"
    doubles = result.floating_point if low_bits else None
    found = doubles is not None and doubles.verdict == "leaks" if low_bits else result.verdict == "violated"
    searching = sum(side.details.get("samples", 0) for side in result.side_findings if side.kind == "pair_search")
    runs = result.samples + searching + (doubles.samples if doubles is not None else 0)
    shown = next((finding for finding in result.findings if finding.verdict == "violated"), None)
    if low_bits and doubles is not None and doubles.pairs:
        worst = doubles.pairs[0]
        witness = "low bits of the outputs" if found else ""
        return Seen(found, result.verdict, runs, searching, seconds, worst.epsilon_lower, worst.id, witness)
    if shown is None:
        message = next((finding.message for finding in result.findings if finding.message), "")
        return Seen(found, result.verdict, runs, searching, seconds, message=short_form(message, SHOWN))
    witness = shown.witness.description if shown.witness is not None else ""
    rows = [len(side) for side in (shown.x, shown.x_prime) if isinstance(side, list | tuple)]
    return Seen(
        found,
        result.verdict,
        runs,
        searching,
        seconds,
        shown.epsilon_lower,
        short_form_of(shown.x, shown.x_prime),
        witness[:SHOWN],
        max(rows) if rows else None,
    )


def short_form_of(x: Any, x_prime: Any) -> str:
    """A pair on one line."""
    return f"{short_form(x, SHOWN // 2)} | {short_form(x_prime, SHOWN // 2)}"


def _released(exhibit: Exhibit, seed: int, samples: int) -> tuple[dict[str, Any], ...]:
    """What was found in the real libraries: one that is absent says so."""
    found = []
    for release in exhibit.releases:
        version = release.installed()
        record: dict[str, Any] = {"package": release.package, "versions": release.versions, "installed": version}
        if version is None:
            found.append(record | {"found": None, "reason": f"{release.package} is not installed"})
            continue
        seen = look(exhibit, release.mechanism(), [exhibit.pair], seed, samples)
        found.append(record | dataclasses.asdict(seen))
    return tuple(found)


def medians(rows: Iterable[Row]) -> dict[str, float]:
    """Median runs and seconds of the searched audits that found their bug; 0 where none did."""
    import statistics

    found = [row.searched for row in rows if row.searched is not None and row.searched.found]
    if not found:
        return {"runs": 0.0, "seconds": 0.0}
    return {
        "runs": statistics.median(seen.runs for seen in found),
        "seconds": statistics.median(seen.seconds for seen in found),
    }
