"""Audits from scores: verdicts, designs, what is refused, coverage, and the tightness against what others print."""

import itertools
import math

import numpy as np
import printed_estimator
import pytest
import simulated_audits
from scipy import special, stats

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.privacy.neighbours import NeighbourClaim
from dpaudit.privacy.trade_off import FDP
from dpaudit.scores.auditing import claimed_trade_off
from dpaudit.scores.bets import ScoreBets, labelled
from dpaudit.scores.guesses import RankedLabels, Rule, ordered, ordered_pairs
from dpaudit.scores.planning import plan_one_run


def canaries(count, shift, seed):
    rng = np.random.default_rng(seed)
    is_in = rng.integers(0, 2, count) == 1
    scores = rng.normal(size=count) + shift * is_in
    return scores[is_in], scores[~is_in]


@pytest.mark.parametrize("claim", ["eps=1,delta=1e-5", "eps=1", "mu=0.3", "rho=0.1"])
def test_scores_far_apart_refute_a_claim_in_one_run(claim):
    result = dpaudit.audit_scores(*canaries(2_000, 6.0, 1), claim=claim, design="one-run", seed=1)
    assert result.verdict == "violated"
    assert result.parameter_lower > result.budget
    assert result.parameter_ceiling >= result.parameter_lower and result.ceiling >= result.epsilon_lower


def test_no_bound_is_given_by_scores_that_tell_nothing():
    # equal laws: at 95% the bound of either design is 0 in 19 of 20 seeds at least; this seed is one of them
    for design in ("one-run", "many-runs"):
        result = dpaudit.audit_scores(*canaries(1_000, 0.0, 2), claim="eps=1", design=design, seed=2)
        assert (result.verdict, result.epsilon_lower) == ("not_refuted", 0.0)


def test_the_ceiling_decides_between_not_refuted_and_inconclusive():
    scores = canaries(200, 8.0, 3)
    assert dpaudit.audit_scores(*scores, claim="eps=8,delta=1e-5", seed=3).verdict == "inconclusive"
    equal = canaries(200, 0.0, 3)
    assert dpaudit.audit_scores(*equal, claim="eps=2,delta=1e-5", seed=3).verdict == "not_refuted"
    # 200 canaries, all right, three numbers of guesses (4 would be too few): q^200 = (0.05 / 3 - delta) / (1 - delta)
    expected = special.logit(((0.05 / 3.0 - 1e-5) / (1.0 - 1e-5)) ** (1.0 / 200.0))
    assert dpaudit.audit_scores(*equal, claim="eps=2,delta=1e-5", seed=3).ceiling == pytest.approx(expected, rel=1e-4)


def test_the_same_seed_gives_the_same_result_and_files_give_what_arrays_do(tmp_path):
    scores_in, scores_out = canaries(500, 2.0, 4)
    np.save(tmp_path / "in.npy", scores_in)
    (tmp_path / "out.csv").write_text("loss,score\n" + "".join(f"0,{value!r}\n" for value in scores_out.tolist()))
    first = dpaudit.audit_scores(scores_in, scores_out, claim="mu=1", seed=5)
    again = dpaudit.audit_scores(str(tmp_path / "in.npy"), f"{tmp_path / 'out.csv'}:score", claim="mu=1", seed=5)
    assert {**first.to_dict(), "seconds": 0} == {**again.to_dict(), "seconds": 0}


def test_a_result_is_saved_and_loaded_and_follows_its_schema(tmp_path):
    import json
    from importlib import resources

    jsonschema = pytest.importorskip("jsonschema", reason="needs jsonschema")
    schema = json.loads(resources.files("dpaudit").joinpath("schemas/scores-1.json").read_text())
    for design in ("one-run", "sequential"):
        result = dpaudit.audit_scores(*canaries(120, 3.0, 6), claim="mu=1", design=design, seed=6)
        result.save(tmp_path / "scores.json")
        assert dpaudit.load_scores(tmp_path / "scores.json") == result
        record = json.loads((tmp_path / "scores.json").read_text())
        jsonschema.validate(record, schema)
    (tmp_path / "scores.json").write_text(json.dumps({**record, "verdict": "inconclusive"}))
    with pytest.raises(UsageError, match=f"verdict must be that of the bounds, '{result.verdict}', got 'inconcl"):
        dpaudit.load_scores(tmp_path / "scores.json")


