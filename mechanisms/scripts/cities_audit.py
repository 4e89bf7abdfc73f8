"""`make audit`: one promise kept, one broken, one of somebody else's, on real cities.

Audits three releases of one linear query over the US cities (DX-E4.3), each pair of cities against its own budget, and
writes `audit.json` and `audit.html` for each: our d_X-private Laplace mechanism, the same with noise 1.2 times too
small, and the same with OpenDP's noise. Two of the audits run at the same time. Exit status 0 if exactly the second was
found out, 1 otherwise.
"""

import argparse
import sys
from pathlib import Path

import joblib
from rich.console import Console
from rich.markup import escape

import dpaudit
from dpaudit.reports import brief, terminal
from dpaudit_mechanisms import cities

MODULE = "dpaudit_mechanisms.cities"
# (name in the module, folder, about this many runs on each city, whether its claim is broken)
SUBJECTS = (
    ("laplace", "laplace", 1_000_000, False),
    ("laplace_too_little_noise", "too-little-noise", 1_000_000, True),
    ("opendp_laplace", "opendp", 50_000, False),  # a draw takes tens of microseconds
)


def audited(name: str, samples: int, seed: int) -> tuple[str, dpaudit.AuditResult]:
    """One of the audits, in a process of its own: the name and the result."""
    return name, dpaudit.audit(getattr(cities, name), samples=samples, seed=seed, target=f"{MODULE}:{name}")


def main() -> int:
    """Run the three audits, write their reports, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="audits that run at the same time")
    parser.add_argument("--out", type=Path, default=Path("reports/cities"))
    options = parser.parse_args()
    console = Console()
    facts = cities.describe()
    console.print(
        f"One random linear query over {facts['cities']} US cities ({facts['places_before_merging']} places of more "
        f"than {facts['smallest_population']:,} inhabitants in {facts['source']}, merged within "
        f"{facts['merging_radius_km']:g} km).\n"
        f"d_X is the distance: 1 nat per {facts['km_per_nat']:g} km. Audited: {facts['audited_pairs']} pairs of "
        f"{facts['audited_cities']} cities, budgets from {facts['smallest_budget']:.2f} to "
        f"{facts['largest_budget']:.2f} nats, {facts['pairs_above_0.9_tightness']} of them tight within 10%. "
        f"Seed {options.seed}.",
        highlight=False,
    )
    # OpenDP's takes longest and draws in one process, so it begins.
    calls = [joblib.delayed(audited)(name, samples, options.seed) for name, _, samples, _ in reversed(SUBJECTS)]
    of_names: dict[str, dpaudit.AuditResult] = {}
    for name, result in joblib.Parallel(options.jobs, return_as="generator_unordered")(calls):
        of_names[name] = result
        console.print(f"Done: {name}, {len(of_names)} of {len(calls)} audits", highlight=False)
    as_expected = True
    for name, folder, _, is_broken in SUBJECTS:
        result = of_names[name]
        place = options.out / folder
        result.save(place / "audit.json")
        dpaudit.write_report(result, place / "audit.html")
        console.print(f"\n[bold]{MODULE}:{name}[/bold]  ({escape(str(place))}/audit.json, audit.html)")
        console.print(terminal.show([brief.pairs(result, limit=len(result.violated) or 5)]))
        if result.verdict == "violated":
            console.print(terminal.show(brief.violation(result, str(place / "audit.json"))), crop=False)
        as_expected &= result.verdict == ("violated" if is_broken else "not_refuted")
    console.print()
    console.print(terminal.show([brief.summary([of_names[name] for name, *_ in SUBJECTS])]))
    if not as_expected:
        console.print("Not as expected: the mechanism with too little noise, and no other, should be violated.")
    return 0 if as_expected else 1


if __name__ == "__main__":
    sys.exit(main())
