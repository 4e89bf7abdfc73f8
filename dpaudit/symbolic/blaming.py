"""The line to blame for a number of the output that met no noise: where a variable first got its value.

Both inputs are run once more with numbers, line by line. A line is blamed where on both inputs one variable got the
value that the number has there; where no variable did, the line on which the mechanism returned. It is a pointer for a
reader, and nothing rests on it.
"""

from __future__ import annotations

from typing import Any

from dpaudit.subjects.callables import Subject
from dpaudit.symbolic.runs import Steps, differing, is_within, run
from dpaudit.symbolic.tape import Tape


def blamed(subject: Subject, x: Any, x_prime: Any, seed: int) -> str:
    """The line to blame for what differs between the outputs of two inputs though no noise is in it, or "".

    Empty under a debugger or a measure of coverage, which trace lines themselves.
    """
    steps = (Steps(), Steps())
    paths = [
        run(subject, data, Tape(seed, 0, is_plain=True), own) for data, own in zip((x, x_prime), steps, strict=True)
    ]
    found = differing(paths[0].output, paths[1].output)
    if found is not None:
        here, there = (_always(own, value) for own, value in zip(steps, found[1:], strict=True))
        common = [line for line, name in here if (line, name) in there]
        if common:
            return common[-1]
    # A function that hands on what another one returned is not to blame.
    ends = [next((line for value, line in own.returned if value is own.returned[-1][0]), "") for own in steps]
    return ends[0] or ends[1]


def _always(steps: Steps, value: float) -> list[tuple[str, str]]:
    """The lines, with a variable each, that have given this value whenever they ran."""
    found: dict[tuple[str, str], bool] = {}
    for line, name, got in steps.numbers:
        found[line, name] = found.get((line, name), True) and is_within([got], [value])[0]
    return [key for key, same in found.items() if same]
