"""What a build that counts lines runs, and by what it is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff import process
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.building import compilers, line_counting
from irdiff.resolve.toolchains.building.compilers import Compilers, Program
from irdiff.resolve.toolchains.building.line_counting import CountedUnits, Launcher


def chosen(version: str, path: str) -> Compilers:
    one = Program(command="c++", path=path, version=version)
    return Compilers(cxx=one, linker=one)


def test_other_units_are_another_build() -> None:
    first, second = CountedUnits(units=("lib/A.cpp",)), CountedUnits(units=("lib/A.cpp", "lib/B.cpp"))
    assert first.digest != second.digest
    assert first.digest == CountedUnits(units=("lib/A.cpp",)).digest


def test_the_build_keeps_what_the_caller_set() -> None:
    launcher = Launcher(folder=Path("/tree/counting"), following="ccache")
    made = launcher.environment(
        {"TRITON_APPEND_CMAKE_ARGS": "-DTRITON_BUILD_UT=OFF -DCMAKE_CXX_COMPILER_LAUNCHER=/pch/launcher"}
    )
    assert compilers.cmake_arguments(made) == {
        "TRITON_BUILD_UT": "OFF",
        "CMAKE_CXX_COMPILER_LAUNCHER": "/tree/counting/launcher",
        "CMAKE_CXX_LINKER_LAUNCHER": "/tree/counting/launcher",
    }


def test_units_that_are_not_counted_go_on_to_the_next_launcher(tmp_path: Path) -> None:
    odd = tmp_path / "it's here"
    text = line_counting.text(odd, "ccache")
    assert 'exec ccache "$@"' in text
    assert "it'\\''s here" in text
    assert "-fcoverage-prefix-map=$root=/source" in text


def test_only_clang_with_its_own_tools_can_count(tmp_path: Path) -> None:
    with pytest.raises(ToolchainError, match="counted by clang"):
        line_counting.require(chosen("c++ (Debian 12.2.0) 12.2.0", "/usr/bin/c++"))
    clang = tmp_path / "clang++"
    clang.touch()
    with pytest.raises(ToolchainError, match="llvm-profdata is not beside"):
        line_counting.require(chosen("clang version 22.1.8", str(clang)))
    for name in line_counting.TOOLS:
        (tmp_path / name).touch()
    assert line_counting.require(chosen("clang version 22.1.8", str(clang))) == tmp_path


def test_the_runtime_is_looked_for_where_clang_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run", lambda *_, **__: f"{tmp_path}/libclang_rt.builtins-x86_64.a\n")
    run = chosen("clang version 22.1.8", "/usr/bin/clang++")
    assert not line_counting.has_runtime(run)
    (tmp_path / "libclang_rt.profile-x86_64.a").touch()
    assert line_counting.has_runtime(run)
