"""Runs of a mechanism on a tape: one run, all runs (decision by decision), and runs with numbers to check them against.

What is known of an input is the list of its paths, each with its probability and its output as a function of the noise.
It is used only where runs with numbers, on the same noise, gave the same output: a program may treat a symbol
otherwise than a number (`isinstance`, an array of objects), and then nothing is known.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np

from dpaudit.errors import SubjectError, UsageError
from dpaudit.features.identity import identity
from dpaudit.subjects.call_limits import Hold
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.copies import copied
from dpaudit.subjects.plain import brief
from dpaudit.subjects.tracebacks import is_outcome, signal_handlers
from dpaudit.symbolic.choices import Frontier, is_own_code
from dpaudit.symbolic.dependence import Dependence
from dpaudit.symbolic.generators import OldNumpyRng, PythonRng
from dpaudit.symbolic.interception import recorded
from dpaudit.symbolic.known_names import AS_OURS, names_ours
from dpaudit.symbolic.leaves import form, held
from dpaudit.symbolic.noise_draws import NoiseDraws
from dpaudit.symbolic.noisy_numbers import Noisy
from dpaudit.symbolic.outputs import Laid, laid_out
from dpaudit.symbolic.seeds import handed_seed
from dpaudit.symbolic.tape import Tape, TooLong, Unsupported

MAX_PATHS = 256
N_CHECK_RUNS = 3  # of a traced run against a real one with the same noise
ROUNDING = 1e-9
MAX_STEPS = 200_000
_SEED_SEQUENCE = np.random.SeedSequence


@dataclasses.dataclass(frozen=True)
class Path:
    """One run: its tape, its output or the kind of the exception it raised with the place, and its way (`Way`).

    `token` is the identity of the output (`Laid.token`), or of the exception with its text; `form` is what it does not
    show (`held`), of a run with numbers.
    """

    tape: Tape
    output: Laid | None
    raised: str = ""
    place: str = ""
    problem: str = ""
    way: int = 0
    token: str = ""
    form: tuple[Any, ...] = ()

    @property
    def outcomes(self) -> tuple[int, ...]:
        """The branch that each decision took."""
        return tuple(decision.outcome for decision in self.tape.decisions)

    @property
    def is_known(self) -> bool:
        """Tell whether the run gives the output for all noise that takes the same branches."""
        return not self.problem and not self.tape.is_opaque


@dataclasses.dataclass(frozen=True)
class Paths:
    """All known runs of one input.

    `first` is the run without a script, `plain` the same with numbers. `known` has the runs whose output is known as a
    function of the noise, one for each list of decisions; all others have the probability `left`. `runs` counts calls.
    `message` says why nothing is known, `unknown` which runs are not, `impurity` what else than their input and draws
    runs may depend on; each is empty else.
    """

    first: Path
    plain: Path
    known: tuple[Path, ...]
    left: float
    runs: int
    message: str = ""
    unknown: str = ""
    impurity: str = ""


def call(subject: Subject, data: Any, generator: Any, tape: Tape) -> Any:
    """One output of a subject, which gets the tape's generator, or a seed for one."""
    function = subject.mechanism.sample if subject.interface == "sample(data, size, rng)" else subject.mechanism
    gives_batches = "size" in subject.interface
    given = {name: 1 if role == "size" else _given_as(role, generator, tape) for name, role in subject.keywords}
    hold = Hold()
    try:
        if subject.interface == "sample(data, size, rng)":
            answer = function(data, 1, *(given.values() or [generator]))
        else:
            answer = function(data, **given)
        if not gives_batches:
            return list(answer) if hasattr(answer, "__next__") else answer
    finally:
        hold.check_process()
    if not hasattr(answer, "__len__") or len(answer) != 1:
        raise SubjectError(f"{subject.name} must return a batch of 1 output for size=1.")
    return answer[0]


def _given_as(role: str, generator: Any, tape: Tape) -> Any:
    """Argument for a parameter of this role: a generator on the tape, or a seed for one."""
    if role == "seed":
        key = (tape.run, tape.salt)
        return handed_seed(tape, int(_SEED_SEQUENCE(tape.seed, spawn_key=key).generate_state(1)[0]))
    if role in ("random_state", "random"):
        return (PythonRng if role == "random" else OldNumpyRng)(NoiseDraws(tape))
    return generator


