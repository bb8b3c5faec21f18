"""How a checkout of Triton becomes an installed package: its Python part, and what feeds its native part.

Pure. The Python part follows `package_dir` of Triton's setup.py (3.2 to 3.9): `python/triton` and, of each
backend, its folders `backend`, `language` and `tools`, with everything in them: setup.py installs what looks
like a document, too, and a stage may read it.

Native is every file that no rule places elsewhere: a needless build costs time, a stale one would make the
verdict false. The rules place documents, what lies beside the library (tests, programs, what belongs to git
and to people), the Python part where CMake does not reach it, Python that no build runs, and units of
compilation in folders that CMake does not reach. A file may be of both parts.
"""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import TypeVar

from irdiff.resolve.toolchains import cmake
from irdiff.resolve.toolchains.cmake import CmakeReach

PACKAGE_MARK = "python/triton/__init__.py"
_PACKAGES = (
    (re.compile(r"python/(triton/.+)"), r"\1"),
    (re.compile(r"third_party/proton/proton/(.+)"), r"triton/profiler/\1"),
    (re.compile(r"third_party/([^/]+)/backend/(.+)"), r"triton/backends/\1/\2"),
    (re.compile(r"third_party/[^/]+/language/(.+/.+)"), r"triton/language/extra/\1"),
    (re.compile(r"third_party/[^/]+/tools/(.+/.+)"), r"triton/tools/extra/\1"),
)
DOCUMENTS = (".md", ".rst", ".mlir", ".ipynb", ".pdf", ".png", ".svg", ".jpg", ".gif")
"""No build reads them, unless CMake names them."""
_FOR_PEOPLE = frozenset({"LICENSE", "CODEOWNERS", "Makefile"})
"""At the root: setup.py runs CMake and Ninja, which do not read them."""

_BUILD_FILES = ("setup.py", "python/setup.py", "python/build_helpers.py")
_PROJECT_FILES = ("pyproject.toml", "python/pyproject.toml")
_LLVM_PINS = ("cmake/llvm-hash.txt", "cmake/llvm-info.json", "llvm-hash.txt")
_UNITS = frozenset({".c", ".cc", ".cpp", ".cxx", ".cu", ".s"})
"""Units of compilation: each is built where CMake adds it, and nowhere else."""
_DEVICE_LIBRARIES = frozenset({".bc", ".so", ".a"})
"""Installed as they are, for stages to read."""
_HEADERS = frozenset({".h", ".hpp", ".hh", ".inc", ".def", ".td"})
_INSTALLED_ONLY = re.compile(r"third_party/[^/]+/(language|tools)/")

E = TypeVar("E")
Read = Callable[[Iterable[str]], Mapping[str, bytes]]
"""Contents of the named paths of the tree."""


def is_triton(paths: Collection[str]) -> bool:
    """Whether a tree is a checkout of Triton rather than a repository of kernels."""
    return PACKAGE_MARK in paths and any(name in paths for name in ("setup.py", "python/setup.py"))


def python_part(tree: Mapping[str, E], installed: Collection[str]) -> dict[str, E]:
    """The Python part by its path in site-packages.

    `installed` holds the files of the installed package that it goes over, by the same kind of path: a
    folder of `third_party` counts where the installed package has it, since setup.py decides that.
    """
    folders = {str(parent) for name in installed for parent in PurePosixPath(name).parents}
    found = {}
    for path, entry in tree.items():
        place = place_of(path)
        if place is None:
            continue
        if path.startswith("third_party/") and _package_of(place) not in folders:
            continue
        found[place] = entry
    return found


def is_installed(path: str) -> bool:
    """Whether a path of the tree can be part of the installed package."""
    return place_of(path) is not None


def place_of(path: str) -> str | None:
    """Where setup.py installs a path of the tree, below site-packages."""
    for pattern, place in _PACKAGES:
        if match := pattern.fullmatch(path):
            return match.expand(place)
    return None


def _package_of(place: str) -> str:
    """`triton/backends/amd` of `triton/backends/amd/codegen/x.py`, `triton/profiler` of its files."""
    parts = place.split("/")
    depth = {"backends": 3, "profiler": 2}.get(parts[1], 4)
    return "/".join(parts[:depth])


