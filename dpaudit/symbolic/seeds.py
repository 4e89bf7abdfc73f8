"""The seed that a mechanism is handed: a whole number that tells the tape when it is used as one.

A generator that is made of the seed itself is led to the tape. Whatever else a program does with it (a sum, a text, a
list of bytes) may end in noise that is not recorded: it marks the run as opaque. Compiled code that reads the number
without asking is noticed where another seed gives another output (`dpaudit.symbolic.runs`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dpaudit.symbolic.tape import Tape

_ASKED = (
    "add radd sub rsub mul rmul floordiv rfloordiv truediv rtruediv mod rmod divmod rdivmod pow rpow and rand or ror "
    "xor rxor lshift rlshift rshift rrshift neg pos abs invert int index float trunc floor ceil round bool hash eq ne "
    "lt le gt ge str repr format getnewargs"
)


class HandedSeed(int):
    """The seed of a run; see the module."""

    tape: Tape

    def __deepcopy__(self, memo: Any) -> HandedSeed:
        return self

    __copy__ = lambda self: self  # noqa: E731


def handed_seed(tape: Tape, value: int) -> HandedSeed:
    """A seed for the run of a tape."""
    seed = HandedSeed(value)
    seed.tape = tape
    tape.handed.add(value)
    return seed


def _asking(name: str) -> Callable[..., Any]:
    real = getattr(int, name)

    def method(self: HandedSeed, *args: Any, **keywords: Any) -> Any:
        self.tape.mark_opaque()
        return real(self, *args, **keywords)

    method.__name__ = name
    return method


for _name in (*(f"__{name}__" for name in _ASKED.split()), "to_bytes", "bit_length", "bit_count", "conjugate"):
    setattr(HandedSeed, _name, _asking(_name))
