"""The search: batches of instances, a third of them drawn afresh, the others moved from the closest calls so far."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import click
import numpy as np

from counterexamples import constrained, datacubes, dx, metric_queries, two_metrics
from counterexamples.instances import ROUNDING, Target, Targets
from dpaudit_mechanisms.inputs import FloatArray

TARGETS: Targets = {
    **constrained.TARGETS, **two_metrics.TARGETS, **dx.TARGETS, **datacubes.TARGETS, **metric_queries.TARGETS,
}  # fmt: skip
# General statements that are verified, wholly or in part, and have no instance that could refute them alone.
WITHOUT_INSTANCES = {
    "DX-T2.2a": "one integral, linear in c",
    "MQ-T1": "rates with O(), and a probability over runs; its parts MQ-L4 to MQ-L6 are searched",
    "MQ-T2": "rates with O(), and a probability over runs; its parts MQ-L4 to MQ-L6 are searched",
    "MQ-L3": "any learner: one learner is checked; its updates are MQ-L6",
    "MQ-L9": "there is a projection: no single one refutes that",
    "MQ-T10": "rates with O~(), and a probability over runs",
    "MQ-N2": "a running time",
    "MQ-N4": "any dimension, by a probability over projections",
}
BATCH = 512
SHARE_FRESH = 1.0 / 3.0
CLOSEST = 16  # instances that are moved on from


def search(claim: str, seconds: float, rng: np.random.Generator, targets: Targets = TARGETS) -> dict[str, Any]:
    """Tries instances of one claim for some seconds, a batch at least: how many, the closest call, and its numbers."""
    target = targets[claim]
    target.quotient(target.draw(2, rng))  # what is computed once is there before the clock runs
    start, tried = time.monotonic(), 0
    best, quotients = np.empty((0, target.numbers)), np.empty(0)
    while tried == 0 or time.monotonic() - start < seconds:
        batch = _next_batch(target, best, rng)
        found = target.quotient(batch)
        tried += len(batch)
        best, quotients = np.concatenate([best, batch]), np.concatenate([quotients, found])
        kept = np.argsort(-np.where(np.isnan(quotients), np.inf, quotients), kind="stable")[:CLOSEST]
        best, quotients = best[kept], quotients[kept]
    closest = float(quotients[0])
    return {
        "claim": claim, "instances": target.what, "tried": tried, "closest": closest,
        "is_counterexample": not closest <= 1.0 + ROUNDING, "numbers": best[0].tolist(),
    }  # fmt: skip


def _next_batch(target: Target, best: FloatArray, rng: np.random.Generator) -> FloatArray:
    """All fresh at first; then moves of some or all numbers, by steps of three sizes."""
    fresh = target.draw(BATCH if not len(best) else math.ceil(SHARE_FRESH * BATCH), rng)
    if not len(best):
        return fresh
    size = BATCH - len(fresh)
    origins = best[rng.integers(len(best), size=size)]
    moved = origins + rng.normal(size=origins.shape) * rng.choice([0.3, 0.03, 0.003], size=(size, 1))
    changes = rng.random(origins.shape) < rng.choice([0.1, 0.5, 1.0], size=(size, 1))
    return np.concatenate([fresh, np.clip(np.where(changes, moved, origins), 0.0, 1.0)])


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="For all claims together.")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", default="reports/counterexamples.json", show_default=True, help="The log.")
def main(minutes: float, seed: int, out: str) -> None:
    """Search for counterexamples to what is verified, claim by claim, and write the log."""
    from dpaudit.results.saving import write_whole

    records = []
    for n, claim in enumerate(TARGETS):
        record = search(claim, 60.0 * minutes / len(TARGETS), np.random.default_rng([seed, n]))
        records.append(record)
        click.echo(f"{claim}: {record['tried']:,} instances, closest call {record['closest']:.6f}")
    log = {"seed": seed, "minutes": minutes, "claims": records, "without_instances": WITHOUT_INSTANCES}
    write_whole(out, json.dumps(log, indent=1) + "\n")
