"""Operations of instrumented code: what a program does that is proved.

Which values it may have, and which functions it may call with them, `values` says. Python's own functions that only
move values about take any. A text is made of plain values or by the program's own functions, a set has numbers alone.
So no address, order of hashes, memory or clock gets into a program. Whatever is not known to be within this rule is a
*doubt*: it is done as it would be, and nothing is proved.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import dataclasses
import enum
import functools
import itertools
import linecache
import operator
import re
import sys
import types
from collections.abc import Mapping
from typing import Any

import numpy as np

from dpaudit.subjects.tracebacks import OWN_FOLDER, is_users
from dpaudit.symbolic.generated import is_generated
from dpaudit.symbolic.generators import TracedRng
from dpaudit.symbolic.instrumenting import KNOWN, PREFIX, instrumented
from dpaudit.symbolic.known_names import (
    AS_OURS,
    AS_SET,
    AS_TEXT,
    MODULES,
    doubt,
    has_one_order,
    is_hidden,
    is_of_own,
    is_of_process,
    is_own,
    names_ours,
)
from dpaudit.symbolic.symbols import Symbol
from dpaudit.symbolic.values import (
    ATOMS,
    CALLING,
    CALLING_GIVEN,
    CHANGEABLE,
    FOLLOWED,
    GENERATORS,
    GIVEN,
    HANDED,
    KEEPING,
    LAWS,
    NAMED_FUNCTIONS,
    NUMBERS,
    OF_DATACLASSES,
    RAISED,
    attributes_of,
    calls_nothing,
    is_followed,
    is_law,
    is_own_class,
    is_plain,
    is_plain_type,
    is_shown,
    known_functions,
    real,
)  # fmt: skip
from dpaudit.symbolic.watching import CLOCKS, OF_PROCESS, RUNNING, unheard

READ = [*CLOCKS.items(), *OF_PROCESS.items()]
BOUND = (types.BuiltinFunctionType, types.MethodWrapperType)
UNBOUND = (types.MethodDescriptorType, types.WrapperDescriptorType)
CACHE: type = functools._lru_cache_wrapper
COMPARING = type(functools.cmp_to_key(operator.sub))
BY_NAME = frozenset(map(id, (getattr, hasattr, setattr, delattr)))
CHECKS = f"{OWN_FOLDER}arguments.py"  # functions without a state, which get the code of the program's own
INSTRUMENTED: list[tuple[types.FunctionType, types.CodeType]] = []  # functions, with their own codes


def instrument(function: Any) -> bool:
    """Give a function its instrumented code; tell whether it has one."""
    if RUNNING and function.__code__.co_filename not in linecache.cache:
        with unheard():  # it is not the program that reads its source; no loader of its own is asked here
            linecache.getlines(function.__code__.co_filename)
    code = instrumented(function) if function.__builtins__ is vars(builtins) else None
    if code is not None and code is not function.__code__:
        INSTRUMENTED.append((function, function.__code__))
        function.__code__ = code
    return code is not None


def _doubt_if(is_so: bool, reason: str) -> None:
    if is_so:
        doubt(reason)


def _lose_if(is_so: bool) -> None:
    """End what can be said of a run whose program may see what stands for a function."""
    if is_so:
        doubt(AS_OURS)
        if RUNNING:
            RUNNING[-1].mark_unseen(AS_OURS)


# Calls.


def call(function: Any, /, *arguments: Any, **options: Any) -> Any:
    """Result of a call; a doubt where the function is not known, or gets what it is not to get."""
    inner = function.__func__ if type(function) is types.MethodType else function
    if type(inner) is types.FunctionType and id(inner.__code__) in KNOWN:
        return function(*arguments, **options)
    try:
        return real(_called(real(function), arguments, options))
    except RAISED:
        caught()
        raise


def _called(function: Any, arguments: Any, options: Any) -> Any:
    kind, number = type(function), id(function)
    owner = function.__self__ if issubclass(kind, (*BOUND, types.MethodType)) else None
    if kind is functools.partial:
        return call(function.func, *function.args, *arguments, **{**function.keywords, **options})
    if RUNNING and (instead := RUNNING[-1].instead(function, owner)) is not None:
        return _with_plain(instead, arguments, options)
    first, name = arguments[0] if arguments else None, getattr(function, "__name__", "")
    if issubclass(type(first), TracedRng) and function is getattr(first.__class__, name, None):
        return call(getattr(first, name), *arguments[1:], **options)  # by the class, which would draw itself
    structural, plain, showing = known_functions(len(sys.modules))
    if issubclass(type(owner), TracedRng):
        return _drawn(function, arguments, options)
    if is_own_class(kind) and not issubclass(kind, type):
        _doubt_if(owner is None and not calls_nothing(kind), f"it calls a {kind.__name__}")
        return function(*arguments, **options)
    if number in structural:
        return _moved(function, arguments, options)
    if number in plain:
        return _with_plain(function, arguments, options)
    if number in showing:
        is_known = all(map(is_shown, arguments)) and all(is_plain(one) or is_followed(one) for one in options.values())
        _doubt_if(not is_known, AS_TEXT)
    elif number in BY_NAME:
        return _by_name(function, *arguments)
    elif issubclass(kind, type):
        is_error = issubclass(function, BaseException) and function.__module__ == "builtins"
        is_own_one = is_own_class(function) and calls_nothing(function)
        is_own_one &= not issubclass(function, str | bytes | bytearray) or all(map(is_shown, arguments))
        _doubt_if(not is_error and not is_own_one, f"it names {function.__name__}")
    elif kind in (types.FunctionType, types.MethodType):
        return _of_python(function, owner, arguments, options)
    elif issubclass(kind, BOUND) and not isinstance(owner, types.ModuleType | None):
        return _method(function, owner, arguments, options)
    elif issubclass(kind, UNBOUND) and arguments:
        return _method(function.__get__(arguments[0]), arguments[0], arguments[1:], options)
    elif kind not in (operator.itemgetter, COMPARING) and not (
        hasattr(function, "cache_info") and is_followed(function.__wrapped__)
    ):
        _note_unknown(function)
    return function(*arguments, **options)


def _note_unknown(function: Any) -> None:
    doubt(f"it names {getattr(function, '__name__', type(function).__name__)}")
    reason = next((said for one, said in READ if type(one) is type(function) and one == function), "")
    if reason and RUNNING:
        RUNNING[-1].mark_unseen(reason)


def _drawn(function: Any, arguments: Any, options: Any) -> Any:
    """Call of a method of a generator: what stands for numpy's asks its arguments more often than that does."""
    is_ours = type(function) is not types.MethodType or function.__func__.__code__.co_filename.startswith(OWN_FOLDER)
    is_list = function.__name__ == "shuffle" and all(type(one) is list for one in arguments)
    is_known = not is_ours or is_list or all(map(is_plain, (*arguments, *options.values())))
    _doubt_if(not is_known, f"{function.__name__}() gets what is no number and no text")
    return function(*arguments, **options)


