"""Page one of a compliance report, read in one minute: statements, a table, a picture, and a block to sign.

Its rows are those of `rows`: a subject and a kind of promise each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dpaudit.conformance.result import CheckResult
from dpaudit.reports import doubles, wording
from dpaudit.reports.document import Block, Facts, Paragraph, SignOffBlock, Table
from dpaudit.reports.dossier import Dossier, Line, Source
from dpaudit.reports.items import Item
from dpaudit.reports.measured_picture import picture
from dpaudit.reports.replay_command import Again, again, check_again
from dpaudit.reports.rows import CLAIM, KINDS, NAMED, ranked
from dpaudit.reports.severity import FIRST_PROOF, NO_SCALE, RULE, severity_of
from dpaudit.reports.sign_off import DECISIONS, results_digest
from dpaudit.reports.wording import clean, compared, listed, number_text, percent_text, plural, some
from dpaudit.reports.words import joined, said, words
from dpaudit.results.utility_result import UtilityResult

ROWS = 10  # of the table; others are in their chapters
TOGETHER = 0.999  # confidence of all results of a report together, that a decision can rest on
COLUMNS = ("subject", "promised", "measured", "verdict", "sure of no false alarm", "what it may have missed")
PRIVATE = ("proof", "privacy", "scores")  # promises about what an answer reveals
SUBJECTS = 3  # named, of those that a sentence is about
LINES = 20  # that run a finding again
PAIRS = 3  # violated pairs of a result with such a line
NOTHING = "no broken promise found"


def quoted(name: str) -> str:
    """A name within a sentence."""
    return f"“{name}”"


def blocks(dossier: Dossier, found: Sequence[Item], to_sign: bool = True) -> tuple[Block, ...]:
    """The blocks of page one, in their order; `to_sign` says whether the block to sign is among them."""
    lines = ranked(dossier)
    shown = lines[:ROWS]
    rows = tuple(
        (f"{line.subject}: {line.kind}", line.promised, line.measured, line.explained, line.sure, line.missed)
        for line in shown
    )
    marks = tuple(line.verdict for line in shown)
    parts: list[Block] = [Facts(statements(dossier, lines, found, to_sign), "statements")]
    explained = words_of(shown)
    parts += [Paragraph(explained, "words")] if explained else []
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


# --- The statements ---------------------------------------------------------------------------------------------------


def statements(
    dossier: Dossier, lines: Sequence[Line], found: Sequence[Item], to_sign: bool = True
) -> tuple[tuple[str, str], ...]:
    """May it be released, what was found, how sure that is, what nobody looked at and is to be done, with headings."""
    gaps = joined(_gaps(dossier, found), *_next(lines, to_sign))
    texts = {"release": release_sentence(lines), "found": joined(*_promised(lines), *_outcome(lines)),
             "sure": _sure(dossier, lines), "gaps": gaps}  # fmt: skip
    return tuple((said(f"page.{key}"), text) for key, text in texts.items())


def release_sentence(lines: Sequence[Line]) -> str:
    """Tell whether the results speak against a release, by rule: the gravest result decides, and a person signs.

    A broken promise: no. Failed checks, errors and inconclusive tests: not yet, and what would settle them. Else
    nothing was found of what would have been found, in the promise that was tested least well.
    """
    if any(line.verdict == "violated" for line in lines):
        return said("release.broken" if any(line.is_broken for line in lines) else "release.checks")
    unclear = sum(line.verdict != "not_refuted" for line in lines)
    if unclear:
        settles = joined(*[f"{quoted(line.subject)}: {line.settles}" for line in lines if line.settles][:NAMED])
        tests = plural(unclear, "test")
        return said("release.unclear", tests=tests, count=len(lines), settles=settles or said("release.more"))
    if all(line.kind == "proof" for line in lines):
        return said("release.proved")
    blind = max((line.blind for line in lines if line.blind is not None), default=None)
    which = "unknown" if blind is None else "blind" if blind == math.inf else "quiet"
    return said(f"release.{which}", times=number_text(blind, 3))


def _promised(lines: Sequence[Line]) -> Iterator[str]:
    """Say what was tested, and what was promised of privacy where something was."""
    subjects = len({line.subject for line in lines})
    kinds = [f"{count:,} on {kind}" for kind in KINDS if (count := sum(line.kind == kind for line in lines))]
    counted = {"results": plural(len(lines), "result"), "mechanisms": plural(subjects, "mechanism")}
    yield said("outcome.counted", **counted, kinds=listed(kinds))
    if count := len({line.subject for line in lines if line.kind in PRIVATE}):
        which = "some" if count < subjects else "one" if count == 1 else "each"
        yield said("outcome.limit", who=said(f"outcome.{which}", count=count, s="s" * (count == 1)))


def _outcome(lines: Sequence[Line]) -> Iterator[str]:
    broken, count = [line for line in lines if line.is_broken], len(lines)
    unclear = sum(line.verdict != "not_refuted" for line in lines)
    if broken:
        yield from _broken(broken)
    elif failed := [line for line in lines if line.verdict == "violated"]:
        yield said("outcome.checks", name=quoted(failed[0].subject))
    elif unclear:
        yield said("outcome.unclear", tests=plural(unclear, "test"), count=count)
    elif (proved := sum(line.kind == "proof" for line in lines)) == count:
        yield said("outcome.proved")
    else:
        yield said("outcome.quiet", mechanisms=plural(len({line.subject for line in lines}), "mechanism"))
        if proved:
            yield said("outcome.also_proved", promises=plural(proved, "promise"), count=count)


def _broken(broken: Sequence[Line]) -> Iterator[str]:
    """Sentence on what breaks the gravest promise, and on how many others are broken."""
    worst, others = broken[0], len(broken) - 1
    which = worst.kind if worst.kind in ("errors", "behaviour") else "stated" if worst.sentence else "broken"
    size = ""
    if worst.low is not None:
        lower = wording.at_least(compared(worst.low, 1.0)[0])
        size = said("outcome.size" if worst.low < NO_SCALE else "outcome.unscaled", lower=lower)
    yield said(f"outcome.{which}", name=quoted(worst.subject), sentence=worst.sentence, size=size)
    if worst.severity is not None:
        yield FIRST_PROOF if worst.severity.is_least else ""
        yield worst.severity.harm
    if others:
        yield said("outcome.others", promises=plural(others, "more promise"), are="is" if others == 1 else "are")


def _sure(dossier: Dossier, lines: Sequence[Line]) -> str:
    rate, rest = together(dossier), beside(dossier)
    low = rate > (1.0 - TOGETHER) * (1.0 + 1e-9)  # sums of decimal rates
    unseen = [line for line in lines if line.blind is not None and line.verdict == "not_refuted"]
    worst = max(unseen, key=lambda line: line.blind or 0.0, default=None)
    return joined(
        said("certainty.rate", rate=percent_text(rate)),
        said("certainty.low", enough=percent_text(TOGETHER)) if low else "",
        said("certainty.no_proof", unseen=_unseen(worst)) if worst is not None else "",
        said("certainty.beside", rate=percent_text(rest)) if rest > 0.0 else "",
    )


def _unseen(worst: Line) -> str:
    """Say what may have stayed hidden, by the line whose least excess that would have been noticed is the largest."""
    found = worst.learned_with
    which = "any" if worst.blind == math.inf else "known" if found is None else "learned"
    often, lost = ("", "") if found is None else (percent_text(found), percent_text(1.0 - found))
    searched = "" if found is None else said("row.searched")
    return said(f"certainty.{which}", searched=searched, times=number_text(worst.blind, 3), often=often, lost=lost)


def together(dossier: Dossier) -> float:
    """The probability that any result of the report is a false alarm, at most: the sum of their error rates.

    Union bound: nothing is supposed of how results depend on each other. A list of checks has its rate for each
    mechanism. What was looked at beside the claims has rates of its own: see `beside`.
    """
    rates = [1.0 - result.confidence for result in dossier.audits]
    rates += [1.0 - result.confidence for result in dossier.utilities]
    rates += [one.error_rate for one in dossier.checks for _ in one.mechanisms]
    rates += [one.error_rate for one in dossier.judged]
    return min(1.0, math.fsum(rates))


def beside(dossier: Dossier) -> float:
    """The same of findings beside the claims: low bits, order and time of calls. No verdict depends on these."""
    bits = [result.floating_point for result in dossier.audits if result.floating_point is not None]
    sides = [side for result in dossier.audits for side in result.side_findings if side.status != "not_applicable"]
    rates = [one.error_rate for one in bits if one.verdict != "not_applicable"]
    return min(1.0, math.fsum([*rates, *(side.error_rate or 0.0 for side in sides)]))


def _gaps(dossier: Dossier, found: Sequence[Item]) -> str:
    missing = "; ".join(item.name for item in found if item.status == "not assessed")
    declared = sum(item.status == "declared" for item in found)
    rest = said("gaps.declared", items=plural(declared, "item"), s="s" * (declared == 1)) if declared else ""
    unseen = said("gaps.missing", names=missing) if missing else said("gaps.none")
    return joined(unseen, rest, said("gaps.others"), *_fewer(dossier))


def _fewer(dossier: Dossier) -> Iterator[str]:
    """Say which audits asked only some of the pairs that others with the same claim asked."""
    asked = [(one, {finding.id for finding in one.findings}) for one in dossier.audits if one.universe is None]
    told = []
    for result, pairs in asked:
        wider = [len(others) for other, others in asked if other.claim == result.claim and pairs < others]
        if pairs and wider:
            name, most = quoted(wording.subject_name(result, 60)), plural(max(wider), "pair")
            told.append(said("gaps.fewer", name=name, few=len(pairs), pairs=most))
    yield from told[:NAMED]
    if len(told) > NAMED:
        yield said("gaps.fewer_more", count=len(told) - NAMED)


def _next(lines: Sequence[Line], to_sign: bool) -> Iterator[str]:
    for verdict in ("violated", "error", "inconclusive"):
        found = list(dict.fromkeys(quoted(line.subject) for line in lines if line.verdict == verdict))
        if found:
            yield said(f"gaps.{verdict}", names=some(found, NAMED))
    faulty = {line.subject for line in lines if line.verdict != "not_refuted"}
    sound = [quoted(name) for name in dict.fromkeys(line.subject for line in lines) if name not in faulty]
    yield said("gaps.sound", names=_first(sound)) if sound and faulty else said("gaps.decide")
    if to_sign:
        yield said("gaps.sign" if len({line.subject for line in lines}) == 1 else "gaps.sign_each")


def _first(names: Sequence[str]) -> str:
    """The first names, and how many more: "a, b and 2 more"."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    return listed([*names[:NAMED], *more])


