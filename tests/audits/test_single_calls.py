"""Calls for one output each behind a violation: their bets, what they withhold, and what is said without them."""

import dataclasses
import math
import types

import numpy as np
import pytest
from scipy import stats
from support.samplers import one_by_one, released
from support.shared_calls import FORMS, TRUTH, answer

import dpaudit
from dpaudit.audits import single_calls, stages
from dpaudit.audits.single_calls import MANY, REFUSED, SIZES, SLOW, STORED, WHAT, SingleCalls
from dpaudit.campaign.draws import Draws
from dpaudit.inference.exact import GuessCounter
from dpaudit.inference.guess_rules import GuessRule
from dpaudit.inference.learning_state import LearningState
from dpaudit.inference.pools import Pool
from dpaudit.inference.tables import MIDDLES, N_BINS, Predicted
from dpaudit.inference.tasks import TaskResult
from dpaudit.privacy.claims import PureDP

LEVEL, COUNTED = 0.05, 2_600  # labelled draws that a fixed audit of 2,000 samples counts
GUESSES = {1: 2, 0: 0}  # the bin in which a label is guessed


def audited(mechanism, pairs=((0.0, 1.0),), **options):
    options = {"samples": 2_000, "mode": "fixed", "floating_point": False, "severity": False, **options}
    return dpaudit.audit(mechanism, "eps=1", list(pairs), **options)


def looked(right, truth, rng, guesses=COUNTED):
    """The second look at a rule that was right in so many guesses and is so with probability `truth`."""
    table = LearningState()
    table.open(GuessCounter(None), Predicted(MIDDLES, np.full(N_BINS, 1.0 / N_BINS)))
    for label in (0, 1):
        table.rounds[0].counts[label, [GUESSES[label], GUESSES[1 - label]]] = right // 2, (guesses - right) // 2
    main = types.SimpleNamespace(rule=GuessRule(2, 1, 0, 0.0), table=table)
    game = types.SimpleNamespace(
        main=main, claim=PureDP(1.0), level=LEVEL, uses=[(1.0, main)], pool=Pool.single((0, 1))
    )

    def draw(tasks):
        results = []
        for task in tasks:
            counts, label = np.zeros(N_BINS, dtype=np.int64), 1 - task.input
            counts[GUESSES[label]] = rng.binomial(task.requests[0].quota, truth)
            counts[GUESSES[1 - label]] = task.requests[0].quota - counts[GUESSES[label]]
            results.append(TaskResult((counts,), None))
        return results

    look = SingleCalls(Draws(draw, calls=True), game, SIZES.times_of_counted * guesses, rng)
    while look.round():
        pass
    return look


def right_with(loss):
    return 1.0 / (1.0 + math.exp(-loss))


@pytest.mark.parametrize("loss", [1.06, *(pytest.param(loss, marks=pytest.mark.slow) for loss in (1.03, 1.1, 1.3))])
def test_true_violations_are_withheld_in_few_audits(loss):
    """Proven at 1e-4 where found at most twice too large; here luck is in it. Of 0.1%, more than 7 of 600 have 1e-6."""
    rng = np.random.default_rng(7)
    withheld = stands = 0
    for _ in range(600):
        right = int(rng.binomial(COUNTED, right_with(loss)))
        if stats.binom.sf(right - 1, COUNTED, TRUTH) <= LEVEL:
            look = looked(right, right_with(loss), rng)
            withheld, stands = withheld + look.is_contradicted, stands + look.is_supported
    assert withheld <= stats.binom.isf(1e-6, 600, 0.001)
    assert loss < 1.3 or stands > 500  # of 600, all but about none are found


