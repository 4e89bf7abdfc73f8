"""The forms have exactly the loss that they state, and the curve is a summary of what was measured."""

import json
import math

import numpy as np
import power_curve as curve
import pytest
from hidden_forms import DEVELOPMENT, HELD_OUT, Form, Hidden
from scipy import special

from dpaudit.inference import learned_power

DRAWS, MASS, LOSS = 40_000, 0.1, 1.5


def in_a(name, held_out, outputs):
    """Whether each output is in A, and in B, by the definition of the form."""
    if name == "residues":
        left = np.mod(outputs, 7 if held_out else 10)
        return left == 1, left == 3
    if name == "single values":
        texts = np.array(outputs)
        return texts == "answer 0", texts == "answer 1"
    if name in ("narrow intervals", "distances"):
        size = outputs if outputs.ndim == 1 else np.linalg.norm(outputs, axis=1)
        return tuple((size >= start - 1e-9) & (size <= start + 1.1e-4) for start in (0.31, 0.72))
    if name == "many weak columns":
        ranks = special.ndtr(outputs.sum(axis=1) / math.sqrt(outputs.shape[1]))
    else:
        ranks = outputs if held_out else special.ndtr(outputs)
    if name == "two and two intervals":
        a, b = ((0.3, 0.5), (0.05, 0.7)) if held_out else ((0.15, 0.6), (0.35, 0.8))
        return tuple(sum((ranks >= s) & (ranks < s + MASS / 4) for s in starts) > 0 for starts in (a, b))
    return ranks > 1.0 - MASS / 2, ranks < MASS / 2


@pytest.mark.parametrize(
    ("form", "held_out"),
    [(form, False) for form in DEVELOPMENT] + [(form, True) for form in HELD_OUT],
    ids=lambda value: value.name if isinstance(value, Form) else ("held out" if value else "development"),
)
def test_a_form_has_the_loss_and_the_mass_that_it_states(form, held_out):
    rng = np.random.default_rng(5)
    for x in (0, 1):
        outputs = Hidden(form, LOSS, MASS).sample(x, DRAWS, rng)
        expected = MASS * special.expit(LOSS if x else -LOSS), MASS * special.expit(-LOSS if x else LOSS)
        for found, p in zip(in_a(form.name, held_out, outputs), expected, strict=True):
            # Six standard errors, rate 2e-9 each; noise outside falls into the thin places with probability below 1e-3.
            slack = 6.0 * math.sqrt(p / DRAWS) + (1e-3 if form.name in ("narrow intervals", "distances") else 0.0)
            assert abs(found.mean() - p) < slack


def test_all_numbers_of_one_law_are_its_law_whatever_the_loss_where_the_loss_is_nothing():
    """At a loss of 0 a threshold form is its base: normal, so that ranks are uniform (chi-square, rate 1e-9)."""
    outputs = Hidden(DEVELOPMENT[0], 0.0, MASS).sample(1, DRAWS, np.random.default_rng(6))
    counts = np.histogram(special.ndtr(outputs), bins=20, range=(0.0, 1.0))[0]
    expected = DRAWS / 20
    assert np.sum((counts - expected) ** 2 / expected) < special.chdtri(19, 1e-9)


def test_the_record_has_the_largest_times_with_caution_and_none_for_what_was_not_found():
    found = {
        ("sequential", 0, 0.25, 2_000): 1.5,
        ("sequential", 0, 1.0, 2_000): 2.0,
        ("fixed", 0, 1.0, 8_000): math.inf,
    }
    forms = curve.record_of(found)["forms"]["one threshold"]
    assert forms["sequential"] == [[curve.tested_draws(2_000, "sequential"), 2.4]]
    assert forms["fixed"] == [[curve.tested_draws(8_000, "fixed"), None]]


def test_the_file_of_the_package_is_about_these_forms_and_cases():
    record = json.loads(json.dumps(curve.record_of({})))
    kept = learned_power._measured()
    assert list(kept["forms"]) == [form.name for form in DEVELOPMENT] == [form.name for form in HELD_OUT]
    assert {key: kept[key] for key in ("event_mass", "probability", "seeds", "caution", "cases")} == {
        key: record[key] for key in ("event_mass", "probability", "seeds", "caution", "cases")
    }
    for curves in kept["forms"].values():
        for mode, cases in curve.CASES.items():
            assert [draws for draws, _ in curves[mode]] == [curve.tested_draws(draws, mode) for draws, _ in cases]


@pytest.mark.slow
def test_what_is_said_to_be_found_with_90_percent_is_found_of_laws_that_had_no_part_in_it():
    """20 audits a form; of what 90% find, fewer than 10 of 20 find with probability 7e-7 (binomial), 7 forms."""
    for form in HELD_OUT:
        loss, found = curve.held_out(form, 0.5, 8_000, "sequential", 20)
        assert math.isfinite(loss) and found >= 10
    # The control: at the loss of a test that knows the event, four intervals are found by far fewer.
    loss = curve.loss_known(0.5, 8_000, "sequential", 1.0)
    assert sum(math.isfinite(curve.stops(HELD_OUT[1], loss, 0.5, 8_000, "sequential", k)) for k in range(20)) < 10
