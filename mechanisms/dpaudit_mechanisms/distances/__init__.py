"""Average distances to query points, released with what metric spaces give away: convexity and small embeddings.

`averages` has every statistic of the data that is read, `learner` the tangent learner, `calibration` the numbers (as
printed, and practical ones of the same guarantee), `interactive` (with `analysts` and the law of its
`epochs`) and `offline` the mechanisms in l1, `embeddings` the
two maps into l1, `stable_projection` that of l_p for 1 < p < 2, `metric_release` the mechanism of any metric space.

Source: Huang and Roth, Exploiting Metric Structure for Efficient Private Query Release (claims MQ-*); what of it does
not hold as printed is in `dpaudit_mechanisms/papers/metric-query-release.toml`.
"""

from dpaudit_mechanisms.distances.analysts import FixedQueries, SlopeSeeker
from dpaudit_mechanisms.distances.averages import AverageDistances
from dpaudit_mechanisms.distances.calibration import Calibration, practical, printed
from dpaudit_mechanisms.distances.embeddings import RandomProjection, SubsetDistances, expansion_and_contraction
from dpaudit_mechanisms.distances.interactive import InteractiveDistances
from dpaudit_mechanisms.distances.learner import TangentHypotheses, most_updates
from dpaudit_mechanisms.distances.metric_release import EmbeddedDistances, MetricDistances
from dpaudit_mechanisms.distances.offline import Hypothesis, OfflineDistances
from dpaudit_mechanisms.distances.stable_projection import StableProjection, sufficient_stable_images

__all__ = [
    "AverageDistances",
    "Calibration",
    "EmbeddedDistances",
    "FixedQueries",
    "Hypothesis",
    "InteractiveDistances",
    "MetricDistances",
    "OfflineDistances",
    "RandomProjection",
    "SlopeSeeker",
    "StableProjection",
    "SubsetDistances",
    "TangentHypotheses",
    "expansion_and_contraction",
    "most_updates",
    "practical",
    "printed",
    "sufficient_stable_images",
]
