"""Page one of a compliance report, read in one minute: statements, a table, a picture, and a block to sign.

A row is one subject and one kind of promise: privacy (an audit), proof (a certificate), scores (of canaries), errors (a
test of stated error bounds) or behaviour (a run of the conformance suite). Measured figures are bounds; ratios are of a
bound to its promise, 1 being the promise.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

from dpaudit.conformance.result import CheckRecord, CheckResult
from dpaudit.reports import wording
from dpaudit.reports.document import Block, Facts, Paragraph, SignOffBlock, Table
from dpaudit.reports.dossier import Dossier, Judged, Source, subject_of
from dpaudit.reports.items import Item, status_word
from dpaudit.reports.measured_picture import Bar, picture
from dpaudit.reports.severity import FIRST_PROOF, NO_SCALE, RULE, Severity, severity_of
from dpaudit.reports.sign_off import DECISIONS, results_digest
from dpaudit.reports.wording import clean, compared, number_text, percent_text, plural
from dpaudit.results.model import VERDICTS, AuditResult, Verdict
from dpaudit.results.utility_result import UtilityResult

ROWS = 10  # of the table; others are in their chapters
NAMED = 3  # subjects or items that a statement names
TOGETHER = 0.999  # confidence of all results of a report together, that a decision can rest on
RELEASE = "May it be released?"
SEARCHED = " that has to be searched for"
COLUMNS = ("subject", "promised", "measured", "verdict", "sure of no false alarm", "what it may have missed")
KINDS = ("proof", "privacy", "scores", "errors", "behaviour")  # of promises, in the order of the rows
PRIVATE = ("proof", "privacy", "scores")  # those about what an answer reveals
PAIR = "A pair is two possible inputs, such as a table with and without the row of one person."
LETTERS: dict[str, str] = {  # of the parameter of a claim
    "ε": "ε, the loss, says how well one answer can tell them apart (in nats): at ε = 0 not at all; at 0.25 it "
    "multiplies the odds of one against the other by up to about 1.3, at 1 by 2.7, at 5 by 150.",
    "δ": "δ is a small probability with which a limit on ε need not hold.",
    "ρ": "ρ says how well one answer can tell them apart, on a scale of its own: at 0 not at all.",
    "μ": "μ says how well one answer can tell them apart, on a scale of its own: at 0 not at all.",
    "scale": "The scale compares the loss with the promised curve: up to 1 the promise is kept.",
}
WHO_SIGNS = (
    "To sign: whoever answers for the data, not whoever wrote the mechanism. What is accepted with conditions may be "
    "used only as these say."
)
AT_LEAST = "“At least” holds as surely as “How sure that is” says; the truth may be more."
SYMBOLS: dict[Verdict, str] = {"violated": "✗", "error": "!", "inconclusive": "?", "not_refuted": "✓"}
FAILED = "Checks failed"  # of checks that are no promise of privacy
EXCESS = "May be within it: not settled"  # of a measured error above its bound
CLAIM, LAW = ("claim_exact", "claim_audit"), "law_"  # checks of the privacy claim, and how those of its laws begin
WORDS: dict[Verdict, str] = {
    "violated": "Broken",
    "error": "No answer: it broke",
    "inconclusive": "Not settled",
    "not_refuted": "No breach found",
}


@dataclasses.dataclass(frozen=True)
class Line:
    """What one result says of one promise.

    `low` is a proven lower bound over the promise, `high` an upper one, `blind` the least excess that would have been
    noticed with 90% probability, of an event of the hardest form (of one that is known, in older
    results): all as multiples of the promise, None where there is none. `learned_with` is that probability, None for a
    known event.
    """

    subject: str
    kind: str
    promised: str
    measured: str
    verdict: Verdict
    severity: Severity | None
    sure: str
    missed: str
    low: float | None = None
    high: float | None = None
    blind: float | None = None
    judged: Judged | None = None
    learned_with: float | None = None
    word: str = ""  # in the place of the word of the verdict
    settles: str = ""  # what would settle it

    @property
    def words(self) -> str:
        """The verdict with its symbol and, of a broken promise of privacy, its severity."""
        if self.judged is not None:
            return self.judged.word
        return self._plain + (f", {self.severity.words}" if self.severity is not None else "")

    @property
    def explained(self) -> str:
        """The same for a reader who does not know the grades: how plainly it shows, which is not how much it harms."""
        if self.severity is None:
            return self.words
        return f"{self._plain}: {self.severity.meaning} (seen: {self.severity.place})"

    @property
    def _plain(self) -> str:
        return f"{SYMBOLS[self.verdict]} {self.word or WORDS[self.verdict]}"

    @property
    def is_broken(self) -> bool:
        """Whether a promise of privacy or errors is broken, and not only checks of how the code behaves."""
        return self.verdict == "violated" and self.word != FAILED


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
    if explained:
        parts.append(Paragraph(explained, "words"))
    parts.append(Table("Promise by promise", COLUMNS, rows, len(lines) - len(shown), marks, kind="verdicts"))
    drawn = picture(
        [
            Bar(line.subject, line.kind, line.verdict, line.low, line.high, line.blind, line.learned_with is not None)
            for line in shown
        ]
    )
    if drawn is not None:
        parts.append(drawn)
    return (*parts, sign_off_block(dossier, lines)) if to_sign else tuple(parts)


def words_of(lines: Sequence[Line]) -> str:
    """What the words and letters of these rows mean, those that they have; empty where they have none of them."""
    private = [line for line in lines if line.kind in PRIVATE]
    if not private:
        return ""
    said = " ".join(f"{line.promised} {line.measured} {line.missed}" for line in private)
    parts = [PAIR]
    parts += [text for symbol, text in LETTERS.items() if symbol in said]
    return " ".join([*parts, AT_LEAST])


def ranked(dossier: Dossier) -> tuple[Line, ...]:
    """A line for each result, the gravest first, privacy before errors before behaviour."""
    lines = [line_of(source) for source in dossier.sources] + [_judged(one) for one in dossier.judged]

    def key(line: Line) -> tuple[int, int, float]:
        return VERDICTS.index(line.verdict), KINDS.index(line.kind), -(line.low or 0.0)

    return tuple(sorted(lines, key=key))


def line_of(source: Source) -> Line:
    """What a result says of its promise."""
    result = source.result
    if isinstance(result, AuditResult):
        return _privacy(result)
    return _behaviour(result) if isinstance(result, CheckResult) else _errors(result)


def _judged(one: Judged) -> Line:
    """The row of a certificate or of an audit of scores."""
    name = clean(subject_of(one.subject), 60)
    return Line(
        name, one.kind, one.claim, one.measured, one.verdict, None, one.sure, one.missed, one.low, one.high, None, one
    )


def _privacy(result: AuditResult) -> Line:
    worst = result.worst
    claim = clean(result.claim, 80)
    graded = severity_of(result)
    sure = "not to be relied on" if wording.is_unreliable(result) else percent_text(result.confidence)
    name = wording.subject_name(result, 60)
    if worst is None or math.isnan(worst.parameter_lower):
        measured = "nothing" if worst is None else "no bound"
        return Line(name, "privacy", claim, measured, result.verdict, graded, sure, "everything")
    if worst.verdict == "error":
        unanswered = (
            f"no answer for {wording.verdict_count(result, 'error'):,} of {plural(wording.asked_count(result), 'pair')}"
        )
        missed = "whatever the broken runs would have shown"
        return Line(name, "privacy", claim, unanswered, result.verdict, graded, sure, missed)
    lower, budget = compared(worst.parameter_lower, worst.parameter_budget)
    symbol, unit = wording.symbol(worst.parameter), wording.unit(worst.parameter)
    delta = f" at δ = {number_text(worst.budget.delta)}" if wording.is_line(worst) and worst.budget.delta else ""
    budgets = [finding.parameter_budget for finding in result.findings if not math.isnan(finding.parameter_budget)]
    is_range = len(set(budgets)) > 1
    stated = f"{symbol} ≤ {budget}{delta}"
    if is_range:
        ends = (number_text(min(budgets)), number_text(max(budgets)))
        stated = f"{symbol} ≤ {ends[0]} to {ends[1]}, a limit for each pair"
    promised = claim if stated.replace("ε ≤ ", "eps=") == claim else f"{claim}\n{stated}"
    count, broken = wording.asked_count(result), wording.verdict_count(result, "violated")
    tail = (
        f"; broken for {broken:,} of {plural(count, 'pair')} tested" if broken else f"; {plural(count, 'pair')} tested"
    )
    times = "" if worst.ratio_lower is None or math.isinf(worst.ratio_lower) else f"{wording.ratio_text(worst)} ×"
    if is_range:
        which = "the worst pair" if broken else "the pair nearest its limit"
        ratio = (
            f" for {which}, {times} its limit of {budget}{delta}" if times else f" for {which} of limit {budget}{delta}"
        )
    else:
        ratio = f", {times} the promise" if times else ""
    low = None if worst.ratio_lower is None or math.isnan(worst.ratio_lower) else float(worst.ratio_lower)
    missed, blind, found = _privacy_missed(result, graded)
    measured = f"{symbol} {wording.at_least(lower)}{unit}{ratio}{tail if count > 1 else ''}"
    return Line(
        name, "privacy", promised, measured, result.verdict, graded, sure, missed, low, None, blind, None, found,
        settles=wording.settling_sentence(result) if result.verdict == "inconclusive" else "",
    )  # fmt: skip


def _privacy_missed(result: AuditResult, graded: Severity | None) -> tuple[str, float | None, float | None]:
    """What the audit could have missed in words, and `blind` and `learned_with` of a line.

    They are those of the pair whose loss that would have been noticed is the largest for its promise.
    """
    if result.verdict == "violated":
        return (FIRST_PROOF if graded is not None and graded.is_least else "how much larger the loss is"), None, None
    if wording.is_unreliable(result) or wording.has_changed(result):
        return "everything: its runs depend on each other", None, None
    if result.universe is not None:
        return f"see its chapter; {plural(result.universe.count('inconclusive'), 'pair')} not settled", None, None
    powers = [finding.power for finding in result.findings if finding.power is not None]
    if not powers:
        return "not known", None, None
    limited = [power for power in powers if power.at_budget > 0.0]
    blind = max((_known(power.deciding) / power.at_budget for power in limited), default=None)
    # Of pairs that may leak nothing there is no ratio: they are said in nats.
    nats = max((_known(power.deciding) for power in powers if not power.at_budget > 0.0), default=0.0)
    found = next((power.probability for power in powers if power.learned), None)
    if math.inf in (blind, nats):
        return f"a leak of any size{'' if found is None else SEARCHED}", math.inf, found
    sizes = [] if blind is None else [f"{number_text(blind, 3)} × the promise"]
    sizes += [f"{wording.nats_text(nats)} where nothing may leak"] if nats > 0.0 else []
    size, rare = " and ".join(sizes), percent_text(powers[0].event_mass)
    if found is None:
        missed = f"at best, losses up to {size}; larger ones that are hard to find or show in under {rare} of answers"
        return missed, blind, None
    missed = (
        f"about {percent_text(1.0 - found)} of leaks of {size} in the hardest form "
        f"({percent_text(found)} are found); more of smaller and of harder ones, and of those in fewer than {rare} of "
        "answers"
    )
    return missed, blind, found


def _known(loss: float) -> float:
    """The loss, inf where it is no number: what is not known excludes nothing."""
    return math.inf if math.isnan(loss) else loss


def _errors(result: UtilityResult) -> Line:
    name = clean(subject_of(result.subject), 60)
    promised = f"errors within {plural(len(result.bounds), 'stated bound')}"
    sure = percent_text(result.confidence)
    usable = [f for f in result.findings if f.verdict != "error" and f.ratio is not None and not math.isnan(f.ratio)]
    if not usable:
        return Line(name, "errors", promised, "nothing", result.told, None, sure, "everything")
    worst = min(usable, key=lambda f: (VERDICTS.index(f.told), -(f.ratio or 0.0)))
    low, high = worst.ratio_lower, worst.ratio_upper
    ends = f"{wording.lower_text(low, 3)} to {number_text(high, 3)}" if high is not None else ""
    measured = f"the worst error is {number_text(worst.ratio, 3)} × its bound ({ends})"
    empty = sum(f.says_nothing for f in usable)
    if empty:
        names = ", ".join(list(dict.fromkeys(clean(f.bound, 60) for f in usable if f.says_nothing))[:NAMED])
        measured += f"; {plural(empty, 'limit')} that no output can exceed, so nothing is said: {names}"
    is_excess = worst.ratio is not None and worst.ratio > 1.0 and result.told == "inconclusive"
    known = [f.detectable_ratio for f in usable if f.detectable_ratio is not None]
    blind = math.inf if empty else max(known, default=math.inf)
    missed = f"errors below {number_text(blind, 3)} × their bounds" if math.isfinite(blind) else "errors of any size"
    word = EXCESS if is_excess else ""
    return Line(name, "errors", promised, measured, result.told, None, sure, missed, low, high, word=word)


def _behaviour(result: CheckResult) -> Line:
    names = list(dict.fromkeys(subject_of(one) for one in result.mechanisms))
    name = clean(names[0], 60) + (f" and {len(names) - 1:,} more" if len(names) > 1 else "")
    promised = f"{plural(len(result.records), 'check')} of what such code must do"
    failed = sorted(result.of_status("violated"), key=lambda record: not breaks_claim(record))
    more = f" and {len(failed) - NAMED:,} more" if len(failed) > NAMED else ""
    named = f" ({', '.join(clean(one.name, 40) for one in failed[:NAMED])}{more})" if failed else ""
    counted = [f"{len(failed):,} failed{named}", f"{len(result.of_status('not_refuted')):,} passed"]
    for status in ("error", "inconclusive", "xfail", "skipped"):
        count = len(result.of_status(status))
        counted += [f"{count:,} {status_word(status)}"] if count else []
    sure, missed = percent_text(1.0 - result.error_rate), "whatever no check looks at"
    word = FAILED if failed and not any(map(breaks_claim, failed)) else ""
    return Line(name, "behaviour", promised, ", ".join(counted), result.verdict, None, sure, missed, word=word)


def breaks_claim(record: CheckRecord) -> bool:
    """Whether a violated check is of the privacy claim, or of what follows from it."""
    return record.name in CLAIM or record.name.startswith(LAW)


# --- The three statements ---------------------------------------------------------------------------------------------


def statements(
    dossier: Dossier, lines: Sequence[Line], found: Sequence[Item], to_sign: bool = True
) -> tuple[tuple[str, str], ...]:
    """May it be released, what was found, how sure that is, what nobody looked at and is to be done, with headings."""
    return (
        (RELEASE, release_sentence(lines)),
        ("What was found", _found(lines)),
        ("How sure that is", _sure(dossier, lines)),
        ("What was not looked at, and what to do", f"{_gaps(dossier, found)} {_next(lines, to_sign)}"),
    )


def release_sentence(lines: Sequence[Line]) -> str:
    """Whether the results speak against a release, by rule: the gravest result decides, and a person signs.

    A broken promise: no. Failed checks, errors and inconclusive tests: not yet, and what would settle them. Else
    nothing was found of what would have been found, in the promise that was tested least well.
    """
    if any(line.is_broken for line in lines):
        return "No. A promise is broken."
    if any(line.verdict == "violated" for line in lines):
        return "Not yet. No promise of privacy was found broken, but checks of how the code must behave failed."
    unclear = sum(line.verdict != "not_refuted" for line in lines)
    if unclear:
        named = [f"{quoted(line.subject)}: {line.settles}" for line in lines if line.settles]
        told = " ".join(named[:NAMED]) or "More runs may settle that."
        return f"Not yet. {plural(unclear, 'test')} of {len(lines):,} gave no full answer. {told}"
    if all(line.kind == "proof" for line in lines):
        return "Nothing speaks against it: every promise is proved for the pairs that are listed."
    blind = max((line.blind for line in lines if line.blind is not None), default=None)
    text = "Nothing that was found speaks against it"
    if blind is None:
        return f"{text}. That is no proof: whoever signs decides."
    if blind == math.inf:
        return f"{text}, but a loss of any size may have stayed hidden: whoever signs decides."
    times = number_text(blind, 3)
    return f"{text}: leaks from {times} times the promise on would mostly have been found. Whoever signs decides."


def _found(lines: Sequence[Line]) -> str:
    return f"{_promised(lines)}{_outcome(lines)}"


def _promised(lines: Sequence[Line]) -> str:
    """What was tested, and what was promised of privacy where something was."""
    subjects = len({line.subject for line in lines})
    kinds = [f"{count:,} on {kind}" for kind in KINDS if (count := sum(line.kind == kind for line in lines))]
    text = f"{plural(len(lines), 'result')} about {plural(subjects, 'mechanism')}: {_listed(kinds)}. "
    count = len({line.subject for line in lines if line.kind in PRIVATE})
    if not count:
        return text
    who = f"{count:,} of them promise{'s' if count == 1 else ''}"
    if count == subjects:
        who = "It promises" if count == 1 else "Each mechanism promises"
    return f"{text}{who} a limit on how well one answer tells two possible inputs apart. "


def _listed(parts: Sequence[str]) -> str:
    """Parts of a sentence: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _outcome(lines: Sequence[Line]) -> str:
    broken = [line for line in lines if line.is_broken]
    failed = [line for line in lines if line.verdict == "violated" and not line.is_broken]
    subjects = len({line.subject for line in lines})
    if not broken and not failed:
        unclear = [line for line in lines if line.verdict != "not_refuted"]
        if unclear:
            tests = f"{plural(len(unclear), 'test')} of {len(lines):,}"
            return f"No promise was found broken, but {tests} gave no full answer."
        proved = sum(line.kind == "proof" for line in lines)
        if proved == len(lines):
            return "Every promise is proved for the pairs that are listed, and for no others."
        more = f" {plural(proved, 'promise')} of {len(lines):,} proved for the pairs listed." if proved else ""
        return f"No promise was found broken, of {plural(subjects, 'mechanism')}. That does not prove them kept.{more}"
    if not broken:
        name = quoted(failed[0].subject)
        return f"{name} fails checks of how its code must behave; no promise of privacy was found broken."
    worst = broken[0]
    others = len(broken) - 1
    more = f" {plural(others, 'more promise')} below {'is' if others == 1 else 'are'} broken too." if others else ""
    name = quoted(worst.subject)
    if worst.kind == "errors":
        return f"{name} makes larger errors than it states.{more}"
    if worst.kind == "behaviour":
        return f"{name} breaks its promise: checks of it failed, or of what follows from it.{more}"
    if worst.judged is not None:
        return f"{name} breaks that promise: {worst.judged.sentence}{more}"
    size = ""
    if worst.low is not None and worst.low < NO_SCALE:
        size = f": the loss of privacy is {wording.at_least(compared(worst.low, 1.0)[0])} times what was promised"
    elif worst.low is not None:
        size = ": no larger epsilon covers what leaks"
    least = f" {FIRST_PROOF}" if worst.severity is not None and worst.severity.is_least else ""
    grade = ""
    if worst.severity is not None:
        grade = f" {worst.severity.harm}"
    return f"{name} breaks that promise{size}.{least}{grade}{more}"


