"""Counts what one launch executes, from its machine code and its launch arguments.

    counted = work.count(CompiledLaunch(…), work.readers(nvdisasm))

`count` returns a `CountedLaunch` (its `work` is the record that runs hold), or a `NotCountedWork`.
"""

from irdiff.backends.machines import Readers, readers
from irdiff.counted_work import Amount, LoopWork, NotCountedWork, Work
from irdiff.execution.compiled_launch import CompiledLaunch
from irdiff.work.counting import CountedLaunch, count

__all__ = [
    "Amount",
    "CompiledLaunch",
    "CountedLaunch",
    "LoopWork",
    "NotCountedWork",
    "Readers",
    "Work",
    "count",
    "readers",
]
