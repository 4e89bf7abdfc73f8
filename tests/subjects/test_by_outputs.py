"""What calls say beside their outputs, made part of them."""

import logging
import sys
import warnings

import numpy as np
import pytest

import dpaudit
from dpaudit.reports import items


def warns(data, rng):
    warnings.warn(f"value {data}", stacklevel=1)
    return rng.laplace()


def logs(data, rng):
    logging.getLogger("release").debug("value %s", data)
    return rng.laplace()


def prints(data, rng):
    print("value", data)
    return rng.laplace()


def prints_to_stderr(data, rng):
    print("value", data, file=sys.stderr)
    return rng.laplace()


def audited(mechanism):
    return dpaudit.audit(mechanism, "eps=1", [(0, 1)], samples=200, seed=1, severity=False, floating_point=False)


@pytest.mark.parametrize("leak", [warns, logs, prints, prints_to_stderr])
def test_what_a_call_says_is_found_where_it_is_looked_at(leak, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        without = audited(leak)
    assert without.verdict != "violated" and "was not looked at" in items.side_channels(without)[1]
    capfd.readouterr()
    found = audited(dpaudit.with_by_outputs(leak))
    assert found.verdict == "violated" and "value 1" in found.findings[0].witness.description
    assert "was not looked at (" not in items.side_channels(found)[1]
    assert capfd.readouterr() == ("", "")


def test_logging_is_as_it_was_after_a_call_that_raises():
    root = logging.getLogger()
    before = root.level, list(root.handlers), root.manager.disable

    def raises(data, rng):
        raise ValueError("no")

    (outcome,) = dpaudit.with_by_outputs(raises).sample(0, 1, np.random.default_rng(1))
    assert outcome["output"].kind == "ValueError" and outcome["log"] == []
    assert (root.level, list(root.handlers), root.manager.disable) == before


def test_a_batch_is_asked_for_one_output_and_what_a_mechanism_states_is_kept():
    class Release:
        claim = dpaudit.PureDP(1.0)

        def sample(self, data, size, rng):
            return data + rng.laplace(size=size)

        def pairs(self):
            return [(0.0, 1.0)]

    subject = dpaudit.with_by_outputs(Release(), name="release")
    assert subject.claim == dpaudit.PureDP(1.0) and subject.pairs() == [(0.0, 1.0)] and subject.name == "release"
    assert not subject.is_vectorised and len(subject.sample(0.0, 3, np.random.default_rng(1))) == 3
    assert subject.describe()["interface"] == "with what calls warn of, log and print, f(data, rng)"
