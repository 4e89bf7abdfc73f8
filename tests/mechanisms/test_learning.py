"""DP-SGD: what it computes, what it promises by three accountants, and audits of it and of its faulty twins."""

import importlib

import numpy as np
import pytest
from scipy import special

import dpaudit
from dpaudit.scores.bets import ScoreBets, labelled

pytest.importorskip("sklearn", reason="needs scikit-learn (extra learning)")

from dpaudit_mechanisms.learning.accountant import SampledGaussian
from dpaudit_mechanisms.learning.dp_sgd import (
    PROBES,
    Canaries,
    Training,
    digits,
    projection_scores,
    train,
)
from dpaudit_mechanisms.learning.faulty import TWINS, exposure

LEVEL = 1e-3  # of each audit in this file of a sound training; two of them


def claim_of(training):
    return dpaudit.ProfileClaim(training.promise.profile, name="DP-SGD")


# --- the accountant ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma, steps", [(1.0, 1), (2.0, 4), (5.0, 16)])
def test_without_sampling_the_profile_is_that_of_gaussian_dp(sigma, steps):
    promise, mu = SampledGaussian(steps, 1.0, sigma), steps**0.5 / sigma
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        exact = special.ndtr(-epsilon / mu + mu / 2) - np.exp(epsilon) * special.ndtr(-epsilon / mu - mu / 2)
        assert exact <= promise.profile(epsilon) <= exact + 1.5e-3 * steps  # losses are rounded up by 2e-3 at most


def test_losses_that_need_too_fine_a_grid_are_refused_at_once():
    """Noise of 1e-3 asked for 5e8 places, and the process was killed for its memory."""
    with pytest.raises(dpaudit.UsageError, match=r"noise_multiplier must be larger, got losses that need 5\.1e"):
        SampledGaussian(1, 1.0, 1e-3).profile(1.0)


def test_one_sampled_step_is_the_hockey_stick_divergence_of_the_mixture():
    promise, q, sigma = SampledGaussian(1, 0.2, 0.7), 0.2, 0.7
    x = np.linspace(-9.0, 10.0, 400_001)
    base, shifted = np.exp(-0.5 * (x / sigma) ** 2), np.exp(-0.5 * ((x - 1.0) / sigma) ** 2)
    first, second = (1 - q) * base + q * shifted, base
    scale = (x[1] - x[0]) / (sigma * np.sqrt(2.0 * np.pi))
    for epsilon in (0.0, 0.3, 1.0):
        both = [np.maximum(a - np.exp(epsilon) * b, 0.0).sum() * scale for a, b in ((first, second), (second, first))]
        assert max(both) - 1e-6 <= promise.profile(epsilon) <= max(both) + 2.5e-3


def renyi_epsilon(setting, delta):
    """An upper bound on epsilon at delta, from Renyi divergences of integer orders, which shares no formula with ours.

    log sum_k binom(a, k) (1 - q)^(a - k) q^k exp((k^2 - k) / (2 sigma^2)) / (a - 1) (Mironov, Talwar and Zhang 2019,
    section 3.3), and the conversion of Canonne, Kamath and Steinke (2020), arXiv:2004.00010, proposition 12.
    """
    q, best = setting.sampling_probability, np.inf
    for order in (*range(2, 65), 96, 128, 192, 256):
        k = np.arange(order + 1)
        terms = (k * k - k) / (2.0 * setting.noise_multiplier**2) + np.log(special.binom(order, k))
        terms += special.xlogy(k, q) + special.xlog1py(order - k, -q)
        divergence = setting.steps * special.logsumexp(terms) / (order - 1.0)
        epsilon = divergence + np.log1p(-1.0 / order) - np.log(delta * order) / (order - 1.0)
        best = min(best, max(epsilon, 0.0))
    return best


@pytest.mark.parametrize("setting", [SampledGaussian(100, 0.1, 1.0), SampledGaussian(20, 0.3, 1.5)])
def test_two_accountants_agree_as_far_as_renyi_divergences_can(setting):
    ours, renyi = setting.epsilon(1e-5), renyi_epsilon(setting, 1e-5)
    assert ours <= renyi <= 1.3 * ours


@pytest.mark.slow
@pytest.mark.parametrize("setting", [SampledGaussian(100, 0.1, 1.0), SampledGaussian(20, 0.3, 1.5)])
def test_the_accountant_agrees_with_dp_accounting(setting):
    dp_accounting = pytest.importorskip("dp_accounting", reason="needs dp-accounting (extra learning)")
    step = dp_accounting.GaussianDpEvent(setting.noise_multiplier)
    accountant = importlib.import_module("dp_accounting.pld").PLDAccountant()
    accountant.compose(dp_accounting.PoissonSampledDpEvent(setting.sampling_probability, step), setting.steps)
    theirs = accountant.get_epsilon(1e-5)
    assert theirs - 1e-3 <= setting.epsilon(1e-5) <= theirs + 0.11  # ours rounds losses up by 0.1 in all at most


