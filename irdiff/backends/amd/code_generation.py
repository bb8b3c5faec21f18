"""How Triton makes AMD's assembly. Source: `make_amdgcn` of `backends/amd/compiler.py`, 3.5 to 3.9."""

from __future__ import annotations

import re
from collections.abc import Sequence

from irdiff.backends.code_generation import AssemblerProgram, LlvmCall, fuses, release
from irdiff.model import Launch, Target

LLVM_NAME = "amdgcn"
ASSEMBLER: AssemblerProgram | None = None
_BACKEND = "hip"
_TRIPLE = "amdgcn-amd-amdhsa"
PROBE = LlvmCall(backend=_BACKEND, triple=_TRIPLE, processor="gfx906", fuses=True)
ISAS: Sequence[int] = ()
SWITCHES: tuple[str, ...] = ()
_WITH_TRUE16 = re.compile(r"gfx1[12]")
_TRUE16_UNTIL = (3, 8)


def llvm_call(launch: Launch, target: Target, version: str, assembly: str | None) -> LlvmCall:
    arch = str(target.arch)
    is_old = _WITH_TRUE16.match(arch) and release(version) <= _TRUE16_UNTIL
    features = ("-real-true16",) if is_old else ()
    return LlvmCall(backend=_BACKEND, triple=_TRIPLE, processor=arch, features=features, fuses=fuses(launch))


def finished(assembly: str, call: LlvmCall) -> str:
    return assembly


def unknown_intrinsics(assembly: str) -> list[str]:
    return []
