"""The audit of scores: a design, a claim and one error rate, to a result.

How the error rate 1 - confidence is spent:

* one run, paired: all of it on one stated number of guesses, or divided evenly among the
  rules of the short list. Every bound of a rule follows from its one record (`dpaudit.scores.one_run`). Beside these
  bounds stand those that hold if canaries are answered independently (`dpaudit.scores.independent`), with the whole
  error rate for themselves: the verdict rests on one of the two, as the caller said beforehand.
* many runs, sequential: four fifths on the bets against the claim's parameter, one fifth on the band, which bounds
  epsilon at delta and the trade-off function, and also the parameter. The parameter's bound is the better of the two.
  Where the number of runs was fixed, the order of the scores is drawn at random: given the scores, independent runs
  have every order alike, so it costs nothing, and a file need not be in the order of the runs. A sequential audit takes
  the scores as they came, bets that hold at any time, and a band at each of its looks.
  Coins and the random order are of the seed, the same at every look and in every call: a new one would be a second
  attempt.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.arguments import RngLike, check_among, check_options, seed_from, whole_number, with_near_names
from dpaudit.environment import environment
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, FloatArray, GaussianDP
from dpaudit.privacy.neighbours import NeighbourClaim
from dpaudit.privacy.parsing import as_claim
from dpaudit.results.trade_off import TradeOffPoint
from dpaudit.running.store import Store
from dpaudit.running.streams import stream
from dpaudit.scores import ledger
from dpaudit.scores.bands import Bands, anytime_bands, band
from dpaudit.scores.bets import ScoreBets, labelled, perfect_lower
from dpaudit.scores.dependence import dependence_p_value
from dpaudit.scores.designs import (
    ASSUMPTIONS,
    BETTED,
    CHOSEN,
    EVERY_SESSION,
    INDEPENDENT,
    check_design,
    check_scores,
    claim_of_change,
    notes_on,
)
from dpaudit.scores.guesses import RankedLabels, Record, Rule, looks_chosen, ordered, ordered_pairs
from dpaudit.scores.independent import independent_bound
from dpaudit.scores.profile_bounds import (
    CLAIM_GRID,
    RENYI_DELTAS,
    TYPE_ONE,
    ProfileBound,
    check_claim,
    largest_value,
    parameter_lower,
    trade_off_of_lines,
    values_rejected,
)
from dpaudit.scores.reading import as_scores
from dpaudit.scores.result import ASSUME, GuessRecord, ScoresResult

BETS_SHARE = 0.8  # of the error rate, of many runs; the rest is the band's


@with_near_names
def audit_scores(
    scores_in: Any,
    scores_out: Any,
    claim: Claim | str,
    design: str = "one-run",
    confidence: float = 0.95,
    seed: int | None = None,
    rng: RngLike = None,
    guesses: int | None = None,
    store: str | os.PathLike[str] | None = None,
    name: str | None = None,
    assume: str = "nothing",
) -> ScoresResult:
    """Audit a training run, or many, from the scores that an attack gave to canaries.

    Parameters
    ----------
    scores_in, scores_out : array_like of float, or path
        Scores of canaries that were in the training set, and of those that were not. A score may be anything that an
        attack makes of the output and the canary: a loss with its sign changed, a log-likelihood ratio, the projection
        of updates on a canary's gradient. In one run larger ones must
        speak for "in"; bets learn the direction. Paths end in .csv, .txt, .npy, .npz, .json or .parquet (extra `data`);
        `FILE:NAME` names a column.
    claim : Claim or str
        As for `dpaudit.audit`: `eps=8,delta=1e-5`, `mu=1`, `rho=0.5`. One budget for every canary. Where it states
        its relation (`eps=8,adjacency=add_remove`), a pair's coin is so many steps of it, as two of add_remove.
    design : {"one-run", "many-runs", "sequential", "paired"}
        How the scores came about (`dpaudit.scores.designs.ASSUMPTIONS`).
    confidence : float
        In (0, 1), for the whole result: the verdict and all bounds.
    seed : int, optional
        Of the random order of runs and of ties, and of the coins; 0 by default. The same scores give the same result:
        another seed, chosen once the result is known, would be a second attempt at the same error rate.
    rng : int or Generator or SeedSequence, optional
        In place of `seed`: a seed is taken from it, and recorded.
    guesses : int, optional
        One run: how many canaries to guess on, decided without looking at the scores. By default four
        numbers share the error rate.
    store : path, optional
        An evidence store, made where there is none; with the design "sequential" alone. Scores go on where those of
        earlier calls with the same name and claim stopped, and the result is of all of them: either files that have
        grown, or new scores alone. Scores that were counted before are not counted again
        (`dpaudit.scores.ledger`). Confidence and seed are those of the first call; `confidence` is for all calls.
    name : str, optional
        With a store: what the scores are of, such as the training and the attack.
    assume : {"nothing", "independent"}
        One run and pairs: the bound that the verdict rests on, said before the scores are seen. "independent" supposes
        that canaries are answered independently; where the test of that has refuted it, the verdict rests on the bound
        without. The result has both bounds either way.

    Returns
    -------
    ScoresResult

    Raises
    ------
    UsageError
        If an argument makes no sense, or the scores cannot be of the design.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(7)
    >>> is_in = rng.integers(0, 2, 1000) == 1
    >>> scores = rng.normal(size=1000) + 4.0 * is_in
    >>> result = audit_scores(scores[is_in], scores[~is_in], claim="eps=1,delta=1e-5", design="one-run", seed=7)
    >>> result.verdict, bool(result.epsilon_lower > 1.0)
    ('violated', True)
    """
    seed = seed_from(seed, rng)
    check_options(confidence=confidence, seed=seed)
    check_design(design)
    stated = as_claim(claim)
    promise = claim_of_change(stated, design)
    check_claim(promise)
    if scores_in is scores_out or (isinstance(scores_in, str | os.PathLike) and scores_in == scores_out):
        named = f": {os.fspath(scores_in)}" if isinstance(scores_in, str | os.PathLike) else ""
        raise UsageError(f"scores_out must be other scores than scores_in, got the same{named}.")
    kept_in, kept_out = (
        as_scores(side, given, may_be_empty=store is not None)  # of new scores one side may have none
        for side, given in (("scores_in", scores_in), ("scores_out", scores_out))
    )
    check_among("assume", assume, ASSUME)
    if assume != "nothing" and design in BETTED:
        raise UsageError(f"assume must go with one run or pairs, got {assume!r} with {design!r}, whose runs are apart.")
    if guesses is not None and design in BETTED:
        raise UsageError(f"guesses must be of one run, got {guesses!r} with design {design!r}.")
    if store is None and name is not None:
        raise UsageError(f"name must go with a store, got {name!r} without one.")
    if store is not None:
        if design != "sequential":
            raise UsageError(f"design must be 'sequential' with a store, got {design!r}.")
        if not isinstance(store, str | os.PathLike) or not os.fspath(store):
            raise UsageError(f"store must be the path of a file, got {store!r}.")
        if not name:
            raise UsageError("name must be given with a store: evidence is kept by name and claim.")
        with Store.at(store) as opened:
            return _audit_ledger(opened, name, kept_in, kept_out, promise, confidence, seed)
    result = _audited(kept_in, kept_out, promise, design, confidence, 0 if seed is None else int(seed), guesses, assume)
    if isinstance(stated, NeighbourClaim) and promise != stated.claim:
        note = f"One coin is more than one step of adjacency={stated.adjacency}: the claim is {promise} for it."
        return dataclasses.replace(result, notes=(note, *result.notes))
    return result


def _audit_ledger(
    store: Store,
    name: str,
    scores_in: FloatArray,
    scores_out: FloatArray,
    claim: Claim,
    confidence: float,
    seed: int | None,
) -> ScoresResult:
    """Add scores to their ledger, audit all that it has, and note what that said."""
    kept, new = ledger.enter(store, name, claim, scores_in, scores_out, confidence, seed, _check_order)
    result = _audited(*kept.scores, claim, "sequential", confidence, kept.seed)
    ledger.note_look(store, kept, result.log_wealth, result.parameter_lower, result.verdict == "violated")
    sessions = len(kept.current)
    added = "all of these scores were counted before, and are not counted again"
    if sum(new):
        added = f"{new[0]:,} scores in and {new[1]:,} out are new"
    said = f"Evidence of {sessions} {'session' if sessions == 1 else 'sessions'} in the store; {added}."
    return dataclasses.replace(result, assumptions=(*result.assumptions, EVERY_SESSION), notes=(said, *result.notes))


def _check_order(scores_in: FloatArray, scores_out: FloatArray, seed: int) -> None:
    """Check the scores of a sequential audit as `_audited` does, with the same coins for ties."""
    check_scores(scores_in, scores_out, "sequential", stream(seed, 1))


def _audited(
    kept_in: FloatArray,
    kept_out: FloatArray,
    promise: Claim,
    design: str,
    confidence: float,
    root: int,
    guesses: int | None = None,
    assume: str = "nothing",
) -> ScoresResult:
    started = time.perf_counter()
    rng = stream(root, 0)
    check_scores(kept_in, kept_out, design, stream(root, 1))
    level = 1.0 - confidence
    if design in BETTED:
        found = _many_runs(kept_in, kept_out, promise, level, rng, in_order=design == "sequential")
    else:
        found = _one_run(kept_in, kept_out, promise, level, rng, guesses, design == "paired", root)
    notes = notes_on(kept_in, kept_out, design) + found.pop("notes", ())
    if found["independent"] is not None:
        notes += found["independent"].notes(assume)
    return ScoresResult(
        claim=str(promise),
        parameter=promise.parameter,
        budget=promise.value,
        delta=promise.report_delta,
        design=design,
        confidence=confidence,
        seed=root,
        scores_in=len(kept_in),
        scores_out=len(kept_out),
        assumptions=ASSUMPTIONS[design] + ((INDEPENDENT,) if assume == "independent" else ()),
        notes=notes,
        assume=assume,
        seconds=time.perf_counter() - started,
        environment=environment(),
        **found,
    )


def _one_run(
    scores_in: FloatArray,
    scores_out: FloatArray,
    claim: Claim,
    level: float,
    rng: np.random.Generator,
    guesses: int | None,
    in_pairs: bool,
    seed: int,
) -> dict[str, Any]:
    found = order_of_one_run(scores_in, scores_out, rng, in_pairs)
    with np.errstate(invalid="ignore"):
        groups = (scores_in - scores_out,) if in_pairs else (scores_in, scores_out)
    p_value = dependence_p_value(groups, stream(seed, 2))
    records = records_of(found, level, guesses)
    bound = ProfileBound(tuple(record.delta for record in records))
    perfect = [record.perfect() for record in records]
    perfect_bound = ProfileBound(tuple(record.delta for record in perfect))
    return {
        "epsilon_lower": bound.epsilon(claim.report_delta),
        "parameter_lower": records_lower(claim, records, bound),
        "ceiling": perfect_bound.epsilon(claim.report_delta),
        "parameter_ceiling": records_lower(claim, perfect, perfect_bound),
        "trade_off": _points(claim, bound.trade_off_upper(TYPE_ONE), None),
        "guesses": tuple(
            GuessRecord(one.rule.describe(), one.rule.guesses, one.correct, one.canaries, one.level / level)
            for one in records
        ),
        "decided_after": None,
        "log_wealth": None,
        "notes": (CHOSEN,) if guesses is not None and looks_chosen(found, records[0].rule) else (),
        "independent": independent_bound(found, claim, level, p_value, guesses, seed),
    }


def order_of_one_run(
    scores_in: FloatArray, scores_out: FloatArray, rng: np.random.Generator, in_pairs: bool = False
) -> RankedLabels:
    """Canaries, or pairs, in the order of their scores; equal ones in an order that is drawn."""
    if in_pairs:
        places = rng.permutation(len(scores_in))
        return ordered_pairs(scores_in[places], scores_out[places], rng)
    labels = np.repeat((1, 0), (len(scores_in), len(scores_out)))
    places = rng.permutation(len(labels))
    return ordered(np.concatenate([scores_in, scores_out])[places], labels[places], rng)


def records_of(found: RankedLabels, level: float, guesses: int | None = None) -> list[Record]:
    """Records of the guesses, whose levels sum to `level`.

    Validity: the numbers of guesses are fixed by the number of canaries alone, or stated.
    """
    count = len(found)
    if guesses is None:
        rules = found.rules()
    else:
        whole_number("guesses", guesses, f"an integer from 1 to the number of canaries, {count}", 1)
        if guesses > count:
            raise UsageError(f"guesses must be an integer from 1 to the number of canaries, {count}, got {guesses}.")
        rules = [Rule(guesses, found.in_pairs)]
    return found.records(rules, level)


def records_lower(claim: Claim, records: Sequence[Record], bound: ProfileBound) -> float:
    """The bound on the claim's parameter; for a Gaussian claim the recursion over thresholds serves too."""
    if isinstance(claim, ApproxDP):
        return bound.epsilon(claim.delta)
    return largest_value(lambda values: records_reject(claim, records, values, bound), claim.value)


