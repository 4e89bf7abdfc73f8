"""An audit that is ended by anything goes on from its checkpoint, and comes to the result it would have come to."""

import errno
import json
import math
import pathlib
import shutil

import numpy as np
import pytest
from scale_subjects import labels
from support.evidence import evidence
from support.samplers import laplace

import dpaudit
from dpaudit.features.outcomes import canonical
from dpaudit.privacy.metrics import AbsoluteMetric
from dpaudit.running import checkpoint as checkpoints
from dpaudit.running.checkpoint import Checkpoint, open_checkpoint, read_header
from dpaudit.running.journal import Journal
from dpaudit.running.plain_data import NotPlainError, from_data, to_data
from dpaudit.subjects.call_outcomes import Opaque

PAIRS = [(0.0, 1.0), (1.0, 2.0), (0.0, 0.5)]
INPUTS = np.arange(72) / 8.0


def vectors(data, size, rng):
    return data + rng.laplace(size=(size, 3))


class Unseeded:
    replayable = False

    def sample(self, data, size, rng):
        return laplace(data, size, np.random.default_rng())


def looks_up(data, rng):
    try:
        {}["Alice"]
    except KeyError:
        raise ValueError(f"no row of {rng.integers(2)}") from None


def chained(data, rng):
    try:
        {}["Alice"]
    except KeyError:
        raise ValueError("no row")  # noqa: B904 (the first one is to be in the traceback)


class Stop(Exception):
    """Ends an audit where it stands, as a kill would: nothing of the audit handles it."""


def stopped(path, mechanism, after, claim="eps=1", pairs=PAIRS, noted=None, **options):
    """Begin an audit with a checkpoint and stop it once so many chunks are noted; whether it was stopped."""
    noted = [] if noted is None else noted
    note = Checkpoint.note

    def counting(self, *args):
        note(self, *args)
        noted.append(args)
        if len(noted) >= after:
            raise Stop

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "note", counting)
        try:
            dpaudit.audit(mechanism, claim, pairs, checkpoint=path, resume=path.exists(), **options)
        except Stop:
            return True
    return False


CASES = {
    "sequential": (laplace, {"claim": "eps=1", "pairs": PAIRS[:2], "samples": 500}),
    "violated": (laplace, {"claim": "eps=0.4", "pairs": PAIRS, "samples": 3_000}),
    "adaptive": (laplace, {"claim": "eps=1", "pairs": PAIRS, "samples": 500, "mode": "adaptive"}),
    "fixed": (laplace, {"claim": "eps=1,delta=1e-3", "pairs": PAIRS, "samples": 1_000, "mode": "fixed"}),
    "renyi": (laplace, {"claim": "rho=0.5", "pairs": PAIRS[:1], "samples": 500}),
    "vectors": (vectors, {"claim": "eps=3", "pairs": PAIRS[:1], "samples": 1_000}),
    "objects": (labels, {"claim": "eps=1", "pairs": PAIRS[:1], "samples": 150}),
    "universe": (
        laplace,
        {"claim": dpaudit.MetricDP(AbsoluteMetric(1.0)), "pairs": dpaudit.AllPairs(INPUTS.tolist()), "samples": 500},
    ),
}
CHEAP = ("sequential", "adaptive", "fixed")


@pytest.mark.parametrize(
    "case", [case if case in CHEAP else pytest.param(case, marks=pytest.mark.long) for case in CASES]
)
def test_an_audit_stopped_anywhere_comes_to_the_same_result(tmp_path, case):
    mechanism, options = CASES[case]
    options = {**options, "seed": 11}
    alone = evidence(dpaudit.audit(mechanism, **options))
    noted, rng = [], np.random.default_rng(5)
    assert not stopped(tmp_path / "counted", mechanism, math.inf, noted=noted, **options)
    for after in [int(rng.integers(2, len(noted))), len(noted)]:
        path = tmp_path / f"{case}-{after}"
        assert stopped(path, mechanism, after, **options)
        again = dpaudit.audit(mechanism, checkpoint=path, resume=True, **options)
        assert evidence(again) == alone
        assert not path.exists()  # the audit has ended


def test_a_result_is_noted_before_it_is_looked_at_and_drawn_once(tmp_path):
    """The counted draws are those of the first run where they were noted: nothing is drawn twice and picked."""
    calls = []

    class Numbered(Unseeded):
        def sample(self, data, size, rng):
            calls.append(size)
            return super().sample(data, size, rng)

    # A loss of 1 is far from violating eps=3, so the number of runs is fixed by the coins, which have a seed.
    options = {"claim": "eps=3", "pairs": PAIRS[:1], "samples": 600, "seed": 3, "floating_point": False}
    path = tmp_path / "kept"
    total = 0
    while stopped(path, Numbered(), 15, **options):
        total += 1
        assert total < 100
    # every run was made once: as many as one audit takes (2,000 on each input, more or less by the coins)
    alone = dpaudit.audit(Numbered(), **options)
    assert total > 3 and sum(calls) - alone.samples == alone.samples


