"""Each check has a twin that fails it, and mainly it; a sound mechanism fails none.

The error rate is 1e-7 a list: a sound mechanism fails a test here with at most that probability over seeds, and twins
fail the other checks by chance no more often. The seeds are fixed; what each twin's own check sees is far from its
threshold (p-values below 1e-20 against thresholds of about 1e-9).
"""

import numpy as np
import pytest
from conformance_twins import (
    TWINS,
    IgnoresItsBudget,
    KeepsItsFirstNoise,
    NoisyCounts,
    OwnGenerator,
    RaisesOnOne,
    Response,
    ResponseWithMoreNoise,
    Stable,
    StatesDensity,
    StatesNothing,
)

import dpaudit
from dpaudit.conformance import check_names
from dpaudit.conformance.registry import LAW_NAMES

OWN = [name for name in check_names() if not name.startswith("law_")]
LAWS = [name for name in check_names() if name.startswith("law_")]
RATE = 1e-7


def statuses(mechanism, only=OWN, **options):
    result = dpaudit.check(mechanism, only=only, seed=1, error_rate=RATE, **options)
    return {record.name: record.status for record in result.records}, result


def test_every_check_that_is_no_law_has_a_twin():
    assert [name for name, _, _ in TWINS] == OWN


def test_the_laws_are_those_of_the_list_of_laws():
    assert tuple(law.name for law in dpaudit.LAWS) == LAW_NAMES
    assert len(set(check_names())) == len(check_names())


@pytest.mark.parametrize("mechanism", [NoisyCounts(), Response(), StatesDensity()], ids=lambda m: type(m).__name__)
def test_a_sound_mechanism_fails_no_check(mechanism):
    found, result = statuses(mechanism)
    assert set(found.values()) <= {"not_refuted", "skipped"} and result.verdict == "not_refuted", found
    assert sum(status == "not_refuted" for status in found.values()) >= 17
    assert all(record.message for record in result.of_status("skipped"))


@pytest.mark.parametrize(("name", "twin", "others"), TWINS, ids=[name for name, _, _ in TWINS])
def test_a_twin_fails_its_check_and_mainly_that(name, twin, others):
    found, result = statuses(twin)
    failed = {check for check, status in found.items() if status not in ("not_refuted", "skipped")}
    assert found[name] == "violated"
    assert failed <= {name} | others, failed
    assert result.verdict == "violated" and result.exit_status == 1


class NoNoise(NoisyCounts):
    """Answers exactly: whatever is done to the answers, half of the pairs differ."""

    def noise(self, size, rng, rate=None):
        return 0 * super().noise(size, rng, rate)

    def pairs(self):
        return [([0, 0, 0], [0, 0, 1]), ([0, 0, 1], [0, 1, 1])]


@pytest.mark.parametrize("name", LAWS)
def test_a_law_does_not_hold_for_a_mechanism_that_breaks_its_claim(name):
    # Exact answers differ in what every function keeps of them, but the one that forgets all: there an exception tells.
    leaky = RaisesOnOne() if name == "law_post_processing_by_forgetting" else NoNoise()
    found, result = statuses(leaky, [name])
    assert found == {name: "violated"}, result.records[0].message


def test_an_error_bound_that_says_nothing_is_inconclusive():
    found, result = statuses(StatesNothing(), ["utility_bounds"])
    assert found == {"utility_bounds": "inconclusive"}
    assert "sum of errors says nothing on " in result.records[0].message


def test_a_budget_that_changes_nothing_is_inconclusive():
    # No twin of a failed check: noise that a larger budget leaves alone is no more error, and may be wanted.
    found, result = statuses(IgnoresItsBudget(), ["more_budget_less_error"])
    assert found == {"more_budget_less_error": "inconclusive"} and result.exit_status == 5
    assert "4 times the budget is not seen to give less error" in result.records[0].message


def test_outputs_that_vary_more_with_more_budget_are_no_violation_where_no_error_is_stated():
    found, result = statuses(Stable(), ["more_budget_less_error"])
    assert found == {"more_budget_less_error": "inconclusive"}
    assert "two runs are further apart, in " in result.records[0].message


def test_noise_that_is_kept_from_an_earlier_check_is_found():
    noisy = ["independent_in_a_batch", "batch_law", "independent_processes"]
    found, _ = statuses(KeepsItsFirstNoise(), ["seeded_determinism", "independent_calls", *noisy])
    assert found["independent_calls"] == "violated"
    assert {found[name] for name in noisy} == {"skipped"}  # its outputs never vary again: nothing was tested there


class OfTwoTypes(Response):
    """Gives a text or a number, as it states."""

    outcomes = ("no", 1)
    names = outcomes

    def distribution(self, data):
        right = self.truth_probability()
        return np.array([1.0 - right, right] if data else [right, 1.0 - right])

    def sample(self, data, size, rng):
        return [self.names[place] for place in super().sample(data, size, rng)]


class OfTwoTypesWithMoreNoise(OfTwoTypes):
    def distribution(self, data):
        right = 1.0 / (1.0 + np.exp(-2.0 * self.epsilon))
        return np.array([1.0 - right, right] if data else [right, 1.0 - right])


class NamesOneTwice(OfTwoTypes):
    outcomes = (1.0, 1)


@pytest.mark.parametrize(("mechanism", "status"), [(OfTwoTypes(), "not_refuted"), (OfTwoTypesWithMoreNoise(),
    "violated"), (NamesOneTwice(), "violated"), (ResponseWithMoreNoise(), "violated")],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__)  # fmt: skip
def test_outcomes_may_be_of_several_types_but_are_different(mechanism, status):
    found, result = statuses(mechanism, ["distribution_fits_draws"])
    assert found == {"distribution_fits_draws": status}, result.records[0].message


def test_the_group_law_finds_two_pairs_that_share_an_input_wherever_they_stand():
    low, middle, high, other, another = ([0, 0, k] for k in (0, 1, 2, 7, 8))
    pairs = [(other, another), (low, middle), (high, middle)]
    found, _ = statuses(NoNoise(), ["law_group_privacy"], pairs=pairs)
    assert found == {"law_group_privacy": "violated"}
    found, _ = statuses(NoNoise(), ["law_group_privacy"], pairs=pairs[:2])
    assert found == {"law_group_privacy": "skipped"}


class LawThatRaises(Response):
    def distribution(self, data):
        raise KeyError("no table")


def test_a_law_that_raises_is_passed_over_with_what_it_raised():
    found, result = statuses(LawThatRaises(), ["distribution_fits_draws"])
    assert found == {"distribution_fits_draws": "skipped"}
    assert result.records[0].message.startswith("the mechanism states no law here: KeyError: 'no table'")


def test_a_generator_of_its_own_skips_what_needs_a_seed():
    found, _ = statuses(OwnGenerator())
    assert found["seeded_determinism"] == found["same_bits_in_another_process"] == "skipped"
