"""How near the printed bound of a broken promise is to the truth, for 30 faulty mechanisms of known loss.

    python tests/reports/severity_rates.py --samples 20000

The promise is epsilon = 1; losses go from 1.01 to infinite. Each is audited as by default (sequential, which goes on
behind a violation for its severity), sequentially up to the first proof alone, and with all draws (fixed). Printed:
median and worst ratio of bound to truth over those that were found and whose loss is finite, the largest ratio, which
is above 1 where a bound is wrong, the bounds of those whose loss is infinite, the grades, and the runs.
"""

from __future__ import annotations

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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for mode, goes_on in (("sequential", True), ("sequential", False), ("fixed", False)):
        ratios, infinite, grades, runs, missed = [], [], Counter(), 0, 0
        for place, (mechanism, truth) in enumerate(FAULTY):
            result = dpaudit.audit(
                mechanism, dpaudit.PureDP(1.0), [(0.0, 1.0)], samples=options.samples, mode=mode,
                seed=options.seed + place, floating_point=False, severity=goes_on,
            )  # fmt: skip
            runs += result.samples
            graded = severity_of(result)
            if graded is None:
                missed += 1
                continue
            grades[graded.words] += 1
            if np.isfinite(truth):
                ratios.append(result.findings[0].parameter_lower / truth)
            else:
                infinite.append(round(result.findings[0].parameter_lower, 3))
        shown = ", ".join(f"{count} {grade}" for grade, count in sorted(grades.items()))
        name = f"{mode} {'with' if goes_on else 'without'} its stage" if mode == "sequential" else mode
        print(f"{name}: {missed} of {len(FAULTY)} not found; {shown}; {runs:,} runs")
        print(f"  bound over truth: median {np.median(ratios):.3f}, worst {min(ratios):.3f}, largest {max(ratios):.3f}")
        print(f"  bounds where the loss is infinite: {infinite}", flush=True)


if __name__ == "__main__":
    main()
