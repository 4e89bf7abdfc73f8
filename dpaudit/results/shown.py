"""How results and running audits show themselves at a prompt or in a notebook.

The room of reports renders them. It lies above this one, so it is looked up by name when somebody looks.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable
from typing import Any

NOTEBOOK = "dpaudit.reports.notebook"
PROGRESS = "dpaudit.reports.progress"
Tell = Callable[[Any], None]  # an `on_progress`


def session_progress(label: str, on_progress: Tell | None) -> contextlib.AbstractContextManager[Tell | None]:
    """Give the caller's `on_progress`, or at a prompt and in a notebook one that shows where a slow audit stands."""
    if on_progress is not None or not hasattr(sys, "ps1"):  # Python, IPython and its kernels set it
        return contextlib.nullcontext(on_progress)
    shown: contextlib.AbstractContextManager[Tell] = importlib.import_module(PROGRESS).session_progress(label)
    return shown


class Shown:
    """Show a result in a notebook as HTML or Markdown, and its pictures with `plot`."""

    def _repr_html_(self) -> str:
        return str(importlib.import_module(NOTEBOOK).html(self))

    def _repr_markdown_(self) -> str:
        return str(importlib.import_module(NOTEBOOK).markdown(self))

    def plot(self, name: str | None = None) -> Any:
        """Give a picture of the result, which a notebook shows and `save` writes as SVG.

        Parameters
        ----------
        name : str, optional
            Of an audit "trade-off", "profile", "wealth", "bounds", "matrix" or "by-mass", as far as it has them. By
            default what could have been missed where nothing is refuted, else the trade-off function.

        Returns
        -------
        dpaudit.reports.notebook.Picture

        Raises
        ------
        UsageError
            If the result has no such picture; the message names those that it has.

        Examples
        --------
        >>> import dpaudit
        >>> result = dpaudit.audit(lambda data, rng: data + rng.laplace(), "eps=1", [(0.0, 1.0)], samples=500, seed=7)
        >>> result.plot("trade-off").title
        'Trade-off curve of the worst pair, 0.0|1.0'
        """
        return importlib.import_module(NOTEBOOK).plot(self, name)
