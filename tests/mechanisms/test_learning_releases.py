"""PATE and the synthetic-data generator: audits at their claims, and of their faulty twins, by scores of many runs."""

import numpy as np
import pytest

import dpaudit
from dpaudit.scores.bets import ScoreBets, labelled
from dpaudit_mechanisms.learning import marginals, pate

RUNS = 400  # of either side
RELEASES = 8  # of PATE in one run


def decided(scores, claim, level):
    rng = np.random.default_rng(20_261_125)
    return ScoreBets(*labelled(*scores, rng), claim).decided_at(level)


@pytest.mark.parametrize("fault", ["none", "too_little_noise", "votes_of_each_model"])
def test_pate_keeps_its_claim_and_its_twins_do_not(fault):
    mechanism = pate.NoisyVotes(0.25, 3, fault)
    scores = pate.membership_scores(mechanism, RELEASES, RUNS, np.random.default_rng(1))
    claim = dpaudit.PureDP(RELEASES * mechanism.epsilon)
    if fault == "none":
        assert decided(scores, claim, 1e-6) is None  # false alarms: 1e-6 by Ville's inequality
    else:
        assert decided(scores, claim, 0.05) is not None  # within 2 x 400 scores


@pytest.mark.parametrize("fault", ["none", "noise_for_one_marginal", "structural_zeros"])
def test_the_generator_keeps_its_claim_and_its_twins_do_not(fault):
    mechanism = marginals.ChainGenerator(1.0, fault)
    scores = marginals.membership_scores(mechanism, RUNS, np.random.default_rng(1))
    if fault == "none":
        assert decided(scores, mechanism.claim, 1e-6) is None  # false alarms: 1e-6 by Ville's inequality
    else:
        assert decided(scores, mechanism.claim, 0.05) <= 200


def test_the_generator_draws_the_stated_number_of_records_in_the_proportions_of_the_data():
    data = np.array([[0, 0, 0]] * 300 + [[1, 1, 1]] * 100)
    drawn = marginals.ChainGenerator(100.0).sample(data, 50, np.random.default_rng(2))
    assert np.all(drawn.sum(axis=(1, 2, 3)) == marginals.DRAWN)
    # 50 x 400 records, a quarter of them: a standard deviation of 0.3%; seven of them
    assert drawn[:, 1, 1, 1].sum() / (50 * marginals.DRAWN) == pytest.approx(0.25, abs=0.022)
