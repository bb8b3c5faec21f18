"""Instructions by class, counted in the text of a stage: facts next to a verdict.

Counts are static (each instruction once, however often a loop runs it) and cheap: one pass of one
pattern. The classes are those of `opcode_classes`, and for loads and stores their space and width.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Mapping

from irdiff.ir.lexing import AMDGCN, PTX, without_comments
from irdiff.ir.opcode_classes import counted
from irdiff.stages import Stage

_PTX_OPCODE = re.compile(
    r"^[ \t{]*+(?:@!?%?\w++[ \t]++)?([a-z][a-z0-9_]*+(?:[.:][a-zA-Z0-9_:]++)*+)[ \t;]", re.M
)
_AMD_OPCODE = re.compile(r"^[ \t]+((?:s|v|ds|global|buffer|flat|scratch|tensor)_[a-z0-9_]+)", re.M)
_MLIR_OPERATION = re.compile(r'^[ \t]*(?:%[^="\n]*= )?"?([a-z_]+\.[a-z_0-9]+)', re.M)
_FORMER_DIALECTS = re.compile(r"^triton_(nvidia_)?gpu(?=\.)")
"""What 3.2 calls the dialects `ttg` and `ttng`."""
_LAYOUT = re.compile(r"^#(?!loc)\w+ = ([^\n]*)$", re.M)
_PTX_MEMORY = re.compile(r"(ld|st)((?:\.[a-zA-Z0-9_:]+)*)$")
_PTX_SPACES = ("global", "shared", "local", "const", "param")
_AMD_MEMORY = re.compile(
    r"(global|buffer|flat|scratch|ds|s)_(load|store|read|write|buffer_load)(\d?)_?(?:\w*?)((?:dword|[bui]\d+|short|byte|sbyte|ubyte)\w*)"
)


def instruction_facts(ir: str, text: str) -> dict[str, int]:
    """Counts by class; `total` for assemblies. Empty for an IR that has no classes."""
    if ir in (Stage.TTGIR, Stage.GLIR):
        return _mlir_facts(text)
    if ir not in _ASSEMBLY:
        return {}
    language, pattern, classify = _ASSEMBLY[ir]
    text = without_comments(language, text)
    counts: Counter[str] = Counter()
    for opcode, count in Counter(pattern.findall(text)).items():
        counts["total"] += count
        name = classify(opcode)
        if name:
            counts[name] += count
            if name.startswith(("load_local", "store_local", "load_scratch", "store_scratch")):
                counts["local_memory"] += count
    return dict(sorted(counts.items()))


@functools.lru_cache(maxsize=1 << 12)
def _ptx_class(opcode: str) -> str:
    memory = _PTX_MEMORY.match(opcode)
    if not memory:
        return counted(Stage.PTX, opcode)
    parts = memory.group(2).split(".")
    space = next((space for part in parts for space in _PTX_SPACES if part.startswith(space)), "generic")
    width = next((int(part[1:]) for part in reversed(parts) if re.fullmatch(r"[bsuf]\d+", part)), 0)
    vector = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
    kind = "load" if memory.group(1) == "ld" else "store"
    return f"{kind}_{space}_{width * vector}" if width else f"{kind}_{space}"


@functools.lru_cache(maxsize=1 << 12)
def _amd_class(opcode: str) -> str:
    if name := counted(Stage.AMDGCN, opcode):
        return name
    memory = _AMD_MEMORY.match(opcode)
    if not memory:
        return ""
    space = {"ds": "shared", "s": "scalar", "buffer": "global"}.get(memory.group(1), memory.group(1))
    kind = "store" if memory.group(2) in ("store", "write") else "load"
    return f"{kind}_{space}_{_amd_width(memory.group(4)) * int(memory.group(3) or 1)}"


def _amd_width(suffix: str) -> int:
    """Bits that one lane loads or stores."""
    digits = re.match(r"\D*(\d+)", suffix)
    if suffix.startswith("dword"):
        return 32 * int(digits[1] if digits and suffix.startswith("dwordx") else 1)
    if "short" in suffix or "byte" in suffix:
        return 16 if "short" in suffix else 8
    return int(digits[1]) if digits else 0


_MLIR: Mapping[str, str] = {
    "convert_layout": r"\w+\.convert_layout",
    "fence": r"\w+\.\w*fence\w*",
    "dot": r"tt\.dot\w*|ttng\.(?:warp_group_dot|tc_gen5_mma\w*)|amdg\.\w*dot\w*",
    "loop": r"scf\.(?:for|while)",
    "async_copy": r"ttg\.async_copy_\w+|ttng\.async_tma_copy_\w+|amdg\.\w*buffer_load_to_local\w*",
    "async_wait": r"(?:ttg|amdg)\.async_wait|ttng\.(?:wait_barrier|async_tma_store_wait|warp_group_dot_wait)",
    "barrier": r"(?:gpu|ttg|ttng)\.\w*barrier\w*",
    "total": r".*",
}
"""Fact → the operations that it counts."""


def _mlir_facts(text: str) -> dict[str, int]:
    found = _MLIR_OPERATION.findall(text)
    operations = Counter(_FORMER_DIALECTS.sub(lambda m: "ttng" if m[1] else "ttg", name) for name in found)
    counts = {
        fact: sum(count for name, count in operations.items() if re.fullmatch(pattern, name))
        for fact, pattern in _MLIR.items()
    }
    return {**counts, "distinct_layouts": len(set(_LAYOUT.findall(text)))}


_ASSEMBLY: Mapping[str, tuple[re.Pattern[str], re.Pattern[str], Callable[[str], str]]] = {
    Stage.PTX: (PTX, _PTX_OPCODE, _ptx_class),
    Stage.AMDGCN: (AMDGCN, _AMD_OPCODE, _amd_class),
}
