"""diff-priv-laplace-python: the largest value."""


def mechanism():
    from diffpriv_laplace import DiffPrivStatistics

    return lambda values: float(DiffPrivStatistics.max(values, 1.0))