class Steps:
    """Steps of the user's own code in a run: its lines, numbers that variables got on a line, and returned values."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[tuple[str, str, float]] = []  # line, variable, value
        self.returned: list[tuple[Any, str]] = []
        self._before: dict[int, dict[str, Any]] = {}  # variables of the calls that go on
        self._lines: dict[int, str] = {}

    def enter(self, frame: FrameType) -> None:
        """Note a call: no line of it has computed its arguments."""
        self._before[id(frame)] = dict(frame.f_locals)

    def note(self, frame: FrameType, event: str, argument: Any) -> None:
        """Note what has changed since the step before."""
        line, old = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}", self._before[id(frame)]
        for name, value in frame.f_locals.items():
            if isinstance(value, bool | int | float | np.bool_ | np.number) and old.get(name, self) is not value:
                with contextlib.suppress(TypeError, OverflowError):  # complex, or above all doubles
                    self.numbers.append((self._lines.get(id(frame), line), name, float(value)))
            old[name] = value
        self.lines.append(line)
        self._lines[id(frame)] = line
        if event == "return":
            self.returned.append((argument, line))
            del self._before[id(frame)], self._lines[id(frame)]


class Way:
    """A digest of the instructions of the user's own code that a run made, in their order, up to `MAX_STEPS`.

    Validity: a program that branches on the type of a number (`arr.dtype`, `type(y) is float`) goes another way with
    symbols. Its output may seldom show that; the instructions do. 0 under a debugger or a measure of coverage, which
    trace lines themselves.
    """

    def __init__(self, steps: Steps | None = None) -> None:
        self.digest, self.count, self.steps = 0, 0, steps

    def __enter__(self) -> Way:
        self.is_free = sys.gettrace() is None
        if self.is_free:
            sys.settrace(self._enter)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_free:
            sys.settrace(None)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self.count >= MAX_STEPS or not _is_own(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if self.steps is not None:
            self.steps.enter(frame)
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event in ("opcode", "return") and self.count < MAX_STEPS and self.steps is not None:
            self.steps.note(frame, event, argument)
        if event == "opcode" and self.count < MAX_STEPS:
            self.count += 1
            self.digest = hash((self.digest, frame.f_code.co_firstlineno, frame.f_lasti))
        return self._step


_is_own = functools.lru_cache(maxsize=4_096)(is_own_code)


def run(subject: Subject, x: Any, tape: Tape, steps: Steps | None = None) -> Path:
    """Run a subject once on a tape; `steps` gets those of the user's own code."""
    way = Way(steps)
    found = _run(subject, x, tape, way)
    if tape.events:
        subject.history.note_moved(x)
    changed = "" if tape.depends is None or tape.is_quick else tape.depends.changed()
    problem = found.problem or tape.ended or (f"{changed}." if changed else "")
    return dataclasses.replace(found, way=way.digest, problem=problem)


def _run(subject: Subject, x: Any, tape: Tape, way: Way) -> Path:
    if subject.copies.handlers is None:
        subject.copies.handlers = signal_handlers()
    handlers, data = subject.copies.handlers, copied(x)
    try:
        with recorded(tape) as generator, way:
            output = call(subject, data, generator, tape)
        # Validity: what is raised here is not the mechanism's, and two of the same kind are no equal outcomes.
        try:
            laid = laid_out(output)
        except Exception as error:
            return Path(tape, None, problem=str(error) if isinstance(error, Unsupported) else _UNREADABLE)
        return _noted(Path(tape, laid, token=laid.token), output)
    except TooLong as stop:
        return Path(tape, None, problem=str(stop))
    except (Unsupported, SubjectError) as error:
        return Path(tape, None, problem=str(error))
    except BaseException as error:
        if not is_outcome(error, handlers):
            raise
        failed = brief(error)
        if names_ours(failed.message):
            return Path(tape, None, problem=f"{AS_OURS}.")
        return _noted(Path(tape, None, failed.kind, _raised_at(error), token=identity(failed)), failed)


