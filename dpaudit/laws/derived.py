"""Base of every derived subject: parts that are drawn with independent randomness, outputs joined run by run, pairs.

Conventions
-----------
* A law takes mechanisms (an object with `sample`, a function, or a `Subject`) and hands back an object with
  `sample(data, size, rng)`, vectorised over runs, that `dpaudit.audit` takes. It keeps `pairs()` where pairs are known,
  and `log_density(data, outputs)` where that is known exactly.
* All parts draw from the one generator, one after the other, so that what they draw is independent.
* What is seen of a run never depends on the other runs of its batch: outputs of several parts are joined run by run
  (`joined`), and runs of several mechanisms are merged without a common type (`merged`).
* A part that raises makes the derived subject raise the same: it is an outcome like any other, and stays one.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import SubjectError, UsageError
from dpaudit.features.outcomes import is_number, plain
from dpaudit.features.whole_numbers import WHOLE_FROM
from dpaudit.laws.claims import checked
from dpaudit.laws.listed_laws import ListedLaw, Outputs
from dpaudit.privacy.claims import Claim, FloatArray
from dpaudit.privacy.inputs import identity_of
from dpaudit.privacy.pairs import AllPairs, Pair, as_pairs
from dpaudit.subjects.call_outcomes import Failed
from dpaudit.subjects.callables import CallError, Subject, as_subject
from dpaudit.subjects.copies import copied

Shape = tuple[int, ...]


class LogDensity(Protocol):
    """`log_density(data, outputs)` of shape (size,), as the mechanism protocol has it."""

    def __call__(self, data: Any, outputs: Any) -> FloatArray: ...


class _Seen(dict[Any, tuple[Any, list[Shape] | None]]):
    """Shapes by the identity of an input. Prints, copies and pickles as if nothing had been seen.

    So a fingerprint does not depend on what was looked at, and addresses stay in the process that they are of.
    """

    def __repr__(self) -> str:
        return "_Seen()"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_Seen, ())


@dataclasses.dataclass(frozen=True)
class Derived(ABC):
    """A mechanism made of others. `parts` are what it draws from; `known_pairs` are pairs of its own inputs.

    `log_density`, `outcomes` and `distribution` are attributes only where they are known exactly.
    """

    parts: tuple[Subject, ...]
    known_pairs: Sequence[Pair] | None = dataclasses.field(default=None, kw_only=True, repr=False)
    _seen_shapes: _Seen = dataclasses.field(default_factory=_Seen, init=False, repr=False, compare=False)

    @property
    @abstractmethod
    def name(self) -> str:
        """The law and the parts, for reports."""

    @property
    def replayable(self) -> bool:
        """Tell whether all parts take their randomness from the generator that they are given."""
        return all(part.replayable for part in self.parts)

    @abstractmethod
    def sample(self, data: Any, size: int, rng: np.random.Generator) -> Outputs:
        """`size` independent runs on one input, batch axis first."""

    @property
    def log_density(self) -> LogDensity:
        """Natural log of the density (or probability) of each output, shape (size,), where it is known exactly."""
        density = self._density()
        if density is None:
            raise AttributeError(f"{self.name} has no log density.")
        return density

    @property
    def pairs(self) -> Callable[[], Sequence[Pair]]:
        """`pairs()`: the pairs that the law is to be tested on, where they are known."""
        if self.known_pairs is None:
            raise AttributeError(f"{self.name} has no pairs of its own.")
        return self._listed_pairs

    def _listed_pairs(self) -> Sequence[Pair]:
        return self.known_pairs or ()

    @property
    def outcomes(self) -> Outputs:
        """All outputs, as `sample` gives them, where all parts list theirs: at most 10,000."""
        return self._known_law("outcomes").outcomes

    @property
    def distribution(self) -> Callable[[Any], FloatArray]:
        """`distribution(data)`: the probabilities of `outcomes` on one input, shape (outcomes,)."""
        return self._known_law("distribution").probabilities

    def _known_law(self, name: str) -> ListedLaw:
        law = self._try_listed()
        if law is None:
            raise AttributeError(f"{self.name} has no {name}.")
        return law

    def _try_listed(self) -> ListedLaw | None:
        try:
            return self._listed()
        except Exception:  # a function of the user's own on outcomes that no run may ever give; nothing rests on it
            return None

    def _inputs(self, data: Any) -> list[tuple[Subject, Any]]:
        """Each part with the input that it runs on."""
        return [(part, data) for part in self.parts]

    def _shapes(self, data: Any) -> list[Shape] | None:
        """The shape of one output of each part; None where one is not an array of numbers.

        Validity: from one run with a generator of its own, the first time that an input is asked about. So the columns
        in which an output is read depend neither on the outputs beside it nor on how often it is looked at, and no draw
        of the audit is touched.
        """
        key = identity_of(data)
        if key not in self._seen_shapes:
            found = [_shape_of(draw(part, given, 1, np.random.default_rng(0))[0]) for part, given in self._inputs(data)]
            shapes = [shape for shape in found if shape is not None]
            # Kept with the input, so that what is known by its address stays alive as long as the address counts.
            self._seen_shapes[key] = (data, shapes if len(shapes) == len(found) else None)
        return self._seen_shapes[key][1]

    def _density(self) -> LogDensity | None:
        law = self._try_listed()
        return None if law is None else law.log_density

    def _listed(self) -> ListedLaw | None:
        return None


def matched(mechanisms: Iterable[Any], claims: Iterable[Claim]) -> tuple[tuple[Subject, ...], tuple[Claim, ...]]:
    """The mechanisms as subjects, at least one, with one claim each."""
    for name, given in (("mechanisms", mechanisms), ("claims", claims)):
        if not isinstance(given, Iterable):
            raise UsageError(f"{name} must be a list, one entry a mechanism, got {type(given).__name__}.")
    subjects, promises = tuple(map(as_subject, mechanisms)), tuple(map(checked, claims))
    if not subjects:
        raise UsageError("mechanisms must be at least one, got none.")
    if len(subjects) != len(promises):
        raise UsageError(f"claims must be one a mechanism, {len(subjects)}, got {len(promises)}.")
    return subjects, promises


def pairs_of(subject: Subject, pairs: Iterable[Any] | None) -> Sequence[Pair] | None:
    """The pairs that are given, else the subject's own; None where there are none. `AllPairs` stay compact."""
    chosen = subject.pairs() if pairs is None else pairs
    return chosen if chosen is None or isinstance(chosen, AllPairs) else tuple(as_pairs(chosen))


