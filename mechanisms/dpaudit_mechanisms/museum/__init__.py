"""A museum of real bugs: each module re-creates one, in our own code, from the public description of its source.

A module has `faulty`, `mended` and `EXHIBIT`. They are kept simple: the fault, and no more of the library around it.
"""

from __future__ import annotations

import importlib
import pkgutil

from dpaudit.exhibits.exhibit import Exhibit


def exhibits() -> list[Exhibit]:
    """The exhibits of all modules of this package (entry point `mechanisms` of the group `dpaudit.museum`)."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)
    return [importlib.import_module(f"{__name__}.{name}").EXHIBIT for name in names]
