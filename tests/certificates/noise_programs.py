"""Random source texts of small programs that compare noise: laws of `noise_laws` against runs with real numbers."""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from typing import Any

import numpy as np

DRAWS = [
    "rng.laplace(scale={s})", "rng.exponential({s})", "rng.exponential(scale={s}, size=2)[1]", "float(rng.laplace())",
    "rng.laplace({l}, {s}, size=3)[0]", "np.array([rng.laplace(), 1.0])[0]", "rng.random()", "rng.uniform(-1, 2)",
    "rng.choice([0.0, 0.5, 1.0])", "rng.integers(3)", "-rng.laplace(scale={s})", "rng.exponential({s}) * -1.0",
    "2 * rng.laplace(scale={s})", "abs(rng.laplace(scale={s}))", "max(rng.exponential({s}), {l})",
    "np.clip(rng.laplace(), -{s}, {s})",
]  # fmt: skip
TERMS = ["{v}", "{v} + x", "{v} - 0.2", "{v} - 0.7", "x * 0.5 + {v}", "{v} / 2", "{v} * 1.5", "0.1 + x", "0.6", "-0.4"]
OUTPUTS = ["0", "1", "2", "'a'", "x", "[1, x]", "None"]


class Writer:
    """One program, by its seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = ["def program(x, rng):"]
        self.count = self.random.randint(2, 4)

    def source(self) -> str:
        for k in range(self.count):
            draw = self.random.choice(DRAWS).format(
                s=self.random.choice([0.5, 1.0, 2.0]), l=self.random.choice([-0.3, 0.4])
            )
            self.lines.append(f"    v{k} = {draw}")
        self.body(self.random.randint(1, 3), 1)
        return "\n".join(self.lines) + "\n"

    def term(self) -> str:
        return self.random.choice(TERMS).format(v=f"v{self.random.randrange(self.count)}")

    def condition(self) -> str:
        a, b, c = self.term(), self.term(), self.term()
        forms = [f"{a} < {b}", f"{a} >= {b}"] * 4 + [
            f"np.argmax(np.array([{a}, {b}, {c}])) == 1",
            f"max({a}, {b}) > {c}",
        ]
        return self.random.choice(forms)

    def body(self, depth: int, indent: int) -> None:
        start = "    " * indent
        if depth == 0:
            output = self.random.choice([*OUTPUTS, f"bool({self.condition()})"])
            self.lines.append(f"{start}return {output}")
            return
        for word in (f"if {self.condition()}:", "else:"):
            self.lines.append(start + word)
            self.body(depth - 1, indent + 1)


def program(seed: int) -> Callable[[Any, Any], Any]:
    """The program of a seed, whose lines tracebacks know."""
    source, file = Writer(seed).source(), f"/noise_program_{seed}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    space: dict[str, Any] = {"np": np}
    exec(compile(source, file, "exec"), space)
    found: Callable[[Any, Any], Any] = space["program"]
    return found
