"""Why a build failed, and what to do: read from what it printed, the cause before its consequences."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_TELLING = re.compile(
    r"\berror[: ]|CMake Error|^FAILED|\bfatal\b|Error:|undefined (?:reference|symbol)|No space left|Killed",
    re.IGNORECASE,
)
_PARAGRAPH_LINES = 6
_MAX_LINES = 12
_MAX_CHARACTERS = 240


@dataclass(frozen=True, kw_only=True)
class _FailureCause:
    pattern: re.Pattern[str]
    hint: Callable[[re.Match[str]], str]


def last_errors(lines: Sequence[str]) -> list[str]:
    """The telling lines of a build that failed, or its last ones where none tells."""
    telling: list[str] = []
    following = 0
    for line in lines:
        # what CMake complains of stands in the paragraph below its first line
        following = _PARAGRAPH_LINES if line.startswith("CMake Error") else following - 1
        if line.strip() and (_TELLING.search(line) or following > 0):
            telling.append(line.strip()[:_MAX_CHARACTERS])
    return _without_repetitions(telling)[-_MAX_LINES:] or [line[:_MAX_CHARACTERS] for line in lines[-8:]]


def what_to_try(lines: Sequence[str], revision: str) -> str:
    """The first cause that is known, in the order of the table: an early one explains those after it."""
    text = "\n".join(lines[-1500:])
    for cause in _CAUSES:
        if found := cause.pattern.search(text):
            return cause.hint(found)
    return f"`irdiff toolchain doctor {revision}` checks what a build needs; the log has all of it"


def _without_repetitions(lines: list[str]) -> list[str]:
    return [line for index, line in enumerate(lines) if line not in lines[:index]]


def _says(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _: text


def _download(found: re.Match[str]) -> str:
    """Names what provides the file that the build wanted to fetch."""
    url = found["url"]
    if "llvm" in url:
        return (
            "the build wants to download LLVM: give one of the checkout's pin with LLVM_SYSPATH=DIR; from a "
            "packaged LLVM with shared libraries `irdiff toolchain prepare` makes such a folder"
        )
    if "nlohmann" in url or "json" in url:
        return (
            "the build wants to download a JSON library for Proton: give it with JSON_SYSPATH=DIR, or build "
            "without Proton: TRITON_BUILD_PROTON=OFF"
        )
    if "googletest" in url:
        return "only C++ tests need googletest: TRITON_APPEND_CMAKE_ARGS=-DTRITON_BUILD_UT=OFF"
    if name := re.search(r"cuda_(\w+?)-linux", url):
        return (
            f"the build wants to download NVIDIA's {name[1]}: put its archive's folder below "
            "TRITON_HOME/.triton/nvidia; `irdiff toolchain prepare --tools triton==X` takes it from a release"
        )
    return f"the build wants to download {url}, and cannot"


def _missing_header(found: re.Match[str]) -> str:
    name = found["name"]
    package = {"mlir": "MLIR", "lld": "lld", "llvm": "LLVM", "llvm-c": "LLVM"}.get(name.partition("/")[0])
    if package:
        return (
            f"the {package} that LLVM_SYSPATH names has no {name}: it is of another version than the "
            f"checkout's pin, or its development package for {package} is not installed"
        )
    return f"install the development package with {name}"


def _unknown_target(found: re.Match[str]) -> str:
    return (
        f"the LLVM refers to {found['target']}, whose development package is not installed; "
        "`irdiff toolchain prepare` leaves out what Triton does not use"
    )


def _undefined_at_import(found: re.Match[str]) -> str:
    return (
        f"the library was linked without what defines {found['symbol'][:80]}: MLIR's archives and a shared "
        "libLLVM do not make one whole; `irdiff toolchain prepare` makes an LLVM_SYSPATH of archives alone"
    )


_OFFLINE = re.compile(r"Requested an offline build but (?P<name>\w+) is not set")
_CAUSES = (
    _FailureCause(
        pattern=re.compile("No space left"),
        hint=_says("free space, or name another cache folder: --cache DIR"),
    ),
    _FailureCause(
        pattern=re.compile(r"Killed signal|signal: Killed|^Killed|out of memory|bad_alloc", re.MULTILINE),
        hint=_says("the machine ran out of memory: try fewer jobs, as in MAX_JOBS=2"),
    ),
    _FailureCause(
        pattern=_OFFLINE, hint=lambda found: f"set {found['name']} to a folder, or unset TRITON_OFFLINE_BUILD"
    ),
    _FailureCause(
        pattern=re.compile(
            r"downloading and extracting (?P<url>\S+)(?s:.{0,6000}?)"
            r"(?i:URLError|HTTPError|urlopen|timed out|resolve|service not known|name resolution)"
        ),
        hint=_download,
    ),
    _FailureCause(
        pattern=re.compile(r"(?P<url>https?://\S+)(?s:.{0,2000}?)(?:Could not resolve|Failed to clone)"),
        hint=_download,
    ),
    _FailureCause(
        pattern=re.compile(r"fatal error: '?(?P<name>[\w./-]+\.h)'?(?:: No such file| file not found)"),
        hint=_missing_header,
    ),
    _FailureCause(
        pattern=re.compile(r'link interface of target "[^"]+" contains:\s+(?P<target>\w+::\w+)'),
        hint=_unknown_target,
    ),
    _FailureCause(
        pattern=re.compile(
            r"FileCheck.{0,80}(?:does not exist|No such file)|configure_file.{0,400}FileCheck", re.DOTALL
        ),
        hint=_says("LLVM_SYSPATH/bin has no FileCheck: install the package of LLVM's test tools"),
    ),
    _FailureCause(
        pattern=re.compile(r"(?i)could not find.*(MLIR|LLVM|LLD)|find_package\((MLIR|LLD)"),
        hint=_says(
            "LLVM_SYSPATH must name an LLVM of the checkout's pin with MLIR and lld: "
            "lib/cmake/mlir, lib/cmake/lld"
        ),
    ),
    _FailureCause(
        pattern=re.compile(r"(?:No module named '|Could not find .{0,80}?\"?)(?P<name>pybind11|nanobind)"),
        hint=lambda found: (
            f"{found['name']} is one of the build's requirements: does pyproject.toml list it? "
            f"{found['name'].upper()}_SYSPATH names another"
        ),
    ),
    _FailureCause(
        pattern=re.compile(r"error: .*\[-Werror,?-?W?[\w+=-]*\]"),
        hint=_says(
            "another compiler or LLVM than the checkout's own warns of more, and warnings are errors: "
            "TRITON_APPEND_CMAKE_ARGS=-DCMAKE_CXX_FLAGS=-w"
        ),
    ),
    _FailureCause(pattern=re.compile(r"undefined symbol: (?P<symbol>\S+)"), hint=_undefined_at_import),
    _FailureCause(
        pattern=re.compile(
            r"error: (?:no member named|no type named|use of undeclared|.* marked 'override' but)"
        ),
        hint=_says(
            "the LLVM is of another version than the checkout's pin: take a revision that fits it, "
            "or put the one change that is needed on a branch below base and head"
        ),
    ),
    _FailureCause(
        pattern=re.compile(r"(?i)urlopen|URLError|resolve host|service not known|failure in name"),
        hint=_says(
            "the build wants to download something: `irdiff toolchain doctor` lists what can be given"
        ),
    ),
)
