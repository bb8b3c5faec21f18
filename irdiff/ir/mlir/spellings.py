"""Spellings of the same MLIR operation that differ between releases of Triton, for attribution only. Pure.

Verdicts do not use these: a case whose TTGIR is only printed otherwise is still told as `changed` or
`ir-only` by its machine code. Attribution must not blame the pass that first prints the other spelling.

- `allocation.size = N : i32` dropped: since 3.9 the allocation pass notes next to `allocation.offset` what it
  computed from the types; the lowering reads the offset.
- `tt.load … {cachePolicy = #tt.cache_policy<cache_modifier = M, eviction_policy = E>}` →
  `cacheModifier = M evictionPolicy = E`, without what is at its default: since 3.9 one attribute holds both
  (Triton dialect, `TT_CachePolicyAttr`). Other dialects' loads had no eviction policy before: they stay.
- `rocdl.sched.barrier none`, `rocdl.sched.group.barrier mfma_wmma, …` → its number: since 3.9 the mask is an
  enumeration.
- `nvg.…` → `nvgpu.…`: since 3.6 Triton's own dialect no longer has the name of MLIR's.

Of the dialects that are translated to LLVM IR (`translated`):

- `llvm.mlir.constant` stands where it is used: LLVM IR has it there, and no instruction for it. An attribute
  of type `index` is the same number as one of the result's type.
- `builtin.unrealized_conversion_cast` of one value stands for that value: no instruction is made of it.
- `rocdl.raw.ptr.buffer.* …, %aux :` → its number: since 3.9 the immediate argument is an attribute.
- `rocdl.mfma.* …, 0, 0, none :` → `…, 0, 0, 0 :`: since 3.9 the last immediate argument is an enumeration.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_SIZE = re.compile(r"(?:, )?allocation\.size = [^,{}]*(?=[,}])")
_EMPTY = re.compile(r"(?: attributes)? \{(?:, )?\}|(?<=\{), ")
_CACHE = re.compile(
    r"(?P<before>\{[^{}]*?)(?:, )?cachePolicy = #tt\.cache_policy<"
    r"cache_modifier = (?P<modifier>\w+), eviction_policy = (?P<eviction>\w+)>"
)
_CACHED = re.compile(r"^(?:%[^=]*= )?tt\.(?:load|store|descriptor_load) ")

_ISOLATED = re.compile(r"\S*(?:\.func\b|\.global\b)")
_VALUE = re.compile(r"%\d+\b")
_CONSTANT = re.compile(r"(%\d+) = llvm\.mlir\.constant(\(.*\)) : (.+)$")
_CAST = re.compile(r"(%\d+) = builtin\.unrealized_conversion_cast (%\d+) : .*$")
_INDEX = re.compile(r"^\((-?\d+) : (?:index|(i\d+))\)$")
_SCHEDULED = re.compile(r"^(rocdl\.sched\.(?:group\.)?barrier )(none|salu|mfma_wmma)\b")
_MASKS = {"none": "0", "salu": "4", "mfma_wmma": "8"}
"""The classes of instructions that Triton names; in LLVM's order, each is one bit."""
_AUX = re.compile(r"^((?:%\d+ = )?rocdl\.raw\.ptr\.buffer\..*, )\((-?\d+) : i32\)(?= :| \{|$)")
_MFMA = re.compile(r"^((?:%\d+ = )?rocdl\.s?mfma\..*, \d+, \d+), none(?= :)")

_NVG = re.compile(r"^((?:%[^=]*= )?)nvg\.")

_DISCARDABLE = re.compile(r'(?:, )?(?:"|\b)(?:tt|ttg|ttng|amdg)\.[\w.-]+"?(?: = [^,{}]*)?')
"""Attributes of Triton's dialects on functions: LLVM IR has no place for them."""


def undone(line: str) -> str:
    """The canonical line in the spelling of older releases."""
    if "nvg." in line:
        line = _NVG.sub(r"\1nvgpu.", line)
    if "cachePolicy" in line and _CACHED.match(line):
        return _EMPTY.sub("", _CACHE.sub(_separate, line))
    if line.startswith("rocdl.sched."):
        return _SCHEDULED.sub(lambda match: match[1] + _MASKS[match[2]], line)
    if "allocation.size" in line:
        return _EMPTY.sub("", _SIZE.sub("", line))
    return line


def _separate(match: re.Match[str]) -> str:
    modifier = f"cacheModifier = {match['modifier']} " if match["modifier"] != "none" else ""
    eviction = f"evictionPolicy = {match['eviction']} " if match["eviction"] != "normal" else ""
    return modifier + eviction + match["before"]


def translated(lines: Iterable[str]) -> Iterator[str]:
    """Without what LLVM IR has no place for: the attributes of the module, Triton's own on functions, and
    constants and casts of types as lines of their own. Values are numbered anew, so texts are equal where
    the rest is.
    """
    instead: dict[str, str] = {}
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        value = match.group()
        return instead.get(value) or names.setdefault(value, f"%{len(names)}")

    for line in lines:
        if line.startswith("%"):
            if "llvm.mlir.constant" in line and (constant := _CONSTANT.match(line)):
                instead[constant.group(1)] = _literal(constant.group(2), constant.group(3))
                continue
            if "unrealized_conversion_cast" in line and (cast := _CAST.match(line)):
                instead[cast.group(1)] = _VALUE.sub(named, cast.group(2))
                continue
        elif line.startswith("module"):
            continue
        elif _ISOLATED.match(line):  # values of one function are not those of another
            instead, names = {}, {}
            line = _EMPTY.sub("", _DISCARDABLE.sub("", line))  # noqa: PLW2901
        renamed = _VALUE.sub(named, line)
        yield _MFMA.sub(r"\1, 0", _AUX.sub(r"\1\2", renamed)) if "rocdl." in line else renamed


def _literal(value: str, kind: str) -> str:
    number = _INDEX.match(value)
    return (
        f"({number.group(1)} : {kind})" if number and number.group(2) in (None, kind) else f"{value}: {kind}"
    )
