"""Constant bank 0 of a launch: what the driver puts before the parameters, and the parameters. Pure.

The layout is that of the driver for each generation: what precedes the parameters was read from
disassembled kernels that ask for each value (`%ntid`, `%nctaid`, the address of a parameter), where they
begin is stated by the cubin (`EIATTR_PARAM_CBANK`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.backends import elf
from irdiff.backends.launch_plan import LaunchPlan
from irdiff.backends.nvidia import cubin
from irdiff.errors import NormalizeError
from irdiff.execution.launch_facts import PARAMETER_ADDRESS, UNKNOWN_BYTE, LaunchFacts, put, put_arguments

_PARAM_CBANK = 0x0A
_STACK_TOP = 0xFFFDE0


@dataclass(frozen=True, kw_only=True)
class BankLayout:
    """Where constant bank 0 holds what a kernel did not get as a parameter."""

    block: int
    grid: int
    stack: int
    parameters: int
    """The generic address of the parameters, from which a kernel takes those of tensor maps."""


BANK_LAYOUTS: Mapping[int, BankLayout] = {
    90: BankLayout(block=0x0, grid=0xC, stack=0x28, parameters=0x198),
    100: BankLayout(block=0x360, grid=0x370, stack=0x37C, parameters=0x348),
}
"""By compute capability times ten."""


def facts_of(
    plan: LaunchPlan, binary: bytes, arch: int, contents: Mapping[int, Any] | None = None
) -> LaunchFacts:
    """The facts of a launch on an NVIDIA GPU. `contents`: bytes of known storages, by their number."""
    base, layout = _parameter_base(binary, plan.kernel), BANK_LAYOUTS[arch]
    bank = np.full(base + max(plan.size_bytes, 1), UNKNOWN_BYTE, dtype=np.int16)
    put(bank, layout.block, struct.pack("<3I", plan.block_threads, 1, 1))
    put(bank, layout.grid, struct.pack("<3I", *plan.grid))
    put(bank, layout.parameters, struct.pack("<Q", PARAMETER_ADDRESS))
    put(bank, layout.stack, struct.pack("<I", _STACK_TOP))
    regions, descriptors = put_arguments(plan, bank, base, contents or {})
    return LaunchFacts(
        kernel=plan.kernel, arch=arch, grid=plan.grid, cluster=plan.cluster,
        warps=-(-plan.block_threads // 32), constants={0: bank}, regions=tuple(regions),
        shared_bytes=plan.shared_bytes, descriptors=descriptors,
    )  # fmt: skip


def _parameter_base(binary: bytes, kernel: str) -> int:
    file = elf.read(binary, "cubin")
    for section in file.sections:
        if section.name == f".nv.info.{kernel}":
            for number, value in cubin.attributes(section.content):
                if number == _PARAM_CBANK and len(value) == 8:
                    return int(struct.unpack("<IHH", value)[1])
    raise NormalizeError(f"the cubin does not say where the parameters of {kernel} lie")
