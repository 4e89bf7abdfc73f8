"""The design of a bench run, fixed before anything is measured: how many seeds, draws and audits, and the targets.

A run states its design in `bench.json`; `--resume` goes on only under the same one.
"""

from __future__ import annotations

import dataclasses
import zlib

from dpaudit.arguments import whole_number

PARTS = ("draws", "bounds", "alarms", "classics")  # measured problem by problem
CONFIDENCE = 0.95
TARGETS = {  # what `dpaudit bench` prints its figures against
    "draws ratio, median": 1.5,
    "draws ratio, worst": 5.0,
    "shortfall, median": 1.0,
    "shortfall, worst": 3.0,
    "false alarms": 0.05,
    "overhead": 1.5,
    "memory": 1.2,
}


@dataclasses.dataclass(frozen=True)
class Design:
    """Sizes of all measurements; draws are draws a side."""

    seed: int = 0  # from which that of every audit is derived, with the problem, the part and the number of the audit
    seeds: int = 20  # sequential audits of a faulty problem
    cap_factor: float = 8.0  # times the optimum's draws, within the two caps, that a sequential audit may take
    least_cap: int = 2_000
    most_cap: int = 3_000_000
    unknown_cap: int = 100_000  # where there is no optimum
    bound_seeds: int = 5  # fixed audits of a problem
    doubtful_seeds: int = 20  # where the first of these leave it in doubt whether the bound is near the optimum's
    bound_draws: int = 100_000
    alarm_samples: int = 200  # of the small audits of sound problems
    alarm_audits: int = 100  # of each problem that is not tight
    tight_audits: int = 10_000  # of all tight ones together, spread evenly
    counted_from: int = 100  # draws that the optimum must need for a problem to count in the overall ratios
    classic_seeds: int = 9  # fixed audits of a classic subject
    runs_share: float = 0.05  # of another tool's runs that each of these may take
    most_runs: float = 2e7  # the same as a number, for quick runs
    overhead_draws: int = 1_000_000  # labelled draws of the audit whose time is compared with drawing them
    overhead_repeats: int = 5
    long_draws: int = 100_000_000  # of one long audit, in which what an audit costs once no longer counts
    overhead_calls: int = 1_000_000  # of an audit of calls with one output each
    memory_draws: tuple[int, int] = (1_000_000, 100_000_000)  # of the two audits whose peak memory is compared

    def audit_seed(self, problem: str, part: str, number: int) -> int:
        """The seed of one audit: the same whatever else is measured, and by whatever process."""
        return zlib.crc32(f"{self.seed}/{part}/{problem}/{number}".encode())

    def cap(self, optimum: float | None) -> int:
        """Draws a side that a sequential audit may take."""
        if optimum is None:
            return min(self.unknown_cap, self.most_cap)
        return int(min(max(self.cap_factor * optimum, self.least_cap), self.most_cap))


QUICK = Design(
    seeds=2,
    most_cap=10_000,
    unknown_cap=10_000,
    bound_seeds=1,
    doubtful_seeds=1,
    bound_draws=5_000,
    alarm_audits=2,
    tight_audits=100,
    classic_seeds=1,
    most_runs=20_000,
    overhead_draws=200_000,
    overhead_repeats=1,
    long_draws=500_000,
    overhead_calls=20_000,
    memory_draws=(20_000, 200_000),
)


def make_design(quick: bool = False, seeds: int | None = None, seed: int = 0) -> Design:
    """The design of a run from the command line's options.

    `UsageError` if seeds is below 1 or seed below 0.
    """
    design = QUICK if quick else Design()
    seeds = whole_number("seeds", design.seeds if seeds is None else seeds, "at least 1", 1)
    return dataclasses.replace(design, seed=whole_number("seed", seed, "at least 0", 0), seeds=seeds)
