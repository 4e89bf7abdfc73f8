"""The error bounds of every mechanism: how much of each is used, its verdict, and that of a twin of less budget.

`python tests/mechanisms/utility_measurements.py` makes docs/measurements/utility.md, from the list of
`tests/support/reference_mechanisms.py`, with a tenth of a percent for all of it together.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from support.reference_mechanisms import EVERY

import dpaudit
from dpaudit import UtilityBound
from dpaudit_mechanisms.accuracy import with_budget
from dpaudit_mechanisms.faulty.another_budget import SpendsAnotherBudget
from dpaudit_mechanisms.faulty.mwem import MWEMIgnoresTheData
from dpaudit_mechanisms.mwem import MWEM
from dpaudit_mechanisms.sparse_vector import SparseVector
from dpaudit_mechanisms.two_metrics.finite import LevelMechanism

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "utility.md"
MAX_DRAWS, RARE_DRAWS, SEED = 2_000, 40_000, 20_261_128
HEAD = """# The error bounds of every mechanism

`python tests/mechanisms/utility_measurements.py` makes this page. "Used" is the largest measured loss over its limit
(of a tail bound: the measured share of draws that miss it over the share that may). The twin draws with the
share of the budget that is named, and is as private; that of MWEM does not look at the data. Seed {seed},
at most {draws:,} draws of each bound on each input, and {rare:,} between finite spaces.

| mechanism | bound | used | verdict | twin has | its verdict |
| --- | --- | --: | --- | --: | --- |
"""


def cases() -> list[tuple[str, Any, Any, list[UtilityBound], str, int]]:
    """Name, mechanism, twin, bounds, what the twin does, draws."""
    found = [
        (
            f"{type(one).__name__} ({name})",
            one,
            SpendsAnotherBudget(one, share),
            one.utility_bounds(),
            f"{share:g}",
            draws,
        )
        for name, (one, share, draws) in EVERY.items()
    ]
    wide = {"queries": np.random.default_rng(2).random((400, 2)) / 0.05, "metric": [[0.0, 20.0], [20.0, 0.0]]}
    options = {**wide, "c": 0.05, "rounds": 20, "records": 1_000}
    learner = MWEM(**options)
    found.append(("MWEM", learner, MWEMIgnoresTheData(**options), learner.utility_bounds(), "no data", MAX_DRAWS))
    above, counts = SparseVector(1.0, 50.0, most=2), list(range(8))
    sessions = [dpaudit.as_sessions(one, counts) for one in (above, with_budget(above, 0.3))]
    return [*found, ("SparseVector", *sessions, above.utility_bounds(), "0.3", MAX_DRAWS)]


def main() -> None:
    """Audit every mechanism and its twin, and write the page."""
    confidence = 1.0 - 0.001 / (len(EVERY) + 2)
    rows = []
    for name, mechanism, other, bounds, what, draws in cases():
        # Between finite spaces most outputs have no error at all: what is rare takes more draws.
        size = RARE_DRAWS if isinstance(mechanism, LevelMechanism) else min(draws, MAX_DRAWS)
        options = {"samples": size, "confidence": confidence, "seed": SEED}
        sound, twin = (dpaudit.audit_utility(one, bounds, **options) for one in (mechanism, other))
        for bound in sound.bounds:
            found = [finding for finding in sound.findings if finding.bound == bound.split(":")[0]]
            used = max((one.measured / one.allowed for one in found if one.allowed > 0.0), default=0.0)
            verdicts = {one.verdict for one in found}
            verdict = next(v for v in ("error", "violated", "inconclusive", "not_refuted") if v in verdicts)
            says = " (says nothing)" if any(one.says_nothing for one in found) else ""
            row = f"| {name} | {bound} | {used:.2f} | {verdict.replace('_', ' ')}{says} | {what} | {twin.verdict} |"
            rows.append(row)
            print(row, flush=True)
    PAGE.write_text(HEAD.format(seed=SEED, draws=MAX_DRAWS, rare=RARE_DRAWS) + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
