"""Writes an `irdiff.toml` for `irdiff init`, from a repository's workloads, kernels, imports and pins."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from irdiff.resolve import extra_packages, pins, programs
from irdiff.resolve.targets import DEFAULT

FALLBACK_TOOLCHAIN = "triton==3.9.0"
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "build", "dist", "__pycache__"})
_MAX_FILES = 20_000


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    program: str | None
    """The command line that launches the kernels, if the user named one."""
    targets: tuple[str, ...]
    workloads: str
    """The existing folder of workloads, or the proposed one."""
    has_workloads: bool
    imports: tuple[str, ...]
    pin: str | None
    pinned: str | None
    kernels: tuple[str, ...]
    """Files with kernels."""
    packages: tuple[str, ...]
    """Packages, other than Triton, that workloads and kernels import, and that the repository or the user
    names. They have the installed version if no lock file has one.
    """
    unnamed: tuple[str, ...]
    """Imported modules whose package nobody names. irdiff does not guess: an index may have a stranger's
    package of that name.
    """


def look_around(
    root: Path, packages: Sequence[str] = (), program: str | None = None, targets: Sequence[str] = DEFAULT
) -> Surroundings:
    """packages: those that the user names, with versions. program: replaces the workloads."""
    files = list(_python_files(root))
    kernels = _with(_KERNEL, "triton", files)
    workloads = _with(_TABLE, "irdiff_corpus", files)
    folder = _workload_folder(workloads, root)
    pin, version = _pin(root)
    outside = [path for path in kernels if path not in workloads]
    if program:
        words = programs.words_of(program)
        workloads = [path for path in files if path.relative_to(root).as_posix() in words]
    imports = Imports(root, files)
    imported = imports.packages([*workloads, *(outside if program or not workloads else ())])
    named = _named_packages(imported, packages, root)
    return Surroundings(
        program=program,
        targets=tuple(targets),
        workloads=folder.as_posix(),
        has_workloads=bool(workloads),
        imports=_import_folders(outside, workloads, files, root),
        pin=pin,
        pinned=version,
        kernels=tuple(path.relative_to(root).as_posix() for path in kernels),
        packages=_with_versions(named, packages, pin, root),
        unnamed=tuple(
            name
            for name in imported
            if name not in (*named, *programs.packages_of([program] if program else []))
            and not imports.has(name)
        ),
    )


def folders_imported_from(workloads: Path, root: Path) -> tuple[str, ...]:
    return Imports(root, _python_files(root)).folders(workloads.rglob("*.py"))


def irdiff_toml(surroundings: Surroundings) -> str:
    """Writes strings and lists as JSON, which is valid TOML."""
    launching: dict[str, object] = {"workloads": surroundings.workloads}
    comment = "The folder of workloads, FAMILY/NAME.py: ordinary Python that launches kernels."
    if surroundings.program is not None:
        launching = {"program": surroundings.program, "targets": surroundings.targets}
        comment = (
            "The program that launches the kernels. It runs once for each revision and target, without a GPU."
        )
    entries_with_comments: list[tuple[str, dict[str, object]]] = [
        (comment, launching),
        ("The folders that kernels are imported from.", {"import": surroundings.imports}),
    ]
    if surroundings.pin:
        comment = (
            f"Each revision's own Triton ({surroundings.pinned} now): a bump of it shows its blast radius."
        )
        entries_with_comments.append((comment, {"pin": surroundings.pin}))
    toolchain = f"triton=={surroundings.pinned}" if surroundings.pinned else FALLBACK_TOOLCHAIN
    entries_with_comments.append(("The compiler of revisions without a pin.", {"toolchain": toolchain}))
    if surroundings.packages:
        comment = "The packages that are imported besides Triton. A CPU build of torch is enough."
        entries_with_comments.append((comment, {"packages": surroundings.packages}))
    lines = ["[kernels]"]
    for comment, entries in entries_with_comments:
        lines += [f"# {comment}", *(f"{name} = {json.dumps(value)}" for name, value in entries.items())]
    if surroundings.unnamed:
        modules = ", ".join(surroundings.unnamed)
        lines += [
            f"# They also import {modules}. No requirements of this repository name the",
            "# packages that hold these modules, and irdiff installs none by a guess. Write those you know:",
            '# packages = ["NAME==VERSION"]',
        ]
    return "\n".join(lines) + "\n"


def _python_files(root: Path) -> Iterator[Path]:
    def below(folder: Path) -> Iterator[Path]:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and path.name not in _SKIPPED:
                yield from below(path)
            elif path.suffix == ".py" and path.is_file():
                yield path

    return itertools.islice(below(root), _MAX_FILES)


_KERNEL = re.compile(r"^\s*@(?:triton|gluon)\.jit\b|^\s*@jit\b", re.MULTILINE)
_TABLE = re.compile(r"^LAUNCHES\b.*=", re.MULTILINE)


def _with(pattern: re.Pattern[str], word: str, files: Sequence[Path]) -> list[Path]:
    """Filters the files that contain both the pattern and the word."""
    texts = ((path, path.read_text(encoding="utf-8", errors="replace")) for path in files)
    return [path for path, text in texts if pattern.search(text) and word in text]


def _workload_folder(workloads: Sequence[Path], root: Path) -> Path:
    folders = [path.parent.parent for path in workloads]
    inside = [folder.relative_to(root) if folder.is_relative_to(root) else Path() for folder in folders]
    return Path(os.path.commonpath(inside)) if inside else Path("irdiff")


def _import_folders(
    kernels: Sequence[Path], workloads: Sequence[Path], files: Sequence[Path], root: Path
) -> tuple[str, ...]:
    """Lists the folders that workloads import from, and the folder above each top package with kernels."""
    folders = set(Imports(root, files).folders(workloads)) - {_workload_folder(workloads, root).as_posix()}
    folders |= {_above_packages(path, root).relative_to(root).as_posix() for path in kernels}
    return tuple(sorted(folders)) or (".",)


def _above_packages(path: Path, root: Path) -> Path:
    """Packages between a file and its outermost package may lack their __init__.py."""
    inside = path.relative_to(root).parents
    packages = [
        root / folder for folder in inside if folder.name and (root / folder / "__init__.py").exists()
    ]
    return packages[-1].parent if packages else path.parent


def _pin(root: Path) -> tuple[str | None, str | None]:
    for name in (*pins.FILES, "pyproject.toml"):
        path = root / name
        if path.is_file():
            version = pins.version(name, path.read_bytes())
            if version:
                return name, version
    return None, pins.installed(root, "triton")


def _named_packages(modules: Iterable[str], user_packages: Sequence[str], root: Path) -> tuple[str, ...]:
    """Filters the modules whose package the user names, the repository requires, or its environment has."""
    named = {*_required(root), *(extra_packages.name_of(text.strip()) for text in user_packages)}
    return tuple(
        module
        for module in modules
        if canonicalize_name(module) in named or pins.installed(root, module) is not None
    )


def _required(root: Path) -> Iterator[str]:
    for name, content in _requirements(root):
        yield from pins.requirements(name, content, lambda other: _content(root, other))


def _requirements(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name and content of each lock, requirements and project file."""
    more = (path.relative_to(root).as_posix() for path in root.glob("requirements*/*.txt"))
    beside = (path.name for path in root.glob("*requirements*.txt"))
    for name in dict.fromkeys([*pins.FILES, pins.PROJECT, *beside, *more]):
        if (content := _content(root, name)) is not None:
            yield name, content


