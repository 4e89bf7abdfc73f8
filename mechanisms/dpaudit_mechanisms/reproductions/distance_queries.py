"""Distance queries beside the paper's rates and beside plain Laplace noise (MQ-T1, MQ-T15).

The paper has no experiment; this is a recommendation-like workload: how far people live on average from each of many
places. The practical calibration runs; the printed one is beside it as a formula, as its error is above the diameter.

* Exponents: points uniform on [0, 1], where the learner needs as many updates as anywhere up to constants, n from 10^5
  to 10^9, 8,000 queries in random order: many more than updates, or the largest error would be that of a coarse grid. A
  database of 10^4 points, each repeated n / 10^4 times, has the same answers (MQ-V3). The error is the largest of all
  queries. The interval is of the slope of independent repetitions (Student's t). Logarithms of the number of updates
  remain in it; beside it stand the slope without them and that of the promised alpha.
* Cities: places all over the map, in the order of a random walk, against n and epsilon, and against the number of
  queries.
* Names: the average edit distance to 16 names, through random subsets into l1, scaled by the mean contraction over the
  list of names, which is public (who has which is not).
* Times of one query, with the statistics sorted once.
"""

import functools
import math
import time
from typing import Any

import numpy as np

from dpaudit.reproductions.reproduction import COLOURS, MARKERS, Options, Outcome, Reproduction, Statement, Table
from dpaudit_mechanisms.distances.analysts import FixedQueries
from dpaudit_mechanisms.distances.averages import AverageDistances
from dpaudit_mechanisms.distances.calibration import largest_rho, practical, printed_alpha
from dpaudit_mechanisms.distances.embeddings import SubsetDistances
from dpaudit_mechanisms.distances.interactive import InteractiveDistances
from dpaudit_mechanisms.distances.learner import gap_of_updates
from dpaudit_mechanisms.distances.metric_release import MetricDistances, typical_scale
from dpaudit_mechanisms.inputs import FloatArray
from dpaudit_mechanisms.reproductions.distance_workloads import cities, edit_distances, people
from dpaudit_mechanisms.reproductions.fits import exponent

DELTA, BETA, EPSILON = 1e-6, 0.05, 1.0
MODES = {"pure": 0.0, "approximate": DELTA}
SHORT = {"pure": "pure", "approximate": "approx."}  # in tables with many columns
PRINTED = {"pure": 2.0 / 3.0, "approximate": 4.0 / 5.0}


def run(options: Options) -> Outcome:
    """All parts."""
    rng = np.random.default_rng([options.seed, 71])
    slopes = _exponents(options, rng)
    towns = _cities(options, rng)
    names = _names(options, rng)
    times = _times(options, rng)
    return Outcome(
        [
            Table("Exponent of the largest error in n", ["mechanism", "printed", "measured", "95% from", "to",
                  "last decade", "promised alpha"],
                  [[mode, PRINTED[mode], *slopes[mode]["interval"], slopes[mode]["last"],
                    slopes[mode]["promised_slope"]] for mode in MODES],
                  f"n from {slopes['ns'][0]:.0e} to {slopes['ns'][-1]:.0e}, {slopes['queries']} queries, epsilon = 1, "
                  f"{slopes['runs']} repetitions; signs are those of n^-x."),
            Table("The same without logarithms", ["mechanism", "printed", "measured", "95% from", "to"],
                  [[mode, PRINTED[mode], *slopes[mode]["without_logs"]] for mode in MODES],
                  "Against n over the factor of the updates in alpha, which has the logarithms of their number."),
            *_city_tables(towns),
            _name_table(names),
            Table("Time of one query", ["n", "dimension", "sorted (us)", "by a pass over the data (us)"], times),
        ],
        _statements(slopes, towns, times),
        {"exponents": slopes, "cities": towns, "names": {k: v for k, v in names.items() if k != "scatter"},
         "times": times},
        lambda figure: _draw(figure, slopes, towns, names),
        (12.0, 8.0),
    )  # fmt: skip


