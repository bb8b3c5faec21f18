"""Computes integer vector instructions, for all lanes at once. Pure.

Source: AMD Instinct MI300 instruction set architecture guide, "Vector ALU Operations" and the list of
instructions there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irdiff.backends.amd.execution.code import WaveInstruction
from irdiff.backends.amd.execution.lanes import EXEC, LANES, U32, U64, Ternary, WaveRegisters
from irdiff.backends.amd.execution.scalar import (
    COMPARISONS,
    I32,
    I64,
    Action,
    move64,
    reversed_bits,
    signed,
    wide,
)
from irdiff.backends.nvidia.execution.bits import truth_table
from irdiff.execution.state import TRUE, UNKNOWN, Value, both
from irdiff.ir.amdgcn.machine_code import MachineOperand

_LANE = np.arange(LANES, dtype=np.uint32)[None, :]
_LOW = U64(0xFFFFFFFF)
_CARRIES = (
    "v_add_co_u32",
    "v_sub_co_u32",
    "v_subrev_co_u32",
    "v_addc_co_u32",
    "v_subb_co_u32",
    "v_subbrev_co_u32",
)
WRITES_SECOND = frozenset({*_CARRIES, "v_div_scale_f32", "v_div_scale_f64", "v_mad_u64_u32", "v_mad_i64_i32"})
"""Their second operand is written, too: carries."""


def _computed(function: Callable[..., Any]) -> Action:
    """Makes an action that computes from 32-bit sources."""

    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, *sources = ins.operands
        values = [registers.fetch(each) for each in sources]
        if any(bits is None for bits, _ in values):
            registers.write(target, UNKNOWN)
            return
        result = function(*(bits for bits, _ in values)).astype(U32)
        registers.write(target, (result, both(*(known for _, known in values))))

    return action


def _shift64(function: Callable[[Any, Any], Any]) -> Action:
    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, count, source = ins.operands
        (n, known_n), (a, known_a) = registers.fetch(count), registers.fetch64(source)
        if n is None or a is None:
            registers.forget(target)
        else:
            registers.write64(target, (function(a, wide(n & U32(63))).view(U64), both(known_n, known_a)))

    return action


def _multiply_add64(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """`v_mad_u64_u32 D, carry, a, b, c`."""
    target, carry, left, right, addend = ins.operands
    (a, known_a), (b, known_b) = registers.fetch(left), registers.fetch(right)
    (c, known_c), (low, known_low) = registers.fetch64(addend), registers.fetch(addend)
    registers.write_mask(carry.number, UNKNOWN)
    if a is None or b is None or c is None:
        registers.forget(target)
        if a is not None and b is not None and low is not None:  # nobody needs the upper word
            registers.write(target, (a * b + low, both(known_a, known_b, known_low)))
        return
    is_signed = ins.opcode == "v_mad_i64_i32"
    product = (signed(a).astype(I64) * signed(b).astype(I64)).view(U64) if is_signed else wide(a) * wide(b)
    registers.write64(target, (product + c, both(known_a, known_b, known_c)))


def _shifted_add64(registers: WaveRegisters, ins: WaveInstruction) -> None:
    target, left, count, addend = ins.operands
    (a, known_a), (n, known_n), (c, known_c) = (
        registers.fetch64(left),
        registers.fetch(count),
        registers.fetch64(addend),
    )
    if a is None or n is None or c is None:
        registers.forget(target)
    else:
        registers.write64(target, ((a << wide(n & U32(63))) + c, both(known_a, known_n, known_c)))


def _carried(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """`v_add_co_u32 D, carry, a, b`, `v_addc_co_u32 D, carry, a, b, carry in`; `subrev` takes a from b."""
    target, carry, left, right, *carries = ins.operands
    (a, known_a), (b, known_b) = registers.fetch(left), registers.fetch(right)
    into, known_into = registers.mask_of(carries[0]) if carries else (np.zeros((1, 1), dtype=bool), None)
    if a is None or b is None or into is None:
        registers.write(target, UNKNOWN)
        registers.write_mask(carry.number, UNKNOWN)
        return
    known = both(known_a, known_b, known_into)
    if "rev" in ins.opcode:
        a, b = b, a
    if "sub" in ins.opcode:
        exact: Any = wide(a).view(I64) - wide(b).view(I64) - into
        out = exact < 0
    else:
        exact = wide(a) + wide(b) + into
        out = exact >> U64(32) != 0
    registers.write(target, ((exact.view(U64) & _LOW).astype(U32), known))
    active = Ternary.of(registers.exec)
    registers.write_mask(carry.number, (Ternary.of((out, known)) & active).value)


def _move64(registers: WaveRegisters, ins: WaveInstruction) -> None:
    target, source = ins.operands
    registers.write64(target, registers.fetch64(source)) if target.kind != "s" else move64(
        registers, target, source
    )


def _select(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """`v_cndmask_b32 D, a, b, mask`: b where the mask has the lane."""
    target, left, right, mask = ins.operands
    chosen, known = registers.mask_of(mask)
    (a, known_a), (b, known_b) = registers.fetch(left), registers.fetch(right)
    if chosen is None or (a is None and b is None):
        registers.write(target, UNKNOWN)
        return
    if a is None or b is None:
        keep, (bits, there) = (chosen, (b, known_b)) if a is None else (~chosen, (a, known_a))
        registers.write(target, (bits, both(keep, known, there)) if keep.any() else UNKNOWN)
        return
    there = known
    if known_a is not None or known_b is not None:
        of_a, of_b = (TRUE if each is None else each for each in (known_a, known_b))
        there = both(known, np.where(chosen, of_b, of_a))
    registers.write(target, (np.where(chosen, b, a), there))


def _first_lane(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """Reads the first lane that EXEC has, or lane 0 if it has none."""
    target, source = ins.operands
    bits, known = registers.fetch(source)
    active, certain = registers.exec
    if bits is None or active is None:
        registers.write(target, UNKNOWN)
        return
    if bits.shape[1] == 1:
        registers.write(
            target,
            (bits, known if known is None or known.shape[1] == 1 else known.all(axis=1, keepdims=True)),
        )
        return
    shape = (registers.state.slots, LANES)
    lane = np.broadcast_to(active, shape).argmax(axis=1)[:, None]
    there = None if known is None else np.take_along_axis(np.broadcast_to(known, shape), lane, axis=1)
    if certain is not None:
        there = both(there, np.broadcast_to(certain, shape).all(axis=1, keepdims=True))
    registers.write(target, (np.take_along_axis(np.broadcast_to(bits, shape), lane, axis=1), there))


def _read_lane(registers: WaveRegisters, ins: WaveInstruction) -> None:
    target, source, lane = ins.operands
    bits, known = registers.fetch(source)
    if bits is None or lane.kind != "imm":
        registers.write(target, UNKNOWN)
        return
    at = lane.number if bits.shape[1] > 1 else 0
    if known is not None:
        known = known[:, [lane.number if known.shape[1] > 1 else 0]]
    registers.write(target, (bits[:, [at]], known) if known is None or known.any() else UNKNOWN)


def _write_lane(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """Whatever EXEC is."""
    target, source, lane = ins.operands
    if lane.kind != "imm":
        registers.forget(target)
        return
    before, active = (registers.waves, registers.lanes), registers.exec
    one = np.equal(_LANE, lane.number)
    registers.lanes = one if before[1] is None else before[1] & one
    registers.state.registers["P"][EXEC] = TRUE, None
    registers.write(target, registers.fetch(source))
    registers.state.registers["P"][EXEC] = active
    registers.waves, registers.lanes = before


def compare(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """Lanes that EXEC does not have get 0."""
    (a, known_a), (b, known_b) = sides(registers, ins)
    kind = ins.opcode.split("_")[2]
    active = Ternary.of(registers.exec)
    result: Value = UNKNOWN
    if a is not None and b is not None:
        result = COMPARISONS[kind](a, b), both(known_a, known_b)
    registers.write_mask(ins.operands[0].number, (Ternary.of(result) & active).value)


def sides(registers: WaveRegisters, ins: WaveInstruction) -> tuple[Value, Value]:
    """Both sides of a comparison, as int64."""
    _, left, right = ins.operands
    kind = ins.opcode.rsplit("_", 1)[1]
    values = []
    for operand in (left, right):
        bits, known = registers.fetch64(operand) if kind.endswith("64") else registers.fetch(operand)
        if bits is not None:
            if kind in ("u16", "i16"):
                bits = bits.astype(np.uint16)
            signs = {"i32": I32, "i64": I64, "i16": np.int16}.get(kind)
            bits = (bits.view(signs) if signs else bits).astype(I64)
        values.append((bits, known))
    return values[0], values[1]


def _lanes_before(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """`v_mbcnt_lo_u32_b32 D, mask, a`: how many lanes before this one a mask has, added to a."""
    target, mask, addend = ins.operands
    all_lanes = mask.kind == "imm" and mask.number == -1
    if mask.number in (EXEC, EXEC + 1) and mask.kind == "s":
        all_lanes = registers.exec[0] is TRUE
    a, known = registers.fetch(addend)
    if not all_lanes or a is None:
        registers.write(target, UNKNOWN)
        return
    count = np.minimum(_LANE, U32(32)) if "_lo_" in ins.opcode else np.maximum(_LANE, U32(32)) - U32(32)
    registers.write(target, (a + count, known))


def _as_float(function: Callable[..., Any]) -> Callable[..., Any]:
    def converted(*values: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*values)

    return converted


def _to_unsigned(a: Any) -> Any:
    exact = np.nan_to_num(np.trunc(a.view(np.float32).astype(np.float64)), nan=0.0)
    return np.clip(exact, 0, 2**32 - 1).astype(np.uint64)


def _field(a: Any, offset: Any, width: Any, is_signed: bool) -> Any:
    n = wide(width & U32(31))
    bits = wide(a) >> wide(offset & U32(31)) & (U64(1) << n) - U64(1)
    if is_signed:
        sign = np.where(n > 0, bits >> np.maximum(n, U64(1)) - U64(1) & U64(1), U64(0))
        bits = bits - (sign << n)
    return (bits & _LOW).astype(U32)


def _any_logic(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """`v_bitop3_b32 D, a, b, c bitop3:0x54`: the table's index is a bit of a, of b and of c."""
    table = int(ins.modifiers.get(_TRUTH_TABLE) or "0", 0)
    _computed(truth_table(table & 0xFF))(registers, ins)


