"""What a native build of a revision needs, checked in seconds: a build finds out in an hour."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.building import (
    compilers,
    kept_trees,
    line_counting,
    linked_llvm,
    offline_parts,
)
from irdiff.resolve.toolchains.building import precompiled_header as precompiled
from irdiff.resolve.toolchains.building.compilers import Compilers
from irdiff.resolve.toolchains.building.linked_llvm import LinkedLlvm
from irdiff.resolve.toolchains.checkout import Checkout

_NEEDED_DISK_BYTES = 6 << 30
"""A tree with its objects, the wheel, the environment and what ccache keeps; measured: 2.2 GB at -O1."""
_JOB_BYTES = 2 << 30
"""One compilation of a file that is heavy on MLIR; measured: 1.3 GB."""
_INCLUDE = re.compile(rb'^\s*#\s*include\s*["<]((?:llvm|llvm-c|mlir|lld)/[\w./-]+)[">]', re.MULTILINE)
_GENERATED = re.compile(r"\.inc$")
_SOURCES = (".h", ".hpp", ".cpp", ".cc", ".td")
_NOT_LINKED = re.compile(r"(?:^|/)(?:test|unittest|examples|bin)/")


class PrerequisiteState(StrEnum):
    FINE = "fine"
    NOTE = "note"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class Prerequisite:
    topic: str
    answer: PrerequisiteState
    text: str
    advice: str


@dataclass(frozen=True, kw_only=True)
class Readiness:
    findings: tuple[Prerequisite, ...]
    environment: Mapping[str, str]
    """Variables beside the caller's with which it would work."""

    @property
    def works(self) -> bool:
        return all(finding.answer is not PrerequisiteState.MISSING for finding in self.findings)

    def exports(self) -> list[str]:
        """The environment as lines for a shell."""
        lines = []
        for name, value in self.environment.items():
            quoted = f"{value.removesuffix(':$PATH')}:$PATH" if name == "PATH" else shlex.quote(value)
            lines.append(f"export {name}={quoted}")
        return lines


def examine(checkout: Checkout, config: Config) -> Readiness:
    caller = config.tool_environment
    llvm, findings = _llvm(checkout, caller)
    findings += _headers(checkout, llvm) if llvm else []
    findings += [*_compilers(caller, llvm), *_offline(checkout, caller), *_machine(config)]
    findings += [*_sources(checkout), *_cache(caller), _coverage(compilers.chosen(caller))]
    return Readiness(findings=tuple(findings), environment=recommended(caller, llvm))


def recommended(caller: Mapping[str, str], llvm: LinkedLlvm | None) -> dict[str, str]:
    """Variables for a quick build without downloads; what the caller set already is not said again."""
    wanted = {
        "TRITON_BUILD_PROTON": "OFF",
        "TRITON_BUILD_WITH_O1": "1",
        "TRITON_APPEND_CMAKE_ARGS": "-DTRITON_BUILD_UT=OFF -DCMAKE_CXX_FLAGS=-w",
        "MAX_JOBS": str(_jobs()),
    }
    if llvm is not None:
        wanted["LLVM_SYSPATH"] = str(llvm.folder)
        if (llvm.folder / "bin" / "clang++").exists() and (llvm.folder / "bin" / "ld.lld").exists():
            wanted["TRITON_BUILD_WITH_CLANG_LLD"] = "true"
            if (compilers.program("clang++", caller).major or 0) != llvm.major:
                wanted["PATH"] = f"{(llvm.folder / 'bin').resolve()}:$PATH"
    return {name: value for name, value in wanted.items() if name == "PATH" or name not in caller}


def _llvm(checkout: Checkout, caller: Mapping[str, str]) -> tuple[LinkedLlvm | None, list[Prerequisite]]:
    pin = (checkout.llvm or "none")[:12]
    if "LLVM_SYSPATH" not in caller:
        return _llvm_without_path(pin, caller)
    llvm = LinkedLlvm(folder=Path(caller["LLVM_SYSPATH"]))
    if not llvm.is_there:
        return None, [
            _missing(
                "LLVM", f"{llvm.folder} has no lib/cmake/llvm", "LLVM_SYSPATH must name an LLVM with MLIR"
            )
        ]
    findings = [_pin(llvm, pin)]
    for name in llvm.missing_packages():
        findings.append(
            _missing("LLVM", f"no lib/cmake/{name}", f"install the development package of {name}")
        )
    for name in llvm.missing_programs():
        findings.append(_missing("LLVM", f"no bin/{name}", "install LLVM's and MLIR's tools"))
    for name in llvm.missing_targets():
        findings.append(_missing("LLVM", f"built without the target {name}", "take another LLVM"))
    if llvm.is_shared:
        findings.append(
            _missing(
                "LLVM",
                "MLIR links one shared libLLVM: the library would miss symbols at import",
                f"irdiff toolchain prepare --llvm {llvm.folder}",
            )
        )
    return llvm, findings


