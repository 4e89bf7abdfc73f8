"""A program that answers for a function: `python serving.py FILE`, in any Python (docs/exec-protocol.md).

FILE has a function `mechanism()` that imports the library and returns a function of one input, which draws one output
with randomness of its own. What a draw raises is that draw's outcome. What the library prints goes to stderr. Only the
standard library is imported here: the environment of an old release has nothing else of ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any, TextIO

BATCH = 2_000  # outputs of one request: old libraries are slow, and a request has a time limit


def serve(draw: Callable[[Any], Any], name: str, lines: TextIO, answers: TextIO, batch: int = BATCH) -> None:
    """Answer each line until there are no more."""
    for line in lines:
        request = json.loads(line, object_hook=_read)
        if request["type"] == "hello":
            answer = {"type": "hello", "protocol": 1, "name": name, "batch": batch}
        else:
            outputs = [_drawn(draw, request["input"]) for _ in range(request["size"])]
            answer = {"id": request["id"], "outputs": outputs}
        print(json.dumps(answer, default=_written), file=answers, flush=True)


def _drawn(draw: Callable[[Any], Any], value: Any) -> Any:
    try:
        return draw(value)
    except Exception as error:
        return {"$error": {"kind": type(error).__name__, "message": str(error)[:200]}}


def _read(entry: dict[str, Any]) -> Any:
    """NaN and infinities as the protocol writes them."""
    if set(entry) != {"$float"}:
        return entry
    text = str(entry["$float"])
    return float.fromhex(text) if "0x" in text else float(text)


def _written(value: Any) -> Any:
    """Arrays, series and scalars of libraries as lists and numbers."""
    for name in ("tolist", "item"):
        if hasattr(value, name):
            return getattr(value, name)()
    raise TypeError(f"an output must be numbers, texts and lists of them, got {type(value).__name__}.")


def main(file: str) -> None:
    # Compiled code prints to the file of number 1, whatever `sys.stdout` is.
    with os.fdopen(os.dup(1), "w") as answers, contextlib.redirect_stdout(sys.stderr):
        os.dup2(2, 1)
        served = runpy.run_path(file)
        serve(served["mechanism"](), file, sys.stdin, answers, served.get("BATCH", BATCH))


if __name__ == "__main__":
    main(sys.argv[1])