def test_a_resumed_audit_of_a_subject_without_a_seed_says_so_and_keeps_what_was_counted(tmp_path):
    options = {"claim": "eps=3", "pairs": PAIRS[:1], "samples": 600, "seed": 3}  # far from violated, whatever is drawn
    path = tmp_path / "kept"
    assert stopped(path, Unseeded(), 40, **options)
    copy = shutil.copy(path, tmp_path / "copy")
    first, again = (dpaudit.audit(Unseeded(), checkpoint=place, resume=True, **options) for place in (path, copy))
    assert first.options["resumed"] is True
    looks = [result.findings[0].looks for result in (first, again)]
    same = next((k for k, (a, b) in enumerate(zip(*looks, strict=False)) if a != b), None)
    assert same is None or same > 10  # the looks on the noted draws; what was drawn afterwards is new
    assert "resumed" not in dpaudit.audit(Unseeded(), **options).options


def test_a_subject_that_returns_garbage_has_ended_its_audit(tmp_path):
    def short(data, size, rng):
        return np.zeros(size - 1)

    path = tmp_path / "kept"
    with pytest.raises(dpaudit.SubjectError, match="must return"):
        dpaudit.audit(short, "eps=1", PAIRS, samples=100, checkpoint=path)
    assert not path.exists()


# --- what is refused ---


def test_a_checkpoint_that_is_there_is_not_written_over(tmp_path):
    path = tmp_path / "kept"
    options = {"claim": "eps=1", "pairs": PAIRS, "samples": 300}
    assert stopped(path, laplace, 5, seed=3, **options)
    before = path.read_bytes()
    with pytest.raises(dpaudit.UsageError, match=r"checkpoint must be a new file, .*--resume"):
        dpaudit.audit(laplace, checkpoint=path, **options)
    assert path.read_bytes() == before
    result = dpaudit.audit(laplace, checkpoint=path, resume=True, **options)  # the seed is the file's
    assert evidence(result) == evidence(dpaudit.audit(laplace, seed=3, **options))


def test_a_mechanism_that_draws_something_else_is_found_though_its_fingerprint_is_the_same(tmp_path):
    state = {"scale": 1.0}

    class Hidden:
        def __repr__(self):
            return "Hidden()"

        def sample(self, data, size, rng):
            return data + rng.laplace(scale=state["scale"] if data else 1.0, size=size)  # the first input is as it was

    path = tmp_path / "kept"
    options = {"claim": "eps=1", "pairs": PAIRS, "samples": 300, "seed": 3}
    assert stopped(path, Hidden(), 5, **options)
    state["scale"] = 2.0
    with pytest.raises(dpaudit.UsageError, match="checkpoint must be of this mechanism, got other draws of Hidden"):
        dpaudit.audit(Hidden(), checkpoint=path, resume=True, **options)
    state["scale"] = 1.0
    assert dpaudit.audit(Hidden(), checkpoint=path, resume=True, **options).verdict


