"""Instrumented code: a program's own functions, in which each operation that may reach beyond values asks first.

A file is parsed and compiled twice, as it is and with calls of `operations` in the place of calls, attributes,
operators, texts and comparisons by identity. Codes of both follow each other in one order, so that each has its
counterpart. A function gets that of a code equal to its own; one whose source is missing, or is another by now, stays
as it is, and nothing is proved of it. Control flow, names and lines are Python's own. Nodes of the tree that are not
listed here are marked by `unknown`, so that what a later Python adds proves nothing.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

PREFIX = "dpaudit "  # no name of a program has a space
KNOWN: dict[int, CodeType] = {}  # instrumented codes, by their number
ORIGINALS: dict[int, CodeType] = {}  # the code of the file for each of them
TEMPORARY = f"{PREFIX}first", f"{PREFIX}second"
# What is followed without a word: its parts are looked at, and it gives none but values that were given to it.
_PLAIN = (
    "Module FunctionDef Return Delete Assign AnnAssign For While If With Raise Try Assert Global Nonlocal Expr Pass "
    "Break Continue BoolOp NamedExpr Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp Yield YieldFrom "
    "Compare Call FormattedValue JoinedStr Constant Attribute Subscript Starred Name List Tuple Slice "
    "comprehension ExceptHandler arguments arg keyword withitem Match match_case MatchValue MatchSingleton "
    "MatchSequence MatchMapping MatchClass MatchStar MatchAs MatchOr BinOp UnaryOp AugAssign ClassDef Import ImportFrom"
)
OF_RUNS = 0x1FFFF  # flags of a code, but for those of features of later Pythons, which only the compiler reads
PLAIN = frozenset(_PLAIN.split())
SCOPES = (
    ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip
OF_FRAMES = frozenset({"locals", "globals", "vars", "dir", "eval", "exec"})  # which ask for the frame of the call
MATCHED = frozenset({"int", "float", "str", "bool", "tuple", "list", "dict"})  # classes of patterns


class _Instrumenting(ast.NodeTransformer):
    """Puts operations in the place of what a program's own code does."""

    def __init__(self) -> None:
        self.classes: list[str] = []  # around a name, that is mangled there
        self.is_in_function = False
        self.visited: set[ast.AST] = set()

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.expr_context | ast.operator | ast.unaryop | ast.boolop | ast.cmpop):
            return node
        self.visited.add(node)
        if type(node).__name__ in PLAIN:
            return super().visit(node)
        if isinstance(node, ast.stmt):
            return [_called("unknown", node, ast.Constant(type(node).__name__)), node]
        return (
            _operation("unknown", node, ast.Constant(type(node).__name__), node) if isinstance(node, ast.expr) else node
        )

    def generic_visit(self, node: ast.AST) -> ast.AST:
        before = self.is_in_function
        if isinstance(node, ast.Lambda):
            self.is_in_function = True
        found = super().generic_visit(node)
        self.is_in_function = before
        return found

    # Statements.

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        ends = [one for one in _of_scope(node) if isinstance(one, ast.With | ast.Try)]
        is_late = any(isinstance(part, ast.Yield | ast.YieldFrom) for one in ends for part in _of_scope(one))
        decorators = [(one, self.visit(one)) for one in node.decorator_list]
        node.decorator_list = [
            _operation("decorating", old, one) if self.is_in_function else one for old, one in decorators
        ]
        before, self.is_in_function = self.is_in_function, True
        node.args = self.visit(node.args)
        said = [_called("unknown", node, ast.Constant("a generator with a statement that may end later"))] * is_late
        first = 0 if ast.get_docstring(node) is None else 1
        node.body = [*node.body[:first], *said, *self._all(node.body[first:])]
        self.is_in_function = before
        return node  # annotations stay as they are

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        said = [_called("unknown", node, ast.Constant("a class that is made"))] if self.is_in_function else []
        before, self.is_in_function = self.is_in_function, False
        for name in ("decorator_list", "bases", "keywords"):
            setattr(node, name, [self.visit(one) for one in getattr(node, name)])
        self.classes.append(node.name)
        node.body = self._all(node.body)
        self.classes.pop()
        self.is_in_function = before
        return [*said, node]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = node.value and self.visit(node.value)
        return node

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> Any:
        if not self.is_in_function:
            return node
        is_relative = isinstance(node, ast.ImportFrom) and (node.level or not node.module)
        modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names]
        if is_relative or any(one.name == "*" for one in node.names):
            return [_called("unknown", node, ast.Constant("a relative import")), node]
        names = [ast.Constant(one.name) for one in node.names] if isinstance(node, ast.ImportFrom) else []
        bound = [one.asname or one.name for one in node.names] if isinstance(node, ast.ImportFrom) else []
        seen = [
            ast.Assign([ast.Name(one, ast.Store())], _operation("real", node, _at(node, ast.Name(one, ast.Load()))))
            for one in bound
        ]
        said = (_called("imported", node, ast.Constant(one), *names) for one in modules)
        return [*said, node, *(_at(node, one) for one in seen)]

    visit_ImportFrom = visit_Import

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target, value = node.target, self.visit(node.value)
        operator = ast.Constant(type(node.op).__name__)
        if isinstance(target, ast.Name):
            found = _operation("changed", node, operator, _at(node, ast.Name(target.id, ast.Load())), value)
            return _at(node, ast.Assign([target], found))
        names = [_at(node, ast.Name(name, ast.Load())) for name in TEMPORARY]
        first = _at(node, ast.Assign([_at(node, ast.Name(TEMPORARY[0], ast.Store()))], self._owner(target)))
        if isinstance(target, ast.Attribute):
            name = self._mangled(target.attr)
            before = _operation("attribute", target, names[0], ast.Constant(name))
            place: ast.expr = _at(target, ast.Attribute(names[0], target.attr, ast.Store()))
            return [first, _at(node, ast.Assign([place], _operation("changed", node, operator, before, value)))]
        index = _at(node, ast.Assign([_at(node, ast.Name(TEMPORARY[1], ast.Store()))], self._index(target.slice)))
        before = _at(target, ast.Subscript(names[0], names[1], ast.Load()))
        place = _at(target, ast.Subscript(names[0], names[1], ast.Store()))
        return [first, index, _at(node, ast.Assign([place], _operation("changed", node, operator, before, value)))]

    def visit_Try(self, node: ast.Try) -> Any:
        self.generic_visit(node)
        for handler in node.handlers:
            handler.body.insert(0, _called("caught", handler))
        if node.finalbody:
            node.finalbody.insert(0, _called("caught", node))
        return node

    def visit_withitem(self, node: ast.withitem) -> Any:
        self.generic_visit(node)
        node.context_expr = _operation("managing", node.context_expr, node.context_expr)
        return node

    def visit_Match(self, node: ast.Match) -> Any:
        parts = [part for case in node.cases for part in ast.walk(case.pattern)]
        classes = [part for part in parts if isinstance(part, ast.MatchClass)]
        is_known = all(isinstance(one.cls, ast.Name) and one.cls.id in MATCHED and not one.kwd_attrs for one in classes)
        keys = [key for part in parts if isinstance(part, ast.MatchMapping) for key in part.keys]
        is_known &= not any(isinstance(key, ast.Attribute) for key in keys)
        said = [] if is_known else [_called("unknown", node, ast.Constant("a pattern with a class or a name"))]
        values = [part.value for part in parts if isinstance(part, ast.MatchValue)]
        said += [_at(node, ast.Expr(self.visit(_copied(one)))) for one in values if isinstance(one, ast.Attribute)]
        said += [_called("builtin", node, ast.Constant(one.cls.id), _at(node, ast.Name(one.cls.id, ast.Load())))
                 for one in classes if isinstance(one.cls, ast.Name)]  # fmt: skip
        node.subject = self.visit(node.subject)
        for case in node.cases:
            case.guard = case.guard and self.visit(case.guard)
            case.body = self._all(case.body)
        return [*said, node]

    # Expressions.

    def visit_Call(self, node: ast.Call) -> Any:
        is_super = isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args and not node.keywords
        if is_super:  # which asks for the frame
            name = _at(node, ast.Name("super", ast.Load()))
            return _operation("builtin", node, ast.Constant("super"), name, node)
        is_of_frame = isinstance(node.func, ast.Name) and node.func.id in OF_FRAMES
        self.generic_visit(node)
        if is_of_frame:
            return _operation("unknown", node, ast.Constant("a call that asks for its frame"), node)
        for one in node.args:
            if isinstance(one, ast.Starred):
                one.value = _operation("spread", one, one.value, ast.Constant("__iter__"))
        for named in node.keywords:
            if named.arg is None:
                named.value = _operation("spread", named.value, named.value, ast.Constant("keys"))
        return _at(
            node,
            ast.Call(_at(node.func, ast.Name(f"{PREFIX}call", ast.Load())), [node.func, *node.args], node.keywords),
        )

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if isinstance(node.ctx, ast.Load):
            return _operation("attribute", node, self.visit(node.value), ast.Constant(self._mangled(node.attr)))
        node.value = self._owner(node)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.ctx, ast.Load):
            self.generic_visit(node)
            return node
        node.value, node.slice = self._owner(node), self.visit(node.slice)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        if (
            isinstance(node.left, ast.Constant)
            and isinstance(node.right, ast.Constant)
            and not isinstance(node.op, ast.Mod)
        ):
            return node
        self.generic_visit(node)
        return _operation("binary", node, ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_Compare(self, node: ast.Compare) -> Any:
        operands = [node.left, *node.comparators]
        is_constant = [isinstance(one, ast.Constant) and one.value in (None, ...) for one in operands]
        tests = [
            isinstance(one, ast.Is | ast.IsNot) and not any(is_constant[k : k + 2]) for k, one in enumerate(node.ops)
        ]
        sets = [isinstance(one, ast.In | ast.NotIn) for one in node.ops]
        for k, one in enumerate(node.comparators):
            is_asked = (
                sets[k] and isinstance(one, ast.Set) and not any(isinstance(part, ast.Starred) for part in one.elts)
            )
            visited: Any = self.generic_visit(one) if is_asked else self.visit(one)  # asked for a member alone
            node.comparators[k] = visited
        node.left = self.visit(node.left)
        if not any(tests):
            return node
        if len(tests) > 1:
            return _operation("unknown", node, ast.Constant("a chain of comparisons by identity"), node)
        said = ast.Constant(isinstance(node.ops[0], ast.Is))
        return _operation("same", node, said, node.left, node.comparators[0])

    def visit_Set(self, node: ast.Set | ast.SetComp) -> Any:
        self.generic_visit(node)
        return _operation("made", node, node)

    visit_SetComp = visit_Set

    def visit_FormattedValue(self, node: ast.FormattedValue) -> Any:
        self.generic_visit(node)
        node.value = _operation("shown", node.value, node.value)
        return node

    # Parts.

    def _all(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for one in body:
            new = self.visit(one)
            found += new if isinstance(new, list) else [new]
        return found

    def _owner(self, node: Any) -> Any:
        name = self._mangled(node.attr) if isinstance(node, ast.Attribute) else None
        return _operation("owner", node, self.visit(node.value), ast.Constant(name))

    def _index(self, node: ast.expr) -> Any:
        """An index as a value: slices are made by a call."""
        if isinstance(node, ast.Slice):
            parts = [
                self.visit(one) if one is not None else ast.Constant(None)
                for one in (node.lower, node.upper, node.step)
            ]
            return _operation("slice", node, *parts)
        if isinstance(node, ast.Tuple):
            return _at(node, ast.Tuple([self._index(one) for one in node.elts], ast.Load()))
        return self.visit(node)

    def _mangled(self, name: str) -> str:
        owner = self.classes[-1].lstrip("_") if self.classes else ""
        return f"_{owner}{name}" if owner and name.startswith("__") and not name.endswith("__") else name


def _of_scope(node: ast.AST) -> Iterator[ast.AST]:
    for one in ast.iter_child_nodes(node):
        yield one
        yield from () if isinstance(one, SCOPES) else _of_scope(one)


def _at(place: Any, node: Any) -> Any:
    """The node, at the place of another, with the parts of it that have no place."""
    return ast.fix_missing_locations(ast.copy_location(node, place))


def _operation(name: str, place: Any, *arguments: Any) -> Any:
    function = _at(place, ast.Name(f"{PREFIX}{name}", ast.Load()))
    return _at(place, ast.Call(function, list(arguments), []))


def _called(name: str, place: Any, *arguments: Any) -> Any:
    return _at(place, ast.Expr(_operation(name, place, *arguments)))


def _copied(node: ast.expr) -> Any:
    return ast.copy_location(ast.parse(ast.unparse(node), mode="eval").body, node)


@functools.lru_cache(maxsize=64)
def _of_source(file: str, source: str) -> dict[Any, CodeType]:
    """The instrumented codes of a source, by what tells their originals apart."""
    try:
        tree = ast.parse(source, file)
        before = list(nested(compile(source, file, "exec", dont_inherit=True)))
        transformer = _Instrumenting()
        after = list(nested(compile(transformer.visit(tree), file, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError, RecursionError):
        return {}
    # Validity: no function is left out, as one in an annotation; and each has its own.
    is_whole = all(one in transformer.visited for one in ast.walk(tree) if isinstance(one, SCOPES))
    if not is_whole or [_name(one) for one in before] != [_name(one) for one in after]:
        return {}
    for code, old in zip(after, before, strict=True):
        KNOWN[id(code)], ORIGINALS[id(code)] = code, old
    return {_key(old): code for code, old in zip(after, before, strict=True)}


def _name(code: CodeType) -> tuple[Any, ...]:
    return code.co_qualname, code.co_firstlineno, code.co_freevars


def _key(code: CodeType) -> tuple[Any, ...]:
    """All that tells a code from others, wherever it was compiled."""
    constants = [_key(one) if isinstance(one, CodeType) else _shown(one) for one in code.co_consts]
    flags = code.co_flags & OF_RUNS
    counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return *_name(code), code.co_code, code.co_linetable, code.co_exceptiontable, counts, names, tuple(constants)


def _shown(constant: Any) -> tuple[Any, ...]:
    if isinstance(constant, tuple | frozenset):
        parts = map(_shown, constant)
        return type(constant), *(parts if isinstance(constant, tuple) else sorted(parts, key=repr))
    return type(constant), repr(constant)


def instrumented(function: FunctionType) -> CodeType | None:
    """The instrumented code of a function; None where its source is not at hand."""
    code = function.__code__
    if id(code) in KNOWN:
        return code
    source = "".join(linecache.getlines(code.co_filename, function.__globals__))
    return _of_source(code.co_filename, source).get(_key(code)) if source else None


def original(code: CodeType) -> CodeType:
    """The code as it is in its file."""
    return ORIGINALS.get(id(code), code)


def nested(code: CodeType) -> Iterator[CodeType]:
    """A code, and those that are made in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from nested(constant)
