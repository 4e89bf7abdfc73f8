"""eeprivacy: the clamped mean of values between 0 and 1."""


def mechanism():
    from eeprivacy.operations import PrivateClampedMean

    operation = PrivateClampedMean(lower_bound=0.0, upper_bound=1.0)
    return lambda values: float(operation.execute(values=values, epsilon=1.0))