def _noted(path: Path, output: Any) -> Path:
    """The path; what its token does not show of an output is noted, as other paths may show it otherwise."""
    if path.tape.is_plain:
        return dataclasses.replace(path, form=form(output))
    if path.tape.depends is not None and not path.tape.is_quick:
        path.tape.depends.note_form(path.token, (*held(output),))
    return path


_UNREADABLE = "its output cannot be read."


def explore(
    subject: Subject,
    x: Any,
    seed: int,
    most_paths: int = MAX_PATHS,
    until: float = math.inf,
    depends: Dependence | None = None,
    deadline: float = math.inf,
) -> Paths:
    """All runs of one input, as far as they are known; some `most_paths` runs for decisions.

    After `until`, in the time of `time.monotonic`, no further path is begun; a run that goes on at the deadline ends.
    """
    depends = depends or Dependence(subject.mechanism)
    depends.add(x)
    tape = functools.partial(Tape, seed, depends=depends, deadline=deadline)
    plain = run(subject, x, tape(0, is_plain=True))
    if plain.tape.is_late:
        return Paths(plain, plain, (), 1.0, 1, plain.problem)
    again = run(subject, x, tape(0, is_plain=True))
    # Validity: what is drawn unseen may seldom show, and an output that seems to have no noise would be taken for that.
    moved = depends.moved() or plain.tape.seeds != again.tape.seeds
    first = run(subject, x, tape(0))
    count = 3
    message = plain.problem or first.problem
    unseen = next((path.tape.unseen for path in (plain, again, first) if path.tape.unseen), "")
    if unseen and not message:
        message = f"it has randomness that is not recorded: {unseen}."
    # Noise that is kept (a dictionary of answers) comes back without being drawn. What was kept before is not seen.
    if not message and (moved or not _are_alike(plain, again)):
        message = "it has randomness that is not recorded, or a memory: a generator of its own, or another output."
    if not message and any(role == "seed" for _, role in subject.keywords):
        count += 1
        if not _end_alike(plain, run(subject, x, tape(0, is_plain=True, salt=1))):
            message = "it makes noise of its seed that is not recorded."
    for number in range(N_CHECK_RUNS):
        if message:
            break
        one, other = first, plain
        if number:
            one, other = run(subject, x, tape(number)), run(subject, x, tape(number, is_plain=True))
            count += 2
        if one.problem or not _end_alike(one, other) or one.way != other.way:
            message = one.problem or _how_lost(subject, x, one, other)
    known: list[Path] = []
    left, unknown = 1.0, ""
    if not message and not first.is_known:
        message = f"it {first.tape.opaque_what} (line {first.tape.opaque_at})."
    elif not message:
        known, runs, is_whole = _paths(subject, x, tape, first, most_paths, until)
        count += runs
        # 1e-12: the rounding of a sum of some 256 products. Only where every run was seen nothing is left.
        rest = max(1.0 - math.fsum(path.tape.probability() for path in known), 0.0)
        left = 0.0 if is_whole else rest + 1e-12
        if left > 0.0:
            unknown = f"runs of probability {left:.2g} are not known"
    return Paths(first, plain, tuple(known), left, count, message, unknown, depends.impurity())


def is_repeatable(subject: Subject, x: Any, paths: Paths) -> bool:
    """Tell whether one more run with numbers is what the first was: what runs out (a budget of calls) shows late."""
    tape = paths.plain.tape
    again = run(subject, x, Tape(tape.seed, 0, is_plain=True, deadline=tape.deadline))
    return _are_alike(paths.plain, again)


def _how_lost(subject: Subject, x: Any, one: Path, other: Path) -> str:
    """Difference of a run with symbols from the one with numbers, with the line where they part."""
    steps = (Steps(), Steps())
    for path, own in zip((one, other), steps, strict=True):
        limited = Tape(path.tape.seed, path.tape.run, is_plain=path.tape.is_plain, deadline=path.tape.deadline)
        run(subject, x, limited, own)
    both = zip(*(own.lines for own in steps), strict=False)
    common = [a for a, _ in itertools.takewhile(lambda lines: lines[0] == lines[1], both)]
    place = one.place or other.place or (common[-1] if common and one.way != other.way else "")
    at = f" (line {place})" if place else ""
    if one.raised and not other.raised:
        return f"its noise goes where a plain number alone will do: a symbol in its place raises {one.raised}{at}."
    if one.raised != other.raised:
        return f"with symbols for its noise it raises {one.raised or 'nothing'}, not {other.raised or 'nothing'}{at}."
    if one.way != other.way:
        return f"it takes another way through its code with symbols for its noise{at}."
    return "with symbols for its noise its output is another one than with numbers."