def _stands_in(value: Any) -> bool:
    """Tell whether a value is a method of what stands for a number, an array or a generator."""
    return type(value) is types.MethodType and issubclass(type(value.__self__), (*FOLLOWED, TracedRng))


def _moved(function: Any, arguments: Any, options: Any) -> Any:
    """Call of a function that moves values about, compares them or asks for their class."""
    _doubt_if(function is type and len(arguments) > 1, "it makes a class")
    _doubt_if(function is super and not arguments, "it has a call that asks for its frame")
    if function is collections.defaultdict and arguments:  # whose default is called by an index, which nobody hears
        is_known = is_followed(arguments[0]) or id(arguments[0]) in known_functions(len(sys.modules))[0]
        _doubt_if(not is_known and arguments[0] is not None, "it makes a dictionary whose default is no function")
    is_asked = function in (type, isinstance) and bool(arguments)
    _doubt_if(is_asked and _stands_in(arguments[0]), "it asks for the class of a method")
    if function in (int, float, type) and len(arguments) == 1 and not options:
        value = arguments[0]
        if function is type:
            return value.__class__ if issubclass(type(value), (*FOLLOWED, TracedRng)) else type(value)
        return value.as_class(function) if isinstance(value, Symbol) else function(value)
    return made(_handed(function, arguments, options) if function in CALLING_GIVEN else function(*arguments, **options))


def _handed(function: Any, arguments: Any, options: Any) -> Any:
    """Call of what calls a function that it is given, so that these calls are looked at."""
    places = (place for place, several in enumerate(HANDED) if any(function is one for one in several))
    called = next(places, None) if function is not iter or len(arguments) > 1 else None

    def guarded(value: Any, is_called: bool) -> Any:
        is_guarded = is_called and callable(value) and not is_followed(value)
        return functools.partial(call, value) if is_guarded else value

    given = [guarded(one, place == called) for place, one in enumerate(arguments)]
    return function(*given, **{key: guarded(one, key in NAMED_FUNCTIONS) for key, one in options.items()})


