"""What `irdiff capture` says where the program's own interpreter leaves no exit code."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff import process
from irdiff.capture import record_program
from irdiff.errors import ToolchainError


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (record_program.NO_TRITON, "has no Triton: the program was not run"),
        (3, "could not record the program (exit code 3)"),
    ],
)
def test_an_interpreter_that_left_no_code_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, said: str
) -> None:
    monkeypatch.setattr(process, "run_logged", lambda *_, **__: code)
    config: Any = SimpleNamespace(cache=tmp_path, tool_environment={})
    with pytest.raises(ToolchainError, match="/p/python") as caught:
        record_program.run("/p/python", ["script.py"], config, print)
    assert said in caught.value.what