def _exponents(options: Options, rng: np.random.Generator, runs: int = 12, count: int = 8000) -> dict[str, Any]:
    ns = (10.0 ** np.arange(5.0, 9.01, 0.5)).tolist()
    # With 60 queries few updates are made, and errors fall faster than any rate: 1,000 take 3 s, and show the rates.
    runs, count = (8, 1000) if options.quick else (runs, count)
    points = (np.arange(10_000) + 0.5) / 10_000
    averages = AverageDistances(points[:, None], np.ones(1))
    found: dict[str, Any] = {"ns": ns, "runs": runs, "queries": count}
    for mode, delta in MODES.items():
        options.tell(f"exponents, {mode}")
        errors, promised, printed, updates, effective = np.zeros((len(ns), runs)), [], [], [], []
        for i, n in enumerate(ns):
            tuned = practical(round(n), [1.0], EPSILON, delta, queries=count, beta=BETA)
            places = rng.permutation(np.linspace(0.0, 1.0, count))[:, None]
            run = InteractiveDistances(tuned, FixedQueries(places), count).run(averages, runs, rng)
            errors[i] = np.abs(run.answers - averages.value(places)).max(axis=1)
            promised.append(tuned.alpha)
            # alpha = gap + L m / (n epsilon), with the root of m where approximate: L has the logarithms.
            noise = tuned.alpha - float(gap_of_updates(tuned.updates, [1.0]))
            effective.append(tuned.updates ** (0.5 if delta else 1.0) / noise)
            printed.append(printed_alpha(round(n), 1, EPSILON, delta, queries=count, beta=BETA))
            updates.append(float(run.hypotheses.updates.mean()))
        logs = np.log10(ns)
        tail = logs >= logs[-1] - 1.0
        found[mode] = {
            "interval": exponent(logs, errors), "without_logs": exponent(np.log10(effective), errors),
            "errors": errors.mean(axis=1).tolist(),
            "promised": promised, "printed": printed, "updates": updates,
            "promised_slope": float(-np.polyfit(logs, np.log10(promised), 1)[0]),
            "last": float(-np.polyfit(logs[tail], np.log10(errors.mean(axis=1))[tail], 1)[0]),
            "within": float((errors <= np.array(promised)[:, None]).mean()),
        }  # fmt: skip
    return found


def plain_error(n: int, k: int, epsilon: float, delta: float, runs: int, rng: np.random.Generator) -> float:
    """Mean of the largest error of independent noise on k answers of sensitivity 1 / n each."""
    if delta == 0.0:
        noise = rng.laplace(scale=k / (n * epsilon), size=(runs, k))
    else:
        noise = rng.normal(scale=math.sqrt(k / (2.0 * largest_rho(epsilon, delta))) / n, size=(runs, k))
    return float(np.minimum(np.abs(noise), 1.0).max(axis=1).mean())


def _cities(options: Options, rng: np.random.Generator) -> dict[str, Any]:
    points, _, _, source = cities()
    widths = points.max(axis=0)
    settings = [(10**4, 1.0, 1000), (10**5, 1.0, 1000), (10**6, 1.0, 1000), (10**6, 0.1, 1000), (10**6, 0.3, 1000),
                (10**6, 3.0, 1000), (10**6, 1.0, 100), (10**6, 1.0, 10_000), (10**6, 1.0, 100_000)]  # fmt: skip
    settings = settings[:7] if options.quick else settings
    rows: list[list[Any]] = []
    for n, epsilon, k in settings:
        runs = 2 if options.quick or k > 10_000 else 8
        options.tell(f"cities: n = {n}, epsilon = {epsilon:g}, {k} queries")
        averages = AverageDistances(people(n, rng), widths)
        steps = np.cumsum(rng.normal(scale=0.05, size=(k, 2)), axis=0)
        places = widths * (1.0 - np.abs((steps / widths) % 2.0 - 1.0))  # a walk, reflected at the border
        truth = averages.value(places)
        for mode, delta in MODES.items():
            tuned = practical(n, widths, epsilon, delta, queries=k, beta=BETA)
            run = InteractiveDistances(tuned, FixedQueries(places), k).run(averages, runs, rng)
            error = float(np.abs(run.answers - truth).max(axis=1).mean())
            rows.append([n, epsilon, k, mode, error, tuned.alpha,
                         printed_alpha(n, 2, epsilon, delta, queries=k, beta=BETA),
                         plain_error(n, k, epsilon, delta, runs, rng),
                         float(run.hypotheses.updates.mean())])  # fmt: skip
    return {"rows": rows, "source": source}


