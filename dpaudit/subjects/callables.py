"""Subjects: what is audited, made from an object with `sample`, or from a function of the user's own.

Every subject is asked in one way, `sample(data, size, rng)`, whatever its own signature is.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import hashlib
import inspect
import numbers
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismTraceback, ProgramError, SubjectError, UsageError
from dpaudit.privacy.claims import Claim
from dpaudit.privacy.neighbours import NeighbourClaim
from dpaudit.privacy.pairs import ADDRESS
from dpaudit.privacy.parsing import parse_claim
from dpaudit.subjects.call_limits import Hold
from dpaudit.subjects.copies import CallHistory, WorkingCopies, are_same, copied, copied_output, is_small, watched
from dpaudit.subjects.foreign import own_batch
from dpaudit.subjects.iterators import is_asynchronous, read_batch, read_whole
from dpaudit.subjects.parameters import given_as, passed_text, recognised, role_in_sample
from dpaudit.subjects.plain import Seen, brief, seen
from dpaudit.subjects.tracebacks import is_outcome, located, located_once, signal_handlers

# What a mechanism may state of its promise; `utility_bounds` are of its outputs as they are.
STATED = frozenset({"claim", "pairs", "dataset_adjacency", "dataset_rows", "dataset_steps", "promised"})
Interface = Literal["sample(data, size, rng)", "f(data, size, rng)", "f(data, size)", "f(data, rng)", "f(data)"]
INPUT_CHECK_CALLS = frozenset(4**k for k in range(12))  # numbers of calls after which a shared large input is checked
MAX_PRINTED = 1_000  # numbers of an array that its printed form shows
_SET = re.compile(r"\{([^{}:]*)\}")  # in what an object prints
_WRAPPERS = {  # of `dpaudit.libraries`, by a method of what they wrap
    "fit": "estimators.subject",
    "randomise": "diffprivlib.subject",
    "quick_result": "pydp.subject",
}


@dataclasses.dataclass(frozen=True)
class Subject:
    """A mechanism with the way to call it, its name and its fingerprint.

    Attributes
    ----------
    mechanism : object
        The object or function that was given.
    interface : str
        How it is called; one draw a call for `f(data, rng)` and `f(data)`.
    name : str
    target : str or None
        As the command line names it (`module:attribute`), where it is known.
    replayable : bool
        Whether its randomness comes from what it is given (a generator or a seed), so that the same seed gives the
        same bits.
    fingerprint : str
        Digest of the source and the parameters, as far as they can be seen: 16 hexadecimal digits.
    one_by_one : bool
        Ask a vectorised subject for one output a call, so that an exception is the outcome of one draw.
    shares_input : bool
        Give calls the input itself, to see whether they change it.
    """

    # Whether its calls are made in workers of its own, where one that does not come back is an outcome.
    is_contained: ClassVar[bool] = False
    mechanism: Any
    interface: Interface
    name: str
    target: str | None
    replayable: bool
    fingerprint: str
    keywords: tuple[tuple[str, str], ...] = ()
    one_by_one: bool = False
    shares_input: bool = False
    copies: WorkingCopies = dataclasses.field(default_factory=WorkingCopies, compare=False, repr=False)
    history: CallHistory = dataclasses.field(default_factory=CallHistory, compare=False, repr=False)

    @property
    def is_vectorised(self) -> bool:
        """Tell whether one call gives many outputs."""
        return self._gives_batches and not self.one_by_one

    @property
    def draws_together(self) -> bool:
        """Tell whether it makes all calls of a round itself, in one random order (`together`).

        Then an outcome may depend on when its call is made, and pairs must share no draws: see
        `dpaudit.subjects.isolation.subject`.
        """
        return self.is_contained and not self.is_vectorised

    @property
    def repeats_its_draws(self) -> bool:
        """Tell if the same stream gives the same outcomes again; a call that is late may be in time the next time."""
        return self.replayable and not self.is_contained

    @property
    def is_program(self) -> bool:
        """Tell whether it is a program, which runs in processes of its own."""
        return getattr(self.mechanism, "is_program", False) is True

    @property
    def has_lost_calls(self) -> bool:
        """Tell whether some call did not come back, so far."""
        return False

    def recycle(self) -> None:
        """Make the next call in a fresh process: nothing without isolation."""

    def contained_so_far(self) -> dict[str, Any] | None:
        """The record of isolation so far, as strict JSON values; None without it."""
        return None

    def go_on_from(self, contained: dict[str, Any]) -> None:
        """Go on from what had been contained before, of an audit that is resumed: nothing without isolation."""

    def together(self, parts: Sequence[tuple[Any, int, np.random.Generator]]) -> list[Any]:
        """The outputs of several (input, size, generator), as `observe` gives them."""
        return [self.observe(data, size, rng) for data, size, rng in parts]

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """`size` outputs on `data`, batch axis first; outcomes of calls that raised are `Failed` (one draw a call).

        Each call works on the data as they were given (`dpaudit.subjects.copies`).

        `SubjectError` if a vectorised call raises: that is one observation of a call, never `size` observations. If
        calls that cannot be repeated change their input.
        """
        return self._drawn(data, size, rng, copied_output)

    def observe(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Sample, with outputs of single calls as plain data: what is seen of them when the call ends (`Seen`)."""
        outputs = self._drawn(data, size, rng, seen)
        return outputs if self.is_vectorised else Seen(outputs)

    def held_output(self, data: Any, rng: Any, hold: Callable[[Any], Any]) -> Any:
        """`hold` of the output of one call, or of its exception as an outcome (`Failed`), which is not located."""
        return self._outcome(self._given(data), rng, hold, Located(self._handlers, is_asked=False))

    def observe_one_by_one(self, data: Any, size: int, rng: np.random.Generator) -> Iterator[Any]:
        """The outputs of `observe` of a subject that is called once a draw; others' calls may come between two of them.

        On a large input all calls are made at once, before the first of them is given.
        """
        return self._outcomes(data, size, rng, seen)

    def makes_calls_one_by_one(self, inputs: Iterable[Any]) -> bool:
        """Tell whether others' calls may come between any two on these inputs (`observe_one_by_one`)."""
        return not self.is_vectorised and all(self._given(data) is data or is_small(data) for data in inputs)

    def _drawn(self, data: Any, size: int, rng: np.random.Generator, hold: Callable[[Any], Any]) -> Any:
        """The outputs of `sample`; `hold` copies an output, so that later calls do not change it."""
        if not self.is_vectorised:
            return list(self._outcomes(data, size, rng, hold))
        known = Located(self._handlers)
        try:
            outputs = self._call(self._given(data), size, rng, hold)
        except ProgramError:
            raise
        except BaseException as error:
            known.hold.check()
            if not is_outcome(error, known.handlers):
                raise
            failed = located(brief(error), error)
            raise CallError(self.name, size, failed.described, failed.traceback) from error
        known.hold.check()
        return outputs

    def _given(self, data: Any) -> Any:
        # Validity: a call that changes its input must not change what a later one is asked about.
        return data if self.shares_input else self.copies.of(data)

    def _outcomes(self, data: Any, size: int, rng: np.random.Generator, hold: Callable[[Any], Any]) -> Iterator[Any]:
        """The outcomes of so many calls, each on the input as it was given.

        A copy for each call may take far longer than the call. So they share one until a call has changed it.

        Validity: a batch must not be kept or drawn again by what its calls have left. A call that flips a bit in place
        may leave the input as it was, and only where its outcome is the bit itself.
        """
        given, known = self._given(data), Located(self._handlers)
        if given is data or size == 1:
            for _ in range(size):
                yield self._outcome(given, rng, hold, known)
            return
        if not is_small(data):
            yield from self._outcomes_on_large(data, given, size, rng, hold)
            return
        is_surely_same = watched(given)
        for _ in range(size):
            outcome = self._outcome(given, rng, hold, known)
            if not is_surely_same() and not are_same(data, given):
                given = self._given(data)
                is_surely_same = watched(given)
            yield outcome

    def _outcomes_on_large(
        self, data: Any, given: Any, size: int, rng: np.random.Generator, hold: Callable[[Any], Any]
    ) -> list[Any]:
        """The same where to look at the input after each call may take far longer than the call.

        It is looked at after the first call, and less and less often. Where one has changed it, all are made again, on
        the same random numbers and each on a copy of its own.
        """
        before, known = copy.deepcopy(rng), Located(self._handlers)
        outcomes, again = list[Any](), list[Any]()
        for count in range(1, size + 1):
            outcomes.append(self._outcome(given, rng, hold, known))
            if (count == size or count in INPUT_CHECK_CALLS) and not are_same(data, given):
                break
        else:
            return outcomes
        is_repeated, has_changed, known = self.replayable, False, Located(self._handlers)
        while is_repeated and len(again) < size:
            given = copied(data)
            again.append(self._outcome(given, before, hold, known))
            # Validity: with randomness of its own, batches in which nothing was changed would be kept, and others drawn
            # again. Up to the first change all must be as it was, and there must be one.
            if not has_changed:
                is_repeated = len(again) <= len(outcomes) and are_same(seen(again[-1]), seen(outcomes[len(again) - 1]))
                has_changed = not are_same(data, given)
        if not (is_repeated and has_changed):
            raise SubjectError(
                f"{self.name} must leave its input as it is, or take its randomness from a generator that it is given "
                "and nothing from earlier calls, got a call that has changed it. Let it work on a copy, or audit it "
                "with isolation."
            )
        return again

    def _outcome(self, data: Any, rng: np.random.Generator, hold: Callable[[Any], Any], known: Located) -> Any:
        """The outcome of one draw in a call of its own; `known` notes the kinds of exceptions."""
        try:
            output = self._call(data, 1, rng, hold)
        except ProgramError:  # what broke is the conversation, not a call
            raise
        except BaseException as error:  # to end the process is an outcome too, not the end of the audit
            known.hold.check()
            if not is_outcome(error, known.handlers):
                raise
            return located_once(brief(error), error, known) if known.is_asked else brief(error)
        known.hold.check()
        # What raises from here on is no outcome of the mechanism's.
        if not self._gives_batches:
            return hold(output)
        if getattr(output, "shape", None) != () and hasattr(output, "__len__") and len(output) == 1:
            return hold(output[0])
        raise SubjectError(f"{self.name} must return a batch of 1 output for size=1, got {output!r:.80}.")

    @property
    def batch_advice(self) -> str:
        """Advice for a call for several outputs that raises when draws are counted already, as a sentence."""
        usual = "Let it return one output a call, f(data, rng), to audit exceptions as outcomes."
        return str(getattr(self.mechanism, "batch_advice", usual))

    def log_density(self, data: Any, outputs: Any) -> NDArray[np.float64] | None:
        """The mechanism's own log density of the outputs, shape (size,); None where it has none or cannot say."""
        function = getattr(self.mechanism, "log_density", None)
        if function is None:
            return None
        try:
            values = np.asarray(function(data, outputs), dtype=float)
        except Exception:  # it only suggests a witness: without it the audit goes on with the others
            return None
        return values if values.shape == (len(outputs),) else None

    @property
    def has_log_density(self) -> bool:
        """Tell whether the mechanism offers a log density (which may suggest a witness, and proves nothing)."""
        return callable(getattr(self.mechanism, "log_density", None))

    @property
    def claim(self) -> Claim | None:
        """The mechanism's own claim, if it states one: a `Claim`, or a text for it such as 'eps=1'.

        `UsageError` if it is another value, or a text that names no claim.
        """
        claim = getattr(self.mechanism, "claim", None)
        if claim is None or isinstance(claim, Claim) or callable(claim):  # a method of that name states nothing
            return self.neighbouring(claim) if isinstance(claim, Claim) else None
        if not isinstance(claim, str):
            raise UsageError(f"claim of {self.name} must be a Claim or a text such as 'eps=1', got {claim!r:.80}.")
        try:
            return self.neighbouring(parse_claim(claim))
        except UsageError as error:
            raise UsageError(f"{error} This is what {self.name} states.") from error

    def neighbouring(self, claim: Claim) -> Claim:
        """A claim with the relation that the mechanism states of its inputs (`dataset_adjacency`), where it has none.

        `UsageError` if the mechanism states what is no relation: see `dpaudit.privacy.neighbours`.
        """
        adjacency = getattr(self.mechanism, "dataset_adjacency", None)
        rows, steps = (getattr(self.mechanism, name, None) for name in ("dataset_rows", "dataset_steps"))
        if isinstance(claim, NeighbourClaim):  # read back from a text, it does not know how inputs are read
            own = steps if claim.adjacency == adjacency else None
            is_stated = claim.is_stated or (claim.rows is None and claim.steps is None)
            return dataclasses.replace(claim, rows=claim.rows or rows, steps=claim.steps or own, is_stated=is_stated)
        if claim.depends_on_pair or (adjacency is None and steps is None):  # a relation is of one budget
            return claim
        try:
            return NeighbourClaim(claim, adjacency or "given", rows, steps, is_stated=True)
        except UsageError as error:
            raise UsageError(f"{error} This is what {self.name} states.") from error

    def states(self, claim: str) -> bool:
        """Tell whether the mechanism's own claim prints as this one; what is no claim, or cannot be read, does not."""
        try:
            return self.claim is not None and str(self.claim) == claim
        except UsageError:
            return False

    def pairs(self) -> Any | None:
        """The mechanism's own pairs, if it has any."""
        pairs = getattr(self.mechanism, "pairs", None)
        return pairs() if callable(pairs) else pairs

    def with_passed(self, message: str) -> str:
        """The message of calls that raised, with the generator that they were passed, where it speaks of that."""
        first = getattr(self.mechanism, "first", None)  # of a fresh object a call
        keywords = first.keywords if isinstance(first, Subject) else self.keywords
        return f"{message} {passed_text(keywords, message)}".rstrip()

    def describe(self) -> dict[str, Any]:
        """Name, target, fingerprint and interface: the `subject` of audit.json."""
        how = getattr(self.mechanism, "dpaudit_calls", "")  # of our own wrappers
        tail = ", one call a draw" if self.one_by_one else ""
        return {
            "name": self.name,
            "target": self.target,
            "fingerprint": self.fingerprint,
            "interface": f"{how if isinstance(how, str) else ''}{self.interface}{tail}",
        }

    def _call(self, data: Any, size: int, rng: np.random.Generator, hold: Callable[[Any], Any] = seen) -> Any:
        if self._generator is not None:  # nothing else is passed to most functions that are called once a draw
            return read_whole(self.mechanism(data, **{self._generator: rng}))
        given = {name: size if role == "size" else given_as(role, rng) for name, role in self.keywords}
        if self.interface == "sample(data, size, rng)":
            answer = self.mechanism.sample(data, size, *(given.values() or [rng]))
            return read_batch(own_batch(answer), size, hold)
        answer = self.mechanism(data, **given)
        return read_batch(own_batch(answer), size, hold) if self._gives_batches else read_whole(answer)

    @property
    def _handlers(self) -> frozenset[Any]:
        """The signal handlers from before the first call: a mechanism may leave its own behind."""
        if self.copies.handlers is None:
            self.copies.handlers = signal_handlers()
        return self.copies.handlers

    @functools.cached_property
    def _gives_batches(self) -> bool:
        """Tell whether it can be asked for several outputs in one call."""
        return "size" in self.interface

    @functools.cached_property
    def _generator(self) -> str | None:
        """The name of the one parameter of `f(data, rng)`, where that takes a generator."""
        is_only = self.interface == "f(data, rng)" and [role for _, role in self.keywords] == ["generator"]
        return self.keywords[0][0] if is_only else None


