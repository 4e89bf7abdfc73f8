"""MWEM: its law, its privacy, its accuracy as printed (counterexample from the ledger) and as corrected, its twins."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from support.refusals import refusals

import dpaudit
from dpaudit_mechanisms.distortion import best_distortion
from dpaudit_mechanisms.faulty.mwem import (
    MWEMForgetsTheRounds,
    MWEMHalfTheChoice,
    MWEMHalfTheNoise,
)
from dpaudit_mechanisms.histograms import all_histograms, neighbours
from dpaudit_mechanisms.ledger import entry
from dpaudit_mechanisms.mwem import MWEM

ROUNDING = 1e-9
# One query whose error grows and several whose errors shrink where a record moves from 0 to 1: both halves of DX-T3 are
# used up nearly, and so is the whole budget of a round.
QUERIES = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 1.0, 0.9], [0.0, 1.0, 1.1], [0.0, 1.0, 1.05]])
METRIC = np.array([[0.0, 1.0, 1.2], [1.0, 0.0, 1.1], [1.2, 1.1, 0.0]])
X, X_PRIME = (3, 3, 0), (2, 4, 0)


def mechanism_of(kind=MWEM, rounds=1, release="transcript", **options):
    return kind(QUERIES, METRIC, 1.0, rounds, 6, release=release, **options)


@st.composite
def instances(draw, update=None):
    """A mechanism on 2 or 3 elements with up to 4 queries, 4 rounds and 4 records."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    elements, count = draw(st.integers(2, 3)), draw(st.integers(1, 4))
    metric = rng.uniform(0.5, 1.0, size=(elements, elements)) * draw(st.sampled_from([0.1, 1.0]))
    metric = np.triu(metric, 1) + np.triu(metric, 1).T
    queries = rng.uniform(-1.0, 1.0, size=(count, elements))
    ratio = (np.abs(queries[:, :, None] - queries[:, None]).max(axis=0)[metric > 0.0] / metric[metric > 0.0]).max()
    return MWEM(
        queries / ratio,
        metric,
        draw(st.sampled_from([0.1, 1.0, 5.0])),
        draw(st.integers(1, 4)),
        draw(st.integers(1, 4)),
        update or draw(st.sampled_from(["printed", "corrected"])),
        "transcript",
    )


def run_by_hand(mechanism, transcript):
    """The algorithm, one run, in plain Python, from the choices and measurements of a transcript."""
    elements, n, c = mechanism.queries.shape[1], mechanism.records, mechanism.c
    y = [n / elements] * elements
    history = []
    for t in range(mechanism.rounds):
        history.append(y)
        q = mechanism.queries[int(transcript[2 * t])]
        answer = sum(a * b for a, b in zip(q, y, strict=True))
        unit = 1.0 if mechanism.update == "printed" else c
        moved = [
            b * math.exp(unit * a * (transcript[2 * t + 1] - unit * answer) / (2 * n))
            for a, b in zip(q, y, strict=True)
        ]
        y = [n * value / sum(moved) for value in moved]
    return np.mean(history, axis=0), history


@pytest.mark.claim("DX-A2")
@given(instances(), st.integers(0, 2**32))
def test_a_run_is_the_algorithm(mechanism, seed):
    x = all_histograms(mechanism.queries.shape[1], mechanism.records)[0]
    transcripts, averages = mechanism._run(x, 5, np.random.default_rng(seed))
    assert averages.sum(axis=1) == pytest.approx(mechanism.records)
    for transcript, average in zip(transcripts, averages, strict=True):
        assert average == pytest.approx(run_by_hand(mechanism, transcript)[0], rel=1e-9, abs=1e-12)
    assert mechanism.averages(transcripts) == pytest.approx(averages, rel=1e-12)
    assert (mechanism.sample(x, 5, np.random.default_rng(seed)) == transcripts).all()


@pytest.mark.claim("DX-A2")
@given(instances(), st.integers(0, 2**32))
def test_the_density_is_the_product_of_the_rounds(mechanism, seed):
    x = all_histograms(mechanism.queries.shape[1], mechanism.records)[-1]
    for transcript in mechanism.sample(x, 3, np.random.default_rng(seed)):
        _, history = run_by_hand(mechanism, transcript)
        expected = 0.0
        for t, y in enumerate(history):
            query, measured = int(transcript[2 * t]), transcript[2 * t + 1]
            errors = np.abs(mechanism.queries @ np.array(y) - mechanism.queries @ x)
            scale = 2.0 * mechanism.c * mechanism.rounds
            expected += special.log_softmax(mechanism.c * errors / (2.0 * scale))[query]
            expected += stats.laplace(mechanism.c * (mechanism.queries[query] @ x), scale).logpdf(measured)
        assert mechanism.log_density(x, transcript[None])[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)
    impossible = np.full((3, 2 * mechanism.rounds), [[np.nan], [-1.0], [np.inf]])
    assert (mechanism.log_density(x, impossible) == -np.inf).all()