@pytest.mark.parametrize("arguments, message", [
    ({"scores_in": [], "scores_out": []}, "scores must have at least one canary, got none"),
    ({"scores_in": [0.0] * 100, "scores_out": [0.0] * 900}, "half of the canaries, as fair coins give, got 100 of"),
    ({"scores_in": [1.0, "x"]}, "scores_in must be numbers, got 'x'"),
    ({"scores_in": [[1.0, 2.0], [3.0, 4.0]]}, r"scores_in must be one list of numbers, got shape \(2, 2\)"),
    ({"scores_in": "missing.csv"}, "scores_in must be a readable file, got 'missing.csv'"),
    ({"scores_in": "scores.xls"}, "scores_in must be a file that ends in .csv"),
    ({"design": "one_run"}, "one of one-run, many-runs, sequential, paired, got 'one_run'. Did you mean 'one-run'"),
    ({"design": "paired", "scores_out": [1.0]}, "scores_out must have one score a pair, got 1 for 3"),
    ({"design": "many-runs", "scores_out": []}, "scores_out must have at least one score, got none"),
    ({"design": "many-runs", "guesses": 3}, "guesses must be of one run, got 3"),
    ({"guesses": 7}, "guesses must be an integer from 1 to the number of canaries, 6, got 7"),
    ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
    ({"claim": "eps=inf"}, "claim must promise something, got eps=inf"),
])  # fmt: skip
def test_what_makes_no_sense_gets_one_message(arguments, message):
    stated = {"scores_in": [1.0, 2.0, 3.0], "scores_out": [0.0, 1.0, 2.0], "claim": "eps=1", "seed": 1, **arguments}
    with pytest.raises(UsageError, match=message):
        dpaudit.audit_scores(**stated)


def test_a_canary_is_one_step_of_the_relation_of_a_claim():
    result = dpaudit.audit_scores(*canaries(40, 6.0, 1), claim="eps=1,adjacency=add_remove", design="one-run", seed=1)
    assert (result.claim, result.budget) == ("eps=1", 1.0) and result.epsilon_lower == result.parameter_lower
    stated = NeighbourClaim(dpaudit.PureDP(1.0), "add_remove")
    assert plan_one_run(stated).needed == 10  # 0.05 > (e / (1 + e))^m from m = 10 on


def test_a_pair_is_as_many_steps_of_the_relation_of_a_claim_as_replace_one_canary():
    # Adding or removing a record has a loss of at most 0.75, so that replacing one has 1.5: kept under add_remove, and
    # a violation under replace_one. Right guesses of 3,000 are 9 deviations from both limits: rates below 1e-18.
    is_right = np.random.default_rng(3).random(3_000) < math.exp(1.5) / (1.0 + math.exp(1.5))
    sides = is_right.astype(float), 1.0 - is_right
    verdicts = {}
    for relation in ("add_remove", "replace_one"):
        result = dpaudit.audit_scores(*sides, f"eps=1,adjacency={relation}", "paired", seed=1, guesses=3_000)
        verdicts[relation] = result.verdict, result.claim
    assert verdicts == {"add_remove": ("not_refuted", "eps=2"), "replace_one": ("violated", "eps=1")}
    with pytest.raises(UsageError, match="pairs must be joined by steps of adjacency=replace_one"):
        dpaudit.audit_scores(*sides, "eps=1,adjacency=replace_one", "one-run", seed=1)
    two = FDP(add=[(0.0, 0.5), (0.5, 0.0), (1.0, 0.0)], remove=[(0.0, 0.5), (0.5, 0.0), (1.0, 0.0)])
    with pytest.raises(UsageError, match="of which one has one more record"):
        dpaudit.audit_scores(*sides, two, "paired", seed=1)


def test_a_huge_epsilon_promises_a_trade_off_that_is_a_number():
    # f(0) = 1 of every pure claim; e^800 is no double, and times 0 it was none either
    assert claimed_trade_off(dpaudit.PureDP(800.0), np.array([0.0, 0.1])) == pytest.approx([1.0, 0.0], abs=1e-300)
    assert claimed_trade_off(dpaudit.ApproxDP(800.0, 0.1), np.zeros(1)) == pytest.approx([0.9], abs=1e-12)


