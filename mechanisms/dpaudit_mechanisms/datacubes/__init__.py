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

from dpaudit_mechanisms.datacubes.budgets import BoundedBudgets as BoundedBudgets
from dpaudit_mechanisms.datacubes.budgets import least_variance as least_variance
from dpaudit_mechanisms.datacubes.budgets import optimal_budgets as optimal_budgets
from dpaudit_mechanisms.datacubes.budgets import paper_mu as paper_mu
from dpaudit_mechanisms.datacubes.budgets import uniform_budgets as uniform_budgets
from dpaudit_mechanisms.datacubes.clusters import clusters as clusters
from dpaudit_mechanisms.datacubes.consistency import consistent as consistent
from dpaudit_mechanisms.datacubes.consistency import consistent_variances as consistent_variances
from dpaudit_mechanisms.datacubes.convex import convex_budgets as convex_budgets
from dpaudit_mechanisms.datacubes.counts import CountsRelease as CountsRelease
from dpaudit_mechanisms.datacubes.counts import non_negative as non_negative
from dpaudit_mechanisms.datacubes.counts import whole as whole
from dpaudit_mechanisms.datacubes.domains import Domain as Domain
from dpaudit_mechanisms.datacubes.fourier import FourierStrategy as FourierStrategy
from dpaudit_mechanisms.datacubes.grouping import fair_column_weights as fair_column_weights
from dpaudit_mechanisms.datacubes.grouping import find_grouping as find_grouping
from dpaudit_mechanisms.datacubes.grouping import greedy_grouping as greedy_grouping
from dpaudit_mechanisms.datacubes.grouping import group_constants as group_constants
from dpaudit_mechanisms.datacubes.joint import joint_budgets as joint_budgets
from dpaudit_mechanisms.datacubes.marginal_strategies import MarginalStrategy as MarginalStrategy
from dpaudit_mechanisms.datacubes.marginal_strategies import base_counts as base_counts
from dpaudit_mechanisms.datacubes.marginal_strategies import hierarchy as hierarchy
from dpaudit_mechanisms.datacubes.marginal_strategies import workload_itself as workload_itself
from dpaudit_mechanisms.datacubes.matrices import MatrixStrategy as MatrixStrategy
from dpaudit_mechanisms.datacubes.matrices import tree_rows as tree_rows
from dpaudit_mechanisms.datacubes.release import DatacubeRelease as DatacubeRelease
from dpaudit_mechanisms.datacubes.release import StrategyRelease as StrategyRelease
from dpaudit_mechanisms.datacubes.sketches import SketchStrategy as SketchStrategy
from dpaudit_mechanisms.datacubes.strategies import Strategy as Strategy
from dpaudit_mechanisms.datacubes.wavelets import HaarStrategy as HaarStrategy
from dpaudit_mechanisms.datacubes.workloads import Workload as Workload
from dpaudit_mechanisms.datacubes.workloads import all_and_half as all_and_half
from dpaudit_mechanisms.datacubes.workloads import all_and_with_attribute as all_and_with_attribute
from dpaudit_mechanisms.datacubes.workloads import all_marginals as all_marginals
