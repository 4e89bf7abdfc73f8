"""Severity of a violation: a bound on fresh draws, once the budget of a pair is rejected.

A sequential audit stops at the first proof, when its bound is hardly above the budget whatever the loss is. So the
violated pairs, the clearest first, have a stage of their own on streams that nothing else reads, for one exact test. It
takes at most half of the labelled draws that remain of `samples`, or 2,000 if half is fewer, or all if fewer than 2,000
remain. Its rule is learned from the outcomes that the audit has kept, so every draw of the stage counts.

Validity. The stage pays nothing from the error rate. Its rule and its size are functions of what the audit saw, so
given that, its draws are independent and of the pair's laws, and its test is exact. Let a be a pair's level. The audit
rejects "the parameter is at most the budget" at level a; the stage bounds the parameter at level a, from draws that are
independent of the audit's; and where the budget is rejected the bound that is reported is the stage's, or the budget
itself where that is larger, and never the audit's own. If the truth is at most the budget, a reported bound above it
needs the audit to be wrong: at most a, over all times and looks. If the truth is above the budget, what a rejection
says is true, and only the stage can be wrong: at most a, given whatever the audit saw. So P(the reported bound of a
pair exceeds its truth) is at most its level, in either case; levels sum to the error rate of the call. A violated pair
that might have had a stage, and has no bound of one, is reported to be just above its budget: the audit's own bound
would be a second chance to be wrong. Where draws of any pair depend on each other, no stage says anything. A claim with
a second bound, on epsilon, keeps that of the audit.
"""

from __future__ import annotations

import dataclasses

from dpaudit.audits.audit_run import AuditRun
from dpaudit.campaign.label_game import LabelGame
from dpaudit.errors import SubjectError
from dpaudit.inference.bound_search import just_above
from dpaudit.results.model import Severity
from dpaudit.running.streams import SEVERITY_COINS, SEVERITY_DRAWS, stream


@dataclasses.dataclass(frozen=True)
class SeveritySizes:
    """Sizes of a stage."""

    max_share: float = 0.5  # of the labelled draws that remain, at most, where they are enough for `min_labelled`
    # Labelled draws: bounds of a loss of 2 under a claim of 1 are 1.7 to 1.8 on average from 2,000, 1.9 from 50,000.
    min_labelled: int = 2_000
    min_rest: int = 50  # labelled draws that remain, without which there is no stage: 50 of 50 right say a loss of 2.8
    # The labelled draws of the stage over those of the verdict, where it is not asked for: of a loss of 1.2 under a
    # claim of 1 the bound is 1.13 on average from as many, 1.17 from four times as many.
    times_of_verdict: int = 4
    hint_factor: float = 5.0  # a hint of the stage calls for more batches in about 1% of audits, the audit's own in 5%
    min_batch: int = 5  # outputs of a batch: fewer show little of what they share
    max_batches: int = 64  # about: twice as many as `inference.order` asks for


SIZES = SeveritySizes()


def draws_of(labelled: int, samples: int, is_asked: bool) -> int:
    """Draws of each input for the stage of a pair that took `labelled` labelled draws; 0 where too few remain.

    An audit may take `samples` draws of each input. A stage that is asked for takes all that the module allows.

    Examples
    --------
    >>> draws_of(200, 100_000, False), draws_of(5_000, 100_000, False), draws_of(200, 100_000, True)
    (1000, 10000, 49950)
    >>> draws_of(200, 700, False), draws_of(1_990, 1_000, False)
    (600, 0)
    """
    left = 2 * samples - labelled
    if left < SIZES.min_rest:
        return 0
    most = min(max(int(SIZES.max_share * left), SIZES.min_labelled), left)
    return (most if is_asked else min(most, max(SIZES.min_labelled, SIZES.times_of_verdict * labelled))) // 2


def batch_of(draws: int) -> int:
    """Outputs of a batch of a stage of so many draws, at most: so few that batches are many."""
    return max(SIZES.min_batch, draws // SIZES.max_batches)


def examine(run: AuditRun, k: int, draws: int) -> tuple[Severity | None, int]:
    """The bound of the violated game `k` on so many fresh draws of each input, and the runs that it took.

    There is no bound where calls raise or draws depend on each other, which the game notes. A subject that draws
    batches is asked for small ones, in which noise that is drawn once a batch shows; where it does so less than
    clearly, the game has the hint.
    """
    assert run.shown is not None
    game, place = run.games[k], run.groups[k][0]
    pair, claim = run.pairs[place], run.claims[place]
    first, second = 2 * place, 2 * place + 1
    stage = LabelGame(
        [claim],
        [(first, second)],
        samples=draws,
        error_rate=game.level,
        mode="fixed",
        draw=run.worker_pool.drawer(run.subject, {first: pair.x, second: pair.x_prime}, run.root, SEVERITY_DRAWS),
        coin=lambda round_, _: stream(run.root, SEVERITY_COINS, place, round_),
        calls=not run.subject.is_vectorised,
        largest_batch=batch_of(draws),
    )
    (played,) = stage.pairs
    try:
        stage.start_after(dict(zip((first, second), run.shown(game), strict=True)))
        stage.play()
    except SubjectError:  # what is proven stays proven
        game.change = played.change
        return None, stage.runs
    game.hint, game.change = min(game.hint, SIZES.hint_factor * played.hint), played.change
    if played.change is not None or played.is_broken:
        return None, stage.runs
    return Severity(stage.labelled(played), max(played.main.lower, just_above(claim.value))), stage.runs
