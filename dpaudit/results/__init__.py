"""What was found: the result models, how they are saved, and how they are read back.

Names of the model are here as well (`dpaudit.results.Finding`); they are imported where they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    model = importlib.import_module("dpaudit.results.model")  # `from` would ask this function for it again
    if name.startswith("_") or not hasattr(model, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(model, name)