def sequential_finds(truth, most, audits, rng):
    """Right guesses and guesses at which a mixture of bets has won 1 / level, of the audits where it does."""
    above = np.geomspace(0.004, 0.2, 20)[:, None]  # of the rate of right guesses that the claim allows
    won, lost = np.log1p(above / TRUTH), np.log1p(-above / (1.0 - TRUTH))
    right, guesses, found = np.zeros(audits, dtype=int), 0, {}
    while guesses < most:
        size = max(16, int(0.02 * guesses))
        right, guesses = right + rng.binomial(size, truth, size=audits), guesses + size
        wealth = np.logaddexp.reduce(right * won + (guesses - right) * lost, axis=0) - math.log(len(above))
        for k in np.flatnonzero(wealth >= -math.log(LEVEL)).tolist():
            found.setdefault(k, (int(right[k]), guesses))
    return list(found.values())


@pytest.mark.parametrize("loss", [1.03, *(pytest.param(loss, marks=pytest.mark.slow) for loss in (1.05, 1.08))])
def test_sequential_audits_that_end_by_luck_withhold_few_true_violations(loss):
    """As a sequential audit ends, what it has found is larger than it is. Of 0.1%, more than 17 of 4,000 have 1e-6."""
    audits, rng = 4_000, np.random.default_rng(9)
    found = sequential_finds(right_with(loss), 4_000, audits, rng)
    withheld = sum(looked(right, right_with(loss), rng, of).is_contradicted for right, of in found)
    assert withheld <= stats.binom.isf(1e-6, audits, 0.001)


@pytest.mark.parametrize("right", [COUNTED, 2_200, pytest.param(1_980, marks=pytest.mark.slow)])
def test_what_keeps_its_claim_is_supported_at_most_at_the_level(right):
    """Whatever larger calls showed: more than 5% of 300, with 1e-6, are 36. What was clear there is contradicted."""
    rng = np.random.default_rng(8)
    looks = [looked(right, TRUTH, rng) for _ in range(300)]
    assert sum(look.is_supported for look in looks) <= stats.binom.isf(1e-6, 300, LEVEL)
    assert right < 2_200 or sum(look.is_contradicted for look in looks) >= 270
    assert max(look.calls for look in looks) <= 4 * COUNTED


# The first seeds at which larger calls alone were a violation.
FOUND = {"answer": (1, 4), "member": (1, 4), "dither": (2, 5)}


@pytest.mark.parametrize(("form", "seed"), [(form, seed) for form, seeds in FOUND.items() for seed in seeds])
def test_what_a_call_shares_in_few_outputs_is_no_violation(form, seed, monkeypatch):
    result = audited(FORMS[form], seed=seed)
    assert result.verdict == "inconclusive" and result.findings[0].parameter_lower == 0.0
    assert result.findings[0].notes[0].startswith("Outputs of one call seem to depend on each other")
    assert result.findings[0].witness is None and result.findings[0].power is None
    monkeypatch.setattr(stages.SecondLook, "is_asked", lambda self, run: False)
    assert audited(FORMS[form], seed=seed).verdict == "violated"


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_sound_mechanisms_whose_calls_share_something_are_rarely_violated(form):
    """13 of 60 were, of each. Those that stand are supported, in at most 5% of these, or open: 4 of 180 were."""
    violated = sum(audited(FORMS[form], seed=seed).verdict == "violated" for seed in range(30))
    assert violated <= 3  # of 30: 4 or more have a probability of 0.06 at a rate of 5%, and 0.9 at the 22% without


def test_a_violation_that_stands_says_what_calls_for_one_output_show():
    result = audited(released, seed=1)
    (note,) = (note for note in result.findings[0].notes if "asked for one output each" in note)
    calls = int(note.split()[0].replace(",", ""))
    assert result.verdict == "violated" and "support it by themselves" in note
    assert SIZES.first <= calls <= 64 and result.samples >= result.findings[0].samples + calls


def test_where_a_draw_is_a_call_nothing_is_asked(monkeypatch):
    monkeypatch.setattr(single_calls, "look_again", lambda run, places: pytest.fail("asked again"))
    result = dpaudit.audit(one_by_one, "eps=0.1", [(0.0, 1.0)], samples=2_000, seed=1, floating_point=False)
    assert result.verdict == "violated"