@dataclasses.dataclass(frozen=True)
class Around:
    """A function `f(data, rng)` around the calls of a subject; what its mechanism states, it states."""

    first: Subject

    def __getattr__(self, name: str) -> Any:
        if name not in STATED:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.first.mechanism, name)

    def as_subject(self) -> Subject:
        """The first subject, called so."""
        how: Any = {"interface": "f(data, rng)", "keywords": (("rng", "generator"),), "one_by_one": False}
        return dataclasses.replace(self.first, mechanism=self, **how)


class Located(set[str]):
    """The kinds of exceptions that have been located, the signal handlers from before the first call, and the hold."""

    def __init__(self, handlers: frozenset[Any], is_asked: bool = True) -> None:
        super().__init__()
        self.handlers, self.hold, self.is_asked = handlers, Hold(), is_asked


class CallError(SubjectError):
    """A vectorised call that raised: the subject, the size it was asked for, the exception and its traceback as texts.

    What comes from another process has the traceback as its cause (`MechanismTraceback`).
    """

    def __init__(self, name: str, size: int, error: str, traceback: str = "") -> None:
        self.subject_name, self.size, self.error, self.traceback = name, size, error, traceback
        super().__init__(f"{name}: a call for {size} outputs must return them, got {error}.")

    def __reduce__(self) -> tuple[Any, ...]:
        cause = {"__cause__": MechanismTraceback.of(self.traceback)}
        return (CallError, (self.subject_name, self.size, self.error, self.traceback), cause)


