"""`make compliance`: the reference compliance report, from this repository's own mechanisms.

Audits three releases over the US cities, one of them faulty on purpose, runs the conformance suite and tests the error
bounds of the sound one, all together at 99.9% confidence, the default of the compliance profile. The audits take all
their draws (fixed mode), so that a broken promise has a bound that is worth printing. The report, with what
`deployment.toml` declares, goes to reports/compliance in every format. Exit status 0.
"""

import argparse
import json
import sys
from pathlib import Path

import dpaudit
from dpaudit.profiles import profile_named
from dpaudit.reports import FORMATS, check_format, file_name
from dpaudit.reports.deployment import read_deployment
from dpaudit.reports.reading import read_dossier
from dpaudit_mechanisms import cities

AUDITS = (("laplace", 400_000), ("laplace_too_little_noise", 400_000), ("opendp_laplace", 50_000))  # with their samples
HELD_BACK = ("json",)  # 3 MB, which hold nothing but the results again; --all writes it too
SAMPLES = 20_000  # of the error bounds
RESULTS = len(AUDITS) + 2  # among which the error rate of the report is divided


def main() -> int:
    """Run what the report is made of, read it back, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("reports/compliance"))
    parser.add_argument("--deployment", type=Path, default=Path("reports/compliance/deployment.toml"))
    parser.add_argument("--saved", action="store_true", help="run nothing: report the results that are there")
    parser.add_argument("--all", action="store_true", help="write compliance.json too")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    files = [options.out / f"audit-{name.replace('_', '-')}.json" for name, _ in AUDITS]
    files += [options.out / "check.json", options.out / "utility.json"]
    if not options.saved:
        run(options, files)
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


def run(options: argparse.Namespace, files: list[Path]) -> None:
    """Save the audits, the run of the conformance suite and the test of the error bounds to these files."""
    # Validity: union bound over the results, whose rates add up to that of the whole report.
    rate = (1.0 - (profile_named("compliance").confidence or 0.999)) / RESULTS
    audited: set[str] = set()
    for (name, samples), file in zip(AUDITS, files, strict=False):
        result = dpaudit.audit(
            getattr(cities, name),
            samples=samples,
            mode="fixed",
            confidence=1.0 - rate,
            seed=options.seed,
            jobs=options.jobs,
            target=f"mechanisms.cities:{name}",
        )
        result.save(file)
        audited |= {place for finding in result.findings for place in (finding.x_id, finding.x_prime_id)}
    # The map needs longitudes to the right and latitudes upwards.
    places = {name: [longitude, latitude] for name, (latitude, longitude) in cities.coordinates.items()}
    coordinates = {name: places[name] for name in sorted(audited)}
    (options.deployment.parent / "coordinates.json").write_text(json.dumps(coordinates, indent=1) + "\n")
    target = "mechanisms.cities:laplace"
    dpaudit.check(cities.laplace, error_rate=rate, seed=options.seed, target=target).save(files[-2])
    measured = dpaudit.audit_utility(cities.laplace, samples=SAMPLES, confidence=1.0 - rate, seed=options.seed)
    measured.save(files[-1])


if __name__ == "__main__":
    sys.exit(main())