def _paths(
    subject: Subject, x: Any, tape: Callable[..., Tape], first: Path, most: int, until: float
) -> tuple[list[Path], int, bool]:
    """All lists of decisions, the most likely first; the runs that took, and whether each path is known."""
    found, runs, is_whole = [first] if first.is_known else [], 0, first.is_known
    waiting = Frontier(first.tape.opened)
    while len(waiting) and runs < most and time.monotonic() < until:
        path = run(subject, x, tape(0, waiting.pop()))
        runs += 1
        if path.problem or not path.tape.is_replayed:
            is_whole = False
            continue  # its probability stays among what is left
        waiting.add(path.tape.opened)
        if path.is_known and _is_repeated(subject, x, path):
            found.append(path)
        else:
            is_whole = False
        runs += path.is_known
    return found, runs, is_whole and not len(waiting)


def _is_repeated(subject: Subject, x: Any, path: Path) -> bool:
    """Tell whether a run with the numbers of a path makes the same calls and gives the same output."""
    first = path.tape
    tape = Tape(first.seed, first.run, is_plain=True, replayed=first, deadline=first.deadline)
    return _are_alike(path, run(subject, x, tape))


def _are_alike(first: Path, second: Path) -> bool:
    """Tell whether two runs on the same noise made the same calls, went the same way and ended alike."""
    calls = [[f"{event} {event.place}" for event in one.tape.events] for one in (first, second)]
    return calls[0] == calls[1] and first.way == second.way and _end_alike(first, second)


def _end_alike(first: Path, second: Path) -> bool:
    """Tell whether two runs ended in the same way, up to rounding; notes in which form one with symbols would have."""
    if first.tape.depends is not None and not first.tape.is_plain:
        first.tape.depends.note_form(f"{first.token} with numbers", second.form)
    if first.output is None or second.output is None:
        return first.output is second.output and first.raised == second.raised and first.problem == second.problem
    if first.output.skeleton != second.output.skeleton:
        return False
    a, b = np.array(first.output.values(), dtype=float), np.array(second.output.values(), dtype=float)
    return bool(np.allclose(a, b, rtol=ROUNDING, atol=1e-12, equal_nan=True))


def _raised_at(error: BaseException) -> str:
    passed = ((frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__))
    own = [f"{os.path.basename(file)}:{line}" for file, line in passed if is_own_code(file)]
    return own[-1] if own else ""


def check_runs(subject: Subject) -> None:
    """Refuse, by `UsageError`, a subject whose calls are made in other processes."""
    if subject.is_program or subject.is_contained:
        raise UsageError(
            f"mechanism must run in this process to be recorded, got {subject.name}, which runs in another one."
        )


def is_equal(number: float, other: float) -> bool:
    """Tell whether two numbers without noise are one; NaN equals NaN."""
    return number == other or (math.isnan(number) and math.isnan(other))


def is_within(numbers: Sequence[float], others: Sequence[float]) -> list[bool]:
    """Tell which numbers are equal up to rounding; NaN equals NaN."""
    found = []
    for a, b in zip(numbers, others, strict=True):
        found.append(is_equal(a, b) or abs(a - b) <= ROUNDING * max(abs(a), abs(b)) + 1e-12)
    return found


def differing(first: Laid | None, second: Laid | None) -> tuple[str, float, float] | None:
    """The first number without noise that differs between two outputs of one form: its name, and what it is in each."""
    if first is None or second is None or first.skeleton != second.skeleton:
        return None
    for name, u, v in zip(first.names, first.leaves, second.leaves, strict=True):
        if not isinstance(u, Noisy) and not isinstance(v, Noisy) and not is_within([u], [v])[0]:
            return name, u, v
    return None
