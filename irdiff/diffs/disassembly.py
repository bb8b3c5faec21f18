"""Machine code as text, of both sides of a case: by the nvdisasm of an installed toolchain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from irdiff import process
from irdiff.backends import machine_code_text
from irdiff.backends.stages import ORDER, TEXTS, WITHOUT_TEXT
from irdiff.config import Config
from irdiff.diffs import visible
from irdiff.errors import NormalizeError, RunFolderError, ToolchainError
from irdiff.model import Artifact, Case, Sides
from irdiff.resolve.toolchains import environments
from irdiff.run import run_folder
from irdiff.stages import Stage

CONTROL_BITS = "the instructions of both sides are the same: only their control bits differ"
_WHAT_THEY_SAY = "They say how long an instruction stalls and what it waits for"


def disassembled(folder: Path, case: Case, config: Config) -> Sides[str]:
    """SASS of both sides, by the nvdisasm of an installed toolchain.

    Raises RunFolderError (no cubin in the run) and ToolchainError (no nvdisasm).
    """
    return Sides(base="base", head="head").map(lambda side: _disassembled(folder, case, side, config))


def without_difference(folder: Path, case: Case) -> str:
    """Says what differs in machine code whose disassembly is the same on both sides."""
    if has_same_instructions(folder, case):
        return f"{CONTROL_BITS}, which the disassembly does not show. {_WHAT_THEY_SAY}"
    return "the disassembly of both sides is the same: what differs is not part of it"


def has_same_instructions(folder: Path, case: Case) -> bool:
    """False also if the run folder lacks the machine code, or irdiff cannot read it."""
    base, head = (_binary(folder, case, side) for side in ("base", "head"))
    try:
        return bool(base and head and machine_code_text.is_same_but_for_control_bits(base, head))
    except NormalizeError:
        return False


def _binary(folder: Path, case: Case, side: str) -> bytes | None:
    held = case.artifacts.of(side)
    artifact = next((held[kind.artifact] for kind in WITHOUT_TEXT.values() if kind.artifact in held), None)
    return run_folder.artifact(folder, artifact.digest) if artifact else None


def _disassembled(folder: Path, case: Case, side: str, config: Config) -> str:
    content = _binary(folder, case, side)
    if content is None:
        raise RunFolderError(
            f"the run folder holds no machine code of {side} for {visible.clean(case.id)}",
            hint=f"what is compared instead is its assembly: --stage {_last_text(case.artifacts.of(side))}",
        )
    program = _disassembler(config)
    try:
        return machine_code_text.disassembled(program, content)
    except (process.CommandFailed, process.TimeoutExpired, OSError) as error:
        raise ToolchainError(
            f"the disassembler cannot read the machine code of {side}: {visible.clean(error)}",
            hint="a newer toolchain has a newer one: irdiff toolchain list",
        ) from error


def _last_text(artifacts: Mapping[str, Artifact]) -> str:
    return next((stage for stage in reversed(ORDER) if stage in artifacts and stage in TEXTS), Stage.LLIR)


def _disassembler(config: Config) -> Path:
    """That of the newest installed release that has one: it knows the architectures of older ones, too."""

    def age(environment: environments.Environment) -> tuple[bool, list[int]]:
        numbers = re.findall(r"\d+", environment.name)
        return environment.name.startswith("triton-"), [int(number) for number in numbers]

    for environment in sorted(environments.list_all(config), key=age, reverse=True):
        for path in environment.path.glob(
            f"lib*/python*/site-packages/triton/{machine_code_text.IN_PACKAGE}"
        ):
            return path
    raise ToolchainError(
        f"no installed toolchain has {machine_code_text.IN_PACKAGE.name}",
        hint="install one by comparing: irdiff compare triton==3.8.0 triton==3.9.0; or name its --cache",
    )
