"""The search for counterexamples: its log, its instances, and that it finds one where a statement is false."""

import json
from pathlib import Path

import counterexamples
import numpy as np
import pytest
from counterexamples import TARGETS, WITHOUT_INSTANCES, Target
from counterexamples import metric_queries as queries
from counterexamples import two_metrics as levels
from counterexamples.instances import gap, laws, over

from dpaudit_mechanisms import two_metrics
from dpaudit_mechanisms.ledger import entry, ledgers

LOG = Path(__file__).parents[2] / "reports" / "counterexamples.json"


def test_every_theorem_and_lemma_that_is_verified_is_searched_or_says_why_not():
    general = {
        e.id for ledger in ledgers() for e in ledger.entries if e.is_general and e.verdict.startswith("verified")
    }
    assert general == set(TARGETS) | set(WITHOUT_INSTANCES) and not set(TARGETS) & set(WITHOUT_INSTANCES)
    assert all(entry(claim).scope.startswith("Stated for") for claim in general)


def test_the_log_has_every_target_once_and_no_counterexample():
    logged = json.loads(LOG.read_text(encoding="utf-8"))
    assert [record["claim"] for record in logged["claims"]] == list(TARGETS)
    assert logged["without_instances"] == WITHOUT_INSTANCES
    for record in logged["claims"]:
        assert record["instances"] == TARGETS[record["claim"]].what
        assert record["tried"] >= 10_000 and record["closest"] <= 1.0 + counterexamples.ROUNDING
        assert not record["is_counterexample"]


def test_the_page_has_the_numbers_of_the_log():
    logged = json.loads(LOG.read_text(encoding="utf-8"))
    page = (LOG.parents[1] / "docs" / "measurements" / "counterexamples.md").read_text(encoding="utf-8")
    assert f"{sum(record['tried'] for record in logged['claims']):,} instances" in page
    for record in logged["claims"]:
        assert f"| {record['claim']} | {record['tried']:,} |" in page
    assert all(f"| {claim} | {why} |" in page for claim, why in WITHOUT_INSTANCES.items())


def test_the_logged_closest_calls_are_found_again_from_their_numbers():
    for record in json.loads(LOG.read_text(encoding="utf-8"))["claims"]:
        found = TARGETS[record["claim"]].quotient(np.array([record["numbers"]]))[0]
        assert found == pytest.approx(record["closest"], rel=1e-6, abs=1e-3)  # identities: rounding over 1e-9


@pytest.mark.parametrize("claim", TARGETS)
def test_a_batch_has_the_quotients_of_its_instances_one_by_one(claim):
    target = TARGETS[claim]
    batch = target.draw(40, np.random.default_rng(20_261_125))
    found = target.quotient(batch)
    assert found.shape == (40,) and (found >= 0.0).all() and (found <= 1.0 + counterexamples.ROUNDING).all()
    one_by_one = np.concatenate([target.quotient(row[None]) for row in batch])
    assert found == pytest.approx(one_by_one, rel=1e-6, abs=1e-3)  # identities: rounding over 1e-9


def test_levels_and_losses_of_instances_are_those_of_the_mechanisms():
    v = Target("", 56, over).draw(30, np.random.default_rng(20_261_126))
    s = levels.spaces(v)
    widths, important, penalty = 3.0 * v[:, 43:49], v[:, 49:55] > 0.5, 3.0 * v[:, 55]
    for n in np.flatnonzero(s.sensitivity > 0.0):
        names, f = np.unique(s.values[n], return_inverse=True)
        spaces = two_metrics.FiniteSpaces(s.dbar[n], f, s.d[n][np.ix_(names, names)], measure=s.masses[n][names])
        epsilon = levels.EPSILONS[min(int(3.0 * v[n, 42]), 2)]
        third = two_metrics.WidenedStaircase(
            spaces, epsilon, widths[n, names], important[n, names].tolist(), float(penalty[n])
        )
        for claim, mechanism, found in (
            ("UP-T1", two_metrics.Staircase(spaces, epsilon), levels.staircase_levels(s)),
            ("UP-T2", two_metrics.PrivacyFirst(spaces, epsilon), levels.privacy_first_levels(s)),
            ("UP-T4", two_metrics.WidenedStaircase(spaces, epsilon, widths[n, names]),
             levels.widened_staircase_levels(s, widths)),
            ("UP-T5", third, None),
        ):  # fmt: skip
            assert found is None or (found[n][:, names] == mechanism.levels).all()
            quotient = TARGETS[claim].quotient(v[[n], : TARGETS[claim].numbers])[0]
            assert quotient == pytest.approx(mechanism.epsilon_exact / (2.0 * epsilon), rel=1e-9)


def test_functions_of_instances_are_convex_lipschitz_and_in_the_unit_interval():
    ends, heights, slopes = queries.convex(Target("", 18, over).draw(200, np.random.default_rng(20_261_127)))
    assert (np.diff(slopes, axis=1) >= 0.0).all() and (np.abs(slopes) <= 1.0).all()
    assert heights.min() >= -1e-12 and heights.max() <= 1.0 + 1e-12
    assert np.diff(heights, axis=1) == pytest.approx(slopes * np.diff(ends, axis=1), abs=1e-12)


@pytest.mark.parametrize("claim", ["CD-T3.9.2", "UP-T2", "DX-T1", "DC-P3.1.i", "MQ-L4"])
def test_a_false_statement_is_refuted(claim):
    """The control: 0.55 of the bound; one batch reaches more of every one of these."""
    target = TARGETS[claim]
    false = Target(target.what, target.numbers, lambda v: target.quotient(v) / 0.55)
    record = counterexamples.search(claim, 0.3, np.random.default_rng(1), {claim: false})
    assert record["is_counterexample"] and record["closest"] > 1.0 and record["tried"] >= 512


def test_a_false_identity_and_an_undefined_quotient_are_refuted():
    """The control for identities: a mixture of two conditional laws with equal weights; and what is no number."""

    def equal_weights(v):
        p = laws(v, 1)[:, 0]
        one, two = p[:, :2].sum(axis=1), p[:, 2:4].sum(axis=1)
        return gap(p[:, 0] / (one + two), 0.5 * p[:, 0] / one)

    for quotient in (equal_weights, lambda v: np.full(len(v), np.nan)):
        record = counterexamples.search("false", 0.0, np.random.default_rng(1), {"false": Target("", 5, quotient)})
        assert record["is_counterexample"]
