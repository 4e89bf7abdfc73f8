"""trasgoDP: metric privacy of a place, with a fresh seed: all columns of the result."""

PER_METRE = 180.0 / (3.141592653589793 * 6_371_000)  # 1 a degree, on the sphere that the library takes


def mechanism():
    import secrets

    import pandas
    from trasgodp.geoindis import metric_privacy

    def place(data):
        frame = pandas.DataFrame([[float(v) for v in data]], columns=["lat", "lon"])
        result = metric_privacy(frame, "lat", "lon", PER_METRE, seed=secrets.randbits(32))
        return [float(value) for value in result[["lat", "lon", "radius_m"]].iloc[0]]

    return place
