"""Isolation: limits, plain data, the same draws as without it, and the order of calls."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import enum
import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
import weakref
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hostile_subjects import PIDS

import dpaudit
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.features.outcomes import canonical, from_objects
from dpaudit.subjects.call_outcomes import Ended, Failed
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.isolation import Isolation, as_isolation, isolated
from dpaudit.subjects.plain import PlainWriter, TooLarge, packed, unpacked

HERE = Path(__file__).parent
COUNT = [0]
GENERATOR = np.random.default_rng(3)


@dataclasses.dataclass
class Point:
    x: float
    tags: set[str]


class Colour(enum.Enum):
    RED = 1


class Plain:
    def __init__(self) -> None:
        self.value = [1, None]


def release(data: Any, rng: np.random.Generator) -> float:
    return float(data + rng.laplace())


def releases(data: Any, size: int, rng: np.random.Generator) -> Any:
    return data + rng.laplace(size=size)


RAISED: list[weakref.ref[Exception]] = []


class Large(Exception):
    """Stands for an exception whose frames hold much."""


def large() -> Large:
    error = Large()
    RAISED.append(weakref.ref(error))
    return error


def still_there(data: Any, rng: np.random.Generator) -> float:
    """How many exceptions of earlier calls are still there, without a collection of cycles; for -1.0: raise one."""
    gc.disable()
    if data < 0.0:
        raise large()
    return float(sum(error() is not None for error in RAISED) if RAISED else -1)


def by_the_slot(data: Any, rng: np.random.Generator) -> bool:
    """The machine's load, as it were: depends on when the call is made, and not on the input."""
    COUNT[0] += 1
    return bool(COUNT[0] // 60 % 2)


def test_limits_have_a_short_form() -> None:
    stated = Isolation(seconds_a_call=0.1234567, memory="512M", output=4096, patience=5, timing=200)
    assert Isolation.parse(str(stated)) == stated
    assert as_isolation("on") == as_isolation(True) == Isolation()
    assert as_isolation(None) is None and as_isolation(False) is None and as_isolation("off") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seconds=0", "seconds_a_call of isolation must be a positive number of seconds, got 0.0"),
        ("memory=5", "memory of isolation must be 1,048,576 bytes or more, such as '512M', got '5'"),
        ("output=x", "output of isolation must be 4,096 bytes or more"),
        ("timing=3", "timing of isolation must be 0 or at least 100 calls, got 3"),
        ("timing=a", "timing of isolation must be a number, got 'a'"),
        ("secs=1", "isolation must be 'on' or limits seconds="),
        ("seconds=1,seconds=2", "each once"),
    ],
)
def test_limits_that_make_no_sense_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        as_isolation(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "value",
    [None, True, 7, -(10**40), 1.5, float("nan"), -0.0, 1 + 2j, "text", b"bytes", (1, [2, {"a": {3}}]), frozenset("ab"),
     np.arange(6.0).reshape(2, 3), np.float32(0.1), np.int64(3), np.bool_(True), np.datetime64("2020-01-01"),
     Decimal("1.5"), Point(1.0, {"b", "a"}), Colour.RED, int, Plain(), Failed("ValueError", "no"),
     Ended("time-out", ""), object(), range(3), {"k": Point(2.0, set())},
     datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), datetime.timedelta(1), pd.NaT,
     pd.Timestamp("2020-01-01"), pd.Series([1.0, 2.0]), {"table": pd.DataFrame({"a": [1.0], "b": ["x"]})},
     np.ma.masked_array([1.0, 2.0], [False, True])],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_plain_data_has_the_tokens_and_numbers_of_the_output_itself(value: Any) -> None:
    crossed = unpacked(packed(PlainWriter(1 << 20).plain(value)))
    if not isinstance(value, np.ma.MaskedArray):
        assert canonical(crossed) == canonical(value)
        ours, theirs = from_objects([value]), from_objects([crossed])
        np.testing.assert_array_equal(ours.numbers, theirs.numbers)
    else:
        assert crossed == [1.0, None]


def test_plain_data_is_limited_and_knows_no_other_class() -> None:
    with pytest.raises(TooLarge):
        PlainWriter(100).plain("x" * 100)
    with pytest.raises(ValueError, match="plain data must be readable"):
        unpacked(packed(Path("/")))


@pytest.mark.parametrize("subject", [release, releases])
@pytest.mark.parametrize("mode", ["sequential", "fixed"])
def test_a_sound_subject_has_the_same_result_with_and_without_isolation(subject: Any, mode: Any) -> None:
    stated = {"samples": 300, "seed": 4, "mode": mode, "floating_point": False}
    plain = dpaudit.audit(subject, "eps=1", [(0.0, 1.0)], **stated)
    contained = dpaudit.audit(subject, "eps=1", [(0.0, 1.0)], isolation="seconds=20", **stated)
    # The order of outputs differs, of which only what is fitted may depend: the verdict does not, at this seed.
    assert contained.verdict == plain.verdict
    assert contained.samples == plain.samples
    assert contained.options["isolation"].startswith("seconds=20,")
    assert contained.subject["interface"].startswith("isolated, f(data")
    assert contained.side_findings[0].status == "nothing_found"


