"""Native builds: run by the checkout's own build, once for each native digest and build environment.

    toolchains/NAME/                the environment with the installed wheel (`environments.py`)
    toolchains/NAME.tree/source     while it is built: the exported revision, where CMake and ninja work
    toolchains/NAME.tree/wheels     the wheel, once it is built
    toolchains/NAME.tree/tree       the git tree that was exported: another one begins anew

The build requirements lie in an environment that all builds with the same requirements share, so ccache sees
the same paths. A build that does not end leaves its tree, and the same build continues there: ninja considers
an output done only if its log has the command that produced it, so a half-written file of a killed compiler
is built again.

Two builds that give the same bytes are one toolchain, because a toolchain is identified by its content.
ccache gives compilers paths relative to the tree, so the folder of a build does not get into its bytes.
"""

from __future__ import annotations

import contextlib
import platform
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.backends import BACKENDS
from irdiff.config import Config
from irdiff.errors import BuildInterrupted, ToolchainError
from irdiff.resolve.toolchains import (
    build_output,
    cxx_compiler,
    environments,
    identity,
    line_counting,
    repository,
)
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.environments import Environment
from irdiff.resolve.toolchains.line_counting import Units
from irdiff.store import key_of

MAX_TREES = 4
"""A tree takes about 2 GB."""
_TREE = ".tree"
# What decides what is built. Names of Triton's setup.py and CMake, and those of compilers.
_OF_BACKENDS = "|".join(name for backend in BACKENDS.values() for name in backend.BUILD_VARIABLES)
_DECISIVE = re.compile(
    rf"TRITON_\w+|LLVM_\w+|MLIR_\w+|JSON_SYSPATH|PYBIND11_SYSPATH|NANOBIND_\w+|{_OF_BACKENDS}"
    r"|CC|CXX|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|CMAKE_\w+|DEBUG|REL_WITH_DEB_INFO|SOURCE_DATE_EPOCH|ARCHFLAGS"
)
# What only decides how, or when Triton runs.
_INDIFFERENT = re.compile(
    r"TRITON_(HOME|CACHE_\w+|DUMP_\w+|OVERRIDE_\w+|PARALLEL_LINK_JOBS|BUILD_WITH_CCACHE|OFFLINE_BUILD|INTERPRET"
    r"|ALWAYS_COMPILE|PRINT_\w+|KERNEL_\w+)|CMAKE_(BUILD_PARALLEL_LEVEL|COLOR_\w+)|LLVM_IR_ENABLE_DUMP|MLIR_ENABLE_\w+"
)


@dataclass(frozen=True, kw_only=True)
class BuildKey:
    native_digest: str
    environment: Mapping[str, str]
    """Variables and versions that decide what is built."""

    @property
    def name(self) -> str:
        key = key_of("native-build/2", self.native_digest, sorted(self.environment.items()))
        return f"native-{key[:20]}"


def key_of_build(checkout: Checkout, config: Config, counted: Units = ()) -> BuildKey:
    """A build that counts lines (`counted`) never replaces one that does not."""
    caller = config.tool_environment
    decisive = {
        name: value
        for name, value in caller.items()
        if _DECISIVE.fullmatch(name) and not _INDIFFERENT.fullmatch(name)
    }
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    decisive["python"] = f"{platform.python_implementation()} {version}"
    decisive["machine"] = f"{platform.system()} {platform.machine()}"
    decisive["c++"] = cxx_compiler.chosen(caller).version
    if "LLVM_SYSPATH" in caller:
        folder = Path(caller["LLVM_SYSPATH"])
        decisive["llvm"] = cxx_compiler.llvm_title(folder)
        decisive["llvm state"] = cxx_compiler.llvm_identity(folder)
    if counted:
        decisive["coverage"] = line_counting.digest(counted)
    return BuildKey(native_digest=checkout.native_digest, environment=decisive)


def find(checkout: Checkout, config: Config, counted: Units = ()) -> Environment | None:
    return environments.find(key_of_build(checkout, config, counted).name, config)