# --- The block to sign ------------------------------------------------------------------------------------------------


def sign_off_block(dossier: Dossier, lines: Sequence[Line]) -> SignOffBlock:
    """The decisions that were read, or an empty block to be filled by hand: a row for each mechanism.

    The gravest come first, and what was decided is shown for all; to decide by hand there is room for `ROWS`.
    """
    signed = dossier.sign_off
    order = list(dict.fromkeys(line.subject for line in lines))
    names = sorted(dossier.subjects, key=lambda name: [*order, clean(name, 60)].index(clean(name, 60)))
    if signed is None:
        rest = len(names) - ROWS
        more = said("sign.more", mechanisms=plural(rest, "more mechanism")) if rest > 0 else ""
        digest = "" if dossier.is_redacted else said("sign.digest", digest=results_digest(dossier))
        empty = (("Name", ""), ("Role", ""), ("Date", ""), ("Conditions", ""))
        chosen = tuple((clean(name, 60), "", "") for name in names[:ROWS])
        return SignOffBlock(empty, DECISIONS, chosen, joined(said("page.who_signs"), more, digest))
    rows = (("Name", clean(signed.name, 200)), ("Role", clean(signed.role, 200)), ("Date", signed.date))
    made = [(clean(name, 60), signed.about(name)) for name in names]
    accepted = {name for name, one in made if one.decision != "reject"}
    broken = (line.subject for line in lines if line.verdict == "violated" and line.subject in accepted)
    against = [quoted(name) for name in dict.fromkeys(broken)]
    were = "was" if len(against) == 1 else "were"
    note = joined(
        said("sign.quoted", bound=said("sign.bound" if signed.results else "sign.unbound")),
        said("sign.against", names=_first(against), were=were) if against else "",
    )
    chosen = tuple((name, one.decision, clean(one.conditions, 2000)) for name, one in made)
    return SignOffBlock(rows, DECISIONS, chosen, note)