def _with_plain(function: Any, arguments: Any, options: Any) -> Any:
    """Call of a function that is known for plain values, and gives such."""
    name = getattr(function, "__name__", type(function).__name__)
    is_called = name in CALLING
    is_known = all(is_plain(one) or (is_called and is_followed(one)) for one in (*arguments, *options.values()))
    if function in OF_DATACLASSES and arguments and is_own_class(type(arguments[0])):
        is_known = all(is_plain(getattr(arguments[0], one.name)) for one in dataclasses.fields(arguments[0]))
    # Else some of the memory is as it was found.
    is_known &= "where" not in options or type(options.get("out")) is np.ndarray
    _doubt_if(not is_known, f"{name}() gets what is no number and no text")
    found = KEEPING.get(id(function), function)(*arguments, **options)
    is_known = function is dataclasses.replace or is_plain(found) or issubclass(type(found), GIVEN)
    _doubt_if(not is_known, f"{name}() gives what is no number and no text")
    return found


def _of_python(function: Any, owner: Any, arguments: Any, options: Any) -> Any:
    """Call of what is written in Python, or bound to a value."""
    inner = function.__func__ if type(function) is types.MethodType else function
    name, code = inner.__name__, getattr(inner, "__code__", None)
    kind: Any = type(owner)
    if (kind in GENERATORS and name in attributes_of(kind)) or (name in LAWS and is_law(kind)):
        return _with_plain(function, arguments, options)
    if code is None:
        return call(inner, owner, *arguments, **options)
    if code.co_filename.startswith(OWN_FOLDER) and not issubclass(kind, FOLLOWED):
        _doubt_if(code.co_filename != CHECKS or not instrument(inner), f"it calls {name}()")
        return function(*arguments, **options)
    if not code.co_filename.startswith(OWN_FOLDER) and not is_generated(code, owner, inner.__globals__):
        is_own_one = is_users(code.co_filename) and instrument(inner)
        doubt(f"it calls {name}()" + ", which was not found beforehand" * is_own_one)
    return function(*arguments, **options)


FIELDS = re.compile(r"\{[^{}:!]*[.\[]")  # of a format that name an attribute or an item


def _method(function: Any, owner: Any, arguments: Any, options: Any) -> Any:
    """Call of a method of a value that is written in C."""
    name, kind = function.__name__, type(owner)
    if name == "__call__" and not is_own_class(kind):
        return call(owner, *arguments, **options)
    if name == "__call__":  # of a base, by super()
        is_known = issubclass(kind, type) and calls_nothing(owner) and not issubclass(owner, str | bytes | bytearray)
        _doubt_if(not is_known, f"it calls a {kind.__name__}")
        return function(*arguments, **options)
    is_known = _is_known_attribute(owner, kind, name)
    if not is_known or (name == "__new__" and not any(owner is one for one in (object, tuple, int, float, list, dict))):
        _note_unknown(function)
    if issubclass(kind, (*GENERATORS, np.ndarray, np.generic, np.dtype, np.ufunc)) and not issubclass(kind, FOLLOWED):
        return _with_plain(function, arguments, options)
    if name == "format" and issubclass(kind, str):
        is_known = all(map(is_shown, (*arguments, *options.values()))) and FIELDS.search(owner) is None
        _doubt_if(not is_known, AS_TEXT)
    if name == "sort":
        return _handed(function, arguments, options)
    found = function(*arguments, **options)
    made(owner)
    return made(found)


# Attributes.


def _by_name(function: Any, value: Any, name: Any, *rest: Any) -> Any:
    """Call of `getattr`, `hasattr`, `setattr` or `delattr`."""
    # What an own module holds was looked at by the names in the code.
    is_known = type(name) is str and not (type(value) is types.ModuleType and is_own(value.__name__))
    _doubt_if(not is_known, f"it names the attribute {name}" if type(name) is str else "it names an attribute")
    if function is getattr and type(name) is str:
        return attribute(value, name, *rest)
    found = function(value if function is hasattr else owner(value, name), name, *rest)
    kind = value.__class__
    if function is hasattr and type(value) is not kind and found != any(name in vars(one) for one in kind.__mro__):
        doubt(f"it asks for the attribute {name}")
    return found


