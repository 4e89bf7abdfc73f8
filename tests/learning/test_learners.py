"""Learners: what they propose for planted leaks, at every scale, and that smooth laws give them nothing.

Draws come from fixed seeds. What is asserted of them is no rate; where chance decides, a comment says how far it is.
"""

import json
import math
import re

import numpy as np
import pytest

from dpaudit.learning import windows
from dpaudit.learning.kinds.bands import bands_of
from dpaudit.learning.kinds.residues import lattice_step
from dpaudit.learning.kinds.spikes import spikes_of
from dpaudit.learning.predictors import learners, proposed
from dpaudit.learning.reductions import (
    COUNTS,
    Above,
    Gap,
    Own,
    Radius,
    Ratio,
    Residue,
    RowCount,
    SignOfZero,
    Surface,
    Weighted,
    reduction_from_dict,
)
from dpaudit.learning.training import Training

RNG = np.random.default_rng


def names(first, second, **options):
    return [one.name for one in proposed(np.asarray(first, float), np.asarray(second, float), 8, **options)]


@pytest.mark.parametrize("modulus", [*range(2, 17), 365, 3_600])
def test_integers_that_are_multiples_in_half_of_the_draws_of_one_side_have_their_modulus_named(modulus):
    first, second = RNG(modulus).integers(10**4, 10**7, size=(2, 400, 1))
    first[:200] -= first[:200] % modulus
    found = [re.search(r"(?:modulo|multiples of) ([\d,]+)", name) for name in names(first, second)]
    assert modulus in [int(step[1]) for step in found if step]


def in_rows(*samples):
    """Values in order and their labels, a row for each sample of draws of x and of x_prime."""
    rows = [Training(first, second).sorted(Own(0)) for first, second in samples]
    return np.stack([row.values for row in rows]), np.stack([row.labels for row in rows])


def windows_of(draws, smallest, largest):
    """Begin and end of every window, as the module `windows` has them."""
    return [(a, a + k) for k in windows.sizes(smallest, largest) for a in windows.begins(draws, k).tolist()]


def spikes_by_the_definition(values):
    """What `spikes_of` gives for one row, by a loop over all windows."""
    size, found = len(values), []
    for begin, end in windows_of(size, windows.SMALLEST, max(windows.SMALLEST, int(0.05 * size))):
        k = end - begin
        low, high, around = values[begin], values[end - 1], 4 * k
        left = low - values[begin - around] if begin >= around else math.inf
        right = values[end - 1 + around] - high if end - 1 + around < size else math.inf
        expected = max((high - low + 1e-290) / max(min(left, right), 1e-290) * around, 1e-9)
        merit = (k - 1) * math.log((k - 1) / expected) - (k - 1) + expected
        if k - 1 > 3.0 * expected and merit > 1.5 * math.log(size) + 2.0:
            found.append((merit, low - (high - low) / (k - 1), high + (high - low) / (k - 1)))
    return windows.disjoint(found, 12)


def bands_by_the_definition(values, labels):
    """What `bands_of` gives for one row of different values, by a loop over all windows."""
    size, found, of_x = len(values), [], [0, *np.cumsum(labels).tolist()]

    def entropy(a, n):
        return sum(k * math.log(k / n) for k in (a, n - a) if k)

    for begin, end in windows_of(size, 6, max(6, int(0.12 * size))):
        k, inside, ratios = end - begin, of_x[end] - of_x[begin], []
        for a, b in ((max(begin - k, 0), begin), (end, min(end + k, size))):
            n, beside = b - a, of_x[b] - of_x[a]
            ratio = entropy(inside, k) + entropy(beside, n) - entropy(inside + beside, k + n)
            ratios.append(ratio * math.copysign(1.0, inside * n - beside * k) if n else 0.0)
        if ratios[0] * ratios[1] > 0.0 and min(map(abs, ratios)) > math.log(size) + 4.0:
            found.append((min(map(abs, ratios)), values[begin], values[end - 1]))
    return windows.disjoint(found, 8)


def planted(seed, size):
    """Draws of x and of x_prime, some of them with spikes, bands and tails."""
    rng = RNG(seed)
    first, second = (getattr(rng, rng.choice(["laplace", "normal", "random"]))(size=(size, 1)) for _ in range(2))
    if seed % 3:
        share = int(rng.choice([0.05, 0.1]) * size)
        (first if seed % 2 else second)[:share] = 0.4 + rng.choice([1e-6, 1e-2]) * rng.random((share, 1))
    return first, second


