"""When a header is compiled once, and what a build then runs with."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.resolve.toolchains.building import compilers, precompiled_header
from irdiff.resolve.toolchains.building.compilers import Compilers, Program

CLANG = "Debian clang version 22.1.8"


def chosen(version: str) -> Compilers:
    one = Program(command="c++", path="/usr/bin/c++", version=version)
    return Compilers(cxx=one, linker=one)


@pytest.mark.parametrize(
    ("version", "environment", "is_used"),
    [
        (CLANG, {"LLVM_SYSPATH": "/llvm"}, True),
        (CLANG, {}, False),
        (CLANG, {"LLVM_SYSPATH": "/llvm", "IRDIFF_PRECOMPILED_HEADER": "0"}, False),
        ("c++ (Debian 12.2.0) 12.2.0", {"LLVM_SYSPATH": "/llvm"}, False),
        (
            CLANG,
            {"LLVM_SYSPATH": "/llvm", "TRITON_APPEND_CMAKE_ARGS": "-DCMAKE_CXX_COMPILER_LAUNCHER=sccache"},
            False,
        ),
    ],
)
def test_only_where_the_compiler_allows_it(version: str, environment: dict[str, str], is_used: bool) -> None:
    assert (precompiled_header.identity(environment, chosen(version)) != "none") == is_used


def test_a_build_keeps_what_the_caller_set(tmp_path: Path) -> None:
    header = precompiled_header.prepare("llvm", CLANG, configuration.load(cache=tmp_path))
    made = header.environment(
        {"TRITON_APPEND_CMAKE_ARGS": "-DTRITON_BUILD_UT=OFF", "CCACHE_SLOPPINESS": "locale"}
    )
    arguments = compilers.cmake_arguments(made)
    assert arguments == {"TRITON_BUILD_UT": "OFF", "CMAKE_CXX_COMPILER_LAUNCHER": str(header.launcher)}
    assert made["CCACHE_SLOPPINESS"] == "locale,pch_defines,time_macros"
    assert header.launcher.stat().st_mode & 0o111
    other = precompiled_header.prepare("another", CLANG, configuration.load(cache=tmp_path))
    assert other.folder != header.folder, "the headers are those of the LLVM that is linked"


def test_every_header_of_llvm_is_guarded() -> None:
    lines = precompiled_header.text().splitlines()
    for index, line in enumerate(lines):
        if line.startswith('#include "'):
            assert lines[index - 1] == f"#if __has_include({line.removeprefix('#include ')})"


def test_what_is_appended_for_cmake_wins() -> None:
    environment = {"PATH": "/nowhere", "TRITON_BUILD_WITH_CLANG_LLD": "yes", "CXX": "g++"}
    assert compilers.chosen(environment).cxx.command == "clang++"
    environment["TRITON_APPEND_CMAKE_ARGS"] = "-DX=1 -DCMAKE_CXX_COMPILER:STRING=/opt/c++"
    assert compilers.chosen(environment).cxx.command == "/opt/c++"
    assert compilers.chosen({"PATH": "/nowhere", "CXX": "g++"}).cxx.command == "g++"
    assert compilers.chosen(environment).cxx.version == "none"
