"""The exhibits of all installed museums: the entry-point group `dpaudit.museum`.

The object of an entry point is a function without arguments that returns exhibits. Other packages can add their own.
"""

from __future__ import annotations

from dpaudit.arguments import did_you_mean
from dpaudit.errors import UsageError
from dpaudit.exhibits.exhibit import Exhibit
from dpaudit.extensions import extensions

GROUP = "dpaudit.museum"


def museum(*names: str) -> tuple[Exhibit, ...]:
    """The exhibits of all installed museums, by kind and name; or those that are named.

    Raises
    ------
    UsageError
        If a museum cannot be loaded, two exhibits have one name, or a name is none.

    Examples
    --------
    >>> [exhibit.source for exhibit in museum("one-key-for-all-layers")]
    ['jax-ml/jax#3646']
    """
    found: dict[str, Exhibit] = {}
    for source, listed in extensions(GROUP):
        if not callable(listed):
            raise UsageError(f"museum must be a function that returns exhibits, got {listed!r:.80} at {source!r}.")
        for exhibit in listed():
            if not isinstance(exhibit, Exhibit):
                raise UsageError(f"museum must return exhibits, got {exhibit!r:.80} at {source!r}.")
            if exhibit.name in found:
                raise UsageError(f"exhibits must have different names, got {exhibit.name!r} twice.")
            found[exhibit.name] = exhibit
    for name in names:
        if name not in found:
            raise UsageError(f"name must be a case of the bug corpus, got {name!r}.{did_you_mean(name, found)}")
    chosen = [found[name] for name in dict.fromkeys(names)] if names else list(found.values())
    return tuple(sorted(chosen, key=lambda exhibit: (exhibit.kind, exhibit.name)))