def shared_pairs(subjects: Sequence[Subject], pairs: Iterable[Any] | None) -> Sequence[Pair] | None:
    """The pairs that are given, else those of the first subject that has some."""
    for subject in subjects:
        found = pairs_of(subject, pairs)
        if found is not None:
            return found
    return None


def draw(subject: Subject, data: Any, size: int, rng: np.random.Generator) -> Outputs:
    """`size` outputs of one part, checked to be so many; what it raises is raised as it is."""
    try:
        outputs = copied(subject.sample(data, size, rng))  # the next part may write into the same buffer
    except CallError as error:  # the auditor counts the mechanism's own exception, not that it came through a law
        if error.__cause__ is not None:
            raise error.__cause__ from None
        raise
    if isinstance(outputs, str | bytes | Mapping) or not hasattr(outputs, "__len__"):
        kind = type(outputs).__name__
        raise SubjectError(f"{subject.name} must return {size} outputs, batch axis first, got {kind}.")
    if isinstance(outputs, np.ma.MaskedArray) or not isinstance(outputs, np.ndarray | list):
        outputs = outputs.tolist() if isinstance(outputs, np.ma.MaskedArray) else list(outputs)
    if (isinstance(outputs, np.ndarray) and outputs.ndim == 0) or len(outputs) != size:
        given = f"an array of shape {outputs.shape}" if isinstance(outputs, np.ndarray) else f"{len(outputs)} outputs"
        raise SubjectError(f"{subject.name} must return {size} outputs, batch axis first, got {given}.")
    return outputs


