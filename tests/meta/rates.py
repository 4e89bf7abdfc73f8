"""The auditor audited: how often it cries wolf, and how often one of its bounds exceeds the truth.

Each set runs many small audits, at confidence 0.95, of a mechanism that sits exactly on its budget, so that any
"violated" is a false alarm, and compares every bound of every audit with its true value. Run it for the table of
docs/measurements/error-rates.md:

    python tests/meta/rates.py --audits 2000 --out reports/meta.json

Truths are closed forms: the mechanism's own exact loss, its exact profile inverted, or its exact Renyi divergence.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

import dpaudit
from dpaudit.exact.finite import renyi_divergence
from dpaudit.privacy.claims import REPORT_DELTA, epsilon_of_profile
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.randomised_response import RandomisedResponse

CONFIDENCE = 0.95
AUDITS = 2_000
ROOT_SEED = 20_261_121


@dataclasses.dataclass(frozen=True)
class OnBudget:
    """A mechanism exactly on its budget, and the truths of its bounds.

    `truth` gives the exact value of the claim's parameter for a pair, `epsilon` the exact epsilon at the report delta.
    """

    name: str
    mechanism: Any
    claim: dpaudit.Claim
    pairs: list[Any]
    truth: Callable[[dpaudit.Finding], float]
    epsilon: Callable[[dpaudit.Finding], float]
    samples: int = 200
    mode: str = "sequential"


def _own_budget(finding: dpaudit.Finding) -> float:
    return finding.parameter_budget


def noisy_bits(data: list[int], size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Randomised response on each bit: an epsilon of 1 / 6 each, together exactly 1 where all differ."""
    kept = rng.random((size, len(data))) < special.expit(1.0 / 6.0)
    return np.where(kept, data, 1 - np.asarray(data))


def response_divergence(order: float) -> float:
    """The exact Renyi divergence of binary randomised response at epsilon = 1."""
    response = RandomisedResponse(1.0, categories=2)
    return float(renyi_divergence(response.distribution(0), response.distribution(1), order))


def response_rho() -> float:
    """The exact rho of binary randomised response at epsilon = 1: the largest divergence over its order, r > 1."""
    found = optimize.minimize_scalar(lambda r: -response_divergence(r) / r, bounds=(1.0 + 1e-6, 50.0), method="bounded")
    return float(max(-found.fun, response_divergence(1.0 + 1e-6)))


def _constant(value: float) -> Callable[[dpaudit.Finding], float]:
    return lambda finding: value


def sets() -> Iterator[OnBudget]:
    """The sets of the issue, and those where an auditor is most easily fooled."""
    one = dpaudit.PureDP(1.0)
    universe = [0.0, 0.5, 1.0]
    metric = dpaudit.MetricDP(lambda x, y: abs(x - y))
    approx = dpaudit.ApproxDP(1.0, 0.05)
    mu, rho = dpaudit.GaussianDP(1.0), dpaudit.ZeroConcentratedDP(0.5)
    normal = epsilon_of_profile(mu.profile, REPORT_DELTA)
    for mode in ("sequential", "fixed"):
        yield OnBudget(f"Laplace, {mode}", Laplace(1.0), one, [(0.0, 1.0)], _own_budget, _own_budget, mode=mode)
        yield OnBudget(
            f"4-ary randomised response, {mode}",
            RandomisedResponse(1.0, categories=4),
            one,
            [(0, 1)],
            _own_budget,
            _own_budget,
            mode=mode,
        )
        yield OnBudget(f"geometric, {mode}", Geometric(1.0), one, [(0, 1)], _own_budget, _own_budget, mode=mode)
        yield OnBudget(
            f"analytic Gaussian (1, 0.05), {mode}",
            Gaussian(approx),
            approx,
            [(0.0, 1.0)],
            _own_budget,
            _own_budget,
            mode=mode,
        )
        yield OnBudget(
            f"Gaussian at mu = 1, {mode}", Gaussian(mu), mu, [(0.0, 1.0)], _own_budget, _constant(normal), mode=mode
        )
        yield OnBudget(
            f"Laplace, 3 pairs of 3 shared inputs, {mode}",
            Laplace(1.0),
            metric,
            dpaudit.all_pairs(universe),
            _own_budget,
            _own_budget,
            mode=mode,
        )
    pairs = [(0, k) for k in range(1, 4)] + [(1, 2)]
    yield OnBudget(
        "4-ary randomised response, 4 pairs, adaptive",
        RandomisedResponse(1.0, categories=4),
        one,
        pairs,
        _own_budget,
        _own_budget,
        mode="adaptive",
    )
    yield OnBudget(
        "6 bits that answer near their input, sequential",
        noisy_bits,
        one,
        [([0] * 6, [1] * 6)],
        _own_budget,
        _own_budget,
    )
    yield OnBudget(
        "randomised response, epsilon = 1, against 0.5-zCDP",
        RandomisedResponse(1.0, categories=2),
        rho,
        [(0, 1)],
        _constant(response_rho()),
        _constant(1.0),
    )
    yield OnBudget(
        "randomised response at its exact Renyi divergence of order 2",
        RandomisedResponse(1.0, categories=2),
        dpaudit.RenyiDP(2.0, response_divergence(2.0)),
        [(0, 1)],
        _own_budget,
        _constant(1.0),
    )
    yield OnBudget("Gaussian at 0.5-zCDP", Gaussian(rho), rho, [(0.0, 1.0)], _own_budget, _constant(normal))