def severity_section(dossier: Dossier) -> tuple[Block, ...]:
    """The grades of all violated results, and the rule."""
    graded = [(result, one) for result in dossier.audits if (one := severity_of(result)) is not None]
    rows = tuple(
        (wording.subject_name(result, 60), one.words, compared(one.ratio, 1.0)[0], "yes" if one.is_least else "no",
         joined(f"{one.reason}.", one.harm))
        for result, one in graded
    )  # fmt: skip
    columns = ("subject", "severity", "proven loss over promise", "stopped at first proof", "why")
    table = [Table("Severity of what is broken", columns, rows)] if rows else []
    return (*table, Paragraph(f"The rule. {RULE}", "note"))


def title(dossier: Dossier, width: int = 100) -> str:
    """The name of the deployment, or else the subjects: of many, the first ones and a count."""
    name = dossier.deployment.name if dossier.deployment is not None else ""
    return clean(name, width) if name else some([clean(one, 60) for one in dossier.subjects], SUBJECTS)


def headline(dossier: Dossier) -> str:
    """The verdict over all results, in one line; it counts the rows of page one."""
    lines = ranked(dossier)
    count = plural(len(lines), "result")
    broken, unsettled = sum(line.is_broken for line in lines), sum(line.verdict == "inconclusive" for line in lines)
    without = sum(line.verdict == "error" for line in lines)
    if dossier.verdict == "not_refuted":
        is_proof = bool(lines) and all(line.kind == "proof" for line in lines)
        return f"Proved for the pairs that are listed, in {count}" if is_proof else f"Not refuted: {NOTHING} in {count}"
    rest = [f"{unsettled:,} not settled"] if unsettled else []
    if dossier.verdict == "inconclusive":
        return f"Inconclusive: too little evidence in {unsettled:,} of {count}"
    if dossier.verdict == "error":
        return "; ".join([f"Error: {without:,} of {count} broke before an answer", *rest])
    rest = [*([f"{without:,} broke before an answer"] if without else []), *rest]
    records = [record for one in dossier.checks for record in one.records]
    failed = [clean(record.name, 60) for record in records if record.status == "violated"]
    checks = f"{len(failed):,} of {plural(len(records), 'check')}"
    if broken:
        failures = [f"{checks} failed"] if failed else []
        return "; ".join([f"Violated: a promise is broken in {broken:,} of {count}", *failures, *rest])
    return "; ".join(
        [
            f"Checks failed: {checks} ({some(list(dict.fromkeys(failed)), SUBJECTS)})",
            _claim_text(dossier),
            *rest,
        ]
    )


