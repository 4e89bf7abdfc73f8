"""What a report tested, what was only declared, and what nobody looked at: every row is printed, whatever its status.

The items follow the eleven blocks of NIST SP 800-226 (March 2025), with the section numbers of its draft of December
2023: the text of the final edition was not at hand. A row is `tested` only where the result itself
holds the figures for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from dpaudit.reports import beside
from dpaudit.reports.wording import (
    DEPENDENCE,
    asked_count,
    clean,
    compared,
    confidence_text,
    dependence_sentence,
    has_changed,
    has_controls_alone,
    largest_bound,
    plural,
    subject_name,
    verdict_count,
    weak_text,
)
from dpaudit.results.model import AuditResult
from dpaudit.results.saved_inputs import is_redacted
from dpaudit.subjects.by_outputs import BY_OUTPUTS

Status = Literal["tested", "tested in part", "declared", "not assessed", "not applicable"]
SOURCE = (
    "Items are the building blocks of NIST SP 800-226, final since March 2025 (doi:10.6028/NIST.SP.800-226). Section "
    "numbers are those of its initial public draft (December 2023): the final edition's were not compared. "
    "The table says what was run for this report. It is no statement of conformity."
)
SIDE_CHANNELS = ("timing", "containment")
CLAIM = ("claim_metadata", *DEPENDENCE)  # what the claim is measured against, and whether the draws allow it
SENSITIVITY = ("pair_search", "same_randomness", "recorded_noise")
UNSEEN = {
    "timing": "Running times were not compared between inputs.",
    "by_outputs": "What calls warned of, logged or printed was not looked at (`dpaudit.with_by_outputs` makes it part "
    "of the outputs).",
    "pair_search": "Other pairs were not searched for.",
}
EXCEPTIONS = (
    "Exceptions of calls are outcomes of the audit: which kinds were raised, and how often, was compared between the "
    "inputs of each pair; their texts were not."
)
NO_KEYS = (
    "No outputs with keys are recorded, so nothing is known of bins that appear or vanish. Where outputs are "
    "dictionaries, which keys they have is compared as everything else in them."
)
WITHIN_CALLS = (
    "Each call gave many outputs. The figures suppose that these are independent. Audits compare outputs at pairs of "
    "places at one distance or mirrored, and how outputs are spread over calls. Other dependence within a call is not "
    "looked for, such as three outputs of which any two are independent."
)
EXAMPLES = 3  # pairs shown as the unit that was tested


Found = tuple[Status, str]  # how far a run got with an item, and the facts


def bins(result: AuditResult) -> Found:
    """Which keys the outputs have: an outcome of the audit wherever outputs are dictionaries."""
    found = [finding.keys for finding in result.findings if finding.keys is not None and finding.verdict != "error"]
    if not found:
        return "not assessed", NO_KEYS
    most, varying = max(keys.keys for keys in found), max(keys.varying for keys in found)
    came = f"up to {varying:,} appeared in some and were missing in others" if varying else "none was ever missing"
    facts = (
        f"Outputs of {plural(len(found), 'pair')} were dictionaries. Which keys an output has was among what was "
        f"compared between the two inputs: of up to {plural(most, 'key')} of a pair, in the outputs that were looked "
        f"at, {came}. What was found of a pair, its keys included, is its lower bound above; keys within values were "
        "not counted."
    )
    rest = asked_count(result) - len(found)
    if rest:
        facts += f" Of {plural(rest, 'other pair')} no keys are recorded."
    # Validity: what could show nothing, or rests on draws that are not independent, is no full test.
    whole = not rest and not verdict_count(result, "inconclusive") and not dependence_sentence(result)
    return "tested" if whole else "tested in part", facts


def side_channels(result: AuditResult) -> Found:
    """What was compared beside the outputs: running times, where the audit looked at them, and kinds of exceptions."""
    sides = sides_text(result, SIDE_CHANNELS)
    is_tested = bool(sides) or (_is_of_calls(result) and any(f.verdict != "error" for f in result.findings))
    errors = EXCEPTIONS if _is_of_calls(result) else "What a batch raises gives no outcome: errors were not compared."
    said = "" if BY_OUTPUTS in str(result.subject.get("interface", "")) else f" {UNSEEN['by_outputs']}"
    facts = f"{sides or UNSEEN['timing']} {errors}{said} The backend was not looked at."
    status: Status = "tested in part" if is_tested else "not assessed"
    return status, facts


def _is_of_calls(result: AuditResult) -> bool:
    """Whether each draw was a call of its own, so that an exception is an outcome."""
    interface = str(result.subject.get("interface") or "sample(data, size, rng)")
    return "size" not in interface or interface.endswith("one call a draw")


def sides_text(result: AuditResult, kinds: Sequence[str]) -> str:
    """What the side findings of these kinds say; empty where none of them applied."""
    looked = [f for f in result.side_findings if f.kind in kinds and f.status != "not_applicable"]
    texts = [f"{beside.title(f)}: {beside.status_text(f)}. {clean(f.summary, 400)}" for f in looked]
    if texts:  # what was looked at must not stand for the rest of the item
        seen = {f.kind for f in looked}
        texts += [sentence for kind, sentence in UNSEEN.items() if kind in kinds and kind not in seen]
    return " ".join(texts)


def loss(result: AuditResult) -> Found:
    """How the claim compares with what was measured."""
    answered = [finding for finding in result.findings if finding.verdict != "error"]
    if not answered:
        return "not assessed", f"Claim {clean(result.claim, 120)}: no pair gave an answer."
    count = asked_count(result) - verdict_count(result, "error")
    facts = (
        f"Claim {clean(result.claim, 120)}, asked of {plural(count, 'pair')} in both directions with "
        f"{plural(result.samples, 'run')} of the mechanism. Largest lower bound: {largest_bound(result)}, "
        f"all bounds together at {confidence_text(result)}. Largest ratio of bound to budget: "
        f"{compared(result.ratio_lower, 1.0)[0]}; {verdict_count(result, 'violated'):,} of {plural(count, 'pair')} "
        "violated."
    )
    broken, weak = verdict_count(result, "error"), verdict_count(result, "inconclusive")
    if weak and has_controls_alone(result):
        facts += " Each pair is of an input with itself, where no leak can be found."
    elif weak and has_changed(result):
        facts += f" {plural(weak, 'pair')} cannot be judged."
    elif weak:
        found = weak_text([finding for finding in result.findings if finding.verdict == "inconclusive"])
        facts += f" For {plural(weak, 'pair')} {found} would have been found."
    if broken:
        facts += f" {plural(broken, 'pair')} broke and gave no answer."
    dependence = dependence_sentence(result)
    unseen = "" if dependence or _is_of_calls(result) else WITHIN_CALLS
    facts = " ".join(text for text in (facts, sides_text(result, CLAIM), dependence, unseen) if text)
    # Validity: what could show nothing, or rests on draws that are not independent, is no full test of the claim.
    return "tested in part" if broken or weak or dependence else "tested", facts


def unit(result: AuditResult) -> Found:
    """What two inputs of a tested pair differ in."""
    if not result.findings:
        return "not assessed", "No pair was run."
    shown = [f"{_input(f.x_id, f.x)} against {_input(f.x_prime_id, f.x_prime)}" for f in result.findings[:EXAMPLES]]
    examples = "the inputs are redacted" if is_redacted(result.findings[0].x) else f"for example: {'; '.join(shown)}"
    facts = (
        f"Tested on {plural(asked_count(result), 'pair')} and no others, {examples}. Whether "
        "they are the unit that people were promised, users with several rows included, is for the reader to judge."
    )
    if result.not_asked:
        facts += f" {plural(len(result.not_asked), 'pair')} not asked: the claim sets no limit there."
    return "tested in part", facts


def _input(name: str, value: Any) -> str:
    """An input, with its name where it has another one."""
    shown = clean(value, 90)
    return shown if name == shown else f"{clean(name, 60)} ({shown})"


def subject(result: AuditResult) -> str:
    """What was audited, and that nobody saw what runs in production."""
    facts = f"{subject_name(result)}, as named by the caller"
    if result.subject.get("target"):
        facts += f" ({clean(result.subject['target'], 120)})"
    if result.subject.get("fingerprint"):
        facts += f", fingerprint {clean(result.subject['fingerprint'], 80)}"
    return f"{facts}. That production runs the same code with the same settings is declared, not observed."
