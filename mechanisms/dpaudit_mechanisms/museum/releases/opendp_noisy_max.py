"""OpenDP 0.15.1: report noisy max of two scores under zero-concentrated privacy; its map says rho = 0.5."""


def mechanism():
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    release = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=1.0)
    if release.map(1) > 0.5 + 1e-9:
        raise ValueError(f"the map says {release.map(1)}")
    return lambda scores: int(release([int(score) for score in scores]))
