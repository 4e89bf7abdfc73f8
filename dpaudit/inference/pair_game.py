"""The label game on one pair, or one pool of pairs: its uses of the error rate, their fits, looks and bounds."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from dpaudit.features.density import NO_HINTS, Hints
from dpaudit.features.outcomes import Outcomes
from dpaudit.inference.betting import Betting
from dpaudit.inference.exact import ExactTest
from dpaudit.inference.failures import Failure
from dpaudit.inference.independence import Score
from dpaudit.inference.learning_state import Training
from dpaudit.inference.order import Change
from dpaudit.inference.pools import Pool
from dpaudit.inference.protocols import Test
from dpaudit.privacy.claims import LARGEST_EPSILON, ApproxDP, Claim, epsilon_of_broken_line
from dpaudit.results.model import Keys, Look, Sketch

SHARE_OF_PARAMETER = 0.8  # of a pair's level, where epsilon at the report delta is a second use
REPEATS = (
    "(The first outputs on each input are all the same: there is no noise, or a batch or a process has drawn it once. "
    "Then draws are not independent, and this says little of a single one.)"
)
FAR_SHARE = 0.25  # of the log wealth that decides, below which a pair is far from it
FAR_DRAWS = 1_000  # labelled draws before which no pair is
# Bets are fitted again on counts, where no more draws are kept, at this many times the labelled draws of the last fit.
COUNTS_GROWTH = 1.2


def tests_of(claim: Claim, sequential: bool, draws: int) -> list[tuple[float, Test]]:
    """The tests of a pair with their shares of its level: of the claim's parameter first, which is the verdict's.

    A bound on the parameter of one line implies one on epsilon; any other claim pays for a second bound, on epsilon at
    the report delta. A fixed test of Renyi inequalities bets, and looks once.
    """
    epsilon = min(own.epsilon_at(claim.report_delta) for own in claim.directions)  # values near it are bet on
    at = ApproxDP(min(epsilon, LARGEST_EPSILON), claim.report_delta)
    kind: type[Betting | ExactTest] = Betting if sequential or claim.family == "renyi" else ExactTest
    main = kind(claim, draws)
    second = kind(at, draws, main)
    return [(1.0, main)] if claim.is_one_line else [(SHARE_OF_PARAMETER, main), (1.0 - SHARE_OF_PARAMETER, second)]


class PairGame:
    """The uses of the error rate on one pair: its claim's parameter and, where that is another number, epsilon.

    The value of `claim` is finite. `inputs` are the positions of x and x_prime among the inputs of the label game, or
    of all pairs of a pool. A `sequential` game bets round by round; `draws` labelled draws may be counted.
    """

    def __init__(
        self,
        claim: Claim,
        inputs: tuple[int, int] | Pool,
        sequential: bool,
        draws: int,
        hints: Hints = NO_HINTS,
    ) -> None:
        self.claim, self.hints, self.is_fixed = claim, hints, not sequential
        self.pool = inputs if isinstance(inputs, Pool) else Pool.single(inputs)
        self.uses = tests_of(claim, sequential, draws)
        self.main = self.uses[0][1]
        self.labelled = 0  # draws counted
        self.labelled_before = 0  # of them, those of earlier runs that this one goes on from
        self.level = math.nan
        self.pilot_more = 0  # labelled draws by which its pilot is longer than that of the other pairs
        self.failure: Failure | None = None  # of every call of the pilot, if all raised, on all inputs
        self.failures: list[Failure | None] = []  # the same on both inputs, of each member of the pool
        self.unseen = ""  # a class among the first outputs of which nothing is seen but its name
        self.repeats = False  # whether all outputs of the pilot on one input are one and the same, on both
        self.change: Change | None = None  # of the outcomes of one of its inputs from call to call
        self.earlier_change: Change | None = None  # the same, in an earlier run that this one goes on from
        self.hint = 1.0  # an approximate p-value of how its outcomes are spread over batches: `order.dependence_hint`
        # Whether the labels of its draws are fair coins given all that came before, whatever calls remember.
        self.is_fair = False
        self.remarks: tuple[str, ...] = ()  # warnings about degenerate outputs, of those that were kept
        self.keys: Keys | None = None  # of those of them that are dictionaries
        self.looks: list[Look] = []
        self.trained_on = self.labelled_at_fit = 0

    def fit(self, first: Outcomes, second: Outcomes, level: float) -> None:
        """Fit every use on earlier draws of x and x_prime; `level` is about what the pair will have."""
        self.hints = self.hints.fitting(first, second)
        training = Training(first, second, self.hints)
        for share, test in self.uses:
            test.prepare(training, level * share)
        self.trained_on = min(len(first), len(second))
        self.labelled_at_fit = self.labelled

    def fit_again(self, draws_before: int) -> None:
        """Bet on what has been counted, once that is much more than at the last fit; `draws_before` of the pilot."""
        if self.labelled + draws_before < COUNTS_GROWTH * (self.labelled_at_fit + draws_before):
            return
        for _, test in self.uses:
            test.prepare_on_counts()
        self.labelled_at_fit = self.labelled

    def start(self, level: float) -> None:
        """Fix the levels of all uses, before the first counted draw."""
        self.level = level
        for share, test in self.uses:
            test.start(level * share)

    def look(self) -> None:
        """Let every use look at its record, and note where the evidence stands."""
        for _, test in self.uses:
            test.update()
        wealth = self.main.log_wealth
        if wealth is not None:
            self.looks.append(Look(self.labelled, wealth, self.main.known_lower))

    def finish(self) -> None:
        """Compute the bounds, which are not kept up to date at every look, and note the verdict's at the last one."""
        for _, test in self.uses:
            _ = test.lower
        if self.looks:
            self.looks[-1] = dataclasses.replace(self.looks[-1], parameter_lower=self.main.lower)

    @property
    def bettors(self) -> list[tuple[float, Betting]]:
        """The uses that bet, which alone can go on in a later run."""
        return [(share, test) for share, test in self.uses if isinstance(test, Betting)]

    @property
    def inputs(self) -> tuple[int, ...]:
        """The positions of its inputs, each once."""
        return self.pool.inputs

    @property
    def is_broken(self) -> bool:
        """Tell whether every call of the pilot raised, on both inputs: an error, not an outcome to compare."""
        return self.failure is not None

    @property
    def score(self) -> Score | None:
        """Score of an output on its first input by its rule; None without one, and where outputs are moved first."""
        return None if self.is_broken or self.pool.members[0].move is not None else self.main.score

    @property
    def may_return(self) -> bool:
        """Tell if there are calls to make again: all on both inputs of a member raised, without ending a process."""
        return any(failure is not None and not failure.took_process for failure in self.failures)

    def lengthen_pilot(self, labelled: int) -> None:
        """Take so many labelled draws from the test for the pilot, before the test has begun."""
        self.pilot_more += labelled
        for _, test in self.uses:
            test.draws = max(test.draws - labelled, 1)

    def describe(self, x: str, x_prime: str) -> str:
        """The witness of the verdict in words."""
        words = self.main.describe(x, x_prime)
        return f"{words} {REPEATS}" if self.repeats else words

    def sketch(self) -> Sketch | None:
        """Earlier draws along the view of the witness, for a picture."""
        return self.main.sketch()

    @property
    def wealth(self) -> float:
        """Log wealth against the budget at the last look."""
        wealth = self.main.log_wealth
        return 0.0 if wealth is None else wealth

    @property
    def is_far(self) -> bool:
        """Tell whether its wealth is so low, after many draws, that a few more would hardly decide it."""
        return self.labelled >= FAR_DRAWS * self.pool.breadth and self.wealth < -FAR_SHARE * math.log(self.level)

    @property
    def is_sure(self) -> bool:
        """Tell whether every use has a rule with enough right guesses and no wrong one in training."""
        return all(test.is_sure for _, test in self.uses)

    @property
    def is_violated(self) -> bool:
        """The verdict *is* the bound above the budget."""
        return self.main.is_rejected

    @property
    def ratio_lower(self) -> float | None:
        """Lower bound over budget; at a budget of 0: inf if violated, else None."""
        if self.claim.value == 0.0:
            return math.inf if self.is_violated else None
        return self.main.known_lower / self.claim.value

    @property
    def epsilon_lower(self) -> float:
        """The lower bound on epsilon at the report delta: of a use of its own, or what the parameter's implies."""
        return self.uses[-1][1].lower if len(self.uses) > 1 else self.epsilon_of(self.main.lower)

    def epsilon_of(self, rejected: float) -> float:
        """The lower bound on epsilon at the report delta that a rejected value of a one-line claim implies."""
        if not rejected > 0.0:
            return 0.0
        # Validity: one of the orders broke its line, and it is not known which.
        lines = (own.lines(np.array([rejected]), 0.0) for own in self.claim.directions)
        at = self.claim.report_delta
        return min(epsilon_of_broken_line(float(epsilon[0]), float(delta[0]), at) for epsilon, delta in lines)
