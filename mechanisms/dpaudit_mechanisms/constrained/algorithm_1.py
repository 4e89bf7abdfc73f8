"""Algorithm 1 of Appendix B as printed: Metropolis-Hastings for any target and any proposal (CD-A1, CD-N1).

A state is a block of leaf counts; `complete` solves the equality maps upwards, from the leaves to all nodes, so that
every state satisfies the equalities. A proposal draws a new block at the old one; it is accepted with min(1, p(new)
q(old | new) / (p(old) q(new | old)) [new is feasible]). Targets are densities or probabilities of all nodes, known up
to a factor, continuous or discrete; proposals say how to draw and what log q(old | new) - log q(new | old) is.

`metropolis.Chains` is the fast form of one case (Laplace noise, normal steps, all leaves in turn). Here every case is
one line of numpy a step. `GeometricOnHierarchy` is the mechanism of a discrete one: whole counts stay whole.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from dpaudit.errors import UsageError
from dpaudit_mechanisms.constrained.hierarchy import HierarchyLaplace
from dpaudit_mechanisms.inputs import Checked, Count, FloatArray, Positive, output_batch, table


class Proposal(Protocol):
    """Proposal distribution of a chain: new blocks at old ones, of shape (chains, leaves)."""

    def draw(self, blocks: FloatArray, rng: np.random.Generator) -> FloatArray:
        """A proposal for each chain."""

    def log_ratio(self, old: FloatArray, new: FloatArray) -> FloatArray:
        """log q(old | new) - log q(new | old), shape (chains,); 0 where the proposal is symmetric."""


@dataclasses.dataclass(frozen=True)
class Steps(Checked):
    """Adds a step to one coordinate, chosen evenly: a normal one, or a whole one with a two-sided geometric law.

    Parameters
    ----------
    size : float
        Standard deviation of a normal step; mean of |step| + 1 of the geometric numbers of a whole one; in (0, inf).
    whole : bool, optional
        Whether steps are whole numbers.
    """

    size: Positive
    whole: bool = False

    def draw(self, blocks: FloatArray, rng: np.random.Generator) -> FloatArray:
        """One coordinate of each block changes."""
        count, leaves = blocks.shape
        if self.whole:
            chance = 1.0 / (1.0 + self.size)
            steps = (rng.geometric(chance, count) - rng.geometric(chance, count)).astype(float)
        else:
            steps = self.size * rng.normal(size=count)
        new = blocks.copy()
        new[np.arange(count), rng.integers(leaves, size=count)] += steps
        return new

    def log_ratio(self, old: FloatArray, new: FloatArray) -> FloatArray:
        """0: a step and its negative are as likely."""
        return np.zeros(len(old))


@dataclasses.dataclass(frozen=True, eq=False)
class Independent:
    """Draws blocks that do not depend on the old ones.

    Parameters
    ----------
    sample : callable
        `(count, rng)` gives blocks of shape (count, leaves).
    log_density : callable
        Of blocks, shape (count,), up to a constant.
    """

    sample: Callable[[int, np.random.Generator], FloatArray]
    log_density: Callable[[FloatArray], FloatArray]

    def draw(self, blocks: FloatArray, rng: np.random.Generator) -> FloatArray:
        """A fresh block for each chain."""
        return self.sample(len(blocks), rng)

    def log_ratio(self, old: FloatArray, new: FloatArray) -> FloatArray:
        """log g(old) - log g(new)."""
        return self.log_density(old) - self.log_density(new)


def chain_states(
    log_target: Callable[[FloatArray], FloatArray],
    proposal: Proposal,
    start: Any,
    complete: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
    is_feasible: Callable[[FloatArray], np.ndarray] | None = None,
) -> Iterator[FloatArray]:
    """Yields the nodes of all chains after each step, shape (chains, nodes), without end.

    Parameters
    ----------
    log_target : callable
        Log of the wanted density (probability) of nodes, up to a constant, shape (chains,); -inf where it is 0.
    proposal : Proposal
    start : array_like of float, shape (chains, leaves)
        Blocks of positive density that are feasible.
    complete : callable
        From blocks of leaves to all nodes, shape (chains, nodes).
    rng : numpy.random.Generator
    is_feasible : callable, optional
        Of nodes, shape (chains,): the inequalities.

    Raises
    ------
    UsageError
        If a start has density 0 or is not feasible: whatever is proposed there would be a jump into the unknown.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> next(chain_states(lambda z: -z[:, 0] ** 2, Steps(1.0), np.zeros((4, 1)), lambda z: z, rng)).shape
    (4, 1)
    """
    blocks = table("start", start, (None, None))
    nodes = complete(blocks)
    logs = np.asarray(log_target(nodes), dtype=float)
    if not np.isfinite(logs).all() or (is_feasible is not None and not is_feasible(nodes).all()):
        raise UsageError("start must be feasible and have a positive density, got a chain that starts elsewhere.")
    while True:
        new = proposal.draw(blocks, rng)
        new_nodes = complete(new)
        allowed = np.ones(len(new), dtype=bool) if is_feasible is None else np.asarray(is_feasible(new_nodes))
        new_logs = np.where(allowed, log_target(new_nodes), -np.inf)
        accept = new_logs - logs + proposal.log_ratio(blocks, new) >= -rng.standard_exponential(len(new))
        blocks = np.where(accept[:, None], new, blocks)
        nodes = np.where(accept[:, None], new_nodes, nodes)
        logs = np.where(accept, new_logs, logs)
        yield nodes


@dataclasses.dataclass(frozen=True, eq=False)
class GeometricOnHierarchy(HierarchyLaplace):
    """Algorithm 1 of Liu et al. (2023), arXiv:2303.00228, on whole counts.

    Two-sided geometric noise at every node of a tree of whole counts, given that the noisy nodes satisfy the sums.

    Discrete data by algorithm 1: the target is exp(-|nodes - truth|_1 / scale) on whole leaves, so that the loss of a
    pair is |nodes - nodes'|_1 / scale, as for `HierarchyConditioned` (the normaliser is the same for all whole
    answers). A chain starts at the leaves with geometric noise, which is private by itself, and releases its last
    state; the promise is that of the target.

    Parameters
    ----------
    epsilon, tree : as in `HierarchyLaplace`
    steps : int, optional
        Of each chain before its state is released, at least 1.

    Examples
    --------
    >>> from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
    >>> mechanism = GeometricOnHierarchy(1.0, Hierarchy.flat(2))
    >>> draws = mechanism.sample([3, 0], 5, np.random.default_rng(1))
    >>> bool((draws % 1.0 == 0.0).all() and (draws[:, 0] == draws[:, 1:].sum(axis=1)).all())
    True
    """

    steps: Count = 200

    def nodes(self, data: Any) -> FloatArray:
        """The true counts of all nodes, shape (nodes,), from whole counts of the leaves."""
        truth = super().nodes(data)
        if (truth % 1.0 != 0.0).any():
            raise UsageError(f"data must be whole numbers, got {np.asarray(data).tolist()}.")
        return truth

    def log_target(self, data: Any) -> Callable[[FloatArray], FloatArray]:
        """Log probability of nodes on one input, up to one constant for all inputs."""
        truth = self.nodes(data)
        return lambda nodes: np.asarray(-np.abs(nodes - truth).sum(axis=1) / self.scale)

    def proposal(self, data: Any) -> Proposal:
        """Proposal distribution of the chains: the same for all inputs."""
        return Steps(self.scale, whole=True)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> FloatArray:
        """`size` outputs on one input, shape (size, nodes): whole and consistent."""
        truth = self.nodes(data)
        if size == 0:
            return np.empty((0, self.tree.nodes))
        leaves = truth[-self.tree.leaves :]
        chance = -np.expm1(-1.0 / self.scale)
        noise = rng.geometric(chance, (size, len(leaves))) - rng.geometric(chance, (size, len(leaves)))
        states = chain_states(self.log_target(data), self.proposal(data), leaves + noise, self.tree.totals, rng)
        for _ in range(self.steps):
            released = next(states)
        return released

    def log_density(self, data: Any, outputs: Any) -> FloatArray:
        """Log probability of each output under the target, up to one constant for all inputs, shape (size,)."""
        batch = output_batch(outputs, (self.tree.nodes,))
        whole = np.isfinite(batch).all(axis=1)
        known = np.where(whole[:, None], batch, 0.0)
        whole &= (known % 1.0 == 0.0).all(axis=1)
        whole &= (known == self.tree.totals(known[:, -self.tree.leaves :])).all(axis=1)
        return np.where(whole, self.log_target(data)(known), -np.inf)
