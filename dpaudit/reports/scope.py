"""Items of an evaluation, as far as one audit got: `tested` only where the result itself holds the figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dpaudit.reports import beside, wording
from dpaudit.reports.wording import asked_count, clean, plural, subject_name, verdict_count
from dpaudit.reports.words import joined, said, words
from dpaudit.results.model import AuditResult
from dpaudit.results.saved_inputs import is_redacted
from dpaudit.subjects.by_outputs import BY_OUTPUTS

Status = Literal["tested", "tested in part", "declared", "not assessed", "not applicable"]
Found = tuple[Status, str]  # how far a run got with an item, and the facts
SOURCE: str = words("evidence.source")
SIDE_CHANNELS = ("timing", "containment")
CLAIM = ("claim_metadata", *wording.DEPENDENCE)  # what the claim is measured against, and whether the draws allow it
SENSITIVITY = ("pair_search", "same_randomness", "recorded_noise")
EXAMPLES = 3  # pairs shown as the unit that was tested


def bins(result: AuditResult) -> Found:
    """Say which keys the outputs have: an outcome of the audit wherever outputs are dictionaries."""
    found = [finding.keys for finding in result.findings if finding.keys is not None and finding.verdict != "error"]
    if not found:
        return "not assessed", words("items.bins.unseen")
    most, varying = max(keys.keys for keys in found), max(keys.varying for keys in found)
    came = said("evidence.bins_came", varying=varying) if varying else said("evidence.bins_stayed")
    facts = said("evidence.bins", pairs=plural(len(found), "pair"), keys=plural(most, "key"), came=came)
    rest = asked_count(result) - len(found)
    others = said("evidence.bins_rest", pairs=plural(rest, "other pair")) if rest else ""
    # Validity: what could show nothing, or rests on draws that are not independent, is no full test.
    whole = not rest and not verdict_count(result, "inconclusive") and not wording.dependence_sentence(result)
    return "tested" if whole else "tested in part", joined(facts, others)


def side_channels(result: AuditResult) -> Found:
    """Say what was compared beside the outputs: running times where they were looked at, and kinds of exceptions."""
    status, facts = sides(result, SIDE_CHANNELS)
    if _is_of_calls(result) and any(finding.verdict != "error" for finding in result.findings):
        status = "tested in part"
    errors = said("evidence.exceptions" if _is_of_calls(result) else "evidence.no_exceptions")
    unseen = "" if BY_OUTPUTS in str(result.subject.get("interface", "")) else said("unseen.by_outputs")
    return status, joined(facts or said("unseen.timing"), errors, unseen, said("evidence.backend"))


def _is_of_calls(result: AuditResult) -> bool:
    """Tell whether each draw was a call of its own, so that an exception is an outcome."""
    interface = str(result.subject.get("interface") or "sample(data, size, rng)")
    return "size" not in interface or interface.endswith("one call a draw")


def sides(result: AuditResult, kinds: Sequence[str]) -> Found:
    """Say what the side findings of these kinds say; nothing where none of them applied."""
    looked = [f for f in result.side_findings if f.kind in kinds and f.status != "not_applicable"]
    texts = [f"{beside.title(f)}: {beside.status_text(f)}. {clean(f.summary, 400)}" for f in looked]
    if not texts:
        return "not assessed", ""
    seen = {f.kind for f in looked}  # what was looked at must not stand for the rest of the item
    texts += [text for kind, text in words("unseen").items() if kind in kinds and kind not in seen]
    return "tested in part", joined(*texts)


def loss(result: AuditResult) -> Found:
    """Say how the claim compares with what was measured."""
    claim = clean(result.claim, 120)
    if all(finding.verdict == "error" for finding in result.findings):
        return "not assessed", said("evidence.no_answer", claim=claim)
    broken, weak = verdict_count(result, "error"), verdict_count(result, "inconclusive")
    facts = said(
        "evidence.loss",
        claim=claim,
        pairs=plural(asked_count(result) - broken, "pair"),
        runs=plural(result.samples, "run"),
        largest=wording.largest_bound(result),
        sure=wording.confidence_text(result),
        ratio=wording.compared(result.ratio_lower, 1.0)[0],
        violated=verdict_count(result, "violated"),
    )
    unclear = ""
    if weak:
        of = [finding for finding in result.findings if finding.verdict == "inconclusive"]
        which = (
            "controls" if wording.has_controls_alone(result) else "dependent" if wording.has_changed(result) else "weak"
        )
        unclear = said(f"evidence.loss_{which}", pairs=plural(weak, "pair"), found=wording.weak_text(of))
    gone = said("evidence.loss_broken", pairs=plural(broken, "pair")) if broken else ""
    dependence = wording.dependence_sentence(result)
    # Validity: what could show nothing, or rests on draws that are not independent, is no full test of the claim.
    status: Status = "tested in part" if broken or weak or dependence else "tested"
    return status, joined(facts, unclear, gone, sides(result, CLAIM)[1], dependence)


def within_calls(result: AuditResult) -> Found:
    """Say what is supposed of outputs of one call, where a call gives many."""
    if _is_of_calls(result) or wording.dependence_sentence(result) or loss(result)[0] == "not assessed":
        return "not assessed", ""
    return "tested", said("evidence.within_calls")


def unit(result: AuditResult) -> Found:
    """Say what two inputs of a tested pair differ in."""
    if not result.findings:
        return "not assessed", "No pair was run."
    shown = [f"{_input(f.x_id, f.x)} against {_input(f.x_prime_id, f.x_prime)}" for f in result.findings[:EXAMPLES]]
    redacted = is_redacted(result.findings[0].x)
    examples = said("evidence.unit_redacted") if redacted else f"for example: {'; '.join(shown)}"
    facts = said("evidence.unit", pairs=plural(asked_count(result), "pair"), examples=examples)
    skipped = len(result.not_asked)
    return "tested in part", joined(facts, said("evidence.not_asked", pairs=plural(skipped, "pair")) if skipped else "")


def _input(name: str, value: Any) -> str:
    """An input, with its name where it has another one."""
    shown = clean(value, 90)
    return shown if name == shown else f"{clean(name, 60)} ({shown})"


def subject(result: AuditResult) -> str:
    """Say what was audited, and that nobody saw what runs in production."""
    facts = f"{subject_name(result)}, as named by the caller"
    if result.subject.get("target"):
        facts += f" ({clean(result.subject['target'], 120)})"
    if result.subject.get("fingerprint"):
        facts += f", fingerprint {clean(result.subject['fingerprint'], 80)}"
    return said("evidence.deployed", subject=facts)
