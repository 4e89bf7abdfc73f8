"""The exhibits of all installed museums: the entry-point group `dpaudit.museum`.

The object of an entry point is a function without arguments that returns exhibits. Other packages can add their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from dpaudit.arguments import did_you_mean
from dpaudit.errors import UsageError
from dpaudit.exhibits.exhibit import Exhibit
from dpaudit.extensions import entry_points

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
    for entry in entry_points(GROUP):
        for exhibit in exhibits_of(entry.value, entry.load):
            if exhibit.name in found:
                raise UsageError(f"exhibits must have different names, got {exhibit.name!r} twice.")
            found[exhibit.name] = exhibit
    for name in names:
        if name not in found:
            raise UsageError(f"name must be an exhibit of the museum, got {name!r}.{did_you_mean(name, found)}")
    chosen = [found[name] for name in dict.fromkeys(names)] if names else list(found.values())
    return tuple(sorted(chosen, key=lambda exhibit: (exhibit.kind, exhibit.name)))


def exhibits_of(value: str, load: Callable[[], Callable[[], Iterable[Exhibit]]]) -> list[Exhibit]:
    """The exhibits of one entry point.

    Raises
    ------
    UsageError
        If it cannot be imported, or does not return exhibits.
    """
    try:
        listed = list(load()())
    except (ImportError, AttributeError, TypeError) as error:
        raise UsageError(f"museum must be a function that returns exhibits, got {value!r} ({error}).") from error
    for exhibit in listed:
        if not isinstance(exhibit, Exhibit):
            raise UsageError(f"museum must return exhibits, got {exhibit!r:.80} at {value!r}.")
    return listed
