"""Claims, d_X metrics, adjacency and pairs, and the arithmetic of composition.

An argument that breaks a condition of its docstring raises `UsageError`, with the condition and what was given.
"""

from dpaudit.privacy.adjacency import add_remove as add_remove
from dpaudit.privacy.adjacency import explicit as explicit
from dpaudit.privacy.adjacency import replace_one as replace_one
from dpaudit.privacy.adjacency import within as within
from dpaudit.privacy.claims import ApproxDP as ApproxDP
from dpaudit.privacy.claims import Budget as Budget
from dpaudit.privacy.claims import Claim as Claim
from dpaudit.privacy.claims import DirectedProfile as DirectedProfile
from dpaudit.privacy.claims import Distance as Distance
from dpaudit.privacy.claims import FloatArray as FloatArray
from dpaudit.privacy.claims import GaussianDP as GaussianDP
from dpaudit.privacy.claims import HockeyStickLine as HockeyStickLine
from dpaudit.privacy.claims import Inequality as Inequality
from dpaudit.privacy.claims import MetricDP as MetricDP
from dpaudit.privacy.claims import ProfileClaim as ProfileClaim
from dpaudit.privacy.claims import PureDP as PureDP
from dpaudit.privacy.claims import RenyiDP as RenyiDP
from dpaudit.privacy.claims import RenyiInequality as RenyiInequality
from dpaudit.privacy.claims import ZeroConcentratedDP as ZeroConcentratedDP
from dpaudit.privacy.claims import epsilon_of_profile as epsilon_of_profile
from dpaudit.privacy.claims import gaussian_profile as gaussian_profile
from dpaudit.privacy.composition import compose as compose
from dpaudit.privacy.composition import group as group
from dpaudit.privacy.finite_metrics import GraphMetric as GraphMetric
from dpaudit.privacy.finite_metrics import MatrixMetric as MatrixMetric
from dpaudit.privacy.finite_metrics import TreeMetric as TreeMetric
from dpaudit.privacy.finite_metrics import check_metric as check_metric
from dpaudit.privacy.finite_metrics import shortest_paths as shortest_paths
from dpaudit.privacy.metrics import AbsoluteMetric as AbsoluteMetric
from dpaudit.privacy.metrics import AttributeMetric as AttributeMetric
from dpaudit.privacy.metrics import BlowfishMetric as BlowfishMetric
from dpaudit.privacy.metrics import DateMetric as DateMetric
from dpaudit.privacy.metrics import DiscreteMetric as DiscreteMetric
from dpaudit.privacy.metrics import EuclideanMetric as EuclideanMetric
from dpaudit.privacy.metrics import GeoMetric as GeoMetric
from dpaudit.privacy.metrics import HammingMetric as HammingMetric
from dpaudit.privacy.metrics import Metric as Metric
from dpaudit.privacy.metrics import ScaledMetric as ScaledMetric
from dpaudit.privacy.metrics import SmoothBlowfishMetric as SmoothBlowfishMetric
from dpaudit.privacy.metrics import SumMetric as SumMetric
from dpaudit.privacy.metrics import SupNormMetric as SupNormMetric
from dpaudit.privacy.metrics import ValueMetric as ValueMetric
from dpaudit.privacy.metrics import budget_matrix as budget_matrix
from dpaudit.privacy.metrics import scaled as scaled
from dpaudit.privacy.pairs import Pair as Pair
from dpaudit.privacy.pairs import all_pairs as all_pairs
from dpaudit.privacy.pairs import as_pairs as as_pairs
from dpaudit.privacy.parsing import parse_claim as parse_claim
from dpaudit.privacy.parsing import parse_pairs as parse_pairs
from dpaudit.privacy.parsing import read_metric as read_metric
from dpaudit.privacy.trade_off import FDP as FDP
