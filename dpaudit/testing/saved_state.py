"""The state of a pair's bets as data, so that they go on another day where they stopped.

What is saved of a sequential use: every epoch's cells, training counts, weights and counted draws, and what
partitions have won. An epoch's payoffs are computed again from these. The number of epochs grows with the logarithm
of the draws, so a state stays small (after 20,000 labelled draws 100 kilobytes compressed, 260 where the line has a
delta, 350 of a claim with two uses). Of a Renyi use: cells, g, orders and counts.
Besides, a pair's level, how much it was trained on, and what says that its draws depended on each other: wealth that
was won on such draws is none, whatever comes later. The outputs that later fits see are in `kept_outputs`.

States are plain values that JSON can hold, and reading one runs nothing that was written there.

Validity: the wealth of a state is a product over epochs, each fixed before the draws that it counts. It stays an
e-process when bets go on from it on draws that no epoch has counted. `joined` puts the epochs of two states together
that counted disjoint draws: their wealth multiplies, since the draws of one are independent of the bets and draws of
the other. A state that is read by an engine that bets in another way is no longer what was promised, so `restored`
computes the wealth again and compares: where it differs, the log wealth goes on as a number, and epochs are dropped.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.learning.scores import LogDensity
from dpaudit.privacy.claims import Claim, RenyiDP
from dpaudit.testing.order import Change
from dpaudit.testing.pair_game import PairGame

FORMAT = 1  # of saved states: another one is refused

State = dict[str, Any]
# How bets for lower targets were made and shared, by what is meant where an engine did not say so.
MADE_ALIKE: dict[str, Any] = {"lower_bets": 1, "targets": None, "deep_targets": []}


class StateError(ValueError):
    """A state that cannot be read: another format, or not one at all."""


def claim_digest(claim: Claim) -> str:
    """16 hexadecimal digits that two claims of a pair share only if they ask the same of it.

    Examples
    --------
    >>> from dpaudit.privacy.claims import PureDP
    >>> claim_digest(PureDP(1.0)) == claim_digest(PureDP(1.0)), claim_digest(PureDP(1.0)) == claim_digest(PureDP(2.0))
    (True, False)
    """
    values = np.array([0.5, 1.0, 2.0]) * (claim.value if 0.0 < claim.value < math.inf else 1.0)
    # What is promised, at whatever orders it may be bet against.
    orders = (claim.order,) if isinstance(claim, RenyiDP) else claim.orders
    asked: list[Any] = [type(claim).__name__, str(claim), claim.parameter, float(claim.value).hex(), list(orders)]
    if claim.family == "renyi":
        asked += [[float(v).hex() for v in claim.renyi_epsilons(values, order)] for order in orders]
    else:
        for anchor in (0.0, 0.5, 1.0, 4.0) if claim.anchored else (0.0,):
            asked += [[float(v).hex() for v in part] for part in claim.lines(values, anchor)]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


# --- a pair ---


def pair_state(pair: PairGame, origin: str) -> State:
    """The state of a pair whose level is fixed, as JSON values.

    Parameters
    ----------
    pair : PairGame
        Of a sequential audit.
    origin : str
        Names the streams of the draws that are counted now; epochs that are not saved yet keep it.
    """
    return {
        "format": FORMAT,
        "claim": claim_digest(pair.claim),
        "level": pair.level,
        "labelled": pair.labelled,
        "trained_on": pair.trained_on,
        "labelled_at_fit": pair.labelled_at_fit,
        "violated": pair.is_violated,
        "change": None if pair.change is None else dataclasses.asdict(pair.change),
        "uses": [{"level_share": share, **game.saved(origin)} for share, game in pair.uses],
    }


def restored(state: State, pair: PairGame, log_density: LogDensity | None, x: Any, x_prime: Any) -> PairGame:
    """The same pair, new, as it was when its state was taken.

    Parameters
    ----------
    state : dict
        From `pair_state`.
    pair : PairGame
        Of the same claim, not started.
    log_density, x, x_prime
        The mechanism's own and the inputs, for scores that rest on them.

    Raises
    ------
    StateError
        If the state is of another format or claim, or damaged.
    """
    if state.get("format") != FORMAT:
        raise StateError(f"state must have format {FORMAT}, got {state.get('format')!r}.")
    if state["claim"] != claim_digest(pair.claim):
        raise StateError("state must be of the same claim.")
    try:
        pair.uses = [(float(use["level_share"]), game) for (_, game), use in zip(pair.uses, state["uses"], strict=True)]
        pair.start(float(state["level"]))
        pair.labelled, pair.trained_on = int(state["labelled"]), int(state["trained_on"])
        pair.labelled_at_fit = int(state["labelled_at_fit"])
        pair.change = pair.earlier_change = _change_of(state)
        for (_, game), use in zip(pair.uses, state["uses"], strict=True):
            game.restore(use, log_density, x, x_prime)
            if not use["epochs"] or not game.epochs:
                pair.trained_on = 0  # to be fitted anew, on outputs that were kept
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise StateError(f"state must be one that was saved, got {error!r:.200}.") from error
    return pair


def joined(state: State, other: State, base: State | None = None) -> State:
    """`state` with what `other` counted since `base` (or ever) as well, on draws that `state` has not counted.

    The level, what is watched and how bets go on are those of `state`. The log wealth is not known before it is read.

    Raises
    ------
    StateError
        If the two are not of the same claim and format; with a `base`, if they are of different engines.
    """
    if (state["format"], state["claim"], len(state["uses"])) != (other["format"], other["claim"], len(other["uses"])):
        raise StateError("states must be of the same claim and format.")
    result = copy.deepcopy(state)
    known = base["uses"] if base is not None else [{"epochs": []} for _ in other["uses"]]
    for use, more, before in zip(result["uses"], other["uses"], known, strict=True):
        if base is not None and not use.get("carried") == more.get("carried") == before.get("carried"):
            # Validity: one of them holds what was won until then as a number, which the other one has as epochs.
            raise StateError("states must be of one engine.")
        own, old = _numbered(use["epochs"]), _numbered(before["epochs"])
        new = []
        for key, epoch in _numbered(more["epochs"]).items():
            if key in own:
                since = old[key]["live"] if key in old else _zeros_like(epoch["live"])
                own[key]["live"] = _plus(own[key]["live"], epoch["live"], since)
            else:  # of `other` alone; or one that `state` dropped since it had counted nothing there
                new.append(copy.deepcopy(epoch))
        # Before its own: the last epoch is the one that goes on, and its stakes are those of `state`.
        use["epochs"] = new + use["epochs"]
        if more.get("carried") is not None or use.get("carried") is not None:
            since = (more.get("carried") or 0.0) - (before.get("carried") or 0.0)
            use["carried"] = (use.get("carried") or 0.0) + since
        use["now"] = None
        # Validity: of bets that were made, or shared, in two ways none count below the budget.
        if any(use.get(name, missing) != more.get(name, missing) for name, missing in MADE_ALIKE.items()):
            use["lower_bets"] = 0
    result["labelled"] += other["labelled"] - (base["labelled"] if base is not None else 0)
    # Validity: a product has the draws of both, and supposes that all of them were independent.
    result["change"] = state.get("change") or other.get("change")
    result["violated"] = False
    return result


def forgotten_bound(state: State) -> State:
    """The state without the bounds and verdicts of earlier looks: for another level than they were made at."""
    result = copy.deepcopy(state)
    result["violated"] = False
    for use in result["uses"]:
        use["lower"] = 0.0
    return result


def _change_of(state: State) -> Change | None:
    """What said that draws depended on each other; engines that did not keep it knew of none."""
    change = state.get("change")
    return None if change is None else Change(str(change["what"]), float(change["p_value"]))


def _numbered(epochs: Sequence[State]) -> dict[tuple[str, int], State]:
    """Epochs by their ids, and by how many of the same id stand before them.

    Two fits of one night may be the same, as Renyi games have where nothing is worth a bet; then they bet the same, and
    which of them a draw is counted in changes nothing. Each has counts of its own: taken for one, what one of them
    counted was lost, counted twice, or less than nothing.
    """
    seen: dict[str, int] = {}
    numbered = {}
    for epoch in epochs:
        number = seen[epoch["id"]] = seen.get(epoch["id"], -1) + 1
        numbered[epoch["id"], number] = epoch
    return numbered


def _plus(counted: Any, more: Any, less: Any) -> Any:
    if isinstance(counted, list):
        return [_plus(a, b, c) for a, b, c in zip(counted, more, less, strict=True)]
    return counted + more - less


def _zeros_like(counts: Any) -> Any:
    return [_zeros_like(row) for row in counts] if isinstance(counts, list) else 0


def counts_of(state: State) -> NDArray[np.int64]:
    """Labelled draws that a state has counted, by label (row 0 of the first use's first partitions), shape (2,)."""
    use = state["uses"][0]
    total = np.zeros(2, dtype=np.int64)
    for epoch in use["epochs"]:
        rows = epoch["live"][0] if use["kind"] == "sequential" else epoch["live"]
        total += np.array([sum(row) for row in rows], dtype=np.int64)
    return total
