"""Targets: how the command line names a subject, or a function that returns pairs, in Python code.

    package.module:attribute     a module that can be imported; the current folder comes first
    path/file.py:attribute       a file; its folder comes first, then the current folder
    exec:COMMAND                 a program in any language (docs/exec-protocol.md)

(Of several targets in one process, the folders of the first come first.)

The attribute may be dotted. Importing runs the code, as `python` would.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from dpaudit.arguments import did_you_mean
from dpaudit.errors import UsageError
from dpaudit.privacy.pairs import AllPairs, Pair, as_pairs
from dpaudit.privacy.parsing import at, parse_pairs
from dpaudit.subjects.callables import Subject, as_subject
from dpaudit.subjects.fresh import fresh_subject
from dpaudit.subjects.programs import PREFIX, exec_subject
from dpaudit.subjects.tracebacks import is_users

FORMS = "package.module:attribute or path/file.py:attribute"  # of Python code; a target may be exec:COMMAND too
NAMES_SHOWN = 8  # of a module, where none is close to the one that was asked for
_ADDED: set[str] = set()  # folders that targets put on the import path
_DOTTED = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


def resolve_target(text: str) -> Subject:
    """The subject that a target names, with the text as its `target`.

    `UsageError` if the text has none of the forms, there is no such module, file or attribute, its import raises, the
    attribute is no mechanism, or the program cannot be started. `ProgramError` if it does not speak the protocol.

    Examples
    --------
    >>> resolve_target("statistics:fmean").interface
    'f(data)'
    """
    if text.startswith(PREFIX):
        return dataclasses.replace(exec_subject(text.removeprefix(PREFIX)), target=text)
    value = load_target(text)
    if isinstance(value, type):
        name = value.__name__
        raise UsageError(
            f"target must be an instance or a function, got the class {name} at {text!r}. "
            f"Instantiate it in the module, for example `mechanism = {name}(...)`, and name that."
        )
    with at(repr(text)):
        return dataclasses.replace(as_subject(value, target=text), target=text)


def fresh_target(text: str) -> Subject:
    """A subject with a fresh object a call, from the factory that a target names: a class or a function.

    `UsageError` as of `load_target` and `fresh_subject`.
    """
    return fresh_subject(load_target(text), target=text)


def load_target(text: str) -> Any:
    """The object that a target names, whatever it is: an instance, a function, a class.

    `UsageError` if the text has neither form, there is no such module, file or attribute, or its import raises.
    """
    if text.startswith(PREFIX):
        raise UsageError(f"target must be {FORMS}, got {text!r}: the checks of a mechanism need Python code.")
    return _load("target", text)


def resolve_pairs(text: str) -> Sequence[Pair]:
    """The pairs that a text names: those that a function of Python code returns, or what `parse_pairs` reads.

    `UsageError` if the function cannot be found or raises, what it returns is no list of pairs, or the text cannot be
    read.

    Examples
    --------
    >>> [pair.id for pair in resolve_pairs("0,1; 1,2")]
    ['0|1', '1|2']
    """
    if not is_python_pairs(text):
        return parse_pairs(text)
    value = _load("pairs", text)
    try:
        # The list is made here, so that what a generator raises is caught as well.
        given = value() if callable(value) else value
        entries = given if isinstance(given, AllPairs) else list(given)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(
            f"pairs must be a function without arguments that returns pairs, got {what_raised(error)} ({text!r})."
        ) from error
    with at(repr(text)):
        return entries if isinstance(entries, AllPairs) else as_pairs(entries)


def names_pairs(text: str) -> bool:
    """Tell whether a text for pairs names where they are, Python code or a file, and does not list them."""
    return is_python_pairs(text) or text.strip().endswith(".json")


def is_python_pairs(text: str) -> bool:
    """Tell whether a text for pairs names Python code; no JSON value ends in a colon and a name outside of quotes."""
    location, colon, attribute = text.strip().rpartition(":")
    is_location = location.endswith(".py") or _DOTTED.fullmatch(location) is not None
    return bool(colon) and is_location and _DOTTED.fullmatch(attribute) is not None


def _load(argument: str, text: str) -> Any:
    """The object that `location:attribute` names."""
    location, colon, attribute = text.strip().rpartition(":")
    if not colon or not location or not attribute:
        raise UsageError(f"{argument} must be {FORMS}, got {text!r}. Put a ':' between the module and the attribute.")
    if not _DOTTED.fullmatch(attribute):
        raise UsageError(f"{argument} must be {FORMS}, got {text!r}: {attribute!r} is no name of an attribute.")
    is_file = location.endswith(".py") or "/" in location or os.sep in location
    if is_file:
        if not location.endswith(".py"):
            raise UsageError(f"{argument} must name a file that ends in .py, got {location!r} at {text!r}.")
        path = Path(location)
        if not path.is_file():
            raise UsageError(f"{argument} must name an existing file, got {location!r} at {text!r}.")
        path = path.resolve()
        _make_importable([str(path.parent), os.getcwd()])
    else:
        if not _DOTTED.fullmatch(location):
            raise UsageError(f"{argument} must be {FORMS}, got {text!r}: {location!r} is no name of a module.")
        _make_importable([os.getcwd()])
    try:
        value: Any = _import_file(path) if is_file else importlib.import_module(location)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        missing = error.name if isinstance(error, ModuleNotFoundError) else None
        if not is_file and missing and f"{location}.".startswith(f"{missing}."):
            raise UsageError(
                f"{argument} must name a module that can be imported, got {location!r} at {text!r} ({error}). "
                f"Run dpaudit from the folder that holds it, or name its file."
            ) from error
        raise UsageError(
            f"{argument} must name a module that imports without an error, got {what_raised(error)} ({text!r})."
        ) from error
    for part in attribute.split("."):
        value = _attribute(argument, value, part, text)
    return value


def _make_importable(folders: list[str]) -> None:
    """Put the folders in front of the import path, in this order, but behind those that an earlier target put there.

    What an earlier target imported is then still found first: worker processes import it again, by its name.
    """
    front = next((i for i, folder in enumerate(sys.path) if folder not in _ADDED), len(sys.path))
    new = [folder for folder in dict.fromkeys(folders) if folder not in sys.path]
    sys.path[front:front] = new
    _ADDED.update(new)
    importlib.invalidate_caches()


def _import_file(path: Path) -> ModuleType:
    """The module of a file: under its own name, as its neighbours would import it, unless another one has the name."""
    name = path.stem
    known = sys.modules.get(name)
    if known is not None and (file := getattr(known, "__file__", None)) and Path(file).resolve() == path:
        return known
    if known is None and name.isidentifier():
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None and Path(spec.origin).resolve() == path:
            module = importlib.import_module(name)
            _send_by_value(module)
            return module
    name = f"{name}_{hashlib.sha256(str(path).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # the path ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    _send_by_value(module)
    return module


def _send_by_value(module: ModuleType) -> None:
    """Let workers get the module's functions whole: they may not be able to import a module of this name.

    (Another file has it, or the workers were started before its folder was put on the import path.)
    """
    for name in ("joblib.externals.cloudpickle", "cloudpickle"):  # joblib up to 1.5 brings its own
        with contextlib.suppress(ImportError):
            importlib.import_module(name).register_pickle_by_value(module)


def _attribute(argument: str, value: Any, name: str, text: str) -> Any:
    """`value.name`, or an error that names attributes that are close to it."""
    try:
        return getattr(value, name)
    except AttributeError as error:
        where = getattr(value, "__name__", type(value).__name__)
        names = [known for known in dir(value) if not known.startswith("_")]
        names = [known for known in names if _may_be_meant(getattr(value, known, None), argument, where)]
        hint = did_you_mean(name, names)
        if not hint:
            kind = "pairs" if argument == "pairs" else "a mechanism"
            hint = f" It has {', '.join(names[:NAMES_SHOWN]) or f'nothing that could be {kind}'}."
        raise UsageError(f"{argument} must name an attribute of {where}, got {name!r} at {text!r}.{hint}") from error
    except Exception as error:
        raise UsageError(f"{argument} must be readable, got {what_raised(error)} ({text!r}).") from error


def _may_be_meant(value: Any, argument: str, module: str) -> bool:
    """Tell whether an attribute can be what was meant: neither a number, nor what a module imports for its own use."""
    if isinstance(value, type):
        return value.__module__ == module
    home = str(getattr(value, "__module__", "")).partition(".")[0]
    if isinstance(value, ModuleType) or home in sys.stdlib_module_names:
        return False
    return callable(value) or hasattr(value, "sample") or (argument == "pairs" and isinstance(value, Iterable))


def what_raised(error: BaseException) -> str:
    """An exception on one line: its type, its text, and the line of the user's code that it came from, if any."""
    described = " ".join(f"{type(error).__qualname__}: {error}".split()).removesuffix(":").removesuffix(".")
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{type(error).__name__}: {error.msg} at line {error.lineno} of {error.filename}"
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if is_users(frame.filename)]
    return f"{described} at line {places[-1].lineno} of {places[-1].filename}" if places else described
