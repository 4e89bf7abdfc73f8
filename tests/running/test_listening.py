"""The hook that hears calls leaves the profiler that was there as it was."""

import cProfile
import pstats
import sys

import pytest

import dpaudit
from dpaudit.symbolic.interception import recorded
from dpaudit.symbolic.tape import Tape
from dpaudit.symbolic.watching import listening


def noised(x, rng):
    return x + rng.laplace()


def coin(x, rng):
    return int(rng.random() < 0.5) ^ x


def after():
    return abs(-1)


@pytest.mark.parametrize("run", [lambda: dpaudit.record_noise(noised, [(0.0, 1.0)], "eps=1", seed=1).grade,
                                 lambda: dpaudit.certify(coin, "eps=0.1", [(0, 1)]).verdict])  # fmt: skip
def test_under_a_profiler_in_c_the_answer_is_the_same_and_the_profiler_goes_on(run):
    alone, profiler = run(), cProfile.Profile()
    profiler.enable()
    try:
        found = run()
        after()
    finally:
        profiler.disable()
    assert found == alone
    assert any(name == "after" for _, _, name in pstats.Stats(profiler).stats)


def test_a_profiler_in_python_is_put_back_after_an_exception():
    heard = []

    def own(frame, event, argument):
        heard.append(event)

    before = sys.getprofile()
    sys.setprofile(own)
    try:
        with pytest.raises(ZeroDivisionError), listening(lambda frame, event, argument: None):
            raise ZeroDivisionError
        found = sys.getprofile()
    finally:
        sys.setprofile(before)
    assert found is own and heard


def test_a_run_that_takes_the_hook_away_is_not_taken_for_seen():
    tape = Tape(1, 0)
    with recorded(tape):
        sys.setprofile(None)
    assert tape.unseen.startswith("the hook that sees calls was taken away") and sys.getprofile() is None
