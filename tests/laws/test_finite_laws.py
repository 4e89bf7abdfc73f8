"""Each law on random finite mechanisms that use their claims up: what it derives has a listed law that keeps its claim.

No statistics: both sides are computed. That no claim is larger than it has to be is tested in `test_law_claims.py`.
"""

import functools

import numpy as np
import pytest

from dpaudit import laws
from dpaudit.exact import (
    FiniteMechanism,
    hockey_stick_divergence,
    keeps,
    privacy_loss,
    renyi_divergence,
    tempered,
    zcdp_rho,
)
from dpaudit.privacy.claims import ApproxDP, GaussianDP, ProfileClaim, PureDP, RenyiDP, ZeroConcentratedDP

PAIRS = [(0, 1), (1, 2)]
OF_TWO = [((0, 0), (1, 0)), ((0, 1), (0, 2)), ((2, 1), (2, 0))]
KINDS = ("dense", "zeros", "ties", "extreme", "near")
EPSILONS = [0.0, *np.geomspace(0.03, 3.0, 5).tolist()]


def random_mechanisms(rng, count, inputs, outcomes, kind="dense"):
    """Row-stochastic matrices of one of `KINDS`, shape (count, inputs, outcomes).

    Uniform on the simplex; with outcomes that some inputs do not have; with probabilities that are small whole parts,
    so that losses coincide; with weights from 1e-12 to 1; or close to each other (losses of 0.01 nats).
    """
    shape = (count, inputs, outcomes)
    weights = {
        "dense": lambda: rng.exponential(size=shape),
        "zeros": lambda: rng.exponential(size=shape) * (rng.random(shape) < 0.6),
        "ties": lambda: rng.integers(0, 4, size=shape).astype(float),
        "extreme": lambda: np.exp(rng.uniform(np.log(1e-12), 0.0, size=shape)),
        "near": lambda: rng.exponential(size=(count, 1, outcomes)) * np.exp(rng.uniform(-0.01, 0.01, size=shape)),
    }[kind]()
    weights[weights.sum(axis=-1) == 0.0, 0] = 1.0
    return weights / weights.sum(axis=-1, keepdims=True)


def largest_delta(p, q, epsilon):
    return max(hockey_stick_divergence(p, q, epsilon), hockey_stick_divergence(q, p, epsilon))


TIGHT = {
    "pure": lambda p, q: PureDP(privacy_loss(p, q)),
    "approximate": lambda p, q: ApproxDP(0.3, largest_delta(p, q, 0.3)),
    "zcdp": lambda p, q: ZeroConcentratedDP(zcdp_rho(p, q)),
    "renyi": lambda p, q: RenyiDP(4.0, max(renyi_divergence(p, q, 4.0), renyi_divergence(q, p, 4.0))),
    "profile": lambda p, q: ProfileClaim(functools.partial(largest_delta, p, q), name="profile"),
}
FAMILIES = [*TIGHT, "gaussian"]


def on_a_claim(family, rows, mu=0.3):
    """A mechanism with these rows, or near them, and the least claim of the family that it keeps on the pairs."""
    if family == "gaussian":
        return FiniteMechanism(tempered(rows, GaussianDP(mu), PAIRS)), GaussianDP(mu)
    rows = 0.98 * rows + 0.02 / rows.shape[1]
    return FiniteMechanism(rows), laws.weakest_claim([TIGHT[family](rows[i], rows[j]) for i, j in PAIRS])


@functools.cache
def instances(family):
    """Two mechanisms and their claims, of each kind of random mechanisms, and a choice of one of them with its own."""
    found = []
    for kind in KINDS:
        rng = np.random.default_rng([20_261_130, KINDS.index(kind)])
        drawn = random_mechanisms(rng, 2, 3, 4, kind)
        parts, claims = zip(
            *(on_a_claim(family, rows, mu) for rows, mu in zip(drawn, (0.8, 0.4), strict=True)), strict=True
        )
        found.append((parts, claims, on_a_claim(family, random_mechanisms(rng, 1, 3, 2)[0])))
    return found


