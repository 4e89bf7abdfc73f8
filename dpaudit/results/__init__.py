"""Result models, and how they are saved and read back.

Names of the model are here as well (`dpaudit.results.Finding`); they are imported where they are first used.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    model = importlib.import_module("dpaudit.results.model")  # `from ... import` would ask here for it, for ever
    if name.startswith("_") or not hasattr(model, name):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(model, name)
