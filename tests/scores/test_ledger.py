"""Evidence of scores in a store: what goes on, what is counted once, and what a look says."""

import json
import sqlite3
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.reports.evidence import store_document
from dpaudit.running.store import Store
from dpaudit.scores import ledger

SCHEMA = json.loads((Path(dpaudit.__file__).parent / "schemas" / "evidence-1.json").read_text())
SEQUENTIAL = {"claim": "eps=0.5", "design": "sequential"}


def scores(size=300, seed=1, mean=2.0):
    rng = np.random.default_rng(seed)
    return rng.normal(mean, 1.0, size), rng.normal(size=size)


@pytest.fixture
def session(tmp_path):
    """Add the scores `begin` to `end` of both sides to the store, or any two columns."""

    def add(scores_in, scores_out, store="e.db", name="net", **options):
        place = tmp_path / store if isinstance(store, str) else store
        return dpaudit.audit_scores(scores_in, scores_out, **{**SEQUENTIAL, **options}, store=place, name=name)

    return add


def opened(tmp_path, store="e.db"):
    with Store.at(tmp_path / store) as one:
        document = store_document(one)
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document["subjects"]


def content(result):
    """What a result says of the scores, without times and what the store adds."""
    left_out = ("seconds", "notes", "assumptions")
    return {name: value for name, value in result.to_dict().items() if name not in left_out}


def test_sessions_come_to_what_one_audit_of_all_scores_does(session, tmp_path):
    """The second computation is the audit without a store, at each look. Its error rate is measured elsewhere."""
    first, second = scores(120)
    for end, begin in ((40, 0), (70, 40), (120, 70)):
        found = session(first[begin:end], second[begin:end])
        assert content(found) == content(dpaudit.audit_scores(first[:end], second[:end], **SEQUENTIAL))
    (subject,) = opened(tmp_path)
    (pair,) = subject["pairs"]
    assert [look["draws"] for look in pair["looks"]] == [80, 140, 240]
    assert pair["looks"][-1]["parameter_lower"] == pair["parameter_lower"] == found.parameter_lower
    assert (pair["violated"], subject["violated"], pair["draws"]) == (True, True, 240)
    assert pair["log_wealth"] == found.log_wealth > pair["log_wealth_needed"]


def test_a_file_that_grows_adds_what_is_new(session):
    first, second = scores(100)
    session(first[:30], second[:20])
    found = session(first, second)
    assert (found.scores_in, found.scores_out) == (100, 100)
    assert found.notes[0] == "Evidence of 2 sessions in the store; 70 scores in and 80 out are new."
    assert content(found) == content(dpaudit.audit_scores(first, second, **SEQUENTIAL))


def test_no_score_is_counted_twice(session, tmp_path):
    first, second = scores(100)
    session(first[:40], second[:40])
    expected = content(session(first[40:80], second[40:80]))
    for begin, end in (
        (40, 80),
        (0, 80),
        (0, 40),
        (0, 20),
    ):  # a session again, all again, the first session, a part of it
        found = session(first[begin:end], second[begin:end])
        assert content(found) == expected
        assert found.notes[0].endswith("all of these scores were counted before, and are not counted again.")
    for begin, end in ((20, 60), (60, 100), (41, 79)):
        with pytest.raises(UsageError, match=r"scores_in must be of runs that were not counted yet, got . or more"):
            session(first[begin:end], second[begin:end])
    assert [one["draws"] for one in opened(tmp_path)] == [160]
    assert content(session(-first[80:], second[80:])) != expected  # the same values of other runs are new


def test_sessions_that_could_repeat_others_by_chance_are_refused_and_growing_files_are_not(session):
    rng = np.random.default_rng(2)
    coins = rng.integers(0, 2, (2, 40)).astype(float)
    session(*coins[:, :10])
    with pytest.raises(UsageError, match=r"scores must be enough to tell a session from a copy .* got 5 in and 5 out"):
        session(*coins[:, 10:15])
    assert session(*coins).scores_in == 40


def test_a_growing_file_of_few_values_comes_in_one_by_one(session, tmp_path):
    """What is new is often equal to what an earlier session added; to refuse it would select scores by their values."""
    coins = np.random.default_rng(2).integers(0, 2, (2, 5)).astype(float)
    for end in range(1, 6):
        assert session(*coins[:, :end]).scores_in == end
    assert content(session(*coins)) == content(dpaudit.audit_scores(*coins, **SEQUENTIAL))
    assert [one["draws"] for one in opened(tmp_path)] == [10]


def test_equal_values_have_equal_digests():
    values = np.array([np.nan, -0.0, 1.0])
    odd = np.frombuffer(np.array([0x7FF8000000000001], "<u8").tobytes(), "<f8")
    same = np.concatenate([odd, [0.0, 1.0]])
    assert ledger.digest_of(*[ledger.canonical(values)] * 2) == ledger.digest_of(*[ledger.canonical(same)] * 2)
    assert ledger.digest_of(np.array([1.0]), np.array([2.0, 3.0])) != ledger.digest_of(
        np.array([1.0, 2.0]), np.array([3.0])
    )


def test_names_and_claims_have_ledgers_of_their_own(session, tmp_path):
    first, second = scores(40)
    session(first, second)
    session(first, second, name="other")
    session(first, second, claim="mu=1")
    promises = [dpaudit.ProfileClaim(lambda e, d=d: d, name="same text") for d in (0.1, 1e-3)]
    for promise in promises:
        session(first, second, claim=promise)
    assert [subject["draws"] for subject in opened(tmp_path)] == [80] * 5


