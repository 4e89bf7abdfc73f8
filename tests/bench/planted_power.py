"""Planted power against power that was had: the command `python tests/bench/planted_power.py`.

Of leaks drawn from a family that plants are not made from (`leak_family`): how many of `PLANTS` leaks
of the same form, loss and mass are found that are planted into outputs of the leak without its loss, beside how many of
`AUDITS` audits find the leak itself. The stated power is the lower limit that a report gives of what was planted.
`--verdicts` counts the verdicts of audits with plants instead, where each leak has twice the claimed loss. `--beside`
gives each output a bit that tells the input up to the claim outside of the event, as mechanisms do that use all that
they may.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from hidden_forms import OUTSIDE
from leak_family import FamilyLeak, family
from scipy.special import expit
from scipy.stats import fisher_exact

import dpaudit
from dpaudit.arguments import MODES
from dpaudit.campaign.planting import SIZES, Planting, Seen, mass_of
from dpaudit.campaign.schedules import Mode
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.binomial import binomial_lower
from dpaudit.privacy.claims import PureDP
from dpaudit.results.model import AuditResult
from dpaudit.running.streams import stream

AUDITS, PLANTS = 20, 20
CLAIM, MASS, LOSSES, TWICE = 1.0, 0.1, (1.5, 2.0, 3.0, 4.5), 2.0  # losses of a leak in turn
LEVEL = 0.05


@dataclasses.dataclass(frozen=True)
class Beside:
    """A leak whose outputs have a bit more: randomised response at the claim outside of the event, a coin inside."""

    leak: FamilyLeak

    def __getattr__(self, name: str) -> Any:
        return getattr(self.leak, name)

    def with_loss(self, loss: float, mass: float) -> Beside:
        """The same with the leak of another loss and mass."""
        return Beside(self.leak.with_loss(loss, mass))

    def sample(self, data: int, size: int, rng: np.random.Generator) -> Any:
        """Outputs of the leak, with the bit as a last column, a last word, or an entry."""
        outputs = self.leak.sample(data, size, rng)
        is_outside = self.leak.where(outputs) == OUTSIDE
        bits = rng.random(size) < np.where(is_outside, expit(CLAIM if data else -CLAIM), 0.5)
        if isinstance(outputs, list):
            pairs = zip(outputs, bits.tolist(), strict=True)
            return [
                {**one, "asked": bit} if isinstance(one, dict) else f"{one} {('no', 'yes')[bit]}" for one, bit in pairs
            ]
        return np.column_stack([outputs, bits.astype(np.asarray(outputs).dtype)])


def matching(leak: FamilyLeak | Beside) -> str:
    """Name of the planted form that a leak is compared with: of intervals that with the nearest number of pieces."""
    if pieces := re.match(r"(\d+) (pieces|narrow|bands)", leak.name):
        a_half = min(SIZES.pieces, key=lambda count: abs(math.log(2 * count / int(pieces[1]))))
        return dict(zip(SIZES.pieces, ("intervals", "some intervals", "few intervals"), strict=True))[a_half]
    if leak.form == "number inside":
        return "single values" if "recur" in leak.name else "one level"
    return {"token": "a token", "direction": "a direction"}.get(leak.form, leak.form)


def planted(leak: FamilyLeak | Beside, samples: int, mode: Mode, seed: int) -> tuple[int, float] | None:
    """Number of plants found in outputs of the leak without its loss, and the mean of their masses; None where no such
    form decides of these.
    """
    sound = leak.with_loss(0.0, leak.mass)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
    seen = Seen.of([read_outputs(sound.sample(data, samples, rng), samples) for data in (1, 0)])
    form = next((form for form in seen.columns_by_form if form.name == matching(leak)), None)
    if form is None:
        return None
    planting, rngs = Planting(seen, PureDP(CLAIM), LEVEL, mode), [stream(seed, 2, k) for k in range(PLANTS)]
    events = [seen.event(form, leak.mass, rng) for rng in rngs]
    found = sum(planting.is_found(sides, leak.loss, rng) for sides, rng in zip(events, rngs, strict=True))
    return found, float(np.mean(list(map(mass_of, events))))


def audited(leak: FamilyLeak | Beside, seed: int, **options: Any) -> AuditResult:
    """One audit of a leak."""
    return dpaudit.audit(leak, PureDP(CLAIM), [(1, 0)], seed=seed, floating_point=False, severity=False, **options)


def main(arguments: Sequence[str]) -> None:
    """Print each leak of whose form there are plants, and how often stated and had power agree."""
    parser = argparse.ArgumentParser(prog="python tests/bench/planted_power.py", description=main.__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--leaks", type=int, default=40)
    parser.add_argument("--samples", type=int, default=4_000)
    parser.add_argument("--mode", choices=MODES, default="sequential")
    parser.add_argument("--verdicts", action="store_true")
    parser.add_argument("--beside", action="store_true")
    chosen = parser.parse_args(arguments)
    size: dict[str, Any] = {"samples": chosen.samples, "mode": chosen.mode}
    leaks: list[Any] = family(chosen.seed, chosen.leaks)
    leaks = [Beside(leak) for leak in leaks] if chosen.beside else leaks
    if chosen.verdicts:
        twice = (leak.with_loss(TWICE, MASS) for leak in leaks)
        print(Counter(audited(leak, chosen.seed, power="quick", **size).verdict for leak in twice))
        return
    figures = []
    for k, leak in enumerate(leaks):
        own = leak.with_loss(LOSSES[(k // 8 + k) % len(LOSSES)], MASS)
        if (plants := planted(own, seed=k, **size)) is None:
            continue
        found, mass = plants
        had = sum(audited(own, j, **size).verdict == "violated" for j in range(AUDITS))
        is_within = fisher_exact([[found, PLANTS - found], [had, AUDITS - had]])[1] > 0.1
        figures.append((found / PLANTS, binomial_lower(found, PLANTS, 0.05), had / AUDITS, is_within))
        shares = f"planted {found:2d} of {PLANTS} at {mass:.2g}, stated {figures[-1][1]:.2f}, had {had:2d} of {AUDITS}"
        print(
            f"{own.form:24s} {own.kind:9s} loss {own.loss:3.1f} {shares} {' *'[not is_within]} {own.name}", flush=True
        )
    of_plants, stated, of_audits, within = np.mean(figures, axis=0)
    too_high = sum(figure[1] > figure[2] + 0.1 for figure in figures)
    print(f"of {len(figures)}: {within:.0%} within; {too_high} stated more than 10 points too high")
    print(f"in the mean planted {of_plants:.2f}, stated {stated:.2f}, had {of_audits:.2f}")


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