def _city_tables(towns: dict[str, Any]) -> list[Table]:
    """Two tables, as the lines of one would be longer than 80 columns."""
    rows = [[SHORT[cell] if cell in MODES else cell for cell in row] for row in towns["rows"]]
    note = (
        f"Places in the contiguous states; {towns['source']}. Plain noise: Laplace (pure) or normal (approximate) on "
        "every answer."
    )
    settings = ["n", "epsilon", "queries", "mechanism"]
    return [
        Table("Average l1 distance of people to places", [*settings, "largest error", "promised", "plain noise"],
              [[*row[:6], row[7]] for row in rows], note),
        Table("The same: what is printed, and updates", [*settings, "printed alpha", "updates"],
              [[*row[:4], row[6], row[8]] for row in rows]),
    ]  # fmt: skip


def _names(options: Options, rng: np.random.Generator) -> dict[str, Any]:
    _, shares, names, _ = cities()
    names = names[: 60 if options.quick else len(names)]
    shares = shares[: len(names)] / shares[: len(names)].sum()
    queries = tuple(names[i] for i in rng.choice(len(names), size=16, replace=False))
    options.tell("edit distances")
    table = edit_distances(names, queries)
    places = [names.index(query) for query in queries]
    embedding = SubsetDistances(lambda a, b: table[np.ix_(list(a), range(16))], places, sets=4, seed=options.seed)
    factor = typical_scale(embedding, range(len(names)))  # the list of names is public, who has which is not
    mapped = np.abs(embedding.embed(range(len(names)))[:, None] - embedding.embed(places)).sum(axis=2)
    positive = table > 0.0
    contraction = float((table[positive] / np.maximum(mapped[positive], 1e-300)).max())
    rows: list[list[Any]] = []
    settings = [(10**4, 1.0), (10**5, 1.0), (10**5, 5.0)]
    scatter = {}
    for n, epsilon in settings[:1] if options.quick else settings:
        data = rng.choice(len(names), size=n, p=shares)
        truth = table[data].mean(axis=0)
        for mode, delta in MODES.items():
            mechanism = MetricDistances(embedding, places, n, epsilon, delta, scale=factor)
            exact, answers = mechanism.noiseless(data), mechanism.sample(data, 1 if options.quick else 4, rng)
            rows.append([n, epsilon, mode, float(np.abs(answers - truth).max(axis=1).mean()),
                         float(np.abs(exact - truth).max()), float(np.abs(answers - exact).max(axis=1).mean()),
                         plain_error(n, 16, epsilon, delta, 20, rng)])  # fmt: skip
            scatter[mode] = (truth, answers[0])
    constant = float(np.abs(table.mean() - truth).max())
    return {"rows": rows, "images": len(embedding.widths), "contraction": contraction, "factor": factor,
            "constant": constant, "scatter": scatter}  # fmt: skip


