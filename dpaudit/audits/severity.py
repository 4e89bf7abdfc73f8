"""How bad a violation is: a bound on fresh draws, once the budget of a pair is rejected.

A sequential audit stops at the first proof, when its bound is hardly above the budget whatever the loss is. So the
violated pairs, the clearest first, have a stage of their own: as many labelled draws again, on streams that nothing
else reads, for one exact test.

Validity. The stage pays nothing from the error rate. Let a be a pair's level. The audit rejects "the parameter is at
most the budget" at level a; the stage bounds the parameter at level a, from draws that are independent of the audit's;
and where the budget is rejected the bound that is reported is the stage's, or the budget itself where that is larger,
and never the audit's own. If the truth is at most the budget, a reported bound above it needs the audit to be wrong: at
most a, over all times and looks. If the truth is above the budget, what a rejection says is true, and only the stage
can be wrong: at most a, given whatever the audit saw. So P(the reported bound of a pair exceeds its truth) is at most
its level, in either case; levels sum to the error rate of the call. A violated pair that might have had a stage, and
has no bound of one, is reported to be just above its budget: the audit's own bound would be a second chance to be
wrong. Where draws of any pair depend on each other, no stage says anything. A claim with a second bound, on epsilon,
keeps that of the audit.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dpaudit.campaign.label_game import LabelGame
from dpaudit.errors import SubjectError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.pairs import Pair
from dpaudit.results.model import Finding, Severity
from dpaudit.running.draws import Crew, Drawer
from dpaudit.running.streams import SEVERITY_COINS, SEVERITY_DRAWS, stream
from dpaudit.subjects.callables import Subject
from dpaudit.testing.hockey_stick import just_above
from dpaudit.testing.order import Change
from dpaudit.testing.pair_game import PairGame

MOST_EXAMINED = 8  # violated pairs: each may take as many draws again as the audit took of it
# Labelled draws at least: of a subject that draws batches, which are cheap, and of one that is called once a draw.
LEAST_DRAWS = {True: 1_000, False: 200}
SMALL_BATCH, MOST_BATCHES = 16, 64  # outputs of a batch of the stage, at least, and about so many batches at most


def draws_of(labelled: int, samples: int, is_vectorised: bool) -> int:
    """Draws of each input for the stage of a pair that took so many labelled draws, of an audit of `samples`."""
    return min(max(labelled, LEAST_DRAWS[is_vectorised]) // 2, samples)


def examine(
    pair: Pair, claim: Claim, game: PairGame, place: int, *, subject: Subject, draws: int, seed: int, crew: Crew
) -> tuple[Severity | None, Change | None, int]:
    """The bound of one violated pair on fresh draws, what says that these depend on each other, and the runs.

    There is no bound where calls raise or draws depend on each other. A subject that draws batches is asked for small
    ones, in which noise that is drawn once a batch shows. `place` is the pair's position among those that the audit
    asked: it names the streams.
    """
    data = {2 * place: pair.x, 2 * place + 1: pair.x_prime}
    stage = LabelGame(
        [claim],
        [(2 * place, 2 * place + 1)],
        samples=draws,
        error_rate=game.level,
        mode="fixed",
        draw=Drawer(subject, data, seed, SEVERITY_DRAWS, crew),
        coin=lambda round_, _: stream(seed, SEVERITY_COINS, place, round_),
        calls=not subject.is_vectorised,
        largest_batch=max(SMALL_BATCH, draws // MOST_BATCHES),
    )
    try:
        stage.start()
        stage.play()
    except SubjectError:  # what is proven stays proven
        return None, stage.pairs[0].change, stage.runs
    (played,) = stage.pairs
    if played.change is not None or played.is_broken:
        return None, played.change, stage.runs
    lower = max(played.main.lower, just_above(claim.value))
    return Severity(stage.labelled(played), lower), None, stage.runs


def with_severity(finding: Finding, severity: Severity | None, game: PairGame) -> Finding:
    """The finding with the bound of its stage, or the least that a rejection says, in the place of the audit's own."""
    lower = just_above(game.claim.value) if severity is None else severity.parameter_lower
    changed: dict[str, Any] = {"severity": severity, "parameter_lower": lower}
    if len(game.uses) == 1:  # the parameter is epsilon at the claim's delta
        changed["epsilon_lower"] = lower
    if finding.parameter_budget > 0.0:
        changed["ratio_lower"] = lower / finding.parameter_budget
    return dataclasses.replace(finding, **changed)
