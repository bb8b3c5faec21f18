"""Computes scalar instructions, for all waves at once. Pure.

Source: AMD Instinct MI300 instruction set architecture guide, "Scalar ALU Operations" and the list of
instructions there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irdiff.backends.amd.execution.code import WaveInstruction
from irdiff.backends.amd.execution.lanes import EXEC, U32, U64, Ternary, WaveRegisters
from irdiff.execution.state import FALSE, UNKNOWN, Array, Value, both
from irdiff.ir.amdgcn.machine_code import MachineOperand

I32, I64 = np.int32, np.int64
Action = Callable[[WaveRegisters, WaveInstruction], None]
COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "lg": np.not_equal,
    "ne": np.not_equal,
}


def signed(value: Array) -> Array:
    return value.view(I32)


def wide(value: Array) -> Array:
    return value.astype(U64)


def _low(value: Array) -> Array:
    return (value & U64(0xFFFFFFFF)).astype(U32)


def move(registers: WaveRegisters, ins: WaveInstruction) -> None:
    target, source = ins.operands
    if ins.opcode == "s_mov_b64":
        move64(registers, target, source)
    else:
        registers.write(target, registers.fetch(source))


def move64(registers: WaveRegisters, target: MachineOperand, source: MachineOperand) -> None:
    if target.number == EXEC or registers.is_mask(source):
        registers.write_mask(target.number, registers.mask_of(source))
    else:
        registers.write64(target, registers.fetch64(source))


def move_short(registers: WaveRegisters, ins: WaveInstruction) -> None:
    registers.write(ins.operands[0], registers.fetch(ins.operands[1]))


def add(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """`s_add_u32`, `s_addc_u32`, `s_sub_u32`, `s_subb_u32`: SCC is the carry; of `_i32` the overflow."""
    target, left, right = ins.operands
    (a, known_a), (b, known_b) = registers.fetch(left), registers.fetch(right)
    takes_carry = ins.opcode in ("s_addc_u32", "s_subb_u32")
    carry, known_c = registers.scc if takes_carry else (FALSE, None)
    if a is None or b is None or carry is None:
        registers.write(target, UNKNOWN)
        registers.write_scc(UNKNOWN)
        return
    known = both(known_a, known_b, known_c)
    subtracts = ins.opcode.startswith("s_sub")
    exact: Any = wide(a).view(I64) - wide(b).view(I64) - carry if subtracts else wide(a) + wide(b) + carry
    result = (exact.view(U64) if subtracts else exact).astype(U64)
    registers.write(target, (_low(result), known))
    if ins.opcode.endswith("_i32"):
        sums = (
            signed(a).astype(I64) - signed(b).astype(I64) if subtracts else signed(a).astype(I64) + signed(b)
        )
        registers.write_scc((sums != signed(_low(result)), known))
    else:
        registers.write_scc((exact < 0 if subtracts else result >> U64(32) != 0, known))


def add_short(registers: WaveRegisters, ins: WaveInstruction) -> None:
    """`s_addk_i32`, `s_mulk_i32`: the target is a source too."""
    target, literal = ins.operands
    (a, known), (b, _) = registers.fetch(target), registers.fetch(literal)
    adds = ins.opcode == "s_addk_i32"
    registers.write(target, UNKNOWN if a is None or b is None else (a + b if adds else a * b, known))
    if adds:
        registers.write_scc(UNKNOWN)


def _binary(function: Callable[[Any, Any], Any], sets_scc: bool) -> Action:
    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, left, right = ins.operands
        (a, known_a), (b, known_b) = registers.fetch(left), registers.fetch(right)
        value: Value = UNKNOWN
        if a is not None and b is not None:
            value = function(a, b).astype(U32), both(known_a, known_b)
        registers.write(target, value)
        if sets_scc:
            registers.write_scc(UNKNOWN if value[0] is None else (value[0] != 0, value[1]))

    return action


def _extreme(function: Callable[[Any, Any], Any], is_signed: bool) -> Action:
    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, left, right = ins.operands
        (a, known_a), (b, known_b) = registers.fetch(left), registers.fetch(right)
        if a is None or b is None:
            registers.write(target, UNKNOWN)
            registers.write_scc(UNKNOWN)
            return
        known = both(known_a, known_b)
        bits = function(signed(a), signed(b)).view(U32) if is_signed else function(a, b)
        registers.write(target, (bits, known))
        registers.write_scc((bits == a, known))

    return action


def _unary(function: Callable[[Any], Any], sets_scc: bool) -> Action:
    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, source = ins.operands
        bits, known = registers.fetch(source)
        value: Value = UNKNOWN if bits is None else (function(bits), known)
        registers.write(target, value)
        if sets_scc:
            registers.write_scc(UNKNOWN if value[0] is None else (value[0] != 0, known))

    return action


def _shift64(function: Callable[[Any, Any], Any]) -> Action:
    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, left, right = ins.operands
        (a, known_a), (b, known_b) = registers.fetch64(left), registers.fetch(right)
        value: Value = UNKNOWN
        if a is not None and b is not None:
            value = function(a, wide(b & U32(63))).view(U64), both(known_a, known_b)
        registers.write64(target, value)
        registers.write_scc(UNKNOWN if value[0] is None else (value[0] != 0, value[1]))

    return action


def _field(value: Array, spec: Array, is_signed: bool) -> Array:
    offset, width = wide(spec & U32(31)), wide(spec >> U32(16) & U32(127))
    bits = wide(value) >> offset & (U64(1) << np.minimum(width, U64(32))) - U64(1)
    if is_signed:
        sign = bits >> np.maximum(width, U64(1)) - U64(1) & U64(1)
        bits = bits - (sign << width)
    return _low(bits)


_LOGIC: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "andn2": lambda a, b: a & ~b,
    "orn2": lambda a, b: a | ~b,
    "nand": lambda a, b: ~(a & b),
    "nor": lambda a, b: ~(a | b),
    "xnor": lambda a, b: ~(a ^ b),
}
"""These take words, or masks of type `Ternary`, whose lanes are known or not."""


def _joined(registers: WaveRegisters, name: str, one: Value, other: Value) -> Value:
    """Two masks; where data decide both, what is known of one being a part of the other says more."""
    relations = registers.relations
    if name == "or" and (whole := relations.whole(one, other)) is not None:
        return whole
    if name == "andn2" and relations.are_apart(one, other):
        return one
    bits, known = _LOGIC[name](Ternary.of(one), Ternary.of(other)).value
    value = bits, known  # a tuple of its own, which stands for these lanes
    if name == "and":
        relations.note_part(value, one)
        relations.note_part(value, other)
    if name == "xor" and (pair := relations.without(one, other)) is not None:
        part, whole = pair
        relations.note_part(value, whole)
        relations.note_halves(value, part, whole)
    return value


def _logic64(name: str) -> Action:
    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, left, right = ins.operands
        if registers.is_mask(left) or registers.is_mask(right) or target.number == EXEC:
            lanes = _joined(registers, name, registers.mask_of(left), registers.mask_of(right))
            registers.write_mask(target.number, lanes)
            registers.write_scc(Ternary.of(lanes).any_lane())
            return
        (a, known_a), (b, known_b) = registers.fetch64(left), registers.fetch64(right)
        value: Value = UNKNOWN
        if a is not None and b is not None:
            value = _LOGIC[name](a, b), both(known_a, known_b)
        registers.write64(target, value)
        registers.write_scc(UNKNOWN if value[0] is None else (value[0] != 0, value[1]))

    return action


def _not64(registers: WaveRegisters, ins: WaveInstruction) -> None:
    target, source = ins.operands
    inverted = ~Ternary.of(registers.mask_of(source))
    registers.write_mask(target.number, inverted.value)
    registers.write_scc(inverted.any_lane())


def _saveexec(name: str) -> Action:
    """Keeps EXEC, and joins it with a source."""

    def action(registers: WaveRegisters, ins: WaveInstruction) -> None:
        target, source = ins.operands
        before = registers.exec
        joined = _joined(registers, name, registers.mask_of(source), before)
        registers.write_mask(target.number, before)
        registers.write_mask(EXEC, joined)
        registers.write_scc(Ternary.of(joined).any_lane())

    return action


def select(registers: WaveRegisters, ins: WaveInstruction) -> None:
    target, left, right = ins.operands
    is_pair = ins.opcode == "s_cselect_b64"
    if is_pair and _is_lanes(registers, left) and _is_lanes(registers, right):
        chosen = Ternary.of(registers.scc)
        one, other = (Ternary.of(registers.mask_of(each)) for each in (left, right))
        registers.write_mask(target.number, ((chosen & one) | (~chosen & other)).value)
        return
    fetch = registers.fetch64 if is_pair else registers.fetch
    (a, known_a), (b, known_b) = fetch(left), fetch(right)
    bits, known = registers.scc
    value: Value = UNKNOWN
    if a is not None and b is not None and bits is not None:
        value = np.where(bits, a, b), both(known, known_a, known_b)
    if is_pair:
        registers.write64(target, value)
    else:
        registers.write(target, value)


def _is_lanes(registers: WaveRegisters, operand: MachineOperand) -> bool:
    return registers.is_mask(operand) or (operand.kind == "imm" and operand.number in (0, -1))


def compare(registers: WaveRegisters, ins: WaveInstruction) -> None:
    (a, known_a), (b, known_b) = sides(registers, ins)
    kind = ins.opcode.split("_")[2]
    if a is None or b is None:
        registers.write_scc(UNKNOWN)
    else:
        registers.write_scc((COMPARISONS[kind](a, b), both(known_a, known_b)))


def sides(registers: WaveRegisters, ins: WaveInstruction) -> tuple[Value, Value]:
    """Both sides of a comparison, as int64."""
    left, right = ins.operands[-2:]
    kind = ins.opcode.rsplit("_", 1)[1]
    values = []
    for operand in (left, right):
        bits, known = registers.fetch64(operand) if kind.endswith("64") else registers.fetch(operand)
        if bits is not None:
            bits = (bits.view(I32) if kind == "i32" else bits).astype(I64)
        values.append((bits, known))
    return values[0], values[1]


def _test_bit(registers: WaveRegisters, ins: WaveInstruction) -> None:
    (a, known_a), (b, known_b) = (registers.fetch(each) for each in ins.operands)
    if a is None or b is None:
        registers.write_scc(UNKNOWN)
        return
    is_set = (a >> (b & U32(31)) & U32(1)) != 0
    registers.write_scc((is_set if ins.opcode.startswith("s_bitcmp1") else ~is_set, both(known_a, known_b)))


def _shifted_add(amount: int) -> Callable[[Any, Any], Any]:
    return lambda a, b: (a << U32(amount)) + b


def reversed_bits(value: Array) -> Array:
    mirrored = np.zeros_like(value)
    for bit in range(32):
        mirrored = mirrored | (value >> U32(bit) & U32(1)) << U32(31 - bit)
    return mirrored


ACTIONS: dict[str, Action] = {
    "s_mov_b32": move,
    "s_mov_b64": move,
    "s_movk_i32": move_short,
    "s_addk_i32": add_short,
    "s_mulk_i32": add_short,
    **dict.fromkeys(("s_add_u32", "s_add_i32", "s_addc_u32", "s_sub_u32", "s_sub_i32", "s_subb_u32"), add),
    **{f"s_{name}_b32": _binary(of, True) for name, of in _LOGIC.items()},
    **{f"s_{name}_b64": _logic64(name) for name in _LOGIC},
    **{f"s_{name}_saveexec_b64": _saveexec(name) for name in _LOGIC},
    "s_not_b32": _unary(lambda a: ~a, True),
    "s_not_b64": _not64,
    "s_brev_b32": _unary(reversed_bits, False),
    "s_mul_i32": _binary(lambda a, b: a * b, False),
    "s_mul_hi_u32": _binary(lambda a, b: wide(a) * wide(b) >> U64(32), False),
    "s_mul_hi_i32": _binary(lambda a, b: signed(a).astype(I64) * signed(b).astype(I64) >> 32, False),
    "s_lshl_b32": _binary(lambda a, b: a << (b & U32(31)), True),
    "s_lshr_b32": _binary(lambda a, b: a >> (b & U32(31)), True),
    "s_ashr_i32": _binary(lambda a, b: (signed(a) >> signed(b & U32(31))).view(U32), True),
    "s_lshl_b64": _shift64(lambda a, b: a << b),
    "s_lshr_b64": _shift64(lambda a, b: a >> b),
    "s_ashr_i64": _shift64(lambda a, b: a.view(I64) >> b.astype(I64)),
    **{f"s_lshl{n}_add_u32": _binary(_shifted_add(n), True) for n in (1, 2, 3, 4)},
    "s_bfe_u32": _binary(lambda a, b: _field(a, b, False), True),
    "s_bfe_i32": _binary(lambda a, b: _field(a, b, True), True),
    "s_min_i32": _extreme(np.minimum, True),
    "s_max_i32": _extreme(np.maximum, True),
    "s_min_u32": _extreme(np.minimum, False),
    "s_max_u32": _extreme(np.maximum, False),
    "s_abs_i32": _unary(lambda a: np.abs(signed(a)).view(U32), True),
    "s_sext_i32_i16": _unary(lambda a: _field(a, np.full_like(a, 16 << 16), True), False),
    "s_sext_i32_i8": _unary(lambda a: _field(a, np.full_like(a, 8 << 16), True), False),
    "s_cselect_b32": select,
    "s_cselect_b64": select,
    **dict.fromkeys(("s_bitcmp0_b32", "s_bitcmp1_b32"), _test_bit),
    **{
        f"s_{form}_{kind}_{type_}": compare
        for form in ("cmp", "cmpk")
        for kind in ("lt", "le", "gt", "ge", "eq", "lg")
        for type_ in ("i32", "u32", "u64")
    },
}
LOGIC_WRITES_SCC = frozenset(
    name
    for name in ACTIONS
    if name.startswith(
        ("s_and", "s_or", "s_xor", "s_lsh", "s_ash", "s_bfe", "s_bitcmp", "s_not", "s_nand", "s_nor")
    )
)
"""A branch on what these leave in SCC is no comparison that the instruction states."""
