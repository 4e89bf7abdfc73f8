"""End of a run: its outcome as a token, and outcomes of geometric tails as families of tokens.

A token is the identity of an output (`dpaudit.features.identity`): two outputs are one outcome where no audit can tell
them apart. An exception is the outcome of its kind and its text.

A `Tail` stands for an output one of whose integers is still a geometric variable without an end: start + X, or
start - X. Such leaves are compared across inputs by `cells`: each integer place is divided at common points, into
single values and a tail on either side. Memorylessness makes the law inside a tail depend on the ratio alone, so that
two inputs whose leaves in a cell have the same ratios have proportional laws there: the cell counts as one outcome.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy import asarray  # which stays numpy's own while `conversions` replaces it

from dpaudit.errors import SubjectError
from dpaudit.features.identity import identity, without_notes
from dpaudit.features.outcomes import DEEPEST, unseen
from dpaudit.features.unread import is_unread, parts_of
from dpaudit.subjects.call_outcomes import Failed, Opaque
from dpaudit.subjects.foreign import attributes_of
from dpaudit.subjects.plain import seen
from dpaudit.symbolic.dependence import FORMS, MORE, VIEW
from dpaudit.symbolic.known_names import IMPURITIES
from dpaudit.symbolic.program_state import is_atom
from dpaudit.symbolic.symbols import PYTHONS, Symbol, SymbolArray, filled
from dpaudit.symbolic.tracing import ONE, Tracer
from dpaudit.symbolic.uniform_numbers import UniformNumber
from dpaudit.symbolic.whole_numbers import Variable, WholeNumber, race, tell

MAX_ATOMS = 4_096  # single values that a tail is divided into
BEYOND = 64  # single values beyond the common points, where the ratios of two inputs differ
MARK = "\x00"
# An integer as a token has it; -0.0 is none.
INTEGER = re.compile(r"(?<![\w.])(?:0|-?[1-9]\d*)\.0(?![\w.])")


class NeedsNumbers(BaseException):
    """Reason to run a program on numbers: it does what integers as symbols cannot tell from a mistake."""


USUAL = frozenset({np.int64, np.float64, np.bool_, np.complex128})  # classes of numbers that count as Python's

# What stands for a tail in an output: an object that prints as its number, with the name of the class that it has.
MARKS: Mapping[type, type] = {kind: type(kind.__name__, (Opaque,), {}) for kind in (int, float)}


@dataclasses.dataclass(frozen=True)
class Tail:
    """One integer of an output: start + sign * X, with P(X = k) = (1 - ratio) ratio^k."""

    start: int
    sign: int
    ratio: Fraction | float


Option = tuple[str, Fraction | float, Fraction | float | None]  # a cell: text, share of the mass, ratio of a tail
Places = tuple[int | Tail, ...]  # the integers of an output, in the order of its token
End = tuple[int, int] | None
Ratios = tuple[Fraction | float | None, ...]
Cell = tuple[str, Ratios]


@dataclasses.dataclass(frozen=True)
class Leaf:
    """An outcome: a token, with marks in the places of its tails."""

    token: str
    tails: tuple[Tail, ...] = ()

    def at(self, count: int) -> str:
        """The token where every variable of a tail is `count`."""
        first, *pieces = self.token.split(MARK)
        shown = [f"{tail.start + tail.sign * count}.0{piece}" for tail, piece in zip(self.tails, pieces, strict=True)]
        return "".join([first, *shown])


def read_output(tracer: Tracer, output: Any) -> Leaf:
    """The leaf that an output is; `Untraceable` where a uniform number is in it, or nothing of it can be seen.

    `NeedsNumbers` where it holds integers as symbols that cannot be followed.
    """
    tails: list[Tail] = []
    try:
        if tracer.has_wholes or tracer.has_uniforms:
            plain = _shown(tracer, output, tails, _variables(output), 0)
        else:
            plain = seen(output)
    except SubjectError as error:
        reason = f"an output cannot be read: {str(error).removesuffix('.')}"
        if tracer.has_wholes:
            raise NeedsNumbers(reason) from error
        if tracer.has_uniforms:
            tracer.refuse(reason)
        raise
    kind = unseen([plain], ())  # Validity: also of a function beside an answer, which may hold the input
    if kind:
        tracer.refuse(f"nothing can be seen of an output of the class {kind}")
    # What was not read may be the input; a plain object holds nothing.
    unread = (part.kind for part, *_ in parts_of(plain) if is_unread(part) and part.kind != "object")
    if kind := next(unread, ""):
        tracer.refuse(f"what is in an output of the class {kind} is not read")
    token = identity(plain)
    if tracer.depends is not None and not (tracer.has_wholes or tracer.has_uniforms):
        tracer.depends.note_form(token, (*held(output),))  # else a run with numbers shows it
    if not isinstance(plain, int | float | str) and identity(plain, -1) != token:  # one level more shows more
        tracer.refuse(f"an output is nested more than {DEEPEST} levels deep")
    if not tails:
        return Leaf(token)
    pieces = re.split(f"{MARK}(\\d+){MARK}", token)
    order = [int(piece) for piece in pieces[1::2]]
    if sorted(order) != list(range(len(tails))):
        raise NeedsNumbers("an output holds a draw in several places, or where it cannot be followed")
    return Leaf(MARK.join(pieces[::2]), tuple(tails[k] for k in order))


class Bits(int):
    """Bytes of an output, in short, which draws may have chosen."""


def form(output: Any) -> tuple[Any, ...]:
    """Traits of an output beside its values and their bytes, which a run with numbers in the place of draws chose."""
    return tuple(one for one in held(output) if type(one) is not Bits)


def held(output: Any) -> Iterator[Any]:
    """Traits of an output and its parts beside their values, in their order: what its token need not show.

    Classes, types and layouts of arrays, places that hold one object, and bytes of arrays and NaN. Numbers of numpy's
    usual types count as Python's.
    """
    waiting, places = [output], dict[int, tuple[int, Any]]()  # what is looked at stays, and its number its own
    while waiting:
        value = waiting.pop()
        kind: Any = value.__class__ if isinstance(value, Symbol | SymbolArray) else type(value)
        yield type(kind(0).item()) if kind in USUAL else kind
        if isinstance(value, np.ndarray | np.datetime64 | np.timedelta64 | np.dtype):
            yield [*_type_of(value if isinstance(value, np.dtype) else value.dtype)]
        if isinstance(value, Symbol | SymbolArray | Fraction):
            continue
        if isinstance(value, float | complex | np.inexact) and value != value:
            yield hash(asarray(value).tobytes())
        if isinstance(value, Failed):
            IMPURITIES.extend([] if value.is_whole and "0x" not in value.message else [MORE])
            yield value.held
        elif not is_atom(value):
            place, _ = places.setdefault(id(value), (len(places), value))
            yield place
            if place == len(places) - 1:
                waiting += _parts(value)
                if isinstance(value, np.ndarray | np.void | memoryview):
                    array = asarray(value)
                    IMPURITIES.extend([VIEW] * _is_view_of_more(value))
                    waiting += array.ravel().tolist() if array.dtype.hasobject else []
                    waiting.append(value.obj if isinstance(value, memoryview) else value.base)
                    yield array.shape, array.strides, array.flags.num
                    content = 0 if array.dtype.hasobject else hash(array.tobytes())
                    # Symbols are in no record, and no draw is NaN: what the bytes of these are no draw has chosen.
                    yield content if array.dtype.kind == "V" else Bits(content)
                    yield hash(array[array != array].tobytes()) if array.dtype.kind in "fc" else 0


def _type_of(dtype: Any) -> Iterator[Any]:
    """Traits of a type of arrays beside its name: `long` and `long long` have one name."""
    yield dtype.char, dtype.type, dtype.isalignedstruct, repr(dtype), repr(dtype.metadata)
    for inner, *place in (dtype.fields or {}).values():
        yield [*_type_of(inner), place]
    if dtype.subdtype is not None:
        yield [*_type_of(dtype.base)]


def _is_view_of_more(value: Any) -> bool:
    """Tell whether an array, a record or a view of memory leads to bytes of which it is not made, as by its `base`."""
    if isinstance(value, memoryview):
        return value.nbytes < memoryview(value.obj).nbytes
    owner, kind = value, np.ndarray if isinstance(value, np.ndarray) else np.void
    while (base := kind.base.__get__(owner)) is not None:
        if isinstance(base, bytes | bytearray | memoryview) and owner.nbytes == memoryview(base).nbytes:
            break
        if not isinstance(base, np.ndarray):
            return True
        owner, kind = base, np.ndarray
    if owner is value or isinstance(value, np.void):
        return bool(value.nbytes < owner.nbytes)
    is_shown, places = np.zeros(owner.nbytes, bool), [asarray(one).ctypes.data for one in (value, owner)]
    np.ndarray((*value.shape, value.itemsize), bool, is_shown, places[0] - places[1], (*value.strides, 1))[...] = True
    return not is_shown.all()


def _parts(value: Any) -> list[Any]:
    """Parts of a container, or the attributes of an object."""
    base = next((one for one in (list, tuple, dict, set, frozenset) if isinstance(value, one)), None)
    if base in (set, frozenset):
        return sorted(base.__iter__(value), key=lambda one: (type(one).__qualname__, id(type(one))))
    if base is dict:
        return [*dict.keys(value), *dict.values(value)]
    found = attributes_of(value) if base is None and not isinstance(value, type) else None
    return [*base.__iter__(value)] if base is not None else [*found.values()] if found else []


def _variables(output: Any) -> list[Variable]:
    """The open variables of an output, each as often as it occurs."""
    if type(output) is WholeNumber:
        return list(output.parts()[1])
    if type(output) in (list, tuple):
        return [variable for item in output for variable in _variables(item)]
    if type(output) is dict:
        return [variable for item in output.values() for variable in _variables(item)]
    if isinstance(output, np.ndarray) and asarray(output).dtype == object:
        return [variable for item in asarray(output).flat for variable in _variables(item)]
    return []


def _shown(tracer: Tracer, output: Any, tails: list[Tail], used: Sequence[Variable], depth: int) -> Any:
    """The output as plain data, with numbers for its symbols and with a mark for each tail."""
    if depth > DEEPEST:
        return seen(output)
    kind = type(output)
    if kind is UniformNumber:
        tracer.refuse("an output holds a uniform number itself")
    if kind is WholeNumber:
        return _shown_whole(tracer, output, tails, used)
    if kind in (list, tuple):
        return kind([_shown(tracer, item, tails, used, depth + 1) for item in output])
    if kind is dict and all(type(key) is str for key in output):
        return {key: _shown(tracer, item, tails, used, depth + 1) for key, item in output.items()}
    if kind is dict:  # other keys may change the order of the token: no tails inside
        known = {_known(key): _shown(tracer, item, [], [*used, *used], depth + 1) for key, item in output.items()}
        return seen(known)
    if kind in (set, frozenset):
        return seen(kind(map(_known, output)))
    if kind is SymbolArray or (kind is np.ndarray and output.dtype == object):
        shown = [_shown(tracer, item, tails, used, depth + 1) for item in asarray(output).flat]
        array = filled(shown, output.shape)
        if kind is np.ndarray:
            return array if isinstance(output[()], Symbol) else array.tolist()
        symbols = array.view(SymbolArray)
        symbols.holds_floats = output.holds_floats
        return symbols
    return seen(output)


def _known(item: Any) -> Any:
    """A key, or a member of a set: a symbol that was hashed is known by then."""
    if type(item) is tuple:
        return tuple(map(_known, item))
    return item.number("a key, or a member of a set") if type(item) is WholeNumber else item


def _shown_whole(tracer: Tracer, number: WholeNumber, tails: list[Tail], used: Sequence[Variable]) -> Any:
    while True:
        constant, terms = number.parts()
        endless = [variable for variable in terms if variable.size is None]
        if len(terms) == 1 and endless and abs(terms[endless[0]]) == 1 and used.count(endless[0]) == 1:
            tails.append(Tail(constant, terms[endless[0]], endless[0].ratio))
            return MARKS[PYTHONS[number._kind]](number._kind.__name__, text=f"{MARK}{len(tails) - 1}{MARK}")
        if not terms:
            return number.number()
        signs = {terms[variable] for variable in terms}
        if len(endless) == len(terms) == 2 and signs == {1, -1} and all(used.count(one) == 1 for one in endless):
            race(tracer, *endless)  # of a difference, one variable is left on either side of 0
            used = [*used, *number.parts()[1]]
            continue
        kept = endless[0] if endless and len(terms) > 1 else None
        tell(tracer, next(variable for variable in terms if variable is not kept))


# Cells


def cells(
    laws: Sequence[Mapping[Leaf, Fraction]], forms: Mapping[str, Sequence[Any]]
) -> tuple[list[dict[str, Fraction]], bool]:
    """The laws of some inputs on a common set of outcomes, and whether nothing had to be left out.

    Of each input its cells with their masses, which `readable` names; what is left out counts as unexplored. That is
    where tails of two ratios meet in one cell, or one would be divided into more than `MAX_ATOMS` values. Outcomes of
    one cell that have other `forms`, which are known by tokens, are a doubt.
    """
    if not any(leaf.tails for law in laws for leaf in law):
        return [{leaf.token: mass for leaf, mass in law.items()} for law in laws], True
    parted = [[(*_skeleton(leaf), mass, forms.get(leaf.token, ())) for leaf, mass in law.items()] for law in laws]
    laid: dict[str, list[Any]] = {}
    several: dict[str, list[Places]] = {}
    for skeleton, places, *_ in itertools.chain.from_iterable(parted):
        several.setdefault(skeleton, []).append(places)
    ends = {skeleton: _ends(places) for skeleton, places in several.items()}
    is_whole = True
    found: list[dict[Cell, Fraction]] = []
    for law in parted:
        masses: dict[Cell, Fraction] = {}
        for skeleton, places, mass, found_as in law:
            kept = [one for one in found_as if type(one) is not Bits]
            counts = [_atoms(value, end) for value, end in zip(places, ends[skeleton], strict=True)]
            if math.prod(counts) > MAX_ATOMS:
                is_whole = False
                continue
            divided = [options(value, end) for value, end in zip(places, ends[skeleton], strict=True)]
            for cell, share in products(skeleton, divided):
                masses[cell] = masses.get(cell, Fraction(0)) + mass * share
                IMPURITIES.extend([FORMS] * (laid.setdefault(cell[0], kept) != kept))
        found.append(masses)
    kinds: dict[str, set[Ratios]] = {}
    for masses in found:
        for text, ratios in masses:
            kinds.setdefault(text, set()).add(ratios)
    mixed = {text for text, ratios in kinds.items() if len(ratios) > 1}
    return [
        {text + MARK * any(ratios): mass for (text, ratios), mass in masses.items() if text not in mixed}
        for masses in found
    ], is_whole and not mixed


def readable(cell: str) -> str:
    """The text of a cell: a canonical token, or one with `≥ 5` in the place of a tail."""
    return without_notes(cell.rstrip(MARK))


def _skeleton(leaf: Leaf) -> tuple[str, Places]:
    """A leaf's text without its integers, and its integers and tails in order; one-to-one for leaves without tails."""
    texts: list[str] = []
    places: list[int | Tail] = []
    tails = iter(leaf.tails)
    for number, piece in enumerate(leaf.token.split(MARK)):
        if number:
            places.append(next(tails))
            texts.append(MARK)
        places += [int(text[:-2]) for text in INTEGER.findall(piece)]
        texts.append(INTEGER.sub(MARK, piece))
    return "".join(texts), tuple(places)


