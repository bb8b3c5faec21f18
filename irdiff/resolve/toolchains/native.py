"""Native builds: made by the checkout's own build, once a native digest and build environment.

The exported tree is built into a wheel with its build requirements installed in an environment that all
builds with the same requirements share (a compiler cache sees the same paths then), and the wheel is
installed. The tree lies beside the environment being made: a build that does not end leaves it, and the same
build goes on there.

Two builds that give the same bytes are one toolchain, since a toolchain is known by the content of the files
that it loads. A build's own folder does not get into them where there is ccache: it gives compilers paths
relative to the tree, which messages of assertions then name, and a build id is a digest of all the rest. So
an edited comment that moves no line gives the `libtriton` of its base, and nothing is compiled for it. That
can hide no change, because nothing is left out of the digest; a comment that moves lines changes the numbers
of lines that assertions name, and is compiled. `--no-shortcut` runs each side's own file all the same.
"""

from __future__ import annotations

import contextlib
import json
import platform
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import BuildInterrupted, ToolchainError
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import environments, identity, repository, source_parts
from irdiff.resolve.toolchains.building import (
    compilers,
    failures,
    kept_trees,
    line_counting,
    object_uses,
    precompiled_header,
)
from irdiff.resolve.toolchains.building.build_progress import BuildProgress
from irdiff.resolve.toolchains.building.kept_trees import BuildTree
from irdiff.resolve.toolchains.building.line_counting import CountedUnits
from irdiff.resolve.toolchains.building.linked_llvm import LinkedLlvm
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


def key_of_build(checkout: Checkout, config: Config, counted: CountedUnits | None = None) -> BuildKey:
    """With `counted` that of a build that counts lines, which is never taken for one that does not."""
    caller = config.tool_environment
    chosen = {
        name: value
        for name, value in caller.items()
        if _DECISIVE.fullmatch(name) and not _INDIFFERENT.fullmatch(name)
    }
    chosen["python"] = f"{platform.python_implementation()} {sys.version_info.major}.{sys.version_info.minor}"
    chosen["machine"] = f"{platform.system()} {platform.machine()}"
    run = compilers.chosen(caller)
    chosen.update(run.identity())
    chosen["precompiled header"] = precompiled_header.identity(caller, run)
    if "LLVM_SYSPATH" in caller:
        llvm = LinkedLlvm(folder=Path(caller["LLVM_SYSPATH"]))
        chosen["llvm"] = llvm.title() if llvm.is_there else "none"
        chosen["llvm digest"] = llvm.digest(config)
    if counted:
        chosen["coverage"] = counted.digest
    return BuildKey(native_digest=checkout.native_digest, environment=chosen)


def find(checkout: Checkout, config: Config, counted: CountedUnits | None = None) -> Environment | None:
    return environments.find(key_of_build(checkout, config, counted).name, config)


def build(
    checkout: Checkout, config: Config, progress: Progress, counted: CountedUnits | None = None
) -> Environment:
    """The environment with the native part of a revision. Raises ToolchainError with the last errors."""
    key = key_of_build(checkout, config, counted)
    if environments.find(key.name, config) is None:
        what = f", which counts the lines of {len(counted.units)} files" if counted else ""
        progress(f"{checkout.label}: native build {key.name}{what}")

    requirements = _requirements(checkout)

    def install(path: Path, log: Path) -> dict[str, Any]:
        tools = _tools(requirements, config)
        tree = kept_trees.prepare(key.name, checkout.snapshot, config)
        run = _Build(label=checkout.label, tree=tree, tools=tools, log=log, key=key, counted=counted)
        try:
            return {
                **_installed(run, checkout, path, config, progress),
                "counts": list(counted.units) if counted else [],
                "native_digest": checkout.native_digest,
                "llvm": checkout.llvm,
                "requirements": requirements,
            }
        except BaseException as error:
            kept_trees.remove_beyond(kept_trees.LIMIT_BYTES, config)
            if isinstance(error, KeyboardInterrupt):
                raise BuildInterrupted(
                    f"what was built is kept, and the same build goes on there: {tree.path}"
                ) from None
            raise

    made = environments.make(key.name, config, install, waiting=progress)
    kept_trees.remove(key.name, config)
    return made