def native_inputs(tree: Mapping[str, str], read: Read) -> dict[str, str]:
    """Path → content digest of every file that feeds the native part; `tree` holds git's blob names."""
    reach = cmake.reached(read([path for path in tree if PurePosixPath(path).name == "CMakeLists.txt"]))
    scripts = _scripts(tree, reach, read)
    rows = {path: blob for path, blob in tree.items() if _feeds(path, reach, scripts)}
    build_files = [path for path in (*_BUILD_FILES, *_PROJECT_FILES) if path in tree]
    for path, content in read(build_files).items():
        digest = _project_digest(content) if path in _PROJECT_FILES else _python_digest(content)
        rows[path] = digest
    return dict(sorted(rows.items()))


def _feeds(path: str, reach: CmakeReach, scripts: Collection[str]) -> bool:
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower()
    if path in reach.folders or path in _LLVM_PINS:
        return True
    if _is_for_people(pure):
        return False
    if cmake.is_beside(path) and not cmake.is_below(path, reach.linked_tests):
        return suffix in _HEADERS
    if suffix in (".py", ".pyi"):
        return path in scripts
    at_hand = not reach.has_cmake or len(pure.parts) == 1 or cmake.is_below(path, reach.folders)
    if place_of(path) is not None:
        # CMake adds the folder of a backend with its `backend` in it; `language` and `tools` it leaves alone
        return at_hand and suffix not in _DEVICE_LIBRARIES and not _INSTALLED_ONLY.match(path)
    return at_hand or suffix not in _UNITS or pure.parts[0] == "cmake"


def _is_for_people(path: PurePosixPath) -> bool:
    """Documents, and what belongs to git, editors and services: names that begin with a dot."""
    hidden = any(part.startswith(".") for part in path.parts)
    return hidden or path.name.lower().endswith(DOCUMENTS) or str(path) in _FOR_PEOPLE


def _scripts(tree: Collection[str], reach: CmakeReach, read: Read) -> set[str]:
    """Python files that the build runs: those that CMake names, and what they and setup.py import."""
    found: set[str] = set()
    pending = {path for path in tree if path in _BUILD_FILES or reach.scripts.fullmatch(path)}
    while pending:
        contents = read(sorted(pending))
        found |= pending
        wanted = {name for path, content in contents.items() for name in _imported(path, content)}
        pending = (wanted & set(tree)) - found
    return found - set(_BUILD_FILES)


def _imported(path: str, content: bytes) -> Iterator[str]:
    """Paths of the modules that a script may mean by its imports."""
    try:
        nodes = list(ast.walk(ast.parse(content)))
    except (SyntaxError, ValueError):
        return
    folder = PurePosixPath(path).parent
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            start = f"{node.module}." if node.module else ""
            modules += [start.rstrip("."), *(f"{start}{alias.name}" for alias in node.names)]
    for module in filter(None, modules):
        inside = module.replace(".", "/")
        for place in (folder, folder.parent, PurePosixPath("."), PurePosixPath("python")):
            yield from (str(place / f"{inside}.py"), str(place / inside / "__init__.py"))


def _python_digest(content: bytes) -> str:
    """Of what a build script does: comments, docstrings and layout do not count."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return hashlib.sha256(content).hexdigest()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_docstring(line)]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _project_digest(content: bytes) -> str:
    """Of the table `build-system`: the rest of a pyproject.toml is for other tools."""
    return hashlib.sha256(repr(build_system(content)).encode()).hexdigest()


def build_system(content: bytes) -> dict[str, object]:
    try:
        table = tomllib.loads(content.decode()).get("build-system", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return {"unreadable": hashlib.sha256(content).hexdigest()}
    return table if isinstance(table, dict) else {}


def llvm_pin(tree: Collection[str], read: Read) -> str | None:
    """The LLVM that the checkout asks for, as its file says."""
    path = next((name for name in _LLVM_PINS if name in tree), None)
    if path is None:
        return None
    text = read([path])[path].decode(errors="replace").strip()
    found = re.search(r"[0-9a-f]{8,40}", text)
    return found[0] if found else text[:80]
