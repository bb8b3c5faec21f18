"""What the text of one Python file refers to in other modules, wherever in the file that is written.

Imports are followed by name. `from triton import knobs` refers to `triton.knobs`, and `import triton` with
`triton.language.dtype` further down to `triton.language.dtype`: what the import of a package runs beside
that is run by `import triton` in any case, before anything compiles. A module whose name is used as a value
is referred to as a whole. Scopes are not told apart, so a local variable of the same name only adds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

_IMPORTING_CALLS = frozenset({"import_module", "__import__", "spec_from_file_location"})
_LAUNCHER_SOURCES = ("driver.c", "include")
"""What a launcher is built from, as the last part of a path in a string."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """`module` and what is taken from it, name after name.

    An empty module is one that the text does not tell, or a file of a launcher that is named in a string.
    """

    module: str
    names: tuple[str, ...]
    where: str
    """The function it stands in, with its classes: `HIPBackend.get_module_map`; empty at the top."""
    line: int


def read_references(source: bytes, module: str, *, is_package: bool) -> list[Reference]:
    """Raises SyntaxError, ValueError where the text is no Python."""
    reader = _Reader(module if is_package else module.rpartition(".")[0])
    reader.read(ast.parse(source))
    return reader.resolved()


@dataclass(frozen=True, kw_only=True)
class Bindings:
    """How a module gets the names at its top level."""

    imported: dict[str, tuple[str, str]]
    """Name → module and the name there, for names that one import binds and nothing else."""
    literals: frozenset[str]
    """Names that one assignment of a literal binds, and nothing else: they refer to nothing further."""


def read_bindings(source: bytes, module: str, *, is_package: bool) -> Bindings:
    package = module if is_package else module.rpartition(".")[0]
    tree = ast.parse(source)
    imported: dict[str, tuple[str, str]] = {}
    literals: set[str] = set()
    # a name that a function rebinds is bound there too
    bound = [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    for statement in _top_level(tree.body):
        if isinstance(statement, ast.ImportFrom):
            origin = _absolute(package, statement)
            for alias in statement.names:
                imported[alias.asname or alias.name] = (origin, alias.name)
                bound.append(alias.asname or alias.name)
        else:
            names = list(_names_bound(statement))
            bound.extend(names)
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
                literals.update(names)
    return Bindings(
        imported={name: at for name, at in imported.items() if bound.count(name) == 1},
        literals=frozenset(name for name in literals if bound.count(name) == 1),
    )


def _top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for field in ("body", "orelse", "finalbody"):
            if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from _top_level(getattr(statement, field, []))
        for handler in getattr(statement, "handlers", []):
            yield from _top_level(handler.body)


def _names_bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import):
        yield from (alias.asname or alias.name.partition(".")[0] for alias in statement.names)
    else:
        names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
        yield from (node.id for node in names if not isinstance(node.ctx, ast.Load))


def _absolute(package: str, statement: ast.ImportFrom) -> str:
    if not statement.level:
        return statement.module or ""
    parent = package.rsplit(".", statement.level - 1)[0] if statement.level > 1 else package
    return f"{parent}.{statement.module}" if statement.module else parent


class _Reader:
    """Collects what names are bound to by imports, and every use of every name."""

    def __init__(self, package: str) -> None:
        self.package = package
        self.bound: list[tuple[str, Reference]] = []
        self.used: dict[str, set[tuple[tuple[str, ...], str, int]]] = {}
        self.direct: list[Reference] = []
        self._inside: list[str] = []

    def resolved(self) -> list[Reference]:
        """Every import with the names that are taken from what it binds, and where."""
        found = list(self.direct)
        for name, reference in self.bound:
            uses = self.used.get(name)
            if not uses:
                found.append(reference)
                continue
            for names, where, line in sorted(uses):
                taken = replace(reference, names=(*reference.names, *names))
                # an import in a function binds for that function: what it is for is said there
                found.append(taken if reference.where else replace(taken, where=where, line=line))
        return list(dict.fromkeys(found))

    def read(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._inside.append(node.name)
                self._read_inside(node)
                self._inside.pop()
            case ast.If() if ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
                for statement in node.orelse:
                    self.read(statement)
            case ast.Import() | ast.ImportFrom():
                self._bind(node)
            case ast.Attribute():
                self._take(node)
            case ast.Name():
                self._use(node, ())
            case ast.Call():
                self._call(node)
                self._read_inside(node)
            case ast.Constant(value=str(text)) if text.rpartition("/")[2] in _LAUNCHER_SOURCES:
                self.direct.append(self._reference("", (text,), node.lineno))
            case _:
                self._read_inside(node)

    def _read_inside(self, node: ast.AST) -> None:
        for inner in ast.iter_child_nodes(node):
            self.read(inner)

    def _reference(self, module: str, names: tuple[str, ...], line: int) -> Reference:
        return Reference(module=module, names=names, where=".".join(self._inside), line=line)

    def _bind(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.Import):
                module = alias.name if alias.asname else alias.name.partition(".")[0]
                self.bound.append((alias.asname or module, self._reference(module, (), node.lineno)))
                continue
            origin = _absolute(self.package, node)
            if alias.name == "*":
                self.direct.append(self._reference(origin, (), node.lineno))
            else:
                taken = self._reference(origin, (alias.name,), node.lineno)
                self.bound.append((alias.asname or alias.name, taken))

    def _take(self, node: ast.Attribute) -> None:
        names: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name):
            self._use(inner, tuple(names))
        else:
            self.read(inner)

    def _use(self, node: ast.Name, names: tuple[str, ...]) -> None:
        self.used.setdefault(node.id, set()).add((names, ".".join(self._inside), node.lineno))

    def _call(self, node: ast.Call) -> None:
        """A module that is imported by a call is the one that a literal names, or unknown."""
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if called not in _IMPORTING_CALLS:
            return
        module = ""
        match node.args:
            case [ast.Constant(value=str(name)), *_] if called != "spec_from_file_location":
                module = f"{self.package}{name}" if name.startswith(".") else name
        self.direct.append(self._reference(module, (), node.lineno))
