"""kill -9 and Ctrl-C in the middle of `dpaudit audit`: what was drawn is kept, and the result is the same."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.running.checkpoint import read_header
from dpaudit.subjects.targets import resolve_target

SUBJECTS = Path(__file__).with_name("scale_subjects.py")
TARGET = f"{SUBJECTS}:slower"
PAIRS = "0,1; 1,2"
SAMPLES, SEED = 15_000, 5  # 2.7 seconds of drawing (asleep): long enough that workers are started
ARGUMENTS = ["audit", TARGET, "--claim", "eps=1", "--pairs", PAIRS, "--samples", str(SAMPLES)]


def evidence(result):
    """All that a result says but for the time; without the texts that the command line was given, which it keeps."""
    return evidence_in(result.to_dict())


def evidence_in(said):
    options = {name: value for name, value in said["options"].items() if name not in ("claim", "pairs")}
    return json.dumps({**said, "options": options, "seconds": 0.0, "environment": None}, sort_keys=True)


def audited(**options):
    pairs = [(0, 1), (1, 2)]
    return dpaudit.audit(resolve_target(TARGET), "eps=1", pairs, samples=SAMPLES, seed=SEED, **options)


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The result of the audit that nothing ended, and the size that its checkpoint came to."""
    path = tmp_path_factory.mktemp("alone") / "kept"
    sizes = []
    result = audited(checkpoint=path, on_progress=lambda state: sizes.append(path.stat().st_size))
    return evidence(result), max(sizes)


