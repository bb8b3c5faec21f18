"""Machine code as text, for showing: by the nvdisasm of an installed toolchain."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from irdiff import process
from irdiff.config import Config
from irdiff.errors import RunFolderError, ToolchainError
from irdiff.model import Case, Sides
from irdiff.report import escape
from irdiff.resolve.toolchains import environments
from irdiff.run import run_folder
from irdiff.stages import Stage

_DISASSEMBLER = "lib*/python*/site-packages/triton/backends/nvidia/bin/nvdisasm"
_TIMEOUT_S = 120


def of_case(folder: Path, case: Case, config: Config) -> Sides[str]:
    """SASS of both sides. Raises RunFolderError (no cubin in the run) and ToolchainError (no nvdisasm)."""
    return Sides(base=_of_side(folder, case, "base", config), head=_of_side(folder, case, "head", config))


def _of_side(folder: Path, case: Case, side: str, config: Config) -> str:
    artifact = case.artifacts.of(side).get(Stage.CUBIN)
    content = run_folder.artifact(folder, artifact.digest) if artifact else None
    if content is None:
        raise RunFolderError(
            f"the run folder holds no cubin of {side} for {escape.terminal(case.id)}",
            hint="the same PTX is the same machine code by rule: see --stage ptx",
        )
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(content)
        file.flush()
        try:
            command: list[str | Path] = [_disassembler(config), "-c", file.name]
            return process.run(command, env={"LC_ALL": "C.UTF-8"}, timeout_s=_TIMEOUT_S)
        except (process.CommandFailed, process.TimeoutExpired, OSError) as error:
            raise ToolchainError(
                f"nvdisasm cannot read the cubin of {side}: {escape.terminal(error)}",
                hint="a newer toolchain has a newer nvdisasm: irdiff toolchain list",
            ) from error


def _disassembler(config: Config) -> Path:
    """That of the newest installed release that has one: it knows the architectures of older ones, too."""
    for environment in sorted(environments.list_all(config), key=_age, reverse=True):
        for path in sorted(environment.path.glob(_DISASSEMBLER)):
            return path
    raise ToolchainError(
        "no installed toolchain has nvdisasm",
        hint="install one by comparing: irdiff compare triton==3.8.0 triton==3.9.0; or name its --cache",
    )


def _age(environment: environments.Environment) -> tuple[bool, list[int]]:
    """A key that sorts releases by version, behind all other toolchains."""
    return environment.name.startswith("triton-"), [
        int(part) for part in re.findall(r"\d+", environment.name)
    ]
