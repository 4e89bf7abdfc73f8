"""Put small faults into modules one at a time, and see which of them the tests notice.

    make mutants MODULES="dpaudit/inference/payoffs.py dpaudit/inference/binomial.py" COUNT=40

cosmic-ray's operators make the faults. Those that change no code (annotations, docstrings) are left out. COUNT of the
rest are drawn with a fixed seed, all where COUNT is not given. Each is tried in a fork of a session of pytest that has
collected the tests that mirror the module (and those of TESTS): see `collected_session`. What nothing notices there is
tried again in a copy of the working tree, in a process that imports the module anew. A fault is noticed if a test
fails, or takes over ten times the processor time that it takes without it.

Without MODULES the faults of .ci/known_faults.json are put in, which the tests missed once: none may be missed again.

reports/mutants.json takes the results up, module by module. The scores in docs/measurements/reliability.md and the
lists in mutants.md beside it are written from it, by `make mutants MODULES=none` too. A fault that changes nothing that
is promised has to be told by a person: .ci/equivalent_mutants.json gives each its reason. It is not tried again.
LEFT=1 tries those alone that the last run left, once tests were added: what was noticed before still is.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import json
import os
import pickle
import random
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import cosmic_ray.plugins
import hypothesis
import pytest
from collected_session import Outcome, Session
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from scipy import stats

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reports" / "mutants.json"
PAGES = ROOT / "docs" / "measurements"
EQUIVALENT = ROOT / ".ci" / "equivalent_mutants.json"
KNOWN = ROOT / ".ci" / "known_faults.json"
BEGIN, END = "<!-- mutants: begin -->", "<!-- mutants: end -->"
SEED = 20_261_126
ALSO = {  # tests of a module that stand under another name
    "dpaudit/campaign/campaign.py": ["tests/campaign/test_one_order.py"],
    "dpaudit/campaign/all_pairs.py": [
        "tests/campaign/test_all_pairs_game.py",
        "tests/campaign/test_one_order.py",
        "tests/learning/test_thresholds_and_bounds.py",
    ],
    "dpaudit/audits/low_bits.py": [
        "tests/audits/test_low_bit_stage.py",
        "tests/campaign/test_one_order.py",
        "tests/learning/test_thresholds_and_bounds.py",
    ],
    "dpaudit/running/checkpoint.py": ["tests/running/test_faults_of_resuming.py"],
    "dpaudit/running/store.py": ["tests/running/test_faults_of_resuming.py"],
}
AGAIN = 170  # processor seconds of the tests that are asked again: ten times those that are chosen for a fault, and 20
WALL = 1_800  # seconds: for a fault that waits for ever, on a busy machine
MEMORY = 4 << 30
# Imported once, before the first fork. Nothing of dpaudit may be: each fault is imported anew.
LIBRARIES = ("numpy", "scipy.optimize", "scipy.special", "scipy.stats", "joblib", "click", "rich.console", "hypothesis")


def tests_of(module: str) -> list[str]:
    """The tests that mirror a module, and those of `ALSO`."""
    path = Path(module)
    room = Path("tests", *path.parts[1:-1]) if path.parts[0] == "dpaudit" else Path("tests", *path.parts[:-1])
    if room.name == "pytest_plugin":  # its tests stand beside those of the sessions
        room = room.with_name("plugin")
        own = [ROOT / room / f"test_plugin_{path.stem}.py"]
    else:
        own = [ROOT / room / f"test_{path.stem}.py", *sorted((ROOT / room).glob(f"test_{path.stem}_*.py"))]
    return list(dict.fromkeys([*(str(one.relative_to(ROOT)) for one in own if one.exists()), *ALSO.get(module, [])]))


class _WithoutWords(ast.NodeTransformer):
    """Takes annotations and docstrings out of a module: faults in them change nothing."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        self.generic_visit(node)
        node.annotation = ast.Constant("")
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        self.generic_visit(node)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = ""
        return node


def meaning(source: str) -> str:
    """What of a module is code, as text."""
    return ast.dump(_WithoutWords().visit(ast.parse(source)))


def candidates(source: str) -> list[tuple[object, int]]:
    """Operators of cosmic-ray that take no arguments, with the number of each place that they change."""
    tree = get_ast(source)
    nodes = list(ast_nodes(tree))
    found: list[tuple[object, int]] = []
    for name in cosmic_ray.plugins.operator_names():
        operator_class = cosmic_ray.plugins.get_operator(name)
        if not operator_class.arguments() and "no-op" not in name:
            operator = operator_class()
            places = sum(1 for node in nodes for _ in operator.mutation_positions(node))
            found += [(operator, place) for place in range(places)]
    return found


