"""Runs `capture.py` under the interpreter of a user's program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from irdiff import process
from irdiff.config import PINNED_ENVIRONMENT, Config
from irdiff.errors import ExitCode, ToolchainError

_PROGRAM = Path(__file__).parent / "capture.py"


def run(python: str, words: Sequence[str], config: Config, tell: Callable[[str], None]) -> ExitCode:
    """What the program prints goes to `tell`. Raises ToolchainError where the interpreter has no Triton."""
    log = config.cache / "capture.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    command = [python, "-u", str(_PROGRAM), *words]
    code = process.run_logged(
        command, log=log, env={**PINNED_ENVIRONMENT, **config.tool_environment}, on_line=tell
    )
    if code == ExitCode.DONE:
        return ExitCode.DONE
    if "No module named 'triton'" in log.read_text(errors="replace"):
        raise ToolchainError(
            f"the interpreter {python} has no Triton",
            hint="name the program's own with --python PATH, or a release with --toolchain triton==3.9.0",
        )
    if code == ExitCode.NOT_COMPARED:
        return ExitCode.NOT_COMPARED
    raise ToolchainError(f"{python} could not record the program (exit code {code})", log_path=str(log))
