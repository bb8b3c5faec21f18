"""Counts of operations in SASS: whether an assembler made the same of two texts that do the same. Pure.

Source: instruction lists of NVIDIA's "CUDA Binary Utilities".
"""

from __future__ import annotations

import re
from collections import Counter

_INSTRUCTION = re.compile(
    r"(?:/\*[0-9a-f]+\*/\s+)?(?:\{ )?(?:@(?!!U?PT\b)!?U?P\w+ )?([A-Z][A-Z0-9_]+)([.\w]*) ?([^;]*);"
)
"""Not of what never runs: `@!PT LDS RZ, [RZ]`, which ptxas puts before a `BAR` as often as it likes."""
_FLOATS = re.compile(r"(?:[DFH]|FH)(?:ADD|MUL|FMA|MNMX)[23]?|MUFU|[HDQIO]G?MMA|UTC\w*MMA|FRND|FCHK")
_MEMORY = re.compile(r"LDG|STG|LDS|STS|LDSM|STSM|LDGSTS|ATOMG?|ATOMS|REDG?|UTMA\w+|UBLKCP|LDTM|STTM")
_PREFETCH = "UTMACCTL.PF"
"""Prefetches a descriptor and changes no memory. ptxas makes it of `prefetch.tensormap`."""
_WORDS = {".64": 2, ".128": 4, ".256": 8}
"""Words of 32 bits, by the modifier of an access."""
_MOVES = re.compile(r"-?RZ, -?RZ\b|-RZ, (?:R|U)")
"""A constant, or a register as it is or wider, moved by the floating-point unit."""
_BY_ONE = re.compile(r"(?:\S+, ){1,2}-?1, ")
"""A fused operation that multiplies by 1: a plain sum."""


def counted(text: str) -> Counter[str]:
    """Floating-point and memory operations of canonical or printed SASS, by name."""
    counts = Counter[str]()
    for line in text.split("\n"):
        if instruction := _INSTRUCTION.match(line.strip()):
            name, modifiers, operands = instruction.groups()
            name = re.sub(r"_32$|32I$", "", name)
            is_float = _FLOATS.fullmatch(name) is not None
            if is_float and not _MOVES.search(operands):
                is_sum = name == "FFMA" and _BY_ONE.match(operands)
                counts[f"{name}{modifiers if name == 'MUFU' else ' by 1' if is_sum else ''}"] += 1
            elif _MEMORY.fullmatch(name) and f"{name}{modifiers}" != _PREFETCH:
                counts[name] += next((n for size, n in _WORDS.items() if size in modifiers), 1)
    return counts
