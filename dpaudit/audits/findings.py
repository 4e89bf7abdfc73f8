"""Findings of games: the verdict of each pair, with its power and its witness."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.power import power_of, with_map
from dpaudit.inference.bound_search import just_above
from dpaudit.inference.failures import Failure
from dpaudit.inference.order import ENDS, RATE, Change
from dpaudit.inference.pair_game import PairGame
from dpaudit.numerals import no_zero, p_text
from dpaudit.privacy.inputs import is_same_input
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import (
    SAME_INPUT,
    Finding,
    Power,
    Severity,
    SideFinding,
    Verdict,
    WitnessRecord,
    least_powerful,
)

IN_SMALL_BATCHES = 2  # times that an input is drawn once more, for its order alone: small batches, and more of them
STAGE_PAIRS = 8  # that a stage examines: they share its error rate, and the time
STAGE_RATE = 1e-3  # of a false "found" of a stage that has an error rate beside the audit's own
FIT_SHARE = 0.3  # of the draws of a stage, on which what it tests is fitted
# A note, beside `SAME_INPUT`, of a pair that is violated all the same.
CONTROL_VIOLATED = "So it says nothing of the claim: draws are not independent, or the audit is mistaken."
NONE_GIVEN = (  # where draws depend on each other
    "Rates, bounds and power suppose that each draw has the same start and noise of its own, so none is given. "
    "Make the mechanism anew in each call, or set it back there, and draw each output of a batch by itself. An audit "
    "of single outputs does not see what the mechanism keeps from one output to the next."
)
STANDS = (  # of a violation, whatever calls remember
    "Calls on the two inputs came in a random order, so that the violation stands: given what came before them, not "
    "all calls keep the promise. How large the loss of a single output is this does not say."
)
EARLIER = (
    "That was seen in an earlier session of this evidence, and later ones go on from it. To begin anew, forget it with "
    "`dpaudit evidence forget`."
)


def findings_of(run: AuditRun) -> tuple[Finding, ...]:
    """The findings of an audit that played games: one a pair, in the order of the pairs."""
    found_of: dict[int, Finding] = {}
    for place, (group, game) in enumerate(zip(run.groups, run.games, strict=True)):
        members = [run.pairs[k] for k in group]
        first = next((member for member in members if not is_same_input(member)), members[0])  # it has a power
        one = finding_of(run, first, game, run.labelled[place], run.failure, run.powers.get(place))
        if one.verdict == "error" and not one.traceback:
            one = dataclasses.replace(one, traceback=run.traceback)
        if one.verdict == "violated" and group[0] in run.severities:
            one = with_severity(one, run.severities[group[0]], game)
        of_members = findings_of_pool(one, members, game, run.subject.name)
        if place in run.withheld:
            of_members = [withheld(own, run.withheld[place]) for own in of_members]
        found_of.update(zip(group, of_members, strict=True))
    findings = [found_of[k] for k in sorted(found_of)]
    # A pair of an input with itself is a control of the auditor: a violation there is a mistake. Beside other pairs it
    # has the verdict of its evidence. Alone it would make an audit "not refuted" that has looked at nothing.
    if all(SAME_INPUT in finding.notes for finding in findings):
        findings = [
            dataclasses.replace(finding, verdict="inconclusive") if finding.verdict == "not_refuted" else finding
            for finding in findings
        ]
    factor = run.options.inconclusive_factor
    weakest = least_powerful(findings, factor)
    if weakest is not None and weakest.power is not None:
        at = next(place for place, finding in enumerate(findings) if finding is weakest)
        game = next(game for group, game in zip(run.groups, run.games, strict=True) if sorted(found_of)[at] in group)
        findings[at] = dataclasses.replace(
            weakest, power=with_map(weakest.power, game, run.options.mode, factor, len(run.games))
        )
    return tuple(findings)


def named(pair: Pair) -> dict[str, Any]:
    """The fields of a finding that name its pair."""
    return {"id": pair.id, "x_id": pair.x_id, "x_prime_id": pair.x_prime_id, "x": pair.x, "x_prime": pair.x_prime}


def finding_of(
    run: AuditRun, pair: Pair, game: PairGame, samples: int, failure: str = "", power: Power | None = None
) -> Finding:
    """The finding of a pair whose game took `samples` labelled draws; `failure` says what ended it before its time.

    `power` is that of its test, where it is known already.
    """
    common: dict[str, Any] = {
        **named(pair),
        "budget": game.claim.budget,
        "parameter": game.claim.parameter,
        "parameter_budget": game.claim.value,
        "error_share": game.level,
        "verdict_share": game.level * game.uses[0][0],
        "samples": samples,
    }
    if game.failure is not None:
        message = broken_text(run.subject.name, game.failure)
        return Finding(**common, verdict="error", message=message, traceback=game.failure.traceback)
    control = is_same_input(pair)
    power = power or power_of(game, run.options.event_mass)
    verdict: Verdict = "violated" if game.is_violated else "inconclusive"
    if not game.is_violated and (control or power.suffices(run.options.inconclusive_factor)):
        verdict = "not_refuted"  # a control has no power to be too little: see `findings_of`
    if game.unseen and not failure:
        # Its power would be that of a rule that sees what there is: "not refuted" would say too much.
        failure = (
            f"{run.subject.name} must return outputs that can be looked at, got {game.unseen}, whose printed form is "
            "an address. Return what it holds, for example a dictionary."
        )
    correct, wrong, abstained = game.main.counts
    finding = Finding(
        **common,
        verdict=verdict,
        epsilon_lower=game.epsilon_lower,
        parameter_lower=game.main.lower,
        ratio_lower=game.ratio_lower,
        log_wealth=game.main.log_wealth,
        p_value=game.main.p_value if game.labelled else None,
        looks=tuple(game.looks),
        # Nothing can be found in a control, so nothing would have been; where calls depend on each other, who knows.
        power=None if control or game.change is not None else power,
        witness=WitnessRecord(
            description=game.describe(*pair.said),
            rule=game.main.rule_record(),
            correct=correct,
            wrong=wrong,
            abstained=abstained,
            line=game.main.line,
            sketch=game.sketch(),
        ),
        message=failure,
        notes=_notes(pair, game),
        keys=game.keys,
    )
    # Validity: bounds and power suppose that draws are independent; a violation alone may rest on fair labels, and says
    # no more than that some call exceeds the budget, given what came before it.
    if game.change is not None:
        stands = game.is_fair and game.is_violated
        own = dataclasses.replace(finding, epsilon_lower=0.0)  # a second bound supposes independent draws too
        finding = with_severity(own, None, game) if stands else withheld(finding)
    return dataclasses.replace(finding, verdict="error") if failure and finding.verdict != "violated" else finding


def withheld(finding: Finding, reason: str = "") -> Finding:
    """The finding without verdict, bounds, power and witness, with the reason first."""
    if finding.verdict == "error":
        return finding
    return dataclasses.replace(
        finding,
        verdict="inconclusive",
        epsilon_lower=0.0,
        parameter_lower=0.0,
        ratio_lower=0.0 if finding.parameter_budget > 0.0 else None,
        log_wealth=None,
        p_value=None,
        looks=(),
        power=None,
        witness=None,
        severity=None,
        notes=(*((reason,) if reason else ()), *(note for note in finding.notes if note != reason)),
    )


def with_severity(finding: Finding, severity: Severity | None, game: PairGame) -> Finding:
    """The finding with the bound of its stage, or the least that a rejection says, in the place of the audit's own."""
    lower = just_above(game.claim.value) if severity is None else severity.parameter_lower
    changed: dict[str, Any] = {"severity": severity, "parameter_lower": lower}
    if len(game.uses) == 1:
        changed["epsilon_lower"] = game.epsilon_of(lower)
    if finding.parameter_budget > 0.0:
        changed["ratio_lower"] = lower / finding.parameter_budget
    return dataclasses.replace(finding, **changed)