def as_subject(mechanism: Any, target: str | None = None, name: str | None = None) -> Subject:
    """A `Subject` from an object with `sample(data, size, rng)`, or from a function.

    A function is called as `f(data, size, rng)`, `f(data, size)`, `f(data, rng)` or `f(data)`, by the names of its
    parameters behind the first: `size` or `n` asks for a batch; `rng` is given a `numpy.random.Generator`,
    `random_state` a `numpy.random.RandomState`, `seed` an integer below 2^32, and any of them what its annotation names
    (`random.Random` too). Without `size`, one call is one draw. Without a generator or a seed the audit cannot be
    replayed.

    Raises
    ------
    UsageError
        If it is neither, has no parameter for the data, or has a parameter without default that is not one of these.

    Examples
    --------
    >>> as_subject(lambda data, rng: data + rng.laplace()).interface
    'f(data, rng)'
    """
    if isinstance(mechanism, Subject):
        return mechanism
    if isinstance(mechanism, type):
        raise UsageError(f"mechanism must be an instance or a function, got the class {mechanism.__name__}. Call it.")
    is_object = callable(getattr(mechanism, "sample", None))
    function = mechanism.sample if is_object else mechanism
    if is_asynchronous(function):
        raise UsageError(
            f"mechanism must return outputs, got the function {_name(function)!r}, which is asynchronous (async def). "
            "Wrap it in a function that waits for its output, for example with asyncio.run."
        )
    if not callable(function):
        raise UsageError(
            "mechanism must be an object with sample(data, size, rng) or a function f(data, ...), "
            f"got {type(mechanism).__name__}{f' at {target!r}' if target else ''}.{_wrapping(mechanism)}"
        )
    own, replayable = _name(mechanism), bool(getattr(mechanism, "replayable", True))
    interface: Interface = "sample(data, size, rng)"
    if is_object:
        own, keywords = str(getattr(mechanism, "name", "")) or type(mechanism).__name__, role_in_sample(function)
    else:
        keywords = recognised(mechanism, own)
        roles = {role for _, role in keywords}
        replayable = bool(roles - {"size"})
        if "size" in roles:
            interface = "f(data, size, rng)" if replayable else "f(data, size)"
        else:
            interface = "f(data, rng)" if replayable else "f(data)"
    seen_as = mechanism, interface, name or own, target, replayable, fingerprint(mechanism), keywords
    return Subject(*seen_as, history=CallHistory.of(mechanism))


