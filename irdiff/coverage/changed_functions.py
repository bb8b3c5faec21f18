"""Finds the functions of a Python file that an edit changes, wherever they stand.

A function is told from others by its qualified name and by its order among functions of that name. Its text
is its syntax tree without positions and docstrings, below the heads of the classes and conditions around it.
Nobody can say which launches a statement outside of functions matters to. So a function whose text is the
same counts as changed if a statement of its file differs that binds, or touches, a name that it uses.
"""

from __future__ import annotations

import ast
import builtins
import copy
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher

from irdiff.model import Sides
from irdiff.words import first_few

Place = tuple[int, str]
"""The first line of a function, that of its first decorator, and the name in its `def`: `<lambda>` for a
lambda.
"""
_Def = ast.FunctionDef | ast.AsyncFunctionDef
_NAMES_SHOWN = 2
_JIT = re.compile("jit", re.IGNORECASE)
_LANGUAGE = re.compile(r"triton.*\.language\b|(^|\.)(tl|gl|ttgl)(\.|$)")
"""`tl` may come from a module of the repository."""
_RUN_BY_THE_FRONTEND = re.compile(r"\b(constexpr_function|builtin|extern)\b")
"""Decorates functions that run where nobody notes it, so they count as statements."""
_BUILTINS = frozenset(dir(builtins))


@dataclass(frozen=True, kw_only=True)
class ChangedFunction:
    """A function that differs between the sides, or a kernel that base does not have."""

    name: str
    """With its class: `SwiGLU.forward`. With `(uses CONFIGS)` if only what it uses differs."""
    places: Sides[tuple[Place, ...]]
    """If it runs at one of them, it was compared."""


def changed_functions(base: str, head: str) -> list[ChangedFunction]:
    """Raises SyntaxError if this Python cannot parse head."""
    theirs = _by_name(_functions(head))
    try:
        ours = _by_name(_functions(base))
    except SyntaxError:
        return [_changed(name, [], [each]) for name, functions in theirs.items() for each in functions]
    return [
        changed for name, functions in theirs.items() for changed in _differing(ours.get(name, []), functions)
    ]


def holds_kernels(text: str) -> bool:
    try:
        return any(function.is_jitted for function in _functions(text))
    except SyntaxError:
        return False


def _functions(text: str) -> list[_DefinedFunction]:
    try:
        return _File(ast.parse(text)).functions
    except (ValueError, RecursionError) as error:  # a null byte, or a sum of thousands of terms
        raise SyntaxError(str(error)) from error


def _differing(
    ours: Sequence[_DefinedFunction], theirs: Sequence[_DefinedFunction]
) -> Iterator[ChangedFunction]:
    """All have one name. Another definition of a name that base has is a change of it."""
    name = theirs[0].name
    if not ours:
        yield from (_changed(name, [], [function]) for function in theirs if function.may_be_kernel)
        return
    texts, others = ([function.text for function in side] for side in (ours, theirs))
    for kind, a, b, c, d in SequenceMatcher(None, texts, others, autojunk=False).get_opcodes():
        if kind == "delete":  # the remaining ones took its place
            yield _changed(name, [], theirs)
        for index in range(c, d):
            partner = ours[a + index - c : b][:1]
            names = _used_names_that_differ(partner[0], theirs[index]) if kind == "equal" else []
            if kind != "equal" or names:
                shown = [used for used in names if used != theirs[index].place[1]]
                uses = f" (uses {first_few(shown, _NAMES_SHOWN)})" if shown else ""
                yield _changed(name + uses, partner, [theirs[index]])


def _changed(
    name: str, ours: Iterable[_DefinedFunction], theirs: Iterable[_DefinedFunction]
) -> ChangedFunction:
    places = Sides(base=ours, head=theirs).map(lambda side: tuple(function.place for function in side))
    return ChangedFunction(name=name, places=places)


def _used_names_that_differ(ours: _DefinedFunction, theirs: _DefinedFunction) -> list[str]:
    base, head = ours.statements, theirs.statements
    names = {name for name in base.keys() | head.keys() if base.get(name) != head.get(name)}
    return sorted({name.removeprefix(".") for name in names})


