"""Broken pairs made small: the fault stays, the pair stays in its domain, and the error rate is shared."""

import json

import numpy as np
import pandas as pd
import pytest

import dpaudit
from dpaudit import Pair, Search
from dpaudit.domains import DatasetDomain, NumberDomain, TableDomain
from dpaudit.search import audit_and_shrink, shrink
from dpaudit.search.shrinking import SHARE

SEED = 20_261_125


def _outlier(data, size, rng):  # a record of 7 counts ten times: loss 10 over a claim of 1, seen with 250 draws
    return sum(data) + 9.0 * (7.0 in data) + rng.laplace(size=size)


def test_rows_that_do_not_matter_are_left_out():
    many = [1.0, 0.5, 3.0, 2.0, 2.0, 4.0, 0.0]
    small = shrink(_outlier, "eps=1", Pair(many, [*many, 7.0]), seed=SEED)
    assert (small.pair.x, small.pair.x_prime, small.difference) == ([], [7.0], "row 0 added: 7.0")
    assert (small.rows_before, small.rows_after) == (8, 1)


def test_a_row_that_matters_stays():
    def release(data, size, rng):  # the new record counts only beside a record of 1
        return 10.0 * (1.0 in data and 7.0 in data) + rng.laplace(size=size)

    small = shrink(release, "eps=1", Pair([0.0, 1.0, 0.5], [0.0, 1.0, 0.5, 7.0]), seed=SEED)
    assert sorted(small.pair.x_prime) == [1.0, 7.0]


def test_a_pair_stays_in_its_domain():
    domain = DatasetDomain((0.0, 7.0), largest=8, smallest=3)
    small = shrink(_outlier, "eps=1", Pair([0.0] * 6, [*[0.0] * 6, 7.0]), domain, seed=SEED)
    assert len(small.pair.x) == 3 and len(small.pair.x_prime) == 4
    near = NumberDomain(5.0, 9.0, change=1.0)
    broken = Pair(7.123, 8.123)
    number = shrink(lambda x, size, rng: 9.0 * x + rng.laplace(size=size), "eps=1", broken, near, seed=SEED)
    assert 5.0 <= number.pair.x <= 9.0 and abs(number.pair.x - number.pair.x_prime) <= 1.0 + 1e-9


def test_the_numbers_of_a_vector_are_no_rows():
    domain = {"kind": "vector", "length": 4, "low": 0, "high": 1, "adjacency": "one"}
    search = Search(domain, budget=2_000, candidates=8)
    options = {"seed": SEED, "samples": 2_000, "floating_point": False}
    result = audit_and_shrink(lambda x, size, rng: 9.0 * sum(x) + rng.laplace(size=size), "eps=1", search, **options)
    (side,) = [side for side in result.side_findings if side.kind == "shrunk_pair"]
    assert side.status == "found" and side.details["rows_after"] is None
    assert len(json.loads(side.details["x"])) == len(json.loads(side.details["x_prime"])) == 4


def test_a_replaced_row_stays_one_replaced_row():
    def release(data, size, rng):  # sound but for the first row of 7; which rows are alike is of no matter
        return 9.0 * (data[0] == 7.0) + rng.laplace(size=size)

    broken = Pair([7.0, 0.125, 2.0], [0.125, 0.125, 2.0])
    small = shrink(release, "eps=1", broken, DatasetDomain((7.0, 0.125, 2.0), 4, "replace_one", 1), seed=SEED)
    assert len(small.pair.x) == 1 and small.pair.x == [7.0]


def test_a_user_keeps_all_rows_of_the_difference():
    frame = [{"user": "a", "n": 100}, {"user": "b", "n": 100}, {"user": "b", "n": 200}]
    domain = TableDomain.of_example(frame, user="user")
    rest = [frame[0]]
    assert domain.is_pair(frame, rest) and not domain.is_pair(frame, frame[:2]) and not domain.is_pair(frame, [])
    broken = Pair(frame, rest)
    small = shrink(lambda rows, size, rng: 9.0 * len(rows) + rng.laplace(size=size), "eps=1", broken, domain, seed=SEED)
    assert domain.is_pair(small.pair.x, small.pair.x_prime)


def test_frames_lose_rows_and_the_difference_is_said():
    frame = pd.DataFrame({"age": [20, 30, 40], "city": ["a", "b", "c"]})
    more = pd.concat([frame, pd.DataFrame({"age": [50], "city": ["c"]})], ignore_index=True)
    broken = Pair(frame, more)
    small = shrink(lambda df, size, rng: df["age"].sum() + rng.laplace(size=size), "eps=1", broken, seed=SEED)
    assert small.difference == "row 0 added: age=50, city='c'" and len(small.pair.x) == 0


def test_a_pair_that_is_not_broken_is_left_as_it_is():
    pair = Pair([1.0, 2.0], [1.0, 2.0, 0.5])
    same = shrink(lambda data, size, rng: len(data) + rng.laplace(size=size), "eps=1", pair, seed=SEED)
    assert same.pair is pair and same.steps == 0


def test_the_error_rate_is_shared_and_the_small_pair_has_a_seed_of_its_own(monkeypatch):
    asked = []
    real = dpaudit.search.shrinking.audit

    def audited(*arguments, **options):
        asked.append((options["confidence"], options["seed"]))
        return real(*arguments, **options)

    monkeypatch.setattr("dpaudit.search.shrinking.audit", audited)
    search = Search(DatasetDomain((0.0, 1.0, 7.0), largest=8), budget=4_000)
    options = {"seed": SEED, "samples": 4_000, "confidence": 0.95, "floating_point": False}
    result = audit_and_shrink(_outlier, "eps=1", search, **options)
    (side,) = [side for side in result.side_findings if side.kind == "shrunk_pair"]
    assert side.status == "found" and side.error_rate == pytest.approx(SHARE * 0.05)
    assert sum(1.0 - confidence for confidence, _ in asked) == pytest.approx(0.05)
    assert asked[0][1] == SEED and asked[1][1] != SEED


def test_a_sound_mechanism_is_not_shrunk():
    # P(violated) <= 0.045 by the audit; here the loss is 0.1 of a claim of 1, so that it is below 1e-9.
    search = Search(DatasetDomain.between(0.0, 1.0), budget=1_000)
    result = audit_and_shrink(
        lambda data, size, rng: len(data) + rng.laplace(scale=10.0, size=size),
        "eps=1",
        search,
        seed=SEED,
        samples=1_000,
    )
    assert result.verdict != "violated"
    assert not [side for side in result.side_findings if side.kind == "shrunk_pair"]


def test_arrays_become_plain():
    small = shrink(
        lambda x, size, rng: 10.0 * x[0] + rng.laplace(size=size),
        "eps=1",
        Pair(np.array([0.0, 3.7, 2.0]), np.array([1.0, 3.7, 2.5])),
        seed=SEED,
    )
    assert small.pair.x.tolist() == [0.0, 0.0, 0.0] and small.pair.x_prime.tolist() == [1.0, 0.0, 0.0]


def test_a_user_with_all_rows_is_one_change():
    frame = pd.DataFrame({"user": ["a", "b", "b"], "n": [1, 2, 3]})
    domain = TableDomain.of_example(frame, user="user")
    result = dpaudit.audit(
        lambda df, size, rng: len(df) + rng.laplace(size=size),
        "eps=1",
        Search(domain, budget=8_000),
        seed=SEED,
        samples=4_000,
        floating_point=False,
    )
    (broken, *_) = [finding for finding in result.findings if finding.verdict == "violated"]
    assert abs(len(broken.x) - len(broken.x_prime)) > 1
