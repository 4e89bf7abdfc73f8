"""What isolation contained before an audit was interrupted is known to the one that goes on."""

import json
import os

import pytest

import dpaudit
from dpaudit.running.checkpoint import read_header
from dpaudit.subjects.isolation.subject import Record


class EndsOnce:
    """Ends the process of its first calls on 1, and never again: a file remembers."""

    def __init__(self, folder, times=3):
        self.folder, self.times = folder, times

    def __call__(self, data, rng):
        output = float(data + rng.laplace())
        done = len(os.listdir(self.folder))
        if data == 1.0 and done < self.times:
            (self.folder / str(done)).touch()
            os._exit(7)
        return output


def interrupted(rounds):
    left = [rounds]

    def on_progress(state):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    return on_progress


def contained(result):
    (found,) = [one for one in result.side_findings if one.kind == "containment"]
    return found


def test_lost_calls_are_known_after_a_resume(tmp_path):
    folder, path = tmp_path / "ends", tmp_path / "kept"
    folder.mkdir()
    stated = {"samples": 1_500, "seed": 3, "isolation": "seconds=600", "checkpoint": path, "confidence": 0.999}
    audit = (EndsOnce(folder), "eps=1", [(0.0, 1.0)])
    with pytest.raises(KeyboardInterrupt):
        dpaudit.audit(*audit, **stated, on_progress=interrupted(6))
    assert len(os.listdir(folder)) == 3 and read_header(path)
    result = dpaudit.audit(*audit, **stated, resume=True)
    found = contained(result)
    assert found.details["ended"] == {"1.0": {"exit 7": 3}} and "did not come back" in found.summary
    assert sum(found.details["calls"].values()) >= max(finding.samples for finding in result.findings)
    # What was lost keeps its consequences: nothing is compared between workers, no time may tell an input.
    assert result.floating_point.verdict == "not_applicable"
    independence = next(one for one in result.side_findings if one.kind == "independence")
    assert independence.status == "not_applicable"


def test_inputs_keep_their_keys_and_new_ones_get_others():
    record = Record()
    assert [record.key_of(content, k, "same") for k, content in enumerate([b"a", b"a", b"b"])] == [0, 1, 2]
    record.calls.update([0, 1, 1, 2])
    record.note("printed", [1])
    again = Record.from_dict(json.loads(json.dumps(record.to_dict(2))))
    assert (again.calls, again.seen, again.in_blocks["processes"]) == (record.calls, record.seen, 2)
    assert [again.key_of(content, again.next_key, "x") for content in (b"b", b"a", b"a", b"a")] == [2, 0, 1, 3]


@pytest.mark.parametrize(
    "change",
    [{"inputs": 1}, {"inputs": [[0]]}, {"calls": [[0, -1]]}, {"calls": [[5, 1]]}, {"ended": [[0, []]]}, {"seen": [1]},
     {"lost": "x"}, {"returned": True}, {"in_blocks": {"a": 1.5}}],
    ids=str,
)  # fmt: skip
def test_a_record_of_another_form_is_refused(change):
    record = Record()
    record.key_of(b"a", 0, "a")
    with pytest.raises(dpaudit.UsageError, match="checkpoint must hold what was contained"):
        Record.from_dict({**record.to_dict(), **change})
