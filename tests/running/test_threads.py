"""A fit holds linear algebra to one thread, and leaves it as it was."""

import numpy as np
import pytest
import threadpoolctl

from dpaudit.features.outcomes import Outcomes
from dpaudit.features.reader import Reader
from dpaudit.learning.mixture import NO_FORETELLING, fit_mixture


def threads():
    return {library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("no linear algebra here has two threads")
        yield


@pytest.mark.usefixtures("two_threads")
def test_a_fit_that_multiplies_matrices_has_one(monkeypatch):
    seen = set()
    own = np.linalg.solve
    monkeypatch.setattr(np.linalg, "solve", lambda *a, **k: (seen.update(threads()), own(*a, **k))[1])
    rng = np.random.default_rng(0)
    outcomes = Outcomes(rng.normal(size=(400, 3)))
    reader = Reader.learn((outcomes,))
    fit_mixture(reader, reader(outcomes), np.arange(400) % 2, NO_FORETELLING)
    assert seen == {1} and threads() == {2}
