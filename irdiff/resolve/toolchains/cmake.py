"""What the CMake of a checkout gets to: which folders it adds or names, and which files.

Pure, and by the text alone: a name with a variable in it means every folder that it can mean.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

# programs and tests: they link what the library is made of, the library is not made of them
_BESIDE = frozenset({"test", "tests", "unittest", "bin", "docs", "examples", "tutorials", "benchmarks"})


@dataclass(frozen=True, kw_only=True)
class CmakeReach:
    """What the CMake of a checkout gets to."""

    folders: frozenset[str]
    """Folders that are added or named, and files that are named."""
    linked_tests: frozenset[str]
    """Folders of tests or programs whose objects are linked into the library all the same."""
    scripts: re.Pattern[str]
    """Matches the path of each Python file that a text names, wherever its variables lead."""
    has_cmake: bool


_ADDED = re.compile(r"^\s*add_subdirectory\(\s*\"?([^\s\")]+)", re.MULTILINE)
_NAMED = re.compile(r"\$\{(?:\w*SOURCE_DIR|CMAKE_CURRENT_LIST_DIR)\}/([^\s\")$;]+)")
_SCRIPT = re.compile(r"((?:\$\{\w+\}|[\w./*-])+\.py)\b")
_VARIABLE = re.compile(r"\$\{\w+\}")
_LINKED = re.compile(r"\badd_triton_(?:library|plugin)\s*\(")


def reached(cmake: Mapping[str, bytes]) -> CmakeReach:
    """Follows `add_subdirectory` and `${..._SOURCE_DIR}/...` from the root's CMakeLists.txt on."""
    texts = {
        str(PurePosixPath(path).parent): content.decode(errors="replace") for path, content in cmake.items()
    }
    folders: set[str] = set()
    scripts: set[str] = set()
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
        if is_beside(folder) and not _LINKED.search(text):
            continue  # what tests and programs are made with makes no library
        scripts.update(map(_anywhere, _SCRIPT.findall(text)))
        for name in _NAMED.findall(text):
            # the variable is the root or this folder: both are taken, whichever exists
            folders.update({_joined(".", name.lstrip("/")), _joined(folder, name.lstrip("/"))})
    linked = {folder for folder in done if is_beside(folder) and _LINKED.search(texts[folder])}
    return CmakeReach(
        folders=frozenset(folders - {"."}),
        linked_tests=frozenset(linked),
        scripts=re.compile("|".join(sorted(scripts)) or "(?!)"),
        has_cmake="." in texts,
    )


def _anywhere(script: str) -> str:
    """A pattern of the paths that the name of a script can mean, in any folder: what stands before its last
    variable or `*` says nothing.
    """
    name = re.sub(r"^(?:\.{0,2}/)+", "", script)
    *before, last = re.split(r"\$\{\w+\}|\*", name)
    in_any_folder = not before or last.startswith("/")
    return ("(?:.*/)?" if in_any_folder else ".*") + re.escape(last.lstrip("/"))


def _joined(folder: str, name: str) -> str:
    return posixpath.normpath(posixpath.join(folder, name.rstrip("/")))


def _matching(name: str, texts: Mapping[str, str]) -> list[str]:
    """Folders with a CMakeLists.txt that a name with variables in it can mean."""
    if "${" not in name:
        return [name]
    pattern = re.compile("[^/]+".join(re.escape(part) for part in _VARIABLE.split(name)))
    return [folder for folder in texts if pattern.fullmatch(folder)]


def is_beside(path: str) -> bool:
    return not _BESIDE.isdisjoint(PurePosixPath(path).parts)


def is_below(path: str, folders: frozenset[str]) -> bool:
    return path in folders or any(str(parent) in folders for parent in PurePosixPath(path).parents)