@dataclass(frozen=True, kw_only=True)
class _DefinedFunction:
    name: str
    place: Place
    text: str
    statements: Mapping[str, Sequence[str]]
    """By the name that it uses, directly or through another: the texts of the statements that bind it."""
    is_jitted: bool
    may_be_kernel: bool


def _by_name(functions: Iterable[_DefinedFunction]) -> dict[str, list[_DefinedFunction]]:
    named: dict[str, list[_DefinedFunction]] = defaultdict(list)
    for function in functions:
        named[function.name].append(function)
    return named


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
    node: _Def | ast.Lambda
    scope: _Scope


@dataclass
class _File:
    """Functions inside of functions belong to these, unless they are kernels."""

    tree: ast.Module
    _definitions: list[_Definition] = field(default_factory=list)
    _statements: dict[tuple[int, ...], dict[str, list[_Statement]]] = field(default_factory=dict)
    _function_count: int = 0

    def __post_init__(self) -> None:
        self._kernels = _Kernels(self.tree)
        self._drop_words()
        self._block(self.tree.body, _Scope())
        self.functions = [self._function(definition) for definition in self._definitions]

    def _drop_words(self) -> None:
        """Docstrings, and the annotations of functions that are no kernels."""
        for node in ast.walk(self.tree):
            if isinstance(node, _Def | ast.ClassDef) and ast.get_docstring(node) is not None:
                node.body = node.body[1:]
            if isinstance(node, _Def) and not self._kernels.may_be(node):
                node.returns = None
                for argument in _all_arguments(node.args):
                    argument.annotation = None

    def _block(self, nodes: Iterable[ast.AST], scope: _Scope) -> None:
        for node in nodes:
            if isinstance(node, _Def) and not self._runs_in_the_frontend(node):
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

    def _runs_in_the_frontend(self, node: _Def) -> bool:
        decorators = map(ast.unparse, node.decorator_list)
        is_called = node.name in self._kernels.called_by_the_frontend
        return is_called or any(map(_RUN_BY_THE_FRONTEND.search, decorators))

    def _define(self, node: _Def, scope: _Scope) -> None:
        name = scope.prefix + node.name
        if not scope.functions or self._kernels.may_be(node):
            self._definitions.append(_Definition(name=name, node=node, scope=scope))
        else:  # a kernel beside it may use it
            self._bind(node, [node], [node.name], scope)
        if not self._kernels_inside(node):
            return
        self._function_count += 1
        inner = replace(scope, prefix=f"{name}.", functions=(*scope.functions, self._function_count))
        self._bind(node, [node.args], _arguments(node.args), inner)
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
        blocks = {name: value for name, value in fields.items() if _is_block(value)}
        parts = [part for name, value in fields.items() if name not in blocks for part in _nodes(value)]
        if isinstance(node, _Def):
            blocks, parts = {}, [node]
        has_lambdas = not scope.functions and not isinstance(node, _Def)
        uses = self._bind(node, parts, self._touched(node, parts), scope, has_lambdas)
        for name, block in blocks.items():
            head = f"{self._text(node, parts, has_lambdas)} {name}"
            self._block(block, replace(scope, heads=(*scope.heads, head), uses=scope.uses | uses))
        if has_lambdas:
            owner = next(_stored(parts), "<lambda>")
            for part in _outermost_lambdas(parts):
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
        uses = frozenset().union(*map(_free_names, parts))
        text = " ".join([*scope.heads, self._text(node, parts, has_lambdas)])
        for name in dict.fromkeys(names):
            self._keep(name, _Statement(text=text, uses=uses | scope.uses), scope)
        return uses

    def _keep(self, name: str, statement: _Statement, scope: _Scope) -> None:
        owners = {name, f".{name}", *scope.classes} if scope.classes and not scope.functions else {name}
        for owner in owners:
            kept = self._statements.setdefault(scope.functions, {}).setdefault(owner, [])
            if statement not in kept[-1:]:
                kept.append(statement)

    def _text(self, node: ast.AST, parts: Sequence[ast.AST], has_lambdas: bool = False) -> str:
        lambdas = list(_outermost_lambdas(parts)) if has_lambdas else []
        return " ".join([type(node).__name__, *(ast.dump(_without(part, lambdas)) for part in parts)])

    def _touched(self, node: ast.AST, parts: Sequence[ast.AST]) -> list[str]:
        if isinstance(node, _Def):
            return [node.name]
        names = {*_stored(parts)}
        names |= {part.name for part in [node] if isinstance(part, ast.ExceptHandler) and part.name}
        changed = [node.value] if isinstance(node, ast.Expr) else []
        for part in _walk(parts):
            if isinstance(part, ast.Attribute | ast.Subscript) and not isinstance(part.ctx, ast.Load):
                changed.append(part)
                names |= {f".{part.attr}"} if isinstance(part, ast.Attribute) else set()
        used = {part.id for part in _walk(changed) if isinstance(part, ast.Name)}
        return sorted(names | (used - self._kernels.imported - _BUILTINS))

    def _function(self, definition: _Definition) -> _DefinedFunction:
        node, scope = definition.node, definition.scope
        name = node.name if isinstance(node, _Def) else "<lambda>"
        own = _without(node, self._kernels_inside(node))
        uses = {*_free_names(own), *scope.uses, name, f".{name}"}
        is_jitted = isinstance(node, _Def) and self._kernels.is_jitted(node)
        return _DefinedFunction(
            name=definition.name,
            place=(_first_line(node), name),
            text=" ".join([*scope.heads, ast.dump(own)]),
            statements=self._reached(uses, scope),
            is_jitted=is_jitted,
            may_be_kernel=is_jitted or self._kernels.may_be(node),
        )

    def _kernels_inside(self, function: _Def | ast.Lambda) -> list[_Def]:
        nodes = ast.walk(function) if isinstance(function, _Def) else ()
        return [
            node
            for node in nodes
            if isinstance(node, _Def) and node is not function and self._kernels.may_be(node)
        ]

    def _reached(self, names: Iterable[str], scope: _Scope) -> dict[str, list[str]]:
        visible = [self._statements.get(scope.functions[:n], {}) for n in range(len(scope.functions) + 1)]
        reached: dict[str, list[str]] = {}
        todo = list(names)
        while todo:
            name = todo.pop()
            if name not in reached:
                statements = [statement for scoped in visible for statement in scoped.get(name, ())]
                reached[name] = [statement.text for statement in statements]
                todo += [used for statement in statements for used in statement.uses]
        return {name: texts for name, texts in reached.items() if texts}


