"""The state of a Renyi test as data: cells, g, orders and counts of every epoch.

See `dpaudit.testing.saved_state`, which holds it beside the other tests of a pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpaudit.learning.cells import Cells, cells_from_dict
from dpaudit.learning.scores import LogDensity
from dpaudit.testing.epoch_ids import epoch_id
from dpaudit.testing.renyi_epochs import Epoch
from dpaudit.testing.saved_sequential import SAME_WEALTH

if TYPE_CHECKING:
    from dpaudit.testing.renyi_game import RenyiGame

State = dict[str, Any]


def state_of(game: RenyiGame, origin: str) -> State:
    return {
        "kind": "renyi",
        "draws": game.draws,
        "fraction": game.fraction.tolist(),
        "now": game.log_wealth if game.epochs else 0.0,
        "lower": game.known_lower,
        "epochs": [_epoch_state(epoch, origin) for epoch in game.epochs],
    }


def _epoch_state(epoch: Epoch, origin: str) -> State:
    if not epoch.saved:
        g = [[float(value).hex() for value in row] for row in epoch.g]
        fixed = {"origin": origin, "cells": epoch.cells.to_dict(), "g": g, "orders": list(epoch.orders)}
        epoch.saved = {"id": epoch_id(fixed), **fixed}
    return {**epoch.saved, "live": epoch.counts.tolist()}


def restore(game: RenyiGame, use: State, log_density: LogDensity | None, x: Any, x_prime: Any) -> None:
    game.draws = int(use["draws"])
    epochs = []
    for record in use["epochs"]:
        cells: Cells = cells_from_dict(record["cells"], log_density, x, x_prime)
        g = np.array([[float.fromhex(value) for value in row] for row in record["g"]]).reshape(2, cells.size)
        counts = np.array(record["live"], dtype=np.int64).reshape(2, cells.size)
        if np.any(counts < 0):
            raise ValueError("counts must not be negative")
        epoch = Epoch(cells, g, (float(record["orders"][0]), float(record["orders"][1])), counts)
        epoch.saved = {key: value for key, value in record.items() if key != "live"}
        epochs.append(epoch)
    game.go_on(np.array(use["fraction"], dtype=float), float(use["lower"]), epochs)
    now = use["now"]
    if now is not None and epochs and abs((game.log_wealth or 0.0) - now) > SAME_WEALTH * max(1.0, abs(now)):
        raise ValueError("the engine of this version bets otherwise on Renyi claims than the one that counted")
