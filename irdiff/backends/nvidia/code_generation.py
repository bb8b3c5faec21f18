"""How Triton makes PTX with LLVM. Source: `make_ptx` of `backends/nvidia/compiler.py`, 3.5 to 3.9.

Two things are taken from the PTX that the launch has: the ISA version in its header, and the processor.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from irdiff.backends.code_generation import AssemblerProgram, LlvmCall, fuses, release
from irdiff.backends.nvidia import ptxas
from irdiff.model import Launch, Target

LLVM_NAME = "nvptx64"
ASSEMBLER: AssemblerProgram | None = ptxas
SWITCHES: tuple[str, ...] = ("nvptx-short-ptr", "nvptx-mad-wide-opt", "nvptx-sched4reg")
_TRIPLE = "nvptx64-nvidia-cuda"
PROBE = LlvmCall(
    backend=ptxas.BACKEND, triple=_TRIPLE, processor="sm_80", fuses=True, isa_feature="+ptx",
    header=("7.0", "sm_80"),
)  # fmt: skip
ISAS: Sequence[int] = range(99, 60, -1)
_MAX_ISA = ((3, 7), 90, 86)
"""Triton asks LLVM for no newer PTX than this, from 3.7 on and before."""
_MAD_WIDE_SINCE = (3, 7)
_UNKNOWN_INTRINSIC = re.compile(r"\.extern \.func\s+(?:\([^)]*\)\s*)?(llvm\.[\w.]+)")


def llvm_call(launch: Launch, target: Target, version: str, assembly: str | None) -> LlvmCall:
    header = ptxas.HEADER.search(assembly or "")
    if not header:
        raise ValueError("the PTX of the release has no header with its version and target")
    since, new, old_limit = _MAX_ISA
    short, mad_wide, scheduled = SWITCHES
    flags = [short]
    flags += [mad_wide] if release(version) >= _MAD_WIDE_SINCE else []
    flags += [scheduled] if launch.options.get("sched4reg") == "True" else []
    return LlvmCall(
        backend=ptxas.BACKEND,
        triple=_TRIPLE,
        processor=header[3],
        newest_isa=min(new if release(version) >= since else old_limit, int(header[1] + header[2])),
        isa_feature=PROBE.isa_feature,
        flags=tuple(flags),
        fuses=fuses(launch),
        header=(f"{header[1]}.{header[2]}", header[3]),
    )


def finished(assembly: str, call: LlvmCall) -> str:
    """With the header, and without the debug flag, which would keep ptxas from optimizing."""
    assert call.header is not None
    version, processor = call.header
    assembly = re.sub(r"\.version \d+\.\d+", f".version {version}", assembly)
    assembly = re.sub(r"\.target sm_\w+", f".target {processor}", assembly)
    return re.sub(r",\s*debug|debug,\s*", "", assembly)


def unknown_intrinsics(assembly: str) -> list[str]:
    return list(dict.fromkeys(_UNKNOWN_INTRINSIC.findall(assembly)))