def _llvm_without_path(pin: str, caller: Mapping[str, str]) -> tuple[LinkedLlvm | None, list[Prerequisite]]:
    kept = sorted(
        (offline_parts.home_of(caller) / ".triton" / "llvm").glob(f"llvm-{pin[:8]}*/lib/cmake/mlir")
    )
    if kept:
        llvm = LinkedLlvm(folder=kept[0].parents[2])
        return llvm, [_fine("LLVM", f"{llvm.title()}, downloaded before, of the pin {pin}")]
    others = linked_llvm.installed()
    advice = "give one with LLVM_SYSPATH=DIR, or let the build download it (it needs a network)"
    if others:
        folder = others[0].folder
        advice = f"{others[0].title()} is in {folder}: irdiff toolchain prepare --llvm {folder}"
    return None, [_missing("LLVM", f"the pin {pin} is not here, and LLVM_SYSPATH names no other", advice)]


def _pin(llvm: LinkedLlvm, pin: str) -> Prerequisite:
    if llvm.commit and pin.startswith(llvm.commit[:8]):
        return _fine("LLVM", f"{llvm.title()}, as pinned")
    said = "it is another commit" if llvm.commit else "it does not say its commit"
    return _note(
        "LLVM",
        f"{llvm.title()}; the checkout pins {pin}: {said}",
        "code may differ from a release's; both sides of a comparison link the same LLVM",
    )


def _headers(checkout: Checkout, llvm: LinkedLlvm) -> list[Prerequisite]:
    """Headers of LLVM that the sources include and the installed LLVM lacks, with who includes them."""
    entries = [
        checkout.tree[path]
        for path in checkout.native_paths
        if path in checkout.tree and path.endswith(_SOURCES) and not _NOT_LINKED.search(path)
    ]
    contents = repository.read(entries)
    lacking: dict[str, str] = {}
    names = {name.decode(): path for path, text in contents.items() for name in set(_INCLUDE.findall(text))}
    for name, path in names.items():
        if not _GENERATED.search(name) and not llvm.has_header(name) and name not in checkout.tree:
            lacking[name] = path
    if not lacking:
        return [_fine("headers", f"{len(names)} headers of LLVM are included, all are there")]
    return [
        _missing(
            "headers",
            f"{path} includes {name}, which this LLVM lacks",
            "another version, or moved: `irdiff toolchain prepare` knows those that have moved",
        )
        for name, path in sorted(lacking.items())
    ]


def _compilers(caller: Mapping[str, str], llvm: LinkedLlvm | None) -> Iterator[Prerequisite]:
    run = compilers.chosen(caller)
    for topic, found in (("compiler", run.cxx), ("linker", run.linker)):
        if found.path is None:
            yield _missing(topic, f"{found.command} is not found", "install it, or put its folder on PATH")
        else:
            yield _fine(topic, f"{found.version} ({found.path})")
    if llvm and not llvm.is_shared and not compilers.is_true(caller, "TRITON_BUILD_WITH_CLANG_LLD"):
        yield _note(
            "linker",
            "GNU ld takes archives in order and needs minutes and gigabytes for those of LLVM",
            "TRITON_BUILD_WITH_CLANG_LLD=true, with clang and lld on PATH",
        )
    if not Path("/usr/include/zlib.h").exists():
        yield _missing("zlib", "no zlib.h", "install zlib1g-dev (libz-devel)")


def wanted_tools(checkout: Checkout) -> list[offline_parts.Download]:
    """What the checkout's setup.py would download of NVIDIA's."""
    texts = {}
    for name in ("setup.py", "python/setup.py", "cmake/nvidia-toolchain-version.json"):
        if name in checkout.tree:
            texts[Path(name).name] = repository.read([checkout.tree[name]])[name].decode(errors="replace")
    return offline_parts.downloads(texts.get("setup.py", ""), texts.get("nvidia-toolchain-version.json", ""))


def _offline(checkout: Checkout, caller: Mapping[str, str]) -> Iterator[Prerequisite]:
    wanted = wanted_tools(checkout)
    lacking = offline_parts.missing(wanted, caller)
    if lacking:
        names = ", ".join(f"{one.title} {one.version}" for one in lacking)
        yield _missing(
            "NVIDIA's tools",
            f"not below {offline_parts.home_of(caller)}/.triton/nvidia: {names}",
            "irdiff toolchain prepare --tools triton==X takes them from a release; the build downloads them",
        )
    elif wanted:
        yield _fine("NVIDIA's tools", f"{len(wanted)} parts, all at hand")
    if caller.get("TRITON_BUILD_PROTON", "ON").upper() not in ("OFF", "0", "NO", "FALSE"):
        json_there = "JSON_SYSPATH" in caller or any(offline_parts.home_of(caller).glob(".triton/json/*"))
        if not json_there:
            yield _missing(
                "JSON", "Proton wants a JSON library", "TRITON_BUILD_PROTON=OFF, or JSON_SYSPATH=DIR"
            )
    if "TRITON_BUILD_UT=OFF" not in caller.get("TRITON_APPEND_CMAKE_ARGS", ""):
        yield _note("C++ tests", "they want googletest", "TRITON_APPEND_CMAKE_ARGS=-DTRITON_BUILD_UT=OFF")