def _ends(several: Sequence[Places]) -> list[End]:
    """For each place the largest value of the lower tail and the least of the upper one; None without tails there."""
    result: list[End] = []
    for values in zip(*several, strict=True):
        ratios = {value.ratio for value in values if isinstance(value, Tail)}
        numbers = [value.start if isinstance(value, Tail) else value for value in values]
        beyond = 1 + (BEYOND if len(ratios) > 1 else 0)
        result.append((min(numbers) - beyond, max(numbers) + beyond) if ratios else None)
    return result


def _atoms(value: int | Tail, end: End) -> int:
    """Into how many cells a place is divided."""
    if isinstance(value, int) or end is None:
        return 1
    return 1 + abs((end[1] if value.sign > 0 else end[0]) - value.start)


def options(value: int | Tail, end: End) -> list[Option]:
    """The cells of a place: text, share of the mass, and the ratio where it is a tail."""
    if isinstance(value, int) or end is None:
        return [(f"{value}.0", Fraction(1), None)]
    limit = end[1] if value.sign > 0 else end[0]
    a, count = value.ratio, abs(limit - value.start)
    single: list[Option] = [(f"{value.start + value.sign * k}.0", (1 - a) * a**k, None) for k in range(count)]
    return [*single, (f"{'≥' if value.sign > 0 else '≤'} {limit}", a**count, a)]


def products(skeleton: str, divided: Sequence[Sequence[Option]]) -> Iterator[tuple[Cell, Any]]:
    """The cells of one leaf, with their shares of its mass."""
    texts = skeleton.split(MARK)
    for chosen in itertools.product(*divided):
        text = texts[0] + "".join(shown + rest for (shown, _, _), rest in zip(chosen, texts[1:], strict=True))
        yield (text, tuple(ratio for _, _, ratio in chosen)), math.prod((share for _, share, _ in chosen), start=ONE)
