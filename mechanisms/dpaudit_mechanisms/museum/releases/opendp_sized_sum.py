"""OpenDP 0.2.2: the sum of a dataset of known size, values in [0, 3], at scale 2: the relation accepts epsilon = 1."""


def mechanism():
    from opendp.meas import make_base_geometric
    from opendp.mod import enable_features
    from opendp.trans import make_sized_bounded_sum

    enable_features("contrib")
    made = {}

    def total(values):
        size = len(values)
        if size not in made:
            made[size] = make_sized_bounded_sum(size=size, bounds=(0, 3)) >> make_base_geometric(scale=2.0)
            if not made[size].check(2, 1.0):
                raise ValueError("the relation does not accept epsilon = 1")
        return made[size]([int(value) for value in values])

    return total
