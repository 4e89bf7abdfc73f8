"""Views of results and running audits at a prompt or in a notebook.

What renders them lies above this room. It attaches its views here (`attach`), as functions that import it, so that
nothing is imported until somebody looks; `dpaudit/__init__.py` does so for the room of reports.
"""

from __future__ import annotations

import abc
import contextlib
import sys
from collections.abc import Callable
from typing import Any, Literal

from dpaudit.results.verdicts import EXIT_STATUS, Verdict

Tell = Callable[[Any], None]  # an `on_progress`
View = Literal["notebook", "progress"]
SLOW = 3.0  # seconds from which on an audit at a prompt or in a notebook shows where it stands
_VIEWS: dict[View, Callable[[], Any]] = {}


def attach(name: View, load: Callable[[], Any]) -> None:
    """Let a module that `load` gives show results ("notebook": text, html, markdown, plot) or audits ("progress")."""
    _VIEWS[name] = load


def _view(name: View) -> Any:
    return _VIEWS[name]()


def session_progress(label: str, on_progress: Tell | None) -> contextlib.AbstractContextManager[Tell | None]:
    """Give the caller's `on_progress`, or at a prompt and in a notebook one that shows where a slow audit stands."""
    if on_progress is not None or not hasattr(sys, "ps1"):  # Python, IPython and its kernels set it
        return contextlib.nullcontext(on_progress)
    shown: contextlib.AbstractContextManager[Tell] = _view("progress").live_progress(label, after=SLOW)
    return shown


class Printed:
    """Print a result as the command line does, an audit in a few lines, not as a list of its fields."""

    def __str__(self) -> str:
        return str(_view("notebook").text(self))


class Shown(Printed):
    """Show a result in a notebook as HTML or Markdown, its pictures with `plot`, and its verdict to a shell."""

    @property
    @abc.abstractmethod
    def verdict(self) -> Verdict:
        """Verdict of the whole result."""

    @property
    def exit_status(self) -> int:
        """Say what the command line returns: 0 not refuted, 1 violated, 3 error, 5 inconclusive."""
        return EXIT_STATUS[self.verdict]

    def _repr_html_(self) -> str:
        return str(_view("notebook").html(self))

    def _repr_markdown_(self) -> str:
        return str(_view("notebook").markdown(self))

    def plot(self, name: str | None = None) -> Any:
        """Give a picture of the result, a `dpaudit.reports.notebook.Picture`: a notebook shows it, `save` writes SVG.

        An audit has "evidence", "trade-off", "profile", "wealth", "bounds", "matrix" and "by-mass", as far as it can.
        By default it is what could have been missed where nothing is refuted, else the outputs on both inputs. Of
        another name a `UsageError` says which ones there are.

        Examples
        --------
        >>> import dpaudit
        >>> result = dpaudit.audit(lambda data, rng: data + rng.laplace(), "eps=1", [(0.0, 1.0)], samples=500, seed=7)
        >>> result.plot("trade-off").title
        'Trade-off curve of the worst pair, 0.0|1.0'
        """
        return _view("notebook").plot(self, name)
