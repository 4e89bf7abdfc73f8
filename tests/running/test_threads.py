"""Fits hold linear algebra to one thread, and leave it as it was."""

import numpy as np
import pytest
import scipy.linalg
import threadpoolctl

from dpaudit.reading import tallies, vectors
from dpaudit.reading.outcomes import Outcomes
from dpaudit.reading.threads import in_one_thread


def threads():
    return {library["num_threads"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_threads():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("no linear algebra here has two threads")
        yield


@pytest.mark.usefixtures("two_threads")
def test_a_fit_has_one_thread_and_what_comes_after_as_many_as_before():
    assert in_one_thread(threads)() == {1} and threads() == {2}

    def failing():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_one_thread(failing)()
    assert threads() == {2}


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("fit", [vectors.fit_linear, vectors.fit_quadratic, tallies.fit_logistic])
def test_the_fits_that_multiply_matrices_have_one(fit, monkeypatch):
    seen = set()
    for name in ("solve", "inv"):
        own = getattr(scipy.linalg, name)
        monkeypatch.setattr(scipy.linalg, name, lambda *a, own=own, **k: (seen.update(threads()), own(*a, **k))[1])
    rng = np.random.default_rng(0)
    first, second = (rng.normal(size=(400, 3)) for _ in range(2))
    first[:, 0] = 0.9 * first[:, 1] + 0.1 * first[:, 0]
    assert fit(Outcomes(first), Outcomes(second)) is not None
    assert seen == {1} and threads() == {2}
