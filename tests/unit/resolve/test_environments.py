"""Toolchains: only what irdiff made is removed. Native builds: what an LLVM is known by, and which compiler counts lines."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.cli.toolchain_commands import toolchain_group
from irdiff.errors import ToolchainError, UsageError
from irdiff.resolve.toolchains import cxx_compiler, environments, line_counting
from irdiff.resolve.toolchains.cxx_compiler import CxxCompiler
from irdiff.resolve.toolchains.line_counting import digest
from tests.unit.typed import typed

STATE = {"spec": "triton==3.9.0", "version": "3.9.0", "digest": "a" * 64, "made": 0.0}


@pytest.fixture
def config(tmp_path):
    """A cache folder that holds other people's toolchains, too."""
    made = configuration.load(cache=tmp_path / "home")
    for name in ("gcc-14", "empty", "with-state"):
        (made.toolchains / name).mkdir(parents=True)
    (made.toolchains / "gcc-14" / "cc").write_text("a compiler")
    (made.toolchains / "with-state" / "irdiff.json").write_text('["of another program"]')
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "file").write_text("mine")
    (made.toolchains / "link").symlink_to(tmp_path / "elsewhere")
    (made.toolchains / "link.lock").touch()
    return made


def files(config):
    return {str(path): path.read_text() for path in config.cache.parent.rglob("*") if path.is_file()}


def make(name, config, *, whole):
    path = config.toolchains / name
    path.mkdir()
    (config.toolchains / f"{name}.lock").touch()
    if whole:
        (path / "irdiff.json").write_text(json.dumps(STATE))
        os.utime(path / "irdiff.json", (0, 0))
    return path


def toolchain(config, *words):
    return typed(toolchain_group, words[0], "--cache", config.cache, *words[1:])[1]


def test_prune_removes_old_and_torn_ones_and_nothing_else(config):
    before = files(config)
    old, torn = make("triton-3.8.0", config, whole=True), make("triton-3.9.0", config, whole=False)
    os.utime(make("triton-3.9.1", config, whole=True) / "irdiff.json")
    with (config.toolchains / "triton-3.9.0.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        kept = toolchain(config, "prune", "--unused-days", "1e6")
        assert kept == "0 removed, 2 kept\n", "a build is at work"
    output = toolchain(config, "prune")
    assert output == "removed triton-3.8.0\nremoved triton-3.9.0\n2 removed, 1 kept\n"
    assert not old.exists() and not torn.exists()
    assert before.items() <= files(config).items()
    assert (config.toolchains / "empty").is_dir()


@pytest.mark.parametrize("name", ["gcc-14", "empty", "with-state", "link", "absent"])
def test_what_irdiff_did_not_make_stays_as_it_is(config, name):
    before = files(config)
    with pytest.raises(UsageError, match="no toolchain"):
        toolchain(config, "remove", name)
    with pytest.raises(ToolchainError, match="not made by irdiff"):
        environments.remove(name, config)
    if name != "absent":
        with pytest.raises(ToolchainError, match="not made by irdiff"):
            environments.make(name, config, lambda *_: {})
    assert files(config) == before


LLVM_CONFIG = "set(LLVM_PACKAGE_VERSION 22.1.8)\n"


@pytest.fixture
def llvm(tmp_path):
    for name, text in (
        ("lib/cmake/llvm/LLVMConfig.cmake", LLVM_CONFIG),
        ("lib/cmake/mlir/MLIRConfig.cmake", ""),
        ("lib/libLLVMCore.a", "core"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_an_llvm_is_known_by_its_libraries_and_not_by_its_version(llvm):
    assert cxx_compiler.llvm_title(llvm) == "LLVM 22.1.8"
    assert cxx_compiler.llvm_title(llvm / "nowhere") == "LLVM of unknown version"
    before = cxx_compiler.llvm_identity(llvm)
    archive = llvm / "lib/libLLVMCore.a"
    stat = archive.stat()
    archive.write_text("c0re")
    os.utime(archive, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert cxx_compiler.llvm_identity(llvm) != before
    os.utime(archive, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert cxx_compiler.llvm_identity(llvm) == before
    (llvm / "lib/cmake/llvm/LLVMConfig.cmake").write_text(LLVM_CONFIG + "# patched\n")
    assert cxx_compiler.llvm_identity(llvm) != before


def test_only_clang_with_its_own_tools_can_count(tmp_path):
    with pytest.raises(ToolchainError, match="clang"):
        line_counting.require(CxxCompiler(path=Path("/usr/bin/c++"), version="c++ (Debian 12.2.0) 12.2.0"))
    clang = CxxCompiler(path=tmp_path / "clang++", version="clang version 22.1.8")
    (tmp_path / "clang++").touch()
    with pytest.raises(ToolchainError, match="llvm-profdata"):
        line_counting.require(clang)
    for name in line_counting.TOOLS:
        (tmp_path / name).touch()
    assert line_counting.require(clang) == tmp_path
    assert digest(("a.cpp",)) != digest(("a.cpp", "b.cpp"))
