"""Comparisons by identity: what stands for a number is never the object that the number would have been.

`n is SEVEN` holds where n is 7, as Python keeps one object of each small integer. No symbol sees that it is asked. So
a run of such a code is lost, unless one side is what no draw ever is, as None, a class or a member of an `Enum`.
"""

from __future__ import annotations

import builtins
import dis
import types
from collections.abc import Iterator, Sequence
from typing import Any

from dpaudit.symbolic.symbols import PYTHONS

Sides = tuple[Sequence[Any], ...]  # of a comparison: ("constant", value), ("global", name, attribute, ...) or nothing
_KNOWN: dict[int, tuple[types.CodeType, tuple[Sides, ...]]] = {}  # by the number of the code, which is kept with it


def compares_identity(frame: types.FrameType) -> bool:
    """Tell whether a call's code compares two objects by identity that may be numbers."""
    code = frame.f_code
    if id(code) not in _KNOWN:
        _KNOWN[id(code)] = code, tuple(_comparisons(code))
    return any(all(_may_be_drawn(side, frame) for side in sides) for sides in _KNOWN[id(code)][1])


def _comparisons(code: types.CodeType) -> Iterator[Sides]:
    listed = list(dis.get_instructions(code))
    for place, one in enumerate(listed):
        if one.opname == "IS_OP":
            start, right = _before(listed, place)
            yield right, _before(listed, start)[1] if right else ()


def _before(listed: Sequence[dis.Instruction], end: int) -> tuple[int, Sequence[Any]]:
    """Place where a constant, a class or a global with its attributes begins that ends before another; what it is."""
    start = end - 1
    while listed[start].opname == "LOAD_ATTR" and not listed[start].is_jump_target:
        start -= 1
    first, names = listed[start], [one.argval for one in listed[start:end]]
    if names[-1] == "__class__" and not listed[end].is_jump_target:  # as where dataclasses are compared
        return start, ("constant", type)
    kind = {"LOAD_CONST": "constant", "LOAD_GLOBAL": "global"}.get(first.opname)
    # Where another way leads to what follows, as of a conditional expression, it is one value of several.
    return start, () if kind is None or listed[end].is_jump_target else (kind, *names)


def _may_be_drawn(side: Sequence[Any], frame: types.FrameType) -> bool:
    if not side:
        return True
    kind, value, *names = side
    if kind == "global":
        value = frame.f_globals.get(value, getattr(builtins, value, 0))
    for name in names:
        value = getattr(value, name, 0) if isinstance(value, types.ModuleType | type) else 0
    return type(value) in PYTHONS
