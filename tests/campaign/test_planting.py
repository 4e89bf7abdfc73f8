"""Leaks planted into outputs: their masses, their losses, and that nothing is found where nothing was planted."""

import numpy as np
import pytest

from dpaudit.campaign.planting import FORMS, SIZES, Planting, Seen, _replayed, _tilted, misfit, sides_of
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.tasks import Task
from dpaudit.privacy.claims import GaussianDP, PureDP

WORDS = ["red", "blue", "green", "tea"]


def seen_of(outputs):
    half = len(outputs) // 2
    return Seen.of([read_outputs(part, half) for part in (outputs[:half], outputs[half : 2 * half])])


def numbers(size=4_000, columns=None, seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=size if columns is None else (size, columns))


def answers(size=4_000):
    rng = np.random.default_rng(2)
    return rng.choice([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], size=(size, 3)).astype(float)


def texts(size=2_400):
    rng = np.random.default_rng(3)
    return [f"{WORDS[rng.integers(4)]} {rng.normal():.3f} {WORDS[rng.integers(4)]}" for _ in range(size)]


OUTPUTS = {"number": numbers(), "row": numbers(columns=4), "answers": answers(), "texts": texts()}


def form_of(name):
    return next(form for form in FORMS if form.name == name)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_have_the_forms_that_a_reader_would_expect_of_them(kind):
    names = {form.name for form in seen_of(OUTPUTS[kind]).suited if form.is_expected}
    expected = {
        "number": {"one level", "intervals"},
        "row": {"one level", "intervals", "two columns together"},
        "answers": {"one level", "single values", "two columns together"},
        "texts": {"one level", "intervals", "single values", "a token", "two columns together"},
    }
    assert names == expected[kind]


@pytest.mark.parametrize("kind", OUTPUTS)
def test_halves_of_an_event_have_the_mass_that_whole_cells_allow(kind):
    seen = seen_of(OUTPUTS[kind])
    size = len(seen.outcomes)
    for form in seen.suited:
        columns = seen.suited[form]
        cells = {len(np.unique(values)) for values in columns}
        for seed in range(8):
            sides = seen.event(form, 0.2, np.random.default_rng(seed))
            halves = [(sides == side).sum() / size for side in (1, -1)]
            # A half of .1. Few values allow no better than whole ones: that a word is there, or that it is not.
            has_many = min(cells) > 40
            largest = max(halves) if has_many else min(halves)
            assert min(halves) > 0.0 and largest <= (0.16 if has_many else 0.5), (form.name, halves)


def test_an_event_is_a_function_of_the_output_alone():
    rng = np.random.default_rng(4)
    outputs = np.tile(rng.normal(size=(500, 3)), (4, 1))
    seen = seen_of(outputs)
    for form in seen.suited:
        sides = form.make(seen.suited[form], 0.2, np.random.default_rng(1))
        assert (sides.reshape(4, 500) == sides[:500]).all(), form.name


@pytest.mark.parametrize("name", ["two columns together", "several columns together"])
def test_of_columns_together_none_tells_alone(name):
    rng = np.random.default_rng(9)
    columns = [rng.normal(size=200_000) for _ in range(4)]
    sides = form_of(name).make(columns, 0.3, rng)
    assert (sides != 0).mean() > 0.15
    for values in columns:  # each bin has as much of A as of B: 5 standard deviations, false alarms below 1e-5
        bins = np.searchsorted(np.sort(values), values) * 60 // len(values)
        balance = np.bincount(bins, weights=sides)
        assert (np.abs(balance) <= 5.0 * np.sqrt(np.bincount(bins, weights=sides != 0) + 1.0)).all()


def test_halves_of_an_event_of_words_are_as_heavy_as_they_are_asked_to_be_where_any_are():
    rng = np.random.default_rng(8)
    words = np.array(["red", "blue", "green", "tea", "north", "south", "open", "late"])
    rates = [0.05, 0.05, 0.05, 0.05, 0.01, 0.02, 0.37, 0.40]
    texts = [f"{a}+{b}" for a, b in zip(*rng.choice(words, (2, 4_000), p=rates), strict=True)]
    seen = seen_of(texts)
    made = [seen.event(form_of("a token"), 0.2, np.random.default_rng(k)) for k in range(10)]
    assert max(misfit(sides, 0.2) for sides in made) <= SIZES.rounding


def test_an_event_is_as_rare_as_it_is_asked_for_where_any_is():
    rng = np.random.default_rng(5)
    beside_a_flag = np.stack([rng.normal(size=20_000), rng.integers(0, 2, 20_000).astype(float)], axis=1)
    seen = seen_of(beside_a_flag)
    for form in seen.suited:
        for mass in (0.2, 0.1, 0.03):
            # Single values are those of the flag alone, and none of its events is rare.
            made = [seen.event(form, mass, np.random.default_rng(k)) for k in range(5)]
            assert all(misfit(one, mass) <= SIZES.rounding for one in made) or form.name == "single values", (
                form.name,
                mass,
            )


