"""What a build that counts lines is known by, and which compiler can make it."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.building import line_counting
from irdiff.resolve.toolchains.building.compiler import CxxCompiler
from irdiff.resolve.toolchains.building.line_counting import CountedUnits


def test_other_units_are_another_build() -> None:
    first, second = CountedUnits(units=("lib/A.cpp",)), CountedUnits(units=("lib/A.cpp", "lib/B.cpp"))
    assert first.digest != second.digest
    assert first.digest == CountedUnits(units=("lib/A.cpp",)).digest


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
