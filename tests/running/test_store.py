"""The evidence store: what a session adds, and what neither another writer nor a kill nor a full disk can take away."""

import asyncio
import dataclasses
import math
import os
import resource
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from support.samplers import laplace, response

import dpaudit
from dpaudit.inference.order import Change
from dpaudit.inference.saved import counted
from dpaudit.reports.brief import finding_facts
from dpaudit.running import label_games
from dpaudit.running.store import Store, StoreError, _write

PAIRS = [(0, 1)]


def leaking(data, size, rng):
    """Of loss 1.5."""
    return np.where(rng.random(size) < 1.0 / (1.0 + math.exp(-1.5)), data, 1 - data)


def session_of(store, mechanism=response, pairs=PAIRS, seed=1, samples=100, claim="eps=1", **options):
    return dpaudit.audit(
        mechanism, claim, pairs, samples=samples, seed=seed, store=store, floating_point=False, **options
    )


def once(play):
    """A function for `on_progress` that plays once, and what it played."""
    played = []

    def beside(progress):
        if not played:
            played.append(None)
            played[0] = play()

    return {"on_progress": beside}, played


def subjects_of(path):
    with Store.at(path, create=False) as store:
        return store.subjects()


def only_pair(path):
    (subject,) = subjects_of(path)
    (pair,) = subject["pairs"]
    return pair


def sessions_of(pair):
    """The streams of those whose draws are counted."""
    return {session for one in pair.state["uses"][0]["table"]["rounds"] for session in one["counts"]}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "evidence.db"


def check_whole(path):
    """The file is intact, and every state holds as many draws as it says."""
    connection = sqlite3.connect(path)
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()
    for subject in subjects_of(path):
        for pair in subject["pairs"]:
            assert counted(pair.state) == pair.labelled


# --- from session to session ---


def test_each_session_goes_on_where_the_last_one_stopped(path):
    results = [session_of(path) for _ in range(3)]
    assert [result.options["night"] for result in results] == [1, 2, 3]
    shown = [dict(finding_facts(result, result.findings[0]))["store"] for result in results]
    assert [text[: len("session 1 of")] for text in shown] == ["session 1 of", "session 2 of", "session 3 of"]
    assert [result.options["went_on"] for result in results] == [False, True, True]
    assert [result.options["stream"] for result in results] == ["1/0", "1/1", "1/2"]
    assert [result.findings[0].samples for result in results] == [200, 376, 576]  # 24 of the first are the pilot's
    assert [result.samples for result in results] == pytest.approx([200] * 3, abs=20)
    assert only_pair(path).labelled == 576
    assert only_pair(path).log_wealth == results[-1].findings[0].log_wealth
    (subject,) = subjects_of(path)
    assert [(session["status"], session["seed"], session["number"]) for session in subject["nights"]] == [
        ("finished", "1", number) for number in range(3)
    ]
    assert [look["labelled"] for look in subject["looks"]] == [176, 376, 576]
    check_whole(path)


def test_a_violation_stays_and_costs_no_more_draws(path):
    results = [session_of(path, leaking, samples=400) for _ in range(3)]
    assert results[-1].verdict == "violated"
    assert results[-1].samples == 0
    assert results[-1].findings[0].witness.rule == results[-2].findings[0].witness.rule
    assert only_pair(path).is_violated


def test_what_is_shown_was_saved_before(path):
    shown = []
    session_of(path, on_progress=lambda progress: shown.append((progress.draws, only_pair(path).labelled)))
    assert shown and all(draws == saved + 24 for draws, saved in shown)


def test_the_floating_point_check_is_asked_on_the_first_session_only(path):
    pairs = ([(0.0, 1.0)], [(0.0, 1.0)], [(0.0, 1.5)])
    found = [dpaudit.audit(laplace, "eps=2", pair, samples=1000, seed=1, store=path) for pair in pairs]
    checks = [result.floating_point for result in found]
    assert [check.samples > 0 for check in checks] == [True, False, False]
    assert all("first session" in check.message and check.verdict == "not_applicable" for check in checks[1:])


