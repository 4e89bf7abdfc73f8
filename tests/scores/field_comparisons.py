"""Other tools' estimators, published scores and published generators, side by side with audits of scores.

`python tests/scores/field_comparisons.py PART [PATH]` prints the tables of docs/measurements/learning.md. Parts need
what is not installed with dpaudit: `estimators` jax_privacy; `published` the two files of scores of the artefact of
"Sequential Auditing for f-Differential Privacy" (arXiv 2602.06518), as PATH/in.csv and PATH/out.csv; `generators` mbi,
and in PATH the mechanisms of private-pgm.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import sys
import time
from pathlib import Path

import numpy as np

import dpaudit
from dpaudit.privacy.claims import GaussianDP
from dpaudit.scores.bets import ScoreBets, labelled
from dpaudit.scores.published import audit_published

SEED = 20_261_128
DELTA = 1e-5


def canaries(rng, n, mu):
    is_in = rng.random(n) < 0.5
    scores = rng.normal(size=n) + mu * is_in
    return scores[is_in], scores[~is_in]


# --- estimators -------------------------------------------------------------------------------------------------------


def estimators(_path):
    """Mean lower bounds on epsilon at 1e-5, 95%, of the same scores; seconds of one processor for one audit."""
    from jax_privacy.auditing import CanaryScoreAuditor

    kinds = {
        "one run": lambda of: of.epsilon_one_run(0.05, DELTA),
        "one run, f-DP": lambda of: of.epsilon_one_run_fdp(0.05, DELTA),
        "GDP": lambda of: of.epsilon_from_gdp(0.05, DELTA),
        "Clopper and Pearson": lambda of: of.epsilon_clopper_pearson(0.05, DELTA),
    }
    for n, mu in itertools.product((1_000, 10_000, 100_000), (0.5, 1.0, 2.0)):
        rng, found = np.random.default_rng([SEED, n, int(10 * mu)]), {}
        runs = 3 if n < 100_000 else 1
        for _ in range(runs):
            scores = canaries(rng, n, mu)
            for name, kind in kinds.items():
                if name == "one run, f-DP" and n > 10_000:
                    continue  # minutes
                started = time.process_time()
                value = float(kind(CanaryScoreAuditor(*scores)))
                found.setdefault(name, []).append((value, time.process_time() - started))
            started = time.process_time()
            result = dpaudit.audit_scores(*scores, f"mu={mu}")
            seconds = time.process_time() - started
            for name, bound in (("without", result), ("independent", result.independent)):
                value = GaussianDP(bound.parameter_lower).epsilon_at(DELTA)
                found.setdefault(name, []).append((value, seconds))
        true = GaussianDP(mu).epsilon_at(DELTA)
        cells = [
            f"{name} {np.mean(one, axis=0)[0]:.2f} ({np.mean(one, axis=0)[1]:.2f} s)" for name, one in found.items()
        ]
        print(f"| {n:,} | {mu:g} ({true:.2f}) | " + " | ".join(cells), flush=True)


# --- published scores -------------------------------------------------------------------------------------------------

ORDERS = 20


def published(path):
    """The bounds of the published scores, and scores a side until each claim is rejected, over random orders."""
    sides = [np.loadtxt(Path(path) / f"{side}.csv") for side in ("in", "out")]
    spread = np.sqrt(0.5 * (sides[0].var() + sides[1].var()))
    print(len(sides[0]), len(sides[1]), "difference of means over spread", np.ptp([s.mean() for s in sides]) / spread)
    for design in ("one-run", "many-runs"):
        started = time.process_time()
        result = dpaudit.audit_scores(*sides, "mu=1.2", design=design)
        second = result.independent and (result.independent.parameter_lower, result.independent.p_value)
        print(
            design, result.verdict, result.parameter_lower, second, f"{time.process_time() - started:.2f} s", flush=True
        )
    for mu in (0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4):
        decided = []
        for order in range(ORDERS):
            rng = np.random.default_rng([SEED, order])
            bets = ScoreBets(*labelled(*(rng.permutation(side) for side in sides), rng), GaussianDP(mu))
            decided.append(bets.decided_at(0.05) or np.inf)
        found = np.isfinite(decided)
        kept = np.array(decided)[found] / 2.0
        said = f"{kept.mean():.0f}, median {np.median(kept):.0f}" if found.any() else "-"
        print(f"| {mu} | {found.sum()} of {ORDERS} | {said} |", flush=True)


# --- generators -------------------------------------------------------------------------------------------------------

ROWS, COLUMNS, VALUES = 1_000, 6, 6


def table(rng):
    """Rows of categories that go together: each depends on a hidden kind."""
    kinds = rng.integers(0, 4, 2 * ROWS)
    laws = np.random.default_rng(1).dirichlet(np.full(VALUES, 0.7), size=(4, COLUMNS))
    picks = rng.random((2 * ROWS, COLUMNS))
    return (laws.cumsum(axis=2)[kinds] < picks[:, :, None]).sum(axis=2)


def with_noise(rows, rng, share):
    """Copies, of which a share of the cells is drawn anew from its column."""
    drawn = np.stack([rng.permutation(column) for column in rows.T], axis=1)
    return np.where(rng.random(rows.shape) < share, drawn, rows)


def half(rows, rng):
    return np.where(rng.random((ROWS, 1)) < 0.5, rows, with_noise(rows, rng, 1.0))


def private(path, name, epsilon):
    """A generator of private-pgm: MST or AIM, at (epsilon, 1e-6)."""
    import pandas as pd
    from mbi import Dataset, Domain

    sys.path.insert(0, str(Path(path)))

    def generate(rows, rng):
        np.random.seed(int(rng.integers(2**31)))  # noqa: NPY002 (what these mechanisms draw from)
        names = [f"c{k}" for k in range(rows.shape[1])]
        data = Dataset(pd.DataFrame(rows, columns=names), Domain(names, [VALUES] * len(names)))
        with contextlib.redirect_stdout(io.StringIO()):
            if name == "MST":
                from mst import MST

                found = MST(data, epsilon, 1e-6)
            else:
                from aim import AIM

                pairs = [(pair, 1.0) for pair in itertools.combinations(names, 2)]
                found = AIM(epsilon, 1e-6, rounds=8, max_model_size=1, max_iters=200).run(data, pairs)[1]
        return found.df.to_numpy()

    return generate


def generators(path):
    """Audits of one release each of 1,000 real rows, against as many of a holdout."""
    kinds = {
        "copies": ("eps=1,delta=1e-6", lambda rows, rng: rows),
        "half of the rows, the others from the columns": ("eps=1,delta=1e-6", half),
        "copies with 10% of cells drawn anew": ("eps=1,delta=1e-6", lambda rows, rng: with_noise(rows, rng, 0.1)),
        "copies with 30% of cells drawn anew": ("eps=1,delta=1e-6", lambda rows, rng: with_noise(rows, rng, 0.3)),
        "independent marginals, no noise": ("eps=1,delta=1e-6", lambda rows, rng: with_noise(rows, rng, 1.0)),
        "another draw of the law": ("eps=0.1", lambda rows, rng: table(rng)[:ROWS]),
        **{
            f"{name}, epsilon {epsilon:g}": (f"eps={2 * epsilon:g},delta=1e-5", private(path, name, epsilon))
            for name in ("MST", "AIM")
            for epsilon in (1.0, 10.0)
        },
    }  # fmt: skip
    for name, (claim, generate) in kinds.items():
        found, seconds = [], time.process_time()
        for seed in range(2 if name[:3] in ("MST", "AIM") else 20):  # a private release takes a minute
            rng = np.random.default_rng([SEED, seed])
            rows = table(rng)
            release = generate(rows[:ROWS], rng)
            result = audit_published(release.tolist(), rows[:ROWS].tolist(), rows[ROWS:].tolist(), claim, seed=seed)
            bounds = result.epsilon_lower, result.independent.epsilon_lower, result.ceiling
            found.append((result.verdict == "violated", *bounds))
        seconds = (time.process_time() - seconds) / len(found)
        hits, *bounds = np.mean(found, axis=0)
        cells = f"{hits * len(found):.0f} of {len(found)} | " + " | ".join(f"{one:.2f}" for one in bounds)
        print(f"| {name} | {claim} | {cells} | {seconds:.1f} s |", flush=True)


if __name__ == "__main__":
    {"estimators": estimators, "published": published, "generators": generators}[sys.argv[1]](sys.argv[-1])
