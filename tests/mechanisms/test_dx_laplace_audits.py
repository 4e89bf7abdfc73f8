"""Audits of the d_X-Laplace mechanism with every rule, preprocessed too, and of its faulty twins.

Every audit has confidence 1 - 1e-6: a sound mechanism is called violated with probability at most 1e-6, for any seed.
The twins are caught for the fixed seed below; their true losses are exact (`privacy_loss`).
"""

import numpy as np
import pytest

import dpaudit
from dpaudit.privacy import (
    AttributeMetric,
    BlowfishMetric,
    DateMetric,
    EuclideanMetric,
    GeoMetric,
    GraphMetric,
    SmoothBlowfishMetric,
    SupNormMetric,
    TreeMetric,
)
from dpaudit_mechanisms.dx_laplace import DxLaplace
from dpaudit_mechanisms.faulty.dx_laplace import (
    DxLaplaceTooLittleNoise,
    DxLaplaceUnsharedBudget,
)
from dpaudit_mechanisms.preprocessing import LOSSES, preprocess

CONFIDENCE = 1.0 - 1e-6
DRAWS, FEWER = 30_000, 8_000  # runs on an input, at most: of the twins, and of most sound mechanisms
METRIC = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 1.5], [2.0, 1.5, 0.0]])
QUERIES = np.array([[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
SEED = 20_261_401
SPACES = {
    "euclidean": (EuclideanMetric(0.5), [(0.0, 0.0), (3.0, 4.0), (1.0, 1.0)]),
    "attributes": (AttributeMetric((0.5, 2.0)), [("M", 1), ("F", 1), ("M", 2)]),
    "blowfish": (BlowfishMetric(1.0, 2.0), [(0.0, 0.0), (2.0, 0.0), (4.0, 0.0)]),
    "smoothed blowfish": (SmoothBlowfishMetric(1.0, 2.0), [(0.0, 0.0), (2.0, 0.0), (5.0, 0.0)]),
    "sup-norm of series": (SupNormMetric(1.0), [(0.0, 0.0, 0.0), (0.0, 1.0, 0.5), (2.0, 1.0, 0.0)]),
    "graph": (GraphMetric([("a", "b"), ("b", "c", 0.5), ("a", "c", 1.2)]), ["a", "b", "c"]),
    "tree": (TreeMetric([("a", "b"), ("b", "c", 0.5)]), ["a", "b", "c"]),
    "dates": (DateMetric(0.5, days=30), ["2024-01-01", "2024-01-31", "2024-03-31"]),
    "globe": (GeoMetric(0.002), [(48.86, 2.35), (52.52, 13.41), (51.51, -0.13)]),
}


def audited(mechanism, samples=DRAWS):
    return dpaudit.audit(mechanism, samples=samples, confidence=CONFIDENCE, seed=SEED, floating_point=False)


@pytest.mark.slow
@pytest.mark.claim("DX-A-Lap", "DX-O2")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_preprocessed_mechanism_keeps_the_metric_and_a_sixth_less_noise_does_not(loss):
    found = preprocess(QUERIES, METRIC, 20, loss)
    mechanism = found.mechanism(METRIC)
    assert np.nanmax(mechanism.tightness()) == pytest.approx(1.0, rel=1e-9)  # and every pair keeps its budget
    assert audited(mechanism, FEWER).verdict != "violated"
    twin = DxLaplaceTooLittleNoise(found.answered, METRIC, scales=found.c)
    assert audited(twin).verdict == "violated"


@pytest.mark.slow
@pytest.mark.claim("DX-D2", "DX-T1")
@pytest.mark.parametrize("name", SPACES)
def test_every_kind_of_metric_is_kept_and_a_twin_breaks_it(name):
    metric, points = SPACES[name]
    budgets = metric.matrix(points)
    mechanism = DxLaplace(QUERIES[:2], budgets, "PSA", metric_name=name)
    assert (mechanism.losses() <= budgets * (1.0 + 1e-12)).all()
    assert audited(mechanism, FEWER).verdict != "violated"
    assert audited(DxLaplaceUnsharedBudget(QUERIES[:2], budgets, "PSA")).verdict == "violated"


def test_scales_that_do_not_keep_the_metric_are_refused():
    c = DxLaplace(QUERIES, METRIC, "S2").c
    assert DxLaplace(QUERIES, METRIC, scales=c).c.tolist() == c.tolist()
    with pytest.raises(dpaudit.UsageError, match=r"scales must keep every budget, got a loss of 1\.0\d* nats at"):
        DxLaplace(QUERIES, METRIC, scales=0.99 * c)
    with pytest.raises(dpaudit.UsageError, match=r"scales must be in \[0, inf\), got"):
        DxLaplace(QUERIES, METRIC, scales=[-1.0, 1.0, 1.0])
    with pytest.raises(dpaudit.UsageError, match=r"scales must be of shape \(3,\), got shape \(2,\)"):
        DxLaplace(QUERIES, METRIC, scales=c[:2])
    exact = DxLaplace([[1.0, 1.0, 1.0]], METRIC, scales=[0.0])  # constant: no noise is needed
    assert exact.sample(0, 2, np.random.default_rng(1)).tolist() == [[1.0], [1.0]]