def test_a_mechanism_that_raises_goes_on_one_output_a_call(path):
    def fragile(data, size, rng):
        values = response(data, size, rng)
        if rng.random() < 0.2 * size:
            raise RuntimeError("overflow")
        return values

    results = [session_of(path, fragile, samples=30) for _ in range(2)]
    assert [result.subject["interface"] for result in results] == ["f(data, size, rng), one call a draw"] * 2
    assert results[1].findings[0].samples > results[0].findings[0].samples


RAISES = []  # what makes `sometimes` raise: fingerprints see no globals


def sometimes(data, size, rng):
    if RAISES and size > 1 and RAISES[0] == 0:
        raise RuntimeError("overflow")
    if RAISES:
        RAISES[0] -= 1
    return response(data, size, rng)


@pytest.fixture
def raises():
    yield RAISES
    RAISES.clear()


class Unreadable(list):
    """Outputs that raise when they are read."""

    def __iter__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize("how", ["cancelled", "unreadable"])
def test_whatever_a_batch_raises_no_evidence_is_added_behind_it(path, raises, how):
    """A batch that raises where it would speak for the claim: with CancelledError at 60, 14 of 25 were violated."""

    def breaks(data, size, rng):
        y = response(data, size, rng)
        if not RAISES or size < 3:
            return y
        if how == "cancelled":
            raise asyncio.CancelledError
        return Unreadable(y.tolist())

    session_of(path, breaks)
    raises.append(0)
    if how == "cancelled":  # of a call, as any exception
        assert session_of(path, breaks, seed=2).verdict == "error"
    else:
        with pytest.raises(BaseException):  # noqa: B017 whatever it is
            session_of(path, breaks, seed=2)
    raises.clear()
    (subject,) = subjects_of(path)
    assert [session["status"] for session in subject["nights"]] == ["finished", "failed"]
    with pytest.raises(dpaudit.UsageError, match="mechanism must not have raised for a whole batch"):
        session_of(path, breaks, seed=3)


def test_who_breaks_a_session_off_leaves_its_evidence(path):
    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session_of(path, on_progress=stop)
    assert session_of(path, seed=2).findings[0].samples > 200


def test_what_ends_with_a_batch_that_raised_is_not_multiplied_by_a_merge(tmp_path, path, raises):
    other = tmp_path / "other.db"
    session_of(path, sometimes)
    raises.append(12)
    assert session_of(other, sometimes, seed=2).verdict == "error"
    raises.clear()
    before = only_pair(path).state
    for first, second, words in ((path, other, "of the second one"), (other, path, "of the first one")):
        with (
            Store.at(first) as store,
            Store.at(second) as more,
            pytest.raises(
                dpaudit.UsageError, match=f"whole batch in either store, got 'sometimes'.* session 1 {words}"
            ),
        ):
            store.merge(more)
    assert only_pair(path).state == before
    with Store.at(tmp_path / "new.db") as store, Store.at(other) as more:
        assert store.merge(more) == (1, 1)  # alone it is what it was
    with pytest.raises(dpaudit.UsageError, match="mechanism must not have raised for a whole batch"):
        session_of(tmp_path / "new.db", sometimes, seed=4)


# --- shares of the error rate ---


def test_a_claim_a_fingerprint_and_a_budget_have_evidence_of_their_own(path):
    session_of(path)
    session_of(path, claim="eps=2")
    session_of(path, leaking)
    assert len(subjects_of(path)) == 3
    metric = dpaudit.MetricDP(lambda x, y: abs(x - y), on="inputs")
    other = dpaudit.MetricDP(lambda x, y: 2.0 * abs(x - y), on="inputs")
    session_of(path, claim=metric)
    session_of(path, claim=other)
    pairs = [pair for subject in subjects_of(path) for pair in subject["pairs"] if "metric" in subject["claim"].lower()]
    assert sorted(pair.budget for pair in pairs) == [1.0, 2.0]


