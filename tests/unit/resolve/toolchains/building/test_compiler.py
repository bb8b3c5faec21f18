"""Which compiler and which LLVM a build is known by."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from irdiff import process
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.building import compiler

DESCRIPTION = "set(LLVM_PACKAGE_VERSION 22.1.8)\n"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    for name in ("clang++", "g++-12"):
        (tmp_path / name).touch(0o755)
    return {"PATH": str(tmp_path), "CXX": "g++-12"}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "g++-12"),
        ({"TRITON_BUILD_WITH_CLANG_LLD": "true"}, "clang++"),
        ({"TRITON_APPEND_CMAKE_ARGS": "-DX=1 -DCMAKE_CXX_COMPILER:PATH=clang++"}, "clang++"),
    ],
)
def test_the_one_that_setup_py_would_run(
    environment: dict[str, str], variables: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "run", lambda words, **_: f"{Path(words[0]).name} 1.0\nmore\n")
    assert compiler.chosen({**environment, **variables}).version == f"{name} 1.0"


def test_a_compiler_that_does_not_answer_is_not_another_compiler(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object, **__: object) -> str:
        raise process.TimeoutExpired("g++-12", 1)

    monkeypatch.setattr(process, "run", slow)
    with pytest.raises(ToolchainError, match="gave no answer"):
        compiler.chosen(environment)


def test_one_that_fails_has_no_version(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(words: list[str], **_: object) -> str:
        raise process.CommandFailed(words, 1, "", "no such thing")

    monkeypatch.setattr(process, "run", failing)
    found = compiler.chosen(environment)
    assert (found.path, found.version) == (None, "none")


@pytest.fixture
def llvm(tmp_path: Path) -> Path:
    for name, text in (
        ("lib/cmake/llvm/LLVMConfig.cmake", DESCRIPTION),
        ("lib/cmake/mlir/MLIRConfig.cmake", ""),
        ("lib/libLLVMCore.a", "core"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_what_an_llvm_is_and_lacks(llvm: Path) -> None:
    assert compiler.llvm_title(llvm) == "LLVM 22.1.8"
    assert compiler.missing_of_llvm(llvm) == ["lib/cmake/lld/LLDConfig.cmake"]
    assert compiler.llvm_title(llvm / "nowhere") == "LLVM of unknown version"


def test_an_llvm_of_one_version_with_another_library_is_another(llvm: Path) -> None:
    before = compiler.llvm_identity(llvm)
    archive = llvm / "lib/libLLVMCore.a"
    stat = archive.stat()
    archive.write_text("c0re")
    os.utime(archive, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert compiler.llvm_identity(llvm) != before
    os.utime(archive, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert compiler.llvm_identity(llvm) == before
    (llvm / "lib/cmake/llvm/LLVMConfig.cmake").write_text(DESCRIPTION + "# patched\n")
    assert compiler.llvm_identity(llvm) != before
