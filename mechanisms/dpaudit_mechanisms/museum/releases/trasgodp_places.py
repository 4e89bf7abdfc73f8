"""trasgoDP: metric privacy of a place, with the seed that is the default."""

PER_METRE = 180.0 / (3.141592653589793 * 6_371_000)  # 1 a degree, on the sphere that the library takes


def mechanism():
    import pandas
    from trasgodp.geoindis import metric_privacy

    def place(data):
        frame = pandas.DataFrame([[float(v) for v in data]], columns=["lat", "lon"])
        result = metric_privacy(frame, "lat", "lon", PER_METRE)
        return [float(value) for value in result[["lat", "lon"]].iloc[0]]

    return place
