"""Metadata that an assembly states, between `.amdgpu_metadata` and `.end_amdgpu_metadata`: the entries
that its assembler puts into the notes of the code object (LLVM, "User Guide for AMDGPU Backend", Code Object
V3 Metadata). Pure.
"""

from __future__ import annotations

import re

from irdiff.backends.amd.hsaco import FACTS
from irdiff.model import Fact

_METADATA = re.compile(
    r"^\s*\.amdgpu_metadata\s*$(.*?)^\s*\.end_amdgpu_metadata\s*$", re.DOTALL | re.MULTILINE
)
_ENTRY = re.compile(r"^ *(?:- )? *(\.\w+): +(\d+)\s*$", re.MULTILINE)


def assembly_facts(text: str) -> dict[str, Fact]:
    """Facts of the first kernel. The size of the code is not stated."""
    metadata = _METADATA.search(text)
    facts: dict[str, Fact] = {}
    for name, value in _ENTRY.findall(metadata[1]) if metadata else ():
        if name in FACTS:
            facts.setdefault(FACTS[name], int(value))
    return facts