def _high_product(a: Any, b: Any) -> Any:
    return wide(a) * wide(b) >> U64(32)


def _count_bits(a: Any, b: Any) -> Any:
    count = np.zeros_like(a)
    for bit in range(32):
        count = count + (a >> U32(bit) & U32(1))
    return count + b


def _sign24(a: Any) -> Any:
    return (a << U32(8)).view(I32) >> I32(8)


_M24 = U32(0xFFFFFF)
_HALF = U32(0xFFFF)
ACTIONS: dict[str, Action] = {
    **dict.fromkeys(
        ("v_mov_b32", "v_accvgpr_read_b32", "v_accvgpr_write_b32", "v_accvgpr_mov_b32"),
        _computed(lambda a: a),
    ),
    "v_mov_b64": _move64,
    "v_add_u32": _computed(lambda a, b: a + b),
    "v_sub_u32": _computed(lambda a, b: a - b),
    "v_subrev_u32": _computed(lambda a, b: b - a),
    "v_and_b32": _computed(lambda a, b: a & b),
    "v_or_b32": _computed(lambda a, b: a | b),
    "v_xor_b32": _computed(lambda a, b: a ^ b),
    "v_not_b32": _computed(lambda a: ~a),
    "v_bitop3_b32": _any_logic,
    "v_xnor_b32": _computed(lambda a, b: ~(a ^ b)),
    "v_lshlrev_b32": _computed(lambda a, b: b << (a & U32(31))),
    "v_lshrrev_b32": _computed(lambda a, b: b >> (a & U32(31))),
    "v_ashrrev_i32": _computed(lambda a, b: (signed(b) >> signed(a & U32(31))).view(U32)),
    "v_lshlrev_b64": _shift64(lambda a, n: a << n),
    "v_lshrrev_b64": _shift64(lambda a, n: a >> n),
    "v_ashrrev_i64": _shift64(lambda a, n: a.view(I64) >> n.astype(I64)),
    "v_add3_u32": _computed(lambda a, b, c: a + b + c),
    "v_add_lshl_u32": _computed(lambda a, b, c: (a + b) << (c & U32(31))),
    "v_lshl_add_u32": _computed(lambda a, b, c: (a << (b & U32(31))) + c),
    "v_lshl_or_b32": _computed(lambda a, b, c: (a << (b & U32(31))) | c),
    "v_and_or_b32": _computed(lambda a, b, c: a & b | c),
    "v_or3_b32": _computed(lambda a, b, c: a | b | c),
    "v_xad_u32": _computed(lambda a, b, c: (a ^ b) + c),
    "v_bfi_b32": _computed(lambda a, b, c: a & b | ~a & c),
    "v_bfe_u32": _computed(lambda a, b, c: _field(a, b, c, False)),
    "v_bfe_i32": _computed(lambda a, b, c: _field(a, b, c, True)),
    "v_alignbit_b32": _computed(lambda a, b, c: (wide(b) | wide(a) << U64(32)) >> wide(c & U32(31)) & _LOW),
    "v_bfrev_b32": _computed(reversed_bits),
    "v_bcnt_u32_b32": _computed(_count_bits),
    "v_mul_lo_u32": _computed(lambda a, b: a * b),
    "v_mul_hi_u32": _computed(_high_product),
    "v_mul_hi_i32": _computed(lambda a, b: signed(a).astype(I64) * signed(b).astype(I64) >> 32),
    "v_mul_u32_u24": _computed(lambda a, b: (a & _M24) * (b & _M24)),
    "v_mul_i32_i24": _computed(lambda a, b: (_sign24(a) * _sign24(b)).view(U32)),
    "v_mad_u32_u24": _computed(lambda a, b, c: (a & _M24) * (b & _M24) + c),
    "v_mad_i32_i24": _computed(lambda a, b, c: (_sign24(a) * _sign24(b)).view(U32) + c),
    "v_mad_u64_u32": _multiply_add64,
    "v_mad_i64_i32": _multiply_add64,
    "v_lshl_add_u64": _shifted_add64,
    "v_min_u32": _computed(np.minimum),
    "v_max_u32": _computed(np.maximum),
    "v_min_i32": _computed(lambda a, b: np.minimum(signed(a), signed(b)).view(U32)),
    "v_max_i32": _computed(lambda a, b: np.maximum(signed(a), signed(b)).view(U32)),
    # these leave zeros in the upper half (LLVM, GCNSubtarget.cpp, zeroesHigh16BitsOfDest, for GFX9)
    "v_add_u16": _computed(lambda a, b: a + b & _HALF),
    "v_sub_u16": _computed(lambda a, b: a - b & _HALF),
    "v_mul_lo_u16": _computed(lambda a, b: (a & _HALF) * (b & _HALF) & _HALF),
    "v_lshlrev_b16": _computed(lambda a, b: b << (a & U32(15)) & _HALF),
    "v_lshrrev_b16": _computed(lambda a, b: (b & _HALF) >> (a & U32(15))),
    **dict.fromkeys(_CARRIES, _carried),
    "v_cndmask_b32": _select,
    "v_readfirstlane_b32": _first_lane,
    "v_readlane_b32": _read_lane,
    "v_writelane_b32": _write_lane,
    "v_mbcnt_lo_u32_b32": _lanes_before,
    "v_mbcnt_hi_u32_b32": _lanes_before,
    # what integer divisions need of floating point
    "v_cvt_f32_u32": _computed(lambda a: a.astype(np.float32).view(U32)),
    "v_cvt_f32_i32": _computed(lambda a: signed(a).astype(np.float32).view(U32)),
    **dict.fromkeys(
        ("v_rcp_f32", "v_rcp_iflag_f32"),
        _computed(_as_float(lambda a: (np.float32(1) / a.view(np.float32)).view(U32))),
    ),
    "v_cvt_u32_f32": _computed(_as_float(_to_unsigned)),
    "v_mul_f32": _computed(_as_float(lambda a, b: (a.view(np.float32) * b.view(np.float32)).view(U32))),
    **{
        f"v_cmp_{kind}_{type_}": compare
        for kind in ("lt", "le", "gt", "ge", "eq", "ne")
        for type_ in ("i32", "u32", "i64", "u64", "u16", "i16")
    },
}


