"""Page one of a compliance report, read in one minute: answers, a table, a picture, and a block to sign.

Its rows are those of `rows`: a subject and a kind of promise each.
"""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.conformance.result import CheckResult
from dpaudit.reports import wording
from dpaudit.reports.answers import PRIVATE, answers, first_of, judged, leaking_names, quoted
from dpaudit.reports.document import Block, Paragraph, SignOffBlock, Table
from dpaudit.reports.dossier import Dossier, Line
from dpaudit.reports.figures import picture
from dpaudit.reports.replay_command import Again, again, check_again, low_bits_again
from dpaudit.reports.rows import CLAIM, ranked
from dpaudit.reports.sign_off import DECISIONS, results_digest
from dpaudit.reports.wording import clean, plural, some
from dpaudit.reports.words import joined, said, words
from dpaudit.results.model import AuditResult, Verdict
from dpaudit.results.verdicts import gravest

MAX_ROWS = 10  # rows of the table; the others are in their chapters
COLUMNS = ("subject", "promised", "measured", "verdict", "sure of no false alarm", "what it may have missed")
SUBJECTS = 3  # named, of those that a sentence is about
LINES = 20  # that run a finding again
PAIRS = 3  # violated pairs of a result with such a line


def blocks(dossier: Dossier, opening: Sequence[Block] | None = None, to_sign: bool = True) -> tuple[Block, ...]:
    """The blocks of page one, in their order; `to_sign` says whether the block to sign is among them.

    The `opening` of the only chapter stands in the place of a table, whose one row would say the answers again.
    """
    lines = ranked(dossier)
    shown = lines[:MAX_ROWS]
    parts: list[Block] = [answers(dossier, to_sign)]
    explained = words_of(shown)
    parts += [Paragraph(explained, "words")] if explained else []
    if opening is not None:
        return (*parts, *opening)
    rows = tuple((one.name, *one.cells) for one in shown)
    marks = tuple(line.mark for line in shown)
    parts.append(Table("Promise by promise", COLUMNS, rows, len(lines) - len(shown), marks, kind="verdicts"))
    drawn = picture(shown)
    parts += [drawn] if drawn is not None else []
    return (*parts, sign_off_block(dossier, lines)) if to_sign else tuple(parts)


def words_of(lines: Sequence[Line]) -> str:
    """Say what the words and letters of these rows mean, those that they have; empty where they have none of them."""
    private = [line for line in lines if line.kind in PRIVATE]
    if not private:
        return ""
    shown = " ".join(f"{line.promised} {line.measured} {line.missed}" for line in private)
    letters = (text for letter, text in words("letters").items() if letter in shown)
    return joined(said("page.pair"), *letters, said("page.at_least"))


# --- The block to sign ------------------------------------------------------------------------------------------------


def sign_off_block(dossier: Dossier, lines: Sequence[Line]) -> SignOffBlock:
    """The decisions that were read, or an empty block to be filled by hand: a row for each mechanism.

    The gravest come first, and what was decided is shown for all; to decide by hand there is room for `MAX_ROWS`.
    """
    signed = dossier.sign_off
    order = list(dict.fromkeys(line.subject for line in lines))
    names = sorted(dossier.subjects, key=lambda name: [*order, clean(name, 60)].index(clean(name, 60)))
    if signed is None:
        rest = len(names) - MAX_ROWS
        more = said("sign.more", mechanisms=plural(rest, "more mechanism")) if rest > 0 else ""
        digest = "" if dossier.is_redacted else said("sign.digest", digest=results_digest(dossier))
        empty = (("Name", ""), ("Role", ""), ("Date", ""), ("Conditions", ""))
        chosen = tuple((clean(name, 60), "", "") for name in names[:MAX_ROWS])
        return SignOffBlock(empty, DECISIONS, chosen, joined(said("page.who_signs"), more, digest))
    rows = (("Name", clean(signed.name, 200)), ("Role", clean(signed.role, 200)), ("Date", signed.date))
    made = [(clean(name, 60), signed.about(name)) for name in names]
    accepted = {name for name, one in made if one.decision != "reject"}
    broken = (line.subject for line in lines if line.verdict == "violated" and line.subject in accepted)
    against = [quoted(name) for name in dict.fromkeys(broken)]
    were = "was" if len(against) == 1 else "were"
    note = joined(
        said("sign.quoted", bound=said("sign.bound" if signed.results else "sign.unbound")),
        said("sign.against", names=first_of(against), were=were) if against else "",
    )
    chosen = tuple((name, one.decision, clean(one.conditions, 2000)) for name, one in made)
    return SignOffBlock(rows, DECISIONS, chosen, note)


