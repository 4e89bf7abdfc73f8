"""A museum of real bugs: each module re-creates one, in our own code, from the public description of its source.

A module has `faulty`, `mended` and `EXHIBIT`, the rest of what an `Exhibit` says; its name is that of the exhibit. They
are kept simple: the fault, and no more of the library around it.
"""

from __future__ import annotations

import importlib
import pkgutil

from dpaudit.exhibits.exhibit import Exhibit


def exhibits() -> list[Exhibit]:
    """The exhibits of all modules of this package (entry point `mechanisms` of the group `dpaudit.museum`)."""
    found = []
    for name in sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg):
        module = importlib.import_module(f"{__name__}.{name}")
        found.append(Exhibit(name=name.replace("_", "-"), faulty=module.faulty, mended=module.mended, **module.EXHIBIT))
    return found