def test_a_generator_of_the_caller_moves_on_and_draws_are_those_of_the_subject() -> None:
    with isolated(as_subject(release), Isolation()) as subject:
        rng = np.random.default_rng(1)
        first, second = subject.sample(0.0, 4, rng), subject.sample(0.0, 4, rng)
    assert first == as_subject(release).sample(0.0, 4, np.random.default_rng(1))
    assert not set(first) & set(second)


def test_a_new_worker_does_not_repeat_the_noise_of_the_last_one() -> None:
    with isolated(as_subject(lambda data: float(data + GENERATOR.laplace())), Isolation()) as subject:
        first = subject.sample(0.0, 4, np.random.default_rng(1))
        subject._proxy().recycle()
        second = subject.sample(0.0, 4, np.random.default_rng(2))
    assert not set(first) & set(second)


def test_a_process_that_holds_a_weak_proxy_of_what_is_gone_starts_workers() -> None:
    gone = weakref.proxy(Plain())
    with isolated(as_subject(release), Isolation()) as contained:
        assert len(contained.sample(0.0, 3, np.random.default_rng(1))) == 3
    del gone


def test_a_call_that_was_late_and_ended_its_worker_is_counted() -> None:
    def late_and_deaf(data: Any, rng: np.random.Generator) -> float:
        os.closerange(3, 64)
        time.sleep(0.055)
        return 0.0

    with isolated(as_subject(late_and_deaf), Isolation(seconds_a_call=0.05)) as subject:
        assert subject.sample(0, 3, np.random.default_rng(1)) == [Ended("time-out", "")] * 3
        assert subject.shared.record.ended[0] == {"time-out": 3}


def test_what_a_call_writes_into_the_channel_is_passed_over() -> None:
    def writes(data: Any, rng: np.random.Generator) -> float:
        for handle in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(handle, b"garbage")
        return release(data, rng)

    with isolated(as_subject(writes), Isolation()) as subject:
        outcomes = subject.sample(0.0, 20, np.random.default_rng(1))
    assert outcomes == as_subject(release).sample(0.0, 20, np.random.default_rng(1))


def test_a_closed_subject_keeps_nothing_of_its_workers() -> None:
    subject = isolated(as_subject(lambda data, rng: float(rng.laplace())), Isolation())
    proxies = []
    for _ in range(3):
        subject.sample(0, 1, np.random.default_rng(1))
        proxies.append(weakref.ref(subject.shared.proxy))
        subject.close()
    gc.collect()
    assert [proxy() for proxy in proxies] == [None] * 3


def test_a_forked_copy_of_the_auditor_leaves_its_workers_alone() -> None:
    with isolated(as_subject(lambda data, rng: float(os.getpid())), Isolation()) as subject:
        first = subject.sample(0, 1, np.random.default_rng(1))
        copy = os.fork()
        if copy == 0:
            try:
                subject.close()
            finally:
                os._exit(0)
        os.waitpid(copy, 0)
        assert subject.sample(0, 1, np.random.default_rng(1)) == first


def test_calls_of_a_round_are_made_in_one_random_order() -> None:
    parts = [(0.0, 300, np.random.default_rng(1)), (1.0, 300, np.random.default_rng(2))]
    with isolated(as_subject(release), Isolation()) as subject:
        order, outcomes, seconds = subject.in_random_order(parts)
    assert len(outcomes) == len(seconds) == 600 and sorted(order.tolist()) == [0] * 300 + [1] * 300
    # Of 599 neighbours half differ; fewer than 230 or more than 370 have probability below 1e-7 in a random order.
    assert 230 < np.sum(order[1:] != order[:-1]) < 370


def under_load(data: Any, rng: np.random.Generator) -> bool:
    """Slots of high load: where an audit of 200 samples that draws input by input is at its second input."""
    COUNT[0] += 1
    return 30 < COUNT[0] <= 60 or COUNT[0] > 230


def test_what_depends_on_the_slot_alone_does_not_look_like_a_leak() -> None:
    stated = {"samples": 200, "seed": 4, "confidence": 0.99, "mode": "fixed", "floating_point": False}
    for isolation in (False, True):  # calls come in one random order in either case
        COUNT[0] = 0
        result = dpaudit.audit(under_load, "eps=0.5", [(0.0, 1.0)], isolation=isolation, **stated)
        assert result.verdict != "violated"  # alarm: 0.01 at most, at this seed


@pytest.mark.long
def test_what_depends_on_the_slot_alone_alarms_no_more_often_than_promised() -> None:
    # 200 audits at confidence 0.8: at most 40 alarms are expected, more than 61 have probability below 2e-4.
    alarms = 0
    for seed in range(200):
        COUNT[0] = seed
        result = dpaudit.audit(by_the_slot, "eps=0.1", [(0.0, 1.0), (0.0, 2.0)], samples=120, seed=seed, confidence=0.8,
                               floating_point=False, isolation=True)  # fmt: skip
        alarms += result.verdict == "violated"
    print(f"alarms on what depends on the slot: {alarms} of 200 at 0.2")
    assert alarms <= 61


