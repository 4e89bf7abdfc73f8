"""Random source texts of small programs: a traced law against a thousand runs with real numbers.

Unlike `random_programs`, nothing is known of their laws. They are made of what Python and numpy answer in different
ways: scalars taken from arrays, arrays of one, truth values that are computed with, divisions by 0, signs of zeros,
`try`, `match`, conversions, and draws that are used twice. `checked` explores each program and holds the law against
runs; a program that is refused, or explored in part, is counted as such.
"""

from __future__ import annotations

import collections
import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

from dpaudit.features.identity import identity
from dpaudit.subjects.callables import as_subject
from dpaudit.symbolic.conversions import kept_by_conversions
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.exploring import Exploration, Runner
from dpaudit.symbolic.leaves import NeedsNumbers
from dpaudit.symbolic.real_runs import atoms, misfit
from dpaudit.symbolic.tracing import Untraceable

RUNS = 1_000
LEVEL = 1e-10  # of one program: 10,000 right ones are all said to be right but with probability 1e-6
MAX_TRACED = 40  # runs of one exploration
MAX_LEFT = 0.2  # mass that may be left unexplored, so that there is something to compare

UNIFORM = [
    "rng.random()", "rng.random(2)[0]", "rng.random(1)[0]", "rng.random(1).item()", "rng.random((1, 1))[0, 0]",
    "rng.uniform(-1, 1)", "rng.uniform(np.float64(0), 2)", "rng.uniform(0, 1, 2)[1]", "next(iter(rng.random(2)))",
    "rng.random(2).tolist()[1]", "np.array([rng.random()])[0]", "np.abs(rng.random())", "rng.random(())[()]",
    "rng.uniform(1, -1)",
]  # fmt: skip
WHOLE = [
    "rng.geometric(0.5)", "rng.geometric(0.7, 2)[0]", "rng.geometric(0.5, 1).item()", "rng.integers(3)",
    "rng.integers(0, 1_000)", "rng.integers(0, 900, size=2)[1]", "rng.integers(2, size=1)[0]", "rng.choice(3)",
    "rng.choice([0, 5])", "rng.binomial(2, 0.5)", "rng.permutation(3)[0]", "rng.integers(5, dtype=int)",
    "rng.integers(3, dtype=np.int8)", "rng.hypergeometric(2, 1, 2)", "rng.geometric(0.6, 2).max()",
    "rng.geometric(0.6, 2).sum()", "np.array([rng.geometric(0.5)])[0]", "rng.integers(0)",
]  # fmt: skip
TRUTH = [
    "rng.integers(2, dtype=bool)", "rng.random() < 0.5", "rng.random(2)[0] < 0.5", "(rng.random(2) < 0.3)[1]",
    "np.less(rng.random(), 0.4)", "(rng.integers(2, size=1) == 1)[0]",
]  # fmt: skip
OF_UNIFORM = [
    "{u} * 2", "{u} - 0.5", "-{u}", "abs({u} - 0.25)", "{u} / 2", "{u} / 0", "{u} * 0", "{u} * -1", "1 - {u}",
    "{u} % 0.5", "{u} + np.float64(1)", "np.float64(2) * {u}", "{u} * np.int64(3)", "float({u})", "+{u}",
    "{u} * np.float32(2)", "{u} - {u}", "np.maximum({u}, 0.3)", "max({u}, 0.3)", "np.clip({u}, 0, 1)",
    "{u} + np.bool_(True)",
]  # fmt: skip
WHOLE_OF_UNIFORM = [
    "int({u} * 3)", "round({u} * 2)", "{u} // 0.5", "{u} // 0.0", "{u} // np.float64(0)", "np.floor({u} * 3)",
    "np.rint(-{u} / 4)", "np.rint({u} / 4)", "np.ceil({u} - 0.5)", "np.trunc({u} * 1.5 - 0.7)",
    "math.floor({u} * 2)", "{u} * 0.0", "{u} * -0.0", "divmod({u}, 0.5)[0]", "(rng.random(2) < {u2}).sum()",
    "np.searchsorted(np.array([0.3, 0.6]), {u})",
]  # fmt: skip
TRUTH_OF_UNIFORM = [
    "{u} < 0.5", "{u} >= 0.2", "0.4 > {u}", "np.float64(0.5) < {u}", "np.less({u}, 0.6)", "{u} == 0.5",
    "{u} != {u}", "{u} < np.array(0.5)", "np.isfinite({u})", "(np.array([0.1, 0.7]) < {u})[1]",
    "{u} < float('nan')", "isinstance({u}, np.floating)", "{u} <= np.int64(0)",
]  # fmt: skip
OF_WHOLE = [
    "{g} + 1", "{g} - {g2}", "-{g}", "{g} * 2", "{g} * -1.0", "float({g})", "int({g})", "round({g})", "{g} + 1.0",
    "abs({g} - 2)", "min({g}, 3)", "np.minimum({g}, 3)", "np.clip({g}, 0, 2)", "{g} % 2", "1 / {g}", "{g} / 0",
    "{g} // 0", "{g} // 2", "round({g}, 1)", "2 - {g}", "{g} ** 2", "~{g}", "{g} & 1", "{g} * 0.0", "0.0 * -{g}",
    "-float({g} - 1)", "{g} + np.int64(1)", "np.int64(1) - {g}", "{g} + np.int8(1)", "max({g} - 1, 0)",
    "{g} * {g2}", "math.floor({g})", "np.float64(1) * {g}", "{g} + np.bool_(True)", "{g} / 2", "np.sign({g})",
    "{g} + 0.5", "divmod({g}, 2)[1]", "-0.0 - ({g} - 1)", "np.add({g}, 1)", "np.array([{g}, 1]).max()",
]  # fmt: skip
TRUTH_OF_WHOLE = [
    "{g} > 1", "{g} == 1", "{g} <= 2.5", "1 < {g}", "{g} != {g2}", "np.int64(1) >= {g}", "{g} < {g2}", "{g} == 1.5",
    "isinstance({g}, int)", "np.greater({g}, 1)", "bool({g})", "{g} > float('nan')",
]  # fmt: skip
OF_TRUTH = [
    "~{b}", "-{b}", "{b} + {c}", "{b} - {c}", "{b} * {c}", "{b} & {c}", "{b} ^ {c}", "1 / {b}", "round({b})",
    "[0, 1][{b}]", "int({b})", "float({b})", "{b} / 2", "{b} // 2", "2 - {b}", "{b} ** 2", "not {b}", "str({b})",
    "{b} * 0.5", "abs({b})", "{b} and {c}", "{b} or {c}", "+{b}", "{b} << 1", "{b} + 1", "1 % {b}", "1.0 // {b}",
    "int(~{b})", "int({b} + {c})", "repr({b})", "{b} == 1", "np.sum([{b}, {c}])", "divmod(1, {b})",
]  # fmt: skip
OUTPUTS = [
    "{v}", "[{v}, {w}]", "({v}, {b})", "str({v})", "{{'a': {v}, 'b': {w}}}", "type({v}).__name__", "[{v}]",
    "{{{v}}}", "np.array([1, {v}])", "f'{{{v}}}'", "min({v}, 2)", "{{'b': {v}, 'a': {b}}}", "{{{v}: {w}}}",
    "[{v} == 0, {w} == 1]", "np.where({b}, {v}, 3)", "int({v})", "float({v})", "[1, 2, 3][{v}]", "({v} > 1) * 1",
    "{v} if {b} else {w}",
]  # fmt: skip