def findings_of_pool(finding: Finding, members: Sequence[Pair], game: PairGame, subject_name: str) -> list[Finding]:
    """The findings of all pairs of a game from that of its first pair: the same but for names and inputs."""
    if len(members) == 1:
        return [finding]
    findings = []
    reading = (
        f"(Outputs are read less the location of x, in one game for {len(members)} pairs of the same shift; that this "
        "holds for each of them rests on what the mechanism says of itself.)"
    )
    for pair, failure in zip(members, game.failures, strict=True):
        names = named(pair)
        power = None if is_same_input(pair) else finding.power
        own = dataclasses.replace(finding, **names, pool=members[0].id, notes=_notes(pair, game), power=power)
        if own.witness is not None:
            description = f"{game.describe(*pair.said)} {reading}"
            own = dataclasses.replace(own, witness=dataclasses.replace(own.witness, description=description))
        # Of this pair there is nothing to compare, whatever the others do.
        if failure is not None and not game.is_broken:
            kept = ("budget", "parameter", "parameter_budget", "error_share", "verdict_share", "samples", "pool")
            message = broken_text(subject_name, failure)
            facts = {name: getattr(own, name) for name in kept}
            own = Finding(**names, **facts, verdict="error", message=message, traceback=failure.traceback)
        findings.append(own)
    return findings