def _name_table(names: dict[str, Any]) -> Table:
    note = (
        f"{names['images']} images, contraction {names['contraction']:.2f} between data and queries; a constant "
        f"answer, the mean over public pairs of names, errs by {names['constant']:.3f}."
    )
    columns = ["n", "epsilon", "mechanism", "largest error", "of the embedding", "of noise and learning", "plain noise"]
    rows = [[SHORT[cell] if cell in MODES else cell for cell in row] for row in names["rows"]]
    return Table("Average edit distance to 16 names", columns, rows, note)


def _times(options: Options, rng: np.random.Generator) -> list[list[Any]]:
    rows: list[list[Any]] = []
    shapes = [(10**4, 2), (10**5, 2), (10**6, 2), (10**5, 8), (10**5, 32)]
    for n, dimension in shapes[:2] if options.quick else shapes:
        averages = AverageDistances(rng.uniform(size=(n, dimension)), np.ones(dimension))
        places = rng.uniform(size=(200, dimension))
        averages.tangents(places[:1])  # sorts
        took = []
        for action in (averages.tangents, functools.partial(_by_a_pass, averages.points)):
            best = math.inf
            for _ in range(3):
                start = time.perf_counter()
                for j in range(20 if n < 10**6 else 5):
                    action(places[[j]])
                best = min(best, (time.perf_counter() - start) / (20 if n < 10**6 else 5))
            took.append(1e6 * best)
        rows.append([n, dimension, *took])
    return rows


def _by_a_pass(points: FloatArray, query: FloatArray) -> float:
    return float(np.abs(points - query).mean(axis=0).sum())


def _statements(slopes: dict[str, Any], towns: dict[str, Any], times: list[list[Any]]) -> list[Statement]:
    found = []
    for mode, part in (("pure", "MQ-T1.2"), ("approximate", "MQ-T1.1")):
        (middle, low, high), without = slopes[mode]["interval"], slopes[mode]["without_logs"]
        found.append(Statement(
            part, f"the error falls like n^-{PRINTED[mode]:.3f} up to logarithms",
            f"n^-{middle:.3f} ({low:.3f} to {high:.3f}); the promised alpha n^-{slopes[mode]['promised_slope']:.3f}, "
            f"{100.0 * slopes[mode]['within']:.0f}% of runs within it; without logarithms n^-{without[0]:.3f} "
            f"({without[1]:.3f} to {without[2]:.3f})",
            "yes, up to logarithms" if abs(without[0] - PRINTED[mode]) < 0.03 else "no",
        ))  # fmt: skip
    smallest = [min(n for n, alpha in zip(slopes["ns"], slopes[mode]["printed"], strict=True) if alpha < 1.0)
                for mode in MODES]  # fmt: skip
    found.append(Statement(
        "MQ-L3", "with the constant 3000", "the printed alpha is below the diameter from "
        + " and ".join(f"n = {n:.1e} ({mode})" for n, mode in zip(smallest, MODES, strict=True)) + " on",
        "the practical calibration keeps the same guarantee",
    ))  # fmt: skip
    better = [row for row in towns["rows"] if row[4] < row[7]]
    found.append(Statement(
        "MQ-T1", "the error depends on the number of queries by a logarithm",
        f"better than plain noise in {len(better)} of {len(towns['rows'])} settings"
        + (f", up to {max(row[7] / row[4] for row in better):.0f} times" if better else ""),
        "yes" if better else "not at this size",
    ))  # fmt: skip
    first, last = times[0], times[min(2, len(times) - 1)]
    found.append(Statement(
        "MQ-T1.3", "per-query time O(l n)", f"sorted: {last[2] / first[2]:.1f} times the time for "
        f"{last[0] / first[0]:.0f} times the points; by passes {last[3] / first[3]:.0f} times",
        "yes" if last[2] / first[2] < last[0] / first[0] else "no",
    ))  # fmt: skip
    return found


