"""The band of a trade-off function: what it costs, that it holds, and when there is none."""

import numpy as np
import pytest
from scipy import stats
from support.audit_runs import run_of
from support.samplers import laplace

import dpaudit
from dpaudit.audits import band as stage
from dpaudit.privacy.pairs import Pair
from dpaudit.reports import render

QUICK = {"claim": "eps=1", "pairs": [(0.0, 1.0)], "samples": 600, "seed": 3, "floating_point": False}


def columns(data, size, rng):
    """Forty columns of noise, whatever the input is."""
    return rng.normal(size=(size, 40))


def laplace_curve(type_one, shift):
    """The trade-off function of Laplace(0, 1) against Laplace(shift, 1), from its closed form."""
    if type_one < 0.5 * np.exp(-shift):
        return 1.0 - np.exp(shift) * type_one
    return np.exp(-shift) / (4.0 * type_one) if type_one <= 0.5 else (1.0 - type_one) * np.exp(-shift)


def is_wrong(points, curve):
    """Whether a limit is on the wrong side of the truth; thresholds of the output are the best tests in these laws."""
    return any(point.upper < curve(point.type_one) - 1e-9 for point in points) or any(
        point.thresholds_lower > curve(point.type_one) + 1e-9 for point in points
    )


def examined(mechanism, x_prime, seed, samples=80):
    pair = Pair(0.0, x_prime, "pair")
    return stage.examine(run_of(mechanism, pair, dpaudit.PureDP(1.0), samples, seed), 0, LEVEL)


RUNS, LEVEL = 30, 0.05
FALSE_ALARM_RATE = 2e-6  # P(binomial(30, 0.05) >= 10) = 1.2e-6, of a band that is wrong as often as it may be


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism, curve", [(laplace, lambda a: laplace_curve(a, 1.0)), (columns, lambda a: 1.0 - a)]
)  # fmt: skip
def test_the_band_is_wrong_no_more_often_than_its_level_says(mechanism, curve):
    assert stats.binom.sf(9, RUNS, LEVEL) < FALSE_ALARM_RATE
    found = [examined(mechanism, 1.0, seed)[0] for seed in range(RUNS)]
    assert all(band.points and band.draws == 60 and not band.reason for band in found)
    assert sum(is_wrong(band.points, curve) for band in found) < 10


@pytest.mark.slow
def test_a_score_that_is_fitted_on_the_draws_of_its_band_is_wrong_more_often():
    """The negative control: without the split a line through forty columns of noise makes them look like two laws."""
    wrong = 0
    for seed in range(RUNS):
        sides = np.random.default_rng(seed).normal(size=(2, 60, 40))
        line = np.linalg.lstsq(np.concatenate(sides), np.repeat([0.0, 1.0], 60), rcond=None)[0]
        edges = np.linspace(0.0, 1.0, 80)
        counts = [np.bincount(np.digitize(side @ line, edges), minlength=81) for side in sides[::-1]]
        at = np.linspace(0.0, 1.0, 51)
        wrong += bool(np.any(stage.band_of_bins(*counts, LEVEL).upper(at) < 1.0 - at - 1e-9))
    assert wrong >= 10


def test_a_loss_above_the_claim_shows_in_the_band_and_the_draws_are_those_that_were_planned():
    band, runs = examined(lambda data, size, rng: data + rng.laplace(scale=0.3, size=size), 1.0, 1, samples=1_200)
    assert any(point.upper < point.claimed for point in band.points)
    assert runs == 2 * sum(stage.draws_of(1_200, is_vectorised=True)) == 2_400
    upper = [point.upper for point in band.points]
    assert upper == sorted(upper, reverse=True) and all(p.thresholds_lower <= p.upper for p in band.points)


def test_the_result_is_reported():
    result = dpaudit.audit(laplace, **QUICK, band=True)
    page = render(result, "html")
    assert "Trade-off between the errors of an attack" in page and "450 further draws" in page
    assert "Trade-off between the errors of an attack" not in render(dpaudit.audit(laplace, **QUICK), "html")


@pytest.mark.parametrize("mechanism, reason", [
    (lambda data, size, rng: data + np.full(size, rng.laplace()), stage.DEPEND),  # one noise a batch
    (lambda data, size, rng: 1 / 0, stage.RAISED),
])  # fmt: skip
def test_there_is_no_band_where_draws_say_nothing_of_a_law(mechanism, reason):
    band, _ = examined(mechanism, 1.0, 1, samples=1_000)
    assert (band.points, band.reason) == ((), reason)


def test_a_pair_without_an_answer_has_a_reason_that_the_report_says():
    result = dpaudit.audit(lambda data, size, rng: data + np.full(size, rng.laplace()), **QUICK, band=True)
    assert result.trade_off.points == () and result.trade_off.reason
    assert result.trade_off.reason in render(result, "html")


def test_calls_on_the_two_inputs_are_made_in_one_random_order():
    """What changes slowly from call to call would make two equal laws look different, were one input drawn first."""
    called = []

    def remembers(data, rng):
        called.append(data)
        return float(rng.laplace())

    examined(remembers, 1.0, 1, samples=100)
    training, testing = stage.draws_of(100, is_vectorised=False)
    test = called[-2 * testing :]
    assert sum(called) == training + testing and sum(test) == testing
    assert stats.hypergeom.cdf(14, 2 * testing, testing, testing) < 1e-14  # the false-alarm rate, on either side
    assert 14 < sum(test[:testing]) < testing - 14


def test_outputs_that_are_no_numbers_have_a_band():
    def word(data, size, rng):
        return np.where(rng.random(size) < 0.1 + 0.6 * data, "yes", "no").tolist()

    band, _ = examined(word, 1.0, 2, samples=800)
    assert any(point.upper < point.claimed for point in band.points)  # true epsilon is log 7
