"""An isolated subject: the same `sample(data, size, rng)`, carried out in workers.

Outcomes. A call that raises, does not come back, or returns what cannot be read is an outcome of that call: `Failed`
or `Ended`. A vectorised call that does so is *one* observation of a call and raises `CallError`; the audit starts again
with one call a draw, as for exceptions. Nothing is dropped: what was drawn before a worker ended is in the log, and the
call that ended it has its outcome there.

Time-outs and load. Whether a call is in time depends on the machine as well as on the input. Let L(s) be the load in
the s-th slot of time, which may depend on everything before. The claim is about the pair of laws at the same load: in
each slot the laws of the outcome under label 1 and label 0, both at L(s), keep it. `together` makes all calls of a
round in one uniformly random order. Pairs share no draws then: pair k has exactly N_k calls of x and m_k - N_k of x',
with N_k binomial(m_k, 1/2) independent of all else, so that the number of slots and the slots of the pair do not
depend on N_k. Given these slots, and the labels of all other pairs, every arrangement of N_k ones is equally likely:
the labels of the pair's slots are m_k independent fair coins, and the next one is fair given everything before it,
the load that earlier calls caused included. So each factor of a bet has mean at most 1 given the past, and each guess
is right with at most the probability that the claim allows, at whatever load: the label game is valid as it is.
(Drawn input by input, a load that rises in between would make time-outs say which input it was. With shared draws,
the number of calls of an input is the largest of several N_k, and the length of a round would tell something of it.)
"""

from __future__ import annotations

import array
import dataclasses
import hashlib
import os
import pickle
import time
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismTraceback, ProgramError, SubjectError, UsageError
from dpaudit.privacy.pairs import short_form
from dpaudit.subjects.call_limits import Hold, end_of_time
from dpaudit.subjects.call_outcomes import Ended, Failed
from dpaudit.subjects.callables import CallError, Subject
from dpaudit.subjects.isolation.limits import Isolation, as_isolation
from dpaudit.subjects.isolation.proxy import MAX_INPUTS, Process, WorkerProxy
from dpaudit.subjects.isolation.worker import BAD, BLOCK, BROKEN, NUMBER, OBJECT, TIME_OUT
from dpaudit.subjects.plain import unpacked

LOOKED_AT = 12  # first calls on each input that are requests of their own, so that it is known what each one did
MIN_ENDED_CALLS = 24  # on two inputs at least, none of which came back: then every call will end its worker


class OutOfPatience(CallError):
    """Calls lost more time than the isolation allows, or none of them comes back."""

    def __init__(self, text: str) -> None:
        super().__init__("", 1, text)
        self.args = (text,)

    def __reduce__(self) -> tuple[Any, ...]:
        return (OutOfPatience, self.args)


class SharedState:
    """State that the copies of one isolated subject share in one process: its proxy, its inputs, the record."""

    def __init__(self) -> None:
        self.proxy: WorkerProxy | None = None
        self.end_proxy: Callable[[], Any] = lambda: None  # once; at the end of this state, if not before
        self.record = Record()
        self.keys: OrderedDict[int, tuple[Any, int, bytes]] = OrderedDict()  # by id: the input, its key, its pickle
        self.next_key = 0
        self.density_ended = False

    def __reduce__(self) -> tuple[Any, ...]:
        return (SharedState, ())  # in another process, one of its own


