"""Error message of a pair on which every call raised: the audit has no outputs to compare.

Raising is an outcome like any other as long as some call returns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpaudit.features.outcomes import Outcomes
from dpaudit.subjects.call_outcomes import Failed

MAX_NAMED = 3  # kinds of exceptions, columns, intervals or texts: more are no sentence


@dataclasses.dataclass(frozen=True)
class Failure:
    """Common failure of all calls on some inputs: they leave nothing to compare."""

    what: str  # the kinds of exceptions, each with the text and the place of its first one
    calls: int = 0  # that raised; 0 where they returned what shows nothing
    took_process: bool = False  # whether some ended their process: to call again takes longer than after an exception
    traceback: str = ""  # of one of the exceptions, where one is known

    @property
    def text(self) -> str:
        """The exceptions, and the number of calls that raised them."""
        return f"{self.what} from all {self.calls:,} calls" if self.calls else self.what

    def on_both(self, other: Failure) -> Failure:
        """The same of the calls on two inputs."""
        return dataclasses.replace(self, calls=self.calls + other.calls)


class Returned:
    """Number of calls that returned: a statistic of tasks."""

    def count(self, outcomes: Outcomes) -> NDArray[np.int64]:
        raised = 0 if outcomes.tokens is None else sum(isinstance(output, Failed) for output in outcomes.raw)
        return np.array([len(outcomes) - raised], dtype=np.int64)

    def zeros(self) -> NDArray[np.int64]:
        return np.zeros(1, dtype=np.int64)


def common_failure(inputs: Sequence[Outcomes]) -> Failure | None:
    """The common failure of all calls on all of these inputs; None if any returned."""
    outputs = [output for outcomes in inputs for output in (outcomes.raw if outcomes.tokens is not None else (None,))]
    if not all(isinstance(output, Failed) for output in outputs):
        return None
    first: dict[str, Failed] = {}
    for output in sorted(outputs, key=lambda output: not output.traceback):  # the first of a kind with a traceback
        first.setdefault(output.kind, output)
    kinds = [first[kind].described for kind in sorted(first)]
    traceback = next((first[kind].traceback for kind in sorted(first) if first[kind].traceback), "")
    more = f" or {len(kinds) - MAX_NAMED:,} more kinds" if len(kinds) > MAX_NAMED else ""
    calls = sum(len(outcomes) for outcomes in inputs)
    took_process = any(output.took_process for output in outputs)
    return Failure(" or ".join(kinds[:MAX_NAMED]) + more, calls, took_process, traceback)
