"""Calls that are broken off when their time is over, whatever they catch; each ends by itself after some seconds."""

import contextlib
import signal
import statistics
import sys
import threading
import time

import pytest

import dpaudit
from dpaudit.errors import OutOfTimeError
from dpaudit.subjects.call_limits import interrupted
from dpaudit.subjects.tracebacks import OWN_FOLDER

PATIENCE = 5.0  # seconds of the processor in which a loop that is not broken off ends by itself


class Over(BaseException):
    pass


def over():
    raise Over


# As a function of the package: what is called by it is of the user's code, and what calls it is not.
PACKAGES = """
def broken_off(seconds, call):
    with interrupted(monotonic() + seconds, over):
        return call()
"""
SPACE = {"interrupted": interrupted, "monotonic": time.monotonic, "over": over}
exec(compile(PACKAGES, f"{OWN_FOLDER}caller.py", "exec"), SPACE)
broken_off = SPACE["broken_off"]


def catches_in_two_loops(goes_on):
    while goes_on():
        try:
            while goes_on():
                try:
                    while goes_on():
                        pass
                except BaseException:
                    pass
        except BaseException:
            pass


def suppresses(goes_on):
    while goes_on():
        with contextlib.suppress(BaseException):
            while goes_on():
                statistics.mean([1, 2, 3])


def sleeps_and_catches(goes_on):
    while goes_on():
        with contextlib.suppress(BaseException):
            time.sleep(PATIENCE)


def catches_nothing(goes_on):
    while goes_on():
        pass


def seconds_until_broken_off(loop, clock=time.process_time, patience=PATIENCE):
    begun = clock()

    def goes_on():
        return clock() < begun + patience

    with pytest.raises(Over):
        broken_off(0.05, lambda: loop(goes_on))
    return clock() - begun


@pytest.mark.parametrize("loop", [catches_nothing, catches_in_two_loops, suppresses])
def test_a_loop_is_broken_off_whatever_it_catches(loop):
    hook = sys.getprofile(), sys.gettrace()
    assert seconds_until_broken_off(loop) < PATIENCE / 2 and (sys.getprofile(), sys.gettrace()) == hook


@pytest.mark.parametrize("handler", [signal.SIG_DFL, lambda *_: None], ids=["free", "in use"])
def test_a_loop_that_sleeps_is_broken_off_whatever_it_catches_and_whoever_has_the_alarm(handler):
    before = signal.signal(signal.SIGALRM, handler)
    try:
        assert seconds_until_broken_off(sleeps_and_catches, time.monotonic, 6.0 * PATIENCE) < 3.0 * PATIENCE
    finally:
        signal.signal(signal.SIGALRM, before)


def test_a_loop_in_another_thread_is_broken_off():
    found = []
    thread = threading.Thread(target=lambda: found.append(seconds_until_broken_off(catches_nothing)))
    thread.start()
    thread.join()
    assert found[0] < PATIENCE / 2


def test_what_caught_its_end_ends_all_the_same():
    def catches(goes_on):
        with contextlib.suppress(Over):
            catches_nothing(goes_on)

    with pytest.raises(Over):
        broken_off(0.05, lambda: catches(lambda: True))


def test_an_outer_limit_ends_what_an_inner_one_does_not():
    def calls():
        broken_off(100.0, lambda: catches_nothing(lambda: True))
        pytest.fail("the inner limit was not over")

    with pytest.raises(Over):
        broken_off(0.05, calls)


def test_a_handler_of_an_alarm_that_a_call_sets_hears_nothing_of_the_limit():
    heard = []

    def listens():
        before = signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
        time.sleep(0.1)  # ten ticks
        signal.signal(signal.SIGALRM, before)

    broken_off(60.0, lambda: broken_off(50.0, listens))
    assert not heard


def test_a_limit_that_is_far_away_is_one():
    def coin(x, rng):
        return bool(rng.random() < 0.5)

    assert dpaudit.certify(coin, "eps=1", [(0, 1)], seconds=1e10).verdict == "kept"


def test_an_end_that_python_cannot_raise_is_not_printed(monkeypatch):
    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: said.append(found.exc_type))

    def closed(error):
        try:
            yield
        finally:
            raise error

    with interrupted(time.monotonic() + 100.0, lambda: None):
        for error in (OutOfTimeError(), ValueError()):  # of the time, and of the program
            next(closed(error))
    assert said == [ValueError]
