"""Other people's mechanisms as subjects, under the name that users write: see `dpaudit.subjects.libraries`.

What another package registers in the entry-point group `dpaudit.libraries` is an attribute here too, under its name.
"""

from typing import Any

from dpaudit.extensions import extension, names
from dpaudit.subjects.libraries import diffprivlib, estimators, opendp, pydp, sql, tmlt, with_pairs

GROUP = "dpaudit.libraries"

__all__ = ["diffprivlib", "estimators", "opendp", "pydp", "sql", "tmlt", "with_pairs"]


def __getattr__(name: str) -> Any:
    found = None if name.startswith("_") else extension(GROUP, name)
    if found is None:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}, and no package adds a library of that name"
        )
    return found


def __dir__() -> list[str]:
    return sorted({*__all__, *names(GROUP)})
