"""Native builds: made by the checkout's own build, once a native digest and build environment.

The exported tree is built into a wheel with its build requirements installed in an environment that all
builds with the same requirements share (a compiler cache sees the same paths then), and the wheel is
installed. The tree lies inside the environment being made, so a build that does not end leaves nothing.
"""

from __future__ import annotations

import platform
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import environments, identity, repository, source_parts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.environments import Environment
from irdiff.store import key_of

Progress = Callable[[str], None]

# What decides what is built. Names of Triton's setup.py and CMake, and those of compilers.
_DECISIVE = re.compile(
    r"TRITON_\w+|LLVM_\w+|MLIR_\w+|JSON_SYSPATH|PYBIND11_SYSPATH|NANOBIND_\w+|CUDA(_HOME|_PATH|TOOLKIT_\w+)?|ROCM_PATH"
    r"|CC|CXX|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|CMAKE_\w+|DEBUG|REL_WITH_DEB_INFO|SOURCE_DATE_EPOCH|ARCHFLAGS"
)
# What only decides how, or when Triton runs.
_INDIFFERENT = re.compile(
    r"TRITON_(HOME|CACHE_\w+|DUMP_\w+|OVERRIDE_\w+|PARALLEL_LINK_JOBS|BUILD_WITH_CCACHE|OFFLINE_BUILD|INTERPRET"
    r"|ALWAYS_COMPILE|PRINT_\w+|KERNEL_\w+)|CMAKE_(BUILD_PARALLEL_LEVEL|COLOR_\w+)|LLVM_IR_ENABLE_DUMP|MLIR_ENABLE_\w+"
)
_RECORDED = re.compile(r"MAX_JOBS|CCACHE_\w+|SCCACHE_\w+|MAKEFLAGS|NINJA_STATUS|PATH")
_STEP = re.compile(r"^\[(\d+)/(\d+)\]\s+(.*)")
_TELLING = re.compile(
    r"\berror[: ]|CMake Error|^FAILED|\bfatal\b|Error:|undefined reference|No space left|Killed", re.I
)


@dataclass(frozen=True, kw_only=True)
class BuildKey:
    """What a native build is known by, and what it is made of."""

    native_digest: str
    environment: Mapping[str, str]
    """Variables and versions that decide what is built."""

    @property
    def name(self) -> str:
        key = key_of("native-build/1", self.native_digest, sorted(self.environment.items()))
        return f"native-{key[:20]}"


def key_of_build(checkout: Checkout, config: Config) -> BuildKey:
    caller = config.tool_environment
    chosen = {
        name: value
        for name, value in caller.items()
        if _DECISIVE.fullmatch(name) and not _INDIFFERENT.fullmatch(name)
    }
    chosen["python"] = f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"
    chosen["machine"] = f"{platform.system()} {platform.machine()}"
    chosen["c++"] = _version_of(caller.get("CXX", "c++"), caller)
    if "LLVM_SYSPATH" in caller:
        chosen["llvm"] = _llvm_at(Path(caller["LLVM_SYSPATH"]))
    return BuildKey(native_digest=checkout.native_digest, environment=chosen)


def find(checkout: Checkout, config: Config) -> Environment | None:
    return environments.find(key_of_build(checkout, config).name, config)


def build(checkout: Checkout, config: Config, progress: Progress) -> Environment:
    """The environment with the native part of a revision. Raises ToolchainError with the last errors."""
    key = key_of_build(checkout, config)
    if environments.find(key.name, config) is None:
        progress(f"{checkout.label}: native build {key.name}")

    def install(path: Path, log: Path) -> dict[str, Any]:
        requirements = _requirements(checkout)
        tools = _tools(requirements, config)
        source, wheels = path / "source", path / "wheels"
        repository.export(checkout.snapshot, source, config)
        run = _Build(label=checkout.label, source=source, wheels=wheels, tools=tools, log=log)
        _make_wheel(run, config, progress)
        wheel = next(wheels.glob("*.whl"))
        python = path / "bin" / "python"
        environments.uv(
            ["pip", "install", "--compile-bytecode", "--python", python, wheel, "setuptools<81"], log, config
        )
        shutil.rmtree(source)
        shutil.rmtree(wheels)
        site = next(path.glob("lib/python3*/site-packages"))
        part = set(checkout.python_part(checkouts.installed_files(site)))
        toolchain = identity.identify(checkout.label, str(python), path, config)
        recorded = {n: v for n, v in config.tool_environment.items() if _RECORDED.fullmatch(n)}
        return {
            "spec": f"native part of {checkout.label}",
            "version": toolchain.version,
            "digest": toolchain.digest,
            "revision": checkout.snapshot.commit or checkout.snapshot.tree,
            "native_digest": checkout.native_digest,
            "llvm": checkout.llvm,
            "environment": {**recorded, **key.environment},
            "requirements": requirements,
            "python_files": sorted(part),
        }

    return environments.make(key.name, config, install)


