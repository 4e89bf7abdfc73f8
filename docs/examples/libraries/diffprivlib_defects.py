"""Defects of diffprivlib 0.6.6 that an audit finds: each a subject with its claim and its pair.

    dpaudit audit docs/examples/libraries/diffprivlib_defects.py:linear_regression --seed 1 --out defects

The inputs are in the domain that the library documents, and every bound that it asks for is given, so that it warns of
no leak. `DEFECTS` says of each what the library promises and what breaks it; the file, when run, audits them all.
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

DEFECTS = {
    "linear_regression": {
        "what": "models.LinearRegression",
        "promise": "differential privacy with respect to the training sample, at epsilon, with the bounds given",
        "cause": "the noise on a feature's sum of squares is scaled by its lower bound alone: none for (0, 100)",
        "issues": "IBM/differential-privacy-library 104, 105",
    },
    "quantile": {
        "what": "tools.quantile",
        "promise": "epsilon for the whole output",
        "cause": "all weights underflow together, and the call raises, for one of two inputs that differ in one record",
        "issues": "IBM/differential-privacy-library 107",
    },
    "nanmean": {
        "what": "tools.nanmean",
        "promise": "the mean of the entries that are no NaN, with noise scaled to its sensitivity",
        "cause": "the sensitivity is (upper - lower) over all entries, NaN included; the mean is over the others",
        "issues": "none known to us",
    },
    "weighted_histogram": {
        "what": "tools.histogram with weights",
        "promise": "counts in which an entry has its weight instead of 1, at epsilon",
        "cause": "the noise is that of weight 1, whatever the weights are",
        "issues": "none known to us",
    },
    "naive_bayes": {
        "what": "models.GaussianNB.partial_fit",
        "promise": "noise on what is learned, at epsilon; the classes are given, so they are public",
        "cause": "the noisy count of a class is at least 1 if it occurs in the data, and exactly 0 if it does not",
        "issues": "none known to us",
    },
    "categorical": {
        "what": "mechanisms.ExponentialCategorical",
        "promise": "epsilon, for any utilities that are not negative",
        "cause": "a factor of 2 is dropped if the normalising constants are equal with it; without it they are not",
        "issues": "none known to us",
    },
    "laplace_low_bits": {
        "what": "mechanisms.Laplace, its low bits",
        "promise": "samples drawn so that the limited precision of floating point gives nothing away",
        "cause": "the sum of the input and the noise has the precision of the less precise one",
        "issues": "IBM/differential-privacy-library 19, 94",
    },
    "gaussian_low_bits": {
        "what": "mechanisms.Gaussian, its low bits",
        "promise": "samples drawn so that the limited precision of floating point gives nothing away",
        "cause": "the sum of the input and the noise has the precision of the less precise one",
        "issues": "IBM/differential-privacy-library 94",
    },
}

linear_regression = with_pairs(
    adapter.model(
        diffprivlib.models.LinearRegression(epsilon=1.0, bounds_X=(0, 100), bounds_y=(0, 1), fit_intercept=False),
        ["coef_"],
    ),
    [
        dpaudit.Pair(
            {"X": [[1.0], [1.0]], "y": [1.0, 1.0]}, {"X": [[1.0], [100.0]], "y": [1.0, 1.0]}, "1|100", "1", "100"
        )
    ],
)

FAR = 2_983  # records at 0: the weight of the interval (0, 1) is then 0 in doubles; if one of them moves to 1 it is not
quantile = with_pairs(
    adapter.tool(diffprivlib.tools.quantile, quant=0.5, epsilon=1.0, bounds=(0.0, 1.0)),
    [dpaudit.Pair([0.0] * FAR + [1.0], [0.0] * (FAR - 1) + [1.0, 1.0], "far|near", "far", "near")],
)

nanmean = with_pairs(
    adapter.tool(diffprivlib.tools.nanmean, epsilon=1.0, bounds=(0.0, 1.0)),
    [dpaudit.Pair([0.0, 0.5] + [math.nan] * 18, [1.0, 0.5] + [math.nan] * 18, "0|1", "0", "1")],
)

weighted_histogram = with_pairs(
    adapter.tool(diffprivlib.tools.histogram, epsilon=1.0, bins=1, range=(0.0, 1.0), read=lambda result: result[0]),
    [
        dpaudit.Pair(
            {"sample": [0.5, 0.5], "weights": [1.0, 5.0]},
            {"sample": [0.5], "weights": [1.0]},
            "with|without",
            "with",
            "without",
        )
    ],
)

naive_bayes = with_pairs(
    adapter.model(
        diffprivlib.models.GaussianNB(epsilon=1.0, bounds=(0.0, 1.0)),
        ["class_count_"],
        fit=lambda model, data: model.partial_fit(data["X"], data["y"], classes=[0, 1]),
    ),
    [
        dpaudit.Pair(
            {"X": [[0.5]] * 4, "y": [0, 0, 0, 1]}, {"X": [[0.5]] * 4, "y": [0, 0, 0, 0]}, "one|none", "one", "none"
        )
    ],
)

LABELS = "abcdefgh"
UTILITIES = [  # found by a search: equal constants with the factor (isclose), 3.09 and 2.09 for "b" and "a" without it
    1.0, 0.429623, 0.429297, 0.429689, 0.429548, 0.429477, 0.42957, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.467897,
    0.273578, 0.964719, 0.308079, 0.386369, 0.735145, 0.701411, 1.0, 0.694052, 0.681225, 0.227642, 0.434747, 0.772377,
    0.467479, 0.259804,
]  # fmt: skip
categorical = with_pairs(
    adapter.subject(
        mechanisms.ExponentialCategorical(
            epsilon=4.0,
            utility_list=[
                [*labels, utility] for labels, utility in zip(itertools.combinations(LABELS, 2), UTILITIES, strict=True)
            ],
        )
    ),
    [("a", "b")],
)

laplace_low_bits = with_pairs(adapter.subject(mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)), [(0.0, 1.0)])
gaussian_low_bits = with_pairs(
    adapter.subject(mechanisms.Gaussian(epsilon=1.0, delta=1e-5, sensitivity=1.0)), [(0.0, 1.0)]
)

if __name__ == "__main__":
    for name in DEFECTS:
        result = dpaudit.audit(globals()[name], samples=20_000, seed=1)
        doubles = result.floating_point.verdict if result.floating_point is not None else "not asked"
        print(
            f"{name}: {result.verdict}, claim {result.claim}, at least {result.epsilon_lower:.3g} nats at 95%, "
            f"{result.samples:,} runs in {result.seconds:.1f} s, low bits: {doubles}"
        )