def test_a_worker_keeps_no_exception_of_its_calls() -> None:
    subject = isolated(as_subject(still_there), Isolation())
    rng = np.random.default_rng(0)
    assert {outcome.kind for outcome in subject.sample(-1.0, 3, rng)} == {"Large"}
    assert list(subject.sample(1.0, 2, rng)) == [0.0, 0.0]


def test_a_table_of_all_pairs_of_an_isolated_subject_that_is_called_once_a_draw_is_refused() -> None:
    pairs = dpaudit.all_pairs([float(k) for k in range(80)])
    with pytest.raises(
        UsageError, match=r"isolation must not be given with a table of all pairs, .* made in one random order"
    ):
        dpaudit.audit(release, "eps=1", pairs, isolation=True)


def test_a_witness_is_replayed_in_isolation() -> None:
    def leaves(data: Any, rng: np.random.Generator) -> float:
        if data == 1.0 and rng.random() < 0.7:
            os._exit(1)
        return float(rng.laplace())

    result = dpaudit.audit(leaves, "eps=1", [(0.0, 1.0)], samples=100, seed=1, isolation=True, floating_point=False)
    assert result.verdict == "violated"
    assert dpaudit.replay(result, leaves, dpaudit.PureDP(1.0), samples=60, seed=2).confirmed


SCRIPT = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs begin with SIGINT ignored
sys.path.insert(0, sys.argv[1])
import hostile_subjects, dpaudit
def waits(data, rng):
    hostile_subjects.hides_a_process(0.0, rng)
    with open(os.environ[hostile_subjects.PIDS], "a") as pids:
        pids.write(f"{os.getpid()}\\n{os.getppid()}\\n")
    print("not to be seen", flush=True)
    time.sleep(1000)
dpaudit.audit(waits, "eps=1", [(0.0, 1.0)], isolation="seconds=100")
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "SIGINT"])
def test_nothing_is_left_when_the_auditor_is_killed(number: signal.Signals, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    environment = {**os.environ, PIDS: str(pids)}
    auditor = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(HERE)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    until = time.monotonic() + 600  # no verdict: what hangs is a failure at last
    while not (pids.exists() and len(pids.read_text().split()) >= 3):
        assert time.monotonic() < until and auditor.poll() is None
        time.sleep(0.02)
    auditor.send_signal(number)
    printed, _ = auditor.communicate(timeout=600)
    assert printed == b""
    known = [int(text) for text in pids.read_text().split()]
    while any(os.path.exists(f"/proc/{pid}") for pid in known):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.long
def test_workers_of_joblib_have_workers_of_their_own() -> None:
    stated = {"samples": 150_000, "seed": 4, "mode": "fixed", "floating_point": False, "isolation": True}
    one = dpaudit.audit(releases, "eps=1", [(0.0, 1.0)], **stated)
    two = dpaudit.audit(releases, "eps=1", [(0.0, 1.0)], jobs=2, **stated)
    assert one.findings == two.findings


def test_outcomes_do_not_depend_on_the_room_for_them():
    def released(data, rng):  # a large one does not fit behind others of its request
        return b"x" * 3_900 if rng.random() < data else b"y"

    def drawn(output):
        subject = isolated(as_subject(released), Isolation(output=output))
        outcomes = subject.sample(0.5, 600, np.random.default_rng(1))
        subject.close()
        return outcomes

    outcomes = drawn(4_096)
    assert outcomes == drawn("64M") and {len(one) for one in outcomes} == {1, 3_900}


# --- `dpaudit audit --isolation`, and the same in [tool.dpaudit] ---

MODULE = """
import os
def leaves(data, rng):
    print("not to be seen")
    if data == 1:
        os._exit(7)
    return float(rng.laplace())
"""


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    (folder / "isolated_subject.py").write_text(MODULE)
    monkeypatch.chdir(folder)
    command = ["audit", "isolated_subject.py:leaves", "--claim", "eps=1", "--pairs", "0,1", "--samples", "100"]
    return CliRunner().invoke(main, [*command, "--seed", "1", "--no-floating-point", *arguments])


def test_the_command_line_isolates_a_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(tmp_path, monkeypatch, "--isolation=seconds=5", "--out", "reports", "--report", "json")
    assert result.exit_code == 1
    assert "not to be seen" not in result.output
    shown = " ".join(result.output.split())
    assert re.search(r"found\. (\d+) of \1 calls on 1 did not come back \(\1 by exit 7\)", shown)
    saved = json.loads((tmp_path / "reports" / "audit.json").read_text())
    assert saved["options"]["isolation"] == "seconds=5,memory=1G,output=64M,patience=60,timing=0"
    assert set(saved["side_findings"][0]["details"]["ended"]["1"]) == {"exit 7"}


def test_the_project_states_the_isolation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nisolation = true\n")
    assert run(tmp_path, monkeypatch).exit_code == 1
    (tmp_path / "pyproject.toml").write_text("[tool.dpaudit]\nisolation = 3\n")
    result = run(tmp_path, monkeypatch)
    assert result.exit_code == 2 and "isolation must be true, false or a text" in result.output
