"""How a checkout of Triton becomes an installed package: its Python part, and what feeds its native part.

Pure. The Python part follows `package_dir` of Triton's setup.py (3.2 to 3.9): `python/triton` and, of each
backend, its folders `backend`, `language` and `tools`. The native part follows the checkout's own CMake:
the folders that its CMakeLists.txt add or name, and the files of kinds that a compiler reads. When in
doubt a file counts as native: a needless build costs time, a stale one would make the verdict false.
"""

from __future__ import annotations

import ast
import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TypeVar

PACKAGE_MARK = "python/triton/__init__.py"
_PACKAGES = (
    (re.compile(r"python/(triton/.+)"), r"\1"),
    (re.compile(r"third_party/proton/proton/(.+)"), r"triton/profiler/\1"),
    (re.compile(r"third_party/([^/]+)/backend/(.+)"), r"triton/backends/\1/\2"),
    (re.compile(r"third_party/[^/]+/language/(.+/.+)"), r"triton/language/extra/\1"),
    (re.compile(r"third_party/[^/]+/tools/(.+/.+)"), r"triton/tools/extra/\1"),
)
_NOT_INSTALLED = (".md", ".rst", ".txt", ".cc", ".cpp", ".td", ".mlir", ".gitignore", ".conf", ".in")

_BUILD_FILES = ("setup.py", "python/setup.py", "python/build_helpers.py")
_PROJECT_FILES = ("pyproject.toml", "python/pyproject.toml")
_LLVM_PINS = ("cmake/llvm-hash.txt", "cmake/llvm-info.json", "llvm-hash.txt")
_COMPILED = frozenset(
    {".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".hh", ".inc", ".def", ".td", ".cmake", ".in"}
    | {".s", ".ll", ".map", ".lds", ".ld", ".exports"}
)
_HEADERS = frozenset({".h", ".hpp", ".hh", ".inc", ".def", ".td"})
# programs and tests: they link what the library is made of, the library is not made of them
_BESIDE = frozenset({"test", "tests", "unittest", "bin", "docs", "examples", "tutorials", "benchmarks"})
_DOCUMENTS = (".md", ".rst", ".mlir")
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
        place = _installed_at(path)
        if place is None or place.endswith(_NOT_INSTALLED):
            continue
        if path.startswith("third_party/") and _package_of(place) not in folders:
            continue
        found[place] = entry
    return found


def is_installed(path: str) -> bool:
    """Whether a path of the tree can be part of the installed package."""
    place = _installed_at(path)
    return place is not None and not place.endswith(_NOT_INSTALLED)


def _installed_at(path: str) -> str | None:
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
    cmake = read([path for path in tree if PurePosixPath(path).name == "CMakeLists.txt"])
    reach = reached(cmake)
    rows = {path: blob for path, blob in tree.items() if _feeds(path, reach)}
    build_files = [path for path in (*_BUILD_FILES, *_PROJECT_FILES) if path in tree]
    for path, content in read(build_files).items():
        digest = _project_digest(content) if path in _PROJECT_FILES else _python_digest(content)
        rows[path] = digest
    return dict(sorted(rows.items()))


@dataclass(frozen=True, kw_only=True)
class Reach:
    """What the CMake of a checkout gets to."""

    folders: frozenset[str]
    """Folders that are added or named, and files that are named."""
    linked_tests: frozenset[str]
    """Folders of tests or programs whose objects are linked into the library all the same."""
    has_cmake: bool


_ADDED = re.compile(r"^\s*add_subdirectory\(\s*\"?([^\s\")]+)", re.MULTILINE)
_NAMED = re.compile(r"\$\{(?:\w*SOURCE_DIR|CMAKE_CURRENT_LIST_DIR)\}/([^\s\")$;]+)")
_SCRIPT = re.compile(r"([\w./-]+\.py)\b")
_VARIABLE = re.compile(r"\$\{\w+\}")
_LINKED = re.compile(r"\badd_triton_(?:library|plugin)\s*\(")


def reached(cmake: Mapping[str, bytes]) -> Reach:
    """Follows `add_subdirectory` and `${..._SOURCE_DIR}/...` from the root's CMakeLists.txt on."""
    texts = {
        str(PurePosixPath(path).parent): content.decode(errors="replace") for path, content in cmake.items()
    }
    folders: set[str] = set()
    done: set[str] = set()
    pending = ["."]
    while pending:
        folder = pending.pop()
        if folder in done or folder not in texts:
            continue
        done.add(folder)
        text = texts[folder]
        for name in _ADDED.findall(text):
            added = _matching(_joined(folder, name), texts)
            folders.update(added)
            pending.extend(added)
        for name in (*_NAMED.findall(text), *_SCRIPT.findall(text)):
            # the variable is the root or this folder: both are taken, whichever exists
            folders.update({_joined(".", name.lstrip("/")), _joined(folder, name.lstrip("/"))})
    linked = {folder for folder in done if _is_beside(folder) and _LINKED.search(texts[folder])}
    return Reach(folders=frozenset(folders - {"."}), linked_tests=frozenset(linked), has_cmake="." in texts)


def _joined(folder: str, name: str) -> str:
    return str(PurePosixPath(folder, name.rstrip("/")))


def _matching(name: str, texts: Mapping[str, str]) -> list[str]:
    """Folders with a CMakeLists.txt that a name with variables in it can mean."""
    if "${" not in name:
        return [name]
    pattern = re.compile("[^/]+".join(re.escape(part) for part in _VARIABLE.split(name)))
    return [folder for folder in texts if pattern.fullmatch(folder)]


def _feeds(path: str, reach: Reach) -> bool:
    pure = PurePosixPath(path)
    suffix = pure.suffix.lower()
    if _INSTALLED_ONLY.match(path) or path.endswith(_DOCUMENTS):
        return False
    if path in _LLVM_PINS or pure.parts[0] == "cmake":
        return True
    if _is_beside(path) and not _is_below(path, reach.linked_tests):
        return suffix in _HEADERS
    if suffix == ".py":
        return path in reach.folders and path not in _BUILD_FILES
    at_hand = not reach.has_cmake or len(pure.parts) == 1 or _is_below(path, reach.folders)
    return at_hand and (suffix in _COMPILED or pure.name == "CMakeLists.txt")


def _is_beside(path: str) -> bool:
    return not _BESIDE.isdisjoint(PurePosixPath(path).parts)


def _is_below(path: str, folders: frozenset[str]) -> bool:
    return path in folders or any(str(parent) in folders for parent in PurePosixPath(path).parents)


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
