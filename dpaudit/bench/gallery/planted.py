"""Planted power against power that was had: the command `python -m dpaudit.bench.gallery.planted`.

Of leaks drawn from a family that plants are not made from (`dpaudit.bench.gallery.family`): how many of `PLANTS` leaks
of the same form, loss and mass are found that are planted into outputs of the leak without its loss, beside how many of
`AUDITS` audits find the leak itself. The stated power of a cell is the lower end of the interval of what was planted.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import fisher_exact

import dpaudit
from dpaudit.bench.gallery.family import FamilyLeak, family
from dpaudit.campaign.planting import Planting, Seen
from dpaudit.campaign.schedules import MODES, Mode
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.binomial import binomial_lower
from dpaudit.privacy.claims import PureDP
from dpaudit.running.streams import stream

AUDITS, PLANTS = 10, 20
MASS, LOSSES = 0.1, (1.5, 2.0, 3.0, 4.5)  # of a leak in turn; the claim is 1
LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Compared:
    """One leak: how many plants of its form were found, and how many audits found itself."""

    leak: FamilyLeak
    planted: int
    had: int

    @property
    def stated(self) -> float:
        """What a report says of the plants: the lower limit of the probability that one is found."""
        return binomial_lower(self.planted, PLANTS, 0.05)

    @property
    def is_within(self) -> bool:
        """Whether both shares may be one, by an exact test at 10%."""
        table = [[self.planted, PLANTS - self.planted], [self.had, AUDITS - self.had]]
        return float(fisher_exact(table)[1]) > 0.1

    def __str__(self) -> str:
        leak = self.leak
        shares = f"planted {self.planted:2d} of {PLANTS}, stated {self.stated:.2f}, had {self.had:2d} of {AUDITS}"
        return (
            f"{leak.form:24s} {leak.kind:9s} loss {leak.loss:3.1f} {shares} {'' if self.is_within else '*'} {leak.name}"
        )


def planted(leak: FamilyLeak, samples: int, mode: Mode, seed: int) -> int | None:
    """Number of plants found in outputs of the leak without its loss; None where no such form decides of these."""
    sound = leak.with_loss(0.0, leak.mass)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    seen = Seen.of([read_outputs(sound.sample(data, samples, rng), samples) for data in (1, 0)])
    form = next((form for form in seen.forms if form.is_expected and form.name.endswith(leak.form)), None)
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
    """Leaks of the family one by one; None for one whose form does not decide."""
    for k, leak in enumerate(family(seed, count)):
        own = leak.with_loss(LOSSES[(k // 8 + k) % len(LOSSES)], MASS)
        found = planted(own, samples, mode, k)
        yield None if found is None else Compared(own, found, had(own, samples, mode))


def main(arguments: Sequence[str]) -> None:
    """Print each leak whose form decides, and how often stated and had power agree."""
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
    figures = [(cell.planted / PLANTS, cell.stated, cell.had / AUDITS) for cell in cells]
    planted_share, stated, found = np.mean(figures, axis=0)
    within = sum(cell.is_within for cell in cells)
    above = sum(cell.stated > cell.had / AUDITS + 0.1 for cell in cells)
    print(f"{within} of {len(cells)} within; {above} stated more than 10 points too high")
    print(f"in the mean planted {planted_share:.2f}, stated {stated:.2f}, had {found:.2f}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