class _Kernels:
    """Which functions of a file are kernels, as far as its text says."""

    def __init__(self, tree: ast.Module) -> None:
        self._origins: dict[str, str] = {}
        """What a name stands for: `J` for `triton.jit`."""
        nodes = list(ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                self._origins.update(
                    (alias.asname or alias.name, f"{above}{alias.name}")
                    for alias in node.names
                    if alias.asname or above
                )
        self.imported = frozenset(
            alias.asname or alias.name.partition(".")[0]
            for node in nodes
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in node.names
        )
        for node in nodes:
            if isinstance(node, ast.Assign):  # `J = triton.jit`, `J = functools.partial(triton.jit, …)`
                value = node.value
                parts = value.args if isinstance(value, ast.Call) else [value]
                if all(isinstance(part, ast.Name | ast.Attribute) for part in parts) and self._says(
                    _JIT, parts
                ):
                    self._origins.update(
                        (name.id, "jit") for name in node.targets if isinstance(name, ast.Name)
                    )
        calls = [node for node in nodes if isinstance(node, ast.Call) and self._says(_JIT, [node.func])]
        words = [word for call in calls for word in call.keywords]
        parts = [part for call in calls for part in call.args] + [w.value for w in words if w.arg == "fn"]
        self._may_be: dict[ast.AST, bool] = {}
        self._passed = {part.id for part in parts if isinstance(part, ast.Name)}
        self.called_by_the_frontend = frozenset(
            word.value.id for word in words if word.arg == "repr" and isinstance(word.value, ast.Name)
        )
        """As `jit(repr=name)`: what it returns is the name of the compiled kernel."""

    def is_jitted(self, node: _Def) -> bool:
        return self._says(_JIT, node.decorator_list) or node.name in self._passed

    def may_be(self, node: _Def | ast.Lambda) -> bool:
        """Another file may hand it to the compiler."""
        if node not in self._may_be:
            is_jitted = isinstance(node, _Def) and self.is_jitted(node)
            self._may_be[node] = is_jitted or self._says(_LANGUAGE, [node])
        return self._may_be[node]

    def _says(self, pattern: re.Pattern[str], nodes: Iterable[ast.AST]) -> bool:
        return any(pattern.search(self._dotted(part)) for part in _walk(nodes))

    def _dotted(self, node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return self._origins.get(node.id, node.id)
        return f"{self._dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else ""


class _WithoutFunctions(ast.NodeTransformer):
    """Drops functions that stand for themselves."""

    def __init__(self, functions: Iterable[ast.AST]) -> None:
        self._functions = set(map(id, functions))

    def visit(self, node: ast.AST) -> ast.AST:
        return ast.Pass() if id(node) in self._functions else self.generic_visit(node)


def _without(node: ast.AST, functions: Sequence[ast.AST]) -> ast.AST:
    if not functions:
        return node
    same: dict[int, ast.AST] = {}  # deepcopy gives each node a copy
    copied = copy.deepcopy(node, same)
    return _WithoutFunctions(same[id(function)] for function in functions if id(function) in same).visit(
        copied
    )


def _free_names(node: ast.AST) -> frozenset[str]:
    """Names that are bound elsewhere, and attributes as `.name`."""
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    names = frozenset().union(*map(_free_names, ast.iter_child_nodes(node)))
    if isinstance(node, ast.Attribute):
        return names | {f".{node.attr}"}
    if not isinstance(node, _Def | ast.Lambda):
        return names
    body = node.body if isinstance(node.body, list) else [node.body]
    outside = [*node.args.defaults, *filter(None, node.args.kw_defaults)]
    outside += [a.annotation for a in _all_arguments(node.args) if a.annotation is not None]
    outside += [*node.decorator_list, *filter(None, [node.returns])] if isinstance(node, _Def) else []
    inside = frozenset().union(*map(_free_names, body)) - _local_names(body) - {*_arguments(node.args)}
    return inside.union(*map(_free_names, outside))


def _local_names(body: Iterable[ast.AST]) -> set[str]:
    local: set[str] = set()
    elsewhere: set[str] = set()
    todo = list(body)
    while todo:
        node = todo.pop()
        if isinstance(node, _Def | ast.ClassDef):
            local.add(node.name)
            continue
        if isinstance(node, ast.Global | ast.Nonlocal):
            elsewhere.update(node.names)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            local.add(node.id)
        if not isinstance(node, ast.Lambda):
            todo += ast.iter_child_nodes(node)
    return local - elsewhere


def _all_arguments(arguments: ast.arguments) -> list[ast.arg]:
    several = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return several + [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]


def _arguments(arguments: ast.arguments) -> list[str]:
    return [argument.arg for argument in _all_arguments(arguments)]


def _first_line(node: _Def | ast.Lambda) -> int:
    decorators = node.decorator_list if isinstance(node, _Def) else []
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _stored(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in _walk(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _is_block(value: object) -> bool:
    return isinstance(value, list) and isinstance(
        next(iter(value), None), ast.stmt | ast.ExceptHandler | ast.match_case
    )


def _nodes(value: object) -> list[ast.AST]:
    return [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST)]


def _walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def _outermost_lambdas(nodes: Iterable[ast.AST]) -> Iterator[ast.Lambda]:
    for node in nodes:
        if isinstance(node, ast.Lambda):
            yield node
        else:
            yield from _outermost_lambdas(ast.iter_child_nodes(node))
