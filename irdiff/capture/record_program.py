"""Runs the worker's `record` under the interpreter of a user's program."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from irdiff import process
from irdiff.config import PINNED_ENVIRONMENT, Config
from irdiff.errors import ToolchainError
from irdiff.resolve.toolchains.identity import WORKER

NO_TRITON = 69
"""The worker's exit code if the interpreter has no Triton: nothing was run."""


def run(python: str, words: Sequence[str], config: Config, on_line: Callable[[str], None]) -> int:
    """Returns the program's exit code if it failed, else that of the recording; `on_line` gets its output.
    Raises ToolchainError if the interpreter has no Triton.
    """
    log = config.cache / "irdiff-capture.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    # the order of sets decides what is recorded; nothing else may change what the program computes
    pinned = {name: value for name, value in PINNED_ENVIRONMENT.items() if name.startswith("PYTHON")}
    with tempfile.TemporaryDirectory() as folder:
        code_file = Path(folder) / "code"
        command = [python, "-u", str(WORKER), "record", "--code-file", str(code_file), *words]
        code = process.run_logged(
            command, log=log, env={**pinned, **config.tool_environment}, on_line=on_line
        )
        if code_file.exists():
            return int(code_file.read_text())
    if code == NO_TRITON:
        raise ToolchainError(
            f"the interpreter {python} has no Triton: the program was not run",
            hint="name the program's own with --python PATH, or a release with --toolchain triton==3.9.0 "
            "(and --with torch for what else it imports)",
        )
    raise ToolchainError(
        f"{python} could not record the program (exit code {code})",
        hint="the end of the log says why; first run the program by itself with the same interpreter",
        log_path=str(log),
    )
