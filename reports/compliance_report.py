"""`make compliance`: the reference compliance report, from this repository's own results.

Takes the audits of `make audit` (reports/cities), runs the conformance suite and tests the error bounds of the sound
mechanism, and writes the report with what `deployment.toml` declares, in every format, to reports/compliance. One of
the three audited mechanisms is faulty on purpose, so that the report shows a broken promise too. Exit status 0.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import dpaudit
from dpaudit.reports import FORMATS, check_format, file_name
from dpaudit.reports.deployment import read_deployment
from dpaudit.reports.dossier import read_dossier
from dpaudit_mechanisms import cities

AUDITS = ("laplace", "too-little-noise", "opendp")
HELD_BACK = ("json",)  # 3 MB, which hold nothing but the results again; --all writes it too
SAMPLES = 20_000
RATE = 0.001


def main() -> int:
    """Run what is missing, read everything, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--audits", type=Path, default=Path("reports/cities"))
    parser.add_argument("--out", type=Path, default=Path("reports/compliance"))
    parser.add_argument("--deployment", type=Path, default=Path("reports/compliance/deployment.toml"))
    parser.add_argument("--all", action="store_true", help="write compliance.json too")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    # The map needs longitudes to the right and latitudes upwards.
    places = {name: [longitude, latitude] for name, (latitude, longitude) in cities.coordinates.items()}
    audited = {f.x_id for name in AUDITS for f in _audit(options.audits, name).findings}
    audited |= {f.x_prime_id for name in AUDITS for f in _audit(options.audits, name).findings}
    coordinates = {name: places[name] for name in sorted(audited)}
    (options.deployment.parent / "coordinates.json").write_text(json.dumps(coordinates, indent=1) + "\n")
    target = "dpaudit_mechanisms.cities:laplace"
    dpaudit.check(cities.laplace, error_rate=RATE, seed=options.seed, target=target).save(options.out / "check.json")
    dpaudit.audit_utility(cities.laplace, samples=SAMPLES, seed=options.seed).save(options.out / "utility.json")
    files = [options.audits / name / "audit.json" for name in AUDITS]
    files += [options.out / "check.json", options.out / "utility.json"]
    dossier = read_dossier(files, read_deployment(options.deployment))
    for format in FORMATS:
        if format in HELD_BACK and not options.all:
            continue
        try:
            check_format(format)
        except dpaudit.UsageError as error:  # an extra that is not installed
            print(f"Not written: {error}")
            continue
        path = dpaudit.write_report(dossier, options.out / file_name("compliance", format), "compliance")
        print(f"Written: {path} ({path.stat().st_size:,} bytes)")
    return 0


def _audit(folder: Path, name: str) -> dpaudit.AuditResult:
    return dpaudit.load(folder / name / "audit.json")


if __name__ == "__main__":
    sys.exit(main())
