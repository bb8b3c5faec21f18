"""Native builds: made by the checkout's own build, once for each native digest and build environment.

The exported tree is built into a wheel, with its build requirements in an environment that all builds with
the same requirements share (ccache sees the same paths then), and the wheel is installed. A build that does
not end leaves its tree, and the same build goes on there (`building/kept_trees.py`).

Two builds that give the same bytes are one toolchain, because a toolchain is known by its content. ccache
gives compilers paths relative to the tree, so the folder of a build does not get into its bytes.
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
from irdiff.errors import BuildInterrupted, ToolchainError
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import environments, identity
from irdiff.resolve.toolchains.building import compiler, failures, kept_trees, line_counting
from irdiff.resolve.toolchains.building.build_progress import BuildProgress
from irdiff.resolve.toolchains.building.kept_trees import BuildTree
from irdiff.resolve.toolchains.building.line_counting import CountedUnits
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


@dataclass(frozen=True, kw_only=True)
class BuildKey:
    """What a native build is known by."""

    native_digest: str
    environment: Mapping[str, str]
    """Variables and versions that decide what is built."""

    @property
    def name(self) -> str:
        key = key_of("native-build/2", self.native_digest, sorted(self.environment.items()))
        return f"native-{key[:20]}"


def key_of_build(checkout: Checkout, config: Config, counted: CountedUnits | None = None) -> BuildKey:
    """With `counted` that of a build that counts lines, which is never taken for one that does not."""
    caller = config.tool_environment
    decisive = {
        name: value
        for name, value in caller.items()
        if _DECISIVE.fullmatch(name) and not _INDIFFERENT.fullmatch(name)
    }
    decisive["python"] = (
        f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"
    )
    decisive["machine"] = f"{platform.system()} {platform.machine()}"
    decisive["c++"] = compiler.chosen(caller).version
    if "LLVM_SYSPATH" in caller:
        folder = Path(caller["LLVM_SYSPATH"])
        decisive["llvm"] = compiler.llvm_title(folder)
        decisive["llvm state"] = compiler.llvm_identity(folder)
    if counted:
        decisive["coverage"] = counted.digest
    return BuildKey(native_digest=checkout.native_digest, environment=decisive)


def find(checkout: Checkout, config: Config, counted: CountedUnits | None = None) -> Environment | None:
    return environments.find(key_of_build(checkout, config, counted).name, config)


def build(
    checkout: Checkout, config: Config, progress: Progress, counted: CountedUnits | None = None
) -> Environment:
    """The environment with the native part of a revision. Raises ToolchainError with the first errors."""
    key = key_of_build(checkout, config, counted)
    if environments.find(key.name, config) is None:
        what = f", which counts the lines of {len(counted.units)} files" if counted else ""
        progress(f"{checkout.label}: native build {key.name}{what}")

    def install(path: Path, log: Path) -> dict[str, Any]:
        tools = _tools(checkouts.build_requirements(checkout), config)
        tree = kept_trees.prepare(key.name, checkout.snapshot, config)
        run = _Build(checkout=checkout, tree=tree, tools=Path(tools.python), log=log, counted=counted)
        try:
            return {**_installed(run, path, config, progress), "environment": dict(key.environment)}
        except BaseException as error:
            kept_trees.remove_beyond(kept_trees.LIMIT, config)
            if isinstance(error, KeyboardInterrupt):
                raise BuildInterrupted(
                    f"what was built is kept, and the same build goes on there: {tree.path}"
                ) from None
            raise

    made = environments.make(key.name, config, install, waiting=progress)
    kept_trees.remove(key.name, config)
    return made


@dataclass(frozen=True, kw_only=True)
class _Build:
    checkout: Checkout
    tree: BuildTree
    tools: Path
    """The interpreter of the environment that holds the build requirements."""
    log: Path
    counted: CountedUnits | None


def _tools(requirements: list[str], config: Config) -> Environment:
    def install(path: Path, log: Path) -> dict[str, Any]:
        environments.install(path / "bin" / "python", requirements, log, config)
        return {"spec": "build requirements: " + ", ".join(requirements), "version": "", "digest": ""}

    try:
        return environments.make(f"build-tools-{key_of(requirements)[:12]}", config, install)
    except ToolchainError as error:
        raise ToolchainError(
            f"the build requirements {', '.join(requirements)} cannot be installed:\n{error.what}",
            hint="is the package index within reach? UV_INDEX_URL or UV_FIND_LINKS name another",
            log_path=error.log_path,
        ) from error


def _installed(build: _Build, path: Path, config: Config, progress: Progress) -> dict[str, Any]:
    """Builds the wheel, installs it in the environment at `path`, and returns what is to be kept of it."""
    wheel = _make_wheel(build, config, progress)
    python, checkout = path / "bin" / "python", build.checkout
    environments.install(python, [wheel, "setuptools<81"], build.log, config)
    site = next(path.glob("lib/python3*/site-packages"))
    try:
        toolchain = identity.identify(checkout.label, str(python), path, config)
    except ToolchainError as error:
        raise ToolchainError(
            f"{checkout.label}: its wheel was built but does not start: {wheel}\n{error.what}",
            hint=failures.what_to_try([error.what], checkout.snapshot.spec),
            log_path=str(build.log),
        ) from error
    return {
        "spec": f"native part of {checkout.label}",
        "version": toolchain.version,
        "digest": toolchain.digest,
        "revision": checkout.snapshot.commit or checkout.snapshot.tree,
        "python_files": sorted(checkout.python_part(checkouts.installed_files(site))),
        "counts": list(build.counted.units) if build.counted else [],
    }


def _make_wheel(build: _Build, config: Config, progress: Progress) -> Path:
    import uv as uv_package

    label, source = build.checkout.label, build.tree.source
    project = source if (source / "setup.py").exists() else source / "python"
    statistics = build.tree.path / "ccache-statistics"
    shown = BuildProgress(label, progress, statistics)
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        shown.on_line(line)

    if build.tree.continues:
        progress(f"{label}: goes on where an earlier build ended: {build.tree.path}")
    statistics.unlink(missing_ok=True)
    words: list[str | Path] = [
        "build",
        "--wheel",
        "--no-build-isolation",
        "--no-config",
        "--python",
        build.tools,
    ]
    code = process.run_logged(
        [uv_package.find_uv_bin(), *words, "--out-dir", build.tree.wheels, project],
        log=build.log,
        env={**_build_environment(build, config), "CCACHE_STATSLOG": str(statistics)},
        cwd=project,
        on_line=on_line,
        on_tick=shown.on_tick,
    )
    wheel = build.tree.wheel()
    if code or wheel is None:
        raise ToolchainError(
            f"{label}: its native build failed:\n"
            + "\n".join(failures.first_errors(lines))
            + f"\nwhat was built is kept, and the same build goes on there: {build.tree.path}",
            hint=failures.what_to_try(lines, build.checkout.snapshot.spec),
            log_path=str(build.log),
        )
    return wheel


def _build_environment(build: _Build, config: Config) -> dict[str, str]:
    """The caller's, with the build requirements on the path and paths that compiler caches may ignore."""
    caller = dict(config.tool_environment)
    source = build.tree.source
    stored = build.tree.path / "wheel.cfg"
    stored.write_text("[bdist_wheel]\ncompression = stored\n", encoding="utf-8")
    defaults = {
        "CCACHE_BASEDIR": str(source.resolve()),  # as CMake spells it, where a link leads here
        "CCACHE_NOHASHDIR": "1",
        "GIT_CEILING_DIRECTORIES": str(source.parent),  # the export is no repository, whatever is above
        "DIST_EXTRA_CONFIG": str(stored),  # the wheel is unpacked at once: packing half a gigabyte takes 12 s
        "UV_CACHE_DIR": str(config.cache / "uv"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    caller.pop("VIRTUAL_ENV", None)
    caller.pop("PYTHONPATH", None)
    caller["PATH"] = f"{build.tools.parent}:{caller.get('PATH', '')}"
    if shutil.which("ccache", path=caller["PATH"]):
        caller.setdefault("TRITON_BUILD_WITH_CCACHE", "true")
    if build.counted:
        folder = build.tree.path / "counting"
        caller |= line_counting.prepare(build.counted, folder, source, compiler.chosen(caller), caller)
    return {**defaults, **caller}
