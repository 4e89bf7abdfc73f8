"""The figures of docs/measurements/learning.md, by one command: python tests/scores/learning_measurements.py

`--only PART` makes one part anew and leaves the others of the page as they are. Every part has a seed of its own, so
that it comes out the same alone. Times are of the processor, not of a clock.
"""

import argparse
import math
import re
import time
from pathlib import Path

import numpy as np
import printed_estimator
import simulated_audits
from scipy import special, stats
from support.audit_runs import run_of
from test_bands import dkw_half_width

import dpaudit
from dpaudit.audits.band import examine
from dpaudit.privacy.parsing import parse_claim
from dpaudit.scores.bands import anytime_bands, band, law_band, looks
from dpaudit.scores.bets import ScoreBets, labelled
from dpaudit.scores.designs import BETTED
from dpaudit.subjects.callables import as_subject
from dpaudit_mechanisms.learning import dp_sgd, faulty, marginals, pate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "measurements" / "learning.md"
SEED = 20_261_126
LEVEL = 0.05
SEEDS = 5  # of each twin
CANARIES = 1_000  # of one run
TRAININGS = 100  # of either side, of the sound training


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def table(*columns):
    return [row(*columns), row(*["---"] * len(columns))]


# --- coverage ---------------------------------------------------------------------------------------------------------


def errors_row(name, errors, audits):
    limit = special.betaincinv(errors + 1.0, audits - errors, 0.999) if errors < audits else 1.0
    p_value = stats.binom.sf(errors - 1, audits, LEVEL)
    return row(name, f"{errors:,} of {audits:,}", f"{errors / audits:.2%}", f"{limit:.2%}", f"{p_value:.2g}")


def coverage(audits=10_000):
    lines = table("case", "audits in error", "rate", "rate at most, 99.9%", "p-value of at most 5%")
    for case in simulated_audits.cases():
        runs = audits // 5 if case.design in BETTED else audits  # bets take longer
        for found in simulated_audits.error_rates(runs, SEED, case.name):
            lines.append(errors_row(*found, runs))
            print(lines[-1], flush=True)  # it takes minutes
    for number, (name, estimator) in enumerate(simulated_audits.INVALID.items()):
        rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(1_000 + number,)))
        count = audits if estimator is not simulated_audits.gaussian_alone else audits // 10
        lines.append(errors_row(f"*{name}*", sum(estimator(rng) for _ in range(count)), count))
    return lines


# --- one run against the printed estimator ----------------------------------------------------------------------------


def tightness():
    lines = table("mu", "canaries", "draws", "printed", "ours", "ours at least printed", "informed", "ours / informed")
    for count, repeats in ((100, 40), (1_000, 10), (10_000, 4)):
        for mu in (0.5, 1.0, 2.0, 4.0):
            theirs, ours, informed = printed_estimator.compare(mu, count, repeats, SEED)
            won = f"{np.sum(ours >= theirs)} of {repeats}"
            means = f"{theirs.mean():.3f}", f"{ours.mean():.3f}", won, f"{informed:.3f}"
            lines.append(row(f"{mu:g}", f"{count:,}", repeats, *means, f"{ours.mean() / informed:.2f}"))
    return lines


# --- the band ---------------------------------------------------------------------------------------------------------


def band_errs(limits, at, true):
    return bool(np.any(limits.upper(at) < true - 1e-12) or np.any(limits.thresholds_lower(at) > true + 1e-12))


def law_errors(runs, size):
    """Runs in which the band of one of the two laws misses it at some threshold; scores are quantiles of uniforms."""
    found = law_band(size, 1.0 - (1.0 - LEVEL) ** 0.5)
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(2_100,)))
    uniforms = np.sort(rng.random((runs, 2, size)), axis=2)
    return int(((uniforms < found.lower[1:]) | (uniforms > found.upper[:-1])).any(axis=(1, 2)).sum())


def audit_errors(runs):
    """Runs in which the band of an audit's stage is wrong somewhere; each fits its score on 20 other draws an input."""
    subject, wrong = as_subject(lambda data, size, rng: data + rng.laplace(size=size), None, None), 0
    pair, claim = dpaudit.Pair(0.0, 1.0, "pair"), dpaudit.PureDP(1.0)
    for seed in range(runs):
        found, _ = examine(run_of(subject, pair, claim, 80, seed), 0, LEVEL)
        at, upper, lower = (
            np.array([getattr(point, name) for point in found.points])
            for name in ("type_one", "upper", "thresholds_lower")
        )
        true = laplace_curve(at, 1.0)
        wrong += bool(np.any(upper < true - 1e-9) or np.any(lower > true + 1e-9))
    return wrong


