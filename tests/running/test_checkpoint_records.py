"""What stands in a checkpoint, record by record: written, read back, torn, given up and refused, without an audit."""

import errno
import os
from fractions import Fraction

import numpy as np
import pytest

from dpaudit.errors import UsageError
from dpaudit.features.outcomes import read_outputs
from dpaudit.inference.failures import Returned
from dpaudit.inference.tasks import Request, Task, TaskResult
from dpaudit.running.checkpoint import open_checkpoint, read_header, temporary_checkpoint
from dpaudit.running.plain_data import block

HEADER = {"seed": 3, "claim": "eps=1", "mode": "sequential", "pairs": "1 (aa)"}
PURPOSE = 1


def task(input=0, round=0, chunk=0, size=7):
    return Task(input, round, chunk, 0, size, (Request(size, Returned()),), keep=2)


def result(number):
    """One that is told apart by its count and by what it keeps."""
    return TaskResult((np.array([number]),), read_outputs([float(number), -1.0], 2))


def same(found, number):
    return found.counts[0].tolist() == [number] and found.kept.numbers[0, 0] == number


def reopened(path, header=HEADER, replayable=True):
    return open_checkpoint(path, header, resume=True, replayable=replayable)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def kept(path):
    return open_checkpoint(path, HEADER, resume=False, replayable=True)


def places():
    return [task(i, r, c) for i in (0, 3) for r in (0, 1) for c in (0, 2)]


# --- what is written is read back ---


def test_results_come_back_from_their_places_alone_or_together(kept, path):
    tasks = places()
    for number, one in enumerate(tasks[:3]):
        kept.note(PURPOSE, [(one, result(number))])
    kept.note(PURPOSE, [(one, result(3 + number)) for number, one in enumerate(tasks[3:])])
    kept.note(PURPOSE + 1, [(tasks[0], result(99))])
    kept.note(PURPOSE, [])
    assert len(kept) == 9 and kept.recovered == 0
    kept.close()
    again = reopened(path)
    assert all(same(again.find(PURPOSE, one), number) for number, one in enumerate(tasks))
    assert same(again.find(PURPOSE + 1, tasks[0]), 99)
    assert again.find(PURPOSE + 2, tasks[0]) is None and again.find(PURPOSE, task(1)) is None
    assert again.find(PURPOSE, task(0, 2)) is None and again.find(PURPOSE, task(0, 0, 1)) is None
    assert (len(again), again.recovered, again.is_torn, again.trouble) == (9, 9 * 7, False, "")
    again.close()


def test_what_was_contained_stands_with_the_chunk_behind_it(kept, path):
    kept.note(PURPOSE, [(task(0), result(1))], {"lost": 1})
    end_of_first = path.stat().st_size
    kept.note(PURPOSE, [(task(1), result(2)), (task(2), result(3))], {"lost": 4})
    assert kept.beside == {"lost": 4} and len(kept) == 3
    kept.close()
    whole = path.read_bytes()
    again = reopened(path)
    assert (again.beside, again.recovered) == ({"lost": 4}, 21)
    again.close()
    # Without the chunk behind it, it was contained in calls that are made again.
    path.write_bytes(whole[:-1])
    torn = reopened(path)
    assert (torn.beside, torn.recovered, torn.is_torn, len(torn)) == ({"lost": 1}, 7, True, 1)
    torn.close()
    assert path.stat().st_size == end_of_first  # what was torn is cut off, and nothing before it


@pytest.mark.parametrize(
    "content",
    [
        b"\2\0\0\0[]",
        b"\1\0\0\0{",
        block({"tasks": []}),
        block({"tasks": [], "beside": [1]}),
        block({"tasks": [[1, 0, 0, 0, 7, "asked"]], "beside": None}, b"result"),
        block({"tasks": [[1, 0, 0, 0, 7, "asked", 7]], "beside": None}, b"result"),
        block({"tasks": [[1, 0, 0, 0, 7, "asked", -1]], "beside": None}, b"result"),
    ],
)
def test_a_record_is_of_tasks_and_what_was_contained_is_an_object(kept, path, content):
    kept._journal.append(content)
    kept.close()
    with pytest.raises(UsageError, match="must hold records of tasks"):
        reopened(path)


