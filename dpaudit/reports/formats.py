"""The formats of reports: their names, the names of their files, whether one can be written here, and added ones."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dpaudit.arguments import did_you_mean
from dpaudit.errors import UsageError
from dpaudit.extensions import extensions, names

if TYPE_CHECKING:
    from dpaudit.reports.dossier import Dossier

NO_TYPST = "format pdf must have typst installed, got none. Use pip install 'dpaudit[pdf]'."
GROUP = "dpaudit.report_formats"  # the entry-point group of other formats


@dataclasses.dataclass(frozen=True)
class OwnFormat:
    """A format of ours: the suffix of its files, and the function that renders it, of a module of the reports.

    It takes a document, a dossier, or a result as it is and the profile; `is_dated`: it says when it was written.
    """

    suffix: str
    module: str
    function: str = "render"
    takes: Literal["document", "dossier", "result"] = "dossier"
    is_dated: bool = False


OWN: Mapping[str, OwnFormat] = {
    "html": OwnFormat(".html", "html", takes="document", is_dated=True),
    "json": OwnFormat(".json", "dossier_json", takes="result"),
    "md": OwnFormat(".md", "markdown", takes="document", is_dated=True),
    "junit": OwnFormat(".junit.xml", "junit"),
    "sarif": OwnFormat(".sarif", "sarif"),
    "pdf": OwnFormat(".pdf", "pdf", takes="document", is_dated=True),
    "in-toto": OwnFormat(".intoto.json", "intoto"),
    "registry": OwnFormat(".registry.yaml", "registry"),
    "label": OwnFormat(".label.html", "label", "render_page", is_dated=True),
    "label-svg": OwnFormat(".label.svg", "label", "render_drawing", is_dated=True),
    "oscal": OwnFormat(".oscal.json", "oscal", is_dated=True),
}
SUFFIXES: Mapping[str, str] = {name: own.suffix for name, own in OWN.items()}
OTHER_SUFFIXES: Mapping[str, str] = {".xml": "junit", ".sarif.json": "sarif"}  # read, never written


@dataclasses.dataclass(frozen=True)
class ReportFormat:
    """A format that another package adds, under the name of its entry point (`dpaudit.report_formats`).

    Attributes
    ----------
    suffix : str
        Of its files, with the dot: `.tex`. No other format may have it.
    render : callable
        Takes a `Dossier` (`sources`, each with the saved model as `result`) and gives the content, str or bytes.
    """

    suffix: str
    render: Callable[[Dossier], str | bytes]


def added_formats() -> dict[str, ReportFormat]:
    """The formats that other packages add, by name.

    `UsageError` if what a package adds is no `ReportFormat`, or its name or suffix is taken.
    """
    found: dict[str, ReportFormat] = {}
    taken = {*SUFFIXES.values(), *OTHER_SUFFIXES}
    for name, added in extensions(GROUP):
        if not isinstance(added, ReportFormat) or not re.fullmatch(r"(\.[a-z0-9]+)+", added.suffix):
            shown = f"{added!r:.80} at {name!r}"
            raise UsageError(f"a format must be a ReportFormat with a suffix such as .tex, got {shown}.")
        if name in SUFFIXES or added.suffix in taken:
            raise UsageError(f"formats must have different names and suffixes, got {name!r} ({added.suffix}) again.")
        taken.add(added.suffix)
        found[name] = added
    return found


def all_formats() -> tuple[str, ...]:
    """The names of our own formats and of those that other packages add; nothing is imported."""
    return (*SUFFIXES, *(name for name in names(GROUP) if name not in SUFFIXES))


def check_format(format: str) -> None:
    """`UsageError` if there is no such format, or it needs what is not installed, or a date that cannot be read."""
    if format not in all_formats():
        raise UsageError(f"format must be one of {', '.join(all_formats())}, got {format!r}.")
    if format not in SUFFIXES:
        added_formats()  # an audit must not run for a report that cannot be written
    elif OWN[format].is_dated:
        from dpaudit.reports.wording import date_text

        date_text()
    if format == "pdf" and importlib.util.find_spec("typst") is None:
        raise UsageError(NO_TYPST)


def check_formats(argument: str, formats: Sequence[str]) -> None:
    """`UsageError` if the argument names no format, or one that cannot be written: see `check_format`."""
    for format in formats or ("none",):
        if format not in all_formats():
            got, near = (repr(format), did_you_mean(format, all_formats())) if formats else ("none", "")
            raise UsageError(f"{argument} must name formats among {', '.join(all_formats())}, got {got}.{near}")
        check_format(format)


def file_name(stem: str, format: str) -> str:
    """The name of a report's file: the stem with the suffix of the format."""
    return stem + (SUFFIXES[format] if format in SUFFIXES else added_formats()[format].suffix)


def format_of(path: str | os.PathLike[str]) -> str:
    """The format that the suffix of a path names, the longest suffix first; `UsageError` if it names none."""
    name = Path(path).name.lower()
    added = {one.suffix: format for format, one in added_formats().items()}
    known = {suffix: format for format, suffix in SUFFIXES.items()} | dict(OTHER_SUFFIXES) | added
    for suffix in sorted(known, key=len, reverse=True):
        if name.endswith(suffix) and name != suffix:
            return known[suffix]
    raise UsageError(f"path must end in one of {', '.join([*SUFFIXES.values(), *added])}, got {os.fspath(path)!r}.")


def other_reports(folder: Path, written: Collection[Path], stem: str = "audit") -> list[Path]:
    """Reports with this stem in a folder that were not written now, and so are of an earlier run."""
    paths = (folder / file_name(stem, format) for format in all_formats())
    return [path for path in paths if path not in written and path.is_file()]
