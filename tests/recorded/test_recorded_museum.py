"""Recorded noise on the museum: how many bugs it proves without a statistic, and no mended version is accused."""

import pytest

import dpaudit

MUSEUM = {exhibit.name: exhibit for exhibit in dpaudit.museum()}
SEED = 20_261_125
SLOW = ("outlier-shapes-the-domain", "noisy-max-returns-the-value")  # 256 runs each
NAMES = [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in sorted(MUSEUM)]
# What it does not prove: outputs after a look at the noise (a logarithm, a rounding, a floor, one noise compared with
# another), low bits, which no law in real numbers shows, and what draws nothing that is recorded.
NOT_PROVED = {
    "as-many-as-there-were", "at-least-one-if-it-occurs", "bins-between-the-extremes",
    "bound-below-the-optimum", "categories-of-the-data", "exponential-radius", "gaussian-in-doubles",
    "laplace-in-doubles", "length-of-a-list-in-doubles", "neither-accepted-nor-zeroed",
    "no-bounds-no-noise", "noise-without-holes-added", "not-null-after-a-cast",
    "noisy-max-returns-the-value", "one-seed-for-all-columns", "percentile-without-noise", "polar-grid",
    "radius-beside-the-place", "radius-with-a-cap", "resampled-into-the-range",
    "response-among-values-present", "scaler-of-the-data", "shuffled-batches-as-poisson",
    "svt-cutoff-left-out", "svt-never-stops", "svt-releases-the-answer", "threshold-at-its-boundary",
    "threshold-rounded-down", "truncated-and-normalised", "uniform-of-one-half",
}  # fmt: skip


def recorded(exhibit, mechanism):
    return dpaudit.record_noise(mechanism, [exhibit.pair], exhibit.claim, seed=SEED)


def test_what_is_not_proved_is_of_the_museum():
    assert set(MUSEUM) >= NOT_PROVED and len(set(MUSEUM) - NOT_PROVED) == len(MUSEUM) - 30


@pytest.mark.parametrize("name", NAMES)
def test_a_bug_is_proved_or_known_to_be_out_of_reach(name):
    result = recorded(MUSEUM[name], MUSEUM[name].faulty)
    assert (result.grade == "proved") == (name not in NOT_PROVED), result.side_finding().summary
    if result.grade == "proved":
        assert result.pairs[0].places, result.pairs[0].statement


@pytest.mark.parametrize("name", NAMES)
def test_no_mended_version_is_accused(name):
    result = recorded(MUSEUM[name], MUSEUM[name].mended)
    assert result.grade != "proved" and result.side_finding().status != "found", result.pairs[0].statement