def records_reject(
    claim: Claim, records: Sequence[Record], values: FloatArray, bound: ProfileBound | None = None
) -> NDArray[np.bool_]:
    """Tell whether records reject each value of the claim's parameter."""
    bound = bound or ProfileBound(tuple(record.delta for record in records))
    if isinstance(claim, ApproxDP):
        return np.asarray(values < bound.epsilon(claim.delta))
    rejected = values_rejected(claim, bound, values)
    if isinstance(claim, GaussianDP):
        for record in records:
            rejected = rejected | record.gaussian_rejected(values)
    return rejected


def _many_runs(
    scores_in: FloatArray,
    scores_out: FloatArray,
    claim: Claim,
    level: float,
    rng: np.random.Generator,
    in_order: bool,
) -> dict[str, Any]:
    bets_level = BETS_SHARE * level
    if not in_order:
        scores_in, scores_out = rng.permutation(scores_in), rng.permutation(scores_out)

    def limits_of(side_in: FloatArray, side_out: FloatArray) -> Bands:
        if in_order:
            return anytime_bands(side_in, side_out, level - bets_level)
        return Bands((band(side_in, side_out, level - bets_level),))

    bets = ScoreBets(*labelled(scores_in, scores_out, rng), claim)
    limits = limits_of(scores_in, scores_out)
    bound = limits.profile_bound()
    from_bets = bets.lower(bets_level)
    from_band = parameter_lower(claim, bound)
    perfect = limits_of(np.ones(len(scores_in)), np.zeros(len(scores_out))).profile_bound()
    perfect_bets = perfect_lower(claim, len(scores_in), len(scores_out), bets_level, rng)
    is_epsilon = isinstance(claim, ApproxDP)  # its parameter is epsilon at its delta
    parameter = max(from_bets, from_band)
    ceiling = max(perfect_bets, parameter_lower(claim, perfect), parameter)
    epsilon, epsilon_ceiling = bound.epsilon(claim.report_delta), perfect.epsilon(claim.report_delta)
    return {
        "epsilon_lower": parameter if is_epsilon else epsilon,
        "parameter_lower": parameter,
        "ceiling": ceiling if is_epsilon else epsilon_ceiling,
        "parameter_ceiling": ceiling,
        "trade_off": _points(claim, limits.upper(TYPE_ONE), limits.thresholds_lower(TYPE_ONE)),
        "guesses": (),
        "decided_after": bets.decided_at(bets_level),
        "log_wealth": bets.largest(),
        "independent": None,
    }


