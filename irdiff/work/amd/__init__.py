"""Executes the integer part of AMD's machine code, which its assembly spells: waves of 64 lanes under EXEC.

No AMD GPU has confirmed what is counted so.
"""

from irdiff.work.amd.code import instructions
from irdiff.work.amd.lanes import LANES
from irdiff.work.amd.programs import execute
from irdiff.work.amd.recording import work

__all__ = ["LANES", "execute", "instructions", "work"]