def bands(runs=2_000, size=100):
    at = np.linspace(0.0, 1.0, 101)
    lines = table("band at 95%, both limits at 101 points", "runs in error", "rate", "rate at most, 99.9%", "p-value")
    curves = {
        "Gaussian mu 1": (np.random.Generator.normal, special.ndtr(-special.ndtri(at) - 1.0)),
        "Laplace 1": (np.random.Generator.laplace, laplace_curve(at, 1.0)),
    }
    for number, (name, (draw, true)) in enumerate(curves.items()):
        rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(2_000 + number,)))
        errors = {"all scores": 0, "at each look": 0}
        for _ in range(runs):
            scores = draw(rng, 1.0, 1.0, size), draw(rng, 0.0, 1.0, size)
            errors["all scores"] += band_errs(band(*scores, LEVEL), at, true)
            errors["at each look"] += band_errs(anytime_bands(*scores, LEVEL), at, true)
        lines += [errors_row(f"{name}, {size} a side, {which}", count, runs) for which, count in errors.items()]
    lines.append(errors_row(f"both laws, {size} a side, all thresholds", law_errors(runs, size), runs))
    lines.append(errors_row("Laplace 1, as an audit draws it, 60 of each input", audit_errors(runs), runs))
    lines += ["", "Its width over that of the DKW band (Massart's constant), one law, 95%, as many scores:", ""]
    lines += table("scores", "mean", "at 0", "at 1%", "at 5%", "at 10%", "at 50%", "sequential, mean")
    for count in (100, 1_000, 10_000):
        found, half = law_band(count, LEVEL), dkw_half_width(count, LEVEL)
        share = np.arange(count + 1) / count
        theirs = np.minimum(1.0, share + half) - np.maximum(0.0, share - half)
        ours = found.upper - found.lower
        cells = [f"{ours[round(s * count)] / theirs[round(s * count)]:.2f}" for s in (0.0, 0.01, 0.05, 0.1, 0.5)]
        means = [f"{width / theirs.mean():.2f}" for width in (ours.mean(), anytime_width(count))]
        lines.append(row(f"{count:,}", means[0], *cells, means[1]))
    return lines


def laplace_curve(type_one, shift):
    """The trade-off function of Laplace(0, 1) against Laplace(shift, 1)."""
    low, high = 0.5 * np.exp(-shift), 0.5
    with np.errstate(divide="ignore"):
        middle = np.exp(-shift) / (4.0 * np.maximum(type_one, 1e-300))
    last = (1.0 - type_one) * np.exp(-shift)
    return np.where(type_one < low, 1.0 - np.exp(shift) * type_one, np.where(type_one <= high, middle, last))


def anytime_width(count):
    """The mean width of the last look's band of one law, at its share of the error rate."""
    sizes = looks(count)
    k = len(sizes) - 1
    found = law_band(sizes[-1], LEVEL / ((k + 1) * (k + 2)))
    return float((found.upper - found.lower).mean())


# --- learning ---------------------------------------------------------------------------------------------------------


def decided(scores, claim, level, rng):
    return ScoreBets(*labelled(*scores, rng), claim).decided_at(level)


def sound():
    lines = table("sound training, Dirac canary, every step seen", "trainings", "epsilon at 1e-5", "verdict at 95%")
    for number, model in enumerate(("logistic", "network")):
        training = dp_sgd.Training(steps=12, sampling_probability=0.3, noise_multiplier=1.0, model=model)
        rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(3_000 + number,)))
        claim = dpaudit.ProfileClaim(training.promise.profile, name="DP-SGD")
        found = dpaudit.audit_scores(*faulty.exposure(training, TRAININGS, rng), claim, "many-runs", seed=SEED)
        epsilon = f"{training.promise.epsilon(1e-5):.2f}, bound {found.epsilon_lower:.2f} at {found.delta:g}"
        lines.append(row(model, 2 * TRAININGS, epsilon, found.verdict))
    training = dp_sgd.Training(steps=6, sampling_probability=1.0, noise_multiplier=0.0)
    rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(3_100,)))
    scores = faulty.exposure(training, 60, rng)
    used = [decided(scores, dpaudit.PureDP(1.0), LEVEL, rng) for _ in range(200)]
    late = sum(count is None or count > 60 for count in used)
    median = int(np.median([count or 10**9 for count in used]))
    text = "Scores until training without noise is rejected at epsilon = 1, over 200 orders of the coins: median"
    lines += ["", f"{text} {median};", f"{late} of 200 took more than 60."]
    return lines


