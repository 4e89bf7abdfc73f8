"""Audits of published tables: a memorising generator is found, generators that keep a claim are not."""

import numpy as np
import pytest
from scipy import stats

from dpaudit.errors import UsageError
from dpaudit.scores import published
from dpaudit.scores.published import audit_published
from dpaudit_mechanisms.learning.marginals import ChainGenerator

ROWS = 500  # real, and as many in the holdout


def people(size, rng):
    """Rows of two numbers and two categories, which depend on each other."""
    age, group = rng.gamma(4.0, 10.0, size), rng.integers(0, 5, size)
    income = 100.0 * age + 2_000.0 * group + 500.0 * rng.normal(size=size)
    town = np.array(list("abcdefgh"))[(group + rng.integers(0, 3, size)) % 8]
    return [
        list(row) for row in zip(age.tolist(), income.tolist(), [f"g{g}" for g in group], town.tolist(), strict=True)
    ]


def independent_marginals(rows, rng):
    """Every column resampled by itself."""
    columns = [
        [column[k] for k in rng.integers(0, len(column), len(column))] for column in map(list, zip(*rows, strict=True))
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def partly_copied(share):
    def release(rows, rng):
        fresh = people(len(rows), rng)
        return [row if rng.random() < share else new for row, new in zip(rows, fresh, strict=True)]

    return release


@pytest.mark.parametrize("share", [1.0, 0.5, 0.2])
def test_a_generator_that_copies_rows_is_found_at_1000_rows(share):
    rng = np.random.default_rng(1)
    real, holdout = people(ROWS, rng), people(ROWS, rng)
    result = audit_published(partly_copied(share)(real, rng), real, holdout, "eps=1")
    assert result.verdict == "violated" and result.parameter_lower > 1.5
    assert any("two attacks (nearest row, pairs of values)" in note for note in result.notes)
    assert result.independent.parameter_lower > 1.5 and result.independent.p_value is None
    assert sum(record.share for record in result.guesses) == pytest.approx(0.5) and result.confidence == 0.95


@pytest.mark.parametrize("confidence", [0.0, -0.5])
def test_a_confidence_out_of_range_is_refused_though_half_of_its_error_rate_is_one(confidence):
    rows = [[0.0], [1.0]]
    with pytest.raises(UsageError, match=rf"confidence must be in \(0, 1\), got {confidence}"):
        audit_published(rows, rows, rows, "eps=1", confidence=confidence)


def test_tables_that_know_nothing_of_the_real_rows_are_refuted_in_at_most_5_percent_of_audits():
    """Fresh rows of the same law, at the claim epsilon = 0.01: P(Binomial(60, 0.05) >= 15) = 3e-7."""
    assert stats.binom.sf(14, 60, 0.05) < 1e-6
    refuted = 0
    for seed in range(60):
        rng = np.random.default_rng([2, seed])
        result = audit_published(people(100, rng), people(100, rng), people(130, rng), "eps=0.01", assume="independent")
        refuted += result.verdict == "violated"
    assert refuted < 15


def test_the_two_attacks_share_the_error_rate(monkeypatch):
    asked, audit = [], published.audit_scores
    monkeypatch.setattr(
        published, "audit_scores", lambda *given, **more: asked.append(given[4]) or audit(*given, **more)
    )
    rng = np.random.default_rng(7)
    audit_published(people(50, rng), people(50, rng), people(50, rng), "eps=1", confidence=0.9)
    assert asked == pytest.approx([0.95, 0.95])


def test_independent_marginals_are_not_refuted():
    """Resampled columns tell so little of a row that a bound of eps = 1 is far (6 seeds had 0.07 at most)."""
    rng = np.random.default_rng(3)
    real, holdout = people(ROWS, rng), people(ROWS, rng)
    assert audit_published(independent_marginals(real, rng), real, holdout, "eps=1").verdict == "not_refuted"


def test_a_chain_of_noisy_marginals_keeps_its_claim():
    """The reference generator with its promise; a false alarm has probability 5%, this seed is none."""
    rng = np.random.default_rng(4)
    chain = ChainGenerator(1.0)
    data = rng.integers(0, 2, (800, 3))
    rows = np.repeat(list(np.ndindex(2, 2, 2)), chain.sample(data[:400], 1, rng)[0].ravel(), axis=0)
    result = audit_published(rows.tolist(), data[:400].tolist(), data[400:].tolist(), f"mu={2.0 * chain.claim.mu}")
    assert result.verdict != "violated"  # replacing a record is two changes


def test_the_order_of_a_table_says_nothing():
    """Sorted real rows and a shuffled holdout: places are drawn."""
    rng = np.random.default_rng(5)
    real, holdout = sorted(people(200, rng)), people(200, rng)
    assert audit_published(people(200, rng), real, holdout, "eps=0.5").verdict == "not_refuted"