def test_what_cannot_accumulate_is_refused(path):
    many = dpaudit.all_pairs([float(value) for value in range(70)])
    for options, words in (
        ({"mode": "fixed"}, "mode must not be given with a store, got 'fixed'. An exact test is looked at once"),
        ({"store": 3}, "store must be a path, got 3"),
        ({"on_progress": 3}, "on_progress must be a function of a Progress, got 3"),
        ({"checkpoint": "c"}, "checkpoint must not be given with a store, got 'c'. A store saves every round already"),
        (
            {"pairs": many},
            "store must not be given with a table of all pairs, got .*each of its pairs, which is looked at once",
        ),
        ({"mechanism": lambda data: data}, "mechanism must take its randomness from rng or seed for a store"),
    ):
        with pytest.raises(dpaudit.UsageError, match=words):
            session_of(**{"store": path, **options})
    assert not path.exists() or subjects_of(path) == []
    session_of(path)
    with pytest.raises(dpaudit.UsageError, match=r"confidence must be 0\.95, as on the first session .* got 0\.9\."):
        session_of(path, confidence=0.9)


# --- two writers ---


def test_a_session_that_another_one_overtakes_has_no_more_runs_than_it_was_asked(path):
    """Its longer pilot was forgotten: at 1,000 samples there were 2,168 to 2,744 runs, not 2,000."""

    def mostly_raises(data, rng):
        if rng.random() < 0.997:
            raise KeyError("c")
        return int(rng.random() < (0.6 if data else 0.4))

    beside, inner = once(lambda: session_of(path, mostly_raises, seed=6, samples=300, claim="eps=3"))
    outer = session_of(path, mostly_raises, seed=5, samples=1_000, claim="eps=3", **beside)
    assert inner and outer.samples == pytest.approx(2_000, abs=100)
    assert outer.findings[0].samples > only_pair(path).labelled + 24  # its pilot was longer than that


SPENT = [0]  # calls of all that `refuser` returns, which outlive a session


def refuser():
    """The mechanism as a process of its own would import it: nothing is known of calls on another one."""

    def refusing(data, rng):
        SPENT[0] += 1
        return None if SPENT[0] > 400 else data + rng.laplace()

    return refusing


@pytest.fixture
def refused(path):
    """A store whose first session saw a mechanism that refuses for good; in all later ones each call is refused."""
    SPENT[0] = 0
    result = session_of(path, refuser(), [(0.0, 1.0)], samples=1_500, claim="eps=1.2")
    assert result.verdict == "inconclusive" and only_pair(path).state["change"]["p_value"] < 1e-9
    return result


def check_withheld(result):
    """No figure is given, and the note says why."""
    (finding,) = result.findings
    assert result.verdict == "inconclusive" and finding.power is None and finding.epsilon_lower == 0.0
    assert finding.notes[0].startswith("Draws depend on each other: of the outcomes on one input")
    assert "call_order" in [side.kind for side in result.side_findings]


def test_evidence_of_draws_that_depend_on_each_other_stays_without_figures_until_it_is_forgotten(path, refused):
    """The later sessions were "not refuted", with a detectable loss of 1.7: all their calls are refused alike."""
    check_withheld(refused)
    assert "earlier session" not in refused.findings[0].notes[0]
    for session in (2, 3):
        result = session_of(path, refuser(), [(0.0, 1.0)], seed=session, samples=1_500, claim="eps=1.2")
        check_withheld(result)
        assert "earlier session" in result.findings[0].notes[0]
        assert result.side_findings[0].error_rate == pytest.approx(session * refused.side_findings[0].error_rate)
    with Store.at(path) as store:
        store.forget([subject["digest"] for subject in store.subjects()])
    result = session_of(path, refuser(), [(0.0, 1.0)], seed=4, samples=1_500, claim="eps=1.2")
    assert result.verdict != "violated" and result.findings[0].power is not None and not result.side_findings


def test_a_change_in_another_session_stays_where_this_one_is_overtaken(path):
    """Nothing of it is seen in the outcomes of the session that goes on."""

    def refuses_later():
        SPENT[0] = 0
        return session_of(path, refuser(), [(0.0, 1.0)], seed=2, samples=1_500, claim="eps=1.2")

    SPENT[0] = 10**6
    beside, inner = once(refuses_later)
    outer = session_of(path, refuser(), [(0.0, 1.0)], seed=3, samples=1_500, claim="eps=1.2", **beside)
    check_withheld(inner[0])
    check_withheld(outer)
    assert "earlier session" in outer.findings[0].notes[0]


