"""The sensitivity of a squared feature is taken from its lower bound alone."""

import functools

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release

BOUNDS = (0.0, 100.0)


def _release(data, size, rng, scale):
    return np.square(np.clip(data, *BOUNDS)).sum() + rng.laplace(scale=scale, size=size)


faulty = functools.partial(_release, scale=max(abs(BOUNDS[0]), abs(BOUNDS[0])) ** 2)
mended = functools.partial(_release, scale=max(abs(BOUNDS[0]), abs(BOUNDS[1])) ** 2)


def _linear_regression():
    import warnings

    from diffprivlib.models import LinearRegression

    def fitted(data, rng):
        features = np.array([[5.0], *([record] for record in data)])
        seed = int(rng.integers(2**31))
        model = LinearRegression(
            epsilon=1.0, bounds_X=BOUNDS, bounds_y=(0.0, 1.0), fit_intercept=False, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(model.fit(features, np.zeros(len(features)) + 0.5).coef_[0])

    return fitted


EXHIBIT = dict(
    kind="sensitivity",
    source="IBM/differential-privacy-library#105",
    wrong="Linear regression takes the larger of the lower bound and the lower bound: no noise for features in "
    "[0, 100].",
    claim="eps=1",
    domain=DatasetDomain.between(*BOUNDS, largest=8),
    pair=([], [100.0]),
    releases=(Release("diffprivlib", "0.6.6", _linear_regression),),
)
