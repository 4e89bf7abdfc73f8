"""A journal is whole up to its last record, whatever ended its writer, and is read by nobody else."""

import errno
import io
import os
import stat
import sys

import pytest

from dpaudit.errors import UsageError
from dpaudit.running.journal import FRAME, Journal, _framed, lock, open_private

FORM = b"a journal 3\n"
HEADER = {"of": "this" * 99, "seed": 7}
CONTENTS = [b"first", b"\0", b"a longer one" * 30, b"\xff" * 9]


def written(stream):
    journal = Journal(stream, FORM, HEADER)
    ends = [journal.end]
    ends += [journal.append(content) + len(content) for content in CONTENTS]
    return journal, ends


@pytest.mark.parametrize("header", [HEADER, {"of": "this"}, {"of": "this", "seed": 7}, {}], ids=len)
def test_a_header_is_written_once_and_read_back(header):
    stream = io.BytesIO()
    start = Journal(stream, FORM, header).append(b"one")
    for again in (Journal(stream, FORM, {"of": "another"}), Journal(stream, FORM)):
        assert (again.header, again.begin, again.end) == (header, start - FRAME.size, start + len(b"one"))


def test_torn_at_any_byte_it_ends_with_the_last_whole_record():
    stream = io.BytesIO()
    _, ends = written(stream)
    whole = stream.getvalue()
    for size in range(ends[0], len(whole) + 1):
        torn = Journal(io.BytesIO(whole[:size]), FORM, HEADER)
        kept = sum(end <= size for end in ends[1:])
        assert [content for _, content in torn.records()] == CONTENTS[:kept]
        assert torn.cut(ends[kept]) == (size > ends[kept])
        torn.append(b"next")
        assert [content for _, content in torn.records()] == [*CONTENTS[:kept], b"next"]


def test_zeros_behind_the_last_record_are_torn():
    # As a power cut leaves a file whose size was noted before its bytes: a frame of zeros is no empty record.
    stream = io.BytesIO()
    _, ends = written(stream)
    for zeros in (1, FRAME.size, 4_096):
        torn = Journal(io.BytesIO(stream.getvalue() + bytes(zeros)), FORM, HEADER)
        assert [content for _, content in torn.records()] == CONTENTS
        assert torn.cut(ends[-1])


def test_a_changed_byte_ends_it_there():
    stream = io.BytesIO()
    _, ends = written(stream)
    whole = bytearray(stream.getvalue())
    for place in range(ends[2], ends[3]):
        changed = whole.copy()
        changed[place] ^= 1
        found = [content for _, content in Journal(io.BytesIO(bytes(changed)), FORM, HEADER).records()]
        assert found == CONTENTS[:2]


def test_no_more_is_asked_of_the_file_than_it_has():
    """A length is what the file says: 4 GiB were made room for."""
    asked = []

    class Asked(io.BytesIO):
        def read(self, size=-1):
            asked.append(size)
            return super().read(size)

    stream = Asked()
    journal, _ = written(stream)
    journal._write(FRAME.pack(2**32 - 1, 0))
    assert [content for _, content in journal.records()] == CONTENTS
    assert 0 < max(asked) <= len(stream.getvalue())


def test_records_are_on_the_disk_after_some_seconds(tmp_path, monkeypatch):
    clock, synced = [1_000.0], []
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    monkeypatch.setattr("os.fsync", lambda file: synced.append(clock[0]))
    with open_private(tmp_path / "journal") as stream:
        journal = Journal(stream, FORM, HEADER)
        for now in (1_001.0, 1_004.0, 1_006.0, 1_007.0, 1_010.0, 1_012.0):
            clock[0] = now
            journal.append(b"one")
        assert synced == [1_006.0, 1_012.0]
        journal.close()
    assert synced[2:] == [1_012.0]  # and what is left when it is closed


def test_on_a_full_disk_it_is_as_before():
    class Full(io.BytesIO):
        room = 10**6

        def write(self, data):
            if self.tell() + len(data) > self.room:
                super().write(data[: self.room - self.tell()])
                raise OSError(errno.ENOSPC, "No space left on device")
            return super().write(data)

    stream = Full()
    journal, ends = written(stream)
    stream.room = ends[-1] + 11
    with pytest.raises(OSError, match="No space left"):
        journal.append(b"does not fit")
    assert journal.end == ends[-1] == len(stream.getvalue())
    assert [content for _, content in journal.records()] == CONTENTS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "its first line is another one"),
        (b"something else\n", "its first line is another one"),
        (b"a journal 2\n" + _framed(b'{"dpaudit": "0.1.0"}'), "of dpaudit 0.1.0, .*: finish it with that version"),
        (b"a journal 2\n", "of dpaudit of another version, .* or remove it and begin"),
        (FORM, "its header is torn"),
        (FORM + _framed(b"{}")[:-1], "its header is torn"),
        (FORM + FRAME.pack(9, 0), "its header is torn"),  # 0 is the checksum of nothing
        (FORM + _framed(b"no json"), "Expecting value"),
    ],
)
def test_what_is_no_journal_of_this_form_is_refused_with_what_to_do(content, said):
    with pytest.raises(ValueError, match=said):
        Journal(io.BytesIO(content), FORM)


def test_a_file_is_its_owners_and_has_one_writer(tmp_path):
    path = tmp_path / "journal"
    before = os.umask(0)
    try:
        with open_private(path) as stream:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            lock(stream, path, "journal")
            stream.write(b"kept")
            with open_private(path) as other, pytest.raises(UsageError, match="journal must be used by one audit at a"):
                lock(other, path, "journal")
        with open_private(path) as stream:
            assert stream.read() == b"kept"
    finally:
        os.umask(before)


def test_a_system_without_locks_goes_on_without(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with open_private(tmp_path / "journal") as one, open_private(tmp_path / "journal") as other:
        lock(one, tmp_path / "journal", "journal")
        lock(other, tmp_path / "journal", "journal")
