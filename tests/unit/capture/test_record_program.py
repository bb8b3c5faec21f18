"""What `irdiff capture` asks of a program's own interpreter, and how it reads the answer."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff import process
from irdiff.capture import __main__ as entry
from irdiff.capture import record_program
from irdiff.errors import ToolchainError


@dataclass
class Interpreter:
    """Stands for the program's interpreter: prints lines, leaves a code, ends."""

    printed: str = ""
    recorded: str | None = None
    code: int = 0
    commands: list[list[str]] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)

    def __call__(
        self, command: Sequence[str], *, log: Path, env: Mapping[str, str], on_line: Callable[[str], None]
    ) -> int:
        self.commands.append(list(command))
        self.environments.append(env)
        assert not log.exists(), "the log of an earlier recording is gone"
        log.write_text(self.printed)
        on_line(self.printed)
        if self.recorded is not None:
            Path(command[command.index("--code-file") + 1]).write_text(self.recorded)
        return self.code


@pytest.fixture
def interpreter(monkeypatch: pytest.MonkeyPatch) -> Interpreter:
    made = Interpreter()
    monkeypatch.setattr(process, "run_logged", made)
    return made


def record(folder: Path, told: list[str]) -> int:
    config: Any = SimpleNamespace(cache=folder, tool_environment={"HOME": "/h", "PYTHONHASHSEED": "random"})
    return record_program.run("/p/python", ["script.py", "--its", "word"], config, told.append)


def test_the_code_is_the_recordings_own(tmp_path: Path, interpreter: Interpreter) -> None:
    interpreter.printed, interpreter.recorded, interpreter.code = "hello", "7", 1
    told: list[str] = []
    assert record(tmp_path / "new", told) == 7
    assert told == ["hello"]
    command = interpreter.commands[0]
    assert command[0] == "/p/python"
    assert command[-3:] == ["script.py", "--its", "word"]
    assert record(tmp_path / "new", told) == 7


def test_nothing_but_what_python_needs_is_pinned_and_the_caller_has_the_last_word(
    tmp_path: Path, interpreter: Interpreter
) -> None:
    interpreter.recorded = "0"
    record(tmp_path, [])
    environment = interpreter.environments[0]
    assert environment["PYTHONHASHSEED"] == "random"
    assert not any(name.startswith("TRITON") for name in environment)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (entry.NO_TRITON, "has no Triton: the program was not run"),
        (3, "could not record the program (exit code 3)"),
    ],
)
def test_an_interpreter_that_left_no_code_is_an_error(
    tmp_path: Path, interpreter: Interpreter, code: int, said: str
) -> None:
    interpreter.printed, interpreter.code = "Fatal Python error", code
    with pytest.raises(ToolchainError, match="/p/python") as caught:
        record(tmp_path, [])
    assert said in caught.value.what


def test_the_entry_hands_over_to_the_worker_and_lends_the_program_no_modules(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run by its path, this file's folder is the first place that Python looks for modules in."""
    folder = str(Path(entry.__file__).parent)
    monkeypatch.setattr(sys, "path", [folder, *sys.path])
    monkeypatch.delitem(sys.modules, "irdiff_worker", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "triton" else ...)
    assert entry.main() == entry.NO_TRITON
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    asked: list[str] = []

    def imported(name: str) -> Any:
        asked.append(name)
        assert sys.modules["irdiff_worker"].__file__ is not None
        return SimpleNamespace(main=lambda: 5)

    monkeypatch.setattr(importlib, "import_module", imported)
    assert entry.main() == 5
    assert asked == ["irdiff_worker.program"]
    assert folder not in sys.path