def _content(root: Path, name: str) -> bytes | None:
    path = root / name
    return path.read_bytes() if path.is_file() else None


def _version(root: Path, package: str) -> str | None:
    """Prefers the installed version to one in a file of requirements."""
    versions = (pins.version(name, content, package) for name, content in _requirements(root))
    return pins.installed(root, package) or next(filter(None, versions), None)


def _with_versions(
    modules: Iterable[str], user_packages: Sequence[str], pin: str | None, root: Path
) -> tuple[str, ...]:
    """Omits a version that the lock file names too, so that a bump there is followed."""
    locked = (root / pin).read_bytes() if pin else b""
    requirements = {}
    for name in (module.replace("_", "-") for module in modules):
        version = None if pins.version(pin or "", locked, name) else _version(root, name)
        requirements[extra_packages.name_of(name)] = f"{name}=={version}" if version else name
    for text in map(str.strip, user_packages):
        name = extra_packages.name_of(text)
        requirements[name] = name if text == f"{name}=={pins.version(pin or '', locked, name)}" else text
    return tuple(sorted(requirements.values()))


_THERE_ALREADY = frozenset({"triton", "irdiff_corpus", *sys.stdlib_module_names})
_ABSENT_ERRORS = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})


class Imports:
    """Finds modules by name in a repository, wherever in it their top package lies."""

    def __init__(self, root: Path, files: Iterable[Path]) -> None:
        self._root = root
        places = (path.relative_to(root) for path in files)
        self._places = sorted(places, key=lambda path: (len(path.parts), str(path)))

    def folders(self, starts: Iterable[Path]) -> tuple[str, ...]:
        """Lists the folders that must be on the import path for these files."""
        modules = ((module, start) for start in starts for module in _imported(start, ""))
        places = (self._find(module, start) for module, start in modules)
        return tuple(sorted({folder.as_posix() for folder, _ in filter(None, places)}))

    def packages(self, starts: Iterable[Path]) -> tuple[str, ...]:
        """Lists the top names of packages that these files import, directly or through modules of the
        repository.
        """
        pending, seen, top_names = list(starts), set(), set()
        while pending:
            path = pending.pop()
            if path in seen:
                continue
            seen.add(path)
            for module in _imported(path, ".".join(self._packages_around(path))):
                top = module.partition(".")[0]
                if place := self._find(module, path):
                    file = self._root / place[1]
                    above = list(file.parents)[: module.count(".") + 1]
                    inits = (folder / "__init__.py" for folder in above)  # importing the file runs them too
                    pending += [file, *filter(Path.is_file, inits)]
                elif self._find(top, path) is None:
                    top_names.add(top)
        return tuple(sorted(top_names - _THERE_ALREADY))

    def has(self, name: str) -> bool:
        """Looks for the name anywhere in the repository: any folder may be on the import path."""
        return any(name in (*path.parts[:-1], path.stem) for path in self._places)

    def _find(self, module: str, importer: Path) -> tuple[Path, Path] | None:
        """Returns the folder that a module is imported from, and the file of the module or of an enclosing
        one.

        A module inside a package is only imported by its full name: `mine.torch` is not `torch`.
        """
        for name in filter(None, (module, module.rpartition(".")[0])):
            tail = name.replace(".", "/")
            for ending, path in itertools.product((f"{tail}.py", f"{tail}/__init__.py"), self._places):
                if f"/{path.as_posix()}".endswith(f"/{ending}"):
                    folder = Path(path.as_posix().removesuffix(ending))
                    above = self._root / folder
                    if above == importer.parent or not self._packages_around(above / ending.split("/")[0]):
                        return folder, path
        return None

    def _packages_around(self, path: Path) -> list[str]:
        """Lists the outermost package first."""
        folders = itertools.takewhile(
            lambda folder: folder != self._root and (folder / "__init__.py").is_file(), path.parents
        )
        return [folder.name for folder in folders][::-1]


