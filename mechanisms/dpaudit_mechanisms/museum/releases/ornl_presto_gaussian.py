"""ornl-presto: the Gaussian mechanism for a number of sensitivity 100."""


def mechanism():
    from ornl_presto.privacy_mechanisms import applyDPGaussian

    return lambda value: float(applyDPGaussian([float(value)], sensitivity=100.0, delta=1e-5, epsilon=1.0)[0])