def _sure(dossier: Dossier, lines: Sequence[Line]) -> str:
    rate = together(dossier)
    text = f"The verdicts of this report together contain a false alarm with probability at most {percent_text(rate)}."
    if rate > (1.0 - TOGETHER) * (1.0 + 1e-9):  # sums of decimal rates
        text += f" That is of lower confidence than the {percent_text(TOGETHER)} that a decision should rest on."
    unseen = [line for line in lines if line.blind is not None and line.verdict == "not_refuted"]
    if unseen:
        text += f" “No breach found” is no proof: {_unseen(max(unseen, key=lambda line: line.blind or 0.0))}"
    rest = beside(dossier)
    if rest > 0.0:
        text += f" Notes on later pages have false alarms of their own, with probability at most {percent_text(rest)}."
    return text


def _unseen(worst: Line) -> str:
    """What may have stayed hidden, by the line whose least excess that would have been noticed is the largest."""
    found = worst.learned_with
    if worst.blind == math.inf:
        return f"a loss of any size{'' if found is None else SEARCHED} may have stayed hidden."
    times = f"{number_text(worst.blind, 3)} times the promise"
    if found is None:
        return (
            f"even in the best case for the test a loss of up to {times} may have stayed hidden, and a larger one that "
            "is hard to find or shows in few answers."
        )
    return (
        f"about {percent_text(1.0 - found)} of leaks of {times} in the hardest form stay hidden "
        f"({percent_text(found)} are found), and more of those that are smaller, rarer or of harder forms."
    )


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
    rates = [
        result.floating_point.error_rate
        for result in dossier.audits
        if result.floating_point is not None and result.floating_point.verdict != "not_applicable"
    ]
    sides = [side for result in dossier.audits for side in result.side_findings if side.status != "not_applicable"]
    return min(1.0, math.fsum([*rates, *(side.error_rate or 0.0 for side in sides)]))