def column(*values):
    return lambda outputs: np.array(values)[np.asarray(outputs, dtype=int)]


def given(parts, claims, choice, **pairs):
    kept = column(1.0, 0.4, 0.0, 1.0)
    mass = min(float(row @ kept(range(4))) for row in parts[0].matrix)
    return laws.conditioning(parts[0], claims[0], kept, mass=mass, **pairs)


def chosen(law):
    def derive(parts, claims, choice, **pairs):
        return law(parts, claims, choice[0].distribution, choice_claim=choice[1], **pairs)

    return derive


def parallel(changed_pieces, pairs_of_two):
    def derive(parts, claims, choice, pairs):
        return laws.parallel_composition(
            parts, claims, lambda data: data, changed_pieces=changed_pieces, pairs=pairs_of_two
        )

    return derive


RULES = {
    "sequential": lambda parts, claims, _, **pairs: laws.sequential_composition(parts, claims, **pairs),
    "adaptive": lambda parts, claims, _, **pairs: laws.adaptive_composition(
        parts[1], claims[1], parts, claims, column(0, 1, 1, 0), **pairs
    ),
    "post-processing": lambda parts, claims, _, **pairs: laws.post_processing(
        parts[0], claims[0], column(0, 1, 1, 0), **pairs
    ),
    "projection": lambda parts, claims, _, **pairs: laws.projection(
        parts[0], claims[0], laws.BoxProjection(0.5, 2.0), **pairs
    ),
    "mixture": lambda parts, claims, _, **pairs: laws.mixture(parts, claims, [0.3, 0.7], **pairs),
    "disjoint union": lambda parts, claims, _, **pairs: laws.disjoint_union(parts, claims, [0.3, 0.7], **pairs),
    "convexity": lambda parts, claims, _, **pairs: laws.convexity(parts, claims, [0.3, 0.7], **pairs),
    "mixture by the input": chosen(laws.mixture),
    "disjoint union by the input": chosen(laws.disjoint_union),
    "conditioning": given,
    "group": lambda parts, claims, _, **pairs: laws.group_privacy(parts[0], claims[0], 2, **pairs),
    "parallel": parallel(1, OF_TWO),
    "parallel, both pieces": parallel(2, [*OF_TWO, ((0, 1), (1, 2))]),
}
COMPOSED = {"sequential", "adaptive", "mixture by the input", "disjoint union by the input", "parallel, both pieces"}
# Different rhos have no average, and profiles do not compose.
NO_RULE = {("convexity", "zcdp"), *((name, "profile") for name in COMPOSED)}
CASES = [(name, family) for name in RULES for family in FAMILIES if (name, family) not in NO_RULE]


def is_kept(rows, claim):
    """As `keeps`; profiles at 6 epsilons, and a rho with the 1e-6 that is added where it is computed."""
    if isinstance(claim, ProfileClaim):
        ways = [(way, epsilon) for way in (rows, rows[::-1]) for epsilon in EPSILONS]
        return all(hockey_stick_divergence(*way, e) <= claim.profile(e) + 1e-12 for way, e in ways)
    return keeps(rows, claim.with_value(claim.value * (1.0 + 2e-6)) if "rho" in str(claim) else claim)


@pytest.mark.claim("DX-F1.1", "DX-F1.2", "CD-L3.4.1", "UP-P1")
@pytest.mark.parametrize(("name", "family"), CASES)
def test_what_a_law_derives_keeps_its_claim(name, family):
    for parts, claims, choice in instances(family):
        subject, claim = RULES[name](parts, claims, choice, pairs=PAIRS)
        assert subject.pairs()
        for pair in subject.pairs():
            rows = np.stack([subject.distribution(data) for data in (pair.x, pair.x_prime)])
            assert is_kept(rows, claim), (pair, claim)