@dataclasses.dataclass(frozen=True)
class IsolatedSubject(Subject):
    """A subject in worker processes; see `isolated`."""

    is_contained: ClassVar[bool] = True
    isolation: Isolation = dataclasses.field(default_factory=Isolation)
    shared: SharedState = dataclasses.field(default_factory=SharedState, compare=False, repr=False)

    def __enter__(self) -> IsolatedSubject:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker and its fork server; the next call starts new ones."""
        shared = self.shared
        if shared.proxy is not None:
            shared.end_proxy()
            shared.record.in_blocks["processes"] += shared.proxy.left_over
            shared.proxy = None

    def recycle(self) -> None:
        """End the worker: the next call is made by a new one, in the state that the subject had at first."""
        if self.shared.proxy is not None:
            self.shared.proxy.recycle()

    @property
    def has_lost_calls(self) -> bool:
        """Tell whether some call did not come back, so far."""
        return bool(self.shared.record.ended)

    def contained_so_far(self) -> dict[str, Any] | None:
        """The record so far, with the processes that the present proxy has found left."""
        proxy = self.shared.proxy
        return self.shared.record.to_dict(proxy.left_over if proxy is not None else 0)

    def go_on_from(self, contained: dict[str, Any]) -> None:
        """Go on from the record of the run before.

        `UsageError` if it is none.
        """
        self.shared.record = Record.from_dict(contained)
        self.shared.next_key = self.shared.record.next_key

    def describe(self) -> dict[str, Any]:
        """Describe as any subject, with the isolation in the interface."""
        found = super().describe()
        return {**found, "interface": f"isolated, {found['interface']}"}

    def observe(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Sample: what comes from a worker is plain data."""
        return self.sample(data, size, rng)

    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Any:
        """Sample as any subject; outcomes of calls that did not come back are `Ended`.

        `SubjectError` if a vectorised call raises, does not come back, or returns anything but `size` outputs
        (`CallError`), or calls have lost more time than `patience` (`OutOfPatience`).
        """
        if not self.is_vectorised:
            return self.together([(data, size, rng)])[0]
        _, (outcome,), _ = self.in_random_order([(data, 1, rng)], batch=size)
        _forward(rng)
        if isinstance(outcome, Ended):
            raise CallError(self.name, size, _sentence(outcome))
        if isinstance(outcome, Failed) and outcome.kind == BAD:
            raise CallError(self.name, size, outcome.message)
        if isinstance(outcome, Failed):
            error = CallError(self.name, size, outcome.described, outcome.traceback)
            raise error from MechanismTraceback.of(outcome.traceback)
        if not isinstance(outcome, np.ndarray | list) or len(outcome) != size:
            raise CallError(self.name, size, "a broken answer")
        return outcome

    def together(self, parts: Sequence[tuple[Any, int, np.random.Generator]]) -> list[list[Any]]:
        """Outcomes of one call a draw, for several (input, size, generator), the calls in a random order.

        Validity: see the module. The order, and which outcome gets which position of its part, are drawn from streams
        of their own; for one part alone they are as the calls were made.
        """
        order, outcomes, _ = self.in_random_order(parts)
        batches: list[list[Any]] = [[] for _ in parts]
        for position, outcome in zip(order.tolist(), outcomes, strict=True):
            batches[position].append(outcome)
        if len(parts) > 1:
            for side, (_, size, rng) in zip(batches, parts, strict=True):
                side[:] = [side[k] for k in _derived(rng, 3).permutation(size).tolist()]
        for _, _, rng in parts:
            _forward(rng)
        return batches

    def in_random_order(
        self, parts: Sequence[tuple[Any, int, np.random.Generator]], batch: int = 0
    ) -> tuple[NDArray[np.int64], list[Any], NDArray[np.float64]]:
        """The order in which calls were made, as positions of `parts`; their outcomes and seconds in that order.

        The seconds of a call that did not come back are those that it was waited for. Where `batch` is given, each call
        is for so many outputs.
        """
        record, proxy = self.shared.record, self._proxy()
        order = np.repeat(np.arange(len(parts)), [size for _, size, _ in parts])
        if len(parts) > 1:
            _derived(parts[0][2], 2).shuffle(order)
        inputs = [self._input(data) for data, _, _ in parts]
        outcomes: list[Any] = []
        seconds = np.zeros(len(order))
        latest: Process | None = None
        restarts = 0

        def give_streams(body: dict[str, Any], process: Process) -> None:
            """A new worker's generators go on far behind those that were lost with the last one."""
            nonlocal latest, restarts
            body["streams"] = []
            if process is not latest:
                body["streams"] = [_derived(rng, 3 + restarts) if restarts else rng for _, _, rng in parts]
                latest, restarts = process, restarts + 1

        hold = Hold()
        while len(outcomes) < len(order):
            hold.check()
            start = len(outcomes)
            block = self._block([inputs[p][0] for p in order[start : start + BLOCK].tolist()])
            schedule = order[start : start + block].tolist()
            limit = self.isolation.seconds_for(batch) if batch else self.isolation.seconds_a_call
            body: dict[str, Any] = {"schedule": array.array("I", schedule), "until": end_of_time()}
            body |= {"keys": [key for key, _ in inputs], "size": batch, "limit": limit}
            answer = proxy.ask(body, dict(inputs), _derived(parts[0][2], 1), limit, give_streams)
            found, taken = self._read_log(proxy, len(schedule))
            keys, logged = [inputs[p][0] for p in schedule], len(found)
            if answer.ended is not None and len(found) < len(schedule):
                if proxy.log.since[0] < 0.0 and not found:
                    raise SubjectError(f"{self.name}: a worker must make calls, got {_sentence(answer.ended)}.")
                key = keys[len(found)]
                found.append(answer.ended)
                waited = time.monotonic() - float(proxy.log.since[0])
                taken.append(waited if 0.0 <= waited <= answer.seconds else answer.seconds)
                record.end(key, answer.ended, taken[-1])
            elif not found:
                raise SubjectError(f"{self.name}: a worker must make calls, got an answer without any.")
            for key, outcome in zip(keys, found, strict=False):
                record.calls[key] += 1
                record.returned += not isinstance(outcome, Ended)
            for key, outcome in zip(keys[:logged], found, strict=False):
                if isinstance(outcome, Ended):
                    record.end(key, outcome, limit if outcome.kind == TIME_OUT else 0.0)
            for name in (name for name, count in answer.seen.items() if count):
                record.note(name, sorted(set(keys[: len(found)])) or keys[:1])
            changed = zip(keys[:logged], proxy.log.changed, strict=False)
            for key in {key for key, was_changed in changed if was_changed}:
                record.note("mutated", [key])
            if len(set(schedule)) == 1:
                record.looked[keys[0]] += 1
            seconds[start : start + len(found)] = taken
            outcomes.extend(found)
            if not batch:  # else the audit starts again with one call a draw
                self._check_patience()
        return order, outcomes, seconds

    def log_density(self, data: Any, outputs: Any) -> NDArray[np.float64] | None:
        """The mechanism's own log density, computed in a worker; None where it has none, cannot say, or takes long."""
        if self.shared.density_ended:
            return None
        key, content = self._input(data)
        proxy = self._proxy()
        body = {"key": key, "outputs": outputs}
        answer = proxy.ask(body, {key: content}, np.random.default_rng(0), self.isolation.seconds_a_call)
        self.shared.density_ended = answer.ended is not None  # it is not asked again
        for values in self._read_log(proxy, 1)[0]:
            if isinstance(values, np.ndarray) and values.shape == (len(outputs),):
                return values
        return None

    def _proxy(self) -> WorkerProxy:
        """The proxy of this process; a copy of the process makes its own."""
        shared = self.shared
        if shared.proxy is None or shared.proxy.owner != os.getpid():
            shared.proxy = WorkerProxy(Subject(**_fields_of(self)), self.isolation)
            shared.end_proxy = weakref.finalize(shared, shared.proxy.close)
        return shared.proxy

    def _input(self, data: Any) -> tuple[int, bytes]:
        """The key of an input and its pickle."""
        shared = self.shared
        known, key, content = shared.keys.get(id(data), (None, 0, b""))
        if not content or known is not data:
            content = _pickled(data)
            key = shared.record.key_of(content, shared.next_key, short_form(data, width=60))
            shared.next_key = max(shared.next_key, key + 1)
            shared.keys[id(data)] = (data, key, content)
            if len(shared.keys) > MAX_INPUTS:
                shared.keys.popitem(last=False)
        return key, content

    def _read_log(self, proxy: WorkerProxy, size: int) -> tuple[list[Any], list[float]]:
        """The outcomes of the block that are in the log, and their seconds; `ProgramError` if one is of no call."""
        log, start = proxy.log, 0
        count = min(max(int(log.place[0]), 0), size)
        outcomes: list[Any] = log.values[:count].tolist()
        for k, kind in enumerate(bytes(log.kinds[:count])):
            if kind != NUMBER:
                length = outcomes[k]
                try:
                    if kind not in (OBJECT, BROKEN) or not 0.0 <= length <= log.room - start:
                        raise ValueError("record must be of a known kind.")
                    outcomes[k] = unpacked(bytes(log.objects[start : start + int(length)]))
                    start += int(length)
                    if kind == BROKEN:
                        raise ProgramError(str(outcomes[k]))
                except ValueError:
                    outcomes[k] = Ended("a broken answer", "")
        return outcomes, np.nan_to_num(np.array(log.seconds[:count], dtype=float)).tolist()

    def _block(self, keys: list[int]) -> int:
        """Number of next calls that make one request: one, as long as some input has not been looked at enough."""
        looked = self.shared.record.looked
        if looked[keys[0]] < LOOKED_AT:
            return 1
        return next((k for k, key in enumerate(keys) if looked[key] < LOOKED_AT), len(keys))

    def _check_patience(self) -> None:
        record = self.shared.record
        recycled = self.shared.proxy.recycled if self.shared.proxy is not None else 0.0
        if recycled > self.isolation.patience and not record.ended:
            raise OutOfPatience(
                f"{self.name}: calls must leave nothing running, got {sum(record.calls.values())} calls whose workers "
                f"took {recycled:.0f} seconds to end with what they had left. Use more patience, or let calls wait for "
                "what they start."
            )
        ended = {key: sum(kinds.values()) for key, kinds in record.ended.items()}
        never_returns = record.returned == 0 and len(ended) > 1 and sum(ended.values()) >= MIN_ENDED_CALLS
        if not ended or (not never_returns and record.lost + recycled <= self.isolation.patience):
            return
        shares = ", ".join(
            f"{ended[key]} of {record.calls[key]} on {record.names.get(key, '?')} "
            f"({', '.join(sorted(record.ended[key]))})"
            for key in sorted(ended)
        )
        lost = f", {record.lost + recycled:.0f} seconds lost to them" if not never_returns else ""
        advice = "" if never_returns else " Use mode='sequential', shorter seconds or more patience."
        raise OutOfPatience(f"{self.name}: calls must come back, got {shares} that did not{lost}.{advice}")