def owner(value: Any, name: Any) -> Any:
    """The value of which an attribute, or an item where there is no name, is set or deleted."""
    kind = type(value)
    is_known = is_own_class(kind) or kind is types.SimpleNamespace
    if name is None:
        is_known |= kind in CHANGEABLE or issubclass(kind, FOLLOWED)
        is_known |= kind is np.ndarray and value.dtype.type in NUMBERS  # else a text is made of what is written
    else:
        is_known |= (kind is types.FunctionType or issubclass(kind, type)) and is_own(value.__module__)
        is_known &= not is_hidden(name) and not name.startswith("__")
    _doubt_if(not is_known, f"it changes a {kind.__name__}" if name is None else f"it names the attribute {name}")
    return value


def attribute(value: Any, name: str, *default: Any) -> Any:
    """An attribute."""
    kind = type(value)
    is_known = _is_known_attribute(value, kind, name)
    if is_known and kind is types.ModuleType and not is_own(value.__name__):  # no program changes a number of a library
        is_known = _is_of_library(real(vars(value).get(name)))
    if not is_known:
        doubt(f"it names {value.__name__}.{name}" if kind is types.ModuleType else f"it names the attribute {name}")
    return real(getattr(value, name, *default))


def _is_of_library(found: Any) -> bool:
    """Tell whether what a library's module holds is a number, or a function or class of a library: none keeps state."""
    kind = type(found)
    if found is None or kind in ATOMS or kind is types.ModuleType:
        return True
    holder = getattr(found, "__self__", None)
    is_free = holder is None or isinstance(holder, (types.ModuleType, type, *GENERATORS))
    is_own_one = is_own_class(found if issubclass(kind, type) else kind)
    is_own_one |= kind is types.FunctionType and is_of_own(found.__globals__)
    return callable(found) and is_free and not is_own_one and kind not in (functools.partial, CACHE)


NAMED = frozenset({"__class__", "__name__", "__call__", "__init__"})


def _is_known_attribute(value: Any, kind: type, name: str) -> bool:
    if is_hidden(name):
        return False
    if kind is types.ModuleType:
        is_listed = is_own(value.__name__) or value.__name__.partition(".")[0] in MODULES
        return is_listed and name in vars(value)  # else by a function of the module's own
    if name == "__class__" and _stands_in(value):
        return False
    if name in NAMED or kind is super:  # which gives methods that are looked at where they are called
        return True
    if kind is types.FunctionType:
        return is_own(value.__module__) and not name.startswith("_")
    is_class = issubclass(kind, type)
    if is_own_class(value if is_class else kind):
        # By the class that has it, or of a class its own class; of an instance itself it is the program's.
        mro = type.__dict__["__mro__"].__get__
        kinds = (*mro(value), *mro(kind)) if is_class else mro(kind)
        base = next((one for one in kinds if name in vars(one)), None)
        return base is None or is_own_class(base) or name in attributes_of(base)
    if is_class:
        return name in attributes_of(value) or (value is itertools.chain and name == "from_iterable")
    return name in attributes_of(kind) and (kind is not np.ndarray or is_plain_type(value.dtype))


# Operators, texts, sets.

_OPERATORS = (
    "Add add Sub sub Mult mul Div truediv Mod mod Pow pow LShift lshift RShift rshift BitOr or_ BitXor xor BitAnd and_ "
    "FloorDiv floordiv MatMult matmul"
)
BINARY: Mapping[str, str] = dict(zip(*[iter(_OPERATORS.split())] * 2, strict=True))


def binary(name: str, first: Any, second: Any, way: str = "") -> Any:
    """Result of an operator."""
    if name == "Mod" and issubclass(type(first), str | bytes | bytearray):
        _doubt_if(not is_shown(second), AS_TEXT)
    found = getattr(operator, f"{way}{BINARY[name]}".removesuffix("_" * bool(way)))(first, second)
    if type(found) is np.ndarray:
        _doubt_if(found.dtype.type not in NUMBERS, "an array of what is no number is made")
    return made(found)


def changed(name: str, first: Any, second: Any) -> Any:
    """Value that a statement such as `a += noise` gives its name."""
    is_array = type(first) is np.ndarray
    # An array of floats cannot keep symbols. One that has no other name may have another array as that.
    if is_array and issubclass(type(second), FOLLOWED) and first.base is None and sys.getrefcount(first) <= REFERENCES:
        found = binary(name, first, second)
        if getattr(found, "dtype", None) == first.dtype and np.shape(found) == first.shape:
            return found
    _doubt_if(is_array and first.dtype.type not in NUMBERS, AS_TEXT)
    return binary(name, first, second, "i")


