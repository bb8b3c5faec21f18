"""The machines whose code can be executed, and those whose time can be simulated: NVIDIA's alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irdiff.backends import amd, nvidia
from irdiff.backends.amd.execution.waves import WaveReader
from irdiff.backends.nvidia.execution import pipes
from irdiff.backends.nvidia.execution.warps import WarpReader
from irdiff.execution.machine import CodeReader
from irdiff.execution.schedule import Load, Op
from irdiff.ir.blocks import CodeInstruction

Readers = dict[str, CodeReader]
"""By backend."""


def readers(disassembler: Path | None = None) -> Readers:
    """`disassembler`: nvdisasm; each reader keeps what it has read."""
    return {nvidia.NAME: WarpReader(disassembler), amd.NAME: WaveReader()}


def ops(code: Sequence[CodeInstruction], load: Load) -> list[Op] | None:
    """The instructions of a launch with their times; None for code whose time has no model."""
    return pipes.ops(code, load)
