"""All that a mechanism takes from the auditor: claims, pairs, error bounds, sessions, and refusals of arguments."""

from dpaudit.arguments import check_among as check_among
from dpaudit.errors import UsageError as UsageError
from dpaudit.privacy.claims import ApproxDP as ApproxDP
from dpaudit.privacy.claims import Claim as Claim
from dpaudit.privacy.claims import GaussianDP as GaussianDP
from dpaudit.privacy.claims import MetricDP as MetricDP
from dpaudit.privacy.claims import PureDP as PureDP
from dpaudit.privacy.claims import number as number
from dpaudit.privacy.pairs import Pair as Pair
from dpaudit.privacy.pairs import all_pairs as all_pairs
from dpaudit.subjects.protocol import SessionEnded as SessionEnded
from dpaudit.subjects.utility_bounds import UtilityBound as UtilityBound