@pytest.mark.parametrize("size", [25, 130, 600])
def test_windows_that_are_ruled_out_have_no_merit(size):
    """Bounds rule most windows out, many samples at a time: what is found is what a loop over all of them finds."""
    values, labels = in_rows(*(planted(seed, size) for seed in range(12)))
    spikes, bands = spikes_of(values), bands_of(values, labels)
    assert size < 600 or min(sum(map(bool, spikes)), sum(map(bool, bands))) > 3  # else the loop agrees on nothing
    for row, own, found, found_bands in zip(values, labels, spikes, bands, strict=True):
        assert np.asarray(found).ravel() == pytest.approx(np.ravel(spikes_by_the_definition(row)), rel=1e-9)
        assert np.asarray(found_bands).ravel() == pytest.approx(np.ravel(bands_by_the_definition(row, own)), rel=1e-9)


def test_reductions_with_numbers_that_are_left_out_are_looked_at_as_well():
    first, second = RNG(8).random((2, 900, 2))
    first[::3, 0], first[1::3, 1] = np.nan, 0.5
    training = Training(first, second)
    blocks = list(training.blocks([Own(0), Own(1)]))
    assert [block.values.shape for block in blocks] == [(1, 1_500), (1, 1_800)]
    assert [np.count_nonzero(block.labels) for block in blocks] == [600, 900]
    assert blocks[1].of_label(True).shape == (1, 900) and np.count_nonzero(blocks[1].of_label(True) == 0.5) == 300


def test_learners_are_found_by_their_files():
    assert [learner.__module__.rpartition(".")[2] for learner in learners()] == [
        "agreements",
        "bands",
        "levels",
        "multiples",
        "relations",
        "residues",
        "rings",
        "spikes",
        "surfaces",
        "zeros",
    ]


@pytest.mark.parametrize("width", [1e-2, 1e-4, 1e-6, 0.0])
def test_a_spike_is_found_at_any_width(width):
    noise = RNG(1).laplace(size=(1_000, 1))
    noise[:30, 0] = 2.5 + width * RNG(2).random(30)  # 30 of 1,000; of the density some 0.4 at the largest width
    (merit, low, high), *_ = spikes_of(np.sort(noise, axis=0).T)[0]
    assert merit > 20.0
    assert 2.5 - width <= low <= high <= 2.5 + 2.0 * width
    inside = np.count_nonzero((noise >= low) & (noise <= high))
    assert inside >= 20


def test_smooth_laws_and_counts_have_hardly_any_spikes():
    # By chance one sample in some hundred has one: of 60 five have probability below 1e-3.
    found = 0
    for seed in range(20):
        samples = RNG(seed).laplace(size=800), RNG(seed).normal(size=800), RNG(seed).poisson(30.0, size=800)
        found += sum(map(bool, spikes_of(np.sort(np.stack(samples), axis=1))))
    assert found <= 5


def test_a_band_is_found_where_one_input_leaves_a_hole():
    first, second = RNG(3).random((4_000, 1)), RNG(4).random((4_000, 1))
    first[np.abs(first - 0.4) < 0.01] = 0.9
    (found,) = bands_of(*in_rows((first, second)))
    assert any(0.385 < low < high < 0.415 for _, low, high in found)


def test_a_loss_that_rises_has_no_bands():
    # Three windows as large side by side are on a slope: which of them stands out is chance, of about exp(-4) a sample.
    shifted = [RNG(seed).laplace(size=(1_500, 1)) for seed in range(20)]
    samples = [(noise + 1.0, RNG(k + 99).laplace(size=(1_500, 1))) for k, noise in enumerate(shifted)]
    assert sum(map(bool, bands_of(*in_rows(*samples)))) <= 5


@pytest.mark.parametrize("step", [2, 7, 100])
def test_residues_are_found_of_integers(step):
    noise = np.rint(RNG(5).laplace(scale=20.0, size=(2, 300, 1))) * step
    assert any("modulo" in name for name in names(noise[0] + 1, noise[1]))


def test_residues_are_found_of_cents_written_as_numbers():
    noise = np.rint(RNG(6).laplace(size=(2, 300, 1)))
    assert any("modulo" in name for name in names(noise[0] + 12.37, noise[1] + 12.38))


def test_residues_of_smooth_noise_are_not_proposed():
    # A step must stand out by 4.5 deviations over others of its size: of 20 samples hardly one has such a step.
    found = sum(
        any("modulo" in name for name in names(RNG(k).laplace(size=(500, 1)) + 1.0, RNG(k + 50).laplace(size=(500, 1))))
        for k in range(20)
    )
    assert found <= 2


@pytest.mark.parametrize(("values", "step"), [([0, 6, 9, 15, 21, 27, 30, 33], 3.0), (0.1 * np.arange(9) ** 2, 0.1)])
def test_the_step_of_a_lattice_is_a_greatest_common_divisor(values, step):
    assert lattice_step(np.asarray(values, float)) == pytest.approx(step, rel=1e-6)  # rounding of products with 0.1


