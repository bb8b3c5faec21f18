"""The table of what a build needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.resolve.toolchains.building import compiler, doctor
from irdiff.resolve.toolchains.building.compiler import CxxCompiler
from tests.unit.resolve.toolchains.trees import CheckoutOf

FILES = {
    "setup.py": "",
    "python/triton/__init__.py": "",
    "pyproject.toml": "[build-system]\nrequires = ['setuptools', 'cmake>=3.20,<4.0', 'ninja>=1.11.1']\n",
    "cmake/llvm-hash.txt": "62b7cf9623fc310525f39ed69aaecc318a909731\n",
}


@pytest.fixture
def examine(checkout_of: CheckoutOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        compiler, "chosen", lambda _: CxxCompiler(path=Path("/usr/bin/c++"), version="c++ 12.2.0")
    )

    def examined(files: dict[str, str], **variables: str) -> list[doctor.Prerequisite]:
        config = configuration.load(cache=tmp_path / "cache")
        caller = {"PATH": str(tmp_path), "HOME": str(tmp_path), **variables}
        return doctor.examine(checkout_of(files), replace(config, tool_environment=caller))

    return examined


def test_requirements_are_installed_and_llvm_is_downloaded(examine) -> None:
    found = examine(FILES)
    assert doctor.works(found)
    table = doctor.lines(found)
    assert [line.split()[0] for line in table] == ["ok", "ok", "ok", "ok", "ok", "advised"]
    assert "62b7cf9623fc, downloaded by the build" in table[3]


def test_what_is_missing_is_said(examine, tmp_path: Path) -> None:
    found = examine({**FILES, "pyproject.toml": ""}, LLVM_SYSPATH=str(tmp_path / "llvm"))
    assert not doctor.works(found)
    assert [row.topic for row in found if not row.is_met and row.is_required] == ["cmake", "ninja", "LLVM"]
    assert "has no lib/cmake/llvm/LLVMConfig.cmake" in doctor.lines(found)[3]


def test_an_llvm_of_an_earlier_build_is_found(examine, tmp_path: Path) -> None:
    kept = tmp_path / ".triton" / "llvm" / "llvm-62b7cf96-ubuntu-x64"
    kept.mkdir(parents=True)
    assert str(kept) in doctor.lines(examine(FILES))[3]
