"""The auditor audited: how often it cries wolf, and how often one of its bounds exceeds the truth.

Each set runs many small audits, at confidence 0.95, of a mechanism that sits exactly on its budget, so that any
"violated" is a false alarm, and compares every bound of every audit with its true value.

    make rates SECONDS=60

gives each set as many processor seconds, adds the audits to reports/meta.json, on seeds that no run before has spent,
and writes the table of docs/measurements/error-rates.md. The file is written after every part of a set, so a run may
be ended at any time.

Truths are closed forms: the mechanism's own exact loss, its exact profile inverted, or its exact Renyi divergence.

Most sets are of few draws, `FEW` runs of each input, so that an audit takes 2 to 100 ms. A wealth of 20 takes 10 right
guesses in a row at a loss of 1 (their factor is at most 1 + 1/e), so such audits can be wrong as well as larger ones.
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
from dpaudit.audits.findings import STAGE_RATE
from dpaudit.audits.low_bits import Candidate, examine, in_turn
from dpaudit.campaign.all_pairs import AllPairsGame
from dpaudit.conformance import CHECKS
from dpaudit.exact.finite import renyi_divergence
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.pair_lines import PairLines
from dpaudit.privacy.claims import REPORT_DELTA, epsilon_of_profile
from dpaudit.privacy.pair_budgets import PairBudgets
from dpaudit.privacy.pairs import Pair
from dpaudit.running.streams import stream
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject
from dpaudit_mechanisms.gaussian import Gaussian
from dpaudit_mechanisms.geometric import Geometric
from dpaudit_mechanisms.laplace import Laplace
from dpaudit_mechanisms.planar_laplace import PlanarLaplace
from dpaudit_mechanisms.randomised_response import RandomisedResponse

Draw = Callable[[int, np.random.Generator], Any]  # so many losses
CONFIDENCE = 0.95
AUDITS = 2_000
FEW = 20  # runs of each input
SHORTER = 40  # audits of a set that a test makes, where the record has the depth
ROOT_SEED = 20_261_128
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
    promised: float = 1.0 - CONFIDENCE


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


def atom_and_response(data: int, size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """The input itself with probability 0.05, else randomised response at epsilon = 0.5."""
    honest = rng.random(size) < special.expit(0.5)
    return np.where(rng.random(size) < 0.05, 10 + data, np.where(honest, data, 1 - data))


def _listed() -> list[tuple[str, Any, Any, list[Any], Any]]:
    """Names, mechanisms, claims, pairs and epsilons of sets in both modes; of the first six there are larger ones."""
    one, rho, mu = dpaudit.PureDP(1.0), dpaudit.ZeroConcentratedDP(0.5), dpaudit.GaussianDP(1.0)
    metric = dpaudit.MetricDP(lambda x, y: abs(x - y))
    approx, leaking = dpaudit.ApproxDP(1.0, 0.05), dpaudit.ApproxDP(0.5, 0.05)
    two, four = RandomisedResponse(1.0, categories=2), RandomisedResponse(1.0, categories=4)
    kink = 1.0 / (1.0 + math.e)  # the rates of the one guess that matters
    trade_off = dpaudit.FDP([(0.0, 1.0), (kink, kink), (1.0, 0.0)])
    normal = _constant(epsilon_of_profile(mu.profile, REPORT_DELTA))
    near, far = [(0.0, 1.0)], [(0.0, 1.0), (3.0, 4.0), (7.0, 8.0)]
    return [
        ("Laplace", Laplace(1.0), one, near, _own_budget),
        ("4-ary randomised response", four, one, [(0, 1)], _own_budget),
        ("geometric", Geometric(1.0), one, [(0, 1)], _own_budget),
        ("analytic Gaussian (1, 0.05)", Gaussian(approx), approx, near, _own_budget),
        ("Gaussian at mu = 1", Gaussian(mu), mu, near, normal),
        ("Laplace, 3 pairs of 3 shared inputs", Laplace(1.0), metric, dpaudit.all_pairs([0.0, 0.5, 1.0]), _own_budget),
        ("randomised response at its trade-off function", two, trade_off, [(0, 1)], _constant(1.0)),
        ("Gaussian at 0.5-zCDP", Gaussian(rho), rho, near, normal),
        ("Laplace, a pool of 3 pairs", Laplace(1.0), one, far, _own_budget),
        ("6 bits that answer near their input", noisy_bits, one, [([0] * 6, [1] * 6)], _own_budget),
        ("an atom of the mass of delta", atom_and_response, leaking, [(0, 1)], _own_budget),
        ("randomised response at its exact Renyi divergence", two, dpaudit.RenyiDP(2.0, response_divergence(2.0)),
         [(0, 1)], _constant(1.0)),
    ]  # fmt: skip


def sets() -> Iterator[OnBudget]:
    """The sets, and those where an auditor is most easily fooled."""
    one, rho = dpaudit.PureDP(1.0), dpaudit.ZeroConcentratedDP(0.5)
    two, four = RandomisedResponse(1.0, categories=2), RandomisedResponse(1.0, categories=4)
    for name, mechanism, claim, pairs, epsilon in _listed():
        for mode in ("sequential", "fixed"):
            yield OnBudget(f"{name}, {mode}, {FEW} runs", mechanism, claim, pairs, _own_budget, epsilon, FEW, mode,
                           SHORTER)  # fmt: skip
    for name, mechanism, claim, pairs, epsilon in _listed()[:6]:
        for mode in ("sequential", "fixed"):
            yield OnBudget(f"{name}, {mode}", mechanism, claim, pairs, _own_budget, epsilon, mode=mode)
    pairs = [(0, k) for k in range(1, 4)] + [(1, 2)]
    for samples, words, most in ((200, "", AUDITS), (FEW, f", {FEW} runs", SHORTER)):
        yield OnBudget(f"4-ary randomised response, 4 pairs, adaptive{words}", four, one, pairs, _own_budget,
                       _own_budget, samples, "adaptive", most)  # fmt: skip
    yield OnBudget("6 bits that answer near their input, sequential", noisy_bits, one, [([0] * 6, [1] * 6)],
                   _own_budget, _own_budget)  # fmt: skip
    yield OnBudget("randomised response, epsilon = 1, against 0.5-zCDP", two, rho, [(0, 1)], _constant(response_rho()),
                   _constant(1.0))  # fmt: skip
    yield OnBudget("randomised response at its exact Renyi divergence of order 2", two,
                   dpaudit.RenyiDP(2.0, response_divergence(2.0)), [(0, 1)], _own_budget, _constant(1.0))  # fmt: skip
    normal = _constant(epsilon_of_profile(dpaudit.GaussianDP(1.0).profile, REPORT_DELTA))
    yield OnBudget("Gaussian at 0.5-zCDP", Gaussian(rho), rho, [(0.0, 1.0)], _own_budget, normal)
    yield OnBudget("65-ary randomised response, an all-pairs table of 2,080 pairs", RandomisedResponse(1.0, 65), one,
                   [(i, j) for i in range(65) for j in range(i)], _own_budget, _own_budget, most=4)  # fmt: skip
    yield from _of_other_calls()
    yield from _of_bounds()


def _of_other_calls() -> Iterator[OnBudget]:
    """All-pairs tables, sessions, searches, replays, lists of checks, low bits."""
    one, four = dpaudit.PureDP(1.0), RandomisedResponse(1.0, categories=4)
    yield OnBudget("12-ary randomised response, an all-pairs table of 66 pairs", RandomisedResponse(1.0, 12), one,
                   list(range(12)), _constant(1.0), _constant(1.0), 100, most=SHORTER, play=one_table)  # fmt: skip
    yield OnBudget(f"4-ary randomised response, three sessions, {FEW} runs", four, one, [(0, 1)], _own_budget,
                   _own_budget, FEW, most=SHORTER, play=three_sessions)  # fmt: skip
    domain = dpaudit.domains.ListedDomain((0, 1, 2, 3))
    search = dpaudit.Search(domain, pairs=1, budget=1_000, candidates=4, grey_box=False)
    yield OnBudget("4-ary randomised response, a searched pair, fixed, 50 runs", four, one, search, _own_budget,
                   _own_budget, 50, "fixed", SHORTER)  # fmt: skip
    # The search may take the luckiest of many pairs; the audit that follows may not profit from it.
    line = dpaudit.Search(dpaudit.domains.NumberDomain(0.0, 100.0), pairs=2, budget=1_000, candidates=8)
    for mode in ("sequential", "fixed"):
        yield OnBudget(f"Laplace, two searched pairs of a line, {mode}", Laplace(1.0), one, line,
                       lambda found: abs(found.x - found.x_prime), lambda found: abs(found.x - found.x_prime),
                       mode=mode, most=150)  # fmt: skip
    yield OnBudget("Laplace, a witness replayed", Laplace(1.0), one, [(0.0, 1.0)], _own_budget, _own_budget,
                   play=one_replay)  # fmt: skip
    plane = PlanarLaplace(1.0, points=((0.0, 0.0), (1.0, 0.0)))
    for name, mechanism in (("3-ary randomised response", RandomisedResponse(1.0, 3)), ("planar Laplace", plane)):
        yield OnBudget(f"{name}, a list of checks", mechanism, one, [], _own_budget, _own_budget, 1_000, most=10,
                       play=one_list)  # fmt: skip
    yield OnBudget("a response in the lowest bit", bit_of_double, one, [(0.0, 1.0)], _constant(1.0), _constant(1.0),
                   1_000, most=500, play=one_look_at_low_bits, promised=STAGE_RATE)  # fmt: skip


def _of_bounds() -> Iterator[OnBudget]:
    """Bounds on losses of mean 1 that hold with equality: 100 with probability 0.01, and of several laws."""
    tail = dpaudit.UtilityBound("tail", the_loss, 2.0, failure_probability=math.exp(-2.0))
    exponential: Draw = lambda size, rng: rng.exponential(size=size)  # noqa: E731
    yield OnBudget("exponential losses, a bound on the tail", _losses(exponential), tail, [0.0],
                   _constant(math.exp(-2.0)), _constant(math.inf), play=one_bound)  # fmt: skip
    means: list[tuple[str, Draw, dict[str, float]]] = [
        ("rare losses", lambda size, rng: 100.0 * (rng.random(size) < 0.01), {"standard_deviation": math.sqrt(99.0)}),
        ("exponential losses", exponential, {"standard_deviation": 1.0}),
        ("uniform losses", lambda size, rng: 2.0 * rng.random(size), {"largest_loss": 2.0}),
        ("losses without a variance", lambda size, rng: rng.pareto(1.5, size) * 0.5, {}),  # of index 1.5
        ("nearly constant losses", lambda size, rng: 1.0 + 0.01 * rng.uniform(-1.0, 1.0, size), {"largest_loss": 1.01}),
    ]
    for name, draw, known in means:
        mean = dpaudit.UtilityBound("mean", the_loss, 1.0, **known)
        yield OnBudget(f"{name}, a bound on the mean", _losses(draw), mean, [0.0], _constant(1.0), _constant(math.inf),
                       play=one_bound)  # fmt: skip


def _losses(draw: Draw) -> Callable[[float, int, np.random.Generator], Any]:
    return lambda data, size, rng: draw(size, rng)


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


def three_sessions(case: OnBudget, seed: int) -> tuple[bool, bool]:
    """Three sessions of one evidence store, which have one error rate together: an alarm in any of them is one."""
    with tempfile.TemporaryDirectory() as folder:
        sessions = [one_call(case, seed, store=Path(folder, "store.db"), floating_point=False) for _ in range(3)]
    return any(alarm for alarm, _ in sessions), any(above for _, above in sessions)


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


def one_table(case: OnBudget, seed: int) -> tuple[bool, bool]:
    """The all-pairs table alone, which has the whole error rate here; `pairs` are the inputs."""
    first, second = np.triu_indices(len(case.pairs), 1)
    game = AllPairsGame(
        first,
        second,
        PairLines(PairBudgets.same(case.claim, len(first))),
        inputs=len(case.pairs),
        samples=case.samples,
        error_rate=case.promised,
        draw=WorkerPool().drawer(as_subject(case.mechanism), case.pairs, seed, 8),
        coin=lambda: stream(seed, 9),
    )
    game.start()
    game.play()
    # The p-value and the bound say the same of a pair: it is violated where its bound exceeds its budget.
    return bool((game.log_p <= np.log(game.level)).any()), bool((game.lower > 1.0 + 1e-9).any())


def one_list(case: OnBudget, seed: int) -> tuple[bool, bool]:
    """All statistical checks on one mechanism, which share one error rate: any "violated" is an alarm.

    Noise of numpy.random that is added to doubles does leak in their low bits, which are left out there.
    """
    names = {spec.name for spec in CHECKS if spec.is_statistical}
    names -= {"floating_point"} if isinstance(case.mechanism, PlanarLaplace) else set()
    result = dpaudit.check(case.mechanism, only=names, seed=seed, samples=case.samples, error_rate=case.promised)
    if result.of_status("error"):
        raise RuntimeError(f"no check may err, got {result.of_status('error')}")
    alarm = bool(result.of_status("violated"))
    return alarm, alarm


def one_look_at_low_bits(case: OnBudget, seed: int) -> tuple[bool, bool]:
    """The check of low bits on its own, at its own error rate."""

    def draw(phase: int, i: int, chunk: int, size: int) -> Any:
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(phase, i, chunk)))
        return read_outputs(case.mechanism(case.pairs[0][i], size, rng), size)

    def coin(place: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7_000, place)))

    pair = Candidate(Pair(*case.pairs[0]), (0, 1), case.claim.budget, 0)
    found = examine([pair], case.samples, in_turn(draw), coin, case.promised)
    if not found.pairs:
        raise RuntimeError(f"the pair must be examined, got {found.message}")
    return found.verdict == "leaks", found.pairs[0].epsilon_lower > 1.0 + 1e-9


def bit_of_double(data: float, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Uniform doubles of 41 binary places, the last of which is randomised response at epsilon = 1 on `data`."""
    told = np.where(rng.random(size) < special.expit(1.0), data, 1.0 - data)
    return (2.0 * rng.integers(0, 1 << 40, size) + told) / (1 << 41)


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
    """The table of all sets, in Markdown, with exact intervals, and a last row that adds up those promised 5%."""
    lines = [
        "| mechanism exactly on its budget | audits | false alarms | 95% interval | bounds over truth | 95% interval |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    others = {case.name: case.promised for case in sets() if case.promised != 1.0 - CONFIDENCE}
    everything = [run for name, runs in record["sets"].items() if name not in others for run in runs]
    named = [(f"{name} ({others[name]:.1%} promised)" if name in others else name, runs)
             for name, runs in record["sets"].items()]  # fmt: skip
    for name, runs in [*named, ("all that promise 5%", everything)]:
        audits, *counts = totals(runs)
        cells = []
        for count in counts:
            low, high = interval(count, audits)
            cells += [f"{count:,} ({count / audits:.2%})", f"{low:.2%} to {high:.2%}"]
        lines.append(f"| {name} | {audits:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def exceeding(record: dict[str, Any]) -> list[str]:
    """The sets of which a count contradicts the promise, with a p-value below 1e-6."""
    wrong = []
    for case in sets():
        if runs := record["sets"].get(case.name):
            audits, *counts = totals(runs)
            wrong += [case.name] * (p_value(max(counts), audits, case.promised) < 1e-6)
    return wrong


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
    parser.add_argument("--up-to", type=float, default=math.inf, help="audits of a set, where it ends")
    parser.add_argument("--only", default="", help="of the sets only those with this in their name")
    parser.add_argument("--out", type=Path, default=Path("reports/meta.json"))
    parser.add_argument("--page", type=Path, help="in which the table is written between its two marks")
    options = parser.parse_args(arguments)
    record = read(options.out)
    for case in sets():
        end, size = time.process_time() + options.seconds, 1
        has = totals(record["sets"].get(case.name, []))[0]
        while options.seconds > 0.0 and options.only in case.name and has < options.up_to:
            first = spent(record, case.name)
            add(record, case.name, first, measure(case, size, first=first))
            write(options.out, record)
            if time.process_time() >= end or totals(record["sets"][case.name])[0] >= options.up_to:
                break
            size = min(2 * size, options.part)
    if options.page:
        page = options.page.read_text(encoding="utf-8")
        options.page.write_text(written_into(page, table(record)), encoding="utf-8")
    else:
        print(table(record))
    if wrong := exceeding(record):
        raise SystemExit(f"the rates must be at most those promised, got more in: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