def test_numbers_without_a_lattice_have_no_step():
    assert lattice_step(np.sort(RNG(7).normal(size=200))) is None
    assert lattice_step(np.arange(3.0)) is None  # too few to say


def test_a_grid_around_a_known_point_is_found_as_a_distance():
    angle, radius = RNG(8).random((2, 200)) * 7.0, RNG(9).integers(1, 300, size=(2, 200)) / 100
    circle = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    points = {"the numbers of x": (0.123, 0.456), "the numbers of x'": (0.7, -0.2)}
    first, second = (part + np.array(point) for part, point in zip(circle, points.values(), strict=True))
    assert any("from the numbers of x modulo" in name for name in names(first, second, points=points))


def test_equal_parts_are_found_in_a_difference():
    first, second = RNG(10).normal(size=(2, 500, 3))
    first[:40, 2] = first[:40, 0]
    assert "spikes in coordinate 0 - coordinate 2" in names(first, second)


def test_the_sign_of_zeros_is_found():
    first, second = np.zeros((2, 30, 1))
    first[::2] = -0.0
    assert names(first, second) == ["the sign of a zero in coordinate 0"]


def test_no_draws_and_other_shapes_are_no_error():
    assert proposed(np.empty((0, 1)), np.ones((5, 1)), 3) == []
    assert proposed(np.ones((5, 2)), np.ones((5, 1)), 3) == []
    assert proposed(np.full((50, 2), np.nan), np.full((50, 2), np.nan), 3) == []
    missing = proposed(np.full((50, 2), np.nan), np.full((50, 2), np.inf), 3)
    assert {one.name.partition(" of ")[0] for one in missing} == {"levels"}  # counts of missing and equal numbers
    enormous = np.finfo(float).max * RNG(12).choice([-1.0, 0.0, 0.5, 1.0], size=(2, 200, 2))
    assert all("modulo" not in name for name in names(*enormous))  # and nothing warns


REDUCTIONS = [
    Own(1),
    SignOfZero(1),
    Weighted((0, 1), (1, -1), 0.5),
    Radius((0, 1), (0.25, -1.0), 2.0),
    Radius((0, 1), (3.0, 4.0), 1.0, "the numbers of x"),
    Residue(Weighted((0, 1), (1, 1), 1.0), 2.0, 0.5),
    Residue(Own(0), 0.1),
    Gap((0, 1), 2.0),
]


@pytest.mark.parametrize("reduction", REDUCTIONS, ids=lambda reduction: reduction.name)
def test_a_reduction_is_read_back_as_it_was_and_sees_rows_one_by_one(reduction):
    points = {"the numbers of x": (3.0, 4.0)}
    again = reduction_from_dict(json.loads(json.dumps(reduction.to_dict())), points)
    assert again == reduction
    rows = np.concatenate([RNG(11).normal(size=(40, 2)), [[np.nan, 1.0], [np.inf, 1.0], [1e300, -1e300]]])
    together = again(rows)
    assert together.tobytes() == np.concatenate([again(rows[k : k + 1]) for k in range(len(rows))]).tobytes()


def test_a_known_point_is_not_written_down():
    assert "0x" not in json.dumps(REDUCTIONS[4].to_dict()["centre"])
    with pytest.raises(ValueError, match="must have 'the numbers of x' of 2 numbers"):
        reduction_from_dict(REDUCTIONS[4].to_dict(), {})


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"kind": "residue", "of": {"kind": "own", "column": 0}, "modulus": "0x0p0", "offset": "0x0p0"}, "modulus"),
        ({"kind": "weighted", "columns": [0], "weights": [1], "unit": "-0x1p0"}, "unit must be positive"),
        ({"kind": "gap", "columns": [0, 1, 2], "unit": "0x1p0"}, "those of two points"),
        ({"kind": "cube"}, "known kind"),
    ],
)
def test_records_that_are_no_reduction_are_refused(record, message):
    with pytest.raises(ValueError, match=message):
        reduction_from_dict(record)


