"""Private release of datacubes (marginals of a contingency table) by strategy, noise budgets and recovery.

Conventions
-----------
* Data are vectors of counts over the cells of a domain, in lexicographic order; workloads and strategies are implicit
  linear maps of them.
* Budgets are of rows, in nats (Laplace) or in units of mu (normal noise), and equal within a group. What is kept is
  stated for one adjacency: adding or removing a record, or replacing one.
* Variances are in squared counts, and exact; nothing here is bounded up to constants.

Source: Cormode, Procopiuc, Srivastava and Yaroslavtsev, Accurate and Efficient Private Release of Datacubes (claims
DC-*).
"""

from dpaudit_mechanisms.datacubes.budgets import least_variance, optimal_budgets, paper_mu, uniform_budgets
from dpaudit_mechanisms.datacubes.clusters import clusters
from dpaudit_mechanisms.datacubes.consistency import consistent, consistent_variances
from dpaudit_mechanisms.datacubes.convex import ConvexBudgets, convex_budgets
from dpaudit_mechanisms.datacubes.counts import CountsRelease, non_negative, whole
from dpaudit_mechanisms.datacubes.domains import Domain
from dpaudit_mechanisms.datacubes.fourier import FourierStrategy
from dpaudit_mechanisms.datacubes.grouping import fair_column_weights, find_grouping, greedy_grouping, group_constants
from dpaudit_mechanisms.datacubes.joint import JointBudgets, joint_budgets
from dpaudit_mechanisms.datacubes.marginal_strategies import MarginalStrategy, base_counts, hierarchy, workload_itself
from dpaudit_mechanisms.datacubes.matrices import MatrixStrategy, tree_rows
from dpaudit_mechanisms.datacubes.release import DatacubeRelease, StrategyRelease
from dpaudit_mechanisms.datacubes.sketches import SketchStrategy
from dpaudit_mechanisms.datacubes.strategies import Strategy
from dpaudit_mechanisms.datacubes.wavelets import HaarStrategy
from dpaudit_mechanisms.datacubes.workloads import Workload, all_and_half, all_and_with_attribute, all_marginals

__all__ = [
    "ConvexBudgets",
    "CountsRelease",
    "DatacubeRelease",
    "Domain",
    "FourierStrategy",
    "HaarStrategy",
    "JointBudgets",
    "MarginalStrategy",
    "MatrixStrategy",
    "SketchStrategy",
    "Strategy",
    "StrategyRelease",
    "Workload",
    "all_and_half",
    "all_and_with_attribute",
    "all_marginals",
    "base_counts",
    "clusters",
    "consistent",
    "consistent_variances",
    "convex_budgets",
    "fair_column_weights",
    "find_grouping",
    "greedy_grouping",
    "group_constants",
    "hierarchy",
    "joint_budgets",
    "least_variance",
    "non_negative",
    "optimal_budgets",
    "paper_mu",
    "tree_rows",
    "uniform_budgets",
    "whole",
    "workload_itself",
]