def hears_control_c():
    """As in a terminal: a background job of a shell starts its children with the signal ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(arguments, folder, **options):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(
        [sys.executable, "-m", "dpaudit", *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=hears_control_c,
        **options,
    )


def waited_for(process, path, size):
    """Wait until the checkpoint is that large; False if the process ended before."""
    while process.poll() is None:
        if path.exists() and path.stat().st_size >= size:
            return True
        time.sleep(0.005)
    return False


def interrupted_at(monkeypatch, draws):
    """Let the audits of the command line be interrupted when so many draws are told of."""

    def live(*args, **kwargs):
        import contextlib

        @contextlib.contextmanager
        def shown():
            def show(state):
                if state.draws >= draws:
                    raise KeyboardInterrupt

            yield show

        return shown()

    monkeypatch.setattr("dpaudit.reports.progress.live_progress", live)


def test_an_interrupted_audit_is_saved_and_says_how_to_go_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ["audit", f"{SUBJECTS}:labels", "--claim", "eps=1", "--pairs", PAIRS, "--samples", "200"]
    with monkeypatch.context() as patch:
        interrupted_at(patch, 60)
        # Of a seed, though none is stated: with another one a false alarm may come first.
        patch.setattr("dpaudit.audits.auditing.fresh_seed", lambda: 1)
        done = CliRunner().invoke(main, [*arguments, "-q", "--no-floating-point"])
    assert done.exit_code == 130
    lines = done.stderr.splitlines()
    assert lines[0].startswith("Interrupted: ") and "2 of 2 pairs left, 0 violated" in lines[0]
    assert lines[1] == "What was drawn is saved in dpaudit-out/audit.checkpoint. Go on with:"
    words = shlex.split(lines[2])
    assert words[:2] == ["dpaudit", "audit"] and words[-3:] == [
        "--checkpoint",
        "dpaudit-out/audit.checkpoint",
        "--resume",
    ]
    assert "--no-floating-point" in words and "--quiet" in words and len(lines) == 3
    header = read_header("dpaudit-out/audit.checkpoint")
    again = CliRunner().invoke(main, [*words[1:], "--report", "json", "--out", "again"])
    found = json.loads(Path("again/audit.json").read_text())
    straight = [*arguments, "-q", "--no-floating-point", "--seed", str(header["seed"]), "--report", "json"]
    without = CliRunner().invoke(main, [*straight, "--out", "straight"])
    assert again.exit_code == without.exit_code, again.output
    assert {**json.loads(Path("straight/audit.json").read_text()), "seconds": 0} == {**found, "seconds": 0}
    assert not Path("dpaudit-out/audit.checkpoint").exists()


def test_an_interruption_before_the_first_draw_saves_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpaudit.audits.auditing.stated_pairs", interrupted)
    done = CliRunner().invoke(main, [*ARGUMENTS, "-q"])
    assert (done.exit_code, done.stderr) == (130, "Interrupted.\n")
    assert list(tmp_path.iterdir()) == []


def test_of_several_targets_the_one_that_was_audited_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dpaudit-out").mkdir()
    (tmp_path / "dpaudit-out" / "taken").write_text("x")
    others = [f"{SUBJECTS}:labels", f"{SUBJECTS}:without_a_seed"]
    interrupted_at(monkeypatch, 60)
    # Of a seed: a false alarm would end the first audit before it is interrupted.
    options = ["--claim", "eps=1", "--pairs", "0,1", "--samples", "200", "--seed", "1", "-q"]
    done = CliRunner().invoke(main, ["audit", *others, *options])
    lines = done.stderr.splitlines()
    assert done.exit_code == 130 and lines[3] == f"Not audited: {others[1]}."
    assert others[0] in shlex.split(lines[2]) and others[1] not in shlex.split(lines[2])
    refused = CliRunner().invoke(main, ["audit", *others, "--claim", "eps=1", "--pairs", "0,1", "--progress", "c"])
    assert refused.exit_code == 2 and "progress must be of one target, got 'c' for 2." in refused.stderr


@pytest.mark.long
@pytest.mark.parametrize("jobs", [1, 2])
def test_control_c_ends_the_audit_and_its_workers_with_one_message(tmp_path, alone, jobs):
    expected, size = alone
    path = tmp_path / "kept"
    arguments = [*ARGUMENTS, "--seed", str(SEED), "--checkpoint", str(path), "--jobs", str(jobs)]
    process = started(arguments, tmp_path)
    assert waited_for(process, path, size // 3)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers as well
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130 and out == ""
    lines = err.splitlines()
    assert lines[0].startswith("Auditing ") and lines[1].startswith("Interrupted: ") and len(lines) == 4, err
    again = started([*shlex.split(lines[-1])[1:], "--report", "json"], tmp_path)
    again.communicate(timeout=600)
    found = json.loads((tmp_path / "dpaudit-out" / "audit.json").read_text())
    assert evidence_in(found).replace(TARGET, "") == expected.replace(TARGET, "")
    assert no_process_of_group(process.pid)


@pytest.mark.parametrize("times", [1, 2])
def test_a_termination_saves_what_was_drawn_as_control_c_does(tmp_path, times):
    (tmp_path / "slow.py").write_text(
        "import time\ndef f(data, rng):\n    time.sleep(0.002)\n    return data + rng.laplace()\n"
    )
    options = ["--claim", "eps=1", "--pairs", "0,1", "--seed", "3", "--no-floating-point", "--checkpoint", "kept"]
    process = started(["audit", "slow.py:f", *options], tmp_path)
    assert waited_for(process, tmp_path / "kept", 3_000)
    for _ in range(times):  # `timeout` sends the signal to the process and then to its group
        os.kill(process.pid, signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (143, "")
    lines = err.splitlines()
    assert lines[1].startswith("Interrupted: ") and lines[2] == "What was drawn is saved in kept. Go on with:"
    assert (tmp_path / "kept").exists() and len(lines) == 4, err


def test_a_process_that_a_subject_forks_still_ends_by_a_termination(tmp_path):
    (tmp_path / "forks.py").write_text(
        "import os, signal, time\n"
        "def f(data):\n    pid = os.fork()\n    if pid == 0:\n        time.sleep(60)\n        os._exit(0)\n"
        "    os.kill(pid, signal.SIGTERM)\n    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
    )
    options = ["--claim", "eps=1", "--pairs", "0,1", "--samples", "50", "-q", "--no-floating-point"]
    options += ["--out", "o", "--report", "json"]
    process = started(["audit", "forks.py:f", *options], tmp_path)
    process.communicate(timeout=600)
    notes = dpaudit.load(tmp_path / "o" / "audit.json").findings[0].notes
    assert any("-15" in note for note in notes), notes


def no_process_of_group(group):
    for _ in range(6_000):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False