def build(checkout: Checkout, config: Config, counted: Units = ()) -> Environment:
    """Raises ToolchainError with the first errors."""
    key = key_of_build(checkout, config, counted)
    if environments.find(key.name, config) is None:
        purpose = f", which counts the lines of {len(counted)} files" if counted else ""
        environments.show_progress(f"{checkout.label}: native build {key.name}{purpose}")

    def install(path: Path, log: Path) -> dict[str, Any]:
        run = _Build(
            checkout=checkout,
            tree=config.toolchains / f"{key.name}{_TREE}",
            tools=_tools(checkouts.build_requirements(checkout), config),
            log=log,
            counted=counted,
            config=config,
        )
        try:
            run.export()
            return {**run.install_wheel(run.make_wheel(), path), "environment": dict(key.environment)}
        except BaseException as error:
            for name in kept_trees(config)[:-MAX_TREES]:
                remove_tree(name, config)
            if isinstance(error, KeyboardInterrupt):
                raise BuildInterrupted(
                    f"what was built is kept, and the same build goes on there: {run.tree}"
                ) from None
            raise

    environment = environments.make(key.name, config, install)
    remove_tree(key.name, config)
    return environment


def kept_trees(config: Config) -> list[str]:
    """Lists the oldest first."""
    paths = [path for path in config.toolchains.glob(f"native-*{_TREE}") if path.is_dir()]
    return [path.name.removesuffix(_TREE) for path in sorted(paths, key=lambda path: path.stat().st_mtime)]


def remove_tree(name: str, config: Config) -> None:
    shutil.rmtree(config.toolchains / f"{name}{_TREE}", ignore_errors=True)


def _tools(requirements: list[str], config: Config) -> Path:
    """Returns the folder of programs of an environment with the build requirements."""

    def install(path: Path, log: Path) -> dict[str, Any]:
        environments.install(path, requirements, log, config)
        return {"spec": "build requirements: " + ", ".join(requirements), "version": "", "digest": ""}

    return environments.make(f"build-tools-{key_of(requirements)[:12]}", config, install).path / "bin"


@dataclass(frozen=True, kw_only=True)
class _Build:
    checkout: Checkout
    tree: Path
    tools: Path
    log: Path
    counted: Units
    config: Config

    @property
    def source(self) -> Path:
        return self.tree / "source"

    def export(self) -> None:
        """Keeps the tree of an earlier build of the same source. Needs the lock."""
        snap, exported = self.checkout.snapshot, self.tree / "tree"
        with contextlib.suppress(OSError):
            if exported.read_text(encoding="utf-8") == snap.tree:
                environments.show_progress(f"{snap.label}: goes on where an earlier build ended: {self.tree}")
                return
        shutil.rmtree(self.tree, ignore_errors=True)
        repository.export(snap, self.source, self.config)
        exported.write_text(snap.tree, encoding="utf-8")

    def make_wheel(self) -> Path:
        import uv as uv_package

        project = self.source if (self.source / "setup.py").exists() else self.source / "python"
        wheels = self.tree / "wheels"
        output = build_output.BuildOutput(self.checkout.label)
        words = ("build", "--wheel", "--no-build-isolation", "--no-config", "--out-dir", wheels)
        code = process.run_logged(
            [uv_package.find_uv_bin(), *words, "--python", self.tools / "python", project],
            log=self.log,
            env=self._environment(),
            cwd=project,
            on_line=output.on_line,
        )
        built = sorted(wheels.glob("*.whl"))
        if code or not built:
            raise ToolchainError(
                f"{self.checkout.label}: its native build failed:\n"
                + "\n".join(build_output.first_errors(output.lines))
                + f"\nwhat was built is kept, and the same build goes on there: {self.tree}",
                hint=build_output.what_to_try(output.lines, self.checkout.snapshot.spec),
                log_path=str(self.log),
            )
        return built[0]

    def install_wheel(self, wheel: Path, path: Path) -> dict[str, Any]:
        """Returns the state of the environment to keep."""
        checkout, config = self.checkout, self.config
        environments.install(path, [wheel, "setuptools<81"], self.log, config)
        try:
            toolchain = identity.identify(checkout.label, environments.python_of(path), path, config)
        except ToolchainError as error:
            raise ToolchainError(
                f"{checkout.label}: its wheel was built but does not start: {wheel}\n{error.what}",
                hint=build_output.what_to_try([error.what], checkout.snapshot.spec),
                log_path=str(self.log),
            ) from error
        installed = checkouts.installed_files(environments.site_of(path))
        return {
            "spec": f"native part of {checkout.label}",
            "version": toolchain.version,
            "digest": toolchain.digest,
            "revision": checkout.snapshot.commit or checkout.snapshot.tree,
            "python_files": sorted(checkout.python_part(installed)),
            "counts": self.counted,
        }

    def _environment(self) -> dict[str, str]:
        """Returns the caller's variables, with the build requirements on the path and paths that compiler
        caches may ignore.
        """
        stored = self.tree / "wheel.cfg"
        stored.write_text("[bdist_wheel]\ncompression = stored\n", encoding="utf-8")
        defaults = {
            "CCACHE_BASEDIR": str(self.source.resolve()),  # as CMake spells it, where a link leads here
            "CCACHE_NOHASHDIR": "1",
            "GIT_CEILING_DIRECTORIES": str(self.tree),  # the export is no repository, whatever is above
            "DIST_EXTRA_CONFIG": str(stored),  # the wheel is unpacked at once: packing it takes 12 s
            "UV_CACHE_DIR": str(self.config.cache / "uv"),
            "UV_PYTHON_DOWNLOADS": "never",
        }
        hidden = ("VIRTUAL_ENV", "PYTHONPATH")
        caller = {name: value for name, value in self.config.tool_environment.items() if name not in hidden}
        caller["PATH"] = f"{self.tools}:{caller.get('PATH', '')}"
        if shutil.which("ccache", path=caller["PATH"]):
            caller.setdefault("TRITON_BUILD_WITH_CCACHE", "true")
        if self.counted:
            run = cxx_compiler.chosen(caller)
            caller |= line_counting.prepare(self.counted, self.tree / "counting", self.source, run, caller)
        return {**defaults, **caller}


