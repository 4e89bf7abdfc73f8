"""Algorithm 1 for any target and proposal, against exact laws: discrete and continuous, symmetric and not.

Chains are independent, so that their last states are independent draws. The distance of their distribution from an
exact one is at most 0.0277 with probability 1 - 1e-10 for 15,500 chains (Dvoretzky, Kiefer, Wolfowitz, Massart); the
chains are run until what is left of their start is far below that, as the comparison of two starts shows.
"""

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from support.refusals import refusals

from dpaudit_mechanisms.constrained.algorithm_1 import (
    GeometricOnHierarchy,
    Independent,
    Steps,
    chain_states,
)
from dpaudit_mechanisms.constrained.hierarchy import Hierarchy
from dpaudit_mechanisms.faulty.constrained import GeometricForgetsTheProposal

CHAINS, ROOM = 15_500, 0.0277
FLAT = Hierarchy.flat(2)


class Multiplied:
    """A proposal that is not symmetric: one coordinate, chosen evenly, times e to a normal number."""

    def draw(self, blocks, rng):
        count, leaves = blocks.shape
        new = blocks.copy()
        new[np.arange(count), rng.integers(leaves, size=count)] *= np.exp(rng.normal(size=count))
        return new

    def log_ratio(self, old, new):
        """The log of the factor: q(new | old) is a log-normal density, 1 / new times an even function of the log."""
        return np.log(new / old).sum(axis=1)


def last(states, steps):
    return next(itertools.islice(states, steps - 1, None))


def gap(draws, cdf):
    """The largest distance of the empirical distribution from an exact one that is continuous."""
    ordered = np.sort(draws)
    exact = cdf(ordered)
    ranks = np.arange(len(ordered) + 1) / len(ordered)
    return max(np.abs(exact - ranks[1:]).max(), np.abs(exact - ranks[:-1]).max())


@pytest.mark.claim("CD-N1", "CD-A1")
@pytest.mark.parametrize("kind", ["steps", "multiplied", "independent"])
def test_continuous_targets_with_and_without_symmetry(kind):
    """Exponential noise on two positive leaves and their total: leaves are Exp(2) each, whatever the proposal."""
    rng = np.random.default_rng(20_261_560)

    def log_target(nodes):  # e^-total e^-(sum of leaves) on positive leaves
        return np.where((nodes > 0.0).all(axis=1), -nodes.sum(axis=1), -np.inf)

    proposal = {
        "steps": Steps(1.0),
        "multiplied": Multiplied(),
        "independent": Independent(lambda n, rng: rng.exponential(size=(n, 2)), lambda blocks: -blocks.sum(axis=1)),
    }[kind]
    feasible = (lambda nodes: (nodes >= 0.0).all(axis=1)) if kind == "steps" else None
    found = {}
    for start in (0.1, 2.0):
        states = chain_states(log_target, proposal, np.full((CHAINS, 2), start), FLAT.totals, rng, feasible)
        nodes = last(states, 80)
        assert nodes[:, 0] == pytest.approx(nodes[:, 1:].sum(axis=1))
        found[start] = nodes
    for nodes in found.values():
        assert gap(nodes[:, 1], stats.expon(scale=0.5).cdf) <= ROOM
        assert gap(nodes[:, 0], stats.gamma(2, scale=0.5).cdf) <= ROOM


def exact_law(mechanism, data, reach=25):
    """Probabilities of whole leaves within `reach` of the data: e^-reach / scale beyond, which is nothing here."""
    ranges = [np.arange(v - reach, v + reach + 1.0) for v in data]
    leaves = np.array(list(itertools.product(*ranges)))
    logs = mechanism.log_density(data, mechanism.tree.totals(leaves))
    weights = np.exp(logs)
    return leaves, weights / weights.sum()