@pytest.mark.parametrize(
    "leak",
    [
        pytest.param(lambda z: z[:, 0] * 2.0 + 0.7, id="a line"),
        pytest.param(lambda z: z[:, 0] + z[:, 1], id="a plane through the origin"),
        pytest.param(lambda z: 2.0 + np.sqrt(9.0 - np.square(np.clip(z[:, 0], -2.0, 2.0) - 0.5)), id="a circle"),
    ],
)
def test_surfaces_are_found_wherever_they_are(leak):
    # 60 of 300 draws of x on it. A circle takes 3 of these: 12 of 1,500 tries hit it on average, none with 1e-5.
    first, second = RNG(13).normal(size=(2, 300, 3))
    first[:60, 0] = np.clip(first[:60, 0], -2.0, 2.0)
    first[:60, 2] = leak(first[:60])
    found = [one for one in proposed(first, second, 8) if one.name.startswith("draws on one of the")]
    assert found
    inside = found[0].reduction(first[:60])
    low, high = found[0].edges
    assert np.all((inside >= low) & (inside < high))
    assert not np.any((found[0].reduction(second) >= low) & (found[0].reduction(second) < high))


def test_no_surface_is_found_in_noise_or_in_whole_numbers():
    for seed in range(4):
        noise = RNG(seed).normal(size=(2, 300, 3))
        for rows in (noise, np.rint(9.0 * noise)):
            assert not any(name.startswith("draws on") for name in names(*rows))


@pytest.mark.parametrize("columns", [(1, 4), (0, 2, 5)])
def test_parities_and_sides_that_agree_are_found(columns):
    bits = RNG(14).integers(0, 2, size=(2, 200, 6))
    for side, rows in enumerate(bits):
        rows[:, columns[-1]] = (rows[:, columns[:-1]].sum(axis=1) + side) % 2
    found = [name for name in names(*bits) if name.startswith("agreement")]
    assert any(all(f"coordinate {column}" in name for column in columns) for name in found)
    normal = np.abs(RNG(15).normal(size=(2, 200, 6))) * (2.0 * bits - 1.0)
    assert any(name.startswith("agreement") and "large" in name for name in names(*normal))


def test_counts_of_a_row_are_found():
    first, second = RNG(16).normal(size=(2, 300, 30))
    first[:60, 17] = first[:60, 4]
    assert any("numbers that repeat another one" in name for name in names(first, second))
    missing = second.copy()
    missing[np.arange(60), RNG(17).integers(30, size=60)] = np.nan
    assert any("missing" in name for name in names(missing, RNG(18).normal(size=(300, 30))))


def test_new_reductions_are_what_they_say_and_come_back_from_data():
    rows = np.array([[1.0, -2.0, 1.0], [0.0, np.nan, 3.0]])
    ratio, product = Ratio((0, 1), False), Ratio((0, 1), True)
    assert ratio(rows)[0] == pytest.approx(-np.log(2.0), abs=1e-9)
    assert product(rows)[0] == pytest.approx(np.log(2.0), abs=1e-9)
    assert {what: RowCount(what)(rows).tolist() for what in COUNTS} == {
        "numbers that repeat another one": [1.0, 0.0],
        "numbers that are missing": [0.0, 1.0],
        "numbers less than the one before": [1.0, 0.0],
        "numbers below 0": [1.0, 0.0],
        "position of the first that is not 0": [0.0, 1.0],
    }
    above, circle = Above((0, 2), (0.5, 2.0)), Surface((0, 2), (1.0, 0.0, 2.0), 2.0)
    assert above(rows).tolist() == [1.0, 1.0]
    assert circle(rows).tolist() == [0.5 + 2.0 * 0.5, 0.0 + 2.0 * 2.25]
    for one in (ratio, product, above, circle, *map(RowCount, COUNTS)):
        assert reduction_from_dict(json.loads(json.dumps(one.to_dict()))) == one
        assert one.describe() and one.name
    for record, what in (
        ({"kind": "row_count", "what": "x"}, "count must be one of"),
        ({"kind": "above", "columns": [0], "limits": []}, "limits must be 1 numbers"),
        ({**circle.to_dict(), "weights": []}, "weights must be one more than columns"),
    ):
        with pytest.raises(ValueError, match=what):
            reduction_from_dict(record)


def test_spikes_of_both_labels_do_not_keep_out_what_tells_the_label():
    rng = np.random.default_rng(3)
    draws = rng.laplace(size=(2, 2_000, 6))
    for column in range(5):  # a tenth of the draws of either label, in each column
        draws[:, :200, column] = 0.1 * column + 1e-7 * rng.random((2, 200))
        rng.shuffle(draws[0]), rng.shuffle(draws[1])
    draws[0, :, 5], draws[1, :, 5] = (np.abs(rng.normal(size=2_000)) + 3.0 * k for k in (0, 0))
    hole = (draws[1, :, 5] > 0.5) & (draws[1, :, 5] < 0.6)
    draws[1, hole, 5] += 1.0
    found = proposed(draws[0], draws[1], 4)
    assert len(found) == 4
    assert "bands in coordinate 5" in [predictor.name for predictor in found]
