"""Mechanisms between two metric spaces: one family, from privacy-first to utility-first (Wu, Xia, He).

`levels` has the construction that all of them instantiate, and the one proof; `finite` and `widened` the mechanisms
between finite spaces, `profiles`, `line` and `important` those on the real line, `k_norm` those for linear queries in
several dimensions, `triangles` the datasets of all graphs with n nodes.
"""

from dpaudit_mechanisms.finite_choice import loss_of as loss_of
from dpaudit_mechanisms.two_metrics.finite import GlobalSensitivity as GlobalSensitivity
from dpaudit_mechanisms.two_metrics.finite import Ladder as Ladder
from dpaudit_mechanisms.two_metrics.finite import LevelMechanism as LevelMechanism
from dpaudit_mechanisms.two_metrics.finite import PrivacyFirst as PrivacyFirst
from dpaudit_mechanisms.two_metrics.finite import Staircase as Staircase
from dpaudit_mechanisms.two_metrics.important import ImportantOnTheLine as ImportantOnTheLine
from dpaudit_mechanisms.two_metrics.important import widened_staircase_profile as widened_staircase_profile
from dpaudit_mechanisms.two_metrics.k_norm import KNorm as KNorm
from dpaudit_mechanisms.two_metrics.levels import PartitionAndWeight as PartitionAndWeight
from dpaudit_mechanisms.two_metrics.levels import covered_levels as covered_levels
from dpaudit_mechanisms.two_metrics.levels import log_probabilities as log_probabilities
from dpaudit_mechanisms.two_metrics.line import OnTheLine as OnTheLine
from dpaudit_mechanisms.two_metrics.line import query_mechanism as query_mechanism
from dpaudit_mechanisms.two_metrics.profiles import Profile as Profile
from dpaudit_mechanisms.two_metrics.profiles import query_profile as query_profile
from dpaudit_mechanisms.two_metrics.profiles import staircase_profile as staircase_profile
from dpaudit_mechanisms.two_metrics.spaces import FiniteSpaces as FiniteSpaces
from dpaudit_mechanisms.two_metrics.spaces import whole_steps as whole_steps
from dpaudit_mechanisms.two_metrics.triangles import GraphClasses as GraphClasses
from dpaudit_mechanisms.two_metrics.triangles import algorithm_1 as algorithm_1
from dpaudit_mechanisms.two_metrics.widened import WidenedPrivacyFirst as WidenedPrivacyFirst
from dpaudit_mechanisms.two_metrics.widened import WidenedStaircase as WidenedStaircase