_TRUTH_TABLE = "bitop3"
_PARTS = {
    "DWORD": (0, 32), "WORD_0": (0, 16), "WORD_1": (16, 16),
    "BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8),
}  # fmt: skip
_OF_WHOLE = {"dst_sel": "DWORD", "dst_unused": "UNUSED_PAD"}


def parts(ins: WaveInstruction) -> tuple[str, dict[int, tuple[int, int]]]:
    """The opcode of a sub-dword instruction that writes a whole register, and the parts of its sources.

    By id of the operand: first bit, bits. Another's own opcode, and nothing.
    """
    opcode, modifiers = ins.opcode.removesuffix("_sdwa"), ins.modifiers
    names = [name for name in modifiers if name not in _OF_WHOLE]
    whole = all(modifiers.get(name) == word for name, word in _OF_WHOLE.items())
    sources = {f"src{n}_sel": operand for n, operand in enumerate(ins.operands[1:])}
    known = all(name in sources and modifiers[name] in _PARTS for name in names)
    are_twice = len({id(operand) for operand in sources.values()}) < len(sources)
    if opcode == ins.opcode or not whole or not known or are_twice or any(map(_is_text, ins.operands)):
        return ins.opcode, {}
    return opcode, {id(sources[name]): _PARTS[modifiers[name]] for name in names}


def _is_text(operand: MachineOperand) -> bool:
    return operand.kind == "text"


def is_plain(ins: WaveInstruction) -> bool:
    """True if an instruction takes whole operands of its own lane, unchanged."""
    return ins.modifiers.keys() <= {_TRUTH_TABLE} and not any(map(_is_text, ins.operands))
