"""The auditor audited: how often it cries wolf, and how often one of its bounds exceeds the truth.

Each set runs many small audits, at confidence 0.95, of a mechanism that sits exactly on its budget, so that any
"violated" is a false alarm, and compares every bound of every audit with its true value.

    make rates SECONDS=60

gives each set as many processor seconds, adds the audits to reports/meta.json, on seeds that no run before has spent,
and writes the table of docs/measurements/error-rates.md. The file is written after every part of a set, so a run may
be ended at any time.

Truths are closed forms: the mechanism's own exact loss, its exact profile inverted, or its exact Renyi divergence.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import hashlib
import json
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
# How the seed of an audit follows from its number: what the record says of spent seeds.
SEEDS = f"SeedSequence({ROOT_SEED}, spawn_key=(first 4 bytes of sha256(set), number)), 64 bits"
BEGIN, END = "<!-- rates: begin -->", "<!-- rates: end -->"


@dataclasses.dataclass(frozen=True)
class OnBudget:
    """A mechanism exactly on its budget, and the truths of its bounds.

    `truth` gives the exact value of the claim's parameter for a pair, `epsilon` the exact epsilon at the report delta.
    """

    name: str
    mechanism: Any
    claim: Any
    pairs: list[Any]
    truth: Callable[[dpaudit.Finding], float]
    epsilon: Callable[[dpaudit.Finding], float]
    samples: int = 200
    mode: str = "sequential"
    most: int = AUDITS  # audits that a test may make of it
    play: Callable[[OnBudget, int], tuple[bool, bool]] | None = None  # one audit, of a seed; a call of `dpaudit.audit`


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
    many = RandomisedResponse(1.0, categories=65)
    yield OnBudget(
        "65-ary randomised response, a universe of 2,080 pairs",
        many,
        one,
        [(i, j) for i in range(65) for j in range(i)],
        _own_budget,
        _own_budget,
        most=4,
    )
    four = RandomisedResponse(1.0, categories=4)
    yield OnBudget("4-ary randomised response, three nights", four, one, [(0, 1)], _own_budget, _own_budget,
                   most=100, play=three_nights)  # fmt: skip
    yield OnBudget("Laplace, a witness replayed", Laplace(1.0), one, [(0.0, 1.0)], _own_budget, _own_budget,
                   play=one_replay)  # fmt: skip
    tail = dpaudit.UtilityBound("tail", the_loss, 2.0, failure_probability=math.exp(-2.0))
    yield OnBudget("exponential losses, a bound on the tail", exponential_losses, tail, [0.0],
                   _constant(math.exp(-2.0)), _constant(math.inf), play=one_bound)  # fmt: skip
    mean = dpaudit.UtilityBound("mean", the_loss, 1.0, standard_deviation=math.sqrt(99.0))
    yield OnBudget("rare losses, a bound on the mean", rare_losses, mean, [0.0], _constant(1.0), _constant(math.inf),
                   play=one_bound)  # fmt: skip


def seed_of(name: str, number: int) -> int:
    """The seed of an audit of a set, 64 bits: no two sets and no two numbers share one (but by a chance of 1e-9)."""
    of_set = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "little")
    return int(np.random.SeedSequence(ROOT_SEED, spawn_key=(of_set, number)).generate_state(1, np.uint64)[0])


def one_audit(case: OnBudget, number: int) -> tuple[bool, bool]:
    """Whether one audit of the set raised a false alarm, and whether any of its bounds exceeded its truth."""
    return (case.play or one_call)(case, seed_of(case.name, number))


def one_call(case: OnBudget, seed: int, **options: Any) -> tuple[bool, bool]:
    """One call of `dpaudit.audit`."""
    result = dpaudit.audit(
        case.mechanism,
        case.claim,
        case.pairs,
        samples=case.samples,
        mode=case.mode,
        confidence=CONFIDENCE,
        seed=seed,
        **options,
    )
    # 1e-9: the truths are computed in double precision, the bounds are bisected to 1e-7 and rounded down
    above = any(
        finding.parameter_lower > case.truth(finding) * (1.0 + 1e-9)
        or finding.epsilon_lower > case.epsilon(finding) * (1.0 + 1e-9)
        for finding in result.findings
    )
    return result.verdict == "violated", above


def three_nights(case: OnBudget, seed: int) -> tuple[bool, bool]:
    """Three nights of one evidence store, which have one error rate together: an alarm in any of them is one."""
    with tempfile.TemporaryDirectory() as folder:
        nights = [one_call(case, seed, store=Path(folder, "store.db"), floating_point=False) for _ in range(3)]
    return any(alarm for alarm, _ in nights), any(above for _, above in nights)


@functools.cache
def _found() -> dpaudit.AuditResult:
    """A violation of another mechanism, whose witness is asked again."""
    return dpaudit.audit(Laplace(5.0), dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=500, seed=1, floating_point=False)


def one_replay(case: OnBudget, seed: int) -> tuple[bool, bool]:
    """A witness that another mechanism was found by, asked of this one on fresh draws."""
    again = dpaudit.replay(_found(), case.mechanism, case.claim, samples=case.samples, seed=seed)
    return again.confirmed, again.confirmed


def one_bound(case: OnBudget, seed: int) -> tuple[bool, bool]:
    """One call of `dpaudit.audit_utility`, of a bound that holds with equality."""
    found = dpaudit.audit_utility(
        case.mechanism, case.claim, case.pairs, samples=case.samples, confidence=CONFIDENCE, seed=seed
    ).findings[0]
    return found.verdict == "violated", found.lower > case.truth(found) * (1.0 + 1e-9)


def rare_losses(data: float, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """100 with probability 0.01, else 0: mean 1, variance 99."""
    return 100.0 * (rng.random(size) < 0.01)


def exponential_losses(data: float, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Exponential losses of mean 1."""
    return rng.exponential(size=size)


