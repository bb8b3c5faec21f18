"""Counts floating-point and memory operations of cubins, by the nvdisasm of an installed toolchain.

Starting nvdisasm takes 0.4 s. So it reads one word of each form that is new (`operations.forms`), of both
sides of a case at once, and what it said of a form is kept for other cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from irdiff.backends import elf
from irdiff.backends.nvidia import cubin, operations
from irdiff.backends.nvidia.disassembler import Disassembler
from irdiff.errors import NormalizeError
from irdiff.ir.sass.operations import counted


class OperationCounter:
    def __init__(self, disassembler: Disassembler) -> None:
        self._disassembler = disassembler
        self._names: dict[tuple[int, int], Counter[str]] = {}
        """By architecture and form."""

    def counted(self, binaries: Sequence[bytes]) -> list[Counter[str]]:
        """By name, of each binary. Raises NormalizeError where one is no cubin, or has words that nvdisasm
        does not know.
        """
        listed = [(cubin.architecture(elf.read(each, "cubin")), *operations.forms(each)) for each in binaries]
        for arch in {arch for arch, _, _ in listed}:
            self._read(
                arch,
                {form: each for at, _, examples in listed if at == arch for form, each in examples.items()},
            )
        return [self._sum(arch, counts) for arch, counts, _ in listed]

    def _read(self, arch: int, examples: dict[int, tuple[int, bytes]]) -> None:
        missing = {form: each for form, each in examples.items() if (arch, form) not in self._names}
        texts = self._disassembler.texts(arch, dict(missing.values()))
        for form, (word, _) in missing.items():
            if word not in texts:
                raise NormalizeError(f"nvdisasm knows no instruction {word:#034x} of sm_{arch}")
            self._names[arch, form] = counted(f"{texts[word]};")

    def _sum(self, arch: int, counts: Counter[int]) -> Counter[str]:
        names = Counter[str]()
        for form, times in counts.items():
            for name, count in self._names[arch, form].items():
                names[name] += count * times
        return names
