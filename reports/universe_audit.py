"""`make universe`: all 474,825 pairs of 975 US cities, of a mechanism that keeps its promise and of one that does not.

Audits the planar Laplace mechanism (geo-indistinguishability, one nat per 200 km) and its twin in which one city's law
stands elsewhere, every pair of cities against its own budget, and writes `audit.html` and `summary.json` for each, and
`audit.json` (about 14 MB) with --json. Exit status 0 if the planted pair, and no pair of two other cities, is named,
and nothing of the sound mechanism, each within a minute and 2 GB; 1 otherwise.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import dpaudit
from dpaudit.reports.terminal import finding_table, live_progress, summary_table, universe_text, violation_text
from dpaudit.results import VERDICTS, write_whole
from mechanisms import planar_laplace
from mechanisms.faulty import planar_laplace as faulty

SECONDS, GIGABYTES = 60.0, 2.0  # what one audit may take


def summary(result: dpaudit.AuditResult, mechanism: Any) -> dict[str, Any]:
    """The figures of one run, and what is known to be true of the mechanism beside them."""
    table = result.universe
    assert table is not None
    excess = np.zeros(len(table))
    if isinstance(mechanism, faulty.PlanarLaplaceOneMoved):
        moved = list(table.ids).index(mechanism.moved)
        of_moved = mechanism.excesses()
        excess = np.where(table.first == moved, of_moved[table.second], excess)
        excess = np.where(table.second == moved, of_moved[table.first], excess)
    violated = table.verdict == VERDICTS.index("violated")
    broken = excess > 1e-9  # nats: more than the rounding of distances
    facts = {
        "inputs": len(table.ids),
        "pairs": len(table),
        "verdict": result.verdict,
        "counts": {verdict: table.count(verdict) for verdict in VERDICTS},
        "pairs_that_break_their_budget": int(broken.sum()),
        "of_them_named": int((violated & broken).sum()),
        "false_alarms": int((violated & ~broken).sum()),
        "bounds_above_the_truth": int((table.epsilon_lower > table.budget + excess + 1e-9).sum()),
        "largest_ratio": round(result.ratio_lower, 4),
        "runs": result.samples,
        "seconds": round(result.seconds, 1),
        "peak_gigabytes_of_the_process": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 3),
        "seed": result.seed,
    }
    if isinstance(mechanism, faulty.PlanarLaplaceOneMoved):
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
    """Whether the planted pair and no sound one was named, within the limits."""
    found = facts["planted_pair"]["named"] if "planted_pair" in facts else facts["counts"]["violated"] == 0
    fits = facts["seconds"] < SECONDS and facts["peak_gigabytes_of_the_process"] < GIGABYTES
    return bool(found and fits and facts["false_alarms"] == 0)


def main() -> int:
    """Run both audits, write their reports, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("reports/universe"))
    parser.add_argument("--json", action="store_true", help="write audit.json as well")
    options = parser.parse_args()
    console = Console()
    subjects = (
        ("mechanisms.planar_laplace:us_cities", "planar-laplace", planar_laplace.us_cities),
        ("mechanisms.faulty.planar_laplace:us_cities", "one-moved", faulty.us_cities),
    )
    results = []
    as_expected = True
    for target, folder, mechanism in subjects:
        with live_progress(target) as on_progress:
            result = dpaudit.audit(
                mechanism, seed=options.seed, jobs=options.jobs, target=target, on_progress=on_progress
            )
        results.append(result)
        facts, place = summary(result, mechanism), options.out / folder
        write_whole(place / "summary.json", json.dumps(facts, indent=1) + "\n")
        dpaudit.write_report(result, place / "audit.html")
        if options.json:
            result.save(place / "audit.json")
        assert result.universe is not None
        console.print(universe_text(result.universe))
        console.print(finding_table(result, limit=10))
        if result.verdict == "violated":
            console.print(violation_text(result, str(place / "audit.json")), soft_wrap=True)
        console.print_json(json.dumps(facts))
        as_expected &= is_as_expected(facts)
    console.print(summary_table(results))
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
