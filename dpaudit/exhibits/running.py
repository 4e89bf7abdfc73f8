"""Running an auditor on exhibits: what it finds with a known pair, with a searched pair, and on the mended version.

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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dpaudit.audits.auditing import audit
from dpaudit.audits.searching import Search
from dpaudit.errors import DpauditError
from dpaudit.exhibits.environments import command, interpreter
from dpaudit.exhibits.exhibit import Exhibit, Release
from dpaudit.privacy.pairs import short_form
from dpaudit.results.model import AuditResult
from dpaudit.running.streams import root_of
from dpaudit.search.shrinking import KIND as SHRUNK
from dpaudit.search.shrinking import audit_and_shrink
from dpaudit.subjects.programs import exec_subject

PARTS = ("told", "searched", "mended", "releases")
MENDED_RATE = 0.01  # of one run over all exhibits, with one seed
SAMPLES = 100_000  # of an audit
MENDED_SAMPLES = 20_000
RELEASE_SAMPLES = 20_000  # of a real library, which gives one output a call
RELEASE_SECONDS = 300.0  # of one request, and of starting: some import for minutes on a busy machine
MENDED_BUDGET = 20_000  # runs of a search for pairs of a mended version
SHOWN = 160  # characters of a witness or a pair


@dataclasses.dataclass(frozen=True)
class Seen:
    """Result of one audit of a faulty version."""

    found: bool  # a violation, or a leak in the low bits where the exhibit says so
    verdict: str
    runs: int = 0  # of the mechanism, all in all: of the search, the audit and the check of low bits
    searching: int = 0  # those of the search among them
    seconds: float = 0.0  # of the clock
    bound: float | None = None  # the largest lower bound on a pair's epsilon in nats (at the claim's delta)
    pair: str = ""  # that it was found on, in short form
    witness: str = ""  # the event, in words
    rows: int | None = None  # records in the larger input of that pair; None where inputs are no lists of records
    small: str = ""  # the pair made small, as a difference; empty where fresh draws did not confirm it, or none was
    small_rows: int | None = None  # records in its larger input
    shrinking: int | None = None  # runs that shrinking took, its last audit not counted; `runs` has none of them
    shrinking_seconds: float | None = None
    message: str = ""  # what broke, where something did


def run(
    exhibit: Exhibit,
    parts: Sequence[str] = PARTS,
    *,
    exhibits: int = 1,
    seed: int | None = None,
    seeds: int = 1,
    samples: int = SAMPLES,
    libraries: Path | None = None,
) -> dict[str, Any]:
    """Run an auditor on one exhibit; the record that the page is made from.

    It says what the exhibit is and, under the name of each part, what was found: a `Seen` as a dictionary; of the
    mended version the verdicts, one an audit; of releases a list. The mended version is audited with so many `seeds`,
    from `seed` on, the faulty one with the first, at most `samples` each; one is drawn by default. So many `exhibits`
    are run: mended versions share the error rate `MENDED_RATE` of one seed. `libraries` is the folder of the
    environments of releases (`dpaudit.exhibits.environments`).

    Examples
    --------
    >>> from dpaudit import museum
    >>> record = run(museum("epsilon-multiplied")[0], ("told",), seed=1)
    >>> record["told"]["found"], record["told"]["verdict"]
    (True, 'violated')
    """
    root = root_of(seed)
    record: dict[str, Any] = {name: getattr(exhibit, name) for name in ("name", "kind", "source", "link", "wrong")}
    record |= {"claim": str(exhibit.claim), "channel": exhibit.channel, "out_of_reach": exhibit.out_of_reach}
    record["seed"] = root
    if "told" in parts:
        record["told"] = dataclasses.asdict(look(exhibit, exhibit.faulty, [exhibit.pair], root, samples))
    if "searched" in parts:
        record["searched"] = dataclasses.asdict(look(exhibit, exhibit.faulty, Search(exhibit.domain), root, samples))
    if "mended" in parts:
        confidence = 1.0 - MENDED_RATE / (2 * max(exhibits, 1))
        verdicts = []
        for turn in range(root, root + seeds):
            for pairs in ([exhibit.pair], Search(exhibit.domain, budget=MENDED_BUDGET)):
                seen = look(exhibit, exhibit.mended, pairs, turn, MENDED_SAMPLES, confidence, low_bits=False)
                verdicts.append(seen.verdict)
        record["mended"] = verdicts
    if "releases" in parts:
        record["releases"] = [_released(exhibit, release, root, libraries) for release in exhibit.releases]
    return record


def look(
    exhibit: Exhibit,
    mechanism: Any,
    pairs: Any,
    seed: int,
    samples: int,
    confidence: float = 0.95,
    low_bits: bool | None = None,
) -> Seen:
    """One audit of a version of an exhibit; what breaks is a verdict "error" with its message.

    `low_bits` says whether to ask what the low bits give away; by default where the bug of the exhibit shows there.
    """
    started = time.perf_counter()
    low_bits = exhibit.channel == "low bits" if low_bits is None else low_bits
    try:
        asked = audit_and_shrink if isinstance(pairs, Search) else audit
        result = asked(
            mechanism, exhibit.claim, pairs, seed=seed, samples=samples, confidence=confidence, floating_point=low_bits
        )
    except DpauditError as error:
        seconds = time.perf_counter() - started
        return Seen(False, "error", seconds=seconds, message=short_form(str(error), SHOWN))
    return _seen(result, low_bits, time.perf_counter() - started)


def _seen(result: AuditResult, low_bits: bool, seconds: float) -> Seen:
    leak = result.floating_point if low_bits else None
    found = leak is not None and leak.verdict == "leaks" if low_bits else result.verdict == "violated"
    searching = sum(side.details.get("samples", 0) for side in result.side_findings if side.kind == "pair_search")
    runs = result.samples + searching + (leak.samples if leak is not None else 0)
    seen = Seen(found, result.verdict, runs, searching, seconds)
    if leak is not None and leak.pairs:
        worst, witness = leak.pairs[0], "low bits of the outputs" if found else ""
        return dataclasses.replace(seen, bound=worst.epsilon_lower, pair=worst.id, witness=witness)
    shown = next((finding for finding in result.findings if finding.verdict == "violated"), None)
    if shown is None:
        message = next((finding.message for finding in result.findings if finding.message), "")
        return dataclasses.replace(seen, message=short_form(message, SHOWN))
    witness = shown.witness.description if shown.witness is not None else ""
    rows = [len(side) for side in (shown.x, shown.x_prime) if isinstance(side, list | tuple)]
    pair = " | ".join(short_form(data, SHOWN // 2) for data in (shown.x, shown.x_prime))
    return dataclasses.replace(
        seen, bound=shown.epsilon_lower, pair=pair, witness=witness[:SHOWN], rows=max(rows, default=None),
        **_shrunk(result),
    )  # fmt: skip


def _shrunk(result: AuditResult) -> dict[str, Any]:
    """Result of shrinking its pair, where an audit of its own confirmed it."""
    for side in result.side_findings:
        if side.kind == SHRUNK and side.status == "found":
            details = side.details
            return {
                "small": str(details["difference"])[:SHOWN],
                "small_rows": details["rows_after"],
                "shrinking": details["shrinking"],
                "shrinking_seconds": details["seconds"],
            }
    return {}


def _released(exhibit: Exhibit, release: Release, seed: int, libraries: Path | None) -> dict[str, Any]:
    """Record of an audit of a real library: one that is absent says so."""
    record: dict[str, Any] = {name: getattr(release, name) for name in ("package", "versions", "called", "mended")}
    python = None if release.program is None else interpreter(release, libraries)
    version = release.installed() if release.program is None else release.versions if python is not None else None
    record["installed"] = version
    if version is None:
        name = release.package if release.program is None else f"{release.package} {release.versions}"
        return record | {"found": None, "reason": f"{name} is not installed"}
    try:
        if release.mechanism is not None:
            mechanism = release.mechanism()
        else:
            assert python is not None  # it is where a program has a version
            mechanism = exec_subject(command(release, python), timeout=RELEASE_SECONDS, name=release.package)
    except (DpauditError, ImportError) as error:
        return record | {"found": None, "reason": f"{release.package} does not run: {short_form(str(error), SHOWN)}"}
    return record | dataclasses.asdict(look(exhibit, mechanism, [exhibit.pair], seed, RELEASE_SAMPLES))