def _points(claim: Claim, upper: FloatArray, lower: FloatArray | None) -> tuple[TradeOffPoint, ...]:
    claimed = claimed_trade_off(claim, TYPE_ONE)
    below = [None] * len(TYPE_ONE) if lower is None else [float(value) for value in lower]
    return tuple(
        TradeOffPoint(float(at), float(high), low, float(promised))
        for at, high, low, promised in zip(TYPE_ONE, upper, below, claimed, strict=True)
    )


def claimed_trade_off(claim: Claim, type_one: FloatArray) -> FloatArray:
    """The trade-off function that a claim promises at least, from lines of its profile.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> bool(abs(claimed_trade_off(PureDP(1.0), np.array([0.1]))[0] - (1.0 - np.e * 0.1)) < 1e-9)
    True
    """
    if claim.family == "hockey-stick":
        epsilons = np.append(CLAIM_GRID, claim.epsilon_at(claim.delta) if isinstance(claim, ApproxDP) else 0.0)
        epsilons = epsilons[np.isfinite(epsilons)]
        deltas = np.array([claim.profile(float(epsilon)) for epsilon in epsilons])
    else:
        deltas = RENYI_DELTAS
        epsilons = np.array([claim.epsilon_at(float(delta)) for delta in deltas])
    return np.asarray(np.clip(trade_off_of_lines(epsilons, deltas, type_one), 0.0, 1.0))
