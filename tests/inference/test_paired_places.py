"""Outputs of a vectorised call that come twice: exact tests of paired places, and the rates of audits."""

import itertools
import math

import numpy as np
import pytest

import dpaudit
from dpaudit import reports
from dpaudit.inference import order
from dpaudit.inference.order import pair_p_values, pair_tests, paired_places
from dpaudit.running.worker_pool import WorkerPool
from dpaudit.subjects.callables import as_subject


@pytest.mark.parametrize(("pairs", "flagged"), [(3, 2), (4, 4), (5, 3), (5, 6), (5, 10), (6, 5)])
def test_p_values_bound_the_tails_over_all_subsets(pairs, flagged):
    """By enumeration: each tail is at most its p-value, which is exact for the most extreme number of pairs."""
    subsets = [set(chosen) for chosen in itertools.combinations(range(2 * pairs), flagged)]
    both = np.array([sum(2 * k in chosen and 2 * k + 1 in chosen for k in range(pairs)) for chosen in subsets])
    for value in np.unique(both):
        many, few = pair_p_values(int(value), flagged, pairs)
        assert np.mean(both >= value) <= many * (1.0 + 1e-9) and np.mean(both <= value) <= few * (1.0 + 1e-9)
    assert pair_p_values(int(both.max()), flagged, pairs)[0] == pytest.approx(np.mean(both == both.max()))
    assert pair_p_values(int(both.min()), flagged, pairs)[1] == pytest.approx(np.mean(both == both.min()))


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (16, 16), (7, 1, 30), (4,) * 5 + (97,)])
def test_pairs_share_no_place_and_stay_within_their_batches(sizes):
    batch = np.repeat(np.arange(len(sizes)), sizes)
    for _, first, second in paired_places(sizes):
        assert len(np.unique([first, second])) == 2 * len(first)
        assert np.all(batch[first] == batch[second]) and np.all(first < second)


def test_flags_in_any_order_have_uniform_p_values_at_most():
    """Of 1,000 orders each p-value is 0.02 or less in at most 20, on average; 52 or more have a probability of 1e-9.

    The last two are of the likeliest distance, of which there are more than a hundred.
    """
    rng = np.random.default_rng(1)
    known = rng.random(120) < 0.9
    fixed = 2 * len(paired_places((40, 80)))
    found = []
    for _ in range(1_000):
        p_values = [p for p, _ in pair_tests(rng.random(120) < 0.3, known, (40, 80))]
        found.append([*p_values[:fixed], 2.0 * min(p_values[fixed:], default=1.0)])
    assert np.all(np.sum(np.array(found) <= 0.02, axis=0) < 52)


P = math.e / (1.0 + math.e)  # of the truth, in randomised response exactly at epsilon = 1


def response(x, size, rng):
    return np.where(rng.random(size) < P, x, 1.0 - x)


