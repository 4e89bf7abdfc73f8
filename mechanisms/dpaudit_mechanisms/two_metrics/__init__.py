"""Mechanisms between two metric spaces: one family, from privacy-first to utility-first (Wu, Xia, He).

`levels` has the construction that all of them instantiate, and the one proof; `finite` and `widened` the mechanisms
between finite spaces, `profiles`, `line` and `important` those on the real line, `k_norm` those for linear queries in
several dimensions, `triangles` the datasets of all graphs with n nodes.
"""

from dpaudit_mechanisms.finite_choice import loss_of
from dpaudit_mechanisms.two_metrics.finite import (
    GlobalSensitivity,
    Ladder,
    LevelMechanism,
    PrivacyFirst,
    Staircase,
)
from dpaudit_mechanisms.two_metrics.important import ImportantOnTheLine, widened_staircase_profile
from dpaudit_mechanisms.two_metrics.k_norm import KNorm
from dpaudit_mechanisms.two_metrics.levels import (
    PartitionAndWeight,
    covered_levels,
    log_probabilities,
)
from dpaudit_mechanisms.two_metrics.line import OnTheLine, query_mechanism
from dpaudit_mechanisms.two_metrics.profiles import Profile, query_profile, staircase_profile
from dpaudit_mechanisms.two_metrics.spaces import FiniteSpaces, whole_steps
from dpaudit_mechanisms.two_metrics.triangles import GraphClasses, algorithm_1
from dpaudit_mechanisms.two_metrics.widened import WidenedPrivacyFirst, WidenedStaircase

__all__ = [
    "FiniteSpaces",
    "GlobalSensitivity",
    "GraphClasses",
    "ImportantOnTheLine",
    "KNorm",
    "Ladder",
    "LevelMechanism",
    "OnTheLine",
    "PartitionAndWeight",
    "PrivacyFirst",
    "Profile",
    "Staircase",
    "WidenedPrivacyFirst",
    "WidenedStaircase",
    "algorithm_1",
    "covered_levels",
    "log_probabilities",
    "loss_of",
    "query_mechanism",
    "query_profile",
    "staircase_profile",
    "whole_steps",
    "widened_staircase_profile",
]