def random_source(rng: np.random.Generator) -> str:
    """The text of a function `program(rng)`."""

    def pick(several: list[str]) -> str:
        return several[int(rng.integers(len(several)))]

    pools: dict[str, list[str]] = {"u": [], "g": [], "b": []}
    lines: list[str] = []
    count = itertools.count()

    def put(kind: str, text: str) -> None:
        name = f"{kind}{next(count)}"
        text = filled(text)
        if rng.random() < 0.15:
            error = pick(["Exception", "ZeroDivisionError", "TypeError", "ArithmeticError"])
            other = pick(["7", "2.5", "True"])
            lines.extend(["try:", f"    {name} = {text}", f"except {error}:", f"    {name} = {other}"])
        elif rng.random() < 0.08 and kind != "u":
            case = pick(["True", "0", "int()", "float()", "bool()", "1"])
            lines.extend([f"match {text}:", f"    case {case}:", f"        {name} = 5", "    case other:",
                          f"        {name} = other"])  # fmt: skip
        else:
            lines.append(f"{name} = {text}")
        pools[kind].append(name)

    def filled(text: str) -> str:
        for field, kind in (("u", "u"), ("u2", "u"), ("g", "g"), ("g2", "g"), ("b", "b"), ("c", "b")):
            while "{" + field + "}" in text:
                if not pools[kind]:
                    put(kind, pick({"u": UNIFORM, "g": WHOLE, "b": TRUTH}[kind]))
                text = text.replace("{" + field + "}", pick(pools[kind]))
        return text

    for _ in range(int(rng.integers(2, 6))):
        kind, several = [("u", UNIFORM), ("g", WHOLE), ("b", TRUTH), ("u", OF_UNIFORM), ("g", WHOLE_OF_UNIFORM),
                         ("b", TRUTH_OF_UNIFORM), ("g", OF_WHOLE), ("b", TRUTH_OF_WHOLE), ("g", OF_TRUTH)
                         ][int(rng.integers(9))]  # fmt: skip
        put(kind, pick(several))
    if not pools["g"]:
        put("g", pick(OF_TRUTH))
    output = pick(OUTPUTS).replace("{b}", pick(pools["b"]) if pools["b"] else "rng.random(1)[0] < 0.5")
    output = output.replace("{v}", pools["g"][-1]).replace("{w}", pick(pools["g"] + pools["b"]))
    lines.append("return " + output.replace("{{", "{").replace("}}", "}"))
    return "def program(rng):\n" + "".join(f"    {line}\n" for line in lines)


