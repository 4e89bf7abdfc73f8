"""`make history`: five releases of one mechanism, of which the third breaks its promise and the fifth mends it.

Each release of a noisy count promises epsilon = 1. The third halves the noise by mistake, so that its loss is 2. Every
release is audited in fixed mode with the same number of samples and a seed of its own; nothing is chosen by the result.
The audits go to reports/history/releases, a folder a release, and the history of them to reports/history. Exit status 0
where the third and the fourth release are violated and no other is, else 1.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

import dpaudit
from dpaudit.reports import html, markdown
from dpaudit.reports.history import document, read_history
from dpaudit.results.saving import write_whole

TARGET = "release.py:count"
PAIRS = [(100, 101), (101, 100)]
SAMPLES, CONFIDENCE = 20_000, 0.999  # of each release
# Version, date, scale of the noise (a promise of 1 needs 1), and whether it is broken.
RELEASES = (
    ("1.0", "2026-01-12", 1.0, False),
    ("1.1", "2026-03-02", 1.0, False),
    ("1.2", "2026-05-18", 0.5, True),
    ("1.3", "2026-07-06", 0.5, True),
    ("1.4", "2026-09-21", 1.0, False),
)


def released(scale: float) -> Any:
    """The count with Laplace noise of this scale, as one release draws it."""

    def count(people: int, size: int, rng: np.random.Generator) -> np.ndarray:
        return people + scale * rng.laplace(size=size)

    return count


def main() -> int:
    """Audit the releases, write their history, and compare it with what was planted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("reports/history"))
    options = parser.parse_args()
    releases = options.out / "releases"
    is_as_planted = True
    for place, (version, date, scale, is_broken) in enumerate(RELEASES):
        result = dpaudit.audit(
            released(scale),
            dpaudit.PureDP(1.0),
            PAIRS,
            samples=SAMPLES,
            mode="fixed",
            confidence=CONFIDENCE,
            seed=options.seed + place,
            target=TARGET,
        )
        result.save(releases / version / "audit.json")
        write_whole(releases / version / "release.toml", f'version = "{version}"\ndate = {date}\n')
        is_as_planted &= (result.verdict == "violated") == is_broken
        print(f"{version}: {result.verdict}")
    told = document(read_history(releases), "releases of a noisy count")
    for name, page in (("html", html), ("md", markdown)):
        path = options.out / f"history.{name}"
        write_whole(path, page.render(told))
        print(f"Written: {path} ({path.stat().st_size:,} bytes)")
    return 0 if is_as_planted else 1


if __name__ == "__main__":
    sys.exit(main())