def _imported(path: Path, package: str) -> list[str]:
    """Includes `a.b` for `from a import b`."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        return []
    return list(_of_statements(tree.body, package))


def _of_statements(body: Sequence[ast.stmt], package: str) -> Iterator[str]:
    """Yields the modules that Python must find to import these statements."""
    for statement in body:
        match statement:
            case ast.Import():
                yield from (alias.name for alias in statement.names)
            case ast.ImportFrom():
                dots, name = "." * statement.level if package else "", statement.module or ""
                with contextlib.suppress(ImportError):  # more dots than packages
                    origin = importlib.util.resolve_name(dots + name, package) if dots or name else ""
                    yield from (f"{origin}.{alias.name}" for alias in statement.names if origin)
            case ast.Try():
                if not any(_forgives(handler) for handler in statement.handlers):
                    yield from _of_statements(statement.body, package)
                yield from _of_statements([*statement.orelse, *statement.finalbody], package)
            case ast.If():
                test = ast.unparse(statement.test)
                if "TYPE_CHECKING" not in test and "find_spec" not in test:
                    yield from _of_statements(statement.body, package)
                yield from _of_statements(statement.orelse, package)
            case ast.With():
                yield from _of_statements(statement.body, package)


def _forgives(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id in _ABSENT_ERRORS for node in ast.walk(handler.type))