def faults(source: str, count: int | None) -> Iterator[tuple[str, str]]:
    """Up to `count` faults in a drawn order: the changed lines (which name the fault), and the whole module."""
    drawn = candidates(source)
    random.Random(SEED).shuffle(drawn)
    seen = {meaning(source)}
    given = 0
    for operator, place in drawn:
        if count is not None and given >= count:
            return
        changed = mutate_code(source, operator, place)
        try:
            code = meaning(changed)
        except SyntaxError:
            continue
        if code not in seen:
            seen.add(code)
            given += 1
            yield difference(source, changed), changed


def difference(source: str, changed: str) -> str:
    """The lines that a fault changes, before and after."""
    before, after = source.splitlines(), changed.splitlines()
    while before and after and before[0] == after[0]:
        before.pop(0), after.pop(0)
    while before and after and before[-1] == after[-1]:
        before.pop(), after.pop()
    return " / ".join(line.strip() for line in before) + "  ->  " + " / ".join(line.strip() for line in after)


def run(folder: Path, tests: list[str], processor_seconds: float) -> tuple[int, float]:
    """The exit status of the tests in a process of their own (-1 where a signal ended it), and its seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.setsid()
            os.chdir(folder)
            sys.path.insert(0, str(folder))
            quiet = os.open(folder / "tests.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            resource.setrlimit(resource.RLIMIT_CPU, (int(processor_seconds), int(processor_seconds) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            signal.alarm(WALL)
            options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow and not long"]
            status = int(pytest.main([*options, *tests]))
        finally:
            os._exit(status)
    _, how = os.waitpid(child, 0)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    return (os.WEXITSTATUS(how) if os.WIFEXITED(how) else -1), seconds


def collected(module: str, tests: list[str], chosen: list[tuple[str, str]]) -> list[Outcome]:
    """What becomes of faults in a session that collects the tests once, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="dpaudit-mutants-") as name:
        answer, log = Path(name, "answer"), Path(name, "log")
        child = os.fork()
        if child == 0:
            status = 99
            try:
                os.chdir(ROOT)
                sys.path.insert(0, str(ROOT))
                quiet = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(quiet, 1)
                os.dup2(quiet, 2)
                # No verdict may hang on how busy the machine is, and the same examples are drawn for every fault.
                hypothesis.settings.register_profile("mutants", deadline=None, derandomize=True, database=None)
                hypothesis.settings.load_profile("mutants")
                name = ".".join(Path(module).with_suffix("").parts).removesuffix(".__init__")
                importlib.import_module(name)
                session = Session(name, ROOT / module, chosen)
                options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider", "-m", "not slow and not long"]
                status = int(pytest.main([*options, *tests], plugins=[session]))
                if status == 0:
                    answer.write_bytes(pickle.dumps(session.outcomes))
            finally:
                os._exit(status)
        os.waitpid(child, 0)
        found: list[Outcome] = pickle.loads(answer.read_bytes()) if answer.exists() else []
        if not answer.exists() or len(found) < len(chosen):
            raise SystemExit(f"the tests of {module} must pass without a fault: {log.read_text()[-3000:]}")
        return found


def try_module(
    module: str, tests: list[str], count: int | None, folder: Path, before: dict[str, object] | None = None
) -> dict[str, object]:
    """Try the faults of a module, one after the other: how many there were, and those that no test noticed.

    `before` is what the last run found: then those alone are tried that were left.
    """
    path = folder / module
    source = path.read_text(encoding="utf-8")
    digest = hashlib.sha256(source.encode()).hexdigest()
    drawn = list(faults(source, count))
    same = read(EQUIVALENT).get(module, {})  # each was tried when it was found
    survived = [name for name, _ in drawn if name in same]
    chosen = [(name, changed) for name, changed in drawn if name not in same]
    if before is not None:
        if (before.get("digest"), before.get("tried")) != (digest, len(drawn)):
            raise SystemExit(f"LEFT needs a run of as many faults in the same {module}.")
        chosen = [(name, changed) for name, changed in chosen if name in before["survived"]]
    for number, (outcome, (name, changed)) in enumerate(zip(collected(module, tests, chosen), chosen, strict=True)):
        status = outcome.status
        if not status:  # nothing noticed it, or it was not put in
            path.write_text(changed, encoding="utf-8")
            os.utime(path, (number + 1, number + 1))  # no compiled file is taken for that of another fault
            status, _ = run(folder, list(outcome.asked), AGAIN)
            path.write_text(source, encoding="utf-8")
        # 4: the tests were found before, so now their file cannot be imported. Others say nothing of the fault.
        if status in (3, 5, 99):
            raise SystemExit(f"pytest must run, got status {status} for {module}: {name}")
        if status == 0:
            survived.append(name)
            print(f"{module}: {name}", flush=True)
    places = len(candidates(source))
    return {"digest": digest, "places": places, "tried": len(drawn), "survived": survived, "tests": tests}


