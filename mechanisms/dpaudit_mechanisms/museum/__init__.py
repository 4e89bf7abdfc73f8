"""A museum of real bugs, re-created in our own code from the public description of their source: a module a kind.

They are kept simple: the fault, and no more of the library around it.
"""

import importlib
import pkgutil

from dpaudit.exhibits.exhibit import Exhibit


def exhibits() -> list[Exhibit]:
    """The exhibits of all modules of this package (entry point `mechanisms` of the group `dpaudit.museum`)."""
    modules = [importlib.import_module(f"{__name__}.{one.name}") for one in pkgutil.iter_modules(__path__)]
    return sorted((one for module in modules for one in getattr(module, "bug", ())), key=lambda one: one.name)
