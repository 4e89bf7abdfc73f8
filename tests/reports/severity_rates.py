"""Distance of the printed bound of a broken promise from the truth, for 30 faulty mechanisms of known loss.

    python tests/reports/severity_rates.py --samples 20000

The promise is epsilon = 1; losses go from 1.01 to infinite. Each is audited sequentially, up to the first proof alone,
then as by default (which goes on behind a violation for its severity) and with the longer stage (`severity=True`), and
with all draws (fixed), on `--seeds` seeds. Printed, over all seeds together: median and worst ratio of bound to truth
over those that were found and whose loss is finite, the largest ratio, how many are above 1 (wrong), the
bounds of those whose loss is infinite, the grades, the losses that were missed, and the runs of a seed.
"""

import argparse
from collections import Counter

import numpy as np

import dpaudit
from dpaudit.reports.severity import severity_of


def laplace(loss):
    return lambda data, size, rng: data + rng.laplace(scale=1.0 / loss, size=size)


def response(loss):
    keep = np.exp(loss) / (1.0 + np.exp(loss))
    return lambda data, size, rng: np.where(rng.random(size) < keep, data, 1.0 - data)


def geometric(loss):
    stop = 1.0 - np.exp(-loss)
    return lambda data, size, rng: data + rng.geometric(stop, size) - rng.geometric(stop, size)


def leaking(share):
    """Laplace noise of loss 0.5 and, with this probability, the input itself."""
    return lambda data, size, rng: np.where(rng.random(size) < share, data, data + rng.laplace(scale=2.0, size=size))


def uniform(width):
    return lambda data, size, rng: data + rng.uniform(0.0, width, size)


FAULTY = [
    *(
        (laplace(loss), loss)
        for loss in (1.01, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)
    ),
    *((response(loss), loss) for loss in (1.05, 1.2, 1.5, 2.0, 3.0, 5.0)),
    *((geometric(loss), loss) for loss in (1.1, 1.5, 2.0, 3.0)),
    *((mechanism, np.inf) for mechanism in (leaking(0.3), leaking(1.0), uniform(2.0), uniform(4.0), uniform(1.0))),
]


MODES = (
    ("sequential without its stage", "sequential", False),
    ("sequential with the stage of default", "sequential", None),
    ("sequential with severity=True", "sequential", True),
    ("fixed", "fixed", None),
)


def audits(options, mode, severity):
    """(loss, result) of each mechanism and seed."""
    for number in range(options.seeds):
        for place, (mechanism, truth) in enumerate(FAULTY):
            seed = options.seed + number * len(FAULTY) + place
            yield truth, dpaudit.audit(
                mechanism, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=options.samples, mode=mode, seed=seed,
                floating_point=False, severity=severity,
            )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    for name, mode, severity in MODES:
        ratios, infinite, grades, runs, missed = [], [], Counter(), 0, Counter()
        for truth, result in audits(options, mode, severity):
            runs += result.samples
            graded = severity_of(result)
            if graded is None:
                missed[truth] += 1
                continue
            grades[graded.place] += 1
            (ratios if np.isfinite(truth) else infinite).append(result.findings[0].parameter_lower)
            if np.isfinite(truth):
                ratios[-1] /= truth
        count = options.seeds * len(FAULTY)
        print(f"{name}: {sum(missed.values())} of {count} not found ({dict(sorted(missed.items()))})")
        print(f"  ratios: median {np.median(ratios):.3f}, least {min(ratios):.3f}, largest {max(ratios):.3f}, "
              f"above 1: {sum(ratio > 1.0 for ratio in ratios)} of {len(ratios)}")  # fmt: skip
        print(f"  infinite losses: bounds {min(infinite):.3f} to {max(infinite):.3f}, median {np.median(infinite):.3f}")
        print("  grades: " + ", ".join(f"{number} {grade}" for grade, number in sorted(grades.items())))
        print(f"  runs of a seed: {runs / options.seeds:,.0f}", flush=True)


if __name__ == "__main__":
    main()