def _draw(figure: Any, slopes: dict[str, Any], towns: dict[str, Any], names: dict[str, Any]) -> None:
    (first, second), (third, fourth) = figure.subplots(2, 2)
    ns = np.array(slopes["ns"])
    for mode, colour, marker in zip(MODES, COLOURS, MARKERS, strict=False):
        part = slopes[mode]
        middle, low, high = part["interval"]
        first.plot(ns, part["errors"], color=colour, marker=marker, linestyle="", markersize=5,
                   label=f"{mode}: n^-{middle:.2f} ({low:.2f}, {high:.2f})")  # fmt: skip
        first.plot(ns, part["promised"], color=colour, linewidth=1.0, label=f"{mode}, promised alpha")
        slope = part["errors"][-1] * (ns / ns[-1]) ** -PRINTED[mode]
        first.plot(ns, slope, color=colour, linestyle=":", linewidth=1.0, label=f"slope -{PRINTED[mode]:.2f}")
        first.plot(ns, part["printed"], color=colour, linestyle="--", linewidth=0.8, label=f"{mode}, printed alpha")
    plain = slopes["queries"] * math.log(slopes["queries"] / BETA) / (ns * EPSILON)
    first.plot(ns, plain, color="#555555", linewidth=1.0, label="plain Laplace noise")
    first.axhline(1.0, color="black", linewidth=0.6)
    _logs(first, "n, number of points", f"largest error of {slopes['queries']} queries (diameters)")
    first.set_title("Error against n, one dimension, epsilon = 1", loc="left", fontsize=10)
    first.set_ylim(bottom=min(slopes[mode]["errors"][-1] for mode in MODES) / 1000.0)  # room for the legend
    first.legend(fontsize=7, frameon=False, loc="lower left", ncols=2)
    _lines(second, towns["rows"], 1, lambda row: row[0] == 10**6 and row[2] == 1000, "epsilon (nats)")
    second.set_title("People in cities: n = 10^6, 1,000 queries", loc="left", fontsize=10)
    _lines(third, towns["rows"], 2, lambda row: row[0] == 10**6 and row[1] == 1.0, "number of queries")
    third.set_title("People in cities: n = 10^6, epsilon = 1", loc="left", fontsize=10)
    for (mode, (truth, answers)), colour, marker in zip(names["scatter"].items(), COLOURS, MARKERS, strict=False):
        fourth.plot(truth, answers, color=colour, marker=marker, linestyle="", markersize=5, label=mode)
    shown = np.concatenate([truth for truth, _ in names["scatter"].values()])
    ends = [float(shown.min()) - 0.02, float(shown.max()) + 0.02]
    fourth.plot(ends, ends, color="black", linewidth=0.8, label="equal")
    fourth.set(xlabel="average edit distance (over the longest name)", ylabel="answer")
    fourth.set_title("16 names, through random subsets", loc="left", fontsize=10)
    fourth.legend(fontsize=8, frameon=False)


def _lines(axes: Any, rows: list[list[Any]], by: int, kept: Any, label: str) -> None:
    for mode, colour, marker in zip(MODES, COLOURS, MARKERS, strict=False):
        some = sorted((row for row in rows if kept(row) and row[3] == mode), key=lambda row: row[by])
        at: FloatArray = np.array([row[by] for row in some], dtype=float)
        for column, style, name in ((4, "-", "measured"), (5, ":", "promised"), (7, "--", "plain noise")):
            axes.plot(at, [row[column] for row in some], color=colour, linestyle=style, linewidth=1.0,
                      marker=marker if column == 4 else "", markersize=5, label=f"{mode}, {name}")  # fmt: skip
    if any(kept(row) for row in rows):  # the quick run has some of the settings only
        _logs(axes, label, "largest error (diameters)")
        axes.legend(fontsize=7, frameon=False)


def _logs(axes: Any, label: str, other: str) -> None:
    axes.set(xscale="log", yscale="log", xlabel=label, ylabel=other)


reproduction = Reproduction(
    "distance queries: error against n and epsilon, beside the rates and plain noise; cities, names", "MQ-T1", run
)
