"""Blocks on the replay of a saved witness."""

from __future__ import annotations

from dpaudit.audits.replaying import Replay
from dpaudit.reports import wording
from dpaudit.reports.document import Paragraph


def replay_blocks(outcome: Replay) -> list[Paragraph]:
    """The outcome of a replay in words: the headline first."""
    guesses = outcome.correct + outcome.wrong
    share = f" ({wording.percent_text(outcome.correct / guesses)})" if guesses else ""
    lower, budget = wording.compared(outcome.parameter_lower, outcome.parameter_budget)
    name, unit = wording.symbol(outcome.parameter), wording.unit(outcome.parameter)
    confidence = wording.percent_text(outcome.confidence)
    if outcome.confirmed:
        headline, mark = "Confirmed: the witness breaks the promise on fresh draws", "violated"
        reading = f"{name} is {wording.at_least(lower)}{unit} with {confidence} confidence, and {budget} was promised."
    elif outcome.dependence:
        headline, mark = "Not confirmed: the draws depend on each other", "inconclusive"
        reading = f"No bound is given; {budget} was promised."
    else:
        headline, mark = "Not confirmed: these draws alone do not break the promise", "not_refuted"
        reading = f"Their lower bound on {name} is {lower}{unit} at {confidence} confidence; {budget} was promised."
    rows = [
        f"Pair {wording.clean(outcome.pair)}, claim {wording.clean(outcome.claim)}, seed {outcome.seed}.",
        f"Rule: {wording.clean(outcome.description, 400)}",
        f"It was right in {outcome.correct:,} of {guesses:,} guesses{share}, wrong in {outcome.wrong:,}, and abstained "
        f"on {wording.plural(outcome.abstained, 'draw')}. {reading}",
    ]
    if outcome.dependence:
        rows.append(outcome.dependence)
    if outcome.pool is not None:
        rows.append("The rule was learned on several pairs of this shift; here it was asked of this pair alone.")
    if not guesses:
        rows.append("So it says nothing. Are these the subject and the inputs of the audit? See --target and --pairs.")
    return [Paragraph(f"{headline}.", mark=mark), *map(Paragraph, rows)]
