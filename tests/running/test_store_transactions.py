"""What each transaction of an evidence store does to its rows, with states that are made by hand: nothing is drawn."""

import dataclasses
import math
import sqlite3

import pytest

from dpaudit.errors import UsageError
from dpaudit.inference.saved import FORMAT
from dpaudit.running import plain_data
from dpaudit.running.store import FAILED, LAYOUT, Identity, SavedPair, Store, StoreError, next_generation, share_of

RATE = 0.05
ONE = Identity("f" * 16, "laplace", "m.py:laplace", "eps=1")
OTHER = Identity("e" * 16, "laplace", None, "eps=1")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "evidence.db"


@pytest.fixture
def store(path):
    with Store.at(path) as opened:
        yield opened


def state(labelled=0, now=0.0, lower=0.0, violated=False, level=0.0, **more):
    return {"format": FORMAT, "labelled": labelled, "uses": [{"now": now, "lower": lower}], "violated": violated,
            "level": level, **more}  # fmt: skip


def saved(store, session, states, outputs=None, runs=0):
    """Save states: of each key, the state and what the session knows of the pair; what others wrote is ignored."""
    known = {key: before for key, (_, before) in states.items()}
    return store.save(session, known, lambda key, there: states[key][0], outputs or {}, runs)


def new_pair(key, generation=0, share=1.0):
    """A pair that has this share of what its generation has of the error rate."""
    level = RATE * share_of(generation) * share
    return SavedPair(key, f"pair {key}", "0", "1", "epsilon", 1.0, generation, level, state(level=level))


def begun(store, identity=ONE, seed=7, confidence=0.95, samples=100):
    return store.begin(identity, confidence, seed, samples)


# --- sessions ---


def test_no_two_sessions_of_a_subject_and_seed_have_one_number(store):
    sessions = [begun(store, seed=seed) for seed in (7, 7, 8, 7)] + [begun(store, OTHER)]
    assert [session.number for session in sessions] == [0, 1, 0, 2, 0]
    assert [session.ordinal for session in sessions] == [1, 2, 3, 4, 1]
    assert len({session.id for session in sessions}) == 5 and sessions[4].subject != sessions[0].subject
    assert {session.life for session in sessions} == {0}
    # A new life begins to count its sessions anew, and never the numbers of its streams.
    store.forget([ONE.digest])
    later = begun(store, seed=7)
    assert (later.number, later.ordinal, later.life) == (3, 1, 1)
    assert later.origin == "7/3" and later.stream_seed not in {session.stream_seed for session in sessions}


def test_behind_a_batch_that_raised_nothing_is_added_but_by_its_own_session(store):
    good, bad, beside = begun(store), begun(store), begun(store)
    store.admit(good, [new_pair("a")])
    store.end(bad, FAILED)
    with pytest.raises(UsageError, match="which did in session 2"):
        begun(store)
    for session, refused in ((beside, True), (good, True), (bad, False)):
        pairs = store.pairs_of(session)
        if refused:
            with pytest.raises(StoreError, match="got session 2"):
                saved(store, session, {"a": (state(5), pairs["a"])})
            with pytest.raises(StoreError, match="got session 2"):
                store.admit(session, [new_pair("b")])
        else:
            saved(store, session, {})
    assert store.pairs_of(good)["a"].labelled == 0
    begun(store, OTHER)  # another subject's evidence goes on
    store.forget([ONE.digest])
    assert begun(store).ordinal == 1


# --- pairs and their parts of the error rate ---


