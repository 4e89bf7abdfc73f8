"""Where the exceptions of a mechanism come from: said of outcomes, and no part of them."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.errors import MechanismTraceback
from dpaudit.features.outcomes import canonical, from_objects
from dpaudit.subjects import tracebacks
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import CallError, as_subject
from dpaudit.subjects.isolation import Isolation

LONG = 3_000  # characters
FILE = "test_tracebacks.py"
PAIRS = [(0.0, 1.0)]


def column_of(x: float) -> Any:
    return dict[str, Any]()["column"]


def release(x: float, rng: np.random.Generator) -> Any:
    return column_of(x)


def releases(x: float, size: int, rng: np.random.Generator) -> Any:
    return [column_of(x)] * size


def with_a_long_text(x: float, rng: np.random.Generator) -> Any:
    raise ValueError("x" * LONG)


def of_two_kinds(x: float, rng: np.random.Generator) -> Any:
    return column_of(x) if rng.random() < 0.5 else 1 / 0


def line_of(function: Any) -> int:
    return int(function.__code__.co_firstlineno) + 1


def chained_releases(x: float, size: int, rng: np.random.Generator) -> Any:
    try:
        return [column_of(x)] * size
    except KeyError:
        raise ValueError("no column")  # noqa: B904 (what came before is the context)


COLUMN = f"KeyError: 'column' in column_of ({FILE}, line {line_of(column_of)})"


@pytest.mark.parametrize("options", [{}, {"mode": "fixed"}, {"isolation": True}, {"jobs": 2}], ids=str)
@pytest.mark.parametrize("mechanism", [release, releases])
def test_the_message_names_the_innermost_frame_of_the_users_code(mechanism: Any, options: Any) -> None:
    result = dpaudit.audit(mechanism, "eps=1", PAIRS, samples=1_000, seed=1, **options)
    (finding,) = result.findings
    assert finding.message == (
        f"{mechanism.__name__} must return outputs, got {COLUMN} from all 800 calls, on both inputs of the pair."
    )
    assert '()["column"]' in finding.traceback and "in _outcome" not in finding.traceback
    assert "traceback" not in finding.to_dict() and type(finding).from_dict(finding.to_dict()) == finding


def test_what_compiled_code_raises_is_of_the_line_that_called_it() -> None:
    def release(x: float, rng: np.random.Generator) -> Any:
        return x + rng.laplace(scale=-1)  # numpy names a line of its own source, which is not installed

    (outcome,) = as_subject(release).sample(0.0, 1, np.random.default_rng(0))
    assert outcome.described == f"ValueError: scale < 0 in release ({FILE}, line {line_of(release)})"


def test_only_the_first_exception_of_a_kind_in_a_chunk_says_where_it_came_from() -> None:
    outcomes = as_subject(of_two_kinds).sample(0.0, 200, np.random.default_rng(0))
    told = [k for k, outcome in enumerate(outcomes) if outcome.traceback]
    kinds = [outcome.kind for outcome in outcomes]
    assert told == sorted(kinds.index(kind) for kind in ("KeyError", "ZeroDivisionError"))


@pytest.mark.parametrize("options", [{}, {"isolation": True}], ids=str)
@pytest.mark.parametrize("mechanism", [releases, chained_releases])
def test_a_traceback_ends_where_dpaudit_begins(mechanism: Any, options: Any) -> None:
    (finding,) = dpaudit.audit(mechanism, "eps=1", PAIRS, samples=1_000, seed=1, **options).findings
    assert "label_game.py" not in finding.traceback and "CallError" not in finding.traceback
    assert finding.traceback.count("Traceback (most recent call last)") == 1 + (mechanism is chained_releases)


def test_where_an_exception_came_from_is_no_part_of_the_outcome() -> None:
    failed = Failed("KeyError", "'column'")
    located = dataclasses.replace(failed, place="f (a.py, line 1)", traceback="Traceback")
    assert located == failed and hash(located) == hash(failed) and repr(located) == repr(failed)
    assert located.bare == failed and not located.bare.place
    assert canonical([located]) == canonical([failed])
    read = [from_objects([one, 1.5]) for one in (failed, located)]
    assert read[0].tokens.tolist() == read[1].tokens.tolist()


def test_it_passes_from_one_process_to_another() -> None:
    located = Failed("KeyError", "'column'", "f (a.py, line 1)", "Traceback")
    back = pickle.loads(pickle.dumps(located))
    assert (back.place, back.traceback) == (located.place, located.traceback)
    error = pickle.loads(pickle.dumps(CallError("f", 3, "KeyError", "Traceback")))
    assert isinstance(error.__cause__, MechanismTraceback) and str(error.__cause__) == "\nTraceback"


def test_an_isolated_call_has_the_limit_of_its_output_to_itself() -> None:
    limits = Isolation(output=4_096)  # bytes, of the text: where it came from has room of its own
    result = dpaudit.audit(with_a_long_text, "eps=1", PAIRS, samples=100, seed=1, isolation=limits)
    (finding,) = result.findings
    assert f"ValueError: {'x' * LONG} in with_a_long_text" in finding.message and finding.traceback


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, RuntimeError])
def test_who_breaks_off_while_an_exception_is_located_is_heard(raised: Any, monkeypatch: Any) -> None:
    def misbehaves(*_: Any) -> None:
        raise raised

    monkeypatch.setattr(tracebacks, "_cut_own", misbehaves)
    failed = Failed("KeyError", "c")
    if raised is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            tracebacks.located(failed, KeyError("c"))
    else:
        assert tracebacks.located(failed, KeyError("c")) is failed