def squeezed(x, size, rng):
    return np.squeeze(released(x, size, rng))


def at_least_two(x, size, rng):
    if size < 2:
        raise ValueError("at least two")
    return released(x, size, rng)


@pytest.mark.parametrize("mechanism", [squeezed, at_least_two])
def test_where_calls_for_one_output_are_refused_the_violation_stands(mechanism):
    result = audited(mechanism, seed=1)
    assert result.verdict == "violated" and REFUSED in result.findings[0].notes


def test_where_the_time_for_them_is_over_the_violation_stands(monkeypatch):
    monkeypatch.setattr(single_calls, "SIZES", dataclasses.replace(SIZES, max_seconds=0.0))
    result = audited(answer, seed=FOUND["answer"][0])
    assert result.verdict == "violated" and SLOW in result.findings[0].notes


def test_where_the_time_of_the_audit_is_over_it_is_said_once(monkeypatch):
    monkeypatch.setattr(stages, "is_time_over", lambda: True)
    result = audited(released, seed=1)
    (cut,) = (finding for finding in result.side_findings if finding.kind == "time_limit")
    assert WHAT in cut.summary and SLOW in result.findings[0].notes and result.verdict == "violated"


def test_at_the_limit_of_calls_the_violation_stands(monkeypatch):
    monkeypatch.setattr(single_calls, "SIZES", dataclasses.replace(SIZES, max_calls=SIZES.first, first=8, against=1e99))
    result = audited(answer, seed=FOUND["answer"][0])
    assert result.verdict == "violated" and any("They do not settle" in note for note in result.findings[0].notes)


def test_of_many_violated_pairs_the_clearest_are_asked(monkeypatch):
    monkeypatch.setattr(single_calls, "STAGE_PAIRS", 1)
    result = audited(released, [(0.0, 1.0), (0.0, 2.0)], seed=1)
    notes = [finding.notes for finding in result.findings]
    assert result.verdict == "violated" and sum(MANY in each for each in notes) == 1


def test_where_calls_share_something_nothing_is_said_of_other_pairs_and_stages():
    def of_parity(x, size, rng):  # the second pair has one law
        return answer(x % 2.0, size, rng)

    result = audited(of_parity, [(0.0, 1.0), (2.0, 4.0)], seed=1, floating_point=True, band=True)
    assert [finding.verdict for finding in result.findings] == ["inconclusive"] * 2
    assert result.floating_point.message == stages.DEPEND and result.trade_off.reason


def test_a_supported_pair_stands_beside_one_that_is_contradicted():
    def mixed(x, size, rng):  # of 0 and 1 the answer is shared; 5 and 6 are told
        return answer(x, size, rng) if x < 2.0 else released(x, size, rng)

    result = audited(mixed, [(0.0, 1.0), (5.0, 6.0)], seed=1)
    shared, told = result.findings
    assert shared.verdict == "inconclusive" and told.verdict == "violated"
    assert told.severity is None and told.parameter_lower == pytest.approx(1.0, abs=1e-6)


def test_the_same_seed_gives_the_same_result_in_any_number_of_workers_and_from_a_checkpoint(tmp_path):
    path = tmp_path / "notes"
    seed = FOUND["answer"][0]
    first = audited(answer, seed=seed, checkpoint=path)
    for again in (audited(answer, seed=seed, checkpoint=path, resume=True), audited(answer, seed=seed, jobs=2)):
        assert again.findings == first.findings and again.samples == first.samples


def test_a_session_of_a_store_says_that_it_makes_none(tmp_path):
    """Before, its violation stood without a word, where an audit without the store names its calls."""
    stored, alone = (
        audited(released, mode="sequential", seed=1, **options) for options in ({"store": str(tmp_path / "s.db")}, {})
    )
    assert stored.verdict == alone.verdict == "violated"
    assert STORED in stored.findings[0].notes and STORED not in alone.findings[0].notes
    assert stored.samples < alone.samples
