"""Why a build failed and what to do, read from what it printed."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TELLING = re.compile(
    r"\berror[: ]|CMake Error|^FAILED|\bfatal\b|Error:|undefined (?:reference|symbol)|No space left|Killed",
    re.IGNORECASE,
)
_PARAGRAPH_LINES = 6
_MAX_LINES = 12
_MAX_CHARACTERS = 240
_ANOTHER_LLVM = "LLVM_SYSPATH is not of the checkout's pin: take an LLVM that is, or a revision that fits it"
_PARTS = (
    ": give it a network, or the part: LLVM with LLVM_SYSPATH=DIR; JSON with JSON_SYSPATH=DIR, or no Proton "
    "with TRITON_BUILD_PROTON=OFF; no googletest with TRITON_APPEND_CMAKE_ARGS=-DTRITON_BUILD_UT=OFF; "
    "NVIDIA's tools below TRITON_HOME/.triton/nvidia"
)
_CAUSES = (
    (r"No space left", "free space, or name another cache folder: --cache DIR"),
    (
        r"Killed signal|signal: Killed|^Killed|out of memory|bad_alloc",
        "out of memory: fewer jobs, MAX_JOBS=2",
    ),
    (
        r"Requested an offline build but (?P<name>\w+) is not set",
        "set {name} to a folder, or unset TRITON_OFFLINE_BUILD",
    ),
    (
        r"downloading and extracting (?P<url>\S+)(?s:.{0,6000}?)(?:URLError|HTTPError|timed out|resol)",
        "the build wants to download {url}" + _PARTS,
    ),
    (
        r"(?i)urlopen|URLError|resolve host|service not known|name resolution",
        "the build wants a network" + _PARTS,
    ),
    (
        r"fatal error: '?(?P<name>(?:llvm|llvm-c|mlir|lld)/[\w./-]+)'?(?:: No such| file not)",
        "no {name}: " + _ANOTHER_LLVM,
    ),
    (
        r"fatal error: '?(?P<name>[\w./-]+)'?(?:: No such| file not)",
        "install the development package with {name}",
    ),
    (
        r'link interface of target "[^"]+" contains:\s+(?P<name>\w+::\w+)',
        "install the development package of {name}",
    ),
    (
        r"(?i)could not find.*(?:MLIR|LLVM|LLD)|find_package\((?:MLIR|LLD)",
        "LLVM_SYSPATH must name an LLVM with MLIR and lld: lib/cmake/mlir, lib/cmake/lld",
    ),
    (
        r"(?:No module named '|Could not find .{0,80}?\"?)(?P<name>pybind11|nanobind)",
        "{name} is one of the build's requirements: does pyproject.toml list it?",
    ),
    (
        r"error: .*\[-Werror,?-?W?[\w+=-]*\]",
        "warnings are errors: TRITON_APPEND_CMAKE_ARGS=-DCMAKE_CXX_FLAGS=-w lets them pass",
    ),
    (
        r"undefined symbol: (?P<name>\S+)",
        "nothing that was linked defines {name}: MLIR's archives and a shared libLLVM do not fit together",
    ),
    (r"error: (?:no member named|no type named|use of undeclared|.* marked 'override' but)", _ANOTHER_LLVM),
)
"""What a build prints, and what to try; the first that is found explains those after it."""


def first_errors(lines: Sequence[str]) -> list[str]:
    """The first telling lines of a build that failed, or its last ones where none tells."""
    telling: dict[str, None] = {}
    following = 0
    for line in lines:
        # what CMake complains of stands in the paragraph below its first line
        following = _PARAGRAPH_LINES if line.startswith("CMake Error") else following - 1
        if line.strip() and (_TELLING.search(line) or following > 0):
            telling[line.strip()[:_MAX_CHARACTERS]] = None
    return list(telling)[:_MAX_LINES] or [line[:_MAX_CHARACTERS] for line in lines[-8:]]


def what_to_try(lines: Sequence[str], revision: str) -> str:
    """The likely cure."""
    text = "\n".join(lines[-1500:])
    for pattern, hint in _CAUSES:
        if found := re.search(pattern, text, re.MULTILINE):
            return hint.format(**found.groupdict())
    return f"`irdiff toolchain doctor {revision}` checks what a build needs; the log has all of it"
