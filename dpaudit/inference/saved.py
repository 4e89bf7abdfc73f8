"""Saved evidence: the state of a pair's tests as data, so that a later session goes on where this one stopped.

What is saved: the level and the claim (a digest), the rounds of the table (what was predicted of each bin, and integer
counts by session), the last predictor and what it predicts of its bins, what each structure foretold, bounds and wealth
so far; and what says that draws depended on each other, since wealth that was won on such draws is none, whatever comes
later. States are plain values that JSON can hold, and reading one runs nothing that was written there.

Validity: wealth is a product over rounds, each predicted before the draws that it counts. It stays an e-process when
later draws are counted in new rounds, as each session does in rounds of its own. A session draws from streams of its
own and only adds to what it counted; so `joined` takes the union of rounds, and no draw counts twice. The wealth of two
states of disjoint draws multiplies, since the draws of one are independent of the bets and draws of the other.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.inference.order import Change
from dpaudit.privacy.claims import Claim, RenyiDP

if TYPE_CHECKING:
    from dpaudit.inference.pair_game import PairGame

FORMAT = 3  # of saved states: 1 had the bets of an earlier engine, 2 no counts of views

State = dict[str, Any]


class StateError(ValueError):
    """A state that cannot be read: another format, or not one at all."""


def claim_digest(claim: Claim) -> str:
    """16 hexadecimal digits that two claims of a pair share only if they ask the same of it, in both orders.

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
    for one in (claim.in_order(False), claim.in_order(True)):
        if claim.family == "renyi":
            asked += [[float(v).hex() for v in one.renyi_epsilons(values, order)] for order in orders]
        else:
            for anchor in (0.0, 0.5, 1.0, 4.0) if claim.anchored else (0.0,):
                asked += [[float(v).hex() for v in part] for part in one.lines(values, anchor)]
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()[:16]


def pair_state(pair: PairGame, origin: str) -> State:
    """The state of a pair of a sequential audit with a fixed level; `origin` names the streams that it counts now."""
    return {
        "format": FORMAT,
        "claim": claim_digest(pair.claim),
        "level": pair.level,
        "labelled": pair.labelled,
        "trained_on": pair.trained_on,
        "labelled_at_fit": pair.labelled_at_fit,
        "violated": pair.is_violated,
        "change": None if pair.change is None else dataclasses.asdict(pair.change),
        "uses": [{"level_share": share, "now": test.log_wealth, **test.saved(origin)} for share, test in pair.bettors],
    }


def restored(state: State, pair: PairGame) -> PairGame:
    """`pair`, as it was when its state was taken; StateError if that is of another format or claim, or damaged."""
    if state.get("format") != FORMAT:
        raise StateError(f"state must have format {FORMAT}, got {state.get('format')!r}.")
    if state.get("claim") != claim_digest(pair.claim):
        raise StateError("state must be of the same claim.")
    try:
        pair.uses = [(float(use["level_share"]), test) for (_, test), use in zip(pair.uses, state["uses"], strict=True)]
        pair.start(float(state["level"]))
        pair.labelled, pair.trained_on = int(state["labelled"]), int(state["trained_on"])
        pair.labelled_at_fit, change = int(state["labelled_at_fit"]), state["change"]
        pair.change = None if change is None else Change(str(change["what"]), float(change["p_value"]))
        pair.earlier_change = pair.change
        for (_, test), use in zip(pair.bettors, state["uses"], strict=True):
            test.restore(use, pair.hints.log_ratio)
        if not 0.0 < pair.level < 1.0 or counted(state) != pair.labelled:
            raise ValueError("level must be in (0, 1), and all draws in the rounds")
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise StateError(f"state must be one that was saved, got {error!r:.200}.") from error
    return pair


def joined(state: State, other: State) -> State:
    """`state` with all that `other` has counted as well, once; the level and the predictor are those of `state`.

    Its bounds are those of `state`: made at its level. Where the two have no round in common, wealth is known too.
    StateError if the two are not of the same claim and format, or were won by bets of different engines.
    """
    if (state["format"], state["claim"], len(state["uses"])) != (other["format"], other["claim"], len(other["uses"])):
        raise StateError("states must be of the same claim and format.")
    result = copy.deepcopy(state)
    own = {one["name"]: one for one in result["uses"][0]["table"]["rounds"]}
    theirs = {one["name"]: one for one in other["uses"][0]["table"]["rounds"]}
    for name in own.keys() & theirs.keys():  # a session only adds to what it counted
        own[name]["counts"] = max(own[name]["counts"], theirs[name]["counts"], key=_total)
    result["uses"][0]["table"]["rounds"] += [one for name, one in theirs.items() if name not in own]
    is_apart = not own.keys() & theirs.keys()
    for use, more in zip(result["uses"], other["uses"], strict=True):
        offsets, others = (dict(map(tuple, one["offsets"])) for one in (use, more))
        if not is_apart and offsets != others:
            raise StateError("states must be of one engine.")
        if is_apart and (offsets or others):
            values = [value for value, _ in use["wealths"] or []]
            use["offsets"] = [[value, _of(offsets, value) + _of(others, value)] for value in values]
        wealths = [dict(map(tuple, one["wealths"] or [])) for one in (use, more)]
        is_known = is_apart and wealths[0].keys() == wealths[1].keys() and len(wealths[0]) > 0
        use["wealths"] = [[v, won + wealths[1][v]] for v, won in wealths[0].items()] if is_known else None
        use["now"] = use["wealths"][-1][1] if is_known else None
    result["labelled"] = counted(result)
    # Validity: a product has the draws of both, and supposes that all of them were independent.
    result["change"] = state["change"] or other["change"]
    return result


def at_level(state: State, level: float, *, keeps_bounds: bool) -> State:
    """The state at this level, with the bounds that its wealth makes there; earlier ones go unless they are kept.

    Validity: the budget is rejected where its wealth, and that of all values below it, is enough.
    """
    result = copy.deepcopy(state)
    result["level"], result["violated"] = level, bool(state["violated"]) and keeps_bounds
    for use in result["uses"]:
        rejected = 0.0
        for value, wealth in use["wealths"] or []:
            if not wealth >= -math.log(level * use["level_share"]):  # a NaN rejects nothing
                break
            rejected = value
        use["lower"] = max(use["lower"], rejected) if keeps_bounds else rejected
        if use is result["uses"][0] and use["wealths"] and rejected == use["wealths"][-1][0]:
            result["violated"] = True
    return result


def counted(state: State) -> int:
    """Labelled draws in the rounds of a state."""
    return sum(_total(one["counts"]) for one in state["uses"][0]["table"]["rounds"])


def _total(counts: dict[str, list[list[int]]]) -> int:
    """The draws of a round, by the session that counted them."""
    return sum(sum(map(sum, of_session[1:])) for of_session in counts.values())


def _of(offsets: dict[float, float], value: float) -> float:
    return offsets.get(value, -math.inf) if offsets else 0.0
