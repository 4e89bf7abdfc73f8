"""Subjects with limits: calls in workers, or a program in its own process, each under a fork server."""

from __future__ import annotations

import contextlib

from dpaudit.subjects.callables import Subject
from dpaudit.subjects.isolation import Isolation, isolated
from dpaudit.subjects.programs import contained_program


def contained(subject: Subject, limits: Isolation) -> contextlib.AbstractContextManager[Subject]:
    """The subject with these limits, for a while."""
    if subject.is_program:
        return contextlib.nullcontext(contained_program(subject, limits))
    return isolated(subject, limits)
