"""Planted power against power that was had: the command `python -m dpaudit.bench.gallery.planted`.

Of leaks drawn from a family that plants are not made from (`dpaudit.bench.gallery.family`): how many of `PLANTS` leaks
of the same form, loss and mass are found that are planted into outputs of the leak without its loss, beside how many of
`AUDITS` audits find the leak itself.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import fisher_exact

import dpaudit
from dpaudit.bench.gallery.family import FamilyLeak, family
from dpaudit.campaign.planting import FORMS, Planting, Seen
from dpaudit.campaign.schedules import MODES, Mode
from dpaudit.features.outcomes import read_outputs
from dpaudit.privacy.claims import PureDP
from dpaudit.running.streams import stream

AUDITS, PLANTS = 20, 40
MASS, LOSSES = 0.1, (1.5, 2.0, 3.0, 4.5)  # of a leak in turn; the claim is 1
LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Compared:
    """One leak: how many plants of its form were found, and how many audits found itself."""

    leak: FamilyLeak
    planted: int
    had: int

    @property
    def is_within(self) -> bool:
        """Whether both shares may be one, by an exact test at 10%."""
        table = [[self.planted, PLANTS - self.planted], [self.had, AUDITS - self.had]]
        return float(fisher_exact(table)[1]) > 0.1

    def __str__(self) -> str:
        leak = self.leak
        shares = f"planted {self.planted:2d} of {PLANTS}, had {self.had:2d} of {AUDITS}"
        return (
            f"{leak.form:24s} {leak.kind:9s} loss {leak.loss:3.1f} {shares} {'' if self.is_within else '*'} {leak.name}"
        )


def planted(leak: FamilyLeak, samples: int, mode: Mode, seed: int) -> int | None:
    """Number of plants found in outputs of the leak without its loss; None where these have no such event."""
    sound = leak.with_loss(0.0, leak.mass)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    seen = Seen.of([read_outputs(sound.sample(data, samples, rng), samples) for data in (1, 0)])
    form = next((form for form in FORMS if form.name.endswith(leak.form) and form in seen.forms), None)
    if form is None:
        return None
    planting = Planting(seen, PureDP(1.0), LEVEL, mode)
    return sum(planting.is_found(form, leak.mass, leak.loss, stream(seed, 2, k)) for k in range(PLANTS))


def had(leak: FamilyLeak, samples: int, mode: Mode) -> int:
    """Number of audits that find the leak."""
    results = (
        dpaudit.audit(leak, "eps=1", [(1, 0)], samples=samples, mode=mode, seed=k, floating_point=False, severity=False)
        for k in range(AUDITS)
    )
    return sum(result.verdict == "violated" for result in results)


def compared(seed: int, count: int, samples: int, mode: Mode) -> Iterator[Compared | None]:
    """Leaks of the family one by one; None for one whose outputs have no event of its form."""
    for k, leak in enumerate(family(seed, count)):
        own = leak.with_loss(LOSSES[(k // 8 + k) % len(LOSSES)], MASS)
        found = planted(own, samples, mode, k)
        yield None if found is None else Compared(own, found, had(own, samples, mode))


def main(arguments: Sequence[str]) -> None:
    """Print each leak, and how often stated and had power agree."""
    parser = argparse.ArgumentParser(prog="python -m dpaudit.bench.gallery.planted", description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--leaks", type=int, default=40)
    parser.add_argument("--samples", type=int, default=4_000)
    parser.add_argument("--mode", choices=MODES, default="sequential")
    chosen = parser.parse_args(arguments)
    cells = []
    for one in compared(chosen.seed, chosen.leaks, chosen.samples, chosen.mode):
        if one is not None:
            cells.append(one)
            print(one, flush=True)
    share_planted = sum(cell.planted for cell in cells) / (PLANTS * len(cells))
    share_had = sum(cell.had for cell in cells) / (AUDITS * len(cells))
    within = sum(cell.is_within for cell in cells)
    print(f"{within} of {len(cells)} within; planted {share_planted:.2f}, had {share_had:.2f} in the mean")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
