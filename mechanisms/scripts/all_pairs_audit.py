"""`make all-pairs`: all 474,825 pairs of 975 US cities, of a mechanism that keeps its promise and of one that does not.

Audits the planar Laplace mechanism (geo-indistinguishability, one nat per 200 km) and its twin in which one city's law
stands elsewhere, every pair of cities against its own budget, and writes `audit.html` and `summary.json` for each, and
`audit.json` (about 14 MB) with --json. Exit status 0 if the planted pair, and no pair of two other cities, is named,
and nothing of the sound mechanism, each within a minute and 2 GB; 1 otherwise.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

import dpaudit
from dpaudit.reports import brief, terminal
from dpaudit.reports.progress import live_progress
from dpaudit.results.saving import write_whole
from dpaudit_mechanisms import planar_laplace
from dpaudit_mechanisms.faulty import planar_laplace as faulty
from dpaudit_mechanisms.measurements import figures, is_as_expected


def main() -> int:
    """Run both audits, write their reports, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("reports/all-pairs"))
    parser.add_argument("--json", action="store_true", help="write audit.json as well")
    options = parser.parse_args()
    console = Console()
    subjects = (
        ("dpaudit_mechanisms.planar_laplace:us_cities", "planar-laplace", planar_laplace.us_cities),
        ("dpaudit_mechanisms.faulty.planar_laplace:us_cities", "one-moved", faulty.us_cities),
    )
    results = []
    as_expected = True
    for target, folder, mechanism in subjects:
        with live_progress(target) as on_progress:
            result = dpaudit.audit(
                mechanism, seed=options.seed, jobs=options.jobs, target=target, on_progress=on_progress
            )
        results.append(result)
        facts, place = figures(result, mechanism), options.out / folder
        write_whole(place / "summary.json", json.dumps(facts, indent=1) + "\n")
        dpaudit.write_report(result, place / "audit.html")
        if options.json:
            result.save(place / "audit.json")
        assert result.universe is not None
        console.print(terminal.show([brief.all_pairs(result.universe)]))
        console.print(terminal.show([brief.pairs(result, limit=10)]))
        if result.verdict == "violated":
            console.print(terminal.show(brief.violation(result, str(place / "audit.json"))), crop=False)
        console.print_json(json.dumps(facts))
        as_expected &= is_as_expected(facts)
    console.print(terminal.show([brief.summary(results)]))
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
