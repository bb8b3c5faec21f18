"""What `irdiff capture` asks of a program's own interpreter, and how it reads the answer."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from irdiff import process
from irdiff.capture import record_program
from irdiff.errors import ToolchainError

ENTRY = "irdiff.worker.__main__"


def record(folder: Path, monkeypatch: pytest.MonkeyPatch, code: int, recorded: str | None) -> tuple[int, Any]:
    """The exit code and how the interpreter was started; it prints a line and leaves a code."""
    started: Any = None

    def run_logged(
        command: Sequence[str], *, log: Path, env: Mapping[str, str], on_line: Callable[[str], None]
    ) -> int:
        nonlocal started
        started = command, env
        on_line("hello")
        if recorded is not None:
            Path(command[command.index("--code-file") + 1]).write_text(recorded)
        return code

    monkeypatch.setattr(process, "run_logged", run_logged)
    config: Any = SimpleNamespace(cache=folder, tool_environment={"HOME": "/h", "PYTHONHASHSEED": "random"})
    lines: list[str] = []
    ended = record_program.run("/p/python", ["script.py", "--its", "word"], config, lines.append)
    assert lines == ["hello"]
    return ended, started


def test_the_code_is_the_recordings_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, (command, environment) = record(tmp_path, monkeypatch, 1, "7")
    assert code == 7
    assert command[0] == "/p/python" and command[-3:] == ["script.py", "--its", "word"]
    # nothing but what Python needs is pinned, and the caller has the last word
    assert environment["PYTHONHASHSEED"] == "random"
    assert not any(name.startswith("TRITON") for name in environment)


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
    with pytest.raises(ToolchainError, match="/p/python") as caught:
        record(tmp_path, monkeypatch, code, None)
    assert said in caught.value.what


def test_the_worker_lends_the_program_no_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run by its path, its folder is the first place that Python looks for modules in."""
    entry: Any = importlib.import_module(ENTRY)
    folder = str(Path(str(entry.__file__)).parent)
    monkeypatch.setattr(sys, "path", [folder, *sys.path])
    monkeypatch.setattr(sys, "argv", ["__main__.py", "record", "script.py"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "triton" else ...)
    assert entry.main() == record_program.NO_TRITON
    assert folder not in sys.path
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(entry, "load_package", lambda: None)
    program = SimpleNamespace(main=lambda words: words)
    monkeypatch.setitem(sys.modules, "irdiff_worker", SimpleNamespace())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "irdiff_worker.program", program)  # type: ignore[arg-type]
    assert entry.main() == ["script.py"]