def one_audit(case: OnBudget, number: int) -> tuple[bool, bool]:
    """Whether one audit of the set raised a false alarm, and whether any of its bounds exceeded its truth."""
    seed = int(np.random.SeedSequence(ROOT_SEED, spawn_key=(number,)).generate_state(1)[0])
    result = dpaudit.audit(
        case.mechanism, case.claim, case.pairs, samples=case.samples, mode=case.mode, confidence=CONFIDENCE, seed=seed
    )
    # 1e-9: the truths are computed in double precision, the bounds are bisected to 1e-7 and rounded down
    above = any(
        finding.parameter_lower > case.truth(finding) * (1.0 + 1e-9)
        or finding.epsilon_lower > case.epsilon(finding) * (1.0 + 1e-9)
        for finding in result.findings
    )
    return result.verdict == "violated", above


def p_value(count: int, audits: int, rate: float = 1.0 - CONFIDENCE) -> float:
    """P(Binomial(audits, rate) >= count): small only if the true rate exceeds the promised one."""
    return float(stats.binom.sf(count - 1, audits, rate))


def measure(case: OnBudget, audits: int, jobs: int = 1) -> dict[str, Any]:
    """Counts and rates of false alarms and of bounds above the truth, over `audits` audits of one set."""
    if jobs == 1:
        outcomes = [one_audit(case, number) for number in range(audits)]
    else:  # cases hold closures: cut the numbers into parts and let loky carry them over
        numbers = np.array_split(np.arange(audits), jobs)
        parts = joblib.Parallel(n_jobs=jobs)(
            joblib.delayed(lambda part: [one_audit(case, int(number)) for number in part])(part) for part in numbers
        )
        outcomes = [outcome for part in parts for outcome in part]
    alarms, above = (int(sum(column)) for column in zip(*outcomes, strict=True))
    return {
        "set": case.name,
        "audits": audits,
        "promised": round(1.0 - CONFIDENCE, 12),
        "false_alarms": alarms,
        "false_alarm_rate": alarms / audits,
        "bounds_above_truth": above,
        "above_rate": above / audits,
        "p_value": min(p_value(alarms, audits), p_value(above, audits)),
    }


def main() -> None:
    """Measure all sets, print the manual's table, and write the figures as JSON where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=AUDITS)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    jobs = joblib.cpu_count() if options.jobs == -1 else options.jobs
    rows = []
    print("| mechanism exactly on its budget | audits | false alarms | bounds above the truth | promised |")
    print("| --- | --- | --- | --- | --- |")
    for case in sets():
        row = measure(case, options.audits, jobs)
        rows.append(row)
        print(
            f"| {row['set']} | {row['audits']:,} | {row['false_alarms']} ({row['false_alarm_rate']:.2%}) "
            f"| {row['bounds_above_truth']} ({row['above_rate']:.2%}) | at most {row['promised']:.0%} |",
            flush=True,
        )
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps({"command": "python tests/meta/rates.py", "rows": rows}, indent=1) + "\n")
    worst = min(row["p_value"] for row in rows)
    assert math.isfinite(worst)


if __name__ == "__main__":
    main()