def isolated(subject: Subject, isolation: Isolation) -> IsolatedSubject:
    """The subject, called in worker processes from now on: they start from the state that it has now.

    Examples
    --------
    >>> from dpaudit.subjects.callables import as_subject
    >>> from dpaudit.subjects.isolation import Isolation
    >>> def hangs(data, rng):
    ...     while data > 0:
    ...         pass
    ...     return float(rng.laplace())
    >>> subject = isolated(as_subject(hangs), Isolation(seconds_a_call=0.1))
    >>> subject.sample(1, 1, np.random.default_rng(1))
    [Ended(kind='time-out', message='')]
    >>> subject.close()
    """
    if isinstance(subject, IsolatedSubject):
        return subject
    found = IsolatedSubject(**_fields_of(subject), isolation=isolation)
    found._proxy().start()
    return found


def _fields_of(subject: Subject) -> dict[str, Any]:
    """Parts of a subject, in this process."""
    return {field.name: getattr(subject, field.name) for field in dataclasses.fields(Subject)}


def as_audited(subject: Subject, options: Mapping[str, Any]) -> Subject:
    """The subject as an audit with these options called it: isolated with the same limits, or as it is."""
    limits = as_isolation(options.get("isolation"))
    return subject if limits is None else isolated(subject, limits)


