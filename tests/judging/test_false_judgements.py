"""Programs that once had a wrong proof: with something kept between calls, or outputs that a record takes for equal."""

from __future__ import annotations

import pytest

import dpaudit

LARGE = 2**53


def cached(scale, at):
    answers = {}

    def release(x, rng):
        if x not in answers:
            answers[x] = bool(rng.laplace(scale=scale) + x > at)
        return answers[x]

    return release


class Halts:
    """Answers once, then nothing."""

    def __init__(self, answer):
        self.answer, self.is_halted = answer, False

    def __call__(self, x, rng):
        if self.is_halted:
            return None
        self.is_halted = True
        return self.answer(x, rng)


def flipped(answers):
    def release(x, rng):
        if x not in answers:
            answers[x] = x if rng.random() < 0.6 else 1 - x
        return answers[x]

    return release


REMEMBER = {
    "an answer": (lambda: cached(0.5, 0.0), (0.0, 1.0)),
    "an answer of enough noise": (lambda: cached(2.0, 0.5), (-1.0, 0.5)),
    "a flag behind noise": (lambda: Halts(lambda x, rng: x + rng.normal()), (0.0, 100.0)),
    "a flag behind a comparison": (lambda: Halts(lambda x, rng: bool(x + rng.laplace(scale=0.2) > 0)), (-1.0, 1.0)),
    "a flag behind a draw": (lambda: Halts(lambda x, rng: bool(rng.random() < (0.99 if x else 0.01))), (0, 1)),
    "a draw": (lambda: flipped({}), (0, 1)),
}


@pytest.mark.parametrize("name", REMEMBER)
def test_of_a_program_that_remembers_nothing_is_proved(name):
    make, pair = REMEMBER[name]
    assert dpaudit.certify(make(), "eps=1", [pair], seconds=5).verdict == "open"
    found = dpaudit.judge(make(), "eps=1", pairs=[pair], seconds=3, seed=1)
    assert found.verdict != "proved" and found.by != "certificate"


def raising(x, rng):
    if rng.laplace() > 9:
        raise ValueError(f"x{x}")
    return x + rng.laplace()


def ordered(x, rng):
    z = rng.laplace()
    keys = ("a", "b") if x and rng.laplace() > 10 else ("b", "a")
    return {key: z if key == "a" else 1 for key in keys}


@pytest.mark.parametrize(
    "release",
    [
        lambda x, rng: (rng.laplace(), LARGE + x if rng.laplace() > 10 else 0),
        lambda x, rng: (rng.laplace(), (-0.0 if x else 0.0) if rng.laplace() > 10 else 1.0),
        lambda x, rng: (rng.laplace(), True if x and rng.laplace() > 10 else 1.0),
        raising,
        ordered,
    ],
)
def test_what_a_record_takes_for_equal_is_never_proved(release):
    assert dpaudit.judge(release, "eps=1", pairs=[(0, 1)], seconds=3, seed=1).verdict != "proved"


def runs_out(calls):
    left = [calls]

    def release(x, rng):
        left[0] -= 1
        return x + rng.laplace() if left[0] >= 0 else None

    return release


@pytest.mark.parametrize(
    "make", [*(make for make, _ in REMEMBER.values()), *(lambda c=c: runs_out(c) for c in range(1, 24))]
)
def test_of_a_program_that_remembers_nothing_is_recorded(make):
    (found,) = dpaudit.record_noise(make(), [(0, 1)], "eps=1", seed=1).pairs
    assert found.grade == "not recorded" or not found.statement


def nearly_cancels(x, rng):  # its sign is that of a rounding error
    noise = rng.laplace()
    return bool(noise * 0.1 + noise * 0.2 > noise * 0.3) + x * 0


def cancels(x, rng):
    noise = rng.laplace()
    return bool((noise + 0.1) - 0.1 == noise) if x else True


def is_absorbed(x, rng):  # the noise is below the last digit of the sum
    return 1e20 + 1e5 * x + rng.laplace(scale=1e5)


@pytest.mark.parametrize("release", [nearly_cancels, cancels, is_absorbed])
def test_noise_that_is_left_to_rounding_is_open(release):
    (found,) = dpaudit.record_noise(release, [(0.0, 1.0)], "eps=1", seed=1).pairs
    assert found.grade == "not recorded" and "noise" in found.unproved
    assert dpaudit.certify(release, "eps=1", [(0.0, 1.0)], seconds=5).verdict == "open"


@pytest.mark.parametrize(
    ("release", "claim", "pair"),
    [
        (lambda x, rng: 2.8 * x + rng.laplace(), dpaudit.MetricDP(lambda a, b: abs(a - b)), (0.0, 5e-7)),
        (lambda x, rng: x + rng.laplace(scale=1e6), "eps=1e-7", (0.0, 1.0)),
    ],
)
def test_a_budget_below_a_millionth_is_not_kept_by_what_loses_more(release, claim, pair):  # by an absolute slack
    (found,) = dpaudit.record_noise(release, [pair], claim, seed=1).pairs
    assert found.grade == "implied"
    assert dpaudit.judge(release, claim, pairs=[pair], seconds=3, seed=1).by != "recorded noise"


def test_a_small_budget_is_kept_by_what_loses_as_much():
    claim = dpaudit.MetricDP(lambda a, b: abs(a - b))
    found = dpaudit.judge(lambda x, rng: x + rng.laplace(), claim, pairs=[(0.0, 5e-7)], seconds=3, seed=1)
    assert found.verdict == "not_refuted" and found.by == "recorded noise"
