"""Saved forms that types say: a dataclass as JSON values and back, by the annotations of its fields.

Conventions: infinities are the texts "inf" and "-inf", NaN and what does not apply are null; in an exact form each
double is the text of its hexadecimal digits. A fraction is the text "3/4". A field that an older file lacks has its
default; names that are not among the fields are passed over.

What is read is data and decides nothing about code: types say what is made, and of the classes that an annotation
names, the tag of a record chooses one.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from dpaudit.numerals import fraction_text, read_fraction
from dpaudit.privacy.pairs import short_form

PLAIN = (str, int, bool, types.NoneType)  # which are their own saved form
SPECIAL = {"inf": math.inf, "-inf": -math.inf}
Read = Callable[[Any], Any]
Matrix = Annotated[NDArray[np.float64], 2]  # an array without this has one axis
# Metadata of fields: "name" in the saved form, "saved", "omitted", "exact", and "write", which makes a JSON value.
UNSAVED: Mapping[str, Any] = {"saved": False}
OMITTED: Mapping[str, Any] = {"omitted": True}  # not written while it has its default
ROUNDED: Mapping[str, Any] = {"write": lambda seconds: to_json(round(seconds, 3))}


class FormError(ValueError):
    """A value that its type cannot be read from: where it stands, what was expected, and what was given."""

    def __init__(self, expected: str, given: str, path: str = "") -> None:
        super().__init__(expected, given, path)
        self.expected, self.given, self.path = expected, given, path

    def __str__(self) -> str:
        return f"{self.path.removeprefix('.') or 'record'} must be {self.expected}, got {self.given}"


class Form:
    """Give a dataclass its saved form, `to_dict` and `from_dict`, by the types of its fields."""

    exact: ClassVar[bool] = False
    tag: ClassVar[str] = ""  # "kind" of the record, by which it is told from other classes
    derived: ClassVar[tuple[str, ...]] = ()  # properties that stand in the saved form too, for its readers

    def to_dict(self) -> dict[str, Any]:
        """The saved form, as strict JSON values."""
        derived = {name: to_json(getattr(self, name)) for name in self.derived}
        fields = fields_to_dict(self, self.exact)
        return self._to_saved({**({"kind": self.tag} if self.tag else {}), **fields, **derived})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """The dataclass that `to_dict` wrote; ValueError says where a value is of another type or missing."""
        if not isinstance(record, Mapping):
            _refuse(cls.__name__, record)
        found: Self = fields_from_dict(cls, cls._of_saved(record), cls.exact)
        return found

    def _to_saved(self, record: dict[str, Any]) -> dict[str, Any]:
        """The saved form from that of the fields."""
        return record

    @classmethod
    def _of_saved(cls, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """The saved form of the fields from a record that may be older."""
        return record


class _Field(NamedTuple):
    name: str
    saved_as: str
    is_needed: bool
    omitted: tuple[Any, ...]  # values that are not written
    write: Read
    read: Read


@functools.cache
def _saved_fields(kind: Any, exact: bool) -> list[_Field]:
    hints, fields = typing.get_type_hints(kind, include_extras=True), []
    for field in dataclasses.fields(kind):
        own, hint = field.metadata, hints[field.name]
        if own.get("saved", True):
            is_exact = exact and own.get("exact", True)
            write = (
                (lambda value: float(value).hex())
                if hint is float and is_exact
                else functools.partial(_encoded, is_exact)
            )
            write = own.get("write", to_json if hint is Any else write)
            is_needed = field.default is field.default_factory  # both are missing
            read = reader_of(hint, is_exact)
            omitted = (field.default,) if own.get("omitted") else ()
            fields.append(_Field(field.name, own.get("name", field.name), is_needed, omitted, write, read))
    return fields


def fields_to_dict(value: Any, exact: bool = False) -> dict[str, Any]:
    """The fields of a dataclass as JSON values, by the names that they are saved under."""
    kind: Any = type(value)
    found = ((one, getattr(value, one.name)) for one in _saved_fields(kind, exact))
    return {one.saved_as: one.write(own) for one, own in found if own not in one.omitted}


def fields_from_dict(kind: Any, record: Mapping[str, Any], exact: bool = False) -> Any:
    """A dataclass of the record of its fields; raises as `Form.from_dict`."""
    fields = _saved_fields(kind, exact)
    if missing := [one.saved_as for one in fields if one.is_needed and one.saved_as not in record]:
        raise FormError("complete", f"one without {', '.join(missing)}")
    here = [one for one in fields if one.saved_as in record]
    found = _each(lambda k: f".{here[k].saved_as}", [one.read for one in here], [record[one.saved_as] for one in here])
    return kind(**{one.name: value for one, value in zip(here, found, strict=True)})


def to_json(value: Any) -> Any:
    """`value` as strict JSON: numpy to Python, infinities to "inf" and "-inf", NaN to null, other objects to names."""
    return _encoded(None, value)


def from_json(value: Any) -> Any:
    """The inverse of `to_json` on numbers, lists and objects: "inf" and "-inf" become floats again."""
    if isinstance(value, str):
        return SPECIAL.get(value, value)
    if isinstance(value, list):
        return [from_json(item) for item in value]
    if isinstance(value, dict):
        return {key: from_json(item) for key, item in value.items()}
    return value


def _encoded(exact: bool | None, value: Any) -> Any:
    """The saved form of a value; where `exact` is None, that of an input, whose objects are shown by their names."""
    if type(value) in PLAIN:
        return value
    if exact is not None and dataclasses.is_dataclass(value):
        return value.to_dict() if hasattr(value, "to_dict") else fields_to_dict(value, exact)
    if exact is not None and isinstance(value, Fraction):
        return fraction_text(value)
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, float) and exact:
        return float(value).hex()
    if isinstance(value, float):
        return None if math.isnan(value) else value if math.isfinite(value) else "inf" if value > 0 else "-inf"
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _encoded(exact, item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes | bytearray):
        items = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
        return [_encoded(exact, item) for item in items]
    return short_form(value, width=200)


@functools.cache
def reader_of(kind: Any, exact: bool = False, axes: int = 1) -> Read:
    """The function that makes a value of this type of its saved form.

    Examples
    --------
    >>> reader_of(tuple[float, ...])(["inf", 1]), reader_of(dict[str, float | None])({"a": None})
    ((inf, 1.0), {'a': None})
    >>> reader_of(list[int])([1, "2"])
    Traceback (most recent call last):
    dpaudit.results.codec.FormError: [1] must be int, got '2'
    """
    origin, parts = typing.get_origin(kind) or kind, typing.get_args(kind)
    name = kind.__name__ if isinstance(kind, type) and not parts else str(kind).replace("typing.", "")

    def checked(value: Any, *kinds: type) -> Any:
        is_odd = isinstance(value, bool) and kind is not bool
        return _refuse(name, value) if is_odd or not isinstance(value, kinds) else value

    def items(value: Any) -> Any:
        each = reads if is_fixed else reads * len(checked(value, list, tuple))
        if len(checked(value, list, tuple)) != len(each):
            _refuse(name, value)
        return origin(_each("[{}]".format, each, value))

    def entries(value: Any) -> Any:
        names = [*checked(value, Mapping)]
        return dict(zip(names, _each(lambda k: f".{names[k]:.40}", reads * len(names), value.values()), strict=True))

    if kind is Any:
        return lambda value: value
    if kind in (float, Fraction):
        return _fraction if kind is Fraction else _exact_float if exact else as_float
    if origin is Annotated:
        return reader_of(parts[0], exact, *parts[1:])
    if origin is np.ndarray:
        return functools.partial(_array, np.dtype(typing.get_args(parts[1])[0]), axes, exact)
    if origin is Literal:
        known = f"one of {', '.join(filter(None, parts))}"
        return lambda value: value if isinstance(value, str) and value in parts else _refuse(known, value)
    if origin in (typing.Union, types.UnionType):
        return _union([part for part in parts if part is not types.NoneType], exact)
    if origin in (tuple, list, frozenset):
        is_fixed = origin is tuple and ... not in parts
        reads = [reader_of(part, exact) for part in parts if part is not ...]
        return items
    if origin is dict:
        reads = [reader_of(parts[1], exact)]
        return entries
    if hasattr(kind, "_fields"):  # a named tuple, which is saved as a list
        values = reader_of(types.GenericAlias(tuple, tuple(typing.get_type_hints(kind).values())), exact)
        return lambda value: kind(*values(value))
    if dataclasses.is_dataclass(kind):
        made = getattr(kind, "from_dict", None) or functools.partial(fields_from_dict, kind, exact=exact)
        return lambda value: made(checked(value, Mapping))
    return lambda value: checked(value, kind)


def as_float(value: Any) -> float:
    """A number of JSON as a float: "inf" and "-inf" are infinities, null is NaN."""
    if value is None:
        return math.nan
    number = SPECIAL.get(value, value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float):
        _refuse("float", value)
    try:
        return float(number)
    except OverflowError:
        raise FormError("float", "an integer beyond the doubles") from None


def _exact_float(value: Any) -> float:
    try:
        # A saved result reads the text of an infinity back as a number.
        return value if isinstance(value, float) and math.isinf(value) else float.fromhex(value)
    except (TypeError, ValueError, OverflowError):
        _refuse("the hexadecimal digits of a float", value)


def _fraction(value: Any) -> Fraction:
    try:
        return read_fraction(value)
    except (AttributeError, ValueError):
        _refuse("a fraction", value)


def _array(kind: np.dtype[Any], axes: int, exact: bool, value: Any) -> Any:
    read = reader_of(float if kind.kind == "f" else int, exact)

    def nested(axes: int, value: Any) -> Any:
        if axes and not isinstance(value, list):
            _refuse("a list", value)
        return [nested(axes - 1, item) for item in value] if axes else read(value)

    try:
        return np.array(nested(axes, value), dtype=kind)
    except (ValueError, OverflowError) as error:
        raise error if isinstance(error, FormError) else FormError("lists of one shape", str(error)) from None


def _union(kinds: list[Any], exact: bool) -> Read:
    """A reader of the one type that is not None; or of several, of the one whose tag a record has."""
    if len(kinds) == 1:
        only = reader_of(kinds[0], exact)
        return lambda value: None if value is None else only(value)
    tagged = {kind.tag: reader_of(kind, exact) for kind in kinds}

    def of_tag(value: Any) -> Any:
        kind = value.get("kind") if isinstance(value, Mapping) else value
        if not isinstance(kind, str) or kind not in tagged:
            raise FormError(f"one of {', '.join(tagged)}", short_form(kind, width=80), ".kind")
        return tagged[kind](value)

    return of_tag


def _each(place: Callable[[int], str], reads: Iterable[Read], values: Iterable[Any]) -> list[Any]:
    """The values that several saved forms are read as; `place` says where each stands."""
    found: list[Any] = []
    try:
        for read, value in zip(reads, values, strict=True):
            found.append(read(value))
    except FormError as error:
        raise FormError(error.expected, error.given, place(len(found)) + error.path) from error.__cause__
    return found


def _refuse(expected: str, value: Any) -> NoReturn:
    raise FormError(expected, short_form(value, width=80))