def _pickled(data: Any) -> bytes:
    try:
        return pickle.dumps(data, protocol=5)
    except Exception:
        pass
    try:
        from joblib.externals import cloudpickle

        content: bytes = cloudpickle.dumps(data)
        return content
    except Exception as error:
        raise UsageError(f"inputs must be picklable under isolation, got {short_form(data)} ({error}).") from error


def _sentence(ended: Ended) -> str:
    last = " ".join(ended.message.split())[-120:]
    return f"an end by {ended.kind}" + (f", after it printed {last!r}" if last else "")


def _derived(rng: np.random.Generator, jumps: int) -> np.random.Generator:
    """A generator far behind `rng`, which stays as it is: 2**127 draws for each jump of the usual one."""
    bits = rng.bit_generator
    if isinstance(bits, np.random.PCG64 | np.random.PCG64DXSM | np.random.Philox):
        return np.random.Generator(bits.jumped(jumps))
    content = hashlib.sha256(pickle.dumps(bits.state)).digest()
    seed = np.random.SeedSequence([jumps, *np.frombuffer(content, dtype=np.uint32).tolist()])
    return np.random.Generator(type(bits)(seed))


def _forward(rng: np.random.Generator) -> None:
    """Move a generator beyond what was drawn from its copy in a worker, and beyond all that is derived from it."""
    # Validity: a caller that draws twice from one generator must not get the same noise twice.
    rng.bit_generator.state = _derived(rng, 1 << 40).bit_generator.state


