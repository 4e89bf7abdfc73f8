"""The line to blame for a number of the output that met no noise: where a variable first got its value.

Both inputs are run once more with numbers, line by line. A line is blamed where on both inputs one variable got the
value that the number has there; where no variable did, the line on which the mechanism returned. It is a pointer for a
reader, and nothing rests on it.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

from dpaudit.subjects.callables import Subject
from dpaudit.symbolic.choices import is_own_code
from dpaudit.symbolic.runs import Path, differing, is_within, run
from dpaudit.symbolic.tape import Tape

MAX_STEPS = 100_000
Step = tuple[str, str, float]  # line, variable, value


def blamed(subject: Subject, x: Any, x_prime: Any, seed: int) -> str:
    """The line to blame for what differs between the outputs of two inputs though no noise is in it, or "".

    Empty under a debugger or a measure of coverage, which trace lines themselves.
    """
    if sys.gettrace() is not None:
        return ""
    paths, ends = [], []
    steps: list[list[Step]] = []
    for data in (x, x_prime):
        steps.append([])
        path, end = _traced(subject, data, seed, steps[-1])
        paths.append(path)
        ends.append(end)
    found = differing(paths[0].output, paths[1].output)
    if found is not None:
        here, there = (_always(one, value) for one, value in zip(steps, found[1:], strict=True))
        common = [line for line, name in here if (line, name) in there]
        if common:
            return common[-1]
    return ends[0] or ends[1]


def _always(steps: list[Step], value: float) -> list[tuple[str, str]]:
    """The lines, with a variable each, that have given this value whenever they ran."""
    found: dict[tuple[str, str], bool] = {}
    for line, name, got in steps:
        found[line, name] = found.get((line, name), True) and is_within([got], [value])[0]
    return [key for key, same in found.items() if same]


def _traced(subject: Subject, data: Any, seed: int, steps: list[Step]) -> tuple[Path, str]:
    """A run with numbers, with the values that variables of the user's code get; and the last line of all."""
    returned: list[tuple[Any, str]] = []
    before: dict[int, dict[str, Any]] = {}
    lines: dict[int, int] = {}

    def step(frame: Any, event: str, argument: Any) -> Any:
        if event in ("line", "return") and len(steps) < MAX_STEPS:
            old = before.setdefault(id(frame), {})
            line = f"{os.path.basename(frame.f_code.co_filename)}:{lines.get(id(frame), frame.f_lineno)}"
            for name, value in frame.f_locals.items():
                if (
                    isinstance(value, bool | int | float | np.bool_ | np.number)
                    and old.get(name, _NOTHING) is not value
                ):
                    old[name] = value
                    steps.append((line, name, float(value)))
            lines[id(frame)] = frame.f_lineno
            if event == "return":
                returned.append((argument, f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"))
                before.pop(id(frame), None)
                lines.pop(id(frame), None)
        return step

    def enter(frame: Any, event: str, argument: Any) -> Any:
        inside = is_own_code(frame.f_code.co_filename)
        # Arguments are what was given: no line of this frame has computed them.
        if inside:
            before[id(frame)] = dict(frame.f_locals)
        return step if inside else None

    sys.settrace(enter)
    try:
        path = run(subject, data, Tape(seed, 0, is_plain=True))
    finally:
        sys.settrace(None)
    # A function that hands on what another one returned is not to blame.
    end = next((line for value, line in returned if value is returned[-1][0]), "")
    return path, end


_NOTHING = object()
