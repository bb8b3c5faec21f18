"""Native builds: what an LLVM is known by, and which compiler can count lines."""

import os
from pathlib import Path

import pytest

from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains import cxx_compiler, line_counting
from irdiff.resolve.toolchains.cxx_compiler import CxxCompiler
from irdiff.resolve.toolchains.line_counting import digest

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
    with pytest.raises(ToolchainError, match="counted by clang"):
        line_counting.require(CxxCompiler(path=Path("/usr/bin/c++"), version="c++ (Debian 12.2.0) 12.2.0"))
    clang = CxxCompiler(path=tmp_path / "clang++", version="clang version 22.1.8")
    (tmp_path / "clang++").touch()
    with pytest.raises(ToolchainError, match="llvm-profdata is not next to"):
        line_counting.require(clang)
    for name in line_counting.TOOLS:
        (tmp_path / name).touch()
    assert line_counting.require(clang) == tmp_path
    assert digest(("a.cpp",)) != digest(("a.cpp", "b.cpp"))