def _installed(
    build: _Build, checkout: Checkout, path: Path, config: Config, progress: Progress
) -> dict[str, Any]:
    """Builds the wheel, installs it in the environment at `path`, and returns what is to be kept of it."""
    wheel = _make_wheel(build, config, progress)
    python = path / "bin" / "python"
    environments.uv(
        ["pip", "install", "--compile-bytecode", "--python", python, wheel, "setuptools<81"],
        build.log,
        config,
    )
    site = next(path.glob("lib/python3*/site-packages"))
    part = set(checkout.python_part(checkouts.installed_files(site)))
    try:
        toolchain = identity.identify(checkout.label, str(python), path, config)
    except ToolchainError as error:
        raise ToolchainError(
            f"{checkout.label}: its wheel was built but does not start: {wheel}\n{error.what}",
            hint=failures.what_to_try([error.what], checkout.snapshot.spec),
            log_path=str(build.log),
        ) from error
    _keep_uses(build, path, config)
    recorded = {n: v for n, v in config.tool_environment.items() if _RECORDED.fullmatch(n)}
    return {
        "spec": f"native part of {checkout.label}",
        "version": toolchain.version,
        "digest": toolchain.digest,
        "revision": checkout.snapshot.commit or checkout.snapshot.tree,
        "environment": {**recorded, **build.key.environment},
        "flags": _flags(build.tree.source),
        "python_files": sorted(part),
    }


def _keep_uses(build: _Build, path: Path, config: Config) -> None:
    """Which files use which, for `edited_passes`: the objects are gone when the tree is."""
    with contextlib.suppress(process.CommandFailed, process.TimeoutExpired, OSError):
        found = object_uses.index(build.tree.source, config.tool_environment)
        (path / object_uses.FILE).write_text(json.dumps(found), encoding="utf-8")


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
    tree: BuildTree
    tools: Environment
    log: Path
    key: BuildKey
    counted: CountedUnits | None


def _make_wheel(build: _Build, config: Config, progress: Progress) -> Path:
    import uv as uv_package

    source, wheels = build.tree.source, build.tree.wheels
    project = source if (source / "setup.py").exists() else source / "python"
    statistics = build.tree.path / "ccache-statistics"
    shown = BuildProgress(build.label, progress, statistics)
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        shown.on_line(line)

    if build.tree.continues:
        progress(f"{build.label}: goes on where an earlier build ended: {build.tree.path}")
    statistics.unlink(missing_ok=True)
    words = ["build", "--wheel", "--no-build-isolation", "--no-config", "--python", build.tools.python]
    code = process.run_logged(
        [uv_package.find_uv_bin(), *words, "--out-dir", wheels, project],
        log=build.log,
        env={**_build_environment(build, config), "CCACHE_STATSLOG": str(statistics)},
        cwd=project,
        on_line=on_line,
        on_tick=shown.on_tick,
    )
    wheel = build.tree.wheel()
    if code or wheel is None:
        raise ToolchainError(
            f"{build.label}: its native build failed:\n"
            + "\n".join(failures.last_errors(lines))
            + f"\nwhat was built is kept, and the same build goes on there: {build.tree.path}",
            hint=failures.what_to_try(lines, build.label.partition(" ")[0]),
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
    caller["PATH"] = f"{Path(build.tools.python).parent}:{caller.get('PATH', '')}"
    if shutil.which("ccache", path=caller["PATH"]):
        caller.setdefault("TRITON_BUILD_WITH_CCACHE", "true")
        if build.key.environment["precompiled header"] != "none":
            digest, version = build.key.environment["llvm digest"], build.key.environment["c++"]
            header = precompiled_header.prepare(digest, version, config)
            caller.update(header.environment(caller))
    if build.counted:
        run, folder = compilers.chosen(caller), build.tree.path / "counting"
        launcher = line_counting.prepare(build.counted, folder, source, run, caller)
        caller.update(launcher.environment(caller))
    return {**defaults, **caller}


def _flags(source: Path) -> str:
    """The flags that most files were compiled with, without those of one file."""
    counts: Counter[str] = Counter()
    for path in source.glob("**/build/*/compile_commands.json"):
        for row in json.loads(path.read_text(encoding="utf-8")):
            words = str(row.get("command", "")).partition(" -o ")[0].split()
            counts[" ".join(word for word in words[1:] if not word.startswith(("-I", "-isystem", "/")))] += 1
    return max(counts, key=lambda flags: counts[flags], default="")