def _machine(config: Config) -> Iterator[Prerequisite]:
    config.cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(config.cache).free
    text = f"{free / 1e9:.0f} GB free for {config.cache}"
    if free < _NEEDED_DISK_BYTES:
        yield _missing("disk", text, f"a build wants {_NEEDED_DISK_BYTES / 1e9:.0f} GB: --cache DIR")
    else:
        yield _fine("disk", text)
    jobs = int(config.tool_environment.get("MAX_JOBS") or 2 * (os.cpu_count() or 1))
    memory = _memory_bytes()
    text = f"{memory / 1e9:.0f} GB for {jobs} jobs, {memory / jobs / 1e9:.1f} GB each"
    if memory / jobs < _JOB_BYTES:
        yield _note("memory", text, f"MAX_JOBS={max(1, memory // _JOB_BYTES)}")
    else:
        yield _fine("memory", text)
    kept = kept_trees.list_all(config)
    if kept:
        size = sum(tree.size_bytes for tree in kept)
        yield _note("kept trees", f"{len(kept)}, {size / 1e9:.1f} GB", "the same build goes on there")


def _sources(checkout: Checkout) -> Iterator[Prerequisite]:
    lacking = repository.absent([entry for entry in checkout.tree.values() if entry.is_file])
    submodules = [entry.path for entry in checkout.tree.values() if entry.is_missing_submodule]
    if submodules:
        yield _missing(
            "sources", f"the submodule {submodules[0]} is not there", "git submodule update --init"
        )
    if lacking:
        yield _missing(
            "sources",
            f"not in the repository: {lacking[0].path}"
            + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""),
            "`git fetch --refetch` brings what a partial clone lacks; or a commit without these files",
        )
    if not lacking and not submodules:
        yield _fine("sources", f"{len(checkout.tree)} files")


def _cache(caller: Mapping[str, str]) -> Iterator[Prerequisite]:
    found = compilers.program("ccache", caller)
    if found.path is None:
        yield _note("ccache", "not installed: every build compiles every file", "install ccache")
        return
    yield _fine("ccache", found.version)
    run = compilers.chosen(caller)
    if precompiled.identity(caller, run) != "none":
        yield _fine("headers compiled once", "clang compiles the common headers of MLIR once")
    else:
        yield _note(
            "headers compiled once",
            "not with this compiler, or turned off",
            "with clang (TRITON_BUILD_WITH_CLANG_LLD=true) and LLVM_SYSPATH a file costs a third",
        )


def _coverage(run: Compilers) -> Prerequisite:
    """Whether `irdiff toolchain build --coverage` would work."""
    try:
        tools, can = line_counting.require(run), line_counting.has_runtime(run)
    except ToolchainError as error:
        return _note("coverage", f"{error.what}: `--coverage` does not work", error.hint)
    if not can:
        package = f"libclang-rt-{run.cxx.major}-dev"
        return _note(
            "coverage", "clang's runtime for profiles is missing", f"install {package} (compiler-rt)"
        )
    return _fine("coverage", f"clang counts lines, and {tools} reads its counters")


def _jobs() -> int:
    return max(1, min(len(os.sched_getaffinity(0)), _memory_bytes() // _JOB_BYTES))


def _memory_bytes() -> int:
    """What is available, not what is free."""
    try:
        found = re.search(r"MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return int(found[1]) * 1024 if found else 4 << 30


def _fine(topic: str, text: str) -> Prerequisite:
    return Prerequisite(topic=topic, answer=PrerequisiteState.FINE, text=text, advice="")


def _note(topic: str, text: str, advice: str) -> Prerequisite:
    return Prerequisite(topic=topic, answer=PrerequisiteState.NOTE, text=text, advice=advice)


def _missing(topic: str, text: str, advice: str) -> Prerequisite:
    return Prerequisite(topic=topic, answer=PrerequisiteState.MISSING, text=text, advice=advice)


def lines(findings: Iterable[Prerequisite]) -> list[str]:
    """One line a finding, and one below it for what to do."""
    rows = []
    for finding in findings:
        rows.append(f"{finding.answer.value:8} {finding.topic}: {finding.text}")
        if finding.advice:
            rows.append(f"         → {finding.advice}")
    return rows
