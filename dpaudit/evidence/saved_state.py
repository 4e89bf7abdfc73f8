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
import itertools
import json
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.evidence.betting import Bets, Book, Components, fit_bets
from dpaudit.evidence.cells import Cells, cells_from_dict
from dpaudit.evidence.epochs import Epoch
from dpaudit.evidence.fitted_partitions import Partition
from dpaudit.evidence.order import Change
from dpaudit.evidence.pair_game import PairGame
from dpaudit.evidence.paths import ORDERS, Order, PathPriors
from dpaudit.evidence.renyi_game import Epoch as RenyiEpoch
from dpaudit.evidence.renyi_game import RenyiGame
from dpaudit.evidence.scores import LogDensity
from dpaudit.evidence.sequential_game import SAME_WEALTH, SequentialGame
from dpaudit.privacy.claims import Claim, FloatArray, RenyiDP

FORMAT = 1
LEAST_SWITCH = 1e-6  # far below any that is made; from there on no sum over paths vanishes

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
        "uses": [{"level_share": share, **_use_state(game, origin)} for share, game in pair.uses],
    }


def _use_state(game: Any, origin: str) -> State:
    if isinstance(game, SequentialGame):
        return _sequential_state(game, origin)
    if isinstance(game, RenyiGame):
        return _renyi_state(game, origin)
    raise TypeError(f"game must bet round by round, got {type(game).__name__}.")


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
            if isinstance(game, SequentialGame):
                _fill_sequential(game, use, log_density, x, x_prime)
            elif isinstance(game, RenyiGame):
                _fill_renyi(game, use, log_density, x, x_prime)
            if not use["epochs"] or not _epochs_of(game):
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


def _epochs_of(game: Any) -> Sequence[Any]:
    """The epochs of one use."""
    epochs: Sequence[Any] = game.epochs
    return epochs


# --- a sequential use ---


def _sequential_state(game: SequentialGame, origin: str) -> State:
    return {
        "kind": "sequential",
        "draws": game.draws,
        **game.state,
        "fraction": game.state["fraction"].tolist(),
        "targets": list(game.state["targets"]),
        "deep_targets": list(game.state["deep_targets"]),
        "history": {name: row.tolist() for name, row in game.state["history"].items()},
        "now": game.now,
        "epochs": [_epoch_state(epoch, origin) for epoch in game.epochs],
    }


def _epoch_state(epoch: Epoch, origin: str) -> State:
    firsts = epoch.of_each_cells.tolist()  # of twins cells and counts are written once
    if not epoch.saved:
        components, paths = epoch.bets.components, epoch.book.paths
        fixed = {
            "origin": origin,
            "partitions": [
                {
                    **epoch.cells[k].to_dict(),
                    "kind": epoch.partitions[k].kind,
                    "is_rough": epoch.partitions[k].is_rough,
                    "orders": [part.order for part in epoch.partitions if part.kind == epoch.partitions[k].kind],
                }
                for k in firsts
            ],
            "train": _trimmed(epoch.book.train, epoch.cells, firsts),
            "switch": paths.switch.tolist(),
            "rises": paths.rises.tolist(),
            "centre": paths.centre.tolist(),
            "components": [part.tolist() for part in dataclasses.astuple(components)],
            "evidence": epoch.bets.evidence.tolist(),
            "log_weights": epoch.bets.log_weights.tolist(),
            "kept": epoch.kept.tolist(),
            "idle": epoch.idle,
        }
        epoch.saved = {"id": _digest(fixed), **fixed}
    return {**epoch.saved, "live": _trimmed(epoch.book.live, epoch.cells, firsts)}