def compiled(source: str, name: str) -> Callable[[Any], Any]:
    """The function of a text, whose lines errors can show."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {"np": np, "math": __import__("math")}
    exec(compile(source, name, "exec"), space)
    return space["program"]


def checked(first_seed: int, count: int) -> tuple[list[str], collections.Counter[str], collections.Counter[str]]:
    """What is wrong of the programs of so many seeds; how many were compared; and the reasons of refusals."""
    sources = [random_source(np.random.default_rng([20_261_130, first_seed + k])) for k in range(count)]
    programs = [compiled(source, f"/traced/program_{k}.py") for k, source in enumerate(sources)]
    subject = as_subject(lambda x, rng: programs[x](rng))
    found: list[str] = []
    kinds: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    laws: dict[int, Any] = {}
    with np.errstate(all="ignore"):
        depends = Dependence(subject.mechanism)
        with kept_by_conversions(depends):
            runners = [Runner(subject, "numpy"), Runner(subject, "numpy", lazy=False)]
            for k in range(count):
                try:
                    try:
                        laws[k] = explored(runners[0], k)
                    except NeedsNumbers:
                        laws[k] = explored(runners[1], k)
                except Untraceable as refusal:
                    kinds["refused"] += 1
                    reasons[str(refusal).partition(" (line")[0]] += 1
        for k, exploration in laws.items():
            if exploration.left > MAX_LEFT:
                kinds["left open"] += 1
                continue
            rng = np.random.default_rng([first_seed + k])
            counts = collections.Counter(map(identity, subject.observe_one_by_one(k, RUNS, rng)))
            unlike = misfit(atoms(exploration.law), counts, LEVEL)
            kinds["compared"] += 1
            if unlike:
                found.append(f"seed {first_seed + k}: {unlike}\n{sources[k]}")
    return found, kinds, reasons


def explored(runner: Runner, k: int) -> Exploration:
    """The exploration of one program, of a few runs."""
    exploration = Exploration(runner, k)
    for _ in range(MAX_TRACED):
        if not exploration.is_open:
            break
        exploration.step()
    return exploration


def explore(runner: Runner, x: Any) -> Exploration:
    """An exploration of one input to its end; for small programs."""
    exploration = Exploration(runner, x)
    while exploration.is_open:
        exploration.step()
    exploration.repeat()
    runner.check()
    return exploration
