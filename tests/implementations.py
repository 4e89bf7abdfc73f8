"""The table of all implementations of `dpaudit.inference.protocols.Test`, and of the claims and laws they are held to.

`tests/inference/test_one_face.py` and `tests/inference/test_what_is_counted.py` hold every row to the contract. Another
engine is one more row of `TESTS`: a name, a callable from (claim, labelled draws) to a `Test`, and the families of
claims for which that is an exact test (a test that bets otherwise).

A law here is a pair (P, Q) of distributions on a few outcomes, the numbers 0, 1, 2, ..., that keeps its claim in both
orders that are promised, and reaches it: with it, level and wealth are exact sums.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy import special, stats

from dpaudit.exact.response import loss_on_claim
from dpaudit.features.outcomes import Outcomes, read_outputs
from dpaudit.inference.learning_state import LearningState
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.protocols import Test, Training
from dpaudit.privacy.claims import ApproxDP, Claim, GaussianDP, ProfileClaim, PureDP, RenyiDP, ZeroConcentratedDP
from dpaudit.privacy.trade_off import FDP

Make = Callable[[Claim, int], Test]


@dataclasses.dataclass(frozen=True)
class Row:
    """An implementation: how a test is made, and for which families of claims it is exact instead of betting."""

    make: Make
    exact: tuple[str, ...] = ()

    def bets_on(self, claim: Claim) -> bool:
        return claim.family not in self.exact


def _of_pair(*, sequential: bool) -> Make:
    """The test that decides the verdict of a pair."""
    return lambda claim, draws: PairGame(claim, (0, 1), sequential, draws).main


TESTS: dict[str, Row] = {
    "fixed": Row(_of_pair(sequential=False), exact=("hockey-stick",)),
    "sequential": Row(_of_pair(sequential=True)),
}


# --- claims ---


@dataclasses.dataclass(frozen=True)
class Bits(Claim):
    """A loss in bits: one line at each value, whose epsilon is not the parameter."""

    bits: float
    parameter = "bits"
    value = property(lambda self: self.bits)

    def with_value(self, value):
        return dataclasses.replace(self, bits=value)

    def __str__(self):
        return f"bits={self.bits:g}"

    def epsilon_at(self, delta):
        return self.bits * math.log(2.0)

    def lines(self, values, anchor):
        return np.asarray(values) * math.log(2.0), np.zeros(len(values))


@dataclasses.dataclass(frozen=True)
class Slack(Claim):
    """The delta at one epsilon as the parameter: a total variation at epsilon 0."""

    slack: float
    at: float = 0.0
    parameter = "slack"
    value = property(lambda self: self.slack)

    def with_value(self, value):
        return dataclasses.replace(self, slack=value)

    def __str__(self):
        return f"slack={self.slack:g}"

    def epsilon_at(self, delta):
        return self.at if delta >= self.slack else math.inf

    def lines(self, values, anchor):
        return np.full(len(values), self.at), np.minimum(values, 1.0)


@dataclasses.dataclass(frozen=True)
class Centinats(RenyiDP):
    """A Renyi divergence in hundredths of a nat."""

    def renyi_epsilons(self, values, order):
        return super().renyi_epsilons(np.asarray(values) / 100.0, order)

    def epsilon_at(self, delta):
        return RenyiDP(self.order, self.epsilon / 100.0).epsilon_at(delta)


def profile_of_response(epsilon: float) -> float:
    """The privacy profile of randomised response whose loss is 1."""
    return max(math.e - math.exp(min(epsilon, 2.0)), 0.0) / (1.0 + math.e)


# Of a false-positive rate under P: an outcome of Q alone, one that Q has more often, and one that P has.
CORNERS = [(0.0, 0.8), (0.4, 0.1), (1.0, 0.0)]


CLAIMS: dict[str, Claim] = {
    "eps": PureDP(0.7),
    "eps, delta": ApproxDP(0.7, 0.1),
    "mu": GaussianDP(0.8),
    "profile": ProfileClaim(profile_of_response),
    "one order": FDP(CORNERS, ordered=True),
    "rho": ZeroConcentratedDP(0.2),
    "renyi": RenyiDP(2.0, 0.4),
    "own line": Bits(1.0),
    "own delta": Slack(0.3),
    "own renyi": Centinats(2.0, 40.0),
}


# --- laws on the claim ---


@dataclasses.dataclass(frozen=True)
class Law:
    """Two distributions on the outcomes 0, 1, 2, ..."""

    p: np.ndarray
    q: np.ndarray

    @property
    def outcomes(self) -> list[Outcomes]:
        """Each outcome, as a batch of one draw."""
        return [read_outputs([float(k)], 1) for k in range(len(self.p))]

    @property
    def mirrored(self) -> Law:
        return Law(self.q, self.p)

    def beyond(self) -> Law:
        """A law that leaks far more, on the same outcomes."""
        ratio = np.clip((self.p + 0.01) / (self.q + 0.01), 0.05, 20.0) ** 2
        p, q = (self.p + 1e-3) * ratio, (self.q + 1e-3) / ratio
        return Law(p / p.sum(), q / q.sum())

    def draws(self, size: int, seed: int) -> tuple[Outcomes, Outcomes]:
        """As many draws of P and of Q."""
        rng = np.random.default_rng(seed)
        sides = [rng.choice(len(side), size=size, p=side).astype(float) for side in (self.p, self.q)]
        return read_outputs(sides[0], size), read_outputs(sides[1], size)

    def training(self, size: int, seed: int) -> Training:
        return Training(*self.draws(size, seed))


def response(claim: Claim, mass: float) -> Law:
    """Randomised response on an event of this mass with the largest loss that the claim allows, and a third outcome."""
    right, wrong = (mass * special.expit(side * loss_on_claim(claim, mass)) for side in (1.0, -1.0))
    return Law(np.array([right, 1.0 - mass, wrong]), np.array([wrong, 1.0 - mass, right]))


@functools.cache
def laws_on(claim: Claim) -> dict[str, Law]:
    """Laws that keep the claim and reach it; none for a claim of one order that is stretched."""
    if isinstance(claim, FDP):
        rates = np.array(CORNERS)
        p, q = np.append(0.0, np.diff(rates[:, 0])), np.append(1.0 - rates[0, 1], -np.diff(rates[:, 1]))
        return {"corners": Law(p, q)} if claim.value == 1.0 else {}
    laws = {"response": response(claim, 0.8 if not isinstance(claim, ProfileClaim) else 1.0 - 1e-9)}
    if isinstance(claim, PureDP):  # an outcome that P has more often, balanced by one that is as much less likely
        most, rare = math.exp(claim.value), 0.1
        other = rare * (most - 1.0) / (1.0 - 1.0 / most)
        q = np.array([rare, 1.0 - rare - other, other])
        laws["lopsided"] = Law(np.array([most * rare, q[1], other / most]), q)
    if isinstance(claim, ApproxDP) and claim.delta:  # outcomes of one input alone, and randomised response
        rest = (1.0 - claim.delta) * special.expit(np.array([claim.epsilon, -claim.epsilon]))
        p = np.array([claim.delta, *rest, 0.0])
        laws["own outcomes"] = Law(p, p[::-1])
    if isinstance(claim, GaussianDP):  # a normal law in cells
        cuts = np.array([claim.value / 2.0, claim.value + 0.5])
        sides = [np.diff(stats.norm.cdf(cuts - mean), prepend=0.0, append=1.0) for mean in (claim.value, 0.0)]
        laws["normal"] = Law(*sides)
    return laws


# --- exact sums ---

Record = tuple[np.ndarray, np.ndarray]  # how often each outcome was drawn, of x and of x_prime


def records(law: Law, draws: int) -> Iterator[tuple[float, Record]]:
    """All records of so many fairly labelled draws, with their probabilities.

    Outcomes that neither side has are left out.
    """
    chance = 0.5 * np.concatenate([law.p, law.q])
    cells = np.flatnonzero(chance > 0.0)
    for bars in itertools.combinations(range(draws + len(cells) - 1), len(cells) - 1):
        counts = np.diff([-1, *bars, draws + len(cells) - 1]) - 1
        log = special.gammaln(draws + 1.0) - special.gammaln(counts + 1.0).sum() + counts @ np.log(chance[cells])
        both = np.zeros(len(chance), dtype=np.int64)
        both[cells] = counts
        yield math.exp(log), (both[: len(law.p)], both[len(law.p) :])


FITS: dict[tuple[bytes, ...], dict[str, object]] = {}  # by the draws of a fit


def learn_once(state: LearningState, training: Training, share: float = 1.0, learn=LearningState.learn) -> None:
    """In the place of `LearningState.learn`: what the first fit of these draws has learned is taken over by others."""
    if state.rounds or training.hints != Training(training.first, training.second).hints:
        learn(state, training, share)
        return
    key = training.first.numbers.tobytes(), training.second.numbers.tobytes(), str(share).encode()
    if key not in FITS:
        learn(state, training, share)
        FITS[key] = copy.deepcopy(vars(state))
    vars(state).update(copy.deepcopy(FITS[key]))


class Prepared:
    """A test that was prepared and started, and what it counts of each outcome of a law: asked again and again."""

    def __init__(self, test: Test, law: Law) -> None:
        self.test = test
        self.rows = np.array([test.statistic.count(outcome) for outcome in law.outcomes])

    def counted(self, *parts: Record) -> Test:
        """A copy of the test that has counted these records."""
        test = copy.deepcopy(self.test, {id(self.test.claim): self.test.claim})
        for record in parts:
            test.add(*(counts @ self.rows for counts in record))
        return test

    def after(self, *looks: Record) -> Test:
        """A copy of the test that has counted these records, with a look at each."""
        test = copy.deepcopy(self.test, {id(self.test.claim): self.test.claim})
        for record in looks:
            test.add(*(counts @ self.rows for counts in record))
            test.update()
        return test


def prepared(make: Make, claim: Claim, training: Training, level: float, draws: int) -> Test:
    """A test that was prepared on these draws, and started."""
    test = make(claim, draws)
    test.prepare(training, level)
    test.start(level)
    return test
