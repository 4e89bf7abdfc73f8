"""Draws that an audit takes to find an event of each form, over those of a witness who knows it: the command.

`python tests/bench/power_curve.py` measures and writes `dpaudit/inference/learned_power.json`, `--mode` one mode
alone; with `--held-out` it audits problems that had no part in it at the loss that the file says is found with 90%, and
prints how often it was.

Sequential mode: audits of a loss that a witness would find in an eighth of the draws, or in a quarter or half of them
where an eighth shows no loss at all; the times are the largest but one of the draws at which `SEEDS` audits stop, over
that part. What was not found counts as infinite. What is found with 80% is found by 19 of 20 audits in one case of
fourteen.

Fixed mode: the least of `TIMES`, by bisection, at which all but `MISSED` of `SEEDS` audits find the loss that a witness
finds in so many times fewer draws. A fixed audit has one look, so that how many find a loss hardly depends on the times
where the fit goes wrong now and then: few audits measured chance.

Of several budgets the largest counts, times `CAUTION`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from hidden_forms import DEVELOPMENT, HELD_OUT, Form, Hidden

import dpaudit
from dpaudit.audits.power import game_before_draws
from dpaudit.bench.design import CONFIDENCE
from dpaudit.campaign.schedules import Mode, schedule_of
from dpaudit.inference import learned_power
from dpaudit.privacy.claims import PureDP

# Audits of a case, and how many of them may miss a loss that is called found. A loss that a fixed audit misses in one
# case of ten is called found with probability 2.4%.
SEEDS: dict[Mode, int] = {"sequential": 20, "fixed": 100}
MISSED: dict[Mode, int] = {"sequential": 1, "fixed": 4}
FIRST_SEED = 1_000
# Labelled draws of an audit and budgets (epsilons) that are measured together: small budgets where few draws are taken,
# where a small loss is the hard case and a larger budget allows no loss that so few draws could show.
# A fixed test has its rule from the first draws alone, and goes on getting better with more of them.
CASES: dict[Mode, tuple[tuple[int, float], ...]] = {
    "sequential": ((2_000, 0.25), (8_000, 1.0)),
    "fixed": ((2_000, 0.25), (8_000, 1.0), (32_000, 1.0)),
}
TIMES = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0)
SHARES = (8.0, 4.0, 2.0)
CAUTION = 1.2
PROBABILITY, MASS = 0.9, 0.1
HELD_OUT_CASES, HELD_OUT_SEEDS = ((5_000, 0.5), (20_000, 2.0), (60_000, 1.0)), 20  # seeds from 0 on


def tested_draws(draws: int, mode: Mode) -> int:
    """Labelled draws of the test in an audit of so many in all."""
    schedule = schedule_of(mode, draws // 2, 1, 2)
    return schedule.planned - schedule.pilot


def loss_known(epsilon: float, draws: int, mode: Mode, times: float) -> float:
    """The loss that a witness who knows the event finds in so many times fewer draws."""
    game = game_before_draws(PureDP(epsilon), tested_draws(draws, mode), mode, 1.0 - CONFIDENCE).main
    return learned_power.with_fewer_draws(game, times).power(MASS, PROBABILITY)[0]


def stops(form: Form, loss: float, epsilon: float, draws: int, mode: Mode, seed: int) -> float:
    """Labelled draws after which one audit finds the loss; inf where it does not."""
    result = dpaudit.audit(
        Hidden(form, loss, MASS),
        PureDP(epsilon),
        [(1, 0)],
        samples=draws // 2,
        mode=mode,
        confidence=CONFIDENCE,
        seed=seed,
        floating_point=False,
        severity=False,
    )
    finding = result.findings[0]
    return float(finding.samples) if finding.verdict == "violated" else math.inf


def times_sequential(form: Form, epsilon: float, draws: int) -> float:
    """Draws of a sequential audit over those of a witness, with about so many of its own as a scale."""
    losses = {share: loss_known(epsilon, draws, "sequential", share) for share in SHARES}
    share = next((share for share in SHARES if math.isfinite(losses[share])), None)
    if share is None:
        return math.inf
    taken: list[float] = []
    for k in range(SEEDS["sequential"]):
        taken.append(stops(form, losses[share], epsilon, draws, "sequential", FIRST_SEED + k))
        if taken.count(math.inf) > MISSED["sequential"]:
            return math.inf
    return share * sorted(taken)[-1 - MISSED["sequential"]] / draws


def times_fixed(form: Form, epsilon: float, draws: int) -> float:
    """The same of a fixed audit of so many draws: by bisection, the least of `TIMES` at whose loss audits find it."""
    low, high = -1, len(TIMES)
    while high - low > 1:
        middle = (low + high) // 2
        is_found = _is_found(form, loss_known(epsilon, draws, "fixed", TIMES[middle]), epsilon, draws)
        low, high = (low, middle) if is_found else (middle, high)
    finite = high < len(TIMES) and math.isfinite(loss_known(epsilon, draws, "fixed", TIMES[high]))
    return TIMES[high] if finite else math.inf


def _is_found(form: Form, loss: float, epsilon: float, draws: int) -> bool:
    """Tell whether all but `MISSED` fixed audits find the loss; an infinite one is none to look for, and counts."""
    if math.isinf(loss):
        return True
    missed = 0
    for k in range(SEEDS["fixed"]):
        missed += math.isinf(stops(form, loss, epsilon, draws, "fixed", FIRST_SEED + k))
        if missed > MISSED["fixed"]:
            return False
    return True


MEASURES: dict[str, Callable[[Form, float, int], float]] = {"sequential": times_sequential, "fixed": times_fixed}


Case = tuple[str, int, float, int]  # mode, position of the form, epsilon, labelled draws


def one(case: Case) -> float:
    """The measured times of a case."""
    mode, form, epsilon, draws = case
    return MEASURES[mode](DEVELOPMENT[form], epsilon, draws)


def measured(jobs: int, modes: Sequence[Mode]) -> dict[Case, float]:
    """All times of these modes."""
    forms = range(len(DEVELOPMENT))
    cases = [(mode, form, epsilon, draws) for mode in modes for draws, epsilon in CASES[mode] for form in forms]
    with ProcessPoolExecutor(jobs) as pool:
        return dict(zip(cases, pool.map(one, cases), strict=True))


def record_of(found: dict[Case, float], known: dict[str, Any] | None = None) -> dict[str, Any]:
    """Record that the package keeps: by form and mode, draws of the test with the times from there on; null for none.

    Times are with `CAUTION`, and of several budgets at the same draws the largest. A mode not measured stays as it is
    `known`.
    """
    modes = {of_mode for of_mode, *_ in found}
    forms: dict[str, dict[str, list[list[float | None]]]] = {}
    for place, form in enumerate(DEVELOPMENT):
        curves = forms.setdefault(form.name, {})
        for mode in CASES:
            if known is not None and mode not in modes:
                curves[mode] = known["forms"][form.name][mode]
                continue
            worst: dict[int, float] = {}
            for (of_mode, of_form, _, draws), times in found.items():
                if (of_mode, of_form) == (mode, place):
                    worst[draws] = max(worst.get(draws, 0.0), CAUTION * times)
            curves[mode] = [
                [tested_draws(draws, mode), None if math.isinf(times) else round(times, 2)]
                for draws, times in sorted(worst.items())
            ]
    about: dict[str, Any] = {"event_mass": MASS, "probability": PROBABILITY, "caution": CAUTION}
    of_modes: dict[str, dict[Any, Any]] = {"seeds": {**SEEDS}, "least_audits": {**SEEDS}, "cases": {**CASES}}
    for name, own in of_modes.items():  # a mode that was not measured has those that it was measured with
        own |= {mode: known[name][mode] for mode in CASES if known is not None and mode not in modes}
    return {**about, **of_modes, "forms": forms}


def held_out(form: Form, epsilon: float, draws: int, mode: Mode, seeds: int) -> tuple[float, int]:
    """The loss that is said to be found with 90% of a form that had no part in it, and how many audits found it."""
    game = game_before_draws(PureDP(epsilon), tested_draws(draws, mode), mode, 1.0 - CONFIDENCE).main
    loss = dict(learned_power.learned_losses(game, MASS, PROBABILITY, mode == "fixed"))[form.name]
    if math.isinf(loss):
        return loss, 0
    return loss, sum(math.isfinite(stops(form, loss, epsilon, draws, mode, k)) for k in range(seeds))


def main(arguments: Sequence[str]) -> None:
    """Measure the curve and write it, or audit what had no part in it."""
    parser = argparse.ArgumentParser(prog="python tests/bench/power_curve.py", description=main.__doc__)
    parser.add_argument("--held-out", action="store_true", help="audit other problems at the losses of the file")
    parser.add_argument("--mode", choices=list(CASES), help="of the modes this one alone")
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args(arguments)
    modes: list[Mode] = [mode for mode in CASES if chosen.mode in (None, mode)]
    if not chosen.held_out:
        path = Path(learned_power.__file__).with_name(learned_power.DATA)
        known = json.loads(path.read_text(encoding="utf-8"))
        record = record_of(measured(chosen.jobs, modes), known)
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        return
    for mode in modes:
        for form in HELD_OUT:
            for draws, epsilon in HELD_OUT_CASES:
                loss, found = held_out(form, epsilon, draws, mode, HELD_OUT_SEEDS)
                said = "no loss promised" if math.isinf(loss) else f"{loss:.3g}: {found} of {HELD_OUT_SEEDS}"
                print(f"{mode:10s} {form.name:18s} eps={epsilon:<5g} {draws:7,d} {said}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