def test_nan_is_below_everything_and_infinities_are_the_ends():
    found = ordered(np.array([np.nan, 1.0, np.inf, -np.inf]), np.array([0, 1, 2, 3]), np.random.default_rng(1))
    assert found.labels.tolist() == [2, 1, 3, 0]
    inf, nan = np.inf, np.nan
    pairs = ordered_pairs(np.array([0.0, inf, nan, 5.0]), np.array([1.0, 0.0, 0.0, nan]), np.random.default_rng(1))
    assert len(pairs) == 4 and pairs.labels[-1] == 0  # the smallest difference, 1, is the wrong way round
    assert pairs.labels[:3].sum() == 2  # inf over 0 and 5 over nan are right, nan under 0 is wrong


def test_rules_count_what_they_say():
    found = RankedLabels(np.array([1, 1, 0, 1, 0, 0]), in_pairs=False)
    assert [found.correct(Rule(count)) for count in (6, 3, 2, 1)] == [4, 3, 2, 1]
    assert RankedLabels(found.labels, in_pairs=True).correct(Rule(4, in_pairs=True)) == 3


def test_a_training_without_noise_is_rejected_within_60_scores():
    # scores without any noise: at most 60 labelled scores in each of 200 orders of the coins
    claim = dpaudit.PureDP(1.0)
    used = []
    for seed in range(200):
        rng = np.random.default_rng(np.random.SeedSequence(9, spawn_key=(seed,)))
        used.append(ScoreBets(*labelled(np.ones(60), np.zeros(60), rng), claim).decided_at(0.05) or math.inf)
    assert max(used) <= 60
    assert np.median(used) <= 30


def test_bets_decide_and_bound_many_runs():
    rng = np.random.default_rng(10)
    result = dpaudit.audit_scores(rng.normal(2.0, 1.0, 400), rng.normal(size=400), "eps=0.5", "many-runs", seed=10)
    assert result.verdict == "violated" and result.decided_after < 200
    assert all(point.thresholds_lower <= point.upper for point in result.trade_off)
    assert any(point.upper < point.claimed for point in result.trade_off)