@dataclasses.dataclass
class Record:
    """Effects contained so far, by the position of an input: calls, how they ended, and what else they did.

    `digests` finds inputs again in an audit that is resumed: those of the run before have the keys that they had then.
    `seen[name][key]` counts, of the `looked[key]` requests that were of this input alone, those in which it was seen;
    `in_blocks[name]` counts blocks of calls on several inputs.
    """

    names: dict[int, str] = dataclasses.field(default_factory=dict)
    calls: Counter[int] = dataclasses.field(default_factory=Counter)
    ended: dict[int, Counter[str]] = dataclasses.field(default_factory=dict)
    looked: Counter[int] = dataclasses.field(default_factory=Counter)
    seen: dict[str, Counter[int]] = dataclasses.field(default_factory=dict)
    in_blocks: Counter[str] = dataclasses.field(default_factory=Counter)
    returned: int = 0
    lost: float = 0.0  # seconds
    digests: dict[int, str] = dataclasses.field(default_factory=dict)
    awaited: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # keys of a run before, by digest

    @property
    def next_key(self) -> int:
        """The first key that no input has."""
        return max(self.names, default=-1) + 1

    def key_of(self, content: bytes, key: int, name: str) -> int:
        """The key of an input, by its pickle: `key`, or the one that it had in the run before."""
        digest = hashlib.sha256(content).hexdigest()[:32]
        known = self.awaited.get(digest)
        if known:
            return known.pop(0)
        self.names[key], self.digests[key] = name, digest
        return key

    def end(self, key: int, how: Ended, seconds: float) -> None:
        self.ended.setdefault(key, Counter())[how.kind] += 1
        self.lost += seconds

    def note(self, name: str, keys: Sequence[int]) -> None:
        if len(keys) == 1:
            self.seen.setdefault(name, Counter())[keys[0]] += 1
        else:
            self.in_blocks[name] += 1

    def to_dict(self, left_over: int = 0) -> dict[str, Any]:
        """The record as strict JSON values, with so many processes more that were found left."""
        in_blocks = Counter(self.in_blocks)
        in_blocks["processes"] += left_over
        return {
            "inputs": [[key, self.names[key], self.digests[key]] for key in self.names],
            "calls": sorted(self.calls.items()),
            "ended": [[key, dict(kinds)] for key, kinds in sorted(self.ended.items())],
            "looked": sorted(self.looked.items()),
            "seen": {name: sorted(counts.items()) for name, counts in self.seen.items()},
            "in_blocks": dict(in_blocks),
            "returned": self.returned,
            "lost": self.lost,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Record:
        """The record that `to_dict` wrote.

        `UsageError` if it is none.
        """
        try:
            inputs = [(_count(key), str(name), str(digest)) for key, name, digest in record["inputs"]]
            found = cls(
                names={key: name for key, name, _ in inputs},
                calls=_counter(record["calls"]),
                ended={_count(key): _named(kinds) for key, kinds in record["ended"]},
                looked=_counter(record["looked"]),
                seen={str(name): _counter(counts) for name, counts in record["seen"].items()},
                in_blocks=_named(record["in_blocks"]),
                returned=_count(record["returned"]),
                lost=max(0.0, float(record["lost"])),
                digests={key: digest for key, _, digest in inputs},
            )
            if not {*found.calls, *found.ended, *found.looked}.union(*found.seen.values()) <= set(found.names):
                raise ValueError("calls must be of inputs that are listed.")
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
            said = f"checkpoint must hold what was contained, got a record of another form ({error})."
            raise UsageError(said) from error
        for key, _, digest in inputs:
            found.awaited.setdefault(digest, []).append(key)
        return found


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 62:
        raise ValueError(f"counts must be non-negative integers, got {value!r:.40}")
    return value


def _counter(entries: Any) -> Counter[int]:
    return Counter({_count(key): _count(count) for key, count in entries})


def _named(entries: Any) -> Counter[str]:
    return Counter({str(name): _count(count) for name, count in entries.items()})