def _gaps(dossier: Dossier, found: Sequence[Item]) -> str:
    missing = [item.name for item in found if item.status == "not assessed"]
    said = sum(item.status == "declared" for item in found)
    parts = []
    if missing:
        parts.append("; ".join(missing))
    text = f"Not assessed: {parts[0]}." if parts else "Every item was tested, declared or beside the point."
    if said:
        text += f" {plural(said, 'item')} rest{'s' if said == 1 else ''} on what the owner says, unchecked."
    fewer = _fewer(dossier)
    return f"{text} Other inputs and other code were not looked at.{fewer}"


def _fewer(dossier: Dossier) -> str:
    """Which audits asked only some of the pairs that others with the same claim asked; empty where none did."""
    asked = [
        (result, {finding.id for finding in result.findings}) for result in dossier.audits if result.universe is None
    ]
    told = []
    for result, pairs in asked:
        wider = [len(others) for other, others in asked if other.claim == result.claim and pairs < others]
        if pairs and wider:
            told.append(
                f"{quoted(wording.subject_name(result, 60))} was tested on {len(pairs):,} of the "
                f"{plural(max(wider), 'pair')} that another mechanism with its promise was tested on."
            )
    more = f" So were {len(told) - NAMED:,} more, on fewer." if len(told) > NAMED else ""
    return "".join(f" {text}" for text in told[:NAMED]) + more