def the_loss(data: float, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    return outputs


def p_value(count: int, audits: int, rate: float = 1.0 - CONFIDENCE) -> float:
    """P(Binomial(audits, rate) >= count): small only if the true rate exceeds the promised one."""
    return float(stats.binom.sf(count - 1, audits, rate))


def measure(case: OnBudget, audits: int, first: int = 0) -> dict[str, Any]:
    """Counts of false alarms and of bounds above the truth, over audits of one set: numbers `first` and following."""
    outcomes = [one_audit(case, first + number) for number in range(audits)]
    alarms, above = (int(sum(column)) for column in zip(*outcomes, strict=True))
    return {"audits": audits, "false_alarms": alarms, "bounds_above_truth": above}


def spent(record: dict[str, Any], name: str) -> int:
    """The numbers of a set that are spent: all below this one."""
    runs = [run for run in record["sets"].get(name, []) if run["seeds"] == SEEDS]
    return max((run["first"] + run["audits"] for run in runs), default=0)


def add(record: dict[str, Any], name: str, first: int, counts: dict[str, Any]) -> None:
    """Add the counts of one run to the record; numbers that are spent are refused.

    A run that goes on where the last one of the same version ended is joined to it.
    """
    if first < spent(record, name):
        raise ValueError(f"first must be at least {spent(record, name)}, got {first}: the seeds before are spent.")
    runs = record["sets"].setdefault(name, [])
    last = runs[-1] if runs else None
    follows = last and last["seeds"] == SEEDS and last["first"] + last["audits"] == first
    if follows and last["version"] == dpaudit.__version__:
        for key, count in counts.items():
            last[key] += count
    else:
        runs.append({"seeds": SEEDS, "version": dpaudit.__version__, "first": first, **counts})


def interval(count: int, audits: int) -> tuple[float, float]:
    """The Clopper-Pearson interval of a rate, at 95%."""
    exact = stats.binomtest(count, audits).proportion_ci(0.95, method="exact")
    return float(exact.low), float(exact.high)


def totals(runs: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Audits, false alarms and audits with a bound above the truth, over runs."""
    audits, alarms, above = (sum(run[key] for run in runs) for key in ("audits", "false_alarms", "bounds_above_truth"))
    return audits, alarms, above


def table(record: dict[str, Any]) -> str:
    """The table of all sets, in Markdown, with exact intervals, and a last row that adds them up."""
    lines = [
        "| mechanism exactly on its budget | audits | false alarms | 95% interval | bounds over truth | 95% interval |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    everything = [run for runs in record["sets"].values() for run in runs]
    for name, runs in [*record["sets"].items(), ("all", everything)]:
        audits, *counts = totals(runs)
        cells = []
        for count in counts:
            low, high = interval(count, audits)
            cells += [f"{count:,} ({count / audits:.2%})", f"{low:.2%} to {high:.2%}"]
        lines.append(f"| {name} | {audits:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def written_into(page: str, content: str) -> str:
    """The page with what stands between the two marks replaced."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{content}\n{END}{after}"


def read(path: Path) -> dict[str, Any]:
    """The record of a file; an empty one where there is no file."""
    if not path.exists():
        return {"command": "make rates", "sets": {}}
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def write(path: Path, record: dict[str, Any]) -> None:
    """Write the record in one step: a run that is ended never leaves half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".new")
    beside.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)


def main(arguments: list[str] | None = None) -> None:
    """Add audits to every set of the record, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time for each set; 0: only the table")
    parser.add_argument("--part", type=int, default=64, help="most audits after which the file is written")
    parser.add_argument("--only", default="", help="of the sets only those with this in their name")
    parser.add_argument("--out", type=Path, default=Path("reports/meta.json"))
    parser.add_argument("--page", type=Path, help="in which the table is written between its two marks")
    options = parser.parse_args(arguments)
    record = read(options.out)
    for case in sets():
        end, size = time.process_time() + options.seconds, 1
        while options.seconds > 0.0 and options.only in case.name:
            first = spent(record, case.name)
            add(record, case.name, first, measure(case, size, first=first))
            write(options.out, record)
            if time.process_time() >= end:
                break
            size = min(2 * size, options.part)
    if options.page:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(written_into(page, table(record)), encoding="utf-8")
    else:
        print(table(record))


if __name__ == "__main__":
    main()
