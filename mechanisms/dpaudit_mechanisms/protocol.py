"""All that a mechanism takes from the auditor: claims, pairs, error bounds, sessions, and refusals of arguments."""

from dpaudit.arguments import check_among
from dpaudit.errors import UsageError
from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP, MetricDP, PureDP, number
from dpaudit.privacy.pairs import Pair, all_pairs
from dpaudit.subjects.protocol import SessionEnded
from dpaudit.subjects.utility_bounds import UtilityBound

__all__ = [
    "ApproxDP",
    "Claim",
    "GaussianDP",
    "MetricDP",
    "Pair",
    "PureDP",
    "SessionEnded",
    "UsageError",
    "UtilityBound",
    "all_pairs",
    "check_among",
    "number",
]
