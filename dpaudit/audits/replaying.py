"""Replay: a saved witness, unchanged, on fresh draws of the pair it was found on.

The rule is a frozen predictor with what it predicted of its bins (`dpaudit.inference.witness`), or one on low bits
(`dpaudit.inference.low_bit_rules`). It was fixed before these draws, whoever wrote it, so the exact test of guesses by
its bins (for Renyi families, one round of bets on them) holds at the full level for the one pair: no search, no
division of the error rate, which for low bits is that of their check. Witnesses of earlier versions are refused: a new
audit finds its own.

A witness of a pool (`dpaudit.inference.pools`) is asked of its one pair alone, on outputs read less the location of x
as in the audit. So a replay does not rest on what the mechanism says of itself: where it is no translation family, it
tells which pairs of a pool break the claim.

The test of a witness supposes that draws are independent of each other. Where the order of their outcomes tells that
they are not (`dpaudit.inference.order`), or noise is kept (`dpaudit.audits.memory_checks`), nothing is confirmed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

from dpaudit.arguments import RngLike, check_options, seed_from, with_near_names
from dpaudit.audits.findings import change_sentence
from dpaudit.audits.low_bits import Candidate, LowBitTest
from dpaudit.audits.memory_checks import why_one_draw
from dpaudit.campaign.witness_game import Asked, WitnessGame
from dpaudit.errors import MechanismTraceback, SubjectError, UsageError
from dpaudit.features.density import Hints
from dpaudit.inference.betting import Betting
from dpaudit.inference.exact import CellTest, ExactTest
from dpaudit.inference.failures import common_failure
from dpaudit.inference.guess_rules import GuessRule
from dpaudit.inference.low_bit_rules import VERSION, LowBitRule
from dpaudit.inference.order import in_small_batches
from dpaudit.inference.pools import Member, hints_of
from dpaudit.inference.tasks import FIRST_DRAWS, Drawer
from dpaudit.inference.witness import is_current, rule_from_record
from dpaudit.learning.partition import cell_score_from_dict
from dpaudit.privacy.claims import Budget, Claim
from dpaudit.privacy.pairs import Pair, short_form
from dpaudit.privacy.renyi_lines import as_lines
from dpaudit.results.model import AuditResult, Finding, FloatingPointPair
from dpaudit.results.saved_inputs import is_digest, is_redacted
from dpaudit.running.streams import (
    BATCH_REPLAY_DRAWS,
    FLOAT_REPLAY_COINS,
    FLOAT_REPLAY_DRAWS,
    REPLAY_COINS,
    REPLAY_DRAWS,
    root_of,
    stream,
)
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.fresh import subject_of
from dpaudit.subjects.isolation import as_audited
from dpaudit.subjects.protocol import location_of, says_so

_Entry = TypeVar("_Entry", Finding, FloatingPointPair)


@dataclasses.dataclass(frozen=True)
class Replay:
    """Result of a saved witness on fresh draws.

    `confirmed` says that the claim is rejected on these draws alone at level 1 - confidence; `parameter_lower` is the
    lower bound on the claim's parameter that they give. `pool` is that of the finding. `dependence` says in words that
    the draws depend on each other: then nothing is confirmed, and the bound is 0.
    """

    pair: str
    claim: str
    description: str
    correct: int
    wrong: int
    abstained: int
    parameter: str
    parameter_budget: float
    parameter_lower: float
    confidence: float
    seed: int
    confirmed: bool
    pool: str | None = None
    dependence: str = ""


@dataclasses.dataclass(frozen=True)
class FloatingPointReplay:
    """Result of a saved rule on low bits on fresh draws.

    `confirmed` says that the doubles break the pair's budget (epsilon, delta) at level 1 - confidence on these draws
    alone; `epsilon_lower` is the lower bound that they give, in nats, `description` the rule with its counts on them.
    """

    pair: str
    description: str
    correct: int
    wrong: int
    abstained: int
    budget: Budget
    epsilon_lower: float
    p_value: float
    confidence: float
    seed: int
    confirmed: bool


@with_near_names
def replay(
    result: AuditResult,
    mechanism: Any,
    claim: Claim,
    *,
    pair: str | None = None,
    inputs: Pair | None = None,
    samples: int | None = None,
    seed: int | None = None,
    rng: RngLike = None,
) -> Replay:
    """Run one finding's witness again, on fresh draws.

    Parameters
    ----------
    result : AuditResult
        Of `dpaudit.load`.
    mechanism : object or callable
        The subject that was audited.
    claim : Claim
        The claim that was audited.
    pair : str, optional
        The id of the pair; the worst one by default.
    inputs : Pair, optional
        Its two inputs; those saved in the result by default, where it holds them: a file holds numbers, texts, None,
        and lists, tuples, sets, dictionaries and arrays of them.
    samples : int, optional
        About this many runs on each input, at least 10; by default as many as the finding took.
    seed, rng
        As for `dpaudit.audit`.

    Raises
    ------
    UsageError
        If the result is redacted, or has no such pair, or none with a witness; it was saved and does not hold the
        inputs, but a printed form or a digest; or the pair was in a pool and the mechanism does not say where its
        outputs lie.
    """
    root = _checked(result, samples, seed_from(seed, rng))
    known = [finding for finding in result.ranked() if finding.witness is not None]
    if not known:
        raise UsageError("result must hold a finding with a witness, got none.")
    finding, inputs = _picked(result, known, pair, "a finding with a witness", inputs)
    assert finding.witness is not None
    subject, data = subject_again(mechanism, result), (inputs.x, inputs.x_prime)
    draws = 2 * (samples if samples is not None else max(finding.samples // 2, 1_000))
    member = _read_as(subject, inputs) if finding.pool is not None else Member((0, 1))
    pair_claim = subject.neighbouring(claim).for_pair(*data)
    rule, level = finding.witness.rule, 1.0 - result.confidence
    if result.universe is not None and "score" in rule:  # saved once for all its rules
        rule = {**rule, "score": {**rule["score"], "partition": result.universe.partition}}
    hints = hints_of(member, data, subject.log_density if subject.has_log_density else None)
    game = _game(pair_claim, rule, draws, level, hints)
    asked = Asked(game, level, draws, stream(root, REPLAY_COINS), move=member.move)
    moved: dict[int, bool] = {}
    campaign = _played(asked, WorkerPool().drawer(subject, data, root, REPLAY_DRAWS, moved))
    for i in filter(moved.get, moved):
        subject.history.note_moved(data[i])
    firsts = {i: first for i in (0, 1) if (first := campaign.draws.first(i)) is not None}
    failure = common_failure([first.rows(slice(0, FIRST_DRAWS)) for first in firsts.values()])
    change = campaign.draws.change(0) or campaign.draws.change(1)
    if change is None and subject.is_vectorised:
        in_batches = WorkerPool().drawer(subject, data, root, BATCH_REPLAY_DRAWS)
        score = game.score if member.move is None else None
        change, _ = in_small_batches(in_batches, draws // 2, None, True, score)
    dependence = why_one_draw(subject, root, firsts, data, moved)[0] if change is None else change_sentence(change)
    if failure is not None:
        text = f"{subject.name} must return outputs, got {failure.text}. Are these the inputs of the audit?"
        raise SubjectError(subject.with_passed(text)) from MechanismTraceback.of(failure.traceback)
    return Replay(
        finding.id,
        str(pair_claim),
        finding.witness.description,
        *game.counts,
        parameter=pair_claim.parameter,
        parameter_budget=pair_claim.value,
        parameter_lower=0.0 if dependence else game.lower,
        confidence=result.confidence,
        seed=root,
        confirmed=not dependence and game.lower > pair_claim.value,
        pool=finding.pool,
        dependence=dependence,
    )


@with_near_names
def replay_floating_point(
    result: AuditResult,
    mechanism: Any,
    *,
    pair: str | None = None,
    inputs: Pair | None = None,
    samples: int | None = None,
    seed: int | None = None,
    rng: RngLike = None,
) -> FloatingPointReplay:
    """Run the floating-point witness of one pair again, on fresh draws.

    Parameters
    ----------
    result : AuditResult
        Whose floating-point finding leaks, of `dpaudit.load` or fresh.
    mechanism, inputs, seed, rng
        As for `replay`.
    pair : str, optional
        The id of a pair that leaks; the worst one by default.
    samples : int, optional
        About this many runs on each input, at least 10; by default as many as the check tested its rule on.

    Raises
    ------
    UsageError
        If the result is redacted, or has no such pair, no witness for it, or not its inputs.
    SubjectError
        If the subject breaks.

    Examples
    --------
    >>> import dpaudit
    >>> def release(data, size, rng):
    ...     return data + rng.laplace(size=size)
    >>> result = dpaudit.audit(release, "eps=1", [(0.0, 1.0)], samples=5_000, seed=7)
    >>> replay_floating_point(result, release, seed=8).confirmed
    True
    """
    root = _checked(result, samples, seed_from(seed, rng))
    examined = result.floating_point.pairs if result.floating_point is not None else ()
    leaks = [entry for entry in examined if entry.verdict == "leaks"]
    known = [entry for entry in leaks if entry.rule is not None]
    if not known:
        given = "one of a version that saved none" if leaks else "one whose low bits do not leak"
        raise UsageError(f"result must hold a floating-point witness, got {given}.")
    found, inputs = _picked(result, known, pair, "a pair whose low bits leak", inputs)
    assert result.floating_point is not None and found.rule is not None
    if (version := found.rule.get("version", 1)) != VERSION:
        raise UsageError(
            f"witness must be a rule on low bits of version {VERSION}, got one of version {version}. "
            "Run the audit again: it finds a new rule and tests it."
        )
    try:
        rule = LowBitRule.from_dict(found.rule, inputs.x, inputs.x_prime)
    except (IndexError, KeyError, OverflowError, TypeError, ValueError, ZeroDivisionError) as error:
        raise UsageError(f"witness must be one that this version can read, got {error!r}.") from error
    subject, data = subject_again(mechanism, result), (inputs.x, inputs.x_prime)
    candidate = Candidate(Pair(*data, found.id, found.x_id, found.x_prime_id), (0, 1), found.budget, 0)
    level = result.floating_point.error_rate
    labelled = 2 * samples if samples is not None else found.correct + found.wrong + found.abstained
    test = LowBitTest(candidate, labelled, rule)
    asked = Asked(test, level, labelled, stream(root, FLOAT_REPLAY_COINS))
    _played(asked, WorkerPool().drawer(subject, data, root, FLOAT_REPLAY_DRAWS))
    again = test.found()
    names = ("description", "correct", "wrong", "abstained", "budget", "epsilon_lower", "p_value")
    figures: dict[str, Any] = {name: getattr(again, name) for name in names}
    about: dict[str, Any] = {"confidence": 1.0 - level, "seed": root, "confirmed": again.verdict == "leaks"}
    return FloatingPointReplay(found.id, **figures, **about)


def _played(asked: Asked, drawer: Drawer) -> WitnessGame:
    """The game of a rule that was fixed before, once its draws are counted."""
    game = WitnessGame.of_one(asked, drawer)
    game.start()
    game.round()
    return game


def subject_again(mechanism: Any, result: AuditResult) -> Subject:
    """The subject of a result, called as it was called then."""
    subject = as_audited(subject_of(mechanism, result.subject), result.options)
    is_one_call = result.subject.get("interface", "").endswith("one call a draw")
    return dataclasses.replace(subject, one_by_one=True) if is_one_call else subject


def _checked(result: AuditResult, samples: int | None, seed: int | None) -> int:
    """The seed; `UsageError` if an argument makes no sense, or the rules and inputs of the result were taken out."""
    if samples is not None:
        check_options(samples=samples)
    if any(is_redacted(finding.x) for finding in result.findings):
        raise UsageError("result must hold its rules and inputs, got a redacted one. Replay the file it was made of.")
    return root_of(seed)


def _picked(
    result: AuditResult, known: Sequence[_Entry], pair: str | None, what: str, inputs: Pair | None
) -> tuple[_Entry, Pair]:
    """The entry of this id, the first one without an id; and the inputs of its pair, as given or as saved."""
    found = next((entry for entry in known if pair is None or entry.id == pair), None)
    if found is None:
        raise UsageError(f"pair must be the id of {what}, such as {known[0].id!r}, got {pair!r}.")
    if inputs is not None:
        return found, inputs
    finding = next((finding for finding in result.findings if finding.id == found.id), None)
    if finding is None:  # a large table keeps only some of them
        raise UsageError(f"inputs of {found.id!r} must be given: the result does not hold them.")
    return found, saved_inputs(result, finding)


def saved_inputs(result: AuditResult, finding: Finding) -> Pair:
    """The pair of a finding of a saved result; `UsageError` if the file does not hold its inputs as they were."""
    given = result.options.get("pairs", "module:function")
    for name in ("x", "x_prime"):
        missing = why_not_held(finding, name)
        if missing:
            raise UsageError(
                f"inputs of {finding.id!r} must be given, got a result that does not hold them: of {name} {missing}. "
                f"Give them with --pairs {given}, or from Python with inputs=Pair(x, x_prime)."
            )
    return Pair(finding.x, finding.x_prime, finding.id, finding.x_id, finding.x_prime_id)


def why_not_held(finding: Finding, name: str, saved: bool = False) -> str:
    """Clause on what a saved result keeps in the place of an input ("x" or "x_prime"); empty if it is the input.

    With `saved`, of a finding at hand, what a file that it is saved to keeps.
    """
    if saved:
        finding = Finding.from_dict(finding.to_dict())
    value = getattr(finding, name)
    if is_digest(value):
        return "it keeps only the digest"
    return f"it keeps only the printed form, {short_form(value)}" if name in finding.printed else ""


def _read_as(subject: Subject, inputs: Pair) -> Member:
    """Member of a pool, as which outputs of its pair are read."""
    x, x_prime = (location_of(subject.mechanism, value) for value in (inputs.x, inputs.x_prime))
    if not says_so(subject.mechanism) or x is None or x_prime is None or x.shape != x_prime.shape:
        raise UsageError(
            f"mechanism must say that it is a translation family (translation_family = True) to replay {inputs.id!r}, "
            f"which was asked in a pool, got {subject.name}, which does not say so for these inputs."
        )
    return Member((0, 1), x, x_prime - x)


def _game(claim: Claim, record: dict[str, Any], draws: int, level: float, hints: Hints) -> Betting | ExactTest:
    """The test of a saved rule; `UsageError` where it cannot be read."""
    try:
        if is_current(record) and "score" in record:
            # A table's rule of a Renyi promise is for the lines that it implies.
            cells = cell_score_from_dict(record["score"])
            return CellTest(as_lines(claim), draws, cells, float(record["anchor"]))
        mixture, predicted = rule_from_record(record, hints.log_ratio)
        if claim.family == "renyi":
            return Betting.frozen(claim, draws, mixture, predicted)
        rule = GuessRule.from_dict(record["rule"]) if "rule" in record else None
        test = ExactTest.frozen(claim, draws, mixture, predicted)
        test.guess(level, rule)
        return test
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        given = str(error) if isinstance(error, ValueError) else repr(error)
        raise UsageError(f"witness must be one that this version can read, got {given}.") from error