@pytest.mark.parametrize("first_has_it", [True, False])
def test_a_merge_keeps_what_was_seen_to_change(tmp_path, path, refused, first_has_it):
    other = tmp_path / "other.db"
    session_of(other, refuser(), [(0.0, 1.0)], seed=2, samples=1_500, claim="eps=1.2")
    assert only_pair(other).state["change"] is None
    first, second = (path, other) if first_has_it else (other, path)
    with Store.at(first) as store, Store.at(second) as more:
        store.merge(more)
    check_withheld(session_of(first, refuser(), [(0.0, 1.0)], seed=3, samples=1_500, claim="eps=1.2"))


def test_what_small_batches_share_stays_with_the_evidence(path, monkeypatch):
    """They are asked behind the session, of streams of its own."""
    seeds = []

    def in_small_batches(draw, samples, most, is_violated, score):
        seeds.append(draw.args[0].seed)
        return (Change("outputs are all alike in each batch", 1e-20) if len(seeds) == 1 else None), 7

    monkeypatch.setattr(label_games, "in_small_batches", in_small_batches)
    first, second = session_of(path), session_of(path)
    for result in (first, second):
        check_withheld(result)
    assert "earlier session" in second.findings[0].notes[0] and second.options["went_on"]
    assert only_pair(path).state["change"] == {"what": "outputs are all alike in each batch", "p_value": 1e-20}
    assert len(seeds) == 1  # what is known need not be asked again
    session_of(path, leaking)
    session_of(path, leaking)
    assert len(set(seeds)) == 3


def test_sessions_of_another_law_are_each_looked_at_by_themselves(path):
    """A function that the mechanism calls may change from session to session: each is one of independent draws."""
    offset = [0.0]

    def moved(data, rng):
        return data + offset[0] + rng.laplace(scale=2.0)

    for session in range(3):
        offset[0] = 5.0 * session
        result = session_of(path, moved, seed=10 + session, samples=1_000)
        assert not result.side_findings and not result.findings[0].notes


SCRIPT = """
import math, os, signal, sys
import numpy as np
import dpaudit

calls = 0

def response(data, size, rng):
    global calls
    calls += 1
    if calls == KILL:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.where(rng.random(size) < 1.0 / (1.0 + math.exp(-0.9)), data, 1 - data)

KILL = int(sys.argv[3])
for session in range(int(sys.argv[4])):
    dpaudit.audit(response, "eps=1", [(0, 1)], samples=100, seed=int(sys.argv[2]), store=sys.argv[1],
                  floating_point=False)
"""


def started(tmp_path, path, seed, kill=0, sessions_=1):
    script = tmp_path / "mechanism.py"
    script.write_text(SCRIPT)
    command = [sys.executable, str(script), str(path), str(seed), str(kill), str(sessions_)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_two_processes_lose_nothing_and_a_kill_costs_at_most_what_nobody_has_seen(tmp_path, path):
    both = [started(tmp_path, path, seed, sessions_=3) for seed in (1, 2)]
    assert [process.wait(timeout=600) for process in both] == [0, 0]
    (subject,) = subjects_of(path)
    assert len(subject["nights"]) == 6 and {session["status"] for session in subject["nights"]} == {"finished"}
    # Six sessions of 200 labelled draws, less a pilot of 24 for each that found no evidence.
    assert only_pair(path).labelled in (1200 - 24, 1200 - 48)
    check_whole(path)
    before = only_pair(path).labelled
    killed = started(tmp_path, path, 3, kill=2)
    assert killed.wait(timeout=600) == -signal.SIGKILL
    check_whole(path)
    assert only_pair(path).labelled >= before
    again = started(tmp_path, path, 3)
    assert again.wait(timeout=600) == 0
    (subject,) = subjects_of(path)
    assert [session["status"] for session in subject["nights"][-2:]] == ["started", "finished"]
    # Another stream, though the seed is the same.
    assert [session["number"] for session in subject["nights"][-2:]] == [0, 1]
    assert only_pair(path).labelled >= before + 200
    check_whole(path)


def test_a_full_disk_is_one_message_and_loses_nothing(path):
    session_of(path, samples=300)
    before = path.read_bytes()
    state = only_pair(path).state
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before), hard))
    try:
        with pytest.raises(StoreError, match="store must have room to grow") as caught:
            for seed in range(50):
                session_of(path, pairs=[(0, 1), (seed, 0.5)], seed=seed)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "What was saved before is intact" in str(caught.value)
    check_whole(path)
    (subject,) = subjects_of(path)
    assert subject["pairs"][0].labelled >= state["labelled"]
    assert session_of(path).findings[0].samples >= state["labelled"] + 200