def _fill_sequential(game: SequentialGame, use: State, log_density: LogDensity | None, x: Any, x_prime: Any) -> None:
    game.draws = int(use["draws"])
    known: dict[str, Any] = {
        "fraction": np.array(use["fraction"], dtype=float),
        "components": int(use["components"]),
        "lower": float(use["lower"]),
        "watched": float(use["watched"]),
        "share": float(use["share"]),
        "targets": tuple(float(target) for target in use["targets"]),
        # Validity: engines that had none shared everything among the others.
        "deep_targets": tuple(float(target) for target in use.get("deep_targets", ())),
        "lower_bets": int(use.get("lower_bets", 1)),
    }
    carried = None if use["carried"] is None else float(use["carried"])
    now = None if use["now"] is None else float(use["now"])
    game.go_on(
        **known,
        history={name: np.array(row, dtype=float) for name, row in use["history"].items()},
        past=float(use["past"]),
        carried=carried,
        closed=None if now is None else float(use["closed"]),
        epochs=[_epoch_of(record, log_density, x, x_prime) for record in use["epochs"]],
    )
    if now is not None and not math.isclose(game.now, now, rel_tol=SAME_WEALTH, abs_tol=SAME_WEALTH):
        # Validity: this engine bets otherwise than the one that counted. What was won until now was fixed by that one;
        # later draws multiply it, and count for nothing below the budget.
        game.go_on(**known, history={}, past=0.0, carried=now, closed=None, epochs=[])


def _epoch_of(record: State, log_density: LogDensity | None, x: Any, x_prime: Any) -> Epoch:
    firsts = [cells_from_dict(part, log_density, x, x_prime) for part in record["partitions"]]
    # Engines that did not say in which orders a partition is bet on knew free ones alone.
    orders = [[_order_of(name) for name in part.get("orders", ["free"])] for part in record["partitions"]]
    if any(of_kind[:1] != ["free"] or len(set(of_kind)) < len(of_kind) for of_kind in orders):
        raise ValueError("orders must differ, the free one first")
    of_twin = np.repeat(np.arange(len(firsts)), [len(of_kind) for of_kind in orders])
    train, live = (_padded(record[name], [part.size for part in firsts])[:, :, of_twin] for name in ("train", "live"))
    partitions = tuple(
        Partition(
            firsts[at],
            train[:, : firsts[at].size, k].astype(np.int64),
            str(record["partitions"][at]["kind"]),
            bool(record["partitions"][at]["is_rough"]),
            order,
        )
        for k, (at, order) in enumerate(zip(of_twin.tolist(), itertools.chain(*orders), strict=True))
    )
    book = Book(train, live, _paths_of(record, partitions))
    components = Components(*(np.array(part, dtype=float) for part in record["components"]))
    log_weights = np.array(record["log_weights"], dtype=float)
    bets: Bets = fit_bets(book, components, np.zeros_like(log_weights), (len(partitions),))
    # The evidence as it was, to the last bit: it was computed together with components that were dropped since.
    bets = dataclasses.replace(bets, log_weights=log_weights, evidence=np.array(record["evidence"], dtype=float))
    # Validity: what an epoch does not bet was fixed when it was opened; engines that did not say so bet all.
    idle = float(record.get("idle", 0.0))
    if not 0.0 <= idle < 1.0:
        raise ValueError("idle must be in [0, 1)")
    epoch = Epoch(partitions, book, bets, np.array(record["kept"], dtype=np.intp), idle)
    if len(epoch.of_each_cells) != len(firsts):
        raise ValueError("partitions must be of different kinds")
    epoch.saved = {key: value for key, value in record.items() if key != "live"}
    return epoch


def _order_of(name: Any) -> Order:
    for order in ORDERS:
        if name == order:
            return order
    raise ValueError("order must be one of " + ", ".join(ORDERS))