def test_pairs_that_come_in_beside_each_other_have_levels_that_sum_to_less_than_the_error_rate(store):
    first, second = begun(store), begun(store)
    assert next_generation(store.pairs_of(first)) == next_generation(store.pairs_of(second)) == 0
    own = store.admit(first, [new_pair("a", 0, 0.5), new_pair("b", 0, 0.5)])
    assert [pair.generation for pair in own.values()] == [0, 0]
    # The second session asked before; its new pair comes in as of a later generation, with all of its state's level.
    others = store.admit(second, [new_pair("b", 0, 0.7), new_pair("c", 0, 0.3)])
    assert list(others) == ["b", "c"] and others["b"] == own["b"]
    assert others["c"].generation == 1
    assert others["c"].level == others["c"].state["level"] == pytest.approx(0.3 * RATE * share_of(1), rel=1e-12)
    assert next_generation(store.pairs_of(first)) == 2
    third = store.admit(first, [new_pair("d", 2)])["d"]
    assert (third.generation, third.level) == (2, RATE * share_of(2))
    stored = store.pairs_of(first)
    assert list(stored) == ["a", "b", "c", "d"]
    assert sum(pair.level for pair in stored.values()) <= RATE
    assert store.pairs_of(begun(store, OTHER)) == {} and next_generation(store.pairs_of(begun(store, OTHER))) == 0


# --- what a round saves ---


def test_a_round_replaces_states_and_outputs_and_notes_a_look(store):
    session = begun(store)
    before = store.admit(session, [new_pair("a"), new_pair("b")])
    assert before["a"].revision == 0
    one = saved(store, session, {"a": (state(10, now=1.5, lower=0.2), before["a"])}, {"x": (3, b"abc")}, runs=12)
    assert list(one) == ["a"] and one["a"].revision == 1 and one["a"] == store.pairs_of(session)["a"]
    assert (one["a"].labelled, one["a"].lower, one["a"].is_violated) == (10, 0.2, False)
    assert one["a"].log_wealth == 1.5
    assert store.pairs_of(session)["b"] == before["b"]
    again = saved(store, session, {"a": (state(20, now=9.0, lower=1.2, violated=True), one["a"])},
                  {"x": (5, b"abcde")}, runs=25)  # fmt: skip
    assert (again["a"].revision, again["a"].labelled, again["a"].is_violated) == (2, 20, True)
    assert store.outputs_of(session, "x") == b"abcde" and store.outputs_of(session, "y") is None
    (subject,) = store.subjects()
    # One look a session and pair: the last one.
    assert [(look["key"], look["labelled"], look["lower"]) for look in subject["looks"]] == [("a", 20, 1.2)]
    assert subject["nights"][0]["runs"] == 25
    other = begun(store)
    saved(store, other, {"a": (state(30, now=math.nan), again["a"])})
    looks = store.subjects()[0]["looks"]
    assert [(look["number"], look["labelled"], look["log_wealth"]) for look in looks] == [
        (0, 20, 9.0),
        (1, 30, None),  # SQLite has no NaN
    ]


def test_a_session_that_was_overtaken_is_told_what_is_there_and_saves_what_it_makes_of_it(store):
    slow, fast = begun(store), begun(store)
    before = store.admit(slow, [new_pair("a"), new_pair("b")])
    there = saved(store, fast, {"a": (state(10, lower=0.5), before["a"])}, runs=9)["a"]
    told = []

    def of(key, pair):
        told.append((key, pair))
        return state(17) if pair is not None else None

    assert store.save(slow, before, of, {}, 4)["a"] == store.pairs_of(slow)["a"]
    assert told == [("a", there), ("b", None)]
    assert (store.pairs_of(slow)["a"].labelled, store.pairs_of(slow)["a"].revision) == (17, 2)
    assert store.pairs_of(slow)["b"] == before["b"]  # of which it saved nothing


def test_what_is_raised_while_a_session_joins_leaves_the_store_as_it_was(store):
    slow, fast = begun(store), begun(store)
    before = store.admit(slow, [new_pair("a"), new_pair("b")])
    saved(store, fast, {"b": (state(10), before["b"])})
    there = store.pairs_of(slow)

    def of(key, pair):
        if pair is not None:
            raise ZeroDivisionError
        return state(3)

    with pytest.raises(ZeroDivisionError):
        store.save(slow, before, of, {}, 4)
    assert store.pairs_of(slow) == there


