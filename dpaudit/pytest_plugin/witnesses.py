"""Witnesses of earlier failures: saved as data, and replayed before the next audit of the same call.

A file a call (`.dpaudit/witnesses/`), written by a test that fails: the finding with its rule and without its inputs,
which the next run has anyway. Ids of pairs and of inputs may be records in words: digests stand for them, and texts are
left out. (A rule may still quote an output. A digest hides nothing from who can try all likely records.) In the next
run the rule meets fresh draws first: it was fixed before these, so one exact test at 10% of the call's share of the
error rate (`dpaudit.pytest_plugin.budget`), whatever it looks like and whoever wrote it. Where that confirms the
violation, the audit is spared; else it runs as always. Nothing in a file is run: a rule is data, and what cannot be
read is passed over. A rule of an earlier version cannot be replayed either; that is said, and the audit runs.

Silence is no repair: `fate` has the rule by which a witness that was not confirmed is kept or dropped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import hashlib
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from dpaudit.audits.replaying import Replay, replay
from dpaudit.errors import DpauditError
from dpaudit.files import read_json
from dpaudit.inference.witness import is_current
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import AuditResult, Finding
from dpaudit.results.saving import write_whole

SCHEMA = "dpaudit.witness/2"
FOLDER = "witnesses"
WITNESS, INTERRUPTED = f"{FOLDER}/*.json", "interrupted/*.checkpoint"  # files of calls in the cache
Fate = Literal["kept", "dropped: code", "dropped: power", "not asked"]


@dataclasses.dataclass(frozen=True)
class Power:
    """Power of an audit on one pair, by its settings."""

    samples: int  # runs on each input, at most: what was asked for, not the draws after which a test could stop
    error: float  # error rate of one pair: that of the audit, divided over its pairs
    mode: str  # that of the audit; ", pooled" where the pair shared its game with others
    stored: int = 0  # of evidence that accumulates over sessions: runs behind the pair so far; else 0

    @classmethod
    def of(cls, result: AuditResult, pair: str, samples: int, accumulates: bool) -> Power:
        """Witness of an audit on the pair with this id."""
        asked = len(result.findings) if result.universe is None else result.universe.asked
        found = next((finding for finding in result.findings if finding.id == pair), None)
        pooled = ", pooled" if found is not None and found.pool is not None else ""
        stored = found.samples if accumulates and found is not None else 0
        return cls(int(samples), (1.0 - result.confidence) / max(asked, 1), result.mode + pooled, int(stored))

    def samples_at(self, error: float) -> int:
        """Samples with which an audit of another error rate is as strong.

        A test rejects once its evidence exceeds log(1 / error), and evidence grows with the draws. Never fewer than
        here, since a rule has to be learned from draws too.

        >>> Power(1000, 0.01, "sequential").samples_at(0.0001)
        2000
        """
        return max(self.samples, math.ceil(self.samples * math.log(error) / math.log(self.error) - 1e-6))

    def reaches(self, other: Power) -> bool:
        """Tell whether an audit of this power is at least as strong as the other one.

        >>> Power(5000, 0.01, "fixed").reaches(Power(100_000, 0.01, "fixed"))
        False
        """
        enough = self.samples >= other.samples_at(self.error) and self.stored >= other.stored
        return enough and self.mode == other.mode

    def with_that_of(self, other: Power | None) -> Power:
        """The power that both have at most: what a silent run must have, of code that two runs have refuted."""
        if other is None:
            return self
        return Power(
            max(self.samples, other.samples), max(self.error, other.error), self.mode, max(self.stored, other.stored)
        )


@dataclasses.dataclass(frozen=True)
class Saved:
    """A witness file: the finding, the day of it, and the power of the run; None in a file that does not say it."""

    result: AuditResult
    date: str
    power: Power | None

    def asked_of(self, claim: Claim, pairs: Sequence[Pair]) -> Pair | None:
        """The pair of a call that it accuses; None where the call makes another promise, or does not ask that pair."""
        if self.result.claim != str(claim):
            return None
        own = {finding.id for finding in self.result.findings}  # one, by the digest of its id
        return next((pair for pair in pairs if _digest(pair.id) in own), None)

    @property
    def is_current(self) -> bool:
        """Tell whether its rule is of a form that this version replays."""
        witness = self.result.findings[0].witness if self.result.findings else None
        return witness is not None and is_current(witness.rule)

    def is_of(self, fingerprint: str) -> bool:
        """Tell if it was found in the same code, as far as that is seen (`dpaudit.subjects.callables.fingerprint`)."""
        return bool(self.result.subject.get("fingerprint") == fingerprint)


def fate(saved: Saved, now: Power | None, is_same_code: bool, verdict: str, is_dependent: bool = False) -> Fate:
    """Fate of a witness that fresh draws did not confirm, once the audit has found no violation either.

    `now` is the power of the audit on the pair of the witness; None where it did not ask it, or makes another promise.
    `verdict` is that of the audit; where its draws depend on each other, its silence means nothing.
    """
    if now is None:
        return "not asked"
    if verdict not in ("not_refuted", "inconclusive") or is_dependent:
        return "kept"
    if saved.power is not None and now.reaches(saved.power):
        return "dropped: power"
    return "kept" if is_same_code or verdict == "inconclusive" else "dropped: code"


def save(cache: Path, node_id: str, number: int, result: AuditResult, samples: int, accumulates: bool = False) -> None:
    """Keep the worst violation of a result that has a witness; a folder that cannot be written keeps nothing.

    Where the same code was refuted before, by a stronger run, only silence of that power will drop the new witness.
    """
    worst = next((finding for finding in result.violated if finding.witness is not None), None)
    if worst is None:
        return
    kept = dataclasses.replace(
        result,
        findings=(_without_records(worst),),
        not_asked=(),
        options={name: value for name, value in result.options.items() if name == "isolation"},
        floating_point=None,
        side_findings=(),
    )
    power = Power.of(result, worst.id, samples, accumulates)
    before = saved(cache, node_id, number)
    code = result.subject.get("fingerprint", "")
    if before is not None and before.is_of(code) and before.result.claim == result.claim:
        power = power.with_that_of(before.power)
    found = {"date": datetime.date.today().isoformat(), **dataclasses.asdict(power)}
    record = {"schema": SCHEMA, "test": node_id, "call": number, "found": found, "result": kept.to_dict()}
    with contextlib.suppress(DpauditError):
        content = json.dumps(record, allow_nan=False).encode("utf-8", "backslashreplace")
        write_whole(cached_path(cache, node_id, number), content)
        keep_out(cache)


def _without_records(finding: Finding) -> Finding:
    """A finding without its inputs and without what quotes them."""
    assert finding.witness is not None
    return dataclasses.replace(
        finding,
        id=_digest(finding.id),
        x_id=_digest(finding.x_id),
        x_prime_id=_digest(finding.x_prime_id),
        pool=None if finding.pool is None else _digest(finding.pool),
        x=None,
        x_prime=None,
        looks=(),
        message="",
        notes=(),
        witness=dataclasses.replace(finding.witness, description=""),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def keep_out(cache: Path) -> None:
    """Keep the folder out of git."""
    ignore = cache / ".gitignore"
    if not ignore.exists():
        write_whole(ignore, "*\n")


def forget(cache: Path, node_id: str, number: int) -> None:
    """Remove what was saved of a call."""
    with contextlib.suppress(OSError):
        cached_path(cache, node_id, number).unlink(missing_ok=True)


def clear(cache: Path) -> None:
    """Remove everything that sessions kept of calls."""
    for file in (file for kind in (WITNESS, INTERRUPTED) for file in sorted(cache.glob(kind))):
        file.unlink(missing_ok=True)


def saved(cache: Path, node_id: str, number: int) -> Saved | None:
    """Saved result of a call; None where there is nothing that this version can read."""
    file = cached_path(cache, node_id, number)
    try:
        record = read_json("witness", file)
        if record["schema"] != SCHEMA or record["test"] != node_id or record["call"] != number:
            return None
        written = datetime.date.fromtimestamp(file.stat().st_mtime).isoformat()
        return Saved(AuditResult.from_dict(record["result"]), *_found(record.get("found"), written))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None


def _found(record: Any, written: str) -> tuple[str, Power | None]:
    """The day and the power of the run that found a witness; the day of the file and None where they are not said."""
    try:
        date = datetime.date.fromisoformat(record["date"]).isoformat()
        record = {"stored": record.get("nights"), **record}  # its name in older files
        samples, error, mode, stored = (record[name] for name in ("samples", "error", "mode", "stored"))
        is_one = min(samples, stored) >= 0 and 0.0 < error < 1.0 and isinstance(mode, str)
        return date, Power(int(samples), float(error), mode, int(stored)) if is_one else None
    except (ValueError, KeyError, TypeError, ArithmeticError):
        return written, None


def replay_saved(
    found: AuditResult, subject: Any, claim: Claim, pair: Pair, confidence: float, seed: int, samples: int
) -> Replay | None:
    """The saved witness on fresh draws of its pair; None where it cannot be run.

    It takes as many draws as it was found in, and at most `samples` of an input.
    P(confirmed) <= 1 - confidence if the claim holds for the pair.
    """
    finding = found.findings[0]
    try:
        size = max(10, min(int(samples), max(finding.samples // 2, 1_000)))
        named = dataclasses.replace(finding, id=pair.id, x_id=pair.x_id, x_prime_id=pair.x_prime_id)
        known = dataclasses.replace(found, confidence=confidence, findings=(named, *found.findings[1:]))
        return replay(known, subject, claim, inputs=pair, samples=size, seed=seed)
    except (DpauditError, ValueError, TypeError, LookupError, AttributeError, ArithmeticError):  # a spoiled rule too
        return None


def cached_path(cache: Path, node_id: str, number: int, kind: str = WITNESS) -> Path:
    """The file of one kind that is kept of a call."""
    digest = hashlib.sha256(f"{node_id}\n{number}".encode("utf-8", "replace")).hexdigest()[:24]
    return cache / kind.replace("*", digest)
