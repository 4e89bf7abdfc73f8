"""Designs: how the scores came about, what that lets one conclude, and what of it can be checked.

A bound holds for the design that is named. What it assumes is stated in every result; what scores can show of it is
checked: a finding is a note, and a refusal where the assumption is false beyond doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import scipy

from dpaudit.arguments import did_you_mean
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.privacy.neighbours import NeighbourClaim, one_step
from dpaudit.privacy.trade_off import FDP
from dpaudit.scores.order import below_all, is_sorted, order_p_value, sorted_probability

DESIGNS = ("one-run", "many-runs", "sequential", "paired")
BETTED = ("many-runs", "sequential")  # designs of independent runs
BEYOND_DOUBT = 1e-6  # p-value at which an assumption is taken to be false
CHANGES = {"one-run": ([], ["a canary"]), "paired": (["a canary"], ["another canary"])}  # of the data, by one coin

_RUNS = (
    "Independent runs with fresh randomness: each score of scores_in is from a run with the canary, each of "
    "scores_out from a run without it, and everything else is the same."
)
_RUNS_SCORE = "The score is a fixed function of the output, chosen before these runs (or on others)."
_FAIR = "A score depends on the output of the run and on the canary, not on whether the canary was in."
_RUNS_CLAIM = "The claim is for the change of the data between the two kinds of run."
EVERY_SESSION = "All scores came into the store, whatever they showed, and none of them under another form."
INDEPENDENT = (
    "Canaries are answered independently: coin and score of one say nothing of those of another. Their order in the "
    "files says nothing of them."
)
CHOSEN = (
    "The stated number of guesses gives the largest bound of many numbers. If it was chosen by looking at these "
    "scores, the bound does not hold: without a number four of them share the error rate."
)
ASSUMPTIONS: Mapping[str, tuple[str, ...]] = {
    "one-run": (
        "One run of the mechanism. Before it, a fair coin of its own decided for each canary whether it is in.",
        "scores_in has the canaries that are in, scores_out all others: none is left out, none is counted twice.",
        _FAIR,
        "The claim is for adding or removing one canary.",
    ),
    "paired": (
        "One run of the mechanism. Before it, a fair coin of its own decided for each pair which canary is in.",
        "scores_in[i] and scores_out[i] are of the same pair, and all pairs are there.",
        _FAIR,
        "The claim is for replacing one canary by the other one of its pair (under add or remove: for two changes).",
    ),
    "many-runs": (
        _RUNS,
        _RUNS_SCORE,
        "The number of runs was fixed beforehand. (Their order is of no matter: it is drawn.)",
        _RUNS_CLAIM,
    ),
    "sequential": (
        _RUNS,
        _RUNS_SCORE,
        "The scores are in the order of the runs, from the first one on. Runs may stop at any time, for any reason.",
        "Every look at a longer list has the same seed, and all earlier scores as they were.",
        _RUNS_CLAIM,
    ),
}


def check_design(design: str) -> None:
    """`UsageError` if there is no such design."""
    if design not in DESIGNS:
        raise UsageError(f"design must be one of {', '.join(DESIGNS)}, got {design!r}.{did_you_mean(design, DESIGNS)}")


def claim_of_change(claim: Claim, design: str) -> Claim:
    """The claim for what one coin changes, where the claim says which inputs are neighbours; else that of one step.

    Runs apart change the data as the claim says (`ASSUMPTIONS`). Readers of a caller's own know no canaries.

    Raises
    ------
    UsageError
        If no steps of the claim's relation make this change, or its family has no rule for as many.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> str(claim_of_change(NeighbourClaim(PureDP(1.0), "add_remove"), "paired"))
    'eps=2'
    """
    if isinstance(claim, NeighbourClaim):
        claim = NeighbourClaim(claim.claim, claim.adjacency)
    reads_records = isinstance(claim, NeighbourClaim | FDP) and design in CHANGES
    return claim.for_pair(*CHANGES[design]) if reads_records else one_step(claim)


def check_scores(scores_in: FloatArray, scores_out: FloatArray, design: str, rng: np.random.Generator) -> None:
    """`UsageError` if the scores cannot be of the design.

    Each check refuses scores that are of the design with probability at most `BEYOND_DOUBT`, column by column; that is
    no part of an audit's error rate, since what is refused gets no verdict. (Pairs whose two members have the same
    order for a reason are the exception: they are refused until the rows are in another order, which changes nothing.)

    Examples
    --------
    >>> check_scores(np.zeros(100), np.zeros(900), "one-run", np.random.default_rng(0))
    Traceback (most recent call last):
    ...
    dpaudit.errors.UsageError: scores_in must have about half of the canaries, as fair coins give, got 100 of 1000 ...
    """
    sizes = len(scores_in), len(scores_out)
    if design == "one-run":
        if sum(sizes) == 0:
            raise UsageError("scores must have at least one canary, got none.")
        p_value = scipy.stats.binomtest(sizes[0], sum(sizes), 0.5).pvalue
        if p_value < BEYOND_DOUBT:
            raise UsageError(
                f"scores_in must have about half of the canaries, as fair coins give, got {sizes[0]} of {sum(sizes)} "
                f"(probability {p_value:.1g}). Include every canary by a fair coin of its own, and score them all."
            )
        return
    for name, size in zip(("scores_in", "scores_out"), sizes, strict=True):
        if size == 0:
            raise UsageError(f"{name} must have at least one score, got none.")
    if design == "paired" and sizes[0] != sizes[1]:
        raise UsageError(f"scores_out must have one score a pair, got {sizes[1]} for {sizes[0]} in scores_in.")
    if design == "paired" and all(_is_sorted_beyond_doubt(side) for side in (scores_in, scores_out)):
        raise UsageError(
            "scores_out must be in the order of the pairs, got two sorted columns, whose rows are no pairs. If they "
            "are, give the rows in another order, the same for both columns."
        )
    if design == "sequential":
        for name, side in (("scores_in", scores_in), ("scores_out", scores_out)):
            if (p_value := order_p_value(side, rng)) < BEYOND_DOUBT:
                raise UsageError(
                    f"{name} must be in the order of the runs, got a column that is arranged as independent runs are "
                    f"with probability {p_value:.1g} at most. If the order is lost, and the number of runs was fixed "
                    "beforehand, use design many-runs."
                )


def notes_on(scores_in: FloatArray, scores_out: FloatArray, design: str) -> tuple[str, ...]:
    """Sentences on what the scores show of the assumptions; none of them changes a verdict."""
    notes = []
    both = np.concatenate([scores_in, scores_out])
    missing = int(np.isnan(both).sum())
    if missing:
        notes.append(f"{missing:,} scores are NaN; they count as below every number.")
    if len(both) > 1 and len(np.unique(both)) == 1:
        notes.append("All scores are equal: the attack tells nothing.")
    if design == "one-run" and len(scores_in) == len(scores_out) and len(both) >= 1_000:
        notes.append(
            "Exactly half of the canaries are in. Coins give that rarely; if it was arranged, the design is not "
            "one-run. Canaries in pairs, one of each in, are the design `paired`."
        )
    if design in BETTED:
        for name, side in (("scores_in", scores_in), ("scores_out", scores_out)):
            notes += [f"{name}: {text}" for text in _signs_of_dependence(side)]
    return tuple(notes)


def _is_sorted_beyond_doubt(scores: FloatArray) -> bool:
    """Tell whether a column is sorted, and is so by chance with probability below `BEYOND_DOUBT`."""
    kept = below_all(scores)
    return is_sorted(kept) and 2.0 * sorted_probability(kept) < BEYOND_DOUBT


def _signs_of_dependence(scores: FloatArray) -> list[str]:
    """Repeated values among mostly different ones, and ranks that go with their place in the order of runs."""
    found = []
    different = len(np.unique(scores))
    if len(scores) >= 20 and 0.5 * len(scores) < different < len(scores):
        repeated = len(scores) - different
        found.append(f"{repeated:,} scores repeat others exactly. Runs with the same seed are not independent.")
    if len(scores) >= 20 and different > 0.5 * len(scores):
        if _is_sorted_beyond_doubt(scores):
            return [*found, "the scores are sorted, so that nothing can be seen of whether the runs are independent."]
        ranks = scipy.stats.rankdata(below_all(scores))
        lagged = float(np.corrcoef(ranks[1:], ranks[:-1])[0, 1]) * math.sqrt(len(scores))
        if abs(lagged) > 5.0:  # under independence about normal: 6e-7
            found.append("neighbouring scores are correlated. Runs that share state are not independent.")
    return found
