"""Average distances to query points, released with what metric spaces give away: convexity and small embeddings.

`averages` has every statistic of the data that is read, `learner` the tangent learner, `calibration` the numbers (as
printed, and practical ones of the same guarantee), `interactive` (with `analysts` and the law of its
`epochs`) and `offline` the mechanisms in l1, `embeddings` the
two maps into l1, `stable_projection` that of l_p for 1 < p < 2, `metric_release` the mechanism of any metric space.

Source: Huang and Roth, Exploiting Metric Structure for Efficient Private Query Release (claims MQ-*); what of it does
not hold as printed is in `dpaudit_mechanisms/papers/metric-query-release.toml`.
"""

from dpaudit_mechanisms.distances.analysts import FixedQueries as FixedQueries
from dpaudit_mechanisms.distances.analysts import SlopeSeeker as SlopeSeeker
from dpaudit_mechanisms.distances.averages import AverageDistances as AverageDistances
from dpaudit_mechanisms.distances.calibration import Calibration as Calibration
from dpaudit_mechanisms.distances.calibration import practical as practical
from dpaudit_mechanisms.distances.calibration import printed as printed
from dpaudit_mechanisms.distances.embeddings import RandomProjection as RandomProjection
from dpaudit_mechanisms.distances.embeddings import SubsetDistances as SubsetDistances
from dpaudit_mechanisms.distances.embeddings import expansion_and_contraction as expansion_and_contraction
from dpaudit_mechanisms.distances.interactive import InteractiveDistances as InteractiveDistances
from dpaudit_mechanisms.distances.learner import TangentHypotheses as TangentHypotheses
from dpaudit_mechanisms.distances.learner import most_updates as most_updates
from dpaudit_mechanisms.distances.metric_release import EmbeddedDistances as EmbeddedDistances
from dpaudit_mechanisms.distances.metric_release import MetricDistances as MetricDistances
from dpaudit_mechanisms.distances.offline import Hypothesis as Hypothesis
from dpaudit_mechanisms.distances.offline import OfflineDistances as OfflineDistances
from dpaudit_mechanisms.distances.stable_projection import StableProjection as StableProjection
from dpaudit_mechanisms.distances.stable_projection import sufficient_stable_images as sufficient_stable_images
