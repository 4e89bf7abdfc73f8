"""Fits and comparisons of measured tables, by statsmodels (the extra `fits`)."""

import numpy as np

from dpaudit_mechanisms.inputs import ArrayLike, FloatArray, installed


def exponent(logs: FloatArray, errors: FloatArray) -> list[float]:
    """The a of an error like n^-a with its 95% interval, by least squares on all repetitions.

    Parameters
    ----------
    logs : array of float, shape (sizes,)
        log10 of n.
    errors : array of float, shape (sizes, repetitions)
        Positive. The errors of the interval are robust (HC3): they need not scatter alike at all sizes.
    """
    models = installed("statsmodels.api", "fits")
    sizes = models.add_constant(np.repeat(logs, errors.shape[1]))
    fit = models.OLS(np.log10(errors).ravel(), sizes).fit(cov_type="HC3", use_t=True)
    low, high = fit.conf_int()[1]
    return [-float(fit.params[1]), -float(high), -float(low)]


def significant(p_values: ArrayLike, level: float = 0.05) -> int:
    """Number of comparisons that are significant by Holm's method: no false one with probability 1 - level."""
    return int(
        installed("statsmodels.stats.multitest", "fits").multipletests(p_values, alpha=level, method="holm")[0].sum()
    )