# --- forgetting ---


def test_what_is_forgotten_is_gone_but_for_its_sessions_and_no_session_of_then_adds_to_what_comes(store):
    session, other = begun(store), begun(store, OTHER)
    pairs = store.admit(session, [new_pair("a"), new_pair("b")])
    store.admit(other, [new_pair("a")])
    saved(store, session, {"a": (state(10), pairs["a"])}, {"x": (1, b"x")}, runs=3)
    assert store.forget([ONE.digest, "no digest"]) == 2
    first, second = store.subjects()
    assert (first["life"], first["pairs"], first["looks"], len(first["nights"])) == (1, [], [], 1)
    assert (second["life"], len(second["pairs"])) == (0, 1)
    assert store.outputs_of(session, "x") is None
    for adds in (
        lambda: saved(store, session, {"a": (state(20), pairs["a"])}),
        lambda: store.admit(session, [new_pair("c")]),
    ):
        with pytest.raises(StoreError, match="got a new life"):
            adds()
    again = begun(store)
    assert next_generation(store.pairs_of(again)) == 0 and store.pairs_of(again) == {}
    assert store.forget([ONE.digest]) == 0  # no pair yet
    assert store.forget([]) == 0


# --- the file ---


def changed(path, *statements):
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(*statement) if isinstance(statement, tuple) else connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"pragma user_version = {LAYOUT + 1}", "store must have layout 1, got 2 at"),
        ("pragma application_id = 5", "got another database"),
        ("create view v as select 1", "got another 'v'"),
        ("create trigger t after insert on nights begin delete from pairs; end", "got another 't'"),
        ("alter table pairs add column more text", "got another 'pairs'"),
        ("drop table looks", "got another 'looks'"),
    ],
)
def test_a_database_of_another_form_is_refused(store, path, statement, said):
    begun(store)
    changed(path, statement)
    with pytest.raises(UsageError, match=said):
        Store.at(path)


def test_other_tables_beside_ours_are_left_alone_and_an_empty_file_becomes_a_store(store, path, tmp_path):
    begun(store)
    changed(path, "create table mine (a)")
    Store.at(path).close()
    empty = tmp_path / "empty.db"
    empty.touch()
    with Store.at(empty, create=False) as made:
        assert made.subjects() == []
    with pytest.raises(UsageError, match="store must be a file that is there"):
        Store.at(tmp_path / "none.db", create=False)
    with pytest.raises(UsageError, match="store must be a file that can be opened"):
        Store.at("/proc/none.db")
    for place in (tmp_path, tmp_path / "none" / "evidence.db"):
        with pytest.raises(UsageError, match="store must be a file in a folder that is there"):
            Store.at(place)


@pytest.mark.parametrize(("is_file_writable", "where"), [(False, "'"), (True, "the folder of '")])
def test_a_store_that_cannot_be_written_is_a_wrong_place(store, monkeypatch, is_file_writable, where):
    store._connection.execute("pragma query_only = on")  # SQLite says the same of a file or a folder without permission
    monkeypatch.setattr("dpaudit.running.store.os.access", lambda path, mode: is_file_writable)
    with pytest.raises(UsageError, match=f"in a folder that can be, got {where}.*evidence.db', which cannot"):
        begun(store)


def test_a_state_that_unpacks_to_more_than_is_ours_is_refused(store, monkeypatch):
    monkeypatch.setattr(plain_data, "MAX_BYTES", 10_000)
    session, pair = begun(store), new_pair("a")
    longer = [dataclasses.replace(pair, state={**pair.state, "long": " " * size}) for size in (9_000, 10_000)]
    assert store.admit(session, longer[:1])["a"] == longer[0]
    store.forget([ONE.digest])
    session = begun(store)
    with pytest.raises(UsageError, match="more than 10,000 bytes"):
        store.admit(session, longer[1:])
    assert store.pairs_of(session) == {}
