"""Answers of page one, the same in every report: release, tests, promises, certainty, what may be missed, what not.

The questions are `[answers]` of words.toml. Audits, checks, error bounds, scores and certificates are answered by their
rows (`rows`), whether a report shows one result or many, to a terminal, a notebook or an officer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from dpaudit.reports import side_texts, wording
from dpaudit.reports.document import Facts
from dpaudit.reports.dossier import LOW_BITS, Dossier, Line
from dpaudit.reports.items import items
from dpaudit.reports.rows import KINDS, NAMED, ranked
from dpaudit.reports.severity import FIRST_PROOF
from dpaudit.reports.wording import listed, percent_text, plural, rate_text, some, upper_text
from dpaudit.reports.words import joined, said, words

TOGETHER = 0.999  # confidence of all results of a report together, that a decision can rest on
PRIVATE = ("proof", "privacy", "scores")  # promises about what an answer reveals


def quoted(name: str) -> str:
    """A name within a sentence."""
    return f"“{name}”"


def answers(dossier: Dossier, to_sign: bool = False) -> Facts:
    """The six questions with their answers; `to_sign`: a block to sign stands below them."""
    lines = ranked(dossier)
    remarks = ((line.remark, quoted(line.subject)) for line in lines)
    texts = {
        "release": joined(release_sentence(lines), *_told_of(remarks, len(lines) == 1), *_mend(lines)),
        "tested": _tested(lines),
        "promised": _promised(lines),
        "sure": _sure(dossier),
        "missed": _missed(lines),
        "gaps": joined(_gaps(dossier), *_next(lines, to_sign)),
    }
    return Facts(tuple((words(f"answers.{key}"), text) for key, text in texts.items()), "statements")


# --- May it be released? ----------------------------------------------------------------------------------------------


def release_sentence(lines: Sequence[Line]) -> str:
    """Tell whether the results speak against a release, by rule: the gravest result decides, and a person answers.

    A broken promise: no. Low bits that break a promise, failed checks, errors and inconclusive tests: not yet. Else
    nothing was found, in the promise that was tested least well. What was found beside the verdicts is named.
    """
    judgement = judged(lines)
    is_said = {LOW_BITS} if judgement == "leaking" else {""}
    found = ((what, quoted(line.subject)) for line in lines for what in line.beside if what not in is_said)
    beside = [f"{what} ({first_of(names)})" for what, names in wording.gathered(found).items()]
    more = said("release.beside", found=listed(beside)) if beside else ""
    return joined(_release(lines, judgement, bool(beside)), more)


def judged(lines: Sequence[Line]) -> str:
    """Name the judgement of which the headline of a report and its answer on a release are two wordings."""
    if any(line.is_broken for line in lines):
        return "broken"
    if any(line.leaks for line in lines):
        return "leaking"
    if any(line.verdict == "violated" for line in lines):
        return "checks"
    if any(line.verdict != "not_refuted" for line in lines):
        return "unclear"
    return "proved" if all(line.kind == "proof" for line in lines) else "nothing"


def _release(lines: Sequence[Line], judgement: str, has_more: bool) -> str:
    if judgement == "broken":
        return joined(said("release.broken"), *_broken([line for line in lines if line.is_broken]))
    if judgement == "leaking":
        return said("release.leaking", names=leaking_names(lines))
    if judgement == "checks":
        return said("release.checks", name=next(quoted(line.subject) for line in lines if line.verdict == "violated"))
    if judgement == "unclear":
        which = "unclear" if len(lines) > 1 else "unclear_one"
        unclear = sum(one.verdict != "not_refuted" for one in lines)
        return said(f"release.{which}", tests=plural(unclear, "test"), count=len(lines))
    if judgement == "proved":
        return said("release.proved")
    proved = sum(line.kind == "proof" for line in lines)
    hidden = [(line.blind, line.tried is not None) for line in lines if line.blind is not None]
    blind, tried = max(hidden, default=(None, False))
    which = "blind" if blind == math.inf else "quiet" if tried else "unknown"  # a known event is no form that was tried
    also = said("release.also_proved", promises=plural(proved, "promise"), count=len(lines)) if proved else ""
    nothing = said("release.nothing_else" if has_more else "release.nothing")
    return joined(said(f"release.{which}", nothing=nothing, times=upper_text(blind, 3)), also)


def leaking_names(lines: Sequence[Line]) -> str:
    """Name the subjects whose low bits break a promise."""
    return first_of(list(dict.fromkeys(quoted(line.subject) for line in lines if line.leaks)))


def _broken(broken: Sequence[Line]) -> Iterator[str]:
    """Sentence on what breaks the gravest promise, and on how many others are broken."""
    worst, others = broken[0], len(broken) - 1
    which = worst.kind if worst.kind in ("errors", "behaviour") else "stated" if worst.sentence else "privacy"
    size = ""
    if math.isinf(worst.low or 0.0 if worst.severity is None else worst.severity.ratio):
        size = said("release.unscaled")
    elif worst.low is not None and math.isfinite(worst.low):  # not of a promise that nothing leaks
        size = said("release.size", lower=wording.at_least(wording.compared(worst.low, 1.0)[0]))
    yield said(f"release.by_{which}", name=quoted(worst.subject), sentence=worst.sentence, size=size)
    if worst.severity is not None:
        yield FIRST_PROOF if worst.severity.is_least else ""
        yield worst.severity.harm
    if others:
        yield said("release.others", promises=plural(others, "more promise"), are="is" if others == 1 else "are")


def _told_of(texts: Iterable[tuple[str, str]], is_alone: bool) -> Iterator[str]:
    """Texts, each once; of several results with the names that it is said of."""
    for text, names in wording.gathered(one for one in texts if one[0]).items():
        yield text if is_alone else f"{first_of(names)}: {text}"


def _mend(lines: Sequence[Line]) -> Iterator[str]:
    """Say what to do with the mechanisms that may not be released, each once: by its gravest row."""
    gravest: dict[str, Line] = {}
    for line in lines:
        gravest.setdefault(line.subject, line)
    settled = [name for name, line in gravest.items() if line.settles][:NAMED]
    yield from (f"{quoted(name)}: {gravest[name].settles}" for name in settled)
    of: dict[str, list[str]] = {kind: [] for kind in words("mend")}
    for name, line in gravest.items():
        if line.verdict != "not_refuted" and name not in settled:
            is_private = line.verdict != "violated" or (line.is_broken and line.kind not in ("scores", "errors"))
            of[line.verdict if is_private else line.kind].append(quoted(name))
    for kind, names in of.items():
        if names:
            are, have = ("it is", "it has") if len(names) == 1 else ("they are", "they have")
            yield said(f"mend.{kind}", names=first_of(names), are=are, have=have)


# --- What was tested, and what was promised? --------------------------------------------------------------------------


def _tested(lines: Sequence[Line]) -> str:
    if len(lines) == 1:  # of several results a table says what was measured
        measured = "" if lines[0].sentence else said("answers.measured", measured=lines[0].measured)
        return joined(f"{quoted(lines[0].subject)}: {lines[0].tested}.", measured)
    kinds = [f"{count:,} on {kind}" for kind in KINDS if (count := sum(line.kind == kind for line in lines))]
    mechanisms = plural(len({line.subject for line in lines}), "mechanism")
    return said("answers.counted", results=plural(len(lines), "result"), mechanisms=mechanisms, kinds=listed(kinds))


def _promised(lines: Sequence[Line]) -> str:
    subjects = {line.subject for line in lines}
    limits = [line for line in lines if line.kind in PRIVATE and not line.is_boundless]
    limited = len({line.subject for line in limits})
    which = "some" if limited < len(subjects) else "one" if limited == 1 else "each"
    who = said(f"answers.{which}", count=limited, s="s" * (limited == 1))
    texts = [said("answers.limit", who=who, promises=_named(limits))] if limits else []
    if others := [line for line in lines if line not in limits]:
        named = _named(others)
        texts.append(said("answers.also", promises=named) if limits else f"{named[:1].upper()}{named[1:]}.")
    return joined(*texts)


def _named(lines: Sequence[Line]) -> str:
    """Promises of these rows: the first ones, and how many more."""
    named = list(dict.fromkeys("; ".join(line.promised.split("\n")) for line in lines))
    more = f" and {plural(len(named) - NAMED, 'more promise')}" if len(named) > NAMED else ""
    return f"{'; '.join(named[:NAMED])}{more}"


# --- How sure is that? ------------------------------------------------------------------------------------------------


def _sure(dossier: Dossier) -> str:
    rate, rest = together(dossier), beside(dossier)
    low = rate is not None and rate > (1.0 - TOGETHER) * (1.0 + 1e-9)  # sums of decimal rates
    dependence = ((wording.dependence_sentence(one), quoted(wording.subject_name(one, 60))) for one in dossier.audits)
    return joined(
        said("certainty.rate", probability=alarm_text(dossier)) if rate is not None else "",
        said("certainty.low", enough=percent_text(TOGETHER)) if low else "",
        *_told_of(dependence, len(dossier.results) == 1),
        said("certainty.beside", rate=rate_text(rest)) if rest > 0.0 else "",
    )


def _missed(lines: Sequence[Line]) -> str:
    """Say what may have stayed hidden: the largest excess that nobody noticed, else what the gravest row says."""
    unseen = [line for line in lines if line.blind is not None and line.verdict == "not_refuted"]
    line = max(unseen, key=lambda one: one.blind or 0.0, default=lines[0])
    text = line.missed.removesuffix(".")
    text = text if len(lines) == 1 else f"{quoted(line.name)}: {text}"
    rest = said("certainty.rows") if len(lines) > 1 else ""
    return joined(f"{text[:1].upper()}{text[1:]}.", line.rarest, rest, said("certainty.no_proof") if unseen else "")


def together(dossier: Dossier) -> float | None:
    """The probability that any result of the report is a false alarm, at most: the sum of their error rates.

    Union bound: nothing is supposed of how results depend on each other. A list of checks has its rate for each
    mechanism. What was looked at beside the claims has rates of its own: see `beside`.

    Validity: None where the draws of an audit were found to depend on each other, which its error rate supposes not.
    """
    if any(map(wording.is_unreliable, dossier.audits)):
        return None
    rates = [1.0 - result.confidence for result in dossier.audits]
    rates += [1.0 - result.confidence for result in dossier.utilities]
    rates += [one.error_rate for one in dossier.checks for _ in one.mechanisms]
    rates += [one.error_rate for one in dossier.judged]
    return min(1.0, math.fsum(rates))


def alarm_text(dossier: Dossier) -> str:
    """The same in words, as the end of a sentence."""
    rate = together(dossier)
    return said("certainty.unknown") if rate is None else said("certainty.at_most", rate=rate_text(rate))


def beside(dossier: Dossier) -> float:
    """The same of findings beside the claims: low bits, order and time of calls. No verdict depends on these."""
    findings = (side for result in dossier.audits for side in side_texts.beside(result))
    return min(1.0, math.fsum(side.error_rate or 0.0 for side in findings if side.status != "not_applicable"))


# --- What was not tested? ---------------------------------------------------------------------------------------------


def _gaps(dossier: Dossier) -> str:
    found = items(dossier)
    missing = [item.name for item in found if item.status == "not assessed"]
    declared = sum(item.status == "declared" for item in found)
    rest = said("gaps.declared", items=plural(declared, "item"), s="s" * (declared == 1)) if declared else ""
    unseen = said("gaps.missing", names="; ".join(missing)) if missing else said("gaps.none")
    return joined(said("gaps.others"), unseen, rest, *_fewer(dossier))


def _fewer(dossier: Dossier) -> Iterator[str]:
    """Say which audits asked only some of the pairs that others with the same claim asked."""
    asked = [(one, {finding.id for finding in one.findings}) for one in dossier.audits if one.universe is None]
    sentences = []
    for result, pairs in asked:
        wider = [len(others) for other, others in asked if other.claim == result.claim and pairs < others]
        if pairs and wider:
            name, most = quoted(wording.subject_name(result, 60)), plural(max(wider), "pair")
            sentences.append(said("gaps.fewer", name=name, few=len(pairs), pairs=most))
    yield from sentences[:NAMED]
    if len(sentences) > NAMED:
        yield said("gaps.fewer_more", count=len(sentences) - NAMED)


def _next(lines: Sequence[Line], to_sign: bool) -> Iterator[str]:
    faulty = {quoted(line.subject) for line in lines if line.verdict != "not_refuted"}
    suspect = faulty | {quoted(line.subject) for line in lines if line.beside}  # nobody says that nothing was found
    sound = [name for name in dict.fromkeys(quoted(line.subject) for line in lines) if name not in suspect]
    if not faulty or sound:
        yield said("gaps.sound", names=first_of(sound)) if faulty else said("gaps.decide")
    if to_sign:
        yield said("gaps.sign" if len({line.subject for line in lines}) == 1 else "gaps.sign_each")


def first_of(names: Sequence[str]) -> str:
    """The first names, and how many more: "a, b and 2 more"."""
    return some(names, NAMED) if len(names) > NAMED else listed(names)