def twins():
    lines = table(
        "twin", "canary: norm, steps", "found", "scores until then", "seconds", "epsilon at 1e-5", "one run: bound",
        "verdict",
    )  # fmt: skip
    ceiling = 0.0
    for number, twin in enumerate(faulty.TWINS):
        claim = dpaudit.ProfileClaim(twin.training.promise.profile, name="DP-SGD")
        used, started = [], time.process_time()
        for seed in range(SEEDS):
            rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(4_000 + number, seed)))
            scores = faulty.exposure(twin.training, twin.runs, rng, twin.fault, twin.size, twin.tensors, twin.score)
            used.append(decided(scores, claim, LEVEL, rng))
        seconds = (time.process_time() - started) / SEEDS
        rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(5_000 + number,)))
        scores, cells = faulty.one_run(twin, CANARIES, rng), ("no score of one canary", "-")
        if scores is not None:
            found = dpaudit.audit_scores(*scores, f"eps={twin.training.promise.epsilon(1e-5)},delta=1e-5", seed=SEED)
            cells, ceiling = (f"{found.epsilon_lower:.2f}", found.verdict), max(ceiling, found.ceiling)
        seen = [count for count in used if count is not None]
        lines.append(
            row(
                twin.what,
                f"{twin.size:g}, {twin.training.steps}",
                f"{len(seen)} of {SEEDS}",
                f"{int(np.median(seen)):,} of {2 * twin.runs:,}" if seen else "-",
                f"{seconds:.1f}",
                f"{twin.training.promise.epsilon(1e-5):.2f}",
                *cells,
            )
        )
    lines += ["", f"The ceiling of one run with {CANARIES:,} canaries is {ceiling:.2f} at delta 1e-5.", ""]
    lines += table("release", "found", "scores until then")
    for name, kept in releases().items():
        used = []
        for seed in range(SEEDS):
            rng = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(6_000, seed)))
            used.append(decided(*kept(rng), LEVEL, rng))
        seen = [count for count in used if count is not None]
        lines.append(row(name, f"{len(seen)} of {SEEDS}", f"{int(np.median(seen)):,} of 800" if seen else "-"))
    return lines


def releases():
    found = {}
    for fault in ("none", "too_little_noise", "votes_of_each_model"):
        votes = pate.NoisyVotes(0.25, 3, fault)
        found[f"PATE, {fault.replace('_', ' ')}"] = lambda rng, votes=votes: (
            pate.membership_scores(votes, 8, 400, rng),
            dpaudit.PureDP(8 * votes.epsilon),
        )
    for fault in ("none", "noise_for_one_marginal", "structural_zeros"):
        chain = marginals.ChainGenerator(1.0, fault)
        found[f"synthetic data, {fault.replace('_', ' ')}"] = lambda rng, chain=chain: (
            marginals.membership_scores(chain, 400, rng),
            chain.claim,
        )
    return found


# --- the bets ---------------------------------------------------------------------------------------------------------


def moved(draw, shift):
    """`draw(rng, size)` moved by `shift` with the canary in."""
    return lambda rng, size: (draw(rng, size) + shift, draw(rng, size))


def rare(rng, size):
    """One run in five shows the canary."""
    return rng.normal(size=size) + 5.0 * (rng.random(size) < 0.2), rng.normal(size=size)


def response(epsilon):
    return lambda rng, size: tuple((rng.random(size) < special.expit(e)) + 0.0 for e in (epsilon, -epsilon))


BET_ON = {  # claim, scores of so many runs a side
    "Cauchy, moved by 1.5": ("eps=0.5", moved(lambda rng, size: rng.standard_cauchy(size), 1.5), 1_500),
    "Gaussian, moved by 5 in a fifth of the runs": ("eps=1", rare, 1_500),
    "exponential, mean 2 against 1": (
        "eps=1",
        lambda rng, size: (rng.exponential(2.0, size), rng.exponential(1.0, size)),
        3_000,
    ),
    "randomised response 1.3": ("eps=1", response(1.3), 4_000),
    "Gaussian mu 1.2": ("mu=1", moved(lambda rng, size: rng.normal(size=size), 1.2), 4_000),
    "Gaussian mu 1.5": ("eps=1,delta=0.01", moved(lambda rng, size: rng.normal(size=size), 1.5), 2_000),
    "told apart without an error": ("eps=1", lambda rng, size: (np.ones(size), np.zeros(size)), 100),
    "the same": ("eps=4", lambda rng, size: (np.ones(size), np.zeros(size)), 2_000),
}
BETS_SEEDS = 20


def stakes():
    lines = table("scores", "claim", "decided", "scores until then, median")
    for number, (name, (claim, draw, size)) in enumerate(BET_ON.items()):
        promise, used = parse_claim(claim), []
        for seed in range(BETS_SEEDS):
            key = (7_000 + number, seed)
            scores = draw(np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(*key, 0))), size)
            coins = np.random.SeedSequence(SEED, spawn_key=(*key, 1))
            used.append(decided(scores, promise, LEVEL, np.random.default_rng(coins)))
        median = np.median([math.inf if count is None else count for count in used])
        lines.append(row(name, claim, f"{sum(c is not None for c in used)} of {BETS_SEEDS}", f"{median:,.0f}"))
    return lines


PARTS = {"coverage": coverage, "tightness": tightness, "bands": bands, "bets": stakes, "sound": sound, "twins": twins}


def replaced(page, part, lines):
    """The page with the lines between a part's two marks."""
    start, end = f"<!-- {part} -->", f"<!-- end of {part} -->"
    return re.sub(f"{start}.*?{end}", lambda _: "\n".join([start, "", *lines, "", end]), page, flags=re.DOTALL)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS, help="one part of the page")
    only = parser.parse_args().only
    for part, made in PARTS.items():
        if only in (None, part):
            lines = made()
            print("\n".join(lines), flush=True)
            PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), part, lines), encoding="utf-8")


if __name__ == "__main__":
    main()
