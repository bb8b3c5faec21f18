"""What each file of a checkout of Triton is for: the native part, the Python part, or neither.

By the path alone. Every file is native except two kinds: what setup.py installs as it is (the Python part),
and what no compiler is made of (tests, tutorials, examples, benchmarks, documents, the package
`triton_kernels`, and names that begin with a dot). Sources of C++, tables and CMake are native wherever
they lie, because a build may link or include them, and so is a file whose name stands in a CMake file. A
needless build costs time; a stale one makes the verdict false.

The Python part follows `package_dir` of Triton's setup.py (3.2 to 3.9): `python/triton` and, of each
backend, its folders `backend`, `language` and `tools` with everything in them. A file may belong to both
parts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
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
_COMPILED = re.compile(
    r".*\.(?:c|cc|cpp|cxx|cu|hip|s|h|hh|hpp|hxx|inc|def|td|pdll|cmake|in)|(?:.*/)?CMakeLists\.txt"
)
_NAME_IN_CMAKE = re.compile(r"(?:\$\{\w+\}|[\w.*+-])+\.\w+")
_ANYTHING = re.compile(r"\$\{\w+\}|\*")

E = TypeVar("E")


def is_triton(paths: Collection[str]) -> bool:
    """Whether a tree is a checkout of Triton rather than a repository of kernels."""
    return PACKAGE_MARK in paths and any(name in paths for name in ("setup.py", "python/setup.py"))


def is_cmake(path: str) -> bool:
    return path.endswith((".cmake", "CMakeLists.txt"))


def names_in_cmake(texts: Iterable[str]) -> re.Pattern[str]:
    """Matches the names of files that CMake names; a variable or `*` in a name stands for any text."""
    names = {name for text in texts for name in _NAME_IN_CMAKE.findall(text)}
    patterns = {".*".join(map(re.escape, _ANYTHING.split(name))) for name in names}
    return re.compile("|".join(sorted(patterns)) or "(?!)")


def is_native(path: str, named: re.Pattern[str]) -> bool:
    """Whether a build of the native part may read the file; `named` as of `names_in_cmake`."""
    if _COMPILED.fullmatch(path.lower()) or is_cmake(path) or named.fullmatch(PurePosixPath(path).name):
        return True
    return place_of(path) is None and purpose(path) is None


def purpose(path: str) -> str | None:
    """What a file is for that no compiler is made of; None for any other."""
    pure = PurePosixPath(path)
    folders = set(pure.parts[:-1])
    if any(part.startswith(".") for part in pure.parts):
        return "other files"
    if folders & {"tutorials", "examples"}:
        return "tutorials"
    if folders & {"test", "tests", "unittest", "bench", "benchmark", "benchmarks"}:
        return "tests"
    if "triton_kernels" in folders:
        return "kernels of triton_kernels, not compared"
    documents = (".md", ".rst", ".mlir", ".ipynb", ".pdf", ".png", ".svg", ".jpg", ".gif")
    return "documents" if folders & {"docs", "doc"} or path.lower().endswith(documents) else None


def python_part(tree: Mapping[str, E], installed: Collection[str]) -> dict[str, E]:
    """The Python part by its path in site-packages.

    `installed` holds the files of the installed package that it goes over, by the same kind of path: a
    folder of `third_party` counts where the installed package has it, since setup.py decides that.
    """
    folders = {str(parent) for name in installed for parent in PurePosixPath(name).parents}
    places = {path: place for path in tree if (place := place_of(path)) is not None}
    return {
        place: tree[path]
        for path, place in places.items()
        if not path.startswith("third_party/") or _package_of(place) in folders
    }


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