def broken_text(subject_name: str, failure: Failure) -> str:
    """The message of a pair of which every call raised."""
    return f"{subject_name} must return outputs, got {failure.text}, on both inputs of the pair."


def change_sentence(change: Change, stands: bool = False) -> str:
    """Explanation for a pair whose outputs failed the exchangeability test; `stands` where its violation stands."""
    what = f"{change.what} ({p_text(change.p_value)})"
    seen = f"Draws depend on each other: of the outcomes on one input, in their order, {what}."
    return f"{seen} {STANDS if stands else NONE_GIVEN}"


def withhold_all(games: Sequence[PairGame]) -> None:
    """Give the change that one pair shows to all pairs: their calls depend on each other too."""
    change = next((game.change for game in games if game.change is not None), None)
    for game in games:
        game.change = game.change or change


def changes_of(games: Sequence[PairGame]) -> tuple[list[Change], int]:
    """The changes from call to call in these games, and the number of inputs that were tested for one."""
    return [game.change for game in games if game.change is not None], sum(len(game.inputs) for game in games)


def order_finding(changed: Sequence[Change], inputs: int, is_fixed: bool, sessions: int = 1) -> tuple[SideFinding, ...]:
    """The side finding "call_order" of an audit that looked at so many inputs, some of which changed; else none.

    `is_fixed`: whether it was fixed beforehand at how many outcomes it ends. `sessions`: how many have each looked at
    them, where what one has seen stays.
    """
    if not changed:
        return ()
    details = {"changed": len(changed), "of": inputs, "p_value": no_zero(changed[0].p_value)}
    asked = inputs + IN_SMALL_BATCHES
    rate = min(1.0, RATE * asked * sessions * (1 if is_fixed else ENDS))  # union bound
    summary = (
        f"The outcomes of the mechanism changed from draw to draw ({p_text(changed[0].p_value)}), so these are not "
        "independent. Pairs are inconclusive, unless they are violated whatever calls remember; their notes say more."
    )
    return (SideFinding("call_order", "found", summary, rate, details),)


def _notes(pair: Pair, game: PairGame) -> tuple[str, ...]:
    """The notes on a pair, beside its verdict."""
    stands = game.is_fair and game.is_violated
    notes = [SAME_INPUT] if is_same_input(pair) else []
    if notes and game.is_violated and game.change is None:
        notes.append(CONTROL_VIOLATED)
    if game.change is not None:
        is_earlier = not stands and game.change == game.earlier_change
        notes.append(change_sentence(game.change, stands) + (f" {EARLIER}" if is_earlier else ""))
    return (*notes, *(() if game.unseen else game.remarks))
