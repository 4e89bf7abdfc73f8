"""The uses of the error rate on one pair: who has which part of it, what is fitted on what, and when it is looked at.

The uses are stand-ins that note what they are asked, so each number is known beforehand and nothing is drawn.
"""

import math

import pytest

from dpaudit.inference.failures import Failure
from dpaudit.inference.pair_game import PairGame
from dpaudit.inference.pair_game import tests_of as portfolio_of
from dpaudit.privacy.claims import ApproxDP, GaussianDP, MetricDP, PureDP, RenyiDP, ZeroConcentratedDP

DRAWS = 5_000


class Use:
    """A test that notes what it is asked; its lower bound is known once it was asked for."""

    def __init__(self, bound=0.0, log_wealth=None, is_sure=False):
        self.draws, self.level, self.asked = DRAWS, math.nan, []
        self._bound, self.known_lower = bound, 0.0
        self.log_wealth, self.is_sure = log_wealth, is_sure

    @property
    def lower(self):
        self.known_lower = self._bound
        return self._bound

    @property
    def is_rejected(self):
        return self.known_lower > 1.0

    def prepare(self, training, level):
        self.asked.append(("prepare", training, level))

    def prepare_on_counts(self):
        self.asked.append(("on counts",))

    def start(self, level):
        self.level = level

    def update(self):
        self.asked.append(("update",))

    def describe(self, x, x_prime):
        return f"{x} against {x_prime}"


def pair_with(*uses, claim=None, inputs=(0, 1)):
    pair = PairGame(claim or PureDP(1.0), inputs, True, DRAWS)
    pair.uses, pair.main = list(uses), uses[0][1]
    return pair


ONE = {"pure": PureDP(1.0), "approximate": ApproxDP(1.0, 1e-3), "metric": MetricDP(lambda x, y: 1.0).for_pair(0, 1)}
TWO = {"gaussian": GaussianDP(1.0), "renyi": RenyiDP(2.0, 1.0), "zcdp": ZeroConcentratedDP(0.5)}


@pytest.mark.parametrize("sequential", [False, True])
@pytest.mark.parametrize("name", [*ONE, *TWO])
def test_each_claim_has_the_tests_of_its_family_and_mode(name, sequential):
    claim = (ONE | TWO)[name]
    uses = portfolio_of(claim, sequential, DRAWS)
    are_bets = sequential or claim.family == "renyi"  # which has no exact test
    assert [test.can_be_sure for _, test in uses] == [not are_bets] * len(uses)  # exact tests alone are ever sure
    if name in ONE:
        assert [share for share, _ in uses] == [1.0]
    else:
        assert [share for share, _ in uses] == pytest.approx([0.8, 0.2])
        # The second bound is on epsilon at the delta of reports.
        assert isinstance(uses[1][1].claim, ApproxDP)
        assert (uses[1][1].claim.epsilon, uses[1][1].claim.delta) == (claim.budget.epsilon, claim.budget.delta)
    assert uses[0][1].claim is claim and {test.draws for _, test in uses} == {DRAWS}


def test_a_budget_of_more_than_700_nats_is_asked_at_700():
    claim = GaussianDP(60.0)
    assert claim.budget.epsilon > 700.0
    assert portfolio_of(claim, False, DRAWS)[1][1].claim.epsilon == 700.0


def test_every_use_looks_and_the_main_one_is_noted_where_it_bets():
    first, second = Use(bound=0.7, log_wealth=1.5), Use(bound=0.4, log_wealth=9.0)
    pair = pair_with((0.8, first), (0.2, second))
    pair.labelled = 120
    pair.look()
    assert first.asked == second.asked == [("update",)]
    assert [(look.draws, look.log_wealth, look.parameter_lower) for look in pair.looks] == [(120, 1.5, 0.0)]
    first.log_wealth, pair.labelled = 2.5, 240
    pair.look()
    pair.finish()  # the bound is computed once, for the last look
    assert [(look.draws, look.log_wealth, look.parameter_lower) for look in pair.looks] == [
        (120, 1.5, 0.0),
        (240, 2.5, 0.7),
    ]
    assert second.known_lower == 0.4 and pair.epsilon_lower == 0.4
    exact = pair_with((1.0, Use(bound=0.7)))
    exact.look()
    exact.finish()
    assert exact.looks == [] and exact.main.known_lower == 0.7 and exact.wealth == 0.0 and pair.wealth == 2.5


def test_a_longer_pilot_takes_its_draws_from_every_use_and_leaves_one():
    first, second = Use(), Use()
    pair = pair_with((0.8, first), (0.2, second))
    pair.lengthen_pilot(1_000)
    pair.lengthen_pilot(500)
    assert (pair.pilot_more, first.draws, second.draws) == (1_500, 3_500, 3_500)
    pair.lengthen_pilot(9_000)
    assert (pair.pilot_more, first.draws) == (10_500, 1)


def test_a_pair_is_broken_where_all_calls_raised_and_may_return_where_no_process_ended():
    pair = pair_with((1.0, Use()))
    assert not pair.is_broken and not pair.may_return
    raised, ended = Failure("ValueError", 64), Failure("SystemExit", 64, took_process=True)
    for failures, may_return in (([raised], True), ([ended], False), ([None], False), ([None, ended, raised], True)):
        pair.failures = failures
        assert pair.may_return == may_return
    assert not pair.is_broken  # that some member raises is not all that the pool does
    pair.failure = ended
    assert pair.is_broken


def test_the_ratio_is_the_bound_over_the_budget():
    pair = pair_with((1.0, Use(bound=3.0)), claim=PureDP(2.0))
    pair.claim = PureDP(2.0)
    assert pair.ratio_lower == 0.0 and not pair.is_violated  # before the bound is computed
    pair.finish()
    assert pair.ratio_lower == 1.5 and pair.is_violated
    pair.claim = PureDP(0.0)
    assert pair.ratio_lower == math.inf
    pair.main.known_lower = 0.0
    assert pair.ratio_lower is None
