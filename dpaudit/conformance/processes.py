"""Checks across processes: the same seed gives the same bits elsewhere, and no two processes share noise.

Children are forked, which needs no pickling and is how web servers and pools run. Elsewhere these checks are skipped.
"""

from __future__ import annotations

import functools
import json
import math
import os
import select
import signal
import warnings
from collections.abc import Callable
from typing import Any

from dpaudit.conformance.calls import needs_seed
from dpaudit.conformance.case import Case, fail, raised, shown, tokens
from dpaudit.conformance.noise import CONSTANT
from dpaudit.conformance.outcomes import CheckInconclusive, CheckSkipped
from dpaudit.errors import SubjectError
from dpaudit.inference.binomial import binomial_upper

SIZE = 8
LONG = 64  # outputs of each of two processes that must not be equal throughout
PILOT = 400
PATIENCE = 60.0  # seconds for a child


def in_a_child(work: Callable[[], list[str]]) -> list[str]:
    """Result of `work` in a forked child; `SubjectError` if it raises there, or takes more than a minute."""
    if not hasattr(os, "fork"):
        raise CheckSkipped("this system cannot fork a process")
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: the child only draws
        child = os.fork()
    if child == 0:  # pragma: no cover (in the child)
        try:
            try:
                answer: dict[str, Any] = {"tokens": work()}
            except BaseException as error:
                answer = {"error": raised(error)}
            with os.fdopen(writing, "wb") as stream:
                stream.write(json.dumps(answer).encode("utf-8", "backslashreplace"))
        finally:
            os._exit(0)  # whatever happens: this copy of the caller must not go on
    os.close(writing)
    parts: list[bytes] = []
    try:
        while True:
            ready, _, _ = select.select([reading], [], [], PATIENCE)
            if not ready:
                os.kill(child, signal.SIGKILL)
                raise SubjectError(f"a call in another process must end within {PATIENCE:g} seconds, got none.")
            part = os.read(reading, 1 << 16)
            if not part:
                break
            parts.append(part)
    finally:
        os.close(reading)
        os.waitpid(child, 0)
    answer = json.loads(b"".join(parts) or b'{"error": "an end without an answer"}')
    if "error" in answer:
        raise SubjectError(f"a call in another process must return outputs, got {answer['error']}.")
    return [str(token) for token in answer["tokens"]]


def same_bits_in_another_process(case: Case) -> str | None:
    """A forked child draws the same from the same seed."""
    needs_seed(case)
    for k, data in enumerate(case.inputs[:2]):

        def work(k: int = k, data: Any = data) -> list[str]:
            return tokens(case.read(data, SIZE, "same_bits_in_another_process", k))

        here, there = work(), in_a_child(work)
        if here != there:
            fail(f"outputs must be the same in another process, got {shown(there)} there and {shown(here)} here. "
                 "Take all randomness from rng.")  # fmt: skip
    return None


def independent_processes(case: Case) -> str | None:
    """Two forked children, with different generators where the mechanism takes one, do not draw the same.

    Two independent sequences of n outputs are equal with probability q^n, where q is the probability that two outputs
    are. Half of the level is for an upper limit of q (the exact binomial one, over pairs of pilot outputs, each in one
    pair), and n is such that q^n is below the other half; where n would be large the check is inconclusive.
    """
    name = "independent_processes"
    data = case.inputs[0]
    pilot = tokens(case.read(data, PILOT, name, 0))
    if len(set(pilot)) == 1:
        raise CheckSkipped(CONSTANT)
    equal = sum(a == b for a, b in zip(pilot[::2], pilot[1::2], strict=True))
    likely = binomial_upper(equal, PILOT // 2, 0.5 * case.level)
    size = LONG if likely >= 1.0 else max(LONG, math.ceil(math.log(0.5 * case.level) / math.log(max(likely, 1e-9))))
    if likely >= 1.0 or size > 100 * LONG:
        raise CheckInconclusive("the outputs vary too little to tell whether two processes share their noise")
    runs = (functools.partial(case.read, data, size, name, 1, run) for run in (0, 1))
    first, second = (in_a_child(lambda run=run: tokens(run())) for run in runs)  # type: ignore[misc]
    if first == second:
        fail(f"two processes must not share noise, got the same {size} outputs {shown(first)} in both. "
             "Draw from rng, or seed anew after a fork.")  # fmt: skip
    return None
