"""Kinds of operations in a text of MLIR: the operation, its element type, and whether a mask guards it.

What no case has, no comparison can say anything about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from irdiff.attribute.pass_states import OPERATION

_ELEMENT = re.compile(r"(?<=[x<( ])(bf16|f\d+(?:E\d+M\d+\w*)?|i\d+)\b")
_ALWAYS = re.compile(r"(%\w+) = (?:arith\.constant (?:dense<)?|llvm\.mlir\.constant\()true\b")
_OPERAND = re.compile(r"(?<!stride = )%[\w#]+")
_PRECISION = re.compile(r"inputPrecision = (?:(\d) : i32|(\w+))")
_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
"""As `InputPrecision` of TritonAttrDefs.td numbers them."""
_UNMASKED_OPERANDS = {
    "tt.load": 1,
    "tt.store": 2,
    "tt.atomic_rmw": 2,
    "amdg.buffer_load": 2,
    "amdg.buffer_store": 3,
    "amdg.buffer_atomic_rmw": 3,
}
"""How many operands stand before the mask, which is the next one if there is one."""
_MASK_WORD = re.compile(r"\bmask (?:= )?(%\w+)")
_WITH_MASK_WORD = frozenset({"ttg.async_copy_global_to_local", "amdg.buffer_load_to_local"})
MASKABLE = frozenset({*_UNMASKED_OPERANDS, *_WITH_MASK_WORD})
CONVERSIONS = frozenset({"tt.fp_to_fp", "amdg.scaled_upcast_fp4", "amdg.scaled_upcast_fp8"})
_DOTS = frozenset({"tt.dot", "ttng.warp_group_dot"})


@dataclass(frozen=True, kw_only=True, order=True)
class OperationKind:
    """One kind of operation."""

    operation: str
    """`tt.atomic_rmw`."""
    element: str
    """`f16` of its first operand that has one, else of its result; `fadd f16` of an atomic, `f32 as tf32` and
    `f16 in registers` of a matrix product, `f32 to f16` of a conversion; empty where it has none."""
    masked: bool
    """Whether a mask guards it that is not always true."""


def kinds(text: str) -> set[OperationKind]:
    """Those in a text as MLIR prints it."""
    always = set(_ALWAYS.findall(text))
    return {_kind(name, head, types, always) for name, head, types in _operations(text)}


def _operations(text: str) -> Iterator[tuple[str, str, str]]:
    """Name, what stands before the types, and the types; those of an operation with regions end it."""
    opened: list[tuple[str, str]] = []
    for line in text.split("\n"):
        if line.lstrip().startswith("})"):
            if opened:
                yield *opened.pop(), line
        elif found := OPERATION.match(line):
            # the types stand behind the attributes, which hold colons too: `{contiguity = 8 : i32} : `
            rest = line[found.end() :].partition(" loc(")[0]
            by = "} : " if "} : " in rest else " : "
            head, _, types = rest.rpartition(by) if by == "} : " else rest.partition(by)
            if line.endswith("({"):
                opened.append((found[1], head))
            else:
                yield found[1], head, " " + types


def _kind(name: str, head: str, types: str, always: set[str]) -> OperationKind:
    elements = _ELEMENT.findall(types)
    element = elements[0] if elements else ""
    if name in CONVERSIONS and elements:
        element = f"{element} to {elements[-1]}"
    if name.endswith("atomic_rmw"):
        element = f"{head.partition(',')[0].strip()} {element}"
    if name in _DOTS:
        precision = _PRECISION.search(head)
        if element == "f32":
            word = (precision[2] or _PRECISIONS[int(precision[1])]) if precision else "ieee"
            element = f"f32 as {word}"
        if name == "ttng.warp_group_dot" and types.startswith(" tensor"):
            element += " in registers"
    return OperationKind(operation=name, element=element, masked=_mask(name, head) not in {None, *always})


def _mask(name: str, head: str) -> str | None:
    if name in _WITH_MASK_WORD:
        found = _MASK_WORD.search(head)
        return found[1] if found else None
    before = _UNMASKED_OPERANDS.get(name)
    operands = _OPERAND.findall(head) if before else []
    return operands[before] if before and len(operands) > before else None


def class_of(operation: str) -> str:
    """How the C++ class of an operation and its name are compared: `atomicrmw` of `tt.atomic_rmw`, and of
    `AtomicRMWOp`.
    """
    name = operation.partition(".")[2] or operation.removesuffix("Op")
    return re.sub(r"[._]", "", name).lower()