def part(size, j):
    return -(-size // j)


FORMS = {
    "twice": lambda x, size, rng: np.tile(response(x, part(size, 2), rng), 2)[:size],
    "three times": lambda x, size, rng: np.tile(response(x, part(size, 3), rng), 3)[:size],
    "seven times": lambda x, size, rng: np.tile(response(x, part(size, 7), rng), 7)[:size],
    "odd": lambda x, size, rng: np.resize(response(x, size // 2 + 1, rng), size),
    "each twice": lambda x, size, rng: np.repeat(response(x, part(size, 2), rng), 2)[:size],
    "mirrored": lambda x, size, rng: np.resize(np.r_[a := response(x, part(size, 2), rng), a[::-1]], size),
    "blocks of 100": lambda x, size, rng: np.resize(response(x, 100, rng), size),
    "antithetic": lambda x, size, rng: np.where(
        np.resize(np.r_[u := rng.random(part(size, 2)), 1.0 - u], size) < P, x, 1.0 - x
    ),
    "opposite noise": lambda x, size, rng: x + np.resize(np.r_[u := rng.laplace(size=part(size, 2)), -u], size),
    "noise of random sign": lambda x, size, rng: (
        x + np.tile(rng.laplace(size=part(size, 2)), 2)[:size] * rng.choice([-1.0, 1.0], size)
    ),
    "rows": lambda x, size, rng: np.tile(
        np.c_[response(x, part(size, 2), rng), rng.random(part(size, 2))], (2, 1)
    )[:size],
    "texts": lambda x, size, rng: [["no", "yes"][int(k)] for k in np.tile(response(x, part(size, 2), rng), 2)[:size]],
}  # fmt: skip


@pytest.mark.parametrize("form", sorted(set(FORMS) - {"antithetic", "odd"}))
def test_small_batches_show_outputs_that_come_twice(form):
    """Behind a violation, in 640 outcomes of an input; more are drawn where these hint."""
    for seed in range(3):
        change, runs = order.in_small_batches(
            WorkerPool().drawer(as_subject(FORMS[form]), [0.0], seed, 1), 1_000, 200, True
        )
        assert change is not None and change.p_value <= order.RATE and runs in (640, 640 + 2_048)


def test_independent_outputs_are_not_called_alike():
    """At 1e-9 each of two looks, 40 times: 8e-8."""
    for seed in range(40):
        change, _ = order.in_small_batches(WorkerPool().drawer(as_subject(response), [0.0], seed, 1), 1_000, 64, True)
        assert change is None


@pytest.mark.parametrize("form", ["twice", "antithetic"])
def test_outputs_that_come_twice_are_not_called_a_violation(form):
    """Of a claim that is kept call by call: 24 of 80 of these audits were violations, at a nominal 20%."""
    for seed in range(15):
        options = {"samples": 4_000, "mode": "fixed", "seed": seed, "confidence": 0.8, "floating_point": False}
        result = dpaudit.audit(FORMS[form], "eps=1", [(0, 1)], **options)
        assert result.verdict == "inconclusive" and "Draws depend on each other" in result.findings[0].notes[0]


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_the_rate_on_mechanisms_that_tile_is_at_most_the_nominal_one(mode):
    """Of 12 forms, 40 audits each at 5%: 24 of 480 are expected at most; 50 or more have a probability of 1e-6."""
    violated = 0
    for form in FORMS.values():
        for seed in range(40):
            violated += bool(dpaudit.audit(form, "eps=1", [(0, 1)], samples=2_000, mode=mode, seed=seed).violated)
    assert violated < 50


def one_by_one(x, rng):
    return x + rng.laplace()


def independent(x, size, rng):
    return x + rng.laplace(size=size)


@pytest.mark.parametrize(("mechanism", "times"), [(independent, 1), (one_by_one, 0), (FORMS["twice"], 0)])
def test_reports_say_once_which_dependence_was_not_looked_for(mechanism, times):
    result = dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=1_000, mode="fixed", seed=1)
    for format in ("md", "html"):
        assert reports.render(result, format).count("any two are independent") == times


def hidden(x, size, rng):
    """A random bit, and that bit or its opposite by a response that all outputs of a call share."""
    bit = rng.integers(2, size=size)
    return np.stack([bit, bit ^ int(response(x, 1, rng)[0])], axis=1)


@pytest.mark.parametrize(("mode", "seed"), [("fixed", 7), ("sequential", 1), ("sequential", 3)])
def test_what_a_call_shares_in_no_column_shows_in_the_score_of_the_rule(mode, seed):
    """Each column is a fair coin, and a single output keeps the claim: 38 of 85 audits were violations."""
    options = {"samples": 600, "mode": mode, "confidence": 0.8, "floating_point": False}
    result = dpaudit.audit(hidden, "eps=1", [(0, 1)], seed=seed, **options)
    assert result.verdict == "inconclusive" and "in the score of the rule" in result.findings[0].notes[0]