def draw_chosen(parts: Sequence[Subject], choices: NDArray[np.int64], data: Any, rng: np.random.Generator) -> Outputs:
    """One output a run, each of the part whose position is chosen for it; parts that no run has are not drawn."""
    places = [(part, np.flatnonzero(choices == k)) for k, part in enumerate(parts)]
    return merged(len(choices), [(at, draw(part, data, len(at), rng)) for part, at in places if len(at)])


def density_of(part: Subject, data: Any, outputs: Any) -> FloatArray:
    """The log density of one part; `UsageError` if it gives none."""
    density = part.log_density(data, outputs)
    if density is None:
        raise UsageError(f"{part.name} must give a log density of its outputs, got none.")
    return density


def joined(parts: Sequence[Outputs], size: int) -> Outputs:
    """One output a run from the outputs of several parts: their numbers side by side, other objects as they are.

    An array (size, columns) where every part is an array of numbers; a list of tuples otherwise. A number, or an array
    of numbers, enters as its numbers in either form, so that both forms read alike.
    """
    if all(_is_plain(part) for part in parts):
        columns = [part.reshape(size, math.prod(part.shape[1:])).astype(float) for part in parts]
        return np.concatenate(columns, axis=1)
    rows = [[item for part in parts for item in _items(part[run])] for run in range(size)]
    return [tuple(row) for row in rows]


def merged(size: int, pieces: Sequence[tuple[NDArray[np.int64], Outputs]]) -> Outputs:
    """One batch from the runs of several mechanisms: `pieces` are (positions in the batch, outputs there)."""
    filled = [(where, outputs) for where, outputs in pieces if len(where)]
    shapes = {outputs.shape[1:] for _, outputs in filled if _is_plain(outputs)}
    if filled and len(shapes) == 1 and all(_is_plain(outputs) for _, outputs in filled):
        batch = np.empty((size, *shapes.pop()))
        for where, outputs in filled:
            batch[where] = outputs
        return batch
    runs: list[Any] = [None] * size
    for where, outputs in filled:
        for position, output in zip(where.tolist(), outputs, strict=True):
            runs[position] = output
    return runs


def selected(outputs: Outputs, keep: NDArray[Any]) -> Outputs:
    """The runs of a batch at a mask or at positions, in the batch's own form."""
    if isinstance(outputs, np.ndarray):
        return outputs[keep]
    positions = np.flatnonzero(keep) if keep.dtype == bool else keep
    return [outputs[position] for position in positions.tolist()]


def are_good(outputs: Outputs) -> NDArray[np.bool_]:
    """Mask of the runs that did not raise."""
    if isinstance(outputs, np.ndarray) and outputs.dtype != object:
        return np.ones(len(outputs), dtype=bool)
    return np.array([not isinstance(output, Failed) for output in outputs], dtype=bool)


def _shape_of(output: Any) -> Shape | None:
    array = np.asarray(output) if not isinstance(output, Failed) else None
    return None if array is None or array.dtype.kind not in "biuf" else array.shape


def _is_plain(outputs: Outputs) -> bool:
    """Tell whether a batch is an array of numbers each of which is the double it would become."""
    if not isinstance(outputs, np.ndarray) or outputs.dtype.kind not in "biuf" or outputs.dtype.itemsize > 8:
        return False
    is_small = outputs.dtype.kind in "bf" or outputs.dtype.itemsize < 8
    return is_small or bool(np.all(np.abs(outputs.astype(float)) < WHOLE_FROM))


def _items(output: Any) -> list[Any]:
    """An output as what stands in a joined run: its numbers for a number or an array of numbers, else itself."""
    if isinstance(output, np.ndarray) and output.dtype.kind in "biuf":
        return [_plain_number(value) for value in output.ravel().tolist()]
    return [_plain_number(output)]


def _plain_number(value: Any) -> Any:
    """A number as the double it is equal to, where there is one: then all runs can be one array again."""
    value = plain(value)  # numpy would compare an integer with a double as doubles
    if not is_number(value):
        return value
    try:
        double = float(value)
    except OverflowError:
        return value
    return double if double == value or double != double else value