# What a native build of a revision needs, checked in seconds: a build finds out in an hour.


_NEEDED_DISK_BYTES = 6 << 30
"""A tree with its objects, the wheel, the environment and ccache's files; measured: 2.2 GB at -O1."""


@dataclass(frozen=True, kw_only=True)
class Prerequisite:
    topic: str
    is_met: bool
    is_required: bool
    text: str

    @property
    def line(self) -> str:
        state = "ok" if self.is_met else "missing" if self.is_required else "advised"
        return f"{state:8} {self.topic:13} {self.text}"


def examine(checkout: Checkout, config: Config) -> list[Prerequisite]:
    config.cache.mkdir(parents=True, exist_ok=True)
    return [
        Prerequisite(topic=topic, is_met=is_met, is_required=topic != "ccache", text=text)
        for topic, is_met, text in _examined(checkout, config)
    ]


def works(prerequisites: list[Prerequisite]) -> bool:
    return all(prerequisite.is_met or not prerequisite.is_required for prerequisite in prerequisites)


def _examined(checkout: Checkout, config: Config) -> Iterator[tuple[str, bool, str]]:
    """Yields (topic, whether it is met, details)."""
    caller = config.tool_environment
    requirements = {re.split(r"[^\w-]", wanted)[0] for wanted in checkouts.build_requirements(checkout)}
    for name in ("cmake", "ninja"):
        own = "one of the build's requirements, installed for it" if name in requirements else None
        path = own or shutil.which(name, path=caller.get("PATH"))
        yield name, path is not None, path or f"not found: install {name}"
    run = cxx_compiler.chosen(caller)
    words = f"{run.version} ({run.path})" if run.path else "not found: install one, or set CXX"
    yield "C++ compiler", run.path is not None, words
    pin = (checkout.llvm or "none")[:12]
    if "LLVM_SYSPATH" in caller:
        folder = Path(caller["LLVM_SYSPATH"])
        missing = cxx_compiler.missing_of_llvm(folder)
        text = f"{cxx_compiler.llvm_title(folder)} in {folder}, the checkout pins {pin}"
        text = f"LLVM_SYSPATH={folder} has no {', '.join(missing)}" if missing else text
        yield "LLVM", not missing, text
    else:
        yield "LLVM", True, f"{pin}, downloaded by the build, once (or set LLVM_SYSPATH=DIR)"
    free_bytes = shutil.disk_usage(config.cache).free
    text = f"{free_bytes / 1e9:.0f} GB free in {config.cache}, {_NEEDED_DISK_BYTES / 1e9:.0f} needed"
    yield "disk", free_bytes >= _NEEDED_DISK_BYTES, text
    ccache = shutil.which("ccache", path=caller.get("PATH"))
    yield "ccache", ccache is not None, ccache or "not installed: every build compiles every file"
