"""The calls of both runs side by side."""

from __future__ import annotations

import dataclasses

from dpaudit.symbolic.generators import Event
from dpaudit.symbolic.runs import Path

MAX_ROWS = 200


@dataclasses.dataclass(frozen=True)
class Row:
    """One call on each input, as text, the line of the first, and whether they differ."""

    x: str
    x_prime: str
    place: str
    differs: bool

    def texts(self, with_values: bool = False) -> tuple[str, str]:
        """Both calls.

        Without values a call has no parameters and an end no numbers, as they may be those of the inputs: a row that
        differs in nothing else says "(other values)".

        Examples
        --------
        >>> Row("numpy laplace(scale=1)", "numpy laplace(scale=2)", "count.py:3", True).texts()
        ('numpy laplace', 'numpy laplace (other values)')
        """
        if with_values:
            return self.x, self.x_prime
        first, second = _without_values(self.x), _without_values(self.x_prime)
        return first, f"{second} (other values)" if self.differs and first == second else second


def rows(first: Path, second: Path) -> tuple[Row, ...]:
    """The first calls of both runs, in their order; and how each run ended."""
    a, b = first.tape.events, second.tape.events
    found = []
    for k in range(min(max(len(a), len(b)), MAX_ROWS)):
        u, v = (events[k] if k < len(events) else None for events in (a, b))
        place = (u or v).place  # type: ignore[union-attr]
        found.append(Row(_said(u), _said(v), place, u is None or v is None or str(u) != str(v)))
    ends = [_ended(path) for path in (first, second)]
    found.append(Row(ends[0], ends[1], first.place or second.place, ends[0] != ends[1]))
    return tuple(found)


def _said(event: Event | None) -> str:
    return "-" if event is None else str(event)


def _ended(path: Path) -> str:
    if path.raised:
        return f"raises {path.raised}"
    if path.output is None:
        return path.problem[:60]
    numbers = ", ".join(f"{value:.6g}" for value in path.output.values()[:4])
    more = len(path.output.leaves) - 4
    return f"returns {numbers}" + (f" and {more} more" if more > 0 else "")


def _without_values(text: str) -> str:
    return "returns" if text.startswith("returns ") else text.split("(")[0]
