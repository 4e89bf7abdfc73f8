"""Defects of diffprivlib 0.6.6 that an audit finds: each a subject with its claim and its pair, so that a target names it.

    dpaudit audit docs/examples/libraries/diffprivlib_defects.py:linear_regression --seed 1 --out defects

The inputs are in the domain that the library documents, with every bound given that it asks for: no warning of a leak is
raised. `python docs/examples/libraries/diffprivlib_defects.py` audits them all.
"""

from __future__ import annotations

import itertools
import math

import diffprivlib.models
import diffprivlib.tools
from diffprivlib import mechanisms

import dpaudit
from dpaudit.subjects.libraries import diffprivlib as adapter
from dpaudit.subjects.libraries import with_pairs

# Promised: differential privacy with respect to the training sample, at epsilon, with the given bounds. The noise on the
# sum of squares of a feature is scaled by the square of the *lower* bound alone, so that bounds (0, 100) get none at all.
# IBM/differential-privacy-library, issues 104 and 105.
linear_regression = with_pairs(
    adapter.model(
        diffprivlib.models.LinearRegression(epsilon=1.0, bounds_X=(0, 100), bounds_y=(0, 1), fit_intercept=False),
        ["coef_"],
    ),
    [({"X": [[1.0], [1.0]], "y": [1.0, 1.0]}, {"X": [[1.0], [100.0]], "y": [1.0, 1.0]})],
)

# Promised: epsilon for the whole output. The weights of intervals underflow to 0 all together when the only interval of
# positive length is far from the quantile, and the call raises: one record decides whether it does. Issue 107.
FAR = 2_983  # records at 0: the weight of the interval (0, 1) is then 0 in doubles; with one of them moved to 1 it is not
quantile = with_pairs(
    adapter.tool(diffprivlib.tools.quantile, quant=0.5, epsilon=1.0, bounds=(0.0, 1.0)),
    [([0.0] * FAR + [1.0], [0.0] * (FAR - 1) + [1.0, 1.0])],
)

# Promised: the mean of the entries that are no NaN, with epsilon, by noise scaled to its sensitivity. The sensitivity is
# taken over all entries, NaN included; the mean is over the others. No issue known to us.
nanmean = with_pairs(
    adapter.tool(diffprivlib.tools.nanmean, epsilon=1.0, bounds=(0.0, 1.0)),
    [([0.0, 0.5] + [math.nan] * 18, [1.0, 0.5] + [math.nan] * 18)],
)

# Promised: counts in which an entry has its weight instead of 1, with epsilon. The noise is that of weight 1, whatever the
# weights are. No issue known to us.
weighted_histogram = with_pairs(
    adapter.tool(diffprivlib.tools.histogram, epsilon=1.0, bins=1, range=(0.0, 1.0), read=lambda result: result[0]),
    [({"sample": [0.5, 0.5], "weights": [1.0, 5.0]}, {"sample": [0.5], "weights": [1.0]})],
)

# Promised: noise on all that is learned, with epsilon. The classes are given to partial_fit, so they are public; but the
# noisy count of a class is at least 1 if it occurs in the data and exactly 0 if it does not. No issue known to us.
naive_bayes = with_pairs(
    adapter.model(
        diffprivlib.models.GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)),
        ["class_count_"],
        fit=lambda model, data: model.partial_fit(data["X"], data["y"], classes=[0, 1]),
    ),
    [({"X": [[0.5]] * 4, "y": [0, 0, 0, 1]}, {"X": [[0.5]] * 4, "y": [0, 0, 0, 0]})],
)

# Promised: epsilon, for any non-negative utilities. A factor of 2 is dropped if the normalising constants are equal *with*
# that factor; they need not be equal without it. Found by a search over utilities of eight labels. No issue known to us.
LABELS = "abcdefgh"
UTILITIES = [
    1.0, 0.429623, 0.429297, 0.429689, 0.429548, 0.429477, 0.42957, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.467897,
    0.273578, 0.964719, 0.308079, 0.386369, 0.735145, 0.701411, 1.0, 0.694052, 0.681225, 0.227642, 0.434747, 0.772377,
    0.467479, 0.259804,
]  # fmt: skip
categorical = with_pairs(
    adapter.subject(
        mechanisms.ExponentialCategorical(
            epsilon=4.0,
            utility_list=[
                [*labels, utility]
                for labels, utility in zip(itertools.combinations(LABELS, 2), UTILITIES, strict=True)
            ],
        )
    ),
    [("a", "b")],
)

# Promised: samples drawn so that the limited precision of floating point gives nothing away. The claim holds on the real
# line (verdict "not_refuted"); the low bits of the outputs name the input (finding "floating_point"). Issues 19 and 94.
laplace_low_bits = with_pairs(adapter.subject(mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)), [(0.0, 1.0)])
gaussian_low_bits = with_pairs(
    adapter.subject(mechanisms.GaussianAnalytic(epsilon=1.0, delta=1e-5, sensitivity=1.0)), [(0.0, 1.0)]
)

VIOLATED = {
    "linear_regression": linear_regression,
    "quantile": quantile,
    "nanmean": nanmean,
    "weighted_histogram": weighted_histogram,
    "naive_bayes": naive_bayes,
    "categorical": categorical,
}
LEAKS_IN_LOW_BITS = {"laplace_low_bits": laplace_low_bits, "gaussian_low_bits": gaussian_low_bits}

if __name__ == "__main__":
    for name, subject in {**VIOLATED, **LEAKS_IN_LOW_BITS}.items():
        result = dpaudit.audit(subject, samples=20_000, seed=1)
        doubles = result.floating_point.verdict if result.floating_point is not None else "not asked"
        print(
            f"{name}: {result.verdict}, claim {result.claim}, at least {result.epsilon_lower:.3g} nats at 95%, "
            f"{result.samples:,} runs in {result.seconds:.1f} s, low bits: {doubles}"
        )