def _next(lines: Sequence[Line], to_sign: bool) -> str:
    def names(verdict: Verdict) -> str:
        found = list(dict.fromkeys(quoted(line.subject) for line in lines if line.verdict == verdict))
        return ", ".join(found[:NAMED]) + (f" and {len(found) - NAMED:,} more" if len(found) > NAMED else "")

    parts = []
    if names("violated"):
        parts.append(
            f"Let {names('violated')} answer nothing until it is mended and a new test finds no breach; what it has "
            "answered so far may have revealed too much."
        )
    if names("error"):
        parts.append(f"Have the run of {names('error')} repaired and repeated.")
    if names("inconclusive"):
        parts.append(f"Have {names('inconclusive')} tested with more runs.")
    faulty = {line.subject for line in lines if line.verdict != "not_refuted"}
    sound = [quoted(name) for name in dict.fromkeys(line.subject for line in lines) if name not in faulty]
    if sound and faulty:
        named = _listed([*sound[:NAMED], *([f"{len(sound) - NAMED:,} more"] if len(sound) > NAMED else [])])
        parts.append(f"Nothing was found against {named}: whether that is enough depends on these gaps.")
    else:
        parts.append("Decide whether these gaps are acceptable.")
    if to_sign:
        parts.append("Sign below." if len({line.subject for line in lines}) == 1 else "Decide on each mechanism below.")
    return " ".join(parts)