@pytest.mark.claim("CD-N1", "CD-A1")
def test_the_discrete_mechanism_has_its_exact_law_loss_and_error():
    """Utility too: mean |error| of the root within 7 standard errors of its exact value."""
    mechanism, data = GeometricOnHierarchy(2.0, FLAT), [3.0, 0.0]
    leaves, law = exact_law(mechanism, data)
    draws = mechanism.sample(data, CHAINS, np.random.default_rng(20_261_563))
    assert (draws % 1.0 == 0.0).all() and (draws[:, 0] == draws[:, 1:].sum(axis=1)).all()
    for node, values in ((0, leaves.sum(axis=1)), (1, leaves[:, 0]), (2, leaves[:, 1])):
        for point in np.unique(values):
            exact = law[values <= point].sum()
            assert abs((draws[:, node] <= point).mean() - exact) <= ROOM
    error = np.abs(leaves.sum(axis=1) - 3.0)
    mean, spread = law @ error, math.sqrt(law @ error**2 - (law @ error) ** 2)
    assert np.abs(draws[:, 0] - 3.0).mean() == pytest.approx(mean, abs=7.0 * spread / math.sqrt(CHAINS))
    # The loss: the normaliser is that of every whole input, and ratios reach the l1 distance of the nodes / scale.
    other = [4.0, 0.0]
    totals = [np.exp(mechanism.log_density(x, mechanism.tree.totals(leaves))).sum() for x in (data, other)]
    assert totals[0] == pytest.approx(totals[1], rel=1e-9)
    nodes = mechanism.tree.totals(leaves)
    ratios = np.abs(mechanism.log_density(data, nodes) - mechanism.log_density(other, nodes))
    assert ratios.max() == pytest.approx(mechanism.privacy_loss(data, other)) == 2.0


@pytest.mark.claim("CD-N1")
def test_the_twin_keeps_the_product_of_target_and_proposal():
    twin, data = GeometricForgetsTheProposal(2.0, FLAT), [3.0, 0.0]
    leaves, law = exact_law(twin, data)
    tilted = law * np.exp(-np.abs(leaves - data).sum(axis=1) / twin.scale)
    tilted /= tilted.sum()
    draws = twin.sample(data, CHAINS, np.random.default_rng(20_261_564))
    far = np.abs(leaves.sum(axis=1) - 3.0) >= 1.0
    share = (np.abs(draws[:, 0] - 3.0) >= 1.0).mean()
    assert abs(share - tilted[far].sum()) <= ROOM < abs(share - law[far].sum())
    assert "loss 3 nats" in twin.fault and "promised 2" in twin.fault


@pytest.mark.claim("CD-N2")
@pytest.mark.parametrize("rows", [1, 2])
def test_imaging_onto_an_invariant_is_the_noise_projected_onto_its_kernel(rows):
    """Subspace privacy's projection mechanism, f + P U: draw by draw, and with the loss of the noise on the set."""
    from dpaudit.privacy.claims import GaussianDP
    from dpaudit_mechanisms.constrained.affine import Affine
    from dpaudit_mechanisms.constrained.imaging import Imaged
    from dpaudit_mechanisms.gaussian import Gaussian

    rng = np.random.default_rng(20_261_565)
    matrix = rng.normal(size=(rows, 4))
    truth = rng.normal(size=4)
    given = Affine(matrix, matrix @ truth)
    noise = Gaussian(GaussianDP(1.0), 1.0, 4)
    imaged = Imaged(noise, given).sample(truth, 50, np.random.default_rng(3))
    plain = noise.sample(truth, 50, np.random.default_rng(3)) - truth
    assert imaged == pytest.approx(truth + plain @ given.projector, abs=1e-9)
    assert matrix @ imaged.T == pytest.approx(np.tile((matrix @ truth)[:, None], 50), abs=1e-9)
    # N(f, sigma^2 P) and a shift within the kernel: mu = |shift| / sigma, as for the noise itself.
    shift = given.projector @ rng.normal(size=4)
    assert shift @ np.linalg.pinv(given.projector) @ shift == pytest.approx(shift @ shift)


test_what_makes_no_sense_is_refused = refusals(
    (lambda: Steps(0.0), "size must"),
    (lambda: GeometricOnHierarchy(1.0, FLAT).sample([0.5, 0.0], 1, None), "data must"),
    (lambda: GeometricOnHierarchy(1.0, FLAT, steps=0), "steps must"),
    (
        lambda: next(chain_states(lambda z: np.full(len(z), -np.inf), Steps(1.0), [[0.0]], lambda z: z, None)),
        "start must",
    ),
)
