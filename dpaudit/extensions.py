"""Entry points of other packages, one group for each kind of thing.

    dpaudit.claims           a form of --claim            function of the text after NAME= that gives a `Claim`
    dpaudit.decoders         what an object's class holds function of an `Opaque`, under the name of its class
    dpaudit.views            a kind of view of columns    `ViewKind`, under its own name
    dpaudit.checks           conformance checks           `CheckSpec`
    dpaudit.laws             laws of composition          `Law`, under its own name
    dpaudit.report_formats   a format of --report         `ReportFormat`
    dpaudit.libraries        an adapter of a library      module or object, then `dpaudit.libraries.NAME`
    dpaudit.museum           exhibits of real bugs        function that gives `Exhibit`s
    dpaudit.ledger           ledgers of papers            function that gives `Ledger`s
    dpaudit.problems         problems of the bench        function that gives `Problem`s
    dpaudit.measurements     measurements of the bench    `Extra`
    dpaudit.reproductions    experiments of papers        object with a description and a run

An executor is a backend of joblib: `joblib.register_parallel_backend`, then `--backend NAME`.

One rule for all: the entry points of a group come in the order of their names, and nothing is imported before it is
needed. An extension that cannot be imported is one message that names it, and no result: a run that leaves out what was
installed would be another one than the user believes. Decoders and views only add to where a leak is looked for: a
broken one is named by a warning, and left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dpaudit.errors import UsageError

if TYPE_CHECKING:
    import importlib.metadata


def entry_points(group: str) -> list[importlib.metadata.EntryPoint]:
    """The entry points of a group by their names; nothing of them is imported."""
    import importlib.metadata  # takes long, and nobody asks before the first audit

    return sorted(importlib.metadata.entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def names(group: str) -> list[str]:
    """The names of what is installed, each once."""
    return list(dict.fromkeys(entry.name for entry in entry_points(group)))


def load(entry: importlib.metadata.EntryPoint) -> Any:
    """The object that an entry point names.

    Raises
    ------
    UsageError
        If it cannot be imported.
    """
    try:
        return entry.load()
    except Exception as error:  # whatever the code of a package raises while it is imported
        raise UsageError(
            f"the extension {entry.name!r} of {entry.group} must be importable, got {entry.value!r} "
            f"({type(error).__name__}: {error}). Repair or uninstall the package that registers it."
        ) from error


def extensions(group: str) -> Iterator[tuple[str, Any]]:
    """(name, object) of all that is installed in a group.

    Raises
    ------
    UsageError
        If one cannot be imported, or two have one name.
    """
    seen: dict[str, str] = {}
    for entry in entry_points(group):
        if entry.name in seen:
            raise UsageError(
                f"extensions of {group} must have different names, got {entry.name!r} from {seen[entry.name]!r} and "
                f"from {entry.value!r}."
            )
        seen[entry.name] = entry.value
        yield entry.name, load(entry)


def working_extensions(group: str) -> Iterator[tuple[str, Any]]:
    """(name, object) of what is installed in a group and can be imported; a warning names each of the others."""
    for entry in entry_points(group):
        try:
            yield entry.name, load(entry)
        except UsageError as error:
            warnings.warn(f"{error} It is left out.", stacklevel=2)


def extension(group: str, name: str) -> Any:
    """The object of one name in a group; None if none has it.

    Raises
    ------
    UsageError
        As `extensions`.
    """
    found = [entry for entry in entry_points(group) if entry.name == name]
    if len(found) > 1:
        raise UsageError(
            f"extensions of {group} must have different names, got {name!r} from {found[0].value!r} and from "
            f"{found[1].value!r}."
        )
    return load(found[0]) if found else None