def test_a_name_without_a_store_is_refused():
    with pytest.raises(UsageError, match=r"name must go with a store, got 'net' without one\."):
        dpaudit.audit_scores([1.0], [0.0], **SEQUENTIAL, name="net")


def test_scores_that_cannot_be_of_the_design_are_not_kept(session, tmp_path):
    first, second = scores(100)
    session(first[:20], second[:20])
    with pytest.raises(UsageError, match="scores_in must be in the order of the runs"):
        session(np.sort(first[20:]), second[20:])
    with pytest.raises(UsageError, match="scores must have at least one score, got none"):
        session([], [], name="nothing")
    assert [subject["draws"] for subject in opened(tmp_path)] == [40]


def test_what_was_forgotten_is_never_counted_again(session, tmp_path):
    first, second = scores(80)
    session(first[:40], second[:40])
    runner = CliRunner()
    result = runner.invoke(main, ["evidence", "forget", "net", "--store", str(tmp_path / "e.db")])
    assert (result.exit_code, result.stdout.split()[0]) == (0, "Forgotten:")
    (subject,) = opened(tmp_path)
    assert (subject["draws"], subject["pairs"], subject["lives"], subject["error_rate"]) == (
        0,
        [],
        2,
        pytest.approx(0.1),
    )
    with pytest.raises(UsageError, match="scores must be new, got those of a session that was forgotten"):
        session(first[:40], second[:40])
    assert session(first[40:], second[40:]).scores_in == 40
    assert sqlite3.connect(tmp_path / "e.db").execute("select length(scores_in) from score_nights").fetchall() == [
        (0,), (320,),
    ]  # fmt: skip


def test_stores_are_merged_session_by_session_or_not_at_all(session, tmp_path):
    first, second = scores(90)
    session(first[:30], second[:30])
    session(first[30:60], second[30:60], store="b.db")
    session(first[:30], second[:30], store="c.db")
    session(*scores(30, seed=5), store="c.db", name="other")
    runner = CliRunner()

    def merged(other):
        return runner.invoke(main, ["evidence", "merge", str(tmp_path / other), "--store", str(tmp_path / "e.db")])

    assert "stores must have no scores in common, got some of 'net' in both" in merged("c.db").output
    assert len(opened(tmp_path)) == 1
    assert merged("b.db").stdout.endswith("b.db: 1 session, 0 pairs\n")
    (subject,) = opened(tmp_path)
    assert (subject["draws"], subject["pairs"][0]["log_wealth"]) == (120, None)  # until the next look
    found = session(first[60:], second[60:])
    assert content(found) == content(dpaudit.audit_scores(first, second, **SEQUENTIAL))


def test_the_command_goes_on_and_evidence_shows_it(tmp_path):
    first, second = scores(60)
    for k, part in enumerate((slice(0, 30), slice(30, 60))):
        np.save(tmp_path / f"in{k}.npy", first[part])
        np.save(tmp_path / f"out{k}.npy", second[part])
    store, runner = str(tmp_path / "e.db"), CliRunner()
    for k in range(2):
        files = str(tmp_path / f"in{k}.npy"), str(tmp_path / f"out{k}.npy")
        options = ("--claim", "eps=0.5", "--design", "sequential", "--store", store, "--name", "net")
        result = runner.invoke(main, ["scores", *files, *options])
        assert result.exit_code == 1
    assert "60 in, 60 out" in result.stdout
    listed = runner.invoke(main, ["evidence", "list", "--store", store], env={"COLUMNS": "200"}).stdout
    row = next(line for line in listed.splitlines() if "net" in line)
    name, _, *facts = row.split()
    assert name == "net" and facts[:4] == ["eps=0.5", "2", "1", "120"]
    explained = runner.invoke(main, ["evidence", "explain", "net", "--store", store], env={"COLUMNS": "200"}).stdout
    assert "2 sessions." in explained and "Sessions of scores" in explained


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("update score_nights set scores_in = scores_out", "an intact store of evidence, got scores that are damaged"),
        ("update score_nights set scores_in = 'a'", "values of the types of its columns, got 'a' in scores_in"),
        ("update score_ledgers set seed = 'a'", "an intact store of evidence, got a seed that is no number"),
    ],
)
def test_a_damaged_ledger_is_refused(session, tmp_path, damage, message):
    first, second = scores(40)
    session(first[:20], second[:20])
    with sqlite3.connect(tmp_path / "e.db") as connection:
        connection.execute(damage)
    with pytest.raises(UsageError, match=message):
        session(first[20:], second[20:])


def test_a_store_of_before_takes_a_ledger(session, tmp_path):
    Store.at(tmp_path / "e.db").close()  # the tables of audits alone
    assert session(*scores(20)).scores_in == 20
    with sqlite3.connect(tmp_path / "e.db") as connection:
        connection.execute("alter table score_nights add column more text")
    with pytest.raises(UsageError, match="store must have the columns of score_nights, got others"):
        session(*scores(20, seed=9))


def test_the_way_of_betting_is_the_one_that_ledgers_know():
    """A change of these figures is a change of the bets: raise `bets.WAY`, so that no ledger is tested twice."""
    from dpaudit.scores.bets import WAY

    found = dpaudit.audit_scores(*scores(60, seed=20), **SEQUENTIAL)
    assert (WAY, round(found.log_wealth, 6), round(found.trade_off[30].upper, 6)) == (5, 8.031969, 0.796341)
