"""Canonical text of every IR: the only judge of `equivalent`, and what every diff shows.

    canonicalize(ir, text) -> Canonical        the canonical form
    equivalent(ir, base, head) -> Comparison   equal bytes or equal canonical forms
    lines(ir, text) -> canonical lines         the same one after another, for large texts
    raw_lines(ir, text) -> line numbers        which raw line each canonical line came from
    machine_code(stage, binary) -> MachineCode the executable contract of a binary, and its resources
    instruction_facts(ir, text) -> counts      instructions by class

Functions without effects, one module an IR; what reads LLVM IR with LLVM runs elsewhere (`llvm_reader`) and
is handed in. Each module states its rules, each with its reason and source.
"""

from __future__ import annotations

import struct
from hashlib import sha256

from irdiff.errors import NormalizeError
from irdiff.normalize import cubin, hsaco
from irdiff.normalize.canonical import Canonical, Comparison, MachineCode, Printed, Reprint
from irdiff.normalize.comparing import canonicalize, equivalent, lines, raw_lines
from irdiff.normalize.histogram import instruction_facts

NORMALIZER_VERSION = "8"
"""Part of every cache key: raised with any change of any rule."""

__all__ = [
    "NORMALIZER_VERSION",
    "Canonical",
    "Comparison",
    "MachineCode",
    "Printed",
    "Reprint",
    "canonicalize",
    "equivalent",
    "instruction_facts",
    "lines",
    "machine_code",
    "raw_lines",
]


def machine_code(stage: str, binary: bytes) -> MachineCode:
    """The executable contract of a `cubin` or `hsaco` (see there), its digest, and resource facts.

    Raises NormalizeError for a binary that is damaged, or holds no code.
    """
    readers = {"cubin": cubin.read, "hsaco": hsaco.read}
    if stage not in readers:
        raise NormalizeError(f"no machine code is read from the stage {stage}")
    try:
        sections, facts = readers[stage](binary)
    except (struct.error, IndexError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise NormalizeError(f"{stage}: damaged binary ({error})") from error
    digest = sha256()
    for name in sorted(sections):
        digest.update(f"{name}\0{len(sections[name])}\0".encode())
        digest.update(sections[name])
    return MachineCode(digest=digest.hexdigest(), sections=sections, facts=facts)
