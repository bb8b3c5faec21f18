"""Which compiler a build is known by."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff import process
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.building import compilers


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    clang = tmp_path / "clang++"
    clang.touch(0o755)
    return {"PATH": str(tmp_path), "CXX": "clang++"}


def test_a_compiler_that_does_not_answer_is_not_another_compiler(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: object, **__: object) -> str:
        raise process.TimeoutExpired("clang++", 1)

    monkeypatch.setattr(process, "run", slow)
    with pytest.raises(ToolchainError, match="gave no answer"):
        compilers.chosen(environment)


def test_one_that_fails_has_no_version(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(words: list[str], **_: object) -> str:
        raise process.CommandFailed(words, 1, "", "no such thing")

    monkeypatch.setattr(process, "run", failing)
    found = compilers.chosen(environment).cxx
    assert (found.path, found.version) == (None, "none")
