"""The leaks of the gallery, by form."""

from __future__ import annotations

from dpaudit.bench.gallery import array_laws, object_laws
from dpaudit.bench.gallery.leak import Leak


def gallery() -> list[Leak]:
    """All leaks; forms and names together differ."""
    first = [*array_laws.first_rows(), *object_laws.first_objects()]
    tables = [*array_laws.table_rows(), *object_laws.table_objects()]
    return [*(Leak(*row) for row in (*first, *tables)), *second_half(0), *second_half(1)]


def second_half(half: int) -> list[Leak]:
    """Every other one of the leaks that were thought of later: the first half (0), or the other one (1).

    Kinds of reading and learners were added after a look at what was missed of both. The other half is for reports: no
    constant was chosen on it.
    """
    return [Leak(*row) for row in (*array_laws.later_rows(), *object_laws.later_objects())][half::2]