def test_of_events_that_miss_the_mass_a_rarer_one_is_planted_before_a_heavier_one_that_is_nearer():
    rng = np.random.default_rng(9)
    rates = [0.01, 0.98, 0.01], [0.2, 0.6, 0.2]  # events of .02 and of .4
    seen = seen_of(np.stack([rng.choice(3, 6_000, p=p) for p in rates], axis=1).astype(float))
    made = [seen.event(form_of("one level"), 0.1, np.random.default_rng(k)) for k in range(5)]
    assert all(0.0 < np.mean(sides != 0) < 0.03 for sides in made)


def test_of_two_flags_the_rarest_event_is_planted():
    seen = seen_of(np.random.default_rng(6).integers(0, 2, (4_000, 2)).astype(float))
    sides = seen.event(form_of("two columns together"), 0.1, np.random.default_rng(1))
    assert 0.9 < 2.0 * min((sides == 1).mean(), (sides == -1).mean()) <= 1.0


def test_a_column_that_is_there_twice_has_no_event_of_both():
    values = np.random.default_rng(7).normal(size=2_000)
    seen = seen_of(np.stack([values, values], axis=1))
    assert not seen.event(form_of("two columns together"), 0.1, np.random.default_rng(1)).any()


def test_missing_values_are_a_cell_like_others():
    values = np.where(np.arange(1_000) % 2, np.nan, np.arange(1_000.0))
    (form,) = (form for form in FORMS if form.name == "one level")
    assert set(np.unique(form.make([values], 0.2, np.random.default_rng(0)))) == {-1, 0, 1}


def test_of_a_coin_the_event_is_the_coin():
    sides = sides_of(np.repeat([0, 1], [300, 700]), 0.1, np.random.default_rng(0))
    assert sorted({int(side): int((sides == side).sum()) for side in (1, -1)}.values()) == [300, 700]


@pytest.mark.parametrize(("few", "many"), [(100, 100), (40, 160), (1, 199)])
@pytest.mark.parametrize("loss", [0.5, 2.0, 12.0])
def test_the_lighter_half_has_the_loss_and_no_output_has_a_larger_one(few, many, loss):
    sides = np.repeat([1, -1, 0], [few, many, 800])
    ones = _tilted(sides, loss)
    assert ones.sum() == pytest.approx(500.0)  # labels are even: both laws sum to 1
    odds = np.log(ones / (1.0 - ones))
    assert odds[0] == pytest.approx(loss) and np.abs(odds).max() == pytest.approx(loss)
    if few == many:
        assert odds[few] == pytest.approx(-loss)


def test_a_replay_gives_no_output_twice():
    outcomes = read_outputs(np.arange(100.0), 100)
    replay = _replayed([outcomes, outcomes])
    tasks = [Task(0, 0, k, 0, 10, (), 10) for k in range(10)] + [Task(1, 0, 0, 0, 30, (), 30)]
    kept = [result.kept.numbers.ravel().tolist() for result in replay(tasks)]
    assert np.concatenate(kept[:10]).tolist() == list(range(100)) and kept[10] == list(range(30))


@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_nothing_is_found_more_often_than_the_level_says_where_the_loss_is_on_the_claim(mode):
    """At a level of 20% at most 16 of 40 plants on the claim are found, but with probability .003 (binomial)."""
    planting = Planting(seen_of(numbers(500)), PureDP(1.0), 0.2, mode)
    found = sum(planting.is_found(form_of("one level"), 0.5, 1.0, np.random.default_rng(k)) for k in range(40))
    assert found <= 16


@pytest.mark.parametrize(
    ("kind", "form"), [("number", "one level"), ("answers", "single values"), ("texts", "a token")]
)
def test_plants_of_a_large_loss_are_found(kind, form):
    """At least 5 of 6; with other seeds 60 of 60 are. Were it .95 each, this would fail once in 30 times (binomial)."""
    planting = Planting(seen_of(OUTPUTS[kind]), PureDP(0.5), 0.05, "sequential")
    assert sum(planting.is_found(form_of(form), 0.4, 6.0, np.random.default_rng(k)) for k in range(6)) >= 5


def test_a_claim_with_a_second_bound_is_planted_too():
    planting = Planting(seen_of(numbers(2_000)), GaussianDP(0.3), 0.05, "fixed")
    assert planting.is_found(form_of("one level"), 0.6, 6.0, np.random.default_rng(1))


def test_a_plant_is_fixed_by_its_generator():
    planting = Planting(seen_of(numbers(1_000)), PureDP(1.0), 0.05, "sequential")
    runs = [
        [planting.is_found(form, 0.2, 2.5, np.random.default_rng(k)) for k in range(6)] for form in planting.seen.suited
    ]
    again = [
        [planting.is_found(form, 0.2, 2.5, np.random.default_rng(k)) for k in range(6)] for form in planting.seen.suited
    ]
    assert runs == again