def try_known(folder: Path) -> list[str]:
    """The faults of .ci/known_faults.json that are not noticed now: tests missed each of them once."""
    missed = []
    faults_known = json.loads(KNOWN.read_text(encoding="utf-8"))
    for tests in sorted({fault["tests"] for fault in faults_known}):
        if (status := run(folder, shlex.split(tests), 600)[0]) != 0:
            raise SystemExit(f"{tests} must pass without a fault, got status {status}.")
    for fault in faults_known:
        path = folder / fault["module"]
        source = path.read_text(encoding="utf-8")
        if fault["old"] not in source:
            raise SystemExit(f"known faults must have a place in {fault['module']}, got {fault['old']!r}.")
        path.write_text(source.replace(fault["old"], fault["new"]), encoding="utf-8")
        status, _ = run(folder, shlex.split(fault["tests"]), 600)
        path.write_text(source, encoding="utf-8")
        said = f"{fault['module']}: {fault['old'].strip()}  ->  {fault['new'].strip()}"
        print(f"{'missed' if status == 0 else 'noticed'} ({status}): {said}", flush=True)
        missed += [said] * (status == 0)
    return missed


def table(results: dict[str, dict[str, object]], equivalent: dict[str, dict[str, str]]) -> str:
    """The scores per module and room, in Markdown."""
    lines = ["| module | faults tried | noticed | equivalent | left | score | 95% interval |"]
    lines.append("| --- | --- | --- | --- | --- | --- | --- |")
    rooms: dict[str, list[int]] = {}
    for module, found in sorted(results.items()):
        reasons = equivalent.get(module, {})
        same = sum(name in reasons for name in found["survived"])
        left = len(found["survived"]) - same
        counts = [found["tried"], found["tried"] - same - left, same, left]
        lines.append(_row(f"`{module}`", counts))
        room = rooms.setdefault(str(Path(module).parent), [0, 0, 0, 0])
        room[:] = [one + other for one, other in zip(room, counts, strict=True)]
    lines += [_row(f"**{room}**", counts) for room, counts in sorted(rooms.items())]
    return "\n".join(lines)


def survivors(results: dict[str, dict[str, object]], equivalent: dict[str, dict[str, str]]) -> str:
    """Every survivor, with its reason where it changes nothing, in Markdown."""
    lines = ["### Faults that change nothing, and why", ""]
    for module, reasons in sorted(equivalent.items()):
        lines += [f"* `{module}`: `{name}`. {why}" for name, why in reasons.items()]
    lines += ["", "### Faults that no test of the module noticed", ""]
    lines += [
        f"* `{module}`: `{name}`"
        for module, found in sorted(results.items())
        for name in found["survived"]
        if name not in equivalent.get(module, {})
    ] or ["None of those that were tried."]
    return "\n".join(lines)


def _row(name: str, counts: list[int]) -> str:
    tried, noticed, same, left = counts
    if noticed + left == 0:
        return f"| {name} | {tried} | 0 | {same} | 0 | none | none |"
    exact = stats.binomtest(noticed, noticed + left).proportion_ci(0.95, method="exact")
    score = noticed / (noticed + left)
    return f"| {name} | {tried} | {noticed} | {same} | {left} | {score:.0%} | {exact.low:.0%} to {exact.high:.0%} |"


def written_into(page: str, content: str) -> str:
    """The page with what stands between the two marks replaced."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{content}\n\n{END}{rest.split(END)[1]}"


def read(path: Path) -> dict[str, dict]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def write_pages(results: dict[str, dict[str, object]]) -> None:
    for name, content in (("reliability.md", table), ("mutants.md", survivors)):
        page = (PAGES / name).read_text(encoding="utf-8")
        page = written_into(page, content(results, read(EQUIVALENT)))
        (PAGES / name).write_text(page, encoding="utf-8")


def main() -> int:
    modules = os.environ.get("MODULES", "").split()
    count = int(os.environ["COUNT"]) if os.environ.get("COUNT") else None
    extra = os.environ.get("TESTS", "").split()
    left = bool(os.environ.get("LEFT"))
    if modules == ["none"]:
        write_pages(read(RESULTS))
        return 0
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory(prefix="dpaudit-mutants-") as name:
        folder = Path(name)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for file in subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0"):
            if file and (ROOT / file).is_file():
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / file, folder / file)
        # The copy's, before that of the installation:
        (folder / "dpaudit_mechanisms").symlink_to("mechanisms/dpaudit_mechanisms")
        if not modules:
            return len(try_known(folder))
        for module in modules:
            tests = list(dict.fromkeys([*tests_of(module), *extra]))
            if not tests:
                raise SystemExit(f"MODULES must have tests, got {module!r} without. Name some with TESTS=...")
            results = read(RESULTS)
            found = try_module(module, tests, count, folder, results.get(module, {}) if left else None)
            results[module] = found
            RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            write_pages(results)
            print(f"{module}: {found['tried'] - len(found['survived'])} of {found['tried']} faults noticed", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