def _requirements(checkout: Checkout) -> list[str]:
    """What the checkout's own pyproject.toml wants for a build."""
    for name in ("pyproject.toml", "python/pyproject.toml"):
        if name in checkout.tree:
            content = repository.read([checkout.tree[name]])[name]
            wanted = source_parts.build_system(content).get("requires")
            if isinstance(wanted, list):
                return sorted({*map(str, wanted), "wheel"})
    return ["setuptools", "wheel"]


def _tools(requirements: list[str], config: Config) -> Environment:
    def install(path: Path, log: Path) -> dict[str, Any]:
        environments.uv(
            ["pip", "install", "--compile-bytecode", "--python", path / "bin" / "python", *requirements],
            log,
            config,
        )
        return {
            "spec": "build requirements: " + ", ".join(requirements),
            "version": "",
            "digest": "",
            "requirements": requirements,
        }

    try:
        return environments.make(f"build-tools-{key_of(requirements)[:12]}", config, install)
    except ToolchainError as error:
        raise ToolchainError(
            f"the build requirements {', '.join(requirements)} cannot be installed:\n{error.what}",
            hint="is the package index within reach? UV_INDEX_URL or UV_FIND_LINKS name another",
            log_path=error.log_path,
        ) from error


@dataclass(frozen=True, kw_only=True)
class _Build:
    label: str
    source: Path
    wheels: Path
    tools: Environment
    log: Path


def _make_wheel(build: _Build, config: Config, progress: Progress) -> None:
    import uv as uv_package

    source, wheels, tools = build.source, build.wheels, build.tools
    project = source if (source / "setup.py").exists() else source / "python"
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        if step := _STEP.match(line):
            progress(f"{build.label}: native build {step[1]}/{step[2]} {step[3][:70]}")

    words = ["build", "--wheel", "--no-build-isolation", "--no-config", "--python", tools.python]
    code = process.run_logged(
        [uv_package.find_uv_bin(), *words, "--out-dir", wheels, project],
        log=build.log,
        env=_build_environment(source, tools, config),
        cwd=project,
        on_line=on_line,
    )
    if code or not list(wheels.glob("*.whl")):
        raise ToolchainError(
            f"{build.label}: its native build failed:\n" + "\n".join(_last_errors(lines)),
            hint=_what_to_try(lines),
            log_path=str(build.log),
        )


def _build_environment(source: Path, tools: Environment, config: Config) -> dict[str, str]:
    """The caller's, with the build requirements on the path and paths that compiler caches may ignore."""
    caller = dict(config.tool_environment)
    defaults = {
        "CCACHE_BASEDIR": str(source),
        "CCACHE_NOHASHDIR": "1",
        "GIT_CEILING_DIRECTORIES": str(source.parent),  # the export is no repository, whatever is above
        "UV_CACHE_DIR": str(config.cache / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    caller.pop("VIRTUAL_ENV", None)
    caller.pop("PYTHONPATH", None)
    caller["PATH"] = f"{Path(tools.python).parent}:{caller.get('PATH', '')}"
    if shutil.which("ccache", path=caller["PATH"]):
        caller.setdefault("TRITON_BUILD_WITH_CCACHE", "true")
    return {**defaults, **caller}


def _last_errors(lines: list[str]) -> list[str]:
    telling: list[str] = []
    following = 0
    for line in lines:
        # what CMake complains of stands in the paragraph below its first line
        following = 6 if line.startswith("CMake Error") else following - 1
        if line.strip() and (_TELLING.search(line) or following > 0):
            telling.append(line.strip()[:240])
    return telling[-12:] or [line[:240] for line in lines[-8:]]


def _what_to_try(lines: list[str]) -> str:
    text = "\n".join(lines[-400:])
    if "No space left" in text:
        return "free space, or name another cache folder: --cache DIR"
    if re.search(r"Killed|out of memory|bad_alloc", text):
        return "the machine ran out of memory: try fewer jobs, as in MAX_JOBS=2"
    if re.search(r"(?i)urlopen|URLError|resolve host|service not known|failure in name", text):
        return "the build wants to download LLVM or a tool: give an LLVM with LLVM_SYSPATH=DIR"
    if re.search(r"(?i)could not find.*(MLIR|LLVM)|find_package\(MLIR", text):
        return "LLVM_SYSPATH must name an LLVM of the checkout's pin with MLIR (its lib/cmake/mlir)"
    return "read the log; a native build needs what the checkout's README lists (a C++ compiler, zlib, …)"


def _version_of(compiler: str, environment: Mapping[str, str]) -> str:
    try:
        return process.run([*compiler.split(), "--version"], env=environment, timeout_s=20).splitlines()[0]
    except (process.CommandFailed, OSError, IndexError, ValueError):
        return "none"


def _llvm_at(folder: Path) -> str:
    """Which LLVM a folder holds: the version and build of its CMake description."""
    description = folder / "lib" / "cmake" / "llvm" / "LLVMConfig.cmake"
    try:
        stat = description.stat()
        return key_of(description.read_text(errors="replace"), stat.st_mtime_ns)[:16]
    except OSError:
        return "none"