@pytest.mark.claim("DX-T7")
@given(instances(), st.integers(0, 2**32))
def test_no_transcript_tells_neighbours_apart_by_more_than_their_budget(mechanism, seed):
    rng = np.random.default_rng(seed)
    for x in all_histograms(mechanism.queries.shape[1], mechanism.records):
        # Transcripts of this input, and far ones, where the density ratios of Laplace noise are extreme.
        drawn = mechanism.sample(x, 20, rng)
        far = drawn.copy()
        far[:, 1::2] += rng.choice([-1e3, 1e3], size=far[:, 1::2].shape)
        outputs = np.concatenate([drawn, far])
        for x_prime, i, j in neighbours(x):
            losses = np.abs(mechanism.log_density(x, outputs) - mechanism.log_density(x_prime, outputs))
            slack = 1e-11 * (1.0 + np.abs(mechanism.log_density(x, outputs)))  # rounding of the densities themselves
            assert (losses <= mechanism.metric[i, j] * (1.0 + ROUNDING) + slack).all()
            stated = mechanism.privacy_loss(x, x_prime)
            assert (losses <= stated * (1.0 + ROUNDING) + slack).all()
            assert stated <= mechanism.metric[i, j] * (1.0 + ROUNDING)


# ---- accuracy -------------------------------------------------------------------------------------------------------


def queries_of(data):
    """The queries of a counterexample; `query_count` many of them are (1 - k/100, 0) for k = 0, 1, ..."""
    count = data.get("query_count", 0)
    return np.array(data.get("queries", [[1.0 - k / 100.0, 0.0] for k in range(count)]))


def failure_rate(data, update, seed, runs=2_000):
    """Share of runs whose error exceeds the bound of DX-T8.1, and that bound."""
    queries, x = queries_of(data), np.array(data["x"])
    c = data["c"]
    metric = np.abs(queries[:, :, None] - queries[:, None]).max(axis=0) / c
    mechanism = MWEM(queries / c, metric + (1.0 - np.eye(len(x))) * 1e-9, c, data["rounds"], int(x.sum()), update)
    outputs = mechanism.sample(x, runs, np.random.default_rng(seed))
    errors = np.abs(mechanism.answers(outputs) - queries @ x).max(axis=1)
    return float((errors > mechanism.error_bound(queries)).mean()), mechanism.error_bound(queries), errors


@pytest.mark.claim("DX-T8", "DX-T8.1")
@pytest.mark.parametrize(("claim_id", "number"), [("DX-T8", 0), ("DX-T8.1", 0), ("DX-T8.1", 1), ("DX-T8.1", 2)])
def test_the_printed_accuracy_is_missed(claim_id, number):
    # If the statement held, 2,000 of 2,000 runs above the bound had probability (2 T / K)^2000 < 1e-100.
    data = entry(claim_id).counterexample["instances"][number]
    rate, bound, errors = failure_rate(data, "printed", seed=20_261_125)
    assert 2.0 * data["rounds"] / len(queries_of(data)) < 0.9
    assert rate == 1.0 and errors.min() > 1.02 * bound
    if data["why"] == "units":  # the corrected update is right on the same instance; the other one has too wide a range
        assert failure_rate(data, "corrected", seed=20_261_125)[0] == 0.0


def balanced_bound(elements, queries, c, records):
    """Both terms of DX-T8.1 where they are equal: 20 / 5^(2/3) (n^2 log N log K)^(1/3) c^(1/3) (DX-T8.2)."""
    return 20.0 / 5.0 ** (2.0 / 3.0) * np.cbrt(records**2 * math.log(elements) * math.log(queries) * c)


@pytest.mark.claim("DX-T8.2")
def test_the_printed_cube_root_is_missed():
    data = entry("DX-T8.2").counterexample
    n, count = sum(data["x"]), len(queries_of(data))
    rounds = (n * math.sqrt(math.log(2)) / (5.0 * data["c"] * math.log(count))) ** (2.0 / 3.0)
    assert rounds == pytest.approx(data["rounds"], rel=1e-3)  # the printed choice of T
    _, _, errors = failure_rate(data, "printed", seed=20_261_126)
    # If the statement held, a run were above its bound with probability at most 2 T / K = 0.8: 0.8^2000 < 1e-190.
    assert (errors > balanced_bound(2, count, data["c"], n)).all()
    assert 2.0 * data["rounds"] / count <= 0.8
    _, _, errors = failure_rate(data, "corrected", seed=20_261_126)
    assert (errors <= balanced_bound(2, count, data["c"], n)).all()