def title(dossier: Dossier, width: int = 100) -> str:
    """The name of the deployment, or else the subjects: of many, the first ones and a count."""
    name = dossier.deployment.name if dossier.deployment is not None else ""
    return clean(name, width) if name else some([clean(one, 60) for one in dossier.subjects], SUBJECTS)


def mark(dossier: Dossier) -> Verdict:
    """The verdict whose colour the headline has: the gravest of the rows, which low bits are a part of."""
    return gravest([line.mark for line in ranked(dossier)])


def headline(dossier: Dossier) -> str:
    """The verdict over all results, in one line: that of the only one in its own words, else a count of the rows."""
    lines, verdict = ranked(dossier), dossier.verdict
    if len(lines) == 1 and dossier.audits:
        return wording.headline(dossier.audits[0])
    if len(lines) == 1 and lines[0].headline:
        return lines[0].headline
    broken = sum(line.is_broken for line in lines)
    unsettled, without = (sum(line.verdict == one for line in lines) for one in ("inconclusive", "error"))
    records = [record for one in dossier.checks for record in one.records]
    failed = [clean(record.name, 60) for record in records if record.status == "violated"]
    checks = f"{len(failed):,} of {plural(len(records), 'check')}"
    judgement, of_verdict = judged(lines), "checks" if verdict == "violated" and not broken else verdict
    which = {"proved": "proved", "leaking": "reals"}.get(judgement, verdict) if verdict == "not_refuted" else of_verdict
    facts = {"count": plural(len(lines), "result"), "broken": broken, "open": unsettled, "without": without}
    names = some(list(dict.fromkeys(failed)), SUBJECTS)
    claim = said(f"summary.claim_{_claim_state(dossier)}")
    parts = [said(f"summary.{which}", **facts, checks=checks, names=names, claim=claim)]
    parts += [f"{checks} failed"] if which == "violated" and failed else []
    parts += [f"{without:,} broke before an answer"] if verdict == "violated" and without else []
    parts += [f"{unsettled:,} not settled"] if verdict in ("violated", "error") and unsettled else []
    parts += [said("summary.leaking", names=leaking_names(lines))] if judgement == "leaking" else []
    return "; ".join(parts)


def _claim_state(dossier: Dossier) -> str:
    """Say how the privacy claims stand of which none is violated."""
    found: set[str] = {result.verdict for result in dossier.audits} | {one.line.verdict for one in dossier.judged}
    found |= {record.status for one in dossier.checks for record in one.records if record.name in CLAIM}
    is_open = not found.isdisjoint(("error", "inconclusive"))
    return "known" if "xfail" in found else "open" if is_open else "kept" if "not_refuted" in found else "unaudited"


def replays(dossier: Dossier) -> tuple[list[Again], list[str]]:
    """Lines that run findings again (the worst violated pairs, low bits, failed checks), and what has none there."""
    lines: list[Again | None] = []
    rest = []
    for source in dossier.sources:
        result, path = source.result, source.name
        if isinstance(result, CheckResult):
            lines += [check_again(result, mechanism) for mechanism in result.mechanisms]
        elif isinstance(result, AuditResult):
            known = [finding for finding in result.violated if finding.witness]
            lines += [again(result, finding.id, path) for finding in known[:PAIRS]]
            lines.append(low_bits_again(result, path))
            if (more := len(known) - PAIRS) > 0:
                pairs = plural(more, "more violated pair")
                rest.append(said("provenance.more", name=clean(path, 300), pairs=pairs))
    found = [line for line in lines if line is not None]
    if len(found) > LINES:
        rest.append(f"{plural(len(found) - LINES, 'more line')} are left out.")
    return found[:LINES], rest