def sorted_audits(design, seeds):
    """Audits of equal laws, both columns sorted, at 95%: how many are violations."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        scores = np.sort(rng.normal(size=(2, 300)), axis=1)
        found.append(dpaudit.audit_scores(*scores, "eps=0.1", design, seed=seed).verdict)
    return found.count("violated")


def test_sorted_files_of_many_runs_give_no_false_violation():
    """Bets on sorted columns in their own order were "violated" in 8 of 40. At 5%, P(7 or more) = 0.4%; at 1%, 1e-7."""
    assert sorted_audits("many-runs", range(40)) < 7
    rng = np.random.default_rng(1)
    scores = np.sort(rng.normal(size=300)), rng.normal(size=300)
    notes = dpaudit.audit_scores(*scores, "eps=1", "many-runs", seed=1).notes
    assert next(note for note in notes if "sorted" in note).startswith("scores_in: the scores are sorted")


@pytest.mark.parametrize("arrange", [
    np.sort,
    lambda scores: np.sort(scores)[::-1],
    lambda scores: np.sort(scores.reshape(10, -1), axis=1).ravel(),  # ten files, each sorted
    lambda scores: np.sort(scores.round()),  # with many ties
])  # fmt: skip
def test_a_sequential_audit_refuses_scores_that_are_not_in_the_order_of_the_runs(arrange):
    rng = np.random.default_rng(12)
    scores = rng.normal(size=100), arrange(rng.normal(size=100))
    with pytest.raises(UsageError, match="scores_out must be in the order of the runs, got a column that is arranged"):
        dpaudit.audit_scores(*scores, "eps=1", "sequential")


def test_pairs_whose_columns_are_both_sorted_are_refused():
    with pytest.raises(UsageError, match="scores_out must be in the order of the pairs, got two sorted columns"):
        sorted_audits("paired", [0])
    rng = np.random.default_rng(13)
    pairs = np.sort(rng.normal(size=(2, 100)), axis=1)[:, rng.permutation(100)]  # rows kept, in another order
    assert dpaudit.audit_scores(*pairs, "eps=1", "paired", seed=1).verdict


def test_a_sequential_audit_decides_as_scores_come_and_later_looks_agree():
    rng = np.random.default_rng(14)
    scores_in, scores_out = rng.normal(2.0, 1.0, 300), rng.normal(size=300)
    found = [dpaudit.audit_scores(scores_in[:n], scores_out[:n], "eps=0.5", "sequential") for n in (20, 60, 150, 300)]
    assert [result.seed for result in found] == [0] * 4
    assert (found[0].verdict, found[-1].verdict) == ("inconclusive", "violated") or found[0].verdict == "not_refuted"
    decided = [result.decided_after for result in found if result.decided_after is not None]
    assert len(decided) >= 2 and len(set(decided[1:])) == 1  # once decided, the same at every later look
    courses = [
        ScoreBets(*labelled(scores_in[:n], scores_out[:n], np.random.default_rng(0)), dpaudit.PureDP(0.5))
        for n in (99, 103, 300)
    ]
    for short, long in itertools.pairwise(courses):  # at any number of scores, not at ends of blocks alone
        for value in (0.3, 0.5, 1.0):
            some, all_of_them = short.log_wealth(value), long.log_wealth(value)
            assert all_of_them[: len(some)] == pytest.approx(some)
    bounds = [result.parameter_lower for result in found]
    assert bounds == sorted(bounds)  # nothing that was found is lost
    upper = np.array([[point.upper for point in result.trade_off] for result in found])
    assert np.all(np.diff(upper, axis=0) <= 1e-15)


def test_the_plan_says_how_many_canaries_a_claim_needs():
    plan = plan_one_run(dpaudit.ApproxDP(4.0, 1e-6))
    needed = int(plan.needed)
    # perfect guesses on m canaries refute epsilon where t = q^m has (0.05 - t) / (1 - t) >= delta
    accuracy = special.expit(4.0)
    assert (0.05 - accuracy**needed) / (1 - accuracy**needed) >= 1e-6
    assert (0.05 - accuracy ** (needed - 1)) / (1 - accuracy ** (needed - 1)) < 1e-6
    assert [run.ceiling > 4.0 for run in plan.runs] == [run.canaries >= needed for run in plan.runs]


# --- coverage and tightness -------------------------------------------------------------------------------------------

AUDITS = 50  # of each of 11 cases; P(Binomial(550, 0.05) >= 60) = 6e-8 were all exactly at 5%


def test_bounds_lie_above_the_truth_in_at_most_5_percent_of_audits():
    errors = sum(count for _, count in simulated_audits.error_rates(AUDITS, seed=20_261_125))
    trials = AUDITS * len(simulated_audits.cases())
    assert stats.binom.sf(59, trials, 0.05) < 2e-7
    assert errors < 60


def test_estimators_that_do_not_pay_for_what_they_look_at_are_found_out():
    rng = np.random.default_rng(20_261_125)
    for name, estimator in simulated_audits.INVALID.items():
        errors = sum(estimator(rng) for _ in range(200))
        assert stats.binom.sf(errors - 1, 200, 0.05) < 1e-3, name  # an exact test of 5% rejects


@pytest.mark.long
def test_each_case_errs_in_at_most_5_percent_of_1000_audits():
    for name, count in simulated_audits.error_rates(1_000, seed=20_261_130):
        assert stats.binom.sf(count - 1, 1_000, 0.05) > 1e-7, name


@pytest.mark.slow
def test_bounds_of_one_run_are_above_the_printed_estimator_in_the_mean():
    # 20 sets of 100 scores each at mu 1 and 2; over 40 sets the means were 0.265 and 0.741 against 0.182 and 0.569
    for mu in (1.0, 2.0):
        theirs, ours, _ = printed_estimator.compare(mu, 100, 20, seed=20_261_125)
        assert ours.mean() >= theirs.mean()


def test_an_audit_is_not_another_attempt_each_time_that_it_is_made():
    rng = np.random.default_rng(0)
    scores = rng.laplace(size=(2, 60)) + np.array([[0.8], [0.0]])
    for design in ("one-run", "many-runs", "paired"):
        bounds = {dpaudit.audit_scores(*scores, claim="eps=1", design=design).epsilon_lower for _ in range(3)}
        assert len(bounds) == 1, design


def test_one_file_for_both_sides_is_refused(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(map(str, range(400))))
    with pytest.raises(UsageError, match="scores_out must be other scores than scores_in, got the same: "):
        dpaudit.audit_scores(str(path), str(path), claim="eps=1", design="one-run", seed=1)
    scores = np.arange(400.0)
    with pytest.raises(UsageError, match="got the same"):
        dpaudit.audit_scores(scores, scores, claim="eps=1", design="one-run", seed=1)
