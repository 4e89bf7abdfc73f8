"""diff-priv-laplace-python: the sum."""


def mechanism():
    from diffpriv_laplace import DiffPrivStatistics

    return lambda values: float(DiffPrivStatistics.sum(values, 1.0))
