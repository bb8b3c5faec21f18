"""Operations of TTGIR and Gluon's IR by class, counted in a raw text: facts next to a verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

_OPERATION = re.compile(r'^[ \t]*(?:%[^="\n]*= )?"?([a-z_]+\.[a-z_0-9]+)', re.M)
_FORMER_DIALECTS = re.compile(r"^triton_(nvidia_)?gpu(?=\.)")
"""Names of the dialects `ttg` and `ttng` in Triton 3.2."""
_LAYOUT = re.compile(r"^#(?!loc)\w+ = ([^\n]*)$", re.M)
_COUNTED: Mapping[str, str] = {
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


def operations_by_class(text: str) -> dict[str, int]:
    names = _OPERATION.findall(text)
    operations = Counter(_FORMER_DIALECTS.sub(lambda m: "ttng" if m[1] else "ttg", name) for name in names)
    counts = {
        fact: sum(count for name, count in operations.items() if re.fullmatch(pattern, name))
        for fact, pattern in _COUNTED.items()
    }
    return {**counts, "distinct_layouts": len(set(_LAYOUT.findall(text)))}
