"""The machines whose code can be executed: warps of NVIDIA's GPUs, waves of AMD's."""

from __future__ import annotations

from pathlib import Path

from irdiff.backends import amd, nvidia
from irdiff.execution.machine import CodeReader

Readers = dict[str, CodeReader]
"""By backend."""


def readers(disassembler: Path | None = None) -> Readers:
    """`disassembler`: nvdisasm; each reader keeps what it has read."""
    # with numpy a third of what a comparison loads, and most comparisons have nothing to count
    from irdiff.backends.amd.execution.waves import WaveReader
    from irdiff.backends.nvidia.execution.warps import WarpReader

    return {nvidia.NAME: WarpReader(disassembler), amd.NAME: WaveReader()}