@pytest.mark.claim("DX-T8", "DX-T8.1")
@pytest.mark.parametrize("c", [0.01, 1.0, 10.0])
@pytest.mark.parametrize(("elements", "rounds"), [(2, 5), (5, 20), (16, 20)])
def test_the_corrected_accuracy_holds_with_its_probability(elements, rounds, c):
    """A one-sided exact binomial test of P(error > bound) <= 2 T / K, K = 20 T: wrong with probability below 1e-9.

    A truth of 2 T / K would show 200 failures in 2,000 runs; the test rejects from 286 on: P(Bin(2000, 0.1) >= 286) =
    8e-10. The inputs are a vertex and the uniform histogram; n makes the bound less than n.
    """
    rng = np.random.default_rng(20_261_127)
    n = max(10**4, math.ceil(300.0 * rounds * c * math.log(20 * rounds)))
    queries = rng.choice([-1.0, 0.0, 0.5, 1.0], size=(20 * rounds, elements))
    for x in ([n] + [0] * (elements - 1), [n // elements] * (elements - 1) + [n - (n // elements) * (elements - 1)]):
        data = {"queries": queries, "x": x, "c": c, "rounds": rounds}
        rate, bound, errors = failure_rate(data, "corrected", seed=20_261_128)
        printed = 2 * n * math.sqrt(math.log(elements) / rounds) + 10 * rounds * c * math.log(len(queries))
        assert bound == pytest.approx(printed, rel=1e-12) and bound < n  # no distortion here
        assert stats.binom.sf(round(rate * 2_000) - 1, 2_000, 2.0 * rounds / len(queries)) > 1e-9
        assert errors.mean() < 0.9 * bound  # how loose: about a half to a fifth


@pytest.mark.claim("DX-T8")
def test_an_update_never_loses_more_relative_entropy_than_the_proof_allows():
    """The step of the proof for the corrected update: KL falls by at least ((e)^2 - (w)^2) / 4 a round, any noise w."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        elements = int(rng.integers(2, 6))
        x, y = rng.dirichlet(np.ones(elements) * rng.choice([0.2, 1.0]), size=2)
        q = rng.uniform(-1.0, 1.0, size=elements)
        noise = rng.normal(scale=rng.choice([0.0, 0.3, 5.0]))
        step = (q @ x + noise - q @ y) / 2.0
        moved = y * np.exp(q * step)
        fall = special.rel_entr(x, y).sum() - special.rel_entr(x, moved / moved.sum()).sum()
        assert fall >= ((q @ x - q @ y) ** 2 - noise**2) / 4.0 - 1e-9


@pytest.mark.claim("DX-O4")
def test_the_optimal_parameters_make_a_mechanism():
    queries, metric = np.array([[0.0, 1.0, 0.5], [1.0, 0.9, 0.0]]), 1.0 - np.eye(3)
    n = 10**6
    best = best_distortion(queries, metric, lambda t, c: n * t + (balanced_bound(3, 2, c, n) if c else 0.0))
    mechanism = MWEM(best.distorted / best.c, metric, best.c, 5, n)
    assert best.cost <= balanced_bound(3, 2, 1.0, n)  # c = 1 needs no distortion
    assert mechanism.c == best.c > 0.0


# ---- speed, audits --------------------------------------------------------------------------------------------------


@pytest.mark.claim("DX-T7")
@pytest.mark.parametrize(
    ("kind", "rounds", "loss"),
    [(MWEMHalfTheNoise, 1, 1.35), (MWEMHalfTheChoice, 1, 1.17), (MWEMForgetsTheRounds, 3, 1.3)],
)
def test_a_good_audit_refutes_the_twins_and_not_the_mechanism(kind, rounds, loss):
    sound, twin = mechanism_of(rounds=rounds), mechanism_of(kind, rounds)
    assert sound.privacy_loss(X, X_PRIME) <= 1.0 < loss < twin.privacy_loss(X, X_PRIME)
    assert "promised" in twin.fault and str(twin.claim) == str(sound.claim)
    options = {
        "pairs": [(X, X_PRIME)],
        "samples": 60_000,
        "confidence": 1.0 - 1e-9,
        "seed": 13,
        "floating_point": False,
    }
    assert dpaudit.audit(sound, **options).verdict != "violated"  # false alarm rate 1e-9
    assert dpaudit.audit(twin, **options).verdict == "violated"


test_what_makes_no_sense_is_refused = refusals(
    (lambda: MWEM([[0.0, 2.0]], METRIC[:2, :2], 1.0, 1, 3), "queries must"),
    (lambda: mechanism_of(rounds=0), "rounds must"),
    (lambda: mechanism_of(update="best"), "update must"),
    (lambda: mechanism_of(release="all"), "release must"),
    (lambda: mechanism_of(release="histogram").log_density(X, [[1.0] * 3]), "release must"),
    (lambda: mechanism_of().averages([[7.0, 1.0]]), "transcripts must"),
)
