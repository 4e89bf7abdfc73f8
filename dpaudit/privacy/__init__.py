"""Claims, d_X metrics, adjacency and pairs, and the arithmetic of composition.

An argument that breaks a condition of its docstring raises `UsageError`, with the condition and what was given.
"""

from dpaudit.privacy.adjacency import (
    add_remove,
    replace_one,
)
from dpaudit.privacy.claims import (
    ApproxDP,
    Claim,
    DirectedProfile,
    GaussianDP,
    MetricDP,
    ProfileClaim,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
    gaussian_profile,
)
from dpaudit.privacy.composition import (
    compose,
    group,
)
from dpaudit.privacy.finite_metrics import (
    GraphMetric,
    MatrixMetric,
    TreeMetric,
    check_metric,
)
from dpaudit.privacy.metrics import (
    AbsoluteMetric,
    AttributeMetric,
    BlowfishMetric,
    DateMetric,
    DiscreteMetric,
    EuclideanMetric,
    GeoMetric,
    HammingMetric,
    Metric,
    ScaledMetric,
    SmoothBlowfishMetric,
    SumMetric,
    SupNormMetric,
    ValueMetric,
    scaled,
)
from dpaudit.privacy.pairs import (
    Pair,
    all_pairs,
    as_pairs,
)
from dpaudit.privacy.parsing import (
    parse_claim,
    parse_pairs,
    read_metric,
)
from dpaudit.privacy.trade_off import FDP

__all__ = [
    "FDP",
    "AbsoluteMetric",
    "ApproxDP",
    "AttributeMetric",
    "BlowfishMetric",
    "Claim",
    "DateMetric",
    "DirectedProfile",
    "DiscreteMetric",
    "EuclideanMetric",
    "GaussianDP",
    "GeoMetric",
    "GraphMetric",
    "HammingMetric",
    "MatrixMetric",
    "Metric",
    "MetricDP",
    "Pair",
    "ProfileClaim",
    "PureDP",
    "RenyiDP",
    "ScaledMetric",
    "SmoothBlowfishMetric",
    "SumMetric",
    "SupNormMetric",
    "TreeMetric",
    "ValueMetric",
    "ZeroConcentratedDP",
    "add_remove",
    "all_pairs",
    "as_pairs",
    "check_metric",
    "compose",
    "gaussian_profile",
    "group",
    "parse_claim",
    "parse_pairs",
    "read_metric",
    "replace_one",
    "scaled",
]