class Record:
    """An input that prints the same whatever it holds."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return "Record()"


def of_record(data, size, rng):
    return data.value + rng.laplace(size=size)


def paired(x_prime):
    return [dpaudit.Pair(Record(0.0), Record(x_prime), "0|1", "0", "1")]


def metric(loss):
    return dpaudit.MetricDP(lambda x, x_prime: loss * abs(x - x_prime))


def curve(largest):
    return dpaudit.FDP(lambda rate: np.maximum(largest - rate, 0.0))


@pytest.mark.parametrize(
    ("mechanism", "begun", "resumed", "said"),
    [
        # Draws of an input 6 away would have a mechanism with a loss of 1 violated.
        (of_record, ("eps=1", paired(6.0)), ("eps=1", paired(1.0)), "inputs of the pairs differ"),
        (laplace, (metric(2.0), PAIRS[:1]), (metric(1.0), PAIRS[:1]), "values of the claim differ"),
        (laplace, (curve(0.3), PAIRS[:1]), (curve(0.2), PAIRS[:1]), "values of the claim differ"),
    ],
)
def test_other_inputs_and_claims_that_print_the_same_are_refused(tmp_path, mechanism, begun, resumed, said):
    path, options = tmp_path / "kept", {"samples": 300, "seed": 3}
    assert stopped(path, mechanism, 3, *begun, **options)
    with pytest.raises(dpaudit.UsageError, match=said):
        dpaudit.audit(mechanism, *resumed, checkpoint=path, resume=True, **options)
    assert dpaudit.audit(mechanism, *begun, checkpoint=path, resume=True, **options).verdict


def test_an_audit_that_begins_beside_another_one_does_not_empty_its_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    opened = checkpoints.lock

    def late(stream, place, what):  # behind another audit, which has begun since, and has been killed
        monkeypatch.setattr(checkpoints, "lock", opened)
        open_checkpoint(place, {"seed": 1}, resume=False, replayable=True).close()
        opened(stream, place, what)

    monkeypatch.setattr(checkpoints, "lock", late)
    with pytest.raises(dpaudit.UsageError, match="checkpoint must be a new file"):
        open_checkpoint(path, {"seed": 2}, resume=False, replayable=True)
    assert read_header(path) == {"seed": 1}


# --- trouble ---


def test_on_a_full_disk_the_audit_goes_on_and_says_so(tmp_path, monkeypatch):
    """What was noted before stays (`test_checkpoint_records.py`), and can be gone on from as after any stop."""

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    options = {"claim": "eps=1", "pairs": PAIRS, "samples": 300, "seed": 3}
    alone, path = evidence(dpaudit.audit(laplace, **options)), tmp_path / "kept"
    monkeypatch.setattr(Journal, "append", full)
    with pytest.warns(dpaudit.DpauditCheckpointWarning, match="No space left on device.*can be resumed from"):
        result = dpaudit.audit(laplace, checkpoint=path, **options)
    assert evidence(result) == alone and not path.exists()


class Point:
    def __init__(self, value):
        self.value = value


CALLS = []


def points(data, rng):
    CALLS.append(data)
    return Point(round(float(data + rng.laplace()), 1))


def test_objects_are_noted_by_what_is_seen_of_them(tmp_path):
    options = {"claim": "eps=1", "pairs": PAIRS[:1], "samples": 150, "seed": 3}
    alone, path = evidence(dpaudit.audit(points, **options)), tmp_path / "kept"
    assert stopped(path, points, 12, **options)
    CALLS.clear()
    resumed = dpaudit.audit(points, checkpoint=path, resume=True, **options)
    assert evidence(resumed) == alone
    assert len(CALLS) < resumed.samples - 64  # what was noted is not drawn again, but for the first chunk


# --- the parts ---


def test_what_is_seen_of_an_object_comes_back_and_no_object_is_written():
    seen = Opaque("Point", state={"value": (1.5, Opaque("Inner", text="inner"))})
    assert canonical(from_data(json.loads(json.dumps(to_data(seen))))) == canonical(seen)
    for value in (Point(1), [Point(1)], np.array([Point(1)]), len):
        with pytest.raises(NotPlainError):
            to_data(value)


def test_a_set_has_the_same_bytes_in_whatever_order_its_values_come():
    # 0 and 8 share a place in a set of this size: which of them is first depends on which was put in first.
    one, other = {0, 8}, {8, 0}
    assert list(one) != list(other)
    assert to_data(one) == to_data(other)
    assert to_data(frozenset(one)) == to_data(frozenset(other))


@pytest.mark.parametrize("mechanism", [chained, looks_up])
def test_a_checkpoint_has_the_places_of_exceptions_and_no_tracebacks(tmp_path, mechanism):
    path, options = tmp_path / "notes", {"claim": "eps=1", "pairs": PAIRS[:1], "samples": 500, "seed": 1}
    (alone,) = dpaudit.audit(mechanism, **options).findings
    for after in (1, 2):  # the second one: all that the audit looks at is in the notes
        assert stopped(path, mechanism, after, **options)
        content = path.read_bytes()
        assert b"test_checkpoint.py, line" in content and b"Alice" not in content
        assert str(pathlib.Path(__file__).parent).encode() not in content
    (again,) = dpaudit.audit(mechanism, checkpoint=path, resume=True, **options).findings
    assert again == alone and f"in {mechanism.__name__} (test_checkpoint.py, line " in again.message
    assert "Alice" not in again.traceback and "Traceback (most recent" in alone.traceback


@pytest.mark.parametrize("content", [["E", "text"], ["E", "text", "f (a.py, line 1)", "Traceback"]])
def test_exceptions_are_read_in_the_forms_of_older_versions(content):
    back = from_data({"failed": content})
    assert [back.kind, back.message, back.place, back.traceback] == [*content, "", ""][:4]
    assert to_data(back) == {"failed": content[:3]}
    assert to_data(from_data(to_data(back))) == to_data(back)


def test_where_an_exception_came_from_is_no_draw_of_another_mechanism(tmp_path, monkeypatch):
    path, options = tmp_path / "notes", {"claim": "eps=1", "pairs": PAIRS[:1], "samples": 500, "seed": 1}
    with monkeypatch.context() as older:
        older.setattr("dpaudit.subjects.callables.located", lambda failed, error: failed)
        assert stopped(path, chained, 1, **options)
    (found,) = dpaudit.audit(chained, checkpoint=path, resume=True, **options).findings
    assert found.verdict == "error"
