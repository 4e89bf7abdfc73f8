"""The state of a sequential test as data: every epoch's cells, training counts, weights and counted draws.

See `dpaudit.testing.saved_state`, which holds it beside the other tests of a pair.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.learning.cells import Cells, cells_from_dict
from dpaudit.learning.fitted_partitions import Partition
from dpaudit.learning.paths import ORDERS, Order, PathPriors
from dpaudit.learning.scores import LogDensity
from dpaudit.privacy.claims import FloatArray
from dpaudit.testing.betting import Bets, Book, Components, fit_bets
from dpaudit.testing.epoch_ids import epoch_id
from dpaudit.testing.epochs import Epoch

if TYPE_CHECKING:
    from dpaudit.testing.sequential_game import SequentialGame

LEAST_SWITCH = 1e-6  # far below any that is made; from there on no sum over paths vanishes
SAME_WEALTH = 1e-6  # nats, or relative: log wealth computed again from its counts that differs by more is another one

State = dict[str, Any]


def state_of(game: SequentialGame, origin: str) -> State:
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
                    **({"is_learned": True} if epoch.partitions[k].is_learned else {}),
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
        epoch.saved = {"id": epoch_id(fixed), **fixed}
    return {**epoch.saved, "live": _trimmed(epoch.book.live, epoch.cells, firsts)}


def restore(game: SequentialGame, use: State, log_density: LogDensity | None, x: Any, x_prime: Any) -> None:
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
            bool(record["partitions"][at].get("is_learned", False)),
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
