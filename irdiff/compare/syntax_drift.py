"""Spellings of the same MLIR operation that differ between releases of Triton, for attribution only. Pure.

Verdicts do not use these: a case whose TTGIR is only printed otherwise is still told as `changed` or
`absorbed` by its machine code. Attribution must not blame the pass that first prints the other spelling.

- `amdg.buffer_load … : !tt.ptr<f16> -> T` → `: T`, `… : !tt.ptr<f16>[` → `: <f16>[`: since 3.9 the type of
  the pointer operand is printed, which is known from the operand (TritonAMDGPU dialect, assembly formats).
- `allocation.size = N : i32` dropped: since 3.9 the allocation pass notes next to `allocation.offset` what it
  computed from the types; the lowering reads the offset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_POINTER_RESULT = re.compile(r"^((?:%[^=]*= )?amdg\.buffer_\w+ .*: )!tt\.ptr<[^<>]*> -> ")
_POINTER_INTO = re.compile(r"^((?:%[^=]*= )?amdg\.buffer_\w+ .*: )!tt\.ptr(?=<[^<>]*>\[)")
_SIZE = re.compile(r"(?:, )?allocation\.size = [^,{}]*(?=[,}])")
_EMPTY = re.compile(r" \{(?:, )?\}|(?<=\{), ")

_DISCARDABLE = re.compile(r"(?:, )?\b(?:tt|ttg|ttng|amdg)\.[\w.-]+(?: = [^,{}]*)?")
"""Attributes of Triton's dialects on functions: LLVM IR has no place for them."""


def undone(line: str) -> str:
    """The canonical line in the spelling of older releases."""
    if "amdg.buffer_" in line:
        return _POINTER_INTO.sub(r"\1", _POINTER_RESULT.sub(r"\1", line))
    if "allocation.size" in line:
        return _EMPTY.sub("", _SIZE.sub("", line))
    return line


def translated(lines: Sequence[str]) -> list[str]:
    """Without what LLVM IR has no place for: the attributes of the module and Triton's own on functions."""
    kept = (line for line in lines if not line.startswith("module"))
    return [_DISCARDABLE.sub("", line) if ".func" in line[:24] else line for line in kept]
