"""What the workloads and kernels of a repository import: folders of the repository, and packages."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

_THERE_ALREADY = frozenset({"triton", "irdiff_corpus", *sys.stdlib_module_names})
_ABSENT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})


class Imports:
    """The modules of a repository by name, wherever in it their top package lies."""

    def __init__(self, root: Path, files: Iterable[Path]) -> None:
        self._root = root
        self._places = sorted(
            (path.relative_to(root) for path in files), key=lambda path: (len(path.parts), str(path))
        )

    def folders(self, starts: Iterable[Path]) -> tuple[str, ...]:
        """The folders that must be on the import path for the modules that files import by name."""
        found = {
            folder
            for start in starts
            for module in _imported(start, "")
            if (place := self._find(module, start)) and (folder := _folder_of(module, place)) is not None
        }
        return tuple(sorted(found))

    def packages(self, starts: Iterable[Path]) -> tuple[str, ...]:
        """Top names of what files import, and what those of the repository import that they import."""
        pending, seen, found = list(starts), set(), set()
        while pending:
            path = pending.pop()
            if path in seen:
                continue
            seen.add(path)
            for module in _imported(path, self._package_of(path)):
                place = self._find(module, path)
                if place is not None:
                    pending += self._with_packages(module, place)
                elif self._find(module.partition(".")[0], path) is None:
                    found.add(module.partition(".")[0])
        return tuple(sorted(found - _THERE_ALREADY))

    def _find(self, module: str, importer: Path) -> Path | None:
        """The file of a module, or that of the module that it is a name of."""
        for name in (module, module.rpartition(".")[0]):
            tail = name.replace(".", "/")
            for ending in (f"{tail}.py", f"{tail}/__init__.py") if name else ():
                for path in self._places:
                    if path.as_posix() == ending or path.as_posix().endswith(f"/{ending}"):
                        above = self._root / path.as_posix().removesuffix(ending)
                        if above == importer.parent or not self._is_package(above):
                            return path
        return None

    def _is_package(self, folder: Path) -> bool:
        """What lies in a package is imported by the package's name: `mine.torch` is not `torch`."""
        return folder != self._root and (folder / "__init__.py").is_file()

    def _with_packages(self, module: str, place: Path) -> Iterator[Path]:
        """The file and the `__init__.py` of each package above it, which importing it runs too."""
        yield self._root / place
        folder = place.parent
        for _ in range(module.count(".") + 1):
            if (self._root / folder / "__init__.py").is_file():
                yield self._root / folder / "__init__.py"
            folder = folder.parent

    def _package_of(self, path: Path) -> str:
        """The dotted name of the package that a file lies in, for its relative imports."""
        parts: list[str] = []
        folder = path.parent
        while (folder / "__init__.py").is_file() and folder != self._root:
            parts.insert(0, folder.name)
            folder = folder.parent
        return ".".join(parts)


def _folder_of(module: str, place: Path) -> str | None:
    parts = place.with_suffix("").parts
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    for name in (module, module.rpartition(".")[0]):
        tail = tuple(name.split("."))
        if parts[-len(tail) :] == tail:
            return Path(*parts[: -len(tail)]).as_posix()
    return None


def _imported(path: Path, package: str) -> list[str]:
    """Names of modules that importing a file imports: `a.b` of `from a import b` too."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return []
    return list(_of_statements(tree.body, package))


def _of_statements(body: Sequence[ast.stmt], package: str) -> Iterator[str]:
    """Those that are run when a module is imported, and whose absence would end that."""
    for statement in body:
        match statement:
            case ast.Import():
                yield from (alias.name for alias in statement.names)
            case ast.ImportFrom():
                origin = _absolute(statement, package)
                if origin:
                    yield from (f"{origin}.{alias.name}" for alias in statement.names)
            case ast.Try():
                if not any(_forgives(handler) for handler in statement.handlers):
                    yield from _of_statements(statement.body, package)
                yield from _of_statements([*statement.orelse, *statement.finalbody], package)
            case ast.If():
                if "TYPE_CHECKING" not in ast.unparse(statement.test):
                    yield from _of_statements(statement.body, package)
                yield from _of_statements(statement.orelse, package)
            case ast.With():
                yield from _of_statements(statement.body, package)


def _absolute(statement: ast.ImportFrom, package: str) -> str:
    if not statement.level:
        return statement.module or ""
    parts = package.split(".") if package else []
    above = parts[: len(parts) - statement.level + 1]
    return ".".join([*above, *([statement.module] if statement.module else [])])


def _forgives(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in _ABSENT_ERRORS for node in ast.walk(handler.type))