def _wrapping(mechanism: Any) -> str:
    """Advice on the adapter of another library's object, as a sentence with a space in front."""
    for method, wrapper in _WRAPPERS.items():
        if callable(getattr(mechanism, method, None)):
            return f" For an object with {method}: dpaudit.libraries.{wrapper}(...)."
    if isinstance(mechanism, numbers.Number | np.ndarray):
        return " Give the function itself, not the result of a call."
    return ""


def fingerprint(mechanism: Any) -> str:
    """16 hexadecimal digits of the SHA-256 of the source and the parameters, as far as they can be seen.

    Seen are an object's printed form (its attributes, where that shows nothing), a function's defaults and the values
    that it closes over, and the arguments of a partial. Not seen are globals, the functions that it calls (those that
    it closes over too, but for their names), and the versions of libraries.
    """
    with np.printoptions(threshold=MAX_PRINTED, floatmode="unique"):
        described = _described(mechanism)
    return hashlib.sha256(described.encode("utf-8", "replace")).hexdigest()[:16]


def _described(mechanism: Any) -> str:
    """Source and parameters as one text, without addresses."""
    if isinstance(mechanism, functools.partial):
        arguments = (mechanism.args, sorted(mechanism.keywords.items()))
        return f"{_described(mechanism.func)}\n{_printed(arguments)}"
    kind: Any = mechanism if inspect.isroutine(mechanism) else type(mechanism)
    if inspect.ismethod(mechanism):
        parameters = _described(mechanism.__self__)
    elif inspect.isfunction(mechanism):
        values = []
        for cell in mechanism.__closure__ or ():
            with contextlib.suppress(ValueError):  # it has no value yet
                values.append(cell.cell_contents)
        parameters = _printed((mechanism.__defaults__, mechanism.__kwdefaults__, values))
    elif inspect.isroutine(mechanism):
        parameters = ""
    else:
        parameters = _printed(mechanism)
        if ADDRESS.search(repr(mechanism)) or "..." in parameters:  # nothing is shown, or not all of an array
            parameters += _printed(getattr(mechanism, "__dict__", {}))
    names = [getattr(kind, "__module__", None) or "", getattr(kind, "__qualname__", "")]
    return "\n".join([*names, _source(kind), parameters])