# --- the training -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["logistic", "network"])
def test_one_step_without_noise_adds_the_clipped_gradients_of_each_example(model):
    """Against gradients by finite differences of each example's loss, clipped one by one."""
    features, classes = digits(6)
    training = Training(1, 1.0, 0.0, clip=0.8, learning_rate=1.0, model=model)
    none = Canaries(np.zeros((1, 1), dtype=bool))
    before = train(features, classes, none, Training(1, 1.0, 0.0, 0.8, 0.0, model), np.random.default_rng(0)).tensors
    after = train(features, classes, none, training, np.random.default_rng(0)).tensors

    def loss(tensors, k):
        inputs = features[k]
        if model == "network":
            inputs = np.tanh(inputs @ tensors[0])
        return -special.log_softmax(inputs @ tensors[-1])[classes[k]]

    start = [part[0] for part in before]
    total = [np.zeros_like(part) for part in start]
    for k in range(len(features)):
        gradient = [np.zeros_like(part) for part in start]
        for which, part in enumerate(start):
            for place in np.ndindex(part.shape):
                moved = [other.copy() for other in start]
                moved[which][place] += 1e-6
                gradient[which][place] = (loss(moved, k) - loss(start, k)) / 1e-6
        norm = np.sqrt(sum((part**2).sum() for part in gradient))
        total = [whole + part * min(1.0, 0.8 / norm) for whole, part in zip(total, gradient, strict=True)]
    for whole, old, new in zip(total, before, after, strict=True):
        assert (old - new)[0] * len(features) == pytest.approx(whole, abs=2e-5)  # finite differences: 1e-6 a component


def test_training_learns_and_noise_has_the_stated_size():
    features, classes = digits(60)
    none = Canaries(np.zeros((20, 1), dtype=bool))
    training = Training(40, 0.5, 0.5, 1.0, 4.0)
    found = train(features, classes, none, training, np.random.default_rng(1))
    right = np.argmax(features @ found.tensors[0], axis=2) == classes
    assert right.mean() > 0.5  # ten classes
    noise = found.probes[:, :, :, :PROBES]  # 20 x 40 x 64 values of standard deviation 0.5: 7 errors are 1.1%
    assert noise.std() == pytest.approx(0.5, rel=0.016)


@pytest.mark.parametrize("model", ["logistic", "network"])
def test_200_trainings_at_the_claim_are_not_refuted(model):
    """A Dirac canary, all steps seen: as strong as the accountant allows. False alarms: 0.1%, Ville's inequality."""
    training = Training(steps=12, sampling_probability=0.3, noise_multiplier=1.0, model=model)
    rng = np.random.default_rng(20_261_125)
    scores_in, scores_out = exposure(training, 100, rng)
    result = dpaudit.audit_scores(
        scores_in, scores_out, claim_of(training), "many-runs", confidence=1.0 - LEVEL, seed=1
    )
    assert result.verdict != "violated"
    assert scores_in.mean() > scores_out.mean()


def test_a_training_without_noise_is_rejected_at_epsilon_1():
    training = Training(steps=6, sampling_probability=1.0, noise_multiplier=0.0)
    scores_in, scores_out = exposure(training, 60, np.random.default_rng(2))
    wealth = ScoreBets(*labelled(scores_in, scores_out, np.random.default_rng(3)), dpaudit.PureDP(1.0))
    assert wealth.decided_at(0.05) <= 60


@pytest.mark.parametrize("twin", TWINS, ids=lambda twin: twin.fault)
def test_each_faulty_twin_is_found_and_the_sound_training_is_not(twin):
    rng = np.random.default_rng(20_261_125)
    claim = claim_of(twin.training)
    scores = exposure(twin.training, twin.runs, rng, twin.fault, twin.size, twin.tensors, twin.score)
    assert ScoreBets(*labelled(*scores, rng), claim).decided_at(0.05) is not None
    sound = exposure(twin.training, twin.runs, rng, "none", twin.size, twin.tensors, twin.score)
    # false alarms: 1e-6 each by Ville's inequality
    assert ScoreBets(*labelled(*sound, rng), claim).decided_at(1e-6) is None


def test_many_dirac_canaries_audit_one_run():
    """400 canaries, each in by a coin, each with a coordinate of its own; a tenth of the noise is found."""
    features, classes = digits(24)
    rng = np.random.default_rng(4)
    is_in = rng.integers(0, 2, (1, 400)) == 1
    stated = Training(steps=10, sampling_probability=1.0, noise_multiplier=6.0)
    found = {}
    for noise in (6.0, 0.6):
        training = Training(steps=10, sampling_probability=1.0, noise_multiplier=noise)
        scores = projection_scores(train(features, classes, Canaries(is_in), training, rng))[0]
        claim = dpaudit.GaussianDP(10**0.5 / stated.noise_multiplier)
        found[noise] = dpaudit.audit_scores(scores[is_in[0]], scores[~is_in[0]], claim, seed=4)
    assert found[6.0].verdict == "not_refuted" and found[0.6].verdict == "violated"


def test_a_mislabelled_canary_shows_in_the_final_loss():
    features, classes = digits(24)
    training = Training(steps=30, sampling_probability=1.0, noise_multiplier=0.5, learning_rate=1.0)
    example = features[:1], (classes[:1] + 1) % 10
    sides = []
    for is_in in (True, False):
        canaries = Canaries(np.full((60, 1), is_in))
        found = train(features, classes, canaries, training, np.random.default_rng(int(is_in)), "none", example)
        logits = example[0] @ found.tensors[-1]  # (runs, 1, classes)
        sides.append(special.log_softmax(logits, axis=2)[:, 0, example[1][0]])  # minus the final loss
    spread = np.hypot(sides[0].std(), sides[1].std())
    assert sides[0].mean() - sides[1].mean() > spread  # the wrong label is learned where it was in the data
