"""By-outputs: what a call says beside what it returns, made part of its output.

An audit looks at what a mechanism returns. A warning, a log record or a printed line reaches whoever runs it as well,
and may tell what the output hides. With `with_by_outputs` each draw is a call of its own, and its output a dictionary
of what was returned and what was said; the claim is then asked of all of it together.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import logging
import warnings
from typing import Any

from dpaudit.subjects.callables import Around, Subject, as_subject

BY_OUTPUTS = "with what calls warn of, log and print, "  # in front of the interface of results


@dataclasses.dataclass(frozen=True)
class _WithByOutputs(Around):
    """Calls the subject once, and listens."""

    dpaudit_calls = BY_OUTPUTS

    def __call__(self, data: Any, rng: Any) -> dict[str, Any]:
        printed, records, root = io.StringIO(), logging.Handler(), logging.getLogger()
        logged: Any = []
        # A filter that keeps the message, and lets nothing through.
        records.addFilter(lambda one: logged.append(f"{one.name} {one.levelname}: {one.getMessage()}") is not None)
        level, handlers, disabled = root.level, root.handlers, root.manager.disable
        root.handlers = [records]
        root.setLevel(logging.NOTSET)  # with what loggers remember of levels
        logging.disable(logging.NOTSET)
        try:
            with (
                warnings.catch_warnings(record=True) as said,
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(printed),
            ):
                warnings.simplefilter("always")
                (output,) = self.first.sample(data, 1, rng)
        finally:
            root.handlers = handlers
            root.setLevel(level)
            logging.disable(disabled)
        texts = [f"{one.category.__name__}: {one.message}" for one in said]
        return {"output": output, "warnings": texts, "log": logged, "printed": printed.getvalue()}


def with_by_outputs(mechanism: Any, target: str | None = None, name: str | None = None) -> Subject:
    """Return a subject whose outputs hold the warnings, log records and printed text of each call.

    An output is a dictionary: "output" is what was returned (or how the call failed), "warnings" and "log" are lists of
    texts in their order, "printed" is the text on both standard streams. What goes around Python's own streams, as the
    output of a C library or of another process does, is not seen, nor are records that a logger's own level holds back.

    Parameters
    ----------
    mechanism : object or callable
        As for `dpaudit.audit`. It is called once a draw, also where it could give a batch.
    target, name : str, optional
        As for `dpaudit.audit`.

    Examples
    --------
    >>> import numpy as np
    >>> def release(data, rng):
    ...     print("rows:", len(data))
    ...     return sum(data) + rng.laplace()
    >>> with_by_outputs(release).sample([1, 0], 1, np.random.default_rng(1))[0]["printed"]
    'rows: 2\\n'
    """
    return _WithByOutputs(dataclasses.replace(as_subject(mechanism, target, name), one_by_one=True)).as_subject()
