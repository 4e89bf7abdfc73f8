"""eeprivacy: the mean of vectors in the unit square."""


def mechanism():
    from eeprivacy.operations import PrivateVectorClampedMeanLaplace

    def mean(vectors):
        operation = PrivateVectorClampedMeanLaplace(lower_bound=0.0, upper_bound=1.0, k=2, N=len(vectors))
        return operation.execute(vectors=vectors, epsilon=1.0, delta=0.0)

    return mean