def test_a_session_that_another_one_overtakes_goes_on_from_the_product_of_both(path):
    """Of a leak, what is shown is what the product in the store says, though each session alone saw another wealth."""
    shown, inner = [], []

    def beside(progress):
        if not inner:
            inner.append(session_of(path, leaking, seed=2, samples=50))
        shown.append((progress.largest_log_wealth, only_pair(path).log_wealth))

    outer = session_of(path, leaking, seed=3, samples=50, on_progress=beside)
    assert shown[0][0] != shown[0][1]  # it was overtaken behind its first look
    assert outer.findings[0].log_wealth == only_pair(path).log_wealth
    assert outer.findings[0].samples == only_pair(path).labelled + 24  # its pilot
    assert sum(use["now"] is None for use in only_pair(path).state["uses"]) == 0
    # What the inner session has won is in the product: it was joined, not overwritten.
    assert sessions_of(only_pair(path)) == {"2/0", "3/0"}
    check_whole(path)


# --- a file that is no store ---


def test_a_state_that_was_changed_is_seen(path):
    session_of(path)
    connection = sqlite3.connect(path)
    connection.execute("update pairs set state = cast(substr(state, 1, 100) || x'00' || substr(state, 102) as blob)")
    connection.commit()
    connection.close()
    with pytest.raises(dpaudit.UsageError, match=r"store of evidence, got the state of pair 0.1 that is damaged"):
        session_of(path)


# --- merging and forgetting ---


def test_stores_are_merged_once(tmp_path, path):
    other = tmp_path / "other.db"
    wealth = [session_of(path, seed=1).findings[0].log_wealth, session_of(other, seed=2).findings[0].log_wealth]
    session_of(other, leaking, seed=2)
    with Store.at(path) as store, Store.at(other) as second:
        assert store.merge(second) == (2, 2)
        assert store.subjects()[0]["pairs"][0].log_wealth == pytest.approx(sum(wealth), abs=1e-9)
        assert [len(subject["nights"]) for subject in store.subjects()] == [2, 1]
        with pytest.raises(dpaudit.UsageError, match="stores must have no stream in common, got 2/0 of"):
            store.merge(second)
        assert store.subjects()[0]["pairs"][0].labelled == 2 * 176
    check_whole(path)
    assert session_of(path, seed=2).options["stream"] == "2/1"  # the merged session's stream is used up
    (own,) = [subject for subject in subjects_of(path) if subject["name"] == "response"]
    assert own["pairs"][0].labelled == 2 * 176 + 200


def test_stores_of_different_confidence_are_not_merged(tmp_path, path):
    session_of(path)
    session_of(tmp_path / "other.db", seed=2, confidence=0.99)
    before = only_pair(path).state
    with (
        Store.at(path) as store,
        Store.at(tmp_path / "other.db") as other,
        pytest.raises(dpaudit.UsageError, match="confidences must be the same"),
    ):
        store.merge(other)
    assert only_pair(path).state == before


def test_a_verdict_of_the_other_store_is_not_taken_over(tmp_path, path):
    other = tmp_path / "other.db"
    session_of(path, seed=1)
    session_of(other, seed=2)
    with Store.at(path) as store, Store.at(other) as second:
        with second.transaction() as execute:
            (pair,) = second._pairs_at(execute, 1, 0).values()
            _write(execute, 1, 0, dataclasses.replace(pair, state={**pair.state, "violated": True}))
        store.merge(second)
    assert not only_pair(path).is_violated  # it was made at the error rate of that store
