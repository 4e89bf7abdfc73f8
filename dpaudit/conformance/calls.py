"""Checks of single calls: what is returned, what is left unchanged, and what the same seed gives again."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import pickle
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dpaudit.conformance.case import Case, all_failed, fail, raised, shown, tokens
from dpaudit.conformance.outcomes import CheckSkipped
from dpaudit.errors import SubjectError
from dpaudit.features.outcomes import canonical
from dpaudit.subjects.callables import Subject
from dpaudit.subjects.isolation.worker import global_state

SIZE = 8
SIZES = (0, 1, 2, 7)
UNUSUAL_SEED = 2_718_281_828


def needs_seed(case: Case) -> None:
    """Skip where the mechanism takes no generator and no seed."""
    if not case.subject.replayable:
        raise CheckSkipped("the mechanism has randomness of its own: it takes no generator and no seed")


def seeded_determinism(case: Case) -> str | None:
    """Twice the same seed, with other global generators and another draw between: the same outputs."""
    needs_seed(case)
    name = "seeded_determinism"
    for k, data in enumerate(case.inputs):
        first = tokens(case.read(data, SIZE, name, k))
        case.draw(data, 2 * SIZE, name, k, 1)
        with _global_generators(k + 1):
            second = tokens(case.read(data, SIZE, name, k))
        if first != second:
            fail(
                f"outputs must be the same from the same seed, got {shown(first)} and then {shown(second)}. "
                "Take all randomness from rng, and keep no state between calls."
            )
    return None


def global_generators_unchanged(case: Case) -> str | None:
    """Neither `random` nor `numpy.random` has another state after a call."""
    if not case.subject.replayable:
        raise CheckSkipped("the mechanism has randomness of its own, which may be the global generators")
    # From a state that no mechanism leaves behind: one that sets a seed of its own has done so in earlier checks.
    with _global_generators(UNUSUAL_SEED):
        before = global_state()
        for k, data in enumerate(case.inputs):
            case.draw(data, SIZE, "global_generators_unchanged", k)
        after = global_state()
    changed = [name for name, a in before.items() if after[name] != a]
    if changed:
        fail(f"generators of the process must be left alone, got another state of {' and '.join(changed)} after a "
             "call. Draw from rng.")  # fmt: skip
    return None


@contextlib.contextmanager
def _global_generators(seed: int) -> Iterator[None]:
    """For a while the generators that a mechanism may wrongly use start from a seed."""
    legacy, own = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        yield
    finally:
        np.random.set_state(legacy)  # noqa: NPY002
        random.setstate(own)


def batch_contract(case: Case) -> str | None:
    """`size` outputs for every size, of one shape, one type and one container."""
    if not case.subject.is_vectorised:
        raise CheckSkipped("the mechanism is called once a draw")
    for k, data in enumerate(case.inputs):
        forms: dict[str, int] = {}
        for size in SIZES:
            try:
                outputs = case.draw(data, size, "batch_contract", k, size)
            except SubjectError as error:
                fail(f"sample must return {size} outputs for size={size}, got {raised(error)}.")
            if isinstance(outputs, str | bytes) or not hasattr(outputs, "__len__") or np.ndim(outputs) == 0:
                fail(f"sample must return a batch of {size} outputs for size={size}, got {type(outputs).__name__}.")
            if len(outputs) != size:
                shape = f"shape {outputs.shape}" if isinstance(outputs, np.ndarray) else f"{len(outputs)} outputs"
                fail(f"sample must return {size} outputs for size={size}, batch axis first, got {shape}.")
            form = _form(outputs)
            if form:
                forms.setdefault(form, size)
        if len(forms) > 1:
            (first, a), (second, b) = list(forms.items())[:2]
            fail(f"a batch must have one form for every size, got {first} for size={a} and {second} for size={b}.")
    return None


def _form(outputs: Any) -> str:
    """Type, dtype and the shape of one output; '' for an empty list, which says nothing of them."""
    if isinstance(outputs, np.ndarray):
        kind = outputs.dtype.str if outputs.dtype.kind not in "US" else outputs.dtype.kind
        return f"an array of {kind} with outputs of shape {outputs.shape[1:]}"
    return f"a {type(outputs).__name__}" if len(outputs) else ""


def input_unchanged(case: Case) -> str | None:
    """An input that can be changed has the same contents after a call; numbers are also given as arrays and lists."""
    looked = 0
    sharing = dataclasses.replace(case.subject, shares_input=True)
    sizes = [SIZE] if sharing.is_vectorised else [1] * SIZE  # calls may undo the changes of others
    for k, data in enumerate(case.inputs):
        for form in _mutable_forms(data):
            before = _contents(form)
            for step, size in enumerate(sizes):
                try:
                    outputs = case.draw(form, size, "input_unchanged", k, step, subject=sharing)
                except SubjectError:
                    if form is data:
                        raise
                    break  # another form of the same input need not be accepted
                looked += not all_failed(outputs)
                if _contents(form) != before:
                    fail(f"data must be left unchanged, got {_contents(form)[:60]} after a call, {before[:60]} before.")
    if not looked:
        raise CheckSkipped("the inputs cannot be changed")
    return None


def _mutable_forms(data: Any) -> list[Any]:
    """The input itself, where it can be changed, and the same numbers as an array and as a list."""
    copied = copy.deepcopy(data)
    forms = [] if isinstance(data, int | float | str | bytes | bool | tuple | frozenset | type(None)) else [copied]
    if isinstance(data, tuple | list) and data:
        array = np.array(data) if all(isinstance(item, int | float | np.number) for item in data) else None
        forms += [list(copied)] if isinstance(data, tuple) else []
        forms += [array] if array is not None else []
    elif isinstance(data, int | float) and not isinstance(data, bool):
        forms.append(np.array(data))
    return forms


def _contents(data: Any) -> str:
    text = canonical(data.tolist() if isinstance(data, np.ndarray) else data)
    return f"{data.dtype} {data.shape} {text}" if isinstance(data, np.ndarray) else text


def pickling(case: Case) -> str | None:
    """A pickled copy draws the same from the same seed: workers get the mechanism in this way."""
    mechanism = case.subject.mechanism
    if case.subject.interface != "sample(data, size, rng)" and "<" in getattr(mechanism, "__qualname__", ""):
        raise CheckSkipped("a function inside of a function, or a lambda, which pickle cannot name")
    return _copied(case, "pickling", "pickled", lambda value: pickle.loads(pickle.dumps(value)))


def deep_copy(case: Case) -> str | None:
    """A deep copy draws the same from the same seed."""
    return _copied(case, "deep_copy", "copied", copy.deepcopy)


def _copied(case: Case, name: str, verb: str, copier: Callable[[Any], Any]) -> str | None:
    mechanism = case.subject.mechanism
    try:
        again = copier(mechanism)
    except Exception as error:
        fail(f"the mechanism must be one that can be {verb}, got {raised(error)}.")
    other: Subject = case.with_mechanism(again)
    for k, data in enumerate(case.inputs):
        ours = tokens(case.read(data, SIZE, name, k))
        try:
            theirs = tokens(case.read(data, SIZE, name, k, subject=other))
        except SubjectError as error:
            fail(f"a {verb} mechanism must draw, got {raised(error)}.")
        if case.subject.replayable and ours != theirs:
            fail(f"a {verb} mechanism must draw the same from the same seed, got {shown(theirs)}, not {shown(ours)}.")
    return None