@functools.lru_cache(maxsize=256)
def _source(kind: Any) -> str:
    """The source of a function or class, as far as it can be read."""
    try:
        return inspect.getsource(kind)
    except (OSError, TypeError):
        return ""


def _printed(value: Any) -> str:
    return ADDRESS.sub("", _ordered(value))


def _ordered(value: Any) -> str:
    """Form of `repr`, with sets in one order: theirs differs by process. Of a large array a digest is added."""
    if type(value) is np.ndarray and value.size > MAX_PRINTED and not value.dtype.hasobject:
        return f"{value!r} {hashlib.sha256(value.tobytes()).hexdigest()}"
    try:
        if type(value) in (set, frozenset) and value:
            members = f"{{{', '.join(sorted(map(_ordered, value)))}}}"
            return members if type(value) is set else f"frozenset({members})"
        if type(value) is dict:
            return f"{{{', '.join(f'{_ordered(key)}: {_ordered(one)}' for key, one in value.items())}}}"
        if type(value) in (list, tuple):
            inside = ", ".join(map(_ordered, value)) + "," * (type(value) is tuple and len(value) == 1)
            return f"[{inside}]" if type(value) is list else f"({inside})"
    except RecursionError:  # a list that holds itself
        pass
    return _SET.sub(lambda found: f"{{{', '.join(sorted(found[1].split(', ')))}}}", repr(value))


def _name(function: Any) -> str:
    """The name of a function; of the function inside, for a partial."""
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__qualname__", type(inner).__name__))
