"""syndp: the Laplace mechanism on a count."""


def mechanism():
    from syndp.laplace_mechanism import laplace_mechanism

    return lambda data: float(laplace_mechanism(float(len(data)), 1.0, 1.0))
