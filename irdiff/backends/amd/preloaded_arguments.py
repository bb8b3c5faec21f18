"""Finds arguments that code loads into other registers than those in which a processor preloads them. Pure.

A processor that preloads arguments starts 256 bytes behind the entry of a kernel. Any other one starts at
the entry, where code loads them into the same registers (LLVM, "User Guide for AMDGPU Backend", "Preloaded
Kernel Arguments"). irdiff reads a kernel from its entry, so this code has to do what its header says.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from irdiff.ir.amdgcn.kernel_code import pointer_to_arguments, preloaded_into
from irdiff.model import CodeLine

_KERNEL = re.compile(r"\.amdhsa_kernel (\S+)$")
_LOAD = re.compile(r"s_load_dword(?:x\d+)? s\[?(\d+)(?::\d+)?\]?, s\[(\d+):\d+\], (0x[0-9a-f]+|\d+)$")
_LOADS_ARGUMENTS = re.compile(r"s_load_dword|s_waitcnt|\.|;")


def misplaced_arguments(assembly: Sequence[str]) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
    for kernel in (match[1] for line in assembly if (match := _KERNEL.match(line))):
        pointer, word_at = pointer_to_arguments(assembly, kernel), preloaded_into(assembly, kernel)
        if word_at is None or f"{kernel}:" not in assembly:
            continue
        begin = assembly.index(f"{kernel}:") + 1
        own = itertools.takewhile(_LOADS_ARGUMENTS.match, assembly[begin:])
        for number, load in enumerate(map(_LOAD.match, own), begin + 1):
            if not load or pointer[0] != f"s{load[2]}":
                continue
            register = word_at + int(load[3], 0) // 4
            if int(load[1]) != register:
                what = f"loads an argument into s{load[1]} that a processor preloads into s{register}"
                yield what, (CodeLine(number=number, text=load.string),)
