"""Native builds: their prerequisites, what they are known by, their progress, and the cure of their failures."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.building import build_output, cxx_compiler, doctor, line_counting
from irdiff.resolve.toolchains.building.build_output import BuildOutput
from irdiff.resolve.toolchains.building.cxx_compiler import CxxCompiler
from irdiff.resolve.toolchains.building.line_counting import CountedUnits
from tests.unit.resolve.conftest import CheckoutOf

LLVM_CONFIG = "set(LLVM_PACKAGE_VERSION 22.1.8)\n"
STEP = "[{}/100] Building CXX object lib/CMakeFiles/Lib.dir/File.cpp.o"


def test_progress(tmp_path: Path) -> None:
    shown: list[str] = []
    now_s = 0.0
    statistics = tmp_path / "ccache-statistics"
    output = BuildOutput("main (abc)", shown.append, statistics, lambda: now_s)
    output.on_line("-- The CXX compiler is clang")
    assert shown == [], "configuring takes seconds"
    statistics.write_text("# lib/A.cpp\ndirect_cache_hit\nlocal_storage_hit\n# lib/B.cpp\ncache_miss\n")
    for number in range(1, 52):
        output.on_line(STEP.format(number) if number > 40 else f"[{number}/100] Generating Ops.h.inc")
        assert number > 40 or "left" not in shown[-1], "tables tell nothing of the time that C++ takes"
        now_s += 10 if number > 40 else 0
    words = "main (abc): native build 51/100, 1 min 40 s, about 8 min 10 s left, ccache 1 of 2 hits: "
    assert shown[-1].startswith(words)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("urllib.error.URLError: <urlopen error [Errno -2]>", "LLVM_SYSPATH"),
        ("RuntimeError: Requested an offline build but LLVM_SYSPATH is not set", "LLVM_SYSPATH=DIR"),
        ("python/src/llvm.cc:22:10: fatal error: 'llvm/A.h' file not found\n[-Werror,-Wunused]", "no llvm/A.h"),
        ("a.cc:1:10: fatal error: zlib.h: No such file or directory", "with zlib.h"),
        ("lib/A.cpp:5:1: error: 'isa' is deprecated [-Werror,-Wdeprecated-declarations]", "FLAGS=-w"),
        ("ImportError: /x/libtriton.so: undefined symbol: _ZN4llvm15PassPluginE", "defines _ZN4llvm15Pass"),
        ("A.cpp:9:3: error: 'visit' marked 'override' but does not override", "not of the checkout's pin"),
        ("clang++: fatal: Killed signal terminated program cc1plus", "MAX_JOBS"),
        ("fatal error: No space left on device", "--cache DIR"),
        ("CMake Error\n  Could not find MLIR", "lib/cmake/mlir"),
        ("something else went wrong", "irdiff toolchain doctor main"),
    ],
)  # fmt: skip
def test_the_hint_names_the_cause(text: str, hint: str) -> None:
    assert hint in build_output.what_to_try(text.splitlines(), "main")


# the compiler and the LLVM


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("clang++", "g++-12"):
        (tmp_path / name).write_text('#!/bin/sh\necho "$(basename $0) 1.0"\necho more\n')
        (tmp_path / name).chmod(0o755)
    return {"PATH": f"{tmp_path}:/usr/bin:/bin", "CXX": "g++-12"}


def test_the_compiler_that_setup_py_would_run(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variables, version in (
        ({}, "g++-12 1.0"),
        ({"TRITON_BUILD_WITH_CLANG_LLD": "true"}, "clang++ 1.0"),
        ({"TRITON_APPEND_CMAKE_ARGS": "-DX=1 -DCMAKE_CXX_COMPILER:PATH=clang++"}, "clang++ 1.0"),
        ({"CXX": "false"}, "none"),
        ({"CXX": "no-such-compiler"}, "none"),
    ):
        assert cxx_compiler.chosen({**environment, **variables}).version == version
    monkeypatch.setattr(cxx_compiler, "_TIMEOUT_S", 0.0)
    with pytest.raises(ToolchainError, match="gave no answer"):  # that is not another compiler
        cxx_compiler.chosen(environment)


@pytest.fixture
def llvm(tmp_path: Path) -> Path:
    for name, text in (
        ("lib/cmake/llvm/LLVMConfig.cmake", LLVM_CONFIG),
        ("lib/cmake/mlir/MLIRConfig.cmake", ""),
        ("lib/libLLVMCore.a", "core"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_an_llvm_is_known_by_its_libraries_and_not_by_its_version(llvm: Path) -> None:
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


# the doctor


def test_the_doctor_names_what_is_missing(
    checkout_of: CheckoutOf, environment: dict[str, str], llvm: Path
) -> None:
    def examined(pyproject: str, **variables: str) -> list[doctor.Prerequisite]:
        config = configuration.load(cache=llvm / "cache")
        found = checkout_of({"pyproject.toml": pyproject, "cmake/llvm-hash.txt": f"{'62b7cf96' * 5}\n"})
        caller = {**environment, "PATH": str(llvm), "CXX": "/bin/echo", **variables}
        return doctor.examine(found, replace(config, tool_environment=caller))

    rows = examined("[build-system]\nrequires = ['setuptools', 'cmake>=3.20,<4.0', 'ninja>=1.11.1']\n")
    assert doctor.works(rows)
    assert [row.line.split()[0] for row in rows] == ["ok", "ok", "ok", "ok", "ok", "advised"]
    assert "62b7cf9662b7, downloaded by the build" in rows[3].line
    rows = examined("", LLVM_SYSPATH=str(llvm))
    assert not doctor.works(rows)
    assert [row.topic for row in rows if not row.is_met and row.is_required] == ["cmake", "ninja", "LLVM"]
    assert rows[3].text.endswith("has no lib/cmake/lld/LLDConfig.cmake")


def test_only_clang_with_its_own_tools_can_count(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="counted by clang"):
        line_counting.require(CxxCompiler(path=Path("/usr/bin/c++"), version="c++ (Debian 12.2.0) 12.2.0"))
    clang = CxxCompiler(path=tmp_path / "clang++", version="clang version 22.1.8")
    (tmp_path / "clang++").touch()
    with pytest.raises(ToolchainError, match="llvm-profdata is not next to"):
        line_counting.require(clang)
    for name in line_counting.TOOLS:
        (tmp_path / name).touch()
    assert line_counting.require(clang) == tmp_path
    assert CountedUnits(units=("a.cpp",)).digest != CountedUnits(units=("a.cpp", "b.cpp")).digest