# --- The block to sign ------------------------------------------------------------------------------------------------


def sign_off_block(dossier: Dossier, lines: Sequence[Line]) -> SignOffBlock:
    """The decisions that were read, or an empty block to be filled by hand: a row for each mechanism.

    The gravest come first, and what was decided is shown for all; to decide by hand there is room for `ROWS`.
    """
    signed = dossier.sign_off
    digest = "" if dossier.is_redacted else results_digest(dossier)
    order = list(dict.fromkeys(line.subject for line in lines))
    names = sorted(dossier.subjects, key=lambda name: [*order, clean(name, 60)].index(clean(name, 60)))
    if signed is None:
        rest = len(names) - ROWS
        note = f"{plural(rest, 'more mechanism')}: decide in the file of --sign-off. " if rest > 0 else ""
        note += f"Digest of these results: {digest}" if digest else ""
        empty = (("Name", ""), ("Role", ""), ("Date", ""), ("Conditions", ""))
        chosen = tuple((clean(name, 60), "", "") for name in names[:ROWS])
        return SignOffBlock(empty, DECISIONS, chosen, f"{WHO_SIGNS} {note}".strip())
    rows = (("Name", clean(signed.name, 200)), ("Role", clean(signed.role, 200)), ("Date", signed.date))
    made = [(name, signed.about(name)) for name in names]
    bound = "made on exactly these results" if signed.results else "the file does not say on which results it was made"
    note = f"Quoted from the file of the decision; {bound}."
    accepted = {clean(name, 60) for name, one in made if one.decision != "reject"}
    against = list(
        dict.fromkeys(quoted(line.subject) for line in lines if line.verdict == "violated" and line.subject in accepted)
    )
    if against:
        who = _listed([*against[:NAMED], *([f"{len(against) - NAMED:,} more"] if len(against) > NAMED else [])])
        note += f" {who} {'was' if len(against) == 1 else 'were'} accepted although a promise was found broken."
    chosen = tuple((clean(name, 60), one.decision, clean(one.conditions, 2000)) for name, one in made)
    return SignOffBlock(rows, DECISIONS, chosen, note)


def severity_section(dossier: Dossier) -> tuple[Block, ...]:
    """The grades of all violated results, and the rule."""
    rows = []
    for result in dossier.audits:
        graded = severity_of(result)
        if graded is not None:
            least = "yes" if graded.is_least else "no"
            ratio = compared(graded.ratio, 1.0)[0]
            rows.append(
                (
                    wording.subject_name(result, 60),
                    graded.words,
                    ratio,
                    least,
                    f"{graded.reason}. {graded.harm}".strip(),
                )
            )
    columns = ("subject", "severity", "proven loss over promise", "stopped at first proof", "why")
    table = [Table("Severity of what is broken", columns, tuple(rows))] if rows else []
    return (*table, Paragraph(f"The rule. {RULE}", "note"))