def _paths_of(record: State, partitions: Sequence[Partition]) -> PathPriors:
    """How likely an epoch's paths are beforehand; engines that did not say so knew free ones alone."""
    paths = PathPriors.free([float(switch) for switch in record["switch"]])
    if "rises" in record:
        rises, centre = (
            np.array([operator.index(n) for n in record[name]], dtype=np.intp) for name in ("rises", "centre")
        )
        paths = PathPriors(paths.switch, rises, centre)
    if not len(paths.switch) == len(paths.rises) == len(paths.centre) == len(partitions):
        raise ValueError("switch, rises and centre must have one number a partition")
    if not np.all((paths.switch >= LEAST_SWITCH) & (paths.switch <= 1.0)):
        raise ValueError(f"switch must be in [{LEAST_SWITCH}, 1]")
    for partition, rise, centre in zip(partitions, paths.rises.tolist(), paths.centre.tolist(), strict=True):
        # Validity: the centre is within the cells, so that a chain has all of them, whatever is stacked beside it.
        last = 2 * (partition.cells.size - 1) if partition.order == "mirrored" else -1
        if rise not in ((0,) if partition.order == "free" else (-1, 1)) or not min(last, 0) <= centre <= last:
            raise ValueError("rises and centre must be those of the order")
    return paths


def _trimmed(counts: FloatArray, cells: Sequence[Cells], positions: Sequence[int]) -> list[list[list[int]]]:
    """Counts (2, cells, partitions) as whole numbers, a list of two rows for each position, without the padding."""
    return [counts[:, : cells[k].size, k].astype(np.int64).tolist() for k in positions]


def _padded(parts: Sequence[Any], sizes: Sequence[int]) -> FloatArray:
    counts = np.zeros((2, max(sizes), len(sizes)))
    for k, (part, size) in enumerate(zip(parts, sizes, strict=True)):
        counts[:, :size, k] = np.array(part, dtype=float).reshape(2, size)
    if np.any(counts < 0.0) or not np.all(np.isfinite(counts)):
        raise ValueError("counts must not be negative")
    return counts


# --- a Renyi use ---


def _renyi_state(game: RenyiGame, origin: str) -> State:
    return {
        "kind": "renyi",
        "draws": game.draws,
        "fraction": game.fraction.tolist(),
        "now": game.log_wealth if game.epochs else 0.0,
        "lower": game.known_lower,
        "epochs": [_renyi_epoch_state(epoch, origin) for epoch in game.epochs],
    }


def _renyi_epoch_state(epoch: RenyiEpoch, origin: str) -> State:
    if not epoch.saved:
        g = [[float(value).hex() for value in row] for row in epoch.g]
        fixed = {"origin": origin, "cells": epoch.cells.to_dict(), "g": g, "orders": list(epoch.orders)}
        epoch.saved = {"id": _digest(fixed), **fixed}
    return {**epoch.saved, "live": epoch.counts.tolist()}


def _fill_renyi(game: RenyiGame, use: State, log_density: LogDensity | None, x: Any, x_prime: Any) -> None:
    game.draws = int(use["draws"])
    epochs = []
    for record in use["epochs"]:
        cells: Cells = cells_from_dict(record["cells"], log_density, x, x_prime)
        g = np.array([[float.fromhex(value) for value in row] for row in record["g"]]).reshape(2, cells.size)
        counts = np.array(record["live"], dtype=np.int64).reshape(2, cells.size)
        if np.any(counts < 0):
            raise ValueError("counts must not be negative")
        epoch = RenyiEpoch(cells, g, (float(record["orders"][0]), float(record["orders"][1])), counts)
        epoch.saved = {key: value for key, value in record.items() if key != "live"}
        epochs.append(epoch)
    game.go_on(np.array(use["fraction"], dtype=float), float(use["lower"]), epochs)
    now = use["now"]
    if now is not None and epochs and abs((game.log_wealth or 0.0) - now) > SAME_WEALTH * max(1.0, abs(now)):
        raise ValueError("the engine of this version bets otherwise on Renyi claims than the one that counted")


def _digest(fixed: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def counts_of(state: State) -> NDArray[np.int64]:
    """Labelled draws that a state has counted, by label (row 0 of the first use's first partitions), shape (2,)."""
    use = state["uses"][0]
    total = np.zeros(2, dtype=np.int64)
    for epoch in use["epochs"]:
        rows = epoch["live"][0] if use["kind"] == "sequential" else epoch["live"]
        total += np.array([sum(row) for row in rows], dtype=np.int64)
    return total
