"""The floating-point operations that integer divisions and constants need. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np

from irdiff.backends.nvidia.execution.warp_state import WarpState
from irdiff.backends.nvidia.execution.words import I32, I64, U32, unary, unknown
from irdiff.execution.state import Value
from irdiff.ir.sass.destinations import written
from irdiff.ir.sass.instructions import ZERO, Operand, SassInstruction


def _to_float(a: Any, ins: SassInstruction) -> Any:
    exact = (a if "U32" in ins.modifiers else a.view(I32)).astype(np.float64)
    near = exact.astype(np.float32)
    if "RP" in ins.modifiers:
        near = np.where(near.astype(np.float64) < exact, np.nextafter(near, np.float32(np.inf)), near)
    return near.astype(np.float32).view(U32)


def to_float(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """From 32-bit integers to fp32, as integer divisions need it."""
    if any(word[:1] in "SUFB" and word not in ("S32", "U32", "F32") for word in ins.modifiers):
        return unknown(*written(ins))
    return unary(_to_float)(state, ins)


def to_integer(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    if "TRUNC" not in ins.modifiers or any(
        w in ins.modifiers for w in ("F16", "F64", "S64", "U64", "S16", "U16", "S8", "U8")
    ):
        return unknown(*written(ins))

    def function(a: Any, _ins: SassInstruction) -> Any:
        with np.errstate(all="ignore"):
            value = np.nan_to_num(a.view(np.float32).astype(np.float64), nan=0.0)
            low, high = (0, 2**32 - 1) if "U32" in ins.modifiers else (-(2**31), 2**31 - 1)
            return np.clip(np.trunc(value), low, high).astype(I64).astype(U32)

    return unary(function)(state, ins)


def reciprocal(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    if "RCP" not in ins.modifiers or "RCP64H" in ins.modifiers:
        return unknown(ins.operands[0])

    def function(a: Any, _ins: SassInstruction) -> Any:
        with np.errstate(all="ignore"):
            return (np.float32(1) / a.view(np.float32)).astype(np.float32).view(U32)

    return unary(function)(state, ins)


def half_constant(_state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`HFMA2.MMA R, -RZ, RZ, x, y` moves two halves: ptxas writes constants so."""
    target, a, b, *rest = ins.operands
    literal = all(operand.kind in ("float", "imm") or "INF" in operand.text for operand in rest)
    if not (a.number == b.number == ZERO and a.kind == b.kind == "R" and literal and len(rest) == 2):
        return unknown(target)
    if "BF16_V2" in ins.modifiers:
        halves = [int(np.float32(_number(operand)).view(U32)) >> 16 for operand in rest]
    else:
        with np.errstate(over="ignore"):
            halves = [int(np.float16(_number(operand)).view(np.uint16)) for operand in rest]
    return [(target, (np.array([[halves[0] << 16 | halves[1]]], dtype=U32), None))]


def _number(operand: Operand) -> float:
    if operand.kind == "imm":
        return -float(operand.number) if operand.negated else float(operand.number)
    text = operand.text.replace("+", "").replace("QNAN", "nan").strip()
    return float(text)
