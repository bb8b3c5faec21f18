"""Finds the functions of a Python file, and the statements that bind what they use."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from irdiff.coverage.file_kernels import FileKernels
from irdiff.coverage.syntax import (
    Def,
    all_arguments,
    arguments,
    first_line,
    free_names,
    is_block,
    nodes,
    outermost_lambdas,
    stored,
    walk,
    without,
)

Place = tuple[int, str]
"""The first line of a function, that of its first decorator, and the name in its `def`: `<lambda>` for a
lambda.
"""
_RUN_BY_THE_FRONTEND = re.compile(r"\b(constexpr_function|builtin|extern)\b")
"""Decorates functions that run where nobody notes it, so they count as statements."""
_BUILTINS = frozenset(dir(builtins))
_ANY_NAME = "*"
"""Stands for all names: `from m import *` binds them, and so may a call of one of the functions below."""
_BINDS_ANY_NAME = frozenset({"exec", "globals", "locals", "vars"})


@dataclass(frozen=True, kw_only=True)
class DefinedFunction:
    name: str
    own_name: str
    """In its `def`."""
    places: tuple[Place, ...]
    """Where it is if it runs; empty if other code has the same place."""
    text: str
    statements: Mapping[str, Sequence[str]]
    """By the name that it uses, directly or through another: the texts of the statements that bind it."""
    is_jitted: bool
    may_be_kernel: bool


def functions_of(content: bytes) -> list[DefinedFunction]:
    """Raises SyntaxError if this Python cannot parse the file."""
    try:
        return _File(ast.parse(content)).functions  # it heeds a byte-order mark and `# coding:`
    except (ValueError, RecursionError) as error:  # a null byte, or a sum of thousands of terms
        raise SyntaxError(str(error)) from error


def holds_kernels(content: bytes) -> bool:
    try:
        return any(function.is_jitted for function in functions_of(content))
    except SyntaxError:
        return False


@dataclass(frozen=True, kw_only=True)
class _Scope:
    prefix: str = ""
    """`Class.`"""
    heads: tuple[str, ...] = ()
    """The texts of the conditions, classes and functions around."""
    uses: frozenset[str] = frozenset()
    """The names in these."""
    classes: frozenset[str] = frozenset()
    functions: tuple[int, ...] = ()
    """The functions around, by number."""


@dataclass(frozen=True, kw_only=True)
class _Statement:
    text: str
    uses: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class _Definition:
    """A function before all statements are known."""

    name: str
    node: Def | ast.Lambda
    scope: _Scope


@dataclass
class _File:
    """Functions inside of functions belong to these, unless they are kernels."""

    tree: ast.Module
    _definitions: list[_Definition] = field(default_factory=list)
    _statements: dict[tuple[int, ...], dict[str, list[_Statement]]] = field(default_factory=dict)
    _bound: set[str] = field(default_factory=set)
    """Names that the file surely binds."""
    _function_count: int = 0

    def __post_init__(self) -> None:
        self._kernels = FileKernels(self.tree)
        self._lambdas_by_line = Counter(node.lineno for node in outermost_lambdas([self.tree]))
        self._drop_words()
        self._block(self.tree.body, _Scope())
        self.functions = [self._function(definition) for definition in self._definitions]

    def _drop_words(self) -> None:
        """Docstrings, and the annotations of functions that are no kernels."""
        for node in ast.walk(self.tree):
            if isinstance(node, Def | ast.ClassDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            if isinstance(node, Def) and not self._kernels.may_be(node):
                node.returns = None
                for argument in all_arguments(node.args):
                    argument.annotation = None

    def _block(self, nodes: Iterable[ast.AST], scope: _Scope) -> None:
        for node in nodes:
            if isinstance(node, Def) and not self._runs_in_the_frontend(node):
                self._define(node, scope)
            elif isinstance(node, ast.ClassDef):
                parts = [*node.bases, *node.keywords, *node.decorator_list]
                uses = self._bind(node, parts, [node.name], scope)
                inner = replace(scope, prefix=f"{scope.prefix}{node.name}.")
                inner = replace(inner, heads=(*scope.heads, self._text(node, parts)), uses=scope.uses | uses)
                inner = replace(inner, classes=scope.classes | {node.name})
                self._block(node.body, inner)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self._import(node, scope)
            else:
                self._statement(node, scope)

    def _runs_in_the_frontend(self, node: Def) -> bool:
        decorators = map(ast.unparse, node.decorator_list)
        is_called = node.name in self._kernels.called_by_the_frontend
        return is_called or any(map(_RUN_BY_THE_FRONTEND.search, decorators))

    def _define(self, node: Def, scope: _Scope) -> None:
        name = scope.prefix + node.name
        self._bound.update([] if scope.heads or scope.functions else [node.name])
        if not scope.functions or self._kernels.may_be(node):
            self._definitions.append(_Definition(name=name, node=node, scope=scope))
        else:  # a kernel beside it may use it
            self._bind(node, [node], [node.name], scope)
        if not self._kernels_inside(node):
            return
        self._function_count += 1
        inner = replace(scope, prefix=f"{name}.", functions=(*scope.functions, self._function_count))
        self._bind(node, [node.args], arguments(node.args), inner)
        self._block(node.body, inner)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: _Scope) -> None:
        """One statement for each name, so that another one beside it does not count."""
        for alias in node.names:
            bound = alias.asname or alias.name.partition(".")[0]
            path = alias.name if alias.asname else bound
            if isinstance(node, ast.ImportFrom):
                path = f"{'.' * node.level}{node.module or ''} {alias.name}"
            text = " ".join([*scope.heads, "import", path])
            self._keep(bound, _Statement(text=text, uses=scope.uses), scope)

    def _statement(self, node: ast.AST, scope: _Scope) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return  # a docstring
        fields = dict(ast.iter_fields(node))
        blocks = {name: value for name, value in fields.items() if is_block(value)}
        parts = [part for name, value in fields.items() if name not in blocks for part in nodes(value)]
        if isinstance(node, Def):
            blocks, parts = {}, [node]
        has_lambdas = not scope.functions and not isinstance(node, Def)
        uses = self._bind(node, parts, self._touched(node, parts), scope, has_lambdas)
        for name, block in blocks.items():
            head = f"{self._text(node, parts, has_lambdas)} {name}"
            self._block(block, replace(scope, heads=(*scope.heads, head), uses=scope.uses | uses))
        if has_lambdas:
            owner = next(stored(parts), "<lambda>")
            for part in outermost_lambdas(parts):
                self._definitions.append(_Definition(name=scope.prefix + owner, node=part, scope=scope))

    def _bind(
        self,
        node: ast.AST,
        parts: Sequence[ast.AST],
        names: Iterable[str],
        scope: _Scope,
        has_lambdas: bool = False,
    ) -> frozenset[str]:
        """Returns the names that the parts use."""
        uses = frozenset().union(*map(free_names, parts))
        text = " ".join([*scope.heads, self._text(node, parts, has_lambdas)])
        for name in dict.fromkeys(names):
            self._keep(name, _Statement(text=text, uses=uses | scope.uses), scope)
        return uses

    def _keep(self, name: str, statement: _Statement, scope: _Scope) -> None:
        self._bound.update([] if scope.heads or scope.functions else [name])
        owners = {name, f".{name}", *scope.classes} if scope.classes and not scope.functions else {name}
        for owner in owners:
            kept = self._statements.setdefault(scope.functions, {}).setdefault(owner, [])
            if statement not in kept[-1:]:
                kept.append(statement)

    def _text(self, node: ast.AST, parts: Sequence[ast.AST], has_lambdas: bool = False) -> str:
        lambdas = list(outermost_lambdas(parts)) if has_lambdas else []
        return " ".join([type(node).__name__, *(ast.dump(without(part, lambdas)) for part in parts)])

    def _touched(self, node: ast.AST, parts: Sequence[ast.AST]) -> list[str]:
        if isinstance(node, Def):
            return [node.name]
        names = {*stored(parts)}
        names |= {part.name for part in [node] if isinstance(part, ast.ExceptHandler) and part.name}
        changed = [node.value] if isinstance(node, ast.Expr) else []
        for part in walk(parts):
            if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
                changed.append(part)
                names |= {f".{part.attr}"} if isinstance(part, ast.Attribute) else set()
        calls = (part.func for part in walk(parts) if isinstance(part, ast.Call))
        if any(isinstance(function, ast.Name) and function.id in _BINDS_ANY_NAME for function in calls):
            names.add(_ANY_NAME)
        used = {part.id for part in walk(changed) if isinstance(part, ast.Name)}
        return sorted(names | (used - self._kernels.imported - _BUILTINS))

    def _function(self, definition: _Definition) -> DefinedFunction:
        node, scope = definition.node, definition.scope
        name = node.name if isinstance(node, Def) else "<lambda>"
        own = without(node, self._kernels_inside(node))
        uses = {*free_names(own), *scope.uses}
        is_jitted = isinstance(node, Def) and self._kernels.is_jitted(node)
        return DefinedFunction(
            name=definition.name,
            own_name=name,
            places=() if self._shares_its_place(node) else ((first_line(node), name),),
            text=" ".join([*scope.heads, ast.dump(own)]),
            statements=self._reached(uses, name, scope),
            is_jitted=is_jitted,
            may_be_kernel=is_jitted or self._kernels.may_be(node),
        )

    def _shares_its_place(self, node: Def | ast.Lambda) -> bool:
        return isinstance(node, ast.Lambda) and self._lambdas_by_line[node.lineno] > 1

    def _kernels_inside(self, function: Def | ast.Lambda) -> list[Def]:
        nodes = ast.walk(function) if isinstance(function, Def) else ()
        return [
            node
            for node in nodes
            if isinstance(node, Def) and node is not function and self._kernels.may_be(node)
        ]

    def _reached(self, uses: Iterable[str], own: str, scope: _Scope) -> dict[str, list[str]]:
        visible = [self._statements.get(scope.functions[:n], {}) for n in range(len(scope.functions) + 1)]
        reached: dict[str, list[str]] = {}
        todo = [*uses, own, f".{own}"]
        while todo:
            name = todo.pop()
            if name not in reached:
                is_bound = name in self._bound or any(name in scoped for scoped in visible[1:])
                is_name = name.isidentifier() and name != own and name not in _BUILTINS
                binders = (name, _ANY_NAME) if is_name and not is_bound else (name,)
                statements = [
                    statement for scoped in visible for each in binders for statement in scoped.get(each, ())
                ]
                reached[name] = [statement.text for statement in statements]
                todo += [used for statement in statements for used in statement.uses]
        return {name: texts for name, texts in reached.items() if texts}
