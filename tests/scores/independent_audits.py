"""Simulated runs of mechanisms of known loss: how often the bound for independent canaries lies above the truth.

It does so exactly if the true value of the claim's parameter is rejected, which only depends on counts of right
guesses. So a cell of 2,000 runs takes seconds. `python tests/scores/independent_audits.py` prints the tables of
docs/measurements/learning.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from collections.abc import Callable

import numpy as np
from scipy import signal, special

from dpaudit.inference.bound_search import just_above
from dpaudit.privacy.claims import Claim, GaussianDP, PureDP
from dpaudit.scores import independent
from dpaudit.scores.dependence import dependence_p_value
from dpaudit.scores.guesses import RankedLabels

LEVEL = 0.05
SEED = 20_261_128
Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]  # scores of canaries, from which of them are in


# --- mechanisms -------------------------------------------------------------------------------------------------------


def laplace(epsilon):
    return lambda rng, is_in: rng.laplace(size=len(is_in)) + epsilon * is_in


def response(epsilon):
    def draw(rng, is_in):
        return np.where(rng.random(len(is_in)) < special.expit(epsilon), is_in, ~is_in) + 0.0

    return draw


def mixed_canaries(mu):
    """Each canary has a law of its own: some are hardly answered, others rounded, the rest have all the loss."""

    def draw(rng, is_in):
        kind = np.arange(len(is_in)) % 3
        scores = rng.normal(size=len(is_in)) + np.choose(kind, [0.2 * mu, 0.7 * mu, mu]) * is_in
        return np.where(kind == 1, np.round(scores, 1), scores)

    return draw


def confident_by(uniforms, mu):
    """mu-Gaussian DP for each canary, with dependent confidences: `uniforms(rng, n)`, of which each is uniform.

    The score is Z ~ N(mu / 2, 1) if the canary is in, and N(-mu / 2, 1) if not. |Z| says nothing of the coin and may be
    public: the share of |Z| that is larger is the uniform. Given |Z|, signs are independent.
    """
    z = np.linspace(0.5 * mu + 9.0, 0.0, 20_001)
    share = special.ndtr(0.5 * mu - z) + special.ndtr(-0.5 * mu - z)

    def draw(rng, is_in):
        size = np.interp(uniforms(rng, len(is_in)), share, z)
        is_right = rng.random(len(is_in)) < special.expit(mu * size)
        return np.where(is_right == is_in, size, -size)

    return draw


LUCK = 0.07  # the probability of a public coin that makes answers confident


def coins_for(blocks):
    """Each block of neighbours has a public coin: with probability LUCK all its answers are the confident ones."""

    def uniforms(rng, n):
        lucky = np.repeat(rng.random(blocks) < LUCK, -(-n // blocks))[:n]
        return np.where(lucky, LUCK * rng.random(n), LUCK + (1.0 - LUCK) * rng.random(n))

    return uniforms


def in_groups(rng, n):
    """Sixty-four neighbours are equally confident."""
    return np.repeat(rng.random(-(-n // 64)), 64)[:n]


def drifting(rng, n):
    """Confidence drifts along the canaries: a Gaussian process with correlation 0.99 of neighbours."""
    steps = rng.normal(size=n)
    steps[1:] *= np.sqrt(1.0 - 0.99**2)
    return special.ndtr(signal.lfilter([1.0], [1.0, -0.99], steps))


def independent_uniforms(rng, n):
    return rng.random(n)


# --- how often the bound errs -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Cell:
    """Runs of one mechanism, with the claim that it keeps exactly."""

    name: str
    draw: Draw
    claim: Claim
    canaries: int


def order_of(is_in: np.ndarray, scores: np.ndarray, rng: np.random.Generator) -> RankedLabels:
    return RankedLabels(is_in[np.lexsort((rng.random(len(scores)), -scores))].astype(np.int64), in_pairs=False)


def is_above(cell: Cell, found: RankedLabels, known: dict) -> bool:
    """Whether the bound of one run lies above the truth; records of counts without a sum are judged once."""
    evidence = independent.evidence_of(found, cell.claim, LEVEL)
    key = evidence.sum or evidence.lists
    if key not in known:
        known[key] = evidence.rejects(cell.claim, just_above(cell.claim.value))
    return known[key]


def errors_of(cell: Cell, runs: int, seed: int = SEED) -> int:
    """Runs of a cell whose bound lies above the truth."""
    rng, known = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(cell.canaries,))), {}
    errors = 0
    for _ in range(runs):
        is_in = rng.random(cell.canaries) < 0.5
        errors += is_above(cell, order_of(is_in, cell.draw(rng, is_in), rng), known)
    return errors


GAUSSIANS = (0.5, 1.0, 2.0)
SIZES = (1_000, 10_000, 100_000)


def product_cells(sizes=SIZES):
    """Canaries answered independently, at the truth."""
    found = [
        Cell(f"Gaussian mu {mu:g}", confident_by(independent_uniforms, mu), GaussianDP(mu), n)
        for n in sizes
        for mu in GAUSSIANS
    ]
    return [
        *found,
        Cell("mixed canaries, mu 1", mixed_canaries(1.0), GaussianDP(1.0), 1_000),
        Cell("Laplace 1", laplace(1.0), PureDP(1.0), 1_000),
        Cell("randomised response 1", response(1.0), PureDP(1.0), 1_000),
    ]


def dependent_cells(n=10_000):
    """Each canary keeps mu = 1 exactly, but canaries are not answered independently."""
    kinds = {
        "one coin for all": coins_for(1),
        "a coin for each of 10 blocks": coins_for(10),
        "64 neighbours equally confident": in_groups,
        "drifting confidence": drifting,
    }
    return [Cell(name, confident_by(uniforms, 1.0), GaussianDP(1.0), n) for name, uniforms in kinds.items()]


def dependence_of(cell: Cell, runs: int, seed: int = SEED):
    """Arrays of the bound, and of the p-value of independence, of runs of a cell."""
    rng, found = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,))), []
    for _ in range(runs):
        is_in = rng.random(cell.canaries) < 0.5
        scores = cell.draw(rng, is_in)
        bound = bound_of(cell, order_of(is_in, scores, rng))
        found.append((bound, dependence_p_value((scores[is_in], scores[~is_in]), rng)))
    return np.array(found).T


def bound_of(cell: Cell, found: RankedLabels) -> float:
    """The bound of one run on the claim's parameter."""
    return independent.bounds_of(cell.claim, independent.evidence_of(found, cell.claim, LEVEL))[1]


