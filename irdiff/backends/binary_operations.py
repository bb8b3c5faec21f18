"""Counts the operations of cubins, by the disassemblers of the compared toolchains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock

from irdiff.backends import machine_code_text
from irdiff.backends.nvidia.disassembler import Disassembler
from irdiff.backends.nvidia.operation_counter import OperationCounter
from irdiff.errors import NormalizeError


class BinaryOperations:
    """Binaries by their digests. Thread-safe."""

    def __init__(self, content: Callable[[str], bytes], packages: Sequence[str]) -> None:
        """content: of an artifact, by its digest; packages: the folders of `triton`, the newest last."""
        self.content = content
        # a newer one knows the architectures of older ones, too
        self._counters = [
            OperationCounter(Disassembler(program))
            for program in reversed(machine_code_text.programs(packages))
        ]
        self._lock = Lock()

    def operations(self, digests: Sequence[str]) -> list[Counter[str]] | None:
        """Counts by name, of each binary; None where no disassembler is there, or none can read them."""
        binaries = [self.content(digest) for digest in digests]
        with self._lock:
            for counter in self._counters:
                with suppress(NormalizeError):
                    return counter.counted(binaries)
        return None