def _references(array: Any) -> int:
    return sys.getrefcount(array)


def _probed() -> int:
    array = np.zeros(1)
    return _references(array)


REFERENCES = _probed()  # to an array with one name, that is an argument


def made(value: Any) -> Any:
    """A value, where it may be a set: whose order is that of numbers."""
    if issubclass(type(value), set | frozenset):
        _doubt_if(not has_one_order(value), AS_SET)
    return value


def shown(value: Any) -> Any:
    """A value that goes into a text."""
    _doubt_if(not is_shown(value), AS_TEXT)
    return value


SINGLE = (  # of which no two are equal, and each is one object
    bool, type(None), type(...), type(NotImplemented), type, enum.Enum, types.FunctionType, types.ModuleType, TracedRng,
    list, dict, set, np.ndarray,
)  # fmt: skip


def same(is_same: bool, first: Any, second: Any) -> bool:
    """Answer of a comparison by identity: what stands for a number is never the object that the number would be."""
    if not any(
        issubclass(type(one), SINGLE) or is_own_class(type(one)) or type(one) is object for one in (first, second)
    ):
        doubt(said := "it is asked whether two values are one object")
        for symbol in (one for one in (first, second) if issubclass(type(one), Symbol)):
            symbol._run.lose(said)
    return (first is second) == is_same


# Statements.


def caught(error: BaseException | None = None) -> None:
    """Note an exception that is caught, where it is of the process or has an address in its text."""
    error = error or sys.exc_info()[1]
    if isinstance(error, RAISED):
        doubt(f"a {type(error).__name__} depends on the process")
    elif error is not None:
        texts = [one for one in error.args if type(one) is str]
        _doubt_if(any(map(is_of_process, texts)), AS_TEXT)
        _lose_if(any(map(names_ours, texts)))


class _Managed:
    """A context manager that says which exceptions it gets."""

    def __init__(self, manager: Any) -> None:
        self.manager = manager

    def __enter__(self) -> Any:
        return type(self.manager).__enter__(self.manager)

    def __exit__(self, kind: Any, error: Any, place: Any) -> Any:
        caught(error)
        return type(self.manager).__exit__(self.manager, kind, error, place)


def managing(manager: Any) -> Any:
    """A context manager."""
    kind = type(manager)
    is_known = is_own_class(kind) or kind in (np.errstate, contextlib.suppress)
    _doubt_if(not is_known, f"it enters a {kind.__name__}")
    return _Managed(manager) if hasattr(kind, "__enter__") and hasattr(kind, "__exit__") else manager


def spread(value: Any, by: str) -> Any:
    """Arguments behind a star; where they are none, the error names what is called."""
    _lose_if(not any(hasattr(type(value), name) for name in (by, "__getitem__")))
    return value


def decorating(decorator: Any) -> Any:
    """A decorator, whose call is looked at."""
    return functools.partial(call, decorator)


def builtin(name: str, value: Any, found: Any = None) -> Any:
    """Value of a class of Python's, unless something else has its name."""
    _doubt_if(value is not getattr(builtins, name), f"it names {name}")
    return found


def imported(module: str, *names: str) -> None:
    """Note an import in a call: of a module that is not loaded, or of what is neither a function nor a number."""
    parts = [real(getattr(sys.modules.get(module), name, sys)) for name in names]
    known = set().union(*known_functions(len(sys.modules)))
    is_known = module in sys.modules and module.partition(".")[0] in MODULES
    is_known &= all(type(one) is not types.ModuleType and (_is_of_library(one) or id(one) in known) for one in parts)
    _doubt_if(not is_known, f"it imports {module}")


def unknown(what: str, value: Any = None) -> Any:
    """Note a statement or an expression that is not followed."""
    doubt(f"it has {what}, which is not followed")
    return value


OPERATIONS: Mapping[str, Any] = {f"{PREFIX}slice": slice} | {
    f"{PREFIX}{one.__name__}": one
    for one in (
        call, attribute, owner, binary, changed, made, shown, same, caught, managing, spread, decorating, builtin,
        imported, unknown, real,
    )
}  # fmt: skip
