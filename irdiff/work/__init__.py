"""Counts what one launch executes, from its machine code and its launch arguments.

    counted = work.count(CompiledLaunch(…), Disassembler(nvdisasm))

`count` returns a `CountedLaunch` (its `work` is the record that runs hold), or a `NotCountedWork`.
"""

from irdiff.counted_work import Amount, LoopWork, NotCountedWork, Work
from irdiff.work.compiled_launch import CompiledLaunch
from irdiff.work.counting import CountedLaunch, count
from irdiff.work.disassembler import Disassembler

__all__ = [
    "Amount",
    "CompiledLaunch",
    "CountedLaunch",
    "Disassembler",
    "LoopWork",
    "NotCountedWork",
    "Work",
    "count",
]