def _claim_text(dossier: Dossier) -> str:
    """Say how the privacy claims stand of which none is violated."""
    found: set[str] = {result.verdict for result in dossier.audits} | {one.line.verdict for one in dossier.judged}
    found |= {record.status for one in dossier.checks for record in one.records if record.name in CLAIM}
    if "xfail" in found:
        return "the privacy claim is a known failure"
    if not found.isdisjoint(("error", "inconclusive")):
        return "the privacy claim itself could not be fully judged"
    return f"the privacy claim itself was {'not refuted' if 'not_refuted' in found else 'not audited'}"


def replays(dossier: Dossier) -> tuple[list[Again], list[str]]:
    """Lines that run findings again (the worst violated pairs, low bits, failed checks), and what has none there."""
    lines: list[Again] = []
    rest = []
    for source in dossier.sources:
        found, pairs = _replays(source)
        lines += found
        if pairs:
            rest.append(
                f"{clean(source.name, 300)} holds {plural(pairs, 'more violated pair')}: the same line with another "
                "--pair runs one."
            )
    if len(lines) > LINES:
        rest.append(f"{plural(len(lines) - LINES, 'more line')} are left out.")
    return lines[:LINES], rest


def _replays(source: Source) -> tuple[list[Again], int]:
    """The lines of one result, and how many violated pairs have none."""
    result, path = source.result, source.name
    if isinstance(result, UtilityResult):
        return [], 0
    if isinstance(result, CheckResult):
        checks = [check_again(result, mechanism) for mechanism in result.mechanisms]
        return [line for line in checks if line is not None], 0
    known = [finding for finding in result.violated if finding.witness]
    doubled = doubles.replay_of_worst(result, path)
    lines = [*(again(result, finding.id, path) for finding in known[:PAIRS]), *([doubled] if doubled else [])]
    return lines, max(0, len(known) - PAIRS)