# --- what cannot be noted ---


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("replayable", [True, False])
def test_a_full_disk_ends_the_notes_and_of_a_subject_with_its_own_randomness_the_checkpoint(
    path, monkeypatch, replayable
):
    said = []
    kept = open_checkpoint(path, HEADER, resume=False, replayable=replayable)
    kept.on_trouble = said.append
    kept.note(PURPOSE, [(task(0), result(0))], {"lost": 1})
    monkeypatch.setattr(kept._journal, "append", full)
    kept.note(PURPOSE, [(task(1), result(1))])
    kept.note(PURPOSE, [(task(2), result(2))])
    assert kept.trouble == "No space left on device" and len(said) == 1
    assert kept.find(PURPOSE, task(1)) is None
    if replayable:  # the same bits are drawn again
        assert said[0].endswith("the audit goes on. It can be resumed from what was noted before.")
        assert same(kept.find(PURPOSE, task(0)), 0) and kept.path == path and kept.beside == {"lost": 1}
        kept.close()
        assert len(reopened(path)) == 1
    else:  # a second path would be another audit
        assert said[0].endswith("the audit goes on. It cannot be resumed.")
        assert kept.find(PURPOSE, task(0)) is None and not path.exists()
        assert (len(kept), kept.path, kept.beside) == (0, None, None)


@pytest.mark.parametrize("replayable", [True, False])
def test_an_output_that_is_no_plain_value_is_drawn_again_or_ends_the_checkpoint(path, replayable):
    kept = open_checkpoint(path, HEADER, resume=False, replayable=replayable)
    strange = TaskResult((np.array([1]),), read_outputs([Fraction(1, 3), Fraction(2, 3)], 2))
    kept.note(PURPOSE, [(task(0), result(0))])
    kept.note(PURPOSE, [(task(1), result(1)), (task(2), strange)])  # all of them or none
    assert kept.find(PURPOSE, task(1)) is None and kept.find(PURPOSE, task(2)) is None
    kept.note(PURPOSE, [(task(3), result(3))])
    if replayable:
        assert kept.trouble == "" and len(kept) == 2 and same(kept.find(PURPOSE, task(3)), 3)
    else:
        assert "Fraction is no plain value" in kept.trouble and len(kept) == 0 and not path.exists()
    kept.close()


# --- files ---


def test_a_finished_audit_removes_its_file_and_an_interrupted_one_leaves_it(path):
    kept = open_checkpoint(path, HEADER, resume=False, replayable=True)
    kept.close()
    assert path.exists()
    again = reopened(path)
    again.close(finished=True)
    again.close(finished=True)  # it is closed already
    assert not path.exists()
    empty = open_checkpoint(path, HEADER, resume=False, replayable=True)
    empty.close()
    empty.close(finished=True)
    assert path.exists()


def test_a_temporary_checkpoint_has_no_file_until_it_is_saved(path):
    kept = temporary_checkpoint(HEADER, replayable=True)
    kept.note(PURPOSE, [(task(0), result(4))])
    assert kept.path is None and not path.exists()
    assert kept.save(path) == path == kept.path
    assert same(kept.find(PURPOSE, task(0)), 4)
    kept.close()
    again = reopened(path)
    assert same(again.find(PURPOSE, task(0)), 4)
    assert again.save(path.with_name("other")) == path and not path.with_name("other").exists()
    again.close()
    assert again.save(path.with_name("other")) == path  # closed: nothing more to write


def test_a_folder_is_made_and_a_file_in_use_or_that_is_there_is_refused(tmp_path):
    path = tmp_path / "new" / "folder" / "kept"
    kept = open_checkpoint(path, HEADER, resume=False, replayable=True)
    with pytest.raises(UsageError, match="checkpoint"):
        reopened(path)
    kept.close()
    with pytest.raises(UsageError, match=r"checkpoint must be a new file, got .*--resume"):
        open_checkpoint(path, HEADER, resume=False, replayable=True)
    with pytest.raises(UsageError, match="checkpoint must be a file that can be written"):
        open_checkpoint(tmp_path / "new", HEADER, resume=True, replayable=True)
    with pytest.raises(UsageError, match=r"checkpoint must be a readable file, got .*No such file"):
        read_header(tmp_path / "none")
    assert read_header(path) == HEADER


# --- which audit ---


@pytest.mark.parametrize(
    ("there", "here", "said"),
    [
        ({"claim": "eps=2", "promise": "a"}, {"promise": "b"}, "claim: eps=2, here eps=1"),
        ({"promise": "a"}, {"promise": "b"}, "values of the claim differ"),
        ({"inputs": "a", "fingerprint": "a"}, {}, "mechanism's parts differ; inputs of the pairs differ"),
        ({"event_mass": 0.2, "seed": 5}, {}, "event_mass: 0.2, here None; seed: 5, here 3"),
    ],
)
def test_what_differs_is_said_in_words(path, there, here, said):
    open_checkpoint(path, {**HEADER, **there}, resume=False, replayable=True).close()
    with pytest.raises(UsageError) as caught:
        reopened(path, {**HEADER, **here})
    assert f"got {str(path)!r} of another one ({said}). State what it was begun with" in str(caught.value)


# --- plans ---
