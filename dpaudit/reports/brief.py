"""An audit in few lines, as blocks: what a terminal shows, and what a test that fails says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dpaudit.audits.replaying import FloatingPointReplay, Replay
from dpaudit.reports import by_form, side_texts, wording
from dpaudit.reports.answers import answers
from dpaudit.reports.document import Block, CodeBlock, Facts, Paragraph, Table
from dpaudit.reports.dossier import LOW_BITS, Dossier
from dpaudit.reports.input_diff import apart
from dpaudit.reports.replay_command import STAND_IN, Again, again, low_bits_again
from dpaudit.reports.rows import missed_sentence, privacy_line
from dpaudit.reports.wording import clean, name_text, number_text, plural, short_count, some, status_word
from dpaudit.reports.words import said
from dpaudit.results.all_pairs_table import AllPairsTable
from dpaudit.results.model import VERDICTS, AuditResult, Finding

MAX_SIDE_FINDINGS = 10  # in a terminal; files and pages have all
MAX_PAIRS = 10  # the worst, in a terminal; files and pages have all
UNSAVED = "audit again with --out DIR, which saves the witness"  # only a saved witness can be replayed


def short(result: AuditResult) -> list[Block]:
    """An audit in few sentences: its verdict, what was measured, may have been missed, and was found beside it."""
    line, worst = privacy_line(result), result.worst
    named = f" (pair {name_text(result.violated[0].id)})" if result.violated else ""
    cause = f": {clean(worst.message, 400).rstrip('.')}" if worst is not None and result.verdict == "error" else ""
    texts = wording.verdict_sentence(result), f"Measured: {line.measured}{named}{cause}.", missed_sentence(result)
    is_said = {LOW_BITS} if wording.state(result) == "leaking" else {""}  # by the headline
    found = [what for what in line.beside if what not in is_said]
    beside = said("release.beside", found=wording.listed(found)) if found else ""
    return [Paragraph(text) for text in (*texts, beside) if text]


def summary(results: Sequence[AuditResult]) -> Table:
    """One row a subject: name and claim, verdict, violated of all pairs, largest ratio, worst pair, draws, seconds."""
    columns = ("subject\nclaim", "verdict", "violated\nof pairs", "largest\nratio", "worst pair", "draws", "seconds")
    rows = []
    for result in results:
        worst = result.worst
        ratio = None if wording.is_unanswered(result) else result.ratio_lower
        row = (
            f"{wording.subject_name(result, 48)}\n{clean(result.claim, 48)}",
            status_word(result.verdict),
            f"{wording.verdict_count(result, 'violated'):,}/{wording.asked_count(result):,}",
            wording.compared(ratio, 1.0)[0],
            name_text(worst.id, 40) if worst is not None else wording.MISSING,
            short_count(result.samples),
            number_text(float(result.seconds), 3),
        )
        rows.append(row)
    return Table("", columns, tuple(rows), marks=tuple(result.verdict for result in results), kind="verdicts")


def pairs(result: AuditResult, limit: int = MAX_PAIRS) -> Table:
    """The pairs of one audit, the worst first: budget, lower bound, ratio, evidence, draws, verdict."""
    parameter, kind = wording.symbol(wording.parameter_of(result)), wording.evidence_name(result)
    head = kind.replace(" ", "\n")
    columns = ("pair", f"budget\nfor {parameter}", f"{parameter} at\nleast", "ratio", head, "draws", "verdict")
    rows = []
    for finding in result.ranked()[:limit]:
        bounds = finding.parameter_lower, finding.parameter_budget, finding.ratio_lower
        _, lower, budget, ratio, word = wording.pair_row(finding.id, *bounds, finding.verdict)
        seen, draws = wording.evidence_cell(finding, kind), short_count(finding.samples)
        rows.append((name_text(finding.id, 60), budget, lower, ratio, seen, draws, word))
    marks = tuple(finding.verdict for finding in result.ranked()[:limit])
    return Table("", columns, tuple(rows), wording.asked_count(result) - len(rows), marks, kind="verdicts")


def all_pairs(table: AllPairsTable) -> Paragraph:
    """The verdicts of all pairs, counted, on one line."""
    ended = wording.counted(one or "not asked" for one in (*VERDICTS, None) for _ in range(table.count(one)))
    return Paragraph(f"All {plural(len(table), 'pair')} of {len(table.ids):,} inputs: {ended}.")


def violation(result: AuditResult, path: str | Path | None = STAND_IN, replay: str | None = None) -> list[Block]:
    """Text of a failed audit: claim, pair, rule, counts, bound, draws, seed, and the line that replays it.

    `path` is where the result is saved, for the line that replays it (None: nowhere); `replay` stands in its place.
    """
    finding, *others = result.violated
    replay = UNSAVED if replay is None and path is None else replay
    line = Again(replay) if replay is not None else again(result, finding.id, str(path))
    blocks: list[Block] = [Paragraph(wording.headline(result), mark="violated"), Facts(finding_facts(result, finding))]
    blocks.append(CodeBlock(clean(line.line, 4000), "replay"))
    rows = [("", line.needs)] if line.needs else []
    if others:
        rows.append(("also", some([name_text(other.id, 40) for other in others], 3)))
    return [*blocks, Facts(tuple(rows))] if rows else blocks


def finding_facts(result: AuditResult, finding: Finding) -> tuple[tuple[str, str], ...]:
    """All that is said of one pair, in this order: what was asked, the rule, its counts, the bound, the draws."""
    differ = apart(finding.x, finding.x_prime)
    inputs = f"x = {clean(finding.x, 120)}; x′ = {clean(finding.x_prime, 120)}" + (f"\n{differ}" if differ else "")
    store = result.options.get("store")
    labelled, runs = f"{finding.samples:,} labelled for this pair", plural(result.samples, "run")
    draws = f"{labelled}, {runs} of the mechanism in all"
    if finding.severity is not None:
        draws += f"\n{finding.severity.samples:,} of these runs after the verdict, for the bound"
    kept = []
    if store is not None:  # the verdict is that of all sessions, and stays after a repair that the fingerprint misses
        draws = f"{labelled} in all sessions, {runs} of the mechanism in this one"
        kept = [
            ("store", f"session {clean(result.options.get('night'))} of the evidence in {clean(store)}"),
            ("", "A repair outside of the subject's own source is not seen: then use"),
            ("", f"dpaudit evidence forget {clean(result.subject.get('fingerprint'))}"),
        ]
    seed = str(result.seed) + ("" if result.replayable else " (of the labels; the subject takes no generator)")
    together = sum(other.pool == finding.pool for other in result.findings) if finding.pool is not None else 1
    pool = f"asked in one game with {plural(together - 1, 'other pair')} of the same shift"
    test = wording.test_sentence(finding)
    return (
        ("subject", wording.subject_name(result)),
        ("claim", clean(result.claim, 200)),
        ("pair", f"{name_text(finding.id, 120)}\n{inputs}"),
        *([("pool", f"{pool}; a replay asks this one alone")] if together > 1 else []),
        ("rule", clean(finding.witness.description, 600) if finding.witness else "none recorded"),
        ("counts", f"{wording.counts_sentence(finding)} {wording.allowance_sentence(finding)}".strip()),
        ("bound", wording.bound_sentence(result, finding) + "."),
        *([("test", test)] if test else []),
        ("draws", draws),
        *kept,
        ("seed", clean(seed, 120)),
    )


def side_findings(result: AuditResult) -> list[Block]:
    """A line for each thing that was looked at beside the claim."""
    looked = side_texts.beside(result)
    lines: list[Block] = [
        Paragraph(side_texts.line(side), "note", side.status if side.status == "found" else "")
        for side in looked[:MAX_SIDE_FINDINGS]
    ]
    more = len(looked) - MAX_SIDE_FINDINGS
    return [*lines, Paragraph(f"and {more:,} more beside the claim")] if more > 0 else lines


def page(result: AuditResult, saved: Path | None) -> list[Block]:
    """All of an audit that a command prints; `saved` is its file, if one was saved."""
    target = clean(result.subject.get("target") or result.subject.get("name"))
    blocks: list[Block] = [Paragraph(f"{target}, claim {clean(result.claim)}")]
    blocks += [pairs(result)] if result.findings else []
    blocks += [all_pairs(result.universe)] if result.universe is not None else []
    if result.not_asked:
        blocks.append(Paragraph(f"{plural(len(result.not_asked), 'pair')} not asked: the claim sets no limit there."))
    confidence, seconds = wording.confidence_text(result), number_text(float(result.seconds), 3)
    runs = plural(result.samples, "run")
    blocks.append(Paragraph(f"{confidence}, {runs} of the mechanism, {seconds} s, seed {result.seed}"))
    head: Block = Paragraph(f"{wording.headline(result)}.", mark=privacy_line(result).mark)
    if result.violated:
        head, *rest = violation(result, saved)
    else:
        rest = by_form.blocks(result)
        if result.verdict == "inconclusive" and wording.is_weak(result):
            time = ", and more time with --seconds" * ("seconds" in result.options)
            rest.append(Paragraph(f"Take more samples with --samples{time}."))
    blocks += [head, answers(Dossier.alone(result))]
    blocks += [Paragraph(f"Note: {line}", mark="inconclusive") for line in wording.notes(result)]
    blocks += rest
    if sentence := wording.monotone_sentence(result):
        blocks.append(Paragraph(sentence))
    blocks += side_findings(result)
    replay = low_bits_again(result, str(saved)) if saved is not None else None
    if replay is not None:
        blocks.append(CodeBlock(clean(replay.line, 4000), "replay"))
        blocks += [Facts((("", replay.needs),))] if replay.needs else []
    return blocks


def replay_blocks(outcome: Replay | FloatingPointReplay) -> list[Paragraph]:
    """The outcome of a replay in words: the headline first."""
    bits = "bits_" if isinstance(outcome, FloatingPointReplay) else ""
    if isinstance(outcome, FloatingPointReplay):
        delta = f" at δ = {number_text(outcome.budget.delta)}" if outcome.budget.delta else ""
        claim = f"ε ≤ {number_text(outcome.budget.epsilon)}{delta} on the doubles"
        outcome = Replay(
            outcome.pair, claim, outcome.description, outcome.correct, outcome.wrong, outcome.abstained, "epsilon",
            outcome.budget.epsilon, outcome.epsilon_lower, outcome.confidence, outcome.seed, outcome.confirmed,
        )  # fmt: skip
    guesses = outcome.correct + outcome.wrong
    which = "confirmed" if outcome.confirmed else "dependent" if outcome.dependence else "open"
    mark = {"confirmed": "violated", "dependent": "inconclusive", "open": "not_refuted"}[which]
    lower, budget = wording.compared(outcome.parameter_lower, outcome.parameter_budget)
    facts = {
        "name": wording.symbol(outcome.parameter),
        "lower": wording.at_least(lower) if outcome.confirmed else lower,
        "unit": wording.unit(outcome.parameter),
        "sure": wording.sure_text(outcome.confidence),
        "budget": budget,
        "share": f" ({wording.percent_text(outcome.correct / guesses)})" if guesses else "",
        "silent": plural(outcome.abstained, "draw"),
        "guesses": guesses,
        "outcome": outcome,
    }
    rows = [
        said("replayed.pair", pair=clean(outcome.pair), claim=clean(outcome.claim), seed=outcome.seed),
        f"Rule: {clean(outcome.description, 900)}",
        said("replayed.counts", **facts, reading=said(f"replayed.{which}_reading", **facts)),
        outcome.dependence,
        said("replayed.alone") if outcome.pool is not None else "",
        "" if guesses else said("replayed.nothing"),
    ]
    return [Paragraph(said(f"replayed.{bits}{which}"), mark=mark), *(Paragraph(text) for text in rows if text)]