def recovered(mu: float, n: int, runs: int, seed: int = SEED):
    """Bounds on mu, and the mean share of epsilon at 1e-5 that they come to."""
    cell = Cell("", confident_by(independent_uniforms, mu), GaussianDP(mu), n)
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(2, n)))
    bounds = []
    for _ in range(runs):
        is_in = rng.random(n) < 0.5
        bounds.append(bound_of(cell, order_of(is_in, cell.draw(rng, is_in), rng)))
    true = GaussianDP(mu).epsilon_at(1e-5)
    return np.array(bounds), float(np.mean([GaussianDP(b).epsilon_at(1e-5) if b > 0 else 0.0 for b in bounds]) / true)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", choices=["recovered", "errors", "dependent"])
    parser.add_argument("--runs", type=int, default=2_000)
    options = parser.parse_args()
    if options.only in (None, "recovered"):
        for n in SIZES:
            for mu in GAUSSIANS:
                for runs in (20, min(400, options.runs)):
                    bounds, share = recovered(mu, n, runs)
                    print(f"| {n:,} | {mu:g} | {runs} | {bounds.mean():.3f} | {share:.0%} |", flush=True)
    if options.only in (None, "errors"):
        for cell in product_cells():
            started, errors = time.process_time(), errors_of(cell, options.runs)
            rate, limit = errors / options.runs, special.betaincinv(errors + 1.0, options.runs - errors, 0.999)
            seconds = time.process_time() - started
            print(
                f"| {cell.name} | {cell.canaries:,} | {errors} | {rate:.2%} | {limit:.2%} | {seconds:.0f} |", flush=True
            )
    if options.only in (None, "dependent"):
        for cell in dependent_cells():
            bounds, p_values = dependence_of(cell, min(400, options.runs))
            wrong, far = bounds > 1.0, bounds > 1.1
            seen = p_values <= 0.01
            print(
                f"| {cell.name} | {wrong.mean():.1%} | {far.mean():.1%} | {bounds.max():.2f} | {seen.mean():.0%} | "
                f"{seen[far].mean() if far.any() else float('nan'):.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
