"""Witnesses of earlier failures: saved as data, and replayed before the next audit of the same call.

A file a call (`.dpaudit/witnesses/`), written by a test that fails: the finding with its rule and without its inputs,
which the next run has anyway. Ids of pairs and of inputs may be records in words: digests stand for them, and texts are
left out. (A rule may still quote an output. A digest hides nothing from who can try all likely records.) In the next
run the rule meets fresh draws first: it was fixed before these, so one exact test at 10% of the call's share of the
error rate (`dpaudit.pytest_plugin.budget`), whatever it looks like and whoever wrote it. Where that confirms the
violation, the audit is spared; else it runs as always, and a witness that it does not confirm either is forgotten.
Nothing in a file is run: a rule is data, and what cannot be read is passed over.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpaudit.errors import DpauditError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dpaudit.audits.replaying import Replay
    from dpaudit.privacy.claims import Claim
    from dpaudit.privacy.pairs import Pair
    from dpaudit.results.model import AuditResult, Finding

SCHEMA = "dpaudit.witness/2"
FOLDER = "witnesses"


def save(cache: Path, node_id: str, number: int, result: AuditResult) -> None:
    """Keep the worst violation of a result that has a witness; a folder that cannot be written keeps nothing."""
    from dpaudit.results.model import write_whole

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
    record = {"schema": SCHEMA, "test": node_id, "call": number, "result": kept.to_dict()}
    try:
        content = json.dumps(record, allow_nan=False).encode("utf-8", "backslashreplace")
        write_whole(_file(cache, node_id, number), content)
        keep_out(cache)
    except DpauditError:
        return


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
    from dpaudit.results.model import write_whole

    ignore = cache / ".gitignore"
    if not ignore.exists():
        write_whole(ignore, "*\n")


def forget(cache: Path, node_id: str, number: int) -> None:
    """Remove what was saved of a call."""
    try:
        _file(cache, node_id, number).unlink(missing_ok=True)
    except OSError:
        return


def clear(cache: Path) -> None:
    """Remove everything that was saved."""
    for file in sorted((cache / FOLDER).glob("*.json")):
        file.unlink(missing_ok=True)


def saved(cache: Path, node_id: str, number: int) -> AuditResult | None:
    """What was saved of a call; None where there is nothing that this version can read."""
    from dpaudit.results.model import AuditResult

    try:
        record = json.loads(_file(cache, node_id, number).read_text(encoding="utf-8"))
        if record["schema"] != SCHEMA or record["test"] != node_id or record["call"] != number:
            return None
        return AuditResult.from_dict(record["result"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError):
        return None


def replay_saved(
    found: AuditResult,
    subject: Any,
    claim: Claim,
    pairs: Sequence[Pair],
    confidence: float,
    seed: int,
    samples: int,
) -> Replay | None:
    """The saved witness on fresh draws; None where it does not fit this call, or cannot be run.

    It takes as many draws as it was found in, and at most `samples` of an input.
    P(confirmed) <= 1 - confidence if the claim holds for the pair.
    """
    from dpaudit.audits.replaying import replay

    finding = found.findings[0] if found.findings else None
    pair = next((one for one in pairs if finding is not None and _digest(one.id) == finding.id), None)
    if finding is None or pair is None:
        return None
    try:
        size = max(10, min(int(samples), max(finding.samples // 2, 1_000)))
        named = dataclasses.replace(finding, id=pair.id, x_id=pair.x_id, x_prime_id=pair.x_prime_id)
        known = dataclasses.replace(found, confidence=confidence, findings=(named, *found.findings[1:]))
        return replay(known, subject, claim, inputs=pair, samples=size, seed=seed)
    except DpauditError:
        return None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError):  # a rule that was spoiled
        return None


def _file(cache: Path, node_id: str, number: int) -> Path:
    digest = hashlib.sha256(f"{node_id}\n{number}".encode("utf-8", "replace")).hexdigest()[:24]
    return cache / FOLDER / f"{digest}.json"
