"""What a call raises is its outcome, whatever it is, unless somebody else raised it; only a verdict exits with 1.

So is what an output raises when it is looked at, also where it looks like an interrupt of a person.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from fractions import Fraction

import click
import numpy as np
import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit.cli import main
from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import canonical, number_of
from dpaudit.running.streams import DRAWS, stream
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import as_subject
from dpaudit.subjects.plain import seen
from dpaudit.subjects.tracebacks import OWN_FOLDER
from dpaudit.symbolic.tracing import Suspended

HUGE = 10**5_000


class Rude(BaseException):
    pass


@pytest.mark.parametrize("kind", [asyncio.CancelledError, Rude, GeneratorExit, SystemExit, RecursionError])
def test_whatever_a_call_raises_is_its_outcome(kind):
    def raises_on_1(data, rng):
        if data == 1.0:
            raise kind("stop")
        return float(rng.laplace())

    # One input always raises, the other never: violated after some 20 of the 400 draws, whatever the seed.
    result = dpaudit.audit(raises_on_1, "eps=1", [(0.0, 1.0)], samples=200, seed=1, floating_point=False)
    assert result.verdict == "violated" and kind.__name__ in result.findings[0].notes[0]


@pytest.mark.parametrize("signature", ["one by one", "batch"])
def test_what_a_signal_handler_raises_is_no_outcome(signature):
    class TooLate(Exception):
        pass

    def too_late(number, frame):
        raise TooLate("the audit")

    calls = []

    def slow(data, rng):
        calls.append(data)
        if len(calls) == 30:
            os.kill(os.getpid(), signal.SIGALRM)  # as an alarm that was set before the audit
        return float(rng.laplace())

    def slow_batch(data, size, rng):
        return np.array([slow(data, rng) for _ in range(size)])

    before = signal.signal(signal.SIGALRM, too_late)
    try:
        with pytest.raises(TooLate, match="the audit"):
            dpaudit.audit(slow if signature == "one by one" else slow_batch, "eps=1", [(0.0, 1.0)], samples=200, seed=1)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_time_limit_of_the_mechanisms_own_is_an_outcome():
    def within(data, rng):
        def give_up(number, frame):
            raise TimeoutError("of its own")

        before = signal.signal(signal.SIGALRM, give_up)
        try:
            if data == 1.0:
                os.kill(os.getpid(), signal.SIGALRM)
            return float(rng.laplace())
        finally:
            signal.signal(signal.SIGALRM, before)

    result = dpaudit.audit(within, "eps=1", [(0.0, 1.0)], samples=200, seed=1, floating_point=False)
    assert result.verdict == "violated" and "TimeoutError" in result.findings[0].notes[0]


# --- exit statuses ---

BREAKS = {
    "a call": "import asyncio\ndef f(data, rng): raise asyncio.CancelledError\n",
    "a batch": "import asyncio\ndef f(data, size, rng): raise asyncio.CancelledError\n",
    "an import": "import asyncio\nraise asyncio.CancelledError\ndef f(data, rng): return 0.0\n",
    "the pairs": "import asyncio\ndef f(data, rng): return 0.0\ndef pairs(): raise asyncio.CancelledError\n",
}


@pytest.mark.parametrize("place", BREAKS)
@pytest.mark.parametrize("command", ["audit", "check", "plan"])
def test_nothing_but_a_verdict_exits_with_1(tmp_path, monkeypatch, place, command):
    monkeypatch.chdir(tmp_path)
    name = f"wcr_{place.replace(' ', '_')}"
    (tmp_path / f"{name}.py").write_text(BREAKS[place])
    pairs = f"{name}.py:pairs" if place == "the pairs" else "0,1"
    options = ["--only", "claim_audit"] if command == "check" else []
    outcome = CliRunner().invoke(main, [command, f"{name}.py:f", "--claim", "eps=1", "--pairs", pairs, *options])
    assert outcome.exit_code in (2, 3, 5), outcome.output
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)


ERRORS = [click.Abort(), click.ClickException("no"), click.FileError("x"), Rude("no"), EOFError()]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_no_error_of_a_command_exits_with_1(monkeypatch, error):
    def fails(*arguments, **options):
        raise error

    monkeypatch.setattr(main.commands["claims"], "callback", fails)
    outcome = CliRunner().invoke(main, ["claims"])
    assert outcome.exit_code in (2, 3, 130)


@pytest.mark.parametrize("arguments", [["--help"], ["claims"]], ids=" ".join)
def test_a_reader_that_leaves_does_not_make_it_1(arguments):
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "dpaudit", *arguments]
    found = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert found.returncode in (0, 141) and not found.stderr


# --- outputs ---


MADE = {"int": int, "fraction": lambda k: Fraction(k, 3), "in a list": lambda k: {"a": [k]}}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_integers_of_more_digits_than_python_prints_are_outputs(made):
    def release(data, rng):  # long tokens keep their start, where these differ
        return made(HUGE * (int(data) + int(rng.integers(1, 3))))

    # Disjoint outputs, which are found in 400 draws whatever the seed.
    result = dpaudit.audit(release, "eps=1", [(0, 5)], samples=200, seed=1, floating_point=False)
    assert result.verdict == "violated"
    json.dumps(result.to_dict(), allow_nan=False)


def test_large_numbers_have_tokens_by_their_value():
    assert canonical(HUGE) != canonical(HUGE + 1) and canonical(-HUGE) == hex(-HUGE)
    assert canonical(Fraction(1, 3)) == "Fraction(1, 3)" and canonical(Fraction(HUGE)) != canonical(Fraction(2 * HUGE))
    assert [number_of(value) for value in (HUGE, -HUGE, Fraction(-HUGE, 3))] == [np.inf, -np.inf, -np.inf]


# --- generators ---


def test_streams_keep_their_bits_and_spawn_what_no_other_stream_spawns():
    plain = np.random.default_rng(np.random.SeedSequence(7, spawn_key=(DRAWS, 3, 1)))
    assert np.array_equal(stream(7, DRAWS, 3, 1).integers(2**63, size=50), plain.integers(2**63, size=50))
    streams = [stream(root, purpose, place) for root in (7, 8) for purpose in range(4) for place in range(4)]
    spawned = [int(child.integers(2**63)) for rng in streams for child in rng.spawn(3)]
    assert len(set(spawned)) == len(spawned)
    assert spawned[0] == int(stream(7, 0, 0).spawn(1)[0].integers(2**63))  # and the same every time


# --- outputs that raise ---


class Awkward(list):
    def __init__(self, error):
        super().__init__([1.0])
        self.error = error

    def __iter__(self):
        raise self.error

    __len__ = __reduce_ex__ = __repr__ = lambda self, *_: self.__iter__()


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError, GeneratorExit, MemoryError])
def test_an_exception_of_an_output_is_of_the_mechanism(error):
    with pytest.raises(SubjectError, match="an output must be readable"):
        seen(Awkward(error))

    def yields(data, rng):
        yield 1.0
        raise error

    (found,) = as_subject(yields).sample(0.0, 1, np.random.default_rng(1))
    assert found == [1.0, Failed(error.__name__, "")]


class Shy:
    """Raises whatever is asked of it: its class, its items, its copy."""

    def __getattribute__(self, name):
        raise KeyboardInterrupt


@pytest.mark.parametrize("wrapped", [lambda one: one, lambda one: [1.0, one], lambda one: {"a": one}])
def test_an_output_that_interrupts_at_every_look_ends_no_audit(wrapped):
    def release(data, rng):
        return wrapped(Shy())

    def batches(data, size, rng):
        return [wrapped(Shy()) for _ in range(size)]

    for mechanism in (release, batches):
        found = dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=60, seed=1, floating_point=False)
        assert found.verdict in ("error", "inconclusive")


class Slow(list):
    def __iter__(self):
        try:
            for _ in range(1_000):
                time.sleep(0.01)
        except KeyboardInterrupt:
            raise  # as a mechanism may, that tidies up first
        return iter(())


def test_an_interrupt_of_a_person_still_ends_what_is_running():

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            seen(Slow([[1.0]]))
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_ends_a_run_in_the_middle_is_not_of_the_output():
    def end(self, *_):
        raise Suspended

    own = types.FunctionType(end.__code__.replace(co_filename=f"{OWN_FOLDER}ends.py"), globals())

    class Reads(list):
        __iter__ = __len__ = __reduce_ex__ = __repr__ = own

    with pytest.raises(Suspended):
        seen(Reads())
