"""Power of an audit in its own outputs: leaks planted into them, and looked for as the audit did.

A table of general figures is the same for a number, a hundred bits and a text; what hides a leak is the output. So
where an audit refutes nothing, leaks of known loss and mass are planted into what it has seen (the stage behind the
dependence of draws; `dpaudit.campaign.planting` derives what that says). "Not refuted" then rests on them: of each form
that a reader would expect to be found, more than nine in ten plants of `inconclusive_factor` budgets have to be, 10 of
10 or 37 of 40. Let p be the probability that a leak is found, and that a plant is: a leak is missed, and called "not
refuted", with probability (1 - p) P(Bin(10, p) >= 10), at most .036 for every p; of 40 plants it is at most .049.
Where the labels of this audit outside of events make plants easier to find than leaks, it is more.

The pair that was tested least well, by a test that knows its event, is the one whose outputs are planted. Pairs of one
audit have outputs of one kind: the others have its figures, in the ratio of what such a test finds of them and of it.
Where it could not be found in this pair, they have the general ones.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from dpaudit.audits.audit_run import AuditRun
from dpaudit.audits.power import MASSES, power_of, samples_for
from dpaudit.campaign.planting import SIZES, PlantedForm, Planting, Seen, labelled_of, mass_of
from dpaudit.privacy.claims import number_text
from dpaudit.privacy.inputs import is_same_input
from dpaudit.results.model import ZERO_BUDGET_LOSS, LearnedLoss, PlantedCell, Power
from dpaudit.results.side_findings import SideFinding
from dpaudit.running.streams import PLANTS, stream

# Plants of a cell, which is a form, a mass and a loss: of 10 that are all found, the power is above .74 with 95%
# confidence, of 40 above .92.
N_PLANTS: Mapping[str, int] = {"quick": 10, "full": 40}
LOSS_STEP = 1.25  # of a map, from one loss to the next: a finer ladder has more cells
MAX_LOSS = 12.0  # nats: labels inside are as good as certain


def plant(run: AuditRun) -> dict[int, Power]:
    """The power of each game of which it can be said, by its place; none where nothing is left open."""
    games, options = run.games, run.options
    open_games = [k for k in range(len(games)) if _is_open(run, k)]
    if not open_games or run.shown is None or run.failure:
        return {}
    powers = {k: power_of(games[k], options.event_mass) for k in open_games}
    best = {k: dataclasses.replace(powers[k], learned=()).excess(options.inconclusive_factor) for k in open_games}
    hardest = max(open_games, key=lambda k: (best[k], -k))
    known = powers[hardest]
    seen = Seen.of(run.shown(games[hardest]))
    planting = Planting(seen, games[hardest].claim, games[hardest].level, options.mode)
    plants = _Plants(run, hardest, planting, known)
    is_findable = math.isfinite(known.detectable)
    if not is_findable or not any(form.is_expected for form in plants.forms):
        rare = f"outputs of total probability {number_text(known.event_mass)}"
        why = f"no event has {rare}"
        if not is_findable:
            needed = samples_for(
                games[hardest], options.mode, known, lambda power: math.isfinite(power.detectable), len(games)
            )
            why = f"{options.samples:,} samples are too few to find one in {rare}"
            why += "" if needed is None else f", {needed:,} would do"
        said = f"No leak was planted into the outputs: {why}. The table of the power is the general one."
        run.beside.append(SideFinding("planted_power", "not_applicable", said))
        return powers
    planted = plants.power()
    powers[hardest] = planted
    for k in open_games:
        if k != hardest and math.isfinite(planted.deciding) and math.isfinite(powers[k].detectable):
            times = powers[k].detectable / known.detectable
            learned = tuple(dataclasses.replace(o, loss=o.loss * times, found=0, plants=0) for o in planted.learned)
            powers[k] = dataclasses.replace(powers[k], learned=learned, planted_draws=planted.planted_draws)
    return powers


def _is_open(run: AuditRun, place: int) -> bool:
    game, is_control = run.games[place], all(is_same_input(run.pairs[k]) for k in run.groups[place])
    return not (game.is_violated or game.is_broken or game.unseen or place in run.withheld or is_control)


@dataclasses.dataclass
class _Plants:
    """The plants of one pair."""

    run: AuditRun
    place: int
    planting: Planting
    known: Power

    def __post_init__(self) -> None:
        self.plants = N_PLANTS[self.run.options.power]
        # Of a map all forms are planted, at losses on a ladder, and those that decide at the masses of the map as well.
        self.is_map = self.run.options.power == "full"
        self.cells: dict[tuple[str, float, float], PlantedCell] = {}  # by the mass that was asked for
        self.masses: dict[tuple[str, float], list[float]] = {}  # of the events of a form, by the same
        self.labelled = math.inf  # draws of the smallest game
        self.forms = [form for form in self.planting.seen.columns_by_form if self._mass(form, self.known.event_mass)]

    def _mass(self, form: PlantedForm, mass: float) -> float:
        """The mass of an event of this form that is planted where one of `mass` is asked for; 0 where there is none."""
        return mass_of(self.planting.seen.event(form, mass, stream(self.run.root, PLANTS, self.place)))

    def power(self) -> Power:
        """The power with what was planted."""
        mass, factor = self.known.event_mass, self.run.options.inconclusive_factor
        limit = factor * self.known.at_budget if self.known.at_budget > 0.0 else ZERO_BUDGET_LOSS
        learned = []
        for form in self.forms:
            if not (form.is_expected or self.is_map):
                continue
            suffices = self._suffices(form, mass, limit)  # what the verdict asks, whatever is found of other losses
            others = self._ladder(self.known.detectable) if self.is_map else []
            other = self._least(form, mass, [loss for loss in others if (loss < limit) == suffices])
            found = limit if suffices and other is None else other
            own = [self._stated(key) for key in self.cells if key[:2] == (form.name, mass)]
            cell = max((cell for cell in own if found in (None, cell.loss)), key=lambda cell: cell.loss)
            facts = form.name, math.inf if found is None else found, cell.found, cell.plants, form.is_expected
            learned.append(LearnedLoss(*facts, None if cell.event_mass == mass else cell.event_mass))
        for other_mass in MASSES if self.is_map else ():
            least, _ = self.run.games[self.place].main.power(other_mass, self.known.probability)
            for form in self.forms if other_mass != mass and math.isfinite(least) else ():
                if form.is_expected and _stated(self._mass(form, other_mass), other_mass) == other_mass:
                    self._least(form, other_mass, self._ladder(least))
        return dataclasses.replace(
            self.known,
            learned=tuple(learned),
            cells=tuple(sorted(map(self._stated, self.cells), key=lambda one: (one.form, -one.event_mass, one.loss))),
            planted_draws=int(self.labelled),
        )

    def _ladder(self, least: float) -> list[float]:
        """Losses from what a test finds that knows the event to the largest."""
        steps = math.ceil(math.log(max(MAX_LOSS / least, 1.0), LOSS_STEP))
        return [least * LOSS_STEP**k for k in range(steps + 1)]

    def _least(self, form: PlantedForm, mass: float, losses: list[float]) -> float | None:
        """The least of these losses, which rise, of which enough plants are found, by bisection."""
        low, high = -1, len(losses)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self._suffices(form, mass, losses[middle]) else (middle, high)
        return losses[high] if high < len(losses) else None

    def _suffices(self, form: PlantedForm, mass: float, loss: float) -> bool:
        """Say whether enough plants of one cell are found; no more are planted once they cannot be."""
        key = form.name, mass, loss
        may_miss = self.plants * (1.0 - self.known.probability) - 1e-9
        found = plants = 0
        while key not in self.cells and plants < self.plants and plants - found < may_miss:
            rng = stream(self.run.root, PLANTS, self.place, len(self.cells), plants)
            event = self.planting.seen.event(form, mass, rng)
            found, plants = found + self.planting.is_found(event, loss, rng), plants + 1
            self.masses.setdefault(key[:2], []).append(mass_of(event))
            self.labelled = min(self.labelled, labelled_of(event))
        return self.cells.setdefault(key, PlantedCell(*key, found, plants)).suffices(self.known.probability)

    def _stated(self, key: tuple[str, float, float]) -> PlantedCell:
        """The cell with the mean mass of all events of its form that were asked for this mass."""
        masses = self.masses[key[:2]]
        return dataclasses.replace(self.cells[key], event_mass=_stated(sum(masses) / len(masses), key[1]))


def _stated(had: float, asked: float) -> float:
    """The mass of events as it is stated: what was asked for, where they have about as much."""
    return asked if 1.0 / SIZES.near <= had / asked <= SIZES.near else float(f"{had:.2g}")
